/* agent/process_work.c - what runs on other threads: writes and readings of the store, in order, on
 * the thread of the store; jobs of the core and prices on workers. */

#include "agent/process_internal.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- the store ---- */

struct commit {
	struct store_thread_task task;
	struct process *of;
	struct store_batch batch;
	uint64_t ticket;
};

static int run_commit(struct store *s, struct store_thread_task *t, struct err *e)
{
	return store_apply(s, &((struct commit *)t)->batch, e);
}

static void commit_done(struct store_thread_task *t, int status, const struct err *e)
{
	struct commit *c = (struct commit *)t;
	struct process *p = c->of;
	struct agent_event event = { .kind = AGENT_EVENT_COMMITTED,
				     .ticket = c->ticket,
				     .status = status };

	if (status != 0)
		process_fail(p, status, e->text);
	store_batch_release(&c->batch);
	free(c);
	process_post(p, &event);
}

static void io_commit(void *ctx, struct store_batch *batch, uint64_t ticket)
{
	struct process *p = ctx;
	struct commit *c = mem_array(1, sizeof(*c));

	for (size_t i = 0; i < batch->n; i++)
		if (batch->at[i].kind == STORE_PUT_ROUND)
			figures_round(&p->figures, batch->at[i].u.round.started_ms,
				      batch->at[i].u.round.finished_ms);
	c->task = (struct store_thread_task){ run_commit, commit_done, STORE_THREAD_COMMITS };
	c->of = p;
	c->ticket = ticket;
	store_batch_move(&c->batch, batch);
	store_thread_put(p->store_thread, &c->task);
}

/* Ledger entries that a partner has lost, or may have. */
struct reading {
	struct store_thread_task task;
	struct process *of;
	uint8_t sign_key[AGENT_KEY];
	uint64_t first, ticket;
	size_t max, n;
	struct ledger_signed *at;
};

static int run_reading(struct store *s, struct store_thread_task *t, struct err *e)
{
	struct reading *r = (struct reading *)t;

	return store_chain_entries(s, r->sign_key, r->first, r->max, &r->at, &r->n, e);
}

static void reading_done(struct store_thread_task *t, int status, const struct err *e)
{
	struct reading *r = (struct reading *)t;
	struct agent_event event = { .kind = AGENT_EVENT_ENTRIES,
				     .ticket = r->ticket,
				     .status = status,
				     .entries = r->at,
				     .n_entries = r->n };

	if (status != 0)
		log_error("%s", e->text);
	process_post(r->of, &event);
	free(r->at);
	free(r);
}

static void io_read_entries(void *ctx, const uint8_t sign_key[AGENT_KEY], uint64_t first,
			    size_t max, uint64_t ticket)
{
	struct process *p = ctx;
	struct reading *r = mem_array(1, sizeof(*r));

	r->task = (struct store_thread_task){ run_reading, reading_done, STORE_THREAD_READS };
	r->of = p;
	memcpy(r->sign_key, sign_key, AGENT_KEY);
	r->first = first;
	r->max = max;
	r->ticket = ticket;
	store_thread_put(p->store_thread, &r->task);
}

/* Of the write for it. */
void process_answer_asker(struct process *p, struct asker *a, int status, const char *why)
{
	if (status == 0 && a->decision != NULL)
		process_say(p, "owner", LOG_INFO, "the owner said: %s", a->decision);
	if (a->call != NULL)
		control_reply(a->call, a->reply, status, why);
	free(a->decision);
}

/* A decision counts in memory before it is written, and an agent that went on would live by one
 * that its next start does not know.  So it ends, as of a commit that has failed. */
void process_end_undecided(struct process *p, struct asker *a, int status, const char *why)
{
	char *text = mem_printf("%s; so nothing is decided, and the agent stops: free the disk or "
				"repair the store, then start it again",
				why);

	if (p->failed.code == 0)
		process_fail(p, status, text);
	process_answer_asker(p, a, status, text);
	free(text);
	process_end(p);
}

/* A write of the shell's own, or none: then it only waits for those before it. */
struct chore {
	struct store_thread_task task;
	struct process *of;
	struct store_batch batch;
	struct asker asker;
};

