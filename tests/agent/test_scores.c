/* Masked scores between the members of rounds around a table, each with the encoder that its rounds
 * have trained: the asker comes to the sums of the others' scores and to nothing else; who is
 * asked, what an owner lets out, in a day; who is missing; what no honest member says.  Agent 0
 * asks. */
#include "tests/test.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>

#include "agent/core/learner.h"
#include "base/mem.h"
#include "encode/loss.h"
#include "fed/methods/fedcqa.h"
#include "tests/agent/table.h"
#include "tests/edit.h"

enum { ASKER, OWNER, OTHER };
enum { SHARED = 9, NAMES = 12, DIM = 4, RUN_MS = 3000, STEPS = 200000 };

struct world {
	struct table t;
	struct agent_learner_kge *learner[AGENTS];
};

static const float vectors[2 * DIM] = { .5f, -1, 2, .25f, -1.5f, .75f, 1, -.5f };

/* What came of the last question. */
static struct {
	size_t times, n;
	int code;
	char why[AGENT_TEXT_MAX];
	struct agent_answer of[AGENTS];
	float sum[NAMES];
	uint8_t others[NAMES];
	size_t row_floats; /* of a relation */
	float row[DIM];
	int row_code;
} told;

static void hear_scores(void *ctx, uint64_t ticket, const struct agent_scores *x)
{
	(void)ctx;
	assert_int_equal(ticket, 77);
	told.times++;
	told.code = x->code;
	told.n = x->n;
	snprintf(told.why, sizeof(told.why), "%s", x->why);
	for (size_t i = 0; i < x->n; i++)
		told.of[i] = x->of[i];
	assert_int_equal(x->entities, NAMES);
	memcpy(told.sum, x->sum, sizeof(told.sum));
	memcpy(told.others, x->others, sizeof(told.others));
}

static void hear_row(void *ctx, uint64_t ticket, const struct agent_answer *answers, size_t n)
{
	(void)ctx;
	assert_int_equal(ticket, 78);
	assert_int_equal(n, 1);
	told.times++;
	told.row_code = answers[0].code;
	told.row_floats = answers[0].row_floats;
	if (answers[0].row_floats == DIM)
		memcpy(told.row, answers[0].row, sizeof(told.row));
}

static void set(struct table *t, size_t at, const char *key, const char *value)
{
	assert_int_equal(config_set(&t->agent[at].config, "rounds", key, value, NULL), 0);
}

static void link_all(struct table *t)
{
	for (size_t a = 0; a < AGENTS; a++)
		for (size_t b = a + 1; b < AGENTS; b++)
			table_link(t, a, b, true);
}

/* After two rounds that have trained encoders; hosted: by the other. */
static void sit_down_at(struct world *w, uint32_t holders, bool hosted)
{
	struct kge_train_config train;

	kge_train_defaults(&train);
	train.threads = 1;
	train.batch = 8;
	train.negatives = 4;
	table_init(&w->t, 3);
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &w->t.agent[i];

		w->learner[i] =
			agent_learner_new(&train, s->graph, kge_protocol_find("standard"), 0);
		s->learner = *agent_learner_ops(w->learner[i]);
		s->config.federation.mode = CONFIG_ROUNDS;
		s->config.rounds.epochs = s->config.rounds.eval_every = 1;
		s->config.rounds.max = 2;
		s->config.rounds.min_members = AGENTS;
		set(&w->t, i, "method", "fedcqa");
		set(&w->t, i, "dim", "4");
		set(&w->t, i, "steps", "2");
		set(&w->t, i, "batch", "8");
		set(&w->t, i, "queries", "4");
		if (hosted)
			table_host(&w->t, i, OTHER);
		s->config.query.score_holders = holders;
		s->io.scored = hear_scores;
		s->io.answered = hear_row;
	}
	table_start(&w->t);
	link_all(&w->t);
	table_run(&w->t, w->t.now_ms + 60000, STEPS);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(w->t.agent[i].core->fed.done, 2);
	memset(&told, 0, sizeof(told));
}

static void sit_down(struct world *w, uint32_t holders)
{
	sit_down_at(w, holders, false);
}

static void stand_up(struct world *w)
{
	table_release(&w->t);
	for (size_t i = 0; i < AGENTS; i++)
		agent_learner_free(w->learner[i]);
}

static void begin(struct world *w, uint32_t holders)
{
	const struct agent_score_ask ask = { .ticket = 77,
					     .vectors = vectors,
					     .n = 2,
					     .dim = DIM,
					     .holders = holders,
					     .patience_ms = 1000 };
	struct agent_event e = { .kind = AGENT_EVENT_SCORE,
				 .now_ms = w->t.now_ms,
				 .wall_ms = (int64_t)w->t.now_ms + 1700000000000,
				 .score = &ask };

	memset(&told, 0, sizeof(told));
	agent_core_event(w->t.agent[ASKER].core, &e);
}

static int ask_now(struct world *w, uint32_t holders)
{
	begin(w, holders);
	table_run(&w->t, w->t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.times, 1);
	return told.code;
}

static const struct disk *disk_of(const struct world *w, size_t at)
{
	return &w->t.agent[at].disk;
}

static uint32_t breaches(struct world *w, size_t at, size_t by)
{
	return table_peer(&w->t, at, by)->conduct.breaches;
}

static bool is_named(struct world *w, size_t who, int code)
{
	for (size_t i = 0; i < told.n; i++)
		if (memcmp(told.of[i].peer, w->t.agent[who].key, 32) == 0)
			return told.of[i].code == code;
	return false;
}

/* What the asker has of a member, that one has, too. */
static void check_records(const struct world *w)
{
	const struct disk *mine = disk_of(w, ASKER);

	for (size_t i = 0; i < mine->n_steps; i++) {
		bool there = false;

		for (size_t at = OWNER; at <= OTHER; at++)
			for (size_t k = 0; k < disk_of(w, at)->n_steps; k++)
				there = there ||
					memcmp(&disk_of(w, at)->steps[k].step, &mine->steps[i].step,
					       sizeof(mine->steps[i].step)) == 0;
		assert_true(there);
	}
}

