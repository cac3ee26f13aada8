/* FedE-SVD+ (FedS, VI-B; Yang et al. 2020): FedE-SVD; the last epoch of each round trains the
 * factors U, s, V of every row's change since the round began in place of the row, and holds U and
 * V near to orthogonal matrices, so that less is lost when the change is cut down.  The optimiser's
 * moments are those of the factors then, and begin anew with that epoch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/methods/fedsvd.h"
#include "kge/optimizer.h"
#include "kge/terms.h"
#include "nn/linalg.h"

struct factors { /* during the last epoch */
	struct fedsvd *svd;
	struct fedsvd_sizes z; /* rank: all singular values */
	enum kge_optimizer optimizer;
	const struct kge_kernels *k;
	struct kge_optimizer_table moments;
	float *w; /* [n_ent x size] U, s, V of each entity */
	size_t size;
};

/* out [cols x cols] = a'a - I, a [rows x cols] */
static void gram(double *out, const float *a, size_t rows, size_t cols)
{
	for (size_t i = 0; i < cols; i++)
		for (size_t j = 0; j < cols; j++) {
			double sum = i == j ? -1.0 : 0.0;

			for (size_t r = 0; r < rows; r++)
				sum += (double)a[r * cols + i] * (double)a[r * cols + j];
			out[i * cols + j] = sum;
		}
}

/* out [rows x cols] += by * a (a'a - I): a quarter of the gradient of |a'a - I|^2. */
static void add_upright(float *out, const float *a, size_t rows, size_t cols, double by)
{
	double *q = mem_array(cols * cols, sizeof(*q));

	gram(q, a, rows, cols);
	for (size_t r = 0; r < rows; r++)
		for (size_t i = 0; i < cols; i++) {
			double sum = 0;

			for (size_t j = 0; j < cols; j++)
				sum += (double)a[r * cols + j] * q[j * cols + i];
			out[r * cols + i] += (float)(by * sum);
		}
	free(q);
}

void fedsvd_plus_gradient(const struct fedsvd_sizes *z, double alpha, const float *w,
			  const float *g, float *out)
{
	const float *u = w, *s = u + z->m * z->rank, *v = s + z->rank;
	float *du = out, *ds = du + z->m * z->rank, *dv = ds + z->rank;
	double by = 4 * alpha / ((double)z->rank * (double)z->rank);

	memset(out, 0, ((z->m + z->n + 1) * z->rank) * sizeof(*out));
	for (size_t i = 0; i < z->m; i++)
		for (size_t j = 0; j < z->n; j++)
			for (size_t k = 0; k < z->rank; k++) {
				float x = g[i * z->n + j];

				du[i * z->rank + k] += x * s[k] * v[j * z->rank + k];
				ds[k] += x * u[i * z->rank + k] * v[j * z->rank + k];
				dv[j * z->rank + k] += x * s[k] * u[i * z->rank + k];
			}
	add_upright(du, u, z->m, z->rank, by);
	add_upright(dv, v, z->n, z->rank, by);
}

/* x = the row as the round began + U diag(s) V' */
static void compose(const struct factors *f, uint32_t id, float *x)
{
	const struct fedsvd_sizes *z = &f->z;
	const float *begin = f->svd->begin + (size_t)id * z->m * z->n;
	const float *u = f->w + id * f->size, *s = u + z->m * z->rank, *v = s + z->rank;

	for (size_t i = 0; i < z->m; i++)
		for (size_t j = 0; j < z->n; j++) {
			double sum = (double)begin[i * z->n + j];

			for (size_t k = 0; k < z->rank; k++)
				sum += (double)u[i * z->rank + k] * (double)s[k] *
				       (double)v[j * z->rank + k];
			x[i * z->n + j] = (float)sum;
		}
}

static void step(void *ctx, const struct kge_step *s, uint32_t id, float *x, const float *g)
{
	const struct factors *f = ctx;
	float *w = f->w + id * f->size, *gradient = mem_array(f->size, sizeof(*gradient));

	fedsvd_plus_gradient(&f->z, f->svd->base.settings.value[2], w, g, gradient);
	kge_optimizer_row(&f->moments, f->optimizer, f->k, s, id, w, gradient);
	compose(f, id, x);
	free(gradient);
}

static bool change_is_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

/* Where training has diverged, be it by rows that members sent, a row begins the epoch without a
 * change: the agent goes on. */
static void decompose(struct factors *f)
{
	const struct kge_emb *emb = f->svd->base.emb;
	const struct fedsvd_sizes *z = &f->z;
	float *change = mem_array(emb->ent_floats, sizeof(*change));

	for (uint32_t id = 0; id < emb->n_ent; id++) {
		const float *then = f->svd->begin + (size_t)id * emb->ent_floats;
		float *w = f->w + id * f->size;

		for (size_t i = 0; i < emb->ent_floats; i++)
			change[i] = kge_ent(emb, id)[i] - then[i];
		if (!change_is_finite(change, emb->ent_floats) ||
		    nn_svd(w, w + z->m * z->rank, w + (z->m + 1) * z->rank, change, z->m, z->n,
			   z->rank, NULL) != 0)
			memset(w, 0, f->size * sizeof(*w));
	}
	free(change);
}

static int last_epoch(struct fedsvd *p, struct fed_training *t)
{
	const struct kge_emb *emb = p->base.emb;
	struct factors f = { .svd = p,
			     .z = fedsvd_sizes_of(&p->base.settings, emb->ent_floats),
			     .optimizer = t->config->optimizer,
			     .k = kge_kernels_pick() };
	int rc;

	f.z.rank = f.z.m < f.z.n ? f.z.m : f.z.n;
	f.size = f.z.rank * (f.z.m + f.z.n + 1);
	f.w = mem_array((size_t)emb->n_ent * f.size, sizeof(*f.w));
	kge_optimizer_init(&f.moments, f.optimizer, emb->n_ent, f.size);
	decompose(&f);
	kge_trainer_reset_optimizer(t->trainer);
	kge_trainer_set_step(t->trainer, step, &f);
	rc = kge_trainer_epoch(t->trainer, &t->loss, t->cancel);
	kge_trainer_set_step(t->trainer, NULL, NULL);
	kge_optimizer_release(&f.moments);
	free(f.w);
	return rc;
}

static int train(struct fed_part *base, struct fed_training *t)
{
	const struct kge_terms none = { 0 };
	uint32_t epochs = t->epochs;
	int rc = kge_terms_check(&none, t->config, &t->why);

	fedsvd_begin((struct fedsvd *)base);
	if (rc != 0 || epochs == 0)
		return rc;
	t->epochs = epochs - 1;
	rc = fed_train_plain(base, t);
	t->epochs = epochs;
	return rc != 0 ? rc : last_epoch((struct fedsvd *)base, t);
}

const struct fed_method fed_fedsvd_plus = {
	.name = "fedsvd_plus",
	.title = "FedE-SVD+: FedE-SVD, the last epoch training factors of the change",
	FEDSVD_COMMON,
	.constant = { FEDSVD_CONSTANTS,
		      { "alpha", 0.05, 0, 1000, "weight of U'U = I and V'V = I" } },
	.part_size = sizeof(struct fedsvd),
	.init = fedsvd_init,
	.release = fedsvd_release,
	.train = train,
};
