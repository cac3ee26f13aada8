/* SPARQL to trees: what is understood, and where what is refused stands. */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "query/sparql.h"

static struct graph *some_graph(void)
{
	static const char *const entities[] = {
		"g",
		"d",
		"New York",
		"http://x/e",
		"\"lit\"",
		"\"lit\"@en",
		"\"5\"^^<http://x/int>",
		"\xc3\xa9",
		"\"a\\\"b\\\\\\n\"",
		"/m/0.a",
		"a/b",
	};
	static const char *const relations[] = {
		"r",
		"s",
		"t",
		"http://x/rel",
		"http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
		"with blank",
	};
	struct graph *g = graph_new();

	for (size_t i = 0; i < sizeof entities / sizeof *entities; i++)
		graph_vocab_add(g->entities, entities[i], strlen(entities[i]));
	for (int i = 0; i < 63; i++) {
		char name[8];

		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof name, "e%d", i));
	}
	for (size_t i = 0; i < sizeof relations / sizeof *relations; i++)
		graph_vocab_add(g->relations, relations[i], strlen(relations[i]));
	return g;
}

/* What the text becomes, or its error. */
static int say(const char *text, struct buf *words, uint64_t *limit)
{
	struct graph *g = some_graph();
	struct query_sparql q;
	struct err e = { 0 };
	int rc = query_sparql_read(text, strlen(text), g, &q, &e);

	buf_clear(words);
	if (rc == 0) {
		assert_int_equal(query_tree_check(&q.tree, graph_vocab_count(g->entities),
						  graph_vocab_count(g->relations), NULL),
				 0);
		query_tree_print(&q.tree, g, words);
		*limit = q.limit;
	} else {
		buf_printf(words, "%s", e.text);
	}
	graph_free(g);
	return rc;
}

static void expect_each(const char *const texts[][2], size_t n, int code)
{
	struct buf words = { 0 };
	uint64_t limit;

	for (size_t i = 0; i < n; i++) {
		int rc = say(texts[i][0], &words, &limit);

		if (rc != code || strstr((const char *)words.base, texts[i][1]) == NULL ||
		    (rc == 0 && strcmp((const char *)words.base, texts[i][1]) != 0))
			fail_msg("%s: %d, %s", texts[i][0], rc, (const char *)words.base);
	}
	buf_release(&words);
}
#define EACH(texts, code) expect_each(texts, sizeof(texts) / sizeof *(texts), code)

/* A pattern is one however often its braces have it. */
static void test_patterns_are_a_set(void **state)
{
	static const char *const texts[][2] = {
		{ "SELECT ?x { ?x <r> ?y . ?x <r> ?y . ?y <s> <g> }", "g <-s- <-r-" },
		{ "SELECT ?x { ?x <r> ?y . ?y <s> <g> . ?y ^<r> ?x }", "g <-s- <-r-" },
		{ "SELECT ?x { ?x <r>/^<s> ?y . ?y <s>/^<r> ?x . ?y <s> <g> }",
		  "g <-s- -s-> <-r-" },
		{ "SELECT ?x { { ?x <r> <g> ; <s> <d> } UNION { ?x <s> <d> ; <r> <g> } }",
		  "(g <-r- & d <-s-)" },
		{ "SELECT ?x { { ?x <r> <g> } UNION { { ?x <r> <g> } UNION { ?x <s> <d> } } }",
		  "(g <-r- | d <-s-)" },
		{ "SELECT ?x { { { ?x <r> <g> } UNION { ?x <s> <d> } } UNION { { ?x <t> <d> } "
		  "UNION { ?x <s> <d> } UNION { ?x <t> <g> } } }",
		  "(g <-r- | d <-s- | d <-t- | g <-t-)" },
		{ "SELECT ?x { ?x <r> <g> { ?x <s> <d> ; <r> <g> ; <t> <d> } }",
		  "(g <-r- & d <-s- & d <-t-)" },
		{ "SELECT ?x { ?x <r> <g> { ?x <r> <g> FILTER NOT EXISTS { ?x <s> <d> } } }",
		  "(g <-r- & !(d <-s-))" },
		{ "SELECT ?x { ?x <r> <g> FILTER NOT EXISTS { ?x <s> <d> ; <t> <d> } "
		  "FILTER NOT EXISTS { ?x <t> <d> ; <s> <d> } }",
		  "(g <-r- & !((d <-s- & d <-t-)))" },
		{ "SELECT ?x { ?x <r> <g> { ?x <s> <d> } UNION { ?x <t> <d> } "
		  "{ ?x <t> <d> } UNION { ?x <s> <d> } }",
		  "(g <-r- & (d <-s- | d <-t-))" },
	};

	(void)state;
	EACH(texts, 0);
}

