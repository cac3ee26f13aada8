/* cli/change.h - commands that change agent.yaml, one after the other. */
#ifndef CLI_CHANGE_H
#define CLI_CHANGE_H

#include "base/err.h"

/* change() while no other command changes the file: else one would write what it read before
 * another's change.  Where path is a link, its target is what change() is told, and changes. */
MUST_CHECK int cli_change_in_turn(const char *path,
				  int (*change)(void *ctx, const char *target, struct err *e),
				  void *ctx, struct err *e);

#endif
