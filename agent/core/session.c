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
 *      LEDGER_ENTRY / ACK   map: contract if there is none; all: reserve of 0
 *      CONV ... translation; LEDGER_ENTRY contract, reserve / ACK before labels or a map
 *      noisy rows: LEDGER_ENTRY contract and reserve of the client's own before they
 *      leave, and its settle after DONE
 *      LEDGER_ENTRY / ACK   settle: both signatures on it are the receipt
 *      DONE receipt                         ----->  over on both sides
 *
 * Either side may ABORT at any point.  While a commit or a job of the session is
 * under way its messages wait in the inbox, so each is handled in one state.
 *
 * session.c -> conversation.c -> session_ledger.c -> session_state.c: each calls those to its
 * right.  A called file says what has come about as an enum session_step, and session_step() goes
 * on from it at the end of each event. */
#include <assert.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"
#include "base/mem.h"
#include "ppat/virtual.h"

/* ---- messages ---- */

static void answer(struct agent_core *c, struct peer *p, const uint8_t id[AGENT_SESSION],
		   enum net_msg_type type, int code, uint64_t ms, const char *why)
{
	struct net_reason reason = { .code = code };
	struct net_defer defer = { .ms = ms };

	snprintf(reason.why, sizeof(reason.why), "%.*s", NET_REASON_MAX, why);
	if (type == NET_MSG_DEFER)
		peer_say(c, p, type, id, NET_BODY_defer, &defer);
	else
		peer_say(c, p, type, id, NET_BODY_reason, &reason);
}

/* Our side, as we state it to p.  Relation rows that are too long to travel (TransR's) are said to
 * have no length. */
static struct net_side our_side(const struct agent_core *c, const struct peer *p)
{
	size_t rel_floats = c->best->rel_floats;
	struct net_side o = {
		.ent_floats = c->best->ent_floats,
		.rel_floats = rel_floats <= PPAT_DIM_MAX ? rel_floats : 0,
		.sequence = p->chain.sequence,
		.tail = p->chain.n_tail,
		.neighbours = c->config->federation.neighbours && !c->config->privacy.noisy_rows,
		.has_noise = c->config->privacy.noisy_rows,
		.noise = { agent_terms_noise(&c->terms, c->config),
			   c->config->privacy.release_clip },
	};

	o.has_unit_rows = o.unit_rows = c->config->federation.unit_rows;
	o.has_frame_model = latest_frame_common(c);
	latest_frame_model(c, o.frame_model);
	memcpy(o.names, p->version, sizeof(o.names));
	memcpy(o.head, p->chain.head, sizeof(o.head));
	return o;
}

static void agree(struct session *s, const struct net_side *o)
{
	char ours[NET_MODEL_NAME_MAX + 1];

	s->their_ent_floats = (uint32_t)o->ent_floats;
	s->their_rel_floats = (uint32_t)o->rel_floats;
	s->their_virtual = o->neighbours;
	s->their_noise = o->has_noise ? o->noise.noise : 0;
	s->their_clip = o->has_noise ? o->noise.clip : 0;
	s->their_unit = o->has_unit_rows && o->unit_rows;
	s->their_tail = (uint32_t)o->tail;
	latest_frame_model(s->core, ours);
	s->their_common = o->has_frame_model && strcmp(o->frame_model, ours) == 0;
	memcpy(s->peer->version_theirs, o->names, 32);
}

/* ---- host: the proposal and its answer ---- */

static bool budget_left(struct agent_core *c, struct peer *p)
{
	bool map = c->config->federation.translator == CONFIG_MAP;
	struct ledger_mechanism m =
		map ? session_ledger_release(c) : session_ledger_votes(c, p, p->n_slots);
	uint64_t least = map ? 1 : c->config->ppat.batch;

	if (c->config->federation.translator == CONFIG_PROCRUSTES || !session_ledger_knows(c, &m) ||
	    session_ledger_left(c, p, &m) >= least)
		return true;
	peer_trouble(c, p, ERR_BUDGET,
		     "privacy budget exhausted: no %s left toward it: see `fkge ledger "
		     "quote`, or use procrustes",
		     map ? "release of a map is" : "labels are");
	p->spent_ms = c->now_ms + c->terms.retry_max_ms; /* or each signal would cost two writes */
	peer_queue_drop(c, p);
	return false;
}

