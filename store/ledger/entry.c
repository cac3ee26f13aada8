#include "store/ledger/entry.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "store/ledger/chain_internal.h"
#include "store/ledger/codec_internal.h"

static const char magic[8] = { 'f', 'k', 'g', 'e', 'L', 'D', 'G', '1' };
static const char entry_domain[] = "fkge ledger entry 1";
static const char countersign_domain[] = "fkge ledger countersign 1";

static const char *const kinds[] = { "?", "contract", "reserve", "settle", "refuse", "close" };
static const char *const translators[] = { "none", "ppat", "procrustes", "map", "unrotated" };
static const char *const noises[] = { "none", "laplace", "gaussian", "release",
				      "discrete_release" };
static const char *const accountants[] = { "none", "exact", "paper", "gnmax", "pld" };
static const char *const adjacencies[] = { "none", "row replaced", "triple added or removed" };

#define NAME_OF(table, k) ((size_t)(k) < sizeof(table) / sizeof((table)[0]) ? (table)[k] : "?")

const char *ledger_kind_name(enum ledger_kind k)
{
	return NAME_OF(kinds, k);
}

const char *ledger_translator_name(enum ledger_translator t)
{
	return NAME_OF(translators, t);
}

const char *ledger_noise_name(enum ledger_noise n)
{
	return NAME_OF(noises, n);
}

const char *ledger_accountant_name(enum ledger_accountant a)
{
	return NAME_OF(accountants, a);
}

const char *ledger_adjacency_name(enum ledger_adjacency a)
{
	return NAME_OF(adjacencies, a);
}

enum ledger_accountant ledger_release_accountant(enum ledger_accountant of_votes)
{
	return of_votes == LEDGER_PLD ? LEDGER_PLD : LEDGER_EXACT;
}

bool ledger_is_release(enum ledger_noise n)
{
	return n == LEDGER_RELEASE || n == LEDGER_DISCRETE_RELEASE;
}

/* ---- writing ---- */

void ledger_encode(const struct ledger_entry *e, uint8_t out[LEDGER_ENTRY_BYTES])
{
	const struct ledger_mechanism *m = &e->mechanism;
	uint8_t *at = out;

	put_bytes(&at, magic, sizeof(magic));
	put_uint(&at, e->kind, 1);
	put_uint(&at, e->translator, 1);
	put_uint(&at, m->noise, 1);
	put_uint(&at, m->accountant, 1);
	put_uint(&at, m->adjacency, 1);
	put_uint(&at, 0, 3);
	put_bytes(&at, e->host, LEDGER_KEY);
	put_bytes(&at, e->client, LEDGER_KEY);
	put_bytes(&at, e->lineage, 32);
	put_uint(&at, e->sequence, 8);
	put_bytes(&at, e->previous, LEDGER_HASH);
	put_uint(&at, (uint64_t)e->time_ms, 8);
	put_bytes(&at, e->session, 16);
	put_uint(&at, m->teachers, 4);
	put_uint(&at, m->batch, 4);
	put_uint(&at, m->dim, 4);
	put_uint(&at, 0, 4);
	put_double(&at, m->param);
	put_double(&at, m->delta);
	put_uint(&at, e->count, 8);
	put_uint(&at, e->total_pair, 8);
	put_uint(&at, e->total_lineage, 8);
	put_uint(&at, e->caps.pair, 8);
	put_uint(&at, e->caps.lineage, 8);
	put_double(&at, e->caps.epsilon_pair);
	put_double(&at, e->caps.epsilon_lineage);
	put_uint(&at, e->rows, 8);
	put_uint(&at, e->floats, 8);
	put_bytes(&at, e->transcript, 32);
	assert(at == out + LEDGER_ENTRY_BYTES);
}

/* ---- reading ---- */

