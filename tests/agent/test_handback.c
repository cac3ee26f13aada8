/* An agent that was put back from a backup, and the partner who is to hand back what it has lost:
 * the restored one is agent 0, the partner that may lie agent 2, an honest one agent 1.  What is
 * taken is a beginning of the true ledger, whatever is sent, and nothing of ours is spent before it
 * is whole. */
#include "tests/test.h"

#include <sodium.h>

#include "agent/core/handback_internal.h"
#include "tests/agent/table.h"

enum { RESTORED, HONEST, PARTNER };
enum { RUN_MS = 400000, STEPS = 400000, TRUE_MAX = 256 };

static struct ledger_signed truth[TRUE_MAX]; /* of RESTORED and PARTNER, before it was lost */
static size_t n_true;

static struct agent_core *core_of(struct table *t, size_t at)
{
	return t->agent[at].core;
}

static size_t entries_with(struct table *t, size_t at, size_t other, struct ledger_signed *out)
{
	return disk_entries(&t->agent[at].disk, t->agent[at].sign_public,
			    t->agent[other].sign_public, 1, TRUE_MAX, out);
}

/* Both sessions each way with labels, and everything at rest. */
static void some_sessions(struct table *t)
{
	table_init(t, 5);
	table_goes_back(t);
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.federation.translator = CONFIG_PPAT;
		t->agent[i].improvements = 3;
	}
	table_start(t);
	table_link(t, RESTORED, PARTNER, true);
	table_run(t, RUN_MS, STEPS);
	n_true = entries_with(t, RESTORED, PARTNER, truth);
	assert_true(n_true > 5);
	for (size_t k = 0; k < n_true; k++)
		assert_true(truth[k].countersigned);
}

/* The disk as it was when it had so many entries; marked: as `fkge restore` leaves it. */
static void put_back(struct table *t, size_t keep, bool marked)
{
	struct store_restored r = { .is = true, .fresh = true, .time_ms = 1 };
	struct store_batch b = { 0 };

	table_kill(t, RESTORED);
	t->agent[RESTORED].disk.n_entries = keep;
	for (size_t i = 0; i < t->agent[RESTORED].disk.n_peers; i++)
		store_restored_add(&r, t->agent[RESTORED].disk.peers[i].key);
	if (marked)
		store_batch_restored(&b, &r);
	assert_int_equal(disk_apply(&t->agent[RESTORED].disk, &b, NULL), 0);
	store_batch_release(&b);
	store_restored_release(&r);
	table_restart(t, RESTORED);
}

/* Whatever came: a beginning of what was true. */
static void check_beginning(struct table *t)
{
	struct ledger_signed is[TRUE_MAX];
	size_t n = entries_with(t, RESTORED, PARTNER, is);

	for (size_t k = 0; k < n && k < n_true; k++) {
		assert_memory_equal(is[k].hash, truth[k].hash, 32);
		assert_true(is[k].countersigned);
	}
}

static bool is_whole(struct table *t)
{
	struct ledger_signed is[TRUE_MAX];

	return entries_with(t, RESTORED, PARTNER, is) >= n_true;
}

static uint64_t spent_on(struct table *t, size_t other)
{
	const struct agent_core *c = core_of(t, RESTORED);
	const struct ledger_account *a = session_ledger_account(c, table_peer(t, RESTORED, other));

	return ledger_account_count(a, NULL);
}

/* ---- an honest partner ---- */

static void test_handed_back(void **state)
{
	(void)state;
	for (int marked = 0; marked < 2; marked++)
		for (size_t less = 1; less <= 3; less++) {
			struct table t;
			uint64_t before;

			some_sessions(&t);
			before = spent_on(&t, PARTNER);
			put_back(&t, less == 3 ? 0 : n_true - less * 2 + 1, marked);
			assert_int_equal(handback_blocks(core_of(&t, RESTORED)), marked);
			table_link(&t, RESTORED, PARTNER, true);
			table_run(&t, t.now_ms + RUN_MS, STEPS);
			check_beginning(&t);
			assert_true(is_whole(&t));
			assert_true(spent_on(&t, PARTNER) >= before);
			/* the other has not been asked: it is still waited for */
			assert_true(handback_blocks(core_of(&t, RESTORED)));
			table_link(&t, RESTORED, HONEST, true);
			table_run(&t, t.now_ms + RUN_MS, STEPS);
			assert_false(handback_blocks(core_of(&t, RESTORED)));
			table_release(&t);
		}
}

