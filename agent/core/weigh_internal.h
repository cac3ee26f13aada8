/* agent/core/weigh_internal.h - how much of what partners brought is taken in, in pairs and in
 * rounds (federation.weight, fed/weight.h).  For agent/core/ and its tests alone. */
#ifndef AGENT_CORE_WEIGH_INTERNAL_H
#define AGENT_CORE_WEIGH_INTERNAL_H

#include "agent/core/core.h"
#include "fed/weight.h"

struct agent_core;

/* Rows that leave later depend on the weight; under private training valid may not decide it. */
bool weigh_by_valid(const struct agent_core *c);
/* On a worker: what tables make of each of so many valid triples (0: of all), or, by a learner that
 * scores no single triples, of all in one; *each is the caller's to free, also on an error. */
int weigh_score(const struct agent_core *c, const struct kge_emb *m, uint32_t limit,
		struct agent_job *job, double **each, size_t *n);
/* On a worker: on the same few valid triples (rounds.compare_limit) each time. */
int weigh_tables(const struct agent_core *c, const struct kge_emb *merged,
		 const struct kge_emb *own, const struct kge_emb *alone,
		 const struct fed_weight_copy *copy, struct agent_job *job,
		 struct fed_weighed *out);
/* As fed_weight_check(). */
int weigh_check(const struct agent_core *c, const struct kge_emb *merged, const struct kge_emb *own,
		double weight, struct agent_job *job, struct fed_weighed *out);
int weigh_copy(const struct agent_core *c, const struct kge_emb *merged,
	       const struct kge_emb *alone, struct agent_job *job, double *ahead);

/* On the loop, after each look: one that took nothing in is counted, and the owner told when
 * WEIGH_VAIN_LOOKS in a row are full. */
enum { WEIGH_VAIN_LOOKS = 10 };

void weigh_count(struct agent_core *c, const struct fed_weighed *w);
/* The last WEIGH_VAIN_LOOKS took nothing in: what partners bring is of no use here. */
bool weigh_in_vain(const struct agent_core *c);
/* ... and none of them had a better score, so training beside partners is of no use, either. */
bool weigh_leaves(const struct agent_core *c);

#endif
