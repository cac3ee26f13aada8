/* agent/state.h - the core's own data.  Only agent/core*.c include this.
 *
 * core.c      the one way in; what to do next; commits, jobs, timers
 * learn.c     training, validation, backtracking, rounds
 * peers.c     links, HELLO, signals and their queue, member records
 * session.c   one session from PROPOSE to DONE or ABORT
 * talk.c      the conversations inside a session: intersection, translation
 * spend.c     the ledger inside a session: entries, countersignatures, caps
 * gossip.c    records of members, passed on
 * rounds.c    rounds of many (mode AGENT_ROUNDS): proposing, joining, driving one, its end
 * rounds_align.c  ... who can be in one: greetings, alignments, whose turn it is
 * rounds_part.c   ... what is kept from one to the next
 * rounds_look.c   ... looks at valid, and those that were interrupted
 * keep.c      what is kept on disk besides: the core's own small record
 */
#ifndef AGENT_STATE_H
#define AGENT_STATE_H

#include "agent/core.h"
#include "agent/member.h"
#include "agent/names.h"
#include "base/buf.h"
#include "base/conv.h"
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
	PARCEL_COST = sizeof(void *) + sizeof(size_t) + 32, /* memory beside its bytes */
	TELL_EVERY_MS = 1000,	/* a peer's troubles and records of members: no more often */
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
};

struct parcel { /* one message that waits; a list */
	struct parcel *next;
	size_t n;
	uint8_t bytes[];
};

struct parcels {
	struct parcel *first, **end;
	size_t bytes;
};

struct peer {
	struct store_peer info;
	bool linked;
	bool overflow; /* does not take what we send: the link must go */
	bool greeted;  /* its HELLO came on this link */
	struct parcels outbox;
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
	bool owed;	/* we deferred it: tell it when we are free */
	uint64_t place; /* in the queue: lower goes first */
	uint64_t not_before_ms;
	uint32_t failures;   /* in a row, deferrals included: for the backoff */
	uint32_t failed_row; /* sessions that failed in a row */
	uint64_t signalled;  /* serial of its best that it last told us of */
	uint64_t served;     /* serial of its best that we last made use of */
	uint64_t served_now; /* ... in the round under way */
	/* what it may not do before: a partner may be broken or hostile */
	uint64_t hurry_ms;    /* make us forget the backoff by a signal */
	uint64_t rest_ms;     /* have a session, after one that came to nothing */
	uint64_t serve_ms;    /* have our tables again */
	uint64_t members_ms;  /* tell us of members */
	uint64_t notice_ms;   /* be told of to the owner, but for a few in advance */
	uint64_t given;	      /* serial of our best that it last had ... */
	uint32_t given_again; /* ... and how often again */
	bool other_mode;      /* pairs where we do rounds, or the other way round */
	struct peer_rounds fed;
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
	uint8_t id[AGENT_SESSION];
	uint64_t serial; /* of this process: tells a late commit of an earlier session */
	struct peer *peer;
	enum agent_role role;
	enum phase phase;
	struct store_session record;
	uint64_t started_ms, heard_ms, told_ms; /* told: when we last said something */
	bool waiting; /* a commit or job of this session is under way: messages wait */
	bool beside;  /* a commit of its ledger is under way that it does not wait for */
	struct parcels inbox;
	bool draining; /* the inbox is being handled: not again from within */
	/* agreed at the start */
	bool align; /* an intersection and nothing else */
	bool run_psi;
	uint32_t their_tail; /* entries that they will send first */
	uint32_t our_tail;   /* ... and we */
	uint32_t their_ent_floats, their_rel_floats;
	bool their_virtual;
	double their_noise, their_clip; /* noise on their rows when they are client; 0: none */
	uint64_t their_serial;		/* host: of the client's best */
	/* conversations */
	struct conv *conv;
	uint8_t conv_number;
	bool work_failed; /* its error may say something of our rows: not for the peer */
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
	void (*entry_then)(struct agent_core *c);
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
	DOING_SESSION,
	DOING_AGGREGATE,
	DOING_TRAIN,
	DOING_EVALUATE,
	DOING_SAVE,
	DOING_ROUND,
	DOING_LOOK, /* that an interruption had left */
};

enum training { TRAINING_FIRST, TRAINING_ROUND, TRAINING_LOCAL };

struct waiting_commit {
	uint64_t ticket, session; /* serial of the session, 0: of none */
	void (*then)(struct agent_core *c);
};

