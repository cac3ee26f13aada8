/* agent/core/rounds.c - rounds of many, one after the other (mode CONFIG_ROUNDS; methods 4.4).
 *
 *        proposal came, or our turn
 *   (free) ------> JOINING --START--> TRAINING -> EXCHANGE -> SCORING -> SAVING --> (free)
 *                     |                  |           |       (every eval_every
 *                     +------------------+-----------+           rounds)
 *                     | it came to nothing: tables and part as before
 *                     +----------------------------------------------------------> (free)
 *
 * fed/round.h decides what a round does, and this file grants what it wants: training and
 * exchange are jobs, its deadline is a timer, its messages are pulled as links take them.
 * The results of a round are on disk in one transaction before anything else begins.
 *
 * A round that is over goes on hearing and telling accounts (fed/round_account.c) while those
 * after it run: ROUNDS_PAST of them are kept for that, and come back from the store after a
 * restart. An account that we sign is on disk before it is sent: the machine holds it back until
 * the record with its figures is on disk (fed_round_recorded()).
 *
 * Nobody stalls us: a machine ends by its own deadlines; a proposer whose rounds come to
 * nothing is not joined for a while, a member that did not answer or was late is not asked
 * for a while: twice as long each time, and in proportion to the time that it cost.  Of two
 * proposals the one of the lower key stands, as long as neither has started. */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/labels_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "base/mem.h"

/* ---- birth and end of one ---- */

static bool is_named(const struct fed_proposal *o, const struct peer *p)
{
	for (size_t i = 0; i < o->n_members; i++)
		if (memcmp(o->member[i], p->info.key, FED_KEY) == 0)
			return true;
	return false;
}

/* The round outlives alignments, so it has slots of its own. */
static void add_peer(struct round *r, const struct peer *p)
{
	struct net_psi_slot *slots = mem_array((size_t)p->n_slots + 1, sizeof(*slots));
	struct fed_peer *o = &r->peers[r->setup.n_peers++];

	for (uint32_t i = 0; i < p->n_slots; i++)
		slots[i] = (struct net_psi_slot){ .id = p->slots[i].id, .tag = p->slots[i].tag };
	memcpy(o->key, p->info.key, FED_KEY);
	memcpy(o->sign_public, p->info.sign_key, FED_SIGN);
	memcpy(o->digest, p->digest, NET_PSI_DIGEST);
	o->slots = slots;
	o->n_slots = p->n_slots;
	o->left_out = rounds_judge_leaves_out(r, p);
	o->doubted = p->doubted;
	o->kept_out = p->fed.apart.kept_out;
}

static bool takes_part(const struct agent_core *c, const struct peer *p,
		       const struct fed_proposal *of)
{
	if (of != NULL)
		return rounds_ready(c, p) && is_named(of, p);
	return rounds_is_drawn(c, p);
}

/* of: what we join; NULL: our own. */
static struct round *round_new(struct agent_core *c, struct peer *proposer,
			       const struct fed_proposal *of)
{
	struct round *r = mem_array(1, sizeof(*r));
	struct fed_setup *s = &r->setup;

	r->proposer = proposer;
	r->due_ms = UINT64_MAX;
	r->started_ms = c->now_ms;
	r->started_wall_ms = c->wall_ms;
	r->choice.is_last = c->config->rounds.max > 0 &&
			    c->fed.done + c->fed.missed + 1 >= c->config->rounds.max;
	r->validation.due =
		(c->fed.done + 1) % c->config->rounds.eval_every == 0 || r->choice.is_last;
	rounds_judge_begin(c, r);
	r->peers = mem_array(c->n_peers + 1, sizeof(*r->peers));
	for (size_t i = 0; i < c->n_peers && s->n_peers + 1 < FED_MEMBERS_MAX; i++)
		if (takes_part(c, c->peers[i], of))
			add_peer(r, c->peers[i]);
	s->peers = r->peers;
	rounds_who_we_are(c, s);
	s->label = labels_name;
	s->label_ctx = c;
	s->part = c->fed.part;
	s->part->rounds = c->fed.done;
	s->draw = (struct nn_draw){ c->io.draw, c->io.ctx };
	s->min_holders = c->fed.settings.min_holders;
	s->min_members = config_min_members(c->config);
	s->train_ms = c->fed.settings.train_ms;
	s->stage_ms = c->fed.settings.stage_ms;
	s->secret_only = c->fed.settings.secret_bits != 0;
	s->bound = c->config->rounds.bound_rows;
	s->on_record = true;
	return r;
}

