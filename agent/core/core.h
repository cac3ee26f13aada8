/* agent/core/core.h - what an agent does next: a state machine without I/O.
 *
 * The core is told what happened (struct agent_event, with its time) and asks for effects through
 * struct agent_io.  It never calls libuv, the clock, the file system or a random device, and starts
 * no thread, so that the same code runs in the process (agent/process.h) and in tests/sim.
 *
 * Rules for a shell:
 *  - One event at a time, on one thread, never from inside an effect: an
 *    effect only queues; what it leads to comes back later as an event.
 *  - now_ms never falls.  wall_ms is written on the ledger and decides nothing.
 *  - Events of a link come in its order: LINK_UP, messages, LINK_DOWN.
 *  - Batches are applied in the order in which they were asked for, each one
 *    in one transaction, synced before its COMMITTED event.
 *  - A job is the worker's from start_job() to JOB_DONE; so is all that it
 *    points to.  JOB_DONE comes exactly once, also after cancel.
 *
 *                    first training done
 *      (start) ---> BUSY ------------------> READY <-----------------------+
 *                    ^                        |  |                         |
 *                    |  queue polled, accepted|  | nothing queued,         |
 *                    |  proposal, local round |  | no local round waits    |
 *                    +------------------------+  v                         |
 *                    |                          SLEEP --- wake timer, -----+
 *                    |                                    signal, command
 *                    +--- session over, round trained and scored ---> READY
 */
#ifndef AGENT_CORE_CORE_H
#define AGENT_CORE_CORE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "agent/core/frame.h"
#include "base/err.h"
#include "base/secret.h"
#include "config/settings.h"
#include "fed/method.h"
#include "store/batch.h"
#include "store/ledger/entry.h"

struct agent_names; /* agent/core/names.h: canonical names toward a peer */
struct kge_emb;	    /* kge/model.h */
struct graph;	    /* graph/graph.h */
struct store_core;  /* store/store.h: all that a restarting core needs */

enum {
	AGENT_KEY = STORE_KEY, /* a peer's X25519 static key: who it is */
	AGENT_SESSION = STORE_SESSION,
	AGENT_NAME_MAX = STORE_NAME_MAX, /* bytes, with the NUL */
	AGENT_TEXT_MAX = STORE_REASON_MAX,
	AGENT_PEERS_MAX = 256,	     /* listed peers of one agent */
	AGENT_MESSAGE_MAX = 1 << 20, /* bytes of one whole message */
};

enum { AGENT_RETRY_MIN_MS = 500, AGENT_RETRY_MAX_MS = 60000 }; /* longer after each failure */

/* Clocks that differ by more are told to the owner: auditors read both. */
#define AGENT_CLOCK_OFF_MS (INT64_C(5) * 60 * 1000)

enum agent_state { AGENT_BUSY, AGENT_READY, AGENT_SLEEP, AGENT_STOPPED };
enum agent_role { AGENT_HOST, AGENT_CLIENT };

/* ---- jobs: what a worker runs ---- */

enum agent_job_kind {
	AGENT_JOB_TRAIN,
	AGENT_JOB_EVALUATE,
	AGENT_JOB_CONV,
	AGENT_JOB_AGGREGATE,
	AGENT_JOB_EXCHANGE, /* rows of a round */
	AGENT_JOB_STEP,	    /* of a partner's query */
	AGENT_JOB_PRICE,    /* of labels */
};

struct agent_job {
	enum agent_job_kind kind;
	uint64_t id;
	int (*run)(struct agent_job *job); /* the worker calls it; any thread */
	int status;			   /* the worker keeps run()'s value here */
	atomic_bool cancel;		   /* set by anyone; run() returns ERR_CANCELED soon */
	_Atomic uint32_t done, total;	   /* progress: epochs, for status and bars */
	double score, loss;		   /* results, valid when status is 0 */
	struct err why;			   /* of a status that is neither 0 nor ERR_CANCELED */
	/* private to agent/ */
	void *core;
	void *subject;
	void *beside; /* what the subject reads; freed with it when nobody waits any more */
};

/* How this agent learns: production is agent/core/learner.h over kge/; the
 * simulator has one with synthetic scores.  Called on a worker. */
