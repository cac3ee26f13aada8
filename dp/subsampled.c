/* dp/subsampled.c - Renyi curves of the Gaussian mechanism on a Poisson sample. */
#include "dp/subsampled.h"

#include <assert.h>
#include <math.h>

#include "dp/special_internal.h"

int dp_subsampled_check(const struct dp_subsampled *m, struct err *e)
{
	if (!(m->rate > 0 && m->rate <= 1))
		return err_set(e, ERR_USAGE, "rate: must be above 0 and at most 1, not %g",
			       m->rate);
	if (!(m->noise >= DP_NOISE_LEAST && m->noise <= DP_NOISE_MOST))
		return err_set(e, ERR_USAGE, "noise: must be %g to %g, not %g", DP_NOISE_LEAST,
			       DP_NOISE_MOST, m->noise);
	return 0;
}

/* ln of the k-th term, less what it would be without e^(...): those add up to 1, so the sum
 * of the differences is what is above 1, and nothing cancels.  k >= 2. */
static double log_term(const struct dp_subsampled *m, double a, double k)
{
	double choose = lgamma(a + 1) - lgamma(k + 1) - lgamma(a - k + 1);
	double stay = a > k ? (a - k) * log1p(-m->rate) : 0; /* -infinity for q = 1 */

	return choose + stay + k * log(m->rate) +
	       dp_logexpm1(k * (k - 1) / (2 * m->noise * m->noise));
}

static double one_step(const struct dp_subsampled *m, int a)
{
	double above = -INFINITY;

	for (int k = 2; k <= a; k++) {
		double term = log_term(m, a, k);

		if (isfinite(term))
			above = dp_logaddexp(above, term);
	}
	return (above > 30 ? above + log1p(exp(-above)) : log1p(exp(above))) / (a - 1);
}

void dp_rdp_subsampled(const struct dp_subsampled *m, uint64_t steps, double rdp[DP_ORDERS])
{
	for (int i = 0; i < DP_ORDERS; i++) {
		int a = dp_orders[i] < 2 ? 2 : (int)dp_orders[i];

		rdp[i] = (double)steps * one_step(m, a);
	}
}

double dp_subsampled_epsilon(const struct dp_subsampled *m, uint64_t steps, double delta)
{
	double rdp[DP_ORDERS];

	if (steps == 0)
		return 0;
	dp_rdp_subsampled(m, steps, rdp);
	return dp_rdp_tight(rdp, delta).epsilon;
}

static double epsilon_after(const double *spent, const double step[DP_ORDERS], uint64_t steps,
			    double delta)
{
	double sum[DP_ORDERS];

	for (int i = 0; i < DP_ORDERS; i++)
		sum[i] = (spent != NULL ? spent[i] : 0) + (double)steps * step[i];
	return dp_rdp_tight(sum, delta).epsilon;
}

uint64_t dp_subsampled_steps(const struct dp_subsampled *m, const double *spent, double epsilon,
			     double delta)
{
	uint64_t low = 0, high = DP_STEPS_MAX;
	double step[DP_ORDERS];

	dp_rdp_subsampled(m, 1, step);
	if (epsilon_after(spent, step, high, delta) <= epsilon)
		return high;
	while (high - low > 1) { /* low fits (or is 0), high does not */
		uint64_t mid = low + (high - low) / 2;

		if (epsilon_after(spent, step, mid, delta) <= epsilon)
			low = mid;
		else
			high = mid;
	}
	return low;
}

double dp_subsampled_noise(double rate, uint64_t steps, double epsilon, double delta)
{
	double low = DP_NOISE_LEAST, high = DP_NOISE_MOST;

	assert(rate > 0 && rate <= 1);
	if (dp_subsampled_epsilon(&(struct dp_subsampled){ rate, low }, steps, delta) <= epsilon)
		return low;
	if (dp_subsampled_epsilon(&(struct dp_subsampled){ rate, high }, steps, delta) > epsilon)
		return INFINITY;
	while (high / low > 1 + 1e-6) {
		double mid = sqrt(low * high);

		if (dp_subsampled_epsilon(&(struct dp_subsampled){ rate, mid }, steps, delta) <=
		    epsilon)
			high = mid;
		else
			low = mid;
	}
	return high;
}
