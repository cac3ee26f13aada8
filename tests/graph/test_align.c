/* Pairs of graphs' names into shared names: classes, conflicts, rules, and that no order counts. */
#include "tests/graph/files.h"

#include "base/buf.h"
#include "base/rng.h"
#include "graph/alias.h"
#include "graph/align.h"

/* A file is not written over: some file systems then wait for the disk. */
static void put_anew(const char *name, const void *bytes, size_t n)
{
	remove(path_of(name));
	put(name, bytes, n);
}

/* ---- by hand ---- */

static struct graph_align_report report;

/* Files called a-b and so on with their text, NULL at the end; joined by the rule. */
static struct graph_align *joined(enum graph_match match, int want, const char *const *file)
{
	struct graph_align *a = graph_align_new();
	struct err e = { 0 };

	for (; *file != NULL; file += 2) {
		char first[] = { file[0][0], '\0' }, second[] = { file[0][2], '\0' };

		put_anew(file[0], file[1], strlen(file[1]));
		assert_int_equal(graph_align_read(a, first, second, path_of(file[0]), &e), 0);
	}
	graph_align_report_release(&report);
	assert_int_equal(graph_align_join(a, match, &report, &e), want);
	return a;
}

static void says(const struct graph_align *a, uint32_t graph, const char *text)
{
	struct buf is = { 0 };

	graph_align_write(a, graph, &is);
	buf_add(&is, "", 1);
	assert_string_equal((char *)is.base, text);
	buf_release(&is);
}

static void chains_become_one_name(void **state)
{
	static const char *const files[] = { "b-a", "y\tx\ny\tx\nlone\tsolo\n", "b-c", "y\tz\n",
					     NULL };
	struct graph_align *a = joined(GRAPH_MATCH_REFUSE, 0, files);

	(void)state;
	assert_int_equal(report.lines, 4);
	assert_int_equal(report.pairs, 3);
	assert_int_equal(report.classes, 2);
	assert_int_equal(report.left_out, 0);
	assert_int_equal(report.conflicts.n, 0);
	assert_int_equal(graph_align_count(a), 3);
	assert_string_equal(graph_align_name(a, 2), "c");
	assert_int_equal(graph_align_named(a, 1), 2);
	assert_int_equal(graph_align_linked(a, 1), 2);
	says(a, 0, "solo\tshared:a:solo\nx\tshared:a:x\n");
	says(a, 1, "lone\tshared:a:solo\ny\tshared:a:x\n");
	says(a, 2, "z\tshared:a:x\n");
	graph_align_free(a);
}

/* e.g. "two of b are one: y = a:x (a-b:1) = b:Y (a-b:2)", folders left out */
static void tells(const char *want)
{
	char *text = mem_printf("%s%s", (const char *)report.conflicts.text.base, ""), *at;
	size_t n = strlen(folder) + 1;

	while ((at = strstr(text, folder)) != NULL)
		memmove(at, at + n, strlen(at + n) + 1);
	assert_string_equal(text, want);
	free(text);
}

static void conflicts_are_told_with_the_pairs_that_lead_there(void **state)
{
	/* y and Y of b: directly by x; the long way over c, d is not told */
	static const char *const files[] = { "a-b", "other\to\nx\ty\nx\tY\nx\ty\n",
					     "b-c", "y\tz\n",
					     "c-d", "z\tw\n",
					     "d-b", "w\tY\n",
					     NULL };
	static const char *const far[] = { "a-b",    "x\ty\nX\tY\n", "b-c",    "y\tz\n", "c-d",
					   "z\tw\n", "d-b",	     "w\tY\n", NULL };
	static const char *const twice[] = { "b-a", "y\tx\nY\tx\n", "a-b", "x\ty\nx\tY\n", NULL };
	struct graph_align *a = joined(GRAPH_MATCH_REFUSE, ERR_INPUT, files);

	(void)state;
	assert_int_equal(report.conflicts.n, 1);
	tells("two of b are one: Y = a:x (a-b:3) = b:y (a-b:2)\n");
	graph_align_free(a);
	a = joined(GRAPH_MATCH_UNIQUE, 0, files);
	assert_int_equal(report.conflicts.n, 1);
	assert_int_equal(report.left_out, 5);
	says(a, 0, "other\tshared:a:other\n");
	says(a, 1, "o\tshared:a:other\n");
	says(a, 2, "");
	graph_align_free(a);
	/* where a pair stands twice, the first of its files by their names */
	a = joined(GRAPH_MATCH_REFUSE, ERR_INPUT, twice);
	tells("two of b are one: Y = a:x (a-b:2) = b:y (a-b:1)\n");
	graph_align_free(a);
	/* from X to x of a: of that way the part from Y to y is told, which is shorter */
	a = joined(GRAPH_MATCH_REFUSE, ERR_INPUT, far);
	tells("two of b are one: Y = d:w (d-b:1) = c:z (c-d:1) = b:y (b-c:1)\n");
	graph_align_free(a);
}

