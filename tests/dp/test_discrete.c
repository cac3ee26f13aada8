/* tests/dp/test_discrete.c - integer noise against its exact probabilities, and the lattice's
 * sensitivities by brute force.  Draws are seeded: a test that passes, passes always. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "dp/discrete.h"
#include "dp/gaussian.h"
#include "dp/lattice.h"

static void seeded(void *ctx, void *out, size_t n)
{
	uint8_t *at = out;

	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = rng_u64(ctx);

		memcpy(at + i, &w, n - i < 8 ? n - i : 8);
	}
}

struct source {
	struct rng rng;
	struct dp_bits bits;
};

static struct dp_bits *open_source(struct source *s, uint64_t seed)
{
	rng_seed(&s->rng, seed);
	dp_bits_init(&s->bits, seeded, &s->rng);
	return &s->bits;
}

/* ---- against exact probabilities ---- */

enum { SIDE = 12, CELLS = 2 * SIDE + 1, DRAWS = 200000 };

/* Chi-square of DRAWS draws in -SIDE..SIDE; cells that expect fewer than 5 are pooled with
 * whatever falls outside. */
static double chi_square(const uint64_t seen[CELLS], const double p[CELLS], int *freedom)
{
	double sum = 0, rest_p = 1, rest_seen = DRAWS;

	*freedom = 0;
	for (int i = 0; i < CELLS; i++) {
		double want = DRAWS * p[i], off = (double)seen[i] - want;

		if (want < 5)
			continue;
		sum += off * off / want;
		rest_p -= p[i];
		rest_seen -= (double)seen[i];
		++*freedom;
	}
	if (DRAWS * rest_p >= 5)
		sum += pow(rest_seen - DRAWS * rest_p, 2) / (DRAWS * rest_p);
	return sum;
}

/* p = 1e-4 in the upper tail, by Wilson and Hilferty's cube root. */
static double chi_limit(int freedom)
{
	double a = 2.0 / (9.0 * freedom);

	return freedom * pow(1 - a + 3.719 * sqrt(a), 3);
}

static double gaussian_weight(double x, double scale)
{
	return exp(-x * x / (2 * scale));
}

static double laplace_weight(double x, double scale)
{
	return exp(-fabs(x) / scale);
}

static void exact_probabilities(double (*weight)(double, double), double scale, double p[CELLS])
{
	double total = 0;

	for (int x = -400; x <= 400; x++)
		total += weight(x, scale);
	for (int i = 0; i < CELLS; i++)
		p[i] = weight(i - SIDE, scale) / total;
}

static void count_draws(bool gaussian, uint64_t scale, uint64_t seed, uint64_t seen[CELLS])
{
	struct source s;
	struct dp_bits *b = open_source(&s, seed);

	memset(seen, 0, CELLS * sizeof(*seen));
	for (int k = 0; k < DRAWS; k++) {
		int64_t x =
			gaussian ? dp_discrete_gaussian(b, scale) : dp_discrete_laplace(b, scale);

		if (x >= -SIDE && x <= SIDE)
			seen[x + SIDE]++;
	}
}

static void check_draws(bool gaussian, uint64_t scale)
{
	uint64_t seen[CELLS];
	double p[CELLS], wrong[CELLS], chi;
	int freedom;

	exact_probabilities(gaussian ? gaussian_weight : laplace_weight, (double)scale, p);
	count_draws(gaussian, scale, 100 + scale, seen);
	chi = chi_square(seen, p, &freedom);
	if (!(freedom >= 2 && chi < chi_limit(freedom)))
		fail_msg("scale %d: chi-square %g of %d", (int)scale, chi, freedom);
	/* the same draws are far from a scale of a tenth more: the test can tell */
	exact_probabilities(gaussian ? gaussian_weight : laplace_weight, 1.1 * (double)scale,
			    wrong);
	chi = chi_square(seen, wrong, &freedom);
	assert_true(chi > 2 * chi_limit(freedom));
}

