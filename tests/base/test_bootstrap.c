#include "tests/test.h"

#include <math.h>
#include <string.h>

#include "base/bootstrap.h"

enum { N = 400 };

static void fill(double *x, uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	for (size_t i = 0; i < N; i++)
		x[i] = 1 + rng_normal(&r);
}

/* Of a mean of n values of deviation 1, 95 % are within 1.96 / sqrt(n). */
static void is_as_wide_as_the_normal_one(void **state)
{
	double x[N], want = 2 * 1.96 / sqrt(N);
	struct interval got;
	struct rng r;

	(void)state;
	fill(x, 1);
	rng_seed(&r, 2);
	bootstrap_mean(x, N, &r, &got);
	assert_true(got.low < got.mean && got.mean < got.high);
	assert_true(fabs(got.high - got.low - want) < .15 * want);
}

/* It holds the truth 95 times of 100, within what 200 tries can show. */
static void holds_the_mean(void **state)
{
	double x[N];
	struct interval got;
	struct rng r;
	int held = 0;

	(void)state;
	rng_seed(&r, 3);
	for (uint64_t k = 0; k < 200; k++) {
		fill(x, 100 + k);
		bootstrap_mean(x, N, &r, &got);
		held += got.low <= 1 && 1 <= got.high;
	}
	assert_true(held >= 178 && held <= 199);
}

static void repeats_and_takes_nothing(void **state)
{
	double x[N];
	struct interval a, b, none;
	struct rng r;

	(void)state;
	fill(x, 1);
	rng_seed(&r, 5);
	bootstrap_mean(x, N, &r, &a);
	rng_seed(&r, 5);
	bootstrap_mean(x, N, &r, &b);
	assert_memory_equal(&a, &b, sizeof(a));
	bootstrap_mean(x, 0, &r, &none);
	assert_true(none.mean == 0 && none.low == 0 && none.high == 0);
	bootstrap_mean(x, 1, &r, &a);
	assert_true(a.low == x[0] && a.high == x[0]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(is_as_wide_as_the_normal_one),
		cmocka_unit_test(holds_the_mean),
		cmocka_unit_test(repeats_and_takes_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
