/* dp/mechanism.c - one noisy binary vote. */
#include "dp/mechanism.h"

#include <assert.h>
#include <math.h>
#include <sodium.h>
#include <string.h>

#include "dp/special_internal.h"

static const char *const noise_names[] = { [DP_LAPLACE] = "laplace", [DP_GAUSSIAN] = "gaussian" };
enum { NOISES = sizeof(noise_names) / sizeof(noise_names[0]) };

int dp_noise_find(const char *name, enum dp_noise *out)
{
	for (unsigned i = 0; i < NOISES; i++) {
		if (strcmp(name, noise_names[i]) == 0) {
			*out = (enum dp_noise)i;
			return 0;
		}
	}
	return ERR_NOTFOUND;
}

static int check_param(const struct dp_mechanism *m, struct err *e)
{
	/* The negated form refuses NaN too. */
	if (m->noise == DP_LAPLACE && !(m->param >= 1e-6 && m->param <= 20))
		return err_set(e, ERR_USAGE, "lambda of Laplace noise is %g: must be in [1e-6, 20]",
			       m->param);
	if (m->noise == DP_GAUSSIAN && !(m->param >= 1e-3 && m->param <= 1e9))
		return err_set(e, ERR_USAGE,
			       "sigma of Gaussian noise is %g: must be in [1e-3, 1e9]", m->param);
	return 0;
}

int dp_mechanism_check(const struct dp_mechanism *m, struct err *e)
{
	if ((unsigned)m->noise >= NOISES)
		return err_set(e, ERR_USAGE, "noise number %d: must be laplace or gaussian",
			       (int)m->noise);
	if (m->teachers < 1 || m->teachers > DP_TEACHERS_MAX)
		return err_set(e, ERR_USAGE, "%u teachers: must be in 1..%d", m->teachers,
			       DP_TEACHERS_MAX);
	return check_param(m, e);
}

double dp_label_against(const struct dp_mechanism *m, int64_t gap)
{
	double g = fabs((double)gap);
	if (m->noise == DP_GAUSSIAN)
		return 0.5 * erfc(g / (2 * m->param));
	return 0.25 * (2 + m->param * g) * exp(-m->param * g);
}

double dp_label_log_against(const struct dp_mechanism *m, int64_t gap)
{
	double g = fabs((double)gap);
	if (m->noise == DP_GAUSSIAN)
		return dp_log_half_erfc(g / (2 * m->param));
	return log(0.5 + 0.25 * m->param * g) - m->param * g;
}

double dp_label_one(const struct dp_mechanism *m, int64_t gap)
{
	double against = dp_label_against(m, gap);
	return gap > 0 ? 1 - against : against;
}

static uint64_t draw_word(secret_draw_fn *draw, void *ctx)
{
	uint8_t bytes[8];
	uint64_t word = 0;
	draw(ctx, bytes, sizeof(bytes));
	for (int i = 7; i >= 0; i--)
		word = word << 8 | bytes[i];
	sodium_memzero(bytes, sizeof(bytes));
	return word;
}

/* A coin of probability p <= 1/2: is a uniform number in [0, 1), given 64 binary digits at
 * a time, below p?  A double has few digits, so this ends; a second word is needed only
 * when the first 64 digits of both are equal. */
static bool coin(double p, uint64_t word, uint64_t flip, secret_draw_fn *draw, void *ctx)
{
	assert(p >= 0 && p < 1);
	for (;;) {
		double scaled = ldexp(p, 64), whole = floor(scaled);
		uint64_t digits = (uint64_t)whole;
		if (word != digits)
			return word < digits;
		p = scaled - whole;
		if (p == 0)
			return false;
		word = draw_word(draw, ctx) ^ flip;
	}
}

/* The word is read from the other end for a gap > 0, so that more votes for 1 never turn
 * the same word's label from 1 to 0. */
bool dp_label_draw(const struct dp_mechanism *m, uint32_t ones, secret_draw_fn *draw, void *ctx)
{
	int64_t gap = 2 * (int64_t)ones - (int64_t)m->teachers;
	uint64_t flip = gap > 0 ? UINT64_MAX : 0;
	bool against = coin(dp_label_against(m, gap), draw_word(draw, ctx) ^ flip, flip, draw, ctx);
	assert(ones <= m->teachers && draw != NULL);
	return gap > 0 ? !against : against;
}
