/* nn/optim.h - one optimiser step over a plain vector of parameters.
 *
 * The state is a value: zero it to start, release it at the end. */
#ifndef NN_OPTIM_H
#define NN_OPTIM_H

#include <stddef.h>
#include <stdint.h>

/* v <- momentum v + g;  p <- p - lr v   (PyTorch's form, no dampening) */
struct nn_sgd {
	float lr, momentum;
	size_t n;
	float *v; /* [n] */
};

void nn_sgd_init(struct nn_sgd *s, size_t n, float lr, float momentum);
void nn_sgd_release(struct nn_sgd *s);
void nn_sgd_step(struct nn_sgd *s, float *param, const float *grad);

/* Adam (Kingma and Ba 2015) with bias correction. */
struct nn_adam {
	float lr, beta1, beta2, eps;
	size_t n;
	uint64_t step;
	float *m, *v; /* [n] */
};

void nn_adam_init(struct nn_adam *s, size_t n, float lr); /* .9, .999, 1e-8 */
void nn_adam_release(struct nn_adam *s);
void nn_adam_step(struct nn_adam *s, float *param, const float *grad);

#endif
