/* ppat/teachers.c - partition, training and votes of the teachers. */
#include "ppat/teachers.h"

#include <stdlib.h>
#include <string.h>

#include <sodium.h>

#include "base/mem.h"
#include "ppat/session.h"

/* Unbiased to within 2^-32: the high half of a 64-bit product. */
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

static void deal_rows(struct ppat_teachers *t, const uint64_t *ids, size_t rows)
{
	for (size_t i = 0; i < rows; i++) {
		struct ppat_teacher *k = &t->at[ppat_teacher_of(t->key, ids[i], t->n)];
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
	*t = (struct ppat_teachers){
		.n = c->teachers, .batch = c->batch, .dim = c->host_dim, .y = y
	};
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
	deal_rows(t, ids, rows);
	nn_tape_init(&t->tape, &t->at[0].net, t->batch);
	t->grad = mem_array(t->at[0].net.params, sizeof(float));
	t->real = mem_array(t->batch * t->dim, sizeof(float));
	t->target = mem_array(t->batch, sizeof(float));
	t->dlogit = mem_array(t->batch, sizeof(float));
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
	free(t->real);
	free(t->target);
	free(t->dlogit);
	sodium_memzero(t, sizeof(*t));
}

/* Add the gradient of the mean logistic loss of n rows that should be called `real`. */
static void add_gradient(struct ppat_teachers *t, const struct nn_mlp *net, const float *x,
			 size_t n, float real)
{
	for (size_t i = 0; i < n; i++)
		t->target[i] = real;
	nn_loss_logistic(nn_forward(net, &t->tape, x, n), t->target, n, 1.0f / (float)n, t->dlogit);
	nn_backward(net, &t->tape, x, t->dlogit, t->grad, NULL);
}

/* L_T^k = -[mean_Z log(1 - T_k(z)) + mean_{y in D_k batch} log T_k(y)].  A teacher
 * without rows stays as it was born: its vote says nothing about Y. */
static void train_teacher(struct ppat_teachers *t, struct ppat_teacher *k, const float *z, size_t n)
{
	if (k->n_part == 0)
		return;
	for (size_t i = 0; i < n; i++) {
		uint32_t row = k->part[rng_below(&k->rng, (uint32_t)k->n_part)];
		memcpy(t->real + i * t->dim, t->y + row * t->dim, t->dim * sizeof(float));
	}
	memset(t->grad, 0, k->net.params * sizeof(float));
	add_gradient(t, &k->net, z, n, 0.0f);
	add_gradient(t, &k->net, t->real, n, 1.0f);
	nn_sgd_step(&k->sgd, k->net.param, t->grad);
}

/* n_1 = |{k : T_k(z) >= 1/2}|, that is, logit >= 0. */
void ppat_teachers_vote(struct ppat_teachers *t, const float *z, size_t n, uint32_t *ones)
{
	memset(ones, 0, n * sizeof(*ones));
	for (uint32_t k = 0; k < t->n; k++) {
		train_teacher(t, &t->at[k], z, n);
		const float *logit = nn_forward(&t->at[k].net, &t->tape, z, n);
		for (size_t i = 0; i < n; i++)
			ones[i] += logit[i] >= 0.0f;
	}
}
