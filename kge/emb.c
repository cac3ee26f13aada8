#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <sodium.h>

#include "base/mem.h"
#include "kge/kernel.h"
#include "kge/model.h"

static size_t ent_size(const struct kge_emb *e)
{
	return (size_t)e->n_ent * e->ent_floats;
}

static size_t rel_size(const struct kge_emb *e)
{
	return (size_t)e->n_rel * e->rel_floats;
}

struct kge_emb *kge_emb_zeros(const struct kge_emb *shape)
{
	struct kge_emb *e = mem_array(1, sizeof(*e));

	assert(shape->ent_floats > 0 && shape->rel_floats > 0);
	*e = *shape;
	e->mapped = 0;
	e->ent = mem_aligned(e->n_ent, e->ent_floats * sizeof(float));
	e->rel = mem_aligned(e->n_rel, e->rel_floats * sizeof(float));
	return e;
}

static void fill(float *x, size_t n, float range, struct rng *r)
{
	for (size_t i = 0; i < n; i++)
		x[i] = rng_range(r, -range, range);
}

struct kge_emb kge_emb_shape(const struct kge_model *m, size_t dim, size_t rel_dim, float gamma,
			     uint32_t n_ent, uint32_t n_rel)
{
	struct kge_emb shape = { .model = m, .dim = dim, .n_ent = n_ent, .n_rel = n_rel };

	shape.rel_dim = rel_dim > 0 ? rel_dim : dim;
	assert(dim > 0 && (m->own_rel_dim || shape.rel_dim == dim));
	shape.ent_floats = m->entity_floats(dim);
	shape.rel_floats = m->relation_floats(dim, shape.rel_dim);
	shape.query_floats = m->own_rel_dim ? shape.rel_dim : shape.ent_floats;
	shape.gamma = gamma;
	shape.range = (gamma + 2.0f) / (float)dim;
	shape.kernels = kge_kernels_pick();
	return shape;
}

struct kge_emb *kge_emb_new_dims(const struct kge_model *m, size_t dim, size_t rel_dim, float gamma,
				 uint32_t n_ent, uint32_t n_rel, struct rng *r)
{
	struct kge_emb shape = kge_emb_shape(m, dim, rel_dim, gamma, n_ent, n_rel);
	struct kge_emb *e = kge_emb_zeros(&shape);

	assert(r != NULL);
	kge_emb_draw_rows(e, e->ent, e->n_ent, r);
	kge_emb_draw_relations(e, r);
	return e;
}

void kge_emb_draw_rows(const struct kge_emb *shape, float *rows, size_t n, struct rng *r)
{
	fill(rows, n * shape->ent_floats, shape->range, r);
}

void kge_emb_draw_relations(struct kge_emb *e, struct rng *r)
{
	fill(e->rel, rel_size(e), e->range, r);
	for (uint32_t i = 0; e->model->init != NULL && i < e->n_rel; i++)
		e->model->init(kge_rel(e, i), e);
}

struct kge_emb *kge_emb_new(const struct kge_model *m, size_t dim, float gamma, uint32_t n_ent,
			    uint32_t n_rel, struct rng *r)
{
	return kge_emb_new_dims(m, dim, 0, gamma, n_ent, n_rel, r);
}

struct kge_emb *kge_emb_of_map(const struct kge_emb *shape, float *ent, void *map, size_t bytes)
{
	struct kge_emb *e = mem_array(1, sizeof(*e));

	assert(bytes > ent_size(shape) * sizeof(float) && (uintptr_t)ent % 64 == 0);
	*e = *shape;
	e->ent = ent;
	e->rel = mem_aligned(e->n_rel, e->rel_floats * sizeof(float));
	e->map = map;
	e->mapped = bytes;
	return e;
}

struct kge_emb *kge_emb_copy(const struct kge_emb *from)
{
	struct kge_emb *e = kge_emb_zeros(from);

	kge_emb_assign(e, from);
	return e;
}

void kge_emb_assign(struct kge_emb *to, const struct kge_emb *from)
{
	assert(to->model == from->model && to->dim == from->dim && to->rel_dim == from->rel_dim);
	assert(to->n_ent == from->n_ent && to->n_rel == from->n_rel);
	to->gamma = from->gamma;
	to->range = from->range;
	memcpy(to->ent, from->ent, ent_size(to) * sizeof(float));
	memcpy(to->rel, from->rel, rel_size(to) * sizeof(float));
}

void kge_emb_free(struct kge_emb *e)
{
	if (e == NULL)
		return;
	if (e->mapped > 0)
		munmap(e->map, e->mapped);
	else
		free(e->ent);
	free(e->rel);
	free(e);
}

