/* audit/accounts_verify.c - exports of rounds held against themselves and each other. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "audit/accounts_internal.h"
#include "base/mem.h"
#include "net/ident.h"
#include "store/ledger/verify.h"

struct side { /* one export on the way through it */
	const struct accounts_export *x;
	const uint8_t *agent;		      /* first_key_of() its owner */
	const struct accounts_round **by_id;  /* [x->n] sorted */
	const struct accounts_party **by_key; /* [x->n_parties] sorted */
	bool *intact;			      /* [x->n] what it says is what its owner signed */
	uint64_t last;			      /* the highest number of a round */
	bool twice;			      /* another export is of this agent, too */
};

enum { MADE_AFTER_MS = 10 * 60 * 1000 };

struct audit {
	struct side *at;
	size_t n;
	struct accounts_report *report;
	/* of all exports, but for those that do not follow and those that are false */
	struct ledger_rotations rotations;
};

/* ---- findings ---- */

void accounts_report_release(struct accounts_report *r)
{
	free(r->at);
	memset(r, 0, sizeof(*r));
}

static struct accounts_finding *add(struct accounts_report *r, enum accounts_fault fault, bool note,
				    const struct accounts_round *round, const uint8_t *member)
{
	struct accounts_finding *f;

	if ((r->n & (r->n - 1)) == 0) /* full: the next power of two */
		r->at = mem_resize(r->at, r->n > 0 ? 2 * r->n : 1, sizeof(*r->at));
	f = &r->at[r->n++];
	memset(f, 0, sizeof(*f));
	f->fault = fault;
	f->note = note;
	if (round != NULL) {
		f->number = round->round.number;
		memcpy(f->id, round->round.id, STORE_ROUND);
	}
	if (member != NULL)
		memcpy(f->member, member, STORE_KEY);
	if (!note)
		r->faults++;
	return f;
}

#define FIND(a, fault, note, round, member, ...)                                                   \
	snprintf(add((a)->report, fault, note, round, member)->text, ERR_TEXT_MAX, __VA_ARGS__)

/* ---- who is who ---- */

static int compare_rounds(const void *a, const void *b)
{
	const struct accounts_round *x = *(const struct accounts_round *const *)a;
	const struct accounts_round *y = *(const struct accounts_round *const *)b;
	int c = memcmp(x->round.id, y->round.id, STORE_ROUND);

	return c != 0 ? c : (x > y) - (x < y);
}

static int compare_parties(const void *a, const void *b)
{
	return memcmp((*(const struct accounts_party *const *)a)->key,
		      (*(const struct accounts_party *const *)b)->key, STORE_KEY);
}

static void side_init(struct side *s, const struct accounts_export *x)
{
	s->x = x;
	s->agent = x->owner.key;
	s->by_id = mem_array(x->n + 1, sizeof(struct accounts_round *));
	s->by_key = mem_array(x->n_parties + 1, sizeof(struct accounts_party *));
	s->intact = mem_array(x->n + 1, sizeof(*s->intact));
	for (size_t k = 0; k < x->n; k++) {
		s->by_id[k] = &x->at[k];
		if (x->at[k].round.number > s->last)
			s->last = x->at[k].round.number;
	}
	for (size_t k = 0; k < x->n_parties; k++)
		s->by_key[k] = &x->parties[k];
	qsort(s->by_id, x->n, sizeof(*s->by_id), compare_rounds);
	qsort(s->by_key, x->n_parties, sizeof(*s->by_key), compare_parties);
}

static void side_release(struct side *s)
{
	free(s->by_id);
	free(s->by_key);
	free(s->intact);
}

static const struct accounts_party *party_of(const struct side *s, const uint8_t key[STORE_KEY])
{
	struct accounts_party want;
	const struct accounts_party *p = &want, **at;

	if (memcmp(s->x->owner.key, key, STORE_KEY) == 0)
		return &s->x->owner;
	memcpy(want.key, key, STORE_KEY);
	at = bsearch(&p, s->by_key, s->x->n_parties, sizeof(*s->by_key), compare_parties);
	return at != NULL ? *at : NULL;
}

static int compare_id(const void *id, const void *round)
{
	return memcmp(id, (*(const struct accounts_round *const *)round)->round.id, STORE_ROUND);
}

/* Any of them, where there are several. */
static const struct accounts_round *round_of(const struct side *s, const uint8_t id[STORE_ROUND])
{
	const struct accounts_round **at =
		bsearch(id, s->by_id, s->x->n, sizeof(*s->by_id), compare_id);

	return at != NULL ? *at : NULL;
}

static bool is_intact(const struct side *s, const struct accounts_round *r)
{
	return s->intact[r - s->x->at];
}

/* The link key that its agent began with: itself if nothing was replaced. */
static const uint8_t *first_key_of(const struct audit *a, const uint8_t key[STORE_KEY])
{
	const struct ledger_rotations *all = &a->rotations;
	const struct ledger_rotation *into = NULL;

	for (size_t k = 0; k < all->n && into == NULL; k++)
		if (memcmp(all->at[k].new_key, key, STORE_KEY) == 0)
			into = &all->at[k];
	for (size_t k = 0; into != NULL && k < all->n;
	     k++) /* the first of its account comes first */
		if (memcmp(all->at[k].account, into->account, LEDGER_KEY) == 0)
			return all->at[k].old_key;
	return key;
}