/* ---- messages out ---- */

static void pull_from(struct agent_core *c, struct peer *p, const struct round *r)
{
	struct buf b = { 0 };

	while (r != NULL && p->greeted && p->outbox.first == NULL && !p->overflow &&
	       fed_round_pull(r->machine, p->info.key, &b))
		peer_send(c, p, &b);
	buf_release(&b);
}

static void pull(struct agent_core *c, struct peer *p)
{
	for (size_t i = ROUNDS_PAST; i > 0; i--)
		pull_from(c, p, c->fed.past[i - 1]);
	pull_from(c, p, c->fed.last);
	pull_from(c, p, c->fed.now);
}

/* ---- on disk before it is signed ---- */

/* All that are over, or as good as: by number; NULL where there is none. */
static struct round *round_at(const struct agent_core *c, size_t i)
{
	if (i < ROUNDS_PAST)
		return c->fed.past[i];
	return i == ROUNDS_PAST ? c->fed.last : c->fed.now;
}

/* With what has changed of records; each round whose figures are in it waits for its ticket. */
static void commit_records(struct agent_core *c, struct store_batch *b,
			   void (*then)(struct agent_core *c))
{
	uint64_t before = c->next.ticket;

	store_batch_move(b, &c->fed.changed);
	core_commit(c, b, then);
	for (size_t i = 0; c->next.ticket != before && i < ROUNDS_PAST + 2; i++) {
		struct round *r = round_at(c, i);

		if (r == NULL || !r->news)
			continue;
		r->news = false;
		r->ticket = c->next.ticket;
	}
}

void rounds_committed(struct agent_core *c, uint64_t ticket)
{
	bool any = false;

	for (size_t i = 0; i < ROUNDS_PAST + 2; i++) {
		struct round *r = round_at(c, i);

		if (r == NULL || r->ticket == 0 || r->ticket > ticket || r->news)
			continue; /* with news a later one will come */
		r->ticket = 0;
		rounds_recorded(r);
		any = true;
	}
	for (size_t i = 0; any && i < c->n_peers; i++)
		pull(c, c->peers[i]);
}

/* Where an account waits for nothing but that, what it says is not left to the next commit. */
static void record_changes(struct agent_core *c)
{
	struct store_batch b = { 0 };

	rounds_record_again(c, c->fed.last);
	for (size_t i = 0; i <= ROUNDS_PAST; i++) {
		const struct round *r = round_at(c, i);

		if (r != NULL && r->news && fed_round_signs(r->machine)) {
			commit_records(c, &b, NULL);
			return;
		}
	}
}

static void pull_all(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		pull(c, c->peers[i]);
	record_changes(c);
}

void rounds_writable(struct agent_core *c, struct peer *p)
{
	pull(c, p);
	record_changes(c);
}

/* Somebody may still wait for rows of the last round, on a slow link; not for ever. */
static uint64_t owes_until_ms(const struct agent_core *c)
{
	const struct round *r = c->fed.last;
	uint64_t ms = r ? fed_round_settings(r->machine)->stage_ms : 0;
	uint64_t end =
		r ? r->ended_ms + (ms < c->fed.settings.stage_ms ? ms : c->fed.settings.stage_ms)
		  : 0;

	for (size_t i = 0; r != NULL && !r->closed && i < c->n_peers; i++)
		if (c->peers[i]->greeted && c->peers[i]->outbox.first != NULL)
			return end;
	return 0;
}

/* ---- what came of it ---- */

/* Twice as long each time; and who has cost us time rests in proportion to it. */
static void rest(struct agent_core *c, uint64_t cost_ms, uint64_t *until_ms, uint32_t *times)
{
	uint64_t ms = peer_backoff_ms(c, *times), cost = cost_ms << (*times < 3 ? *times : 3);

	*until_ms = c->now_ms + (cost > ms ? cost : ms);
	++*times;
}

static uint64_t cost_ms(const struct agent_core *c, const struct err *e)
{
	return e->code == ERR_TIMEOUT ? c->now_ms - c->fed.now->started_ms : 0;
}

