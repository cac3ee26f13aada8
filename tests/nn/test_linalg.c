#include "tests/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "nn/linalg.h"

static void seeded_draw(void *ctx, void *out, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = rng_u64(ctx);
		memcpy((uint8_t *)out + i, &w, n - i < 8 ? n - i : 8);
	}
}

static float *random_rows(size_t n, size_t d, uint64_t seed)
{
	struct rng r;
	rng_seed(&r, seed);
	float *x = mem_array(n * d, sizeof(float));
	for (size_t i = 0; i < n * d; i++)
		x[i] = (float)rng_normal(&r);
	return x;
}

static double orthogonality_error(const float *q, size_t rows, size_t cols)
{
	double worst = 0;
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < rows; j++) {
			double s = i == j ? -1.0 : 0.0;
			for (size_t k = 0; k < cols; k++)
				s += (double)q[i * cols + k] * (double)q[j * cols + k];
			worst = fabs(s) > worst ? fabs(s) : worst;
		}
	return worst;
}

static void test_haar(void **state)
{
	(void)state;
	struct rng r;
	rng_seed(&r, 1);
	struct nn_draw draw = { seeded_draw, &r };
	float a[33 * 33], b[33 * 33];
	assert_int_equal(nn_haar(a, 33, draw, NULL), 0);
	assert_int_equal(nn_haar(b, 33, draw, NULL), 0);
	assert_true(orthogonality_error(a, 33, 33) < 1e-5);
	assert_memory_not_equal(a, b, sizeof(a));
	assert_int_equal(nn_haar(a, 33, nn_draw_secure, NULL), 0);
	assert_true(orthogonality_error(a, 33, 33) < 1e-5);
}

/* Haar in two dimensions: the angle is uniform and half of all are reflections.
 * Without the sign fix the corner q[0] would be negative always. */
static void test_haar_is_uniform(void **state)
{
	(void)state;
	struct rng r;
	rng_seed(&r, 2);
	struct nn_draw draw = { seeded_draw, &r };
	int quadrant[4] = { 0 }, reflections = 0;
	for (int i = 0; i < 4000; i++) {
		float q[4];
		assert_int_equal(nn_haar(q, 2, draw, NULL), 0);
		quadrant[(q[0] > 0) + 2 * (q[2] > 0)]++;
		reflections += q[0] * q[3] - q[1] * q[2] < 0;
	}
	for (int k = 0; k < 4; k++)
		assert_in_range(quadrant[k], 850, 1150);
	assert_in_range(reflections, 1800, 2200);
}

static void test_normal_moments(void **state)
{
	(void)state;
	struct rng r;
	rng_seed(&r, 3);
	enum { N = 40001 };
	double *x = mem_array(N, sizeof(double)), sum = 0, square = 0, fourth = 0, pair = 0;
	nn_normal(x, N, (struct nn_draw){ seeded_draw, &r });
	for (size_t i = 0; i < N; i++) {
		sum += x[i];
		square += x[i] * x[i];
		fourth += x[i] * x[i] * x[i] * x[i];
	}
	for (size_t i = 0; i + 1 < N;
	     i += 2) /* two of one draw have nothing to do with each other */
		pair += x[i] * x[i + 1];
	assert_near(pair / (N / 2.0), 0, 0, 0.04);
	assert_near(sum / N, 0, 0, 0.03);
	assert_near(square / N, 1, 0.03, 0);
	assert_near(fourth / N, 3, 0.06, 0);
	free(x);
}

/* y = x R' for a known R with orthonormal columns or rows. */
static void check_recovery(size_t n, size_t dz, size_t dy)
{
	struct rng r;
	rng_seed(&r, 4);
	size_t big = dz > dy ? dz : dy;
	float *q = mem_array(big * big, sizeof(float)), *r0 = mem_array(dy * dz, sizeof(float));
	assert_int_equal(nn_haar(q, big, (struct nn_draw){ seeded_draw, &r }, NULL), 0);
	for (size_t i = 0; i < dy; i++)
		memcpy(r0 + i * dz, q + i * big, dz * sizeof(float));
	float *z = random_rows(n, dz, 5), *y = mem_array(n * dy, sizeof(float));
	/* for dz > dy z must lie in R's row space, else R is not the best map */
	if (dz > dy) {
		float *low = random_rows(n, dy, 6);
		for (size_t i = 0; i < n * dz; i++)
			z[i] = 0;
		for (size_t i = 0; i < n; i++)
			for (size_t k = 0; k < dy; k++)
				for (size_t j = 0; j < dz; j++)
					z[i * dz + j] += low[i * dy + k] * r0[k * dz + j];
		free(low);
	}
	nn_apply(y, z, r0, n, dy, dz);
	float *got = mem_array(dy * dz, sizeof(float));
	assert_int_equal(nn_procrustes(got, z, y, n, dz, dy, NULL), 0);
	for (size_t i = 0; i < dy * dz; i++)
		assert_near((double)got[i], (double)r0[i], 0, 1e-4);
	free(q);
	free(r0);
	free(z);
	free(y);
	free(got);
}