static void gaussian_is_exact(void **state)
{
	(void)state;
	check_draws(true, 1);
	check_draws(true, 2);
	check_draws(true, 7);
	check_draws(true, 16);
}

static void laplace_is_exact(void **state)
{
	(void)state;
	check_draws(false, 1);
	check_draws(false, 3);
}

static void exponentials_are_exact(void **state)
{
	static const uint64_t fractions[][2] = { { 0, 1 },	   { 1, 3 },
						 { 1, 1 },	   { 7, 3 },
						 { 5, 1 },	   { UINT64_MAX / 2, UINT64_MAX },
						 { UINT64_MAX, 1 } };
	enum { TRIALS = 100000 };

	(void)state;
	for (size_t i = 0; i < sizeof(fractions) / sizeof(*fractions); i++) {
		struct source s;
		struct dp_bits *b = open_source(&s, 50 + i);
		double p = exp(-(double)fractions[i][0] / (double)fractions[i][1]), hits = 0;

		for (int k = 0; k < TRIALS; k++)
			hits += dp_bernoulli_exp(b, fractions[i][0], fractions[i][1]);
		assert_near(hits / TRIALS, p, 0, 4.5 * sqrt(p * (1 - p) / TRIALS));
	}
}

static void uniform_is_uniform(void **state)
{
	static const uint64_t n[] = { 1, 2, 3, 7, 8, 9 };

	(void)state;
	for (size_t i = 0; i < sizeof(n) / sizeof(*n); i++) {
		struct source s;
		struct dp_bits *b = open_source(&s, 70 + i);
		double seen[9] = { 0 }, p = 1 / (double)n[i];

		for (int k = 0; k < 90000; k++) {
			uint64_t x = dp_uniform_below(b, n[i]);

			assert_true(x < n[i]);
			seen[x]++;
		}
		for (uint64_t x = 0; x < n[i]; x++)
			assert_near(seen[x] / 90000, p, 0, 4.5 * sqrt(p * (1 - p) / 90000));
	}
}

/* ---- moments at the sizes that releases have ---- */

static void moments_of(uint64_t sigma2, int draws)
{
	struct source s;
	struct dp_bits *b = open_source(&s, sigma2 % 1000);
	double sigma = sqrt((double)sigma2), one = 0, two = 0, three = 0, four = 0, root;

	for (int k = 0; k < draws; k++) {
		double x = (double)dp_discrete_gaussian(b, sigma2) / sigma;

		one += x / draws;
		two += x * x / draws;
		three += x * x * x / draws;
		four += x * x * x * x / draws;
	}
	root = sqrt(draws);
	assert_near(one, 0, 0, 4.5 / root);
	assert_near(two, 1, 0, 4.5 * sqrt(2) / root);
	assert_near(three, 0, 0, 4.5 * sqrt(15) / root);
	assert_near(four, 3, 0, 4.5 * sqrt(96) / root);
}

static void moments_are_those_of_a_gaussian(void **state)
{
	(void)state;
	moments_of(10000, 40000);
	moments_of(UINT64_C(1) << 40, 40000);
	moments_of(DP_SIGMA2_MAX, 40000);
	moments_of(DP_SIGMA2_MAX - 12345, 40000);
}

static void the_same_bits_give_the_same_noise(void **state)
{
	struct rng a, b;
	int64_t x[100] = { 0 }, y[100] = { 0 };

	(void)state;
	rng_seed(&a, 5);
	rng_seed(&b, 5);
	assert_int_equal(dp_lattice_noise(x, 100, 12345, seeded, &a, NULL), 0);
	assert_int_equal(dp_lattice_noise(y, 100, 12345, seeded, &b, NULL), 0);
	assert_memory_equal(x, y, sizeof(x));
	assert_int_equal(dp_lattice_noise(y, 100, 12345, seeded, &b, NULL), 0);
	assert_memory_not_equal(x, y, sizeof(x));
}

