/* Queries as lines of JSON: what is written is read again, what is wrong names file and line. */
#include "tests/folder.h"

#include "query/records.h"

static struct graph *small_graph(void)
{
	struct graph *g = graph_new();
	const char *const entities[] = { "/m/a", "/m/b", "c \"d\" \xc3\xa9", "x" };

	for (int i = 0; i < 4; i++)
		graph_vocab_add(g->entities, entities[i], strlen(entities[i]));
	graph_vocab_add(g->relations, "r1", 2);
	graph_vocab_add(g->relations, "r2", 2);
	graph_vocab_add(g->relations, "r3", 2);
	return g;
}

static char *put(const char *text)
{
	char *path = mem_printf("%s/queries.jsonl", folder);
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs(text, f);
	fclose(f);
	return path;
}

/* The result of reading all of the text, and the words of the error. */
static int read_all(const char *text, struct query_record *last, struct err *e)
{
	struct graph *g = small_graph();
	char *path = put(text);
	struct query_reader *r;
	int rc = query_reader_open(&r, path, g, e);

	assert_int_equal(rc, 0);
	while ((rc = query_reader_next(r, last, e)) == 1)
		;
	query_reader_close(r);
	free(path);
	graph_free(g);
	return rc;
}

static void test_reads(void **state)
{
	struct query_record q = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(
		read_all("{\"type\":\"1p\",\"anchors\":[\"x\"],\"relations\":[[\"r1\"]],\"hard\":[]"
			 "}\n"
			 "{\"type\":\"ip\",\"anchors\":[\"/m/a\",\"/m/b\"],\"relations\":[[\"r1\"],"
			 "[\"^r2\"]],\"last\":\"r3\",\"hard\":[\"x\",\"/m/b\"],\"new\":1}",
			 &q, &e),
		0);
	assert_int_equal(q.pattern, QUERY_IP);
	assert_int_equal(q.tree.n, 6);
	assert_int_equal(q.tree.at[0].id, 0);
	assert_int_equal(q.tree.at[2].id, 1);
	assert_true(q.tree.at[3].inverse);
	assert_int_equal(q.tree.at[3].id, 1);
	assert_int_equal(q.tree.at[5].id, 2);
	assert_int_equal(q.hard.n, 2);
	assert_int_equal(q.hard.at[0], 1);
	assert_int_equal(q.hard.at[1], 3);
	assert_false(q.has_easy || q.has_missing);
	query_record_release(&q);
}

#define HEAD1 "{\"type\":\"1p\",\"anchors\":[\"x\"],\"relations\":[[\"r1\"]]"
#define HEAD2 "{\"type\":\"2i\",\"anchors\":[\"x\",\"x\"],\"relations\":[[\"r1\"],[\"r1\"]]"