/* ---- what honest ones do ---- */

/* The first nine names have the same ids everywhere. */
static void score_alone(const struct world *w, size_t at, float score[NAMES])
{
	const size_t first[] = { 0, 2 };
	const struct encode_asked in = { .n = 1, .first = first, .q = vectors };
	struct encode_model m;
	struct fedcqa_head h;

	assert_true(fedcqa_best(w->t.agent[at].core->fed.part, &m, &h));
	encode_scores(&in, m.ent, m.entities, m.is.dim, score);
}

static void check_score_sums(bool hosted)
{
	float one[2][NAMES], want;
	struct fed_mask_ring ring;
	struct world w;

	sit_down_at(&w, 3, hosted);
	assert_int_equal(ask_now(&w, 3), 0);
	score_alone(&w, OWNER, one[0]);
	score_alone(&w, OTHER, one[1]);
	assert_int_equal(fed_mask_ring_init(&ring, 64, 0x1p20, 2, NULL), 0);
	for (uint32_t v = 0; v < NAMES; v++) {
		uint8_t word[2][FED_SCORE_WORD];

		assert_int_equal(told.others[v], v < SHARED ? 2 : 0);
		for (int k = 0; k < 2 && v < SHARED; k++)
			assert_int_equal(fed_mask_encode(&ring, &one[k][v], 1, word[k], NULL, NULL),
					 0);
		if (v >= SHARED)
			continue;
		fed_mask_add(&ring, word[0], word[1], 1);
		assert_int_equal(fed_mask_decode(&ring, word[0], 1, 2, 1, &want, NULL), 0);
		assert_memory_equal(&told.sum[v], &want, sizeof(want));
	}
	stand_up(&w);
}

/* Where rounds have their homes says nothing. */
static void test_the_sums_are_those_of_the_scores(void **state)
{
	(void)state;
	check_score_sums(false);
	check_score_sums(true);
}

static void test_both_have_the_same_record(void **state)
{
	struct world w;

	(void)state;
	sit_down(&w, 3);
	assert_int_equal(ask_now(&w, 3), 0);
	assert_int_equal(disk_of(&w, ASKER)->n_steps, 2);
	for (size_t at = OWNER; at <= OTHER; at++) {
		const struct ledger_step *s = &disk_of(&w, at)->steps[0].step;
		bool same = false;

		assert_int_equal(disk_of(&w, at)->n_steps, 1);
		assert_true(ledger_step_is_asked(s) && ledger_step_is_answered(s));
		assert_int_equal(s->norm, LEDGER_SCORES);
		assert_int_equal(s->points, 2);
		assert_int_equal(s->rows, SHARED);
		for (size_t i = 0; i < 2; i++)
			same = same ||
			       memcmp(&disk_of(&w, ASKER)->steps[i].step, s, sizeof(*s)) == 0;
		assert_true(same);
		assert_int_equal(disk_of(&w, at)->step_days[0].steps, 1);
		assert_int_equal(disk_of(&w, at)->step_days[0].rows, 0);
		assert_int_equal(w.t.agent[at].core->answers.n_keyed, 0);
	}
	assert_memory_not_equal(disk_of(&w, ASKER)->steps[0].step.id,
				disk_of(&w, ASKER)->steps[1].step.id, LEDGER_STEP_ID);
	stand_up(&w);
}

/* ---- what travels ---- */

/* Messages of one type that went by, and what is done to them. */
struct spoiling {
	enum net_msg_type type;
	size_t from;
	const struct edit *edit;
	void (*change)(struct table *t, struct net_message *m, struct buf *b);
	bool again, drop;
	size_t seen;
	uint8_t words[64][(SHARED + 1) * FED_SCORE_WORD];
};

static void spoil_one(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct spoiling *x = ctx;
	struct net_message m;

	if (net_message_decode(&m, b->base, b->len, NULL) != 0 || m.type != x->type ||
	    from != x->from)
		return;
	if (m.type == NET_MSG_SCORED && m.kind == NET_BODY_scored && x->seen < 64) {
		assert_int_equal(m.scored.words.len, sizeof(x->words[0]));
		memcpy(x->words[x->seen], m.scored.words.base, m.scored.words.len);
	}
	x->seen++;
	if (x->change != NULL)
		x->change(t, &m, b);
	if (x->edit != NULL)
		edit_message(b, x->edit);
	if (x->drop)
		buf_clear(b);
	if (x->again) {
		struct buf twice = { 0 };

		buf_add(&twice, b->base, b->len);
		table_inject(t, from, to, &twice);
	}
}

/* The same question, sixty times: the owner's words are others each time, each bit one half of the
 * times; the sums are the same. */
static void test_what_one_member_sends_says_nothing(void **state)
{
	enum { TIMES = 60, BITS = 64 };
	struct spoiling x = { .type = NET_MSG_SCORED, .from = OWNER };
	size_t ones[BITS] = { 0 };
	float first[NAMES];
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	for (int i = 0; i < TIMES; i++) {
		assert_int_equal(ask_now(&w, 3), 0);
		if (i == 0)
			memcpy(first, told.sum, sizeof(first));
		assert_memory_equal(first, told.sum, sizeof(first));
		for (int k = 0; k < i; k++)
			for (size_t at = 0; at <= SHARED; at++)
				assert_memory_not_equal(x.words[i] + at * FED_SCORE_WORD,
							x.words[k] + at * FED_SCORE_WORD,
							FED_SCORE_WORD);
		for (size_t bit = 0; bit < (SHARED + 1) * BITS; bit++)
			ones[bit % BITS] += x.words[i][bit / 8] >> bit % 8 & 1;
	}
	assert_int_equal(x.seen, TIMES);
	for (size_t k = 0; k < BITS; k++) /* five standard deviations of 600 */
		assert_in_range(ones[k], 239, 361);
	stand_up(&w);
}

/* ---- what an owner lets out ---- */