static void send_proposal(struct agent_core *c, struct peer *p, uint64_t t)
{
	bool aligned = p->aligned && memcmp(p->aligned_ours, p->version, 32) == 0;
	struct net_propose b = { .translator = t,
				 .side = our_side(c, p),
				 .digest = { p->digest, aligned ? 32 : 0 } };
	uint8_t id[AGENT_SESSION];
	struct session *s;
	struct buf out = { 0 };
	struct net_writer w;

	c->io.draw(c->io.ctx, id, sizeof(id));
	s = session_new(c, p, AGENT_HOST, id);
	s->align = t == AGENT_ALIGN;
	session_begin_message(s, &w, &out, NET_MSG_PROPOSE);
	net_propose_put(&w, &b);
	session_send(s, &w, &out);
}

void session_propose(struct agent_core *c, struct peer *p)
{
	if (budget_left(c, p))
		send_proposal(c, p, c->config->federation.translator);
}

void session_propose_align(struct agent_core *c, struct peer *p)
{
	send_proposal(c, p, AGENT_ALIGN);
}

static enum ledger_translator on_record(uint64_t t)
{
	static const enum ledger_translator translators[] = { [CONFIG_PROCRUSTES] =
								      LEDGER_PROCRUSTES,
							      [CONFIG_PPAT] = LEDGER_PPAT,
							      [CONFIG_MAP] = LEDGER_MAP,
							      [AGENT_ALIGN] =
								      LEDGER_NO_TRANSLATOR };

	return translators[t];
}

static void accepted(struct session *s, const struct net_message *m)
{
	struct agent_core *c = s->core;
	const struct net_side *o = &m->accept.side;
	struct err e = m->wrong;

	if (m->kind != NET_BODY_accept)
		err_set(&e, ERR_PROTO, "terms were accepted before there are any");
	if (e.code == 0)
		handback_heads(c, s->peer, o->sequence, (uint32_t)o->tail, o->head, &e);
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	agree(s, o);
	s->run_psi = m->accept.intersect;
	s->their_serial = m->accept.serial;
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
	s->record.translator = on_record(s->align ? AGENT_ALIGN : c->config->federation.translator);
	session_commit_record(s, NULL);
	session_goto(s, PHASE_SYNC_HOST);
	session_ledger_sync(s);
}

static void deferred(struct session *s, const struct net_message *m)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	uint64_t ms = m->defer.ms; /* none, where it is wrong */
	uint64_t spent_ms = c->now_ms - s->started_ms - s->excused_ms, until_ms;

	session_end(s);
	peer_queue_later(c, p, ms);
	if (spent_ms <= c->terms.retry_min_ms) /* an answer takes no time */
		return;
	/* It may propose meanwhile, or two that are far apart would only turn each other away. */
	until_ms = c->now_ms + peer_note_cost(c, p, spent_ms);
	if (p->not_before_ms < until_ms)
		p->not_before_ms = until_ms;
}

/* ---- client: answering a proposal ---- */

static void send_accept(struct session *s)
{
	struct agent_core *c = s->core;
	struct net_accept b = { .side = our_side(c, s->peer), .intersect = s->run_psi };
	struct buf out = { 0 };
	struct net_writer w;

	s->our_serial = c->served_serial; /* what we send may be better by then */
	b.serial = s->our_serial;
	session_begin_message(s, &w, &out, NET_MSG_ACCEPT);
	net_accept_put(&w, &b);
	session_ready(s);
	session_send(s, &w, &out);
	session_ledger_sync(s);
}

static void accept(struct agent_core *c, struct peer *p, const struct net_message *m, bool run_psi)
{
	uint64_t t = m->propose.translator;
	struct session *s = session_new(c, p, AGENT_CLIENT, m->session);

	memcpy(c->seen[s->serial % SEEN_MAX], m->session, AGENT_SESSION);
	p->signal_pending = false; /* it need not hear when there is room */
	agree(s, &m->propose.side);
	s->run_psi = run_psi;
	s->align = t == AGENT_ALIGN;
	s->record.translator = on_record(t);
	session_wait(s);
	session_commit_record(s, send_accept);
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
	peer_queue_later(c, p, 0);
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
	if (e->code == 0 && c->config->federation.roles == CONFIG_HOST_ONLY)
		err_set(e, ERR_REFUSED,
			"federation.roles: we take rows in and send none of ours; let us host");
}

/* An owner who wants noise on his rows does not want them to leave without. */
static int check_own_rows(struct agent_core *c, struct peer *p, uint64_t t, struct err *e)
{
	struct ledger_mechanism m = session_ledger_release(c);

	if (!c->config->privacy.noisy_rows)
		return 0;
	if (t != CONFIG_PROCRUSTES)
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
	return handback_waits(c, p) || (c->config->privacy.noisy_rows && handback_blocks(c));
}

