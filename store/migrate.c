/* store/migrate.c - the schema, as the list of everything that ever happened to it.
 *
 * Append only.  Stores in the field have run a prefix of this list, and PRAGMA
 * user_version says how long a prefix, so an entry that has shipped is never
 * edited, moved or removed; a mistake is put right by the next entry. */
#include <stdio.h>
#include <string.h>

#include "store/db_internal.h"

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

	{ "rounds, who took part in them and what travelled",
	  "CREATE TABLE round (id BLOB PRIMARY KEY CHECK (length(id) = 16),"
	  " number INTEGER NOT NULL, method TEXT NOT NULL, hosted INTEGER NOT NULL,"
	  " secret_bits INTEGER NOT NULL, proposer BLOB NOT NULL CHECK (length(proposer) = 32),"
	  " started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, train_ms INTEGER NOT NULL,"
	  " outcome INTEGER NOT NULL, reason TEXT NOT NULL, items INTEGER NOT NULL,"
	  " answered INTEGER NOT NULL, homed INTEGER NOT NULL, params_up INTEGER NOT NULL,"
	  " params_down INTEGER NOT NULL, clipped INTEGER NOT NULL, spoiled INTEGER NOT NULL,"
	  " score REAL NOT NULL, scored INTEGER NOT NULL, members INTEGER NOT NULL) STRICT;"
	  "CREATE TABLE round_member (round BLOB NOT NULL REFERENCES round ON DELETE CASCADE,"
	  " seat INTEGER NOT NULL, key BLOB NOT NULL CHECK (length(key) = 32),"
	  " fate INTEGER NOT NULL, rows_out INTEGER NOT NULL, rows_in INTEGER NOT NULL,"
	  " floats_out INTEGER NOT NULL, floats_in INTEGER NOT NULL, bytes_out INTEGER NOT NULL,"
	  " bytes_in INTEGER NOT NULL, PRIMARY KEY (round, seat)) STRICT, WITHOUT ROWID;" },

	{ "sums of the rounds that are too old for records of their own, in all and by member",
	  "CREATE TABLE round_folded (one INTEGER PRIMARY KEY CHECK (one = 1),"
	  " rounds INTEGER NOT NULL, failed INTEGER NOT NULL, first_ms INTEGER NOT NULL,"
	  " last_ms INTEGER NOT NULL, train_ms INTEGER NOT NULL, params_up INTEGER NOT NULL,"
	  " params_down INTEGER NOT NULL, clipped INTEGER NOT NULL, spoiled INTEGER NOT NULL)"
	  " STRICT;"
	  "CREATE TABLE round_folded_member (key BLOB PRIMARY KEY CHECK (length(key) = 32),"
	  " rounds INTEGER NOT NULL, took_part INTEGER NOT NULL, rows_out INTEGER NOT NULL,"
	  " rows_in INTEGER NOT NULL, floats_out INTEGER NOT NULL, floats_in INTEGER NOT NULL,"
	  " bytes_out INTEGER NOT NULL, bytes_in INTEGER NOT NULL) STRICT;" },

	/* A row of SQLite ends at 1e9 bytes, and what a method keeps of its tables does not. */
	{ "what of a meta value is behind its first piece",
	  "CREATE TABLE meta_piece (key TEXT NOT NULL REFERENCES meta ON DELETE CASCADE,"
	  " position INTEGER NOT NULL, bytes BLOB NOT NULL, PRIMARY KEY (key, position)) STRICT;" },

	{ "what members sign of a round for each other",
	  "ALTER TABLE round_member ADD COLUMN said_rows_out INTEGER NOT NULL DEFAULT 0;"
	  "ALTER TABLE round_member ADD COLUMN said_rows_in INTEGER NOT NULL DEFAULT 0;"
	  "ALTER TABLE round_member ADD COLUMN said_floats_out INTEGER NOT NULL DEFAULT 0;"
	  "ALTER TABLE round_member ADD COLUMN said_floats_in INTEGER NOT NULL DEFAULT 0;"
	  "ALTER TABLE round_member ADD COLUMN signature BLOB" /* NULL: it has said nothing */
	  " CHECK (length(signature) = 64);" },

	{ "accounts of members that were refused, and why",
	  "ALTER TABLE round_member ADD COLUMN refused TEXT NOT NULL DEFAULT '';" },

	{ "where strangers knocked from, so that one address does not fill the table",
	  "ALTER TABLE peer ADD COLUMN source TEXT NOT NULL DEFAULT '';" },

	{ "names that an owner gives to saved states",
	  "ALTER TABLE checkpoint ADD COLUMN label TEXT NOT NULL DEFAULT '';" },
	{ "how many names each side put into which intersection",
	  "CREATE TABLE intersection (peer BLOB NOT NULL CHECK (length(peer) = 32),"
	  " time_ms INTEGER NOT NULL, ours INTEGER NOT NULL, theirs INTEGER NOT NULL,"
	  " shared INTEGER NOT NULL, done INTEGER NOT NULL, PRIMARY KEY (peer, time_ms))"
	  " STRICT, WITHOUT ROWID;" },
	{ "a sum over each table, by which it is seen whether it is as it was written",
	  "CREATE TABLE table_sum (name TEXT PRIMARY KEY, sum BLOB NOT NULL CHECK (length(sum) = "
	  "32),"
	  " rows INTEGER NOT NULL) STRICT, WITHOUT ROWID;" },
	/* Scores below 0: not known. */
	{ "scores before and after averaging, and how far members' rows were from the others'",
	  "ALTER TABLE round ADD COLUMN own_score REAL NOT NULL DEFAULT -1;"
	  "ALTER TABLE round ADD COLUMN merged_score REAL NOT NULL DEFAULT -1;"
	  "ALTER TABLE round ADD COLUMN alone_score REAL NOT NULL DEFAULT -1;"
	  "ALTER TABLE round_member ADD COLUMN compared INTEGER NOT NULL DEFAULT 0;"
	  "ALTER TABLE round_member ADD COLUMN distance REAL NOT NULL DEFAULT -1;"
	  "ALTER TABLE round_member ADD COLUMN cosine REAL NOT NULL DEFAULT 0;" },
	{ "invitations that let their holder in, and tickets of those that we hold",
	  "CREATE TABLE invitation (hash BLOB PRIMARY KEY CHECK (length(hash) = 32),"
	  " made_ms INTEGER NOT NULL, until_ms INTEGER NOT NULL, uses INTEGER NOT NULL,"
	  " used INTEGER NOT NULL, revoked INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	  "CREATE TABLE ticket (peer BLOB PRIMARY KEY CHECK (length(peer) = 32),"
	  " ticket BLOB NOT NULL CHECK (length(ticket) = 16)) STRICT, WITHOUT ROWID;" },
	{ "secrets of pairs, and what invitations made here carry for them",
	  "CREATE TABLE pair_seed (seed BLOB PRIMARY KEY CHECK (length(seed) = 32),"
	  " made_ms INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
	  "CREATE TABLE pair_secret (peer BLOB NOT NULL CHECK (length(peer) = 32),"
	  " proven INTEGER NOT NULL CHECK (proven IN (0, 1)),"
	  " secret BLOB NOT NULL CHECK (length(secret) = 32),"
	  " PRIMARY KEY (peer, proven)) STRICT, WITHOUT ROWID;" },
	{ "steps of queries that an owner has answered, and what a peer had of us on its last day",
	  "CREATE TABLE step (position INTEGER PRIMARY KEY AUTOINCREMENT,"
	  " peer BLOB NOT NULL CHECK (length(peer) = 32), ours INTEGER NOT NULL,"
	  " id BLOB NOT NULL CHECK (length(id) = 16),"
	  " asker BLOB NOT NULL CHECK (length(asker) = 32),"
	  " owner BLOB NOT NULL CHECK (length(owner) = 32), relation BLOB NOT NULL,"
	  " inverse INTEGER NOT NULL, norm INTEGER NOT NULL, points INTEGER NOT NULL,"
	  " want INTEGER NOT NULL, asked_ms INTEGER NOT NULL, answered_ms INTEGER NOT NULL,"
	  " alignment BLOB NOT NULL CHECK (length(alignment) = 32),"
	  " frontier BLOB NOT NULL CHECK (length(frontier) = 32),"
	  " answer BLOB NOT NULL CHECK (length(answer) = 32), policy INTEGER NOT NULL,"
	  " rows INTEGER NOT NULL, ways INTEGER NOT NULL,"
	  " asker_signature BLOB NOT NULL CHECK (length(asker_signature) = 64),"
	  " owner_signature BLOB NOT NULL CHECK (length(owner_signature) = 64)) STRICT;"
	  "CREATE TABLE step_day (peer BLOB PRIMARY KEY CHECK (length(peer) = 32),"
	  " day INTEGER NOT NULL, steps INTEGER NOT NULL, rows INTEGER NOT NULL)"
	  " STRICT, WITHOUT ROWID;" },
	{ "what partners' rows have come to on our valid, and who is in quarantine",
	  "CREATE TABLE judgement (peer BLOB PRIMARY KEY CHECK (length(peer) = 32),"
	  " judged INTEGER NOT NULL, hurt INTEGER NOT NULL, reputation REAL NOT NULL,"
	  " quarantined INTEGER NOT NULL CHECK (quarantined IN (0, 1)),"
	  " since_ms INTEGER NOT NULL, why TEXT NOT NULL) STRICT, WITHOUT ROWID;" },
	{ "keys that their owners have replaced",
	  "CREATE TABLE ledger_rotation (position INTEGER PRIMARY KEY AUTOINCREMENT,"
	  " account BLOB NOT NULL CHECK (length(account) = 32), number INTEGER NOT NULL,"
	  " bytes BLOB NOT NULL CHECK (length(bytes) = 344), UNIQUE (account, number)) STRICT;"
	  "CREATE TRIGGER ledger_rotation_update BEFORE UPDATE ON ledger_rotation BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;"
	  "CREATE TRIGGER ledger_rotation_delete BEFORE DELETE ON ledger_rotation BEGIN"
	  " SELECT RAISE(ABORT, 'the ledger is append-only'); END;" },
	/* The host chooses the id, also one that another session has had. */
	{ "sessions of one id stand beside each other",
	  "ALTER TABLE session RENAME TO session_before;"
	  "CREATE TABLE session (id BLOB NOT NULL CHECK (length(id) = 16), peer BLOB NOT NULL,"
	  " role INTEGER NOT NULL, translator INTEGER NOT NULL, state INTEGER NOT NULL,"
	  " started_ms INTEGER NOT NULL, finished_ms INTEGER NOT NULL, bytes_in INTEGER NOT NULL,"
	  " bytes_out INTEGER NOT NULL, seconds REAL NOT NULL, outcome INTEGER NOT NULL,"
	  " reason TEXT NOT NULL, PRIMARY KEY (id, peer, role, started_ms)) STRICT;"
	  "INSERT INTO session SELECT * FROM session_before ORDER BY rowid;"
	  "DROP TABLE session_before;" },
};

