#include <assert.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/labels_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "agent/core/session_internal.h"
#include "agent/core/unsettled_internal.h"
#include "agent/core/votes_internal.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "ppat/virtual.h"

/* ---- commits ---- */

/* NULL: it is over. */
static struct session *by_serial(const struct agent_core *c, uint64_t serial)
{
	for (size_t i = 0; i < c->n_open; i++)
		if (c->open[i]->serial == serial)
			return c->open[i];
	return NULL;
}

static void store_failed(struct agent_core *c, int status)
{
	c->failure = (struct core_failure){ status, true };
	core_notice(c, AGENT_NOTICE_TROUBLE, NULL, status,
		    "the store can't be written: the agent stops; free the disk or repair the "
		    "store, then start it again");
	c->stopping = true;
	c->n_commits = 0;
	session_abort_all(c, ERR_STORE, "store failed");
	rounds_stop(c, "its store failed");
	asks_stop(c, ERR_STORE, "our store failed");
	scores_stop(c, ERR_STORE, "our store failed");
	if (c->job)
		atomic_store(&c->job->cancel, true);
}

static void committed(struct agent_core *c, uint64_t ticket, int status)
{
	struct waiting_commit w;

	if (c->n_commits == 0 || c->commits[0].ticket != ticket)
		return; /* of before a failure */
	w = c->commits[0];
	c->n_commits--;
	memmove(c->commits, c->commits + 1, c->n_commits * sizeof(*c->commits));
	if (status != 0) {
		store_failed(c, status);
		return;
	}
	if (in_rounds(c))
		rounds_committed(c, ticket);
	if (w.then != NULL)
		w.then(c);
	else if (w.session_then != NULL && by_serial(c, w.session) != NULL)
		w.session_then(by_serial(c, w.session));
}

/* ---- jobs ---- */

static void own_job_done(struct agent_core *c, struct agent_job *job)
{
	c->job = NULL;
	scores_note_encoder(c);
	if (c->fed.now != NULL)
		rounds_job_done(c, job);
	else if (c->doing == DOING_VALIDATE)
		rounds_validate_done(c, job);
	else
		learn_job_done(c, job);
}

static struct session *by_job(const struct agent_core *c, const struct agent_job *job)
{
	for (size_t i = 0; i < c->n_open; i++)
		if (c->open[i]->job == job)
			return c->open[i];
	return NULL;
}

static void job_done(struct agent_core *c, struct agent_job *job)
{
	struct session *s = by_job(c, job);

	if (job->kind == AGENT_JOB_PRICE)
		session_ledger_keep_price(c, job);
	if (answers_job_done(c, job)) {
		answers_next(c);
	} else if (job == c->job) {
		own_job_done(c, job);
	} else if (s != NULL) {
		s->job = NULL;
		(job->kind == AGENT_JOB_PRICE ? session_ledger_priced : conversation_job_done)(s,
											       job);
	} else { /* its session is over; the conversation waited for this */
		if (job->kind == AGENT_JOB_CONV)
			conv_free(job->subject);
		ppat_virtual_free(job->beside);
		c->detached_jobs--;
	}
	if (job->kind == AGENT_JOB_PRICE)
		free(job->subject);
	free(job);
}

/* ---- what to do next ---- */

/* Its owner may have changed federation.sleep_s since it was set. */
static void set_wake_timer(struct agent_core *c)
{
	uint64_t ms = config_ms(c->config->federation.sleep_s),
		 since = c->now_ms - c->sleep.since_ms;

	if (c->sleep.wakes && ms > 0)
		c->io.set_timer(c->io.ctx, AGENT_TIMER_WAKE, ms > since ? ms - since : 0);
	else
		c->io.cancel_timer(c->io.ctx, AGENT_TIMER_WAKE);
}

/* sleep_s after it has last had something to do, whatever it has proposed in vain since then. */
static void set_wake(struct agent_core *c, bool wakes)
{
	if (c->sleep.wakes == wakes)
		return;
	c->sleep.wakes = wakes;
	c->sleep.since_ms = c->now_ms;
	set_wake_timer(c);
}

