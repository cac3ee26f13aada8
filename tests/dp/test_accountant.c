/* tests/dp/test_accountant.c - the invariants and the example of dp/accountant.h. */
#include "tests/test.h"

#include "base/rng.h"
#include "dp/accountant.h"
#include "dp/moments.h"
#include "dp/rdp.h"

static const struct dp_mechanism paper = { DP_LAPLACE, 0.05, 4 };

/* Mechanisms that each accountant can judge, for the properties below. */
static const struct {
	enum dp_accountant accountant;
	struct dp_mechanism m;
} judged[] = {
	{ DP_EXACT, { DP_LAPLACE, 0.05, 4 } },	{ DP_EXACT, { DP_GAUSSIAN, 40, 250 } },
	{ DP_EXACT, { DP_LAPLACE, 1e-6, 9 } },	{ DP_EXACT, { DP_LAPLACE, 20, 3 } },
	{ DP_PAPER, { DP_LAPLACE, 0.05, 4 } },	{ DP_PAPER, { DP_LAPLACE, 0.1, 250 } },
	{ DP_PAPER, { DP_LAPLACE, 20, 250 } },	{ DP_PAPER, { DP_LAPLACE, 1e-6, 10 } },
	{ DP_GNMAX, { DP_GAUSSIAN, 40, 250 } }, { DP_GNMAX, { DP_GAUSSIAN, 1, 4 } },
	{ DP_PLD, { DP_LAPLACE, 0.05, 4 } },	{ DP_PLD, { DP_GAUSSIAN, 40, 12 } },
	{ DP_PLD, { DP_LAPLACE, 20, 3 } },
};
enum { JUDGED = sizeof(judged) / sizeof(judged[0]) };

static void caps_are_whole_labels(void **state)
{
	(void)state;
	assert_int_equal(dp_labels_within(&paper, DP_EXACT, 2.73, 1e-5), 154);
	assert_int_equal(dp_labels_within(&paper, DP_PAPER, 2.73, 1e-5), 29);
	assert_int_equal(dp_labels_within(&paper, DP_GNMAX, 2.73, 1e-5), 0);
	assert_int_equal(dp_labels_within(&paper, DP_EXACT, 0, 1e-5), 0);
	assert_int_equal(dp_labels_within(&paper, DP_EXACT, NAN, 1e-5), 0);
	assert_int_equal(dp_labels_within(&paper, DP_EXACT, INFINITY, 1e-5), DP_LABELS_MAX);
	assert_int_equal(dp_labels_within(&paper, DP_EXACT, 2.73, 0), 0);
	for (size_t i = 0; i < JUDGED; i++) {
		const struct dp_mechanism *m = &judged[i].m;
		uint64_t k = dp_labels_within(m, judged[i].accountant, 3, 1e-6);
		assert_true(dp_epsilon_public(judged[i].accountant, m, k, 1e-6) <= 3);
		/* By pld each count has a grid of its own, and the last few may differ. */
		k += judged[i].accountant == DP_PLD ? k / 50 : 0;
		assert_true(dp_epsilon_public(judged[i].accountant, m, k + 1, 1e-6) > 3);
	}
}

/* The paper charges a batch, whatever is in it. */
static void the_published_price(void **state)
{
	(void)state;
	const struct dp_mechanism gauss = { DP_GAUSSIAN, 40, 250 };
	assert_near(dp_epsilon_published(&paper, 928, 32, 1e-5), 2.7292, 1e-4, 0);
	assert_near(dp_epsilon_published(&paper, 897, 32, 1e-5),
		    dp_epsilon_published(&paper, 928, 32, 1e-5), 0, 0);
	assert_near(dp_epsilon_public(DP_EXACT, &paper, 928, 1e-5), 7.71, 0.01, 0);
	assert_true(dp_epsilon_published(&paper, 0, 32, 1e-5) == 0);
	assert_true(isnan(dp_epsilon_published(&gauss, 32, 32, 1e-5)));
	assert_true(isnan(dp_epsilon_published(&paper, 32, 0, 1e-5)));
}

