#include "dp/lattice.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "dp/discrete.h"

/* The most that rounding to the nearest can add to the length of a row, and a little more. */
static double rounding(size_t dim)
{
	return floor(sqrt((double)dim) / 2) + 1;
}

void dp_lattice_init(struct dp_lattice *g, size_t dim, double clip, uint32_t radius)
{
	assert(dim > 0 && dim <= DP_LATTICE_DIM_MAX && clip > 0);
	assert(radius >= 256 && radius <= DP_LATTICE_RADIUS);
	*g = (struct dp_lattice){ .dim = dim, .clip = clip, .radius = radius };
	g->step = clip / ((double)radius - rounding(dim));
}

/* (z 2 K K)^2 has to stay below DP_SIGMA2_MAX = 2^56. */
uint32_t dp_lattice_radius_product(double z)
{
	uint32_t k = DP_LATTICE_RADIUS;

	while (k > 256 && 2 * z * (double)k * (double)k > 0x1p28 - 1)
		k /= 2;
	return k;
}

static double length_of(const float *x, size_t d)
{
	double sum = 0;

	for (size_t i = 0; i < d; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

static void put_row(const struct dp_lattice *g, const float *x, int32_t *out)
{
	double length = length_of(x, g->dim), by;
	uint64_t squares = 0, most = (uint64_t)g->radius * g->radius;

	memset(out, 0, g->dim * sizeof(*out));
	if (!isfinite(length))
		return;
	by = (length > g->clip ? g->clip / length : 1) / g->step;
	for (size_t i = 0; i < g->dim; i++) {
		out[i] = (int32_t)lrint((double)x[i] * by);
		squares += (uint64_t)((int64_t)out[i] * out[i]);
	}
	if (squares > most) /* the arithmetic above says never; the bound must not depend on it */
		memset(out, 0, g->dim * sizeof(*out));
}

void dp_lattice_put(const struct dp_lattice *g, const float *rows, size_t n, int32_t *out)
{
	assert(n == 0 || (rows != NULL && out != NULL));
	for (size_t i = 0; i < n; i++)
		put_row(g, rows + i * g->dim, out + i * g->dim);
}

uint64_t dp_lattice_sensitivity_rows(const struct dp_lattice *g)
{
	assert(g->radius >= 256 && g->radius <= DP_LATTICE_RADIUS);
	return 2 * (uint64_t)g->radius;
}

uint64_t dp_lattice_sensitivity_product(const struct dp_lattice *y, const struct dp_lattice *z)
{
	assert(y->radius <= DP_LATTICE_RADIUS && z->radius <= DP_LATTICE_RADIUS);
	return 2 * (uint64_t)y->radius * z->radius;
}

/* Rounded up: what a double loses, and the fraction. */
uint64_t dp_lattice_sigma2(double z, uint64_t sensitivity)
{
	double sigma = z * (double)sensitivity;
	uint64_t sigma2 = (uint64_t)(sigma * sigma * (1 + 0x1p-45)) + 1;

	assert(z >= DP_MULTIPLIER_MIN && z <= DP_MULTIPLIER_MAX && sigma2 <= DP_SIGMA2_MAX);
	return sigma2;
}

double dp_lattice_deviation_least(double z)
{
	double product = (double)dp_lattice_radius_product(z);

	return z * fmin(2.0 * DP_LATTICE_RADIUS, 2 * product * product);
}

int dp_lattice_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
		     const atomic_bool *cancel)
{
	struct dp_bits b;
	int rc = 0;

	assert(draw != NULL && (n == 0 || x != NULL));
	dp_bits_init(&b, draw, ctx);
	for (size_t i = 0; rc == 0 && i < n; i++) {
		x[i] += dp_discrete_gaussian(&b, sigma2);
		if (cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed))
			rc = ERR_CANCELED;
	}
	dp_bits_release(&b);
	return rc;
}
