#include "tests/folder.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "store/db_internal.h"
#include "tests/store/world.h"

/* A path of its own for each test. */
static char *new_path(void)
{
	static int n;

	return mem_printf("%s/%d.db", folder, n++);
}

static struct store *must_open(const char *path, const struct world *w)
{
	struct store_options o = { .owner = w != NULL ? world_key(w, 0) : NULL };
	struct store *s;
	struct err e = { 0 };

	if (store_open(&s, path, &o, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

static void must_apply(struct store *s, struct store_batch *b)
{
	struct err e = { 0 };

	if (store_apply(s, b, &e) != 0)
		fail_msg("%s", e.text);
	store_batch_release(b);
}

static int raw(const char *path, const char *sql)
{
	sqlite3 *db;
	int rc;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	rc = sqlite3_exec(db, sql, NULL, NULL, NULL);
	sqlite3_close(db);
	return rc;
}

static struct buf raw_schema(const char *path)
{
	struct buf out = { 0 };
	sqlite3_stmt *st;
	sqlite3 *db;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, "SELECT name, sql FROM sqlite_schema ORDER BY name",
					    -1, &st, NULL),
			 SQLITE_OK);
	while (sqlite3_step(st) == SQLITE_ROW)
		buf_printf(&out, "%s: %s\n", sqlite3_column_text(st, 0),
			   sqlite3_column_text(st, 1));
	sqlite3_finalize(st);
	sqlite3_close(db);
	return out;
}

/* ---- versions ---- */

enum { WITH_SESSIONS = 4 };

/* Ids of which the last byte counts from 1. */
static const char old_sessions[] =
	"INSERT OR IGNORE INTO session VALUES"
	" (x'00000000000000000000000000000001',"
	" x'0900000000000000000000000000000000000000000000000000000000000000',"
	" 1, 0, 1, 7, 8, 10, 11, 1.5, 0, 'over'),"
	" (x'00000000000000000000000000000002',"
	" x'0900000000000000000000000000000000000000000000000000000000000000',"
	" 1, 0, 1, 7, 8, 10, 11, 1.5, 0, 'over')";

/* A store as an older fkge would have left it. */
static void make_older(const char *path, int version)
{
	struct store old = { .lock = -1 };
	struct err e = { 0 };

	old.path = mem_strdup(path);
	assert_int_equal(sqlite3_open(path, &old.db), SQLITE_OK);
	assert_int_equal(
		sqlite3_exec(old.db, "PRAGMA application_id = 1718314853", NULL, NULL, NULL),
		SQLITE_OK);
	if (db_migrate(&old, version, &e) != 0)
		fail_msg("%s", e.text);
	if (version >= 1)
		assert_int_equal(db_put_info(&old, "kept", "yes", 3, &e), 0);
	if (version >= WITH_SESSIONS)
		assert_int_equal(sqlite3_exec(old.db, old_sessions, NULL, NULL, NULL), SQLITE_OK);
	sqlite3_close(old.db);
	free(old.path);
}

/* As old_sessions has them, the newest first. */
static void old_sessions_are_there(struct store *s)
{
	struct store_session *at;
	struct err e = { 0 };
	size_t n;

	assert_int_equal(store_sessions(s, SIZE_MAX, &at, &n, &e), 0);
	assert_int_equal(n, 2);
	for (size_t k = 0; k < 2; k++) {
		assert_int_equal(at[k].id[15], 2 - k);
		assert_int_equal(at[k].peer[0], 9);
		assert_int_equal(at[k].role, STORE_CLIENT);
		assert_int_equal(at[k].state, STORE_DONE);
		assert_int_equal(at[k].started_ms, 7);
		assert_int_equal(at[k].finished_ms, 8);
		assert_int_equal(at[k].bytes_in, 10);
		assert_int_equal(at[k].bytes_out, 11);
		assert_true(at[k].seconds == 1.5);
		assert_string_equal(at[k].reason, "over");
	}
	free(at);
}

static void every_older_version_is_migrated_after_a_backup(void **state)
{
	char *fresh = new_path();
	struct buf want, have;
	struct err e = { 0 };

	(void)state;
	store_close(must_open(fresh, NULL));
	want = raw_schema(fresh);
	assert_true(want.len > 1000);
	for (int version = 0; version < db_version; version++) {
		char *path = new_path(), *backup = mem_printf("%s.v%d.bak", path, version);
		uint8_t kept[3] = { 0 };
		struct store *s;

		make_older(path, version);
		s = must_open(path, NULL);
		have = raw_schema(path);
		assert_string_equal(have.base, want.base);
		assert_int_equal(file_exists(backup), version > 0);
		if (version > 0) {
			assert_int_equal(db_get_info(s, "kept", kept, 3, &e), 0);
			assert_memory_equal(kept, "yes", 3);
			make_older(backup, version); /* still of that version: nothing to do */
		}
		if (version >= WITH_SESSIONS)
			old_sessions_are_there(s);
		store_close(s);
		buf_release(&have);
		free(path);
		free(backup);
	}
	buf_release(&want);
	free(fresh);
}

static void a_newer_store_is_refused_and_left_alone(void **state)
{
	char *path = new_path();
	struct buf before = { 0 }, after = { 0 };
	struct store *s;
	struct err e;

	(void)state;
	store_close(must_open(path, NULL));
	assert_int_equal(raw(path, "PRAGMA user_version = 1000"), SQLITE_OK);
	assert_int_equal(file_read(path, 1 << 24, &before, &e), 0);
	assert_int_equal(store_open(&s, path, NULL, &e), ERR_NEWER);
	assert_null(s);
	assert_non_null(strstr(e.text, "version 1000"));
	assert_int_equal(file_read(path, 1 << 24, &after, &e), 0);
	assert_int_equal(before.len, after.len);
	assert_memory_equal(before.base, after.base, before.len);
	buf_release(&before);
	buf_release(&after);
	free(path);
}

static void what_is_no_store_is_refused(void **state)
{
	struct store_options reading = { .mode = STORE_READ };
	char *path = new_path();
	struct store *s;
	struct err e;

	(void)state;
	assert_int_equal(store_open(&s, path, &reading, &e), ERR_NOTFOUND);
	assert_int_equal(raw(path, "CREATE TABLE theirs (x)"), SQLITE_OK);
	assert_int_equal(store_open(&s, path, NULL, &e), ERR_STORE);
	assert_non_null(strstr(e.text, "another program"));
	assert_int_equal(
		file_write_atomic(path, "this is text, and quite enough of it", 36, 0600, &e), 0);
	assert_int_equal(store_open(&s, path, NULL, &e), ERR_STORE);
	assert_non_null(strstr(e.text, path));
	assert_int_equal(store_open(&s, "/nowhere/at/all", NULL, &e), ERR_STORE);
	free(path);
}

/* ---- one owner ---- */

static void two_processes_cannot_own_one_store(void **state)
{
	char *path = new_path();
	struct store *s = must_open(path, NULL), *other;
	struct store_options reading = { .mode = STORE_READ };
	struct store_batch b = { 0 };
	struct stat st;
	struct err e;
	int status;
	pid_t pid;

	(void)state;
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		int rc = store_open(&other, path, NULL, &e);

		_exit(rc == ERR_BUSY && strstr(e.text, "in use by another process") != NULL ? 0
											    : 1);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	/* Reading beside the owner is fine; writing is not. */
	assert_int_equal(store_open(&other, path, &reading, &e), 0);
	store_batch_meta(&b, "x", "y", 1);
	assert_int_equal(store_apply(other, &b, &e), ERR_STORE);
	store_batch_release(&b);
	store_close(other);
	store_close(s);
	store_close(must_open(path, NULL));
	free(path);
}

/* As another process sees them: SQLite would let it delete the log. */
static bool has_locks(const char *path)
{
	struct flock lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	int status, fd;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		fd = open(path, O_RDWR);
		_exit(fd >= 0 && fcntl(fd, F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK ? 1 : 0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status != 0;
}

/* HTTP reads the store in the process of the agent that owns it. */
static void an_owner_that_reads_keeps_its_locks(void **state)
{
	char *path = new_path();
	struct store *s = must_open(path, NULL), *other;
	struct store_options reading = { .mode = STORE_READ };
	struct err e;

	(void)state;
	assert_true(has_locks(path));
	assert_int_equal(store_open(&other, path, &reading, &e), 0);
	assert_true(has_locks(path));
	store_close(other);
	assert_true(has_locks(path));
	store_close(s);
	assert_false(has_locks(path));
	free(path);
}

static void a_store_belongs_to_one_identity(void **state)
{
	struct store_options o = { 0 };
	char *path = new_path();
	struct store *s;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	store_close(must_open(path, &w));
	o.owner = world_key(&w, 1);
	assert_int_equal(store_open(&s, path, &o, &e), ERR_IDENTITY);
	store_close(must_open(path, &w));
	store_close(must_open(path, NULL));
	world_release(&w);
	free(path);
}

/* ---- a batch and what a restarting core gets back ---- */

static void fill(struct store_batch *b, struct world *w)
{
	struct store_peer peer = { .name = "gene bank",
				   .address = "10.0.0.2:7447",
				   .status = STORE_LISTED,
				   .seen_ms = 77 };
	struct store_slot slots[] = { { 5, 'e' }, { 0xfffffffe, 'e' }, { 1, 'r' } };
	struct store_alignment a = { .slots = slots, .n = 3 };
	struct store_session x = { .role = STORE_CLIENT,
				   .translator = LEDGER_PROCRUSTES,
				   .state = STORE_OPEN,
				   .started_ms = 5,
				   .bytes_in = 1u << 31,
				   .seconds = 0.1,
				   .outcome = -7,
				   .reason = "so far" };

	for (uint8_t k = 1; k <= 3; k++) {
		memset(peer.key, k, 32);
		memset(peer.sign_key, 16 * k, 32);
		store_batch_peer(b, &peer);
		store_batch_signal(b, peer.key, 100 + k);
		memset(a.peer, k, 32);
		memset(a.version, 2 * k, 32);
		store_batch_alignment(b, &a);
		memset(x.id, k, 16);
		x.state = k == 2 ? STORE_DONE : STORE_OPEN;
		x.started_ms = k;
		store_batch_session(b, &x);
	}
	store_batch_member(b, peer.key, "record", 6);
	store_batch_member(b, (const uint8_t *)"a key of thirty two bytes length", "old", 3);
	store_batch_member(b, (const uint8_t *)"a key of thirty two bytes length", NULL, 0);
	store_batch_meta(b, "core", "state", 5);
	store_batch_meta(b, "none", "", 0);
	store_batch_entry(b, world_add(w, LEDGER_CONTRACT, 0, 1, 1, 0));
	w->countersign = false;
	store_batch_entry(b, world_add(w, LEDGER_RESERVE, 0, 1, 2, 32));
}

static void check_core(const struct store_core *c, struct world *w)
{
	const struct ledger_chain *mine = world_chain(w, 0, 1);
	uint8_t three[32];

	memset(three, 3, 32);
	assert_int_equal(c->n_peers, 3);
	assert_memory_equal(c->peers[2].key, three, 32);
	assert_string_equal(c->peers[2].name, "gene bank");
	assert_string_equal(c->peers[2].address, "10.0.0.2:7447");
	assert_int_equal(c->peers[2].status, STORE_LISTED);
	assert_int_equal(c->peers[2].seen_ms, 77);
	assert_int_equal(c->n_members, 1);
	assert_memory_equal(c->members[0].record, "record", 6);
	assert_int_equal(c->n_alignments, 3);
	assert_int_equal(c->alignments[2].slots[1].id, 0xfffffffe);
	assert_int_equal(c->alignments[2].slots[2].tag, 'r');
	assert_int_equal(c->alignments[2].version[0], 6);
	assert_int_equal(c->n_open, 2);
	assert_int_equal(c->open[1].id[0], 3);
	assert_int_equal(c->open[1].outcome, -7);
	assert_int_equal(c->open[1].bytes_in, 1u << 31);
	assert_string_equal(c->open[1].reason, "so far");
	assert_int_equal(c->n_meta, 2);
	assert_memory_equal(c->meta[0].base, "state", 5);
	assert_int_equal(c->meta[1].len, 0);
	assert_false(c->has_best);
	assert_int_equal(c->n_chains, 1);
	assert_memory_equal(c->chains[0]->head, mine->head, 32);
	assert_int_equal(c->chains[0]->countersigned, mine->countersigned);
	assert_int_equal(c->chains[0]->n_tail, mine->n_tail);
	assert_int_equal(c->chains[0]->n_open, 1);
}

static void a_peers_signing_key_stays(void **state)
{
	char *path = new_path();
	struct store_batch b = { 0 };
	struct store_peer p = { .key = { 1 }, .sign_key = { 2 }, .status = STORE_LISTED };
	struct store_core core;
	struct store *s;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	s = must_open(path, &w);
	store_batch_peer(&b, &p);
	must_apply(s, &b);
	memset(p.sign_key, 0, STORE_KEY); /* by who has not heard of it */
	p.status = STORE_REVOKED;
	store_batch_peer(&b, &p);
	must_apply(s, &b);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_peers, 1);
	assert_int_equal(core.peers[0].status, STORE_REVOKED);
	assert_int_equal(core.peers[0].sign_key[0], 2);
	store_core_release(&core);
	store_batch_unpeer(&b, p.key);
	store_batch_peer(&b, &p); /* another one by that key */
	must_apply(s, &b);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.peers[0].sign_key[0], 0);
	store_core_release(&core);
	assert_int_equal(store_check(s, &e), 0);
	store_close(s);
	world_release(&w);
	free(path);
}

/* A host chooses the id: one that it knows of another session keeps none off the record. */
static void a_session_is_on_record_beside_another_of_its_id(void **state)
{
	char *path = new_path();
	struct store_session x = { .id = { 5 }, .role = STORE_HOST, .state = STORE_DONE };
	struct store_batch b = { 0 };
	struct store_session *at;
	struct store_core core;
	struct store *s;
	struct world w;
	struct err e = { 0 };
	size_t n;

	(void)state;
	world_init(&w);
	s = must_open(path, &w);
	x.peer[0] = 1;
	x.started_ms = 1;
	store_batch_session(&b, &x);
	x.peer[0] = 2;
	x.role = STORE_CLIENT;
	x.state = STORE_OPEN;
	x.started_ms = 2;
	store_batch_session(&b, &x);
	must_apply(s, &b);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_open, 1);
	store_core_release(&core);
	x.state = STORE_ABORTED;
	store_batch_session(&b, &x);
	must_apply(s, &b);
	assert_int_equal(store_sessions(s, SIZE_MAX, &at, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_int_equal(at[0].state, STORE_ABORTED);
	assert_int_equal(at[1].state, STORE_DONE);
	free(at);
	store_close(s);
	world_release(&w);
	free(path);
}

static void a_restarting_core_gets_everything_back(void **state)
{
	char *path = new_path();
	struct store_batch b = { 0 }, more = { 0 };
	struct store_session *sessions;
	struct store_core core;
	struct buf value = { 0 };
	struct store *s;
	struct world w;
	struct err e;
	size_t n;

	(void)state;
	world_init(&w);
	s = must_open(path, &w);
	fill(&more, &w);
	store_batch_move(&b, &more);
	assert_int_equal(more.n, 0);
	must_apply(s, &b);
	store_close(s);
	s = must_open(path, &w);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	check_core(&core, &w);
	assert_int_equal(core.n_queue, 3);
	/* The countersignature arrives later; a peer served goes to the end when it signals again.
	 */
	ledger_countersign(&w.entry[1], w.id[1]->sign_secret);
	store_batch_countersign(&b, w.entry[1].hash, w.entry[1].countersignature);
	store_batch_signal(&b, core.queue[1].peer, 999); /* keeps its place */
	store_batch_unsignal(&b, core.queue[0].peer);
	store_batch_signal(&b, core.queue[0].peer, 1000);
	must_apply(s, &b);
	store_core_release(&core);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.chains[0]->n_tail, 0);
	assert_int_equal(core.queue[0].peer[0], 2);
	assert_int_equal(core.queue[0].time_ms, 102);
	assert_int_equal(core.queue[2].peer[0], 1);
	store_core_release(&core);
	assert_int_equal(store_sessions(s, 2, &sessions, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_int_equal(sessions[0].id[0], 3);
	free(sessions);
	assert_int_equal(store_meta(s, "core", &value, &e), 0);
	assert_memory_equal(value.base, "state", 5);
	assert_int_equal(store_meta(s, "other", &value, &e), ERR_NOTFOUND);
	buf_release(&value);
	assert_int_equal(store_check(s, &e), 0);
	store_close(s);
	world_release(&w);
	free(path);
}

/* ---- the ledger on disk ---- */

static struct store_round some_round(struct store_round_member *m, uint8_t id, uint64_t number)
{
	struct store_round r = { .id = { id },
				 .number = number,
				 .method = "fedlu",
				 .hosted = true,
				 .secret_bits = 64,
				 .proposer = { 3 },
				 .started_ms = 10,
				 .finished_ms = 20 + id,
				 .train_ms = 7,
				 .outcome = -3,
				 .reason = "why not",
				 .items = 11,
				 .answered = 12,
				 .homed = 13,
				 .params_up = 14,
				 .params_down = 1ull << 40,
				 .clipped = 15,
				 .spoiled = 16,
				 .scored = true,
				 .score = 0.25,
				 .n_members = 1,
				 .n_participants = 2,
				 .members = m };

	m[0] = (struct store_round_member){ .key = { 1 },
					    .rows_out = 1,
					    .rows_in = 2,
					    .floats_out = 3,
					    .floats_in = 4,
					    .bytes_out = 5,
					    .bytes_in = 6,
					    .refused = "not its" };
	m[1] = (struct store_round_member){ .key = { 2 },
					    .fate = 1,
					    .rows_out = 7,
					    .rows_in = 8,
					    .floats_out = 9,
					    .floats_in = 10,
					    .bytes_out = 11,
					    .bytes_in = 12 };
	return r;
}

static void rounds_come_back(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	struct store_round_member m[2];
	struct store_round first = some_round(m, 1, 5), second = some_round(m, 2, 6), *back;
	struct store_batch b = { 0 };
	struct err e;
	size_t n;

	(void)state;
	store_batch_round(&b, &first);
	store_batch_round(&b, &second);
	m[1].rows_in = 99;
	store_batch_round(&b, &second); /* in its own place */
	must_apply(s, &b);
	assert_int_equal(store_rounds(s, 1, &back, &n, &e), 0);
	assert_int_equal(n, 1);
	assert_int_equal(back[0].number, 6);
	assert_int_equal(back[0].n_participants, 2);
	assert_int_equal(back[0].members[1].rows_in, 99);
	store_rounds_release(back, n);
	assert_int_equal(store_rounds(s, SIZE_MAX, &back, &n, &e), 0);
	assert_int_equal(n, 2);
	free(back[1].members);
	back[1].members = m;
	m[1].rows_in = 8;
	first.members = m;
	assert_string_equal(back[1].method, first.method);
	assert_string_equal(back[1].reason, first.reason);
	assert_memory_equal(back[1].id, first.id, sizeof(first.id));
	assert_true(back[1].number == first.number && back[1].hosted == first.hosted &&
		    back[1].secret_bits == first.secret_bits && back[1].proposer[0] == 3 &&
		    back[1].started_ms == first.started_ms &&
		    back[1].finished_ms == first.finished_ms &&
		    back[1].train_ms == first.train_ms && back[1].outcome == first.outcome &&
		    back[1].items == first.items && back[1].answered == first.answered &&
		    back[1].homed == first.homed && back[1].params_up == first.params_up &&
		    back[1].params_down == first.params_down && back[1].clipped == first.clipped &&
		    back[1].spoiled == first.spoiled && back[1].scored && back[1].n_members == 1);
	assert_near(back[1].score, 0.25, 0, 0);
	back[1].members = NULL;
	store_rounds_release(back, n);
	assert_int_equal(store_rounds(s, 1, &back, &n, &e), 0);
	assert_int_equal(back[0].members[0].fate, 0);
	assert_int_equal(back[0].members[1].fate, 1);
	assert_int_equal(back[0].members[0].bytes_in, 6);
	assert_string_equal(back[0].members[0].refused, "not its");
	assert_string_equal(back[0].members[1].refused, "");
	store_rounds_release(back, n);
	assert_int_equal(db_do(s, &e, "DELETE FROM round_member WHERE seat = 0", ""), 0);
	assert_int_equal(db_do(s, &e, "UPDATE round SET members = 2", ""), 0);
	assert_int_equal(store_rounds(s, 9, &back, &n, &e), ERR_STORE);
	store_close(s);
}

static int64_t pieces(struct store *s)
{
	int64_t n;
	struct err e;

	assert_int_equal(db_number(s, &n, &e, "SELECT count(*) FROM meta_piece"), 0);
	return n;
}

static void put_meta(struct store *s, const char *text)
{
	struct store_batch b = { 0 };

	store_batch_meta(&b, "long", text, strlen(text));
	must_apply(s, &b);
}

static void check_meta(struct store *s, const char *text)
{
	struct buf value = { 0 };
	struct err e = { 0 };

	assert_int_equal(store_meta(s, "long", &value, &e), 0);
	assert_int_equal(value.len, strlen(text));
	assert_memory_equal(value.base, text, value.len);
	buf_release(&value);
}

/* The state of an agent with many partners takes more than that of a few. */
static void a_core_is_given_its_whole_state(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	size_t n = STORE_META_SMALL;
	char *text = mem_array(n + 2, 1);
	struct store_core core;
	struct err e = { 0 };

	(void)state;
	memset(text, 'x', n);
	for (size_t more = 0; more < 2; more++) {
		text[n] = more ? 'x' : '\0';
		put_meta(s, text);
		assert_int_equal(store_load_core(s, &core, &e), 0);
		assert_int_equal(core.n_meta, more ? 0 : 1);
		store_core_release(&core);
	}
	free(text);
	store_close(s);
}

/* A value that no row can hold lies in several. */
static void long_metas_lie_in_pieces(void **state)
{
	static const struct {
		const char *text;
		int64_t pieces; /* behind the first one */
	} values[] = {
		{ "0123456789", 2 }, { "abcdefghijklmnop", 3 }, { "four", 0 }, { "ABCDE", 1 }
	};
	struct store *s = must_open(":memory:", NULL);
	struct store_batch bad = { 0 };
	struct store_core core;
	struct buf value = { 0 };
	struct err e = { 0 };

	(void)state;
	s->piece_max = 4;
	for (size_t i = 0; i < 4; i++) {
		put_meta(s, values[i].text);
		check_meta(s, values[i].text);
		assert_int_equal(pieces(s), values[i].pieces);
		assert_int_equal(store_load_core(s, &core, &e), 0);
		assert_int_equal(core.n_meta, values[i].pieces == 0); /* whole, or not there */
		store_core_release(&core);
	}
	store_batch_meta(&bad, "long", "of which nothing stays", 22);
	store_batch_countersign(&bad, (const uint8_t[32]){ 1 }, (const uint8_t[64]){ 2 });
	assert_true(store_apply(s, &bad, &e) != 0);
	store_batch_release(&bad);
	check_meta(s, "ABCDE");
	put_meta(s, "0123456789");
	assert_int_equal(store_check(s, &e), 0);
	assert_int_equal(db_do(s, &e, "DELETE FROM meta_piece WHERE position = 1", ""), 0);
	assert_int_equal(store_meta(s, "long", &value, &e), ERR_STORE);
	buf_release(&value);
	assert_int_equal(db_do(s, &e, "DELETE FROM meta", ""), 0);
	assert_int_equal(pieces(s), 0);
	store_close(s);
}

static struct store_core with_peers(struct store *s, size_t n)
{
	struct store_core core;
	struct err e;

	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_peers, n);
	return core;
}

/* Without its key nobody could check them: as long as a round has a record of its own. */
/* A partner of before may have a name that shows what follows it in another order. */
static void names_of_before_are_marked(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	struct store_peer p = { .key = { 1 },
				.name = "a\xe2\x80\xae"
					"b" };
	struct store_batch b = { 0 };
	struct store_core core;

	(void)state;
	store_batch_peer(&b, &p);
	must_apply(s, &b);
	core = with_peers(s, 1);
	assert_string_equal(core.peers[0].name, "a???b");
	store_core_release(&core);
	store_close(s);
}

static void who_has_signed_of_a_round_stays(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	struct store_peer p = { .sign_key = { 9 }, .status = STORE_REVOKED };
	struct store_round_member m[2];
	struct store_round r = some_round(m, 1, 1);
	struct store_batch b = { 0 };
	struct store_core core;

	(void)state;
	m[0].has_account = true; /* of the key that begins by 1 */
	for (p.key[0] = 1; p.key[0] < 4; p.key[0]++)
		store_batch_peer(&b, &p);
	store_batch_round(&b, &r);
	must_apply(s, &b);
	core = with_peers(s, 3);
	assert_true(core.peers[0].has_signed && !core.peers[1].has_signed);
	store_core_release(&core);
	for (p.key[0] = 1; p.key[0] < 4; p.key[0]++)
		store_batch_unpeer(&b, p.key);
	must_apply(s, &b);
	core = with_peers(s, 1);
	assert_int_equal(core.peers[0].key[0], 1);
	store_core_release(&core);
	s->rounds_max = 1;
	r.id[0] = 2, r.number = 2, m[0].has_account = false;
	store_batch_round(&b, &r);
	must_apply(s, &b);
	core = with_peers(s, 1);
	assert_false(core.peers[0].has_signed);
	store_core_release(&core);
	store_batch_unpeer(&b, (const uint8_t[STORE_KEY]){ 1 });
	must_apply(s, &b);
	core = with_peers(s, 0);
	store_core_release(&core);
	store_close(s);
}

/* What says whether rounds help (agent/core/rounds_compare.c): with and without a copy that trains
 * alone; a member's distance, known and not. */
static void comparisons_come_back(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	struct store_round_member m[2];
	struct store_round r = some_round(m, 1, 1), *back;
	struct store_batch b = { 0 };
	struct err e;
	size_t n;

	(void)state;
	m[0].compared = 1ull << 40, m[0].distance = 1.25, m[0].cosine = -.5;
	m[1].distance = -1;
	store_batch_round(&b, &r);
	r.id[0] = 2, r.number = 2, r.compared = true, r.own_score = .5, r.merged_score = 0;
	store_batch_round(&b, &r);
	r.id[0] = 3, r.number = 3, r.has_alone = true, r.merged_score = .25, r.alone_score = .75;
	store_batch_round(&b, &r);
	must_apply(s, &b);
	assert_int_equal(store_rounds(s, SIZE_MAX, &back, &n, &e), 0);
	assert_int_equal(n, 3); /* the newest first */
	assert_true(back[0].compared && back[0].has_alone && back[0].own_score == .5 &&
		    back[0].merged_score == .25 && back[0].alone_score == .75);
	assert_true(back[1].compared && !back[1].has_alone && back[1].own_score == .5 &&
		    back[1].merged_score == 0);
	assert_true(!back[2].compared && !back[2].has_alone);
	for (size_t i = 0; i < n; i++) {
		const struct store_round_member *at = back[i].members;

		assert_true(at[0].compared == 1ull << 40 && at[0].distance == 1.25 &&
			    at[0].cosine == -.5);
		assert_true(at[1].compared == 0 && at[1].distance < 0);
	}
	store_rounds_release(back, n);
	store_close(s);
}

/* Of more rounds than the store keeps the oldest become sums, and nothing is lost from these. */
static void rounds_are_folded(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	struct store_round_member m[2];
	struct store_folded f;
	struct store_round *back;
	struct store_batch b = { 0 };
	struct err e;
	size_t n;

	(void)state;
	s->rounds_max = 3;
	for (uint8_t id = 1; id <= 10; id++) {
		struct store_round r = some_round(m, id, id);

		r.finished_ms = 100 - id; /* a clock that is set back */
		r.outcome = id == 2 ? ERR_TIMEOUT : 0;
		m[0].fate = id == 5 ? 1 : 0; /* it fell out of that one */
		m[1].fate = 0;
		store_batch_round(&b, &r);
		must_apply(s, &b);
		assert_int_equal(store_folded(s, &f, &e), 0);
		assert_int_equal(f.rounds, id <= 3 ? 0 : id - 3);
		store_folded_release(&f);
	}
	assert_int_equal(store_rounds(s, SIZE_MAX, &back, &n, &e), 0);
	assert_int_equal(n, 3);
	for (size_t k = 0; k < n; k++) /* the newest first: not by the clock */
		assert_int_equal(back[k].number, 10 - k);
	store_rounds_release(back, n);
	assert_int_equal(store_folded(s, &f, &e), 0);
	assert_int_equal(f.rounds, 7);
	assert_int_equal(f.failed, 1);
	assert_int_equal(f.first_ms, 10);
	assert_int_equal(f.last_ms, 99);
	assert_int_equal(f.train_ms, 7 * 7);
	assert_int_equal(f.params_up, 7 * 14);
	assert_int_equal(f.params_down, 7ULL << 40);
	assert_true(f.clipped == (uint64_t)7 * 15 && f.spoiled == (uint64_t)7 * 16);
	assert_int_equal(f.n_members, 2);
	assert_int_equal(f.members[0].sum.key[0], 1);
	assert_true(f.members[0].rounds == 7 && f.members[0].took_part == 6);
	assert_true(f.members[0].sum.rows_out == 7 && f.members[0].sum.rows_in == 14 &&
		    f.members[0].sum.floats_out == 21 && f.members[0].sum.floats_in == 28 &&
		    f.members[0].sum.bytes_out == 35 && f.members[0].sum.bytes_in == 42);
	assert_true(f.members[1].rounds == 0 && f.members[1].took_part == 0); /* asked, no more */
	assert_int_equal(f.members[1].sum.bytes_in, 7 * 12);
	store_folded_release(&f);
	assert_int_equal(store_check(s, &e), 0);
	store_close(s);
}

/* What a member signs comes when the round is on record. */
static void members_sign_later(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	struct store_round_member m[2];
	struct store_round first = some_round(m, 1, 5), second = some_round(m, 2, 6), *back;
	struct store_batch b = { 0 };
	struct err e;
	size_t n;

	(void)state;
	store_batch_round(&b, &first);
	store_batch_round(&b, &second);
	m[1] = (struct store_round_member){ .key = { 2 },
					    .fate = 4,
					    .rows_out = 70,
					    .bytes_in = 120,
					    .has_account = true,
					    .their_rows_out = 80,
					    .their_rows_in = 71,
					    .their_floats_out = 90,
					    .their_floats_in = 91,
					    .signature = { [63] = 5 },
					    .refused = "nor this" };
	store_batch_round_member(&b, first.id, &m[1]);
	store_batch_round_member(&b, (const uint8_t[STORE_ROUND]){ 77 }, &m[1]); /* none */
	must_apply(s, &b);
	assert_int_equal(store_rounds(s, SIZE_MAX, &back, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_false(back[0].members[0].has_account || back[0].members[1].has_account);
	assert_int_equal(back[0].members[1].rows_out, 7);
	assert_false(back[1].members[0].has_account);
	assert_int_equal(back[1].members[0].rows_out, 1);
	assert_int_equal(back[1].members[1].fate, 1); /* as it was judged */
	assert_int_equal(back[1].members[1].rows_out, m[1].rows_out);
	assert_int_equal(back[1].members[1].bytes_in, m[1].bytes_in);
	assert_true(back[1].members[1].has_account);
	assert_int_equal(back[1].members[1].their_rows_out, m[1].their_rows_out);
	assert_int_equal(back[1].members[1].their_rows_in, m[1].their_rows_in);
	assert_int_equal(back[1].members[1].their_floats_out, m[1].their_floats_out);
	assert_int_equal(back[1].members[1].their_floats_in, m[1].their_floats_in);
	assert_memory_equal(back[1].members[1].signature, m[1].signature, sizeof(m[1].signature));
	assert_string_equal(back[1].members[1].refused, m[1].refused);
	store_rounds_release(back, n);
	store_close(s);
}

/* So may a look at valid that was interrupted. */
static void a_round_is_scored_later(void **state)
{
	struct store *s = must_open(":memory:", NULL);
	struct store_round_member m[2];
	struct store_round first = some_round(m, 1, 5), second = some_round(m, 2, 6), *back;
	struct store_core core;
	struct store_batch b = { 0 };
	struct err e;
	size_t n;

	(void)state;
	first.scored = second.scored = false;
	store_batch_round(&b, &first);
	store_batch_round(&b, &second);
	store_batch_round_score(&b, first.id, .375);
	store_batch_round_score(&b, (const uint8_t[STORE_ROUND]){ 77 }, .5); /* none */
	must_apply(s, &b);
	assert_int_equal(store_rounds(s, SIZE_MAX, &back, &n, &e), 0);
	assert_int_equal(n, 2);
	assert_false(back[0].scored);
	assert_true(back[1].scored && back[1].score == .375);
	store_rounds_release(back, n);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_rounds, 2);
	assert_memory_equal(core.rounds[0], first.id, STORE_ROUND);
	assert_memory_equal(core.rounds[1], second.id, STORE_ROUND);
	assert_int_equal(core.late.n, 2);
	assert_memory_equal(core.late.at[0].id, second.id, STORE_ROUND);
	assert_int_equal(core.late.at[1].n_participants, first.n_participants);
	store_core_release(&core);
	store_close(s);
}

static void a_batch_with_one_bad_write_leaves_nothing(void **state)
{
	struct store *s;
	struct store_batch b = { 0 };
	struct store_core core;
	struct ledger_entry entry;
	struct ledger_signed *second;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	s = must_open(":memory:", &w);
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
	store_batch_meta(&b, "a", "1", 1);
	must_apply(s, &b);

	second = world_add(&w, LEDGER_RESERVE, 0, 1, 2, 32);
	store_batch_meta(&b, "a", "2", 1);
	store_batch_entry(&b, second);
	store_batch_entry(&b, second); /* twice: the second has no place */
	assert_int_equal(store_apply(s, &b, &e), ERR_LEDGER);
	store_batch_release(&b);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_memory_equal(core.meta[0].base, "1", 1);
	assert_int_equal(core.chains[0]->sequence, 1);
	store_core_release(&core);

	/* The cap is asked on disk too: a total that passes it has no way in. */
	entry = second->entry;
	entry.count = 155;
	entry.total_pair = entry.total_lineage = 155;
	store_batch_entry(&b, world_append(&w, &entry, 0, 1));
	assert_int_equal(store_apply(s, &b, &e), ERR_BUDGET);
	store_batch_release(&b);
	/* Nor has a lineage total that forgets the other partners. */
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 2, 1, 0));
	store_batch_entry(&b, world_add(&w, LEDGER_RESERVE, 0, 2, 3, 8)); /* counts `second` too */
	assert_int_equal(store_apply(s, &b, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "lineage"));
	store_batch_release(&b);
	store_batch_entry(&b, second);
	must_apply(s, &b);
	store_close(s);
	world_release(&w);
}

static void the_ledger_on_disk_is_append_only(void **state)
{
	static const char *const attacks[] = {
		"UPDATE ledger_entry SET sequence = 9",
		"DELETE FROM ledger_entry WHERE sequence = 2",
		"UPDATE ledger_countersign SET signature = zeroblob(64)",
		"DELETE FROM ledger_countersign",
		"INSERT INTO ledger_entry (low, high, sequence, hash, bytes, signature) SELECT "
		"low, high,"
		" 9, zeroblob(32), bytes, signature FROM ledger_entry LIMIT 1",
		"PRAGMA recursive_triggers = ON; INSERT OR REPLACE INTO ledger_entry SELECT "
		"position, low,"
		" high, 3, hash, zeroblob(312), signature FROM ledger_entry WHERE sequence = 2",
	};
	char *path = new_path();
	struct store_batch b = { 0 };
	struct store *s;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	s = must_open(path, &w);
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
	store_batch_entry(&b, world_add(&w, LEDGER_RESERVE, 0, 1, 2, 32));
	must_apply(s, &b);
	store_close(s);
	for (size_t k = 0; k < sizeof(attacks) / sizeof(attacks[0]); k++)
		if (raw(path, attacks[k]) != SQLITE_CONSTRAINT)
			fail_msg("was let through: %s", attacks[k]);
	store_close(must_open(path, &w));
	/* Who drops the triggers first is found out at the next opening. */
	assert_int_equal(raw(path,
			     "DROP TRIGGER ledger_entry_update; UPDATE ledger_entry SET bytes ="
			     " CAST(substr(bytes, 1, 208) || x'01' || substr(bytes, 210) AS BLOB)"
			     " WHERE sequence = 2"),
			 SQLITE_OK);
	assert_int_equal(store_open(&s, path, NULL, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "entry 2"));
	world_release(&w);
	free(path);
}

/* An owner has the file, and may drop every trigger: what is left must not open. */
static void an_edited_database_is_found_out(void **state)
{
	static const struct {
		const char *sql, *words;
	} attacks[] = {
		{ "DROP TRIGGER ledger_entry_delete", "its guard ledger_entry_delete is gone" },
		{ "DROP TRIGGER ledger_entry_insert; CREATE TRIGGER ledger_entry_insert BEFORE"
		  " INSERT ON ledger_entry BEGIN SELECT 1; END",
		  "its guard ledger_entry_insert is another one" },
		{ "CREATE TRIGGER aa AFTER INSERT ON ledger_entry BEGIN DELETE FROM"
		  " ledger_countersign; END",
		  "its guard aa is not ours" },
		{ "CREATE TRIGGER zz AFTER INSERT ON ledger_entry BEGIN SELECT 1; END",
		  "its guard zz is not ours" },
		{ "DROP TRIGGER ledger_entry_delete; DELETE FROM ledger_entry WHERE sequence = 2;"
		  "CREATE TRIGGER ledger_entry_delete BEFORE DELETE ON ledger_entry BEGIN"
		  " SELECT RAISE(ABORT, 'the ledger is append-only'); END",
		  "was cut: 2 entries were written, 1 are there" },
		{ "DROP TRIGGER ledger_countersign_update;"
		  "UPDATE ledger_countersign SET signature = zeroblob(64)",
		  "entry 2: bad countersignature" },
		{ "DROP TRIGGER ledger_entry_update;"
		  "UPDATE ledger_entry SET sequence = 3 WHERE sequence = 2",
		  "under another number" },
		{ "DROP TRIGGER ledger_entry_update; UPDATE ledger_entry SET high = zeroblob(32)",
		  "another pair than it says" },
	};
	struct err e;

	(void)state;
	for (size_t k = 0; k < sizeof(attacks) / sizeof(attacks[0]); k++) {
		struct store_options reading = { .mode = STORE_READ };
		struct store_batch b = { 0 };
		char *path = new_path();
		struct store *s;
		struct world w;

		world_init(&w);
		s = must_open(path, &w);
		store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
		store_batch_entry(&b, world_add(&w, LEDGER_RESERVE, 0, 1, 2, 32));
		must_apply(s, &b);
		store_close(s);
		assert_int_equal(raw(path, attacks[k].sql), SQLITE_OK);
		assert_int_equal(store_open(&s, path, NULL, &e), ERR_LEDGER);
		if (strstr(e.text, attacks[k].words) == NULL)
			fail_msg("%s: %s", attacks[k].sql, e.text);
		assert_int_equal(store_open(&s, path, &reading, &e), ERR_LEDGER);
		world_release(&w);
		free(path);
	}
}

/* A forger who also renews the hash has no key to sign it with. */
static void a_forged_last_entry_is_found_out(void **state)
{
	char *path = new_path();
	uint8_t bytes[LEDGER_ENTRY_BYTES], hash[32];
	struct store_batch b = { 0 };
	struct ledger_entry forged;
	struct store *s;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	w.countersign = false;
	s = must_open(path, &w);
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
	must_apply(s, &b);
	forged = w.entry[0].entry;
	forged.time_ms++;
	ledger_encode(&forged, bytes);
	ledger_hash(&forged, hash);
	assert_int_equal(db_do(s, &e, "DROP TRIGGER ledger_entry_update", ""), 0);
	assert_int_equal(db_do(s, &e, "UPDATE ledger_entry SET bytes = ?, hash = ?", "bb",
			       (const void *)bytes, sizeof(bytes), (const void *)hash,
			       sizeof(hash)),
			 0);
	store_close(s);
	assert_int_equal(store_open(&s, path, NULL, &e), ERR_LEDGER);
	assert_non_null(strstr(e.text, "bad signature of the host"));
	world_release(&w);
	free(path);
}

static void the_stored_ledger_exports_and_verifies(void **state)
{
	struct store_batch b = { 0 };
	struct ledger_export x;
	struct ledger_report r = { 0 };
	struct store *s;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	s = must_open(":memory:", &w);
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 2, 1, 0));
	store_batch_entry(&b, world_add(&w, LEDGER_RESERVE, 0, 1, 2, 32));
	store_batch_entry(&b, world_add(&w, LEDGER_RESERVE, 0, 2, 3, 32));
	store_batch_entry(&b, world_add(&w, LEDGER_SETTLE, 0, 1, 2, 20));
	must_apply(s, &b);
	assert_int_equal(store_ledger(s, NULL, &x, &e), 0);
	assert_int_equal(x.n, 5);
	assert_true(x.whole);
	assert_memory_equal(x.owner.sign_key, world_key(&w, 0), LEDGER_KEY);
	assert_int_equal(ledger_verify(&x, &r), 0);
	ledger_export_release(&x);
	assert_int_equal(store_ledger(s, world_key(&w, 2), &x, &e), 0);
	assert_int_equal(x.n, 2);
	assert_false(x.whole);
	assert_int_equal(ledger_verify(&x, &r), 0);
	ledger_export_release(&x);
	ledger_report_release(&r);
	store_close(s);
	world_release(&w);
}

