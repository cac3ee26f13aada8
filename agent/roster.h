/* agent/roster.h - the peers an agent knows, and how an owner names one of them.
 *
 * Pure: the running agent and a command beside a stopped one share it, so that
 * `fkge peer accept` means the same in both.
 *
 * A host that knows our address can knock with any number of keys, so the records of those that are
 * no partners are bounded, by number, by age and by where they come from.  A peer that is forgotten
 * may knock again: nobody is kept out by being remembered, but by not being listed. */
#ifndef AGENT_ROSTER_H
#define AGENT_ROSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/batch.h"
#include "store/ledger/rotation.h"

enum {
	ROSTER_PENDING_MAX = 64, /* strangers that wait for the owner, */
	ROSTER_SOURCE_MAX = 4,	 /* of one source (struct store_peer) */
	ROSTER_REJECTED_MAX = 256,
	ROSTER_REVOKED_MAX = 256, /* besides those who stay: roster_may_forget() */
};

#define ROSTER_PENDING_MS INT64_C(1209600000) /* 14 days without a knock */
#define ROSTER_REJECTED_MS                                                                         \
	INT64_C(7776000000) /* 90 days after the last knock before it was rejected */

struct roster {
	struct store_peer *at;
	size_t n;
	struct ledger_rotations rotations; /* keys that were replaced: none is let in again */
};

void roster_release(struct roster *r);
/* The peer with this key, or NULL.  Good until the next call that changes the roster. */
struct store_peer *roster_find(const struct roster *r, const uint8_t key[STORE_KEY]);
/* Add it, or replace the one with its key. */
struct store_peer *roster_put(struct roster *r, const struct store_peer *p);
/* For readers of what was signed before: of each partner that has replaced its keys, a record with
 * those of before and its name.  None of them is a partner by these keys. */
void roster_add_replaced(struct roster *r);
void roster_remove(struct roster *r, const uint8_t key[STORE_KEY]); /* if it is there */

/* Text that an owner typed: a whole id, its first characters (at least 4), or a name that one peer
 * alone has.  ERR_NOTFOUND, ERR_USAGE when several fit.  What is a whole id is nobody's name. */
int roster_resolve(const struct roster *r, const char *text, struct store_peer **out,
		   struct err *e);
/* Does the text say enough of this id that nobody can make another key that fits?  80 bits. */
enum { ROSTER_ID_LEAST = 16 };
bool roster_spells(const uint8_t key[STORE_KEY], const char *text);

/* The owner's decisions; each changes *p, or says why it means nothing here. */
enum roster_verb { ROSTER_ACCEPT, ROSTER_REJECT, ROSTER_REVOKE };
int roster_decide(struct store_peer *p, enum roster_verb verb, struct err *e);
/* 0: the owner may have it forgotten; ERR_USAGE for a partner, for one that is on the ledger, and
 * for one that has signed accounts of rounds that are on record. */
int roster_may_forget(const struct store_peer *p, struct err *e);

/* A stranger knocked from `source` (net/uv/hub.h).  KNOCK_NEW: a pending entry was made;
 * KNOCK_AGAIN: it was there and is fresh again; KNOCK_KNOWN: an entry that is not pending, left
 * alone. */
enum roster_knocked { KNOCK_NEW, KNOCK_AGAIN, KNOCK_KNOWN };
enum roster_knocked roster_knock(struct roster *r, const uint8_t key[STORE_KEY], const char *source,
				 int64_t wall_ms);
/* Takes one entry that is too old, or one too many, out of the roster: false if there is none.  Of
 * those pending, first of a source that has more than its share, then of the one that has most; of
 * these the oldest.  So a newcomer stays, whoever else knocks from elsewhere. */
bool roster_trim(struct roster *r, int64_t wall_ms, uint8_t key[STORE_KEY]);

/* May there be a link to this key?  To a partner, or to an unknown or waiting key that is invited;
 * never to a key that its owner has replaced, whoever shows it. */
bool roster_lets_in(const struct roster *r, const uint8_t key[STORE_KEY], bool invited);
/* Is, or was, this Ed25519 key that of another one than the peer with this key? */
bool roster_sign_key_taken(const struct roster *r, const uint8_t key[STORE_KEY],
			   const uint8_t sign[STORE_KEY]);

size_t roster_listed(const struct roster *r);		 /* how many partners */
const char *roster_standing(const struct store_peer *p); /* "pending", "partner", ... */

#endif
