#include "store/db_internal.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"

enum { BUSY_MS = 5000, DEFAULT_KEEP = 3, APPLICATION = 0x666b6765 }; /* "fkge" */

/* ---- errors ---- */

int db_fail(struct store *s, struct err *e)
{
	return db_said(e, s->db, s->path, s->mode == STORE_READ);
}

int db_damaged(struct store *s, struct err *e, const char *what)
{
	return err_set(e, ERR_STORE, "%s is damaged: %s; restore a backup (fkge restore)", s->path,
		       what);
}

/* ---- statements ---- */

static int bind_all(sqlite3_stmt *st, const char *format, va_list ap)
{
	int rc = SQLITE_OK;

	for (int k = 1; *format != '\0' && rc == SQLITE_OK; format++, k++) {
		if (*format == 'i') {
			rc = sqlite3_bind_int64(st, k, va_arg(ap, int64_t));
		} else if (*format == 'f') {
			rc = sqlite3_bind_double(st, k, va_arg(ap, double));
		} else if (*format == 't') {
			rc = sqlite3_bind_text(st, k, va_arg(ap, const char *), -1, SQLITE_STATIC);
		} else {
			const void *bytes = va_arg(ap, const void *);
			size_t n = va_arg(ap, size_t);

			rc = sqlite3_bind_blob64(st, k, n > 0 ? bytes : "", n, SQLITE_STATIC);
		}
	}
	return rc;
}

static int query(struct store *s, sqlite3_stmt **st, struct err *e, const char *sql,
		 const char *format, va_list ap)
{
	int rc;

	*st = NULL;
	errno = 0; /* db_said() */
	if (sqlite3_prepare_v2(s->db, sql, -1, st, NULL) == SQLITE_OK &&
	    bind_all(*st, format, ap) == SQLITE_OK)
		return 0;
	rc = db_fail(s, e);
	sqlite3_finalize(*st);
	*st = NULL;
	return rc;
}

int db_query(struct store *s, sqlite3_stmt **st, struct err *e, const char *sql, const char *format,
	     ...)
{
	va_list ap;
	int rc;

	va_start(ap, format);
	rc = query(s, st, e, sql, format, ap);
	va_end(ap);
	return rc;
}

int db_step(struct store *s, sqlite3_stmt *st, struct err *e)
{
	errno = 0; /* db_said() */
	switch (sqlite3_step(st)) {
	case SQLITE_ROW:
		return 1;
	case SQLITE_DONE:
		return 0;
	default:
		return db_fail(s, e);
	}
}

int db_do(struct store *s, struct err *e, const char *sql, const char *format, ...)
{
	sqlite3_stmt *st;
	va_list ap;
	int rc;

	va_start(ap, format);
	rc = query(s, &st, e, sql, format, ap);
	va_end(ap);
	if (rc != 0)
		return rc;
	do {
		rc = db_step(s, st, e);
	} while (rc > 0);
	sqlite3_finalize(st);
	return rc;
}

int db_number(struct store *s, int64_t *out, struct err *e, const char *sql)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, sql, "");

	*out = 0;
	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	if (rc > 0)
		*out = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return rc < 0 ? rc : 0;
}

bool db_bytes(sqlite3_stmt *st, int column, void *out, size_t n)
{
	const void *bytes = sqlite3_column_blob(st, column);

	assert(column >= 0 && n > 0);
	if (bytes == NULL || (size_t)sqlite3_column_bytes(st, column) != n)
		return false;
	memcpy(out, bytes, n);
	return true;
}

bool db_text(sqlite3_stmt *st, int column, char *out, size_t size)
{
	const unsigned char *text = sqlite3_column_text(st, column);
	size_t n = (size_t)sqlite3_column_bytes(st, column);

	assert(column >= 0 && size > 0);
	if (text == NULL || n >= size || memchr(text, '\0', n) != NULL)
		return false;
	memcpy(out, text, n + 1);
	return true;
}

/* What is in the log, and only could not be synced or noted beside it, is there for whoever opens
 * the store next, unless the log can still be emptied. */
static int end_transaction(struct store *s, struct err *e)
{
	int rc = db_do(s, e, "COMMIT", ""), code = sqlite3_extended_errcode(s->db);

	if (rc != 0 && (code & 0xff) == SQLITE_IOERR && code != SQLITE_IOERR_WRITE)
		err_prefix(e, "it may have been done all the same: look before you do it again");
	return rc;
}

