/* dp/accountant.h - what a run of noisy votes has cost (methods 3.3).
 *
 * Pure arithmetic: no disk, no clock, no randomness, no heap.  The order
 * "charge, then release" is kept by the ledger and by the conversations.
 *
 * Neighbouring data: one aligned row of the host replaced, the number of rows and the
 * aligned set being known to both sides.  Two epsilons come out of an account, and they
 * must not be taken for each other:
 *
 *   public   depends on mechanism and number of labels alone.  Print it, send it, stop
 *            on it: dp_epsilon_public(), dp_labels_within().
 *   private  depends on how the votes fell, so it is itself a function of the host's
 *            rows and stays on this machine: dp_account_epsilon_private().
 *
 * Accountants, by name:
 *   exact   Renyi divergence of the two coins, worst over neighbouring gaps, summed over
 *           labels, tight conversion.  Laplace and Gaussian; private = public.
 *   paper   FKGE Eqs. 8-10: moments l = 1..32 of PATE 2017, the data-dependent bound
 *           only where its condition holds.  Laplace only.
 *   gnmax   PATE 2018: a/sigma^2 at order a, data-dependent by its Theorem 6.
 *           Gaussian only.
 *   pld     the privacy loss distribution itself, worst over all who choose the gaps
 *           (dp/pld.h), or `exact` where that is less.  Laplace and Gaussian;
 *           private = public.
 *
 * Invariants of an account:
 *  (1) every moment is finite and none ever falls;
 *  (2) private <= public;
 *  (3) a data-dependent bound is used only where its condition holds;
 *  (4) a refused charge leaves the account bit for bit as it was.
 *
 * Example: Laplace, lambda 0.05, 4 teachers, delta 1e-5.  29 labels bring `paper` to
 * 2.7292 and 154 labels bring `exact` to 2.7251, so an account of `paper` under a cap
 * of 2.73 refuses a first batch of 32, whole, and takes one of 29. */
#ifndef DP_ACCOUNTANT_H
#define DP_ACCOUNTANT_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "dp/mechanism.h"

enum dp_accountant { DP_EXACT, DP_PAPER, DP_GNMAX, DP_PLD, DP_ACCOUNTANTS };

/* No account goes on beyond this many labels. */
#define DP_LABELS_MAX ((uint64_t)1 << 40)

/* ERR_USAGE if the mechanism is out of range or this accountant cannot judge it
 * (paper: Laplace, gnmax: Gaussian). */
MUST_CHECK int dp_accountant_check(enum dp_accountant a, const struct dp_mechanism *m,
				   struct err *e);

/* The public epsilon of `labels` labels at this delta, 0 < delta < 1.  0 for no labels;
 * +infinity when a and m do not go together. */
double dp_epsilon_public(enum dp_accountant a, const struct dp_mechanism *m, uint64_t labels,
			 double delta);

/* The epsilon that the paper prints for so many labels: by `paper`, but one query a *batch* of
 * labels.  It is less than was spent and is shown beside that for comparison alone; NAN where
 * `paper` cannot judge.  928 labels in batches of 32: 2.73, and by `exact` 7.71. */
double dp_epsilon_published(const struct dp_mechanism *m, uint64_t labels, uint32_t batch,
			    double delta);

/* The cap: the largest number of labels whose public epsilon is <= eps, at most
 * DP_LABELS_MAX; 0 when one label is already too many.  154 for exact, Laplace 0.05,
 * 4 teachers, eps 2.73, delta 1e-5. */
uint64_t dp_labels_within(const struct dp_mechanism *m, enum dp_accountant a, double eps,
			  double delta);

/* The same for any epsilon that never falls with the count: the largest count, at most
 * DP_LABELS_MAX, at which it is <= eps. */
uint64_t dp_count_within(double (*epsilon)(const void *ctx, uint64_t count), const void *ctx,
			 double eps);

/* ---- an account: one pair, or one data lineage, on the host's side ---- */

enum { DP_ACCOUNT_ORDERS = 67 };

/* Equal votes, run-length: `repeat` rows on which `ones` of the teachers said 1. */
struct dp_votes {
	uint32_t ones;
	uint64_t repeat;
};

struct dp_account {
	enum dp_accountant accountant;
	struct dp_mechanism mechanism;
	double delta;
	uint64_t cap;			 /* labels; fixed when the contract is made */
	uint64_t labels;		 /* charged */
	uint64_t voted;			 /* of these, noted with their votes; <= labels */
	double noted[DP_ACCOUNT_ORDERS]; /* private: cost of the noted ones, per order */
};

/* The cap is dp_labels_within(eps_max).  ERR_USAGE. */
MUST_CHECK int dp_account_init(struct dp_account *a, enum dp_accountant accountant,
			       const struct dp_mechanism *m, double eps_max, double delta,
			       struct err *e);

/* Charge n labels, all or none, before any of them is drawn.  ERR_BUDGET if that would
 * pass the cap; the answer depends on public counts alone. */
MUST_CHECK int dp_account_charge(struct dp_account *a, uint64_t n, struct err *e);

/* For the host's eyes: how the votes on labels charged before have fallen.  ERR_FAIL,
 * and nothing changed, for more votes than charged labels or more ones than teachers. */
MUST_CHECK int dp_account_note(struct dp_account *a, const struct dp_votes *votes, size_t runs,
			       struct err *e);

double dp_account_epsilon_public(const struct dp_account *a);
/* Labels not noted count at their data-independent cost. */
double dp_account_epsilon_private(const struct dp_account *a);

#endif
