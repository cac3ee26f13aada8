/* Rounds of many in the core: three agents around a table that hold nine things in common,
 * with the learner that agents have.  Faults by the hundred are the simulator's (tests/sim).
 * key federation.weight_from is looked at here, for test_keys. */
#include "tests/test.h"

#include <sodium.h>

#include "agent/core/effects_internal.h"
#include "agent/core/labels_internal.h"
#include "agent/core/weigh_internal.h"
#include "base/mem.h"
#include "base/text.h"
#include "fed/methods/pfedeg.h"
#include "fed/methods/fedcqa.h"
#include "kge/eval.h"
#include "tests/fed/as_bytes.h"
#include "tests/agent/talk.h"

enum {
	SHARED = 9,
	FLOATS = 4,
	STEPS = 2
}; /* STEPS: of an encoder, a round, as talk_method() has it */

struct world {
	struct table t;
	struct agent_learner_kge *learner[AGENTS];
};

static struct agent_core *core(struct world *w, size_t at)
{
	return w->t.agent[at].core;
}

static void set_constant(struct config *c, const char *key, const char *value)
{
	assert_int_equal(config_set(c, "rounds", key, value, NULL), 0);
}

static int setup(void **state)
{
	struct world *w = mem_array(1, sizeof(*w));

	table_init(&w->t, 3);
	talk_rounds(&w->t, "fede", w->learner);
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	table_release(&w->t);
	for (size_t i = 0; i < AGENTS; i++)
		agent_learner_free(w->learner[i]);
	free(w);
	return 0;
}

static void link_all(struct world *w)
{
	for (size_t a = 0; a < AGENTS; a++)
		for (size_t b = a + 1; b < AGENTS; b++)
			table_link(&w->t, a, b, true);
}

static void run(struct world *w, uint64_t ms)
{
	table_run(&w->t, w->t.now_ms + ms, 200000);
}

static uint64_t done(struct world *w, size_t at)
{
	return core(w, at)->fed.done;
}

static bool same_row(const void *a, const void *b)
{
	return memcmp(a, b, FLOATS * sizeof(float)) == 0;
}

static bool rows_equal(struct world *w, size_t a, size_t b)
{
	for (uint32_t id = 0; id < SHARED; id++)
		if (!same_row(kge_ent(core(w, a)->latest, id), kge_ent(core(w, b)->latest, id)))
			return false;
	return true;
}

/* Whether this one proposed the last round that is on its disk. */
static bool proposed_last(struct world *w, size_t at)
{
	return memcmp(w->t.agent[at].last_proposer, w->t.agent[at].key, 32) == 0;
}

/* ---- calm ---- */

static void test_calm(void **state)
{
	struct world *w = *state;

	table_start(&w->t);
	link_all(w);
	run(w, 60000);
	for (size_t i = 0; i < AGENTS; i++) {
		struct agent_status s;

		assert_int_equal(done(w, i), 3);
		assert_int_equal(core(w, i)->fed.number, 3);
		assert_int_equal(w->t.agent[i].writes[STORE_PUT_ROUND], 3);
		assert_int_equal(w->t.agent[i].accounts, 3 * (AGENTS - 1)); /* and signed */
		assert_int_equal(w->t.agent[i].accounts_differ, 0);
		agent_core_status(core(w, i), &s);
		assert_int_equal(s.state, AGENT_SLEEP);
		assert_int_equal(s.round.members, AGENTS);
		assert_int_equal(s.round.items, SHARED);
		assert_int_equal(s.round.answered, SHARED);
		assert_int_equal(s.peer[0].round_fate, FED_TOOK_PART);
		agent_status_release(&s);
	}
	assert_true(rows_equal(w, 0, 1) && rows_equal(w, 1, 2));
}

/* ---- every method ---- */

static bool is_mean(const char *method)
{
	static const char *const means[] = { "fede", "fedep", "fedepl", "fedprox", "fedec" };

	for (size_t i = 0; i < sizeof(means) / sizeof(means[0]); i++)
		if (strcmp(means[i], method) == 0)
			return true;
	return false;
}

static void reset(struct world *w, const char *method)
{
	talk_method(&w->t, method);
	table_start(&w->t);
	link_all(w);
}

static void test_methods(void **state)
{
	for (size_t i = 0; fed_methods[i] != NULL; i++) {
		struct world *w = *state;

		if (i > 0) {
			teardown(state);
			setup(state);
			w = *state;
		}
		reset(w, fed_methods[i]->name);
		run(w, 60000);
		for (size_t a = 0; a < AGENTS; a++) {
			assert_int_equal(done(w, a), 3);
			assert_true(core(w, a)->fed.report.answered > 0);
		}
		if (is_mean(fed_methods[i]->name))
			assert_true(rows_equal(w, 0, 1) && rows_equal(w, 1, 2));
	}
}

static void test_hosted_and_masked(void **state)
{
	struct world *w = *state;
	static const struct {
		uint32_t bits, holders;
		size_t host; /* AGENTS: sharded */
	} kinds[] = { { 32, 2, AGENTS }, { 64, 3, AGENTS }, { 0, 2, 1 }, { 32, 3, 0 } };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (i > 0) {
			teardown(state);
			setup(state);
			w = *state;
		}
		for (size_t a = 0; a < AGENTS; a++) {
			struct config *c = &w->t.agent[a].config;

			c->rounds.secret = (int)kinds[i].bits / 32;
			c->rounds.min_holders = kinds[i].holders;
			if (kinds[i].host < AGENTS)
				table_host(&w->t, a, kinds[i].host);
		}
		table_start(&w->t);
		link_all(w);
		run(w, 60000);
		for (size_t a = 0; a < AGENTS; a++)
			assert_int_equal(done(w, a), 3);
		assert_true(rows_equal(w, 0, 1) && rows_equal(w, 1, 2));
	}
}

/* Two of three are in each round, each in about as many, and the third waits for as long as a round
 * may last: nobody proposes another beside it. */
static void test_a_share_of_the_members(void **state)
{
	struct world *w = *state;
	uint64_t in = 0, number = 0, proposed = 0;

	for (size_t a = 0; a < AGENTS; a++) {
		struct config *c = &w->t.agent[a].config;

		c->rounds.fraction = 0.6;
		c->rounds.min_members = 2;
		c->rounds.max = 40;
		c->rounds.join_s = 0.2;
		c->rounds.train_s = 3600;
		c->rounds.stage_s = 300;
	}
	table_start(&w->t);
	link_all(w);
	while (done(w, 0) == 0 || done(w, 1) == 0 || done(w, 2) == 0)
		table_run(&w->t, w->t.now_ms + 1000, 1);
	w->t.job_ms = 1000; /* several times as long as a turn */
	run(w, 3000000);
	for (size_t a = 0; a < AGENTS; a++) {
		assert_int_equal(core(w, a)->fed.report.members, 2);
		assert_true(done(w, a) >= 20 && done(w, a) < 40);
		assert_true(done(w, a) + core(w, a)->fed.missed >= 38); /* two must say so */
		in += done(w, a);
		proposed += core(w, a)->fed.serial;
		number = core(w, a)->fed.number > number ? core(w, a)->fed.number : number;
	}
	assert_int_equal(in, 2 * number);
	assert_true(proposed <
		    number + number / 2); /* some give way: the turn is another's by now */
}

/* ---- what is kept ---- */

static bool same(const struct kge_emb *a, const struct kge_emb *b)
{
	return memcmp(a->ent, b->ent, (size_t)a->n_ent * a->ent_floats * sizeof(float)) == 0 &&
	       memcmp(a->rel, b->rel, (size_t)a->n_rel * a->rel_floats * sizeof(float)) == 0;
}

/* Until this agent has had so many rounds and nothing is under way anywhere. */
static void run_rounds(struct world *w, uint64_t rounds)
{
	for (size_t i = 0; i < 200000; i++) {
		bool quiet = w->t.head == w->t.tail;

		for (size_t a = 0; a < AGENTS; a++)
			quiet = quiet && done(w, a) >= rounds && core(w, a)->fed.now == NULL;
		if (quiet)
			return;
		table_run(&w->t, w->t.now_ms + 5000, 1);
	}
	fail_msg("%llu rounds did not come", (unsigned long long)rounds);
}

/* Sums that were dropped, beside those of the round as it ships (meson.build). */
static size_t more_spoiled;

void __real_fed_round_report(const struct fed_round *r, struct fed_report *out);
void __wrap_fed_round_report(const struct fed_round *r, struct fed_report *out);

void __wrap_fed_round_report(const struct fed_round *r, struct fed_report *out)
{
	__real_fed_round_report(r, out);
	out->spoiled += more_spoiled;
}

/* Under masks nobody sees a row: what they have changed of it is said. */
static void test_masks_that_lose(void **state)
{
	enum { NOTHING, CUT, DROPPED, STORIES };
	static const char *const words[] = { "", "were cut", "were dropped" };

	for (int story = NOTHING; story < STORIES; story++) {
		struct world *w;

		teardown(state);
		setup(state);
		w = *state;
		for (size_t i = 0; i < AGENTS; i++) {
			w->t.agent[i].config.rounds.secret = 1;
			w->t.agent[i].config.rounds.secret_clip = story == CUT ? 0.001 : 64;
			w->t.agent[i].config.rounds.stop_when_worse = 0;
		}
		more_spoiled = story == DROPPED;
		reset(w, "fede");
		run_rounds(w, 1);
		more_spoiled = 0;
		for (size_t i = 0; i < AGENTS; i++) {
			const char *cause = w->t.agent[i].cause[AGENT_NOTICE_TROUBLE];

			assert_int_equal(core(w, i)->fed.report.clipped > 0, story == CUT);
			assert_int_equal(cause != NULL, story != NOTHING);
			assert_true(cause == NULL || strstr(cause, words[story]) != NULL);
		}
	}
}

static void restart_all(struct world *w)
{
	for (size_t a = 0; a < AGENTS; a++)
		table_kill(&w->t, a);
	for (size_t a = 0; a < AGENTS; a++)
		table_restart(&w->t, a);
	link_all(w);
}

/* Tables and what the method remembers are those of the last round. */
static void check_kept(struct world *w, size_t at, uint64_t rounds)
{
	const struct table_agent *s = &w->t.agent[at];
	struct buf part = { 0 };

	assert_true(same(s->core->work, s->disk.latest_tables));
	assert_true(same(s->core->latest, s->disk.latest_tables));
	fed_part_save(s->core->fed.part, &part);
	assert_int_equal(part.len, s->core->fed.saved.len);
	assert_memory_equal(part.base, s->core->fed.saved.base, part.len);
	assert_true(part.len > 0);
	buf_release(&part);
	assert_int_equal(done(w, at), rounds);
	assert_int_equal(s->core->fed.number, rounds);
}

static void test_restart(void **state)
{
	static const char *const methods[] = {
		"fede", "fedec", "feds", "fedkd", "fedlu", "fedcqa"
	};

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		struct world *w;

		teardown(state);
		setup(state);
		w = *state;
		for (size_t a = 0; a < AGENTS; a++)
			w->t.agent[a].config.rounds.every_s = 3;
		reset(w, methods[i]);
		for (uint64_t k = 1; k <= 3; k++) {
			run_rounds(w, k);
			restart_all(w);
			for (size_t a = 0; a < AGENTS; a++)
				check_kept(w, a, k);
		}
	}
}

/* Another method begins anew from the same tables. */
static void test_restart_with_another_method(void **state)
{
	struct world *w = *state;

	reset(w, "fedec");
	run_rounds(w, 1);
	for (size_t a = 0; a < AGENTS; a++)
		table_kill(&w->t, a);
	talk_method(&w->t, "fedlu");
	for (size_t a = 0; a < AGENTS; a++) {
		table_restart(&w->t, a);
		assert_true(same(core(w, a)->work, w->t.agent[a].disk.latest_tables));
		assert_int_equal(core(w, a)->fed.saved.len, 0);
	}
	link_all(w);
	run_rounds(w, 3);
}

/* Whatever the core keeps between rounds: here its record alone, as after an alignment. */
static void keep_record(struct world *w, size_t at)
{
	struct store_batch b = { 0 };

	core_record_add(core(w, at), &b);
	assert_int_equal(disk_apply(&w->t.agent[at].disk, &b, NULL), 0);
	store_batch_release(&b);
}

/* The owner has put other tables in the best's place: rounds go on from these, also when the
 * agent ends again before it has had one. */
static void test_restart_with_other_tables(void **state)
{
	struct world *w = *state;
	struct table_agent *s = &w->t.agent[0];

	for (size_t a = 0; a < AGENTS; a++)
		w->t.agent[a].config.rounds.every_s = 3;
	reset(w, "fedec");
	run_rounds(w, 1);
	table_kill(&w->t, 0);
	s->disk.tables->ent[0] += 1;
	kge_emb_digest(s->disk.tables, s->disk.best.digest);
	for (int k = 0; k < 2; k++) {
		table_restart(&w->t, 0);
		assert_true(same(s->core->work, s->disk.tables));
		assert_int_equal(s->core->fed.saved.len, 0);
		keep_record(w, 0);
		table_kill(&w->t, 0);
	}
	table_restart(&w->t, 0);
	link_all(w);
	run_rounds(w, 3);
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	check_kept(w, 0, 3);
}

/* The owner has put the same other tables in the place of the best and of the last round's (fkge
 * unlearn): rounds go on from these, and from what the method had kept beside them. */
static void test_restart_after_unlearning(void **state)
{
	struct world *w = *state;
	struct table_agent *s = &w->t.agent[0];
	struct kge_emb *avatar;
	size_t size;

	for (size_t a = 0; a < AGENTS; a++)
		w->t.agent[a].config.rounds.every_s = 3;
	reset(w, "fedlu");
	run_rounds(w, 1);
	avatar = kge_emb_copy(fed_global_table(s->core->fed.part));
	size = (size_t)avatar->n_ent * avatar->ent_floats * sizeof(float);
	table_kill(&w->t, 0);
	s->disk.tables->ent[0] += 1;
	kge_emb_assign(s->disk.latest_tables, s->disk.tables);
	kge_emb_digest(s->disk.tables, s->disk.best.digest);
	memcpy(s->disk.latest.digest, s->disk.best.digest, STORE_DIGEST);
	table_restart(&w->t, 0);
	assert_true(same(s->core->work, s->disk.tables));
	assert_memory_equal(fed_global_table(s->core->fed.part)->ent, avatar->ent, size);
	assert_memory_not_equal(s->core->work->ent, avatar->ent, size);
	assert_int_equal(s->core->tried_epochs, 0);
	link_all(w);
	run_rounds(w, 3);
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	check_kept(w, 0, 3);
	kge_emb_free(avatar);
}

/* ---- members that are lost, late, dead ---- */

/* The agent whose key is number k of all, lowest first. */
static size_t ranked(const struct world *w, size_t k)
{
	for (size_t i = 0; i < AGENTS; i++) {
		size_t lower = 0;

		for (size_t o = 0; o < AGENTS; o++)
			lower += memcmp(w->t.agent[o].key, w->t.agent[i].key, 32) < 0;
		if (lower == k)
			return i;
	}
	return AGENTS;
}

static void unlink_agent(struct world *w, size_t at)
{
	for (size_t o = 0; o < AGENTS; o++)
		if (o != at && w->t.up[o][at])
			table_link(&w->t, o, at, false);
}

/* Until all are in this stage of a round; their jobs are held. */
static void hold_at(struct world *w, enum round_stage stage)
{
	for (size_t i = 0; i < 20000; i++) {
		bool all = true;

		w->t.held = true;
		for (size_t a = 0; a < AGENTS; a++)
			all = all && core(w, a)->fed.now != NULL &&
			      core(w, a)->fed.now->stage == stage && core(w, a)->job != NULL;
		if (all)
			return;
		if (!table_step(&w->t)) {
			if (w->t.n_jobs == 0)
				table_run(&w->t, w->t.now_ms + 60000, 1);
			table_let_jobs_end(&w->t);
		}
	}
	fail_msg("never there");
}

static struct agent_round_status round_status(struct world *w, size_t at)
{
	struct agent_status s;
	struct agent_round_status round;

	agent_core_status(core(w, at), &s);
	round = s.round;
	agent_status_release(&s);
	return round;
}

/* What `at` says of another one. */
static struct agent_peer_status peer_status(struct world *w, size_t at, size_t other)
{
	struct agent_peer_status peer = { .round_fate = -1 };
	struct agent_status s;

	agent_core_status(core(w, at), &s);
	for (size_t i = 0; i < s.n_peers; i++)
		if (memcmp(s.peer[i].key, w->t.agent[other].key, 32) == 0)
			peer = s.peer[i];
	agent_status_release(&s);
	return peer;
}

static int fate_of(struct world *w, size_t at, size_t other)
{
	return peer_status(w, at, other).round_fate;
}

/* Of a round that two of the three may end. */
static void hold_in_training(struct world *w)
{
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.min_members = 2;
	reset(w, "fede");
	hold_at(w, ROUND_TRAINING);
}

static void test_lost_in_training(void **state)
{
	struct world *w = *state;
	size_t lost = ranked(w, 1), a = ranked(w, 0), b = ranked(w, 2);

	hold_in_training(w);
	unlink_agent(w, lost);
	table_let_jobs_end(&w->t);
	run(w, 1000);
	assert_int_equal(fate_of(w, a, lost), FED_LOST);
	assert_int_equal(fate_of(w, a, b), FED_TOOK_PART);
	assert_true(done(w, a) >= 1 && done(w, b) >= 1);
	assert_true(rows_equal(w, a, b));
	assert_false(rows_equal(w, a, lost));
	run(w, 60000);
	assert_int_equal(done(w, a), 3);
	assert_int_equal(fate_of(w, a, lost), FED_LOST); /* of the first, in none since */
	assert_int_equal(peer_status(w, a, lost).round_fate_number, 0);
	assert_int_equal(peer_status(w, a, b).round_fate_number, 2);
}

