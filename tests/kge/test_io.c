/* Tables out and in, by name.  With the words "export FORMAT FOLDER" this program
 * instead exports a small table there, for test_numpy.sh to read with Python;
 * with "import" it reads back what Python wrote. */
#include "tests/folder.h"
#include "tests/test.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/file.h"
#include "base/mem.h"
#include "kge/io.h"
#include "tests/faults.h"

/* Names in the given direction: the same graph with other ids. */
static struct graph *named_graph(bool backwards)
{
	static const char *const names[] = { "a", "b b", "\xce\xb3", "d'\"\\", "%20 %25%2" };
	struct graph *g = graph_new();

	for (size_t i = 0; i < 5; i++) {
		const char *name = names[backwards ? 4 - i : i];

		graph_vocab_add(g->entities, name, strlen(name));
	}
	graph_vocab_add(g->relations, backwards ? "s" : "r", 1);
	graph_vocab_add(g->relations, backwards ? "r" : "s", 1);
	return g;
}

static struct kge_emb *random_emb(const char *model, size_t dim, const struct graph *g,
				  uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	return kge_emb_new(kge_model_find(model), dim, 6, graph_vocab_count(g->entities),
			   graph_vocab_count(g->relations), &r);
}

static void same_rows(const struct kge_emb *a, const struct graph *in_a, const struct kge_emb *b,
		      const struct graph *in_b)
{
	for (uint32_t id = 0; id < graph_vocab_count(in_a->entities); id++) {
		size_t len;
		const char *name = graph_vocab_name(in_a->entities, id, &len);

		assert_memory_equal(kge_ent(a, id),
				    kge_ent(b, graph_vocab_find(in_b->entities, name, len)),
				    a->ent_floats * sizeof(float));
	}
	for (uint32_t id = 0; id < graph_vocab_count(in_a->relations); id++) {
		size_t len;
		const char *name = graph_vocab_name(in_a->relations, id, &len);

		assert_memory_equal(kge_rel(a, id),
				    kge_rel(b, graph_vocab_find(in_b->relations, name, len)),
				    a->rel_floats * sizeof(float));
	}
}

static void there_and_back(void **state)
{
	static const char *const models[] = { "transe", "rotate", "complex", "transr", "transd" };
	struct graph *g = named_graph(false), *h = named_graph(true);

	(void)state;
	for (size_t m = 0; m < 5; m++) {
		for (int f = KGE_NPY; f <= KGE_OPENKE; f++) {
			struct kge_emb *a = random_emb(models[m], 7, g, 1);
			struct kge_emb *b = random_emb(models[m], 7, h, 2);
			struct err e = { 0 };

			a->ent[0] = -0.0f;
			a->ent[1] = 1e-45f; /* the smallest there is */
			a->ent[2] = 3.4028235e38f;
			assert_int_equal(
				kge_export(a, g, folder, (enum kge_table_format)f, NULL, &e), 0);
			assert_int_equal(kge_import(b, h, folder, (enum kge_table_format)f, &e), 0);
			same_rows(a, g, b, h);
			kge_emb_free(a);
			kge_emb_free(b);
		}
	}
	graph_free(g);
	graph_free(h);
}

/* Whatever the ids are: the same bytes for the same rows of the same names. */
static void by_name_ids_do_not_show(void **state)
{
	static const char *const files[] = { "entities.txt",   "entities.npy",	  "relations.txt",
					     "relations.tsv",  "entities.tsv",	  "entities.vec",
					     "relations.vec",  "entity2id.txt",	  "relation2id.txt",
					     "entity2vec.vec", "relation2vec.vec" };
	struct graph *g = named_graph(false), *h = named_graph(true);
	struct kge_emb *a = random_emb("transh", 7, g, 1), *b = random_emb("transh", 7, h, 2);
	const struct kge_told sorted = { .by_name = true };
	struct buf first[11] = { 0 };

	(void)state;
	assert_int_equal(kge_export(a, g, folder, KGE_NPY, NULL, NULL), 0);
	assert_int_equal(kge_import(b, h, folder, KGE_NPY, NULL), 0);
	for (int turn = 0; turn < 2; turn++) {
		for (int f = KGE_NPY; f <= KGE_OPENKE; f++)
			assert_int_equal(kge_export(turn ? b : a, turn ? h : g, folder,
						    (enum kge_table_format)f, &sorted, NULL),
					 0);
		for (size_t i = 0; i < 11; i++) {
			char *path = file_join(folder, files[i]);
			struct buf now = { 0 };

			assert_int_equal(file_read(path, 1 << 20, &now, NULL), 0);
			free(path);
			if (turn == 0) {
				first[i] = now;
				continue;
			}
			assert_int_equal(now.len, first[i].len);
			assert_memory_equal(now.base, first[i].base, now.len);
			buf_release(&now);
			buf_release(&first[i]);
		}
	}
	assert_int_equal(kge_import(b, h, folder, KGE_OPENKE, NULL), 0);
	same_rows(a, g, b, h);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
	graph_free(h);
}

