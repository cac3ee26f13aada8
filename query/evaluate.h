/* query/evaluate.h - how well a search, or another judge, ranks hard answers (methods 5.1; Ren and
 * others 2020, BetaE).
 *
 * Each hard answer is ranked among all entities that are no answer on the whole graph; ties count
 * half.  Figures are means over the hard answers of a query, then over queries of a type, then over
 * types.  By the number of missing edges: the same with the answers that need so many. */
#ifndef QUERY_EVALUATE_H
#define QUERY_EVALUATE_H

#include "query/exact.h"
#include "query/records.h"
#include "query/search.h"

/* Answers that lack 1, 2, 3 or more edges. */
enum { QUERY_MISSING = 3 };

/* Means over some answers. */
struct query_figures {
	double mrr, hits1, hits3, hits10;
};

/* One query. */
struct query_outcome {
	enum query_pattern pattern;
	uint32_t answers[1 + QUERY_MISSING]; /* hard ones: all; that lack 1, 2, .. edges */
	struct query_figures by[1 + QUERY_MISSING];
	uint32_t not_hard;  /* said to be hard, but follow from `known`: not ranked */
	uint32_t not_found; /* of answers[0]: they do not follow from `all` */
	double ms; /* of the search, processor time, with its part of rows made for several */
};

struct query_evaluation_options {
	struct query_search_options search; /* cache_bytes: of all threads together */
	uint32_t threads;		    /* that each take a query; search.threads is 1 */
	const struct graph_index *all;	    /* the whole graph: no answer on it competes */
	const struct graph_index *known;    /* what hard answers lack edges of */
	/* One record after the other, for a judge that asks others: by relations, which share rows,
	 * the order would tell that of the ids. */
	bool as_they_come;
};

/* Who says how good each entity is as an answer; a thread calls it with its number as `lane`. */
struct query_judge {
	void *ctx;
	uint32_t entities;
	/* n records come next, */
	void (*begin)(void *ctx, size_t lane, const struct query_record *const *records, size_t n);
	/* and of the i-th of them score[v] is wanted of each entity; NaN is the worst. */
	void (*score)(void *ctx, size_t lane, size_t i, float *score);
};

/* Threads with what they search with, for call after call. */
struct query_evaluator;
struct query_evaluator *query_evaluator_new(const struct query_truths *m,
					    const struct query_evaluation_options *o);
/* By another judge than search: o->search is not used.  The judge's ctx is borrowed. */
struct query_evaluator *query_evaluator_new_by(const struct query_judge *judge,
					       const struct query_evaluation_options *o);
void query_evaluator_free(struct query_evaluator *v);
/* out[i] of records[i], the same with any number of threads but for ms. */
void query_evaluate(struct query_evaluator *v, const struct query_record *records, size_t n,
		    struct query_outcome *out);

/* Of all threads (query/rows.h); by another judge nothing. */
struct query_rows_count query_evaluator_counted(const struct query_evaluator *v);

/* ---- many queries ---- */

struct query_summary {
	size_t queries[1 + QUERY_MISSING], answers[1 + QUERY_MISSING]; /* that have such answers */
	struct query_figures by[1 + QUERY_MISSING];
	double median_ms, p99_ms;
};
/* Of those of one pattern that have hard answers. */
void query_summarise(const struct query_outcome *o, size_t n, enum query_pattern p,
		     struct query_summary *out);

#endif