static void test_refuses(void **state)
{
	static const char *const texts[][2] = {
		{ "\n" HEAD1 ",\"hard\":[]}", "an empty line" },
		{ "[1]", "not a JSON object" },
		{ "{\"a\":1", "not a JSON object" },
		{ HEAD1 ",\"hard\":[]}{}", "not a JSON object" },
		{ HEAD1 ",\"hard\":[],\"hard\":[]}", "not a JSON object" },
		{ "{}", "type" },
		{ "{\"type\":\"other\"}", "type" },
		{ "{\"type\":7}", "type" },
		{ "{\"type\":\"1p\"}", "anchors" },
		{ "{\"type\":\"1p\",\"anchors\":[\"x\",\"x\"],\"relations\":[[\"r1\"]]}",
		  "anchors" },
		{ "{\"type\":\"1p\",\"anchors\":[\"x\"],\"relations\":[[\"r1\",\"r1\"]]}",
		  "relations" },
		{ "{\"type\":\"2p\",\"anchors\":[\"x\"],\"relations\":[\"r1r1\"]}", "relations" },
		{ "{\"type\":\"1p\",\"anchors\":[\"y\"],\"relations\":[[\"r1\"]]}",
		  "no entity 'y'" },
		{ "{\"type\":\"1p\",\"anchors\":[\"x\"],\"relations\":[[\"^r9\"]]}",
		  "no relation 'r9'" },
		{ "{\"type\":\"1p\",\"anchors\":[7],\"relations\":[[\"r1\"]]}", "a name" },
		{ "{\"type\":\"1p\",\"anchors\":[\"x\"],\"relations\":[[null]]}", "a name" },
		{ "{\"type\":\"ip\",\"anchors\":[\"x\",\"x\"],\"relations\":[[\"r1\"],[\"r1\"]],"
		  "\"hard\":[]}",
		  "last" },
		{ HEAD2 ",\"last\":\"r1\",\"hard\":[]}", "last" },
		{ HEAD1 "}", "hard" },
		{ HEAD1 ",\"hard\":{}}", "hard" },
		{ HEAD1 ",\"hard\":[\"x\",\"x\"]}", "twice" },
		{ HEAD1 ",\"hard\":[\"x\"],\"easy\":[\"x\"]}", "among the hard" },
		{ HEAD1 ",\"hard\":[\"x\"],\"missing\":[]}", "missing" },
		{ HEAD1 ",\"hard\":[\"x\"],\"missing\":[-1]}", "missing" },
		{ HEAD1 ",\"hard\":[\"x\"],\"missing\":[2]}", "missing" },
		{ HEAD1 ",\"hard\":[\"x\"],\"missing\":[\"1\"]}", "missing" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
		char *text = mem_printf(HEAD1 ",\"hard\":[\"x\"]}\n%s\n", texts[i][0]);
		struct query_record q = { 0 };
		struct err e = { 0 };

		assert_int_equal(read_all(text, &q, &e), ERR_INPUT);
		if (strstr(e.text, texts[i][1]) == NULL || strstr(e.text, "jsonl:2: ") == NULL)
			fail_msg("%s: %s", texts[i][0], e.text);
		query_record_release(&q);
		free(text);
	}
}

static struct query_reader *reader_of_text(const char *text, const struct graph *g)
{
	char *path = mem_printf("%s/lines.jsonl", folder);
	struct query_reader *r;
	FILE *f = fopen(path, "w");

	fputs(text, f);
	fclose(f);
	assert_int_equal(query_reader_open(&r, path, g, NULL), 0);
	free(path);
	return r;
}

/* Empty lines at the end are no queries and no errors; before one that is a query they are an
 * error, after which it is read. */
static void test_empty_lines(void **state)
{
	static const char text[] =
		HEAD1 ",\"hard\":[\"x\"]}\n\n\n" HEAD1 ",\"hard\":[\"x\"]}\n\n \n\n";
	struct graph *g = small_graph();
	struct query_reader *r = reader_of_text(text, g);
	struct query_record q = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(query_reader_next(r, &q, &e), 1);
	assert_int_equal(query_reader_next(r, &q, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "lines.jsonl:2: not a JSON object: an empty line"));
	assert_true(query_reader_goes_on(r));
	assert_int_equal(query_reader_next(r, &q, &e), 1);
	assert_int_equal(query_reader_line(r), 4);
	assert_int_equal(query_reader_next(r, &q, &e), 0);
	assert_int_equal(query_reader_next(r, &q, &e), 0);
	query_reader_close(r);
	query_record_release(&q);
	graph_free(g);
}

/* Who asks by a pipe is told of each at once, and goes on with the next line. */
static void test_empty_lines_of_who_asks(void **state)
{
	static const char text[] = HEAD1 "}\n\nnonsense\n" HEAD1 "}\n\n";
	const int expected[] = { 1, ERR_INPUT, ERR_INPUT, 1, ERR_INPUT, 0 };
	struct graph *g = small_graph();
	struct query_reader *r = reader_of_text(text, g);
	struct query_record q = { 0 };

	(void)state;
	query_reader_ask(r);
	for (size_t i = 0; i < 6; i++) {
		struct err e = { 0 };

		assert_int_equal(query_reader_next(r, &q, &e), expected[i]);
		if (expected[i] == ERR_INPUT)
			assert_true(query_reader_goes_on(r));
	}
	query_reader_close(r);
	query_record_release(&q);
	graph_free(g);
}

static void test_unknown_names_may_be_left_out(void **state)
{
	static const char text[] =
		"{\"type\":\"1p\",\"anchors\":[\"y\"],\"relations\":[[\"r1\"]],\"hard\":[\"x\"]}\n"
		"{\"type\":\"1p\",\"anchors\":[\"x\"],\"relations\":[[\"^r9\"]],\"hard\":[\"x\"]}"
		"\n" HEAD1 ",\"hard\":[\"y\"]}\n" HEAD1 ",\"hard\":[\"x\"]}\n" HEAD1 "}\n";
	struct graph *g = small_graph();
	struct query_reader *r = reader_of_text(text, g);
	struct query_record q = { 0 };
	struct err e = { 0 };

	(void)state;
	query_reader_leave_out(r);
	for (int i = 0; i < 4; i++) {
		assert_int_equal(query_reader_next(r, &q, &e), 1);
		assert_int_equal(q.strange, i < 3);
	}
	assert_int_equal(query_reader_next(r, &q, &e), ERR_INPUT);
	assert_int_equal(graph_vocab_count(g->relations), 3);
	query_reader_close(r);
	query_record_release(&q);
	graph_free(g);
}

/* A line that is too long is an error like any other: the one behind it is read. */
static void test_a_long_line_is_passed_over(void **state)
{
	struct graph *g = small_graph();
	struct buf text = { 0 };
	struct query_record q = { 0 };
	struct query_reader *r;
	struct err e = { 0 };
	static const char spaces[1 << 16] = { 0 };

	(void)state;
	buf_add(&text, HEAD1 ",\"hard\":[]}\n", strlen(HEAD1 ",\"hard\":[]}\n"));
	while (text.len <= QUERY_LINE_MAX + sizeof(spaces))
		buf_add(&text, spaces, sizeof(spaces));
	for (size_t i = 0; i < text.len; i++)
		text.base[i] = text.base[i] == '\0' ? ' ' : text.base[i];
	buf_add(&text, "\n" HEAD1 ",\"hard\":[\"x\"]}\n",
		strlen("\n" HEAD1 ",\"hard\":[\"x\"]}\n"));
	buf_add(&text, "", 1);
	r = reader_of_text((const char *)text.base, g);
	assert_int_equal(query_reader_next(r, &q, &e), 1);
	assert_int_equal(query_reader_next(r, &q, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, ":2: longer than"));
	assert_true(query_reader_goes_on(r));
	assert_int_equal(query_reader_next(r, &q, &e), 1);
	assert_int_equal(q.hard.n, 1);
	assert_int_equal(query_reader_next(r, &q, &e), 0);
	assert_false(query_reader_goes_on(r));
	query_reader_close(r);
	query_record_release(&q);
	buf_release(&text);
	graph_free(g);
}

/* Programs that write every member of a struct write null for those that a type does not have. */
static void test_null_is_absent(void **state)
{
	static const char text[] =
		HEAD1 ",\"last\":null,\"hard\":[\"x\"],\"missing\":null,\"easy\":null}\n" HEAD1
		      ",\"hard\":null}\n";
	struct graph *g = small_graph();
	struct query_reader *r = reader_of_text(text, g);
	struct query_record q = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(query_reader_next(r, &q, &e), 1);
	assert_int_equal(q.hard.n, 1);
	assert_false(q.has_easy || q.has_missing);
	assert_int_equal(query_reader_next(r, &q, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "hard: a list of names is wanted"));
	query_reader_close(r);
	r = reader_of_text(HEAD1 ",\"hard\":null}\n", g);
	query_reader_ask(r);
	assert_int_equal(query_reader_next(r, &q, &e), 1);
	assert_int_equal(q.hard.n, 0);
	query_reader_close(r);
	query_record_release(&q);
	graph_free(g);
}

/* Every type, written and read again: the same bytes. */
static void test_round_trip(void **state)
{
	const uint32_t anchors[] = { 2, 1, 0 };
	const struct query_step steps[] = { { 0, true }, { 1, false }, { 2, true }, { 1, true } };
	struct graph *g = small_graph();
	char *path = mem_printf("%s/all.jsonl", folder);
	FILE *f = fopen(path, "w");
	struct query_record want[QUERY_PATTERNS] = { 0 }, got = { 0 };
	struct query_reader *r;

	(void)state;
	for (int p = 0; p < QUERY_PATTERNS; p++) {
		want[p].pattern = (enum query_pattern)p;
		query_pattern_build(&want[p].tree, want[p].pattern, anchors, steps);
		query_set_add(&want[p].hard, 0, 1);
		query_set_add(&want[p].hard, 3, (uint8_t)(p % 2 ? 2 : 0));
		want[p].has_missing = p % 2;
		want[p].has_easy = p % 3;
		if (!want[p].has_missing)
			want[p].hard.cost[0] = 0;
		if (want[p].has_easy)
			query_set_add(&want[p].easy, 2, 0);
		assert_int_equal(query_record_write(f, &want[p], g, NULL), 0);
	}
	fclose(f);
	assert_int_equal(query_reader_open(&r, path, g, NULL), 0);
	for (int p = 0; p < QUERY_PATTERNS; p++) {
		assert_int_equal(query_reader_next(r, &got, NULL), 1);
		assert_int_equal(query_reader_line(r), p + 1);
		assert_int_equal(got.pattern, p);
		assert_int_equal(query_tree_compare(&got.tree, &want[p].tree), 0);
		assert_int_equal(got.hard.n, 2);
		assert_memory_equal(got.hard.at, want[p].hard.at, 2 * sizeof *got.hard.at);
		assert_memory_equal(got.hard.cost, want[p].hard.cost, 2);
		assert_int_equal(got.easy.n, want[p].easy.n);
		assert_int_equal(got.has_missing, want[p].has_missing);
		assert_int_equal(got.has_easy, want[p].has_easy);
		query_record_release(&want[p]);
	}
	assert_int_equal(query_reader_next(r, &got, NULL), 0);
	query_reader_close(r);
	query_record_release(&got);
	free(path);
	graph_free(g);
}

/* ^ means backwards, unless \\ stands before it: relations of any name are read as they were
 * written, in either direction. */
static void test_caret(void **state)
{
	static const char *const names[] = { "r", "^r", "\\r", "^^r", "\\^r", "^\\r" };
	enum { NAMES = sizeof(names) / sizeof(names[0]) };
	struct query_record q = { .pattern = QUERY_1P }, got = { 0 };
	struct graph *g = small_graph();
	char *path = mem_printf("%s/caret.jsonl", folder);
	struct query_reader *r;
	struct err e = { 0 };
	FILE *f = fopen(path, "w");
	uint32_t id[NAMES];

	(void)state;
	query_set_add(&q.hard, 1, 0);
	for (uint32_t k = 0; k < 2 * NAMES; k++) {
		id[k / 2] = graph_vocab_add(g->relations, names[k / 2], strlen(names[k / 2]));
		query_pattern_build(&q.tree, QUERY_1P, (const uint32_t[]){ 0 },
				    (const struct query_step[]){ { id[k / 2], k % 2 == 1 } });
		assert_int_equal(query_record_write(f, &q, g, &e), 0);
	}
	fclose(f);
	assert_int_equal(query_reader_open(&r, path, g, &e), 0);
	for (uint32_t k = 0; k < 2 * NAMES; k++) {
		assert_int_equal(query_reader_next(r, &got, &e), 1);
		assert_int_equal(got.tree.at[1].id, id[k / 2]);
		assert_int_equal(got.tree.at[1].inverse, k % 2 == 1);
	}
	query_reader_close(r);
	query_record_release(&got);
	query_record_release(&q);
	free(path);
	graph_free(g);
}

/* A full disk is told. */
static void test_full(void **state)
{
	struct query_record q = { .pattern = QUERY_1P };
	struct graph *g = small_graph();
	FILE *f = fopen("/dev/full", "w");
	struct err e = { 0 };

	(void)state;
	setbuf(f, NULL);
	query_pattern_build(&q.tree, QUERY_1P, (const uint32_t[]){ 0 },
			    (const struct query_step[]){ { 0, false } });
	assert_int_equal(query_record_write(f, &q, g, &e), ERR_IO);
	fclose(f);
	graph_free(g);
}

static void test_no_file(void **state)
{
	struct query_reader *r;

	(void)state;
	assert_int_equal(query_reader_open(&r, "/nowhere.jsonl", NULL, NULL), ERR_NOFILE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_empty_lines),
		cmocka_unit_test(test_empty_lines_of_who_asks),
		cmocka_unit_test(test_unknown_names_may_be_left_out),
		cmocka_unit_test(test_a_long_line_is_passed_over),
		cmocka_unit_test(test_null_is_absent),
		cmocka_unit_test(test_round_trip),
		cmocka_unit_test(test_full),
		cmocka_unit_test(test_caret),
		cmocka_unit_test(test_no_file),
	};
	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
