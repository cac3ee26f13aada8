#include "graph/match.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

const char *const graph_match_words[] = { [GRAPH_MATCH_REFUSE] = "refuse",
					  [GRAPH_MATCH_FIRST] = "first",
					  [GRAPH_MATCH_UNIQUE] = "unique",
					  [GRAPH_MATCH_BEST] = "best",
					  NULL };

void graph_conflicts_add(struct graph_conflicts *c, const char *fmt, ...)
{
	char text[2048];
	va_list args;

	if (c->n++ >= GRAPH_CONFLICTS_SHOWN)
		return;
	va_start(args, fmt);
	vsnprintf(text, sizeof text, fmt, args);
	va_end(args);
	text_mark(text);
	buf_printf(&c->text, "%s\n", text);
}

void graph_conflicts_release(struct graph_conflicts *c)
{
	buf_release(&c->text);
	c->n = 0;
}

int graph_match_score(const struct graph_lines *l, const struct lines_field *f, double *score,
		      struct err *e)
{
	char *end;

	assert(f->text[f->len] == '\0');
	if (strspn(f->text, "0123456789+-.eE") == f->len) { /* no nan, inf or hexadecimal */
		*score = strtod(f->text, &end);
		if (end != f->text && *end == '\0' && isfinite(*score))
			return 0;
	}
	return graph_lines_bad(l, e, "column 3 (score) is '%.60s', which is no number", f->text);
}

int graph_match_order(double a, double b)
{
	assert(isfinite(a) && isfinite(b));
	return (a < b) - (a > b);
}
