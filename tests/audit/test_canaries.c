/* Audit C: a Gaussian release with the noise it claims passes, with a quarter of it fails. */
#include "tests/test.h"

#include "audit/canaries.h"
#include "dp/gaussian.h"
#include "nn/linalg.h"

enum { CANARIES = 1024 };
static const double delta = 1e-5, p = 0.01;
static struct rng rng;

/* Canary i is the number sign[i], changed by 2 between neighbours; noise of this deviation. */
static int release(void *ctx, const int8_t *sign, size_t m, double *score, struct err *e)
{
	const double *sigma = ctx;
	if (*sigma < 0)
		return err_set(e, ERR_FAIL, "no release");
	nn_normal(score, m, nn_draw_seeded(&rng));
	for (size_t i = 0; i < m; i++)
		score[i] = sign[i] + *sigma * score[i];
	return 0;
}

static struct audit_canaries run(double sigma)
{
	struct audit_canaries c;
	struct err e = { 0 };
	rng_seed(&rng, 8);
	assert_int_equal(
		audit_canaries(release, &sigma, CANARIES, delta, p, nn_draw_seeded(&rng), &c, &e),
		0);
	assert_int_equal(c.canaries, CANARIES);
	assert_true(c.correct <= c.guesses && c.guesses <= CANARIES);
	return c;
}

static void claimed_noise_passes(void **state)
{
	(void)state;
	double sigma = dp_gaussian_sigma(2, 2.73, delta);
	struct audit_canaries c = run(sigma);
	assert_true(c.lower <= 2.73);
	assert_true(c.lower > 0.1);
}

static void less_noise_is_found(void **state)
{
	(void)state;
	double sigma = dp_gaussian_sigma(2, 2.73, delta);
	assert_true(run(sigma / 4).lower > 2.73);
	assert_true(run(0).lower > 4);
}

static void much_noise_says_nothing(void **state)
{
	(void)state;
	assert_true(run(1e6).lower < 0.5);
}

static void wants_sense(void **state)
{
	(void)state;
	struct audit_canaries c;
	struct err e = { 0 };
	double sigma = 1, none = -1;
	assert_int_equal(audit_canaries(release, &sigma, 15, delta, p, nn_draw_secure, &c, &e),
			 ERR_USAGE);
	assert_int_equal(audit_canaries(release, &sigma, 64, delta, 0, nn_draw_secure, &c, &e),
			 ERR_USAGE);
	assert_int_equal(audit_canaries(release, &none, 64, delta, p, nn_draw_secure, &c, &e),
			 ERR_FAIL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(claimed_noise_passes),
		cmocka_unit_test(less_noise_is_found),
		cmocka_unit_test(much_noise_says_nothing),
		cmocka_unit_test(wants_sense),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