/* ---- crashes and a full disk ---- */

static int die_in_here(struct store *s, void *ctx, struct err *e)
{
	(void)e;
	assert_int_equal(db_do(s, NULL, "INSERT INTO meta VALUES ('half', x'00')", ""), 0);
	assert_int_equal(db_add_entry(s, ctx, NULL), 0);
	kill(getpid(), SIGKILL);
	return 0;
}

/* The child writes entries, telling each one's number once store_apply() has
 * returned; at the end it is killed between a write and its commit. */
static void child_writes_and_dies(const char *path, int tell, struct world *w)
{
	struct store *s = must_open(path, w);
	struct store_batch b = { 0 };

	store_batch_entry(&b, world_add(w, LEDGER_CONTRACT, 0, 1, 1, 0));
	must_apply(s, &b);
	for (uint8_t k = 1; k <= 20; k++) {
		store_batch_entry(&b, world_add(w, LEDGER_RESERVE, 0, 1, k, 2));
		must_apply(s, &b);
		if (write(tell, &k, 1) != 1)
			_exit(1);
	}
	assert_int_equal(
		db_transaction(s, die_in_here, world_add(w, LEDGER_RESERVE, 0, 1, 99, 2), NULL), 0);
	_exit(1);
}

static void what_was_reserved_survives_kill_9(void **state)
{
	char *path = new_path();
	uint8_t told = 0, last = 0;
	struct store_core core;
	struct store *s;
	struct world w;
	struct err e;
	int ends[2], status;
	pid_t pid;

	(void)state;
	world_init(&w);
	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0)
		child_writes_and_dies(path, ends[1], &w);
	close(ends[1]);
	while (read(ends[0], &told, 1) == 1)
		last = told;
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	assert_int_equal(last, 20);
	s = must_open(path, &w); /* the lock died with its owner */
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.n_chains, 1);
	assert_int_equal(core.chains[0]->sequence, 1 + last);
	assert_int_equal(core.chains[0]->account[0].spent + core.chains[0]->account[1].spent,
			 2 * last);
	assert_int_equal(core.n_meta, 0);
	store_core_release(&core);
	assert_int_equal(store_check(s, &e), 0);
	store_close(s);
	world_release(&w);
	free(path);
}

