#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "base/mem.h"
#include "net/msg.h"
#include "tests/sim/inside.h"

static bool here(const struct node *n)
{
	const struct sim_crash *c = &n->sim->o.once;

	return c->effect != 0 && c->agent == n->at && c->effect == n->effects;
}

static void note(struct node *n)
{
	struct sim_agent_report *r = n->sim->report->agent;

	if (n->effects > SIM_EFFECTS_NOTED || n->at >= SIM_AGENTS_MAX)
		return;
	r += n->at;
	r->first[n->effects - 1] = n->effects == n->effects_before + 1;
	r->before[n->effects - 1] = r->behind[n->effects - 1] = n->n_commits > 0;
}

/* An agent may die before or after each of these: what comes later in the same
 * event does not happen. */
static bool happens(struct node *n)
{
	if (n->doomed || n->muted)
		return false;
	n->effects++;
	note(n);
	if (here(n)) {
		n->doomed = true;
		return n->sim->o.once.after;
	}
	if (!n->started || !sim_chance(n->sim, 8))
		return true;
	n->doomed = true;
	return rng_below(&n->sim->rng, 2) == 0;
}

static int io_send(void *ctx, const uint8_t peer[32], const uint8_t *bytes, size_t len)
{
	struct node *n = ctx;
	size_t to = node_by_key(n->sim, peer);
	struct buf forged = { 0 };
	int status;

	if (!happens(n) || to == SIM_NOBODY)
		return 0;
	if (n->sim->o.fed && sim_rounds_forge(n, to, bytes, len, &forged)) {
		bytes = forged.base;
		len = forged.len;
	}
	status = net_link_send(n->sim, n->at, to, bytes, len);
	if (status == 0)
		check_send(n->sim, n->at, to, bytes, len);
	buf_release(&forged);
	return status;
}

/* ---- disk ---- */

/* Planted: what is on record is changed, but for the account that the change is about. */
static void lose_accounts(struct store_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->at[i].kind == STORE_CHANGE_ROUND)
			b->at[i].u.change.member.has_account = false;
}

static void io_commit(void *ctx, struct store_batch *batch, uint64_t ticket)
{
	struct node *n = ctx;
	struct sim *s = n->sim;
	uint64_t delay = 1 + rng_below(&s->rng, sim_chance(s, 300) ? 2000 : 15);

	if (!happens(n))
		return;
	sim_frames_asked(n);
	if (s->o.plant == SIM_LATE_ACCOUNT)
		lose_accounts(batch);
	if (s->o.fed)
		sim_rounds_asked(n, batch);
	if (n->effects <= SIM_EFFECTS_NOTED && n->at < SIM_AGENTS_MAX)
		s->report->agent[n->at].behind[n->effects - 1] = true;
	assert(n->n_commits < COMMITS_MAX);
	n->commits[n->n_commits] = (struct commit){ .ticket = ticket };
	store_batch_move(&n->commits[n->n_commits++].batch, batch);
	if (s->now_ms + delay < n->commit_ms)
		delay = n->commit_ms - s->now_ms;
	n->commit_ms = s->now_ms + delay;
	sim_at(s, delay, (struct event){ .what = EV_COMMIT, .node = n->at, .life = n->life });
}

/* Behind all commits that were asked for before, as one thread writes and reads. */
static void io_read_entries(void *ctx, const uint8_t sign_key[32], uint64_t first, size_t max,
			    uint64_t ticket)
{
	struct node *n = ctx;
	struct sim *s = n->sim;
	uint64_t delay = 1 + rng_below(&s->rng, 15);
	struct event e = { .what = EV_ENTRIES, .node = n->at, .life = n->life, .ticket = ticket };

	if (!happens(n))
		return;
	if (s->now_ms + delay < n->commit_ms)
		delay = n->commit_ms - s->now_ms;
	n->commit_ms = s->now_ms + delay;
	memcpy(e.key, sign_key, 32);
	e.first = first;
	e.max = max;
	sim_at(s, delay, e);
}

void shell_entries_due(struct node *n, const struct event *due)
{
	struct ledger_signed *at = mem_array(due->max + 1, sizeof(*at));
	struct agent_event e = { .kind = AGENT_EVENT_ENTRIES,
				 .ticket = due->ticket,
				 .entries = at };

	e.n_entries = disk_entries(&n->disk, n->sign_public, due->key, due->first, due->max, at);
	node_event(n, &e);
	free(at);
}

