/* http/question.h - bodies of requests: JSON, read strictly, without I/O.
 *
 *   predict   { head, relation, tail: two of the three; top, typed, known }
 *   similar   { name; top, typed, relations, by: "cosine" or "distance" }
 *   query     { query, in SPARQL; top, explain }
 *   accept    { peer }, reject likewise
 *
 * A member that is not known, or has another type, is refused. */
#ifndef HTTP_QUESTION_H
#define HTTP_QUESTION_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "http/route.h"

enum { HTTP_TOP_MAX = 1000, HTTP_TOP_DEFAULT = 10, HTTP_LIMIT_MAX = 4096 };

struct http_question {
	enum http_what what;
	const char *triple[3]; /* predict: head, relation, tail; NULL: asked for */
	const char *name;      /* similar; accept, reject: the peer; query: its text */
	size_t top;	       /* answers at most; query: 0 where it is not said */
	bool typed, known;     /* predict, similar; predict */
	bool relations, far;   /* similar: the name is a relation's; by distance */
	bool explain;	       /* query: the best way to each answer */
	size_t limit;	       /* rounds: the newest so many; 0: not said */
	uint64_t after, run;   /* events: those with a higher number, of that run; 0: any */
	json_t *body;	       /* that the names above are in; NULL: none */
};

/* The body of a route that takes one.  ERR_USAGE. */
MUST_CHECK int http_question_read(struct http_question *q, enum http_what what, const void *bytes,
				  size_t n, struct err *e);
/* A parameter of the address (NULL: not there): a number from 1 to HTTP_LIMIT_MAX.  ERR_USAGE. */
MUST_CHECK int http_question_limit(struct http_question *q, const char *text, struct err *e);
/* Of events (NULL: not there): a number that has been, and the run that it is of.  ERR_USAGE. */
MUST_CHECK int http_question_after(struct http_question *q, const char *text, const char *run,
				   struct err *e);
void http_question_release(struct http_question *q);

#endif
