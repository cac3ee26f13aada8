/* cli/leftovers.h - files in an agent's folder that may still hold what was taken back: exports,
 * reports, copies of the store, whatever its owner has put there. */
#ifndef CLI_LEFTOVERS_H
#define CLI_LEFTOVERS_H

#include <jansson.h>

#include "graph/graph.h"

/* A list of {file (in the folder), kind, names}: kind is
 *
 *   names       text with `names` of the triples' names in it
 *   embeddings  a NumPy array, or tables trained past memory
 *   encoder     an encoder of queries, or what a training goes on from
 *   store       a copy of a store
 *   packed      gzip, zstd, xz or zip: not looked into
 *   link        not followed
 *   unread      cannot be read
 *   more        the folder has more files, or deeper ones, than are looked at
 *
 * The agent's own store, key and settings are not among them.  Names are found as fields of lines
 * and as words, in quotes or angle brackets too.  To be released. */
json_t *leftovers_find(const char *folder, const struct graph *g,
		       const struct graph_triple *triples, size_t n);

#endif