static void test_trees(void **state)
{
	static const char *const texts[][2] = {
		{ "SELECT ?x WHERE { ?x <r> <g> }", "g <-r-" },
		{ "select distinct ?x { <g> <r> ?x . }", "g -r->" },
		{ "SELECT REDUCED $x{<g><r>?x}LIMIT 3", "g -r->" },
		{ "SELECT ?x { <g> <r>/<s> ?x }", "g -r-> -s->" },
		{ "SELECT ?x { ?x <r>/<s> <g> }", "g <-s- <-r-" },
		{ "SELECT ?x { ?x ^<r>/<s> <g> }", "g <-s- -r->" },
		{ "SELECT ?x { <g> ^(<r>/^<s>)/<t> ?x }", "g -s-> <-r- -t->" },
		{ "SELECT ?x { ?x ^(^(<r>)) <g> }", "g <-r-" },
		{ "SELECT ?x { \"New York\" ^<r> ?x }", "New York <-r-" },
		{ "SELECT ?x { \"lit\"^<r>/^<s> ?x }", "\"lit\" <-r- <-s-" },
		{ "SELECT ?x { ?x <r> ?y . ?y <s> <g> }", "g <-s- <-r-" },
		{ "SELECT ?x { ?y <s> <g> . ?x <r> ?y }", "g <-s- <-r-" },
		{ "SELECT ?x { ?x <r> <g> ; <s> <d>, <g> ; . }", "(g <-r- & d <-s- & g <-s-)" },
		{ "SELECT ?x { ?y <r> <g> . ?y <s> <d> . ?y <t> ?x }", "(g <-r- & d <-s-) -t->" },
		{ "SELECT ?x { { ?x <r> <g> } UNION { <d> <s> ?x } UNION { ?x <t> <d> } }",
		  "(g <-r- | d -s-> | d <-t-)" },
		{ "SELECT ?x { ?y <t> ?x { ?y <r> <g> } UNION { ?y <s> ?z . ?z <s> <d> } }",
		  "(g <-r- | d <-s- <-s-) -t->" },
		{ "SELECT ?x { { ?x <r> ?z . ?z <r> <g> } UNION { ?x <s> ?z . ?z <s> <g> } }",
		  "(g <-r- <-r- | g <-s- <-s-)" },
		{ "SELECT ?x { ?x <r> <g> FILTER NOT EXISTS { ?x <s> <d> } }",
		  "(g <-r- & !(d <-s-))" },
		{ "SELECT ?x { FILTER NOT EXISTS { ?x <s> <d> } . ?x <r> <g> }",
		  "(!(d <-s-) & g <-r-)" },
		{ "SELECT ?x { ?x <t> ?y . ?y <r> <g> FILTER NOT EXISTS { ?y <s> <d> } }",
		  "(g <-r- & !(d <-s-)) <-t-" },
		{ "SELECT ?x { ?x <r> <g> FILTER NOT EXISTS { ?x <s> ?z . ?z <s> <d> } "
		  "FILTER NOT EXISTS { ?x <t> ?z . ?z <s> <d> } }",
		  "(g <-r- & !(d <-s- <-s-) & !(d <-s- <-t-))" },
		{ "SELECT ?x { ?x <r> <g> FILTER NOT EXISTS { ?x <r> <d> "
		  "FILTER NOT EXISTS { ?x <s> <d> } } }",
		  "(g <-r- & !((d <-r- & !(d <-s-))))" },
		{ "SELECT ?x { ?x <r> <g> { ?x <s> ?y . { ?y <t> <d> } } }",
		  "(g <-r- & d <-t- <-s-)" },
		{ "PREFIX x: <http://x/> PREFIX : </m/> SELECT ?x { ?x x:rel x:e ; <r> :0\\.a }",
		  "(http://x/e <-http://x/rel- & /m/0.a <-r-)" },
		{ "PREFIX x: <http://x/> PREFIX x: <http://x/> SELECT ?x { ?x <r> x:e }",
		  "http://x/e <-r-" },
		{ "PREFIX x: <http://x/> SELECT ?x { ?x <r> x:e. ?x <s> <g>. }",
		  "(http://x/e <-r- & g <-s-)" },
		{ "SELECT ?x { ?x a <g> }",
		  "g <-http://www.w3.org/1999/02/22-rdf-syntax-ns#type-" },
		{ "SELECT ?x { ?x <r> \"New York\" }", "New York <-r-" },
		{ "SELECT ?x { ?x <r> <New\\u0020York> ; <with\\U00000020blank> 'New York' }",
		  "(New York <-r- & New York <-with blank-)" },
		{ "SELECT ?x { ?x <r> \"lit\"^^<http://www.w3.org/2001/XMLSchema#string>, "
		  "\"lit\"@EN }",
		  "(\"lit\" <-r- & \"lit\"@en <-r-)" },
		{ "SELECT ?x { ?x <r> \"lit\", \"lit\"@en }", "(\"lit\" <-r- & \"lit\"@en <-r-)" },
		{ "PREFIX x: <http://x/> SELECT ?x { ?x <r> \"5\"^^x:int, '5'^^<http://x/int> }",
		  "\"5\"^^<http://x/int> <-r-" },
		{ "SELECT ?x { ?x <r> 'a\"b\\\\\\n' }", "\"a\\\"b\\\\\\n\" <-r-" },
		{ "SELECT ?x { ?x <r> <\\u00e9>, <g>, <\xc3\xa9> }", "(\xc3\xa9 <-r- & g <-r-)" },
		{ "PREFIX : <> SELECT ?x { ?x <r> :\\u00e9, :a\\U0000002Fb }",
		  "(\xc3\xa9 <-r- & a/b <-r-)" },
		{ "SELECT ?x { ?x <r> <g> . ?x <r> <g> }", "g <-r-" },
		{ "SELECT ?x { ?x <r> <g> . ?x ^<r> <g> }", "(g <-r- & g -r->)" },
		{ "SELECT ?x { { ?x <r> <g> } UNION { ?x <r> <g> } }", "g <-r-" },
		{ "SELECT ?x { ?x <r> <d> { ?x <r> <g> } UNION { ?x <s> <g> } UNION { ?x <r> <g> } "
		  "}",
		  "(d <-r- & (g <-r- | g <-s-))" },
		{ "SELECT ?x { ?x <r> <g> FILTER NOT EXISTS { ?x <s> <d> } "
		  "FILTER NOT EXISTS { ?x <s> <d> } }",
		  "(g <-r- & !(d <-s-))" },
		{ "# first\nSELECT ?x # }\n{ ?x <r> <a/b> } # last", "a/b <-r-" },
		{ "SELECT ?\xc3\xa9 { ?\xc3\xa9 <r> <g> }", "g <-r-" },
	};

	(void)state;
	EACH(texts, 0);
}

