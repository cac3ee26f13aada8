/* kge/kernel_scalar.c - the definition of every kernel: plain loops, no order but the obvious. */
#include <math.h>

#include "kge/kernel.h"

/* ---- metrics ---- */

static float l1(const float *q, const float *c, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabs((double)q[i] - (double)c[i]);
	return (float)sum;
}

static float l2(const float *q, const float *c, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		double d = (double)q[i] - (double)c[i];

		sum += d * d;
	}
	return (float)sqrt(sum);
}

static float dot(const float *q, const float *c, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)q[i] * (double)c[i];
	return (float)sum;
}

static float modulus(const float *q, const float *c, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n / 2; i++) {
		double re = (double)q[i] - (double)c[i];
		double im = (double)q[n / 2 + i] - (double)c[n / 2 + i];

		sum += sqrt(re * re + im * im);
	}
	return (float)sum;
}

/* ---- gradients of w * metric(q, c): added to dq and dc ---- */

static void l1_grad(float *dq, float *dc, float w, const float *q, const float *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float g = signbit(q[i] - c[i]) ? -w : w;

		dq[i] += g;
		dc[i] -= g;
	}
}

static void l2_grad(float *dq, float *dc, float w, const float *q, const float *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float g = w * (q[i] - c[i]);

		dq[i] += g;
		dc[i] -= g;
	}
}

static void dot_grad(float *dq, float *dc, float w, const float *q, const float *c, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		dq[i] += w * c[i];
		dc[i] += w * q[i];
	}
}

static void modulus_grad(float *dq, float *dc, float w, const float *q, const float *c, size_t n)
{
	for (size_t re = 0, im = n / 2; re < n / 2; re++, im++) {
		float x = q[re] - c[re], y = q[im] - c[im];
		float length = sqrtf(x * x + y * y);
		float u = length > 0 ? w / length : 0.0f;

		dq[re] += u * x;
		dq[im] += u * y;
		dc[re] -= u * x;
		dc[im] -= u * y;
	}
}

/* ---- the shapes in which the trainer and the evaluation want them ---- */

#define SHAPES(name)                                                                               \
	static void name##_rows(float *restrict out, const float *restrict q,                      \
				const float *restrict rows, size_t n, size_t floats)               \
	{                                                                                          \
		for (size_t i = 0; i < n; i++)                                                     \
			out[i] = name(q, rows + i * floats, floats);                               \
	}                                                                                          \
	static void name##_score_pairs(float *restrict line, const float *restrict row,            \
				       const struct kge_pairs *p)                                  \
	{                                                                                          \
		for (size_t i = 0; i < p->n; i++) {                                                \
			size_t q = p->at[i] >> KGE_PAIR_BITS, j = p->at[i] & 0xffff;               \
                                                                                                   \
			line[q * p->width + j] = name(p->q + q * p->stride, row, p->floats);       \
		}                                                                                  \
	}                                                                                          \
	static void name##_grad_pairs(float *restrict drow, float *restrict dq,                    \
				      const float *restrict weight, const float *restrict row,     \
				      const struct kge_pairs *p)                                   \
	{                                                                                          \
		for (size_t i = 0; i < p->floats; i++)                                             \
			drow[i] = 0.0f;                                                            \
		for (size_t i = 0; i < p->n; i++) {                                                \
			size_t q = p->at[i] >> KGE_PAIR_BITS, j = p->at[i] & 0xffff;               \
                                                                                                   \
			name##_grad(dq + q * p->stride, drow, weight[q * p->width + j],            \
				    p->q + q * p->stride, row, p->floats);                         \
		}                                                                                  \
	}                                                                                          \
	static void name##_score_tile(float *restrict out, size_t ldo, const struct kge_tile *t)   \
	{                                                                                          \
		for (size_t i = 0; i < t->nq; i++)                                                 \
			for (size_t j = 0; j < t->nc; j++)                                         \
				out[i * ldo + j] = name(t->q + i * t->q_stride,                    \
							t->c + j * t->c_stride, t->floats);        \
	}                                                                                          \
	static void name##_grad_tile(float *restrict dq, float *restrict dc,                       \
				     const float *restrict w, size_t ldw,                          \
				     const struct kge_tile *t)                                     \
	{                                                                                          \
		for (size_t i = 0; i < t->nq; i++)                                                 \
			for (size_t j = 0; j < t->nc; j++)                                         \
				name##_grad(dq + i * t->q_stride, dc + j * t->c_stride,            \
					    w[i * ldw + j], t->q + i * t->q_stride,                \
					    t->c + j * t->c_stride, t->floats);                    \
	}

