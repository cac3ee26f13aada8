/* store/store.h - everything an agent must not lose, in one SQLite file.
 *
 * WAL, synchronous=FULL: when a call that writes returns 0 it is on disk, and when it fails nothing
 * of it is, but where the error says that it may be.  One process owns a store at a time.  A store
 * is used from one thread at a time (the process gives it to its worker).
 *
 * Errors: ERR_BUSY for another process that owns it, ERR_STORE for damaged, unwritable, or locked
 * within SQLite, ERR_IO where the disk is full or fails, or quota or descriptors have run out,
 * always with what SQLite or the system said and what to do about it; ERR_OLDER for one that is
 * only read and would have to be migrated; ERR_NEWER for a store from a later version, which is
 * left untouched; ERR_LEDGER when the ledger inside does not verify.  No SQLite code
 * leaves this folder. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "graph/graph.h"
#include "kge/model.h"
#include "store/batch.h"
#include "store/ledger/verify.h"
#include "store/restored.h"

struct store;

enum store_mode {
	STORE_OWN,  /* read and write, locked against others; made if missing; migrated */
	STORE_READ, /* beside its owner; never writes; ERR_NOTFOUND if missing */
};

struct store_options {
	enum store_mode mode;
	/* Ed25519 key of the identity beside this store; NULL: not known here.  Kept at
	 * the first opening; another one later is ERR_IDENTITY. */
	const uint8_t *owner;
	uint32_t keep_checkpoints; /* superseded ones that stay; 0: the default, 3 */
	bool check;		   /* run store_check() before anything else */
};

/* path may be ":memory:".  Before an older store is migrated, a copy of it is left
 * beside it as PATH.v<version>.bak. */
MUST_CHECK int store_open(struct store **s, const char *path, const struct store_options *o,
			  struct err *e);
void store_close(struct store *s); /* NULL is fine */

/* A copy of all that is on disk now, in a new file of mode 0600 that is synced and has no log
 * beside it.  Its owner may go on writing meanwhile.  ERR_EXISTS: the file is there. */
MUST_CHECK int store_copy(struct store *s, const char *path, struct err *e);

/* All that was written is in the file itself, synced, and nothing in its log: the file alone is the
 * store.  ERR_BUSY: another program reads it. */
MUST_CHECK int store_settle(struct store *s, struct err *e);

/* Our owner replaces our keys: the next of its rotations is on disk.  The identity's file is the
 * caller's (store_identity_replace()). */
MUST_CHECK int store_rotate_own(struct store *s, const struct ledger_rotation *r, struct err *e);
/* A partner's owner has, n times: the peer with the old keys has the last ones, all that names it
 * names it by them, and its ledger goes on.  All n >= 1 of one account, in their order, or none.
 * self: our X25519 key.  ERR_NOTFOUND: no peer has the old keys; ERR_LEDGER: they do not follow
 * those known, or new keys are ours, another peer's, or those of an account on the ledger. */
MUST_CHECK int store_rotate_peer(struct store *s, const struct ledger_rotation *at, size_t n,
				 const uint8_t self[STORE_KEY], struct err *e);
/* Would store_rotate_peer() take them?  Writes nothing; the same errors. */
MUST_CHECK int store_check_rotations(struct store *s, const struct ledger_rotation *at, size_t n,
				     const uint8_t self[STORE_KEY], struct err *e);
/* All that are known, to be released. */
MUST_CHECK int store_rotations(struct store *s, struct ledger_rotations *out, struct err *e);

/* The slow look: pages, foreign keys, the sum of each table, the graph's digest, every signature
 * and every checkpoint's digest. */
MUST_CHECK int store_check(struct store *s, struct err *e);

/* Everything in the batch in one transaction, or nothing.  Refused as a whole:
 * a best checkpoint that is not better (ERR_REFUSED), an entry that breaks a
 * rule of store/ledger/entry.h (ERR_LEDGER) or passes a cap (ERR_BUDGET). */
MUST_CHECK int store_apply(struct store *s, const struct store_batch *b, struct err *e);

/* ---- what a restarting core needs ---- */

enum { STORE_ROUNDS_LATE = 8 };

/* Sessions with one peer that have ended, by how. */
struct store_session_count {
	uint8_t peer[STORE_KEY];
	uint64_t done, aborted;
};

struct store_session_counts {
	struct store_session_count *at;
	size_t n;
};

struct store_secrets {		  /* of pairs (agent/invites.h) */
	struct store_seed *seeds; /* oldest first */
	size_t n_seeds;
	struct store_pair *pairs;
	size_t n_pairs;
};

/* Of queries: what we answered. */
struct store_steps_kept {
	uint8_t (*ids)[LEDGER_STEP_ID]; /* the newest first */
	size_t n_ids;
	struct store_step_day *days;
	size_t n_days;
};

struct store_tickets {
	struct store_ticket *at;
	size_t n;
};

struct store_judgements {
	struct store_judgement *at;
	size_t n;
};

