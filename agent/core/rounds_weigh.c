/* agent/core/rounds_weigh.c - how much of what a round brought is taken in (federation.weight).
 *
 * From the agent's round federation.weight_from on, in that one and at each look, five tables
 * between our own of before averaging and the averaged one are scored on the same few triples of
 * valid (rounds.compare_limit), and the best one is what the round leaves; rounds until the next
 * look take in as much, or nothing where that lowers the score (fed/weight.h).  In the first of
 * these rounds the copy that has trained alone (rounds_compare.c) is in the choice, too, where
 * there is one: so whom averaging has only cost goes on from there.  While averaging catches up
 * with it that choice waits, all is taken in, and it is made again later, in the last round at the
 * latest.  At a look after which no other may come, a copy that no choice was about is one of those
 * that may be kept (rounds_compare.c).  A look that the agent's end cuts off leaves the weight as
 * it was, and its copy waits.
 *
 * Not where a part of what came cannot be taken in: methods that send changes, and those whose
 * rounds leave the agent's own table as it was trained (fed_own_stays()). */
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

	return weigh_by_valid(c) && !m->changes && !fed_own_stays(&c->fed.part->settings);
}

/* A copy that begins in the first round would be our own table. */
bool rounds_weigh_copies(const struct agent_core *c)
{
	return rounds_weigh_applies(c) && c->config->federation.few.weight_from > 1;
}

static const struct kge_emb *copy_of_first(const struct agent_core *c)
{
	return c->fed.compare.from_first ? c->fed.compare.alone : NULL;
}

/* On the worker, between training and exchange. */
void rounds_weigh_begin(const struct agent_core *c, struct round *r)
{
	uint32_t from = c->config->federation.few.weight_from;
	uint64_t number = c->fed.done + 1;
	bool waits = c->fed.compare.choice.waits > 0 && copy_of_first(c) != NULL;

	r->choice.asked = waits ? fed_weight_asks_again(number, from) || r->choice.is_last
				: fed_weight_decides(number, from, r->validation.due);
	r->choice.of_copy =
		waits || number == from; /* at later looks it would be ahead by chance */
	r->choice.measures = fed_weight_measures(number, from);
	r->choice.checked = !r->choice.asked && c->fed.weight > 0 &&
			    fed_weight_checks(number, from, &c->fed.compare.choice);
	if (rounds_weigh_applies(c) && own_table(&r->validation) == NULL &&
	    (r->choice.asked || r->choice.checked || c->fed.weight < 1))
		r->validation.trained = kge_emb_copy(c->work);
}

/* Once all rows have come: on the worker; or on the loop where the look is cut off and nothing is
 * scored. */
int rounds_weigh(struct agent_core *c, struct round *r, struct agent_job *job)
{
	const struct kge_emb *own = own_table(&r->validation);
	const struct kge_emb *alone = r->choice.of_copy ? copy_of_first(c) : NULL;
	int rc = 0;

	r->weighed = (struct fed_weighed){ .weight = c->fed.weight, .alone_score = NAN };
	if (rounds_weigh_applies(c) && r->choice.measures && copy_of_first(c) != NULL) {
		rc = weigh_copy(c, c->work, copy_of_first(c), job, &r->choice.ahead);
		r->choice.known = rc == 0;
	}
	if (!rounds_weigh_applies(c) || own == NULL || rc != 0)
		return rc;
	if (r->choice.asked) {
		rc = weigh_tables(c, c->work, own, alone,
				  r->choice.is_last ? NULL : &c->fed.compare.choice, job,
				  &r->weighed);
		r->choice.made = rc == 0;
	} else if (r->choice.checked) {
		rc = weigh_check(c, c->work, own, c->fed.weight, job, &r->weighed);
	}
	if (rc != 0)
		r->weighed = (struct fed_weighed){ .weight = c->fed.weight, .alone_score = NAN };
	if (!r->choice.made)
		r->weighed.waits = alone != NULL;
	fed_weight_take(c->work, own, alone, &r->weighed);
	if (r->weighed.takes_alone && r->validation.own != NULL) /* what is scored is this now */
		kge_emb_assign(r->validation.own, alone);
	return rc;
}

/* What is known of the copy after this round. */
static void note_copy(struct agent_core *c, const struct round *r)
{
	struct fed_weight_copy *o = &c->fed.compare.choice;

	if (r->choice.known && isfinite(r->choice.ahead))
		o->ahead = r->choice.ahead;
	if (!r->choice.made) {
		if (r->weighed.waits && o->waits == 0) /* the first choice was cut off */
			o->waits = 1;
		return;
	}
	fed_weight_note(o, &r->weighed);
	if (o->waits == 1 && isfinite(r->weighed.alone_score)) /* else nothing came */
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
			    "averaging catches up with a copy that trains alone, which is chosen "
			    "about later (federation.weight): valid %.4f, alone %.4f",
			    r->weighed.score[FED_WEIGHTS - 1], r->weighed.alone_score);
}

static void say_refused(struct agent_core *c, const struct fed_weighed *w)
{
	int k = (int)(c->fed.weight * (FED_WEIGHTS - 1));

	core_notice(c, AGENT_NOTICE_STATE, NULL, 0,
		    "took in nothing of this round (federation.weight): valid %.4f without it, "
		    "%.4f with it",
		    w->score[0], w->score[k]);
}

/* On the loop. */
void rounds_weigh_decide(struct agent_core *c, const struct round *r)
{
	double was = c->fed.weight;

	note_copy(c, r);
	if (r->weighed.refused)
		say_refused(c, &r->weighed);
	if (!r->choice.made)
		return;
	c->fed.weight = r->weighed.weight;
	weigh_count(c, &r->weighed);
	if (r->weighed.takes_alone) {
		const struct validation *l = &r->validation;

		if (l->better) /* the best will be what no partner brought */
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
