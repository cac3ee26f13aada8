#include "net/bodies.h"

#include <assert.h>
#include <string.h>

#include "base/text.h"

/* ---- one field: how each kind is written, read and moved ---- */

#define PUT_uint(key, v, n)   net_put_uint(w, key, v)
#define PUT_int(key, v, n)    net_put_int(w, key, v)
#define PUT_flag(key, v, n)   net_put_bool(w, key, v)
#define PUT_real(key, v, n)   net_put_double(w, key, v)
#define PUT_text(key, v, n)   net_put_str(w, key, v)
#define PUT_words(key, v, n)  net_put_str(w, key, v)
#define PUT_bytes(key, v, n)  net_put_bin(w, key, (v).base, (v).len)
#define PUT_fixed(key, v, n)  net_put_bin(w, key, v, sizeof(v))
#define PUT_tensor(key, v, n) put_tensor(w, key, &(v))
#define PUT_list(key, v, n)   put_list(w, key, v, n)
#define PUT_reals(key, v, n)  put_reals(w, key, v, sizeof(v) / sizeof(*(v)))

#define GET_uint(key, v, n, min, max)	(v) = net_get_uint(m, key, min, max, e)
#define GET_int(key, v, n, min, max)	(v) = net_get_int(m, key, min, max, e)
#define GET_flag(key, v, n, min, max)	(v) = net_get_bool(m, key, e)
#define GET_real(key, v, n, min, max)	(v) = net_get_double(m, key, min, max, e)
#define GET_text(key, v, n, min, max)	net_get_text(m, key, v, sizeof(v), e)
#define GET_words(key, v, n, min, max)	get_words(m, key, v, sizeof(v), e)
#define GET_bytes(key, v, n, min, max)	(v) = net_get_bin(m, key, min, max, e)
#define GET_fixed(key, v, n, min, max)	net_get_fixed(m, key, v, sizeof(v), e)
#define GET_tensor(key, v, n, min, max) (v) = net_get_tensor(m, key, min, max, e)
#define GET_list(key, v, n, min, max)	(n) = get_list(m, key, v, min, max, e)
#define GET_reals(key, v, n, min, max)	get_reals(m, key, v, min, max, e)

#define MOVE_uint(v, n)
#define MOVE_int(v, n)
#define MOVE_flag(v, n)
#define MOVE_real(v, n)
#define MOVE_text(v, n)
#define MOVE_words(v, n)
#define MOVE_bytes(v, n) move_view(&(v).base, from, to)
#define MOVE_fixed(v, n)
#define MOVE_tensor(v, n) move_view(&(v).base, from, to)
#define MOVE_list(v, n)	  move_list(v, n, from, to)
#define MOVE_reals(v, n)

static void get_words(const struct net_map *m, const char *key, char *out, size_t size,
		      struct err *e)
{
	net_get_text(m, key, out, size, e);
	text_mark_bidi(out);
}

static void put_tensor(struct net_writer *w, const char *key, const struct net_tensor *t)
{
	net_put_tensor(w, key, (const float *)(const void *)t->base, t->rows, t->cols);
}

static void put_list(struct net_writer *w, const char *key, const struct net_bytes *v, size_t n)
{
	net_put_list(w, key);
	for (size_t i = 0; i < n; i++)
		net_put_bin(w, NULL, v[i].base, v[i].len);
	net_put_end(w);
}

static void put_reals(struct net_writer *w, const char *key, const double *v, size_t n)
{
	net_put_list(w, key);
	for (size_t i = 0; i < n; i++)
		net_put_double(w, NULL, v[i]);
	net_put_end(w);
}

static size_t get_list(const struct net_map *m, const char *key, struct net_bytes *v, size_t max,
		       size_t bytes_max, struct err *e)
{
	struct net_list l = net_get_list(m, key, max, e);

	for (size_t i = 0; e->code == 0 && i < l.n; i++)
		v[i] = net_list_bin(&l, i, 1, bytes_max, e);
	return e->code == 0 ? l.n : 0;
}

static void get_reals(const struct net_map *m, const char *key, double *v, size_t n, double max,
		      struct err *e)
{
	struct net_list l = net_get_list(m, key, n, e);

	if (e->code == 0 && l.n != n)
		err_set(e, ERR_PROTO, "'%s' has %zu numbers, not %zu", key, l.n, n);
	for (size_t i = 0; e->code == 0 && i < n; i++)
		v[i] = net_list_double(&l, i, -max, max, e);
}

static void move_view(const uint8_t **base, const uint8_t *from, const uint8_t *to)
{
	if (*base != NULL)
		*base = to + (*base - from);
}