static void note_member(struct agent_core *c, struct peer *p, const struct fed_account *a,
			bool in_roster)
{
	enum fed_fate fate = in_roster			? a->fate
			     : a->fate == FED_TOOK_PART ? FED_DECLINED
							: a->fate;

	p->fed.seen = true;
	p->fed.fate = fate;
	p->fed.fate_number = fed_round_settings(c->fed.now->machine)->number;
	snprintf(p->fed.why, sizeof(p->fed.why), "%.250s",
		 a->trouble.code != 0 ? a->trouble.text : "");
	if (in_roster && fate == FED_TOOK_PART) {
		p->fed.absent = p->fed.awaits = 0;
		p->fed.absent_ms = p->fed.await_from = 0;
		rounds_was_in_time(c, p);
		if (c->fed.now->proposer == p) /* not by what others propose */
			p->fed.failed = 0;
	} else if (a->fate == FED_APART) { /* who has said different things is another member */
		core_notice(c, AGENT_NOTICE_TROUBLE, p, a->trouble.code,
			    "round %llu with %.60s: %s", (unsigned long long)p->fed.fate_number,
			    p->info.name, a->trouble.text);
	} else if (a->fate != FED_TOOK_PART && !a->unaligned && c->fed.now->proposer == NULL &&
		   !c->fed.now->yielded) {
		rest(c, cost_ms(c, &a->trouble), &p->fed.absent_ms, &p->fed.absent);
		rounds_was_late(c, p, fate == FED_LATE);
	} else if (fate == FED_LATE && c->fed.now->proposer == p) { /* and its turn is the first */
		rest(c, cost_ms(c, &a->trouble), &p->fed.rest_ms, &p->fed.failed);
	}
	if (fate == FED_BROKE)
		peer_trouble(c, p, a->trouble.code, "broke the protocol of a round: %.150s",
			     a->trouble.text);
}

/* What masks have changed: nobody sees it by the rows. */
static void note_masks(struct agent_core *c, const struct fed_settings *s)
{
	const struct fed_report *report = &c->fed.report;

	if (report->clipped > report->params_up / 1000)
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
			    "%zu of %llu values of our rows were cut at rounds.secret_clip (%g): "
			    "the means are of other rows; let all members say a larger one",
			    report->clipped, (unsigned long long)report->params_up, s->secret_clip);
	if (report->spoiled > 0)
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, ERR_PROTO,
			    "%zu sums of masked rows were dropped, being no sums of rows: a member "
			    "or a home sends what is none; rounds with secret_bits 0 would show "
			    "whose rows are far",
			    report->spoiled);
}

static void note_members(struct agent_core *c)
{
	const struct fed_round *m = c->fed.now->machine;
	struct fed_report *report = &c->fed.report;

	fed_round_report(m, report);
	if (report->refused > report->answered / 20)
		core_notice(
			c, AGENT_NOTICE_TROUBLE, NULL, ERR_INPUT,
			"%zu of %zu answers would move our rows much further than the others do "
			"(rounds.bound_rows): not taken",
			report->refused, report->answered);
	note_masks(c, fed_round_settings(m));
	rounds_compare_members(c, m, report->members);
	for (unsigned i = 0; i < report->participants; i++) {
		const struct fed_account *a = fed_round_account(m, i);
		struct peer *p = peer_find(c, a->key);

		if (p != NULL)
			note_member(c, p, a, i < report->members);
	}
}

/* Of one that never began there are no accounts. */
static void let_pass(struct agent_core *c, struct round *r)
{
	struct round **past = c->fed.past;

	if (r == NULL || r->n_kept == 0) {
		round_free(r);
		return;
	}
	round_close(r);
	round_free(past[ROUNDS_PAST - 1]);
	memmove(&past[1], &past[0], (ROUNDS_PAST - 1) * sizeof(struct round *));
	past[0] = r;
}

/* Over for us: nothing is under way any more. */
static void leave(struct agent_core *c)
{
	let_pass(c, c->fed.last);
	c->fed.last = c->fed.now;
	c->fed.last->ended_ms = c->now_ms;
	for (size_t i = 0; i < c->n_peers; i++) /* lost meanwhile, and here again */
		if (c->peers[i]->greeted)
			fed_round_again(c->fed.last->machine, c->peers[i]->info.key);
	c->fed.now = NULL;
	c->doing = DOING_NOTHING;
	c->fed.free_ms = c->now_ms;
	record_changes(c); /* what came while it was being saved */
}

