/* agent/core/session_internal.h - one session: its state, and the files that carry it on.  For
 * agent/core/ and its tests alone. */
#ifndef AGENT_CORE_SESSION_INTERNAL_H
#define AGENT_CORE_SESSION_INTERNAL_H

#include <assert.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "base/conv.h"
#include "base/message_queue.h"
#include "net/bodies.h"
#include "ppat/config.h"
#include "ppat/session.h"

enum {
	INBOX_MAX = 64 << 20,	/* bytes of a session's messages that wait for a job */
	FAILURES_MAX = 16,	/* sessions in a row that fail before a signal is dropped */
	SLOWER = 4,		/* a peer's machine may be so many times slower than ours */
	CONV_STILL_WORKING = 0, /* "c" of CONV messages */
	CONV_PSI = 1,
	CONV_TRANSLATE = 2,
};

enum phase {
	PHASE_PROPOSED,	   /* host: waits for the answer */
	PHASE_SYNC_HOST,   /* entries of the host that the client has not countersigned */
	PHASE_SYNC_CLIENT, /* the same of the client */
	PHASE_PSI,
	PHASE_ALIGNED, /* alignment going to disk, or known: the host goes on */
	PHASE_TERMS,   /* host: config sent, waits for the answer; client: conversation made */
	PHASE_OPENING, /* a map's contract, reserve of 0 */
	PHASE_TRANSLATE,
	PHASE_SETTLE,
	PHASE_DONE, /* client: everything on disk, waits for DONE */
	PHASES,
};

/* The steps that come about below session.c, which goes on from there (session_step()). */
enum session_step {
	SESSION_NO_STEP,
	SESSION_DRIVE,	  /* the conversation may go on */
	SESSION_SYNCED,	  /* the ledgers of both are in step */
	SESSION_ALIGNED,  /* the alignment is on disk */
	SESSION_OPENED,	  /* host: the entries before the conversation are made */
	SESSION_SETTLED,  /* host: the settle bears both signatures */
	SESSION_FINISHED, /* host: the client has settled its own, too */
	SESSION_SERVED,	  /* client: its own settle bears both signatures */
};

struct session {
	struct agent_core *core;
	enum session_step step;
	bool in_turn; /* the core does nothing else meanwhile (DOING_SESSION): where no session runs
		       * beside anything, and as host where none does as such */
	struct agent_job *job;		       /* of its conversation */
	uint64_t lease_due_ms, working_due_ms; /* of the two timers; UINT64_MAX: not */
	uint64_t our_serial;		       /* client: of our best, as we said */
	bool over; /* it has ended; freed when the event that ended it is over */
	uint8_t id[AGENT_SESSION];
	uint64_t serial; /* of this process: tells a late commit of an earlier session */
	struct peer *peer;
	enum agent_role role;
	enum phase phase;
	struct store_session record;
	uint64_t started_ms, received_ms, sent_ms; /* told: when we last said something */
	/* Time so far in which we had something to do ourselves, and in which we waited for the
	 * peer: that is bounded by what it has to do (session_patience_ms()). */
	uint64_t counted_ms, own_ms, theirs_ms;
	uint64_t excused_ms;  /* in neither: a standstill of this agent */
	bool waiting;	      /* a commit or job of this session is under way: messages wait */
	bool beside;	      /* a commit of its ledger is under way that it does not wait for */
	struct session *next; /* of those that have ended */
	struct message_queue inbox;
	/* agreed at the start */
	bool align; /* an intersection and nothing else */
	bool run_psi;
	bool names_count;    /* our points have left: the intersection counts, and is not done */
	uint32_t their_tail; /* entries that they will send first */
	uint32_t our_tail;   /* ... and we */
	uint32_t their_ent_floats, their_rel_floats;
	bool their_virtual, their_unit;
	double their_noise, their_clip; /* noise on their rows when they are client; 0: none */
	bool their_common;		/* under federation.frame: common, with our model */
	struct frame their_frame;	/* with terms.unrotated */
	uint64_t their_serial;		/* host: of the client's best */
	uint32_t moves;			/* host: of our tables, as it was opened with them ... */
	float *own;			/* ... and their rows, where they may change meanwhile */
	/* conversations */
	struct conv *conv;
	uint8_t conv_number;
	bool work_failed;    /* its error may say something of our rows: not for the peer */
	uint64_t psi_points; /* of both sets of the intersection; 0: not known */
	struct ppat_config terms;
	struct ppat_virtual *neighbours;
	uint32_t entries_first; /* client: entries to come before translation starts */
	uint64_t entries;	/* client: that came in this session, those in step aside */
	/* labels */
	uint64_t reserved; /* by this session, on the ledger */
	uint64_t charged;  /* of those, granted to the conversation */
	uint64_t asking;   /* labels of the charge under way, or ahead of it */
	uint64_t ahead;	   /* reserved before the conversation asked for them */
	/* the entry that waits for its countersignature; one at a time */
	enum { ENTRY_NONE, ENTRY_WRITTEN, ENTRY_SENT } entry;
	bool entry_beside; /* the conversation goes on meanwhile */
	uint8_t entry_hash[32];
	void (*entry_then)(struct session *s);
	struct ledger_signed receipt; /* the settle entry with both signatures */
	bool opened;		      /* a reserve of this session is on the ledger */
	bool held;		      /* until the ledger is written nothing goes on ... */
	uint64_t held_since_ms;	      /* ... since then; and ... */
	uint64_t held_ms;	      /* ... before that, in all */
	bool recorded;		      /* on disk, to be closed there */
};

