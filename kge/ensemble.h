/* kge/ensemble.h - several models of one kind as one: their rows side by side, so that the score of
 * a triple is the mean of theirs.
 *
 * A score that is a sum over coordinates is so of each model's coordinates: of products of three,
 * which a third root of 1/n in every factor makes the mean; of distances, which 1/n does (RotatE's
 * phases are scaled by range, which is 1/n of the parts' range already).  The square root of L2 and
 * a projection are no such sum. */
#ifndef KGE_ENSEMBLE_H
#define KGE_ENSEMBLE_H

#include "kge/model.h"

/* Can models of this kind stand side by side? */
bool kge_ensemble_fits(const struct kge_model *m);
/* Puts part k of n into `out`, which has n times its dim, its gamma and as many rows. */
void kge_ensemble_put(struct kge_emb *out, const struct kge_emb *part, size_t k, size_t n);

#endif
