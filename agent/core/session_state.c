/* agent/core/session_state.c - what a session is, whatever it is about: its phases, its time, what
 * it waits for, its messages out, and its end.  Decides nothing of what comes next: session.c does.
 *
 * A session holds up all other partners, so signs of life do not prolong it: the time in which we
 * wait for the peer is counted, and bounded by what the peer has to do (session_patience_ms()). */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"
#include "agent/core/unsettled_internal.h"
#include "base/mem.h"
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

const char *session_phase_name(enum phase p)
{
	return phases[p].name;
}

void session_goto(struct session *s, enum phase to)
{
	assert(phases[s->phase].next & (1u << to));
	assert(s->charged <= s->reserved);
	s->phase = to;
}

/* ---- what the peer has to do, on a slow machine and a slow link ---- */

enum {
	POINT_US = 400,	     /* for one name of the intersection: net/psi.h, "What it costs" */
	FLOPS_MS = 100000,   /* multiplications and additions a millisecond */
	LINK_BYTES_MS = 512, /* bytes a millisecond */
	WORK_MAX_MS = 1 << 30,
	PSI_BYTES = 2 * NET_PSI_POINT, /* of one point that travels twice */
};

/* Operations of one step of PPAT, of all its networks (methods 3.3). */
static double step_flops(const struct ppat_config *t)
{
	double row = 6.0 * t->host_dim * t->teacher_hidden;
	double student = 12.0 * t->host_dim * t->student_hidden;
	double generator = 6.0 * t->client_dim * t->host_dim + student;
	double pool = ppat_config_pool(t);

	return row * t->batch * t->teachers * (t->teacher_steps + 1.0) +
	       student * pool * (t->student_steps + 1.0) +
	       generator * pool * (t->generator_steps + 1.0);
}

static double translation_ms(const struct ppat_config *t)
{
	double wide = t->client_dim > t->host_dim ? t->client_dim : t->host_dim;
	double rows = (double)t->slots + t->max_virtual, steps = ppat_config_steps(t);
	double flops = 8 * wide * wide * rows + 30 * wide * wide * wide;
	double bytes = 2 * rows * wide * sizeof(float);

	if (t->translator == PPAT_PPAT) {
		flops += steps * step_flops(t);
		bytes += steps * ppat_config_pool(t) * t->host_dim * 2 * sizeof(float);
	}
	return flops / FLOPS_MS + bytes / LINK_BYTES_MS;
}

static uint64_t work_ms(const struct session *s)
{
	double points = (double)s->psi_points;
	double ms = points * POINT_US / 1000 + points * PSI_BYTES / LINK_BYTES_MS;

	if (s->terms.slots > 0)
		ms += translation_ms(&s->terms);
	return ms < WORK_MAX_MS ? (uint64_t)ms : WORK_MAX_MS;
}

/* ---- time, and waiting ---- */

/* Adds the time since the last count to the side whose turn it was. */
static void count_time(struct session *s)
{
	const struct agent_core *c = s->core;

	*(s->waiting || s->beside ? &s->own_ms : &s->theirs_ms) += c->now_ms - s->counted_ms;
	s->counted_ms = c->now_ms;
}

static uint64_t session_theirs_ms(const struct session *s)
{
	const struct agent_core *c = s->core;

	return s->theirs_ms + (s->waiting || s->beside ? 0 : c->now_ms - s->counted_ms);
}

/* The partner's share of the work is like ours, and it may be slower; work known to be more comes
 * on top; and work too small to be counted is done within the lease. */
static uint64_t session_patience_ms(const struct session *s)
{
	const struct agent_core *c = s->core;

	return config_ms(c->config->federation.lease_s) + SLOWER * s->own_ms + work_ms(s);
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
	uint64_t end = s->started_ms + config_ms(c->config->federation.session_s);
	uint64_t ms = s->received_ms + config_ms(c->config->federation.lease_s), patience, due;

	count_time(s);
	patience = session_patience_ms(s);
	due = c->now_ms + (patience > s->theirs_ms ? patience - s->theirs_ms : 0);
	ms = ms < due ? ms : due;
	if (s->waiting || s->beside || ms > end) /* our own work: the limit alone counts */
		ms = end;
	s->lease_due_ms = ms;
	arm(c, AGENT_TIMER_LEASE);
}

/* From when we last said something: many short waits are one long silence. */
static void arm_working(struct session *s)
{
	struct agent_core *c = s->core;
	s->working_due_ms = s->sent_ms + config_ms(c->config->federation.lease_s) / 3 + 1;
	arm(c, AGENT_TIMER_WORKING);
	arm_lease(s);
}

