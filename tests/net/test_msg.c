/* Messages: what is written is read; whatever else arrives is refused and harmless. */
#include "tests/test.h"

#include "base/rng.h"
#include "base/text.h"
#include "net/msg.h"
#include "tests/fuzz/poke_msg.h"

static const uint8_t session[NET_SESSION_BYTES] = "0123456789abcdef";

/* One of everything. */
static void sample(struct buf *out)
{
	static const float rows[6] = { 1, -2, 3.5f, 0, 1e30f, -1e-30f };
	struct net_writer w;

	buf_clear(out);
	net_write_begin(&w, out, NET_MSG_CONV, session);
	net_put_uint(&w, "u", UINT64_MAX);
	net_put_int(&w, "i", -70000);
	net_put_bool(&w, "t", true);
	net_put_double(&w, "d", 0.05);
	net_put_str(&w, "s", "καλημέρα");
	net_put_bin(&w, "b", "\0\1\2", 3);
	net_put_tensor(&w, "x", rows, 2, 3);
	net_put_map(&w, "m");
	net_put_uint(&w, "u", 7);
	net_put_end(&w);
	net_put_list(&w, "l");
	net_put_uint(&w, NULL, 1);
	net_put_bin(&w, NULL, "ab", 2);
	net_put_str(&w, NULL, "text");
	net_put_map(&w, NULL);
	net_put_uint(&w, "k", 9);
	net_put_end(&w);
	net_put_end(&w);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static void test_roundtrip(void **state)
{
	struct buf b = { 0 };
	struct net_msg m;
	struct err e = { 0 };
	struct net_map in;
	struct net_list l;
	char text[32];
	float rows[6];

	(void)state;
	sample(&b);
	assert_int_equal(net_msg_decode(&m, b.base, b.len, &e), 0);
	assert_int_equal(m.type, NET_MSG_CONV);
	assert_true(m.has_session);
	assert_memory_equal(m.session, session, 16);
	assert_true(net_get_uint(&m.body, "u", 0, UINT64_MAX, &e) == UINT64_MAX);
	assert_int_equal(net_get_int(&m.body, "i", -70000, 0, &e), -70000);
	assert_true(net_get_bool(&m.body, "t", &e));
	assert_true(net_get_double(&m.body, "d", 0, 1, &e) == 0.05);
	net_get_text(&m.body, "s", text, sizeof(text), &e);
	assert_string_equal(text, "καλημέρα");
	net_get_fixed(&m.body, "b", text, 3, &e);
	assert_memory_equal(text, "\0\1\2", 3);
	net_get_matrix(&m.body, "x", rows, 2, 3, &e);
	assert_true(rows[2] == 3.5f && rows[5] == -1e-30f);
	l = net_get_list(&m.body, "l", 4, &e);
	assert_int_equal(l.n, 4);
	assert_int_equal(net_list_bin(&l, 1, 2, 2, &e).len, 2);
	in = net_list_map(&l, 3, &e);
	assert_int_equal(net_get_uint(&in, "k", 9, 9, &e), 9);
	assert_int_equal(e.code, 0);
	assert_false(net_has(&m.body, "absent"));
	net_msg_release(&m);
	buf_release(&b);
}

/* Each getter refuses another type, a value over its limit, and an absent key. */
#define REFUSED(call)                                                                              \
	do {                                                                                       \
		struct err e = { 0 };                                                              \
		(void)(call);                                                                      \
		assert_int_equal(e.code, ERR_PROTO);                                               \
	} while (0)

static void test_getters_refuse(void **state)
{
	struct buf b = { 0 };
	struct net_msg m;
	struct net_map *o = &m.body;
	char text[64];
	float rows[6];

	(void)state;
	sample(&b);
	assert_int_equal(net_msg_decode(&m, b.base, b.len, NULL), 0);
	REFUSED(net_get_uint(o, "absent", 0, 1, &e));
	REFUSED(net_get_uint(o, "i", 0, UINT64_MAX, &e));
	REFUSED(net_get_uint(o, "u", 0, UINT64_MAX - 1, &e));
	REFUSED(net_get_int(o, "u", INT64_MIN, INT64_MAX, &e));
	REFUSED(net_get_int(o, "i", -69999, 0, &e));
	REFUSED(net_get_bool(o, "i", &e));
	REFUSED(net_get_double(o, "s", -1e300, 1e300, &e));
	REFUSED(net_get_double(o, "d", 0.06, 1, &e));
	REFUSED(net_get_str(o, "b", 99, &e));
	REFUSED(net_get_str(o, "s", 15, &e));
	REFUSED(net_get_text(o, "s", text, 16, &e));
	REFUSED(net_get_bin(o, "b", 4, 9, &e));
	REFUSED(net_get_bin(o, "b", 0, 2, &e));
	REFUSED(net_get_bin(o, "s", 0, 99, &e));
	REFUSED(net_get_fixed(o, "b", text, 2, &e));
	REFUSED(net_get_tensor(o, "x", 1, 3, &e));
	REFUSED(net_get_tensor(o, "x", 2, 2, &e));
	REFUSED(net_get_tensor(o, "l", 9, 9, &e));
	REFUSED(net_get_matrix(o, "x", rows, 3, 3, &e));
	REFUSED(net_get_list(o, "m", 9, &e));
	REFUSED(net_get_list(o, "l", 3, &e));
	net_msg_release(&m);
	buf_release(&b);
}

static void test_first_error_stands(void **state)
{
	struct buf b = { 0 };
	struct net_msg m;
	struct err e = { 0 };

	(void)state;
	sample(&b);
	assert_int_equal(net_msg_decode(&m, b.base, b.len, &e), 0);
	net_get_uint(&m.body, "first", 0, 1, &e);
	assert_int_equal(net_get_uint(&m.body, "u", 0, UINT64_MAX, &e), 0);
	assert_non_null(strstr(e.text, "first"));
	net_msg_release(&m);
	buf_release(&b);
}

static int decode(const char *bytes, size_t n)
{
	/* on the heap and exactly as long, so that ASan sees a read past the end */
	uint8_t *copy = malloc(n > 0 ? n : 1);
	struct net_msg m;
	int rc;

	memcpy(copy, bytes, n);
	rc = net_msg_decode(&m, copy, n, NULL);
	if (rc == 0)
		net_msg_release(&m);
	free(copy);
	return rc;
}

#define D(s) decode(s, sizeof(s) - 1)
#define GOOD "\x93\x02\xc4\x00" /* a SIGNAL outside a session, up to its body */

static void test_malformed(void **state)
{
	(void)state;
	assert_int_equal(D(GOOD "\x80"), 0);
	assert_int_equal(D(GOOD "\x81\xa1k\x01"), 0);
	assert_int_equal(D(""), ERR_PROTO);
	assert_int_equal(D("\x93"), ERR_PROTO);
	assert_int_equal(D("\x93\x00\xc4\x00\x80"), ERR_PROTO);	       /* type 0 */
	assert_int_equal(D("\x93\x63\xc4\x00\x80"), ERR_PROTO);	       /* unknown type */
	assert_int_equal(D("\x92\x02\x80"), ERR_PROTO);		       /* two parts */
	assert_int_equal(D("\x93\x02\xc4\x01x\x80"), ERR_PROTO);       /* session of 1 */
	assert_int_equal(D("\x93\x02\xa0\x80"), ERR_PROTO);	       /* text session */
	assert_int_equal(D(GOOD "\x90"), ERR_PROTO);		       /* body a list */
	assert_int_equal(D(GOOD "\x80\xc0"), ERR_PROTO);	       /* a byte left over */
	assert_int_equal(D(GOOD "\x81\xa1k"), ERR_PROTO);	       /* cut short */
	assert_int_equal(D(GOOD "\x81\x01\x01"), ERR_PROTO);	       /* key a number */
	assert_int_equal(D(GOOD "\x82\xa1k\x01\xa1k\x02"), ERR_PROTO); /* key twice */
	assert_int_equal(D(GOOD "\x81\xa1k\x82\xa1k\x01\xa1k\x02"), ERR_PROTO); /* within */
	assert_int_equal(D(GOOD "\x81\xa1k\x91\x82\xa1k\x01\xa1k\x02"), ERR_PROTO);
	assert_int_equal(D(GOOD "\x81\xa1k\xc1"), ERR_PROTO);	      /* no such code */
	assert_int_equal(D(GOOD "\x81\xa1k\xd4\x01\x01"), ERR_PROTO); /* extension */
	assert_int_equal(D(GOOD "\x81\xa1k\xc4"), ERR_PROTO);	      /* length missing */
	assert_int_equal(D(GOOD "\x81\xa1k\xc6\xff\xff\xff\xff"), ERR_PROTO);
	assert_int_equal(D(GOOD "\x81\xa1k\xdb\xff\xff\xff\xff"), ERR_PROTO);
	assert_int_equal(D(GOOD "\x81\xa1k\xdd\x7f\xff\xff\xff"), ERR_PROTO);
	assert_int_equal(D(GOOD "\x81\xa1k\xdf\x80\x00\x00\x00"), ERR_PROTO);
	assert_int_equal(D(GOOD "\xdf\xff\xff\xff\xff"), ERR_PROTO);
}

/* n bytes of the same container head, one inside the other. */
static int nested(char head, size_t n)
{
	char bytes[64] = GOOD "\x81\xa1k";

	memset(bytes + 7, head, n);
	bytes[7 + n] = 1;
	return decode(bytes, 8 + n);
}

static void test_limits(void **state)
{
	static const uint8_t big[4096];
	struct net_writer w;
	struct buf b = { 0 };

	(void)state;
	assert_int_equal(nested('\x91', NET_MSG_DEPTH_MAX - 2), 0);
	assert_int_equal(nested('\x91', NET_MSG_DEPTH_MAX - 1), ERR_PROTO);
	net_write_begin(&w, &b, NET_MSG_SIGNAL, NULL);
	net_put_bin(&w, "b", big, sizeof(big));
	assert_int_equal(net_write_end(&w, NULL), ERR_TOOBIG);
	assert_int_equal(b.len, 0);
	buf_release(&b);
}

/* A list of so many values in a message of this type: array, type, session, body, key, list. */
static int with_values(enum net_msg_type type, size_t values)
{
	struct net_writer w;
	struct buf b = { 0 };
	struct net_msg m;
	int rc;

	net_write_begin(&w, &b, type, NULL);
	net_put_list(&w, "l");
	for (size_t i = 6; i < values; i++)
		net_put_uint(&w, NULL, 0);
	net_put_end(&w);
	assert_int_equal(net_write_end(&w, NULL), 0);
	rc = net_msg_decode(&m, b.base, b.len, NULL);
	if (rc == 0)
		net_msg_release(&m);
	buf_release(&b);
	return rc;
}

static void test_values_of_each_type(void **state)
{
	(void)state;
	for (unsigned type = 1; net_msg_values(type) > 0; type++) {
		assert_int_equal(with_values((enum net_msg_type)type, net_msg_values(type)), 0);
		assert_int_equal(with_values((enum net_msg_type)type, net_msg_values(type) + 1),
				 ERR_PROTO);
	}
	assert_int_equal(net_msg_values(0), 0);
}

/* A map of n keys of the same length; twice: the first and the last are equal. */
static int with_keys(size_t n, bool twice)
{
	struct buf b = { 0 };
	struct net_writer w;
	struct net_body o;
	char key[32];
	int rc;

	net_write_body(&w, &b);
	for (size_t i = 0; i < n; i++) {
		snprintf(key, sizeof(key), "same-%03zu", twice && i + 1 == n ? 0 : i);
		net_put_uint(&w, key, i);
	}
	assert_int_equal(net_write_end(&w, NULL), 0);
	rc = net_body_decode(&o, b.base, b.len, NULL);
	if (rc == 0)
		net_body_release(&o);
	buf_release(&b);
	return rc;
}

static void test_keys(void **state)
{
	(void)state;
	assert_int_equal(with_keys(NET_PAIRS_MAX, false), 0);
	assert_int_equal(with_keys(NET_PAIRS_MAX, true), ERR_PROTO);
	assert_int_equal(with_keys(NET_PAIRS_MAX + 1, false), ERR_PROTO);
	assert_int_equal(with_keys(2, true), ERR_PROTO);
}

/* The head is read whatever the body is, and says the same as the whole. */
static void test_head(void **state)
{
	struct net_msg_head h;
	struct buf b = { 0 };

	(void)state;
	sample(&b);
	assert_int_equal(net_msg_head(&h, b.base, b.len, NULL), 0);
	assert_int_equal(h.type, NET_MSG_CONV);
	assert_true(h.has_session);
	assert_memory_equal(h.session, session, 16);
	assert_int_equal(net_msg_head(&h, b.base, 20, NULL), 0); /* nothing of the body is there */
	for (size_t n = 0; n < 20; n++)
		assert_int_equal(net_msg_head(&h, b.base, n, NULL), ERR_PROTO);
	assert_int_equal(net_msg_head(&h, (const uint8_t *)GOOD "\xc1", 5, NULL), 0);
	assert_false(h.has_session);
	buf_release(&b);
}

static void test_over_the_limit_of_its_type(void **state)
{
	struct net_writer w;
	struct buf b = { 0 };
	struct net_msg m;
	uint8_t *big = calloc(1, 8000);

	(void)state;
	net_write_begin(&w, &b, NET_MSG_HELLO, NULL);
	net_put_bin(&w, "b", big, 8000);
	assert_int_equal(net_write_end(&w, NULL), 0);
	assert_int_equal(net_msg_decode(&m, b.base, b.len, NULL), 0);
	net_msg_release(&m);
	for (size_t i = 0; i < b.len; i++)
		if (b.base[i] == NET_MSG_HELLO) {
			b.base[i] = NET_MSG_SIGNAL;
			break;
		}
	assert_int_equal(net_msg_decode(&m, b.base, b.len, NULL), ERR_TOOBIG);
	free(big);
	buf_release(&b);
}

static void test_not_finite(void **state)
{
	static const float bad[] = { 1.0f, NAN, INFINITY, -INFINITY };
	struct buf b = { 0 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct net_writer w;
		struct net_body o;
		struct err e = { 0 }, f = { 0 }, g = { 0 };
		struct net_list l;

		buf_clear(&b);
		net_write_body(&w, &b);
		net_put_tensor(&w, "x", &bad[i], 1, 1);
		net_put_double(&w, "d", bad[i]);
		net_put_list(&w, "l");
		net_put_double(&w, NULL, bad[i]);
		net_put_end(&w);
		assert_int_equal(net_write_end(&w, NULL), 0);
		assert_int_equal(net_body_decode(&o, b.base, b.len, NULL), 0);
		l = net_get_list(&o.map, "l", 1, &g);
		net_list_double(&l, 0, -INFINITY, INFINITY, &g);
		net_get_tensor(&o.map, "x", 1, 1, &e);
		net_get_double(&o.map, "d", -INFINITY, INFINITY, &f);
		assert_int_equal(e.code, i == 0 ? 0 : ERR_PROTO);
		assert_int_equal(f.code, i == 0 ? 0 : ERR_PROTO);
		assert_int_equal(g.code, i == 0 ? 0 : ERR_PROTO);
		net_body_release(&o);
	}
	buf_release(&b);
}

static void check_marked(const char *from, const char *to)
{
	char text[32], back[32];
	struct buf b = { 0 };
	struct net_writer w;
	struct net_body o;
	struct err e = { 0 };

	snprintf(text, sizeof(text), "%s", from);
	text_mark(text);
	assert_string_equal(text, to);
	net_write_body(&w, &b);
	net_put_str(&w, "s", from);
	assert_int_equal(net_write_end(&w, NULL), 0);
	assert_int_equal(net_body_decode(&o, b.base, b.len, NULL), 0);
	net_get_text(&o.map, "s", back, sizeof(back), &e);
	assert_int_equal(e.code, 0);
	assert_string_equal(back, to);
	net_body_release(&o);
	buf_release(&b);
}

/* What was cut to its room is written so that its reader takes it. */
static void test_marked(void **state)
{
	(void)state;
	check_marked("日本語", "日本語");
	check_marked("日本\xe8\xaa", "日本??");
	check_marked("\xc3", "?");
	check_marked("a\x1b[31m\xc2\x85 \xe6\x97z", "a?[31m?? ??z");
	check_marked("", "");
}

/* One to four bytes changed, cut or repeated, thousands of times. */
static void test_mutations(void **state)
{
	struct buf b = { 0 };
	struct rng r;
	size_t taken = 0;

	(void)state;
	rng_seed(&r, 7);
	sample(&b);
	for (size_t round = 0; round < 60000; round++) {
		size_t n = b.len - (round % 3 == 0 ? rng_below(&r, (uint32_t)b.len) : 0);
		uint8_t *copy = malloc(n);

		memcpy(copy, b.base, n);
		for (uint32_t k = rng_below(&r, 4); n > 0 && k < 4; k++)
			copy[rng_below(&r, (uint32_t)n)] = (uint8_t)rng_below(&r, 256);
		taken += poke_msg(copy, n);
		free(copy);
	}
	assert_true(taken > 1000 && taken < 59000); /* both ways were walked */
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_roundtrip),
		cmocka_unit_test(test_getters_refuse),
		cmocka_unit_test(test_first_error_stands),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_values_of_each_type),
		cmocka_unit_test(test_keys),
		cmocka_unit_test(test_head),
		cmocka_unit_test(test_over_the_limit_of_its_type),
		cmocka_unit_test(test_not_finite),
		cmocka_unit_test(test_marked),
		cmocka_unit_test(test_mutations),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
