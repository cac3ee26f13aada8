/* agent/core/core_internal.h - the core's own data.  for agent/core/ alone.
 *
 * core.c      the one way in; what to do next; commits, jobs, timers
 * learn.c     training, validation, backtracking, rounds
 * peers.c     links, HELLO, signals and their queue, member records
 * session.c   one session from PROPOSE to DONE or ABORT
 * conversation.c  the conversations inside a session: intersection, translation
 * session_ledger.c  the ledger inside a session: entries, countersignatures, caps
 * handback.c  ledger entries that one of two partners has lost, with an older copy of its store
 * gossip.c    records of members, passed on
 * conduct.c   messages that nobody waits for; partners that break the protocol
 * intersect.c names that partners put into intersections: limits, history, warnings
 * rounds.c    rounds of many (mode AGENT_ROUNDS): proposing, joining, driving one, its end
 * rounds_align.c  ... who can be in one: greetings, alignments, whose turn it is
 * rounds_part.c   ... what is kept from one to the next
 * rounds_validate.c   ... looks at valid, and those that were interrupted
 * rounds_compare.c  ... whether they help, and when they stop
 * rounds_time.c   ... how long its steps may take
 * core_record.c  what is kept on disk besides: the core's own small record
 * history.c   what partners brought
 */
#ifndef AGENT_CORE_CORE_INTERNAL_H
#define AGENT_CORE_CORE_INTERNAL_H

#include "agent/core/core.h"
#include "agent/core/history.h"
#include "agent/core/member.h"
#include "agent/core/names.h"
#include "base/buf.h"
#include "base/conv.h"
#include "base/message_queue.h"
#include "fed/round.h"
#include "kge/model.h"
#include "net/msg.h"
#include "ppat/config.h"
#include "ppat/session.h"
#include "store/store.h"

enum {
	/* Version of what the core says on a link; HELLO has it first, and nothing else is heard
	 * from a peer with another.  2: rounds; PPAT's contract is written while it translates.
	 * 3: members of a round sign accounts of it.  4: a proposal says rounds.start_seed.
	 * 5: it has a serial number, and the round's id is its digest.  6: a proposal
	 * says model.gamma. */
	AGENT_PROTOCOL = 6,
	INBOX_MAX = 64 << 20, /* bytes of a session's messages that wait for a job */
	OUTBOX_MAX = 4 << 20, /* bytes that wait for a link with a full queue */
	FAILURES_MAX = 16,    /* sessions in a row that fail before a signal is dropped */
	MEMBERS_MAX = 128,    /* records of members that we keep */
	GOSSIP_BYTES = 200000,
	SEEN_MAX = 64,
	ROUNDS_PAST = STORE_ROUNDS_LATE, /* rounds before the last one whose accounts may still come
					    and go */
	TELL_EVERY_MS = 1000,	/* a peer's troubles and records of members: no more often */
	BREACHES_MAX = 5,	/* of the protocol, by a partner: then it is one no more */
	CONDUCT_WHY_MAX = 96,	/* NUL included */
	SLOWER = 4,		/* a peer's machine may be so many times slower than ours */
	COST_TIMES = 2,		/* who has held a session in vain rests so many times as long ... */
	COST_LIMITS = 8,	/* ... and at most for so many limits of a session */
	CONV_STILL_WORKING = 0, /* "c" of CONV messages */
	CONV_PSI = 1,
	CONV_TRANSLATE = 2,
	ROUND_AHEAD_MAX = 1000000,   /* a round's number moves ours by so much at most */
	SERIAL_STEP_MAX = 1000000,   /* and what is told of our own proposals (heard_serial()) */
	AGENT_ALIGN = AGENT_MAP + 1, /* "t" of PROPOSE: an intersection and nothing else */
};

#define ROUND_NUMBER_MAX (UINT64_C(1) << 62)

/* ---- peers ---- */

/* What a HELLO says of the alignment. */
struct rounds_said {
	uint8_t digest[32]; /* zeros: none that is current */
	bool heard;	    /* the peer has said the same */
};

/* Of a peer, in mode AGENT_ROUNDS. */
struct peer_rounds {
	bool proposes; /* it says that it may propose rounds */
	bool over; /* it says that it takes part in none any more: not asked until it says else */
	uint64_t number;    /* of the next round, as it says ... */
	uint64_t number_ms; /* ... since then, or since it greeted */
	uint8_t digest[32];
	bool has_digest;	 /* it says that this is its alignment with us, and current */
	bool deaf;		 /* it has not heard yet that ours is the same */
	bool was_ready;		 /* before its last HELLO */
	struct rounds_said said; /* our last HELLO to it */
	uint64_t greeted_ms;	 /* on this link */
	uint32_t aligns;	 /* since then */
	uint32_t hopes;		 /* waited for its alignment, in vain; not again ... */
	uint64_t hope_from;	 /* ... before so many rounds are done */
	bool differs;		 /* its settings are not ours: no rounds of either are joined */
	bool passed;		 /* its turn has passed without a proposal: nobody waits for it */
	uint64_t absent_ms;	 /* not asked before: it did not answer, declined or was late ... */
	uint32_t absent;	 /* ... so often in a row */
	uint64_t train_ms;	 /* that it says its last training took; 0: it does not say */
	uint32_t slow;		 /* rounds of ours that it needed more time for */
	uint64_t rest_ms;	 /* its proposals are not joined before: they came to nothing ... */
	uint32_t failed;	 /* ... so often in a row */
	uint64_t joined; /* the highest serial of its proposals that we have joined; on disk for all
			  * rounds on record */
	/* in the last round that it was asked for, for the owner */
	bool seen;
	uint64_t fate_number; /* which that was */
	enum fed_fate fate;
	char why[AGENT_TEXT_MAX];
	char account[STORE_REFUSED_MAX]; /* what is wrong with the last one it has signed */
	double distance,
		cosine; /* of its rows from the others', in the last round; -1: not known */
	bool far;
};

