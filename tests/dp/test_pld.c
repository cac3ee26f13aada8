/* tests/dp/test_pld.c - bounds by the privacy loss against what is known of it exactly: they are
 * never below it, and near. */
#include "tests/test.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

#include "base/rng.h"
#include "dp/accountant.h"
#include "dp/adaptive.h"
#include "dp/gaussian.h"
#include "dp/lattice.h"
#include "dp/pld.h"
#include "dp/rdp.h"

static const struct dp_mechanism paper = { DP_LAPLACE, 0.05, 4 };

/* ---- the figures of an accounting that knows nothing of this code ---- */

/* Two and three releases of epsilon 1 each by their curve; labels of the paper's mechanism
 * and of 12 teachers.  An independent program composed the same distributions to 1.34,
 * 1.68 and 2.26. */
static void figures_of_another_program(void **state)
{
	static const struct dp_mechanism gauss = { DP_GAUSSIAN, 40, 12 };
	double z = dp_release_multiplier(DP_RELEASE_DISCRETE, 1, 1e-5);
	double two = dp_pld_releases(DP_RELEASE_DISCRETE, z, 2);
	double three = dp_pld_releases(DP_RELEASE_DISCRETE, z, 3);

	(void)state;
	assert_near(dp_release_epsilon(DP_RELEASE_DISCRETE, z, 2, 1e-5), 1.46, 0, 0.005);
	assert_near(dp_pld_epsilon(NULL, 0, two, 1e-5), 1.34, 0, 0.005);
	assert_near(dp_release_epsilon(DP_RELEASE_DISCRETE, z, 3, 1e-5), 1.82, 0, 0.005);
	assert_near(dp_pld_epsilon(NULL, 0, three, 1e-5), 1.68, 0, 0.005);
	assert_near(dp_epsilon_public(DP_EXACT, &gauss, 391, 1e-5), 2.45, 0, 0.005);
	assert_near(dp_epsilon_public(DP_PLD, &gauss, 391, 1e-5), 2.26, 0, 0.005);
	assert_near(dp_epsilon_public(DP_EXACT, &paper, 127, 1e-5), 2.44, 0, 0.005);
	assert_near(dp_epsilon_public(DP_PLD, &paper, 127, 1e-5), 2.26, 0, 0.005);
}

/* ---- votes ---- */

/* The recursion of dp/adaptive.h without a grid: every strategy there is. */
static double by_hand(const struct dp_mechanism *m, int labels, double log_alpha)
{
	double best = 0;

	if (labels == 0)
		return log_alpha < 0 ? -expm1(log_alpha) : 0;
	for (int64_t g = m->teachers; g > -(int64_t)m->teachers; g -= 2) {
		for (int way = 0; way < 2; way++) {
			double p = dp_label_one(m, way ? g - 2 : g);
			double q = dp_label_one(m, way ? g : g - 2);

			best = fmax(best,
				    p * by_hand(m, labels - 1, log_alpha + log(q / p)) +
					    (1 - p) * by_hand(m, labels - 1,
							      log_alpha + log((1 - q) / (1 - p))));
		}
	}
	return best;
}

static struct dp_game *played(const struct dp_mechanism *m, uint64_t labels, double reach)
{
	struct dp_game *g = dp_game_new(m, labels, reach);

	assert_non_null(g);
	for (uint64_t i = 0; i < labels; i++)
		dp_game_label(g);
	return g;
}

static void the_game_is_every_strategy(void **state)
{
	static const struct dp_mechanism m[] = { { DP_LAPLACE, 0.05, 3 },
						 { DP_LAPLACE, 0.6, 2 },
						 { DP_GAUSSIAN, 2, 3 },
						 { DP_GAUSSIAN, 0.9, 2 } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct dp_game *g = played(&m[i], 4, 8);

		for (double epsilon = 0; epsilon < 3; epsilon += 0.061) {
			double exact = by_hand(&m[i], 4, epsilon);
			double bound = dp_game_delta(g, 0, epsilon);

			assert_true(bound >= exact);
			assert_near(bound, exact, 0.03, 0.01 * sqrt(dp_votes_loss(&m[i])));
		}
		dp_game_free(g);
	}
}

