/* Graphs in OpenKE's layout and in RDF: what they become, and what is said when they cannot. */
#include "tests/graph/files.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "graph/rdf_write.h"

static const struct graph_load_options whole = { .seed = 1 }; /* one file: all of it into train */

static struct graph *loads(const char *name, const struct graph_load_options *o,
			   struct graph_load_report *r)
{
	struct graph *g;
	struct err e = { 0 };

	if (graph_load(&g, path_of(name), o, r, &e) != 0)
		fail_msg("%s", e.text);
	return g;
}

/* A split, a line a triple. */
static void holds(const struct graph *g, enum graph_split split, const char *want)
{
	struct buf got = { 0 };

	buf_add(&got, "", 0);
	for (size_t i = 0; i < g->split[split].n; i++) {
		struct graph_triple t = g->split[split].at[i];

		buf_printf(&got, "%s %s %s\n", graph_vocab_name(g->entities, t.head, NULL),
			   graph_vocab_name(g->relations, t.rel, NULL),
			   graph_vocab_name(g->entities, t.tail, NULL));
	}
	buf_add(&got, "", 1);
	assert_string_equal((char *)got.base, want);
	buf_release(&got);
}

/* ---- OpenKE ---- */

static void put_openke(const char *entities, const char *relations, const char *train)
{
	unlink(path_of("k/valid2id.txt"));
	unlink(path_of("k/test2id.txt"));
	mkdir(path_of("k"), 0700);
	put("k/train2id.txt", train, strlen(train));
	unlink(path_of("k/entity2id.txt"));
	if (entities != NULL)
		put("k/entity2id.txt", entities, strlen(entities));
	unlink(path_of("k/relation2id.txt"));
	if (relations != NULL)
		put("k/relation2id.txt", relations, strlen(relations));
}

static void openke_is_head_tail_relation(void **state)
{
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	put_openke("4\na\t0\nb c\t2\nd\t1\n\xce\xb3\t3\n", "2\nr\t1\ns s 0\n",
		   "4\n0 2 1\n1\t3\t0\n0 2 1\n2 2  1 \n");
	put("k/valid2id.txt", TEXT("1\n1 0 0\n"));
	put("k/test2id.txt", TEXT("2\n0 2 1\n0 1 1"));
	g = loads("k", NULL, &r);
	holds(g, GRAPH_TRAIN, "a r b c\nd s s \xce\xb3\nb c r b c\n");
	holds(g, GRAPH_VALID, "d s s a\n");
	holds(g, GRAPH_TEST, "a r b c\na r d\n");
	assert_int_equal(r.lines, 7);
	assert_int_equal(r.duplicates, 1);
	assert_int_equal(r.self_loops, 1);
	assert_int_equal(r.leaked, 1);
	assert_int_equal(r.unseen_entities, 0);
	assert_false(r.split_made);
	graph_free(g);
}

/* A name without a triple is a candidate all the same, and is not unseen in test. */
static void openke_keeps_names_without_triples(void **state)
{
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	put_openke("3\na\t0\nb\t1\nidle\t2\n", "1\nr\t0\n", "1\n0 1 0\n");
	g = loads("k", NULL, &r);
	assert_int_equal(graph_vocab_count(g->entities), 3);
	assert_int_equal(r.unseen_entities, 0);
	put("k/test2id.txt", TEXT("2\n0 2 0\n2 1 0\n"));
	graph_free(g);
	g = loads("k", NULL, &r);
	assert_int_equal(r.unseen_entities, 1);
	graph_free(g);
}

static void openke_without_names_has_ids(void **state)
{
	static const char *const counts[] = { NULL, "8\n", "8" };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		struct graph *g;

		put_openke(counts[i], counts[i], "2\n7 3 1\n3 3 0\n");
		g = loads("k", NULL, NULL);
		holds(g, GRAPH_TRAIN, "7 1 3\n3 0 3\n");
		assert_int_equal(graph_vocab_count(g->entities), 2);
		graph_free(g);
	}
}

