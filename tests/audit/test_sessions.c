/* Noise off whole sessions and trainings: as declared in what ships, missing where it was taken
 * away; and what a source of random bytes that repeats itself looks like. */
#include "tests/test.h"

#include "audit/sessions.h"
#include "audit/suite.h"
#include "base/rng.h"
#include "base/secret.h"

static const double alpha = 1e-9;
static struct rng rng;

static struct audit_build build(double bare_labels, bool half, bool bare_block)
{
	rng_seed(&rng, 11);
	return (struct audit_build){ .draw = nn_draw_seeded(&rng),
				     .bare_labels = bare_labels,
				     .noise = half ? audit_half_noise : NULL,
				     .bare_block = bare_block };
}

static bool labels_wrong(struct dp_mechanism m, double bare, uint64_t n)
{
	struct audit_build b = build(bare, false, false);
	struct audit_votes v;
	struct err e = { 0 };
	bool wrong;

	audit_votes_init(&v, &m);
	assert_int_equal(audit_read_labels(&b, n, &v, &e), 0);
	assert_true(v.labels >= n);
	wrong = audit_votes_evidence(&v, NULL) >= -log(alpha);
	audit_votes_release(&v);
	return wrong;
}

static void test_labels(void **state)
{
	const struct dp_mechanism laplace = { DP_LAPLACE, 0.05, 4 },
				  gauss = { DP_GAUSSIAN, 40, 20 };

	(void)state;
	assert_false(labels_wrong(laplace, 0, 100000));
	assert_false(labels_wrong(gauss, 0, 30000));
	assert_true(labels_wrong(laplace, 1, 4096));
	assert_true(labels_wrong(laplace, 0.3, 4096));
	assert_true(labels_wrong(laplace, 0.05, 150000));
	assert_true(labels_wrong(gauss, 0.3, 8192));
}

/* Votes of all kinds come up, so all of the mechanism is looked at. */
static void test_votes_vary(void **state)
{
	const struct dp_mechanism m = { DP_LAPLACE, 0.05, 4 };
	struct audit_build b = build(0, false, false);
	struct audit_votes v;
	struct err e = { 0 };

	(void)state;
	audit_votes_init(&v, &m);
	assert_int_equal(audit_read_labels(&b, 5 * AUDIT_SESSION_LABELS / 2, &v, &e), 0);
	assert_int_equal(v.labels, 5 * AUDIT_SESSION_LABELS / 2);
	for (size_t ones = 0; ones <= 4; ones++)
		assert_true(v.count[2 * ones] + v.count[2 * ones + 1] > 0);
	audit_votes_release(&v);
}

typedef int read_fn(const struct audit_build *b, double multiplier, uint64_t sessions,
		    struct audit_noise *out, struct err *e);

static int tables(const struct audit_build *b, double multiplier, uint64_t steps,
		  struct audit_noise *out, struct err *e)
{
	return audit_read_training(b, multiplier, 0.5, steps, out, e);
}

static bool noise_wrong(read_fn *read, double multiplier, struct audit_build b, double *deviation)
{
	struct audit_noise v = { 0 };
	struct err e = { 0 };
	bool wrong;

	assert_int_equal(read(&b, multiplier, 2, &v, &e), 0);
	assert_true(v.numbers == 2 * AUDIT_RELEASE_NUMBERS || v.numbers == 2 * AUDIT_TABLE_NUMBERS);
	*deviation = sqrt(v.squares / (double)v.numbers);
	wrong = audit_noise_evidence(&v, NULL) >= -log(alpha) || audit_noise_repeats(&v) > 0;
	audit_noise_release(&v);
	return wrong;
}

static void test_releases(void **state)
{
	read_fn *const reads[] = { audit_read_map, audit_read_rows };
	const double multiplier[] = { 0.3, 1.9, 60 };
	double deviation;

	(void)state;
	for (size_t i = 0; i < 2; i++)
		for (size_t k = 0; k < 3; k++) {
			assert_false(noise_wrong(reads[i], multiplier[k], build(0, false, false),
						 &deviation));
			assert_near(deviation, 1, 0, 0.05);
			assert_true(noise_wrong(reads[i], multiplier[k], build(0, true, false),
						&deviation));
			assert_near(deviation, 0.5, 0, 0.03);
		}
}

static void test_tables(void **state)
{
	const double multiplier[] = { 0.7, 3, 40 };
	double deviation;

	(void)state;
	for (size_t k = 0; k < 3; k++) {
		assert_false(
			noise_wrong(tables, multiplier[k], build(0, false, false), &deviation));
		assert_true(deviation > 0.98);
		assert_true(noise_wrong(tables, multiplier[k], build(0, false, true), &deviation));
		assert_true(deviation < 0.9);
	}
}

/* ---- the source ---- */

static struct audit_fingerprint print_of(uint64_t seed)
{
	struct audit_build b = build(0, false, false);
	struct audit_fingerprint f;
	struct err e = { 0 };

	rng_seed(&rng, seed);
	assert_int_equal(audit_fingerprint(&b, &f, &e), 0);
	return f;
}

static void test_fingerprints(void **state)
{
	struct audit_fingerprint one = print_of(1), again = print_of(1), other = print_of(2), mixed;
	const char *part[AUDIT_FINGERPRINT_PARTS];

	(void)state;
	assert_int_equal(audit_fingerprint_common(&one, &again, part), AUDIT_FINGERPRINT_PARTS);
	assert_int_equal(audit_fingerprint_common(&one, &other, part), 0);
	mixed = other;
	mixed.rows = one.rows;
	assert_int_equal(audit_fingerprint_common(&one, &mixed, part), 1);
	assert_string_equal(part[0], "the noise of rows");
	mixed = other;
	memcpy(mixed.labels, one.labels, sizeof(mixed.labels));
	memset(mixed.labels, 0, 64); /* votes differ: so do some of the labels */
	assert_int_equal(audit_fingerprint_common(&one, &mixed, part), 1);
	assert_string_equal(part[0], "the noise of labels");
}

static void test_source_line(void **state)
{
	struct audit_fingerprint other[2] = { print_of(1), print_of(2) };
	struct audit_build shipped = { .draw = { secret_draw, NULL } };
	struct audit_effort how = { .alpha = alpha };
	struct audit_report r = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(audit_suite_source(&r, other, 2, &shipped, &how, &e), 0);
	assert_int_equal(audit_report_verdict(&r), AUDIT_PASSED);
	other[1] = other[0];
	assert_int_equal(audit_suite_source(&r, other, 2, &shipped, &how, &e), 0);
	assert_int_equal(audit_report_verdict(&r), AUDIT_FAILED);
	audit_report_release(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels),	     cmocka_unit_test(test_votes_vary),
		cmocka_unit_test(test_releases),     cmocka_unit_test(test_tables),
		cmocka_unit_test(test_fingerprints), cmocka_unit_test(test_source_line),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
