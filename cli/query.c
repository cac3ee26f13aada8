/* cli/query.c - query: questions over several steps. */
#include "cli/query.h"
#include "query/frontier.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "agent/core/core.h"
#include "base/parallel.h"
#include "cli/commands.h"
#include "cli/rdf_out.h"

enum {
	KEY_BATCH = 0x2000,
	KEY_EVALUATE,
	KEY_SPLIT,
	KEY_KNOWN,
	KEY_TRUTH,
	KEY_PRECISION,
	KEY_NORM,
	KEY_BEAM,
	KEY_CACHE,
	KEY_THREADS,
	KEY_LIMIT,
	KEY_EXPLAIN,
	KEY_EXACT,
	KEY_ENCODER,
	KEY_FEDERATED,
	KEY_PATIENCE,
	KEY_WANT,
	KEY_FORMAT,
	KEY_WANT_KNOWN,
	KEY_POINTS,
	KEY_HOLDERS,
	KEY_SKIP_UNKNOWN,
	KEY_TELL_OWN,
	KEY_LAST, /* stands for -c (given_bit()) */
};

static const char *const split_words[] = { "valid", "test", NULL };

static const struct argp_option query_options[] = {
	{ "file", 'f', "FILE", 0, "the query from a file; - is standard input", 0 },
	{ "exact", KEY_EXACT, NULL, 0, "answers that the triples give, nothing predicted", 0 },
	{ "batch", KEY_BATCH, "FILE", 0,
	  "queries from a file (-: standard input), one JSON object a line", 0 },
	{ "evaluate", KEY_EVALUATE, NULL, 0, "with --batch: rank the hard answers of the file", 0 },
	{ "encoder", KEY_ENCODER, "FILE", 0,
	  "with --evaluate, or --federated: by an encoder of `queries train` or `queries encoder`, "
	  "not by search",
	  0 },
	{ "holders", KEY_HOLDERS, "N", 0,
	  "with --federated --encoder: members of the rounds score what at least N of them hold, "
	  "this agent among them (default 3)",
	  0 },
	{ "split", KEY_SPLIT, "WORD", 0,
	  "with --evaluate: test (the default) or valid, whose triples the hard answers need", 0 },
	{ "explain", KEY_EXPLAIN, NULL, 0, "for each answer, the best way to it, edge by edge", 0 },
	{ "format", KEY_FORMAT, "WORD", 0,
	  "the predicted edges on the best ways to the answers, as triples with their truth: "
	  "ntriples or rdf-star",
	  0 },
	{ "federated", KEY_FEDERATED, NULL, 0,
	  "partners take steps over their relations, as far as they answer: the agent must run",
	  0 },
	{ "points", KEY_POINTS, "N", 0,
	  "with --federated: entities that a step is asked from, the truest (default and at "
	  "most 1024)",
	  0 },
	{ "want", KEY_WANT, "N", 0,
	  "with --federated: so many predicted answers of each partner to a step (default 256)",
	  0 },
	{ "want-known", KEY_WANT_KNOWN, "N", 0,
	  "with --federated: so many answers that it knows (default 512)", 0 },
	{ "tell-own", KEY_TELL_OWN, NULL, 0,
	  "with --federated: ask over relations of this graph also partners that are not known to "
	  "have them, who learn these names",
	  0 },
	{ "patience", KEY_PATIENCE, "SECONDS", 0,
	  "with --federated: so long for an answer (default 10)", 0 },
	{ "top", 'k', "N", 0, "so many answers, or fewer by LIMIT (default 10)", 0 },
	{ "beam", KEY_BEAM, "N", 0,
	  "entities of a variable that edges are predicted from (default 64; 0: all)", 0 },
	{ "norm", KEY_NORM, "WORD", 0, "what AND makes of two truths: product (default) or min",
	  0 },
	{ "known", KEY_KNOWN, "WORD", 0,
	  "triples that count as true: all (the default), train+valid, train (the default with "
	  "--evaluate) or none",
	  0 },
	{ "truth", KEY_TRUTH, "WORD", 0, "from scores to truths: softmax (default) or sigmoid", 0 },
	{ "precision", KEY_PRECISION, "WORD", 0,
	  "of products in search: float32 (default) or bfloat16, off by some thousandth "
	  "(processors with "
	  "AVX-512 BF16; no effect elsewhere)",
	  0 },
	{ "threads", KEY_THREADS, "N", 0, "(default: train.threads)", 0 },
	{ "cache", KEY_CACHE, "MIB", 0, "memory for truths that were looked up (default 256)", 0 },
	{ "limit", KEY_LIMIT, "N", 0,
	  "with --batch: at most so many queries of each type, the first ones", 0 },
	{ "skip-unknown", KEY_SKIP_UNKNOWN, NULL, 0,
	  "with --batch: leave out, and count, queries with an entity or relation that this graph "
	  "does not have",
	  0 },
	{ "checkpoint", 'c', "STATE", 0, "a saved state, by its number or name (default: the best)",
	  0 },
	{ 0 },
};