struct store_late {
	struct store_round *at; /* rounds, the newest first */
	size_t n;		/* STORE_ROUNDS_LATE at most */
};

struct store_core {
	struct store_peer *peers;
	size_t n_peers;
	struct store_member *members;
	size_t n_members;
	struct store_signal *queue; /* oldest first */
	size_t n_queue;
	struct store_session *open; /* unfinished sessions */
	size_t n_open;
	struct store_session_counts ended;
	struct store_alignment *alignments;
	size_t n_alignments;
	struct store_intersection *intersections; /* oldest first */
	size_t n_intersections;
	struct store_invitation *invitations; /* oldest first */
	size_t n_invitations;
	struct store_tickets tickets;
	struct store_secrets secrets;
	struct store_steps_kept steps;
	struct store_judgements judgements;
	struct ledger_chain **chains;
	size_t n_chains;
	struct ledger_rotations rotations; /* of keys: ours and partners' */
	struct ledger_training training;   /* the account of our own training */
	bool has_best;
	struct store_checkpoint best;
	struct store_meta *meta; /* values up to 64 KiB; larger ones by store_meta() */
	size_t n_meta;
	uint8_t (*rounds)[STORE_ROUND]; /* ids of those on record, the oldest first */
	size_t n_rounds;
	struct store_late late;
};

MUST_CHECK int store_load_core(struct store *s, struct store_core *out, struct err *e);
void store_core_release(struct store_core *c);

/* Sessions, the newest first, at most limit; *out to be freed with free(). */
MUST_CHECK int store_sessions(struct store *s, size_t limit, struct store_session **out, size_t *n,
			      struct err *e);
/* Intersections with this peer, the newest first; *out to be freed with free(). */
MUST_CHECK int store_intersections(struct store *s, const uint8_t peer[STORE_KEY],
				   struct store_intersection **out, size_t *n, struct err *e);
/* Steps of queries on record, the newest first, at most limit; *out to be freed with free(). */
MUST_CHECK int store_steps(struct store *s, size_t limit, struct store_step **out, size_t *n,
			   struct err *e);
/* How many there were before the newest STORE_STEPS_MAX, and are no longer on record. */
MUST_CHECK int store_steps_older(struct store *s, uint64_t *n, struct err *e);
/* Rounds that are over, the newest first, at most limit. */
MUST_CHECK int store_rounds(struct store *s, size_t limit, struct store_round **out, size_t *n,
			    struct err *e);
void store_rounds_release(struct store_round *rounds, size_t n);

/* The sums over the rounds that were older than the newest STORE_ROUNDS_MAX. */
struct store_folded_member {
	uint64_t rounds, took_part;    /* it was in the roster; to the end */
	struct store_round_member sum; /* its fate means nothing */
};
struct store_folded {
	uint64_t rounds, failed;
	int64_t first_ms, last_ms; /* the first one's start, the last one's end */
	uint64_t train_ms, params_up, params_down, clipped, spoiled;
	struct store_folded_member *members; /* by peer, and ourselves */
	size_t n_members;
};
/* All zero if none were. */
MUST_CHECK int store_folded(struct store *s, struct store_folded *out, struct err *e);
void store_folded_release(struct store_folded *f);

/* Appends the value; ERR_NOTFOUND. */
MUST_CHECK int store_meta(struct store *s, const char *key, struct buf *out, struct err *e);

/* ---- the graph ---- */

/* Replace the graph, and write `with` (borrowed; NULL: nothing), in one transaction.  Alias tables,
 * alignments and the best score are about the old names: aliases, alignments and the tables of the
 * last round are dropped, the best checkpoint becomes a manual one, unless all names keep their
 * ids.  Where the triples of valid are others, or in another order, scores of checkpoints are old:
 * the words for their protocols end with STORE_OLD_VALID, so that no score compares with them. */
MUST_CHECK int store_put_graph(struct store *s, const struct graph *g,
			       const struct store_batch *with, struct err *e);
#define STORE_OLD_VALID " (old valid)"
bool store_score_is_old(const char *protocol);
/* The same names under the same ids and the triples in the same order. ERR_NOTFOUND: none yet. */
MUST_CHECK int store_load_graph(struct store *s, struct graph **g, struct err *e);
/* BLAKE2b-256 over names and triples of all splits, as stored and as loaded. */
void store_graph_digest(const struct graph *g, uint8_t out[STORE_DIGEST]);
/* The same over the names alone, in the order of their ids: which rows mean what. */
void store_names_digest(const struct graph *g, uint8_t out[STORE_DIGEST]);
/* Is row k of these tables that of name k of this graph?  Of a store from before names were kept,
 * known by their number alone. */
bool store_checkpoint_is_of(const struct store_checkpoint *c, const struct graph *g);

