/* fed/round.c - what happens when: events in, wants out.
 *
 * Two things go on at once, each in its own order, and one work at a time:
 *
 *   holding   TRAIN -> UP -> WAIT -> DOWN -> UP of the next stage ... -> DONE
 *   homing    COLLECT [-> SHOW] -> READY -> COLLECT of the next stage ... -> DONE
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

struct seat *seat_find(struct fed_round *r, const uint8_t key[FED_KEY])
{
	for (unsigned m = 0; m < r->n_seats; m++)
		if (memcmp(r->seats[m].account.key, key, FED_KEY) == 0)
			return &r->seats[m];
	return NULL;
}

static unsigned number_of(const struct fed_round *r, const struct seat *s)
{
	return (unsigned)(s - r->seats);
}

/* Neither waited for nor heard any more.  When we are over, that changes nothing of what we are
 * to tell of it. */
static void seat_go(struct fed_round *r, struct seat *s, enum fed_fate fate, const struct err *e)
{
	if (s->gone || s == &r->seats[r->me])
		return;
	s->gone = true;
	s->answered = true;
	if (r->phase != OVER) {
		s->account.fate = fate;
		s->account.trouble = *e;
	}
	if (number_of(r, s) < r->members) {
		r->homes &= ~bit(number_of(r, s));
		r->holders &= ~bit(number_of(r, s));
	}
	message_queue_release(&s->early);
	message_queue_release(&s->queue);
	if (r->phase == JOINED && s == &r->seats[r->proposer])
		round_end(r, e->code, "round %llu: its proposer: %s",
			  (unsigned long long)r->settings.number, e->text);
}

void seat_break(struct fed_round *r, struct seat *s, const struct err *e)
{
	seat_go(r, s, FED_BROKE, e);
}

static void seat_late(struct fed_round *r, unsigned m, const char *what)
{
	struct fed_account *a = &r->seats[m].account;

	if (a->fate == FED_TOOK_PART)
		err_set(&a->trouble, ERR_TIMEOUT, "%s", what);
	a->fate = FED_LATE;
}

void round_end(struct fed_round *r, int code, const char *fmt, ...)
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

static void mix_seed(const struct fed_round *r, uint8_t seed[FED_SEED])
{
	static const uint8_t tag[] = "fkge round seed 1";
	crypto_generichash_state h;

	crypto_generichash_init(&h, NULL, 0, FED_SEED);
	crypto_generichash_update(&h, tag, sizeof(tag));
	for (unsigned m = 0; m < r->members; m++)
		crypto_generichash_update(&h, r->seats[m].joining->bytes, r->seats[m].joining->n);
	crypto_generichash_final(&h, seed, FED_SEED);
}

/* The roster's members first, in their order, so that a seat's number is its member's. */
static void number_seats(struct fed_round *r)
{
	struct seat *v = mem_array(r->n_seats, sizeof(*v));
	unsigned n = 0, me = r->me, proposer = r->proposer;

	for (int joined = 1; joined >= 0; joined--)
		for (unsigned m = 0; m < r->n_seats; m++) {
			if ((r->seats[m].joining != NULL) != (joined != 0))
				continue;
			if (m == me)
				r->me = n;
			if (m == proposer)
				r->proposer = n;
			v[n++] = r->seats[m];
			r->members += joined != 0;
		}
	memcpy(r->seats, v, r->n_seats * sizeof(*v));
	free(v);
}

/* Who makes the key of the names: the first that is not the host. */
static unsigned steward(const struct fed_round *r)
{
	return fed_plan_host(r->plan) == 0 ? 1 : 0;
}

static void use_key(struct fed_round *r, const uint8_t key[FED_NAME_KEY])
{
	fed_plan_name(r->plan, r->setup, key);
	if (r->secret != NULL)
		memcpy(r->secret->blind_key, key, MASK_KEY);
	r->named = true;
}

static void make_names(struct fed_round *r)
{
	uint8_t key[FED_NAME_KEY];
	unsigned host = fed_plan_host(r->plan);

	r->named = host == r->members || host == r->me;
	if (r->named || steward(r) != r->me)
		return;
	r->setup->draw.fn(r->setup->draw.ctx, key, sizeof(key));
	for (unsigned m = 0; m < r->members; m++) {
		struct buf out = { 0 };
		struct net_writer w;

		if (m == r->me || m == host)
			continue;
		letter_begin(r, &w, &out, FED_MSG_KEY);
		net_put_bin(&w, "y", key, sizeof(key));
		letter_send(&r->seats[m], &w, &out);
	}
	use_key(r, key);
	sodium_memzero(key, sizeof(key));
}

