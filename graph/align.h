/* graph/align.h - pairwise alignments of several graphs, made into one shared name a thing.
 *
 * A file of pairs says which entity of one graph is which of another: lines of two columns, name
 * in the first graph TAB name in the second, and perhaps a third, a score; read like a file of
 * triples (graph/lines.h).  Entities that pairs connect, over however many graphs, are one class,
 * which may hold at most one entity of each graph.  Where a class would hold two, a rule decides
 * (graph/match.h; there is no first: nothing here depends on the order of lines and files):
 *
 *   refuse  no class is made, all conflicts are told, each with pairs that lead from one entity to
 *           another of its graph
 *   unique  such a class is left out whole
 *   best    of its pairs those count first that have the highest score (1 where a file has none);
 *           of equal ones, that whose two entities are paired with more of the same third ones;
 *           then the one whose names are less as bytes.  A pair that would bring two of one graph
 *           together is left out.
 *
 * A class's shared name is shared:GRAPH:NAME of its least member by graph, then name, as bytes.
 * Memory follows the names and the distinct pairs.  No graph is needed: names are what pairs say.
 */
#ifndef GRAPH_ALIGN_H
#define GRAPH_ALIGN_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/match.h"

/* A graph's name has at most so many bytes. */
enum { GRAPH_ALIGN_NAME_MAX = 64, GRAPH_ALIGN_MAX = 1024 /* graphs */ };

struct graph_align;

struct graph_align *graph_align_new(void);
void graph_align_free(struct graph_align *a);

/* Read the pairs of two graphs.  ERR_USAGE: a graph's name is empty, too long, begins with '.', or
 * holds '/', ':' or what is not printable; both are one; too many.  ERR_INPUT with file and line,
 * ERR_NOFILE, ERR_IO. */
MUST_CHECK int graph_align_read(struct graph_align *a, const char *first, const char *second,
				const char *path, struct err *e);

struct graph_align_report {
	size_t lines;
	size_t pairs;	 /* distinct ones */
	size_t classes;	 /* of two or more entities */
	size_t left_out; /* pairs whose two entities have not the same shared name */
	struct graph_conflicts conflicts; /* classes that would hold two of one graph */
};
void graph_align_report_release(struct graph_align_report *r);

/* Once, after all files.  ERR_INPUT: refuse, and there are conflicts (also in the report, which is
 * the caller's to release in any case); a shared name would be too long. */
MUST_CHECK int graph_align_join(struct graph_align *a, enum graph_match match,
				struct graph_align_report *r, struct err *e);

/* After graph_align_join(): graphs in the order of their names. */
uint32_t graph_align_count(const struct graph_align *a);
const char *graph_align_name(const struct graph_align *a, uint32_t graph);
/* Names that pairs have of it; those of them with a shared name. */
size_t graph_align_named(const struct graph_align *a, uint32_t graph);
size_t graph_align_linked(const struct graph_align *a, uint32_t graph);

/* Appends the graph's own names and shared names, lines as graph_aliases_load() reads them, in the
 * order of the own names as bytes. */
void graph_align_write(const struct graph_align *a, uint32_t graph, struct buf *out);

#endif
