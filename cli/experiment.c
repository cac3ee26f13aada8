/* cli/experiment.c - experiment: methods beside each other on one data set, with many seeds. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/file.h"
#include "base/mem.h"
#include "cli/commands.h"
#include "cli/graphs.h"
#include "lab/experiment.h"
#include "lab/work.h"

enum { ONLY_MAX = 32 };

struct experiment_options {
	const char *file, *out, *only[ONLY_MAX];
	size_t n_only;
	uint64_t seed; /* 0: all */
	uint32_t until, rounds;
	bool methods, show;
};

static const struct argp_option experiment_options[] = {
	{ "out", 'o', "DIR", 0,
	  "where runs and tables are kept (default: the file's name without "
	  ".yaml, here)",
	  0 },
	{ "only", 'k', "VARIANT", 0, "run this variant alone; may be given more than once", 0 },
	{ "seed", 's', "N", 0, "run this seed of the file alone", 0 },
	{ "show", 'w', NULL, 0, "run nothing; write the tables from what is there", 0 },
	{ "until", 'u', "ROUND", 0,
	  "stop each run at its first validation from this round on; without it, it goes on", 0 },
	{ "rounds", 'r', "N", 0,
	  "so many rounds, whatever the file says; a run that has had fewer goes on, and a later "
	  "command with a larger N goes on from there, but begins anew where the last round had to "
	  "decide about a copy that trains alone (weight: valid)",
	  0 },
	{ "methods", 'm', NULL, 0, "list the methods and their constants", 0 },
	{ 0 },
};

static error_t parse_experiment(int key, char *arg, struct argp_state *state)
{
	struct experiment_options *o = state->input;

	switch (key) {
	case 'o':
		o->out = arg;
		return 0;
	case 'k':
		if (o->n_only == ONLY_MAX)
			argp_error(state, "--only: at most %d", ONLY_MAX);
		o->only[o->n_only++] = arg;
		return 0;
	case 's':
		o->seed = cli_count(state, arg, "--seed", 1, UINT64_C(1) << 53);
		return 0;
	case 'u':
		o->until = (uint32_t)cli_count(state, arg, "--until", 1, 1000000);
		return 0;
	case 'r':
		o->rounds = (uint32_t)cli_count(state, arg, "--rounds", 1, 1000000);
		return 0;
	case 'w':
		o->show = true;
		return 0;
	case 'm':
		o->methods = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->file != NULL)
			return ARGP_ERR_UNKNOWN;
		o->file = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->file == NULL && !o->methods)
			argp_usage(state);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void list_methods(struct cli *cli)
{
	json_t *all = json_array();

	for (size_t i = 0; fed_methods[i] != NULL; i++) {
		const struct fed_method *m = fed_methods[i];
		json_t *constants;

		if (m->beside) /* links say nothing of it: lab/experiment_file.c */
			continue;
		constants = json_object();
		cli_say(cli, "%-10s %s%s\n", m->name, m->title,
			m->home == NULL ? " (only needs sums)" : "");
		for (size_t k = 0; k < FED_VALUES_MAX && m->constant[k].key != NULL; k++) {
			cli_say(cli, "           %s = %g: %s\n", m->constant[k].key,
				m->constant[k].byword, m->constant[k].help);
			json_object_set_new(constants, m->constant[k].key,
					    store_json_of_number(m->constant[k].byword));
		}
		json_array_append_new(all, json_pack("{s:s, s:s, s:o}", "name", m->name, "title",
						     m->title, "constants", constants));
	}
	cli_put(cli, "methods", all);
}

static bool is_wanted(const struct experiment_options *o, const struct exp_variant *v,
		      uint64_t seed)
{
	bool named = o->n_only == 0;

	for (size_t i = 0; i < o->n_only; i++)
		named = named || strcmp(o->only[i], v->name) == 0;
	return named && (o->seed == 0 || o->seed == seed);
}

static bool is_there(const struct experiment *x, const struct exp_variant *v, const char *out,
		     uint64_t seed)
{
	char *path = experiment_state_path(out, v, seed);
	bool there = !experiment_is_unlearned(x, v) || file_exists(path);

	free(path);
	return there;
}

/* Finished, with the settings and data of now, and the tables there if they are needed; others are
 * run again. */
static bool is_done(const struct experiment *x, const struct exp_variant *v, const char *out,
		    uint64_t seed)
{
	char *path = experiment_record_path(out, v, seed);
	json_t *record = json_load_file(path, 0, NULL);
	bool done =
		record != NULL && experiment_is_of_now(x, v, record) && is_there(x, v, out, seed);

	json_decref(record);
	free(path);
	return done;
}

