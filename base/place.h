/* base/place.h - whether a file that is there may be replaced by one of ours. */
#ifndef BASE_PLACE_H
#define BASE_PLACE_H

#include "base/err.h"

/* What such a file is ("an export of a ledger"), and how it begins; white space does not count. */
struct place_kind {
	const char *what, *begins;
};

/* ERR_EXISTS where a file is there, not empty, that does not begin as those of this kind do; where
 * it is no regular file.  A link is replaced by it, and what it points to stays. */
MUST_CHECK int place_check(const char *path, const struct place_kind *k, struct err *e);

#endif