/* ---- what is refused ---- */

static void put(const char *name, const void *bytes, size_t n)
{
	char *path = file_join(folder, name);

	assert_int_equal(file_write_atomic(path, bytes, n, 0600, NULL), 0);
	free(path);
}

static void refuses(struct kge_emb *emb, const struct graph *g, enum kge_table_format f,
		    const char *says)
{
	struct kge_emb *before = kge_emb_copy(emb);
	struct err e = { 0 };

	assert_int_equal(kge_import(emb, g, folder, f, &e), ERR_INPUT);
	if (strstr(e.text, says) == NULL)
		fail_msg("says \"%s\", not \"%s\"", e.text, says);
	same_rows(emb, g, before, g);
	kge_emb_free(before);
}

#define TEXT(s) s, sizeof s - 1

static void broken_tsv_is_refused_by_line(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *says;
	} bad[] = {
		{ TEXT("x\t1\t2\n"), "entities.tsv:1: 'x' is not one of the graph's entities" },
		{ TEXT("e0\t1\t2\ne0\t1\t2\n"), "entities.tsv:2: 'e0' is there twice" },
		{ TEXT("e0\t1\t2\n"), "entities.tsv: no row for 'e1'" },
		{ TEXT(""), "entities.tsv: no row for 'e0'" },
		{ TEXT("e0\t1\n"), "entities.tsv:1: 2 columns where 3" },
		{ TEXT("e0\t1\t2\t3\n"), "entities.tsv:1: 4 columns where 3" },
		{ TEXT("e0\t1\t2x\n"), "entities.tsv:1: column 3: '2x' is not a finite number" },
		{ TEXT("e0\tnan\t2\n"), "entities.tsv:1: column 2: 'nan' is not a finite" },
		{ TEXT("e0\t1\t1e99\n"), "entities.tsv:1: column 3: '1e99' is not a finite" },
		{ TEXT("e0\t1\t\n"), "entities.tsv:1: column 3 (number) is empty" },
	};
	struct graph *g = graph_new();
	struct kge_emb *emb;

	(void)state;
	graph_vocab_add(g->entities, "e0", 2);
	graph_vocab_add(g->entities, "e1", 2);
	graph_vocab_add(g->relations, "r", 1);
	emb = random_emb("transe", 2, g, 3);
	put("relations.tsv", TEXT("r\t1\t2\n"));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put("entities.tsv", bad[i].bytes, bad[i].n);
		refuses(emb, g, KGE_TSV, bad[i].says);
	}
	put("entities.tsv", TEXT("e0\t1\t2\ne1\t3\t4\n"));
	put("relations.tsv", TEXT("r\t1\tx\n"));
	refuses(emb, g, KGE_TSV, "relations.tsv:1: column 3");
	put("relations.tsv", TEXT("r\t5\t6\n"));
	assert_int_equal(kge_import(emb, g, folder, KGE_TSV, NULL), 0);
	assert_near(emb->ent[3], 4, 0, 0);
	assert_near(emb->rel[0], 5, 0, 0);
	kge_emb_free(emb);
	graph_free(g);
}

/* Two entities and a relation of two numbers each. */
static struct kge_emb *small_emb(struct graph **g)
{
	*g = graph_new();
	graph_vocab_add((*g)->entities, "e0", 2);
	graph_vocab_add((*g)->entities, "e 1", 3);
	graph_vocab_add((*g)->relations, "r", 1);
	return random_emb("transe", 2, *g, 3);
}

static void broken_word2vec_is_refused_by_line(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "", "entities.vec:1: empty" },
		{ "2\n", "entities.vec:1: 1 column where 2 are wanted, with one space between" },
		{ "2 3\n", "entities.vec:1: says '3' numbers where 2 are wanted" },
		{ "1 2\n", "entities.vec:1: says '1' rows where 2 are wanted" },
		{ "2x 2\n", "entities.vec:1: says '2x' rows" },
		{ "-2 2\n", "entities.vec:1: says '-2' rows" },
		{ "99999999999999999999999 2\n", "entities.vec:1: says '9999" },
		{ "2 2\ne0 1 2\n", "entities.vec: no row for 'e 1'" },
		{ "2 2\ne0 1 2\ne 1 1 2\n", "entities.vec:3: 4 columns where 3 are wanted" },
		{ "2 2\ne0 1 2\ne0 1 2\n", "entities.vec:3: 'e0' is there twice" },
		{ "2 2\ne0 1 2  \n", "entities.vec:2: 4 columns" },
		{ "2 2\ne0 1  2\n", "entities.vec:2: 4 columns" },
		{ "2 2\ne%201 1 inf\n", "entities.vec:2: column 3: 'inf' is not a finite number" },
		{ "2 2\ne%2501 1 2\n", "entities.vec:2: 'e%01' is not one of the graph's" },
		{ "2 2\ne0 1 2\ne%201 3 4\nx 1 2\n", "entities.vec:4: 'x' is not one of" },
	};
	struct graph *g;
	struct kge_emb *emb = small_emb(&g);

	(void)state;
	put("relations.vec", TEXT("1 2\nr 5 6\n"));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put("entities.vec", bad[i].text, strlen(bad[i].text));
		refuses(emb, g, KGE_WORD2VEC, bad[i].says);
	}
	put("entities.vec", TEXT("2 2\ne0 1 2 \ne%201 3 4"));
	assert_int_equal(kge_import(emb, g, folder, KGE_WORD2VEC, NULL), 0);
	assert_near(emb->ent[3], 4, 0, 0);
	kge_emb_free(emb);
	graph_free(g);
}

