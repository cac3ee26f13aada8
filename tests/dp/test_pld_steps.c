/* tests/dp/test_pld_steps.c - steps of DP-SGD by their privacy loss: never below what is known of
 * them, and near. */
#include "tests/test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "dp/gaussian.h"
#include "dp/pld_steps.h"

static double epsilon_of(double rate, double noise, uint64_t steps, double delta)
{
	struct dp_pld_steps at = { { rate, noise }, steps };

	return dp_pld_steps_epsilon(&at, 1, delta);
}

static double phi(double x)
{
	return 0.5 * erfc(-x * M_SQRT1_2);
}

/* Where every record is in every step they are one Gaussian. */
static void without_sampling_it_is_the_gaussian(void **state)
{
	(void)state;
	for (uint64_t steps = 1; steps <= 4096; steps *= 8) {
		for (double delta = 1e-4; delta > 1e-13; delta *= 1e-4) {
			double z = 1.5 * sqrt((double)steps);
			double exact = dp_gaussian_epsilon(sqrt((double)steps), z, delta);
			double bound = epsilon_of(1, z, steps, delta);

			assert_true(bound >= exact);
			assert_near(bound, exact, 0.002, 0);
		}
	}
}

/* delta of one step, in closed form: the losses above epsilon are the numbers above some x, or
 * below. */
static double one_step(double q, double z, double epsilon, bool removed)
{
	double x, mixed, plain;

	if (!removed && expm1(-epsilon) / q <= -1)
		return 0;
	x = z * z * log1p(expm1(removed ? epsilon : -epsilon) / q) + 0.5;
	if (removed) {
		mixed = (1 - q) * phi(-x / z) + q * phi((1 - x) / z);
		plain = phi(-x / z);
		return mixed - exp(epsilon) * plain;
	}
	mixed = (1 - q) * phi(x / z) + q * phi((x - 1) / z);
	plain = phi(x / z);
	return plain - exp(epsilon) * mixed;
}

static void one_step_is_known(void **state)
{
	(void)state;
	for (double q = 0.003; q < 1; q *= 3.1) {
		for (double z = 0.4; z < 6; z *= 1.9) {
			double bound = epsilon_of(q, z, 1, 1e-6);

			assert_true(one_step(q, z, bound, true) <= 1e-6);
			assert_true(one_step(q, z, bound, false) <= 1e-6);
			assert_true(one_step(q, z, bound * 0.98 - 0.003, true) > 1e-6 ||
				    bound < 0.01);
		}
	}
}

/* ---- plainly: every sum of losses, rounded one way ---- */

enum { POINTS = 6001 };

/* Losses of one step on multiples of h about the middle point, all rounded up or all down. */
static void plain_law(double *law, double q, double z, double h, bool removed, bool up)
{
	double before = 0;

	memset(law, 0, POINTS * sizeof(*law));
	for (int k = -POINTS / 2; k <= POINTS / 2; k++) {
		double loss = removed ? k * h : -k * h;
		double ratio = expm1(loss) / q;
		double x = ratio > -1 ? z * z * log1p(ratio) + 0.5 : -(double)INFINITY;
		double below = removed ? (1 - q) * phi(x / z) + q * phi((x - 1) / z) : phi(-x / z);
		int at = up ? k : k - 1; /* losses of ((k - 1) h, k h] */

		law[(at < -POINTS / 2 ? -POINTS / 2 : at) + POINTS / 2] += below - before;
		before = below;
	}
	law[POINTS - 1] += up ? 1 - before : 0;
}

static void convolve(const double *a, const double *b, double *out, bool up)
{
	memset(out, 0, POINTS * sizeof(*out));
	for (int i = 0; i < POINTS; i++) {
		if (a[i] == 0)
			continue;
		for (int k = 0; k < POINTS; k++) {
			int at = i + k - POINTS / 2;

			if (at >= POINTS)
				at = up ? POINTS - 1 : -1;
			if (at < 0)
				at = up ? 0 : -1;
			if (at >= 0)
				out[at] += a[i] * b[k];
		}
	}
}

/* delta of 2^doublings steps, from above or from below. */
static double plainly(double q, double z, int doublings, double h, double epsilon, bool removed,
		      bool up)
{
	double *law = mem_array(POINTS, sizeof(*law)), *twice = mem_array(POINTS, sizeof(*twice));
	double delta = 0;

	plain_law(law, q, z, h, removed, up);
	for (int i = 0; i < doublings; i++) {
		double *spare = law;

		convolve(law, law, twice, up);
		law = twice;
		twice = spare;
	}
	for (int k = 0; k < POINTS; k++) {
		double loss = (k - POINTS / 2) * h;

		if (up && k == POINTS - 1)
			delta += law[k]; /* all that is beyond, too */
		else
			delta += loss > epsilon ? -expm1(epsilon - loss) * law[k] : 0;
	}
	free(law);
	free(twice);
	return delta;
}

