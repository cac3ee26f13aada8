/* tests/dp/test_audit.c - the audit passes the right mechanism and catches wrong ones. */
#include "tests/test.h"

#include "base/rng.h"
#include "dp/audit.h"
#include "dp/rdp.h"

enum { DRAWS = 300000 };

/* A mechanism as it is built, which may differ from the one that is claimed. */
struct build {
	struct dp_mechanism m;
	bool noise_off;
	struct rng rng;
};

static void draw_rng(void *ctx, void *out, size_t n)
{
	uint64_t word = rng_u64(ctx);
	assert_int_equal(n, sizeof(word));
	memcpy(out, &word, n);
}

static bool label(void *ctx, uint32_t ones)
{
	struct build *b = ctx;
	if (b->noise_off)
		return 2 * ones >= b->m.teachers;
	return dp_label_draw(&b->m, ones, draw_rng, &b->rng);
}

static struct dp_audit audit(struct dp_mechanism claim, struct dp_mechanism built, bool noise_off)
{
	struct build b = { .m = built, .noise_off = noise_off };
	struct dp_audit out;
	struct err e;
	rng_seed(&b.rng, 11);
	assert_int_equal(dp_audit_labels(&claim, label, &b, DRAWS, 0.01, &out, &e), 0);
	return out;
}

static const struct dp_mechanism laplace = { DP_LAPLACE, 0.05, 4 };
static const struct dp_mechanism gaussian = { DP_GAUSSIAN, 8, 6 };

static void right_mechanism_passes(void **state)
{
	(void)state;
	struct dp_audit a = audit(laplace, laplace, false);
	assert_true(a.passed);
	assert_near(a.accounted, 0.053479984365107146, 1e-12, 0);
	/* and the bound is near enough to mean something */
	assert_true(a.measured > 0.6 * a.accounted);
	assert_true(audit(gaussian, gaussian, false).passed);
}

/* The claim is P(1 | a) <= e^eps P(1 | b) + delta: what delta explains is no evidence. */
static void delta_is_taken_off(void **state)
{
	const uint64_t ones[2] = { 900, 100 }, draws[2] = { 1000, 1000 };
	double low = dp_share_low(900, 1000, 0.05 / 8), high = dp_share_high(100, 1000, 0.05 / 8);

	(void)state;
	for (double delta = 0; delta < 0.5; delta += 0.1)
		assert_near(dp_audit_lower(ones, draws, delta, 0.05), log((low - delta) / high),
			    1e-9, 0);
	assert_near(dp_audit_lower(ones, draws, 0.9, 0.05), 0, 0, 0);
}

enum { COUNTED = 1000 };

/* 200 labels of a thousand are 1 for each teacher that says so, and 300 more. */
static bool counted_label(void *ctx, uint32_t ones)
{
	uint64_t *drawn = ctx;

	return (*drawn)++ % COUNTED < 300 + 200 * ones;
}

/* The most of all pairs of gaps, each of which may be wrong by its share of alpha alone. */
static void pairs_share_alpha(void **state)
{
	const struct dp_mechanism two = { DP_LAPLACE, 0.05, 2 };
	const uint64_t ones[2][2] = { { 300, 500 }, { 500, 700 } }, draws[2] = { COUNTED, COUNTED };
	uint64_t drawn = 0;
	struct dp_audit a;

	(void)state;
	assert_int_equal(dp_audit_labels(&two, counted_label, &drawn, COUNTED, 0.05, &a, NULL), 0);
	assert_int_equal(drawn, 3 * COUNTED);
	assert_near(a.measured,
		    fmax(dp_audit_lower(ones[0], draws, 0, 0.05 / 64),
			 dp_audit_lower(ones[1], draws, 0, 0.05 / 64)),
		    1e-12, 0);
	assert_true(a.measured > 0 && !a.passed);
}

static void noise_off_is_caught(void **state)
{
	(void)state;
	assert_false(audit(laplace, laplace, true).passed);
	assert_false(audit(gaussian, gaussian, true).passed);
}

static void quarter_of_the_noise_is_caught(void **state)
{
	(void)state;
	struct dp_mechanism weak = laplace, narrow = gaussian;
	weak.param *= 4;
	narrow.param /= 4;
	assert_false(audit(laplace, weak, false).passed);
	assert_false(audit(gaussian, narrow, false).passed);
}

static void inverted_scale_is_caught(void **state)
{
	(void)state;
	struct dp_mechanism inverted = laplace, turned = gaussian;
	inverted.param = 1 / laplace.param;
	turned.param = 1 / gaussian.param;
	assert_false(audit(laplace, inverted, false).passed);
	assert_false(audit(gaussian, turned, false).passed);
}

/* Published table values: 5 of 10, one-sided 95 %: 0.2224 and 0.7776. */
static void clopper_pearson_values(void **state)
{
	(void)state;
	assert_near(dp_share_low(5, 10, 0.05), 0.22244, 0, 5e-6);
	assert_near(dp_share_high(5, 10, 0.05), 0.77756, 0, 5e-6);
	assert_true(dp_share_low(0, 10, 0.05) == 0 && dp_share_high(10, 10, 0.05) == 1);
	/* all of n: alpha^(1/n) */
	assert_near(dp_share_low(10, 10, 0.05), pow(0.05, 0.1), 1e-12, 0);
	assert_near(dp_share_low(1000000, 1000000, 0.05), pow(0.05, 1e-6), 1e-12, 0);
}

/* The bound covers a known share about as often as it promises. */
static void clopper_pearson_covers(void **state)
{
	(void)state;
	struct rng r;
	unsigned outside = 0;
	rng_seed(&r, 5);
	for (int i = 0; i < 2000; i++) {
		uint64_t hits = 0;
		for (int k = 0; k < 100; k++)
			hits += rng_double(&r) < 0.3;
		outside += dp_share_low(hits, 100, 0.05) > 0.3;
	}
	assert_in_range(outside, 20, 100);
}

static void audit_wants_sense(void **state)
{
	(void)state;
	struct build b = { .m = laplace };
	struct dp_audit out;
	struct err e;
	assert_int_equal(dp_audit_labels(&laplace, label, &b, 0, 0.01, &out, &e), ERR_USAGE);
	assert_int_equal(dp_audit_labels(&laplace, label, &b, 1, 0, &out, &e), ERR_USAGE);
}

/* Many teachers: only some gaps are drawn, and a sharp vote is still caught. */
static void many_teachers(void **state)
{
	(void)state;
	struct dp_mechanism claim = { DP_GAUSSIAN, 40, 250 }, narrow = { DP_GAUSSIAN, 4, 250 };
	struct build b = { .m = narrow };
	struct dp_audit out;
	struct err e;
	rng_seed(&b.rng, 2);
	assert_int_equal(dp_audit_labels(&claim, label, &b, 20000, 0.01, &out, &e), 0);
	assert_false(out.passed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(right_mechanism_passes),
		cmocka_unit_test(delta_is_taken_off),
		cmocka_unit_test(pairs_share_alpha),
		cmocka_unit_test(noise_off_is_caught),
		cmocka_unit_test(quarter_of_the_noise_is_caught),
		cmocka_unit_test(inverted_scale_is_caught),
		cmocka_unit_test(clopper_pearson_values),
		cmocka_unit_test(clopper_pearson_covers),
		cmocka_unit_test(audit_wants_sense),
		cmocka_unit_test(many_teachers),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