static void test_procrustes(void **state)
{
	(void)state;
	check_recovery(300, 16, 16);
	check_recovery(1000, 12, 20);
	check_recovery(1000, 20, 12);
	check_recovery(1, 1, 1);
}

/* All rows count, of however many blocks: the polar factor of y'z as it is written. */
static void test_procrustes_of_many_rows(void **state)
{
	(void)state;
	enum { N = 700, DZ = 5, DY = 4 };
	float *z = random_rows(N, DZ, 11), *y = random_rows(N, DY, 12), got[DY * DZ], want[DY * DZ];
	double m[DY * DZ] = { 0 };
	for (size_t i = 0; i < N; i++)
		for (size_t a = 0; a < DY; a++)
			for (size_t b = 0; b < DZ; b++)
				m[a * DZ + b] += (double)y[i * DY + a] * (double)z[i * DZ + b];
	assert_int_equal(nn_polar(want, m, DZ, DY, NULL), 0);
	assert_int_equal(nn_procrustes(got, z, y, N, DZ, DY, NULL), 0);
	for (size_t i = 0; i < DY * DZ; i++)
		assert_near((double)got[i], (double)want[i], 0, 1e-5);
	free(z);
	free(y);
}

/* |a - u diag(s) v'|^2 of a cut at `rank`; with all, what is kept is a itself. */
static double cut_off(const float *a, size_t m, size_t n, size_t rank, float *s)
{
	float u[35], v[35];
	double sum = 0;

	assert_int_equal(nn_svd(u, s, v, a, m, n, rank, NULL), 0);
	for (size_t i = 0; i < m; i++)
		for (size_t j = 0; j < n; j++) {
			double left = (double)a[i * n + j];

			for (size_t r = 0; r < rank; r++)
				left -= (double)u[i * rank + r] * (double)s[r] *
					(double)v[j * rank + r];
			sum += left * left;
		}
	return sum;
}

/* Eckart and Young: what a cut leaves out is the sum of the squares of the values it drops. */
static void test_svd(void **state)
{
	static const size_t shape[2][2] = { { 7, 5 }, { 5, 7 } };
	float a[35], all[5], s[5];

	(void)state;
	for (size_t i = 0; i < 35; i++)
		a[i] = (float)((i * i * 7 + 3 * i) % 23) - 11.0f;
	for (size_t k = 0; k < 2; k++) {
		assert_near(cut_off(a, shape[k][0], shape[k][1], 5, all), 0, 0, 1e-6);
		for (size_t rank = 1; rank < 5; rank++) {
			double dropped = 0;

			for (size_t r = rank; r < 5; r++)
				dropped += (double)all[r] * (double)all[r];
			assert_true(all[rank - 1] >= all[rank]);
			assert_near(cut_off(a, shape[k][0], shape[k][1], rank, s), dropped, 1e-4,
				    1e-4);
		}
	}
}

/* Among perturbed orthogonal maps none fits better. */
static void test_procrustes_is_best(void **state)
{
	(void)state;
	enum { N = 50, D = 6 };
	struct rng r;
	rng_seed(&r, 7);
	float *z = random_rows(N, D, 8), *y = random_rows(N, D, 9), best[D * D], q[D * D],
	      out[N * D];
	assert_int_equal(nn_procrustes(best, z, y, N, D, D, NULL), 0);
	assert_true(orthogonality_error(best, D, D) < 1e-5);
	double least = 0;
	nn_apply(out, z, best, N, D, D);
	for (size_t i = 0; i < N * D; i++)
		least += pow((double)out[i] - (double)y[i], 2);
	for (int t = 0; t < 200; t++) {
		assert_int_equal(nn_haar(q, D, (struct nn_draw){ seeded_draw, &r }, NULL), 0);
		double sum = 0;
		nn_apply(out, z, q, N, D, D);
		for (size_t i = 0; i < N * D; i++)
			sum += pow((double)out[i] - (double)y[i], 2);
		assert_true(sum > least);
	}
	free(z);
	free(y);
}

static void test_procrustes_refuses_nan(void **state)
{
	(void)state;
	struct err e = { 0 };
	float z[4] = { 1, 2, NAN, 4 }, y[4] = { 1, 2, 3, 4 }, r[4];
	assert_int_equal(nn_procrustes(r, z, y, 2, 2, 2, &e), ERR_PROTO);
	assert_non_null(strstr(e.text, "NaN"));
}

