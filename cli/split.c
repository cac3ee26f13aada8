/* cli/split.c - one graph partitioned among several agents (methods 7). */
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stage.h"
#include "cli/commands.h"
#include "cli/graphs.h"
#include "graph/parts.h"
#include "lab/table.h"

/* ---- shared with synth ---- */

struct ratios cli_ratios(const struct argp_state *state, const char *arg)
{
	double part[3] = { 0 }, sum;
	const char *at = arg;

	for (int i = 0; i < 3; i++) {
		char *end;

		part[i] = strtod(at, &end);
		if (end == at || *end != (i < 2 ? ':' : '\0') || !(part[i] >= 0 && part[i] < 1e9))
			argp_error(state,
				   "--ratios '%s': train:valid:test, such as 8:1:1 or 90:5:5", arg);
		at = end + 1;
	}
	sum = part[0] + part[1] + part[2];
	if (!(part[0] > 0))
		argp_error(state, "--ratios '%s': train must have a share", arg);
	return (struct ratios){ part[1] / sum, part[2] / sum };
}

int cli_write_record(const char *folder, const char *name, json_t *record, struct err *e)
{
	char *text = json_dumps(record, JSON_INDENT(2) | JSON_PRESERVE_ORDER);
	char *path = file_join(folder, name), *line = mem_printf("%s\n", text);
	int rc = file_write_atomic(path, line, strlen(line), 0644, e);

	json_decref(record);
	free(text);
	free(line);
	free(path);
	return rc;
}

static bool has_any(const char *folder, const char *const *names)
{
	bool has = false;

	for (; *names != NULL && !has; names++) {
		char *path = file_join(folder, *names);

		has = file_exists(path);
		free(path);
	}
	return has;
}

/* Of a run that was killed between two renames some is in place: base/stage.h takes it out and puts
 * back what was there. */
static int undo_cut_off(const char *folder, struct err *e)
{
	char *aside = file_join(folder, STAGE_ASIDE);
	bool cut_off = file_exists(aside);
	struct stage s;
	int rc;

	free(aside);
	if (!cut_off)
		return 0;
	rc = stage_begin(&s, folder, e);
	if (rc == 0)
		err_ignore(stage_end(&s, ERR_CANCELED, NULL)); /* nothing comes of this one */
	return rc;
}

int cli_refuse_mixing(const char *folder, const char *const *names, const char *what, struct err *e)
{
	int rc = has_any(folder, names) ? undo_cut_off(folder, e) : 0;

	if (rc == 0 && has_any(folder, names))
		rc = err_set(e, ERR_EXISTS, "%s holds %s already: choose another folder", folder,
			     what);
	return rc;
}

/* ---- arguments ---- */

enum { BY_RELATIONS, BY_COMMUNITIES };
static const char *const by_words[] = { "relations", "communities", NULL };

struct split_options {
	const char *path, *folder;
	uint32_t parts;
	int by; /* -1: not given */
	struct ratios ratios;
	const char *ratios_text;
	uint64_t seed;
};

enum { KEY_BY = 0x4000, KEY_SEED, KEY_RATIOS };

static const struct argp_option split_options[] = {
	{ "parts", 'k', "K", 0, "how many agents (2 to 64)", 0 },
	{ "by", KEY_BY, "WORD", 0,
	  "relations: shuffled, each agent gets as many; communities: those that meet at the same "
	  "entities stay together, by spectral clustering",
	  0 },
	{ "output", 'o', "DIR", 0, "where the folders 0, 1, ... and split.json go", 0 },
	{ "ratios", KEY_RATIOS, "A:B:C", 0, "train, valid, test in each part (default 8:1:1)", 0 },
	{ "seed", KEY_SEED, "N", 0, "of the dealing and of the parts' splits (default 1)", 0 },
	{ 0 },
};

