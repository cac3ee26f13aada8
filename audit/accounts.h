/* audit/accounts.h - does what members of rounds say of each other hold?  For auditors, who have
 * nothing but exports.
 *
 * An export is what one agent has on record of its rounds (store/batch.h): of each round the
 * roster, what it counts of each other member, and what that member has signed of the same
 * for it (fed/round.h struct fed_account_head).  The owner signs each record and chains it to
 * the one before, and signs how many there are: so it cannot take back later what it has
 * handed out, and nobody can edit, delete or add behind its back.
 *
 * accounts_verify() looks at exports of any number of members, each alone and each against each
 * other.  It looks at everything and reports each thing that is wrong, in words; of a record that
 * was edited nothing is held against anybody.  A member never says that it got more than the other
 * says it sent.  Less may be honest, when one was late or lost; when the receiver says that all
 * came, both figures must be equal.
 *
 * Signed is, with Ed25519, BLAKE2b-256 over a tag, NUL and lines of text:
 *   a round    "fkge round record 1", as record_text() has it
 *   the export "fkge rounds export 2", as head_text() has it; 3 where keys were replaced
 *
 * Rounds, and accounts in them, name link keys, and an owner may replace its own: rotations
 * (store/ledger/rotation.h) say which keys are of one agent.  An export has those of its owner and
 * of the members of its rounds, and each key that stood in a roster is a party.  Those of all
 * exports that are given together count.  Two that cannot both be are a fault; the owner's own word
 * counts then.  So is one that makes another owner's key its own: it is not followed.
 *
 * A note is not a fault: numbers that no round has (an agent may miss rounds), an account
 * that may still come or that the member's own export makes up for, rows lost on the way, rounds
 * later than all of an export, which may have been made before them, and rounds that an export
 * lacks and its owner has signed nothing of for the other: it may have been stopped before it
 * could write them down.  A claim that nothing given can show is noted as not checked. */
#ifndef AUDIT_ACCOUNTS_H
#define AUDIT_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "fed/round.h"
#include "net/ident.h"
#include "store/batch.h"
#include "store/ledger/rotation.h"

enum { ACCOUNTS_HASH = 32, ACCOUNTS_NONCE_MAX = 129 /* with the NUL */ };

struct accounts_party {
	uint8_t key[STORE_KEY], sign_key[STORE_KEY];
	char name[STORE_NAME_MAX]; /* as the owner calls it */
};

struct accounts_round {
	/* No participants but those of the roster; no figures of its own work. */
	struct store_round round;
	uint8_t hash[ACCOUNTS_HASH], signature[FED_SIGNATURE];
	uint8_t previous[ACCOUNTS_HASH]; /* hash of the one before; zeros at the first */
};

struct accounts_export {
	struct accounts_party owner;
	struct accounts_party
		*parties; /* all that may have signed something, by each of its keys */
	size_t n_parties;
	struct ledger_rotations rotations; /* of keys of these */
	uint64_t older;			   /* rounds before these, of which only sums are left */
	struct accounts_round *at;	   /* the oldest first */
	size_t n;
	int64_t time_ms;		/* when it was made, by its owner's clock */
	char nonce[ACCOUNTS_NONCE_MAX]; /* the auditor's; empty: none */
	uint8_t signature[FED_SIGNATURE];
};

void accounts_release(struct accounts_export *x);

/* Chain, hashes and signatures of the owner; its time and nonce are filled in. */
void accounts_sign(struct accounts_export *x, const uint8_t sign_secret[FED_SIGN_SECRET]);

