/* Evidence: rarely large when all is as declared; as large as the power says when it is not. */
#include "tests/test.h"

#include "audit/evidence.h"
#include "base/mem.h"
#include "base/rng.h"
#include "nn/linalg.h"

static const struct dp_mechanism laplace = { DP_LAPLACE, 0.05, 4 };
static const struct dp_mechanism gaussian = { DP_GAUSSIAN, 40, 80 };

/* n labels whose votes have this gap, a share of them without noise. */
static double labels(const struct dp_mechanism *m, int64_t gap, double share, size_t n,
		     struct rng *r)
{
	struct nn_draw draw = nn_draw_seeded(r);
	uint32_t ones = (uint32_t)((gap + (int64_t)m->teachers) / 2);
	struct audit_votes v;
	double evidence;

	audit_votes_init(&v, m);
	for (size_t i = 0; i < n; i++)
		audit_votes_add(&v, ones,
				rng_double(r) < share ? gap > 0
						      : dp_label_draw(m, ones, draw.fn, draw.ctx));
	evidence = audit_votes_evidence(&v, NULL);
	audit_votes_release(&v);
	return evidence;
}

static double found(const struct dp_mechanism *m, int64_t gap, double share, size_t n, double alpha)
{
	enum { RUNS = 300 };
	size_t hits = 0;
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < RUNS; i++)
		hits += labels(m, gap, share, n, &r) >= -log(alpha);
	return (double)hits / RUNS;
}

static void test_as_declared(void **state)
{
	(void)state;
	assert_true(found(&laplace, 4, 0, 3000, 0.05) <= 0.05);
	assert_true(found(&laplace, 0, 0, 3000, 0.05) <= 0.05);
	assert_true(found(&gaussian, 20, 0, 3000, 0.05) <= 0.05);
	assert_true(found(&gaussian, -80, 0, 3000, 0.05) <= 0.05);
}

/* 300 runs hit a share of p within three deviations; the power leaves repeats out, so more may be
 * found. */
static void near_power(const struct dp_mechanism *m, int64_t gap, double share, size_t n)
{
	double power = audit_votes_power(m, gap, n, share, 1e-3);
	double seen = found(m, gap, share, n, 1e-3);

	assert_true(power > 0.05 && power < 0.999);
	assert_in_range((uint64_t)(1000 * seen), (uint64_t)(1000 * fmax(power - 0.09, 0)),
			(uint64_t)(1000 * fmin(power + 0.12, 1)));
}

static void test_power(void **state)
{
	(void)state;
	near_power(&laplace, 4, 0.1, 3000);
	near_power(&laplace, 4, 0.1, 5000);
	near_power(&laplace, -2, 0.3, 400);
	near_power(&gaussian, 20, 0.1, 5000);
	assert_true(audit_votes_power(&laplace, 4, 1 << 21, 0.01, 1e-8) > 1 - 1e-6);
	assert_true(audit_votes_power(&laplace, 4, 1 << 16, 0.01, 1e-8) < 1e-3);
	assert_true(audit_votes_power(&laplace, 4, 10, 1, 1e-8) == 0);
}

/* One random word for two labels each: their shares are right, and still it is found. */
static void test_repeats(void **state)
{
	struct audit_votes v;
	const char *likeliest;
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	audit_votes_init(&v, &laplace);
	for (size_t i = 0; i < 2000; i++) {
		struct nn_draw draw = nn_draw_seeded(&r);
		bool label = dp_label_draw(&laplace, 2, draw.fn, draw.ctx);

		audit_votes_add(&v, 2, label);
		audit_votes_add(&v, 2, label);
	}
	assert_true(audit_votes_evidence(&v, &likeliest) > 100);
	assert_string_equal(likeliest, "noise is used for two labels");
	audit_votes_release(&v);
}

/* n numbers of this share of the declared deviation, and a share of them without any. */
static double numbers(double scale, double share, size_t n, struct rng *r)
{
	struct audit_noise v = { 0 };
	double *x = mem_array(n, sizeof(*x)), evidence;

	nn_normal(x, n, nn_draw_seeded(r));
	for (size_t i = 0; i < n; i++)
		audit_noise_add(&v, rng_double(r) < share ? 0 : llrint(scale * 2048 * x[i]), 2048);
	assert_int_equal(audit_noise_repeats(&v), 0);
	evidence = audit_noise_evidence(&v, NULL);
	audit_noise_release(&v);
	free(x);
	return evidence;
}

static double noise_found(double scale, double share, size_t n, double alpha)
{
	enum { RUNS = 200 };
	size_t hits = 0;
	struct rng r;

	rng_seed(&r, 7);
	for (size_t i = 0; i < RUNS; i++)
		hits += numbers(scale, share, n, &r) >= -log(alpha);
	return (double)hits / RUNS;
}

static void test_noise(void **state)
{
	double power = audit_noise_power_scale(1200, 0.9, 1e-3), seen;

	(void)state;
	assert_true(noise_found(1, 0, 1000, 0.05) <= 0.05);
	assert_true(noise_found(1.2, 0, 1000, 0.05) == 0); /* more noise is no fault */
	seen = noise_found(0.9, 0, 1200, 1e-3);
	assert_true(power > 0.3 && power < 0.99);
	assert_true(seen > power - 0.1 && seen < power + 0.12);
	power = audit_noise_power_share(1000, 0.01, 1e-3);
	assert_true(power > 0.2 && power < 0.99);
	seen = noise_found(1, 0.01, 1000, 1e-3);
	assert_true(power > 0.2 && power < 0.99);
	assert_true(seen > power - 0.1 && seen < power + 0.15);
}

static void test_noise_again(void **state)
{
	struct audit_noise v = { 0 };
	struct rng r;
	double x[4 * AUDIT_RUN];

	(void)state;
	rng_seed(&r, 8);
	nn_normal(x, 4 * AUDIT_RUN, nn_draw_seeded(&r));
	for (size_t i = 0; i < 8 * AUDIT_RUN; i++)
		audit_noise_add(&v, llrint(3000 * x[i % (4 * AUDIT_RUN)]), 3000);
	assert_int_equal(audit_noise_repeats(&v), 4);
	audit_noise_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_declared), cmocka_unit_test(test_power),
		cmocka_unit_test(test_repeats),	    cmocka_unit_test(test_noise),
		cmocka_unit_test(test_noise_again),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
