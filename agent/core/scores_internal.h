/* agent/core/scores_internal.h - masked scores of an encoder between the members of rounds (methods
 * 5.4, fed/score.h).  For agent/core/ and its tests alone.
 *
 *   asker (scores_ask.c)                          each other member (scores_answer.c)
 *   owner's command SCORE
 *   SCORE: vectors, members, holders          -->  by its settings, its last round, budget, room?
 *           <------------------------------------  SCORE_KEY: drawn for this question; or no:
 * SCORED, why SCORE_KEYS: of all; or none: it is off    -->  a worker scores and masks; signs the
 * words; record, day's sum: COMMIT
 *           <------------------------------------  SCORED: words
 *   records: COMMIT; the sums: scored()
 *
 * Without the words of all that are asked there is no sum.  Whoever fails is named, and the others
 * are asked anew, with other keys, for what it does not hold (fed/score.h), if enough remain; what
 * they had answered is on record. */
#ifndef AGENT_CORE_SCORES_INTERNAL_H
#define AGENT_CORE_SCORES_INTERNAL_H

#include "agent/core/steps_internal.h"
#include "encode/model.h"
#include "fed/score.h"

/* The members of a question but us, in the members' order, as fed/score.h wants them. */
struct score_members {
	uint8_t key[FED_MEMBERS_MAX * FED_KEY]; /* of all, ascending */
	size_t n;				/* with us */
	struct peer *peer[FED_MEMBERS_MAX];
	struct fed_peer *of; /* [n - 1]; each owns its slots */
	const struct fed_peer *at[FED_MEMBERS_MAX];
};

/* A question of a partner. */
struct score_answering {
	struct fed_score_part *part;
	float *vectors; /* n x dim */
	size_t n, dim;
	uint64_t due_ms; /* the asker waits so long */
	size_t sent;	 /* bytes of its words */
};

/* A member that we ask, or not. */
struct score_asked {
	struct peer *peer;
	struct store_step record;
	uint8_t shown[FED_SCORE_SHOWN];
	bool away;			 /* it is not asked, or not any more; answer says why */
	bool has_shown, has_words, gone; /* gone: nothing more is to come */
	void *hash;			 /* of the words that have come; NULL: none */
	size_t words, all;		 /* of them; with those that follow */
	struct agent_answer answer;	 /* peer, name, code, why, bytes */
};

/* What our owner asked for, of those that were there at that time. */
struct score_asking {
	uint64_t ticket;
	uint64_t due_ms, last_ms; /* of this attempt; our owner's patience */
	enum {
		SCORES_KEYS,
		SCORES_WORDS,
		SCORES_SAVES,
		SCORES_LATE, /* it has failed; words that still come are put on record */
		SCORES_OVER
	} phase;
	bool told;
	uint8_t id[LEDGER_STEP_ID];
	struct fed_score_sum *sum;
	struct score_members members; /* without slots */
	struct score_asked *of;	      /* [n] in the members' order */
	size_t n, n_saving;	      /* records on their way to disk */
	float *vectors;		      /* n_vectors x dim */
	size_t n_vectors, dim;
	uint32_t holders;
	struct err wrong; /* of nobody in particular */
};

/* ---- scores.c ---- */

/* The members of our last round that came to something; false: there was none since rounds on
 * record, or of a method that trains no encoder. */
bool scores_last_members(const struct agent_core *c, struct score_members *m);
/* Their names in common with us.  ERR_BUSY, with who it is: one of them is no partner, or names are
 * to be compared first.  scores_members_release() it also then. */
MUST_CHECK int scores_members_open(struct agent_core *c, struct score_members *m, struct err *e);
void scores_members_release(struct score_members *m);
/* A copy of the best encoder of our rounds, as it is now, or was when no worker was at it; NULL:
 * none.  It stays as it is while a worker answers. */
const struct encode_model *scores_encoder_now(struct agent_core *c);
/* The part is another one, or a worker is done with it: has it a best encoder? */
void scores_note_encoder(struct agent_core *c);
/* Why there is no copy: ERR_BUSY where a worker may be at the encoder, else ERR_REFUSED. */
int scores_no_encoder(const struct agent_core *c, struct err *e);
void scores_encoder_release(struct agent_core *c);

/* ---- scores_answer.c ---- */

void scores_take(struct agent_core *c, struct peer *p, const struct net_message *m);
bool scores_expect_keys(const struct agent_core *c, const struct peer *p,
			const struct net_msg_head *h);
void scores_take_keys(struct agent_core *c, struct peer *p, const struct net_message *m);

void scores_pull(struct agent_core *c, struct peer *p); /* there is room on its link again */

/* ---- scores_ask.c ---- */

void scores_begin(struct agent_core *c, const struct agent_score_ask *ask);
bool scores_expect(const struct agent_core *c, const struct peer *p, const struct net_msg_head *h);
void scores_take_key(struct agent_core *c, struct peer *p, const struct net_message *m);
void scores_take_words(struct agent_core *c, struct peer *p, const struct net_message *m);
void scores_timer(struct agent_core *c);
void scores_link_down(struct agent_core *c, const struct peer *p);
void scores_stop(struct agent_core *c, int code, const char *why); /* those that wait */
void scores_release(struct agent_core *c);

#endif
