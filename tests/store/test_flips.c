/* One flipped bit in any value of any table of a store is found when it is checked, and the table
 * named; the core does not start over it. */
#include "tests/folder.h"
#include "tests/test.h"

#include <sqlite3.h>

#include "base/file.h"
#include "base/mem.h"
#include "store/db_internal.h"
#include "tests/store/world.h"

/* Values of which nothing depends but an order: that of entries over all chains, which each chain
 * has of its own (the sequence in the signed bytes), and of parts of triples, which the graph's
 * digest covers: where the order stays, so does what is read. */
static const char *const irrelevant[] = { "ledger_entry.position", "ledger_statement.sequence",
					  "ledger_rotation.position", "triples.part" };

static struct store *opened(const char *path, const struct world *w, bool check, struct err *e)
{
	struct store_options o = { .owner = world_key(w, 0), .check = check };
	struct store *s;

	return store_open(&s, path, &o, e) == 0 ? s : NULL;
}

static void must(int rc, const struct err *e)
{
	if (rc != 0)
		fail_msg("%s", e->text);
}

/* ---- a store with rows in every table ---- */

static void add_graph(struct store *s)
{
	struct store_alias alias = { 'e', 1, "ASA", 3 };
	struct graph *g = graph_new();
	struct err e = { 0 };

	for (char name[] = "a"; name[0] <= 'd'; name[0]++)
		graph_vocab_add(g->entities, name, 1);
	graph_vocab_add(g->relations, "treats", 6);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 1, 0, 2 });
	must(store_put_graph(s, g, NULL, &e), &e);
	must(store_put_aliases(s, NULL, &alias, 1, &e), &e);
	graph_free(g);
}

static void add_rounds(struct store_batch *b)
{
	struct store_round_member m[2] = { { .key = { 1 }, .rows_in = 3, .has_account = true },
					   { .key = { 2 }, .rows_out = 4, .refused = "no" } };
	struct store_round r = {
		.method = "fede", .reason = "why", .n_members = 2, .n_participants = 2, .members = m
	};

	for (uint8_t k = 1; k <= 3; k++) { /* the first ones are folded */
		r.id[0] = k;
		r.number = k;
		store_batch_round(b, &r);
	}
}

static void add_tables(struct store_batch *b)
{
	struct store_checkpoint info = { .protocol = "standard", .valid_score = .5, .epochs = 3 };
	struct rng r;

	rng_seed(&r, 1);
	store_batch_checkpoint(b, &info, kge_emb_new(kge_model_find("transe"), 4, 4.0F, 4, 1, &r));
}

static void add_statement(struct store_batch *b, const struct world *w)
{
	struct ledger_statement like = { .sampled = LEDGER_SAMPLED_DISCRETE,
					 .adjacency = LEDGER_TRIPLE,
					 .records = 8700,
					 .rate = .05,
					 .noise = 1.5,
					 .clip = 1,
					 .delta = 1e-5,
					 .epsilon = 2 };
	struct ledger_training t = { 0 };
	struct ledger_stated s;
	struct err e = { 0 };

	memcpy(like.agent, world_key(w, 0), LEDGER_KEY);
	must(ledger_training_next(&s.statement, &t, &like, 3, 1000, &e), &e);
	ledger_statement_sign(&s, w->id[0]->sign_secret);
	store_batch_statement(b, &s);
}

