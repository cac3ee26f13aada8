/* cli/queries_train.c - queries train: an encoder of queries, trained on this agent's graph. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/encoder_options.h"
#include "cli/place.h"
#include "lab/encoders.h"
#include "lab/saved.h"
#include "lab/work.h"

struct train_command {
	const char *output, *queries, *valid;
	struct encoder_options e;
	uint64_t steps, eval_every;
	bool fresh;
};

enum {
	KEY_QUERIES = 0x5000,
	KEY_VALID,
	KEY_STEPS,
	KEY_EVAL_EVERY,
	KEY_FRESH,
};

static const struct argp_option train_options[] = {
	ENCODER_OPTIONS("10000", "100", "5"){ "output", 'o', "FILE", 0,
					      "(default: encoder in the agent's folder)", 0 },
	{ "queries", KEY_QUERIES, "FILE", 0, "train queries (default: drawn from train)", 0 },
	{ "valid", KEY_VALID, "FILE", 0, "valid queries (default: drawn from valid)", 0 },
	{ "steps", KEY_STEPS, "N", 0, "at most (default 10000)", 0 },
	{ "eval-every", KEY_EVAL_EVERY, "N", 0, "steps to a look at valid (default 500)", 0 },
	{ "fresh", KEY_FRESH, NULL, 0, "begin anew instead of going on", 0 },
	{ 0 },
};

static error_t parse_encoder(int key, char *arg, struct argp_state *state)
{
	struct train_command *o = state->input;

	switch (key) {
	case 'o':
		o->output = arg;
		return 0;
	case KEY_QUERIES:
		o->queries = arg;
		return 0;
	case KEY_VALID:
		o->valid = arg;
		return 0;
	case KEY_STEPS:
		o->steps = cli_count(state, arg, "--steps", 1, INT64_MAX);
		return 0;
	case KEY_EVAL_EVERY:
		o->eval_every = cli_count(state, arg, "--eval-every", 1, UINT32_MAX);
		return 0;
	case KEY_FRESH:
		o->fresh = true;
		return 0;
	default:
		return encoder_options_parse(&o->e, key, arg, state);
	}
}

/* ---- one training ---- */

struct training {
	struct cli *cli;
	const struct train_command *o;
	struct work *w;
	char *path, *state_path;
	struct encode_corpus corpus;
	struct encode_look look;
	struct encode_model *m;
	struct encode_trainer *t;
	json_t *settings, *types; /* types: of the best look */
	double best, loss;	  /* MRR on valid, -1: none yet */
	double grid_best;	  /* of looks at multiples of eval_every, by which it stops */
	struct query_figures figures;
	uint64_t best_step, worse; /* looks in a row */
};

/* All that the bits of a training depend on, but how long it is. */
static json_t *encoder_settings(const struct training *x)
{
	const struct train_command *o = x->o;
	json_t *j = encoders_settings_json(&o->e.is, &o->e.how);
	uint8_t graph[STORE_DIGEST];

	json_object_set_new(j, "eval_every", json_integer((json_int_t)o->eval_every));
	if (o->queries == NULL) {
		json_object_set_new(j, "count", json_integer((json_int_t)o->e.count));
		json_object_set_new(j, "answers", json_integer((json_int_t)o->e.answers));
	}
	if (o->valid == NULL)
		json_object_set_new(j, "valid_count", json_integer((json_int_t)o->e.valid_count));
	store_graph_digest(x->w->graph, graph);
	json_object_set_new(j, "graph_digest", store_json_of_hex(graph, sizeof graph));
	json_object_set_new(j, "queries_digest", encoders_corpus_digest(&x->corpus));
	json_object_set_new(j, "valid_digest", encoders_look_digest(&x->look));
	return j;
}

static int load_queries(struct training *x, struct err *e)
{
	const struct train_command *o = x->o;
	const struct graph *g = x->w->graph;
	const struct encode_draw train = { ENCODE_ALL, o->e.count, o->e.answers, o->e.how.seed,
					   NULL },
				 valid = { ENCODE_ALL, o->e.valid_count, o->e.answers,
					   o->e.how.seed, NULL };
	int rc = 0;

	encode_look_open(&x->look, g, GRAPH_VALID, o->e.how.threads);
	if (o->queries != NULL)
		rc = encoders_corpus_read(&x->corpus, o->queries, g, e);
	else
		encode_corpus_sample(&x->corpus, g, &train);
	if (rc == 0 && x->corpus.n == 0)
		rc = err_set(e, ERR_INPUT, "%s: train gives no query; import a larger graph",
			     x->cli->folder);
	if (rc == 0 && o->valid != NULL)
		rc = encoders_look_read(&x->look, o->valid, g, e);
	else if (rc == 0)
		encode_look_sample(&x->look, g, GRAPH_VALID, &valid);
	if (rc == 0 && x->look.n == 0)
		rc = err_set(e, ERR_INPUT,
			     "%s: valid gives no query to stop by; import a graph "
			     "with valid triples",
			     x->cli->folder);
	return rc;
}

