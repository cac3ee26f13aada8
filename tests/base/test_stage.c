/* What comes into a folder together is all there or none of it, whichever call fails. */
#include "tests/folder.h"
#include "tests/test.h"

#include <errno.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/stage.h"
#include "tests/faults.h"

static bool is_in_folder(const char *name)
{
	char *path = mem_printf("%s/%s", folder, name);
	bool there = file_exists(path);

	free(path);
	return there;
}

/* Two files, and a folder with one. */
static int write_some(struct stage *s, struct err *e)
{
	static const char *const paths[] = { "one", "deep/in", "two" };
	char *deep = file_join(s->aside, "deep");
	int rc = file_make_folder(deep, 0755, e);

	for (size_t i = 0; i < 3 && rc == 0; i++) {
		char *path = file_join(s->aside, paths[i]);

		rc = file_write_atomic(path, paths[i], strlen(paths[i]), 0644, e);
		free(path);
	}
	stage_add(s, "one");
	stage_add(s, "%s", "deep");
	stage_add(s, "two");
	free(deep);
	return rc;
}

static int stage_all(const char *into, struct err *e)
{
	struct stage s;
	int rc = stage_begin(&s, into, e);

	return rc == 0 ? stage_end(&s, write_some(&s, e), e) : rc;
}

static void all_comes_or_nothing(bool new)
{
	char *into = mem_printf("%s/%s", folder, new ? "a/b" : "a");
	char *mine = mem_printf("%s/a/mine", folder);
	bool went = false;

	for (size_t k = 1; !went; k++) {
		struct err e = { 0 };
		struct faults seen;
		int rc;

		file_remove_folder(into);
		if (!new) {
			assert_int_equal(file_make_folder(into, 0755, &e), 0);
			assert_int_equal(file_write_atomic(mine, "x", 1, 0600, &e), 0);
		}
		faults_begin(folder);
		faults.calls = FAULT_ANY & ~(unsigned)FAULT_CLOSE;
		faults.at = k;
		faults.why = ENOSPC;
		rc = stage_all(into, &e);
		seen = faults;
		faults_end();
		went = !seen.hit;
		if (went != (rc == 0) || (rc != 0 && strstr(e.text, strerror(ENOSPC)) == NULL))
			fail_msg("call %zu (%d): %d, %s", k, (int)seen.which, rc, e.text);
		assert_true(is_in_folder(new ? "a/b/one" : "a/one") == went);
		assert_true(is_in_folder(new ? "a/b/deep/in" : "a/deep/in") == went);
		assert_true(is_in_folder(new ? "a/b/two" : "a/two") == went);
		assert_false(is_in_folder(new ? "a/b/new.part" : "a/new.part"));
		assert_true(is_in_folder(new ? "a" : "a/mine") == (went || !new));
		assert_true(k < 100);
	}
	free(mine);
	free(into);
}

static void into_a_folder_that_is_there(void **state)
{
	(void)state;
	all_comes_or_nothing(false);
}

static void into_a_new_one(void **state)
{
	char *a = mem_printf("%s/a", folder);

	(void)state;
	file_remove_folder(a);
	all_comes_or_nothing(true);
	file_remove_folder(a);
	free(a);
}

static bool reads_as(const char *name, const char *text)
{
	char *path = file_join(folder, name);
	struct buf is = { 0 };
	bool same = file_exists(path) && file_read(path, 64, &is, NULL) == 0 &&
		    is.len == strlen(text) && memcmp(is.base, text, is.len) == 0;

	buf_release(&is);
	free(path);
	return same;
}

static void two_old_ones(const char *into)
{
	char *one = file_join(into, "one"), *two = file_join(into, "two");
	struct err e = { 0 };

	file_remove_folder(into);
	assert_int_equal(file_make_folder(into, 0755, &e), 0);
	assert_int_equal(file_write_atomic(one, "old", 3, 0644, &e), 0);
	assert_int_equal(file_write_atomic(two, "old", 3, 0644, &e), 0);
	free(one);
	free(two);
}

static bool all_is_old(void)
{
	return reads_as("b/one", "old") && !is_in_folder("b/deep") && reads_as("b/two", "old");
}

static bool all_is_new(void)
{
	return reads_as("b/one", "one") && is_in_folder("b/deep/in") && reads_as("b/two", "two");
}

/* What the next run does that is refused then. */
static int begin_and_drop(const char *into, struct err *e)
{
	struct stage s;
	int rc = stage_begin(&s, into, e);

	return rc == 0 ? stage_end(&s, ERR_EXISTS, e) : rc;
}

/* Files that had the names: all as before, or all new.  Where nothing can be put back, it is kept,
 * the error says where, and the next run puts it back. */
