/* agent/core/rounds_align.c - who can be in a round with us, and whose turn it is to propose one.
 *
 * Of a pair the lower key runs the intersection when either's alignment is not current;
 * HELLO says which one each holds.  It is a session (session.c) of nothing else, and
 * comes before rounds: who has just become free waits a little for those that are not
 * aligned yet.  The lowest key that is ready proposes; the next one when that one's turn
 * has passed without a round, the one after it when both have. */
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"

enum {
	HOPES_EASY = 4,	 /* pauses that one peer's missing alignment may cost, one a round, */
	HOPES_MAX = 12,	 /* and then one in 2, 4 ... 256 rounds */
	TIMES_OURS = 10, /* a proposal's times are at most so many of ours */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* From a proposal to its end, at most. */
static uint64_t whole_round_ms(const struct agent_core *c)
{
	const struct fed_settings *s = &c->config.fed.settings;
	uint64_t ways = s->secret_bits != 0 ? 4 : 2; /* methods 4.5: up, up again, keys, down */

	return (uint64_t)2 * s->join_ms + s->train_ms + ways * fed_stages(s) * s->stage_ms;
}

/* How long p may take to propose.  It can as soon as the last round is on its disk, and then says
 * the next one's number; till then it looks at valid, say: not for longer than that round took. */
static uint64_t turn_ms(const struct agent_core *c, const struct peer *p)
{
	const struct round *last = c->fed.last;
	bool busy = last != NULL && p->fed.number < c->fed.number && p->fed.seen &&
		    p->fed.fate == FED_TOOK_PART;
	uint64_t ms = (uint64_t)2 * c->config.fed.settings.join_ms, most = whole_round_ms(c);

	ms += busy ? last->ended_ms - last->started_ms : 0;
	return (ms < most ? ms : most) + c->config.fed.every_ms;
}

/* ---- who can be in a round with us ---- */

static bool here(const struct peer *p)
{
	return p->greeted && peer_listed(p) && !p->other_mode;
}

bool rounds_ready(const struct agent_core *c, const struct peer *p)
{
	(void)c;
	return here(p) && peer_aligned(p) && p->fed.has_digest &&
	       memcmp(p->fed.digest, p->digest, 32) == 0;
}

/* An alignment is missing, and not for nothing. */
static bool wanted(const struct agent_core *c, const struct peer *p)
{
	return here(p) && !rounds_ready(c, p) && rounds_joins(c) && !p->fed.over;
}

bool rounds_shares(const struct peer *p)
{
	return peer_aligned(p) && p->n_slots > 0;
}

bool rounds_is_host(const struct agent_core *c)
{
	const struct fed_settings *s = &c->config.fed.settings;

	return s->topology == FED_HOSTED && memcmp(s->host, c->key, FED_KEY) == 0;
}

/* ---- HELLO ---- */

/* As far as it knows: of those that are not aligned yet it does not. */
static bool shares_with_nobody(const struct agent_core *c)
{
	size_t known = 0;

	for (size_t i = 0; i < c->n_peers; i++) {
		if (rounds_shares(c->peers[i]) || wanted(c, c->peers[i]))
			return false;
		known += peer_aligned(c->peers[i]);
	}
	return known > 0 && !rounds_is_host(c);
}

/* Nobody is to wait for the turn of one whose rounds would move nothing of its own. */
static bool will_propose(const struct agent_core *c)
{
	return rounds_proposes(c) && !shares_with_nobody(c);
}

/* What a HELLO to p says of the alignment now. */
static struct rounds_said said_now(const struct agent_core *c, const struct peer *p)
{
	struct rounds_said s = { .heard = rounds_ready(c, p) };

