/* tests/fed/test_home.c - homes: the same to all, balanced, and moved by nothing else. */
#include "tests/test.h"

#include <sodium.h>

#include "base/rng.h"
#include "fed/home.h"

enum { MEMBERS = 30, ITEMS = 20000 };

static void draw_keys(uint8_t key[MEMBERS][FED_KEY], uint8_t seed[FED_SEED])
{
	struct rng r;

	rng_seed(&r, 4);
	for (size_t i = 0; i < MEMBERS; i++)
		for (size_t k = 0; k < FED_KEY; k++)
			key[i][k] = (uint8_t)rng_u64(&r);
	for (size_t k = 0; k < FED_SEED; k++)
		seed[k] = (uint8_t)rng_u64(&r);
}

static uint64_t weight(const uint8_t seed[FED_SEED], const uint8_t key[FED_KEY], unsigned item)
{
	char label[16];
	int n = snprintf(label, sizeof(label), "thing %u", item);

	return fed_home_weight(seed, key, 'e', label, (size_t)n);
}

static unsigned home(const uint8_t seed[FED_SEED], uint8_t key[MEMBERS][FED_KEY], uint64_t holders,
		     unsigned item)
{
	char label[16];
	int n = snprintf(label, sizeof(label), "thing %u", item);

	return fed_home_of(seed, (const uint8_t(*)[FED_KEY])key, holders, 'e', label, (size_t)n);
}

/* An item's holders are any set; the home is one of them and depends on no other member. */
static void homes_are_holders(void **state)
{
	uint8_t key[MEMBERS][FED_KEY], seed[FED_SEED], other[FED_SEED];
	size_t moved = 0;
	struct rng r;

	(void)state;
	draw_keys(key, seed);
	memcpy(other, seed, FED_SEED);
	other[0] ^= 1;
	rng_seed(&r, 8);
	for (unsigned i = 0; i < 2000; i++) {
		uint64_t holders = (rng_u64(&r) >> 34 & rng_u64(&r)) | 1u << i % MEMBERS;
		unsigned h = home(seed, key, holders, i), gone = rng_below(&r, MEMBERS);
		uint64_t left = holders & ~(UINT64_C(1) << gone);

		assert_true((holders >> h & 1) != 0);
		for (unsigned m = 0; m < MEMBERS; m++)
			assert_true((holders >> m & 1) == 0 ||
				    weight(seed, key[m], i) <= weight(seed, key[h], i));
		if (gone != h && left != 0)
			assert_int_equal(home(seed, key, left, i), h);
		moved += home(other, key, holders, i) != h;
	}
	assert_true(moved > 1000); /* another round, other homes */
}

/* Counts are binomial: n = 20000, p = 1/30: 667, standard deviation 25.4. */
static void homes_are_balanced(void **state)
{
	uint8_t key[MEMBERS][FED_KEY], seed[FED_SEED];
	size_t count[MEMBERS] = { 0 };

	(void)state;
	draw_keys(key, seed);
	for (unsigned i = 0; i < ITEMS; i++)
		count[home(seed, key, (UINT64_C(1) << MEMBERS) - 1, i)]++;
	for (size_t m = 0; m < MEMBERS; m++)
		assert_near((double)count[m], ITEMS / (double)MEMBERS, 0, 5 * 25.4);
}

/* BLAKE2b-128 of key | tag | label under the seed, most significant byte first: a fixed value,
 * since all agents must agree whatever they were built with. */
static void weight_is_fixed(void **state)
{
	uint8_t seed[FED_SEED] = { 1 }, key[FED_KEY] = { 2 }, in[FED_KEY + 4], out[16];
	uint64_t want = 0;

	(void)state;
	memcpy(in, key, FED_KEY);
	memcpy(in + FED_KEY, "eabc", 4);
	crypto_generichash(out, sizeof(out), in, sizeof(in), seed, sizeof(seed));
	for (size_t i = 0; i < 8; i++)
		want = want << 8 | out[i];
	assert_true(fed_home_weight(seed, key, 'e', "abc", 3) == want);
	assert_true(fed_home_weight(seed, key, 'r', "abc", 3) != want);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(homes_are_holders),
		cmocka_unit_test(homes_are_balanced),
		cmocka_unit_test(weight_is_fixed),
	};
	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