int db_transaction(struct store *s, int (*fn)(struct store *s, void *ctx, struct err *e), void *ctx,
		   struct err *e)
{
	int rc;

	assert(fn != NULL);
	if (s->mode == STORE_READ)
		return err_set(e, ERR_STORE, "%s was opened for reading only", s->path);
	rc = db_do(s, e, "BEGIN IMMEDIATE", "");
	if (rc != 0)
		return rc;
	rc = fn(s, ctx, e);
	if (rc == 0)
		rc = end_transaction(s, e);
	/* SQLite ends some failed transactions (disk full) by itself. */
	if (rc != 0 && !sqlite3_get_autocommit(s->db))
		err_ignore(db_do(s, NULL, "ROLLBACK", "")); /* e says why already */
	return rc;
}

int db_empty_log(struct store *s, bool *empty, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "PRAGMA wal_checkpoint(TRUNCATE)", "");

	if (rc == 0)
		rc = db_step(s, st, e);
	*empty = rc > 0 && sqlite3_column_int64(st, 0) == 0;
	sqlite3_finalize(st);
	return rc < 0 ? rc : 0;
}

/* ---- info: what the store knows about itself ---- */

int db_put_info(struct store *s, const char *key, const void *bytes, size_t n, struct err *e)
{
	assert(key != NULL && (bytes != NULL || n == 0));
	return db_do(s, e, "INSERT OR REPLACE INTO info VALUES (?, ?)", "tb", key, bytes, n);
}

int db_get_info(struct store *s, const char *key, void *bytes, size_t n, struct err *e)
{
	sqlite3_stmt *st;
	int rc = db_query(s, &st, e, "SELECT value FROM info WHERE key = ?", "t", key);

	if (rc != 0)
		return rc;
	rc = db_step(s, st, e);
	if (rc > 0)
		rc = db_bytes(st, 0, bytes, n) ? 0 : db_damaged(s, e, key);
	else if (rc == 0)
		rc = ERR_NOTFOUND;
	sqlite3_finalize(st);
	return rc;
}

/* ---- the lock: one process owns a store ---- */

static int locked_by_another(struct store *s, struct err *e)
{
	char pid[24] = { 0 };
	ssize_t n = pread(s->lock, pid, sizeof(pid) - 1, 0);

	if (n > 0)
		pid[strcspn(pid, "\n")] = '\0';
	close(s->lock);
	s->lock = -1;
	return err_set(e, ERR_BUSY,
		       "%s is in use by another process (%s); stop that agent first, or ask it",
		       s->path, n > 0 ? pid : "unknown");
}

static int take_lock(struct store *s, struct err *e)
{
	char *name = mem_printf("%s.lock", s->path), pid[24];
	int n = snprintf(pid, sizeof(pid), "%ld\n", (long)getpid()), rc = 0;

	s->lock = file_open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock < 0)
		rc = db_refused(e, name, errno);
	else if (flock(s->lock, LOCK_EX | LOCK_NB) != 0)
		rc = locked_by_another(s, e);
	/* The number is for people; the lock itself ends with the process. */
	else if (ftruncate(s->lock, 0) != 0 || file_write_all(s->lock, pid, (size_t)n) != 0)
		rc = db_refused(e, name, errno);
	free(name);
	return rc;
}

/* ---- opening ---- */

static bool in_memory(const struct store *s)
{
	return strcmp(s->path, ":memory:") == 0;
}

/* The store holds the private graph: nobody else may read it (its WAL inherits this).  A file that
 * is there is not opened: closing it would end all locks that this process has on it for SQLite,
 * and whoever closed the store next would delete the log that its owner writes. */
static int make_private(struct store *s, struct err *e)
{
	int fd = -1;

	if (in_memory(s))
		return 0;
	if (s->mode == STORE_OWN)
		fd = file_open(s->path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd >= 0)
		close(fd);
	else if ((s->mode == STORE_OWN && errno != EEXIST) ||
		 access(s->path, s->mode == STORE_OWN ? R_OK | W_OK : R_OK) != 0)
		return errno == ENOENT && s->mode == STORE_READ
			       ? err_set(e, ERR_NOTFOUND, "%s: %s", s->path, strerror(errno))
			       : db_refused(e, s->path, errno);
	return 0;
}

