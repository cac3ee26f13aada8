/* nn/optim.c - SGD with momentum, and Adam. */
#include "nn/optim.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void nn_sgd_init(struct nn_sgd *s, size_t n, float lr, float momentum)
{
	*s = (struct nn_sgd){ .lr = lr, .momentum = momentum, .n = n };
	s->v = mem_array(n, sizeof(float));
}

void nn_sgd_release(struct nn_sgd *s)
{
	free(s->v);
	*s = (struct nn_sgd){ 0 };
}

void nn_sgd_step(struct nn_sgd *s, float *param, const float *grad)
{
	assert(s->v != NULL || s->n == 0);
	for (size_t i = 0; i < s->n; i++) {
		s->v[i] = s->momentum * s->v[i] + grad[i];
		param[i] -= s->lr * s->v[i];
	}
}

void nn_adam_init(struct nn_adam *s, size_t n, float lr)
{
	*s = (struct nn_adam){ .lr = lr, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f, .n = n };
	s->m = mem_array(n, sizeof(float));
	s->v = mem_array(n, sizeof(float));
}

void nn_adam_release(struct nn_adam *s)
{
	free(s->m);
	free(s->v);
	*s = (struct nn_adam){ 0 };
}

void nn_adam_step(struct nn_adam *s, float *param, const float *grad)
{
	s->step++;
	double fix1 = 1.0 - pow((double)s->beta1, (double)s->step);
	double fix2 = 1.0 - pow((double)s->beta2, (double)s->step);
	float rate = (float)((double)s->lr / fix1), root = (float)(1.0 / sqrt(fix2));
	for (size_t i = 0; i < s->n; i++) {
		s->m[i] = s->beta1 * s->m[i] + (1.0f - s->beta1) * grad[i];
		s->v[i] = s->beta2 * s->v[i] + (1.0f - s->beta2) * grad[i] * grad[i];
		param[i] -= rate * s->m[i] / (sqrtf(s->v[i]) * root + s->eps);
	}
}
