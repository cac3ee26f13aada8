/* ppat/rows.c - rows gathered, sent in chunks, received, and brought to the host's size. */
#include "ppat/rows_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "ppat/short_row.h"

enum { VIRTUAL_BYTES_MAX = 256 << 20, CSLS_NEAREST = 10 };

/* ---- own rows ---- */

static bool value_travels(float x)
{
	return fabsf(x) <= (float)PPAT_VALUE_MAX; /* false of a NaN */
}

bool ppat_rows_may_travel(const float *rows, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!value_travels(rows[i]))
			return false;
	return true;
}

static int check_finite(const struct ppat_own *own, struct err *e)
{
	for (size_t i = 0; i < own->n * own->dim; i++)
		if (!value_travels(own->rows[i]))
			return err_set(e, ERR_USAGE,
				       "our row of slot %u holds a NaN or a value "
				       "beyond %d: restore a checkpoint or train anew",
				       own->slots[i / own->dim], (int)PPAT_VALUE_MAX);
	return 0;
}

int ppat_rows_gather(struct ppat_side *s, const struct ppat_rows *in, struct err *e)
{
	struct ppat_own *own = &s->own;
	own->slots = mem_array(in->n, sizeof(*own->slots));
	own->ids = mem_array(in->n, sizeof(*own->ids));
	own->dim = in->dim;
	own->n = ppat_select(&s->cfg, in->tags, in->places, own->slots);
	if (own->n == 0)
		return err_set(e, ERR_USAGE,
			       "none of the %zu aligned rows is of the kind to be "
			       "translated (entities, relations)",
			       in->n);
	own->rows = mem_array(own->n * own->dim, sizeof(float));
	for (size_t i = 0; i < own->n; i++) {
		uint32_t slot = own->slots[i];
		assert(slot < in->n);
		memcpy(own->rows + i * own->dim, in->rows + slot * own->dim,
		       own->dim * sizeof(float));
		own->ids[i] = in->ids != NULL ? in->ids[slot] : slot;
	}
	int rc = check_finite(own, e);
	if (rc != 0)
		return rc;
	ppat_scaling_fit(&own->scaling, &s->cfg, own->rows, own->n, own->dim);
	ppat_scaling_apply(&own->scaling, own->rows, own->n);
	return 0;
}

static void wipe_free(float *x, size_t n)
{
	if (x != NULL)
		sodium_memzero(x, n * sizeof(*x));
	free(x);
}

void ppat_rows_set_map(struct ppat_side *s, float *map, size_t rows, size_t cols)
{
	wipe_free(s->map.at, s->map.rows * s->map.cols);
	s->map = (struct ppat_matrix){ map, rows, cols };
}

float *ppat_rows_identity(size_t rows, size_t cols)
{
	float *map = mem_array(rows * cols, sizeof(float));
	for (size_t i = 0; i < rows && i < cols; i++)
		map[i * cols + i] = 1.0f;
	return map;
}

void ppat_rows_release(struct ppat_side *s)
{
	ppat_rows_set_map(s, NULL, 0, 0);
	wipe_free(s->own.rows, s->own.n * s->own.dim);
	free(s->own.slots);
	free(s->own.ids);
	ppat_scaling_release(&s->own.scaling);
	free(s->wire.rows);
	ppat_virtual_free(s->neighbours.received);
	buf_release(&s->neighbours.message);
	free(s->translated.rows);
	free(s->translated.agreement);
}

/* ---- on the wire ---- */

static size_t bytes_a_row(size_t dim, bool in_short)
{
	return in_short ? ppat_short_bytes(dim) : dim * sizeof(float);
}

/* Rows of the message that begins with row `at` of n. */
static size_t rows_in_message(size_t at, size_t n, size_t bytes)
{
	size_t full = PPAT_CHUNK_MAX / bytes;
	assert(at <= n && full > 0);
	return n - at < full ? n - at : full;
}

static void put_short_run(struct net_writer *w, const float *rows, size_t at, size_t some,
			  size_t dim)
{
	size_t bytes = ppat_short_bytes(dim);
	uint8_t *out = mem_array(some, bytes);
	const struct net_short_run b = { at, { out, some * bytes } };
	for (size_t i = 0; i < some; i++)
		ppat_short_put(rows + (at + i) * dim, dim, out + i * bytes);
	net_short_run_put(w, &b);
	free(out);
}

size_t ppat_rows_write(struct ppat_side *s, enum ppat_kind kind, const float *rows, size_t at,
		       size_t n, size_t dim)
{
	size_t some = rows_in_message(at, n, bytes_a_row(dim, s->cfg.short_rows));
	const struct net_row_run b = { at, net_tensor_of(rows + at * dim, some, dim) };
	struct net_writer w;
	ppat_write_begin(s, &w, kind);
	if (s->cfg.short_rows)
		put_short_run(&w, rows, at, some, dim);
	else
		net_row_run_put(&w, &b);
	ppat_write_end(s, &w);
	return some;
}

