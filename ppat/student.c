/* ppat/student.c - the student's two steps. */
#include "ppat/student.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/conv.h"
#include "base/mem.h"

/* Room for every label of the session, or for the newest that fit. */
static void replay_init(struct ppat_student *s, const struct ppat_config *c)
{
	struct ppat_replay *k = &s->replay;
	size_t all = (size_t)ppat_config_steps(c) * c->batch, fit = PPAT_REPLAY_FLOATS / s->dim;
	k->cap = all < fit ? all : fit;
	k->z = mem_array(k->cap * s->dim, sizeof(float));
	k->label = mem_array(k->cap, sizeof(float));
	k->z_drawn = mem_array(s->batch * s->dim, sizeof(float));
	k->label_drawn = mem_array(s->batch, sizeof(float));
}

void ppat_student_init(struct ppat_student *s, const struct ppat_config *c)
{
	const size_t width[] = { c->host_dim, c->student_hidden, 1 };
	struct rng r;
	rng_seed(&r, c->student_seed);
	*s = (struct ppat_student){
		.loss = c->loss, .dim = c->host_dim, .batch = c->batch, .steps = c->student_steps
	};
	if (c->mode == PPAT_MODE_BUDGET)
		replay_init(s, c);
	s->replay.rng = rng_stream(&r, 1);
	nn_mlp_init(&s->net, width, 2, 0.2f, &r);
	nn_sgd_init(&s->sgd, s->net.params, (float)c->lr, (float)c->momentum);
	nn_tape_init(&s->tape, &s->net, c->batch);
	s->grad = mem_array(s->net.params, sizeof(float));
	s->dlogit = mem_array(c->batch, sizeof(float));
}

void ppat_student_release(struct ppat_student *s)
{
	nn_mlp_release(&s->net);
	nn_sgd_release(&s->sgd);
	nn_tape_release(&s->tape);
	free(s->replay.z);
	free(s->replay.label);
	free(s->replay.z_drawn);
	free(s->replay.label_drawn);
	free(s->grad);
	free(s->dlogit);
	*s = (struct ppat_student){ 0 };
}

static void replay_add(struct ppat_student *s, const float *z, const float *label, size_t n)
{
	struct ppat_replay *k = &s->replay;
	for (size_t i = 0; i < n; i++) {
		memcpy(k->z + k->next * s->dim, z + i * s->dim, s->dim * sizeof(float));
		k->label[k->next] = label[i];
		k->next = (k->next + 1) % k->cap;
		k->n += k->n < k->cap;
	}
}

static void replay_draw(struct ppat_student *s)
{
	struct ppat_replay *k = &s->replay;
	for (size_t i = 0; i < s->batch; i++) {
		size_t at = rng_below(&k->rng, (uint32_t)k->n);
		memcpy(k->z_drawn + i * s->dim, k->z + at * s->dim, s->dim * sizeof(float));
		k->label_drawn[i] = k->label[at];
	}
}

/* Methods 3.2, step 3: L_S = -mean[label log S(z) + (1 - label) log(1 - S(z))]. */
static void student_step(struct ppat_student *s, const float *z, const float *label, size_t n)
{
	memset(s->grad, 0, s->net.params * sizeof(float));
	nn_loss_logistic(nn_forward(&s->net, &s->tape, z, n), label, n, 1.0f / (float)n, s->dlogit);
	nn_backward(&s->net, &s->tape, z, s->dlogit, s->grad, NULL);
	nn_sgd_step(&s->sgd, s->net.param, s->grad);
}

int ppat_student_train(struct ppat_student *s, const float *z, const float *label, size_t n,
		       const atomic_bool *cancel)
{
	if (s->replay.cap == 0) {
		student_step(s, z, label, n);
		return 0;
	}
	replay_add(s, z, label, n);
	assert(s->replay.n > 0 && s->replay.n <= s->replay.cap);
	for (uint32_t i = 0; i < s->steps; i++) {
		if (conv_canceled(cancel))
			return ERR_CANCELED;
		replay_draw(s);
		student_step(s, s->replay.z_drawn, s->replay.label_drawn, s->batch);
	}
	return 0;
}

/* Methods 3.2, step 4. */
void ppat_student_gradient(struct ppat_student *s, const float *z, size_t n, float *g)
{
	const float *logit = nn_forward(&s->net, &s->tape, z, n);
	if (s->loss == PPAT_SATURATING)
		nn_loss_saturating(logit, n, 1.0f / (float)n, s->dlogit);
	else /* the usual one, a setting there */
		nn_loss_non_saturating(logit, n, 1.0f / (float)n, s->dlogit);
	nn_backward(&s->net, &s->tape, z, s->dlogit, NULL, g);
}
