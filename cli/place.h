/* cli/place.h - whether what a command writes may go where its caller says. */
#ifndef CLI_PLACE_H
#define CLI_PLACE_H

#include "base/place.h"

/* ERR_EXISTS where path is a file of an agent's own, there or not; else place_check(). */
MUST_CHECK int cli_check_place(const char *path, const struct place_kind *k, struct err *e);
/* The same of a file in a folder. */
MUST_CHECK int cli_check_place_in(const char *folder, const char *name, const struct place_kind *k,
				  struct err *e);

#endif
