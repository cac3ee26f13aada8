/* agent/core/session.c - one session between two agents, from PROPOSE to DONE or ABORT.
 *
 *      host                                        client
 *      PROPOSE dims, versions, ledger head  ----->  checks; session on disk
 *              <----- ACCEPT dims, versions, head | DEFER ms | REFUSE why
 *      LEDGER_ENTRY / ACK   what the other has not countersigned yet, host's
 *      LEDGER_ENTRY / ACK   first, then the client's
 *      CONV ... intersection, when either side's alignment is stale ... CONV
 *      PROPOSE terms (ppat_config)          ----->  checks; opens its translator
 *              <----- ACCEPT
 *      LEDGER_ENTRY / ACK   map: contract if there is none; Procrustes: reserve of 0
 *      CONV ... translation; LEDGER_ENTRY contract, reserve / ACK before labels or a map
 *      noisy rows: LEDGER_ENTRY contract and reserve of the client's own before they
 *      leave, and its settle after DONE
 *      LEDGER_ENTRY / ACK   settle: both signatures on it are the receipt
 *      DONE receipt                         ----->  over on both sides
 *
 * Either side may ABORT at any point.  While a commit or a job of the session is
 * under way its messages wait in the inbox, so each is handled in one state.
 *
 * A session holds up all other partners, so signs of life do not prolong it: the time in which we
 * wait for the peer is counted, and bounded by what the peer has to do (session_patience_ms()). */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "base/mem.h"
#include "dp/lattice.h"
#include "ppat/virtual.h"

/* From where to where: asserted at each move.  Read it against the picture above. */
#define TO(p) (1u << PHASE_##p)
static const struct {
	const char *name;
	unsigned next;
} phases[PHASES] = {
	[PHASE_PROPOSED] = { "proposed", TO(SYNC_HOST) },
	[PHASE_SYNC_HOST] = { "ledger in step", TO(SYNC_CLIENT) },
	[PHASE_SYNC_CLIENT] = { "ledger in step", TO(PSI) | TO(ALIGNED) },
	[PHASE_PSI] = { "alignment", TO(ALIGNED) },
	[PHASE_ALIGNED] = { "aligned", TO(TERMS) | TO(OPENING) | TO(TRANSLATE) },
	[PHASE_TERMS] = { "terms", TO(OPENING) },
	[PHASE_OPENING] = { "contract", TO(TRANSLATE) },
	[PHASE_TRANSLATE] = { "translation", TO(SETTLE) },
	[PHASE_SETTLE] = { "settling", TO(DONE) },
	[PHASE_DONE] = { "done", 0 },
};

const char *phase_name(enum phase p)
{
	return phases[p].name;
}

void session_goto(struct session *s, enum phase to)
{
	assert(phases[s->phase].next & (1u << to));
	assert(s->charged <= s->reserved);
	s->phase = to;
}

/* ---- birth, waiting, end ---- */

/* Whose turn it was since the last time. */
static void count_time(struct session *s)
{
	const struct agent_core *c = s->core;

	*(s->waiting || s->beside ? &s->own_ms : &s->theirs_ms) += c->now_ms - s->counted_ms;
	s->counted_ms = c->now_ms;
}

uint64_t session_theirs_ms(const struct session *s)
{
	const struct agent_core *c = s->core;

	return s->theirs_ms + (s->waiting || s->beside ? 0 : c->now_ms - s->counted_ms);
}

/* Its share of the work is like ours, and it may be slower; what is known to be more comes on
 * top; and what is too small to be counted is done within the lease. */
uint64_t session_patience_ms(const struct session *s)
{
	const struct agent_core *c = s->core;

	return c->config.lease_ms + SLOWER * s->own_ms + conversation_work_ms(s);
}

/* There is one timer for all sessions: it is set to the first that is due. */
static void arm(struct agent_core *c, enum agent_timer which)
{
	uint64_t due = UINT64_MAX;

	for (size_t i = 0; i < c->n_open; i++) {
		const struct session *s = c->open[i];
		uint64_t own = which == AGENT_TIMER_LEASE ? s->lease_due_ms : s->working_due_ms;

		due = own < due ? own : due;
	}
	if (due == UINT64_MAX)
		c->io.cancel_timer(c->io.ctx, which);
	else
		c->io.set_timer(c->io.ctx, which, due > c->now_ms ? due - c->now_ms : 0);
}

static void arm_lease(struct session *s)
{
	struct agent_core *c = s->core;
	uint64_t end = s->started_ms + c->config.session_limit_ms;
	uint64_t ms = s->heard_ms + c->config.lease_ms, patience, due;

	count_time(s);
	patience = session_patience_ms(s);
	due = c->now_ms + (patience > s->theirs_ms ? patience - s->theirs_ms : 0);
	ms = ms < due ? ms : due;
	if (s->waiting || s->beside || ms > end) /* our own work: the limit alone counts */
		ms = end;
	s->lease_due_ms = ms;
	arm(c, AGENT_TIMER_LEASE);
}

/* ---- several at a time ---- */

bool session_beside_all(const struct agent_core *c)
{
	return session_limit(c) > 1;
}

/* In rounds a session is an alignment, and part of what they wait for. */
uint32_t session_limit(const struct agent_core *c)
{
	return in_rounds(c) ? 1 : c->config.sessions;
}

bool session_has_room(const struct agent_core *c)
{
	return c->n_open + c->orphans < session_limit(c);
}

bool session_can_serve(const struct agent_core *c)
{
	return (c->doing == DOING_NOTHING || session_beside_all(c)) && session_has_room(c) &&
	       c->trained && !c->stopping;
}

