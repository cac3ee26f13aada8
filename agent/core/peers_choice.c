/* agent/core/peers_choice.c - of many partners with news, whose rows a round takes in
 * (federation.partners).
 *
 * What a partner has brought is the share of rounds with its rows that were better than the best
 * until then, of those in the history (history.h: the newest 64), counted as if there had been one
 * more that was: (better + 1) / (had + 1).  So nothing of it has a record of its own, a restart
 * knows as much as before, and who has not been heard for long is new again.
 *
 * Under private training valid is data: the history of before it does not count, none is added, so
 * all are new and the choice is uniform. */
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"

enum { NEW_ONE_IN = 4 }; /* such a part of the choices is among those that no round has had */

void peer_choice_count(struct agent_core *c)
{
	const struct agent_history *h = &c->history;
	size_t n = dp_charge_needed(c) ? 0 : h->n;

	for (size_t i = 0; i < c->n_peers; i++)
		c->peers[i]->rounds_had = c->peers[i]->rounds_better = 0;
	for (size_t k = 0; k < h->n_keys; k++) {
		struct peer *p = peer_find(c, h->key[k]);

		for (size_t i = 0; i < n && p != NULL; i++) {
			if (!agent_gain_has(&h->gain[i], k))
				continue;
			p->rounds_had++;
			p->rounds_better += h->gain[i].kept;
		}
	}
}

/* Of one that some round has had: what it has brought, by the rows that both have. */
static double worth_of(const struct peer *p)
{
	return (p->rounds_better + 1.0) / (p->rounds_had + 1.0) * (p->n_slots + 1.0);
}

static bool never_had(const struct peer *p)
{
	return p->rounds_had == 0;
}

/* Uniform in [0, 1). */
static double draw_unit(struct agent_core *c)
{
	return (double)(core_random(c) >> 11) * 0x1p-53;
}

/* Moves the new ones to the front; returns how many they are. */
static size_t new_first(struct peer **of, size_t n)
{
	size_t n_new = 0;

	for (size_t i = 0; i < n; i++) {
		struct peer *p = of[i];

		if (!never_had(p))
			continue;
		of[i] = of[n_new];
		of[n_new++] = p;
	}
	return n_new;
}

struct peer *peer_choose(struct agent_core *c, struct peer **of, size_t n)
{
	size_t n_new = new_first(of, n), i = n_new;
	double sum = 0, at;

	if (n == 0)
		return NULL;
	if (n_new == n || (n_new > 0 && core_random(c) % NEW_ONE_IN == 0))
		return of[core_random(c) % n_new];
	for (size_t k = n_new; k < n; k++)
		sum += worth_of(of[k]);
	for (at = draw_unit(c) * sum; i + 1 < n && at >= worth_of(of[i]); i++)
		at -= worth_of(of[i]);
	return of[i];
}

/* ---- a round's ---- */

/* Sessions of this round: with rows, or begun since then and in vain; and those whose rows are to
 * come, or wait. */
static size_t sessions_used(const struct agent_core *c)
{
	size_t of_this = core_trains(c) ? 0 : (size_t)c->in_round + c->gather.in_vain;
	bool merges = c->doing == DOING_AGGREGATE;

	return of_this + merges + c->gather.rows.n + session_hosts(c);
}

void peer_choice_in_vain(struct agent_core *c)
{
	c->gather.in_vain +=
		c->in_round > 0; /* until it has one partner's rows it goes on looking */
}

bool peers_round_full(const struct agent_core *c)
{
	uint32_t most = c->config->federation.few.partners;

	return (most > 0 && sessions_used(c) >= most) ||
	       c->gather.rows.bytes + session_rows_to_come(c) >= LEARN_MERGE_BYTES;
}

struct peer *peer_choose_next(struct agent_core *c, struct peer **of, size_t n)
{
	uint32_t most = c->config->federation.few.partners;

	return most == 0 || n + sessions_used(c) <= most ? NULL : peer_choose(c, of, n);
}
