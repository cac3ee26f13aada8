/* audit/evidence.h - how much what was seen speaks for missing noise.
 *
 * A suspect is a way in which noise can be missing.  The evidence for it is the product, over all
 * labels or numbers, of P(seen | suspect) / P(seen | as declared); the evidence is the mean over
 * the suspects.  While the program does as it declares, its expectation is at most 1, so it
 * reaches 1/alpha with probability at most alpha (Markov's inequality), for
 * labels whatever the votes are, which come before the noise and are known here.  For
 * numbers the same: what was to be hidden and is not subtracted only makes them larger, and every
 * suspect here is a program whose numbers are too small (Anderson 1955).
 *
 * The power, a lower bound on the probability with which a fault is found, follows from binomial
 * and chi-square tails. */
#ifndef AUDIT_EVIDENCE_H
#define AUDIT_EVIDENCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dp/mechanism.h"

/* ---- labels ---- */

/* Labels by the votes that they came from, counted: enough to compute the evidence from. */
struct audit_votes {
	struct dp_mechanism mechanism; /* as declared */
	uint64_t *count;	       /* [teachers + 1][2]: by votes for 1, and by label; owned */
	uint64_t labels;
	bool went_with;	   /* the last one did */
	double repeats[2]; /* ln of the evidence that noise is used again for the next label */
};
void audit_votes_init(struct audit_votes *v, const struct dp_mechanism *declared);
void audit_votes_release(struct audit_votes *v);
void audit_votes_add(struct audit_votes *v, uint32_t ones, bool label);
/* The natural logarithm of the evidence; *likeliest, which may be NULL: a static text. */
double audit_votes_evidence(const struct audit_votes *v, const char **likeliest);
/* The least share of labels without noise, of those that are looked for, that so many labels with
 * such votes show with probability 0.99 (by a normal approximation); INFINITY: none. */
double audit_votes_resolution(const struct audit_votes *v, double alpha);
/* At least how probably this run length finds that a share of the labels has no noise, when all
 * labels have votes of this gap. */
double audit_votes_power(const struct dp_mechanism *declared, int64_t gap, uint64_t labels,
			 double share, double alpha);

/* ---- numbers with Gaussian noise ---- */

enum { AUDIT_NOISE_SHARES = 5 };
struct audit_noise {
	uint64_t numbers;
	double squares;			   /* their sum, in units of the declared variance */
	double shares[AUDIT_NOISE_SHARES]; /* ln of the evidence that a share has no noise */
	uint64_t *runs;			   /* hashes of runs of AUDIT_RUN numbers; owned */
	size_t n_runs;
	uint64_t hash; /* of the run under way */
};
enum { AUDIT_RUN = 8 };
void audit_noise_release(struct audit_noise *v);
/* One number less what it was made of, in whole units, and the deviation that it should have. */
void audit_noise_add(struct audit_noise *v, int64_t residual, double deviation);
double audit_noise_evidence(const struct audit_noise *v, const char **likeliest);
/* Runs of AUDIT_RUN numbers that came before, to the last digit.  Noise of deviation 2048 or more
 * makes one with a probability below 1e-9 for a million numbers. */
size_t audit_noise_repeats(const struct audit_noise *v);
/* At least how probably so many numbers show noise of `scale` times the declared deviation, below
 * 1; or that a share of them has none. */
double audit_noise_power_scale(uint64_t numbers, double scale, double alpha);
double audit_noise_power_share(uint64_t numbers, double share, double alpha);

#endif
