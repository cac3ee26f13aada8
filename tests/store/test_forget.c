/* Taking triples back: their bytes are in no file of the folder, whatever lay there before; what
 * stays is as it was under its new ids. */
#include "tests/folder.h"
#include "tests/test.h"

#include <dirent.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "store/db_internal.h"

enum { NAMES = 6, DIM = 4, BIG = 4000 };

static char *path_of(const char *name)
{
	return file_join(folder, name);
}

static struct store *must_open(const char *path, enum store_mode mode)
{
	struct store_options o = { .mode = mode };
	struct store *s;
	struct err e = { 0 };

	if (store_open(&s, path, &o, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

/* How many files of the test's folder hold these bytes. */
static int files_with(const void *bytes, size_t n)
{
	struct dirent *entry;
	DIR *d = opendir(folder);
	int count = 0;

	assert_non_null(d);
	while ((entry = readdir(d)) != NULL) {
		char *path = path_of(entry->d_name);
		struct buf text = { 0 };

		if (entry->d_type == DT_REG && file_read(path, 1 << 26, &text, NULL) == 0)
			count += text.len >= n && memmem(text.base, text.len, bytes, n) != NULL;
		buf_release(&text);
		free(path);
	}
	closedir(d);
	return count;
}

/* Entities name-0 ... of which 2 is in one triple alone, relations rel-0, rel-1. */
static struct graph *old_graph(void)
{
	struct graph *g = graph_new();
	char name[16];

	for (uint32_t i = 0; i < NAMES; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, 16, "name-%u", i));
	graph_vocab_add(g->relations, "rel-0", 5);
	graph_vocab_add(g->relations, "rel-1", 5);
	for (uint32_t i = 3; i < NAMES; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, 0, i - 3 });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 0, 0, 1 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 4, 1, 2 });
	return g;
}

/* Less the last triple of train, and the names that nothing has then: name-2, which train's
 * third triple has too, stays if that does. */
static struct graph *kept_graph(uint32_t *ent, uint32_t *rel)
{
	struct graph *g = graph_new();
	char name[16];

	for (uint32_t i = 0, n = 0; i < NAMES; i++) {
		ent[i] = i == 2 ? GRAPH_NONE : n++;
		if (i != 2)
			graph_vocab_add(g->entities, name,
					(size_t)snprintf(name, 16, "name-%u", i));
	}
	graph_vocab_add(g->relations, "rel-0", 5);
	rel[0] = 0;
	rel[1] = GRAPH_NONE;
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ ent[3], 0, ent[0] });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ ent[4], 0, ent[1] });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ ent[0], 0, ent[1] });
	return g;
}

static struct kge_emb *tables(uint32_t n_ent, uint32_t n_rel, uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	return kge_emb_new(kge_model_find("transe"), DIM, 8, n_ent, n_rel, &r);
}

static void put_checkpoint(struct store *s, enum store_checkpoint_kind kind, double score,
			   const struct kge_emb *emb)
{
	struct store_checkpoint info = { .kind = kind, .valid_score = score };
	struct store_batch b = { 0 };
	struct err e = { 0 };

	strcpy(info.protocol, "standard");
	store_batch_checkpoint(&b, &info, kge_emb_copy(emb));
	if (store_apply(s, &b, &e) != 0)
		fail_msg("%s", e.text);
	store_batch_release(&b);
}

static const uint8_t peer[32] = { 7 };

static void put_metas(struct store *s)
{
	struct store_batch b = { 0 };
	struct err e;

	store_batch_meta(&b, "core", "stays", 5);
	store_batch_meta(&b, "owner", "stays too", 9);
	store_batch_meta(&b, "learner", "part-of-tables", 14);
	assert_int_equal(store_apply(s, &b, &e), 0);
	store_batch_release(&b);
}

/* Tables that were deleted long ago, in pages that nothing has used since. */
static void put_and_remove(struct store *s, const struct kge_emb *emb)
{
	struct store_checkpoint *all;
	struct err e;
	size_t n;

	put_checkpoint(s, STORE_MANUAL, .2, emb);
	assert_int_equal(store_checkpoints(s, &all, &n, &e), 0);
	assert_int_equal(store_remove_checkpoint(s, all[0].id, &e), 0);
	free(all);
}