static void add_peers(struct store_batch *b)
{
	struct store_peer peer = { .key = { 1 },
				   .sign_key = { 2 },
				   .name = "gene bank",
				   .address = "10.0.0.2:7447",
				   .status = STORE_LISTED,
				   .seen_ms = 77,
				   .source = "10.0.0.2" };
	struct store_slot slots[] = { { 5, 'e' }, { 1, 'r' } };
	struct store_alignment a = { .peer = { 1 }, .slots = slots, .n = 2 };
	struct store_intersection i = { .peer = { 1 }, .time_ms = 5, .ours = 2, .theirs = 3 };
	struct store_invitation invitation = { .hash = { 3 }, .until_ms = 9, .uses = 2 };
	struct store_ticket ticket = { { 1 }, { 7 } };
	struct store_seed seed = { { 8 }, 5 };
	struct store_pair pair = { { 1 }, { 9 }, true };
	struct store_session x = { .peer = { 1 }, .seconds = .1, .reason = "so far" };

	store_batch_invitation(b, &invitation);
	store_batch_ticket(b, &ticket);
	store_batch_seed(b, &seed);
	store_batch_pair(b, &pair);
	store_batch_peer(b, &peer);
	store_batch_step(
		b, &(struct store_step){
			   .peer = { 1 },
			   .step = { .relation = "treats", .policy = LEDGER_SOFT, .rows = 3 } });
	store_batch_step_day(b, &(struct store_step_day){ .peer = { 1 }, .day = 7, .rows = 3 });
	store_batch_judgement(
		b, &(struct store_judgement){ .peer = { 1 }, .reputation = .5, .why = "hurts" });
	store_batch_signal(b, peer.key, 100);
	store_batch_alignment(b, &a);
	store_batch_intersection(b, &i);
	store_batch_session(b, &x);
	store_batch_member(b, peer.key, "record", 6);
	store_batch_meta(b, "core", "a long state", 12);
}

/* Of an agent that is none of those with entries. */
static void add_rotation(struct store *s, const struct world *w)
{
	struct store_identity *next = store_identity_next(w->id[2]);
	struct ledger_rotation r = { .number = 1 };
	struct store_batch b = { 0 };
	struct store_peer p = { .status = STORE_LISTED };
	struct err e = { 0 };

	memcpy(p.key, w->id[2]->key, STORE_KEY);
	memcpy(p.sign_key, w->id[2]->sign_key, STORE_KEY);
	store_batch_peer(&b, &p);
	must(store_apply(s, &b, &e), &e);
	store_batch_release(&b);
	memcpy(r.account, w->id[2]->account, LEDGER_KEY);
	memcpy(r.old_key, w->id[2]->key, LEDGER_KEY);
	memcpy(r.old_sign, w->id[2]->sign_key, LEDGER_KEY);
	memcpy(r.new_key, next->key, LEDGER_KEY);
	memcpy(r.new_sign, next->sign_key, LEDGER_KEY);
	ledger_rotation_sign(&r, w->id[2]->sign_secret, next->sign_secret);
	must(store_rotate_peer(s, &r, 1, w->id[0]->key, &e), &e);
	store_identity_free(next);
}

static void fill(const char *path, struct world *w)
{
	struct err e = { 0 };
	struct store *s = opened(path, w, false, &e);
	struct store_batch b = { 0 };

	must(s == NULL, &e);
	s->piece_max = 5;
	s->rounds_max = 1;
	add_graph(s);
	add_peers(&b);
	add_rounds(&b);
	add_tables(&b);
	add_statement(&b, w);
	store_batch_entry(&b, world_add(w, LEDGER_CONTRACT, 0, 1, 1, 0));
	store_batch_entry(&b, world_add(w, LEDGER_RESERVE, 0, 1, 2, 32));
	must(store_apply(s, &b, &e), &e);
	store_batch_release(&b);
	add_rotation(s, w);
	must(store_check(s, &e), &e);
	store_close(s);
}

/* ---- the flip: of the first row, past every trigger and check ---- */

struct flip {
	const char *table, *column;
	int bit; /* of a whole number; else of the first byte (even), or the last (odd) */
};

static int64_t flipped(int64_t v, int bit)
{
	return (int64_t)((uint64_t)v ^ (UINT64_C(1) << bit));
}