struct session *session_with(const struct agent_core *c, const struct peer *p)
{
	for (size_t i = 0; i < c->n_open; i++)
		if (c->open[i]->peer == p)
			return c->open[i];
	return NULL;
}

void session_abort_all(struct agent_core *c, int code, const char *why)
{
	for (size_t i = c->n_open; i-- > 0;) /* one that ends goes from the list */
		session_abort(c->open[i], true, code, "%s", why);
}

static struct session *session_new(struct agent_core *c, struct peer *p, enum agent_role role,
				   const uint8_t id[AGENT_SESSION])
{
	struct session *s = mem_array(1, sizeof(*s));

	assert(session_has_room(c) && session_with(c, p) == NULL);
	assert(c->config.roles != (role == AGENT_HOST ? AGENT_CLIENT_ONLY : AGENT_HOST_ONLY));
	memcpy(s->id, id, AGENT_SESSION);
	s->core = c;
	s->serial = ++c->session_serial;
	s->peer = p;
	s->role = role;
	s->in_turn = role == AGENT_HOST || !session_beside_all(c);
	s->our_serial = c->best_serial;
	s->lease_due_ms = s->working_due_ms = UINT64_MAX;
	s->phase = role == AGENT_HOST ? PHASE_PROPOSED : PHASE_SYNC_HOST;
	s->started_ms = s->heard_ms = s->told_ms = s->counted_ms = c->now_ms;
	memcpy(s->record.id, id, AGENT_SESSION);
	memcpy(s->record.peer, p->info.key, AGENT_KEY);
	s->record.role = role == AGENT_HOST ? STORE_HOST : STORE_CLIENT;
	s->record.started_ms = c->wall_ms;
	c->open[c->n_open++] = s;
	if (s->in_turn) {
		assert(c->doing == DOING_NOTHING);
		c->doing = DOING_SESSION;
	}
	arm_lease(s);
	return s;
}

void session_free(struct session *s)
{
	if (s == NULL)
		return;
	conv_free(s->conv);
	ppat_virtual_free(s->neighbours);
	message_queue_release(&s->inbox);
	free(s);
}

void session_free_ended(struct agent_core *c)
{
	while (c->ended != NULL) {
		struct session *s = c->ended;

		c->ended = s->next;
		session_free(s);
	}
}

static void unlist(struct session *s)
{
	struct agent_core *c = s->core;
	size_t at = 0;

	while (c->open[at] != s)
		at++;
	c->n_open--;
	memmove(&c->open[at], &c->open[at + 1], (c->n_open - at) * sizeof(struct session *));
}

static void session_end(struct session *s)
{
	struct agent_core *c = s->core;

	assert(!s->over);
	if (s->job) { /* the worker still has the conversation: all freed when it is back */
		atomic_store(&s->job->cancel, true);
		assert(s->job->subject == s->conv);
		s->job->beside = s->neighbours;
		s->conv = NULL;
		s->neighbours = NULL;
		s->job = NULL;
		c->orphans++;
	}
	unlist(s);
	if (s->in_turn)
		c->doing = DOING_NOTHING;
	arm(c, AGENT_TIMER_LEASE);
	arm(c, AGENT_TIMER_WORKING);
	s->over = true; /* who called us may still hold it */
	s->next = c->ended;
	c->ended = s;
}

static void record_end(struct session *s, enum store_session_state state, int outcome,
		       const char *why)
{
	struct agent_core *c = s->core;
	struct store_session *r = &s->record;

	r->state = state;
	r->outcome = outcome;
	r->finished_ms = c->wall_ms;
	r->seconds = (double)(c->now_ms - s->started_ms) / 1000.0;
	snprintf(r->reason, sizeof(r->reason), "%s", why);
}

void session_record_done(struct session *s, struct store_batch *b)
{
	record_end(s, STORE_DONE, 0, "");
	store_batch_session(b, &s->record);
}

static void commit_record(struct session *s, void (*then)(struct session *s))
{
	struct store_batch b = { 0 };

	s->recorded = true;
	store_batch_session(&b, &s->record);
	session_commit(s, &b, then);
}

/* Errors that waiting does not heal: the signal is dropped, the owner told. */
static bool is_final(int code)
{
	return code == ERR_LEDGER || code == ERR_REFUSED || code == ERR_BUDGET ||
	       code == ERR_VERSION || code == ERR_PROTO || code == ERR_TOOBIG || code == ERR_USAGE;
}

static void signal_failed(struct agent_core *c, struct peer *p, int code, const char *why)
{
	p->failed++;
	p->failed_row++;
	if (is_final(code) || p->failed_row >= FAILURES_MAX)
		queue_drop(c, p);
	else if (p->queued)
		queue_later(c, p, 0);
	if (is_final(code))
		peer_trouble(c, p, code, "%s", why);
}

/* cause: as in a notice. */
static void session_close(struct session *s, int code, const char *cause, const char *why)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	bool done = s->record.state == STORE_DONE; /* the client has the receipt */
	bool lost = code == ERR_UNREACHABLE || code == ERR_TIMEOUT;
	uint64_t theirs_ms;

	if (done && lost && s->role == AGENT_HOST && s->phase == PHASE_DONE) {
		session_finish(s); /* the client's own settle comes with the next session */
		return;
	}
	if (!done && s->recorded) {
		record_end(s, STORE_ABORTED, code, why);
		commit_record(s, NULL);
	}
	core_notice_of(c, AGENT_NOTICE_SESSION, p, code, cause, "session with %.60s ended: %s",
		       p->info.name, why);
	theirs_ms = session_theirs_ms(s);
	session_end(s);
	if (done)
		return;
	signal_failed(c, p, code, why);
	peer_rest(c, p, theirs_ms);
}