/* By what others have said, or by our own terms: it may be honest, and have no other rosters.  So
 * it rests twice as long as this one took, and not longer each time. */
static void rest_from_roster(const struct agent_core *c, const struct round *r)
{
	r->proposer->fed.rest_ms = c->now_ms + 2 * (c->now_ms - r->started_ms);
}

static void penalise(struct agent_core *c, const struct round *r, const struct err *e)
{
	bool began = c->fed.report.members > 0;

	if (r->yielded || c->stopping)
		return;
	if (r->proposer == NULL) { /* longer than others rest from us */
		rest(c, 0, &c->fed.rest_ms, &c->fed.failures);
		c->fed.rest_ms += core_jitter(c, c->fed.rest_ms - c->now_ms);
	} else if (!began && r->proposer->fed.fate != FED_BROKE &&
		   (e->code == ERR_REFUSED || e->code == ERR_IDENTITY)) {
		rest_from_roster(c, r); /* without us, or none for us */
	} else if (!began) {
		rest(c, cost_ms(c, e), &r->proposer->fed.rest_ms, &r->proposer->fed.failed);
	} /* else our own work has failed */
}

static void failed(struct agent_core *c, const struct err *e)
{
	struct round *r = c->fed.now;
	struct store_batch b = { 0 };

	snprintf(c->fed.trouble, sizeof(c->fed.trouble), "%.250s", e->text);
	if (!r->yielded)
		core_notice(c, AGENT_NOTICE_SESSION, r->proposer, e->code, "%s", e->text);
	if (c->fed.report.members > 0) { /* before START nothing has been done */
		rounds_record(c, r, &b);
		core_record_add(c, &b);
		commit_records(c, &b, NULL);
	}
	penalise(c, r, e);
	rounds_compare_undo(c, r);
	rounds_restore(c);
	leave(c);
}

static void saved(struct agent_core *c)
{
	const struct round *r = c->fed.now;
	bool stops = r->validation.stops;

	core_notice(c, AGENT_NOTICE_SESSION, r->proposer, 0,
		    "round %llu done: %u members, %zu of %zu shared rows answered",
		    (unsigned long long)fed_round_settings(r->machine)->number,
		    c->fed.report.members, c->fed.report.answered, c->fed.report.items);
	rounds_validate_tell(c, &r->validation);
	c->fed.ended_ms = c->now_ms;
	leave(c);
	if (stops)
		rounds_restart(c);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "round done");
}

/* All that it leaves, in one transaction. */
static void save(struct agent_core *c, struct store_batch *b)
{
	struct round *r = c->fed.now;

	r->stage = ROUND_SAVING;
	rounds_keep(c, r, b);
	rounds_record(c, r, b);
	history_count(c, c->config->rounds.epochs, b);
	core_record_add(c, b);
	commit_records(c, b, saved);
}

static void finished(struct agent_core *c, const struct agent_job *job)
{
	struct round *r = c->fed.now;
	struct store_batch b = { 0 };

	if (r->latest.disk == NULL) { /* cancelled before it ran */
		r->validation.interrupted = r->validation.due;
		r->choice.asked = r->choice.measures = r->choice.checked = false;
		(void)rounds_weigh(c, r, NULL);
		rounds_make(c, r);
	}
	history_begin(c, &b);
	rounds_weigh_decide(c, r);
	rounds_compare_weighed(c);
	rounds_judge_decide(c, r, &b);
	if (r->validation.validated) {
		rounds_validate_decide(c, &r->validation, &b);
		rounds_compare_decide(c, &r->validation, &b);
	} else if (job->status != 0 && !c->stopping && job->status != ERR_CANCELED) {
		learn_failed(c, job->status, err_text(job->status)); /* the round itself is kept */
	}
	c->doing = DOING_ROUND;
	save(c, &b);
}

/* All that takes time between the exchange and the disk; the core only reads meanwhile. */
static int run_finish(struct agent_job *job)
{
	struct round *r = job->subject;
	int status = rounds_weigh(job->core, r, job);

	if (status == 0 && r->validation.due && !r->validation.interrupted)
		status = rounds_validate_score(job->core, &r->validation, job);
	else if (status == ERR_CANCELED)
		r->validation.interrupted = r->validation.due;
	if (status == 0)
		rounds_compare_score(job->core, &r->validation, job); /* cut off, it is left out */
	if (status == 0)
		status = rounds_compare_try_copy(job->core, &r->validation, r, job);
	rounds_make(job->core, r);
	return status;
}

