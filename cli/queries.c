/* cli/queries.c - queries sample: queries drawn from graphs, for measuring. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sink.h"
#include "cli/commands.h"
#include "cli/place.h"
#include "lab/table.h"
#include "lab/work.h"
#include "query/pool.h"
#include "query/sample.h"

enum { TRIES = 100000, COUNT_MAX = 10000000, MISSING_SHOWN = QUERY_STEPS_MAX };

struct sample_options {
	const char **paths; /* of the command line */
	size_t n_paths;
	const char *file;
	int split;
	bool types[QUERY_PATTERNS];
	uint64_t count, seed, answers;
	bool easy;
};

enum { KEY_TYPES = 0x4000, KEY_SEED, KEY_ANSWERS, KEY_EASY };

static const struct argp_option sample_options[] = {
	{ "output", 'o', "FILE", 0, "where the queries go, one JSON object a line", 0 },
	{ "count", 'n', "N", 0, "so many of each type (default 1000)", 0 },
	{ "types", KEY_TYPES, "LIST", 0,
	  "such as 1p,2i,pni; benchmark: the nine without negation (the default); all", 0 },
	{ "split", 's', "NAME", 0,
	  "test: hard answers need a triple of test (the default); valid: one of valid, test is "
	  "not "
	  "looked at; train: answers on train alone, all of them hard",
	  0 },
	{ "answers", KEY_ANSWERS, "N", 0, "no query with more answers", 0 },
	{ "easy", KEY_EASY, NULL, 0, "write easy answers, too", 0 },
	{ "seed", KEY_SEED, "N", 0, "of the draws (default 1)", 0 },
	{ 0 },
};

static void choose_types(struct sample_options *o, int first, int end)
{
	for (int p = first; p < end; p++)
		o->types[p] = true;
}

static void parse_types(struct sample_options *o, const struct argp_state *state, const char *arg)
{
	enum { ALL = QUERY_OTHER, BENCHMARK, WORDS };
	const char *words[WORDS + 1] = { [ALL] = "all", [BENCHMARK] = "benchmark" };
	char *list = mem_strdup(arg), *rest = list, *word;

	for (int p = 0; p < QUERY_OTHER; p++)
		words[p] = query_pattern_words[p];
	memset(o->types, 0, sizeof o->types);
	while ((word = strsep(&rest, ",")) != NULL) {
		int p = cli_word(state, word, "--types", words);

		if (p == ALL)
			choose_types(o, 0, QUERY_PATTERNS);
		else if (p == BENCHMARK)
			choose_types(o, QUERY_1P, QUERY_UP + 1);
		else
			choose_types(o, p, p + 1);
	}
	free(list);
}

