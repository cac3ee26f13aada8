/* Steps of queries between partners around a table: what is answered, to whom, how much in a day;
 * that both have a record which holds before anything is used; and what comes of partners that ask
 * or answer what no honest one does.  The asker is agent 0, the owner agent 1. */
#include "tests/test.h"

#include <sodium.h>

#include "tests/agent/table.h"
#include "tests/edit.h"

enum { ASKER, OWNER, OTHER };
enum { RUN_MS = 3000, STEPS = 60000 };

/* What came of the last question. */
static struct {
	size_t times, n;
	struct agent_answer answer[AGENTS];
	struct agent_answer_row rows[AGENT_POINTS_MAX];
} told;

static void hear_answers(void *ctx, uint64_t ticket, const struct agent_answer *answers, size_t n)
{
	(void)ctx;
	assert_int_equal(ticket, 77);
	told.times++;
	told.n = n;
	for (size_t i = 0; i < n; i++) {
		told.answer[i] = answers[i];
		if (answers[i].n > 0)
			memcpy(told.rows, answers[i].rows, answers[i].n * sizeof(told.rows[0]));
	}
}

static void sit_down(struct table *t, enum config_answer answer)
{
	table_init(t, 1);
	table_goes_back(t);
	t->agent[OWNER].config.query.answer = answer;
	t->agent[ASKER].io.answered = hear_answers;
	table_start(t);
	table_link(t, ASKER, OWNER, true);
	table_run(t, t->now_ms + 20000, STEPS);
	assert_true(peer_aligned(table_peer(t, ASKER, OWNER)));
	memset(&told, 0, sizeof(told));
}

static struct agent_point some[] = { { 0, 1 }, { 3, .5f } };

static struct agent_ask likes(void)
{
	return (struct agent_ask){ .ticket = 77,
				   .relation = "likes",
				   .points = some,
				   .n = 2,
				   .want = 6,
				   .patience_ms = 1000 };
}

static void begin(struct table *t, const struct agent_ask *ask)
{
	struct agent_event e = { .kind = AGENT_EVENT_ASK,
				 .now_ms = t->now_ms,
				 .wall_ms = (int64_t)t->now_ms + 1700000000000,
				 .ask = ask };

	memset(&told, 0, sizeof(told));
	agent_core_event(t->agent[ASKER].core, &e);
}

static const struct agent_answer *ask_now(struct table *t, const struct agent_ask *ask)
{
	begin(t, ask);
	table_run(t, t->now_ms + RUN_MS, STEPS);
	assert_int_equal(told.times, 1);
	for (size_t i = 0; i < told.n; i++)
		if (memcmp(told.answer[i].peer, t->agent[OWNER].key, 32) == 0)
			return &told.answer[i];
	fail_msg("nothing is said of the owner");
	return NULL;
}

static const struct disk *disk_of(const struct table *t, size_t at)
{
	return &t->agent[at].disk;
}

/* ---- what honest ones do ---- */

static void test_nothing_is_answered_by_default(void **state)
{
	struct agent_ask ask = likes();
	struct config c;
	struct table t;

	(void)state;
	config_init(&c);
	assert_int_equal(c.query.answer, CONFIG_ANSWER_NOTHING);
	config_release(&c);
	sit_down(&t, CONFIG_ANSWER_NOTHING);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_REFUSED);
	ask.relation = "hates"; /* what it does not have sounds the same */
	assert_int_equal(ask_now(&t, &ask)->code, ERR_REFUSED);
	assert_string_equal(told.answer[0].why, "it answers nothing over this relation");
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
	assert_int_equal(disk_of(&t, ASKER)->n_steps, 0);
	table_release(&t);
}

/* The truths of a soft answer of an owner whose graph has some triples more than its tables know.
 */
