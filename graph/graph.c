/* graph/graph.c - a graph's memory. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"

const char *const graph_split_words[] = { "train", "valid", "test", NULL };

struct graph *graph_new(void)
{
	struct graph *g = mem_array(1, sizeof *g);

	g->entities = graph_vocab_new();
	g->relations = graph_vocab_new();
	return g;
}

void graph_free(struct graph *g)
{
	if (g == NULL)
		return;
	graph_vocab_free(g->entities);
	graph_vocab_free(g->relations);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		free(g->split[s].at);
	free(g);
}

/* ---- other numbers ---- */

static int by_name(const void *a, const void *b, void *names)
{
	size_t n, m;
	const char *s = graph_vocab_name(names, *(const uint32_t *)a, &n);
	const char *t = graph_vocab_name(names, *(const uint32_t *)b, &m);
	int order = memcmp(s, t, n < m ? n : m);

	return order != 0 ? order : (n > m) - (n < m);
}

/* Put a name of `names` behind those of `to`, unless it is there. */
static void move_name(struct graph_vocab *to, const struct graph_vocab *names, uint32_t id)
{
	size_t len;
	const char *name = graph_vocab_name(names, id, &len);

	graph_vocab_add(to, name, len);
}

/* The names in their new order; map: from old ids, count of them, to new ones. */
static struct graph_vocab *number_names(const struct graph_vocab *names,
					const struct graph_vocab *old, uint32_t *map)
{
	uint32_t n = graph_vocab_count(names), *order = mem_array((size_t)n + 1, sizeof *order);
	struct graph_vocab *to = graph_vocab_new();
	size_t len;

	for (uint32_t k = 0; k < graph_vocab_count(old); k++) {
		const char *name = graph_vocab_name(old, k, &len);
		uint32_t id = graph_vocab_find(names, name, len);

		if (id != GRAPH_NONE)
			move_name(to, names, id);
	}
	for (uint32_t k = 0; k < n; k++)
		order[k] = k;
	qsort_r(order, n, sizeof *order, by_name, (void *)(uintptr_t)names);
	for (uint32_t k = 0; k < n; k++)
		move_name(to, names, order[k]);
	for (uint32_t k = 0; k < n; k++) {
		const char *name = graph_vocab_name(names, k, &len);

		map[k] = graph_vocab_find(to, name, len);
	}
	free(order);
	assert(graph_vocab_count(to) == n);
	return to;
}

void graph_number_like(struct graph *g, const struct graph *old)
{
	uint32_t *ent = mem_array((size_t)graph_vocab_count(g->entities) + 1, sizeof *ent);
	uint32_t *rel = mem_array((size_t)graph_vocab_count(g->relations) + 1, sizeof *rel);
	struct graph_vocab *entities = number_names(g->entities, old->entities, ent);
	struct graph_vocab *relations = number_names(g->relations, old->relations, rel);

	assert(g != old);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t k = 0; k < g->split[s].n; k++) {
			struct graph_triple *t = &g->split[s].at[k];

			*t = (struct graph_triple){ ent[t->head], rel[t->rel], ent[t->tail] };
		}
	graph_vocab_free(g->entities);
	graph_vocab_free(g->relations);
	g->entities = entities;
	g->relations = relations;
	free(ent);
	free(rel);
}

void graph_add(struct graph *g, enum graph_split s, struct graph_triple t)
{
	struct graph_triples *to = &g->split[s];

	assert(t.head < graph_vocab_count(g->entities) && t.tail < graph_vocab_count(g->entities));
	assert(t.rel < graph_vocab_count(g->relations));
	if ((to->n & (to->n - 1)) == 0) /* full at every power of two, and at 0 */
		to->at = mem_resize(to->at, to->n == 0 ? 1 : to->n * 2, sizeof *to->at);
	to->at[to->n++] = t;
}

bool *graph_loops(const struct graph *g)
{
	bool *loops = mem_array((size_t)graph_vocab_count(g->relations) + 1, sizeof(*loops));
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];

	for (size_t i = 0; i < train->n; i++)
		loops[train->at[i].rel] |= train->at[i].head == train->at[i].tail;
	return loops;
}