/* Of a peer: ledger entries that both have signed and one of the two has lost (handback.c). */
struct peer_handback {
	bool answers;	 /* it says how many entries both have signed: it can be asked ... */
	uint64_t claims; /* ... and so many they are */
	bool asking;	 /* our question is under way; nothing else is done with it meanwhile */
	bool failed;	 /* on this link it had no answer that holds: no session, no question */
	char why[AGENT_TEXT_MAX];	 /* ... for this reason, which it is told, too */
	uint8_t question[AGENT_SESSION]; /* random: an answer repeats it */
	size_t returned;		 /* entries that have come, on this link */
	/* Where two ledgers that differ part: equal at `same`, not equal at `differs`; 0: not
	 * looked for. */
	uint64_t same, differs, from; /* from: what our question is about */
	/* its question, while the store is read; and ours, for a hash of our own */
	uint64_t ticket, own_ticket; /* 0: none */
	uint8_t asked[AGENT_SESSION], asked_hash[32];
	uint64_t asked_from;
	uint32_t asked_max;
	uint64_t n_asked; /* on this link */
};

/* Of a peer: names it put into intersections (intersect.c). */
struct peer_names {
	uint64_t compared;		/* so often, as far as the store remembers */
	struct store_intersection last; /* when compared > 0 */
	uint64_t due_ms;		/* no other one before */
	char warning[AGENT_TEXT_MAX];	/* what is odd about the last one; "": nothing */
};

struct allowance { /* so many at once, so many a second: conduct.c */
	uint64_t at_ms;
	uint32_t used;
};

/* How a partner keeps to the protocol. */
struct conduct {
	uint32_t breaches; /* on disk; none in a day: forgotten */
	uint64_t breach_ms;
	bool shut;	   /* no link to it ... */
	uint64_t until_ms; /* ... before */
	bool said;	   /* the link is closed, the owner told */
	int code;
	char why[CONDUCT_WHY_MAX]; /* of the last breach; on disk */
	struct allowance plain, stray;
};

struct peer {
	struct store_peer info;
	bool linked;
	bool overflow; /* does not take what we send: the link must go */
	bool greeted;  /* its HELLO came on this link */
	struct message_queue outbox;
	struct ledger_chain chain;
	bool closing; /* our contract stands no more, as its owner said: AGENT_META_CLOSE */
	uint8_t seen_session[AGENT_SESSION]; /* as client: the last one with labels ... */
	uint64_t seen_labels;		     /* ... and how many came */
	/* alignment: current when the versions are those of now */
	uint8_t version[32]; /* of our names toward it */
	bool aligned;
	uint8_t aligned_ours[32], aligned_theirs[32], digest[32];
	struct store_slot *slots;
	uint32_t n_slots, n_ent, n_rel;
	bool unusable;		    /* nothing of it can be translated */
	uint8_t version_theirs[32]; /* as last heard */
	/* its signal in our queue */
	bool queued, in_round;
	bool owed;	  /* we deferred it: tell it when we are free ... */
	uint64_t owed_ms; /* ... since then */
	uint64_t place;	  /* in the queue: lower goes first */
	uint64_t not_before_ms;
	uint32_t failures;   /* in a row, deferrals included: for the backoff */
	uint32_t failed_row; /* sessions that failed in a row */
	uint64_t signalled;  /* serial of its best that it last told us of */
	uint64_t served;     /* serial of its best that we last made use of */
	uint64_t served_now; /* ... in the round under way */
	/* what it may not do before: a partner may be broken or hostile */
	uint64_t hurry_ms;	/* make us forget the backoff by a signal */
	uint64_t rest_ms;	/* have a session, after one that came to nothing */
	uint64_t serve_ms;	/* have our tables again */
	uint64_t members_ms;	/* tell us of members */
	uint64_t notice_ms;	/* be told of to the owner, but for a few in advance */
	uint64_t given;		/* serial of our best that it last had ... */
	uint32_t given_again;	/* ... and how often again */
	int64_t clock_off_ms;	/* of its clock, less ours, by its last HELLO */
	bool other_mode;	/* pairs where we do rounds, or the other way round */
	enum agent_roles roles; /* as it says of itself */
	struct peer_rounds fed;
	/* Time that its sessions have taken from others and come to nothing: halved by one that
	 * did not.  It rests for so long, and others go first. */
	uint64_t cost_ms;
	struct conduct conduct;
	uint8_t told_over[AGENT_SESSION]; /* the last session that it was told is over */
	struct peer_handback back;
	struct peer_names names;
	/* for the owner */
	char trouble[AGENT_TEXT_MAX];
	uint64_t sessions, failed, bytes_in, bytes_out;
};

/* ---- one session ---- */

enum phase {
	PHASE_PROPOSED,	   /* host: waits for the answer */
	PHASE_SYNC_HOST,   /* entries of the host that the client has not countersigned */
	PHASE_SYNC_CLIENT, /* the same of the client */
	PHASE_PSI,
	PHASE_ALIGNED, /* alignment going to disk, or known: who goes on is the host */
	PHASE_TERMS,   /* host: config sent, waits for the answer; client: conversation made */
	PHASE_OPENING, /* contract, and Procrustes' reserve of 0 */
	PHASE_TRANSLATE,
	PHASE_SETTLE,
	PHASE_DONE, /* client: everything on disk, waits for DONE */
	PHASES,
};

