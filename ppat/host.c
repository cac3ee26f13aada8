/* ppat/host.c - what the host computes and writes.
 *
 * What the client can see of Y are the labels, one bit a row, or one noisy map
 * (release.c), each charged before it is drawn.  Everything else here either stays at the host
 * (votes, X-hat, agreement) or is a function of labels and of what the client sent. */
#include "ppat/session_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void ppat_host_take_batch(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	ppat_read_matrix(m, "z", s->z, s->pool, s->cfg.host_dim, e);
	s->shown += s->pool;
}

void ppat_host_take_probe(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	ppat_read_matrix(m, "z", s->z, s->cfg.batch, s->cfg.host_dim, e);
	s->shown += s->cfg.batch;
}

/* Step 2: label(z) = argmax_j(n_j + V_j), one charged query a row (C3). */
static void draw_labels(struct ppat_session *s)
{
	size_t n = s->cfg.batch;
	s->drawn += (uint32_t)n;
	assert(s->drawn <= s->charged);
	for (size_t i = 0; i < n; i++)
		s->label[i] = (float)s->labeller.label(s->labeller.ctx, s->ones[i],
						       s->cfg.teachers - s->ones[i]);
	sodium_memzero(s->ones, n * sizeof(*s->ones));
}

static void write_labels(struct ppat_session *s)
{
	size_t n = s->cfg.batch;
	uint8_t bits[PPAT_BATCH_MAX / 8] = { 0 };
	struct net_writer w;
	for (size_t i = 0; i < n; i++)
		if (s->label[i] > 0.5f)
			bits[i / 8] |= (uint8_t)(1u << (i % 8));
	ppat_write_begin(s, &w, PPAT_MSG_LABELS);
	net_put_bin(&w, "b", bits, (n + 7) / 8);
	ppat_write_end(s, &w);
}

/* dL_G/dZ of the rows in hand. */
static void write_slope(struct ppat_session *s, enum ppat_kind kind)
{
	size_t n = s->cfg.batch;
	struct net_writer w;
	ppat_pupil_gradient(&s->pupil, s->z, n, s->g);
	ppat_write_begin(s, &w, kind);
	net_put_tensor(&w, "z", s->g, n, s->cfg.host_dim);
	ppat_write_end(s, &w);
}

/* Steps 3 and 4 in the paper's placement. */
static void write_gradient(struct ppat_session *s)
{
	size_t n = s->cfg.batch;
	ppat_pupil_train(&s->pupil, s->z, s->label, n);
#ifdef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
	/* Negative control of the non-interference test, defined for that one test
	 * binary: the authors' code feeds the student real rows, and the test must
	 * notice.  Never define it elsewhere. */
	static const float real[1] = { 1.0f };
	ppat_pupil_train(&s->pupil, s->own, real, 1);
#endif
	write_slope(s, PPAT_MSG_GRAD);
}

/* What the student, which has seen nothing but labels, makes of further generated rows. */
int ppat_host_slope(struct ppat_session *s)
{
	write_slope(s, PPAT_MSG_SLOPE);
	return 0;
}

int ppat_host_draw(struct ppat_session *s)
{
	draw_labels(s);
	s->labelled = true;
	if (s->cfg.student == PPAT_STUDENT_CLIENT)
		write_labels(s);
	else
		write_gradient(s);
	return 0;
}

/* Votes are the host's own; what is drawn of them waits for its charge. */
int ppat_host_vote(struct ppat_session *s)
{
	if (!s->has_teachers)
		ppat_teachers_init(&s->teachers, &s->cfg, s->own, s->ids, s->n, s->draw);
	s->has_teachers = true;
	ppat_teachers_vote(&s->teachers, s->z, s->pool, s->cfg.batch, s->ones);
	s->labelled = false;
	return ppat_host_covered(s) ? ppat_host_draw(s) : 0;
}

void ppat_host_write_stop(struct ppat_session *s)
{
	struct net_writer w;
	ppat_write_begin(s, &w, PPAT_MSG_STOP);
	net_put_uint(&w, "why", 1);
	ppat_write_end(s, &w);
}

/* A part of the released map, as many rows as a message takes. */
void ppat_host_write_map(struct ppat_session *s)
{
	size_t left = s->cfg.host_dim - s->map_at, n = ppat_chunk_rows(s);
	struct net_writer w;
	n = left < n ? left : n;
	ppat_write_begin(s, &w, PPAT_MSG_MAP);
	net_put_uint(&w, "o", s->map_at);
	net_put_tensor(&w, "z", s->released + s->map_at * s->wire_dim, n, s->wire_dim);
	ppat_write_end(s, &w);
	s->map_at += n;
}

