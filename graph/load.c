/* graph/load.c - a graph from files of triples. */
#include <assert.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "graph/load_internal.h"

static uint64_t triple_hash(struct graph_triple t)
{
	uint64_t h = (uint64_t)t.head << 32 | t.tail;

	h = (h ^ (uint64_t)t.rel * 0xff51afd7ed558ccdu) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

size_t graph_seen_slot(const struct seen *s, const struct graph_triples *in, struct graph_triple t)
{
	size_t at = triple_hash(t) & s->mask;

	for (; s->slots[at] != 0; at = (at + 1) & s->mask) {
		const struct graph_triple *o = &in->at[s->slots[at] - 1];

		if (o->head == t.head && o->rel == t.rel && o->tail == t.tail)
			break;
	}
	return at;
}

static void seen_grow(struct seen *s, const struct graph_triples *in)
{
	s->mask = s->mask * 2 + 1;
	free(s->slots);
	s->slots = mem_array(s->mask + 1, sizeof *s->slots);
	for (size_t i = 0; i < in->n; i++)
		s->slots[graph_seen_slot(s, in, in->at[i])] = (uint32_t)i + 1;
}

/* Adds the triple unless the split has it: false then. */
static bool add_once(struct seen *s, struct graph *g, enum graph_split split, struct graph_triple t)
{
	size_t at = graph_seen_slot(s, &g->split[split], t);

	if (s->slots[at] != 0)
		return false;
	graph_add(g, split, t);
	s->slots[at] = (uint32_t)g->split[split].n;
	if (g->split[split].n * 4 > s->mask * 3)
		seen_grow(s, &g->split[split]);
	return true;
}

int graph_loading_room(const struct loading *in, struct err *e)
{
	if (in->g->split[in->split].n < UINT32_MAX / 4 &&
	    graph_vocab_count(in->g->entities) < UINT32_MAX / 4 - 2)
		return 0;
	return graph_lines_bad(in->lines, e, "more than %u triples or entities", UINT32_MAX / 4);
}

void graph_loading_add(struct loading *in, struct graph_triple t)
{
	size_t line = graph_lines_number(in->lines);

	if (!add_once(&in->seen, in->g, in->split, t)) {
		in->report->duplicates++;
		return;
	}
	in->report->self_loops += t.head == t.tail;
	if (in->origin != NULL)
		buf_add(&in->origin->lines[in->split], &line, sizeof line);
}

bool graph_loading_bars(struct loading *in, const char *const name[3], const size_t len[3])
{
	const struct graph_load_options *o = in->options;
	bool barred = o->bars != NULL && o->bars(o->bars_ctx, name, len);

	in->report->barred += barred;
	return barred;
}

void graph_loading_add_named(struct loading *in, const char *const name[3], const size_t len[3])
{
	struct graph_triple t;

	if (graph_loading_bars(in, name, len))
		return;
	t.head = graph_vocab_add(in->g->entities, name[0], len[0]);
	t.rel = graph_vocab_add(in->g->relations, name[1], len[1]);
	t.tail = graph_vocab_add(in->g->entities, name[2], len[2]);
	graph_loading_add(in, t);
}

int graph_loading_read(struct loading *in, enum graph_split split, const char *path,
		       load_reader *read, struct err *e)
{
	int rc = graph_lines_open(&in->lines, path, e);

	if (rc != 0)
		return rc;
	in->split = split;
	if (in->origin != NULL)
		in->origin->path[split] = mem_strdup(path);
	in->seen = (struct seen){ mem_array(64, sizeof *in->seen.slots), 63 };
	rc = read(in, e);
	free(in->seen.slots);
	graph_lines_close(in->lines);
	return rc;
}

/* ---- lines of head TAB relation TAB tail ---- */

/* Words that columns are called in tables of triples. */
static const char *const column_words[3][10] = {
	{ "head", "h", "subject", "subj", "s", "source", "src", "from", "head_entity", NULL },
	{ "relation", "rel", "r", "predicate", "pred", "p", "edge", "property", "label", NULL },
	{ "tail", "t", "object", "obj", "o", "target", "dst", "to", "tail_entity", NULL },
};

/* Of which column it is a word, or 3. */
static size_t column_of(const char *name)
{
	for (size_t column = 0; column < 3; column++)
		for (const char *const *word = column_words[column]; *word != NULL; word++)
			if (strcasecmp(*word, name) == 0)
				return column;
	return 3;
}

/* Each field is a word for another column, and one of them at least is longer than a letter: "s TAB
 * p TAB o" alone could as well be a triple. */
bool graph_load_names_columns(const char *const names[3])
{
	size_t longest = 0;
	unsigned seen = 0;

	for (size_t k = 0; k < 3; k++) {
		size_t len = strlen(names[k]);

		seen |= 1u << column_of(names[k]);
		if (len > longest)
			longest = len;
	}
	return seen == 7 && longest > 1;
}

/* ERR_INPUT: they name the columns in another order, by which every triple would be a wrong one. */
static int find_header(const struct loading *in, const struct lines_field *f, bool *found,
		       struct err *e)
{
	const char *const names[] = { f[0].text, f[1].text, f[2].text };
	size_t at[3] = { 0 };

	*found = graph_lines_number(in->lines) == 1 && !in->options->keep_header &&
		 graph_load_names_columns(names);
	for (size_t k = 0; k < 3 && *found; k++)
		at[column_of(names[k])] = k + 1;
	if (!*found || (at[0] == 1 && at[1] == 2))
		return 0;
	return graph_lines_bad(
		in->lines, e,
		"the columns are called %s, %s, %s, and head, relation, tail are "
		"wanted: put them in that order, for example with awk -F'\\t' -v "
		"OFS='\\t' '{print $%zu, $%zu, $%zu}' (--keep-header: it is a triple)",
		names[0], names[1], names[2], at[0], at[1], at[2]);
}

static void trim(struct lines_field *f)
{
	while (f->len > 0 && f->text[f->len - 1] == ' ')
		f->text[--f->len] = '\0';
	while (f->len > 0 && *f->text == ' ') {
		f->text++;
		f->len--;
	}
}

/* A name with a space at an end is another name than the one without, and looks alike. */
static int check_spaces(struct loading *in, struct lines_field *f, const char *what, struct err *e)
{
	if (f->text[0] != ' ' && f->text[f->len - 1] != ' ')
		return 0;
	in->report->spaced++;
	if (!in->options->trim)
		return 0;
	trim(f);
	return f->len > 0 ? 0 : graph_lines_bad(in->lines, e, "the %s is spaces alone", what);
}

static int load_line(struct loading *in, char *line, size_t len, struct err *e)
{
	static const char *const what[] = { "head", "relation", "tail" };
	struct lines_field f[3];
	bool header = false;
	int rc = graph_lines_fields(in->lines, line, len, f, what, 3, e);

	for (size_t column = 0; column < 3 && rc == 0; column++)
		rc = check_spaces(in, &f[column], what[column], e);
	if (rc == 0)
		rc = graph_loading_room(in, e);
	if (rc == 0)
		rc = find_header(in, f, &header, e);
	if (rc != 0)
		return rc;
	if (header) {
		in->report->headers++;
		return 0;
	}
	in->report->lines++;
	graph_loading_add_named(in, (const char *const[]){ f[0].text, f[1].text, f[2].text },
				(const size_t[]){ f[0].len, f[1].len, f[2].len });
	return 0;
}

/* The readers: from in->lines to its end.  ERR_INPUT, ERR_IO. */
static int graph_load_tsv(struct loading *in, struct err *e)
{
	char *line;
	size_t len;
	int rc;

	in->report->tsv = true;
	while ((rc = graph_lines_next(in->lines, &line, &len, e)) == 1) {
		rc = load_line(in, line, len, e);
		if (rc != 0)
			return rc;
	}
	return rc;
}

/* ---- which format, which files ---- */

static const char *const packings[] = { "", ".gz", ".zst", NULL };
static const char *const triple_ends[] = { ".tsv", ".txt", ".nt", ".ttl", ".nq", ".trig", NULL };
static const char *const json_ends[] = { ".jsonld", ".json", NULL };
static const char *const xml_ends[] = { ".rdf", ".owl", NULL };
static const char *const id_ends[] = { ".txt", NULL };

/* The end of the name, whether or not that of a packing follows. */
static bool ends_packed(const char *path, const char *with)
{
	bool fits = false;

	for (size_t k = 0; packings[k] != NULL && !fits; k++) {
		char *end = mem_printf("%s%s", with, packings[k]);

		fits = file_ends_in(path, end);
		free(end);
	}
	return fits;
}

/* Of the name without its packing; GRAPH_ANY if the content must tell. */
static enum graph_format format_of_name(const char *path)
{
	static const struct {
		const char *end;
		enum graph_format format;
	} known[] = {
		{ ".tsv", GRAPH_TSV },	 { ".nt", GRAPH_NTRIPLES }, { ".ttl", GRAPH_TURTLE },
		{ ".nq", GRAPH_NQUADS }, { ".trig", GRAPH_TRIG },
	};

	for (size_t i = 0; i < sizeof known / sizeof *known; i++)
		if (ends_packed(path, known[i].end))
			return known[i].format;
	return GRAPH_ANY;
}

/* RDF if the first line that says something is a directive of Turtle, or
 * begins with an IRI or a blank node and ends in a full stop. */
static bool looks_like_rdf(const char *text, size_t len)
{
	const char *end;

	while (len > 0 && (*text == '#' || *text == '\n')) {
		end = memchr(text, '\n', len);
		if (end == NULL)
			return false;
		len -= (size_t)(end + 1 - text);
		text = end + 1;
	}
	if (len >= 7 &&
	    (strncasecmp(text, "@prefix", 7) == 0 || strncasecmp(text, "prefix ", 7) == 0 ||
	     strncmp(text, "@base ", 6) == 0 || strncasecmp(text, "base <", 6) == 0))
		return true;
	if (len < 2 || (text[0] != '<' && (text[0] != '_' || text[1] != ':')))
		return false;
	end = memchr(text, '\n', len);
	end = end != NULL ? end : text + len;
	while (end > text && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	return end > text && end[-1] == '.';
}

/* No C library of Debian reads JSON-LD (raptor's JSON is RDF/JSON), and an array of contexts that
 * may come from the network is nothing to parse by hand. */
#define JSON_LD                                                                                    \
	"JSON-LD is not read; N-Quads of it are: /usr/bin/python3 -m rdflib.tools.rdfpipe -i "     \
	"json-ld -o nquads FILE >graph.nq (Debian's python3-rdflib)"

static int refuse_json(const char *path, struct err *e)
{
	return err_set(e, ERR_INPUT, "%s: " JSON_LD, path);
}

static bool looks_like_json_ld(const char *text, size_t len)
{
	static const char *const keys[] = { "\"@context\"", "\"@graph\"", "\"@id\"" };
	size_t at = 0;

	while (at < len && strchr(" \t\r\n", text[at]) != NULL)
		at++;
	if (at == len || (text[at] != '{' && text[at] != '['))
		return false;
	for (size_t i = 0; i < sizeof keys / sizeof *keys; i++)
		if (memmem(text, len, keys[i], strlen(keys[i])) != NULL)
			return true;
	return false;
}

static int load_any(struct loading *in, struct err *e)
{
	const char *text;
	size_t len;

	graph_lines_peek(in->lines, &text, &len);
	if (looks_like_json_ld(text, len))
		return graph_lines_bad(in->lines, e, JSON_LD);
	return looks_like_rdf(text, len) ? graph_load_rdf(in, e) : graph_load_tsv(in, e);
}

static int load_file(struct loading *in, enum graph_split split, const char *path, struct err *e)
{
	static load_reader *const readers[] = { [GRAPH_ANY] = load_any,
						[GRAPH_TSV] = graph_load_tsv,
						[GRAPH_NTRIPLES] = graph_load_rdf,
						[GRAPH_TURTLE] = graph_load_rdf,
						[GRAPH_NQUADS] = graph_load_nquads,
						[GRAPH_TRIG] = graph_load_trig };
	enum graph_format f = in->options->format;

	if (f == GRAPH_OPENKE || file_ends_in(path, "2id.txt"))
		return err_set(e, ERR_INPUT, "%s: OpenKE's layout is a folder: give its folder",
			       path);
	if (ends_packed(path, ".jsonld") || ends_packed(path, ".json"))
		return refuse_json(path, e);
	if (f == GRAPH_ANY)
		f = format_of_name(path);
	return graph_loading_read(in, split, path, readers[f], e);
}

int graph_loading_find(const char *folder, const char *stem, const char *const *ends, char **found,
		       struct err *e)
{
	*found = NULL;
	for (size_t i = 0; ends[i / 3] != NULL; i++) {
		char *name = mem_printf("%s%s%s", stem, ends[i / 3], packings[i % 3]);
		char *path = file_join(folder, name);

		free(name);
		if (!file_exists(path)) {
			free(path);
		} else if (*found == NULL) {
			*found = path;
		} else {
			err_set(e, ERR_INPUT, "%s and %s are both there: keep one", *found, path);
			free(path);
			free(*found);
			*found = NULL;
			return ERR_INPUT;
		}
	}
	return 0;
}

/* test.csv, Test.tsv, test2id.csv */
static bool is_called(const char *name, const char *split)
{
	size_t n = strlen(split);

	if (strncasecmp(name, split, n) != 0)
		return false;
	return name[n] == '.' || strncasecmp(name + n, "2id.", 4) == 0;
}

static bool is_plain_file(const char *folder, const char *name)
{
	char *path = file_join(folder, name);
	struct stat st;
	bool plain = stat(path, &st) == 0 && S_ISREG(st.st_mode);

	free(path);
	return plain;
}

/* Of several the first by name. */
static void find_unread(struct graph_load_report *report, enum graph_split split,
			const char *folder)
{
	char *found = report->unread[split];
	DIR *d = opendir(folder);
	struct dirent *f;

	while (d != NULL && (f = readdir(d)) != NULL)
		if (is_called(f->d_name, graph_split_words[split]) &&
		    (found[0] == '\0' || strcmp(f->d_name, found) < 0) &&
		    is_plain_file(folder, f->d_name))
			snprintf(found, GRAPH_UNREAD_MAX, "%s", f->d_name);
	if (d != NULL)
		closedir(d);
}

void graph_loading_unread(struct loading *in, enum graph_split split, const char *folder)
{
	find_unread(in->report, split, folder);
}

/* A folder without triples. */
static int say_missing(const char *folder, struct err *e)
{
	char *json, *xml = NULL;
	int rc = graph_loading_find(folder, "train", json_ends, &json, e);

	if (rc == 0)
		rc = graph_loading_find(folder, "train", xml_ends, &xml, e);
	if (rc == 0 && json != NULL)
		rc = refuse_json(json, e);
	else if (rc == 0 && xml != NULL)
		rc = err_set(e, ERR_INPUT, "%s: " GRAPH_RDF_XML, xml);
	else if (rc == 0)
		rc = err_set(e, ERR_INPUT,
			     "%s: no train.tsv, train.txt, train.nt, train.ttl, train.nq or "
			     "train.trig (plain, .gz or .zst) in it, nor a train2id.txt",
			     folder);
	free(json);
	free(xml);
	return rc;
}

/* Of several files, too: graph_load() says so. */
static bool has_split(const char *folder, enum graph_split split, bool ids)
{
	char *stem = mem_printf("%s%s", graph_split_words[split], ids ? "2id" : ""), *path;
	bool has = graph_loading_find(folder, stem, ids ? id_ends : triple_ends, &path, NULL) != 0;

	has = has || path != NULL;
	free(stem);
	free(path);
	return has;
}

int graph_look_at_folder(const char *folder, struct graph_load_report *report, struct err *e)
{
	bool ids = has_split(folder, GRAPH_TRAIN, true);

	*report = (struct graph_load_report){ 0 };
	if (!ids && !has_split(folder, GRAPH_TRAIN, false))
		return say_missing(folder, e);
	for (int s = GRAPH_VALID; s < GRAPH_SPLITS; s++)
		if (!has_split(folder, (enum graph_split)s, ids))
			find_unread(report, (enum graph_split)s, folder);
	return 0;
}

static int load_folder(struct loading *in, const char *folder, struct err *e)
{
	char *paths[GRAPH_SPLITS] = { NULL };
	int rc = 0;

	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++)
		rc = graph_loading_find(folder, graph_split_words[s], triple_ends, &paths[s], e);
	if (rc == 0 && paths[GRAPH_TRAIN] == NULL)
		rc = say_missing(folder, e);
	in->first = paths[GRAPH_TRAIN];
	for (int s = 0; s < GRAPH_SPLITS && rc == 0; s++)
		if (paths[s] != NULL)
			rc = load_file(in, (enum graph_split)s, paths[s], e);
		else
			graph_loading_unread(in, (enum graph_split)s, folder);
	for (int s = 0; s < GRAPH_SPLITS; s++)
		free(paths[s]);
	return rc;
}

/* OpenKE's layout or one file a split; a folder with both must be told. */
static int load_either_folder(struct loading *in, const char *folder, struct err *e)
{
	enum graph_format f = in->options->format;
	char *ids = NULL, *names = NULL;
	int rc = 0;

	if (f == GRAPH_ANY)
		rc = graph_loading_find(folder, "train2id", id_ends, &ids, e);
	if (rc == 0 && ids != NULL)
		rc = graph_loading_find(folder, "train", triple_ends, &names, e);
	if (rc == 0 && ids != NULL && names != NULL)
		rc = err_set(e, ERR_INPUT,
			     "%s and %s are both there: say which is meant with --format (openke "
			     "for the first)",
			     ids, names);
	if (rc == 0)
		rc = ids != NULL || f == GRAPH_OPENKE ? graph_load_openke(in, folder, e)
						      : load_folder(in, folder, e);
	free(ids);
	free(names);
	return rc;
}

/* ---- the whole ---- */

/* Names of the split that are not marked yet are marked and counted. */
static void count_new(const struct graph_triples *in, bool *ent, bool *rel, size_t *n_ent,
		      size_t *n_rel)
{
	for (size_t i = 0; i < in->n; i++) {
		struct graph_triple t = in->at[i];

		*n_ent += !ent[t.head];
		ent[t.head] = true;
		*n_ent += !ent[t.tail];
		ent[t.tail] = true;
		*n_rel += !rel[t.rel];
		rel[t.rel] = true;
	}
}

void graph_seen_fill(struct seen *s, const struct graph_triples *in)
{
	s->mask = 31;
	while (s->mask < in->n * 2)
		s->mask = s->mask * 2 + 1;
	s->slots = mem_array(s->mask + 1, sizeof *s->slots);
	for (size_t i = 0; i < in->n; i++)
		s->slots[graph_seen_slot(s, in, in->at[i])] = (uint32_t)i + 1;
}

/* How many triples of `of` are in train: train goes by, so memory follows `of` alone. */
static size_t count_leaked(const struct graph_triples *of, const struct graph_triples *train)
{
	struct seen s;
	size_t n = 0;

	graph_seen_fill(&s, of);
	for (size_t i = 0; i < train->n; i++)
		n += s.slots[graph_seen_slot(&s, of, train->at[i])] != 0;
	free(s.slots);
	return n;
}

/* Names of valid and test that train does not have, and triples of theirs that train has. */
static void report_unseen(const struct graph *g, struct graph_load_report *report)
{
	bool *ent = mem_array((size_t)graph_vocab_count(g->entities) + 1, sizeof *ent);
	bool *rel = mem_array((size_t)graph_vocab_count(g->relations) + 1, sizeof *rel);
	size_t known_ent = 0, known_rel = 0;

	count_new(&g->split[GRAPH_TRAIN], ent, rel, &known_ent, &known_rel);
	for (int s = GRAPH_VALID; s < GRAPH_SPLITS; s++) {
		count_new(&g->split[s], ent, rel, &report->unseen_entities,
			  &report->unseen_relations);
		report->leaked += count_leaked(&g->split[s], &g->split[GRAPH_TRAIN]);
	}
	free(ent);
	free(rel);
}

void graph_load_defaults(struct graph_load_options *o)
{
	*o = (struct graph_load_options){ .valid_share = 0.1, .test_share = 0.1, .seed = 1 };
}

static int refuse_split(const struct graph *g, const char *folder, struct err *e)
{
	if (g->split[GRAPH_VALID].n + g->split[GRAPH_TEST].n == 0)
		return 0;
	return err_set(e, ERR_USAGE,
		       "%s has valid or test of its own: shares of them, and the seed, are for one "
		       "file or for a folder with train alone",
		       folder);
}

static int load(struct graph *g, const char *path, const struct graph_load_options *o,
		struct graph_load_report *report, struct load_origin *origin, struct err *e)
{
	struct stat st;
	bool folder = stat(path, &st) == 0 && S_ISDIR(st.st_mode);
	struct loading in = {
		.g = g, .options = o, .report = report, .first = path, .origin = origin
	};
	int rc = folder ? load_either_folder(&in, path, e) : load_file(&in, GRAPH_TRAIN, path, e);

	if (rc == 0 && g->split[GRAPH_TRAIN].n == 0)
		rc = err_set(e, ERR_INPUT, "%s: no triples %s%s", path,
			     folder ? "to train on" : "in it",
			     report->barred > 0 ? " but what is left out"
			     : report->literals + report->blanks > 0
				     ? " (those with literals or blank nodes were left out)"
				     : "");
	if (rc == 0 && folder && o->split_asked)
		rc = refuse_split(g, path, e);
	if (rc == 0 && (!folder || o->split_asked) && origin == NULL) {
		rc = graph_make_splits(g, o, e);
		report->split_made = true;
	}
	if (rc == 0)
		report_unseen(g, report);
	return rc;
}

int graph_load_with_origin(struct graph **g, const char *path, const struct graph_load_options *o,
			   struct graph_load_report *report, struct load_origin *origin,
			   struct err *e)
{
	struct graph_load_options defaults;
	struct graph_load_report mine;
	int rc;

	graph_load_defaults(&defaults);
	report = report != NULL ? report : &mine;
	*report = (struct graph_load_report){ 0 };
	*g = graph_new();
	rc = load(*g, path, o != NULL ? o : &defaults, report, origin, e);
	if (rc != 0) {
		graph_free(*g);
		*g = NULL;
	}
	return rc;
}

int graph_load(struct graph **g, const char *path, const struct graph_load_options *o,
	       struct graph_load_report *report, struct err *e)
{
	return graph_load_with_origin(g, path, o, report, NULL, e);
}

void graph_load_origin_release(struct load_origin *origin)
{
	for (int s = 0; s < GRAPH_SPLITS; s++) {
		free(origin->path[s]);
		buf_release(&origin->lines[s]);
	}
}

int graph_load_refuse_idle(const struct graph_load_options *o, const struct graph_load_report *r,
			   const char *path, const char *rdf_words, const char *tsv_words,
			   struct err *e)
{
	if ((o->keep_literals || o->drop_blanks || o->labels != NULL) && !r->rdf)
		return err_set(e, ERR_USAGE, "%s are for RDF, and %s is none: leave them out",
			       rdf_words, path);
	if ((o->keep_header || o->trim) && !r->tsv)
		return err_set(e, ERR_USAGE, "%s are for TSV, and %s is none: leave them out",
			       tsv_words, path);
	return 0;
}
