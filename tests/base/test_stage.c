/* What comes into a folder together is all there or none of it, whichever call fails. */
#include "tests/folder.h"
#include "tests/test.h"

#include <errno.h>
#include <sys/stat.h>
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

/* Files that had the names: all as before, or all new.  Where nothing can be put back, as after a
 * kill, never old ones and new ones with the last name. */
static void what_was_there_stays(bool to_the_end)
{
	char *into = file_join(folder, "b"), *one = file_join(into, "one"),
	     *two = file_join(into, "two");
	bool went = false;

	for (size_t k = 1; !went; k++) {
		struct err e = { 0 };
		int rc;

		file_remove_folder(into);
		assert_int_equal(file_make_folder(into, 0755, &e), 0);
		assert_int_equal(file_write_atomic(one, "old", 3, 0644, &e), 0);
		assert_int_equal(file_write_atomic(two, "old", 3, 0644, &e), 0);
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
			assert_true(reads_as("b/one", "one") && is_in_folder("b/deep/in") &&
				    reads_as("b/two", "two"));
		else if (!to_the_end || is_in_folder("b/two"))
			assert_true(reads_as("b/one", "old") && !is_in_folder("b/deep") &&
				    reads_as("b/two", "old"));
		assert_true(k < 100);
	}
	file_remove_folder(into);
	free(into);
	free(one);
	free(two);
}

static void over_files_that_are_there(void **state)
{
	(void)state;
	what_was_there_stays(false);
	what_was_there_stays(true);
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
		cmocka_unit_test(what_a_killed_program_left_goes),
		cmocka_unit_test(two_at_once_are_refused),
	};

	return cmocka_run_group_tests_name("base/stage", tests, make_folder, remove_folder);
}