/* ---- on a file system that is read-only here ---- */

/* No owner writes, and none can begin to (it may be mounted elsewhere, too) before we close. */
static bool keep_owner_out(struct store *s)
{
	char *name = mem_printf("%s.lock", s->path);
	bool out;

	s->lock = file_open(name, O_RDONLY | O_CLOEXEC, 0);
	out = s->lock >= 0 ? flock(s->lock, LOCK_SH | LOCK_NB) == 0 : errno == ENOENT;
	if (s->lock >= 0 && !out) {
		close(s->lock);
		s->lock = -1;
	}
	free(name);
	return out;
}

/* Beside a store with a log SQLite makes a file, even to read; where none can be made, it reads
 * the store alone if it is told that nothing changes.  What is in a log would be overlooked. */
static bool is_frozen(struct store *s)
{
	char *log = mem_printf("%s-wal", s->path);
	struct statvfs v;
	struct stat st;
	bool frozen = s->mode == STORE_READ && statvfs(s->path, &v) == 0 &&
		      (v.f_flag & ST_RDONLY) && keep_owner_out(s) &&
		      (stat(log, &st) != 0 || st.st_size == 0);

	free(log);
	return frozen;
}

/* The path as a URI, by free(). */
static char *frozen_name(const char *path)
{
	struct buf uri = { 0 };

	buf_printf(&uri, "%s", path[0] == '/' ? "file://" : "file:");
	for (const char *at = path; *at != '\0'; at++)
		buf_printf(&uri, strchr("%?#", *at) != NULL ? "%%%02x" : "%c", (unsigned char)*at);
	buf_printf(&uri, "?immutable=1");
	return (char *)uri.base;
}

static int open_database(struct store *s)
{
	int flags = s->mode == STORE_OWN ? SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE
					 : SQLITE_OPEN_READONLY;
	char *name = NULL;
	int rc;

	if (is_frozen(s)) {
		name = frozen_name(s->path);
		flags |= SQLITE_OPEN_URI;
	}
	errno = 0; /* db_said() */
	rc = sqlite3_open_v2(name != NULL ? name : s->path, &s->db, flags | SQLITE_OPEN_NOMUTEX,
			     NULL);
	free(name);
	return rc;
}

static int open_file(struct store *s, struct err *e)
{
	int rc = in_memory(s) || s->mode == STORE_READ ? 0 : take_lock(s, e);

	if (rc == 0)
		rc = make_private(s, e);
	if (rc != 0)
		return rc;
	if (open_database(s) != SQLITE_OK)
		return db_fail(s, e);
	sqlite3_extended_result_codes(s->db, 1);
	sqlite3_busy_timeout(s->db, BUSY_MS);
	return db_sum_functions(s->db) == SQLITE_OK ? 0 : db_fail(s, e);
}

static int check_kind(struct store *s, int64_t *version, struct err *e)
{
	int64_t application, tables;
	int rc = db_number(s, version, e, "PRAGMA user_version");

	if (rc == 0)
		rc = db_number(s, &application, e, "PRAGMA application_id");
	if (rc == 0)
		rc = db_number(s, &tables, e, "SELECT count(*) FROM sqlite_schema");
	if (rc != 0)
		return rc;
	if (application != APPLICATION && (tables > 0 || *version > 0))
		return err_set(e, ERR_STORE, "%s is a database of another program", s->path);
	return 0;
}

