#include "tests/test.h"

#include "base/rng.h"

/* The first outputs of xoshiro256++ from the state 1, 2, 3, 4: worked out by
 * hand from its definition, out = rotl(s0 + s3, 23) + s0. */
static void is_xoshiro256pp(void **state)
{
	struct rng r = { { 1, 2, 3, 4 } };

	(void)state;
	assert_true(rng_u64(&r) == (5ULL << 23) + 1);
	assert_true(r.s[0] == (1 ^ 4 ^ 2));
}

static void same_seed_same_numbers_other_stream_others(void **state)
{
	struct rng a, b, c;

	(void)state;
	rng_seed(&a, 42);
	rng_seed(&b, 42);
	for (int i = 0; i < 100; i++)
		assert_true(rng_u64(&a) == rng_u64(&b));
	c = rng_stream(&a, 1);
	b = rng_stream(&a, 2);
	assert_true(rng_u64(&b) != rng_u64(&c));
}

static void a_saved_one_goes_on_and_zeros_are_none(void **state)
{
	struct rng a, b = { { 1, 2, 3, 4 } };
	const struct rng zeros = { { 0 } };

	(void)state;
	rng_seed(&a, 42);
	assert_true(rng_load(&b, &a));
	assert_false(rng_load(&b, &zeros));
	assert_true(rng_u64(&a) == rng_u64(&b));
}

static void below_is_in_range_and_even(void **state)
{
	struct rng r;
	size_t seen[7] = { 0 };

	(void)state;
	rng_seed(&r, 1);
	for (int i = 0; i < 70000; i++)
		seen[rng_below(&r, 7)]++;
	for (int i = 0; i < 7; i++)
		assert_in_range(seen[i], 9500, 10500); /* 5 sigma is 463 */
	assert_int_equal(rng_below(&r, 1), 0);
}

static void normal_has_its_moments(void **state)
{
	struct rng r;
	double sum = 0, sum2 = 0;

	(void)state;
	rng_seed(&r, 3);
	for (int i = 0; i < 100000; i++) {
		double x = rng_normal(&r);
		sum += x;
		sum2 += x * x;
	}
	assert_near(sum / 1e5, 0.0, 0, 0.02);
	assert_near(sum2 / 1e5, 1.0, 0, 0.03);
}

static void shuffle_keeps_every_item(void **state)
{
	struct rng r;
	uint32_t a[100], moved = 0;
	char seen[100] = { 0 };

	(void)state;
	rng_seed(&r, 9);
	for (uint32_t i = 0; i < 100; i++)
		a[i] = i;
	rng_shuffle(&r, a, 100, sizeof(a[0]));
	for (uint32_t i = 0; i < 100; i++) {
		assert_false(seen[a[i]]);
		seen[a[i]] = 1;
		moved += a[i] != i;
	}
	assert_true(moved > 80);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_xoshiro256pp),
		cmocka_unit_test(same_seed_same_numbers_other_stream_others),
		cmocka_unit_test(a_saved_one_goes_on_and_zeros_are_none),
		cmocka_unit_test(below_is_in_range_and_even),
		cmocka_unit_test(normal_has_its_moments),
		cmocka_unit_test(shuffle_keeps_every_item),
	};

	return cmocka_run_group_tests_name("base/rng", tests, NULL, NULL);
}
