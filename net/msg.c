#include "net/msg.h"

#include <assert.h>
#include <math.h>
#include <msgpack.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "tensors are copied as they lie");
static_assert(sizeof(float) == 4, "tensors are float32");

const char *net_msg_name(unsigned type)
{
	switch (type) {
#define X(name, number, limit, values)                                                             \
	case number:                                                                               \
		return #name;
		NET_MSG_TYPES(X)
#undef X
	default:
		return "?";
	}
}

static size_t limit_of(unsigned type)
{
	switch (type) {
#define X(name, number, limit, values)                                                             \
	case number:                                                                               \
		return limit;
		NET_MSG_TYPES(X)
#undef X
	default:
		return 0;
	}
}

size_t net_msg_values(unsigned type)
{
	switch (type) {
#define X(name, number, limit, values)                                                             \
	case number:                                                                               \
		return values;
		NET_MSG_TYPES(X)
#undef X
	default:
		return 0;
	}
}

/* ---- the scan: nothing is believed, nothing is allocated ---- */

struct scan {
	const uint8_t *p;
	size_t left;
	size_t items, items_max;
	size_t depth, depth_max;
	uint64_t open[NET_DEPTH_MAX]; /* values still to come in each container */
};

/* The first byte of a value says what follows it. */
struct shape {
	uint8_t size_bytes; /* big-endian length or count */
	bool array, map;    /* else `size` bytes of content */
	bool bad;
	uint32_t size; /* when size_bytes is 0 */
};

static struct shape shape_of(uint8_t b)
{
	static const uint8_t number[10] = { 4, 8, 1, 2, 4, 8, 1, 2, 4, 8 }; /* 0xca..0xd3 */

	if (b < 0x80 || b >= 0xe0 || b == 0xc0 || b == 0xc2 || b == 0xc3)
		return (struct shape){ 0 };
	if (b < 0x90)
		return (struct shape){ .map = true, .size = b & 0x0f };
	if (b < 0xa0)
		return (struct shape){ .array = true, .size = b & 0x0f };
	if (b < 0xc0)
		return (struct shape){ .size = b & 0x1f };
	if (b >= 0xc4 && b <= 0xc6) /* bin */
		return (struct shape){ .size_bytes = (uint8_t)(1 << (b - 0xc4)) };
	if (b >= 0xca && b <= 0xd3)
		return (struct shape){ .size = number[b - 0xca] };
	if (b >= 0xd9 && b <= 0xdb) /* str */
		return (struct shape){ .size_bytes = (uint8_t)(1 << (b - 0xd9)) };
	if (b == 0xdc || b == 0xdd)
		return (struct shape){ .array = true, .size_bytes = b == 0xdc ? 2 : 4 };
	if (b == 0xde || b == 0xdf)
		return (struct shape){ .map = true, .size_bytes = b == 0xde ? 2 : 4 };
	return (struct shape){ .bad = true }; /* 0xc1 and the extension types */
}

static int scan_open(struct scan *s, const struct shape *h, uint32_t size)
{
	uint64_t values = h->map ? 2 * (uint64_t)size : size;

	if (values > s->left || values > s->items_max || (h->map && size > NET_PAIRS_MAX) ||
	    s->depth == s->depth_max)
		return ERR_PROTO;
	s->open[s->depth++] = values;
	return 0;
}

/* Takes one value, or the head of one container. */
static int scan_value(struct scan *s)
{
	struct shape h;
	uint32_t size;

	if (s->left == 0 || ++s->items > s->items_max)
		return ERR_PROTO;
	h = shape_of(*s->p++);
	s->left--;
	if (h.bad || s->left < h.size_bytes)
		return ERR_PROTO;
	size = h.size;
	for (size_t i = 0; i < h.size_bytes; i++)
		size = size << 8 | s->p[i];
	s->p += h.size_bytes;
	s->left -= h.size_bytes;
	if (h.array || h.map)
		return scan_open(s, &h, size);
	if (size > s->left)
		return ERR_PROTO;
	s->p += size;
	s->left -= size;
	return 0;
}