struct session {
	struct agent_core *core;
	bool in_turn; /* the core does nothing else meanwhile (DOING_SESSION): as host, and where no
		       * session runs beside anything */
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
	uint64_t started_ms, heard_ms, told_ms; /* told: when we last said something */
	/* Time so far in which we had something to do ourselves, and in which we waited for the
	 * peer: that is bounded by what it has to do (session_patience_ms()). */
	uint64_t counted_ms, own_ms, theirs_ms;
	bool waiting;	      /* a commit or job of this session is under way: messages wait */
	bool beside;	      /* a commit of its ledger is under way that it does not wait for */
	struct session *next; /* of those that have ended */
	struct message_queue inbox;
	bool draining; /* the inbox is being handled: not again from within */
	/* agreed at the start */
	bool align; /* an intersection and nothing else */
	bool run_psi;
	bool names_count;	/* our points have left: the intersection counts */
	uint64_t theirs_before; /* names of the peer in the intersection before this one; 0: none */
	uint32_t their_tail;	/* entries that they will send first */
	uint32_t our_tail;	/* ... and we */
	uint32_t their_ent_floats, their_rel_floats;
	bool their_virtual;
	double their_noise, their_clip; /* noise on their rows when they are client; 0: none */
	uint64_t their_serial;		/* host: of the client's best */
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

/* ---- the core ---- */

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

/* Virtual neighbours that came with a translation: kept until the round is trained. */
struct neighbours {
	struct conv *conv; /* owns `v` */
	const struct ppat_virtual *v;
	uint32_t *slot_ent, *slot_rel; /* local id of each slot, or GRAPH_NONE */
};

struct known {
	struct agent_member member;
	struct buf record; /* as it was signed */
};

/* ---- rounds ---- */

enum round_stage {
	ROUND_JOINING, /* proposed or joined; there is no roster */
	ROUND_TRAINING,
	ROUND_EXCHANGE,
	ROUND_SCORING,
	ROUND_SAVING,
};

/* Copies of tables, made on a worker, where they take no time of the loop's. */
struct tables_made {
	struct kge_emb *tables; /* for the core; NULL: it has them */
	struct kge_emb *disk;	/* for the batch */
	uint8_t digest[32];
};

/* A look at valid after a round (rounds_validate.c). */
struct validation {
	bool due;	     /* these tables are to be scored ... */
	bool owed;	     /* ... but that was interrupted */
	struct kge_emb *own; /* the table between training and exchange, if that is scored */
	double score;	     /* valid with looked */
	bool looked, better;
	struct tables_made best; /* with better */
	/* rounds_compare.c: scores on the same few triples, valid with scored */
	bool compared;
	struct kge_emb *trained; /* as own, where own is not what is judged */
	bool scored, has_alone, stops;
	double own_score, merged_score, alone_score;
	struct tables_made other; /* own or alone, where it is better than all that was best ... */
	double other_score;	  /* ... on all of valid */
};

/* Do rounds help (rounds_compare.c)? */
struct compare {
	struct kge_emb *alone; /* trained without partners; NULL: there is none now */
	bool begins;	       /* with our own table of the next round */
	uint32_t ahead;	       /* rounds that came to nothing for which it has been trained */
	uint32_t looks;	       /* since it began */
	uint32_t hurt;	       /* looks of late, a bit each */
	bool far;	       /* a member's rows of this round were */
	/* of the last look */
	bool known, has_alone;
	double own, merged, alone_score;
	bool stopped; /* on disk: no rounds until the owner says so ... */
	char why[AGENT_TEXT_MAX];
};

/* One round, from its proposal to its commit, and a while longer for those who still wait for
 * our rows. */
struct round {
	struct fed_round *machine;
	struct fed_setup setup;
	struct fed_peer *peers; /* of the setup; each owns its slots */
	struct peer *proposer;	/* NULL: we are */
	enum round_stage stage;
	struct validation look;
	bool alone_begins, alone_trains; /* in its training job */
	bool yielded;			 /* left for another: nobody's fault */
	uint64_t due_ms;		 /* as the timer is set; UINT64_MAX: it is not */
	uint64_t started_ms, ended_ms;
	uint64_t work_ms, train_ms; /* when the last job began; how long training took */
	int64_t started_wall_ms;
	/* what it leaves, made before it is saved */
	struct tables_made latest;
	struct buf part, owed;		 /* for the batch; owed: with look.owed */
	struct store_round_member *kept; /* [n_kept] as they are on record; NULL: not yet */
	uint32_t n_kept;
	bool news;	 /* of it something is not asked to be written yet that we sign */
	uint64_t ticket; /* of the commit that writes what we sign; 0: it is on disk, or none is */
	bool closed;	 /* sends no more rows; accounts may still come (fed/round_account.c) */
};

/* What is kept from round to round.  work is the table of the round under way; between rounds
 * work and latest are equal, and the part is as in `saved`. */
struct rounds {
	struct fed_part *part; /* over work */
	struct kge_emb *latest;
	uint8_t beside[32];		 /* digest of the best tables when a round was last kept */
	struct buf saved;		 /* the part, as on disk; empty: as it begins */
	struct agent_name *label;	 /* [n_ent + n_rel] by id */
	struct round *now, *last;	 /* last: over, may still owe rows, or be owed accounts */
	struct round *past[ROUNDS_PAST]; /* before it, the newest first: accounts alone; or NULL */
	struct store_batch changed;	 /* of the last ones' records: goes with the next commit */
	uint64_t number;		 /* of the next one */
	uint64_t done;			 /* that we took part in */
	uint64_t missed;		 /* since the first: count toward rounds.max */
	uint32_t worse;			 /* looks without a better score */
	uint64_t train_ms;		 /* the last training of rounds.epochs; 0: none so far */
	struct validation look;		 /* that an interruption has left, of ... */
	uint8_t look_round[FED_ID];	 /* ... this round */
	bool look_kept;			 /* there is one on disk, maybe of no more use */
	struct compare compare;
	bool resumed;	    /* the owner has said so while we were down */
	bool untrained;	    /* the tables are as they were drawn */
	bool told_proposes; /* what the last HELLO said ... */
	bool told_over;
	uint64_t told_number;
	uint64_t free_ms;  /* since when nothing is under way */
	uint64_t ended_ms; /* of the last round that was not ours to stop; 0: none yet */
	uint64_t rest_ms;  /* we propose nothing before: what we proposed came to nothing ... */
	uint32_t failures; /* ... so often in a row */
	/* A proposal that waits until we are free, or its proposer does not. */
	struct message_queue invitation;
	struct peer *inviter;
	uint64_t invited_ms, invitation_ends_ms;
	uint64_t serial; /* of our last proposal, as we have it on disk or have been told */
	/* Of all on record, and since: none is joined twice, or what members have signed of the
	 * one could be shown as of the other.  Those that are not here any more, struct
	 * peer_rounds `joined` keeps out; these get no answer. */
	uint8_t seen[STORE_ROUNDS_MAX][FED_ID];
	uint64_t n_seen;
	/* for the owner */
	struct fed_report report; /* of the last round, or as far as this one is known */
	char trouble[AGENT_TEXT_MAX];
};

struct agent_core {
	struct agent_config config;
	struct agent_io io;
	const struct agent_learner *learner;
	const struct graph *graph;
	const struct agent_names *names;
	uint8_t key[AGENT_KEY], sign_public[32], sign_secret[64], lineage[32];
	uint8_t names_secret[32]; /* keys the versions of our name sets */
	/* time of the event under way */
	uint64_t now_ms;
	int64_t wall_ms;
	/* tables: best is never changed but by a better one; work is what is tried */
	struct kge_emb *best, *work;
	bool has_best;
	double best_score;
	uint64_t best_serial, epochs; /* epochs: that made the best */
	uint8_t best_digest[32];
	/* learning */
	enum doing doing;
	enum training training;
	bool trained;	      /* the first training is over */
	uint32_t first_done;  /* its epochs so far */
	uint32_t first_worse; /* its looks without a better score */
	uint32_t local_left;
	uint64_t tried_epochs; /* in work since it was best */
	/* of the job under way: set before it starts, read by its worker */
	uint32_t job_epochs;
	bool job_reset;
	/* private training: what is on disk, and the statement on its way there */
	struct ledger_training dp_spent;
	struct ledger_stated dp_stated;
	void (*dp_then)(struct agent_core *c);
	bool dp_over;		       /* the cap forbade an epoch */
	struct neighbours *neighbours; /* of the round under way */
	size_t n_neighbours;
	uint32_t in_round; /* translations in work that wait for training */
	uint64_t gather_until_ms;
	uint16_t *taken; /* [n_ent + n_rel] partners' rows that work's rows took in this round */
	uint64_t rounds, lone_rounds, improved, sessions;
	bool must_signal;	 /* a best that peers don't know of */
	uint8_t kept_digest[32]; /* of the best tables when the core's record was written */
	uint64_t signal_serial;
	bool train_now; /* the owner asked */
	bool asleep, started, stopping, stopped;
	/* peers and sessions */
	struct peer **peers;
	size_t n_peers;
	uint64_t next_place;
	struct session *open[AGENT_SESSIONS_MAX]; /* sessions under way, the oldest first */
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
	uint64_t next_ticket, next_job, next_reading;
	uint64_t job_since_ms;
	struct agent_job *job; /* of learning; a session has its own */
	size_t orphans;	       /* jobs of sessions that are over */
	bool failed_store;
	struct rounds fed;
	struct known *known; /* members that we have records of */
	size_t n_known;
	struct store_batch at_start;	/* what START commits */
	struct store_restored restored; /* who has to hand back what, before anything is spent */
	struct agent_history history;
};

/* ---- core.c ---- */

/* Ask for the batch; then(c) once it is on disk.  then may be NULL. */
void core_commit(struct agent_core *c, struct store_batch *b, void (*then)(struct agent_core *c));
/* The same of a session: then(s) unless it is over by then. */
void session_commit(struct session *s, struct store_batch *b, void (*then)(struct session *s));
void core_start_job(struct agent_core *c, enum agent_job_kind kind,
		    int (*run)(struct agent_job *job), void *subject);
/* The same of a session: its conversation is the worker's until the job is done. */
void session_start_job(struct session *s, int (*run)(struct agent_job *job), void *subject);
void core_notice(struct agent_core *c, enum agent_notice_kind kind, const struct peer *p, int code,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
/* Of a cause that is more than the format says: the format of what is put into it. */
void core_notice_of(struct agent_core *c, enum agent_notice_kind kind, const struct peer *p,
		    int code, const char *cause, const char *fmt, ...)
	__attribute__((format(printf, 6, 7)));
uint64_t core_random(struct agent_core *c);
/* ms, plus up to as much again half, so that two who collided do not again. */
uint64_t core_jitter(struct agent_core *c, uint64_t ms);

/* ---- learn.c ---- */

void learn_first(struct agent_core *c);
void learn_round(struct agent_core *c); /* over what is aggregated in work */
void learn_local(struct agent_core *c);
bool learn_hosts(const struct agent_core *c); /* false: max_rounds reached, client only */
void learn_job_done(struct agent_core *c, struct agent_job *job);
/* The session is over with a translation: aggregate it into work. */
void learn_aggregate(struct agent_core *c, struct peer *p, struct conv *conv);

void learn_release(struct agent_core *c);
/* These tables are the best from now on; adds to the batch.  Sessions as client may be under way:
 * conversation_open() has copied what they send, within one event, and nothing else of them looks
 * at rows of the best tables. */
void learn_accept(struct agent_core *c, const struct kge_emb *tables, double score,
		  struct store_batch *b);
/* ... by who has made the copies already; they are taken over. */
void learn_accept_made(struct agent_core *c, struct tables_made *made, double score,
		       struct store_batch *b);
void learn_failed(struct agent_core *c, int status, const char *why); /* the agent stops */

/* ---- history.c ---- */

int history_load(struct agent_core *c, const struct store_core *saved, struct err *e);
/* A partner has a part in what is about to be judged: the first time, what is best is kept as it
 * is.  Before learn_accept(). */
void history_begin(struct agent_core *c, struct store_batch *b);
/* Of a session's training; before learn_accept(), after history_begin(). */
void history_gain(struct agent_core *c, double after, bool kept);
/* Epochs that were trained; adds to the batch what has changed. */
void history_count(struct agent_core *c, uint32_t epochs, struct store_batch *b);

/* ---- dp_charge.c ---- */

bool dp_charge_needed(const struct agent_core *c); /* training is private */
/* Charge what the training under way will take, or as many epochs of it as fit; then(c) once that
 * is on disk.  With none that fits, job_epochs is 0 and dp_over set. */
void dp_charge_training(struct agent_core *c, void (*then)(struct agent_core *c));

/* ---- peers.c ---- */

bool peer_shares(const struct agent_core *c, char tag); /* names of this kind, with anybody */
/* Whose alias tables are used toward p: its own, or nobody's where one name must do for all. */
const uint8_t *peer_names_key(const struct agent_core *c, const uint8_t key[AGENT_KEY]);
void peer_say_hello(struct agent_core *c, struct peer *p);
/* ms that something waits which has come to nothing so often in a row. */
uint64_t backoff_ms(const struct agent_core *c, uint32_t times);
/* Local ids by slot, GRAPH_NONE where the slot is of the other kind; free() both. */
void peer_slot_ids(const struct store_slot *slots, uint32_t n, uint32_t **ent, uint32_t **rel);
struct peer *peer_find(struct agent_core *c, const uint8_t key[AGENT_KEY]);
size_t peers_listed(const struct agent_core *c);
struct peer *peer_new(struct agent_core *c, const struct store_peer *info);
void peer_free(struct peer *p);
static inline bool peer_listed(const struct peer *p)
{
	return p->info.status == STORE_LISTED;
}
void peer_send(struct agent_core *c, struct peer *p, struct buf *message); /* releases it */
void peer_link_up(struct agent_core *c, struct peer *p);
void peer_link_down(struct agent_core *c, struct peer *p);
void peer_writable(struct agent_core *c, struct peer *p);
void peer_hello(struct agent_core *c, struct peer *p, const struct net_msg *m);
void peer_signal(struct agent_core *c, struct peer *p, const struct net_msg *m);
void peer_added(struct agent_core *c, const struct agent_event *e);
void peer_revoked(struct agent_core *c, const struct agent_event *e);
void peer_trouble(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Alignment known and, as far as we have heard, current. */
bool peer_aligned(const struct peer *p);
bool peer_sends(const struct peer *p); /* its rows, as it says */
bool peer_nothing_shared(const struct peer *p);
/* Put the alignment in place; slots are copied. */
void peer_align(struct peer *p, const uint8_t ours[32], const uint8_t theirs[32],
		const uint8_t digest[32], const struct store_slot *slots, uint32_t n);
/* When we may propose a session to it. */
uint64_t peer_proposed_from(const struct agent_core *c, const struct peer *p);
/* The peer whose signal is next, NULL if none can be served now; *wait_ms is when
 * another look pays (UINT64_MAX: not before something happens). */
struct peer *queue_next(struct agent_core *c, uint64_t *wait_ms);
void queue_put(struct agent_core *c, struct peer *p, uint64_t serial);
void queue_drop(struct agent_core *c, struct peer *p); /* commits */
void queue_later(struct agent_core *c, struct peer *p, uint64_t at_least_ms);
/* A session came to nothing in which we waited for it for so many ms: others and our own work
 * first, for longer each time. */
void peer_rest(struct agent_core *c, struct peer *p, uint64_t theirs_ms);
/* Somebody who has cost others less waits for us to be free. */
bool peer_gives_way(const struct agent_core *c, const struct peer *p);
/* It has had our tables of this serial: again at once when they are better, else ever later. */
void peer_served(struct agent_core *c, struct peer *p, uint64_t serial);
/* How long it has to wait before it may be our host; 0: not at all. */
uint64_t peer_must_wait(const struct agent_core *c, const struct peer *p);
void signal_all(struct agent_core *c);
/* Those that we deferred hear that we are free, so that they need not guess when. */
void signal_owed(struct agent_core *c);

/* It is no partner any more: what is under way with it ends. */
void peer_end(struct agent_core *c, struct peer *p);

/* ---- conduct.c ---- */

/* It has done what no honest agent does: its link goes before anything else is heard of it. */
void conduct_breach(struct agent_core *c, struct peer *p, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* Does anybody wait for such a message of p's now?  Else it is dropped as it is. */
bool conduct_expects(struct agent_core *c, struct peer *p, const struct net_msg_head *h);
/* Close the links of those that broke the protocol, open those that have rested. */
void conduct_carry_out(struct agent_core *c);
void conduct_clear(struct peer *p); /* the owner wants it */
void conduct_load(struct peer *p);  /* its count is as it is on disk */

/* ---- handback.c ---- */

enum { HANDBACK_ENTRIES = 128, HANDBACK_BYTES = LEDGER_WIRE + LEDGER_SIGNATURE };

int handback_load(struct agent_core *c, const struct store_core *saved, struct err *e);
void handback_start(struct agent_core *c); /* adds to at_start */
void handback_put_hello(struct peer *p, struct net_writer *w);
struct handback_hello {	 /* what a HELLO says of it */
	bool answers;	 /* it knows of this */
	uint64_t claims; /* entries that it says both have signed */
};
void handback_read_hello(const struct net_map *m, struct handback_hello *h, struct err *e);
void handback_take_hello(struct peer *p, const struct handback_hello *h);
void handback_greeted(struct agent_core *c, struct peer *p); /* asks, if there is a reason */
void handback_pull(struct agent_core *c, struct peer *p, const struct net_msg *m);
void handback_back(struct agent_core *c, struct peer *p, const struct net_msg *m);
void handback_entries(struct agent_core *c, const struct agent_event *e);
void handback_link_down(struct peer *p); /* or a new link begins */
/* Is this LEDGER_BACK the answer to a question of ours? */
bool handback_expects(const struct peer *p, const struct net_msg_head *h);
/* Its ledger and ours are not compared yet: no session with it. */
bool handback_waits(const struct agent_core *c, const struct peer *p);
/* Something may be missing from our ledgers: nothing of ours is spent toward anybody. */
bool handback_blocks(const struct agent_core *c);
/* As handback_blocks(), of the statements of private training. */
bool handback_blocks_training(const struct agent_core *c);
/* The heads in PROPOSE or ACCEPT show that one of the two lacks entries which both have signed, or
 * that the ledgers differ at their heads: what is done about it, in words.  0: nothing is wrong. */
int handback_heads(struct agent_core *c, struct peer *p, uint64_t sequence, uint32_t tail,
		   const uint8_t head[32], struct err *e);

/* ---- gossip.c ---- */

void gossip_load(struct agent_core *c, const struct store_core *saved);
void gossip_release(struct agent_core *c);
void gossip_send(struct agent_core *c, struct peer *p);
void peer_members(struct agent_core *c, struct peer *p, const struct net_msg *m);

/* ---- intersect.c ---- */

/* Of a partner in one intersection, when we put in `ours`. */
size_t intersect_names_max(const struct agent_core *c, size_t ours);
/* How long no intersection with p may begin; 0: one may now. */
uint64_t intersect_wait_ms(const struct agent_core *c, const struct peer *p);
void intersect_load(struct agent_core *c, const struct store_core *saved);
void intersect_start(struct agent_core *c); /* the event START: the time is known */
void intersect_begun(struct session *s);    /* our points are about to leave; commits */
/* It is over, so many names are shared: adds to the batch, tells the owner. */
void intersect_done(struct session *s, struct store_batch *b, uint64_t shared);

/* ---- session.c ---- */

/* The one with this peer, there is no other; NULL: none. */
struct session *session_with(const struct agent_core *c, const struct peer *p);
static inline struct session *session_first(const struct agent_core *c) /* NULL: none */
{
	return c->n_open > 0 ? c->open[0] : NULL;
}
/* Sessions run beside training and beside each other. */
bool session_beside_all(const struct agent_core *c);
uint32_t session_limit(const struct agent_core *c); /* at a time */
bool session_has_room(const struct agent_core *c);  /* for one more */
bool session_can_serve(const struct agent_core *c);
void session_abort_all(struct agent_core *c, int code, const char *why);
void session_propose(struct agent_core *c, struct peer *p);
void session_proposed(struct agent_core *c, struct peer *p, const struct net_msg *m);
void session_propose_align(struct agent_core *c, struct peer *p);
/* A message of a session: is it for somebody?  Answers or ends what it has to. */
bool session_expects(struct agent_core *c, struct peer *p, const struct net_msg_head *h);
/* One that is expected: true when it is kept for later, as it is. */
bool session_keeps(struct agent_core *c, struct peer *p, const struct net_msg_head *h,
		   const uint8_t *bytes, size_t n);
/* ... else this. */
void session_message(struct agent_core *c, struct peer *p, const struct net_msg *m);
/* How long all that the peer has to do may take it, by what both have agreed on. */
uint64_t session_patience_ms(const struct session *s);
uint64_t session_theirs_ms(const struct session *s); /* how long it has taken so far */
void session_link_down(struct agent_core *c, struct peer *p);
void session_lease(struct agent_core *c);
void session_working(struct agent_core *c);
/* Ends it on this side; with tell the peer gets ABORT. */
void session_abort(struct session *s, bool tell, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same when `why` may say something of our rows: the peer hears that it is over. */
void session_abort_private(struct session *s, int code, const char *why);
void session_goto(struct session *s, enum phase to);
void session_wait(struct session *s);  /* messages wait until ... */
void session_ready(struct session *s); /* ... here */
void session_drain(struct session *s); /* and are handled now */
/* Something is under way that messages do not wait for, but silence has a reason ... */
void session_beside(struct session *s);
void session_beside_over(struct session *s); /* ... until here */
void session_begin_message(struct session *s, struct net_writer *w, struct buf *out,
			   enum net_msg_type type);
void session_send(struct session *s, struct net_writer *w, struct buf *out);
/* The ledger of both is in step: what comes after the two sync phases. */
void session_synced(struct session *s);
void session_aligned(struct session *s);
void session_record_done(struct session *s, struct store_batch *b);
void session_open_translator(struct session *s); /* host, entries done */
void session_done(struct session *s);		 /* host, settled: DONE, and the end ... */
void session_finish(struct session *s);		 /* ... which a client's settle may precede */
void session_served(struct session *s);		 /* client, the end */
void session_free(struct session *s);		 /* NULL is fine */
void session_free_ended(struct agent_core *c);
const char *phase_name(enum phase p);

/* ---- conversation.c ---- */

void conversation_psi(struct session *s);
/* Fill s->terms (host) after alignment; ERR_* when translation is impossible. */
int conversation_terms(struct session *s, struct err *e);
int conversation_check_terms(struct session *s, const struct ppat_config *t,
			     struct err *e);		 /* client */
int conversation_open(struct session *s, struct err *e); /* the translator, either role */
void conversation_drive(struct session *s);
/* What the peer has to do in the conversations of this session, on a slow machine and a slow link,
 * as far as the sizes are agreed on. */
uint64_t conversation_work_ms(const struct session *s);
/* The conversation has something to send and the link is full: messages wait. */
bool conversation_blocked(const struct session *s);
void conversation_received(struct session *s, const struct net_msg *m);
void conversation_job_done(struct session *s, struct agent_job *job);
void conversation_disclosed(const struct session *s, uint64_t *rows, uint64_t *floats);

/* ---- session_ledger.c ---- */

void session_ledger_sync(struct session *s);	/* send our tail, one by one, then go on */
void session_ledger_opening(struct session *s); /* host: contract if needed, reserve of 0 */
uint32_t session_ledger_entries_first(struct session *s); /* ... how many that will be */
/* The conversation wants so many labels: true when they are granted; else they will be, or be
 * refused, and then it is driven on. */
bool session_ledger_charge(struct session *s, uint32_t labels);
/* Reserve what it will want next, while it still draws what it has.  May end the session. */
void session_ledger_ahead(struct session *s);
void session_ledger_note_labels(struct session *s); /* of the other's: how many have come */
void session_ledger_settle(struct session *s);
void session_ledger_settle_own(struct session *s); /* client: the noise on its rows */
void session_ledger_entry(struct session *s, const struct net_msg *m); /* LEDGER_ENTRY */
void session_ledger_ack(struct session *s, const struct net_msg *m);   /* LEDGER_ACK */
/* Is it the ACK of an entry that nothing waits for?  It need not wait for a job either. */
bool session_ledger_ack_beside(const struct session *s, enum net_msg_type type);
/* Ours toward p. */
const struct ledger_account *session_ledger_account(const struct agent_core *c,
						    const struct peer *p);
/* Labels that may still be reserved toward p, by the contract or by the settings. */
uint64_t session_ledger_left(struct agent_core *c, struct peer *p,
			     const struct ledger_mechanism *m);
/* What a label of ours toward p costs, and what a release of ours does. */
struct ledger_mechanism session_ledger_votes(struct agent_core *c, const struct peer *p,
					     uint32_t rows);
struct ledger_mechanism session_ledger_release(const struct agent_core *c);
/* What our data has spent toward everybody; release it. */
void session_ledger_lineage(const struct agent_core *c, struct ledger_lineage *l);
int session_ledger_caps(struct agent_core *c, const struct ledger_mechanism *m,
			struct ledger_caps *caps, struct err *e);

/* ---- rounds.c ---- */

void round_free(struct round *r); /* NULL is fine; no worker may be at its work */

static inline bool in_rounds(const struct agent_core *c)
{
	return c->config.mode == AGENT_ROUNDS;
}

/* Nothing is under way: what is next?  Starts at most one thing. */
void rounds_next(struct agent_core *c, struct peer **align, uint64_t *wait_ms);
/* Of a round that we know, or that we could join? */
bool rounds_expect(const struct agent_core *c, const struct peer *p, const struct net_msg_head *h);
bool rounds_know(const struct agent_core *c, const struct net_msg_head *h);
void rounds_message(struct agent_core *c, struct peer *p, const struct net_msg *m,
		    const uint8_t *bytes, size_t n);
void rounds_lost(struct agent_core *c, struct peer *p); /* its link is down, or it is revoked */
void rounds_writable(struct agent_core *c, struct peer *p);
void rounds_here(struct agent_core *c, struct peer *p); /* greeted: it may lack accounts */
void rounds_timer(struct agent_core *c);
void rounds_remember(struct agent_core *c, const uint8_t id[FED_ID]);
void rounds_who_we_are(const struct agent_core *c, struct fed_setup *s);
void rounds_job_done(struct agent_core *c, struct agent_job *job);
void rounds_stop(struct agent_core *c, const char *why); /* leave what is under way */
/* All up to this commit is on disk: accounts that waited for it may leave. */
void rounds_committed(struct agent_core *c, uint64_t ticket);

/* ---- rounds_validate.c ---- */

void validation_release(struct validation *l);
/* On a worker: score, then copies for the disk; ... */
int validation_score(const struct agent_core *c, struct validation *l, struct agent_job *job);
void validation_make(const struct agent_core *c, struct validation *l);
/* ... and on the loop: what comes of it. */
void validation_judge(struct agent_core *c, struct validation *l, struct store_batch *b);
/* One that is owed, as the next start finds it; latest: digest of the tables of its round. */
void validation_save(const struct validation *l, const uint8_t id[FED_ID], const uint8_t latest[32],
		     struct buf *out);
void validation_load(struct agent_core *c, const struct store_meta *saved, bool goes_on);
void validation_start(struct agent_core *c);
void validation_done(struct agent_core *c, const struct agent_job *job);
void validation_clear(struct agent_core *c, struct store_batch *b); /* none is owed any more */

/* ---- rounds_compare.c ---- */

/* Are the rows of this member far from the others'?  By distances, negative: not known. */
bool compare_is_far(const double *distance, size_t n, size_t which);
/* Has a round with these scores hurt?  far: a member's rows were far out. */
bool compare_hurts(double own, double merged, double alone, bool far);
/* What a round that is over says of its members' rows. */
void compare_members(struct agent_core *c, const struct fed_round *m, unsigned members);
/* Around the training of a round: on the loop before it, on its worker after our own, and when the
 * round came to nothing. */
void compare_begin(struct agent_core *c, struct round *r);
int compare_train(struct agent_core *c, struct round *r, struct agent_job *job);
void compare_undo(struct agent_core *c, struct round *r);
/* What the best tables will be when rounds stop after this look. */
const struct kge_emb *compare_back_to(const struct agent_core *c, const struct validation *l);
/* After validation_score() on its worker; after validation_judge() on the loop. */
int compare_score(const struct agent_core *c, struct validation *l, struct agent_job *job);
void compare_judge(struct agent_core *c, struct validation *l, struct store_batch *b);
void compare_load(struct agent_core *c);
void compare_forget(struct agent_core *c); /* all of it, that rounds are stopped, too */
void compare_release(struct agent_core *c);
bool rounds_stopped(const struct agent_core *c);
void rounds_resume(struct agent_core *c); /* the owner wants them again */

/* ---- rounds_align.c ---- */

void rounds_put_hello(struct agent_core *c, struct peer *p, struct net_writer *w);
/* What a HELLO says of rounds, read as a whole before any of it is taken. */
struct rounds_hello {
	bool rounds; /* federation.mode; the rest is there if both are in rounds */
	bool proposes, over, deaf, has_digest, has_train;
	uint64_t number, joined, train_ms;
	uint8_t digest[32];
};
void rounds_read_hello(const struct agent_core *c, const struct net_map *m, struct rounds_hello *h,
		       struct err *e);
void rounds_take_hello(struct agent_core *c, struct peer *p, const struct rounds_hello *h);
void rounds_greeted(struct agent_core *c, struct peer *p); /* its HELLO is here */
void rounds_tell(struct agent_core *c); /* who is linked hears what has changed of our HELLO */
/* Both say that the alignment is current: it can be in a round with us now. */
bool rounds_ready(const struct agent_core *c, const struct peer *p);
/* ... and a round of ours would ask it, when it has rested. */
bool rounds_asked(const struct agent_core *c, const struct peer *p);
bool rounds_shares(const struct peer *p);	 /* a name: rows can move between us */
bool rounds_is_host(const struct agent_core *c); /* of a hosted round */
struct peer *rounds_align_next(struct agent_core *c, uint64_t *wait_ms);
/* Until when to wait for alignments that may still come; 0: for none. */
uint64_t rounds_hope_ms(const struct agent_core *c);
void rounds_despair(struct agent_core *c);     /* it was in vain */
bool rounds_joins(const struct agent_core *c); /* false: rounds.max is reached */
/* Partners have had rounds since our last one: they count.  True: our record has changed. */
bool rounds_count_missed(struct agent_core *c);
bool rounds_proposes(const struct agent_core *c); /* we may propose, now or later */
/* When we may propose; UINT64_MAX: not before something happens. */
uint64_t rounds_turn_ms(const struct agent_core *c);
/* What keeps everybody from proposing, for the owner; "": nothing. */
void rounds_waits(const struct agent_core *c, char *out, size_t n);
void rounds_pass_over(struct agent_core *c); /* it is our turn since others let theirs pass */
/* ERR_REFUSED with the key and both values: a round that our owner does not want. */
int rounds_policy(const struct agent_core *c, const struct peer *p, const struct fed_proposal *o,
		  struct err *e);

/* ---- rounds_time.c ---- */

/* What we propose for the training and for each way of a stage. */
uint32_t rounds_train_ms(const struct agent_core *c);
uint32_t rounds_stage_ms(const struct agent_core *c);
/* Is what a proposal gives enough for us?  ERR_REFUSED. */
int rounds_enough(const struct agent_core *c, const struct fed_settings *s, struct err *e);
void rounds_trained(struct agent_core *c, uint64_t ms); /* rounds.epochs, in so long */
/* It was asked by us and did not take part; late: its rows did not come. */
void rounds_was_late(const struct agent_core *c, struct peer *p, bool late);

/* ---- rounds_part.c ---- */

int rounds_load(struct agent_core *c, const struct agent_parts *parts, struct err *e);
void rounds_release(struct agent_core *c);
/* Tables and part as they were before the round, bit for bit. */
void rounds_restore(struct agent_core *c);
void rounds_restart(struct agent_core *c); /* from the best tables, with a new part */
void rounds_begin_equal(struct agent_core *c);
/* What the round has made is what rounds go on from: copies it, on a worker, ... */
void rounds_make(struct agent_core *c, struct round *r);
/* ... and adds it to the batch. */
void rounds_keep(struct agent_core *c, struct round *r, struct store_batch *b);
/* What the owner may read of it later; adds to the batch. */
void rounds_record(struct agent_core *c, struct round *r, struct store_batch *b);
/* A round that is on record has sent more since, or a member has signed for it.  NULL is fine. */
void rounds_record_again(struct agent_core *c, struct round *r);
/* What is on record is what this says: its accounts may be signed. */
void rounds_recorded(struct round *r);
/* The newest ones on record, which hear and tell accounts again. */
void rounds_recall(struct agent_core *c, const struct store_core *saved);
const char *rounds_label(void *ctx, char tag, uint32_t id, size_t *len);

/* ---- core_record.c ---- */

void core_record_add(struct agent_core *c, struct store_batch *b); /* the record, as it is now */
int core_record_load(struct agent_core *c, const uint8_t *bytes, size_t n, struct err *e);

#endif
