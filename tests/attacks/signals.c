/* Under federation.after: back a SIGNAL follows a round if and only if the host's score on valid
 * has risen (docs/THREAT-MODEL.md): a partner reads that off the message, and whoever sees the wire
 * off one more small frame.  What can be asked with such answers: backtracking.c.  Under keep every
 * round is followed by one. */
#include "tests/test.h"

#include "tests/agent/table.h"

enum { CLIENT, HOST };

/* The client improves and says so; the host takes its rows in and gets better, or not. */
static uint64_t signals_of_host(enum config_after after, unsigned improvements)
{
	struct table t;
	table_init(&t, 1);
	for (size_t i = 0; i < AGENTS; i++) {
		struct config_federation *f = &t.agent[i].config.federation;

		f->local_rounds = 0;
		f->after = after;
		f->max_rounds = i == CLIENT ? 1 : 0;
		f->patience = 0;
	}
	table_start(&t);
	table_link(&t, CLIENT, HOST, true);
	table_run(&t, 60000, 100000);
	uint64_t before = t.agent[HOST].sent[NET_MSG_SIGNAL], rounds = t.agent[HOST].core->rounds;
	t.agent[CLIENT].improvements = 1;
	t.agent[HOST].improvements = improvements;
	t.agent[CLIENT].core->train_now = true;
	table_link(&t, CLIENT, HOST, false); /* something happens, so both look around */
	table_link(&t, CLIENT, HOST, true);
	table_run(&t, t.now_ms + 300000, 200000);
	assert_true(t.agent[HOST].core->rounds > rounds);
	uint64_t signals = t.agent[HOST].sent[NET_MSG_SIGNAL] - before;
	table_release(&t);
	return signals;
}

/* ATTACK */
static void a_signal_is_the_score(void **state)
{
	(void)state;
	assert_int_equal(signals_of_host(CONFIG_AFTER_BACK, 0), 0);
	assert_int_equal(signals_of_host(CONFIG_AFTER_BACK, 1), 1);
}

static void a_signal_says_nothing_of_the_score(void **state)
{
	(void)state;
	assert_int_equal(signals_of_host(CONFIG_AFTER_KEEP, 0), 1);
	assert_int_equal(signals_of_host(CONFIG_AFTER_KEEP, 1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_signal_is_the_score),
					    cmocka_unit_test(a_signal_says_nothing_of_the_score) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
