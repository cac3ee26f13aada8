/* Queries drawn backwards: of their pattern, none degenerate, none twice, with the answers that
 * they say, the same for the same seed. */
#include "tests/test.h"

#include "query/exact.h"
#include "query/pool.h"
#include "query/sample.h"

enum { ENT = 60, REL = 6, EDGES = 500, TRIES = 100000, EACH = 30 };
enum { TRAIN = 1u << GRAPH_TRAIN, TEST = 1u << GRAPH_TEST };

static struct graph *some_graph(void)
{
	struct graph *g = graph_new();
	struct rng r;
	char name[16];

	rng_seed(&r, 5);
	for (int i = 0; i < ENT; i++)
		graph_vocab_add(g->entities, name, (size_t)sprintf(name, "e%d", i));
	for (int i = 0; i < REL; i++)
		graph_vocab_add(g->relations, name, (size_t)sprintf(name, "r%d", i));
	for (int i = 0; i < EDGES; i++) /* the last ten are in no triple */
		graph_add(g, i % 10 == 0 ? GRAPH_TEST : GRAPH_TRAIN,
			  (struct graph_triple){ rng_below(&r, ENT - 10), rng_below(&r, REL),
						 rng_below(&r, ENT - 10) });
	return g;
}

static const struct query_sample_options plain = { .all = TRAIN | TEST, .known = TRAIN, .seed = 1 };

static bool holds(const struct graph *g, struct graph_triple t)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++)
			if (memcmp(&g->split[s].at[i], &t, sizeof t) == 0)
				return true;
	return false;
}

/* No step undoes the one below it, wherever a branch point lies between. */
static void check_steps(const struct query_tree *t, uint32_t i, const struct query_node *above)
{
	const struct query_node *node = &t->at[i];

	if (above != NULL && node->kind == QUERY_STEP)
		assert_false(above->id == node->id && above->inverse != node->inverse);
	for (uint32_t k = 0; k < node->children; k++)
		check_steps(t, query_tree_child(t, i, k),
			    node->kind == QUERY_STEP  ? node
			    : node->kind == QUERY_NOT ? NULL
						      : above);
}

static void check_branches(const struct query_tree *t)
{
	struct query_tree sorted = *t;

	query_tree_sort(&sorted);
	for (uint32_t i = 0; i < sorted.n; i++)
		for (uint32_t k = 1; k < sorted.at[i].children; k++) {
			struct query_node *a = &sorted.at[query_tree_child(&sorted, i, k - 1)];
			struct query_node *b = &sorted.at[query_tree_child(&sorted, i, k)];

			assert_false(a->size == b->size && memcmp(a + 1 - a->size, b + 1 - b->size,
								  a->size * sizeof *a) == 0);
		}
}

/* A negated branch at the root takes something away: of 2in, 3in and pin it is the last one. */
static void check_negation(struct query_exact *x, const struct query_tree *t, size_t n)
{
	const struct query_node *root = &t->at[t->n - 1], *negation = root - 1;
	struct query_tree without = *t;
	struct query_set more = { 0 };

	without.n = t->n - 1U - negation->size;
	if (root->children > 2)
		assert_int_equal(
			query_tree_push(&without,
					(struct query_node){ .kind = QUERY_AND, .children = 2 },
					NULL),
			0);
	query_exact_answers(x, &without, &more);
	assert_true(more.n > n);
	query_set_release(&more);
}

static void check_query(const struct graph *g, struct query_exact *x, const struct query_record *q)
{
	struct query_set all = { 0 };

	assert_int_equal(query_tree_check(&q->tree, ENT, REL, NULL), 0);
	assert_int_equal(query_pattern_of(&q->tree), q->pattern);
	check_steps(&q->tree, q->tree.n - 1, NULL);
	check_branches(&q->tree);
	for (uint32_t i = 1; i < q->tree.n; i++) {
		const struct query_node *a = &q->tree.at[i - 1], *s = &q->tree.at[i];

		if (a->kind == QUERY_ANCHOR && s->kind == QUERY_STEP) {
			bool leads = false;

			for (uint32_t v = 0; v < ENT; v++)
				leads |= holds(
					g, s->inverse ? (struct graph_triple){ v, s->id, a->id }
						      : (struct graph_triple){ a->id, s->id, v });
			assert_true(leads);
		}
	}
	query_exact_answers(x, &q->tree, &all);
	assert_int_equal(all.n, q->hard.n + q->easy.n);
	assert_true(q->hard.n > 0);
	for (size_t i = 0; i < all.n; i++) {
		size_t at = query_set_find(&q->hard, all.at[i]);

		if (all.cost[i] == 0)
			assert_true(query_set_find(&q->easy, all.at[i]) < q->easy.n);
		else
			assert_true(at < q->hard.n && q->hard.cost[at] == all.cost[i]);
	}
	if (q->pattern == QUERY_2IN || q->pattern == QUERY_3IN || q->pattern == QUERY_PIN)
		check_negation(x, &q->tree, all.n);
	query_set_release(&all);
}

