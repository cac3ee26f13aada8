/* agent/core/peers_queue.c - signals: "my best has improved", and the queue of those that came,
 * from which what_next() takes the next host's session. */
#include <assert.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"

bool peer_queue_hosts(const struct agent_core *c)
{
	return c->config->federation.roles != CONFIG_CLIENT_ONLY && latest_trains_on(c);
}

/* What comes to an agent whose private budget is spent can be neither trained nor kept: but names
 * are compared in a session, which questions need. */
bool peer_queue_takes(const struct agent_core *c, const struct peer *p)
{
	return peer_queue_hosts(c) && (dp_charge_left(c) || !peer_aligned(p));
}

/* ---- ours ---- */

static void signal_one(struct agent_core *c, struct peer *p)
{
	struct net_signal b = { .serial = c->signal.serial };

	p->signal_pending = false;
	if (!p->linked || peer_offered(c) == 0 || p->roles == CONFIG_CLIENT_ONLY ||
	    peer_nothing_shared(p))
		return;
	peer_say(c, p, NET_MSG_SIGNAL, NULL, NET_BODY_signal, &b);
}

void peers_signal_all(struct agent_core *c)
{
	c->must_signal = false;
	c->signal.serial = c->served_serial;
	for (size_t i = 0; i < c->n_peers; i++)
		signal_one(c, c->peers[i]);
}

void peers_signal_pending(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (c->peers[i]->signal_pending && session_with(c, c->peers[i]) == NULL)
			signal_one(c, c->peers[i]);
}

/* ---- theirs: one entry a peer, oldest first, on disk ---- */

/* Who is busy defers and says so when it is free, several times in a round of pairs: a partner that
 * could not make us forget the backoff each time would be missed by the round, or waited for in
 * vain.  One with which no session has come about for so many times is not so welcome. */
enum { HURRIES = 8, HURRIED = 4, HURRY_LESS = 8 };

static uint64_t next_hurry_ms(const struct agent_core *c, const struct peer *p)
{
	uint64_t ms = c->terms.retry_min_ms;

	if (in_rounds(c))
		return ms;
	return p->hurries < HURRIES ? ms / HURRIED : ms * HURRY_LESS;
}

/* The partner is there and has something: no more waiting, unless it says so all the time. */
static void hurry(struct agent_core *c, struct peer *p)
{
	if (c->now_ms < p->hurry_ms)
		return;
	p->hurry_ms = c->now_ms + next_hurry_ms(c, p);
	p->hurries += p->hurries < HURRIES;
	p->not_before_ms = c->now_ms;
	p->failures = 0;
}

/* ---- from rest ---- */

static bool has_other_names(const struct peer *p)
{
	return p->aligned && p->greeted && !peer_aligned(p);
}

static bool may_wake(const struct peer *p)
{
	if (p->wakes == PEER_WAKES_NEW && p->used_serial == 0 && p->rounds_had == 0)
		return true;
	return p->wakes == PEER_WAKES || (p->wakes != PEER_WOKE_BY_NAMES && has_other_names(p));
}

/* Rows of it would be taken in, did this agent not rest. */
static bool is_welcome(const struct agent_core *c, const struct peer *p)
{
	return (dp_charge_left(c) || !peer_aligned(p)) && !peer_nothing_shared(p) &&
	       !judge_is_out(p) && c->now_ms >= p->spent_ms;
}

/* Patience counts rounds: a fast partner has had them all before a slow one came. */
static void end_rest_for(struct agent_core *c, struct peer *p)
{
	if (!latest_rests(c) || !latest_has_rounds(c) || !is_welcome(c, p) || !may_wake(p) ||
	    c->config->federation.roles == CONFIG_CLIENT_ONLY)
		return;
	core_notice(c, AGENT_NOTICE_STATE, p, 0,
		    "this agent takes rows in again: %.60s offers some, and %s", p->info.name,
		    has_other_names(p)	     ? "names have changed since they were compared"
		    : p->wakes == PEER_WAKES ? "other names are shared, or it was in quarantine"
					     : "no round has had any of it");
	p->wakes = has_other_names(p) ? PEER_WOKE_BY_NAMES : PEER_WOKE;
	peer_queue_wake(c);
}