/* Exactly one well-formed value within the limits, and nothing after it. */
static int scan(const uint8_t *base, size_t len, size_t items_max, size_t depth_max)
{
	struct scan s = { .p = base, .left = len, .items_max = items_max, .depth_max = depth_max };

	assert(depth_max <= NET_DEPTH_MAX);

	do {
		if (s.depth > 0)
			s.open[s.depth - 1]--;
		if (scan_value(&s) != 0)
			return ERR_PROTO;
		while (s.depth > 0 && s.open[s.depth - 1] == 0)
			s.depth--;
	} while (s.depth > 0);
	return s.left == 0 ? 0 : ERR_PROTO;
}

/* ---- decoding ---- */

static int key_order(const void *a, const void *b)
{
	const msgpack_object_str *x = *(const msgpack_object_str *const *)a;
	const msgpack_object_str *y = *(const msgpack_object_str *const *)b;

	if (x->size != y->size)
		return x->size < y->size ? -1 : 1;
	return x->size > 0 ? memcmp(x->ptr, y->ptr, x->size) : 0;
}

/* Sorted, two that are equal are neighbours: n log n, n at most NET_PAIRS_MAX. */
static int keys_check(const msgpack_object_map *m)
{
	const msgpack_object_str *key[NET_PAIRS_MAX];

	assert(m->size <= NET_PAIRS_MAX); /* the scan has seen to that */
	for (size_t i = 0; i < m->size; i++) {
		if (m->ptr[i].key.type != MSGPACK_OBJECT_STR)
			return ERR_PROTO;
		key[i] = &m->ptr[i].key.via.str;
	}
	qsort(key, m->size, sizeof(key[0]), key_order);
	for (size_t i = 1; i < m->size; i++)
		if (key_order(&key[i - 1], &key[i]) == 0)
			return ERR_PROTO;
	return 0;
}

/* Text keys, none twice, in every map.  The depth was checked by the scan. */
static int maps_check(const msgpack_object *o)
{
	int rc = 0;

	if (o->type == MSGPACK_OBJECT_ARRAY)
		for (size_t i = 0; rc == 0 && i < o->via.array.size; i++)
			rc = maps_check(&o->via.array.ptr[i]);
	if (o->type == MSGPACK_OBJECT_MAP) {
		rc = keys_check(&o->via.map);
		for (size_t i = 0; rc == 0 && i < o->via.map.size; i++)
			rc = maps_check(&o->via.map.ptr[i].val);
	}
	return rc;
}

static int unpack(const uint8_t *base, size_t len, size_t items_max, size_t depth_max,
		  msgpack_unpacked *u, struct err *e)
{
	size_t off = 0;

	msgpack_unpacked_init(u);
	if (scan(base, len, items_max, depth_max) != 0)
		return err_set(e, ERR_PROTO,
			       "message of %zu bytes is not well-formed msgpack, or has too many "
			       "values or keys",
			       len);
	if (msgpack_unpack_next(u, (const char *)base, len, &off) != MSGPACK_UNPACK_SUCCESS ||
	    off != len) {
		msgpack_unpacked_destroy(u);
		return err_set(e, ERR_PROTO, "message of %zu bytes cannot be read", len);
	}
	if (maps_check(&u->data) != 0) {
		msgpack_unpacked_destroy(u);
		return err_set(e, ERR_PROTO, "message has a key that is no text, or twice");
	}
	return 0;
}

static struct net_map map_view(const msgpack_object *o)
{
	return (struct net_map){ o->via.map.ptr, o->via.map.size };
}

int net_msg_head(struct net_msg_head *h, const uint8_t *base, size_t len, struct err *e)
{
	size_t n;

	memset(h, 0, sizeof(*h));
	if (len < 2 || base[0] != 0x93) /* array of three */
		return err_set(e, ERR_PROTO, "not a message: no [type, session, body]");
	if (limit_of(base[1]) == 0)
		return err_set(e, ERR_PROTO, "message of unknown type %u", base[1]);
	if (len > limit_of(base[1]))
		return err_set(e, ERR_TOOBIG, "%s of %zu bytes: at most %zu are allowed",
			       net_msg_name(base[1]), len, limit_of(base[1]));
	n = len >= 4 && base[2] == 0xc4 ? base[3] : 1; /* bin, its length in one byte */
	if ((n != 0 && n != NET_SESSION_BYTES) || len < 4 + n)
		return err_set(e, ERR_PROTO, "%s: session is not what it must be",
			       net_msg_name(base[1]));
	h->type = (enum net_msg_type)base[1];
	h->has_session = n != 0;
	memcpy(h->session, base + 4, n);
	return 0;
}

