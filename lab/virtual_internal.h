/* lab/virtual_internal.h - inside lab/virtual.h: what is still to happen, and links.
 *
 * virtual.c      agents, their shells, the run
 * virtual_net.c  the clock; links and who is away
 *
 * Only these include it. */
#ifndef LAB_VIRTUAL_INTERNAL_H
#define LAB_VIRTUAL_INTERNAL_H

#include "agent/core/core.h"
#include "agent/core/learner.h"
#include "agent/core/names.h"
#include "base/rng.h"
#include "lab/virtual.h"
#include "store/ledger/entry.h"

enum virtual_what {
	VIRTUAL_START,
	VIRTUAL_DIALLED,
	VIRTUAL_LINK_UP,
	VIRTUAL_LINK_DOWN,
	VIRTUAL_MESSAGE,
	VIRTUAL_TIMER,
	VIRTUAL_ON_DISK,
	VIRTUAL_ENTRIES,
	VIRTUAL_JOB,
	VIRTUAL_JOB_OVER,
	VIRTUAL_TURN, /* an agent comes or goes */
};

struct virtual_event {
	uint64_t at_ms, order; /* of equal times the earlier made comes first */
	enum virtual_what what;
	size_t to, from;
	uint64_t epoch; /* of the link, or of the timer */
	uint8_t *bytes; /* owned */
	size_t n;
	enum agent_timer timer;
	struct agent_job *job;
	uint64_t ticket;
	/* ENTRIES */
	uint64_t first;
	size_t max;
	uint8_t key[AGENT_KEY];
};

struct virtual_link { /* from a lower number to a higher one */
	bool up, dialling;
	uint64_t epoch;
	bool told[2]; /* the core of this side believes that it is up; side 0 is the lower */
};

struct virtual_commit {
	struct store_batch batch;
	uint64_t ticket;
};

struct virtual_identity {
	uint8_t key[AGENT_KEY], sign_public[32], sign_secret[64], lineage[32];
};

/* What waits for it, and entries of all chains. */
struct virtual_disk {
	struct virtual_commit *commits;
	size_t n_commits;
	struct ledger_signed *entries;
	size_t n_entries;
};

struct virtual_sent {
	uint64_t messages, bytes_out, bytes_in;
};

struct virtual_node {
	struct virtual *v;
	size_t at;
	char *name;
	struct pace pace;
	bool away;
	const struct config *config;
	struct agent_io io;
	struct agent_core *core;
	struct agent_names *names;
	struct agent_learner_kge *real;
	struct agent_learner learner; /* counts what the real one does */
	size_t train, valid;	      /* triples that an epoch, and a look, go through */
	struct virtual_identity who;
	struct rng draws;
	uint64_t timer[AGENT_TIMERS]; /* epochs */
	bool *wants;		      /* [n] a link with that one */
	uint64_t line_ms;	      /* until when its uplink is taken */
	struct virtual_disk disk;
	size_t n_jobs;		    /* under way */
	double work_ms;		    /* of the job that is run, before pace */
	struct kge_metrics seen[2]; /* the last looks at valid: the tables of a better score have
				     * one of them */
	uint64_t epochs, sessions, failed;
	struct virtual_sent sent, sent_then; /* so far; when somebody last learnt */
	uint32_t rounds, local_rounds;
	bool rests; /* hosts no more, and is in no session */
};

struct virtual
{
	struct virtual_config c;
	struct virtual_node *at;
	size_t n;
	struct virtual_link *link; /* [n * n], by (lower, higher) */
	struct virtual_event *heap;
	size_t n_heap, cap_heap;
	uint64_t now_ms, order;
	uint64_t learnt_ms, still_ms; /* when somebody last did; without it so long it is over */
	bool enough, ended;
	struct err trouble; /* of a training; code 0: none */
};

/* ---- virtual_net.c ---- */

void virtual_at(struct virtual *v, uint64_t delay_ms, struct virtual_event e);
/* Moves the clock; the bytes are the caller's.  false: nothing will happen. */
bool virtual_take(struct virtual *v, struct virtual_event *out);
size_t virtual_who(const struct virtual *v, const uint8_t key[AGENT_KEY]); /* n: nobody */
int virtual_send(struct virtual *v, size_t from, size_t to, const uint8_t *bytes, size_t n);
void virtual_dial(struct virtual *v, size_t a, size_t b);
/* `self` hangs up, and is not told. */
void virtual_hang_up(struct virtual *v, size_t self, size_t other);
/* Of a link: whether the core is to hear of it. */
bool virtual_link_event(struct virtual *v, const struct virtual_event *e);
void virtual_turn(struct virtual *v, size_t who);

#endif
