/* Dealing a graph to agents: every triple once, evenly, or by communities that are there. */
#include "tests/test.h"

#include "base/mem.h"
#include "graph/parts.h"

static void name_entities(struct graph_vocab *v, char letter, uint32_t n)
{
	char name[16];

	for (uint32_t i = 0; i < n; i++)
		graph_vocab_add(v, name, (size_t)snprintf(name, sizeof name, "%c%u", letter, i));
}

static struct graph *empty_graph(uint32_t n_ent, uint32_t n_rel)
{
	struct graph *g = graph_new();

	name_entities(g->entities, 'e', n_ent);
	name_entities(g->relations, 'r', n_rel);
	return g;
}

static bool holds(const struct graph_triple *at, size_t n, struct graph_triple t)
{
	for (size_t i = 0; i < n; i++)
		if (memcmp(&at[i], &t, sizeof t) == 0)
			return true;
	return false;
}

/* Every relation has a triple; no split has one twice, but two splits may share some. */
static struct graph *random_graph(uint64_t seed, uint32_t n_ent, uint32_t n_rel, uint32_t n)
{
	struct graph *g = empty_graph(n_ent, n_rel);
	struct rng r;

	rng_seed(&r, seed);
	for (uint32_t i = 0; i < n; i++) {
		struct graph_triple t = { rng_below(&r, n_ent),
					  i < n_rel ? i : rng_below(&r, n_rel),
					  rng_below(&r, n_ent) };
		enum graph_split s = (enum graph_split)rng_below(&r, GRAPH_SPLITS);

		if (!holds(g->split[s].at, g->split[s].n, t))
			graph_add(g, s, t);
	}
	return g;
}

static void relations_are_partitioned_evenly(void **state)
{
	struct graph *g = random_graph(1, 30, 11, 200);
	uint32_t part[11], again[11], other[11], size[4] = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(graph_partition_relations(g, 4, 7, part, &e), 0);
	assert_int_equal(graph_partition_relations(g, 4, 7, again, &e), 0);
	assert_int_equal(graph_partition_relations(g, 4, 8, other, &e), 0);
	assert_memory_equal(part, again, sizeof part);
	assert_memory_not_equal(part, other, sizeof part);
	for (int r = 0; r < 11; r++) {
		assert_in_range(part[r], 0, 3);
		size[part[r]]++;
	}
	for (int p = 0; p < 4; p++)
		assert_in_range(size[p], 2, 3);
	graph_free(g);
}

static struct graph_triple renamed(const struct graph *g, const struct graph *part,
				   struct graph_triple t)
{
	size_t len;
	const char *name = graph_vocab_name(part->entities, t.head, &len);

	t.head = graph_vocab_find(g->entities, name, len);
	name = graph_vocab_name(part->entities, t.tail, &len);
	t.tail = graph_vocab_find(g->entities, name, len);
	name = graph_vocab_name(part->relations, t.rel, &len);
	t.rel = graph_vocab_find(g->relations, name, len);
	return t;
}

static void every_triple_is_partitioned_once(void **state)
{
	struct graph *g = random_graph(2, 12, 5, 400); /* so dense that splits overlap */
	struct graph_triples all = graph_all_triples(g);
	size_t in_splits = 0, partitioned = 0;
	struct err e = { 0 };
	uint32_t part[5];

	(void)state;
	for (int s = 0; s < GRAPH_SPLITS; s++)
		in_splits += g->split[s].n;
	assert_true(all.n < in_splits);
	for (size_t i = 0; i < all.n; i++)
		assert_false(holds(all.at, i, all.at[i]));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++)
			assert_true(holds(all.at, all.n, g->split[s].at[i]));
	assert_int_equal(graph_partition_relations(g, 3, 1, part, &e), 0);
	for (uint32_t p = 0; p < 3; p++) {
		struct graph *one = graph_part_graph(g, &all, part, p);

		partitioned += one->split[GRAPH_TRAIN].n;
		for (size_t i = 0; i < one->split[GRAPH_TRAIN].n; i++) {
			struct graph_triple t = renamed(g, one, one->split[GRAPH_TRAIN].at[i]);

			assert_int_equal(part[t.rel], p);
			assert_true(holds(all.at, all.n, t));
		}
		graph_free(one);
	}
	assert_int_equal(partitioned, all.n);
	free(all.at);
	graph_free(g);
}