static void apply_first(struct node *n)
{
	struct err e = { 0 };

	if (disk_apply(&n->disk, &n->commits[0].batch, &e) != 0)
		sim_fail(n->sim, "agent %zu: the store refused a batch: %s", n->at, e.text);
	sim_rounds_on_disk(n, &n->commits[0].batch);
	sim_scores_on_disk(n, &n->commits[0].batch);
	for (size_t i = 0; i < n->commits[0].batch.n; i++)
		n->sim->report->returned += n->commits[0].batch.at[i].kind == STORE_RETURN_ENTRY;
	store_batch_release(&n->commits[0].batch);
	n->n_commits--;
	memmove(n->commits, n->commits + 1, n->n_commits * sizeof(n->commits[0]));
}

static bool has_round(const struct store_batch *b)
{
	for (size_t i = 0; i < b->n; i++)
		if (b->at[i].kind == STORE_PUT_ROUND)
			return true;
	return false;
}

/* Of what partners are told: entries of the ledger, rounds. */
static bool is_announced(const struct store_batch *b)
{
	return has_round(b) || (b->n > 0 && (b->at[0].kind == STORE_ADD_ENTRY ||
					     b->at[0].kind == STORE_ADD_COUNTERSIGN));
}

/* A contract, or what opens a session: labels are spent by none of these. */
static bool spends_nothing(const struct store_batch *b)
{
	for (size_t i = 0; i < b->n; i++) {
		const struct ledger_entry *e = &b->at[i].u.entry.entry;

		if (b->at[i].kind == STORE_ADD_ENTRY &&
		    (e->kind == LEDGER_CONTRACT || (e->kind == LEDGER_RESERVE && e->count == 0)))
			return true;
	}
	return false;
}

static void write_put_off(struct node *n)
{
	disk_apply(&n->disk, &n->late, NULL);
	store_batch_release(&n->late);
}

/* The lie: the word is given at once, the disk has it four writes later, or before a contract or
 * the next session: of these it is true, or few stories would come to a label. */
static void put_off(struct node *n)
{
	if (n->late.n >= 4 || spends_nothing(&n->commits[0].batch))
		write_put_off(n);
	store_batch_move(&n->late, &n->commits[0].batch);
	n->n_commits--;
	memmove(n->commits, n->commits + 1, n->n_commits * sizeof(n->commits[0]));
}

void shell_commit_due(struct node *n)
{
	struct agent_event e = { .kind = AGENT_EVENT_COMMITTED, .ticket = n->commits[0].ticket };

	if (n->sim->o.plant == SIM_EARLY_COMMIT && is_announced(&n->commits[0].batch)) {
		put_off(n);
		if (spends_nothing(&n->late))
			write_put_off(n);
		node_event(n, &e);
		return;
	}
	apply_first(n);
	if (sim_chance(n->sim, 20)) /* dead between the disk and the word of it */
		n->doomed = true;
	node_event(n, &e);
	if (n->sim->o.plant == SIM_LOST_ROUND && n->has_latest && n->alive && !n->n_jobs)
		n->core->work->ent[0] += 1.0F;
}

/* ---- jobs ---- */

static void io_start_job(void *ctx, struct agent_job *job)
{
	struct node *n = ctx;
	struct sim *s = n->sim;

	assert(n->n_jobs < JOBS_MAX);
	n->jobs[n->n_jobs++] = job; /* also when dead: to be freed */
	if (!happens(n))
		return;
	sim_at(s, 1 + rng_below(&s->rng, job->kind == AGENT_JOB_CONV ? 60 : 800),
	       (struct event){ .what = EV_JOB, .node = n->at, .life = n->life, .job = job });
}

static void forget_job(struct node *n, const struct agent_job *job)
{
	for (size_t i = 0; i < n->n_jobs; i++)
		if (n->jobs[i] == job)
			n->jobs[i] = n->jobs[--n->n_jobs];
}

void shell_job_due(struct node *n, struct agent_job *job)
{
	struct agent_event e = { .kind = AGENT_EVENT_JOB_DONE, .job = job };
	double before_s;

	forget_job(n, job);
	if (n->sim->o.fed)
		sim_rounds_before_job(n);
	sim_scores_before_job(n, job);
	before_s = sim_cpu_s(n->sim);
	job->status = atomic_load(&job->cancel) ? ERR_CANCELED : job->run(job);
	sim_scores_after_job(n, job);
	n->sim->report->cpu_s += sim_cpu_s(n->sim) - before_s;
	node_event(n, &e);
	if (n->sim->o.plant == SIM_LOST_BACKTRACK && n->scribble && n->alive && !n->n_jobs)
		n->scribble->ent[0] += 1.0F;
}

