/* The thread that writes to the store (agent/store_thread.h): what is run after a commit that has
 * failed. */
#include "tests/test.h"

#include <uv.h>

#include "agent/store_thread.h"

enum { TASKS = 6 };

struct told {
	struct store_thread_task task;
	bool fails, ran;
	int status;
	char text[64];
};

static int run_told(struct store *s, struct store_thread_task *t, struct err *e)
{
	struct told *x = (struct told *)t;

	(void)s;
	x->ran = true;
	return x->fails ? err_set(e, ERR_IO, "the disk is full") : 0;
}

static void told_done(struct store_thread_task *t, int status, const struct err *e)
{
	struct told *x = (struct told *)t;

	x->status = status;
	snprintf(x->text, sizeof(x->text), "%.60s", e->text);
}

static void closed(void *ctx)
{
	*(bool *)ctx = true;
}

static void commits_are_on_disk_without_a_gap(void **state)
{
	static const struct {
		enum store_thread_kind kind;
		bool fails, runs;
	} rows[TASKS] = {
		{ STORE_THREAD_COMMITS, false, true }, { STORE_THREAD_WRITES, true, true },
		{ STORE_THREAD_COMMITS, true, true },  { STORE_THREAD_COMMITS, false, false },
		{ STORE_THREAD_WRITES, false, false }, { STORE_THREAD_READS, false, true },
	};
	struct told told[TASKS] = { 0 };
	struct store_thread *w;
	bool over = false;
	uv_loop_t loop;

	(void)state;
	assert_int_equal(uv_loop_init(&loop), 0);
	w = store_thread_new(&loop, NULL);
	for (size_t i = 0; i < TASKS; i++) {
		told[i].task = (struct store_thread_task){ run_told, told_done, rows[i].kind };
		told[i].fails = rows[i].fails;
		store_thread_put(w, &told[i].task);
	}
	store_thread_close(w, closed, &over);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_true(over);
	for (size_t i = 0; i < TASKS; i++) {
		bool well = rows[i].runs && !rows[i].fails;

		assert_int_equal(told[i].ran, rows[i].runs);
		assert_int_equal(told[i].status, well ? 0 : ERR_IO);
		assert_string_equal(told[i].text, well ? "" : "the disk is full");
	}
	assert_int_equal(uv_loop_close(&loop), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(commits_are_on_disk_without_a_gap),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
