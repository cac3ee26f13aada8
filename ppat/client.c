/* ppat/client.c - what the client computes and writes. */
#include "ppat/session_internal.h"

#include <stdlib.h>
#include <string.h>

#include <cblas.h>

#include "base/mem.h"

static void take_row(struct ppat_session *s, size_t i, size_t row)
{
	size_t d = s->cfg.client_dim;
	memcpy(s->xb + i * d, s->own + row * d, d * sizeof(float));
}

static void take_random(struct ppat_session *s)
{
	for (size_t i = 0; i < s->cfg.batch; i++)
		take_row(s, i, rng_below(&s->rng, (uint32_t)s->n));
}

/* The public rule of mode BUDGET: a walk through all rows in a random order, so that none is
 * asked about twice before all have been, and every stretch of it is spread over the set.
 * What the teachers train on comes from half a walk away: not rows about to be asked. */
static void take_next(struct ppat_session *s)
{
	size_t first = (size_t)s->steps * s->cfg.batch, asked = s->cfg.batch;
	for (size_t i = 0; i < s->pool; i++)
		take_row(s, i, s->walk[(first + i + (i < asked ? 0 : s->n / 2)) % s->n]);
}

/* Z = G(X_b) = X_b W'. */
static void generate(struct ppat_session *s, size_t n)
{
	nn_apply(s->z, s->xb, s->map, n, s->cfg.host_dim, s->cfg.client_dim);
}

/* Aligned rows drawn with replacement, as published; or by the public walk. */
int ppat_client_draw(struct ppat_session *s)
{
	size_t n = s->inner > 0 ? s->cfg.batch : s->pool;
	struct net_writer w;
	if (s->walk != NULL && s->inner == 0)
		take_next(s);
	else
		take_random(s);
	generate(s, n);
	s->shown += n;
	ppat_write_begin(s, &w, s->inner > 0 ? PPAT_MSG_PROBE : PPAT_MSG_BATCH);
	net_put_tensor(&w, "z", s->z, n, s->cfg.host_dim);
	ppat_write_end(s, &w);
	return 0;
}

static void read_labels(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	size_t n = s->cfg.batch, bytes = (n + 7) / 8;
	uint8_t bits[PPAT_BATCH_MAX / 8];
	net_get_fixed(m, "b", bits, bytes, e);
	if (e->code == 0 && n % 8 != 0 && (bits[bytes - 1] >> (n % 8)) != 0)
		err_set(e, ERR_PROTO, "labels go on beyond the batch of %zu rows", n);
	for (size_t i = 0; e->code == 0 && i < n; i++)
		s->label[i] = (float)(((unsigned)bits[i / 8] >> (i % 8)) & 1u);
}

void ppat_client_take_answer(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	if (s->cfg.student == PPAT_STUDENT_CLIENT)
		read_labels(s, m, e);
	else
		ppat_read_matrix(m, "z", s->g, s->cfg.batch, s->cfg.host_dim, e);
}

void ppat_client_take_stop(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	net_get_uint(m, "why", 1, 1, e);
	if (e->code == 0)
		s->refused = true;
}

/* Step 5: dL_G/dW = g' X_b, SGD with momentum, and toward orthogonality if square. */
static void step_generator(struct ppat_session *s)
{
	int n = (int)s->cfg.batch, dy = (int)s->cfg.host_dim, dx = (int)s->cfg.client_dim;
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, dy, dx, n, 1.0f, s->g, dy, s->xb, dx,
		    0.0f, s->gw, dx);
	nn_sgd_step(&s->sgd, s->map, s->gw);
	if (dy == dx)
		nn_orthogonalize(s->map, s->cfg.host_dim, (float)s->cfg.beta);
}

/* The first step is on the rows that were labelled, further ones on any. */
static void play_all(struct ppat_session *s)
{
	ppat_pupil_train(&s->pupil, s->z, s->label, s->cfg.batch);
	for (uint32_t i = 0; i < s->cfg.generator_steps; i++) {
		if (i > 0) {
			take_random(s);
			generate(s, s->cfg.batch);
		}
		ppat_pupil_gradient(&s->pupil, s->z, s->cfg.batch, s->g);
		step_generator(s);
	}
}

int ppat_client_update(struct ppat_session *s)
{
	if (s->cfg.student == PPAT_STUDENT_CLIENT) {
		play_all(s);
	} else {
		step_generator(s);
		s->inner = (s->inner + 1) % s->cfg.generator_steps;
	}
	s->steps += s->inner == 0;
	return 0;
}

