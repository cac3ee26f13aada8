/* dp/rdp.c - Renyi curves of votes and of Gaussian noise, and conversions. */
#include "dp/rdp.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include "dp/special_internal.h"

const double dp_orders[DP_ORDERS] = {
	1.5, 2,	 3,  4,	 5,  6,	 7,  8,	 9,  10, 11, 12, 13, 14,  15,  16,  17,
	18,  19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,  32,  33,  34,
	35,  36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47, 48,  49,  50,  51,
	52,  53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63, 64, 128, 256, 512,
};

const struct dp_order_set dp_order_set = { dp_orders, DP_ORDERS };

struct dp_epsilon dp_rdp_classic_over(struct dp_order_set g, const double *rdp, double delta)
{
	struct dp_epsilon best = { INFINITY, g.orders[0] };
	assert(g.n > 0);
	for (size_t i = 0; i < g.n; i++) {
		double epsilon = rdp[i] - log(delta) / (g.orders[i] - 1);
		if (epsilon < best.epsilon)
			best = (struct dp_epsilon){ epsilon, g.orders[i] };
	}
	return best;
}

struct dp_epsilon dp_rdp_tight_over(struct dp_order_set g, const double *rdp, double delta)
{
	struct dp_epsilon best = { INFINITY, g.orders[0] };
	assert(g.n > 0);
	for (size_t i = 0; i < g.n; i++) {
		double a = g.orders[i];
		double epsilon = rdp[i] + log1p(-1 / a) - (log(delta) + log(a)) / (a - 1);
		if (epsilon < best.epsilon)
			best = (struct dp_epsilon){ epsilon, a };
	}
	best.epsilon = fmax(best.epsilon, 0);
	return best;
}

struct dp_epsilon dp_rdp_tight(const double rdp[DP_ORDERS], double delta)
{
	return dp_rdp_tight_over(dp_order_set, rdp, delta);
}

/* ---- one noisy vote ---- */

/* Two neighbouring coins, seen from one of them: for each outcome its ln probability under
 * Q, and the ratio P/Q as 1 + u and as a logarithm. */
struct coins {
	double log_q[2], u[2], log_ratio[2];
};

static double outcome(const struct dp_mechanism *m, int64_t gap, int label, bool in_logs)
{
	/* Label 1 at gap g is as likely as label 0 at gap -g. */
	int64_t g = label ? gap : -gap;
	if (in_logs)
		return g > 0 ? dp_log1mexp(dp_label_log_against(m, g)) : dp_label_log_against(m, g);
	return g > 0 ? 1 - dp_label_against(m, g) : dp_label_against(m, g);
}

/* P(1 | gap) - 1/2, which keeps its digits when noise is large. */
static double above_half(const struct dp_mechanism *m, int64_t gap)
{
	double x = m->param * (double)gap, h;
	if (m->noise == DP_GAUSSIAN)
		return 0.5 * erf((double)gap / (2 * m->param));
	h = -0.5 * expm1(-fabs(x)) - 0.25 * fabs(x) * exp(-fabs(x));
	return x < 0 ? -h : h;
}

/* P(1 | g) - P(1 | h), from whichever form of the two does not cancel. */
static double difference(const struct dp_mechanism *m, int64_t g, int64_t h)
{
	if ((g > 0) != (h > 0) || fabs(above_half(m, g)) < 0.2)
		return above_half(m, g) - above_half(m, h);
	double d = dp_label_against(m, g) - dp_label_against(m, h);
	return g > 0 ? -d : d;
}

static struct coins compare(const struct dp_mechanism *m, int64_t g, int64_t h)
{
	struct coins c;
	double d = difference(m, g, h);
	for (int label = 0; label < 2; label++) {
		double q = outcome(m, h, label, false);
		double log_p = outcome(m, g, label, true);
		c.log_q[label] = outcome(m, h, label, true);
		c.u[label] = (label ? d : -d) / q;
		c.log_ratio[label] = log_p - c.log_q[label];
		if (isfinite(c.u[label]) && fabs(c.u[label]) < 0.5)
			c.log_ratio[label] = log1p(c.u[label]);
	}
	return c;
}

void dp_coins(const struct dp_mechanism *m, int64_t g, int64_t h, struct dp_coins *out)
{
	struct coins c = compare(m, g, h);

	for (int label = 0; label < 2; label++) {
		out->p[label] = outcome(m, g, label, false);
		out->loss[label] = c.log_ratio[label];
	}
}

