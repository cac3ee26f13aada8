/* nn/mlp.h - small dense networks: leaky-ReLU hidden layers, one logistic output.
 *
 *   a_0 = x,  z_l = W_l a_{l-1} + b_l,  a_l = leaky(z_l),  logit = z_L,  p = 1/(1+e^-logit)
 *
 * Batches are row-major [n x width[0]], one row an example.  All parameters of
 * a network lie in one array (per layer: W_l as [out x in], then b_l), so that
 * optimisers, copies and finite differences see a plain vector.
 *
 * Deterministic: OpenBLAS is told to use one thread (nn_blas_single(), called
 * by every function here), and the order of all additions depends on shapes
 * alone.  Two runs on one machine give the same bits. */
#ifndef NN_MLP_H
#define NN_MLP_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum { NN_LAYERS_MAX = 6 };

/* OpenBLAS on one thread for the whole process, from the first call on.  The
 * agent runs one job per worker, so more BLAS threads would only fight for
 * cores, and would make sums depend on the machine's load.  Any thread. */
void nn_blas_single(void);

struct nn_mlp {
	size_t layers;			 /* weight matrices; 1..NN_LAYERS_MAX */
	size_t width[NN_LAYERS_MAX + 1]; /* width[0] inputs ... width[layers] == 1 */
	float slope;			 /* of the leaky ReLU below zero */
	size_t params;
	float *param; /* [params] */
};

/* He-uniform weights (bound sqrt(6 / fan-in)) and zero biases, from r alone. */
void nn_mlp_init(struct nn_mlp *m, const size_t *width, size_t layers, float slope, struct rng *r);
void nn_mlp_release(struct nn_mlp *m); /* wipes the parameters */

/* The values that a forward pass leaves for the backward pass; reused between calls. */
struct nn_tape {
	size_t n, cap;		     /* rows of the last forward pass; rows there is room for */
	float *z[NN_LAYERS_MAX];     /* [cap x width[l+1]] before the activation */
	float *a[NN_LAYERS_MAX];     /* [cap x width[l+1]] after it */
	float *delta[NN_LAYERS_MAX]; /* [cap x width[l+1]] dL/dz */
	float *ones;		     /* [cap] */
};

void nn_tape_init(struct nn_tape *t, const struct nn_mlp *m, size_t cap);
void nn_tape_release(struct nn_tape *t);

/* Logits of n rows, n <= t->cap; the result is t's until its next use. */
const float *nn_forward(const struct nn_mlp *m, struct nn_tape *t, const float *x, size_t n);

/* After nn_forward() on the same x: given dL/dlogit [n], *add* dL/dparam to grad
 * [params] and *set* dx [n x width[0]].  Either may be NULL. */
void nn_backward(const struct nn_mlp *m, struct nn_tape *t, const float *x, const float *dlogit,
		 float *grad, float *dx);

/* ---- losses on logits; each returns the loss and fills dL/dlogit [n] ---- */

/* scale * sum -[y log p + (1-y) log(1-p)], y in [0,1]. */
double nn_loss_logistic(const float *logit, const float *y, size_t n, float scale, float *dlogit);
/* Generator, saturating: scale * sum log(1 - p). */
double nn_loss_saturating(const float *logit, size_t n, float scale, float *dlogit);
/* Generator, non-saturating: scale * sum -log p. */
double nn_loss_non_saturating(const float *logit, size_t n, float scale, float *dlogit);

#endif
