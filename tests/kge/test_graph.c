/* Names, triples and the index of known answers. */
#include "tests/test.h"

#include "base/rng.h"
#include "kge/graph.h"

static void names_keep_their_first_id(void **state)
{
	struct kge_vocab *v = kge_vocab_new();
	char name[32];
	size_t len;

	(void)state;
	assert_int_equal(kge_vocab_find(v, "0", 1), KGE_NONE);
	for (uint32_t i = 0; i < 50000; i++) {
		len = (size_t)snprintf(name, sizeof name, "%u", i);
		assert_int_equal(kge_vocab_add(v, name, len), i);
	}
	assert_int_equal(kge_vocab_count(v), 50000);
	for (uint32_t i = 0; i < 50000; i++) {
		len = (size_t)snprintf(name, sizeof name, "%u", i);
		assert_int_equal(kge_vocab_add(v, name, len), i);
		assert_int_equal(kge_vocab_find(v, name, len), i);
		assert_string_equal(kge_vocab_name(v, i, &len), name);
		assert_int_equal(len, strlen(name));
	}
	assert_int_equal(kge_vocab_count(v), 50000);
	assert_int_equal(kge_vocab_find(v, "50000", 5), KGE_NONE);
	assert_int_equal(kge_vocab_find(v, "50000", 4), 5000); /* a prefix is another name */
	kge_vocab_free(v);
}

static void names_are_bytes(void **state)
{
	struct kge_vocab *v = kge_vocab_new();
	char *big = malloc(1000000);

	(void)state;
	memset(big, 'x', 1000000);
	assert_int_equal(kge_vocab_add(v, "", 0), 0);
	assert_int_equal(kge_vocab_add(v, "\xc3\xa9", 2), 1);  /* e acute in one character */
	assert_int_equal(kge_vocab_add(v, "e\xcc\x81", 3), 2); /* and in two */
	assert_int_equal(kge_vocab_add(v, "A", 1), 3);
	assert_int_equal(kge_vocab_add(v, "a", 1), 4);
	assert_int_equal(kge_vocab_add(v, big, 1000000), 5);
	assert_int_equal(kge_vocab_add(v, big, 999999), 6);
	assert_int_equal(kge_vocab_find(v, big, 1000000), 5);
	assert_string_equal(kge_vocab_name(v, 0, NULL), "");
	free(big);
	kge_vocab_free(v);
}

static struct kge_graph *random_graph(struct rng *r, uint32_t n_ent, uint32_t n_rel, size_t n)
{
	struct kge_graph *g = kge_graph_new();
	char name[16];

	for (uint32_t i = 0; i < n_ent; i++)
		kge_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof name, "e%u", i));
	for (uint32_t i = 0; i < n_rel; i++)
		kge_vocab_add(g->relations, name, (size_t)snprintf(name, sizeof name, "r%u", i));
	for (size_t i = 0; i < n; i++)
		kge_graph_add(g, (enum kge_split)rng_below(r, KGE_SPLITS),
			      (struct kge_triple){ rng_below(r, n_ent), rng_below(r, n_rel),
						   rng_below(r, n_ent) });
	return g;
}

static bool in_splits(const struct kge_graph *g, unsigned splits, struct kge_triple t)
{
	for (int s = 0; s < KGE_SPLITS; s++)
		for (size_t i = 0; splits & 1u << s && i < g->split[s].n; i++)
			if (memcmp(&g->split[s].at[i], &t, sizeof t) == 0)
				return true;
	return false;
}

static void check_index(const struct kge_graph *g, unsigned splits)
{
	struct kge_index *x = kge_index_new(g, splits);
	uint32_t n_ent = kge_vocab_count(g->entities), n_rel = kge_vocab_count(g->relations);

	for (uint32_t a = 0; a < n_ent; a++) {
		for (uint32_t rel = 0; rel < n_rel; rel++) {
			size_t n_tails, n_heads, at_tail = 0, at_head = 0;
			const uint32_t *tails = kge_index_tails(x, a, rel, &n_tails);
			const uint32_t *heads = kge_index_heads(x, rel, a, &n_heads);

			for (uint32_t b = 0; b < n_ent; b++) {
				struct kge_triple t = { a, rel, b }, u = { b, rel, a };
				bool is_t = in_splits(g, splits, t), is_u = in_splits(g, splits, u);

				assert_int_equal(kge_index_has(x, t), is_t);
				if (is_t)
					assert_int_equal(tails[at_tail++], b);
				if (is_u)
					assert_int_equal(heads[at_head++], b);
			}
			assert_int_equal(at_tail, n_tails);
			assert_int_equal(at_head, n_heads);
		}
	}
	kge_index_free(x);
}

static void index_agrees_with_the_lists(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 7);
	for (int round = 0; round < 6; round++) {
		struct kge_graph *g = random_graph(&r, 1 + rng_below(&r, 12), 1 + rng_below(&r, 3),
						   round == 0 ? 0 : rng_below(&r, 120));

		for (unsigned splits = 0; splits < 1u << KGE_SPLITS; splits++)
			check_index(g, splits);
		kge_graph_free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_keep_their_first_id),
		cmocka_unit_test(names_are_bytes),
		cmocka_unit_test(index_agrees_with_the_lists),
	};

	return cmocka_run_group_tests_name("kge graph", tests, NULL, NULL);
}
