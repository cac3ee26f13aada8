/* agent/core/learn.c - training, validation and backtracking (methods 3.1).
 *
 *   first training   TRAIN eval_every epochs, EVALUATE, ... until first_epochs or patience
 *   round            AGGREGATE per partner, TRAIN round_epochs, EVALUATE
 *   local round      TRAIN round_epochs, EVALUATE
 *
 * `best` changes in learn_accept() (learn_best.c) alone, and only for a better score on valid.
 * Under federation.after: back what was tried and is not better is dropped: `work` becomes `best`
 * bit for bit.  Under keep it is what the next round begins with (latest.c). */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "ppat/virtual.h"

/* One partner's neighbours laid on what there is so far; *g and *t are replaced. */
static int extend(const struct agent_core *c, struct neighbours *n, struct graph **g,
		  struct kge_emb **t)
{
	const struct kge_emb *before = *t ? *t : c->work;
	struct graph *graph = NULL;
	struct kge_emb *tables = NULL;
	int status = ppat_virtual_extend(*g ? *g : c->graph, before, n->v, n->slot_ent, n->slot_rel,
					 &graph, &tables, NULL);

	if (status != 0)
		return status;
	if (c->config->federation.few.bound_rows)
		n->cut = ppat_virtual_bound(tables, c->work, before->n_ent, before->n_rel);
	graph_free(*g);
	kge_emb_free(*t);
	*g = graph;
	*t = tables;
	return 0;
}

/* Train with the neighbours, then take them away again (methods 3.4). */
static int train_extended(struct agent_core *c, struct agent_job *job)
{
	struct graph *g = NULL;
	struct kge_emb *t = NULL;
	int status = 0;

	for (size_t i = 0; i < c->n_neighbours && status == 0; i++)
		if (!judge_left_out(c, c->neighbours[i].from))
			status = extend(c, &c->neighbours[i], &g, &t);
	if (status == 0 && t == NULL) /* none is left */
		return c->learner->train(c->learner->ctx, c->work, c->job_epochs, c->job_reset,
					 job);
	if (status == 0)
		status = c->learner->train_on(c->learner->ctx, g, t, c->job_epochs, job);
	if (status == 0)
		ppat_virtual_strip(c->work, t);
	graph_free(g);
	kge_emb_free(t);
	return status;
}

static int run_train(struct agent_job *job)
{
	struct agent_core *c = job->core;
	int status = 0;

	if (c->training == TRAINING_ROUND)
		status = judge_round(c, job);
	if (status == 0 && c->training == TRAINING_ROUND)
		learn_merge_rotate(c);
	c->job_reset |= learn_merge_moves(c); /* moments stay on the old axes */
	if (status == 0 && c->training != TRAINING_FIRST && latest_keeps(c))
		status = latest_score_merged(c, job);
	if (status != 0 || c->job_epochs == 0) /* nothing left to spend on it */
		return status;
	if (c->training == TRAINING_ROUND && c->n_neighbours > 0)
		return train_extended(c, job);
	return c->learner->train(c->learner->ctx, c->work, c->job_epochs, c->job_reset, job);
}

static int evaluate_work(struct agent_core *c, struct agent_job *job)
{
	if (dp_charge_needed(c)) { /* valid is data too: whatever was trained is taken */
		job->score = c->job_epochs == 0	       ? -1.0
			     : kge_emb_finite(c->work) ? (double)c->dp.spent.steps
						       : (double)NAN;
		return 0;
	}
	return c->learner->evaluate(c->learner->ctx, c->work, job, &job->score);
}

static int run_evaluate(struct agent_job *job)
{
	struct agent_core *c = job->core;
	int status = evaluate_work(c, job);

	if (status == 0 && c->training != TRAINING_FIRST && latest_keeps(c))
		latest_make(c, job);
	return status;
}

static void start_training(struct agent_core *c)
{
	if (c->stopping) { /* while the charge was written */
		c->doing = DOING_NOTHING;
		return;
	}
	core_start_job(c, AGENT_JOB_TRAIN, run_train, NULL);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "training");
}

