/* nn/linalg.c - Haar rotations, Procrustes, MUSE's step, cosines. */
#include <assert.h>
#include "nn/linalg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>
#include <sodium.h>

#include "base/mem.h"
#include "base/secret.h"
#include "nn/lapack.h"
#include "nn/mlp.h"

enum { BLOCK = 256 }; /* rows widened to double at once */

const struct nn_draw nn_draw_secure = { secret_draw, NULL };

static void seeded_draw(void *ctx, void *out, size_t n)
{
	for (size_t i = 0; i < n; i += 8) {
		uint64_t w = rng_u64(ctx);
		memcpy((uint8_t *)out + i, &w, n - i < 8 ? n - i : 8);
	}
}

struct nn_draw nn_draw_seeded(struct rng *r)
{
	return (struct nn_draw){ seeded_draw, r };
}

/* Uniform in (0, 1]: 53 bits, never 0, so that its logarithm is finite. */
static double uniform(uint64_t word)
{
	return (double)((word >> 11) + 1) * 0x1p-53;
}

void nn_normal(double *out, size_t n, struct nn_draw draw)
{
	assert(draw.fn != NULL);
	for (size_t i = 0; i < n; i += 2) {
		uint64_t w[2];
		draw.fn(draw.ctx, w, sizeof(w));
		double r = sqrt(-2.0 * log(uniform(w[0])));
		double angle = 6.283185307179586 * uniform(w[1]);
		out[i] = r * cos(angle);
		if (i + 1 < n)
			out[i + 1] = r * sin(angle);
		sodium_memzero(w, sizeof(w));
	}
}

int nn_haar(float *q, size_t d, struct nn_draw draw, struct err *e)
{
	assert(d > 0 && d <= INT32_MAX);
	nn_blas_single();
	double *a = mem_array(d * d, sizeof(double)),
	       *orthogonal = mem_array(d * d, sizeof(double));
	double *r = mem_array(d, sizeof(double));
	nn_normal(a, d * d, draw);
	int rc = nn_lapack_qr(a, orthogonal, r, d);
	for (size_t i = 0; rc == 0 && i < d; i++)
		for (size_t j = 0; j < d; j++)
			q[i * d + j] =
				(float)(r[j] < 0 ? -orthogonal[i * d + j] : orthogonal[i * d + j]);
	sodium_memzero(a, d * d * sizeof(double));
	sodium_memzero(orthogonal, d * d * sizeof(double));
	free(a);
	sodium_memzero(r, d * sizeof(double));
	free(orthogonal);
	free(r);
	return rc == 0 ? 0 : err_set(e, ERR_FAIL, "QR decomposition of size %zu failed", d);
}

static void widen(double *out, const float *in, size_t n)
{
	for (size_t i = 0; i < n; i++)
		out[i] = (double)in[i];
}

static bool all_finite(const double *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

/* m [dy x dz] = y' z, in double, BLOCK rows at a time. */
static void cross_product(double *m, const float *z, const float *y, size_t n, size_t dz, size_t dy)
{
	double *zb = mem_array(BLOCK * dz, sizeof(double)),
	       *yb = mem_array(BLOCK * dy, sizeof(double));
	for (size_t at = 0; at < n; at += BLOCK) {
		size_t k = n - at < BLOCK ? n - at : BLOCK;
		widen(zb, z + at * dz, k * dz);
		widen(yb, y + at * dy, k * dy);
		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)dy, (int)dz, (int)k, 1.0,
			    yb, (int)dy, zb, (int)dz, 1.0, m, (int)dz);
	}
	free(zb);
	free(yb);
}

/* r = U V' of the economy SVD of m [dy x dz]. */
static int polar(float *r, const double *m, size_t dz, size_t dy)
{
	size_t k = dz < dy ? dz : dy;
	double *u = mem_array(dy * k, sizeof(double)), *vt = mem_array(k * dz, sizeof(double));
	double *s = mem_array(k, sizeof(double)), *out = mem_array(dy * dz, sizeof(double));
	int rc = nn_lapack_svd(m, dy, dz, u, s, vt);
	if (rc == 0)
		cblas_dgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)dy, (int)dz, (int)k,
			    1.0, u, (int)k, vt, (int)dz, 0.0, out, (int)dz);
	for (size_t i = 0; rc == 0 && i < dy * dz; i++)
		r[i] = (float)out[i];
	free(u);
	free(vt);
	free(s);
	free(out);
	return rc;
}

int nn_svd(float *u, float *s, float *v, const float *a, size_t m, size_t n, size_t rank,
	   struct err *e)
{
	size_t k = m < n ? m : n;
	double *wide = mem_array(m * n, sizeof(double)), *sv = mem_array(k, sizeof(double));
	double *left = mem_array(m * k, sizeof(double)), *right = mem_array(k * n, sizeof(double));
	int rc;

	assert(m > 0 && n > 0 && rank <= (m < n ? m : n));
	assert(rank <= k);
	widen(wide, a, m * n);
	rc = all_finite(wide, m * n) ? nn_lapack_svd(wide, m, n, left, sv, right) : -1;
	for (size_t r = 0; rc == 0 && r < rank; r++) {
		s[r] = (float)sv[r];
		for (size_t i = 0; i < m; i++)
			u[i * rank + r] = (float)left[i * k + r];
		for (size_t j = 0; j < n; j++)
			v[j * rank + r] = (float)right[r * n + j];
	}
	free(wide);
	free(sv);
	free(left);
	free(right);
	return rc == 0 ? 0 : err_set(e, ERR_FAIL, "LAPACK found no singular values");
}

