/* tests/attacks/town.h - a graph of which half is known, and rows trained on that half. */
#ifndef TESTS_ATTACKS_TOWN_H
#define TESTS_ATTACKS_TOWN_H

#include "tests/kge/world.h"

enum {
	TOWN_PEOPLE = 120,
	TOWN_RELATIONS = 4,
	TOWN_REACH = 8,
	TOWN_DIM = 64,
	TOWN_EACH = 3, /* of so many heads one has a triple in valid */
	TOWN_ASKED = TOWN_PEOPLE / TOWN_EACH
};

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

/* The n-th triple of this head that train does not have. */
static inline struct graph_triple town_left_out(const struct graph *g, uint32_t head, size_t n)
{
	const struct graph_triples *t = &g->split[GRAPH_TEST];
	size_t i = 0;

	for (;; i++) {
		assert_true(i < t->n);
		if (t->at[i].head == head && n-- == 0)
			return t->at[i];
	}
}

/* Which of the first two is in valid: so neither kind is of another sort than the other. */
static inline size_t town_secret_of(uint32_t head)
{
	return head / TOWN_EACH % 2;
}

/* Of each third head one triple is the host's secret, in valid. */
static inline struct graph *town_with_valid(void)
{
	struct graph *g = town();

	for (uint32_t k = 0; k < TOWN_ASKED; k++)
		graph_add(g, GRAPH_VALID,
			  town_left_out(g, TOWN_EACH * k, town_secret_of(TOWN_EACH * k)));
	return g;
}

/* n heads of those with a secret, drawn anew for each question. */
static inline void town_draw_heads(struct rng *r, uint32_t *head, size_t n)
{
	uint32_t all[TOWN_ASKED];

	for (uint32_t k = 0; k < TOWN_ASKED; k++)
		all[k] = TOWN_EACH * k;
	for (size_t i = 0; i < n; i++) {
		size_t at = i + rng_below(r, (uint32_t)(TOWN_ASKED - i));
		uint32_t drawn = all[at];

		all[at] = all[i];
		head[i] = all[i] = drawn;
	}
}

/* A question about these heads: all of valid, or none. */
static inline void town_ask(const struct graph *g, const uint32_t *head, size_t n, bool secret,
			    struct graph_triple *ask)
{
	for (size_t i = 0; i < n; i++)
		ask[i] = town_left_out(g, head[i], town_secret_of(head[i]) ^ !secret);
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