static void what_was_there_stays(bool to_the_end)
{
	char *into = file_join(folder, "b");
	bool went = false;

	for (size_t k = 1; !went; k++) {
		struct err e = { 0 };
		int rc;

		two_old_ones(into);
		faults_begin(folder);
		faults.calls = FAULT_ANY & ~(unsigned)FAULT_CLOSE;
		faults.at = k;
		faults.on = to_the_end;
		faults.why = ENOSPC;
		rc = stage_all(into, &e);
		went = !faults.hit;
		faults_end();
		assert_true(went == (rc == 0));
		if (went)
			assert_true(all_is_new());
		else if (!all_is_old()) {
			assert_true(to_the_end && !is_in_folder("b/two"));
			assert_non_null(strstr(e.text, "is kept in"));
			assert_non_null(strstr(e.text, "b/new.part"));
			assert_int_equal(begin_and_drop(into, &e), ERR_EXISTS);
			assert_true(all_is_old());
		}
		assert_false(is_in_folder("b/new.part"));
		assert_true(k < 100);
	}
	file_remove_folder(into);
	free(into);
}

static void over_files_that_are_there(void **state)
{
	(void)state;
	what_was_there_stays(false);
	what_was_there_stays(true);
}

/* What `run` does is killed at its k-th call; false: it has fewer. */
static bool killed_amid(int (*run)(const char *, struct err *), const char *into, size_t k)
{
	struct err e = { 0 };
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (child == 0) {
		faults_begin(folder);
		faults.at = k;
		faults.kills = true;
		(void)run(into, &e);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status);
}

/* So is the run that puts things back; the one after it has all. */
static void a_killed_program_is_undone(void **state)
{
	char *into = file_join(folder, "b");
	size_t renamed = 0;

	(void)state;
	for (size_t k = 1, j = 1;; j++) {
		struct err e = { 0 };
		bool amid, again;

		two_old_ones(into);
		if (!killed_amid(stage_all, into, k))
			break;
		amid = is_in_folder("b/new.part/stage.list");
		renamed += amid && !all_is_old();
		again = killed_amid(begin_and_drop, into, j);
		assert_int_equal(begin_and_drop(into, &e), ERR_EXISTS);
		assert_true(all_is_old() || (!amid && all_is_new()));
		assert_false(is_in_folder("b/new.part"));
		k += !again;
		j = again ? j : 0;
		assert_true(k < 100 && j < 100);
	}
	assert_true(renamed > 10 && all_is_new());
	file_remove_folder(into);
	free(into);
}

/* A list that nobody of ours has written names nothing outside. */
static void foreign_lists_are_refused(void **state)
{
	static const char *const lists[] = { "-../mine", "-/mine", "mine", "-" };
	char *list = mem_printf("%s/c/" STAGE_ASIDE "/stage.list", folder),
	     *mine = file_join(folder, "mine"), *into = file_join(folder, "c"),
	     *aside = file_join(into, STAGE_ASIDE);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(file_make_folder(aside, 0755, &e), 0);
	assert_int_equal(file_write_atomic(mine, "x", 1, 0600, &e), 0);
	for (size_t i = 0; i < sizeof(lists) / sizeof(*lists); i++) {
		assert_int_equal(file_write_atomic(list, lists[i], strlen(lists[i]) + 1, 0600, &e),
				 0);
		assert_int_equal(begin_and_drop(into, &e), ERR_INPUT);
		assert_true(is_in_folder("mine") && file_exists(list));
	}
	assert_int_equal(file_write_atomic(list, "-mine", 5, 0600, &e), 0); /* no NUL */
	assert_int_equal(begin_and_drop(into, &e), ERR_INPUT);
	file_remove_folder(into);
	(void)unlink(mine);
	free(list);
	free(mine);
	free(into);
	free(aside);
}

/* Half put back by the run before, which had lost the new ones: what is back stays. */
static void what_is_back_stays(void **state)
{
	static const char list[] = "+one\0+two\0-deep";
	char *into = file_join(folder, "b"), *aside = file_join(into, STAGE_ASIDE),
	     *at = file_join(aside, "stage.list"), *one = file_join(into, "one"),
	     *old = file_join(aside, "one.old");
	struct err e = { 0 };

	(void)state;
	two_old_ones(into);
	assert_int_equal(file_make_folder(aside, 0755, &e), 0);
	assert_int_equal(file_write_atomic(at, list, sizeof(list), 0644, &e), 0);
	assert_int_equal(rename(one, old), 0);
	assert_int_equal(begin_and_drop(into, &e), ERR_EXISTS);
	assert_true(all_is_old() && !is_in_folder("b/new.part"));
	file_remove_folder(into);
	free(into);
	free(aside);
	free(at);
	free(one);
	free(old);
}