static void take_key(struct fed_round *r, struct seat *s, const struct net_map *m)
{
	uint8_t key[FED_NAME_KEY];
	struct err e = { 0 };

	if (r->named || number_of(r, s) != steward(r)) {
		s->account.strange++;
		return;
	}
	net_get_fixed(m, "y", key, sizeof(key), &e);
	if (e.code != 0) {
		seat_break(r, s, &e);
		return;
	}
	use_key(r, key);
	sodium_memzero(key, sizeof(key));
}

static void hear(struct fed_round *r, struct seat *s, const uint8_t *bytes, size_t n);

static void hear_early(struct fed_round *r)
{
	for (unsigned m = 0; m < r->n_seats; m++) {
		struct queued_message *p;

		while ((p = message_queue_take(&r->seats[m].early)) != NULL) {
			if (m < r->members)
				hear(r, &r->seats[m], p->bytes, p->n);
			free(p);
		}
	}
}

void round_run_members(struct fed_round *r)
{
	const struct fed_peer *peers[FED_MEMBERS_MAX] = { 0 };
	uint8_t seed[FED_SEED];
	struct fed_part *part = r->setup->part;

	number_seats(r);
	for (unsigned m = 0; m < r->members; m++) {
		peers[m] = r->seats[m].peer;
		if (!r->seats[m].gone)
			r->homes |= bit(m);
	}
	r->holders = r->homes;
	mix_seed(r, seed);
	part->settings = r->settings;
	part->members = r->members;
	part->me = r->me;
	r->plan = fed_plan_new(r->setup, &r->settings, seed, peers, r->members, r->me);
	r->stages = fed_stages(&r->settings);
	r->started_ms = r->now_ms;
	r->phase = RUNNING;
	secret_begin(r);
	make_names(r);
	hear_early(r);
}

/* ---- deadlines ---- */

static uint64_t key_due(const struct fed_round *r)
{
	return r->started_ms + r->settings.join_ms;
}

/* Times stage_ms of one stage: up, down; under masks up again and the keys as well. */
static uint64_t span(const struct fed_round *r)
{
	return r->secret != NULL ? SECRET_ATTEMPTS + 2 : 2;
}

static uint64_t up_due(const struct fed_round *r)
{
	return r->started_ms + r->settings.train_ms +
	       (span(r) * r->home_stage + 1 + (r->secret != NULL ? r->secret->attempt : 0)) *
		       r->settings.stage_ms;
}

static uint64_t show_due(const struct fed_round *r)
{
	return up_due(r) + r->settings.stage_ms;
}