static error_t parse_sample(int key, char *arg, struct argp_state *state)
{
	struct sample_options *o = state->input;

	switch (key) {
	case 'o':
		o->file = arg;
		return 0;
	case 'n':
		o->count = cli_count(state, arg, "--count", 1, COUNT_MAX);
		return 0;
	case KEY_TYPES:
		parse_types(o, state, arg);
		return 0;
	case 's':
		o->split = cli_word(state, arg, "--split", graph_split_words);
		return 0;
	case KEY_ANSWERS:
		o->answers = cli_count(state, arg, "--answers", 1, UINT32_MAX);
		return 0;
	case KEY_EASY:
		o->easy = true;
		return 0;
	case KEY_SEED:
		o->seed = cli_count(state, arg, "--seed", 0, INT64_MAX);
		return 0;
	case ARGP_KEY_ARG:
		if (o->n_paths == QUERY_OWNERS_MAX)
			argp_error(state, "at most %d graphs", QUERY_OWNERS_MAX);
		o->paths[o->n_paths++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->n_paths == 0 || o->file == NULL)
			argp_error(state, "GRAPH and -o are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the work ---- */

struct sampling {
	struct cli *cli;
	const struct sample_options *o;
	struct query_pool pool;
	struct query_sampler *sampler;
	struct sink sink;
	struct query_record q;
	struct table table;
	json_t *types;
};

/* What was found of one type. */
struct type_sums {
	uint64_t queries, hard, easy, missing[MISSING_SHOWN + 1];
};

static int load_graphs(struct sampling *s, struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < s->o->n_paths && rc == 0; i++) {
		struct graph *g;

		rc = graph_load(&g, s->o->paths[i], NULL, NULL, e);
		if (rc != 0)
			return rc;
		query_pool_add(&s->pool, g);
		graph_free(g);
	}
	if (rc == 0 && s->pool.g->split[s->o->split].n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no triple of %s, so no query of it", s->o->paths[0],
			     graph_split_words[s->o->split]);
	return rc;
}

static void open_sampler(struct sampling *s)
{
	/* by split: train, valid, test */
	static const unsigned all[] = { 1, 3, 7 }, known[] = { 0, 1, 3 };
	const struct query_sample_options how = {
		.all = all[s->o->split],
		.known = known[s->o->split],
		.seed = s->o->seed,
		.answers_max = s->o->answers,
		.holders = s->o->n_paths > 1 ? query_pool_holders(&s->pool) : NULL,
	};

	s->sampler = query_sampler_new(s->pool.g, &how);
}

static void add_sums(struct type_sums *sums, const struct query_record *q)
{
	sums->queries++;
	sums->hard += q->hard.n;
	sums->easy += q->easy.n;
	for (size_t i = 0; i < q->hard.n; i++)
		sums->missing[q->hard.cost[i] < MISSING_SHOWN ? q->hard.cost[i] : MISSING_SHOWN]++;
}

static void put_sums(struct sampling *s, enum query_pattern p, const struct type_sums *sums)
{
	json_t *missing = json_array();
	double n = sums->queries > 0 ? (double)sums->queries : 1;

	table_add(&s->table, "%s", query_pattern_words[p]);
	table_add(&s->table, "%llu", (unsigned long long)sums->queries);
	table_add(&s->table, "%.1f", (double)sums->hard / n);
	table_add(&s->table, "%.1f", (double)sums->easy / n);
	for (int k = 1; k <= MISSING_SHOWN; k++) {
		double part = sums->hard > 0 ? (double)sums->missing[k] / (double)sums->hard : 0;

		table_add(&s->table, "%.1f %%", 100 * part);
		json_array_append_new(missing, json_integer((json_int_t)sums->missing[k]));
	}
	json_array_append_new(s->types,
			      json_pack("{s:s, s:I, s:I, s:I, s:o}", "type", query_pattern_words[p],
					"queries", (json_int_t)sums->queries, "hard",
					(json_int_t)sums->hard, "easy", (json_int_t)sums->easy,
					"missing", missing));
}

/* Those of one step are all listed; of others there may be some that no draw has found. */
static void say_fewer(const struct sampling *s, enum query_pattern p, uint64_t queries)
{
	if (p == QUERY_1P)
		lab_note(&s->cli->notes, "1p: there are %llu, no more\n",
			 (unsigned long long)queries);
	else
		lab_note(&s->cli->notes, "%s: %d draws in a row gave no further one\n",
			 query_pattern_words[p], TRIES);
}

static int sample_type(struct sampling *s, enum query_pattern p, struct err *e)
{
	struct progress bar = lab_progress_begin(&s->cli->notes, query_pattern_words[p]);
	struct type_sums sums = { 0 };
	int rc = 0;

	while (sums.queries < s->o->count && rc == 0 &&
	       query_sampler_next(s->sampler, p, TRIES, &s->q) == 1) {
		s->q.has_missing = s->o->split != GRAPH_TRAIN;
		s->q.has_easy = s->o->easy;
		rc = query_record_write(s->sink.f, &s->q, s->pool.g, e);
		add_sums(&sums, &s->q);
		lab_progress_at(&bar, (double)sums.queries / (double)s->o->count, "%s", "");
	}
	lab_progress_end(&bar);
	if (rc == 0 && sums.queries < s->o->count)
		say_fewer(s, p, sums.queries);
	put_sums(s, p, &sums);
	return rc;
}

static int write_queries(struct sampling *s, struct err *e)
{
	int rc = sink_open(&s->sink, ".", s->o->file, SINK_SHARED, e), closed;

	if (rc != 0)
		return rc;
	for (int p = 0; p < QUERY_PATTERNS && rc == 0; p++)
		if (s->o->types[p])
			rc = sample_type(s, (enum query_pattern)p, e);
	closed = sink_close(&s->sink, rc == 0 ? e : NULL);
	return rc != 0 ? rc : closed;
}

static void put_twins(const struct sampling *s)
{
	struct query_twins found = query_sampler_twins(s->sampler);

	cli_put_count(s->cli, "twins", found.twins);
	cli_put_count(s->cli, "symmetric", found.symmetric);
	if (found.twins + found.symmetric > 0)
		lab_note(&s->cli->notes,
			 "Relations with the triples of another one, most often in the other "
			 "direction: %zu; symmetric ones: %zu. No query has a condition twice, or "
			 "comes twice, by such names\n",
			 found.twins, found.symmetric);
}

static void put_sample(struct sampling *s)
{
	const struct graph *g = s->pool.g;
	struct buf text = { 0 };
	json_t *graphs = json_array();

	for (size_t i = 0; i < s->o->n_paths; i++)
		json_array_append_new(graphs, store_json_of_text(s->o->paths[i]));
	cli_put(s->cli, "graphs", graphs);
	cli_put_count(s->cli, "entities", graph_vocab_count(g->entities));
	cli_put_count(s->cli, "relations", graph_vocab_count(g->relations));
	cli_put_text(s->cli, "split", graph_split_words[s->o->split]);
	cli_put_count(s->cli, "seed", s->o->seed);
	put_twins(s);
	cli_put(s->cli, "types", json_incref(s->types));
	table_print(&s->table, &text);
	cli_say(s->cli, "%.*s", (int)text.len, (const char *)text.base);
	buf_release(&text);
}

static int sample_queries(struct cli *cli, const struct sample_options *o, struct err *e)
{
	static const char *const head[] = { "type",	 "queries", "hard each", "easy each",
					    "missing 1", "2",	    "3",	 "4" };
	struct sampling s = { .cli = cli, .o = o, .types = json_array() };
	int rc = load_graphs(&s, e);

	table_init(&s.table, sizeof head / sizeof *head);
	for (size_t i = 0; i < sizeof head / sizeof *head; i++)
		table_add(&s.table, "%s", head[i]);
	if (rc == 0) {
		open_sampler(&s);
		rc = write_queries(&s, e);
	}
	if (rc == 0)
		put_sample(&s);
	query_sampler_free(s.sampler);
	query_record_release(&s.q);
	query_pool_release(&s.pool);
	table_release(&s.table);
	json_decref(s.types);
	return rc;
}

int cmd_queries_sample(struct cli *cli, int argc, char **argv, struct err *e)
{
	static const struct place_kind kind = { "file of queries", "{\"type\"" };
	struct sample_options o = { .split = GRAPH_TEST, .count = 1000, .seed = 1 };
	const struct cli_syntax s = {
		.options = sample_options,
		.parse = parse_sample,
		.args = "GRAPH...",
		.doc = "Draw queries from the triples of GRAPH (a file or folder that `import` "
		       "reads), backwards from an answer, for benchmarks. With several graphs "
		       "the queries are those of all of them together that no one's relations "
		       "answer alone; equal names are one thing. A file is split as `import` "
		       "splits it.\v"
		       "Each line has the query, its hard answers and for each how many triples it "
		       "needs that are not known (`missing`). No query comes twice; where the "
		       "graph "
		       "has no more of a type, there are fewer.\n\n"
		       "Examples:\n  fkge queries sample fb15k-237/ -n 5000 -o queries.jsonl\n"
		       "  fkge queries sample r3/0 r3/1 r3/2 --types 2p,2i,pi -o cross.jsonl",
		.input = &o,
	};
	int rc;

	o.paths = mem_array(QUERY_OWNERS_MAX, sizeof *o.paths);
	choose_types(&o, QUERY_1P, QUERY_UP + 1);
	cli_parse(cli, &s, argc, argv);
	rc = cli_check_place(o.file, &kind, e);
	if (rc == 0)
		rc = sample_queries(cli, &o, e);
	free(o.paths);
	return rc;
}
