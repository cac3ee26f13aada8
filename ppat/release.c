/* ppat/release.c - what leaves with noise: the host's map, or the client's rows (methods 3.6).
 *
 * Both are whole numbers on a lattice (dp/lattice.h), so that their L2 sensitivity to one
 * row replaced is exact; what is sent is these numbers divided by a public constant.  The
 * charge has been granted before anything here is drawn. */
#include "ppat/session_internal.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "base/mem.h"
#include "dp/lattice.h"
#include "nn/mlp.h"

enum { BLOCK = 256 }; /* rows on the lattice at once */

static void count_release(struct ppat_session *s)
{
	s->drawn++;
	assert(s->drawn <= s->charged);
}

/* k rows as whole numbers; doubles hold them, and sums of products below 2^53, exactly. */
static void put_block(const struct dp_lattice *l, const float *rows, size_t k, int32_t *whole,
		      double *out)
{
	dp_lattice_put(l, rows, k, whole);
	for (size_t i = 0; i < k * l->dim; i++)
		out[i] = whole[i];
}

/* m [dy x dx] = Y'Z in whole numbers: no entry is above n K K <= 2^24 2^28. */
static void product(const struct ppat_session *s, const struct dp_lattice *ly,
		    const struct dp_lattice *lz, double *m)
{
	size_t dy = ly->dim, dx = lz->dim, wider = dy > dx ? dy : dx;
	int32_t *whole = mem_array(BLOCK * wider, sizeof(*whole));
	double *y = mem_array(BLOCK * dy, sizeof(*y)), *z = mem_array(BLOCK * dx, sizeof(*z));

	static_assert((uint64_t)PPAT_SLOTS_MAX * DP_LATTICE_RADIUS * DP_LATTICE_RADIUS <
			      UINT64_C(1) << 53,
		      "sums of products are exact in a double");
	for (size_t at = 0; at < s->n; at += BLOCK) {
		size_t k = s->n - at < BLOCK ? s->n - at : BLOCK;
		put_block(ly, s->own + at * dy, k, whole, y);
		put_block(lz, s->wire + at * dx, k, whole, z);
		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)dy, (int)dx, (int)k, 1.0,
			    y, (int)dy, z, (int)dx, 1.0, m, (int)dx);
	}
	sodium_memzero(whole, BLOCK * wider * sizeof(*whole));
	sodium_memzero(y, BLOCK * dy * sizeof(*y));
	free(whole);
	free(y);
	free(z);
}

/* x, whole numbers in doubles, with noise and times `unit`; x is wiped. */
static void draw(const struct ppat_session *s, double *x, size_t n, uint64_t sigma2, double unit,
		 float *out)
{
	int64_t *whole = mem_array(n, sizeof(*whole));
	for (size_t i = 0; i < n; i++)
		whole[i] = (int64_t)x[i];
	s->noise(whole, n, sigma2, s->draw.fn, s->draw.ctx);
	for (size_t i = 0; i < n; i++)
		out[i] = (float)((double)whole[i] * unit);
	sodium_memzero(x, n * sizeof(*x));
	sodium_memzero(whole, n * sizeof(*whole));
	free(whole);
}

int ppat_release_map(struct ppat_session *s)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	double clip = ppat_config_clip(&s->cfg), *m = mem_array(dy * dx, sizeof(*m));
	uint32_t radius = dp_lattice_radius_product(s->cfg.multiplier);
	struct dp_lattice ly, lz;
	uint64_t sigma2;

	count_release(s);
	dp_lattice_init(&ly, dy, clip, radius);
	dp_lattice_init(&lz, dx, clip, radius);
	sigma2 = dp_lattice_sigma2(s->cfg.multiplier, dp_lattice_sensitivity_product(&ly, &lz));
	nn_blas_single();
	product(s, &ly, &lz, m);
	s->released = mem_array(dy * dx, sizeof(float));
	draw(s, m, dy * dx, sigma2, 1 / ((double)s->n * radius * radius), s->released);
	free(m);
	return 0;
}

int ppat_release_rows(struct ppat_session *s)
{
	size_t floats = s->n * s->wire_dim;
	int32_t *whole = mem_array(floats, sizeof(*whole));
	double *x = mem_array(floats, sizeof(*x));
	struct dp_lattice l;

	count_release(s);
	dp_lattice_init(&l, s->wire_dim, ppat_config_clip(&s->cfg), DP_LATTICE_RADIUS);
	put_block(&l, s->wire, s->n, whole, x);
	draw(s, x, floats, dp_lattice_sigma2(s->cfg.multiplier, dp_lattice_sensitivity_rows(&l)),
	     l.step, s->wire);
	sodium_memzero(whole, floats * sizeof(*whole));
	free(whole);
	free(x);
	return 0;
}

/* Noisy rows are known to come from within the clip: brought back to it, they are nearer. */
void ppat_release_clip(struct ppat_session *s)
{
	double clip = ppat_config_clip(&s->cfg);
	size_t d = s->cfg.host_dim;

	for (size_t i = 0; i < s->n && ppat_spends(&s->cfg, PPAT_CLIENT); i++) {
		double length = cblas_snrm2((int)d, s->xhat + i * d, 1);
		if (length > clip)
			cblas_sscal((int)d, (float)(clip / length), s->xhat + i * d, 1);
	}
}