static bool is_key_of(const struct audit *a, const struct side *s, const uint8_t key[STORE_KEY])
{
	return memcmp(first_key_of(a, key), s->agent, STORE_KEY) == 0;
}

/* The first export of whoever has this key, or had it. */
static const struct side *given_of(const struct audit *a, const uint8_t key[STORE_KEY])
{
	const uint8_t *agent = first_key_of(a, key);

	for (size_t i = 0; i < a->n; i++)
		if (memcmp(a->at[i].agent, agent, STORE_KEY) == 0)
			return &a->at[i];
	return NULL;
}

/* The same; NULL also where two exports say that they are. */
static const struct side *side_of(const struct audit *a, const uint8_t key[STORE_KEY])
{
	const struct side *s = given_of(a, key);

	return s != NULL && !s->twice ? s : NULL;
}

/* The key that the owner of s had in a round; its present one where it is not in the roster. */
static const uint8_t *key_in_round(const struct audit *a, const struct side *s,
				   const struct store_round *r)
{
	for (uint32_t i = 0; i < r->n_members; i++)
		if (is_key_of(a, s, r->members[i].key))
			return r->members[i].key;
	return s->x->owner.key;
}

/* Has this export the keys that took the place of these, too? */
static bool is_followed(const struct audit *a, const struct side *s, const uint8_t key[STORE_KEY])
{
	const struct ledger_rotation *r = ledger_rotations_replaced(&a->rotations, key);

	for (; r != NULL; r = ledger_rotations_replaced(&a->rotations, r->new_key))
		if (party_of(s, r->new_key) != NULL)
			return true;
	return false;
}

static const struct store_round_member *member_of(const struct store_round *r,
						  const uint8_t key[STORE_KEY])
{
	for (uint32_t i = 0; i < r->n_members; i++)
		if (memcmp(r->members[i].key, key, STORE_KEY) == 0)
			return &r->members[i];
	return NULL;
}

struct name {
	char text[80];
};

static struct name format_name(const struct accounts_party *p, const uint8_t key[STORE_KEY])
{
	char id[NET_KEY_TEXT];
	struct name n;

	net_key_format(key, id);
	if (p != NULL && p->name[0] != '\0')
		snprintf(n.text, sizeof(n.text), "%.60s (%.9s)", p->name, id);
	else
		snprintf(n.text, sizeof(n.text), "%.9s", id);
	return n;
}

/* As this export calls it, with the first of its id. */
static struct name party_name(const struct side *s, const uint8_t key[STORE_KEY])
{
	return format_name(party_of(s, key), key);
}

/* As its own export calls it, else as this one does. */
static struct name name_of(const struct audit *a, const struct side *s,
			   const uint8_t key[STORE_KEY])
{
	const struct side *own = side_of(a, key);

	return own != NULL ? format_name(&own->x->owner, key) : party_name(s, key);
}

static struct name owner_name(const struct audit *a, const struct side *s)
{
	return name_of(a, s, s->x->owner.key);
}

struct title {
	char text[48];
};

static struct title title_of(const struct accounts_round *r)
{
	struct title t;
	char id[9];

	sodium_bin2hex(id, sizeof(id), r->round.id, 4);
	snprintf(t.text, sizeof(t.text), "round %llu (%s)", ULL(r->round.number), id);
	return t;
}

/* ---- rotations that are false ----
 *
 * What a rotation proves is that the old signing key and the new one agree.  The X25519 keys in it
 * are its writer's word: with a signing key made for it anybody can write that another's key was
 * its own.  Whose key it is its holder says, too, in an export of its own. */

/* How much an export says that this key is its owner's: 2: it is, 1: it was, 0: nothing.  *sign:
 * the key that signs beside it. */
static int own_word(const struct accounts_export *x, const uint8_t key[STORE_KEY],
		    const uint8_t **sign)
{
	const uint8_t *own = ledger_rotations_account(&x->rotations, x->owner.sign_key);

	*sign = x->owner.sign_key;
	if (memcmp(x->owner.key, key, STORE_KEY) == 0)
		return 2;
	for (size_t k = 0; k < x->rotations.n; k++) {
		const struct ledger_rotation *r = &x->rotations.at[k];

		if (memcmp(r->account, own, LEDGER_KEY) != 0 ||
		    memcmp(r->old_key, key, STORE_KEY) != 0)
			continue;
		*sign = r->old_sign;
		return 1;
	}
	return 0;
}

/* What speaks for these two as the keys of one agent: how many exports name them so, whose owners
 * do not say that this key is their own; where that is equal, the best word of an owner. */
static size_t word_for(const struct audit *a, const uint8_t key[STORE_KEY],
		       const uint8_t sign_key[STORE_KEY])
{
	size_t named = 0;
	int own = 0;

	for (size_t i = 0; i < a->n; i++) {
		const struct accounts_party *p = party_of(&a->at[i], key);
		const uint8_t *sign;
		int word = own_word(a->at[i].x, key, &sign);

		named += word == 0 && p != NULL && memcmp(p->sign_key, sign_key, STORE_KEY) == 0;
		if (word > own && memcmp(sign, sign_key, STORE_KEY) == 0)
			own = word;
	}
	return 3 * named + (size_t)own;
}

/* The export whose owner says that this key is its own, beside another one to sign with, and is to
 * be believed rather. */