static void broken_openke_is_refused_by_line(void **state)
{
	static const struct {
		const char *ids, *rows, *says;
	} bad[] = {
		{ "2\n", "1\t2\n3\t4\n", "entity2id.txt: no row for 'e0'" },
		{ "1\ne0\t0\n", "1\t2\n3\t4\n", "entity2id.txt: no row for 'e 1'" },
		{ "3\ne0\t0\ne 1\t1\nx\t2\n", "", "entity2id.txt: 'x' is not one of the graph's" },
		{ "2\ne0\t0\ne 1\t2\n", "", "entity2id.txt:3: id 2, but" },
		{ "2\ne0\t0\ne 1\t1\n", "", "entity2vec.vec:1: ends after 0 of 2 rows" },
		{ "2\ne0\t0\ne 1\t1\n", "1\t2\n", "entity2vec.vec:1: ends after 1 of 2 rows" },
		{ "2\ne0\t0\ne 1\t1\n", "1\t2\n3\t4\n5\t6\n", "entity2vec.vec:3: more rows than" },
		{ "2\ne0\t0\ne 1\t1\n", "1\t2\t3\n", "entity2vec.vec:1: 3 columns where 2" },
		{ "2\ne0\t0\ne 1\t1\n", "1\tx\n", "entity2vec.vec:1: column 2: 'x' is not" },
	};
	struct graph *g;
	struct kge_emb *emb = small_emb(&g);

	(void)state;
	put("relation2id.txt", TEXT("1\nr\t0\n"));
	put("relation2vec.vec", TEXT("5\t6\t\n"));
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put("entity2id.txt", bad[i].ids, strlen(bad[i].ids));
		put("entity2vec.vec", bad[i].rows, strlen(bad[i].rows));
		refuses(emb, g, KGE_OPENKE, bad[i].says);
	}
	put("entity2id.txt", TEXT("2\ne0\t1\ne 1\t0\n"));
	put("entity2vec.vec", TEXT("1\t2\n3\t4\n"));
	assert_int_equal(kge_import(emb, g, folder, KGE_OPENKE, NULL), 0);
	assert_near(emb->ent[0], 3, 0, 0);
	assert_near(emb->ent[2], 1, 0, 0);
	assert_near(emb->rel[1], 6, 0, 0);
	kge_emb_free(emb);
	graph_free(g);
}

