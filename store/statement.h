/* store/statement.h - what an agent says of the noise in its own training: signed, and
 * nobody's pair.
 *
 * An agent that trains its tables with clipped and noisy gradients (methods of DP-SGD)
 * spends on its own data, whoever asks for rows later.  Each training is one statement:
 * so many steps of this sampling rate and noise led to these tables.  Statements are
 * chained like ledger entries, signed by the agent alone, and only ever added; what all
 * of them come to is computed, never stated (dp/subsampled.h).
 *
 * Neighbouring data: one training triple added or removed.  It covers what is computed
 * from tables so trained, and from nothing else of the graph.
 *
 * Steps count once they are stated; an agent states them in the transaction that makes
 * the tables durable, before a row of them can leave.
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
 *      136    8  records     training triples
 *      144    8  rate        IEEE double: chance of each triple to be in a step
 *      152    8  noise       IEEE double: deviation / clip
 *      160    8  clip        IEEE double: L2 norm that one triple's gradient is clipped to
 *      168    8  delta       IEEE double
 *      176   32  tables      digest of the tables that came out (kge_emb_digest())
 *      208       end
 *
 * hash = BLAKE2b-256 of these 208 bytes; the signature is Ed25519 over
 * "fkge ledger statement 1" and the hash. */
#ifndef STORE_STATEMENT_H
#define STORE_STATEMENT_H

#include "store/entry.h"

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
	double rate, noise, clip, delta;
	uint8_t tables[32];
};

struct ledger_stated {
	struct ledger_statement statement;
	uint8_t hash[LEDGER_HASH];
	uint8_t signature[LEDGER_SIGNATURE];
};

void ledger_statement_encode(const struct ledger_statement *s, uint8_t out[LEDGER_STATEMENT_BYTES]);
/* Strict, as ledger_decode().  ERR_LEDGER. */
int ledger_statement_decode(struct ledger_statement *s, const uint8_t *bytes, size_t n,
			    struct err *err);

/* Fill sequence and previous behind the last of n (none: NULL, 0), hash and signature.
 * The rest of out->statement is the caller's. */
void ledger_statement_sign(struct ledger_stated *out, const struct ledger_stated *all, size_t n,
			   const uint8_t key[LEDGER_SECRET]);
void ledger_statement_hash(const struct ledger_statement *s, uint8_t out[LEDGER_HASH]);
/* Hash and signature; ERR_LEDGER. */
int ledger_statement_check_signature(const struct ledger_stated *s, struct err *err);
/* May s follow `before` (NULL: the first)?  Its number, its chain, and that its figures
 * have a price.  ERR_LEDGER. */
int ledger_statement_check(const struct ledger_stated *before, const struct ledger_stated *s,
			   struct err *err);

/* What the statements of this lineage (NULL: all) come to together, at the smallest delta
 * among them.  0 for none.  ERR_USAGE: figures that dp/ does not know. */
int ledger_statements_epsilon(const struct ledger_stated *at, size_t n, const uint8_t *lineage,
			      double *epsilon, double *delta, struct err *err);

#endif