static const struct side *who_contradicts(const struct audit *a, const uint8_t key[STORE_KEY],
					  const uint8_t sign_key[STORE_KEY])
{
	for (size_t i = 0; i < a->n; i++) {
		const uint8_t *sign;

		if (own_word(a->at[i].x, key, &sign) > 0 &&
		    memcmp(sign, sign_key, STORE_KEY) != 0 &&
		    word_for(a, key, sign) > word_for(a, key, sign_key))
			return &a->at[i];
	}
	return NULL;
}

/* Of an account of which one is false, none is followed. */
static bool is_false_account(const struct audit *a, const struct side *s,
			     const uint8_t account[LEDGER_KEY])
{
	const struct ledger_rotations *own = &s->x->rotations;

	for (size_t k = 0; k < own->n; k++)
		if (memcmp(own->at[k].account, account, LEDGER_KEY) == 0 &&
		    (who_contradicts(a, own->at[k].old_key, own->at[k].old_sign) != NULL ||
		     who_contradicts(a, own->at[k].new_key, own->at[k].new_sign) != NULL))
			return true;
	return false;
}

static void find_false_key(struct audit *a, const struct side *s, const uint8_t key[STORE_KEY],
			   const uint8_t sign_key[STORE_KEY])
{
	const struct side *t = who_contradicts(a, key, sign_key);

	if (t != NULL)
		FIND(a, ACCOUNTS_KEYS, false, NULL, key,
		     "%s has another key to sign with in its own export than where its keys were "
		     "replaced, in the export of %s: that is not followed",
		     party_name(t, key).text, party_name(s, s->x->owner.key).text);
}

/* ---- all exports together ---- */

static void join_rotation(struct audit *a, const struct side *s, const struct ledger_rotation *r,
			  bool says)
{
	struct err why = { 0 };

	if (ledger_rotations_have(&a->rotations, r))
		return;
	if (is_false_account(a, s, r->account)) {
		if (says) {
			find_false_key(a, s, r->old_key, r->old_sign);
			find_false_key(a, s, r->new_key, r->new_sign);
		}
		return;
	}
	if (ledger_rotations_add(&a->rotations, r, &why) != 0 && says)
		FIND(a, ACCOUNTS_KEYS, false, NULL, r->old_key,
		     "the exports differ in what keys of %s were replaced by: %.300s",
		     name_of(a, s, r->old_key).text, why.text);
}

/* own: those of its owner, else those of others. */
static void join_rotations(struct audit *a, const struct side *s, bool own, bool says)
{
	const struct ledger_rotations *all = &s->x->rotations;
	const uint8_t *account = ledger_rotations_account(all, s->x->owner.sign_key);

	for (size_t k = 0; k < all->n; k++)
		if ((memcmp(all->at[k].account, account, LEDGER_KEY) == 0) == own)
			join_rotation(a, s, &all->at[k], says);
}

/* says: what the exports do not agree on is a finding.  Two rotations under one number are of two
 * who hold the old keys: an owner's own word comes before that of others. */
static void audit_open(struct audit *a, const struct accounts_export *x, size_t n,
		       struct accounts_report *r, bool says)
{
	*a = (struct audit){ .at = mem_array(n + 1, sizeof(*a->at)), .n = n, .report = r };
	for (size_t i = 0; i < n; i++)
		side_init(&a->at[i], &x[i]);
	for (size_t i = 0; i < n; i++)
		join_rotations(a, &a->at[i], true, says);
	for (size_t i = 0; i < n; i++)
		join_rotations(a, &a->at[i], false, says);
	for (size_t i = 0; i < n; i++)
		a->at[i].agent = first_key_of(a, x[i].owner.key);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < n; j++)
			a->at[i].twice |=
				i != j && memcmp(a->at[i].agent, a->at[j].agent, STORE_KEY) == 0;
}

static int audit_close(struct audit *a)
{
	for (size_t i = 0; i < a->n; i++)
		side_release(&a->at[i]);
	free(a->at);
	ledger_rotations_release(&a->rotations);
	return a->report->faults > 0 ? ERR_LEDGER : 0;
}

/* ---- what the owner has signed ---- */

static void check_head(struct audit *a, struct side *s)
{
	uint8_t hash[ACCOUNTS_HASH];

	accounts_head_hash(s->x, hash);
	if (crypto_sign_verify_detached(s->x->signature, hash, ACCOUNTS_HASH,
					s->x->owner.sign_key) != 0)
		FIND(a, ACCOUNTS_HEAD, false, NULL, NULL,
		     "%s: the export is not as its owner signed it: keys or names were changed, or "
		     "rounds were taken away or added at its end",
		     owner_name(a, s).text);
}

static bool check_record(struct audit *a, const struct side *s, const struct accounts_round *r)
{
	uint8_t hash[ACCOUNTS_HASH];

	accounts_hash(s->x, r, hash);
	if (memcmp(hash, r->hash, ACCOUNTS_HASH) != 0) {
		FIND(a, ACCOUNTS_EDITED, false, r, NULL,
		     "%s: the record of %s was edited: its contents do not give its hash",
		     title_of(r).text, owner_name(a, s).text);
		return false;
	}
	if (crypto_sign_verify_detached(r->signature, hash, ACCOUNTS_HASH, s->x->owner.sign_key) ==
	    0)
		return true;
	FIND(a, ACCOUNTS_BAD_SIGNATURE, false, r, NULL, "%s: the record is not signed by %s",
	     title_of(r).text, owner_name(a, s).text);
	return false;
}

