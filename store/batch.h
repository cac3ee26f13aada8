/* store/batch.h - what an agent wants written, as plain data.
 *
 * The core decides what must be on disk and fills a batch; the process hands
 * it to store_apply() (store/store.h), which writes all of it in ONE synced
 * transaction or none of it.  A batch owns copies of everything in it, so it
 * can wait in a queue and cross threads.  Nothing here knows SQLite: the
 * simulator applies batches to a disk of its own.
 *
 * Writes are applied in the order in which they were added.
 *
 * Keys named `peer` are the X25519 keys by which peers are known; the ledger
 * names its parties by their Ed25519 keys (store/ledger/entry.h). */
#ifndef STORE_BATCH_H
#define STORE_BATCH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kge/model.h"
#include "store/ledger/entry.h"
#include "store/ledger/statement.h"
#include "store/ledger/step.h"

enum {
	STORE_KEY = 32,		  /* bytes of a public key, X25519 or Ed25519 */
	STORE_SESSION = 16,	  /* bytes of a session id */
	STORE_DIGEST = 32,	  /* BLAKE2b-256 */
	STORE_TICKET = 16,	  /* bytes of an invitation's ticket */
	STORE_PAIR = 32,	  /* of a pair's secret, and of an invitation's seed of it */
	STORE_SEEDS = 256,	  /* kept: the newest */
	STORE_NAME_MAX = 128,	  /* bytes with the NUL: an agent's name */
	STORE_ADDRESS_MAX = 272,  /* host:port with the NUL */
	STORE_SOURCE_MAX = 48,	  /* what a stranger knocked from, with the NUL */
	STORE_WORD_MAX = 32,	  /* model, protocol, meta key: with the NUL */
	STORE_REASON_MAX = 256,	  /* with the NUL */
	STORE_REFUSED_MAX = 128,  /* with the NUL: why an account of a round is refused */
	STORE_ROUND = 16,	  /* bytes of a round's id */
	STORE_MEMBERS_MAX = 4096, /* of one round, with those that only were asked */
	STORE_ROUNDS_MAX = 4096,  /* records of rounds; older ones are folded into sums */
	STORE_RECORD_MAX = 4096,  /* one signed member record */
	STORE_INTERSECTIONS = 32, /* of one peer that are remembered */
	STORE_STEPS_MAX = 65536,  /* records of steps; the oldest go */
	STORE_STEPS_LATE = 1024,  /* ids of those answered that a core is given */
};

#define STORE_META_MAX	 (UINT64_C(1) << 40) /* bytes in one meta value */
#define STORE_META_SMALL (1 << 20) /* ... that a core is given: more than its own state takes */

/* ---- the records ---- */

enum store_peer_status { STORE_PENDING, STORE_LISTED, STORE_REJECTED, STORE_REVOKED };

struct store_peer {
	uint8_t key[STORE_KEY];	     /* X25519: who it is */
	uint8_t sign_key[STORE_KEY]; /* Ed25519: who signs the ledger */
	uint8_t account[STORE_KEY]; /* whom the ledger names: given by the store; zeros: sign_key */
	char name[STORE_NAME_MAX];
	char address[STORE_ADDRESS_MAX]; /* "" when it cannot be dialled */
	enum store_peer_status status;
	int64_t seen_ms; /* Unix time when it last came as a stranger; 0: never */
	/* Pending: its IPv4 address, or the /64 of its IPv6 address, as it knocked last; else "".
	 */
	char source[STORE_SOURCE_MAX];
	/* Given by the store, of what keeps its record: entries of the ledger with it; accounts
	 * that it has signed of rounds on record. */
	bool has_ledger, has_signed;
};

/* Whom entries of the ledger with it name, whatever key signs for it now. */
const uint8_t *store_peer_account(const struct store_peer *p);

/* A member record as another agent signed it; checked by who receives it, opaque here. */
struct store_member {
	uint8_t key[STORE_KEY];
	uint8_t *record;
	size_t len; /* at most STORE_RECORD_MAX */
};

struct store_signal {
	uint8_t peer[STORE_KEY];
	int64_t time_ms;
};

enum store_role { STORE_HOST, STORE_CLIENT };
enum store_session_state { STORE_OPEN, STORE_DONE, STORE_ABORTED };