static void public_rises_and_starts_at_zero(void **state)
{
	(void)state;
	for (size_t i = 0; i < JUDGED; i++) {
		double last = 0;
		assert_true(dp_epsilon_public(judged[i].accountant, &judged[i].m, 0, 1e-5) == 0);
		for (uint64_t k = 1; k <= 10000000; k = k * 3 / 2 + 1) {
			double e = dp_epsilon_public(judged[i].accountant, &judged[i].m, k, 1e-5);
			assert_true(isfinite(e) && e >= last);
			last = e;
		}
	}
}

static void worked_example(void **state)
{
	(void)state;
	struct dp_account a;
	struct err e;
	assert_int_equal(dp_account_init(&a, DP_PAPER, &paper, 2.73, 1e-5, &e), 0);
	assert_int_equal(dp_account_charge(&a, 32, &e), ERR_BUDGET);
	assert_true(dp_account_epsilon_public(&a) == 0);
	assert_int_equal(dp_account_charge(&a, 29, &e), 0);
	assert_near(dp_account_epsilon_public(&a), 2.7292, 0, 5e-5);
	assert_near(dp_epsilon_public(DP_EXACT, &paper, 154, 1e-5), 2.7251, 0, 5e-5);
}

static void refusal_leaves_every_bit(void **state)
{
	(void)state;
	struct dp_account a, before;
	struct dp_votes fine[] = { { 4, 3 }, { 1, 2 } }, many[] = { { 2, 3 }, { 0, 3 } };
	struct dp_votes wrong[] = { { 4, 1 }, { 5, 1 } }, wrap[] = { { 2, 2 }, { 2, UINT64_MAX } };
	struct err e;
	assert_int_equal(dp_account_init(&a, DP_PAPER, &paper, 2.73, 1e-5, &e), 0);
	assert_int_equal(dp_account_charge(&a, 10, &e), 0);
	assert_int_equal(dp_account_note(&a, fine, 2, &e), 0);
	before = a;
	assert_int_equal(dp_account_charge(&a, 20, &e), ERR_BUDGET);
	assert_int_equal(dp_account_charge(&a, UINT64_MAX, &e), ERR_BUDGET);
	assert_int_equal(dp_account_note(&a, many, 2, &e), ERR_FAIL);
	assert_int_equal(dp_account_note(&a, wrong, 2, &e), ERR_FAIL);
	assert_int_equal(dp_account_note(&a, wrap, 2, &e), ERR_FAIL);
	assert_memory_equal(&a, &before, sizeof(a));
	assert_int_equal(dp_account_charge(&a, 19, &e), 0);
	assert_int_equal(dp_account_charge(&a, 1, &e), ERR_BUDGET);
}

/* Invariants 1 and 2 under random charges and votes. */
static void private_stays_below_public(void **state)
{
	(void)state;
	struct rng r;
	rng_seed(&r, 3);
	for (size_t i = 0; i < JUDGED; i++) {
		struct dp_account a;
		double last = 0;
		assert_int_equal(
			dp_account_init(&a, judged[i].accountant, &judged[i].m, 1e6, 1e-5, NULL),
			0);
		int steps = judged[i].accountant == DP_PLD ? 10 : 60; /* a curve each */
		for (int step = 0; step < steps; step++) {
			uint64_t n = 1 + rng_below(&r, 50);
			struct dp_votes v = { rng_below(&r, a.mechanism.teachers + 1), n };
			if (dp_account_charge(&a, n, NULL) != 0)
				break;
			if (rng_below(&r, 3) > 0)
				assert_int_equal(dp_account_note(&a, &v, 1, NULL), 0);
			double private = dp_account_epsilon_private(&a);
			assert_true(private <= dp_account_epsilon_public(&a));
			for (int k = 0; k < DP_ACCOUNT_ORDERS; k++)
				assert_true(isfinite(a.noted[k]) && a.noted[k] >= 0);
			assert_true(private >= last * (1 - 1e-12) || a.voted < a.labels);
			last = a.voted == a.labels ? private : 0;
		}
	}
}

/* Strong votes are what a data-dependent account is for. */
static void unanimous_votes_cost_less(void **state)
{
	(void)state;
	struct dp_mechanism many = { DP_GAUSSIAN, 40, 250 };
	struct dp_votes v = { 250, 1000 };
	struct dp_account a;
	assert_int_equal(dp_account_init(&a, DP_GNMAX, &many, 1e6, 1e-5, NULL), 0);
	assert_int_equal(dp_account_charge(&a, 1000, NULL), 0);
	assert_near(dp_account_epsilon_private(&a), dp_account_epsilon_public(&a), 1e-12, 0);
	assert_int_equal(dp_account_note(&a, &v, 1, NULL), 0);
	assert_true(dp_account_epsilon_private(&a) < dp_account_epsilon_public(&a) / 3);
}

