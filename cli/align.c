/* cli/align.c - pairwise alignments of several graphs into one shared name a thing. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "base/stage.h"
#include "cli/commands.h"
#include "cli/graphs.h"
#include "graph/align.h"

/* ---- shared with import ---- */

void cli_tell_conflicts(struct cli *cli, const struct graph_conflicts *c, bool resolved)
{
	json_t *lines = json_object_get(cli->result, "conflict_lines");
	const char *at = (const char *)c->text.base;

	if (lines == NULL) {
		lines = json_array();
		cli_put(cli, "conflict_lines", lines);
	}
	for (size_t i = 0; i < c->n && i < GRAPH_CONFLICTS_SHOWN; i++) {
		size_t len = strcspn(at, "\n");

		json_array_append_new(lines, json_stringn(at, len));
		if (!resolved)
			fprintf(stderr, "%.*s\n", (int)len, at);
		else
			lab_note(&cli->notes, "%.*s\n", (int)len, at);
		at += len + 1;
	}
	if (c->n > GRAPH_CONFLICTS_SHOWN)
		lab_note(&cli->notes, "... and %zu more\n", c->n - GRAPH_CONFLICTS_SHOWN);
}

/* ---- arguments ---- */

struct align_options {
	char **path;
	size_t n;
	const char *folder;
	enum graph_match match;
};

enum { KEY_MATCH = 0x5000 };

static const struct argp_option align_options[] = {
	{ "output", 'o', "DIR", 0, "where GRAPH.tsv of each graph goes", 0 },
	{ "match", KEY_MATCH, "RULE", 0,
	  "where a thing would have two entities of one graph: refuse (default), unique or best",
	  0 },
	{ 0 },
};

