/* query/pool.h - several graphs as one, by name, for queries that no graph answers alone. */
#ifndef QUERY_POOL_H
#define QUERY_POOL_H

#include <stdint.h>

#include "base/buf.h"
#include "graph/graph.h"

struct query_pool {
	struct graph *g;    /* the union: each split's triples; a name is one thing in all */
	struct buf holders; /* uint64_t by relation: bit k is set if the k-th graph has it */
	uint32_t graphs;
};

/* Zero is an empty pool. */
void query_pool_add(struct query_pool *pool, const struct graph *g); /* QUERY_OWNERS_MAX at most */
const uint64_t *query_pool_holders(const struct query_pool *pool);
void query_pool_release(struct query_pool *pool);

#endif
