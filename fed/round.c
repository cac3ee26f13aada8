/* fed/round.c - what happens when: events in, wants out.
 *
 * Two things go on at once, each in its own order, and one work at a time:
 *
 *   holder_phase  TRAIN -> UP -> WAIT -> DOWN -> UP of the next stage ... -> DONE
 *   home_phase    COLLECT [-> SHOW] -> READY -> COLLECT of the next stage ... -> DONE
 *
 * WAIT ends when all homes have answered, COLLECT when all holders have sent and
 * our own rows are made; both end at their deadlines.  Under secret aggregation COLLECT may
 * begin once more without those that were lost, and SHOW waits for keys (round_secret.c). */
#include <assert.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

/* ---- members ---- */

struct fed_participant *fed_participant_find(struct fed_round *r, const uint8_t key[FED_KEY])
{
	for (unsigned m = 0; m < r->n_participants; m++)
		if (memcmp(r->participants[m].account.key, key, FED_KEY) == 0)
			return &r->participants[m];
	return NULL;
}

static unsigned number_of(const struct fed_round *r, const struct fed_participant *s)
{
	return (unsigned)(s - r->participants);
}

static void forget_early(struct fed_participant *s)
{
	for (size_t i = 0; i < s->n_early; i++)
		free(s->early[i]);
	free(s->early);
	s->early = NULL;
	s->n_early = s->early_bytes = 0;
}

/* Neither waited for nor heard any more.  When we are over, that changes nothing of what we are
 * to tell of it. */
static void participant_lost(struct fed_round *r, struct fed_participant *s, enum fed_fate fate,
			     const struct err *e)
{
	if (s->gone || s == &r->participants[r->me])
		return;
	s->gone = true;
	s->answered = true;
	if (r->phase != OVER && (!s->apart || fate == FED_BROKE)) {
		s->account.fate = fate;
		s->account.trouble = *e;
	}
	if (number_of(r, s) < r->members) {
		r->homes &= ~bit(number_of(r, s));
		r->holders &= ~bit(number_of(r, s));
	}
	forget_early(s);
	message_queue_release(&s->queue);
	if (r->phase == JOINED && s == &r->participants[r->proposer])
		fed_round_end(r, e->code, "round %llu: its proposer: %s",
			      (unsigned long long)r->settings.number, e->text);
}

void fed_participant_break(struct fed_round *r, struct fed_participant *s, const struct err *e)
{
	participant_lost(r, s, FED_BROKE, e);
}

static void participant_late(struct fed_round *r, unsigned m, const char *what)
{
	struct fed_account *a = &r->participants[m].account;

	if (a->fate == FED_TOOK_PART)
		err_set(&a->trouble, ERR_TIMEOUT, "%s", what);
	a->fate = FED_LATE;
}

void fed_round_end(struct fed_round *r, int code, const char *fmt, ...)
{
	va_list ap;
	char text[ERR_TEXT_MAX];

	if (r->phase == OVER)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	err_set(&r->err, code, "%s", text);
	r->phase = OVER;
}

/* ---- START ---- */

/* Of the proposer the nonce alone, which it has drawn before it saw any joining: all else that it
 * says in its own it may say afterwards, until the homes are those that it wants. */
static void mix_seed(const struct fed_round *r, uint8_t seed[FED_SEED])
{
	static const uint8_t tag[] = "fkge round seed 2";
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, FED_SEED);
	crypto_generichash_update(&h, tag, sizeof(tag));
	for (unsigned m = 0; m < r->members; m++) {
		const struct joining *j = r->participants[m].joining;

		if (m == r->proposer)
			crypto_generichash_update(&h, j->nonce, sizeof(j->nonce));
		else
			crypto_generichash_update(&h, j->bytes, j->n);
	}
	crypto_generichash_final(&h, seed, FED_SEED);
}

