/* Exact answers against the definition: every assignment of a small graph is tried. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "query/exact.h"

enum { ENT = 12, REL = 3, EDGES = 40, NEVER = 1000 };

struct world {
	struct graph *g;
	struct graph_index *all, *known;
	struct query_exact *exact;
};

static struct world world_of(uint64_t seed)
{
	struct world w = { .g = graph_new() };
	struct rng r;
	char name[16];

	rng_seed(&r, seed);
	for (int i = 0; i < ENT; i++)
		graph_vocab_add(w.g->entities, name, (size_t)sprintf(name, "e%d", i));
	for (int i = 0; i < REL; i++)
		graph_vocab_add(w.g->relations, name, (size_t)sprintf(name, "r%d", i));
	for (int i = 0; i < EDGES; i++)
		graph_add(w.g, i % 3 == 0 ? GRAPH_TEST : GRAPH_TRAIN,
			  (struct graph_triple){ rng_below(&r, ENT), rng_below(&r, REL),
						 rng_below(&r, ENT) });
	w.all = graph_index_new(w.g, 1u << GRAPH_TRAIN | 1u << GRAPH_TEST);
	w.known = graph_index_new(w.g, 1u << GRAPH_TRAIN);
	w.exact = query_exact_new(w.all, w.known, ENT);
	return w;
}

static void world_release(struct world *w)
{
	query_exact_free(w->exact);
	graph_index_free(w->all);
	graph_index_free(w->known);
	graph_free(w->g);
}

/* ---- the definition ---- */

static bool holds(const struct graph *g, enum graph_split s, struct graph_triple t)
{
	for (size_t i = 0; i < g->split[s].n; i++)
		if (memcmp(&g->split[s].at[i], &t, sizeof t) == 0)
			return true;
	return false;
}

static int edge_cost(const struct graph *g, const struct query_node *step, uint32_t from,
		     uint32_t to)
{
	struct graph_triple t = { from, step->id, to };

	if (step->inverse)
		t = (struct graph_triple){ to, step->id, from };
	return holds(g, GRAPH_TRAIN, t) ? 0 : holds(g, GRAPH_TEST, t) ? 1 : NEVER;
}

/* The cost of v as an answer of node i; NEVER or more: it is none. */
static int cost_of(const struct graph *g, const struct query_tree *t, uint32_t i, uint32_t v)
{
	const struct query_node *node = &t->at[i];
	int cost = node->kind == QUERY_AND ? 0 : NEVER;

	if (node->kind == QUERY_ANCHOR)
		return node->id == v ? 0 : NEVER;
	if (node->kind == QUERY_NOT)
		return cost_of(g, t, i - 1, v) < NEVER ? NEVER : 0;
	if (node->kind == QUERY_STEP)
		for (uint32_t u = 0; u < ENT; u++) {
			int way = cost_of(g, t, i - 1, u) + edge_cost(g, node, u, v);

			cost = way < cost ? way : cost;
		}
	for (uint32_t k = 0; node->kind != QUERY_STEP && k < node->children; k++) {
		int way = cost_of(g, t, query_tree_child(t, i, k), v);

		if (node->kind == QUERY_AND)
			cost += way;
		else if (way < cost)
			cost = way;
	}
	return cost;
}

static void check_tree(struct world *w, const struct query_tree *t, struct query_set *got)
{
	size_t n = 0;

	query_exact_answers(w->exact, t, got);
	for (uint32_t v = 0; v < ENT; v++) {
		int cost = cost_of(w->g, t, t->n - 1, v);

		if (cost >= NEVER)
			continue;
		assert_true(n < got->n);
		assert_int_equal(got->at[n], v);
		assert_int_equal(got->cost[n], cost);
		n++;
	}
	assert_int_equal(got->n, n);
}

static struct query_step any_step(struct rng *r)
{
	return (struct query_step){ rng_below(r, REL), rng_below(r, 2) == 1 };
}

static void test_patterns(void **state)
{
	struct query_set got = { 0 };
	struct query_tree t;
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct world w = world_of(seed);

		for (int p = 0; p < QUERY_PATTERNS; p++) {
			uint32_t anchors[QUERY_ANCHORS_MAX];
			struct query_step steps[QUERY_STEPS_MAX];

			for (int i = 0; i < QUERY_ANCHORS_MAX; i++)
				anchors[i] = rng_below(&r, ENT);
			for (int i = 0; i < QUERY_STEPS_MAX; i++)
				steps[i] = any_step(&r);
			query_pattern_build(&t, (enum query_pattern)p, anchors, steps);
			check_tree(&w, &t, &got);
			query_tree_sort(&t);
			check_tree(&w, &t, &got);
		}
		world_release(&w);
	}
	query_set_release(&got);
}

/* Trees that no pattern is: nested, several branches, NOT first. */
static void push_any(struct query_tree *t, struct rng *r, int depth)
{
	uint32_t n = 2 + rng_below(r, 2), kind = rng_below(r, 4);
	struct query_node node = { .kind = QUERY_ANCHOR, .id = rng_below(r, ENT) };

	if (depth > 0 && kind == 3) { /* AND, the first branch negated */
		push_any(t, r, depth - 1);
		assert_int_equal(query_tree_push(t, (struct query_node){ .kind = QUERY_NOT }, NULL),
				 0);
		push_any(t, r, depth - 1);
		push_any(t, r, depth - 1);
		node = (struct query_node){ .kind = QUERY_AND, .children = 3 };
	} else if (depth > 0 && kind > 0) {
		for (uint32_t k = 0; k < n; k++)
			push_any(t, r, depth - 1);
		node = (struct query_node){ .kind = kind == 1 ? QUERY_AND : QUERY_OR,
					    .children = (uint16_t)n };
	}
	assert_int_equal(query_tree_push(t, node, NULL), 0);
	if (rng_below(r, 3) > 0) {
		struct query_step s = any_step(r);

		node = (struct query_node){ .kind = QUERY_STEP, .id = s.rel, .inverse = s.inverse };
		assert_int_equal(query_tree_push(t, node, NULL), 0);
	}
}

