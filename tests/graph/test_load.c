/* Loading, splitting and alias tables: what goes in, and what is said when it cannot. */
#include "tests/graph/files.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "graph/alias.h"
#include "graph/find.h"
#include "graph/lines.h"

/* ---- broken text ---- */

static const struct {
	const char *bytes;
	size_t n;
	const char *says;
} broken[] = {
	{ TEXT(""), "f.tsv: no triples" },
	{ TEXT("\n"), "f.tsv:1: empty line" },
	{ TEXT("a\tr\tb\n\n"), "f.tsv:2: empty line" },
	{ TEXT("a\tr\tb\n\nc\tr\td\n"), "f.tsv:2: empty line" },
	{ TEXT("a"), "f.tsv:1: 1 column where 3 are wanted" },
	{ TEXT("a b c\n"), "f.tsv:1: 1 column where 3 are wanted" },
	{ TEXT("a\tr\tb\na\tr\n"), "f.tsv:2: 2 columns where 3 are wanted" },
	{ TEXT("a\tr\tb\na\tr"), "f.tsv:2: 2 columns where 3 are wanted" },
	{ TEXT("a\tr\tb\t\n"), "f.tsv:1: 4 columns where 3 are wanted" },
	{ TEXT("a\tr\tb\t0.5\n"), "f.tsv:1: 4 columns where 3 are wanted" },
	{ TEXT("\tr\tb\n"), "f.tsv:1: column 1 (head) is empty" },
	{ TEXT("a\t\tb\n"), "f.tsv:1: column 2 (relation) is empty" },
	{ TEXT("a\tr\t\n"), "f.tsv:1: column 3 (tail) is empty" },
	{ TEXT("\t\t\n"), "f.tsv:1: column 1 (head) is empty" },
	{ TEXT("a\tr\tb\r\n"), "f.tsv:1: ends in CR LF" },
	{ TEXT("a\tr\tb\nc\tr\td\r\n"), "f.tsv:2: ends in CR LF" },
	{ TEXT("\r\n"), "f.tsv:1: ends in CR LF" },
	{ TEXT("a\rb\tr\tc\n"), "f.tsv:1: control character 0x0d at byte 2" },
	{ TEXT("a\tr\tb\rc\tr\td\r"), "f.tsv:1: ends in CR LF" },
	{ TEXT("\xef\xbb\xbf"
	       "a\tr\tb\n"),
	  "f.tsv:1: begins with a byte-order mark" },
	{ TEXT("a\tr\tb\n\xef\xbb\xbf"
	       "a\tr\tc\n"),
	  "f.tsv:2: begins with a byte-order mark" },
	{ TEXT("a\tr\tb\na\tr\t\xef\xbb\xbf"
	       "b\n"),
	  "f.tsv:2: column 3 (tail) begins with a byte-order mark" },
	{ TEXT("a\0\tr\tb\n"), "f.tsv:1: control character 0x00 at byte 2" },
	{ TEXT("a\tr\tb\0"), "f.tsv:1: control character 0x00 at byte 6" },
	{ TEXT("\0\0\0\0"), "f.tsv:1: control character 0x00 at byte 1" },
	{ TEXT("a\tr\tb\na\x1b[31m\tr\tb\n"), "f.tsv:2: control character 0x1b at byte 2" },
	{ TEXT("a\tr\tb\x7f\n"), "f.tsv:1: control character 0x7f at byte 6" },
	{ TEXT("a\x01\n"), "f.tsv:1: control character 0x01 at byte 2" },
	{ TEXT("a\tr\tb\na\tr\xc2\x85\tb\n"), "f.tsv:2: control character U+0085 at byte 4" },
	{ TEXT("a\tr\tb\xc2\x80\n"), "f.tsv:1: control character U+0080 at byte 6" },
	{ TEXT("\xc2\x9f[31m\tr\tb\n"), "f.tsv:1: control character U+009F at byte 1" },
	{ TEXT("a\tr\t\x80\n"), "f.tsv:1: byte 5 is not UTF-8" },     /* lone continuation */
	{ TEXT("a\tr\t\xc3\n"), "f.tsv:1: byte 5 is not UTF-8" },     /* cut at the line's end */
	{ TEXT("a\tr\t\xe2\x82"), "f.tsv:1: byte 5 is not UTF-8" },   /* cut at the file's end */
	{ TEXT("a\tr\t\xc0\xaf\n"), "f.tsv:1: byte 5 is not UTF-8" }, /* overlong */
	{ TEXT("a\tr\t\xe0\x9f\xbf\n"), "f.tsv:1: byte 5 is not UTF-8" },
	{ TEXT("a\tr\t\xf0\x8f\xbf\xbf\n"), "f.tsv:1: byte 5 is not UTF-8" },
	{ TEXT("a\tr\t\xed\xa0\x80\n"), "f.tsv:1: byte 5 is not UTF-8" },     /* surrogate */
	{ TEXT("a\tr\t\xf4\x90\x80\x80\n"), "f.tsv:1: byte 5 is not UTF-8" }, /* past U+10FFFF */
	{ TEXT("a\tr\t\xf8\x88\x80\x80\x80\n"), "f.tsv:1: byte 5 is not UTF-8" },
	{ TEXT("caf\xe9\tr\tb\n"), "f.tsv:1: byte 4 is not UTF-8" }, /* Latin-1 */
	{ TEXT("\xff\xfe"
	       "a\0\t\0r\0"),
	  "f.tsv:1: this is UTF-16: convert" },
	{ TEXT("\xfe\xff\0a\0\t"), "f.tsv:1: this is UTF-16: convert" },
	{ TEXT("PK\x03\x04zip"), "f.tsv:1: this is a zip archive" },
	{ TEXT("a\tr\tb\nPK\x03\x04zip"), "f.tsv:2: control character 0x03 at byte 3" },
	{ TEXT("\xfd"
	       "7zXZ\0\0"),
	  "f.tsv:1: this is packed with xz" },
	{ TEXT("BZh91AY&SY\x01"), "f.tsv:1: this is packed with bzip2" },
	{ TEXT("7z\xbc\xaf\x27"), "f.tsv:1: this is a 7z archive" },
	{ TEXT("<?xml version=\"1.0\"?>\n"), "f.tsv:1: this is XML, and RDF/XML is not" },
	{ TEXT("<rdf:RDF xmlns:rdf=\"a:\">\n"), "f.tsv:1: this is XML, and RDF/XML is not" },
	{ TEXT("<!-- an ontology -->\n"), "f.tsv:1: this is XML, and RDF/XML is not" },
	{ TEXT("<!DOCTYPE rdf:RDF [\n"), "f.tsv:1: this is XML, and RDF/XML is not" },
	{ TEXT("{\"head\": \"a\"}\n"), "f.tsv:1: 1 column where 3 are wanted" },
	{ TEXT("a,r,b\n"),
	  "f.tsv:1: 1 column where 3 are wanted, with one TAB between two, not a comma" },
};