int net_msg_decode(struct net_msg *m, const uint8_t *base, size_t len, struct err *e)
{
	struct net_msg_head h;
	const msgpack_object *part;
	msgpack_unpacked u;
	int rc = net_msg_head(&h, base, len, e);

	memset(m, 0, sizeof(*m));
	if (rc == 0)
		rc = unpack(base, len, net_msg_values(h.type), NET_MSG_DEPTH_MAX, &u, e);
	if (rc != 0)
		return rc;
	part = u.data.via.array.ptr;
	assert(part != NULL); /* the head says that it is an array of three */
	if (part[2].type != MSGPACK_OBJECT_MAP) {
		msgpack_unpacked_destroy(&u);
		return err_set(e, ERR_PROTO, "%s: body is not what it must be",
			       net_msg_name(h.type));
	}
	m->type = h.type;
	m->has_session = h.has_session;
	memcpy(m->session, h.session, NET_SESSION_BYTES);
	m->body = map_view(&part[2]);
	m->zone = msgpack_unpacked_release_zone(&u);
	return 0;
}

void net_msg_release(struct net_msg *m)
{
	if (m->zone != NULL)
		msgpack_zone_free(m->zone);
	memset(m, 0, sizeof(*m));
}

int net_body_decode(struct net_body *b, const uint8_t *base, size_t len, struct err *e)
{
	msgpack_unpacked u;
	int rc;

	memset(b, 0, sizeof(*b));
	if (len > NET_MESSAGE_MAX)
		return err_set(e, ERR_TOOBIG, "body of %zu bytes: at most %d are allowed", len,
			       NET_MESSAGE_MAX);
	rc = unpack(base, len, NET_ITEMS_MAX, NET_DEPTH_MAX, &u, e);
	if (rc != 0)
		return rc;
	if (u.data.type != MSGPACK_OBJECT_MAP) {
		msgpack_unpacked_destroy(&u);
		return err_set(e, ERR_PROTO, "body is not a map");
	}
	b->map = map_view(&u.data);
	b->zone = msgpack_unpacked_release_zone(&u);
	return 0;
}

void net_body_release(struct net_body *b)
{
	if (b->zone != NULL)
		msgpack_zone_free(b->zone);
	memset(b, 0, sizeof(*b));
}

/* ---- getters ---- */

static const msgpack_object *find_key(const struct net_map *m, const char *key)
{
	const msgpack_object_kv *kv = m->items;
	size_t len = strlen(key);

	for (size_t i = 0; i < m->n; i++)
		if (kv[i].key.via.str.size == len && memcmp(kv[i].key.via.str.ptr, key, len) == 0)
			return &kv[i].val;
	return NULL;
}

bool net_has(const struct net_map *m, const char *key)
{
	return find_key(m, key) != NULL;
}

/* The value, or NULL when an error stands already or is set now. */
static const msgpack_object *need(const struct net_map *m, const char *key, struct err *e)
{
	const msgpack_object *o;

	if (e->code != 0)
		return NULL;
	o = find_key(m, key);
	if (o == NULL)
		err_set(e, ERR_PROTO, "key '%s' is missing", key);
	return o;
}

static void wrong(const char *key, struct err *e)
{
	err_set(e, ERR_PROTO, "value of '%s' is of another type or outside its limits", key);
}

static uint64_t as_uint(const msgpack_object *o, const char *key, uint64_t min, uint64_t max,
			struct err *e)
{
	if (o == NULL)
		return 0;
	if (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 >= min && o->via.u64 <= max)
		return o->via.u64;
	wrong(key, e);
	return 0;
}

uint64_t net_get_uint(const struct net_map *m, const char *key, uint64_t min, uint64_t max,
		      struct err *e)
{
	return as_uint(need(m, key, e), key, min, max, e);
}

int64_t net_get_int(const struct net_map *m, const char *key, int64_t min, int64_t max,
		    struct err *e)
{
	const msgpack_object *o = need(m, key, e);
	bool fits;

