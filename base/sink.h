/* base/sink.h - a file that appears under its name only when it is whole.
 *
 *   sink_open(&s, folder, "train.tsv", e), then write to s.f, then sink_close()
 *
 * Until then the bytes written lie beside it as NAME.part, which a program that is killed leaves.
 * Errors of writing are kept by s.f and told by sink_close(); after a failed sink_open() there is
 * nothing to close. */
#ifndef BASE_SINK_H
#define BASE_SINK_H

#include <stdio.h>

#include "base/err.h"

struct sink {
	FILE *f;
	char *path, *aside;
};

/* ERR_IO, both.  mode is the file's, less the umask: SINK_SHARED for what an owner gives to
 * other programs, SINK_PRIVATE for what belongs to the agent alone. */
enum { SINK_SHARED = 0644, SINK_PRIVATE = 0600 };
MUST_CHECK int sink_open(struct sink *s, const char *folder, const char *name, unsigned mode,
			 struct err *e);
MUST_CHECK int sink_close(struct sink *s, struct err *e);
/* What was written goes; a file that had the name stays. */
void sink_drop(struct sink *s);
/* The file goes, and what a writer that was killed has left beside it. */
void sink_remove(const char *folder, const char *name);

#define SINK_ASIDE ".part"

#endif