struct store_session {
	uint8_t id[STORE_SESSION];
	uint8_t peer[STORE_KEY];
	enum store_role role; /* ours */
	enum ledger_translator translator;
	enum store_session_state state;	 /* STORE_OPEN after a restart: unfinished */
	int64_t started_ms, finished_ms; /* finished_ms 0 while open */
	uint64_t bytes_in, bytes_out;
	double seconds;
	int outcome;		       /* 0 or an ERR_ code */
	char reason[STORE_REASON_MAX]; /* outcome in words */
};

/* Slot k of both sides means the same thing; here is what it means on ours. */
struct store_slot {
	uint32_t id; /* local id */
	char tag;    /* 'e' entity, 'r' relation */
};

struct store_alignment {
	uint8_t peer[STORE_KEY];
	uint8_t version[STORE_DIGEST]; /* of our names and aliases when it was made */
	uint8_t digest[STORE_DIGEST];  /* equal on both sides */
	struct store_slot *slots;
	uint32_t n;
};

/* An invitation that lets its holder in (agent/invites.h). */
struct store_invitation {
	uint8_t hash[STORE_DIGEST]; /* of its ticket */
	int64_t made_ms, until_ms;
	uint32_t uses, used; /* keys that it is good for; that have used it */
	bool revoked;
};

/* A pair's secret is made of what an invitation carries (agent/invites.h). */
struct store_seed {
	uint8_t seed[STORE_PAIR];
	int64_t made_ms;
};

struct store_pair {
	uint8_t peer[STORE_KEY];
	uint8_t secret[STORE_PAIR];
	bool proven; /* a link was opened with it: it alone is good from then on */
};

/* Of an invitation that we have joined by: shown to who made it. */
struct store_ticket {
	uint8_t peer[STORE_KEY];
	uint8_t ticket[STORE_TICKET];
};

/* Names were compared with this peer, and our points have left (methods 6). */
struct store_intersection {
	uint8_t peer[STORE_KEY];
	int64_t time_ms;
	uint64_t ours, theirs; /* names that each side put in */
	uint64_t shared;       /* when done */
	bool done; /* else it was broken off: the peer may have its result all the same */
};

/* A step of a query, answered by us or by the peer: both signatures are there. */
struct store_step {
	uint8_t peer[STORE_KEY];
	bool ours; /* we asked */
	struct ledger_step step;
};

/* What we have answered this peer on one day. */
struct store_step_day {
	uint8_t peer[STORE_KEY];
	int64_t day; /* since 1970, of 24 hours, by our clock */
	uint64_t steps, rows;
};

/* What a partner's rows have come to on our valid (agent/core/judge.c). */
struct store_judgement {
	uint8_t peer[STORE_KEY];
	uint64_t judged, hurt; /* rounds with its rows; those that were clearly worse for them */
	double reputation;     /* 0 to 1 (fed/judge.h) */
	bool quarantined;      /* nothing of it is taken in, until the owner says otherwise ... */
	int64_t since_ms;      /* ... since then ... */
	char why[STORE_REASON_MAX];
};

enum store_checkpoint_kind {
	STORE_BEST,   /* one: by the score on valid */
	STORE_MANUAL, /* the owner's */
	STORE_FORMER, /* were the best once */
	STORE_LATEST, /* one: as the last round left them, whatever their score */
	STORE_BEFORE, /* one, never replaced: before partners had any part (agent/core/history.h) */
	STORE_ALONE,  /* one: as they would be without partners (agent/alone.h) */
	STORE_BESIDE, /* one: the copy that trains alone beside rounds, as it was when STORE_LATEST
		       * was written; writing that removes it */
	STORE_ALONE_LATEST, /* one: what that of STORE_ALONE goes on from; epochs: since before */
};

struct store_checkpoint {
	uint64_t id; /* given by the store */
	enum store_checkpoint_kind kind;
	char label[STORE_WORD_MAX]; /* the owner's name for a saved state; else "" */
	char model[STORE_WORD_MAX]; /* kge_model.name */
	uint32_t dim, rel_dim, n_ent, n_rel;
	float gamma;
	double valid_score;	       /* the measure that backtracking compares */
	char protocol[STORE_WORD_MAX]; /* kge_protocol.name of that score */
	uint64_t epochs, seed;
	int64_t created_ms;
	uint8_t digest[STORE_DIGEST]; /* kge_emb_digest */
	uint8_t names[STORE_DIGEST];  /* digest of the graph's names then; the store's */
	/* To be written, of STORE_BEST: whatever the best one's score, it becomes a saved one, as
	 * by store_demote_best(), in the same transaction. */
	bool anew;
};