static void set_asleep(struct agent_core *c, bool asleep)
{
	if (c->sleep.asleep == asleep)
		return;
	c->sleep.asleep = asleep;
	if (asleep)
		set_wake(c, true);
	core_notice(c, AGENT_NOTICE_STATE, NULL, 0, "%s", asleep ? "asleep" : "awake");
}

static void stop_if_quiet(struct agent_core *c)
{
	if (c->job || answers_busy(c) || c->detached_jobs || c->n_commits || c->n_open)
		return;
	if (c->account.proved_new && !c->failure.store) { /* nothing else was written since */
		struct store_batch b = { 0 };

		core_add_proved(c, &b);
		core_commit(c, &b, NULL);
		return;
	}
	c->stopped = true;
	for (int t = 0; t < AGENT_TIMERS; t++)
		c->io.cancel_timer(c->io.ctx, (enum agent_timer)t);
	core_notice(c, AGENT_NOTICE_STOPPED, NULL, c->failure.status, "stopped");
}

static void poll_again(struct agent_core *c, uint64_t wait_ms)
{
	if (wait_ms != UINT64_MAX)
		c->io.set_timer(c->io.ctx, AGENT_TIMER_POLL, wait_ms);
}

/* Peers that did not take what we sent: a new link starts afresh. */
static void drop_overflown(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (!p->overflow)
			continue;
		p->overflow = false;
		peer_link_anew(c, p);
	}
}

static void begin(struct agent_core *c, void (*what)(struct agent_core *c))
{
	set_wake(c, false);
	set_asleep(c, false);
	what(c);
}

static void propose(struct agent_core *c, struct peer *p)
{
	set_asleep(c, false);
	session_propose(c, p);
}

/* Between two signals of ours; the last one counts.  What a partner that stood still for a minute
 * finds waiting is then less than it takes from anybody (receive.c, PLAIN_BURST). */
enum { SIGNAL_REST_MS = 40 };

/* How long until there is more to tell; UINT64_MAX: no need. */
static uint64_t tell(struct agent_core *c)
{
	uint64_t rest_ms = UINT64_MAX;

	if (c->must_signal && c->now_ms < c->signal.due_ms) {
		rest_ms = c->signal.due_ms - c->now_ms;
	} else if (c->must_signal) {
		peers_signal_all(c);
		c->signal.due_ms = c->now_ms + SIGNAL_REST_MS;
	}
	if (session_can_serve(c))
		peers_signal_pending(c);
	return rest_ms;
}

/* It has news, or had some since our last round but one, and may have others in time: who rests, or
 * is slower than we are, is not waited for. */
static bool brings_news(const struct agent_core *c, const struct peer *p)
{
	return p->queued ||
	       (c->rounds - p->heard_round <= 1 && p->heard_ms + p->every_ms <= c->gather.until_ms);
}

/* May a partner that this round has not heard yet still come? */
static bool gathering(const struct agent_core *c)
{
	if (c->config->federation.queue == CONFIG_QUEUE_EACH || c->now_ms >= c->gather.until_ms)
		return false;
	if (session_hosts(c) > 0)
		return true;
	if (peers_round_full(c))
		return false;
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (p->greeted && peer_listed(p) && !p->in_round && p->failed_row == 0 &&
		    peer_sends(p) && !peer_nothing_shared(p) && !judge_is_out(p) &&
		    brings_news(c, p))
			return true;
	}
	return false;
}

static void gather(struct agent_core *c, uint64_t wait_ms)
{
	uint64_t until = c->gather.until_ms, left = UINT64_MAX, rest_ms = tell(c);

	if (c->in_round > 0)
		left = until > c->now_ms ? until - c->now_ms : 0;
	left = rest_ms < left ? rest_ms : left;
	poll_again(c, wait_ms < left ? wait_ms : left);
}

/* Nobody can be served now: tell what is new, train alone, or sleep. */
static void nothing_queued(struct agent_core *c, uint64_t wait_ms)
{
	uint64_t alone_ms = learn_local_wait_ms(c), rest_ms, first_ms;

	if (!dp_charge_left(c))
		dp_charge_over(c);
	rest_ms = tell(c);
	if (alone_ms == 0) {
		begin(c, learn_local);
		return;
	}
	if (c->n_open == 0) {
		set_wake(c, true); /* who has news and no time holds up no other */
		if (wait_ms == UINT64_MAX) {
			wait_ms = peers_links_search(c);
			set_asleep(c, alone_ms == UINT64_MAX); /* nobody may come of those */
		}
	}
	first_ms = alone_ms < wait_ms ? alone_ms : wait_ms;
	poll_again(c, rest_ms < first_ms ? rest_ms : first_ms);
}

