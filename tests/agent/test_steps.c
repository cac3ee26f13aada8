/* Steps of queries between partners around a table: what is answered, to whom, how much in a day;
 * that both have a record which holds before anything is used; and what comes of partners that ask
 * or answer what no honest one does.  The asker is agent 0, the owner agent 1. */
#include "tests/test.h"

#include <sodium.h>

#include "base/mem.h"
#include "net/ident.h"
#include "tests/agent/table.h"
#include "tests/edit.h"

enum { ASKER, OWNER, OTHER };
enum { RUN_MS = 3000, STEPS = 60000 };

/* What came of the last question. */
static struct {
	size_t times, n;
	struct agent_answer answer[AGENTS];
	struct agent_answer_row rows[2 * AGENT_POINTS_MAX];
	uint8_t shared[2];
} told;

static void hear_answers(void *ctx, uint64_t ticket, const struct agent_answer *answers, size_t n)
{
	(void)ctx;
	assert_int_equal(ticket, 77);
	told.times++;
	told.n = n;
	for (size_t i = 0; i < n; i++) {
		told.answer[i] = answers[i];
		if (answers[i].shared_bytes == sizeof(told.shared))
			memcpy(told.shared, answers[i].shared, sizeof(told.shared));
		if (answers[i].n > 0)
			memcpy(told.rows, answers[i].rows, answers[i].n * sizeof(told.rows[0]));
	}
}

static void start_and_align(struct table *t, enum config_answer answer)
{
	t->agent[OWNER].config.query.answer = answer;
	t->agent[ASKER].io.answered = hear_answers;
	table_start(t);
	table_link(t, ASKER, OWNER, true);
	table_run(t, t->now_ms + 20000, STEPS);
	assert_true(peer_aligned(table_peer(t, ASKER, OWNER)));
	memset(&told, 0, sizeof(told));
}

static void sit_down(struct table *t, enum config_answer answer)
{
	table_init(t, 1);
	table_goes_back(t);
	start_and_align(t, answer);
}

static struct agent_point some[] = { { 0, 1 }, { 2, .5f } };

static struct agent_ask likes(void)
{
	return (struct agent_ask){ .ticket = 77,
				   .relation = "likes",
				   .points = some,
				   .n = 2,
				   .known = 2,
				   .want = 4,
				   .patience_ms = 1000 };
}

static void begin_at(struct table *t, size_t at, const struct agent_ask *ask)
{
	struct agent_event e = { .kind = AGENT_EVENT_ASK,
				 .now_ms = t->now_ms,
				 .wall_ms =
					 (int64_t)t->now_ms + 1700000000000 + t->agent[at].ahead_ms,
				 .ask = ask };

	memset(&told, 0, sizeof(told));
	agent_core_event(t->agent[at].core, &e);
}

static void begin(struct table *t, const struct agent_ask *ask)
{
	begin_at(t, ASKER, ask);
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

/* Guesses at names of relations are counted, and the owner is told at the thousandth of a day. */
static void test_guesses_at_relations_show(void **state)
{
	struct agent_ask ask = likes();
	struct table t;
	const struct table_agent *owner;

	(void)state;
	ask.relation = "hates";
	for (int policy = CONFIG_ANSWER_NOTHING; policy <= CONFIG_ANSWER_SOFT; policy++) {
		sit_down(&t, (enum config_answer)policy);
		owner = &t.agent[OWNER];
		assert_int_equal(ask_now(&t, &ask)->code, ERR_REFUSED);
		table_peer(&t, OWNER, ASKER)->steps.refused += 997;
		for (int i = 999; i <= 1001; i++) {
			uint64_t before = owner->notices[AGENT_NOTICE_TROUBLE];

			assert_int_equal(ask_now(&t, &ask)->code, ERR_REFUSED);
			assert_int_equal(owner->notices[AGENT_NOTICE_TROUBLE] - before,
					 policy != CONFIG_ANSWER_NOTHING && i == 1000);
			if (i == 1000 && policy != CONFIG_ANSWER_NOTHING)
				assert_non_null(strstr(owner->last, "asked 1000 times today"));
		}
		table_release(&t);
	}
}

/* A rule names a partner by its id, and goes on for the keys that have replaced it. */
static void test_a_rule_outlives_new_keys(void **state)
{
	struct agent_ask ask = likes();
	struct ledger_rotation r = { .old_key = { 7 }, .new_key = { 8 }, .new_sign = { 9 } };
	struct ledger_rotations *known;
	char id[NET_KEY_TEXT];
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	net_key_format(r.old_key, id);
	free(t.agent[OWNER].config.query.rules);
	t.agent[OWNER].config.query.rules = mem_printf("nothing %s *", id);
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	ledger_rotation_after(&r, NULL);
	memcpy(r.account, t.agent[ASKER].sign_public, sizeof(r.account));
	memcpy(r.old_sign, r.account, sizeof(r.old_sign));
	known = &t.agent[OWNER].core->account.rotations;
	assert_int_equal(ledger_rotations_add(known, &r, NULL), 0);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_REFUSED);
	table_release(&t);
}

/* The asker says that this key was its own for a while: a rule for it gives nothing, until a link
 * has shown it. */
