/* agent/core/rounds_align.c - who can be in a round with us.
 *
 * Of a pair the lower key runs the intersection when either's alignment is not current;
 * HELLO says which one each holds.  It is a session (session.c) of nothing else, and comes before
 * rounds: an agent that has just become free waits a little for those that are not aligned yet. */
#include <stdio.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/rounds_internal.h"

enum {
	AWAITS_EASY = 4, /* pauses that one peer's missing alignment may cost, one a round, */
	AWAITS_MAX = 12, /* and then one in 2, 4 ... 256 rounds */
	TIMES_OURS = 10, /* a proposal's times are at most so many of ours */
};

static uint64_t later(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

uint64_t rounds_whole_ms(const struct agent_core *c)
{
	const struct fed_settings *s = &c->fed.settings;
	uint64_t ways = s->secret_bits != 0 ? 4 : 2; /* methods 4.5: up, up again, keys, down */

	return (uint64_t)2 * s->join_ms + s->train_ms + ways * fed_stages(s) * s->stage_ms;
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
	const struct fed_settings *s = &c->fed.settings;

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

struct rounds_hello rounds_hello_to_all(const struct agent_core *c)
{
	return (struct rounds_hello){ .number = c->fed.number,
				      .proposes = will_propose(c),
				      .over = !rounds_joins(c) };
}

/* With what is said to p alone. */
static struct rounds_hello hello_to(const struct agent_core *c, const struct peer *p,
				    const struct rounds_hello *to_all)
{
	struct rounds_hello s = *to_all;

	s.heard = rounds_ready(c, p);
	if (peer_aligned(p))
		memcpy(s.digest, p->digest, 32);
	return s;
}

bool rounds_hello_changed(const struct agent_core *c, const struct peer *p,
			  const struct rounds_hello *to_all)
{
	const struct rounds_hello now = hello_to(c, p, to_all), *was = &p->fed.hello_sent;

	if (now.number != was->number || now.proposes != was->proposes || now.over != was->over)
		return true;
	return p->greeted && (now.heard != was->heard || memcmp(now.digest, was->digest, 32) != 0);
}

void rounds_say_hello(struct agent_core *c, struct peer *p, struct net_hello *h)
{
	struct rounds_hello to_all;

	h->has_rounds = in_rounds(c);
	if (!h->has_rounds)
		return;
	to_all = rounds_hello_to_all(c);
	p->fed.hello_sent = hello_to(c, p, &to_all);
	h->rounds = (struct net_hello_rounds){
		.mode = CONFIG_ROUNDS,
		.number = to_all.number,
		.proposes = to_all.proposes,
		.has_over = true,
		.over = to_all.over,
		.digest = { p->fed.hello_sent.digest, peer_aligned(p) ? 32 : 0 },
		.heard = p->fed.hello_sent.heard,
		.joined = p->fed.joined,
		.has_train_ms = c->fed.train_ms > 0,
		.train_ms = c->fed.train_ms,
	};
}

void rounds_check_mode(struct agent_core *c, struct peer *p)
{
	if (p->other_mode)
		peer_trouble(c, p, ERR_REFUSED,
			     "does %s and we do %s: nothing happens between us until one changes "
			     "federation.mode",
			     in_rounds(c) ? "pairs" : "rounds", in_rounds(c) ? "rounds" : "pairs");
}

static void note_over(struct agent_core *c, struct peer *p, bool over)
{
	if (over && !p->fed.over)
		core_notice(
			c, AGENT_NOTICE_STATE, p, 0,
			"%s takes part in no more rounds (its rounds.max, or they hurt it): it is "
			"not asked",
			p->info.name);
	p->fed.over = over;
}

/* A member that has lost count of its proposals (an older copy of its store) hears it from those
 * who joined them.  A lie takes the count on: to half of what there is at most, and from there by
 * steps that nobody can take to the end.  So the others are heard after a lie, too. */
static void note_joined_serial(struct agent_core *c, const struct peer *p, uint64_t joined)
{
	uint64_t half = FED_SERIAL_MAX / 2;
	uint64_t most = c->fed.serial < half ? half : c->fed.serial + SERIAL_STEP_MAX;

	if (peer_listed(p) && joined > c->fed.serial && joined <= most && joined < FED_SERIAL_MAX)
		c->fed.serial = joined;
}

/* The next round's number as partners know it: as two of them do, where two are here, so that
 * none of many ends our rounds by a number of its own. */
static uint64_t announced_number(const struct agent_core *c)
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

/* A turn begins with a higher number: of one partner once after each round, ours or another that
 * two know of, whatever numbers it says. */
static void set_number(struct agent_core *c, struct peer *p, uint64_t number)
{
	uint64_t said, round_ms = later(c->fed.ended_ms, c->fed.announced_ms);

	if ((number > p->fed.number || !p->greeted) && p->fed.number_ms <= round_ms)
		p->fed.number_ms = c->now_ms;
	p->fed.number = number;
	said = announced_number(c);
	if (said <= c->fed.announced || said > c->fed.number + ROUND_AHEAD_MAX)
		return; /* one that comes and goes takes it down and up */
	c->fed.announced = said;
	c->fed.announced_ms = c->now_ms;
}

static bool does_rounds(const struct net_hello *h)
{
	return h->has_rounds && h->rounds.mode == CONFIG_ROUNDS;
}

int rounds_check_hello(const struct agent_core *c, const struct net_hello *h, struct err *e)
{
	size_t n = h->rounds.digest.len;

	if (!does_rounds(h) || !in_rounds(c) || n == 0 || n == 32)
		return 0;
	return err_set(e, ERR_PROTO, "'d' has %zu bytes: must be none or 32", n);
}

/* Who connects again and again keeps nobody waiting: once between two rounds, and more rarely until
 * it has had a part in one. */
static void greeted_anew(const struct agent_core *c, struct peer *p)
{
	if (p->fed.greeted_ms == 0 || p->fed.greeted_ms < c->fed.free_ms)
		p->fed.greeted_ms = c->now_ms;
	p->fed.aligns = 0;
	if (p->fed.differs) /* its owner may have changed them: it will be heard again */
		p->trouble[0] = '\0';
	p->fed.differs = false;
}

void rounds_take_hello(struct agent_core *c, struct peer *p, const struct net_hello *hello)
{
	const struct net_hello_rounds *h = &hello->rounds;
	bool rounds = does_rounds(hello);

	if (p->other_mode && rounds == in_rounds(c))
		p->trouble[0] = '\0';
	p->other_mode = rounds != in_rounds(c);
	if (p->other_mode || !in_rounds(c))
		return;
	p->fed.was_ready = rounds_ready(c, p);
	set_number(c, p, h->number);
	p->fed.proposes = h->proposes;
	note_over(c, p, h->has_over && h->over);
	p->fed.ack_pending = !h->heard;
	note_joined_serial(c, p, h->joined);
	if (h->has_train_ms)
		p->fed.train_ms = h->train_ms;
	p->fed.has_digest = h->digest.len == 32;
	if (p->fed.has_digest)
		memcpy(p->fed.digest, h->digest.base, 32);
	if (!p->greeted)
		greeted_anew(c, p);
}

/* The partner has heard an old HELLO of ours, or none since we know its names; or we have heard an
 * old one of the partner's, and it shall know that and answer. */
bool rounds_greets_again(const struct agent_core *c, const struct peer *p)
{
	return in_rounds(c) && (rounds_ready(c, p) ? p->fed.ack_pending : p->fed.was_ready);
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

static bool is_awaited(const struct agent_core *c, const struct peer *p)
{
	return wanted(c, p) && c->fed.done >= p->fed.await_from;
}

/* Longer each time, up to a whole round: two who are always busy with others do meet. */
static uint64_t await_ms(const struct agent_core *c, const struct peer *p)
{
	uint64_t ms = (uint64_t)c->fed.settings.join_ms / 2 << p->fed.awaits;
	uint64_t from = later(p->fed.greeted_ms, c->fed.free_ms), most = rounds_whole_ms(c);

	return from + (ms < most ? ms : most);
}

uint64_t rounds_await_ms(const struct agent_core *c)
{
	uint64_t until = 0;

	for (size_t i = 0; i < c->n_peers; i++)
		if (is_awaited(c, c->peers[i]))
			until = later(until, await_ms(c, c->peers[i]));
	return until;
}

void rounds_note_awaited(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];

		p->fed.awaited |= is_awaited(c, p) && await_ms(c, p) > c->now_ms;
	}
}

void rounds_give_up(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		struct peer *p = c->peers[i];
		bool in_vain = is_awaited(c, p) || (p->fed.awaited && !rounds_ready(c, p));

		p->fed.awaited = false;
		if (!in_vain)
			continue;
		p->fed.awaits += p->fed.awaits < AWAITS_MAX;
		if (p->fed.awaits > AWAITS_EASY)
			p->fed.await_from =
				c->fed.done + (UINT64_C(1) << (p->fed.awaits - AWAITS_EASY));
	}
}