/* The roster's members first, in their order, so that a participant's number is its member's. */
static void number_participants(struct fed_round *r)
{
	struct fed_participant *v = mem_array(r->n_participants, sizeof(*v));
	unsigned n = 0, me = r->me, proposer = r->proposer;

	for (int joined = 1; joined >= 0; joined--)
		for (unsigned m = 0; m < r->n_participants; m++) {
			if ((r->participants[m].joining != NULL) != (joined != 0))
				continue;
			if (m == me)
				r->me = n;
			if (m == proposer)
				r->proposer = n;
			v[n++] = r->participants[m];
			r->members += joined != 0;
		}
	memcpy(r->participants, v, r->n_participants * sizeof(*v));
	free(v);
}

/* The member that makes the key of the names: the first that is not the host. */
static unsigned name_key_maker(const struct fed_round *r)
{
	return fed_plan_host(r->plan) == 0 ? 1 : 0;
}

static void use_key(struct fed_round *r, const uint8_t key[FED_NAME_KEY])
{
	fed_plan_name(r->plan, r->setup, key);
	if (r->secret != NULL)
		memcpy(r->secret->blind_key, key, FED_MASK_KEY);
	r->named = true;
}

static void make_names(struct fed_round *r)
{
	struct net_round_key b;
	unsigned host = fed_plan_host(r->plan);

	r->named = host == r->members || host == r->me;
	if (r->named || name_key_maker(r) != r->me)
		return;
	r->setup->draw.fn(r->setup->draw.ctx, b.key, sizeof(b.key));
	for (unsigned m = 0; m < r->members; m++) {
		struct buf out = { 0 };
		struct net_writer w;

		if (m == r->me || m == host)
			continue;
		fed_message_begin(r, &w, &out, NET_ROUND_KEY);
		net_round_key_put(&w, &b);
		fed_message_send(&r->participants[m], &w, &out);
	}
	use_key(r, b.key);
	sodium_memzero(&b, sizeof(b));
}

static void take_key(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	if (r->named || number_of(r, s) != name_key_maker(r)) {
		s->account.strange++;
		return;
	}
	if (m->wrong.code != 0)
		fed_participant_break(r, s, &m->wrong);
	else
		use_key(r, m->round_key.key);
}

static void receive(struct fed_round *r, struct fed_participant *s, const struct net_message *m);

static void receive_early(struct fed_round *r)
{
	for (unsigned m = 0; m < r->n_participants; m++) {
		struct fed_participant *s = &r->participants[m];
		struct net_message **early = s->early; /* s may be lost by one of them */
		size_t n = s->n_early;

		s->early = NULL;
		s->n_early = s->early_bytes = 0;
		for (size_t i = 0; i < n; i++) {
			if (m < r->members && (!s->gone || s->left))
				receive(r, s, early[i]);
			free(early[i]);
		}
		free(early);
	}
}

void fed_round_run_members(struct fed_round *r)
{
	const struct fed_peer *peers[FED_MEMBERS_MAX] = { 0 };
	uint64_t against[FED_MEMBERS_MAX];
	uint8_t seed[FED_SEED];
	struct fed_part *part = r->setup->part;

	number_participants(r);
	for (unsigned m = 0; m < r->members; m++) {
		peers[m] = r->participants[m].peer;
		if (!r->participants[m].gone)
			r->homes |= bit(m);
	}
	r->holders = r->homes;
	mix_seed(r, seed);
	part->settings = r->settings;
	part->members = r->members;
	part->me = r->me;
	fed_roster_against(r, against);
	r->plan = fed_plan_new(r->setup, &r->settings, seed, peers, r->members, r->me, against);
	r->stages = fed_stages(&r->settings);
	r->started_ms = r->now_ms;
	r->phase = RUNNING;
	fed_secret_begin(r);
	make_names(r);
	receive_early(r);
}

/* ---- deadlines ---- */

static uint64_t key_due(const struct fed_round *r)
{
	return r->started_ms + r->settings.join_ms;
}

static uint64_t least_of(uint32_t theirs, uint32_t ours)
{
	return ours > 0 && ours < theirs ? ours : theirs;
}

static uint64_t train_ms(const struct fed_round *r)
{
	return least_of(r->settings.train_ms, r->setup->train_ms);
}

static uint64_t stage_ms(const struct fed_round *r)
{
	return least_of(r->settings.stage_ms, r->setup->stage_ms);
}

