#include "cli/who.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "net/ident.h"

void who_text(const char *name, const uint8_t *key, const uint8_t sign_key[LEDGER_KEY],
	      char out[WHO_TEXT])
{
	char id[NET_KEY_TEXT];

	net_key_format(key != NULL ? key : sign_key, id);
	if (key == NULL)
		snprintf(out, WHO_TEXT, "signing key %.9s", id);
	else if (name[0] != '\0')
		snprintf(out, WHO_TEXT, "%.64s (%.9s)", name, id);
	else
		snprintf(out, WHO_TEXT, "%.9s", id);
}

static const struct store_peer *who_is(const struct roster *r, const uint8_t sign_key[LEDGER_KEY])
{
	for (size_t i = 0; i < r->n; i++)
		if (memcmp(store_peer_account(&r->at[i]), sign_key, LEDGER_KEY) == 0 ||
		    memcmp(r->at[i].sign_key, sign_key, LEDGER_KEY) == 0)
			return &r->at[i];
	return NULL;
}

void who_signs(const struct roster *r, const uint8_t sign_key[LEDGER_KEY], char out[WHO_TEXT])
{
	const struct store_peer *p = who_is(r, sign_key);

	who_text(p != NULL ? p->name : "", p != NULL ? p->key : NULL, sign_key, out);
}

void who_short(const struct roster *r, const uint8_t sign_key[LEDGER_KEY], char out[WHO_TEXT])
{
	const struct store_peer *p = who_is(r, sign_key);

	if (p != NULL && p->name[0] != '\0')
		snprintf(out, WHO_TEXT, "%.64s", p->name);
	else
		who_signs(r, sign_key, out);
}

json_t *who_id_json(const struct roster *r, const uint8_t sign_key[LEDGER_KEY])
{
	const struct store_peer *p = who_is(r, sign_key);
	char id[NET_KEY_TEXT];

	if (p == NULL)
		return json_null();
	net_key_format(p->key, id);
	return json_string(id);
}

const struct ledger_party *who_in_export(const struct ledger_export *x,
					 const uint8_t sign_key[LEDGER_KEY])
{
	if (memcmp(x->owner.sign_key, sign_key, LEDGER_KEY) == 0)
		return &x->owner;
	for (size_t k = 0; k < x->n_parties; k++)
		if (memcmp(x->parties[k].sign_key, sign_key, LEDGER_KEY) == 0)
			return &x->parties[k];
	return NULL;
}

void who_plain(char *out, size_t n, const char *name)
{
	snprintf(out, n, "%s", name);
	text_mark(out);
	text_mark_bidi(out);
}

const char *who_take_nonce(const struct argp_state *state, const char *arg)
{
	char plain[LEDGER_NONCE_MAX];

	who_plain(plain, sizeof(plain), arg);
	if (arg[0] == '\0' || strcmp(plain, arg) != 0)
		argp_error(state, "--nonce: one line of text of 1 to %d bytes is allowed",
			   LEDGER_NONCE_MAX - 1);
	return arg;
}

int64_t who_take_time(const struct argp_state *state, const char *arg)
{
	struct tm tm = { 0 };
	const char *end = strptime(arg, "%Y-%m-%d", &tm);

	if (end != NULL && *end == 'T')
		end = strptime(end, "T%H:%M:%S", &tm);
	if (end != NULL && *end == 'Z')
		end++;
	if (end == NULL || *end != '\0')
		argp_error(state, "--since '%s': write 2026-07-01 or 2026-07-01T12:00:00", arg);
	return (int64_t)timegm(&tm) * 1000;
}