/* ---- the lattice ---- */

/* Rows that strain the bound: long, short, one-sided, all halves, not finite. */
static void strain(float *row, size_t dim, const struct dp_lattice *g, int kind, struct rng *r)
{
	for (size_t i = 0; i < dim; i++) {
		double normal = rng_normal(r);

		row[i] = kind == 0   ? (float)normal
			 : kind == 1 ? (float)(1e5 * normal)
			 : kind == 2 ? (float)(i == 0 ? -g->clip : 0)
			 : kind == 3 ? (float)(g->clip / sqrt((double)dim))
			 : kind == 4 ? (float)((floor(40 * normal) + 0.5) * g->step)
				     : (float)(1e-9 * normal);
	}
}

static uint64_t squares_of(const int32_t *x, size_t n)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (uint64_t)((int64_t)x[i] * x[i]);
	return sum;
}

static void rows_stay_within_the_radius(void **state)
{
	static const size_t dims[] = { 1, 2, 3, 8, 63, 128, 1023, DP_LATTICE_DIM_MAX };
	static const uint32_t radii[] = { 256, 4096, DP_LATTICE_RADIUS };
	struct rng r;
	float row[DP_LATTICE_DIM_MAX];
	int32_t k[DP_LATTICE_DIM_MAX];

	(void)state;
	rng_seed(&r, 3);
	for (size_t i = 0; i < sizeof(dims) / sizeof(*dims) * 3; i++) {
		struct dp_lattice g;

		dp_lattice_init(&g, dims[i / 3], 0.7, radii[i % 3]);
		for (int kind = 0; kind < 6; kind++) {
			strain(row, g.dim, &g, kind, &r);
			dp_lattice_put(&g, row, 1, k);
			assert_true(squares_of(k, g.dim) <= (uint64_t)g.radius * g.radius);
			if (kind == 1 || kind == 2) /* a long row uses what there is */
				assert_true(squares_of(k, g.dim) >
					    (uint64_t)(0.7 * g.radius * 0.7 * g.radius));
		}
	}
}

static void values_come_back(void **state)
{
	struct dp_lattice g;
	float row[4] = { 0.5F, -0.25F, 0.125F, 0 }, bad[4] = { NAN, 1, 1, 1 };
	int32_t k[4];

	(void)state;
	dp_lattice_init(&g, 4, 1, DP_LATTICE_RADIUS);
	dp_lattice_put(&g, row, 1, k);
	for (int i = 0; i < 4; i++)
		assert_near(k[i] * g.step, (double)row[i], 0, g.step);
	dp_lattice_put(&g, bad, 1, k);
	assert_int_equal(squares_of(k, 4), 0);
}

/* || M - M' ||_F^2 in whole numbers, M = sum of y_i z_i' and one y replaced. */
static double change_of_product(const int32_t *y, const int32_t *other, const int32_t *z, size_t dy,
				size_t dz)
{
	double sum = 0;

	for (size_t a = 0; a < dy; a++)
		for (size_t b = 0; b < dz; b++)
			sum += pow((double)((int64_t)(y[a] - other[a]) * z[b]), 2);
	return sum;
}

static double change_of_rows(const int32_t *y, const int32_t *other, size_t d)
{
	double sum = 0;

	for (size_t a = 0; a < d; a++)
		sum += pow((double)(y[a] - other[a]), 2);
	return sum;
}

