/* dp/moments.c - the moments accountant of PATE 2017 (methods 3.3, `paper`). */
#include "dp/moments.h"

#include <assert.h>
#include <math.h>

#include "dp/special_internal.h"

double dp_moments_log_q(double lambda, uint64_t gap)
{
	double x = lambda * (double)gap;
	return log(0.5 + 0.25 * x) - x;
}

double dp_moments_q(double lambda, uint64_t gap)
{
	double x = lambda * (double)gap;
	return 0.25 * (2 + x) * exp(-x);
}

double dp_moments_q_limit(double lambda)
{
	return 1 / (1 + exp(2 * lambda));
}

bool dp_moments_applies(uint64_t gap)
{
	return gap >= 3;
}

/* Eq. 9 for one query.  With (1-q)/(1 - e^(2 lambda) q) = 1 + w its argument is
 * 1 + (1-q)((1+w)^l - 1) + q (e^(2 lambda l) - 1), and both added terms are positive:
 * so each is taken in logs, and nothing cancels or overflows. */
static double data_dependent(double lambda, double log_q, int l)
{
	double log_w = log_q + dp_logexpm1(2 * lambda) - dp_log1mexp(2 * lambda + log_q);
	double growth = l * (log_w > 30 ? log_w : log1p(exp(log_w)));
	double first = dp_log1mexp(log_q), second = log_q + dp_logexpm1(2 * lambda * l);
	/* growth may underflow to 0, and then (1+w)^l - 1 is l w */
	first += growth > 0 && log_w > -700 ? dp_logexpm1(growth) : log(l) + log_w;
	double sum = dp_logaddexp(first, second);
	return sum > 30 ? sum + log1p(exp(-sum)) : log1p(exp(sum));
}

static double data_independent(double lambda, int l)
{
	return 2 * lambda * lambda * l * (l + 1);
}

void dp_moments_add_public(double alpha[DP_MOMENTS], double lambda, double n)
{
	assert(lambda > 0 && n >= 0);
	for (int l = 1; l <= DP_MOMENTS; l++)
		alpha[l - 1] += n * data_independent(lambda, l);
}

void dp_moments_add_private(double alpha[DP_MOMENTS], double lambda, uint64_t gap, double n,
			    bool capped)
{
	double log_q = dp_moments_log_q(lambda, gap);
	assert(lambda > 0 && n >= 0);
	for (int l = 1; l <= DP_MOMENTS; l++) {
		double cost = data_independent(lambda, l);
		if (dp_moments_applies(gap))
			cost = fmin(cost, data_dependent(lambda, log_q, l));
		if (capped)
			cost = fmin(cost, 2 * lambda * l);
		alpha[l - 1] += n * cost;
	}
}

struct dp_moments_epsilon dp_moments_epsilon(const double alpha[DP_MOMENTS], double delta)
{
	struct dp_moments_epsilon best = { INFINITY, 1 };
	assert(delta > 0 && delta < 1);
	for (int l = 1; l <= DP_MOMENTS; l++) {
		double epsilon = (alpha[l - 1] - log(delta)) / l;
		if (epsilon < best.epsilon)
			best = (struct dp_moments_epsilon){ epsilon, l };
	}
	return best;
}
