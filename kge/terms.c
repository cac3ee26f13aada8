#include "kge/terms.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

/* ---- settings ---- */

static int check_weight(const char *what, float x, struct err *e)
{
	if (isfinite(x) && x >= 0)
		return 0;
	return err_set(e, ERR_USAGE, "%s: must be a number not below 0, not %g", what, (double)x);
}

static bool on_rows(const struct kge_terms *t)
{
	return t->proximal > 0 || t->norm > 0 || t->contrast > 0;
}

static bool on_queries(const struct kge_terms *t)
{
	return t->distill > 0 || t->interfere != NULL;
}

static int check_interference(const struct kge_interference *x, struct err *e)
{
	int rc = check_weight("unlearning weight of forgotten triples", x->forgotten, e);

	if (rc == 0)
		rc = check_weight("unlearning weight of negatives", x->negatives, e);
	if (rc == 0)
		rc = check_weight("unlearning soft weight", x->soft, e);
	return rc;
}

static int check_training(const struct kge_terms *t, const struct kge_train_config *c,
			  struct err *e)
{
	bool any = on_rows(t) || on_queries(t) || t->freeze_relations;

	if (c->dp.epsilon > 0 && any)
		return err_set(e, ERR_USAGE,
			       "train.dp: private training has no terms of a federated method; "
			       "leave out train.dp, or take a method that adds nothing");
	if (c->update == KGE_UPDATE_HOGWILD && any)
		return err_set(e, ERR_USAGE,
			       "train.update racing: not with a federated method that adds to the "
			       "loss of a batch; set it to exact");
	if (c->negatives == 0 && on_queries(t))
		return err_set(e, ERR_USAGE,
			       "train.negatives: distillation and unlearning go by drawn "
			       "negatives; set it to 1 to 65534, not 0");
	return 0;
}

int kge_terms_check(const struct kge_terms *t, const struct kge_train_config *c, struct err *e)
{
	int rc = check_weight("proximal weight", t->proximal, e);

	if (rc == 0)
		rc = check_weight("norm weight", t->norm, e);
	if (rc == 0)
		rc = check_weight("contrast weight", t->contrast, e);
	if (rc == 0 && t->contrast > 0 && !(isfinite(t->temperature) && t->temperature > 0))
		rc = err_set(e, ERR_USAGE, "contrast temperature: must be a number above 0, not %g",
			     (double)t->temperature);
	if (rc == 0)
		rc = check_weight("distillation weight", t->distill, e);
	if (rc == 0 && t->interfere != NULL)
		rc = check_interference(t->interfere, e);
	return rc == 0 ? check_training(t, c, e) : rc;
}

/* ---- life ---- */

struct kge_pull *kge_pull_new(const struct kge_terms *t, size_t rows, size_t floats,
			      const struct kge_kernels *k)
{
	struct kge_pull *p;

	if (t == NULL || !on_rows(t))
		return NULL;
	p = mem_array(1, sizeof(*p));
	p->t = *t;
	p->rows = rows;
	p->floats = floats;
	p->k = k;
	if (t->norm > 0)
		p->far = mem_array(rows, sizeof(*p->far));
	if (t->contrast > 0 && t->contrast_of_means)
		p->lean = mem_array(rows, sizeof(*p->lean));
	return p;
}

void kge_pull_free(struct kge_pull *p)
{
	if (p == NULL)
		return;
	free(p->far);
	free(p->lean);
	free(p);
}

/* ---- a row against its anchors ---- */

static double dot(const struct kge_pull *p, const float *a, const float *b)
{
	float sum;

	p->k->score[KGE_DOT](&sum, a, b, 1, p->floats);
	return (double)sum;
}

static double far_of(const struct kge_pull *p, size_t row, const float *x)
{
	float length;

	p->k->score[KGE_L2](&length, x, p->t.anchor + row * p->floats, 1, p->floats);
	return (double)length * (double)length;
}

/* The cosine of two rows and what its gradient at the first is made of:
 * dcos/dx = by_other y - by_self x. */
struct cosine {
	double cos, by_other, by_self;
};

static struct cosine cosine_of(const struct kge_pull *p, const float *x, const float *y)
{
	double xx = dot(p, x, x), lengths = sqrt(xx * dot(p, y, y));
	struct cosine c = { 0 };

	if (lengths > 0) {
		c.cos = dot(p, x, y) / lengths;
		c.by_other = 1 / lengths;
		c.by_self = c.cos / xx;
	}
	return c;
}

static double lean_of(const struct kge_pull *p, size_t row, const float *x)
{
	size_t at = row * p->floats;

	return cosine_of(p, x, p->t.anchor + at).cos - cosine_of(p, x, p->t.previous + at).cos;
}

static double softplus(double x)
{
	return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

/* ---- an epoch ---- */

void kge_pull_begin_epoch(struct kge_pull *p, const float *table)
{
	for (size_t i = 0; i < p->rows; i++)
		kge_pull_moved(p, i, table + i * p->floats);
}

static double sum_of(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return sum;
}

double kge_pull_begin_batch(struct kge_pull *p)
{
	double loss = 0, norm;

	if (p->far != NULL) {
		norm = sqrt(sum_of(p->far, p->rows));
		p->by_norm = norm > 0 ? (double)p->t.norm / norm : 0;
		loss += (double)p->t.norm * norm;
	}
	if (p->lean != NULL) {
		p->mean_lean = sum_of(p->lean, p->rows) / (double)p->rows;
		loss += (double)p->t.contrast * softplus(-p->mean_lean / (double)p->t.temperature);
	}
	return loss;
}

/* ---- the gradient at a row ---- */

static double draw_near(const struct kge_pull *p, size_t row, const float *restrict x,
			float *restrict g)
{
	const float *anchor = p->t.anchor + row * p->floats;
	float by = (float)((double)p->t.proximal + p->by_norm);

	for (size_t i = 0; i < p->floats; i++)
		g[i] += by * (x[i] - anchor[i]);
	return p->t.proximal > 0 ? 0.5 * (double)p->t.proximal * far_of(p, row, x) : 0;
}

static double contrast(const struct kge_pull *p, size_t row, const float *restrict x,
		       float *restrict g)
{
	const float *there = p->t.anchor + row * p->floats;
	const float *here = p->t.previous + row * p->floats;
	struct cosine a = cosine_of(p, x, there), b = cosine_of(p, x, here);
	double lean = p->lean != NULL ? p->mean_lean : a.cos - b.cos;
	double weight = (double)p->t.contrast / (double)p->rows, tau = (double)p->t.temperature;
	double slope = -weight / tau / (1 + exp(lean / tau));
	float by_there = (float)(slope * a.by_other), by_here = (float)(-slope * b.by_other);
	float by_self = (float)(slope * (b.by_self - a.by_self));

	for (size_t i = 0; i < p->floats; i++)
		g[i] += by_there * there[i] + by_here * here[i] + by_self * x[i];
	return p->lean != NULL ? 0 : weight * softplus(-lean / tau);
}

double kge_pull_row(const struct kge_pull *p, size_t row, const float *restrict x,
		    float *restrict g)
{
	double loss = 0;

	if (p->t.proximal > 0 || p->by_norm > 0)
		loss += draw_near(p, row, x, g);
	if (p->t.contrast > 0)
		loss += contrast(p, row, x, g);
	return loss;
}

void kge_pull_moved(struct kge_pull *p, size_t row, const float *x)
{
	if (p->far != NULL)
		p->far[row] = far_of(p, row, x);
	if (p->lean != NULL)
		p->lean[row] = lean_of(p, row, x);
}