/* Between rounds: alignments first, then the next one. */
static void next_of_rounds(struct agent_core *c)
{
	uint64_t wait_ms = UINT64_MAX;
	struct peer *p = NULL;

	rounds_next(c, &p, &wait_ms);
	if (p != NULL || c->doing != DOING_NOTHING) {
		set_wake(c, false);
		set_asleep(c, false);
		if (p != NULL)
			session_propose_align(c, p);
	} else {
		poll_again(c, wait_ms);
		set_wake(c, wait_ms == UINT64_MAX);
		set_asleep(c, wait_ms == UINT64_MAX);
	}
}

/* Sessions as host that may begin now: all, or, in their turn, one. */
static struct peer *host_due(struct agent_core *c, uint64_t *wait_ms)
{
	struct peer *p = peer_queue_next(c, wait_ms);

	while (p != NULL && session_may_host(c)) {
		propose(c, p);
		p = peer_queue_next(c, wait_ms);
	}
	return p;
}

static bool merges_next(struct agent_core *c)
{
	if (!peer_queue_hosts(c))
		learn_merge_drop(c, NULL);
	return !(c->in_round && c->config->federation.queue == CONFIG_QUEUE_EACH) &&
	       learn_merge_waits(c);
}

static void train_first(struct agent_core *c)
{
	if (!dp_charge_waits(c)) {
		begin(c, learn_first);
		return;
	}
	dp_charge_over(c);
	set_asleep(c, true);
}

/* The loop of methods 3.1: starts at most one thing. */
static void next_of_pairs(struct agent_core *c)
{
	bool each = c->in_round && c->config->federation.queue == CONFIG_QUEUE_EACH;
	uint64_t wait_ms = UINT64_MAX;
	struct peer *p;

	if (!c->trained) {
		train_first(c);
		return;
	}
	if (session_beside_all(c))
		tell(c);
	if (merges_next(c)) {
		begin(c, learn_merge_next);
		return;
	}
	p = each ? NULL : host_due(c, &wait_ms);
	if (c->doing != DOING_NOTHING)
		; /* in its turn */
	else if (c->in_round && gathering(c))
		gather(c, wait_ms);
	else if (c->in_round)
		learn_round(c);
	else if (p || session_hosts(c) > 0)
		gather(c, wait_ms); /* when one of the sessions under way is done */
	else
		nothing_queued(c, wait_ms);
}

/* What sessions that are over have asked for is on disk: the next one with that partner sends the
 * entries of theirs that it has not countersigned. */
static bool sessions_settled(const struct agent_core *c)
{
	for (size_t i = 0; i < c->n_commits; i++)
		if (c->commits[i].session != 0 && by_serial(c, c->commits[i].session) == NULL)
			return false;
	return true;
}

/* All decisions are on disk.  A commit of a session under way is about its pair alone, and that
 * pair has no other session. */
static bool is_settled(const struct agent_core *c)
{
	for (size_t i = 0; i < c->n_commits; i++)
		if (c->commits[i].session == 0)
			return false;
	return sessions_settled(c);
}

/* So long until the training under way, if it takes as long as the last one, is over but for the
 * time that a round waits: rows that come before are older than need be. */
static uint64_t hosts_in_ms(const struct agent_core *c)
{
	uint64_t done = c->now_ms - c->gather.since_ms;
	uint64_t ahead = done + config_ms(c->config->federation.gather_s);

	return core_trains(c) && ahead < c->gather.takes_ms ? c->gather.takes_ms - ahead : 0;
}

/* What the next round may take in comes while this one is trained. */
static uint64_t host_beside(struct agent_core *c)
{
	uint64_t wait_ms = hosts_in_ms(c);

	if (c->doing == DOING_NOTHING || !c->trained || !session_hosts_beside(c) ||
	    !sessions_settled(c) || learn_merge_may_move(c))
		return UINT64_MAX;
	if (wait_ms == 0)
		host_due(c, &wait_ms);
	return wait_ms;
}