/* Charged in pieces or at once, the account is the same. */
static void pieces_add_up(void **state)
{
	(void)state;
	struct dp_account a, b;
	assert_int_equal(dp_account_init(&a, DP_EXACT, &paper, 2.73, 1e-5, NULL), 0);
	b = a;
	for (int i = 0; i < 14; i++)
		assert_int_equal(dp_account_charge(&a, 11, NULL), 0);
	assert_int_equal(dp_account_charge(&b, 154, NULL), 0);
	assert_memory_equal(&a, &b, sizeof(a));
	assert_near(dp_account_epsilon_public(&a), 2.7251384752063729, 1e-9, 0);
}

/* The condition on q and its integer form say the same for every lambda in range. */
static void condition_is_an_integer(void **state)
{
	(void)state;
	for (double lambda = 1e-3; lambda <= 20; lambda *= 1.3)
		for (uint64_t gap = 0; gap < 12; gap++)
			assert_int_equal(dp_moments_applies(gap),
					 dp_moments_q(lambda, gap) < dp_moments_q_limit(lambda));
}

static void moments_hold_everywhere(void **state)
{
	(void)state;
	for (double lambda = 1e-6; lambda <= 20; lambda *= 2.5) {
		for (uint64_t gap = 0; gap <= 1000000; gap = gap * 2 + 1) {
			double open[DP_MOMENTS] = { 0 }, closed[DP_MOMENTS] = { 0 };
			dp_moments_add_public(closed, lambda, 1e7);
			dp_moments_add_private(open, lambda, gap, 1e7, false);
			for (int l = 0; l < DP_MOMENTS; l++)
				assert_true(isfinite(open[l]) && open[l] >= 0 &&
					    open[l] <= closed[l]);
		}
	}
}

/* Optimal composition is also an upper bound on itself split in two, and never above k eps0. */
static void optimal_composition_is_bounded(void **state)
{
	(void)state;
	double last = 0;
	for (uint64_t k = 1; k <= 1000000; k *= 10) {
		double e = dp_compose_optimal(0.01, k, 1e-6);
		assert_true(e >= last && e <= 0.01 * (double)k);
		last = e;
	}
	assert_true(dp_compose_optimal(0.01, 0, 1e-6) == 0);
	assert_near(dp_compose_optimal(0.5, 1, 0), 0.5, 1e-12, 0);
}

static void wrong_pairs_are_refused(void **state)
{
	(void)state;
	struct dp_mechanism g = { DP_GAUSSIAN, 5, 4 };
	struct dp_account a;
	struct err e;
	assert_int_equal(dp_accountant_check(DP_PAPER, &g, &e), ERR_USAGE);
	assert_int_equal(dp_accountant_check(DP_GNMAX, &paper, &e), ERR_USAGE);
	assert_int_equal(dp_accountant_check(DP_ACCOUNTANTS, &g, &e), ERR_USAGE);
	assert_true(isinf(dp_epsilon_public(DP_PAPER, &g, 1, 1e-5)));
	assert_int_equal(dp_account_init(&a, DP_EXACT, &g, 1, 1, &e), ERR_USAGE);
	assert_int_equal(dp_account_init(&a, DP_EXACT, &g, -1, 0.1, &e), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(caps_are_whole_labels),
		cmocka_unit_test(the_published_price),
		cmocka_unit_test(public_rises_and_starts_at_zero),
		cmocka_unit_test(worked_example),
		cmocka_unit_test(refusal_leaves_every_bit),
		cmocka_unit_test(private_stays_below_public),
		cmocka_unit_test(unanimous_votes_cost_less),
		cmocka_unit_test(pieces_add_up),
		cmocka_unit_test(condition_is_an_integer),
		cmocka_unit_test(moments_hold_everywhere),
		cmocka_unit_test(optimal_composition_is_bounded),
		cmocka_unit_test(wrong_pairs_are_refused),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
