/* Keys that an invitation has let through (agent/newcomers.h). */
#include "tests/test.h"

#include <stdlib.h>
#include <string.h>

#include "agent/newcomers.h"

static const struct net_greet_card line[2] = { { .ticket = { 1 } }, { .ticket = { 2 } } };

static struct newcomer *come(struct newcomers *v, uint8_t n, int card, uint64_t now_ms)
{
	const uint8_t key[NET_KEY_BYTES] = { n };

	return newcomers_up(v, key, &line[card], now_ms);
}

static void a_line_does_not_keep_others_out(void **state)
{
	struct newcomers v = { 0 };

	(void)state;
	for (uint8_t n = 1; n <= NEWCOMERS_OF_TICKET; n++)
		assert_non_null(come(&v, n, 0, 5));
	assert_null(come(&v, NEWCOMERS_OF_TICKET + 1, 0, 5));
	assert_non_null(come(&v, NEWCOMERS_OF_TICKET + 1, 1, 5));
	assert_non_null(come(&v, 1, 0, 6)); /* again: it has a place */
	assert_int_equal(v.n, NEWCOMERS_OF_TICKET + 1);
	newcomers_release(&v);
	assert_int_equal(v.n, 0);
}

static void there_are_so_many_at_most(void **state)
{
	struct newcomers v = { 0 };
	struct net_greet_card card = { { 0 }, { 0 } };
	uint8_t key[NET_KEY_BYTES] = { 0 };

	(void)state;
	for (uint8_t n = 0; n <= NEWCOMERS_MAX; n++) {
		key[0] = card.ticket[0] = n;
		assert_int_equal(newcomers_up(&v, key, &card, 5) != NULL, n < NEWCOMERS_MAX);
	}
	newcomers_release(&v);
}

static void who_says_nothing_is_late(void **state)
{
	struct newcomers v = { 0 };

	(void)state;
	come(&v, 1, 0, 5);
	come(&v, 2, 0, 6)->joins = true;
	come(&v, 3, 0, 7);
	assert_null(newcomers_late(&v, 5 + NEWCOMERS_HELLO_MS - 1));
	assert_int_equal(newcomers_late(&v, 5 + NEWCOMERS_HELLO_MS)->key[0], 1);
	come(&v, 1, 0, 8); /* another link: its time begins anew */
	assert_int_equal(newcomers_late(&v, 7 + NEWCOMERS_HELLO_MS)->key[0], 3);
	newcomers_release(&v);
}

static void what_it_says_is_kept_in_order(void **state)
{
	static const uint8_t first[NET_KEY_BYTES] = { 1 };
	static const uint8_t much[NEWCOMERS_BYTES + 1];
	struct newcomers v = { 0 };
	struct newcomer x;
	struct queued_message *m;

	(void)state;
	assert_true(newcomers_keep(come(&v, 1, 0, 5), (const uint8_t *)"a", 1));
	come(&v, 2, 0, 5);
	assert_true(newcomers_keep(newcomers_find(&v, first), (const uint8_t *)"b", 1));
	assert_false(newcomers_keep(newcomers_find(&v, first), much, sizeof(much)));
	assert_true(newcomers_take(&v, first, &x));
	assert_null(newcomers_find(&v, first));
	assert_false(newcomers_take(&v, first, &x));
	for (const char *want = "ab"; *want != '\0'; want++) {
		m = message_queue_take(&x.said);
		assert_int_equal(m->bytes[0], *want);
		free(m);
	}
	newcomers_let_go(&x);
	newcomers_keep(come(&v, 2, 0, 5), (const uint8_t *)"c", 1);
	assert_null(come(&v, 2, 0, 6)->said.first); /* of a link that is gone */
	newcomers_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_does_not_keep_others_out),
		cmocka_unit_test(there_are_so_many_at_most),
		cmocka_unit_test(who_says_nothing_is_late),
		cmocka_unit_test(what_it_says_is_kept_in_order),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
