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
 * known answers first, then by id, or by name: query_truths_by_names()).  So with a beam of all
 * entities the search is exact.
 *
 * Truths are the same bits with any number of threads and any cache. */
#ifndef QUERY_SEARCH_H
#define QUERY_SEARCH_H

#include "query/rows.h"
#include "query/tree.h"

enum query_norm { QUERY_PRODUCT, QUERY_MIN };
extern const char *const query_norm_words[]; /* by enum query_norm; NULL at the end */

/* AND of two truths. */
static inline float query_truth_and(enum query_norm n, float a, float b)
{
	return n == QUERY_PRODUCT ? a * b : a < b ? a : b;
}

/* OR of two truths: noisy-or, or the larger one. */
static inline float query_truth_or(enum query_norm n, float a, float b)
{
	if (n == QUERY_PRODUCT)
		return a + b * (1.0f - a);
	return a > b ? a : b;
}

/* The best edge into one entity. */
struct query_way {
	uint32_t from; /* GRAPH_NONE: nothing leads there */
	float truth;   /* of the entity, by this way */
	float edge;    /* of the edge; 1: it is known */
	uint32_t by;   /* whose edge: 0 these tables', else a number of who takes steps elsewhere */
};

/* Who takes steps beside these tables (methods 5.4).  What both say is joined as by OR.  A step may
 * be asked for again with the same truths: explanations do. */
struct query_elsewhere {
	void *ctx;
	/* truth[t], n of them: of the step from the truths from[0..n-1]; meets: an AND joins them
	 * with others (before a further step) */
	void (*step)(void *ctx, struct query_step step, const float *from, bool meets,
		     float *truth);
	/* the best way to one entity; false: none is known, though truth[to] may be above 0 */
	bool (*way)(void *ctx, struct query_step step, const float *from, uint32_t to,
		    struct query_way *out);
};

/* What may end a search early: asked before each step, on the thread that searches. */
struct query_stop {
	bool (*is_wanted)(void *ctx);
	void *ctx;
};

struct query_search_options {
	size_t beam; /* 0: all entities */
	enum query_norm norm;
	size_t cache_bytes; /* query/rows.h */
	uint32_t threads;
	const struct query_elsewhere *elsewhere; /* NULL: nobody; borrowed */
	const struct query_stop *stop;		 /* NULL: it always ends by itself; borrowed */
};

/* Used by one thread at a time; borrows the truths. */
struct query_search;

struct query_search *query_search_new(const struct query_truths *m,
				      const struct query_search_options *o);
void query_search_free(struct query_search *s);

/* truth[t] of each entity of the graph.  t: whole (query_tree_check()). */
void query_search_run(struct query_search *s, const struct query_tree *t, float *truth);
/* The last run, or an explanation since, was ended early: what they gave means nothing. */
bool query_search_was_stopped(const struct query_search *s);

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
		uint32_t by;	 /* STEP: struct query_way */
	} at[QUERY_NODES_MAX];
};
/* AND, OR and NOT have the entity of their children; a STEP's child has the one that the step's
 * truth comes from.  The root's truth is the answer's, with the bits of query_search_run(). */
void query_search_explain(struct query_search *s, const struct query_tree *t, uint32_t answer,
			  struct query_explanation *out);

/* ---- a step by itself, for who asks from elsewhere ---- */

struct query_point {
	uint32_t id;
	float truth; /* (0, 1] */
};
struct query_reached {
	struct query_point to;
	struct query_way way; /* by: 0 */
};
/* Of one step: entities that edges are predicted from, the truest (0: as many as the search does);
 * answers that a known edge leads to, and answers that a predicted one does, the truest of each. */
struct query_limits {
	size_t beam, known, predicted;
};
/* Answers of one step from these points: first those whose best way is a known edge, then the
 * others, both the truest first; returns how many.  order[id]: GRAPH_NONE leaves the entity out,
 * and of equal truths the lower goes first; of equal points and ways, what stands first in from[].
 * So what comes out does not depend on ids, which tell the order of the triples.  Truths have the
 * bits that query_search_run() gives with the same points. */
size_t query_search_step(struct query_search *s, struct query_step step,
			 const struct query_point *from, size_t n, const uint32_t *order,
			 struct query_reached *out, struct query_limits most);

struct query_rows_count query_search_counted(const struct query_search *s);

#endif
