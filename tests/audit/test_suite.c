/* The whole audit: passed as it ships; with something broken in its place, failed. */
#include "tests/test.h"

#include "audit/leaks.h"
#include "audit/suite.h"
#include "base/rng.h"
#include "dp/accountant.h"
#include "dp/release.h"

static void told(void *ctx, const char *what)
{
	assert_true(what[0] != '\0');
	(*(size_t *)ctx)++;
}

static bool interference(audit_open_fn *shipped, size_t *lines)
{
	struct ppat_config ppat, procrustes;
	size_t steps = 0;
	struct audit_effort how = { .tell = told, .ctx = &steps };
	struct audit_report r = { 0 };
	struct err e = { 0 };
	ppat_config_defaults(&ppat, PPAT_PPAT, 60, 6, 6);
	ppat.steps = 5;
	ppat.teacher_hidden = ppat.student_hidden = 8;
	ppat_config_defaults(&procrustes, PPAT_PROCRUSTES, 60, 6, 6);
	float *y[2] = { audit_rows_new(60, 6, 1), audit_rows_new(60, 6, 2) };
	struct audit_pair p = { &ppat, &procrustes, { y[0], y[1] }, 5 };
	assert_int_equal(audit_suite_interference(&r, &p, shipped, &how, &e), 0);
	assert_int_equal(steps, r.n);
	for (size_t i = 0; i < r.n; i++)
		if (r.at[i].control)
			assert_true(r.at[i].found);
	*lines = r.n;
	bool passed = audit_report_verdict(&r) == AUDIT_PASSED;
	audit_report_release(&r);
	free(y[0]);
	free(y[1]);
	return passed;
}

static void test_interference(void **state)
{
	(void)state;
	size_t lines;
	assert_true(interference(audit_open_shipped, &lines));
	assert_int_equal(lines, 6);
	assert_false(interference(audit_open_ack_tells, &lines));
	assert_false(interference(audit_open_length_tells, &lines));
}

static bool labels(enum audit_fault shipped, uint64_t draws, struct audit_line *session)
{
	const struct dp_mechanism m = { DP_LAPLACE, 0.05, 4 };
	struct audit_claim c = { "test", m, 154, 1e-5, dp_epsilon_public(DP_EXACT, &m, 154, 1e-5) };
	struct rng rng;
	struct audit_effort how = {
		.draws = draws, .sessions = 2000, .alpha = 0.01, .draw = nn_draw_seeded(&rng)
	};
	struct audit_report r = { 0 };
	struct err e = { 0 };
	rng_seed(&rng, 9);
	assert_int_equal(audit_suite_labels(&r, &c, shipped, &how, &e), 0);
	assert_int_equal(r.n, 5);
	*session = r.at[1];
	bool passed = audit_report_verdict(&r) == AUDIT_PASSED;
	audit_report_release(&r);
	return passed;
}

static void test_labels(void **state)
{
	(void)state;
	struct audit_line l;
	assert_true(labels(AUDIT_AS_SHIPPED, 30000, &l));
	assert_near(l.upper, 2.7251, 0, 1e-4);
	assert_true(l.lower > 0 && l.lower < l.upper);
	assert_string_equal(l.what, "test: 154 labels");
	for (int f = AUDIT_NOISE_OFF; f < AUDIT_FAULTS; f++) {
		assert_false(labels((enum audit_fault)f, 30000, &l));
		assert_true(l.found && l.lower > l.upper);
	}
}

static bool releases(double shipped, struct audit_line line[6])
{
	struct rng rng;
	struct audit_effort how = { .alpha = 0.01, .draw = nn_draw_seeded(&rng) };
	struct audit_report r = { 0 };
	struct err e = { 0 };
	rng_seed(&rng, 10);
	assert_int_equal(audit_suite_releases(&r, shipped, &how, &e), 0);
	assert_int_equal(r.n, 6);
	memcpy(line, r.at, 6 * sizeof(*line));
	bool passed = audit_report_verdict(&r) == AUDIT_PASSED;
	audit_report_release(&r);
	return passed;
}

static void test_releases(void **state)
{
	(void)state;
	struct audit_line line[6];
	assert_true(releases(1, line));
	assert_true(line[0].lower > 0.1 && line[1].lower > 0.1); /* and it sees them */
	assert_near(line[0].upper, 2.18, 0, 0.01);
	for (size_t i = 2; i < 6; i++)
		assert_true(line[i].control && line[i].found);
	assert_false(releases(0.25, line));
	assert_true(line[0].found && line[1].found);
	assert_string_equal(line[3].what, "noisy rows: noise / 4");
}

static bool released(uint64_t releases, double shipped, double *lower)
{
	double z = 4;
	struct audit_released c = { "ledger, x", AUDIT_ROWS, z, releases, 1e-5, 0 };
	struct rng rng;
	struct audit_effort how = { .draw = nn_draw_seeded(&rng) };
	struct audit_report r = { 0 };
	struct err e = { 0 };
	rng_seed(&rng, 12);
	c.upper = dp_release_epsilon(DP_RELEASE_DISCRETE, z, releases, 1e-5);
	assert_int_equal(audit_suite_released(&r, &c, shipped, &how, &e), 0);
	assert_int_equal(r.n, 1);
	assert_string_equal(r.at[0].what,
			    releases == 1 ? "ledger, x: 1 release" : "ledger, x: 6 releases");
	*lower = r.at[0].lower;
	bool found = r.at[0].found;
	audit_report_release(&r);
	return found;
}

/* What is on a ledger: several releases tell more than one, and cost more. */
static void test_releases_of_a_contract(void **state)
{
	(void)state;
	double one, six, weak;
	assert_false(released(1, 1, &one));
	assert_false(released(6, 1, &six));
	assert_true(six > one + 0.2);
	assert_true(released(6, 0.25, &weak) && weak > six);
}

/* With next to no draws the faults stay hidden, and that is no pass either. */
static void test_blind_audit_fails(void **state)
{
	(void)state;
	const struct dp_mechanism m = { DP_LAPLACE, 0.05, 4 };
	struct audit_claim c = { "blind", m, 20, 1e-5, 10 };
	struct rng rng;
	struct audit_effort how = {
		.draws = 10, .sessions = 10, .alpha = 0.01, .draw = nn_draw_seeded(&rng)
	};
	struct audit_report r = { 0 };
	struct err e = { 0 };
	rng_seed(&rng, 9);
	assert_int_equal(audit_suite_labels(&r, &c, AUDIT_AS_SHIPPED, &how, &e), 0);
	assert_false(r.at[0].found || r.at[1].found);
	assert_int_equal(audit_report_verdict(&r), AUDIT_NOT_RESOLVED);
	audit_report_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_interference),
		cmocka_unit_test(test_labels),
		cmocka_unit_test(test_releases),
		cmocka_unit_test(test_releases_of_a_contract),
		cmocka_unit_test(test_blind_audit_fails),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
