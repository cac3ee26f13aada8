/* Trees of queries: building, limits, one order, words, the types of the literature. */
#include "tests/test.h"

#include "query/tree.h"

static struct query_node anchor(uint32_t id)
{
	return (struct query_node){ .kind = QUERY_ANCHOR, .id = id };
}

static struct query_node step(uint32_t id, bool inverse)
{
	return (struct query_node){ .kind = QUERY_STEP, .id = id, .inverse = inverse };
}

static struct query_node joined(enum query_kind kind, uint16_t n)
{
	return (struct query_node){ .kind = kind, .children = n };
}

static const struct query_node negation = { .kind = QUERY_NOT };

static void push(struct query_tree *t, struct query_node node)
{
	assert_int_equal(query_tree_push(t, node, NULL), 0);
}

/* (e0 -r0-> & e1 <-r1-) -r2-> */
static struct query_tree ip(void)
{
	struct query_tree t = { 0 };

	push(&t, anchor(0));
	push(&t, step(0, false));
	push(&t, anchor(1));
	push(&t, step(1, true));
	push(&t, joined(QUERY_AND, 2));
	push(&t, step(2, false));
	return t;
}

static void test_children(void **state)
{
	struct query_tree t = ip();

	(void)state;
	assert_int_equal(t.n, 6);
	assert_int_equal(t.at[5].size, 6);
	assert_int_equal(t.at[5].depth, 4);
	assert_int_equal(query_tree_child(&t, 5, 0), 4);
	assert_int_equal(query_tree_child(&t, 4, 0), 1);
	assert_int_equal(query_tree_child(&t, 4, 1), 3);
	assert_int_equal(query_tree_child(&t, 3, 0), 2);
	assert_int_equal(query_tree_check(&t, 2, 3, NULL), 0);
}

static void refuse(struct query_tree *t, struct query_node node, int code)
{
	struct query_tree before = *t;
	struct err e = { 0 };

	assert_int_equal(query_tree_push(t, node, &e), code);
	assert_true(strlen(e.text) > 0);
	assert_memory_equal(&before, t, sizeof(before));
}

static void test_push_refuses(void **state)
{
	struct query_tree t = { 0 };

	(void)state;
	refuse(&t, step(0, false), ERR_USAGE);
	refuse(&t, negation, ERR_USAGE);
	push(&t, anchor(0));
	refuse(&t, joined(QUERY_AND, 1), ERR_USAGE);
	refuse(&t, joined(QUERY_OR, 0), ERR_USAGE);
	refuse(&t, joined(QUERY_AND, 2), ERR_USAGE);
	refuse(&t, joined(QUERY_KINDS, 1), ERR_USAGE);
	push(&t, negation);
	refuse(&t, negation, ERR_USAGE);
	refuse(&t, step(0, false), ERR_USAGE);
	push(&t, anchor(0));
	push(&t, negation);
	refuse(&t, joined(QUERY_AND, 2), ERR_USAGE);
	push(&t, anchor(0));
	refuse(&t, joined(QUERY_OR, 3), ERR_USAGE);
	push(&t, joined(QUERY_AND, 3));
}

static void test_limits(void **state)
{
	struct query_tree t = { 0 };

	(void)state;
	push(&t, anchor(0));
	for (int i = 1; i < QUERY_DEPTH_MAX; i++)
		push(&t, step(0, false));
	refuse(&t, step(0, false), ERR_TOOBIG);
	assert_int_equal(query_tree_check(&t, 1, 1, NULL), 0);
	t.n = 0;
	for (int i = 1; i < QUERY_NODES_MAX; i++)
		push(&t, anchor(0));
	push(&t, joined(QUERY_OR, QUERY_NODES_MAX - 1));
	refuse(&t, anchor(0), ERR_TOOBIG);
	assert_int_equal(query_tree_check(&t, 1, 1, NULL), 0);
}

static void test_check(void **state)
{
	struct query_tree t = ip(), bad;

	(void)state;
	assert_int_equal(query_tree_check(&t, 1, 3, NULL), ERR_USAGE);
	assert_int_equal(query_tree_check(&t, 2, 2, NULL), ERR_USAGE);
	for (uint32_t n = 0; n < t.n; n++) { /* every beginning with two roots, or none */
		bad = t;
		bad.n = n;
		assert_int_equal(query_tree_check(&bad, 2, 3, NULL),
				 n == 1 || n == 2 || n == 5 ? 0 : ERR_USAGE);
	}
	bad = t;
	bad.n = QUERY_NODES_MAX + 1;
	assert_int_equal(query_tree_check(&bad, 2, 3, NULL), ERR_USAGE);
	bad = t;
	bad.at[4].size--;
	assert_int_equal(query_tree_check(&bad, 2, 3, NULL), ERR_USAGE);
	bad = t;
	bad.at[2].depth++;
	assert_int_equal(query_tree_check(&bad, 2, 3, NULL), ERR_USAGE);
	bad = t;
	bad.at[4].children = 3;
	assert_int_equal(query_tree_check(&bad, 2, 3, NULL), ERR_USAGE);
	push(&t, negation);
	assert_int_equal(query_tree_check(&t, 2, 3, NULL), ERR_USAGE);
}

