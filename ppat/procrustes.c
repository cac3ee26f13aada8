/* ppat/procrustes.c - the host solves for an orthogonal map of the client's rotated rows
 * (methods 3.6).
 *
 *      client                                     host
 *      ------                                     ----
 *      CHARGE  1 release, with noise only
 *      WORK    Z = X Q' [clipped, + noise]; unrotated: Z = X
 *      SEND    -------------- ROWS ------------>  RECV    until all have come
 *      RECV    <------------- ACK --------------  SEND    an empty body
 *      SEND    ------------ VIRTUAL ----------->  RECV    if agreed, until all have come
 *      RECV    <------------- ACK --------------  SEND
 *                                                 WORK    R from the SVD of Y'Z, X-hat = Z R'
 *
 * Rows that both sides say to be in one frame (methods 3.8) come unrotated, and R is left out
 * where they agree without it.
 *
 * The host's table has one phase that sends, H_ACK, and what it sends is the same bytes
 * whatever Y is: nothing computed from Y leaves the host, so epsilon is 0. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "base/mem.h"
#include "ppat/release_internal.h"
#include "ppat/rows_internal.h"

enum { H_ROWS = 1, H_VIRTUAL, H_ACK, H_FINISH };
enum { C_CHARGE = 1, C_APPLY, C_ROWS, C_VIRTUAL, C_ACK };

/* ---- host ---- */

static void procrustes_take_rows(struct ppat_side *s, uint8_t kind, const struct net_map *m,
				 struct err *e)
{
	ppat_rows_take(s, kind, m, e);
	if (e->code == 0 && !ppat_rows_left(s) && ppat_config_releases(&s->cfg))
		s->account.received++;
}

static unsigned procrustes_acknowledged(struct ppat_side *s)
{
	if (ppat_rows_left(s))
		return H_ROWS;
	return ppat_rows_virtual_left(s) ? H_VIRTUAL : H_FINISH;
}

/* Noisy rows are known to come from within the clip: brought back to it, they are nearer. */
static void clip_translated(struct ppat_side *s)
{
	double clip = ppat_config_clip(&s->cfg);
	size_t d = s->cfg.host_dim;
	for (size_t i = 0; i < s->own.n; i++) {
		float *row = s->translated.rows + i * d;
		double length = cblas_snrm2((int)d, row, 1);
		if (length > clip)
			cblas_sscal((int)d, (float)(clip / length), row, 1);
	}
}

/* The least agreement of rows as they came, as a share of their agreement through a map. */
#define FRAME_AGREES 0.7

/* Every second row of x [n x d], from `first` on; the caller's to free. */
static float *every_second(const float *x, size_t first, size_t n, size_t d)
{
	float *out = mem_array(n / 2 * d + 1, sizeof(float));
	for (size_t i = 0; i < n / 2; i++)
		memcpy(out + i * d, x + (2 * i + first) * d, d * sizeof(float));
	return out;
}

/* Are the rows where one frame would have them?  R is solved for on one half of them and both are
 * measured on the other: to few rows R fits whatever they are. */
static int agree_as_received(struct ppat_side *s, bool *agree)
{
	size_t d = s->cfg.host_dim, n = s->own.n, half = n / 2;
	float *z = every_second(s->wire.rows, 0, n, d), *y = every_second(s->own.rows, 0, n, d);
	float *z2 = every_second(s->wire.rows, 1, n, d), *y2 = every_second(s->own.rows, 1, n, d);
	float *r = mem_array(d * d, sizeof(float));
	int rc = half > 0 ? nn_procrustes(r, z, y, half, d, d, &s->err) : 0;
	if (rc == 0)
		rc = ppat_canceled(s);
	*agree = rc == 0;
	if (rc == 0 && half > 0) {
		nn_apply(z, z2, r, half, d, d);
		*agree = nn_mean_cosine(z2, y2, half, d) >=
			 FRAME_AGREES * nn_mean_cosine(z, y2, half, d);
	}
	free(z);
	free(y);
	free(z2);
	free(y2);
	free(r);
	return rc;
}

static int procrustes_try_as_received(struct ppat_side *s)
{
	size_t d = s->cfg.host_dim;
	bool agree = false;
	int rc = s->cfg.unrotated && s->same_frame ? agree_as_received(s, &agree) : 0;
	if (rc != 0 || !agree)
		return rc;
	assert(s->role == PPAT_HOST && s->own.dim == s->wire.dim);
	s->translated.as_received = true;
	ppat_rows_set_map(s, ppat_rows_identity(d, d), d, d);
	ppat_rows_as_received(s);
	return 0;
}

/* Methods 3.6, step 2: min over orthogonal R of |Z R' - Y|_F, and x-hat = R z. */
static int procrustes_finish(struct ppat_side *s)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	int status = procrustes_try_as_received(s);
	if (status != 0 || s->translated.as_received)
		return status != 0 ? status : ppat_rows_finish(s);
	float *r = mem_array(dy * dx, sizeof(float));
	ppat_rows_set_map(s, r, dy, dx);
	int rc = ppat_canceled(s);
	if (rc == 0)
		rc = nn_procrustes(r, s->wire.rows, s->own.rows, s->own.n, dx, dy, &s->err);
	if (rc == 0)
		rc = ppat_canceled(s);
	if (rc != 0)
		return rc;
	ppat_rows_translate(s, r);
	if (ppat_config_releases(&s->cfg))
		clip_translated(s);
	return ppat_rows_finish(s);
}

