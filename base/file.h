/* base/file.h - whole files and paths.  Errors name the file and the system's reason. */
#ifndef BASE_FILE_H
#define BASE_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "base/err.h"

/* The error for a file that cannot be read, by the errno that says why: ERR_NOFILE; ERR_INPUT if it
 * is no file that we can read (a folder, of somebody else); else ERR_IO. */
int file_unreadable(const char *path, int why, struct err *e);

/* open(), again where a signal has interrupted it. */
int file_open(const char *path, int flags, unsigned mode);
/* For reading, to be closed; -1: errno says why.  /dev/stdin may be a socket, which cannot be
 * opened by that name: other programs hand one down as a pipe.  EBADF where it is closed. */
int file_open_read(const char *path);
/* Appends the file to *out; ERR_TOOBIG if it has more than limit bytes, and as above. */
MUST_CHECK int file_read(const char *path, size_t limit, struct buf *out, struct err *e);

/* Writes beside the target, syncs, renames, syncs the folder: readers see the old file or the new
 * one, never a part, and after a power cut too.  mode is that of a new file, for example 0600.
 * ERR_IO: the old file is there as it was; or, where the folder alone cannot be synced, the new,
 * which the error says. */
MUST_CHECK int file_write_atomic(const char *path, const void *bytes, size_t n, unsigned mode,
				 struct err *e);
/* The same without the sync, for what is worth nothing after a crash. */
MUST_CHECK int file_write_unsynced(const char *path, const void *bytes, size_t n, unsigned mode,
				   struct err *e);
/* n bytes through a descriptor, however few the system takes at a time; -1 with errno. */
MUST_CHECK int file_write_all(int fd, const void *bytes, size_t n);
/* fsync(), likewise. */
MUST_CHECK int file_sync_opened(int fd);
/* All that was written to a file, by any descriptor, is on disk afterwards; ERR_IO. */
MUST_CHECK int file_sync(const char *path, struct err *e);
/* So are the names in a folder, or in the one where `path` lies. */
MUST_CHECK int file_sync_folder(const char *path, struct err *e);
MUST_CHECK int file_sync_parent(const char *path, struct err *e);
/* The latter of a file that is in its place: an error says that it is. */
MUST_CHECK int file_sync_placed(const char *path, struct err *e);
/* A descriptor to write a file that is new: a file that had the name before is removed, a symbolic
 * link is never followed.  -1 with errno where that cannot be. */
MUST_CHECK int file_create(const char *path, unsigned mode);

/* What a write to path is to replace, owned: the file that a symbolic link leads to, else path
 * itself.  ERR_NOFILE where a link leads to none. */
MUST_CHECK int file_behind_link(const char *path, char **out, struct err *e);

/* mkdir -p; ERR_IO also where a file has the name. */
MUST_CHECK int file_make_folder(const char *path, unsigned mode, struct err *e);
/* The same, for what a folder is to hold whole or not at all: *begun is the first folder on the way
 * that was not there, NULL if all were.  file_end_folder() takes it over and, where rc is an error
 * of what came since, removes that folder with all in it; it returns rc. */
MUST_CHECK int file_begin_folder(const char *path, unsigned mode, char **begun, struct err *e);
int file_end_folder(char *begun, int rc);
/* rm -rf: whatever is there goes, as far as it can; links are not followed. */
void file_remove_folder(const char *path);
bool file_exists(const char *path);
bool file_ends_in(const char *path, const char *end); /* ".gz" */
/* "a" + "b" -> "a/b"; an absolute b stands alone; free() it. */
char *file_join(const char *folder, const char *name);

#endif