/* An owner takes triples back: `kept` takes the graph's place, and nothing else of the old one
 * stays in the file, nor in its log, nor in the copies that store_open() left before migrations.
 *
 *   - entity k of the old graph is ent[k] of the new one, or GRAPH_NONE if it is gone; so are
 * relations
 *   - every checkpoint goes, for all were made with what is forgotten
 *   - so does every meta value but those of `keep_meta`: what learners keep from one training to
 * the next
 *   - `anew` (borrowed; NULL: nothing) is written then: the tables that have forgotten, what
 * learners keep beside them, and what the caller signs for it
 *   - aliases of names that stay are kept; where names went, ids have changed, so alignments go
 *
 * One transaction; store_scrub() is the caller's next call.  When that fails or is cut off, the new
 * graph is there all the same, and the next opening for writing scrubs first. */
struct store_kept {
	const struct graph *kept;
	const uint32_t *ent, *rel; /* by old id */
	uint32_t n_ent, n_rel;	   /* old ids */
	const struct store_batch *anew;
	const char *keep_meta[6]; /* NULL: none */
};
MUST_CHECK int store_forget(struct store *s, const struct store_kept *k, struct err *e);
/* Rewrite the file without what was deleted from it, empty its log, remove the copies left by
 * migrations.  Takes as much memory as the store.  ERR_STORE while others read. */
MUST_CHECK int store_scrub(struct store *s, struct err *e);

struct store_alias {
	char tag; /* 'e' or 'r' */
	uint32_t id;
	const char *name;
	size_t len;
};

/* Replace the alias table toward one peer, or (NULL) toward everybody. */
MUST_CHECK int store_put_aliases(struct store *s, const uint8_t *peer, const struct store_alias *at,
				 size_t n, struct err *e);
/* How many there are, toward everybody and toward single peers. */
MUST_CHECK int store_count_aliases(struct store *s, size_t *n, struct err *e);

/* Canonical names toward one peer: its alias, else everybody's, else our own name.
 * Borrows from the graph. */
struct store_names {
	uint32_t n_ent, n_rel;
	const char **ent, **rel;     /* by id, NUL-terminated; of the graph or in `text` */
	uint32_t *ent_len, *rel_len; /* bytes without the NUL */
	uint8_t version[STORE_DIGEST];
	char *text;
};

MUST_CHECK int store_load_names(struct store *s, const struct graph *g, const uint8_t *peer,
				struct store_names *out, struct err *e);
void store_names_release(struct store_names *n);

/* ---- checkpoints ---- */

enum { STORE_BLOCK_ROWS = 2048 }; /* rows in one deduplicated block */

/* Newest first; *out to be freed with free(). */
MUST_CHECK int store_checkpoints(struct store *s, struct store_checkpoint **out, size_t *n,
				 struct err *e);
/* The best one, without its tables; out->id 0: there is none. */
MUST_CHECK int store_find_best(struct store *s, struct store_checkpoint *out, struct err *e);
/* id 0: the best one.  Bit for bit as it was put, checked against its digest
 * (ERR_STORE if not).  *emb is new, to be freed with kge_emb_free(). */
MUST_CHECK int store_restore(struct store *s, uint64_t id, struct kge_emb **emb,
			     struct store_checkpoint *info, struct err *e);
/* The same of the one of a kind of which there is one; ERR_NOTFOUND: there is none. */
MUST_CHECK int store_restore_kind(struct store *s, enum store_checkpoint_kind kind,
				  struct kge_emb **emb, struct store_checkpoint *info,
				  struct err *e);
/* The one of kind STORE_LATEST. */
MUST_CHECK int store_latest(struct store *s, struct kge_emb **emb, struct store_checkpoint *info,
			    struct err *e);
/* ERR_REFUSED for the best one. */
MUST_CHECK int store_remove_checkpoint(struct store *s, uint64_t id, struct err *e);
/* The best becomes a manual checkpoint, the tables of the last round go: another protocol or
 * split begins. */
MUST_CHECK int store_demote_best(struct store *s, struct err *e);

/* ---- the ledger ---- */

/* All entries in the order in which they were written here, or (peer not NULL,
 * its Ed25519 key) those of one chain; and the statements. */
MUST_CHECK int store_ledger(struct store *s, const uint8_t *peer, struct ledger_export *out,
			    struct err *e);
/* Of the chain with this partner, entries number `first` and what follows, at most max, in their
 * order; *out to be freed with free(). */
MUST_CHECK int store_chain_entries(struct store *s, const uint8_t peer[LEDGER_KEY], uint64_t first,
				   size_t max, struct ledger_signed **out, size_t *n,
				   struct err *e);
/* The facts to be learned after a backup was put back; release them. */
MUST_CHECK int store_restored(struct store *s, struct store_restored *out, struct err *e);
/* Our statements of our own training, oldest first, each checked against the one before and its
 * signature; *out to be freed with free().  ERR_LEDGER. */
MUST_CHECK int store_statements(struct store *s, struct ledger_stated **out, size_t *n,
				struct err *e);
/* The sum of these statements. */
MUST_CHECK int store_training(struct store *s, struct ledger_training *out, struct err *e);

#endif