static void train(struct agent_core *c, enum training training, uint32_t epochs, bool reset)
{
	c->doing = DOING_TRAIN;
	c->gather.since_ms = c->now_ms;
	c->training = training;
	c->job_epochs = epochs;
	c->job_reset = reset || c->frames.must_reset;
	c->frames.must_reset = false;
	if (dp_charge_needed(c))
		dp_charge_training(c, start_training);
	else
		start_training(c);
}

static uint32_t first_epochs(const struct agent_core *c)
{
	return in_rounds(c) ? c->config->rounds.first_epochs : c->config->train.epochs;
}

void learn_first(struct agent_core *c)
{
	uint32_t all = first_epochs(c), left = all > c->first_done ? all - c->first_done : 0;

	train(c, TRAINING_FIRST,
	      left < c->config->train.eval_every ? left : c->config->train.eval_every, false);
}

void learn_round(struct agent_core *c)
{
	train(c, TRAINING_ROUND, c->config->federation.epochs_per_round,
	      c->config->federation.reset_optimizer);
}

void learn_local(struct agent_core *c)
{
	if (c->train_now) { /* the owner wants more of it */
		if (!in_rounds(c))
			peer_queue_wake(c);
		c->gather.lone_worse = 0;
	}
	c->train_now = false;
	if (c->local_left > 0)
		c->local_left--;
	train(c, TRAINING_LOCAL, c->config->federation.epochs_per_round,
	      c->config->federation.reset_optimizer);
}

/* Partners' news is worth more: it has as long to come as a round waits for a further partner. */
uint64_t learn_local_wait_ms(const struct agent_core *c)
{
	uint64_t wait = config_ms(c->config->federation.gather_s);
	uint64_t since = c->now_ms - c->gather.over_ms;

	if (c->train_now)
		return 0;
	if (c->local_left == 0 || !dp_charge_left(c) || !latest_trains_alone(c))
		return UINT64_MAX;
	return since < wait ? wait - since : 0;
}

/* ---- backtracking ---- */

static void restore_best(struct agent_core *c)
{
	uint8_t digest[32];

	kge_emb_assign(c->work, c->best);
	c->tried_epochs = 0;
	kge_emb_digest(c->work, digest);
	assert(memcmp(digest, c->best_digest, 32) == 0);
}

/* An agent that takes no more rows in needs no signals. */
static void close_local(struct agent_core *c, struct store_batch *b)
{
	c->lone_rounds++;
	for (size_t i = 0; i < c->n_peers; i++) {
		if (peer_queue_takes(c, c->peers[i]))
			continue;
		if (c->peers[i]->queued)
			store_batch_unsignal(b, c->peers[i]->info.key);
		c->peers[i]->queued = false;
	}
}

/* Its news came while the round had older rows of it: it goes behind those that wait. */
static void queue_again(struct agent_core *c, struct peer *p, struct store_batch *b)
{
	p->queue_position = ++c->next_queue_position;
	store_batch_unsignal(b, p->info.key);
	store_batch_signal(b, p->info.key, c->wall_ms);
}

/* The signals that this round has served leave the queue with its result. */
static void close_round(struct agent_core *c, struct store_batch *b)
{
	learn_merge_over(c);
	c->rounds++;
	c->in_round = c->gather.in_vain = 0;
	c->local_left = c->config->federation.local_rounds;
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];
		bool was_in = p->in_round, served = was_in && p->signalled <= p->using_serial;

		if (was_in)
			p->used_serial = p->using_serial;
		p->in_round = false;
		if (p->queued && (served || !peer_queue_takes(c, p))) {
			p->queued = false;
			store_batch_unsignal(b, p->info.key);
		} else if (p->queued && was_in) {
			queue_again(c, p, b);
		}
	}
}

