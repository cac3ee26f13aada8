/* ppat/scale.c - centring and scaling of rows. */
#include "ppat/scale.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

static double length_of(const float *x, size_t d)
{
	double sum = 0;
	for (size_t i = 0; i < d; i++)
		sum += (double)x[i] * (double)x[i];
	return sqrt(sum);
}

static void fit_mean(struct ppat_scaling *s, const float *rows, size_t n)
{
	double *sum = mem_array(s->dim, sizeof(double));
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < s->dim; j++)
			sum[j] += (double)rows[i * s->dim + j];
	for (size_t j = 0; j < s->dim; j++)
		s->mean[j] = (float)(sum[j] / (double)n);
	free(sum);
}

static double fit_length(const struct ppat_scaling *s, const float *rows, size_t n)
{
	double sum = 0, squares = 0;
	float *x = mem_array(s->dim, sizeof(float));
	for (size_t i = 0; i < n; i++) {
		for (size_t j = 0; j < s->dim; j++)
			x[j] = rows[i * s->dim + j] - s->mean[j];
		double l = length_of(x, s->dim);
		sum += l;
		squares += l * l;
	}
	free(x);
	return s->kind == PPAT_SCALE_UNIT ? sum / (double)n : sqrt(squares / (double)n);
}

void ppat_scaling_fit(struct ppat_scaling *s, const struct ppat_config *c, const float *rows,
		      size_t n, size_t dim)
{
	*s = (struct ppat_scaling){ .kind = c->scale, .dim = dim, .length = 1.0 };
	s->mean = mem_array(dim, sizeof(float));
	if (c->center != 0 && n > 0)
		fit_mean(s, rows, n);
	if (s->kind != PPAT_SCALE_NONE && n > 0)
		s->length = fit_length(s, rows, n);
}

void ppat_scaling_release(struct ppat_scaling *s)
{
	free(s->mean);
	*s = (struct ppat_scaling){ 0 };
}

/* The divisor of a row; a zero row, or a table of them, stays as it is. */
static double divisor(const struct ppat_scaling *s, const float *x)
{
	double l = s->kind == PPAT_SCALE_UNIT ? length_of(x, s->dim) : s->length;
	return l > 0 ? l : 1.0;
}

void ppat_scaling_apply(const struct ppat_scaling *s, float *rows, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float *x = rows + i * s->dim;
		for (size_t j = 0; j < s->dim; j++)
			x[j] -= s->mean[j];
		if (s->kind == PPAT_SCALE_NONE)
			continue;
		double by = divisor(s, x);
		for (size_t j = 0; j < s->dim; j++)
			x[j] = (float)((double)x[j] / by);
	}
}

void ppat_scaling_undo(const struct ppat_scaling *s, float *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < s->dim; j++)
			rows[i * s->dim + j] =
				(float)((double)rows[i * s->dim + j] * s->length) + s->mean[j];
}