const int db_version = sizeof(migrations) / sizeof(migrations[0]);

static int has_sums(struct store *s, bool *has, struct err *e)
{
	int64_t n;
	int rc = db_number(s, &n, e, "SELECT count(*) FROM sqlite_schema WHERE name = 'table_sum'");

	*has = n > 0;
	return rc;
}

/* Before a migration: the tables are as they were written.  Then nothing watches them. */
static int unwatch(struct store *s, struct err *e)
{
	bool has;
	int rc = has_sums(s, &has, e);

	if (rc == 0 && has)
		rc = db_sums_check(s, e);
	return rc == 0 && has ? db_sums_drop(s, e) : rc;
}

static int watch(struct store *s, struct err *e)
{
	bool has;
	int rc = has_sums(s, &has, e);

	return rc == 0 && has ? db_sums_make(s, e) : rc;
}

static int run_from(struct store *s, void *ctx, struct err *e)
{
	int target = *(int *)ctx;
	int64_t version;
	char pragma[64];
	int rc = db_number(s, &version, e, "PRAGMA user_version");

	if (rc == 0 && version < target)
		rc = unwatch(s, e);
	for (int64_t k = version; k < target && rc == 0; k++)
		if (sqlite3_exec(s->db, migrations[k].sql, NULL, NULL, NULL) != SQLITE_OK) {
			rc = db_fail(s, e);
			err_prefix(e, "migration %d (%s)", (int)k + 1, migrations[k].why);
		}
	if (rc == 0 && version < target)
		rc = watch(s, e);
	if (rc != 0 || version >= target)
		return rc;
	snprintf(pragma, sizeof(pragma), "PRAGMA user_version = %d", target);
	return db_do(s, e, pragma, "");
}