/* In eight chains, so that it need not wait for each addition. */
static float square_sum(const float *x, size_t n)
{
	float sum[8] = { 0 };
	size_t i = 0;

	for (; i + 8 <= n; i += 8)
		for (size_t k = 0; k < 8; k++)
			sum[k] += x[i + k] * x[i + k];
	for (; i < n; i++)
		sum[0] += x[i] * x[i];
	return ((sum[0] + sum[4]) + (sum[1] + sum[5])) + ((sum[2] + sum[6]) + (sum[3] + sum[7]));
}

void kge_ent_into_unit_ball(const struct kge_emb *e, uint32_t id)
{
	size_t n = e->model->project != NULL ? e->dim : e->ent_floats;
	float *row = kge_ent(e, id), sum = square_sum(row, n), length;

	assert(id < e->n_ent);
	if (sum <= 1.0f)
		return;
	length = sqrtf(sum);
	for (size_t i = 0; i < n; i++)
		row[i] /= length;
}

void kge_emb_normalize(struct kge_emb *e)
{
	for (uint32_t i = 0; i < e->n_ent; i++)
		kge_ent_into_unit_ball(e, i);
}

struct kge_digest {
	crypto_generichash_state h;
};

struct kge_digest *kge_digest_new(const struct kge_emb *e)
{
	struct kge_digest *d = mem_aligned(1, sizeof(*d));
	uint64_t shape[3] = { e->dim, e->n_ent, e->n_rel }, rel_dim = e->rel_dim;
	float scale[2] = { e->gamma, e->range };

	crypto_generichash_init(&d->h, NULL, 0, 32);
	crypto_generichash_update(&d->h, (const uint8_t *)e->model->name,
				  strlen(e->model->name) + 1);
	crypto_generichash_update(&d->h, (const uint8_t *)shape, sizeof(shape));
	crypto_generichash_update(&d->h, (const uint8_t *)scale, sizeof(scale));
	if (e->rel_dim != e->dim)
		crypto_generichash_update(&d->h, (const uint8_t *)&rel_dim, sizeof(rel_dim));
	return d;
}

void kge_digest_add(struct kge_digest *d, const float *x, size_t n)
{
	crypto_generichash_update(&d->h, (const uint8_t *)x, n * sizeof(*x));
}

void kge_digest_end(struct kge_digest *d, uint8_t out[32])
{
	crypto_generichash_final(&d->h, out, 32);
	free(d);
}

/* By blocks without a branch, for the vectoriser: x - x is 0, or NaN. */
bool kge_floats_finite(const float *x, size_t n)
{
	enum { BLOCK = 1024 };

	for (size_t from = 0; from < n; from += BLOCK) {
		size_t end = n - from < BLOCK ? n : from + BLOCK;
		int odd = 0;

		for (size_t i = from; i < end; i++)
			odd |= !(x[i] - x[i] == 0);
		if (odd)
			return false;
	}
	return true;
}

bool kge_emb_finite(const struct kge_emb *e)
{
	return kge_floats_finite(e->rel, rel_size(e)) && kge_floats_finite(e->ent, ent_size(e));
}

void kge_emb_digest(const struct kge_emb *e, uint8_t out[32])
{
	struct kge_digest *d = kge_digest_new(e);

	kge_digest_add(d, e->ent, ent_size(e));
	kge_digest_add(d, e->rel, rel_size(e));
	kge_digest_end(d, out);
}

float kge_score_side(const struct kge_emb *e, uint32_t head, uint32_t rel, uint32_t tail,
		     enum graph_side side)
{
	uint32_t known = side == GRAPH_TAIL ? head : tail,
		 answer = side == GRAPH_TAIL ? tail : head;
	struct kge_emb plain = *e;
	float *q = mem_array(2 * e->query_floats, sizeof(*q)), *seen = q + e->query_floats;
	const float *c = kge_ent(e, answer);
	float raw;

	assert(head < e->n_ent && rel < e->n_rel && tail < e->n_ent);
	plain.kernels = &kge_kernels_scalar;
	e->model->query(q, kge_ent(e, known), kge_rel(e, rel), &plain, side);
	if (e->model->project != NULL) {
		e->model->project(seen, c, kge_rel(e, rel), &plain);
		c = seen;
	}
	kge_kernels_scalar.score[e->model->metric](&raw, q, c, 1, e->query_floats);
	free(q);
	return e->model->metric == KGE_DOT ? raw : e->gamma - raw;
}

float kge_score(const struct kge_emb *e, uint32_t head, uint32_t rel, uint32_t tail)
{
	return kge_score_side(e, head, rel, tail, GRAPH_TAIL);
}