static size_t soft_truths(bool private, bool more, float out[AGENT_POINTS_MAX])
{
	struct agent_ask ask = likes();
	struct table t;

	sit_down(&t, CONFIG_ANSWER_SOFT);
	for (uint32_t k = 1; more && k < 9; k++) {
		graph_add(t.agent[OWNER].graph, GRAPH_VALID, (struct graph_triple){ 0, 0, k });
		graph_add(t.agent[OWNER].graph, GRAPH_TRAIN, (struct graph_triple){ k, 0, 3 });
	}
	t.agent[OWNER].core->terms.statement.epsilon = private ? 4 : 0; /* dp_charge_needed() */
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	for (size_t i = 0; i < told.answer[0].n; i++)
		out[i] = told.rows[i].to.truth;
	table_release(&t);
	return told.answer[0].n;
}

/* What leaves follows from the tables alone: no scale of valid, no degree of train. */
static void test_private_tables_alone_are_told(void **state)
{
	for (int private = 0; private < 2; private ++) {
		float with[AGENT_POINTS_MAX], without[AGENT_POINTS_MAX];
		size_t n = soft_truths(private == 1, true, with);
		bool same = n == soft_truths(private == 1, false, without) && n > 0 &&
			    memcmp(with, without, n * sizeof(with[0])) == 0;

		assert_int_equal(same, private);
	}
	(void)state;
}

static void check_record(const struct table *t, size_t at, bool ours)
{
	const struct disk *d = disk_of(t, at);
	const struct store_step *s;

	assert_int_equal(d->n_steps, 1);
	s = &d->steps[0];
	assert_int_equal(s->ours, ours);
	assert_true(ledger_step_is_asked(&s->step));
	assert_true(ledger_step_is_answered(&s->step));
	assert_memory_equal(s->step.asker, t->agent[ASKER].sign_public, 32);
	assert_memory_equal(s->step.owner, t->agent[OWNER].sign_public, 32);
	assert_string_equal(s->step.relation, "likes");
	assert_int_equal(s->step.points, 2);
	assert_int_equal(s->step.rows, 6);
}

static void test_both_have_the_same_record(void **state)
{
	struct agent_ask ask = likes();
	const struct agent_answer *a;
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	a = ask_now(&t, &ask);
	assert_int_equal(a->code, 0);
	assert_true(a->facts);
	assert_int_equal(a->n, 6);
	check_record(&t, ASKER, true);
	check_record(&t, OWNER, false);
	assert_memory_equal(&disk_of(&t, ASKER)->steps[0].step, &disk_of(&t, OWNER)->steps[0].step,
			    sizeof(struct ledger_step));
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].rows, 6);
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].steps, 1);
	/* thing-0 likes thing-1 there: known */
	assert_true(told.rows[0].to.truth == 1 && told.rows[0].from.truth == 1);
	table_release(&t);
}

/* The answer is that of a search of its own tables with these known edges, bit for bit. */
static void check_truths(enum config_answer policy)
{
	struct agent_ask ask = likes();
	struct table t;
	const struct graph *g;
	const struct query_search_options how = { .threads = 1 };
	struct query_scale scale;
	struct query_truths *m;
	struct query_search *s;
	struct query_point from[] = { { 0, 1 }, { 3, .5f } };
	struct query_reached want[12];
	uint32_t order[12];

	sit_down(&t, policy);
	ask.want = 9;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	g = t.agent[OWNER].graph;
	query_scale_fit(&scale, QUERY_SOFTMAX, agent_core_best(t.agent[OWNER].core), g, 1, NULL);
	m = query_truths_new(agent_core_best(t.agent[OWNER].core), g, &scale,
			     policy == CONFIG_ANSWER_FACTS ? 7 : 0);
	s = query_search_new(m, &how);
	for (uint32_t e = 0; e < 12; e++) { /* nine are shared */
		const struct peer *p = table_peer(&t, OWNER, ASKER);

		order[e] = GRAPH_NONE;
		for (uint32_t k = 0; k < p->n_slots; k++)
			if (p->slots[k].tag == 'e' && p->slots[k].id == e)
				order[e] = k;
	}
	assert_int_equal(
		query_search_step(s, (struct query_step){ 0, false }, from, 2, order, want, 12), 9);
	assert_int_equal(told.answer[0].n, 9);
	for (size_t i = 0; i < 9; i++) { /* the first nine have the same ids in all graphs */
		assert_int_equal(told.rows[i].to.entity, want[i].to.id);
		assert_true(told.rows[i].to.truth == want[i].to.truth);
		assert_int_equal(told.rows[i].from.entity, want[i].way.from);
		assert_true(told.rows[i].from.truth == want[i].way.edge);
		assert_true(policy == CONFIG_ANSWER_FACTS || told.rows[i].from.truth < 1);
	}
	query_search_free(s);
	query_truths_free(m);
	table_release(&t);
}