/* What was too early to be told when the work under way began. */
static uint64_t tell_beside(struct agent_core *c)
{
	if (!session_beside_all(c))
		return UINT64_MAX;
	if (c->doing != DOING_NOTHING && !in_rounds(c) && c->trained && is_settled(c))
		return tell(c);
	if (session_can_serve(c))
		peers_signal_pending(c);
	return UINT64_MAX;
}

/* Called after every event. */
static void what_next(struct agent_core *c)
{
	uint64_t wait_ms, rest_ms;

	if (!c->started || c->stopped)
		return;
	drop_overflown(c);
	peers_links_rest(c);
	if (c->stopping) {
		stop_if_quiet(c);
		return;
	}
	if (c->gather.links_round != c->rounds + c->lone_rounds && c->doing == DOING_NOTHING) {
		c->gather.links_round = c->rounds + c->lone_rounds;
		c->gather.links_due = true;
	}
	if (c->gather.links_due) /* at the end of a session, before another one begins */
		c->gather.links_due = !peers_links_turn(c);
	/* Jobs of sessions that are over take their places until they are back. */
	if (c->doing == DOING_NOTHING && is_settled(c) && c->detached_jobs < session_limit(c)) {
		if (in_rounds(c) && c->trained)
			next_of_rounds(c);
		else
			next_of_pairs(c);
	}
	wait_ms = host_beside(c);
	rest_ms = tell_beside(c);
	poll_again(c, rest_ms < wait_ms ? rest_ms : wait_ms);
}

/* ---- events ---- */

static void stranger(struct agent_core *c, const struct agent_event *e)
{
	struct agent_notice n = { AGENT_NOTICE_STRANGER, e->peer, ERR_IDENTITY,
				  "an unlisted key knocked", "an unlisted key knocked" };

	if (e->kind != AGENT_EVENT_LINK_UP)
		return;
	c->io.notify(c->io.ctx, &n);
	c->io.disconnect(c->io.ctx, e->peer);
}

static bool is_stranger(struct agent_core *c, const struct agent_event *e)
{
	const struct peer *p = peer_find(c, e->peer);

	return p == NULL || !peer_listed(p);
}

static void link_down(struct agent_core *c, struct peer *p, int status)
{
	peer_link_down(c, p);
	if (status == ERR_TOOBIG) /* said under the seal: no other could have */
		conduct_breach(c, p, status, "sent a message larger than any may be");
}

static void link_event(struct agent_core *c, const struct agent_event *e)
{
	struct peer *p = peer_find(c, e->peer);

	if (e->kind == AGENT_EVENT_LINK_UP && p->conduct.shut)
		c->io.disconnect(c->io.ctx, p->info.key);
	else if (e->kind == AGENT_EVENT_LINK_UP)
		peer_link_up(c, p, e->called);
	else if (!p->linked)
		; /* late: the link is down already */
	else if (e->kind == AGENT_EVENT_LINK_DOWN)
		link_down(c, p, e->status);
	else if (e->kind == AGENT_EVENT_WRITABLE)
		peer_writable(c, p);
	else
		receive_message(c, p, e->bytes, e->n);
}

static void timer(struct agent_core *c, enum agent_timer t)
{
	if (t == AGENT_TIMER_LEASE)
		session_lease(c);
	else if (t == AGENT_TIMER_WORKING)
		session_working(c);
	else if (t == AGENT_TIMER_ASKED)
		asks_timer(c);
	else if (t == AGENT_TIMER_SCORED)
		scores_timer(c);
	else if (t == AGENT_TIMER_MEMBERS)
		gossip_turn(c);
	else if (t == AGENT_TIMER_ROUND)
		rounds_timer(c);
	else if (t == AGENT_TIMER_WAKE && c->sleep.wakes) {
		c->sleep.wakes = false;
		set_asleep(c, false);
		c->gather.links_due = true;
		c->must_signal = c->trained; /* in case that somebody missed it */
	}
}