/* Virtual neighbours that came with a translation: kept until the round is trained. */
struct neighbours {
	struct conv *conv; /* owns `v` */
	const struct ppat_virtual *v;
	uint32_t *slot_ent, *slot_rel; /* local id of each slot, or KGE_NONE */
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

/* A look at valid after a round (rounds_look.c). */
struct look {
	bool due;	     /* these tables are to be scored ... */
	bool owed;	     /* ... but that was interrupted */
	struct kge_emb *own; /* the table between training and exchange, if that is scored */
	double score;	     /* valid with looked */
	bool looked, better;
	struct tables_made best; /* with better */
};

/* One round, from its proposal to its commit, and a while longer for those who still wait for
 * our rows. */
struct round {
	struct fed_round *machine;
	struct fed_setup setup;
	struct fed_peer *peers; /* of the setup; each owns its slots */
	struct peer *proposer;	/* NULL: we are */
	enum round_stage stage;
	struct look look;
	bool yielded;	 /* left for another: nobody's fault */
	uint64_t due_ms; /* as the timer is set; UINT64_MAX: it is not */
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
	struct look look;		 /* that an interruption has left, of ... */
	uint8_t look_round[FED_ID];	 /* ... this round */
	bool look_kept;			 /* there is one on disk, maybe of no more use */
	bool untrained;			 /* the tables are as they were drawn */
	bool told_proposes;		 /* what the last HELLO said ... */
	bool told_over;
	uint64_t told_number;
	uint64_t free_ms;  /* since when nothing is under way */
	uint64_t ended_ms; /* of the last round that was not ours to stop; 0: none yet */
	uint64_t rest_ms;  /* we propose nothing before: what we proposed came to nothing ... */
	uint32_t failures; /* ... so often in a row */
	/* A proposal that waits until we are free, or its proposer does not. */
	struct parcels invitation;
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
	const struct kge_graph *graph;
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
	/* peers and the session */
	struct peer **peers;
	size_t n_peers;
	uint64_t next_place;
	struct session *session;
	uint64_t session_serial;
	uint8_t seen[SEEN_MAX][AGENT_SESSION]; /* proposals accepted: none twice */
	/* commits and jobs under way */
	struct waiting_commit *commits;
	size_t n_commits;
	struct store_batch signatures; /* of partners, and what else is for the next commit alone;
					* empty between events */
	uint64_t next_ticket, next_job;
	struct agent_job *job; /* of learning or of the session */
	size_t orphans;	       /* jobs of sessions that are over */
	bool failed_store;
	struct rounds fed;
	struct known *known; /* members that we have records of */
	size_t n_known;
	struct store_batch at_start; /* what START commits */
};

/* ---- core.c ---- */

/* Ask for the batch; then(c) once it is on disk, unless its session is over by then.
 * then may be NULL. */
void core_commit(struct agent_core *c, struct store_batch *b, struct session *s,
		 void (*then)(struct agent_core *c));
void core_start_job(struct agent_core *c, enum agent_job_kind kind,
		    int (*run)(struct agent_job *job), void *subject);
void core_notice(struct agent_core *c, enum agent_notice_kind kind, const struct peer *p, int code,
		 const char *fmt, ...) __attribute__((format(printf, 5, 6)));
uint64_t core_random(struct agent_core *c);
/* ms, plus up to as much again half, so that two who collided do not again. */
uint64_t core_jitter(struct agent_core *c, uint64_t ms);
void parcels_add(struct parcels *l, const uint8_t *bytes, size_t n);
struct parcel *parcels_take(struct parcels *l); /* free() it; NULL when empty */
void parcels_release(struct parcels *l);

/* ---- learn.c ---- */

void learn_first(struct agent_core *c);
void learn_round(struct agent_core *c); /* over what is aggregated in work */
void learn_local(struct agent_core *c);
bool learn_hosts(const struct agent_core *c); /* false: max_rounds reached, client only */
void learn_job_done(struct agent_core *c, struct agent_job *job);
/* The session is over with a translation: aggregate it into work. */
void learn_aggregate(struct agent_core *c, struct peer *p, struct conv *conv);

void learn_release(struct agent_core *c);
/* These tables are the best from now on; adds to the batch. */
void learn_accept(struct agent_core *c, const struct kge_emb *tables, double score,
		  struct store_batch *b);
/* ... by who has made the copies already; they are taken over.  No session of mode AGENT_PAIRS may
 * be under way: it reads the tables that go. */
void learn_accept_made(struct agent_core *c, struct tables_made *made, double score,
		       struct store_batch *b);
void learn_failed(struct agent_core *c, int status, const char *why); /* the agent stops */

/* ---- charge.c ---- */

bool charge_needed(const struct agent_core *c); /* training is private */
/* Charge what the training under way will take, or as many epochs of it as fit; then(c) once that
 * is on disk.  With none that fits, job_epochs is 0 and dp_over set. */
void charge_training(struct agent_core *c, void (*then)(struct agent_core *c));

/* ---- peers.c ---- */

bool peer_shares(const struct agent_core *c, char tag); /* names of this kind, with anybody */
/* Whose alias tables are used toward p: its own, or nobody's where one name must do for all. */
const uint8_t *peer_names_key(const struct agent_core *c, const uint8_t key[AGENT_KEY]);
void peer_say_hello(struct agent_core *c, struct peer *p);
/* ms that something waits which has come to nothing so often in a row. */
uint64_t backoff_ms(const struct agent_core *c, uint32_t times);
/* Local ids by slot, KGE_NONE where the slot is of the other kind; free() both. */
void peer_slot_ids(const struct peer *p, uint32_t **ent, uint32_t **rel);
struct peer *peer_find(struct agent_core *c, const uint8_t key[AGENT_KEY]);
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
bool peer_nothing_shared(const struct peer *p);
/* Put the alignment in place; slots are copied. */
void peer_align(struct peer *p, const uint8_t ours[32], const uint8_t theirs[32],
		const uint8_t digest[32], const struct store_slot *slots, uint32_t n);
/* The peer whose signal is next, NULL if none can be served now; *wait_ms is when
 * another look pays (UINT64_MAX: not before something happens). */
struct peer *queue_next(struct agent_core *c, uint64_t *wait_ms);
void queue_put(struct agent_core *c, struct peer *p, uint64_t serial);
void queue_drop(struct agent_core *c, struct peer *p); /* commits */
void queue_later(struct agent_core *c, struct peer *p, uint64_t at_least_ms);
/* A session of so many ms came to nothing: others and our own work first. */
void peer_rest(struct agent_core *c, struct peer *p, uint64_t spent_ms);
/* It has had our tables: again at once when they are better, else ever later. */
void peer_served(struct agent_core *c, struct peer *p);
/* How long it has to wait before it may be our host; 0: not at all. */
uint64_t peer_must_wait(const struct agent_core *c, const struct peer *p);
void signal_all(struct agent_core *c);
/* Those that we deferred hear that we are free, so that they need not guess when. */
void signal_owed(struct agent_core *c);

/* ---- gossip.c ---- */

void gossip_load(struct agent_core *c, const struct store_core *saved);
void gossip_release(struct agent_core *c);
void gossip_send(struct agent_core *c, struct peer *p);
void peer_members(struct agent_core *c, struct peer *p, const struct net_msg *m);

/* ---- session.c ---- */

void session_propose(struct agent_core *c, struct peer *p);
void session_proposed(struct agent_core *c, struct peer *p, const struct net_msg *m);
void session_propose_align(struct agent_core *c, struct peer *p);
/* Any other message of a session; bytes are the whole message. */
void session_message(struct agent_core *c, struct peer *p, const struct net_msg *m,
		     const uint8_t *bytes, size_t n);
void session_link_down(struct agent_core *c, struct peer *p);
void session_lease(struct agent_core *c);
void session_working(struct agent_core *c);
/* Ends it on this side; with tell the peer gets ABORT. */
void session_abort(struct agent_core *c, bool tell, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));
/* The same when `why` may say something of our rows: the peer hears that it is over. */
void session_abort_private(struct agent_core *c, int code, const char *why);
void session_goto(struct agent_core *c, enum phase to);
void session_wait(struct agent_core *c);  /* messages wait until ... */
void session_ready(struct agent_core *c); /* ... here */
void session_drain(struct agent_core *c); /* and are handled now */
/* Something is under way that messages do not wait for, but silence has a reason ... */
void session_beside(struct agent_core *c);
void session_beside_over(struct agent_core *c); /* ... until here */
void session_begin_message(struct agent_core *c, struct net_writer *w, struct buf *out,
			   enum net_msg_type type);