static void test_dead_proposer(void **state)
{
	struct world *w = *state;
	size_t dead = ranked(w, 0), a = ranked(w, 1), b = ranked(w, 2);

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.min_members = 2;
	reset(w, "fede");
	run_rounds(w, 1);
	table_kill(&w->t, dead);
	run(w, 60000);
	assert_int_equal(done(w, a), 3);
	assert_int_equal(done(w, b), 3);
	assert_true(rows_equal(w, a, b));
}

/* It joins, and sends nothing of the round from then on; says that its training is long. */
struct silence {
	size_t who;
	uint64_t last; /* kind of message of a round that it sends: 3 JOIN; 5 what START is, too */
};

static void join_and_be_silent(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	const struct silence *is = ctx;
	struct net_msg m;
	struct err e = { 0 };

	(void)t, (void)to;
	if (from != is->who || net_msg_decode(&m, b->base, b->len, NULL) != 0)
		return;
	if (m.type == NET_MSG_ROUND && net_get_uint(&m.body, "k", 0, 255, &e) > is->last)
		buf_clear(b);
	net_msg_release(&m);
}

static void silent_for_an_hour(struct world *w, struct silence *is, size_t a, size_t b)
{
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &w->t.agent[i].config;

		c->rounds.join_s = 60;
		c->rounds.train_s = 3600;
		c->rounds.stage_s = 300;
		c->rounds.first_epochs = 1;
		c->rounds.min_members = 2;
		c->rounds.every_s = 1;
		c->rounds.max = 0;
	}
	w->t.job_ms = 100;
	w->t.tamper = join_and_be_silent;
	w->t.ctx = is;
	table_start(&w->t);
	for (size_t i = 0; i < AGENTS; i++)
		table_peer(&w->t, i, is->who == i ? a : is->who)->fed.train_ms = 3600000;
	link_all(w);
	run(w, 3600000);
	assert_true(done(w, a) > 700);
	assert_true(done(w, b) > 700);
	assert_true(core(w, a)->fed.train_ms < 10000);
}

/* The owners allow an hour for training, which takes a second or two.  One that is silent costs
 * the others no hour, and is left out longer each time; also the one whose turn comes first. */
static void test_silent_member(void **state)
{
	for (size_t rank = 0; rank < AGENTS; rank++) {
		struct silence is = { .last = rank == 0 ? 5 : 3 };
		struct world *w;
		size_t a, b;

		teardown(state);
		setup(state);
		w = *state;
		is.who = ranked(w, rank);
		a = ranked(w, rank == 0 ? 1 : 0), b = ranked(w, rank == 2 ? 1 : 2);
		silent_for_an_hour(w, &is, a, b);
		if (rank > 0)
			assert_true(table_peer(&w->t, a, is.who)->fed.slow > 0);
	}
}

/* One that says it needs 400 times as long declines what is too short, and gets its time when it
 * has been asked a few times. */
static void test_slow_member(void **state)
{
	struct world *w = *state;
	size_t slow = ranked(w, 2), a = ranked(w, 0);

	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &w->t.agent[i].config;

		c->rounds.train_s = 3600;
		c->rounds.stage_s = 300;
		c->rounds.min_members = 2;
		c->rounds.every_s = 1;
		c->rounds.max = 0;
	}
	w->t.job_ms = 1000;
	table_start(&w->t);
	for (size_t i = 0; i < AGENTS; i++)
		core(w, i)->fed.train_ms = i == slow ? 400000 : 1000;
	link_all(w);
	/* the first that it takes part in may be its own */
	for (size_t k = 0;
	     k < 1200 && (done(w, slow) == 0 || table_peer(&w->t, a, slow)->fed.slow == 0); k++)
		run(w, 1000);
	assert_true(done(w, slow) > 0);
	assert_true(table_peer(&w->t, a, slow)->fed.slow > 0);
}

/* What it would propose for a stage, if its owner allowed five minutes. */
static uint32_t stage_of(struct world *w, size_t at)
{
	struct fed_settings *s = &core(w, at)->fed.settings;
	uint32_t most = s->stage_ms, ms;

	s->stage_ms = 300000;
	ms = rounds_stage_ms(core(w, at));
	s->stage_ms = most;
	return ms;
}

/* Lateness wears off, and of one that is not asked it lengthens nobody's stages. */
static void test_lateness_wears_off(void **state)
{
	struct world *w = *state;
	size_t a = ranked(w, 0), once = ranked(w, 1), gone = ranked(w, 2);
	uint32_t calm;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.min_members = 2;
		w->t.agent[i].config.rounds.every_s = 1;
	}
	table_start(&w->t);
	calm = stage_of(w, a);
	link_all(w);
	run_rounds(w, 1);
	table_peer(&w->t, a, gone)->fed.slow = 9;
	assert_int_equal(stage_of(w, a), 300000);
	table_peer(&w->t, a, gone)->fed.absent_ms = UINT64_MAX;
	assert_true(stage_of(w, a) < 2 * calm);
	table_peer(&w->t, a, once)->fed.slow = 2;
	assert_true(stage_of(w, a) >= 4 * calm);
	run(w, 60000);
	assert_int_equal(done(w, once), 3);
	assert_int_equal(table_peer(&w->t, a, gone)->fed.slow, 9);
	assert_int_equal(table_peer(&w->t, a, once)->fed.slow, 0);
}

/* Its machine stood still once, and it has fewer rounds of its own to learn better by than time to
 * lose: what the others can give at most is enough for it before long. */
static void test_after_a_standstill(void **state)
{
	struct world *w = *state;
	size_t slow = ranked(w, 2);
	const struct fed_settings shorter = { .train_ms = 1 };
	uint64_t before, least;

	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &w->t.agent[i].config;

		c->rounds.train_s = i == slow ? 3600 : 600;
		c->rounds.stage_s = 300;
		c->rounds.min_members = 2;
		c->rounds.every_s = 1;
		c->rounds.max = 0;
		c->rounds.propose = i != slow;
	}
	w->t.job_ms = 1000;
	table_start(&w->t);
	link_all(w);
	run_rounds(w, 2);
	before = done(w, slow), least = core(w, slow)->fed.train_ms;
	core(w, slow)->fed.train_ms = 3600000;
	run(w, 3600000);
	assert_true(done(w, slow) > before + 10);
	core(w, slow)->fed.train_ms = 3600000;
	rounds_was_too_short(core(w, slow), &shorter);
	assert_int_equal(core(w, slow)->fed.train_ms, 2700000);
	for (size_t i = 0; i < 300; i++) /* one partner does not take it to nothing */
		rounds_was_too_short(core(w, slow), &shorter);
	assert_true(core(w, slow)->fed.train_ms > least / 2);
	assert_true(core(w, slow)->fed.train_ms < 2 * least);
}

/* Its proposals never come. */
static void drop_proposals(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct fed_proposal p;

	(void)t, (void)to;
	if (from == *(size_t *)ctx && proposal_of_bytes(&p, b->base, b->len, NULL) == 0)
		buf_clear(b);
}

static void test_unwilling_proposer(void **state)
{
	struct world *w = *state;
	size_t first = ranked(w, 0), a = ranked(w, 1), b = ranked(w, 2);

	w->t.tamper = drop_proposals;
	w->t.ctx = &first;
	reset(w, "fede");
	run(w, 60000);
	assert_int_equal(done(w, a), 3);
	assert_int_equal(done(w, b), 3);
	assert_false(proposed_last(w, first));
}

/* The first in line is there, says that it proposes, and does not: its turn is far shorter than a
 * round may last. */
static void test_proposer_that_does_not(void **state)
{
	struct world *w = *state;
	size_t first = ranked(w, 0), a = ranked(w, 1);

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.every_s = 1;
		w->t.agent[i].config.rounds.train_s = 3600;
	}
	table_start(&w->t);
	link_all(w);
	run_rounds(w, 1);
	assert_int_equal(done(w, first), 1);
	assert_true(proposed_last(w, first));
	core(w, first)->fed.rest_ms = UINT64_MAX;
	run(w, 10000);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(done(w, i), 3);
	assert_true(proposed_last(w, a));
}

static void test_one_that_only_joins(void **state)
{
	struct world *w = *state;
	size_t first = ranked(w, 0), a = ranked(w, 1);

	w->t.agent[first].config.rounds.propose = false;
	reset(w, "fede");
	run(w, 5000); /* nobody waits for its turn */
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(done(w, i), 3);
	assert_true(proposed_last(w, a));
}

/* ---- a round that comes to nothing ---- */

static void test_failed_round_is_undone(void **state)
{
	struct world *w = *state;
	struct kge_emb *before[AGENTS];
	size_t a = ranked(w, 1);

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.every_s = 1;
		w->t.agent[i].config.rounds.max = 4;
	}
	reset(w, "fedkd");
	run_rounds(w, 1);
	for (size_t i = 0; i < AGENTS; i++)
		before[i] = kge_emb_copy(core(w, i)->latest);
	hold_at(w, ROUND_EXCHANGE);
	assert_false(same(core(w, a)->work, before[a])); /* trained */
	fed_round_stop(core(w, a)->fed.now->machine, ERR_FAIL, "for a test", w->t.now_ms);
	table_let_jobs_end(&w->t);
	while (core(w, a)->fed.now != NULL)
		assert_true(table_step(&w->t));
	check_kept(w, a, 1);
	assert_int_equal(table_peer(&w->t, a, ranked(w, 0))->fed.failed, 0); /* it was our own */
	assert_true(same(core(w, a)->work, before[a]));
	for (size_t i = 0; i < AGENTS; i++)
		kge_emb_free(before[i]);
	run_rounds(w, 3); /* and they go on, with it */
	assert_int_equal(fate_of(w, ranked(w, 0), a), FED_TOOK_PART);
}

struct unlike {
	size_t a, b;
};

/* HELLO between the two, which would have their names compared anew. */
static void drop_hello(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	const struct unlike *x = ctx;
	struct net_msg m;

	(void)t;
	if (from + to != x->a + x->b || net_msg_decode(&m, b->base, b->len, NULL) != 0)
		return;
	if (m.type == NET_MSG_HELLO)
		buf_clear(b);
	net_msg_release(&m);
}

/* One of two whose marks differ is left out of a third one's round: neither that one nor the one
 * that is left out keeps the other from the next. */
static void test_whose_marks_differ_rests_for_nobody(void **state)
{
	struct world *w = *state;
	struct unlike x = { ranked(w, 1), ranked(w, 2) };
	size_t first = ranked(w, 0), out, in;
	struct peer *p, *q;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.min_members = 2;
		w->t.agent[i].config.rounds.every_s = 3;
	}
	reset(w, "fede");
	run_rounds(w, 1);
	w->t.tamper = drop_hello;
	w->t.ctx = &x;
	p = table_peer(&w->t, x.a, x.b);
	p->digest[0] ^= 1, p->fed.digest[0] ^= 1;
	for (size_t k = 0; k < 5000 && table_peer(&w->t, first, x.a)->fed.fate_number == 0; k++)
		run(w, 1);
	out = fate_of(w, first, x.a) == FED_DECLINED ? x.a : x.b;
	in = x.a + x.b - out;
	p = table_peer(&w->t, first, out), q = table_peer(&w->t, out, first);
	assert_int_equal(fate_of(w, first, out), FED_DECLINED);
	assert_int_equal(fate_of(w, first, in), FED_TOOK_PART);
	assert_int_equal(p->fed.absent, 0);
	assert_int_equal(q->fed.failed, 0);
	assert_true(q->fed.rest_ms <= w->t.now_ms); /* as long as it took, and that was short */
}

/* Of all, when they have trained for it. */
static void lose_round(struct world *w)
{
	hold_at(w, ROUND_EXCHANGE);
	for (size_t a = 0; a < AGENTS; a++)
		fed_round_stop(core(w, a)->fed.now->machine, ERR_FAIL, "for a test", w->t.now_ms);
	table_let_jobs_end(&w->t);
	for (size_t a = 0; a < AGENTS; a++)
		while (core(w, a)->fed.now != NULL)
			assert_true(table_step(&w->t));
}

/* Orders are those of the number and of the first training: neither a restart nor a round that came
 * to nothing changes what comes of three rounds. */
static void test_orders_go_on(void **state)
{
	static const char *const methods[] = { "fede", "fedlu" };
	enum { CALM, RESTARTS, LOSSES, WAYS };
	uint8_t latest[WAYS][AGENTS][32];

	for (size_t k = 0; k < WAYS * 2; k++) {
		struct world *w;
		size_t way = k % WAYS;

		teardown(state);
		setup(state);
		w = *state;
		for (size_t a = 0; a < AGENTS; a++) {
			w->t.agent[a].config.rounds.every_s = 3;
			w->t.agent[a].config.rounds.first_epochs = 5;
		}
		reset(w, methods[k / WAYS]);
		for (uint64_t n = 1; n <= 3; n++) {
			if (way == LOSSES)
				lose_round(w);
			run_rounds(w, n);
			if (way == RESTARTS)
				restart_all(w);
		}
		assert_int_equal(core(w, 0)->fed.part->before, 5);
		for (size_t a = 0; a < AGENTS; a++)
			memcpy(latest[way][a], w->t.agent[a].disk.latest.digest, 32);
		if (way != CALM)
			assert_memory_equal(latest[way], latest[CALM], sizeof(latest[CALM]));
	}
}

/* ---- stopping, revoking ---- */

static void stop(struct world *w, size_t at)
{
	struct agent_event e = { .kind = AGENT_EVENT_STOP, .now_ms = w->t.now_ms };

	agent_core_event(core(w, at), &e);
}

static void test_stop(void **state)
{
	static const enum round_stage stages[] = { ROUND_TRAINING, ROUND_EXCHANGE, ROUND_SCORING };

	for (size_t i = 0; i < 3; i++) {
		struct world *w;
		struct agent_status s;

		teardown(state);
		setup(state);
		w = *state;
		reset(w, "fede");
		for (size_t a = 0; a < AGENTS; a++)
			w->t.agent[a].config.rounds.min_members = 2;
		hold_at(w, stages[i]);
		stop(w, 0);
		table_let_jobs_end(&w->t);
		run(w, 60000);
		agent_core_status(core(w, 0), &s);
		assert_int_equal(s.state, AGENT_STOPPED);
		agent_status_release(&s);
		assert_int_equal(done(w, 0), stages[i] == ROUND_SCORING);
		assert_true(w->t.agent[0].disk.has_latest == (stages[i] == ROUND_SCORING));
		assert_int_equal(done(w, 1), 3);
		assert_int_equal(done(w, 2), 3);
	}
}

/* ---- looks that are interrupted ---- */

static void begin_with(void **state, const char *method)
{
	struct world *w;

	teardown(state);
	setup(state);
	w = *state;
	for (size_t a = 0; a < AGENTS; a++)
		w->t.agent[a].config.rounds.every_s = 3;
	reset(w, method);
}

/* What came of the looks of three rounds. */
struct looks {
	double score;
	uint64_t worse, number, epochs;
	uint8_t best[32], latest[32], part[32];
};

static struct looks looks_of(struct world *w, size_t at)
{
	const struct agent_core *c = core(w, at);
	const struct disk *d = &w->t.agent[at].disk;
	struct looks l = { .score = c->best_score,
			   .worse = c->worse,
			   .number = c->fed.number,
			   .epochs = c->epochs + c->tried_epochs };

	assert_true(d->best.valid_score == c->best_score);
	memcpy(l.best, d->best.digest, 32);
	memcpy(l.latest, d->latest.digest, 32);
	crypto_generichash(l.part, 32, disk_meta(d, AGENT_META_PART)->base,
			   disk_meta(d, AGENT_META_PART)->len, NULL, 0);
	return l;
}

static void stop_all_in(struct world *w, enum round_stage stage)
{
	hold_at(w, stage);
	for (size_t a = 0; a < AGENTS; a++)
		stop(w, a);
	table_let_jobs_end(&w->t);
	run(w, 10000);
}

/* The encoder that is kept is there after a restart, and a killed round has no part in it. */
static void test_encoders_are_kept(void **state)
{
	struct world *w = *state;
	struct encode_model m;
	struct fedcqa_head was[AGENTS], is;

	for (size_t a = 0; a < AGENTS; a++)
		w->t.agent[a].config.rounds.every_s = 3;
	reset(w, "fedcqa");
	assert_false(fedcqa_best(core(w, 0)->fed.part, &m, &is));
	run_rounds(w, 2);
	for (size_t a = 0; a < AGENTS; a++) {
		assert_true(fedcqa_best(core(w, a)->fed.part, &m, &was[a]));
		assert_int_equal(was[a].step,
				 2 * STEPS); /* no query needs valid here: the newest */
	}
	hold_at(w, ROUND_EXCHANGE);
	table_let_jobs_end(&w->t);
	restart_all(w);
	for (size_t a = 0; a < AGENTS; a++) {
		assert_true(fedcqa_best(core(w, a)->fed.part, &m, &is));
		assert_memory_equal(&is, &was[a], sizeof(is));
		check_kept(w, a, 2);
	}
}

