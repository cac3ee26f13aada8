/* audit/canaries.c - one release, many guesses. */
#include "audit/canaries.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"
#include "dp/audit.h"

enum { CANARIES_MIN = 16, CANARIES_MAX = 65536 };

struct guess {
	double sure; /* |score| */
	bool right;
};

static int surest_first(const void *a, const void *b)
{
	double x = ((const struct guess *)a)->sure, y = ((const struct guess *)b)->sure;
	return x > y ? -1 : x < y;
}

static void toss(int8_t *sign, size_t m, struct nn_draw draw)
{
	draw.fn(draw.ctx, sign, m);
	for (size_t i = 0; i < m; i++)
		sign[i] = (sign[i] & 1) != 0 ? 1 : -1;
}

/* The bound of the r surest guesses, for r = m, m/2, m/4, m/8: each at its share of p. */
static void guess_best(const struct guess *g, size_t m, double delta, double p,
		       struct audit_canaries *out)
{
	size_t tries = 0;
	for (size_t r = m; r >= CANARIES_MIN / 2 && 8 * r >= m; r /= 2)
		tries++;
	for (size_t r = m; r >= CANARIES_MIN / 2 && 8 * r >= m; r /= 2) {
		uint64_t correct = 0;
		for (size_t i = 0; i < r; i++)
			correct += g[i].right;
		double lower = dp_one_run_lower(m, r, correct, delta, p / (double)tries);
		if (lower > out->lower || r == m)
			*out = (struct audit_canaries){ m, r, correct, lower };
	}
}

int audit_canaries(audit_release_fn *release, void *ctx, size_t m, double delta, double p,
		   struct nn_draw draw, struct audit_canaries *out, struct err *e)
{
	if (m < CANARIES_MIN || m > CANARIES_MAX || !(delta >= 0 && delta < 1) || !(p > 0 && p < 1))
		return err_set(e, ERR_USAGE,
			       "audit: needs %d..%d canaries, 0 <= delta < 1 and "
			       "0 < p < 1",
			       CANARIES_MIN, CANARIES_MAX);
	int8_t *sign = mem_array(m, 1);
	double *score = mem_array(m, sizeof(*score));
	struct guess *g = mem_array(m, sizeof(*g));
	toss(sign, m, draw);
	*out = (struct audit_canaries){ .canaries = m };
	int rc = release(ctx, sign, m, score, e);
	for (size_t i = 0; rc == 0 && i < m; i++)
		g[i] = (struct guess){ fabs(score[i]), score[i] * sign[i] > 0 };
	qsort(g, m, sizeof(*g), surest_first);
	if (rc == 0)
		guess_best(g, m, delta, p, out);
	free(sign);
	free(score);
	free(g);
	return rc;
}
