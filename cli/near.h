/* cli/near.h - names, and what somebody may have meant by one that is not there. */
#ifndef CLI_NEAR_H
#define CLI_NEAR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

enum { NEAR_WORD_MAX = 64 };

/* Levenshtein's distance in bytes; where b is longer than NEAR_WORD_MAX, its length. */
size_t near_distance(const char *a, const char *b);

/* The id of a name.  ERR_NOTFOUND names up to three that are like it: the same in other
 * letters, those that contain it, those a few letters away (from the whole name or from
 * what stands behind its last /, # or :).  what: "entity", "relation". */
int near_find(const struct graph_vocab *v, const char *what, const char *name, uint32_t *id,
	      struct err *e);

#endif