static void broken_text_is_refused_by_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		put("f.tsv", broken[i].bytes, broken[i].n);
		refuses("f.tsv", ERR_INPUT, broken[i].says);
	}
}

/* Every broken text again behind a good line, packed both ways: same words, next line. */
static void broken_text_is_refused_when_packed(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		uint8_t packed[1024];
		char says[128];

		if (broken[i].n == 0)
			continue;
		put("f.tsv.gz", packed, gzip(broken[i].bytes, broken[i].n, packed, sizeof packed));
		snprintf(says, sizeof says, "f.tsv.gz%s", broken[i].says + strlen("f.tsv"));
		refuses("f.tsv.gz", ERR_INPUT, says);
		put("f.tsv.zst", packed, zstd(broken[i].bytes, broken[i].n, packed, sizeof packed));
		snprintf(says, sizeof says, "f.tsv.zst%s", broken[i].says + strlen("f.tsv"));
		refuses("f.tsv.zst", ERR_INPUT, says);
	}
}

static char *repeated(char c, size_t n, const char *before, const char *after, size_t *len)
{
	char *s = mem_array(strlen(before) + n + strlen(after) + 1, 1);

	strcpy(s, before);
	memset(s + strlen(before), c, n);
	strcpy(s + strlen(before) + n, after);
	*len = strlen(s);
	return s;
}

static void long_lines_and_names(void **state)
{
	static const size_t lengths[] = { LINES_MAX + 1, LINES_MAX * 2, LINES_MAX * 5 + 3,
					  5000000 };
	struct graph *g;
	size_t len;
	char *s;

	(void)state;
	s = repeated('x', GRAPH_NAME_MAX, "a\tr\tb\n", "\tr\tb\n", &len);
	put("f.tsv", s, len);
	free(s);
	assert_int_equal(graph_load(&g, path_of("f.tsv"), NULL, NULL, NULL), 0);
	graph_free(g);
	s = repeated('x', GRAPH_NAME_MAX + 1, "a\tr\tb\n", "\tr\tb\n", &len);
	put("f.tsv", s, len);
	free(s);
	refuses("f.tsv", ERR_INPUT, "f.tsv:2: column 1 (head) has 4097 bytes, more than 4096");
	s = repeated('x', LINES_MAX, "", "\n", &len);
	put("f.tsv", s, len);
	free(s);
	refuses("f.tsv", ERR_INPUT, "f.tsv:1: 1 column where 3");
	for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
		s = repeated('x', lengths[i], "a\tr\tb\n", i % 2 == 0 ? "" : "\n", &len);
		put("f.tsv", s, len);
		free(s);
		refuses("f.tsv", ERR_INPUT, "f.tsv:2: longer than 65536 bytes");
	}
}

/* ---- broken packing ---- */

static char *many_lines(size_t n, size_t *len)
{
	char *text = mem_array(n, 32), *at = text;

	for (size_t i = 0; i < n; i++)
		at += sprintf(at, "e%zu\tr%zu\te%zu\n", i * 7919 % 5003, i % 11, i * 104729 % 4999);
	*len = (size_t)(at - text);
	return text;
}

static void cut_packing_is_refused(void **state)
{
	size_t len, n;
	char *text = many_lines(300, &len);
	uint8_t packed[16384];

	(void)state;
	n = gzip(text, len, packed, sizeof packed);
	for (size_t cut = 1; cut < n; cut += cut < 40 || cut > n - 20 ? 1 : 37) {
		put("cut.tsv.gz", packed, cut);
		refuses("cut.tsv.gz", ERR_INPUT, cut < 2 ? "cut.tsv.gz: not gzip" : "cut.tsv.gz:");
	}
	n = zstd(text, len, packed, sizeof packed);
	for (size_t cut = 1; cut < n; cut += cut < 40 || cut > n - 20 ? 1 : 37) {
		put("cut.tsv.zst", packed, cut);
		refuses("cut.tsv.zst", ERR_INPUT,
			cut < 4 ? "cut.tsv.zst: not zstd" : "cut.tsv.zst:");
	}
	free(text);
}

/* No flipped bit may crash the loader, and gzip's checksum finds the harmful ones. */
static void damaged_packing_is_refused(void **state)
{
	size_t len, n, refused = 0;
	char *text = many_lines(300, &len);
	uint8_t packed[16384];
	struct graph *g;

	(void)state;
	n = gzip(text, len, packed, sizeof packed);
	for (size_t at = 10; at < n; at += 13) {
		struct err e = { 0 };

		packed[at] ^= 0x10;
		put("bad.tsv.gz", packed, n);
		packed[at] ^= 0x10;
		assert_int_equal(graph_load(&g, path_of("bad.tsv.gz"), NULL, NULL, &e), ERR_INPUT);
		assert_non_null(strstr(e.text, "bad.tsv.gz:"));
		count_refused(e.text + strlen(folder) + 1);
		refused++;
	}
	assert_true(refused > 20);
	packed[n] = 'x'; /* bytes after the end */
	put("bad.tsv.gz", packed, n + 1);
	refuses("bad.tsv.gz", ERR_INPUT, "bad.tsv.gz:301: packed data is damaged");
	free(text);
}

static void promised_packing_must_be_there(void **state)
{
	(void)state;
	put("plain.tsv.gz", TEXT("a\tr\tb\n"));
	refuses("plain.tsv.gz", ERR_INPUT, "plain.tsv.gz: not gzip data");
	put("plain.tsv.zst", TEXT("a\tr\tb\n"));
	refuses("plain.tsv.zst", ERR_INPUT, "plain.tsv.zst: not zstd data");
	put("empty.tsv.gz", "", 0);
	refuses("empty.tsv.gz", ERR_INPUT, "empty.tsv.gz: not gzip data");
}

/* One line of long names again and again: valid, and refused before it is all read. */
static void bombs_are_refused(void **state)
{
	enum { NAME = 4000, LINE = 3 * (NAME + 1), LINES = 20 };
	size_t cap = 1 << 20, n = 0;
	uint8_t *packed = mem_array(cap, 1);
	char *text = mem_array(LINES, LINE);
	struct err e = { 0 };
	struct graph *g;

	(void)state;
	memset(text, 'x', (size_t)LINES * LINE);
	for (size_t i = 1; i <= 3 * (size_t)LINES; i++)
		text[i * (NAME + 1) - 1] = i % 3 == 0 ? '\n' : '\t';
	while (n < 250000)
		n += gzip(text, (size_t)LINES * LINE, packed + n, cap - n);
	put("bomb.tsv.gz", packed, n);
	assert_int_equal(graph_load(&g, path_of("bomb.tsv.gz"), NULL, NULL, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "unpacks to more than 200 times its size"));
	free(packed);
	free(text);
}

/* ---- folders ---- */