static void many_steps_are_between_plain_bounds(void **state)
{
	static const struct {
		double q, z, h;
	} all[] = { { 0.05, 1, 0.001 }, { 0.3, 3, 0.0007 }, { 0.01, 0.6, 0.0015 } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		double q = all[i].q, z = all[i].z, h = all[i].h, steps = 8;
		double bound = epsilon_of(q, z, 8, 1e-5);
		double removed = plainly(q, z, 3, h, bound, true, false);
		double added = plainly(q, z, 3, h, bound, false, false);

		/* From below it is at most delta; a little under the bound, from above, more. */
		assert_true(removed <= 1e-5 && added <= 1e-5);
		bound = bound * 0.995 - steps * h;
		removed = plainly(q, z, 3, h, bound, true, true);
		added = plainly(q, z, 3, h, bound, false, true);
		assert_true(fmax(removed, added) > 1e-5);
	}
}

/* Published figures are 2.38 for 60 epochs of MNIST at noise 1.1 (curves: 2.60). */
static void below_the_curves(void **state)
{
	static const struct dp_pld_steps all[] = {
		{ { 256 / 60000.0, 1.1 }, 14063 },
		{ { 0.01, 0.7 }, 1000 },
		{ { 0.001, 0.6 }, 100000 },
		{ { 0.02, 0.8 }, 5000 },
		{ { 0.01, 4 }, 20000 },
	};

	(void)state;
	assert_near(dp_subsampled_epsilon(&all[0].mechanism, all[0].steps, 1e-5), 2.60, 0, 0.005);
	assert_near(dp_pld_steps_epsilon(&all[0], 1, 1e-5), 2.38, 0, 0.005);
	for (size_t i = 0; i < 5; i++) {
		for (double delta = 1e-3; delta > 1e-12; delta *= 1e-3) {
			double curve =
				dp_subsampled_epsilon(&all[i].mechanism, all[i].steps, delta);
			double bound = dp_pld_steps_epsilon(&all[i], 1, delta);

			assert_true(bound < curve && bound > 0.6 * curve);
		}
	}
}

/* Private training at epsilon 8, with as much noise as the curves ask for: an accounting that knows
 * nothing of this code gave 7.43. */
static void what_eight_is_worth(void **state)
{
	double noise = dp_subsampled_noise(0.1, 5000, 8, 1e-5);

	(void)state;
	assert_near(epsilon_of(0.1, noise, 5000, 1e-5), 7.43, 0, 0.02);
	/* Fewer steps of fewer records: the curves lose more. */
	noise = dp_subsampled_noise(0.003, 700, 8, 1e-5);
	assert_near(epsilon_of(0.003, noise, 700, 1e-5), 5.65, 0, 0.02);
}

static void prices_add_up(void **state)
{
	struct dp_pld_steps two[2] = { { { 0.01, 0.9 }, 300 }, { { 0.01, 0.9 }, 200 } };
	struct dp_pld_steps mix[2] = { { { 0.01, 0.9 }, 300 }, { { 0.05, 2 }, 400 } };
	double all, first, second;

	(void)state;
	assert_near(dp_pld_steps_epsilon(two, 2, 1e-5), epsilon_of(0.01, 0.9, 500, 1e-5), 1e-3, 0);
	all = dp_pld_steps_epsilon(mix, 2, 1e-5);
	first = epsilon_of(0.01, 0.9, 300, 1e-5);
	second = epsilon_of(0.05, 2, 400, 1e-5);
	assert_true(all > first && all > second && all < first + second);
}

static void it_rises(void **state)
{
	double last = 0;

	(void)state;
	for (uint64_t steps = 1; steps < 2000000; steps = steps * 3 / 2 + 1) {
		double epsilon = epsilon_of(0.002, 0.8, steps, 1e-6);

		assert_true(epsilon >= last && isfinite(epsilon));
		last = epsilon;
	}
	assert_true(epsilon_of(0.01, 1, 1000, 1e-5) < epsilon_of(0.02, 1, 1000, 1e-5));
	assert_true(epsilon_of(0.01, 1, 1000, 1e-5) > epsilon_of(0.01, 1.1, 1000, 1e-5));
	assert_true(epsilon_of(0.01, 1, 1000, 1e-5) < epsilon_of(0.01, 1, 1000, 1e-6));
}

static void what_has_no_bound_has_none(void **state)
{
	(void)state;
	assert_true(epsilon_of(0.01, 1, 0, 1e-5) == 0);
	assert_true(dp_pld_steps_epsilon(NULL, 0, 1e-5) == 0);
	assert_true(isinf(epsilon_of(0, 1, 10, 1e-5)));
	assert_true(isinf(epsilon_of(0.01, 0.1, 10, 1e-5)));
	assert_true(isinf(epsilon_of(0.01, 1, 10, 0)));
	assert_true(isinf(epsilon_of(0.01, 1, 10, NAN)));
	assert_true(epsilon_of(0.5, 0.3, DP_STEPS_MAX, 1e-5) > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_sampling_it_is_the_gaussian),
		cmocka_unit_test(one_step_is_known),
		cmocka_unit_test(many_steps_are_between_plain_bounds),
		cmocka_unit_test(below_the_curves),
		cmocka_unit_test(what_eight_is_worth),
		cmocka_unit_test(prices_add_up),
		cmocka_unit_test(it_rises),
		cmocka_unit_test(what_has_no_bound_has_none),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
