/* graph/alias.h - what an owner calls a thing, and what the others call it.
 *
 * A text file of two columns, own name TAB shared name, read like a file of
 * triples (graph/lines.h: plain, .gz or .zst; errors with file and line).  Two
 * own names must not end up as one shared name, or the other side could not
 * tell which of them is meant: the first keeps it, later ones have no alias
 * and are counted. */
#ifndef GRAPH_ALIAS_H
#define GRAPH_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

struct graph_aliases;

struct graph_alias_report {
	size_t lines;
	size_t linked;	   /* ids that have an alias now */
	size_t strangers;  /* lines whose own name stands in no triple: they link nothing */
	size_t duplicates; /* the same line again */
	size_t clashes;	   /* shared name taken by an earlier own name */
};

/* own: entities or relations of the graph.  own_second: the columns are the
 * other way round in this file.  ERR_INPUT where one own name has two
 * different shared names; ERR_NOFILE, ERR_IO.  report may be NULL. */
int graph_aliases_load(struct graph_aliases **a, const char *path, const struct graph_vocab *own,
		       bool own_second, struct graph_alias_report *report, struct err *e);
void graph_aliases_free(struct graph_aliases *a);

/* The shared name of an id, NUL-terminated, the table's; NULL if it has none
 * or a is NULL.  *len may be NULL. */
const char *graph_alias_of(const struct graph_aliases *a, uint32_t id, size_t *len);
/* The id that has this shared name, or GRAPH_NONE. */
uint32_t graph_alias_find(const struct graph_aliases *a, const char *name, size_t len);

#endif