static void many_conflicts_are_counted(void **state)
{
	struct buf text = { 0 };
	struct graph_align *a = graph_align_new();
	size_t lines = 0;

	(void)state;
	for (int i = 0; i < 25; i++)
		buf_printf(&text, "x%d\ty%d\nx%d\tz%d\n", i, i, i, i);
	put_anew("a-b", text.base, text.len);
	assert_int_equal(graph_align_read(a, "a", "b", path_of("a-b"), NULL), 0);
	graph_align_report_release(&report);
	assert_int_equal(graph_align_join(a, GRAPH_MATCH_REFUSE, &report, NULL), ERR_INPUT);
	assert_int_equal(report.conflicts.n, 25);
	for (size_t i = 0; i < report.conflicts.text.len; i++)
		lines += report.conflicts.text.base[i] == '\n';
	assert_int_equal(lines, GRAPH_CONFLICTS_SHOWN);
	graph_align_free(a);
	buf_release(&text);
}

/* What counts first: the score, then third entities paired with both, then names. */
static void the_best_pair_counts_first(void **state)
{
	static const char *const scored[] = { "a-b", "x\tY\t1e-9\nx\ty\t.25\nx\tY\t0.5\nx\tY\t0\n",
					      NULL };
	static const char *const mixed[] = { "a-b", "x\tY\t.9\n", "b-a", "y\tx\n", NULL };
	static const char *const backed[] = { "a-b", "x\tY\nx\ty\n", "b-c", "y\tz\n",
					      "a-c", "x\tz\n",	     NULL };
	static const char *const names[] = { "a-b", "x\ty\nx\tY\n", NULL };
	struct graph_align *a = joined(GRAPH_MATCH_BEST, 0, scored);

	(void)state;
	says(a, 1, "Y\tshared:a:x\n");
	assert_int_equal(report.left_out, 1);
	graph_align_free(a);
	a = joined(GRAPH_MATCH_BEST, 0, mixed); /* without a score: 1 */
	says(a, 1, "y\tshared:a:x\n");
	graph_align_free(a);
	a = joined(GRAPH_MATCH_BEST, 0, backed); /* z is with both x and y */
	says(a, 1, "y\tshared:a:x\n");
	says(a, 2, "z\tshared:a:x\n");
	assert_int_equal(report.left_out, 1);
	graph_align_free(a);
	a = joined(GRAPH_MATCH_BEST, 0, names);
	says(a, 1, "Y\tshared:a:x\n");
	graph_align_free(a);
}