static void test_truths_are_those_of_the_owners_tables(void **state)
{
	(void)state;
	check_truths(CONFIG_ANSWER_SOFT);
	check_truths(CONFIG_ANSWER_FACTS);
}

static void test_without_points_only_whether(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	ask.n = 0;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	assert_int_equal(told.answer[0].n, 0);
	assert_int_equal(disk_of(&t, OWNER)->steps[0].step.rows, 0);
	table_release(&t);
}

static void test_what_is_not_shared_does_not_leave(void **state)
{
	struct agent_point own[] = { { 9, 1 }, { 10, 1 } };
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	ask.points = own;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	assert_int_equal(told.answer[0].n, 0);
	assert_int_equal(t.agent[ASKER].sent[NET_MSG_ASK], 0);
	table_release(&t);
}

/* ---- the day's budget ---- */

static void test_the_budget_holds_over_restarts(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	t.agent[OWNER].config.query.rows_per_day = 10;
	assert_int_equal(ask_now(&t, &ask)->n, 6);
	assert_int_equal(ask_now(&t, &ask)->n, 4);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUDGET);
	table_kill(&t, OWNER);
	table_restart(&t, OWNER);
	table_link(&t, ASKER, OWNER, true);
	table_run(&t, t.now_ms + 20000, STEPS);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUDGET);
	t.now_ms += (uint64_t)24 * 3600 * 1000;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	t.agent[OWNER].config.query.steps_per_day = 2;
	assert_int_equal(ask_now(&t, &ask)->n, 4);
	t.agent[OWNER].config.query.rows_per_day = 1000;
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUDGET);
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 4);
	table_release(&t);
}

/* Nothing leaves that is not on disk: whenever the owner dies, what the asker has is on record
 * there and in the day's sum. */
static void test_the_record_comes_before_the_answer(void **state)
{
	struct agent_ask ask = likes();
	size_t answered = 0, never = 0;

	(void)state;
	for (int die = 0; die < 12; die++) {
		struct table t;

		sit_down(&t, CONFIG_ANSWER_FACTS);
		begin(&t, &ask);
		for (int i = 0; i < die; i++)
			table_step(&t);
		table_kill(&t, OWNER);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		assert_int_equal(told.times, 1);
		if (told.answer[0].code == 0) {
			answered++;
			assert_int_equal(disk_of(&t, OWNER)->n_steps, 1);
			assert_int_equal(disk_of(&t, OWNER)->step_days[0].rows, 6);
			assert_int_equal(disk_of(&t, ASKER)->n_steps, 1);
		} else {
			never++;
		}
		table_release(&t);
	}
	assert_true(answered > 0 && never > 0);
}

/* It waits for the disk to say so. */
static void test_the_answer_waits_for_the_disk(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	begin(&t, &ask);
	while (disk_of(&t, OWNER)->n_steps == 0)
		assert_true(table_step(&t));
	assert_int_equal(t.agent[OWNER].sent[NET_MSG_ANSWER], 0);
	while (disk_of(&t, ASKER)->n_steps == 0)
		assert_true(table_step(&t));
	assert_int_equal(told.times, 0);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.times, 1);
	table_release(&t);
}

/* ---- who is not there ---- */