/* ---- those of before, and those to come ---- */

bool rounds_joins(const struct agent_core *c)
{
	return !rounds_stopped(c) &&
	       (c->config->rounds.max == 0 || c->fed.done + c->fed.missed < c->config->rounds.max);
}

bool rounds_count_missed(struct agent_core *c)
{
	uint64_t said = announced_number(c), left;

	if (c->fed.done == 0 || !rounds_joins(c) || c->config->rounds.max == 0 ||
	    said <= c->fed.number || said - c->fed.number > ROUND_AHEAD_MAX)
		return false;
	left = c->config->rounds.max - c->fed.done - c->fed.missed;
	c->fed.missed += said - c->fed.number < left ? said - c->fed.number : left;
	c->fed.number = said;
	c->fed.apart = "rounds were without us";
	return true;
}

bool rounds_proposes(const struct agent_core *c)
{
	uint32_t patience = c->config->rounds.patience;

	return c->trained && c->config->rounds.propose && rounds_joins(c) &&
	       (patience == 0 || c->worse < patience);
}

bool rounds_is_candidate(const struct agent_core *c, const struct peer *p)
{
	return rounds_ready(c, p) && !p->fed.differs && !p->fed.over;
}

bool rounds_can_be_asked(const struct agent_core *c, const struct peer *p)
{
	return rounds_is_candidate(c, p) && p->fed.absent_ms <= c->now_ms;
}