/* delta of `labels` coins of one pair, by the binomial distribution. */
static double binomial_delta(const struct dp_coins *c, uint64_t labels, double epsilon)
{
	double n = (double)labels, sum = 0;

	for (uint64_t k = 0; k <= labels; k++) {
		double ones = (double)k, loss = ones * c->loss[1] + (n - ones) * c->loss[0];
		double log_p = lgamma(n + 1) - lgamma(ones + 1) - lgamma(n - ones + 1) +
			       ones * log(c->p[1]) + (n - ones) * log(c->p[0]);

		if (loss > epsilon)
			sum += exp(log_p) * -expm1(epsilon - loss);
	}
	return sum;
}

static double binomial_epsilon(const struct dp_coins *c, uint64_t labels, double delta)
{
	double low = 0, high = 5000;

	for (int i = 0; i < 60; i++) {
		double mid = (low + high) / 2;

		*(binomial_delta(c, labels, mid) <= delta ? &high : &low) = mid;
	}
	return low;
}

/* One teacher leaves one pair of gaps, and no strategy: randomised response. */
static void one_teacher_is_randomised_response(void **state)
{
	(void)state;
	for (double lambda = 0.02; lambda < 2; lambda *= 3) {
		struct dp_mechanism m = { DP_LAPLACE, lambda, 1 };
		struct dp_coins c;

		dp_coins(&m, 1, -1, &c);
		for (uint64_t labels = 1; labels <= 1500; labels = labels * 3 + 1) {
			struct dp_pld_votes v = { m, labels };
			double exact = binomial_epsilon(&c, labels, 1e-5);
			double bound = dp_pld_epsilon(&v, 1, 0, 1e-5);

			assert_true(bound >= exact);
			assert_near(bound, exact, 0.012, 0.002);
		}
	}
}

/* Whatever one pair of gaps costs alone, the worst of all strategies costs more. */
static void no_fixed_gap_is_above(void **state)
{
	static const struct dp_mechanism all[] = { { DP_LAPLACE, 0.05, 4 },
						   { DP_GAUSSIAN, 40, 12 },
						   { DP_GAUSSIAN, 10, 30 },
						   { DP_GAUSSIAN, 125, 250 },
						   { DP_LAPLACE, 0.2, 60 } };

	(void)state;
	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		for (uint64_t labels = 20; labels <= 1280; labels *= 8) {
			struct dp_pld_votes v = { all[i], labels };
			double bound = dp_pld_epsilon(&v, 1, 0, 1e-6);

			for (int64_t g = all[i].teachers; g > -(int64_t)all[i].teachers; g -= 6) {
				struct dp_coins c;

				dp_coins(&all[i], g, g - 2, &c);
				assert_true(binomial_delta(&c, labels, bound) <= 1e-6);
			}
		}
	}
}

/* (*) of dp/adaptive.h at points that its own check has not looked at. */
static void a_vote_and_a_gaussian_are_below_a_wider_one(void **state)
{
	static const struct dp_mechanism all[] = { { DP_LAPLACE, 0.05, 4 },
						   { DP_GAUSSIAN, 40, 250 },
						   { DP_GAUSSIAN, 3, 5 },
						   { DP_LAPLACE, 0.4, 40 } };
	struct rng r;

	(void)state;
	rng_seed(&r, 11);
	for (size_t i = 0; i < 4; i++) {
		double loss = dp_votes_loss(&all[i]);

		for (double c = 2 * loss; c < 100 * loss; c *= 4) {
			struct dp_votes_bound b = dp_votes_variance(&all[i], c);

			assert_true(b.variance >= loss && b.variance < 3 * loss);
			for (int k = 0; k < 3000; k++) {
				int64_t top = all[i].teachers;
				int64_t g = top - 2 * (int64_t)rng_below(&r, all[i].teachers);
				double y = 12 * sqrt(c) * (rng_double(&r) * 2 - 1), left;
				struct dp_coins p;

				dp_coins(&all[i], g, g - 2, &p);
				left = p.p[0] * dp_gaussian_pair(c, y - p.loss[0]) +
				       p.p[1] * dp_gaussian_pair(c, y - p.loss[1]);
				assert_true(left <= dp_gaussian_pair(c + b.variance, y) + b.slack);
			}
		}
	}
}