static void test_a_silent_owner_is_named(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	begin(&t, &ask);
	t.held = true; /* its worker does not end */
	table_run(&t, t.now_ms + 5000, STEPS);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.answer[0].code, ERR_TIMEOUT);
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + 5000, STEPS); /* too late: nothing was spent */
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
	begin(&t, &ask);
	table_step(&t);
	table_link(&t, ASKER, OWNER, false);
	table_run(&t, t.now_ms + 500, STEPS);
	assert_int_equal(told.answer[0].code, ERR_UNREACHABLE);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_UNREACHABLE);
	table_release(&t);
}

static void test_many_questions_at_once(void **state)
{
	struct agent_ask ask = likes();
	size_t busy = 0, good = 0;
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	t.held = true;
	for (size_t i = 0; i < AGENT_ASKS_MAX + 1; i++) {
		begin(&t, &ask);
		assert_int_equal(told.times, i == AGENT_ASKS_MAX);
	}
	assert_int_equal(told.answer[0].code, ERR_BUSY);
	told.times = 0;
	for (int i = 0; i < 400; i++) {
		size_t before = told.times;

		if (!table_step(&t) && t.n_jobs == 0)
			break;
		if (t.head == t.tail && t.n_jobs > 0)
			table_let_jobs_end(&t);
		if (told.times == before)
			continue;
		good += told.answer[0].code == 0 && told.answer[0].n > 0;
		busy += told.answer[0].code == ERR_BUSY;
	}
	assert_int_equal(good, 4);
	assert_int_equal(busy, AGENT_ASKS_MAX - 4);
	table_release(&t);
}

/* ---- hostile ones ---- */

static struct table *spoiled_table;

struct spoiling {
	enum net_msg_type type;
	const struct edit *edit;
	void (*change)(struct net_message *m, uint8_t rows[64]); /* and signed anew */
	struct table *table;
	size_t spoiled;
	bool again; /* said twice */
	struct buf kept;
};

/* What it says now it has signed. */
static void sign_anew(const struct table *t, struct net_message *m)
{
	const struct store_step *s = &disk_of(t, OWNER)->steps[disk_of(t, OWNER)->n_steps - 1];
	struct ledger_step step = s->step;

	step.policy = (enum ledger_policy)m->answer.policy;
	step.rows = (uint32_t)(m->answer.rows.len / NET_POINT_BYTES);
	step.ways = m->answer.has_ways;
	step.answered_ms = m->answer.answered_ms;
	ledger_step_hash(step.answer, m->answer.rows.base, m->answer.rows.len, m->answer.ways.base,
			 m->answer.ways.len);
	ledger_step_answer(&step, t->agent[OWNER].sign_secret);
	memcpy(m->answer.signature, step.owner_signature, sizeof(m->answer.signature));
}

static void write_anew(struct spoiling *x, struct buf *b)
{
	uint8_t rows[64], ways[64];
	struct net_message m;
	struct net_writer w;
	struct buf out = { 0 };

	assert_int_equal(net_message_decode(&m, b->base, b->len, NULL), 0);
	assert_true(m.answer.rows.len <= sizeof(rows));
	memcpy(rows, m.answer.rows.base, m.answer.rows.len);
	memcpy(ways, m.answer.ways.base, m.answer.ways.len);
	m.answer.rows.base = rows;
	m.answer.ways.base = ways;
	x->change(&m, rows);
	sign_anew(x->table, &m);
	net_write_begin(&w, &out, NET_MSG_ANSWER, m.session);
	net_answer_put(&w, &m.answer);
	assert_int_equal(net_write_end(&w, NULL), 0);
	buf_clear(b);
	buf_add(b, out.base, out.len);
	buf_release(&out);
}

static void spoil_one(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct spoiling *x = ctx;
	struct net_msg_head h;

	(void)to;
	if (net_msg_head(&h, b->base, b->len, NULL) != 0 || h.type != x->type)
		return;
	x->table = spoiled_table = t;
	x->spoiled++;
	if (x->edit != NULL)
		edit_message(b, x->edit);
	if (x->change != NULL && from == OWNER)
		write_anew(x, b);
	if (x->again) {
		struct buf twice = { 0 };

		buf_add(&twice, b->base, b->len);
		table_inject(t, from, to, &twice);
	}
}

