#include "net/ident.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "net/msg.h"

enum {
	CHECK_CHARS = 4,  /* 20 bits: one mistyped text in a million passes */
	CHECK_BYTES = 4,  /* after an invitation's map */
	KEY_CHARS = 52,	  /* 256 bits by fives */
	SHORT_CHARS = 24, /* 120 bits */
	SHORT_BYTES = 15,
	GROUP = 4,
	INVITE_BYTES = 600, /* what NET_INVITE_TEXT has room for */
};

static const char invite_head[] = "fkge1:";

static_assert(KEY_CHARS + CHECK_CHARS < NET_KEY_TEXT, "a key fits its text");
static_assert((SHORT_CHARS + CHECK_CHARS) / GROUP * (GROUP + 1) == NET_ID_TEXT, "so does an id");
static_assert(6 + (INVITE_BYTES * 8 + 4) / 5 < NET_INVITE_TEXT, "and an invitation");

/* ---- base32 (RFC 4648, section 6), lower case, no padding ---- */

static const char alphabet[33] = "abcdefghijklmnopqrstuvwxyz234567";

/* (8n + 4) / 5 characters and a NUL; returns how many. */
static size_t base32_encode(const uint8_t *in, size_t n, char *out)
{
	size_t len = 0;

	for (size_t bit = 0; bit < 8 * n; bit += 5) {
		unsigned two = (unsigned)in[bit / 8] << 8;

		if (bit / 8 + 1 < n)
			two |= in[bit / 8 + 1];
		out[len++] = alphabet[two >> (11 - bit % 8) & 31];
	}
	out[len] = '\0';
	return len;
}

static int base32_value(char c)
{
	const char *at;

	if (c >= 'A' && c <= 'Z')
		c = (char)(c - 'A' + 'a');
	at = c == '\0' ? NULL : strchr(alphabet, c);
	return at == NULL ? -1 : (int)(at - alphabet);
}

/* The bytes of n characters, at most size; -1 for another character, a length no
 * bytes have, or bits over that are not zero. */
static ptrdiff_t base32_decode(const char *in, size_t n, uint8_t *out, size_t size)
{
	unsigned bits = 0, have = 0;
	size_t len = 0;

	for (size_t i = 0; i < n; i++) {
		int v = base32_value(in[i]);

		if (v < 0)
			return -1;
		bits = (bits << 5 | (unsigned)v) & 0xfff;
		have += 5;
		if (have < 8)
			continue;
		if (len == size)
			return -1;
		have -= 8;
		out[len++] = (uint8_t)(bits >> have);
	}
	return have >= 5 || (bits & ((1U << have) - 1)) != 0 ? -1 : (ptrdiff_t)len;
}

/* Four characters over some bytes, for one purpose. */
static void check_chars(const char *purpose, const void *bytes, size_t n, char out[CHECK_CHARS + 1])
{
	uint8_t h[16];
	char text[32];

	crypto_generichash(h, sizeof(h), bytes, n, (const uint8_t *)purpose, strlen(purpose));
	base32_encode(h, sizeof(h), text);
	memcpy(out, text, CHECK_CHARS);
	out[CHECK_CHARS] = '\0';
}

/* ---- short ids ---- */

static const char purpose_id[] = "fkge short id 1 ";
static const char purpose_key[] = "fkge key text 1 ";
static const char purpose_invite[] = "fkge invite 1   ";

void net_ident_short(const struct net_ident *id, char out[NET_ID_TEXT])
{
	uint8_t h[32], both[NET_KEY_BYTES + NET_SIGN_BYTES];
	char plain[SHORT_CHARS + CHECK_CHARS + 1];
	size_t at = 0;

	memcpy(both, id->noise, NET_KEY_BYTES);
	memcpy(both + NET_KEY_BYTES, id->sign, NET_SIGN_BYTES);
	crypto_generichash(h, sizeof(h), both, sizeof(both), (const uint8_t *)purpose_id, 16);
	base32_encode(h, SHORT_BYTES, plain);
	check_chars(purpose_id, plain, SHORT_CHARS, plain + SHORT_CHARS);
	for (size_t i = 0; i < SHORT_CHARS + CHECK_CHARS; i++) {
		if (i > 0 && i % GROUP == 0)
			out[at++] = '-';
		out[at++] = plain[i];
	}
	out[at] = '\0';
}

