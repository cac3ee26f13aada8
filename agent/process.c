#include "agent/process.h"

#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <uv.h>

#include "agent/admin.h"
#include "agent/alone.h"
#include "agent/command.h"
#include "agent/control.h"
#include "agent/counting.h"
#include "agent/events.h"
#include "agent/core/core.h"
#include "agent/figures.h"
#include "agent/folder.h"
#include "agent/invites.h"
#include "agent/listen.h"
#include "agent/log_limit.h"
#include "agent/newcomers.h"
#include "agent/reload.h"
#include "agent/report.h"
#include "agent/signals.h"
#include "agent/start.h"
#include "agent/steps.h"
#include "agent/store_thread.h"
#include "agent/supervisor.h"
#include "base/file.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/secret.h"
#include "dp/mechanism.h"
#include "net/gate.h"
#include "net/ident.h"
#include "net/uv/hub.h"
#include "net/uv/must.h"
#include "store/json.h"

enum { TICK_MS = 200, RETRY_MAX_MS = 15000, TRIM_EVERY_MS = 3600000, STRANGER_MS = 5000 };
enum { STATUS_REFRESH_MS = 10000, GUEST_REFRESH_MS = 1000 };

struct process {
	const struct process_options *options;
	struct signals *signals; /* between this run and the next */
	struct events *events;	 /* likewise */
	struct folder folder;
	struct start start;
	struct roster roster;
	struct invites invites;
	struct newcomers newcomers;
	uv_loop_t loop;
	struct agent_core *core;
	struct agent_io io;
	struct net_hub *hub;
	struct store_thread *store_thread;
	struct control *control;
	struct timer {
		uv_timer_t handle;
		struct process *of;
		enum agent_timer which;
	} timers[AGENT_TIMERS];
	uv_timer_t tick;
	uv_signal_t interrupt, terminate, hangup;
	bool has_psk;
	uint8_t psk[32];
	int64_t started_ms;
	uint64_t busy_ms;     /* loop time when there was last something to do */
	char *shown;	      /* what the status file says, without its time */
	uint64_t shown_ms;    /* loop time when it was written */
	size_t jobs;	      /* on the workers */
	bool pricing;	      /* so is what labels have cost */
	uint64_t stranger_ms; /* for the log: see log_stranger() */
	size_t strangers_untold;
	uint64_t trimmed_ms; /* when the roster was last looked through */
	struct log_limit log;
	struct figures figures;
	char handed[NET_HUB_HOST + 9]; /* where the service manager's socket is; "": none */
	char where[PROCESS_WHERE_MAX]; /* of the guest; "": it is shown nothing */
	uint64_t guest_ms;	       /* loop time when it was last shown something */
	bool changed, stopping, closing;
	bool again; /* with agent.yaml as it was read for it, when this run has ended */
	struct buf next_yaml;
	struct err failed;   /* why the agent stops by itself */
	char *floor_warning; /* while the best score is below counting; NULL: it is not */
	bool floor_told;
	struct counting counting; /* of what this run began with */
	/* The arm without partners (agent/alone.h), with federation.control. */
	struct arm {
		uv_work_t req;
		struct alone *alone;  /* NULL: not opened yet, or there is nothing to begin from */
		struct agent_job job; /* of the unit under way */
		bool opening, opened, running, saving;
		int status;	 /* of the last unit, and of saving it */
		uint64_t target; /* epochs of the federated arm */
		uint64_t unit;	 /* of the unit under way */
		/* for who asks, while a unit runs */
		uint64_t epochs;
		double score;
	} arm;
};

static int64_t wall_ms(void)
{
	uv_timeval64_t t;

	uv_must(uv_gettimeofday(&t));
	return t.tv_sec * 1000 + t.tv_usec / 1000;
}

/* ---- what the owner hears ---- */

/* A line of the log, and an event of this kind (agent/events.h). */
static void say_event(struct process *p, const char *kind, enum log_level level, const char *fmt,
		      ...) __attribute__((format(printf, 4, 5)));

static void say_event(struct process *p, const char *kind, enum log_level level, const char *fmt,
		      ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	log_at(level, "%s", text);
	events_add(p->events, wall_ms(), kind, text);
}

/* ---- events in ---- */

static void post(struct process *p, struct agent_event *event)
{
	uv_update_time(&p->loop);
	event->now_ms = uv_now(&p->loop);
	event->wall_ms = wall_ms();
	agent_core_event(p->core, event);
	p->changed = true;
}

static void post_plain(struct process *p, enum agent_event_kind kind)
{
	post(p, &(struct agent_event){ .kind = kind });
}

static void post_link(struct process *p, enum agent_event_kind kind, const uint8_t key[AGENT_KEY])
{
	struct agent_event event = { .kind = kind, .called = net_hub_called(p->hub, key) };

	memcpy(event.peer, key, AGENT_KEY);
	post(p, &event);
}

static void post_down(struct process *p, const uint8_t key[AGENT_KEY], int status)
{
	struct agent_event event = { .kind = AGENT_EVENT_LINK_DOWN, .status = status };

	memcpy(event.peer, key, AGENT_KEY);
	post(p, &event);
}

static void post_added(struct process *p, const struct store_peer *peer)
{
	struct agent_event event = { .kind = AGENT_EVENT_PEER_ADDED,
				     .name = peer->name,
				     .address = peer->address };

	memcpy(event.peer, peer->key, AGENT_KEY);
	memcpy(event.sign, peer->sign_key, AGENT_KEY);
	post(p, &event);
}

static void stop(struct process *p)
{
	if (p->stopping)
		return;
	p->stopping = true;
	atomic_store(&p->arm.job.cancel, true);
	counting_cancel(&p->counting);
	say_event(p, "stop", LOG_INFO, "stopping");
	if (p->again)
		supervisor_reloading();
	else
		supervisor_stopping();
	post_plain(p, AGENT_EVENT_STOP);
}

/* For good: a new start that was under way (on_hangup()) does not come. */
static void end(struct process *p)
{
	p->again = false;
	if (p->stopping)
		supervisor_stopping();
	stop(p);
}

static void fail(struct process *p, int code, const char *text)
{
	if (p->failed.code == 0)
		err_set(&p->failed, code, "%s", text);
	say_event(p, "trouble", LOG_ERROR, "%s", text);
}

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
		fail(p, status, e->text);
	store_batch_release(&c->batch);
	free(c);
	post(p, &event);
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
	post(r->of, &event);
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

/* Who waits for a write, and what the owner has decided by it: both hear when it is on disk. */
struct asker {
	struct control_call *call; /* NULL: nobody */
	json_t *reply;
	char *decision; /* for the log, by free(); NULL: none */
};

/* Of the write for it. */
static void answer_asker(struct process *p, struct asker *a, int status, const char *why)
{
	if (status == 0 && a->decision != NULL)
		say_event(p, "owner", LOG_INFO, "the owner said: %s", a->decision);
	if (a->call != NULL)
		control_reply(a->call, a->reply, status, why);
	free(a->decision);
}

/* A decision counts in memory before it is written, and an agent that went on would live by one
 * that its next start does not know.  So it ends, as of a commit that has failed. */
static void end_undecided(struct process *p, struct asker *a, int status, const char *why)
{
	char *text = mem_printf("%s; so nothing is decided, and the agent stops: free the disk or "
				"repair the store, then start it again",
				why);

	if (p->failed.code == 0)
		fail(p, status, text);
	answer_asker(p, a, status, text);
	free(text);
	end(p);
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
		end_undecided(c->of, &c->asker, status, e->text);
	else
		answer_asker(c->of, &c->asker, status, e->text);
	store_batch_release(&c->batch);
	free(c);
}

/* The contents of the batch and of asker, which may be NULL, are taken over. */
static void put_chore(struct process *p, struct store_batch *batch, const struct asker *asker)
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
static void add_trimmed(struct process *p, struct store_batch *b)
{
	uint8_t key[STORE_KEY];

	while (roster_trim(&p->roster, wall_ms(), key))
		store_batch_unpeer(b, key);
}

