/* base/bootstrap.h - how sure a mean is: an interval by drawing again (Efron 1979).
 *
 * Values are those of n units that are taken for independent (triples, not their two queries).
 * Differences of two arms over the same units make the interval a paired one. */
#ifndef BASE_BOOTSTRAP_H
#define BASE_BOOTSTRAP_H

#include <stddef.h>

#include "base/rng.h"

enum { BOOTSTRAP_DRAWS = 1000 };

struct interval {
	double mean, low, high; /* low, high: 95 % */
};

/* Percentiles of the means of n values drawn with repeats from x[0..n-1]; all 0 for n = 0. */
void bootstrap_mean(const double *x, size_t n, struct rng *r, struct interval *out);
/* The middle 95 % of what was drawn; sorts it. */
void bootstrap_middle(double *drawn, size_t n, struct interval *out);

#endif