static void test_nothing_by_default(void **state)
{
	struct config c;
	struct world w;

	(void)state;
	config_init(&c);
	assert_int_equal(c.query.score_holders, 0);
	config_release(&c);
	sit_down(&w, 0);
	assert_int_equal(ask_now(&w, 3), ERR_REFUSED);
	assert_non_null(strstr(told.why, "it answers no scores"));
	assert_int_equal(w.t.agent[OWNER].sent[NET_MSG_SCORE_KEY], 0);
	w.t.agent[OWNER].config.query.score_holders = 3;
	w.t.agent[OTHER].config.query.score_holders = 3;
	assert_int_equal(ask_now(&w, 2), ERR_REFUSED);
	assert_non_null(strstr(told.why, "at least 3 members hold"));
	assert_int_equal(disk_of(&w, OWNER)->n_steps + disk_of(&w, OTHER)->n_steps, 0);
	assert_int_equal(ask_now(&w, 3), 0);
	stand_up(&w);
}

static void test_the_budget_holds_over_restarts(void **state)
{
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.agent[OWNER].config.query.steps_per_day = 2;
	assert_int_equal(ask_now(&w, 3), 0);
	assert_int_equal(ask_now(&w, 3), 0);
	assert_int_equal(ask_now(&w, 3), ERR_BUDGET);
	assert_true(is_named(&w, OWNER, ERR_BUDGET) && is_named(&w, OTHER, 0));
	table_kill(&w.t, OWNER);
	table_restart(&w.t, OWNER);
	link_all(&w.t);
	table_run(&w.t, w.t.now_ms + 20000, STEPS);
	assert_int_equal(ask_now(&w, 3), ERR_BUDGET);
	w.t.now_ms += (uint64_t)24 * 3600 * 1000;
	assert_int_equal(ask_now(&w, 3), 0); /* by what it has kept of its rounds */
	assert_int_equal(disk_of(&w, OWNER)->n_steps, 3);
	stand_up(&w);
}

/* The linker puts this in the place of fed_score_part_new() (meson.build): a member finds that it
 * has too many names in common, which takes it some time. */
static const uint8_t *has_too_many; /* by its key */

int __real_fed_score_part_new(struct fed_score_part **out, const struct fed_score_question *q,
			      const uint8_t me[FED_KEY], const struct fed_peer *const *peers,
			      uint32_t entities, struct nn_draw draw, struct err *e);
int __wrap_fed_score_part_new(struct fed_score_part **out, const struct fed_score_question *q,
			      const uint8_t me[FED_KEY], const struct fed_peer *const *peers,
			      uint32_t entities, struct nn_draw draw, struct err *e);

int __wrap_fed_score_part_new(struct fed_score_part **out, const struct fed_score_question *q,
			      const uint8_t me[FED_KEY], const struct fed_peer *const *peers,
			      uint32_t entities, struct nn_draw draw, struct err *e)
{
	*out = NULL;
	return has_too_many != NULL && memcmp(has_too_many, me, FED_KEY) == 0
		       ? err_set(e, ERR_TOOBIG, "too many names in common")
		       : __real_fed_score_part_new(out, q, me, peers, entities, draw, e);
}

/* Who counts all names only to refuse has worked: that is a question of the day, too. */
static void test_what_is_refused_after_work_counts(void **state)
{
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.agent[OWNER].config.query.steps_per_day = 2;
	has_too_many = w.t.agent[OWNER].core->key;
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ask_now(&w, 3), ERR_TOOBIG);
		assert_true(is_named(&w, OWNER, ERR_TOOBIG));
	}
	assert_int_equal(disk_of(&w, OWNER)->step_days[0].steps, 2);
	assert_int_equal(ask_now(&w, 3), ERR_BUDGET); /* and nothing is counted for it */
	has_too_many = NULL;
	assert_int_equal(disk_of(&w, OWNER)->n_steps, 0);
	stand_up(&w);
}

/* Clocks that differ by more than a day, a store that was put back and is not whole, names that
 * were compared anew: as with steps. */
static void test_who_cannot_answer_is_missing(void **state)
{
	struct table_agent *owner;
	struct world w;

	(void)state;
	sit_down(&w, 3);
	owner = &w.t.agent[OWNER];
	for (int days = -1; days <= 1; days += 2) {
		owner->ahead_ms = days * (int64_t)(24 * 3600 * 1000 + RUN_MS);
		assert_int_equal(ask_now(&w, 3), ERR_UNREACHABLE);
		assert_true(is_named(&w, OWNER, ERR_UNREACHABLE));
	}
	owner->ahead_ms = 0;
	owner->core->restored.n_waits = 1; /* handback_blocks() */
	assert_int_equal(ask_now(&w, 3), ERR_BUSY);
	assert_true(is_named(&w, OWNER, ERR_BUSY));
	owner->core->restored.n_waits = 0;
	table_peer(&w.t, OWNER, ASKER)->digest[0] ^= 1;
	assert_int_equal(ask_now(&w, 3), ERR_BUSY);
	table_peer(&w.t, OWNER, ASKER)->digest[0] ^= 1;
	assert_int_equal(disk_of(&w, OWNER)->n_steps, 0);
	assert_int_equal(ask_now(&w, 3), 0);
	stand_up(&w);
}

/* Nothing leaves that is not on disk. */
static void test_the_record_comes_before_the_words(void **state)
{
	struct world w;

	(void)state;
	sit_down(&w, 3);
	begin(&w, 3);
	while (disk_of(&w, OWNER)->n_steps == 0)
		assert_true(table_step(&w.t));
	assert_int_equal(w.t.agent[OWNER].sent[NET_MSG_SCORED], 0);
	while (disk_of(&w, ASKER)->n_steps < 2)
		assert_true(table_step(&w.t));
	assert_int_equal(told.times, 0);
	assert_true(w.t.agent[ASKER].due[AGENT_TIMER_SCORED] == UINT64_MAX); /* not late any more */
	table_run(&w.t, w.t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.code, 0);
	assert_int_equal(told.times, 1);
	stand_up(&w);
}

/* ---- who is not there ---- */

