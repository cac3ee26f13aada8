/* ppat/aggregate.c - translated rows into the host's table. */
#include "ppat/aggregate.h"

#include <math.h>
#include <stdlib.h>

static const double bound_times = 2;

static float share_of(enum ppat_combine how, float agreement, unsigned earlier)
{
	switch (how) {
	case PPAT_REPLACE:
		return 1.0f;
	case PPAT_WEIGHTED:
		return agreement > 0.0f ? 0.5f * agreement : 0.0f;
	case PPAT_MEAN:
		return 1.0f / (float)(earlier + 2);
	case PPAT_AVERAGE:
		break;
	}
	return 0.5f;
}

double ppat_row_length(const float *y, size_t dim)
{
	double sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += (double)y[i] * (double)y[i];
	return sqrt(sum);
}

static int by_row_length(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

double ppat_typical_length(double *length, size_t n)
{
	qsort(length, n, sizeof(*length), by_row_length);
	return n > 0 ? length[n / 2] : 0;
}

static double rows_apart(const float *y, const float *x, size_t dim)
{
	double sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += ((double)y[i] - (double)x[i]) * ((double)y[i] - (double)x[i]);
	return sqrt(sum);
}

double ppat_row_bound(const float *y, size_t dim, double typical)
{
	double own = ppat_row_length(y, dim);

	return bound_times * (own > typical ? own : typical);
}

void ppat_combine_row(float *y, const float *x, size_t dim, enum ppat_combine how, float agreement,
		      unsigned earlier, double bound)
{
	float w = share_of(how, agreement, earlier);
	double apart = bound < HUGE_VAL ? rows_apart(y, x, dim) : 0;

	if (apart > bound)
		w *= (float)(bound / apart);
	for (size_t i = 0; i < dim; i++)
		y[i] = (1.0f - w) * y[i] + w * x[i];
}
