/* kge/others_internal.h - exchanges with other processes (kge/others.h), for the batch and the
 * trainer.  One thread calls them while all others of the process wait. */
#ifndef KGE_OTHERS_INTERNAL_H
#define KGE_OTHERS_INTERNAL_H

#include "base/parallel.h"
#include "kge/batch_internal.h"
#include "kge/others.h"

bool kge_others_any(const struct kge_others *o, bool mine);
/* The rows that the queries of the batch at hand know. */
void kge_others_fetch(struct kge_batch *b);
void kge_others_share_parts(struct kge_batch *b);
void kge_others_sum_gradients(struct kge_batch *b);
/* n numbers of each own lane, b->n_own pointers: their sum over all processes. */
void kge_others_sum(const struct kge_batch *b, float *to, float *const *of_lanes, size_t n);
/* Losses, entities' rows and moments: all of them everywhere. */
void kge_others_end(struct kge_batch *b);

#endif
