#include "agent/core/member.h"

#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "net/msg.h"

static const char domain[] = "fkge member 1";
static const char keys_domain[] = "fkge keys 1";

enum { KEYS_TEXT = sizeof(keys_domain) - 1 + STORE_KEY };

static void keys_text(const uint8_t key[STORE_KEY], uint8_t out[KEYS_TEXT])
{
	memcpy(out, keys_domain, sizeof(keys_domain) - 1);
	memcpy(out + sizeof(keys_domain) - 1, key, STORE_KEY);
}

void agent_keys_sign(const uint8_t key[STORE_KEY], const uint8_t secret[64], uint8_t proof[64])
{
	uint8_t text[KEYS_TEXT];

	keys_text(key, text);
	crypto_sign_detached(proof, NULL, text, sizeof(text), secret);
}

bool agent_keys_signed(const uint8_t key[STORE_KEY], const uint8_t sign_key[STORE_KEY],
		       const uint8_t proof[64])
{
	uint8_t text[KEYS_TEXT];

	keys_text(key, text);
	return crypto_sign_verify_detached(proof, text, sizeof(text), sign_key) == 0;
}

static void signed_part(struct buf *out, const uint8_t *body, size_t n)
{
	buf_add(out, domain, sizeof(domain) - 1);
	buf_add(out, body, n);
}

void agent_member_sign(const struct agent_member *m, const uint8_t secret[64], struct buf *out)
{
	struct buf body = { 0 }, text = { 0 };
	struct net_writer w;

	net_write_body(&w, &body);
	net_put_bin(&w, "k", m->key, STORE_KEY);
	net_put_bin(&w, "g", m->sign_key, STORE_KEY);
	net_put_str(&w, "n", m->name);
	net_put_str(&w, "a", m->address);
	net_put_int(&w, "t", m->time_ms);
	net_write_close(&w);
	signed_part(&text, body.base, body.len);
	crypto_sign_detached(buf_extend(out, crypto_sign_BYTES), NULL, text.base, text.len, secret);
	buf_add(out, body.base, body.len);
	buf_release(&body);
	buf_release(&text);
}

static int check_signature(const struct agent_member *m, const uint8_t *record, size_t n,
			   struct err *e)
{
	struct buf text = { 0 };
	int status;

	signed_part(&text, record + crypto_sign_BYTES, n - crypto_sign_BYTES);
	status = crypto_sign_verify_detached(record, text.base, text.len, m->sign_key);
	buf_release(&text);
	return status == 0
		       ? 0
		       : err_set(e, ERR_IDENTITY, "a member record that its member did not sign");
}

int agent_member_check(struct agent_member *m, const uint8_t *record, size_t n, struct err *e)
{
	struct err bad = { 0 };
	struct net_body body;

	if (n <= crypto_sign_BYTES || n > STORE_RECORD_MAX)
		return err_set(e, ERR_TOOBIG, "a member record of %zu bytes", n);
	if (net_body_decode(&body, record + crypto_sign_BYTES, n - crypto_sign_BYTES, &bad) == 0) {
		net_get_fixed(&body.map, "k", m->key, STORE_KEY, &bad);
		net_get_fixed(&body.map, "g", m->sign_key, STORE_KEY, &bad);
		net_get_text(&body.map, "n", m->name, sizeof(m->name), &bad);
		net_get_text(&body.map, "a", m->address, sizeof(m->address), &bad);
		if (bad.code == 0 && (text_has_bidi(m->name) || text_has_bidi(m->address)))
			err_set(&bad, ERR_PROTO, "a control character of direction");
		m->time_ms = net_get_int(&body.map, "t", 0, INT64_MAX, &bad);
		net_body_release(&body);
	}
	if (bad.code != 0)
		return err_set(e, bad.code, "a member record: %.300s", bad.text);
	return check_signature(m, record, n, e);
}