/* The step's fixed points are the orthogonal matrices, and it moves toward them. */
static void test_orthogonalize(void **state)
{
	(void)state;
	enum { D = 10 };
	struct rng r;
	rng_seed(&r, 10);
	float w[D * D];
	assert_int_equal(nn_haar(w, D, (struct nn_draw){ seeded_draw, &r }, NULL), 0);
	for (size_t i = 0; i < D * D; i++)
		w[i] *= 1.2f;
	double before = orthogonality_error(w, D, D);
	for (int i = 0; i < 1000; i++)
		nn_orthogonalize(w, D, 0.01f);
	assert_true(before > 0.4);
	assert_true(orthogonality_error(w, D, D) < 1e-4);
}

static void test_cosines(void **state)
{
	(void)state;
	const float a[6] = { 1, 0, 3, 4, 0, 0 }, b[6] = { 0, 2, 6, 8, 1, 1 };
	float c[3];
	nn_cosines(c, a, b, 3, 2);
	assert_near((double)c[0], 0, 0, 1e-7);
	assert_near((double)c[1], 1, 1e-6, 0);
	assert_true(c[2] == 0.0f);
	assert_near(nn_mean_cosine(a, b, 3, 2), 1.0 / 3.0, 1e-6, 0);
}

/* Two orthogonal pairs, k = 1: cos = 1, both neighbour means 1, so CSLS is 0;
 * with k = 2 the means halve and CSLS is 1. */
static void test_csls(void **state)
{
	(void)state;
	const float a[4] = { 1, 0, 0, 5 }, b[4] = { 2, 0, 0, 1 };
	assert_near(nn_csls(a, b, 2, 2, 1).mean, 0, 0, 1e-6);
	assert_near(nn_csls(a, b, 2, 2, 2).mean, 1, 1e-6, 0);
	const float swapped[4] = { 0, 1, 2, 0 };
	assert_near(nn_csls(a, swapped, 2, 2, 1).mean, -2, 1e-6, 0);
	assert_true(nn_csls(a, b, 2, 2, 1).nearest == 1);
	assert_true(nn_csls(a, swapped, 2, 2, 1).nearest == 0);
	assert_true(nn_csls(a, b, 0, 2, 1).nearest == 0);
	/* By the cosine y0 is nearest to both.  It is near to everything, and CSLS says so: for x1
	 * y1 has 2 (.82) - .82, y0 2 (.9) - 1; with .75 for .82 it stays y0's. */
	const float x[8] = { 1, 0, 0, 0, .9F, .43588989F, 0, 0 };
	float y[8] = { 1, 0, 0, 0, .738F, .35742971F, .57236352F, 0 };
	assert_true(nn_csls(x, y, 2, 4, 1).nearest == 1);
	y[4] = .675F;
	y[5] = .32691742F;
	y[6] = .66143783F;
	assert_true(nn_csls(x, y, 2, 4, 1).nearest == 0.5);
}

/* Mean cosine of a row to the k nearest of n. */
static double near_mean(const float *row, const float *of, size_t n, size_t d, size_t k)
{
	double sum = 0;
	bool taken[64] = { false };
	for (size_t t = 0; t < k; t++) {
		double best = -2;
		size_t at = 0;
		for (size_t j = 0; j < n; j++) {
			float c;
			nn_cosines(&c, row, of + j * d, 1, d);
			if (!taken[j] && (double)c > best) {
				best = (double)c;
				at = j;
			}
		}
		taken[at] = true;
		sum += best;
	}
	return sum / (double)k;
}

/* Rows of which one side is denser than the other: each side's neighbours count once. */
static void test_csls_by_definition(void **state)
{
	(void)state;
	enum { N = 20, D = 3, K = 4 };
	float *a = random_rows(N, D, 13), *b = random_rows(N, D, 14);
	double want = 0;
	for (size_t i = 0; i < N * D; i++)
		b[i] += i % D == 0 ? 2.0F : 0.0F;
	for (size_t i = 0; i < N; i++) {
		float c;
		nn_cosines(&c, a + i * D, b + i * D, 1, D);
		want += 2 * (double)c - near_mean(a + i * D, b, N, D, K) -
			near_mean(b + i * D, a, N, D, K);
	}
	assert_near(nn_csls(a, b, N, D, K).mean, want / N, 0, 1e-5);
	/* more neighbours than rows: all of them */
	assert_near(nn_csls(a, b, N, D, N + 5).mean, nn_csls(a, b, N, D, N).mean, 0, 0);
	free(a);
	free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_haar),
		cmocka_unit_test(test_haar_is_uniform),
		cmocka_unit_test(test_normal_moments),
		cmocka_unit_test(test_svd),
		cmocka_unit_test(test_procrustes),
		cmocka_unit_test(test_procrustes_of_many_rows),
		cmocka_unit_test(test_procrustes_is_best),
		cmocka_unit_test(test_procrustes_refuses_nan),
		cmocka_unit_test(test_orthogonalize),
		cmocka_unit_test(test_cosines),
		cmocka_unit_test(test_csls),
		cmocka_unit_test(test_csls_by_definition),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