static void test_who_is_away_is_named(void **state)
{
	struct spoiling x = { .type = NET_MSG_SCORED, .from = OTHER, .drop = true };
	struct world w;

	(void)state;
	sit_down(&w, 3);
	table_link(&w.t, ASKER, OTHER, false);
	table_run(&w.t, w.t.now_ms + 10, STEPS);
	assert_int_equal(ask_now(&w, 3), ERR_UNREACHABLE);
	assert_true(is_named(&w, OTHER, ERR_UNREACHABLE) && is_named(&w, OWNER, 0));
	assert_int_equal(w.t.agent[ASKER].sent[NET_MSG_SCORE], 0);
	table_link(&w.t, ASKER, OTHER, true);
	table_run(&w.t, w.t.now_ms + 20000, STEPS);
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	assert_int_equal(ask_now(&w, 3), ERR_TIMEOUT); /* its words do not come */
	assert_true(is_named(&w, OTHER, ERR_TIMEOUT) && is_named(&w, OWNER, 0));
	assert_int_equal(disk_of(&w, ASKER)->n_steps, 1); /* what the owner has answered */
	check_records(&w);
	x.type = NET_MSG_SCORE_KEY;
	assert_int_equal(ask_now(&w, 3), ERR_TIMEOUT);
	assert_int_equal(w.t.agent[OWNER].core->answers.n_keyed, 0); /* it was called off */
	w.t.tamper = NULL;
	begin(&w, 3);
	table_step(&w.t);
	table_link(&w.t, ASKER, OTHER, false);
	table_run(&w.t, w.t.now_ms + 500, STEPS);
	assert_int_equal(told.code, ERR_UNREACHABLE);
	for (size_t at = OWNER; at <= OTHER; at++)
		assert_int_equal(table_peer(&w.t, at, ASKER)->conduct.breaches, 0);
	stand_up(&w);
}

/* Who waits for keys in vain has its places back once they are due. */
static void test_keys_that_never_come(void **state)
{
	struct spoiling x = { .type = NET_MSG_SCORE_KEYS, .from = ASKER, .drop = true };
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	for (size_t i = 0; i < ANSWERS_OF_PEER_MAX; i++)
		begin(&w, 3);
	table_run(&w.t, w.t.now_ms + 100, STEPS);
	assert_int_equal(w.t.agent[OWNER].core->answers.n_keyed, ANSWERS_OF_PEER_MAX);
	w.t.tamper = NULL;
	begin(&w, 3);
	table_run(&w.t, w.t.now_ms + 100, STEPS);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.code, ERR_BUSY);
	table_run(&w.t, w.t.now_ms + RUN_MS, STEPS);
	assert_int_equal(ask_now(&w, 3), 0);
	assert_int_equal(w.t.agent[OWNER].core->answers.n_keyed, 0);
	stand_up(&w);
}

/* Places are those of all askers together, and of all that waits: for a worker, keys, or a link. */
static void test_places_are_of_all_together(void **state)
{
	struct answering of_another = { .until_ms = UINT64_MAX };
	struct answering *sending[ANSWERS_WAITING_MAX];
	struct agent_core *owner;
	struct answers *at;
	struct world w;

	(void)state;
	sit_down(&w, 3);
	owner = w.t.agent[OWNER].core;
	at = &owner->answers;
	of_another.peer = table_peer(&w.t, OWNER, OTHER);
	for (size_t k = 0; k < ANSWERS_WAITING_MAX; k++)
		sending[k] = at->keyed[k] = &of_another;
	at->sending = sending;
	for (size_t keyed = 0; keyed < ANSWERS_WAITING_MAX; keyed += 5)
		for (size_t less = 0; less < 2; less++) {
			struct err e = { 0 };

			at->n_keyed = keyed;
			at->n_sending = ANSWERS_WAITING_MAX - keyed - less;
			assert_int_equal(
				answers_check_room(owner, table_peer(&w.t, OWNER, ASKER), &e),
				less ? 0 : ERR_BUSY);
		}
	at->n_keyed = at->n_sending = 0;
	at->sending = NULL;
	stand_up(&w);
}

/* Who still owes its key when another one refuses is told that it is off, and holds no place. */
static void test_a_late_key_is_called_off(void **state)
{
	struct spoiling x = { .type = NET_MSG_SCORE_KEY, .from = OWNER, .drop = true };
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.agent[OTHER].config.query.score_holders = 0;
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	begin(&w, 3);
	table_run(&w.t, w.t.now_ms + 100, STEPS);
	assert_int_equal(x.seen, 1);
	assert_int_equal(told.times, 1);
	assert_int_equal(w.t.agent[OWNER].core->answers.n_keyed, 0);
	assert_int_equal(disk_of(&w, OWNER)->step_days[0].steps, 1); /* for what it has worked at */
	stand_up(&w);
}

/* Two that are silent together are missing together: the second is not asked once more alone. */
static void test_late_members_cost_one_attempt(void **state)
{
	struct world w;

	(void)state;
	sit_down(&w, 2);
	w.t.agent[OWNER].muted = w.t.agent[OTHER].muted = true;
	assert_int_equal(ask_now(&w, 2), ERR_TIMEOUT);
	assert_true(is_named(&w, OWNER, ERR_TIMEOUT) && is_named(&w, OTHER, ERR_TIMEOUT));
	assert_int_equal(w.t.agent[ASKER].sent[NET_MSG_SCORE], 2);
	stand_up(&w);
}

/* ---- hostile ones ---- */

static int (*send_all)(void *ctx, const uint8_t peer[32], const uint8_t *bytes, size_t n);

/* The link takes everything but words, as if the asker read none. */
static int send_no_words(void *ctx, const uint8_t peer[32], const uint8_t *bytes, size_t n)
{
	struct net_message m;

	if (net_message_decode(&m, bytes, n, NULL) == 0 && m.type == NET_MSG_SCORED &&
	    m.kind == NET_BODY_scored)
		return ERR_BUSY;
	return send_all(ctx, peer, bytes, n);
}

