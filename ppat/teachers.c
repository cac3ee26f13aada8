/* ppat/teachers.c - partition, training and votes of the teachers. */
#include "ppat/teachers.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/conv.h"
#include "base/mem.h"
#include "ppat/session.h"

/* C1.  Unbiased to within 2^-32: the high half of a 64-bit product. */
uint32_t ppat_teacher_of(const uint8_t key[32], uint64_t id, uint32_t teachers)
{
	uint8_t in[8], out[16];
	for (size_t i = 0; i < 8; i++)
		in[i] = (uint8_t)(id >> (8 * i));
	crypto_generichash(out, sizeof(out), in, sizeof(in), key, 32);
	uint64_t word = 0;
	for (size_t i = 0; i < 4; i++)
		word |= (uint64_t)out[i] << (8 * i);
	return (uint32_t)((word * teachers) >> 32);
}

/* Each row to exactly one teacher, whatever its values are (C1). */
static void partition_rows(struct ppat_teachers *t, const uint64_t *ids, size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		uint32_t teacher = ppat_teacher_of(t->key, ids[i], t->n);
		assert(teacher < t->n);
		struct ppat_teacher *k = &t->at[teacher];
		if ((k->n_part & (k->n_part - 1)) == 0)
			k->part = mem_resize(k->part, k->n_part == 0 ? 1 : 2 * k->n_part,
					     sizeof(*k->part));
		k->part[k->n_part++] = (uint32_t)i;
	}
}

void ppat_teachers_init(struct ppat_teachers *t, const struct ppat_config *c, const float *y,
			const uint64_t *ids, size_t rows, struct nn_draw draw)
{
	const size_t width[] = { c->host_dim, c->teacher_hidden, 1 };
	*t = (struct ppat_teachers){ .n = c->teachers,
				     .steps = c->teacher_steps,
				     .batch = c->batch,
				     .dim = c->host_dim,
				     .y = y };
	t->at = mem_array(t->n, sizeof(*t->at));
	draw.fn(draw.ctx, t->key, sizeof(t->key));
	for (uint32_t k = 0; k < t->n; k++) {
		uint64_t seed;
		draw.fn(draw.ctx, &seed, sizeof(seed));
		rng_seed(&t->at[k].rng, seed);
		nn_mlp_init(&t->at[k].net, width, 2, 0.2f, &t->at[k].rng);
		nn_sgd_init(&t->at[k].sgd, t->at[k].net.params, (float)c->lr, (float)c->momentum);
		sodium_memzero(&seed, sizeof(seed));
	}
	partition_rows(t, ids, rows);
	nn_tape_init(&t->tape, &t->at[0].net, 2 * t->batch);
	t->grad = mem_array(t->at[0].net.params, sizeof(float));
	t->mixed = mem_array(2 * t->batch * t->dim, sizeof(float));
	t->target = mem_array(2 * t->batch, sizeof(float));
	t->dlogit = mem_array(2 * t->batch, sizeof(float));
	for (size_t i = 0; i < t->batch; i++)
		t->target[t->batch + i] = 1.0f;
}

void ppat_teachers_release(struct ppat_teachers *t)
{
	for (uint32_t k = 0; k < t->n; k++) {
		nn_mlp_release(&t->at[k].net);
		nn_sgd_release(&t->at[k].sgd);
		free(t->at[k].part);
		sodium_memzero(&t->at[k].rng, sizeof(t->at[k].rng));
	}
	free(t->at);
	nn_tape_release(&t->tape);
	free(t->grad);
	free(t->mixed);
	free(t->target);
	free(t->dlogit);
	sodium_memzero(t, sizeof(*t));
}

/* Generated rows for one step: all of them where they fill a batch, as published; else a
 * batch drawn by the teacher's own stream. */
static void mix_generated(struct ppat_teachers *t, struct ppat_teacher *k, const float *z, size_t n)
{
	for (size_t i = 0; i < t->batch; i++) {
		size_t row = n == t->batch ? i : rng_below(&k->rng, (uint32_t)n);
		memcpy(t->mixed + i * t->dim, z + row * t->dim, t->dim * sizeof(float));
	}
}

static void mix_real(struct ppat_teachers *t, struct ppat_teacher *k)
{
	float *real = t->mixed + t->batch * t->dim;
	for (size_t i = 0; i < t->batch; i++) {
		uint32_t row = k->part[rng_below(&k->rng, (uint32_t)k->n_part)];
		memcpy(real + i * t->dim, t->y + row * t->dim, t->dim * sizeof(float));
	}
}

/* Methods 3.2, step 1: L_T^k = -[mean_Z log(1 - T_k(z)) + mean_{y in D_k batch} log T_k(y)], both
 * sums in one pass.  A teacher without rows stays as it was made: its vote says nothing about Y. */
static void train_teacher(struct ppat_teachers *t, struct ppat_teacher *k, const float *z, size_t n)
{
	if (k->n_part == 0)
		return;
	mix_generated(t, k, z, n);
	mix_real(t, k);
	memset(t->grad, 0, k->net.params * sizeof(float));
	nn_loss_logistic(nn_forward(&k->net, &t->tape, t->mixed, 2 * t->batch), t->target,
			 2 * t->batch, 1.0f / (float)t->batch, t->dlogit);
	nn_backward(&k->net, &t->tape, t->mixed, t->dlogit, t->grad, NULL);
	nn_sgd_step(&k->sgd, k->net.param, t->grad);
}

/* Methods 3.2, step 2: n_1 = |{k : T_k(z) >= 1/2}|, that is, logit >= 0. */
int ppat_teachers_vote(struct ppat_teachers *t, const float *z, size_t n, size_t asked,
		       uint32_t *ones, const atomic_bool *cancel)
{
	size_t first = n > asked ? asked : 0;
	assert(asked <= n && asked <= t->batch);
	memset(ones, 0, asked * sizeof(*ones));
	for (uint32_t k = 0; k < t->n; k++) {
		for (uint32_t step = 0; step < t->steps; step++) {
			if (conv_canceled(cancel))
				return ERR_CANCELED;
			train_teacher(t, &t->at[k], z + first * t->dim, n - first);
		}
		const float *logit = nn_forward(&t->at[k].net, &t->tape, z, asked);
		for (size_t i = 0; i < asked; i++)
			ones[i] += logit[i] >= 0.0f;
	}
	return 0;
}
