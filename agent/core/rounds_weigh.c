/* agent/core/rounds_weigh.c - how much of what a round brought is taken in (federation.weight).
 *
 * From the agent's round federation.weight_from on, in that one and at each look, five tables
 * between our own of before averaging and the averaged one are scored on the same few triples of
 * valid (rounds.compare_limit), and the best one is what the round leaves; rounds until the next
 * look take in as much (fed/weight.h).  A look that the agent's end cuts off leaves the weight as
 * it was. */
#include <assert.h>
#include <math.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/weigh_internal.h"

static const struct kge_emb *own_table(const struct validation *l)
{
	return l->own != NULL ? l->own : l->trained;
}

bool rounds_weigh_applies(const struct agent_core *c)
{
	const struct fed_method *m = c->fed.part->method;

	return weigh_by_valid(c) && !m->changes && !m->beside;
}

/* On the worker, between training and exchange. */
void rounds_weigh_begin(const struct agent_core *c, struct round *r)
{
	r->weighs = fed_weight_decides(c->fed.done + 1, c->config->federation.few.weight_from,
				       r->validation.due);
	if (rounds_weigh_applies(c) && own_table(&r->validation) == NULL &&
	    (r->weighs || c->fed.weight < 1))
		r->validation.trained = kge_emb_copy(c->work);
}

/* Once all rows have come: on the worker; or on the loop where the look is cut off and nothing is
 * scored. */
int rounds_weigh(struct agent_core *c, struct round *r, struct agent_job *job)
{
	const struct kge_emb *own = own_table(&r->validation);
	int rc = 0;

	r->weighed = (struct fed_weighed){ .weight = c->fed.weight };
	if (!rounds_weigh_applies(c) || own == NULL)
		return 0;
	if (r->weighs) {
		rc = weigh_tables(c, c->work, own, job, &r->weighed);
		r->has_weighed = rc == 0;
	}
	if (rc != 0)
		r->weighed.weight = c->fed.weight;
	fed_weight_mix(c->work, own, r->weighed.weight);
	return rc;
}

/* On the loop. */
void rounds_weigh_decide(struct agent_core *c, const struct round *r)
{
	double was = c->fed.weight;

	if (!r->has_weighed)
		return;
	c->fed.weight = r->weighed.weight;
	weigh_count(c, &r->weighed);
	if (c->fed.weight == was)
		return;
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
		    "takes in %.0f %% of what partners bring (federation.weight): valid %.4f "
		    "without it, %.4f with all of it",
		    100 * c->fed.weight, r->weighed.score[0], r->weighed.score[FED_WEIGHTS - 1]);
}