/* The next rows begin where the last message ended. */
static void check_offset(uint64_t first, size_t at, struct err *e)
{
	if (e->code == 0 && first != at)
		err_set(e, ERR_PROTO, "value of 'o' is %llu, not %zu", (unsigned long long)first,
			at);
}

static void get_short_run(const struct net_map *m, float *rows, size_t at, size_t some, size_t dim,
			  struct err *e)
{
	size_t bytes = ppat_short_bytes(dim);
	struct net_short_run b;
	net_short_run_get(m, &b, e);
	check_offset(b.first, at, e);
	if (e->code == 0 && b.rows.len != some * bytes)
		err_set(e, ERR_PROTO, "'h' has %zu bytes, not the %zu of %zu rows", b.rows.len,
			some * bytes, some);
	for (size_t i = 0; i < some && e->code == 0; i++)
		(void)ppat_short_get(b.rows.base + i * bytes, dim, rows + (at + i) * dim, e);
}

static void get_row_run(const struct net_map *m, float *rows, size_t at, size_t some, size_t dim,
			struct err *e)
{
	struct net_row_run b;
	net_row_run_get(m, &b, e);
	check_offset(b.first, at, e);
	ppat_read_rows(&b.rows, rows + at * dim, some, dim, e);
}

size_t ppat_rows_read(const struct ppat_side *s, const struct net_map *m, float *rows, size_t at,
		      size_t n, size_t dim, struct err *e)
{
	size_t some = rows_in_message(at, n, bytes_a_row(dim, s->cfg.short_rows));
	if (s->cfg.short_rows)
		get_short_run(m, rows, at, some, dim, e);
	else
		get_row_run(m, rows, at, some, dim, e);
	return e->code == 0 ? some : 0;
}

void ppat_rows_apply_map(struct ppat_side *s)
{
	const struct ppat_own *own = &s->own;
	assert(s->role == PPAT_CLIENT && s->map.cols == own->dim && s->map.rows == s->wire.dim);
	s->wire.rows = mem_array(own->n * s->wire.dim, sizeof(float));
	nn_apply(s->wire.rows, own->rows, s->map.at, own->n, s->wire.dim, own->dim);
}

void ppat_rows_send(struct ppat_side *s)
{
	struct ppat_wire *w = &s->wire;
	w->at += ppat_rows_write(s, PPAT_MSG_ROWS, w->rows, w->at, s->own.n, w->dim);
}

void ppat_rows_take(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e)
{
	struct ppat_wire *w = &s->wire;
	(void)kind;
	if (w->rows == NULL)
		w->rows = mem_array(s->own.n * w->dim, sizeof(float));
	w->at += ppat_rows_read(s, m, w->rows, w->at, s->own.n, w->dim, e);
}

bool ppat_rows_left(const struct ppat_side *s)
{
	return s->wire.at < s->own.n;
}

/* ---- virtual neighbours (methods 3.4) ---- */

void ppat_rows_pack_virtual(struct ppat_side *s)
{
	size_t dx = s->own.dim, dim = s->wire.dim;
	const struct ppat_virtual none = { .slots = s->cfg.slots, .dim = dx };
	const struct ppat_virtual *v = s->neighbours.own != NULL ? s->neighbours.own : &none;
	struct ppat_virtual sent = *v;
	size_t n = (size_t)v->n_ent + v->n_rel;
	if (s->cfg.max_virtual == 0)
		return;
	float *rows = mem_array(n * dx, sizeof(float));
	float *out = mem_array(n * dim, sizeof(float));
	if (v->n_ent > 0)
		memcpy(rows, v->ent, v->n_ent * dx * sizeof(float));
	if (v->n_rel > 0)
		memcpy(rows + v->n_ent * dx, v->rel, v->n_rel * dx * sizeof(float));
	ppat_scaling_apply(&s->own.scaling, rows, n);
	nn_apply(out, rows, s->map.at, n, dim, dx);
	sent.dim = dim;
	sent.ent = out;
	sent.rel = out + v->n_ent * dim;
	ppat_virtual_encode(&sent, &s->neighbours.message);
	free(rows);
	free(out);
}

void ppat_rows_send_virtual(struct ppat_side *s)
{
	struct ppat_neighbours *v = &s->neighbours;
	size_t left = v->message.len - v->at;
	size_t n = left < PPAT_CHUNK_MAX ? left : PPAT_CHUNK_MAX;
	const struct net_virtual_part b = { v->message.len, v->at, { v->message.base + v->at, n } };
	struct net_writer w;
	ppat_write_begin(s, &w, PPAT_MSG_VIRTUAL);
	net_virtual_part_put(&w, &b);
	ppat_write_end(s, &w);
	v->at += n;
	v->complete = v->at == v->message.len;
}