static void test_limit(void **state)
{
	struct buf words = { 0 };
	uint64_t limit = 9;

	(void)state;
	assert_int_equal(say("SELECT ?x { ?x <r> <g> } LIMIT 12", &words, &limit), 0);
	assert_int_equal(limit, 12);
	assert_int_equal(
		say("SELECT ?x { ?x <r> <g> } LIMIT 99999999999999999999999", &words, &limit), 0);
	assert_int_equal(limit, UINT32_MAX);
	assert_int_equal(say("SELECT ?x { ?x <r> <g> }", &words, &limit), 0);
	assert_int_equal(limit, 0);
	buf_release(&words);
}

static void test_refuses(void **state)
{
	static const char *const texts[][2] = {
		{ "", "line 1, column 1: the query ends where SELECT" },
		{ "\xef\xbb\xbfSELECT ?x { ?x <r> <g> }", "begins with a byte-order mark" },
		{ "ASK { <g> <r> <d> }", "line 1, column 1: ASK is outside" },
		{ "SELECT * { ?x <r> <g> }", "column 8: '*' stands where a variable" },
		{ "SELECT ?x ?y { ?x <r> ?y }", "column 11: one variable" },
		{ "SELECT ?x FROM <g> { ?x <r> <g> }", "column 11: FROM is outside" },
		{ "SELECT ?x {\n  ?x <r> <g> .\n  OPTIONAL { ?x <s> <g> } }",
		  "line 3, column 3: OPTIONAL is outside" },
		{ "SELECT ?x { ?x <r> <g> MINUS { ?x <s> <g> } }", "column 24: MINUS is outside" },
		{ "SELECT ?x { ?x <r> <g> } ORDER BY ?x", "column 26: ORDER is outside" },
		{ "SELECT ?x { ?x <r> <g> } LIMIT 0", "column 32: '0' stands" },
		{ "SELECT ?x { ?x <r> <g> } LIMIT 1e", "a number" },
		{ "SELECT ?x { ?x <r> <g> } LIMIT 4294967296e", "a number" },
		{ "SELECT ?x { ?x <r> <g> } LIMIT", "ends where a number" },
		{ "SELECT ?x { ?x <r> <g> } LIMIT 2 OFFSET 3", "OFFSET is outside" },
		{ "SELECT ?x { ?x <r> <g> } }", "column 26: '}' stands where the end" },
		{ "SELECT ?x { ?x <r> <g> ", "ends where . or ; or }" },
		{ "SELECT ?x { ?x ?p <g> }", "column 16: a relation cannot" },
		{ "SELECT ?x { ?x <r>|<s> <g> }", "column 19: of paths only" },
		{ "SELECT ?x { ?x <r>* <g> }", "of paths only" },
		{ "SELECT ?x { ?x !<r> <g> }", "'!' stands" },
		{ "SELECT ?x { ?x (<r>/<s> <g> }", "'<g>' stands where )" },
		{ "SELECT ?x { ?x \"r\" <g> }",
		  "column 16: a relation stands in < >, a blank in it as \\u0020" },
		{ "SELECT ?x { ?x x:r <g> }", "no PREFIX says what x: is" },
		{ "SELECT ?x { _:b <r> ?x }", "no PREFIX says what _: is" },
		{ "SELECT ?x { [] <r> ?x }", "'[' stands" },
		{ "SELECT ?x { ?x <r> 5 }", "'5' stands" },
		{ "SELECT ?x { ?x <r> <a b> }", "column 20: no IRI" },
		{ "SELECT ?x { ?x <r> <ab }", "no IRI" },
		{ "SELECT ?x { ?x <r> \"ab\n\" }", "no \" closes" },
		{ "SELECT ?x { ?x <r> \"\"\"g\"\"\" }", "three quotes" },
		{ "SELECT ?x { ?x <r> \"\\q\" }", "no escape" },
		{ "SELECT ?x { ?x <r> <\\ud800> }", "no escape" },
		{ "SELECT ?x { ?x <r> <\\u00> }", "no escape" },
		{ "PREFIX : <e> SELECT ?x { ?x <r> :7\\2 }", "no escape" },
		{ "PREFIX : <e> SELECT ?x { ?x <r> :7\\u00 }", "no escape" },
		{ "SELECT ?x { ?x <r> <g> FILTER (?x) }", "column 31: '(' stands where NOT" },
		{ "SELECT ?x { ?x <r> <g> FILTER EXISTS { ?x <r> <g> } }", "EXISTS is outside" },
		{ "SELECT ?x { ?x <r> <g> ?x <s> <g> }", "column 24: '?x' stands where ." },
		{ "SELECT ?x { ?x <r> <g>\x01 }", "column 23: a control character" },
		{ "SELECT ?x { ?x <r> <g>\xff }", "column 23: a byte that is not UTF-8" },
		{ "PREFIX x <g> SELECT ?x { }", "column 8: 'x' stands where a prefix" },
		{ "PREFIX x: <a>\nPREFIX x: <b> SELECT ?x { }",
		  "line 2, column 8: x: has another" },
		{ "PREFIX x: y: SELECT ?x { }", "where an IRI" },
		/* no tree */
		{ "SELECT ?x { }", "column 8: ?x" },
		{ "SELECT ?x { ?y <r> <g> }", "?x is not in each" },
		{ "SELECT ?x { ?x <r> ?y }", "column 20: ?y hangs on nothing" },
		{ "SELECT ?x { ?x <r> ?x }", "column 16: ?x stands at both ends" },
		{ "SELECT ?x { ?x <r> ?y . ?x ^<r> ?y . ?y <s> <g> }", "is reached in two" },
		{ "SELECT ?x { ?x <r>/^<s> ?y . ?y <r>/^<s> ?x . ?y <s> <g> }", "in two" },
		{ "SELECT ?x { ?x <r> ?y . ?y <s> ?z . ?z <t> ?x }", "?x is reached in two ways" },
		{ "SELECT ?x { ?x <r> ?y . ?x <s> ?y . ?y <t> <g> }", "is reached in two" },
		{ "SELECT ?x { ?x <r> <g> . ?y <s> <d> }", "column 29: ?x does not hang together" },
		{ "SELECT ?x { ?x <r> <g> . <g> <s> <d> }", "column 30: ?x does not hang" },
		{ "SELECT ?x { FILTER NOT EXISTS { ?x <r> <g> } }", "needs a pattern that is not" },
		{ "SELECT ?x { { ?x <r> <g> } UNION { FILTER NOT EXISTS { ?x <s> <g> } } }",
		  "needs a pattern that is not" },
		{ "SELECT ?x { ?x <r> <g> FILTER NOT EXISTS { ?y <s> <g> } }", "does not hang" },
		{ "SELECT ?x { ?x <r> <g> { ?x <s> <g> } UNION { ?y <s> <g> } }",
		  "?x is not in each" },
		{ "SELECT ?x { ?x <r> ?y . ?y <s> <g> { ?x <s> ?y } UNION { ?x <t> <g> } }",
		  "stands outside" },
		{ "SELECT ?x { ?x <r> ?y . ?y <s> <g> FILTER NOT EXISTS { ?x <s> ?y } }",
		  "stands outside" },
		{ "SELECT ?x { { ?x <r> ?z . ?z <r> <g> } UNION { ?x <r> <g> } "
		  "FILTER NOT EXISTS { ?x <s> ?z . ?z <r> <g> } }",
		  "stands outside" },
		{ "SELECT ?x { ?x <r> <g> { ?x <r> <d> FILTER NOT EXISTS { ?x <s> ?z "
		  "{ ?z <r> <g> . ?x <r> ?z } } } }",
		  "stands outside" },
	};

	(void)state;
	EACH(texts, ERR_USAGE);
}