static void take_fields(struct reader *r, struct ledger_entry *e)
{
	struct ledger_mechanism *m = &e->mechanism;

	e->kind = (enum ledger_kind)take_max(r, 1, LEDGER_CLOSE, "kind");
	if (e->kind == 0 && r->bad == NULL)
		r->bad = "kind";
	e->translator =
		(enum ledger_translator)take_max(r, 1, LEDGER_LAST_TRANSLATOR, "translator");
	m->noise = (enum ledger_noise)take_max(r, 1, LEDGER_LAST_NOISE, "noise");
	m->accountant =
		(enum ledger_accountant)take_max(r, 1, LEDGER_LAST_ACCOUNTANT, "accountant");
	m->adjacency = (enum ledger_adjacency)take_max(r, 1, LEDGER_LAST_ADJACENCY, "adjacency");
	take_max(r, 3, 0, "padding");
	take_bytes(r, e->host, LEDGER_KEY);
	take_bytes(r, e->client, LEDGER_KEY);
	take_bytes(r, e->lineage, 32);
	e->sequence = take_count(r, "sequence");
	take_bytes(r, e->previous, LEDGER_HASH);
	e->time_ms = (int64_t)take_count(r, "time");
	take_bytes(r, e->session, 16);
	m->teachers = (uint32_t)take_uint(r, 4);
	m->batch = (uint32_t)take_uint(r, 4);
	m->dim = (uint32_t)take_uint(r, 4);
	take_max(r, 4, 0, "padding");
	m->param = take_double(r, "param");
	m->delta = take_double(r, "delta");
	e->count = take_count(r, "count");
	e->total_pair = take_count(r, "total_pair");
	e->total_lineage = take_count(r, "total_lineage");
	e->caps.pair = take_count(r, "cap_pair");
	e->caps.lineage = take_count(r, "cap_lineage");
	e->caps.epsilon_pair = take_double(r, "epsilon_pair");
	e->caps.epsilon_lineage = take_double(r, "epsilon_lineage");
	e->rows = take_count(r, "rows");
	e->floats = take_count(r, "floats");
	take_bytes(r, e->transcript, 32);
}

int ledger_decode(struct ledger_entry *e, const uint8_t *bytes, size_t n, struct err *err)
{
	struct reader r = { bytes + sizeof(magic), NULL };

	memset(e, 0, sizeof(*e));
	if (n != LEDGER_ENTRY_BYTES)
		return err_set(err, ERR_LEDGER, "a ledger entry has %d bytes, this has %zu",
			       LEDGER_ENTRY_BYTES, n);
	if (memcmp(bytes, magic, sizeof(magic)) != 0)
		return err_set(err, ERR_LEDGER, "not a ledger entry of version 1");
	take_fields(&r, e);
	if (r.bad != NULL)
		return err_set(err, ERR_LEDGER, "ledger entry %llu: field %s is out of range",
			       (unsigned long long)e->sequence, r.bad);
	return 0;
}

/* ---- hash and signatures ---- */

void ledger_hash(const struct ledger_entry *e, uint8_t out[LEDGER_HASH])
{
	uint8_t bytes[LEDGER_ENTRY_BYTES];

	ledger_encode(e, bytes);
	crypto_generichash(out, LEDGER_HASH, bytes, sizeof(bytes), NULL, 0);
}

void ledger_lineage_of(const uint8_t account[LEDGER_KEY], uint8_t out[32])
{
	static const char of[] = "fkge lineage 1";
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, 32);
	crypto_generichash_update(&h, (const unsigned char *)of, sizeof(of) - 1);
	crypto_generichash_update(&h, account, LEDGER_KEY);
	crypto_generichash_final(&h, out, 32);
}

int ledger_check_lineage(const struct ledger_entry *e, struct err *err)
{
	uint8_t own[32];

	ledger_lineage_of(e->host, own);
	return memcmp(e->lineage, own, sizeof(own)) == 0
		       ? 0
		       : err_set(err, ERR_LEDGER,
				 "entry %llu (%s): its lineage is not that of its host, under "
				 "which all of it is counted: another one has a cap of its own",
				 (unsigned long long)e->sequence, ledger_kind_name(e->kind));
}

enum { SIGNED_MAX = sizeof(countersign_domain) - 1 + LEDGER_HASH };

