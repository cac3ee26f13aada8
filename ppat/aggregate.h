/* ppat/aggregate.h - how a translated row enters the host's table (methods 3.1).  Pure. */
#ifndef PPAT_AGGREGATE_H
#define PPAT_AGGREGATE_H

#include <stddef.h>

enum ppat_combine {
	PPAT_AVERAGE,  /* y <- (y + x)/2: what the reference code does */
	PPAT_REPLACE,  /* y <- x: the paper's wording */
	PPAT_WEIGHTED, /* y <- y + w/2 (x - y), w = max(0, agreement): rows that point away
			  from each other are left alone; NaN counts as 0 */
	PPAT_MEAN,     /* the k-th partner of a round: y <- y + (x - y)/(k + 1), so that own row
			  and partners' rows end with equal weights, as in FedE (methods 4) */
};

double ppat_row_length(const float *y, size_t dim); /* its L2 norm */
/* The median of n lengths, which it sorts; 0: none. */
double ppat_typical_length(double *length, size_t n);
/* How far from y a row may be for which it counts (methods 4.6, self-centred clipping with a bound
 * that nobody else chooses): twice the length of y, or `typical`, the median length of rows like
 * it, where that is longer.  Honest rows of one thing have similar lengths, so they are within. */
double ppat_row_bound(const float *y, size_t dim, double typical);

/* y and x are rows of dim floats; y changes in place.  agreement (cosine of the two, from
 * ppat_result) is read for PPAT_WEIGHTED only; earlier, how many partners' rows y has taken
 * in since the round began, for PPAT_MEAN only.  An x further away than bound counts as the row on
 * the way to it at that distance; HUGE_VAL: no bound. */
void ppat_combine_row(float *y, const float *x, size_t dim, enum ppat_combine how, float agreement,
		      unsigned earlier, double bound);

#endif
