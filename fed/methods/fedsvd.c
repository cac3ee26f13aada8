/* FedE-SVD (FedS, VI-B), methods 4.2: what travels is the change of a row since the round began,
 * as a matrix of m x n (n columns, row-major) cut down to its `rank` largest singular values:
 *
 *   up    U, s, V of the change of E^k[e]: rank (m + n + 1) numbers, 205 of 256 in the paper
 *   home  the mean of the changes, cut down in the same way
 *   down  E <- E at the beginning of the round + that
 *
 * Holders that began equal stay equal; one that misses a round keeps its own change. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/methods/fedsvd.h"
#include "nn/linalg.h"

struct fedsvd_sizes fedsvd_sizes_of(const struct fed_settings *s, size_t floats)
{
	struct fedsvd_sizes z = { .n = (size_t)s->value[0] };

	z.m = floats / z.n;
	z.rank = (size_t)s->value[1];
	if (z.rank > z.n)
		z.rank = z.n;
	if (z.rank > z.m)
		z.rank = z.m;
	return z;
}

int fedsvd_init(struct fed_part *base, struct err *e)
{
	struct fedsvd *p = (struct fedsvd *)base;
	size_t n = (size_t)base->settings.value[0];

	if (base->emb->ent_floats % n != 0)
		return err_set(e, ERR_USAGE,
			       "method %s: rows of %zu floats cannot be matrices of %zu columns",
			       base->method->name, base->emb->ent_floats, n);
	p->begin = mem_array((size_t)base->emb->n_ent * base->emb->ent_floats, sizeof(*p->begin));
	return 0;
}

void fedsvd_release(struct fed_part *base)
{
	free(((struct fedsvd *)base)->begin);
}

void fedsvd_begin(struct fedsvd *p)
{
	const struct kge_emb *emb = p->base.emb;

	memcpy(p->begin, emb->ent, (size_t)emb->n_ent * emb->ent_floats * sizeof(float));
}

static int train(struct fed_part *base, struct fed_training *t)
{
	fedsvd_begin((struct fedsvd *)base);
	return fed_train_plain(base, t);
}

void fedsvd_shape(const struct fed_settings *s, unsigned members, unsigned stage,
		  struct fed_shape *out)
{
	struct fedsvd_sizes z = fedsvd_sizes_of(s, s->ent_floats);

	(void)members;
	(void)stage;
	out->up_ent = out->down_ent = (uint32_t)(z.rank * (z.m + z.n + 1));
}

/* change [m x n] -> U [m x rank], s [rank], V [n x rank], one after the other. */
static bool pack(float *row, const float *change, const struct fedsvd_sizes *z)
{
	return nn_svd(row, row + z->m * z->rank, row + (z->m + 1) * z->rank, change, z->m, z->n,
		      z->rank, NULL) == 0;
}

/* sum [m x n] += U diag(s) V' */
static void unpack(double *sum, const float *row, const struct fedsvd_sizes *z)
{
	const float *u = row, *s = row + z->m * z->rank, *v = s + z->rank;

	for (size_t i = 0; i < z->m; i++)
		for (size_t j = 0; j < z->n; j++)
			for (size_t k = 0; k < z->rank; k++)
				sum[i * z->n + j] += (double)u[i * z->rank + k] * (double)s[k] *
						     (double)v[j * z->rank + k];
}

bool fedsvd_up(struct fed_part *base, unsigned stage, const struct fed_item *it, float *row)
{
	size_t floats = base->emb->ent_floats;
	const float *now = kge_ent(base->emb, it->id);
	const float *then = ((struct fedsvd *)base)->begin + (size_t)it->id * floats;
	struct fedsvd_sizes z = fedsvd_sizes_of(&base->settings, floats);
	float *change = mem_array(floats, sizeof(*change));
	bool done;

	(void)stage;
	for (size_t i = 0; i < floats; i++)
		change[i] = now[i] - then[i];
	done = pack(row, change, &z);
	free(change);
	return done;
}

bool fedsvd_home(struct fed_part *base, const struct fed_upload *u, unsigned to, float *answer)
{
	size_t floats = base->settings.ent_floats, n = 0;
	struct fedsvd_sizes z = fedsvd_sizes_of(&base->settings, floats);
	double *sum = mem_array(floats, sizeof(*sum));
	float *mean = mem_array(floats, sizeof(*mean));
	bool done = false;

	(void)to;
	for (unsigned m = 0; m < u->members; m++)
		if (u->row[m] != NULL) {
			unpack(sum, u->row[m], &z);
			n++;
		}
	for (size_t i = 0; n > 0 && i < floats; i++)
		mean[i] = (float)(sum[i] / (double)n);
	if (n > 0)
		done = pack(answer, mean, &z);
	free(sum);
	free(mean);
	return done;
}

/* A product of numbers that may travel each is taken if it could, too. */
static bool may_be_a_row(const float *then, const double *change, size_t floats)
{
	for (size_t i = 0; i < floats; i++)
		if (!(fabs((double)then[i] + change[i]) <= FED_VALUE_MAX))
			return false;
	return true;
}

void fedsvd_down(struct fed_part *base, unsigned stage, const struct fed_item *it, const float *row)
{
	size_t floats = base->emb->ent_floats;
	const float *then = ((struct fedsvd *)base)->begin + (size_t)it->id * floats;
	struct fedsvd_sizes z = fedsvd_sizes_of(&base->settings, floats);
	double *change = mem_array(floats, sizeof(*change));
	float *own = kge_ent(base->emb, it->id);
	bool taken;

	(void)stage;
	unpack(change, row, &z);
	taken = may_be_a_row(then, change, floats);
	for (size_t i = 0; taken && i < floats; i++)
		own[i] = (float)((double)then[i] + change[i]);
	free(change);
}

const struct fed_method fed_fedsvd = {
	.name = "fedsvd",
	.title = "FedE-SVD: changes of rows, by their largest singular values",
	FEDSVD_COMMON,
	.constant = { FEDSVD_CONSTANTS },
	.part_size = sizeof(struct fedsvd),
	.init = fedsvd_init,
	.release = fedsvd_release,
	.train = train,
};
