/* dp/special.c - special functions for tails. */
#include "dp/special_internal.h"

#include <assert.h>
#include <math.h>

/* e^(x^2) erfc(x) for large x: Laplace's continued fraction, evaluated from the end. */
static double scaled_erfc(double x)
{
	double t = x;
	for (int k = 60; k > 0; k--)
		t = x + 0.5 * k / t;
	return M_2_SQRTPI / 2 / t;
}

double dp_log_half_erfc(double x)
{
	if (x < 0)
		return log1p(-0.5 * erfc(-x));
	if (x < 10)
		return log(0.5 * erfc(x));
	return log(0.5 * scaled_erfc(x)) - x * x;
}

double dp_log1mexp(double x)
{
	return x > -M_LN2 ? log(-expm1(x)) : log1p(-exp(x));
}

double dp_logexpm1(double x)
{
	return x < 30 ? log(expm1(x)) : x + log1p(-exp(-x));
}

double dp_logaddexp(double x, double y)
{
	double top = fmax(x, y);
	if (isinf(top))
		return top;
	return top + log1p(exp(fmin(x, y) - top));
}

/* The binomial series from its third term on; |a u| is small. */
static double excess_series(double u, double a)
{
	double term = a * u, sum = 0;
	for (int k = 2; k < 200; k++) {
		term *= u * (a - k + 1) / k;
		sum += term;
		if (fabs(term) <= 1e-18 * fabs(sum))
			break;
	}
	return sum;
}

double dp_pow_excess(double u, double a)
{
	double excess;
	if (fabs(u) < 0.25 && fabs(a * u) < 0.25)
		excess = excess_series(u, a);
	else
		excess = expm1(a * log1p(u)) - a * u;
	return fmax(excess, 0);
}

/* ln n! minus Stirling's n ln n - n + ln(2 pi n)/2. */
static double stirling_rest(double n)
{
	if (n < 16)
		return lgamma(n + 1) - ((n + 0.5) * log(n) - n + 0.5 * log(2 * M_PI));
	double s = 1 / (n * n);
	return (1.0 / 12 - s * (1.0 / 360 - s * (1.0 / 1260 - s * (1.0 / 1680 - s / 1188)))) / n;
}

/* x ln(x/m) + m - x: how far x is from its mean m, without cancellation (Loader 2000). */
static double deviance(double x, double m)
{
	double v = (x - m) / (x + m);
	if (fabs(v) > 0.1)
		return x * log(x / m) + m - x;
	double sum = (x - m) * v, term = 2 * x * v;
	for (int j = 1; j < 100; j++) {
		term *= v * v;
		double next = sum + term / (2 * j + 1);
		if (next == sum)
			break;
		sum = next;
	}
	return sum;
}

double dp_binomial_pmf(uint64_t k, uint64_t n, double p)
{
	double x = (double)k, all = (double)n, rest = (double)(n - k);
	assert(k <= n && p >= 0 && p <= 1);
	if (k > n)
		return 0;
	if (p <= 0)
		return k == 0;
	if (p >= 1)
		return k == n;
	if (k == 0)
		return exp(all * log1p(-p));
	if (k == n)
		return exp(all * log(p));
	double l = stirling_rest(all) - stirling_rest(x) - stirling_rest(rest) -
		   deviance(x, all * p) - deviance(rest, all * (1 - p));
	return exp(l) * sqrt(all / (2 * M_PI * x * rest));
}

/* The continued fraction of I_p(a, b) (DLMF 8.17.22) by Lentz's method; converges fast for
 * p < (a + 1) / (a + b + 2). */
static double beta_fraction(double p, double a, double b)
{
	const double tiny = 1e-300;
	double c = 1, d = 1 - (a + b) * p / (a + 1);
	d = 1 / (fabs(d) < tiny ? tiny : d);
	double f = d;
	for (int j = 1; j < 100000; j++) {
		double e = 2.0 * j;
		double up[2] = { j * (b - j) * p / ((a + e - 1) * (a + e)),
				 -(a + j) * (a + b + j) * p / ((a + e) * (a + e + 1)) };
		double step = 1;
		for (int i = 0; i < 2; i++) {
			d = 1 + up[i] * d;
			c = 1 + up[i] / c;
			d = 1 / (fabs(d) < tiny ? tiny : d);
			c = fabs(c) < tiny ? tiny : c;
			step = c * d;
			f *= step;
		}
		if (fabs(step - 1) < 1e-16)
			break;
	}
	return f;
}

/* Pr[Binomial(n, p) >= k] is I_p(k, n-k+1); its prefactor p^a (1-p)^b / (a B(a, b)) is
 * the probability of exactly k, times 1 - p. */
double dp_binomial_tail(uint64_t k, uint64_t n, double p)
{
	assert(p >= 0 && p <= 1);
	if (k == 0)
		return 1;
	if (k > n || p <= 0)
		return 0;
	if (p >= 1)
		return 1;
	double a = (double)k, b = (double)(n - k) + 1;
	if (p < (a + 1) / (a + b + 2))
		return fmin(1, dp_binomial_pmf(k, n, p) * (1 - p) * beta_fraction(p, a, b));
	/* the other tail: Pr[<= k-1] = Pr[Binomial(n, 1-p) >= n-k+1] */
	double low = dp_binomial_pmf(k - 1, n, p) * p * beta_fraction(1 - p, b, a);
	return fmax(0, 1 - low);
}