/* Every byte of a good file changed, and every length: refused or equal, never a crash. */
static void broken_npy_is_refused(void **state)
{
	struct graph *g = named_graph(false);
	struct kge_emb *a = random_emb("transe", 3, g, 4), *b = random_emb("transe", 3, g, 5);
	char *path = file_join(folder, "entities.npy");
	struct buf good = { 0 };
	float nan = NAN;

	(void)state;
	assert_int_equal(kge_export(a, g, folder, KGE_NPY, NULL, NULL), 0);
	assert_int_equal(file_read(path, 65536, &good, NULL), 0);
	assert_int_equal(good.len, 128 + 5 * 3 * 4);
	for (size_t n = 0; n < good.len; n++) {
		put("entities.npy", good.base, n);
		refuses(b, g, KGE_NPY, "entities.npy: ");
	}
	for (size_t at = 0; at < 128; at++) {
		good.base[at] ^= 0x15;
		put("entities.npy", good.base, good.len);
		(void)kge_import(b, g, folder, KGE_NPY, NULL);
		good.base[at] ^= 0x15;
	}
	memcpy(good.base + 128 + 4 * 4, &nan, 4);
	put("entities.npy", good.base, good.len);
	refuses(b, g, KGE_NPY, "entities.npy: row 1 has a number that is not finite");
	buf_add(&good, "x", 1);
	memcpy(good.base + 128 + 4 * 4, &a->ent[4], 4);
	put("entities.npy", good.base, good.len);
	refuses(b, g, KGE_NPY, "entities.npy: more bytes after its 5 rows");
	put("entities.npy", good.base, good.len - 1);
	put("entities.txt", TEXT("a\nb b\n"));
	refuses(b, g, KGE_NPY, "entities.txt: no row for");
	kge_emb_free(b);
	b = random_emb("transe", 4, g, 5);
	assert_int_equal(kge_export(a, g, folder, KGE_NPY, NULL, NULL), 0);
	refuses(b, g, KGE_NPY, "entities.npy: 5 rows of 3 numbers where 5 of 4 are wanted");
	buf_release(&good);
	free(path);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

/* Two programs' files say which row is whose: neither is believed. */
static void names_of_two_programs(void **state)
{
	struct graph *g = named_graph(false);
	struct kge_emb *a = random_emb("transe", 3, g, 1), *b = random_emb("transe", 3, g, 2);
	char *path = file_join(folder, "relations.dict");

	(void)state;
	assert_int_equal(kge_export(a, g, folder, KGE_NPY, NULL, NULL), 0);
	assert_int_equal(kge_import(b, g, folder, KGE_NPY, NULL), 0);
	put("relations.dict", TEXT("0\tx\n"));
	refuses(b, g, KGE_NPY, "is said by relations.txt and by relations.dict");
	assert_int_equal(remove(path), 0);
	assert_int_equal(kge_import(b, g, folder, KGE_NPY, NULL), 0);
	free(path);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

/* The first of these letters in the file become others, as many. */
/* Numbers of rows in a file of names: each is there once, and a head is a first line. */
static void numbers_of_names_are_whole(void **state)
{
	static const struct {
		const char *text, *says;
	} bad[] = {
		{ "0\te0\n0\te 1\n", "entity_ids.del:2: row 0 is there twice" },
		{ "0\te0\n1\te0\n", "entity_ids.del:2: 'e0' is there twice" },
		{ "0\te0\n2\te 1\n", "entity_ids.del:2: '2' is no row from 0 to 1" },
		{ "0\te0\n-1\te 1\n", "entity_ids.del:2: '-1' is no row" },
		{ "1\te0\nid\tlabel\n0\te 1\n", "entity_ids.del:2: 'id' is no row" },
	};
	struct graph *g;
	struct kge_emb *a = small_emb(&g), *b = kge_emb_copy(a);
	char *names = file_join(folder, "entities.txt"),
	     *path = file_join(folder, "entity_ids.del");

	(void)state;
	assert_int_equal(kge_export(a, g, folder, KGE_NPY, NULL, NULL), 0);
	assert_int_equal(remove(names), 0);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put("entity_ids.del", bad[i].text, strlen(bad[i].text));
		refuses(b, g, KGE_NPY, bad[i].says);
	}
	put("entity_ids.del", TEXT("id\tlabel\n1\te0\n0\te 1\n"));
	assert_int_equal(kge_import(b, g, folder, KGE_NPY, NULL), 0);
	for (size_t i = 0; i < 4; i++) /* the other way round */
		assert_true(b->ent[i] == a->ent[(i + 2) % 4]);
	assert_int_equal(remove(path), 0);
	free(path);
	free(names);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

static void spoil_file(const char *in, const char *name, const char *from, const char *to)
{
	char *path = mem_printf("%s/%s", in, name);
	struct buf file = { 0 };
	uint8_t *at;

	assert_int_equal(file_read(path, 65536, &file, NULL), 0);
	at = memmem(file.base, file.len, from, strlen(from));
	assert_non_null(at);
	memcpy(at, to, strlen(to));
	assert_int_equal(file_write_atomic(path, file.base, file.len, 0600, NULL), 0);
	buf_release(&file);
	free(path);
}

/* Rows that are not those that an export says are refused, unless it says nothing of them. */
static void rows_are_those_of_the_digest(void **state)
{
	static const char *const models[] = { "transe", "complex", "complex_reciprocal" };
	struct graph *g = named_graph(false), *h = named_graph(true);

	(void)state;
	for (int k = 0; k < 6; k++) {
		enum kge_table_format f = k % 2 == 0 ? KGE_SAFETENSORS : KGE_PYKEEN;
		char *in = mem_printf("%s/digest%d", folder, k);
		struct kge_emb *a = random_emb(models[k / 2], 3, g, 1),
			       *b = random_emb(models[k / 2], 3, h, 2);
		struct err e = { 0 };

		memcpy(a->ent, "bad?", 4); /* below 1, both */
		memcpy(a->rel, "bat?", 4);
		assert_int_equal(kge_export(a, g, in, f, NULL, &e), 0);
		assert_int_equal(kge_import(b, h, in, f, &e), 0);
		same_rows(a, g, b, h);
		for (int table = 0; table < 2; table++) {
			const char *was = table == 0 ? "bad?" : "bat?";

			spoil_file(in, "model.safetensors", was, "bid?");
			assert_int_equal(kge_import(b, h, in, f, &e), ERR_INPUT);
			assert_non_null(strstr(e.text, "model.safetensors: its rows are not"));
			same_rows(a, g, b, h);
			spoil_file(in, "model.safetensors", "bid?", was);
		}
		spoil_file(in, "model.safetensors", "bat?", "bid?");
		spoil_file(in, "model.safetensors", "\"digest\"", "\"mended\"");
		assert_int_equal(kge_import(b, h, in, f, &e), 0);
		assert_memory_equal(kge_rel(b, 1), "bid?", 4);
		free(in);
		kge_emb_free(a);
		kge_emb_free(b);
	}
	graph_free(g);
	graph_free(h);
}

/* A file of names is not replaced where rows of another format go by it, or triples. */
static void names_that_others_go_by_stay(void **state)
{
	static const struct {
		enum kge_table_format first, then;
		const char *says;
	} both[] = {
		{ KGE_NPY, KGE_SAFETENSORS, "entities.npy goes by entities.txt" },
		{ KGE_SAFETENSORS, KGE_NPY, "model.safetensors goes by entities.txt" },
		{ KGE_TSV, KGE_OPENKE, "train2id.txt goes by entity2id.txt" },
	};
	struct graph *g = named_graph(false), *h = named_graph(true);
	struct kge_emb *a = random_emb("transe", 3, g, 1), *other = random_emb("transe", 3, h, 2),
		       *b = random_emb("transe", 3, g, 3);

	(void)state;
	for (size_t k = 0; k < sizeof both / sizeof *both; k++) {
		char *in = mem_printf("%s/shared%zu", folder, k);
		struct err e = { 0 };

		assert_int_equal(kge_export(a, g, in, both[k].first, NULL, &e), 0);
		if (both[k].then == KGE_OPENKE)
			assert_int_equal(graph_save_openke(g, in, &e), 0);
		assert_int_equal(kge_export(other, h, in, both[k].then, NULL, &e), ERR_EXISTS);
		if (strstr(e.text, both[k].says) == NULL)
			fail_msg("says \"%s\", not \"%s\"", e.text, both[k].says);
		assert_int_equal(kge_import(b, g, in, both[k].then, &e), ERR_NOFILE);
		assert_int_equal(kge_import(b, g, in, both[k].first, &e), 0);
		same_rows(a, g, b, g);
		/* the same names in the same order */
		assert_int_equal(kge_export(b, g, in, both[k].then, NULL, &e), 0);
		assert_int_equal(kge_import(b, g, in, both[k].then, &e), 0);
		same_rows(a, g, b, g);
		free(in);
	}
	kge_emb_free(a);
	kge_emb_free(b);
	kge_emb_free(other);
	graph_free(g);
	graph_free(h);
}

/* OpenKE's triples bring ids, by which rows may go there already. */
static void ids_that_rows_go_by_stay(void **state)
{
	struct graph *g = named_graph(false), *h = named_graph(true), *r = named_graph(false);
	struct kge_emb *a = random_emb("transe", 3, g, 1), *b = random_emb("transe", 3, g, 2);
	char *in = file_join(folder, "ids"), *train = file_join(in, "train2id.txt");
	struct err e = { 0 };

	(void)state;
	graph_vocab_add(r->relations, "t", 1);
	assert_int_equal(kge_export(a, g, in, KGE_OPENKE, NULL, &e), 0);
	assert_int_equal(kge_export_graph(h, in, KGE_OPENKE, &e), ERR_EXISTS);
	assert_non_null(strstr(e.text, "ids: entity2vec.vec goes by entity2id.txt"));
	assert_int_equal(kge_export_graph(r, in, KGE_OPENKE, &e), ERR_EXISTS);
	assert_non_null(strstr(e.text, "ids: relation2vec.vec goes by relation2id.txt"));
	assert_false(file_exists(train));
	assert_int_equal(kge_import(b, g, in, KGE_OPENKE, &e), 0);
	same_rows(a, g, b, g);
	assert_int_equal(kge_export_graph(h, in, KGE_TSV, &e), 0); /* no ids */
	assert_int_equal(kge_export_graph(g, in, KGE_OPENKE, &e), 0);
	assert_true(file_exists(train));
	free(in);
	free(train);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
	graph_free(h);
	graph_free(r);
}

/* ---- the graph itself ---- */

/* All triples by name, for each split. */
static void put_triples(struct buf *to, const struct graph *g)
{
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++) {
			const struct graph_triple *t = &g->split[s].at[i];

			buf_printf(to, "%d %s %s %s\n", s,
				   graph_vocab_name(g->entities, t->head, NULL),
				   graph_vocab_name(g->relations, t->rel, NULL),
				   graph_vocab_name(g->entities, t->tail, NULL));
		}
}

static struct graph *graph_of_lines(const char *const lines[GRAPH_SPLITS])
{
	static const char *const names[] = { "train.tsv", "valid.tsv", "test.tsv" };
	char *in = file_join(folder, "lines");
	struct err e = { 0 };
	struct graph *g;

	assert_int_equal(file_make_folder(in, 0755, &e), 0);
	for (int s = 0; s < GRAPH_SPLITS; s++) {
		char *path = file_join(in, names[s]);

		assert_int_equal(file_write_atomic(path, lines[s], strlen(lines[s]), 0644, &e), 0);
		free(path);
	}
	assert_int_equal(graph_load(&g, in, NULL, NULL, &e), 0);
	free(in);
	return g;
}

/* Names and bytes of all that lies below. */
static void put_all_files(struct buf *to, const char *in)
{
	struct dirent **found;
	int n = scandir(in, &found, NULL, alphasort);

	assert_true(n >= 2);
	for (int i = 0; i < n; i++) {
		char *path = file_join(in, found[i]->d_name);

		if (found[i]->d_name[0] != '.') {
			buf_printf(to, "%s\n", path);
			if (found[i]->d_type == DT_DIR)
				put_all_files(to, path);
			else
				assert_int_equal(file_read(path, 65536, to, NULL), 0);
		}
		free(path);
		free(found[i]);
	}
	free(found);
}

static bool same_bytes(const struct buf *a, const struct buf *b)
{
	return a->len == b->len && memcmp(a->base, b->base, a->len) == 0;
}

struct two_graphs {
	struct graph *old, *new;
	struct buf files[2], triples[2]; /* as they are exported; old, new */
};

/* The export fails, or its process is killed, at the k-th rename; false: it has fewer. */
static bool stopped_at(const struct graph *g, const char *in, enum kge_table_format f, size_t k,
		       bool kills)
{
	pid_t child = fork();
	int status = 0;

	assert_true(child >= 0);
	if (child == 0) {
		faults_begin(in);
		faults.calls = FAULT_RENAME;
		faults.at = k;
		faults.why = ENOSPC;
		faults.kills = kills;
		_exit(kge_export_graph(g, in, f, NULL) != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	return WIFSIGNALED(status) || WEXITSTATUS(status) != 0;
}

static void what_is_there_is_whole(const struct two_graphs *x, const char *in,
				   enum kge_table_format f, bool killed)
{
	struct buf files = { 0 }, triples = { 0 };
	struct graph *g;

	put_all_files(&files, in);
	if (!killed)
		assert_true(same_bytes(&files, &x->files[0]));
	else if (f != KGE_PYKEEN && graph_load(&g, in, NULL, NULL, NULL) == 0) {
		put_triples(&triples, g);
		assert_true(same_bytes(&triples, &x->triples[0]) ||
			    same_bytes(&triples, &x->triples[1]));
		graph_free(g);
	}
	buf_release(&files);
	buf_release(&triples);
}

static void graphs_come_whole(struct two_graphs *x, const char *in, enum kge_table_format f)
{
	for (int i = 0; i < 2; i++) {
		buf_clear(&x->files[i]);
		assert_int_equal(kge_export_graph(i == 0 ? x->old : x->new, in, f, NULL), 0);
		put_all_files(&x->files[i], in);
	}
	for (int kills = 0; kills < 2; kills++) {
		size_t k = 0;
		struct buf files = { 0 };

		do {
			assert_true(++k < 100);
			assert_int_equal(kge_export_graph(x->old, in, f, NULL), 0);
			if (!stopped_at(x->new, in, f, k, kills))
				break;
			what_is_there_is_whole(x, in, f, kills);
		} while (true);
		put_all_files(&files, in);
		assert_true(k > 4 && same_bytes(&files, &x->files[1]));
		buf_release(&files);
	}
}

static void failed_graphs_leave_the_old_one(void **state)
{
	static const enum kge_table_format formats[] = { KGE_TSV, KGE_OPENKE, KGE_PYKEEN };
	static const char *const lines[][GRAPH_SPLITS] = {
		{ "a\tr\tb\nb\ts\tc\nc\tr\td\n", "a\ts\tb\n", "a\tr\tc\n" },
		{ "d\ts\tc\nc\tr\tb\nb\ts\ta\n", "d\tr\tc\n", "d\ts\tb\n" },
	};
	struct two_graphs x = {
		graph_of_lines(lines[0]), graph_of_lines(lines[1]), { { 0 } }, { { 0 } }
	};

	(void)state;
	put_triples(&x.triples[0], x.old);
	put_triples(&x.triples[1], x.new);
	for (size_t i = 0; i < sizeof(formats) / sizeof(*formats); i++) {
		char *in = mem_printf("%s/graph%zu", folder, i),
		     *mine = file_join(in, "training_triples/mine");
		struct err e = { 0 };

		if (formats[i] == KGE_PYKEEN) { /* in a folder of the factory: it stays */
			assert_int_equal(kge_export_graph(x.old, in, KGE_PYKEEN, &e), 0);
			assert_int_equal(file_write_atomic(mine, "x", 1, 0644, &e), 0);
		}
		graphs_come_whole(&x, in, formats[i]);
		assert_true(file_exists(mine) == (formats[i] == KGE_PYKEEN));
		free(in);
		free(mine);
	}
	for (int i = 0; i < 2; i++) {
		buf_release(&x.files[i]);
		buf_release(&x.triples[i]);
	}
	graph_free(x.old);
	graph_free(x.new);
}

/* The shape as others might write it: of a table and no other. */
static void npy_shapes(void **state)
{
	static const char *const wrong[] = {
		"(5,)", "(5, 3, 1)", "(-5, 3)", "(5, -3)",  "()",
		"5, 3", "(5 3)",     "(5, 3",	"(5.0, 3)", "(99999999999, 3)"
	};
	struct graph *g = named_graph(false);
	struct kge_emb *a = random_emb("transe", 3, g, 4), *b = random_emb("transe", 3, g, 5);
	char *path = file_join(folder, "entities.npy");
	struct buf file = { 0 };

	(void)state;
	assert_int_equal(kge_export(a, g, folder, KGE_NPY, NULL, NULL), 0);
	assert_int_equal(file_read(path, 65536, &file, NULL), 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		char *header = mem_printf("{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
					  wrong[i]);

		memset(file.base + 10, ' ', 117);
		memcpy(file.base + 10, header, strlen(header));
		put("entities.npy", file.base, file.len);
		refuses(b, g, KGE_NPY, "entities.npy: is not a table");
		free(header);
	}
	buf_release(&file);
	free(path);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

/* No file may be longer than `most` bytes, as where the disk is full. */
static int export_cramped(const struct kge_emb *emb, const struct graph *g, const char *in,
			  enum kge_table_format f, rlim_t most)
{
	struct rlimit was, now;
	int rc;

	assert_int_equal(getrlimit(RLIMIT_FSIZE, &was), 0);
	now = was;
	now.rlim_cur = most;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &now), 0);
	rc = kge_export(emb, g, in, f, NULL, NULL);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &was), 0);
	return rc;
}