/* The round is over, and it has not been looked at. */
static void check_owed(struct world *w, uint64_t rounds)
{
	for (size_t a = 0; a < AGENTS; a++) {
		const struct store_meta *look =
			disk_meta(&w->t.agent[a].disk, AGENT_META_VALIDATION);

		assert_int_equal(done(w, a), rounds);
		assert_true(look != NULL && look->len > 0);
	}
}

/* Every look is interrupted once, the last one twice: what is best is what it would have been. */
static void test_look_goes_on(void **state)
{
	static const char *const methods[] = { "fede", "fedep", "fedlu", "fedcqa" };

	for (size_t i = 0; i < sizeof(methods) / sizeof(methods[0]); i++) {
		struct looks calm[AGENTS], l;
		struct world *w;

		begin_with(state, methods[i]);
		run_rounds(*state, 3);
		for (size_t a = 0; a < AGENTS; a++)
			calm[a] = looks_of(*state, a);
		begin_with(state, methods[i]);
		w = *state;
		for (uint64_t k = 1; k <= 3; k++) {
			stop_all_in(w, ROUND_SCORING);
			check_owed(w, k);
			restart_all(w);
		}
		w->t.held = true;
		while (core(w, 0)->job == NULL)
			assert_true(table_step(&w->t));
		stop(w, 0);
		table_let_jobs_end(&w->t);
		run(w, 10000);
		assert_true(disk_meta(&w->t.agent[0].disk, AGENT_META_VALIDATION)->len > 0);
		table_kill(&w->t, 0);
		table_restart(&w->t, 0);
		run(w, 10000);
		for (size_t a = 0; a < AGENTS; a++) {
			const struct table_agent *s = &w->t.agent[a];

			l = looks_of(w, a);
			assert_memory_equal(&l, &calm[a], sizeof(l));
			assert_int_equal(s->writes[STORE_SCORE_ROUND], 3);
			assert_int_equal(disk_meta(&s->disk, AGENT_META_VALIDATION)->len, 0);
			check_kept(w, a, 3);
		}
	}
}

/* Status says that something is under way until the look is on disk. */
static bool is_under_way(struct world *w, size_t at)
{
	return round_status(w, at).under_way;
}

static void test_look_shows(void **state)
{
	struct world *w;

	begin_with(state, "fede");
	w = *state;
	stop_all_in(w, ROUND_SCORING);
	restart_all(w);
	assert_true(is_under_way(w, 0));
	while (w->t.agent[0].writes[STORE_SCORE_ROUND] == 0) {
		assert_true(is_under_way(w, 0));
		assert_true(table_step(&w->t));
	}
	run_rounds(w, 3);
	assert_false(is_under_way(w, 0));
}

/* The owner has put other tables in the best's place meanwhile: nobody asks any more, also not when
 * a round has been kept beside these. */
static void test_look_of_no_more_use(void **state)
{
	struct world *w;
	struct table_agent *s;

	begin_with(state, "fedep");
	w = *state;
	s = &w->t.agent[0];
	stop_all_in(w, ROUND_SCORING);
	for (size_t a = 0; a < AGENTS; a++)
		table_kill(&w->t, a);
	s->disk.tables->ent[0] += 1;
	kge_emb_digest(s->disk.tables, s->disk.best.digest);
	for (size_t a = 0; a < AGENTS; a++)
		table_restart(&w->t, a);
	assert_false(is_under_way(w, 0));
	assert_true(is_under_way(w, 1));
	link_all(w);
	run_rounds(w, 3);
	assert_int_equal(s->writes[STORE_SCORE_ROUND], 0);
	assert_int_equal(disk_meta(&s->disk, AGENT_META_VALIDATION)->len, 0);
}

static void revoke(struct world *w, size_t at, size_t other)
{
	struct agent_event e = { .kind = AGENT_EVENT_PEER_REVOKED, .now_ms = w->t.now_ms };

	memcpy(e.peer, w->t.agent[other].key, 32);
	agent_core_event(core(w, at), &e);
}

static void test_revoked_in_training(void **state)
{
	struct world *w = *state;
	size_t a = ranked(w, 0), b = ranked(w, 1), out = ranked(w, 2);

	hold_in_training(w);
	revoke(w, a, out);
	revoke(w, b, out);
	table_let_jobs_end(&w->t);
	run(w, 60000);
	assert_int_equal(done(w, a), 3);
	assert_int_equal(fate_of(w, a, out), FED_LOST);
	assert_int_equal(fate_of(w, a, b), FED_TOOK_PART);
	assert_true(rows_equal(w, a, b));
	assert_false(rows_equal(w, a, out));
}

/* ---- hostile proposers ---- */

/* A proposal of a round of these two, as the core of `from` would make it; it is never started. */
static void propose_to(struct world *w, size_t from, size_t to, struct buf *out)
{
	struct agent_core *c = core(w, from);
	const struct peer *p = table_peer(&w->t, from, to);
	struct fed_peer peer = { .n_slots = 0 };
	struct fed_setup s = { .peers = &peer,
			       .n_peers = 1,
			       .label = labels_name,
			       .label_ctx = c,
			       .part = c->fed.part,
			       .draw = { c->io.draw, c->io.ctx },
			       .serial = ++c->fed.serial };
	struct fed_round *r;

	memcpy(peer.key, p->info.key, FED_KEY);
	memcpy(peer.sign_public, p->info.sign_key, FED_SIGN);
	memcpy(peer.digest, p->digest, NET_PSI_DIGEST);
	memcpy(s.key, c->key, FED_KEY);
	memcpy(s.sign_public, c->sign_public, FED_SIGN);
	memcpy(s.sign_secret, c->sign_secret, FED_SIGN_SECRET);
	assert_int_equal(fed_round_propose(&r, &s, &c->fed.settings, w->t.now_ms, NULL), 0);
	assert_true(fed_round_pull(r, p->info.key, out));
	fed_round_free(r);
}

/* The lowest key proposes nothing by itself. */
static size_t set_hostile(struct world *w)
{
	size_t hostile = ranked(w, 0);

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.min_members = 2;
		w->t.agent[i].config.rounds.max = 0;
		w->t.agent[i].config.rounds.every_s = 0.05;
	}
	w->t.agent[hostile].config.rounds.propose = false;
	reset(w, "fede");
	run(w, 1000);
	return hostile;
}

/* One proposal after the other, each in the place of the one before. */
static void test_endless_proposals(void **state)
{
	struct world *w = *state;
	size_t hostile = set_hostile(w), a = ranked(w, 1);
	uint64_t before = done(w, a);

	for (size_t i = 0; i < 300; i++) {
		struct buf b = { 0 };

		propose_to(w, hostile, a, &b);
		table_inject(&w->t, hostile, a, &b);
		run(w, 100);
	}
	assert_true(done(w, a) >= before + 30);
}

struct taped {
	size_t from, to;
	struct buf proposal; /* the first that went from one to the other */
};

static void tape(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct taped *x = ctx;
	struct fed_proposal o;

	(void)t;
	if (from == x->from && to == x->to && x->proposal.len == 0 &&
	    proposal_of_bytes(&o, b->base, b->len, NULL) == 0)
		buf_add(&x->proposal, b->base, b->len);
}

/* Its proposer sends it again when those who were in it have started anew: a second round of this
 * id and number would take the first one's place on record, and its accounts. */
static void test_old_proposal_again(void **state)
{
	struct world *w = *state;
	struct taped x = { .from = ranked(w, 0), .to = ranked(w, 1) };

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.every_s = 10;
	w->t.tamper = tape;
	w->t.ctx = &x;
	reset(w, "fede");
	run_rounds(w, 1);
	assert_true(x.proposal.len > 0);
	table_kill(&w->t, x.to);
	table_restart(&w->t, x.to);
	link_all(w);
	run(w, 1000);
	assert_true(rounds_ready(core(w, x.to), table_peer(&w->t, x.to, x.from)));
	w->t.tamper = NULL;
	table_deliver(&w->t, x.from, x.to, &x.proposal);
	assert_null(core(w, x.to)->fed.inviter);
	assert_null(core(w, x.to)->fed.now);
	run_rounds(w, 2);
}

/* So long ago that nobody has its id on record: its number says that it is an old one. */
static void test_very_old_proposal_again(void **state)
{
	for (int restarts = 0; restarts < 2; restarts++) {
		struct taped x = { .proposal = { 0 } };
		struct world *w;
		struct agent_core *c;

		teardown(state);
		setup(state);
		w = *state;
		x.from = ranked(w, 0), x.to = ranked(w, 1);
		for (size_t i = 0; i < AGENTS; i++)
			w->t.agent[i].config.rounds.every_s = 10;
		w->t.tamper = tape;
		w->t.ctx = &x;
		reset(w, "fede");
		run_rounds(w, 1);
		assert_true(x.proposal.len > 0);
		store_rounds_release(w->t.agent[x.to].disk.rounds, w->t.agent[x.to].disk.n_rounds);
		w->t.agent[x.to].disk.rounds = NULL;
		w->t.agent[x.to].disk.n_rounds = 0;
		if (restarts) {
			table_kill(&w->t, x.to);
			table_restart(&w->t, x.to);
			link_all(w);
			run(w, 1000);
		}
		c = core(w, x.to);
		c->fed.n_seen = 0;
		round_free(c->fed.last);
		c->fed.last = NULL;
		assert_true(rounds_ready(c, table_peer(&w->t, x.to, x.from)));
		w->t.tamper = NULL;
		table_deliver(&w->t, x.from, x.to, &x.proposal);
		assert_null(c->fed.inviter);
		assert_null(c->fed.now);
		run_rounds(w, 2);
	}
}

/* A partner's new key may have been a partner before it was said to be the same agent's: two peers
 * of one key are on record then (store/rotate.c), and the partner's counts. */
static void test_a_key_that_was_a_partner(void **state)
{
	struct world *w = *state;
	size_t at = ranked(w, 1), from = ranked(w, 0), gone = ranked(w, 2);
	const struct store_meta *m;
	struct store_batch b = { 0 };
	uint64_t joined;
	uint8_t *key;

	reset(w, "fede");
	run_rounds(w, 3);
	revoke(w, at, gone);
	table_peer(&w->t, at, gone)->conduct.breaches = 2;
	table_peer(&w->t, at, gone)->fed.apart.kept_out = 5;
	core_record_add(core(w, at), &b);
	core_commit(core(w, at), &b, NULL);
	run(w, 1000);
	joined = table_peer(&w->t, at, from)->fed.joined;
	assert_true(joined > table_peer(&w->t, at, gone)->fed.joined);
	table_kill(&w->t, at);
	m = disk_meta(&w->t.agent[at].disk, AGENT_META);
	key = memmem(m->base, m->len, w->t.agent[gone].key, 32);
	assert_non_null(key);
	memcpy(key, w->t.agent[from].key, 32);
	table_restart(&w->t, at);
	assert_int_equal(table_peer(&w->t, at, from)->fed.joined, joined);
	assert_int_equal(table_peer(&w->t, at, from)->conduct.breaches, 0);
	assert_int_equal(table_peer(&w->t, at, from)->fed.apart.kept_out, 0);
}

/* All links anew, and with them each HELLO. */
static void greet_anew(struct world *w)
{
	for (size_t a = 0; a < AGENTS; a++)
		for (size_t b = a + 1; b < AGENTS; b++)
			table_link(&w->t, a, b, false);
	run(w, 10);
	link_all(w);
}

/* A proposer that has lost count of its proposals, with an older copy of its store, hears from the
 * others how far it was. */
static void test_proposer_that_lost_count(void **state)
{
	struct world *w = *state;
	size_t low = ranked(w, 0), a = ranked(w, 1);

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.every_s = 10;
	reset(w, "fede");
	run_rounds(w, 1);
	table_peer(&w->t, a, low)->fed.joined = 1000;
	table_kill(&w->t, low);
	table_restart(&w->t, low);
	assert_true(core(w, low)->fed.serial > 0); /* it was on its disk */
	core(w, low)->fed.serial = 0;
	link_all(w);
	run_rounds(w, 2);
	assert_true(core(w, low)->fed.serial > 1000);
	/* what is beyond all numbers moves nothing */
	table_peer(&w->t, a, low)->fed.joined = UINT64_MAX;
	table_link(&w->t, a, low, false);
	run(w, 10);
	table_link(&w->t, a, low, true);
	run(w, 10);
	assert_true(core(w, low)->fed.serial < 2000);
}

/* One says that it has joined as many proposals as it can say: the other's are joined all the same,
 * after a restart, too, when the liar is silent and the others know true numbers as high. */
static void test_number_that_was_a_lie(void **state)
{
	struct world *w = *state;
	size_t low = ranked(w, 0), liar = ranked(w, 1), third = ranked(w, 2);
	uint64_t first;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.every_s = 10;
		w->t.agent[i].config.rounds.propose = i == low;
	}
	reset(w, "fede");
	run_rounds(w, 1);
	table_peer(&w->t, liar, low)->fed.joined = FED_SERIAL_MAX / 2;
	greet_anew(w);
	run_rounds(w, 2);
	first = table_peer(&w->t, third, low)->fed.joined;
	assert_true(first > FED_SERIAL_MAX / 2 && first < FED_SERIAL_MAX / 2 + 100);
	table_peer(&w->t, liar, low)->fed.joined = 0;
	table_kill(&w->t, low);
	table_restart(&w->t, low);
	link_all(w);
	run_rounds(w, 3);
	assert_true(table_peer(&w->t, third, low)->fed.joined > first);
	/* an older copy of its store, of since then; and who says more still */
	core(w, low)->fed.serial = FED_SERIAL_MAX / 2;
	table_peer(&w->t, liar, low)->fed.joined = FED_SERIAL_MAX;
	greet_anew(w);
	run(w, 10);
	assert_true(core(w, low)->fed.serial > first);
	assert_true(core(w, low)->fed.serial < FED_SERIAL_MAX / 2 + 100);
}

/* A proposal that waits for our answer when a lower key's comes: its proposer is told, so that it
 * does not wait until join_ms is over. */
static void test_proposal_given_up_for_another(void **state)
{
	struct world *w = *state;
	size_t low = ranked(w, 0), a = ranked(w, 1), high = ranked(w, 2);
	struct buf first = { 0 }, second = { 0 };
	struct peer *p;
	uint64_t said;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.every_s = 10;
	reset(w, "fede");
	run_rounds(w, 1);
	p = table_peer(&w->t, a, low);
	p->fed.has_digest = false; /* may come to an alignment yet: who proposes waits for that */
	p->fed.greeted_ms = w->t.now_ms;
	w->t.agent[a].config.rounds.min_members = 2;
	propose_to(w, high, a, &first);
	table_deliver(&w->t, high, a, &first);
	assert_ptr_equal(core(w, a)->fed.inviter, table_peer(&w->t, a, high));
	said = w->t.agent[a].sent[NET_MSG_ROUND];
	propose_to(w, low, a, &second);
	table_deliver(&w->t, low, a, &second);
	assert_ptr_equal(core(w, a)->fed.inviter, p);
	assert_int_equal(w->t.agent[a].sent[NET_MSG_ROUND], said + 1);
	propose_to(w, low, a, &first); /* its own newer one: no word about the older */
	table_deliver(&w->t, low, a, &first);
	assert_int_equal(w->t.agent[a].sent[NET_MSG_ROUND], said + 1);
}

/* What cannot be joined is no reason to leave our own round for it again and again. */
static void test_proposal_that_cannot_be_joined(void **state)
{
	struct world *w = *state;
	size_t hostile = set_hostile(w), a = ranked(w, 1);
	struct buf b = { 0 };

	for (size_t i = 0; i < 1000 && core(w, a)->fed.now != NULL; i++)
		table_run(&w->t, w->t.now_ms + 1000, 1);
	propose_to(w, hostile, a, &b);
	b.base[b.len - 1] ^= 1; /* of the signature */
	table_deliver(&w->t, hostile, a, &b);
	run(w, 40);
	assert_true(table_peer(&w->t, a, hostile)->fed.rest_ms > w->t.now_ms);
}

/* A round whose number is far away, which one alone can bring about, parts nobody from the
 * others. */
static void test_numbers_far_apart(void **state)
{
	struct world *w = *state;
	size_t far = ranked(w, 0);

	table_start(&w->t);
	core(w, far)->fed.number = 5000000;
	link_all(w);
	run(w, 60000);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(done(w, i), 3);
	assert_int_equal(core(w, far)->fed.number, 5000003);
	assert_int_equal(core(w, ranked(w, 1))->fed.number, 3);
	assert_true(rows_equal(w, 0, 1) && rows_equal(w, 1, 2));
}

/* ---- members that only cost time ---- */

enum idling { IDLE_TURN, IDLE_NAMES, IDLE_ROWS };

struct idler {
	size_t at;
	enum idling how;
	uint64_t number;
};

/* IDLE_TURN: it says that its turn has come, and proposes nothing; IDLE_NAMES: that its names are
 * to be compared, and compares none; IDLE_ROWS: its rounds begin, and no row of it comes. */