static void tell_abort(struct session *s, int code, const char *why)
{
	char text[NET_REASON_MAX + 1];
	struct buf out = { 0 };
	struct net_writer w;

	if (!s->peer->linked)
		return;
	snprintf(text, sizeof(text), "%s", why);
	session_begin_message(s, &w, &out, NET_MSG_ABORT);
	net_put_int(&w, "code", code);
	net_put_str(&w, "why", text);
	session_send(s, &w, &out);
}

void session_abort(struct session *s, bool tell, int code, const char *fmt, ...)
{
	char why[AGENT_TEXT_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (tell)
		tell_abort(s, code, why);
	session_close(s, code, fmt, why);
}

void session_abort_private(struct session *s, int code, const char *why)
{
	tell_abort(s, ERR_FAIL, "it failed at the partner, whose own log says why");
	session_close(s, code, "of its own", why);
}

void session_link_down(struct agent_core *c, struct peer *p)
{
	struct session *s = session_with(c, p);

	if (s != NULL)
		session_abort(s, false, ERR_UNREACHABLE, "the link was lost");
}

static void check_lease(struct session *s)
{
	struct agent_core *c = s->core;
	uint64_t theirs_ms = session_theirs_ms(s), patience_ms = session_patience_ms(s);

	if (c->now_ms - s->started_ms >= c->config.session_limit_ms)
		session_abort(s, true, ERR_TIMEOUT, "the session took longer than its limit");
	else if (theirs_ms >= patience_ms)
		session_abort(
			s, true, ERR_TIMEOUT,
			"the peer took longer than its work takes: %.1f s by phase '%s', %.1f "
			"s are enough",
			(double)theirs_ms / 1000, phases[s->phase].name,
			(double)patience_ms / 1000);
	else if (!s->waiting && !s->beside && c->now_ms - s->heard_ms >= c->config.lease_ms)
		session_abort(s, true, ERR_TIMEOUT, "the peer was silent for too long");
	else
		arm_lease(s);
}

void session_lease(struct agent_core *c)
{
	for (size_t i = c->n_open; i-- > 0;) /* one that ends goes from the list */
		if (c->now_ms >= c->open[i]->lease_due_ms)
			check_lease(c->open[i]);
	arm(c, AGENT_TIMER_LEASE);
}

/* Tell the peer now and then that we are not dead but busy on its behalf. */
static void say_working(struct session *s)
{
	struct agent_core *c = s->core;
	struct buf out = { 0 };
	struct net_writer w;

	session_begin_message(s, &w, &out, NET_MSG_CONV);
	net_put_uint(&w, "c", CONV_STILL_WORKING);
	session_send(s, &w, &out);
	s->working_due_ms = c->now_ms + c->config.lease_ms / 3 + 1;
}

void session_working(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_open; i++)
		if (c->now_ms >= c->open[i]->working_due_ms)
			say_working(c->open[i]);
	arm(c, AGENT_TIMER_WORKING);
}

/* From when we last said something: many short waits are one long silence. */
static void arm_working(struct session *s)
{
	struct agent_core *c = s->core;
	s->working_due_ms = s->told_ms + c->config.lease_ms / 3 + 1;
	arm(c, AGENT_TIMER_WORKING);
	arm_lease(s);
}

void session_wait(struct session *s)
{
	count_time(s);
	s->waiting = true;
	arm_working(s);
}

void session_beside(struct session *s)
{
	count_time(s);
	s->beside = true;
	arm_working(s);
}

/* ---- messages ---- */

void session_begin_message(struct session *s, struct net_writer *w, struct buf *out,
			   enum net_msg_type type)
{
	net_write_begin(w, out, type, s->id);
}

void session_send(struct session *s, struct net_writer *w, struct buf *out)
{
	struct agent_core *c = s->core;
	int status = net_write_end(w, NULL);

	assert(status == 0); /* every body here is within its limit by construction */
	(void)status;
	s->record.bytes_out += out->len;
	s->told_ms = c->now_ms;
	peer_send(c, s->peer, out);
}

static void answer(struct agent_core *c, struct peer *p, const uint8_t id[AGENT_SESSION],
		   enum net_msg_type type, int code, uint64_t ms, const char *why)
{
	struct buf out = { 0 };
	struct net_writer w;
	char text[NET_REASON_MAX + 1];

	snprintf(text, sizeof(text), "%s", why);
	net_write_begin(&w, &out, type, id);
	if (type == NET_MSG_DEFER) {
		net_put_uint(&w, "ms", ms);
	} else {
		net_put_int(&w, "code", code);
		net_put_str(&w, "why", text);
	}
	net_write_end(&w, NULL);
	peer_send(c, p, &out);
}

/* Relation rows that are too long to travel (TransR's) are said to have no length. */
static void put_side(struct agent_core *c, struct net_writer *w, const struct peer *p)
{
	size_t rel_floats = c->best->rel_floats;

	net_put_uint(w, "ef", c->best->ent_floats);
	net_put_uint(w, "rf", rel_floats <= PPAT_DIM_MAX ? rel_floats : 0);
	net_put_bin(w, "a", p->version, 32);
	net_put_uint(w, "q", p->chain.sequence);
	net_put_bin(w, "h", p->chain.head, 32);
	net_put_uint(w, "w", p->chain.n_tail);
	net_put_bool(w, "vn", c->config.virtual_neighbours && !c->config.noisy_rows);
	if (c->config.noisy_rows) {
		net_put_double(w, "rn", c->config.release_noise);
		net_put_double(w, "rc", c->config.release_clip);
	}
}