/* Times stage_ms of one stage: up, down; under masks up again and the keys as well. */
static uint64_t span(const struct fed_round *r)
{
	return r->secret != NULL ? SECRET_ATTEMPTS + 2 : 2;
}

static uint64_t up_due(const struct fed_round *r)
{
	return r->started_ms + train_ms(r) +
	       (span(r) * r->home_stage + 1 + (r->secret != NULL ? r->secret->attempt : 0)) *
		       stage_ms(r);
}

static uint64_t show_due(const struct fed_round *r)
{
	return up_due(r) + stage_ms(r);
}

static uint64_t down_due(const struct fed_round *r)
{
	return r->started_ms + train_ms(r) + span(r) * (r->stage + 1) * stage_ms(r);
}

static void sooner(uint64_t *at, uint64_t due, uint64_t now)
{
	if (due > now && due < *at)
		*at = due;
}

uint64_t fed_round_deadline(const struct fed_round *r)
{
	uint64_t at = UINT64_MAX;

	if (r->phase == PROPOSING || r->phase == JOINED)
		return r->due_ms;
	if (r->phase != RUNNING)
		return at;
	if (!r->named)
		sooner(&at, key_due(r), r->now_ms);
	if (r->home_phase == HOME_COLLECT)
		sooner(&at, up_due(r), r->now_ms);
	if (r->home_phase == HOME_SHOW)
		sooner(&at, show_due(r), r->now_ms);
	if (r->holder_phase == HOLD_WAIT)
		sooner(&at, down_due(r), r->now_ms);
	return at;
}

/* ---- what is next ---- */

/* Whether this member owes us rows as their home in this stage. */
static bool owes_rows(const struct fed_round *r, unsigned m)
{
	bool unknown = r->home_stage == 0 && fed_plan_host(r->plan) == r->me;

	return m != r->me && (r->holders & bit(m)) != 0 && (unknown || r->plan->in[m].n > 0) &&
	       (r->in[m] == NULL || !r->in[m]->whole);
}

static bool owes_answer(const struct fed_round *r, unsigned m)
{
	return (r->homes & bit(m)) != 0 && r->plan->out[m].n > 0 &&
	       (r->back[m] == NULL || !r->back[m]->whole);
}

/* Those that others mask their rows for us with, and that do not take part any more. */
static uint64_t missing(const struct fed_round *r)
{
	bool host = fed_plan_host(r->plan) == r->me;
	uint64_t set = 0;

	for (unsigned m = 0; m < r->members; m++)
		if (m != r->me && (r->holders & bit(m)) == 0 && (host || r->plan->in[m].n > 0))
			set |= bit(m);
	return set;
}

static void check_home(struct fed_round *r)
{
	bool over = r->now_ms >= up_due(r);

	if (r->home_phase != HOME_COLLECT || r->ups <= r->home_stage)
		return;
	for (unsigned m = 0; m < r->members && !over; m++)
		if (owes_rows(r, m))
			return;
	for (unsigned m = 0; m < r->members; m++)
		if (owes_rows(r, m)) {
			r->holders &= ~bit(m);
			participant_late(r, m, "its rows did not come in time");
		}
	if (r->secret != NULL && fed_secret_again(r, missing(r))) {
		if (r->now_ms >= up_due(r)) /* we have slept through that attempt, too */
			check_home(r);
		return;
	}
	r->present = r->holders;
	r->home_phase = r->secret != NULL ? HOME_SHOW : HOME_READY;
	if (r->secret != NULL)
		fed_secret_show(r);
}

static void check_shown(struct fed_round *r)
{
	bool over = r->now_ms >= show_due(r);

	if (r->home_phase != HOME_SHOW)
		return;
	for (unsigned m = 0; m < r->members && !over; m++)
		if (fed_secret_owes(r, m))
			return;
	for (unsigned m = 0; m < r->members; m++)
		if (fed_secret_owes(r, m))
			participant_late(r, m, "the key of its masks did not come in time");
	r->home_phase = HOME_READY;
}