static void folders(void **state)
{
	(void)state;
	mkdir(path_of("g"), 0700);
	refuses("g", ERR_INPUT, "g: no train.tsv");
	put("g/valid.tsv", TEXT("a\tr\tb\n"));
	refuses("g", ERR_INPUT, "g: no train.tsv");
	put("g/train.tsv", TEXT(""));
	refuses("g", ERR_INPUT, "g: no triples");
	put("g/train.tsv", TEXT("a\tr\tb\nb\ts\ta\n"));
	put("g/valid.tsv", TEXT("a\tr\n"));
	refuses("g", ERR_INPUT, "g/valid.tsv:1: 2 columns");
	put("g/valid.tsv", TEXT("a\tr\tb\n"));
	put("g/test.txt", TEXT("a\tr\tb\nx"));
	refuses("g", ERR_INPUT, "g/test.txt:2: 1 column");
	put("g/train.txt", TEXT("a\tr\tb\n"));
	refuses("g", ERR_INPUT, "g/train.tsv and ");
	unlink(path_of("g/train.txt"));
	unlink(path_of("g/test.txt"));
	mkdir(path_of("g/test.tsv"), 0700);
	refuses("g", ERR_INPUT, "g/test.tsv: a folder where a file is wanted");
	refuses("nothing", ERR_NOFILE, "nothing: ");
}

/* Loads text as a TSV file, all of it for train. */
static struct graph *graph_of(const char *text, size_t n, struct graph_load_options o,
			      struct graph_load_report *r)
{
	struct graph *g = NULL;

	o.valid_share = o.test_share = 0;
	put("odd.tsv", text, n);
	assert_int_equal(graph_load(&g, path_of("odd.tsv"), &o, r, NULL), 0);
	return g;
}

static void a_header_is_no_triple(void **state)
{
	static const struct {
		const char *text;
		size_t n, headers;
	} cases[] = {
		{ TEXT("head\trelation\ttail\na\tr\tb\n"), 1 },
		{ TEXT("Subject\tPREDICATE\tobject\na\tr\tb\n"), 1 },
		{ TEXT("from\trel\tto\na\tr\tb\n"), 1 },
		{ TEXT("s\tp\to\na\tr\tb\n"), 0 },		/* may be a triple */
		{ TEXT("a\tr\tb\nhead\trelation\ttail\n"), 0 }, /* not the first line */
		{ TEXT("head\tpart_of\tbody\na\tr\tb\n"), 0 },
		{ TEXT("head\ttail\thead\na\tr\tb\n"), 0 },
	};
	struct graph_load_options o;
	struct graph_load_report r;

	(void)state;
	graph_load_defaults(&o);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct graph *g;

		o.keep_header = false;
		g = graph_of(cases[i].text, cases[i].n, o, &r);
		assert_int_equal(r.headers, cases[i].headers);
		assert_int_equal(g->split[GRAPH_TRAIN].n, 2 - cases[i].headers);
		graph_free(g);
		o.keep_header = true;
		g = graph_of(cases[i].text, cases[i].n, o, &r);
		assert_int_equal(r.headers, 0);
		assert_int_equal(g->split[GRAPH_TRAIN].n, 2);
		graph_free(g);
	}
}

/* Each triple would be a wrong one. */
static void columns_in_another_order_are_refused(void **state)
{
	static const char text[] = "Subject\tobject\tpredicate\na\tb\tr\n";
	struct graph_load_options o;
	struct graph_load_report r;

	(void)state;
	put("f.tsv", TEXT(text));
	refuses("f.tsv", ERR_INPUT,
		"f.tsv:1: the columns are called Subject, object, predicate, and head, relation, "
		"tail are wanted: put them in that order, for example with awk -F'\\t' -v "
		"OFS='\\t' '{print $1, $3, $2}' (--keep-header: it is a triple)");
	put("f.tsv", TEXT("to\tfrom\tedge\n"));
	refuses("f.tsv", ERR_INPUT,
		"f.tsv:1: the columns are called to, from, edge, and head, relation, tail are "
		"wanted: put them in that order, for example with awk -F'\\t' -v OFS='\\t' "
		"'{print $2, $3, $1}'");
	graph_load_defaults(&o);
	o.keep_header = true;
	graph_free(graph_of(TEXT(text), o, &r));
	assert_int_equal(r.lines, 2);
}

static void spaces_at_the_ends_are_counted(void **state)
{
	struct graph_load_options o;
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	graph_load_defaults(&o);
	g = graph_of(TEXT("a \tr\tb\nb\tr\t  a\na\tr\tc d\n"), o, &r);
	assert_int_equal(r.spaced, 2);
	assert_int_equal(graph_vocab_count(g->entities), 5); /* "a ", b, "  a", a, c d */
	graph_free(g);
	o.trim = true;
	g = graph_of(TEXT("a \tr\tb\nb\tr\t  a\na\tr\tc d\n"), o, &r);
	assert_int_equal(r.spaced, 2);
	assert_int_equal(graph_vocab_count(g->entities), 3);
	graph_free(g);
	put("odd.tsv", TEXT("a\tr\t   \n"));
	o.trim = true;
	assert_int_equal(graph_load(&g, path_of("odd.tsv"), &o, &r, NULL), ERR_INPUT);
}

static void everything_is_reported(void **state)
{
	struct graph_load_report r;
	struct graph *g;
	uint8_t packed[256];
	size_t len;

	(void)state;
	mkdir(path_of("r"), 0700);
	put("r/train.tsv", TEXT("a\tr\tb\nb\tr\ta\na\tr\tb\na\ts\ta\na\ts\ta"));
	put("r/valid.txt.gz", packed,
	    gzip(TEXT("c\tr\ta\na\tr\tb\nc\tr\ta\n"), packed, sizeof packed));
	put("r/test.tsv.zst", packed, zstd(TEXT("b\tt\t\xc3\xa9\n"), packed, sizeof packed));
	assert_int_equal(graph_load(&g, path_of("r"), NULL, &r, NULL), 0);
	assert_int_equal(g->split[GRAPH_TRAIN].n, 3);
	assert_int_equal(g->split[GRAPH_VALID].n, 2);
	assert_int_equal(g->split[GRAPH_TEST].n, 1);
	assert_int_equal(r.lines, 9);
	assert_int_equal(r.duplicates, 3);
	assert_int_equal(r.self_loops, 1);
	assert_int_equal(r.unseen_entities, 2);
	assert_int_equal(r.unseen_relations, 1);
	assert_int_equal(r.leaked, 1);
	assert_false(r.split_made);
	assert_string_equal(graph_vocab_name(g->entities, 2, &len), "c");
	assert_string_equal(graph_vocab_name(g->entities, 3, &len), "\xc3\xa9");
	assert_int_equal(g->split[GRAPH_TEST].at[0].head, 1);
	assert_int_equal(g->split[GRAPH_TEST].at[0].rel, 2);
	assert_int_equal(g->split[GRAPH_TEST].at[0].tail, 3);
	graph_free(g);
}

