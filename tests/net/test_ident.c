/* Keys, ids and invitations as text: there and back, and every typing mistake. */
#include "tests/test.h"

#include <sodium.h>

#include "base/buf.h"
#include "net/ident.h"
#include "net/msg.h"

static struct net_invite full(void)
{
	struct net_invite v = {
		.port = 7447, .has_psk = true, .has_ticket = true, .ticket = { 5 }, .bound = true
	};

	memset(v.from.noise, 0x11, 32);
	memset(v.from.sign, 0xfe, 32);
	memset(v.psk, 0x33, 32);
	memset(v.to, 0x44, 32);
	strcpy(v.name, "gene bank Ζ");
	memset(v.host, 'h', NET_HOST_MAX);
	return v;
}

static void test_key(void **state)
{
	uint8_t key[32], back[32];
	char text[NET_KEY_TEXT];

	(void)state;
	for (int round = 0; round < 50; round++) {
		randombytes_buf(key, 32);
		net_key_format(key, text);
		assert_int_equal(strlen(text), 56);
		assert_int_equal(net_key_parse(text, back, NULL), 0);
		assert_memory_equal(key, back, 32);
		for (char *c = text; *c != '\0'; c++)
			if (*c >= 'a')
				*c = (char)(*c - 'a' + 'A');
		assert_int_equal(net_key_parse(text, back, NULL), 0);
	}
}

static void test_known_text(void **state)
{
	static const uint8_t foo[32] = "foobar"; /* RFC 4648: MZXW6YTBOI */
	char text[NET_KEY_TEXT];

	(void)state;
	net_key_format(foo, text);
	assert_memory_equal(text, "mzxw6ytboiaa", 12);
}

/* Any one character changed, or two neighbours swapped, is noticed. */
static void test_key_mistyped(void **state)
{
	uint8_t key[32], back[32];
	char text[NET_KEY_TEXT], bad[NET_KEY_TEXT];

	(void)state;
	memset(key, 0x5a, 32);
	key[3] = 7;
	net_key_format(key, text);
	for (size_t i = 0; i < 56; i++) {
		strcpy(bad, text);
		bad[i] = bad[i] == 'q' ? 'r' : 'q';
		assert_int_equal(net_key_parse(bad, back, NULL), ERR_INPUT);
		bad[i] = '1';
		assert_int_equal(net_key_parse(bad, back, NULL), ERR_INPUT);
		if (i == 0 || text[i] == text[i - 1])
			continue;
		strcpy(bad, text);
		bad[i] = text[i - 1];
		bad[i - 1] = text[i];
		assert_int_equal(net_key_parse(bad, back, NULL), ERR_INPUT);
	}
	/* 52 characters have four bits more than a key: these are zero */
	for (const char *c = "abcdefghijklmnop"; *c != '\0'; c++) {
		strcpy(bad, text);
		bad[51] = (char)(*c + (text[51] == 'q' ? 'q' - 'a' : 0));
		assert_int_equal(net_key_parse(bad, back, NULL), *c == 'a' ? 0 : ERR_INPUT);
	}
	text[55] = '\0';
	assert_int_equal(net_key_parse(text, back, NULL), ERR_INPUT);
	assert_int_equal(net_key_parse("", back, NULL), ERR_INPUT);
}

static void test_short(void **state)
{
	struct net_ident id = { { 1 }, { 2 } };
	char text[NET_ID_TEXT], other[NET_ID_TEXT];

	(void)state;
	net_ident_short(&id, text);
	assert_int_equal(strlen(text), 34);
	assert_true(net_ident_short_valid(text));
	for (size_t i = 0; i < 34; i++) {
		strcpy(other, text);
		other[i] = other[i] == 'c' ? 'd' : 'c';
		assert_false(net_ident_short_valid(other));
	}
	assert_false(net_ident_short_valid("abcd"));
	id.sign[0] = 3; /* either key changes the id */
	net_ident_short(&id, other);
	assert_string_not_equal(text, other);
	id.sign[0] = 2;
	id.noise[0] = 0;
	net_ident_short(&id, other);
	assert_string_not_equal(text, other);
}

static void test_invite(void **state)
{
	struct net_invite v = full(), back;
	char line[NET_INVITE_TEXT], padded[NET_INVITE_TEXT + 8];

	(void)state;
	memset(v.name, 'n', NET_NAME_MAX); /* the longest there is */
	assert_int_equal(net_invite_format(&v, line, NULL), 0);
	snprintf(padded, sizeof(padded), " \t%s\r\n", line);
	assert_int_equal(net_invite_parse(padded, &back, NULL), 0);
	assert_memory_equal(&v, &back, sizeof(v));
	memset(&v, 0, sizeof(v));
	assert_int_equal(net_invite_format(&v, line, NULL), 0);
	assert_int_equal(net_invite_parse(line, &back, NULL), 0);
	assert_memory_equal(&v, &back, sizeof(v));
	snprintf(v.name, sizeof(v.name), "a\xe2\x80\xae"); /* it would turn what follows it */
	assert_int_equal(net_invite_format(&v, line, NULL), 0);
	assert_int_equal(net_invite_parse(line, &back, NULL), ERR_INPUT);
	v.port = 1;
	assert_int_equal(net_invite_format(&v, line, NULL), ERR_USAGE);
}

