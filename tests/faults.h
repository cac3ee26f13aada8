/* tests/faults.h - system calls that fail, for files below one folder.
 *
 * faults.c defines open(), write(), fsync() and their like, so that a program that is linked with
 * it calls these instead of libc's, and the shared libraries that it loads (SQLite) do, too.  They
 * do the real thing, but for the one call that shall fail, and for syncing, which is noted alone.
 * stdio writes past them. */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <stdbool.h>
#include <stddef.h>

enum fault_call {
	FAULT_OPEN = 1,
	FAULT_READ = 2,
	FAULT_WRITE = 4,
	FAULT_SYNC = 8, /* fsync(), fdatasync() */
	FAULT_CLOSE = 16,
	FAULT_RENAME = 32,
	FAULT_TRUNCATE = 64,
	FAULT_ANY = 127,
};

/* All zero: nothing fails, nothing is seen. */
struct faults {
	/* ---- set by the test ---- */
	const char *folder; /* calls on what lies below it are seen */
	unsigned calls;	    /* of these kinds */
	size_t at;	    /* the at-th of them (from 1) fails; 0: none */
	bool on;	    /* and so do all that come after it */
	bool kills;	    /* instead the process is killed there: for one of fork() */
	int why;	    /* with this errno, and does nothing (close() closes) */
	bool short_writes;  /* no write takes more than half of what it is given */

	/* ---- what was seen ---- */
	size_t n;	       /* calls */
	bool hit;	       /* the at-th was reached */
	enum fault_call which; /* what it was */
	bool on_folder;	       /* it was on the folder itself */
	size_t renamed_before; /* renames before it */
	size_t renames;
	size_t renamed_unsynced; /* of files that had been written and not synced */
	size_t synced_bytes;	 /* size of the last file that was synced, at that time */
};

extern struct faults faults;

/* Anew, with nothing unsynced. */
void faults_begin(const char *folder);
void faults_end(void);
/* A file below the folder that was written and not synced since, or whose name is new and its
 * folder was not synced since; NULL: all is on disk.  Names with one of these ends (up to a NULL;
 * or NULL) do not count. */
const char *faults_unsynced(const char *const *but);

#endif