static void check_chain(struct audit *a, const struct side *s, size_t k)
{
	static const uint8_t none[ACCOUNTS_HASH];
	const struct accounts_round *r = &s->x->at[k];

	if (memcmp(r->previous, k > 0 ? r[-1].hash : none, ACCOUNTS_HASH) == 0)
		return;
	if (k == 0)
		FIND(a, ACCOUNTS_DELETED, false, r, NULL,
		     "%s: rounds before it were deleted from the export of %s", title_of(r).text,
		     owner_name(a, s).text);
	else
		FIND(a, ACCOUNTS_DELETED, false, r, NULL,
		     "%s does not continue %s in the export of %s: rounds between them were "
		     "deleted, or one was put out of its place",
		     title_of(r).text, title_of(r - 1).text, owner_name(a, s).text);
}

/* A gap is honest where an agent was away, so the reader of the note has to judge it. */
static void note_gap(struct audit *a, const struct side *s, size_t k)
{
	const struct accounts_round *r = &s->x->at[k];

	if (k == 0 || r->round.number <= r[-1].round.number + 1)
		return;
	FIND(a, ACCOUNTS_GAP, true, r, NULL,
	     "%s follows round %llu in the export of %s: of the numbers between them it has no "
	     "record",
	     title_of(r).text, ULL(r[-1].round.number), owner_name(a, s).text);
}

static void check_twice(struct audit *a, const struct side *s)
{
	for (size_t k = 1; k < s->x->n; k++)
		if (memcmp(s->by_id[k - 1]->round.id, s->by_id[k]->round.id, STORE_ROUND) == 0)
			FIND(a, ACCOUNTS_REPEATED, false, s->by_id[k], NULL,
			     "%s has two records in the export of %s", title_of(s->by_id[k]).text,
			     owner_name(a, s).text);
}

static bool is_of_two(const struct audit *a, const uint8_t *agent)
{
	for (size_t i = 0; i < a->n; i++)
		if (a->at[i].twice && memcmp(a->at[i].agent, agent, STORE_KEY) == 0)
			return true;
	return false;
}

/* Where two say that they are one agent, its keys may be of both. */
static bool is_listed_before(const struct audit *a, const struct store_round *r,
			     uint32_t participant)
{
	const uint8_t *agent = first_key_of(a, r->members[participant].key);

	if (is_of_two(a, agent))
		agent = r->members[participant].key;
	for (uint32_t i = 0; i < participant; i++)
		if (memcmp(first_key_of(a, r->members[i].key), agent, STORE_KEY) == 0)
			return true;
	return false;
}

/* Or figures of the second could stand beside those that were looked at. */
static void check_participants(struct audit *a, const struct side *s,
			       const struct accounts_round *r)
{
	for (uint32_t i = 1; i < r->round.n_members; i++)
		if (is_listed_before(a, &r->round, i))
			FIND(a, ACCOUNTS_REPEATED, false, r, r->round.members[i].key,
			     "%s: %s is twice among its members in the export of %s",
			     title_of(r).text, name_of(a, s, r->round.members[i].key).text,
			     owner_name(a, s).text);
}

/* A store makes sums of the oldest when it has more than STORE_ROUNDS_MAX, and keeps so many. */
static void check_folded_rounds(struct audit *a, const struct side *s)
{
	const struct accounts_export *x = s->x;

	if (x->older > 0 && x->n < STORE_ROUNDS_MAX)
		FIND(a, ACCOUNTS_DELETED, false, NULL, NULL,
		     "the export of %s says that %llu older rounds are in sums alone, and has %zu "
		     "where a store keeps the newest %d: rounds were deleted",
		     owner_name(a, s).text, ULL(x->older), x->n, STORE_ROUNDS_MAX);
}

static void check_side(struct audit *a, struct side *s)
{
	check_head(a, s);
	check_folded_rounds(a, s);
	for (size_t k = 0; k < s->x->n; k++) {
		s->intact[k] = check_record(a, s, &s->x->at[k]);
		if (s->intact[k])
			check_participants(a, s, &s->x->at[k]);
		check_chain(a, s, k);
		note_gap(a, s, k);
	}
	check_twice(a, s);
	a->report->rounds += s->x->n;
}

/* ---- keys ---- */

/* One key for each, or accounts of a second one's making would pass beside the fingerprint of the
 * first. */
static void check_parties(struct audit *a, const struct side *s)
{
	for (size_t k = 0; k < s->x->n_parties; k++) {
		const uint8_t *key = s->by_key[k]->key;

		if (memcmp(key, s->x->owner.key, STORE_KEY) == 0 ||
		    (k > 0 && memcmp(key, s->by_key[k - 1]->key, STORE_KEY) == 0))
			FIND(a, ACCOUNTS_KEYS, false, NULL, key,
			     "%s has more than one key to sign with in the export of %s",
			     name_of(a, s, key).text, owner_name(a, s).text);
	}
}

static void check_own_key(struct audit *a, const struct side *s, const struct side *t)
{
	const struct accounts_party *p = party_of(s, t->x->owner.key);

	if (p != NULL && memcmp(p->sign_key, t->x->owner.sign_key, STORE_KEY) != 0)
		FIND(a, ACCOUNTS_KEYS, false, NULL, t->x->owner.key,
		     "%s has another key to sign with in the export of %s than in its own",
		     owner_name(a, t).text, owner_name(a, s).text);
}