static void check_answers(struct fed_round *r)
{
	bool over = r->now_ms >= down_due(r);

	if (r->holder_phase != HOLD_WAIT)
		return;
	for (unsigned m = 0; m < r->members; m++)
		if (owes_answer(r, m) && (!over || m == r->me))
			return; /* our own home ends by itself */
	for (unsigned m = 0; m < r->members; m++)
		if (owes_answer(r, m)) {
			r->homes &= ~bit(m);
			participant_late(r, m, "its answer did not come in time");
		}
	r->holder_phase = HOLD_DOWN;
}

static void next_work(struct fed_round *r)
{
	if (r->work != WORK_NONE)
		return;
	if (r->holder_phase == HOLD_TRAIN)
		r->work = WORK_TRAIN;
	else if (r->holder_phase == HOLD_UP && r->named)
		r->work = WORK_UP, r->to = r->homes;
	else if (r->holder_phase == HOLD_WAIT && r->secret != NULL && r->secret->again != 0)
		r->work = WORK_AGAIN, r->to = r->secret->again, r->secret->again = 0;
	else if (r->home_phase == HOME_READY)
		r->work = WORK_HOME;
	else if (r->holder_phase == HOLD_DOWN)
		r->work = WORK_DOWN;
}

/* After every event. */
static void check_deadlines(struct fed_round *r)
{
	if (r->phase == PROPOSING) {
		bool all = true;

		for (unsigned m = 0; m < r->n_participants; m++)
			all = all && r->participants[m].answered;
		if (all || r->now_ms >= r->due_ms)
			fed_roster_close(r);
	}
	if (r->phase == JOINED && r->now_ms >= r->due_ms)
		fed_round_end(r, ERR_TIMEOUT, "round %llu: its proposer did not start it in time",
			      (unsigned long long)r->settings.number);
	if (r->phase != RUNNING)
		return;
	if (r->now_ms >= key_due(r))
		r->named = true; /* we do without */
	check_home(r);
	check_shown(r);
	check_answers(r);
	next_work(r);
	if (r->holder_phase == HOLD_DONE && r->home_phase == HOME_DONE)
		r->phase = OVER;
}

static void at(struct fed_round *r, uint64_t now_ms)
{
	if (now_ms > r->now_ms)
		r->now_ms = now_ms;
}

/* ---- messages ---- */

static void take_leave(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	struct err trouble = { 0 };

	err_set(&trouble, ERR_CANCELED, "left: %s", m->round_reason.reason);
	participant_lost(r, s, FED_LOST, &trouble);
	s->left = true;
}

static void take_out(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	if (r->phase == JOINED && s == &r->participants[r->proposer])
		fed_round_end(r, ERR_REFUSED, "round %llu: without us: %s",
			      (unsigned long long)r->settings.number, m->round_reason.reason);
	else
		s->account.strange++;
}

/* Some member has said to one of the two of us that it holds a name, and to the other that it does
 * not: so we find other homes than this one.  It is lost to us in this round, and we to it, which
 * must be told: neither has rows in a place that the other takes for another's. */
static void participant_apart(struct fed_round *r, struct fed_participant *s)
{
	unsigned m = number_of(r, s);

	s->apart = true;
	s->account.fate = FED_APART;
	err_set(&s->account.trouble, ERR_INPUT,
		"some member has said to it and to us different things of what it holds: no rows "
		"between the two of us in this round");
	r->homes &= ~bit(m);
	r->holders &= ~bit(m);
	fed_message_send_routes(r, m);
}

static void take_rows_of(struct fed_round *r, struct fed_participant *s, bool up,
			 const struct net_message *m)
{
	struct err e = { 0 };

	if (up && !fed_message_has_routes(r, number_of(r, s), m)) {
		participant_apart(r, s);
		return;
	}
	if (up && fed_message_is_empty(r, number_of(r, s), m))
		return;
	if (!fed_message_read(r, number_of(r, s), up, m, &e))
		s->account.strange++;
	if (e.code != 0)
		fed_participant_break(r, s, &e);
}