/* Who reads no words has as many answers under way as anybody, and no place that others need. */
static void test_who_does_not_read_has_no_more(void **state)
{
	struct agent_core *owner;
	struct world w;

	(void)state;
	sit_down(&w, 3);
	owner = w.t.agent[OWNER].core;
	owner->answers.at_once = 4; /* words of ten */
	send_all = owner->io.send;
	owner->io.send = send_no_words;
	for (size_t i = 0; i < ANSWERS_OF_PEER_MAX; i++)
		begin(&w, 3);
	table_run(&w.t, w.t.now_ms + 100, STEPS);
	assert_int_equal(owner->answers.n_sending, ANSWERS_OF_PEER_MAX);
	begin(&w, 3);
	table_run(&w.t, w.t.now_ms + 100, STEPS);
	assert_int_equal(owner->answers.n_keyed, 0);
	owner->io.send = send_all;
	table_link(&w.t, ASKER, OWNER, false);
	table_run(&w.t, w.t.now_ms + 10, STEPS);
	table_link(&w.t, ASKER, OWNER, true);
	table_run(&w.t, w.t.now_ms + 20000, STEPS);
	assert_int_equal(ask_now(&w, 3), 0);
	assert_int_equal(owner->answers.n_sending, 0);
	stand_up(&w);
}

/* Asked of fewer than were in the last round, and signed: the sum of these would be its own. */
static void change_members(struct table *t, struct net_message *m, struct buf *b)
{
	struct table_agent *s = &t->agent[ASKER];
	uint8_t two[2 * FED_KEY];
	size_t n = 0;
	struct fed_score_question q = { .members = two,
					.n_members = 2,
					.holders = 2,
					.vectors = m->score.vectors.base,
					.n = m->score.vectors.rows,
					.dim = m->score.vectors.cols };
	struct ledger_step step = { .norm = LEDGER_SCORES, .relation = LEDGER_NO_RELATION };
	struct net_writer w;

	for (size_t i = 0; i < AGENTS; i++)
		if (memcmp(m->score.members.base + i * FED_KEY, t->agent[OTHER].key, FED_KEY) != 0)
			memcpy(two + n++ * FED_KEY, m->score.members.base + i * FED_KEY, FED_KEY);
	memcpy(q.id, m->score.question, FED_ID);
	memcpy(q.asker, s->key, FED_KEY);
	memcpy(step.id, m->session, sizeof(step.id));
	memcpy(step.asker, s->sign_public, 32);
	memcpy(step.owner, t->agent[OWNER].sign_public, 32);
	memcpy(step.alignment, m->score.alignment, 32);
	step.points = 2;
	step.want = 2;
	step.asked_ms = m->score.asked_ms;
	fed_score_digest(&q, step.frontier);
	ledger_step_ask(&step, s->sign_secret);
	m->score.members = (struct net_bytes){ two, sizeof(two) };
	m->score.holders = 2;
	memcpy(m->score.signature, step.asker_signature, 64);
	{
		struct buf out = { 0 };

		net_write_begin(&w, &out, NET_MSG_SCORE, m->session);
		net_score_put(&w, &m->score);
		assert_int_equal(net_write_end(&w, NULL), 0);
		buf_clear(b);
		buf_add(b, out.base, out.len);
		buf_release(&out);
	}
}

static void test_the_asker_does_not_choose_members(void **state)
{
	struct spoiling x = { .type = NET_MSG_SCORE, .from = ASKER, .change = change_members };
	struct world w;

	(void)state;
	sit_down(&w, 2); /* scores would be bare to two */
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	begin(&w, 2);
	table_run(&w.t, w.t.now_ms + RUN_MS, STEPS);
	assert_int_not_equal(told.code, 0);
	assert_int_equal(w.t.agent[OWNER].sent[NET_MSG_SCORE_KEY], 0);
	assert_int_equal(disk_of(&w, OWNER)->n_steps, 0);
	assert_int_equal(breaches(&w, OWNER, ASKER), 0); /* another may know another round */
	stand_up(&w);
}

/* The two others are asked by different vectors, each signed for: their keys do not meet. */
static void change_vectors(struct table *t, struct net_message *m, struct buf *b)
{
	static float other[2 * DIM];
	struct table_agent *s = &t->agent[ASKER];
	struct fed_score_question q = { .members = m->score.members.base,
					.n_members = AGENTS,
					.holders = 3,
					.vectors = (const uint8_t *)other,
					.n = 2,
					.dim = DIM };
	struct ledger_step step = { .norm = LEDGER_SCORES, .relation = LEDGER_NO_RELATION };
	struct net_writer w;
	struct buf out = { 0 };

	memcpy(step.alignment, m->score.alignment, 32);
	if (memcmp(step.alignment, table_peer(t, ASKER, OTHER)->digest, 32) != 0)
		return; /* to the owner: as it is */
	memcpy(q.id, m->score.question, FED_ID);
	memcpy(q.asker, s->key, FED_KEY);
	memcpy(step.id, m->session, sizeof(step.id));
	memcpy(step.asker, s->sign_public, 32);
	memcpy(step.owner, t->agent[OTHER].sign_public, 32);
	step.points = 2;
	step.want = 3;
	step.asked_ms = m->score.asked_ms;
	fed_score_digest(&q, step.frontier);
	ledger_step_ask(&step, s->sign_secret);
	m->score.vectors = net_tensor_of(other, 2, DIM);
	memcpy(m->score.signature, step.asker_signature, 64);
	net_write_begin(&w, &out, NET_MSG_SCORE, m->session);
	net_score_put(&w, &m->score);
	assert_int_equal(net_write_end(&w, NULL), 0);
	buf_clear(b);
	buf_add(b, out.base, out.len);
	buf_release(&out);
}

static void test_all_are_asked_the_same(void **state)
{
	struct spoiling x = { .type = NET_MSG_SCORE, .from = ASKER, .change = change_vectors };
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	begin(&w, 3);
	/* the honest half of the asker finds the key that is not for its question */
	table_run(&w.t, w.t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.code, ERR_IDENTITY);
	assert_int_equal(x.seen, 2);
	assert_int_equal(w.t.agent[OWNER].sent[NET_MSG_SCORED], 0);
	assert_int_equal(w.t.agent[OTHER].sent[NET_MSG_SCORED], 0);
	stand_up(&w);
}