	if (peer_aligned(p))
		memcpy(s.digest, p->digest, 32);
	return s;
}

static bool said_otherwise(const struct agent_core *c, const struct peer *p)
{
	struct rounds_said now = said_now(c, p);

	return now.heard != p->fed.said.heard || memcmp(now.digest, p->fed.said.digest, 32) != 0;
}

void rounds_put_hello(struct agent_core *c, struct peer *p, struct net_writer *w)
{
	if (!in_rounds(c))
		return;
	net_put_uint(w, "m", AGENT_ROUNDS);
	net_put_uint(w, "r", c->fed.number);
	net_put_bool(w, "w", will_propose(c));
	net_put_bool(w, "o", !rounds_joins(c));
	p->fed.said = said_now(c, p);
	net_put_bin(w, "d", p->fed.said.digest, peer_aligned(p) ? 32 : 0);
	net_put_bool(w, "h", p->fed.said.heard);
	net_put_uint(w, "j", p->fed.joined);
	if (c->fed.train_ms > 0)
		net_put_uint(w, "t", c->fed.train_ms);
}

static void other_mode(struct agent_core *c, struct peer *p)
{
	if (p->other_mode)
		peer_trouble(c, p, ERR_REFUSED,
			     "does %s and we do %s: nothing happens between us until one changes "
			     "federation.mode",
			     in_rounds(c) ? "pairs" : "rounds", in_rounds(c) ? "rounds" : "pairs");
}

static void said_over(struct agent_core *c, struct peer *p, bool over)
{
	if (over && !p->fed.over)
		core_notice(
			c, AGENT_NOTICE_STATE, p, 0,
			"%s takes part in no more rounds (its rounds.max, or they hurt it): it is "
			"not asked",
			p->info.name);
	p->fed.over = over;
}

/* Who has lost count of its proposals, with an older copy of its store, is told by those who
 * joined them.  A lie takes the count on: to half of what there is at most, and from there by steps
 * that nobody can take to the end.  So the others are heard after a lie, too. */
static void heard_serial(struct agent_core *c, const struct peer *p, uint64_t joined)
{
	uint64_t half = FED_SERIAL_MAX / 2;
	uint64_t most = c->fed.serial < half ? half : c->fed.serial + SERIAL_STEP_MAX;

	if (peer_listed(p) && joined > c->fed.serial && joined <= most && joined < FED_SERIAL_MAX)
		c->fed.serial = joined;
}

static void set_number(const struct agent_core *c, struct peer *p, uint64_t number)
{
	if (number > p->fed.number || !p->greeted)
		p->fed.number_ms = c->now_ms;
	p->fed.number = number;
}

void rounds_read_hello(const struct agent_core *c, const struct net_map *m, struct rounds_hello *h,
		       struct err *e)
{
	struct net_bytes digest;

	*h = (struct rounds_hello){ 0 };
	h->rounds = net_has(m, "m") && net_get_uint(m, "m", 0, AGENT_ROUNDS, e) == AGENT_ROUNDS;
	if (e->code != 0 || !h->rounds || !in_rounds(c))
		return;
	h->number = net_get_uint(m, "r", 0, UINT64_MAX, e);
	h->proposes = net_get_bool(m, "w", e);
	h->over = net_has(m, "o") && net_get_bool(m, "o", e);
	h->deaf = !net_get_bool(m, "h", e);
	h->joined = net_get_uint(m, "j", 0, UINT64_MAX, e);
	h->has_train = net_has(m, "t");
	if (h->has_train)
		h->train_ms = net_get_uint(m, "t", 0, FED_TIME_MAX_MS, e);
	digest = net_get_bin(m, "d", 0, 32, e);
	if (e->code == 0 && digest.len != 0 && digest.len != 32)
		err_set(e, ERR_PROTO, "'d' has %zu bytes: must be none or 32", digest.len);
	h->has_digest = e->code == 0 && digest.len == 32;
	if (h->has_digest)
		memcpy(h->digest, digest.base, 32);
}

static void greeted_anew(const struct agent_core *c, struct peer *p)
{
	p->fed.greeted_ms = c->now_ms;
	p->fed.hopes = p->fed.aligns = 0;
	p->fed.hope_from = 0;
	if (p->fed.differs) /* its owner may have changed them: it will be heard again */
		p->trouble[0] = '\0';
	p->fed.differs = p->fed.passed = false;
}

void rounds_take_hello(struct agent_core *c, struct peer *p, const struct rounds_hello *h)
{
	if (p->other_mode && h->rounds == in_rounds(c))
		p->trouble[0] = '\0';
	p->other_mode = h->rounds != in_rounds(c);
	if (p->other_mode || !in_rounds(c))
		return;
	p->fed.was_ready = rounds_ready(c, p);
	set_number(c, p, h->number);
	p->fed.proposes = h->proposes;
	said_over(c, p, h->over);
	p->fed.deaf = h->deaf;
	heard_serial(c, p, h->joined);
	if (h->has_train)
		p->fed.train_ms = h->train_ms;
	p->fed.has_digest = h->has_digest;
	if (h->has_digest)
		memcpy(p->fed.digest, h->digest, 32);
	if (!p->greeted)
		greeted_anew(c, p);
}

/* It has heard an old one of ours, or none since we know its names; or we have heard an old one
 * of its, and it shall know that and answer. */
void rounds_greeted(struct agent_core *c, struct peer *p)
{
	bool ready = rounds_ready(c, p);

	other_mode(c, p);
	rounds_here(c, p);
	if (in_rounds(c) && (ready ? p->fed.deaf : p->fed.was_ready))
		peer_say_hello(c, p);
}

void rounds_tell(struct agent_core *c)
{
	bool proposes = will_propose(c), over = !rounds_joins(c);
	bool all = c->fed.told_number != c->fed.number || c->fed.told_proposes != proposes ||
		   c->fed.told_over != over;

	c->fed.told_number = c->fed.number;
	c->fed.told_proposes = proposes;
	c->fed.told_over = over;
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (p->linked && (all || (p->greeted && said_otherwise(c, p))))
			peer_say_hello(c, p);
	}
}

