/* query/exact.h - the answers of a query by walking a graph, no model asked (methods 5.1).
 *
 *   answers   those on the whole graph: all of the splits in `all`
 *   cost      for each, the fewest edges outside of `known` that a way to it needs: of a step
 *             the edge's and the cheapest start's, of AND the sum, of OR the cheapest; an edge
 *             that two branches need counts for each.  NOT costs nothing: it is about the whole
 *             graph
 *   easy      cost 0: an answer on the known graph, too; the others are hard
 *
 * Memory is one byte an entity and the sets of the nodes that wait for their parent, each at most
 * 10 bytes an entity.  One thread at a time. */
#ifndef QUERY_EXACT_H
#define QUERY_EXACT_H

#include "graph/graph.h"
#include "query/set.h"
#include "query/tree.h"

struct query_exact;

enum { QUERY_COST_MAX = 254 }; /* what costs more costs as much */

/* Borrows both; known may be `all`, or NULL: no edge is known. */
struct query_exact *query_exact_new(const struct graph_index *all, const struct graph_index *known,
				    uint32_t entities);
void query_exact_free(struct query_exact *x);

/* Into *out, ascending; t is whole and within the graph. */
void query_exact_answers(struct query_exact *x, const struct query_tree *t, struct query_set *out);

/* Those of cost 0 go from hard to easy, which is filled anew. */
void query_exact_part(struct query_set *hard, struct query_set *easy);

#endif
