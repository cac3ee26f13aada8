/* tests/fed/world.h - a few agents whose graphs overlap, on fed/local.h. */
#ifndef TESTS_FED_WORLD_H
#define TESTS_FED_WORLD_H

#include "tests/test.h"

#include "fed/local.h"

enum { WORLD_MAX = 32 };

struct world {
	struct graph *graph[WORLD_MAX];
	struct kge_emb *emb[WORLD_MAX];
	struct fed_local_agent agent[WORLD_MAX];
	size_t n;
	uint32_t items; /* there are items e0, e1, ...; see world_has() */
	struct fed_local_config config;
	struct fed_local *local;
};

/* Agent i has item k: some items are everybody's, some nobody else's. */
bool world_has(const struct world *w, size_t i, uint32_t k);
/* Its id at the agent, or GRAPH_NONE. */
uint32_t world_id(const struct world *w, size_t i, uint32_t k);
const float *world_row(const struct world *w, size_t i, uint32_t k);
/* The sum of k's holders as a set of agents (not of members). */
uint64_t world_holders(const struct world *w, uint32_t k);

/* n agents, sharing some of `items`, tables of `model` and dim; bare: the last agent has a
 * graph of its own that nobody shares (a host that is no holder). */
void world_init(struct world *w, size_t n, uint32_t items, const char *model, size_t dim,
		const char *method, bool bare);
/* After changes to w->config: makes w->local. */
void world_open(struct world *w);
void world_release(struct world *w);
/* One round, proposed by agent 0; fails the test on an error. */
void world_round(struct world *w);
/* Host the round at agent i; before world_open(). */
void world_host(struct world *w, size_t i);
/* Copies of all tables, and back again. */
void world_save(const struct world *w, struct kge_emb *out[WORLD_MAX]);
void world_restore(struct world *w, struct kge_emb *from[WORLD_MAX]);
void world_free(struct kge_emb *v[WORLD_MAX], size_t n);

#endif