struct agent_learner {
	void *ctx;
	/* Trains `epochs` epochs on the train split, in place; ERR_CANCELED. */
	int (*train)(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		     struct agent_job *job);
	/* The same on another graph and its tables, ours with virtual neighbours added, from
	 * fresh moments.  May be NULL: neighbours are left out. */
	int (*train_on)(void *ctx, const struct graph *g, struct kge_emb *tables, uint32_t epochs,
			struct agent_job *job);
	/* Score on valid, higher is better.  NaN, never the best: of tables that diverged. */
	int (*evaluate)(void *ctx, const struct kge_emb *work, struct agent_job *job,
			double *score);
	/* The local training of a round: fed_train() of this part and its tables.  May be NULL
	 * where no rounds are run. */
	int (*train_part)(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job);
	/* As train() with reset, of other tables, which have had so many epochs `before`: its draws
	 * go by that.  May be NULL: train(). */
	int (*train_alone)(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
			   struct agent_job *job);
	/* As evaluate(), of at most so many valid triples (0: as many), the same ones every time.
	 * May be NULL: evaluate(). */
	int (*evaluate_some)(void *ctx, const struct kge_emb *work, uint32_t triples,
			     struct agent_job *job, double *score);
	/* As evaluate_some(), triple by triple: the score is the mean of each[*n], which the caller
	 * frees.  May be NULL: evaluate_some(). */
	int (*evaluate_each)(void *ctx, const struct kge_emb *work, uint32_t triples,
			     struct agent_job *job, double **each, size_t *n);
	/* fed_method.look of a part that has one.  May be NULL: what is best of it is not kept. */
	bool (*look_at_part)(void *ctx, struct fed_part *part, double *score);
};

/* ---- what an owner may be told ---- */

enum agent_notice_kind {
	AGENT_NOTICE_STATE,    /* status has changed: state, score, round, queue */
	AGENT_NOTICE_IMPROVED, /* a new best is on disk */
	AGENT_NOTICE_SESSION,  /* a session ended: text says how */
	AGENT_NOTICE_STRANGER, /* a key that is not listed knocked: peer */
	AGENT_NOTICE_MEMBER,   /* a partner, peer, told us of a member: text = name */
	AGENT_NOTICE_TROUBLE,  /* something needs the owner: text says what to do */
	AGENT_NOTICE_OUT,      /* a peer was revoked by the core, not by its owner: peer */
	AGENT_NOTICE_STOPPED,  /* nothing is under way any more; code 0: after AGENT_EVENT_STOP */
};

struct agent_notice {
	enum agent_notice_kind kind;
	const uint8_t *peer; /* or NULL */
	int code;	     /* 0 or ERR_* */
	const char *text;    /* never NULL; good during the call */
	const char *cause; /* the format that text was made by: ours alone, never a peer's words */
};

/* ---- steps of queries (methods 5.4) ---- */

enum { AGENT_POINTS_MAX = 1024, AGENT_ASKS_MAX = 16 /* of the owner's, under way */ };
/* A partner answers a step each so many milliseconds, but for some in advance. */
enum { AGENT_ASK_EVERY_MS = 25, AGENT_ASKS_AHEAD = 64 };

struct agent_point {
	uint32_t entity; /* ours */
	float truth;	 /* (0, 1] */
};

/* What our owner wants to know of partners. */
struct agent_ask {
	uint64_t ticket;      /* of the answer */
	const char *relation; /* as we call it, or as partners do */
	bool inverse, tell;   /* tell: one of ours, also to who is not known to have its name */
	uint32_t norm; /* enum ledger_asked: how AND is taken; LEDGER_ROW: its row, no points */
	struct agent_point *points; /* none: who would answer? */
	size_t n;
	uint32_t beam;	      /* of the points, edges are predicted from so many; 0: all */
	uint32_t known, want; /* answers of each: by known edges, and predicted ones */
	uint64_t patience_ms;
	uint8_t (*partners)[AGENT_KEY]; /* none: all with whom names are shared */
	size_t n_partners;
};

struct agent_answer_row {
	struct agent_point to,
		from; /* from: its truth is the edge's; entity GRAPH_NONE: not said */
};

