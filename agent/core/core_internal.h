/* agent/core/core_internal.h - the core's own data, which all of its files read.  For agent/core/
 * and its tests alone.
 *
 * A file calls files that stand above it in this list, never one below; tests/shape-limits.txt
 * allows no circle.  A called file tells its caller what has come about by a return value, by a
 * function that the caller gave, or by an enum session_step.
 *
 *   effects        what is asked of the shell: commits, jobs, notices, random numbers
 *   peers          partners: records, alignments, what is sent to them; conduct: breaches
 *   frame          the axes that tables are on, and who moves to whose
 *   learn_best     the best tables change; latest: rounds of pairs that go on
 *   weigh, judge   how much of what partners brought is taken in; whose rows hurt
 *   gossip, intersect    records of members; names put into intersections
 *   core_record    the core's own small record on disk
 *   handback       entries that one of two partners has lost: who is asked
 *   scores         the members whose masked scores are added up; the encoder that gives ours
 *   asks, answers  steps of queries: ours to partners, theirs to us
 *   scores_ask, scores_answer    masked scores: ours of members, theirs of us
 *   peers_choice   of many partners with news, whose rows a round takes in
 *   peers_queue    signals and their queue
 *   dp_charge, history   what private training charges; what partners brought
 *   rounds_validate, rounds_compare, rounds_judge, rounds_state, rounds_part, rounds_align,
 *   rounds_time
 *   peers_hello    what we say in HELLO
 *   learn_merge    rows of partners, until work has them
 *   learn          training, validation, backtracking
 *   rounds         rounds of many: proposing, joining, driving one, its end
 *   session_state  a session's phases, time, waiting, messages out and end
 *   session_ledger, handback_answer    its entries; entries that are handed back
 *   frame_session  what a session says of frames
 *   conversation   intersection and translation inside a session
 *   session        from PROPOSE to DONE or ABORT; peers_links: links come and go
 *   receive        a message comes: is it waited for, and by whom
 *   core           the one way in; what to do next; status: what the owner sees
 *
 * Each of the other private headers has the data and functions of a few of them. */
#ifndef AGENT_CORE_CORE_INTERNAL_H
#define AGENT_CORE_CORE_INTERNAL_H

#include "agent/core/best_internal.h"
#include "agent/core/core.h"
#include "agent/core/history.h"
#include "agent/core/judge_internal.h"
#include "agent/core/votes.h"
#include "agent/core/names.h"
#include "agent/core/rounds_types_internal.h"
#include "agent/core/scores_internal.h"
#include "agent/core/steps_internal.h"
#include "agent/core/terms.h"
#include "agent/core/unsettled.h"
#include "kge/model.h"
#include "store/proved.h"
#include "store/store.h"

struct neighbours;
struct member_record;

enum {
	/* Version of what the core says on a link; HELLO has it first, and nothing else is heard
	 * from a peer with another.  2: rounds; PPAT's contract is written while it translates.
	 * 3: members of a round sign accounts of it.  4: a proposal says rounds.start_seed.
	 * 5: it has a serial number, and the round's id is its digest.  6: a proposal
	 * says model.gamma.  7: steps of queries are asked and answered.
	 * 10: masked scores are.  11: of those that are there, in as many messages as it takes.
	 * 12: a joining says whose rows or answers a member has kept out.  13: that counts where
	 * it holds the item; both ends of a route say what its places mean; HELLO proves that the
	 * signing key is its sender's.  14: a proposal has the digest of its proposer's nonce,
	 * which is all of that one's joining that goes into the round's seed.  15: a host opens
	 * each session on the ledger before rows of the client's leave.  16: a name to a host says
	 * with whom its sender holds it.  17: PFedEG's notes have numbers of entities, and sums
	 * over them, divided by 4096.  18: names are compared with a test of the answers.
	 * 19: by CHECK and ANSWER.
	 * 20: a name is another point for each two agents (net/psi.h); none of an agent has a
	 * control of direction. */
	AGENT_PROTOCOL = 20,
	SEEN_MAX = 64,
	ROUND_AHEAD_MAX = 1000000, /* a round's number moves ours by so much at most */
	SERIAL_STEP_MAX =
		1000000, /* and what is told of our own proposals (note_joined_serial()) */
	AGENT_ALIGN = CONFIG_MAP + 1, /* "t" of PROPOSE: an intersection and nothing else */
};

