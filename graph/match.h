/* graph/match.h - names that a file pairs with several others: what becomes of them. */
#ifndef GRAPH_MATCH_H
#define GRAPH_MATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "graph/lines.h"

enum graph_match {
	GRAPH_MATCH_REFUSE, /* nothing is read, all conflicts are told */
	GRAPH_MATCH_FIRST,  /* a line counts unless an earlier one has taken one of its names */
	GRAPH_MATCH_UNIQUE, /* names in no conflict alone count */
	GRAPH_MATCH_BEST,   /* the pair of the highest score counts first */
};
extern const char *const graph_match_words[]; /* by enum graph_match; NULL at the end */

/* Conflicts as text, one line each (with a line end), the first GRAPH_CONFLICTS_SHOWN of them. */
enum { GRAPH_CONFLICTS_SHOWN = 20 };
struct graph_conflicts {
	size_t n; /* in all */
	struct buf text;
};
void graph_conflicts_add(struct graph_conflicts *c, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
void graph_conflicts_release(struct graph_conflicts *c);

/* A column that is a score: a finite decimal number, or graph_lines_bad(). */
MUST_CHECK int graph_match_score(const struct graph_lines *l, const struct lines_field *f,
				 double *score, struct err *e);

/* Which of two pairs counts first by their scores: below 0, the first of them. */
int graph_match_order(double a, double b);

#endif
