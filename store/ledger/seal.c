/* store/ledger/seal.c - an export as a whole: what its owner signs, and does it hold; what of two
 * or one of them no file can show. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/ledger/codec_internal.h"
#include "store/ledger/verify_internal.h"

static const char tag[] = "fkge ledger export 2";
static const char rotated_tag[] = "fkge ledger export 3"; /* with rotations of keys */
_Static_assert(sizeof(tag) == sizeof(rotated_tag), "either is signed in one place");

/* ---- what is signed ---- */

typedef crypto_generichash_state digest;

static void add_bytes(digest *d, const void *at, size_t n)
{
	crypto_generichash_update(d, at, n);
}

static void add_count(digest *d, uint64_t v)
{
	uint8_t bytes[8], *at = bytes;

	put_uint(&at, v, sizeof(bytes));
	add_bytes(d, bytes, sizeof(bytes));
}

static void add_text(digest *d, const char *text)
{
	add_count(d, strlen(text));
	add_bytes(d, text, strlen(text));
}

static void add_party(digest *d, const struct ledger_party *p)
{
	add_bytes(d, p->key, LEDGER_KEY);
	add_bytes(d, p->sign_key, LEDGER_KEY);
	add_text(d, p->name);
}

static void add_entry(digest *d, const struct ledger_signed *s)
{
	static const uint8_t none[LEDGER_SIGNATURE];
	uint8_t bytes[LEDGER_ENTRY_BYTES], countersigned = s->countersigned;

	ledger_encode(&s->entry, bytes);
	add_bytes(d, bytes, sizeof(bytes));
	add_bytes(d, s->hash, LEDGER_HASH);
	add_bytes(d, s->signature, LEDGER_SIGNATURE);
	add_bytes(d, &countersigned, 1);
	add_bytes(d, countersigned ? s->countersignature : none, LEDGER_SIGNATURE);
}

static void add_statement(digest *d, const struct ledger_stated *s)
{
	uint8_t bytes[LEDGER_STATEMENT_BYTES];

	ledger_statement_encode(&s->statement, bytes);
	add_bytes(d, bytes, sizeof(bytes));
	add_bytes(d, s->hash, LEDGER_HASH);
	add_bytes(d, s->signature, LEDGER_SIGNATURE);
}

static void add_head(digest *d, const struct ledger_export *x)
{
	add_bytes(d, x->rotations.n > 0 ? rotated_tag : tag, sizeof(tag));
	add_party(d, &x->owner);
	add_bytes(d, x->peer, LEDGER_KEY);
	add_count(d, (uint64_t)x->time_ms);
	add_text(d, x->nonce);
	add_count(d, x->n_parties);
	for (size_t k = 0; k < x->n_parties; k++)
		add_party(d, &x->parties[k]);
	add_count(d, x->n_chains);
	for (size_t k = 0; k < x->n_chains; k++) {
		add_bytes(d, x->chains[k].partner, LEDGER_KEY);
		add_count(d, x->chains[k].entries);
		add_bytes(d, x->chains[k].head, LEDGER_HASH);
	}
	add_count(d, x->statements);
	add_bytes(d, x->statements_head, LEDGER_HASH);
}

static void add_rotations(digest *d, const struct ledger_rotations *all)
{
	uint8_t bytes[LEDGER_ROTATION_BYTES];

	if (all->n > 0)
		add_count(d, all->n);
	for (size_t k = 0; k < all->n; k++) {
		ledger_rotation_encode(&all->at[k], bytes);
		add_bytes(d, bytes, sizeof(bytes));
	}
}

static void export_hash(const struct ledger_export *x, uint8_t out[LEDGER_HASH])
{
	digest d;

	crypto_generichash_init(&d, NULL, 0, LEDGER_HASH);
	add_head(&d, x);
	add_count(&d, x->n);
	for (size_t k = 0; k < x->n; k++)
		add_entry(&d, &x->at[k]);
	add_count(&d, x->n_stated);
	for (size_t k = 0; k < x->n_stated; k++)
		add_statement(&d, &x->stated[k]);
	add_rotations(&d, &x->rotations);
	crypto_generichash_final(&d, out, LEDGER_HASH);
}