/* Relations of TransR are longer than entities: these can be written, those cannot. */
static void failed_exports_leave_the_old_one(void **state)
{
	struct graph *g = named_graph(false), *h = named_graph(true);
	struct kge_emb *a = random_emb("transr", 7, g, 1), *other = random_emb("transr", 7, h, 2),
		       *b = random_emb("transr", 7, g, 3);

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	for (size_t i = 0; i < 2 * a->rel_floats; i++) /* as long in text, too */
		a->rel[i] = other->rel[i] = (float)(i + 1) / 7;
	for (int k = KGE_NPY; k <= KGE_OPENKE; k++) {
		enum kge_table_format f = (enum kge_table_format)k;
		char *in = mem_printf("%s/cramped%d", folder, k),
		     *aside = file_join(in, "new.part");

		assert_int_equal(export_cramped(a, g, in, f, f == KGE_NPY ? 400 : 800), ERR_IO);
		assert_false(file_exists(in));
		assert_int_equal(kge_export(a, g, in, f, NULL, NULL), 0);
		assert_int_equal(export_cramped(other, h, in, f, f == KGE_NPY ? 400 : 800), ERR_IO);
		assert_false(file_exists(aside));
		assert_int_equal(kge_import(b, g, in, f, NULL), 0);
		same_rows(a, g, b, g);
		assert_int_equal(kge_export(other, h, in, f, NULL, NULL), 0);
		assert_int_equal(kge_import(b, g, in, f, NULL), 0);
		same_rows(other, h, b, g);
		free(aside);
		free(in);
	}
	kge_emb_free(a);
	kge_emb_free(b);
	kge_emb_free(other);
	graph_free(g);
	graph_free(h);
}

