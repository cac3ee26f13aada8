/* ppat/student.c - the student's two steps. */
#include "ppat/student.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ppat_pupil_init(struct ppat_pupil *s, const struct ppat_config *c)
{
	const size_t width[] = { c->host_dim, c->student_hidden, 1 };
	struct rng r;
	rng_seed(&r, c->student_seed);
	*s = (struct ppat_pupil){ .loss = c->loss };
	nn_mlp_init(&s->net, width, 2, 0.2f, &r);
	nn_sgd_init(&s->sgd, s->net.params, (float)c->lr, (float)c->momentum);
	nn_tape_init(&s->tape, &s->net, c->batch);
	s->grad = mem_array(s->net.params, sizeof(float));
	s->dlogit = mem_array(c->batch, sizeof(float));
}

void ppat_pupil_release(struct ppat_pupil *s)
{
	nn_mlp_release(&s->net);
	nn_sgd_release(&s->sgd);
	nn_tape_release(&s->tape);
	free(s->grad);
	free(s->dlogit);
	*s = (struct ppat_pupil){ 0 };
}

void ppat_pupil_train(struct ppat_pupil *s, const float *z, const float *label, size_t n)
{
	memset(s->grad, 0, s->net.params * sizeof(float));
	nn_loss_logistic(nn_forward(&s->net, &s->tape, z, n), label, n, 1.0f / (float)n, s->dlogit);
	nn_backward(&s->net, &s->tape, z, s->dlogit, s->grad, NULL);
	nn_sgd_step(&s->sgd, s->net.param, s->grad);
}

void ppat_pupil_gradient(struct ppat_pupil *s, const float *z, size_t n, float *g)
{
	const float *logit = nn_forward(&s->net, &s->tape, z, n);
	if (s->loss == PPAT_SATURATING)
		nn_loss_saturating(logit, n, 1.0f / (float)n, s->dlogit);
	else
		nn_loss_non_saturating(logit, n, 1.0f / (float)n, s->dlogit);
	nn_backward(&s->net, &s->tape, z, s->dlogit, NULL, g);
}
