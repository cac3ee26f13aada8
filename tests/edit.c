#include "tests/edit.h"

#include "tests/test.h"

#include <msgpack.h>

static void pack_value(msgpack_packer *pk, const struct edit *e, const msgpack_object *old)
{
	uint8_t bytes[20992];

	switch (e->how) {
	case EDIT_UINT:
		msgpack_pack_uint64(pk, e->number);
		break;
	case EDIT_TEXT:
		msgpack_pack_str_with_body(pk, "x", 1);
		break;
	case EDIT_REAL:
		msgpack_pack_double(pk, e->real);
		break;
	case EDIT_BYTES:
		assert_true(e->number <= sizeof(bytes));
		memset(bytes, 7, sizeof(bytes));
		msgpack_pack_bin_with_body(pk, bytes, e->number);
		break;
	case EDIT_FLIP:
		assert_true(old != NULL && old->type == MSGPACK_OBJECT_BIN &&
			    old->via.bin.size > 0 && old->via.bin.size <= sizeof(bytes));
		memcpy(bytes, old->via.bin.ptr, old->via.bin.size);
		bytes[0] ^= 1;
		msgpack_pack_bin_with_body(pk, bytes, old->via.bin.size);
		break;
	default:
		msgpack_pack_bin_with_body(pk, e->bytes, e->number);
		break;
	}
}

static bool has_key(const msgpack_object_kv *kv, const char *key)
{
	return kv->key.type == MSGPACK_OBJECT_STR && kv->key.via.str.size == strlen(key) &&
	       memcmp(kv->key.via.str.ptr, key, strlen(key)) == 0;
}

static void pack_map(msgpack_packer *pk, const msgpack_object *o, const struct edit *e)
{
	const msgpack_object *old = NULL;
	size_t n = o->via.map.size;

	assert_int_equal(o->type, MSGPACK_OBJECT_MAP);
	for (size_t i = 0; i < n; i++)
		if (has_key(&o->via.map.ptr[i], e->key))
			old = &o->via.map.ptr[i].val;
	assert_true(old != NULL || (e->how != EDIT_REMOVE && e->how != EDIT_FLIP));
	msgpack_pack_map(pk, n - (old != NULL) + (e->how != EDIT_REMOVE));
	for (size_t i = 0; i < n; i++) {
		const msgpack_object_kv *kv = &o->via.map.ptr[i];

		if (has_key(kv, e->key))
			continue;
		msgpack_pack_object(pk, kv->key);
		msgpack_pack_object(pk, kv->val);
	}
	if (e->how != EDIT_REMOVE) {
		msgpack_pack_str_with_body(pk, e->key, strlen(e->key));
		pack_value(pk, e, old);
	}
}

typedef void change_fn(msgpack_packer *pk, const msgpack_object *o, const void *ctx);

static void change(struct buf *b, change_fn *fn, const void *ctx)
{
	msgpack_unpacked u;
	msgpack_sbuffer out;
	msgpack_packer pk;

	msgpack_unpacked_init(&u);
	msgpack_sbuffer_init(&out);
	msgpack_packer_init(&pk, &out, msgpack_sbuffer_write);
	assert_int_equal(msgpack_unpack_next(&u, (const char *)b->base, b->len, NULL),
			 MSGPACK_UNPACK_SUCCESS);
	fn(&pk, &u.data, ctx);
	buf_clear(b);
	buf_add(b, out.data, out.size);
	msgpack_sbuffer_destroy(&out);
	msgpack_unpacked_destroy(&u);
}

static void change_body(msgpack_packer *pk, const msgpack_object *o, const void *ctx)
{
	pack_map(pk, o, ctx);
}

static void change_message(msgpack_packer *pk, const msgpack_object *o, const void *ctx)
{
	assert_int_equal(o->type, MSGPACK_OBJECT_ARRAY);
	msgpack_pack_array(pk, 3);
	msgpack_pack_object(pk, o->via.array.ptr[0]);
	msgpack_pack_object(pk, o->via.array.ptr[1]);
	pack_map(pk, &o->via.array.ptr[2], ctx);
}

static void change_session(msgpack_packer *pk, const msgpack_object *o, const void *ctx)
{
	const struct edit *e = ctx;

	msgpack_pack_array(pk, 3);
	msgpack_pack_object(pk, o->via.array.ptr[0]);
	msgpack_pack_bin_with_body(pk, e->bytes, e->number);
	msgpack_pack_object(pk, o->via.array.ptr[2]);
}

void edit_body(struct buf *body, const struct edit *e)
{
	change(body, change_body, e);
}

void edit_message(struct buf *message, const struct edit *e)
{
	change(message, change_message, e);
}

void edit_session(struct buf *message, const uint8_t *id, size_t n)
{
	struct edit e = { .bytes = id, .number = n };

	change(message, change_session, &e);
}