/* A field of the ASK is wrong: the owner shuts the asker out, and nothing is on record. */
static void test_what_nobody_asks(void **state)
{
	static const struct edit edits[] = {
		NOT_THERE("r"),	  NOT_THERE("f"),    NOT_THERE("w"),	  NOT_THERE("s"),
		LENGTH("r", 513), LENGTH("r", 0),    LENGTH("f", 9),	  LENGTH("f", 8200),
		NUMBER("w", 0),	  NUMBER("w", 1025), NUMBER("n", 2),	  NUMBER("ms", 0),
		LENGTH("d", 31),  TEXT("i"),	     FLIPPED("s"),	  FLIPPED("f"),
		FLIPPED("r"),	  NUMBER("w", 5),    COPIED("r", "a\0b"),
	};

	(void)state;
	for (size_t i = 0; i < sizeof(edits) / sizeof(edits[0]); i++) {
		struct spoiling x = { .type = NET_MSG_ASK, .edit = &edits[i] };
		struct agent_ask ask = likes();
		struct table t;

		sit_down(&t, CONFIG_ANSWER_FACTS);
		t.tamper = spoil_one;
		t.ctx = &x;
		if (ask_now(&t, &ask)->code == 0 || x.spoiled != 1 ||
		    table_peer(&t, OWNER, ASKER)->conduct.breaches != 1)
			fail_msg("ask %zu: %s: taken", i, edits[i].key);
		assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
		assert_int_equal(t.agent[OWNER].sent[NET_MSG_ANSWER], 0);
		table_release(&t);
	}
}