/* ---- releases ---- */

/* delta of one number with discrete Gaussian noise, moved by `shift`. */
static double discrete_delta(double deviation, int shift, double epsilon)
{
	int reach = (int)(14 * deviation) + 2 * shift;
	double mass = 0, sum = 0;

	for (int x = -reach; x <= reach; x++) {
		double p = exp(-(double)x * x / (2 * deviation * deviation));
		double loss = ((double)(x - shift) * (x - shift) - (double)x * x) /
			      (2 * deviation * deviation);

		mass += p;
		if (loss > epsilon)
			sum += p * -expm1(epsilon - loss);
	}
	return sum / mass;
}

static void discrete_noise_is_below_a_continuous_one(void **state)
{
	int above = 0;

	(void)state;
	for (double deviation = 2.5; deviation < 60; deviation *= 1.7) {
		for (int shift = 1; shift < 3 * deviation; shift = shift * 2 + 1) {
			double less = sqrt(deviation * deviation - 4);

			for (double epsilon = 0; epsilon < 4; epsilon += 0.13) {
				double d = discrete_delta(deviation, shift, epsilon);

				assert_true(d <= dp_gaussian_delta(shift, less, epsilon) + 1e-15);
				above += d > dp_gaussian_delta(shift, deviation, epsilon) + 1e-12;
			}
		}
	}
	assert_true(above > 0); /* so the deviation must be taken for less than it is */
}

static void releases_are_one_gaussian(void **state)
{
	double z = 3, one = dp_pld_releases(DP_RELEASE_GAUSSIAN, z, 1);

	(void)state;
	for (uint64_t k = 1; k < 1000; k *= 3) {
		double all = dp_pld_releases(DP_RELEASE_GAUSSIAN, z, k), epsilon;

		assert_near(all, (double)k * one, 1e-12, 0);
		epsilon = dp_pld_epsilon(NULL, 0, all, 1e-6);
		assert_near(epsilon, dp_gaussian_epsilon(sqrt((double)k), z, 1e-6), 1e-9, 0);
		assert_true(dp_gaussian_delta(sqrt((double)k), z, epsilon) <= 1e-6);
		assert_true(dp_pld_releases(DP_RELEASE_DISCRETE, z, k) > all);
		assert_near(dp_pld_releases(DP_RELEASE_DISCRETE, z, k), all, 1e-6, 0);
	}
	z = dp_pld_release_multiplier(DP_RELEASE_DISCRETE, 1, 1e-5);
	assert_true(z < dp_release_multiplier(DP_RELEASE_DISCRETE, 1, 1e-5) * 0.95);
	assert_true(dp_pld_epsilon(NULL, 0, dp_pld_releases(DP_RELEASE_DISCRETE, z, 1), 1e-5) <= 1);
}

/* Whatever the noise, that of which the closed form speaks is drawn on at least so many steps. */
static void the_lattice_has_the_steps(void **state)
{
	(void)state;
	for (double z = DP_MULTIPLIER_MIN; z <= DP_MULTIPLIER_MAX; z *= 1.9) {
		uint64_t k = dp_lattice_radius_product(z), rows = 2 * (uint64_t)DP_LATTICE_RADIUS;
		double least = dp_lattice_deviation_least(z);

		assert_true(least * least <= (double)dp_lattice_sigma2(z, rows));
		assert_true(least * least <= (double)dp_lattice_sigma2(z, 2 * k * k));
		assert_true(least > 100);
	}
}

/* ---- together ---- */

/* Without a label the game beside a Gaussian is that Gaussian, whatever of it the grid does not
 * reach: every part of it counts at the upper end of its step. */