struct side { /* what put_side() says of the other */
	uint32_t ent_floats, rel_floats, tail;
	uint8_t version[32], head[32];
	uint64_t sequence;
	bool neighbours;
	double noise, clip; /* on its rows as client; noise 0: none */
};

static void get_side(const struct net_map *m, struct side *o, struct err *e)
{
	o->ent_floats = (uint32_t)net_get_uint(m, "ef", 1, PPAT_DIM_MAX, e);
	o->rel_floats = (uint32_t)net_get_uint(m, "rf", 0, PPAT_DIM_MAX, e);
	net_get_fixed(m, "a", o->version, 32, e);
	o->sequence = net_get_uint(m, "q", 0, LEDGER_COUNT_MAX, e);
	net_get_fixed(m, "h", o->head, 32, e);
	o->tail = (uint32_t)net_get_uint(m, "w", 0, LEDGER_TAIL_MAX, e);
	o->neighbours = net_get_bool(m, "vn", e);
	o->noise = o->clip = 0;
	if (net_has(m, "rn")) {
		o->noise = net_get_double(m, "rn", DP_MULTIPLIER_MIN, DP_MULTIPLIER_MAX, e);
		o->clip = net_get_double(m, "rc", 1e-3, 100, e);
	}
}

static void agree(struct session *s, const struct side *o)
{
	s->their_ent_floats = o->ent_floats;
	s->their_rel_floats = o->rel_floats;
	s->their_virtual = o->neighbours;
	s->their_noise = o->noise;
	s->their_clip = o->clip;
	s->their_tail = o->tail;
	memcpy(s->peer->version_theirs, o->version, 32);
}

/* ---- host: the proposal and its answer ---- */

static bool budget_left(struct agent_core *c, struct peer *p)
{
	bool map = c->config.translator == AGENT_MAP;
	struct ledger_mechanism m =
		map ? session_ledger_release(c) : session_ledger_votes(c, p, p->n_slots);
	uint64_t least = map ? 1 : c->config.ppat_batch;

	if (c->config.translator == AGENT_PROCRUSTES || session_ledger_left(c, p, &m) >= least)
		return true;
	peer_trouble(c, p, ERR_BUDGET,
		     "privacy budget exhausted: no %s left toward it: see `fkge ledger "
		     "quote`, or use procrustes",
		     map ? "release of a map is" : "labels are");
	queue_drop(c, p);
	return false;
}

static void send_proposal(struct agent_core *c, struct peer *p, uint64_t t)
{
	uint8_t id[AGENT_SESSION];
	struct session *s;
	struct buf out = { 0 };
	struct net_writer w;

	c->io.draw(c->io.ctx, id, sizeof(id));
	s = session_new(c, p, AGENT_HOST, id);
	s->align = t == AGENT_ALIGN;
	session_begin_message(s, &w, &out, NET_MSG_PROPOSE);
	net_put_uint(&w, "t", t);
	put_side(c, &w, p);
	net_put_bin(&w, "d", p->digest,
		    p->aligned && memcmp(p->aligned_ours, p->version, 32) == 0 ? 32 : 0);
	session_send(s, &w, &out);
}

void session_propose(struct agent_core *c, struct peer *p)
{
	if (budget_left(c, p))
		send_proposal(c, p, c->config.translator);
}

void session_propose_align(struct agent_core *c, struct peer *p)
{
	send_proposal(c, p, AGENT_ALIGN);
}

static enum ledger_translator on_record(uint64_t t)
{
	static const enum ledger_translator translators[] = { [AGENT_PROCRUSTES] =
								      LEDGER_PROCRUSTES,
							      [AGENT_PPAT] = LEDGER_PPAT,
							      [AGENT_MAP] = LEDGER_MAP,
							      [AGENT_ALIGN] =
								      LEDGER_NO_TRANSLATOR };

	return translators[t];
}

static void accepted(struct session *s, const struct net_msg *m)
{
	struct agent_core *c = s->core;
	struct err e = { 0 };
	struct side o;

	get_side(&m->body, &o, &e);
	s->run_psi = net_get_bool(&m->body, "p", &e);
	s->their_serial = net_get_uint(&m->body, "s", 1, UINT64_MAX, &e);
	if (e.code == 0)
		handback_heads(c, s->peer, o.sequence, o.tail, o.head, &e);
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	agree(s, &o);
	if (s->peer->signalled > s->their_serial) /* of a best that it does not have */
		s->peer->signalled = s->their_serial;
	if (s->run_psi && intersect_wait_ms(c, s->peer) > 0) {
		session_abort(s, true, ERR_BUSY,
			      "names were compared less than federation.names_every_s ago");
		return;
	}
	if (!s->run_psi && !peer_aligned(s->peer)) {
		session_abort(s, true, ERR_BUSY, "names have changed meanwhile");
		return;
	}
	s->record.translator = on_record(s->align ? AGENT_ALIGN : c->config.translator);
	commit_record(s, NULL);
	session_goto(s, PHASE_SYNC_HOST);
	session_ledger_sync(s);
}

static void deferred(struct session *s, const struct net_msg *m)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	struct err e = { 0 };
	uint64_t ms = net_get_uint(&m->body, "ms", 0, UINT32_MAX, &e);
	uint64_t spent_ms = c->now_ms - s->started_ms;

	session_end(s);
	queue_later(c, p, ms);
	if (spent_ms > c->config.retry_min_ms) /* an answer takes no time */
		peer_rest(c, p, spent_ms);
}

