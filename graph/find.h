/* graph/find.h - which triples of a graph a file names. */
#ifndef GRAPH_FIND_H
#define GRAPH_FIND_H

#include "graph/graph.h"

struct graph_found {
	uint32_t *positions[GRAPH_SPLITS]; /* in the splits of the graph, ascending */
	size_t n[GRAPH_SPLITS];
	struct graph_triples triples; /* by the graph's ids, each once, in the order of the file */
};

/* The file or folder is all that graph_load() reads; one file is taken whole, and in which
 * split a triple is there says nothing.  A triple that the graph has in two splits is found in
 * both.  ERR_INPUT: some are not in the graph, by file and line, the first of them; or some were
 * left out for a literal or a blank node, which nobody meant.  Release in any case of success. */
int graph_find(struct graph_found *out, const struct graph *g, const char *path,
	       const struct graph_load_options *o, struct err *e);
void graph_found_release(struct graph_found *f);

#endif
