/* ppat/map.c - the client holds the map: the host releases a noisy matrix (methods 3.6).
 *
 *      client                                     host
 *      ------                                     ----
 *      WORK    Z = X Q'
 *      SEND    -------------- ROWS ------------>  RECV    Z, until all have come
 *      RECV    <------------- ACK --------------  SEND
 *                                                 CHARGE  1 release; refused: over, ERR_BUDGET
 *                                                 WORK    M = clipped Y'Z + noise
 *      RECV    <------------- MAP --------------  SEND    in chunks
 *      SEND    -------------- ACK ------------->  RECV    not of the last
 *      WORK    R from the SVD of M, X-hat = Z R'
 *      SEND    -------------- ROWS ------------>  RECV    X-hat, until all have come
 *      RECV    <------------- ACK --------------  SEND
 *      SEND    ------------ VIRTUAL ----------->  RECV    if agreed, until all have come
 *      RECV    <------------- ACK --------------  SEND
 *                                                 WORK    agreement with Y
 *
 * Of Y, nothing leaves the host but M, once, after its charge (C8). */
#include <assert.h>
#include <stdlib.h>

#include <cblas.h>

#include "base/mem.h"
#include "nn/mlp.h"
#include "ppat/release_internal.h"
#include "ppat/rows_internal.h"

enum {
	H_ROTATED = 1,
	H_ROTATED_ACK,
	H_CHARGE,
	H_RELEASE,
	H_MAP,
	H_MAP_ACK,
	H_ROWS,
	H_VIRTUAL,
	H_ACK,
	H_FINISH,
};
enum {
	C_APPLY = 1,
	C_ROTATED,
	C_ROTATED_ACK,
	C_MAP,
	C_MAP_ACK,
	C_SOLVE,
	C_ROWS,
	C_VIRTUAL,
	C_ACK,
};
enum { BLOCK = 256 }; /* rows on the lattice at once */

struct map_side {
	struct ppat_side side; /* first */
	float *released;       /* M [host_dim x client_dim] */
	size_t at;	       /* rows of it that are through */
};

static struct map_side *map_of(struct ppat_side *s)
{
	return (struct map_side *)s;
}

/* ---- host ---- */

static unsigned map_host_rotated(struct ppat_side *s)
{
	return ppat_rows_left(s) ? H_ROTATED : H_CHARGE;
}

static unsigned map_charged(struct ppat_side *s)
{
	ppat_account_charge(s, 1);
	return H_RELEASE;
}

static unsigned map_refused(struct ppat_side *s)
{
	return ppat_account_no_release(s, "a map");
}

/* m [dy x dx] = Y'Z in whole numbers: no entry is above n K K <= 2^24 2^28. */
static int map_product(const struct ppat_side *s, const struct dp_lattice *ly,
		       const struct dp_lattice *lz, double *m)
{
	size_t dy = ly->dim, dx = lz->dim, wider = dy > dx ? dy : dx;
	int32_t *whole = mem_array(BLOCK * wider, sizeof(*whole));
	double *y = mem_array(BLOCK * dy, sizeof(*y)), *z = mem_array(BLOCK * dx, sizeof(*z));

	static_assert((uint64_t)PPAT_SLOTS_MAX * DP_LATTICE_RADIUS * DP_LATTICE_RADIUS <
			      UINT64_C(1) << 53,
		      "sums of products are exact in a double");
	int rc = 0;
	for (size_t at = 0; rc == 0 && at < s->own.n; at += BLOCK) {
		size_t k = s->own.n - at < BLOCK ? s->own.n - at : BLOCK;
		ppat_release_round(ly, s->own.rows + at * dy, k, whole, y);
		ppat_release_round(lz, s->wire.rows + at * dx, k, whole, z);
		cblas_dgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)dy, (int)dx, (int)k, 1.0,
			    y, (int)dy, z, (int)dx, 1.0, m, (int)dx);
		rc = ppat_canceled(s);
	}
	sodium_memzero(whole, BLOCK * wider * sizeof(*whole));
	sodium_memzero(y, BLOCK * dy * sizeof(*y));
	free(whole);
	free(y);
	free(z);
	return rc;
}

/* Methods 3.6: M = Y'Z + N, rows of both clipped; one row moves it by 2 C^2 at most, in steps of
 * the lattice.  In units of its largest possible value but for noise. */