static bool bind_flipped(sqlite3_stmt *set, sqlite3_stmt *get, int bit)
{
	int type = sqlite3_column_type(get, 0), n;
	uint8_t *bytes;
	double x;
	int64_t v;

	if (type == SQLITE_INTEGER) {
		sqlite3_bind_int64(set, 1, flipped(sqlite3_column_int64(get, 0), bit));
		return true;
	}
	if (type == SQLITE_FLOAT) {
		x = sqlite3_column_double(get, 0);
		memcpy(&v, &x, sizeof(v));
		v = flipped(v, bit);
		memcpy(&x, &v, sizeof(x));
		sqlite3_bind_double(set, 1, x);
		return true;
	}
	n = sqlite3_column_bytes(get, 0);
	if (type == SQLITE_NULL || n == 0)
		return false;
	bytes = mem_copy(sqlite3_column_blob(get, 0), (size_t)n);
	bytes[bit % 2 == 0 ? 0 : n - 1] ^= 1;
	if (type == SQLITE_TEXT)
		sqlite3_bind_text(set, 1, (char *)bytes, n, SQLITE_TRANSIENT);
	else
		sqlite3_bind_blob(set, 1, bytes, n, SQLITE_TRANSIENT);
	free(bytes);
	return true;
}

/* false: there is nothing to flip. */
static bool flip(const char *path, const struct flip *f)
{
	char get_sql[160], set_sql[320];
	sqlite3_stmt *get, *set;
	sqlite3 *db;
	bool done;
	int rc;

	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
	sqlite3_exec(db, "PRAGMA ignore_check_constraints = ON; PRAGMA synchronous = OFF", NULL,
		     NULL, NULL);
	snprintf(get_sql, sizeof(get_sql), "SELECT \"%s\" FROM \"%s\" LIMIT 1", f->column,
		 f->table);
	snprintf(set_sql, sizeof(set_sql), "UPDATE \"%s\" SET \"%s\" = ?1 WHERE \"%s\" IS (%s)",
		 f->table, f->column, f->column, get_sql);
	assert_int_equal(sqlite3_prepare_v2(db, get_sql, -1, &get, NULL), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db, set_sql, -1, &set, NULL), SQLITE_OK);
	if (sqlite3_step(get) != SQLITE_ROW)
		fail_msg("table %s has no row: fill() shall put one there", f->table);
	done = bind_flipped(set, get, f->bit);
	sqlite3_finalize(get);
	rc = done ? sqlite3_step(set) : SQLITE_DONE;
	if (rc == SQLITE_CONSTRAINT) /* two rows with one key: SQLite reads no such table */
		done = false;
	else if (rc != SQLITE_DONE)
		fail_msg("%s.%s: %s", f->table, f->column, sqlite3_errmsg(db));
	sqlite3_finalize(set);
	sqlite3_close(db);
	return done;
}

static bool is_irrelevant(const struct flip *f)
{
	char name[80];

	snprintf(name, sizeof(name), "%s.%s", f->table, f->column);
	for (size_t k = 0; k < sizeof(irrelevant) / sizeof(irrelevant[0]); k++)
		if (strcmp(irrelevant[k], name) == 0)
			return true;
	return false;
}

/* Is the table one that has a sum (store/sums.c)?  The others have digests of their own. */
static bool has_sum(const char *table)
{
	return strncmp(table, "ledger_", 7) != 0 && strcmp(table, "block") != 0 &&
	       strcmp(table, "name") != 0 && strcmp(table, "triples") != 0;
}

static void check_found(const char *path, const struct world *w, const struct flip *f)
{
	struct err e = { 0 };
	struct store *s = opened(path, w, true, &e);
	struct store_core core;

	store_close(s);
	if (s != NULL && !is_irrelevant(f))
		fail_msg("%s.%s, bit %d: nobody saw it", f->table, f->column, f->bit);
	if (s != NULL || !has_sum(f->table))
		return;
	if (strcmp(f->table, "table_sum") != 0 && strstr(e.text, f->table) == NULL &&
	    strstr(e.text, "identity") == NULL)
		fail_msg("%s.%s: the table is not named: %s", f->table, f->column, e.text);
	s = opened(path, w, false, &e); /* as serve does */
	if (s != NULL && store_load_core(s, &core, &e) == 0)
		fail_msg("%s.%s: the core loads it", f->table, f->column);
	store_close(s);
}

