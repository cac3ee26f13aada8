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

static bool read_event_number(const char *text, uint64_t *out)
{
	if (text == NULL)
		return true;
	if (*text == '\0' || strlen(text) > 15 || strspn(text, "0123456789") != strlen(text))
		return false;
	*out = strtoull(text, NULL, 10);
	return true;
}

int http_question_after(struct http_question *q, const char *text, const char *run, struct err *e)
{
	if (!read_event_number(text, &q->after))
		return err_set(e, ERR_USAGE, "after is the number of an event");
	if (!read_event_number(run, &q->run))
		return err_set(e, ERR_USAGE, "run is the number that came with events");
	return 0;
}

int http_question_limit(struct http_question *q, const char *text, struct err *e)
{
	long n;

	if (text == NULL)
		return 0;
	n = strlen(text) <= 4 && strspn(text, "0123456789") == strlen(text) ? strtol(text, NULL, 10)
									    : 0;
	if (n < 1 || n > HTTP_LIMIT_MAX)
		return err_set(e, ERR_USAGE, "limit is a number from 1 to %d", HTTP_LIMIT_MAX);
	q->limit = (size_t)n;
	return 0;
}

void http_question_release(struct http_question *q)
{
	json_decref(q->body);
	q->body = NULL;
}