static void test_all_patterns(void **state)
{
	struct graph *g = some_graph();
	struct graph_index *all = graph_index_new(g, TRAIN | TEST),
			   *known = graph_index_new(g, TRAIN);
	struct query_exact *x = query_exact_new(all, known, ENT);
	struct query_sampler *s = query_sampler_new(g, &plain), *again;
	struct query_record q[EACH] = { 0 }, same = { 0 };

	(void)state;
	again = query_sampler_new(g, &plain);
	for (int p = 0; p < QUERY_PATTERNS; p++)
		for (int i = 0; i < EACH; i++) {
			struct query_tree sorted;

			assert_int_equal(query_sampler_next(s, (enum query_pattern)p, TRIES, &q[i]),
					 1);
			assert_int_equal(
				query_sampler_next(again, (enum query_pattern)p, TRIES, &same), 1);
			assert_int_equal(query_tree_compare(&q[i].tree, &same.tree), 0);
			check_query(g, x, &q[i]);
			sorted = q[i].tree;
			query_tree_sort(&sorted);
			for (int j = 0; j < i; j++) {
				struct query_tree other = q[j].tree;

				query_tree_sort(&other);
				assert_true(query_tree_compare(&sorted, &other) != 0);
			}
		}
	for (int i = 0; i < EACH; i++)
		query_record_release(&q[i]);
	query_record_release(&same);
	query_sampler_free(s);
	query_sampler_free(again);
	query_exact_free(x);
	graph_index_free(all);
	graph_index_free(known);
	graph_free(g);
}

/* Relation r + REL has r's triples in the other direction, the last one is symmetric; none is both.
 */
enum { MIRROR = 2 * REL, DOUBLED = MIRROR + 1 };

static struct graph *doubled_graph(void)
{
	struct graph *once = some_graph(), *g = graph_new();
	char name[16];

	for (int i = 0; i < ENT; i++)
		graph_vocab_add(g->entities, name, (size_t)sprintf(name, "e%d", i));
	for (int i = 0; i < DOUBLED; i++)
		graph_vocab_add(g->relations, name, (size_t)sprintf(name, "r%d", i));
	for (int k = 0; k < GRAPH_SPLITS; k++)
		for (size_t i = 0; i < once->split[k].n; i++) {
			struct graph_triple t = once->split[k].at[i];

			graph_add(g, (enum graph_split)k, t);
			graph_add(g, (enum graph_split)k,
				  (struct graph_triple){ t.tail, t.rel + REL, t.head });
			if (t.rel > 0)
				continue;
			graph_add(g, (enum graph_split)k,
				  (struct graph_triple){ t.head, MIRROR, t.tail });
			graph_add(g, (enum graph_split)k,
				  (struct graph_triple){ t.tail, MIRROR, t.head });
		}
	graph_free(once);
	return g;
}

/* Each relation under its first name. */
static struct query_tree first_names(const struct query_tree *t)
{
	struct query_tree alike = *t;

	for (uint32_t i = 0; i < alike.n; i++) {
		struct query_node *node = &alike.at[i];

		if (node->kind != QUERY_STEP)
			continue;
		if (node->id >= REL && node->id < MIRROR)
			node->inverse = !node->inverse;
		node->inverse = node->inverse && node->id != MIRROR;
		node->id = node->id >= REL && node->id < MIRROR ? node->id - REL : node->id;
	}
	query_tree_sort(&alike);
	return alike;
}

/* As check_steps(), but a symmetric relation walked twice has come back, too. */
static void check_mirror(const struct query_tree *t, uint32_t i, const struct query_node *above)
{
	const struct query_node *node = &t->at[i];

	if (above != NULL && node->kind == QUERY_STEP)
		assert_false(above->id == MIRROR && node->id == MIRROR);
	for (uint32_t k = 0; k < node->children; k++)
		check_mirror(t, query_tree_child(t, i, k),
			     node->kind == QUERY_STEP  ? node
			     : node->kind == QUERY_NOT ? NULL
						       : above);
}