/* A split in a form that is not read is named, unless another file of it was read. */
static void what_is_not_read_is_named(void **state)
{
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	mkdir(path_of("u"), 0700);
	mkdir(path_of("u/valid.d"), 0700);
	put("u/train.tsv", TEXT("a\tr\tb\nb\tr\ta\n"));
	put("u/test.parquet", TEXT("PAR1"));
	put("u/Test.csv", TEXT("a,r,b\n"));
	put("u/testing.csv", TEXT("a,r,b\n"));
	assert_int_equal(graph_load(&g, path_of("u"), NULL, &r, NULL), 0);
	assert_string_equal(r.unread[GRAPH_TEST], "Test.csv");
	assert_string_equal(r.unread[GRAPH_VALID], "");
	graph_free(g);
	put("u/test.tsv", TEXT("a\tr\ta\n"));
	assert_int_equal(graph_load(&g, path_of("u"), NULL, &r, NULL), 0);
	assert_string_equal(r.unread[GRAPH_TEST], "");
	graph_free(g);
	mkdir(path_of("k"), 0700);
	put("k/train2id.txt", TEXT("1\n0 1 0\n"));
	put("k/valid2id.csv", TEXT("1\n0,1,0\n"));
	put("k/test2id.txt", TEXT("0\n"));
	put("k/test.tsv", TEXT("a\tr\ta\n"));
	assert_int_equal(graph_load(&g, path_of("k"), NULL, &r, NULL), 0);
	assert_string_equal(r.unread[GRAPH_VALID], "valid2id.csv");
	assert_string_equal(r.unread[GRAPH_TEST], "");
	graph_free(g);
}

static void packed_and_plain_are_the_same(void **state)
{
	static const char *const names[] = { "m.tsv", "m.tsv.gz", "m.tsv.zst" };
	size_t len, cap = 1 << 20, n;
	char *text = many_lines(30000, &len);
	uint8_t *packed = mem_array(cap, 1);
	struct graph_load_options o = { .valid_share = 0, .test_share = 0 };

	(void)state;
	put("m.tsv", text, len);
	/* two members and two frames, cut within a line */
	n = gzip(text, len / 2, packed, cap);
	n += gzip(text + len / 2, len - len / 2, packed + n, cap - n);
	put("m.tsv.gz", packed, n);
	n = zstd(text, len / 3, packed, cap);
	n += zstd(text + len / 3, len - len / 3, packed + n, cap - n);
	put("m.tsv.zst", packed, n);
	for (int i = 0; i < 3; i++) {
		struct graph_load_report r;
		struct graph *g;

		assert_int_equal(graph_load(&g, path_of(names[i]), &o, &r, NULL), 0);
		assert_int_equal(r.lines, 30000);
		assert_int_equal(r.duplicates, 0);
		assert_int_equal(g->split[GRAPH_TRAIN].n, 30000);
		for (size_t k = 0; k < 30000; k++) {
			struct graph_triple t = g->split[GRAPH_TRAIN].at[k];
			char want[64], got[64];

			snprintf(want, sizeof want, "e%zu r%zu e%zu", k * 7919 % 5003, k % 11,
				 k * 104729 % 4999);
			snprintf(got, sizeof got, "%s %s %s",
				 graph_vocab_name(g->entities, t.head, NULL),
				 graph_vocab_name(g->relations, t.rel, NULL),
				 graph_vocab_name(g->entities, t.tail, NULL));
			assert_string_equal(got, want);
		}
		graph_free(g);
	}
	free(packed);
	free(text);
}

/* What no first line may be goes behind one that may. */
static void what_is_saved_begins_with_a_triple(void **state)
{
	static const char text[] = "head\trelation\ttail\n<?xml version\tr\ty\n"
				   "from\tto\tedge\nBZh91AY&SY\tr\ty\na\tr\tb\nsubject\tp\to\n";
	struct graph_load_options o;
	struct graph *g, *back;

	(void)state;
	graph_load_defaults(&o);
	o.keep_header = true;
	o.valid_share = o.test_share = 0;
	put("one.tsv", text, strlen(text));
	assert_int_equal(graph_load(&g, path_of("one.tsv"), &o, NULL, NULL), 0);
	assert_int_equal(graph_save(g, path_of("saved/first"), NULL), 0);
	assert_int_equal(graph_load(&back, path_of("saved/first"), NULL, NULL, NULL), 0);
	assert_int_equal(back->split[GRAPH_TRAIN].n, 6);
	assert_int_equal(graph_vocab_count(back->entities), graph_vocab_count(g->entities));
	assert_string_equal(graph_vocab_name(back->entities, 0, NULL), "a");
	for (uint32_t id = 0; id < graph_vocab_count(g->entities); id++) {
		const char *name = graph_vocab_name(g->entities, id, NULL);

		assert_int_not_equal(graph_vocab_find(back->entities, name, strlen(name)),
				     GRAPH_NONE);
	}
	graph_free(back);
	graph_free(g);
}

static void what_is_saved_comes_back(void **state)
{
	struct graph *g, *back;
	struct err e = { 0 };
	size_t len;
	char *text = many_lines(3000, &len);

	(void)state;
	put("one.tsv", text, len);
	assert_int_equal(graph_load(&g, path_of("one.tsv"), NULL, NULL, NULL), 0);
	for (int again = 0; again < 2; again++) {
		assert_int_equal(graph_save(g, path_of("saved/deep"), &e), 0);
		assert_int_equal(graph_load(&back, path_of("saved/deep"), NULL, NULL, NULL), 0);
		same_graph(g, back);
		graph_free(back);
		assert_int_equal(graph_save_openke(g, path_of("saved/ids"), &e), 0);
		assert_int_equal(graph_load(&back, path_of("saved/ids"), NULL, NULL, NULL), 0);
		same_graph(g, back);
		assert_int_equal(graph_vocab_count(back->entities), graph_vocab_count(g->entities));
		assert_memory_equal(g->split[GRAPH_TRAIN].at, back->split[GRAPH_TRAIN].at,
				    g->split[GRAPH_TRAIN].n * sizeof(struct graph_triple));
		graph_free(back);
		g->split[GRAPH_TEST].n = 0; /* must not leave the old test.tsv there */
	}
	assert_int_equal(graph_save(g, path_of("one.tsv"), &e), ERR_IO);
	assert_non_null(strstr(e.text, "one.tsv"));
	graph_free(g);
	free(text);
}

/* ---- splitting ---- */

static int compare_triples(const void *a, const void *b)
{
	return memcmp(a, b, sizeof(struct graph_triple));
}

static struct graph_triple *all_triples(const struct graph *g, size_t *n)
{
	struct graph_triple *all = mem_array(40000, sizeof *all);

	*n = 0;
	for (int s = 0; s < GRAPH_SPLITS; s++) {
		memcpy(all + *n, g->split[s].at, g->split[s].n * sizeof *all);
		*n += g->split[s].n;
	}
	qsort(all, *n, sizeof *all, compare_triples);
	return all;
}

