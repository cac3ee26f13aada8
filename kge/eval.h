/* kge/eval.h - filtered ranking and triple classification (methods 2).
 *
 * Every switch that changes a figure is in struct kge_protocol and is written
 * beside every result.  Nothing here reads a split that it was not told to,
 * but for the filter's and the typed candidates', which the protocol names.
 *
 *   triples of a split -> queries -> struct kge_ranked, one a query -> metrics
 *
 * A query asks for one side of a triple; its gold is the entity that stands
 * there.  Candidates are compared with the gold alone: a rank needs no
 * sorting.  Equal rows have equal scores bit for bit, so ties are exact, and
 * no figure depends on the number of threads. */
#ifndef KGE_EVAL_H
#define KGE_EVAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"
#include "kge/model.h"

enum kge_sides { KGE_SIDES_BOTH, KGE_SIDES_TAIL, KGE_SIDES_HEAD };
enum kge_ties { KGE_TIES_REALISTIC, KGE_TIES_OPTIMISTIC, KGE_TIES_PESSIMISTIC };
/* typed: seen on that side of the relation in train, valid or test.  The gold always competes. */
enum kge_candidates { KGE_CAND_ALL, KGE_CAND_TRAIN, KGE_CAND_TYPED };

struct kge_protocol {
	const char *name; /* "standard", "fedlu", "fede", "openke", "tail", "custom" */
	enum kge_sides sides;
	unsigned filter; /* bits 1u << GRAPH_TRAIN ...; 0: none */
	enum kge_candidates candidates;
	enum kge_ties ties;
};

/* Presets of methods 2, and "tail" (standard, tail side only); NULL if unknown. */
const struct kge_protocol *kge_protocol_find(const char *name);

/* The words for its switches by their numbers, NULL at the end; the bits of the filter's words. */
extern const char *const kge_sides_words[],
	*const kge_filter_words[], *const kge_candidates_words[], *const kge_ties_words[];
extern const unsigned kge_filter_bits[];

/* ---- ranks ---- */

/* How one query ended. */
struct kge_ranked {
	struct graph_triple triple;
	enum graph_side side;	 /* the side that was asked for */
	uint32_t greater, equal; /* other candidates with a better score, with the same */
	uint32_t candidates;	 /* left after the filter, the gold with them */
	uint32_t unsound;	 /* 1: the gold's score is not finite, so no tie is in its favour */
};

/* optimistic = 1 + greater, pessimistic = 1 + greater + equal, realistic = their mean, which is
 * optimistic's, too, where the gold is unsound. */
double kge_rank(const struct kge_ranked *r, enum kge_ties ties);

/* Rank one gold among scores[0..n-1], one a candidate id.  NaN is the worst
 * score and ties with NaN and with the worst infinity; a gold's infinity is the worst one.  filter
 * and candidates are sets of ids in any order, repeats and strangers mean nothing;
 * candidates NULL: all.  Sets greater, equal, candidates and unsound of *out. */
void kge_rank_scores(struct kge_ranked *out, const float *scores, uint32_t n, uint32_t gold,
		     bool lower_is_better, const uint32_t *filter, size_t n_filter,
		     const uint32_t *candidates, size_t n_candidates);

struct kge_metrics {
	size_t queries;
	double mr, mrr, hits1, hits3, hits5, hits10;
	/* the two sides apart; 0 queries where a side was not asked */
	size_t head_queries, tail_queries;
	double head_mrr, tail_mrr;
	size_t diverged; /* 1: a number of the tables is not finite, and no score is better by them
			  */
};

/* All zero for n = 0. */
void kge_metrics_of(const struct kge_ranked *r, size_t n, enum kge_ties ties,
		    struct kge_metrics *out);

/* Over agents, with weights >= 0: number of queries or of train triples, or
 * all 1.  Counts are summed.  A side's mean is over the agents that asked it. */
void kge_metrics_average(const struct kge_metrics *m, const double *weights, size_t n,
			 struct kge_metrics *out);

/* ---- ranking a split ---- */

