/* cli/synth.c - generated graphs of any size. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/sink.h"
#include "base/stage.h"
#include "cli/commands.h"
#include "cli/graphs.h"
#include "graph/synth.h"

enum { AGENTS_MAX = 64, SINK_BYTES = 1 << 20 };

struct synth_options {
	struct graph_synth_config c;
	const char *folder, *ratios_text;
	const char *aside; /* where all is written */
	uint32_t agents;
	double overlap;
};

enum { KEY_SEED = 0x5000, KEY_RATIOS, KEY_AGENTS, KEY_OVERLAP };

static const struct argp_option synth_options[] = {
	{ "entities", 'e', "N", 0, "how many (10 to 100 million)", 0 },
	{ "relations", 'r', "N", 0, "how many (default 12)", 0 },
	{ "triples", 't', "N", 0,
	  "how many in all splits together (default 10 an entity, or as many as "
	  "fit)",
	  0 },
	{ "output", 'o', "DIR", 0, "where train.tsv, valid.tsv, test.tsv and synth.json go", 0 },
	{ "ratios", KEY_RATIOS, "A:B:C", 0, "train, valid, test (default 90:5:5)", 0 },
	{ "agents", KEY_AGENTS, "K", 0, "draw K graphs of one world into DIR/0, DIR/1, ...", 0 },
	{ "overlap", KEY_OVERLAP, "X", 0,
	  "with --agents: the part of the entities that all of them know, 0 to 1 (default 0.3)",
	  0 },
	{ "seed", KEY_SEED, "N", 0, "the same seed makes the same bytes (default 1)", 0 },
	{ 0 },
};