static bool touches(const struct graph_triples *all, uint32_t x, const uint32_t *part, uint32_t p)
{
	for (size_t i = 0; i < all->n; i++)
		if (part[all->at[i].rel] == p && (all->at[i].head == x || all->at[i].tail == x))
			return true;
	return false;
}

static void overlaps_are_counted(void **state)
{
	struct graph *g = random_graph(3, 40, 6, 60);
	struct graph_triples all = graph_all_triples(g);
	uint32_t part[6], shared[9], in_all, want_all = 0, identity[6] = { 0, 1, 2, 3, 4, 5 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(graph_partition_relations(g, 3, 1, part, &e), 0);
	graph_parts_shared(g, &all, part, 3, shared, &in_all);
	for (uint32_t a = 0; a < 3; a++)
		for (uint32_t b = 0; b < 3; b++) {
			uint32_t want = 0;

			for (uint32_t x = 0; x < 40; x++)
				want += touches(&all, x, part, a) && touches(&all, x, part, b);
			assert_int_equal(shared[a * 3 + b], want);
		}
	for (uint32_t x = 0; x < 40; x++)
		want_all += touches(&all, x, part, 0) && touches(&all, x, part, 1) &&
			    touches(&all, x, part, 2);
	assert_int_equal(in_all, want_all);
	assert_true(in_all > 0 && in_all < shared[0]);

	/* and the matrix of relations that meet is the same count, relation by relation */
	double *m = graph_cooccurrence(g);

	for (uint32_t a = 0; a < 6; a++)
		for (uint32_t b = 0; b < 6; b++) {
			double want = 0;

			for (uint32_t x = 0; x < 40 && a != b; x++)
				want += touches(&all, x, identity, a) &&
					touches(&all, x, identity, b);
			assert_true(m[a * 6 + b] == want);
		}
	free(m);
	free(all.at);
	graph_free(g);
}

/* Relation r belongs to community r % k, which has entities of its own; some triples stray. */
static struct graph *planted_graph(uint32_t k, uint32_t n_rel, uint64_t seed)
{
	enum { OWN = 60 };
	struct graph *g = empty_graph(k * OWN, n_rel);
	struct rng r;

	rng_seed(&r, seed);
	for (uint32_t i = 0; i < n_rel * 30; i++) {
		uint32_t rel = i % n_rel,
			 home = rng_below(&r, 20) == 0 ? rng_below(&r, k) : rel % k;

		graph_add(g, GRAPH_TRAIN,
			  (struct graph_triple){ home * OWN + rng_below(&r, OWN), rel,
						 home * OWN + rng_below(&r, OWN) });
	}
	return g;
}

static void planted_communities_are_found(void **state)
{
	struct err e = { 0 };

	(void)state;
	for (uint32_t k = 2; k <= 7; k++) {
		struct graph *g = planted_graph(k, 8 * k, k);
		uint32_t part[56];

		assert_int_equal(graph_partition_communities(g, k, 1, part, &e), 0);
		for (uint32_t r = 0; r < 8 * k; r++)
			assert_int_equal(part[r], r % k); /* numbered by first members */
		graph_free(g);
	}
}

/* r1..r4 meet in two pairs, r0 and r5 have entities of their own and meet nobody. */
static void loners_go_where_least_is(void **state)
{
	struct graph *g = empty_graph(30, 6);
	uint32_t part[6];
	struct err e = { 0 };

	(void)state;
	for (uint32_t r = 1; r < 5; r++)
		for (uint32_t i = 0; i < (r < 3 ? 8u : 2u); i++)
			graph_add(g, GRAPH_TRAIN,
				  (struct graph_triple){ r / 3 * 10, r, r / 3 * 10 + 1 + i });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 0, 1, 10 });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 0, 3, 10 });
	for (uint32_t r = 0; r < 6; r += 5)
		for (uint32_t i = 0; i < 5; i++)
			graph_add(g, GRAPH_VALID, (struct graph_triple){ 20 + r, r, 20 + r });
	assert_int_equal(graph_partition_communities(g, 2, 1, part, &e), 0);
	assert_int_equal(part[1], 0);
	assert_int_equal(part[2], 0);
	assert_int_equal(part[3], 1);
	assert_int_equal(part[4], 1);
	assert_int_equal(part[0], 1);
	assert_int_equal(part[5], 1);
	graph_free(g);
	g = empty_graph(8, 4); /* nobody meets anybody: one each */
	for (uint32_t r = 0; r < 4; r++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 2 * r, r, 2 * r + 1 });
	assert_int_equal(graph_partition_communities(g, 4, 1, part, &e), 0);
	for (uint32_t r = 0; r < 4; r++)
		assert_int_equal(part[r], r);
	graph_free(g);
}