static void take_secret(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	unsigned n = number_of(r, s);
	struct err e = { 0 };
	bool meant = false;

	if (r->secret != NULL && m->round == NET_ROUND_AGAIN)
		meant = fed_secret_take_again(r, n, m, &e);
	else if (r->secret != NULL && m->round == NET_ROUND_SHOW)
		meant = fed_secret_take_show(r, n, m, &e);
	else if (r->secret != NULL)
		meant = fed_secret_take_shown(r, n, m, &e);
	if (!meant)
		s->account.strange++;
	if (e.code != 0)
		fed_participant_break(r, s, &e);
}

static void take(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	switch (m->round) {
	case NET_ROUND_JOIN:
		fed_roster_joined(r, s, m);
		break;
	case NET_ROUND_DECLINE:
		fed_roster_declined(r, s, m);
		break;
	case NET_ROUND_START:
		fed_roster_started(r, s, m);
		break;
	case NET_ROUND_OUT:
		take_out(r, s, m);
		break;
	case NET_ROUND_LEAVE:
		take_leave(r, s, m);
		break;
	default: /* PROPOSE again, and what belongs to a round under way */
		if (r->phase != RUNNING || number_of(r, s) >= r->members ||
		    m->round == NET_ROUND_PROPOSE)
			s->account.strange++;
		else if (m->round == NET_ROUND_KEY)
			take_key(r, s, m);
		else if (m->round > NET_ROUND_DOWN)
			take_secret(r, s, m);
		else
			take_rows_of(r, s, m->round == NET_ROUND_UP, m);
		break;
	}
}

static bool comes_early(const struct fed_round *r, enum net_round_kind kind)
{
	return r->phase == JOINED && (kind == NET_ROUND_KEY || kind == NET_ROUND_UP ||
				      kind == NET_ROUND_DOWN || kind == NET_ROUND_ACCOUNT);
}

static void keep_early(const struct fed_round *r, struct fed_participant *s,
		       const struct net_message *m)
{
	size_t memory;

	if (s->early_bytes + sizeof(*m) + m->n > FED_EARLY_MAX / r->n_participants) {
		s->account.strange++;
		return;
	}
	s->early = mem_resize(s->early, s->n_early + 1, sizeof(*s->early));
	s->early[s->n_early++] = net_message_copy(m, &memory);
	s->early_bytes += memory;
}

/* counted: bytes of it in what the member's account has. */
static void take_account(struct fed_round *r, struct fed_participant *s, size_t counted,
			 const struct net_message *m)
{
	struct err e = { 0 };

	s->account.bytes_in -= counted; /* it says nothing of itself */
	fed_account_take(r, s, m, &e);
	if (e.code != 0)
		fed_participant_break(r, s, &e);
}

static size_t counted(const struct fed_round *r, size_t n)
{
	return r->phase != OVER ? n : 0;
}

static void receive(struct fed_round *r, struct fed_participant *s, const struct net_message *m)
{
	if (m->type == 0)
		fed_participant_break(r, s, &m->wrong);
	else if (m->type != NET_MSG_ROUND || memcmp(m->session, r->id, FED_ID) != 0)
		s->account.strange++; /* of an earlier round, say */
	else if (m->round == 0)
		fed_participant_break(r, s, &m->wrong);
	else if ((s->left && m->round != NET_ROUND_ACCOUNT) ||
		 (s->apart && m->round != NET_ROUND_ACCOUNT && m->round != NET_ROUND_LEAVE))
		s->account.bytes_in -= counted(r, m->n); /* it was not counted on */
	else if (comes_early(r, m->round))
		keep_early(r, s, m);
	else if (m->round == NET_ROUND_ACCOUNT)
		take_account(r, s, counted(r, m->n), m);
	else if (r->phase == OVER)
		; /* too late */
	else
		take(r, s, m);
}

void fed_round_received(struct fed_round *r, const uint8_t from[FED_KEY],
			const struct net_message *m, uint64_t now_ms)
{
	struct fed_participant *s = fed_participant_find(r, from);

	at(r, now_ms);
	if (s == NULL || (s->gone && !s->left) || s == &r->participants[r->me])
		return;
	s->account.bytes_in += counted(r, m->n);
	receive(r, s, m);
	check_deadlines(r);
}

