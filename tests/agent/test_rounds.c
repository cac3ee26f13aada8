/* Rounds of many in the core: three agents around a table that hold nine things in common,
 * with the learner that agents have.  Faults by the hundred are the simulator's (tests/sim). */
#include "tests/test.h"

#include <sodium.h>

#include "agent/learner.h"
#include "base/mem.h"
#include "kge/eval.h"
#include "tests/agent/table.h"

enum { SHARED = 9, FLOATS = 4 };

struct world {
	struct table t;
	struct agent_learner_kge *learner[SEATS];
};

static struct agent_core *core(struct world *w, size_t at)
{
	return w->t.seat[at].core;
}

static void set_method(struct world *w, const char *method)
{
	for (size_t i = 0; i < SEATS; i++) {
		struct agent_rounds_config *f = &w->t.seat[i].config.fed;

		fed_settings_init(&f->settings, fed_method_find(method));
		f->settings.join_ms = 400;
		f->settings.train_ms = 2000;
		f->settings.stage_ms = 1000;
	}
}

static int setup(void **state)
{
	struct world *w = mem_array(1, sizeof(*w));
	struct kge_train_config train;

	kge_train_defaults(&train);
	train.threads = 1;
	train.batch = 8;
	train.negatives = 4;
	train.lr = .05F;
	table_init(&w->t, 3);
	set_method(w, "fede");
	for (size_t i = 0; i < SEATS; i++) {
		struct seat *s = &w->t.seat[i];

		w->learner[i] =
			agent_learner_new(&train, s->graph, kge_protocol_find("standard"), 0);
		s->learner = *agent_learner_ops(w->learner[i]);
		s->config.mode = AGENT_ROUNDS;
		s->config.fed.epochs = 1;
		s->config.fed.max = 3;
		s->config.fed.min_members = SEATS;
	}
	*state = w;
	return 0;
}

static int teardown(void **state)
{
	struct world *w = *state;

	table_release(&w->t);
	for (size_t i = 0; i < SEATS; i++)
		agent_learner_free(w->learner[i]);
	free(w);
	return 0;
}

static void link_all(struct world *w)
{
	for (size_t a = 0; a < SEATS; a++)
		for (size_t b = a + 1; b < SEATS; b++)
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

static bool rows_equal(struct world *w, size_t a, size_t b)
{
	for (uint32_t id = 0; id < SHARED; id++)
		if (memcmp(kge_ent(core(w, a)->fed.latest, id), kge_ent(core(w, b)->fed.latest, id),
			   FLOATS * sizeof(float)) != 0)
			return false;
	return true;
}

/* ---- calm ---- */

static void test_calm(void **state)
{
	struct world *w = *state;

	table_start(&w->t);
	link_all(w);
	run(w, 60000);
	for (size_t i = 0; i < SEATS; i++) {
		struct agent_status s;

		assert_int_equal(done(w, i), 3);
		assert_int_equal(core(w, i)->fed.number, 3);
		assert_int_equal(w->t.seat[i].writes[STORE_PUT_ROUND], 3);
		agent_core_status(core(w, i), &s);
		assert_int_equal(s.state, AGENT_SLEEP);
		assert_int_equal(s.round.members, SEATS);
		assert_int_equal(s.round.items, SHARED);
		assert_int_equal(s.round.answered, SHARED);
		assert_int_equal(s.peer[0].round_fate, FED_TOOK_PART);
		agent_status_release(&s);
	}
	assert_true(rows_equal(w, 0, 1) && rows_equal(w, 1, 2));
}

#define with_world(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_world(test_calm),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("agent/rounds", tests, NULL, NULL);
}