void session_send(struct agent_core *c, struct net_writer *w, struct buf *out);
/* The ledger of both is in step: what comes after the two sync phases. */
void session_synced(struct agent_core *c);
void session_aligned(struct agent_core *c);
void session_record_done(struct agent_core *c, struct store_batch *b);
void session_open_translator(struct agent_core *c); /* host, entries done */
void session_done(struct agent_core *c);	    /* host, settled: DONE, and the end ... */
void session_finish(struct agent_core *c);	    /* ... which a client's settle may precede */
void session_served(struct agent_core *c);	    /* client, the end */
void session_free(struct session *s);		    /* NULL is fine */
const char *phase_name(enum phase p);

/* ---- talk.c ---- */

void talk_psi(struct agent_core *c);
/* Fill s->terms (host) after alignment; ERR_* when translation is impossible. */
int talk_terms(struct agent_core *c, struct err *e);
int talk_check_terms(struct agent_core *c, const struct ppat_config *t, struct err *e); /* client */
int talk_open(struct agent_core *c, struct err *e); /* the translator, either role */
void talk_drive(struct agent_core *c);
/* The conversation has something to send and the link is full: messages wait. */
bool talk_blocked(const struct agent_core *c);
void talk_received(struct agent_core *c, const struct net_msg *m);
void talk_job_done(struct agent_core *c, struct agent_job *job);
void talk_disclosed(const struct session *s, uint64_t *rows, uint64_t *floats);

