/* tests/dp/test_useful.c - what a label tells, against the definition and worked figures. */
#include "tests/test.h"

#include "dp/useful.h"

static double entropy(double q)
{
	return -(q * log(q) + (1 - q) * log(1 - q)) / M_LN2;
}

static void bits_are_one_minus_the_entropy(void **state)
{
	(void)state;
	for (unsigned noise = 0; noise < 2; noise++)
		for (double param = 0.02; param < 200; param *= 3) {
			struct dp_mechanism m = { (enum dp_noise)noise, param, 50 };

			if (dp_mechanism_check(&m, NULL) != 0)
				continue;
			for (int64_t gap = 2; gap <= 50; gap += 4) {
				double q = dp_label_against(&m, gap), b = dp_label_bits(&m, gap);

				assert_true(b >= 0 && b <= 1);
				assert_near(b, dp_label_bits(&m, -gap), 1e-15, 0);
				if (q > 1e-12 && q < 0.4)
					assert_near(b, 1 - entropy(q), 1e-9, 0);
			}
			assert_true(dp_label_bits(&m, 0) == 0);
		}
	/* Where the coin is almost fair: (1 - 2q)^2 / (2 ln 2). */
	struct dp_mechanism faint = { DP_LAPLACE, 1e-6, 4 };
	double x = 1 - 2 * dp_label_against(&faint, 4);
	assert_near(dp_label_bits(&faint, 4), x * x / (2 * M_LN2), 1e-6, 0);
}

/* Methods 3.3: a unanimous vote of four survives with probability 0.55, and the 29 labels of
 * the paper's budget carry 0.2 bit. */
static void the_papers_setting_buys_nothing(void **state)
{
	const struct dp_mechanism m = { DP_LAPLACE, 0.05, 4 };
	struct dp_useful u;

	(void)state;
	assert_near(1 - dp_label_against(&m, 4), 0.55, 0, 5e-3);
	dp_useful(&m, 29, 100, &u);
	assert_near(u.unanimous_worth, 0.2, 0, 0.03);
	assert_true(u.typical_worth < u.unanimous_worth);
	assert_int_equal(u.worth, DP_WORTH_NOTHING);
	dp_useful(&m, 154, 16, &u); /* nor do the labels that `exact` allows */
	assert_int_equal(u.worth, DP_WORTH_NOTHING);
	assert_string_equal(dp_worth_name(u.worth), "nothing");
}

static void verdicts_follow_the_definition(void **state)
{
	const struct dp_mechanism clear = { DP_GAUSSIAN, 1, 250 };
	struct dp_useful u;

	(void)state;
	dp_useful(&clear, 16, 16, &u);
	assert_near(u.unanimous_bits, 1, 1e-12, 0);
	assert_int_equal(u.worth, DP_WORTH_NOTHING);
	dp_useful(&clear, 17, 16, &u);
	assert_int_equal(u.worth, DP_WORTH_LITTLE);
	dp_useful(&clear, 119, 16, &u);
	assert_int_equal(u.worth, DP_WORTH_LITTLE);
	dp_useful(&clear, 121, 16, &u);
	assert_int_equal(u.worth, DP_WORTH_MAP);
	/* a map of two dimensions has one free number, a direction still wants three labels */
	dp_useful(&clear, 2, 2, &u);
	assert_int_equal(u.worth, DP_WORTH_NOTHING);
	const struct dp_mechanism faint = { DP_GAUSSIAN, 60, 250 };
	dp_useful(&faint, 3, 2, &u);
	assert_true(u.unanimous_worth > 2.9 && u.typical_worth > 1);
	dp_useful(&faint, 4, 2, &u);
	assert_true(u.unanimous_worth > 3 && u.typical_worth > u.map && u.typical_worth < 3);
	assert_int_equal(u.worth, DP_WORTH_LITTLE);
	for (uint32_t t = 1; t < 300; t++) {
		int64_t g = dp_typical_gap(t);

		assert_true(g >= t / 2 && g <= t && (g - (int64_t)t) % 2 == 0);
	}
	/* Methods 3.6: useful from n about 5,000 at d = 100, noise of (2.73, 1e-5). */
	assert_in_range((uint64_t)dp_useful_map_rows(1.51, 100), 5000, 6500);
}

static void more_teachers_and_the_right_sigma_are_worth_more(void **state)
{
	double last = 0;

	(void)state;
	for (uint32_t t = 4; t <= 256; t *= 4) {
		uint64_t labels = 0;
		double sigma = dp_useful_sigma(t, 2.73, 1e-5, &labels);
		struct dp_mechanism m = { DP_GAUSSIAN, sigma, t },
				    twice = { DP_GAUSSIAN, 2 * sigma, t };
		struct dp_useful u, v;

		assert_int_equal(labels, dp_labels_within(&m, DP_EXACT, 2.73, 1e-5));
		dp_useful(&m, labels, 100, &u);
		dp_useful(&twice, dp_labels_within(&twice, DP_EXACT, 2.73, 1e-5), 100, &v);
		assert_true(u.typical_worth > last && u.typical_worth >= 0.9 * v.typical_worth);
		last = u.typical_worth;
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bits_are_one_minus_the_entropy),
		cmocka_unit_test(the_papers_setting_buys_nothing),
		cmocka_unit_test(verdicts_follow_the_definition),
		cmocka_unit_test(more_teachers_and_the_right_sigma_are_worth_more),
	};

	return cmocka_run_group_tests_name("dp/useful", tests, NULL, NULL);
}
