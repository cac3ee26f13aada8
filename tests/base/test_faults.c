/* A file that is written in one go is the old one or the new one whatever the system refuses, and
 * what is refused is told.  Every call in turn fails, from the first to the last. */
#include "tests/folder.h"
#include "tests/test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/file.h"
#include "base/sink.h"
#include "tests/faults.h"

enum { OLD = 3000, NEW = 100000 };

static uint8_t old_bytes[OLD], new_bytes[NEW];
static const int reasons[] = { EIO, ENOSPC, EDQUOT };

static void fill(void)
{
	for (size_t i = 0; i < NEW; i++)
		new_bytes[i] = (uint8_t)(i * 7 + i / 256);
	for (size_t i = 0; i < OLD; i++)
		old_bytes[i] = (uint8_t)(i * 3);
}

static bool has(const char *path, const uint8_t *bytes, size_t n)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	bool same =
		file_read(path, NEW, &b, &e) == 0 && b.len == n && memcmp(b.base, bytes, n) == 0;

	buf_release(&b);
	return same;
}

static size_t names_in(const char *path)
{
	DIR *d = opendir(path);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n - 2; /* . and .. */
}

/* ---- the ways to write ---- */

static int atomic(const char *path, struct err *e)
{
	return file_write_atomic(path, new_bytes, NEW, 0600, e);
}

static int unsynced(const char *path, struct err *e)
{
	return file_write_unsynced(path, new_bytes, NEW, 0600, e);
}

static int through_sink(const char *path, struct err *e)
{
	struct sink s;
	int rc = sink_open(&s, folder, strrchr(path, '/') + 1, SINK_PRIVATE, e);

	if (rc != 0)
		return rc;
	fwrite(new_bytes, 1, NEW, s.f);
	return sink_close(&s, e);
}

static const struct way {
	int (*write)(const char *path, struct err *e);
	bool synced;
} ways[] = { { atomic, true }, { unsynced, false }, { through_sink, true } };

/* ---- what is to hold ---- */

static char *old_file(void)
{
	char *path = mem_printf("%s/key", folder);
	struct err e = { 0 };

	assert_int_equal(file_write_atomic(path, old_bytes, OLD, 0600, &e), 0);
	assert_int_equal(names_in(folder), 1);
	return path;
}

/* The k-th call of one way fails for this reason; false: there are not so many. */
static bool one_fault(const struct way *way, const char *path, size_t k, int why)
{
	struct err e = { 0 };
	struct faults seen;
	int rc;

	assert_int_equal(file_write_atomic(path, old_bytes, OLD, 0600, &e), 0);
	faults_begin(folder);
	faults.at = k;
	faults.why = why;
	rc = way->write(path, &e);
	seen = faults;
	faults_end();
	assert_int_equal(names_in(folder), 1);
	if (!seen.hit) {
		assert_int_equal(rc, 0);
		assert_true(has(path, new_bytes, NEW));
		return false;
	}
	if (seen.renamed_before > 0 && seen.which == FAULT_CLOSE) {
		assert_int_equal(rc, 0); /* of the folder, which was only read */
		return true;
	}
	if (rc != ERR_IO || e.code != ERR_IO || strstr(e.text, strerror(why)) == NULL)
		fail_msg("call %zu (%d): %d, %s", k, (int)seen.which, rc, e.text);
	if (seen.renamed_before == 0)
		assert_true(has(path, old_bytes, OLD));
	else
		assert_true(has(path, new_bytes, NEW)); /* the folder alone could not be synced */
	assert_int_equal(strstr(e.text, "/key is written, but may not survive") != NULL,
			 seen.renamed_before > 0 && way->write != through_sink);
	return true;
}

static void each_call_that_fails_is_told_and_leaves_the_old_file(void **state)
{
	char *path = old_file();

	(void)state;
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++)
		for (size_t r = 0; r < sizeof(reasons) / sizeof(reasons[0]); r++) {
			size_t k = 1;

			while (one_fault(&ways[w], path, k, reasons[r]))
				k++;
			/* open, fsync and rename at the least */
			assert_true(k > (ways[w].synced ? 5 : 4));
		}
	free(path);
}

/* Bytes before their name, and the name before the caller goes on. */
static void what_was_written_is_on_disk_when_it_returns(void **state)
{
	char *path = old_file();
	struct err e = { 0 };

	(void)state;
	for (size_t w = 0; w < sizeof(ways) / sizeof(ways[0]); w++) {
		faults_begin(folder);
		assert_int_equal(ways[w].write(path, &e), 0);
		assert_int_equal(faults.renames, 1);
		if (ways[w].write == through_sink)
			assert_null(faults_unsynced(NULL)); /* stdio's writes are not seen */
		else
			assert_int_equal(faults.renamed_unsynced, ways[w].synced ? 0 : 1);
		if (ways[w].synced && faults_unsynced(NULL) != NULL)
			fail_msg("not synced: %s", faults_unsynced(NULL));
		faults_end();
	}
	free(path);
}

