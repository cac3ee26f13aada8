/* graph/graph.c - a graph's memory. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"

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

/* ---- other numbers ---- */

static int by_name(const void *a, const void *b, void *names)
{
	size_t n, m;
	const char *s = kge_vocab_name(names, *(const uint32_t *)a, &n);
	const char *t = kge_vocab_name(names, *(const uint32_t *)b, &m);
	int order = memcmp(s, t, n < m ? n : m);

	return order != 0 ? order : (n > m) - (n < m);
}

/* Put a name of `names` behind those of `to`, unless it is there. */
static void move_name(struct kge_vocab *to, const struct kge_vocab *names, uint32_t id)
{
	size_t len;
	const char *name = kge_vocab_name(names, id, &len);

	kge_vocab_add(to, name, len);
}

/* The names in their new order; map: from old ids, count of them, to new ones. */
static struct kge_vocab *number_names(const struct kge_vocab *names, const struct kge_vocab *old,
				      uint32_t *map)
{
	uint32_t n = kge_vocab_count(names), *order = mem_array((size_t)n + 1, sizeof *order);
	struct kge_vocab *to = kge_vocab_new();
	size_t len;

	for (uint32_t k = 0; k < kge_vocab_count(old); k++) {
		const char *name = kge_vocab_name(old, k, &len);
		uint32_t id = kge_vocab_find(names, name, len);

		if (id != KGE_NONE)
			move_name(to, names, id);
	}
	for (uint32_t k = 0; k < n; k++)
		order[k] = k;
	qsort_r(order, n, sizeof *order, by_name, (void *)(uintptr_t)names);
	for (uint32_t k = 0; k < n; k++)
		move_name(to, names, order[k]);
	for (uint32_t k = 0; k < n; k++) {
		const char *name = kge_vocab_name(names, k, &len);

		map[k] = kge_vocab_find(to, name, len);
	}
	free(order);
	assert(kge_vocab_count(to) == n);
	return to;
}

void kge_graph_number_like(struct kge_graph *g, const struct kge_graph *old)
{
	uint32_t *ent = mem_array((size_t)kge_vocab_count(g->entities) + 1, sizeof *ent);
	uint32_t *rel = mem_array((size_t)kge_vocab_count(g->relations) + 1, sizeof *rel);
	struct kge_vocab *entities = number_names(g->entities, old->entities, ent);
	struct kge_vocab *relations = number_names(g->relations, old->relations, rel);

	for (int s = 0; s < KGE_SPLITS; s++)
		for (size_t k = 0; k < g->split[s].n; k++) {
			struct kge_triple *t = &g->split[s].at[k];

			*t = (struct kge_triple){ ent[t->head], rel[t->rel], ent[t->tail] };
		}
	kge_vocab_free(g->entities);
	kge_vocab_free(g->relations);
	g->entities = entities;
	g->relations = relations;
	free(ent);
	free(rel);
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