static void a_full_disk_loses_nothing(void **state)
{
	char *path = new_path();
	uint8_t *big = mem_array(1 << 20, 1);
	struct store_batch b = { 0 };
	struct store_core core;
	struct ledger_signed *s2;
	struct store *s;
	struct world w;
	struct err e;

	(void)state;
	world_init(&w);
	s = must_open(path, &w);
	store_batch_entry(&b, world_add(&w, LEDGER_CONTRACT, 0, 1, 1, 0));
	store_batch_meta(&b, "core", "before", 6);
	must_apply(s, &b);
	assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 60", NULL, NULL, NULL),
			 SQLITE_OK);
	s2 = world_add(&w, LEDGER_RESERVE, 0, 1, 2, 32);
	store_batch_entry(&b, s2);
	store_batch_meta(&b, "core", big, 1 << 20);
	assert_int_equal(store_apply(s, &b, &e), ERR_IO);
	assert_non_null(strstr(e.text, "full"));
	store_batch_release(&b);
	assert_int_equal(store_load_core(s, &core, &e), 0);
	assert_int_equal(core.chains[0]->sequence, 1);
	assert_memory_equal(core.meta[0].base, "before", 6);
	store_core_release(&core);
	/* With room again it goes on where it was. */
	assert_int_equal(sqlite3_exec(s->db, "PRAGMA max_page_count = 100000", NULL, NULL, NULL),
			 SQLITE_OK);
	store_batch_entry(&b, s2);
	must_apply(s, &b);
	assert_int_equal(store_check(s, &e), 0);
	store_close(s);
	world_release(&w);
	free(big);
	free(path);
}

