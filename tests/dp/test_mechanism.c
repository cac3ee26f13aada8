/* tests/dp/test_mechanism.c - closed forms, the sampler word by word, and limits. */
#include "tests/test.h"

#include "base/rng.h"
#include "dp/mechanism.h"
#include "dp/rdp.h"

static const struct dp_mechanism laplace = { DP_LAPLACE, 0.05, 4 };
static const struct dp_mechanism gaussian = { DP_GAUSSIAN, 3, 5 };

static void probability_mirrors(void **state)
{
	(void)state;
	for (int64_t g = -6; g <= 6; g++) {
		assert_near(dp_label_one(&laplace, g) + dp_label_one(&laplace, -g), 1, 1e-15, 0);
		assert_near(dp_label_one(&gaussian, g) + dp_label_one(&gaussian, -g), 1, 1e-15, 0);
		assert_true(dp_label_one(&laplace, g) < dp_label_one(&laplace, g + 1));
		assert_true(dp_label_one(&gaussian, g) < dp_label_one(&gaussian, g + 1));
	}
	assert_near(dp_label_one(&laplace, 4), 0.54969808580710998, 1e-15, 0);
}

static void log_agrees(void **state)
{
	(void)state;
	struct dp_mechanism wide = { DP_GAUSSIAN, 1e-3, 4 };
	for (int64_t g = 0; g < 30; g++) {
		assert_near(exp(dp_label_log_against(&laplace, g)), dp_label_against(&laplace, g),
			    1e-13, 0);
		assert_near(exp(dp_label_log_against(&gaussian, g)), dp_label_against(&gaussian, g),
			    1e-12, 0);
	}
	assert_true(dp_label_against(&wide, 4) == 0);
	assert_near(dp_label_log_against(&wide, 4), -4e6, 1e-5, 0);
}

/* Words handed out in turn, from `at`. */
struct script {
	uint64_t word[4];
	size_t at;
};

static void draw_script(void *ctx, void *out, size_t n)
{
	struct script *s = ctx;
	assert_int_equal(n, 8);
	assert_true(s->at < 4);
	for (int i = 0; i < 8; i++)
		((uint8_t *)out)[i] = (uint8_t)(s->word[s->at] >> 8 * i);
	s->at++;
}

static bool drawn(const struct dp_mechanism *m, uint32_t ones, uint64_t first, uint64_t second,
		  size_t words)
{
	struct script s = { { first, second, 0, 0 }, 0 };
	bool label = dp_label_draw(m, ones, draw_script, &s);
	assert_int_equal(s.at, words);
	return label;
}

/* A first random word below it goes against the votes. */
static uint64_t threshold(const struct dp_mechanism *m, int64_t gap)
{
	return (uint64_t)ldexp(dp_label_against(m, gap), 64);
}

/* One word below the threshold against the votes, one above it with them; a tie asks for
 * more digits. */
static void sampler_compares(void **state)
{
	(void)state;
	uint64_t t = threshold(&laplace, -4);
	assert_true(t == threshold(&laplace, 4));
	assert_near((double)t, 0.45030191419289001954 * 0x1p64, 1e-14, 0);
	assert_true(drawn(&laplace, 0, t - 1, 0, 1));
	assert_false(drawn(&laplace, 0, t + 1, 0, 1));
	assert_false(drawn(&laplace, 4, ~(t - 1), 0, 1));
	assert_true(drawn(&laplace, 4, ~(t + 1), 0, 1));
	/* gap 0: exactly half of all words */
	assert_true(drawn(&laplace, 2, (UINT64_C(1) << 63) - 1, 0, 1));
	assert_false(drawn(&laplace, 2, UINT64_C(1) << 63, 0, 1));
}

/* Below 2^-64 a threshold of zero would make the label impossible, and epsilon infinite. */
static void sampler_reaches_tails(void **state)
{
	(void)state;
	struct dp_mechanism sharp = { DP_LAPLACE, 20, 4 };
	double p = dp_label_against(&sharp, -4); /* 3.7e-34, second digit group */
	uint64_t second = (uint64_t)ldexp(p, 128);
	assert_true(threshold(&sharp, -4) == 0 && second > 0);
	assert_true(drawn(&sharp, 0, 0, second - 1, 2));
	assert_false(drawn(&sharp, 0, 0, second + 1, 2));
	assert_false(drawn(&sharp, 0, 1, 0, 1));
	/* and from the other end, both words */
	assert_false(drawn(&sharp, 4, UINT64_MAX, ~(second - 1), 2));
	assert_true(drawn(&sharp, 4, UINT64_MAX, ~(second + 1), 2));
}

static void more_votes_never_lower(void **state)
{
	(void)state;
	struct rng r;
	rng_seed(&r, 7);
	for (int i = 0; i < 20000; i++) {
		uint64_t word = rng_u64(&r);
		bool last = false;
		for (uint32_t ones = 0; ones <= gaussian.teachers; ones++) {
			bool label = drawn(&gaussian, ones, word, 0, 1);
			assert_true(label || !last);
			last = label;
		}
	}
}

static void out_of_range_is_refused(void **state)
{
	(void)state;
	struct err e;
	struct dp_mechanism bad[] = {
		{ DP_LAPLACE, 0, 4 },	    { DP_LAPLACE, NAN, 4 },
		{ DP_LAPLACE, 21, 4 },	    { DP_LAPLACE, 5e-7, 4 },
		{ DP_LAPLACE, 0.05, 0 },    { DP_GAUSSIAN, 1e-4, 4 },
		{ DP_GAUSSIAN, -1, 4 },	    { DP_GAUSSIAN, INFINITY, 4 },
		{ (enum dp_noise)2, 1, 4 }, { DP_LAPLACE, 0.05, DP_TEACHERS_MAX + 1 },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(dp_mechanism_check(&bad[i], &e), ERR_USAGE);
	assert_int_equal(dp_mechanism_check(&laplace, &e), 0);
	assert_int_equal(dp_mechanism_check(&gaussian, &e), 0);
}

static void names_go_round(void **state)
{
	(void)state;
	enum dp_noise n;
	assert_int_equal(dp_noise_find("laplace", &n), 0);
	assert_int_equal(n, DP_LAPLACE);
	assert_int_equal(dp_noise_find("gaussian", &n), 0);
	assert_int_equal(n, DP_GAUSSIAN);
	assert_int_equal(dp_noise_find("Laplace", &n), ERR_NOTFOUND);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(probability_mirrors),	  cmocka_unit_test(log_agrees),
		cmocka_unit_test(sampler_compares),	  cmocka_unit_test(sampler_reaches_tails),
		cmocka_unit_test(more_votes_never_lower), cmocka_unit_test(out_of_range_is_refused),
		cmocka_unit_test(names_go_round),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