/* The other way round: the restored one is host of nothing before all have answered, but serves. */
static void test_nothing_is_spent_meanwhile(void **state)
{
	struct table t;
	struct ledger_signed is[TRUE_MAX];
	size_t n;

	(void)state;
	some_sessions(&t);
	put_back(&t, 0, true);
	t.agent[RESTORED].improvements += 2;
	t.agent[HONEST].improvements += 2;
	table_link(&t, RESTORED, HONEST, true);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	n = entries_with(&t, RESTORED, HONEST, is);
	for (size_t k = 0; k < n; k++)
		assert_memory_not_equal(is[k].entry.host, t.agent[RESTORED].sign_public, 32);
	assert_true(n > 0); /* it was a client */
	table_link(&t, RESTORED, PARTNER, true);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_true(is_whole(&t));
	n = entries_with(&t, RESTORED, HONEST, is);
	for (size_t k = 0; k < n; k++)
		if (memcmp(is[k].entry.host, t.agent[RESTORED].sign_public, 32) == 0)
			n = 0;
	assert_int_equal(n, 0); /* now it is host, too */
	table_release(&t);
}

static int told; /* what came of the last question */

static void hear_answer(void *ctx, uint64_t ticket, const struct agent_answer *answers, size_t n)
{
	(void)ctx, (void)ticket;
	for (size_t i = 0; i < n && answers[i].code != ERR_UNREACHABLE; i++)
		told = answers[i].code;
}

/* PARTNER asks for a step over a relation of whom it has a link to. */
static int ask_a_step(struct table *t)
{
	struct agent_point from = { 0, 1 };
	const struct agent_ask ask = {
		.relation = "likes", .points = &from, .n = 1, .want = 4, .patience_ms = 1000
	};
	struct agent_event e = { .kind = AGENT_EVENT_ASK,
				 .now_ms = t->now_ms,
				 .wall_ms = (int64_t)t->now_ms + 1700000000000,
				 .ask = &ask };

	told = 1;
	core_of(t, PARTNER)->io.answered = hear_answer;
	agent_core_event(core_of(t, PARTNER), &e);
	table_run(t, t->now_ms + 3000, STEPS);
	return told;
}

/* What it has answered and forgotten may be over the day's budget: nothing before it is whole. */
static void test_nothing_is_answered_meanwhile(void **state)
{
	struct table t;

	(void)state;
	some_sessions(&t);
	t.agent[RESTORED].config.query.answer = CONFIG_ANSWER_FACTS;
	put_back(&t, n_true, true);
	table_link(&t, RESTORED, PARTNER, true);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_true(handback_blocks(core_of(&t, RESTORED)));
	assert_int_equal(ask_a_step(&t), ERR_BUSY);
	table_link(&t, RESTORED, HONEST, true);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_false(handback_blocks(core_of(&t, RESTORED)));
	assert_int_equal(ask_a_step(&t), 0);
	table_release(&t);
}

/* Serial numbers go up, by more than there were. */
static void test_serials_are_raised(void **state)
{
	struct table t;
	uint64_t best;

	(void)state;
	some_sessions(&t);
	best = core_of(&t, RESTORED)->served_serial;
	put_back(&t, 0, true);
	assert_true(core_of(&t, RESTORED)->served_serial >= best + 100000);
	assert_true(core_of(&t, RESTORED)->fed.serial >= 100000);
	for (size_t i = 0; i < core_of(&t, RESTORED)->n_peers; i++)
		assert_true(core_of(&t, RESTORED)->peers[i]->fed.joined >= 100000);
	assert_false(core_of(&t, RESTORED)->restored.fresh);
	table_release(&t);
}

