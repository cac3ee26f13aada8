/* dp/release.h - noisy releases of clipped vectors and matrices: what they cost (methods 3.6).
 *
 * One release is a vector or matrix whose L2 sensitivity s is fixed by clipping, plus noise
 * of deviation sigma on each number: Gaussian, or discrete Gaussian on whole numbers.  All
 * that matters for the price is the noise multiplier z = sigma / s:
 *
 *   Renyi divergence of order a = a / (2 z^2), for either noise
 *   (Mironov 2017, Prop. 7; Canonne, Kamath, Steinke 2020, Theorem 14);
 *   and k Gaussian releases are one of multiplier z / sqrt k, whose epsilon is known
 *   exactly (dp/gaussian.h).
 *
 * Neighbouring data: one aligned row replaced.  Public: it depends on counts alone.
 *
 * Example: z = 1.512 is one release at epsilon 2.73, delta 1e-5: for a matrix of
 * sensitivity 2 C^2 that is sigma = 3.02 C^2. */
#ifndef DP_RELEASE_H
#define DP_RELEASE_H

#include <stdint.h>

#include "base/err.h"
#include "dp/rdp.h"

enum dp_release { DP_RELEASE_GAUSSIAN, DP_RELEASE_DISCRETE };

/* ERR_USAGE unless z is in [1e-3, 1e9]. */
MUST_CHECK int dp_release_check(double z, struct err *e);

/* count releases of multiplier z, either noise; adds up with the curves of dp/rdp.h. */
void dp_release_rdp(double z, uint64_t count, double rdp[DP_ORDERS]);

/* Epsilon of count releases at this delta, 0 < delta < 1: the tight conversion of the
 * curve, for Gaussian noise the exact value where that is smaller.  0 for none; +infinity
 * for arguments out of range. */
double dp_release_epsilon(enum dp_release noise, double z, uint64_t count, double delta);

/* The smallest z at which one release costs at most eps; +infinity if no z in range does. */
double dp_release_multiplier(enum dp_release noise, double eps, double delta);

#endif