static json_t *head_json(const struct training *x)
{
	json_t *j = json_object();

	json_object_set(j, "settings", x->settings);
	json_object_set_new(j, "queries", json_integer((json_int_t)x->corpus.n));
	json_object_set_new(j, "valid_queries", json_integer((json_int_t)x->look.n));
	json_object_set_new(j, "best_step", json_integer((json_int_t)x->best_step));
	json_object_set_new(j, "valid", encoders_figures_json(&x->figures));
	json_object_set(j, "types", x->types);
	return j;
}

static void put_steps(void *ctx, void (*put)(void *to, const void *bytes, size_t n), void *to)
{
	encode_trainer_save(ctx, put, to);
}

static int write_state(const struct training *x, struct err *e)
{
	json_t *head = head_json(x);
	int rc;

	json_object_set_new(head, "worse", json_integer((json_int_t)x->worse));
	json_object_set_new(head, "grid_best", json_real(x->grid_best));
	rc = saved_write_body(".", x->state_path, head, put_steps, x->t, e);
	json_decref(head);
	return rc;
}

static int write_best(const struct training *x, struct err *e)
{
	json_t *head = head_json(x);
	int rc = encoders_write(x->path, x->m, x->w->graph, head, e);

	json_decref(head);
	return rc;
}

static uint64_t count_in(const json_t *head, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(head, key));
}

static double figure_in(const json_t *head, const char *key)
{
	return json_number_value(json_object_get(json_object_get(head, "valid"), key));
}

static int take_up(struct training *x, const struct saved *s, struct err *e)
{
	size_t n;
	const uint8_t *at = saved_body(s, &n);

	if (!json_equal(json_object_get(s->head, "settings"), x->settings))
		return err_set(e, ERR_USAGE,
			       "%s: begun with other settings or queries; say the same, or --fresh",
			       x->state_path);
	if (encode_trainer_load(x->t, at, n, e) != 0)
		return err_prefix(e, "%s", x->state_path);
	x->worse = count_in(s->head, "worse");
	x->grid_best = json_number_value(json_object_get(s->head, "grid_best"));
	x->best_step = count_in(s->head, "best_step");
	x->figures =
		(struct query_figures){ figure_in(s->head, "mrr"), figure_in(s->head, "hits1"),
					figure_in(s->head, "hits3"), figure_in(s->head, "hits10") };
	x->best = x->figures.mrr;
	x->types = json_deep_copy(json_object_get(s->head, "types"));
	lab_note(&x->cli->notes, "Going on from step %llu\n",
		 (unsigned long long)encode_trainer_done(x->t));
	return 0;
}

/* The result takes the place of no file but an encoder, and of a finished one only with --fresh. */
static int check_encoder_file(const struct training *x, struct err *e)
{
	static const struct place_kind result = { "encoder", "fkgerun1" },
				       state = { "state of a training", "fkgerun1" };
	struct saved s;
	int rc = cli_check_place(x->path, &result, e);

	if (rc == 0 && x->o->fresh)
		rc = cli_check_place(x->state_path, &state, e);
	if (rc != 0 || !file_exists(x->path))
		return rc;
	if (saved_open(&s, x->path, NULL) != 0)
		return err_set(
			e, ERR_EXISTS,
			"%s is there and is no encoder, so it stays: name another file by -o",
			x->path);
	saved_close(&s);
	if (x->o->fresh || file_exists(x->state_path))
		return 0;
	return err_set(e, ERR_EXISTS,
		       "%s is there, and no %s to go on from: --fresh puts another encoder in its "
		       "place, -o names another file",
		       x->path, x->state_path);
}

static int begin_encoder(struct training *x, struct err *e)
{
	const struct graph *g = x->w->graph;
	int rc = check_encoder_file(x, e);
	struct saved s;
	struct rng r;

	if (rc != 0)
		return rc;
	rng_seed(&r, x->o->e.how.seed);
	x->m = encode_model_new(&x->o->e.is, graph_vocab_count(g->entities),
				graph_vocab_count(g->relations), &r);
	x->t = encode_trainer_new(x->m, &x->corpus, &x->o->e.how);
	x->best = x->grid_best = -1;
	if (x->o->fresh || !file_exists(x->state_path))
		return 0;
	rc = saved_open(&s, x->state_path, e);
	if (rc == 0) {
		rc = take_up(x, &s, e);
		saved_close(&s);
	}
	return rc;
}

/* The last look of a training may be between two multiples of eval_every: it may find the best, but
 * whoever goes on with more steps stops as one who had them from the beginning. */
static void count_look(struct training *x, double mrr)
{
	if (encode_trainer_done(x->t) % x->o->eval_every != 0)
		return;
	x->worse = mrr > x->grid_best ? 0 : x->worse + 1;
	if (mrr > x->grid_best)
		x->grid_best = mrr;
}

