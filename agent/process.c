#include "agent/process.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <uv.h>

#include "agent/admin.h"
#include "agent/control.h"
#include "agent/core.h"
#include "agent/folder.h"
#include "agent/start.h"
#include "agent/report.h"
#include "agent/storer.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/hub.h"
#include "net/ident.h"

enum { TICK_MS = 200, RETRY_MAX_MS = 15000 };

struct process {
	const struct process_options *options;
	struct folder folder;
	struct start start;
	struct roster roster;
	uv_loop_t loop;
	struct agent_core *core;
	struct agent_io io;
	struct net_hub *hub;
	struct storer *storer;
	struct control *control;
	struct timer {
		uv_timer_t handle;
		struct process *of;
		enum agent_timer which;
	} timers[AGENT_TIMERS];
	uv_timer_t tick;
	uv_signal_t interrupt, terminate;
	bool has_psk;
	uint8_t psk[32];
	int64_t started_ms;
	uint64_t busy_ms; /* loop time when there was last something to do */
	char *shown;	  /* what the status file says */
	size_t jobs;	  /* on the workers */
	bool changed, stopping, closing;
	struct err failed; /* why the agent stops by itself */
};

static int64_t wall_ms(void)
{
	uv_timeval64_t t;

	uv_gettimeofday(&t);
	return t.tv_sec * 1000 + t.tv_usec / 1000;
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
	struct agent_event event = { .kind = kind };

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
	log_info("stopping");
	post_plain(p, AGENT_EVENT_STOP);
}

static void fail(struct process *p, int code, const char *text)
{
	if (p->failed.code == 0)
		err_set(&p->failed, code, "%s", text);
	log_error("%s", text);
}

/* ---- the store ---- */

struct commit {
	struct storer_task task;
	struct process *of;
	struct store_batch batch;
	uint64_t ticket;
};

static int run_commit(struct store *s, struct storer_task *t, struct err *e)
{
	return store_apply(s, &((struct commit *)t)->batch, e);
}

static void commit_done(struct storer_task *t, int status, const struct err *e)
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

	c->task = (struct storer_task){ run_commit, commit_done };
	c->of = p;
	c->ticket = ticket;
	store_batch_move(&c->batch, batch);
	storer_put(p->storer, &c->task);
}

/* A write of the shell's own, or none: then it only waits for those before it.  The
 * call, if there is one, is answered when it is on disk. */
struct chore {
	struct storer_task task;
	struct store_batch batch;
	struct control_call *call;
	json_t *reply;
};

static int run_chore(struct store *s, struct storer_task *t, struct err *e)
{
	struct chore *c = (struct chore *)t;

	return c->batch.n > 0 ? store_apply(s, &c->batch, e) : 0;
}

static void chore_done(struct storer_task *t, int status, const struct err *e)
{
	struct chore *c = (struct chore *)t;

	if (status != 0)
		log_error("%s", e->text);
	if (c->call != NULL)
		control_reply(c->call, c->reply, status, e->text);
	store_batch_release(&c->batch);
	free(c);
}

/* peer may be NULL; call too; reply is taken over. */
static void put_chore(struct process *p, const struct store_peer *peer, struct control_call *call,
		      json_t *reply)
{
	struct chore *c = mem_array(1, sizeof(*c));

	c->task = (struct storer_task){ run_chore, chore_done };
	c->call = call;
	c->reply = reply;
	if (peer != NULL)
		store_batch_peer(&c->batch, peer);
	storer_put(p->storer, &c->task);
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

	r->of = p;
	r->job = job;
	p->jobs++;
	uv_queue_work(&p->loop, &r->req, run_job, job_done);
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
	uv_timer_start(&p->timers[which].handle, on_timer, delay_ms, 0);
}

static void io_cancel_timer(void *ctx, enum agent_timer which)
{
	uv_timer_stop(&((struct process *)ctx)->timers[which].handle);
}

static void io_draw(void *ctx, void *out, size_t n)
{
	(void)ctx;
	randombytes_buf(out, n);
}

/* ---- links ---- */

static int io_send(void *ctx, const uint8_t peer[AGENT_KEY], const uint8_t *bytes, size_t n)
{
	struct process *p = ctx;

	return net_hub_send(p->hub, peer, bytes, n);
}

static void io_connect(void *ctx, const uint8_t peer[AGENT_KEY], const char *address)
{
	struct process *p = ctx;
	char host[256] = "";
	uint16_t port = 0;
	struct err e = { 0 };

	if (address != NULL && *address != '\0' && config_address(address, host, &port, &e) != 0)
		log_warn("%s", e.text);
	if (net_hub_peer(p->hub, peer, port != 0 ? host : NULL, port, &e) != 0)
		log_warn("%s", e.text);
}

