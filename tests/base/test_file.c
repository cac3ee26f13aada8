#include "tests/test.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"

static void written_files_are_read_back_with_their_mode(void **state)
{
	char folder[] = "/tmp/fkge-test-XXXXXX";
	struct buf b = { 0 };
	struct err e = { 0 };
	struct stat st;
	char *deep, *path;

	(void)state;
	assert_non_null(mkdtemp(folder));
	deep = file_join(folder, "a/b");
	path = file_join(deep, "key");
	assert_int_equal(file_make_folder(deep, 0700, &e), 0);
	assert_int_equal(file_make_folder(deep, 0700, &e), 0);
	assert_int_equal(file_write_atomic(path, "secret", 6, 0600, &e), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(file_read(path, 6, &b, &e), 0);
	assert_int_equal(b.len, 6);
	assert_memory_equal(b.base, "secret", 6);
	assert_int_equal(file_read(path, 5, &b, &e), ERR_TOOBIG);
	assert_int_equal(b.len, 6);
	assert_int_equal(file_make_folder(path, 0700, &e), ERR_IO);
	assert_non_null(strstr(e.text, "Not a directory"));
	unlink(path);
	assert_int_equal(file_read(path, 5, &b, &e), ERR_NOFILE);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(file_read(folder, 5, &b, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "directory"));
	assert_int_equal(file_unreadable(path, EMFILE, &e), ERR_IO);
	assert_int_equal(file_write_atomic("/nowhere/at/all", "x", 1, 0600, &e), ERR_IO);
	rmdir(deep);
	deep[strlen(deep) - 2] = '\0';
	rmdir(deep);
	rmdir(folder);
	buf_release(&b);
	free(deep);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(written_files_are_read_back_with_their_mode),
	};

	return cmocka_run_group_tests_name("base/file", tests, NULL, NULL);
}
