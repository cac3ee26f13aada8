/* tests/agent/table.h - a few cores around a table, without faults of their own.
 *
 * Messages, commits and jobs happen in the order in which they were asked for;
 * timers when nothing else is left to do.  A test may read, change, drop and
 * add messages between the agents: what a hostile partner could send. */
#ifndef TESTS_AGENT_TABLE_H
#define TESTS_AGENT_TABLE_H

#include "agent/core/core.h"
#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/session_internal.h"
#include "agent/core/names.h"
#include "base/rng.h"
#include "graph/graph.h"
#include "net/bodies.h"
#include "tests/sim/disk.h"

enum { AGENTS = 3 };

enum happening { AT_MESSAGE, AT_UP, AT_DOWN, AT_COMMIT, AT_JOB, AT_ENTRIES };

struct happens {
	enum happening what;
	size_t agent, from;
	uint8_t *bytes;
	size_t n;
	uint64_t ticket, first, max;
	uint8_t key[32];
	struct agent_job *job;
};

struct table;

struct table_agent {
	struct table *table;
	size_t at;
	struct agent_core *core;
	struct config config;
	uint8_t rounds_host[32]; /* table_host() */
	struct agent_io io;
	struct agent_learner learner;
	struct graph *graph;
	struct agent_names *names;
	struct disk disk;
	struct rng draw;
	uint8_t key[32], sign_public[32], sign_secret[64], lineage[32];
	bool keeps[AGENTS];		       /* a link to these, as its core has asked for, ... */
	char dials[AGENTS][STORE_ADDRESS_MAX]; /* ... at these addresses */
	bool called;			       /* by all of its partners; else it dials them */
	size_t connects[AGENTS];	       /* how often it has asked for them */
	bool muted;		    /* its process is ending: what it asks for does not happen */
	uint64_t due[AGENT_TIMERS]; /* UINT64_MAX: not set */
	uint64_t trace;		    /* a hash of all that the core has asked for */
	bool by_settings;	    /* its first tables are those of config */
	uint32_t improvements;	    /* training gets better so often */
	int64_t ahead_ms;	    /* its clock, of the table's */
	double score;
	/* counted */
	uint64_t notices[AGENT_NOTICE_STOPPED + 1];
	uint64_t writes[STORE_WRITE_KINDS], commits;
	uint8_t last_proposer[32]; /* of a round on disk */
	unsigned accounts,
		accounts_differ;   /* accounts of members on record: all, those that differ, */
	unsigned accounts_refused; /* that are not theirs */
	uint64_t sent[NET_MSG_SCORED + 1], working;  /* CONV that says "still working" */
	char last[AGENT_TEXT_MAX + 64];		     /* text of the last notice */
	const char *cause[AGENT_NOTICE_STOPPED + 1]; /* of the last one of a kind, or NULL */
};

struct table {
	struct table_agent agent[AGENTS];
	bool up[AGENTS][AGENTS]; /* [a][b]: a believes in its link to b */
	struct happens *queue;
	size_t head, tail, room;
	uint64_t now_ms, job_ms; /* how long a job takes */
	bool held;		 /* jobs stay under way: all, or those that ... */
	bool (*holds)(const struct table *t, size_t agent, const struct agent_job *job);
	struct happens job[8];
	size_t n_jobs;
	/* Sees each message before it is under way; may change it, or clear it. */
	void (*tamper)(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes);
	void *ctx;
	void (*started)(struct table *t); /* at the end of table_start() */
};

/* Agents that list each other, all names equal; change agent[].config before table_start(). */
void table_init(struct table *t, uint64_t seed);
/* federation.after: back, where the rounds of a story end by themselves; before table_start(). */
void table_goes_back(struct table *t);
void table_start(struct table *t);
void table_release(struct table *t);
/* Rounds of `at` are hosted by `host`. */
void table_host(struct table *t, size_t at, size_t host);
void table_link(struct table *t, size_t a, size_t b, bool up);
/* Until nothing is under way and no timer is due before `until_ms`; at most `steps`. */
void table_run(struct table *t, uint64_t until_ms, size_t steps);
/* One thing that waits; false when nothing does. */
bool table_step(struct table *t);
/* What `from` never said; taken over. */
void table_inject(struct table *t, size_t from, size_t to, struct buf *bytes);
/* ... and it arrives now. */
void table_deliver(struct table *t, size_t from, size_t to, struct buf *bytes);
void table_let_jobs_end(struct table *t);
void table_let_job_end(struct table *t, size_t which); /* of job[n_jobs] */
/* Its process ends here and now; what was committed stays.  Jobs may not be held. */
void table_kill(struct table *t, size_t at);
void table_restart(struct table *t, size_t at); /* from its disk, without links */
struct peer *table_peer(struct table *t, size_t at, size_t other); /* as `at` sees it */

#endif