/* Names would be compared again: not yet, and the owner sees who wants that. */
static bool too_soon(struct agent_core *c, struct peer *p, const struct net_message *m)
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

static void proposal_came(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	const struct net_side *o = &m->propose.side;
	const struct net_bytes *d = &m->propose.digest;
	uint64_t t = m->propose.translator, wait_ms;
	struct err e = m->wrong;
	bool known;

	check_mode(c, t, &e);
	check_roles(c, &e);
	if (seen_before(c, m->session))
		return;
	wait_ms = peer_must_wait(c, p);
	if (wait_ms == 0 && peer_yields(c, p))
		wait_ms = c->terms.retry_min_ms;
	if (e.code == 0 && p->back.failed) /* not p->trouble, which is the owner's: of anything */
		err_set(&e, ERR_LEDGER, "%s", p->back.why);
	if (e.code == 0 &&
	    (wait_ms > 0 || ledger_is_behind(c, p) || (!yields_to(c, p) && !can_serve(c, p)))) {
		p->signal_pending = wait_ms == 0;
		p->signal_pending_ms = c->now_ms;
		answer(c, p, m->session, NET_MSG_DEFER, 0,
		       core_jitter(c, wait_ms > 0 ? wait_ms : c->terms.retry_min_ms), "");
		return;
	}
	if (e.code == 0) {
		memcpy(p->version_theirs, o->names, 32);
		handback_heads(c, p, o->sequence, (uint32_t)o->tail, o->head, &e);
	}
	/* one settle for what two sessions have charged would give back what has left */
	if (e.code == 0 && ledger_session_is_open(&p->chain, m->session))
		err_set(&e, ERR_LEDGER,
			"the id of a session that is open on the ledger: propose "
			"with another one");
	known = d->len == 32 && peer_aligned(p) && memcmp(d->base, p->digest, 32) == 0;
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
	accept(c, p, m, !known);
}

/* ---- after the ledgers are in step ---- */

static void send_done(struct session *s, int outcome, const struct ledger_signed *receipt)
{
	struct net_done b = { .outcome = outcome, .has_countersignature = true };
	struct buf out = { 0 };
	struct net_writer w;
	uint8_t wire[LEDGER_WIRE];

	if (receipt) {
		ledger_wire_encode(receipt, wire);
		b.receipt = (struct net_bytes){ wire, sizeof(wire) };
		b.countersignature =
			(struct net_bytes){ receipt->countersignature, LEDGER_SIGNATURE };
	}
	session_begin_message(s, &w, &out, NET_MSG_DONE);
	net_done_put(&w, &b);
	session_send(s, &w, &out);
}

static void over_with_nothing(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;

	p->unusable = true;
	if (s->role == AGENT_HOST)
		peer_choice_in_vain(c);
	session_record_end(s, STORE_DONE, ERR_NOTFOUND, "nothing shared");
	session_commit_record(s, NULL);
	snprintf(p->trouble, sizeof(p->trouble),
		 "nothing shared: our names and theirs have none in "
		 "common, or none that can be translated");
	core_notice(c, AGENT_NOTICE_SESSION, p, ERR_NOTFOUND, "session with %.60s: nothing shared",
		    p->info.name);
	session_end(s);
	peer_queue_drop(c, p);
	peer_note_sent(c, p, s->our_serial);
}

/* A session that was about nothing else, or came to nothing else: both have it on disk. */
static void over_with_alignment(struct session *s)
{
	struct agent_core *c = s->core;
	struct peer *p = s->peer;
	bool wanted_rows = s->role == AGENT_HOST && !s->align;

	session_record_end(s, STORE_DONE, 0, "alignment");
	session_commit_record(s, NULL);
	core_notice(c, AGENT_NOTICE_SESSION, p, 0, "aligned with %.60s: %u entities, %u relations",
		    p->info.name, p->n_ent, p->n_rel);
	memcpy(p->fed.digest, p->digest, 32);
	p->fed.has_digest = true;
	p->serve_ms = p->not_before_ms = c->now_ms + peer_backoff_ms(c, p->fed.aligns++);
	p->failures = p->failed_row = 0;
	p->cost_ms /= 2;
	p->trouble[0] = '\0';
	p->sessions++;
	c->sessions++;
	session_end(s);
	if (wanted_rows)
		peer_queue_drop(c, p);
}

/* On the ledger of both from the first entry on. */
static void note_unrotated(struct session *s)
{
	if (s->terms.unrotated)
		s->record.translator = LEDGER_UNROTATED;
}