static int run_chore(struct store *s, struct store_thread_task *t, struct err *e)
{
	struct chore *c = (struct chore *)t;

	return c->batch.n > 0 ? store_apply(s, &c->batch, e) : 0;
}

static void chore_done(struct store_thread_task *t, int status, const struct err *e)
{
	struct chore *c = (struct chore *)t;
	bool undecided = status != 0 && c->asker.decision != NULL;

	if (status != 0 && !undecided)
		log_error("%s", e->text);
	if (undecided)
		process_end_undecided(c->of, &c->asker, status, e->text);
	else
		process_answer_asker(c->of, &c->asker, status, e->text);
	store_batch_release(&c->batch);
	free(c);
}

/* The contents of the batch and of asker, which may be NULL, are taken over. */
void process_put_chore(struct process *p, struct store_batch *batch, const struct asker *asker)
{
	struct chore *c = mem_array(1, sizeof(*c));

	c->task = (struct store_thread_task){ run_chore, chore_done, STORE_THREAD_WRITES };
	c->of = p;
	if (asker != NULL)
		c->asker = *asker;
	store_batch_move(&c->batch, batch);
	store_thread_put(p->store_thread, &c->task);
}

/* A peer that the roster has no more room for goes from the store as well. */
void process_add_trimmed(struct process *p, struct store_batch *b)
{
	uint8_t key[STORE_KEY];

	while (roster_trim(&p->roster, process_wall_ms(), key))
		store_batch_unpeer(b, key);
}

void process_trim_roster(struct process *p)
{
	struct store_batch b = { 0 };

	p->trimmed_ms = uv_now(&p->loop);
	process_add_trimmed(p, &b);
	if (b.n > 0)
		process_put_chore(p, &b, NULL);
}

/* ---- jobs ---- */

struct job_run {
	uv_work_t req;
	struct process *of;
	struct agent_job *job;
};

static void run_job(uv_work_t *req)
{
	struct agent_job *job = ((struct job_run *)req)->job;

	job->status = job->run(job);
}

static void job_done(uv_work_t *req, int status)
{
	struct job_run *r = (struct job_run *)req;
	struct process *p = r->of;
	struct agent_event event = { .kind = AGENT_EVENT_JOB_DONE, .job = r->job };

	(void)status;
	free(r);
	p->jobs--;
	process_post(p, &event);
}

static void io_start_job(void *ctx, struct agent_job *job)
{
	struct process *p = ctx;
	struct job_run *r = mem_array(1, sizeof(*r));

	atomic_store(&p->arm.job.cancel, true); /* it gives way */
	r->of = p;
	r->job = job;
	p->jobs++;
	uv_must(uv_queue_work(&p->loop, &r->req, run_job, job_done));
}

void process_work_effects(struct agent_io *io)
{
	io->commit = io_commit;
	io->read_entries = io_read_entries;
	io->start_job = io_start_job;
}

/* ---- what labels have cost ---- */

struct pricing {
	uv_work_t req;
	struct process *of;
	struct agent_spent what;
};

/* The answer is kept where the next status asks for it. */
static void run_pricing(uv_work_t *req)
{
	struct pricing *r = (struct pricing *)req;
	double unused;

	for (size_t i = 0; i < r->what.n; i++)
		(void)!ledger_epsilon(r->what.unpriced[i].at, r->what.unpriced[i].n, &unused, NULL);
}

static void pricing_done(uv_work_t *req, int status)
{
	struct pricing *r = (struct pricing *)req;
	struct agent_status s = { .spent = r->what };

	(void)status;
	agent_status_release(&s);
	r->of->pricing = false;
	r->of->changed = true;
	free(r);
}

void process_look_at_prices(struct process *p, struct agent_status *s)
{
	struct pricing *r;

	if (s->spent.n == 0 || p->pricing || p->closing)
		return;
	r = mem_array(1, sizeof(*r));
	r->of = p;
	r->what = s->spent;
	s->spent = (struct agent_spent){ 0 };
	p->pricing = true;
	uv_must(uv_queue_work(&p->loop, &r->req, run_pricing, pricing_done));
}