static void test_unknown_names(void **state)
{
	static const char *const texts[][2] = {
		{ "SELECT ?x {\n ?x <r> <nobody> }",
		  "line 2, column 9: the graph has no entity 'nobody'" },
		{ "SELECT ?x { ?x <R> <g> }", "column 16: the graph has no relation 'R'" },
		{ "PREFIX x: <http://x/> SELECT ?x { ?x <r> x:f }", "no entity 'http://x/f'" },
		{ "SELECT ?x { ?x <r> \"g\"@en }", "no entity '\"g\"@en'" },
		{ "SELECT ?x { ?x <r> \"nobody\" }", "no entity '\"nobody\"'" },
		{ "SELECT ?x { ?x <r> <> }", "no entity ''" },
	};

	(void)state;
	EACH(texts, ERR_NOTFOUND);
}

/* Which name it was is told apart from the words, cut to its room. */
static void test_unknown(void **state)
{
	struct graph *g = some_graph();
	struct query_sparql q;
	struct buf text = { 0 };

	(void)state;
	buf_printf(&text, "SELECT ?x {\n ?x <r> <");
	for (int i = 0; i <= QUERY_NAME_MAX / 2; i++)
		buf_printf(&text, "\xc3\xa9");
	buf_printf(&text, "> }");
	assert_int_equal(query_sparql_read((const char *)text.base, text.len, g, &q, NULL),
			 ERR_NOTFOUND);
	assert_false(q.unknown.relation);
	assert_int_equal(q.unknown.line, 2);
	assert_int_equal(q.unknown.column, 9);
	assert_int_equal(strlen(q.unknown.name), sizeof q.unknown.name - 1);
	assert_int_equal(q.unknown.name[QUERY_NAME_MAX - 2], (char)0xa9);
	assert_int_equal(q.unknown.name[QUERY_NAME_MAX - 1], '?');
	assert_int_equal(query_sparql_read("SELECT ?x { ?x <R> <g> }", 24, g, &q, NULL),
			 ERR_NOTFOUND);
	assert_true(q.unknown.relation);
	assert_string_equal(q.unknown.name, "R");
	buf_release(&text);
	graph_free(g);
}