/* ln((1+u)^a - 1 - a u), also where (1+u)^a is beyond a double. */
static double log_excess(double u, double log_ratio, double a)
{
	double power = a * log_ratio;
	if (power < 600 && isfinite(u))
		return log(dp_pow_excess(u, a));
	return power + log1p(-exp(log(a) + log_ratio - power));
}

/* Renyi divergence of order a (methods 3.3).  Since the mean of u under Q is 0, the mean of (1+u)^a
 * is 1 + the mean of its excess, and all terms are positive. */
static double renyi(const struct coins *c, double a)
{
	double sum = -INFINITY;
	for (int i = 0; i < 2; i++)
		sum = dp_logaddexp(sum, c->log_q[i] + log_excess(c->u[i], c->log_ratio[i], a));
	return (sum > 30 ? sum + log1p(exp(-sum)) : log1p(exp(sum))) / (a - 1);
}

void dp_rdp_vote_over(struct dp_order_set grid, const struct dp_mechanism *m, double *rdp)
{
	int64_t top = m->teachers;
	for (size_t i = 0; i < grid.n; i++)
		rdp[i] = 0;
	/* Gaps g and -g mirror each other, so half of the pairs will do. */
	for (int64_t g = top; g > 0; g -= 2) {
		struct coins both[2] = { compare(m, g, g - 2), compare(m, g - 2, g) };
		for (size_t i = 0; i < grid.n; i++) {
			for (int way = 0; way < 2; way++)
				rdp[i] = fmax(rdp[i], renyi(&both[way], grid.orders[i]));
		}
	}
}

/* An agent's status asks again and again for the same few, toward each partner: 5 ms of 1000
 * teachers.  Of none: unused. */
enum { CURVES = 8 };
static _Thread_local struct vote_curve {
	struct dp_mechanism of;
	double rdp[DP_ORDERS];
} curves[CURVES];
static _Thread_local unsigned curves_next;

static const struct vote_curve *curve_of(const struct dp_mechanism *m)
{
	for (size_t i = 0; i < CURVES; i++)
		if (curves[i].of.noise == m->noise && curves[i].of.param == m->param &&
		    curves[i].of.teachers == m->teachers)
			return &curves[i];
	return NULL;
}

void dp_rdp_vote(const struct dp_mechanism *m, double rdp[DP_ORDERS])
{
	const struct vote_curve *known = m->teachers > 0 ? curve_of(m) : NULL;
	struct vote_curve *next = &curves[curves_next % CURVES];

	if (known == NULL) {
		dp_rdp_vote_over(dp_order_set, m, next->rdp);
		next->of = *m;
		curves_next++;
		known = next;
	}
	memcpy(rdp, known->rdp, sizeof(next->rdp));
}

double dp_vote_pure(const struct dp_mechanism *m)
{
	double worst = 0;
	for (int64_t g = m->teachers; g > 0; g -= 2) {
		struct coins c = compare(m, g, g - 2);
		worst = fmax(worst, fmax(fabs(c.log_ratio[0]), fabs(c.log_ratio[1])));
	}
	return worst;
}

/* ---- optimal composition ---- */

/* Part of delta(eps) from i of the k losses being +eps0 and the others -eps0. */
static double loss_excess(double eps0, double k, double i, double eps)
{
	double loss = (2 * i - k) * eps0;
	return loss > eps ? -expm1(eps - loss) : 0;
}

/* delta(eps) = sum_i Pr[Bin(k, e^eps0/(1+e^eps0)) = i] max(0, 1 - e^(eps - (2i-k) eps0)),
 * summed from the largest probability outwards, so that underflow stops it rightly. */
static double composed_delta(double eps0, uint64_t k, double eps)
{
	double p = 1 / (1 + exp(-eps0)), all = (double)k;
	double first = fmax(0, ceil((eps / eps0 + all) / 2 - 1e-9));
	double start = fmin(all, fmax(first, floor((all + 1) * p)));
	double centre = dp_binomial_pmf((uint64_t)start, k, p), term = centre;
	double sum = centre * loss_excess(eps0, all, start, eps);
	for (double i = start; i < all && term > 1e-20 * sum; i++) {
		term *= (all - i) / (i + 1) * exp(eps0);
		sum += term * loss_excess(eps0, all, i + 1, eps);
	}
	term = centre;
	for (double i = start; i > first && term > 1e-20 * sum; i--) {
		term *= i / (all - i + 1) * exp(-eps0);
		sum += term * loss_excess(eps0, all, i - 1, eps);
	}
	return sum;
}

