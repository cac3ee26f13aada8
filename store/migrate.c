/* store/migrate.c - the schema, as the list of everything that ever happened to it.
 *
 * Append only.  Stores in the field have run a prefix of this list, and PRAGMA
 * user_version says how long a prefix, so an entry that has shipped is never
 * edited, moved or removed; a mistake is put right by the next entry. */
#include <stdio.h>

#include "store/db.h"

struct migration {
	const char *why;
	const char *sql;
};

static const struct migration migrations[] = {
	{ "what the store knows about itself, and what the core keeps",
	  "CREATE TABLE info (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;"
	  "CREATE TABLE meta (key TEXT PRIMARY KEY, value BLOB NOT NULL) STRICT;" },

	/* Names are bytes, not text: they are compared, never normalised. Triples lie in
	 * blocks, since they are only ever read as a whole. */
	{ "the graph",
	  "CREATE TABLE name (tag TEXT NOT NULL CHECK (tag IN ('e', 'r')), id INTEGER NOT NULL,"
	  " name BLOB NOT NULL, PRIMARY KEY (tag, id)) STRICT, WITHOUT ROWID;"
	  "CREATE TABLE triples (split INTEGER NOT NULL, part INTEGER NOT NULL,"
	  " bytes BLOB NOT NULL, PRIMARY KEY (split, part)) STRICT;"
	  "CREATE TABLE alias (peer BLOB NOT NULL, tag TEXT NOT NULL CHECK (tag IN ('e', 'r')),"
	  " id INTEGER NOT NULL, name BLOB NOT NULL, PRIMARY KEY (peer, tag, id))"
	  " STRICT, WITHOUT ROWID;" },

	{ "embeddings, in blocks that checkpoints share",
	  "CREATE TABLE block (hash BLOB PRIMARY KEY CHECK (length(hash) = 32),"
	  " bytes BLOB NOT NULL) STRICT;"
	  "CREATE TABLE checkpoint (id INTEGER PRIMARY KEY AUTOINCREMENT, kind INTEGER NOT NULL,"
	  " model TEXT NOT NULL, dim INTEGER NOT NULL, n_ent INTEGER NOT NULL,"
	  " n_rel INTEGER NOT NULL, gamma REAL NOT NULL, score REAL NOT NULL,"
	  " protocol TEXT NOT NULL, epochs INTEGER NOT NULL, seed INTEGER NOT NULL,"
	  " created_ms INTEGER NOT NULL, digest BLOB NOT NULL CHECK (length(digest) = 32)) STRICT;"
	  /* kind 0 is the best one. */
	  "CREATE UNIQUE INDEX one_best ON checkpoint (kind) WHERE kind = 0;"
	  "CREATE TABLE checkpoint_block (checkpoint INTEGER NOT NULL REFERENCES checkpoint"
	  " ON DELETE CASCADE, tag TEXT NOT NULL CHECK (tag IN ('e', 'r')),"
	  " position INTEGER NOT NULL, hash BLOB NOT NULL REFERENCES block,"
	  " PRIMARY KEY (checkpoint, tag, position)) STRICT, WITHOUT ROWID;"
	  "CREATE INDEX checkpoint_block_hash ON checkpoint_block (hash);" },

	{ "peers, queue, sessions, alignments",
	  "CREATE TABLE peer (key BLOB PRIMARY KEY CHECK (length(key) = 32),"
	  " sign_key BLOB NOT NULL CHECK (length(sign_key) = 32), name TEXT NOT NULL,"
	  " address TEXT NOT NULL, status INTEGER NOT NULL, seen_ms INTEGER NOT NULL) STRICT;"
	  "CREATE TABLE member (key BLOB PRIMARY KEY CHECK (length(key) = 32),"
	  " record BLOB NOT NULL) STRICT;"
	  "CREATE TABLE signal (position INTEGER PRIMARY KEY AUTOINCREMENT,"
	  " peer BLOB NOT NULL UNIQUE, time_ms INTEGER NOT NULL) STRICT;"
	  "CREATE TABLE session (id BLOB PRIMARY KEY CHECK (length(id) = 16), peer BLOB NOT NULL,"
	  " role INTEGER NOT NULL, translator INTEGER NOT NULL, state INTEGER NOT NULL,"
	  " started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, bytes_in INTEGER NOT NULL,"
	  " bytes_out INTEGER NOT NULL, seconds REAL NOT NULL, outcome INTEGER NOT NULL,"
	  " reason TEXT NOT NULL) STRICT;"
	  "CREATE TABLE alignment (peer BLOB PRIMARY KEY, version BLOB NOT NULL,"
	  " digest BLOB NOT NULL, n INTEGER NOT NULL, slots BLOB NOT NULL) STRICT;" },

	/* The bytes that were signed, and nothing that could disagree with them but the
	 * keys to find them by. */
	{ "the privacy ledger",
	  "CREATE TABLE ledger_entry (position INTEGER PRIMARY KEY AUTOINCREMENT,"
	  " low BLOB NOT NULL, high BLOB NOT NULL, sequence INTEGER NOT NULL,"
	  " hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),"
	  " bytes BLOB NOT NULL CHECK (length(bytes) = 312),"
	  " signature BLOB NOT NULL CHECK (length(signature) = 64),"
	  " UNIQUE (low, high, sequence)) STRICT;"
	  "CREATE TABLE ledger_countersign (hash BLOB PRIMARY KEY REFERENCES ledger_entry (hash),"
	  " signature BLOB NOT NULL CHECK (length(signature) = 64)) STRICT;"
	  "CREATE TRIGGER ledger_entry_update BEFORE UPDATE ON ledger_entry BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
	  "CREATE TRIGGER ledger_entry_delete BEFORE DELETE ON ledger_entry BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
	  "CREATE TRIGGER ledger_countersign_update BEFORE UPDATE ON ledger_countersign BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
	  "CREATE TRIGGER ledger_countersign_delete BEFORE DELETE ON ledger_countersign BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
	  "CREATE TRIGGER ledger_entry_insert BEFORE INSERT ON ledger_entry"
	  " WHEN NEW.sequence <> 1 + (SELECT count(*) FROM ledger_entry"
	  "  WHERE low = NEW.low AND high = NEW.high) BEGIN"
	  " SELECT RAISE(ABORT, 'ledger entries must follow one another'); END;" },

	{ "which names a checkpoint's rows belong to",
	  "ALTER TABLE checkpoint ADD COLUMN names BLOB NOT NULL DEFAULT x'';" },

	{ "the dimension of a checkpoint's relations, where it is their own; 0: that of entities",
	  "ALTER TABLE checkpoint ADD COLUMN rel_dim INTEGER NOT NULL DEFAULT 0;" },

	{ "statements about the noise in our own training",
	  "CREATE TABLE ledger_statement (sequence INTEGER PRIMARY KEY AUTOINCREMENT,"
	  " hash BLOB NOT NULL UNIQUE CHECK (length(hash) = 32),"
	  " bytes BLOB NOT NULL CHECK (length(bytes) = 208),"
	  " signature BLOB NOT NULL CHECK (length(signature) = 64)) STRICT;"
	  "CREATE TRIGGER ledger_statement_update BEFORE UPDATE ON ledger_statement BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
	  "CREATE TRIGGER ledger_statement_delete BEFORE DELETE ON ledger_statement BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;" },
};

const int db_version = sizeof(migrations) / sizeof(migrations[0]);

static int run_from(struct store *s, void *ctx, struct err *e)
{
	int target = *(int *)ctx;
	int64_t version;
	char pragma[64];
	int rc = db_number(s, &version, e, "PRAGMA user_version");

	for (int64_t k = version; k < target && rc == 0; k++)
		if (sqlite3_exec(s->db, migrations[k].sql, NULL, NULL, NULL) != SQLITE_OK) {
			rc = db_fail(s, e);
			err_prefix(e, "migration %d (%s)", (int)k + 1, migrations[k].why);
		}
	if (rc != 0 || version >= target)
		return rc;
	snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", target);
	return db_do(s, e, pragma, "");
}

int db_migrate(struct store *s, int target, struct err *e)
{
	int64_t version;
	int rc = db_number(s, &version, e, "PRAGMA user_version");

	return rc != 0 || version >= target ? rc : db_transaction(s, run_from, &target, e);
}
