/* nn/mlp.c - forward and backward passes of small dense networks. */
#include "nn/mlp.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <threads.h>

#include <cblas.h>
#include <sodium.h>

#include "base/mem.h"

static once_flag single_once = ONCE_FLAG_INIT;

static void make_single(void)
{
	openblas_set_num_threads(1);
}

void nn_blas_single(void)
{
	call_once(&single_once, make_single);
}

/* Where layer l's weights begin in param, and its biases after them. */
static size_t layer_offset(const struct nn_mlp *m, size_t l)
{
	size_t at = 0;
	assert(l <= m->layers);
	for (size_t k = 0; k < l; k++)
		at += m->width[k + 1] * (m->width[k] + 1);
	return at;
}

void nn_mlp_init(struct nn_mlp *m, const size_t *width, size_t layers, float slope, struct rng *r)
{
	assert(layers >= 1 && layers <= NN_LAYERS_MAX && width[layers] == 1);
	nn_blas_single();
	*m = (struct nn_mlp){ .layers = layers, .slope = slope };
	memcpy(m->width, width, (layers + 1) * sizeof(*width));
	m->params = layer_offset(m, layers);
	m->param = mem_aligned(m->params, sizeof(float));
	for (size_t l = 0; l < layers; l++) {
		float bound = (float)sqrt(6.0 / (double)width[l]);
		float *w = m->param + layer_offset(m, l);
		for (size_t i = 0; i < width[l] * width[l + 1]; i++)
			w[i] = rng_range(r, -bound, bound);
	}
}

void nn_mlp_release(struct nn_mlp *m)
{
	if (m->param != NULL)
		sodium_memzero(m->param, m->params * sizeof(float));
	free(m->param);
	*m = (struct nn_mlp){ 0 };
}

void nn_tape_init(struct nn_tape *t, const struct nn_mlp *m, size_t cap)
{
	assert(m->layers >= 1 && m->layers <= NN_LAYERS_MAX);
	*t = (struct nn_tape){ .cap = cap };
	t->ones = mem_array(cap, sizeof(float));
	for (size_t i = 0; i < cap; i++)
		t->ones[i] = 1.0f;
	for (size_t l = 0; l < m->layers; l++) {
		t->z[l] = mem_aligned(cap * m->width[l + 1], sizeof(float));
		t->a[l] = mem_aligned(cap * m->width[l + 1], sizeof(float));
		t->delta[l] = mem_aligned(cap * m->width[l + 1], sizeof(float));
	}
}

void nn_tape_release(struct nn_tape *t)
{
	for (size_t l = 0; l < NN_LAYERS_MAX; l++) {
		free(t->z[l]);
		free(t->a[l]);
		free(t->delta[l]);
	}
	free(t->ones);
	*t = (struct nn_tape){ 0 };
}

static void leaky(float *a, const float *z, size_t n, float slope)
{
	for (size_t i = 0; i < n; i++)
		a[i] = z[i] > 0.0f ? z[i] : slope * z[i];
}

const float *nn_forward(const struct nn_mlp *m, struct nn_tape *t, const float *x, size_t n)
{
	assert(n <= t->cap);
	t->n = n;
	for (size_t l = 0; l < m->layers; l++) {
		size_t in = m->width[l], out = m->width[l + 1];
		const float *w = m->param + layer_offset(m, l), *b = w + in * out;
		for (size_t i = 0; i < n; i++)
			memcpy(t->z[l] + i * out, b, out * sizeof(float));
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)n, (int)out, (int)in,
			    1.0f, x, (int)in, w, (int)in, 1.0f, t->z[l], (int)out);
		leaky(t->a[l], t->z[l], n * out, m->slope);
		x = t->a[l];
	}
	return t->z[m->layers - 1];
}

/* dL/dparam of layer l, given its delta and its input. */
static void layer_grad(const struct nn_mlp *m, const struct nn_tape *t, size_t l,
		       const float *input, float *grad)
{
	size_t in = m->width[l], out = m->width[l + 1];
	float *gw = grad + layer_offset(m, l), *gb = gw + in * out;
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)out, (int)in, (int)t->n, 1.0f,
		    t->delta[l], (int)out, input, (int)in, 1.0f, gw, (int)in);
	cblas_sgemv(CblasRowMajor, CblasTrans, (int)t->n, (int)out, 1.0f, t->delta[l], (int)out,
		    t->ones, 1, 1.0f, gb, 1);
}

/* dL/d(input of layer l) into down [n x width[l]]. */
static void layer_down(const struct nn_mlp *m, const struct nn_tape *t, size_t l, float *down)
{
	size_t in = m->width[l], out = m->width[l + 1];
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)t->n, (int)in, (int)out, 1.0f,
		    t->delta[l], (int)out, m->param + layer_offset(m, l), (int)in, 0.0f, down,
		    (int)in);
}

void nn_backward(const struct nn_mlp *m, struct nn_tape *t, const float *x, const float *dlogit,
		 float *grad, float *dx)
{
	size_t last = m->layers - 1;
	assert(m->layers >= 1 && t->n <= t->cap);
	memcpy(t->delta[last], dlogit, t->n * sizeof(float));
	for (size_t l = last;; l--) {
		if (grad != NULL)
			layer_grad(m, t, l, l == 0 ? x : t->a[l - 1], grad);
		if (l == 0)
			break;
		layer_down(m, t, l, t->delta[l - 1]);
		for (size_t i = 0; i < t->n * m->width[l]; i++)
			if (!(t->z[l - 1][i] > 0.0f))
				t->delta[l - 1][i] *= m->slope;
	}
	if (dx != NULL)
		layer_down(m, t, 0, dx);
}

static double sigmoid(double x)
{
	return x >= 0 ? 1.0 / (1.0 + exp(-x)) : exp(x) / (1.0 + exp(x));
}

/* log(1 + e^x) without overflow */
static double softplus(double x)
{
	return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

double nn_loss_logistic(const float *logit, const float *y, size_t n, float scale, float *dlogit)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		double x = (double)logit[i], t = (double)y[i];
		sum += softplus(x) - t * x;
		dlogit[i] = (float)((double)scale * (sigmoid(x) - t));
	}
	return (double)scale * sum;
}

double nn_loss_saturating(const float *logit, size_t n, float scale, float *dlogit)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		double x = (double)logit[i];
		sum -= softplus(x);
		dlogit[i] = (float)((double)scale * -sigmoid(x));
	}
	return (double)scale * sum;
}

double nn_loss_non_saturating(const float *logit, size_t n, float scale, float *dlogit)
{
	double sum = 0;
	for (size_t i = 0; i < n; i++) {
		double x = (double)logit[i];
		sum += softplus(-x);
		dlogit[i] = (float)((double)scale * (sigmoid(x) - 1.0));
	}
	return (double)scale * sum;
}