static void test_a_key_that_is_a_mere_word_has_no_rule(void **state)
{
	struct agent_ask ask = likes();
	struct ledger_rotation r = { .old_key = { 7 }, .new_key = { 8 }, .new_sign = { 9 } };
	struct ledger_rotations *known;
	char id[NET_KEY_TEXT];
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_NOTHING);
	net_key_format(r.old_key, id);
	free(t.agent[OWNER].config.query.rules);
	t.agent[OWNER].config.query.rules = mem_printf("facts %s *", id);
	ledger_rotation_after(&r, NULL);
	memcpy(r.account, t.agent[ASKER].sign_public, sizeof(r.account));
	memcpy(r.old_sign, r.account, sizeof(r.old_sign));
	known = &t.agent[OWNER].core->account.rotations;
	assert_int_equal(ledger_rotations_add(known, &r, NULL), 0);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_REFUSED);
	known->at[0].proved = true;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
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

/* Of twelve: every second name comes first. */
static uint32_t turned_id(uint32_t id)
{
	return id / 2 + id % 2 * 6;
}

static void turn_ids(struct table_agent *s)
{
	struct graph *g = graph_new();
	char name[16];

	for (uint32_t k = 0; k < 12; k++) {
		uint32_t is = k < 6 ? 2 * k : 2 * k - 11;

		assert_int_equal(turned_id(is), k);
		snprintf(name, sizeof(name), "thing-%u", is < 9 ? is : 100 * (unsigned)s->at + is);
		graph_vocab_add(g->entities, name, strlen(name));
	}
	graph_vocab_add(g->relations, "likes", 5);
	graph_vocab_add(g->relations, "eats", 4);
	for (int split = 0; split < GRAPH_SPLITS; split++)
		for (size_t i = 0; i < s->graph->split[split].n; i++) {
			struct graph_triple x = s->graph->split[split].at[i];

			x.head = turned_id(x.head);
			x.tail = turned_id(x.tail);
			graph_add(g, (enum graph_split)split, x);
		}
	agent_names_free(s->names);
	graph_free(s->graph);
	s->graph = g;
	s->names = agent_names_new(g);
}

/* The truths of the nine that are shared, by tables that follow from names and this number, of an
 * owner whose ids are in one order or the other. */
static void truths_by_order(bool turned, uint64_t number, float out[9])
{
	struct agent_ask ask = likes();
	struct kge_emb *best;
	struct table t;

	table_init(&t, 1);
	table_goes_back(&t);
	if (turned)
		turn_ids(&t.agent[OWNER]);
	start_and_align(&t, CONFIG_ANSWER_SOFT);
	t.agent[OWNER].core->terms.statement.epsilon = 4; /* dp_charge_needed() */
	best = t.agent[OWNER].core->best;
	for (uint32_t i = 0; i < best->n_ent; i++) {
		struct rng r;

		rng_seed(&r, 100 * number + i);
		for (size_t j = 0; j < best->ent_floats; j++)
			kge_ent(best, turned ? turned_id(i) : i)[j] = (float)rng_normal(&r);
	}
	ask.want = 9;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	assert_int_equal(told.answer[0].n, 9);
	for (size_t i = 0; i < 9; i++)
		out[told.rows[i].to.entity] = told.rows[i].to.truth;
	table_release(&t);
}

/* Ids are in the order of triples, which is data, too: no bit of a truth depends on them. */
static void test_private_truths_are_by_names(void **state)
{
	(void)state;
	for (uint64_t number = 1; number <= 4; number++) {
		float one[9], other[9];

		truths_by_order(false, number, one);
		truths_by_order(true, number, other);
		assert_memory_equal(one, other, sizeof(one));
	}
}

