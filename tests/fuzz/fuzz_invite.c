/* libFuzzer entry for what one owner hands another.  The first byte says what: 'l' the line of an
 * invitation, 'L' the map in it, to which its check is added here; 'k' the text of a key; 'a' an
 * address; 'm' a member's record, 'M' its map, signed here.  What was read is written, and comes
 * back; what is refused leaves nothing and has words.  As fuzz_msg.c. */
#include <ctype.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/member.h"
#include "base/mem.h"
#include "config/settings.h"
#include "net/ident.h"
#include "tests/fuzz/must_hold.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static void check_words(const struct err *e, int rc)
{
	must_hold(rc == e->code && (rc == 0) == (e->text[0] == '\0'));
}

/* ---- invitations ---- */

static void check_line(const char *line)
{
	static const struct net_invite nothing;
	struct net_invite v, back;
	char text[NET_INVITE_TEXT], again[NET_INVITE_TEXT];
	struct err e = { 0 };

	check_words(&e, net_invite_parse(line, &v, &e));
	if (e.code != 0) {
		must_hold(memcmp(&v, &nothing, sizeof(v)) == 0);
		return;
	}
	must_hold((v.host[0] == '\0') == (v.port == 0));
	must_hold(net_invite_format(&v, text, NULL) == 0);
	must_hold(net_invite_parse(text, &back, NULL) == 0);
	must_hold(memcmp(&v, &back, sizeof(v)) == 0);
	must_hold(net_invite_format(&back, again, NULL) == 0 && strcmp(text, again) == 0);
}

/* As net/ident.c says it: base32 of the map and four bytes of its hash. */
static char *line_of_map(const uint8_t *map, size_t n)
{
	static const char alphabet[] = "abcdefghijklmnopqrstuvwxyz234567";
	uint8_t *all = mem_array(n + 5, 1), hash[16]; /* a zero behind it */
	char *line = mem_array(8 * (n + 4) / 5 + 8, 1), *at = line + sprintf(line, "fkge1:");

	memcpy(all, map, n);
	crypto_generichash(hash, sizeof(hash), map, n, (const uint8_t *)"fkge invite 1   ", 16);
	memcpy(all + n, hash, 4);
	for (size_t bit = 0; bit < 8 * (n + 4); bit += 5)
		*at++ = alphabet[(all[bit / 8] << 8 | all[bit / 8 + 1]) >> (11 - bit % 8) & 31];
	free(all);
	return line;
}

/* ---- keys, names, addresses ---- */

static void check_key(const char *text)
{
	uint8_t key[NET_KEY_BYTES], nothing[NET_KEY_BYTES] = { 0 };
	char back[NET_KEY_TEXT];
	struct err e = { 0 };

	memset(key, 0, sizeof(key));
	check_words(&e, net_key_parse(text, key, &e));
	if (e.code != 0) {
		must_hold(memcmp(key, nothing, sizeof(key)) == 0);
	} else {
		net_key_format(key, back);
		must_hold(strlen(text) == strlen(back));
		for (size_t i = 0; back[i] != '\0'; i++)
			must_hold(tolower((unsigned char)text[i]) == back[i]);
	}
	(void)net_ident_short_valid(text);
	e = (struct err){ 0 };
	check_words(&e, net_name_check(text, &e));
}

static void check_any_key(const uint8_t key[NET_KEY_BYTES])
{
	struct net_ident id;
	char text[NET_KEY_TEXT];
	char fingerprint[NET_ID_TEXT];

	net_key_format(key, text);
	check_key(text);
	memcpy(id.noise, key, NET_KEY_BYTES);
	memcpy(id.sign, key, NET_SIGN_BYTES);
	net_ident_short(&id, fingerprint);
	must_hold(net_ident_short_valid(fingerprint));
}

static void check_address(const char *text)
{
	struct config_http_place place;
	char host[256] = "", host2[256];
	uint16_t port = 0, port2;
	struct err e = { 0 };

	check_words(&e, config_address(text, host, &port, &e));
	if (e.code == 0) {
		char *again = mem_printf("[%s]:%u", host, port);

		must_hold(config_address(again, host2, &port2, NULL) == 0);
		must_hold(strcmp(host, host2) == 0 && port == port2);
		free(again);
	}
	e = (struct err){ 0 };
	check_words(&e, config_http_place(text, &place, &e));
}

/* ---- records of members ---- */

static bool same_member(const struct agent_member *a, const struct agent_member *b)
{
	return memcmp(a->key, b->key, STORE_KEY) == 0 &&
	       memcmp(a->sign_key, b->sign_key, STORE_KEY) == 0 && strcmp(a->name, b->name) == 0 &&
	       strcmp(a->address, b->address) == 0 && a->time_ms == b->time_ms;
}

/* secret NULL: whose record it is cannot be known, so none is right. */
static void check_record(const uint8_t *record, size_t n, const uint8_t *secret)
{
	struct agent_member m, back;
	struct buf again = { 0 };
	struct err e = { 0 };

	check_words(&e, agent_member_check(&m, record, n, &e));
	if (e.code != 0)
		return;
	must_hold(secret != NULL);
	agent_member_sign(&m, secret, &again);
	must_hold(agent_member_check(&back, again.base, again.len, NULL) == 0);
	must_hold(same_member(&m, &back));
	again.base[m.time_ms % (int64_t)again.len] ^= 1;
	must_hold(agent_member_check(&back, again.base, again.len, NULL) != 0);
	buf_release(&again);
}

static void check_map(const uint8_t *map, size_t n)
{
	static const char domain[] = "fkge member 1";
	static const uint8_t seed[32] = { 1 };
	uint8_t key[32], secret[64];
	struct buf record = { 0 }, text = { 0 };

	crypto_sign_seed_keypair(key, secret, seed);
	buf_add(&text, domain, sizeof(domain) - 1);
	buf_add(&text, map, n);
	crypto_sign_detached(buf_extend(&record, crypto_sign_BYTES), NULL, text.base, text.len,
			     secret);
	buf_add(&record, map, n);
	check_record(record.base, record.len, secret);
	buf_release(&record);
	buf_release(&text);
}

/* ---- */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	char *text;

	if (sodium_init() < 0 || n == 0)
		return 0;
	text = mem_array(n, 1); /* with a NUL */
	memcpy(text, bytes + 1, n - 1);
	if (bytes[0] == 'L') {
		char *line = line_of_map(bytes + 1, n - 1);

		check_line(line);
		free(line);
	} else if (bytes[0] == 'l') {
		check_line(text);
	} else if (bytes[0] == 'k') {
		check_key(text);
		if (n > NET_KEY_BYTES)
			check_any_key(bytes + 1);
	} else if (bytes[0] == 'a') {
		check_address(text);
	} else if (bytes[0] == 'M') {
		check_map(bytes + 1, n - 1);
	} else if (bytes[0] == 'm') {
		check_record(bytes + 1, n - 1, NULL);
	}
	free(text);
	return 0;
}