static int look_at_valid(struct training *x, struct err *e)
{
	json_t *types;
	struct query_figures f = encoders_look_run(&x->look, x->m, &types);
	int rc = 0;

	lab_note(&x->cli->notes, "%8llu  %8.4f  %.4f  %.4f  %.4f  %.4f%s\n",
		 (unsigned long long)encode_trainer_done(x->t), x->loss, f.mrr, f.hits1, f.hits3,
		 f.hits10, f.mrr > x->best ? "  best" : "");
	count_look(x, f.mrr);
	if (f.mrr > x->best) {
		x->best = f.mrr;
		x->best_step = encode_trainer_done(x->t);
		x->figures = f;
		json_decref(x->types);
		x->types = json_incref(types);
		rc = write_best(x, e);
	}
	json_decref(types);
	return rc == 0 ? write_state(x, e) : rc;
}

static bool is_patient(const struct training *x)
{
	return x->o->e.patience == 0 || x->worse < x->o->e.patience;
}

static int run_steps(struct training *x, struct err *e)
{
	int rc = 0;

	lab_note(&x->cli->notes, "    step      loss  MRR     Hits@1  Hits@3  Hits@10  on valid\n");
	while (rc == 0 && encode_trainer_done(x->t) < x->o->steps && is_patient(x)) {
		uint64_t done = encode_trainer_done(x->t), left = x->o->steps - done,
			 n = x->o->eval_every - done % x->o->eval_every;

		n = n < left ? n : left;
		x->loss = encode_trainer_run(x->t, n);
		if (!isfinite(x->loss))
			return err_set(e, ERR_FAIL,
				       "training diverged before step %llu; lower --lr",
				       (unsigned long long)encode_trainer_done(x->t));
		rc = look_at_valid(x, e);
	}
	return rc;
}

static void put_encoder_best(const struct training *x)
{
	struct cli *cli = x->cli;

	cli_put(cli, "settings", json_incref(x->settings));
	cli_put_text(cli, "file", x->path);
	cli_put_count(cli, "queries", x->corpus.n);
	cli_put_count(cli, "valid_queries", x->look.n);
	cli_put_count(cli, "steps", encode_trainer_done(x->t));
	cli_put_count(cli, "best_step", x->best_step);
	cli_put(cli, "valid", encoders_figures_json(&x->figures));
	cli_put(cli, "types", json_incref(x->types));
	cli_put(cli, "protocol",
		json_pack("{s:s, s:s, s:[s,s], s:s, s:s, s:s}", "split", "valid", "answers", "hard",
			  "filter", "train", "valid", "candidates", "all", "ties", "realistic",
			  "mean", "answers, queries, types"));
	cli_say(cli, "The best, of step %llu, is in %s: valid MRR %.4f\n",
		(unsigned long long)x->best_step, x->path, x->figures.mrr);
}

static void encoder_release(struct training *x)
{
	encode_trainer_free(x->t);
	encode_model_free(x->m);
	encode_corpus_release(&x->corpus);
	encode_look_release(&x->look);
	json_decref(x->settings);
	json_decref(x->types);
	free(x->path);
	free(x->state_path);
}

static int train_encoder(struct cli *cli, struct work *w, const struct train_command *o,
			 struct err *e)
{
	struct training x = { .cli = cli, .o = o, .w = w };
	int rc;

	x.path = o->output != NULL ? mem_strdup(o->output) : file_join(cli->folder, FOLDER_ENCODER);
	x.state_path = mem_printf("%s.state", x.path);
	rc = load_queries(&x, e);
	if (rc == 0) {
		x.settings = encoder_settings(&x);
		rc = begin_encoder(&x, e);
	}
	if (rc == 0)
		rc = run_steps(&x, e);
	if (rc == 0)
		put_encoder_best(&x);
	encoder_release(&x);
	return rc;
}

int cmd_queries_train(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct train_command o = {
		.e = encoder_options_default,
		.steps = 10000,
		.eval_every = 500,
	};
	const struct cli_syntax s = {
		.options = train_options,
		.parse = parse_encoder,
		.doc = "Train an encoder of queries on this agent's graph: GQE, Query2Particles or "
		       "a tree-LSTM, for `query --batch FILE --evaluate --encoder`. Queries are "
		       "those of the nine types without negation.\v"
		       "The state best on valid is kept in FILE; FILE.state is what the same "
		       "command goes on from, with the same bits, after an interruption or with "
		       "more --steps.\n\n"
		       "Examples:\n  fkge queries train -e q2p\n"
		       "  fkge queries train -e gqe --queries train.jsonl --valid valid.jsonl",
		.input = &o,
	};
	struct work w;
	int rc;

	o.e.count = 10000;
	o.e.valid_count = 100;
	o.e.patience = 5;
	cli_parse(cli, &s, argc, argv);
	rc = lab_work_open(&w, cli->folder, FOLDER_READ | FOLDER_FILES, e);
	if (rc != 0)
		return rc;
	if (o.e.how.threads == 0)
		o.e.how.threads = w.folder.config.train.kge.threads;
	rc = train_encoder(cli, &w, &o, e);
	lab_work_close(&w);
	return rc;
}