/* Killed at the k-th rename of an export over an older one: an import has the old tables, the new
 * ones, or none. */
static bool killed_at(size_t k, const struct kge_emb *old, const struct kge_emb *new,
		      const struct graph *g, enum kge_table_format f)
{
	struct kge_emb *b = kge_emb_copy(old);
	char *in = mem_printf("%s/killed%d", folder, f);
	int status = 0;
	pid_t child;

	assert_int_equal(kge_export(old, g, in, f, NULL, NULL), 0);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		faults_begin(in);
		faults.calls = FAULT_RENAME;
		faults.at = k;
		faults.kills = true;
		_exit(kge_export(new, g, in, f, NULL, NULL) != 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (kge_import(b, g, in, f, NULL) == 0)
		same_rows(b->rel[0] == old->rel[0] ? old : new, g, b, g);
	else
		assert_true(WIFSIGNALED(status));
	assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) == 0);
	free(in);
	kge_emb_free(b);
	return WIFSIGNALED(status);
}

static void killed_exports_are_no_mixture(void **state)
{
	struct graph *g = named_graph(false);
	struct kge_emb *old = random_emb("transe", 3, g, 1), *new = random_emb("transe", 3, g, 2);

	(void)state;
	for (int f = KGE_NPY; f <= KGE_PYKEEN; f++) {
		size_t k = 1;

		while (killed_at(k, old, new, g, (enum kge_table_format)f))
			assert_true(++k < 50);
		assert_true(k > 4);
	}
	kge_emb_free(old);
	kge_emb_free(new);
	graph_free(g);
}