struct bad {
	enum net_msg_type type;
	size_t from;
	struct edit edit;
};

/* One field is wrong: who said it has broken the protocol, and nothing comes of it. */
static void test_what_nobody_says(void **state)
{
	static const struct bad bad[] = {
		{ NET_MSG_SCORE, ASKER, NOT_THERE("m") },
		{ NET_MSG_SCORE, ASKER, LENGTH("m", 95) },
		{ NET_MSG_SCORE, ASKER, LENGTH("m", 96) }, /* all alike */
		{ NET_MSG_SCORE, ASKER, FLIPPED("m") },
		{ NET_MSG_SCORE, ASKER, NUMBER("o", 1) },
		{ NET_MSG_SCORE, ASKER, NUMBER("o", 4) },
		{ NET_MSG_SCORE, ASKER, NUMBER("o", 65) },
		{ NET_MSG_SCORE, ASKER, NOT_THERE("q") },
		{ NET_MSG_SCORE, ASKER, LENGTH("q", 32) },
		{ NET_MSG_SCORE, ASKER, LENGTH("i", 15) },
		{ NET_MSG_SCORE, ASKER, FLIPPED("i") }, /* another question than is signed */
		{ NET_MSG_SCORE, ASKER, NUMBER("ms", 0) },
		{ NET_MSG_SCORE, ASKER, FLIPPED("s") },
		{ NET_MSG_SCORE, ASKER, LENGTH("d", 31) },
		{ NET_MSG_SCORE_KEY, OWNER, FLIPPED("y") },
		{ NET_MSG_SCORE_KEY, OWNER, LENGTH("y", 95) },
		{ NET_MSG_SCORE_KEY, OWNER, LENGTH("y", 96) },
		{ NET_MSG_SCORE_KEYS, ASKER, LENGTH("y", 96) },
		{ NET_MSG_SCORE_KEYS, ASKER, LENGTH("y", 192) },
		{ NET_MSG_SCORE_KEYS, ASKER, FLIPPED("y") },
		{ NET_MSG_SCORE_KEYS, ASKER, NOT_THERE("y") },
		{ NET_MSG_SCORED, OWNER, FLIPPED("a") },
		{ NET_MSG_SCORED, OWNER, LENGTH("a", 8) },
		{ NET_MSG_SCORED, OWNER, LENGTH("a", 88) },
		{ NET_MSG_SCORED, OWNER, FLIPPED("s") },
		{ NET_MSG_SCORED, OWNER, NOT_THERE("a") },
		{ NET_MSG_SCORED, OWNER, TEXT("z") },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct spoiling x = { .type = bad[i].type,
				      .from = bad[i].from,
				      .edit = &bad[i].edit };
		uint32_t held_against;
		struct world w;

		sit_down(&w, 3);
		w.t.tamper = spoil_one;
		w.t.ctx = &x;
		begin(&w, 3);
		table_run(&w.t, w.t.now_ms + RUN_MS, STEPS);
		held_against = bad[i].from == ASKER
				       ? breaches(&w, OWNER, ASKER) + breaches(&w, OTHER, ASKER)
				       : breaches(&w, ASKER, OWNER);
		if (told.times != 1 || told.code == 0 || held_against == 0 || x.seen == 0)
			fail_msg("row %zu, %s: told %zu, code %d, held against %u", i,
				 bad[i].edit.key, told.times, told.code, held_against);
		check_records(&w);
		if (bad[i].from == OWNER)
			assert_int_equal(breaches(&w, OTHER, ASKER), 0);
		stand_up(&w);
	}
}

/* Signed, but of a name less: it counts otherwise who holds what. */
static void change_words(struct table *t, struct net_message *m, struct buf *b)
{
	const struct store_step *s = &t->agent[OWNER].disk.steps[t->agent[OWNER].disk.n_steps - 1];
	struct ledger_step step = s->step;
	struct net_writer w;
	struct buf out = { 0 };

	m->scored.words.len -= FED_SCORE_WORD;
	step.rows--;
	ledger_step_hash(step.answer, m->scored.words.base, m->scored.words.len, NULL, 0);
	ledger_step_answer(&step, t->agent[OWNER].sign_secret);
	memcpy(m->scored.signature, step.owner_signature, 64);
	net_write_begin(&w, &out, NET_MSG_SCORED, m->session);
	net_scored_put(&w, &m->scored);
	assert_int_equal(net_write_end(&w, NULL), 0);
	buf_clear(b);
	buf_add(b, out.base, out.len);
	buf_release(&out);
}

static void test_who_counts_otherwise_is_no_enemy(void **state)
{
	struct spoiling x = { .type = NET_MSG_SCORED, .from = OWNER, .change = change_words };
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	assert_int_equal(ask_now(&w, 3), ERR_BUSY);
	assert_true(is_named(&w, OWNER, ERR_BUSY));
	assert_int_equal(breaches(&w, ASKER, OWNER), 0);
	assert_int_equal(disk_of(&w, ASKER)->n_steps, 2); /* both have answered, and charged it */
	stand_up(&w);
}

/* OTHER has said another key of its own to OWNER than to the asker, who can't know. */
static void test_a_member_with_two_keys(void **state)
{
	struct world w;

	(void)state;
	sit_down(&w, 3);
	table_peer(&w.t, OWNER, OTHER)->info.sign_key[3] ^= 1;
	assert_int_equal(ask_now(&w, 3), ERR_IDENTITY);
	assert_true(is_named(&w, OWNER, ERR_IDENTITY));
	assert_int_equal(disk_of(&w, OWNER)->step_days[0].steps, 1); /* for what it has worked at */
	assert_int_equal(breaches(&w, OWNER, ASKER), 0);
	assert_int_equal(breaches(&w, ASKER, OWNER), 0);
	stand_up(&w);
}

