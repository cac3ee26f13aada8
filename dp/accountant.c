/* dp/accountant.c - accountants by name, caps, and the account itself. */
#include "dp/accountant.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "dp/moments.h"
#include "dp/pld.h"
#include "dp/rdp.h"

_Static_assert((int)DP_ACCOUNT_ORDERS >= (int)DP_ORDERS, "an account holds a Renyi curve");
_Static_assert((int)DP_ACCOUNT_ORDERS >= (int)DP_MOMENTS, "an account holds moments");

int dp_accountant_check(enum dp_accountant a, const struct dp_mechanism *m, struct err *e)
{
	int rc = dp_mechanism_check(m, e);
	if (rc != 0)
		return rc;
	if ((unsigned)a >= DP_ACCOUNTANTS)
		return err_set(e, ERR_USAGE,
			       "accountant number %d: must be exact, paper, gnmax or pld", (int)a);
	if (a == DP_PAPER && m->noise != DP_LAPLACE)
		return err_set(e, ERR_USAGE,
			       "accountant paper judges Laplace noise only; use exact "
			       "or gnmax for Gaussian noise");
	if (a == DP_GNMAX && m->noise != DP_GAUSSIAN)
		return err_set(e, ERR_USAGE,
			       "accountant gnmax judges Gaussian noise only; use exact "
			       "or paper for Laplace noise");
	return 0;
}

/* ---- public epsilon ---- */

/* The cost of one label, whatever the votes, in the accountant's own orders (`pld`: those of
 * `exact`, which it is never above). */
struct curve {
	enum dp_accountant accountant;
	double cost[DP_ACCOUNT_ORDERS];
};

static struct curve label_curve(enum dp_accountant a, const struct dp_mechanism *m)
{
	struct curve c = { .accountant = a };
	assert((unsigned)a < DP_ACCOUNTANTS);
	if (a == DP_PAPER)
		dp_moments_add_public(c.cost, m->param, 1);
	else if (a == DP_GNMAX)
		dp_rdp_gnmax(m->param, c.cost);
	else
		dp_rdp_vote(m, c.cost);
	return c;
}

static double curve_epsilon(const struct curve *c, double delta)
{
	if (c->accountant == DP_PAPER)
		return dp_moments_epsilon(c->cost, delta).epsilon;
	return dp_rdp_tight(c->cost, delta).epsilon;
}

/* The formula of a curve is above 0 even for no label at all, so none is named apart. */
static double labels_epsilon(const struct curve *one, uint64_t labels, double delta)
{
	struct curve all = *one;
	if (labels == 0)
		return 0;
	for (int i = 0; i < DP_ACCOUNT_ORDERS; i++)
		all.cost[i] *= (double)labels;
	return curve_epsilon(&all, delta);
}

static bool delta_is_valid(double delta)
{
	return delta > 0 && delta < 1;
}

double dp_epsilon_public(enum dp_accountant a, const struct dp_mechanism *m, uint64_t labels,
			 double delta)
{
	if (dp_accountant_check(a, m, NULL) != 0 || !delta_is_valid(delta))
		return INFINITY;
	struct curve one = label_curve(a, m);
	double epsilon = labels_epsilon(&one, labels, delta);
	if (a == DP_PLD)
		epsilon = fmin(epsilon,
			       dp_pld_epsilon(&(struct dp_pld_votes){ *m, labels }, 1, 0, delta));
	return epsilon;
}

uint64_t dp_count_within(double (*epsilon)(const void *ctx, uint64_t count), const void *ctx,
			 double eps)
{
	uint64_t fits = 0, beyond = DP_LABELS_MAX + 1;
	assert(epsilon != NULL);
	while (beyond - fits > 1) {
		uint64_t mid = fits + (beyond - fits) / 2;
		if (epsilon(ctx, mid) <= eps)
			fits = mid;
		else
			beyond = mid;
	}
	return fits;
}

struct price {
	struct curve one;
	double delta;
};

static double priced(const void *ctx, uint64_t labels)
{
	const struct price *p = ctx;
	return labels_epsilon(&p->one, labels, p->delta);
}

double dp_epsilon_published(const struct dp_mechanism *m, uint64_t labels, uint32_t batch,
			    double delta)
{
	if (batch == 0 || dp_accountant_check(DP_PAPER, m, NULL) != 0)
		return (double)NAN;
	return dp_epsilon_public(DP_PAPER, m, labels / batch + (labels % batch != 0), delta);
}