/* ---- alignments ---- */

struct peer *rounds_align_next(struct agent_core *c, uint64_t *wait_ms)
{
	struct peer *next = NULL;

	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];
		uint64_t from = peer_proposed_from(c, p);

		if (!wanted(c, p) || memcmp(c->key, p->info.key, AGENT_KEY) > 0 ||
		    handback_waits(c, p))
			continue;
		if (from > c->now_ms)
			*wait_ms = from - c->now_ms < *wait_ms ? from - c->now_ms : *wait_ms;
		else if (next == NULL)
			next = p;
	}
	return next;
}

static bool hoped_for(const struct agent_core *c, const struct peer *p)
{
	return wanted(c, p) && c->fed.done >= p->fed.hope_from;
}

/* Longer each time, up to a whole round: two who are always busy with others do meet. */
static uint64_t hope_ms(const struct agent_core *c, const struct peer *p)
{
	uint64_t ms = (uint64_t)c->config.fed.settings.join_ms / 2 << p->fed.hopes;
	uint64_t from = later(p->fed.greeted_ms, c->fed.free_ms), most = whole_round_ms(c);

	return from + (ms < most ? ms : most);
}

uint64_t rounds_hope_ms(const struct agent_core *c)
{
	uint64_t until = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		if (hoped_for(c, c->peers[i]))
			until = later(until, hope_ms(c, c->peers[i]));
	return until;
}

void rounds_despair(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		if (!hoped_for(c, p))
			continue;
		p->fed.hopes += p->fed.hopes < HOPES_MAX;
		if (p->fed.hopes > HOPES_EASY)
			p->fed.hope_from =
				c->fed.done + (UINT64_C(1) << (p->fed.hopes - HOPES_EASY));
	}
}

/* ---- whose turn it is ---- */

bool rounds_joins(const struct agent_core *c)
{
	return !rounds_stopped(c) &&
	       (c->config.fed.max == 0 || c->fed.done + c->fed.missed < c->config.fed.max);
}

/* The next round's number as partners know it: as two of them do, where two are here, so that
 * none of many ends our rounds by a number of its own. */
static uint64_t number_said(const struct agent_core *c)
{
	uint64_t most = 0, second = 0;
	size_t n = 0;

	for (size_t i = 0; i < c->n_peers; i++) {
		uint64_t number = c->peers[i]->fed.number;

		if (!here(c->peers[i]))
			continue;
		n++;
		second = number > most ? most : number > second ? number : second;
		most = number > most ? number : most;
	}
	return n > 1 ? second : most;
}

