/* cli/place.h - whether what a command writes may go where its caller says. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include "base/err.h"

/* What such a file is ("an export of a ledger"), and how it begins; white space does not count. */
struct place_kind {
	const char *what, *begins;
};

/* ERR_EXISTS where path is a file of an agent's own, there or not; where a file is there, not
 * empty, that does not begin as those of this kind do; where it is no regular file.  A link is
 * replaced by it, and what it points to stays. */
MUST_CHECK int cli_check_place(const char *path, const struct place_kind *k, struct err *e);
/* The same of a file in a folder. */
MUST_CHECK int cli_check_place_in(const char *folder, const char *name, const struct place_kind *k,
				  struct err *e);

#endif