static error_t parse_split(int key, char *arg, struct argp_state *state)
{
	struct split_options *o = state->input;

	switch (key) {
	case 'k':
		o->parts = (uint32_t)cli_count(state, arg, "--parts", 2, GRAPH_PARTS_MAX);
		return 0;
	case KEY_BY:
		o->by = cli_word(state, arg, "--by", by_words);
		return 0;
	case 'o':
		o->folder = arg;
		return 0;
	case KEY_RATIOS:
		o->ratios = cli_ratios(state, arg);
		o->ratios_text = arg;
		return 0;
	case KEY_SEED:
		o->seed = cli_count(state, arg, "--seed", 0, INT64_MAX);
		return 0;
	case ARGP_KEY_ARG:
		if (o->path != NULL)
			return ARGP_ERR_UNKNOWN;
		o->path = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->path == NULL || o->parts == 0 || o->by < 0 || o->folder == NULL)
			argp_error(state, "GRAPH, --parts, --by and -o are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- the work ---- */

struct dealing {
	const struct split_options *o;
	const char *aside; /* where all is written */
	struct graph *g;
	struct graph_triples all;
	uint32_t *part;	  /* by relation */
	uint32_t *shared; /* parts x parts */
	uint32_t in_all;
	json_t *parts; /* one object a part */
	struct table table;
};

/* Of part p's split: parts differ, the run is repeated by its one seed. */
static uint64_t part_seed(const struct dealing *d, uint32_t p)
{
	return d->o->seed + p;
}

static json_t *part_json(const struct dealing *d, const struct graph *g, uint32_t p)
{
	return json_pack("{s:i, s:I, s:I, s:I, s:I, s:I, s:I}", "part", (int)p, "relations",
			 (json_int_t)graph_vocab_count(g->relations), "entities",
			 (json_int_t)graph_vocab_count(g->entities), "train",
			 (json_int_t)g->split[GRAPH_TRAIN].n, "valid",
			 (json_int_t)g->split[GRAPH_VALID].n, "test",
			 (json_int_t)g->split[GRAPH_TEST].n, "seed", (json_int_t)part_seed(d, p));
}

static void part_row(struct dealing *d, const struct graph *g, uint32_t p)
{
	size_t n = g->split[GRAPH_TRAIN].n + g->split[GRAPH_VALID].n + g->split[GRAPH_TEST].n;

	table_add(&d->table, "%u", p);
	table_add(&d->table, "%u", graph_vocab_count(g->relations));
	table_add(&d->table, "%u", graph_vocab_count(g->entities));
	table_add(&d->table, "%zu", n);
	table_add(&d->table, "%.1f %%", 100 * (double)n / (double)d->all.n);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		table_add(&d->table, "%zu", g->split[s].n);
}

static int write_part(struct dealing *d, uint32_t p, struct err *e)
{
	const struct graph_load_options how = { .valid_share = d->o->ratios.valid,
						.test_share = d->o->ratios.test,
						.seed = part_seed(d, p) };
	struct graph *g = graph_part_graph(d->g, &d->all, d->part, p);
	char *name = mem_printf("%u", p), *folder = file_join(d->aside, name);
	int rc = graph_make_splits(g, &how, e);

	if (rc == 0)
		rc = graph_save(g, folder, e);
	if (rc == 0) {
		json_array_append_new(d->parts, part_json(d, g, p));
		part_row(d, g, p);
	}
	free(name);
	free(folder);
	graph_free(g);
	return rc;
}

static int deal(struct dealing *d, struct err *e)
{
	static int (*const how[])(const struct graph *, uint32_t, uint64_t, uint32_t *,
				  struct err *) = {
		[BY_RELATIONS] = graph_partition_relations,
		[BY_COMMUNITIES] = graph_partition_communities,
	};
	uint32_t k = d->o->parts;
	int rc = how[d->o->by](d->g, k, d->o->seed, d->part, e);

	if (rc == 0) {
		d->all = graph_all_triples(d->g);
		graph_parts_shared(d->g, &d->all, d->part, k, d->shared, &d->in_all);
	}
	for (uint32_t p = 0; p < k && rc == 0; p++)
		rc = write_part(d, p, e);
	return rc;
}

/* ---- what is said ---- */

static double mean_shared(const struct dealing *d)
{
	uint32_t k = d->o->parts;
	double sum = 0;

	for (uint32_t a = 0; a < k; a++)
		for (uint32_t b = 0; b < k; b++)
			sum += a != b ? d->shared[a * k + b] : 0;
	return sum / ((double)k * (k - 1));
}

static json_t *shared_json(const struct dealing *d)
{
	uint32_t k = d->o->parts;
	json_t *rows = json_array();

	for (uint32_t a = 0; a < k; a++) {
		json_t *row = json_array();

		for (uint32_t b = 0; b < k; b++)
			json_array_append_new(row, json_integer(d->shared[a * k + b]));
		json_array_append_new(rows, row);
	}
	return rows;
}

static void put_results(struct cli *cli, const struct dealing *d)
{
	const struct split_options *o = d->o;

	cli_put_text(cli, "graph", o->path);
	cli_put_text(cli, "by", by_words[o->by]);
	cli_put_count(cli, "seed", o->seed);
	cli_put_text(cli, "ratios", o->ratios_text);
	cli_put_count(cli, "triples", d->all.n);
	cli_put(cli, "parts", json_incref(d->parts));
	cli_put(cli, "shared_entities", shared_json(d));
	cli_put_number(cli, "shared_mean", mean_shared(d));
	cli_put_count(cli, "shared_by_all", d->in_all);
}

static void say_shared(const struct cli *cli, const struct dealing *d)
{
	uint32_t k = d->o->parts;

	cli_say(cli, "\nentities that two parts share, %.1f on average; %u are in all parts\n",
		mean_shared(d), d->in_all);
	for (uint32_t a = 0; a < k; a++) {
		for (uint32_t b = 0; b < k; b++)
			cli_say(cli, "%s%8u", b == 0 ? "" : " ", d->shared[a * k + b]);
		cli_say(cli, "\n");
	}
}

static void say_results(const struct cli *cli, const struct dealing *d)
{
	struct buf text = { 0 };

	table_print(&d->table, &text);
	cli_say(cli, "%.*s", (int)text.len, (const char *)text.base);
	say_shared(cli, d);
	buf_release(&text);
}

static void open_dealing(struct dealing *d, const struct split_options *o)
{
	static const char *const head[] = { "part",  "relations", "entities", "triples",
					    "share", "train",	  "valid",    "test" };

	d->o = o;
	d->part = mem_array((size_t)graph_vocab_count(d->g->relations) + 1, sizeof(*d->part));
	d->shared = mem_array((size_t)o->parts * o->parts, sizeof(*d->shared));
	d->parts = json_array();
	table_init(&d->table, sizeof(head) / sizeof(*head));
	for (size_t i = 0; i < sizeof(head) / sizeof(*head); i++)
		table_add(&d->table, "%s", head[i]);
}

static void close_dealing(struct dealing *d)
{
	graph_free(d->g);
	free(d->all.at);
	free(d->part);
	free(d->shared);
	json_decref(d->parts);
	table_release(&d->table);
}

static int write_dealing(struct cli *cli, struct dealing *d, struct err *e)
{
	int rc = deal(d, e);

	if (rc != 0)
		return rc;
	put_results(cli, d);
	return cli_write_record(d->aside, "split.json", json_copy(cli->result), e);
}

static int deal_whole(struct cli *cli, struct dealing *d, struct err *e)
{
	struct stage s;
	int rc = stage_begin(&s, d->o->folder, e);

	if (rc != 0)
		return rc;
	d->aside = s.aside;
	for (uint32_t p = 0; p < d->o->parts; p++)
		stage_add(&s, "%u", p);
	stage_add(&s, "split.json");
	return stage_end(&s, write_dealing(cli, d, e), e);
}

static int split_graph(struct cli *cli, const struct split_options *o, struct err *e)
{
	/* one file is not split here: parts are, below */
	const struct graph_load_options whole = { .seed = 1 };
	struct waiting *wait = lab_waiting_begin(&cli->notes, "dealing");
	struct dealing d = { 0 };
	int rc = graph_load(&d.g, o->path, &whole, NULL, e);

	if (rc != 0) {
		lab_waiting_end(wait);
		return rc;
	}
	open_dealing(&d, o);
	rc = deal_whole(cli, &d, e);
	lab_waiting_end(wait);
	if (rc == 0)
		say_results(cli, &d);
	close_dealing(&d);
	return rc;
}

int cmd_split(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct split_options o = {
		.by = -1, .ratios = { 0.1, 0.1 }, .ratios_text = "8:1:1", .seed = 1
	};
	static const char *const made[] = { "split.json", "0", NULL };
	const struct cli_syntax s = {
		.options = split_options,
		.parse = parse_split,
		.args = "GRAPH",
		.doc = "Split one graph among several agents: each relation goes to one of them "
		       "and "
		       "takes its triples along, so that agents share entities and never a triple. "
		       "All triples of GRAPH (a file or folder that `import` reads) are split "
		       "together, then each part is split anew; every entity and relation of valid "
		       "and test stays in the part's train.\v"
		       "DIR/0, DIR/1, ... are folders for `import`; DIR/split.json records seed, "
		       "ratios and what came out. Communities are looked for among at most 4096 "
		       "relations.\n\n"
		       "Examples:\n  fkge split fb15k-237/ --parts 3 --by relations -o r3/\n"
		       "  fkge split fb15k-237/ --parts 5 --by communities --ratios 90:5:5 -o c5/",
		.input = &o,
	};
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = cli_refuse_mixing(o.folder, made, "parts", e);
	return rc == 0 ? split_graph(cli, &o, e) : rc;
}