/* Whatever a row is replaced by: the bounds hold, and opposite long rows come near them. */
static void sensitivity_by_brute_force(void **state)
{
	enum { DY = 6, DZ = 9, ROWS = 60 };
	struct dp_lattice gy, gz;
	struct rng r;
	float y[ROWS][DY], z[ROWS][DZ];
	int32_t ky[ROWS][DY], kz[ROWS][DZ];
	double rows = 0, product = 0, s_rows, s_product;

	(void)state;
	rng_seed(&r, 9);
	dp_lattice_init(&gy, DY, 1.5, 1024);
	dp_lattice_init(&gz, DZ, 1.5, 1024);
	for (int i = 0; i < ROWS; i++) {
		strain(y[i], DY, &gy, i % 6, &r);
		strain(z[i], DZ, &gz, (i / 2) % 6, &r);
	}
	y[2][0] = 1e4F; /* opposite to the one-sided rows */
	dp_lattice_put(&gy, &y[0][0], ROWS, &ky[0][0]);
	dp_lattice_put(&gz, &z[0][0], ROWS, &kz[0][0]);
	for (int i = 0; i < ROWS; i++)
		for (int j = 0; j < ROWS; j++) {
			rows = fmax(rows, change_of_rows(ky[i], ky[j], DY));
			for (int k = 0; k < ROWS; k++)
				product = fmax(product,
					       change_of_product(ky[i], ky[j], kz[k], DY, DZ));
		}
	s_rows = (double)dp_lattice_sensitivity_rows(&gy);
	s_product = (double)dp_lattice_sensitivity_product(&gy, &gz);
	assert_true(rows <= s_rows * s_rows && rows > 0.98 * s_rows * s_rows);
	assert_true(product <= s_product * s_product && product > 0.98 * s_product * s_product);
}

/* Methods 3.6: sigma = 3.02 C^2 for the map at (2.73, 1e-5), of sensitivity 2 C^2; on the
 * lattice it is that and what rounding takes, never less. */
static void sigma_of_the_released_map(void **state)
{
	double c = 1.3, sigma = dp_gaussian_sigma(2 * c * c, 2.73, 1e-5), on_lattice;
	double z = sigma / (2 * c * c);
	struct dp_lattice y, x;

	(void)state;
	assert_near(sigma, 3.02 * c * c, 0.002, 0);
	dp_lattice_init(&y, 128, c, dp_lattice_radius_product(z));
	dp_lattice_init(&x, 100, c, dp_lattice_radius_product(z));
	on_lattice = sqrt((double)dp_lattice_sigma2(z, dp_lattice_sensitivity_product(&y, &x))) *
		     y.step * x.step;
	assert_true(on_lattice >= sigma);
	assert_near(on_lattice, sigma, 0.005, 0);
}

static void sigma2_is_never_too_small(void **state)
{
	static const double z[] = { DP_MULTIPLIER_MIN, 0.3, 1.51, 7, 250, DP_MULTIPLIER_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(z) / sizeof(*z); i++) {
		uint32_t k = dp_lattice_radius_product(z[i]);
		uint64_t s[] = { 1, 2 * (uint64_t)DP_LATTICE_RADIUS, 2 * (uint64_t)k * k };

		assert_true(k >= 256 && k <= DP_LATTICE_RADIUS);
		for (size_t j = 0; j < 3; j++) {
			long double want = (long double)z[i] * (long double)s[j];
			uint64_t got = dp_lattice_sigma2(z[i], s[j]);

			want *= want;
			assert_true((long double)got >= want);
			assert_true((long double)got <= want * (1 + 1e-6L) + 1);
			assert_true(got <= DP_SIGMA2_MAX);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(uniform_is_uniform),
		cmocka_unit_test(exponentials_are_exact),
		cmocka_unit_test(laplace_is_exact),
		cmocka_unit_test(gaussian_is_exact),
		cmocka_unit_test(moments_are_those_of_a_gaussian),
		cmocka_unit_test(the_same_bits_give_the_same_noise),
		cmocka_unit_test(rows_stay_within_the_radius),
		cmocka_unit_test(values_come_back),
		cmocka_unit_test(sensitivity_by_brute_force),
		cmocka_unit_test(sigma_of_the_released_map),
		cmocka_unit_test(sigma2_is_never_too_small),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
