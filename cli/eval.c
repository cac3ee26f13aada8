/* cli/eval.c - eval: how well the best state (or a saved one) ranks a split. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "kge/eval.h"
#include "kge/kernel.h"
#include "lab/work.h"

static const char *const preset_words[] = { "standard", "tail", "fedlu", "fede", "openke", NULL };

struct eval_options {
	int split, preset, sides, filter, candidates, ties; /* -1: not given */
	const char *checkpoint;				    /* number or name; NULL: the best */
	uint64_t limit, seed;
	bool seed_given, classify, floor;
};

enum {
	KEY_SIDES = 0x2000,
	KEY_FILTER,
	KEY_CANDIDATES,
	KEY_TIES,
	KEY_LIMIT,
	KEY_SEED,
	KEY_CLASSIFY,
	KEY_FLOOR
};

static const struct argp_option eval_options[] = {
	{ "split", 's', "NAME", 0, "train, valid or test (default test)", 0 },
	{ "protocol", 'p', "NAME", 0, "standard, tail, fedlu, fede or openke", 0 },
	{ "sides", KEY_SIDES, "WORD", 0, "both, tail or head", 0 },
	{ "filter", KEY_FILTER, "WORD", 0, "known answers left out: all, train+valid, train, none",
	  0 },
	{ "candidates", KEY_CANDIDATES, "WORD", 0, "all, train or typed", 0 },
	{ "ties", KEY_TIES, "WORD", 0, "realistic, optimistic or pessimistic", 0 },
	{ "checkpoint", 'c', "STATE", 0, "a saved state, by its number or name (default: the best)",
	  0 },
	{ "limit", KEY_LIMIT, "N", 0, "at most so many triples, drawn by the seed", 0 },
	{ "seed", KEY_SEED, "N", 0, "of --limit and of the negatives of --classify", 0 },
	{ "classify", KEY_CLASSIFY, NULL, 0, "also triple classification on test", 0 },
	{ "floor", KEY_FLOOR, NULL, 0, "also what counting frequencies would reach", 0 },
	{ 0 },
};