#define ROUND_NUMBER_MAX (UINT64_C(1) << 62)

enum doing {
	DOING_NOTHING,
	DOING_SESSION, /* one that is in_turn */
	DOING_AGGREGATE,
	DOING_TRAIN,
	DOING_EVALUATE,
	DOING_SAVE,
	DOING_ROUND,
	DOING_VALIDATE, /* that an interruption had left */
};

enum training { TRAINING_FIRST, TRAINING_ROUND, TRAINING_LOCAL };

struct waiting_commit {
	uint64_t ticket, session; /* serial of the session, 0: of none */
	void (*then)(struct agent_core *c);
	void (*session_then)(struct session *s);
};

/* That are given out, the last of each. */
struct core_numbers {
	uint64_t ticket, job, reading;
};

/* Private training: what is on disk, and the statement on its way there. */
struct core_dp {
	struct ledger_training spent;
	struct ledger_stated stated;
	void (*then)(struct agent_core *c);
	bool over;			/* the cap forbade an epoch */
	struct agent_votes_list *votes; /* secret: agent/core/votes.h */
	struct agent_unsettled_list *unsettled;
};

struct aggregation;

/* Where the tables of a round may move to: a partner's frame. */
struct frame_move {
	float *map;
	struct frame to;
	const struct peer *whose;
};

/* Rows that wait to be merged, and where work may move to once they are. */
struct merging {
	struct aggregation *first;
	size_t n;
	uint64_t bytes; /* that they take, about */
	struct frame_move *moves;
	size_t n_moves;
	const struct frame_move *chosen; /* the training job's; NULL: work stays where it is */
	bool plain;			 /* some of what work took in came without noise */
};

/* Of rounds in pairs. */
struct gathered {
	struct merging rows;
	/* of the one under way, since it has one partner's rows: */
	uint64_t until_ms;    /* it waits for others until then */
	uint32_t in_vain;     /* sessions that came to nothing */
	uint64_t links_round; /* how many were over when links were last exchanged */
	bool links_due;	      /* another exchange is, as soon as one may go */
	uint64_t since_ms;    /* its training and scoring */
	/* of the last one, or of the first training: */
	uint64_t takes_ms;
	uint64_t over_ms;    /* ... and when it was over, or the agent started */
	uint32_t lone_worse; /* own rounds in a row without a better score */
	struct judging judging;
	struct judge_plan plan;
};

/* Whom the ledger names. */
struct core_account {
	uint8_t key[AGENT_KEY], lineage[32]; /* the first signing key; the data */
	struct ledger_rotations rotations;   /* of keys: ours and partners' */
	struct buf proved;		     /* whose keys a link has proved (store/proved.h) */
	bool proved_new;		     /* goes to disk with the next batch */
};

/* Why the agent stops by itself. */
struct core_failure {
	int status; /* 0: it does not; ERR_IO: a full disk; ERR_STORE may be another's store, of a
		     * training */
	bool store; /* our own has failed: nothing can be kept any more */
};

/* What partners were told last, and before when they are not told again. */
struct signalled {
	uint64_t serial, due_ms;
};

struct core_sleep {
	bool asleep, wakes; /* wakes: AGENT_TIMER_WAKE is to end it, or waiting */
	uint64_t since_ms;
};

