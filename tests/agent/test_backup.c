/* A backup that is put back says of itself that it was, whatever the system refuses meanwhile: else
 * what was spent after it would be spent again. */
#include "tests/folder.h"
#include "tests/test.h"

#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <sys/file.h>

#include "agent/backup.h"
#include "base/file.h"
#include "tests/faults.h"

static char *agent, *saved, *into;
static const struct {
	unsigned calls;
	size_t leap; /* each time further by a leap-th of how far it is */
} kinds[] = { { FAULT_WRITE, 16 },
	      { FAULT_SYNC | FAULT_TRUNCATE | FAULT_RENAME, 8 },
	      { FAULT_OPEN, 4 },
	      { FAULT_READ, 2 } };

/* An agent with one partner, and a backup of it. */
static void make_agent(void)
{
	static const char config[] = "name: a\n";
	struct store_identity *id = store_identity_new();
	struct store_options o = { .mode = STORE_OWN, .owner = id->account };
	struct store_peer p = { .key = { 1 }, .sign_key = { 2 }, .status = STORE_LISTED };
	struct store_batch b = { 0 };
	struct folder f;

	assert_int_equal(file_make_folder(agent, 0700, NULL), 0);
	folder_paths(&f, agent);
	assert_int_equal(store_identity_save(id, f.identity_path, NULL), 0);
	assert_int_equal(file_write_atomic(f.config_path, config, sizeof(config) - 1, 0600, NULL),
			 0);
	assert_int_equal(store_open(&f.store, f.store_path, &o, NULL), 0);
	store_batch_peer(&b, &p);
	assert_int_equal(store_apply(f.store, &b, NULL), 0);
	store_batch_release(&b);
	folder_close(&f);
	store_identity_free(id);
}

static int make_backup(void **state)
{
	struct folder f;
	struct backup b;
	struct err e = { 0 };

	if (make_folder(state) != 0)
		return -1;
	agent = file_join(folder, "a");
	saved = file_join(folder, "saved");
	into = file_join(folder, "r");
	make_agent();
	if (folder_open(&f, agent, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, &e) != 0 ||
	    backup_make(&f, saved, 1, &b, &e) != 0)
		fail_msg("%s", e.text);
	folder_close(&f);
	return 0;
}

static int remove_backup(void **state)
{
	free(agent);
	free(saved);
	free(into);
	return remove_folder(state);
}

/* What lies under the agent's name is none, or one that was restored. */
static void must_be_marked(size_t call)
{
	struct store_restored r;
	struct err e = { 0 };
	struct folder f;
	char *config = file_join(into, "agent.yaml");

	if (file_exists(config)) {
		if (folder_open(&f, into, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_READ, &e) != 0 ||
		    store_check(f.store, &e) != 0 || store_restored(f.store, &r, &e) != 0)
			fail_msg("call %zu: %s", call, e.text);
		if (!r.is || r.n_waits != 1)
			fail_msg("call %zu: not marked", call);
		store_restored_release(&r);
		folder_close(&f);
	}
	free(config);
}

/* The k-th call of this kind fails, of those below `where`; false: there are not so many. */
static bool one_restore(const char *where, unsigned calls, size_t k, int why, int *rc,
			struct err *e)
{
	struct backup b;
	bool hit;

	faults_begin(where);
	faults.calls = calls;
	faults.at = k;
	faults.why = why;
	*rc = backup_restore(saved, into, &b, e);
	hit = faults.hit;
	faults_end();
	assert_true(*rc == 0 || hit || k == 0);
	return hit;
}

static void a_restored_store_says_so(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		struct err e = { 0 };
		size_t k = 1;
		int rc;

		while (one_restore(into, kinds[i].calls, k, EIO, &rc, &e)) {
			must_be_marked(k);
			file_remove_folder(into);
			k += 1 + k / kinds[i].leap;
		}
		must_be_marked(k);
		assert_int_equal(rc, 0);
		assert_true(k > 1);
		file_remove_folder(into);
	}
}

static void short_writes_are_continued(void **state)
{
	struct backup b;
	struct err e = { 0 };

	(void)state;
	faults_begin(into);
	faults.short_writes = true;
	if (backup_restore(saved, into, &b, &e) != 0)
		fail_msg("%s", e.text);
	faults_end();
	must_be_marked(0);
	file_remove_folder(into);
}