static void move_list(struct net_bytes *v, size_t n, const uint8_t *from, const uint8_t *to)
{
	for (size_t i = 0; i < n; i++)
		move_view(&v[i].base, from, to);
}

/* ---- writing ---- */

#define n_of(kind, field) N_##kind(field)
#define N_uint(field)	  0
#define N_int(field)	  0
#define N_flag(field)	  0
#define N_real(field)	  0
#define N_text(field)	  0
#define N_words(field)	  0
#define N_bytes(field)	  0
#define N_fixed(field)	  0
#define N_tensor(field)	  0
#define N_list(field)	  b->n_##field
#define N_reals(field)	  0

#define BODY(name, section)                                                                        \
	static void put_##name(struct net_writer *w, const void *body)                             \
	{                                                                                          \
		const struct net_##name *b = body;
#define INNER(name, section)		 BODY(name, section)
#define MUST(kind, field, key, min, max) PUT_##kind(key, b->field, n_of(kind, field));
#define MAY(kind, field, key, min, max)                                                            \
	if (b->has_##field)                                                                        \
		PUT_##kind(key, b->field, n_of(kind, field));
#define PART(name, field) put_##name(w, &b->field);
#define PART_IF(name, field, key)                                                                  \
	if (b->has_##field)                                                                        \
		put_##name(w, &b->field);
#define END(name) }
#include "net/bodies.def"

/* ---- reading ---- */

#define BODY(name, section)                                                                        \
	static void get_##name(const struct net_map *m, void *body, struct err *e)                 \
	{                                                                                          \
		struct net_##name *b = body;
#define INNER(name, section)		 BODY(name, section)
#define MUST(kind, field, key, min, max) GET_##kind(key, b->field, n_of(kind, field), min, max);
#define MAY(kind, field, key, min, max)                                                            \
	b->has_##field = e->code == 0 && net_has(m, key);                                          \
	if (b->has_##field)                                                                        \
		GET_##kind(key, b->field, n_of(kind, field), min, max);
#define PART(name, field) get_##name(m, &b->field, e);
#define PART_IF(name, field, key)                                                                  \
	b->has_##field = e->code == 0 && net_has(m, key);                                          \
	if (b->has_##field)                                                                        \
		get_##name(m, &b->field, e);
#define END(name) }
#include "net/bodies.def"

/* ---- views into other bytes ---- */

#define BODY(name, section)                                                                        \
	static void move_##name(void *body, const uint8_t *from, const uint8_t *to)                \
	{                                                                                          \
		struct net_##name *b = body;                                                       \
		(void)b, (void)from, (void)to;
#define INNER(name, section)		 BODY(name, section)
#define MUST(kind, field, key, min, max) MOVE_##kind(b->field, n_of(kind, field));
#define MAY(kind, field, key, min, max)	 MOVE_##kind(b->field, n_of(kind, field));
#define PART(name, field)		 move_##name(&b->field, from, to);
#define PART_IF(name, field, key)	 move_##name(&b->field, from, to);
#define END(name)			 }
#include "net/bodies.def"

/* ---- all bodies ---- */

static const struct {
	void (*put)(struct net_writer *w, const void *body);
	void (*get)(const struct net_map *m, void *body, struct err *e);
	void (*move)(void *body, const uint8_t *from, const uint8_t *to);
	size_t size;
} bodies[NET_BODIES] = {
#define BODY(name, section)                                                                        \
	[NET_BODY_##name] = { put_##name, get_##name, move_##name, sizeof(struct net_##name) },
#define INNER(name, section) BODY(name, section)
#define MUST(kind, field, key, min, max)
#define MAY(kind, field, key, min, max)
#define PART(name, field)
#define PART_IF(name, field, key)
#define END(name)
#include "net/bodies.def"
};

void net_body_put(struct net_writer *w, enum net_body_kind kind, const void *body)
{
	assert(kind != NET_BODY_none);
	bodies[kind].put(w, body);
}

void net_body_get(const struct net_map *m, enum net_body_kind kind, void *body, struct err *e)
{
	assert(kind != NET_BODY_none);
	memset(body, 0, bodies[kind].size);
	bodies[kind].get(m, body, e);
}

void net_tensor_read(const struct net_tensor *t, const char *key, float *out, size_t rows,
		     size_t cols, struct err *e)
{
	if (e->code != 0)
		return;
	if (t->rows != rows || t->cols != cols)
		err_set(e, ERR_PROTO, "'%s' has shape %zu x %zu, not %zu x %zu", key, t->rows,
			t->cols, rows, cols);
	else
		net_tensor_copy(t, out);
}

void net_body_move(enum net_body_kind kind, void *body, const uint8_t *from, const uint8_t *to)
{
	assert(kind != NET_BODY_none);
	bodies[kind].move(body, from, to);
}