/* ---- lengths of chains ---- */

static bool is_in(const struct ledger_entry *e, const uint8_t key[LEDGER_KEY])
{
	return memcmp(e->host, key, LEDGER_KEY) == 0 || memcmp(e->client, key, LEDGER_KEY) == 0;
}

static const uint8_t *partner_of(const struct ledger_export *x, const struct ledger_entry *e)
{
	return memcmp(e->host, x->owner.sign_key, LEDGER_KEY) == 0 ? e->client : e->host;
}

static int by_partner(const void *a, const void *b)
{
	return memcmp(((const struct ledger_length *)a)->partner,
		      ((const struct ledger_length *)b)->partner, LEDGER_KEY);
}

/* Where the last entry of a partner stands in the file decides between equal ones. */
static int by_partner_and_place(const void *a, const void *b)
{
	const struct ledger_length *x = a, *y = b;
	int c = by_partner(a, b);

	return c != 0 ? c : (x->entries > y->entries) - (x->entries < y->entries);
}

/* Of the chains that the export holds, ascending; by free(). */
static struct ledger_length *count_chains(const struct ledger_export *x, size_t *n)
{
	struct ledger_length *at = mem_array(x->n + 1, sizeof(*at));
	size_t in = 0;

	for (size_t k = 0; k < x->n; k++) {
		memcpy(at[k].partner, partner_of(x, &x->at[k].entry), LEDGER_KEY);
		memcpy(at[k].head, x->at[k].hash, LEDGER_HASH);
		at[k].entries = k;
	}
	qsort(at, x->n, sizeof(*at), by_partner_and_place);
	for (size_t k = 0; k < x->n; k++) {
		bool more = in > 0 && by_partner(&at[in - 1], &at[k]) == 0;
		uint64_t entries = more ? at[in - 1].entries + 1 : 1;

		in += !more;
		at[in - 1] = at[k];
		at[in - 1].entries = entries;
	}
	*n = in;
	return at;
}

static const uint8_t *statements_head(const struct ledger_export *x)
{
	static const uint8_t none[LEDGER_HASH];

	return x->n_stated > 0 ? x->stated[x->n_stated - 1].hash : none;
}

void ledger_export_seal(struct ledger_export *x, int64_t time_ms, const char *nonce,
			const uint8_t secret[LEDGER_SECRET])
{
	uint8_t hash[LEDGER_HASH];

	free(x->chains);
	x->chains = count_chains(x, &x->n_chains);
	x->statements = x->n_stated;
	memcpy(x->statements_head, statements_head(x), LEDGER_HASH);
	x->time_ms = time_ms > 0 ? time_ms : 0;
	snprintf(x->nonce, sizeof(x->nonce), "%s", nonce != NULL ? nonce : "");
	export_hash(x, hash);
	crypto_sign_detached(x->signature, NULL, hash, sizeof(hash), secret);
}

/* ---- does it hold ---- */

struct check { /* at one export */
	const struct ledger_export *x;
	struct ledger_report *report;
	struct ledger_chain own; /* findings about the export as a whole stand under its owner */
};

static struct ledger_name owner_of(const struct check *l)
{
	return ledger_name_of(l->report, l->x->owner.sign_key);
}

static void check_length(const struct check *l, const struct ledger_length *said,
			 const struct ledger_length *here)
{
	struct ledger_name partner = ledger_name_of(l->report, said->partner);

	if (here->entries < said->entries)
		FIND(l->report, &l->own, LEDGER_CUT, here->entries + 1, false,
		     "the export of %s was cut: it had %llu entries with %s when it was signed, "
		     "and has %llu",
		     owner_of(l).text, ULL(said->entries), partner.text, ULL(here->entries));
	else if (here->entries > said->entries)
		FIND(l->report, &l->own, LEDGER_CUT, said->entries + 1, false,
		     "the export of %s was mixed: it had %llu entries with %s when it was signed, "
		     "and has %llu",
		     owner_of(l).text, ULL(said->entries), partner.text, ULL(here->entries));
	else if (memcmp(here->head, said->head, LEDGER_HASH) != 0)
		FIND(l->report, &l->own, LEDGER_CUT, said->entries, false,
		     "the export of %s was mixed: its chain with %s ends with another entry than "
		     "when it was signed",
		     owner_of(l).text, partner.text);
}