/* One proposer's number, far from ours, does not move us away from all others. */
static uint64_t number_after(const struct agent_core *c, uint64_t number)
{
	if (number < c->fed.number)
		return c->fed.number;
	return (number - c->fed.number <= ROUND_AHEAD_MAX ? number : c->fed.number) + 1;
}

static void done(struct agent_core *c)
{
	struct round *r = c->fed.now;

	rounds_say_apart(c, fed_round_settings(r->machine)->number);
	c->fed.number = number_after(c, fed_round_settings(r->machine)->number);
	if (c->fed.announced > c->fed.number) /* somebody's word alone */
		c->fed.announced = c->fed.number;
	c->fed.done++;
	c->fed.failures = 0;
	c->fed.trouble[0] = '\0';
	if (r->proposer != NULL)
		r->proposer->fed.passed = false;
	c->tried_epochs += c->config->rounds.epochs;
	r->validation.interrupted = r->validation.due && c->stopping;
	r->choice.asked &= !c->stopping;
	r->choice.measures &= !c->stopping;
	r->choice.checked &= !c->stopping;
	r->stage = r->validation.due && !r->validation.interrupted ? ROUND_SCORING : ROUND_SAVING;
	core_start_job(c, AGENT_JOB_EVALUATE, run_finish, r);
	if (r->stage == ROUND_SCORING)
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "round: scoring");
}

static void over(struct agent_core *c)
{
	struct round *r = c->fed.now;
	struct err e = { 0 };

	c->io.cancel_timer(c->io.ctx, AGENT_TIMER_ROUND);
	note_members(c);
	if (fed_round_status(r->machine, &e) != 0)
		failed(c, &e);
	else
		done(c);
}

/* ---- granting what it wants ---- */

static int run_train(struct agent_job *job)
{
	struct agent_core *c = job->core;
	struct round *r = job->subject;
	const struct agent_learner *l = c->learner;
	uint32_t epochs = c->config->rounds.epochs;
	int status = l->train_part != NULL ? l->train_part(l->ctx, c->fed.part, epochs, job)
					   : l->train(l->ctx, c->work, epochs, true, job);

	if (status == 0 && r->validation.due && c->fed.part->method->scored == FED_SCORED_OWN)
		r->validation.own = kge_emb_copy(c->work);
	status = status == 0 ? rounds_compare_train(c, r, job) : status;
	if (status == 0)
		rounds_weigh_begin(c, r);
	return status;
}

static int run_exchange(struct agent_job *job)
{
	struct round *r = job->subject;

	r->judging = job;
	return fed_round_run(r->machine);
}

static void start_work(struct agent_core *c, struct round *r, enum fed_want want)
{
	enum round_stage stage = want == FED_TRAIN ? ROUND_TRAINING : ROUND_EXCHANGE;
	bool new_stage = r->stage != stage;

	r->stage = stage;
	if (new_stage)
		fed_round_report(r->machine, &c->fed.report);
	r->work_ms = c->now_ms;
	if (want == FED_TRAIN) {
		rounds_compare_begin(c, r);
		core_start_job(c, AGENT_JOB_TRAIN, run_train, r);
	} else {
		core_start_job(c, AGENT_JOB_EXCHANGE, run_exchange, r);
	}
	if (new_stage)
		core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "%s",
			    want == FED_TRAIN ? "round: training" : "round: exchange");
}

static void arm(struct agent_core *c, struct round *r)
{
	uint64_t due = fed_round_deadline(r->machine);

	if (due == r->due_ms)
		return;
	r->due_ms = due;
	if (due == UINT64_MAX)
		c->io.cancel_timer(c->io.ctx, AGENT_TIMER_ROUND);
	else
		c->io.set_timer(c->io.ctx, AGENT_TIMER_ROUND,
				due > c->now_ms ? due - c->now_ms : 0);
}

/* After whatever the machine was told. */
static void drive(struct agent_core *c)
{
	struct round *r = c->fed.now;
	enum fed_want want;

	pull_all(c);
	if (r == NULL || r->stage > ROUND_EXCHANGE)
		return;
	want = fed_round_want(r->machine);
	if (c->job == NULL && c->stopping && (want == FED_TRAIN || want == FED_EXCHANGE)) {
		fed_round_worked(r->machine, ERR_CANCELED, c->now_ms);
		want = fed_round_want(r->machine);
	}
	if (want == FED_OVER) {
		over(c);
		return;
	}
	if (c->job == NULL && want != FED_WAIT)
		start_work(c, r, want);
	arm(c, r);
}

