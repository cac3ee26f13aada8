/* query/scale.h - the scale from scores to shares (query/truth.h), by the greatest likelihood of
 * valid (Platt 1999; Guo and others 2017: one temperature).
 *
 * Rows (h, r, ?) and (?, r, t) of valid's triples are drawn by the seed.  In a row an entity that
 * does not complete a triple of train counts: 1 if it completes one of valid, else 0.
 *
 *   SOFTMAX  slope: the greatest mean log share of the ones; offset: what makes truths that count
 * as many as the ones SIGMOID  logistic regression over what counts
 *
 * Test is never read.  What valid lacks counts as false, so truths are low rather than high. */
#ifndef QUERY_SCALE_H
#define QUERY_SCALE_H

#include "query/truth.h"

struct query_fit {
	size_t rows, ones;    /* that it went by; 0: valid is empty, and nothing was fitted */
	double before, after; /* log likelihood a one, with { kind, 1, 0 } and with the result */
};

/* *scale of that kind: fitted, or { kind, 1, 0 } where valid is empty or no likelihood is finite.
 * Memory: at most 64 MiB of scores, one row at least.  fit may be NULL. */
void query_scale_fit(struct query_scale *scale, enum query_truth_kind kind,
		     const struct kge_emb *emb, const struct graph *g, uint64_t seed,
		     struct query_fit *fit);

#endif