/* One member of a round, as we have seen it: fed/round.h struct fed_account. */
struct store_round_member {
	uint8_t key[STORE_KEY];
	int fate; /* enum fed_fate */
	uint64_t rows_out, rows_in, floats_out, floats_in, bytes_out, bytes_in;
	/* The member's signed account of the same for us, by its own counts (fed/round.h struct
	 * fed_signed). */
	bool has_account; /* else it has not, and the rest is zero */
	uint64_t their_rows_out, their_rows_in, their_floats_out, their_floats_in;
	uint8_t signature[LEDGER_SIGNATURE];
	char refused[STORE_REFUSED_MAX]; /* why that is not its account; "": it is */
	/* The member's rows against the others', where we were home (fed/round.h struct
	 * fed_distance). */
	uint64_t compared;	 /* so many */
	double distance, cosine; /* negative distance: not known */
};

/* A round that is over (fed/round.h struct fed_report). */
struct store_round {
	uint8_t id[STORE_ROUND];
	uint64_t number;
	char method[STORE_WORD_MAX];
	bool hosted;
	uint32_t secret_bits; /* 0: rows were plain */
	uint8_t proposer[STORE_KEY];
	int64_t started_ms, finished_ms;
	uint64_t train_ms; /* of it, in our own training */
	int outcome;	   /* 0 or an ERR_ code */
	char reason[STORE_REASON_MAX];
	uint64_t items, answered, homed;
	uint64_t params_up, params_down; /* as the papers count */
	uint64_t clipped, spoiled;
	bool scored; /* valid was looked at, and this came out */
	double score;
	/* Valid on the same few triples: of our table before averaging, after it, and trained
	 * alone. */
	bool compared, has_alone;
	double own_score, merged_score, alone_score;
	uint32_t n_members;	 /* of the roster; the participants behind them were asked */
	uint32_t n_participants; /* our own among them */
	struct store_round_member *members; /* [n_participants] */
};

/* ---- the batch ---- */

enum store_write_kind {
	STORE_PUT_SIGNAL, /* at the end of the queue; keeps its place if it is there */
	STORE_REMOVE_SIGNAL,
	STORE_PUT_PEER,	   /* new or changed */
	STORE_REMOVE_PEER, /* and its alignment; who has_ledger or has_signed stays */
	STORE_PUT_MEMBER,
	STORE_PUT_SESSION,  /* new or changed */
	STORE_ADD_ENTRY,    /* a ledger entry, countersigned or not */
	STORE_RETURN_ENTRY, /* one that both have signed and the partner has handed back */
	STORE_ADD_COUNTERSIGN,
	STORE_ADD_STATEMENT, /* about our own training */
	STORE_PUT_CHECKPOINT,
	STORE_PUT_ALIGNMENT,	/* replaces that peer's */
	STORE_PUT_INTERSECTION, /* new, or the same peer and time; the newest of a peer stay */
	STORE_PUT_INVITATION,	/* new or changed */
	STORE_PUT_TICKET,	/* replaces that peer's */
	STORE_PUT_SEED,		/* the oldest go, beyond STORE_SEEDS */
	STORE_PUT_PAIR,		/* replaces that peer's; a proven one the other as well */
	STORE_PUT_META,
	STORE_PUT_ROUND,     /* new or changed */
	STORE_CHANGE_ROUND,  /* what one of its members sent, got and said; not the fate */
	STORE_SCORE_ROUND,   /* valid was looked at, later than the round was put */
	STORE_ADD_STEP,	     /* of a query; the newest STORE_STEPS_MAX stay */
	STORE_PUT_STEP_DAY,  /* replaces that peer's */
	STORE_PUT_JUDGEMENT, /* replaces that peer's */
	STORE_WRITE_KINDS
};

struct store_countersign {
	uint8_t hash[LEDGER_HASH]; /* of the entry */
	uint8_t signature[LEDGER_SIGNATURE];
};

struct store_meta {
	char key[STORE_WORD_MAX];
	uint8_t *base;
	size_t len;
};