static uint64_t down_due(const struct fed_round *r)
{
	return r->started_ms + r->settings.train_ms +
	       span(r) * (r->stage + 1) * r->settings.stage_ms;
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
	if (r->homing == HOME_COLLECT)
		sooner(&at, up_due(r), r->now_ms);
	if (r->homing == HOME_SHOW)
		sooner(&at, show_due(r), r->now_ms);
	if (r->holding == HOLD_WAIT)
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

static void look_home(struct fed_round *r)
{
	bool over = r->now_ms >= up_due(r);

	if (r->homing != HOME_COLLECT || r->ups <= r->home_stage)
		return;
	for (unsigned m = 0; m < r->members && !over; m++)
		if (owes_rows(r, m))
			return;
	for (unsigned m = 0; m < r->members; m++)
		if (owes_rows(r, m)) {
			r->holders &= ~bit(m);
			seat_late(r, m, "its rows did not come in time");
		}
	if (r->secret != NULL && secret_again(r, missing(r))) {
		if (r->now_ms >= up_due(r)) /* we have slept through that attempt, too */
			look_home(r);
		return;
	}
	r->present = r->holders;
	r->homing = r->secret != NULL ? HOME_SHOW : HOME_READY;
	if (r->secret != NULL)
		secret_show(r);
}

static void look_show(struct fed_round *r)
{
	bool over = r->now_ms >= show_due(r);

	if (r->homing != HOME_SHOW)
		return;
	for (unsigned m = 0; m < r->members && !over; m++)
		if (secret_owes(r, m))
			return;
	for (unsigned m = 0; m < r->members; m++)
		if (secret_owes(r, m))
			seat_late(r, m, "the key of its masks did not come in time");
	r->homing = HOME_READY;
}

static void look_hold(struct fed_round *r)
{
	bool over = r->now_ms >= down_due(r);

	if (r->holding != HOLD_WAIT)
		return;
	for (unsigned m = 0; m < r->members; m++)
		if (owes_answer(r, m) && (!over || m == r->me))
			return; /* our own home ends by itself */
	for (unsigned m = 0; m < r->members; m++)
		if (owes_answer(r, m)) {
			r->homes &= ~bit(m);
			seat_late(r, m, "its answer did not come in time");
		}
	r->holding = HOLD_DOWN;
}

static void next_work(struct fed_round *r)
{
	if (r->work != WORK_NONE)
		return;
	if (r->holding == HOLD_TRAIN)
		r->work = WORK_TRAIN;
	else if (r->holding == HOLD_UP && r->named)
		r->work = WORK_UP, r->to = r->homes;
	else if (r->holding == HOLD_WAIT && r->secret != NULL && r->secret->again != 0)
		r->work = WORK_AGAIN, r->to = r->secret->again, r->secret->again = 0;
	else if (r->homing == HOME_READY)
		r->work = WORK_HOME;
	else if (r->holding == HOLD_DOWN)
		r->work = WORK_DOWN;
}

/* After every event. */
static void check_deadlines(struct fed_round *r)
{
	if (r->phase == PROPOSING) {
		bool all = true;

		for (unsigned m = 0; m < r->n_seats; m++)
			all = all && r->seats[m].answered;
		if (all || r->now_ms >= r->due_ms)
			roster_close(r);
	}
	if (r->phase == JOINED && r->now_ms >= r->due_ms)
		round_end(r, ERR_TIMEOUT, "round %llu: its proposer did not start it in time",
			  (unsigned long long)r->settings.number);
	if (r->phase != RUNNING)
		return;
	if (r->now_ms >= key_due(r))
		r->named = true; /* we do without */
	look_home(r);
	look_show(r);
	look_hold(r);
	next_work(r);
	if (r->holding == HOLD_DONE && r->homing == HOME_DONE)
		r->phase = OVER;
}

static void at(struct fed_round *r, uint64_t now_ms)
{
	if (now_ms > r->now_ms)
		r->now_ms = now_ms;
}

/* ---- messages ---- */

static void take_leave(struct fed_round *r, struct seat *s, const struct net_map *m)
{
	char why[NET_REASON_MAX + 1] = "";
	struct err e = { 0 }, trouble = { 0 };

	net_get_text(m, "r", why, sizeof(why), &e);
	err_set(&trouble, ERR_CANCELED, "left: %s", why);
	seat_go(r, s, FED_LOST, &trouble);
	s->left = true;
}

static void take_out(struct fed_round *r, struct seat *s, const struct net_map *m)
{
	char why[NET_REASON_MAX + 1] = "";
	struct err e = { 0 };

	net_get_text(m, "r", why, sizeof(why), &e);
	if (r->phase == JOINED && s == &r->seats[r->proposer])
		round_end(r, ERR_REFUSED, "round %llu: without us: %s",
			  (unsigned long long)r->settings.number, why);
	else
		s->account.strange++;
}

static void take_rows_of(struct fed_round *r, struct seat *s, bool up, const struct net_map *m)
{
	struct err e = { 0 };

	if (!message_take(r, number_of(r, s), up, m, &e))
		s->account.strange++;
	if (e.code != 0)
		seat_break(r, s, &e);
}

static void take_secret(struct fed_round *r, struct seat *s, enum fed_message kind,
			const struct net_map *m)
{
	unsigned n = number_of(r, s);
	struct err e = { 0 };
	bool meant = false;

	if (r->secret != NULL && kind == FED_MSG_AGAIN)
		meant = secret_take_again(r, n, m, &e);
	else if (r->secret != NULL && kind == FED_MSG_SHOW)
		meant = secret_take_show(r, n, m, &e);
	else if (r->secret != NULL)
		meant = secret_take_shown(r, n, m, &e);
	if (!meant)
		s->account.strange++;
	if (e.code != 0)
		seat_break(r, s, &e);
}

static void take(struct fed_round *r, struct seat *s, enum fed_message kind,
		 const struct net_map *m)
{
	switch (kind) {
	case FED_MSG_JOIN:
		roster_joined(r, s, m);
		break;
	case FED_MSG_DECLINE:
		roster_declined(r, s, m);
		break;
	case FED_MSG_START:
		roster_started(r, s, m);
		break;
	case FED_MSG_OUT:
		take_out(r, s, m);
		break;
	case FED_MSG_LEAVE:
		take_leave(r, s, m);
		break;
	default: /* PROPOSE again, and what belongs to a round under way */
		if (r->phase != RUNNING || number_of(r, s) >= r->members || kind == FED_MSG_PROPOSE)
			s->account.strange++;
		else if (kind == FED_MSG_KEY)
			take_key(r, s, m);
		else if (kind > FED_MSG_DOWN)
			take_secret(r, s, kind, m);
		else
			take_rows_of(r, s, kind == FED_MSG_UP, m);
		break;
	}
}

static bool comes_early(const struct fed_round *r, enum fed_message kind)
{
	return r->phase == JOINED &&
	       (kind == FED_MSG_KEY || kind == FED_MSG_UP || kind == FED_MSG_DOWN);
}

static void keep_early(const struct fed_round *r, struct seat *s, const uint8_t *bytes, size_t n)
{
	if (s->early.bytes + n <= FED_EARLY_MAX / r->n_seats)
		message_queue_add(&s->early, bytes, n);
	else
		s->account.strange++;
}

/* counted: bytes of it in what the member's account has. */
static void take_account(struct fed_round *r, struct seat *s, size_t counted,
			 const struct net_map *m)
{
	struct err e = { 0 };

	s->account.bytes_in -= counted; /* it says nothing of itself */
	account_take(r, s, m, &e);
	if (e.code != 0)
		seat_break(r, s, &e);
}

static size_t counted(const struct fed_round *r, size_t n)
{
	return r->phase != OVER ? n : 0;
}

static void hear(struct fed_round *r, struct seat *s, const uint8_t *bytes, size_t n)
{
	struct err e = { 0 };
	struct net_msg m;
	enum fed_message kind;

	if (net_msg_decode(&m, bytes, n, &e) != 0) {
		seat_break(r, s, &e);
		return;
	}
	if (m.type != NET_MSG_ROUND || memcmp(m.session, r->id, FED_ID) != 0) {
		s->account.strange++; /* of an earlier round, say */
		net_msg_release(&m);
		return;
	}
	kind = (enum fed_message)net_get_uint(&m.body, "k", FED_MSG_PROPOSE, FED_MSG_ACCOUNT, &e);
	if (e.code != 0)
		seat_break(r, s, &e);
	else if (s->left && kind != FED_MSG_ACCOUNT)
		s->account.bytes_in -= counted(r, n); /* it was not counted on */
	else if (kind == FED_MSG_ACCOUNT)
		take_account(r, s, counted(r, n), &m.body);
	else if (r->phase == OVER)
		; /* too late */
	else if (comes_early(r, kind))
		keep_early(r, s, bytes, n);
	else
		take(r, s, kind, &m.body);
	net_msg_release(&m);
}

void fed_round_received(struct fed_round *r, const uint8_t from[FED_KEY], const uint8_t *message,
			size_t n, uint64_t now_ms)
{
	struct seat *s = seat_find(r, from);

	at(r, now_ms);
	if (s == NULL || (s->gone && !s->left) || s == &r->seats[r->me])
		return;
	s->account.bytes_in += counted(r, n);
	hear(r, s, message, n);
	check_deadlines(r);
}

void fed_round_lost(struct fed_round *r, const uint8_t member[FED_KEY], uint64_t now_ms)
{
	struct seat *s = seat_find(r, member);
	struct err e = { 0 };

	at(r, now_ms);
	if (s == NULL)
		return;
	err_set(&e, ERR_UNREACHABLE, "its link went down");
	seat_go(r, s, FED_LOST, &e);
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
	for (unsigned m = 0; m < r->n_seats; m++) {
		if (m == r->me || r->seats[m].gone)
			continue;
		if (m < r->members && !r->seats[m].told && !r->setup->on_record)
			account_tell(r, m); /* no rows go out from here on */
		letter_reason(r, &r->seats[m], FED_MSG_LEAVE, why);
	}
	round_end(r, code, "round %llu: %s", (unsigned long long)r->settings.number, why);
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
	return work_run(r);
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
	r->holding = HOLD_WAIT;
}

static void home_done(struct fed_round *r)
{
	struct cargo *own = r->answer[r->me];

	r->answer[r->me] = NULL;
	if (own != NULL) {
		own->whole = true;
		r->back[r->me] = own;
	}
	r->home_stage++;
	secret_home_next(r);
	r->homing = r->home_stage == r->stages ? HOME_DONE : HOME_COLLECT;
}

static void down_done(struct fed_round *r)
{
	r->params_down += r->work_down;
	r->answered = r->items;
	r->stage++;
	secret_hold_next(r);
	r->holding = r->stage == r->stages ? HOLD_DONE : HOLD_UP;
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
		r->holding = HOLD_UP;
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

static bool pull_letter(struct seat *s, struct buf *out)
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
	struct cargo **c = up ? &r->out[m] : &r->answer[m];

	if (r->work == (up ? WORK_UP : WORK_HOME) || *c == NULL)
		return false;
	if (up && r->work == WORK_AGAIN && (r->to & bit(m)) != 0)
		return false;
	message_write(r, m, up, out);
	if ((*c)->whole) {
		cargo_free(*c);
		*c = NULL;
	}
	return true;
}

bool fed_round_pull(struct fed_round *r, const uint8_t member[FED_KEY], struct buf *out)
{
	struct seat *s = seat_find(r, member);
	size_t before = out->len;
	unsigned m;
	bool any;

	if (s == NULL || s->gone || s == &r->seats[r->me])
		return false;
	m = number_of(r, s);
	any = pull_letter(s, out);
	if (!any && m < r->members && r->err.code == 0)
		any = pull_rows(r, m, false, out) || pull_rows(r, m, true, out);
	if (any) {
		s->account.bytes_out += out->len - before;
		return true;
	}
	if (!account_is_due(r, m))
		return false;
	account_tell(r, m);
	return pull_letter(s, out);
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
		.seats = r->n_seats,
		.me = r->me,
		.items = r->plan != NULL ? r->plan->n_own : 0,
		.answered = r->answered,
		.homed = r->homed,
		.params_up = r->params_up,
		.params_down = r->params_down,
		.clipped = r->secret != NULL ? r->secret->clipped : 0,
		.spoiled = r->secret != NULL ? r->secret->spoiled : 0,
	};
}

