#include "http/question.h"

#include <stdlib.h>
#include <string.h>

/* What members a body may have: a text, a switch, or a count. */
struct member {
	const char *name;
	char kind;     /* t, s, c */
	size_t offset; /* in struct http_question */
};

#define IN(field) offsetof(struct http_question, field)

static const struct member predict_members[] = {
	{ "head", 't', IN(triple[0]) },
	{ "relation", 't', IN(triple[1]) },
	{ "tail", 't', IN(triple[2]) },
	{ "top", 'c', IN(top) },
	{ "typed", 's', IN(typed) },
	{ "known", 's', IN(known) },
	{ NULL, 0, 0 },
};

static const struct member similar_members[] = {
	{ "name", 't', IN(name) },	     { "top", 'c', IN(top) }, { "typed", 's', IN(typed) },
	{ "relations", 's', IN(relations) }, { "by", 'b', IN(far) },  { NULL, 0, 0 },
};

static const struct member query_members[] = {
	{ "query", 't', IN(name) },
	{ "top", 'c', IN(top) },
	{ "explain", 's', IN(explain) },
	{ NULL, 0, 0 },
};

static const struct member peer_members[] = { { "peer", 't', IN(name) }, { NULL, 0, 0 } };

static const struct member *members_for(enum http_what what)
{
	return what == HTTP_PREDICT   ? predict_members
	       : what == HTTP_SIMILAR ? similar_members
	       : what == HTTP_QUERY   ? query_members
				      : peer_members;
}

static const struct member *known_member(const struct member *m, const char *name)
{
	while (m->name != NULL && strcmp(m->name, name) != 0)
		m++;
	return m->name != NULL ? m : NULL;
}

static bool take_value(struct http_question *q, const struct member *m, const json_t *v)
{
	char *at = (char *)q + m->offset;
	json_int_t n = json_integer_value(v);
	const char *text = json_string_value(v);

	switch (m->kind) {
	case 't':
		*(const char **)(void *)at = text;
		return text != NULL && text[0] != '\0';
	case 's':
		*(bool *)at = json_is_true(v);
		return json_is_boolean(v);
	case 'b':
		q->far = text != NULL && strcmp(text, "distance") == 0;
		return q->far || (text != NULL && strcmp(text, "cosine") == 0);
	default:
		*(size_t *)(void *)at = n > 0 ? (size_t)n : 0;
		return json_is_integer(v) && n >= 1 && n <= HTTP_TOP_MAX;
	}
}

static int take_members(struct http_question *q, struct err *e)
{
	const struct member *m = members_for(q->what);
	const char *name;
	json_t *v;

	json_object_foreach(q->body, name, v)
	{
		const struct member *one = known_member(m, name);

		if (one == NULL)
			return err_set(e, ERR_USAGE, "no member '%.60s' is known here", name);
		if (!take_value(q, one, v))
			return err_set(e, ERR_USAGE, "the member %s is not what it must be: %s",
				       name,
				       one->kind == 't'	  ? "a text"
				       : one->kind == 's' ? "true or false"
				       : one->kind == 'b' ? "cosine or distance"
							  : "a number from 1 to 1000");
	}
	return 0;
}

static int needs_more(const struct http_question *q, struct err *e)
{
	int open = 0;

	if (q->what != HTTP_PREDICT && q->name == NULL)
		return err_set(e, ERR_USAGE, "which one? the body lacks the member %s",
			       q->what == HTTP_SIMILAR ? "name"
			       : q->what == HTTP_QUERY ? "query"
						       : "peer");
	if (q->what == HTTP_SIMILAR && q->relations && q->typed)
		return err_set(e, ERR_USAGE, "typed is about entities; leave it out");
	for (int k = 0; k < 3; k++)
		open += q->triple[k] == NULL;
	if (q->what == HTTP_PREDICT && open != 1)
		return err_set(e, ERR_USAGE, "predict needs two of head, relation and tail");
	return 0;
}

int http_question_read(struct http_question *q, enum http_what what, const void *bytes, size_t n,
		       struct err *e)
{
	json_error_t why;
	int rc;

	*q = (struct http_question){ .what = what,
				     .top = what == HTTP_QUERY ? 0 : HTTP_TOP_DEFAULT };
	q->body = json_loadb(bytes != NULL ? bytes : "", n, JSON_REJECT_DUPLICATES, &why);
	if (!json_is_object(q->body)) {
		rc = err_set(e, ERR_USAGE, "the body is no JSON object: %.100s",
			     q->body == NULL ? why.text : "it is something else");
	} else {
		rc = take_members(q, e);
		if (rc == 0)
			rc = needs_more(q, e);
	}
	if (rc != 0)
		http_question_release(q);
	return rc;
}

/* ---- what stands behind the `?` of an address ---- */

enum { LIMIT, AFTER, RUN, PARAMETERS };

static const struct parameter {
	enum http_what what;
	const char *name;
	const char *form; /* what its value is, if it is not what it must be */
} parameters[PARAMETERS] = {
	[LIMIT] = { HTTP_ROUNDS, "limit", "a number from 1 to 4096" },
	[AFTER] = { HTTP_EVENTS, "after", "the number of an event" },
	[RUN] = { HTTP_EVENTS, "run", "the number that came with events" },
};
_Static_assert(HTTP_LIMIT_MAX == 4096, "parameters[] says so");

static bool read_digits(const char *text, size_t digits, uint64_t *out)
{
	if (text == NULL || *text == '\0' || strlen(text) > digits ||
	    strspn(text, "0123456789") != strlen(text))
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

static bool take_parameter(struct http_question *q, size_t which, const char *text)
{
	uint64_t limit;

	if (which == AFTER)
		return read_digits(text, 15, &q->after);
	if (which == RUN)
		return read_digits(text, 15, &q->run);
	if (!read_digits(text, 4, &limit) || limit < 1 || limit > HTTP_LIMIT_MAX)
		return false;
	q->limit = (size_t)limit;
	return true;
}

/* It would have changed nothing, and nobody would have been told. */
static int refuse_parameter(const struct http_question *q, const char *name, struct err *e)
{
	char known[64] = "";

	for (size_t i = 0; i < PARAMETERS; i++) {
		if (parameters[i].what != q->what)
			continue;
		if (known[0] != '\0')
			strncat(known, ", ", sizeof(known) - strlen(known) - 1);
		strncat(known, parameters[i].name, sizeof(known) - strlen(known) - 1);
	}
	return err_set(e, ERR_USAGE, "no parameter '%.60s' is known here: this path takes %s", name,
		       known[0] != '\0' ? known : "none");
}

int http_question_parameter(struct http_question *q, const char *name, const char *text,
			    struct err *e)
{
	size_t i = 0;

	while (i < PARAMETERS &&
	       (parameters[i].what != q->what || strcmp(parameters[i].name, name) != 0))
		i++;
	if (i == PARAMETERS)
		return refuse_parameter(q, name, e);
	if ((q->given & 1U << i) != 0)
		return err_set(e, ERR_USAGE, "the parameter %s is there more than once", name);
	q->given |= 1U << i;
	if (!take_parameter(q, i, text))
		return err_set(e, ERR_USAGE, "%s is %s", name, parameters[i].form);
	return 0;
}

void http_question_release(struct http_question *q)
{
	json_decref(q->body);
	q->body = NULL;
}
