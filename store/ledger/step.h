/* store/ledger/step.h - one step of a query that an agent has answered for another, as both have
 * signed it (methods 5.4).
 *
 *   asker   signs what it asks: of whom, over which relation, from how many entities, for how many
 *   owner   signs the same and what it answered: by which policy, how many rows
 *
 * So each holds the other's word: the owner for what was asked of it, the asker for what came.  The
 * entities and truths themselves are not in here, but hashes of them as they travelled. */
#ifndef STORE_LEDGER_STEP_H
#define STORE_LEDGER_STEP_H

#include "store/ledger/entry.h"

enum {
	LEDGER_STEP_ID = 16,
	LEDGER_RELATION_MAX = 512, /* bytes of a relation's name, without the NUL */
};

/* What is asked: a step of a search, by what AND makes of two truths (enum query_norm); a
 * relation's row in an encoder of queries; masked scores of all that is shared (fed/score.h). */
enum ledger_asked { LEDGER_BY_PRODUCT, LEDGER_BY_MIN, LEDGER_ROW, LEDGER_SCORES };
const char *ledger_asked_name(unsigned asked); /* "product", "min", "row", "scores"; else "?" */
/* Of LEDGER_SCORES: no relation is meant. */
#define LEDGER_NO_RELATION "*"

/* How an owner answers: not at all; by its tables' scores alone; with known edges as true. */
enum ledger_policy { LEDGER_NOTHING, LEDGER_SOFT, LEDGER_FACTS };
const char *ledger_policy_name(unsigned policy); /* "nothing", "soft", "facts"; else "?" */

struct ledger_step {
	uint8_t id[LEDGER_STEP_ID];		      /* random, the asker's */
	uint8_t asker[LEDGER_KEY], owner[LEDGER_KEY]; /* Ed25519 */
	char relation[LEDGER_RELATION_MAX + 1];	      /* as both call it */
	bool inverse;				      /* from tails to heads */
	uint32_t norm;				      /* enum ledger_asked */
	uint32_t points, want; /* entities asked from, or vectors; rows asked for, or holders */
	int64_t asked_ms, answered_ms;			    /* Unix time, by the clock of each */
	uint8_t alignment[LEDGER_HASH];			    /* by which both count entities */
	uint8_t frontier[LEDGER_HASH], answer[LEDGER_HASH]; /* hashes of what travelled */
	enum ledger_policy policy;
	uint32_t rows; /* that left */
	bool ways;     /* each with the entity that it comes from */
	uint8_t asker_signature[LEDGER_SIGNATURE], owner_signature[LEDGER_SIGNATURE];
};

/* The hash of bytes that travelled: of one piece, or of two. */
void ledger_step_hash(uint8_t out[LEDGER_HASH], const void *a, size_t n, const void *b, size_t m);
/* As asker, or as owner: with the Ed25519 secret (64 bytes). */
void ledger_step_ask(struct ledger_step *s, const uint8_t secret[64]);
void ledger_step_answer(struct ledger_step *s, const uint8_t secret[64]);
/* Are the signatures the asker's, the owner's? */
bool ledger_step_is_asked(const struct ledger_step *s);
bool ledger_step_is_answered(const struct ledger_step *s);

#endif