static int check_version(struct store *s, int64_t version, struct err *e)
{
	if (version > db_version) {
		/* Leave its log alone too. */
		sqlite3_db_config(s->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
		return err_set(e, ERR_NEWER,
			       "%s is a store of version %" PRId64
			       ", this fkge knows version %d: install a newer fkge",
			       s->path, version, db_version);
	}
	if (s->mode == STORE_READ && version < db_version)
		return err_set(e, ERR_OLDER,
			       "%s is a store of version %" PRId64
			       ": start its agent once to bring it to version %d",
			       s->path, version, db_version);
	return 0;
}

int db_sync(const char *path, struct err *e)
{
	int rc = file_sync(path, e);

	return rc == 0 ? file_sync_parent(path, e) : rc;
}

static int back_up(struct store *s, int64_t version, struct err *e)
{
	char *name;
	int rc;

	if (version == 0 || version == db_version || in_memory(s))
		return 0;
	name = mem_printf("%s.v%" PRId64 ".bak", s->path, version);
	unlink(name); /* of a migration that did not come to its end */
	rc = db_do(s, e, "VACUUM INTO ?", "t", name);
	if (rc == 0 && chmod(name, 0600) != 0)
		rc = db_refused(e, name, errno);
	if (rc == 0)
		rc = db_sync(name, e);
	free(name);
	return rc;
}

static int settings(struct store *s, struct err *e)
{
	static const char *const pragmas[] = {
		"PRAGMA foreign_keys = ON",
		/* INSERT OR REPLACE must meet the ledger's triggers too. */
		"PRAGMA recursive_triggers = ON",
		"PRAGMA trusted_schema = OFF",
		"PRAGMA synchronous = FULL",
		"PRAGMA application_id = 1718314853",
		"PRAGMA journal_mode = WAL",
	};
	size_t n = sizeof(pragmas) / sizeof(pragmas[0]);
	int rc = 0;

	if (s->mode == STORE_READ)
		n -= 3;
	for (size_t k = 0; k < n && rc == 0; k++)
		rc = db_do(s, e, pragmas[k], "");
	return rc;
}

static int put_owner(struct store *s, void *owner, struct err *e)
{
	return db_put_info(s, "owner", owner, LEDGER_KEY, e);
}

static int check_owner(struct store *s, const uint8_t *owner, struct err *e)
{
	int rc = db_get_info(s, "owner", s->owner, LEDGER_KEY, e);

	s->has_owner = rc == 0;
	if (rc != 0 && rc != ERR_NOTFOUND)
		return rc;
	if (s->has_owner && owner != NULL && memcmp(owner, s->owner, LEDGER_KEY) != 0)
		return err_set(e, ERR_IDENTITY,
			       "%s belongs to another identity than the one beside it", s->path);
	if (s->has_owner || owner == NULL || s->mode == STORE_READ)
		return 0;
	memcpy(s->owner, owner, LEDGER_KEY);
	s->has_owner = true;
	return db_transaction(s, put_owner, s->owner, e);
}

/* A store_forget() that was cut off before it had overwritten what it deleted. */
static int finish_forgetting(struct store *s, struct err *e)
{
	bool waits = false;
	int rc = s->mode == STORE_OWN ? db_scrub_waits(s, &waits, e) : 0;

	return rc == 0 && waits ? store_scrub(s, e) : rc;
}

static int open_all(struct store *s, const struct store_options *o, struct err *e)
{
	int64_t version = 0;
	int rc = open_file(s, e);

	if (rc == 0)
		rc = check_kind(s, &version, e);
	if (rc == 0)
		rc = check_version(s, version, e);
	if (rc == 0)
		rc = back_up(s, version, e);
	if (rc == 0)
		rc = settings(s, e);
	if (rc == 0 && s->mode == STORE_OWN)
		rc = db_migrate(s, db_version, e);
	if (rc == 0)
		rc = finish_forgetting(s, e);
	if (rc == 0)
		rc = check_owner(s, o->owner, e);
	if (rc == 0 && o->check)
		rc = store_check(s, e);
	if (rc == 0)
		rc = db_chains(s, e);
	if (rc == 0)
		rc = db_check_ends(s, e);
	return rc == 0 ? db_check_guards(s, e) : rc;
}

int store_open(struct store **out, const char *path, const struct store_options *o, struct err *e)
{
	static const struct store_options defaults;
	struct store *s = mem_array(1, sizeof(*s));
	int rc;

	if (o == NULL)
		o = &defaults;
	s->path = mem_strdup(path);
	s->lock = -1;
	s->mode = o->mode;
	s->keep = o->keep_checkpoints > 0 ? o->keep_checkpoints : DEFAULT_KEEP;
	s->rounds_max = STORE_ROUNDS_MAX;
	s->piece_max = STORE_PIECE_MAX;
	rc = open_all(s, o, e);
	if (rc != 0) {
		store_close(s);
		s = NULL;
	}
	*out = s;
	return rc;
}

void store_close(struct store *s)
{
	if (s == NULL)
		return;
	db_forget_chains(s);
	ledger_rotations_release(&s->rotations);
	sqlite3_close(s->db);
	if (s->lock >= 0)
		close(s->lock);
	free(s->path);
	free(s);
}