/* ---- one order ---- */

/* A tree of `depth` with branches in the order of `flip`'s bits, which are used up. */
static void push_mixed(struct query_tree *t, uint32_t depth, uint32_t id, unsigned *flip)
{
	uint32_t first, other;

	if (depth == 0) {
		push(t, anchor(id));
		push(t, step(id % 3, id % 2 == 1));
		return;
	}
	first = *flip & 1U;
	*flip >>= 1;
	other = 1 - first;
	push_mixed(t, depth - 1, 2 * id + first, flip);
	push_mixed(t, depth - 1, 2 * id + other, flip);
	push(t, joined(depth % 2 == 0 ? QUERY_AND : QUERY_OR, 2));
	push(t, step(id % 3, false));
}

static void test_sort(void **state)
{
	struct query_tree want = { 0 };
	unsigned none = 0;

	(void)state;
	push_mixed(&want, 2, 1, &none);
	query_tree_sort(&want);
	for (unsigned order = 0; order < 8; order++) {
		struct query_tree got = { 0 };
		unsigned flip = order;

		push_mixed(&got, 2, 1, &flip);
		query_tree_sort(&got);
		assert_int_equal(query_tree_check(&got, 100, 3, NULL), 0);
		assert_int_equal(query_tree_compare(&got, &want), 0);
		got.at[0].id++;
		assert_true(query_tree_compare(&got, &want) > 0);
		assert_true(query_tree_compare(&want, &got) < 0);
	}
}

/* ---- words ---- */

static void test_print(void **state)
{
	struct query_tree t = ip();
	struct graph *g = graph_new();
	struct buf words = { 0 };

	(void)state;
	graph_vocab_add(g->entities, "aspirin", 7);
	graph_vocab_add(g->entities, "%s", 2);
	graph_vocab_add(g->relations, "r", 1);
	graph_vocab_add(g->relations, "s", 1);
	graph_vocab_add(g->relations, "t", 1);
	query_tree_print(&t, g, &words);
	assert_string_equal((const char *)words.base, "(aspirin -r-> & %s <-s-) -t->");
	buf_clear(&words);
	t.n = 4;
	push(&t, negation);
	push(&t, joined(QUERY_AND, 2));
	push(&t, anchor(1));
	push(&t, joined(QUERY_OR, 2));
	query_tree_print(&t, g, &words);
	assert_string_equal((const char *)words.base, "((aspirin -r-> & !(%s <-s-)) | %s)");
	buf_release(&words);
	graph_free(g);
}

/* ---- patterns ---- */

static void test_patterns(void **state)
{
	const uint32_t anchors[QUERY_ANCHORS_MAX] = { 2, 1, 0 };
	const struct query_step steps[QUERY_STEPS_MAX] = { { 3, true }, { 2, false }, { 1, true } };

	(void)state;
	for (int p = 0; p < QUERY_PATTERNS; p++) {
		enum query_pattern q = (enum query_pattern)p;
		struct query_tree t;

		assert_in_range(query_pattern_anchors(q), 1, QUERY_ANCHORS_MAX);
		assert_in_range(query_pattern_steps(q), 1, QUERY_STEPS_MAX);
		query_pattern_build(&t, q, anchors, steps);
		assert_int_equal(query_tree_check(&t, 3, 4, NULL), 0);
		assert_int_equal(query_pattern_of(&t), q);
		query_tree_sort(&t);
		assert_int_equal(query_pattern_of(&t), q);
		push(&t, step(0, false));
		assert_true(query_pattern_of(&t) != q);
	}
	assert_string_equal(query_pattern_words[QUERY_PNI], "pni");
	assert_string_equal(query_pattern_words[QUERY_OTHER], "other");
	assert_null(query_pattern_words[QUERY_OTHER + 1]);
}

/* Steps go where the header says: the longer branch of pi first, ip's last step after AND. */
static void test_pattern_places(void **state)
{
	const uint32_t anchors[] = { 7, 8 };
	const struct query_step steps[] = { { 1, false }, { 2, true }, { 3, false } };
	struct query_tree t, pi = { 0 };

	(void)state;
	push(&pi, anchor(7));
	push(&pi, step(1, false));
	push(&pi, step(2, true));
	push(&pi, anchor(8));
	push(&pi, step(3, false));
	push(&pi, joined(QUERY_AND, 2));
	query_pattern_build(&t, QUERY_PI, anchors, steps);
	assert_int_equal(query_tree_compare(&t, &pi), 0);
	query_pattern_build(&t, QUERY_IP, anchors, steps);
	assert_int_equal(t.at[5].id, 3);
	assert_int_equal(t.at[3].id, 2);
	assert_true(t.at[3].inverse);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_children), cmocka_unit_test(test_push_refuses),
		cmocka_unit_test(test_limits),	 cmocka_unit_test(test_check),
		cmocka_unit_test(test_sort),	 cmocka_unit_test(test_print),
		cmocka_unit_test(test_patterns), cmocka_unit_test(test_pattern_places),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