/* Of one partner. */
struct agent_answer {
	uint8_t peer[AGENT_KEY];
	char name[AGENT_NAME_MAX];
	int code; /* 0, or why there is none */
	char why[AGENT_TEXT_MAX];
	bool facts, unasked; /* unasked: it would have been told a name of ours (code, why) */
	struct agent_answer_row *rows;
	size_t n;
	uint64_t bytes; /* of question and answer, as they travel */
	float rest;	/* how true predicted answers are that it has left out, at most; 0: none */
	bool cut, known_full; /* by the day's budget; as many known ones came as were wanted */
	uint8_t *shared;      /* a bit for each entity that it has, too; NULL: points were given */
	size_t shared_bytes;
	float *row; /* [row_floats] of LEDGER_ROW: of the relation this way, in its encoder */
	size_t row_floats;
};

/* Vectors of a query by which the members of our last round shall score what they share with us:
 * the sums alone come (fed/score.h). */
struct agent_score_ask {
	uint64_t ticket;
	const float *vectors; /* n x dim */
	size_t n, dim;
	uint32_t holders; /* of an entity, at least, we among them */
	uint64_t patience_ms;
};

struct agent_scores {
	int code; /* 0, or why there are no sums */
	char why[AGENT_TEXT_MAX];
	const struct agent_answer *of; /* [n] the members: each its own code and why */
	size_t n;
	uint32_t entities;
	const float *sum;      /* [entities] of the other members' scores */
	const uint8_t *others; /* [entities] of how many; 0: of none */
	size_t unscored;       /* that enough hold, a member that was left out among them */
};

/* ---- effects ---- */

enum agent_timer {
	AGENT_TIMER_LEASE,
	AGENT_TIMER_WORKING,
	AGENT_TIMER_POLL,
	AGENT_TIMER_WAKE,
	AGENT_TIMER_ROUND,
	AGENT_TIMER_REST,
	AGENT_TIMER_ASKED,
	AGENT_TIMER_SCORED,
	AGENT_TIMER_MEMBERS,
	AGENT_TIMERS
};

struct agent_io {
	void *ctx;
	/* One whole message (net/msg.h) to a peer whose link is up; copied.  0;
	 * ERR_BUSY: not taken, WRITABLE will follow; anything else: lost, LINK_DOWN follows. */
	int (*send)(void *ctx, const uint8_t peer[AGENT_KEY], const uint8_t *bytes, size_t n);
	/* Moves the content out of *batch; COMMITTED with this ticket once it is on disk. */
	void (*commit)(void *ctx, struct store_batch *batch, uint64_t ticket);
	void (*start_job)(void *ctx, struct agent_job *job);
	/* One shot; setting a timer again moves it. */
	void (*set_timer)(void *ctx, enum agent_timer t, uint64_t delay_ms);
	void (*cancel_timer)(void *ctx, enum agent_timer t);
	/* Keep a link to this peer from now on (dial, redial), or close it and stop dialling. */
	void (*connect)(void *ctx, const uint8_t peer[AGENT_KEY], const char *address);
	void (*disconnect)(void *ctx, const uint8_t peer[AGENT_KEY]);
	/* One that a link is kept to says another address itself: that hurries nothing. */
	void (*move)(void *ctx, const uint8_t peer[AGENT_KEY], const char *address);
	void (*notify)(void *ctx, const struct agent_notice *notice);
	/* Entries of our chain with the partner of this signing key, number `first` and what
	 * follows, at most max: ENTRIES with this ticket, once commits before it are on disk. */
	void (*read_entries)(void *ctx, const uint8_t sign_key[AGENT_KEY], uint64_t first,
			     size_t max, uint64_t ticket);
	secret_draw_fn *draw; /* random bytes: libsodium's in production */
	/* What partners said to AGENT_EVENT_ASK, SCORE: on disk, good during the call.  Or NULL */
	void (*answered)(void *ctx, uint64_t ticket, const struct agent_answer *answers, size_t n);
	void (*scored)(void *ctx, uint64_t ticket, const struct agent_scores *scores);
};

/* ---- events ---- */

