/* dp/release.c - what noisy releases cost. */
#include "dp/release.h"

#include <math.h>

#include "dp/accountant.h"
#include "dp/gaussian.h"

int dp_release_check(double z, struct err *e)
{
	/* The negated form refuses NaN too. */
	if (!(z >= 1e-3 && z <= 1e9))
		return err_set(e, ERR_USAGE,
			       "noise multiplier of a release is %g: must be in [1e-3, 1e9]", z);
	return 0;
}

void dp_release_rdp(double z, uint64_t count, double rdp[DP_ORDERS])
{
	dp_rdp_gaussian(1, z, (double)count, rdp);
}

struct price {
	enum dp_release noise;
	double z, delta;
};

static double epsilon_of(const void *ctx, uint64_t count)
{
	const struct price *p = ctx;
	double rdp[DP_ORDERS], renyi;

	if (count == 0)
		return 0;
	dp_release_rdp(p->z, count, rdp);
	renyi = dp_rdp_tight(rdp, p->delta).epsilon;
	if (p->noise == DP_RELEASE_DISCRETE)
		return renyi;
	return fmin(renyi, dp_gaussian_epsilon(sqrt((double)count), p->z, p->delta));
}

static int price_is_valid(const struct price *p)
{
	return dp_release_check(p->z, NULL) == 0 && p->delta > 0 && p->delta < 1;
}

double dp_release_epsilon(enum dp_release noise, double z, uint64_t count, double delta)
{
	struct price p = { noise, z, delta };

	return price_is_valid(&p) ? epsilon_of(&p, count) : INFINITY;
}

/* Epsilon falls as z rises: bisect on a logarithmic scale, and keep the side that holds. */
double dp_release_multiplier(enum dp_release noise, double eps, double delta)
{
	double low = 1e-3, high = 1e9;

	if (!(dp_release_epsilon(noise, high, 1, delta) <= eps))
		return INFINITY;
	if (dp_release_epsilon(noise, low, 1, delta) <= eps)
		return low;
	while (high > low * (1 + 1e-12)) {
		double mid = sqrt(low * high);

		if (dp_release_epsilon(noise, mid, 1, delta) <= eps)
			high = mid;
		else
			low = mid;
	}
	return high;
}