/* ---- client: answering a proposal ---- */

static void send_accept(struct session *s)
{
	struct agent_core *c = s->core;
	struct buf out = { 0 };
	struct net_writer w;

	session_begin_message(s, &w, &out, NET_MSG_ACCEPT);
	put_side(c, &w, s->peer);
	net_put_bool(&w, "p", s->run_psi);
	s->our_serial = c->best_serial; /* what we send may be better by then */
	net_put_uint(&w, "s", s->our_serial);
	session_ready(s);
	session_send(s, &w, &out);
	session_ledger_sync(s);
	session_drain(s);
}

static void accept(struct agent_core *c, struct peer *p, const struct net_msg *m,
		   const struct side *o, uint64_t t, bool run_psi)
{
	struct session *s = session_new(c, p, AGENT_CLIENT, m->session);

	memcpy(c->seen[s->serial % SEEN_MAX], m->session, AGENT_SESSION);
	p->owed = false; /* it need not hear when there is room */
	agree(s, o);
	s->run_psi = run_psi;
	s->align = t == AGENT_ALIGN;
	s->record.translator = on_record(t);
	session_wait(s);
	commit_record(s, send_accept);
}

/* Both proposed at once: the lower key's proposal stands. */
static bool yields_to(struct agent_core *c, struct peer *p)
{
	struct session *s = session_with(c, p);

	if (s == NULL || s->role != AGENT_HOST || s->phase != PHASE_PROPOSED)
		return false;
	if (memcmp(c->key, p->info.key, AGENT_KEY) < 0)
		return false;
	session_end(s);
	queue_later(c, p, 0);
	return true;
}

/* A proposal that we have accepted before is an old message: nobody waits for us. */
static bool seen_before(const struct agent_core *c, const uint8_t id[AGENT_SESSION])
{
	for (size_t i = 0; i < SEEN_MAX; i++)
		if (memcmp(c->seen[i], id, AGENT_SESSION) == 0)
			return true;
	return false;
}

static bool can_serve(const struct agent_core *c, const struct peer *p)
{
	return session_with(c, p) == NULL && session_can_serve(c);
}

static void check_mode(const struct agent_core *c, uint64_t t, struct err *e)
{
	const char *const mode[] = { "pairs", "rounds" };
	bool rounds = t == AGENT_ALIGN;

	if (e->code == 0 && rounds != in_rounds(c))
		err_set(e, ERR_REFUSED, "federation.mode: we are in %s, not in %s", mode[!rounds],
			mode[rounds]);
}

/* An owner whose rows stay at home.  It is the final answer: nobody asks again. */
static void check_roles(const struct agent_core *c, struct err *e)
{
	if (e->code == 0 && c->config.roles == AGENT_HOST_ONLY)
		err_set(e, ERR_REFUSED,
			"federation.roles: we take rows in and send none of ours; let us host");
}

/* An owner who wants noise on his rows does not want them to leave without. */
static int check_own_rows(struct agent_core *c, struct peer *p, uint64_t t, struct err *e)
{
	struct ledger_mechanism m = session_ledger_release(c);

	if (!c->config.noisy_rows)
		return 0;
	if (t != AGENT_PROCRUSTES)
		return err_set(e, ERR_REFUSED,
			       "we send our rows with noise alone (privacy.noisy_rows), which only "
			       "the translator procrustes does");
	if (session_ledger_left(c, p, &m) == 0)
		return err_set(e, ERR_BUDGET,
			       "privacy budget exhausted: no release of our rows is left toward "
			       "this peer");
	return 0;
}

/* Of one of the two, or ours with others: first entries are handed back. */
static bool ledger_is_behind(const struct agent_core *c, const struct peer *p)
{
	return handback_waits(c, p) || (c->config.noisy_rows && handback_blocks(c));
}

/* Names would be compared again: not yet, and the owner sees who wants that. */
static bool too_soon(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	uint64_t wait_ms = intersect_wait_ms(c, p);

	if (wait_ms == 0)
		return false;
	peer_trouble(c, p, ERR_BUSY,
		     "wants names compared again; in %llu s at the earliest "
		     "(federation.names_every_s)",
		     (unsigned long long)wait_ms / 1000 + 1);
	answer(c, p, m->session, NET_MSG_DEFER, 0, wait_ms < UINT32_MAX ? wait_ms : UINT32_MAX, "");
	return true;
}

void session_proposed(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	struct err e = { 0 };
	struct side o;
	uint64_t t = net_get_uint(&m->body, "t", 0, AGENT_ALIGN, &e);
	struct net_bytes d = net_get_bin(&m->body, "d", 0, 32, &e);
	uint64_t wait_ms;
	bool known;

	get_side(&m->body, &o, &e);
	check_mode(c, t, &e);
	check_roles(c, &e);
	if (seen_before(c, m->session))
		return;
	wait_ms = peer_must_wait(c, p);
	if (wait_ms == 0 && peer_gives_way(c, p))
		wait_ms = c->config.retry_min_ms;
	if (e.code == 0 && p->back.failed) /* not p->trouble, which is the owner's: of anything */
		err_set(&e, ERR_LEDGER, "%s", p->back.why);
	if (e.code == 0 &&
	    (wait_ms > 0 || ledger_is_behind(c, p) || (!yields_to(c, p) && !can_serve(c, p)))) {
		p->owed = wait_ms == 0;
		p->owed_ms = c->now_ms;
		answer(c, p, m->session, NET_MSG_DEFER, 0,
		       core_jitter(c, wait_ms > 0 ? wait_ms : c->config.retry_min_ms), "");
		return;
	}
	if (e.code == 0) {
		memcpy(p->version_theirs, o.version, 32);
		handback_heads(c, p, o.sequence, o.tail, o.head, &e);
	}
	known = d.len == 32 && peer_aligned(p) && memcmp(d.base, p->digest, 32) == 0;
	if (e.code == 0 && known && t != AGENT_ALIGN && peer_nothing_shared(p))
		err_set(&e, ERR_REFUSED, "we share nothing, as both of us know");
	if (e.code == 0)
		check_own_rows(c, p, t, &e);
	if (e.code != 0) {
		answer(c, p, m->session, NET_MSG_REFUSE, e.code, 0, e.text);
		if (e.code == ERR_LEDGER || e.code == ERR_BUDGET)
			peer_trouble(c, p, e.code, "%.200s", e.text);
		return;
	}
	if (!known && too_soon(c, p, m))
		return;
	accept(c, p, m, &o, t, !known);
}