/* Both lists ascend; the stated one may be any stranger's. */
static void check_chains(const struct check *l)
{
	const struct ledger_export *x = l->x;
	struct ledger_length *here;
	size_t n, i = 0, k = 0;

	here = count_chains(x, &n);
	while (i < x->n_chains || k < n) {
		int c = i == x->n_chains ? 1 : k == n ? -1 : by_partner(&x->chains[i], &here[k]);
		struct ledger_length none = { .entries = 0 };

		memcpy(none.partner, c < 0 ? x->chains[i].partner : here[k].partner, LEDGER_KEY);
		check_length(l, c <= 0 ? &x->chains[i] : &none, c >= 0 ? &here[k] : &none);
		i += c <= 0;
		k += c >= 0;
	}
	free(here);
}

static void check_statements(const struct check *l)
{
	const struct ledger_export *x = l->x;

	if (x->n_stated != x->statements)
		FIND(l->report, &l->own, LEDGER_CUT, 0, false,
		     "the export of %s was %s: it had %llu statements about training when it was "
		     "signed, and has %zu",
		     owner_of(l).text, x->n_stated < x->statements ? "cut" : "mixed",
		     ULL(x->statements), x->n_stated);
	else if (memcmp(statements_head(x), x->statements_head, LEDGER_HASH) != 0)
		FIND(l->report, &l->own, LEDGER_CUT, 0, false,
		     "the export of %s was mixed: its statements about training end with another "
		     "one than when it was signed",
		     owner_of(l).text);
}

/* The first one of many is enough. */
static void check_foreign(const struct check *l)
{
	const struct ledger_export *x = l->x;

	for (size_t k = 0; k < x->n; k++) {
		const struct ledger_entry *e = &x->at[k].entry;

		if (!is_in(e, x->owner.sign_key))
			FIND(l->report, &l->own, LEDGER_FOREIGN, e->sequence, false,
			     "the export of %s holds entry %llu between %s and %s, which is none "
			     "of its own",
			     owner_of(l).text, ULL(e->sequence),
			     ledger_name_of(l->report, e->host).text,
			     ledger_name_of(l->report, e->client).text);
		else if (!x->whole && !is_in(e, x->peer))
			FIND(l->report, &l->own, LEDGER_FOREIGN, e->sequence, false,
			     "the export of %s is of its pair with %s alone, and holds entry %llu "
			     "with %s",
			     owner_of(l).text, ledger_name_of(l->report, x->peer).text,
			     ULL(e->sequence), ledger_name_of(l->report, partner_of(x, e)).text);
		else
			continue;
		return;
	}
}

static void check_signature(const struct check *l)
{
	const struct ledger_export *x = l->x;
	uint8_t hash[LEDGER_HASH];

	export_hash(x, hash);
	if (crypto_sign_verify_detached(
		    x->signature, hash, sizeof(hash),
		    ledger_rotations_signer(&x->rotations, x->owner.sign_key)) != 0)
		FIND(l->report, &l->own, LEDGER_SEAL, 0, false,
		     "the export is not as %s, whom it names as its owner, signed it: something "
		     "in it was changed, or it is another agent's export under this name",
		     owner_of(l).text);
}

static void note(const struct check *l, const char *what)
{
	FIND(l->report, &l->own, LEDGER_NOT_CHECKED, 0, true, "not checked: %s", what);
}

/* ---- the keys of partners ---- */

static int by_sign_key(const void *a, const void *b)
{
	return memcmp((*(const struct ledger_party *const *)a)->sign_key,
		      (*(const struct ledger_party *const *)b)->sign_key, LEDGER_KEY);
}

static int by_key(const void *a, const void *b)
{
	return memcmp((*(const struct ledger_party *const *)a)->key,
		      (*(const struct ledger_party *const *)b)->key, LEDGER_KEY);
}

