/* fed/local.h - a whole federation in one process, in virtual time.
 *
 * k agents, each with its own graph, tables, trainer, part and round machine,
 * over a network in memory that loses, delays, repeats and reorders messages as
 * it is told, from one seed.  Time is virtual: a run is a pure function of its
 * input.  Names decide what is shared: two agents share what both call the same.  Tests and
 * `fkge experiment` use it. */
#ifndef FED_LOCAL_H
#define FED_LOCAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "fed/method.h"
#include "fed/round.h"
#include "graph/graph.h"

struct fed_local_agent {
	const struct graph *graph; /* borrowed */
	struct kge_emb *emb;	   /* borrowed; what rounds change */
	struct kge_train_config train;
	/* Canonical names; NULL: the graph's own. */
	const char *(*label)(void *ctx, char tag, uint32_t id, size_t *len);
	void *label_ctx;
	uint32_t min_holders; /* its owner's terms (fed/round.h) */
	bool secret_only;
	bool bound; /* fed/round.h */
	/* fed/round.h; in rounds for which fed_local_judge() says so.  Whom it leaves out stays so
	 * until the next of them. */
	int (*judge)(void *ctx, const struct kge_emb *m, double **each, size_t *n);
	void *judge_ctx;
};

/* The network's faults, by chance; all zero: none. */
struct fed_local_faults {
	double lose, repeat;   /* of a message */
	uint32_t delay_max_ms; /* each message takes 1 .. 1 + delay_max_ms, so they overtake */
};

enum fed_start {
	FED_START_OWN,
	/* Before the first round, rows of what is shared become equal everywhere
	 * (fed_first_row()), as if a server had drawn them: */
	FED_START_EQUAL, /* of all that two agents have, also where the method leaves it alone */
	FED_START_MOVED, /* of what the method moves: agents know of no other names (agent/) */
};

struct fed_local_config {
	struct fed_settings settings; /* number: of the first round */
	uint32_t epochs;	      /* local, a round; 0: none */
	uint32_t work_ms;	      /* virtual time that any work takes */
	/* Of a message, beside the faults' delay; 0: one ms.  bytes_a_ms: of an agent's uplink,
	 * which its messages share in their order; 0: they take none. */
	uint32_t latency_ms, bytes_a_ms;
	uint64_t seed;
	struct fed_local_faults faults;
	enum fed_start start;
	/* May be NULL.  Called before anything is done to an agent (which is dead if
	 * false is returned, from then on and for all): lets a test lose a member at any step. */
	bool (*alive)(void *ctx, size_t agent, uint64_t step);
	/* May be NULL: work_ms.  Virtual time of an agent's work number `work` of a round. */
	uint32_t (*takes_ms)(void *ctx, size_t agent, uint64_t work);
	/* May be NULL.  May change a message on its way; false: it is lost. */
	bool (*tamper)(void *ctx, size_t from, size_t to, struct buf *message);
	/* May be NULL.  Agent's local training of this round is over: its own table may be scored.
	 */
	void (*trained)(void *ctx, size_t agent, double loss);
	void *ctx;
};

struct fed_local;

/* ERR_USAGE for settings that do not fit the agents.  agents[] is copied, 2 to
 * FED_MEMBERS_MAX of them. */
int fed_local_new(struct fed_local **out, const struct fed_local_config *c,
		  const struct fed_local_agent *agents, size_t n, struct err *e);
void fed_local_free(struct fed_local *l);

/* One round, proposed by agent `proposer`, to the end of all its machines; the settings'
 * number goes up by one.  With a fraction below 1 the first of those drawn proposes, and the others
 * are in none (fed_local_last() is NULL).  The first error of any living agent's round, or 0. */
int fed_local_round(struct fed_local *l, size_t proposer, struct err *e);
/* Between two rounds: everything that the next ones need but the agents' tables; so a federation
 * made anew with the same arguments and these tables, that has loaded it, goes on with the same
 * bits.  Agents that died are alive again.  ERR_INPUT: of another federation; it is not to be used
 * then. */
void fed_local_save(const struct fed_local *l, struct buf *out);
int fed_local_load(struct fed_local *l, const uint8_t *bytes, size_t n, struct err *e);
void fed_local_judge(struct fed_local *l, bool judges); /* members are judged in the next round */
/* An agent's view of the last round, until the next; NULL: it was in none. */
const struct fed_round *fed_local_last(const struct fed_local *l, size_t agent);
struct fed_part *fed_local_part(const struct fed_local *l, size_t agent);
const uint8_t *fed_local_key(const struct fed_local *l, size_t agent);
/* The agent that has this key, or SIZE_MAX. */
size_t fed_local_who(const struct fed_local *l, const uint8_t key[FED_KEY]);
bool fed_local_alive(const struct fed_local *l, size_t agent);
/* Between two rounds: an agent that goes, whom all others know to be gone, or comes back. */
void fed_local_set_alive(struct fed_local *l, size_t agent, bool alive);
/* When the last round was over for the last of its members; waits that nobody was in any more do
 * not count. */
uint64_t fed_local_now_ms(const struct fed_local *l);
/* Between two rounds: nothing happens until then. */
void fed_local_wait_until(struct fed_local *l, uint64_t ms);

#endif