bool net_ident_short_valid(const char *text)
{
	char plain[SHORT_CHARS + CHECK_CHARS + 1], check[CHECK_CHARS + 1];
	size_t n = 0;

	if (strlen(text) != NET_ID_TEXT - 1)
		return false;
	for (size_t i = 0; i < NET_ID_TEXT - 1; i++) {
		bool dash = i % (GROUP + 1) == GROUP;
		int value = dash ? 0 : base32_value(text[i]);

		if (dash != (text[i] == '-') || value < 0)
			return false;
		if (!dash)
			plain[n++] = alphabet[value];
	}
	check_chars(purpose_id, plain, SHORT_CHARS, check);
	return memcmp(plain + SHORT_CHARS, check, CHECK_CHARS) == 0;
}

int net_name_check(const char *name, struct err *e)
{
	size_t n = strlen(name);

	if (n == 0)
		return err_set(e, ERR_USAGE, "a name is empty: partners are shown it, give one");
	if (n > NET_NAME_MAX)
		return err_set(e, ERR_USAGE,
			       "'%.64s...' has %zu bytes, and peers take names of at most %d", name,
			       n, NET_NAME_MAX);
	if (!text_printable(name, n))
		return err_set(e, ERR_USAGE,
			       "a name has bytes that are no UTF-8 text or are control characters, "
			       "which peers refuse");
	if (text_has_bidi(name))
		return err_set(e, ERR_USAGE,
			       "a name has a control character of direction, which would show what "
			       "follows it in another order: peers refuse it");
	if (name[0] == ' ' || name[n - 1] == ' ')
		return err_set(e, ERR_USAGE, "'%s' begins or ends with a space", name);
	if (net_is_key(name))
		return err_set(e, ERR_USAGE,
			       "'%s' is an agent's id, which no agent may have as its name", name);
	return 0;
}

/* ---- keys ---- */

void net_key_format(const uint8_t key[NET_KEY_BYTES], char out[NET_KEY_TEXT])
{
	size_t n = base32_encode(key, NET_KEY_BYTES, out);

	assert(n == KEY_CHARS);
	check_chars(purpose_key, key, NET_KEY_BYTES, out + n);
}

int net_key_parse(const char *text, uint8_t key[NET_KEY_BYTES], struct err *e)
{
	uint8_t bytes[NET_KEY_BYTES];
	char want[NET_KEY_TEXT];

	if (strlen(text) != KEY_CHARS + CHECK_CHARS)
		return err_set(e, ERR_INPUT, "a key has %d characters, this text has %zu",
			       KEY_CHARS + CHECK_CHARS, strlen(text));
	if (base32_decode(text, KEY_CHARS, bytes, sizeof(bytes)) != NET_KEY_BYTES)
		return err_set(e, ERR_INPUT, "a key has the characters a-z and 2-7 only");
	net_key_format(bytes, want);
	for (size_t i = 0; i < CHECK_CHARS; i++)
		if (base32_value(text[KEY_CHARS + i]) != base32_value(want[KEY_CHARS + i]))
			return err_set(e, ERR_INPUT,
				       "the key's check characters do not fit: mistyped?");
	memcpy(key, bytes, NET_KEY_BYTES);
	return 0;
}

bool net_is_key(const char *text)
{
	char plain[NET_KEY_TEXT] = "";
	uint8_t unused[NET_KEY_BYTES];
	size_t n = 0;

	for (; *text != '\0' && n + 1 < sizeof(plain); text++)
		if (*text != '-')
			plain[n++] = *text;
	plain[n] = '\0';
	return *text == '\0' && net_key_parse(plain, unused, NULL) == 0;
}

/* ---- invitations ---- */

static void invite_put(const struct net_invite *in, struct buf *b)
{
	struct net_writer w;

	net_write_body(&w, b);
	net_put_bin(&w, "n", in->from.noise, NET_KEY_BYTES);
	net_put_bin(&w, "s", in->from.sign, NET_SIGN_BYTES);
	net_put_str(&w, "name", in->name);
	net_put_str(&w, "host", in->host);
	net_put_uint(&w, "port", in->port);
	if (in->has_psk)
		net_put_bin(&w, "psk", in->psk, NET_PSK_BYTES);
	if (in->has_ticket)
		net_put_bin(&w, "tk", in->ticket, NET_TICKET_BYTES);
	if (in->has_seed)
		net_put_bin(&w, "sd", in->seed, NET_PAIR_SECRET);
	if (in->bound)
		net_put_bin(&w, "to", in->to, NET_KEY_BYTES);
	net_write_close(&w);
}

static void invite_check(const struct buf *map, uint8_t out[CHECK_BYTES])
{
	uint8_t h[16];

	crypto_generichash(h, sizeof(h), map->base, map->len, (const uint8_t *)purpose_invite, 16);
	memcpy(out, h, CHECK_BYTES);
}

static void wipe(struct buf *b)
{
	if (b->cap > 0)
		sodium_memzero(b->base, b->cap);
	buf_release(b);
}