static int write_record(const char *path, const json_t *record, struct err *e)
{
	char *text = json_dumps(record, JSON_INDENT(1) | JSON_PRESERVE_ORDER);
	int rc = file_write_atomic(path, text, strlen(text), 0644, e);

	free(text);
	return rc;
}

/* A finished run's tables are of no use, but to a variant that unlearns them. */
static void drop_state(const struct experiment *x, const struct exp_variant *v, const char *out,
		       uint64_t seed)
{
	char *path = experiment_state_path(out, v, seed);

	if (!experiment_keeps_state(x, v))
		unlink(path);
	free(path);
}

static double mrr_of(const json_t *record, const char *of)
{
	return json_number_value(json_object_get(json_object_get(record, of), "mrr"));
}

static void note_finished(const struct cli *cli, const struct exp_variant *v, uint64_t seed,
			  const json_t *record)
{
	const json_t *queries = json_object_get(record, "queries");
	long long best = json_integer_value(json_object_get(record, "best_round"));
	double seconds = json_number_value(json_object_get(record, "seconds"));

	lab_note(&cli->notes, "%s, seed %llu: best at round %lld, %s %.4f, %.0f s\n", v->name,
		 (unsigned long long)seed, best,
		 queries != NULL ? "MRR of in-graph queries" : "test MRR",
		 queries != NULL ? mrr_of(queries, "in_graph") : mrr_of(record, "test"), seconds);
}

static int finish_run(struct cli *cli, const struct experiment *x, const struct exp_variant *v,
		      uint64_t seed, const char *out, const json_t *record, struct err *e)
{
	char *path = experiment_record_path(out, v, seed);
	int rc = write_record(path, record, e);

	free(path);
	if (rc != 0)
		return rc;
	drop_state(x, v, out, seed);
	experiment_remove_agents(out, v, seed);
	note_finished(cli, v, seed, record);
	return 0;
}

/* A variant that unlearns waits for the variant that learns. */
static bool can_begin(const struct experiment *x, const struct exp_variant *v, const char *out,
		      uint64_t seed)
{
	return v->kind != EXP_UNLEARN || x->until == 0 ||
	       is_done(x, experiment_find(x, v->unlearn), out, seed);
}

static int run_one(struct cli *cli, const struct experiment *x, const struct exp_variant *v,
		   uint64_t seed, const char *out, const atomic_bool *cancel, struct err *e)
{
	json_t *record = NULL;
	struct err why = { 0 };
	int rc;

	if (is_done(x, v, out, seed) || !can_begin(x, v, out, seed))
		return 0;
	rc = experiment_run(&cli->notes, x, v, seed, out, cancel, &record, &why);
	if (rc != 0)
		err_set(e, rc, "variant %s, seed %llu: %s", v->name, (unsigned long long)seed,
			why.text);
	else if (record != NULL)
		rc = finish_run(cli, x, v, seed, out, record, e);
	else
		lab_note(&cli->notes, "%s, seed %llu: stopped by --until; without it, it %s\n",
			 v->name, (unsigned long long)seed,
			 v->kind == EXP_PAIRS && !v->processes ? "begins again" : "goes on");
	json_decref(record);
	return rc;
}

static int check_wanted(const struct experiment_options *o, const struct experiment *x,
			struct err *e)
{
	bool seed = o->seed == 0;

	if (x->published[0] != '\0' && !file_exists(x->published))
		return err_set(e, ERR_NOFILE, "%s: no such file (experiment.published)",
			       x->published);
	for (size_t k = 0; k < x->n_seeds; k++)
		seed = seed || x->seeds[k] == o->seed;
	if (!seed)
		return err_set(e, ERR_USAGE, "--seed %llu: not a seed of %s",
			       (unsigned long long)o->seed, o->file);
	for (size_t i = 0; i < o->n_only; i++) {
		size_t v = 0;

		while (v < x->n && strcmp(x->at[v].name, o->only[i]) != 0)
			v++;
		if (v == x->n)
			return err_set(e, ERR_USAGE, "--only %s: no such variant in %s", o->only[i],
				       o->file);
	}
	return 0;
}

