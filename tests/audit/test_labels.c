/* Audit B: labels of the shipped draw pass, every planted fault is found. */
#include "tests/test.h"

#include "audit/labels.h"
#include "base/rng.h"
#include "dp/accountant.h"
#include "dp/rdp.h"

static const struct dp_mechanism laplace = { DP_LAPLACE, 0.05, 4 };
static const struct dp_mechanism gaussian = { DP_GAUSSIAN, 40, 250 };
static const double alpha = 0.01;

static struct dp_audit one(const struct dp_mechanism *m, enum audit_fault f, uint64_t draws)
{
	struct dp_audit a;
	struct err e = { 0 };
	struct rng r;
	rng_seed(&r, 3);
	assert_int_equal(audit_labels(m, f, draws, alpha, nn_draw_seeded(&r), &a, &e), 0);
	return a;
}

static struct audit_session session(const struct dp_mechanism *m, enum audit_fault f,
				    uint64_t labels, uint64_t sessions)
{
	struct audit_session s;
	struct err e = { 0 };
	struct rng r;
	rng_seed(&r, 4);
	assert_int_equal(
		audit_session(m, f, labels, sessions, 1e-5, alpha, nn_draw_seeded(&r), &s, &e), 0);
	return s;
}

static void shipped_labels_pass(void **state)
{
	(void)state;
	struct dp_audit a = one(&laplace, AUDIT_AS_SHIPPED, 100000);
	assert_true(a.passed);
	assert_true(a.measured > 0.3 * a.accounted);
	assert_true(one(&gaussian, AUDIT_AS_SHIPPED, 10000).passed);
}

static void every_fault_is_found(void **state)
{
	(void)state;
	for (int f = AUDIT_NOISE_OFF; f < AUDIT_FAULTS; f++) {
		assert_true(audit_fault_applies((enum audit_fault)f, &laplace));
		assert_false(one(&laplace, (enum audit_fault)f, 100000).passed);
		/* a quarter of much noise is still much: that takes draws */
		uint64_t draws = f == AUDIT_NOISE_QUARTER ? 100000 : 5000;
		assert_false(one(&gaussian, (enum audit_fault)f, draws).passed);
	}
}

/* 154 labels: the ledger says 2.7251, and no more than that is to be found in sessions. */
static void a_session_stays_below_the_ledger(void **state)
{
	(void)state;
	double upper = dp_epsilon_public(DP_EXACT, &laplace, 154, 1e-5);
	struct audit_session s = session(&laplace, AUDIT_AS_SHIPPED, 154, 4000);
	assert_near(upper, 2.7251, 0, 1e-4);
	assert_true(s.lower < upper);
	assert_true(s.lower > 0.3); /* and it says something */
	assert_int_equal(s.gap, 2);
	for (int f = AUDIT_NOISE_OFF; f < AUDIT_FAULTS; f++)
		assert_true(session(&laplace, (enum audit_fault)f, 154, 4000).lower > upper);
}

static void faults_that_add_noise_are_none(void **state)
{
	(void)state;
	const struct dp_mechanism loud = { DP_LAPLACE, 5, 4 };
	assert_false(audit_fault_applies(AUDIT_SCALE_INVERTED, &loud));
	assert_true(audit_fault_applies(AUDIT_NOISE_OFF, &loud));
	assert_string_equal(audit_fault_name(AUDIT_NOISE_QUARTER), "noise / 4");
}

static void draws_grow_as_noise_does(void **state)
{
	(void)state;
	const struct dp_mechanism quiet = { DP_LAPLACE, 0.005, 4 };
	assert_true(audit_draws_for(&quiet) > audit_draws_for(&laplace));
	assert_true(audit_draws_for(&laplace) >= 300000);
}

static void wants_sense(void **state)
{
	(void)state;
	struct audit_session s;
	struct err e = { 0 };
	assert_int_equal(
		audit_session(&laplace, AUDIT_AS_SHIPPED, 0, 10, 1e-5, .1, nn_draw_secure, &s, &e),
		ERR_USAGE);
	assert_int_equal(
		audit_session(&laplace, AUDIT_AS_SHIPPED, 1, 1, 1e-5, .1, nn_draw_secure, &s, &e),
		ERR_USAGE);
	assert_int_equal(
		audit_session(&laplace, AUDIT_AS_SHIPPED, 1, 10, 1e-5, 0, nn_draw_secure, &s, &e),
		ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(shipped_labels_pass),
		cmocka_unit_test(every_fault_is_found),
		cmocka_unit_test(a_session_stays_below_the_ledger),
		cmocka_unit_test(faults_that_add_noise_are_none),
		cmocka_unit_test(draws_grow_as_noise_does),
		cmocka_unit_test(wants_sense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
