/* cli/query.h - what `fkge query` is told. */
#ifndef CLI_QUERY_H
#define CLI_QUERY_H

#include "cli/cli.h"
#include "lab/work.h"
#include "query/sparql.h"

struct query_command {
	const char *text; /* in SPARQL; NULL: it is in the file */
	const char *file;
	int known;    /* triples that count as true, of lab_work_filter_words; -1: all */
	uint64_t top; /* so many answers; the query's LIMIT goes before it */
};

/* query_text.c: the query in SPARQL, as a tree of the agent's graph.  ERR_USAGE, ERR_INPUT,
 * ERR_NOTFOUND, ERR_TOOBIG with line and column, and the file where it is in one. */
MUST_CHECK int query_text_read(const struct work *w, const struct query_command *o,
			       struct query_sparql *out, struct err *e);
/* The query into the result: what it was taken for. */
void query_text_put(struct cli *cli, const struct work *w, const struct query_sparql *q);

/* query_text.c: say and put the answers that the known triples give. */
void query_exact_show(struct cli *cli, const struct work *w, const struct query_command *o,
		      const struct query_sparql *q);

#endif