static void start(struct agent_core *c)
{
	c->started = true;
	c->gather.over_ms = c->now_ms; /* partners have to come first, and to say what they have */
	for (size_t i = 0; i < c->n_peers; i++) /* when it was, nobody knows any more */
		c->peers[i]->conduct.breach_ms = c->now_ms;
	handback_start(c);
	intersect_start(c);
	if (latest_frame_wanted(c) && !latest_frame_common(c) && dp_charge_needed(c))
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, 0,
			    "federation.frame common: with train.dp tables of %s have no common "
			    "frame, since first rows are secret: their rows go rotated",
			    c->best->model->name);
	else if (latest_frame_wanted(c) && !latest_frame_common(c))
		core_notice(c, AGENT_NOTICE_TROUBLE, NULL, 0,
			    "federation.frame common: tables of %s have one frame only where all "
			    "began by names in the federation, and these were trained before: "
			    "their rows go rotated, with a map for each session",
			    c->best->model->name);
	if (c->at_start.n)
		core_commit(c, &c->at_start, NULL);
	for (size_t i = 0; i < c->n_peers; i++)
		if (!peer_queue_takes(c, c->peers[i]))
			peer_queue_drop(c, c->peers[i]); /* of a time when it took rows in */
	peers_links_start(c);
}

static void say_bye(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peers[i]->linked)
			peer_say(c, c->peers[i], NET_MSG_BYE, NULL, NET_BODY_none, NULL);
}

static void stop(struct agent_core *c)
{
	if (c->stopping)
		return;
	c->stopping = true;
	session_abort_all(c, ERR_CANCELED, "the agent is being stopped");
	rounds_stop(c, "the agent is being stopped");
	asks_stop(c, ERR_CANCELED, "this agent is being stopped");
	scores_stop(c, ERR_CANCELED, "this agent is being stopped");
	answers_stop(c);
	if (c->job)
		atomic_store(&c->job->cancel, true);
	say_bye(c);
}

/* Of one that is on no ledger the signing key goes, too: it may have been listed with a wrong one.
 */
static void owner_forgets(struct agent_core *c, const struct agent_event *e)
{
	struct peer *p = peer_find(c, e->peer);

	if (p == NULL || peer_listed(p))
		return;
	judge_forget(p);
	if (p->chain.sequence > 0)
		return;
	memset(p->info.sign_key, 0, sizeof(p->info.sign_key));
	p->proven = false;
}

static void owner_trusts(struct agent_core *c, const struct agent_event *e)
{
	struct peer *p = peer_find(c, e->peer);

	if (p == NULL)
		return;
	judge_trust(c, p);
	peer_queue_offered(c, p);
}

/* What is read where it is used has its effect by itself; this is what was decided before. */
static void owner_changes_settings(struct agent_core *c)
{
	peer_queue_offered_all(c);
	peers_links_again(c);
	set_wake_timer(c);
}

static void owner_commands(struct agent_core *c, const struct agent_event *e)
{
	if (e->kind == AGENT_EVENT_PEER_ADDED)
		peer_added(c, e);
	else if (e->kind == AGENT_EVENT_PEER_REVOKED)
		peer_revoked(c, e);
	else if (e->kind == AGENT_EVENT_TRAIN)
		c->train_now = true;
	else if (e->kind == AGENT_EVENT_SETTINGS)
		owner_changes_settings(c);
	else if (e->kind == AGENT_EVENT_RESUME)
		rounds_resume(c);
	else if (e->kind == AGENT_EVENT_PEER_FORGOTTEN)
		owner_forgets(c, e);
	else if (e->kind == AGENT_EVENT_PEER_TRUSTED)
		owner_trusts(c, e);
	else if (e->kind == AGENT_EVENT_ASK)
		asks_begin(c, e->ask);
	else if (e->kind == AGENT_EVENT_SCORE)
		scores_begin(c, e->score);
	else if (e->kind == AGENT_EVENT_STOP)
		stop(c);
}

