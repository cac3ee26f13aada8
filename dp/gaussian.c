/* dp/gaussian.c - the analytic Gaussian mechanism (Balle and Wang 2018). */
#include "dp/gaussian.h"

#include <assert.h>
#include <math.h>

static long double phi(long double x)
{
	return 0.5L * erfcl(-x * (long double)M_SQRT1_2l);
}

/* Theorem 8.  The two terms cancel for small r, hence the wide type.  e^eps and its Phi
 * are joined in the exponent where e^eps alone would be too large. */
static double profile(double r, double epsilon)
{
	long double a = (long double)r / 2 - (long double)epsilon / r;
	long double b = -(long double)r / 2 - (long double)epsilon / r;
	long double tail = phi(b);
	long double second = tail > 0 ? expl((long double)epsilon + logl(tail)) : 0;
	return fmax(0, (double)(phi(a) - second));
}

double dp_gaussian_delta(double sensitivity, double sigma, double epsilon)
{
	assert(sensitivity >= 0 && sigma > 0 && epsilon >= 0);
	return profile(sensitivity / sigma, epsilon);
}

double dp_gaussian_epsilon(double sensitivity, double sigma, double delta)
{
	double r = sensitivity / sigma, low = 0, high = 1;
	assert(sensitivity >= 0 && sigma > 0 && delta > 0);
	if (profile(r, 0) <= delta)
		return 0;
	while (profile(r, high) > delta)
		high *= 2;
	for (int i = 0; i < 200 && high - low > 1e-15 * high; i++) {
		double mid = (low + high) / 2;
		if (profile(r, mid) <= delta)
			high = mid;
		else
			low = mid;
	}
	return high;
}

/* delta(eps) rises with r: bisect r on a logarithmic scale. */
double dp_gaussian_sigma(double sensitivity, double epsilon, double delta)
{
	double low = 1e-12, high = 1;
	assert(sensitivity >= 0 && epsilon >= 0 && delta > 0);
	while (profile(high, epsilon) <= delta && high < 1e12)
		high *= 2;
	for (int i = 0; i < 400 && high - low > 1e-15 * high; i++) {
		double mid = sqrt(low * high);
		if (mid <= low || mid >= high)
			break;
		if (profile(mid, epsilon) <= delta)
			low = mid;
		else
			high = mid;
	}
	return sensitivity / low;
}

double dp_gaussian_sigma_classic(double sensitivity, double epsilon, double delta)
{
	assert(epsilon > 0 && delta > 0);
	return sensitivity * sqrt(2 * log(1.25 / delta)) / epsilon;
}