/* What comes once more has no effect. */
static void test_replays(void **state)
{
	static const struct {
		enum net_msg_type type;
		size_t from;
	} rows[] = { { NET_MSG_SCORE, ASKER },
		     { NET_MSG_SCORE_KEYS, ASKER },
		     { NET_MSG_SCORED, OWNER } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct spoiling x = { .type = rows[i].type, .from = rows[i].from, .again = true };
		struct world w;

		sit_down(&w, 3);
		w.t.tamper = spoil_one;
		w.t.ctx = &x;
		assert_int_equal(ask_now(&w, 3), 0);
		assert_int_equal(disk_of(&w, OWNER)->n_steps, 1);
		assert_int_equal(disk_of(&w, ASKER)->n_steps, 2);
		assert_int_equal(w.t.agent[OWNER].sent[NET_MSG_SCORED], 1);
		assert_int_equal(breaches(&w, OWNER, ASKER) + breaches(&w, ASKER, OWNER), 0);
		stand_up(&w);
	}
}

/* ---- more words than a message has room for ---- */

/* Of the owner's three messages of words, which[k] times the k-th one. */
struct pieces {
	size_t times[3], seen;
};

static void repeat_pieces(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct pieces *x = ctx;
	struct net_message m;
	size_t times;

	if (from != OWNER || net_message_decode(&m, b->base, b->len, NULL) != 0 ||
	    m.kind != NET_BODY_scored)
		return;
	assert_true(x->seen < 3);
	assert_int_equal(m.scored.has_follow, x->seen < 2);
	times = x->times[x->seen++];
	for (size_t i = 1; i < times; i++) {
		struct buf again = { 0 };

		buf_add(&again, b->base, b->len);
		table_inject(t, from, to, &again);
	}
	if (times == 0)
		buf_clear(b);
}

static void test_words_come_in_pieces(void **state)
{
	static const struct {
		size_t times[3];
		int code;
		uint32_t breaches;
	} rows[] = { { { 1, 1, 1 }, 0, 0 },
		     { { 2, 3, 2 }, 0, 0 }, /* again: no effect */
		     { { 1, 0, 1 }, ERR_PROTO, 1 },
		     { { 0, 1, 1 }, ERR_BUSY, 1 }, /* fewer names, and they are not signed */
		     { { 1, 1, 0 }, ERR_TIMEOUT, 0 } };
	float sum[NAMES];
	struct world w;

	(void)state;
	sit_down(&w, 3);
	assert_int_equal(ask_now(&w, 3), 0);
	memcpy(sum, told.sum, sizeof(sum));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct pieces x = { .seen = 0 };

		memcpy(x.times, rows[i].times, sizeof(x.times));
		for (size_t at = OWNER; at <= OTHER; at++)
			w.t.agent[at].core->answers.at_once = 4; /* of ten */
		w.t.tamper = repeat_pieces;
		w.t.ctx = &x;
		ask_now(&w, 3);
		assert_int_equal(x.seen, 3);
		assert_int_equal(told.code, rows[i].code);
		assert_int_equal(breaches(&w, ASKER, OWNER), rows[i].breaches);
		if (told.code == 0)
			assert_memory_equal(sum, told.sum, sizeof(sum));
		assert_int_equal(w.t.agent[OWNER].core->answers.n_sending, 0);
		check_records(&w);
		stand_up(&w);
		sit_down(&w, 3);
	}
	stand_up(&w);
}

/* ---- rows of relations ---- */

static int ask_row(struct world *w, bool inverse)
{
	uint8_t partner[1][AGENT_KEY];
	const struct agent_ask ask = { .ticket = 78,
				       .relation = "likes",
				       .inverse = inverse,
				       .norm = LEDGER_ROW,
				       .want = 1,
				       .patience_ms = 1000,
				       .tell = true,
				       .partners = partner,
				       .n_partners = 1 };
	struct agent_event e = { .kind = AGENT_EVENT_ASK,
				 .now_ms = w->t.now_ms,
				 .wall_ms = (int64_t)w->t.now_ms + 1700000000000,
				 .ask = &ask };

	memcpy(partner[0], w->t.agent[OWNER].key, AGENT_KEY);
	memset(&told, 0, sizeof(told));
	agent_core_event(w->t.agent[ASKER].core, &e);
	table_run(&w->t, w->t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.times, 1);
	return told.row_code;
}

static void test_a_relations_row(void **state)
{
	struct encode_model m;
	struct fedcqa_head h;
	struct world w;

	(void)state;
	sit_down(&w, 0);
	assert_int_equal(ask_row(&w, false), ERR_REFUSED);
	w.t.agent[OWNER].config.query.answer = CONFIG_ANSWER_SOFT;
	assert_true(fedcqa_best(w.t.agent[OWNER].core->fed.part, &m, &h));
	for (int inverse = 0; inverse < 2; inverse++) {
		assert_int_equal(ask_row(&w, inverse == 1), 0);
		assert_int_equal(told.row_floats, DIM);
		assert_memory_equal(told.row, m.rel + inverse * DIM, sizeof(told.row));
	}
	assert_int_equal(disk_of(&w, OWNER)->n_steps, 2);
	assert_int_equal(disk_of(&w, OWNER)->step_days[0].rows, 2);
	assert_memory_equal(&disk_of(&w, ASKER)->steps[0].step, &disk_of(&w, OWNER)->steps[0].step,
			    sizeof(struct ledger_step));
	w.t.agent[OWNER].config.query.rows_per_day = 2;
	assert_int_equal(ask_row(&w, false), ERR_BUDGET);
	stand_up(&w);
}

/* Nothing was copied of the encoder when a worker set to work: it is there all the same. */
static void test_a_worker_is_at_the_encoder(void **state)
{
	struct agent_job job = { .kind = 0 };
	struct agent_core *owner;
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.agent[OWNER].config.query.answer = CONFIG_ANSWER_SOFT;
	owner = w.t.agent[OWNER].core;
	assert_null(owner->answers.encoder.m);
	owner->answers.job = &job;
	assert_int_equal(ask_row(&w, false), ERR_BUSY);
	assert_int_equal(ask_now(&w, 3), ERR_BUSY);
	owner->answers.job = NULL;
	assert_int_equal(ask_row(&w, false), 0);
	owner->answers.job = &job; /* by the copy */
	assert_int_equal(ask_row(&w, false), 0);
	owner->answers.job = NULL;
	stand_up(&w);
}

