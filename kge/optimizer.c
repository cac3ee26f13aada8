#include "kge/optimizer.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool keeps_m(enum kge_optimizer o)
{
	return o == KGE_ADAM_DENSE || o == KGE_ADAM_SPARSE || o == KGE_MOMENTUM;
}

static bool keeps_v(enum kge_optimizer o)
{
	return o != KGE_SGD && o != KGE_MOMENTUM;
}

size_t kge_optimizer_floats(enum kge_optimizer o)
{
	return (size_t)keeps_m(o) + (size_t)keeps_v(o);
}

static float *state(bool wanted, size_t rows, size_t floats)
{
	return wanted ? mem_aligned(rows, floats * sizeof(float)) : NULL;
}

void kge_optimizer_init(struct kge_optimizer_table *t, enum kge_optimizer o, size_t rows,
			size_t floats)
{
	assert(floats > 0);
	t->rows = rows;
	t->floats = floats;
	t->m = state(keeps_m(o), rows, floats);
	t->v = state(keeps_v(o), rows, floats);
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

float kge_schedule_at(const struct kge_train_config *c, double x)
{
	const double least = 0.01, pi = 3.14159265358979323846;
	double done = fmin(x / (double)c->schedule_epochs, 1.0);

	assert(x >= 0);
	switch (c->schedule) {
	case KGE_SCHEDULE_CONSTANT:
		break;
	case KGE_SCHEDULE_STEP:
		return done < 0.5 ? 1.0f : 0.1f;
	case KGE_SCHEDULE_LINEAR:
		return (float)(1.0 - (1.0 - least) * done);
	case KGE_SCHEDULE_COSINE:
		return (float)(least + (1.0 - least) * 0.5 * (1.0 + cos(pi * done)));
	}
	return 1.0f;
}

struct kge_step kge_optimizer_step(const struct kge_train_config *c, float lr, uint64_t batches)
{
	struct kge_step s = { .lr = lr, .beta1 = 0.9f, .beta2 = 0.999f, .eps = 1e-8f };
	enum kge_optimizer o = c->optimizer;

	if (o == KGE_MOMENTUM)
		s.beta1 = c->momentum;
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

	assert(row < t->rows);
	switch (o) {
	case KGE_SGD:
		k->sgd(w, g, s, t->floats);
		break;
	case KGE_MOMENTUM:
		k->momentum(w, t->m + at, g, s, t->floats);
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
	assert(row < t->rows);
	for (size_t i = row * t->floats; i < (row + 1) * t->floats; i += 16) {
		if (t->m != NULL)
			__builtin_prefetch(t->m + i, 1);
		if (t->v != NULL)
			__builtin_prefetch(t->v + i, 1);
	}
}
