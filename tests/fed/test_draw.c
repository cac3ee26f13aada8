/* tests/fed/test_draw.c - rounds of a share of the members: who is in them, and that they are
 * FedE's among those. */
#include "tests/fed/world.h"

#include <sodium.h>

#include "base/mem.h"
#include "fed/draw.h"

enum { MEMBERS = 10, ROUNDS = 2000, DIM = 8 };

static void counts(void **state)
{
	(void)state;
	assert_int_equal(fed_draw_count(1, 7, 2), 7);
	assert_int_equal(fed_draw_count(0.3, 10, 2), 3);
	assert_int_equal(fed_draw_count(0.31, 10, 2), 4);
	assert_int_equal(fed_draw_count(0.01, 10, 2), 2);
	assert_int_equal(fed_draw_count(0.01, 10, 4), 4);
	assert_int_equal(fed_draw_count(0.5, 1, 2), 1);
}

/* Counts are binomial: 2000 rounds, p = 3/10: 600, standard deviation 20.5. */
static void each_is_in_as_many(void **state)
{
	uint8_t key[MEMBERS][FED_KEY];
	size_t in[MEMBERS] = { 0 };
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	for (size_t i = 0; i < MEMBERS; i++)
		for (size_t k = 0; k < FED_KEY; k++)
			key[i][k] = (uint8_t)rng_u64(&r);
	for (uint64_t number = 0; number < ROUNDS; number++)
		for (size_t i = 0; i < MEMBERS; i++) {
			size_t before = 0;

			for (size_t k = 0; k < MEMBERS; k++)
				before += fed_draw_place(number, key[k]) <
					  fed_draw_place(number, key[i]);
			in[i] += before < 3;
		}
	for (size_t i = 0; i < MEMBERS; i++)
		assert_near((double)in[i], 600, 0, 5 * 20.5);
}

/* BLAKE2b-128 of number, least significant byte first, and key: all agents must agree. */
static void place_is_fixed(void **state)
{
	uint8_t key[FED_KEY] = { 2 }, in[8 + FED_KEY] = { 0x39, 0x30, 0, 0, 0, 0, 0, 0, 2 },
		out[16];
	uint64_t want = 0;

	(void)state;
	crypto_generichash(out, sizeof(out), in, sizeof(in), NULL, 0);
	for (size_t i = 0; i < 8; i++)
		want = want << 8 | out[i];
	assert_true(fed_draw_place(12345, key) == want);
}

static bool is_in(const struct world *w, size_t i)
{
	return fed_local_last(w->local, i) != NULL;
}

/* An item's rows are the mean over those of its holders that are in the round; the others' tables
 * stay as they are. */
static void check_round(const struct world *w, struct kge_emb *const before[WORLD_MAX])
{
	for (size_t i = 0; i < w->n; i++)
		if (!is_in(w, i))
			assert_memory_equal(w->emb[i]->ent, before[i]->ent,
					    (size_t)before[i]->n_ent * DIM * sizeof(float));
	for (uint32_t k = 0; k < w->items; k += 4) /* everybody's */
		for (size_t x = 0; x < DIM; x++) {
			double sum = 0, n = 0;

			for (size_t i = 0; i < w->n; i++)
				if (is_in(w, i)) {
					sum += (double)kge_ent(before[i], world_id(w, i, k))[x];
					n++;
				}
			for (size_t i = 0; i < w->n; i++)
				if (is_in(w, i))
					assert_near((double)world_row(w, i, k)[x], sum / n, 1e-6,
						    1e-7);
		}
}

static void rounds_of_a_share(void **state)
{
	struct world w;
	struct kge_emb *before[WORLD_MAX];
	size_t rounds[WORLD_MAX] = { 0 };

	(void)state;
	world_init(&w, 5, 40, "transe", DIM, "fede", false);
	w.config.settings.fraction = 0.5;
	world_open(&w);
	for (int round = 0; round < 20; round++) {
		size_t n = 0;

		world_save(&w, before);
		world_round(&w);
		for (size_t i = 0; i < w.n; i++) { /* learning rates follow from an agent's own */
			assert_int_equal(fed_local_part(w.local, i)->rounds, rounds[i]);
			n += is_in(&w, i);
			rounds[i] += is_in(&w, i);
		}
		assert_int_equal(n, 3);
		check_round(&w, before);
		world_free(before, w.n);
	}
	for (size_t i = 0; i < w.n; i++)
		assert_true(rounds[i] > 3 && rounds[i] < 20);
	world_release(&w);
}

/* Hosted, nothing moves without the host: it is in each round, drawn or not. */
static void the_host_is_in(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 5, 40, "transe", DIM, "fede", false);
	w.config.settings.fraction = 0.4;
	world_host(&w, 2);
	world_open(&w);
	for (int round = 0; round < 10; round++) {
		world_round(&w);
		assert_true(is_in(&w, 2));
	}
	world_release(&w);
}

/* Gone since an earlier round, it is in none of now, and what that one sent is not counted again.
 */
static void who_is_gone_is_in_none(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 3, 40, "transe", DIM, "fede", false);
	world_open(&w);
	world_round(&w);
	assert_true(is_in(&w, 2));
	fed_local_set_alive(w.local, 2, false);
	world_round(&w);
	assert_true(is_in(&w, 0) && !is_in(&w, 2));
	fed_local_set_alive(w.local, 2, true);
	world_round(&w);
	assert_true(is_in(&w, 2));
	world_release(&w);
}

/* A share is one of those that are there. */
static void a_share_is_of_the_living(void **state)
{
	struct world w;

	(void)state;
	world_init(&w, 6, 40, "transe", DIM, "fede", false);
	w.config.settings.fraction = 0.5;
	world_open(&w);
	for (int living = 6; living >= 4; living -= 2) {
		for (int round = 0; round < 3; round++) {
			size_t n = 0;

			world_round(&w);
			for (size_t i = 0; i < w.n; i++)
				n += is_in(&w, i);
			assert_int_equal(n, living / 2);
		}
		fed_local_set_alive(w.local, 0, false);
		fed_local_set_alive(w.local, 3, false);
	}
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(counts),
		cmocka_unit_test(each_is_in_as_many),
		cmocka_unit_test(place_is_fixed),
		cmocka_unit_test(rounds_of_a_share),
		cmocka_unit_test(the_host_is_in),
		cmocka_unit_test(who_is_gone_is_in_none),
		cmocka_unit_test(a_share_is_of_the_living),
	};
	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