/* Of those whose own export is not here. */
static void check_third_keys(struct audit *a, const struct side *s, const struct side *t)
{
	for (size_t k = 0; k < t->x->n_parties; k++) {
		const struct accounts_party *q = &t->x->parties[k], *p = party_of(s, q->key);

		if (p != NULL && memcmp(p->sign_key, q->sign_key, STORE_KEY) != 0 &&
		    side_of(a, q->key) == NULL)
			FIND(a, ACCOUNTS_KEYS, false, NULL, q->key,
			     "%s has another key to sign with in the export of %s than in that "
			     "of %s",
			     name_of(a, t, q->key).text, owner_name(a, s).text,
			     owner_name(a, t).text);
	}
}

/* Keys that one is said to have had or to have now are the same wherever they stand, or somebody's
 * rotation would make another's keys its own. */
static void check_pair_of_keys(struct audit *a, const uint8_t key[STORE_KEY],
			       const uint8_t sign_key[STORE_KEY])
{
	for (size_t i = 0; i < a->n; i++) {
		const struct accounts_party *p = party_of(&a->at[i], key);

		if (p != NULL && memcmp(p->sign_key, sign_key, STORE_KEY) != 0)
			FIND(a, ACCOUNTS_KEYS, false, NULL, key,
			     "%s has another key to sign with in the export of %s than where its "
			     "keys were replaced",
			     name_of(a, &a->at[i], key).text, owner_name(a, &a->at[i]).text);
	}
}

static void check_keys(struct audit *a)
{
	for (size_t k = 0; k < a->rotations.n; k++) {
		const struct ledger_rotation *r = &a->rotations.at[k];

		check_pair_of_keys(a, r->old_key, r->old_sign);
		if (ledger_rotations_replaced(&a->rotations, r->new_key) == NULL)
			check_pair_of_keys(a, r->new_key, r->new_sign);
	}
	for (size_t i = 0; i < a->n; i++) {
		check_parties(a, &a->at[i]);
		for (size_t j = 0; j < a->n; j++)
			if (i != j)
				check_own_key(a, &a->at[i], &a->at[j]);
		for (size_t j = i + 1; j < a->n; j++)
			check_third_keys(a, &a->at[i], &a->at[j]);
	}
}

/* ---- figures ---- */

/* Rows or numbers that one member sent and the other got. */
struct flow {
	const char *what;
	uint64_t sent, got;
};

static void check_flow(struct audit *a, const struct accounts_round *r, const uint8_t *member,
		       const char *from, const char *to, const struct flow *f, bool all_came)
{
	bool note = f->got < f->sent && !all_came;

	if (f->got == f->sent)
		return;
	FIND(a, note ? ACCOUNTS_LOST : ACCOUNTS_CONTRADICT, note, r, member,
	     "%s: %s says that it sent %s %llu %s, which says that it got %llu%s", title_of(r).text,
	     from, to, ULL(f->sent), f->what, ULL(f->got),
	     note ? " (one of them was late, lost or stopped)" : "");
}

/* us: of the owner r is; mine as it counts, theirs as the member does.  all_in, all_out: the
 * receiver, we or it, says that everything came. */
static void check_flows(struct audit *a, const struct side *s, const struct accounts_round *r,
			const uint8_t *member, struct fed_traffic mine, struct fed_traffic theirs,
			bool all_in, bool all_out)
{
	struct name us = owner_name(a, s), it = name_of(a, s, member);
	const struct flow out[] = { { "rows", mine.rows_out, theirs.rows_in },
				    { "numbers", mine.floats_out, theirs.floats_in } };
	const struct flow in[] = { { "rows", theirs.rows_out, mine.rows_in },
				   { "numbers", theirs.floats_out, mine.floats_in } };

	for (int i = 0; i < 2; i++) {
		check_flow(a, r, member, us.text, it.text, &out[i], all_out);
		check_flow(a, r, member, it.text, us.text, &in[i], all_in);
	}
}

/* Whether all that this member sent came, as the record says.  Under masks a stage that is done
 * again, since another was lost, drops rows that travelled. */
static bool all_came(const struct store_round *r, const struct store_round_member *m)
{
	if (r->outcome != 0 || m->fate != FED_TOOK_PART)
		return false;
	for (uint32_t i = 0; r->secret_bits > 0 && i < r->n_members; i++)
		if (r->members[i].fate != FED_TOOK_PART)
			return false;
	return true;
}

static bool same_traffic(struct fed_traffic x, struct fed_traffic y)
{
	return x.rows_out == y.rows_out && x.rows_in == y.rows_in && x.floats_out == y.floats_out &&
	       x.floats_in == y.floats_in;
}

/* ---- an account that a member has signed for an owner ---- */

static bool fits(const struct audit *a, const struct side *s, const struct store_round *r,
		 const struct store_round_member *m, const uint8_t sign_key[STORE_KEY])
{
	struct fed_account_head h = { .number = r->number,
				      .method = r->method,
				      .hosted = r->hosted,
				      .secret_bits = r->secret_bits };
	const struct fed_traffic t = accounts_signed(m);
	char text[FED_ACCOUNT_MAX];

	memcpy(h.id, r->id, sizeof(h.id));
	fed_account_text(text, &h, m->key, key_in_round(a, s, r), &t);
	return fed_account_is_signed(text, m->signature, sign_key);
}