/* ---- after the ledgers are in step ---- */

void session_synced(struct session *s)
{
	if (s->run_psi) {
		session_goto(s, PHASE_PSI);
		conversation_psi(s);
	} else {
		session_goto(s, PHASE_ALIGNED);
		session_aligned(s);
	}
}

static void send_done(struct session *s, int outcome, const struct ledger_signed *receipt)
{
	struct buf out = { 0 };
	struct net_writer w;
	uint8_t wire[LEDGER_WIRE];

	if (receipt)
		ledger_wire_encode(receipt, wire);
	session_begin_message(s, &w, &out, NET_MSG_DONE);
	net_put_int(&w, "o", outcome);
	net_put_bin(&w, "r", wire, receipt ? sizeof(wire) : 0);
	net_put_bin(&w, "c", receipt ? receipt->countersignature : wire,
		    receipt ? LEDGER_SIGNATURE : 0);
	session_send(s, &w, &out);
}

static void over_with_nothing(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;

	p->unusable = true;
	record_end(s, STORE_DONE, ERR_NOTFOUND, "nothing shared");
	commit_record(s, NULL);
	snprintf(p->trouble, sizeof(p->trouble),
		 "nothing shared: our names and theirs have none in "
		 "common, or none that can be translated");
	core_notice(c, AGENT_NOTICE_SESSION, p, ERR_NOTFOUND, "session with %.60s: nothing shared",
		    p->info.name);
	session_end(s);
	queue_drop(c, p);
	peer_served(c, p, s->our_serial);
}

/* A session that was about nothing else: both have it on disk. */
static void over_with_alignment(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;

	record_end(s, STORE_DONE, 0, "alignment");
	commit_record(s, NULL);
	core_notice(c, AGENT_NOTICE_SESSION, p, 0, "aligned with %.60s: %u entities, %u relations",
		    p->info.name, p->n_ent, p->n_rel);
	memcpy(p->fed.digest, p->digest, 32);
	p->fed.has_digest = true;
	p->fed.hopes = 0;
	p->fed.hope_from = 0;
	p->serve_ms = p->not_before_ms = c->now_ms + backoff_ms(c, p->fed.aligns++);
	p->failures = p->failed_row = 0;
	p->cost_ms /= 2;
	p->trouble[0] = '\0';
	p->sessions++;
	c->sessions++;
	session_end(s);
}

void session_aligned(struct session *s)
{
	struct buf out = { 0 }, terms = { 0 };
	struct net_writer w;
	struct err e = { 0 };

	if (s->role == AGENT_CLIENT)
		return; /* the host goes on: terms, or DONE with nothing */
	if (s->align) {
		send_done(s, 0, NULL);
		over_with_alignment(s);
		return;
	}
	if (conversation_terms(s, &e) == ERR_NOTFOUND) {
		send_done(s, ERR_NOTFOUND, NULL);
		over_with_nothing(s);
		return;
	}
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	session_goto(s, PHASE_TERMS);
	ppat_config_encode(&s->terms, &terms);
	session_begin_message(s, &w, &out, NET_MSG_PROPOSE);
	net_put_bin(&w, "c", terms.base, terms.len);
	net_put_uint(&w, "e", session_ledger_entries_first(s));
	session_send(s, &w, &out);
	buf_release(&terms);
}

/* Client: the terms of the translation. */
static void proposed_terms(struct session *s, const struct net_msg *m)
{
	struct err e = { 0 };
	struct buf out = { 0 };
	struct net_writer w;
	struct net_bytes b = net_get_bin(&m->body, "c", 1, 4096, &e);
	uint8_t hash[32];

	s->entries_first = (uint32_t)net_get_uint(&m->body, "e", 0, 2, &e);
	if (e.code == 0)
		ppat_config_decode(&s->terms, b.base, b.len, &e);
	if (e.code == 0)
		conversation_check_terms(s, &s->terms, &e);
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	if (conversation_open(s, &e) != 0) {
		session_abort_private(s, e.code, e.text);
		return;
	}
	ppat_config_hash(&s->terms, hash);
	session_begin_message(s, &w, &out, NET_MSG_ACCEPT);
	net_put_bin(&w, "c", hash, 32);
	session_send(s, &w, &out);
	session_goto(s, s->entries_first ? PHASE_OPENING : PHASE_TRANSLATE);
	if (s->phase == PHASE_TRANSLATE)
		conversation_drive(s);
}