void agent_core_event(struct agent_core *c, const struct agent_event *e)
{
	if (c->stopped)
		return;
	assert(e->now_ms >= c->now_ms);
	c->now_ms = e->now_ms;
	c->wall_ms = e->wall_ms > 0 ? e->wall_ms : 0; /* what is sent of it begins with 1970 */
	session_standstill(c);
	switch (e->kind) {
	case AGENT_EVENT_START:
		start(c);
		break;
	case AGENT_EVENT_LINK_UP:
	case AGENT_EVENT_LINK_DOWN:
	case AGENT_EVENT_MESSAGE:
	case AGENT_EVENT_WRITABLE:
		if (is_stranger(c, e)) { /* and that is all it comes to */
			stranger(c, e);
			return;
		}
		link_event(c, e);
		break;
	case AGENT_EVENT_TIMER:
		timer(c, e->timer);
		break;
	case AGENT_EVENT_JOB_DONE:
		job_done(c, e->job);
		break;
	case AGENT_EVENT_COMMITTED:
		committed(c, e->ticket, e->status);
		break;
	case AGENT_EVENT_ENTRIES:
		handback_entries(c, e);
		break;
	default:
		owner_commands(c, e);
		break;
	}
	session_step(c);
	what_next(c);
	session_free_ended(c);
	core_assert_invariants(c);
}

/* ---- birth and end ---- */

/* Strangers, and peers that the owner turned away, are nothing to the core.  A former partner may
 * have a chain, whatever it is now, and proposals that must not be joined again. */
static int load_peers(struct agent_core *c, const struct store_core *saved, struct err *e)
{
	for (size_t i = 0; i < saved->n_peers; i++)
		if (saved->peers[i].status == STORE_LISTED ||
		    saved->peers[i].status == STORE_REVOKED || saved->peers[i].has_ledger)
			peer_new(c, &saved->peers[i]);
	if (peers_listed(c) > AGENT_PEERS_MAX)
		return err_set(e, ERR_USAGE,
			       "the store lists %zu partners, at most %d are possible: fkge peer "
			       "revoke those that are none",
			       peers_listed(c), AGENT_PEERS_MAX);
	return 0;
}

static struct peer *peer_by_sign(struct agent_core *c, const struct ledger_chain *chain)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (ledger_chain_side(chain, store_peer_account(&c->peers[i]->info)) >= 0)
			return c->peers[i];
	return NULL;
}

/* A chain whose peer is not known any more still counts for the lineage: it stays
 * with a peer record that is not listed. */
static void load_chains(struct agent_core *c, struct store_core *saved)
{
	for (size_t i = 0; i < saved->n_chains; i++) {
		struct ledger_chain *from = saved->chains[i], moved = *from;
		struct peer *p = peer_by_sign(c, from);

		if (p == NULL) {
			struct store_peer lost = { .status = STORE_REVOKED };
			int other = 1 - ledger_chain_side(from, c->account.key);

			memcpy(lost.sign_key, from->key[other & 1], 32);
			memcpy(lost.key, from->key[other & 1], 32);
			p = peer_new(c, &lost);
		}
		ledger_chain_release(&p->chain);
		ledger_chain_init(from, moved.key[0], moved.key[1]);
		p->chain = moved;
	}
}

static void load_closing(struct agent_core *c, const struct store_meta *m)
{
	for (size_t at = 1; at + 32 <= m->len; at += 32)
		for (size_t i = 0; i < c->n_peers; i++)
			if (memcmp(store_peer_account(&c->peers[i]->info), m->base + at, 32) == 0)
				c->peers[i]->closing = true;
}

/* A resume that the owner asked for while we were down is carried out once. */
static void load_resume(struct agent_core *c)
{
	c->fed.resumed = true;
	store_batch_meta(&c->at_start, AGENT_META_RESUME, "", 0);
}

static void load_alignments(struct agent_core *c, const struct store_core *saved)
{
	for (size_t i = 0; i < saved->n_alignments; i++) {
		const struct store_alignment *a = &saved->alignments[i];
		struct peer *p = peer_find(c, a->peer);

		if (p) /* their version follows from our own record (core_record.c) */
			peer_align(p, a->version, p->aligned_theirs, a->digest, a->slots, a->n);
	}
}

static void load_queue(struct agent_core *c, const struct store_core *saved)
{
	for (size_t i = 0; i < saved->n_queue; i++) {
		struct peer *p = peer_find(c, saved->queue[i].peer);

		if (p == NULL || !peer_listed(p) || p->queued)
			continue;
		p->queued = true;
		p->queue_position = ++c->next_queue_position;
	}
}