/* Further epochs of tables that diverged come to nothing: they end it. */
static void close_first(struct agent_core *c, bool better, bool diverged)
{
	c->first_done += c->job_epochs;
	c->first_worse = better ? 0 : c->first_worse + 1;
	if (c->first_done < first_epochs(c) && !c->dp.over && !diverged &&
	    (c->config->train.patience == 0 || c->first_worse < c->config->train.patience))
		return;
	c->trained = true;
	c->must_signal = true;
	restore_best(c);
	latest_restart(c);
	if (in_rounds(c))
		rounds_restart(c);
}

static void saved(struct agent_core *c)
{
	c->doing = DOING_NOTHING;
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "scored");
}

static void saved_better(struct agent_core *c)
{
	if (dp_charge_needed(c))
		core_notice(c, AGENT_NOTICE_IMPROVED, NULL, 0,
			    "tables of %llu private steps are kept: epsilon %.4f of %.4f is spent",
			    (unsigned long long)c->dp.spent.steps,
			    ledger_training_epsilon(&c->dp.spent, c->terms.statement.delta),
			    c->terms.statement.epsilon);
	else
		core_notice(c, AGENT_NOTICE_IMPROVED, NULL, 0, "best score on valid is now %.4f",
			    c->best_score);
	saved(c);
}

/* Moments of before would be NaN in each round from here on. */
static void leave_diverged(struct agent_core *c)
{
	c->frames.must_reset = true;
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
		    "training has diverged (a number of the tables is not finite): the agent goes "
		    "on from its best tables (lower train.lr)");
}

static void accept_or_restore(struct agent_core *c, double score)
{
	struct store_batch b = { 0 };
	bool better, diverged = !isfinite(score);

	if (diverged && !c->has_best) {
		learn_failed(c, ERR_FAIL, "the tables have diverged: lower train.lr");
		return;
	}
	if (diverged) {
		score = -1.0; /* below every score that there is */
		leave_diverged(c);
	}
	better = !c->has_best || score > c->best_score;
	assert(c->has_best || c->job_epochs > 0 ||
	       !dp_charge_needed(c)); /* first rows are secret */
	c->gather.takes_ms = c->now_ms - c->gather.since_ms;
	c->gather.over_ms = c->now_ms;
	if (c->training == TRAINING_ROUND) {
		history_begin(c, &b);
		history_gain(c, score, better);
		judge_close(c, &b);
	}
	if (c->training != TRAINING_FIRST && latest_keeps(c))
		latest_keep(c, score, better, &b);
	else if (better)
		learn_accept(c, c->work, score, &b);
	else if (c->training != TRAINING_FIRST)
		restore_best(c);
	if (c->training == TRAINING_FIRST)
		close_first(c, better, diverged);
	else
		c->must_signal |= better;
	if (c->training == TRAINING_ROUND)
		close_round(c, &b);
	else if (c->training == TRAINING_LOCAL)
		close_local(c, &b);
	history_count(c, c->job_epochs, &b);
	core_record_add(c, &b);
	c->doing = DOING_SAVE;
	core_commit(c, &b, better ? saved_better : saved);
}

void learn_job_done(struct agent_core *c, struct agent_job *job)
{
	if (job->kind == AGENT_JOB_AGGREGATE) {
		learn_merge_done(c, job);
	} else if (job->status != 0 || c->stopping) {
		learn_failed(c, job->status,
			     job->why.code != 0 ? job->why.text : err_text(job->status));
	} else if (job->kind == AGENT_JOB_TRAIN) {
		c->tried_epochs += c->job_epochs;
		learn_merge_moved(c);
		learn_merge_say_cut(c);
		if (in_rounds(c) && c->job_epochs > 0)
			rounds_trained(c, (c->now_ms - c->job_since_ms) * c->config->rounds.epochs /
						  c->job_epochs);
		c->doing = DOING_EVALUATE;
		core_start_job(c, AGENT_JOB_EVALUATE, run_evaluate, NULL);
	} else {
		accept_or_restore(c, job->score);
	}
}