SHAPES(l1)
SHAPES(l2)
SHAPES(dot)
SHAPES(modulus)

/* ---- losses ---- */

static void logistic(float *restrict softplus, float *restrict sigmoid, const float *restrict x,
		     size_t n)
{
	for (size_t i = 0; i < n; i++) {
		double z = exp(-fmin(fabs((double)x[i]), 87.0));

		softplus[i] = (float)(fmax((double)x[i], 0.0) + log1p(z));
		sigmoid[i] = (float)(x[i] >= 0 ? 1.0 / (1.0 + z) : z / (1.0 + z));
	}
}

static float softmax(float *restrict p, const float *restrict x, float temperature, size_t n)
{
	float top = x[0];
	double sum = 0;

	for (size_t i = 1; i < n; i++)
		top = fmaxf(top, x[i]);
	for (size_t i = 0; i < n; i++) {
		p[i] = (float)exp(fmax((double)(temperature * (x[i] - top)), -87.0));
		sum += (double)p[i];
	}
	for (size_t i = 0; i < n; i++)
		p[i] = (float)((double)p[i] / sum);
	return (float)((double)(temperature * top) + log(sum));
}

/* ---- optimisers (methods 1.2) ---- */

static void add(float *restrict sum, const float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sum[i] += x[i];
}

static void sgd(float *restrict w, const float *restrict g, const struct kge_step *s, size_t n)
{
	for (size_t i = 0; i < n; i++)
		w[i] -= s->lr * g[i];
}

static void momentum(float *restrict w, float *restrict m, const float *restrict g,
		     const struct kge_step *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		m[i] = s->beta1 * m[i] + g[i];
		w[i] -= s->lr * m[i];
	}
}

static void adagrad(float *restrict w, float *restrict v, const float *restrict g,
		    const struct kge_step *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		v[i] += g[i] * g[i];
		w[i] -= s->lr * g[i] / (sqrtf(v[i]) + s->eps);
	}
}

static void adam(float *restrict w, float *restrict m, float *restrict v, const float *restrict g,
		 const struct kge_step *s, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		m[i] = s->beta1 * m[i] + (1.0f - s->beta1) * g[i];
		v[i] = s->beta2 * v[i] + (1.0f - s->beta2) * g[i] * g[i];
		w[i] -= s->lr * m[i] / (sqrtf(v[i]) * s->scale2 + s->eps);
	}
}

const struct kge_kernels kge_kernels_scalar = {
	.isa = "scalar",
	.score = { l1_rows, l2_rows, dot_rows, modulus_rows },
	.score_pairs = { l1_score_pairs, l2_score_pairs, dot_score_pairs, modulus_score_pairs },
	.grad_pairs = { l1_grad_pairs, l2_grad_pairs, dot_grad_pairs, modulus_grad_pairs },
	.score_tile = { l1_score_tile, l2_score_tile, dot_score_tile, modulus_score_tile },
	.grad_tile = { l1_grad_tile, l2_grad_tile, dot_grad_tile, modulus_grad_tile },
	.logistic = logistic,
	.softmax = softmax,
	.add = add,
	.sgd = sgd,
	.momentum = momentum,
	.adagrad = adagrad,
	.adam = adam,
};