/* The counts of `status` go on from those in the store. */
static void load_session_counts(struct agent_core *c, const struct store_core *saved)
{
	for (size_t i = 0; i < saved->ended.n; i++) {
		const struct store_session_count *n = &saved->ended.at[i];
		struct peer *p = peer_find(c, n->peer);

		c->sessions += n->done;
		if (p == NULL)
			continue;
		p->sessions = n->done;
		p->failed = n->aborted;
	}
}

/* That can go to p in one session: those that are shared, and virtual neighbours. */
static uint64_t rows_at_most(const struct agent_core *c, const struct peer *p)
{
	const struct graph *g = c->graph;

	return p->n_slots +
	       (c->config->federation.neighbours
			? (uint64_t)graph_vocab_count(g->entities) + graph_vocab_count(g->relations)
			: 0);
}

/* Sessions that a crash cut off are over; what they reserved stays spent. */
static void close_open_sessions(struct agent_core *c, const struct store_core *saved)
{
	for (size_t i = 0; i < saved->n_open; i++) {
		struct store_session s = saved->open[i];
		struct peer *p = peer_find(c, s.peer);

		if (p != NULL) { /* nobody knows any more what came of it */
			p->last = (struct peer_last){ 0 };
			if (s.role == STORE_CLIENT)
				unsettled_note(c, p, s.id, rows_at_most(c, p), false, &c->at_start);
		}
		s.state = STORE_ABORTED;
		s.outcome = ERR_CANCELED;
		snprintf(s.reason, sizeof(s.reason), "the agent ended during this session");
		store_batch_session(&c->at_start, &s);
	}
	if (saved->n_open > 0)
		core_record_add(c, &c->at_start);
}

static int load_noted(struct agent_core *c, const struct store_core *saved, struct err *e)
{
	int status = history_load(c, saved, e);

	if (status == 0)
		status = votes_load(c, saved, e);
	return status == 0 ? unsettled_load(c, saved, e) : status;
}

/* No partner has had a part in these tables: what all offer is new to them. */
static void forget_used(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		c->peers[i]->used_serial = 0;
}

/* What is on record may be of tables that are no longer the best. */
static bool was_trained(struct agent_core *c)
{
	if (!c->has_best)
		c->first_done = c->first_worse = 0;
	return c->trained && c->has_best;
}

static int load_saved_meta(struct agent_core *c, const struct store_core *saved, struct err *e)
{
	int status = 0;

	for (size_t i = 0; status == 0 && i < saved->n_meta; i++)
		if (strcmp(saved->meta[i].key, AGENT_META) == 0)
			status = core_record_load(c, saved->meta[i].base, saved->meta[i].len, e);
		else if (strcmp(saved->meta[i].key, AGENT_META_CLOSE) == 0)
			load_closing(c, &saved->meta[i]);
		else if (strcmp(saved->meta[i].key, STORE_META_PROVED) == 0)
			buf_add(&c->account.proved, saved->meta[i].base, saved->meta[i].len);
		else if (strcmp(saved->meta[i].key, AGENT_META_RESUME) == 0 &&
			 saved->meta[i].len > 0)
			load_resume(c);
	return status;
}

static int load(struct agent_core *c, struct store_core *saved, struct err *e)
{
	int status = load_peers(c, saved, e);

	if (status == 0)
		status = load_saved_meta(c, saved, e);
	if (status)
		return status;
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peers[i]->conduct.breaches > 0)
			conduct_load(c->peers[i]);
	status = load_noted(c, saved, e);
	if (status)
		return status;
	load_chains(c, saved);
	c->dp.spent = saved->training;
	load_alignments(c, saved);
	load_queue(c, saved);
	load_session_counts(c, saved);
	intersect_load(c, saved);
	judge_load(c, saved);
	answers_load(c, saved);
	gossip_load(c, saved);
	status = handback_load(c, saved, e);
	if (status)
		return status;
	c->has_best = saved->has_best;
	if (saved->has_best) {
		c->best_score = saved->best.valid_score;
		c->epochs = saved->best.epochs;
		if (memcmp(saved->best.digest, c->best_digest, 32) != 0)
			return err_set(e, ERR_STORE,
				       "the tables given are not those of the best checkpoint");
	}
	c->trained = was_trained(c);
	if (!c->has_best || c->history.anew)
		forget_used(c);
	/* The owner trained or went back by hand: tables that no partner has seen. */
	if (c->has_best && memcmp(c->kept_digest, c->best_digest, 32) != 0) {
		c->trained = true;
		c->served_serial++;
		c->history.by_hand = c->history.has_before;
		core_record_add(c, &c->at_start); /* the next one by hand gets another serial */
	}
	c->signal.serial = c->trained ? c->served_serial : 0;
	c->gather.links_round = c->rounds + c->lone_rounds;
	return 0;
}

