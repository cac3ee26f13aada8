/* tests/dp/test_release.c - noisy releases against what is known of them otherwise. */
#include "tests/test.h"

#include "dp/accountant.h"
#include "dp/gaussian.h"
#include "dp/release.h"

static void one_matrix_at_the_papers_budget(void **state)
{
	(void)state;
	double z = dp_gaussian_sigma(1, 2.73, 1e-5);
	/* sigma = 3.02 C^2 for a sensitivity of 2 C^2 (methods 3.6). */
	assert_near(2 * z, 3.02, 5e-3, 0);
	assert_near(dp_release_epsilon(DP_RELEASE_GAUSSIAN, z, 1, 1e-5), 2.73, 1e-9, 0);
	/* A hundred releases with ten times the noise are one with that noise. */
	assert_near(dp_release_epsilon(DP_RELEASE_GAUSSIAN, 10 * z, 100, 1e-5), 2.73, 1e-9, 0);
}

/* An epsilon that is told is never too small, not by a digit. */
static void epsilons_are_rounded_up(void **state)
{
	(void)state;
	for (double sigma = 0.3; sigma < 300; sigma *= 1.7)
		for (double delta = 1e-12; delta < 0.1; delta *= 37) {
			double epsilon = dp_gaussian_epsilon(1, sigma, delta);

			assert_true(dp_gaussian_delta(1, sigma, epsilon) <= delta);
		}
}

/* ln sum_x Q(x) (P(x)/Q(x))^a / (a-1) over whole numbers, P and Q a discrete Gaussian at 1
 * and at 0; the sum's largest term, at x = a, is taken out of it. */
static double renyi_of_discrete(double sigma, double a)
{
	double mass = 0, sum = 0, top = a * (a - 1) / (2 * sigma * sigma);

	for (int x = -400; x <= 400; x++) {
		double at_0 = -(double)x * x / (2 * sigma * sigma);
		double at_1 = -((double)x - 1) * (x - 1) / (2 * sigma * sigma);

		mass += exp(at_0);
		sum += exp(a * at_1 + (1 - a) * at_0 - top);
	}
	return (top + log(sum / mass)) / (a - 1);
}

static void the_discrete_curve_is_a_bound_met_at_whole_orders(void **state)
{
	double rdp[DP_ORDERS];

	(void)state;
	for (double sigma = 0.6; sigma < 12; sigma *= 2.7) {
		dp_release_rdp(sigma, 1, rdp);
		for (int i = 0; i < DP_ORDERS && dp_orders[i] <= 40; i++) {
			double direct = renyi_of_discrete(sigma, dp_orders[i]);

			assert_true(direct <= rdp[i] * (1 + 1e-12));
			if (dp_orders[i] == floor(dp_orders[i]))
				assert_near(direct, rdp[i], 1e-9, 0);
		}
	}
}

static void epsilon_rises_and_the_exact_value_is_the_smaller(void **state)
{
	(void)state;
	for (double z = 0.01; z < 1e4; z *= 7) {
		double last[2] = { 0, 0 };

		for (uint64_t k = 1; k <= 1000000; k = k * 3 / 2 + 1) {
			double smooth = dp_release_epsilon(DP_RELEASE_GAUSSIAN, z, k, 1e-6);
			double whole = dp_release_epsilon(DP_RELEASE_DISCRETE, z, k, 1e-6);

			assert_true(isfinite(whole) && smooth <= whole);
			assert_true(smooth >= last[0] && whole >= last[1]);
			last[0] = smooth;
			last[1] = whole;
		}
	}
}

static void the_multiplier_is_the_smallest(void **state)
{
	static const double epsilon[] = { 0.05, 0.5, 1, 2.73, 8, 100 };

	(void)state;
	for (int noise = 0; noise < 2; noise++)
		for (size_t i = 0; i < sizeof(epsilon) / sizeof(*epsilon); i++) {
			double z = dp_release_multiplier((enum dp_release)noise, epsilon[i], 1e-5);

			assert_true(dp_release_epsilon((enum dp_release)noise, z, 1, 1e-5) <=
				    epsilon[i]);
			assert_true(dp_release_epsilon((enum dp_release)noise, z * (1 - 1e-9), 1,
						       1e-5) > epsilon[i]);
		}
	assert_near(dp_release_multiplier(DP_RELEASE_GAUSSIAN, 2.73, 1e-5),
		    dp_gaussian_sigma(1, 2.73, 1e-5), 1e-9, 0);
	assert_true(isinf(dp_release_multiplier(DP_RELEASE_DISCRETE, 1e-3, 1e-5)));
}

static void what_is_out_of_range_buys_nothing(void **state)
{
	static const double bad[] = { 0, -1, 1e-4, 1e10, NAN, INFINITY };
	struct err e;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		assert_int_equal(dp_release_check(bad[i], &e), ERR_USAGE);
		assert_true(isinf(dp_release_epsilon(DP_RELEASE_GAUSSIAN, bad[i], 1, 1e-5)));
	}
	assert_true(dp_release_epsilon(DP_RELEASE_GAUSSIAN, 5, 0, 1e-5) == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_matrix_at_the_papers_budget),
		cmocka_unit_test(epsilons_are_rounded_up),
		cmocka_unit_test(the_discrete_curve_is_a_bound_met_at_whole_orders),
		cmocka_unit_test(epsilon_rises_and_the_exact_value_is_the_smaller),
		cmocka_unit_test(the_multiplier_is_the_smallest),
		cmocka_unit_test(what_is_out_of_range_buys_nothing),
	};

	return cmocka_run_group_tests_name("dp/release", tests, NULL, NULL);
}
