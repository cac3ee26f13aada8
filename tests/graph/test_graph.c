/* Names, triples and the index of known answers. */
#include "tests/test.h"

#include "base/rng.h"
#include "graph/answers.h"
#include "graph/graph.h"

static void names_keep_their_first_id(void **state)
{
	struct graph_vocab *v = graph_vocab_new();
	char name[32];
	size_t len;

	(void)state;
	assert_int_equal(graph_vocab_find(v, "0", 1), GRAPH_NONE);
	for (uint32_t i = 0; i < 50000; i++) {
		len = (size_t)snprintf(name, sizeof name, "%u", i);
		assert_int_equal(graph_vocab_add(v, name, len), i);
	}
	assert_int_equal(graph_vocab_count(v), 50000);
	for (uint32_t i = 0; i < 50000; i++) {
		len = (size_t)snprintf(name, sizeof name, "%u", i);
		assert_int_equal(graph_vocab_add(v, name, len), i);
		assert_int_equal(graph_vocab_find(v, name, len), i);
		assert_string_equal(graph_vocab_name(v, i, &len), name);
		assert_int_equal(len, strlen(name));
	}
	assert_int_equal(graph_vocab_count(v), 50000);
	assert_int_equal(graph_vocab_find(v, "50000", 5), GRAPH_NONE);
	assert_int_equal(graph_vocab_find(v, "50000", 4), 5000); /* a prefix is another name */
	graph_vocab_free(v);
}

static void names_are_bytes(void **state)
{
	struct graph_vocab *v = graph_vocab_new();
	char *big = malloc(1000000);

	(void)state;
	memset(big, 'x', 1000000);
	assert_int_equal(graph_vocab_add(v, "", 0), 0);
	assert_int_equal(graph_vocab_add(v, "\xc3\xa9", 2), 1);	 /* e acute in one character */
	assert_int_equal(graph_vocab_add(v, "e\xcc\x81", 3), 2); /* and in two */
	assert_int_equal(graph_vocab_add(v, "A", 1), 3);
	assert_int_equal(graph_vocab_add(v, "a", 1), 4);
	assert_int_equal(graph_vocab_add(v, big, 1000000), 5);
	assert_int_equal(graph_vocab_add(v, big, 999999), 6);
	assert_int_equal(graph_vocab_find(v, big, 1000000), 5);
	assert_string_equal(graph_vocab_name(v, 0, NULL), "");
	free(big);
	graph_vocab_free(v);
}

static struct graph *random_graph(struct rng *r, uint32_t n_ent, uint32_t n_rel, size_t n)
{
	struct graph *g = graph_new();
	char name[16];

	for (uint32_t i = 0; i < n_ent; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof name, "e%u", i));
	for (uint32_t i = 0; i < n_rel; i++)
		graph_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof name, "r%u", i));
	for (size_t i = 0; i < n; i++)
		graph_add(g, (enum graph_split)rng_below(r, GRAPH_SPLITS),
			  (struct graph_triple){ rng_below(r, n_ent), rng_below(r, n_rel),
						 rng_below(r, n_ent) });
	return g;
}

static bool in_splits(const struct graph *g, unsigned splits, struct graph_triple t)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; splits & 1u << s && i < g->split[s].n; i++)
			if (memcmp(&g->split[s].at[i], &t, sizeof t) == 0)
				return true;
	return false;
}

static void check_index(const struct graph *g, unsigned splits)
{
	struct graph_index *x = graph_index_new(g, splits);
	uint32_t n_ent = graph_vocab_count(g->entities), n_rel = graph_vocab_count(g->relations);

	for (uint32_t a = 0; a < n_ent; a++) {
		for (uint32_t rel = 0; rel < n_rel; rel++) {
			size_t n_tails, n_heads, at_tail = 0, at_head = 0;
			const uint32_t *tails = graph_index_tails(x, a, rel, &n_tails);
			const uint32_t *heads = graph_index_heads(x, rel, a, &n_heads);

			for (uint32_t b = 0; b < n_ent; b++) {
				struct graph_triple t = { a, rel, b }, u = { b, rel, a };
				bool is_t = in_splits(g, splits, t), is_u = in_splits(g, splits, u);

				assert_int_equal(graph_index_has(x, t), is_t);
				if (is_t)
					assert_int_equal(tails[at_tail++], b);
				if (is_u)
					assert_int_equal(heads[at_head++], b);
			}
			assert_int_equal(at_tail, n_tails);
			assert_int_equal(at_head, n_heads);
		}
	}
	graph_index_free(x);
}

static void index_agrees_with_the_lists(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 7);
	for (int round = 0; round < 6; round++) {
		struct graph *g = random_graph(&r, 1 + rng_below(&r, 12), 1 + rng_below(&r, 3),
					       round == 0 ? 0 : rng_below(&r, 120));

		for (unsigned splits = 0; splits < 1u << GRAPH_SPLITS; splits++)
			check_index(g, splits);
		graph_free(g);
	}
}

static void same_answers(const uint32_t *got, size_t n_got, const uint32_t *want, size_t n_want)
{
	assert_int_equal(n_got, n_want);
	for (size_t i = 0; i < n_want; i++)
		assert_int_equal(got[i], want[i]);
}

static bool asked_for(const struct graph_triple *asked, size_t n, uint32_t known, uint32_t rel,
		      bool tails)
{
	for (size_t i = 0; i < n; i++)
		if (asked[i].rel == rel && (tails ? asked[i].head : asked[i].tail) == known)
			return true;
	return false;
}