/* A sink's writes go past the faults: how often it syncs is counted instead, and how much. */
static void a_sink_syncs_its_file_and_its_folder(void **state)
{
	char *path = old_file();
	struct err e = { 0 };

	(void)state;
	faults_begin(folder);
	faults.calls = FAULT_SYNC;
	assert_int_equal(through_sink(path, &e), 0);
	assert_int_equal(faults.n, 2);
	assert_int_equal(faults.synced_bytes, NEW);
	faults_end();
	free(path);
}

static void short_writes_are_continued(void **state)
{
	char *path = old_file();
	struct err e = { 0 };

	(void)state;
	faults_begin(folder);
	faults.short_writes = true;
	faults.calls = FAULT_WRITE;
	assert_int_equal(atomic(path, &e), 0);
	assert_true(faults.n > 2);
	faults_end();
	assert_true(has(path, new_bytes, NEW));
	free(path);
}

static void an_interrupted_call_is_made_again(void **state)
{
	char *path = old_file();
	struct buf b = { 0 };
	struct err e = { 0 };

	(void)state;
	faults_begin(folder);
	faults.calls = FAULT_WRITE;
	faults.at = 1;
	faults.why = EINTR;
	assert_int_equal(atomic(path, &e), 0);
	assert_true(faults.hit);
	faults_begin(folder);
	faults.calls = FAULT_READ;
	faults.at = 1;
	faults.why = EINTR;
	assert_int_equal(file_read(path, NEW, &b, &e), 0);
	assert_true(faults.hit);
	faults_end();
	assert_int_equal(b.len, NEW);
	buf_release(&b);
	free(path);
}

/* One call of this kind is interrupted. */
static void interrupt(enum fault_call calls)
{
	faults_begin(folder);
	faults.calls = calls;
	faults.at = 1;
	faults.why = EINTR;
}

static void so_are_opening_and_syncing(void **state)
{
	char *path = old_file(), *other = mem_printf("%s/other", folder);
	struct err e = { 0 };
	int fd;

	(void)state;
	interrupt(FAULT_OPEN);
	fd = file_open_read(path);
	assert_true(fd >= 0 && faults.hit);
	close(fd);
	interrupt(FAULT_OPEN);
	fd = file_create(other, 0600);
	assert_true(fd >= 0 && faults.hit);
	interrupt(FAULT_SYNC);
	assert_int_equal(file_sync_opened(fd), 0);
	assert_true(faults.hit);
	close(fd);
	for (int k = 0; k < 4; k++) {
		interrupt(k % 2 == 0 ? FAULT_OPEN : FAULT_SYNC);
		assert_int_equal(k < 2 ? file_sync(path, &e) : file_sync_parent(path, &e), 0);
		assert_true(faults.hit);
	}
	faults_end();
	unlink(other);
	free(other);
	free(path);
}

static void a_read_that_fails_adds_nothing(void **state)
{
	char *path = old_file();
	struct buf b = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(atomic(path, &e), 0);
	buf_add(&b, "had", 3);
	faults_begin(folder);
	faults.calls = FAULT_READ;
	faults.at = 2; /* the first 64 KiB have been read */
	faults.why = EIO;
	assert_int_equal(file_read(path, NEW, &b, &e), ERR_IO);
	assert_true(faults.hit);
	faults_end();
	assert_int_equal(b.len, 3);
	assert_memory_equal(b.base, "had", 3);
	assert_non_null(strstr(e.text, strerror(EIO)));
	buf_release(&b);
	free(path);
}

/* stdio's own writes: the system takes no more than half of the file. */
static void a_sink_tells_that_the_disk_is_full(void **state)
{
	char *path = old_file();
	struct rlimit was, half;
	struct err e = { 0 };
	int rc;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	half = was;
	half.rlim_cur = NEW / 2;
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &half), 0);
	rc = through_sink(path, &e);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	signal(SIGXFSZ, SIG_DFL);
	assert_int_equal(rc, ERR_IO);
	assert_non_null(strstr(e.text, strerror(EFBIG)));
	assert_true(has(path, old_bytes, OLD));
	assert_int_equal(names_in(folder), 1);
	free(path);
}

static void a_parent_is_found_in_any_path(void **state)
{
	struct err e = { 0 };
	char *deep = mem_printf("%s/", folder);

	(void)state;
	assert_int_equal(file_sync_parent(deep, &e), 0); /* /tmp */
	assert_int_equal(file_sync_parent("/a", &e), 0);
	assert_int_equal(file_sync_parent("a", &e), 0);
	assert_int_equal(file_sync_parent("/nowhere/at/all", &e), ERR_IO);
	assert_non_null(strstr(e.text, "/nowhere/at: cannot sync"));
	free(deep);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_call_that_fails_is_told_and_leaves_the_old_file),
		cmocka_unit_test(what_was_written_is_on_disk_when_it_returns),
		cmocka_unit_test(a_sink_syncs_its_file_and_its_folder),
		cmocka_unit_test(short_writes_are_continued),
		cmocka_unit_test(an_interrupted_call_is_made_again),
		cmocka_unit_test(so_are_opening_and_syncing),
		cmocka_unit_test(a_read_that_fails_adds_nothing),
		cmocka_unit_test(a_sink_tells_that_the_disk_is_full),
		cmocka_unit_test(a_parent_is_found_in_any_path),
	};

	fill();
	return cmocka_run_group_tests_name("base/faults", tests, make_folder, remove_folder);
}