/* A store with a history: a graph that was replaced, best, saved and latest tables, aliases,
 * an alignment, and what a migration left. */
static struct store *old_store(const char *path, struct kge_emb **old)
{
	struct store *s = must_open(path, STORE_OWN);
	struct graph *g = old_graph(), *other = graph_new();
	struct store_alias aliases[] = { { 'e', 2, "alias-two", 9 }, { 'e', 5, "alias-five", 10 } };
	struct err e;

	/* as builds of SQLite have it that do not overwrite by themselves */
	assert_int_equal(db_do(s, &e, "PRAGMA secure_delete = OFF", ""), 0);
	graph_vocab_add(other->entities, "name-2", 6);
	graph_vocab_add(other->relations, "rel-1", 5);
	graph_add(other, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 0 });
	assert_int_equal(store_put_graph(s, other, NULL, &e), 0);
	assert_int_equal(store_put_graph(s, g, NULL, &e), 0);
	assert_int_equal(store_put_aliases(s, NULL, aliases, 2, &e), 0);
	assert_int_equal(store_put_aliases(s, peer, aliases, 2, &e), 0);
	*old = tables(BIG, 2, 1);
	put_and_remove(s, *old);
	(*old)->n_ent = NAMES; /* from now on they are the first rows */
	put_metas(s);
	put_checkpoint(s, STORE_MANUAL, .3, *old);
	put_checkpoint(s, STORE_FORMER, .3, *old);
	put_checkpoint(s, STORE_LATEST, .3, *old);
	put_checkpoint(s, STORE_BEST, .4, *old);
	for (int version = 1; version < db_version;
	     version += db_version - 2) { /* first and last */
		char *copy = mem_printf("%s.v%d.bak", path, version);

		assert_int_equal(file_write_atomic(copy, "old: name-2 and rel-1", 21, 0600, &e), 0);
		free(copy);
	}
	graph_free(g);
	graph_free(other);
	return s;
}

/* The last triple's bytes in the store; its names; the rows of the old tables. */
static int traces(const struct kge_emb *old)
{
	static const uint8_t triple[12] = { 4, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0 };

	return files_with(triple, 12) + files_with("name-2", 6) + files_with("rel-1", 5) +
	       files_with("alias-two", 9) + files_with("part-of-tables", 14) +
	       files_with(kge_ent(old, 2), DIM * sizeof(float)) +
	       files_with(kge_ent(old, 0), DIM * sizeof(float)) +
	       files_with(kge_ent(old, BIG - 100), DIM * sizeof(float));
}

static int forget(struct store *s, const struct kge_emb *emb, struct err *e)
{
	uint32_t ent[NAMES], rel[2];
	struct graph *g = kept_graph(ent, rel);
	struct store_checkpoint info = { .kind = STORE_BEST, .valid_score = .1 };
	struct store_batch b = { 0 };
	struct store_kept k = { .kept = g,
				.ent = ent,
				.rel = rel,
				.n_ent = NAMES,
				.n_rel = 2,
				.anew = emb != NULL ? &b : NULL,
				.keep_meta = { "core", "owner" } };
	int rc;

	strcpy(info.protocol, "standard");
	if (emb != NULL) {
		store_batch_checkpoint(&b, &info, kge_emb_copy(emb));
		info.kind = STORE_LATEST;
		store_batch_checkpoint(&b, &info, kge_emb_copy(emb));
		store_batch_meta(&b, "learner", "part-anew", 9);
	}
	rc = store_forget(s, &k, e);
	if (rc == 0)
		rc = store_scrub(s, e);
	store_batch_release(&b);
	graph_free(g);
	return rc;
}

