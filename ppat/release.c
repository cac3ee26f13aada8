/* ppat/release.c - rounding to a lattice, and the noise of a release. */
#include "ppat/release_internal.h"

#include <stdlib.h>

#include "base/mem.h"

void ppat_release_round(const struct dp_lattice *l, const float *rows, size_t k, int32_t *whole,
			double *out)
{
	dp_lattice_put(l, rows, k, whole);
	for (size_t i = 0; i < k * l->dim; i++)
		out[i] = whole[i];
}

int ppat_release_draw(struct ppat_side *s, double *x, size_t n, uint64_t sigma2, double unit,
		      float *out)
{
	int64_t *whole = mem_array(n, sizeof(*whole));
	ppat_account_draw(s, 1);
	for (size_t i = 0; i < n; i++)
		whole[i] = (int64_t)x[i];
	int rc = s->noise(whole, n, sigma2, s->draw.fn, s->draw.ctx, s->cancel);
	for (size_t i = 0; i < n; i++)
		out[i] = rc == 0 ? (float)((double)whole[i] * unit) : 0;
	sodium_memzero(x, n * sizeof(*x));
	sodium_memzero(whole, n * sizeof(*whole));
	free(whole);
	return rc;
}