enum agent_event_kind {
	AGENT_EVENT_START, /* first event of all */
	AGENT_EVENT_LINK_UP,
	AGENT_EVENT_LINK_DOWN,
	AGENT_EVENT_MESSAGE,
	AGENT_EVENT_WRITABLE, /* send() said ERR_BUSY and there is room again */
	AGENT_EVENT_TIMER,
	AGENT_EVENT_JOB_DONE,
	AGENT_EVENT_COMMITTED,
	AGENT_EVENT_ENTRIES, /* what read_entries() asked for */
	/* the owner's commands */
	AGENT_EVENT_PEER_ADDED,	    /* joined, invited or accepted: listed from now on */
	AGENT_EVENT_PEER_REVOKED,   /* sessions aborted, link closed, signals dropped */
	AGENT_EVENT_PEER_FORGOTTEN, /* not a partner, and not judged any more */
	AGENT_EVENT_PEER_TRUSTED,   /* out of quarantine, with a reputation as at first */
	AGENT_EVENT_TRAIN,	    /* one local round now */
	AGENT_EVENT_SETTINGS,	    /* the settings it was given are other ones now */
	AGENT_EVENT_RESUME,	    /* rounds go on that had stopped since they hurt */
	AGENT_EVENT_ASK,	    /* partners, for one step of a query */
	AGENT_EVENT_SCORE,	    /* members of the last round, for masked scores */
	AGENT_EVENT_STOP,	    /* finish quickly; AGENT_NOTICE_STOPPED follows */
};

struct agent_event {
	enum agent_event_kind kind;
	uint64_t now_ms;	 /* monotonic */
	int64_t wall_ms;	 /* since 1970, for the record only */
	uint8_t peer[AGENT_KEY]; /* LINK_*, MESSAGE, WRITABLE, PEER_*: X25519 static key */
	uint8_t sign[AGENT_KEY]; /* PEER_ADDED: Ed25519 key; zeros: learn it from its HELLO */
	bool called;		 /* LINK_UP: by the peer; else we have dialled it */
	const char *name;	 /* PEER_ADDED; may be NULL */
	const char *address;	 /* PEER_ADDED; NULL or "" when it can't be dialled */
	const uint8_t *bytes;	 /* MESSAGE: good during the call */
	size_t n;
	enum agent_timer timer; /* TIMER */
	struct agent_job *job;	/* JOB_DONE */
	uint64_t ticket;	/* COMMITTED, ENTRIES */
	int status; /* COMMITTED: 0, ERR_IO or ERR_STORE: the agent stops.  ENTRIES.  LINK_DOWN:
		     * ERR_TOOBIG when the peer sent a message beyond all limits; else anything */
	const struct ledger_signed *entries; /* ENTRIES: good during the call */
	size_t n_entries;
	const struct agent_ask *ask;	     /* ASK: good during the call */
	const struct agent_score_ask *score; /* SCORE: good during the call */
};

/* ---- the core ---- */

struct agent_core;

#define AGENT_META	      "agent" /* the store meta keys that the core writes: its state, */
#define AGENT_META_PART	      "fed"   /* its part in the method of its rounds, */
#define AGENT_META_VALIDATION "look"  /* an interrupted validation (rounds_validate.c) */
/* Written by the owner beside a stopped agent: a byte, 1: AGENT_EVENT_RESUME at its start. */
#define AGENT_META_RESUME "resume"

/* From a value of AGENT_META: the digest of the best tables as they were when a round was last
 * kept. Rounds go on from what that round left while the best tables are these, or those of that
 * round.  false: it says nothing of that. */
bool agent_meta_beside(const uint8_t *bytes, size_t n, uint8_t digest[32]);

/* The owner writes this value too: a byte, 1, and the Ed25519 keys (32 bytes each) of partners
 * whose contracts the owner has closed.  The next session with labels makes a new one.  It is no
 * entry: what one side puts on the chain outside of a session could stand where the other has put
 * something. */
#define AGENT_META_CLOSE "close"

/* The parts that the core borrows until it is freed. */
struct agent_parts {
	const struct config *config; /* good by config_check() */
	const struct agent_io *io;
	const struct agent_learner *learner;
	const struct graph *graph;
	const struct agent_names *names;
	/* The state from disk: read during agent_core_new() only.  The chains' contents are moved
	 * out: each is left as an empty chain of the same pair. */
	struct store_core *saved;
	const uint8_t *key;	    /* own X25519 public key, 32 bytes */
	const uint8_t *sign_public; /* Ed25519, 32 bytes */
	const uint8_t *sign_secret; /* Ed25519, 64 bytes (libsodium's) */
	const uint8_t *account;	    /* whom the ledger names: 32 bytes; NULL: sign_public */
	const uint8_t *lineage;	    /* id of our data, 32 bytes (store/ledger/entry.h) */
	struct kge_emb *best;	    /* of the best checkpoint, or fresh ones; becomes the core's */
	/* Mode CONFIG_ROUNDS: what the last round left on disk. */
	struct kge_emb *latest;	       /* STORE_LATEST, of pairs too, or NULL; becomes the core's */
	const struct kge_emb *beside;  /* STORE_BESIDE, of that shape: is copied; NULL: none */
	const struct store_meta *part; /* meta AGENT_META_PART, of any size; NULL: none */
	const struct store_meta *validation; /* AGENT_META_VALIDATION; NULL: none */
	const uint8_t *rounds_host; /* topology hosted: whose key rounds.host is; else NULL */
	uint64_t retry_min_ms, retry_max_ms; /* between attempts; 0: AGENT_RETRY_... */
};