static void check_kept(struct store *s, const struct kge_emb *emb)
{
	struct store_checkpoint *all, info;
	struct graph *g;
	struct kge_emb *best;
	struct store_names names;
	struct buf meta = { 0 };
	struct err e = { 0 };
	size_t n;

	assert_int_equal(store_load_graph(s, &g, &e), 0);
	assert_int_equal(graph_vocab_count(g->entities), NAMES - 1);
	assert_int_equal(g->split[GRAPH_TRAIN].n, 2);
	assert_int_equal(store_checkpoints(s, &all, &n, &e), 0);
	assert_int_equal(n, emb != NULL ? 2 : 0);
	free(all);
	if (emb != NULL) {
		assert_int_equal(store_restore(s, 0, &best, &info, &e), 0);
		assert_true(info.valid_score < .2); /* below the score that was best */
		assert_memory_equal(best->ent, emb->ent, (NAMES - 1) * DIM * sizeof(float));
		kge_emb_free(best);
	}
	assert_int_equal(store_meta(s, "core", &meta, &e), 0);
	assert_memory_equal(meta.base, "stays", 5);
	buf_clear(&meta);
	assert_int_equal(store_meta(s, "owner", &meta, &e), 0);
	assert_memory_equal(meta.base, "stays too", 9);
	buf_clear(&meta);
	assert_int_equal(store_meta(s, "learner", &meta, NULL), emb != NULL ? 0 : ERR_NOTFOUND);
	assert_memory_equal(meta.base, "part-anew", meta.len);
	buf_release(&meta);
	assert_int_equal(store_load_names(s, g, peer, &names, &e), 0);
	assert_string_equal(names.ent[4], "alias-five"); /* was id 5 */
	assert_string_equal(names.ent[2], "name-3");
	store_names_release(&names);
	graph_free(g);
	if (store_check(s, &e) != 0)
		fail_msg("%s", e.text);
}

static void nothing_is_left(void **state)
{
	char *path = path_of("a.db");
	struct kge_emb *old, *emb = tables(NAMES - 1, 1, 2);
	struct store *s = old_store(path, &old);
	struct err e = { 0 };

	(void)state;
	assert_true(traces(old) >= 8);
	assert_int_equal(files_with(kge_ent(old, BIG - 100), DIM * sizeof(float)), 1);
	if (forget(s, emb, &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(traces(old), 0);
	check_kept(s, emb);
	store_close(s);
	assert_int_equal(traces(old), 0);
	s = must_open(path, STORE_OWN);
	check_kept(s, emb);
	store_close(s);
	unlink(path);
	kge_emb_free(old);
	kge_emb_free(emb);
	free(path);
}

static void without_tables(void **state)
{
	char *path = path_of("b.db");
	struct kge_emb *old;
	struct store *s = old_store(path, &old);
	struct err e = { 0 };

	(void)state;
	assert_int_equal(forget(s, NULL, &e), 0);
	check_kept(s, NULL);
	assert_int_equal(traces(old), 0);
	store_close(s);
	unlink(path);
	kge_emb_free(old);
	free(path);
}

/* While somebody reads, the log cannot be emptied: that is said, and made good at the next opening.
 */
static void a_reader_delays_it(void **state)
{
	char *path = path_of("c.db");
	struct kge_emb *old, *emb = tables(NAMES - 1, 1, 2);
	struct store *s = old_store(path, &old), *reader = must_open(path, STORE_READ);
	struct err e = { 0 };
	sqlite3_stmt *st;

	(void)state;
	assert_int_equal(db_query(reader, &st, &e, "SELECT name FROM name", ""), 0);
	assert_int_equal(db_step(reader, st, &e), 1);
	sqlite3_busy_timeout(s->db, 10);
	assert_int_equal(forget(s, emb, &e), ERR_STORE);
	assert_non_null(strstr(e.text, "another program reads it"));
	assert_true(traces(old) > 0);
	store_close(s);
	sqlite3_finalize(st);
	store_close(reader);
	s = must_open(path, STORE_OWN);
	assert_int_equal(traces(old), 0);
	check_kept(s, emb);
	store_close(s);
	unlink(path);
	kge_emb_free(old);
	kge_emb_free(emb);
	free(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_is_left),
		cmocka_unit_test(without_tables),
		cmocka_unit_test(a_reader_delays_it),
	};

	return cmocka_run_group_tests_name("store forget", tests, make_folder, remove_folder);
}
