/* fed/mask.h - rows that add up and say nothing else (methods 4.5).
 *
 * Three parts: rows of floats as words of a ring, keys that two members share
 * for one round, and masks that cancel in a sum.  Pure; random bytes come through
 * nn_draw, from libsodium in the agent.
 *
 * The ring.  A float x becomes the whole number nearest to clip(x) * 2^bits
 * (ties to even), modulo 2^width.  Sums in the ring are exact, so a sum of k
 * rows is off by at most k * 2^-(bits+1), a mean by 2^-(bits+1), plus one
 * rounding to float.  `bits` is as large as lets `holders` rows of +-clip add up
 * within 2^(width-1-FED_MASK_GUARD): no sum of honest rows wraps, and the guard bits
 * show a sum whose masks did not cancel (each word of it is out of range with
 * probability 1 - 2^-FED_MASK_GUARD).
 *
 * The masks.  Members i and j of a round share a key that nobody else can
 * compute.  For each row that both send to a third, the one with the lower key
 * adds the stream of that key, the other subtracts it.  In the sum the streams
 * cancel exactly; a row with at least one stream that its reader cannot compute
 * is uniform in the ring, whatever it holds.  FedCQA adds random *floats*: the
 * sum of a row and a float mask of comparable size says a lot about the row.
 *
 * A stream is ChaCha20 (RFC 8439) under a key for (pair, round, stage, attempt)
 * and a nonce for the row: no two rows ever share both.  Keys follow from
 * X25519 of keys drawn for this round and signed with the members' Ed25519 keys
 * (so neither a proposer that passes them on nor the home can put its own in their
 * place), and are wiped after it: whoever seizes a machine later can open nothing.
 *
 * Rows of words are bytes, little-endian, as on the wire. */
#ifndef FED_MASK_H
#define FED_MASK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "nn/linalg.h"

enum {
	FED_MASK_KEY = 32,	/* bytes of every key here */
	FED_MASK_ROUND = 16,	/* a round's id */
	FED_MASK_NONCE = 12,	/* names a row under a key */
	FED_MASK_GUARD = 4,	/* bits at the top that no honest sum reaches */
	FED_MASK_BITS_MIN = 10, /* a fraction coarser than 2^-10 would spoil rows */
	FED_MASK_HOLDERS_MAX = 1024,
};

/* ---- the ring ---- */

struct fed_mask_ring {
	unsigned width; /* 32 or 64 */
	unsigned bits;	/* of the fraction */
	size_t holders; /* rows that a sum may have */
	double clip;	/* larger values count as +-clip */
	int64_t top;	/* the word of +clip */
};

/* ERR_USAGE, naming what is allowed: width 32 or 64, clip in [2^-20, 2^20], holders in
 * 1..FED_MASK_HOLDERS_MAX, and at least FED_MASK_BITS_MIN bits left for the fraction. */
int fed_mask_ring_init(struct fed_mask_ring *r, unsigned width, double clip, size_t holders,
		       struct err *e);
size_t fed_mask_ring_bytes(const struct fed_mask_ring *r, size_t floats);
/* 2^-(bits+1): how far an encoded float that was not clipped may be from the float. */
double fed_mask_ring_error(const struct fed_mask_ring *r);

/* n floats -> fed_mask_ring_bytes(r, n).  *clipped, if not NULL, grows by how many were beyond
 * +-clip.  ERR_INPUT for what is not finite (row is not to be used then). */
int fed_mask_encode(const struct fed_mask_ring *r, const float *x, size_t n, uint8_t *row,
		    size_t *clipped, struct err *e);
/* The sum of k rows -> floats divided by `by` (1: the sum, k: the mean).  ERR_PROTO when a
 * word is beyond what k honest rows add up to: masks did not cancel, or a member cheats. */
int fed_mask_decode(const struct fed_mask_ring *r, const uint8_t *row, size_t n, size_t k,
		    double by, float *x, struct err *e);
/* row += other, in the ring. */
void fed_mask_add(const struct fed_mask_ring *r, uint8_t *row, const uint8_t *other, size_t n);

/* ---- streams ---- */

enum fed_mask_sign { FED_MASK_PLUS, FED_MASK_MINUS };

struct fed_mask_stream { /* a key and which way its stream goes in */
	uint8_t key[FED_MASK_KEY];
	enum fed_mask_sign sign;
};

/* The nonce of the row of this name: all its holders compute the same.  Keyed with the roster's
 * seed, to which every member has added, so nobody can look for two names alike beforehand. */
void fed_mask_nonce(const uint8_t seed[FED_MASK_KEY], char tag, const void *label, size_t len,
		    uint8_t nonce[FED_MASK_NONCE]);
/* Add (or subtract) n words of the stream for the row that nonce names. */
void fed_mask_stream_add(const struct fed_mask_stream *s, const struct fed_mask_ring *r,
			 const uint8_t nonce[FED_MASK_NONCE], uint8_t *row, size_t n);
/* The same stream the other way. */
struct fed_mask_stream fed_mask_stream_reverse(const struct fed_mask_stream *s);

/* ---- keys of a round ---- */

struct fed_mask_secret {	       /* a member's own, for one round */
	uint8_t public[FED_MASK_KEY];  /* X25519, for the others, who must have it signed */
	uint8_t secret[FED_MASK_KEY];  /* its secret half */
	uint8_t private[FED_MASK_KEY]; /* for masks of its own (mask_seed_own) */
};

void fed_mask_secret_draw(struct fed_mask_secret *s, struct nn_draw draw);

/* The stream that `me` shares with `them` for the round.  Both get the same key; the lower member
 * key gets FED_MASK_PLUS.  ERR_PROTO when their public key is of small order or their key is
 * mine. */
int fed_mask_pair(const struct fed_mask_secret *mine, const uint8_t round[FED_MASK_ROUND],
		  const uint8_t me[FED_MASK_KEY], const uint8_t them[FED_MASK_KEY],
		  const uint8_t their_public[FED_MASK_KEY], struct fed_mask_stream *pair,
		  struct err *e);

/* The streams of one attempt at one stage of the round.
 *   pair   what two holders add for each other
 *   own    what a holder adds for itself, to one home, until it shows the key
 *   blind  what a holder adds that the hosted form's aggregator must not remove: the round's key is
 *          shared by all but it, so each of them can compute those of all others.  The key is
 *          fresh for each round */
void fed_mask_step_pair(const struct fed_mask_stream *pair, uint32_t stage, uint32_t attempt,
			struct fed_mask_stream *out);
void fed_mask_step_own(const struct fed_mask_secret *mine, const uint8_t home[FED_MASK_KEY],
		       uint32_t stage, uint32_t attempt, struct fed_mask_stream *out);
void fed_mask_step_blind(const uint8_t round_key[FED_MASK_KEY], const uint8_t member[FED_MASK_KEY],
			 uint32_t stage, uint32_t attempt, struct fed_mask_stream *out);

#endif