void rounds_job_done(struct agent_core *c, struct agent_job *job)
{
	struct round *r = c->fed.now;

	if (job->kind == AGENT_JOB_EVALUATE) {
		finished(c, job);
		return;
	}
	if (job->kind == AGENT_JOB_TRAIN) {
		r->train_ms = c->now_ms - r->work_ms;
		if (job->status == 0)
			rounds_trained(c, r->train_ms);
	}
	fed_round_worked(r->machine, job->status, c->now_ms);
	drive(c);
	if (job->status != 0 && job->status != ERR_CANCELED)
		learn_failed(c, job->status,
			     job->why.code != 0 ? job->why.text : err_text(job->status));
}

void rounds_timer(struct agent_core *c)
{
	struct round *r = c->fed.now;

	if (r == NULL || r->stage > ROUND_EXCHANGE)
		return;
	r->due_ms = UINT64_MAX;
	fed_round_tick(r->machine, c->now_ms);
	drive(c);
}

static void forget_invitation(struct agent_core *c)
{
	free(c->fed.invitation);
	c->fed.invitation = NULL;
	c->fed.inviter = NULL;
}

void rounds_here(struct agent_core *c, struct peer *p)
{
	for (size_t i = 0; i <= ROUNDS_PAST; i++)
		if (round_at(c, i) != NULL)
			fed_round_again(round_at(c, i)->machine, p->info.key);
	if (c->fed.now != NULL) /* over, and being scored or saved? */
		fed_round_again(c->fed.now->machine, p->info.key);
	pull(c, p);
}

void rounds_lost(struct agent_core *c, struct peer *p)
{
	if (c->fed.inviter == p)
		forget_invitation(c);
	for (size_t i = 0; i < ROUNDS_PAST; i++)
		if (c->fed.past[i] != NULL)
			fed_round_lost(c->fed.past[i]->machine, p->info.key, c->now_ms);
	if (c->fed.last != NULL)
		fed_round_lost(c->fed.last->machine, p->info.key, c->now_ms);
	if (c->fed.now == NULL)
		return;
	fed_round_lost(c->fed.now->machine, p->info.key, c->now_ms);
	drive(c);
}

void rounds_stop(struct agent_core *c, const char *why)
{
	struct round *r = c->fed.now;

	struct store_batch b = { 0 };

	forget_invitation(c);
	commit_records(c, &b, NULL);
	if (r == NULL || r->stage > ROUND_EXCHANGE)
		return;
	fed_round_stop(r->machine, ERR_CANCELED, why, c->now_ms);
	drive(c);
}

/* ---- proposals of others ---- */

static const char a_lower_key[] = "a lower key proposes a round";

static void decline(struct agent_core *c, struct peer *p, const uint8_t id[FED_ID], const char *why)
{
	struct buf out = { 0 };

	fed_decline(id, why, &out);
	peer_send(c, p, &out);
}

/* The proposer of the round under way, else of the proposal that waits; NULL: none. */
static const uint8_t *proposer_now(const struct agent_core *c)
{
	const struct round *r = c->fed.now;

	if (r != NULL && r->stage == ROUND_JOINING)
		return r->proposer != NULL ? r->proposer->info.key : c->key;
	return c->fed.inviter != NULL ? c->fed.inviter->info.key : NULL;
}

/* The proposal of the lower key stands; a proposer's newer one takes its older one's place. */
static bool stands(const struct agent_core *c, const struct peer *p)
{
	const uint8_t *other = proposer_now(c);

	return other == NULL || memcmp(p->info.key, other, AGENT_KEY) <= 0;
}

/* Another proposal than the one that waits stands: its proposer need not wait for us. */
static void turn_down(struct agent_core *c, const struct peer *p)
{
	const struct fed_proposal *o = c->fed.invitation;

	if (o != NULL && c->fed.inviter != p)
		decline(c, c->fed.inviter, o->id, a_lower_key);
	forget_invitation(c);
}