static const struct agent_answer_row *told_of(uint32_t entity)
{
	for (size_t i = 0; i < told.answer[0].n; i++)
		if (told.rows[i].to.entity == entity)
			return &told.rows[i];
	fail_msg("nothing is said of entity %u", entity);
	return NULL;
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
	assert_true(told_of(1)->to.truth == 1 && told_of(1)->from.truth == 1);
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
	struct query_point from[] = { { 0, 1 }, { 2, .5f } };
	struct query_reached want[24];
	uint32_t order[12];
	size_t n;

	sit_down(&t, policy);
	ask.known = 1; /* of two */
	ask.want = 5;
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
	n = query_search_step(s, (struct query_step){ 0, false }, from, 2, order, want,
			      (struct query_limits){ .known = 1, .predicted = 5 });
	assert_int_equal(n, policy == CONFIG_ANSWER_FACTS ? 6 : 5);
	assert_int_equal(told.answer[0].n, n);
	assert_true(told.answer[0].rest == want[n - 1].to.truth);
	for (size_t i = 0; i < n; i++) { /* the first nine have the same ids in all graphs */
		const struct agent_answer_row *row = told_of(want[i].to.id);

		assert_true(row->to.truth == want[i].to.truth);
		assert_int_equal(row->from.entity, want[i].way.from);
		assert_true(row->from.truth == want[i].way.edge);
		assert_true(policy == CONFIG_ANSWER_FACTS || row->from.truth < 1);
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

/* Also where none is wanted: whoever asks is told that there may be more. */
static void test_known_answers_that_are_left_out(void **state)
{
	struct agent_ask ask = likes();

	(void)state;
	for (int policy = CONFIG_ANSWER_SOFT; policy <= CONFIG_ANSWER_FACTS; policy++)
		for (uint32_t known = 0; known <= 8; known++) {
			struct table t;

			sit_down(&t, (enum config_answer)policy);
			ask.known = known;
			ask.n = 2;
			assert_int_equal(ask_now(&t, &ask)->code, 0);
			assert_int_equal(told.answer[0].known_full,
					 policy == CONFIG_ANSWER_FACTS && known <= 2);
			ask.n = 0; /* whether it would */
			assert_int_equal(ask_now(&t, &ask)->code, 0);
			assert_false(told.answer[0].known_full);
			table_release(&t);
		}
}

/* By the setting as it is, from when they were compared last. */
static void may_compare_in(struct table *t, struct peer *owner, uint64_t ms)
{
	struct table_agent *asker = &t->agent[ASKER];

	owner->names.begun_ms = (int64_t)asker->core->now_ms;
	assert_true(owner->names.compared > 0);
	asker->config.federation.names.every_s =
		(double)(t->now_ms - asker->core->now_ms + ms) / 1000;
}

/* Worth asking again soon where names may be compared before the asker's patience ends. */
static void test_names_that_are_not_compared(void **state)
{
	struct agent_ask ask = likes();
	struct table t;
	struct agent_status s;
	struct peer *owner;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	owner = table_peer(&t, ASKER, OWNER);
	owner->aligned = false;
	may_compare_in(&t, owner, ask.patience_ms);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUSY);
	may_compare_in(&t, owner, ask.patience_ms + 1); /* as its owner wants it now */
	agent_core_status(t.agent[ASKER].core, &s);
	assert_non_null(strstr(s.peer[0].trouble, "names are to be compared, which may not"));
	assert_true(s.peer[0].trouble_passes);
	agent_status_release(&s);
	owner->judgement.quarantined = true;
	agent_core_status(t.agent[ASKER].core, &s);
	assert_non_null(strstr(s.peer[0].trouble, "in quarantine"));
	assert_false(s.peer[0].trouble_passes);
	agent_status_release(&s);
	owner->judgement.quarantined = false;
	owner->info.status = STORE_REVOKED;
	agent_core_status(t.agent[ASKER].core, &s);
	assert_string_equal(s.peer[0].trouble, "");
	agent_status_release(&s);
	owner->info.status = STORE_LISTED;
	assert_int_equal(ask_now(&t, &ask)->code, ERR_UNREACHABLE);
	assert_non_null(strstr(told.answer[0].why, "not be for 2 s (federation.names_every_s)"));
	table_release(&t);
}

/* Slots of one comparison of names mean others by the next: none is taken by another's. */
static void test_names_that_were_compared_anew(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	table_peer(&t, OWNER, ASKER)->digest[0] ^= 1;
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUSY);
	assert_non_null(strstr(told.answer[0].why, "compared anew first"));
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
	table_peer(&t, OWNER, ASKER)->digest[0] ^= 1;
	begin(&t, &ask);
	while (t.agent[OWNER].sent[NET_MSG_ANSWER] == 1)
		assert_true(table_step(&t));
	table_peer(&t, ASKER, OWNER)->digest[0] ^= 1; /* while the answer is under way */
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.answer[0].code, ERR_BUSY);
	assert_non_null(strstr(told.answer[0].why, "compared anew meanwhile"));
	assert_int_equal(disk_of(&t, ASKER)->n_steps, 0);
	table_release(&t);
}

/* The next comparison is not due for long once one has begun: who asks waits for that one. */
static void test_names_that_are_being_compared(void **state)
{
	struct agent_ask ask = likes();
	const struct peer *owner;
	struct agent_status s;
	struct table t;

	(void)state;
	table_init(&t, 1);
	t.agent[ASKER].config.federation.names.every_s = 600;
	t.agent[ASKER].io.answered = hear_answers;
	table_start(&t);
	table_link(&t, ASKER, OWNER, true);
	owner = table_peer(&t, ASKER, OWNER);
	while (intersect_wait_ms(t.agent[ASKER].core, owner) == 0)
		assert_true(table_step(&t));
	assert_false(peer_aligned(owner));
	begin(&t, &ask);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.answer[0].code, ERR_BUSY);
	agent_core_status(t.agent[ASKER].core, &s);
	assert_string_equal(s.peer[0].trouble, "");
	agent_status_release(&s);
	table_run(&t, t.now_ms + 20000, STEPS);
	assert_true(peer_aligned(owner));
	table_release(&t);
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
	assert_int_equal(told.answer[0].shared_bytes, 2); /* of twelve, the first nine */
	assert_memory_equal(told.shared, "\xff\x01", 2);
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

/* A relation of ours is asked for where the name is known to be shared, or where our owner says so;
 * one that we do not have has been typed. */
static void check_name_stays(struct table *t, const char *relation, bool tell, bool stays)
{
	struct agent_ask ask = likes();
	uint64_t before = t->agent[ASKER].sent[NET_MSG_ASK];
	const struct agent_answer *a;

	ask.relation = relation;
	ask.tell = tell;
	a = ask_now(t, &ask);
	assert_int_equal(a->unasked, stays);
	assert_true(!stays || (a->code == ERR_REFUSED && a->why[0] != '\0' && a->n == 0));
	assert_int_equal(t->agent[ASKER].sent[NET_MSG_ASK] - before, !stays);
}

static void test_names_of_our_relations_stay(void **state)
{
	struct table t;

	(void)state;
	table_init(&t, 1);
	table_goes_back(&t);
	for (size_t i = ASKER; i <= OWNER; i++)
		t.agent[i].config.federation.share = CONFIG_SHARE_ENTITIES;
	start_and_align(&t, CONFIG_ANSWER_SOFT);
	check_name_stays(&t, "likes", false, true);
	check_name_stays(&t, "likes", true, false);
	check_name_stays(&t, "hates", false, false);
	table_link(&t, ASKER, OWNER, false);
	check_name_stays(&t, "likes", false, true);
	table_release(&t);
}

