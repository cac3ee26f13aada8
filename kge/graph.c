/* kge/graph.c - a graph's memory. */
#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kge/graph.h"

struct kge_graph *kge_graph_new(void)
{
	struct kge_graph *g = mem_array(1, sizeof *g);

	g->entities = kge_vocab_new();
	g->relations = kge_vocab_new();
	return g;
}

void kge_graph_free(struct kge_graph *g)
{
	if (g == NULL)
		return;
	kge_vocab_free(g->entities);
	kge_vocab_free(g->relations);
	for (int s = 0; s < KGE_SPLITS; s++)
		free(g->split[s].at);
	free(g);
}

void kge_graph_add(struct kge_graph *g, enum kge_split s, struct kge_triple t)
{
	struct kge_triples *to = &g->split[s];

	assert(t.head < kge_vocab_count(g->entities) && t.tail < kge_vocab_count(g->entities));
	assert(t.rel < kge_vocab_count(g->relations));
	if ((to->n & (to->n - 1)) == 0) /* full at every power of two, and at 0 */
		to->at = mem_resize(to->at, to->n == 0 ? 1 : to->n * 2, sizeof *to->at);
	to->at[to->n++] = t;
}