/* Points on top of each other: any grouping will do, but no group may be empty. */
static void no_group_is_empty(void **state)
{
	(void)state;
	for (uint32_t k = 1; k <= 9; k++) {
		double at[81] = { 0 };
		uint32_t group[9], size[9] = { 0 };

		at[(size_t)4 * k] = 1;
		graph_means(at, 9, k, 3, group);
		for (int i = 0; i < 9; i++) {
			assert_true(group[i] < k);
			size[group[i]]++;
		}
		for (uint32_t p = 0; p < k; p++)
			assert_true(size[p] > 0);
		assert_true(k != 2 || size[group[4]] == 1);
	}
}

/* A file of names may list relations that no triple has: no part is made of these. */
static void no_part_is_empty(void **state)
{
	static int (*const how[])(const struct graph *, uint32_t, uint64_t, uint32_t *,
				  struct err *) = { graph_partition_relations,
						    graph_partition_communities };
	struct graph *g = empty_graph(20, 40);
	uint32_t part[40];
	struct err e = { 0 };

	(void)state;
	for (uint32_t r = 0; r < 5; r++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ r, 8 * r + 1, r + (r < 3) });
	for (int h = 0; h < 2; h++) {
		for (uint64_t seed = 1; seed < 20; seed++) {
			uint32_t held[5] = { 0 };

			assert_int_equal(how[h](g, 5, seed, part, &e), 0);
			for (uint32_t r = 0; r < 40; r++)
				assert_in_range(part[r], 0, 4);
			for (uint32_t r = 0; r < 5; r++)
				held[part[8 * r + 1]]++;
			for (int p = 0; p < 5; p++)
				assert_int_equal(held[p], 1);
		}
		assert_int_equal(how[h](g, 6, 1, part, &e), ERR_USAGE);
		assert_non_null(strstr(e.text, "that has 5"));
	}
	graph_free(g);
}

static void impossible_parts_are_refused(void **state)
{
	struct graph *g = random_graph(1, 10, 4, 40);
	uint32_t *part = mem_array(5000, sizeof(*part));
	struct err e = { 0 };

	(void)state;
	assert_int_equal(graph_partition_relations(g, 1, 1, part, &e), ERR_USAGE);
	assert_int_equal(graph_partition_relations(g, GRAPH_PARTS_MAX + 1, 1, part, &e), ERR_USAGE);
	assert_int_equal(graph_partition_relations(g, 5, 1, part, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "that has 4"));
	assert_int_equal(graph_partition_communities(g, 5, 1, part, &e), ERR_USAGE);
	assert_int_equal(graph_partition_communities(g, 4, 1, part, &e), 0);
	graph_free(g);
	g = empty_graph(2, GRAPH_COMMUNITY_RELATIONS_MAX + 1);
	assert_int_equal(graph_partition_communities(g, 4, 1, part, &e), ERR_TOOBIG);
	assert_non_null(strstr(e.text, "4097 relations"));
	graph_free(g);
	free(part);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(relations_are_partitioned_evenly),
		cmocka_unit_test(every_triple_is_partitioned_once),
		cmocka_unit_test(overlaps_are_counted),
		cmocka_unit_test(planted_communities_are_found),
		cmocka_unit_test(loners_go_where_least_is),
		cmocka_unit_test(no_group_is_empty),
		cmocka_unit_test(no_part_is_empty),
		cmocka_unit_test(impossible_parts_are_refused),
	};

	return cmocka_run_group_tests_name("graph/parts", tests, NULL, NULL);
}