void ppat_rows_take_virtual(struct ppat_side *s, uint8_t kind, const struct net_map *m,
			    struct err *e)
{
	struct ppat_neighbours *v = &s->neighbours;
	uint64_t agreed = ppat_virtual_size(s->cfg.max_virtual, s->wire.dim);
	uint64_t max = agreed < VIRTUAL_BYTES_MAX ? agreed : VIRTUAL_BYTES_MAX;
	struct net_virtual_part b;
	(void)kind;
	net_virtual_part_get(m, &b, e);
	if (e->code == 0 && b.total > max)
		err_set(e, ERR_PROTO, "value of 't' is %llu: at most %llu are agreed on",
			(unsigned long long)b.total, (unsigned long long)max);
	check_offset(b.first, v->message.len, e);
	if (e->code == 0 && v->message.len + b.bytes.len > b.total)
		err_set(e, ERR_PROTO, "virtual neighbours overrun the size that was announced");
	if (e->code != 0)
		return;
	buf_add(&v->message, b.bytes.base, b.bytes.len);
	if (v->message.len < b.total)
		return;
	v->complete = true;
	v->received = ppat_virtual_decode(v->message.base, v->message.len, s->cfg.slots,
					  s->wire.dim, s->cfg.max_virtual, e);
	buf_release(&v->message);
}

bool ppat_rows_virtual_left(const struct ppat_side *s)
{
	return s->cfg.max_virtual > 0 && !s->neighbours.complete;
}

/* ---- the host's last step ---- */

/* z [n x wire.dim] is freed; returned are n rows of the host's dimension. */
static float *translate_rows(const struct ppat_side *s, const float *map, float *z, size_t n)
{
	float *out = mem_array(n * s->cfg.host_dim, sizeof(float));
	nn_apply(out, z, map, n, s->cfg.host_dim, s->wire.dim);
	free(z);
	return out;
}

void ppat_rows_translate(struct ppat_side *s, const float *map)
{
	struct ppat_virtual *v = s->neighbours.received;
	assert(s->role == PPAT_HOST && s->wire.rows != NULL && !ppat_rows_left(s));
	s->translated.rows = translate_rows(s, map, s->wire.rows, s->own.n);
	s->wire.rows = NULL;
	if (v == NULL)
		return;
	v->ent = translate_rows(s, map, v->ent, v->n_ent);
	v->rel = translate_rows(s, map, v->rel, v->n_rel);
	v->dim = s->cfg.host_dim;
}

void ppat_rows_as_received(struct ppat_side *s)
{
	assert(s->role == PPAT_HOST && s->wire.rows != NULL && !ppat_rows_left(s));
	assert(s->wire.dim == s->cfg.host_dim);
	s->translated.rows = s->wire.rows;
	s->wire.rows = NULL;
}

/* Figures that only the host may know, and only when its owner asked (methods 3.2: CSLS against Y
 * depends on Y).  A sample of rows bounds the quadratic CSLS. */
static void measure_translated(struct ppat_side *s)
{
	struct ppat_translated *t = &s->translated;
	const struct ppat_own *own = &s->own;
	size_t sample = own->n < s->measure ? own->n : s->measure;
	struct nn_csls csls = nn_csls(t->rows, own->rows, sample, own->dim, CSLS_NEAREST);
	t->mean_cosine = nn_mean_cosine(t->rows, own->rows, own->n, own->dim);
	t->mean_csls = csls.mean;
	t->csls_nearest = csls.nearest;
}

/* Huge finite rows can overflow in the map: X-hat must be as finite as Y. */
static bool all_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

int ppat_rows_finish(struct ppat_side *s)
{
	struct ppat_translated *t = &s->translated;
	struct ppat_virtual *v = s->neighbours.received;
	size_t n = s->own.n, d = s->cfg.host_dim;
	assert(s->own.dim == d);
	t->agreement = mem_array(n, sizeof(float));
	nn_cosines(t->agreement, t->rows, s->own.rows, n, d);
	if (s->measure > 0)
		measure_translated(s);
	ppat_scaling_undo(&s->own.scaling, t->rows, n);
	if (v != NULL) {
		ppat_scaling_undo(&s->own.scaling, v->ent, v->n_ent);
		ppat_scaling_undo(&s->own.scaling, v->rel, v->n_rel);
	}
	if (!all_finite(t->rows, n * d))
		return err_set(&s->err, ERR_PROTO, "peer's rows overflow when they are translated");
	return 0;
}
