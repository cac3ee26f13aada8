#include "base/bootstrap.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/mem.h"

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

void bootstrap_middle(double *drawn, size_t n, struct interval *out)
{
	assert(n > 0);
	qsort(drawn, n, sizeof(*drawn), by_value);
	out->low = drawn[n / 40];
	out->high = drawn[n - 1 - n / 40];
}

static double mean_of(const double *x, size_t n)
{
	double sum = 0;

	assert(n > 0);
	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum / (double)n;
}

static double drawn_mean(const double *x, size_t n, struct rng *r)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[rng_below(r, (uint32_t)n)];
	return sum / (double)n;
}

void bootstrap_mean(const double *x, size_t n, struct rng *r, struct interval *out)
{
	double drawn[BOOTSTRAP_DRAWS];

	assert(n <= UINT32_MAX);
	*out = (struct interval){ 0 };
	if (n == 0)
		return;
	out->mean = mean_of(x, n);
	for (size_t k = 0; k < BOOTSTRAP_DRAWS; k++)
		drawn[k] = drawn_mean(x, n, r);
	bootstrap_middle(drawn, BOOTSTRAP_DRAWS, out);
}