static void one_file_is_split(void **state)
{
	struct graph_load_options o = { .valid_share = 0.1, .test_share = 0.2, .seed = 5 };
	struct graph_load_report r;
	struct graph *g, *again, *other;
	struct graph_triple *a, *b;
	size_t len, n, m;
	char *text = many_lines(30000, &len);

	(void)state;
	put("one.tsv", text, len);
	assert_int_equal(graph_load(&g, path_of("one.tsv"), &o, &r, NULL), 0);
	assert_int_equal(graph_load(&again, path_of("one.tsv"), &o, NULL, NULL), 0);
	o.seed = 6;
	assert_int_equal(graph_load(&other, path_of("one.tsv"), &o, NULL, NULL), 0);
	assert_true(r.split_made);
	assert_int_equal(g->split[GRAPH_TRAIN].n, 21000);
	assert_int_equal(g->split[GRAPH_VALID].n, 3000);
	assert_int_equal(g->split[GRAPH_TEST].n, 6000);
	assert_int_equal(r.unseen_entities, 0);
	assert_int_equal(r.unseen_relations, 0);
	assert_int_equal(r.leaked, 0);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		assert_memory_equal(g->split[s].at, again->split[s].at,
				    g->split[s].n * sizeof(struct graph_triple));
	assert_memory_not_equal(g->split[GRAPH_TEST].at, other->split[GRAPH_TEST].at, 600);
	a = all_triples(g, &n);
	b = all_triples(other, &m);
	assert_int_equal(n, m);
	assert_memory_equal(a, b, n * sizeof *a);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 0 }); /* lists still grow */
	free(a);
	free(b);
	free(text);
	graph_free(g);
	graph_free(again);
	graph_free(other);
}

static bool has_triple(const struct graph *g, enum graph_split s, const char *name[3])
{
	struct graph_triple t = { graph_vocab_find(g->entities, name[0], strlen(name[0])),
				  graph_vocab_find(g->relations, name[1], strlen(name[1])),
				  graph_vocab_find(g->entities, name[2], strlen(name[2])) };

	for (size_t i = 0; i < g->split[s].n; i++)
		if (memcmp(&g->split[s].at[i], &t, sizeof t) == 0)
			return true;
	return false;
}

/* How many triples of train in g are not in that of h. */
static size_t count_moved(const struct graph *g, const struct graph *h)
{
	size_t moved = 0;

	for (size_t i = 0; i < g->split[GRAPH_TRAIN].n; i++) {
		struct graph_triple t = g->split[GRAPH_TRAIN].at[i];
		const char *names[3] = { graph_vocab_name(g->entities, t.head, NULL),
					 graph_vocab_name(g->relations, t.rel, NULL),
					 graph_vocab_name(g->entities, t.tail, NULL) };

		moved += !has_triple(h, GRAPH_TRAIN, names);
	}
	return moved;
}

/* Private training speaks of one triple of train: one line more must not deal the others anew. */
static void one_line_more_moves_next_to_no_other(void **state)
{
	struct graph_load_options o = {
		.valid_share = 0.1, .test_share = 0.1, .seed = 5, .by_names = true
	};
	struct graph *g, *more;
	struct buf text = { 0 };
	size_t len;
	char *lines = many_lines(3000, &len);
	uint32_t n;

	(void)state;
	put("one.tsv", lines, len);
	assert_int_equal(graph_load(&g, path_of("one.tsv"), &o, NULL, NULL), 0);
	for (int k = 0; k < 5; k++) { /* in front */
		buf_clear(&text);
		n = (uint32_t)strcspn(lines, "\t");
		buf_printf(&text, "%.*s\tmore%d\t%.*s\n", (int)n, lines, k, (int)n, lines);
		buf_add(&text, lines, len);
		put("more.tsv", text.base, text.len);
		assert_int_equal(graph_load(&more, path_of("more.tsv"), &o, NULL, NULL), 0);
		assert_true(count_moved(g, more) + count_moved(more, g) <= 10);
		graph_free(more);
	}
	graph_free(g);
	buf_release(&text);
	free(lines);
}

/* Nor does it count where a line stands, also of triples whose names are the same letters one after
 * the other. */
static void the_order_of_lines_deals_nothing(void **state)
{
	struct graph_load_options o = {
		.valid_share = 0.2, .test_share = 0.2, .seed = 5, .by_names = true
	};
	struct buf text = { 0 }, back = { 0 };
	struct graph *g, *backwards;

	(void)state;
	for (int h = 1; h < 18; h++) /* xx xxx xxxxx: 20 letters in all */
		for (int r = 1; h + r < 20; r++) {
			struct buf line = { 0 };

			buf_printf(&line, "%.*s\t%.*s\t%.*s\n", h, "xxxxxxxxxxxxxxxxxxxx", r,
				   "xxxxxxxxxxxxxxxxxxxx", 20 - h - r, "xxxxxxxxxxxxxxxxxxxx");
			buf_add(&text, line.base, line.len);
			buf_add(&line, back.base, back.len);
			buf_release(&back);
			back = line;
		}
	put("one.tsv", text.base, text.len);
	put("back.tsv", back.base, back.len);
	assert_int_equal(graph_load(&g, path_of("one.tsv"), &o, NULL, NULL), 0);
	assert_int_equal(graph_load(&backwards, path_of("back.tsv"), &o, NULL, NULL), 0);
	assert_true(g->split[GRAPH_VALID].n > 10);
	assert_int_equal(count_moved(g, backwards) + count_moved(backwards, g), 0);
	graph_free(backwards);
	for (o.seed = 6; o.seed < 9; o.seed++) { /* but the seed does */
		assert_int_equal(graph_load(&backwards, path_of("back.tsv"), &o, NULL, NULL), 0);
		assert_true(count_moved(g, backwards) > 5);
		graph_free(backwards);
	}
	graph_free(g);
	buf_release(&text);
	buf_release(&back);
}

/* Known names keep their numbers, new ones follow in their own order; triples go along. */
static void numbers_stay_with_the_names(void **state)
{
	static const char *const want[] = { "c", "a", "b", "d" };
	const char *triple[3] = { "d", "s", "b" };
	struct graph_load_options o = { .valid_share = 0, .test_share = 0 };
	struct graph *old, *g, *backwards;

	(void)state;
	put("old.tsv", TEXT("c\tr\tgone\na\tr\tc\n"));
	put("new.tsv", TEXT("d\ts\tb\nb\tr\ta\na\tr\tc\n"));
	put("back.tsv", TEXT("a\tr\tc\nb\tr\ta\nd\ts\tb\n"));
	assert_int_equal(graph_load(&old, path_of("old.tsv"), &o, NULL, NULL), 0);
	assert_int_equal(graph_load(&g, path_of("new.tsv"), &o, NULL, NULL), 0);
	assert_int_equal(graph_load(&backwards, path_of("back.tsv"), &o, NULL, NULL), 0);
	graph_number_like(g, old);
	graph_number_like(backwards, old);
	assert_int_equal(graph_vocab_count(g->entities), 4);
	for (uint32_t k = 0; k < 4; k++) {
		assert_string_equal(graph_vocab_name(g->entities, k, NULL), want[k]);
		assert_string_equal(graph_vocab_name(backwards->entities, k, NULL), want[k]);
	}
	assert_string_equal(graph_vocab_name(g->relations, 0, NULL), "r");
	assert_int_equal(g->split[GRAPH_TRAIN].n, 3);
	assert_true(has_triple(g, GRAPH_TRAIN, triple));
	assert_memory_equal(&g->split[GRAPH_TRAIN].at[0], &backwards->split[GRAPH_TRAIN].at[2],
			    sizeof(struct graph_triple));
	graph_free(old);
	graph_free(g);
	graph_free(backwards);
}