/* ERR_STORE or ERR_LEDGER when what was saved contradicts itself; ERR_USAGE: the settings do. */
int agent_core_new(struct agent_core **c, const struct agent_parts *parts, struct err *e);
void agent_core_free(struct agent_core *c);	    /* only when no job is under way */
void agent_core_socket_given(struct agent_core *c); /* not of `listen`, which is not told */

/* The one way in. */
void agent_core_event(struct agent_core *c, const struct agent_event *event);

/* ---- status ---- */

/* Of our rows, by the ledger; none of rounds. */
struct agent_rows_sent {
	uint64_t bare, unrotated, noisy; /* as they are; of those, not even rotated; with noise */
};

/* How a partner's rows, translated, agreed with ours in the last session that we hosted: a function
 * of both, for our owner alone (methods 3.2, 3.5). */
struct agent_agreement {
	uint32_t rows;	/* that took part; 0: no such session since the start */
	double cosine;	/* the mean */
	double csls;	/* the mean */
	double nearest; /* share of them whose nearest of ours, by CSLS, is the right one */
};

struct agent_peer_status {
	uint8_t key[AGENT_KEY];
	char name[AGENT_NAME_MAX], address[STORE_ADDRESS_MAX]; /* where it is dialled; or "" */
	int64_t clock_off_ms; /* its clock is ahead of ours, by its last HELLO; behind: negative */
	bool linked, revoked;
	bool queued; /* its signal waits in our queue */
	bool in_session;
	enum agent_role role;	      /* ours, when in_session */
	const char *phase;	      /* static text; "" when not in session */
	char trouble[AGENT_TEXT_MAX]; /* why nothing more happens with this peer; or "" */
	bool trouble_passes;	      /* by itself, in its time: its owner has nothing to do */
	bool aligned;		      /* alignment known and current on our side */
	uint32_t shared_entities, shared_relations;
	enum config_roles roles; /* as it says of itself */
	uint64_t names_compared; /* intersections on record; of the last one: */
	struct store_intersection names;
	char names_warning[AGENT_TEXT_MAX]; /* what is odd about it; "": nothing */
	uint64_t sessions, failed;	    /* ever: restarts keep them */
	uint64_t bytes_in, bytes_out;	    /* of messages, since start */
	struct agent_rows_sent sent;	    /* to it */
	struct agent_agreement agreement;
	struct store_judgement judgement; /* of its rows, on valid */
	/* as host toward this peer, by the ledger */
	uint64_t labels_spent, labels_cap;
	double epsilon; /* by counts alone; a bound while it is `unpriced`; NAN: not known */
	/* mode CONFIG_ROUNDS: its part in the last round that it was asked for, as seen here */
	int round_fate;		    /* enum fed_fate (fed/round.h); -1: it has been in none */
	uint64_t round_fate_number; /* of that round */
	char round_why[AGENT_TEXT_MAX];
	char round_account[STORE_REFUSED_MAX]; /* what is wrong with its last account, or "" */
	bool round_over; /* it says that it takes part in no more: it is not asked */
	/* Its rows in the last round, against the others'; of their length, negative: not known */
	double round_distance, round_cosine;
	bool round_far, round_kept_out; /* kept out: what it sent was not used */
};