struct store_write {
	enum store_write_kind kind;
	union {
		struct store_signal signal; /* put, remove */
		struct store_peer peer;
		struct store_member member;
		struct store_session session;
		struct ledger_signed entry;
		struct store_countersign countersign;
		struct ledger_stated statement;
		struct {
			struct store_checkpoint info;
			struct kge_emb *emb;
		} checkpoint;
		struct store_alignment alignment;
		struct store_intersection intersection;
		struct store_invitation invitation; /* put, remove */
		struct store_ticket ticket;
		struct store_seed seed;
		struct store_pair pair;
		struct store_meta meta;
		struct store_round round;
		struct {
			uint8_t id[STORE_ROUND];
			struct store_round_member member;
		} change;
		struct {
			uint8_t id[STORE_ROUND];
			double score;
		} scored;
		struct store_step step;
		struct store_step_day step_day;
		struct store_judgement judgement;
	} u;
};

/* All zero is an empty batch. */
struct store_batch {
	struct store_write *at;
	size_t n, cap;
};

void store_batch_release(struct store_batch *b); /* empty and usable again */
/* Move everything of `from` behind `to`; from is empty afterwards. */
void store_batch_move(struct store_batch *to, struct store_batch *from);

void store_batch_signal(struct store_batch *b, const uint8_t peer[STORE_KEY], int64_t time_ms);
void store_batch_unsignal(struct store_batch *b, const uint8_t peer[STORE_KEY]);
void store_batch_peer(struct store_batch *b, const struct store_peer *peer);
void store_batch_unpeer(struct store_batch *b, const uint8_t key[STORE_KEY]);
/* Copies the record; len <= STORE_RECORD_MAX.  0: it is forgotten. */
void store_batch_member(struct store_batch *b, const uint8_t key[STORE_KEY], const void *record,
			size_t len);
void store_batch_session(struct store_batch *b, const struct store_session *s);
void store_batch_entry(struct store_batch *b, const struct ledger_signed *entry);
/* Of a store that had lost it: what it says of our labels toward all partners is of then. */
void store_batch_return_entry(struct store_batch *b, const struct ledger_signed *entry);
void store_batch_countersign(struct store_batch *b, const uint8_t hash[LEDGER_HASH],
			     const uint8_t signature[LEDGER_SIGNATURE]);
void store_batch_statement(struct store_batch *b, const struct ledger_stated *s);
/* Takes emb over: pass kge_emb_copy() to keep yours.  Fills info's model, shapes,
 * gamma and digest from it. */
void store_batch_checkpoint(struct store_batch *b, const struct store_checkpoint *info,
			    struct kge_emb *emb);
/* The same by who knows emb's digest already. */
void store_batch_tables(struct store_batch *b, const struct store_checkpoint *info,
			struct kge_emb *emb, const uint8_t digest[STORE_DIGEST]);
/* Copies the slots. */
void store_batch_alignment(struct store_batch *b, const struct store_alignment *a);
void store_batch_invitation(struct store_batch *b, const struct store_invitation *i);
void store_batch_ticket(struct store_batch *b, const struct store_ticket *t);
void store_batch_seed(struct store_batch *b, const struct store_seed *x);
void store_batch_pair(struct store_batch *b, const struct store_pair *x);
void store_batch_intersection(struct store_batch *b, const struct store_intersection *i);
/* Copies len bytes; key is at most STORE_WORD_MAX - 1 bytes. */
void store_batch_meta(struct store_batch *b, const char *key, const void *bytes, size_t len);
/* Takes the bytes over, which were of malloc(). */
void store_batch_meta_owned(struct store_batch *b, const char *key, uint8_t *bytes, size_t len);
/* Of a round that is in the store. */
void store_batch_round_member(struct store_batch *b, const uint8_t id[STORE_ROUND],
			      const struct store_round_member *m);
void store_batch_round_score(struct store_batch *b, const uint8_t id[STORE_ROUND], double score);
void store_batch_step(struct store_batch *b, const struct store_step *s);
void store_batch_step_day(struct store_batch *b, const struct store_step_day *d);
void store_batch_judgement(struct store_batch *b, const struct store_judgement *j);
/* Copies the members. */
void store_batch_round(struct store_batch *b, const struct store_round *r);

#endif