/* The core takes the link for down from here on and asks for it again if it wants it. */
static void io_disconnect(void *ctx, const uint8_t peer[AGENT_KEY])
{
	struct process *p = ctx;
	const struct store_peer *r = roster_find(&p->roster, peer);
	bool partner = r != NULL && r->status == STORE_LISTED;

	net_hub_forget(p->hub, peer, partner ? "too slow" : "not a partner any more");
}

/* Somebody who shows the federation's secret is in, if the owner says so. */
static bool may_invite_himself(const struct process *p)
{
	return p->folder.config.federation.accept == CONFIG_ACCEPT_INVITED && p->has_psk;
}

static bool hub_allow(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	struct process *p = ctx;
	const struct store_peer *r = roster_find(&p->roster, key);

	if (r != NULL && r->status != STORE_PENDING)
		return r->status == STORE_LISTED;
	return may_invite_himself(p) && roster_listed(&p->roster) < AGENT_PEERS_MAX;
}

/* In with a secret and not listed so far: he is now. */
static void welcome(struct process *p, const uint8_t key[NET_KEY_BYTES])
{
	struct store_peer peer = { .status = STORE_LISTED, .seen_ms = wall_ms() };
	const struct store_peer *r = roster_find(&p->roster, key);

	if (r != NULL && r->status == STORE_LISTED)
		return;
	memcpy(peer.key, key, STORE_KEY);
	post_added(p, roster_put(&p->roster, &peer));
}

static void hub_up(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	welcome(ctx, key);
	post_link(ctx, AGENT_EVENT_LINK_UP, key);
}

static const char *name_of(const struct process *p, const uint8_t key[NET_KEY_BYTES],
			   char id[NET_KEY_TEXT])
{
	const struct store_peer *r = roster_find(&p->roster, key);

	net_key_format(key, id);
	return r != NULL && r->name[0] != '\0' ? r->name : id;
}

static void hub_down(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why)
{
	char id[NET_KEY_TEXT];

	(void)code;
	log_info("link to %s is down: %s", name_of(ctx, key, id), why);
	post_link(ctx, AGENT_EVENT_LINK_DOWN, key);
}

static void hub_message(void *ctx, const uint8_t key[NET_KEY_BYTES], const uint8_t *bytes,
			size_t len)
{
	struct agent_event event = { .kind = AGENT_EVENT_MESSAGE, .bytes = bytes, .n = len };

	memcpy(event.peer, key, AGENT_KEY);
	post(ctx, &event);
}

static void hub_writable(void *ctx, const uint8_t key[NET_KEY_BYTES])
{
	post_link(ctx, AGENT_EVENT_WRITABLE, key);
}

static void hub_failed(void *ctx, const uint8_t key[NET_KEY_BYTES], int code, const char *why,
		       uint64_t retry_ms)
{
	char id[NET_KEY_TEXT];

	(void)code;
	log_info("no link to %s: %s; again in %.1f s", name_of(ctx, key, id), why,
		 (double)retry_ms / 1000);
}

static void hub_stranger(void *ctx, const uint8_t key[NET_KEY_BYTES], const char *address)
{
	struct process *p = ctx;
	struct store_peer *r = roster_knock(&p->roster, key, wall_ms());
	char id[NET_KEY_TEXT];

	net_key_format(key, id);
	log_warn("a key that is not listed was refused, from %s: %s%s", address, id,
		 r != NULL ? "; to let it in: fkge peer accept" : "");
	if (r != NULL)
		put_chore(p, r, NULL, NULL);
	p->changed = true;
}

static void hub_rejected(void *ctx, const char *address, int code, const char *why)
{
	(void)ctx;
	(void)code;
	log_warn("a connection from %s was refused: %s", address, why);
}

/* ---- notices ---- */

/* The text names the peer itself. */
static void io_notify(void *ctx, const struct agent_notice *n)
{
	struct process *p = ctx;
	enum log_level level = n->kind == AGENT_NOTICE_TROUBLE ? LOG_WARN
			       : n->kind == AGENT_NOTICE_STATE ? LOG_DEBUG
							       : LOG_INFO;

	p->changed = true;
	if (n->kind == AGENT_NOTICE_MEMBER) /* its text is a name alone */
		log_info("a partner knows %s, who is not listed here", n->text);
	else
		log_at(level, "%s", n->text);
	if (n->kind == AGENT_NOTICE_STOPPED)
		p->closing = true; /* from the loop, not from inside the core: see on_tick */
}