static void give_way(struct agent_core *c, const struct peer *p)
{
	struct round *r = c->fed.now;

	turn_down(c, p);
	if (r == NULL || r->stage != ROUND_JOINING)
		return;
	r->yielded = r->proposer != p; /* who never starts what it proposes is to blame */
	fed_round_stop(r->machine, ERR_CANCELED,
		       r->yielded ? a_lower_key : "its proposer has a newer one", c->now_ms);
	drive(c);
}

static void proposed(struct agent_core *c, struct peer *p, const struct fed_proposal *o)
{
	struct err e = { 0 };

	if (o->serial <= p->fed.joined) {
		decline(c, p, o->id, "its serial number is not above that of one that we joined");
		peer_say_hello(c, p); /* which has that number */
		return;
	}
	if (rounds_policy(c, p, o, &e) != 0) {
		p->fed.differs = true;
		decline(c, p, o->id, e.text);
		peer_trouble(c, p, e.code, "proposes a round that we do not join: %.150s", e.text);
		return;
	}
	if (p->fed.differs) /* its owner has changed them */
		p->trouble[0] = '\0';
	p->fed.differs = p->fed.over = false;
	if (rounds_enough(c, &o->settings, &e) != 0) {
		decline(c, p, o->id, e.text); /* it learns, and will have more time */
		rounds_was_too_short(c, &o->settings);
	} else if (o->n_members < config_min_members(c->config))
		decline(c, p, o->id, "it asks fewer than rounds.min_members here");
	else if (rounds_stopped(c))
		decline(c, p, o->id, "rounds have stopped here, since they lowered its score");
	else if (!rounds_joins(c))
		decline(c, p, o->id, "rounds.max is reached here: we take part in no more");
	else if (!c->trained || c->stopping)
		decline(c, p, o->id, "we take part in no round now");
	else if (p->fed.rest_ms > c->now_ms)
		decline(c, p, o->id, "its last rounds came to nothing: later");
	else if (!stands(c, p))
		decline(c, p, o->id, a_lower_key);
	else {
		give_way(c, p);
		c->fed.invitation = fed_proposal_copy(o);
		c->fed.inviter = p;
		c->fed.invited_ms = c->now_ms;
		c->fed.invitation_ends_ms = c->now_ms + o->settings.join_ms;
	}
}

static struct round *over_of(const struct agent_core *c, const uint8_t id[FED_ID])
{
	for (size_t i = 0; i <= ROUNDS_PAST; i++) {
		struct round *r = round_at(c, i);

		if (r != NULL && memcmp(fed_round_id(r->machine), id, FED_ID) == 0)
			return r;
	}
	return NULL;
}

bool rounds_know(const struct agent_core *c, const struct net_msg_head *h)
{
	const struct round *r = c->fed.now;

	return (r != NULL && memcmp(fed_round_id(r->machine), h->session, FED_ID) == 0) ||
	       over_of(c, h->session) != NULL;
}

bool rounds_expect(const struct agent_core *c, const struct peer *p, const struct net_msg_head *h)
{
	return h->has_session && !p->other_mode &&
	       (rounds_know(c, h) || !rounds_joined(c, h->session));
}

void rounds_message(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	const struct round *r = c->fed.now;
	struct round *before = over_of(c, m->session);
	struct fed_proposal o;

	if (r != NULL && memcmp(fed_round_id(r->machine), m->session, FED_ID) == 0) {
		fed_round_received(r->machine, p->info.key, m, c->now_ms);
		drive(c);
	} else if (before != NULL) {
		fed_round_received(before->machine, p->info.key, m, c->now_ms);
		rounds_record_again(c, before);
	} else if (!rounds_joined(c, m->session) && fed_proposal_read(&o, m, NULL) == 0) {
		proposed(c, p, &o);
	} /* else of a round that is over */
}

/* ---- beginning ---- */

static void begin(struct agent_core *c, struct round *r)
{
	round_close(c->fed.last);
	c->fed.now = r;
	c->doing = DOING_ROUND;
	c->fed.report = (struct fed_report){ 0 };
	rounds_remember(c, fed_round_id(r->machine));
	core_notice(c, AGENT_NOTICE_STATE, r->proposer, 0, "round: joining");
	drive(c);
}

/* A member that shares nothing with any other has no part in what the round does; but the host
 * has. */
static bool moves_rows(const struct agent_core *c, const struct round *r)
{
	for (size_t i = 0; i < r->setup.n_peers; i++)
		if (r->peers[i].n_slots > 0)
			return true;
	return rounds_is_host(c);
}

