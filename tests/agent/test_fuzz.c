/* Random talk at a core: a hostile partner's own messages changed on the way, said twice,
 * lost, said again later, and made up from nothing, in whatever phase comes.  Fixed
 * seeds; FKGE_FUZZ_SEEDS=n runs n times as many.  The simulator asks whether honest
 * agents get along; this asks whether one survives a dishonest one. */
#include "tests/test.h"

#include <sodium.h>

#include "tests/agent/talk.h"

enum { VICTIM, HONEST, HOSTILE, OLD = 64 };

struct chaos {
	struct rng r;
	uint32_t wild; /* of 100 messages so many are treated */
	struct buf old[OLD];
	size_t n_old;
	struct table *table;
	uint64_t shut_out;
};

static bool one_in(struct chaos *x, uint32_t n)
{
	return rng_below(&x->r, n) == 0;
}

static void keep(struct chaos *x, const struct buf *b)
{
	struct buf *o = &x->old[x->n_old++ % OLD];

	buf_clear(o);
	buf_add(o, b->base, b->len);
}

/* An old message, perhaps under the id of the victim's session of now. */
static void say_again(struct chaos *x)
{
	const struct session *s = session_first(x->table->agent[VICTIM].core);
	struct buf b = { 0 };
	const struct buf *o;

	if (x->n_old == 0)
		return;
	o = &x->old[rng_below(&x->r, (uint32_t)(x->n_old < OLD ? x->n_old : OLD))];
	buf_add(&b, o->base, o->len);
	if (s && one_in(x, 2) && b.len > 20 && b.base[2] == 0xc4 && b.base[3] == 16)
		memcpy(b.base + 4, s->id, 16);
	table_inject(x->table, HOSTILE, VICTIM, &b);
}

/* A value of any kind under a key that somebody may ask for. */
static void put_value(struct chaos *x, struct net_writer *w, const char *key)
{
	static const uint64_t odd[] = { 0, 1, 2, 64, 65, 255, UINT32_MAX, UINT64_MAX, 4000001 };
	uint8_t bytes[400];

	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)rng_below(&x->r, 256);
	switch (rng_below(&x->r, 6)) {
	case 0:
		net_put_uint(w, key, odd[rng_below(&x->r, 9)]);
		break;
	case 1:
		net_put_bin(w, key, bytes, (size_t[]){ 0, 16, 32, 64, 376 }[rng_below(&x->r, 5)]);
		break;
	case 2:
		net_put_bool(w, key, one_in(x, 2));
		break;
	case 3:
		net_put_int(w, key, -(int64_t)rng_below(&x->r, 40));
		break;
	case 4:
		net_put_str(w, key, "a text");
		break;
	default:
		net_put_list(w, key);
		net_put_bin(w, NULL, bytes, 130);
		net_put_end(w);
		break;
	}
}

static void invent(struct chaos *x)
{
	static const char *const keys[] = { "v",  "n",	 "g",	 "s", "a", "t", "ef", "rf", "q",
					    "h",  "w",	 "vn",	 "d", "c", "k", "b",  "e",  "o",
					    "ms", "why", "code", "r", "p", "m", "rn", "rc" };
	const struct session *s = session_first(x->table->agent[VICTIM].core);
	enum net_msg_type type = (enum net_msg_type)(1 + rng_below(&x->r, NET_MSG_BYE));
	struct buf b = { 0 };
	struct net_writer w;
	uint8_t id[16];

	for (size_t i = 0; i < 16; i++)
		id[i] = (uint8_t)rng_below(&x->r, 256);
	net_write_begin(&w, &b, type, one_in(x, 6) ? NULL : s && !one_in(x, 4) ? s->id : id);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (one_in(x, 3))
			put_value(x, &w, keys[i]);
	if (net_write_end(&w, NULL) == 0)
		table_inject(x->table, HOSTILE, VICTIM, &b);
	buf_release(&b);
}

static void damage(struct chaos *x, struct buf *b)
{
	switch (rng_below(&x->r, 4)) {
	case 0:
		b->len = rng_below(&x->r, (uint32_t)b->len);
		break;
	case 1:
		b->base[1] = (uint8_t)rng_below(&x->r, 15); /* another type */
		break;
	default:
		for (uint32_t i = 1 + rng_below(&x->r, 3); i > 0; i--)
			b->base[rng_below(&x->r, (uint32_t)b->len)] ^=
				(uint8_t)(1U << rng_below(&x->r, 8));
		break;
	}
}

