/* kge/rank_internal.h - inside evaluation: counting scores, and the sets of candidates. */
#ifndef KGE_RANK_INTERNAL_H
#define KGE_RANK_INTERNAL_H

#include "kge/eval.h"

struct kge_tally {
	uint32_t greater, equal;
};

/* Compare scores[0..n-1] with the gold's and add to *t. */
void kge_tally_add(struct kge_tally *t, const float *scores, size_t n, float gold, bool lower);

/* The candidates of every query of a graph under a protocol. */
struct kge_candidate_sets;

struct kge_candidate_sets *kge_candidates_new(const struct graph *g, enum kge_candidates c);
void kge_candidates_free(struct kge_candidate_sets *s);
/* Ascending ids, *n of them; NULL stands for 0..*n-1. */
const uint32_t *kge_candidates_of(const struct kge_candidate_sets *s, enum graph_side side,
				  uint32_t rel, uint32_t *n);
bool kge_candidates_has(const uint32_t *list, uint32_t n, uint32_t id);

#endif
