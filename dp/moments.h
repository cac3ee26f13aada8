/* dp/moments.h - the moments accountant of PATE 2017 for two-class Laplace votes, as FKGE
 * uses it (Eqs. 8-10), with the condition that its Eq. 9 leaves out (methods 3.3, `paper`).
 *
 * A curve here has DP_MOMENTS entries: [l-1] is the log moment of order l = 1..32.  In
 * logarithms throughout: finite for any lambda, any votes and any number of queries. */
#ifndef DP_MOMENTS_H
#define DP_MOMENTS_H

#include <stdbool.h>
#include <stdint.h>

enum { DP_MOMENTS = 32 };

struct dp_moments_epsilon {
	double epsilon;
	int l; /* at which the minimum was found */
};

/* q = (2 + x) / (4 e^x), x = lambda |gap|: the probability that the label goes against
 * the votes; and its logarithm. */
double dp_moments_q(double lambda, uint64_t gap);
double dp_moments_log_q(double lambda, uint64_t gap);
/* 1 / (1 + e^(2 lambda)): the data-dependent bound needs q below it. */
double dp_moments_q_limit(double lambda);
/* The same condition on the integer: |gap| >= 3, for every lambda. */
bool dp_moments_applies(uint64_t gap);

/* Add n queries to alpha: the part that does not depend on votes, 2 lambda^2 l (l+1). */
void dp_moments_add_public(double alpha[DP_MOMENTS], double lambda, double n);
/* Add n queries of this gap: min with Eq. 9 where it applies.  PRIVATE.  `capped` takes
 * the third valid bound, 2 lambda l, into the minimum too. */
void dp_moments_add_private(double alpha[DP_MOMENTS], double lambda, uint64_t gap, double n,
			    bool capped);

/* Eq. 8: min over l of (alpha(l) + ln(1/delta)) / l. */
struct dp_moments_epsilon dp_moments_epsilon(const double alpha[DP_MOMENTS], double delta);

#endif
