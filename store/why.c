/* store/why.c - what SQLite or the system refused, in words, and what the owner does about it.  A
 * disk that is full or fails is no damaged store: who took it for one would put an old backup in
 * the place of a store that is whole. */
#include <errno.h>
#include <string.h>
#include <sys/statvfs.h>

#include "store/db_internal.h"

/* NULL: not a matter of disk, quota or descriptors. */
static const char *advice(int why)
{
	switch (why) {
	case ENOSPC:
		return "; free some space and try again";
	case EDQUOT:
		return "; free some of the quota and try again";
	case EFBIG:
		return "; files may be no larger here (ulimit -f)";
	case EMFILE:
	case ENFILE:
		return "; too few files may be open at a time (ulimit -n)";
	case EROFS:
		return "";
	case EIO:
		return "; the store may be whole: check the disk, then type fkge doctor, before a "
		       "backup is restored";
	default:
		return NULL;
	}
}

int db_refused(struct err *e, const char *path, int why)
{
	const char *hint = advice(why);

	return err_set(e, hint != NULL ? ERR_IO : ERR_STORE, "%s: %s%s", path, strerror(why),
		       hint != NULL ? hint : "");
}

static bool disk_full(sqlite3 *db)
{
	const char *path = sqlite3_db_filename(db, "main");
	struct statvfs v;

	return path != NULL && statvfs(path, &v) == 0 &&
	       (v.f_bavail == 0 || (v.f_files > 0 && v.f_favail == 0));
}

/* Of the operating system, not of what is in the file.  What cannot be read (EIO) SQLite takes for
 * damage. */
static bool is_system(int code, int last)
{
	switch (code & 0xff) {
	case SQLITE_IOERR:
		return code != SQLITE_IOERR_SHORT_READ;
	case SQLITE_CANTOPEN:
	case SQLITE_FULL:
		return true;
	case SQLITE_CORRUPT:
		return last == EIO;
	default:
		return false;
	}
}

/* An errno that advice() knows, or 0.  SQLite keeps none of a commit's; the last one (`last`) is of
 * whatever failed last.  Where SQLite could not make the file beside the log it tries to read one,
 * and gives as the reason that there is none. */
static int system_reason(sqlite3 *db, int code, int last)
{
	int why = sqlite3_system_errno(db);

	if ((code & 0xff) == SQLITE_FULL)
		return 0; /* it may be the file's limit */
	if (advice(last) != NULL)
		return last;
	if (advice(why) != NULL)
		return why;
	return (code == SQLITE_IOERR_SHMSIZE || code == SQLITE_IOERR_SHMOPEN ||
		(code & 0xff) == SQLITE_CANTOPEN) &&
			       disk_full(db)
		       ? ENOSPC
		       : 0;
}

static const char *own_advice(int code, bool reads)
{
	switch (code & 0xff) {
	case SQLITE_FULL:
		return advice(ENOSPC);
	case SQLITE_IOERR:
		return advice(EIO);
	case SQLITE_NOTADB:
	case SQLITE_CORRUPT:
		return "; the file is damaged or no store: restore a backup (fkge restore)";
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return "; another program is using it";
	case SQLITE_CANTOPEN:
	case SQLITE_READONLY:
		return reads ? "; its folder cannot be written to, which this store wants even to "
			       "be read: copy the folder to where it can, or read a backup"
			     : "; a file beside it cannot be made or written: look at the rights "
			       "of its folder, at space and quota";
	default:
		return "";
	}
}

int db_said(struct err *e, sqlite3 *db, const char *path, bool reads)
{
	int last = errno, code = sqlite3_extended_errcode(db);
	bool io = is_system(code, last);
	int why = io ? system_reason(db, code, last) : 0;

	io = io &&
	     ((code & 0xff) != SQLITE_CANTOPEN || why != 0); /* else it is a matter of rights */
	if (why != 0 && !(why == EROFS && reads))
		return db_refused(e, path, why);
	return err_set(e, io ? ERR_IO : ERR_STORE, "%s: %s%s", path, sqlite3_errmsg(db),
		       own_advice(code, reads));
}