void fed_round_lost(struct fed_round *r, const uint8_t member[FED_KEY], uint64_t now_ms)
{
	struct fed_participant *s = fed_participant_find(r, member);
	struct err e = { 0 };

	at(r, now_ms);
	if (s == NULL)
		return;
	err_set(&e, ERR_UNREACHABLE, "its link went down");
	participant_lost(r, s, FED_LOST, &e);
	check_deadlines(r);
}

void fed_round_tick(struct fed_round *r, uint64_t now_ms)
{
	at(r, now_ms);
	check_deadlines(r);
}

void fed_round_stop(struct fed_round *r, int code, const char *why, uint64_t now_ms)
{
	at(r, now_ms);
	if (r->phase == OVER)
		return;
	for (unsigned m = 0; m < r->n_participants; m++) {
		if (m == r->me || r->participants[m].gone)
			continue;
		if (m < r->members && !r->participants[m].account_sent && !r->setup->on_record)
			fed_account_send(r, m); /* no rows go out from here on */
		fed_message_send_reason(r, &r->participants[m], NET_ROUND_LEAVE, why);
	}
	fed_round_end(r, code, "round %llu: %s", (unsigned long long)r->settings.number, why);
}

/* ---- wants ---- */

enum fed_want fed_round_want(const struct fed_round *r)
{
	if (r->phase == OVER && r->work == WORK_NONE)
		return FED_OVER;
	if (r->work == WORK_NONE)
		return FED_WAIT;
	return r->work == WORK_TRAIN ? FED_TRAIN : FED_EXCHANGE;
}

int fed_round_run(struct fed_round *r)
{
	return fed_work_run(r);
}

static void up_done(struct fed_round *r)
{
	r->ups++;
	r->params_up += r->work_up;
	if (r->out[r->me] != NULL) { /* what is our own does not travel */
		r->in[r->me] = r->out[r->me];
		r->in[r->me]->whole = true;
		r->out[r->me] = NULL;
	}
	r->holder_phase = HOLD_WAIT;
}

static void home_done(struct fed_round *r)
{
	struct fed_row_buffer *own = r->answer[r->me];

	r->answer[r->me] = NULL;
	if (own != NULL) {
		own->whole = true;
		r->back[r->me] = own;
	}
	r->home_stage++;
	fed_secret_home_next(r);
	r->home_phase = r->home_stage == r->stages ? HOME_DONE : HOME_COLLECT;
}

static void down_done(struct fed_round *r)
{
	r->params_down += r->work_down;
	r->answered = r->items;
	r->stage++;
	fed_secret_hold_next(r);
	r->holder_phase = r->stage == r->stages ? HOLD_DONE : HOLD_UP;
}

void fed_round_worked(struct fed_round *r, int status, uint64_t now_ms)
{
	enum work work = r->work;

	at(r, now_ms);
	r->work = WORK_NONE;
	if (r->phase != RUNNING)
		return;
	if (status != 0) {
		fed_round_stop(r, status, "our own work failed", now_ms);
		return;
	}
	switch (work) {
	case WORK_TRAIN:
		r->holder_phase = HOLD_UP;
		break;
	case WORK_UP:
		up_done(r);
		break;
	case WORK_AGAIN: /* WAIT goes on; pull takes them */
		break;
	case WORK_HOME:
		home_done(r);
		break;
	case WORK_DOWN:
		down_done(r);
		break;
	default:
		break;
	}
	check_deadlines(r);
}

/* ---- what goes out ---- */

static bool pull_message(struct fed_participant *s, struct buf *out)
{
	struct queued_message *p = message_queue_take(&s->queue);

	if (p == NULL)
		return false;
	buf_add(out, p->bytes, p->n);
	free(p);
	return true;
}