static void trim_roster(struct process *p)
{
	struct store_batch b = { 0 };

	p->trimmed_ms = uv_now(&p->loop);
	add_trimmed(p, &b);
	if (b.n > 0)
		put_chore(p, &b, NULL);
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
	post(p, &event);
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

static void look_at_prices(struct process *p, struct agent_status *s)
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

/* ---- timers, chance ---- */

static void on_timer(uv_timer_t *h)
{
	struct timer *t = h->data;

	post(t->of, &(struct agent_event){ .kind = AGENT_EVENT_TIMER, .timer = t->which });
}

static void io_set_timer(void *ctx, enum agent_timer which, uint64_t delay_ms)
{
	struct process *p = ctx;

	uv_update_time(&p->loop);
	if (!uv_is_closing((uv_handle_t *)&p->timers[which].handle))
		uv_must(uv_timer_start(&p->timers[which].handle, on_timer, delay_ms, 0));
}

static void io_cancel_timer(void *ctx, enum agent_timer which)
{
	uv_must(uv_timer_stop(&((struct process *)ctx)->timers[which].handle));
}

/* ---- links ---- */

static int io_send(void *ctx, const uint8_t peer[AGENT_KEY], const uint8_t *bytes, size_t n)
{
	struct process *p = ctx;

	return net_hub_send(p->hub, peer, bytes, n);
}

/* The port; 0: it cannot be dialled. */
static uint16_t dial_place(const char *address, char host[256])
{
	uint16_t port = 0;
	struct err e = { 0 };

	if (address != NULL && *address != '\0' && config_address(address, host, &port, &e) != 0)
		log_warn("%s", e.text);
	return port;
}

static void io_connect(void *ctx, const uint8_t peer[AGENT_KEY], const char *address)
{
	struct process *p = ctx;
	char host[256] = "";
	uint16_t port = dial_place(address, host);
	struct err e = { 0 };

	if (invites_ticket(&p->invites, peer) != NULL)
		net_hub_show(p->hub, peer, invites_ticket(&p->invites, peer));
	if (net_hub_peer(p->hub, peer, port != 0 ? host : NULL, port, &e) != 0)
		log_warn("%s", e.text);
}

static void io_move(void *ctx, const uint8_t peer[AGENT_KEY], const char *address)
{
	struct process *p = ctx;
	char host[256] = "";
	uint16_t port = dial_place(address, host);

	net_hub_moved(p->hub, peer, host, port);
}

/* The core takes the link for down from here on and asks for it again if it wants it. */
static void io_disconnect(void *ctx, const uint8_t peer[AGENT_KEY])
{
	struct process *p = ctx;
	const struct store_peer *r = roster_find(&p->roster, peer);
	bool partner = r != NULL && r->status == STORE_LISTED;
	const char *why;

	if (agent_core_shuts_out(p->core, peer, &why))
		net_hub_forget(p->hub, peer, "it broke the protocol");
	else
		net_hub_forget(p->hub, peer, partner ? "not for now" : "not a partner any more");
}

/* Somebody who shows the federation's secret and a ticket that is good is in, if the owner says so.
 */
static bool may_invite_himself(const struct process *p)
{
	return p->folder.config.federation.accept == CONFIG_ACCEPT_INVITED && p->has_psk;
}

static bool hub_allow(void *ctx, const uint8_t key[NET_KEY_BYTES],
		      const uint8_t ticket[NET_TICKET_BYTES])
{
	struct process *p = ctx;
	bool invited = may_invite_himself(p) && roster_listed(&p->roster) < AGENT_PEERS_MAX &&
		       invites_good(&p->invites, ticket, wall_ms()) != NULL;
	const char *why;

	return !agent_core_shuts_out(p->core, key, &why) &&
	       roster_lets_in(&p->roster, key, invited);
}

static enum net_pair hub_pair(void *ctx, const uint8_t key[NET_KEY_BYTES],
			      const struct net_greet_card *card, uint8_t pair[NET_PAIR_SECRET])
{
	const struct process *p = ctx;
	const struct invites *v = &p->invites;
	const uint8_t *known = invites_dial(v, key);

	if (card == NULL && known == NULL)
		return NET_PAIR_NONE;
	if (card == NULL) {
		memcpy(pair, known, NET_PAIR_SECRET);
		return NET_PAIR_THIS;
	}
	if (sodium_is_zero(card->pair_id, NET_PAIR_ID))
		return invites_proven(v, key) ? NET_PAIR_OTHER : NET_PAIR_NONE;
	return invites_named(v, p->folder.identity->key, key, card->pair_id, pair) ? NET_PAIR_THIS
										   : NET_PAIR_OTHER;
}

/* From now on no link of this pair goes without its secret. */
static void prove_pair(struct process *p, const uint8_t key[NET_KEY_BYTES],
		       const struct net_greet_card *card)
{
	struct store_pair pair;
	struct store_batch b = { 0 };

	if (invites_prove(&p->invites, p->folder.identity->key, key, card->pair_id, &pair)) {
		store_batch_pair(&b, &pair);
		put_chore(p, &b, NULL);
	}
	sodium_memzero(&pair, sizeof(pair));
}

static const char *name_of(const struct process *p, const uint8_t key[NET_KEY_BYTES],
			   char id[NET_KEY_TEXT])
{
	const struct store_peer *r = roster_find(&p->roster, key);

	net_key_format(key, id);
	return r != NULL && r->name[0] != '\0' ? r->name : id;
}

static bool is_listed_now(const struct process *p, const uint8_t key[NET_KEY_BYTES])
{
	const struct store_peer *r = roster_find(&p->roster, key);

	return r != NULL && r->status == STORE_LISTED;
}

static void partner_up(struct process *p, const uint8_t key[NET_KEY_BYTES],
		       const struct net_greet_card *card)
{
	char id[NET_KEY_TEXT];

	prove_pair(p, key, card);
	log_limit_line(&p->log, key, NET_KEY_BYTES, "up", LOG_INFO, uv_now(&p->loop),
		       "link to %s is up", name_of(p, key, id));
	post_link(p, AGENT_EVENT_LINK_UP, key);
}

/* ---- newcomers (agent/newcomers.h) ---- */

/* Its invitation, if it has one here, is as good as before. */
static void refuse_newcomer(struct process *p, const uint8_t key[NET_KEY_BYTES], const char *why)
{
	struct newcomer x;
	char id[NET_KEY_TEXT];

	if (!newcomers_take(&p->newcomers, key, &x))
		return;
	net_key_format(x.key, id); /* key may have been that of the list */
	figures_refuse(&p->figures, FIGURES_NEWCOMER);
	log_limit_line(&p->log, x.card.ticket, sizeof(x.card.ticket), "newcomer", LOG_WARN,
		       uv_now(&p->loop), "%s came with an invitation and was refused: it %s", id,
		       why);
	net_hub_refuse(p->hub, x.key, why);
	newcomers_let_go(&x);
}

static void newcomer_up(struct process *p, const uint8_t key[NET_KEY_BYTES],
			const struct net_greet_card *card)
{
	struct newcomer *x = newcomers_up(&p->newcomers, key, card, uv_now(&p->loop));

	if (x == NULL)
		net_hub_refuse(p->hub, key, "too many newcomers at a time: come again");
	else if (x->joins)
		net_hub_pause(p->hub, key, true);
}

static void newcomer_down(struct process *p, struct newcomer *x)
{
	struct newcomer gone;

	x->up = false;
	if (x->joins || !newcomers_take(&p->newcomers, x->key, &gone))
		return;
	net_hub_refuse(p->hub, gone.key, "");
	newcomers_let_go(&gone);
}

static int meet_newcomer(struct process *p, const struct newcomer *x, const uint8_t *bytes,
			 size_t n, struct store_peer *peer, struct store_invitation **i,
			 struct err *e)
{
	struct agent_newcomer met;
	int rc = agent_core_meet(p->core, x->key, bytes, n, &met, e);

	if (rc != 0)
		return rc;
	*i = invites_good(&p->invites, x->card.ticket, wall_ms());
	if (*i == NULL || !roster_lets_in(&p->roster, x->key, true) ||
	    roster_sign_key_taken(&p->roster, x->key, met.sign))
		return err_set(e, ERR_REFUSED, "came after the invitation was used or ended");
	if (roster_listed(&p->roster) >= AGENT_PEERS_MAX)
		return err_set(e, ERR_REFUSED, "came when there were as many partners as can be");
	*peer = (struct store_peer){ .status = STORE_LISTED, .seen_ms = wall_ms() };
	memcpy(peer->key, x->key, STORE_KEY);
	memcpy(peer->sign_key, met.sign, STORE_KEY);
	snprintf(peer->name, sizeof(peer->name), "%s", met.name);
	return 0;
}

static void make_partner(struct process *p, struct newcomer *x, const struct store_peer *peer,
			 struct store_invitation *i);

static void newcomer_says(struct process *p, struct newcomer *x, const uint8_t *bytes, size_t n)
{
	struct store_invitation *i = NULL;
	struct store_peer peer;
	struct err e = { 0 };

	if (!x->joins && meet_newcomer(p, x, bytes, n, &peer, &i, &e) != 0)
		refuse_newcomer(p, x->key, e.text);
	else if (!newcomers_keep(x, bytes, n))
		net_hub_forget(p->hub, x->key, "sent too much before it was answered");
	else if (!x->joins)
		make_partner(p, x, &peer, i);
}

static void look_at_newcomers(struct process *p)
{
	struct newcomer *x;

	while ((x = newcomers_late(&p->newcomers, uv_now(&p->loop))) != NULL)
		refuse_newcomer(p, x->key, "said no HELLO in time");
}

/* It is a partner: what it has said goes to the core now. */
static void let_newcomer_in(struct process *p, const uint8_t key[NET_KEY_BYTES])
{
	struct newcomer x;
	struct queued_message *m;

	if (!newcomers_take(&p->newcomers, key, &x))
		return;
	if (x.up) {
		net_hub_pause(p->hub, key, false);
		partner_up(p, key, &x.card);
	}
	while (x.up && (m = message_queue_take(&x.said)) != NULL) {
		struct agent_event event = { .kind = AGENT_EVENT_MESSAGE,
					     .bytes = m->bytes,
					     .n = m->n };

		memcpy(event.peer, key, AGENT_KEY);
		post(p, &event);
		free(m);
	}
	newcomers_let_go(&x);
}

/* ---- links come and go ---- */

static void hub_up(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	struct process *p = ctx;
	struct net_greet_card card;

	net_hub_shown(p->hub, key, &card);
	if (is_listed_now(p, key) && newcomers_find(&p->newcomers, key) == NULL)
		partner_up(p, key, &card);
	else
		newcomer_up(p, key, &card);
}

static void hub_down(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why)
{
	struct process *p = ctx;
	struct newcomer *x = newcomers_find(&p->newcomers, key);
	char id[NET_KEY_TEXT];

	if (x != NULL) {
		newcomer_down(p, x);
		return;
	}
	log_limit_line(&p->log, key, NET_KEY_BYTES, "down", LOG_INFO, uv_now(&p->loop),
		       "link to %s is down: %s", name_of(p, key, id), why);
	post_down(p, key, code);
}

static void hub_message(void *ctx, const uint8_t key[NET_KEY_BYTES], const uint8_t *bytes,
			size_t len)
{
	struct process *p = ctx;
	struct newcomer *x = newcomers_find(&p->newcomers, key);
	struct agent_event event = { .kind = AGENT_EVENT_MESSAGE, .bytes = bytes, .n = len };

	if (x != NULL) {
		newcomer_says(p, x, bytes, len);
		return;
	}
	memcpy(event.peer, key, AGENT_KEY);
	post(p, &event);
}

static void hub_writable(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	post_link(ctx, AGENT_EVENT_WRITABLE, key);
}

static void hub_failed(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why,
		       uint64_t retry_ms)
{
	struct process *p = ctx;
	char id[NET_KEY_TEXT];

	(void)code;
	log_limit_line(&p->log, key, NET_KEY_BYTES, "failed", LOG_INFO, uv_now(&p->loop),
		       "no link to %s: %s; again in %.1f s", name_of(p, key, id), why,
		       (double)retry_ms / 1000);
}

/* A few at once, then one now and then: `fkge peer pending` has them all. */
static void log_stranger(struct process *p, const uint8_t key[NET_KEY_BYTES], const char *address,
			 bool waits)
{
	uint64_t now = uv_now(&p->loop);
	char id[NET_KEY_TEXT], more[48] = "";

	if (p->stranger_ms < now)
		p->stranger_ms = now;
	if (p->stranger_ms > now + (uint64_t)8 * STRANGER_MS) {
		p->strangers_untold++;
		return;
	}
	p->stranger_ms += STRANGER_MS;
	if (p->strangers_untold > 0)
		snprintf(more, sizeof(more), " (and %zu more before it)", p->strangers_untold);
	p->strangers_untold = 0;
	net_key_format(key, id);
	say_event(p, "stranger", LOG_WARN, "a key that is not listed was refused, from %s: %s%s%s",
		  address, id, waits ? "; to let it in: fkge peer accept" : "", more);
}

static void hub_stranger(void *ctx, const uint8_t key[NET_KEY_BYTES], const char *address)
{
	struct process *p = ctx;
	char source[NET_SOURCE_TEXT];
	struct store_batch b = { 0 };
	const struct ledger_rotation *replaced;
	enum roster_knocked how;
	char id[NET_KEY_TEXT];
	const char *why;

	if (agent_core_shuts_out(p->core, key, &why)) {
		figures_refuse(&p->figures, FIGURES_SHUT_OUT);
		log_limit_line(&p->log, key, NET_KEY_BYTES, "shut out", LOG_WARN, uv_now(&p->loop),
			       "%s was refused, from %s: it %s", name_of(p, key, id), address, why);
		return;
	}
	figures_refuse(&p->figures, FIGURES_NOT_LISTED);
	replaced = ledger_rotations_proved(&p->roster.rotations, key);
	if (replaced != NULL) {
		log_limit_line(&p->log, key, NET_KEY_BYTES, "replaced", LOG_WARN, uv_now(&p->loop),
			       "a key was refused, from %s, that its owner has replaced: %s",
			       address, name_of(p, key, id));
		return;
	}
	net_gate_source_of(address, source);
	how = roster_knock(&p->roster, key, source, wall_ms());
	if (how != KNOCK_AGAIN)
		log_stranger(p, key, address, how == KNOCK_NEW);
	if (how != KNOCK_KNOWN)
		store_batch_peer(&b, roster_find(&p->roster, key));
	add_trimmed(p, &b);
	if (b.n > 0)
		put_chore(p, &b, NULL);
	p->changed = true;
}

static void hub_slowed(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	struct process *p = ctx;
	char id[NET_KEY_TEXT];

	log_limit_line(&p->log, key, NET_KEY_BYTES, "slowed", LOG_WARN, uv_now(&p->loop),
		       "%s sends more than its share of this agent's time can take: it is read "
		       "from more slowly",
		       name_of(p, key, id));
}

static void hub_rejected(void *ctx, const char *address, int code, const char *why)
{
	struct process *p = ctx;
	char source[NET_SOURCE_TEXT]; /* who has one address of a network often has them all */

	(void)code;
	figures_refuse(&p->figures, FIGURES_GREETING);
	net_gate_source_of(address, source);
	log_limit_line(&p->log, source, strlen(source), "rejected", LOG_WARN, uv_now(&p->loop),
		       "a connection from %s was refused: %s", address, why);
}

/* ---- notices ---- */

/* The core has revoked it, and writes that down. */
static void put_out(struct process *p, const uint8_t key[AGENT_KEY])
{
	struct store_peer *r = roster_find(&p->roster, key);

	if (r == NULL)
		return;
	r->status = STORE_REVOKED;
	agent_core_catch_up(p->core, r);
}

/* Trouble that a peer can bring about again and again.  Its code may be the peer's, too. */
static void log_trouble(struct process *p, const struct agent_notice *n)
{
	bool session = n->kind == AGENT_NOTICE_SESSION;

	log_limit_line(&p->log, n->peer, n->peer != NULL ? AGENT_KEY : 0, n->cause,
		       session ? LOG_INFO : LOG_WARN, uv_now(&p->loop), "%s", n->text);
}

/* Its text is a name alone, and a partner can think of ever new ones. */
static void log_member(struct process *p, const struct agent_notice *n)
{
	char id[NET_KEY_TEXT];

	log_limit_line(&p->log, n->peer, AGENT_KEY, "member", LOG_INFO, uv_now(&p->loop),
		       "%s knows %s, who is not listed here (fkge peer introduced)",
		       name_of(p, n->peer, id), n->text);
}

/* From the loop it closes, not from inside the core: see on_tick(). */
static void note_stopped(struct process *p, int code)
{
	p->closing = true;
	atomic_store(&p->arm.job.cancel, true);
	counting_cancel(&p->counting);
	if (code != 0 && p->failed.code == 0)
		err_set(&p->failed, ERR_FAIL, "the agent has stopped by itself: its log says why");
}

/* The text names the peer itself. */
static void io_notify(void *ctx, const struct agent_notice *n)
{
	static const char *const kinds[] = {
		[AGENT_NOTICE_STATE] = "state",	    [AGENT_NOTICE_IMPROVED] = "improved",
		[AGENT_NOTICE_SESSION] = "session", [AGENT_NOTICE_STRANGER] = "stranger",
		[AGENT_NOTICE_TROUBLE] = "trouble", [AGENT_NOTICE_OUT] = "revoked",
	};
	struct process *p = ctx;
	enum log_level level = n->kind == AGENT_NOTICE_OUT     ? LOG_WARN
			       : n->kind == AGENT_NOTICE_STATE ? LOG_DEBUG
							       : LOG_INFO;

	p->changed = true;
	if (n->kind == AGENT_NOTICE_SESSION)
		figures_session(&p->figures, n->code);
	if (n->kind == AGENT_NOTICE_OUT)
		put_out(p, n->peer);
	if (n->kind == AGENT_NOTICE_MEMBER)
		log_member(p, n);
	else if (n->kind == AGENT_NOTICE_TROUBLE ||
		 (n->kind == AGENT_NOTICE_SESSION && n->code != 0))
		log_trouble(p, n);
	else if (n->kind == AGENT_NOTICE_STATE)
		log_at(level, "%s", n->text);
	else if (n->kind == AGENT_NOTICE_STOPPED) /* the log says so when it is true: run() */
		events_add(p->events, wall_ms(), "stop", n->text);
	else
		say_event(p, kinds[n->kind], level, "%s", n->text);
	if (n->kind == AGENT_NOTICE_STOPPED)
		note_stopped(p, n->code);
}

/* ---- the owner ---- */

/* By counting; NAN: not known yet. */
static double counted_floor(const struct process *p)
{
	double floor = agent_learner_floor(p->start.learner);

	return isnan(floor) ? p->counting.mrr : floor;
}

/* A socket that was handed over is where it is, whatever the settings say. */
static const char *listens_at(const struct process *p)
{
	return p->handed[0] != '\0' ? p->handed : p->folder.config.listen;
}

static json_t *status_of(const struct process *p)
{
	const struct report_parts parts = { .core = p->core,
					    .folder = &p->folder,
					    .roster = &p->roster,
					    .hub = p->hub,
					    .listen = listens_at(p),
					    .port = net_hub_port(p->hub),
					    .http = p->where,
					    .started_ms = p->started_ms,
					    .newest_event = events_last(p->events),
					    .control = p->folder.config.federation.control,
					    .alone = p->arm.alone != NULL,
					    .alone_epochs = p->arm.epochs,
					    .alone_score = p->arm.score,
					    .floor = counted_floor(p),
					    .floor_warning = p->floor_warning != NULL
								     ? p->floor_warning
								     : "" };

	return report_json(&parts);
}

static void end_partnership(struct process *p, const uint8_t key[STORE_KEY])
{
	struct store_peer *r = roster_find(&p->roster, key);

	if (r != NULL)
		agent_core_catch_up(p->core, r);
	post_link(p, AGENT_EVENT_PEER_REVOKED, key);
}

/* A new partner: first what we call things toward it, read where the store is; then
 * the core is told; then, when that is on disk, the owner has his answer.  A newcomer is on disk
 * before the core is told, with the use of its invitation and the pair's secret, in one
 * transaction, which comes last: so what fails has written nothing. */
struct admission {
	struct store_thread_task task;
	struct process *of;
	struct store_peer peer, before; /* before: as the roster had it */
	bool known;			/* ... if it had */
	struct store_batch batch;
	struct start_aliases aliases;
	struct asker asker;		  /* without a call: a newcomer */
	uint8_t invitation[STORE_DIGEST]; /* of a newcomer */
};

static int read_admission(struct store *s, struct store_thread_task *t, struct err *e)
{
	struct admission *a = (struct admission *)t;
	int rc = start_read_aliases(&a->aliases, s, a->of->start.graph, a->peer.key, e);

	return rc != 0 || a->batch.n == 0 ? rc : store_apply(s, &a->batch, e);
}

/* A newcomer that is no partner so far, and about to be one: the core does not know it. */
static bool newcomer_joins(struct process *p, const uint8_t key[STORE_KEY])
{
	const struct newcomer *x = newcomers_find(&p->newcomers, key);

	return x != NULL && x->joins;
}

static void admit_partner(struct process *p, struct admission *a)
{
	bool listed = is_listed_now(p, a->peer.key);

	if (!listed && newcomer_joins(p, a->peer.key)) { /* and carry_out() has written that */
		refuse_newcomer(p, a->peer.key, "was taken off the list meanwhile");
		return;
	}
	start_use_aliases(&p->start, &a->aliases);
	post_added(p, &a->peer);
	if (listed)
		let_newcomer_in(p, a->peer.key);
	else /* its owner has changed his mind meanwhile */
		end_partnership(p, a->peer.key);
}

/* It is not on disk, so it was not; what its owner has said meanwhile stands. */
static void undo_admission(struct process *p, const struct admission *a)
{
	if (is_listed_now(p, a->peer.key) && a->known)
		roster_put(&p->roster, &a->before);
	else if (is_listed_now(p, a->peer.key))
		roster_remove(&p->roster, a->peer.key);
}

static void refuse_admission(struct process *p, const struct admission *a, const struct err *e)
{
	struct invites *v = &p->invites;

	log_error("%s", e->text);
	for (size_t k = 0; k < v->n_made; k++)
		if (memcmp(v->made[k].hash, a->invitation, STORE_DIGEST) == 0)
			v->made[k].used--;
	invites_unpair(v, a->peer.key);
	refuse_newcomer(p, a->peer.key, "could not be written down here");
}

static void admission_done(struct store_thread_task *t, int status, const struct err *e)
{
	struct admission *a = (struct admission *)t;
	struct process *p = a->of;

	if (status == 0)
		admit_partner(p, a);
	else
		undo_admission(p, a);
	if (status != 0 && a->asker.call == NULL)
		refuse_admission(p, a, e);
	else if (status != 0 && a->batch.n > 0) /* what came with it is not undone */
		end_undecided(p, &a->asker, status, e->text);
	else if (status != 0)
		answer_asker(p, &a->asker, status, e->text);
	else if (a->asker.call != NULL)
		put_chore(p, &(struct store_batch){ 0 }, &a->asker);
	start_aliases_release(&a->aliases);
	store_batch_release(&a->batch);
	free(a);
}

static struct admission *admission_of(struct process *p, const struct store_peer *peer,
				      const struct store_peer *before)
{
	struct admission *a = mem_array(1, sizeof(*a));

	a->task = (struct store_thread_task){ read_admission, admission_done, STORE_THREAD_WRITES };
	a->of = p;
	a->peer = *peer;
	a->known = before != NULL;
	if (before != NULL)
		a->before = *before;
	return a;
}

/* Its use, its record and the pair's secret are written together; it hears from us after that. */
static void make_partner(struct process *p, struct newcomer *x, const struct store_peer *peer,
			 struct store_invitation *i)
{
	struct admission *a = admission_of(p, peer, roster_find(&p->roster, peer->key));
	struct store_pair pair;
	char id[NET_KEY_TEXT], name[INVITES_ID_TEXT];

	memcpy(a->invitation, i->hash, sizeof(a->invitation));
	i->used++;
	store_batch_invitation(&a->batch, i);
	store_batch_peer(&a->batch, peer);
	if (invites_prove(&p->invites, p->folder.identity->key, x->key, x->card.pair_id, &pair))
		store_batch_pair(&a->batch, &pair);
	sodium_memzero(&pair, sizeof(pair));
	roster_put(&p->roster, peer);
	x->joins = true;
	net_hub_pause(p->hub, x->key, true);
	net_key_format(x->key, id);
	invites_id(i, name);
	say_event(p, "peer", LOG_INFO,
		  "%s is a partner by invitation %s, which is good for %u more", id, name,
		  i->uses - i->used);
	store_thread_put(p->store_thread, &a->task);
}

/* The changes by the owner's request, kept until the request is through. */
struct change {
	struct process *of;
	struct store_batch batch; /* beside the peer */
	bool any, forgotten, trusts;
	uint8_t trusted[STORE_KEY]; /* with trusts */
	struct store_peer peer, before;
	bool known; /* before: it was in the roster */
};

/* Before anything is kept: the core would say it in its notices alone, when all has been. */
static int core_may_list(void *ctx, const struct store_peer *peer, struct err *e)
{
	const struct change *c = ctx;

	return agent_core_may_list(c->of->core, peer, e);
}

static int peer_changed(void *ctx, const struct store_peer *peer, const struct store_peer *before,
			struct err *e)
{
	struct change *c = ctx;

	(void)e;
	c->any = true;
	c->peer = *peer;
	c->known = before != NULL;
	if (before != NULL)
		c->before = *before;
	return 0;
}

static int peer_forgotten(void *ctx, const struct store_peer *peer, struct err *e)
{
	((struct change *)ctx)->forgotten = true;
	return peer_changed(ctx, peer, peer, e);
}

static int peer_trusted(void *ctx, const struct store_judgement *j, struct err *e)
{
	struct change *c = ctx;

	(void)e;
	c->trusts = true;
	memcpy(c->trusted, j->peer, sizeof(c->trusted));
	return 0;
}

static int keep_beside(void *ctx, struct store_batch *b, struct err *e)
{
	(void)e;
	store_batch_move(&((struct change *)ctx)->batch, b);
	return 0;
}

static void ticket_held(void *ctx, const struct store_ticket *t)
{
	net_hub_show(((struct change *)ctx)->of->hub, t->peer, t->ticket);
}

/* The core writes the records of partners by itself; those of others are ours. */
static void carry_out(struct process *p, struct change *c, const struct asker *asker)
{
	struct store_batch b = { 0 };
	struct admission *a;

	if (c->any && c->peer.status == STORE_LISTED) {
		a = admission_of(p, &c->peer, c->known ? &c->before : NULL);
		a->asker = *asker;
		store_batch_move(&a->batch, &c->batch);
		store_thread_put(p->store_thread, &a->task);
		return;
	}
	store_batch_move(&b, &c->batch);
	if (c->trusts) /* the core commits it: before this batch */
		post_link(p, AGENT_EVENT_PEER_TRUSTED, c->trusted);
	if (c->forgotten) {
		store_batch_unpeer(&b, c->peer.key);
		post_link(p, AGENT_EVENT_PEER_FORGOTTEN, c->peer.key);
	} else if (c->any && c->peer.status == STORE_REVOKED && !newcomer_joins(p, c->peer.key)) {
		end_partnership(p, c->peer.key);
	} else if (c->any) {
		store_batch_peer(&b, &c->peer);
	}
	add_trimmed(p, &b);
	put_chore(p, &b, asker);
}

/* What the owner has decided, by free(); NULL: a question.  An invitation's line holds secrets. */
static char *decision_of(const json_t *request)
{
	static const char *const of_peer[] = { "accept", "reject", "revoke",
					       "forget", "add",	   "trust" };
	const char *what = json_string_value(json_object_get(request, "do"));
	const char *peer = json_string_value(json_object_get(request, "peer"));

	for (size_t i = 0; i < sizeof(of_peer) / sizeof(of_peer[0]); i++)
		if (strcmp(what, of_peer[i]) == 0)
			return mem_printf("%s %.80s", what, peer != NULL ? peer : "");
	if (strcmp(what, "invite") == 0 || strcmp(what, "uninvite") == 0 ||
	    strcmp(what, "join") == 0)
		return mem_strdup(what);
	return NULL;
}

static struct store_judgement *judgements_of(const struct process *p, size_t *n)
{
	struct store_judgement *all;
	struct agent_status s;

	agent_core_status(p->core, &s);
	all = mem_array(s.n_peers + 1, sizeof(*all));
	for (size_t i = 0; i < s.n_peers; i++)
		if (s.peer[i].judgement.judged > 0)
			all[(*n)++] = s.peer[i].judgement;
	agent_status_release(&s);
	return all;
}

static void answer_admin(struct process *p, struct control_call *call, const json_t *request)
{
	struct change change = { .of = p };
	struct admin a = { .folder = &p->folder,
			   .roster = &p->roster,
			   .invites = &p->invites,
			   .now_ms = wall_ms(),
			   .port = net_hub_port(p->hub),
			   .running = true,
			   .has_psk = p->has_psk,
			   .psk = p->psk,
			   .ctx = &change,
			   .may_list = core_may_list,
			   .changed = peer_changed,
			   .forgotten = peer_forgotten,
			   .trusted = peer_trusted,
			   .keep = keep_beside,
			   .ticket_held = ticket_held };
	json_t *reply = json_object();
	struct err e = { 0 };
	int rc;

	for (size_t i = 0; i < p->roster.n; i++)
		agent_core_catch_up(p->core, &p->roster.at[i]);
	a.judgements = judgements_of(p, &a.n_judgements);
	rc = admin_run(&a, request, reply, &e);
	free((void *)(uintptr_t)a.judgements);
	p->changed = true;
	if (rc != 0) {
		store_batch_release(&change.batch);
		control_reply(call, reply, rc, e.text);
	} else { /* answered once it is on disk */
		carry_out(p, &change, &(struct asker){ call, reply, decision_of(request) });
	}
}

static int read_again(struct process *p, bool restart, json_t *reply, struct err *e);

static void answer_reload(struct process *p, struct control_call *call, bool restart)
{
	json_t *reply = json_object();
	struct err e = { 0 };
	int rc = read_again(p, restart, reply, &e);

	control_reply(call, reply, rc, e.text);
}

/* ---- steps of queries ---- */

static void answer_step_request(struct process *p, struct control_call *call, const json_t *request)
{
	struct agent_ask ask;
	struct err e = { 0 };
	int rc = steps_read(&ask, request, graph_vocab_count(p->start.graph->entities), &e);

	if (rc != 0) {
		control_reply(call, json_object(), rc, e.text);
		return;
	}
	ask.ticket = (uint64_t)(uintptr_t)call; /* it waits for io_answered() */
	post(p, &(struct agent_event){ .kind = AGENT_EVENT_ASK, .ask = &ask });
	steps_release(&ask);
}

static void io_answered(void *ctx, uint64_t ticket, const struct agent_answer *answers, size_t n)
{
	(void)ctx;
	control_reply((struct control_call *)(uintptr_t)ticket, steps_json(answers, n), 0, NULL);
}

static void answer_scores_request(struct process *p, struct control_call *call,
				  const json_t *request)
{
	struct agent_score_ask ask;
	struct err e = { 0 };
	int rc = steps_scores_read(&ask, request, &e);

	if (rc != 0) {
		control_reply(call, json_object(), rc, e.text);
		return;
	}
	ask.ticket = (uint64_t)(uintptr_t)call; /* it waits for io_scored() */
	post(p, &(struct agent_event){ .kind = AGENT_EVENT_SCORE, .score = &ask });
	steps_scores_release(&ask);
}

static void io_scored(void *ctx, uint64_t ticket, const struct agent_scores *scores)
{
	(void)ctx;
	control_reply((struct control_call *)(uintptr_t)ticket, steps_scores_json(scores), 0, NULL);
}

static void on_request(void *ctx, struct control_call *call, const json_t *request)
{
	struct process *p = ctx;
	const char *what = json_string_value(json_object_get(request, "do"));

	if (what != NULL && strcmp(what, "stop") == 0) {
		control_reply(call, json_object(), 0, NULL);
		end(p);
	} else if (what != NULL && strcmp(what, "events") == 0) {
		events_ask(p->events, call,
			   (struct events_wish){
				   (uint64_t)json_integer_value(json_object_get(request, "after")),
				   json_integer_value(json_object_get(request, "run")),
				   json_is_true(json_object_get(request, "wait")) },
			   uv_now(&p->loop));
	} else if (what == NULL || p->stopping || p->closing) {
		control_reply(call, json_object(), what == NULL ? ERR_PROTO : ERR_BUSY,
			      what == NULL ? "a request has a member do" : "the agent is stopping");
	} else if (admin_knows(request)) {
		answer_admin(p, call, request);
	} else if (strcmp(what, "status") == 0) {
		control_reply(call, status_of(p), 0, NULL);
	} else if (strcmp(what, "reload") == 0) {
		answer_reload(p, call, json_is_true(json_object_get(request, "restart")));
	} else if (strcmp(what, "step") == 0) {
		answer_step_request(p, call, request);
	} else if (strcmp(what, "scores") == 0) {
		answer_scores_request(p, call, request);
	} else if (strcmp(what, "train") == 0) {
		post_plain(p, AGENT_EVENT_TRAIN);
		control_reply(call, json_object(), 0, NULL);
	} else if (strcmp(what, "resume") == 0) {
		post_plain(p, AGENT_EVENT_RESUME);
		put_chore(p, &(struct store_batch){ 0 },
			  &(struct asker){ .call = call, .reply = json_object() });
	} else {
		control_reply(call, json_object(), ERR_USAGE,
			      "this agent does not know that request");
	}
}

static void begin_closing(struct process *p);

/* ---- the arm without partners ---- */

static void arm_note(struct arm *a)
{
	a->epochs = alone_epochs(a->alone);
	a->score = alone_score(a->alone);
}

/* Where the store is. */
struct arm_opening {
	struct store_thread_task task;
	struct process *of;
	struct alone *alone;
};

static int open_arm(struct store *s, struct store_thread_task *t, struct err *e)
{
	struct arm_opening *o = (struct arm_opening *)t;

	return alone_open(&o->alone, &o->of->folder.config, o->of->start.graph, s, e);
}

static void arm_opened(struct store_thread_task *t, int status, const struct err *e)
{
	struct arm_opening *o = (struct arm_opening *)t;
	struct arm *a = &o->of->arm;

	if (status != 0)
		log_warn("federation.control: %s", e->text);
	a->opening = false;
	a->opened = true;
	a->alone = o->alone;
	if (a->alone != NULL) {
		arm_note(a);
		if (alone_anew(a->alone) != NULL)
			log_warn("federation.control: %s", alone_anew(a->alone));
	}
	free(o);
}

static void put_arm_opening(struct process *p)
{
	struct arm_opening *o = mem_array(1, sizeof(*o));

	o->task = (struct store_thread_task){ open_arm, arm_opened, STORE_THREAD_READS };
	o->of = p;
	p->arm.opening = true;
	store_thread_put(p->store_thread, &o->task);
}

static void run_arm(uv_work_t *req)
{
	struct arm *a = req->data;

	a->status = alone_unit(a->alone, a->unit, &a->job);
}

struct arm_saving {
	struct chore chore;
	struct process *of;
};

/* What is on disk is of an earlier unit, tables and epochs; the next start goes on from there. More
 * units now would put their epochs beside tables that have not had them. */
static void arm_saved(struct store_thread_task *t, int status, const struct err *e)
{
	struct arm_saving *s = (struct arm_saving *)t;

	s->of->arm.saving = false;
	if (status != 0) {
		s->of->arm.status = status;
		log_warn("federation.control: the tables without partners could not be saved and "
			 "are trained no further before the next start: %s",
			 e->text);
	}
	store_batch_release(&s->chore.batch);
	free(s);
}

static void arm_done(uv_work_t *req, int status)
{
	struct arm *a = req->data;
	struct process *p = (struct process *)((char *)a - offsetof(struct process, arm));
	struct arm_saving *s;

	(void)status;
	a->running = false;
	p->changed = true;
	if (a->status != 0 && a->status != ERR_CANCELED)
		log_warn("federation.control: training failed (%s)", err_text(a->status));
	if (a->status != 0)
		return;
	arm_note(a);
	s = mem_array(1, sizeof(*s));
	s->chore.task = (struct store_thread_task){ run_chore, arm_saved, STORE_THREAD_WRITES };
	s->of = p;
	alone_save(a->alone, wall_ms(), &s->chore.batch);
	a->saving = true;
	store_thread_put(p->store_thread, &s->chore.task);
}

static bool arm_behind(const struct process *p)
{
	const struct arm *a = &p->arm;

	return p->folder.config.federation.control && a->target > 0 && !p->stopping &&
	       !p->closing && (a->status == 0 || a->status == ERR_CANCELED) &&
	       (!a->opened || (a->alone != NULL && a->epochs < a->target));
}

/* When the agent has nothing to do. */
static void look_at_arm(struct process *p, const struct agent_status *s)
{
	struct arm *a = &p->arm;

	a->target = s->has_before ? s->epochs_since : 0;
	if (!arm_behind(p) || a->running || a->saving || a->opening || s->state == AGENT_BUSY ||
	    p->jobs > 0)
		return;
	if (!a->opened) {
		put_arm_opening(p);
		return;
	}
	a->unit = agent_core_unit(p->core, a->epochs);
	atomic_store(&a->job.cancel, false);
	a->running = true;
	a->req.data = a;
	uv_must(uv_queue_work(&p->loop, &a->req, run_arm, arm_done));
}

/* ---- the tick: status file, quiet, the end ---- */

/* When the status was written, and by whom: a reader tells from it whether the agent still runs. */
static void write_status_file(struct process *p, json_t *status)
{
	char when[32];
	struct err e = { 0 };
	char *text;
	time_t now = (time_t)(wall_ms() / 1000);
	struct tm tm;

	gmtime_r(&now, &tm);
	strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	json_object_set_new(status, "written_at", json_string(when));
	json_object_set_new(status, "pid", json_integer(getpid()));
	text = json_dumps(status, JSON_INDENT(1));
	if (file_write_unsynced(p->options->status_file, text, strlen(text), 0644, &e) != 0)
		log_warn("%s", e.text);
	free(text);
	p->shown_ms = uv_now(&p->loop);
}

static bool status_is_old(const struct process *p)
{
	return uv_now(&p->loop) - p->shown_ms >= STATUS_REFRESH_MS;
}

static void show_guest(struct process *p, const json_t *status)
{
	json_t *figures = figures_tell(&p->figures);

	p->options->guest->show(p->options->guest->ctx, status, figures);
	json_decref(figures);
	p->guest_ms = uv_now(&p->loop);
}

static bool guest_waits(const struct process *p)
{
	return p->where[0] != '\0' && uv_now(&p->loop) - p->guest_ms >= GUEST_REFRESH_MS;
}

static void show_status(struct process *p)
{
	json_t *j;
	char *text;

	if (p->options->status_file == NULL && p->where[0] == '\0')
		return;
	j = status_of(p);
	json_object_set_new(j, "running", json_boolean(!p->closing));
	if (p->where[0] != '\0')
		show_guest(p, j);
	if (p->options->status_file == NULL) {
		json_decref(j);
		return;
	}
	text = json_dumps(j, JSON_INDENT(1));
	if (p->shown == NULL || strcmp(p->shown, text) != 0 || status_is_old(p))
		write_status_file(p, j);
	json_decref(j);
	free(p->shown);
	p->shown = text;
}

/* A peer accepted by its key alone says its name later. */
static void learn_name(struct process *p, const struct agent_peer_status *s)
{
	struct store_peer *r = roster_find(&p->roster, s->key);

	if (r != NULL)
		agent_core_catch_up(p->core, r);
	if (r == NULL || r->name[0] != '\0' || s->name[0] == '\0')
		return;
	snprintf(r->name, sizeof(r->name), "%s", s->name);
	p->changed = true;
}

/* Says once in a run that the tables, once they have been trained, do worse than counting. */
static void look_at_floor(struct process *p, const struct agent_status *s)
{
	double floor = counted_floor(p);
	struct buf why = { 0 };

	free(p->floor_warning);
	p->floor_warning = NULL;
	if (agent_core_has_settled(p->core) &&
	    config_below_floor(&p->folder.config, p->start.graph, s->best_score, floor, &why))
		p->floor_warning = mem_strdup((const char *)why.base);
	buf_release(&why);
	if (p->floor_warning == NULL || p->floor_told)
		return;
	say_event(p, "trouble", LOG_WARN, "%s", p->floor_warning);
	p->floor_told = p->changed = true;
}

static bool is_quiet(struct process *p)
{
	struct agent_status s;
	bool quiet;

	agent_core_status(p->core, &s);
	look_at_arm(p, &s);
	look_at_floor(p, &s);
	look_at_prices(p, &s);
	quiet = s.state != AGENT_BUSY && !agent_core_waits(p->core) && p->jobs == 0 &&
		!arm_behind(p) && !p->counting.running;
	for (size_t i = 0; i < s.n_peers; i++) /* the signal of one who has left can wait */
		quiet = quiet && !(s.peer[i].queued && s.peer[i].linked);
	for (size_t i = 0; i < s.n_peers; i++)
		learn_name(p, &s.peer[i]);
	agent_status_release(&s);
	return quiet;
}

static void look_if_quiet(struct process *p)
{
	uint64_t now = uv_now(&p->loop);

	if (!is_quiet(p))
		p->busy_ms = now;
	if (p->options->until_quiet_s > 0 && !p->stopping &&
	    (double)(now - p->busy_ms) >= p->options->until_quiet_s * 1000) {
		say_event(p, "stop", LOG_INFO, "quiet for %g s", p->options->until_quiet_s);
		stop(p);
	}
}

static void on_tick(uv_timer_t *h)
{
	struct process *p = h->data;

	supervisor_feed(uv_now(&p->loop));
	look_if_quiet(p);
	look_at_newcomers(p);
	log_limit_tick(&p->log, uv_now(&p->loop));
	events_tick(p->events, uv_now(&p->loop));
	if (p->changed || p->jobs > 0 || status_is_old(p) || guest_waits(p))
		show_status(p);
	p->changed = false;
	if (uv_now(&p->loop) - p->trimmed_ms >= TRIM_EVERY_MS)
		trim_roster(p);
	if (p->closing && p->jobs == 0 && !p->pricing && !p->arm.running && !p->arm.opening &&
	    !p->counting.running)
		begin_closing(p);
}

static void on_signal(uv_signal_t *h, int number)
{
	struct process *p = h->data;

	signals_seen(p->signals, number);
	if (p->stopping && !p->again)
		_exit(128 + number);
	end(p);
}

/* The command line goes before agent.yaml. */
static void set_log(const struct process_options *o, const struct config *c)
{
	log_set_name(c->name);
	if (!o->keeps_level)
		log_set_level(c->log.level);
	log_set_format(o->log == PROCESS_LOG_SET    ? c->log.format
		       : o->log == PROCESS_LOG_JSON ? LOG_JSON
						    : LOG_TEXT);
	log_set_journal(o->log == PROCESS_LOG_JOURNAL || log_to_journal());
}

/* Of keys, in words: for the log. */
static void say_keys(struct process *p, const json_t *keys, const char *what)
{
	const json_t *d;
	size_t i;

	json_array_foreach(keys, i, d)
	{
		say_event(p, "settings", LOG_INFO, "%s is %s%s, was %s",
			  json_string_value(json_object_get(d, "key")),
			  json_string_value(json_object_get(d, "is")), what,
			  json_string_value(json_object_get(d, "was")));
	}
}

/* This agent ends cleanly and starts anew in the same process.  By this text, which was checked,
 * and is taken over: nothing that is written into the file meanwhile can keep it from that. */
static void start_anew(struct process *p, struct buf *yaml)
{
	p->next_yaml = *yaml;
	*yaml = (struct buf){ 0 };

	if (signals_listen(p->signals) != 0)
		log_warn("SIGHUP: one more before the agent has started anew ends it");
	say_event(p, "settings", LOG_INFO, "%s is read again: the agent starts anew",
		  p->folder.config_path);
	p->again = true;
	stop(p);
}

static bool is_guests_place(const struct config *c, const char *host, uint16_t port)
{
	struct config_http_place place;

	return port != 0 && config_http_place(c->http.listen, &place, NULL) == 0 &&
	       place.kind == CONFIG_HTTP_LOOPBACK && place.port == port &&
	       listen_same_host(host, place.host);
}

/* Does an address that this agent holds now, or its guest, stand in the way there?  By then it is
 * free. */
static bool stands_in_own_way(const struct process *p, const char *host, uint16_t port)
{
	const struct process_guest *g = p->options->guest;
	struct config_http_place place;
	char own[NET_HUB_HOST];

	net_hub_host(p->hub, own);
	if (port == net_hub_port(p->hub) && listen_same_host(host, own))
		return true;
	return g != NULL && port == g->port(g->ctx) &&
	       config_http_place(p->folder.config.http.listen, &place, NULL) == 0 &&
	       listen_same_host(host, place.host);
}

/* Whether another program stands in the way beside the agent itself (of 0.0.0.0, at 127.0.0.2) is
 * seen when the agent has let go: settle_run(). */
static int may_listen(struct process *p, const struct config *fresh, bool names, struct err *e)
{
	char host[256];
	uint16_t port;
	int why = 0, rc;

	if (strcmp(fresh->listen, "off") == 0)
		return 0;
	rc = config_address(fresh->listen, host, &port, e);
	if (rc != 0)
		return rc;
	if (is_guests_place(fresh, host, port))
		return err_set(e, ERR_USAGE, "listen and http.listen are both at port %u", port);
	if (strcmp(fresh->listen, p->folder.config.listen) != 0 &&
	    (names || listen_is_number(host)))
		why = listen_trial(host, port);
	if (why == 0 || (why == EADDRINUSE && stands_in_own_way(p, host, port)))
		return 0;
	return err_set(e, ERR_IO, "listen: %s cannot be used: %s; choose another address in %s",
		       fresh->listen, listen_why(why), p->folder.config_path);
}

static int may_open_ports(struct process *p, const struct folder *f, bool names, struct err *e)
{
	const struct process_guest *g = p->options->guest;
	char host[NET_HUB_HOST] = "";
	uint16_t port = 0;
	int fd, rc = supervisor_socket(&fd, e);

	if (rc != 0)
		return rc;
	if (fd >= 0) { /* handed over: the setting does not count, and the port stays held */
		close(fd);
	} else {
		rc = may_listen(p, &f->config, names, e);
		net_hub_host(p->hub, host);
		port = net_hub_port(p->hub);
	}
	return rc == 0 && g != NULL ? g->may_open(g->ctx, f, host, port, e) : rc;
}

/* The folder as it lies there now, its keys read anew; the store is its thread's, so it is read
 * beside that. */
static int may_load(struct process *p, const struct folder *f, struct err *e)
{
	uint8_t psk[32];
	bool has;
	int rc = folder_check_writable(f, e);

	if (rc == 0)
		rc = folder_psk(f, &has, psk, e);
	sodium_memzero(psk, sizeof(psk));
	if (rc == 0)
		rc = folder_check_keys(f, e);
	return rc == 0 ? start_check(f, p->start.graph, &p->roster, e) : rc;
}

/* What an agent that starts anew would end of, while this one can still go on.  names: hosts are
 * looked up, which may take seconds. */
static int may_start_anew(struct process *p, const struct config *fresh, bool names, struct err *e)
{
	struct folder f;
	int rc = folder_open(&f, p->folder.path, FOLDER_IDENTITY | FOLDER_READ, e);

	if (rc != 0)
		return rc;
	f.config = *fresh; /* borrowed */
	rc = may_load(p, &f, e);
	if (rc == 0)
		rc = may_open_ports(p, &f, names, e);
	folder_close(&f);
	return rc;
}

/* Beside one worker for each session's conversation: for our own job, for training alone beside it,
 * for a partner's query, and one that is free for names to be looked up. */
enum { WORKERS_BESIDE = 4 };

/* With workers of their own: libuv makes these once in a process.  0: it has not yet, or the
 * environment has said how many. */
static unsigned sessions_at_first;

static void warn_of(struct process *p, json_t *warnings, const char *text)
{
	say_event(p, "settings", LOG_WARN, "%s", text);
	json_array_append_new(warnings, store_json_of_text(text));
}

/* What a new start with these settings does not bring, or ends of; may_start_anew() has been asked
 * where it is now. */
static json_t *warn_of_next_start(struct process *p, const struct reload *r, bool anew)
{
	json_t *warnings = json_array();
	struct err e = { 0 }, why = { 0 };

	if (!anew && json_array_size(r->waits) > 0 &&
	    may_start_anew(p, &r->fresh, false, &why) != 0) {
		err_set(&e, why.code, "with these settings the agent cannot start again: %s",
			why.text);
		warn_of(p, warnings, e.text);
	}
	if (sessions_at_first > 0 && r->fresh.federation.sessions > sessions_at_first) {
		err_set(&e, ERR_USAGE,
			"federation.sessions: %u have no workers of their own in this process, "
			"which has made those of %u: stop the agent and start it",
			r->fresh.federation.sessions, sessions_at_first);
		warn_of(p, warnings, e.text);
	}
	return warnings;
}

/* The settings in agent.yaml now are taken whole or not at all.  restart: where live keys alone
 * have changed nothing starts anew; else, or where nothing has (a file that agent.yaml names may
 * have), the agent does. */
static int read_again(struct process *p, bool restart, json_t *reply, struct err *e)
{
	struct config *c = &p->folder.config;
	struct reload r;
	int rc = reload_read(&r, c, p->start.graph, p->folder.config_path, e);
	bool anew;

	if (rc != 0)
		return rc;
	anew = restart && (json_array_size(r.waits) > 0 || json_array_size(r.changed) == 0);
	if (anew)
		rc = may_start_anew(p, &r.fresh, true, e);
	if (rc == 0)
		json_object_set_new(reply, "warnings", warn_of_next_start(p, &r, anew));
	if (anew && rc == 0) {
		start_anew(p, &r.text);
	} else if (!anew) {
		rc = reload_take(&r, c, p->folder.config_path, e);
		if (rc == 0) {
			set_log(p->options, c);
			post_plain(p, AGENT_EVENT_SETTINGS); /* more rounds, more patience */
			say_keys(p, r.changed, " now");
			say_keys(p, r.waits, " from the next start on");
		}
	}
	json_object_set(reply, "changed", r.changed);
	json_object_set(reply, "waits", r.waits);
	json_object_set_new(reply, "anew", json_boolean(anew));
	reload_release(&r);
	return rc;
}

static void hear_hangup(struct process *p)
{
	json_t *unread = json_object();
	struct err e = { 0 };

	if (!p->stopping && read_again(p, true, unread, &e) != 0)
		say_event(p, "trouble", LOG_ERROR,
			  "SIGHUP: the agent goes on with the settings that it has: %s", e.text);
	json_decref(unread);
}

static void on_hangup(uv_signal_t *h, int number)
{
	struct process *p = h->data;

	signals_seen(p->signals, number);
	hear_hangup(p);
}

/* While there was no loop. */
static void take_signals(struct process *p)
{
	bool hangup, ending;

	signals_take(p->signals, &hangup, &ending);
	if (ending)
		end(p);
	else if (hangup)
		hear_hangup(p);
}

/* ---- closing ---- */

static void nothing(void *ctx)
{
	(void)ctx;
}

static void begin_closing(struct process *p)
{
	uv_close((uv_handle_t *)&p->tick, NULL);
	uv_close((uv_handle_t *)&p->interrupt, NULL);
	uv_close((uv_handle_t *)&p->terminate, NULL);
	uv_close((uv_handle_t *)&p->hangup, NULL);
	for (int i = 0; i < AGENT_TIMERS; i++)
		uv_close((uv_handle_t *)&p->timers[i].handle, NULL);
	figures_end(&p->figures);
	events_end(p->events);
	control_close(p->control, nothing, NULL);
	net_hub_close(p->hub, nothing);
	store_thread_close(p->store_thread, nothing, NULL);
}

/* ---- opening ---- */

static int adopt_socket(struct process *p, int fd, struct err *e)
{
	const char *setting = p->folder.config.listen;
	char host[NET_HUB_HOST];
	int rc = net_hub_adopt(p->hub, fd, e);

	if (rc != 0)
		return rc;
	agent_core_socket_given(p->core);
	net_hub_host(p->hub, host);
	snprintf(p->handed, sizeof(p->handed), strchr(host, ':') != NULL ? "[%s]:%u" : "%s:%u",
		 host, net_hub_port(p->hub));
	if (listen_reaches_further(host, setting))
		say_event(p, "trouble", LOG_WARN,
			  "the service manager's socket is open at %s, to more than listen in "
			  "agent.yaml (%s) allows: change ListenStream= of the socket unit, or "
			  "disable that",
			  p->handed, setting);
	return 0;
}

static int open_hub(struct process *p, struct err *e)
{
	const struct net_hub_config config = {
		.secret = p->folder.identity->secret,
		.psk = p->has_psk ? p->psk : NULL,
		.on = { .allow = hub_allow,
			.pair = hub_pair,
			.up = hub_up,
			.down = hub_down,
			.message = hub_message,
			.writable = hub_writable,
			.failed = hub_failed,
			.stranger = hub_stranger,
			.slowed = hub_slowed,
			.rejected = hub_rejected },
		.ctx = p,
		.retry_max_ms = RETRY_MAX_MS,
	};
	char host[256];
	uint16_t port;
	int rc = net_hub_new(&p->loop, &config, &p->hub, e), fd;

	if (rc == 0)
		rc = supervisor_socket(&fd, e);
	if (rc == 0 && fd >= 0)
		return adopt_socket(p, fd, e);
	if (rc != 0 || strcmp(p->folder.config.listen, "off") == 0)
		return rc;
	rc = config_address(p->folder.config.listen, host, &port, e);
	return rc != 0 ? rc : net_hub_listen(p->hub, host, port, e);
}

static void open_timers(struct process *p)
{
	for (int i = 0; i < AGENT_TIMERS; i++) {
		struct timer *t = &p->timers[i];

		uv_must(uv_timer_init(&p->loop, &t->handle));
		t->handle.data = t;
		t->of = p;
		t->which = (enum agent_timer)i;
	}
	uv_must(uv_timer_init(&p->loop, &p->tick));
	p->tick.data = p;
}

/* The loop's first one needs descriptors; those after it nothing that can be refused. */
static int open_signals(struct process *p, struct err *e)
{
	int rc = uv_signal_init(&p->loop, &p->interrupt);

	if (rc != 0)
		return err_set(e, ERR_FAIL, "no signals on this machine: %s", uv_strerror(rc));
	uv_must(uv_signal_init(&p->loop, &p->terminate));
	uv_must(uv_signal_init(&p->loop, &p->hangup));
	p->interrupt.data = p->terminate.data = p->hangup.data = p;
	return 0;
}

static int open_core(struct process *p, struct err *e)
{
	p->io = (struct agent_io){ .ctx = p,
				   .send = io_send,
				   .commit = io_commit,
				   .read_entries = io_read_entries,
				   .start_job = io_start_job,
				   .set_timer = io_set_timer,
				   .cancel_timer = io_cancel_timer,
				   .connect = io_connect,
				   .disconnect = io_disconnect,
				   .move = io_move,
				   .notify = io_notify,
				   .draw = secret_draw,
				   .answered = io_answered,
				   .scored = io_scored };
	return start_core(&p->start, p->folder.identity, &p->io, &p->core, e);
}

/* The environment may say another number. */
static void size_pool(const struct process *p)
{
	char n[16];

	if (getenv("UV_THREADPOOL_SIZE") != NULL)
		return;
	sessions_at_first = p->folder.config.federation.sessions;
	snprintf(n, sizeof(n), "%u", sessions_at_first + WORKERS_BESIDE);
	setenv("UV_THREADPOOL_SIZE", n, 0);
}

/* The last one: it is to be closed if this has gone well. */
static int open_guest(struct process *p, struct err *e)
{
	const struct process_guest *g = p->options->guest;

	return g != NULL ? g->open(g->ctx, &p->folder, p->where, e) : 0;
}

static void close_guest(struct process *p)
{
	if (p->options->guest != NULL)
		p->options->guest->close(p->options->guest->ctx);
}

/* Everything that can fail, before anything is said to have started. */
static int open_all(struct process *p, struct err *e)
{
	int rc;

	for (size_t i = 0; i < p->start.saved.n_peers; i++)
		roster_put(&p->roster, &p->start.saved.peers[i]);
	ledger_rotations_copy(&p->roster.rotations, &p->start.saved.rotations);
	invites_load(&p->invites, &p->start.saved);
	open_timers(p);
	figures_begin(&p->figures, &p->loop);
	if (p->folder.config.federation.mode == CONFIG_ROUNDS && p->start.saved.late.n > 0)
		figures_round(&p->figures, p->start.saved.late.at[0].started_ms,
			      p->start.saved.late.at[0].finished_ms);
	rc = folder_psk(&p->folder, &p->has_psk, p->psk, e);
	if (rc == 0 && !p->has_psk && p->folder.config.federation.accept == CONFIG_ACCEPT_INVITED)
		log_warn("federation.accept is invited, but there is no secret in %s (fkge secret "
			 "draws one): the owner accepts each peer",
			 p->folder.config.federation.psk_file);
	if (rc == 0)
		rc = open_core(p, e);
	if (rc == 0)
		size_pool(p);
	if (rc == 0)
		rc = open_hub(p, e);
	if (rc == 0)
		rc = control_new(&p->control, &p->loop, p->folder.socket_path, on_request, p, e);
	if (rc == 0)
		rc = open_guest(p, e);
	return rc;
}

/* Closes the handles that open_all() got to before it failed; the loop closes the rest. */
static void close_some(struct process *p)
{
	uv_close((uv_handle_t *)&p->tick, NULL);
	uv_close((uv_handle_t *)&p->interrupt, NULL);
	uv_close((uv_handle_t *)&p->terminate, NULL);
	uv_close((uv_handle_t *)&p->hangup, NULL);
	for (int i = 0; i < AGENT_TIMERS; i++)
		uv_close((uv_handle_t *)&p->timers[i].handle, NULL);
	figures_end(&p->figures);
	if (p->hub != NULL)
		net_hub_close(p->hub, nothing);
	if (p->control != NULL)
		control_close(p->control, nothing, NULL);
}

/* Valid is the default, and not every method has a part to be taken in. */
static void say_idle_weight(const struct config *c)
{
	struct fed_settings s;

	config_fed_settings(c, &s);
	if (c->federation.weight != CONFIG_WEIGHT_VALID)
		return;
	if (fed_method_find(s.method)->changes)
		log_info("federation.weight: valid is off in rounds of %s: what travels are "
			 "changes, all of which are taken in",
			 s.method);
	else if (fed_own_stays(&s))
		log_info("federation.weight: valid is off in rounds of %s%s: what partners bring "
			 "is not averaged into the agent's own table, so it protects nothing",
			 s.method,
			 fed_method_find(s.method)->shared_table == NULL ? " with reg_only" : "");
}

/* An owner who runs rounds, or trains by a command, shall know what that means. */
static void say_mode(const struct process *p)
{
	const struct config *c = &p->folder.config;

	if (c->train.command[0] != '\0')
		log_info("trains by train.command: %s", c->train.command);
	if (c->federation.mode != CONFIG_ROUNDS)
		return;
	log_info("rounds of %s, %s: %s; nothing charges for that (fkge serve --help)",
		 c->rounds.method, c->rounds.topology == FED_HOSTED ? "hosted" : "sharded",
		 c->rounds.secret != 0 ? "homes see sums of the rows that are shared"
				       : "rows that are shared leave as they are, for their homes");
	say_idle_weight(c);
}

static void go(struct process *p)
{
	p->store_thread = store_thread_new(&p->loop, p->folder.store);
	uv_must(uv_signal_start(&p->hangup, on_hangup, SIGHUP));
	uv_must(uv_signal_start(&p->interrupt, on_signal, SIGINT));
	uv_must(uv_signal_start(&p->terminate, on_signal, SIGTERM));
	uv_must(uv_timer_start(&p->tick, on_tick, 0, TICK_MS));
	p->started_ms = wall_ms();
	p->busy_ms = uv_now(&p->loop);
	post_plain(p, AGENT_EVENT_START);
	if (p->start.saved.has_best)
		counting_begin(&p->counting, &p->loop, &p->folder.config, p->start.graph);
	trim_roster(p);
	if (p->control != NULL && net_hub_port(p->hub) != 0)
		say_event(p, "start", LOG_INFO, "started: listening on %s, port %u, %zu peer%s",
			  listens_at(p), net_hub_port(p->hub), p->roster.n,
			  p->roster.n == 1 ? "" : "s");
	else
		say_event(p, "start", LOG_INFO, "started: calling others only, %zu peer%s",
			  p->roster.n, p->roster.n == 1 ? "" : "s");
	if (p->where[0] != '\0')
		log_info("HTTP: %s", p->where);
	say_mode(p);
	supervisor_ready(p->folder.config.name);
	take_signals(p);
}

static int run(struct process *p, struct err *e)
{
	int rc = open_signals(p, e);

	if (rc != 0)
		return rc;
	rc = open_all(p, e);
	if (rc == 0)
		go(p);
	else
		close_some(p);
	uv_must(uv_run(&p->loop, UV_RUN_DEFAULT)); /* until no handle is left */
	if (rc == 0) {
		close_guest(p);
		log_info("stopped");
	}
	if (rc == 0 && p->failed.code != 0)
		rc = err_set(e, p->failed.code, "%s", p->failed.text);
	if (p->core != NULL)
		agent_core_free(p->core);
	return rc;
}

static void print_line(void *ctx, enum log_level level, const char *text)
{
	say_event(ctx, "peer", level, "%s", text);
}

/* From one run to the next. */
struct between {
	struct signals signals;
	struct events *events;
	int lock;	 /* of the folder, so that nobody else takes it meanwhile, or -1 */
	bool again;	 /* there is a next one, */
	struct buf yaml; /* by these settings; */
	struct config before;
	bool has_before, back; /* or by those of before, with which it could start */
};

static int open_folder(struct folder *f, const char *path, struct between *x, struct err *e)
{
	unsigned needs = FOLDER_IDENTITY | FOLDER_WRITE | (x->again ? 0 : FOLDER_CONFIG);
	int rc = folder_open_locked(f, path, needs, x->lock, e);

	if (rc == 0 && x->back) {
		f->config = x->before;
		f->has_config = true;
		x->has_before = false;
	} else if (rc == 0 && x->again) {
		rc = config_parse(&f->config, (const char *)x->yaml.base, x->yaml.len,
				  f->config_path, e);
		f->has_config = rc == 0;
		if (rc != 0)
			folder_close(f);
	}
	buf_release(&x->yaml);
	x->lock = -1;
	x->again = x->back = false;
	return rc;
}

static void drop_before(struct between *x)
{
	if (x->has_before)
		config_release(&x->before);
	x->has_before = false;
}

/* What comes next.  A new start that came to nothing is no end: the agent goes on by the settings
 * of before. */
static void settle_run(struct process *p, struct between *x, int rc, struct err *e)
{
	bool went = p->started_ms != 0;

	x->again = p->again && rc == 0;
	x->back = rc != 0 && !went && x->has_before;
	if (x->back) {
		x->again = true;
		say_event(p, "trouble", LOG_ERROR,
			  "the agent cannot start anew, and starts with the settings of before: %s",
			  e->text);
		*e = (struct err){ 0 };
	} else {
		drop_before(x);
	}
	if (x->again && went) {
		x->before = p->folder.config;
		x->has_before = true;
		p->folder.has_config = false; /* it is moved */
	}
	x->yaml = p->next_yaml;
	if (x->again)
		x->lock = folder_close_locked(&p->folder);
	else
		folder_close(&p->folder);
}

static int run_once(const struct process_options *o, struct between *x, struct err *e)
{
	struct process p = { .options = o,
			     .signals = &x->signals,
			     .events = x->events,
			     .counting.mrr = (double)NAN };
	struct err left = { 0 };
	int rc;

	p.log.print = print_line;
	p.log.ctx = &p;
	rc = open_folder(&p.folder, o->folder, x, e);
	if (rc != 0)
		return rc;
	set_log(o, &p.folder.config);
	if (command_clear(p.folder.path, NULL, NULL, &left) != 0)
		log_warn("%s", left.text);
	rc = start_load(&p.start, &p.folder, e);
	if (rc == 0 && p.folder.config.suited != NULL)
		log_info("%s", p.folder.config.suited);
	if (rc == 0 && p.start.other_gamma.code != 0)
		log_warn("%s", p.start.other_gamma.text);
	if (rc == 0 && p.start.large_delta.code != 0)
		log_warn("%s", p.start.large_delta.text);
	if (rc == 0 && p.start.pair_delta.code != 0)
		log_warn("%s", p.start.pair_delta.text);
	if (rc == 0 && p.start.no_host.code != 0)
		log_warn("%s; before that there are no rounds", p.start.no_host.text);
	if (rc == 0 && uv_loop_init(&p.loop) != 0)
		rc = err_set(e, ERR_FAIL, "no event loop on this machine");
	if (rc == 0) {
		rc = run(&p, e);
		log_limit_flush(&p.log, uv_now(&p.loop));
		uv_must(uv_loop_close(&p.loop));
	}
	log_flush();
	alone_free(p.arm.alone);
	start_release(&p.start);
	roster_release(&p.roster);
	newcomers_release(&p.newcomers);
	invites_release(&p.invites);
	free(p.shown);
	free(p.floor_warning);
	sodium_memzero(p.psk, sizeof(p.psk));
	settle_run(&p, x, rc, e);
	return rc;
}

int process_run(const struct process_options *o, struct err *e)
{
	struct between x = { .lock = -1, .events = events_new(wall_ms()) };
	int rc;

	signal(SIGPIPE, SIG_IGN);
	signal(SIGCHLD, SIG_DFL); /* an ignored one is inherited, and no child waited for */
	do
		rc = run_once(o, &x, e);
	while (x.again);
	buf_release(&x.yaml);
	drop_before(&x);
	signals_close(&x.signals);
	events_free(x.events);
	return rc;
}