/* And by the clock: one backup that is put back twice goes on behind what the first one came to. */
static void test_serials_are_those_of_the_clock(void **state)
{
	struct table t;

	(void)state;
	some_sessions(&t);
	put_back(&t, 0, true);
	assert_true(core_of(&t, RESTORED)->served_serial >= 1700000000000);
	assert_true(core_of(&t, RESTORED)->fed.serial >= 1700000000000);
	table_release(&t);
}

/* ---- a partner that lies ---- */

enum lie {
	FLIPS_ENTRY,
	FLIPS_SIGNATURE,
	FLIPS_COUNTERSIGNATURE,
	LEAVES_ONE_OUT,
	SENDS_ONE_TWICE,
	SWAPS_TWO,
	CUTS_ONE,
	CLAIMS_MORE,
	SAYS_THEY_DIFFER,
	LEAVES_ENTRIES_OUT,
	LIES,
};

static enum lie lie;
static size_t lies_told;

static void put_answer(struct buf *b, const struct net_msg *m, bool differs, uint64_t claims,
		       const uint8_t *entries, size_t n)
{
	struct net_writer w;

	buf_release(b);
	net_write_begin(&w, b, NET_MSG_LEDGER_BACK, m->session);
	net_put_bool(&w, "d", differs);
	net_put_uint(&w, "c", claims);
	net_put_bin(&w, "e", entries, n);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static void bend(uint8_t *at, size_t *n, uint64_t *claims, bool *differs)
{
	const size_t one = HANDBACK_BYTES;
	uint8_t first[HANDBACK_BYTES];

	memcpy(first, at, *n >= one ? one : 0);
	if (lie == FLIPS_ENTRY)
		at[208] ^= 1; /* its count */
	else if (lie == FLIPS_SIGNATURE)
		at[LEDGER_ENTRY_BYTES] ^= 1;
	else if (lie == FLIPS_COUNTERSIGNATURE)
		at[LEDGER_WIRE + 3] ^= 1;
	else if (lie == LEAVES_ONE_OUT)
		memmove(at, at + one, *n -= one);
	else if (lie == SENDS_ONE_TWICE)
		memcpy(at + one, first, one);
	else if (lie == SWAPS_TWO)
		memcpy(at, at + one, one), memcpy(at + one, first, one);
	else if (lie == CUTS_ONE)
		*n -= 1;
	else if (lie == CLAIMS_MORE)
		*claims += 5;
	else if (lie == SAYS_THEY_DIFFER)
		*differs = true;
	else if (lie == LEAVES_ENTRIES_OUT)
		*n = 0;
}

static void tamper(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct net_msg m;
	struct err e = { 0 };
	struct net_bytes at;
	uint8_t copy[HANDBACK_ENTRIES * HANDBACK_BYTES];
	uint64_t claims;
	bool differs = false;
	size_t n;

	(void)ctx;
	(void)t;
	if (from != PARTNER || to != RESTORED ||
	    net_msg_decode(&m, bytes->base, bytes->len, &e) != 0)
		return;
	at = m.type == NET_MSG_LEDGER_BACK ? net_get_bin(&m.body, "e", 0, sizeof(copy), &e)
					   : (struct net_bytes){ 0 };
	n = at.len;
	if (n >= (size_t)2 * HANDBACK_BYTES ||
	    (m.type == NET_MSG_LEDGER_BACK && (lie == SAYS_THEY_DIFFER || lie == CLAIMS_MORE))) {
		claims = net_get_uint(&m.body, "c", 0, UINT64_MAX, &e);
		if (n > 0)
			memcpy(copy, at.base, n);
		bend(copy, &n, &claims, &differs);
		put_answer(bytes, &m, differs, claims, copy, n);
		lies_told++;
	}
	net_msg_release(&m);
}

/* No lie brings in what is not true, hurts the honest one, or lets anything of ours be spent. */
static void test_lies(void **state)
{
	(void)state;
	for (lie = 0; lie < LIES; lie++) {
		struct table t;
		struct ledger_signed is[TRUE_MAX];
		size_t n;

		some_sessions(&t);
		put_back(&t, 1, true);
		lies_told = 0;
		t.tamper = tamper;
		table_link(&t, RESTORED, PARTNER, true);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		assert_true(lies_told > 0);
		check_beginning(&t);
		assert_true(handback_blocks(core_of(&t, RESTORED)));
		assert_true(table_peer(&t, RESTORED, PARTNER)->trouble[0] != '\0');
		assert_true(table_peer(&t, RESTORED, PARTNER)->back.failed || lie == CUTS_ONE);
		t.agent[HONEST].improvements += 2;
		table_link(&t, RESTORED, HONEST, true);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		n = entries_with(&t, RESTORED, HONEST, is);
		assert_true(n > 0);	       /* it is served meanwhile, */
		for (size_t k = 0; k < n; k++) /* and not charged for */
			assert_memory_not_equal(is[k].entry.host, t.agent[RESTORED].sign_public,
						32);
		t.tamper = NULL; /* it thinks better of it */
		table_link(&t, RESTORED, PARTNER, false);
		table_link(&t, RESTORED, PARTNER, true);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		assert_true(is_whole(&t));
		assert_false(handback_blocks(core_of(&t, RESTORED)));
		table_release(&t);
	}
}

/* ---- a partner that asks and asks ---- */

static void put_question(struct buf *b, uint64_t from, size_t hash)
{
	const uint8_t id[16] = { 1 }, zeros[33] = { 0 };
	struct net_writer w;

	net_write_begin(&w, b, NET_MSG_LEDGER_PULL, id);
	net_put_uint(&w, "f", from);
	net_put_bin(&w, "h", zeros, hash);
	net_put_uint(&w, "n", HANDBACK_ENTRIES);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static void test_too_many_questions(void **state)
{
	struct table t;
	uint64_t before;

	(void)state;
	some_sessions(&t);
	before = t.agent[RESTORED].sent[NET_MSG_LEDGER_BACK];
	for (size_t k = 0; k < 1000; k++) {
		struct buf b = { 0 };

		put_question(&b, k % 3 == 0 ? UINT32_MAX : k % 2, k % 7 == 6 ? 33 : 32);
		table_deliver(&t, PARTNER, RESTORED, &b);
		table_run(&t, t.now_ms + 20, 100);
	}
	assert_true(t.agent[RESTORED].sent[NET_MSG_LEDGER_BACK] > before);
	assert_true(t.agent[RESTORED].sent[NET_MSG_LEDGER_BACK] - before <= 100);
	check_beginning(&t);
	table_release(&t);
}

/* ---- tables that the owner trained while the agent was down ---- */

static void train_by_hand(struct table *t, size_t at)
{
	struct disk *d = &t->agent[at].disk;

	table_kill(t, at);
	d->tables->ent[0] += .125f;
	kge_emb_digest(d->tables, d->best.digest);
	d->best.valid_score += 1;
	table_restart(t, at);
}

/* Each of them is news to partners. */
static void test_trained_by_hand_twice(void **state)
{
	struct table t;
	uint64_t serial, rounds;

	(void)state;
	some_sessions(&t);
	for (int times = 0; times < 3; times++) {
		serial = core_of(&t, RESTORED)->served_serial;
		rounds = core_of(&t, PARTNER)->rounds;
		train_by_hand(&t, RESTORED);
		assert_true(core_of(&t, RESTORED)->served_serial > serial);
		table_link(&t, RESTORED, PARTNER, true);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		assert_true(core_of(&t, PARTNER)->rounds > rounds);
	}
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_trained_by_hand_twice),
		cmocka_unit_test(test_handed_back),
		cmocka_unit_test(test_nothing_is_spent_meanwhile),
		cmocka_unit_test(test_nothing_is_answered_meanwhile),
		cmocka_unit_test(test_serials_are_raised),
		cmocka_unit_test(test_serials_are_those_of_the_clock),
		cmocka_unit_test(test_lies),
		cmocka_unit_test(test_too_many_questions),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("agent/handback", tests, NULL, NULL);
}