static void a_split_never_takes_a_last_mention(void **state)
{
	/* each triple has the only mention of a tail, of a head, of a relation */
	static const char *const stars[] = {
		"a\tr\tb\na\tr\tc\na\tr\td\na\tr\te\na\tr\tf\n",
		"b\tr\ta\nc\tr\ta\nd\tr\ta\ne\tr\ta\nf\tr\ta\n",
		"a\tr\tb\na\ts\tb\na\tt\tb\na\tu\tb\na\tv\tb\n",
	};
	struct graph_load_options o = { .valid_share = 0.3, .test_share = 0.3, .seed = 1 };
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	for (size_t i = 0; i < sizeof stars / sizeof *stars; i++) {
		put("star.tsv", stars[i], strlen(stars[i]));
		assert_int_equal(graph_load(&g, path_of("star.tsv"), &o, &r, NULL), 0);
		assert_int_equal(g->split[GRAPH_TRAIN].n, 5);
		assert_int_equal(g->split[GRAPH_VALID].n + g->split[GRAPH_TEST].n, 0);
		graph_free(g);
	}
	put("loop.tsv", TEXT("a\tr\ta\na\ts\ta\na\ts\tb\nb\tr\ta\na\tr\tb\n"));
	for (o.seed = 0; o.seed < 50; o.seed++) {
		assert_int_equal(graph_load(&g, path_of("loop.tsv"), &o, &r, NULL), 0);
		assert_int_equal(r.unseen_entities, 0);
		assert_int_equal(r.unseen_relations, 0);
		assert_int_equal(g->split[GRAPH_VALID].n, 1);
		assert_int_equal(g->split[GRAPH_TEST].n, 1);
		graph_free(g);
	}
}

static void senseless_shares_are_refused(void **state)
{
	static const double shares[][2] = { { -0.1, 0 }, { 0, -1 },  { 0.5, 0.5 },   { 1, 0 },
					    { NAN, 0 },	 { 0, NAN }, { INFINITY, 0 } };

	(void)state;
	put("one.tsv", TEXT("a\tr\tb\n"));
	for (size_t i = 0; i < sizeof shares / sizeof *shares; i++) {
		struct graph_load_options o = { .valid_share = shares[i][0],
						.test_share = shares[i][1] };
		struct graph *g;

		assert_int_equal(graph_load(&g, path_of("one.tsv"), &o, NULL, NULL), ERR_USAGE);
		assert_null(g);
	}
}

/* ---- aliases ---- */

static struct graph_vocab *letters(void)
{
	struct graph_vocab *v = graph_vocab_new();

	for (const char *c = "abcd"; *c != '\0'; c++)
		graph_vocab_add(v, c, 1);
	return v;
}

static void aliases_link_names(void **state)
{
	struct graph_vocab *v = letters();
	struct graph_alias_report r;
	struct graph_aliases *a;
	size_t len;

	(void)state;
	put("al.tsv", TEXT("a\tA\nb\tB B\na\tA\nnobody\tN\nd\tB B\nc\tc\n"));
	assert_int_equal(
		graph_aliases_load(&a, path_of("al.tsv"), v, false, GRAPH_MATCH_FIRST, &r, NULL),
		0);
	assert_int_equal(r.lines, 6);
	assert_int_equal(r.linked, 3);
	assert_int_equal(r.strangers, 1);
	assert_int_equal(r.duplicates, 1);
	assert_int_equal(r.clashes, 1);
	assert_string_equal(graph_alias_of(a, 0, NULL), "A");
	assert_string_equal(graph_alias_of(a, 1, &len), "B B");
	assert_int_equal(len, 3);
	assert_string_equal(graph_alias_of(a, 2, NULL), "c");
	assert_null(graph_alias_of(a, 3, NULL));
	assert_null(graph_alias_of(a, 4, NULL));
	assert_null(graph_alias_of(NULL, 0, NULL));
	assert_int_equal(graph_alias_find(a, "B B", 3), 1);
	assert_int_equal(graph_alias_find(a, "N", 1), GRAPH_NONE);
	assert_int_equal(graph_alias_find(NULL, "A", 1), GRAPH_NONE);
	graph_aliases_free(a);
	put("al.tsv", TEXT("A\ta\nB B\tb\n"));
	assert_int_equal(
		graph_aliases_load(&a, path_of("al.tsv"), v, true, GRAPH_MATCH_REFUSE, &r, NULL),
		0);
	assert_int_equal(r.linked, 2);
	assert_string_equal(graph_alias_of(a, 1, NULL), "B B");
	graph_aliases_free(a);
	graph_vocab_free(v);
}

/* Which ids have which alias under the rule: "A-cB", '-' for none. */
static void aliases_are(enum graph_match match, const char *text, const char *want, size_t clashes)
{
	struct graph_vocab *v = letters();
	struct graph_alias_report r;
	struct graph_aliases *a;
	char got[5] = "----";

	put("al.tsv", text, strlen(text));
	assert_int_equal(graph_aliases_load(&a, path_of("al.tsv"), v, false, match, &r, NULL), 0);
	for (uint32_t id = 0; id < 4; id++) {
		const char *name = graph_alias_of(a, id, NULL);

		if (name == NULL)
			continue;
		got[id] = name[0];
		assert_int_equal(graph_alias_find(a, name, 1), id);
	}
	assert_string_equal(got, want);
	assert_int_equal(graph_alias_find(a, "?", 1), GRAPH_NONE);
	assert_int_equal(r.clashes, clashes);
	assert_int_equal(r.linked + r.clashes + r.duplicates + r.strangers, r.lines);
	graph_alias_report_release(&r);
	graph_aliases_free(a);
	graph_vocab_free(v);
}