static void test_names_of_relations_that_both_have_are_asked(void **state)
{
	struct table t;
	uint32_t eats;

	(void)state;
	table_init(&t, 1);
	table_goes_back(&t);
	eats = graph_vocab_find(t.agent[OWNER].graph->relations, "eats", 4);
	agent_names_alias(t.agent[OWNER].names, NULL, 'r', eats, "devours", 7);
	start_and_align(&t, CONFIG_ANSWER_SOFT);
	check_name_stays(&t, "likes", false, false);
	assert_int_equal(told.answer[0].code, 0);
	check_name_stays(&t, "eats", false, true);
	check_name_stays(&t, "eats", true, false);
	check_name_stays(&t, "devours", false, false);
	table_release(&t);
}

/* ---- the day's budget ---- */

static void test_the_budget_holds_over_restarts(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	ask.want = 6;
	t.agent[OWNER].config.query.rows_per_day = 10;
	assert_int_equal(ask_now(&t, &ask)->n, 6);
	assert_false(told.answer[0].cut);
	assert_int_equal(ask_now(&t, &ask)->n, 4);
	assert_true(told.answer[0].cut);
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

/* Rows that a step under way may need are not used up: those that it does not take come back. */
static void test_rows_that_are_held_come_back(void **state)
{
	struct agent_ask ask = likes();
	size_t first;
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	ask.want = 100;
	first = ask_now(&t, &ask)->n;
	t.agent[OWNER].config.query.rows_per_day = (uint32_t)(2 * first + 3);
	t.held = true;
	begin(&t, &ask);
	table_run(&t, t.now_ms + 100, STEPS);
	assert_int_equal(told.times, 0);
	begin(&t, &ask);
	table_run(&t, t.now_ms + 100, STEPS);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.answer[0].code, ERR_BUSY);
	t.agent[OWNER].config.query.steps_per_day = 2; /* that one counts in any case */
	begin(&t, &ask);
	table_run(&t, t.now_ms + 100, STEPS);
	assert_int_equal(told.answer[0].code, ERR_BUDGET);
	t.agent[OWNER].config.query.steps_per_day = 100;
	memset(&told, 0, sizeof(told));
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.answer[0].n, first);
	assert_int_equal(ask_now(&t, &ask)->n, 3);
	assert_true(told.answer[0].cut);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUDGET);
	table_release(&t);
}

/* Whatever is asked for, known or predicted: rows are rows, and a day has so many. */
static void test_rows_of_a_day_are_known_and_predicted(void **state)
{
	static const uint32_t known[] = { 2, 100, 100, 0 }, want[] = { 4, 4, 1, 100 };
	enum { DAY = 10 };

	(void)state;
	for (size_t k = 0; k < sizeof(known) / sizeof(known[0]); k++) {
		struct agent_ask ask = likes();
		uint64_t came = 0;
		struct table t;

		sit_down(&t, CONFIG_ANSWER_FACTS);
		ask.known = known[k];
		ask.want = want[k];
		t.agent[OWNER].config.query.rows_per_day = DAY;
		for (int times = 0; times < DAY + 1 && ask_now(&t, &ask)->code == 0; times++) {
			came += told.answer[0].n;
			assert_true(came <= DAY);
			assert_int_equal(disk_of(&t, OWNER)->step_days[0].rows, came);
		}
		assert_int_equal(told.answer[0].code, ERR_BUDGET);
		assert_int_equal(came, DAY);
		table_release(&t);
	}
}

/* Two asked at once have no more of it than one after the other. */
static void test_two_at_once_share_the_rows_of_a_day(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	t.agent[OWNER].config.query.rows_per_day = 8; /* each would have six */
	t.held = true;
	begin(&t, &ask);
	begin(&t, &ask);
	table_run(&t, t.now_ms + 100, STEPS);
	assert_int_equal(told.times, 0);
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.times, 2);
	assert_int_equal(told.answer[0].n, 2);
	assert_true(told.answer[0].cut);
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 2);
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].rows, 8);
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].steps, 2);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUDGET);
	table_release(&t);
}

/* Where no known row is answered none is held for it, either. */
static void test_soft_answers_hold_no_known_rows(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	t.agent[OWNER].config.query.rows_per_day = 8; /* four each */
	t.held = true;
	begin(&t, &ask);
	begin(&t, &ask);
	table_run(&t, t.now_ms + 100, STEPS);
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_int_equal(told.answer[0].n, 4);
	assert_false(told.answer[0].cut);
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].rows, 8);
	table_release(&t);
}

/* Both clocks were days ahead and are put right: that gives nothing back, and what is used up is so
 * until the next day but one at most. */