	if (o == NULL)
		return 0;
	fits = o->type == MSGPACK_OBJECT_NEGATIVE_INTEGER ||
	       (o->type == MSGPACK_OBJECT_POSITIVE_INTEGER && o->via.u64 <= INT64_MAX);
	if (fits && o->via.i64 >= min && o->via.i64 <= max)
		return o->via.i64;
	wrong(key, e);
	return 0;
}

bool net_get_bool(const struct net_map *m, const char *key, struct err *e)
{
	const msgpack_object *o = need(m, key, e);

	if (o == NULL)
		return false;
	if (o->type != MSGPACK_OBJECT_BOOLEAN)
		wrong(key, e);
	return o->type == MSGPACK_OBJECT_BOOLEAN && o->via.boolean;
}

static double as_double(const msgpack_object *o)
{
	switch (o->type) {
	case MSGPACK_OBJECT_FLOAT32:
	case MSGPACK_OBJECT_FLOAT64:
		return o->via.f64;
	case MSGPACK_OBJECT_POSITIVE_INTEGER:
		return (double)o->via.u64;
	case MSGPACK_OBJECT_NEGATIVE_INTEGER:
		return (double)o->via.i64;
	default:
		return NAN;
	}
}

static double bounded(const msgpack_object *o, const char *key, double min, double max,
		      struct err *e)
{
	double v = o == NULL ? 0.0 : as_double(o);

	if (o == NULL || (isfinite(v) && v >= min && v <= max))
		return v;
	wrong(key, e);
	return 0.0;
}

double net_get_double(const struct net_map *m, const char *key, double min, double max,
		      struct err *e)
{
	return bounded(need(m, key, e), key, min, max, e);
}

static struct net_bytes as_str(const msgpack_object *o, const char *key, size_t max, struct err *e)
{
	if (o == NULL)
		return (struct net_bytes){ 0 };
	if (o->type != MSGPACK_OBJECT_STR || o->via.str.size > max ||
	    !text_printable(o->via.str.ptr, o->via.str.size)) {
		wrong(key, e);
		return (struct net_bytes){ 0 };
	}
	return (struct net_bytes){ (const uint8_t *)o->via.str.ptr, o->via.str.size };
}

static struct net_bytes as_bin(const msgpack_object *o, const char *key, size_t min, size_t max,
			       struct err *e)
{
	if (o == NULL)
		return (struct net_bytes){ 0 };
	if (o->type != MSGPACK_OBJECT_BIN || o->via.bin.size < min || o->via.bin.size > max) {
		wrong(key, e);
		return (struct net_bytes){ 0 };
	}
	return (struct net_bytes){ (const uint8_t *)o->via.bin.ptr, o->via.bin.size };
}

struct net_bytes net_get_str(const struct net_map *m, const char *key, size_t max, struct err *e)
{
	return as_str(need(m, key, e), key, max, e);
}

void net_get_text(const struct net_map *m, const char *key, char *out, size_t size, struct err *e)
{
	struct net_bytes b;

	assert(size > 0);
	b = net_get_str(m, key, size - 1, e);
	if (b.len > 0)
		memcpy(out, b.base, b.len);
	out[b.len] = '\0';
}

struct net_bytes net_get_bin(const struct net_map *m, const char *key, size_t min, size_t max,
			     struct err *e)
{
	return as_bin(need(m, key, e), key, min, max, e);
}

void net_get_fixed(const struct net_map *m, const char *key, void *out, size_t n, struct err *e)
{
	struct net_bytes b = net_get_bin(m, key, n, n, e);

	memset(out, 0, n);
	if (b.len > 0)
		memcpy(out, b.base, n);
}

static bool all_finite(const uint8_t *base, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		float v;

		memcpy(&v, base + 4 * i, 4);
		if (!isfinite(v))
			return false;
	}
	return true;
}

/* [[rows, cols], bin] within the limits; sizes cannot overflow: both are 32 bits. */
static bool tensor_take(const msgpack_object *o, size_t rows_max, size_t cols_max,
			struct net_tensor *t)
{
	const msgpack_object *part, *shape;
	uint64_t rows, cols;

