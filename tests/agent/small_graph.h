/* tests/agent/small_graph.h - the names of a graph that is drawn: e0, e1 ... for entities and
 * relations. */
#ifndef TESTS_AGENT_SMALL_GRAPH_H
#define TESTS_AGENT_SMALL_GRAPH_H

#include <stdio.h>

#include "graph/graph.h"

static inline struct graph *small_graph(uint32_t entities, uint32_t relations)
{
	struct graph *g = graph_new();

	for (uint32_t i = 0; i < entities; i++) {
		char name[16];
		int n = snprintf(name, sizeof(name), "e%u", i);

		graph_vocab_add(g->entities, name, (size_t)n);
		if (i < relations)
			graph_vocab_add(g->relations, name, (size_t)n);
	}
	return g;
}

#endif
