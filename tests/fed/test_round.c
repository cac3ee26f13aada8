/* tests/fed/test_round.c - FedE by rounds, sharded and hosted, against its definition. */
#include "tests/fed/world.h"

#include "fed/home.h"

/* The mean over the holders, in double; SIZE_MAX of holders below two: the row itself. */
static void check_fede(const struct world *w, struct kge_emb *before[WORLD_MAX])
{
	for (uint32_t k = 0; k < w->things; k++) {
		uint64_t set = world_holders(w, k);
		int holders = __builtin_popcountll(set);

		for (size_t i = 0; i < w->n; i++) {
			const float *got = (set >> i & 1) != 0 ? world_row(w, i, k) : NULL;

			for (size_t x = 0; got != NULL && x < w->emb[i]->ent_floats; x++) {
				double sum = 0;

				for (size_t j = 0; j < w->n; j++)
					if ((set >> j & 1) != 0)
						sum += (double)kge_ent(before[j],
								       world_id(w, j, k))[x];
				assert_near((double)got[x], sum / holders, 1e-6, 1e-7);
			}
		}
	}
}

static void one_round(size_t n, bool hosted, bool bare, uint8_t digest[WORLD_MAX][32])
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];

	world_init(&w, n, 60, "transe", 9, "fede", bare);
	if (hosted)
		world_host(&w, n - 1);
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	check_fede(&w, before);
	for (size_t i = 0; i < n; i++)
		kge_emb_digest(w.emb[i], digest[i]);
	world_free(before, n);
	world_release(&w);
}

static void fede_is_the_mean(void **state)
{
	uint8_t sharded[WORLD_MAX][32], hosted[WORLD_MAX][32];

	(void)state;
	for (size_t n = 2; n <= 9; n += n < 4 ? 1 : 5) {
		one_round(n, false, false, sharded);
		one_round(n, true, false, hosted);
		assert_memory_equal(sharded, hosted, n * 32); /* bit for bit */
		one_round(n + 1, false, true, sharded);
		one_round(n + 1, true, true, hosted);
		assert_memory_equal(sharded, hosted, (n + 1) * 32);
	}
}

static void local_training_is_in_it(void **state)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	uint8_t was[32], is[32];

	(void)state;
	world_init(&w, 3, 40, "rotate", 4, "fede", false);
	w.config.epochs = 2;
	w.config.equal_start = true;
	world_open(&w);
	world_save(&w, before);
	world_round(&w);
	world_round(&w);
	for (size_t i = 0; i < w.n; i++) {
		kge_emb_digest(before[i], was);
		kge_emb_digest(w.emb[i], is);
		assert_memory_not_equal(was, is, 32);
	}
	for (uint32_t k = 0; k < w.things; k += 4) /* everybody's */
		for (size_t i = 1; i < w.n; i++)
			assert_memory_equal(world_row(&w, i, k), world_row(&w, 0, k),
					    w.emb[0]->ent_floats * sizeof(float));
	world_free(before, w.n);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(fede_is_the_mean),
		cmocka_unit_test(local_training_is_in_it),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