/* SQLite does not sync again: of that, the files that are copied alone. */
static void interrupted_calls_are_made_again(void **state)
{
	static const struct {
		unsigned of;
		size_t leap, most;
	} calls[] = { { FAULT_OPEN, 10, 1000 },
		      { FAULT_READ, 2, 1000 },
		      { FAULT_WRITE, 2, 1000 },
		      { FAULT_SYNC, 12, 3 } };

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
		struct err e = { 0 };
		bool hit = true;
		int rc;

		for (size_t k = 1; hit && k <= calls[i].most; k += 1 + k / calls[i].leap) {
			hit = one_restore(folder, calls[i].of, k, EINTR, &rc, &e);
			if (rc != 0)
				fail_msg("%u, call %zu: %s", calls[i].of, k, e.text);
			file_remove_folder(into);
		}
	}
}

/* ---- one that was cut off ---- */

static char *make_left(void)
{
	char *left = file_join(into, ".restore.abc123"), *key = file_join(left, "identity.key");
	struct err e = { 0 };

	assert_int_equal(file_make_folder(left, 0700, &e), 0);
	assert_int_equal(file_write_unsynced(key, "key", 3, 0600, &e), 0);
	free(key);
	return left;
}

static void what_was_cut_off_makes_room(void **state)
{
	char *left = make_left();
	struct err e = { 0 };
	int rc;

	(void)state;
	one_restore(into, 0, 0, 0, &rc, &e);
	assert_int_equal(rc, 0);
	assert_false(file_exists(left));
	must_be_marked(0);
	file_remove_folder(into);
	free(left);
}

static void what_is_under_way_does_not(void **state)
{
	char *left = make_left();
	struct err e = { 0 };
	int fd = open(left, O_RDONLY | O_DIRECTORY), rc;

	(void)state;
	assert_int_equal(flock(fd, LOCK_EX), 0);
	one_restore(into, 0, 0, 0, &rc, &e);
	assert_int_equal(rc, ERR_BUSY);
	assert_non_null(strstr(e.text, left));
	assert_true(file_exists(left));
	close(fd);
	file_remove_folder(into);
	free(left);
}

static void beside_other_files_it_is_named(void **state)
{
	char *left = make_left(), *other = file_join(into, "notes");
	struct err e = { 0 };
	int rc;

	(void)state;
	assert_int_equal(file_write_unsynced(other, "mine", 4, 0600, &e), 0);
	one_restore(into, 0, 0, 0, &rc, &e);
	assert_int_equal(rc, ERR_EXISTS);
	assert_non_null(strstr(e.text, left));
	assert_true(file_exists(left) && file_exists(other));
	file_remove_folder(into);
	free(other);
	free(left);
}

/* The list as whoever puts another agent's beside these files would write it. */
static void rewrite_list(const uint8_t *key)
{
	char *path = file_join(saved, "backup.txt"), hex[65];
	uint8_t end[32];
	struct buf list = { 0 };
	char *at;

	assert_int_equal(file_read(path, 1 << 16, &list, NULL), 0);
	buf_add(&list, "", 1);
	at = strstr((char *)list.base, "\nagent ");
	assert_non_null(at);
	memcpy(at + 7, sodium_bin2hex(hex, sizeof(hex), key, 32), 64);
	at = strstr((char *)list.base, "\nend ");
	assert_non_null(at);
	crypto_generichash(end, sizeof(end), list.base, (size_t)(at + 1 - (char *)list.base), NULL,
			   0);
	memcpy(at + 5, sodium_bin2hex(hex, sizeof(hex), end, 32), 64);
	assert_int_equal(file_write_atomic(path, list.base, list.len - 1, 0600, NULL), 0);
	buf_release(&list);
	free(path);
}

static void the_list_is_of_this_agent(void **state)
{
	static const uint8_t other[IDENTITY_KEY] = { 7 };
	struct backup b;
	struct err e = { 0 };
	uint8_t own[IDENTITY_KEY];

	(void)state;
	assert_int_equal(backup_check(saved, &b, &e), 0);
	memcpy(own, b.sign_key, sizeof(own));
	rewrite_list(other);
	assert_int_equal(backup_check(saved, &b, &e), ERR_STORE);
	assert_non_null(strstr(e.text, "identity.key is not that of the agent in"));
	assert_int_equal(backup_restore(saved, into, &b, &e), ERR_STORE);
	rewrite_list(own);
	assert_int_equal(backup_check(saved, &b, &e), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_restored_store_says_so),
		cmocka_unit_test(short_writes_are_continued),
		cmocka_unit_test(interrupted_calls_are_made_again),
		cmocka_unit_test(what_was_cut_off_makes_room),
		cmocka_unit_test(what_is_under_way_does_not),
		cmocka_unit_test(beside_other_files_it_is_named),
		cmocka_unit_test(the_list_is_of_this_agent),
	};

	return cmocka_run_group_tests_name("agent/backup", tests, make_backup, remove_backup);
}