/* ---- the graph ---- */

static struct graph *some_graph(const char *third)
{
	struct graph *g = graph_new();

	graph_vocab_add(g->entities, "aspirin", 7);
	graph_vocab_add(g->entities, "\xff bytes", 7);
	graph_vocab_add(g->entities, third, strlen(third));
	graph_vocab_add(g->relations, "treats", 6);
	for (uint32_t k = 0; k < 70000; k++) /* more than one block */
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ k % 3, 0, k / 3 % 3 });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 2, 0, 1 });
	return g;
}

static void a_graph_comes_back_with_its_ids(void **state)
{
	struct graph *g = some_graph("pain"), *back;
	uint8_t a[32], b[32];
	struct store *s = must_open(":memory:", NULL);
	struct err e;

	(void)state;
	assert_int_equal(store_load_graph(s, &back, &e), ERR_NOTFOUND);
	assert_int_equal(store_put_graph(s, g, NULL, &e), 0);
	assert_int_equal(store_put_graph(s, g, NULL, &e), 0); /* replaces */
	assert_int_equal(store_load_graph(s, &back, &e), 0);
	store_graph_digest(g, a);
	store_graph_digest(back, b);
	assert_memory_equal(a, b, 32);
	assert_int_equal(graph_vocab_find(back->entities, "\xff bytes", 7), 1);
	assert_int_equal(back->split[GRAPH_TRAIN].n, 70000);
	assert_memory_equal(back->split[GRAPH_TRAIN].at, g->split[GRAPH_TRAIN].at,
			    70000 * sizeof(struct graph_triple));
	assert_int_equal(back->split[GRAPH_TEST].at[0].head, 2);
	/* One triple or one name more is another graph. */
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, 0 });
	store_graph_digest(g, b);
	assert_memory_not_equal(a, b, 32);
	graph_free(back);
	assert_int_equal(db_do(s, &e, "UPDATE triples SET bytes = zeroblob(12) WHERE part = 1", ""),
			 0);
	assert_int_equal(store_load_graph(s, &back, &e), ERR_STORE);
	graph_free(g);
	store_close(s);
}