static error_t parse_align(int key, char *arg, struct argp_state *state)
{
	struct align_options *o = state->input;

	switch (key) {
	case 'o':
		o->folder = arg;
		return 0;
	case KEY_MATCH:
		o->match = (enum graph_match)cli_word(state, arg, "--match", graph_match_words);
		if (o->match == GRAPH_MATCH_FIRST)
			argp_error(state, "--match first is of fkge import: here no order counts");
		return 0;
	case ARGP_KEY_ARG:
		o->path = mem_resize(o->path, o->n + 1, sizeof(*o->path));
		o->path[o->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->n == 0 || o->folder == NULL)
			argp_error(state, "PAIRS and -o are needed");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

/* ---- files of pairs ---- */

static int cmp_text(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* "el-en.tsv.gz" -> "el", "en": free(*first), *second points into it.  False: named otherwise. */
static bool graphs_of_file(const char *path, char **first, char **second)
{
	static const char *const packed[] = { ".gz", ".zst" }, *const ends[] = { ".tsv", ".txt" };
	const char *name = strrchr(path, '/') != NULL ? strrchr(path, '/') + 1 : path;
	char *text = mem_strdup(name), *dash;

	for (size_t i = 0; i < sizeof(packed) / sizeof(*packed); i++)
		if (file_ends_in(text, packed[i]))
			text[strlen(text) - strlen(packed[i])] = '\0';
	for (size_t i = 0; i < sizeof(ends) / sizeof(*ends); i++)
		if (file_ends_in(text, ends[i]))
			text[strlen(text) - strlen(ends[i])] = '\0';
	dash = strchr(text, '-');
	if (dash == NULL || strchr(dash + 1, '-') != NULL) {
		free(text);
		return false;
	}
	*dash = '\0';
	*first = text;
	*second = dash + 1;
	return true;
}

static int read_named(struct graph_align *a, const char *path, struct err *e)
{
	char *first, *second;
	int rc;

	if (!graphs_of_file(path, &first, &second))
		return err_set(e, ERR_USAGE,
			       "%s: which graphs are paired? Call the file A-B.tsv, or say A:B=%s",
			       path, path);
	rc = graph_align_read(a, first, second, path, e);
	free(first);
	return rc;
}

static int read_folder(struct graph_align *a, const char *folder, struct err *e)
{
	DIR *d = opendir(folder);
	struct dirent *f;
	char **name = NULL;
	size_t n = 0;
	int rc = 0;

	if (d == NULL)
		return file_unreadable(folder, errno, e);
	while ((f = readdir(d)) != NULL)
		if (f->d_name[0] != '.') {
			name = mem_resize(name, n + 1, sizeof(*name));
			name[n++] = mem_strdup(f->d_name);
		}
	closedir(d);
	if (n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no file of pairs in it", folder);
	else
		qsort(name, n, sizeof(*name), cmp_text);
	for (size_t i = 0; i < n; i++) {
		char *path = file_join(folder, name[i]);

		if (rc == 0)
			rc = read_named(a, path, e);
		free(path);
		free(name[i]);
	}
	free(name);
	return rc;
}

/* A:B=PATH, a folder, or a file called A-B.tsv. */
static int read_argument(struct graph_align *a, const char *arg, struct err *e)
{
	const char *equals = strchr(arg, '='), *colon = strchr(arg, ':');
	struct stat st;

	if (equals != NULL && colon != NULL && colon < equals &&
	    memchr(arg, '/', (size_t)(equals - arg)) == NULL) {
		char *text = mem_strdup(arg);
		int rc;

		text[colon - arg] = '\0';
		text[equals - arg] = '\0';
		rc = graph_align_read(a, text, text + (colon - arg) + 1, equals + 1, e);
		free(text);
		return rc;
	}
	if (stat(arg, &st) != 0)
		return file_unreadable(arg, errno, e);
	return S_ISDIR(st.st_mode) ? read_folder(a, arg, e) : read_named(a, arg, e);
}

/* ---- what comes out ---- */

static int refuse_mixing(const struct graph_align *a, const char *folder, struct err *e)
{
	int rc = 0;

	for (uint32_t i = 0; i < graph_align_count(a) && rc == 0; i++) {
		char *name = mem_printf("%s.tsv", graph_align_name(a, i));
		const char *const made[] = { name, NULL };

		rc = cli_refuse_mixing(folder, made, "aliases", e);
		free(name);
	}
	return rc;
}

static int save_graph(const struct graph_align *a, uint32_t i, struct stage *s, struct err *e)
{
	struct buf text = { 0 };
	char *path;
	int rc;

	stage_add(s, "%s.tsv", graph_align_name(a, i));
	path = file_join(s->aside, s->name[s->n - 1]);
	graph_align_write(a, i, &text);
	rc = file_write_atomic(path, text.base, text.len, 0644, e);
	buf_release(&text);
	free(path);
	return rc;
}

/* All of one run or none: others would pair with names that no other graph has. */
static int save_graphs(const struct graph_align *a, const char *folder, struct err *e)
{
	struct stage s;
	int rc = refuse_mixing(a, folder, e);

	if (rc == 0)
		rc = stage_begin(&s, folder, e);
	if (rc != 0)
		return rc;
	for (uint32_t i = 0; i < graph_align_count(a) && rc == 0; i++)
		rc = save_graph(a, i, &s, e);
	return stage_end(&s, rc, e);
}

static void report_align(struct cli *cli, const struct graph_align *a,
			 const struct graph_align_report *r)
{
	json_t *graphs = json_array();

	for (uint32_t i = 0; i < graph_align_count(a); i++) {
		size_t named = graph_align_named(a, i), linked = graph_align_linked(a, i);

		json_array_append_new(graphs,
				      json_pack("{s:s, s:I, s:I}", "name", graph_align_name(a, i),
						"names", (json_int_t)named, "aliases",
						(json_int_t)linked));
		cli_say(cli, "%s: %zu of %zu names have a shared name\n", graph_align_name(a, i),
			linked, named);
	}
	cli_put(cli, "graphs", graphs);
	cli_put_count(cli, "classes", r->classes);
	cli_put_count(cli, "pairs_left_out", r->left_out);
	cli_say(cli, "%zu things from %zu pairs in %zu lines; %zu conflicts, %zu pairs left out\n",
		r->classes, r->pairs, r->lines, r->conflicts.n, r->left_out);
}

static int join_graphs(struct cli *cli, struct graph_align *a, const struct align_options *o,
		       struct err *e)
{
	struct graph_align_report r = { 0 };
	int rc = graph_align_join(a, o->match, &r, e);

	cli_put_count(cli, "lines", r.lines);
	cli_put_count(cli, "pairs", r.pairs);
	cli_put_count(cli, "conflicts", r.conflicts.n);
	cli_tell_conflicts(cli, &r.conflicts, o->match != GRAPH_MATCH_REFUSE);
	if (rc != 0 && r.conflicts.n > 0 && o->match == GRAPH_MATCH_REFUSE)
		rc = err_set(e, rc,
			     "%zu conflict%s as above: correct the pairs, or say by --match which "
			     "of them count",
			     r.conflicts.n, r.conflicts.n == 1 ? "" : "s");
	if (rc == 0)
		rc = save_graphs(a, o->folder, e);
	if (rc == 0)
		report_align(cli, a, &r);
	graph_align_report_release(&r);
	return rc;
}

int cmd_align(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct align_options o = { .match = GRAPH_MATCH_REFUSE };
	const struct cli_syntax s = {
		.options = align_options,
		.parse = parse_align,
		.args = "PAIRS...",
		.doc = "Make one shared name a thing out of pairs of graphs' names: lines of name "
		       "in A TAB name in B, plain, .gz or .zst. PAIRS is a file called A-B.tsv (or "
		       ".txt), a folder of such files, or A:B=FILE. What pairs connect over any "
		       "number of graphs is one thing. DIR/A.tsv, DIR/B.tsv, ... are for fkge "
		       "import --alias of each graph's agent.\v"
		       "A thing may be one entity of each graph. Where pairs say that two entities "
		       "of one graph are one, the pairs that lead from one to the other are told, "
		       "with file and line, and --match decides:\n\n"
		       "  refuse  nothing is written\n"
		       "  unique  all entities of such a thing stay without a shared name\n"
		       "  best    pairs count one after the other, by their score (a third column; "
		       "1 "
		       "without), then by how many third entities are paired with both, then by "
		       "their names; one that would bring two of one graph together is left out\n\n"
		       "The order of lines and files does not matter. A shared name is "
		       "shared:GRAPH:NAME of the first of its graphs. All agents must use files of "
		       "one run: other pairs may give other names.\n\n"
		       "Examples:\n  fkge align align/ -o names/\n"
		       "  fkge align el-en.tsv.gz en-fr.tsv.gz -o names/ --match best\n"
		       "  fkge align EN:FR=EN_FR_15K_V1/ent_links -o names/",
		.input = &o,
	};
	struct graph_align *a = graph_align_new();
	int rc = 0;

	cli_parse(cli, &s, argc, argv);
	for (size_t i = 0; i < o.n && rc == 0; i++)
		rc = read_argument(a, o.path[i], e);
	if (rc == 0)
		rc = join_graphs(cli, a, &o, e);
	graph_align_free(a);
	free(o.path);
	return rc;
}