static bool pull_rows(struct fed_round *r, unsigned m, bool up, struct buf *out)
{
	struct fed_row_buffer **c = up ? &r->out[m] : &r->answer[m];

	if (r->work == (up ? WORK_UP : WORK_HOME) || *c == NULL)
		return false;
	if (up && r->work == WORK_AGAIN && (r->to & bit(m)) != 0)
		return false;
	if (r->participants[m].apart) {
		fed_row_buffer_free(*c);
		*c = NULL;
		return false;
	}
	fed_message_write(r, m, up, out);
	if ((*c)->whole) {
		fed_row_buffer_free(*c);
		*c = NULL;
	}
	return true;
}

bool fed_round_pull(struct fed_round *r, const uint8_t member[FED_KEY], struct buf *out)
{
	struct fed_participant *s = fed_participant_find(r, member);
	size_t before = out->len;
	unsigned m;
	bool any;

	if (s == NULL || s->gone || s == &r->participants[r->me])
		return false;
	m = number_of(r, s);
	any = pull_message(s, out);
	if (!any && m < r->members && r->err.code == 0)
		any = pull_rows(r, m, false, out) || pull_rows(r, m, true, out);
	if (any) {
		s->account.bytes_out += out->len - before;
		return true;
	}
	if (!fed_account_is_due(r, m))
		return false;
	fed_account_send(r, m);
	return pull_message(s, out);
}

/* ---- what came of it ---- */

uint8_t const *fed_round_id(const struct fed_round *r)
{
	return r->id;
}

const struct fed_settings *fed_round_settings(const struct fed_round *r)
{
	return &r->settings;
}

void fed_round_report(const struct fed_round *r, struct fed_report *out)
{
	*out = (struct fed_report){
		.members = r->members,
		.participants = r->n_participants,
		.me = r->me,
		.items = r->plan != NULL ? r->plan->n_own : 0,
		.answered = r->answered,
		.refused = r->refused,
		.homed = r->homed,
		.params_up = r->params_up,
		.params_down = r->params_down,
		.clipped = r->secret != NULL ? r->secret->clipped : 0,
		.spoiled = r->secret != NULL ? r->secret->spoiled : 0,
	};
}

const struct fed_account *fed_round_account(const struct fed_round *r, unsigned participant)
{
	assert(participant < r->n_participants);
	return &r->participants[participant].account;
}

int fed_round_status(const struct fed_round *r, struct err *e)
{
	if (r->err.code == 0)
		return 0;
	return err_set(e, r->err.code, "%s", r->err.text);
}

static void drop_row_buffer(struct fed_row_buffer **c)
{
	fed_row_buffer_free(*c);
	*c = NULL;
}

void fed_round_again(struct fed_round *r, const uint8_t member[FED_KEY])
{
	struct fed_participant *s = fed_participant_find(r, member);

	if (r->phase != OVER || r->work != WORK_NONE || s == NULL || s->peer == NULL || !s->gone ||
	    number_of(r, s) >= r->members || s->account.fate == FED_BROKE ||
	    s->theirs.refused[0] != '\0')
		return;
	drop_row_buffer(&r->out[number_of(r, s)]);
	drop_row_buffer(&r->answer[number_of(r, s)]);
	s->gone = s->left = s->account_sent = false;
}

void fed_round_close(struct fed_round *r)
{
	assert(r->phase == OVER);
	for (unsigned m = 0; m < r->n_participants; m++) {
		free(r->participants[m].joining);
		r->participants[m].joining = NULL;
	}
	for (unsigned m = 0; m < r->members; m++) {
		drop_row_buffer(&r->out[m]);
		drop_row_buffer(&r->back[m]);
		drop_row_buffer(&r->in[m]);
		drop_row_buffer(&r->first[m]);
		drop_row_buffer(&r->answer[m]);
	}
	fed_secret_free(r);
	fed_plan_free(r->plan);
	r->secret = NULL;
	r->plan = NULL;
}

void fed_round_free(struct fed_round *r)
{
	if (r == NULL)
		return;
	r->phase = OVER;
	fed_round_close(r);
	for (unsigned m = 0; m < r->n_participants; m++) {
		message_queue_release(&r->participants[m].queue);
		forget_early(&r->participants[m]);
		free(r->participants[m].joining);
	}
	buf_release(&r->proposal);
	free(r->participants);
	free(r);
}