/* Points that it has signed, but that no honest agent asks from. */
static void test_points_that_nobody_asks_from(void **state)
{
	static const struct {
		uint32_t slot[2];
		float truth[2];
	} bad[] = {
		{ { 0, 4000 }, { 1, 1 } },	 { { 1, 1 }, { 1, .5f } },
		{ { 0, 1 }, { 1, NAN } },	 { { 0, 1 }, { 1, 1.5f } },
		{ { 0, 1 }, { 0, 1 } },		 { { 0, 1 }, { -1, 1 } },
		{ { 0, UINT32_MAX }, { 1, 1 } }, { { 0, 1 }, { INFINITY, 1 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct net_ask b = { .relation = { (const uint8_t *)"likes", 5 },
				     .want = 6,
				     .patience_ms = 1000 };
		struct ledger_step s = { .relation = "likes", .points = 2, .want = 6 };
		struct buf points = { 0 }, out = { 0 };
		struct net_writer w;
		struct table t;

		sit_down(&t, CONFIG_ANSWER_FACTS);
		for (int k = 0; k < 2; k++)
			asks_put_point(&points, bad[i].slot[k], bad[i].truth[k]);
		b.points = (struct net_bytes){ points.base, points.len };
		b.asked_ms = s.asked_ms = (int64_t)t.now_ms + 1700000000000;
		memcpy(s.asker, t.agent[ASKER].sign_public, 32);
		memcpy(s.owner, t.agent[OWNER].sign_public, 32);
		memcpy(s.alignment, table_peer(&t, ASKER, OWNER)->digest, 32);
		memcpy(b.alignment, s.alignment, 32);
		memset(s.id, 9, sizeof(s.id));
		ledger_step_hash(s.frontier, points.base, points.len, NULL, 0);
		ledger_step_ask(&s, t.agent[ASKER].sign_secret);
		memcpy(b.signature, s.asker_signature, 64);
		net_write_begin(&w, &out, NET_MSG_ASK, s.id);
		net_ask_put(&w, &b);
		assert_int_equal(net_write_end(&w, NULL), 0);
		table_inject(&t, ASKER, OWNER, &out);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		if (table_peer(&t, OWNER, ASKER)->conduct.breaches != 1)
			fail_msg("points %zu are taken", i);
		assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
		buf_release(&points);
		table_release(&t);
	}
}

static void set_float(uint8_t *at, float x)
{
	memcpy(at, &x, sizeof(x));
}

static void change_nan(struct net_message *m, uint8_t rows[64])
{
	(void)m;
	set_float(rows + 4, NAN);
}

static void change_above_one(struct net_message *m, uint8_t rows[64])
{
	(void)m;
	set_float(rows + 4, 1.001f);
}

static void change_zero(struct net_message *m, uint8_t rows[64])
{
	set_float(rows + m->answer.rows.len - 4, 0);
}

static void change_slot(struct net_message *m, uint8_t rows[64])
{
	(void)m;
	rows[3] = 200;
}

static void change_relation_slot(struct net_message *m, uint8_t rows[64])
{
	const struct peer *p = table_peer(spoiled_table, ASKER, OWNER);

	(void)m;
	for (uint32_t k = 0; k < p->n_slots; k++)
		if (p->slots[k].tag == 'r')
			rows[0] = (uint8_t)k;
}

static void change_twice(struct net_message *m, uint8_t rows[64])
{
	(void)m;
	memcpy(rows + 8, rows, 8);
}

static void change_order(struct net_message *m, uint8_t rows[64])
{
	set_float(rows + 4, .2f);
	set_float(rows + 12, .9f);
	m->answer.has_ways = false;
	m->answer.ways.len = 0;
}

static void change_size(struct net_message *m, uint8_t rows[64])
{
	(void)rows;
	m->answer.rows.len -= 3;
	m->answer.has_ways = false;
	m->answer.ways.len = 0;
}

static void change_many(struct net_message *m, uint8_t rows[64])
{
	memcpy(rows + 48, rows + 40, 8);
	rows[48] ^= 1;
	m->answer.rows.len = 56;
	m->answer.has_ways = false;
	m->answer.ways.len = 0;
}

static void change_way(struct net_message *m, uint8_t rows[64])
{
	(void)rows;
	((uint8_t *)(uintptr_t)m->answer.ways.base)[2] = 99;
}

static void change_edge(struct net_message *m, uint8_t rows[64])
{
	(void)rows;
	set_float((uint8_t *)(uintptr_t)m->answer.ways.base + 4, 1e-9f);
}

static void change_known(struct net_message *m, uint8_t rows[64])
{
	(void)rows;
	m->answer.policy = LEDGER_SOFT; /* but an edge of truth 1 */
}

static void change_fewer_ways(struct net_message *m, uint8_t rows[64])
{
	(void)rows;
	m->answer.ways.len -= 8;
}

/* A hostile owner signs what it says: each is a breach, nothing of it is used or on record. */
static void test_what_nobody_answers(void **state)
{
	static void (*const changes[])(struct net_message *, uint8_t[64]) = {
		change_nan,   change_above_one,	 change_zero,	      change_slot, change_twice,
		change_order, change_size,	 change_many,	      change_way,  change_edge,
		change_known, change_fewer_ways, change_relation_slot
	};
	static const struct edit edits[] = {
		NOT_THERE("a"), NOT_THERE("p"), NOT_THERE("s"),	   NUMBER("p", 0), NUMBER("p", 3),
		FLIPPED("s"),	FLIPPED("a"),	LENGTH("a", 8200), NUMBER("z", 5), TEXT("b"),
	};
	enum { CHANGES = sizeof(changes) / sizeof(changes[0]) };

	(void)state;
	for (size_t i = 0; i < CHANGES + sizeof(edits) / sizeof(edits[0]); i++) {
		struct spoiling x = { .type = NET_MSG_ANSWER };
		struct agent_ask ask = likes();
		struct table t;

		x.change = i < CHANGES ? changes[i] : NULL;
		x.edit = i < CHANGES ? NULL : &edits[i - CHANGES];
		sit_down(&t, CONFIG_ANSWER_FACTS);
		t.tamper = spoil_one;
		t.ctx = &x;
		if (ask_now(&t, &ask)->code == 0 ||
		    table_peer(&t, ASKER, OWNER)->conduct.breaches != 1)
			fail_msg("answer %zu is taken", i);
		assert_int_equal(x.spoiled, 1);
		assert_int_equal(disk_of(&t, ASKER)->n_steps, 0);
		table_release(&t);
	}
}

/* What comes once more has no effect. */
static void test_replays(void **state)
{
	static const enum net_msg_type types[] = { NET_MSG_ASK, NET_MSG_ANSWER };

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct spoiling x = { .type = types[k], .again = true };
		struct agent_ask ask = likes();
		struct table t;

		sit_down(&t, CONFIG_ANSWER_FACTS);
		t.tamper = spoil_one;
		t.ctx = &x;
		assert_int_equal(ask_now(&t, &ask)->code, 0);
		assert_int_equal(disk_of(&t, OWNER)->n_steps, 1);
		assert_int_equal(disk_of(&t, ASKER)->n_steps, 1);
		assert_int_equal(disk_of(&t, OWNER)->step_days[0].rows, 6);
		assert_int_equal(table_peer(&t, OWNER, ASKER)->conduct.breaches, 0);
		assert_int_equal(table_peer(&t, ASKER, OWNER)->conduct.breaches, 0);
		table_release(&t);
	}
}

static void keep_ask(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct spoiling *x = ctx;
	struct net_msg_head h;

	(void)t, (void)from, (void)to;
	if (net_msg_head(&h, b->base, b->len, NULL) == 0 && h.type == NET_MSG_ASK)
		buf_add(&x->kept, b->base, b->len);
}

/* Nor after the owner has been restarted, nor on another day. */
static void test_replays_of_before(void **state)
{
	struct spoiling x = { 0 };
	struct agent_ask ask = likes();
	struct buf again = { 0 };
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	t.tamper = keep_ask;
	t.ctx = &x;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	t.tamper = NULL;
	table_kill(&t, OWNER);
	table_restart(&t, OWNER);
	table_link(&t, ASKER, OWNER, true);
	table_run(&t, t.now_ms + 20000, STEPS);
	for (int day = 0; day < 2; day++) {
		buf_add(&again, x.kept.base, x.kept.len);
		table_inject(&t, ASKER, OWNER, &again);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		assert_int_equal(disk_of(&t, OWNER)->n_steps, 1);
		t.now_ms += (uint64_t)25 * 3600 * 1000;
	}
	buf_release(&x.kept);
	table_release(&t);
}

/* Faster than any search asks: refused, and it costs the owner no signature. */
static void test_a_flood(void **state)
{
	struct agent_ask ask = likes();
	size_t refused = 0;
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	ask.n = 0;
	t.agent[OWNER].config.query.steps_per_day = 100000;
	for (int i = 0; i < 400; i++) {
		begin(&t, &ask);
		table_run(&t, t.now_ms + 5, 20);
		refused += told.times > 0 && told.answer[0].code == ERR_BUSY;
	}
	assert_true(refused > 50);
	assert_int_equal(table_peer(&t, OWNER, ASKER)->conduct.breaches, 0);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_answered_by_default),
		cmocka_unit_test(test_private_tables_alone_are_told),
		cmocka_unit_test(test_both_have_the_same_record),
		cmocka_unit_test(test_truths_are_those_of_the_owners_tables),
		cmocka_unit_test(test_without_points_only_whether),
		cmocka_unit_test(test_what_is_not_shared_does_not_leave),
		cmocka_unit_test(test_the_budget_holds_over_restarts),
		cmocka_unit_test(test_the_record_comes_before_the_answer),
		cmocka_unit_test(test_the_answer_waits_for_the_disk),
		cmocka_unit_test(test_a_silent_owner_is_named),
		cmocka_unit_test(test_many_questions_at_once),
		cmocka_unit_test(test_what_nobody_asks),
		cmocka_unit_test(test_points_that_nobody_asks_from),
		cmocka_unit_test(test_what_nobody_answers),
		cmocka_unit_test(test_replays),
		cmocka_unit_test(test_replays_of_before),
		cmocka_unit_test(test_a_flood),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
