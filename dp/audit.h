/* dp/audit.h - does the implementation spend what the accountant says (methods 3.7)?
 *
 * B, the mechanism: draw labels at two neighbouring gaps many times.  A Clopper-Pearson
 * interval around the two counted shares gives, with the stated confidence, a lower
 * bound on the epsilon of one label; a right mechanism keeps it below dp_vote_pure().
 *
 * C, one run with canaries (Steinke, Nasr, Jagielski 2023): for releases of matrices. */
#ifndef DP_AUDIT_H
#define DP_AUDIT_H

#include <stdbool.h>
#include <stdint.h>

#include "dp/mechanism.h"

/* One-sided bounds, each right with probability 1 - alpha, on a share of which `hits` of
 * n were seen (Clopper and Pearson 1934). */
double dp_share_low(uint64_t hits, uint64_t n, double alpha);
double dp_share_high(uint64_t hits, uint64_t n, double alpha);

/* Pr[Binomial(n, p) >= hits]. */
double dp_share_tail(uint64_t hits, uint64_t n, double p);

/* ones[i] labels 1 in draws[i] draws at the i-th of two neighbouring gaps.  Lower bound
 * on the epsilon that any (epsilon, delta) claim for one label can have; wrong with
 * probability at most alpha. */
double dp_audit_lower(const uint64_t ones[2], const uint64_t draws[2], double delta, double alpha);

/* The audited mechanism: a label for a row on which `ones` teachers say 1. */
typedef bool dp_label_fn(void *ctx, uint32_t ones);

struct dp_audit {
	uint64_t draws;	  /* at each gap */
	double accounted; /* epsilon of one label by the mechanism's closed form */
	double measured;  /* the largest lower bound over all neighbouring gaps */
	bool passed;	  /* measured <= accounted */
};

/* Draw `draws` labels at every gap from `label` and hold them against the claim m.  The
 * verdict on a right implementation is wrong with probability at most alpha.  ERR_USAGE.
 * At most 64 gaps are tried: those around zero and the outermost ones. */
MUST_CHECK int dp_audit_labels(const struct dp_mechanism *m, dp_label_fn *label, void *ctx,
			       uint64_t draws, double alpha, struct dp_audit *out, struct err *e);

/* m canaries, each in with probability 1/2; r guesses, v of them right.  The probability
 * of that under an (epsilon, delta) mechanism is at most: */
double dp_one_run_p_value(uint64_t canaries, uint64_t guesses, uint64_t correct, double epsilon,
			  double delta);
/* The largest epsilon with a p-value below p_target; 0 if there is none. */
double dp_one_run_lower(uint64_t canaries, uint64_t guesses, uint64_t correct, double delta,
			double p_target);

#endif