int db_migrate(struct store *s, int target, struct err *e)
{
	int64_t version;
	int rc = db_number(s, &version, e, "PRAGMA user_version");

	if (rc == 0 && db_sum_functions(s->db) != SQLITE_OK)
		rc = db_fail(s, e);
	return rc != 0 || version >= target ? rc : db_transaction(s, run_from, &target, e);
}

/* ---- has somebody edited the schema? ---- */

static const char guards_sql[] =
	"SELECT name, sql FROM sqlite_schema WHERE type IN ('table', 'trigger')"
	" AND tbl_name LIKE 'ledger\\_%' ESCAPE '\\' ORDER BY name";

static bool same_text(sqlite3_stmt *a, sqlite3_stmt *b, int column)
{
	const char *x = (const char *)sqlite3_column_text(a, column);
	const char *y = (const char *)sqlite3_column_text(b, column);

	return x != NULL && y != NULL && strcmp(x, y) == 0;
}

static int edited(const struct store *s, sqlite3_stmt *st, const char *how, struct err *e)
{
	return err_set(
		e, ERR_LEDGER,
		"the ledger in %s was edited: its guard %s %s; restore a backup (fkge restore), "
		"and compare with your partners' ledgers",
		s->path, (const char *)sqlite3_column_text(st, 0), how);
}