static void check_once(const struct check *l, const struct ledger_party **at, size_t n,
		       int (*by)(const void *, const void *))
{
	qsort(at, n, sizeof(*at), by);
	for (size_t k = 1; k < n; k++)
		if (by(&at[k - 1], &at[k]) == 0)
			FIND(l->report, &l->own, LEDGER_PARTY, 0, false,
			     "the export of %s has a key of %s twice among its parties",
			     owner_of(l).text, ledger_name_of(l->report, at[k]->sign_key).text);
}

static void check_last_key(const struct check *l, const struct ledger_party *p)
{
	const struct ledger_rotation *last = ledger_rotations_last(&l->x->rotations, p->sign_key);

	if (last != NULL && memcmp(last->new_key, p->key, LEDGER_KEY) != 0)
		FIND(l->report, &l->own, LEDGER_PARTY, 0, false,
		     "the export of %s has another key of %s than its last rotation of keys says",
		     owner_of(l).text, ledger_name_of(l->report, p->sign_key).text);
}

static void check_parties(const struct check *l)
{
	const struct ledger_export *x = l->x;
	const struct ledger_party **at = mem_array(x->n_parties + 1, sizeof(*at));

	for (size_t k = 0; k < x->n_parties; k++)
		at[k] = &x->parties[k];
	at[x->n_parties] = &x->owner;
	check_once(l, at, x->n_parties + 1, by_sign_key);
	check_once(l, at, x->n_parties + 1, by_key);
	for (size_t k = 0; k <= x->n_parties; k++)
		check_last_key(l, at[k]);
	free(at);
}

/* Has one who replaced its keys ever had this one? */
static bool had_key(const struct ledger_rotations *all, const struct ledger_party *p,
		    const uint8_t key[LEDGER_KEY])
{
	bool had = memcmp(p->key, key, LEDGER_KEY) == 0;

	for (size_t k = 0; k < all->n; k++)
		had = had || (memcmp(all->at[k].account, p->sign_key, LEDGER_KEY) == 0 &&
			      (memcmp(all->at[k].old_key, key, LEDGER_KEY) == 0 ||
			       memcmp(all->at[k].new_key, key, LEDGER_KEY) == 0));
	return had;
}

/* The keys that one export states for the other's owner must be those that the other states, or
 * some that it has replaced since. */
static void check_partner_key(const struct check *l, const struct ledger_export *of)
{
	const struct ledger_party *other = &of->owner;

	for (size_t k = 0; k < l->x->n_parties; k++) {
		const struct ledger_party *p = &l->x->parties[k];

		if ((memcmp(p->sign_key, other->sign_key, LEDGER_KEY) == 0) !=
		    had_key(&of->rotations, other, p->key))
			FIND(l->report, &l->own, LEDGER_PARTY, 0, false,
			     "the export of %s has other keys of %s than its own export",
			     owner_of(l).text, ledger_name_of(l->report, other->sign_key).text);
	}
}

/* ---- what the auditor asked for ---- */

static void check_request(const struct check *l, const struct ledger_request *request)
{
	const struct ledger_export *x = l->x;

	if (request->nonce != NULL && x->nonce[0] == '\0')
		FIND(l->report, &l->own, LEDGER_NONCE, 0, false,
		     "the export of %s was made without a nonce, not with '%.60s'",
		     owner_of(l).text, request->nonce);
	else if (request->nonce != NULL && strcmp(x->nonce, request->nonce) != 0)
		FIND(l->report, &l->own, LEDGER_NONCE, 0, false,
		     "the export of %s was made for another audit: with the nonce '%.60s', not "
		     "'%.60s'",
		     owner_of(l).text, x->nonce, request->nonce);
	if (x->time_ms < request->since_ms)
		FIND(l->report, &l->own, LEDGER_NONCE, 0, false,
		     "the export of %s is old: it was made %llu s before the time that is asked "
		     "for",
		     owner_of(l).text, ULL((request->since_ms - x->time_ms) / 1000));
	if (request->now_ms > 0 && x->time_ms - LEDGER_AHEAD_MS > request->now_ms)
		FIND(l->report, &l->own, LEDGER_NONCE, 0, false,
		     "the export of %s is dated %llu s later than now: it was made in advance, or "
		     "a clock is wrong",
		     owner_of(l).text, ULL((x->time_ms - request->now_ms) / 1000));
}