/* The virtual rows go through the same scaling and map as the aligned ones. */
static void pack_virtual(struct ppat_session *s)
{
	const struct ppat_virtual none = { .slots = s->cfg.slots, .dim = s->dim };
	const struct ppat_virtual *v = s->give != NULL ? s->give : &none;
	struct ppat_virtual sent = *v;
	size_t n = (size_t)v->n_ent + v->n_rel;
	float *rows = mem_array(n * s->dim, sizeof(float));
	float *out = mem_array(n * s->wire_dim, sizeof(float));
	if (v->n_ent > 0)
		memcpy(rows, v->ent, v->n_ent * s->dim * sizeof(float));
	if (v->n_rel > 0)
		memcpy(rows + v->n_ent * s->dim, v->rel, v->n_rel * s->dim * sizeof(float));
	ppat_scaling_apply(&s->scaling, rows, n);
	nn_apply(out, rows, s->map, n, s->wire_dim, s->dim);
	sent.dim = s->wire_dim;
	sent.ent = out;
	sent.rel = out + v->n_ent * s->wire_dim;
	ppat_virtual_encode(&sent, &s->parcel);
	free(rows);
	free(out);
}

/* G(X) for all rows; else Z = X Q' with a Q drawn here and kept secret. */
int ppat_client_apply(struct ppat_session *s)
{
	if (s->cfg.translator != PPAT_PPAT) {
		int rc = nn_haar(s->map, s->dim, s->draw, &s->err);
		if (rc != 0)
			return rc;
	}
	s->wire = mem_array(s->n * s->wire_dim, sizeof(float));
	nn_apply(s->wire, s->own, s->map, s->n, s->wire_dim, s->dim);
	if (ppat_spends(&s->cfg, PPAT_CLIENT))
		return ppat_release_rows(s);
	if (s->cfg.max_virtual > 0 && s->cfg.translator != PPAT_MAP)
		pack_virtual(s);
	return 0;
}

/* The host sends full chunks, and one last part: anything else is refused. */
void ppat_client_take_map(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	size_t left = s->cfg.host_dim - s->map_at, n = ppat_chunk_rows(s);
	n = left < n ? left : n;
	net_get_uint(m, "o", s->map_at, s->map_at, e);
	if (s->released == NULL)
		s->released = mem_array(s->cfg.host_dim * s->wire_dim, sizeof(float));
	ppat_read_matrix(m, "z", s->released + s->map_at * s->wire_dim, n, s->wire_dim, e);
	if (e->code == 0)
		s->map_at += n;
}

void ppat_client_write_ack(struct ppat_session *s)
{
	struct net_writer w;
	ppat_write_begin(s, &w, PPAT_MSG_ACK);
	ppat_write_end(s, &w);
}

/* R from the released M, and from now on the map is RQ: x-hat = R Q x (methods 3.6). */
static int solve_map(struct ppat_session *s, float *r)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	double *m = mem_array(dy * dx, sizeof(double));
	float *both = mem_array(dy * dx, sizeof(float));
	for (size_t i = 0; i < dy * dx; i++)
		m[i] = (double)s->released[i];
	int rc = nn_polar(r, m, dx, dy, &s->err);
	free(m);
	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)dy, (int)dx, (int)dx, 1.0f, r,
		    (int)dx, s->map, (int)dx, 0.0f, both, (int)dx);
	sodium_memzero(s->map, s->map_floats * sizeof(float));
	free(s->map);
	s->map = both;
	s->map_floats = dy * dx;
	return rc;
}

int ppat_client_solve(struct ppat_session *s)
{
	size_t dy = s->cfg.host_dim, dx = s->cfg.client_dim;
	float *r = mem_array(dy * dx, sizeof(float));
	int rc = solve_map(s, r);
	if (rc == 0) {
		float *xhat = mem_array(s->n * dy, sizeof(float));
		nn_apply(xhat, s->wire, r, s->n, dy, dx);
		free(s->wire);
		s->wire = xhat;
		s->wire_dim = dy;
		s->rows_at = 0;
		s->mapped = true;
	}
	free(r);
	if (rc == 0 && s->cfg.max_virtual > 0)
		pack_virtual(s);
	return rc;
}

void ppat_client_write_rows(struct ppat_session *s)
{
	size_t left = s->n - s->rows_at, n = ppat_chunk_rows(s);
	struct net_writer w;
	n = left < n ? left : n;
	ppat_write_begin(s, &w, PPAT_MSG_ROWS);
	net_put_uint(&w, "o", s->rows_at);
	net_put_tensor(&w, "z", s->wire + s->rows_at * s->wire_dim, n, s->wire_dim);
	ppat_write_end(s, &w);
	s->rows_at += n;
}

void ppat_client_write_virtual(struct ppat_session *s)
{
	size_t left = s->parcel.len - s->parcel_at;
	size_t n = left < PPAT_CHUNK_MAX ? left : PPAT_CHUNK_MAX;
	struct net_writer w;
	ppat_write_begin(s, &w, PPAT_MSG_VIRTUAL);
	net_put_uint(&w, "t", s->parcel.len);
	net_put_uint(&w, "o", s->parcel_at);
	net_put_bin(&w, "b", s->parcel.base + s->parcel_at, n);
	ppat_write_end(s, &w);
	s->parcel_at += n;
	s->parcel_over = s->parcel_at == s->parcel.len;
}