static error_t parse_synth(int key, char *arg, struct argp_state *state)
{
	struct synth_options *o = state->input;
	struct ratios shares;

	switch (key) {
	case 'e':
		o->c.entities =
			(uint32_t)cli_count(state, arg, "--entities", GRAPH_SYNTH_ENTITIES_MIN,
					    GRAPH_SYNTH_ENTITIES_MAX);
		return 0;
	case 'r':
		o->c.relations = (uint32_t)cli_count(state, arg, "--relations", 1,
						     GRAPH_SYNTH_RELATIONS_MAX);
		return 0;
	case 't':
		o->c.triples = cli_count(state, arg, "--triples", 2, GRAPH_SYNTH_TRIPLES_MAX);
		return 0;
	case 'o':
		o->folder = arg;
		return 0;
	case KEY_RATIOS:
		shares = cli_ratios(state, arg);
		o->c.valid_share = shares.valid;
		o->c.test_share = shares.test;
		o->ratios_text = arg;
		return 0;
	case KEY_AGENTS:
		o->agents = (uint32_t)cli_count(state, arg, "--agents", 1, AGENTS_MAX);
		return 0;
	case KEY_OVERLAP:
		o->overlap = cli_number(state, arg, "--overlap", 0, 1);
		return 0;
	case KEY_SEED:
		o->c.seed = cli_count(state, arg, "--seed", 0, INT64_MAX);
		return 0;
	case ARGP_KEY_END:
		if (o->c.entities == 0 || o->folder == NULL)
			argp_error(state, "--entities and -o are needed");
		if (o->agents == 0 && o->overlap >= 0)
			argp_error(state, "--overlap goes with --agents");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- one graph's files ---- */

struct writing {
	const struct synth_options *o;
	struct sink sink[GRAPH_SPLITS];
	uint64_t shared_below; /* an entity whose hash is below is known to all */
	uint64_t done;
	struct progress *progress;
};

/* Whether agents share an entity does not depend on the draw (splitmix64's finisher). */
static bool is_shared(const struct writing *w, uint32_t id)
{
	uint64_t x = (w->o->c.seed + 1) * UINT64_C(0x9e3779b97f4a7c15) + id;

	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return (x ^ x >> 31) >> 11 < w->shared_below;
}

static char *put_number(char *at, uint32_t x)
{
	char digits[10];
	int n = 0;

	do
		digits[n++] = (char)('0' + x % 10);
	while ((x /= 10) > 0);
	while (n > 0)
		*at++ = digits[--n];
	return at;
}

/* e17 for what all know, e17.2 for what the third agent alone knows. */
static char *put_entity(const struct writing *w, char *at, uint32_t id)
{
	*at++ = 'e';
	at = put_number(at, id);
	if (w->o->agents > 1 && !is_shared(w, id)) {
		*at++ = '.';
		at = put_number(at, w->o->c.draw);
	}
	return at;
}

static int write_triple(void *ctx, enum graph_split split, struct graph_triple t)
{
	struct writing *w = ctx;
	FILE *f = w->sink[split].f;
	char line[64], *at = put_entity(w, line, t.head);

	*at++ = '\t';
	*at++ = 'r';
	at = put_number(at, t.rel);
	*at++ = '\t';
	at = put_entity(w, at, t.tail);
	*at++ = '\n';
	if (fwrite_unlocked(line, 1, (size_t)(at - line), f) != (size_t)(at - line))
		return ERR_IO; /* sink_close() says why */
	if ((++w->done & 0xffff) == 0)
		lab_progress_at(w->progress, (double)w->done / (double)w->o->c.triples,
				"%.1f million", (double)w->done * 1e-6);
	return 0;
}

static int open_sinks(struct writing *w, const char *folder, int *opened, struct err *e)
{
	static const char *const names[GRAPH_SPLITS] = { "train.tsv", "valid.tsv", "test.tsv" };
	int rc = file_make_folder(folder, 0755, e);

	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++) {
		rc = sink_open(&w->sink[s], folder, names[s], SINK_SHARED, e);
		if (rc == 0) {
			setvbuf(w->sink[s].f, NULL, _IOFBF, SINK_BYTES);
			(*opened)++;
		}
	}
	return rc;
}

static int write_graph(const struct synth_options *o, const struct graph_synth *s,
		       const char *folder, struct progress *p, struct graph_synth_report *report,
		       struct err *e)
{
	struct writing w = { .o = o, .progress = p };
	int opened = 0, rc;

	w.shared_below = (uint64_t)ldexp(o->overlap, 53);
	rc = open_sinks(&w, folder, &opened, e);
	if (rc == 0)
		rc = graph_synth_run(s, write_triple, &w, report);
	for (int i = 0; i < opened; i++) {
		int closed = sink_close(&w.sink[i], e);

		rc = rc == 0 ? closed : rc;
	}
	return rc;
}

/* ---- all of them ---- */

static json_t *relations_json(const struct synth_options *o, const struct graph_synth *s)
{
	static const char *const words[GRAPH_ARITIES] = { "1-1", "1-n", "n-1", "n-n" };
	json_t *list = json_array();

	for (uint32_t i = 0; i < o->c.relations; i++) {
		const struct graph_synth_relation *r = graph_synth_relation(s, i);

		json_array_append_new(list,
				      json_pack("{s:s, s:[I,I], s:[I,I], s:I}", "arity",
						words[r->arity], "heads", (json_int_t)r->head.first,
						(json_int_t)r->head.first + r->head.n, "tails",
						(json_int_t)r->tail.first,
						(json_int_t)r->tail.first + r->tail.n, "triples",
						(json_int_t)r->triples));
	}
	return list;
}

static json_t *graph_json(const struct graph_synth_report *r)
{
	return json_pack(
		"{s:I, s:I, s:I, s:I, s:I}", "entities", (json_int_t)r->entities, "relations",
		(json_int_t)r->relations, "train", (json_int_t)r->triples[GRAPH_TRAIN], "valid",
		(json_int_t)r->triples[GRAPH_VALID], "test", (json_int_t)r->triples[GRAPH_TEST]);
}

static void say_graph(const struct cli *cli, const struct synth_options *o, uint32_t agent,
		      const struct graph_synth_report *r)
{
	if (o->agents > 0)
		cli_say(cli, "agent %u: ", agent);
	cli_say(cli, "%u entities, %u relations; %llu train, %llu valid, %llu test triples\n",
		r->entities, r->relations, (unsigned long long)r->triples[GRAPH_TRAIN],
		(unsigned long long)r->triples[GRAPH_VALID],
		(unsigned long long)r->triples[GRAPH_TEST]);
}

static int write_agent(struct cli *cli, struct synth_options *o, uint32_t agent, struct progress *p,
		       json_t *graphs, struct err *e)
{
	struct graph_synth_report report;
	struct graph_synth *s;
	char *name = mem_printf("%u", agent);
	char *folder = o->agents > 0 ? file_join(o->aside, name) : mem_strdup(o->aside);
	int rc;

	o->c.draw = agent;
	rc = graph_synth_new(&s, &o->c, e);
	if (rc == 0) {
		rc = write_graph(o, s, folder, p, &report, e);
		if (agent == 0) {
			cli_put(cli, "kinds", relations_json(o, s));
			cli_put_count(cli, "triples", graph_synth_triples(s));
		}
		graph_synth_free(s);
	}
	if (rc == 0) {
		json_array_append_new(graphs, graph_json(&report));
		say_graph(cli, o, agent, &report);
	}
	free(name);
	free(folder);
	return rc;
}

static int write_all(struct cli *cli, struct synth_options *o, struct err *e)
{
	struct progress p = lab_progress_begin(&cli->notes, "writing");
	json_t *graphs = json_array();
	int rc = 0;

	cli_put_count(cli, "seed", o->c.seed);
	cli_put_count(cli, "entities", o->c.entities);
	cli_put_count(cli, "relations", o->c.relations);
	cli_put_count(cli, "triples", o->c.triples);
	cli_put_text(cli, "ratios", o->ratios_text);
	if (o->agents > 0)
		cli_put_number(cli, "overlap", o->overlap);
	for (uint32_t a = 0; a < (o->agents > 0 ? o->agents : 1) && rc == 0; a++)
		rc = write_agent(cli, o, a, &p, graphs, e);
	lab_progress_end(&p);
	cli_put(cli, "graphs", graphs);
	if (rc == 0)
		rc = cli_write_record(o->aside, "synth.json", json_copy(cli->result), e);
	return rc;
}

/* A folder without train.tsv is no graph: it comes last. */
static int write_together(struct cli *cli, struct synth_options *o, struct err *e)
{
	struct stage s;
	int rc = stage_begin(&s, o->folder, e);

	if (rc != 0)
		return rc;
	o->aside = s.aside;
	for (uint32_t a = 0; a < o->agents; a++)
		stage_add(&s, "%u", a);
	if (o->agents == 0) {
		stage_add(&s, "valid.tsv");
		stage_add(&s, "test.tsv");
	}
	stage_add(&s, "synth.json");
	if (o->agents == 0)
		stage_add(&s, "train.tsv");
	return stage_end(&s, write_all(cli, o, e), e);
}

/* Ten an entity; a small graph has no room for them, and many relations want two each. */
static void choose_triples(struct graph_synth_config *c)
{
	uint64_t least = 2 * (uint64_t)c->relations;

	c->triples = 10 * (uint64_t)c->entities;
	c->triples = c->triples > least ? c->triples : least;
	c->fewer = true;
}

int cmd_synth(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct synth_options o = {
		.c = { .relations = 12, .valid_share = 0.05, .test_share = 0.05, .seed = 1 },
		.ratios_text = "90:5:5",
		.overlap = -1,
	};
	static const char *const made[] = { "synth.json", "train.tsv", "valid.tsv",
					    "test.tsv",	  "0",	       NULL };
	const struct cli_syntax s = {
		.options = synth_options,
		.parse = parse_synth,
		.doc = "Write a generated graph: entities of types, relations of all arities "
		       "between "
		       "them, degrees that fall like a power of the rank, and places of entities "
		       "that decide who is related to whom, so that a model finds something to "
		       "learn. Every entity and relation of valid and test is in train.\v"
		       "Memory stays below 20 MB up to 10 million entities. With --agents the "
		       "graphs are draws of the same world: relations and shared entities have the "
		       "same names "
		       "in all of them; 1-1 relations between shared entities have the same "
		       "triples.\n\n"
		       "Examples:\n  fkge synth --entities 1000000 --triples 10000000 -o big/\n"
		       "  fkge synth -e 20000 -r 24 --agents 3 --overlap 0.4 --seed 7 -o world/",
		.input = &o,
	};

	int rc;

	cli_parse(cli, &s, argc, argv);
	if (o.c.triples == 0)
		choose_triples(&o.c);
	if (o.overlap < 0)
		o.overlap = 0.3;
	rc = cli_refuse_mixing(o.folder, made, "a graph", e);
	return rc == 0 ? write_together(cli, &o, e) : rc;
}