static void after_alignment(struct session *s)
{
	const struct agent_core *c = s->core;
	struct buf out = { 0 }, terms = { 0 };
	struct net_terms b = { 0 };
	struct net_writer w;
	struct err e = { 0 };

	if (s->role == AGENT_CLIENT)
		return; /* the host goes on: terms, or DONE with nothing */
	/* Without a private budget rows could be neither trained nor kept. */
	if (s->align || !dp_charge_left(c)) {
		send_done(s, 0, NULL);
		over_with_alignment(s);
		return;
	}
	if (conversation_terms(s, &e) == ERR_NOTFOUND) {
		send_done(s, ERR_NOTFOUND, NULL);
		over_with_nothing(s);
		return;
	}
	if (s->job != NULL) /* here again when that is done */
		return;
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	note_unrotated(s);
	session_goto(s, PHASE_TERMS);
	ppat_config_encode(&s->terms, &terms);
	session_begin_message(s, &w, &out, NET_MSG_PROPOSE);
	b.terms = (struct net_bytes){ terms.base, terms.len };
	b.entries = session_ledger_entries_first(s);
	frame_say(s, &b.has_frame, &b.frame);
	net_terms_put(&w, &b);
	session_send(s, &w, &out);
	buf_release(&terms);
}

static void after_sync(struct session *s)
{
	session_ledger_synced(s);
	if (s->run_psi) {
		session_goto(s, PHASE_PSI);
		conversation_psi(s);
	} else {
		session_goto(s, PHASE_ALIGNED);
		after_alignment(s);
	}
}

/* Client: the terms of the translation. */
static void proposed_terms(struct session *s, const struct net_message *m)
{
	const struct net_bytes *terms = &m->terms.terms;
	struct net_accept_terms b = { 0 };
	struct err e = m->wrong;
	struct buf out = { 0 };
	struct net_writer w;

	s->entries_first = (uint32_t)m->terms.entries;
	if (e.code == 0)
		ppat_config_decode(&s->terms, terms->base, terms->len, &e);
	if (e.code == 0)
		conversation_check_terms(s, &s->terms, &e);
	if (e.code == 0)
		frame_hear(s, m->terms.has_frame, &m->terms.frame, &e);
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	if (conversation_open(s, &e) != 0) {
		session_abort_private(s, e.code, e.text);
		return;
	}
	note_unrotated(s);
	ppat_config_hash(&s->terms, b.hash);
	frame_say(s, &b.has_frame, &b.frame);
	session_begin_message(s, &w, &out, NET_MSG_ACCEPT);
	net_accept_terms_put(&w, &b);
	session_send(s, &w, &out);
	if (s->entries_first > 0)
		session_goto(s, PHASE_OPENING);
	else if (session_ledger_translate(s))
		conversation_drive(s);
}

static void accepted_terms(struct session *s, const struct net_message *m)
{
	struct err e = m->wrong;
	uint8_t ours[32];

	ppat_config_hash(&s->terms, ours);
	if (m->kind != NET_BODY_accept_terms)
		err_set(&e, ERR_PROTO, "key 'c' is missing");
	if (e.code == 0 && memcmp(ours, m->accept_terms.hash, 32) != 0)
		err_set(&e, ERR_PROTO, "other terms were accepted than proposed");
	if (e.code == 0)
		frame_hear(s, m->accept_terms.has_frame, &m->accept_terms.frame, &e);
	if (e.code != 0) {
		session_abort(s, true, e.code, "%s", e.text);
		return;
	}
	session_goto(s, PHASE_OPENING);
	session_ledger_opening(s);
}

static void open_translator(struct session *s)
{
	struct err e = { 0 };

	session_goto(s, PHASE_TRANSLATE);
	if (conversation_open(s, &e) != 0)
		session_abort_private(s, e.code, e.text);
	else
		conversation_drive(s);
}

/* ---- the end ---- */

/* Host: the settle entry bears both signatures and is on disk. */
static void after_settle(struct session *s)
{
	assert(s->role == AGENT_HOST);
	send_done(s, 0, &s->receipt);
	if (!ppat_spends(&s->terms, PPAT_CLIENT))
		session_finish(s);
}

