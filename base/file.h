/* base/file.h - whole files and paths.  Errors name the file and the system's reason. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* What it means that a file cannot be read, for the errno that says why: ERR_NOFILE; ERR_INPUT if
 * it is no file that we can read (a folder, of somebody else); else ERR_IO. */
int file_unreadable(const char *path, int why, struct err *e);

/* Appends the file to *out; ERR_TOOBIG if it has more than limit bytes, and as above. */
int file_read(const char *path, size_t limit, struct buf *out, struct err *e);

/* Writes beside the target, syncs, renames: readers see the old file or the new
 * one, never a part.  mode is that of a new file, for example 0600. */
int file_write_atomic(const char *path, const void *bytes, size_t n, unsigned mode, struct err *e);
/* The same without the sync, for what is worth nothing after a crash. */
int file_write_unsynced(const char *path, const void *bytes, size_t n, unsigned mode,
			struct err *e);
/* A descriptor to write a file that is new: what had the name before is removed, a symbolic link
 * is never followed.  -1 with errno where that cannot be. */
int file_create(const char *path, unsigned mode);

/* mkdir -p; ERR_IO also where a file has the name. */
int file_make_folder(const char *path, unsigned mode, struct err *e);
bool file_exists(const char *path);
bool file_ends_in(const char *path, const char *end); /* ".gz" */
/* "a" + "b" -> "a/b"; an absolute b stands alone; free() it. */
char *file_join(const char *folder, const char *name);

#endif