/* Else a program that is killed while it removes what was there would put the rest of it back. */
static void the_list_goes_first(void **state)
{
	_Alignas(struct inotify_event) char events[4096];
	char *into = file_join(folder, "b");
	int told = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
	const struct inotify_event *first = (const void *)events;
	struct err e = { 0 };
	struct stage s;

	(void)state;
	two_old_ones(into);
	assert_true(told >= 0);
	assert_int_equal(stage_begin(&s, into, &e), 0);
	assert_true(inotify_add_watch(told, s.aside, IN_DELETE) >= 0);
	assert_int_equal(stage_end(&s, write_some(&s, &e), &e), 0);
	assert_true(read(told, events, sizeof(events)) > (ssize_t)sizeof(*first));
	assert_string_equal(first->name, "stage.list");
	close(told);
	file_remove_folder(into);
	free(into);
}

/* Names of the folder itself outlast a power cut. */
static void what_came_is_on_disk(void **state)
{
	char *into = file_join(folder, "b");
	struct err e = { 0 };
	const char *left;

	(void)state;
	assert_int_equal(file_make_folder(into, 0755, &e), 0);
	faults_begin(into);
	assert_int_equal(stage_all(into, &e), 0);
	left = faults_unsynced(NULL);
	if (left != NULL)
		print_message("# not synced: %s\n", left);
	faults_end();
	assert_null(left);
	file_remove_folder(into);
	free(into);
}

/* A folder with something in it stays; an empty one may go. */
static void folders_with_something_stay(void **state)
{
	char *into = file_join(folder, "b"), *deep = file_join(into, "deep"),
	     *in = file_join(deep, "mine");
	struct err e = { 0 };

	(void)state;
	two_old_ones(into);
	assert_int_equal(file_make_folder(deep, 0755, &e), 0);
	assert_int_equal(file_write_atomic(in, "x", 1, 0644, &e), 0);
	assert_int_equal(stage_all(into, &e), ERR_IO);
	assert_non_null(strstr(e.text, "b/deep: Directory not empty"));
	assert_true(reads_as("b/one", "old") && reads_as("b/two", "old"));
	assert_true(is_in_folder("b/deep/mine") && !is_in_folder("b/new.part"));
	assert_int_equal(unlink(in), 0);
	assert_int_equal(stage_all(into, &e), 0);
	assert_true(all_is_new());
	file_remove_folder(into);
	free(into);
	free(deep);
	free(in);
}

static void what_a_killed_program_left_goes(void **state)
{
	char *aside = mem_printf("%s/" STAGE_ASIDE, folder), *left = file_join(aside, "one");
	struct err e = { 0 };

	(void)state;
	assert_int_equal(file_make_folder(aside, 0755, &e), 0);
	assert_int_equal(file_write_atomic(left, "x", 1, 0600, &e), 0);
	assert_int_equal(stage_all(folder, &e), 0);
	assert_false(file_exists(aside));
	free(left);
	free(aside);
}

static void two_at_once_are_refused(void **state)
{
	char *aside = mem_printf("%s/" STAGE_ASIDE, folder);
	struct err e = { 0 };
	struct stage s;

	(void)state;
	assert_int_equal(stage_begin(&s, folder, &e), 0);
	assert_int_equal(stage_all(folder, &e), ERR_BUSY);
	assert_non_null(strstr(e.text, "another program is writing there"));
	assert_true(file_exists(aside));
	assert_int_equal(stage_end(&s, 0, &e), 0);
	assert_false(file_exists(aside));
	assert_int_equal(file_write_atomic(aside, "x", 1, 0600, &e), 0);
	assert_int_equal(stage_begin(&s, folder, &e), ERR_IO);
	assert_non_null(strstr(e.text, STAGE_ASIDE ": Not a directory"));
	free(aside);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(into_a_folder_that_is_there),
		cmocka_unit_test(into_a_new_one),
		cmocka_unit_test(over_files_that_are_there),
		cmocka_unit_test(a_killed_program_is_undone),
		cmocka_unit_test(what_is_back_stays),
		cmocka_unit_test(the_list_goes_first),
		cmocka_unit_test(foreign_lists_are_refused),
		cmocka_unit_test(what_came_is_on_disk),
		cmocka_unit_test(folders_with_something_stay),
		cmocka_unit_test(what_a_killed_program_left_goes),
		cmocka_unit_test(two_at_once_are_refused),
	};

	return cmocka_run_group_tests_name("base/stage", tests, make_folder, remove_folder);
}