static size_t signed_bytes(uint8_t out[SIGNED_MAX], const char *domain, size_t n,
			   const uint8_t hash[LEDGER_HASH])
{
	memcpy(out, domain, n);
	memcpy(out + n, hash, LEDGER_HASH);
	return n + LEDGER_HASH;
}

void ledger_sign(struct ledger_signed *s, const uint8_t key[LEDGER_SECRET])
{
	uint8_t text[SIGNED_MAX];
	size_t n;

	ledger_hash(&s->entry, s->hash);
	n = signed_bytes(text, entry_domain, sizeof(entry_domain) - 1, s->hash);
	crypto_sign_detached(s->signature, NULL, text, n, key);
	s->countersigned = false;
	memset(s->countersignature, 0, sizeof(s->countersignature));
}

void ledger_keys_release(struct ledger_keys *k)
{
	free(k->at);
	*k = (struct ledger_keys){ 0 };
}

/* Which key has made this signature: 0 for the first, k for the k-th that followed; -1: none. */
static long signer(const uint8_t signature[LEDGER_SIGNATURE], const uint8_t *text, size_t n,
		   const uint8_t first[LEDGER_KEY], const struct ledger_keys *k)
{
	for (size_t i = k->n; i > 0; i--)
		if (crypto_sign_verify_detached(signature, text, n, k->at[i - 1]) == 0)
			return (long)i;
	return crypto_sign_verify_detached(signature, text, n, first) == 0 ? 0 : -1;
}

int ledger_keys_check(struct ledger_keys *k, const uint8_t signature[LEDGER_SIGNATURE],
		      const uint8_t *text, size_t n, const uint8_t first[LEDGER_KEY],
		      const char *what, uint64_t sequence, const char *whose, struct err *err)
{
	struct ledger_keys none = { 0 };
	long by;

	k = k != NULL ? k : &none;
	assert(k->used <= k->n);
	by = signer(signature, text, n, first, k);
	if (by < 0)
		return err_set(err, ERR_LEDGER, "%s %llu: bad %s", what,
			       (unsigned long long)sequence, whose);
	if ((size_t)by < k->used)
		return err_set(err, ERR_LEDGER,
			       "%s %llu: %s with a key that its owner has replaced before", what,
			       (unsigned long long)sequence, whose);
	k->used = (size_t)by;
	return 0;
}

int ledger_check_signature(const struct ledger_signed *s, struct ledger_keys *host, struct err *err)
{
	uint8_t hash[LEDGER_HASH], text[SIGNED_MAX];
	size_t n;

	ledger_hash(&s->entry, hash);
	if (memcmp(hash, s->hash, sizeof(hash)) != 0)
		return err_set(err, ERR_LEDGER,
			       "entry %llu was edited: its contents do not give its hash",
			       (unsigned long long)s->entry.sequence);
	n = signed_bytes(text, entry_domain, sizeof(entry_domain) - 1, hash);
	return ledger_keys_check(host, s->signature, text, n, s->entry.host, "entry",
				 s->entry.sequence, "signature of the host", err);
}

void ledger_countersign(struct ledger_signed *s, const uint8_t key[LEDGER_SECRET])
{
	uint8_t text[SIGNED_MAX];
	size_t n = signed_bytes(text, countersign_domain, sizeof(countersign_domain) - 1, s->hash);

	crypto_sign_detached(s->countersignature, NULL, text, n, key);
	s->countersigned = true;
}

int ledger_check_countersign(const struct ledger_signed *s,
			     const uint8_t signature[LEDGER_SIGNATURE], struct ledger_keys *client,
			     struct err *err)
{
	uint8_t text[SIGNED_MAX];
	size_t n = signed_bytes(text, countersign_domain, sizeof(countersign_domain) - 1, s->hash);

	return ledger_keys_check(client, signature, text, n, s->entry.client, "entry",
				 s->entry.sequence, "countersignature of the client", err);
}

void ledger_wire_encode(const struct ledger_signed *s, uint8_t out[LEDGER_WIRE])
{
	ledger_encode(&s->entry, out);
	memcpy(out + LEDGER_ENTRY_BYTES, s->signature, LEDGER_SIGNATURE);
}
