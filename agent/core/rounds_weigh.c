/* agent/core/rounds_weigh.c - how much of what a round brought is taken in (federation.weight).
 *
 * From the agent's round federation.weight_from on, in that one and at each look, five tables
 * between our own of before averaging and the averaged one are scored on the same few triples of
 * valid (rounds.compare_limit), and the best one is what the round leaves; rounds until the next
 * look take in as much (fed/weight.h).  In the first of these rounds the copy that has trained
 * alone (rounds_compare.c) is in the choice, too, where there is one: so whom averaging has only
 * cost goes on from there.  A look that the agent's end cuts off leaves the weight as it was. */
#include <assert.h>
#include <math.h>
#include <string.h>

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

/* A copy that begins in the first round would be our own table. */
bool rounds_weigh_copies(const struct agent_core *c)
{
	return rounds_weigh_applies(c) && c->config->federation.few.weight_from > 1;
}

/* On the worker, between training and exchange. */
void rounds_weigh_begin(const struct agent_core *c, struct round *r)
{
	uint32_t from = c->config->federation.few.weight_from;

	r->weighs = fed_weight_decides(c->fed.done + 1, from, r->validation.due);
	r->weighs_alone = c->fed.done + 1 == from; /* at later looks it would be ahead by chance */
	if (rounds_weigh_applies(c) && own_table(&r->validation) == NULL &&
	    (r->weighs || c->fed.weight < 1))
		r->validation.trained = kge_emb_copy(c->work);
}

/* Once all rows have come: on the worker; or on the loop where the look is cut off and nothing is
 * scored. */
int rounds_weigh(struct agent_core *c, struct round *r, struct agent_job *job)
{
	const struct kge_emb *own = own_table(&r->validation);
	const struct kge_emb *alone =
		r->weighs_alone && c->fed.compare.from_first ? c->fed.compare.alone : NULL;
	int rc = 0;

	r->weighed = (struct fed_weighed){ .weight = c->fed.weight, .alone_score = NAN };
	if (!rounds_weigh_applies(c) || own == NULL)
		return 0;
	if (r->weighs) {
		rc = weigh_tables(c, c->work, own, alone, job, &r->weighed);
		r->has_weighed = rc == 0;
	}
	if (rc != 0)
		r->weighed.weight = c->fed.weight;
	fed_weight_take(c->work, own, alone, &r->weighed);
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
	if (r->weighed.takes_alone) {
		const struct validation *l = &r->validation;

		if (l->better && l->own == NULL) /* the best will be what no partner brought */
			memcpy(c->history.lone, l->best.digest, sizeof(c->history.lone));
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "goes on from a copy that has trained alone (federation.weight): valid "
			    "%.4f, %.4f after averaging",
			    r->weighed.alone_score, r->weighed.score[FED_WEIGHTS - 1]);
		return;
	}
	if (c->fed.weight == was)
		return;
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
		    "takes in %.0f %% of what partners bring (federation.weight): valid %.4f "
		    "without it, %.4f with all of it",
		    100 * c->fed.weight, r->weighed.score[0], r->weighed.score[FED_WEIGHTS - 1]);
}