/* ---- spend.c ---- */

void spend_sync(struct agent_core *c);		    /* send our tail, one by one, then go on */
void spend_opening(struct agent_core *c);	    /* host: contract if needed, reserve of 0 */
uint32_t spend_entries_first(struct agent_core *c); /* ... how many that will be */
/* The conversation wants so many labels: true when they are granted; else they will be, or be
 * refused, and then it is driven on. */
bool spend_charge(struct agent_core *c, uint32_t labels);
/* Reserve what it will want next, while it still draws what it has.  May end the session. */
void spend_ahead(struct agent_core *c);
void spend_note_labels(struct session *s); /* of the other's: how many have come */
void spend_settle(struct agent_core *c);
void spend_settle_own(struct agent_core *c);			 /* client: the noise on its rows */
void spend_entry(struct agent_core *c, const struct net_msg *m); /* LEDGER_ENTRY */
void spend_ack(struct agent_core *c, const struct net_msg *m);	 /* LEDGER_ACK */
/* Is it the ACK of an entry that nothing waits for?  It need not wait for a job either. */
bool spend_ack_beside(const struct session *s, const struct net_msg *m);
/* Ours toward p. */
const struct ledger_account *spend_account(const struct agent_core *c, const struct peer *p);
/* Labels that may still be reserved toward p, by the contract or by the settings. */
uint64_t spend_left(struct agent_core *c, struct peer *p, const struct ledger_mechanism *m);
/* What a label of ours toward p costs, and what a release of ours does. */
struct ledger_mechanism spend_votes(struct agent_core *c, const struct peer *p, uint32_t rows);
struct ledger_mechanism spend_release(const struct agent_core *c);
/* What our data has spent toward everybody; release it. */
void spend_lineage(const struct agent_core *c, struct ledger_lineage *l);
int spend_caps(struct agent_core *c, const struct ledger_mechanism *m, struct ledger_caps *caps,
	       struct err *e);

/* ---- rounds.c ---- */

void round_free(struct round *r); /* NULL is fine; no worker may be at its work */

static inline bool in_rounds(const struct agent_core *c)
{
	return c->config.mode == AGENT_ROUNDS;
}

/* Nothing is under way: what is next?  Starts at most one thing. */
void rounds_next(struct agent_core *c, struct peer **align, uint64_t *wait_ms);
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

/* ---- rounds_look.c ---- */

void look_release(struct look *l);
/* On a worker: score, then copies for the disk; ... */
int look_score(const struct agent_core *c, struct look *l, struct agent_job *job);
void look_make(const struct agent_core *c, struct look *l);
/* ... and on the loop: what comes of it. */
void look_judge(struct agent_core *c, struct look *l, struct store_batch *b);
/* One that is owed, as the next start finds it; latest: digest of the tables of its round. */
void look_save(const struct look *l, const uint8_t id[FED_ID], const uint8_t latest[32],
	       struct buf *out);
void look_load(struct agent_core *c, const struct store_meta *saved, bool goes_on);
void look_start(struct agent_core *c);
void look_done(struct agent_core *c, const struct agent_job *job);
void look_clear(struct agent_core *c, struct store_batch *b); /* none is owed any more */

/* ---- rounds_align.c ---- */

void rounds_put_hello(struct agent_core *c, struct peer *p, struct net_writer *w);
void rounds_get_hello(struct agent_core *c, struct peer *p, const struct net_map *m, struct err *e);
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

/* ---- keep.c ---- */

void keep_add(struct agent_core *c, struct store_batch *b); /* the record, as it is now */
int keep_load(struct agent_core *c, const uint8_t *bytes, size_t n, struct err *e);

#endif