/* Silent: where a round went well for both, it should not be. */
static void check_silent(struct audit *a, const struct side *s, const struct accounts_round *r,
			 const struct store_round_member *m, const struct accounts_round *other)
{
	bool newest = r == &s->x->at[s->x->n - 1];
	bool note = other != NULL || newest || r->round.outcome != 0 || m->fate != FED_TOOK_PART;
	const char *why = other != NULL ? "; its own export has the round"
			  : newest	? "; it may still come"
			  : !note ? "; it was silent, or the account was lost: its own export "
				    "would tell"
				  : "";

	FIND(a, ACCOUNTS_MISSING, note, r, m->key, "%s: no account of %s in the export of %s%s",
	     title_of(r).text, name_of(a, s, m->key).text, owner_name(a, s).text, why);
}

/* Returns whether it has signed what the record holds. */
static bool check_signed(struct audit *a, const struct side *s, const struct side *t,
			 const struct accounts_round *r, const struct store_round_member *m)
{
	const struct accounts_party *p = t != NULL ? party_of(t, m->key) : NULL;

	if (p == NULL) /* or its own export was made before it had this key */
		p = party_of(s, m->key);
	if (p == NULL)
		FIND(a, ACCOUNTS_UNKNOWN, false, r, m->key,
		     "%s: the account of %s cannot be checked: the export of %s has no key of it",
		     title_of(r).text, name_of(a, s, m->key).text, owner_name(a, s).text);
	else if (m->refused[0] != '\0')
		FIND(a, ACCOUNTS_REFUSED, false, r, m->key,
		     fits(a, s, &r->round, m, p->sign_key)
			     ? "%s: the account of %s was refused by %s (%s), and yet it is signed"
			     : "%s: the account of %s was refused by %s: %s",
		     title_of(r).text, name_of(a, s, m->key).text, owner_name(a, s).text,
		     m->refused);
	else if (!fits(a, s, &r->round, m, p->sign_key))
		FIND(a, ACCOUNTS_FORGED, false, r, m->key,
		     "%s: the account of %s in the export of %s is forged: %s did not sign it",
		     title_of(r).text, name_of(a, s, m->key).text, owner_name(a, s).text,
		     name_of(a, s, m->key).text);
	else {
		a->report->accounts++;
		return true;
	}
	return false;
}

/* ---- the member's own export ---- */

/* By the clocks of two, which their owners may have set wrong: a word to the reader, no fault. */
static bool was_made_long_after(const struct side *t, const struct accounts_round *r)
{
	return t->x->time_ms - r->round.finished_ms > MADE_AFTER_MS;
}

/* Why it may be honest that an export lacks a round; NULL: it is not.  One that was made earlier
 * ends before the round; one that lacks all of them would not have been made. */
static const char *lacks_since(const struct side *t, const struct accounts_round *r)
{
	const struct accounts_export *x = t->x;

	if (x->older > 0 && (x->n == 0 || r->round.number <= x->at[0].round.number))
		return " (whose oldest rounds are in sums alone)";
	if (x->n > 0 && r->round.number > t->last)
		return was_made_long_after(t, r) ? " (which ends before it, and says that it was "
						   "made over ten minutes "
						   "after it: cut off, unless a clock is wrong)"
						 : " (which ends before it: made earlier, or cut "
						   "off; ask for a newer one)";
	return NULL;
}

/* A round that t's export lacks is no fault of t's where only the word of s says that t was in it:
 * a member signs when its record is on its disk, and a member that ends before that has neither. */
static void check_lacks(struct audit *a, const struct side *s, const struct side *t,
			const struct accounts_round *r, const struct store_round_member *m,
			bool has_signed)
{
	struct name it = name_of(a, s, m->key), us = owner_name(a, s);
	const char *why = lacks_since(t, r);

	FIND(a, ACCOUNTS_LACKS, why != NULL || !has_signed, r, m->key,
	     "%s is not in the export of %s%s, which %s %s%s", title_of(r).text, it.text,
	     why != NULL ? why : "",
	     has_signed ? "has signed an account of it for" : "was in it by the unsigned word of",
	     us.text,
	     why != NULL  ? ""
	     : has_signed ? ": it was deleted, or its store put back from an older copy"
			  : ": it was stopped before it could write (killed, its disk full), or "
			    "never took part");
}

static const char *different(const struct store_round *x, const struct store_round *y)
{
	if (x->number != y->number)
		return "another number";
	if (strcmp(x->method, y->method) != 0)
		return "another method";
	if (x->hosted != y->hosted)
		return "another topology";
	if (x->secret_bits != y->secret_bits)
		return "other secret_bits";
	if (memcmp(x->proposer, y->proposer, STORE_KEY) != 0)
		return "another proposer";
	if (x->n_members != y->n_members)
		return "other members";
	for (uint32_t i = 0; i < x->n_members; i++)
		if (member_of(y, x->members[i].key) == NULL)
			return "other members";
	return NULL;
}

/* Once for a pair; t's side of it is not looked at where its record leaves s out. */
static bool is_ours(const struct audit *a, const struct side *s, const struct side *t,
		    const struct accounts_round *q)
{
	return s < t || member_of(&q->round, key_in_round(a, s, &q->round)) == NULL;
}