/* Mode CONFIG_ROUNDS. */
struct agent_round_status {
	bool under_way;	 /* also a validation that is due of the last one */
	uint64_t number; /* of the round under way, else of the next one */
	uint64_t done;	 /* that we took part in */
	uint64_t missed; /* since the first: count toward rounds.max, too */
	uint32_t worse;	 /* validations since the best score */
	bool proposes;	 /* we may propose, now or later */
	bool over;	 /* we take part in no more: rounds.max, or ... */
	bool stopped;	 /* ... rounds hurt: until the owner says otherwise */
	char stopped_why[AGENT_TEXT_MAX];
	bool masked;   /* nobody can see members' rows */
	bool compared; /* these are known: valid before averaging, after it, trained alone */
	bool averaged, has_alone; /* the method averages into our own: the first two are of two */
	double own_score, merged_score, alone_score;
	bool weighed;		/* federation.weight: it takes in as much as valid says, now ... */
	double weight;		/* ... this part */
	unsigned members;	/* of this round, or of the last one; 0: not known yet */
	size_t items, answered; /* shared with them; of these, in the last stage */
	char trouble[AGENT_TEXT_MAX]; /* why the last round came to nothing; "": it did not */
	char waits[AGENT_TEXT_MAX];   /* who or what must come before there is one; "": nothing */
};

/* What looks at valid have come to. */
struct agent_looks {
	uint32_t worse; /* evaluations of rounds since the best */
	bool vain;	/* the last ones took in nothing of what partners brought (weigh.c) */
};

struct agent_spent {
	double epsilon;			 /* as of a peer */
	struct ledger_lineage *unpriced; /* whose ledger_epsilon() is to be asked for elsewhere */
	size_t n;
};
struct agent_status {
	enum agent_state state;
	const char *doing;   /* static text: "training", "session", "idle" ... */
	size_t sessions_now; /* under way; with whom: peer[].in_session */
	bool has_best;
	double best_score;	/* on valid */
	uint64_t served_serial; /* of the tables that partners get */
	struct agent_looks looks;
	bool rests; /* federation.patience is over: it takes no more rows in */
	uint32_t job_done, job_total;
	uint64_t rounds, lone_rounds; /* tried: after sessions as host; local ones */
	uint64_t improved, sessions;
	/* before partners had any part in the tables (agent/core/history.h) */
	bool has_before;
	double before_score;
	uint64_t epochs_since; /* trained since then */
	bool best_is_lone;     /* the best tables are of the copy that trains beside rounds */
	size_t queued;
	uint64_t labels_spent, labels_cap; /* of this data lineage, all partners */
	struct agent_spent spent;	   /* the same, as epsilon */
	enum config_roles roles;
	struct agent_rows_sent sent; /* to all partners */
	struct frame frame;	/* of what partners get; joined 0: not federation.frame: common */
	uint64_t private_steps; /* of training, charged so far */
	double private_epsilon;
	struct agent_round_status round;
	size_t n_peers;
	struct agent_peer_status *peer; /* release with agent_status_release() */
};

/* What has come of a peer since its record was read: its sign_key, has_ledger and has_signed. */
void agent_core_catch_up(const struct agent_core *c, struct store_peer *record);
/* Is this peer to get no link now, since it broke the protocol?  Why, for the owner; static. */
bool agent_core_shuts_out(const struct agent_core *c, const uint8_t peer[AGENT_KEY],
			  const char **why);
/* Could a key that is invited be a partner with this as its HELLO?  ERR_PROTO, ERR_VERSION,
 * ERR_IDENTITY: why not, in words that follow "it ". */
struct agent_newcomer {
	uint8_t sign[AGENT_KEY];
	char name[AGENT_NAME_MAX];
};
int agent_core_meet(const struct agent_core *c, const uint8_t key[AGENT_KEY], const uint8_t *bytes,
		    size_t n, struct agent_newcomer *out, struct err *e);
/* Would PEER_ADDED list it, by its two keys?  ERR_REFUSED, ERR_IDENTITY: why not. */
int agent_core_may_list(const struct agent_core *c, const struct store_peer *p, struct err *e);
/* Is the first training over?  In rounds, too, was the last score no better than the best? */
bool agent_core_has_settled(const struct agent_core *c);
bool agent_core_waits(const struct agent_core *c); /* for news, before a round of its own */
void agent_core_status(const struct agent_core *c, struct agent_status *out);
void agent_status_release(struct agent_status *s);

/* For the simulator: the digest of the best tables in memory, and of those not at a job. */
void agent_core_best_digest(const struct agent_core *c, uint8_t out[32]);
/* The best tables; the core's, unchanged until the next event. */
const struct kge_emb *agent_core_best(const struct agent_core *c);

#endif