enum accounts_fault {
	ACCOUNTS_HEAD,		/* not the rounds that its owner has signed, all of them */
	ACCOUNTS_EDITED,	/* contents of a record do not give its hash */
	ACCOUNTS_BAD_SIGNATURE, /* of a record */
	ACCOUNTS_DELETED,	/* a record does not continue the one before */
	ACCOUNTS_REPEATED,	/* two records of one round, or one member twice in one */
	ACCOUNTS_FORGED,	/* an account that the member did not sign */
	ACCOUNTS_REFUSED,	/* ... and so the owner has refused it; or it did, and so it lies */
	ACCOUNTS_UNKNOWN,	/* nobody's key is there to check it with */
	ACCOUNTS_MISSING,	/* a member that took part has signed nothing (or note) */
	ACCOUNTS_CONTRADICT,	/* figures, or facts of the round, of two sides */
	ACCOUNTS_TWO_WORDS,	/* who signed for another has other figures in its own export */
	ACCOUNTS_KEYS,		/* two exports of one owner, two keys for one member, or another
				 * than is known to be its */
	ACCOUNTS_LACKS,		/* one export lacks a round that its owner has signed (or note) */
	ACCOUNTS_GAP,		/* numbers that no record has (note) */
	ACCOUNTS_LOST,		/* rows that were sent and did not come (note) */
	ACCOUNTS_NONCE,		/* made for another audit, or too long ago */
	ACCOUNTS_NOT_CHECKED,	/* what nothing that was given can show (note) */
};

struct accounts_finding {
	enum accounts_fault fault;
	bool note;
	uint64_t number;	   /* of the round; 0 where it is about the export */
	uint8_t id[STORE_ROUND];   /* its id, or zeros */
	uint8_t member[STORE_KEY]; /* of whom; zeros: of the owner itself */
	char text[ERR_TEXT_MAX];
};

struct accounts_report {
	struct accounts_finding *at;
	size_t n, faults;	 /* faults: those that are not notes */
	size_t rounds, accounts; /* records looked at; accounts whose signature fits */
};

void accounts_report_release(struct accounts_report *r);
/* Returns 0, or ERR_LEDGER when there is a fault.  *r must be zeroed or released. */
int accounts_verify(const struct accounts_export *x, size_t n, struct accounts_report *r);

/* The auditor's knowledge of keys from elsewhere: nothing in an export says who owns a key. */
struct accounts_pin {
	const char *name;	 /* as exports call the member */
	const char *fingerprint; /* accounts_fingerprint(), of the newest keys that exports know */
};

void accounts_fingerprint(const struct accounts_party *p, char out[NET_ID_TEXT]);
bool accounts_is_pinned(const struct accounts_party *p, const struct accounts_pin *pins, size_t n);
/* As accounts_verify(), which comes before it: a fault where a name has another fingerprint and
 * where nobody has this one; owners of whom none is known are noted. */
int accounts_check_pins(const struct accounts_export *x, size_t n, const struct accounts_pin *pins,
			size_t n_pins, struct accounts_report *r);

/* The auditor's demands on exports, beside that the exports hold. */
struct accounts_request {
	const char *nonce; /* NULL: nothing was asked */
	int64_t since_ms;  /* made then or later, by its owner's clock; 0: nothing was asked */
	int64_t now_ms;	   /* the auditor's clock; 0: it has none */
};

/* As accounts_verify(), which comes before it: a fault where an export is not the one that was
 * asked for; and notes of what was not checked. */
int accounts_check_request(const struct accounts_export *x, size_t n,
			   const struct accounts_request *request, struct accounts_report *r);

/* ---- JSON (accounts_json.c) ----
 *
 * {"fkge_rounds": 2, "owner": {"key": hex, "sign_key": hex, "name": text}, "time": ms,
 * "nonce": text or null, "older": 0, "parties":
 * [...], "rounds": [{"number": 7, "id": hex, ..., "members": [{"key": hex, "fate": "took part",
 * "rows_out": 12,
 *  ..., "signed": {"rows_out": 12, ..., "signature": hex, "refused": why or null} or null}],
 * "hash": hex, "signature": hex}], "signature": hex}
 *
 * Version 3, where keys were replaced: "rotations": [text], as ledger_rotation_format(), beside the
 * others. */

void accounts_write(const struct accounts_export *x, struct buf *out);
/* ERR_INPUT, ERR_VERSION; ERR_LEDGER: keys are missing, unknown or repeated.  On an error, the part
 * that was read is released. */
int accounts_read(struct accounts_export *x, const void *json, size_t n, struct err *e);

#endif
