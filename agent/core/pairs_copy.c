/* agent/core/pairs_copy.c - a copy that trains alone, beside pairs that go on (latest.c), for
 * federation.compare_rounds looks, so that nobody loses by joining.
 *
 *   begins    with the latest tables of before the first round with a partner
 *   trains    as many epochs as work at each round, its own rounds among them, on our graph alone,
 *             from fresh moments, at work's place in train.schedule (agent/alone.h is the same for
 *             the owner's report)
 *   is kept   as the best tables, where it is ahead of them on all of valid
 *
 * So by valid the tables kept are not below what the same epochs alone have made in these looks,
 * whatever partners send.  The latest, which partners get and rounds go on from, takes nothing from
 * it; and patience, and what partners are said to have brought, go by the best score of the other
 * tables (pairs_copy_own_score()).
 *
 * It is in memory alone: a restart ends it.  Under private training there is none: its epochs would
 * be charged as others are. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"

static bool keeps_latest(const struct agent_core *c)
{
	return c->config->federation.after == CONFIG_AFTER_KEEP;
}

static bool has_looks_left(const struct agent_core *c)
{
	return c->gather.copy.looks < c->config->federation.few.compare_rounds;
}

static bool begins_here(const struct agent_core *c)
{
	const struct agent_history *h = &c->history;

	return c->training == TRAINING_ROUND && !h->has_before && (c->rounds == 0 || h->anew) &&
	       !dp_charge_needed(c);
}

int pairs_copy_train(struct agent_core *c, struct agent_job *job)
{
	struct pairs_copy *o = &c->gather.copy;
	double loss = job->loss;
	int status;

	if (!keeps_latest(c) || !has_looks_left(c))
		return 0;
	if (o->tables == NULL && begins_here(c))
		o->tables = kge_emb_copy(c->latest);
	if (o->tables == NULL)
		return 0;
	status = learn_alone(c, o->tables, c->job_epochs, o->work_epochs, job);
	job->loss = loss;
	o->trained = status == 0;
	return status;
}

int pairs_copy_score(struct agent_core *c, struct agent_job *job)
{
	struct pairs_copy *o = &c->gather.copy;

	return o->trained ? c->learner->evaluate(c->learner->ctx, o->tables, job, &o->score) : 0;
}

bool pairs_copy_leads(const struct agent_core *c, double score)
{
	return c->gather.copy.trained && isfinite(c->gather.copy.score) &&
	       c->gather.copy.score > score;
}

void pairs_copy_close(struct agent_core *c, bool kept, double own_score)
{
	struct pairs_copy *o = &c->gather.copy;

	assert(!kept || o->trained);
	if (kept)
		memcpy(c->history.lone, c->best_digest, sizeof(c->history.lone));
	c->history.own = own_score;
	o->looks += o->trained;
	o->trained = false;
	if (!has_looks_left(c))
		pairs_copy_release(c);
}

double pairs_copy_own_score(const struct agent_core *c)
{
	bool apart = keeps_latest(c) && agent_history_is_lone(&c->history, c->best_digest);

	/* it is above the best's where that has been judged by other triples since */
	return apart && c->history.own > 0 && c->history.own < c->best_score ? c->history.own
									     : c->best_score;
}

void pairs_copy_release(struct agent_core *c)
{
	kge_emb_free(c->gather.copy.tables);
	c->gather.copy.tables = NULL;
}
