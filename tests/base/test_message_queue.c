/* Messages that wait: order, and what memory they are said to take. */
#include "tests/test.h"

#include "base/message_queue.h"

static void first_in_first_out(void **state)
{
	struct message_queue q = { 0 };
	struct queued_message *m;

	(void)state;
	for (uint8_t round = 0; round < 3; round++) { /* emptied, it can be used again */
		for (uint8_t i = 0; i < 5; i++)
			message_queue_add(&q, &i, 1);
		for (uint8_t i = 0; i < 5; i++) {
			m = message_queue_take(&q);
			assert_true(m != NULL && m->n == 1 && m->bytes[0] == i);
			free(m);
		}
		assert_null(message_queue_take(&q));
		assert_int_equal(q.bytes, 0);
	}
}

static void bytes_are_all_that_it_takes(void **state)
{
	struct message_queue q = { 0 };
	uint8_t bytes[1000] = { 0 };

	(void)state;
	message_queue_add(&q, bytes, 0); /* an empty one takes memory, too */
	assert_true(q.bytes >= sizeof(struct queued_message));
	message_queue_add(&q, bytes, sizeof(bytes));
	assert_true(q.bytes >= 2 * sizeof(struct queued_message) + sizeof(bytes));
	message_queue_release(&q);
	assert_int_equal(q.bytes, 0);
	assert_null(q.first);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(first_in_first_out),
		cmocka_unit_test(bytes_are_all_that_it_takes),
	};

	return cmocka_run_group_tests_name("base/message_queue", tests, NULL, NULL);
}