uint64_t dp_labels_within(const struct dp_mechanism *m, enum dp_accountant a, double eps,
			  double delta)
{
	if (dp_accountant_check(a, m, NULL) != 0 || !delta_is_valid(delta))
		return 0;
	struct price p = { label_curve(a, m), delta };
	uint64_t fit = dp_count_within(priced, &p, eps);
	return a == DP_PLD ? dp_pld_labels(m, fit, eps, delta) : fit;
}

/* ---- an account ---- */

int dp_account_init(struct dp_account *a, enum dp_accountant accountant,
		    const struct dp_mechanism *m, double eps_max, double delta, struct err *e)
{
	int rc = dp_accountant_check(accountant, m, e);
	if (rc != 0)
		return rc;
	if (!delta_is_valid(delta))
		return err_set(e, ERR_USAGE, "delta is %g: must be above 0 and below 1", delta);
	if (!(eps_max >= 0))
		return err_set(e, ERR_USAGE, "epsilon cap is %g: must be 0 or more", eps_max);
	memset(a, 0, sizeof(*a));
	a->accountant = accountant;
	a->mechanism = *m;
	a->delta = delta;
	a->cap = dp_labels_within(m, accountant, eps_max, delta);
	return 0;
}

/* Invariants that a charge and a note keep (dp/accountant.h). */
static void assert_account(const struct dp_account *a)
{
	assert(a->cap <= DP_LABELS_MAX && a->labels <= a->cap && a->voted <= a->labels);
	assert(a->delta > 0 && a->delta < 1);
}

int dp_account_charge(struct dp_account *a, uint64_t n, struct err *e)
{
	assert_account(a);
	if (n > a->cap - a->labels)
		return err_set(e, ERR_BUDGET,
			       "%" PRIu64 " labels asked, %" PRIu64 " of %" PRIu64 " left", n,
			       a->cap - a->labels, a->cap);
	a->labels += n;
	assert_account(a);
	return 0;
}

/* Adds the cost of equal votes; PRIVATE. */
static void add_votes(const struct dp_account *a, const struct curve *one, const struct dp_votes *v,
		      double noted[DP_ACCOUNT_ORDERS])
{
	int64_t gap = 2 * (int64_t)v->ones - (int64_t)a->mechanism.teachers;
	double n = (double)v->repeat, cost[DP_ACCOUNT_ORDERS];
	assert(v->ones <= a->mechanism.teachers);
	if (a->accountant == DP_PAPER) {
		dp_moments_add_private(noted, a->mechanism.param, (uint64_t)(gap < 0 ? -gap : gap),
				       n, false);
		return;
	}
	memcpy(cost, one->cost, sizeof(cost));
	if (a->accountant == DP_GNMAX)
		dp_rdp_gnmax_private(a->mechanism.param,
				     dp_gnmax_log_q(a->mechanism.param, (double)gap), cost, NULL);
	for (int i = 0; i < DP_ACCOUNT_ORDERS; i++)
		noted[i] += n * cost[i];
}

static int check_votes(const struct dp_account *a, const struct dp_votes *votes, size_t runs,
		       uint64_t *sum, struct err *e)
{
	*sum = 0;
	for (size_t i = 0; i < runs; i++) {
		if (votes[i].ones > a->mechanism.teachers)
			return err_set(e, ERR_FAIL, "a vote has more ones than there are teachers");
		if (votes[i].repeat > a->labels - a->voted - *sum)
			return err_set(e, ERR_FAIL, "more votes than labels charged");
		*sum += votes[i].repeat;
	}
	return 0;
}

int dp_account_note(struct dp_account *a, const struct dp_votes *votes, size_t runs, struct err *e)
{
	uint64_t sum;
	int rc = check_votes(a, votes, runs, &sum, e);
	if (rc != 0)
		return rc;
	struct curve one = label_curve(a->accountant, &a->mechanism);
	for (size_t i = 0; i < runs; i++)
		add_votes(a, &one, &votes[i], a->noted);
	a->voted += sum;
	return 0;
}

double dp_account_epsilon_public(const struct dp_account *a)
{
	return dp_epsilon_public(a->accountant, &a->mechanism, a->labels, a->delta);
}

double dp_account_epsilon_private(const struct dp_account *a)
{
	struct curve all = label_curve(a->accountant, &a->mechanism);
	if (a->labels == 0)
		return 0;
	for (int i = 0; i < DP_ACCOUNT_ORDERS; i++)
		all.cost[i] = a->noted[i] + (double)(a->labels - a->voted) * all.cost[i];
	/* Sums rounded in another order may end a digit above. */
	return fmin(curve_epsilon(&all, a->delta), dp_account_epsilon_public(a));
}