static void join(struct agent_core *c)
{
	struct fed_proposal *o = c->fed.invitation;
	struct peer *p = c->fed.inviter;
	struct round *r = round_new(c, p, o);
	struct err e = { 0 };

	c->fed.invitation = NULL;
	c->fed.inviter = NULL;
	rounds_begin_equal(c);
	if (!moves_rows(c, r))
		err_set(&e, ERR_REFUSED, "we share no name with anybody who is in it");
	if (e.code == 0 && fed_round_join(&r->machine, &r->setup, o, c->now_ms, &e) == 0) {
		p->fed.joined = o->serial;
		begin(c, r);
	} else {
		round_free(r);
		decline(c, p, o->id, e.text);
		rest(c, 0, &p->fed.rest_ms, &p->fed.failed); /* we gave way to it */
	}
	free(o);
}

/* Goes to disk beside what is next, with the accounts that have come since. */
static void keep_now(struct agent_core *c)
{
	struct store_batch b = { 0 };

	core_record_add(c, &b);
	commit_records(c, &b, NULL);
}

static void propose(struct agent_core *c)
{
	struct fed_settings s = c->fed.settings;
	struct round *r = round_new(c, NULL, NULL);
	struct err e = { 0 };

	c->train_now = false;
	rounds_pass_over(c);
	s.number = rounds_next_number(c);
	s.train_ms = rounds_train_ms(c);
	s.stage_ms = rounds_stage_ms(c);
	r->setup.serial = ++c->fed.serial;
	keep_now(c); /* whoever joins it holds us to that number */
	rounds_begin_equal(c);
	if (fed_round_propose(&r->machine, &r->setup, &s, c->now_ms, &e) == 0) {
		begin(c, r);
		return;
	}
	round_free(r);
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, e.code, "no round can be proposed: %s", e.text);
	rest(c, 0, &c->fed.rest_ms, &c->fed.failures);
}

/* ---- what is next ---- */

static void wake_for(const struct agent_core *c, uint64_t at_ms, uint64_t *wait_ms)
{
	uint64_t ms = at_ms > c->now_ms ? at_ms - c->now_ms : 0;

	if (at_ms != UINT64_MAX && ms < *wait_ms)
		*wait_ms = ms;
}

/* When to answer: at once, or when those that are still missing have had their chance. */
static uint64_t answer_ms(const struct agent_core *c)
{
	uint64_t half = c->fed.invited_ms + (c->fed.invitation_ends_ms - c->fed.invited_ms) / 2;
	uint64_t await_ms = rounds_await_ms(c), owes = owes_until_ms(c);

	if (await_ms > half)
		await_ms = half;
	return await_ms > owes ? await_ms : owes;
}

static uint64_t propose_ms(const struct agent_core *c)
{
	uint64_t at = rounds_turn_ms(c), await_ms = rounds_await_ms(c), owes = owes_until_ms(c);

	if (await_ms > at)
		at = await_ms;
	return owes > at ? owes : at;
}

void rounds_next(struct agent_core *c, struct peer **align, uint64_t *wait_ms)
{
	struct store_batch b = { 0 };
	uint64_t at;

	if (c->fed.ended_ms == 0)
		c->fed.ended_ms = c->fed.free_ms = c->now_ms;
	if (c->signal.serial == 0)
		c->signal.serial = c->served_serial;
	if (owes_until_ms(c) <= c->now_ms)
		round_close(c->fed.last);
	if (rounds_count_missed(c))
		keep_now(c);
	peer_say_changes(c);
	if (c->fed.validation.due) {
		rounds_validate_start(c);
		return;
	}
	*align = rounds_align_next(c, wait_ms);
	if (*align != NULL)
		return;
	peers_signal_pending(c);
	if (c->fed.inviter != NULL && c->now_ms >= c->fed.invitation_ends_ms)
		forget_invitation(c); /* its round has begun without us */
	at = c->fed.inviter != NULL ? answer_ms(c) : propose_ms(c);
	if (at > c->now_ms) {
		rounds_note_awaited(c);
		wake_for(c, at, wait_ms);
		commit_records(c, &b, NULL);
		return;
	}
	rounds_give_up(c);
	if (c->fed.inviter != NULL)
		join(c);
	else
		propose(c);
}