static error_t parse_number(struct query_command *o, int key, const char *arg,
			    const struct argp_state *state)
{
	switch (key) {
	case 'k':
		o->top = cli_count(state, arg, "--top", 1, 1000000);
		return 0;
	case KEY_BEAM:
		o->beam = cli_count(state, arg, "--beam", 0, UINT32_MAX);
		return 0;
	case KEY_THREADS:
		o->threads = cli_count(state, arg, "--threads", 1, PARALLEL_MAX);
		return 0;
	case KEY_CACHE:
		o->cache_mb = cli_count(state, arg, "--cache", 0, 1 << 20);
		return 0;
	case KEY_POINTS:
		o->points = cli_count(state, arg, "--points", 1, AGENT_POINTS_MAX);
		return 0;
	case KEY_WANT_KNOWN:
		o->want_known = cli_count(state, arg, "--want-known", 0, AGENT_POINTS_MAX);
		return 0;
	case KEY_WANT:
		o->want = cli_count(state, arg, "--want", 1, AGENT_POINTS_MAX);
		return 0;
	case KEY_HOLDERS:
		o->holders = cli_count(state, arg, "--holders", 2, FED_MEMBERS_MAX);
		return 0;
	case KEY_PATIENCE:
		o->patience_s = cli_number(state, arg, "--patience", 0.1, 50);
		return 0;
	case KEY_LIMIT:
		o->limit = cli_count(state, arg, "--limit", 1, UINT32_MAX);
		return 0;
	case 'c':
		o->checkpoint = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_word(struct query_command *o, int key, const char *arg,
			  const struct argp_state *state)
{
	switch (key) {
	case KEY_SPLIT:
		o->split = (enum graph_split)(GRAPH_VALID +
					      cli_word(state, arg, "--split", split_words));
		return 0;
	case KEY_KNOWN:
		o->known = cli_word(state, arg, "--known", kge_filter_words);
		return 0;
	case KEY_TRUTH:
		o->truth =
			(enum query_truth_kind)cli_word(state, arg, "--truth", query_truth_words);
		return 0;
	case KEY_PRECISION:
		o->rounded = cli_word(state, arg, "--precision", query_precision_words) == 1;
		return 0;
	case KEY_FORMAT:
		o->format = cli_word(state, arg, "--format", rdf_out_words);
		return 0;
	case KEY_NORM:
		o->norm = (enum query_norm)cli_word(state, arg, "--norm", query_norm_words);
		return 0;
	default:
		return parse_number(o, key, arg, state);
	}
}

static uint32_t given_bit(int key)
{
	if (key == 'c')
		key = KEY_LAST;
	return key >= KEY_BATCH && key <= KEY_LAST ? UINT32_C(1) << (key - KEY_BATCH) : 0;
}

/* An encoder has a score for each entity, the triples have none, and neither has a use for what
 * search goes by. */
static void check_search(const struct query_command *o, const struct argp_state *state)
{
	const bool encoder = o->encoder != NULL, exact = o->exact;
	const struct {
		int key;
		bool idle;
		const char *word;
	} of_search[] = {
		{ KEY_BEAM, encoder || exact, "--beam" },
		{ KEY_NORM, encoder || exact, "--norm" },
		{ KEY_KNOWN, encoder, "--known" },
		{ KEY_TRUTH, encoder || exact, "--truth" },
		{ KEY_CACHE, encoder || exact, "--cache" },
		{ KEY_PRECISION, encoder || exact, "--precision" },
		{ KEY_THREADS, exact, "--threads" },
		{ 'c', encoder || exact, "-c" },
	};

	for (size_t i = 0; i < sizeof(of_search) / sizeof(of_search[0]); i++)
		if (of_search[i].idle && (o->given & given_bit(of_search[i].key)) != 0)
			argp_error(state, "%s goes with search, not with %s", of_search[i].word,
				   encoder ? "--encoder" : "--exact");
}

/* An option that would say nothing is rarely what was meant. */
static void check_companions(const struct query_command *o, const struct argp_state *state)
{
	const bool search = o->federated && o->encoder == NULL;
	const struct {
		int key;
		bool goes;
		const char *says;
	} rules[] = {
		{ KEY_LIMIT, o->batch != NULL, "--limit goes with --batch (of answers: --top)" },
		{ KEY_SPLIT, o->evaluate, "--split goes with --evaluate" },
		{ KEY_SKIP_UNKNOWN, o->batch != NULL && !o->federated,
		  "--skip-unknown goes with --batch, and no --federated" },
		{ KEY_POINTS, search, "--points goes with --federated, and no --encoder" },
		{ KEY_WANT, search, "--want goes with --federated, and no --encoder" },
		{ KEY_WANT_KNOWN, search, "--want-known goes with --federated, and no --encoder" },
		{ KEY_TELL_OWN, search, "--tell-own goes with --federated, and no --encoder" },
		{ KEY_PATIENCE, o->federated, "--patience goes with --federated" },
		{ KEY_HOLDERS, o->federated && o->encoder != NULL,
		  "--holders goes with --federated --encoder" },
	};

	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
		if (!rules[i].goes && (o->given & given_bit(rules[i].key)) != 0)
			argp_error(state, "%s", rules[i].says);
}

static error_t parse_end(struct query_command *o, const struct argp_state *state)
{
	if ((o->text != NULL) + (o->file != NULL) + (o->batch != NULL) != 1)
		argp_error(state, "a query is wanted, or -f and its file, or --batch");
	if (o->evaluate && o->batch == NULL)
		argp_error(state, "--evaluate goes with --batch");
	if (o->encoder != NULL && !o->evaluate && !o->federated)
		argp_error(state, "--encoder goes with --evaluate, or --federated");
	if (o->encoder != NULL && !o->evaluate &&
	    (o->batch != NULL || o->explain || o->format >= 0))
		argp_error(state, "an encoder answers one query, or ranks those of --batch with "
				  "--evaluate, and explains nothing");
	if (o->evaluate && o->explain)
		argp_error(state, "--evaluate shows figures, not answers: leave out --explain");
	if (o->federated && o->exact)
		argp_error(state, "--federated is a search: leave out --exact");
	if (o->format >= 0 && (o->exact || o->evaluate))
		argp_error(state,
			   "--format writes what is predicted: leave out --exact, --evaluate");
	if (o->exact && (o->batch != NULL || o->explain))
		argp_error(state, "--exact goes with one query, and needs no --explain");
	if (o->evaluate && o->known >= 0 && (kge_filter_bits[o->known] & 1u << o->split) != 0)
		argp_error(state, "--known %s has the triples of %s, which --evaluate asks for",
			   kge_filter_words[o->known], graph_split_words[o->split]);
	check_companions(o, state);
	check_search(o, state);
	if ((o->given & given_bit(KEY_TELL_OWN)) != 0)
		o->federated = QUERY_TELLS;
	return 0;
}

static error_t parse_query(int key, char *arg, struct argp_state *state)
{
	struct query_command *o = state->input;

	o->given |= given_bit(key);
	switch (key) {
	case 'f':
		o->file = arg;
		return 0;
	case KEY_BATCH:
		o->batch = strcmp(arg, "-") == 0 ? "/dev/stdin" : arg;
		return 0;
	case KEY_ENCODER:
		o->encoder = arg;
		return 0;
	case KEY_EXACT:
		o->exact = true;
		return 0;
	case KEY_FEDERATED:
		o->federated = QUERY_ASKS;
		return 0;
	case KEY_EVALUATE:
		o->evaluate = true;
		return 0;
	case KEY_EXPLAIN:
		o->explain = true;
		return 0;
	case KEY_SKIP_UNKNOWN:
		o->skip_unknown = true;
		return 0;
	case KEY_TELL_OWN:
		return 0; /* parse_end() */
	case ARGP_KEY_ARG:
		if (o->text != NULL)
			return ARGP_ERR_UNKNOWN;
		o->text = arg;
		return 0;
	case ARGP_KEY_END:
		return parse_end(o, state);
	default:
		return parse_word(o, key, arg, state);
	}
}

static const char *const query_doc =
	"Answer questions over several steps, by the triples and by what the embeddings predict. "
	"QUERY is SPARQL: SELECT of one variable, edges without a cycle that end in names, paths "
	"with ^ and /, UNION, FILTER NOT EXISTS, PREFIX, LIMIT.\v"
	"<name> is a name as the graph has it; \"text\" an entity with blanks in it, <a\\u0020b> "
	"a relation. What is not "
	"answered "
	"is refused with line and column.\n\n"
	"An answer's truth is that of the best way to it: 1 for a triple that is known, else what "
	"the tables say, by a scale fitted on valid.  Without tables, known triples alone "
	"answer. Who is asked from is no answer to a single step, unless train has a loop of the "
	"relation.\n\n"
	"A line of --batch is a query of a type that the literature knows (1p 2p 3p 2i 3i ip pi 2u "
	"up, and 2in 3in inp pin pni with negation):\n\n"
	"  {\"type\":\"2p\",\"anchors\":[\"gene7\"],\"relations\":[[\"causes\",\"^treats\"]],"
	"\"hard\":[\"aspirin\"]}\n\n"
	"hard, the answers that --evaluate ranks, may be missing without it. Then a line that is "
	"no "
	"query is said, the others are answered, and the status is 4; --evaluate says the first 20 "
	"such lines and ranks nothing.\n\n"
	"Examples:\n"
	"  fkge query 'SELECT ?drug { ?drug <treats> ?illness . <gene7> <causes> "
	"?illness }'\n"
	"  fkge query 'SELECT ?d { <gene7> <causes>/^<treats> ?d }' --explain\n"
	"  fkge query -f question.rq --json\n"
	"  fkge query --federated --explain 'SELECT ?d { <gene7> <causes>/^<treats> ?d }'\n"
	"  fkge query --batch queries-test.jsonl --evaluate --threads 2\n"
	"  fkge query --federated --batch cross.jsonl --evaluate --json\n"
	"  fkge query --federated --encoder encoder.rounds 'SELECT ?d { <gene7> <causes>/^<treats> "
	"?d }'";

/* What steps are asked from leaves.  Under train.dp it follows from private tables alone, not from
 * known edges, nor by a scale that valid has fitted; where rows leave with noise, or are charged
 * otherwise, nothing covers it. */
static int keep_private(struct cli *cli, const struct config *c, struct query_command *o,
			struct err *e)
{
	bool charged = config_rows_charged(c);

	if (!o->federated || !(charged || c->train.kge.dp.epsilon > 0))
		return 0;
	if (charged)
		return err_set(
			e, ERR_USAGE,
			"--federated does not go with privacy.noisy_rows, nor with "
			"federation.roles host and translator ppat or map: what partners are "
			"asked from would leave without noise, and nothing charges for it");
	if (o->encoder != NULL)
		return err_set(e, ERR_USAGE,
			       "--federated --encoder does not go with train.dp: encoders train "
			       "without noise, and a question is made of their rows");
	if (o->known > 0)
		return err_set(e, ERR_USAGE,
			       "--known %s does not go with --federated and train.dp: edges of the "
			       "graph would leave; say none, or leave it out",
			       kge_filter_words[o->known]);
	o->known = 0;
	assert(strcmp(kge_filter_words[0], "none") == 0);
	o->private_asking = true;
	lab_note(&cli->notes, "train.dp: partners are asked by private tables alone, without known "
			      "edges and without a scale by valid\n");
	return 0;
}

/* Tables where they are wanted: without any, a query goes by the triples. */
static int load_tables(struct cli *cli, struct work *w, struct query_command *o, struct err *e)
{
	int rc = o->exact || o->encoder != NULL ? 0 : lab_work_load_state(w, o->checkpoint, e);

	if (rc == ERR_NOTFOUND && o->checkpoint == NULL && o->batch == NULL && !o->explain &&
	    o->format < 0 && !o->federated) {
		lab_note(&cli->notes, "Nothing is trained yet: known triples alone answer\n");
		o->exact = true;
		rc = 0;
	}
	if (o->threads == 0)
		o->threads = w->folder.config.train.kge.threads;
	o->own_name = w->folder.config.name;
	if (rc == 0 && o->private_asking && strcmp(w->info.protocol, CONFIG_SCORE_PRIVATE) != 0)
		return err_set(e, ERR_USAGE,
			       "state %" PRIu64 " was trained without train.dp: partners are asked "
			       "by private tables alone",
			       w->info.id);
	return rc;
}

static int answer_by_encoder(struct cli *cli, struct work *w, const struct query_command *o,
			     struct err *e)
{
	struct query_encoded *x;
	struct query_sparql q;
	int rc = query_encoded_new(&x, cli, w, o, e);

	if (rc == 0)
		rc = query_text_read(w, o, &q, e);
	if (rc == 0) {
		query_text_put(cli, w, &q, false);
		query_encoded_widen(x);
		rc = query_encoded_show(x, &q, e);
	}
	query_encoded_free(x);
	return rc;
}

static int answer_text(struct cli *cli, struct work *w, struct query_command *o, struct err *e)
{
	struct query_sparql q;
	int rc;

	if (o->encoder != NULL)
		return answer_by_encoder(cli, w, o, e);
	rc = load_tables(cli, w, o, e); /* before relations of partners come to ours */
	if (rc == 0)
		rc = query_text_read(w, o, &q, e);
	if (rc != 0)
		return rc;
	query_text_put(cli, w, &q, o->format >= 0);
	if (!o->exact)
		return query_search_show(cli, w, o, &q, e);
	query_exact_show(cli, w, o, &q);
	return 0;
}

int cmd_query(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct query_command o = { .split = GRAPH_TEST,
				   .known = -1,
				   .format = -1,
				   .beam = 64,
				   .cache_mb = 256,
				   .points = QUERY_POINTS,
				   .want_known = QUERY_WANT_KNOWN,
				   .want = QUERY_WANT,
				   .holders = 3,
				   .patience_s = 10 };
	const struct cli_syntax s = {
		.options = query_options,
		.parse = parse_query,
		.args = "[QUERY]",
		.doc = query_doc,
		.input = &o,
	};
	struct work w;
	int rc;

	cli_parse(cli, &s, argc, argv);
	if (o.format >= 0 && cli->json)
		return err_set(e, ERR_USAGE, "--format is RDF, --json is not: leave out one");
	rc = lab_work_open(&w, cli->folder, FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = lab_work_load_words(&w, e);
	if (rc == 0 && o.format >= 0)
		rc = rdf_out_check(&w, e);
	if (rc == 0)
		rc = keep_private(cli, &w.folder.config, &o, e);
	if (rc == 0 && o.batch == NULL) {
		rc = answer_text(cli, &w, &o, e);
	} else if (rc == 0) {
		rc = load_tables(cli, &w, &o, e);
		if (rc == 0)
			rc = query_batch(cli, &w, &o, e);
	}
	lab_work_close(&w);
	return rc;
}
