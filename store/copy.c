/* store/copy.c - a copy of a store while its owner writes, and what a restored one says of itself.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "store/db_internal.h"

/* ---- a copy ---- */

static int make_file(const char *path, struct err *e)
{
	int fd = file_open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);

	if (fd < 0)
		return errno == EEXIST ? err_set(e, ERR_EXISTS, "%s: %s", path, strerror(errno))
				       : db_refused(e, path, errno);
	close(fd);
	return 0;
}

/* All pages in one step: it is one read transaction of the source, whose writer goes on in the log.
 */
static int copy_pages(struct store *s, sqlite3 *to, const char *path, struct err *e)
{
	sqlite3_backup *b = sqlite3_backup_init(to, "main", s->db, "main");
	int code = b != NULL ? sqlite3_backup_step(b, -1) : sqlite3_errcode(to);
	int rc;

	if (b != NULL)
		sqlite3_backup_finish(b); /* which leaves the error with `to` */
	if (code == SQLITE_DONE)
		return 0;
	rc = db_said(e, to, path, false);
	err_prefix(e, "copying %s", s->path);
	return rc;
}

/* One file without a log, which is synced: SQLite does that when it leaves WAL. */
static int end_log(sqlite3 *to, const char *path, struct err *e)
{
	return sqlite3_exec(to,
			    "PRAGMA synchronous = FULL; PRAGMA journal_mode = DELETE;"
			    " PRAGMA user_version",
			    NULL, NULL, NULL) == SQLITE_OK
		       ? 0
		       : db_said(e, to, path, false);
}

static int copy_to(struct store *s, const char *path, struct err *e)
{
	sqlite3 *to = NULL;
	int rc = 0;

	errno = 0; /* db_said() */
	if (sqlite3_open_v2(path, &to, SQLITE_OPEN_READWRITE, NULL) != SQLITE_OK)
		rc = db_said(e, to, path, false);
	if (rc == 0)
		rc = copy_pages(s, to, path, e);
	if (rc == 0)
		rc = end_log(to, path, e);
	sqlite3_close(to);
	return rc == 0 ? db_sync(path, e) : rc;
}

int store_copy(struct store *s, const char *path, struct err *e)
{
	int rc = make_file(path, e);

	if (rc != 0)
		return rc;
	rc = copy_to(s, path, e);
	if (rc != 0)
		unlink(path);
	return rc;
}

int store_settle(struct store *s, struct err *e)
{
	bool empty;
	int rc = db_empty_log(s, &empty, e);

	if (rc == 0 && !empty)
		rc = err_set(e, ERR_BUSY, "%s: another program reads it", s->path);
	return rc == 0 ? db_sync(s->path, e) : rc;
}

/* ---- what was put back ---- */

int store_restored(struct store *s, struct store_restored *out, struct err *e)
{
	struct buf bytes = { 0 };
	struct err why = { 0 };
	int rc = store_meta(s, STORE_META_RESTORED, &bytes, &why);

	memset(out, 0, sizeof(*out));
	if (rc == 0)
		rc = store_restored_read(out, bytes.base, bytes.len, e);
	else
		rc = rc == ERR_NOTFOUND ? 0 : err_set(e, rc, "%s", why.text);
	buf_release(&bytes);
	return rc;
}
