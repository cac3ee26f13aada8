/* dp/lattice.h - rows of whole numbers, so that the sensitivity of a release is exact
 * (methods 3.6).
 *
 * A row of floats is clipped to length C, divided by the lattice's step and rounded to the
 * nearest whole numbers.  Rounding comes before noise, so it is a part of what is
 * released and enters the bound: it moves a row of d numbers by at most sqrt(d)/2 steps.
 * The step is therefore C / (K - floor(sqrt(d)/2) - 1), and then no row of whole numbers
 * is longer than K.  This bound is checked on the whole numbers themselves: a row that breaks it
 * becomes zero.
 *
 * Neighbouring data: one aligned row replaced.  L2 sensitivity, in steps:
 *
 *   the rows themselves                       2 K
 *   M = Y'Z, a row of Y replaced, Z fixed     2 K K   (|| (y - y') z' ||_F = |y - y'| |z|)
 *
 * which in the rows' own units is 2C and 2C^2 but for the share of K that rounding takes.
 *
 * Everything here looks at one row at a time. */
#ifndef DP_LATTICE_H
#define DP_LATTICE_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"
#include "dp/mechanism.h"

/* Noise multipliers z = sigma / sensitivity that a lattice has room for. */
#define DP_MULTIPLIER_MIN 0.01
#define DP_MULTIPLIER_MAX 1000.0

enum {
	DP_LATTICE_RADIUS = 1 << 14, /* K at most */
	DP_LATTICE_DIM_MAX = 4096,   /* numbers in a row */
};

struct dp_lattice {
	size_t dim;
	double clip;	 /* C > 0 */
	uint32_t radius; /* K: the length of no row of whole numbers is above it */
	double step;	 /* size of 1, in the rows' units */
};

/* radius in 256 .. DP_LATTICE_RADIUS. */
void dp_lattice_init(struct dp_lattice *g, size_t dim, double clip, uint32_t radius);
/* The finest radius at which noise of multiplier z on Y'Z can be drawn (dp/discrete.h). */
uint32_t dp_lattice_radius_product(double z);

/* out [n x dim] in steps.  A row that is not finite becomes zero. */
void dp_lattice_put(const struct dp_lattice *g, const float *rows, size_t n, int32_t *out);

/* L2 sensitivity in steps. */
uint64_t dp_lattice_sensitivity_rows(const struct dp_lattice *g);
uint64_t dp_lattice_sensitivity_product(const struct dp_lattice *y, const struct dp_lattice *z);

/* A whole number at least (z sensitivity)^2, by less than a millionth too large or 1. */
uint64_t dp_lattice_sigma2(double z, uint64_t sensitivity);

/* The smallest deviation, in steps, of noise of multiplier z on rows (of radius
 * DP_LATTICE_RADIUS) or on a product (of the radius above). */
double dp_lattice_deviation_least(double z);

/* x[i] + independent discrete Gaussian noise, some 3 us each.  0, or ERR_CANCELED when *cancel (may
 * be NULL) ends it: then only some of x have noise, and none may leave. */
MUST_CHECK int dp_lattice_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw,
				void *ctx, const atomic_bool *cancel);

#endif