struct agent_core {
	const struct config *config;
	struct agent_terms terms; /* what follows from it */
	struct agent_io io;
	const struct agent_learner *learner;
	const struct graph *graph;
	const struct agent_names *names;
	uint8_t key[AGENT_KEY], sign_public[32], sign_secret[64];
	struct core_account account;
	uint8_t names_secret[32]; /* keys the versions of our name sets */
	/* time of the event under way */
	uint64_t now_ms;
	int64_t wall_ms;
	/* tables: best is never changed but by a better one; work is what is tried; latest is as
	 * the last round left it, where an agent goes on from there (latest.c), else NULL */
	struct kge_emb *best, *work, *latest;
	bool has_best;
	double best_score;
	uint64_t served_serial; /* of the tables that partners get */
	uint64_t epochs;	/* that made the best */
	uint8_t best_digest[32];
	struct frames frames;
	uint32_t worse;		  /* evaluations of rounds since the best, own ones left out */
	struct round_tables made; /* of the round under way, pairs: by its worker */
	/* learning */
	enum doing doing;
	enum training training;
	bool trained;	      /* the first training is over */
	uint32_t first_done;  /* its epochs so far */
	uint32_t first_worse; /* its validations without a better score */
	uint32_t local_left;
	uint64_t tried_epochs; /* in work since it was best */
	/* of the job under way: set before it starts, read by its worker */
	uint32_t job_epochs;
	bool job_reset;
	struct core_dp dp;
	struct neighbours *neighbours; /* of the round under way */
	size_t n_neighbours;
	uint32_t in_round; /* translations in work that wait for training */
	struct gathered gather;
	uint16_t *imported; /* [n_ent + n_rel] partners' rows that work's rows took in this round */
	uint64_t rounds, lone_rounds, improved, sessions;
	bool must_signal;	 /* a best that peers don't know of */
	uint8_t kept_digest[32]; /* of the best tables when the core's record was written */
	struct signalled signal;
	bool train_now; /* the owner asked */
	struct core_sleep sleep;
	bool started, stopping, stopped;
	bool abort_sessions; /* at the end of the event: a training has failed */
	/* peers and sessions */
	struct peer **peers;
	size_t n_peers;
	uint64_t next_queue_position;
	struct session *open[CONFIG_SESSIONS_MAX]; /* sessions under way, the oldest first */
	size_t n_open;
	struct session *ended; /* in the event under way: a list, freed at its end */
	uint64_t session_serial;
	uint64_t rest_due_ms;		       /* as the timer is set; UINT64_MAX: it is not */
	uint8_t seen[SEEN_MAX][AGENT_SESSION]; /* proposals accepted: none twice */
	/* commits and jobs under way */
	struct waiting_commit *commits;
	size_t n_commits;
	struct store_batch signatures; /* of partners, and what else is for the next commit alone;
					* empty between events */
	struct core_numbers next;
	uint64_t job_since_ms;
	struct agent_job *job; /* of learning; a session has its own */
	size_t detached_jobs;  /* jobs of sessions that are over */
	struct core_failure failure;
	struct rounds fed;
	struct member_record *member_records; /* members that we have records of */
	size_t n_member_records;
	struct store_batch at_start;	/* what START commits */
	struct store_restored restored; /* who has to hand back what, before anything is spent */
	struct agent_history history;
	struct asks asks;
	struct answers answers;
};

static inline bool in_rounds(const struct agent_core *c)
{
	return c->config->federation.mode == CONFIG_ROUNDS;
}

/* The rows of the round under way are merged: what comes now is for the next one. */
static inline bool core_trains(const struct agent_core *c)
{
	return c->doing == DOING_TRAIN || c->doing == DOING_EVALUATE || c->doing == DOING_SAVE;
}

static inline bool dp_charge_needed(const struct agent_core *c) /* training is private */
{
	return c->terms.statement.epsilon > 0;
}

/* ---- invariants.c ---- */

void core_assert_invariants(const struct agent_core *c); /* between two events */

/* ---- core_record.c ---- */

void core_record_add(struct agent_core *c, struct store_batch *b); /* the record, as it is now */
int core_record_load(struct agent_core *c, const uint8_t *bytes, size_t n, struct err *e);

#endif
