/* agent/core/history.h - what partners brought: the state before the first of them had any part in
 * our tables, how much was trained since, and what each training after a translation came to.
 *
 * The tables of before are checkpoint STORE_BEFORE, kept once, and where pairs went on from others
 * than the best, those as STORE_ALONE_LATEST: so does the arm without partners (agent/alone.h). The
 * rest is the meta value
 * AGENT_META_HISTORY, of at most AGENT_GAINS_MAX gains, the newest ones, and of those before them
 * the sums by partner.  In mode rounds the
 * records of rounds have the scores, and no gains are kept.  Under private training, where valid
 * is not looked at, there is no history.  An import of other names leaves an empty value. */
#ifndef AGENT_CORE_HISTORY_H
#define AGENT_CORE_HISTORY_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "store/batch.h"

struct agent_core;
struct config;

#define AGENT_META_HISTORY "history"

enum {
	AGENT_GAINS_MAX = 64,
	AGENT_GAIN_PEERS = 8,
	AGENT_HISTORY_KEYS = 256, /* AGENT_PEERS_MAX */
	AGENT_UNITS_MAX = 16,
};

/* One training on what partners' translations had left. */
struct agent_gain {
	int64_t time_ms;
	double before, after; /* score on valid: of the best until then; of what was trained */
	bool kept;	      /* it was better; else the best came back */
	uint8_t in[AGENT_HISTORY_KEYS / 8]; /* whose rows were in it: bits of agent_history.key */
	uint32_t n_peers;		    /* of some of these: */
	uint8_t peer[AGENT_GAIN_PEERS][STORE_KEY];
	/* of each one's rows with ours before: mean cosine, share that is nearest (core.h, struct
	 * agent_agreement); of records from before there were any, NAN */
	float cosine[AGENT_GAIN_PEERS], nearest[AGENT_GAIN_PEERS];
};

/* What trainings with this partner's rows came to; with others in one, the gain is theirs together.
 */
struct agent_brought {
	uint8_t key[STORE_KEY];
	uint64_t trainings, kept;
	double gain; /* on valid, of those that were kept */
};

/* Rounds of pairs had so many epochs each, from that epoch on. */
struct agent_unit {
	uint64_t from;
	uint32_t epochs;
};

struct agent_history {
	bool has_before;
	bool drawn;	 /* before: nothing was trained, the tables are as they were drawn */
	bool anew;	 /* the graph got other names, and no partner has had a part since */
	bool by_hand;	 /* the owner has trained or restored since: epochs are not all counted */
	double before;	 /* score on valid */
	uint64_t first;	 /* of the first training's epochs, when before was kept */
	uint64_t epochs; /* trained since, kept or not */
	size_t n_units;
	struct agent_unit unit[AGENT_UNITS_MAX]; /* of these, the newest */
	uint32_t vain; /* looks in a row that took nothing of what partners brought (weigh.c) */
	uint8_t lone[STORE_DIGEST]; /* of the newest best tables that are not what rounds brought:
				     * those of the copy that trains beside them; 0: none yet */
	size_t n_keys;		    /* of partners that were in one of these: */
	uint8_t key[AGENT_HISTORY_KEYS][STORE_KEY];
	size_t n;
	struct agent_gain gain[AGENT_GAINS_MAX]; /* the oldest first */
	size_t n_past;
	struct agent_brought past[AGENT_HISTORY_KEYS]; /* of gains that had to make room */
};

/* The newest gain: of a full history the oldest goes, and counts in what its partners brought. */
void agent_history_add(struct agent_history *h, const struct agent_gain *g);
/* Since there is a history; of more partners than there can be at a time, those that were in most.
 */
struct agent_brought agent_history_brought(const struct agent_history *h,
					   const uint8_t key[STORE_KEY]);

/* Adds a round of pairs to what was trained since. */
void agent_history_add_round(struct agent_history *h, uint32_t epochs);
/* So many epochs the arm without partners trains as one, which has had so many, fewer than h has:
 * in pairs as the round had there, whatever the settings are by now; in mode rounds as many as
 * there are between two looks.  Never more than it is behind. */
uint64_t agent_history_unit(const struct agent_history *h, const struct config *c, uint64_t after);
uint64_t agent_core_unit(const struct agent_core *c, uint64_t after);
/* Are these the tables of that copy? */
bool agent_history_is_lone(const struct agent_history *h, const uint8_t digest[STORE_DIGEST]);
/* Was key[k] of the history in this one? */
static inline bool agent_gain_has(const struct agent_gain *g, size_t k)
{
	assert(k < AGENT_HISTORY_KEYS);
	return (g->in[k / 8] >> k % 8 & 1) != 0;
}

/* It was in the newest gain.  Of partners that come and go, all of one training have room: the
 * oldest gains forget theirs. */
void agent_history_note(struct agent_history *h, const uint8_t key[STORE_KEY]);
void agent_history_write(const struct agent_history *h, struct buf *out);
/* ERR_STORE: damaged. */
int agent_history_read(struct agent_history *h, const uint8_t *bytes, size_t n, struct err *e);

#endif
