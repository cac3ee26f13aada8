/* store/db_internal.h - SQLite, for the files of this folder alone.
 *
 * Every call that can fail says so in the project's error space; the words
 * name the store and carry what SQLite said. */
#ifndef STORE_DB_INTERNAL_H
#define STORE_DB_INTERNAL_H

#include <sqlite3.h>
#include <stdbool.h>

#include "base/buf.h"
#include "store/store.h"

enum { STORE_PIECE_MAX = 64 << 20 }; /* bytes of a meta value in one row */

struct store {
	sqlite3 *db;
	char *path;
	int lock; /* descriptor of the lock file, or -1 */
	enum store_mode mode;
	uint32_t keep;
	int64_t rounds_max; /* STORE_ROUNDS_MAX; fewer in tests */
	size_t piece_max;   /* STORE_PIECE_MAX; fewer in tests */
	bool has_owner;
	uint8_t owner[LEDGER_KEY];
	/* The state of every chain, as on disk; loaded when first needed. */
	bool chains_valid;
	struct ledger_chain **chains;
	size_t n_chains;
	/* Keys that were replaced, as on disk, with chains_valid or training_valid. */
	struct ledger_rotations rotations;
	/* And of the account of our own training. */
	bool training_valid;
	struct ledger_training training;
};

/* ---- statements ----
 *
 * Arguments follow a format, one letter each: i int64_t, f double, t text,
 * b bytes (const void *, size_t).  They must live until the statement ends. */

/* Run to the end, rows ignored. */
MUST_CHECK int db_do(struct store *s, struct err *e, const char *sql, const char *format, ...);
/* Prepared and bound; db_step() it, then sqlite3_finalize() (NULL after an error). */
MUST_CHECK int db_query(struct store *s, sqlite3_stmt **st, struct err *e, const char *sql,
			const char *format, ...);
/* 1: a row; 0: no more; db_fail(). */
MUST_CHECK int db_step(struct store *s, sqlite3_stmt *st, struct err *e);
/* One number; 0 when there is no row. */
MUST_CHECK int db_number(struct store *s, int64_t *out, struct err *e, const char *sql);
/* What the system refused, by errno (why.c): ERR_IO where disk, quota or descriptors are short, or
 * the disk fails; else ERR_STORE. */
int db_refused(struct err *e, const char *path, int why);
/* The last error of this connection, and what to do about it; ERR_IO as above.  errno is to be 0
 * before SQLite is called.  reads: it is open for reading only. */
int db_said(struct err *e, sqlite3 *db, const char *path, bool reads);
int db_fail(struct store *s, struct err *e); /* of the store's */
int db_damaged(struct store *s, struct err *e, const char *what);
/* A new file, and its name, are on disk afterwards; ERR_IO. */
MUST_CHECK int db_sync(const char *path, struct err *e);

/* A column that must have exactly n bytes; false if not. */
MUST_CHECK bool db_bytes(sqlite3_stmt *st, int column, void *out, size_t n);
/* A text that must fit with its NUL; false if not. */
MUST_CHECK bool db_text(sqlite3_stmt *st, int column, char *out, size_t size);

/* One BEGIN IMMEDIATE transaction around fn; rolled back when it fails. */
MUST_CHECK int db_transaction(struct store *s, int (*fn)(struct store *s, void *ctx, struct err *e),
			      void *ctx, struct err *e);

/* All of the log into the file, which is synced, and nothing left of it; not empty: another program
 * reads it. */
MUST_CHECK int db_empty_log(struct store *s, bool *empty, struct err *e);

/* ---- the schema (migrate.c) ---- */

extern const int db_version; /* of a store that is up to date */
/* Bring the store up to `target` (tests stop earlier; else db_version). */
MUST_CHECK int db_migrate(struct store *s, int target, struct err *e);

/* Are the ledger's tables and triggers those of this version?  ERR_LEDGER names what is
 * gone, changed or not ours: this database was edited. */
MUST_CHECK int db_check_guards(struct store *s, struct err *e);

/* ---- is each table as it was written? (sums.c) ---- */

/* Functions that the sums' triggers call; each connection that writes needs them.  SQLITE_OK, or
 * SQLite's error. */
MUST_CHECK int db_sum_functions(sqlite3 *db);
/* Both within a transaction, around what changes the schema. */
MUST_CHECK int db_sums_drop(struct store *s, struct err *e);
MUST_CHECK int db_sums_make(struct store *s, struct err *e);
/* ERR_STORE names the table. */
MUST_CHECK int db_sums_check(struct store *s, struct err *e);

/* ---- parts of a transaction ---- */

MUST_CHECK int db_write_all(struct store *s, const struct store_batch *b, struct err *e);
MUST_CHECK int db_put_info(struct store *s, const char *key, const void *bytes, size_t n,
			   struct err *e);
/* Exactly n bytes, or ERR_NOTFOUND (e untouched). */
MUST_CHECK int db_get_info(struct store *s, const char *key, void *bytes, size_t n, struct err *e);
MUST_CHECK int db_put_graph(struct store *s, const struct graph *g, struct err *e);
/* Does the last store_forget() still wait for its store_scrub()? */
MUST_CHECK int db_scrub_waits(struct store *s, bool *waits, struct err *e);
MUST_CHECK int db_put_checkpoint(struct store *s, const struct store_checkpoint *info,
				 const struct kge_emb *emb, struct err *e);
MUST_CHECK int db_remove_latest(struct store *s, struct err *e); /* and what is beside it */
/* The tables of before partners had a part, and those of the arm without them. */
MUST_CHECK int db_remove_arms(struct store *s, struct err *e);
MUST_CHECK int db_demote_best(struct store *s, struct err *e);
MUST_CHECK int db_best(struct store *s, struct store_checkpoint *out, bool *found, struct err *e);

/* Records of rounds beyond s->rounds_max become sums. */
MUST_CHECK int db_fold_rounds(struct store *s, struct err *e);

MUST_CHECK int db_chains(struct store *s, struct err *e);    /* makes s->chains valid */
MUST_CHECK int db_rotations(struct store *s, struct err *e); /* reads s->rotations (rotate.c) */
/* As store_meta(); empty where nothing is kept. */
MUST_CHECK int db_meta(struct store *s, const char *key, struct buf *out, struct err *e);
/* Has anything been cut off the end?  ERR_LEDGER. */
MUST_CHECK int db_check_ends(struct store *s, struct err *e);
void db_forget_chains(struct store *s);
MUST_CHECK int db_add_entry(struct store *s, const struct ledger_signed *entry, struct err *e);
MUST_CHECK int db_return_entry(struct store *s, const struct ledger_signed *entry, struct err *e);
MUST_CHECK int db_add_countersign(struct store *s, const struct store_countersign *c,
				  struct err *e);
MUST_CHECK int db_add_statement(struct store *s, const struct ledger_stated *statement,
				struct err *e);

#endif
