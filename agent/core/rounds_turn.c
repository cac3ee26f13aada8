/* agent/core/rounds_turn.c - whose turn it is to propose a round, and who is in it.
 *
 * The lowest key that is ready proposes; the next one when that one's turn has passed without a
 * round, the one after it when both have.  Where only a share of the members is in a round
 * (rounds.fraction), fed/draw.h has an order for each instead of that of keys: the first of it are
 * in, and the first of these proposes.  Who is not waits as long as a round may last. */
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"
#include "fed/draw.h"

static uint64_t latest_of(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* ---- who is before whom ---- */

uint64_t rounds_next_number(const struct agent_core *c)
{
	uint64_t n = c->fed.number;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (rounds_ready(c, p) && p->fed.number > n &&
		    p->fed.number - c->fed.number <= ROUND_AHEAD_MAX)
			n = p->fed.number;
	}
	return n;
}

static bool goes_before(const struct agent_core *c, const uint8_t a[AGENT_KEY],
			const uint8_t b[AGENT_KEY])
{
	uint64_t number;

	if (!(c->fed.settings.fraction < 1))
		return memcmp(a, b, AGENT_KEY) < 0;
	number = rounds_next_number(c);
	return fed_draw_place(number, a) < fed_draw_place(number, b);
}

/* Partners that can be asked and go before this key; NULL: all of them. */
static size_t count_before(const struct agent_core *c, const uint8_t *key)
{
	size_t n = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		n += rounds_can_be_asked(c, c->peers[i]) &&
		     (key == NULL || goes_before(c, c->peers[i]->info.key, key));
	return n;
}

/* Members of the next round. */
static size_t count_drawn(const struct agent_core *c)
{
	return fed_draw_count(c->fed.settings.fraction, count_before(c, NULL) + 1,
			      config_min_members(c->config));
}

/* The order of a number is the same again and again: where a round of ours has come to nothing, as
 * of some who share nothing, all are asked. */
bool rounds_is_drawn(const struct agent_core *c, const struct peer *p)
{
	const struct fed_settings *s = &c->fed.settings;

	return rounds_can_be_asked(c, p) &&
	       (!(s->fraction < 1) || c->fed.failures > 0 ||
		count_before(c, p->info.key) + 1 < count_drawn(c) ||
		(s->topology == FED_HOSTED && memcmp(s->host, p->info.key, FED_KEY) == 0));
}

/* The next round is of others: they have the time for it. */
static uint64_t others_round_ms(const struct agent_core *c)
{
	const struct fed_settings *s = &c->fed.settings;
	uint64_t ways = s->secret_bits != 0 ? 4 : 2; /* methods 4.5 */

	if (!(s->fraction < 1) || count_before(c, c->key) < count_drawn(c))
		return 0;
	return rounds_train_ms(c) + ways * fed_stages(s) * rounds_stage_ms(c);
}

/* ---- whose turn it is ---- */

/* How long p may take to propose.  It can as soon as the last round is on its disk, and then says
 * the next one's number; till then it looks at valid, say: not for longer than that round took. */
static uint64_t turn_ms(const struct agent_core *c, const struct peer *p)
{
	const struct round *last = c->fed.last;
	bool busy = last != NULL && p->fed.number < c->fed.number && p->fed.seen &&
		    p->fed.fate == FED_TOOK_PART;
	uint64_t ms = (uint64_t)2 * c->fed.settings.join_ms, most = rounds_whole_ms(c);

	ms += busy ? last->ended_ms - last->started_ms : 0;
	ms += others_round_ms(c);
	return (ms < most ? ms : most) + config_ms(c->config->rounds.every_s);
}

static bool is_before_us(const struct agent_core *c, const struct peer *p)
{
	return rounds_ready(c, p) && p->fed.proposes && !p->fed.differs && !p->fed.passed &&
	       p->fed.rest_ms <= c->now_ms && goes_before(c, p->info.key, c->key);
}

/* When the turns of all before us have passed.  Numbers that go on rising keep nobody waiting for
 * longer than rounds may last. */
static uint64_t turns_over_ms(const struct agent_core *c)
{
	uint64_t at = c->fed.ended_ms, most = at, free_ms = 0;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (!is_before_us(c, p))
			continue;
		at += turn_ms(c, p);
		most += rounds_whole_ms(c) + config_ms(c->config->rounds.every_s);
		free_ms = latest_of(free_ms, latest_of(p->fed.number_ms, c->fed.announced_ms) +
						     turn_ms(c, p));
	}
	at = latest_of(at, free_ms);
	return at < most ? at : most;
}