static int map_release(struct ppat_side *s)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	double clip = ppat_config_clip(&s->cfg), *m = mem_array(dy * dx, sizeof(*m));
	uint32_t radius = dp_lattice_radius_product(s->cfg.multiplier);
	struct map_side *a = map_of(s);
	struct dp_lattice ly, lz;
	uint64_t sigma2;

	dp_lattice_init(&ly, dy, clip, radius);
	dp_lattice_init(&lz, dx, clip, radius);
	sigma2 = dp_lattice_sigma2(s->cfg.multiplier, dp_lattice_sensitivity_product(&ly, &lz));
	nn_blas_single();
	int rc = map_product(s, &ly, &lz, m);
	a->released = mem_array(dy * dx, sizeof(float));
	if (rc == 0)
		rc = ppat_release_draw(s, m, dy * dx, sigma2,
				       1 / ((double)s->own.n * radius * radius), a->released);
	sodium_memzero(m, dy * dx * sizeof(*m));
	free(m);
	return rc;
}

/* Enter: a part of the released map, as many rows as a message takes. */
static void map_send(struct ppat_side *s)
{
	struct map_side *a = map_of(s);
	assert(s->account.drawn == 1);
	a->at += ppat_rows_write(s, PPAT_MSG_MAP, a->released, a->at, s->cfg.host_dim, s->wire.dim);
}

/* All of M has been sent: the next messages are translated rows. */
static unsigned map_sent(struct ppat_side *s)
{
	if (map_of(s)->at < s->cfg.host_dim)
		return H_MAP_ACK;
	free(s->wire.rows);
	s->wire = (struct ppat_wire){ .dim = s->cfg.host_dim };
	return H_ROWS;
}

static unsigned map_acknowledged(struct ppat_side *s)
{
	if (ppat_rows_left(s))
		return H_ROWS;
	return ppat_rows_virtual_left(s) ? H_VIRTUAL : H_FINISH;
}

static int map_finish(struct ppat_side *s)
{
	ppat_rows_as_received(s);
	return ppat_rows_finish(s);
}

static const struct ppat_phase host_phases[] = {
	PPAT_PHASE_OVER,
	[H_ROTATED] = { .name = "rows",
			.want = CONV_RECV,
			.kinds = PPAT_BIT(PPAT_MSG_ROWS),
			.take = ppat_rows_take,
			.to = PPAT_BIT(H_ROTATED_ACK) },
	[H_ROTATED_ACK] = { .name = "acknowledge",
			    .want = CONV_SEND,
			    .enter = ppat_write_ack,
			    .next = map_host_rotated,
			    .to = PPAT_BIT(H_ROTATED) | PPAT_BIT(H_CHARGE) },
	[H_CHARGE] = { .name = "charge",
		       .want = CONV_CHARGE,
		       .next = map_charged,
		       .refused = map_refused,
		       .to = PPAT_BIT(H_RELEASE) },
	[H_RELEASE] = { .name = "release",
			.want = CONV_WORK,
			.work = map_release,
			.to = PPAT_BIT(H_MAP) },
	[H_MAP] = { .name = "map",
		    .want = CONV_SEND,
		    .enter = map_send,
		    .next = map_sent,
		    .to = PPAT_BIT(H_MAP_ACK) | PPAT_BIT(H_ROWS) },
	[H_MAP_ACK] = { .name = "acknowledgement",
			.want = CONV_RECV,
			.kinds = PPAT_BIT(PPAT_MSG_ACK),
			.to = PPAT_BIT(H_MAP) },
	[H_ROWS] = { .name = "rows",
		     .want = CONV_RECV,
		     .kinds = PPAT_BIT(PPAT_MSG_ROWS),
		     .take = ppat_rows_take,
		     .to = PPAT_BIT(H_ACK) },
	[H_VIRTUAL] = { .name = "virtual neighbours",
			.want = CONV_RECV,
			.kinds = PPAT_BIT(PPAT_MSG_VIRTUAL),
			.take = ppat_rows_take_virtual,
			.to = PPAT_BIT(H_ACK) },
	[H_ACK] = { .name = "acknowledge",
		    .want = CONV_SEND,
		    .enter = ppat_write_ack,
		    .next = map_acknowledged,
		    .to = PPAT_BIT(H_ROWS) | PPAT_BIT(H_VIRTUAL) | PPAT_BIT(H_FINISH) },
	[H_FINISH] = { .name = "finish", .want = CONV_WORK, .work = map_finish },
};

/* ---- client ---- */

/* Methods 3.6, step 1: Z = X Q' with a Q of Haar measure, drawn here and kept secret. */
static int map_apply(struct ppat_side *s)
{
	int rc = nn_haar(s->map.at, s->own.dim, s->draw, &s->err);
	if (rc == 0)
		rc = ppat_canceled(s);
	if (rc == 0)
		ppat_rows_apply_map(s);
	return rc;
}