/* Both lists are in the order of names. */
static int compare_guards(struct store *s, sqlite3_stmt *want, sqlite3_stmt *have, struct err *e)
{
	int w, h;

	while ((w = sqlite3_step(want)) == SQLITE_ROW) {
		h = sqlite3_step(have);
		if (h == SQLITE_ROW && same_text(want, have, 0) && same_text(want, have, 1))
			continue;
		if (h == SQLITE_ROW && same_text(want, have, 0))
			return edited(s, want, "is another one", e);
		if (h == SQLITE_ROW && strcmp((const char *)sqlite3_column_text(have, 0),
					      (const char *)sqlite3_column_text(want, 0)) < 0)
			return edited(s, have, "is not ours", e);
		return edited(s, want, "is gone", e);
	}
	return w == SQLITE_DONE && sqlite3_step(have) == SQLITE_ROW
		       ? edited(s, have, "is not ours", e)
		       : 0;
}

/* A new store in memory says what they must be. */
int db_check_guards(struct store *s, struct err *e)
{
	struct store fresh = { .path = s->path, .lock = -1 };
	sqlite3_stmt *want = NULL, *have = NULL;
	int rc = 0;

	if (sqlite3_open(":memory:", &fresh.db) != SQLITE_OK)
		rc = db_fail(&fresh, e);
	if (rc == 0)
		rc = db_migrate(&fresh, db_version, e);
	if (rc == 0)
		rc = db_query(&fresh, &want, e, guards_sql, "");
	if (rc == 0)
		rc = db_query(s, &have, e, guards_sql, "");
	if (rc == 0)
		rc = compare_guards(s, want, have, e);
	sqlite3_finalize(want);
	sqlite3_finalize(have);
	sqlite3_close(fresh.db);
	return rc;
}
