/* store/ledger/verify.h - does a ledger hold?  For auditors, who have nothing but exports.
 *
 * An export holds the entries of one agent with all its partners, or of one
 * pair.  ledger_audit() is what an auditor asks: is each export as its owner signed it, as a
 * whole (store/ledger/seal.c); does what it holds fit together (ledger_verify()); do two partners'
 * fit each other (ledger_verify_pair()); and what could not be checked.  All look at everything and
 * report each thing that is wrong, in words; one broken entry does not hide the next.
 *
 * A note is not a fault: entries at the end that the partner has not
 * countersigned yet, sessions that have not settled, clocks that were set back, a delta at which
 * epsilon says little, and whatever was not checked. */
#ifndef STORE_LEDGER_VERIFY_H
#define STORE_LEDGER_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/ledger/entry.h"
#include "store/ledger/rotation.h"
#include "store/ledger/statement.h"

enum { LEDGER_NAME_MAX = 128, LEDGER_NONCE_MAX = 129 }; /* bytes with the NUL */

/* An agent, as the owner of an export knows it. */
struct ledger_party {
	uint8_t key[LEDGER_KEY];      /* X25519: what `fkge id` shows */
	uint8_t sign_key[LEDGER_KEY]; /* Ed25519: its account, which entries name */
	char name[LEDGER_NAME_MAX];   /* one line of text; may be empty */
};

struct ledger_length {					/* of one chain in an export */
	uint8_t partner[LEDGER_KEY], head[LEDGER_HASH]; /* hash of its last entry there */
	uint64_t entries;
};

struct ledger_export {
	struct ledger_party owner;
	bool whole;		      /* all chains of its owner; else that with `peer` alone */
	uint8_t peer[LEDGER_KEY];     /* Ed25519; zeros when whole */
	struct ledger_party *parties; /* partners that the owner has keys of */
	size_t n_parties;
	struct ledger_signed *at; /* entry, hash as stated, signatures as stated */
	size_t n;
	struct ledger_stated *stated; /* about the owner's own training; hashes as stated */
	size_t n_stated;
	struct ledger_rotations rotations; /* of keys; each follows the one before */
	/* Fields that ledger_export_seal() adds. */
	int64_t time_ms;	      /* when it was made, by its owner's clock */
	char nonce[LEDGER_NONCE_MAX]; /* the auditor's; empty: none */
	struct ledger_length *chains; /* by partner, ascending */
	size_t n_chains;
	uint64_t statements;
	uint8_t statements_head[LEDGER_HASH]; /* zeros: there are none */
	uint8_t signature[LEDGER_SIGNATURE];
};

/* Of a store whose partners have handed entries back: into the order in which the owner wrote its
 * own (store/ledger/order.c).  Each chain stays in its order. */
void ledger_export_sort(struct ledger_export *x);
void ledger_export_release(struct ledger_export *x);

/* ---- the export as a whole (store/ledger/seal.c) ----
 *
 * Its owner signs, with Ed25519, BLAKE2b-256 of these bytes, numbers as 8 bytes little-endian, a
 * text as its length and its bytes: "fkge ledger export 2", NUL owner: key, sign_key, name; peer;
 * time; nonce number of parties, and of each: key, sign_key, name number of chains, and of each:
 * partner, entries, head; number of statements, their head number of entries, and of each: its
 * encoding, hash, signature, 1 or 0 and countersignature number of statements, and of each: its
 * encoding, hash, signature.  Where keys were replaced it is "fkge ledger export 3", and number of
 * rotations and the bytes of each come last; the key is the owner's last one.
 * So no part can be cut, renamed, put under another owner or another
 * time, or mixed. */

/* Fill chains and statements from what the export holds, and sign it.  secret is the owner's. */
void ledger_export_seal(struct ledger_export *x, int64_t time_ms, const char *nonce,
			const uint8_t secret[LEDGER_SECRET]);

enum ledger_fault {
	LEDGER_EDITED,		/* contents do not give the stated hash */
	LEDGER_BAD_SIGNATURE,	/* not the host's */
	LEDGER_BAD_COUNTERSIGN, /* not the client's */
	LEDGER_NOT_COUNTERSIGNED,
	LEDGER_DELETED,	     /* numbers are missing */
	LEDGER_BROKEN_CHAIN, /* does not continue the entry before */
	LEDGER_CAP_PASSED,
	LEDGER_UNDERCOUNT,  /* a total is lower than the entries before allow */
	LEDGER_RULE,	    /* another rule of store/ledger/entry.h */
	LEDGER_EPSILON,	    /* the caps are more labels than the stated epsilon allows */
	LEDGER_STATED,	    /* a statement of the owner about its training (its delta: note) */
	LEDGER_FORKED,	    /* two exports, another entry under the same number */
	LEDGER_SHORTER,	    /* one export lacks entries that its owner has signed */
	LEDGER_BEHIND,	    /* one export lacks entries that its owner has not seen (note) */
	LEDGER_UNSETTLED,   /* a session without its settle (note) */
	LEDGER_DELTA,	    /* a contract at a delta that says little (note) */
	LEDGER_CLOCK,	    /* its writer's clock was set back before it (note) */
	LEDGER_SEAL,	    /* the export is not as its owner signed it */
	LEDGER_CUT,	    /* a chain is not as long as its owner signed for */
	LEDGER_FOREIGN,	    /* an entry that is none of its owner's, or not of the pair */
	LEDGER_NONCE,	    /* made for another audit, too long ago, or in advance */
	LEDGER_PARTY,	    /* one name or key for two agents, or two keys for one */
	LEDGER_NOT_CHECKED, /* what nothing that was given can show (note) */
};

