/* agent/core/invariants.c - what holds of the core between two events, asserted after each. */
#include <assert.h>

#include "agent/core/learn_internal.h"
#include "agent/core/session_internal.h"

static void check_commits(const struct agent_core *c)
{
	assert(c->signatures.n == 0);
	for (size_t i = 0; i < c->n_commits; i++) {
		assert(c->commits[i].ticket <= c->next.ticket);
		assert(i == 0 || c->commits[i - 1].ticket < c->commits[i].ticket);
	}
}

static void check_session(const struct agent_core *c, const struct session *s)
{
	assert(s->core == c && !s->over);
	assert(s->phase < PHASES);
	assert(s->charged <= s->reserved);     /* nothing leaves before it is on the ledger */
	assert(session_with(c, s->peer) == s); /* one with each peer */
	assert(s->received_ms <= c->now_ms && s->started_ms <= c->now_ms);
}

static void check_sessions(const struct agent_core *c)
{
	size_t in_turn = 0;

	assert(c->n_open <= CONFIG_SESSIONS_MAX);
	for (size_t i = 0; i < c->n_open; i++) {
		check_session(c, c->open[i]);
		in_turn += c->open[i]->in_turn;
	}
	assert(session_hosts(c) <= (session_hosts_beside(c) ? session_limit(c) / 2 : 1));
	assert(in_turn <= 1 && (in_turn == 1) == (c->doing == DOING_SESSION));
	(void)in_turn;
}

static void check_peer(const struct agent_core *c, const struct peer *p)
{
	assert(p->linked || !p->greeted);
	assert(peer_listed(p) || !p->kept);
	assert(!p->greeted || p->link.vain == 0);
	assert(p->n_ent + p->n_rel == p->n_slots);
	assert(p->queued ? p->queue_position > 0 : true);
	assert(p->queue_position <= c->next_queue_position);
}

static void check_learning(const struct agent_core *c)
{
	assert(c->doing != DOING_NOTHING || c->job == NULL);
	assert(c->doing != DOING_TRAIN || c->in_round == 0 || c->training == TRAINING_ROUND);
	assert(!c->trained || c->has_best);
	assert(!latest_keeps(c) || c->latest != NULL);
	assert(c->signal.serial <= c->served_serial);
	assert(c->frames.latest.rest <= c->frames.latest.moves);
	assert(c->frames.latest.moves <= c->frames.work.moves);
}

void core_assert_invariants(const struct agent_core *c)
{
	check_commits(c);
	check_sessions(c);
	check_learning(c);
	for (size_t i = 0; i < c->n_peers; i++)
		check_peer(c, c->peers[i]);
}
