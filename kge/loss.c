#include "kge/loss.h"

#include <assert.h>
#include <math.h>

/* 1/n sum_j max(0, margin - s+ + s_j) (methods 1.1) */
static double margin_loss(float margin, const float *restrict s, float *restrict dscore, size_t n,
			  float share)
{
	double loss = 0;

	dscore[0] = 0;
	for (size_t i = 1; i <= n; i++) {
		float x = margin - s[0] + s[i];

		dscore[i] = x > 0 ? share : 0.0f;
		dscore[0] -= dscore[i];
		loss += x > 0 ? (double)(x * share) : 0.0;
	}
	return loss;
}

/* log(e^s+ + sum_j e^s_j) - s+ (methods 1.1) */
static double softmax_loss(const struct kge_kernels *k, const float *restrict s,
			   float *restrict dscore, size_t n)
{
	float all = k->softmax(dscore, s, 1.0f, n + 1);

	dscore[0] -= 1.0f;
	return (double)all - (double)s[0];
}

/* By which p goes by the negatives' scores; 0: it does not. */
static float temperature_of(const struct kge_train_config *c)
{
	return c->loss == KGE_LOSS_SELF_ADVERSARIAL ? c->temperature : 0;
}

/* sum_j p_j softplus(s_j) over the negatives (methods 1.1), and its derivative but for a factor
 * `by`; temperature 0: p_j = 1/n. */
static double negatives_loss(float temperature, const struct kge_kernels *k,
			     const float *restrict scores, float *restrict dscore, size_t n,
			     size_t there, float by, float *restrict work)
{
	float share = there > 0 ? 1.0f / (float)there : 0.0f, sum;
	float *p = work, *softplus = work + n, *sigmoid = work + 2 * n;

	k->logistic(softplus, sigmoid, scores + 1, n);
	if (there > 0 && temperature > 0)
		k->softmax(p, scores + 1, temperature, n);
	else
		for (size_t i = 0; i < n; i++)
			p[i] = share;
	for (size_t i = 0; i < n; i++)
		dscore[i + 1] = by * p[i] * sigmoid[i];
	k->score[KGE_DOT](&sum, p, softplus, 1, n);
	return (double)sum;
}

double kge_loss_of(const struct kge_train_config *c, const struct kge_kernels *k,
		   const float *restrict scores, float *restrict dscore, size_t n, size_t there,
		   float *restrict work)
{
	float minus = -scores[0], first;

	assert(there <= n);
	if (c->loss == KGE_LOSS_MARGIN)
		return margin_loss(c->margin, scores, dscore, n,
				   there > 0 ? 1.0f / (float)there : 0.0f);
	if (c->loss == KGE_LOSS_SOFTMAX)
		return softmax_loss(k, scores, dscore, n);
	k->logistic(&first, dscore, &minus, 1);
	dscore[0] *= -0.5f;
	return 0.5 * ((double)first +
		      negatives_loss(temperature_of(c), k, scores, dscore, n, there, 0.5f, work));
}

double kge_hard_of(const struct kge_interference *x, const struct kge_train_config *c,
		   const struct kge_kernels *k, const float *restrict scores,
		   float *restrict dscore, size_t n, size_t there, float *restrict work)
{
	float first;

	assert(there <= n);
	k->logistic(&first, dscore, scores, 1);
	dscore[0] *= x->forgotten;
	return (double)x->forgotten * (double)first +
	       (double)x->negatives * negatives_loss(x->even ? 0 : temperature_of(c), k, scores,
						     dscore, n, there, x->negatives, work);
}

/* soft |(s_j - s+)_j|_2 (methods 4.1) */
static double soft_norm(float soft, const float *restrict s, float *restrict dscore, size_t n,
			float by)
{
	double sum = 0, norm;
	float to;

	for (size_t i = 1; i <= n; i++)
		if (s[i] > KGE_NO_SCORE)
			sum += (double)(s[i] - s[0]) * (double)(s[i] - s[0]);
	norm = sqrt(sum);
	to = norm > 0 ? (float)((double)(soft * by) / norm) : 0.0f;
	for (size_t i = 1; i <= n; i++) {
		float x = s[i] > KGE_NO_SCORE ? to * (s[i] - s[0]) : 0.0f;

		dscore[i] += x;
		dscore[0] -= x;
	}
	return (double)soft * norm;
}

/* soft 1/n sum_j |s_j - s+| (methods 4.1) */
static double soft_mean(float soft, const float *restrict s, float *restrict dscore, size_t n,
			size_t there, float by)
{
	float share = there > 0 ? soft / (float)there : 0.0f;
	double sum = 0;

	for (size_t i = 1; i <= n; i++) {
		float x = s[i] - s[0], to = share * by * (float)((x > 0) - (x < 0));

		if (s[i] <= KGE_NO_SCORE)
			continue;
		sum += (double)fabsf(x);
		dscore[i] += to;
		dscore[0] -= to;
	}
	return (double)share * sum;
}

double kge_soft_of(const struct kge_interference *x, const float *restrict scores,
		   float *restrict dscore, size_t n, size_t there, float by)
{
	assert(there <= n);
	return x->soft_norm ? soft_norm(x->soft, scores, dscore, n, by)
			    : soft_mean(x->soft, scores, dscore, n, there, by);
}

double kge_distill_of(const struct kge_kernels *k, const float *restrict scores,
		      const float *restrict taught, float *restrict dscore, size_t n, float by,
		      float *restrict work)
{
	float *p = work, *t = work + n + 1;
	double all = (double)k->softmax(p, scores, 1.0f, n + 1);
	double all_taught = (double)k->softmax(t, taught, 1.0f, n + 1), sum = all - all_taught;

	for (size_t i = 0; i <= n; i++) {
		dscore[i] += by * (p[i] - t[i]);
		if (t[i] > 0) /* who is not there is in neither */
			sum += (double)t[i] * (double)(taught[i] - scores[i]);
	}
	return sum;
}

/* sum |x|^2, for which it makes no difference what is complex */
static double reg_squares(float *restrict g, const float *restrict x, size_t n, float by)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		sum += (double)(x[i] * x[i]);
		g[i] += 2.0f * by * x[i];
	}
	return sum;
}

static double reg_cubes(float *restrict g, const float *restrict x, size_t n, float by)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++) {
		float a = fabsf(x[i]);

		sum += (double)(a * a * a);
		g[i] += 3.0f * by * a * x[i];
	}
	return sum;
}

static double reg_moduli(float *restrict g, const float *restrict x, size_t n, float by)
{
	double sum = 0;

	for (size_t re = 0, im = n; re < n; re++, im++) {
		float a = sqrtf(x[re] * x[re] + x[im] * x[im]);

		sum += (double)(a * a * a);
		g[re] += 3.0f * by * a * x[re];
		g[im] += 3.0f * by * a * x[im];
	}
	return sum;
}

double kge_reg_of(enum kge_reg reg, float *restrict g, const float *restrict row, size_t floats,
		  bool is_complex, float by)
{
	switch (reg) {
	case KGE_REG_NONE:
	case KGE_REG_DURA: /* goes by pairs of rows: kge/each.c */
		break;
	case KGE_REG_L2:
		return reg_squares(g, row, floats, by);
	case KGE_REG_L3:
		return is_complex ? reg_moduli(g, row, floats / 2, by)
				  : reg_cubes(g, row, floats, by);
	}
	return 0;
}