static void failed_exports_say_why(void **state)
{
	struct graph *g = named_graph(false);
	struct kge_emb *emb = random_emb("transe", KGE_TEXT_FLOATS_MAX + 1, g, 6);
	char *path = file_join(folder, "in-the-way");
	struct err e = { 0 };

	(void)state;
	put("in-the-way", "", 0);
	assert_true(kge_export(emb, g, path, KGE_NPY, NULL, &e) < 0);
	assert_non_null(strstr(e.text, "in-the-way"));
	assert_int_equal(kge_export(emb, g, folder, KGE_TSV, NULL, &e), ERR_TOOBIG);
	free(path);
	kge_emb_free(emb);
	graph_free(g);
}

/* ---- with Python ---- */

/* Column i of row k holds k + i / 7. */
static struct kge_emb *known_emb(const struct graph *g)
{
	struct kge_emb *emb = random_emb("rotate", 5, g, 1);

	for (size_t i = 0; i < 5 * emb->ent_floats; i++)
		emb->ent[i] = (float)(i / emb->ent_floats) + (float)(i % emb->ent_floats) / 7;
	for (size_t i = 0; i < 2 * emb->rel_floats; i++)
		emb->rel[i] = (float)(i / emb->rel_floats) + (float)(i % emb->rel_floats) / 7;
	return emb;
}

