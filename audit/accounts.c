/* audit/accounts.c - exports of rounds: what their owner signs. */
#include "audit/accounts.h"

#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "audit/accounts_internal.h"

void accounts_release(struct accounts_export *x)
{
	for (size_t k = 0; k < x->n; k++)
		free(x->at[k].round.members);
	free(x->at);
	free(x->parties);
	ledger_rotations_release(&x->rotations);
	memset(x, 0, sizeof(*x));
}

/* ---- texts ---- */

struct hex {
	char text[2 * FED_SIGNATURE + 1];
};

static struct hex hex(const uint8_t *bytes, size_t n)
{
	struct hex h;

	sodium_bin2hex(h.text, sizeof(h.text), bytes, n);
	return h;
}

static void add_traffic(struct buf *out, const struct fed_traffic *t)
{
	buf_printf(out, " rows out %llu in %llu floats out %llu in %llu", ULL(t->rows_out),
		   ULL(t->rows_in), ULL(t->floats_out), ULL(t->floats_in));
}

static void add_member(struct buf *out, const struct store_round_member *m)
{
	const struct fed_traffic signed_part = accounts_signed(m), counted = accounts_counted(m);

	buf_printf(out, "member %s %s", hex(m->key, STORE_KEY).text, fed_fate_name(m->fate));
	add_traffic(out, &counted);
	buf_printf(out, "\n");
	if (!m->has_account)
		return;
	buf_printf(out, "it signed");
	add_traffic(out, &signed_part);
	buf_printf(out, " %s\n", hex(m->signature, FED_SIGNATURE).text);
	if (m->refused[0] != '\0')
		buf_printf(out, "refused %s\n", m->refused);
}

static void record_text(const struct accounts_export *x, const struct accounts_round *a,
			struct buf *out)
{
	const struct store_round *r = &a->round;

	buf_printf(out, "round %llu %s\n%s %s secret_bits %u\n", ULL(r->number),
		   hex(r->id, STORE_ROUND).text, r->method, r->hosted ? "hosted" : "sharded",
		   r->secret_bits);
	buf_printf(out, "owner %s\n", hex(x->owner.key, STORE_KEY).text);
	buf_printf(out, "proposer %s\n", hex(r->proposer, STORE_KEY).text);
	buf_printf(out, "started %lld finished %lld outcome %d\n", (long long)r->started_ms,
		   (long long)r->finished_ms, r->outcome);
	buf_printf(out, "previous %s\n", hex(a->previous, ACCOUNTS_HASH).text);
	buf_printf(out, "members %u\n", r->n_members);
	for (uint32_t i = 0; i < r->n_members; i++)
		add_member(out, &r->members[i]);
}

static void add_party(struct buf *out, const char *what, const struct accounts_party *p)
{
	buf_printf(out, "%s %s", what, hex(p->key, STORE_KEY).text);
	buf_printf(out, " %s %s\n", hex(p->sign_key, STORE_KEY).text, p->name);
}

static void head_text(const struct accounts_export *x, struct buf *out)
{
	static const uint8_t none[ACCOUNTS_HASH];

	add_party(out, "owner", &x->owner);
	buf_printf(out, "made %lld nonce %s\n", (long long)x->time_ms, x->nonce);
	buf_printf(out, "older %llu rounds %zu last %s\n", ULL(x->older), x->n,
		   hex(x->n > 0 ? x->at[x->n - 1].hash : none, ACCOUNTS_HASH).text);
	for (size_t k = 0; k < x->n_parties; k++)
		add_party(out, "party", &x->parties[k]);
	for (size_t k = 0; k < x->rotations.n; k++) {
		char text[LEDGER_ROTATION_TEXT];

		ledger_rotation_format(&x->rotations.at[k], text);
		buf_printf(out, "rotation %s\n", text);
	}
}

/* ---- hashes and signatures ---- */

static void hash_text(const char *tag, struct buf *text, uint8_t out[ACCOUNTS_HASH])
{
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, ACCOUNTS_HASH);
	crypto_generichash_update(&h, (const uint8_t *)tag, strlen(tag) + 1);
	crypto_generichash_update(&h, text->base, text->len);
	crypto_generichash_final(&h, out, ACCOUNTS_HASH);
	buf_release(text);
}

void accounts_hash(const struct accounts_export *x, const struct accounts_round *r,
		   uint8_t out[ACCOUNTS_HASH])
{
	struct buf text = { 0 };

	record_text(x, r, &text);
	hash_text("fkge round record 1", &text, out);
}

void accounts_head_hash(const struct accounts_export *x, uint8_t out[ACCOUNTS_HASH])
{
	struct buf text = { 0 };

	head_text(x, &text);
	hash_text(x->rotations.n > 0 ? "fkge rounds export 3" : "fkge rounds export 2", &text, out);
}

void accounts_sign(struct accounts_export *x, const uint8_t sign_secret[FED_SIGN_SECRET])
{
	uint8_t last[ACCOUNTS_HASH] = { 0 };

	for (size_t k = 0; k < x->n; k++) {
		struct accounts_round *r = &x->at[k];

		memcpy(r->previous, last, ACCOUNTS_HASH);
		accounts_hash(x, r, r->hash);
		memcpy(last, r->hash, ACCOUNTS_HASH);
		crypto_sign_detached(r->signature, NULL, r->hash, ACCOUNTS_HASH, sign_secret);
	}
	accounts_head_hash(x, last);
	crypto_sign_detached(x->signature, NULL, last, ACCOUNTS_HASH, sign_secret);
}
