/* A SIGNAL follows a round if and only if the host's score on valid has risen
 * (docs/THREAT-MODEL.md): a partner reads that off the message, and whoever sees the wire off one
 * more small frame.  What can be asked with such answers: backtracking.c. */
#include "tests/test.h"

#include "tests/agent/table.h"

enum { CLIENT, HOST };

/* The client improves and says so; the host takes its rows in and gets better, or not. */
static uint64_t signals_of_host(unsigned improvements)
{
	struct table t;
	table_init(&t, 1);
	for (size_t i = 0; i < SEATS; i++)
		t.seat[i].config.local_rounds = 0;
	table_start(&t);
	table_link(&t, CLIENT, HOST, true);
	table_run(&t, 60000, 100000);
	uint64_t before = t.seat[HOST].sent[NET_MSG_SIGNAL], rounds = t.seat[HOST].core->rounds;
	t.seat[CLIENT].improvements = 1;
	t.seat[HOST].improvements = improvements;
	t.seat[CLIENT].core->train_now = true;
	table_link(&t, CLIENT, HOST, false); /* something happens, so both look around */
	table_link(&t, CLIENT, HOST, true);
	table_run(&t, t.now_ms + 300000, 200000);
	assert_true(t.seat[HOST].core->rounds > rounds);
	uint64_t signals = t.seat[HOST].sent[NET_MSG_SIGNAL] - before;
	table_release(&t);
	return signals;
}

/* ATTACK */
static void a_signal_is_the_score(void **state)
{
	(void)state;
	assert_int_equal(signals_of_host(0), 0);
	assert_int_equal(signals_of_host(1), 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(a_signal_is_the_score) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