static void the_grid_never_takes_from_a_gaussian(void **state)
{
	struct dp_game *g = played(&paper, 0, 3);
	double step = sqrt(dp_votes_loss(&paper)) / 48;

	(void)state;
	for (double variance = 0.001; variance < 30; variance *= 2.3) {
		for (double epsilon = 0; epsilon < 3; epsilon += 0.0371) {
			double exact = dp_gaussian_pair(variance, epsilon);
			double near = dp_gaussian_pair(variance, epsilon - 2 * step);
			double beyond = dp_gaussian_pair(variance, -0.5);
			double bound = dp_game_delta(g, variance, epsilon);

			assert_true(bound >= exact);
			assert_true(bound <= fmax(near, variance > 0.02 ? 1 : beyond) + 1e-9);
		}
	}
	dp_game_free(g);
}

static double mixed(uint64_t labels, uint64_t releases, double z)
{
	struct dp_pld_votes v = { paper, labels };

	return dp_pld_epsilon(&v, 1, dp_pld_releases(DP_RELEASE_GAUSSIAN, z, releases), 1e-5);
}

/* delta of coins of one pair and Gaussian releases, by the sum over how the coins fall. */
static double mixed_delta(uint64_t labels, double variance, double epsilon)
{
	double n = (double)labels, sum = 0;
	struct dp_coins c;

	dp_coins(&paper, 2, 0, &c);
	for (uint64_t k = 0; k <= labels; k++) {
		double ones = (double)k, loss = ones * c.loss[1] + (n - ones) * c.loss[0];
		double log_p = lgamma(n + 1) - lgamma(ones + 1) - lgamma(n - ones + 1) +
			       ones * log(c.p[1]) + (n - ones) * log(c.p[0]);

		sum += exp(log_p) * dp_gaussian_pair(variance, epsilon - loss);
	}
	return sum;
}

static void labels_beside_releases(void **state)
{
	double curve[DP_ORDERS], release[DP_ORDERS], bound = mixed(100, 2, 4);

	(void)state;
	dp_rdp_vote(&paper, curve);
	dp_release_rdp(4, 2, release);
	for (int i = 0; i < DP_ORDERS; i++)
		curve[i] = 100 * curve[i] + release[i];
	assert_true(bound < 0.95 * dp_rdp_tight(curve, 1e-5).epsilon);
	assert_true(bound > mixed(100, 0, 4) && bound > mixed(0, 2, 4));
	assert_true(mixed(101, 2, 4) > bound && mixed(100, 3, 4) > bound);
	assert_true(mixed_delta(100, 2.0 / 16, bound) <= 1e-5);
	assert_true(mixed_delta(100, 2.0 / 16, bound * 0.98) > 1e-5);
}

/* A grid so fine that its probes beside a release would take seconds is not asked: that would be a
 * host's way to keep our loop busy.  The bound as a Gaussian stands. */
static void fine_grids_are_not_asked_beside_releases(void **state)
{
	struct dp_pld_votes v = { { DP_GAUSSIAN, 3000, 1 }, 3 };
	double release = dp_pld_releases(DP_RELEASE_GAUSSIAN, 20, 1), epsilon;
	struct dp_game *g;

	(void)state;
	epsilon = dp_pld_epsilon(&v, 1, release, 1e-5);
	g = dp_game_new(&v.mechanism, v.labels, 1);
	assert_non_null(g);
	assert_true(dp_game_points(g) > DP_GAME_BESIDE);
	for (uint64_t i = 0; i < v.labels; i++)
		dp_game_label(g);
	assert_true(dp_game_epsilon(g, release, 1e-5) < epsilon);
	assert_near(epsilon, dp_game_epsilon(g, release, 1e-5), 0, 1e-5);
	dp_game_free(g);
	g = dp_game_new(&paper, 100, 2); /* an honest one is far below */
	assert_true(dp_game_points(g) < DP_GAME_BESIDE / 4);
	dp_game_free(g);
}

