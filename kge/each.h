/* kge/each.h - what a step of 1-vs-all adds for each positive by itself (methods 1.1):
 *
 *   relation prediction   weight * (log sum_r e^s(k, r, a) - s(k, r0, a)) over all relations r, in
 * a reciprocal model over their rows of both sides (Chen et al., AKBC 2021) DURA see KGE_REG_DURA
 * (Zhang et al., NeurIPS 2020)
 *
 * k is what a query knows, r0 its relation, a one of its answers.  A bilinear model's score is
 * linear in the relation's row: s(k, r, a) = v r, where v is the derivative that `query_grad`
 * gives of the relation.  So the scores of many positives are one product V R, and the gradients
 * of all that is in them come from the mean relation  c R,  c being the softmax less the truth:
 * of a it is query(k, c R), of R it is c v.
 *
 * A lane takes the positives whose answers it owns, by entity, KGE_EACH_PAIRS at a time, as the
 * blocks of its rows come by: rows that are not stepped yet, known rows that wait. */
#ifndef KGE_EACH_H
#define KGE_EACH_H

#include "kge/batch_internal.h"

enum { KGE_EACH_PAIRS = 256 };

struct kge_each;

/* For a batch whose stride and lanes are known; NULL: nothing is added.  Free with
 * kge_each_free(). */
struct kge_each *kge_each_new(struct kge_batch *b);
void kge_each_free(struct kge_each *each);
/* Whether it moves relations that no query of the batch asks. */
bool kge_each_moves_all(const struct kge_each *each);

/* Of lane k, before the first of its blocks: lists its positives. */
void kge_each_begin(struct kge_batch *b, size_t k);
/* Adds to the gradients of `rows` rows, ent_floats apart, from the lane's entity `first` on; each
 * entity once, in ascending order.  Loss, and gradients of known rows and relations, are kept. */
void kge_each_rows(struct kge_batch *b, size_t k, uint32_t first, size_t rows, float *gradients);
/* With other processes, when all own lanes are done: what is kept becomes the sum over all. */
void kge_each_sum(struct kge_batch *b);
/* When all lanes are done: adds the gradient of query q's known row, or of a relation. */
void kge_each_known(const struct kge_batch *b, size_t q, float *gradient);
void kge_each_relation(const struct kge_batch *b, uint32_t r, float *gradient);

#endif