/* ---- what our owner wants ---- */

static int differ(struct err *e, const char *key, double theirs, double ours)
{
	return err_set(e, ERR_REFUSED, "rounds.%s is %g there and %g here", key, theirs, ours);
}

/* Those without a key are 0, and no honest proposer says another one. */
static int check_constants(const struct fed_method *m, const struct fed_settings *o,
			   const struct fed_settings *u, struct err *e)
{
	bool named = true;

	for (size_t i = 0; i < FED_VALUES_MAX; i++) {
		named = named && m->constant[i].key != NULL;
		if (named && o->value[i] != u->value[i])
			return differ(e, m->constant[i].key, o->value[i], u->value[i]);
		if (!named && o->value[i] != 0)
			return err_set(e, ERR_REFUSED,
				       "%g is said there for a constant that %s does not have",
				       o->value[i], m->name);
	}
	return 0;
}

static int check_method(const struct fed_settings *o, const struct fed_settings *u, struct err *e)
{
	const struct fed_method *m = fed_method_find(u->method);

	if (strcmp(o->method, u->method) != 0)
		return err_set(e, ERR_REFUSED, "rounds.method is %s there and %s here", o->method,
			       u->method);
	if (check_constants(m, o, u, e) != 0)
		return e->code;
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
	if (o->fraction != u->fraction)
		return differ(e, "fraction", o->fraction, u->fraction);
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
	const struct fed_settings *u = &c->fed.settings;

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