/* Labels of one mechanism under two names are labels of it; of two, they are bounded by more
 * than either, and by the same as when the smaller noise is taken for both. */
static void several_mechanisms(void **state)
{
	struct dp_pld_votes two[2] = { { paper, 60 }, { paper, 40 } }, one = { paper, 100 };
	struct dp_pld_votes mix[3] = { { { DP_GAUSSIAN, 40, 12 }, 300 },
				       { { DP_GAUSSIAN, 60, 40 }, 0 },
				       { { DP_GAUSSIAN, 50, 12 }, 300 } };
	struct dp_pld_votes both = { { DP_GAUSSIAN, 40, 12 }, 600 };
	double of_two;

	(void)state;
	assert_true(dp_pld_epsilon(two, 2, 0, 1e-5) == dp_pld_epsilon(&one, 1, 0, 1e-5));
	of_two = dp_pld_epsilon(mix, 3, 0, 1e-5);
	assert_true(of_two > dp_pld_epsilon(mix, 1, 0, 1e-5));
	assert_true(of_two < dp_epsilon_public(DP_EXACT, &both.mechanism, 600, 1e-5));
	assert_true(dp_pld_epsilon(NULL, 0, 0, 1e-5) == 0);
}

static void what_has_no_bound_has_none(void **state)
{
	struct dp_pld_votes far = { { DP_LAPLACE, 20, 3 }, 1 }, bad = { { DP_LAPLACE, NAN, 3 }, 1 },
			    many = { { DP_GAUSSIAN, 4000, DP_ADAPTIVE_TEACHERS + 1 }, 9 };

	(void)state;
	assert_true(dp_pld_epsilon(&far, 1, 0, 1e-5) > 5);
	assert_true(isinf(dp_pld_epsilon(&bad, 1, 0, 1e-5)));
	assert_true(isinf(dp_pld_epsilon(&many, 1, 0, 1e-5)));
	assert_true(isinf(dp_pld_epsilon(NULL, 0, (double)INFINITY, 1e-5)));
	assert_true(isinf(dp_pld_epsilon(NULL, 0, 1, 0)));
	assert_true(isinf(dp_pld_epsilon(NULL, 0, NAN, 1e-5)));
	/* As an accountant it is then what `exact` says. */
	assert_true(dp_epsilon_public(DP_PLD, &many.mechanism, 9, 1e-5) ==
		    dp_epsilon_public(DP_EXACT, &many.mechanism, 9, 1e-5));
}

static void more_labels_fit_and_all_of_them(void **state)
{
	static const struct dp_mechanism all[] = { { DP_LAPLACE, 0.05, 4 },
						   { DP_GAUSSIAN, 40, 12 },
						   { DP_GAUSSIAN, 125, 250 } };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint64_t exact = dp_labels_within(&all[i], DP_EXACT, 2, 1e-5);
		uint64_t pld = dp_labels_within(&all[i], DP_PLD, 2, 1e-5);

		assert_true((double)pld > 1.09 * (double)exact);
		assert_true(dp_epsilon_public(DP_PLD, &all[i], pld, 1e-5) <= 2);
		assert_true(dp_epsilon_public(DP_PLD, &all[i], pld + pld / 50 + 1, 1e-5) > 2);
		/* Asked again it is the same, worked out or remembered. */
		assert_int_equal(dp_labels_within(&all[i], DP_PLD, 2, 1e-5), pld);
	}
	assert_int_equal(dp_labels_within(&paper, DP_PLD, 0, 1e-5), 0);
	assert_int_equal(dp_labels_within(&paper, DP_PLD, INFINITY, 1e-5), DP_LABELS_MAX);
}

/* Also where the fine grid of few labels is too much work, and that of more labels is not. */
static void a_full_cap_costs_no_more_than_it(void **state)
{
	static const struct dp_mechanism many = { DP_LAPLACE, 0.05, 250 };
	uint64_t cap = dp_labels_within(&many, DP_PLD, 2.73, 1e-5);
	double last = 0;

	(void)state;
	assert_in_range(cap, 160, 199);
	assert_true(dp_epsilon_public(DP_PLD, &many, cap, 1e-5) <= 2.73);
	for (uint64_t n = 120; n <= 208; n += 11) {
		double epsilon = dp_epsilon_public(DP_PLD, &many, n, 1e-5);

		assert_true(epsilon > last);
		last = epsilon;
	}
}

