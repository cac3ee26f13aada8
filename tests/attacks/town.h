/* tests/attacks/town.h - a graph of which half is known, and rows trained on that half. */
#ifndef TESTS_ATTACKS_TOWN_H
#define TESTS_ATTACKS_TOWN_H

#include "tests/kge/world.h"

enum { TOWN_PEOPLE = 120, TOWN_RELATIONS = 4, TOWN_REACH = 8, TOWN_DIM = 64 };

/* Relation k goes 9k + 1 on, and up to TOWN_REACH further: of these triples half are in
 * train, the others, of the same kind, in test. */
static inline struct graph *town(void)
{
	struct graph *g = names(TOWN_PEOPLE, TOWN_RELATIONS);
	struct rng r;
	rng_seed(&r, 21);
	for (uint32_t h = 0; h < TOWN_PEOPLE; h++)
		for (uint32_t k = 0; k < TOWN_RELATIONS; k++)
			for (uint32_t j = 0; j < TOWN_REACH; j++)
				graph_add(g, rng_below(&r, 2) == 0 ? GRAPH_TRAIN : GRAPH_TEST,
					  (struct graph_triple){
						  h, k, (h + 9 * k + 1 + j) % TOWN_PEOPLE });
	return g;
}

static inline struct kge_train_config town_settings(void)
{
	struct kge_train_config c;
	kge_train_defaults(&c);
	c.lr = 0.02f;
	c.negatives = 16;
	c.batch = 64;
	c.threads = 1;
	return c;
}

#endif
