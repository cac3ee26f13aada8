/* query/pool.c - several graphs as one. */
#include "query/pool.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"
#include "query/sample.h"

/* By the ids of `names`: the pool's, new ones made. */
static uint32_t *ids_in_pool(struct graph_vocab *pool, const struct graph_vocab *names)
{
	uint32_t n = graph_vocab_count(names), *ids = mem_array((size_t)n + 1, sizeof *ids);

	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		const char *name = graph_vocab_name(names, i, &len);

		ids[i] = graph_vocab_add(pool, name, len);
	}
	return ids;
}

static void note_holder(struct query_pool *pool, uint32_t rel)
{
	static const uint64_t nobody;

	while (pool->holders.len <= rel * sizeof nobody)
		buf_add(&pool->holders, &nobody, sizeof nobody);
	((uint64_t *)(void *)pool->holders.base)[rel] |= UINT64_C(1) << pool->graphs;
}

void query_pool_add(struct query_pool *pool, const struct graph *g)
{
	uint32_t *entities, *relations;

	assert(pool->graphs < QUERY_OWNERS_MAX);
	if (pool->g == NULL)
		pool->g = graph_new();
	entities = ids_in_pool(pool->g->entities, g->entities);
	relations = ids_in_pool(pool->g->relations, g->relations);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++) {
			struct graph_triple t = g->split[s].at[i];

			note_holder(pool, relations[t.rel]);
			graph_add(pool->g, (enum graph_split)s,
				  (struct graph_triple){ entities[t.head], relations[t.rel],
							 entities[t.tail] });
		}
	pool->graphs++;
	free(entities);
	free(relations);
}

const uint64_t *query_pool_holders(const struct query_pool *pool)
{
	return (const uint64_t *)(const void *)pool->holders.base;
}

void query_pool_release(struct query_pool *pool)
{
	graph_free(pool->g);
	buf_release(&pool->holders);
	*pool = (struct query_pool){ 0 };
}