static void idle(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct idler *x = ctx;
	struct net_message m;
	struct net_writer w;
	struct net_hello h;
	uint8_t digest[32] = { 0 };

	(void)t;
	(void)to;
	if (from != x->at || b->len == 0 || net_message_decode(&m, b->base, b->len, NULL) != 0)
		return;
	if (m.type == NET_MSG_ROUND &&
	    (x->how == IDLE_NAMES ||
	     (x->how == IDLE_ROWS && (m.round == NET_ROUND_UP || m.round == NET_ROUND_DOWN))))
		buf_clear(b);
	if (m.type != NET_MSG_HELLO || x->how == IDLE_ROWS)
		return;
	h = m.hello;
	if (h.rounds.digest.len == sizeof(digest))
		memcpy(digest, h.rounds.digest.base, sizeof(digest));
	h.rounds.digest.base = digest;
	if (x->how == IDLE_TURN) {
		h.rounds.proposes = true;
		h.rounds.number = (UINT64_C(1) << 40) + x->number++;
	} else {
		h.rounds.digest.len = 0;
		h.rounds.heard = false;
	}
	buf_clear(b);
	net_write_begin(&w, b, NET_MSG_HELLO, NULL);
	net_body_put(&w, NET_BODY_hello, &h);
	net_write_close(&w);
}

/* Rounds of an honest agent in a minute, while one of three idles and reconnects all the time. */
static uint64_t rounds_beside(struct world *w, struct idler *x, size_t honest)
{
	uint64_t before = done(w, honest);

	w->t.tamper = idle;
	w->t.ctx = x;
	for (size_t i = 0; i < 600; i++) {
		for (size_t k = 0; k < AGENTS; k++)
			if (k != x->at && x->how == IDLE_TURN &&
			    !table_peer(&w->t, k, x->at)->fed.passed) {
				peer_say_hello(core(w, x->at), table_peer(&w->t, x->at, k));
			} else if (k != x->at) {
				table_link(&w->t, k, x->at, false);
				table_link(&w->t, k, x->at, true);
			}
		run(w, 100);
	}
	return done(w, honest) - before;
}

static void test_idlers(void **state)
{
	for (int how = IDLE_TURN; how <= IDLE_NAMES; how++) {
		struct idler x = { .how = (enum idling)how };
		struct world *w;
		uint64_t calm, beside;
		size_t honest;

		teardown(state);
		setup(state);
		w = *state;
		x.at = set_hostile(w);
		honest = ranked(w, 1);
		calm = done(w, honest);
		run(w, 60000);
		calm = done(w, honest) - calm;
		beside = rounds_beside(w, &x, honest);
		assert_true(beside >= calm / 2);
	}
}

/* Its times are ten times ours, and it sends nothing: we wait for as long as we are willing to. */
static void test_rounds_as_long_as_ours(void **state)
{
	struct world *w = *state;
	struct idler x = { .at = ranked(w, 0), .how = IDLE_ROWS };
	size_t a = ranked(w, 1);
	uint64_t longest = 0;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.min_members = 2;
		w->t.agent[i].config.rounds.max = 0;
	}
	talk_method(&w->t, "fede");
	w->t.agent[x.at].config.rounds.train_s *= 10;
	w->t.agent[x.at].config.rounds.stage_s *= 10;
	w->t.tamper = idle;
	w->t.ctx = &x;
	table_start(&w->t);
	link_all(w);
	for (size_t i = 0; i < 1000; i++) {
		core(w, x.at)->fed.train_ms = 0; /* nothing is known: it proposes the most */
		run(w, 100);
		if (core(w, a)->fed.now != NULL &&
		    w->t.now_ms - core(w, a)->fed.now->started_ms > longest)
			longest = w->t.now_ms - core(w, a)->fed.now->started_ms;
	}
	assert_true(longest > 0 && longest <= rounds_whole_ms(core(w, a)));
}

/* A number that one says moves nobody's learning rate. */
static void test_number_and_schedule(void **state)
{
	struct world *w = *state;
	const struct agent_core *c;

	table_start(&w->t);
	core(w, ranked(w, 0))->fed.number = 900000;
	link_all(w);
	run(w, 60000);
	c = core(w, ranked(w, 1));
	assert_true(c->fed.number > 900000);
	assert_true(done(w, ranked(w, 1)) > 0);
	assert_true(fed_epochs_before(c->fed.part, 1) < c->fed.part->before + c->fed.done);
}

static void say_value(struct world *w, size_t at, size_t which, double value)
{
	core(w, at)->fed.settings.value[which] = value;
	core(w, at)->fed.part->settings.value[which] = value;
}

/* A zero of another sign is the same constant, and it is our own that a round leaves with us: one
 * that comes to nothing finds what was kept, and so does a restart. */
static void test_a_zero_of_another_sign(void **state)
{
	enum { NORM = 1 };
	struct world *w = *state;
	size_t liar = ranked(w, 0), a = ranked(w, 1);

	talk_method(&w->t, "fedprox");
	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.every_s = 3;
		set_constant(&w->t.agent[i].config, "norm", i == a ? "-0" : "0");
	}
	table_start(&w->t);
	assert_false(signbit(core(w, a)->fed.settings.value[NORM]));
	say_value(w, liar, NORM, -0.0);
	link_all(w);
	run_rounds(w, 1);
	assert_true(proposed_last(w, liar));
	lose_round(w);
	assert_false(signbit(core(w, a)->fed.part->settings.value[NORM]));
	check_kept(w, a, 1);
	table_kill(&w->t, a);
	w->t.agent[a].cause[AGENT_NOTICE_TROUBLE] = NULL;
	table_restart(&w->t, a);
	check_kept(w, a, 1);
	assert_null(w->t.agent[a].cause[AGENT_NOTICE_TROUBLE]);
}

/* One that the method does not have is said by nobody who means well. */
static void test_a_constant_of_nothing(void **state)
{
	struct world *w = *state;
	size_t liar = ranked(w, 0), a = ranked(w, 1);

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.min_members = 2;
	talk_method(&w->t, "fede");
	table_start(&w->t);
	say_value(w, liar, FED_VALUES_MAX - 1, 1);
	link_all(w);
	run(w, 60000);
	assert_non_null(strstr(table_peer(&w->t, a, liar)->trouble, "does not have"));
	assert_int_equal(done(w, a), 3);
	assert_int_equal(done(w, liar), 0);
}

/* What was kept and cannot be read is begun anew, and the owner is told. */
static void test_kept_part_is_damaged(void **state)
{
	struct world *w = *state;
	size_t a = ranked(w, 0);

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.every_s = 3;
	reset(w, "feds");
	run_rounds(w, 1);
	core(w, a)->fed.saved.base[0] ^= 1;
	lose_round(w);
	assert_non_null(strstr(w->t.agent[a].cause[AGENT_NOTICE_TROUBLE], "is not used"));
	run_rounds(w, 3);
}

/* ---- settings ---- */

static void test_other_settings_are_declined(void **state)
{
	static const char *const words[] = { "rounds.method is fede there and fedep here",
					     "rounds.min_holders is 2 there and 3 here",
					     "rounds.train_s is 2 there and 0.1 here",
					     "rounds.secret_bits is 0 there and 32 here",
					     "rounds.mu is",
					     "model.kind is transe there and distmult here",
					     "rounds.start_seed is 99999999999 there and 7 here",
					     "model.gamma is 4 there and 9.5 here",
					     "rounds.fraction is 1 there and 0.7 here",
					     "rounds.encoder is 0 there and 1 here",
					     "rounds.dim is 4 there and 6 here" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		struct world *w;
		struct config *s;
		const struct peer *p;
		size_t a, b;

		teardown(state);
		setup(state);
		w = *state;
		a = ranked(w, 0), b = ranked(w, 2);
		for (size_t k = 0; k < AGENTS; k++)
			w->t.agent[k].config.rounds.min_members = 2;
		if (i == 4)
			talk_method(&w->t, "fedprox");
		else if (i >= 9)
			talk_method(&w->t, "fedcqa");
		s = &w->t.agent[b].config;
		if (i == 0)
			set_constant(s, "method", "fedep");
		else if (i == 1)
			s->rounds.min_holders = 3;
		else if (i == 2)
			s->rounds.train_s = .1;
		else if (i == 3)
			s->rounds.secret = 1;
		else if (i == 4)
			set_constant(s, "mu", "0.5");
		else if (i == 8)
			s->rounds.fraction = 0.7;
		else if (i == 9)
			set_constant(s, "encoder", "1");
		else if (i == 10)
			set_constant(s, "dim", "6");
		for (size_t k = 0; i == 6 && k < AGENTS; k++) {
			w->t.agent[k].config.rounds.equal_start = true;
			w->t.agent[k].config.rounds.start_seed = k == b ? 7 : 99999999999;
		}
		table_start(&w->t);
		if (i == 5)
			memcpy(core(w, b)->fed.settings.model, "distmult", 9);
		else if (i == 7)
			core(w, b)->fed.settings.gamma = 9.5;
		link_all(w);
		run(w, 60000);
		p = table_peer(&w->t, b, a);
		assert_non_null(strstr(p->trouble, words[i]));
		assert_int_equal(done(w, b), 0);
		assert_int_equal(done(w, a), 3); /* with the other one */
		assert_int_equal(fate_of(w, a, ranked(w, 1)), FED_TOOK_PART);
	}
}

/* Its owner has put them right: nothing is said of what they were, whoever proposes then. */
static void test_settings_put_right(void **state)
{
	struct world *w = *state;
	size_t first = ranked(w, 0), last = ranked(w, 2);

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.min_members = 2;
	w->t.agent[last].config.rounds.train_s = 60;
	table_start(&w->t);
	w->t.agent[first].config.rounds.propose = false;
	table_link(&w->t, first, last, true);
	run(w, 10000);
	assert_non_null(strstr(table_peer(&w->t, first, last)->trouble, "rounds.train_s is 60"));
	table_link(&w->t, first, last, false);
	core(w, last)->fed.settings.train_ms = 2000;
	w->t.agent[last].config.rounds.propose = false;
	w->t.agent[first].config.rounds.propose = true;
	table_link(&w->t, first, last, true);
	run(w, 100000);
	assert_int_equal(done(w, first), 3);
	assert_string_equal(table_peer(&w->t, first, last)->trouble, "");
}

static void test_first_epochs(void **state)
{
	struct world *w = *state;

	w->t.agent[0].config.rounds.first_epochs = 4;
	w->t.agent[0].config.train.eval_every = 2;
	w->t.agent[0].config.train.patience = 0;
	reset(w, "fede");
	run(w, 60000);
	assert_int_equal(core(w, 0)->first_done, 4);
	assert_int_equal(core(w, 1)->first_done, 0);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(done(w, i), 3);
	assert_true(rows_equal(w, 0, 1) && rows_equal(w, 1, 2));
}

/* Rows of what is shared begin as one, in tables that nobody trained. */
static void test_equal_start(void **state)
{
	for (int trained = 0; trained < 2; trained++) {
		struct world *w;
		size_t a, b;

		teardown(state);
		setup(state);
		w = *state;
		a = ranked(w, 0), b = ranked(w, 1);
		w->t.agent[b].config.rounds.first_epochs = (uint32_t)trained;
		w->t.agent[b].config.train.eval_every = 1;
		reset(w, "fede");
		hold_at(w, ROUND_TRAINING); /* which has not begun: jobs run at their end */
		for (uint32_t id = 0; id < SHARED; id++) {
			bool equal = same_row(kge_ent(core(w, a)->work, id),
					      kge_ent(core(w, b)->work, id));

			assert_int_equal(equal, !trained);
		}
		table_let_jobs_end(&w->t);
	}
}

/* The owner has put other tables in the best's place. */
static void restart_with_others(struct world *w, size_t at)
{
	struct table_agent *s = &w->t.agent[at];

	table_kill(&w->t, at);
	s->disk.tables->ent[0] += 1;
	kge_emb_digest(s->disk.tables, s->disk.best.digest);
	table_restart(&w->t, at);
}

static bool is_said_apart(struct world *w, size_t at)
{
	return core(w, at)->fed.said_apart;
}

/* Where changes of rows travel, what rows were apart they stay apart: whoever is so hears of it. */
static void test_changes_of_unequal_rows(void **state)
{
	enum { EQUAL, TRAINED, MISSED, STORIES };

	for (int story = EQUAL; story < STORIES; story++) {
		struct world *w;

		teardown(state);
		setup(state);
		w = *state;
		for (size_t i = 0; i < AGENTS; i++) {
			w->t.agent[i].config.rounds.min_members = i == 1 ? AGENTS : 2;
			w->t.agent[i].config.rounds.max = 0;
			w->t.agent[i].config.rounds.every_s = 1;
		}
		talk_method(&w->t, "fedsvd");
		table_start(&w->t);
		run(w, 1000);
		if (story == TRAINED)
			restart_with_others(w, 1);
		link_all(w);
		run_rounds(w, 1);
		if (story == MISSED) {
			unlink_agent(w, 1);
			run(w, 20000);
			link_all(w);
		}
		run(w, 20000);
		for (size_t i = 0; i < AGENTS; i++) {
			assert_true(done(w, i) > 2);
			assert_int_equal(is_said_apart(w, i), i == 1 && story != EQUAL);
		}
		assert_true(rows_equal(w, 0, 2));
		assert_int_equal(rows_equal(w, 0, 1), story == EQUAL);
	}
}

/* Singular values that are as many numbers as the row save nothing: of 2 x 2, one has 5. */
static void test_rows_that_cost_more(void **state)
{
	static const char *const methods[] = { "fede", "fedsvd" };

	for (size_t k = 0; k < 2; k++) {
		struct world *w;

		teardown(state);
		setup(state);
		w = *state;
		talk_method(&w->t, methods[k]);
		table_start(&w->t);
		for (size_t i = 0; i < AGENTS; i++) {
			const struct table_agent *s = &w->t.agent[i];

			assert_int_equal(s->notices[AGENT_NOTICE_TROUBLE], k);
			assert_true(k == 0 || strstr(s->cause[AGENT_NOTICE_TROUBLE],
						     "numbers for a row") != NULL);
		}
	}
}

static void test_means_of_unequal_rows(void **state)
{
	struct world *w = *state;

	w->t.agent[1].config.rounds.first_epochs = 1;
	reset(w, "fede");
	run_rounds(w, 1);
	assert_false(is_said_apart(w, 1));
}

/* The owner is told what there is to wait for: words, or nothing. */
static void assert_waits(struct world *w, size_t at, const char *words)
{
	struct agent_round_status round = round_status(w, at);

	if (words[0] == '\0')
		assert_string_equal(round.waits, "");
	else
		assert_non_null(strstr(round.waits, words));
}

static void test_min_members(void **state)
{
	struct world *w = *state;

	table_start(&w->t);
	table_link(&w->t, 0, 1, true);
	run(w, 20000);
	assert_int_equal(done(w, 0) + done(w, 1), 0);
	assert_waits(w, 0, "it takes 3 members");
	assert_waits(w, 0, "and 2 would be in one");
	assert_waits(w, 2, "and 1 would be in one");
	table_link(&w->t, 0, 2, true);
	table_link(&w->t, 1, 2, true);
	run(w, 20000);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(done(w, i), 3);
	assert_waits(w, 0, "");
}

static void test_nobody_proposes(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.propose = false;
	reset(w, "fede");
	run(w, 20000);
	assert_int_equal(done(w, 0), 0);
	for (size_t i = 0; i < AGENTS; i++)
		assert_waits(w, i, "nobody who is here proposes any");
}

static bool is_told(struct world *w, size_t at, const char *words)
{
	struct agent_status s;
	bool told;

	agent_core_status(core(w, at), &s);
	told = strstr(s.peer[0].trouble, words) != NULL;
	agent_status_release(&s);
	return told;
}

static void test_nothing_shared(void **state)
{
	struct world *w = *state;
	struct fed_settings *s;
	struct peer *p;

	reset(w, "fede");
	run(w, 60000);
	assert_false(is_told(w, 0, "nothing shared"));
	p = core(w, 0)->peers[0];
	p->n_slots = p->n_ent = p->n_rel = 0;
	assert_true(is_told(w, 0, "nothing shared"));
	s = &core(w, 0)->fed.settings;
	s->topology = FED_HOSTED;
	memcpy(s->host, p->info.key, FED_KEY);
	assert_false(is_told(w, 0, "nothing shared"));
}

static void test_whose_turn(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.every_s = 3;
	reset(w, "fede");
	run_rounds(w, 1);
	assert_waits(w, ranked(w, 0), "");
	assert_waits(w, ranked(w, 1), "it is the turn of ");
	assert_waits(w, ranked(w, 1), " to propose the next; of others after 3 s");
}

static void test_host_is_missing(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.min_members = 2;
		table_host(&w->t, i, 2);
	}
	table_start(&w->t);
	table_link(&w->t, 0, 1, true);
	run(w, 20000);
	assert_int_equal(done(w, 0), 0);
	assert_waits(w, 0, "the host (rounds.host) is not here");
}

/* Rounds of two, one after the other, use nobody's rounds.max up who wants three. */
static void test_rounds_of_too_few(void **state)
{
	struct world *w = *state;
	size_t hostile = set_hostile(w), a = ranked(w, 1);
	uint64_t before;

	w->t.agent[a].config.rounds.min_members = 3;
	run(w, 1000);
	before = done(w, a);
	for (size_t i = 0; i < 30; i++) {
		struct buf b = { 0 };

		propose_to(w, hostile, a, &b);
		table_deliver(&w->t, hostile, a, &b);
		assert_null(core(w, a)->fed.inviter);
		run(w, 100);
	}
	assert_true(done(w, a) >= before + 10);
	assert_true(table_peer(&w->t, a, hostile)->fed.rest_ms <= w->t.now_ms);
}

static bool over_for(struct world *w, size_t at, size_t other)
{
	return peer_status(w, at, other).round_over;
}

