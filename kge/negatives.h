/* kge/negatives.h - drawing false answers (methods 1.1).
 *
 * Filtered draws are uniform over the entities that are NOT a known answer of
 * the query in train: the k-th of those is found in the sorted list of answers,
 * so nothing is drawn twice and a query that everything answers ends too. */
#ifndef KGE_NEGATIVES_H
#define KGE_NEGATIVES_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "kge/graph.h"
#include "kge/model.h"

/* For each triple of a list and each side, all answers of its query in that list. */
struct kge_answers;

/* t->n < 2^32 */
struct kge_answers *kge_answers_new(const struct kge_triples *t);
void kge_answers_free(struct kge_answers *a);
/* Sorted, without repeats, never empty; *n of them. */
const uint32_t *kge_answers_of(const struct kge_answers *a, size_t triple, enum kge_side s,
			       size_t *n);

/* The queries of one side, each by the first triple that asks it, as triple << 1 | side:
 * at most as many as there are triples.  Returns how many. */
size_t kge_answers_queries(const struct kge_answers *a, enum kge_side s, uint32_t *out);

/* How many answers such a query has. */
size_t kge_answers_count(const struct kge_answers *a, uint32_t query);

/* Ask for what kge_answers_of() reads ahead of time. */
void kge_answers_prefetch(const struct kge_answers *a, size_t triple, enum kge_side s);

/* n entities of 0..n_ent-1, uniform, with repeats. */
void kge_draw(uint32_t *out, size_t n, uint32_t n_ent, struct rng *r);
/* As kge_draw(), but none of the sorted `known`; all KGE_NONE when nothing else is left. */
void kge_draw_filtered(uint32_t *out, size_t n, uint32_t n_ent, const uint32_t *known,
		       size_t n_known, struct rng *r);
/* Replace what is in the sorted `known` by KGE_NONE. */
void kge_mask_known(uint32_t *ids, size_t n, const uint32_t *known, size_t n_known);

#endif
