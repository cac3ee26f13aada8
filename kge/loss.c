#include "kge/loss.h"

#include <math.h>

static double margin_loss(float margin, const float *restrict s, float *restrict slope, size_t n,
			  float share)
{
	double loss = 0;

	slope[0] = 0;
	for (size_t i = 1; i <= n; i++) {
		float x = margin - s[0] + s[i];

		slope[i] = x > 0 ? share : 0.0f;
		slope[0] -= slope[i];
		loss += x > 0 ? (double)(x * share) : 0.0;
	}
	return loss;
}

static double softmax_loss(const struct kge_kernels *k, const float *restrict s,
			   float *restrict slope, size_t n)
{
	float all = k->softmax(slope, s, 1.0f, n + 1);

	slope[0] -= 1.0f;
	return (double)all - (double)s[0];
}

double kge_loss_of(const struct kge_train_config *c, const struct kge_kernels *k,
		   const float *restrict scores, float *restrict slope, size_t n, size_t there,
		   float *restrict work)
{
	float share = there > 0 ? 1.0f / (float)there : 0.0f;
	float *p = work, *softplus = work + n, *sigmoid = work + 2 * n;
	float minus = -scores[0], first, sum;

	if (c->loss == KGE_LOSS_MARGIN)
		return margin_loss(c->margin, scores, slope, n, share);
	if (c->loss == KGE_LOSS_SOFTMAX)
		return softmax_loss(k, scores, slope, n);
	k->logistic(&first, slope, &minus, 1);
	slope[0] *= -0.5f;
	k->logistic(softplus, sigmoid, scores + 1, n);
	if (c->loss == KGE_LOSS_SELF_ADVERSARIAL && there > 0 && c->temperature > 0)
		k->softmax(p, scores + 1, c->temperature, n);
	else
		for (size_t i = 0; i < n; i++)
			p[i] = share;
	for (size_t i = 0; i < n; i++)
		slope[i + 1] = 0.5f * p[i] * sigmoid[i];
	k->score[KGE_DOT](&sum, p, softplus, 1, n);
	return 0.5 * ((double)first + (double)sum);
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
		  bool complex, float by)
{
	switch (reg) {
	case KGE_REG_NONE:
		break;
	case KGE_REG_L2:
		return reg_squares(g, row, floats, by);
	case KGE_REG_L3:
		return complex ? reg_moduli(g, row, floats / 2, by) : reg_cubes(g, row, floats, by);
	}
	return 0;
}