static void test_invite_refused(void **state)
{
	struct net_invite v = full(), back;
	struct net_invite zero = { 0 };
	char line[NET_INVITE_TEXT], bad[NET_INVITE_TEXT + 8];

	(void)state;
	assert_int_equal(net_invite_format(&v, line, NULL), 0);
	for (size_t i = 0; line[i] != '\0'; i++) {
		strcpy(bad, line);
		bad[i] = bad[i] == 'k' ? 'm' : 'k';
		assert_int_equal(net_invite_parse(bad, &back, NULL), ERR_INPUT);
		assert_memory_equal(&back, &zero, sizeof(zero)); /* no secret left in it */
		strcpy(bad, line);
		bad[i] = '\0';
		assert_int_equal(net_invite_parse(bad, &back, NULL), ERR_INPUT);
	}
	snprintf(bad, sizeof(bad), "%s x", line);
	assert_int_equal(net_invite_parse(bad, &back, NULL), ERR_INPUT);
	line[4] = '2';
	assert_int_equal(net_invite_parse(line, &back, NULL), ERR_VERSION);
}

/* The line of an invitation with all that is well but the address, which net_invite_format() would
 * not write. */
static void line_with_address(const char *host, uint64_t port, char line[NET_INVITE_TEXT])
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567",
			  purpose[] = "fkge invite 1   ";
	static const uint8_t key[32] = { 1 };
	uint8_t check[16];
	struct buf map = { 0 };
	struct net_writer w;
	size_t n = strlen("fkge1:");

	net_write_body(&w, &map);
	net_put_bin(&w, "n", key, sizeof(key));
	net_put_bin(&w, "s", key, sizeof(key));
	net_put_str(&w, "name", "a");
	net_put_str(&w, "host", host);
	net_put_uint(&w, "port", port);
	net_write_close(&w);
	crypto_generichash(check, sizeof(check), map.base, map.len, (const uint8_t *)purpose, 16);
	buf_add(&map, check, 4);
	memcpy(line, "fkge1:", n);
	for (size_t bit = 0; bit < 8 * map.len; bit += 5) {
		unsigned value = 0;

		for (size_t k = bit; k < bit + 5; k++)
			value = value << 1 |
				(k < 8 * map.len ? (unsigned)map.base[k / 8] >> (7 - k % 8) & 1U
						 : 0);
		line[n++] = alphabet[value];
	}
	line[n] = '\0';
	buf_release(&map);
}

static void test_invite_has_a_whole_address(void **state)
{
	struct net_invite back;
	char line[NET_INVITE_TEXT];
	struct err e = { 0 };

	(void)state;
	line_with_address("h", 7447, line);
	assert_int_equal(net_invite_parse(line, &back, NULL), 0);
	assert_int_equal(back.port, 7447);
	line_with_address("h", 0, line);
	assert_int_equal(net_invite_parse(line, &back, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "its address is incomplete"));
	line_with_address("", 7447, line);
	assert_int_equal(net_invite_parse(line, &back, NULL), ERR_INPUT);
	line_with_address("h", 65536, line);
	assert_int_equal(net_invite_parse(line, &back, NULL), ERR_INPUT);
}

static void test_names_of_agents(void **state)
{
	static const char *const bad[] = { "",
					   "a\nb",
					   "a\x1b[31m",
					   "\xff",
					   " a",
					   "a ",
					   "a\x7f",
					   "\xe2\x80\xae"
					   "abc",
					   "a\xd8\x9c",
					   "a\xe2\x81\xa7"
					   "b" };
	char longest[NET_NAME_MAX + 2];
	struct err e = { 0 };

	(void)state;
	assert_int_equal(net_name_check("gene bank", NULL), 0);
	assert_int_equal(net_name_check("\xc3\xa9\xc3\xa9", NULL), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		if (net_name_check(bad[i], NULL) != ERR_USAGE)
			fail_msg("taken: %s", bad[i]);
	memset(longest, 'n', sizeof(longest));
	longest[NET_NAME_MAX + 1] = '\0';
	assert_int_equal(net_name_check(longest, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "65 bytes"));
	longest[NET_NAME_MAX] = '\0';
	assert_int_equal(net_name_check(longest, NULL), 0);
}

static void test_no_name_is_a_key(void **state)
{
	static const uint8_t key[NET_KEY_BYTES] = { 7, 9 };
	char id[NET_KEY_TEXT + 2];
	size_t n;

	(void)state;
	net_key_format(key, id);
	n = strlen(id);
	assert_int_equal(net_name_check(id, NULL), ERR_USAGE);
	memmove(id + 5, id + 4, n - 4 + 1);
	id[4] = '-';
	assert_true(net_is_key(id));
	assert_int_equal(net_name_check(id, NULL), ERR_USAGE);
	id[0] = id[0] == 'b' ? 'c' : 'b'; /* its check characters do not fit */
	assert_int_equal(net_name_check(id, NULL), 0);
	memset(id, '-', sizeof(id) - 1);
	id[sizeof(id) - 1] = '\0';
	assert_false(net_is_key(id));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_key),
		cmocka_unit_test(test_known_text),
		cmocka_unit_test(test_key_mistyped),
		cmocka_unit_test(test_short),
		cmocka_unit_test(test_invite),
		cmocka_unit_test(test_invite_refused),
		cmocka_unit_test(test_invite_has_a_whole_address),
		cmocka_unit_test(test_names_of_agents),
		cmocka_unit_test(test_no_name_is_a_key),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
