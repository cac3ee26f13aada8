/* agent/core/weigh_internal.h - how much of what partners brought is taken in, in pairs and in
 * rounds (federation.weight, fed/weight.h).  For agent/core/ and its tests alone. */
#ifndef AGENT_CORE_WEIGH_INTERNAL_H
#define AGENT_CORE_WEIGH_INTERNAL_H

#include "agent/core/core.h"
#include "fed/weight.h"

struct agent_core;

/* Rows that leave later depend on the weight; under private training valid may not decide it. */
bool weigh_by_valid(const struct agent_core *c);
/* On a worker: on the same few valid triples (rounds.compare_limit) each time. */
int weigh_tables(const struct agent_core *c, const struct kge_emb *merged,
		 const struct kge_emb *own, struct agent_job *job, struct fed_weighed *out);

#endif