	if (o->type != MSGPACK_OBJECT_ARRAY || o->via.array.size != 2)
		return false;
	part = o->via.array.ptr;
	if (part[0].type != MSGPACK_OBJECT_ARRAY || part[0].via.array.size != 2 ||
	    part[1].type != MSGPACK_OBJECT_BIN)
		return false;
	shape = part[0].via.array.ptr;
	if (shape[0].type != MSGPACK_OBJECT_POSITIVE_INTEGER ||
	    shape[1].type != MSGPACK_OBJECT_POSITIVE_INTEGER)
		return false;
	rows = shape[0].via.u64;
	cols = shape[1].via.u64;
	if (rows > rows_max || cols > cols_max || rows > NET_MESSAGE_MAX ||
	    cols > NET_MESSAGE_MAX || rows * cols * 4 != part[1].via.bin.size)
		return false;
	*t = (struct net_tensor){ (const uint8_t *)part[1].via.bin.ptr, rows, cols };
	return all_finite(t->base, rows * cols);
}

struct net_tensor net_get_tensor(const struct net_map *m, const char *key, size_t rows_max,
				 size_t cols_max, struct err *e)
{
	const msgpack_object *o = need(m, key, e);
	struct net_tensor t = { 0 };

	if (o != NULL && !tensor_take(o, rows_max, cols_max, &t)) {
		wrong(key, e);
		return (struct net_tensor){ 0 };
	}
	return t;
}

void net_get_matrix(const struct net_map *m, const char *key, float *out, size_t rows, size_t cols,
		    struct err *e)
{
	struct net_tensor t = net_get_tensor(m, key, rows, cols, e);

	if (e->code == 0 && (t.rows != rows || t.cols != cols))
		err_set(e, ERR_PROTO, "'%s' has shape %zu x %zu, not %zu x %zu", key, t.rows,
			t.cols, rows, cols);
	if (e->code == 0)
		net_tensor_copy(&t, out);
}

void net_tensor_copy(const struct net_tensor *t, float *out)
{
	if (t->rows > 0 && t->cols > 0)
		memcpy(out, t->base, t->rows * t->cols * sizeof(float));
}

static struct net_map as_map(const msgpack_object *o, const char *key, struct err *e)
{
	if (o == NULL)
		return (struct net_map){ 0 };
	if (o->type == MSGPACK_OBJECT_MAP)
		return map_view(o);
	wrong(key, e);
	return (struct net_map){ 0 };
}

struct net_list net_get_list(const struct net_map *m, const char *key, size_t max, struct err *e)
{
	const msgpack_object *o = need(m, key, e);

	if (o == NULL)
		return (struct net_list){ 0 };
	if (o->type == MSGPACK_OBJECT_ARRAY && o->via.array.size <= max)
		return (struct net_list){ o->via.array.ptr, o->via.array.size };
	wrong(key, e);
	return (struct net_list){ 0 };
}

static const msgpack_object *element(const struct net_list *l, size_t i, struct err *e)
{
	if (e->code != 0)
		return NULL;
	assert(i < l->n);
	return (const msgpack_object *)l->items + i;
}

double net_list_double(const struct net_list *l, size_t i, double min, double max, struct err *e)
{
	return bounded(element(l, i, e), "list", min, max, e);
}

struct net_bytes net_list_bin(const struct net_list *l, size_t i, size_t min, size_t max,
			      struct err *e)
{
	return as_bin(element(l, i, e), "list", min, max, e);
}

struct net_map net_list_map(const struct net_list *l, size_t i, struct err *e)
{
	return as_map(element(l, i, e), "list", e);
}

/* ---- writing ---- */

static int buf_write(void *out, const char *bytes, size_t n)
{
	buf_add(out, bytes, n);
	return 0;
}

static msgpack_packer packer(struct net_writer *w)
{
	msgpack_packer pk;

	msgpack_packer_init(&pk, w->out, buf_write);
	return pk;
}

/* Containers are begun with a two-byte count, which their end puts right. */
static void container_open(struct net_writer *w, bool list)
{
	msgpack_packer pk = packer(w);

	assert(w->depth < NET_DEPTH_MAX);
	if (list)
		msgpack_pack_array(&pk, UINT16_MAX);
	else
		msgpack_pack_map(&pk, UINT16_MAX);
	w->open[w->depth].head = w->out->len - 2;
	w->open[w->depth].count = 0;
	w->open[w->depth].list = list;
	w->depth++;
}

