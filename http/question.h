/* http/question.h - bodies of requests: JSON, read strictly, without I/O.
 *
 *   predict   { head, relation, tail: two of the three; top, typed, known }
 *   similar   { name; top, typed, relations, by: "cosine" or "distance" }
 *   query     { query, in SPARQL; top, explain }
 *   accept    { peer }, reject likewise
 *
 * A member that is not known, or has another type, is refused.  So is a parameter of the address
 * that the path does not take, or that comes twice: rounds take limit, events after and run. */
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
	unsigned given;	       /* which parameters have come */
	json_t *body;	       /* that the names above are in; NULL: none */
};

/* The body of a route that takes one.  ERR_USAGE. */
MUST_CHECK int http_question_read(struct http_question *q, enum http_what what, const void *bytes,
				  size_t n, struct err *e);
/* One parameter of the address, of the path that is q->what; text is NULL where it has no `=`.
 * ERR_USAGE. */
MUST_CHECK int http_question_parameter(struct http_question *q, const char *name, const char *text,
				       struct err *e);
void http_question_release(struct http_question *q);

#endif