static void test_any_trees(void **state)
{
	struct query_set got = { 0 };
	struct rng r;

	(void)state;
	rng_seed(&r, 4);
	for (uint64_t seed = 0; seed < 25; seed++) {
		struct world w = world_of(seed);
		struct query_tree t = { 0 };

		push_any(&t, &r, 3);
		assert_int_equal(query_tree_check(&t, ENT, REL, NULL), 0);
		check_tree(&w, &t, &got);
		world_release(&w);
	}
	query_set_release(&got);
}

/* Easy answers are those of the known graph, without NOT and with one. */
static void test_part(void **state)
{
	const uint32_t anchors[] = { 1, 2, 3 };
	const struct query_step steps[] = { { 0, false }, { 1, true }, { 2, false }, { 0, true } };
	struct query_set got = { 0 }, easy = { 0 }, known = { 0 };

	(void)state;
	for (uint64_t seed = 0; seed < 10; seed++) {
		struct world w = world_of(seed);
		struct query_exact *small = query_exact_new(w.known, w.known, ENT);

		for (int p = 0; p < QUERY_PATTERNS; p++) {
			struct query_tree t;
			size_t all;

			query_pattern_build(&t, (enum query_pattern)p, anchors, steps);
			query_exact_answers(w.exact, &t, &got);
			query_exact_answers(small, &t, &known);
			all = got.n;
			query_exact_part(&got, &easy);
			assert_int_equal(got.n + easy.n, all);
			for (size_t i = 0; i < easy.n; i++)
				assert_true(query_set_find(&known, easy.at[i]) < known.n);
			for (size_t i = 0; i < got.n; i++)
				assert_true(query_set_find(&known, got.at[i]) == known.n);
		}
		query_exact_free(small);
		world_release(&w);
	}
	query_set_release(&got);
	query_set_release(&easy);
	query_set_release(&known);
}

static void test_sets(void **state)
{
	struct query_set s = { 0 };

	(void)state;
	query_set_add(&s, 7, 3);
	query_set_add(&s, 2, 1);
	query_set_add(&s, 7, 2);
	query_set_sort(&s);
	assert_int_equal(s.n, 2);
	assert_int_equal(s.at[0], 2);
	assert_int_equal(s.at[1], 7);
	assert_int_equal(s.cost[1], 2);
	assert_int_equal(query_set_find(&s, 7), 1);
	assert_int_equal(query_set_find(&s, 3), 2);
	assert_int_equal(query_set_find(&s, 8), 2);
	query_set_release(&s);
	assert_int_equal(query_set_find(&s, 7), 0);
}

/* Without a known graph every edge is missing; the graph may be large beside a set. */
static void test_nothing_known(void **state)
{
	struct graph *g = graph_new();
	struct query_set got = { 0 };
	struct query_exact *x;
	struct graph_index *all;
	struct query_tree t;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		char name[16];

		graph_vocab_add(g->entities, name, (size_t)sprintf(name, "e%u", i));
	}
	graph_vocab_add(g->relations, "r", 1);
	for (uint32_t i = 0; i < 1000; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, 0, (i + 1) % 1000 });
	all = graph_index_new(g, 1u << GRAPH_TRAIN);
	x = query_exact_new(all, NULL, 1000);
	query_pattern_build(
		&t, QUERY_3P, (const uint32_t[]){ 999 },
		(const struct query_step[]){ { 0, false }, { 0, false }, { 0, false } });
	query_exact_answers(x, &t, &got);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.at[0], 2);
	assert_int_equal(got.cost[0], 3);
	query_set_release(&got);
	query_exact_free(x);
	graph_index_free(all);
	graph_free(g);
}

/* Two ways to one entity, the dear one first, in a graph that is large beside the set. */
static void test_the_cheapest_way_counts(void **state)
{
	struct graph *g = graph_new();
	struct graph_index *all, *known;
	struct query_set got = { 0 };
	struct query_exact *x;
	struct query_tree t;

	(void)state;
	for (uint32_t i = 0; i < 1000; i++) {
		char name[16];

		graph_vocab_add(g->entities, name, (size_t)sprintf(name, "e%u", i));
	}
	graph_vocab_add(g->relations, "r", 1);
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 0, 0, 1 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 2 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 1, 0, 3 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 2, 0, 3 });
	all = graph_index_new(g, 1u << GRAPH_TRAIN | 1u << GRAPH_TEST);
	known = graph_index_new(g, 1u << GRAPH_TRAIN);
	x = query_exact_new(all, known, 1000);
	query_pattern_build(&t, QUERY_2P, (const uint32_t[]){ 0 },
			    (const struct query_step[]){ { 0, false }, { 0, false } });
	query_exact_answers(x, &t, &got);
	assert_int_equal(got.n, 1);
	assert_int_equal(got.at[0], 3);
	assert_int_equal(got.cost[0], 0);
	query_set_release(&got);
	query_exact_free(x);
	graph_index_free(all);
	graph_index_free(known);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns),
		cmocka_unit_test(test_any_trees),
		cmocka_unit_test(test_part),
		cmocka_unit_test(test_sets),
		cmocka_unit_test(test_nothing_known),
		cmocka_unit_test(test_the_cheapest_way_counts),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