struct ledger_finding {
	enum ledger_fault fault;
	bool note;
	uint64_t sequence;			   /* 0: the chain as a whole */
	uint8_t low[LEDGER_KEY], high[LEDGER_KEY]; /* which chain */
	char text[ERR_TEXT_MAX];
};

enum { LEDGER_NAME_TEXT = 96 };
/* How findings call the agent that signs with this key. */
typedef void (*ledger_name_fn)(void *ctx, const uint8_t sign_key[LEDGER_KEY],
			       char out[LEDGER_NAME_TEXT]);

struct ledger_report {
	struct ledger_finding *at;
	size_t n, faults;		    /* faults: those that are not notes */
	size_t entries, chains, statements; /* looked at */
	ledger_name_fn name;		    /* NULL: the first bytes of the key */
	void *name_ctx;
};

void ledger_report_release(struct ledger_report *r);

/* The auditor's demands on exports, beside that they hold. */
struct ledger_request {
	const char *nonce; /* NULL: nothing was asked */
	int64_t since_ms;  /* made then or later, by its owner's clock; 0: nothing was asked */
	int64_t now_ms;	   /* the auditor's clock; 0: it has none */
	bool fresh;	   /* the one export was made here, just now */
};
/* Clocks differ: an export may be dated by so much later than the auditor's. */
#define LEDGER_AHEAD_MS (INT64_C(5) * 60 * 1000)

/* One export, or two of partners, as a whole and entry by entry, and what was not checked.
 * Returns 0, or ERR_LEDGER when there is a fault.  *r is zeroed but for name and name_ctx. */
MUST_CHECK int ledger_audit(const struct ledger_export *x, size_t n,
			    const struct ledger_request *request, struct ledger_report *r);

/* The entries and statements alone: whether the export is signed is not looked at.
 * Returns 0, or ERR_LEDGER when there is a fault.  *r must be zeroed or released. */
MUST_CHECK int ledger_verify(const struct ledger_export *x, struct ledger_report *r);
/* Each alone (ledger_verify() findings first), then against each other.  They are of two owners;
 * the chain compared is the one between the two. */
MUST_CHECK int ledger_verify_pair(const struct ledger_export *a, const struct ledger_export *b,
				  struct ledger_report *r);

/* The chains that an intact export contains, each to be released and freed; *out by
 * free().  ERR_LEDGER at the first fault. */
MUST_CHECK int ledger_export_chains(const struct ledger_export *x, struct ledger_chain ***out,
				    size_t *n, struct err *e);

/* The spending of a session, against what is left. */
struct ledger_quote {
	uint64_t labels, pair_spent, pair_cap, lineage_spent, lineage_cap;
	double pair_epsilon, lineage_epsilon;		  /* now */
	double pair_epsilon_after, lineage_epsilon_after; /* with the labels asked for */
	bool fits;
};
MUST_CHECK int ledger_quote(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
			    const struct ledger_lineage *lineage, uint64_t labels,
			    struct ledger_quote *out, struct err *e);

/* ---- JSON (store/export.c, in store_lib) ----
 *
 * {"fkge_ledger": 2, "owner": {"key": hex, "sign_key": hex, "name": text}, "peer": hex or null,
 *  "time": ms, "nonce": text or null, "parties": [{"key": hex, ...}],
 *  "chains": [{"partner": hex, "entries": n, "head": hex}],
 *  "training": {"statements": n, "head": hex},
 *  "entries": [{"kind": "reserve", "host": hex, ..., "hash": hex, "signature": hex,
 *  "countersignature": hex or null}],
 *  "statements": [{"noise": "gaussian", ..., "hash": hex, "signature": hex}], "signature": hex}
 * Version 3, of an owner or partners that have replaced keys: "rotations": [text], as
 * ledger_rotation_format(), beside the others.
 * Fields are named as in store/ledger/entry.h and store/ledger/statement.h and re-encoded when
 * read, so that what is shown is what is signed.  Every key must be there, once, and no other. */

void store_export_write(const struct ledger_export *x, struct buf *out);
/* ERR_INPUT: no such file; ERR_VERSION: of a later fkge; ERR_LEDGER: keys are missing, unknown or
 * repeated, or an export of version 1, which nobody signed as a whole. */
MUST_CHECK int store_export_read(struct ledger_export *x, const void *json, size_t n,
				 struct err *e);

#endif