/* What it says while a worker is at its part. */
static void check_busy(struct world *w, struct agent_job *job, int code)
{
	struct agent_core *owner = w->t.agent[OWNER].core;

	assert_null(owner->answers.encoder.m);
	owner->answers.job = job;
	assert_int_equal(ask_row(w, false), code);
	assert_int_equal(ask_now(w, 3), code);
	assert_true(is_named(w, OWNER, code));
	owner->answers.job = NULL;
}

/* A member that is at work has an encoder where its part had one before. */
static void test_a_worker_is_at_no_encoder(void **state)
{
	struct agent_job job = { .kind = 0 };
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.agent[OWNER].config.query.answer = CONFIG_ANSWER_SOFT;
	check_busy(&w, &job, ERR_BUSY);
	table_kill(&w.t, OWNER);
	table_restart(&w.t, OWNER);
	link_all(&w.t);
	table_run(&w.t, w.t.now_ms + 20000, STEPS);
	check_busy(&w, &job, ERR_BUSY); /* from its disk */
	rounds_restart(w.t.agent[OWNER].core);
	check_busy(&w, &job, ERR_REFUSED); /* no look at the new part yet */
	stand_up(&w);
}

/* Questions whose keys never come hold their places for other steps no longer than they wait. */
static void test_late_keys_hold_up_no_steps(void **state)
{
	struct spoiling x = { .type = NET_MSG_SCORE_KEYS, .from = ASKER, .drop = true };
	struct world w;

	(void)state;
	sit_down(&w, 3);
	w.t.agent[OWNER].config.query.answer = CONFIG_ANSWER_SOFT;
	w.t.tamper = spoil_one;
	w.t.ctx = &x;
	for (size_t i = 0; i < ANSWERS_OF_PEER_MAX; i++)
		begin(&w, 3);
	table_run(&w.t, w.t.now_ms + 100, STEPS);
	assert_int_equal(w.t.agent[OWNER].core->answers.n_keyed, ANSWERS_OF_PEER_MAX);
	table_run(&w.t, w.t.now_ms + RUN_MS, STEPS);
	assert_int_equal(ask_row(&w, false), 0);
	assert_int_equal(w.t.agent[OWNER].core->answers.n_keyed, 0);
	stand_up(&w);
}

/* A row that is not finite, signed. */
static void change_row(struct table *t, struct net_message *m, struct buf *b)
{
	const struct store_step *s = &t->agent[OWNER].disk.steps[t->agent[OWNER].disk.n_steps - 1];
	float row[DIM] = { 1, NAN, 0, 2 };
	struct ledger_step step = s->step;
	struct net_writer w;
	struct buf out = { 0 };

	m->answer.rows = (struct net_bytes){ (const uint8_t *)row, sizeof(row) };
	ledger_step_hash(step.answer, row, sizeof(row), NULL, 0);
	ledger_step_answer(&step, t->agent[OWNER].sign_secret);
	memcpy(m->answer.signature, step.owner_signature, 64);
	net_write_begin(&w, &out, NET_MSG_ANSWER, m->session);
	net_answer_put(&w, &m->answer);
	assert_int_equal(net_write_end(&w, NULL), 0);
	buf_clear(b);
	buf_add(b, out.base, out.len);
	buf_release(&out);
}

static void test_rows_that_nobody_answers(void **state)
{
	static const struct edit cut = LENGTH("a", 15);

	(void)state;
	for (int k = 0; k < 2; k++) {
		struct spoiling x = { .type = NET_MSG_ANSWER,
				      .from = OWNER,
				      .change = k == 0 ? change_row : NULL,
				      .edit = k == 0 ? NULL : &cut };
		struct world w;

		sit_down(&w, 0);
		w.t.agent[OWNER].config.query.answer = CONFIG_ANSWER_SOFT;
		w.t.tamper = spoil_one;
		w.t.ctx = &x;
		assert_int_equal(ask_row(&w, false), ERR_PROTO);
		assert_int_equal(breaches(&w, ASKER, OWNER), 1);
		assert_int_equal(disk_of(&w, ASKER)->n_steps, 0);
		stand_up(&w);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_the_sums_are_those_of_the_scores),
		cmocka_unit_test(test_both_have_the_same_record),
		cmocka_unit_test(test_what_one_member_sends_says_nothing),
		cmocka_unit_test(test_nothing_by_default),
		cmocka_unit_test(test_the_budget_holds_over_restarts),
		cmocka_unit_test(test_what_is_refused_after_work_counts),
		cmocka_unit_test(test_who_cannot_answer_is_missing),
		cmocka_unit_test(test_the_record_comes_before_the_words),
		cmocka_unit_test(test_who_is_away_is_named),
		cmocka_unit_test(test_keys_that_never_come),
		cmocka_unit_test(test_places_are_of_all_together),
		cmocka_unit_test(test_a_late_key_is_called_off),
		cmocka_unit_test(test_late_members_cost_one_attempt),
		cmocka_unit_test(test_who_does_not_read_has_no_more),
		cmocka_unit_test(test_the_asker_does_not_choose_members),
		cmocka_unit_test(test_all_are_asked_the_same),
		cmocka_unit_test(test_what_nobody_says),
		cmocka_unit_test(test_who_counts_otherwise_is_no_enemy),
		cmocka_unit_test(test_a_member_with_two_keys),
		cmocka_unit_test(test_replays),
		cmocka_unit_test(test_a_relations_row),
		cmocka_unit_test(test_words_come_in_pieces),
		cmocka_unit_test(test_a_worker_is_at_the_encoder),
		cmocka_unit_test(test_a_worker_is_at_no_encoder),
		cmocka_unit_test(test_late_keys_hold_up_no_steps),
		cmocka_unit_test(test_rows_that_nobody_answers),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