void session_heard(struct session *s)
{
	s->received_ms = s->core->now_ms;
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

static void nothing_under_way(struct session *s)
{
	struct agent_core *c = s->core;

	if (s->waiting || s->beside)
		return;
	s->received_ms = c->now_ms; /* the peer could not answer before */
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

/* ---- several at a time ---- */

bool session_beside_all(const struct agent_core *c)
{
	return session_limit(c) > 1;
}

/* In rounds a session is an alignment, and part of what they wait for. */
uint32_t session_limit(const struct agent_core *c)
{
	return in_rounds(c) ? 1 : c->config->federation.sessions;
}

static bool has_room(const struct agent_core *c)
{
	return c->n_open + c->detached_jobs < session_limit(c);
}

/* A label of ours is reserved by one session at a time, as a step of the loop; and what goes back
 * to its best has no tables that are the same during a session. */
bool session_hosts_beside(const struct agent_core *c)
{
	return session_beside_all(c) && latest_keeps(c) &&
	       c->config->federation.translator == CONFIG_PROCRUSTES;
}

/* Room is left for as many as client, or all would wait for each other. */
bool session_may_host(const struct agent_core *c)
{
	if (!session_hosts_beside(c))
		return c->doing == DOING_NOTHING && has_room(c);
	return has_room(c) && session_hosts(c) < session_limit(c) / 2;
}

bool session_can_serve(const struct agent_core *c)
{
	return (c->doing == DOING_NOTHING || session_beside_all(c)) && has_room(c) && c->trained &&
	       !c->stopping;
}

void session_abort_all(struct agent_core *c, int code, const char *why)
{
	for (size_t i = c->n_open; i-- > 0;) /* one that ends goes from the list */
		session_abort(c->open[i], true, code, "%s", why);
}

/* ---- birth and end ---- */

struct session *session_new(struct agent_core *c, struct peer *p, enum agent_role role,
			    const uint8_t id[AGENT_SESSION])
{
	struct session *s = mem_array(1, sizeof(*s));

	assert(has_room(c) && session_with(c, p) == NULL);
	assert(c->config->federation.roles !=
	       (role == AGENT_HOST ? CONFIG_CLIENT_ONLY : CONFIG_HOST_ONLY));
	memcpy(s->id, id, AGENT_SESSION);
	s->core = c;
	s->serial = ++c->session_serial;
	s->peer = p;
	s->role = role;
	s->in_turn = !(role == AGENT_HOST ? session_hosts_beside(c) : session_beside_all(c));
	s->our_serial = c->served_serial;
	s->lease_due_ms = s->working_due_ms = UINT64_MAX;
	s->phase = role == AGENT_HOST ? PHASE_PROPOSED : PHASE_SYNC_HOST;
	s->started_ms = s->received_ms = s->sent_ms = s->counted_ms = c->now_ms;
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
	free(s->own);
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

void session_end(struct session *s)
{
	struct agent_core *c = s->core;

	assert(!s->over);
	if (s->job)
		c->detached_jobs++;
	if (s->job && s->job->kind == AGENT_JOB_CONV) {
		/* the worker still has the conversation: all freed when it is back */
		atomic_store(&s->job->cancel, true);
		assert(s->job->subject == s->conv);
		s->job->beside = s->neighbours;
		s->conv = NULL;
		s->neighbours = NULL;
	}
	s->job = NULL;
	unlist(s);
	if (s->in_turn)
		c->doing = DOING_NOTHING;
	arm(c, AGENT_TIMER_LEASE);
	arm(c, AGENT_TIMER_WORKING);
	s->over = true; /* who called us may still hold it */
	s->next = c->ended;
	c->ended = s;
}

void session_record_end(struct session *s, enum store_session_state state, int outcome,
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
	session_record_end(s, STORE_DONE, 0, "");
	store_batch_session(b, &s->record);
}

void session_commit_record(struct session *s, void (*then)(struct session *s))
{
	struct store_batch b = { 0 };

	s->recorded = true;
	store_batch_session(&b, &s->record);
	core_commit_session(s, &b, then);
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
		peer_queue_drop(c, p);
	else if (p->queued)
		peer_queue_later(c, p, 0);
	if (is_final(code))
		peer_trouble(c, p, code, "%s", why);
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
	net_write_close(w);
	s->record.bytes_out += out->len;
	s->sent_ms = c->now_ms;
	peer_send(c, s->peer, out);
}

/* ---- the end of a translation ---- */

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

/* Into what its host makes of the rows.  Not PPAT's labels: by so few of them its map hardly moves.
 */
static bool brings_noise(const struct session *s)
{
	return s->terms.translator == PPAT_MAP || ppat_spends(&s->terms, PPAT_CLIENT);
}

void session_finish(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	struct conv *conv = s->conv;
	struct merge_from from = { s->their_serial,    session_rows_bytes(s),
				   s->terms.unrotated, s->their_frame,
				   s->moves,	       s->own,
				   brings_noise(s) };

	note_session(s);
	p->failures = p->failed_row = p->hurries = 0;
	p->cost_ms /= 2;
	p->trouble[0] = '\0';
	p->sessions++;
	c->sessions++;
	s->conv = NULL;
	s->own = NULL;
	session_end(s);
	learn_merge_add(c, p, conv, &from);
}

void session_end_served(struct session *s)
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
	peer_note_sent(c, p, s->our_serial);
}

/* ---- the end of one that failed ---- */

/* Only the host's settle puts rows of ours on the ledger: where it breaks off before, it has as
 * many as these, and no entry says so.  What the chain has open does not tell whether the settle is
 * there: with noise the client's own reserve is open for longer, and the host writes nothing until
 * the rows have come. */
static uint64_t unsettled_rows(const struct session *s)
{
	const struct peer_last *l = &s->peer->last;

	if (s->record.state == STORE_DONE) /* the settle is there; its commit may be under way */
		return 0;
	if (s->role != AGENT_CLIENT || s->phase < PHASE_TRANSLATE || s->phase == PHASE_DONE ||
	    !l->counted || memcmp(l->session, s->id, AGENT_SESSION) != 0)
		return 0;
	return l->rows;
}

static void tell_unsettled(const struct session *s)
{
	if (unsettled_rows(s) == 0)
		return;
	core_notice(s->core, AGENT_NOTICE_TROUBLE, s->peer, 0,
		    "%.60s has had as many as %llu of our rows in a session that it has not "
		    "settled: rows sent, on the ledger and in the status, are without them",
		    s->peer->info.name, (unsigned long long)unsettled_rows(s));
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
		struct store_batch b = { 0 };

		session_record_end(s, STORE_ABORTED, code, why);
		store_batch_session(&b, &s->record);
		core_record_add(c, &b); /* what may be settled late */
		unsettled_note(c, p, s->id, unsettled_rows(s), true, &b);
		core_commit_session(s, &b, NULL);
	}
	core_notice_of(c, AGENT_NOTICE_SESSION, p, code, cause, "session with %.60s ended: %s",
		       p->info.name, why);
	tell_unsettled(s);
	theirs_ms = session_theirs_ms(s);
	if (!done && s->recorded && s->role == AGENT_HOST)
		peer_choice_in_vain(c);
	intersect_ended(s);
	session_end(s);
	if (done)
		return;
	signal_failed(c, p, code, why);
	peer_rest(c, p, theirs_ms);
}

static void tell_abort(struct session *s, int code, const char *why)
{
	struct net_reason b = { .code = code };
	struct buf out = { 0 };
	struct net_writer w;

	if (!s->peer->linked)
		return;
	snprintf(b.why, sizeof(b.why), "%.*s", NET_REASON_MAX, why);
	session_begin_message(s, &w, &out, NET_MSG_ABORT);
	net_reason_put(&w, &b);
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

/* ---- timers ---- */

/* An event that comes so long after a lease was due tells of a standstill of our own: the process
 * was stopped, the machine slept or swapped.  What partners said meanwhile is still to be read. */
enum { STOOD_STILL_MS = 1000 };

static bool is_over_limit(const struct session *s)
{
	const struct agent_core *c = s->core;

	return c->now_ms - s->started_ms >= config_ms(c->config->federation.session_s);
}

static bool is_their_turn(const struct session *s)
{
	return !s->waiting && !s->beside && !is_over_limit(s);
}

/* That time is nobody's.  Who is silent all the same has a lease more, within session_s. */
void session_standstill(struct agent_core *c)
{
	uint64_t due_ms = UINT64_MAX;

	for (size_t i = 0; i < c->n_open; i++)
		if (is_their_turn(c->open[i]) && c->open[i]->lease_due_ms < due_ms)
			due_ms = c->open[i]->lease_due_ms;
	if (c->now_ms < due_ms || c->now_ms - due_ms < STOOD_STILL_MS)
		return;
	for (size_t i = 0; i < c->n_open; i++) {
		struct session *s = c->open[i];

		if (!is_their_turn(s))
			continue;
		s->excused_ms += c->now_ms - s->counted_ms;
		s->counted_ms = s->received_ms = c->now_ms;
		arm_lease(s);
		assert(s->own_ms + s->theirs_ms + s->excused_ms == c->now_ms - s->started_ms);
	}
}

static void check_lease(struct session *s)
{
	struct agent_core *c = s->core;
	uint64_t theirs_ms = session_theirs_ms(s), patience_ms = session_patience_ms(s);

	if (is_over_limit(s))
		session_abort(s, true, ERR_TIMEOUT, "the session took longer than its limit");
	else if (theirs_ms >= patience_ms)
		session_abort(
			s, true, ERR_TIMEOUT,
			"the peer took longer than its work takes: %.1f s by phase '%s', %.1f "
			"s are enough",
			(double)theirs_ms / 1000, phases[s->phase].name,
			(double)patience_ms / 1000);
	else if (!s->waiting && !s->beside &&
		 c->now_ms - s->received_ms >= config_ms(c->config->federation.lease_s))
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
	struct net_conv b = { .conversation = CONV_STILL_WORKING };
	struct buf out = { 0 };
	struct net_writer w;

	session_begin_message(s, &w, &out, NET_MSG_CONV);
	net_conv_put(&w, &b);
	session_send(s, &w, &out);
	s->working_due_ms = c->now_ms + config_ms(c->config->federation.lease_s) / 3 + 1;
}

void session_working(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_open; i++)
		if (c->now_ms >= c->open[i]->working_due_ms)
			say_working(c->open[i]);
	arm(c, AGENT_TIMER_WORKING);
}
