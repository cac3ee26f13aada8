/* kge/ensemble.c - several models of one kind as one. */
#include <assert.h>
#include <math.h>

#include "kge/ensemble.h"

bool kge_ensemble_fits(const struct kge_model *m)
{
	return m->metric != KGE_L2 && m->project == NULL && !m->own_rel_dim;
}

/* A row is some vectors of dim floats: real parts and imaginary ones, for tails and for heads. */
static void put_vectors(float *to, size_t to_dim, const float *from, size_t dim, size_t floats,
			size_t at, float factor)
{
	for (size_t v = 0; v < floats / dim; v++)
		for (size_t i = 0; i < dim; i++)
			to[v * to_dim + at + i] = factor * from[v * dim + i];
}

void kge_ensemble_put(struct kge_emb *out, const struct kge_emb *part, size_t k, size_t n)
{
	float factor =
		part->model->metric == KGE_DOT ? (float)cbrt(1.0 / (double)n) : 1.0f / (float)n;

	assert(kge_ensemble_fits(part->model) && out->model == part->model);
	assert(k < n && out->dim == n * part->dim && out->gamma == part->gamma);
	assert(out->n_ent == part->n_ent && out->n_rel == part->n_rel);
	for (uint32_t i = 0; i < part->n_ent; i++)
		put_vectors(kge_ent(out, i), out->dim, kge_ent(part, i), part->dim,
			    part->ent_floats, k * part->dim, factor);
	for (uint32_t i = 0; i < part->n_rel; i++)
		put_vectors(kge_rel(out, i), out->dim, kge_rel(part, i), part->dim,
			    part->rel_floats, k * part->dim, factor);
}