/* Seed by seed, so that an interrupted experiment has rows that compare. */
static int run_all(struct cli *cli, const struct experiment_options *o, const struct experiment *x,
		   const char *out, struct err *e)
{
	atomic_bool cancel = false;
	int rc = 0;

	lab_work_watch_interrupts(&cancel);
	for (size_t k = 0; k < x->n_seeds && rc == 0; k++)
		for (size_t v = 0; v < x->n && rc == 0; v++)
			if (is_wanted(o, &x->at[v], x->seeds[k]))
				rc = run_one(cli, x, &x->at[v], x->seeds[k], out, &cancel, e);
	return rc;
}

/* The reports of a folder without runs are not ours to replace. */
static int make_folders(const char *out, struct err *e)
{
	static const char *const made[] = { "report.md", "results.csv", "curves.svg", NULL };
	char *runs = file_join(out, "runs");
	int rc = file_exists(runs) ? 0 : cli_refuse_mixing(out, made, "a report", e);

	if (rc == 0)
		rc = file_make_folder(runs, 0755, e);

	free(runs);
	return rc;
}

static char *default_out(const char *file)
{
	const char *slash = strrchr(file, '/');
	char *out = mem_strdup(slash != NULL ? slash + 1 : file), *dot = strrchr(out, '.');

	if (dot != NULL && dot != out)
		*dot = '\0';
	return out;
}

static json_t *run_json(const struct exp_variant *v, uint64_t seed, const json_t *record)
{
	static const char *const keys[] = { "best_round", "best_valid_mrr", "kept_valid_mrr",
					    "test",	  "bytes",	    "queries" };
	json_t *j = json_pack("{s:s, s:I}", "variant", v->name, "seed", (json_int_t)seed);

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		if (json_object_get(record, keys[i]) != NULL)
			json_object_set(j, keys[i], json_object_get(record, keys[i]));
	return j;
}

/* For programs: what is there, with the settings of now. */
static void put_runs(struct cli *cli, const struct experiment *x, const char *out)
{
	json_t *runs = json_array();

	for (size_t i = 0; i < x->n * x->n_seeds; i++) {
		const struct exp_variant *v = &x->at[i / x->n_seeds];
		uint64_t seed = x->seeds[i % x->n_seeds];
		char *path = experiment_record_path(out, v, seed);
		json_t *record = is_done(x, v, out, seed) ? json_load_file(path, 0, NULL) : NULL;

		if (record != NULL)
			json_array_append_new(runs, run_json(v, seed, record));
		json_decref(record);
		free(path);
	}
	cli_put(cli, "runs", runs);
}

/* By which runs of other settings are not made again; free() it. */
static char *options_that_leave(const struct experiment_options *o)
{
	const char *const given[] = { o->n_only > 0 ? "--only" : NULL,
				      o->seed > 0 ? "--seed" : NULL,
				      o->until > 0 ? "--until" : NULL };
	struct buf text = { 0 };

	if (o->show)
		return mem_strdup("--show");
	buf_printf(&text, "%s", "");
	for (size_t i = 0; i < sizeof(given) / sizeof(given[0]); i++)
		if (given[i] != NULL)
			buf_printf(&text, "%s%s", text.len > 0 ? " and " : "", given[i]);
	return (char *)text.base;
}

static int experiment(struct cli *cli, const struct experiment_options *o, struct err *e)
{
	char *out = o->out != NULL ? mem_strdup(o->out) : default_out(o->file);
	char *left_by = options_that_leave(o);
	struct experiment x;
	int rc = experiment_read(&x, o->file, e);

	if (rc == 0)
		rc = check_wanted(o, &x, e);
	if (rc == 0)
		rc = make_folders(out, e);
	if (rc == 0 && !o->show) {
		experiment_note_folders(&cli->notes, &x);
		rc = experiment_digest(&x, e);
	} else if (rc == 0)
		experiment_digest_to_show(&cli->notes, &x, out);
	x.until = o->until;
	if (rc == 0 && o->rounds > 0)
		rc = experiment_set_rounds(&x, o->rounds, e);
	if (rc == 0 && !o->show)
		rc = run_all(cli, o, &x, out, e);
	if (rc == 0)
		rc = experiment_show(&cli->notes, &x, out, left_by, e);
	if (rc == 0) {
		cli_put_text(cli, "out", out);
		put_runs(cli, &x, out);
		cli_say(cli, "The tables are in %s/report.md\n", out);
	}
	experiment_release(&x);
	free(left_by);
	free(out);
	return rc;
}

