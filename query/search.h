/* query/search.h - how true each entity is as the answer of a tree (methods 5.3).
 *
 *   ANCHOR  1 for the entity, else 0
 *   STEP    of t: the most of norm(truth of h, truth of the edge h -> t), over all h
 *   AND     norm of the children's truths
 *   OR      conorm: a + b - ab, or the larger one
 *   NOT     1 - truth
 *
 * norm is the product or the smaller one.  A known edge has truth 1 and is walked from every h;
 * edges that are predicted are walked from the `beam` truest h alone (of equal ones those with more
 * known answers first, then by id).  So with a beam of all entities the search is exact.
 *
 * Truths are the same bits with any number of threads and any cache. */
#ifndef QUERY_SEARCH_H
#define QUERY_SEARCH_H

#include "query/rows.h"
#include "query/tree.h"

enum query_norm { QUERY_PRODUCT, QUERY_MIN };
extern const char *const query_norm_words[]; /* by enum query_norm; NULL at the end */

struct query_search_options {
	size_t beam; /* 0: all entities */
	enum query_norm norm;
	size_t cache_bytes; /* query/rows.h */
	uint32_t threads;
};

/* Used by one thread at a time; borrows the truths. */
struct query_search;

struct query_search *query_search_new(const struct query_truths *m,
				      const struct query_search_options *o);
void query_search_free(struct query_search *s);

/* truth[t] of each entity of the graph.  t: whole (query_tree_check()). */
void query_search_run(struct query_search *s, const struct query_tree *t, float *truth);

/* Make at once the rows that n trees begin with, so that running them one after another passes over
 * the table less often; truths are the same bits. */
void query_search_begin(struct query_search *s, const struct query_tree *const *trees, size_t n);

/* The best way to one answer: what stands for each node of the tree. */
struct query_explanation {
	struct {
		uint32_t entity; /* GRAPH_NONE: nothing leads there (its truth is 0) */
		float truth;	 /* of the node's subtree */
		float edge;	 /* STEP: truth of the edge from the child's entity */
		bool known;	 /* STEP: the edge is known */
	} at[QUERY_NODES_MAX];
};
/* AND, OR and NOT have the entity of their children; a STEP's child has the one that the step's
 * truth comes from.  The root's truth is the answer's, with the bits of query_search_run(). */
void query_search_explain(struct query_search *s, const struct query_tree *t, uint32_t answer,
			  struct query_explanation *out);

struct query_rows_count query_search_counted(const struct query_search *s);

#endif