/* ---- the rest ---- */

static void io_set_timer(void *ctx, enum agent_timer t, uint64_t delay_ms)
{
	struct node *n = ctx;

	if (!happens(n))
		return;
	n->timer[t]++;
	if (n->sim->o.plant == SIM_STUCK_BUSY && t == AGENT_TIMER_LEASE)
		return;
	if (n->sim->o.plant == SIM_STUCK_ROUND && t == AGENT_TIMER_ROUND)
		return;
	if (n->sim->o.plant == SIM_STUCK_SCORES && t == AGENT_TIMER_SCORED)
		return;
	sim_at(n->sim, delay_ms,
	       (struct event){ .what = EV_TIMER,
			       .node = n->at,
			       .life = n->life,
			       .epoch = n->timer[t],
			       .timer = (int)t });
}

static void io_cancel_timer(void *ctx, enum agent_timer t)
{
	struct node *n = ctx;

	n->timer[t]++;
}

static void io_connect(void *ctx, const uint8_t peer[32], const char *address)
{
	struct node *n = ctx;
	size_t to = node_by_key(n->sim, peer);

	(void)address;
	if (!happens(n) || to == SIM_NOBODY)
		return;
	n->keeps[to] = true;
	net_link_dial(n->sim, n->at, to);
}

static void io_disconnect(void *ctx, const uint8_t peer[32])
{
	struct node *n = ctx;
	size_t to = node_by_key(n->sim, peer);

	if (n->doomed || n->muted || to == SIM_NOBODY)
		return;
	n->keeps[to] = false;
	link_cut(n->sim, n->at, to, true);
}

/* Agents are found by their keys here. */
static void found_by_key(void *ctx, const uint8_t peer[32], const char *address)
{
	(void)ctx;
	(void)peer;
	(void)address;
}

static void io_notify(void *ctx, const struct agent_notice *notice)
{
	struct node *n = ctx;

	if (n->muted || n->doomed)
		return;
	sim_log(n->sim, "%zu: notice %d code %d: %s", n->at, (int)notice->kind, notice->code,
		notice->text);
	check_notice(n, notice);
}

static void io_draw(void *ctx, void *out, size_t len)
{
	struct node *n = ctx;
	uint8_t *at = out;

	for (; len > 0; len--)
		*at++ = (uint8_t)(rng_u64(&n->draw) >> 33);
}

void shell_init(struct node *n)
{
	n->io = (struct agent_io){ .ctx = n,
				   .send = io_send,
				   .commit = io_commit,
				   .start_job = io_start_job,
				   .set_timer = io_set_timer,
				   .cancel_timer = io_cancel_timer,
				   .connect = io_connect,
				   .disconnect = io_disconnect,
				   .move = found_by_key,
				   .notify = io_notify,
				   .read_entries = io_read_entries,
				   .draw = io_draw,
				   .scored = sim_scores_told };
}

static bool reaches_disk(struct sim *s)
{
	return s->o.once.effect != 0 ? s->o.once.on_disk : rng_below(&s->rng, 2) != 0;
}

/* The process is gone.  Of the batches under way the first ones may be on disk.
 * Jobs are given back to a core that nobody hears, so that memory is freed. */
void shell_drop(struct node *n, bool some_reach_disk)
{
	struct agent_event stop = { .kind = AGENT_EVENT_STOP, .now_ms = n->sim->now_ms };

	n->muted = true;
	while (n->n_commits > 0 && some_reach_disk && reaches_disk(n->sim))
		apply_first(n);
	while (n->n_commits > 0)
		store_batch_release(&n->commits[--n->n_commits].batch);
	store_batch_release(&n->late);
	n->commit_ms = 0;
	agent_core_event(n->core, &stop);
	while (n->n_jobs > 0) {
		struct agent_event e = { .kind = AGENT_EVENT_JOB_DONE,
					 .now_ms = n->sim->now_ms,
					 .job = n->jobs[--n->n_jobs] };

		e.job->status = ERR_CANCELED;
		agent_core_event(n->core, &e);
	}
	agent_core_free(n->core);
	n->core = NULL;
	n->scribble = NULL;
	sim_rounds_forget_life(n);
	n->muted = false;
}