static void it_rises_with_the_count(void **state)
{
	static const struct dp_mechanism gauss = { DP_GAUSSIAN, 40, 12 };
	double last = 0;

	(void)state;
	for (uint64_t k = 1; k < 1000000; k = k + k / 12 + 1) {
		double epsilon = dp_epsilon_public(DP_PLD, &gauss, k, 1e-5);

		assert_true(epsilon >= last);
		assert_true(epsilon <= dp_epsilon_public(DP_EXACT, &gauss, k, 1e-5));
		last = epsilon;
	}
}

/* ---- what was worked out before ---- */

static double thread_cpu_s(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static double ask_dear(void)
{
	static const struct dp_mechanism dear = { DP_GAUSSIAN, 30, 400 };
	double began = thread_cpu_s();

	assert_true(dp_pld_labels(&dear, 100, 2.73, 1e-5) > 100);
	return thread_cpu_s() - began;
}

static void *ask_elsewhere(void *out)
{
	*(double *)out = ask_dear();
	return NULL;
}

/* By whichever thread, and however much else is asked in between. */
static void what_is_asked_again_is_known(void **state)
{
	struct dp_pld_votes one = { paper, 1 };
	double first = 0, again = 0;
	pthread_t t;

	(void)state;
	assert_int_equal(pthread_create(&t, NULL, ask_elsewhere, &first), 0);
	pthread_join(t, NULL);
	for (int i = 1; i < 600; i++) {
		again += ask_dear();
		assert_false(dp_pld_is_known(&one, 1, 0.001 * i, 1e-5));
		dp_pld_epsilon(&one, 1, 0.001 * i, 1e-5);
		assert_true(dp_pld_is_known(&one, 1, 0.001 * i, 1e-5));
	}
	assert_false(dp_pld_is_known(&one, 1, 0.001, 1e-5)); /* long ago */
	assert_true(again < first / 2);
}

static void a_curve_is_worked_out_once(void **state)
{
	static const struct dp_mechanism wide = { DP_LAPLACE, 0.0375, 900 };
	double first = thread_cpu_s(), again, curve[DP_ORDERS], same[DP_ORDERS];

	(void)state;
	dp_rdp_vote(&wide, curve);
	again = thread_cpu_s();
	first = again - first;
	for (int i = 0; i < 100; i++)
		dp_rdp_vote(&wide, same);
	assert_true(thread_cpu_s() - again < 10 * first);
	assert_memory_equal(curve, same, sizeof(curve));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(figures_of_another_program),
		cmocka_unit_test(the_game_is_every_strategy),
		cmocka_unit_test(one_teacher_is_randomised_response),
		cmocka_unit_test(no_fixed_gap_is_above),
		cmocka_unit_test(a_vote_and_a_gaussian_are_below_a_wider_one),
		cmocka_unit_test(discrete_noise_is_below_a_continuous_one),
		cmocka_unit_test(releases_are_one_gaussian),
		cmocka_unit_test(the_lattice_has_the_steps),
		cmocka_unit_test(the_grid_never_takes_from_a_gaussian),
		cmocka_unit_test(labels_beside_releases),
		cmocka_unit_test(fine_grids_are_not_asked_beside_releases),
		cmocka_unit_test(several_mechanisms),
		cmocka_unit_test(what_has_no_bound_has_none),
		cmocka_unit_test(more_labels_fit_and_all_of_them),
		cmocka_unit_test(a_full_cap_costs_no_more_than_it),
		cmocka_unit_test(it_rises_with_the_count),
		cmocka_unit_test(what_is_asked_again_is_known),
		cmocka_unit_test(a_curve_is_worked_out_once),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