static void aliases_stand_before_own_names(void **state)
{
	struct store_alias all[] = { { 'e', 0, "Q18216", 6 }, { 'e', 2, "Q81938", 6 } };
	struct store_alias one[] = { { 'e', 0, "ASA", 3 }, { 'r', 0, "cures", 5 } };
	struct graph *g = some_graph("pain");
	struct store *s = must_open(":memory:", NULL);
	struct store_names n, m;
	uint8_t peer[32] = { 1 }, stranger[32] = { 2 };
	struct err e;

	(void)state;
	assert_int_equal(store_put_graph(s, g, NULL, &e), 0);
	assert_int_equal(store_put_aliases(s, NULL, all, 2, &e), 0);
	assert_int_equal(store_put_aliases(s, peer, one, 2, &e), 0);
	assert_int_equal(store_load_names(s, g, peer, &n, &e), 0);
	assert_string_equal(n.ent[0], "ASA");
	assert_string_equal(n.ent[1], "\xff bytes");
	assert_string_equal(n.ent[2], "Q81938");
	assert_int_equal(n.ent_len[2], 6);
	assert_string_equal(n.rel[0], "cures");
	assert_int_equal(store_load_names(s, g, stranger, &m, &e), 0);
	assert_string_equal(m.ent[0], "Q18216");
	assert_string_equal(m.rel[0], "treats");
	assert_memory_not_equal(n.version, m.version, 32);
	store_names_release(&n);
	store_names_release(&m);
	all[0].len = 0;
	assert_int_equal(store_put_aliases(s, NULL, all, 2, &e), ERR_INPUT);
	/* Other names: the tables were about the old ones. */
	graph_free(g);
	g = some_graph("headache");
	assert_int_equal(store_put_graph(s, g, NULL, &e), 0);
	assert_int_equal(store_load_names(s, g, peer, &n, &e), 0);
	assert_string_equal(n.ent[0], "aspirin");
	store_names_release(&n);
	graph_free(g);
	store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_older_version_is_migrated_after_a_backup),
		cmocka_unit_test(a_newer_store_is_refused_and_left_alone),
		cmocka_unit_test(what_is_no_store_is_refused),
		cmocka_unit_test(two_processes_cannot_own_one_store),
		cmocka_unit_test(an_owner_that_reads_keeps_its_locks),
		cmocka_unit_test(a_store_belongs_to_one_identity),
		cmocka_unit_test(a_restarting_core_gets_everything_back),
		cmocka_unit_test(a_session_is_on_record_beside_another_of_its_id),
		cmocka_unit_test(a_peers_signing_key_stays),
		cmocka_unit_test(rounds_come_back),
		cmocka_unit_test(comparisons_come_back),
		cmocka_unit_test(names_of_before_are_marked),
		cmocka_unit_test(who_has_signed_of_a_round_stays),
		cmocka_unit_test(a_core_is_given_its_whole_state),
		cmocka_unit_test(long_metas_lie_in_pieces),
		cmocka_unit_test(rounds_are_folded),
		cmocka_unit_test(members_sign_later),
		cmocka_unit_test(a_round_is_scored_later),
		cmocka_unit_test(a_batch_with_one_bad_write_leaves_nothing),
		cmocka_unit_test(the_ledger_on_disk_is_append_only),
		cmocka_unit_test(an_edited_database_is_found_out),
		cmocka_unit_test(a_forged_last_entry_is_found_out),
		cmocka_unit_test(the_stored_ledger_exports_and_verifies),
		cmocka_unit_test(what_was_reserved_survives_kill_9),
		cmocka_unit_test(a_full_disk_loses_nothing),
		cmocka_unit_test(a_graph_comes_back_with_its_ids),
		cmocka_unit_test(aliases_stand_before_own_names),
	};

	return cmocka_run_group_tests_name("store/store", tests, make_folder, remove_folder);
}
