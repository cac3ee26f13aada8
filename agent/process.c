#include "agent/process_internal.h"

#include <math.h>
#include <signal.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "agent/alone.h"
#include "agent/command.h"
#include "agent/supervisor.h"
#include "base/secret.h"

enum { TICK_MS = 200, TRIM_EVERY_MS = 3600000 };

/* ---- timers, chance ---- */

static void on_timer(uv_timer_t *h)
{
	struct timer *t = h->data;

	process_post(t->of, &(struct agent_event){ .kind = AGENT_EVENT_TIMER, .timer = t->which });
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
		       process_name_of(p, n->peer, id), n->text);
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
		events_add(p->events, process_wall_ms(), "stop", n->text);
	else
		process_say(p, kinds[n->kind], level, "%s", n->text);
	if (n->kind == AGENT_NOTICE_STOPPED)
		note_stopped(p, n->code);
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

/* ---- the tick: status file, quiet, the end ---- */

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

static bool is_quiet(struct process *p)
{
	struct agent_status s;
	bool quiet;

	agent_core_status(p->core, &s);
	process_look_at_arm(p, &s);
	process_look_at_floor(p, &s);
	process_look_at_prices(p, &s);
	quiet = s.state != AGENT_BUSY && !agent_core_waits(p->core) && p->jobs == 0 &&
		!process_arm_behind(p) && !p->counting.running;
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
		process_say(p, "stop", LOG_INFO, "quiet for %g s", p->options->until_quiet_s);
		process_stop(p);
	}
}

static void on_tick(uv_timer_t *h)
{
	struct process *p = h->data;

	supervisor_feed(uv_now(&p->loop));
	look_if_quiet(p);
	process_look_at_newcomers(p);
	log_limit_tick(&p->log, uv_now(&p->loop));
	events_tick(p->events, uv_now(&p->loop));
	if (p->changed || p->jobs > 0 || process_status_is_old(p) || process_guest_waits(p))
		process_show_status(p);
	p->changed = false;
	if (uv_now(&p->loop) - p->trimmed_ms >= TRIM_EVERY_MS)
		process_trim_roster(p);
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
	process_end(p);
}

/* ---- opening ---- */

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
				   .set_timer = io_set_timer,
				   .cancel_timer = io_cancel_timer,
				   .notify = io_notify,
				   .draw = secret_draw };
	process_work_effects(&p->io);
	process_link_effects(&p->io);
	process_owner_effects(&p->io);
	return start_core(&p->start, p->folder.identity, &p->io, &p->core, e);
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
		process_size_pool(p);
	if (rc == 0)
		rc = process_open_hub(p, e);
	if (rc == 0)
		rc = control_new(&p->control, &p->loop, p->folder.socket_path, process_request, p,
				 e);
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
	uv_must(uv_signal_start(&p->hangup, process_on_hangup, SIGHUP));
	uv_must(uv_signal_start(&p->interrupt, on_signal, SIGINT));
	uv_must(uv_signal_start(&p->terminate, on_signal, SIGTERM));
	uv_must(uv_timer_start(&p->tick, on_tick, 0, TICK_MS));
	p->started_ms = process_wall_ms();
	p->busy_ms = uv_now(&p->loop);
	process_post_kind(p, AGENT_EVENT_START);
	if (p->start.saved.has_best)
		counting_begin(&p->counting, &p->loop, &p->folder.config, p->start.graph);
	process_trim_roster(p);
	if (p->control != NULL && net_hub_port(p->hub) != 0)
		process_say(p, "start", LOG_INFO, "started: listening on %s, port %u, %zu peer%s",
			    process_listens_at(p), net_hub_port(p->hub), p->roster.n,
			    p->roster.n == 1 ? "" : "s");
	else
		process_say(p, "start", LOG_INFO, "started: calling others only, %zu peer%s",
			    p->roster.n, p->roster.n == 1 ? "" : "s");
	if (p->where[0] != '\0')
		log_info("HTTP: %s", p->where);
	say_mode(p);
	supervisor_ready(p->folder.config.name);
	process_take_signals(p);
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
	process_say(ctx, "peer", level, "%s", text);
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
		process_say(
			p, "trouble", LOG_ERROR,
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
	process_set_log(o, &p.folder.config);
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
	struct between x = { .lock = -1, .events = events_new(process_wall_ms()) };
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
