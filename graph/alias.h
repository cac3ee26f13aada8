/* graph/alias.h - what an owner calls a thing, and what the others call it.
 *
 * A text file of two columns, own name TAB shared name, read like a file of
 * triples (graph/lines.h: plain, .gz or .zst; errors with file and line).  Two
 * own names never end up as one shared name, or the other side could not tell
 * which of them is meant, and no own name has two.  Where a file says so all
 * the same, a rule decides (graph/match.h):
 *
 *   refuse  the file is refused, with all lines that disagree with earlier ones
 *   first   a line counts unless an earlier one that counts has one of its names
 *   unique  names that stand in different pairs have no alias
 *   best    a third column is a score; the line of the highest score counts first,
 *           of equal ones that whose own name, then whose shared name is less as bytes
 *
 * Lines whose own name is none of ours say nothing, nor are they in conflict. */
#ifndef GRAPH_ALIAS_H
#define GRAPH_ALIAS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"
#include "graph/match.h"

struct graph_aliases;

struct graph_alias_report {
	size_t lines;
	size_t linked;	   /* ids that have an alias now */
	size_t strangers;  /* lines whose own name stands in no triple: they link nothing */
	size_t duplicates; /* the same pair again */
	size_t clashes;	   /* other lines that link nothing: by the rule */
	size_t shadowed;   /* aliases that are the own name of another id, which has none */
	struct graph_conflicts conflicts; /* of refuse and unique */
};

/* own: entities or relations of the graph.  own_second: the columns are the
 * other way round in this file.  ERR_INPUT (refuse: where there are conflicts, which
 * are in the report), ERR_NOFILE, ERR_IO.  report may be NULL. */
MUST_CHECK int graph_aliases_load(struct graph_aliases **a, const char *path,
				  const struct graph_vocab *own, bool own_second,
				  enum graph_match match, struct graph_alias_report *report,
				  struct err *e);
void graph_aliases_free(struct graph_aliases *a);
void graph_alias_report_release(struct graph_alias_report *r);

/* The shared name of an id, NUL-terminated, the table's; NULL if it has none
 * or a is NULL.  *len may be NULL. */
const char *graph_alias_of(const struct graph_aliases *a, uint32_t id, size_t *len);
/* The id that has this shared name, or GRAPH_NONE. */
uint32_t graph_alias_find(const struct graph_aliases *a, const char *name, size_t len);

#endif