static const uint8_t *account_of(const struct agent_parts *parts)
{
	return parts->account != NULL ? parts->account : parts->sign_public;
}

static void take_settings(struct agent_core *c, const struct agent_parts *parts)
{
	struct agent_terms *t = &c->terms;

	c->config = parts->config;
	c->fed.weight = 1;
	config_fed_settings(c->config, &c->fed.settings);
	if (parts->rounds_host != NULL)
		memcpy(c->fed.settings.host, parts->rounds_host, FED_KEY);
	agent_terms_init(t, c->config, parts->graph->split[GRAPH_TRAIN].n);
	memcpy(t->statement.agent, account_of(parts), sizeof(t->statement.agent));
	memcpy(t->statement.lineage, parts->lineage, sizeof(t->statement.lineage));
	t->retry_min_ms = parts->retry_min_ms > 0 ? parts->retry_min_ms : AGENT_RETRY_MIN_MS;
	t->retry_max_ms = parts->retry_max_ms > 0 ? parts->retry_max_ms : AGENT_RETRY_MAX_MS;
}

int agent_core_new(struct agent_core **out, const struct agent_parts *parts, struct err *e)
{
	struct agent_core *c;
	int status = config_check(parts->config, "settings", e);

	if (status)
		return status;
	c = mem_array(1, sizeof(*c));
	take_settings(c, parts);
	c->io = *parts->io;
	c->learner = parts->learner;
	c->graph = parts->graph;
	c->names = parts->names;
	memcpy(c->key, parts->key, 32);
	memcpy(c->sign_public, parts->sign_public, 32);
	memcpy(c->sign_secret, parts->sign_secret, 64);
	memcpy(c->account.key, account_of(parts), 32);
	ledger_rotations_copy(&c->account.rotations, &parts->saved->rotations);
	memcpy(c->account.lineage, parts->lineage, 32);
	/* 3: alignments of before net/psi.h had tests of answers, and H for two sides alone, are
	 * none */
	crypto_generichash(c->names_secret, 32, (const uint8_t *)"fkge names version 3", 20,
			   c->sign_secret, 32);
	c->best = parts->best;
	c->latest = parts->latest;
	c->work = kge_emb_copy(c->best);
	c->imported = mem_array((size_t)c->best->n_ent + c->best->n_rel, sizeof(*c->imported));
	kge_emb_digest(c->best, c->best_digest);
	c->local_left = c->config->federation.local_rounds;
	c->rest_due_ms = UINT64_MAX;
	status = load(c, parts->saved, e);
	if (status == 0)
		latest_load(c);
	if (status == 0)
		status = rounds_load(c, parts, e);
	if (status) {
		agent_core_free(c);
		return status;
	}
	close_open_sessions(c, parts->saved);
	*out = c;
	return 0;
}

void agent_core_free(struct agent_core *c)
{
	if (c == NULL)
		return;
	learn_merge_release(c); /* rows that wait say so at their peers */
	for (size_t i = 0; i < c->n_peers; i++)
		peer_free(c->peers[i]);
	while (c->n_open > 0)
		session_free(c->open[--c->n_open]);
	session_free_ended(c);
	free(c->peers);
	free(c->commits);
	gossip_release(c);
	asks_release(c);
	scores_release(c);
	answers_release(c);
	rounds_release(c);
	labels_release(c);
	store_batch_release(&c->at_start);
	store_batch_release(&c->signatures);
	judge_release(c);
	latest_release(c);
	kge_emb_free(c->best);
	kge_emb_free(c->latest);
	kge_emb_free(c->work);
	free(c->imported);
	votes_release(c);
	free(c->dp.unsettled);
	ledger_rotations_release(&c->account.rotations);
	buf_release(&c->account.proved);
	store_restored_release(&c->restored);
	sodium_memzero(c, sizeof(*c));
	free(c);
}