static unsigned map_client_rotated(struct ppat_side *s)
{
	return ppat_rows_left(s) ? C_ROTATED : C_MAP;
}

static void map_take(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e)
{
	struct map_side *a = map_of(s);
	size_t dy = s->cfg.host_dim, dx = s->wire.dim;
	(void)kind;
	if (a->released == NULL)
		a->released = mem_array(dy * dx, sizeof(float));
	a->at += ppat_rows_read(&a->side, m, a->released, a->at, dy, dx, e);
	if (e->code == 0 && a->at == dy)
		s->account.received++;
}

static unsigned map_taken(struct ppat_side *s)
{
	return map_of(s)->at < s->cfg.host_dim ? C_MAP_ACK : C_SOLVE;
}

/* r from M (methods 3.6, step 2); from now on the map is RQ: x-hat = R Q x. */
static int map_polar(struct ppat_side *s, float *r)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	double *m = mem_array(dy * dx, sizeof(double));
	float *both = mem_array(dy * dx, sizeof(float));
	for (size_t i = 0; i < dy * dx; i++)
		m[i] = (double)map_of(s)->released[i];
	int rc = nn_polar(r, m, dx, dy, &s->err);
	free(m);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)dy, (int)dx, (int)dx, 1.0f, r,
		    (int)dx, s->map.at, (int)dx, 0.0f, both, (int)dx);
	ppat_rows_set_map(s, both, dy, dx);
	return rc;
}

static int map_solve(struct ppat_side *s)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	float *r = mem_array(dy * dx, sizeof(float));
	int rc = map_polar(s, r);
	if (rc == 0)
		rc = ppat_canceled(s);
	if (rc == 0) {
		float *xhat = mem_array(s->own.n * dy, sizeof(float));
		nn_apply(xhat, s->wire.rows, r, s->own.n, dy, dx);
		free(s->wire.rows);
		s->wire = (struct ppat_wire){ .dim = dy, .rows = xhat };
		ppat_rows_pack_virtual(s);
	}
	free(r);
	return rc;
}

static unsigned map_next_message(struct ppat_side *s)
{
	if (ppat_rows_left(s))
		return C_ROWS;
	return ppat_rows_virtual_left(s) ? C_VIRTUAL : PPAT_OVER;
}

static const struct ppat_phase client_phases[] = {
	PPAT_PHASE_OVER,
	[C_APPLY] = { .name = "apply",
		      .want = CONV_WORK,
		      .work = map_apply,
		      .to = PPAT_BIT(C_ROTATED) },
	[C_ROTATED] = { .name = "rows",
			.want = CONV_SEND,
			.enter = ppat_rows_send,
			.to = PPAT_BIT(C_ROTATED_ACK) },
	[C_ROTATED_ACK] = { .name = "acknowledgement",
			    .want = CONV_RECV,
			    .kinds = PPAT_BIT(PPAT_MSG_ACK),
			    .next = map_client_rotated,
			    .to = PPAT_BIT(C_ROTATED) | PPAT_BIT(C_MAP) },
	[C_MAP] = { .name = "map",
		    .want = CONV_RECV,
		    .kinds = PPAT_BIT(PPAT_MSG_MAP),
		    .take = map_take,
		    .next = map_taken,
		    .to = PPAT_BIT(C_MAP_ACK) | PPAT_BIT(C_SOLVE) },
	[C_MAP_ACK] = { .name = "acknowledge",
			.want = CONV_SEND,
			.enter = ppat_write_ack,
			.to = PPAT_BIT(C_MAP) },
	[C_SOLVE] = { .name = "solve",
		      .want = CONV_WORK,
		      .work = map_solve,
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
		    .next = map_next_message,
		    .to = PPAT_BIT(C_ROWS) | PPAT_BIT(C_VIRTUAL) },
};

/* ---- both ---- */

static unsigned map_begin(struct ppat_side *s, const struct ppat_env *env)
{
	size_t d = s->cfg.client_dim;
	(void)env;
	s->wire.dim = d;
	if (s->role == PPAT_HOST)
		return H_ROTATED;
	ppat_rows_set_map(s, ppat_rows_identity(d, d), d, d);
	return C_APPLY;
}

static void map_side_release(struct ppat_side *s)
{
	free(map_of(s)->released);
	ppat_rows_release(s);
}

static const struct conv_ops map_conv = PPAT_CONV_OPS("map");

const struct ppat_machine ppat_map = {
	.conv = &map_conv,
	.bytes = sizeof(struct map_side),
	.phases = { [PPAT_HOST] = host_phases, [PPAT_CLIENT] = client_phases },
	.begin = map_begin,
	.release = map_side_release,
};
