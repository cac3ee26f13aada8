/* store/ledger/rotation.h - an agent's owner replaces its keys, and the ledger goes on.
 *
 * Entries and statements name an agent by its account: the Ed25519 key that it began with, which
 * stays for ever, and with it chains, totals, caps and the lineage.  What signs for the account may
 * change: a rotation says that from now on the new keys follow the old ones, and both sign it.  So
 * rotations of an account are a chain of their own, which anybody can follow from the account on.
 *
 * A rotation is given from hand to hand, and each partner's owner decides about it; whoever holds
 * the old keys can write one, the thief of them too (docs/THREAT-MODEL.md).
 *
 * The encoding, numbers little-endian:
 *
 *   offset size
 *        0    8  "fkgeROT1"
 *        8    8  number       1, 2, 3 ... of this account
 *       16    8  time         Unix time in ms; recorded, decides nothing
 *       24   32  account      Ed25519: the key that the agent began with
 *       56   32  old_key      X25519
 *       88   32  old_sign     Ed25519
 *      120   32  new_key      X25519
 *      152   32  new_sign     Ed25519
 *      184   32  previous     hash of the rotation before; zeros before the first
 *      216   64  by the old   Ed25519 over "fkge key rotation 1 from" and the hash
 *      280   64  by the new   Ed25519 over "fkge key rotation 1 to" and the hash
 *      344       end
 *
 * hash = BLAKE2b-256 of the first 216 bytes.  Pure. */
#ifndef STORE_LEDGER_ROTATION_H
#define STORE_LEDGER_ROTATION_H

#include "store/ledger/entry.h"

enum {
	LEDGER_ROTATION_BYTES = 344,
	LEDGER_ROTATION_TEXT = 480, /* one line of text with its NUL */
	LEDGER_ROTATIONS_MAX = 64,  /* of one account */
};

struct ledger_rotation {
	uint64_t number;
	int64_t time_ms;
	uint8_t account[LEDGER_KEY];
	uint8_t old_key[LEDGER_KEY], old_sign[LEDGER_KEY];
	uint8_t new_key[LEDGER_KEY], new_sign[LEDGER_KEY];
	uint8_t previous[LEDGER_HASH];
	uint8_t by_old[LEDGER_SIGNATURE], by_new[LEDGER_SIGNATURE];
	bool proved; /* the old keys are ours, or were on a link here (store/proved.h); no part of
		      * the bytes: a store says so */
};

/* Fill number and previous: it comes after `last` (NULL: it is the first of its account). */
void ledger_rotation_after(struct ledger_rotation *r, const struct ledger_rotation *last);
/* Fill both signatures. */
void ledger_rotation_sign(struct ledger_rotation *r, const uint8_t old_secret[LEDGER_SECRET],
			  const uint8_t new_secret[LEDGER_SECRET]);
void ledger_rotation_encode(const struct ledger_rotation *r, uint8_t out[LEDGER_ROTATION_BYTES]);
/* Strict, and checks both signatures; whether it follows others is asked of
 * ledger_rotations_add().  ERR_LEDGER. */
MUST_CHECK int ledger_rotation_decode(struct ledger_rotation *r, const uint8_t *bytes, size_t n,
				      struct err *err);

/* As text: "fkge-rotation1:" and base64 (RFC 4648, URL-safe, no padding); no newline. */
void ledger_rotation_format(const struct ledger_rotation *r, char out[LEDGER_ROTATION_TEXT]);
/* n bytes without spaces around them.  ERR_INPUT: no such line; ERR_LEDGER as above. */
MUST_CHECK int ledger_rotation_parse(struct ledger_rotation *r, const char *text, size_t n,
				     struct err *err);

/* ---- all that are known, of all accounts ---- */

struct ledger_rotations {
	struct ledger_rotation *at; /* those of one account in their order */
	size_t n;
};

void ledger_rotations_release(struct ledger_rotations *all);
void ledger_rotations_copy(struct ledger_rotations *to, const struct ledger_rotations *from);
/* The next one of its account.  ERR_LEDGER: it does not follow; *all is as it was.  Signatures are
 * not looked at: ledger_rotation_decode() has. */
MUST_CHECK int ledger_rotations_add(struct ledger_rotations *all, const struct ledger_rotation *r,
				    struct err *err);
/* The same in every byte? */
bool ledger_rotations_have(const struct ledger_rotations *all, const struct ledger_rotation *r);
/* The last one of this account; NULL: none. */
const struct ledger_rotation *ledger_rotations_last(const struct ledger_rotations *all,
						    const uint8_t account[LEDGER_KEY]);
/* The one that replaced this X25519 key; NULL: none. */
const struct ledger_rotation *ledger_rotations_replaced(const struct ledger_rotations *all,
							const uint8_t old_key[LEDGER_KEY]);
/* The same, of an old key that has proved itself here alone: whose it was is no mere word. */
const struct ledger_rotation *ledger_rotations_proved(const struct ledger_rotations *all,
						      const uint8_t old_key[LEDGER_KEY]);
/* Does or did this Ed25519 key sign for an account whose keys were replaced? */
bool ledger_rotations_know(const struct ledger_rotations *all, const uint8_t sign_key[LEDGER_KEY]);
/* The account for which this Ed25519 key signs, now or before: itself if nothing was rotated. */
const uint8_t *ledger_rotations_account(const struct ledger_rotations *all,
					const uint8_t sign_key[LEDGER_KEY]);
/* The Ed25519 key that signs for this account now. */
const uint8_t *ledger_rotations_signer(const struct ledger_rotations *all,
				       const uint8_t account[LEDGER_KEY]);

/* Signatures of c's two agents are looked at with the keys that followed, too, from here on. */
void ledger_chain_follow(struct ledger_chain *c, const struct ledger_rotations *all);
/* The keys of one account, the first one not among them.  Release with ledger_keys_release(). */
void ledger_keys_of(struct ledger_keys *k, const struct ledger_rotations *all,
		    const uint8_t account[LEDGER_KEY]);

#endif