/* ---- the owner ---- */

static json_t *status_of(const struct process *p)
{
	const struct report_parts parts = { .core = p->core,
					    .folder = &p->folder,
					    .roster = &p->roster,
					    .hub = p->hub,
					    .port = net_hub_port(p->hub),
					    .started_ms = p->started_ms };

	return report_json(&parts);
}

/* A new partner: first what we call things toward it, read where the store is; then
 * the core is told; then, when that is on disk, the owner has his answer. */
struct admission {
	struct storer_task task;
	struct process *of;
	struct store_peer peer;
	struct start_aliases aliases;
	struct control_call *call;
	json_t *reply;
};

static int read_admission(struct store *s, struct storer_task *t, struct err *e)
{
	struct admission *a = (struct admission *)t;

	return start_read_aliases(&a->aliases, s, a->of->start.graph, a->peer.key, e);
}

static void admission_done(struct storer_task *t, int status, const struct err *e)
{
	struct admission *a = (struct admission *)t;
	struct process *p = a->of;

	if (status == 0) {
		start_use_aliases(&p->start, &a->aliases);
		post_added(p, &a->peer);
		put_chore(p, NULL, a->call, a->reply);
	} else {
		control_reply(a->call, a->reply, status, e->text);
	}
	start_aliases_release(&a->aliases);
	free(a);
}

static void put_admission(struct process *p, const struct store_peer *peer,
			  struct control_call *call, json_t *reply)
{
	struct admission *a = mem_array(1, sizeof(*a));

	a->task = (struct storer_task){ read_admission, admission_done };
	a->of = p;
	a->peer = *peer;
	a->call = call;
	a->reply = reply;
	storer_put(p->storer, &a->task);
}

/* What the owner's request has changed, kept until the request is through. */
struct change {
	struct process *of;
	bool any;
	struct store_peer peer;
};

static int peer_changed(void *ctx, const struct store_peer *peer, struct err *e)
{
	struct change *c = ctx;

	(void)e;
	c->any = true;
	c->peer = *peer;
	return 0;
}

/* The core writes the records of partners by itself; those of others are ours. */
static void carry_out(struct process *p, const struct change *c, struct control_call *call,
		      json_t *reply)
{
	if (c->any && c->peer.status == STORE_LISTED) {
		put_admission(p, &c->peer, call, reply);
		return;
	}
	if (c->any && c->peer.status == STORE_REVOKED)
		post_link(p, AGENT_EVENT_PEER_REVOKED, c->peer.key);
	put_chore(p, c->any && c->peer.status != STORE_REVOKED ? &c->peer : NULL, call, reply);
}

static void answer_admin(struct process *p, struct control_call *call, const json_t *request)
{
	struct change change = { .of = p };
	struct admin a = { .folder = &p->folder,
			   .roster = &p->roster,
			   .port = net_hub_port(p->hub),
			   .running = true,
			   .has_psk = p->has_psk,
			   .psk = p->psk,
			   .ctx = &change,
			   .changed = peer_changed };
	json_t *reply = json_object();
	struct err e = { 0 };
	int rc = admin_run(&a, request, reply, &e);

	p->changed = true;
	if (rc != 0)
		control_reply(call, reply, rc, e.text);
	else
		carry_out(p, &change, call, reply); /* answered once it is on disk */
}

static void on_request(void *ctx, struct control_call *call, const json_t *request)
{
	struct process *p = ctx;
	const char *what = json_string_value(json_object_get(request, "do"));

	if (what == NULL || p->stopping) {
		control_reply(call, json_object(), what == NULL ? ERR_PROTO : ERR_BUSY,
			      what == NULL ? "a request has a member do" : "the agent is stopping");
	} else if (admin_knows(request)) {
		answer_admin(p, call, request);
	} else if (strcmp(what, "status") == 0) {
		control_reply(call, status_of(p), 0, NULL);
	} else if (strcmp(what, "train") == 0) {
		post_plain(p, AGENT_EVENT_TRAIN);
		control_reply(call, json_object(), 0, NULL);
	} else if (strcmp(what, "stop") == 0) {
		control_reply(call, json_object(), 0, NULL);
		stop(p);
	} else {
		control_reply(call, json_object(), ERR_USAGE,
			      "this agent does not know that request");
	}
}

static void begin_closing(struct process *p);

/* ---- the tick: status file, quiet, the end ---- */

