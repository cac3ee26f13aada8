/* dp/rdp.h - Renyi curves: a cost at each of 67 orders, and what they mean as epsilon.
 *
 * A curve is an array of DP_ORDERS doubles, in the order of dp_orders[]: 1.5, then every
 * integer 2..64, then 128, 256, 512.  Costs of queries that follow one another add up,
 * order by order.  All logarithms are natural. */
#ifndef DP_RDP_H
#define DP_RDP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "dp/mechanism.h"

enum { DP_ORDERS = 67 };
extern const double dp_orders[DP_ORDERS];

/* Other orders than ours, ascending and all above 1: every function here that makes or
 * reads a curve has a form _over() with the orders as its first argument. */
struct dp_order_set {
	const double *orders;
	size_t n;
};
extern const struct dp_order_set dp_order_set; /* dp_orders */

struct dp_epsilon {
	double epsilon;
	double order; /* at which the minimum was found */
};

/* Mironov 2017, Prop. 3:  min_a rdp(a) + ln(1/delta)/(a-1). */
struct dp_epsilon dp_rdp_classic_over(struct dp_order_set g, const double *rdp, double delta);
/* Canonne, Kamath, Steinke 2020, Prop. 12; Balle et al. 2020, Theorem 21:
 * max(0, min_a rdp(a) + ln((a-1)/a) - (ln delta + ln a)/(a-1)). */
struct dp_epsilon dp_rdp_tight(const double rdp[DP_ORDERS], double delta);
struct dp_epsilon dp_rdp_tight_over(struct dp_order_set g, const double *rdp, double delta);

/* ---- one noisy vote, whatever the votes: `exact` ---- */

/* Renyi divergence of the label's coin at neighbouring gaps, worst over gaps and both
 * directions. */
void dp_rdp_vote(const struct dp_mechanism *m, double rdp[DP_ORDERS]);
void dp_rdp_vote_over(struct dp_order_set g, const struct dp_mechanism *m, double *rdp);
/* The two coins of one vote at the gaps g and h: for each label its probability at g and the loss
 * ln(P(label | g) / P(label | h)), to their last digits. */
struct dp_coins {
	double p[2], loss[2];
};
void dp_coins(const struct dp_mechanism *m, int64_t g, int64_t h, struct dp_coins *out);
/* Pure epsilon of one label: the largest |log ratio| over neighbouring gaps. */
double dp_vote_pure(const struct dp_mechanism *m);
/* Optimal composition of k pure eps0 mechanisms (Kairouz, Oh, Viswanath 2015): the
 * smallest epsilon at delta.  A second upper bound beside the Renyi one. */
double dp_compose_optimal(double eps0, uint64_t k, double delta);

/* ---- Gaussian noise: `gnmax` and matrix releases ---- */

/* count-fold Gaussian mechanism: count * a * sensitivity^2 / (2 sigma^2). */
void dp_rdp_gaussian(double sensitivity, double sigma, double count, double rdp[DP_ORDERS]);
void dp_rdp_gaussian_over(struct dp_order_set g, double sensitivity, double sigma, double count,
			  double *rdp);

/* GNMax, one query (PATE 2018): the part that does not depend on votes, a/sigma^2. */
void dp_rdp_gnmax(double sigma, double rdp[DP_ORDERS]);
void dp_rdp_gnmax_over(struct dp_order_set g, double sigma, double *rdp);

/* The data-dependent side of PATE 2018, Theorem 6, for noise sigma and ln q.  PRIVATE:
 * what comes out is a function of the votes. */
struct dp_gnmax_bound {
	double mu1, mu2;
	double max_order; /* largest of the orders at which the bound applies; 0: none */
};
/* rdp = min(a/sigma^2, Theorem 6 where it applies). */
void dp_rdp_gnmax_private(double sigma, double ln_q, double rdp[DP_ORDERS],
			  struct dp_gnmax_bound *bound);
void dp_rdp_gnmax_private_over(struct dp_order_set g, double sigma, double ln_q, double *rdp,
			       struct dp_gnmax_bound *bound);
/* ln of the probability that two-class GNMax contradicts the votes; gap of either sign. */
double dp_gnmax_log_q(double sigma, double gap);

/* Confident-GNMax: step 1 answers only if max(n0, n1) + N(0, sigma1^2) >= threshold,
 * step 2 is GNMax with sigma2.  Step 1 alone is what a refused query costs. */
void dp_rdp_threshold_over(struct dp_order_set g, double sigma1, double *rdp);
double dp_threshold_log_answered(double sigma1, double threshold, double max_votes);
/* ln min(Pr[answered], Pr[refused]): Theorem 6's q of step 1, used with sqrt(2) sigma1. */
double dp_threshold_log_q(double sigma1, double threshold, double max_votes);

#endif