static void test_a_relation_under_two_names_is_one(void **state)
{
	struct graph *g = doubled_graph();
	struct query_sampler *s = query_sampler_new(g, &plain);
	struct query_record q = { 0 };
	struct query_tree alike[2 * EACH];
	bool second = false;

	(void)state;
	assert_int_equal(query_sampler_twins(s).twins, REL);
	assert_int_equal(query_sampler_twins(s).symmetric, 1);
	for (int p = 0; p < QUERY_PATTERNS; p++)
		for (int i = 0; i < 2 * EACH; i++) {
			assert_int_equal(query_sampler_next(s, (enum query_pattern)p, TRIES, &q),
					 1);
			for (uint32_t k = 0; k < q.tree.n; k++)
				second |= q.tree.at[k].kind == QUERY_STEP && q.tree.at[k].id >= REL;
			alike[i] = first_names(&q.tree);
			check_steps(&alike[i], alike[i].n - 1, NULL);
			check_mirror(&alike[i], alike[i].n - 1, NULL);
			check_branches(&alike[i]);
			for (int j = 0; j < i; j++)
				assert_true(query_tree_compare(&alike[i], &alike[j]) != 0);
		}
	assert_true(second); /* either name is drawn */
	query_record_release(&q);
	query_sampler_free(s);
	graph_free(g);
}

/* One edge less, and it is another relation. */
static void test_almost_the_same_is_another(void **state)
{
	struct graph *g = doubled_graph();
	struct query_sampler *s;

	(void)state;
	for (size_t i = 0; i < 5;
	     i++) { /* two splits may have one: under one name, that changes nothing */
		struct graph_triple t = g->split[GRAPH_TRAIN].at[i];

		graph_add(g, GRAPH_TEST, t);
	}
	s = query_sampler_new(g, &plain);
	assert_int_equal(query_sampler_twins(s).twins, REL);
	assert_int_equal(query_sampler_twins(s).symmetric, 1);
	query_sampler_free(s);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ ENT - 1, REL, ENT - 2 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ ENT - 1, MIRROR, ENT - 2 });
	s = query_sampler_new(g, &plain);
	assert_int_equal(query_sampler_twins(s).twins, REL - 1);
	assert_int_equal(query_sampler_twins(s).symmetric, 0);
	query_sampler_free(s);
	graph_free(g);
}

/* Without such names queries are those of the build before they were looked for: seed and graph
 * decide. */
static void test_the_seed_decides(void **state)
{
	struct graph *g = some_graph();
	struct query_sampler *s = query_sampler_new(g, &plain);
	struct query_record q = { 0 };
	uint64_t h = UINT64_C(0xcbf29ce484222325);

	(void)state;
	for (int p = 0; p < QUERY_PATTERNS; p++)
		for (int i = 0; i < EACH; i++) {
			assert_int_equal(query_sampler_next(s, (enum query_pattern)p, TRIES, &q),
					 1);
			for (uint32_t k = 0; k < q.tree.n; k++)
				h = (h ^ (q.tree.at[k].id << 1 | q.tree.at[k].inverse)) *
				    UINT64_C(0x100000001b3);
		}
	assert_int_equal(h, UINT64_C(0xd23fbcc243b14ee7));
	query_record_release(&q);
	query_sampler_free(s);
	graph_free(g);
}

/* Each test edge is a 1p both ways, or a part of one: all of them are found, however few draws one
 * may take, then none more. */
static void test_exhausts(void **state)
{
	struct graph *g = some_graph();
	struct query_sampler *s = query_sampler_new(g, &plain);
	struct query_record q = { 0 };
	struct graph_triple pairs[2 * EDGES];
	size_t want = 0, got = 0;

	(void)state;
	for (size_t i = 0; i < g->split[GRAPH_TEST].n; i++)
		for (int side = 0; side < 2; side++) {
			struct graph_triple t = g->split[GRAPH_TEST].at[i], pair = t;
			size_t k = 0;

			for (size_t j = 0; j < g->split[GRAPH_TRAIN].n; j++)
				if (memcmp(&g->split[GRAPH_TRAIN].at[j], &t, sizeof t) == 0)
					k = SIZE_MAX; /* known already */
			if (k != 0)
				continue;
			pair.head = side == 0 ? t.head : t.tail;
			pair.tail = (uint32_t)side;
			while (k < want && memcmp(&pairs[k], &pair, sizeof pair) != 0)
				k++;
			if (k == want)
				pairs[want++] = pair;
		}
	while (query_sampler_next(s, QUERY_1P, 3, &q) == 1)
		got++;
	assert_int_equal(got, want);
	query_record_release(&q);
	query_sampler_free(s);
	graph_free(g);
}