static void broken_openke_is_refused_by_line(void **state)
{
	static const struct {
		const char *entities, *relations, *train, *says;
	} bad[] = {
		{ NULL, NULL, "",
		  "k/train2id.txt:1: the first line must be the number of triples" },
		{ NULL, NULL, "0 1 0\n", "k/train2id.txt:1: the first line must be the number" },
		{ NULL, NULL, "x\n0 1 0\n", "k/train2id.txt:1: the first line must be the number" },
		{ NULL, NULL, "-1\n0 1 0\n",
		  "k/train2id.txt:1: the first line must be the number" },
		{ NULL, NULL, "9999999999999999999\n0 1 0\n", "k/train2id.txt:1: the first line" },
		{ NULL, NULL, "0\n", "k: no triples to train on" },
		{ NULL, NULL, "1\n", "k/train2id.txt:1: the first line says 1 triples, the file" },
		{ NULL, NULL, "2\n0 1 0\n",
		  "k/train2id.txt:2: the first line says 2 triples, the" },
		{ NULL, NULL, "1\n0 1 0\n1 0 0\n",
		  "k/train2id.txt:3: the first line says 1 triples, here is one more" },
		{ NULL, NULL, "1\n0 1\n", "k/train2id.txt:2: not three ids: head, tail, relation" },
		{ NULL, NULL, "1\n\n", "k/train2id.txt:2: not three ids" },
		{ NULL, NULL, "1\n0 1 0 5\n", "k/train2id.txt:2: more than three ids" },
		{ NULL, NULL, "1\n0 -1 0\n", "k/train2id.txt:2: not three ids" },
		{ NULL, NULL, "1\n0 1.5 0\n", "k/train2id.txt:2: not three ids" },
		{ NULL, NULL, "1\n0 1 r\n", "k/train2id.txt:2: not three ids" },
		{ NULL, NULL, "1\n0 1 9999999999999999999\n", "k/train2id.txt:2: not three ids" },
		{ NULL, NULL, "1\r\n0 1 0\r\n", "k/train2id.txt:1: ends in CR LF" },
		{ "2\na\t0\nb\t1\n", NULL, "1\n0 2 0\n",
		  "k/train2id.txt:2: tail 2, but the file of "
		  "names allows ids below 2" },
		{ "2\na\t0\nb\t1\n", "1\nr\t0\n", "2\n0 1 0\n0 1 1\n",
		  "k/train2id.txt:3: relation 1" },
		{ "2\n", NULL, "1\n2 0 0\n", "k/train2id.txt:2: head 2, but" },
		{ "0\n", NULL, "1\n0 0 0\n", "k/train2id.txt:2: head 0, but" },
		{ "a\t0\n", NULL, "1\n0 0 0\n",
		  "k/entity2id.txt:1: the first line must be the number" },
		{ "", NULL, "1\n0 0 0\n",
		  "k/entity2id.txt:1: the first line must be the number of en" },
		{ "2\na\t0\n", NULL, "1\n0 0 0\n",
		  "k/entity2id.txt:2: the first line says 2 entities, "
		  "the file ends before" },
		{ "1\na\t0\nb\t1\n", NULL, "1\n0 0 0\n",
		  "k/entity2id.txt:3: the first line says 1" },
		{ "2\na\t0\nb\t0\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:3: id 0 is there twice" },
		{ "2\na\t0\na\t1\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:3: 'a' is there twice" },
		{ "2\na\t0\nb\t2\n", NULL, "1\n0 0 0\n",
		  "k/entity2id.txt:3: id 2, but the first line allows ids below 2" },
		{ "1\na\tb\t0\n", NULL, "1\n0 0 0\n",
		  "k/entity2id.txt:2: the name is empty, has a TAB" },
		{ "1\n\t0\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:2: the name is empty" },
		{ "1\n0\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:2: not a name, a TAB and its id" },
		{ "1\n\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:2: not a name" },
		{ "1\na\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:2: not a name" },
		{ "1\na\tx\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:2: not a name" },
		{ "1\na0\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:2: not a name" },
		{ "4000000000\na\t0\n", NULL, "1\n0 0 0\n", "k/entity2id.txt:1: more than" },
		{ "1000000000\na\t0\n", NULL, "1\n0 0 0\n",
		  "k/entity2id.txt:2: the first line says" },
		{ NULL, "2\nr\t0\ns\t0\n", "1\n0 0 0\n",
		  "k/relation2id.txt:3: id 0 is there twice" },
		{ NULL, "1\n\xff\t0\n", "1\n0 0 0\n", "k/relation2id.txt:2: byte 1 is not UTF-8" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		put_openke(bad[i].entities, bad[i].relations, bad[i].train);
		refuses("k", ERR_INPUT, bad[i].says);
	}
	refuses("k/train2id.txt", ERR_INPUT, "k/train2id.txt: OpenKE's layout is a folder");
	put_openke(NULL, NULL, "1\n0 1 0\n");
	put("k/train.tsv", TEXT("a\tr\tb\n"));
	refuses("k", ERR_INPUT, "k/train2id.txt and ");
	unlink(path_of("k/train.tsv"));
}

static void the_format_can_be_said(void **state)
{
	static const struct graph_load_options openke = { .format = GRAPH_OPENKE },
					       tsv = { .format = GRAPH_TSV },
					       turtle = { .format = GRAPH_TURTLE };
	struct graph *g;
	struct err e = { 0 };

	(void)state;
	put_openke(NULL, NULL, "1\n0 1 0\n");
	put("k/train.tsv", TEXT("a\tr\tb\n"));
	g = loads("k", &openke, NULL);
	holds(g, GRAPH_TRAIN, "0 0 1\n");
	graph_free(g);
	g = loads("k", &tsv, NULL);
	holds(g, GRAPH_TRAIN, "a r b\n");
	graph_free(g);
	assert_int_equal(graph_load(&g, path_of("k/train.tsv"), &openke, NULL, &e), ERR_INPUT);
	assert_int_equal(graph_load(&g, path_of("k/train.tsv"), &turtle, NULL, &e), ERR_INPUT);
	unlink(path_of("k/train.tsv"));
	put("odd.nt", TEXT("<a:s>\t<p>\t<o> .\n"));
	g = loads("odd.nt", &tsv, NULL);
	holds(g, GRAPH_TRAIN, "<a:s> <p> <o> .\n");
	graph_free(g);
}

/* ---- RDF ---- */

static const char sample[] =
	"# a comment\r\n"
	"@prefix e: <http://e.org/> .\n"
	"@base <http://base.org/x/y> .\n"
	"PREFIX f: <http://f.org/#>\n"
	"e:a f:knows e:b , <z> , <#frag> ; a f:Person .\n"
	"<http://full.org/%C3%A9> f:p <http://e.org/\\u00e9\xc3\xa9> .\n"
	"e:a f:name \"A \\\"B\\\"\\n\"@en-GB , 42 , true , '''long\n'''^^f:t .\n"
	"e:a f:knows e:b .\n"
	"e:\xce\xb1 f:self e:\xce\xb1 .";

#define PART                                                                                       \
	"http://e.org/a http://f.org/#knows http://e.org/b\n"                                      \
	"http://e.org/a http://f.org/#knows http://base.org/x/z\n"                                 \
	"http://e.org/a http://f.org/#knows http://base.org/x/y#frag\n"                            \
	"http://e.org/a http://www.w3.org/1999/02/22-rdf-syntax-ns#type http://f.org/#Person\n"    \
	"http://full.org/%C3%A9 http://f.org/#p http://e.org/\xc3\xa9\xc3\xa9\n"
#define LAST "http://e.org/\xce\xb1 http://f.org/#self http://e.org/\xce\xb1\n"
#define XSD  "http://www.w3.org/2001/XMLSchema#"

static void turtle_becomes_whole_iris(void **state)
{
	struct graph_load_options o = whole;
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	put("s.ttl", TEXT(sample));
	g = loads("s.ttl", &o, &r);
	holds(g, GRAPH_TRAIN, PART LAST);
	assert_int_equal(r.lines, 11);
	assert_int_equal(r.literals, 4);
	assert_int_equal(r.blanks, 0);
	assert_int_equal(r.duplicates, 1);
	assert_int_equal(r.self_loops, 1);
	graph_free(g);
	o.keep_literals = true;
	g = loads("s.ttl", &o, &r);
	holds(g, GRAPH_TRAIN,
	      PART "http://e.org/a http://f.org/#name \"A \\\"B\\\"\\n\"@en-gb\n"
		   "http://e.org/a http://f.org/#name \"42\"^^<" XSD "integer>\n"
		   "http://e.org/a http://f.org/#name \"true\"^^<" XSD "boolean>\n"
		   "http://e.org/a http://f.org/#name \"long\\n\"^^<http://f.org/#t>\n" LAST);
	assert_int_equal(r.literals, 0);
	graph_free(g);
}

/* A literal is escaped, so it may have what a name may not. */
static void controls_of_literals_are_escaped(void **state)
{
	struct graph_load_options o = whole;
	struct graph *g;

	(void)state;
	o.keep_literals = true;
	put("l.ttl", TEXT("<a:s> <a:p> \"\\u0001\\u0085\\u00A0\xc2\x9f\" .\n"));
	g = loads("l.ttl", &o, NULL);
	holds(g, GRAPH_TRAIN, "a:s a:p \"\\u0001\\u0085\xc2\xa0\\u009F\"\n");
	graph_free(g);
}

/* RDF 1.1: a language has no letters of its own, and a literal without a type is an xsd:string. */
static void literals_that_are_one_term(void **state)
{
	struct graph_load_options o = whole;
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	o.keep_literals = true;
	put("o.ttl", TEXT("<a:s> <a:p> \"x\" , \"x\"^^<" XSD "string> , \"x^^<" XSD "string>\" ,\n"
			  "  \"F@EN\"@EN-gb , \"F@EN\"@en-GB .\n"));
	g = loads("o.ttl", &o, &r);
	holds(g, GRAPH_TRAIN,
	      "a:s a:p \"x\"\na:s a:p \"x^^<" XSD "string>\"\n"
	      "a:s a:p \"F@EN\"@en-gb\n");
	assert_int_equal(r.duplicates, 2);
	graph_free(g);
}

static const char *second_name(const struct graph *g)
{
	return graph_vocab_name(g->entities, 1, NULL);
}

/* With a key, a labelled node is called the same whatever else the file has, and one without a
 * label is another node in another file; with another key both are others. */
static void blank_nodes_by_a_key(void **state)
{
	static const uint8_t keys[2][GRAPH_BLANK_KEY] = { { 1 }, { 2 } };
	static const char *const texts[] = { "<a:s> <a:p> _:x . _:x <a:p> [] .\n",
					     "<a:s> <a:p> _:x . _:x <a:p> [] , <a:o> .\n" };
	struct graph_load_options o = whole;
	struct graph *g[2][2];

	(void)state;
	for (int k = 0; k < 2; k++)
		for (int t = 0; t < 2; t++) {
			o.blank_key = keys[k];
			put("b.ttl", texts[t], strlen(texts[t]));
			g[k][t] = loads("b.ttl", &o, NULL);
		}
	assert_int_equal(strncmp(second_name(g[0][0]), "_:x@", 4), 0);
	assert_string_equal(second_name(g[0][0]), second_name(g[0][1]));
	assert_string_not_equal(second_name(g[0][0]), second_name(g[1][0]));
	assert_int_equal(strncmp(graph_vocab_name(g[0][0]->entities, 2, NULL), "_:.0.1@", 7), 0);
	assert_string_not_equal(graph_vocab_name(g[0][0]->entities, 2, NULL),
				graph_vocab_name(g[0][1]->entities, 2, NULL));
	assert_string_not_equal(graph_vocab_name(g[0][0]->entities, 2, NULL),
				graph_vocab_name(g[1][0]->entities, 2, NULL));
	for (int k = 0; k < 4; k++)
		graph_free(g[k / 2][k % 2]);
}

/* What train.dp could not hide is refused; a label names no place. */
static void no_place_is_named_for_private_training(void **state)
{
	static const uint8_t key[GRAPH_BLANK_KEY] = { 1 };
	struct graph_load_options o = { .by_names = true, .blank_key = key };
	struct err e = { 0 };
	struct graph *g;

	(void)state;
	put("b.ttl", TEXT("<a:s> <a:p> _:x .\n<a:s> <a:p> [] .\n"));
	assert_int_equal(graph_load(&g, path_of("b.ttl"), &o, NULL, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "b.ttl:2: a blank node without a label"));
	put("b.ttl", TEXT("<a:s> <a:p> _:x .\n<a:s> <a:p> _:b1 .\n"));
	graph_free(loads("b.ttl", &o, NULL));
}

/* A pipe is read once: where a name needs the file's hash, it is refused and nothing waits. */
static void blank_nodes_from_a_pipe(void **state)
{
	static const uint8_t key[GRAPH_BLANK_KEY] = { 1 };
	struct graph_load_options o = whole;
	struct err e = { 0 };
	struct graph *g;

	(void)state;
	for (int k = 0; k < 2; k++) {
		pid_t child;

		o.blank_key = k > 0 ? key : NULL;
		assert_int_equal(mkfifo(path_of("pipe.ttl"), 0600), 0);
		child = fork();
		if (child == 0) {
			put("pipe.ttl", TEXT("<a:s> <a:p> _:x .\n"));
			_exit(0);
		}
		alarm(60);
		assert_int_equal(graph_load(&g, path_of("pipe.ttl"), &o, NULL, &e),
				 k > 0 ? 0 : ERR_INPUT);
		alarm(0);
		assert_int_equal(waitpid(child, NULL, 0), child);
		unlink(path_of("pipe.ttl"));
		graph_free(g);
	}
	assert_non_null(strstr(e.text, "cannot be read twice"));
}

/* The mark is the same for the same bytes and another for others. */
static void blank_nodes_are_nobody_elses(void **state)
{
	static const char text[] =
		"<a:s> <a:p> _:x . _:x <a:p> [ <a:q> <a:o> ] . _:b7 <a:p> _:x .\n";
	struct graph_load_options o = whole;
	struct graph_load_report r;
	struct graph *g, *again, *other;
	const char *x;

	(void)state;
	put("b.ttl", TEXT(text));
	g = loads("b.ttl", &o, &r);
	assert_int_equal(g->split[GRAPH_TRAIN].n, 4);
	x = graph_vocab_name(g->entities, 1, NULL);
	assert_int_equal(strlen(x), strlen("_:x@") + 12);
	assert_int_equal(strncmp(x, "_:x@", 4), 0);
	assert_int_equal(strncmp(graph_vocab_name(g->entities, 2, NULL), "_:.0.1@", 7), 0);
	assert_int_equal(strncmp(graph_vocab_name(g->entities, 4, NULL), "_:b7@", 5), 0);
	again = loads("b.ttl", &o, NULL);
	same_graph(g, again);
	put("c.ttl", text, sizeof text - 2);
	other = loads("c.ttl", &o, NULL);
	assert_string_not_equal(x, graph_vocab_name(other->entities, 1, NULL));
	graph_free(g);
	graph_free(again);
	graph_free(other);
	o.drop_blanks = true;
	put("c.ttl", TEXT("<a:s> <a:p> _:x . _:x <a:p> <a:o> . <a:s> <a:p> <a:o> , () , (1) .\n"));
	g = loads("c.ttl", &o, &r);
	holds(g, GRAPH_TRAIN,
	      "a:s a:p a:o\na:s a:p http://www.w3.org/1999/02/22-rdf-syntax-ns#nil\n");
	assert_int_equal(r.blanks, 5);
	graph_free(g);
}

/* The three files of a folder are one graph: labels are shared, nodes without one are not. */
static void rdf_folders(void **state)
{
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	mkdir(path_of("n"), 0700);
	put("n/train.nt", TEXT("_:x <a:p> <a:o> .\n<a:o> <a:p> <a:q> .\n"));
	put("n/valid.ttl", TEXT("_:x <a:p> [] ."));
	put("n/test.txt", TEXT("# by its content\n\n_:x <a:p> [] .\n"));
	g = loads("n", NULL, &r);
	assert_int_equal(r.unseen_entities, 2);
	assert_int_equal(g->split[GRAPH_VALID].at[0].head, g->split[GRAPH_TRAIN].at[0].head);
	assert_int_equal(g->split[GRAPH_TEST].at[0].head, g->split[GRAPH_TRAIN].at[0].head);
	assert_int_not_equal(g->split[GRAPH_VALID].at[0].tail, g->split[GRAPH_TEST].at[0].tail);
	graph_free(g);
	put("n/train.ttl", TEXT(""));
	refuses("n", ERR_INPUT, "n/train.nt and ");
}

/* Labels such as b1 are labels, in each file of a folder, whatever else is there. */
static void labels_of_quads(void **state)
{
	struct graph_load_options o = { .by_names = true };
	struct graph *g;

	(void)state;
	mkdir(path_of("nq"), 0700);
	put("nq/train.nq", TEXT("_:b1 <a:p> <a:o> <a:g> .\n_:B1 <a:p> _:b1 .\n"));
	put("nq/valid.nq", TEXT("_:b1 <a:p> _:B1 .\n_:b2 <a:p> <a:o> .\n"));
	put("nq/test.nt", TEXT("<a:o> <a:p> _:b1 .\n"));
	g = loads("nq", &o, NULL);
	assert_int_equal(graph_vocab_count(g->entities), 4);
	assert_int_equal(strncmp(graph_vocab_name(g->entities, 0, NULL), "_:b1@", 5), 0);
	assert_int_equal(strncmp(graph_vocab_name(g->entities, 2, NULL), "_:B1@", 5), 0);
	assert_int_equal(g->split[GRAPH_VALID].at[0].head, 0);
	assert_int_equal(g->split[GRAPH_TEST].at[0].tail, 0);
	graph_free(g);
}

/* No node of N-Quads is without a label; serd would call such a node b1. */
static void brackets_are_no_quads(void **state)
{
	static const char *const texts[] = { "<a:s> <a:p> _:b1 .\n[] <a:p> <a:o> .\n",
					     "<a:s> <a:p> <a:o> .\n[ <a:p> <a:o> ] <a:p> <a:s> .\n",
					     "<a:s> <a:p> <a:o> .\n( <a:o> ) <a:p> <a:s> .\n" };
	struct graph_load_options o = whole;

	(void)state;
	for (int k = 0; k < 6; k++) {
		struct err e = { 0 };
		struct graph *g = NULL;

		o.drop_blanks = k >= 3;
		put("b.nq", texts[k % 3], strlen(texts[k % 3]));
		assert_int_equal(graph_load(&g, path_of("b.nq"), &o, NULL, &e), ERR_INPUT);
		assert_non_null(strstr(e.text, "b.nq:2: N-Quads have no [ ] or ( )"));
	}
}

/* The triples of all graphs of the file: a triple in two of them is one. */
static void quads_become_triples(void **state)
{
	static const char *const files[][2] = {
		{ "q.nq", "<a:s> <a:p> <a:o> <a:g> .\n<a:s> <a:p> <a:o> <a:h> .\n"
			  "# c\n<a:s> <a:p> _:x _:g .\n<a:o> <a:q> \"l\"@en .\n"
			  "<a:\\u00e9> <a:q> <a:s> .\n" },
		{ "q.trig", "@prefix a: <a:> .\na:g { a:s a:p a:o . a:s a:p _:x }\n"
			    "GRAPH a:h { a:s a:p a:o ; a:q \"l\"@en }\n{ a:\xc3\xa9 a:q a:s }\n" },
	};

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct graph_load_options o = { 0 };
		struct graph_load_report r;
		struct graph *g;

		put(files[i][0], files[i][1], strlen(files[i][1]));
		g = loads(files[i][0], &o, &r);
		assert_int_equal(r.lines, 5);
		assert_int_equal(r.duplicates, 1);
		assert_int_equal(r.literals, 1);
		assert_int_equal(g->split[GRAPH_TRAIN].n, 3);
		assert_int_not_equal(graph_vocab_find(g->entities, "a:\xc3\xa9", 4), GRAPH_NONE);
		assert_int_equal(graph_vocab_find(g->entities, "a:g", 3), GRAPH_NONE);
		graph_free(g);
	}
	put("q.nq", TEXT("<a:s> <a:p> <a:o> <a:g> .\n<a:s> <a:p> <a:o> <a:g> <a:h> .\n"));
	refuses("q.nq", ERR_INPUT, "q.nq:2: ");
	put("q.nq", TEXT("<a:s> <a:p> <a:o> .\n@prefix a: <a:> .\n"));
	refuses("q.nq", ERR_INPUT, "q.nq:2: ");
	put("q.nq", TEXT("<a:s> <a:p> <a:o> .\n<a:s> <a:p> <rel> <a:g> .\n"));
	refuses("q.nq", ERR_INPUT, "q.nq:2: missing IRI scheme");
	put("q.trig", TEXT("<a:g> {\n<a:s> <a:p> <a:o> .\n"));
	refuses("q.trig", ERR_INPUT, "q.trig:");
}

