/* graph/split.c - one list of triples into train, valid and test. */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"

struct counts {
	uint32_t *entity, *relation; /* how often each stands in train */
};

static void count_triple(struct counts *c, struct graph_triple t, int by)
{
	c->entity[t.head] += (uint32_t)by;
	c->entity[t.tail] += (uint32_t)by;
	c->relation[t.rel] += (uint32_t)by;
}

/* True, and counted out, if train still knows all three names without t. */
static bool can_spare(struct counts *c, struct graph_triple t)
{
	count_triple(c, t, -1);
	if (c->entity[t.head] > 0 && c->entity[t.tail] > 0 && c->relation[t.rel] > 0)
		return true;
	count_triple(c, t, 1);
	return false;
}

struct turn {
	uint64_t number;
	uint32_t position;
};

static int compare_turns(const void *a, const void *b)
{
	const struct turn *x = a, *y = b;

	if (x->number != y->number)
		return x->number < y->number ? -1 : 1;
	return (x->position > y->position) - (x->position < y->position);
}

static void hash_name(crypto_generichash_state *h, const struct graph_vocab *names, uint32_t id)
{
	size_t len;
	const char *name = graph_vocab_name(names, id, &len);
	uint64_t n = len; /* so that "ab" "c" is not "a" "bc" */

	crypto_generichash_update(h, (const uint8_t *)&n, sizeof n);
	crypto_generichash_update(h, (const uint8_t *)name, len);
}

static uint64_t turn_of(const struct graph *g, struct graph_triple t, uint64_t seed)
{
	crypto_generichash_state h;
	uint8_t out[crypto_generichash_BYTES_MIN];
	uint64_t number;

	crypto_generichash_init(&h, NULL, 0, sizeof out);
	crypto_generichash_update(&h, (const uint8_t *)&seed, sizeof seed);
	hash_name(&h, g->entities, t.head);
	hash_name(&h, g->relations, t.rel);
	hash_name(&h, g->entities, t.tail);
	crypto_generichash_final(&h, out, sizeof out);
	memcpy(&number, out, sizeof number);
	return number;
}

/* A triple's turn follows from its own names and the seed, not from its place: one triple more
 * moves next to no others from split to split. */
static uint32_t *order_by_names(const struct graph *g, uint64_t seed)
{
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];
	struct turn *turns = mem_array(train->n + 1, sizeof *turns);
	uint32_t *order = mem_array(train->n + 1, sizeof *order);

	for (size_t i = 0; i < train->n; i++)
		turns[i] = (struct turn){ turn_of(g, train->at[i], seed), (uint32_t)i };
	qsort(turns, train->n, sizeof *turns, compare_turns);
	for (size_t i = 0; i < train->n; i++)
		order[i] = turns[i].position;
	free(turns);
	return order;
}

static uint32_t *order_by_position(size_t n, uint64_t seed)
{
	uint32_t *order = mem_array(n + 1, sizeof *order);
	struct rng r;

	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	rng_seed(&r, seed);
	rng_shuffle(&r, order, n, sizeof *order);
	return order;
}

/* Deal the order's triples: to valid and test while they want some, else they stay. */
static void deal(struct graph *g, struct counts *c, const uint32_t *order, const size_t *want)
{
	struct graph_triples *train = &g->split[GRAPH_TRAIN];
	bool *gone = mem_array(train->n + 1, sizeof *gone);
	size_t kept = 0;

	for (size_t i = 0; i < train->n; i++) {
		struct graph_triple t = train->at[order[i]];
		enum graph_split to = g->split[GRAPH_TEST].n < want[GRAPH_TEST]	    ? GRAPH_TEST
				      : g->split[GRAPH_VALID].n < want[GRAPH_VALID] ? GRAPH_VALID
										    : GRAPH_TRAIN;

		if (to == GRAPH_TRAIN)
			break;
		gone[order[i]] = can_spare(c, t);
		if (gone[order[i]])
			graph_add(g, to, t);
	}
	for (size_t i = 0; i < train->n; i++)
		if (!gone[i])
			train->at[kept++] = train->at[i];
	train->n = kept;
	free(gone);
}

int graph_make_splits(struct graph *g, const struct graph_load_options *o, struct err *e)
{
	size_t n = g->split[GRAPH_TRAIN].n;
	size_t want[GRAPH_SPLITS] = { 0 };
	struct counts c;
	uint32_t *order;

	if (!(o->valid_share >= 0 && o->test_share >= 0 && o->valid_share + o->test_share < 1))
		return err_set(
			e, ERR_USAGE,
			"shares of valid (%g) and test (%g) must be 0 or more, below 1 in sum",
			o->valid_share, o->test_share);
	if (n >= UINT32_MAX)
		return err_set(e, ERR_TOOBIG, "more than %u triples cannot be split", UINT32_MAX);
	want[GRAPH_VALID] = (size_t)((double)n * o->valid_share);
	want[GRAPH_TEST] = (size_t)((double)n * o->test_share);
	c.entity = mem_array((size_t)graph_vocab_count(g->entities) + 1, sizeof *c.entity);
	c.relation = mem_array((size_t)graph_vocab_count(g->relations) + 1, sizeof *c.relation);
	for (size_t i = 0; i < n; i++)
		count_triple(&c, g->split[GRAPH_TRAIN].at[i], 1);
	order = o->by_names ? order_by_names(g, o->seed) : order_by_position(n, o->seed);
	deal(g, &c, order, want);
	free(c.entity);
	free(c.relation);
	free(order);
	return 0;
}