const struct fed_account *fed_round_account(const struct fed_round *r, unsigned seat)
{
	assert(seat < r->n_seats);
	return &r->seats[seat].account;
}

int fed_round_status(const struct fed_round *r, struct err *e)
{
	if (r->err.code == 0)
		return 0;
	return err_set(e, r->err.code, "%s", r->err.text);
}

static void drop_cargo(struct cargo **c)
{
	cargo_free(*c);
	*c = NULL;
}

void fed_round_again(struct fed_round *r, const uint8_t member[FED_KEY])
{
	struct seat *s = seat_find(r, member);

	if (r->phase != OVER || s == NULL || s->peer == NULL || !s->gone ||
	    number_of(r, s) >= r->members || s->account.fate == FED_BROKE ||
	    s->theirs.refused[0] != '\0')
		return;
	drop_cargo(&r->out[number_of(r, s)]);
	drop_cargo(&r->answer[number_of(r, s)]);
	s->gone = s->left = s->told = false;
}

void fed_round_close(struct fed_round *r)
{
	assert(r->phase == OVER);
	for (unsigned m = 0; m < r->n_seats; m++) {
		free(r->seats[m].joining);
		r->seats[m].joining = NULL;
	}
	for (unsigned m = 0; m < r->members; m++) {
		drop_cargo(&r->out[m]);
		drop_cargo(&r->back[m]);
		drop_cargo(&r->in[m]);
		drop_cargo(&r->first[m]);
		drop_cargo(&r->answer[m]);
	}
	secret_free(r);
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
	for (unsigned m = 0; m < r->n_seats; m++) {
		message_queue_release(&r->seats[m].queue);
		message_queue_release(&r->seats[m].early);
		free(r->seats[m].joining);
	}
	buf_release(&r->proposal);
	free(r->seats);
	free(r);
}
