#include "kge/optimizer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static float *state(bool wanted, size_t rows, size_t floats)
{
	return wanted ? mem_aligned(rows, floats * sizeof(float)) : NULL;
}

void kge_optimizer_init(struct kge_optimizer_table *t, enum kge_optimizer o, size_t rows,
			size_t floats)
{
	t->rows = rows;
	t->floats = floats;
	t->m = state(o == KGE_ADAM_DENSE || o == KGE_ADAM_SPARSE, rows, floats);
	t->v = state(o != KGE_SGD, rows, floats);
}

void kge_optimizer_release(struct kge_optimizer_table *t)
{
	free(t->m);
	free(t->v);
	memset(t, 0, sizeof(*t));
}

void kge_optimizer_clear(struct kge_optimizer_table *t)
{
	size_t bytes = t->rows * t->floats * sizeof(float);

	if (t->m != NULL)
		memset(t->m, 0, bytes);
	if (t->v != NULL)
		memset(t->v, 0, bytes);
}

struct kge_step kge_optimizer_step(enum kge_optimizer o, float lr, uint64_t batches)
{
	struct kge_step s = { .lr = lr, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f };

	if (o == KGE_ADAGRAD)
		s.eps = 1e-10f;
	if (o == KGE_ADAM_DENSE || o == KGE_ADAM_SPARSE) {
		s.lr = (float)((double)lr / (1.0 - pow(0.9, (double)batches)));
		s.scale2 = (float)(1.0 / sqrt(1.0 - pow(0.999, (double)batches)));
	}
	return s;
}

void kge_optimizer_row(const struct kge_optimizer_table *t, enum kge_optimizer o,
		       const struct kge_kernels *k, const struct kge_step *s, size_t row,
		       float *restrict w, const float *restrict g)
{
	size_t at = row * t->floats;

	switch (o) {
	case KGE_SGD:
		k->sgd(w, g, s, t->floats);
		break;
	case KGE_ADAGRAD:
		k->adagrad(w, t->v + at, g, s, t->floats);
		break;
	case KGE_ADAM_DENSE:
	case KGE_ADAM_SPARSE:
		k->adam(w, t->m + at, t->v + at, g, s, t->floats);
		break;
	}
}

void kge_optimizer_prefetch(const struct kge_optimizer_table *t, size_t row)
{
	for (size_t i = row * t->floats; i < (row + 1) * t->floats; i += 16) {
		if (t->m != NULL)
			__builtin_prefetch(t->m + i, 1);
		if (t->v != NULL)
			__builtin_prefetch(t->v + i, 1);
	}
}