/* ---- session.c ---- */

void session_propose(struct agent_core *c, struct peer *p);
void session_propose_align(struct agent_core *c, struct peer *p);
/* A message of a session: is it for somebody?  Answers or ends what it has to. */
bool session_expects(struct agent_core *c, struct peer *p, const struct net_msg_head *h);
/* One that is expected: true when it is kept for later, as it is. */
bool session_keeps(struct agent_core *c, struct peer *p, const struct net_msg_head *h,
		   const uint8_t *bytes, size_t n);
/* ... else this. */
void session_message(struct agent_core *c, struct peer *p, const struct net_message *m);
/* At the end of each event: of all sessions what follows from it, what waited included. */
void session_step(struct agent_core *c);

/* ---- session_state.c ---- */

/* The one with this peer, there is no other; NULL: none. */
static inline struct session *session_with(const struct agent_core *c, const struct peer *p)
{
	for (size_t i = 0; i < c->n_open; i++)
		if (c->open[i]->peer == p)
			return c->open[i];
	return NULL;
}
static inline struct session *session_first(const struct agent_core *c) /* NULL: none */
{
	return c->n_open > 0 ? c->open[0] : NULL;
}
/* Sessions run beside training and beside each other. */
bool session_beside_all(const struct agent_core *c);
uint32_t session_limit(const struct agent_core *c);    /* at a time */
bool session_hosts_beside(const struct agent_core *c); /* as host: beside all else, or in turn */
/* There is room for one more, as host. */
bool session_may_host(const struct agent_core *c);
static inline size_t session_hosts(const struct agent_core *c) /* so many are under way as host */
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_open; i++)
		n += c->open[i]->role == AGENT_HOST;
	return n;
}
/* What the rows of a session as host take until they are merged, about: as they come, translated,
 * ours beside them, and ours of then.  Before terms are agreed on: as if they were as wide as ours.
 */
static inline uint64_t session_rows_bytes(const struct session *s)
{
	uint64_t ours = s->core->work->ent_floats, slots = s->peer->n_slots, theirs = ours;

	if (s->terms.slots > 0) {
		slots = s->terms.slots;
		theirs = s->terms.client_dim;
	}
	return slots * ((theirs + 3 * ours) * sizeof(float) + sizeof(struct store_slot));
}

/* Of all under way. */
static inline uint64_t session_rows_to_come(const struct agent_core *c)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < c->n_open; i++)
		if (c->open[i]->role == AGENT_HOST && !c->open[i]->align)
			bytes += session_rows_bytes(c->open[i]);
	return bytes;
}
bool session_can_serve(const struct agent_core *c);
struct session *session_new(struct agent_core *c, struct peer *p, enum agent_role role,
			    const uint8_t id[AGENT_SESSION]);
void session_free(struct session *s); /* NULL is fine */
void session_free_ended(struct agent_core *c);
/* Sets the step that follows once the one under way is over. */
static inline void session_then(struct session *s, enum session_step step)
{
	assert(s->step == SESSION_NO_STEP || s->step == step); /* one thing follows from another */
	s->step = step;
}
/* Ends the session alone: nobody is told, nothing is written. */
void session_end(struct session *s);
void session_record_end(struct session *s, enum store_session_state state, int outcome,
			const char *why);