/* Who has had its rounds.max says so and is asked no more, until it says otherwise. */
static void test_partners_that_are_done(void **state)
{
	struct world *w = *state;
	size_t late = ranked(w, 0), a = ranked(w, 1), b = ranked(w, 2);
	uint64_t said;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.min_members = 2;
	w->t.agent[late].config.rounds.max = 0;
	table_start(&w->t);
	table_link(&w->t, a, b, true);
	run(w, 60000);
	assert_int_equal(done(w, a), 3);
	link_all(w);
	run(w, 60000);
	said = w->t.agent[late].sent[NET_MSG_ROUND];
	assert_true(over_for(w, late, a) && over_for(w, late, b) && !over_for(w, a, late));
	run(w, 600000);
	assert_int_equal(w->t.agent[late].sent[NET_MSG_ROUND], said);
	assert_int_equal(done(w, late), 0);
	table_kill(&w->t, a);
	w->t.agent[a].config.rounds.max = 5;
	table_restart(&w->t, a);
	table_link(&w->t, a, late, true);
	table_link(&w->t, a, b, true);
	run(w, 60000);
	assert_int_equal(done(w, a), 5);
	assert_int_equal(done(w, late), 2);
	assert_true(over_for(w, late, a));
}

static bool is_over(struct world *w, size_t at)
{
	return round_status(w, at).over;
}

/* Who missed a round has had as many as the others when these have had rounds.max, also after it
 * has begun anew without them; and as many more when the owner allows more. */
static void test_missed_rounds_count(void **state)
{
	struct world *w = *state;
	size_t lost = ranked(w, 1), a = ranked(w, 0);
	uint64_t had;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.min_members = 2;
		w->t.agent[i].config.rounds.every_s = 3;
	}
	reset(w, "fede");
	run_rounds(w, 1);
	hold_at(w, ROUND_TRAINING);
	unlink_agent(w, lost);
	table_let_jobs_end(&w->t);
	run(w, 60000);
	assert_int_equal(done(w, a), 3);
	had = done(w, lost);
	assert_true(had < 3);
	assert_false(is_over(w, lost));
	link_all(w);
	run(w, 10000);
	assert_int_equal(done(w, lost), had);
	assert_true(is_over(w, lost) && over_for(w, a, lost));
	assert_waits(w, lost, "");
	table_kill(&w->t, lost);
	table_restart(&w->t, lost);
	run(w, 1000);
	assert_true(is_over(w, lost));
	for (size_t i = 0; i < AGENTS; i++) {
		table_kill(&w->t, i);
		w->t.agent[i].config.rounds.max = 5;
		table_restart(&w->t, i);
	}
	link_all(w);
	run(w, 60000);
	assert_int_equal(done(w, a), 5);
	assert_int_equal(done(w, lost), had + 2);
	assert_true(is_over(w, a) && is_over(w, lost));
}

/* One of several can say what it will: nobody's rounds end by that. */
static void test_number_of_one(void **state)
{
	struct world *w = *state;
	size_t liar = ranked(w, 2), a = ranked(w, 0), b = ranked(w, 1);

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.every_s = 3;
	reset(w, "fede");
	run_rounds(w, 1);
	core(w, liar)->fed.number = 500;
	peer_say_hello(core(w, liar), table_peer(&w->t, liar, a));
	peer_say_hello(core(w, liar), table_peer(&w->t, liar, b));
	run(w, 1000);
	assert_false(is_over(w, a) || is_over(w, b));
	run(w, 60000);
	assert_int_equal(done(w, a), 3);
	assert_int_equal(done(w, b), 3);
}

/* ---- names of one alone ---- */

/* Its entities are called as nobody else's. */
static void name_apart(struct world *w, size_t at)
{
	const struct table_agent *s = &w->t.agent[at];

	for (uint32_t i = 0; i < graph_vocab_count(s->graph->entities); i++) {
		char name[32];
		int n = snprintf(name, sizeof(name), "apart-%zu-%u", at, i);

		agent_names_alias(s->names, NULL, 'e', i, name, (size_t)n);
	}
}

/* Three who have no name in common: an alignment each, and not a word of a round. */
static void test_no_rounds_about_nothing(void **state)
{
	struct world *w = *state;

	name_apart(w, 0);
	name_apart(w, 1);
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.min_members = 2;
	reset(w, "fede");
	run(w, 60000);
	for (size_t i = 0; i < AGENTS; i++) {
		assert_int_equal(w->t.agent[i].sent[NET_MSG_ROUND], 0);
		assert_int_equal(done(w, i), 0);
		assert_waits(w, i, "nobody who is here has a name in common with this agent");
	}
}

/* One who shares nothing keeps nobody waiting, though its turn would come first, and is in none of
 * their rounds. */
static void test_rounds_beside_one_apart(void **state)
{
	struct world *w = *state;
	size_t apart = ranked(w, 0), a = ranked(w, 1), b = ranked(w, 2);

	name_apart(w, apart);
	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.min_members = 2;
		w->t.agent[i].config.rounds.every_s = 3;
	}
	reset(w, "fede");
	run(w, 2000);
	assert_int_equal(done(w, a), 1); /* the first comes at once */
	assert_waits(w, apart, "nobody who is here has a name in common");
	run(w, 60000);
	assert_int_equal(done(w, apart), 0);
	assert_int_equal(done(w, a), 3);
	assert_int_equal(done(w, b), 3);
	assert_int_equal(table_peer(&w->t, a, apart)->fed.proposes, false);
	assert_non_null(strstr(table_peer(&w->t, a, apart)->fed.why, "we share no name with"));
	assert_true(rows_equal(w, a, b));
}

/* ... but where it is the host of the others' rows. */
static void test_host_apart(void **state)
{
	for (size_t rank = 0; rank < AGENTS; rank++) { /* 0: it proposes */
		struct world *w;
		size_t host;

		teardown(state);
		setup(state);
		w = *state;
		host = ranked(w, rank);
		name_apart(w, host);
		for (size_t i = 0; i < AGENTS; i++) {
			table_host(&w->t, i, host);
		}
		table_start(&w->t);
		link_all(w);
		run(w, 2000);
		assert_int_equal(proposed_last(w, host), rank == 0);
		run(w, 60000);
		for (size_t i = 0; i < AGENTS; i++)
			assert_int_equal(done(w, i), 3);
		assert_true(rows_equal(w, ranked(w, rank == 0), ranked(w, rank == 2 ? 1 : 2)));
	}
}

/* The first HELLO of each to each. */
struct first_hellos {
	struct buf of[AGENTS][AGENTS];
};

static void keep_first_hello(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct first_hellos *h = ctx;
	struct net_msg m;

	(void)t;
	if (h->of[from][to].len > 0 || net_msg_decode(&m, b->base, b->len, NULL) != 0)
		return;
	if (m.type == NET_MSG_HELLO)
		buf_add(&h->of[from][to], b->base, b->len);
	net_msg_release(&m);
}

/* An old HELLO, of before the alignment, comes when our own last word to that peer was that we
 * had not heard it: the peer has to be asked anew, or each waits for the other for ever. */
static void test_old_hello(void **state)
{
	struct world *w = *state;
	struct first_hellos h = { 0 };
	uint64_t before;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.every_s = 5;
	w->t.tamper = keep_first_hello;
	w->t.ctx = &h;
	reset(w, "fede");
	run(w, 2000);
	assert_true(done(w, 0) > 0);
	for (size_t a = 0; a < AGENTS; a++)
		for (size_t b = 0; b < AGENTS; b++) {
			if (memcmp(w->t.agent[a].key, w->t.agent[b].key, 32) <= 0)
				continue; /* the lower one runs an intersection anew */
			table_peer(&w->t, a, b)->fed.hello_sent.heard = false;
			table_deliver(&w->t, b, a, &h.of[b][a]);
		}
	before = done(w, 0);
	run(w, 20000);
	assert_true(done(w, 0) > before);
	for (size_t a = 0; a < AGENTS; a++)
		for (size_t b = 0; b < AGENTS; b++)
			buf_release(&h.of[a][b]);
}

static void test_modes_do_not_mix(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.min_members = 2;
	w->t.agent[0].config.federation.mode = CONFIG_PAIRS;
	w->t.agent[0].config.federation.local_rounds = 0;
	reset(w, "fede");
	run(w, 60000);
	assert_non_null(strstr(table_peer(&w->t, 0, 1)->trouble, "federation.mode"));
	assert_non_null(strstr(table_peer(&w->t, 1, 0)->trouble, "federation.mode"));
	assert_int_equal(core(w, 0)->sessions, 0);
	assert_int_equal(done(w, 1), 3);
	assert_int_equal(done(w, 2), 3);
}

/* ---- scores ---- */

struct judge { /* scores by the book */
	double score[8];
	size_t n, at;
};

static int by_the_book(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	struct judge *j = ctx;

	(void)work, (void)job;
	*score = j->score[j->at < j->n ? j->at++ : j->n - 1];
	return 0;
}

static int train_little(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	(void)ctx, (void)job;
	part->emb->ent[0] += (float)epochs;
	return 0;
}

static void test_best_only_rises(void **state)
{
	struct world *w = *state;
	/* the first training, then rounds: worse, better, worse, no number, equal, better */
	struct judge j = { { 5, 4, 6, 5.5, NAN, 6, 7 }, 7, 0 };
	const double best[] = { 5, 6, 6, 6, 6, 7 };
	struct table_agent *s = &w->t.agent[0];

	s->learner = (struct agent_learner){ .ctx = &j,
					     .evaluate = by_the_book,
					     .train_part = train_little };
	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.rounds.max = 6;
		w->t.agent[i].config.rounds.every_s = 1;
	}
	s->config.rounds.patience = 4;
	reset(w, "fede");
	for (uint64_t k = 1; k <= 6; k++) {
		run_rounds(w, k);
		assert_true(core(w, 0)->best_score == best[k - 1]);
		assert_true(s->disk.best.valid_score == best[k - 1]);
		assert_memory_equal(s->disk.best.digest, core(w, 0)->best_digest, 32);
		assert_int_equal(same(s->disk.tables, s->disk.latest_tables), k == 2 || k == 6);
	}
}

/* Looks without a better score: it proposes no more, and joins. */
static void test_patience(void **state)
{
	struct world *w = *state;
	struct judge j = { { 5, 4 }, 2, 0 };
	size_t first = ranked(w, 0), a = ranked(w, 1);

	w->t.agent[first].learner = (struct agent_learner){ .ctx = &j,
							    .evaluate = by_the_book,
							    .train_part = train_little };
	w->t.agent[first].config.rounds.patience = 2;
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.max = 4, w->t.agent[i].config.rounds.every_s = 1;
	reset(w, "fede");
	for (uint64_t k = 1; k <= 4; k++) {
		run_rounds(w, k);
		assert_int_equal(core(w, first)->worse, k);
		assert_int_equal(proposed_last(w, k <= 2 ? first : a), true);
		assert_int_equal(round_status(w, first).proposes, k < 2);
	}
}

/* Whoever keeps its own first rows need not have the seed of those who begin equally. */
static void test_a_seed_of_nobody(void **state)
{
	struct world *w = *state;

	for (size_t k = 0; k < AGENTS; k++) {
		w->t.agent[k].config.rounds.equal_start = k != 1;
		w->t.agent[k].config.rounds.start_seed = k == 1 ? 7 : 5;
	}
	table_start(&w->t);
	link_all(w);
	run(w, 60000);
	for (size_t k = 0; k < AGENTS; k++)
		assert_int_equal(done(w, k), 3);
}

/* ---- rounds that hurt ---- */

/* Tables whose score is a number in a shared row: what members make of it by averaging shows. */
static int read_score(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	(void)ctx, (void)job;
	*score = (double)work->ent[0];
	return 0;
}

static int train_honest(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)job;
	part->emb->ent[0] = 1;
	return 0;
}

static int train_poison(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)job;
	part->emb->ent[0] = -5;
	return 0;
}

static int train_scaled(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)job;
	for (size_t k = 0; k < (size_t)part->emb->n_ent * part->emb->ent_floats; k++)
		part->emb->ent[k] *= -10;
	return 0;
}

/* A few of them. */
static int train_some_turned(void *ctx, struct fed_part *part, uint32_t epochs,
			     struct agent_job *job)
{
	const struct kge_emb *m = part->emb;

	(void)ctx, (void)epochs, (void)job;
	for (size_t i = 3; i < m->n_ent; i += 10)
		for (size_t k = 0; k < m->ent_floats; k++)
			m->ent[i * m->ent_floats + k] *= -1;
	return 0;
}

static int train_copy(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
		      struct agent_job *job)
{
	(void)ctx, (void)before, (void)job;
	tables->ent[0] += (float)epochs;
	return 0;
}

static int train_still(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
		       struct agent_job *job)
{
	(void)ctx, (void)tables, (void)epochs, (void)before, (void)job;
	return 0;
}

/* Agent 0 learns by itself what averaging with the others takes from it each time. */
static void set_harm_by(struct world *w, const char *method, uint32_t stop_when_worse)
{
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &w->t.agent[i];

		s->learner =
			(struct agent_learner){ .evaluate = read_score,
						.train_part = i == 0 ? train_honest : train_poison,
						.train_alone = train_copy };
		s->config.rounds.max = 0;
		s->config.rounds.min_members = 2;
		s->config.rounds.every_s = 1;
		s->config.rounds.stop_when_worse = i == 0 ? stop_when_worse : 0;
		s->config.rounds.compare_rounds = i == 0 ? 20 : 0;
	}
	reset(w, method);
}

static void set_harm(struct world *w, uint32_t stop_when_worse)
{
	set_harm_by(w, "fede", stop_when_worse);
}

/* Who of n members with such distances (negative: not known) and cosines is far, a bit each. */
static unsigned far_of(size_t n, const double *distance, const double *cosine)
{
	struct fed_distance of[5] = { { 0 } };
	unsigned far = 0;

	assert_true(n <= 5);
	for (size_t i = 0; i < n; i++)
		if (distance[i] >= 0)
			of[i] = (struct fed_distance){
				.rows = 1, .compared = 1, .apart = distance[i], .cosine = cosine[i]
			};
	for (size_t i = 0; i < n; i++)
		far |= (unsigned)fed_distance_is_far(of, n, i) << i;
	return far;
}

static void test_far(void **state)
{
	const double same[] = { 1, 1, 1, 1, 1 }, none[] = { 0, 0, 0, 0, 0 };
	/* five members, first and ninth round of FB15k-237-R5; the third sends noise, or two do */
	const double first[] = { .55, .63, 1.43, .68, .6 },
		     at_first[] = { .87, .84, .12, .83, .85 };
	const double two[] = { .55, 1.43, 1.43, .68, .6 }, of_two[] = { .87, .12, .1, .83, .85 };
	/* honest: one that has gone on from a copy trained alone; all of other starts */
	const double alone[] = { .39, .5, .4, .54, 1.17 }, is_alone[] = { .93, .9, .92, .9, .58 };

	(void)state;
	assert_int_equal(far_of(3, (double[]){ .1, .12, .1 }, same), 0);
	assert_int_equal(far_of(3, (double[]){ 1.4, 1.4, 1.5 }, none),
			 0); /* trained apart before */
	assert_int_equal(far_of(3, (double[]){ .1, .1, 1.5 }, same), 4);
	assert_int_equal(far_of(2, (double[]){ -1, 1.4 }, none), 0); /* of two nobody can say who */
	assert_int_equal(far_of(2, (double[]){ -1, 11 }, none), 2);
	assert_int_equal(far_of(5, first, at_first), 4);
	assert_int_equal(far_of(5, first, same), 0);
	assert_int_equal(far_of(5, two, of_two), 6);
	assert_int_equal(far_of(5, alone, is_alone), 0);
	assert_int_equal(far_of(3, (double[]){ .6, .6, -1 }, at_first), 0);
}

static void test_harm_rule(void **state)
{
	(void)state;
	/* averaging lowers the score, and training alone is no better: C3's first rounds */
	assert_false(rounds_compare_hurts(.068, .057, .077, false));
	assert_false(rounds_compare_hurts(.1, .02, .1, true));
	assert_true(rounds_compare_hurts(.031, .029, .047, false)); /* half as good again alone */
	assert_true(rounds_compare_hurts(.04, .03, .051, false));
	assert_false(
		rounds_compare_hurts(.04, .039, .051, false));	 /* slower, but nothing is lost */
	assert_true(rounds_compare_hurts(.04, .03, .041, true)); /* and rows that are far out */
	assert_false(rounds_compare_hurts(.04, .039, .043, true));
}

static void test_harm_stops(void **state)
{
	struct world *w = *state;
	struct agent_core *c;
	struct agent_status s;
	uint64_t others;

	set_harm(w, 2);
	run(w, 60000);
	c = core(w, 0);
	assert_true(rounds_stopped(c));
	assert_int_equal(done(w, 0), 3); /* nothing to see in the first, two that hurt */
	assert_true(c->best_score == 3); /* as trained alone, three rounds */
	assert_true(same(c->work, c->best) && same(c->latest, c->best));
	assert_memory_equal(w->t.agent[0].disk.best.digest, c->best_digest, 32);
	assert_true(same(w->t.agent[0].disk.tables, w->t.agent[0].disk.latest_tables));
	agent_core_status(c, &s);
	assert_true(s.round.stopped && s.round.over && !s.round.proposes);
	assert_non_null(strstr(s.round.stopped_why, "trained alone"));
	assert_true(s.round.compared && s.round.merged_score < s.round.own_score);
	assert_true(s.has_before && s.best_is_lone); /* not what partners brought */
	agent_status_release(&s);
	others = done(w, 1);
	run(w, 60000);
	assert_true(done(w, 1) > others && done(w, 0) == 3); /* they go on without it */
}