/* The records of both; m: t in that of s. */
static void check_pair(struct audit *a, const struct side *s, const struct side *t,
		       const struct accounts_round *r, const struct store_round_member *m,
		       const struct accounts_round *q)
{
	const struct store_round_member *us = member_of(&q->round, key_in_round(a, s, &q->round));
	const char *what = different(&r->round, &q->round);

	if (what != NULL)
		FIND(a, ACCOUNTS_CONTRADICT, false, r, m->key,
		     "%s: the records of %s and %s contradict each other: %s", title_of(r).text,
		     owner_name(a, s).text, owner_name(a, t).text, what);
	if (us != NULL)
		check_flows(a, s, r, m->key, accounts_counted(m), accounts_counted(us),
			    all_came(&r->round, m), all_came(&q->round, us));
}

static void check_two_words(struct audit *a, const struct side *s, const struct accounts_round *r,
			    const struct store_round_member *m, const struct accounts_round *q)
{
	const struct store_round_member *us = member_of(&q->round, key_in_round(a, s, &q->round));

	if (us != NULL && !same_traffic(accounts_signed(m), accounts_counted(us)))
		FIND(a, ACCOUNTS_TWO_WORDS, false, r, m->key,
		     "%s: %s signed other figures for %s than its own export has (edited, or "
		     "put back from an older copy)",
		     title_of(r).text, name_of(a, s, m->key).text, owner_name(a, s).text);
}

/* ---- all of it ---- */

static void check_member(struct audit *a, const struct side *s, const struct accounts_round *r,
			 const struct store_round_member *m)
{
	const struct side *t = side_of(a, m->key);
	const struct accounts_round *q = t != NULL ? round_of(t, r->round.id) : NULL;
	bool has_signed = m->has_account && check_signed(a, s, t, r, m);

	if (!m->has_account && (t == NULL || q != NULL))
		check_silent(a, s, r, m, q);
	if (t != NULL && q == NULL)
		check_lacks(a, s, t, r, m, has_signed);
	if (q != NULL && is_intact(t, q)) {
		if (is_ours(a, s, t, q))
			check_pair(a, s, t, r, m, q);
		if (has_signed)
			check_two_words(a, s, r, m, q);
	} else if (has_signed) {
		check_flows(a, s, r, m->key, accounts_counted(m), accounts_signed(m),
			    all_came(&r->round, m), false);
	}
}

static void check_members(struct audit *a, const struct side *s)
{
	for (size_t k = 0; k < s->x->n; k++) {
		const struct accounts_round *r = &s->x->at[k];

		for (uint32_t i = 0; s->intact[k] && i < r->round.n_members; i++)
			if (!is_key_of(a, s, r->round.members[i].key))
				check_member(a, s, r, &r->round.members[i]);
	}
}

/* Of an agent with two exports neither is held against others: they are looked at alone. */
static void check_sides(struct audit *a)
{
	for (size_t i = 0; i < a->n; i++)
		check_side(a, &a->at[i]);
	for (size_t i = 0; i < a->n; i++)
		if (!a->at[i].twice)
			check_members(a, &a->at[i]);
}

static void check_owners(struct audit *a)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t j = 0; j < i; j++) {
			if (memcmp(a->at[i].agent, a->at[j].agent, STORE_KEY) != 0)
				continue;
			FIND(a, ACCOUNTS_KEYS, false, NULL, a->at[i].x->owner.key,
			     "two of the exports are of one owner, %s",
			     party_name(&a->at[i], a->at[i].x->owner.key).text);
			break;
		}
}

int accounts_verify(const struct accounts_export *x, size_t n, struct accounts_report *r)
{
	struct audit a;

	audit_open(&a, x, n, r, true);
	check_owners(&a);
	check_keys(&a);
	check_sides(&a);
	return audit_close(&a);
}

/* ---- keys that are known ---- */

void accounts_fingerprint(const struct accounts_party *p, char out[NET_ID_TEXT])
{
	struct net_ident keys;

	memcpy(keys.noise, p->key, STORE_KEY);
	memcpy(keys.sign, p->sign_key, STORE_KEY);
	net_ident_short(&keys, out);
}

static bool has_fingerprint(const struct accounts_party *p, const char *fingerprint)
{
	char text[NET_ID_TEXT];

	accounts_fingerprint(p, text);
	return strcmp(text, fingerprint) == 0;
}

bool accounts_is_pinned(const struct accounts_party *p, const struct accounts_pin *pins, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (has_fingerprint(p, pins[i].fingerprint))
			return true;
	return false;
}

/* The keys that its agent has now, as far as these exports know. */
static struct accounts_party newest_keys(const struct audit *a, const struct accounts_party *p)
{
	const struct ledger_rotation *r = ledger_rotations_replaced(&a->rotations, p->key);
	struct accounts_party now = *p;

	if (r != NULL)
		r = ledger_rotations_last(&a->rotations, r->account);
	if (r != NULL) {
		memcpy(now.key, r->new_key, STORE_KEY);
		memcpy(now.sign_key, r->new_sign, STORE_KEY);
	}
	return now;
}

/* Returns whether this party has the key. */
static bool check_party_pin(struct audit *a, const struct side *s, const struct accounts_party *p,
			    const struct accounts_pin *pin)
{
	struct accounts_party now = newest_keys(a, p);
	char text[NET_ID_TEXT];

	if (is_followed(a, s, p->key)) /* that party says it */
		return false;
	accounts_fingerprint(&now, text);
	if (strcmp(text, pin->fingerprint) == 0)
		return true;
	if (strcmp(p->name, pin->name) != 0)
		return false;
	FIND(a, ACCOUNTS_KEYS, false, NULL, p->key,
	     "%.60s has the fingerprint %s in the export of %s, and %s was given for it", p->name,
	     text, owner_name(a, s).text, pin->fingerprint);
	return false;
}