void rounds_pass_over(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (is_before_us(c, c->peers[i]))
			c->peers[i]->fed.passed = true;
}

/* When the host can be asked; UINT64_MAX: it is not here. */
static uint64_t host_ms(const struct agent_core *c)
{
	const struct fed_settings *s = &c->fed.settings;

	if (s->topology != FED_HOSTED || rounds_is_host(c))
		return 0;
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (memcmp(p->info.key, s->host, FED_KEY) == 0 && rounds_is_candidate(c, p))
			return p->fed.absent_ms;
	}
	return UINT64_MAX;
}

/* When one can be asked with whom rows would move; UINT64_MAX: no such partner is here.  A host is
 * of use to others, whatever it holds itself. */
static uint64_t shared_ms(const struct agent_core *c)
{
	uint64_t soonest = UINT64_MAX;

	if (rounds_is_host(c))
		return 0;
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (rounds_is_candidate(c, p) && rounds_shares(p) && p->fed.absent_ms < soonest)
			soonest = p->fed.absent_ms;
	}
	return soonest;
}

/* When there are enough to be asked; UINT64_MAX: others must come first. */
static uint64_t enough_ms(const struct agent_core *c)
{
	uint32_t n = 1;
	uint64_t soonest = UINT64_MAX;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (!rounds_is_candidate(c, p))
			continue;
		if (p->fed.absent_ms <= c->now_ms)
			n++;
		else if (p->fed.absent_ms < soonest)
			soonest = p->fed.absent_ms;
	}
	return n >= config_min_members(c->config) ? 0 : soonest;
}

uint64_t rounds_turn_ms(const struct agent_core *c)
{
	uint64_t at;

	if (!rounds_proposes(c))
		return UINT64_MAX;
	at = latest_of(latest_of(enough_ms(c), host_ms(c)), shared_ms(c));
	if (at == UINT64_MAX || c->train_now)
		return at; /* nobody to ask; or the owner wants it now */
	at = latest_of(at, c->fed.rest_ms);
	at = latest_of(at, turns_over_ms(c));
	if (c->fed.done > 0)
		at = latest_of(at, c->fed.ended_ms + config_ms(c->config->rounds.every_s));
	return at;
}

/* Members of a round that we proposed now, ourselves among them. */
static uint32_t count_candidates(const struct agent_core *c)
{
	uint32_t n = 1;

	for (size_t i = 0; i < c->n_peers; i++)
		n += rounds_is_candidate(c, c->peers[i]);
	return n;
}

static bool somebody_proposes(const struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (rounds_is_candidate(c, c->peers[i]) && c->peers[i]->fed.proposes)
			return true;
	return rounds_proposes(c);
}

static const struct peer *lowest_before_us(const struct agent_core *c)
{
	const struct peer *lowest = NULL;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (is_before_us(c, p) &&
		    (lowest == NULL || goes_before(c, p->info.key, lowest->info.key)))
			lowest = p;
	}
	return lowest;
}

void rounds_waits(const struct agent_core *c, char *out, size_t n)
{
	uint32_t asked = count_candidates(c), least = config_min_members(c->config);
	const struct peer *first = lowest_before_us(c);

	out[0] = '\0';
	if (c->fed.now != NULL || !c->trained || !rounds_joins(c))
		return;
	if (asked < least)
		snprintf(
			out, n,
			"it takes %u members (rounds.min_members, min_holders), and %u would be in "
			"one, this agent among them",
			least, asked);
	else if (host_ms(c) == UINT64_MAX)
		snprintf(out, n, "the host (rounds.host) is not here, or takes part in none");
	else if (shared_ms(c) == UINT64_MAX)
		snprintf(out, n,
			 "nobody who is here has a name in common with this agent, so no row "
			 "would move; are they written alike? (fkge import --alias)");
	else if (!somebody_proposes(c))
		snprintf(out, n,
			 "nobody who is here proposes any (rounds.propose, rounds.patience)");
	else if (first != NULL)
		snprintf(out, n, "it is the turn of %s to propose the next; of others after %llu s",
			 first->info.name, (unsigned long long)turn_ms(c, first) / 1000);
}
