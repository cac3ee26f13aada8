/* libFuzzer entry for requests over HTTP: a head by lines, then a body.  No head leads to a path
 * that decides anything but with the API's key and a body of JSON, or past a Host of another place;
 * no body comes through that is not whole.  As fuzz_msg.c. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "http/question.h"
#include "tests/fuzz/accepted.h"
#include "tests/fuzz/must_hold.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

enum { LINES = 9, METHOD = 0, PATH, HOST, ORIGIN, SITE, TYPE, LENGTH, KEY, PARAMETER };

/* A page that is read, and each body. */
static const enum http_what bodies[] = { HTTP_PREDICT, HTTP_SIMILAR, HTTP_QUERY, HTTP_ACCEPT,
					 HTTP_REJECT };
enum { BODIES = sizeof(bodies) / sizeof(bodies[0]) };
FUZZ_KINDS(BODIES + 1);

static void take(const struct http_route *r)
{
	unsigned kind = 0;

	while (kind < BODIES && bodies[kind] != r->what)
		kind++;
	fuzz_take(kind);
}

/* The lines before the body, as strings; one that is "-" is a header that is not there. */
static size_t cut_lines(char *text, size_t n, char *line[LINES])
{
	size_t at = 0;

	for (int i = 0; i < LINES; i++) {
		char *end = memchr(text + at, '\n', n - at);

		line[i] = NULL;
		if (end == NULL)
			return n;
		*end = '\0';
		if (strcmp(text + at, "-") != 0)
			line[i] = text + at;
		at = (size_t)(end - text) + 1;
	}
	return at;
}

static void check_route(const struct http_head *h, const struct http_route *r,
			const struct http_refusal *no)
{
	if (r == NULL) {
		must_hold(no->status >= 400 && no->status < 500 && no->why != NULL);
		return;
	}
	must_hold(strcmp(r->path, h->path) == 0);
	must_hold(strncmp(h->host, "127.", 4) == 0 || strncasecmp(h->host, "localhost", 9) == 0 ||
		  strncmp(h->host, "[::1]", 5) == 0);
	must_hold(strcmp(h->method, "POST") != 0 || (r->key == HTTP_KEY_API && h->type != NULL));
	must_hold(r->key == HTTP_KEY_API || strncmp(r->path, "/api/", 5) != 0);
	must_hold(r->what == HTTP_PAGE || h->site == NULL || strcmp(h->site, "cross-site") != 0);
}

static void check_body(const struct http_question *q)
{
	int open = 0;

	for (int k = 0; k < 3; k++)
		open += q->triple[k] == NULL || q->triple[k][0] == '\0';
	must_hold(q->what != HTTP_PREDICT || open == 1);
	must_hold(q->what == HTTP_PREDICT || (q->name != NULL && q->name[0] != '\0'));
	must_hold(q->top >= 1 || q->what == HTTP_QUERY); /* 0: as its LIMIT says */
	must_hold(q->top <= HTTP_TOP_MAX);
}

static bool ask_body(enum http_what what, const char *body, size_t n)
{
	struct http_question q;
	struct err e = { 0 };
	bool good = http_question_read(&q, what, body, n, &e) == 0;

	if (good) {
		check_body(&q);
		http_question_release(&q);
	} else {
		must_hold(e.text[0] != '\0' && q.body == NULL);
	}
	return good;
}

/* Each name once, where it is known, and with what it must be. */
static void ask_parameter(const char *text)
{
	static const char *const names[] = { "limit", "after", "run" };
	struct err e = { 0 };

	for (enum http_what what = 0; what < HTTP_WHATS; what++) {
		struct http_question q = { .what = what };

		must_hold(http_question_parameter(&q, text != NULL ? text : "", "1", &e) != 0 ||
			  q.given != 0);
		q = (struct http_question){ .what = what };
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			bool took = http_question_parameter(&q, names[i], text, &e) == 0;

			must_hold(!took ||
				  (text != NULL && what == (i == 0 ? HTTP_ROUNDS : HTTP_EVENTS)));
			must_hold(!took || http_question_parameter(&q, names[i], text, &e) != 0);
		}
		must_hold(q.limit <= HTTP_LIMIT_MAX);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text = mem_array(n + 1, 1), *line[LINES] = { NULL };
	struct http_refusal no;
	size_t at;

	memcpy(text, bytes, n);
	at = cut_lines(text, n, line);
	if (line[METHOD] != NULL && line[PATH] != NULL) {
		const struct http_head h = { line[METHOD], line[PATH], line[HOST],  line[ORIGIN],
					     line[SITE],   line[TYPE], line[LENGTH] };
		const struct http_route *r = http_route_of(&h, &no);

		check_route(&h, r, &no);
		if (r != NULL &&
		    (strcmp(r->method, "POST") != 0 || ask_body(r->what, text + at, n - at)))
			take(r);
	}
	(void)http_route_bearer(line[KEY]);
	ask_parameter(line[PARAMETER]);
	ask_body(HTTP_PREDICT, text + at, n - at);
	ask_body(HTTP_SIMILAR, text + at, n - at);
	ask_body(HTTP_QUERY, text + at, n - at);
	ask_body(HTTP_ACCEPT, text + at, n - at);
	free(text);
	return 0;
}
