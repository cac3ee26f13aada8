/* dp/pld.h - accounting by the privacy loss distribution: the smallest epsilon that can be shown.
 *
 * The privacy loss of a release is ln(P / Q) of what was released, under P; delta at epsilon
 * is the mean of max(0, 1 - e^(epsilon - loss)) (Balle, Barthe, Gaboardi 2018), and losses
 * of releases that follow one another add up.  A Renyi curve keeps bounds on the moments of
 * that distribution; here the distribution itself is composed (Koskela, Jalko,
 * Honkela 2020; Gopi, Lee, Wutschitz 2021), every rounding upwards, so that what comes out is
 * an upper bound of epsilon as a Renyi curve's is, and a smaller one.
 *
 * A pair's ledger holds votes and noisy releases; a row replaced moves both:
 *
 *   releases   k of them with continuous Gaussian noise of multiplier z are one of variance
 *              k / z^2 (of the loss), in closed form (dp/gaussian.h)
 *   discrete   what is drawn is whole numbers, s of whose steps are a deviation.  Take the
 *              continuous Gaussian of variance s^2 - 4 and round each number y of it to
 *              x with chance ~ e^(-(x - y)^2 / 8): that is the discrete Gaussian, but for factors
 *              1 +- e^-78 on each number.  Rounding tells nothing more, so the release costs
 *              what the continuous one with s^2 - 4 does, and 1e-20 of delta
 *   votes      worst over all who choose gaps by what they have seen (dp/adaptive.h):
 *              exactly by value iteration where that is affordable, and as a Gaussian
 *
 * Example: 128 labels, Laplace 0.05, 4 teachers, delta 1e-5: 2.27; by `exact` 2.45.  Three releases
 * of multiplier 4.045: 1.68; by their curve 1.82. */
#ifndef DP_PLD_H
#define DP_PLD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dp/mechanism.h"
#include "dp/release.h"

struct dp_pld_votes {
	struct dp_mechanism mechanism;
	uint64_t labels;
};

/* Variance of the loss of count releases of multiplier z; +infinity for arguments out of
 * range, or discrete noise so little that its steps matter.  These add up. */
double dp_pld_releases(enum dp_release noise, double z, uint64_t count);

/* Epsilon of all these votes (n of them, mechanisms may repeat) and releases of so much variance in
 * all, in any order and by any choice of the next one.  0 for nothing; +infinity where no bound is
 * known, which says nothing: a Renyi curve may have one. */
double dp_pld_epsilon(const struct dp_pld_votes *votes, size_t n, double releases, double delta);

/* Is that told at once?  Else it is worked out first, which may take a second. */
bool dp_pld_is_known(const struct dp_pld_votes *votes, size_t n, double releases, double delta);

/* The smallest multiplier, of noise that the lattice has room for, at which one release costs at
 * most epsilon; +infinity: none. */
double dp_pld_release_multiplier(enum dp_release noise, double epsilon, double delta);
/* The most labels whose epsilon is at most this; `fit`, which are known to be within it, at
 * least. */
uint64_t dp_pld_labels(const struct dp_mechanism *m, uint64_t fit, double epsilon, double delta);

#endif
