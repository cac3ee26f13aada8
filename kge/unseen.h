/* kge/unseen.h - do forgotten triples rank like triples that were never seen?
 *
 * Each forgotten triple is compared with others of its kind that train never had: held-out ones
 * (valid) of the same relation whose head and tail have about as many triples as its own, in what
 * is kept of train.  Or with itself, in tables that were trained anew without it.
 *
 *   value of a triple   its reciprocal rank, mean over the sides that the protocol asks
 *   difference          mean over forgotten triples of: its value less that of its reference
 *
 * Its interval is a bootstrap over forgotten triples and over held-out ones, drawn apart.  The
 * forgotten count as like the unseen where the difference is at most a tenth of the reference's
 * mean.  The test does not say whether single triples stand out, or what somebody learns who has
 * the tables from before beside those from after.  Held-out triples of a relation may be easier or
 * harder than those that were chosen to be forgotten (one whose inverse is kept ranks high and was
 * never seen); tables trained anew have no such doubt.
 *
 * Test is never read. */
#ifndef KGE_UNSEEN_H
#define KGE_UNSEEN_H

#include <stdatomic.h>

#include "base/bootstrap.h"
#include "kge/eval.h"

enum {
	KGE_UNSEEN_QUERIES = 1000, /* forgotten triples at most, drawn by the seed */
	KGE_UNSEEN_LEAST = 10,	   /* held-out triples: with fewer nothing is said */
};

struct kge_unseen;

/* forget: n > 0 positions in g's train; g's valid is what was held out.  ent, rel: new ids by old
 * ones, GRAPH_NONE where the name goes, and with it its row: triples of such names are not asked
 * for (NULL: all stay).  p: sides, candidates and ties count, and it must outlive this. */
struct kge_unseen *kge_unseen_new(const struct graph *g, const uint32_t *forget, size_t n,
				  const uint32_t *ent, const uint32_t *rel,
				  const struct kge_protocol *p, uint64_t seed);
void kge_unseen_free(struct kge_unseen *u);

/* The numbers of triples that are compared. */
struct kge_unseen_counts {
	size_t queries;	    /* forgotten triples */
	size_t by_relation; /* of these, compared within their relation, not by degree alone */
	size_t held_out;    /* triples of valid that stand beside them */
};
void kge_unseen_count(const struct kge_unseen *u, struct kge_unseen_counts *out);

/* Compare with the ranks that these tables give, which never saw the forgotten triples: from now
 * on, instead of held-out ones.  threads as in training; cancel may be NULL.  ERR_CANCELED. */
int kge_unseen_set_retrained(struct kge_unseen *u, const struct kge_emb *anew, uint32_t threads,
			     const atomic_bool *cancel);

struct kge_unseen_figures {
	double mrr, hits1;		       /* of the forgotten */
	double reference_mrr, reference_hits1; /* each forgotten triple's reference weighs alike */
	struct interval difference;	       /* of reciprocal ranks */
	bool like;			       /* as the unseen, or below */
	bool below;			       /* even the interval's upper end is */
};
int kge_unseen_measure(const struct kge_unseen *u, const struct kge_emb *emb, uint32_t threads,
		       const atomic_bool *cancel, struct kge_unseen_figures *out);

#endif