/* Every limit, met and passed by one. */
static void repeated(const char *head, const char *part, size_t n, const char *tail, int want)
{
	struct buf text = { 0 }, words = { 0 };
	uint64_t limit;
	int rc;

	buf_printf(&text, "%s", head);
	for (size_t i = 0; i < n; i++)
		buf_printf(&text, part, (int)i);
	buf_printf(&text, "%s", tail);
	rc = say((const char *)text.base, &words, &limit);
	if (rc != want)
		fail_msg("%.40s... %zu of %s: %d, %s", head, n, part, rc, (const char *)words.base);
	buf_release(&text);
	buf_release(&words);
}

static void test_limits(void **state)
{
	(void)state;
	repeated("SELECT ?x { ?x <r>", "/<r>", QUERY_DEPTH_MAX - 2, " <g> }", 0);
	repeated("SELECT ?x { ?x <r>", "/<r>", QUERY_DEPTH_MAX - 1, " <g> }", ERR_TOOBIG);
	repeated("SELECT ?x { ?x <r>", "/<r>", 600, " <g> }", ERR_TOOBIG);
	repeated("SELECT ?x { ?x <r> <g>", ", <e%d>", 62, " }", 0);
	repeated("SELECT ?x { ?x <r> <g>", ", <e%d>", 63, " }", ERR_TOOBIG);
	repeated("SELECT ?x { ?x <r> <g>", ", <g>", 400, " }", 0); /* a set */
	repeated("SELECT ?x { ", "{ ?x <r> <g> } ", 127, " }", 0);
	repeated("SELECT ?x { ", "{ ?x <r> <g> } ", 129, " }", ERR_TOOBIG);
	repeated("SELECT ?x ", "{", QUERY_NESTING_MAX, "", ERR_USAGE);
	repeated("SELECT ?x ", "{", QUERY_NESTING_MAX + 1, "", ERR_TOOBIG);
	repeated("SELECT ?x { ?x ", "(", 30, "", ERR_USAGE);
	repeated("SELECT ?x { ?x ", "(", 60000, "", ERR_TOOBIG);
	repeated("SELECT ?x { ?x ", "^(", 20000, "", ERR_TOOBIG);
	repeated("SELECT ?v0 { ?v0 <r> <g> ", ". ?v%d <r> <g> ", 64, "}", ERR_USAGE);
	repeated("SELECT ?v0 { ?v0 <r> <g> ", ". ?v%d <r> <g> ", 65, "}", ERR_TOOBIG);
	repeated("", "PREFIX p%d: <x> ", 64, "SELECT ?x { ?x <r> <g> }", 0);
	repeated("", "PREFIX p%d: <x> ", 65, "SELECT ?x { ?x <r> <g> }", ERR_TOOBIG);
	repeated("SELECT ?x {", "{}", 300, "}", ERR_TOOBIG);
	repeated("SELECT ?x { ?x <r> <g> }", " ", QUERY_TEXT_MAX, "", ERR_TOOBIG);
}