static const char experiment_doc[] =
	"Run several agents with several methods on one data set, and compare.\vAll agents run "
	"in this process over a simulated network, or as processes over TCP (agents: "
	"processes).  What is finished is not run again: the same command goes on after an "
	"interruption, within a run from its last saved validation.  Example of a file (paths "
	"are relative to it):\n"
	"\n"
	"  experiment: {name: R3, data: fb15k-237-r3, seeds: [1, 2, 3],\n"
	"    rounds: 100, epochs: 3, eval_every: 5, patience: 3}\n"
	"  model: {kind: transe, dim: 256}\n"
	"  train: {lr: 1e-4, negatives: 256}\n"
	"  eval: {protocol: fedlu}\n"
	"  variants:\n"
	"    single:                    # each agent alone: the control arm\n"
	"    collective:                # all graphs in one\n"
	"    fede:\n"
	"    hosted: {method: fede, topology: hosted}\n"
	"    pairs: {federation.frame: common}\n"
	"\n"
	"`data` holds a folder an agent, as import reads them: train.tsv, valid.tsv, test.tsv.  "
	"In a variant stand a method's constants (--methods), settings of agent.yaml but eval, as "
	"train.lr, what `published` calls it, and keys of experiment of the first kind:\n"
	"\n"
	"  rounds: 100           at most\n"
	"  epochs: 3             of local training, a round\n"
	"  eval_every: 5         rounds between validations\n"
	"  patience: 3           validations without a better one, then stop; 0: never\n"
	"  keep: together        all keep the validation best by the mean; or each:\n"
	"                        every agent its own best one\n"
	"  topology: sharded     or hosted\n"
	"  min_holders: 2        what fewer agents hold does not travel\n"
	"  fraction: 1           of the agents that are in a round, others in the next\n"
	"  equal_start: true     shared rows begin the same everywhere; moved: only\n"
	"                        those that the method moves, as processes do, which\n"
	"                        know of no others\n"
	"  secret_aggregation: false\n"
	"  stall: 0.001          of fedlu: teaching waits for validations.  The\n"
	"                        table that travels is taught from the first one at\n"
	"                        which the local tables gain nothing or, after\n"
	"                        warm_up rounds, either gains no more than this; the\n"
	"                        local ones from the first at which the others gain\n"
	"                        nothing.  Without it, both from warm_up on\n"
	"  agents: simulated     or processes: each a `fkge serve` with a folder of its\n"
	"                        own, over TCP on loopback.  Then keep is each, the\n"
	"                        run goes on while one of them still looks better\n"
	"                        and proposes rounds, and an interrupted one goes on\n"
	"                        from their stores; not with stall, retained, unlearn\n"
	"  retained: false       true: trained without what is to be forgotten\n"
	"  slow: {AGENT: 10}     what it computes takes so many times as long\n"
	"  away: {AGENT: 60}     seconds that it is there, then away, in turn\n"
	"\n"
	"A section `queries`: trained encoders and search, see docs/guide/queries.md.\n"
	"\n"
	"`method: pairs`: agents meet two at a time, with settings of agent.yaml in sections "
	"federation, ppat and privacy, too (lab/README.md).  `own: {AGENT: {model.kind: "
	"distmult}}` is for one of them.  A run of pairs that is interrupted begins again.\n"
	"\n"
	"Keys of experiment alone:\n"
	"\n"
	"  name, data, seeds\n"
	"  average: queries      agents weigh by them; or triples (of train), plain\n"
	"  names: DIR            AGENT.tsv: own name, TAB, shared name\n"
	"  reference: VARIANT    by which parameters are compared\n"
	"  published: FILE.csv   figures to put beside, of its `dataset: NAME`; its\n"
	"                        columns are paper, table, dataset, clients,\n"
	"                        kge_model, method, metric (MRR, Hits@1 ...), value,\n"
	"                        unit (percent, or anything else)\n"
	"  forget: 0.01          share of each agent's train, drawn by the seed,\n"
	"                        that is to be forgotten\n"
	"\n"
	"A variant `unlearned: {unlearn: NAME}` takes the tables of the variant NAME and "
	"unlearns (FedLU): `weights: paper` or code (the default), `confusion: hard`, soft or "
	"both (the default).  Test and forgotten triples are then ranked by raw, retained and "
	"unlearned tables.\n"
	"\n"
	"Example:\n"
	"  fkge experiment r3.yaml --only single --only fede";

int cmd_experiment(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct experiment_options o = { 0 };
	const struct cli_syntax s = {
		.options = experiment_options,
		.parse = parse_experiment,
		.args = "FILE.yaml",
		.doc = experiment_doc,
		.input = &o,
	};

	cli_parse(cli, &s, argc, argv);
	if (o.methods) {
		list_methods(cli);
		return 0;
	}
	return experiment(cli, &o, e);
}