void peer_queue_put(struct agent_core *c, struct peer *p, uint64_t serial)
{
	struct store_batch b = { 0 };

	p->offered = serial;
	end_rest_for(c, p);
	if (!peer_queue_hosts(c) || !is_welcome(c, p))
		return;
	if (serial > p->signalled) {
		p->signalled = serial;
		p->heard_round = c->rounds;
		p->every_ms = p->heard_ms > 0 ? c->now_ms - p->heard_ms : 0;
		p->heard_ms = c->now_ms;
	}
	hurry(c, p);
	if (p->queued)
		return;
	p->queued = true;
	p->queue_position = ++c->next_queue_position;
	store_batch_signal(&b, p->info.key, c->wall_ms);
	core_commit(c, &b, NULL);
}

void peer_queue_offered(struct agent_core *c, struct peer *p)
{
	if (p->greeted && p->offered > p->used_serial && !in_rounds(c) && !p->other_mode &&
	    peer_sends(p))
		peer_queue_put(c, p, p->offered);
}

void peer_queue_offered_all(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		c->peers[i]->spent_ms = 0; /* our owner may allow more now */
		peer_queue_offered(c, c->peers[i]);
	}
}

/* Who rests queues nothing, and partners say it once: what they have said is taken in now. */
void peer_queue_wake(struct agent_core *c)
{
	struct store_batch b = { 0 };
	bool rested = latest_rests(c);

	c->worse = 0;
	if (!rested)
		return;
	core_record_add(c, &b); /* or a restart would rest again */
	core_commit(c, &b, NULL);
	peer_queue_offered_all(c);
}

void peer_queue_drop(struct agent_core *c, struct peer *p)
{
	struct store_batch b = { 0 };

	if (!p->queued)
		return;
	p->queued = false;
	store_batch_unsignal(&b, p->info.key);
	core_commit(c, &b, NULL);
}

void peer_queue_later(struct agent_core *c, struct peer *p, uint64_t at_least_ms)
{
	uint64_t ms = peer_backoff_ms(c, p->failures);

	if (at_least_ms > c->terms.retry_max_ms)
		at_least_ms = c->terms.retry_max_ms;
	p->failures++;
	p->not_before_ms = c->now_ms + core_jitter(c, ms > at_least_ms ? ms : at_least_ms);
}

void peer_signal(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	uint64_t serial = m->signal.serial;

	if (m->wrong.code != 0)
		return;
	if (in_rounds(c))
		hurry(c, p); /* it is free */
	else if (serial > p->used_serial && !p->other_mode && peer_sends(p))
		peer_queue_put(c, p, serial);
}

/* Names that are not as they were compared need another intersection first. */
uint64_t peer_proposed_from(const struct agent_core *c, const struct peer *p)
{
	uint64_t from = p->not_before_ms > p->rest_ms ? p->not_before_ms : p->rest_ms;
	uint64_t names = c->now_ms + intersect_wait_ms(c, p);

	return !peer_aligned(p) && names > from ? names : from;
}

/* Rows that the next round may take in: while one is trained, also of a partner that is in it and
 * has newer ones. */
static bool may_be_had(const struct agent_core *c, const struct peer *p)
{
	return peer_has_news(p) && !p->has_rows &&
	       (!p->in_round || (core_trains(c) && p->signalled > p->using_serial));
}

/* May be proposed to now; else *wait_ms is when, if that is earlier. */
static bool may_be_next(const struct agent_core *c, const struct peer *p, uint64_t *wait_ms)
{
	uint64_t from = peer_proposed_from(c, p);

	if (!may_be_had(c, p) || !peer_queue_takes(c, p) || !p->greeted || !peer_listed(p) ||
	    judge_is_out(p) || handback_waits(c, p) || session_with(c, p) != NULL)
		return false;
	if (from > c->now_ms && from - c->now_ms < *wait_ms)
		*wait_ms = from - c->now_ms;
	return from <= c->now_ms;
}

struct peer *peer_queue_next(struct agent_core *c, uint64_t *wait_ms)
{
	struct peer *due[AGENT_PEERS_MAX], *next = NULL, *chosen;
	bool all_last = true; /* of due */
	size_t n = 0;

	*wait_ms = UINT64_MAX;
	if (!peer_queue_hosts(c) || handback_blocks(c) || peers_round_full(c))
		return NULL;
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];
		bool last = peer_goes_last(c, p);

		if (!may_be_next(c, p, wait_ms) || (n > 0 && last && !all_last))
			continue;
		if (!last && all_last)
			n = 0;
		all_last = last;
		if (n == 0 || p->queue_position < next->queue_position)
			next = p;
		assert(n < AGENT_PEERS_MAX);
		due[n++] = p;
	}
	chosen = peer_choose_next(c, due, n);
	return chosen != NULL ? chosen : next;
}