static void an_index_of_few_queries_has_their_answers(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 8);
	for (int round = 0; round < 40; round++) {
		uint32_t n_ent = 1 + rng_below(&r, 300), n_rel = 1 + rng_below(&r, 3);
		struct graph *g = random_graph(&r, n_ent, n_rel, rng_below(&r, 900));
		struct graph_index *all = graph_index_new(g, 5), *few;
		struct graph_triple asked[20];
		size_t n = rng_below(&r, 20);

		for (size_t i = 0; i < n; i++)
			asked[i] =
				(struct graph_triple){ rng_below(&r, n_ent), rng_below(&r, n_rel),
						       rng_below(&r, n_ent) };
		few = graph_index_new_for(g, 5, asked, n);
		for (uint32_t x = 0; x < n_ent; x++)
			for (uint32_t rel = 0; rel < n_rel; rel++) {
				size_t n_few, n_all;
				const uint32_t *a = graph_index_tails(few, x, rel, &n_few);
				const uint32_t *b = graph_index_tails(all, x, rel, &n_all);

				same_answers(a, n_few, b,
					     asked_for(asked, n, x, rel, true) ? n_all : 0);
				a = graph_index_heads(few, rel, x, &n_few);
				b = graph_index_heads(all, rel, x, &n_all);
				same_answers(a, n_few, b,
					     asked_for(asked, n, x, rel, false) ? n_all : 0);
			}
		graph_index_free(all);
		graph_index_free(few);
		graph_free(g);
	}
}

static void same_ids(struct graph_ids got, const uint32_t *want, size_t n)
{
	assert_int_equal(got.n, n);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(graph_ids_at(&got, i), want[i]);
}

/* Every triple's answers against a search through the list, which has some triples twice. */
static void answers_agree_with_the_list(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 9);
	for (int round = 0; round < 20; round++) {
		uint32_t n_ent = 1 + rng_below(&r, 20), n_rel = 1 + rng_below(&r, 3);
		struct graph *g = random_graph(&r, n_ent, n_rel, rng_below(&r, 150));
		const struct graph_triples *train = &g->split[GRAPH_TRAIN];
		struct graph_answers *a = graph_answers_new(train);
		struct graph_index *x = graph_index_new(g, 1u << GRAPH_TRAIN);
		uint32_t *asked = malloc((train->n + 1) * sizeof *asked);

		for (size_t i = 0; i < train->n; i++) {
			struct graph_triple t = train->at[i];
			size_t n;
			const uint32_t *want = graph_index_tails(x, t.head, t.rel, &n);

			same_ids(graph_answers_of(a, i, GRAPH_TAIL), want, n);
			want = graph_index_heads(x, t.rel, t.tail, &n);
			same_ids(graph_answers_of(a, i, GRAPH_HEAD), want, n);
		}
		for (int k = 0; k < 8; k++) { /* together they have every triple once */
			size_t most = (size_t)k / 2, sum = 0, distinct = 0;
			size_t n = graph_answers_queries(a, (enum graph_side)(k & 1), most, asked);

			for (size_t i = 0; i < n; i++)
				sum += graph_answers_count(a, asked[i], most);
			for (size_t i = 0; i < n; i++)
				assert_true(most == 0 ||
					    graph_answers_count(a, asked[i], most) <= most);
			for (uint32_t e = 0; e < n_ent; e++)
				for (uint32_t rel = 0; rel < n_rel; rel++) {
					size_t m;

					graph_index_tails(x, e, rel, &m);
					distinct += m;
				}
			assert_int_equal(sum, distinct);
		}
		free(asked);
		graph_answers_free(a);
		graph_index_free(x);
		graph_free(g);
	}
}

/* Ids whose numbers need more bits than fit a word beside where their byte begins. */
static void answers_of_many_bits(void **state)
{
	const uint32_t far = UINT32_C(1) << 26, rel = GRAPH_NONE - 1;
	struct graph_triple at[] = { { 0, rel, far }, { 0, rel, 3 },   { 0, rel - 1, far },
				     { 1, rel, far }, { 1, 0, far },   { 0, rel, far - 1 },
				     { 2, rel, far }, { 0, rel, far }, { 2, 5, 6 } };
	const struct graph_triples t = { at, sizeof(at) / sizeof(at[0]) };
	const uint32_t tails[] = { 3, far - 1, far }, heads[] = { 0, 1, 2 };
	struct graph_answers *a = graph_answers_new(&t);

	(void)state;
	same_ids(graph_answers_of(a, 0, GRAPH_TAIL), tails, 3);
	same_ids(graph_answers_of(a, 0, GRAPH_HEAD), heads, 3);
	same_ids(graph_answers_of(a, 2, GRAPH_TAIL), &far, 1);
	same_ids(graph_answers_of(a, 4, GRAPH_HEAD), heads + 1, 1);
	same_ids(graph_answers_of(a, 8, GRAPH_HEAD), heads + 2, 1);
	graph_answers_free(a);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_keep_their_first_id),
		cmocka_unit_test(names_are_bytes),
		cmocka_unit_test(index_agrees_with_the_lists),
		cmocka_unit_test(an_index_of_few_queries_has_their_answers),
		cmocka_unit_test(answers_agree_with_the_list),
		cmocka_unit_test(answers_of_many_bits),
	};

	return cmocka_run_group_tests_name("graph graph", tests, NULL, NULL);
}