struct kge_eval_options {
	uint32_t threads;
	size_t limit; /* at most this many triples, drawn by seed; 0: all */
	uint64_t seed;
	const atomic_bool *cancel; /* may be NULL */
	atomic_size_t *progress;   /* may be NULL; queries done so far, for a progress bar */
};

/* How many queries a call will rank, for a progress bar's end. */
size_t kge_eval_queries(const struct graph *g, enum graph_split split, const struct kge_protocol *p,
			const struct kge_eval_options *o);

/* Rank the triples of one split: *out has *n entries in the order of the split,
 * tail query before head query; free() it.  0, or ERR_CANCELED (*out is NULL).
 * Memory beyond *out and the filter is bounded: blocks of queries against
 * blocks of candidates.  emb may have more rows than the graph has names:
 * those never compete.  o may be NULL: one thread, all triples. */
int kge_rank_split(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
		   const struct kge_protocol *p, const struct kge_eval_options *o,
		   struct kge_ranked **out, size_t *n);

/* The same with scores from anywhere: score() fills out[id] for every entity
 * of the graph, higher is better, and may be called by several threads. */
struct kge_scorer {
	void (*score)(const void *ctx, enum graph_side side, uint32_t known, uint32_t rel,
		      float *out);
	const void *ctx;
	bool by_relation; /* the same scores, whatever is known: called once for many queries */
};
int kge_rank_split_with(const struct kge_scorer *s, const struct graph *g, enum graph_split split,
			const struct kge_protocol *p, const struct kge_eval_options *o,
			struct kge_ranked **out, size_t *n);

/* kge_rank_split() and kge_metrics_of() in one. */
int kge_evaluate(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
		 const struct kge_protocol *p, const struct kge_eval_options *o,
		 struct kge_metrics *out);

/* Of each triple that kge_rank_split() ranks, in its order: the mean over the sides asked of
 * 1 / rank.  free() *out, [*n]; ERR_CANCELED leaves NULL. */
int kge_reciprocal_ranks(const struct kge_emb *emb, const struct graph *g, enum graph_split split,
			 const struct kge_protocol *p, const struct kge_eval_options *o,
			 double **out, size_t *n);

/* The floor: rank candidates by how often they stood on that side of the
 * relation in train.  No learning, no use of the known entity.  o may be NULL;
 * with the same o, kge_evaluate() ranks the same triples. */
int kge_evaluate_frequency(const struct graph *g, enum graph_split split,
			   const struct kge_protocol *p, const struct kge_eval_options *o,
			   struct kge_metrics *out);

/* ---- triple classification ---- */

struct kge_labeled {
	uint32_t rel;
	bool positive;
	float score;
};

struct kge_threshold {
	float at;
	size_t valid_correct, valid_total; /* of this relation */
	bool fallback;			   /* no valid triples: the threshold over all of them */
};

/* out[0..n_rel-1] and *all (over all valid triples together) from n > 0 valid
 * triples.  Positive iff score >= at; at is the best on valid among the valid
 * scores themselves, the largest if several are (methods 2). */
void kge_thresholds(const struct kge_labeled *valid, size_t n, struct kge_threshold *out,
		    uint32_t n_rel, struct kge_threshold *all);

/* OpenKE's rule: score is a *distance*, positive iff score <= at; at is the
 * first best of smallest, smallest + step, ..., int((largest - smallest) / step)
 * steps.  fallback: no valid triples; the relation is left out of the figures. */
void kge_thresholds_grid(const struct kge_labeled *valid, size_t n, double step,
			 struct kge_threshold *out, uint32_t n_rel);

struct kge_classification {
	size_t valid_correct, valid_total, test_correct, test_total;
};

/* Accuracy on test, thresholds from valid, with one negative a triple: head or
 * tail replaced so that no split has the triple.  The negatives depend on
 * graph and seed alone.  ERR_USAGE if valid or test is empty. */
int kge_classify(const struct kge_emb *emb, const struct graph *g, uint64_t seed,
		 struct kge_classification *out, struct err *e);

#endif