static void broken_pairs_are_refused_by_line(void **state)
{
	static const struct {
		const char *first, *second, *text, *says;
		int code;
	} bad[] = {
		{ "a", "b", "x\ty\nx\n", "a-b:2: 1 column where 2", ERR_INPUT },
		{ "a", "b", "x\ty\nx\ty\t1\n", "a-b:2: 3 columns where 2", ERR_INPUT },
		{ "a", "b", "x\ty\t1\nx\ty\n", "a-b:2: 2 columns where 3", ERR_INPUT },
		{ "a", "b", "x\ty\tz\n", "a-b:1: column 3 (score) is 'z'", ERR_INPUT },
		{ "a", "b", "x\ty\tinf\n", "a-b:1: column 3 (score) is 'inf'", ERR_INPUT },
		{ "a", "b", "x\ty\t1e999\n", "a-b:1: column 3 (score) is '1e999'", ERR_INPUT },
		{ "a", "b", "x\ty\t1-2\n", "a-b:1: column 3 (score) is '1-2'", ERR_INPUT },
		{ "a", "b", "x\t\n", "a-b:1: column 2 (name in the second graph)", ERR_INPUT },
		{ "a", "b", "x\t\xef\xbb\xbfy\n", "a-b:1: column 2 (name in the second",
		  ERR_INPUT },
		{ "a", "b", "\n", "a-b:1: empty line", ERR_INPUT },
		{ "a", "a", "x\ty\n", "pairs of 'a' with itself", ERR_USAGE },
		{ "", "b", "x\ty\n", "'' is no name of a graph", ERR_USAGE },
		{ "..", "b", "x\ty\n", "'..' is no name of a graph", ERR_USAGE },
		{ "a", "b/c", "x\ty\n", "'b/c' is no name of a graph", ERR_USAGE },
		{ "a", "b:c", "x\ty\n", "'b:c' is no name of a graph", ERR_USAGE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct graph_align *a = graph_align_new();
		struct err e = { 0 };

		put_anew("a-b", bad[i].text, strlen(bad[i].text));
		assert_int_equal(
			graph_align_read(a, bad[i].first, bad[i].second, path_of("a-b"), &e),
			bad[i].code);
		if (strstr(e.text, bad[i].says) == NULL)
			fail_msg("says \"%s\", not \"%s\"", e.text, bad[i].says);
		graph_align_free(a);
	}
}

static void graphs_are_not_too_many(void **state)
{
	struct graph_align *a = graph_align_new();
	struct err e = { 0 };

	(void)state;
	put_anew("pairs", "x\ty\n", 4);
	for (int i = 0; i < GRAPH_ALIGN_MAX / 2; i++) {
		char first[16], second[16];

		snprintf(first, sizeof first, "a%d", i);
		snprintf(second, sizeof second, "b%d", i);
		assert_int_equal(graph_align_read(a, first, second, path_of("pairs"), &e), 0);
	}
	assert_int_equal(graph_align_read(a, "a0", "b511", path_of("pairs"), &e), 0);
	assert_int_equal(graph_align_read(a, "a0", "c", path_of("pairs"), &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "more than 1024 graphs"));
	graph_align_free(a);
}

static void names_that_are_too_long_are_refused(void **state)
{
	char line[GRAPH_NAME_MAX + 8];
	const char *const files[] = { "a-b", line, NULL };

	(void)state;
	memset(line, 'n', sizeof line);
	memcpy(line + GRAPH_NAME_MAX, "\ty\n", 4);
	graph_align_free(joined(GRAPH_MATCH_REFUSE, ERR_INPUT, files));
	memcpy(line + GRAPH_NAME_MAX - 9, "\ty\n", 4); /* shared:a: has 9 */
	graph_align_free(joined(GRAPH_MATCH_REFUSE, 0, files));
}

/* ---- against plain definitions, over drawn pairs ---- */

enum { GRAPHS = 4, NAMES = 6, NODES = GRAPHS * NAMES, PAIRS_MAX = 64 };

struct drawn {
	struct drawn_pair {
		int a, b; /* nodes: graph * NAMES + name */
		int score;
	} at[PAIRS_MAX];
	size_t n;
	int label[NODES]; /* of the class */
};

static int holds(const struct drawn *d, int label, int graph)
{
	int n = 0;

	for (int i = 0; i < NAMES; i++)
		n += d->label[graph * NAMES + i] == label;
	return n;
}

static void relabel(struct drawn *d, int from, int to)
{
	for (int i = 0; i < NODES; i++)
		d->label[i] = d->label[i] == from ? to : d->label[i];
}

static bool is_double(const struct drawn *d, int label)
{
	for (int g = 0; g < GRAPHS; g++)
		if (holds(d, label, g) > 1)
			return true;
	return false;
}

static void close_all(struct drawn *d)
{
	for (int i = 0; i < NODES; i++)
		d->label[i] = i;
	for (size_t i = 0; i < d->n; i++)
		relabel(d, d->label[d->at[i].a], d->label[d->at[i].b]);
}

static int count_doubles(const struct drawn *d)
{
	int n = 0;

	for (int i = 0; i < NODES; i++)
		n += is_double(d, i);
	return n;
}

static void part_doubles(struct drawn *d)
{
	bool doubles[NODES];

	for (int l = 0; l < NODES; l++)
		doubles[l] = is_double(d, l);
	for (int i = 0; i < NODES; i++)
		if (doubles[d->label[i]])
			d->label[i] = -1;
}

static int by_score(const void *a, const void *b)
{
	return ((const struct drawn_pair *)b)->score - ((const struct drawn_pair *)a)->score;
}

/* Scores differ, so they alone decide. */
static void join_by_score(struct drawn *d)
{
	struct drawn after;

	qsort(d->at, d->n, sizeof *d->at, by_score);
	for (int i = 0; i < NODES; i++)
		d->label[i] = i;
	for (size_t i = 0; i < d->n; i++) {
		after = *d;
		relabel(&after, after.label[d->at[i].a], after.label[d->at[i].b]);
		if (!is_double(&after, after.label[d->at[i].b]))
			*d = after;
	}
}

static void draw(struct drawn *d, struct rng *r)
{
	int score[PAIRS_MAX];

	d->n = 1 + rng_below(r, rng_below(r, 2) ? 16 : PAIRS_MAX);
	for (int i = 0; i < PAIRS_MAX; i++)
		score[i] = i;
	rng_shuffle(r, score, PAIRS_MAX, sizeof *score);
	for (size_t i = 0; i < d->n; i++) {
		struct drawn_pair *p = &d->at[i];
		bool again;

		do {
			p->a = (int)rng_below(r, NODES);
			p->b = (int)rng_below(r, NODES);
			again = p->a / NAMES == p->b / NAMES;
			for (size_t k = 0; k < i; k++) /* a pair has one score here */
				again = again || (d->at[k].a == p->a && d->at[k].b == p->b) ||
					(d->at[k].a == p->b && d->at[k].b == p->a);
		} while (again);
		p->score = score[i];
	}
}

/* The pairs in any order, turned any way round, over several files, some lines twice. */
static struct graph_align *read_drawn(const struct drawn *d, struct rng *r, bool scored)
{
	struct graph_align *a = graph_align_new();
	struct drawn_pair at[PAIRS_MAX];

	memcpy(at, d->at, sizeof at);
	rng_shuffle(r, at, d->n, sizeof *at);
	for (size_t i = 0; i < d->n;) {
		struct buf text = { 0 };
		bool turned = rng_below(r, 2) != 0;
		int one = turned ? at[i].b : at[i].a, two = turned ? at[i].a : at[i].b;
		char first[] = { (char)('a' + one / NAMES), '\0' };
		char second[] = { (char)('a' + two / NAMES), '\0' };

		for (unsigned k = rng_below(r, 3); k < 4; k++) {
			buf_printf(&text, "n%d\tn%d", one % NAMES, two % NAMES);
			buf_printf(&text, scored ? "\t%d\n" : "\n", at[i].score);
		}
		put_anew("pairs", text.base, text.len);
		assert_int_equal(graph_align_read(a, first, second, path_of("pairs"), NULL), 0);
		buf_release(&text);
		i++;
	}
	return a;
}

/* "n3\tshared:a:n1": the label's least node */
static void expect_labels(const struct graph_align *a, const struct drawn *d)
{
	for (uint32_t g = 0; g < graph_align_count(a); g++) {
		int graph = graph_align_name(a, g)[0] - 'a';
		struct buf want = { 0 };

		buf_printf(&want, "%s", ""); /* so that there is a text */
		for (int i = 0; i < NAMES; i++) {
			int label = d->label[graph * NAMES + i], least = 0, size = 0;

			for (int k = NODES - 1; k >= 0; k--)
				if (d->label[k] == label) {
					least = k;
					size++;
				}
			if (label >= 0 && size > 1)
				buf_printf(&want, "n%d\tshared:%c:n%d\n", i, 'a' + least / NAMES,
					   least % NAMES);
		}
		says(a, g, (const char *)want.base);
		buf_release(&want);
	}
}

/* No two names of a graph share a name: its file is one to one. */
static void expect_one_to_one(const struct graph_align *a)
{
	for (uint32_t g = 0; g < graph_align_count(a); g++) {
		struct graph_vocab *v = graph_vocab_new();
		struct graph_alias_report r;
		struct graph_aliases *t;
		struct buf text = { 0 };

		buf_reserve(&text, 1);
		for (int i = 0; i < NAMES; i++) {
			char name[] = { 'n', (char)('0' + i), '\0' };

			graph_vocab_add(v, name, 2);
		}
		graph_align_write(a, g, &text);
		put_anew("out.tsv", text.base, text.len);
		buf_release(&text);
		assert_int_equal(graph_aliases_load(&t, path_of("out.tsv"), v, false,
						    GRAPH_MATCH_REFUSE, &r, NULL),
				 0);
		assert_int_equal(r.linked, graph_align_linked(a, g));
		assert_int_equal(r.clashes, 0);
		graph_alias_report_release(&r);
		graph_aliases_free(t);
		graph_vocab_free(v);
	}
}

static void expect_rule(struct drawn *d, struct rng *r, enum graph_match match)
{
	struct graph_align *a = read_drawn(d, r, match == GRAPH_MATCH_BEST);
	int doubles, rc;

	close_all(d);
	doubles = count_doubles(d);
	graph_align_report_release(&report);
	rc = graph_align_join(a, match, &report, NULL);
	assert_int_equal(report.pairs, d->n);
	assert_int_equal(report.conflicts.n, doubles);
	assert_int_equal(rc, match == GRAPH_MATCH_REFUSE && doubles > 0 ? ERR_INPUT : 0);
	if (rc == 0) {
		if (match == GRAPH_MATCH_UNIQUE)
			part_doubles(d);
		else if (match == GRAPH_MATCH_BEST)
			join_by_score(d);
		expect_labels(a, d);
		expect_one_to_one(a);
	}
	graph_align_free(a);
}

static void drawn_pairs_give_what_the_rules_say(void **state)
{
	struct drawn d;
	struct rng r;
	int refused = 0;

	(void)state;
	rng_seed(&r, 5);
	for (int i = 0; i < 60; i++) {
		draw(&d, &r);
		expect_rule(&d, &r, GRAPH_MATCH_REFUSE);
		refused += report.conflicts.n > 0;
		expect_rule(&d, &r, GRAPH_MATCH_UNIQUE);
		expect_rule(&d, &r, GRAPH_MATCH_BEST);
	}
	assert_in_range(refused, 20, 55);
}

/* Equal scores: what is agreed on and names decide, never the order. */
static void no_order_counts(void **state)
{
	struct drawn d;
	struct rng r;

	(void)state;
	rng_seed(&r, 6);
	for (int i = 0; i < 20; i++) {
		struct buf first[GRAPHS] = { { 0 } };

		draw(&d, &r);
		for (int again = 0; again < 3; again++) {
			struct graph_align *a = read_drawn(&d, &r, false);

			graph_align_report_release(&report);
			assert_int_equal(graph_align_join(a, GRAPH_MATCH_BEST, &report, NULL), 0);
			expect_one_to_one(a);
			for (uint32_t g = 0; g < graph_align_count(a); g++) {
				if (again > 0) {
					says(a, g, (const char *)first[g].base);
					continue;
				}
				graph_align_write(a, g, &first[g]);
				buf_add(&first[g], "", 1);
			}
			graph_align_free(a);
		}
		for (int g = 0; g < GRAPHS; g++)
			buf_release(&first[g]);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(chains_become_one_name),
		cmocka_unit_test(conflicts_are_told_with_the_pairs_that_lead_there),
		cmocka_unit_test(many_conflicts_are_counted),
		cmocka_unit_test(the_best_pair_counts_first),
		cmocka_unit_test(broken_pairs_are_refused_by_line),
		cmocka_unit_test(graphs_are_not_too_many),
		cmocka_unit_test(names_that_are_too_long_are_refused),
		cmocka_unit_test(drawn_pairs_give_what_the_rules_say),
		cmocka_unit_test(no_order_counts),
	};
	int rc = cmocka_run_group_tests(tests, make_folder, remove_folder);

	graph_align_report_release(&report);
	return rc;
}