static void json_ld_is_refused_with_a_way(void **state)
{
	static const char text[] =
		" {\"@context\": {}, \"@id\": \"a:s\", \"a:p\": {\"@id\": \"a:o\"}}";

	(void)state;
	put("j.jsonld", text, sizeof text - 1);
	put("j.txt", text, sizeof text - 1);
	refuses("j.jsonld", ERR_INPUT,
		"j.jsonld: JSON-LD is not read; N-Quads of it are: /usr/bin/python3");
	refuses("j.txt", ERR_INPUT, "j.txt:1: JSON-LD is not read");
	mkdir(path_of("j"), 0700);
	put("j/train.jsonld.gz", text, sizeof text - 1);
	refuses("j", ERR_INPUT, "j/train.jsonld.gz: JSON-LD is not read");
}

static void rdf_xml_is_refused_with_a_way(void **state)
{
	static const char text[] = "<rdf:RDF\nxmlns:rdf=\"a:\">\n</rdf:RDF>\n";
	static const char *const names[] = { "x.rdf", "x.owl", "x", "x.txt", "x.nt", "x.ttl" };

	(void)state;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		char says[128];

		put(names[i], text, sizeof text - 1);
		snprintf(says, sizeof says, "%s:1: this is XML, and RDF/XML is not read; ",
			 names[i]);
		refuses(names[i], ERR_INPUT, says);
	}
	mkdir(path_of("x.d"), 0700);
	put("x.d/train.owl", text, sizeof text - 1);
	refuses("x.d", ERR_INPUT, "x.d/train.owl: RDF/XML is not read");
}