/* Client: DONE has come. */
static void done(struct session *s, const struct net_message *m)
{
	int64_t outcome = m->done.outcome;
	const struct net_bytes *receipt = &m->done.receipt;
	bool wrong = m->wrong.code != 0;
	uint8_t wire[LEDGER_WIRE];

	if (!wrong && s->phase == PHASE_ALIGNED && !s->align && outcome == ERR_NOTFOUND) {
		over_with_nothing(s);
		return;
	}
	if (!wrong && s->phase == PHASE_ALIGNED && outcome == 0) {
		over_with_alignment(s);
		return;
	}
	ledger_wire_encode(&s->receipt, wire);
	if (wrong || s->phase != PHASE_DONE || outcome != 0 || receipt->len != sizeof(wire) ||
	    memcmp(receipt->base, wire, sizeof(wire)) != 0) {
		session_abort(s, true, ERR_PROTO, "a wrong DONE");
		return;
	}
	if (ppat_spends(&s->terms, PPAT_CLIENT))
		session_ledger_settle_own(s);
	else
		session_end_served(s);
}

static void aborted(struct session *s, const struct net_message *m)
{
	if (m->wrong.code != 0) {
		session_abort(s, false, ERR_PROTO, "aborted by the peer without a reason");
		return;
	}
	session_abort(s, false, (int)m->reason.code, "%s: %s",
		      m->type == NET_MSG_REFUSE ? "refused by the peer" : "ended by the peer",
		      m->reason.why);
}

/* ---- dispatch ---- */

static void unexpected(struct session *s, enum net_msg_type type)
{
	session_abort(s, true, ERR_PROTO, "%s does not belong in phase '%s'", net_msg_name(type),
		      session_phase_name(s->phase));
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

static void handle(struct session *s, const struct net_message *m)
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
	else if (m->type == NET_MSG_PROPOSE && !host && m->kind == NET_BODY_propose)
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

static void handle_kept(struct session *s, const struct queued_message *k)
{
	struct net_message m;
	struct net_msg_head h;

	if (net_msg_head(&h, k->bytes, k->n, NULL) == 0 && !belongs(s, h.type))
		unexpected(s, h.type);
	else if (conduct_decode(s->core, s->peer, k->bytes, k->n, &m))
		handle(s, &m);
	else
		session_abort(s, true, ERR_PROTO, "a message that can't be read");
}

/* Does what follows from the step that has come about. */
static void take_step(struct session *s, enum session_step step)
{
	assert(!s->over && s->peer != NULL);
	switch (step) {
	case SESSION_NO_STEP:
		break;
	case SESSION_DRIVE:
		conversation_drive(s);
		break;
	case SESSION_SYNCED:
		after_sync(s);
		break;
	case SESSION_ALIGNED:
		after_alignment(s);
		break;
	case SESSION_OPENED:
		open_translator(s);
		break;
	case SESSION_SETTLED:
		after_settle(s);
		break;
	case SESSION_FINISHED:
		session_finish(s);
		break;
	case SESSION_SERVED:
		session_end_served(s);
		break;
	}
}

/* All that follows now: steps, then what waited, until something makes it wait again. */
static void go_on(struct session *s)
{
	struct queued_message *p;

	while (!s->over) {
		enum session_step step = s->step;

		s->step = SESSION_NO_STEP;
		if (step != SESSION_NO_STEP) {
			take_step(s, step);
			continue;
		}
		if (s->waiting || conversation_blocked(s))
			return;
		p = message_queue_take(&s->inbox);
		if (p == NULL)
			return;
		handle_kept(s, p);
		free(p);
	}
}

void session_step(struct agent_core *c)
{
	if (c->abort_sessions)
		session_abort_all(c, ERR_CANCELED, "the agent is being stopped");
	c->abort_sessions = false;
	for (size_t i = c->n_open; i-- > 0;) /* one that ends goes from the list */
		go_on(c->open[i]);
	core_commit(c, &c->signatures, NULL); /* which nothing took along */
	assert(c->signatures.n == 0);
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

	if (of_one && memcmp(p->over_session, h->session, AGENT_SESSION) != 0) {
		memcpy(p->over_session, h->session, AGENT_SESSION);
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
	s->record.bytes_in += n;
	session_heard(s);
	if (ends_it(h->type) || is_free(s) || session_ledger_ack_beside(s, h->type))
		return false;
	if (s->inbox.bytes + n > INBOX_MAX)
		session_abort(s, true, ERR_TOOBIG, "too much was sent while we were working");
	else
		message_queue_add(&s->inbox, bytes, n);
	return true;
}

void session_message(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct session *s = find_session(c, p, m->session);

	if (s != NULL && ends_it(m->type))
		aborted(s, m);
	else if (s != NULL)
		handle(s, m);
	else if (m->kind == NET_BODY_propose)
		proposal_came(c, p, m);
}
