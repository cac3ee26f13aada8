#include "agent/core/weigh_internal.h"

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "base/mem.h"

bool weigh_by_valid(const struct agent_core *c)
{
	return c->config->federation.weight == CONFIG_WEIGHT_VALID && !dp_charge_needed(c);
}

int weigh_score(const struct agent_core *c, const struct kge_emb *m, uint32_t limit,
		struct agent_job *job, double **each, size_t *n)
{
	const struct agent_learner *l = c->learner;

	if (l->evaluate_each != NULL)
		return l->evaluate_each(l->ctx, m, limit, job, each, n);
	*n = 1;
	*each = mem_array(1, sizeof(**each));
	return l->evaluate_some != NULL ? l->evaluate_some(l->ctx, m, limit, job, *each)
					: l->evaluate(l->ctx, m, job, *each);
}

struct scoring {
	const struct agent_core *core;
	struct agent_job *job;
};

static int score_mixed(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct scoring *s = ctx;

	return weigh_score(s->core, m, s->core->config->rounds.compare_limit, s->job, each, n);
}

int weigh_tables(const struct agent_core *c, const struct kge_emb *merged,
		 const struct kge_emb *own, const struct kge_emb *alone,
		 const struct fed_weight_copy *copy, struct agent_job *job, struct fed_weighed *out)
{
	struct scoring s = { c, job };

	return fed_weight_choose(merged, own, alone, copy, score_mixed, &s, out);
}

int weigh_check(const struct agent_core *c, const struct kge_emb *merged, const struct kge_emb *own,
		double weight, struct agent_job *job, struct fed_weighed *out)
{
	struct scoring s = { c, job };

	return fed_weight_check(merged, own, weight, score_mixed, &s, out);
}

int weigh_copy(const struct agent_core *c, const struct kge_emb *merged,
	       const struct kge_emb *alone, struct agent_job *job, double *ahead)
{
	struct scoring s = { c, job };

	return fed_weight_measure(merged, alone, score_mixed, &s, ahead);
}

void weigh_count(struct agent_core *c, const struct fed_weighed *w)
{
	uint32_t *vain = &c->history.vain;

	if (w->weight > 0)
		*vain = 0;
	else if (*vain < UINT32_MAX)
		++*vain;
	if (*vain == WEIGH_VAIN_LOOKS)
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
			    "this agent gains nothing: %u looks in a row took in none of what "
			    "partners brought (federation.weight): valid %.4f without it, %.4f "
			    "with all of it; list partners that know of the same things, or train "
			    "alone",
			    *vain, w->score[0], w->score[FED_WEIGHTS - 1]);
}

bool weigh_in_vain(const struct agent_core *c)
{
	return weigh_by_valid(c) && c->history.vain >= WEIGH_VAIN_LOOKS;
}

bool weigh_leaves(const struct agent_core *c)
{
	return weigh_in_vain(c) && c->worse >= WEIGH_VAIN_LOOKS;
}
