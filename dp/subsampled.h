/* dp/subsampled.h - what steps of DP-SGD cost: Gaussian noise on the sum over a random part.
 *
 * One step takes each record with probability `rate` (Poisson sampling), clips what each gives to
 * L2 norm C, sums, and adds Gaussian noise of deviation noise * C to every coordinate.
 * Neighbouring data: one record added or removed.  With q the rate and z the noise, at
 * whole orders a (Mironov, Talwar, Zhang 2019, section 3.3, exact):
 *
 *   rdp(a) = ln( sum_k C(a,k) (1-q)^(a-k) q^k e^(k(k-1) / (2 z^2)) ) / (a - 1)
 *
 * and at order 1.5 the value at 2, which is no smaller, for a Renyi divergence rises with its
 * order. Both directions are covered: the divergence of the mixture from the plain noise is the
 * larger one (their Theorem 5).  q = 1 is the Gaussian mechanism, a / (2 z^2).
 *
 * The same bound holds for discrete Gaussian noise on whole numbers: the k-th term is
 * then at most what stands there (Canonne, Kamath, Steinke 2020, Prop. 5), and the mirror
 * image that Theorem 5 needs exists for shifts by whole numbers. */
#ifndef DP_SUBSAMPLED_H
#define DP_SUBSAMPLED_H

#include <stdint.h>

#include "base/err.h"
#include "dp/rdp.h"

struct dp_subsampled {
	double rate;  /* 0 < rate <= 1 */
	double noise; /* DP_NOISE_LEAST or more */
};

#define DP_NOISE_LEAST 0.3
#define DP_NOISE_MOST  1e6
#define DP_STEPS_MAX   ((uint64_t)1 << 40)

/* ERR_USAGE names what is out of range. */
MUST_CHECK int dp_subsampled_check(const struct dp_subsampled *m, struct err *e);

/* Of so many steps, which add up; written. */
void dp_rdp_subsampled(const struct dp_subsampled *m, uint64_t steps, double rdp[DP_ORDERS]);

/* Epsilon at this delta, by the tight conversion.  0 for no steps. */
double dp_subsampled_epsilon(const struct dp_subsampled *m, uint64_t steps, double delta);

/* The most steps, after what `spent` (a curve; NULL: nothing) has cost already, with which
 * all together stay within (epsilon, delta); at most DP_STEPS_MAX. */
uint64_t dp_subsampled_steps(const struct dp_subsampled *m, const double *spent, double epsilon,
			     double delta);

/* The least noise with which `steps` steps stay within (epsilon, delta), rounded up a little so
 * that it holds; +infinity when DP_NOISE_MOST is not enough. */
double dp_subsampled_noise(double rate, uint64_t steps, double epsilon, double delta);

#endif
