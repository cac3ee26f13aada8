/* cli/queries_federate.c - queries federate: encoders of several owners, one way against another.
 */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/encoder_options.h"
#include "lab/cqa.h"
#include "query/sample.h"

struct federate_command {
	struct encoder_options e;
	struct cqa_options o; /* but for what e says */
	const char **paths;
	size_t n;
};

enum {
	KEY_ROUNDS = 0x5000,
	KEY_ROUND_STEPS,
	KEY_LOOK_EVERY,
	KEY_TEST_COUNT,
	KEY_CROSS_COUNT,
	KEY_TEST_SEED,
};

static const struct argp_option federate_options[] = {
	ENCODER_OPTIONS("4000", "50", "3"){ "arm", 'a', "WORD", 0,
					    "local (default), central, fede, fedr or fedcqa", 0 },
	{ "rounds", KEY_ROUNDS, "N", 0, "at most (default 50)", 0 },
	{ "round-steps", KEY_ROUND_STEPS, "N", 0, "steps of each owner a round (default 50)", 0 },
	{ "look-every", KEY_LOOK_EVERY, "N", 0, "rounds to a look at valid (default 5)", 0 },
	{ "test-count", KEY_TEST_COUNT, "N", 0, "test queries of them (default 100)", 0 },
	{ "cross-count", KEY_CROSS_COUNT, "N", 0, "of a type, across graphs (default 150)", 0 },
	{ "test-seed", KEY_TEST_SEED, "N", 0, "of the test queries (default 2)", 0 },
	{ 0 },
};

static error_t parse_counts(struct cqa_options *o, int key, char *arg,
			    const struct argp_state *state)
{
	switch (key) {
	case KEY_TEST_COUNT:
		o->test_count = cli_count(state, arg, "--test-count", 1, 1000000);
		return 0;
	case KEY_CROSS_COUNT:
		o->cross_count = cli_count(state, arg, "--cross-count", 0, 1000000);
		return 0;
	case KEY_TEST_SEED:
		o->test_seed = cli_count(state, arg, "--test-seed", 0, INT64_MAX);
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_federate(int key, char *arg, struct argp_state *state)
{
	struct federate_command *c = state->input;
	error_t rc;

	switch (key) {
	case 'a':
		c->o.arm = (enum cqa_arm)cli_word(state, arg, "--arm", cqa_arm_words);
		return 0;
	case KEY_ROUNDS:
		c->o.rounds = cli_count(state, arg, "--rounds", 1, 1000000);
		return 0;
	case KEY_ROUND_STEPS:
		c->o.round_steps = cli_count(state, arg, "--round-steps", 1, 1000000);
		return 0;
	case KEY_LOOK_EVERY:
		c->o.look_every = cli_count(state, arg, "--look-every", 1, 1000000);
		return 0;
	case ARGP_KEY_ARG:
		if (c->n == QUERY_OWNERS_MAX)
			argp_error(state, "at most %d graphs", QUERY_OWNERS_MAX);
		c->paths[c->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (c->n < 2)
			argp_error(state, "two graphs at least are wanted");
		return 0;
	default:
		rc = parse_counts(&c->o, key, arg, state);
		return rc == ARGP_ERR_UNKNOWN ? encoder_options_parse(&c->e, key, arg, state) : rc;
	}
}

static double figure_of(const json_t *record, const char *part, const char *key)
{
	return json_number_value(json_object_get(json_object_get(record, part), key));
}

static void say_record(const struct cli *cli, const json_t *record)
{
	static const char *const parts[] = { "in_graph", "cross_graph" };

	cli_say(cli, "%s, %s: round %lld of %lld, valid MRR %.4f\n",
		json_string_value(json_object_get(record, "arm")),
		json_string_value(json_object_get(json_object_get(record, "settings"), "encoder")),
		(long long)json_integer_value(json_object_get(record, "best_round")),
		(long long)json_integer_value(json_object_get(record, "rounds")),
		json_number_value(json_object_get(record, "valid_mrr")));
	cli_say(cli, "test         MRR     Hits@1  Hits@3  Hits@10\n");
	for (size_t i = 0; i < 2; i++)
		if (json_object_get(record, parts[i]) != NULL)
			cli_say(cli, "%-11s  %.4f  %.4f  %.4f  %.4f\n", parts[i],
				figure_of(record, parts[i], "mrr"),
				figure_of(record, parts[i], "hits1"),
				figure_of(record, parts[i], "hits3"),
				figure_of(record, parts[i], "hits10"));
}

static void take_options(struct federate_command *c)
{
	c->o.types = cqa_types;
	c->o.is = c->e.is;
	c->o.how = c->e.how;
	c->o.how.threads = c->o.how.threads > 0 ? c->o.how.threads : 1;
	c->o.count = c->e.count;
	c->o.valid_count = c->e.valid_count;
	c->o.answers_max = c->e.answers;
	c->o.patience = c->e.patience;
}

int cmd_queries_federate(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct federate_command c = {
		.e = encoder_options_default,
		.o = { .rounds = 50,
		       .round_steps = 50,
		       .look_every = 5,
		       .test_count = 100,
		       .cross_count = 150,
		       .test_seed = 2 },
	};
	const struct cli_syntax s = {
		.options = federate_options,
		.parse = parse_federate,
		.args = "GRAPH GRAPH...",
		.doc = "Train encoders of queries for several owners, each with one of the graphs, "
		       "in one process: each alone, on the graphs together, or in rounds (FedE, "
		       "FedR, FedCQA, which masks entity rows). Equal names are one thing.\v"
		       "Test queries are of each graph, among its own entities, and across the "
		       "graphs, among all. An interrupted run begins again.\n\n"
		       "Examples:\n  fkge queries federate r3/0 r3/1 r3/2 -e gqe --arm fedcqa "
		       "--dim 64 --json\n",
		.input = &c,
	};
	json_t *record = NULL;
	int rc;

	c.paths = mem_array(QUERY_OWNERS_MAX, sizeof *c.paths);
	c.e.count = 4000;
	c.e.valid_count = 50;
	c.e.patience = 3;
	cli_parse(cli, &s, argc, argv);
	take_options(&c);
	rc = cqa_run(&cli->notes, c.paths, c.n, &c.o, &record, e);
	if (rc == 0) {
		json_object_update(cli->result, record);
		say_record(cli, record);
	}
	json_decref(record);
	free(c.paths);
	return rc;
}