int net_invite_format(const struct net_invite *in, char out[NET_INVITE_TEXT], struct err *e)
{
	struct buf b = { 0 };
	uint8_t check[CHECK_BYTES];

	if ((in->host[0] == '\0') != (in->port == 0))
		return err_set(e, ERR_USAGE, "an address needs both host and port");
	buf_reserve(&b, INVITE_BYTES); /* so that no copy is left behind by growing */
	invite_put(in, &b);
	invite_check(&b, check);
	buf_add(&b, check, sizeof(check));
	assert(b.len <= INVITE_BYTES);
	memcpy(out, invite_head, sizeof(invite_head));
	base32_encode(b.base, b.len, out + sizeof(invite_head) - 1);
	wipe(&b);
	return 0;
}

static int invite_get(const struct net_map *m, struct net_invite *out, struct err *e)
{
	net_get_fixed(m, "n", out->from.noise, NET_KEY_BYTES, e);
	net_get_fixed(m, "s", out->from.sign, NET_SIGN_BYTES, e);
	net_get_text(m, "name", out->name, sizeof(out->name), e);
	net_get_text(m, "host", out->host, sizeof(out->host), e);
	if (e->code == 0 && (text_has_bidi(out->name) || text_has_bidi(out->host)))
		return err_set(e, ERR_INPUT,
			       "its name or host has a control character of direction");
	out->port = (uint16_t)net_get_uint(m, "port", 0, UINT16_MAX, e);
	out->has_psk = net_has(m, "psk");
	if (out->has_psk)
		net_get_fixed(m, "psk", out->psk, NET_PSK_BYTES, e);
	out->has_ticket = net_has(m, "tk");
	if (out->has_ticket)
		net_get_fixed(m, "tk", out->ticket, NET_TICKET_BYTES, e);
	out->has_seed = net_has(m, "sd");
	if (out->has_seed)
		net_get_fixed(m, "sd", out->seed, NET_PAIR_SECRET, e);
	out->bound = net_has(m, "to");
	if (out->bound)
		net_get_fixed(m, "to", out->to, NET_KEY_BYTES, e);
	if (e->code == 0 && (out->host[0] == '\0') != (out->port == 0))
		err_set(e, ERR_INPUT, "its address is incomplete");
	return e->code;
}

/* The map's bytes, without the check that follows them. */
static int invite_open(const char *text, size_t n, struct buf *b, struct err *e)
{
	uint8_t check[CHECK_BYTES];
	ptrdiff_t len = base32_decode(text, n, buf_extend(b, INVITE_BYTES), INVITE_BYTES);

	if (len <= CHECK_BYTES)
		return err_set(e, ERR_INPUT, "invitation is cut short or mistyped");
	b->len = (size_t)len - CHECK_BYTES;
	invite_check(b, check);
	if (memcmp(check, b->base + b->len, CHECK_BYTES) != 0)
		return err_set(e, ERR_INPUT, "invitation is cut short or mistyped");
	return 0;
}

static int head_check(const char *line, struct err *e)
{
	if (strncmp(line, invite_head, sizeof(invite_head) - 1) == 0)
		return 0;
	if (strncmp(line, "fkge", 4) == 0 && line[4] >= '2' && line[4] <= '9')
		return err_set(e, ERR_VERSION, "invitation was made by a newer fkge");
	return err_set(e, ERR_INPUT, "an invitation begins with \"%s\"", invite_head);
}

int net_invite_parse(const char *line, struct net_invite *out, struct err *e)
{
	struct net_body body;
	struct buf b = { 0 };
	struct err inner = { 0 };
	int rc;

	memset(out, 0, sizeof(*out));
	line += strspn(line, " \t\r\n");
	rc = head_check(line, e);
	if (rc != 0)
		return rc;
	line += sizeof(invite_head) - 1;
	rc = invite_open(line, strcspn(line, " \t\r\n"), &b, e);
	if (rc == 0 &&
	    line[strcspn(line, " \t\r\n") + strspn(line + strcspn(line, " \t\r\n"), " \t\r\n")] !=
		    '\0')
		rc = err_set(e, ERR_INPUT, "something follows the invitation");
	if (rc == 0 && net_body_decode(&body, b.base, b.len, &inner) == 0) {
		invite_get(&body.map, out, &inner);
		net_body_release(&body);
	}
	if (rc == 0 && inner.code != 0)
		rc = err_set(e, ERR_INPUT, "invitation cannot be read: %s", inner.text);
	wipe(&b);
	if (rc != 0)
		sodium_memzero(out, sizeof(*out));
	return rc;
}