/* ---- what was not checked ---- */

/* Partners whose own exports are not here: only those would show the end cut off. */
static void note_alone(const struct check *l, const struct ledger_export *other)
{
	enum { NAMED = 3 };
	struct buf names = { 0 };
	size_t alone = 0;

	for (size_t k = 0; k < l->x->n_chains; k++) {
		if (other != NULL &&
		    memcmp(l->x->chains[k].partner, other->owner.sign_key, LEDGER_KEY) == 0)
			continue;
		if (alone < NAMED)
			buf_printf(&names, "%s%s", alone > 0 ? ", " : "",
				   ledger_name_of(l->report, l->x->chains[k].partner).text);
		alone++;
	}
	if (alone > NAMED)
		buf_printf(&names, " and %zu more", alone - NAMED);
	if (alone > 0)
		FIND(l->report, &l->own, LEDGER_NOT_CHECKED, 0, true,
		     "not checked: whether %s left entries out, or has another history, with %.*s: "
		     "no export of that partner was given",
		     owner_of(l).text, (int)names.len, (const char *)names.base);
	buf_release(&names);
}

static void note_unchecked(const struct check *l, const struct ledger_export *other,
			   const struct ledger_request *request)
{
	struct ledger_name owner = owner_of(l);
	char text[ERR_TEXT_MAX / 2];

	note_alone(l, other);
	if (l->x->whole) {
		snprintf(text, sizeof(text),
			 "whether %s has had other partners: one that is left out whole shows in "
			 "that partner's export alone",
			 owner.text);
		note(l, text);
	} else {
		snprintf(text, sizeof(text),
			 "%s's other partners, and its totals over all of them: the export is of "
			 "one pair alone",
			 owner.text);
		note(l, text);
	}
	if (request->nonce == NULL && !request->fresh) {
		snprintf(text, sizeof(text), "that the export of %s is not an old one%s",
			 owner.text,
			 request->since_ms == 0
				 ? ": no nonce and no time was asked for (--nonce, --since)"
				 : ", but by its owner's clock: only a nonce shows it (--nonce)");
		note(l, text);
	}
	snprintf(text, sizeof(text),
		 "what %s has spent or trained since it was made, and statements about training "
		 "that a restored store has lost: nobody else holds those",
		 owner.text);
	note(l, text);
}

/* ---- all of it ---- */

static void check_init(struct check *l, const struct ledger_export *x, struct ledger_report *r)
{
	l->x = x;
	l->report = r;
	ledger_chain_init(&l->own, x->owner.sign_key, x->owner.sign_key);
}

static void check_whole(const struct check *l, const struct ledger_request *request)
{
	check_chains(l);
	check_statements(l);
	check_foreign(l);
	check_parties(l);
	check_signature(l);
	check_request(l, request);
}

int ledger_audit(const struct ledger_export *x, size_t n, const struct ledger_request *request,
		 struct ledger_report *r)
{
	struct check check[2];

	assert(n == 1 || n == 2);
	for (size_t i = 0; i < n; i++) {
		check_init(&check[i], &x[i], r);
		check_whole(&check[i], request);
	}
	if (n == 2) {
		err_ignore(ledger_verify_pair(&x[0], &x[1], r)); /* r counts them all */
		check_partner_key(&check[0], &x[1]);
		check_partner_key(&check[1], &x[0]);
	} else {
		err_ignore(ledger_verify(&x[0], r));
	}
	note(&check[0], "whose keys these are: compare the fingerprints with what each company's "
			"`fkge id --fingerprint` shows");
	for (size_t i = 0; i < n; i++)
		note_unchecked(&check[i], n == 2 ? &x[1 - i] : NULL, request);
	return r->faults > 0 ? ERR_LEDGER : 0;
}
