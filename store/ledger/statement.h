/* store/ledger/statement.h - what an agent says of the noise in its own training: signed, and
 * nobody's pair.
 *
 * An agent that trains its tables with clipped and noisy gradients (kge/dp_train.h)
 * spends on its own data, whoever asks for rows later.  So it charges itself: a statement says
 * that so many steps of this sampling rate and noise are about to be run, and is on disk
 * before the first of them.  A crash in between has charged steps that never were; nothing is
 * ever given back, and neither retraining nor another graph begins anew.
 *
 * Neighbouring data: one training triple added or removed.  It covers what is computed
 * from tables so trained, and from nothing else of the graph.
 *
 * Statements are chained like ledger entries, signed by the agent alone, and only ever added.
 * Rules, checked by ledger_training_check() for who writes, for the disk and for an auditor:
 *  (1) sequence counts 1, 2, 3 ...; `previous` is the hash of the one before; the agent is that
 *      of the first;
 *  (2) `total` is that of the one before and its own steps, of which there is at least one;
 *  (3) all steps so far, each at its own rate and noise, cost at most `epsilon` at the smallest
 *      `delta` that any of them named: that is computed (dp/subsampled.h: curves add up, tight
 *      conversion), never stated.  A larger delta later makes nothing cheaper that was spent.
 * The cap of (3) is what the owner allowed when the statement was made; the last one counts.
 *
 * Pure: no disk, no clock, no randomness.
 *
 * The encoding, all numbers little-endian, no padding:
 *
 *   offset size
 *        0    8  "fkgeSTM1"
 *        8    1  noise       1 gaussian 2 discrete gaussian, on Poisson samples
 *        9    1  adjacency   2 one triple added or removed
 *       10    6  zero
 *       16   32  agent       Ed25519 public key
 *       48   32  lineage     its data
 *       80    8  sequence    1, 2, 3 ...
 *       88   32  previous    hash of the statement before; zeros before the first
 *      120    8  time        Unix time in ms; recorded, decides nothing
 *      128    8  steps
 *      136    8  records     training triples, as far as their number is public
 *      144    8  rate        IEEE double: chance of each triple to be in a step
 *      152    8  noise       IEEE double: deviation / clip
 *      160    8  clip        IEEE double: L2 norm that one triple's gradient is clipped to
 *      168    8  delta       IEEE double
 *      176    8  epsilon     IEEE double: the cap
 *      184    8  total       steps, with these
 *      192   16  zero
 *      208       end
 *
 * hash = BLAKE2b-256 of these 208 bytes; the signature is Ed25519 over
 * "fkge ledger statement 1" and the hash. */
#ifndef STORE_LEDGER_STATEMENT_H
#define STORE_LEDGER_STATEMENT_H

#include "dp/rdp.h"
#include "store/ledger/entry.h"

enum { LEDGER_STATEMENT_BYTES = 208 };

enum ledger_sampled { LEDGER_SAMPLED_GAUSSIAN = 1, LEDGER_SAMPLED_DISCRETE };
const char *ledger_sampled_name(enum ledger_sampled s); /* "gaussian"; "?" if unknown */

struct ledger_statement {
	enum ledger_sampled sampled;
	enum ledger_adjacency adjacency;
	uint8_t agent[LEDGER_KEY], lineage[32];
	uint64_t sequence;
	uint8_t previous[LEDGER_HASH];
	int64_t time_ms;
	uint64_t steps, records;
	double rate, noise, clip, delta, epsilon;
	uint64_t total;
};

struct ledger_stated {
	struct ledger_statement statement;
	uint8_t hash[LEDGER_HASH];
	uint8_t signature[LEDGER_SIGNATURE];
};

void ledger_statement_encode(const struct ledger_statement *s, uint8_t out[LEDGER_STATEMENT_BYTES]);
/* Strict, as ledger_decode().  ERR_LEDGER. */
MUST_CHECK int ledger_statement_decode(struct ledger_statement *s, const uint8_t *bytes, size_t n,
				       struct err *err);

/* Fill hash and signature; the statement is the caller's. */
void ledger_statement_sign(struct ledger_stated *s, const uint8_t key[LEDGER_SECRET]);
void ledger_statement_hash(const struct ledger_statement *s, uint8_t out[LEDGER_HASH]);
/* Hash and signature; ERR_LEDGER.  By the agent's key or one that followed it, as
 * ledger_check_signature(). */
MUST_CHECK int ledger_statement_check_signature(const struct ledger_stated *s,
						struct ledger_keys *agent, struct err *err);

/* ---- the account: after some statements; all zero is the one before the first ---- */

struct ledger_training {
	uint64_t sequence, steps;
	uint8_t agent[LEDGER_KEY]; /* of the first; meaningless before it */
	uint8_t head[LEDGER_HASH];
	double rdp[DP_ORDERS];	      /* of all steps */
	double delta;		      /* the smallest so far; 0 before the first */
	struct ledger_statement last; /* the last statement ... */
	double step[DP_ORDERS];	      /* ... and one step of it, which others often are */
	bool sealed; /* statements to come are our disk's: older programs judged each at its own
		      * delta */
};

/* This delta, or the smallest of all statements so far. */
double ledger_training_delta(const struct ledger_training *t, double delta);
/* The cost of all steps at ledger_training_delta(); 0 for none. */
double ledger_training_epsilon(const struct ledger_training *t, double delta);
/* Of all these statements by their privacy loss (dp/pld_steps.h), or by their curves where that
 * is less: the smallest that can be shown.  Rule (3) is by the curves. */
double ledger_training_epsilon_pld(const struct ledger_stated *at, size_t n, double delta);
/* Steps at the rate and noise of `like` that its epsilon still allows, at the smallest delta. */
uint64_t ledger_training_left(const struct ledger_training *t, const struct ledger_statement *like);
/* The next statement, ready to be signed: `like` with number, chain, steps, total and time
 * filled in.  ERR_USAGE: figures that have no price; ERR_BUDGET, with what is left in words,
 * when so many steps would pass the cap. */
MUST_CHECK int ledger_training_next(struct ledger_statement *s, const struct ledger_training *t,
				    const struct ledger_statement *like, uint64_t steps,
				    int64_t time_ms, struct err *err);
/* May s be the next one?  ERR_LEDGER with the rule that it breaks; ERR_BUDGET for rule 3. */
MUST_CHECK int ledger_training_check(const struct ledger_training *t,
				     const struct ledger_statement *s, struct err *err);
/* Check rules, hash and signature, then take it; on failure the account is as it was. */
MUST_CHECK int ledger_training_add(struct ledger_training *t, const struct ledger_stated *s,
				   struct ledger_keys *agent, struct err *err);
/* For who goes on behind a fault, or has checked already: take it, whatever it says. */
void ledger_training_force(struct ledger_training *t, const struct ledger_stated *s);

#endif