/* Relations 0 to 2 are one graph's, 3 to 5 the other's; both have 5. */
static void test_cross(void **state)
{
	static const uint64_t holders[REL] = { 1, 1, 1, 2, 2, 3 };
	struct graph *g = some_graph();
	struct query_sample_options o = plain;
	struct query_sampler *s;
	struct query_record q = { 0 };

	(void)state;
	o.holders = holders;
	s = query_sampler_new(g, &o);
	assert_int_equal(query_sampler_next(s, QUERY_1P, 1000, &q), 0);
	for (int p = QUERY_2P; p < QUERY_PATTERNS; p++)
		for (int i = 0; i < 10; i++) {
			uint64_t all = 3;

			assert_int_equal(query_sampler_next(s, (enum query_pattern)p, TRIES, &q),
					 1);
			for (uint32_t k = 0; k < q.tree.n; k++)
				if (q.tree.at[k].kind == QUERY_STEP)
					all &= holders[q.tree.at[k].id];
			assert_int_equal(all, 0);
		}
	query_record_release(&q);
	query_sampler_free(s);
	graph_free(g);
}

/* For training nothing is known, so every answer is one to learn; few enough where it is asked. */
static void test_train(void **state)
{
	struct graph *g = some_graph();
	struct query_sample_options o = { .all = TRAIN, .seed = 2, .answers_max = 3 };
	struct query_sampler *s = query_sampler_new(g, &o);
	struct query_record q = { 0 };

	(void)state;
	for (int i = 0; i < 20; i++) {
		assert_int_equal(query_sampler_next(s, QUERY_2I, TRIES, &q), 1);
		assert_int_equal(q.easy.n, 0);
		assert_in_range(q.hard.n, 1, 3);
		assert_int_equal(q.hard.cost[0], 2);
	}
	query_record_release(&q);
	query_sampler_free(s);
	graph_free(g);
}

/* Hard and easy ones together. */
static void test_answers_are_few_enough(void **state)
{
	struct graph *g = some_graph();
	struct query_sample_options o = plain;
	struct query_record q = { 0 };

	(void)state;
	for (o.answers_max = 0; o.answers_max <= 8; o.answers_max += 8) {
		struct query_sampler *s = query_sampler_new(g, &o);
		size_t most = 0;

		for (int i = 0; i < EACH; i++) {
			assert_int_equal(query_sampler_next(s, QUERY_2P, TRIES, &q), 1);
			most = q.hard.n + q.easy.n > most ? q.hard.n + q.easy.n : most;
		}
		assert_true(o.answers_max == 0 ? most > 8 : most <= 8);
		query_sampler_free(s);
	}
	query_record_release(&q);
	graph_free(g);
}

static struct graph *part_of(const char *relation, const char *head, const char *tail)
{
	struct graph *g = graph_new();
	struct graph_triple t = { 0 };

	graph_vocab_add(g->relations, "idle", 4); /* without a triple */
	t.rel = graph_vocab_add(g->relations, relation, strlen(relation));
	t.head = graph_vocab_add(g->entities, head, strlen(head));
	t.tail = graph_vocab_add(g->entities, tail, strlen(tail));
	graph_add(g, GRAPH_VALID, t);
	return g;
}

/* Names meet, splits stay, and a relation has all that have a triple of it. */
static void test_several_graphs_as_one(void **state)
{
	static const char *const of[3][3] = { { "r", "a", "b" },
					      { "s", "b", "c" },
					      { "r", "c", "a" } };
	struct query_pool pool = { 0 };
	const uint64_t *holders;
	uint32_t r, s;

	(void)state;
	for (int k = 0; k < 3; k++) {
		struct graph *g = part_of(of[k][0], of[k][1], of[k][2]);

		query_pool_add(&pool, g);
		graph_free(g);
	}
	assert_int_equal(pool.graphs, 3);
	assert_int_equal(graph_vocab_count(pool.g->entities), 3);
	assert_int_equal(pool.g->split[GRAPH_VALID].n, 3);
	assert_int_equal(pool.g->split[GRAPH_TRAIN].n, 0);
	r = graph_vocab_find(pool.g->relations, "r", 1);
	s = graph_vocab_find(pool.g->relations, "s", 1);
	holders = query_pool_holders(&pool);
	assert_int_equal(holders[r], 5);
	assert_int_equal(holders[s], 2);
	assert_int_equal(holders[graph_vocab_find(pool.g->relations, "idle", 4)], 0);
	query_pool_release(&pool);
}

static void test_empty(void **state)
{
	struct graph *g = graph_new();
	struct query_sampler *s = query_sampler_new(g, &plain);
	struct query_record q = { 0 };

	(void)state;
	assert_int_equal(query_sampler_next(s, QUERY_1P, 10, &q), 0);
	query_sampler_free(s);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_all_patterns),
		cmocka_unit_test(test_a_relation_under_two_names_is_one),
		cmocka_unit_test(test_almost_the_same_is_another),
		cmocka_unit_test(test_the_seed_decides),
		cmocka_unit_test(test_exhausts),
		cmocka_unit_test(test_cross),
		cmocka_unit_test(test_train),
		cmocka_unit_test(test_answers_are_few_enough),
		cmocka_unit_test(test_several_graphs_as_one),
		cmocka_unit_test(test_empty),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
