/* tests/dp/test_subsampled.c - Renyi curves of DP-SGD against sums of 60 digits, against
 * integrals of both directions, and against the plain Gaussian mechanism. */
#include "tests/test.h"

#include "dp/subsampled.h"

/* The sum of dp/subsampled.h with 60 digits (mpmath). */
static const struct {
	struct dp_subsampled m;
	double rdp[6]; /* at the orders below */
} digits[] = {
	{ { 0.01, 1.1 },
	  { 0.00012851008160516183, 0.00049796146784823084, 8.4694164336759277, 21.768012866287317,
	    48.251130614916148, 206.95606567316825 } },
	{ { 0.001, 4 },
	  { 6.4494456838091903e-8, 2.2580490942686584e-7, 1.0339541043140593e-6,
	    2.0722904662833135e-6, 4.1622624843276823e-6, 9.0787266089394152 } },
	{ { 0.5, 0.5 },
	  { 2.6671960885860429, 13.191328289390774, 63.284493232970379, 127.29585048324069,
	    255.30139496762462, 1023.3054963670319 } },
	{ { 0.2, 30 },
	  { 4.4468156226842762e-5, 0.00015577714059599388, 0.00071531322622292922,
	    0.0014388959081810981, 0.0029116006994560283, 0.012551129702221651 } },
};
static const double digit_orders[6] = { 2, 7, 32, 64, 128, 512 };

static double at_order(const double rdp[DP_ORDERS], double order)
{
	for (int i = 0; i < DP_ORDERS; i++)
		if (!(dp_orders[i] < order) && !(dp_orders[i] > order))
			return rdp[i];
	fail_msg("no order %g", order);
	return NAN;
}

static void the_sum_keeps_its_digits(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(digits) / sizeof(digits[0]); k++) {
		double rdp[DP_ORDERS];

		dp_rdp_subsampled(&digits[k].m, 1, rdp);
		for (int i = 0; i < 6; i++)
			assert_near(at_order(rdp, digit_orders[i]), digits[k].rdp[i], 1e-11, 0);
		assert_near(rdp[0], rdp[1], 0, 0); /* 1.5 is charged as 2 */
	}
	assert_near(dp_subsampled_epsilon(&digits[0].m, 10000, 1e-5), 5.65430800014949, 1e-11, 0);
	assert_near(dp_subsampled_epsilon(&(struct dp_subsampled){ 0.05, 2 }, 1000, 1e-5),
		    4.02597592755076, 1e-11, 0);
	assert_near(dp_subsampled_epsilon(&(struct dp_subsampled){ 0.001, 0.7 }, 100000, 1e-6),
		    4.65523675098634, 1e-11, 0);
}

/* Renyi divergence by the definition: x is the noise in units of C, with a record's
 * gradient of length C there (probability q) or not. */
static double integral(const struct dp_subsampled *m, double a, bool with_over_without)
{
	double z = m->noise, sum = 0, step = z / 200, far = 12 * z + a;
	int n = (int)(far / step);

	for (int i = -n; i <= n; i++) {
		double x = i * step;
		double without = exp(-x * x / (2 * z * z)) / (z * sqrt(2 * M_PI));
		double ratio = 1 - m->rate + m->rate * exp((2 * x - 1) / (2 * z * z));

		sum += step * without * pow(ratio, with_over_without ? a : 1 - a);
	}
	return log(sum) / (a - 1);
}

static void it_is_the_divergence_and_the_larger_one(void **state)
{
	static const struct dp_subsampled some[] = {
		{ 0.1, 1 }, { 0.01, 2 }, { 0.5, 3 }, { 0.9, 1.5 }, { 1, 2 }
	};
	static const double orders[] = { 1.5, 2, 3, 8, 20 };

	(void)state;
	for (size_t k = 0; k < sizeof(some) / sizeof(some[0]); k++) {
		double rdp[DP_ORDERS];

		dp_rdp_subsampled(&some[k], 1, rdp);
		for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
			double got = at_order(rdp, orders[i]);
			double one = integral(&some[k], orders[i], true);
			double other = integral(&some[k], orders[i], false);

			if (orders[i] >= 2)
				assert_near(got, one, 1e-7, 1e-12);
			assert_true(got >= one - 1e-12 && got >= other - 1e-12);
		}
	}
}