static void rules_decide_between_aliases(void **state)
{
	(void)state;
	aliases_are(GRAPH_MATCH_FIRST, "a\tA\na\tB\nc\tB\nb\tA\na\tA\n", "A-B-", 2);
	/* what is left out frees no name: A and B are both disputed, C is not */
	aliases_are(GRAPH_MATCH_UNIQUE, "a\tA\na\tB\nc\tB\nd\tC\nd\tC\n", "---C", 3);
	aliases_are(GRAPH_MATCH_UNIQUE, "a\tA\nb\tA\nnobody\tA\nc\tC\n", "--C-", 2);
	aliases_are(GRAPH_MATCH_UNIQUE, "nobody\tA\nb\tA\nnobody\tB\n", "-A--", 0);
	aliases_are(GRAPH_MATCH_BEST, "a\tA\t.5\na\tB\t.9\nb\tB\t.8\nb\tA\t.1\n", "BA--", 2);
	/* the best pair counts, not the best sum; of equal ones the lesser names */
	aliases_are(GRAPH_MATCH_BEST, "a\tB\t9\na\tA\t10\nb\tA\t9\n", "A---", 2);
	aliases_are(GRAPH_MATCH_BEST, "b\tA\t1\na\tB\t1\na\tA\t1\n", "A---", 2);
	aliases_are(GRAPH_MATCH_BEST, "a\tB\t-2\na\tA\t-1e1\na\tA\t3\n", "A---", 1);
}

/* Numbers follow the lines of the graph. */
static void names_decide_between_equal_aliases(void **state)
{
	struct graph_vocab *v = graph_vocab_new();
	struct graph_aliases *a;

	(void)state;
	graph_vocab_add(v, "b", 1);
	graph_vocab_add(v, "a", 1);
	put("al.tsv", TEXT("b\tA\t1\na\tA\t1\n"));
	assert_int_equal(
		graph_aliases_load(&a, path_of("al.tsv"), v, false, GRAPH_MATCH_BEST, NULL, NULL),
		0);
	assert_null(graph_alias_of(a, 0, NULL));
	assert_string_equal(graph_alias_of(a, 1, NULL), "A");
	graph_aliases_free(a);
	graph_vocab_free(v);
}

static void all_conflicting_aliases_are_told(void **state)
{
	static const char text[] = "a\tA\na\tB\nc\tB\nx\tA\nd\tD\nb\tA\n";
	struct graph_vocab *v = letters();
	struct graph_alias_report r;
	struct graph_aliases *a;
	struct err e = { 0 };
	char *want = mem_printf("%s:2: 'a' is 'B' here and 'A' in line 1\n"
				"%s:3: 'B' is of 'c' here and of 'a' in line 2\n"
				"%s:6: 'A' is of 'b' here and of 'a' in line 1\n",
				path_of("al.tsv"), path_of("al.tsv"), path_of("al.tsv"));
	struct buf many = { 0 };

	(void)state;
	put("al.tsv", text, sizeof text - 1);
	assert_int_equal(
		graph_aliases_load(&a, path_of("al.tsv"), v, false, GRAPH_MATCH_REFUSE, &r, &e),
		ERR_INPUT);
	assert_null(a);
	assert_int_equal(r.conflicts.n, 3);
	assert_string_equal((const char *)r.conflicts.text.base, want);
	graph_alias_report_release(&r);
	for (int i = 0; i < 1000; i++)
		buf_printf(&many, "a\tA%d\n", i);
	put("al.tsv", many.base, many.len);
	assert_int_equal(
		graph_aliases_load(&a, path_of("al.tsv"), v, false, GRAPH_MATCH_REFUSE, &r, &e),
		ERR_INPUT);
	assert_int_equal(r.conflicts.n, 999);
	assert_true(r.conflicts.text.len < GRAPH_CONFLICTS_SHOWN * 200);
	graph_alias_report_release(&r);
	buf_release(&many);
	free(want);
	graph_vocab_free(v);
}

/* b is an own name and a's alias: whoever is asked for b could mean either. */
static void own_names_that_are_aliases_are_counted(void **state)
{
	struct graph_vocab *v = letters();
	struct graph_alias_report r;
	struct graph_aliases *a;

	(void)state;
	put("al.tsv", TEXT("a\tb\nc\td\nd\tx\n"));
	assert_int_equal(
		graph_aliases_load(&a, path_of("al.tsv"), v, false, GRAPH_MATCH_REFUSE, &r, NULL),
		0);
	assert_int_equal(r.shadowed, 1);
	graph_aliases_free(a);
	graph_vocab_free(v);
}

static void broken_aliases_are_refused_by_line(void **state)
{
	static const struct {
		const char *bytes;
		size_t n;
		const char *says;
	} bad[] = {
		{ TEXT("a\tA\na\tX\n"), "al.tsv:2: 'a' is 'X' here and 'A' in line 1" },
		{ TEXT("a\tA\nd\tA\nb\tB\nd\tD\nd\tE\n"),
		  "3 lines pair a name that an earlier line" },
		{ TEXT("a\n"), "al.tsv:1: 1 column where 2" },
		{ TEXT("a\tA\tx\n"), "al.tsv:1: 3 columns where 2" },
		{ TEXT("a\tA\nb\t\n"), "al.tsv:2: column 2 (shared name) is empty" },
		{ TEXT("\tA\n"), "al.tsv:1: column 1 (own name) is empty" },
		{ TEXT("a\tA\r\n"), "al.tsv:1: ends in CR LF" },
	};
	static const struct {
		const char *text, *says;
	} unscored[] = {
		{ "a\tA\t1\nb\tB\n", "al.tsv:2: no third column: best wants a score" },
		{ "a\tA\t1\t2\n", "al.tsv:1: 4 columns where 3" },
		{ "nobody\tA\tx\n", "al.tsv:1: column 3 (score) is 'x'" },
	};
	struct graph_vocab *v = letters();

	(void)state;
	for (size_t i = 0; i < sizeof unscored / sizeof *unscored; i++) {
		struct graph_aliases *a;
		struct err e = { 0 };

		put("al.tsv", unscored[i].text, strlen(unscored[i].text));
		assert_int_equal(graph_aliases_load(&a, path_of("al.tsv"), v, false,
						    GRAPH_MATCH_BEST, NULL, &e),
				 ERR_INPUT);
		assert_non_null(strstr(e.text, unscored[i].says));
	}
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct graph_aliases *a;
		struct err e = { 0 };

		put("al.tsv", bad[i].bytes, bad[i].n);
		assert_int_equal(graph_aliases_load(&a, path_of("al.tsv"), v, false,
						    GRAPH_MATCH_REFUSE, NULL, &e),
				 ERR_INPUT);
		assert_null(a);
		if (strstr(e.text, bad[i].says) == NULL)
			fail_msg("says \"%s\", not \"%s\"", e.text, bad[i].says);
	}
	graph_vocab_free(v);
}

/* ---- which triples a file names ---- */

/* Train: a r b, b r c, c s a; test: b r c once more, c r c. */
static struct graph *known_graph(void)
{
	struct graph *g = graph_new();

	graph_vocab_add(g->entities, "http://x/a", 10);
	graph_vocab_add(g->entities, "http://x/b", 10);
	graph_vocab_add(g->entities, "http://x/c", 10);
	graph_vocab_add(g->relations, "http://x/r", 10);
	graph_vocab_add(g->relations, "http://x/s", 10);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 1, 0, 2 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 2, 1, 0 });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 1, 0, 2 });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 2, 0, 2 });
	return g;
}