static void test_a_clock_that_was_ahead(void **state)
{
	const int64_t day_ms = (int64_t)24 * 3600 * 1000, ahead_ms[] = { 1, 400 };
	struct agent_ask ask = likes();

	(void)state;
	for (size_t k = 0; k < 2; k++) {
		struct table t;

		sit_down(&t, CONFIG_ANSWER_SOFT);
		t.agent[OWNER].config.query.steps_per_day = 2;
		t.agent[ASKER].ahead_ms = t.agent[OWNER].ahead_ms = ahead_ms[k] * day_ms;
		assert_int_equal(ask_now(&t, &ask)->code, 0);
		t.agent[ASKER].ahead_ms = t.agent[OWNER].ahead_ms = 0;
		assert_int_equal(ask_now(&t, &ask)->code, 0);
		assert_int_equal(ask_now(&t, &ask)->code, ERR_BUDGET);
		t.now_ms += (uint64_t)(2 * day_ms);
		assert_int_equal(ask_now(&t, &ask)->code, 0);
		table_release(&t);
	}
}

/* Who cannot answer is missing, as who has no link is; that an owner refuses a relation is another
 * thing, and is said first. */
static void test_who_cannot_answer_is_missing(void **state)
{
	const int64_t day_ms = (int64_t)24 * 3600 * 1000;
	char long_name[LEDGER_RELATION_MAX + 2];
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	t.agent[ASKER].ahead_ms = day_ms + 1;
	assert_int_equal(ask_now(&t, &ask)->code, ERR_UNREACHABLE);
	assert_string_equal(told.answer[0].why, "the clocks of both differ by more than a day");
	t.agent[ASKER].ahead_ms = -(day_ms + RUN_MS);
	assert_int_equal(ask_now(&t, &ask)->code, ERR_UNREACHABLE);
	assert_string_equal(told.answer[0].why, "the clocks of both differ by more than a day");
	ask.relation = "hates";
	assert_int_equal(ask_now(&t, &ask)->code, ERR_REFUSED);
	t.agent[ASKER].ahead_ms = 0;
	memset(long_name, 'x', sizeof(long_name) - 1);
	long_name[sizeof(long_name) - 1] = '\0';
	ask.relation = long_name;
	assert_int_equal(ask_now(&t, &ask)->code, ERR_UNREACHABLE);
	assert_non_null(strstr(told.answer[0].why, "no name toward it"));
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
	assert_true(t.agent[ASKER].due[AGENT_TIMER_ASKED] == UINT64_MAX); /* not late any more */
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

/* Nothing that it says is heard any more: whoever asks need not wait for it. */
static void test_a_revoked_owner_is_not_waited_for(void **state)
{
	struct agent_event revoke = { .kind = AGENT_EVENT_PEER_REVOKED };
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	t.held = true;
	begin(&t, &ask);
	table_step(&t);
	assert_int_equal(told.times, 0);
	memcpy(revoke.peer, t.agent[OWNER].key, 32);
	revoke.now_ms = t.now_ms;
	agent_core_event(t.agent[ASKER].core, &revoke);
	assert_int_equal(told.times, 1);
	assert_int_equal(told.answer[0].code, ERR_UNREACHABLE);
	table_let_jobs_end(&t);
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

/* Rows of an answer, as their owner writes them. */
struct written {
	uint32_t known, n;
	struct {
		uint32_t slot, point;
		float truth;
	} at[16];
	size_t less;	 /* bytes that are left out at the end */
	bool one_more;	 /* a byte behind them */
	const char *raw; /* instead of all that: so many bytes */
	size_t raw_len;
};

struct spoiling {
	enum net_msg_type type;
	const struct edit *edit;
	void (*change)(struct net_message *m, struct written *rows); /* and signed anew */
	struct table *table;
	size_t spoiled;
	bool again; /* said twice */
	struct buf kept;
};

/* What it says now it has signed. */
static void sign_anew(const struct table *t, struct net_message *m, uint32_t rows)
{
	const struct store_step *s = &disk_of(t, OWNER)->steps[disk_of(t, OWNER)->n_steps - 1];
	struct ledger_step step = s->step;

	step.policy = (enum ledger_policy)m->answer.policy;
	step.rows = rows;
	step.ways = m->answer.ways;
	step.answered_ms = m->answer.answered_ms;
	ledger_step_hash(step.answer, m->answer.rows.base, m->answer.rows.len, NULL, 0);
	ledger_step_answer(&step, t->agent[OWNER].sign_secret);
	memcpy(m->answer.signature, step.owner_signature, sizeof(m->answer.signature));
}

static void take_apart(const struct net_answer *b, struct written *rows)
{
	struct step_reader r = { .left = b->rows };

	*rows = (struct written){ 0 };
	assert_true(step_get_count(&r, &rows->known));
	for (; r.left.len > 0; rows->n++) {
		bool known = rows->n < rows->known;

		r.next = rows->n == rows->known ? 0 : r.next;
		rows->at[rows->n].truth = 1;
		assert_true(step_get_slot(&r, &rows->at[rows->n].slot));
		assert_true(step_get_count(&r, &rows->at[rows->n].point));
		assert_true(known || step_get_truth(&r, &rows->at[rows->n].truth));
	}
}

static void put_together(const struct written *rows, bool ways, struct buf *out)
{
	struct step_writer w = { .out = out };

	step_put_count(&w, rows->known);
	for (uint32_t i = 0; i < rows->n; i++) {
		w.next = i == rows->known ? 0 : w.next;
		step_put_slot(&w, rows->at[i].slot);
		if (ways)
			step_put_count(&w, rows->at[i].point);
		if (!ways || i >= rows->known)
			step_put_truth(&w, rows->at[i].truth);
	}
	out->len -= rows->less;
	if (rows->one_more)
		buf_add(out, "\1", 1);
	if (rows->raw != NULL) {
		buf_clear(out);
		buf_add(out, rows->raw, rows->raw_len);
	}
}

static void write_anew(struct spoiling *x, struct buf *b)
{
	struct buf out = { 0 }, bytes = { 0 };
	struct written rows;
	struct net_message m;
	struct net_writer w;

	assert_int_equal(net_message_decode(&m, b->base, b->len, NULL), 0);
	take_apart(&m.answer, &rows);
	assert_int_equal(rows.known, 2);
	assert_int_equal(rows.n, 6);
	x->change(&m, &rows);
	put_together(&rows, m.answer.ways, &bytes);
	m.answer.rows = (struct net_bytes){ bytes.base, bytes.len };
	sign_anew(x->table, &m, rows.n);
	net_write_begin(&w, &out, NET_MSG_ANSWER, m.session);
	net_answer_put(&w, &m.answer);
	assert_int_equal(net_write_end(&w, NULL), 0);
	buf_clear(b);
	buf_add(b, out.base, out.len);
	buf_release(&out);
	buf_release(&bytes);
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
		FLIPPED("r"),	  NUMBER("w", 5),    COPIED("r", "a\0b"), NOT_THERE("e"),
		NOT_THERE("k"),	  NUMBER("e", 1025), NUMBER("k", 1025),	  NUMBER("e", 7),
		NUMBER("k", 3),	  LENGTH("f", 5125),
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

#define BYTES(text)                                                                                \
	{                                                                                          \
		(const uint8_t *)(text), sizeof(text) - 1                                          \
	}

/* Points that it has signed, but that no honest agent asks from. */
static void ask_from(struct table *t, struct net_bytes points, uint32_t n)
{
	const struct query_limits most = { 0, 2, 4 };
	struct net_ask b = { .relation = { (const uint8_t *)"likes", 5 },
			     .points = points,
			     .known = 2,
			     .want = 4,
			     .patience_ms = 1000 };
	struct ledger_step s = { .relation = "likes", .points = n, .want = 6 };
	struct buf out = { 0 };
	struct net_writer w;

	b.asked_ms = s.asked_ms = (int64_t)t->now_ms + 1700000000000;
	memcpy(s.asker, t->agent[ASKER].sign_public, 32);
	memcpy(s.owner, t->agent[OWNER].sign_public, 32);
	memcpy(s.alignment, table_peer(t, ASKER, OWNER)->digest, 32);
	memcpy(b.alignment, s.alignment, 32);
	memset(s.id, 9, sizeof(s.id));
	step_hash_asked(&s, &points, &most);
	ledger_step_ask(&s, t->agent[ASKER].sign_secret);
	memcpy(b.signature, s.asker_signature, 64);
	net_write_begin(&w, &out, NET_MSG_ASK, s.id);
	net_ask_put(&w, &b);
	assert_int_equal(net_write_end(&w, NULL), 0);
	table_inject(t, ASKER, OWNER, &out);
	table_run(t, t->now_ms + RUN_MS, STEPS);
}

static void test_points_that_nobody_asks_from(void **state)
{
#define HALF "\0\0\0\x3f"
#define ONE  "\0\0\x80\x3f"
	static const struct net_bytes bad[] = {
		BYTES("\0" ONE "\x9f\x1f" ONE),		    /* slot 4000 */
		BYTES("\0" ONE "\xff\xff\xff\x7f" ONE),	    /* 2^28 */
		BYTES("\0" ONE "\xff\xff\xff\xff\x01" ONE), /* more than four bytes */
		BYTES("\0" ONE "\x80\0" ONE),		    /* two bytes for none */
		BYTES("\0" ONE "\0" HALF "\0"),		    /* half a point more */
		BYTES("\0" ONE "\0\0\0\x80"),		    /* no whole truth */
		BYTES("\0" ONE "\0\0\0\xc0\x7f"),	    /* NaN */
		BYTES("\0" ONE "\0\0\0\xc0\x3f"),	    /* 1.5 */
		BYTES("\0" ONE "\0\0\0\0\0"),		    /* 0 */
		BYTES("\0" ONE "\0\0\0\x80\xbf"),	    /* -1 */
		BYTES("\0" ONE "\0\0\0\x80\x7f"),	    /* infinite */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		struct table t;

		sit_down(&t, CONFIG_ANSWER_FACTS);
		ask_from(&t, bad[i], 2);
		if (table_peer(&t, OWNER, ASKER)->conduct.breaches != 1)
			fail_msg("points %zu are taken", i);
		assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
		table_release(&t);
	}
}

/* A slot is of an entity, or of a relation, whose number is the id of some entity as well. */
static void test_a_relations_slot_is_no_point(void **state)
{
	uint8_t at[] = { 0, 0, 0, 0x80, 0x3f }; /* slot, and a truth of one */
	const struct peer *p;
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	p = table_peer(&t, OWNER, ASKER);
	while (p->slots[at[0]].tag != 'r')
		at[0]++;
	ask_from(&t, (struct net_bytes){ at, sizeof(at) }, 1);
	assert_int_equal(p->conduct.breaches, 1);
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
	table_release(&t);
}

static void change_nan(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[4].truth = NAN;
}

/* An edge that is predicted is never as true as a known one. */
static void change_above_cap(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[4].truth = .99995f;
}

static void change_zero(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[4].truth = 0;
}

/* So small that nothing is left behind a point of one half. */
static void change_nothing_left(struct net_message *m, struct written *rows)
{
	(void)m;
	for (uint32_t i = 0; i < 2; i++) { /* one of them is */
		rows->at[4 + i].point = i;
		rows->at[4 + i].truth = 1e-45f; /* the least of all */
	}
}

static void change_slot(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[5].slot = 200;
}

static void change_relation_slot(struct net_message *m, struct written *rows)
{
	const struct peer *p = table_peer(spoiled_table, ASKER, OWNER);

	(void)m;
	*rows = (struct written){ .n = 1, .at[0].truth = .5f };
	for (uint32_t k = 0; k < p->n_slots; k++)
		if (p->slots[k].tag == 'r')
			rows->at[0].slot = k;
}

static void change_twice(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[1] = rows->at[2];
	rows->at[1].truth = .5f;
	rows->known = 1;
	rows->n = 2;
	rows->at[0].slot = rows->at[1].slot;
}

static void change_size(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->less = 3;
}

static void change_one_more(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->one_more = true;
}

static void change_many(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[6] = rows->at[5];
	rows->at[6].slot++;
	rows->n = 7;
}

static void change_many_known(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[2].slot = rows->at[1].slot + 1;
	rows->known = 3;
	rows->n = 3;
}

static void change_few_known(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->n = 1;
}

/* What is known comes in two bytes where one would do. */
static void change_long(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->raw = "\x80\0";
	rows->raw_len = 2;
}

static void change_way(struct net_message *m, struct written *rows)
{
	(void)m;
	rows->at[4].point = 2;
}

/* Without ways truths are said themselves. */
static void change_above_one(struct net_message *m, struct written *rows)
{
	m->answer.ways = false;
	rows->at[4].truth = 1.5f;
}

static void change_known_zero(struct net_message *m, struct written *rows)
{
	m->answer.ways = false;
	rows->at[0].truth = 0;
}

static void change_known(struct net_message *m, struct written *rows)
{
	(void)rows;
	m->answer.policy = LEDGER_SOFT; /* but edges are known */
}

/* So that its export may lack the record: it is of before all, or of after it. */
static void change_day_before(struct net_message *m, struct written *rows)
{
	(void)rows;
	m->answer.answered_ms = 0;
}

static void change_day_after(struct net_message *m, struct written *rows)
{
	(void)rows;
	m->answer.answered_ms += (int64_t)3 * 24 * 3600 * 1000;
}

static void change_nothing(struct net_message *m, struct written *rows)
{
	(void)m;
	(void)rows;
}

/* A hostile owner signs what it says: each is a breach, nothing of it is used or on record. */
static void test_what_nobody_answers(void **state)
{
	static void (*const changes[])(struct net_message *, struct written *) = {
		change_nan,	 change_above_cap,  change_zero,	  change_nothing_left,
		change_slot,	 change_twice,	    change_relation_slot, change_size,
		change_one_more, change_many,	    change_many_known,	  change_few_known,
		change_long,	 change_way,	    change_above_one,	  change_known_zero,
		change_known,	 change_day_before, change_day_after,
	};
	static const struct edit edits[] = {
		NOT_THERE("a"), NOT_THERE("p"), NOT_THERE("s"),	    NUMBER("p", 0), NUMBER("p", 3),
		FLIPPED("s"),	FLIPPED("a"),	LENGTH("a", 20483), NUMBER("z", 5), TEXT("b"),
		NOT_THERE("b"), NOT_THERE("c"), LENGTH("a", 0),
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

/* Written anew without a change it is taken: so the changes are what is refused. */
static void test_what_is_written_anew_is_answered(void **state)
{
	struct spoiling x = { .type = NET_MSG_ANSWER, .change = change_nothing };
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	t.tamper = spoil_one;
	t.ctx = &x;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	assert_int_equal(told.answer[0].n, 6);
	table_release(&t);
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

/* Nor after as many others as it likes to ask that are not answered: a second record under one id
 * would be a fault of the owner's export. */
static void test_replays_behind_others(void **state)
{
	struct spoiling x = { 0 };
	struct agent_ask ask = likes(), none = likes();
	struct table t;

	(void)state;
	none.relation = "hates";
	none.n = 0;
	sit_down(&t, CONFIG_ANSWER_FACTS);
	t.tamper = keep_ask;
	t.ctx = &x;
	assert_int_equal(ask_now(&t, &ask)->code, 0);
	t.tamper = NULL;
	for (size_t i = 0; i < STORE_STEPS_LATE + 1; i++) {
		t.now_ms += AGENT_ASK_EVERY_MS;
		begin(&t, &none);
		while (told.times == 0)
			assert_true(table_step(&t));
	}
	assert_int_equal(told.answer[0].code, ERR_REFUSED);
	table_inject(&t, ASKER, OWNER, &x.kept);
	table_run(&t, t.now_ms + RUN_MS, STEPS);
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 1);
	table_release(&t);
}

static void (*draw_any)(void *ctx, void *out, size_t n);
static uint8_t one_id[LEDGER_STEP_ID];

static void draw_that_id(void *ctx, void *out, size_t n)
{
	draw_any(ctx, out, n);
	if (n == sizeof(one_id))
		memcpy(out, one_id, n);
}

/* A partner asks under the id of what we asked it: it is not answered, or two of our records would
 * have one id.  Also after a restart. */
static void test_an_id_of_ours(void **state)
{
	(void)state;
	for (int restart = 0; restart < 2; restart++) {
		struct agent_ask ask = likes();
		struct table t;

		sit_down(&t, CONFIG_ANSWER_FACTS);
		assert_int_equal(ask_now(&t, &ask)->code, 0);
		assert_int_equal(disk_of(&t, ASKER)->n_steps, 1);
		memcpy(one_id, disk_of(&t, ASKER)->steps[0].step.id, sizeof(one_id));
		if (restart) {
			table_kill(&t, ASKER);
			table_restart(&t, ASKER);
			table_link(&t, ASKER, OWNER, true);
			table_run(&t, t.now_ms + 20000, STEPS);
		}
		t.agent[ASKER].config.query.answer = CONFIG_ANSWER_FACTS;
		memcpy(t.agent[OWNER].core->names_secret, t.agent[ASKER].core->names_secret, 32);
		draw_any = t.agent[OWNER].core->io.draw;
		t.agent[OWNER].core->io.draw = draw_that_id;
		begin_at(&t, OWNER, &ask);
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		assert_int_equal(disk_of(&t, ASKER)->n_steps, 1);
		t.agent[OWNER].core->io.draw = draw_any;
		t.agent[OWNER].core->names_secret[0] ^= 1;
		begin_at(&t, OWNER, &ask); /* under another one it is */
		table_run(&t, t.now_ms + RUN_MS, STEPS);
		assert_int_equal(disk_of(&t, ASKER)->n_steps, 2);
		table_release(&t);
	}
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

/* What a worker has done for an asker counts, also where the asker will not wait for it. */
static void test_work_in_vain_counts(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	t.agent[OWNER].config.query.steps_per_day = 2;
	t.job_ms = 100;
	ask.patience_ms = 1;
	for (int i = 0; i < 2; i++)
		assert_int_not_equal(ask_now(&t, &ask)->code, 0);
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].steps, 2);
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].rows, 0);
	ask.patience_ms = 1000;
	assert_int_equal(ask_now(&t, &ask)->code, ERR_BUDGET);
	table_release(&t);
}

/* What was worked out for an asker whose link has gone counts as a step. */
static void test_work_for_nobody_counts(void **state)
{
	struct agent_ask ask = likes();
	struct table t;

	(void)state;
	sit_down(&t, CONFIG_ANSWER_SOFT);
	t.held = true;
	begin(&t, &ask);
	table_run(&t, t.now_ms + 100, STEPS);
	assert_int_equal(t.n_jobs, 1);
	table_link(&t, ASKER, OWNER, false);
	table_run(&t, t.now_ms + 100, STEPS);
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + 100, STEPS);
	assert_int_equal(disk_of(&t, OWNER)->n_steps, 0);
	assert_int_equal(disk_of(&t, OWNER)->n_step_days, 1);
	assert_int_equal(disk_of(&t, OWNER)->step_days[0].steps, 1);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_nothing_is_answered_by_default),
		cmocka_unit_test(test_guesses_at_relations_show),
		cmocka_unit_test(test_a_rule_outlives_new_keys),
		cmocka_unit_test(test_a_key_that_is_a_mere_word_has_no_rule),
		cmocka_unit_test(test_private_tables_alone_are_told),
		cmocka_unit_test(test_private_truths_are_by_names),
		cmocka_unit_test(test_both_have_the_same_record),
		cmocka_unit_test(test_truths_are_those_of_the_owners_tables),
		cmocka_unit_test(test_known_answers_that_are_left_out),
		cmocka_unit_test(test_names_that_are_not_compared),
		cmocka_unit_test(test_names_that_are_being_compared),
		cmocka_unit_test(test_names_that_were_compared_anew),
		cmocka_unit_test(test_without_points_only_whether),
		cmocka_unit_test(test_what_is_not_shared_does_not_leave),
		cmocka_unit_test(test_names_of_our_relations_stay),
		cmocka_unit_test(test_names_of_relations_that_both_have_are_asked),
		cmocka_unit_test(test_the_budget_holds_over_restarts),
		cmocka_unit_test(test_rows_that_are_held_come_back),
		cmocka_unit_test(test_rows_of_a_day_are_known_and_predicted),
		cmocka_unit_test(test_two_at_once_share_the_rows_of_a_day),
		cmocka_unit_test(test_soft_answers_hold_no_known_rows),
		cmocka_unit_test(test_a_clock_that_was_ahead),
		cmocka_unit_test(test_who_cannot_answer_is_missing),
		cmocka_unit_test(test_the_record_comes_before_the_answer),
		cmocka_unit_test(test_the_answer_waits_for_the_disk),
		cmocka_unit_test(test_a_silent_owner_is_named),
		cmocka_unit_test(test_a_revoked_owner_is_not_waited_for),
		cmocka_unit_test(test_many_questions_at_once),
		cmocka_unit_test(test_what_nobody_asks),
		cmocka_unit_test(test_points_that_nobody_asks_from),
		cmocka_unit_test(test_a_relations_slot_is_no_point),
		cmocka_unit_test(test_what_nobody_answers),
		cmocka_unit_test(test_what_is_written_anew_is_answered),
		cmocka_unit_test(test_replays),
		cmocka_unit_test(test_replays_of_before),
		cmocka_unit_test(test_replays_behind_others),
		cmocka_unit_test(test_an_id_of_ours),
		cmocka_unit_test(test_a_flood),
		cmocka_unit_test(test_work_in_vain_counts),
		cmocka_unit_test(test_work_for_nobody_counts),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