static void content_tells_rdf_from_tsv(void **state)
{
	static const struct {
		const char *text;
		bool rdf;
	} looks[] = {
		{ "<a:s> <a:p> <a:o> .\n", true },
		{ "<a:s>\t<a:p>\t<a:o> . \r\n", true },
		{ "_:x <a:p> <a:o> .", true },
		{ "# c\n\n@prefix e: <a:> .\ne:s e:p e:o .\n", true },
		{ "prefix e: <a:>\ne:s e:p e:o .\n", true },
		{ "BASE <a:>\n<a:s> <a:p> <a:o> .\n", true },
		{ "<a:s>\t<a:p>\t<a:o>\n", false },
		{ "# c\tr\tb\n", false },
		{ "_x\tr\tInc.\n", false },
		{ "prefixes\tr\tb\n", false },
	};
	struct graph *g;

	(void)state;
	for (size_t i = 0; i < sizeof looks / sizeof *looks; i++) {
		const char *name = i % 2 == 0 ? "what.txt" : "what";

		put(name, looks[i].text, strlen(looks[i].text));
		g = loads(name, &whole, NULL);
		assert_int_equal(g->split[GRAPH_TRAIN].n, 1);
		assert_int_equal(strncmp(graph_vocab_name(g->relations, 0, NULL), "a:p", 3) == 0,
				 looks[i].rdf);
		graph_free(g);
	}
}