/* The owner wants rounds again: beside an agent that runs, ... */
static void resume(struct world *w, size_t at)
{
	struct agent_event e = { .kind = AGENT_EVENT_RESUME, .now_ms = w->t.now_ms };

	agent_core_event(core(w, at), &e);
}

/* ... and beside one that does not. */
static void leave_word(struct world *w, size_t at)
{
	struct store_batch b = { 0 };

	store_batch_meta(&b, AGENT_META_RESUME, "\1", 1);
	assert_int_equal(disk_apply(&w->t.agent[at].disk, &b, NULL), 0);
	store_batch_release(&b);
}

static void test_harm_persists(void **state)
{
	struct world *w = *state;

	set_harm(w, 2);
	run(w, 60000);
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	assert_true(rounds_stopped(core(w, 0)));
	assert_true(same(core(w, 0)->work, core(w, 0)->best));
	link_all(w);
	run(w, 60000);
	assert_int_equal(done(w, 0), 3);
	resume(w, 0);
	assert_false(rounds_stopped(core(w, 0)));
	run(w, 60000);
	assert_true(done(w, 0) > 3);
	assert_true(rounds_stopped(core(w, 0))); /* it is as it was */
	table_kill(&w->t, 0);
	leave_word(w, 0);
	table_restart(&w->t, 0);
	assert_false(rounds_stopped(core(w, 0)));
	run(w, 1000); /* with nobody there */
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	assert_false(rounds_stopped(core(w, 0)));
	assert_int_equal(core(w, 0)->fed.compare.hurt, 0);
}

/* What one partner alone was told, on a new link, is taken back: it would not ask us any more. */
static void test_over_is_taken_back(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.propose = i == 1;
	table_start(&w->t);
	table_link(&w->t, 0, 1, true);
	run(w, 60000);
	table_peer(&w->t, 0, 1)->fed.hello_sent.over = true;
	table_peer(&w->t, 1, 0)->fed.over = true;
	table_link(&w->t, 0, 2, true);
	table_link(&w->t, 1, 2, true);
	run(w, 60000);
	assert_int_equal(done(w, 0), 3);
}

/* A partner's name is cut to its room, in the midst of a character, too. */
static void test_cut_name_persists(void **state)
{
	struct world *w = *state;
	struct store_batch b = { 0 };
	struct agent_core *c;

	set_harm(w, 2);
	run(w, 60000);
	c = core(w, 0);
	assert_true(rounds_stopped(c));
	snprintf(c->fed.compare.why, sizeof(c->fed.compare.why), "rows of %.6s are far",
		 "Groß\xc3\xbc");
	assert_false(text_printable(c->fed.compare.why, strlen(c->fed.compare.why)));
	core_record_add(c, &b);
	assert_int_equal(disk_apply(&w->t.agent[0].disk, &b, NULL), 0);
	store_batch_release(&b);
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	assert_true(rounds_stopped(core(w, 0)));
	assert_string_equal(core(w, 0)->fed.compare.why, "rows of Groß? are far");
}

/* Each round adds half as much again: far behind the copy, and not stopped while it rises. */
static int train_rising(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)job;
	part->emb->ent[0] = part->emb->ent[0] * 1.5F + .1F;
	return 0;
}

static int train_ahead(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
		       struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)before, (void)job;
	tables->ent[0] = tables->ent[0] * 3 + 1;
	return 0;
}

static void test_what_rises_goes_on(void **state)
{
	struct world *w = *state;

	set_harm(w, 2);
	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].learner.train_part = train_rising;
		w->t.agent[i].learner.train_alone = train_ahead;
	}
	run(w, 60000);
	assert_true(done(w, 0) > 6);
	assert_false(rounds_stopped(core(w, 0)));
	assert_true(core(w, 0)->fed.compare.has_alone &&
		    core(w, 0)->fed.compare.alone_score > 2 * core(w, 0)->fed.compare.merged);
}

/* 0: it sees, and goes on. */
static void test_harm_is_seen(void **state)
{
	struct world *w = *state;

	set_harm(w, 0);
	run(w, 60000);
	assert_false(rounds_stopped(core(w, 0)));
	assert_true(done(w, 0) > 6);
	assert_true(core(w, 0)->fed.compare.merged < core(w, 0)->fed.compare.own);
}

/* Three rounds with a look at each, and a choice of the weight where there is one. */
static struct agent_status status_after(struct world *w, const char *method, bool reg_only)
{
	struct agent_status s;

	talk_method(&w->t, method);
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &w->t.agent[i].config;

		c->federation.weight = CONFIG_WEIGHT_VALID;
		c->federation.few.weight_from = 1;
		c->rounds.eval_every = 1;
		c->rounds.stop_when_worse = 3;
		c->rounds.compare_rounds = 20;
		if (reg_only)
			c->rounds.value[PFEDEG_REG_ONLY] = 1;
	}
	table_start(&w->t);
	link_all(w);
	run_rounds(w, 3);
	agent_core_status(core(w, 0), &s);
	agent_status_release(&s);
	return s;
}

/* Rounds that leave our own table as it was trained have no part to be taken in, nor anything of
 * before averaging to compare it with; but with the copy that trains alone. */
static void test_weight_is_off(void **state)
{
	static const struct {
		const char *method;
		bool reg_only, has;
	} all[] = { { "fede", false, true },   { "fedlu", false, false },
		    { "fedkd", false, false }, { "pfedeg", false, true },
		    { "pfedeg", true, false }, { "pfedeg_plus", true, false } };

	for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++) {
		struct agent_status s;
		const struct disk *d;

		teardown(state);
		setup(state);
		s = status_after(*state, all[i].method, all[i].reg_only);
		d = &((struct world *)*state)->t.agent[0].disk;
		assert_true(s.round.compared && s.round.has_alone);
		assert_true(s.round.weighed == all[i].has && s.round.averaged == all[i].has);
		assert_true(d->n_rounds > 0 && d->rounds[d->n_rounds - 1].compared == all[i].has);
	}
}

/* federation.weight: who loses by all of it takes nothing in, and goes on; who gains takes all. */
static void test_weight(void **state)
{
	struct world *w = *state;
	struct agent_status s;
	uint64_t before;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.federation.weight = CONFIG_WEIGHT_VALID;
	set_harm(w, 0);
	run(w, 60000);
	assert_false(rounds_stopped(core(w, 0)));
	assert_true(done(w, 0) > 6);
	assert_true(core(w, 0)->fed.weight == 0 && core(w, 0)->latest->ent[0] == 1);
	assert_true(core(w, 1)->fed.weight == 1 && core(w, 1)->latest->ent[0] > -5);
	agent_core_status(core(w, 0), &s);
	assert_true(s.round.weighed && s.round.weight == 0);
	agent_status_release(&s);
	before = done(w, 0);
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	assert_true(core(w, 0)->fed.weight == 0);
	link_all(w);
	run(w, 60000);
	assert_true(done(w, 0) > before && core(w, 0)->latest->ent[0] == 1);
}

/* federation.weight_from: before that round of its own all is taken in, whatever valid says; over a
 * restart, too. */
static void test_weight_from(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.federation.weight = CONFIG_WEIGHT_VALID;
		w->t.agent[i].config.federation.few.weight_from = 5;
	}
	set_harm(w, 0);
	for (uint64_t k = 1; k < 5; k++) {
		run_rounds(w, k);
		if (done(w, 0) < 5)
			assert_true(core(w, 0)->fed.weight == 1 && core(w, 0)->latest->ent[0] != 1);
		if (k == 3) {
			table_kill(&w->t, 0);
			table_restart(&w->t, 0);
			link_all(w);
		}
	}
	assert_int_equal(core(w, 0)->history.vain, 0);
	run_rounds(w, 5);
	assert_true(core(w, 0)->fed.weight == 0);
	assert_true(core(w, 0)->history.vain > 0);
}

/* Members that look well in the round in which valid decides, and are none in some after it. */
static int train_unseen(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)job;
	part->emb->ent[0] = part->rounds == 5 || part->rounds == 6 ? -5 : 2;
	return 0;
}

/* Between looks what lowers the score is taken in no more than at them, after a restart, too; what
 * does not is. */
static void test_weight_refuses_between_looks(void **state)
{
	struct world *w = *state;

	set_harm(w, 0);
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &w->t.agent[i];

		s->config.federation.weight = CONFIG_WEIGHT_VALID;
		s->config.federation.few.weight_from = 5;
		s->config.rounds.eval_every = 100;
		s->config.rounds.compare_rounds = 0;
		s->learner.train_alone = train_still;
		if (i > 0)
			s->learner.train_part = train_unseen;
	}
	for (uint64_t k = 1; k <= 8; k++) {
		bool poisoned = k == 6 || k == 7;

		while (done(w, 0) < k)
			table_run(&w->t, w->t.now_ms + 100, 1);
		while (core(w, 0)->fed.now != NULL)
			table_run(&w->t, w->t.now_ms + 100, 1);
		assert_int_equal(done(w, 0), k);
		assert_true(core(w, 0)->fed.weight == 1);
		assert_true(poisoned ? core(w, 0)->latest->ent[0] == 1
				     : core(w, 0)->latest->ent[0] > 1.2F);
		if (k != 6)
			continue;
		table_kill(&w->t, 0);
		table_restart(&w->t, 0);
		link_all(w);
	}
}

/* In the first round in which valid decides a copy that has trained alone is in the choice, whether
 * tables are compared or not; what averaging has cost until then is made up for.  An agent that
 * fell meanwhile has it from its disk. */
static void take_alone(struct world *w, uint32_t compare_rounds, bool falls)
{
	double had;

	set_harm(w, 0);
	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.federation.weight = CONFIG_WEIGHT_VALID;
		w->t.agent[i].config.federation.few.weight_from = 5;
		w->t.agent[i].config.rounds.compare_rounds = compare_rounds;
	}
	run_rounds(w, 3);
	assert_non_null(core(w, 0)->fed.compare.alone);
	if (falls) {
		table_kill(&w->t, 0);
		table_restart(&w->t, 0);
		link_all(w);
	}
	had = core(w, 0)->latest->ent[0];
	assert_true(had < 1);
	while (done(w, 0) < 5)
		run_rounds(w, done(w, 0) + 1);
	assert_int_equal(done(w, 0), 5);
	assert_true(core(w, 0)->fed.weight == 0);
	assert_true(core(w, 0)->latest->ent[0] == 5); /* a step of one a round */
	assert_true((core(w, 0)->fed.compare.alone != NULL) == (compare_rounds > 0));
	assert_true((w->t.agent[0].disk.beside_tables != NULL) == (compare_rounds > 0));
}

static void test_weight_takes_alone(void **state)
{
	take_alone(*state, 20, false);
}

static void test_weight_alone_without_comparing(void **state)
{
	take_alone(*state, 0, false);
}

static void test_weight_alone_comes_back(void **state)
{
	take_alone(*state, 0, true);
}

/* It trains on for as many looks as the owner wants, over restarts, also after the choice and where
 * there is none; then nothing is left of it. */
static void test_copy_trains_on_over_restarts(void **state)
{
	for (int all = 0; all < 2; all++) {
		struct world *w;

		teardown(state);
		setup(state);
		w = *state;
		set_harm(w, 0);
		for (size_t i = 0; i < AGENTS; i++) {
			w->t.agent[i].config.federation.weight =
				all == 1 ? CONFIG_WEIGHT_ALL : CONFIG_WEIGHT_VALID;
			w->t.agent[i].config.federation.few.weight_from = 3;
			w->t.agent[i].config.rounds.compare_rounds = 8;
		}
		for (uint64_t k = 1; k <= 8; k++) {
			while (done(w, 0) < k)
				run_rounds(w, done(w, 0) + 1);
			table_kill(&w->t, 0);
			table_restart(&w->t, 0);
			link_all(w);
			assert_non_null(core(w, 0)->fed.compare.alone);
			assert_true(core(w, 0)->fed.compare.alone->ent[0] == (float)k);
			assert_int_equal(core(w, 0)->fed.compare.comparisons, k);
			assert_true(core(w, 0)->best_score == (double)k);
		}
		while (done(w, 0) < 9)
			run_rounds(w, done(w, 0) + 1);
		assert_null(core(w, 0)->fed.compare.alone);
		assert_null(w->t.agent[0].disk.beside_tables);
	}
}

/* Averaging is behind a copy that trains alone, and rises: a little more in each round. */
static int train_slowly(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	const double *step = ctx;

	(void)epochs, (void)job;
	part->emb->ent[0] = (float)(.3 + *step * (double)(part->rounds + 1));
	return 0;
}

static int train_faster(void *ctx, struct fed_part *part, uint32_t epochs, struct agent_job *job)
{
	(void)train_slowly(ctx, part, epochs, job);
	part->emb->ent[0] += .05F;
	return 0;
}

static int train_to_one(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
			struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)before, (void)job;
	tables->ent[0] = 1;
	return 0;
}

/* At the third round it is measured, at the sixth and each third from there on chosen about. */
static void set_slow_by(struct world *w, const char *method, double *step)
{
	set_harm_by(w, method, 0);
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &w->t.agent[i];

		s->learner =
			(struct agent_learner){ .ctx = step,
						.evaluate = read_score,
						.train_part = i == 0 ? train_slowly : train_faster,
						.train_alone = train_to_one };
		s->config.federation.weight = CONFIG_WEIGHT_VALID;
		s->config.federation.few.weight_from = 6;
		s->config.rounds.compare_rounds = 0;
	}
}

static void set_slow(struct world *w, double *step)
{
	set_slow_by(w, "fede", step);
}

/* The copy is left for a later choice while averaging catches up with it, over a restart, too; once
 * it is not ahead there is none. */
static void test_weight_waits(void **state)
{
	struct world *w = *state;
	double step = .09;

	set_slow(w, &step);
	run_rounds(w, 3);
	assert_true(core(w, 0)->fed.compare.choice.ahead > .35);
	run_rounds(w, 6);
	assert_true(core(w, 0)->fed.compare.choice.waits > 0 && core(w, 0)->fed.weight == 1);
	assert_true(core(w, 0)->fed.compare.choice.ahead < .2);
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	link_all(w);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 1);
	assert_true(core(w, 0)->fed.compare.choice.ahead < .2);
	run_rounds(w, 8);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 1);
	assert_true(core(w, 0)->fed.compare.alone->ent[0] == 1);
	run_rounds(w, 9);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 0);
	assert_null(core(w, 0)->fed.compare.alone);
	assert_true(core(w, 0)->fed.weight == 1 && core(w, 0)->latest->ent[0] > 1);
	assert_null(w->t.agent[0].disk.beside_tables);
}

/* ... and where tables are compared, too: the copy stays for that, but is in no choice any more. */
static void test_weight_waits_while_comparing(void **state)
{
	struct world *w = *state;
	double step = .09;

	set_slow(w, &step);
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.compare_rounds = 20;
	run_rounds(w, 6);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 1);
	run_rounds(w, 9);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 0);
	assert_true(core(w, 0)->fed.weight == 1 && core(w, 0)->latest->ent[0] > 1);
	assert_true(core(w, 0)->fed.compare.alone->ent[0] == 1);
	step = .01; /* far below the copy from now on */
	while (done(w, 0) < 12)
		run_rounds(w, done(w, 0) + 1);
	assert_true(core(w, 0)->fed.compare.choice.waits == 0 && core(w, 0)->latest->ent[0] < 1);
}

/* Where averaging stops rising meanwhile the agent goes on from it. */
static void test_weight_waits_no_longer(void **state)
{
	struct world *w = *state;
	double step = .09;

	set_slow(w, &step);
	run_rounds(w, 6);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 1);
	step = .06; /* as high in the ninth round as in the sixth */
	while (done(w, 0) < 9)
		run_rounds(w, done(w, 0) + 1);
	assert_int_equal(done(w, 0), 9);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 0);
	assert_null(core(w, 0)->fed.compare.alone);
	assert_true(core(w, 0)->fed.weight == 0 && core(w, 0)->latest->ent[0] == 1);
}

/* Of what has trained alone. */
static void check_copy_is_kept(struct world *w, float copy)
{
	const struct agent_core *c = core(w, 0);

	assert_float_equal(c->best->ent[0], copy, 1e-4);
	assert_float_equal(c->best_score, copy, 1e-4);
	assert_memory_equal(w->t.agent[0].disk.best.digest, c->best_digest, 32);
	assert_true(agent_history_is_lone(&c->history, c->best_digest));
}

static int train_a_little_more(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
			       struct agent_job *job)
{
	const double *step = ctx;

	(void)job;
	tables->ent[0] = (float)(1.03 * (.3 + *step * (double)(before / epochs + 1)));
	return 0;
}

/* Of the triples on which tables are compared. */
static int read_nothing(void *ctx, const struct kge_emb *work, uint32_t triples,
			struct agent_job *job, double *score)
{
	(void)ctx, (void)work, (void)triples, (void)job;
	*score = 0;
	return 0;
}

/* A copy that is ahead on all of valid is what is kept, by however little, whatever a few triples
 * say; rounds go on from their own tables. */