static int export_for_python(const char *to, enum kge_table_format f)
{
	struct graph *g = named_graph(false);
	struct kge_emb *emb = known_emb(g);
	struct err e = { 0 };
	int rc = kge_export(emb, g, to, f, NULL, &e);

	if (rc != 0)
		fprintf(stderr, "%s\n", e.text);
	kge_emb_free(emb);
	graph_free(g);
	return rc != 0;
}

static int import_from_python(const char *from, enum kge_table_format f)
{
	struct graph *g = named_graph(true), *h = named_graph(false);
	struct kge_emb *got = random_emb("rotate", 5, g, 9), *want = known_emb(h);
	struct err e = { 0 };
	int rc = kge_import(got, g, from, f, &e);

	if (rc != 0)
		fprintf(stderr, "%s\n", e.text);
	else
		same_rows(got, g, want, h);
	kge_emb_free(got);
	kge_emb_free(want);
	graph_free(g);
	graph_free(h);
	return rc != 0;
}

static int with_python(const char *what, const char *format, const char *at)
{
	static const char *const formats[] = { [KGE_NPY] = "npy",
					       [KGE_TSV] = "tsv",
					       [KGE_WORD2VEC] = "word2vec",
					       [KGE_OPENKE] = "openke" };
	int f = 0;

	while (strcmp(formats[f], format) != 0)
		f++;
	return strcmp(what, "export") == 0 ? export_for_python(at, (enum kge_table_format)f)
					   : import_from_python(at, (enum kge_table_format)f);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(there_and_back),
		cmocka_unit_test(by_name_ids_do_not_show),
		cmocka_unit_test(broken_tsv_is_refused_by_line),
		cmocka_unit_test(broken_word2vec_is_refused_by_line),
		cmocka_unit_test(broken_openke_is_refused_by_line),
		cmocka_unit_test(broken_npy_is_refused),
		cmocka_unit_test(names_of_two_programs),
		cmocka_unit_test(numbers_of_names_are_whole),
		cmocka_unit_test(rows_are_those_of_the_digest),
		cmocka_unit_test(ids_that_rows_go_by_stay),
		cmocka_unit_test(failed_graphs_leave_the_old_one),
		cmocka_unit_test(names_that_others_go_by_stay),
		cmocka_unit_test(npy_shapes),
		cmocka_unit_test(failed_exports_leave_the_old_one),
		cmocka_unit_test(killed_exports_are_no_mixture),
		cmocka_unit_test(failed_exports_say_why),
	};

	if (argc == 4)
		return with_python(argv[1], argv[2], argv[3]);
	return cmocka_run_group_tests_name("kge io", tests, make_folder, remove_folder);
}