void session_record_done(struct session *s, struct store_batch *b);
void session_commit_record(struct session *s, void (*then)(struct session *s));
void session_finish(struct session *s);	    /* host: the rows are here, aggregate them */
void session_end_served(struct session *s); /* client: the host has them */
/* Ends it on this side; with tell the peer gets ABORT. */
void session_abort(struct session *s, bool tell, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same when `why` may say something of our rows: the peer hears that it is over. */
void session_abort_private(struct session *s, int code, const char *why);
void session_abort_all(struct agent_core *c, int code, const char *why);
void session_link_down(struct agent_core *c, struct peer *p);
void session_goto(struct session *s, enum phase to);
const char *session_phase_name(enum phase p);
void session_wait(struct session *s);  /* messages wait until ... */
void session_ready(struct session *s); /* ... here */
/* Something is under way that messages do not wait for, but silence has a reason ... */
void session_beside(struct session *s);
void session_beside_over(struct session *s); /* ... until here */
/* A message of the session, or the like, has come: the lease begins anew. */
void session_heard(struct session *s);
void session_begin_message(struct session *s, struct net_writer *w, struct buf *out,
			   enum net_msg_type type);
void session_send(struct session *s, struct net_writer *w, struct buf *out);
void session_lease(struct agent_core *c);
/* At the beginning of every event: was this agent itself away until now? */
void session_standstill(struct agent_core *c);
void session_working(struct agent_core *c);

/* ---- frame_session.c ---- */

/* The frame in terms and in their acceptance: that of the tables that this session is about. */
void frame_say(const struct session *s, bool *has, struct net_frame *out);
void frame_hear(struct session *s, bool has, const struct net_frame *said, struct err *e);
bool frame_is_theirs(const struct session *s);

/* ---- conversation.c ---- */

void conversation_psi(struct session *s);
/* Fill s->terms (host) after alignment; ERR_* when translation is impossible. */
int conversation_terms(struct session *s, struct err *e);
int conversation_check_terms(struct session *s, const struct ppat_config *t,
			     struct err *e);		 /* client */
int conversation_open(struct session *s, struct err *e); /* the translator, either role */
void conversation_drive(struct session *s);
/* The conversation has something to send and the link is full: messages wait. */
bool conversation_blocked(const struct session *s);
void conversation_received(struct session *s, const struct net_message *m);
void conversation_job_done(struct session *s, struct agent_job *job);

/* ---- session_ledger.c ---- */

void session_ledger_sync(struct session *s); /* send our tail, one by one, then go on */
/* Host: a map's contract if there is none, reserve of 0; nothing where the client's rows go with
 * noise. */
void session_ledger_opening(struct session *s);
uint32_t session_ledger_entries_first(struct session *s); /* ... how many that will be */
/* Client: its rows leave from here on.  false: nothing on the ledger says so, and the session is
 * over. */
MUST_CHECK bool session_ledger_translate(struct session *s);
/* The conversation wants so many labels: true when they are granted; else they will be, or be
 * refused, and then it is driven on. */
bool session_ledger_charge(struct session *s, uint32_t labels);
/* Reserve what it will want next, while it still draws what it has.  May end the session. */
void session_ledger_ahead(struct session *s);
/* Of the other side: the tails are told; what it may settle by now, also after a cut; ERR_LEDGER:
 * more labels have come than it has reserved. */
void session_ledger_synced(struct session *s);
void session_ledger_note(struct session *s);
MUST_CHECK int session_ledger_check_labels(const struct session *s, struct err *e);
void session_ledger_settle(struct session *s);
void session_ledger_settle_own(struct session *s); /* client: the noise on its rows */
/* What takes a worker long is worked out there, before terms are made of it: is it known, and else
 * a job of the session, which is at SESSION_ALIGNED again after it. */
bool session_ledger_knows(const struct agent_core *c, const struct ledger_mechanism *m);
void session_ledger_price(struct session *s, const struct ledger_mechanism *m);
/* JOB_DONE, also of theirs: first, also where the session is over; then what waited for it. */
void session_ledger_keep_price(struct agent_core *c, const struct agent_job *job);
void session_ledger_priced(struct session *s, struct agent_job *job);
void session_ledger_entry(struct session *s, const struct net_message *m); /* LEDGER_ENTRY */
void session_ledger_ack(struct session *s, const struct net_message *m);   /* LEDGER_ACK */
/* Is it the ACK of an entry that nothing waits for?  It need not wait for a job either. */
bool session_ledger_ack_beside(const struct session *s, enum net_msg_type type);
/* Ours toward p. */
const struct ledger_account *session_ledger_account(const struct agent_core *c,
						    const struct peer *p);
/* The contract's caps, or lower ones that the owner has set since; without a contract zeros. */
struct ledger_caps session_ledger_binding(const struct agent_core *c, struct peer *p);
/* Labels that may still be reserved toward p, by the contract or by the settings. */
uint64_t session_ledger_left(struct agent_core *c, struct peer *p,
			     const struct ledger_mechanism *m);
/* The price of a label of ours toward p, and that of a release of ours. */
struct ledger_mechanism session_ledger_votes(struct agent_core *c, const struct peer *p,
					     uint32_t rows);
struct ledger_mechanism session_ledger_release(const struct agent_core *c);
/* The spending of our data toward everybody, with what settles give back that nobody has
 * countersigned yet; release it. */
void session_ledger_spent(const struct agent_core *c, struct ledger_lineage *l);

#endif