static void container_close(struct net_writer *w)
{
	size_t count;

	assert(w->depth > 0);
	w->depth--;
	count = w->open[w->depth].count;
	assert(count <= UINT16_MAX);
	w->out->base[w->open[w->depth].head] = (uint8_t)(count >> 8);
	w->out->base[w->open[w->depth].head + 1] = (uint8_t)count;
}

/* Every value passes here: its key, or its place in the list that is open. */
static msgpack_packer begin(struct net_writer *w, const char *key)
{
	msgpack_packer pk = packer(w);

	assert(w->depth > 0);
	assert(w->open[w->depth - 1].list == (key == NULL));
	w->open[w->depth - 1].count++;
	if (key != NULL)
		msgpack_pack_str_with_body(&pk, key, strlen(key));
	return pk;
}

void net_write_begin(struct net_writer *w, struct buf *out, enum net_msg_type type,
		     const uint8_t *session)
{
	size_t start = out->len, n = session == NULL ? 0 : NET_SESSION_BYTES;
	msgpack_packer pk;

	*w = (struct net_writer){ .out = out, .start = start, .limit = limit_of(type) };
	pk = packer(w);
	msgpack_pack_array(&pk, 3);
	msgpack_pack_uint8(&pk, (uint8_t)type);
	msgpack_pack_bin_with_body(&pk, n > 0 ? (const void *)session : "", n);
	container_open(w, false);
}

void net_write_body(struct net_writer *w, struct buf *out)
{
	*w = (struct net_writer){ .out = out, .start = out->len, .limit = NET_MESSAGE_MAX };
	container_open(w, false);
}

int net_write_end(struct net_writer *w, struct err *e)
{
	size_t len;

	assert(w->depth == 1);
	container_close(w);
	len = w->out->len - w->start;
	if (len <= w->limit)
		return 0;
	w->out->len = w->start;
	return err_set(e, ERR_TOOBIG, "message of %zu bytes: at most %zu are allowed", len,
		       w->limit);
}

void net_write_close(struct net_writer *w)
{
	int rc = net_write_end(w, NULL);

	assert(rc == 0);
	err_ignore(rc);
}

void net_put_uint(struct net_writer *w, const char *key, uint64_t v)
{
	msgpack_packer pk = begin(w, key);

	msgpack_pack_uint64(&pk, v);
}

void net_put_int(struct net_writer *w, const char *key, int64_t v)
{
	msgpack_packer pk = begin(w, key);

	msgpack_pack_int64(&pk, v);
}

void net_put_bool(struct net_writer *w, const char *key, bool v)
{
	msgpack_packer pk = begin(w, key);

	if (v)
		msgpack_pack_true(&pk);
	else
		msgpack_pack_false(&pk);
}

void net_put_double(struct net_writer *w, const char *key, double v)
{
	msgpack_packer pk = begin(w, key);

	msgpack_pack_double(&pk, v);
}

void net_put_str(struct net_writer *w, const char *key, const char *s)
{
	msgpack_packer pk = begin(w, key);
	char *marked = mem_strdup(s);

	text_mark(marked);
	msgpack_pack_str_with_body(&pk, marked, strlen(marked));
	free(marked);
}

void net_put_bin(struct net_writer *w, const char *key, const void *bytes, size_t n)
{
	msgpack_packer pk = begin(w, key);

	msgpack_pack_bin_with_body(&pk, n > 0 ? bytes : "", n);
}

void net_put_tensor(struct net_writer *w, const char *key, const float *v, size_t rows, size_t cols)
{
	msgpack_packer pk = begin(w, key);
	size_t n = rows * cols * sizeof(float);

	msgpack_pack_array(&pk, 2);
	msgpack_pack_array(&pk, 2);
	msgpack_pack_uint64(&pk, rows);
	msgpack_pack_uint64(&pk, cols);
	msgpack_pack_bin_with_body(&pk, n > 0 ? (const void *)v : "", n);
}

void net_put_map(struct net_writer *w, const char *key)
{
	begin(w, key);
	container_open(w, false);
}

void net_put_list(struct net_writer *w, const char *key)
{
	begin(w, key);
	container_open(w, true);
}

void net_put_end(struct net_writer *w)
{
	assert(w->depth > 1);
	container_close(w);
}
