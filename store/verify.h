/* store/verify.h - does a ledger hold?  For auditors, who have nothing but exports.
 *
 * An export holds the entries of one agent with all its partners, or of one
 * pair.  ledger_verify() looks at one export alone, ledger_verify_pair() at two
 * partners' against each other.  Both look at everything and report each
 * thing that is wrong, in words; one broken entry does not hide the next.
 *
 * A note is not a fault: entries at the end that the partner has not
 * countersigned yet, sessions that have not settled, clocks that were set back. */
#ifndef STORE_VERIFY_H
#define STORE_VERIFY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/entry.h"
#include "store/statement.h"

struct ledger_export {
	bool has_owner;
	uint8_t owner[LEDGER_KEY]; /* Ed25519 key of whose export it is */
	bool whole;		   /* all chains of its owner, not one pair's alone */
	struct ledger_signed *at;  /* entry, hash as stated, signatures as stated */
	size_t n;
	struct ledger_stated *stated; /* about the owner's own training; hashes as stated */
	size_t n_stated;
};

void ledger_export_release(struct ledger_export *x);

enum ledger_fault {
	LEDGER_EDITED,		/* contents do not give the stated hash */
	LEDGER_BAD_SIGNATURE,	/* not the host's */
	LEDGER_BAD_COUNTERSIGN, /* not the client's */
	LEDGER_NOT_COUNTERSIGNED,
	LEDGER_DELETED,	     /* numbers are missing */
	LEDGER_BROKEN_CHAIN, /* does not continue the entry before */
	LEDGER_CAP_PASSED,
	LEDGER_UNDERCOUNT, /* a total is lower than the entries before allow */
	LEDGER_RULE,	   /* another rule of store/entry.h */
	LEDGER_EPSILON,	   /* the caps are more labels than the stated epsilon allows */
	LEDGER_STATED,	   /* a statement of the owner about its training */
	LEDGER_FORKED,	   /* two exports, another entry under the same number */
	LEDGER_SHORTER,	   /* one export lacks entries that its owner has signed */
	LEDGER_BEHIND,	   /* one export lacks entries that its owner has not seen (note) */
	LEDGER_UNSETTLED,  /* a session without its settle (note) */
	LEDGER_CLOCK,	   /* its writer's clock was set back before it (note) */
};

struct ledger_finding {
	enum ledger_fault fault;
	bool note;
	uint64_t sequence;			   /* 0: the chain as a whole */
	uint8_t low[LEDGER_KEY], high[LEDGER_KEY]; /* which chain */
	char text[ERR_TEXT_MAX];
};

struct ledger_report {
	struct ledger_finding *at;
	size_t n, faults;		    /* faults: those that are not notes */
	size_t entries, chains, statements; /* looked at */
};

void ledger_report_release(struct ledger_report *r);

/* Returns 0, or ERR_LEDGER when there is a fault.  *r must be zeroed or released. */
int ledger_verify(const struct ledger_export *x, struct ledger_report *r);
/* Each alone (ledger_verify() findings first), then against each other.  Both
 * must name their owners; the chain compared is the one between the two. */
int ledger_verify_pair(const struct ledger_export *a, const struct ledger_export *b,
		       struct ledger_report *r);

/* The chains that an intact export contains, each to be released and freed; *out by
 * free().  ERR_LEDGER at the first fault. */
int ledger_export_chains(const struct ledger_export *x, struct ledger_chain ***out, size_t *n,
			 struct err *e);

/* What a session would spend of what is left. */
struct ledger_quote {
	uint64_t asked, pair_spent, pair_cap, lineage_spent, lineage_cap;
	double pair_epsilon, lineage_epsilon;		  /* now */
	double pair_epsilon_after, lineage_epsilon_after; /* with the labels asked for */
	bool fits;
};
int ledger_quote(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
		 const struct ledger_lineage *lineage, uint64_t labels, struct ledger_quote *out,
		 struct err *e);

/* ---- JSON (store/export.c, in store_lib) ----
 *
 * {"fkge_ledger": 1, "owner": hex, "whole": bool, "entries": [{"kind": "reserve", "host": hex, ...,
 *  "hash": hex, "signature": hex, "countersignature": hex or null}],
 *  "statements": [{"noise": "gaussian", ..., "hash": hex, "signature": hex}]}
 * Fields are named as in store/entry.h and store/statement.h and re-encoded when read, so that what
 * is shown is what is signed. */

void ledger_export_write(const struct ledger_export *x, struct buf *out);
int ledger_export_read(struct ledger_export *x, const void *json, size_t n, struct err *e);

#endif