static error_t parse_eval(int key, char *arg, struct argp_state *state)
{
	struct eval_options *o = state->input;

	switch (key) {
	case 's':
		o->split = cli_word(state, arg, "--split", graph_split_words);
		return 0;
	case 'p':
		o->preset = cli_word(state, arg, "--protocol", preset_words);
		return 0;
	case KEY_SIDES:
		o->sides = cli_word(state, arg, "--sides", kge_sides_words);
		return 0;
	case KEY_FILTER:
		o->filter = cli_word(state, arg, "--filter", kge_filter_words);
		return 0;
	case KEY_CANDIDATES:
		o->candidates = cli_word(state, arg, "--candidates", kge_candidates_words);
		return 0;
	case KEY_TIES:
		o->ties = cli_word(state, arg, "--ties", kge_ties_words);
		return 0;
	case 'c':
		o->checkpoint = arg;
		return 0;
	case KEY_LIMIT:
		o->limit = cli_count(state, arg, "--limit", 1, UINT32_MAX);
		return 0;
	case KEY_SEED:
		o->seed = cli_count(state, arg, "--seed", 0, UINT64_MAX);
		o->seed_given = true;
		return 0;
	case KEY_CLASSIFY:
		o->classify = true;
		return 0;
	case KEY_FLOOR:
		o->floor = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* The preset, with the switches given over it; then it has no name of its own. */
static struct kge_protocol chosen_protocol(const struct eval_options *o, const struct config *c)
{
	const struct kge_protocol *preset =
		o->preset >= 0 ? kge_protocol_find(preset_words[o->preset]) : config_protocol(c);
	struct kge_protocol p = *preset;

	if (o->sides >= 0)
		p.sides = (enum kge_sides)o->sides;
	if (o->filter >= 0)
		p.filter = kge_filter_bits[o->filter];
	if (o->candidates >= 0)
		p.candidates = (enum kge_candidates)o->candidates;
	if (o->ties >= 0)
		p.ties = (enum kge_ties)o->ties;
	if (p.sides != preset->sides || p.filter != preset->filter ||
	    p.candidates != preset->candidates || p.ties != preset->ties)
		p.name = "custom";
	return p;
}

static json_t *metrics_json(const struct kge_metrics *m)
{
	json_t *j = json_object();

	json_object_set_new(j, "queries", json_integer((json_int_t)m->queries));
	json_object_set_new(j, "mr", store_json_of_number(m->mr));
	json_object_set_new(j, "mrr", store_json_of_number(m->mrr));
	json_object_set_new(j, "hits1", store_json_of_number(m->hits1));
	json_object_set_new(j, "hits3", store_json_of_number(m->hits3));
	json_object_set_new(j, "hits5", store_json_of_number(m->hits5));
	json_object_set_new(j, "hits10", store_json_of_number(m->hits10));
	json_object_set_new(j, "head_queries", json_integer((json_int_t)m->head_queries));
	json_object_set_new(j, "tail_queries", json_integer((json_int_t)m->tail_queries));
	if (m->head_queries > 0)
		json_object_set_new(j, "head_mrr", store_json_of_number(m->head_mrr));
	if (m->tail_queries > 0)
		json_object_set_new(j, "tail_mrr", store_json_of_number(m->tail_mrr));
	return j;
}

static void say_metrics(const struct cli *cli, const char *what, const struct kge_metrics *m)
{
	cli_say(cli, "%-10s %8zu queries  MRR %.4f  Hits@1 %.4f  @3 %.4f  @10 %.4f  MR %.1f\n",
		what, m->queries, m->mrr, m->hits1, m->hits3, m->hits10, m->mr);
}

static double part(size_t some, size_t all)
{
	return all > 0 ? (double)some / (double)all : NAN;
}

static int classify(struct cli *cli, const struct work *w, uint64_t seed, struct err *e)
{
	struct kge_classification c;
	json_t *j;
	int rc = kge_classify(w->emb, w->graph, seed, &c, e);

	if (rc != 0)
		return rc;
	j = json_object();
	json_object_set_new(j, "valid_accuracy",
			    store_json_of_number(part(c.valid_correct, c.valid_total)));
	json_object_set_new(j, "test_accuracy",
			    store_json_of_number(part(c.test_correct, c.test_total)));
	json_object_set_new(j, "valid_total", json_integer((json_int_t)c.valid_total));
	json_object_set_new(j, "test_total", json_integer((json_int_t)c.test_total));
	cli_put(cli, "classification", j);
	cli_say(cli, "classify   %8zu triples  accuracy %.4f (valid %.4f)\n", c.test_total,
		part(c.test_correct, c.test_total), part(c.valid_correct, c.valid_total));
	return 0;
}

static int floor_of(struct cli *cli, const struct work *w, enum graph_split split,
		    const struct kge_protocol *p, const struct kge_eval_options *how)
{
	struct kge_metrics m;
	int rc = kge_evaluate_frequency(w->graph, split, p, how, &m);

	if (rc != 0)
		return rc;
	cli_put(cli, "floor", metrics_json(&m));
	say_metrics(cli, "frequency", &m);
	return 0;
}

static int evaluate(struct cli *cli, struct work *w, const struct eval_options *o, struct err *e)
{
	const struct config *c = &w->folder.config;
	const struct kge_protocol p = chosen_protocol(o, c);
	const enum graph_split split = (enum graph_split)o->split;
	const struct kge_eval_options how = { .threads = c->train.kge.threads,
					      .limit = o->limit,
					      .seed = o->seed_given ? o->seed : c->train.kge.seed };
	struct kge_metrics m;
	struct waiting *wait;
	char text[WORK_PROTOCOL_TEXT];
	uint8_t digest[STORE_DIGEST];
	int rc;

	if (w->graph->split[split].n == 0)
		return err_set(e, ERR_INPUT, "the graph has no %s triples",
			       graph_split_words[split]);
	wait = lab_waiting_begin(&cli->notes, "evaluating");
	rc = kge_evaluate(w->emb, w->graph, split, &p, &how, &m);
	lab_waiting_end(wait);
	if (rc != 0)
		return err_set(e, rc, "evaluation: %s", err_text(rc));
	cli_put_text(cli, "split", graph_split_words[split]);
	cli_put(cli, "protocol", lab_work_protocol_json(&p));
	store_graph_digest(w->graph, digest);
	cli_put(cli, "graph", store_json_of_hex(digest, sizeof(digest)));
	cli_put_text(cli, "arithmetic", kge_kernels_pick()->isa);
	cli_put(cli, "metrics", metrics_json(&m));
	cli_put_count(cli, "seed", how.seed);
	cli_put_count(cli, "limit", how.limit);
	cli_put(cli, "checkpoint", lab_work_checkpoint_json(&w->info));
	lab_work_protocol_text(&p, text);
	cli_say(cli, "protocol   %s; split %s\n", text, graph_split_words[split]);
	say_metrics(cli, w->info.model, &m);
	if (o->floor)
		rc = floor_of(cli, w, split, &p, &how);
	if (rc == 0 && o->classify)
		rc = classify(cli, w, how.seed, e);
	return rc;
}

int cmd_eval(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct eval_options o = { .split = GRAPH_TEST,
				  .preset = -1,
				  .sides = -1,
				  .filter = -1,
				  .candidates = -1,
				  .ties = -1 };
	const struct cli_syntax s = {
		.options = eval_options,
		.parse = parse_eval,
		.doc = "Rank the triples of a split, and say by which protocol.\v"
		       "What a protocol is, each part of which has an option of its own:\n\n"
		       "  standard, fedlu  both sides; no known answer of any split competes\n"
		       "  tail             the same, tails alone\n"
		       "  fede             tails alone, among the entities of train\n"
		       "  openke           both sides, among the entities that stand on that "
		       "side\n"
		       "                   of the relation in any split; ties count for the "
		       "answer\n\n"
		       "Ties otherwise count half.\n\n"
		       "Example:\n  fkge -d acme eval --split test --protocol standard --json",
		.input = &o,
	};
	struct work w;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = lab_work_open(&w, cli->folder, FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = lab_work_load_state(&w, o.checkpoint, e);
	if (rc == 0)
		rc = evaluate(cli, &w, &o, e);
	lab_work_close(&w);
	return rc;
}