/* Seen by others whole or not at all.  Not synced: it is worth nothing after a crash. */
static void write_status_file(const char *path, const char *text)
{
	char *beside = mem_printf("%s.part", path);
	FILE *f = fopen(beside, "w");
	bool ok = f != NULL && fputs(text, f) >= 0;

	if (f != NULL)
		ok = fclose(f) == 0 && ok;
	if (!ok || rename(beside, path) != 0)
		log_warn("%s cannot be written", path);
	free(beside);
}

static void show_status(struct process *p)
{
	json_t *j;
	char *text;

	if (p->options->status_file == NULL)
		return;
	j = status_of(p);
	json_object_set_new(j, "running", json_boolean(!p->closing));
	text = json_dumps(j, JSON_INDENT(1));
	json_decref(j);
	if (p->shown == NULL || strcmp(p->shown, text) != 0)
		write_status_file(p->options->status_file, text);
	free(p->shown);
	p->shown = text;
}

/* A peer accepted by its key alone says its name later. */
static void learn_name(struct process *p, const struct agent_peer_status *s)
{
	struct store_peer *r = roster_find(&p->roster, s->key);

	if (r == NULL || r->name[0] != '\0' || s->name[0] == '\0')
		return;
	snprintf(r->name, sizeof(r->name), "%s", s->name);
	p->changed = true;
}

static bool is_quiet(struct process *p)
{
	struct agent_status s;
	bool quiet;

	agent_core_status(p->core, &s);
	quiet = s.state != AGENT_BUSY && p->jobs == 0;
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
		log_info("quiet for %g s", p->options->until_quiet_s);
		stop(p);
	}
}

static void on_tick(uv_timer_t *h)
{
	struct process *p = h->data;

	look_if_quiet(p);
	if (p->changed || p->jobs > 0)
		show_status(p);
	p->changed = false;
	if (p->closing && p->jobs == 0)
		begin_closing(p);
}

static void on_signal(uv_signal_t *h, int number)
{
	struct process *p = h->data;

	if (p->stopping)
		_exit(128 + number);
	stop(p);
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
	for (int i = 0; i < AGENT_TIMERS; i++)
		uv_close((uv_handle_t *)&p->timers[i].handle, NULL);
	control_close(p->control, nothing, NULL);
	net_hub_close(p->hub, nothing);
	storer_close(p->storer, nothing, NULL);
}

/* ---- opening ---- */

static int open_hub(struct process *p, struct err *e)
{
	const struct net_hub_config config = {
		.secret = p->folder.identity->secret,
		.psk = p->has_psk ? p->psk : NULL,
		.on = { .allow = hub_allow,
			.up = hub_up,
			.down = hub_down,
			.message = hub_message,
			.writable = hub_writable,
			.failed = hub_failed,
			.stranger = hub_stranger,
			.rejected = hub_rejected },
		.ctx = p,
		.retry_max_ms = RETRY_MAX_MS,
	};
	char host[256];
	uint16_t port;
	int rc = net_hub_new(&p->loop, &config, &p->hub, e);

	if (rc != 0 || strcmp(p->folder.config.listen, "off") == 0)
		return rc;
	rc = config_address(p->folder.config.listen, host, &port, e);
	return rc != 0 ? rc : net_hub_listen(p->hub, host, port, e);
}

static void open_timers(struct process *p)
{
	for (int i = 0; i < AGENT_TIMERS; i++) {
		struct timer *t = &p->timers[i];

		uv_timer_init(&p->loop, &t->handle);
		t->handle.data = t;
		t->of = p;
		t->which = (enum agent_timer)i;
	}
	uv_timer_init(&p->loop, &p->tick);
	p->tick.data = p;
	uv_signal_init(&p->loop, &p->interrupt);
	uv_signal_init(&p->loop, &p->terminate);
	p->interrupt.data = p->terminate.data = p;
}

static int open_core(struct process *p, struct err *e)
{
	const struct identity *id = p->folder.identity;
	struct agent_parts parts = { .config = &p->start.settings,
				     .io = &p->io,
				     .learner = agent_learner_ops(p->start.learner),
				     .graph = p->start.graph,
				     .names = p->start.names,
				     .saved = &p->start.saved,
				     .key = id->key,
				     .sign_public = id->sign_key,
				     .sign_secret = id->sign_secret,
				     .lineage = p->start.lineage,
				     .best = p->start.best,
				     .latest = p->start.latest,
				     .part = p->start.part.base != NULL ? &p->start.part : NULL,
				     .look = p->start.look.base != NULL ? &p->start.look : NULL };

	p->io = (struct agent_io){ .ctx = p,
				   .send = io_send,
				   .commit = io_commit,
				   .start_job = io_start_job,
				   .set_timer = io_set_timer,
				   .cancel_timer = io_cancel_timer,
				   .connect = io_connect,
				   .disconnect = io_disconnect,
				   .notify = io_notify,
				   .draw = io_draw };
	p->start.best = p->start.latest = NULL;
	return agent_core_new(&p->core, &parts, e);
}