static void check_pin(struct audit *a, const struct accounts_pin *pin)
{
	bool found = false;

	for (size_t i = 0; i < a->n; i++) {
		const struct side *s = &a->at[i];

		found |= check_party_pin(a, s, &s->x->owner, pin);
		for (size_t k = 0; k < s->x->n_parties; k++)
			found |= check_party_pin(a, s, &s->x->parties[k], pin);
	}
	if (!found)
		FIND(a, ACCOUNTS_KEYS, false, NULL, NULL,
		     "no export has a member with the fingerprint %s, which was given for %.60s",
		     pin->fingerprint, pin->name);
}

static bool is_named(const struct accounts_party *p, const struct accounts_pin *pins, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(p->name, pins[i].name) == 0)
			return true;
	return false;
}

int accounts_check_pins(const struct accounts_export *x, size_t n, const struct accounts_pin *pins,
			size_t n_pins, struct accounts_report *r)
{
	struct audit a;

	audit_open(&a, x, n, r, false);
	for (size_t k = 0; k < n_pins; k++)
		check_pin(&a, &pins[k]);
	for (size_t i = 0; n_pins > 0 && i < n; i++)
		if (!accounts_is_pinned(&x[i].owner, pins, n_pins) &&
		    !is_named(&x[i].owner, pins, n_pins)) /* that is a fault already */
			FIND(&a, ACCOUNTS_KEYS, true, NULL, x[i].owner.key,
			     "nothing was given to know the key of %s by",
			     owner_name(&a, &a.at[i]).text);
	return audit_close(&a);
}

/* ---- what the auditor asked for, and what nothing here can show ---- */

static void check_asked(struct audit *a, const struct side *s,
			const struct accounts_request *request)
{
	const struct accounts_export *x = s->x;

	if (request->nonce != NULL && x->nonce[0] == '\0')
		FIND(a, ACCOUNTS_NONCE, false, NULL, x->owner.key,
		     "the export of %s was made without a nonce, not with '%.60s'",
		     owner_name(a, s).text, request->nonce);
	else if (request->nonce != NULL && strcmp(x->nonce, request->nonce) != 0)
		FIND(a, ACCOUNTS_NONCE, false, NULL, x->owner.key,
		     "the export of %s was made for another audit: with the nonce '%.60s', not "
		     "'%.60s'",
		     owner_name(a, s).text, x->nonce, request->nonce);
	if (x->time_ms < request->since_ms)
		FIND(a, ACCOUNTS_NONCE, false, NULL, x->owner.key,
		     "the export of %s is old: it was made %.1f s before the time that is asked "
		     "for",
		     owner_name(a, s).text, (double)(request->since_ms - x->time_ms) / 1000);
	if (request->now_ms > 0 && x->time_ms - LEDGER_AHEAD_MS > request->now_ms)
		FIND(a, ACCOUNTS_NONCE, false, NULL, x->owner.key,
		     "the export of %s is dated %llu s later than now: it was made in advance, or "
		     "a clock is wrong",
		     owner_name(a, s).text, ULL((x->time_ms - request->now_ms) / 1000));
}

static void note_unchecked(struct audit *a, const struct side *s,
			   const struct accounts_request *request)
{
	const struct accounts_export *x = s->x;
	size_t alone = 0;

	for (size_t k = 0; k < x->n_parties; k++)
		alone += given_of(a, x->parties[k].key) == NULL &&
			 !is_followed(a, s, x->parties[k].key);
	if (alone > 0)
		FIND(a, ACCOUNTS_NOT_CHECKED, true, NULL, x->owner.key,
		     "not checked: what %zu member%s of %s's rounds count%s by themselves: their "
		     "own exports were not given",
		     alone, alone == 1 ? "" : "s", owner_name(a, s).text, alone == 1 ? "s" : "");
	if (s->twice)
		FIND(a, ACCOUNTS_NOT_CHECKED, true, NULL, x->owner.key,
		     "not checked: the rounds of %s against those of the others, since two of the "
		     "exports are of it, or say that they are",
		     party_name(s, x->owner.key).text);
	if (x->older > 0)
		FIND(a, ACCOUNTS_NOT_CHECKED, true, NULL, x->owner.key,
		     "not checked: %llu older rounds of %s, of which only sums are left",
		     ULL(x->older), owner_name(a, s).text);
	if (request->nonce == NULL)
		FIND(a, ACCOUNTS_NOT_CHECKED, true, NULL, x->owner.key,
		     "not checked: that the export of %s is not an old one%s",
		     owner_name(a, s).text,
		     request->since_ms == 0
			     ? ": no nonce and no time was asked for (--nonce, --since)"
			     : ", but by its owner's clock: only a nonce shows it (--nonce)");
}

int accounts_check_request(const struct accounts_export *x, size_t n,
			   const struct accounts_request *request, struct accounts_report *r)
{
	struct audit a;

	audit_open(&a, x, n, r, false);
	for (size_t i = 0; i < n; i++) {
		check_asked(&a, &a.at[i], request);
		note_unchecked(&a, &a.at[i], request);
	}
	return audit_close(&a);
}
