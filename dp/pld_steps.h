/* dp/pld_steps.h - steps of DP-SGD by their privacy loss: what dp/subsampled.h bounds by curves.
 *
 * One step (dp/subsampled.h) with rate q and noise z is dominated by a pair on one number x, for a
 * record added by N(0, z^2) against M = (1 - q) N(0, z^2) + q N(1, z^2), for one removed
 * by the reverse (Zhu, Dong, Wang 2022, Theorem 11; Lebeda et al. 2024 on what holds under
 * composition).  All steps are of the same direction, so each is composed by itself and
 * the larger epsilon counts.  Noise of whole numbers costs what continuous noise a
 * little smaller does (dp/pld.h).
 *
 *   grid     losses fall on multiples of h.  A loss between two of them is shared out
 *            so that its probability under P and under Q stays as it is (Doroshenko,
 *            Ghazi et al. 2022, "connect the dots"): that pair dominates, and rounding moves
 *            a little more of it upwards
 *   tails    the part beyond the last number x that is looked at counts as told: delta
 *   tilt     p(l) e^(t l) / its sum, for the t at which Chernoff's bound of the total is
 *            smallest.  Its sums are round about the epsilon that is sought, so that the
 *            error of a Fourier transform is small beside delta, not beside 1
 *   compose  the transform's power, on a ring of n points: the part of the total above
 *            the ring is bounded by Chernoff and added; the part below it wraps to
 *            where it counts for more
 *   error    of the transforms in the l2 norm (Higham 2002, Theorem 24.2), added
 *
 * Pure: no disk, no clock, no randomness. */
#ifndef DP_PLD_STEPS_H
#define DP_PLD_STEPS_H

#include <stddef.h>
#include <stdint.h>

#include "dp/subsampled.h"

struct dp_pld_steps {
	struct dp_subsampled mechanism;
	uint64_t steps;
};

/* Epsilon of all these steps (n prices).  0 for none; +infinity where no bound is found, which says
 * nothing. */
double dp_pld_steps_epsilon(const struct dp_pld_steps *at, size_t n, double delta);

#endif