/* Everything that can fail, before anything is said to have started. */
static int open_all(struct process *p, struct err *e)
{
	int rc;

	for (size_t i = 0; i < p->start.saved.n_peers; i++)
		roster_put(&p->roster, &p->start.saved.peers[i]);
	open_timers(p);
	rc = folder_psk(&p->folder, &p->has_psk, p->psk, e);
	if (rc == 0 && !p->has_psk && p->folder.config.federation.accept == CONFIG_ACCEPT_INVITED)
		log_warn("federation.accept is invited, but there is no secret in %s (fkge init "
			 "--secret makes one): the owner accepts each peer",
			 p->folder.config.federation.psk_file);
	if (rc == 0)
		rc = open_core(p, e);
	if (rc == 0)
		rc = open_hub(p, e);
	if (rc == 0)
		rc = control_new(&p->control, &p->loop, p->folder.socket_path, on_request, p, e);
	return rc;
}

/* What open_all() got to before it failed; the loop closes the rest. */
static void close_some(struct process *p)
{
	uv_close((uv_handle_t *)&p->tick, NULL);
	uv_close((uv_handle_t *)&p->interrupt, NULL);
	uv_close((uv_handle_t *)&p->terminate, NULL);
	for (int i = 0; i < AGENT_TIMERS; i++)
		uv_close((uv_handle_t *)&p->timers[i].handle, NULL);
	if (p->hub != NULL)
		net_hub_close(p->hub, nothing);
}

/* An owner who runs rounds shall know what that means. */
static void say_mode(const struct process *p)
{
	const struct agent_config *c = &p->start.settings;

	if (c->mode != AGENT_ROUNDS)
		return;
	log_info("rounds of %s, %s: %s; nothing charges for that (fkge serve --help)",
		 c->fed.settings.method,
		 c->fed.settings.topology == FED_HOSTED ? "hosted" : "sharded",
		 c->fed.settings.secret_bits > 0
			 ? "homes see sums of the rows that are shared"
			 : "rows that are shared leave as they are, for their homes");
}

static void go(struct process *p)
{
	p->storer = storer_new(&p->loop, p->folder.store);
	uv_signal_start(&p->interrupt, on_signal, SIGINT);
	uv_signal_start(&p->terminate, on_signal, SIGTERM);
	uv_timer_start(&p->tick, on_tick, 0, TICK_MS);
	p->started_ms = wall_ms();
	p->busy_ms = uv_now(&p->loop);
	post_plain(p, AGENT_EVENT_START);
	if (p->control != NULL && net_hub_port(p->hub) != 0)
		log_info("started: listening on %s, port %u, %zu peers", p->folder.config.listen,
			 net_hub_port(p->hub), p->roster.n);
	else
		log_info("started: calling others only, %zu peers", p->roster.n);
	say_mode(p);
}

static int run(struct process *p, struct err *e)
{
	int rc = open_all(p, e);

	if (rc == 0)
		go(p);
	else
		close_some(p);
	uv_run(&p->loop, UV_RUN_DEFAULT);
	if (rc == 0 && p->failed.code != 0)
		rc = err_set(e, p->failed.code, "%s", p->failed.text);
	if (p->core != NULL)
		agent_core_free(p->core);
	return rc;
}

int process_run(const struct process_options *o, struct err *e)
{
	struct process p = { .options = o };
	int rc;

	signal(SIGPIPE, SIG_IGN);
	rc = folder_open(&p.folder, o->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	log_set_name(p.folder.config.name);
	rc = start_load(&p.start, &p.folder, e);
	if (rc == 0 && uv_loop_init(&p.loop) != 0)
		rc = err_set(e, ERR_FAIL, "no event loop on this machine");
	if (rc == 0) {
		rc = run(&p, e);
		uv_loop_close(&p.loop);
	}
	start_release(&p.start);
	roster_release(&p.roster);
	free(p.shown);
	sodium_memzero(p.psk, sizeof(p.psk));
	folder_close(&p.folder);
	return rc;
}