/* Every beginning of a text, and every text with one byte gone, is a query or an error. */
static void test_cut(void **state)
{
	static const char text[] = "PREFIX p: <http://x/>\nSELECT ?x WHERE { ?x ^p:rel/(<s>/<t>) "
				   "\"New York\" ; a p:e .\n"
				   "{ ?x <r> 'lit'@en } UNION { ?x <r> \"5\"^^p:int } # end\n"
				   "FILTER NOT EXISTS { ?x <s> ?y . ?y <t> <\\u00e9> } } LIMIT 5";
	struct graph *g = some_graph();
	struct query_sparql q;

	(void)state;
	assert_int_equal(query_sparql_read(text, sizeof text - 1, g, &q, NULL), 0);
	assert_string_equal(q.variable, "x");
	for (size_t n = 0; n < sizeof text - 1; n++) {
		char *cut = mem_copy(text, n), *holed = mem_copy(text, sizeof text);
		struct err e = { 0 };
		int rc = query_sparql_read(cut, n, g, &q, &e);

		assert_true(rc == 0 || strncmp(e.text, "line ", 5) == 0);
		memmove(holed + n, holed + n + 1, sizeof text - n - 1);
		rc = query_sparql_read(holed, sizeof text - 2, g, &q, &e);
		assert_true(rc == 0 || strncmp(e.text, "line ", 5) == 0);
		free(cut);
		free(holed);
	}
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_patterns_are_a_set),
		cmocka_unit_test(test_trees),
		cmocka_unit_test(test_limit),
		cmocka_unit_test(test_refuses),
		cmocka_unit_test(test_unknown_names),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_cut),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
