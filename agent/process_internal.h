/* agent/process_internal.h - one run of the process, for the files that make it up: process.c opens
 * it, turns and closes it; each of the others has a part of what happens meanwhile.
 *
 * Everything here is of the loop's thread alone.  What returns no error has none: what goes wrong
 * there is in the log, or ends the agent (process_fail()). */
#ifndef AGENT_PROCESS_INTERNAL_H
#define AGENT_PROCESS_INTERNAL_H

#include <jansson.h>
#include <uv.h>

#include "agent/admin.h"
#include "agent/control.h"
#include "agent/core/core.h"
#include "agent/counting.h"
#include "agent/events.h"
#include "agent/figures.h"
#include "agent/invites.h"
#include "agent/log_limit.h"
#include "agent/newcomers.h"
#include "agent/process.h"
#include "agent/signals.h"
#include "agent/start.h"
#include "agent/store_thread.h"
#include "base/log.h"
#include "net/uv/hub.h"
#include "net/uv/must.h"

struct process {
	const struct process_options *options;
	struct signals *signals; /* between this run and the next */
	struct events *events;	 /* likewise */
	struct folder folder;
	struct start start;
	struct roster roster;
	struct invites invites;
	struct newcomers newcomers;
	uv_loop_t loop;
	struct agent_core *core;
	struct agent_io io;
	struct net_hub *hub;
	struct store_thread *store_thread;
	struct control *control;
	struct timer {
		uv_timer_t handle;
		struct process *of;
		enum agent_timer which;
	} timers[AGENT_TIMERS];
	uv_timer_t tick;
	uv_signal_t interrupt, terminate, hangup;
	bool has_psk;
	uint8_t psk[32];
	int64_t started_ms;
	uint64_t busy_ms;     /* loop time when there was last something to do */
	char *shown;	      /* what the status file says, without its time */
	uint64_t shown_ms;    /* loop time when it was written */
	size_t jobs;	      /* on the workers */
	bool pricing;	      /* so is what labels have cost */
	uint64_t stranger_ms; /* for the log: process_links.c, log_stranger() */
	size_t strangers_untold;
	uint64_t trimmed_ms; /* when the roster was last looked through */
	struct log_limit log;
	struct figures figures;
	char handed[NET_HUB_HOST + 9]; /* where the service manager's socket is; "": none */
	char where[PROCESS_WHERE_MAX]; /* of the guest; "": it is shown nothing */
	uint64_t guest_ms;	       /* loop time when it was last shown something */
	bool changed, stopping, closing;
	bool again; /* with agent.yaml as it was read for it, when this run has ended */
	struct buf next_yaml;
	struct err failed;   /* why the agent stops by itself */
	char *floor_warning; /* while the best score is below counting; NULL: it is not */
	bool floor_told;
	struct counting counting; /* of what this run began with */
	/* The arm without partners (agent/alone.h), with federation.control. */
	struct arm {
		uv_work_t req;
		struct alone *alone;  /* NULL: not opened yet, or there is nothing to begin from */
		struct agent_job job; /* of the unit under way */
		bool opening, opened, running, saving;
		int status;	 /* of the last unit, and of saving it */
		uint64_t target; /* epochs of the federated arm */
		uint64_t unit;	 /* of the unit under way */
		/* for who asks, while a unit runs */
		uint64_t epochs;
		double score;
	} arm;
};

/* ---- process_post.c ---- */