bool rounds_count_missed(struct agent_core *c)
{
	uint64_t said = number_said(c), left;

	if (c->fed.done == 0 || !rounds_joins(c) || c->config.fed.max == 0 ||
	    said <= c->fed.number || said - c->fed.number > ROUND_AHEAD_MAX)
		return false;
	left = c->config.fed.max - c->fed.done - c->fed.missed;
	c->fed.missed += said - c->fed.number < left ? said - c->fed.number : left;
	c->fed.number = said;
	return true;
}

bool rounds_proposes(const struct agent_core *c)
{
	const struct agent_rounds_config *f = &c->config.fed;

	return c->trained && f->propose && rounds_joins(c) &&
	       (f->patience == 0 || c->fed.worse < f->patience);
}

static bool is_before_us(const struct agent_core *c, const struct peer *p)
{
	return rounds_ready(c, p) && p->fed.proposes && !p->fed.differs && !p->fed.passed &&
	       p->fed.rest_ms <= c->now_ms && memcmp(p->info.key, c->key, AGENT_KEY) < 0;
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
		most += whole_round_ms(c) + c->config.fed.every_ms;
		free_ms = later(free_ms, p->fed.number_ms + turn_ms(c, p));
	}
	at = later(at, free_ms);
	return at < most ? at : most;
}

void rounds_pass_over(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (is_before_us(c, c->peers[i]))
			c->peers[i]->fed.passed = true;
}

bool rounds_asked(const struct agent_core *c, const struct peer *p)
{
	return rounds_ready(c, p) && !p->fed.differs && !p->fed.over;
}

/* When the host can be asked; UINT64_MAX: it is not here. */
static uint64_t host_ms(const struct agent_core *c)
{
	const struct fed_settings *s = &c->config.fed.settings;

	if (s->topology != FED_HOSTED || rounds_is_host(c))
		return 0;
	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (memcmp(p->info.key, s->host, FED_KEY) == 0 && rounds_asked(c, p))
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

		if (rounds_asked(c, p) && rounds_shares(p) && p->fed.absent_ms < soonest)
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

		if (!rounds_asked(c, p))
			continue;
		if (p->fed.absent_ms <= c->now_ms)
			n++;
		else if (p->fed.absent_ms < soonest)
			soonest = p->fed.absent_ms;
	}
	return n >= c->config.fed.min_members ? 0 : soonest;
}

uint64_t rounds_turn_ms(const struct agent_core *c)
{
	uint64_t at;

	if (!rounds_proposes(c))
		return UINT64_MAX;
	at = later(later(enough_ms(c), host_ms(c)), shared_ms(c));
	if (at == UINT64_MAX || c->train_now)
		return at; /* nobody to ask; or the owner wants it now */
	at = later(at, c->fed.rest_ms);
	at = later(at, turns_over_ms(c));
	if (c->fed.done > 0)
		at = later(at, c->fed.ended_ms + c->config.fed.every_ms);
	return at;
}

/* Members of a round that we proposed now, ourselves among them. */
static uint32_t count_asked(const struct agent_core *c)
{
	uint32_t n = 1;

	for (size_t i = 0; i < c->n_peers; i++)
		n += rounds_asked(c, c->peers[i]);
	return n;
}

static bool somebody_proposes(const struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++)
		if (rounds_asked(c, c->peers[i]) && c->peers[i]->fed.proposes)
			return true;
	return rounds_proposes(c);
}

static const struct peer *lowest_before_us(const struct agent_core *c)
{
	const struct peer *lowest = NULL;

	for (size_t i = 0; i < c->n_peers; i++) {
		const struct peer *p = c->peers[i];

		if (is_before_us(c, p) &&
		    (lowest == NULL || memcmp(p->info.key, lowest->info.key, AGENT_KEY) < 0))
			lowest = p;
	}
	return lowest;
}