/* Not synced: it is worth nothing after a crash. */
static void write_file(const char *path, const struct buf *whole)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	assert_int_equal(fwrite(whole->base, 1, whole->len, f), whole->len);
	assert_int_equal(fclose(f), 0);
}

static void one_flip(const struct buf *whole, const struct world *w, const struct flip *f)
{
	char *path = mem_printf("%s/flip.db", folder), *log = mem_printf("%s-wal", path);

	remove(log);
	write_file(path, whole);
	if (flip(path, f))
		check_found(path, w, f);
	free(path);
	free(log);
}

/* ---- all of them ---- */

static size_t flip_columns(const struct buf *whole, const struct world *w, sqlite3_stmt *st)
{
	static const int bits[] = { 0, 33, 51 };
	size_t n = 0;

	while (sqlite3_step(st) == SQLITE_ROW) {
		struct flip f = { (const char *)sqlite3_column_text(st, 0),
				  (const char *)sqlite3_column_text(st, 1), 0 };

		f.bit = bits[n++ % (sizeof(bits) / sizeof(bits[0]))];
		one_flip(whole, w, &f);
	}
	return n;
}

static void every_flipped_bit_is_found(void **state)
{
	char *path = mem_printf("%s/whole.db", folder);
	struct buf whole = { 0 };
	struct world w;
	sqlite3_stmt *st;
	sqlite3 *db;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	fill(path, &w);
	must(file_read(path, 1 << 26, &whole, &e), &e);
	assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
	assert_int_equal(sqlite3_prepare_v2(db,
					    "SELECT t.name, c.name FROM sqlite_schema t,"
					    " pragma_table_info(t.name) c WHERE t.type = 'table'"
					    " AND t.name NOT LIKE 'sqlite%' ORDER BY t.name, c.cid",
					    -1, &st, NULL),
			 SQLITE_OK);
	assert_true(flip_columns(&whole, &w, st) > 70);
	sqlite3_finalize(st);
	sqlite3_close(db);
	buf_release(&whole);
	world_release(&w);
	free(path);
}

/* A row too many, and one too few. */
static void rows_are_counted(void **state)
{
	static const char *const edits[] = {
		"DELETE FROM member",
		"INSERT INTO signal (peer, time_ms) VALUES (zeroblob(32), 1)",
		"DELETE FROM table_sum WHERE name = 'meta'",
		"INSERT INTO table_sum VALUES ('gone', zeroblob(32), 0)",
	};
	char *path = mem_printf("%s/counted.db", folder);
	struct buf whole = { 0 };
	struct world w;
	sqlite3 *db;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	fill(path, &w);
	must(file_read(path, 1 << 26, &whole, &e), &e);
	for (size_t k = 0; k < sizeof(edits) / sizeof(edits[0]); k++) {
		must(file_write_atomic(path, whole.base, whole.len, 0600, &e), &e);
		assert_int_equal(sqlite3_open(path, &db), SQLITE_OK);
		sqlite3_db_config(db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
		assert_int_equal(sqlite3_exec(db, edits[k], NULL, NULL, NULL), SQLITE_OK);
		sqlite3_close(db);
		assert_null(opened(path, &w, true, &e));
		assert_int_equal(e.code, ERR_STORE);
	}
	buf_release(&whole);
	world_release(&w);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_flipped_bit_is_found),
		cmocka_unit_test(rows_are_counted),
	};

	return cmocka_run_group_tests_name("store/flips", tests, make_folder, remove_folder);
}
