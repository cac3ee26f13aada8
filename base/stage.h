/* base/stage.h - files and folders that come into a folder together, or not at all.
 *
 *   stage_begin(&s, folder, e), then write below s.aside, name each by stage_add(), then
 * stage_end()
 *
 * Until then all lies in FOLDER/new.part.  A program that is killed leaves it, and the next
 * stage_begin() removes it.  Killed between two renames of stage_end(), it leaves some in place and
 * the rest in new.part: without the last name, which was added last, nothing there is whole.  Files
 * that had these names, the last one's first, go before any new one comes: never some of both. */
#ifndef BASE_STAGE_H
#define BASE_STAGE_H

#include <stddef.h>

#include "base/err.h"

#define STAGE_ASIDE "new.part"

struct stage {
	char *folder, *aside;
	char *begun; /* of file_begin_folder() */
	int held;    /* aside, locked */
	char **name; /* n of them, as they come into place */
	size_t n;
};

/* Makes the folder where it is not there.  ERR_IO; ERR_BUSY: another program is between its
 * stage_begin() and its stage_end().  On an error there is nothing to end. */
MUST_CHECK int stage_begin(struct stage *s, const char *folder, struct err *e);
/* A file or folder below s->aside that shall be in the folder.  By the last one an owner tells that
 * all is there. */
void stage_add(struct stage *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* rc: of what came since.  0: all is in place, on disk.  Else nothing is, files that had the names
 * are there as before, and a folder that stage_begin() made is gone. */
MUST_CHECK int stage_end(struct stage *s, int rc, struct err *e);

#endif
