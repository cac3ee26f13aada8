#include "agent/core/weigh_internal.h"

#include "agent/core/core_internal.h"
#include "base/mem.h"

bool weigh_by_valid(const struct agent_core *c)
{
	return c->config->federation.weight == CONFIG_WEIGHT_VALID && !dp_charge_needed(c);
}

struct scoring {
	const struct agent_core *core;
	struct agent_job *job;
};

/* A learner that scores no single triples has one score. */
static int score_mixed(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct scoring *s = ctx;
	const struct agent_learner *l = s->core->learner;
	uint32_t limit = s->core->config->rounds.compare_limit;

	if (l->evaluate_each != NULL)
		return l->evaluate_each(l->ctx, m, limit, s->job, each, n);
	*n = 1;
	*each = mem_array(1, sizeof(**each));
	return l->evaluate_some != NULL ? l->evaluate_some(l->ctx, m, limit, s->job, *each)
					: l->evaluate(l->ctx, m, s->job, *each);
}

int weigh_tables(const struct agent_core *c, const struct kge_emb *merged,
		 const struct kge_emb *own, struct agent_job *job, struct fed_weighed *out)
{
	struct scoring s = { c, job };

	return fed_weight_choose(merged, own, score_mixed, &s, out);
}
