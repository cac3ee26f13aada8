/* kge/negatives.h - drawing false answers (methods 1.1).
 *
 * Filtered draws are uniform over the entities that are NOT a true answer of
 * the query in train: the k-th of those is found in the sorted list of answers,
 * so nothing is drawn twice and a query that everything answers ends too. */
#ifndef KGE_NEGATIVES_H
#define KGE_NEGATIVES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "graph/answers.h"
#include "graph/graph.h"
#include "kge/model.h"
#include "kge/train.h"

/* n entities of 0..n_ent-1, uniform, with repeats. */
void kge_draw(uint32_t *out, size_t n, uint32_t n_ent, struct rng *r);
/* As kge_draw(), but none of the sorted `answers`; all GRAPH_NONE when nothing else is left. */
void kge_draw_filtered(uint32_t *out, size_t n, uint32_t n_ent, const struct graph_ids *answers,
		       struct rng *r);
/* As kge_draw_filtered(), but among the n_list entities of a sorted list, all of `answers` (which
 * may be none) among them and at least one that is not. */
void kge_draw_among(uint32_t *out, size_t n, const uint32_t *list, size_t n_list,
		    const struct graph_ids *answers, struct rng *r);
/* Rows of a table that are nobody's are not drawn: of each `rows` rows in a row, a slot, the first
 * ones are somebody's.  start[k]: how many are in the slots before k; start[n]: in all. */
enum { KGE_SLOTS_MAX = 64 };
struct kge_slots {
	uint32_t n, rows;
	uint32_t start[KGE_SLOTS_MAX + 1];
};
/* As kge_draw_filtered(), among the rows that are somebody's. */
void kge_draw_in_slots(uint32_t *out, size_t n, const struct kge_slots *slots,
		       const struct graph_ids *answers, struct rng *r);
/* Replace what is in the sorted `answers` by GRAPH_NONE. */
void kge_mask_answers(uint32_t *ids, size_t n, const struct graph_ids *answers);

/* ---- what the relations of train say about drawing (enum kge_sampling) ---- */

struct kge_sampler;

/* NULL for KGE_SAMPLING_UNIFORM.  answers: of g's train. */
struct kge_sampler *kge_sampler_new(enum kge_sampling s, const struct graph *g,
				    const struct graph_answers *answers);
void kge_sampler_free(struct kge_sampler *s);
/* Bernoulli: the side that is asked by a positive of this relation.  s is not NULL. */
enum graph_side kge_sampler_side(const struct kge_sampler *s, uint32_t rel, struct rng *r);
bool kge_sampler_has_sides(const struct kge_sampler *s); /* of NULL, too */
/* Typed: the entities at that side of the relation, sorted; NULL: no such list.  s may be NULL. */
const uint32_t *kge_sampler_list(const struct kge_sampler *s, enum graph_side side, uint32_t rel,
				 uint32_t *n);

/* By entity: what it weighs as an answer (rare_weight, kge/train.h); the caller's to free. */
float *kge_answer_weights(const struct graph_triples *train, uint32_t n_ent, float rare_weight);
/* By triple of train: its weight under subsampling (kge/train.h); the caller's to free. */
float *kge_subsampling_weights(const struct graph_triples *train,
			       const struct graph_answers *answers);

#endif