double dp_compose_optimal(double eps0, uint64_t k, double delta)
{
	double low = 0, high = (double)k * eps0;
	assert(eps0 >= 0 && delta >= 0);
	if (k == 0 || eps0 <= 0 || composed_delta(eps0, k, 0) <= delta)
		return 0;
	for (int i = 0; i < 100 && high - low > 1e-14 * high; i++) {
		double mid = (low + high) / 2;
		if (composed_delta(eps0, k, mid) <= delta)
			high = mid;
		else
			low = mid;
	}
	return high;
}

/* ---- Gaussian noise ---- */

void dp_rdp_gaussian_over(struct dp_order_set g, double sensitivity, double sigma, double count,
			  double *rdp)
{
	double r = sensitivity / sigma;
	for (size_t i = 0; i < g.n; i++)
		rdp[i] = count * g.orders[i] * r * r / 2;
}

void dp_rdp_gaussian(double sensitivity, double sigma, double count, double rdp[DP_ORDERS])
{
	dp_rdp_gaussian_over(dp_order_set, sensitivity, sigma, count, rdp);
}

/* PATE 2018, Prop. 8: two counts change by one each, so the sensitivity is sqrt 2. */
void dp_rdp_gnmax_over(struct dp_order_set g, double sigma, double *rdp)
{
	for (size_t i = 0; i < g.n; i++)
		rdp[i] = g.orders[i] / (sigma * sigma);
}

void dp_rdp_gnmax(double sigma, double rdp[DP_ORDERS])
{
	dp_rdp_gnmax_over(dp_order_set, sigma, rdp);
}

double dp_gnmax_log_q(double sigma, double gap)
{
	return dp_log_half_erfc(fabs(gap) / (2 * sigma));
}

/* The conditions of Theorem 6 on ln q, for every order (the order's own limit is a <= mu1). */
static bool theorem6_applies(double sigma, double log_q, const struct dp_gnmax_bound *b)
{
	double eps2 = b->mu2 / (sigma * sigma);
	if (!(b->mu2 > 1) || log_q + eps2 >= 0)
		return false;
	double shrink = b->mu1 / (b->mu1 - 1) * b->mu2 / (b->mu2 - 1);
	return log_q <= (b->mu2 - 1) * eps2 - b->mu2 * log(shrink);
}

/* ln((1-q) A^(a-1) + q B^(a-1)) / (a-1) with everything in logs. */
static double theorem6(double sigma, double log_q, const struct dp_gnmax_bound *b, double a)
{
	double eps1 = b->mu1 / (sigma * sigma), eps2 = b->mu2 / (sigma * sigma);
	double inner = (b->mu2 - 1) / b->mu2 * (log_q + eps2);
	double log_a = dp_log1mexp(log_q) - dp_log1mexp(inner);
	double log_b = eps1 - log_q / (b->mu1 - 1);
	double first = dp_log1mexp(log_q) + (a - 1) * log_a;
	double second = log_q + (a - 1) * log_b;
	if (first > 30 || second > 30)
		return dp_logaddexp(first, second) / (a - 1);
	return log1p(expm1(first) + exp(second)) / (a - 1);
}

void dp_rdp_gnmax_private_over(struct dp_order_set g, double sigma, double log_q, double *rdp,
			       struct dp_gnmax_bound *bound)
{
	struct dp_gnmax_bound b = { .mu2 = sigma * sqrt(-log_q) };
	b.mu1 = b.mu2 + 1;
	bool applies = theorem6_applies(sigma, log_q, &b);
	dp_rdp_gnmax_over(g, sigma, rdp);
	for (size_t i = 0; applies && i < g.n && g.orders[i] <= b.mu1; i++) {
		rdp[i] = fmax(0, fmin(rdp[i], theorem6(sigma, log_q, &b, g.orders[i])));
		b.max_order = g.orders[i];
	}
	if (bound != NULL)
		*bound = b;
}

void dp_rdp_gnmax_private(double sigma, double log_q, double rdp[DP_ORDERS],
			  struct dp_gnmax_bound *bound)
{
	dp_rdp_gnmax_private_over(dp_order_set, sigma, log_q, rdp, bound);
}

void dp_rdp_threshold_over(struct dp_order_set g, double sigma1, double *rdp)
{
	dp_rdp_gaussian_over(g, 1, sigma1, 1, rdp);
}

double dp_threshold_log_answered(double sigma1, double threshold, double max_votes)
{
	return dp_log_half_erfc((threshold - max_votes) / (M_SQRT2 * sigma1));
}

double dp_threshold_log_q(double sigma1, double threshold, double max_votes)
{
	return dp_log_half_erfc(fabs(threshold - max_votes) / (M_SQRT2 * sigma1));
}