void ppat_host_mapped(struct ppat_session *s)
{
	free(s->wire);
	s->wire = NULL;
	s->rows_at = 0;
	s->wire_dim = s->cfg.host_dim;
	s->mapped = true;
}

/* The same bytes whatever was received and whatever Y is. */
void ppat_host_write_ack(struct ppat_session *s)
{
	struct net_writer w;
	ppat_write_begin(s, &w, PPAT_MSG_ACK);
	ppat_write_end(s, &w);
}

/* The client sends full chunks, and one last part: anything else is refused. */
void ppat_host_take_rows(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	size_t left = s->n - s->rows_at, n = ppat_chunk_rows(s);
	n = left < n ? left : n;
	net_get_uint(m, "o", s->rows_at, s->rows_at, e);
	if (s->wire == NULL)
		s->wire = mem_array(s->n * s->wire_dim, sizeof(float));
	ppat_read_matrix(m, "z", s->wire + s->rows_at * s->wire_dim, n, s->wire_dim, e);
	if (e->code != 0)
		return;
	s->rows_at += n;
	if (s->rows_at == s->n && ppat_spends(&s->cfg, PPAT_CLIENT))
		s->came++;
}

void ppat_host_take_virtual(struct ppat_session *s, const struct net_map *m, struct err *e)
{
	uint64_t agreed = ppat_virtual_size(s->cfg.max_virtual, s->wire_dim);
	uint64_t max = agreed < PPAT_PARCEL_MAX ? agreed : PPAT_PARCEL_MAX;
	uint64_t total = net_get_uint(m, "t", 1, max, e);
	net_get_uint(m, "o", s->parcel.len, s->parcel.len, e);
	struct net_bytes b = net_get_bin(m, "b", 1, PPAT_CHUNK_MAX, e);
	if (e->code == 0 && s->parcel.len + b.len > total)
		err_set(e, ERR_PROTO, "virtual neighbours overrun the size that was announced");
	if (e->code != 0)
		return;
	buf_add(&s->parcel, b.base, b.len);
	if (s->parcel.len < total)
		return;
	s->parcel_over = true;
	s->got = ppat_virtual_decode(s->parcel.base, s->parcel.len, s->cfg.slots, s->wire_dim,
				     s->cfg.max_virtual, e);
	buf_release(&s->parcel);
}

/* x = R z for rows of the wire; those of PPAT and map have been mapped by the client. */
static void map_rows(const struct ppat_session *s, float *out, const float *z, size_t n)
{
	if (s->cfg.translator == PPAT_PROCRUSTES)
		nn_apply(out, z, s->map, n, s->cfg.host_dim, s->cfg.client_dim);
	else
		memcpy(out, z, n * s->cfg.host_dim * sizeof(float));
}

static float *map_virtual(const struct ppat_session *s, float *z, size_t n)
{
	float *out = mem_array(n * s->cfg.host_dim, sizeof(float));
	map_rows(s, out, z, n);
	ppat_scaling_undo(&s->scaling, out, n);
	free(z);
	return out;
}

/* What only the host may know, and only when its owner asked (methods 3.2: CSLS
 * against Y depends on Y).  A sample of rows bounds the quadratic CSLS. */
static void measure(struct ppat_session *s)
{
	size_t sample = s->n < 2000 ? s->n : 2000;
	s->mean_cosine = nn_mean_cosine(s->xhat, s->own, s->n, s->dim);
	s->mean_csls = nn_mean_csls(s->xhat, s->own, sample, s->dim, 10);
}

/* Huge finite rows can overflow in the map: X-hat must be as finite as Y. */
static bool finite_rows(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

int ppat_host_finish(struct ppat_session *s)
{
	size_t d = s->cfg.host_dim;
	if (s->cfg.translator == PPAT_PROCRUSTES) {
		s->map_floats = d * s->cfg.client_dim;
		s->map = mem_array(s->map_floats, sizeof(float));
		int rc = nn_procrustes(s->map, s->wire, s->own, s->n, s->wire_dim, d, &s->err);
		if (rc != 0)
			return rc;
	}
	s->xhat = mem_array(s->n * d, sizeof(float));
	map_rows(s, s->xhat, s->wire, s->n);
	ppat_release_clip(s);
	s->agreement = mem_array(s->n, sizeof(float));
	nn_cosines(s->agreement, s->xhat, s->own, s->n, d);
	if (s->paper)
		measure(s);
	ppat_scaling_undo(&s->scaling, s->xhat, s->n);
	if (s->got != NULL) {
		s->got->ent = map_virtual(s, s->got->ent, s->got->n_ent);
		s->got->rel = map_virtual(s, s->got->rel, s->got->n_rel);
		s->got->dim = d;
	}
	if (!finite_rows(s->xhat, s->n * d))
		return err_set(&s->err, ERR_PROTO, "peer's rows overflow when they are translated");
	return 0;
}
