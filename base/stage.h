/* base/stage.h - files and folders that come into a folder together, or not at all.
 *
 *   stage_begin(&s, folder, e), then write below s.aside, name each by stage_add(), then
 * stage_end()
 *
 * Until then all lies in FOLDER/new.part.  A program that is killed leaves it, and the next
 * stage_begin() removes it.  Killed between two renames of stage_end(), it leaves some in place and
 * the rest in new.part: without the last name, which was added last, nothing there is whole.  What
 * had these names, the last one first, is set aside as new.part/NAME.old before any new one comes:
 * never some of both.  The next stage_begin() puts it back and takes the new ones out. */
#ifndef BASE_STAGE_H
#define BASE_STAGE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/err.h"

#define STAGE_ASIDE "new.part"

struct stage {
	char *folder, *aside;
	char *begun; /* of file_begin_folder() */
	int held;    /* aside, locked */
	char **name; /* n of them, as they come into place */
	bool *had;   /* at the end: something had that name */
	size_t n;
};

/* Makes the folder where it is not there.  ERR_IO, also where a killed program has set something
 * aside that cannot be put back; ERR_INPUT: new.part is no stage's; ERR_BUSY: another program is
 * between its stage_begin() and its stage_end().  On an error there is nothing to end. */
MUST_CHECK int stage_begin(struct stage *s, const char *folder, struct err *e);
/* A file or folder below s->aside that shall be in the folder, or in a folder there ("a/b": a is
 * there).  By the last one an owner tells that all is there.  A folder with something in it is
 * never replaced. */
void stage_add(struct stage *s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* rc: of what came since.  0: all is in place, on disk.  Else nothing is, what had the names is
 * there as before, and a folder that stage_begin() made is gone.  What cannot be put back stays in
 * new.part, as the error says. */
MUST_CHECK int stage_end(struct stage *s, int rc, struct err *e);

#endif