static void check_found(const struct graph *g, const char *name)
{
	struct graph_found f;
	struct err e = { 0 };

	if (graph_find(&f, g, path_of(name), NULL, &e) != 0)
		fail_msg("%s", e.text);
	assert_int_equal(f.triples.n, 2);
	assert_int_equal(f.n[GRAPH_TRAIN], 2);
	assert_int_equal(f.positions[GRAPH_TRAIN][0], 1);
	assert_int_equal(f.positions[GRAPH_TRAIN][1], 2);
	assert_int_equal(f.n[GRAPH_VALID], 0);
	assert_int_equal(f.n[GRAPH_TEST], 1);
	assert_int_equal(f.positions[GRAPH_TEST][0], 0);
	graph_found_release(&f);
}

static void not_found(const struct graph *g, const char *name, const char *says)
{
	struct graph_found f;
	struct err e = { 0 };

	assert_int_equal(graph_find(&f, g, path_of(name), NULL, &e), ERR_INPUT);
	if (strstr(e.text, says) == NULL)
		fail_msg("'%s' says nothing of '%s'", e.text, says);
}

/* Not passed over: it may be a triple, and else it is told. */
static void a_header_is_asked_for(void **state)
{
	static const char text[] = "head\trelation\ttail\nhttp://x/b\thttp://x/r\thttp://x/c\n";
	struct graph_load_options o;
	struct graph *g = known_graph();
	struct graph_found f;
	struct err e = { 0 };

	(void)state;
	graph_load_defaults(&o);
	put("head.tsv", TEXT(text));
	assert_int_equal(graph_find(&f, g, path_of("head.tsv"), &o, &e), 0);
	assert_int_equal(f.triples.n, 1);
	graph_found_release(&f);
	o.keep_header = true;
	assert_int_equal(graph_find(&f, g, path_of("head.tsv"), &o, &e), ERR_INPUT);
	if (strstr(e.text, "1 triple is not in the graph") == NULL ||
	    strstr(e.text, "head.tsv:1; line 1 looks like a header: take it out") == NULL)
		fail_msg("%s", e.text);
	graph_add(g, GRAPH_TRAIN,
		  (struct graph_triple){ graph_vocab_add(g->entities, "head", 4),
					 graph_vocab_add(g->relations, "relation", 8),
					 graph_vocab_add(g->entities, "tail", 4) });
	assert_int_equal(graph_find(&f, g, path_of("head.tsv"), &o, &e), 0);
	assert_int_equal(f.triples.n, 2);
	graph_found_release(&f);
	graph_free(g);
}

static void triples_are_found_by_name(void **state)
{
	static const char tsv[] = "http://x/c\thttp://x/s\thttp://x/a\n"
				  "http://x/b\thttp://x/r\thttp://x/c\n"
				  "http://x/c\thttp://x/s\thttp://x/a\n";
	static const char nt[] = "<http://x/c> <http://x/s> <http://x/a> .\n"
				 "<http://x/b> <http://x/r> <http://x/c> .\n";
	struct graph *g = known_graph();
	uint8_t packed[1024];

	(void)state;
	put("find.tsv", TEXT(tsv));
	check_found(g, "find.tsv");
	put("find.tsv.gz", packed, gzip(TEXT(tsv), packed, sizeof packed));
	check_found(g, "find.tsv.gz");
	put("find.nt", TEXT(nt));
	check_found(g, "find.nt");
	assert_int_equal(mkdir(path_of("found"), 0700), 0);
	put("found/train.tsv", TEXT(tsv));
	put("found/test.nt", TEXT(nt)); /* found in one split or in two, it is asked for once */
	check_found(g, "found");
	graph_free(g);
}

static void unknown_triples_are_refused_by_line(void **state)
{
	struct graph *g = known_graph();

	(void)state;
	put("find.tsv", TEXT("http://x/a\thttp://x/r\thttp://x/b\n"
			     "http://x/a\thttp://x/s\thttp://x/b\n"
			     "http://x/a\thttp://x/r\thttp://x/d\n"));
	not_found(g, "find.tsv", "2 triples are not in the graph: ");
	not_found(g, "find.tsv", "find.tsv:2, ");
	not_found(g, "find.tsv", "find.tsv:3");
	put("find.nt", TEXT("<http://x/a> <http://x/r> <http://x/b> .\n"
			    "<http://x/a> <http://x/r> \"b\" .\n"));
	not_found(g, "find.nt", "1 triples have a literal");
	put("find.tsv", TEXT("http://x/a\thttp://x/r\n"));
	not_found(g, "find.tsv", "find.tsv:1: 2 columns");
	graph_free(g);
}

/* The broken files of the tests before, with gzip's and zstd's: of nearly all a line is named. */
static void there_are_many_of_them(void **state)
{
	(void)state;
	print_message("# %zu broken files, %zu of them by line\n", n_refused, n_refused_by_line);
	assert_true(n_refused >= 400 && n_refused_by_line >= n_refused - 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(broken_text_is_refused_by_line),
		cmocka_unit_test(broken_text_is_refused_when_packed),
		cmocka_unit_test(long_lines_and_names),
		cmocka_unit_test(cut_packing_is_refused),
		cmocka_unit_test(damaged_packing_is_refused),
		cmocka_unit_test(promised_packing_must_be_there),
		cmocka_unit_test(bombs_are_refused),
		cmocka_unit_test(folders),
		cmocka_unit_test(a_header_is_no_triple),
		cmocka_unit_test(columns_in_another_order_are_refused),
		cmocka_unit_test(spaces_at_the_ends_are_counted),
		cmocka_unit_test(everything_is_reported),
		cmocka_unit_test(what_is_not_read_is_named),
		cmocka_unit_test(packed_and_plain_are_the_same),
		cmocka_unit_test(what_is_saved_begins_with_a_triple),
		cmocka_unit_test(what_is_saved_comes_back),
		cmocka_unit_test(one_file_is_split),
		cmocka_unit_test(one_line_more_moves_next_to_no_other),
		cmocka_unit_test(the_order_of_lines_deals_nothing),
		cmocka_unit_test(numbers_stay_with_the_names),
		cmocka_unit_test(a_split_never_takes_a_last_mention),
		cmocka_unit_test(senseless_shares_are_refused),
		cmocka_unit_test(aliases_link_names),
		cmocka_unit_test(rules_decide_between_aliases),
		cmocka_unit_test(names_decide_between_equal_aliases),
		cmocka_unit_test(all_conflicting_aliases_are_told),
		cmocka_unit_test(own_names_that_are_aliases_are_counted),
		cmocka_unit_test(broken_aliases_are_refused_by_line),
		cmocka_unit_test(a_header_is_asked_for),
		cmocka_unit_test(triples_are_found_by_name),
		cmocka_unit_test(unknown_triples_are_refused_by_line),
		cmocka_unit_test(there_are_many_of_them),
	};

	return cmocka_run_group_tests_name("kge load", tests, make_folder, remove_folder);
}