static void test_copy_a_little_ahead_is_kept(void **state)
{
	struct world *w = *state;
	double step = .09;
	float own;

	set_slow(w, &step);
	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].learner.train_part = train_slowly;
		w->t.agent[i].learner.train_alone = train_a_little_more;
		w->t.agent[i].learner.evaluate_some = read_nothing;
		w->t.agent[i].config.rounds.compare_rounds = i == 0 ? 20 : 0;
	}
	run_rounds(w, 4);
	own = core(w, 0)->latest->ent[0];
	assert_float_equal(core(w, 1)->best_score, own, 1e-4);
	check_copy_is_kept(w, 1.03F * own);
}

/* The choice is made in the last round, also where the table of before averaging is what a look
 * scores. */
static void test_weight_waits_for_the_last(void **state)
{
	static const char *const methods[] = { "fede", "fedep" };

	for (size_t k = 0; k < sizeof(methods) / sizeof(methods[0]); k++) {
		struct world *w;
		double step = .05;

		teardown(state);
		setup(state);
		w = *state;
		set_slow_by(w, methods[k], &step);
		w->t.agent[0].config.rounds.max = 8;
		run_rounds(w, 7);
		assert_true(core(w, 0)->fed.compare.choice.waits > 0 &&
			    core(w, 0)->fed.weight == 1);
		while (done(w, 0) < 8)
			table_run(&w->t, w->t.now_ms + 5000, 1);
		while (core(w, 0)->fed.now != NULL)
			table_run(&w->t, w->t.now_ms + 5000, 1);
		assert_int_equal(core(w, 0)->fed.compare.choice.waits, 0);
		assert_true(core(w, 0)->latest->ent[0] == 1);
		check_copy_is_kept(w, 1);
	}
}

static bool waits_at(struct world *w, float copy)
{
	const struct compare *o = &core(w, 0)->fed.compare;

	return o->choice.waits == 1 && o->alone != NULL && fabsf(o->alone->ent[0] - copy) < 1e-4F;
}

static int read_unless_stopped(void *ctx, const struct kge_emb *work, struct agent_job *job,
			       double *score)
{
	(void)read_score(ctx, work, job, score);
	return atomic_load(&job->cancel) ? ERR_CANCELED : 0;
}

/* The agent's end cuts the first choice off: it is made later. */
static void test_weight_waits_where_it_was_cut_off(void **state)
{
	struct world *w = *state;
	double step = .05;

	set_slow(w, &step);
	run_rounds(w, 5);
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].learner.evaluate = read_unless_stopped;
	stop_all_in(w, ROUND_SCORING);
	check_owed(w, 6);
	restart_all(w);
	assert_true(waits_at(w, 1));
	step = 0; /* averaging does not catch up from here on */
	while (done(w, 0) < 9)
		run_rounds(w, done(w, 0) + 1);
	assert_true(core(w, 0)->fed.weight == 0 && core(w, 0)->latest->ent[0] == 1);
}

/* The copy is at one at once, and a little above it for each further round. */
static int train_past_one(void *ctx, struct kge_emb *tables, uint32_t epochs, uint64_t before,
			  struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)before, (void)job;
	tables->ent[0] = tables->ent[0] < 1 ? 1 : tables->ent[0] + .01F;
	return 0;
}

/* A round that comes to nothing takes neither from it, nor from the choice that waits; for the next
 * one it is not trained again.  Nor is a choice made in such a round. */
static void test_weight_waits_over_a_lost_round(void **state)
{
	struct world *w = *state;
	double step = .09, ahead;

	set_slow(w, &step);
	w->t.agent[0].learner.train_alone = train_past_one;
	run_rounds(w, 6);
	assert_true(waits_at(w, 1.04F));
	ahead = core(w, 0)->fed.compare.choice.ahead;
	lose_round(w);
	lose_round(w);
	assert_true(waits_at(w, 1.05F) && core(w, 0)->fed.compare.choice.ahead == ahead);
	run_rounds(w, 7);
	assert_true(waits_at(w, 1.05F));
	lose_round(w);
	table_kill(&w->t, 0); /* it is on disk as of the seventh */
	table_restart(&w->t, 0);
	link_all(w);
	assert_true(waits_at(w, 1.05F) && core(w, 0)->fed.compare.choice.ahead == ahead);
	run_rounds(w, 8);
	assert_true(waits_at(w, 1.06F));
	lose_round(w);
	assert_true(waits_at(w, 1.07F) && core(w, 0)->fed.compare.choice.ahead == ahead);
	run_rounds(w, 9);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 0);
	assert_null(core(w, 0)->fed.compare.alone);
}

/* The owner wants rounds that have not stopped to go on: so they do, and the copy is there. */
static void test_weight_waits_when_told_to_go_on(void **state)
{
	struct world *w = *state;
	double step = .09;

	set_slow(w, &step);
	run_rounds(w, 6);
	resume(w, 0);
	assert_true(waits_at(w, 1));
	table_kill(&w->t, 0);
	leave_word(w, 0);
	table_restart(&w->t, 0);
	assert_true(waits_at(w, 1));
	link_all(w);
	run_rounds(w, 7);
	assert_true(waits_at(w, 1));
}

/* Rounds that hurt stop while it waits: it is what is best then, and nothing waits after that. */
static void test_rounds_stop_while_weight_waits(void **state)
{
	struct world *w = *state;
	double step = .04;

	set_slow(w, &step);
	w->t.agent[0].config.rounds.compare_rounds = 20;
	w->t.agent[0].config.rounds.stop_when_worse = 5;
	run_rounds(w, 6);
	assert_true(waits_at(w, 1));
	run(w, 60000);
	assert_true(rounds_stopped(core(w, 0)) && done(w, 0) == 7);
	for (int restarted = 0; restarted < 2; restarted++) {
		const struct compare *o = &core(w, 0)->fed.compare;

		assert_true(o->choice.waits == 0 && o->choice.ahead == 0 && o->alone == NULL);
		assert_true(core(w, 0)->best->ent[0] == 1 && core(w, 0)->latest->ent[0] == 1);
		assert_null(w->t.agent[0].disk.beside_tables);
		table_kill(&w->t, 0);
		table_restart(&w->t, 0);
	}
	link_all(w);
	resume(w, 0);
	while (done(w, 0) < 9) /* one in which a copy that waits is chosen about */
		table_run(&w->t, w->t.now_ms + 100, 1);
	assert_false(core(w, 0)->fed.compare.from_first);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 0);
}

/* No better score for so long (rounds.patience), and nobody else proposes: no round comes in which
 * the choice would be made.  The copy is what is kept, ... */
static void set_patience(struct world *w, double *step, uint32_t patience)
{
	set_slow(w, step);
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.propose = i == 0;
	w->t.agent[0].config.rounds.patience = patience;
	w->t.agent[0].learner.train_alone = train_past_one;
}

/* With a patience of two looks to the first that is worse; until then the copy waits. */
static void past_a_worse_look(struct world *w, double *step)
{
	*step = .09;
	set_patience(w, step, 2);
	run_rounds(w, 6);
	assert_true(waits_at(w, 1.04F));
	assert_true(core(w, 0)->best_score < 1);
	*step = .06;
	run_rounds(w, 7);
	assert_true(core(w, 0)->worse == 1 && core(w, 0)->best_score < 1);
}

/* ... where it is compared at each look, ... */
static void test_patience_ends_while_weight_waits(void **state)
{
	struct world *w = *state;
	double step = .09;

	set_patience(w, &step, 5);
	w->t.agent[0].config.rounds.compare_rounds = 1;
	run(w, 60000);
	assert_int_equal(done(w, 0), 7);
	assert_false(rounds_proposes(core(w, 0)));
	assert_true(waits_at(w, 1.05F));
	check_copy_is_kept(w, 1.05F);
}

/* ... where the last look alone scores it, ... */
static void test_patience_ends_without_comparing(void **state)
{
	struct world *w = *state;
	double step;

	past_a_worse_look(w, &step);
	run(w, 60000);
	assert_int_equal(done(w, 0), 8);
	assert_false(rounds_proposes(core(w, 0)));
	assert_true(waits_at(w, 1.06F));
	check_copy_is_kept(w, 1.06F);
	assert_true(core(w, 0)->latest->ent[0] < 1);
	/* others want to go on: so does this agent, and the choice is made in its turn */
	step = .09;
	table_kill(&w->t, 1);
	w->t.agent[1].config.rounds.propose = true;
	table_restart(&w->t, 1);
	link_all(w);
	while (done(w, 0) < 9)
		run_rounds(w, done(w, 0) + 1);
	assert_int_equal(core(w, 0)->fed.compare.choice.waits, 0);
	assert_true(core(w, 0)->fed.weight == 1 && core(w, 0)->latest->ent[0] > 1);
}

/* ... that of the first choice, too, ... */
static void test_patience_ends_at_the_first_choice(void **state)
{
	struct world *w = *state;
	double step = .09;

	set_patience(w, &step, 1);
	run_rounds(w, 5);
	step = .07;
	run(w, 60000);
	assert_int_equal(done(w, 0), 6);
	assert_true(waits_at(w, 1.04F));
	check_copy_is_kept(w, 1.04F);
}

/* ... but not one that could have been the last and is better, ... */
static void test_patience_does_not_end(void **state)
{
	struct world *w = *state;
	double step;

	past_a_worse_look(w, &step);
	step = .075;
	run_rounds(w, 8);
	assert_true(core(w, 0)->worse == 0 && waits_at(w, 1.06F));
	assert_true(same(core(w, 0)->best, core(w, 0)->latest));
}

/* ... where that look is cut off and made again after a restart, ... */
static void test_patience_ends_in_a_look_that_is_owed(void **state)
{
	struct world *w = *state;
	double step;

	past_a_worse_look(w, &step);
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].learner.evaluate = read_unless_stopped;
	stop_all_in(w, ROUND_SCORING);
	check_owed(w, 8);
	assert_true(core(w, 0)->worse == 1 && core(w, 0)->best_score < 1);
	restart_all(w);
	run(w, 60000);
	assert_int_equal(done(w, 0), 8);
	assert_int_equal(core(w, 0)->worse, 2);
	assert_true(waits_at(w, 1.06F));
	check_copy_is_kept(w, 1.06F);
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	check_copy_is_kept(w, 1.06F);
}

/* ... also by a stop while it is the copy that is scored, ... */
static int stop_at_copy(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	(void)read_score(ctx, work, job, score);
	return *score > 1.055 ? ERR_CANCELED : 0;
}

static void test_patience_ends_and_the_copy_is_cut_off(void **state)
{
	struct world *w = *state;
	double step;

	past_a_worse_look(w, &step);
	w->t.agent[0].learner.evaluate = stop_at_copy;
	while (done(w, 0) < 8 || core(w, 0)->fed.now != NULL)
		table_run(&w->t, w->t.now_ms + 5000, 1);
	assert_true(disk_meta(&w->t.agent[0].disk, AGENT_META_VALIDATION)->len > 0);
	assert_true(core(w, 0)->worse == 1 && core(w, 0)->best_score < 1);
	table_kill(&w->t, 0);
	w->t.agent[0].learner.evaluate = read_score;
	table_restart(&w->t, 0);
	run(w, 60000);
	assert_int_equal(core(w, 0)->worse, 2);
	check_copy_is_kept(w, 1.06F);
}

/* ... and where rounds end before the first choice. */
static void test_rounds_end_before_the_first_choice(void **state)
{
	for (int by_max = 0; by_max < 2; by_max++) {
		struct world *w;
		double step = .02;

		teardown(state);
		setup(state);
		w = *state;
		set_patience(w, &step, by_max ? 0 : 2);
		w->t.agent[0].config.rounds.max = by_max ? 3 : 0;
		run_rounds(w, 1);
		assert_true(core(w, 0)->best_score < 1);
		step = by_max ? .02 : 0;
		run(w, 60000);
		assert_int_equal(done(w, 0), 3);
		check_copy_is_kept(w, 1.01F);
	}
}

/* Looks that find nothing wrong let go of a copy that they alone have asked for, not of this one.
 */
static void test_weight_keeps_its_copy(void **state)
{
	struct world *w = *state;

	set_harm(w, 3);
	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].learner.train_part = train_honest;
		w->t.agent[i].learner.train_alone = train_still;
		w->t.agent[i].config.federation.weight = CONFIG_WEIGHT_VALID;
		w->t.agent[i].config.federation.few.weight_from = 5;
		w->t.agent[i].config.rounds.compare_rounds = 0;
	}
	run_rounds(w, 3);
	assert_true(core(w, 0)->fed.compare.has_scores);
	assert_non_null(core(w, 0)->fed.compare.alone);
}

/* ... until WEIGH_VAIN_LOOKS in a row have had no better score: then it leaves, and says why; it
 * comes back when the owner says so. */
static void test_leaves_what_brings_nothing(void **state)
{
	struct world *w = *state;
	struct agent_status s;
	uint64_t left_at;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.federation.weight = CONFIG_WEIGHT_VALID;
	set_harm(w, 3);
	w->t.agent[0].learner.train_alone = train_still;
	run(w, 60000);
	assert_true(rounds_stopped(core(w, 0)));
	assert_true(core(w, 0)->history.vain >= WEIGH_VAIN_LOOKS);
	assert_non_null(strstr(core(w, 0)->fed.compare.why, "nothing of what members brought"));
	left_at = done(w, 0);
	agent_core_status(core(w, 0), &s);
	assert_true(s.looks.vain && s.round.stopped);
	agent_status_release(&s);
	run(w, 60000);
	assert_int_equal(done(w, 0), left_at);
}

/* Between two looks as much is taken in as the last one said; before them, as in the first round.
 */
static void test_weight_between_looks(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++) {
		w->t.agent[i].config.federation.weight = CONFIG_WEIGHT_VALID;
		w->t.agent[i].config.rounds.eval_every = 2;
	}
	set_harm(w, 0);
	w->t.agent[0].config.rounds.compare_rounds = 0;
	for (uint64_t k = 1; k <= 5; k++) {
		run_rounds(w, k);
		assert_true(core(w, 0)->latest->ent[0] == 1);
	}
}

/* Whoever's rows are far from the others' is named, as long as they are plain. */
static void test_rows_far_out(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &w->t.agent[i];

		s->learner =
			(struct agent_learner){ .evaluate = read_score,
						.train_part = i == 2 ? train_scaled : train_little,
						.train_alone = train_copy };
		s->config.rounds.start_seed = 3;
		s->config.rounds.compare_rounds = 2;
	}
	reset(w, "fede");
	run(w, 60000);
	for (size_t i = 0; i < 2; i++) {
		const struct peer *evil = table_peer(&w->t, i, 2),
				  *good = table_peer(&w->t, i, 1 - i);

		if (evil->fed.apart.distance < 0)
			continue; /* home to nothing of what these two hold */
		assert_true(evil->fed.apart.rows == PEER_ROWS_FAR && evil->fed.apart.distance > 3 &&
			    evil->fed.apart.cosine < 0);
		assert_false(good->fed.apart.rows != PEER_ROWS_NEAR);
	}
	assert_true(table_peer(&w->t, 0, 2)->fed.apart.rows == PEER_ROWS_FAR ||
		    table_peer(&w->t, 1, 2)->fed.apart.rows == PEER_ROWS_FAR);
}

/* Agent 2 turns some of its rows; what homes are follows from what the agents draw. */
static void run_turned(struct world *w, uint64_t seed)
{
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &w->t.agent[i];

		s->learner = (struct agent_learner){ .evaluate = read_score,
						     .train_part = i == 2 ? train_some_turned
									  : train_little,
						     .train_alone = train_copy };
		s->config.rounds.start_seed = 3;
		s->config.rounds.bound_rows = true;
	}
	reset(w, "fede");
	for (size_t i = 0; i < AGENTS; i++)
		rng_seed(&w->t.agent[i].draw, AGENTS * seed + i);
	run_rounds(w, 3);
}

/* Whose rows a home leaves out one by one is named, in most cases where it is home to so many that
 * they stand out. */
static void test_single_rows_far_out(void **state)
{
	size_t many = 0, far = 0;

	for (uint64_t seed = 0; many < 4; seed++) {
		struct world *w;

		assert_true(seed < 100);
		teardown(state);
		setup(state);
		w = *state;
		run_turned(w, seed);
		for (size_t i = 0; i < 2; i++)
			assert_true(table_peer(&w->t, i, 1 - i)->fed.apart.rows == PEER_ROWS_NEAR);
		if (core(w, 0)->fed.report.homed <= 4)
			continue;
		many++;
		far += table_peer(&w->t, 0, 2)->fed.apart.rows == PEER_ROWS_FAR;
		assert_true(w->t.agent[0].notices[AGENT_NOTICE_TROUBLE] > 0);
	}
	assert_true(far >= 2);
}

/* ---- false accounts ---- */

struct liar {
	size_t who;
	bool signs; /* for figures that cannot be; else its signature is none */
};

static void sign_account(struct agent_core *c, const uint8_t to[32], const uint8_t id[FED_ID],
			 const struct fed_traffic *t, uint8_t signature[64])
{
	struct fed_account_head h = { .number = c->fed.done - 1, .method = "fede" };
	char whole[FED_ACCOUNT_MAX + 32] = "fkge round account 1",
				     *text = whole + strlen(whole) + 1;
	uint8_t digest[32];

	memcpy(h.id, id, FED_ID);
	fed_account_text(text, &h, c->key, to, t);
	crypto_generichash(digest, 32, (uint8_t *)whole, (size_t)(text - whole) + strlen(text),
			   NULL, 0);
	crypto_sign_detached(signature, NULL, digest, 32, c->sign_secret);
}

