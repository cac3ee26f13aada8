/* dp/audit.c - measured lower bounds on epsilon (methods 3.7). */
#include "dp/audit.h"

#include <assert.h>
#include <math.h>

#include "dp/rdp.h"
#include "dp/special_internal.h"

/* ---- shares ---- */

/* The share at which that many hits or more become as likely as alpha. */
double dp_share_low(uint64_t hits, uint64_t n, double alpha)
{
	double low = 0, high = n > 0 ? (double)hits / (double)n : 0;
	assert(hits <= n && alpha > 0 && alpha < 1);
	for (int i = 0; i < 100 && hits > 0; i++) {
		double mid = (low + high) / 2;
		if (dp_binomial_tail(hits, n, mid) <= alpha)
			low = mid;
		else
			high = mid;
	}
	return low;
}

double dp_share_tail(uint64_t hits, uint64_t n, double p)
{
	assert(hits <= n && p >= 0 && p <= 1);
	return dp_binomial_tail(hits, n, p);
}

double dp_share_high(uint64_t hits, uint64_t n, double alpha)
{
	assert(hits <= n && alpha > 0 && alpha < 1);
	return 1 - dp_share_low(n - hits, n, alpha);
}

/* The claim says P(1 | a) <= e^eps P(1 | b) + delta, for both labels and both directions:
 * four events, each bounded by two one-sided intervals, alpha shared among all eight. */
double dp_audit_lower(const uint64_t ones[2], const uint64_t draws[2], double delta, double alpha)
{
	double best = 0;
	assert(ones[0] <= draws[0] && ones[1] <= draws[1]);
	assert(delta >= 0 && alpha > 0 && alpha < 1);
	for (int event = 0; event < 4; event++) {
		int a = event & 1, b = 1 - a, label = event >> 1;
		uint64_t hits_a = label ? ones[a] : draws[a] - ones[a];
		uint64_t hits_b = label ? ones[b] : draws[b] - ones[b];
		double p = dp_share_low(hits_a, draws[a], alpha / 8) - delta;
		double q = dp_share_high(hits_b, draws[b], alpha / 8);
		if (p > 0 && q > 0)
			best = fmax(best, log(p / q));
	}
	return best;
}

/* ---- the mechanism ---- */

enum { AUDIT_GAPS = 64 };

/* Whether the k-th count of ones is among those tried: all of them while they are few. */
static bool worth_trying(uint32_t teachers, uint32_t k)
{
	if (teachers < AUDIT_GAPS)
		return true;
	uint32_t middle = teachers / 2;
	return k < 8 || k > teachers - 8 || (k + 16 > middle && k < middle + 16);
}

static uint64_t count_ones(dp_label_fn *label, void *ctx, uint32_t ones, uint64_t draws)
{
	uint64_t count = 0;
	for (uint64_t i = 0; i < draws; i++)
		count += label(ctx, ones);
	return count;
}

int dp_audit_labels(const struct dp_mechanism *m, dp_label_fn *label, void *ctx, uint64_t draws,
		    double alpha, struct dp_audit *out, struct err *e)
{
	int rc = dp_mechanism_check(m, e);
	if (rc != 0)
		return rc;
	if (draws < 1 || !(alpha > 0 && alpha < 1))
		return err_set(e, ERR_USAGE, "audit: needs draws > 0 and 0 < alpha < 1");
	*out = (struct dp_audit){ .draws = draws, .accounted = dp_vote_pure(m) };
	uint64_t count[2] = { 0, 0 }, both[2] = { draws, draws };
	bool have_last = false;
	for (uint32_t k = 0; k <= m->teachers; k++) {
		bool tried = worth_trying(m->teachers, k);
		if (!tried && !have_last)
			continue;
		count[0] = count[1];
		count[1] = tried ? count_ones(label, ctx, k, draws) : 0;
		if (tried && have_last)
			out->measured = fmax(out->measured,
					     dp_audit_lower(count, both, 0, alpha / AUDIT_GAPS));
		have_last = tried;
	}
	out->passed = out->measured <= out->accounted;
	return 0;
}

/* ---- one run with canaries ---- */

/* Steinke et al. 2023, Appendix D: Pr[Bin >= v] + 2 m delta max_i Pr[v > Bin >= v-i] / i. */
double dp_one_run_p_value(uint64_t canaries, uint64_t guesses, uint64_t correct, double epsilon,
			  double delta)
{
	double q = 1 / (1 + exp(-epsilon)), worst = 0, below = 0;
	assert(epsilon >= 0 && delta >= 0);
	for (uint64_t i = 1; delta > 0 && i <= correct; i++) {
		below += dp_binomial_pmf(correct - i, guesses, q);
		worst = fmax(worst, below / (double)i);
	}
	double p = dp_binomial_tail(correct, guesses, q);
	return fmin(1, p + 2 * (double)canaries * delta * worst);
}

double dp_one_run_lower(uint64_t canaries, uint64_t guesses, uint64_t correct, double delta,
			double p_target)
{
	double low = 0, high = 1;
	if (dp_one_run_p_value(canaries, guesses, correct, 0, delta) >= p_target)
		return 0;
	while (high < 1024 &&
	       dp_one_run_p_value(canaries, guesses, correct, high, delta) < p_target)
		high *= 2;
	for (int i = 0; i < 100 && high - low > 1e-12 * high; i++) {
		double mid = (low + high) / 2;
		if (dp_one_run_p_value(canaries, guesses, correct, mid, delta) < p_target)
			low = mid;
		else
			high = mid;
	}
	return low;
}