void rounds_waits(const struct agent_core *c, char *out, size_t n)
{
	uint32_t asked = count_asked(c), least = c->config.fed.min_members;
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

/* ---- what our owner wants ---- */

static int differ(struct err *e, const char *key, double theirs, double ours)
{
	return err_set(e, ERR_REFUSED, "rounds.%s is %g there and %g here", key, theirs, ours);
}

static int check_method(const struct fed_settings *o, const struct fed_settings *u, struct err *e)
{
	const struct fed_method *m = fed_method_find(u->method);

	if (strcmp(o->method, u->method) != 0)
		return err_set(e, ERR_REFUSED, "rounds.method is %s there and %s here", o->method,
			       u->method);
	for (size_t i = 0; i < FED_VALUES_MAX && m->constant[i].key != NULL; i++)
		if (o->value[i] != u->value[i])
			return differ(e, m->constant[i].key, o->value[i], u->value[i]);
	if (o->model[0] != '\0' && strcmp(o->model, u->model) != 0)
		return err_set(e, ERR_REFUSED, "model.kind is %s there and %s here", o->model,
			       u->model);
	/* The scale of all rows goes with it, and the angles of RotatE: a mean over rows of
	 * different scales is a row of none (methods 4: E^k <- aggregate, as it is). */
	if (o->gamma > 0 && o->gamma != u->gamma)
		return err_set(e, ERR_REFUSED, "model.gamma is %g there and %g here", o->gamma,
			       u->gamma);
	if (o->ent_floats != u->ent_floats || o->rel_floats != u->rel_floats)
		return err_set(e, ERR_REFUSED,
			       "rows have %u and %u floats there and %u and %u here: model.kind or "
			       "model.dim",
			       o->ent_floats, o->rel_floats, u->ent_floats, u->rel_floats);
	return 0;
}

static int check_terms(const struct fed_settings *o, const struct fed_settings *u, struct err *e)
{
	static const char *const topology[] = { "sharded", "hosted" };

	if (o->topology != u->topology)
		return err_set(e, ERR_REFUSED, "rounds.topology is %s there and %s here",
			       topology[o->topology], topology[u->topology]);
	if (o->topology == FED_HOSTED && memcmp(o->host, u->host, FED_KEY) != 0)
		return err_set(e, ERR_REFUSED, "rounds.host is another one there than here");
	if (o->min_holders < u->min_holders)
		return differ(e, "min_holders", o->min_holders, u->min_holders);
	if (o->secret_bits != u->secret_bits)
		return differ(e, "secret_bits", o->secret_bits, u->secret_bits);
	if (o->secret_bits != 0 && o->secret_clip != u->secret_clip)
		return differ(e, "secret_clip", o->secret_clip, u->secret_clip);
	if (o->equal_start && u->equal_start && o->start_seed != u->start_seed)
		return err_set(e, ERR_REFUSED, "rounds.start_seed is %llu there and %llu here",
			       (unsigned long long)o->start_seed,
			       (unsigned long long)u->start_seed);
	return 0;
}

/* Longer ones keep us waiting.  For shorter ones there is rounds_enough(). */
static int check_time(const char *key, uint64_t theirs_ms, uint64_t ours_ms, struct err *e)
{
	if (theirs_ms <= TIMES_OURS * ours_ms)
		return 0;
	return err_set(e, ERR_REFUSED, "rounds.%s is %g there and %g here, by more than %d times",
		       key, (double)theirs_ms / 1000, (double)ours_ms / 1000, TIMES_OURS);
}

int rounds_policy(const struct agent_core *c, const struct peer *p, const struct fed_proposal *o,
		  struct err *e)
{
	const struct fed_settings *u = &c->config.fed.settings;

	if (memcmp(o->proposer, p->info.key, FED_KEY) != 0)
		return err_set(e, ERR_REFUSED, "a proposal that another one made");
	if (check_method(&o->settings, u, e) != 0 || check_terms(&o->settings, u, e) != 0 ||
	    check_time("join_s", o->settings.join_ms, u->join_ms, e) != 0 ||
	    check_time("join_s", u->join_ms, o->settings.join_ms, e) != 0 ||
	    check_time("train_s", o->settings.train_ms, u->train_ms, e) != 0 ||
	    check_time("stage_s", o->settings.stage_ms, u->stage_ms, e) != 0)
		return e->code;
	if (o->settings.number > ROUND_NUMBER_MAX)
		return err_set(e, ERR_REFUSED, "a round of number %llu",
			       (unsigned long long)o->settings.number);
	return 0;
}