int64_t process_wall_ms(void); /* since 1970 */
/* A line of the log, and an event of this kind (agent/events.h). */
void process_say(struct process *p, const char *kind, enum log_level level, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Its name in the roster, else its id, in `id`; valid until the roster changes. */
const char *process_name_of(const struct process *p, const uint8_t key[NET_KEY_BYTES],
			    char id[NET_KEY_TEXT]);

/* To the core, with the time that it is: never from inside one of its effects. */
void process_post(struct process *p, struct agent_event *event);
void process_post_kind(struct process *p, enum agent_event_kind kind);
void process_post_peer(struct process *p, enum agent_event_kind kind, const uint8_t key[AGENT_KEY]);
void process_post_down(struct process *p, const uint8_t key[AGENT_KEY], int status);
void process_post_added(struct process *p, const struct store_peer *peer);

/* The core lets what is under way finish; a new start may follow. */
void process_stop(struct process *p);
/* For good: a new start that was under way does not come. */
void process_end(struct process *p);
/* Why the agent stops by itself; the first one is what process_run() returns. */
void process_fail(struct process *p, int code, const char *text);

/* ---- process_work.c ---- */

/* Who waits for a write, and what the owner has decided by it: both hear when it is on disk. */
struct asker {
	struct control_call *call; /* NULL: nobody */
	json_t *reply;
	char *decision; /* for the log, by free(); NULL: none */
};

void process_work_effects(struct agent_io *io); /* commit, read_entries, start_job */
/* A write of the shell's own, in its turn; an empty batch only waits for those before it.  The
 * contents of the batch and of asker, which may be NULL, are taken over. */
void process_put_chore(struct process *p, struct store_batch *batch, const struct asker *asker);
/* Of the write for it; a has nothing left. */
void process_answer_asker(struct process *p, struct asker *a, int status, const char *why);
/* A decision counts in memory before it is written, and an agent that went on would live by one
 * that its next start does not know.  So it ends, as of a commit that has failed. */
void process_end_undecided(struct process *p, struct asker *a, int status, const char *why);
/* A peer that the roster has no more room for goes from the store as well: with this batch, or with
 * one of its own. */
void process_add_trimmed(struct process *p, struct store_batch *b);
void process_trim_roster(struct process *p);
/* What labels have cost is worked out by a worker where s lacks it, one at a time; what is to be
 * priced is taken out of s. */
void process_look_at_prices(struct process *p, struct agent_status *s);

/* ---- process_links.c ---- */

void process_link_effects(struct agent_io *io); /* send, connect, move, disconnect */
/* Once the core is there.  ERR_IO: `listen`, or the service manager's socket, cannot be had. */
int process_open_hub(struct process *p, struct err *e);

/* ---- process_newcomers.c ---- */

bool process_lists(const struct process *p, const uint8_t key[NET_KEY_BYTES]); /* it is a partner */
/* A link to a partner, by the card that it has shown. */
void process_partner_up(struct process *p, const uint8_t key[NET_KEY_BYTES],
			const struct net_greet_card *card);
/* A link to somebody who is none yet; one too many is refused. */
void process_newcomer_up(struct process *p, const uint8_t key[NET_KEY_BYTES],
			 const struct net_greet_card *card);
/* Its link is gone: so is x, unless it is about to be a partner. */
void process_newcomer_down(struct process *p, struct newcomer *x);
/* Its HELLO makes it a partner, or has it refused; what it says before all is on disk is kept. */
void process_newcomer_says(struct process *p, struct newcomer *x, const uint8_t *bytes, size_t n);
/* Who has said no HELLO in time is refused. */
void process_look_at_newcomers(struct process *p);
/* A newcomer that is no partner so far, and about to be one: the core does not know it. */
bool process_newcomer_joins(struct process *p, const uint8_t key[STORE_KEY]);
/* The owner has listed this peer; before: as the roster had it, or NULL.  The batch is written with
 * it, and who asks hears when all is on disk; the contents of both are taken over. */
void process_admit(struct process *p, const struct store_peer *peer,
		   const struct store_peer *before, struct store_batch *batch,
		   const struct asker *asker);
/* The core revokes it, and writes that down. */
void process_end_partnership(struct process *p, const uint8_t key[STORE_KEY]);

/* ---- process_owner.c ---- */

void process_owner_effects(struct agent_io *io); /* answered, scored */
/* The control socket's callback: each call is answered once, some later.  ctx: the process. */
void process_request(void *ctx, struct control_call *call, const json_t *request);

/* ---- process_arm.c ---- */

/* Begins the next unit of the arm without partners, when the agent has nothing to do. */
void process_look_at_arm(struct process *p, const struct agent_status *s);
bool process_arm_behind(const struct process *p); /* it has units to train */

/* ---- process_status.c ---- */

json_t *process_status(const struct process *p); /* a new reference (agent/report.h) */
/* Where the socket is that was handed over, else what `listen` says. */
const char *process_listens_at(const struct process *p);
/* To the status file and the guest, where there are such. */
void process_show_status(struct process *p);
bool process_status_is_old(const struct process *p); /* the file's is to be written again */
bool process_guest_waits(const struct process *p);   /* likewise */
/* Says once in a run that the tables, once they have been trained, do worse than counting. */
void process_look_at_floor(struct process *p, const struct agent_status *s);

/* ---- process_reload.c ---- */

/* Name, level and form of the log; the command line goes before agent.yaml. */
void process_set_log(const struct process_options *o, const struct config *c);
/* As many workers as sessions want, once in a process; the environment may say another number. */
void process_size_pool(const struct process *p);
/* The settings in agent.yaml now are taken whole or not at all.  restart: where live keys alone
 * have changed nothing starts anew; else, or where nothing has (a file that agent.yaml names may
 * have), the agent does.  reply gets changed, waits, warnings, anew. */
int process_read_again(struct process *p, bool restart, json_t *reply, struct err *e);
void process_on_hangup(uv_signal_t *h, int number); /* SIGHUP, by the loop */
void process_take_signals(struct process *p);	    /* those that came while there was no loop */

#endif