static void accepted_terms(struct session *s, const struct net_msg *m)
{
	struct err e = { 0 };
	uint8_t theirs[32], ours[32];

	net_get_fixed(&m->body, "c", theirs, 32, &e);
	ppat_config_hash(&s->terms, ours);
	if (e.code == 0 && memcmp(ours, theirs, 32) != 0)
		err_set(&e, ERR_PROTO, "other terms were accepted than proposed");
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	session_goto(s, PHASE_OPENING);
	session_ledger_opening(s);
}

void session_open_translator(struct session *s)
{
	struct err e = { 0 };

	session_goto(s, PHASE_TRANSLATE);
	if (conversation_open(s, &e) != 0)
		session_abort_private(s, e.code, e.text);
	else
		conversation_drive(s);
}

/* ---- the end ---- */

static void note_session(struct session *s)
{
	struct agent_core *c = s->core;
	const char *name = s->peer->info.name;
	struct ppat_result r;

	ppat_result(s->conv, &r);
	if (ppat_spends(&s->terms, PPAT_HOST))
		core_notice(c, AGENT_NOTICE_SESSION, s->peer, 0,
			    "session with %.60s done: %u rows, %llu %s, %.2f s and %.3f of them "
			    "held up by the ledger",
			    name, s->terms.slots, (unsigned long long)r.labels_drawn,
			    s->terms.translator == PPAT_MAP ? "release" : "labels",
			    (double)(c->now_ms - s->started_ms) / 1000.0,
			    (double)s->held_ms / 1000.0);
	else
		core_notice(c, AGENT_NOTICE_SESSION, s->peer, 0,
			    "session with %.60s done: %u rows%s", name, s->terms.slots,
			    ppat_spends(&s->terms, PPAT_CLIENT) ? ", which came with noise" : "");
}

void session_finish(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	struct conv *conv = s->conv;

	note_session(s);
	p->served_now = s->their_serial;
	p->in_round = true;
	p->failures = p->failed_row = 0;
	p->cost_ms /= 2;
	p->trouble[0] = '\0';
	p->sessions++;
	c->sessions++;
	s->conv = NULL;
	session_end(s);
	learn_aggregate(c, p, conv);
}

/* Host: the settle entry bears both signatures and is on disk. */
void session_done(struct session *s)
{
	assert(s->role == AGENT_HOST);
	send_done(s, 0, &s->receipt);
	if (!ppat_spends(&s->terms, PPAT_CLIENT))
		session_finish(s);
}

void session_served(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;

	core_notice(c, AGENT_NOTICE_SESSION, p, 0, "served %.60s: %u rows%s", p->info.name,
		    s->terms.slots,
		    ppat_spends(&s->terms, PPAT_CLIENT) ? ", with noise: 1 release" : "");
	p->sessions++;
	p->failed_row = 0;
	p->cost_ms /= 2;
	p->trouble[0] = '\0';
	c->sessions++;
	session_end(s);
	peer_served(c, p, s->our_serial);
}

/* Client: DONE has come. */
static void done(struct session *s, const struct net_msg *m)
{
	struct err e = { 0 };
	int64_t outcome = net_get_int(&m->body, "o", INT32_MIN, 0, &e);
	struct net_bytes receipt = net_get_bin(&m->body, "r", 0, LEDGER_WIRE, &e);
	uint8_t wire[LEDGER_WIRE];

	if (e.code == 0 && s->phase == PHASE_ALIGNED && !s->align && outcome == ERR_NOTFOUND) {
		over_with_nothing(s);
		return;
	}
	if (e.code == 0 && s->phase == PHASE_ALIGNED && s->align && outcome == 0) {
		over_with_alignment(s);
		return;
	}
	ledger_wire_encode(&s->receipt, wire);
	if (e.code != 0 || s->phase != PHASE_DONE || outcome != 0 || receipt.len != sizeof(wire) ||
	    memcmp(receipt.base, wire, sizeof(wire)) != 0) {
		session_abort(s, true, ERR_PROTO, "a wrong DONE");
		return;
	}
	if (ppat_spends(&s->terms, PPAT_CLIENT))
		session_ledger_settle_own(s);
	else
		session_served(s);
}

static void aborted(struct session *s, const struct net_msg *m)
{
	struct err e = { 0 };
	char why[NET_REASON_MAX + 1];
	int64_t code = net_get_int(&m->body, "code", INT32_MIN, -1, &e);

	net_get_text(&m->body, "why", why, sizeof(why), &e);
	if (e.code != 0) {
		session_abort(s, false, ERR_PROTO, "aborted by the peer without a reason");
		return;
	}
	session_abort(s, false, (int)code, "%s: %s",
		      m->type == NET_MSG_REFUSE ? "refused by the peer" : "ended by the peer", why);
}

/* ---- dispatch ---- */

static void unexpected(struct session *s, enum net_msg_type type)
{
	session_abort(s, true, ERR_PROTO, "%s does not belong in phase '%s'", net_msg_name(type),
		      phases[s->phase].name);
}

/* By role and phase: what handle() takes.  Not looked at for what waits in the inbox. */
static bool belongs(const struct session *s, enum net_msg_type type)
{
	bool host = s->role == AGENT_HOST;

	switch (type) {
	case NET_MSG_CONV:
	case NET_MSG_LEDGER_ENTRY:
	case NET_MSG_LEDGER_ACK:
		return true; /* each looks for itself at what it takes of few values */
	case NET_MSG_PROPOSE:
	case NET_MSG_DONE:
		return !host;
	case NET_MSG_ACCEPT:
		return host && (s->phase == PHASE_PROPOSED || s->phase == PHASE_TERMS);
	case NET_MSG_DEFER:
		return host && s->phase == PHASE_PROPOSED;
	default:
		return false;
	}
}

