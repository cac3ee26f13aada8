/* kge/unlearn_until.h - unlearning, over and over, until forgotten triples rank like unseen ones.
 *
 * A pass is both phases of kge/unlearn.h (methods 4.1).  Its interference ends where the forgotten
 * rank no higher than their reference (kge/unseen.h).  The next pass takes again what decay gives
 * back, twice as long and with twice the weights, up to 16 times those of the first.  Where they
 * are low and too little of valid is left, decay goes on alone, for longer.  The
 * kge_unlearn_config's weights and epochs are the first pass's. */
#ifndef KGE_UNLEARN_UNTIL_H
#define KGE_UNLEARN_UNTIL_H

#include "kge/unlearn.h"
#include "kge/unseen.h"

enum { KGE_UNLEARN_PASSES = 12 };

struct kge_until_config {
	struct kge_unlearn_config unlearn;
	uint32_t passes;    /* at most, 1 or more */
	double least_valid; /* share of valid's MRR that must be left, in both tables */
};

struct kge_until_report {
	bool reached; /* forgotten, in both tables, and enough of valid is left */
	uint32_t passes, interference_epochs, decay_epochs;
	struct kge_unlearn_valid valid_before, valid_after;
	struct kge_unseen_figures before, after, global_before, global_after;
};

/* As kge_unlearn(); unseen is about the same triples and graph. */
int kge_unlearn_until(const struct kge_until_config *c, const struct graph *g,
		      const uint32_t *forget, size_t n, const struct kge_unseen *unseen,
		      struct kge_emb *local, struct kge_emb *global,
		      struct kge_until_report *report, const atomic_bool *cancel);

#endif