/* Its account says that it got a thousand rows more. */
static void lie(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct liar *l = ctx;
	struct err e = { 0 };
	struct net_writer w;
	struct net_msg m;
	struct fed_traffic x;
	uint8_t signature[64] = { 0 };
	uint64_t kind;

	if (from != l->who || net_msg_decode(&m, b->base, b->len, NULL) != 0)
		return;
	if (m.type == NET_MSG_ROUND && net_has(&m.body, "ro")) { /* an account */
		x.rows_out = net_get_uint(&m.body, "ro", 0, UINT64_MAX, &e);
		x.rows_in = net_get_uint(&m.body, "ri", 0, UINT64_MAX, &e) + 1000;
		x.floats_out = net_get_uint(&m.body, "fo", 0, UINT64_MAX, &e);
		x.floats_in = net_get_uint(&m.body, "fi", 0, UINT64_MAX, &e);
		if (l->signs)
			sign_account(t->agent[from].core, t->agent[to].key, m.session, &x,
				     signature);
		kind = net_get_uint(&m.body, "k", 0, 255, &e);
		buf_clear(b);
		net_write_begin(&w, b, NET_MSG_ROUND, m.session);
		net_put_uint(&w, "k", kind);
		net_put_uint(&w, "ro", x.rows_out);
		net_put_uint(&w, "ri", x.rows_in);
		net_put_uint(&w, "fo", x.floats_out);
		net_put_uint(&w, "fi", x.floats_in);
		net_put_bin(&w, "s", signature, 64);
		assert_int_equal(net_write_end(&w, &e), 0);
	}
	net_msg_release(&m);
}

static const struct agent_peer_status *status_of(const struct agent_status *s,
						 const uint8_t key[32])
{
	for (size_t i = 0; i < s->n_peers; i++)
		if (memcmp(s->peer[i].key, key, 32) == 0)
			return &s->peer[i];
	fail();
	return s->peer;
}

/* It is on record as what it is, in the status and in the log; and it stops nobody. */
static void test_false_accounts(void **state)
{
	for (int signs = 0; signs < 2; signs++) {
		struct liar l = { .who = 2, .signs = signs };
		struct agent_status status;
		struct world *w;
		struct table_agent *s;

		teardown(state);
		setup(state);
		w = *state;
		s = &w->t.agent[0];
		for (size_t i = 0; i < AGENTS; i++)
			w->t.agent[i].config.rounds.max = 1;
		w->t.tamper = lie;
		w->t.ctx = &l;
		reset(w, "fede");
		run(w, 60000);
		assert_int_equal(done(w, 0), 1);
		agent_core_status(core(w, 0), &status);
		assert_string_equal(status_of(&status, w->t.agent[1].key)->round_account, "");
		assert_non_null(strstr(status_of(&status, w->t.agent[2].key)->round_account,
				       signs ? "rows and it says that it got 10"
					     : "the signature is not the member's"));
		assert_non_null(strstr(status_of(&status, w->t.agent[2].key)->trouble,
				       signs ? "its account of round 0 contradicts ours: we sent "
					     : "its account of round 0 is refused: the signature"));
		assert_true(s->notices[AGENT_NOTICE_TROUBLE] > 0);
		assert_int_equal(s->accounts, 2);
		assert_int_equal(s->accounts_refused, signs ? 0 : 1);
		agent_status_release(&status);
	}
}

/* Agents 0 and 1 mean other names by the places of their rows. */
static void change_routes(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct net_message m;

	(void)ctx;
	(void)t;
	if (from + to != 1 || b->len == 0 || net_message_decode(&m, b->base, b->len, NULL) != 0 ||
	    m.type != NET_MSG_ROUND || m.round != NET_ROUND_UP)
		return;
	assert_true(m.round_rows.has_route);
	for (size_t i = 0; i + NET_ROUTE_BYTES <= b->len; i++)
		if (memcmp(b->base + i, m.round_rows.route, NET_ROUTE_BYTES) == 0)
			b->base[i] ^= 1;
}

/* Both owners are told; rounds go on, and neither rests from the other. */
static void test_routes_that_differ(void **state)
{
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.max = 2;
	w->t.tamper = change_routes;
	reset(w, "fede");
	run(w, 60000);
	for (size_t i = 0; i < 2; i++) {
		const struct peer *p = table_peer(&w->t, i, 1 - i);

		assert_int_equal(done(w, i), 2);
		assert_int_equal(p->fed.fate, FED_APART);
		assert_non_null(strstr(p->fed.why, "different things"));
		assert_int_equal(p->fed.absent, 0);
		assert_int_equal(p->fed.failed, 0);
		assert_int_equal(w->t.agent[i].notices[AGENT_NOTICE_TROUBLE], 2);
		assert_int_equal(table_peer(&w->t, i, 2)->fed.fate, FED_TOOK_PART);
	}
	assert_int_equal(w->t.agent[2].notices[AGENT_NOTICE_TROUBLE], 0);
}

/* ---- late accounts ---- */

struct post {	    /* takes accounts away, of one or of all, on their way to all */
	size_t who; /* AGENTS: everybody's */
	bool taken;
	struct late {
		size_t from, to;
		struct buf bytes;
	} at[64];
	size_t n;
};

static bool is_account(const struct buf *b)
{
	struct net_msg m;
	bool is;

	if (net_msg_decode(&m, b->base, b->len, NULL) != 0)
		return false;
	is = m.type == NET_MSG_ROUND && net_has(&m.body, "ro");
	net_msg_release(&m);
	return is;
}

static void hold_back(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct post *p = ctx;

	(void)t;
	if (!p->taken || (p->who < AGENTS && from != p->who) || !is_account(b))
		return;
	assert_true(p->n < sizeof(p->at) / sizeof(p->at[0]));
	p->at[p->n].from = from;
	p->at[p->n].to = to;
	p->at[p->n++].bytes = *b;
	*b = (struct buf){ 0 };
}

/* When the rounds are over, all that was held back comes at once; twice. */
static void deliver(struct world *w, struct post *p)
{
	p->taken = false;
	for (size_t i = 0; i < p->n; i++)
		for (int again = 0; again < 2; again++) {
			struct buf copy = { 0 };

			buf_add(&copy, p->at[i].bytes.base, p->at[i].bytes.len);
			table_inject(&w->t, p->at[i].from, p->at[i].to, &copy);
		}
	for (size_t i = 0; i < p->n; i++)
		buf_release(&p->at[i].bytes);
	p->n = 0;
}

static void many_rounds(struct world *w, struct post *p, uint32_t n)
{
	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.max = n;
	p->taken = true;
	w->t.tamper = hold_back;
	w->t.ctx = p;
	reset(w, "fede");
	run(w, 60000);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(done(w, i), n);
}

/* The next rounds have begun and are over when a slow member's accounts come. */
static void test_accounts_come_late(void **state)
{
	struct post p = { .who = 2 };
	struct world *w = *state;

	many_rounds(w, &p, 4);
	assert_int_equal(w->t.agent[0].accounts, 4);
	assert_int_equal(w->t.agent[1].accounts, 4);
	deliver(w, &p);
	run(w, 5000);
	for (size_t i = 0; i < AGENTS; i++) {
		assert_int_equal(w->t.agent[i].accounts, 4 * (AGENTS - 1));
		assert_int_equal(w->t.agent[i].accounts_differ, 0);
	}
}

/* Of more rounds than these nobody keeps what an account could be held against. */
static void test_accounts_come_too_late(void **state)
{
	struct post p = { .who = 2 };
	struct world *w = *state;

	many_rounds(w, &p, ROUNDS_PAST + 4);
	deliver(w, &p);
	run(w, 5000);
	assert_int_equal(w->t.agent[0].accounts, ROUNDS_PAST + 4 + ROUNDS_PAST + 1);
}

/* What was under way when a link was lost is said again when it is there again; also to who is in
 * no round any more. */
static void test_accounts_after_a_cut(void **state)
{
	struct post p = { .who = AGENTS };
	struct world *w = *state;

	many_rounds(w, &p, 4);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(w->t.agent[i].accounts, 0);
	p.taken = false;
	for (size_t a = 0; a < AGENTS; a++)
		for (size_t b = a + 1; b < AGENTS; b++)
			table_link(&w->t, a, b, false);
	run(w, 1000);
	link_all(w);
	run(w, 5000);
	for (size_t i = 0; i < AGENTS; i++) {
		assert_int_equal(w->t.agent[i].accounts, 4 * (AGENTS - 1));
		assert_int_equal(w->t.agent[i].accounts_differ, 0);
	}
	for (size_t i = 0; i < p.n; i++)
		buf_release(&p.at[i].bytes);
}

/* Nor is it forgotten when processes end: rounds on record hear accounts and tell them. */
static void test_accounts_after_a_restart(void **state)
{
	struct post p = { .who = AGENTS };
	struct world *w = *state;

	many_rounds(w, &p, ROUNDS_PAST + 2);
	p.taken = false;
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	table_link(&w->t, 0, 1, true);
	table_link(&w->t, 0, 2, true);
	run(w, 5000);
	/* of the newest rounds: its word for both others, and theirs for it */
	assert_int_equal(w->t.agent[0].accounts, ROUNDS_PAST * (AGENTS - 1));
	for (size_t i = 1; i < AGENTS; i++)
		assert_int_equal(w->t.agent[i].accounts, ROUNDS_PAST);
	for (size_t i = 0; i < AGENTS; i++)
		assert_int_equal(w->t.agent[i].accounts_differ, 0);
	/* what is on record by now is not written a second time */
	table_kill(&w->t, 0);
	table_restart(&w->t, 0);
	table_link(&w->t, 0, 1, true);
	table_link(&w->t, 0, 2, true);
	run(w, 5000);
	assert_int_equal(w->t.agent[0].accounts, ROUNDS_PAST * (AGENTS - 1));
	for (size_t i = 0; i < p.n; i++)
		buf_release(&p.at[i].bytes);
}

/* The store takes its time: nobody has a word of ours before it is on our disk. */
static void test_accounts_wait_for_the_disk(void **state)
{
	struct post p = { .who = 0 };
	struct world *w = *state;

	for (size_t i = 0; i < AGENTS; i++)
		w->t.agent[i].config.rounds.max = 1;
	p.taken = true;
	w->t.tamper = hold_back;
	w->t.ctx = &p;
	reset(w, "fede");
	for (size_t k = 0; w->t.agent[0].disk.n_rounds == 0; k++) {
		assert_int_equal(p.n, 0);
		assert_true(k < 100000);
		run(w, 1);
	}
	run(w, 5000);
	assert_int_equal(p.n, AGENTS - 1);
	for (size_t i = 0; i < p.n; i++)
		buf_release(&p.at[i].bytes);
}

/* ---- hostile ---- */

struct hostile {
	size_t who;
	struct rng rng;
	bool busy;
	unsigned said;
};

/* Whatever anybody says of a round is also said by the hostile one, to all, as it is or with other
 * bytes: proposals of others, rows of others, its own once more. */
static void repeat_and_spoil(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct hostile *h = ctx;
	struct net_msg m;
	bool round;

	(void)from, (void)to;
	if (h->busy || net_msg_decode(&m, b->base, b->len, NULL) != 0)
		return;
	round = m.type == NET_MSG_ROUND;
	net_msg_release(&m);
	for (size_t i = 0; round && i < AGENTS; i++)
		for (int k = 0; i != h->who && k < 3; k++) {
			struct buf copy = { 0 };

			buf_add(&copy, b->base, b->len);
			if (k > 0)
				copy.base[rng_below(&h->rng, (uint32_t)copy.len)] ^=
					(uint8_t)(1U << rng_below(&h->rng, 8));
			table_inject(t, h->who, i, &copy);
			h->said++;
		}
}

static void test_hostile_messages(void **state)
{
	for (size_t rank = 0; rank < AGENTS; rank++) {
		struct hostile h = { .said = 0 };
		struct world *w;
		size_t a, b;

		teardown(state);
		setup(state);
		w = *state;
		h.who = ranked(w, rank);
		a = ranked(w, rank == 0), b = ranked(w, rank == 2 ? 1 : 2);
		rng_seed(&h.rng, rank);
		for (size_t i = 0; i < AGENTS; i++)
			w->t.agent[i].config.rounds.min_members = 2;
		w->t.tamper = repeat_and_spoil;
		w->t.ctx = &h;
		reset(w, "fede");
		run(w, 120000);
		assert_true(h.said > 100);
		/* shut out in the middle of a round, it takes one of the two out of that one */
		assert_true(done(w, a) >= 2);
		assert_true(done(w, b) >= 2);
		assert_true(table_peer(&w->t, a, h.who)->conduct.breaches > 0);
		assert_true(table_peer(&w->t, b, h.who)->conduct.breaches > 0);
	}
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_world(test_calm),
		with_world(test_methods),
		with_world(test_hosted_and_masked),
		with_world(test_masks_that_lose),
		with_world(test_restart),
		with_world(test_restart_with_another_method),
		with_world(test_restart_with_other_tables),
		with_world(test_restart_after_unlearning),
		with_world(test_lost_in_training),
		with_world(test_dead_proposer),
		with_world(test_silent_member),
		with_world(test_slow_member),
		with_world(test_lateness_wears_off),
		with_world(test_after_a_standstill),
		with_world(test_unwilling_proposer),
		with_world(test_proposer_that_does_not),
		with_world(test_one_that_only_joins),
		with_world(test_failed_round_is_undone),
		with_world(test_whose_marks_differ_rests_for_nobody),
		with_world(test_orders_go_on),
		with_world(test_stop),
		with_world(test_look_goes_on),
		with_world(test_encoders_are_kept),
		with_world(test_look_shows),
		with_world(test_look_of_no_more_use),
		with_world(test_revoked_in_training),
		with_world(test_endless_proposals),
		with_world(test_old_proposal_again),
		with_world(test_very_old_proposal_again),
		with_world(test_a_key_that_was_a_partner),
		with_world(test_number_that_was_a_lie),
		with_world(test_proposer_that_lost_count),
		with_world(test_proposal_given_up_for_another),
		with_world(test_proposal_that_cannot_be_joined),
		with_world(test_numbers_far_apart),
		with_world(test_idlers),
		with_world(test_rounds_as_long_as_ours),
		with_world(test_number_and_schedule),
		with_world(test_a_share_of_the_members),
		with_world(test_a_zero_of_another_sign),
		with_world(test_a_constant_of_nothing),
		with_world(test_kept_part_is_damaged),
		with_world(test_other_settings_are_declined),
		with_world(test_settings_put_right),
		with_world(test_first_epochs),
		with_world(test_equal_start),
		with_world(test_changes_of_unequal_rows),
		with_world(test_rows_that_cost_more),
		with_world(test_means_of_unequal_rows),
		with_world(test_min_members),
		with_world(test_nobody_proposes),
		with_world(test_nothing_shared),
		with_world(test_whose_turn),
		with_world(test_host_is_missing),
		with_world(test_rounds_of_too_few),
		with_world(test_partners_that_are_done),
		with_world(test_missed_rounds_count),
		with_world(test_number_of_one),
		with_world(test_no_rounds_about_nothing),
		with_world(test_rounds_beside_one_apart),
		with_world(test_host_apart),
		with_world(test_old_hello),
		with_world(test_modes_do_not_mix),
		with_world(test_best_only_rises),
		with_world(test_patience),
		with_world(test_harm_rule),
		cmocka_unit_test(test_far),
		with_world(test_harm_stops),
		with_world(test_what_rises_goes_on),
		with_world(test_harm_persists),
		with_world(test_over_is_taken_back),
		with_world(test_cut_name_persists),
		with_world(test_harm_is_seen),
		with_world(test_weight),
		with_world(test_weight_is_off),
		with_world(test_weight_from),
		with_world(test_weight_refuses_between_looks),
		with_world(test_weight_takes_alone),
		with_world(test_weight_alone_without_comparing),
		with_world(test_weight_alone_comes_back),
		with_world(test_copy_trains_on_over_restarts),
		with_world(test_weight_waits),
		with_world(test_weight_waits_while_comparing),
		with_world(test_copy_a_little_ahead_is_kept),
		with_world(test_weight_waits_no_longer),
		with_world(test_weight_waits_for_the_last),
		with_world(test_weight_waits_where_it_was_cut_off),
		with_world(test_weight_waits_over_a_lost_round),
		with_world(test_weight_waits_when_told_to_go_on),
		with_world(test_rounds_stop_while_weight_waits),
		with_world(test_patience_ends_while_weight_waits),
		with_world(test_patience_ends_without_comparing),
		with_world(test_patience_ends_at_the_first_choice),
		with_world(test_patience_does_not_end),
		with_world(test_patience_ends_in_a_look_that_is_owed),
		with_world(test_patience_ends_and_the_copy_is_cut_off),
		with_world(test_rounds_end_before_the_first_choice),
		with_world(test_weight_keeps_its_copy),
		with_world(test_leaves_what_brings_nothing),
		with_world(test_weight_between_looks),
		with_world(test_rows_far_out),
		with_world(test_single_rows_far_out),
		with_world(test_a_seed_of_nobody),
		with_world(test_false_accounts),
		with_world(test_routes_that_differ),
		with_world(test_accounts_come_late),
		with_world(test_accounts_come_too_late),
		with_world(test_accounts_after_a_cut),
		with_world(test_accounts_after_a_restart),
		with_world(test_accounts_wait_for_the_disk),
		with_world(test_hostile_messages),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("agent/rounds", tests, NULL, NULL);
}