static const struct ppat_phase host_phases[] = {
	PPAT_PHASE_OVER,
	[H_ROWS] = { .name = "rows",
		     .want = CONV_RECV,
		     .kinds = PPAT_BIT(PPAT_MSG_ROWS),
		     .take = procrustes_take_rows,
		     .to = PPAT_BIT(H_ACK) },
	[H_VIRTUAL] = { .name = "virtual neighbours",
			.want = CONV_RECV,
			.kinds = PPAT_BIT(PPAT_MSG_VIRTUAL),
			.take = ppat_rows_take_virtual,
			.to = PPAT_BIT(H_ACK) },
	[H_ACK] = { .name = "acknowledge",
		    .want = CONV_SEND,
		    .enter = ppat_write_ack,
		    .next = procrustes_acknowledged,
		    .to = PPAT_BIT(H_ROWS) | PPAT_BIT(H_VIRTUAL) | PPAT_BIT(H_FINISH) },
	[H_FINISH] = { .name = "finish", .want = CONV_WORK, .work = procrustes_finish },
};

/* ---- client ---- */

static unsigned procrustes_charged(struct ppat_side *s)
{
	ppat_account_charge(s, 1);
	return C_APPLY;
}

static unsigned procrustes_refused(struct ppat_side *s)
{
	return ppat_account_no_release(s, "noisy rows");
}

/* Methods 3.6, variants: the client's rows, clipped, with noise for its own account. */
static int procrustes_add_noise(struct ppat_side *s)
{
	size_t n = s->own.n, floats = n * s->wire.dim;
	int32_t *whole = mem_array(floats, sizeof(*whole));
	double *x = mem_array(floats, sizeof(*x));
	struct dp_lattice l;
	dp_lattice_init(&l, s->wire.dim, ppat_config_clip(&s->cfg), DP_LATTICE_RADIUS);
	ppat_release_round(&l, s->wire.rows, n, whole, x);
	int rc = ppat_release_draw(
		s, x, floats, dp_lattice_sigma2(s->cfg.multiplier, dp_lattice_sensitivity_rows(&l)),
		l.step, s->wire.rows);
	sodium_memzero(whole, floats * sizeof(*whole));
	free(whole);
	free(x);
	return rc;
}

/* Methods 3.6, step 1: Z = X Q' with a Q of Haar measure, drawn here and kept secret; unrotated:
 * Q is the identity. */
static int procrustes_apply(struct ppat_side *s)
{
	int rc = s->cfg.unrotated ? 0 : nn_haar(s->map.at, s->own.dim, s->draw, &s->err);
	if (rc == 0)
		rc = ppat_canceled(s);
	if (rc != 0)
		return rc;
	ppat_rows_apply_map(s);
	if (ppat_config_releases(&s->cfg))
		return procrustes_add_noise(s);
	ppat_rows_pack_virtual(s);
	return 0;
}

static unsigned procrustes_next_message(struct ppat_side *s)
{
	if (ppat_rows_left(s))
		return C_ROWS;
	return ppat_rows_virtual_left(s) ? C_VIRTUAL : PPAT_OVER;
}

static const struct ppat_phase client_phases[] = {
	PPAT_PHASE_OVER,
	[C_CHARGE] = { .name = "charge",
		       .want = CONV_CHARGE,
		       .next = procrustes_charged,
		       .refused = procrustes_refused,
		       .to = PPAT_BIT(C_APPLY) },
	[C_APPLY] = { .name = "apply",
		      .want = CONV_WORK,
		      .work = procrustes_apply,
		      .to = PPAT_BIT(C_ROWS) },
	[C_ROWS] = { .name = "rows",
		     .want = CONV_SEND,
		     .enter = ppat_rows_send,
		     .to = PPAT_BIT(C_ACK) },
	[C_VIRTUAL] = { .name = "virtual neighbours",
			.want = CONV_SEND,
			.enter = ppat_rows_send_virtual,
			.to = PPAT_BIT(C_ACK) },
	[C_ACK] = { .name = "acknowledgement",
		    .want = CONV_RECV,
		    .kinds = PPAT_BIT(PPAT_MSG_ACK),
		    .next = procrustes_next_message,
		    .to = PPAT_BIT(C_ROWS) | PPAT_BIT(C_VIRTUAL) },
};

/* ---- both ---- */

static unsigned procrustes_begin(struct ppat_side *s, const struct ppat_env *env)
{
	size_t d = s->cfg.client_dim;
	(void)env;
	s->wire.dim = d;
	if (s->role == PPAT_HOST)
		return H_ROWS;
	ppat_rows_set_map(s, ppat_rows_identity(d, d), d, d);
	return ppat_config_releases(&s->cfg) ? C_CHARGE : C_APPLY;
}

static const struct conv_ops procrustes_conv = PPAT_CONV_OPS("procrustes");

const struct ppat_machine ppat_procrustes = {
	.conv = &procrustes_conv,
	.bytes = sizeof(struct ppat_side),
	.phases = { [PPAT_HOST] = host_phases, [PPAT_CLIENT] = client_phases },
	.begin = procrustes_begin,
	.release = ppat_rows_release,
};