static const struct {
	const char *bytes;
	size_t n;
	const char *says;
} broken[] = {
	{ TEXT(""), "f.ttl: no triples in it" },
	{ TEXT("# nothing\n"), "f.ttl: no triples in it" },
	{ TEXT("<a:s> <a:p> \"x\" .\n"), "f.ttl: no triples in it (those with literals" },
	{ TEXT("<a:s> <a:p> <a:o> .\n<a:s> <a:p> <a:o>\n"), "f.ttl:" },
	{ TEXT("<a:s> <a:p> <a:o>\n<a:s> <a:p> <a:o> .\n"), "f.ttl:2: missing ';' or '.'" },
	{ TEXT("<a:s> <a:p> <a:o> <a:g> .\n"), "f.ttl:1: " },
	{ TEXT("<a:s> <a:p> .\n"), "f.ttl:1: " },
	{ TEXT("<a:s> <a:p> <a:o> .\n<a:s <a:p> <a:o> .\n"), "f.ttl:2: " },
	{ TEXT("<a:s> <a:p> <a:o> .\n\n<a:s"), "f.ttl:3: the file ends within an IRI" },
	{ TEXT("<a:s> <a:p> \"x\n\" .\n"), "f.ttl:" },
	{ TEXT("<a:s> <a:p> \"\"\"x\n\n .\n"), "f.ttl:" },
	{ TEXT("<a:s> \"p\" <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("\"s\" <a:p> <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("<a:s> _:p <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("<a:s> <a:p> e:o .\n"), "f.ttl:1: 'e:o': this prefix was not declared" },
	{ TEXT("\n<a:s> <a:p> \"1\"^^e:t .\n"), "f.ttl: no triples" }, /* left out unread */
	{ TEXT("<\\u001b[31m> <a:p> <a:o> .\n"), "f.ttl:1: control character 0x1b" },
	{ TEXT("<a:\\u009b31m> <a:p> <a:o> .\n"), "f.ttl:1: control character U+009B at byte 3" },
	{ TEXT("<a:s> \x1b <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("\n<rel> <a:p> <a:o> .\n"), "f.ttl:2: <rel> is relative, and no @base" },
	{ TEXT("@prefix e: <rel/> .\ne:s <a:p> <a:o> .\n"), "f.ttl:2: <e:s> is relative" },
	{ TEXT("@prefix e <a:> .\n"), "f.ttl:1: " },
	{ TEXT("@nonsense e: <a:> .\n"), "f.ttl:1: " },
	{ TEXT("<a:s b> <a:p> <a:o> .\n"), "f.ttl:1: invalid IRI character" },
	{ TEXT("<a:\\u000a> <a:p> <a:o> .\n"), "f.ttl:1: control character 0x0a at byte 3" },
	{ TEXT("<a:\\u0009> <a:p> <a:o> .\n"), "f.ttl:1: a TAB in a name" },
	{ TEXT("<a:\\u00"), "f.ttl:1: " },
	{ TEXT("<a:\\uD800> <a:p> <a:o> .\n"), "f.ttl:1: byte 3 is not UTF-8" },
	{ TEXT("<a:\\U00110000> <a:p> <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("<a:\xff> <a:p> <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("<a:\xc3> <a:p> <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("<a:s> <a:p> \"\xff\" .\n"), "f.ttl:1: " },
	{ TEXT("<a:s> <a:p> <a:o> .\n\0"), "f.ttl:2: control character 0x00" },
	{ TEXT("<\0a\0:\0"), "f.ttl:1: control character 0x00" },
	{ TEXT("a\tr\tb\n"), "f.ttl:1: " },
	{ TEXT("{\"head\": \"a\"}\n"), "f.ttl:1: " },
	{ TEXT("<?xml version=\"1.0\"?>\n"), "f.ttl:1: " },
	{ TEXT("<a:s> <a:p> [ <a:q> <a:o> .\n"), "f.ttl:1: " },
	{ TEXT("<a:s> <a:p> ( <a:q> .\n"), "f.ttl:1: " },
	{ TEXT("]]]]"), "f.ttl:1: " },
	{ TEXT("_:b1 <a:p> _:B1 .\n"), "f.ttl:1: blank nodes _:b and _:B with numbers" },
	{ TEXT("_:B1 <a:p> <a:o> .\n_:b1 <a:p> <a:o> .\n"), "f.ttl:2: blank nodes _:b and _:B" },
};

static void broken_rdf_is_refused_by_line(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		put("f.ttl", broken[i].bytes, broken[i].n);
		refuses("f.ttl", ERR_INPUT, broken[i].says);
	}
}

/* ---- names as terms ---- */

/* As graph/rdf_write.h says; "": of a blank node, whose label is the writer's. */
static const struct {
	const char *name, *term;
} terms[] = {
	{ "http://e.org/x", "<http://e.org/x>" },
	{ "http://e.org/`x", "<urn:fkge:http%3A%2F%2Fe.org%2F%60x>" }, /* no IRI has these */
	{ "http://e.org/x^y", "<urn:fkge:http%3A%2F%2Fe.org%2Fx%5Ey>" },
	{ "http://e.org/x|y", "<urn:fkge:http%3A%2F%2Fe.org%2Fx%7Cy>" },
	{ "http://e.org/<x>", "<urn:fkge:http%3A%2F%2Fe.org%2F%3Cx%3E>" },
	{ "a:\\u0041", "<urn:fkge:a%3A%5Cu0041>" },
	{ "plain", "<urn:fkge:plain>" },
	{ "%70lain", "<urn:fkge:%2570lain>" },
	{ "-._~", "<urn:fkge:-._~>" },
	{ "truth", "<urn:fkge:name:truth>" },
	{ "name:truth", "<name:truth>" },
	{ "\"x\"@en", "\"x\"@en" },
	{ "\"x", "<urn:fkge:%22x>" },
	{ "_:x", "" },
	{ "_:x@", "" },
	{ "_:x@a1", "" },
	{ "_:x.a1", "" },
	{ "_:x_40", "" },
	{ "_:x\xc3\xa9", "" },
	{ "_:.", "" },
};
enum { TERMS = sizeof terms / sizeof *terms };

static void names_are_terms(void **state)
{
	struct buf term[TERMS] = { { 0 } }, text = { 0 };
	struct graph_load_options o = { .seed = 1, .keep_literals = true };
	struct graph *g;

	(void)state;
	for (size_t i = 0; i < TERMS; i++) {
		assert_true(graph_rdf_term(&term[i], terms[i].name, GRAPH_RDF_OBJECT));
		if (terms[i].term[0] != '\0')
			assert_string_equal((const char *)term[i].base, terms[i].term);
		else
			assert_memory_equal(term[i].base, "_:", 2);
		for (size_t k = 0; k < i; k++)
			assert_string_not_equal((const char *)term[i].base,
						(const char *)term[k].base);
		buf_printf(&text, "<a:s> <a:p> %s .\n", (const char *)term[i].base);
	}
	put("terms.nt", text.base, text.len);
	g = loads("terms.nt", &o, NULL); /* each is one that a reader takes, and another one */
	assert_int_equal(g->split[GRAPH_TRAIN].n, TERMS);
	for (size_t i = 0; i < TERMS; i++)
		buf_release(&term[i]);
	buf_release(&text);
	graph_free(g);
}

static void terms_know_their_place(void **state)
{
	struct buf out = { 0 };

	(void)state;
	assert_false(graph_rdf_term(&out, "\"x\"", GRAPH_RDF_SUBJECT));
	assert_false(graph_rdf_term(&out, "\"x\"", GRAPH_RDF_PREDICATE));
	assert_false(graph_rdf_term(&out, "_:x", GRAPH_RDF_PREDICATE));
	assert_int_equal(out.len, 0);
	assert_true(graph_rdf_term(&out, "_:x", GRAPH_RDF_SUBJECT));
	assert_true(graph_rdf_term(&out, "plain", GRAPH_RDF_PREDICATE));
	buf_release(&out);
}

/* The same words for the same line when it is packed, and for packing that is cut short. */
static void packed_rdf(void **state)
{
	uint8_t packed[1024];
	size_t n;

	(void)state;
	for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
		char says[128];

		if (broken[i].n == 0)
			continue;
		snprintf(says, sizeof says, "f.ttl.gz%s", broken[i].says + strlen("f.ttl"));
		put("f.ttl.gz", packed, gzip(broken[i].bytes, broken[i].n, packed, sizeof packed));
		refuses("f.ttl.gz", ERR_INPUT, says);
		snprintf(says, sizeof says, "f.ttl.zst%s", broken[i].says + strlen("f.ttl"));
		put("f.ttl.zst", packed, zstd(broken[i].bytes, broken[i].n, packed, sizeof packed));
		refuses("f.ttl.zst", ERR_INPUT, says);
	}
	n = gzip(TEXT("<a:s> <a:p> <a:o> .\n<a:s> <a:p> _:x .\n"), packed, sizeof packed);
	for (size_t cut = 2; cut < n; cut++) {
		put("f.ttl.gz", packed, cut);
		refuses("f.ttl.gz", ERR_INPUT, "f.ttl.gz:");
		put("f", packed, cut); /* a name that says nothing */
		refuses("f", ERR_INPUT, cut < 12 ? "f:1: packed data is damaged" : "f:");
	}
	put("f.ttl.gz", packed, n);
	graph_free(loads("f.ttl.gz", &whole, NULL));
	put("f", packed, n);
	graph_free(loads("f", &whole, NULL));
}

/* text, then n times `again`, then `after` */
static void put_repeated(const char *name, const char *text, const char *again, size_t n,
			 const char *after)
{
	struct buf b = { 0 };

	buf_add(&b, text, strlen(text));
	for (size_t i = 0; i < n; i++)
		buf_add(&b, again, strlen(again));
	buf_add(&b, after, strlen(after));
	put(name, b.base, b.len);
	buf_release(&b);
}

static void hostile_rdf_is_bounded(void **state)
{
	struct graph_load_options keep = whole;
	struct graph_load_report r;
	struct graph *g;

	(void)state;
	put_repeated("f.ttl", "<a:s> <a:p> ", "[ <a:p> ", 300000, "");
	refuses("f.ttl", ERR_INPUT, "f.ttl:1: too many [ or ( within each other");
	put_repeated("f.ttl", "<a:s> <a:p> ", "(", 300000, "");
	refuses("f.ttl", ERR_INPUT, "f.ttl:1: too many [ or ( within each other");
	put_repeated("f.ttl", "\n<a:s> <a:p> ", "([<a:p>", 200000, "");
	refuses("f.ttl", ERR_INPUT, "f.ttl:2: too many [ or ( within each other");
	put_repeated("f.ttl", "<a:s> <a:p> <a:o> .\n<a:s> <a:p> \"", "0123456789abcdef", 1 << 20,
		     "1\" .\n");
	refuses("f.ttl", ERR_INPUT, "f.ttl:2: a statement or string of more than");
	put_repeated("f.ttl", "<a:s> <a:p> <a:o> .\n<a:s> <a:p> \"\"\"\n", "# 3456789abcde.\n",
		     1 << 20, "\"\"\" .\n");
	refuses("f.ttl", ERR_INPUT, "f.ttl:1048578: a statement or string of more than");
	put_repeated("f.ttl", "<a:s> <a:p> <a:o>, <a:", "x", GRAPH_NAME_MAX - 1, "> .\n");
	refuses("f.ttl", ERR_INPUT, "f.ttl:1: a name of 4097 bytes, more than 4096");
	put_repeated("f.ttl", "@prefix e: <a:", "x", GRAPH_NAME_MAX, "> .\n");
	refuses("f.ttl", ERR_INPUT, "f.ttl:1: a prefix of more than 4096 bytes");
	put_repeated("f.ttl", "<a:s> <a:p> <a:o>, <a:", "x", GRAPH_NAME_MAX - 2, "> .\n");
	graph_free(loads("f.ttl", &whole, NULL));
	keep.keep_literals = true;
	put_repeated("f.ttl", "<a:s> <a:p> <a:o>, \"", "\\n", GRAPH_NAME_MAX / 2, "\" .\n");
	g = loads("f.ttl", &keep, &r);
	assert_int_equal(r.literals, 1); /* too long for a name */
	graph_free(g);
}

/* ... but what stands between statements takes no memory. */
static void what_is_between_does_not_count(void **state)
{
	static const char line[] = "# \"3456789 <bcde\n";
	const size_t n = (1 << 20) + 1;

	(void)state;
	put_repeated("f.ttl", "", line, n, "<a:s> <a:p> [ <a:p> <a:o> ]\n.\n");
	graph_free(loads("f.ttl", &whole, NULL));
	put_repeated("f.ttl", "<a:s> <a:p> <a:o>#", "0123456789abcdef", n, "\n, <a:t> .\n");
	graph_free(loads("f.ttl", &whole, NULL));
	put_repeated("f.trig", "<a:g> { <a:s> <a:p> [ <a:p> <a:o> ] .\n", line, n,
		     "}\n<a:s> <a:p> <a:t> .");
	graph_free(loads("f.trig", &whole, NULL));
	put_repeated("f.nq", "<a:s> <a:p> <a:o> <a:g> .\n", "\r\n  \t\n\n\n  \n\n\n\n\n\n", n,
		     "<a:s> <a:p> <a:t> .\n");
	graph_free(loads("f.nq", &whole, NULL));
}

static void too_many_prefixes(void **state)
{
	struct buf b = { 0 };

	(void)state;
	for (int i = 0; i < 4096; i++)
		buf_printf(&b, "@prefix p%d: <a:%d> .\n@prefix p%d: <b:%d> .\n", i, i, i, i);
	buf_printf(&b, "p4095:s p0:p p1:o .\n");
	put("f.ttl", b.base, b.len);
	graph_free(loads("f.ttl", &whole, NULL));
	buf_printf(&b, "@prefix one: <a:more> .\n");
	put("f.ttl", b.base, b.len);
	refuses("f.ttl", ERR_INPUT, "f.ttl:8194: more than 4096 prefixes");
	buf_release(&b);
}

/* The broken files of the tests before, with gzip's and zstd's: of nearly all a line is named. */
static void there_are_many_of_them(void **state)
{
	(void)state;
	print_message("# %zu broken files, %zu of them by line\n", n_refused, n_refused_by_line);
	assert_true(n_refused >= 200 && n_refused_by_line >= n_refused - 20);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(openke_is_head_tail_relation),
		cmocka_unit_test(openke_keeps_names_without_triples),
		cmocka_unit_test(openke_without_names_has_ids),
		cmocka_unit_test(broken_openke_is_refused_by_line),
		cmocka_unit_test(the_format_can_be_said),
		cmocka_unit_test(turtle_becomes_whole_iris),
		cmocka_unit_test(controls_of_literals_are_escaped),
		cmocka_unit_test(literals_that_are_one_term),
		cmocka_unit_test(blank_nodes_are_nobody_elses),
		cmocka_unit_test(blank_nodes_by_a_key),
		cmocka_unit_test(labels_of_quads),
		cmocka_unit_test(brackets_are_no_quads),
		cmocka_unit_test(no_place_is_named_for_private_training),
		cmocka_unit_test(blank_nodes_from_a_pipe),
		cmocka_unit_test(rdf_folders),
		cmocka_unit_test(quads_become_triples),
		cmocka_unit_test(json_ld_is_refused_with_a_way),
		cmocka_unit_test(rdf_xml_is_refused_with_a_way),
		cmocka_unit_test(content_tells_rdf_from_tsv),
		cmocka_unit_test(broken_rdf_is_refused_by_line),
		cmocka_unit_test(names_are_terms),
		cmocka_unit_test(terms_know_their_place),
		cmocka_unit_test(packed_rdf),
		cmocka_unit_test(hostile_rdf_is_bounded),
		cmocka_unit_test(what_is_between_does_not_count),
		cmocka_unit_test(too_many_prefixes),
		cmocka_unit_test(there_are_many_of_them),
	};

	return cmocka_run_group_tests_name("kge formats", tests, make_folder, remove_folder);
}