static void without_sampling_it_is_the_gaussian(void **state)
{
	double rdp[DP_ORDERS], plain[DP_ORDERS];

	(void)state;
	dp_rdp_subsampled(&(struct dp_subsampled){ 1, 3 }, 7, rdp);
	dp_rdp_gaussian(1, 3, 7, plain);
	for (int i = 1; i < DP_ORDERS; i++)
		assert_near(rdp[i], plain[i], 1e-12, 0);
	assert_true(rdp[0] >= plain[0]);
}

static void more_of_anything_costs_more_and_noise_less(void **state)
{
	double last = 0;

	(void)state;
	for (int k = 0; k < 22; k++) {
		double q = 1e-5 * pow(1.7, k);
		double e = dp_subsampled_epsilon(&(struct dp_subsampled){ q, 1.3 }, 100, 1e-5);

		assert_true(isfinite(e) && e >= last);
		last = e;
	}
	last = INFINITY;
	for (int k = 0; k < 23; k++) {
		double z = DP_NOISE_LEAST * pow(1.9, k);
		double e = dp_subsampled_epsilon(&(struct dp_subsampled){ 0.03, z }, 1000, 1e-5);

		assert_true(isfinite(e) && e <= last);
		last = e;
	}
	last = 0;
	for (uint64_t steps = 0; steps < 1000000; steps = 2 * steps + 1) {
		struct dp_subsampled m = { 0.01, 1 };
		double e = dp_subsampled_epsilon(&m, steps, 1e-5);

		assert_true(steps == 0 ? e <= 0 : e > last);
		last = e;
	}
}

static void steps_are_the_most_that_fit(void **state)
{
	static const struct dp_subsampled some[] = { { 0.05, 2 }, { 0.001, 0.7 }, { 1, 5 } };
	double spent[DP_ORDERS];

	(void)state;
	for (size_t k = 0; k < sizeof(some) / sizeof(some[0]); k++) {
		uint64_t n = dp_subsampled_steps(&some[k], NULL, 8, 1e-5), left;

		assert_true(dp_subsampled_epsilon(&some[k], n, 1e-5) <= 8);
		assert_true(dp_subsampled_epsilon(&some[k], n + 1, 1e-5) > 8);
		dp_rdp_subsampled(&some[k], n / 3, spent);
		left = dp_subsampled_steps(&some[k], spent, 8, 1e-5);
		assert_true(left + n / 3 + 1 >= n && left + n / 3 <= n + 1); /* the last bits */
		assert_int_equal(dp_subsampled_steps(&some[k], NULL, 0, 1e-5), 0);
		dp_rdp_subsampled(&some[k], n + 1, spent);
		assert_int_equal(dp_subsampled_steps(&some[k], spent, 8, 1e-5), 0);
	}
	assert_int_equal(dp_subsampled_steps(&some[0], NULL, INFINITY, 1e-5), DP_STEPS_MAX);
}

static void noise_is_the_least_that_fits(void **state)
{
	double z = dp_subsampled_noise(0.02, 2500, 2.73, 1e-5);
	struct dp_subsampled m = { 0.02, z }, less = { 0.02, z * (1 - 2e-6) };

	(void)state;
	assert_true(dp_subsampled_epsilon(&m, 2500, 1e-5) <= 2.73);
	assert_true(dp_subsampled_epsilon(&less, 2500, 1e-5) > 2.73);
	assert_near(dp_subsampled_noise(0.001, 1, 100, 1e-5), DP_NOISE_LEAST, 0, 0);
	assert_true(isinf(dp_subsampled_noise(1, 1, 1e-9, 1e-12)));
}

static void what_is_out_of_range_is_refused(void **state)
{
	static const struct dp_subsampled bad[] = { { 0, 1 },	 { 1.01, 1 },	{ NAN, 1 },
						    { 0.1, 0 },	 { 0.1, 0.29 }, { 0.1, NAN },
						    { 0.1, 1e7 } };
	struct err e;

	(void)state;
	for (size_t k = 0; k < sizeof(bad) / sizeof(bad[0]); k++)
		assert_int_equal(dp_subsampled_check(&bad[k], &e), ERR_USAGE);
	assert_int_equal(dp_subsampled_check(&(struct dp_subsampled){ 1, 0.3 }, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_sum_keeps_its_digits),
		cmocka_unit_test(it_is_the_divergence_and_the_larger_one),
		cmocka_unit_test(without_sampling_it_is_the_gaussian),
		cmocka_unit_test(more_of_anything_costs_more_and_noise_less),
		cmocka_unit_test(steps_are_the_most_that_fit),
		cmocka_unit_test(noise_is_the_least_that_fits),
		cmocka_unit_test(what_is_out_of_range_is_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