static void treat(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct chaos *x = ctx;
	struct buf twice = { 0 };

	(void)t;
	if (from != HOSTILE || to != VICTIM)
		return;
	keep(x, b);
	if (rng_below(&x->r, 100) >= x->wild)
		return;
	switch (rng_below(&x->r, 6)) {
	case 0:
		buf_clear(b);
		break;
	case 1:
		buf_add(&twice, b->base, b->len);
		table_inject(t, HOSTILE, VICTIM, &twice);
		break;
	case 2:
		say_again(x);
		break;
	case 3:
		invent(x);
		break;
	default:
		damage(x, b);
		break;
	}
}

static void check_limits(struct table *t)
{
	const char *past = talk_past_limits(t, VICTIM);

	if (past != NULL)
		fail_msg("past its limits: %s", past);
}

/* Both sides want more: the owners ask for training now and then. */
static void stir(struct table *t, struct chaos *x)
{
	x->shut_out += talk_forgive(t, VICTIM, HOSTILE); /* or nothing more would be tried */
	if (one_in(x, 40))
		t->agent[VICTIM].core->train_now = true;
	if (one_in(x, 40))
		t->agent[HOSTILE].core->train_now = true;
	if (one_in(x, 60))
		t->agent[one_in(x, 2) ? VICTIM : HOSTILE].improvements++;
	if (one_in(x, 30))
		invent(x);
	if (one_in(x, 30))
		say_again(x);
	if (one_in(x, 200)) {
		table_link(t, VICTIM, HOSTILE, false);
		table_link(t, VICTIM, HOSTILE, true);
	}
}

static void then_an_honest_session(struct table *t)
{
	uint64_t before = t->agent[HONEST].core->sessions;
	struct agent_status s;

	t->tamper = NULL;
	table_link(t, VICTIM, HOSTILE, false);
	table_run(t, t->now_ms + 120000, 100000);
	table_link(t, VICTIM, HONEST, true);
	t->agent[VICTIM].improvements += 2;
	t->agent[VICTIM].core->train_now = true;
	table_run(t, t->now_ms + 120000, 100000);
	assert_true(t->agent[HONEST].core->sessions > before);
	agent_core_status(t->agent[VICTIM].core, &s);
	assert_true(s.state == AGENT_SLEEP || s.state == AGENT_READY);
	agent_status_release(&s);
}

static uint64_t fuzz_once(uint64_t seed, uint64_t phases[PHASES], uint64_t *shut_out)
{
	struct chaos x = { .wild = 2 + (uint32_t)(seed % 7) * 4 };
	struct table t;
	uint64_t sessions;

	rng_seed(&x.r, seed);
	table_init(&t, seed);
	talk_pairs(&t, seed);
	x.table = &t;
	t.tamper = treat;
	t.ctx = &x;
	table_start(&t);
	table_link(&t, VICTIM, HOSTILE, true);
	for (size_t i = 0; i < 1500; i++) {
		const struct session *s;

		table_run(&t, t.now_ms + 20000, 1);
		stir(&t, &x);
		check_limits(&t);
		s = session_first(t.agent[VICTIM].core);
		if (s)
			phases[s->phase]++;
	}
	sessions = t.agent[VICTIM].core->sessions;
	*shut_out += x.shut_out;
	then_an_honest_session(&t);
	for (size_t i = 0; i < OLD; i++)
		buf_release(&x.old[i]);
	table_release(&t);
	return sessions;
}

static void test_random_talk(void **state)
{
	const char *n = getenv("FKGE_FUZZ_SEEDS");
	uint64_t seeds = 75 * (n && atoi(n) > 0 ? (uint64_t)atoi(n) : 1);
	uint64_t phases[PHASES] = { 0 }, sessions = 0, shut_out = 0;

	(void)state;
	for (uint64_t seed = 1; seed <= seeds; seed++)
		sessions += fuzz_once(seed, phases, &shut_out);
	/* it was no monologue: sessions came through, and every phase was met */
	assert_true(sessions > seeds / 2);
	assert_true(shut_out > seeds);
	for (int p = 0; p < PHASES; p++)
		assert_true(phases[p] > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_random_talk) };

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