int nn_polar(float *r, const double *m, size_t dz, size_t dy, struct err *e)
{
	assert(dz > 0 && dy > 0);
	nn_blas_single();
	if (!all_finite(m, dy * dz))
		return err_set(e, ERR_PROTO, "rows to be aligned hold a NaN or an infinity");
	if (polar(r, m, dz, dy) != 0)
		return err_set(e, ERR_FAIL, "SVD of a %zu x %zu matrix failed", dy, dz);
	return 0;
}

int nn_procrustes(float *r, const float *z, const float *y, size_t n, size_t dz, size_t dy,
		  struct err *e)
{
	assert(dz > 0 && dy > 0);
	nn_blas_single();
	double *m = mem_array(dy * dz, sizeof(double));
	cross_product(m, z, y, n, dz, dy);
	int rc = nn_polar(r, m, dz, dy, e);
	free(m);
	return rc;
}

void nn_orthogonalize(float *w, size_t d, float beta)
{
	assert(d > 0);
	nn_blas_single();
	int n = (int)d;
	float *g = mem_aligned(d * d, sizeof(float)), *gw = mem_aligned(d * d, sizeof(float));
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n, n, n, 1.0f, w, n, w, n, 0.0f, g, n);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n, n, n, 1.0f, g, n, w, n, 0.0f, gw,
		    n);
	for (size_t i = 0; i < d * d; i++)
		w[i] = (1.0f + beta) * w[i] - beta * gw[i];
	free(g);
	free(gw);
}

void nn_apply(float *out, const float *x, const float *w, size_t n, size_t rows_w, size_t cols_w)
{
	nn_blas_single();
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)rows_w, (int)cols_w, 1.0f,
		    x, (int)cols_w, w, (int)cols_w, 0.0f, out, (int)rows_w);
}

static double dot(const float *a, const float *b, size_t d)
{
	double sum = 0;
	for (size_t i = 0; i < d; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

void nn_cosines(float *out, const float *a, const float *b, size_t n, size_t d)
{
	for (size_t i = 0; i < n; i++) {
		const float *x = a + i * d, *y = b + i * d;
		double norms = sqrt(dot(x, x, d)) * sqrt(dot(y, y, d));
		out[i] = norms > 0 ? (float)(dot(x, y, d) / norms) : 0.0f;
	}
}

double nn_mean_cosine(const float *a, const float *b, size_t n, size_t d)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		float c;
		nn_cosines(&c, a + i * d, b + i * d, 1, d);
		sum += (double)c;
	}
	return n > 0 ? sum / (double)n : 0;
}

/* Copy with every row at length 1 (zero rows stay zero). */
static float *unit_rows(const float *x, size_t n, size_t d)
{
	float *u = mem_array(n * d, sizeof(float));
	for (size_t i = 0; i < n; i++) {
		double norm = sqrt(dot(x + i * d, x + i * d, d));
		for (size_t j = 0; norm > 0 && j < d; j++)
			u[i * d + j] = (float)((double)x[i * d + j] / norm);
	}
	return u;
}

/* Mean of the k largest of c[0..n-1]; reorders c (selection by repeated maximum). */
static double top_mean(float *c, size_t n, size_t k)
{
	double sum = 0;
	assert(k > 0 && k <= n);
	for (size_t t = 0; t < k; t++) {
		size_t best = t;
		for (size_t i = t + 1; i < n; i++)
			if (c[i] > c[best])
				best = i;
		float swap = c[t];
		c[t] = c[best];
		c[best] = swap;
		sum += (double)c[t];
	}
	return sum / (double)k;
}

/* out[i] = mean cosine of row i of u to the k nearest rows of v. */
static void neighbour_means(const float *u, const float *v, size_t n, size_t d, size_t k,
			    double *out)
{
	float *c = mem_array(n, sizeof(float));
	for (size_t i = 0; i < n; i++) {
		cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)d, 1.0f, v, (int)d, u + i * d,
			    1, 0.0f, c, 1);
		out[i] = top_mean(c, n, k);
	}
	free(c);
}

/* How many rows of u have no row of v nearer than their own; near_v: neighbour means of v. */
static size_t count_nearest(const float *u, const float *v, size_t n, size_t d,
			    const double *near_v)
{
	size_t count = 0;
	float *c = mem_array(n, sizeof(float));
	for (size_t i = 0; i < n; i++) {
		bool nearest = true;
		cblas_sgemv(CblasRowMajor, CblasNoTrans, (int)n, (int)d, 1.0f, v, (int)d, u + i * d,
			    1, 0.0f, c, 1);
		for (size_t j = 0; nearest && j < n; j++)
			nearest = 2.0 * (double)c[j] - near_v[j] <= 2.0 * (double)c[i] - near_v[i];
		count += nearest;
	}
	free(c);
	return count;
}

struct nn_csls nn_csls(const float *a, const float *b, size_t n, size_t d, size_t k)
{
	struct nn_csls out = { 0, 0 };
	if (n == 0)
		return out;
	nn_blas_single();
	k = k > n ? n : k;
	float *ua = unit_rows(a, n, d), *ub = unit_rows(b, n, d);
	double *near_a = mem_array(n, sizeof(double)), *near_b = mem_array(n, sizeof(double));
	double sum_a = 0, sum_b = 0;
	neighbour_means(ua, ub, n, d, k, near_a);
	neighbour_means(ub, ua, n, d, k, near_b);
	for (size_t i = 0; i < n; i++) {
		sum_a += near_a[i];
		sum_b += near_b[i];
	}
	out.mean = 2.0 * nn_mean_cosine(ua, ub, n, d) - (sum_a + sum_b) / (double)n;
	out.nearest = (double)count_nearest(ua, ub, n, d, near_b) / (double)n;
	free(ua);
	free(ub);
	free(near_a);
	free(near_b);
	return out;
}
