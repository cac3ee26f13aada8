/* Whatever the system refuses while a store is written, the store says so and is the old one; when
 * it says that it has written, that is on disk.  Every call in turn fails, from the first on; of
 * the many reads and writes of whole files, which are alike, some. */
#include "tests/folder.h"
#include "tests/test.h"

#include <dirent.h>
#include <errno.h>
#include <sqlite3.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "store/db_internal.h"
#include "tests/faults.h"
#include "tests/store/world.h"

enum { VALUE = 20000 }; /* several pages */

enum { FEW = FAULT_OPEN | FAULT_SYNC | FAULT_CLOSE | FAULT_RENAME | FAULT_TRUNCATE };

static const int reasons[] = { EIO, ENOSPC, EDQUOT };
enum { REASONS = sizeof(reasons) / sizeof(reasons[0]) };

static char *template, *path, *beside;
static char value[VALUE];

static struct store *must_open(const char *at)
{
	struct store *s;
	struct err e = { 0 };

	if (store_open(&s, at, NULL, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

/* The file as SQLite has it, without what opening a store does: far quicker. */
static struct store *raw_open(const char *at)
{
	struct store *s = mem_array(1, sizeof(*s));

	s->lock = -1;
	s->path = mem_strdup(at);
	assert_int_equal(sqlite3_open(at, &s->db), SQLITE_OK);
	return s;
}

static size_t names_in(const char *at)
{
	DIR *d = opendir(at);
	size_t n = 0;

	assert_non_null(d);
	while (readdir(d) != NULL)
		n++;
	closedir(d);
	return n;
}

/* ---- what is written: the old one has a graph of three names, the new one of five ---- */

static struct graph *names(char last)
{
	struct graph *g = graph_new();

	for (char name[] = "a"; name[0] <= last; name[0]++)
		graph_vocab_add(g->entities, name, 1);
	graph_vocab_add(g->relations, "treats", 6);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	return g;
}

static int put_graph(struct store *s, struct err *e)
{
	struct graph *g = names('e');
	struct store_batch with = { 0 };
	int rc;

	store_batch_meta(&with, "core", value, VALUE);
	rc = store_put_graph(s, g, &with, e);
	store_batch_release(&with);
	graph_free(g);
	return rc;
}

static int graph_is(struct store *s)
{
	struct graph *g;
	struct err e = { 0 };
	uint32_t n;

	if (store_load_graph(s, &g, &e) != 0)
		fail_msg("%s", e.text);
	n = graph_vocab_count(g->entities);
	graph_free(g);
	return n == 3 ? 0 : n == 5 ? 1 : -1;
}

static int put_values(struct store *s, struct err *e)
{
	struct store_peer peer = { .key = { 1 }, .sign_key = { 2 }, .name = "gene bank" };
	struct store_batch b = { 0 };
	int rc;

	store_batch_peer(&b, &peer);
	store_batch_meta(&b, "core", value, VALUE);
	rc = store_apply(s, &b, e);
	store_batch_release(&b);
	return rc;
}

static int64_t count(struct store *s, const char *sql)
{
	int64_t n;
	struct err e = { 0 };

	if (db_number(s, &n, &e, sql) != 0)
		fail_msg("%s", e.text);
	return n;
}

/* Both or neither. */
static int values_are(struct store *s)
{
	int64_t peers = count(s, "SELECT count(*) FROM peer");
	int64_t bytes = count(s, "SELECT length(value) FROM meta WHERE key = 'core'");

	return peers == 0 && bytes == 3 ? 0 : peers == 1 && bytes == VALUE ? 1 : -1;
}

/* The graph and what is written with it: both or neither. */
static int graph_with_is(struct store *s)
{
	int is = graph_is(s);
	int64_t bytes = count(s, "SELECT length(value) FROM meta WHERE key = 'core'");

	return bytes == (is == 1 ? VALUE : 3) ? is : -1;
}

static int forget(struct store *s, struct err *e)
{
	static const uint32_t ent[3] = { 0, 1, 2 }, rel[1] = { 0 };
	struct graph *g = names('e');
	struct store_kept k = { .kept = g, .ent = ent, .rel = rel, .n_ent = 3, .n_rel = 1 };
	int rc = store_forget(s, &k, e);

	graph_free(g);
	return rc;
}

static const struct act {
	const char *name;
	int (*write)(struct store *s, struct err *e);
	int (*now)(struct store *s); /* 0: the old state; 1: the new one */
	size_t writes;		     /* at the least */
} acts[] = {
	{ "batch", put_values, values_are, 4 },
	{ "graph", put_graph, graph_with_is, 4 },
	{ "forget", forget, graph_is, 4 },
};

static int make_template(void **state)
{
	struct store_batch b = { 0 };
	struct graph *g = names('c');
	struct err e = { 0 };
	struct store *s;

	if (make_folder(state) != 0)
		return -1;
	template = file_join(folder, "template.db");
	path = file_join(folder, "store/store.db");
	beside = file_join(folder, "store");
	memset(value, 'v', VALUE);
	assert_int_equal(file_make_folder(beside, 0700, &e), 0);
	s = must_open(template);
	assert_int_equal(store_put_graph(s, g, NULL, &e), 0);
	store_batch_meta(&b, "core", "old", 3);
	assert_int_equal(store_apply(s, &b, &e), 0);
	store_batch_release(&b);
	store_close(s);
	graph_free(g);
	return 0;
}

static int remove_template(void **state)
{
	free(template);
	free(path);
	free(beside);
	return remove_folder(state);
}

/* The template's bytes in a folder of their own. */
static void fresh(void)
{
	struct buf b = { 0 };
	struct err e = { 0 };
	char *command = mem_printf("rm -f %s/*", beside);

	assert_int_equal(system(command), 0);
	assert_int_equal(file_read(template, (size_t)1 << 24, &b, &e), 0);
	assert_int_equal(file_write_unsynced(path, b.base, b.len, 0600, &e), 0);
	buf_release(&b);
	free(command);
}

/* ---- writing ---- */

static void told(const struct faults *seen, int rc, const struct err *e, const char *what)
{
	/* which is no damaged store */
	bool rights = seen->why == EACCES;
	bool why = rights || strstr(e->text, strerror(seen->why)) != NULL ||
		   (seen->why == ENOSPC && strstr(e->text, "full") != NULL);

	/* SQLite then opens what it cannot write for reading, and tells of that alone */
	if (seen->which == FAULT_OPEN && !seen->on) {
		assert_true(rc == ERR_IO || rc == ERR_STORE);
		assert_int_equal(e->code, rc);
		assert_non_null(strstr(e->text, beside));
		assert_null(strstr(e->text, "damaged"));
		return;
	}
	if (rc != (rights ? ERR_STORE : ERR_IO) || !why || e->code != rc ||
	    strstr(e->text, beside) == NULL)
		fail_msg("%s: call %zu (%d): %d, %s", what, seen->at, (int)seen->which, rc,
			 e->text);
}

/* SQLite goes on where the folder of a new log cannot be synced. */
static void on_disk(const struct faults *seen, const char *what)
{
	/* which mean nothing after a crash */
	static const char *const but[] = { "-shm", ".lock", NULL };
	const char *file = faults_unsynced(but);

	if (file != NULL && !seen->on_folder)
		fail_msg("%s: done, and %s is not synced", what, file);
}

/* One of `calls` fails, the k-th; false: there are not so many. */
static bool one_fault(const struct act *a, unsigned calls, size_t k, int why)
{
	struct err e = { 0 };
	struct faults seen;
	struct store *s;
	int rc;

	fresh();
	s = must_open(path);
	faults_begin(beside);
	faults.calls = calls;
	faults.at = k;
	faults.why = why;
	rc = a->write(s, &e);
	seen = faults;
	if (rc != 0)
		told(&seen, rc, &e, a->name);
	else
		on_disk(&seen, a->name);
	faults_end();
	assert_true(rc == 0 || seen.hit);
	assert_int_equal(a->now(s), rc == 0);
	/* and it goes on as if nothing had been */
	if (rc != 0 && k % 4 == 1) {
		assert_int_equal(a->write(s, &e), 0);
		rc = 0;
	}
	store_close(s);
	s = raw_open(path);
	assert_int_equal(a->now(s), rc == 0);
	store_close(s);
	return seen.hit;
}

static void a_write_is_all_there_or_not_at_all(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		size_t few = 1, writes = 1, reads = 1;

		while (one_fault(&acts[i], FEW, few, reasons[few % REASONS]))
			few++;
		while (one_fault(&acts[i], FAULT_WRITE, writes, reasons[writes % REASONS]))
			writes += 1 + writes / 4;
		while (one_fault(&acts[i], FAULT_READ, reads, EIO))
			reads += 1 + reads / 2;
		if (few < 2 || writes <= acts[i].writes || reads < 2)
			fail_msg("%s: %zu, %zu, %zu", acts[i].name, few, writes, reads);
	}
}

/* What is in the log and could not be synced is there, unless the log could still be emptied. */
static bool one_unsynced(size_t k, size_t *there)
{
	struct err e = { 0 };
	struct store *s;
	bool hit;
	int rc;

	fresh();
	s = must_open(path);
	faults_begin(beside);
	faults.calls = FAULT_SYNC;
	faults.at = k;
	faults.on = true;
	faults.why = EIO;
	rc = put_values(s, &e);
	hit = faults.hit;
	store_close(s);
	faults_end();
	s = raw_open(path);
	if (rc != 0 && values_are(s) == 1) {
		*there += 1;
		assert_non_null(strstr(e.text, "may have been done all the same"));
	}
	store_close(s);
	return hit;
}

static void what_may_be_there_is_not_called_undone(void **state)
{
	size_t there = 0, k = 1;

	(void)state;
	while (one_unsynced(k, &there))
		k++;
	assert_true(there > 0);
}

static void short_writes_are_continued(void **state)
{
	struct err e = { 0 };
	struct store *s;

	(void)state;
	for (size_t i = 0; i < sizeof(acts) / sizeof(acts[0]); i++) {
		fresh();
		s = must_open(path);
		faults_begin(beside);
		faults.short_writes = true;
		assert_int_equal(acts[i].write(s, &e), 0);
		faults_end();
		store_close(s);
		s = raw_open(path);
		assert_int_equal(acts[i].now(s), 1);
		store_close(s);
	}
}

/* ---- opening: of a store that is up to date, and of an older one ---- */

static void make_older(int version)
{
	struct store old = { .lock = -1, .path = path };
	struct err e = { 0 };

	assert_int_equal(unlink(path), 0);
	assert_int_equal(sqlite3_open(path, &old.db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(old.db, "PRAGMA application_id = 1718314853", NULL, NULL, NULL),
		SQLITE_OK);
	assert_int_equal(db_migrate(&old, version, &e), 0);
	assert_int_equal(db_put_info(&old, "kept", "yes", 3, &e), 0);
	sqlite3_close(old.db);
}

static bool one_opening(int version, enum store_mode mode, const struct faults *set)
{
	struct store_options o = { .mode = mode };
	uint8_t kept[3] = { 0 };
	struct err e = { 0 };
	struct faults seen;
	struct store *s;
	int rc;

	fresh();
	if (version < db_version)
		make_older(version);
	faults_begin(beside);
	faults.calls = set->calls;
	faults.at = set->at;
	faults.why = set->why;
	faults.on = set->on;
	rc = store_open(&s, path, &o, &e);
	seen = faults;
	if (rc != 0)
		told(&seen, rc, &e, "opening");
	else
		on_disk(&seen, "opening");
	faults_end();
	assert_true(rc == 0 || seen.hit);
	store_close(s);
	s = raw_open(path);
	if (version < db_version) {
		assert_int_equal(db_get_info(s, "kept", kept, 3, &e), 0);
		assert_memory_equal(kept, "yes", 3);
	} else {
		assert_int_equal(graph_is(s), 0);
	}
	store_close(s);
	return seen.hit;
}

static void opening_says_what_fails_and_loses_nothing(void **state)
{
	(void)state;
	for (int version = db_version - 1; version <= db_version; version++) {
		size_t few = 1, many = 1;

		while (one_opening(version, STORE_OWN,
				   &(struct faults){ .calls = FEW, .at = few, .why = EIO }))
			few++;
		while (one_opening(version, STORE_OWN,
				   &(struct faults){ .calls = FAULT_READ | FAULT_WRITE,
						     .at = many,
						     .why = EIO }))
			many += 1 + many / 2;
		assert_true(few > 8 && many > 5);
	}
}

/* Too few descriptors, a full disk: also for who reads. */
static void what_runs_out_is_no_damage(void **state)
{
	static const struct faults out[] = { { .calls = FAULT_OPEN, .why = EACCES, .on = true },
					     { .calls = FAULT_OPEN, .why = EMFILE, .on = true },
					     { .calls = FAULT_OPEN, .why = ENFILE, .on = true },
					     { .calls = FAULT_WRITE, .why = ENOSPC, .on = true },
					     { .calls = FAULT_WRITE, .why = EDQUOT, .on = true } };

	(void)state;
	for (size_t i = 0; i < sizeof(out) / sizeof(out[0]); i++)
		for (int mode = STORE_OWN; mode <= STORE_READ; mode++) {
			struct faults set = out[i];

			set.at = 1;
			while (one_opening(db_version, (enum store_mode)mode, &set))
				set.at++;
			if (set.at < 2)
				fail_msg("%zu, %d", i, mode);
		}
}

/* ---- files beside it ---- */

static bool one_copy(struct store *s, unsigned calls, size_t k, int why)
{
	char *copy = file_join(beside, "copy.db");
	struct store *c;
	struct err e = { 0 };
	struct faults seen;
	size_t had = names_in(beside);
	int rc;

	faults_begin(beside);
	faults.calls = calls;
	faults.at = k;
	faults.why = why;
	rc = store_copy(s, copy, &e);
	seen = faults;
	if (rc != 0)
		told(&seen, rc, &e, "copy");
	else
		on_disk(&seen, "copy");
	faults_end();
	assert_true(rc == 0 || seen.hit);
	if (rc != 0 && seen.which == FAULT_WRITE && why == ENOSPC)
		assert_int_equal(rc, ERR_IO);
	assert_int_equal(names_in(beside), had + (rc == 0));
	if (rc == 0) {
		c = raw_open(copy);
		assert_int_equal(graph_is(c), 0);
		store_close(c);
		unlink(copy);
	}
	free(copy);
	return seen.hit;
}

static void a_copy_is_whole_or_not_there(void **state)
{
	size_t few = 1, many = 1;
	struct store *s;

	(void)state;
	fresh();
	s = must_open(path);
	while (one_copy(s, FEW, few, EIO))
		few++;
	while (one_copy(s, FAULT_READ | FAULT_WRITE, many, ENOSPC))
		many += 1 + many / 2;
	store_close(s);
	assert_true(few > 8 && many > 20);
}

static bool one_identity(const struct store_identity *id, size_t k, int why)
{
	char *key = file_join(beside, "identity");
	struct store_identity *loaded;
	struct err e = { 0 };
	struct faults seen;
	int rc;

	fresh();
	faults_begin(beside);
	faults.at = k;
	faults.why = why;
	rc = store_identity_save(id, key, &e);
	seen = faults;
	faults_end();
	assert_true(rc == 0 || (rc == ERR_IO && seen.hit));
	if (rc == 0 || seen.renamed_before > 0) {
		assert_int_equal(store_identity_load(&loaded, key, &e), 0);
		assert_memory_equal(loaded->key, id->key, IDENTITY_KEY);
		store_identity_free(loaded);
	} else {
		assert_int_equal(store_identity_load(&loaded, key, &e), ERR_NOTFOUND);
	}
	free(key);
	return seen.hit;
}

static void an_identity_is_whole_or_not_there(void **state)
{
	struct store_identity *id = store_identity_new();
	struct err e = { 0 };
	char *key = file_join(beside, "identity");
	struct store_identity *loaded;
	size_t k = 1;

	(void)state;
	while (one_identity(id, k, EIO))
		k++;
	assert_true(k > 5);
	faults_begin(beside);
	faults.calls = FAULT_READ;
	faults.at = 1;
	faults.why = EIO;
	assert_int_equal(store_identity_load(&loaded, key, &e), ERR_IO);
	assert_null(loaded);
	faults_end();
	store_identity_free(id);
	free(key);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_write_is_all_there_or_not_at_all),
		cmocka_unit_test(what_may_be_there_is_not_called_undone),
		cmocka_unit_test(short_writes_are_continued),
		cmocka_unit_test(opening_says_what_fails_and_loses_nothing),
		cmocka_unit_test(what_runs_out_is_no_damage),
		cmocka_unit_test(a_copy_is_whole_or_not_there),
		cmocka_unit_test(an_identity_is_whole_or_not_there),
	};

	return cmocka_run_group_tests_name("store/faults", tests, make_template, remove_template);
}
