/* query/truth.h - how true a triple is, between 0 and 1: the rows of M (methods 5.3; Bai and others
 * 2023, QTO; Arakelyan and others 2021, CQD).
 *
 *   score of (h, r, t)  --scale-->  share  --degree, cap-->  truth
 *
 *   SOFTMAX  share: the part of e^(slope score) in its sum over all t; truth: share x e^offset x
 *            max(1, degree), since the softmax deals 1 to all answers of (h, r, ?) together
 *   SIGMOID  share: 1 / (1 + e^-(slope score + offset)); truth: the share
 *
 * degree is the number of known answers of (h, r, ?).  A truth is at most QUERY_CAP, and 0 where
 * the score is NaN.  A known edge has truth 1, which is the search's to add. */
#ifndef QUERY_TRUTH_H
#define QUERY_TRUTH_H

#include "graph/graph.h"
#include "kge/model.h"
#include "query/tree.h"

#define QUERY_CAP 0.9999f

enum query_truth_kind { QUERY_SOFTMAX, QUERY_SIGMOID };
extern const char *const query_precision_words[]; /* as it is, query_truths_round(); NULL */
extern const char *const query_truth_words[];	  /* by enum query_truth_kind; NULL at the end */

/* From scores to shares; query/scale.h fits it on valid.  { QUERY_SOFTMAX, 1, 0 } is QTO's. */
struct query_scale {
	enum query_truth_kind kind;
	float slope, offset;
};

/* What truths are made of; read only, so threads share it.  Borrows tables and graph. */
struct query_truths {
	const struct kge_emb *emb;
	const struct graph *g;
	struct query_scale scale;
	float weight;	    /* SOFTMAX: e^offset; else 1 */
	uint32_t n;	    /* entities: the graph's */
	uint32_t relations; /* that the tables have rows for; steps by later ones lead nowhere */
	unsigned known;	    /* splits whose edges are known, 1u << GRAPH_TRAIN ...; 0: none */
	struct graph_index *index;  /* of the known edges */
	bool *loops;		    /* by relation: graph_loops() */
	struct graph_triple *edges; /* known, by relation */
	size_t *first;		    /* of relation r: edges first[r] up to first[r + 1] */
	struct kge_packed *packed;  /* entities, for products in bfloat16; NULL: in floats */
	uint32_t *by_name, *place;  /* query_truths_by_names(); else NULL */
};

/* emb has a row for each entity of the graph; of relations the first ones, as many as it has rows
 * for, are its own.  known: see above. */
struct query_truths *query_truths_new(const struct kge_emb *emb, const struct graph *g,
				      const struct query_scale *scale, unsigned known);
void query_truths_free(struct query_truths *m);
/* Before anything else: where scores are products, they are products in bfloat16 from now on
 * (kge/product.h): off by at most 2^-7 of the sum of |x y|.  false: they are not, or this processor
 * has no such products; then they stay as they are. */
bool query_truths_round(struct query_truths *m);

/* Before anything else, for what leaves: no truth has a bit that follows from the order of ids, in
 * which a softmax adds up, nor does search break a tie by it; the order of the names' bytes does
 * instead.  Ids are in the order in which names first appear in triples. */
void query_truths_by_names(struct query_truths *m);

/* Floats that query_truths_scores() and query_truths_shares() need to work with. */
size_t query_truths_work(const struct query_truths *m);
/* The row (from, step, ?). */
struct query_ask {
	uint32_t from;
	struct query_step step;
};
/* out[i * n + t]: score of t as the answer of ask i, higher is better.  A score has the same bits
 * whatever it is asked together with. */
void query_truths_scores(const struct query_truths *m, const struct query_ask *asks, size_t n_asks,
			 float *out, float *work);
/* share[t] from score[t], t < n; score may be overwritten. */
void query_truths_shares(const struct query_truths *m, float *share, float *score, float *work);

/* What a share of (from, step, ?) is multiplied with. */
float query_truths_factor(const struct query_truths *m, struct query_step step, uint32_t from);

static inline float query_truth_of(float share, float factor)
{
	float x = share * factor;

	x = x > QUERY_CAP ? QUERY_CAP : x;
	return x > 0 ? x : 0.0f; /* NaN: 0 */
}

#endif