static void handle(struct session *s, const struct net_msg *m)
{
	bool host = s->role == AGENT_HOST;

	if (m->type == NET_MSG_CONV)
		conversation_received(s, m);
	else if (m->type == NET_MSG_LEDGER_ENTRY)
		session_ledger_entry(s, m);
	else if (m->type == NET_MSG_LEDGER_ACK)
		session_ledger_ack(s, m);
	else if (m->type == NET_MSG_DONE && !host)
		done(s, m);
	else if (m->type == NET_MSG_PROPOSE && !host && !net_has(&m->body, "c"))
		; /* the proposal that we have accepted, once more */
	else if (m->type == NET_MSG_PROPOSE && !host && s->phase == PHASE_ALIGNED && !s->align)
		proposed_terms(s, m);
	else if (m->type == NET_MSG_ACCEPT && host && s->phase == PHASE_PROPOSED)
		accepted(s, m);
	else if (m->type == NET_MSG_ACCEPT && host && s->phase == PHASE_TERMS)
		accepted_terms(s, m);
	else if (m->type == NET_MSG_DEFER && host && s->phase == PHASE_PROPOSED)
		deferred(s, m);
	else
		unexpected(s, m->type);
}

static void nothing_under_way(struct session *s)
{
	struct agent_core *c = s->core;

	if (s->waiting || s->beside)
		return;
	s->heard_ms = c->now_ms; /* the peer could not answer before */
	s->working_due_ms = UINT64_MAX;
	arm(c, AGENT_TIMER_WORKING);
	arm_lease(s);
}

void session_ready(struct session *s)
{
	count_time(s);
	s->waiting = false;
	nothing_under_way(s);
}

void session_beside_over(struct session *s)
{
	count_time(s);
	s->beside = false;
	nothing_under_way(s);
}

static void handle_kept(struct session *s, const struct queued_message *k)
{
	struct agent_core *c = s->core;
	struct net_msg_head h;
	struct net_msg m;
	struct err e = { 0 };

	if (net_msg_head(&h, k->bytes, k->n, &e) == 0 && !belongs(s, h.type)) {
		unexpected(s, h.type);
		return;
	}
	if (e.code == 0 && net_msg_decode(&m, k->bytes, k->n, &e) == 0) {
		handle(s, &m);
		net_msg_release(&m);
		return;
	}
	conduct_breach(c, s->peer, e.code, "sent a message that can't be read: %.150s", e.text);
	session_abort(s, true, ERR_PROTO, "a message that can't be read");
}

/* Handle what waited, until something makes it wait again. */
void session_drain(struct session *s)
{
	struct queued_message *p;

	if (s->over || s->draining)
		return;
	s->draining = true;
	while (!s->over && !s->waiting && !conversation_blocked(s) &&
	       (p = message_queue_take(&s->inbox)) != NULL) {
		handle_kept(s, p);
		free(p);
	}
	s->draining = false;
}

/* The session with this peer that has this id; NULL: none under way has. */
static struct session *find_session(const struct agent_core *c, const struct peer *p,
				    const uint8_t *id)
{
	struct session *s = session_with(c, p);

	return s != NULL && memcmp(s->id, id, AGENT_SESSION) == 0 ? s : NULL;
}

/* Of none under way: a new one, or the peer hears that it is over. */
static bool expects_new(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	bool of_one = h->type == NET_MSG_ACCEPT || h->type == NET_MSG_CONV ||
		      h->type == NET_MSG_LEDGER_ENTRY || h->type == NET_MSG_LEDGER_ACK;

	if (of_one && memcmp(p->told_over, h->session, AGENT_SESSION) != 0) {
		memcpy(p->told_over, h->session, AGENT_SESSION);
		answer(c, p, h->session, NET_MSG_ABORT, ERR_BUSY, 0, "this session is over");
	}
	return h->type == NET_MSG_PROPOSE;
}

/* Nothing waits, so it would be handled now. */
static bool is_free(const struct session *s)
{
	return !s->waiting && !conversation_blocked(s) && s->inbox.first == NULL;
}

static bool ends_it(enum net_msg_type type)
{
	return type == NET_MSG_ABORT || type == NET_MSG_REFUSE;
}

bool session_expects(struct agent_core *c, struct peer *p, const struct net_msg_head *h)
{
	struct session *s = find_session(c, p, h->session);

	if (s == NULL)
		return expects_new(c, p, h);
	if (ends_it(h->type) || !is_free(s) || belongs(s, h->type))
		return true;
	unexpected(s, h->type);
	return false;
}

bool session_keeps(struct agent_core *c, struct peer *p, const struct net_msg_head *h,
		   const uint8_t *bytes, size_t n)
{
	struct session *s = find_session(c, p, h->session);

	if (!h->has_session || h->type == NET_MSG_ROUND || s == NULL)
		return false;
	s->heard_ms = c->now_ms;
	s->record.bytes_in += n;
	arm_lease(s);
	if (ends_it(h->type) || is_free(s) || session_ledger_ack_beside(s, h->type))
		return false;
	if (s->inbox.bytes + n > INBOX_MAX)
		session_abort(s, true, ERR_TOOBIG, "too much was sent while we were working");
	else
		message_queue_add(&s->inbox, bytes, n);
	return true;
}

void session_message(struct agent_core *c, struct peer *p, const struct net_msg *m)
{
	struct session *s = find_session(c, p, m->session);

	if (s != NULL && ends_it(m->type))
		aborted(s, m);
	else if (s != NULL)
		handle(s, m);
	else if (!net_has(&m->body, "c"))
		session_proposed(c, p, m);
}
