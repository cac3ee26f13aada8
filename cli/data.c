/* cli/data.c - import of graphs, alias tables and embeddings, export of embeddings and triples. */
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "agent/core/core.h"
#include "agent/core/history.h"
#include "agent/roster.h"
#include "base/mem.h"
#include "base/secret.h"
#include "cli/commands.h"
#include "cli/graphs.h"
#include "cli/peers.h"
#include "cli/tables.h"
#include "cli/unlearned.h"
#include "graph/alias.h"
#include "graph/words.h"
#include "kge/io.h"
#include "lab/work.h"

/* ---- import ---- */

struct import_options {
	const char *path, *peer, *format;
	const char *folders[TABLES_MAX]; /* of embeddings: path and those behind it */
	size_t n_folders;
	const char *prefixes[GRAPH_PREFIXES_MAX];
	size_t n_prefixes;
	struct graph_load_options load;
	int tables; /* format of embeddings */
	int match;  /* of enum graph_match; -1: not said */
	bool alias, embeddings, replace, swap, unlearned;
};

enum {
	KEY_VALID = 0x3000,
	KEY_TEST,
	KEY_SEED,
	KEY_REPLACE,
	KEY_SWAP,
	KEY_MATCH,
	KEY_LITERALS,
	KEY_BLANK,
	KEY_HEADER,
	KEY_TRIM,
	KEY_PEER,
	KEY_LABELS,
	KEY_UNLEARNED
};

static const char *const graph_words[] = { [GRAPH_ANY] = "auto",      [GRAPH_TSV] = "tsv",
					   [GRAPH_OPENKE] = "openke", [GRAPH_NTRIPLES] = "ntriples",
					   [GRAPH_TURTLE] = "turtle", [GRAPH_NQUADS] = "nquads",
					   [GRAPH_TRIG] = "trig",     NULL };

static const struct argp_option import_options[] = {
	{ "alias", 'a', NULL, 0, "FILE is an alias table: own name TAB name for others", 0 },
	{ "embeddings", 'e', NULL, 0,
	  "FOLDER holds embeddings of the graph's names, as fkge export writes them", 0 },
	{ "peer", KEY_PEER, "PEER", 0,
	  "with --alias: names toward this peer alone (name or id); -p PEER there is the same", 0 },
	{ "prefix", 'p', "PREFIX=IRI", 0,
	  "show names that begin with the IRI as PREFIX:rest, and take them so (several: once "
	  "each)",
	  0 },
	{ "labels", KEY_LABELS, "LANG", 0,
	  "RDF: show rdfs:label of this language (en), else without a language, beside names; "
	  "\"\": those without a language",
	  0 },
	{ "swap", KEY_SWAP, NULL, 0, "with --alias: the own name stands second", 0 },
	{ "match", KEY_MATCH, "RULE", 0,
	  "with --alias, where a name is paired with several: refuse (default), first, unique or "
	  "best",
	  0 },
	{ "replace", KEY_REPLACE, NULL, 0, "replace the graph that is there", 0 },
	{ "unlearned", KEY_UNLEARNED, NULL, 0,
	  "take in triples that fkge unlearn has taken out, too (else they are left out)", 0 },
	{ "valid", KEY_VALID, "PART", 0,
	  "of the triples of one file, or of a folder with train alone, for valid (default 0.1 of "
	  "one file)",
	  0 },
	{ "test", KEY_TEST, "PART", 0, "the same for test", 0 },
	{ "seed", KEY_SEED, "N", 0, "of that split (default 1)", 0 },
	{ "format", 'f', "WORD", 0,
	  "tsv, openke, ntriples, turtle, nquads or trig (default auto: by the name, else by the "
	  "content); of "
	  "embeddings npy, tsv, word2vec, openke, safetensors, pykeen or rotate (default: by the "
	  "files)",
	  0 },
	{ "keep-literals", KEY_LITERALS, NULL, 0,
	  "RDF: a literal is an entity (else triples with one are left out)", 0 },
	{ "drop-blank-nodes", KEY_BLANK, NULL, 0, "RDF: leave out triples with a blank node", 0 },
	{ "keep-header", KEY_HEADER, NULL, 0,
	  "TSV: a first line such as head TAB relation TAB tail is a triple (else it is left out)",
	  0 },
	{ "trim", KEY_TRIM, NULL, 0, "TSV: take spaces off both ends of names", 0 },
	{ 0 },
};

/* Known once all options are. */
static void take_format(struct import_options *o, const struct argp_state *state)
{
	o->tables = -1;
	if (o->format == NULL)
		return;
	if (o->embeddings)
		o->tables = cli_word(state, o->format, "--format", kge_table_words);
	else
		o->load.format =
			(enum graph_format)cli_word(state, o->format, "--format", graph_words);
}

/* Options on the lines that are read, and how. */
static error_t parse_load(int key, const char *arg, struct graph_load_options *o)
{
	switch (key) {
	case KEY_LITERALS:
		o->keep_literals = true;
		return 0;
	case KEY_BLANK:
		o->drop_blanks = true;
		return 0;
	case KEY_HEADER:
		o->keep_header = true;
		return 0;
	case KEY_TRIM:
		o->trim = true;
		return 0;
	case KEY_LABELS:
		o->labels = arg;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static void take_prefix_option(struct import_options *o, const char *arg,
			       const struct argp_state *state)
{
	if (o->n_prefixes == GRAPH_PREFIXES_MAX)
		argp_error(state, "more than %d prefixes", GRAPH_PREFIXES_MAX);
	o->prefixes[o->n_prefixes++] = arg;
}

/* -p was a peer before it was a prefix: with --alias it still is. */
static void take_peer_option(struct import_options *o, const struct argp_state *state)
{
	if (!o->alias || o->n_prefixes == 0)
		return;
	if (o->n_prefixes > 1 || o->peer != NULL)
		argp_error(state, "--alias is toward one peer");
	o->peer = o->prefixes[0];
	o->n_prefixes = 0;
}

/* Options that only triples have. */
static bool reads_triples(const struct graph_load_options *o)
{
	return o->split_asked || o->keep_literals || o->drop_blanks || o->keep_header || o->trim;
}

static error_t end_import(struct import_options *o, struct argp_state *state)
{
	if (o->n_folders == 0)
		argp_usage(state);
	if (o->n_folders > 1 && !o->embeddings)
		argp_error(state, "one PATH; only --embeddings takes several folders");
	o->path = o->folders[0];
	take_peer_option(o, state);
	if (!o->alias && (o->peer != NULL || o->swap || o->match >= 0))
		argp_error(state, "--peer, --swap and --match go with --alias");
	if (o->unlearned && (o->alias || o->embeddings))
		argp_error(state, "--unlearned goes with a graph");
	if (o->embeddings && (o->alias || o->replace))
		argp_error(state, "--embeddings goes with --format alone");
	if ((o->alias || o->embeddings) && (o->n_prefixes > 0 || o->load.labels != NULL))
		argp_error(state, "--prefix and --labels go with a graph");
	if ((o->alias || o->embeddings) && reads_triples(&o->load))
		argp_error(state, "--valid, --test, --seed, --keep-literals, --drop-blank-nodes, "
				  "--keep-header and --trim go with a graph");
	if (o->alias && (o->replace || o->format != NULL))
		argp_error(state, "--alias reads two columns and takes the place of the table "
				  "before: leave out --replace, --format");
	take_format(o, state);
	return 0;
}

static error_t parse_flag(int key, struct import_options *o)
{
	switch (key) {
	case 'a':
		o->alias = true;
		return 0;
	case 'e':
		o->embeddings = true;
		return 0;
	case KEY_SWAP:
		o->swap = true;
		return 0;
	case KEY_REPLACE:
		o->replace = true;
		return 0;
	case KEY_UNLEARNED:
		o->unlearned = true;
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static error_t parse_import(int key, char *arg, struct argp_state *state)
{
	struct import_options *o = state->input;

	switch (key) {
	case KEY_PEER:
		o->peer = arg;
		return 0;
	case 'p':
		take_prefix_option(o, arg, state);
		return 0;
	case KEY_MATCH:
		o->match = cli_word(state, arg, "--match", graph_match_words);
		return 0;
	case KEY_VALID:
		o->load.split_asked = true;
		o->load.valid_share = cli_number(state, arg, "--valid", 0, 0.9);
		return 0;
	case KEY_TEST:
		o->load.split_asked = true;
		o->load.test_share = cli_number(state, arg, "--test", 0, 0.9);
		return 0;
	case KEY_SEED:
		o->load.split_asked = true;
		o->load.seed = cli_count(state, arg, "--seed", 0, UINT64_MAX);
		return 0;
	case 'f':
		o->format = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->n_folders == TABLES_MAX)
			argp_error(state, "more than %d folders", TABLES_MAX);
		o->folders[o->n_folders++] = arg;
		return 0;
	case ARGP_KEY_END:
		return end_import(o, state);
	default:
		return parse_flag(key, o) == 0 ? 0 : parse_load(key, arg, &o->load);
	}
}

/* The graph that is there, NULL if none is; ERR_EXISTS unless it may be replaced. */
static int load_old(const struct folder *f, bool replace, struct graph **old, struct err *e)
{
	size_t n;
	int rc = store_load_graph(f->store, old, e);

	if (rc == ERR_NOTFOUND)
		return 0;
	if (rc != 0 || replace)
		return rc;
	n = (*old)->split[GRAPH_TRAIN].n + (*old)->split[GRAPH_VALID].n +
	    (*old)->split[GRAPH_TEST].n;
	return err_set(
		e, ERR_EXISTS,
		"a graph of %zu triples is there already; with --replace the new one takes its "
		"place, and unless it has the same names, aliases and alignments are dropped and "
		"the best state becomes a saved one",
		n);
}

static void report_graph(struct cli *cli, const struct graph *g, const struct graph_load_report *r)
{
	cli_put_count(cli, "entities", graph_vocab_count(g->entities));
	cli_put_count(cli, "relations", graph_vocab_count(g->relations));
	cli_put_count(cli, "train", g->split[GRAPH_TRAIN].n);
	cli_put_count(cli, "valid", g->split[GRAPH_VALID].n);
	cli_put_count(cli, "test", g->split[GRAPH_TEST].n);
	cli_put_count(cli, "lines", r->lines);
	cli_put_count(cli, "literals_left_out", r->literals);
	cli_put_count(cli, "blank_nodes_left_out", r->blanks);
	cli_put_count(cli, "unlearned_left_out", r->barred);
	cli_put_count(cli, "duplicates", r->duplicates);
	cli_put_count(cli, "unseen_entities", r->unseen_entities);
	cli_put_count(cli, "unseen_relations", r->unseen_relations);
	cli_put_count(cli, "self_loops", r->self_loops);
	cli_put_count(cli, "leaked", r->leaked);
	cli_put_count(cli, "headers_left_out", r->headers);
	cli_put_count(cli, "fields_with_spaces", r->spaced);
	cli_put(cli, "split_made", json_boolean(r->split_made));
	cli_say(cli,
		"%u entities, %u relations; %zu train, %zu valid, %zu test triples%s\n"
		"%zu lines: %zu duplicates dropped, %zu loops; in valid or test alone: %zu "
		"entities, %zu relations\n",
		graph_vocab_count(g->entities), graph_vocab_count(g->relations),
		g->split[GRAPH_TRAIN].n, g->split[GRAPH_VALID].n, g->split[GRAPH_TEST].n,
		r->split_made ? " (split here)" : "", r->lines, r->duplicates, r->self_loops,
		r->unseen_entities, r->unseen_relations);
	if (r->leaked > 0)
		cli_say(cli,
			"of valid and test %zu triples are in train too, where their answers are "
			"learnt: figures of them say little\n",
			r->leaked);
	if (r->literals + r->blanks > 0)
		cli_say(cli, "left out: %zu triples with literals, %zu with blank nodes\n",
			r->literals, r->blanks);
}

/* A split that is there in another form is missed later, where its figures are. */
static void report_unread(struct cli *cli, const struct graph_load_report *r)
{
	json_t *unread = json_array();

	for (int s = GRAPH_VALID; s < GRAPH_SPLITS; s++)
		if (r->unread[s][0] != '\0')
			json_array_append_new(unread, store_json_of_text(r->unread[s]));
	lab_work_note_unread(&cli->notes, "", r);
	cli_put(cli, "unread", unread);
}

static void report_oddities(const struct cli *cli, const struct graph_load_report *r, bool trimmed)
{
	if (r->headers > 0)
		lab_note(
			&cli->notes,
			"Line 1 of %zu file%s names the columns and is left out (--keep-header: it "
			"is a triple)\n",
			r->headers, r->headers > 1 ? "s" : "");
	if (r->barred > 0)
		lab_note(&cli->notes,
			 "%zu triple%s that fkge unlearn has taken out %s left out (--unlearned: "
			 "taken in again)\n",
			 r->barred, r->barred > 1 ? "s" : "", r->barred > 1 ? "are" : "is");
	if (r->spaced > 0 && !trimmed)
		lab_note(&cli->notes,
			 "%zu field%s with a space at an end: \"a \" and \"a\" are two names, here "
			 "and for partners (--trim takes such spaces off)\n",
			 r->spaced, r->spaced > 1 ? "s" : "");
}

/* A graph of other names has none of the old one's, and partners would find fewer shared ones. */
static int replace_graph(struct cli *cli, struct folder *f, const struct graph *g,
			 const struct store_batch *with, struct err *e)
{
	size_t before = 0, after = 0;
	int rc = store_count_aliases(f->store, &before, e);

	if (rc == 0)
		rc = store_put_graph(f->store, g, with, e);
	if (rc == 0)
		rc = store_count_aliases(f->store, &after, e);
	if (rc != 0)
		return rc;
	cli_put_count(cli, "aliases_dropped", before - after);
	if (before > after)
		lab_note(&cli->notes,
			 "The names are not those of the graph before: %zu alias%s dropped; read "
			 "them again (fkge import --alias)\n",
			 before - after, before - after > 1 ? "es are" : " is");
	return 0;
}

/* Before it is found out by train, with what would help. */
static void report_no_valid(const struct cli *cli, const struct graph *g,
			    const struct graph_load_report *r, const struct graph_load_options *o)
{
	size_t n = g->split[GRAPH_TRAIN].n + g->split[GRAPH_TEST].n;
	size_t hundredths = (99 + n) / n; /* the share of one triple */
	double least = (double)hundredths / 100;
	char larger[64] = "more triples: one whose name stands once stays in train";
	const char *how = larger;

	if (!r->split_made)
		how = g->split[GRAPH_TEST].n > 0
			      ? "with valid beside train"
			      : "--valid 0.1 --test 0.1, or with valid beside train";
	else if ((double)n * o->valid_share < 1 && least + o->test_share < 1)
		snprintf(larger, sizeof larger, "a larger --valid (%g)", least);
	lab_note(&cli->notes,
		 "No triple is in valid, so nothing can be scored and train has nothing to go by: "
		 "import again with --replace and %s\n",
		 how);
}

/* 0: the tables past memory are of this graph; ERR_NOTFOUND: there are none. */
static int open_tables_past(const struct folder *f, const struct graph *g, struct err *why)
{
	struct store_checkpoint info;
	struct kge_emb *emb;
	int rc = folder_load_tables(f, g, &emb, &info, why);

	kge_emb_free(emb);
	return rc;
}

/* The store has none where the names are others; tables past memory stay where they are, of use or
 * not. */
static int has_best(struct cli *cli, const struct folder *f, const struct graph *g, bool *best,
		    struct err *e)
{
	struct store_checkpoint found;
	struct err why = { 0 };
	int rc = store_find_best(f->store, &found, e), tables;

	*best = rc == 0 && found.id != 0;
	if (rc != 0 || *best)
		return rc;
	tables = open_tables_past(f, g, &why);
	*best = tables == 0;
	if (tables != 0 && tables != ERR_NOTFOUND)
		lab_note(&cli->notes, "The best tables cannot be used any more: %s\n", why.text);
	return 0;
}

/* Triples of the split that were in one of the old graph, which has the same names. */
static size_t count_former(const struct graph *g, enum graph_split s, const struct graph *old,
			   enum graph_split of)
{
	struct graph_index *before = graph_index_new(old, 1u << of);
	size_t n = 0;

	for (size_t i = 0; i < g->split[s].n; i++)
		n += graph_index_has(before, g->split[s].at[i]);
	graph_index_free(before);
	return n;
}

/* Where the names are the same the best state stays: is it still judged by what it has not seen? */
static int report_best(struct cli *cli, const struct folder *f, const struct graph *g,
		       const struct graph *old, struct err *e)
{
	size_t learnt = 0;
	bool best = false;
	int rc = old != NULL ? has_best(cli, f, g, &best, e) : 0;

	if (best)
		learnt = count_former(g, GRAPH_VALID, old, GRAPH_TRAIN) +
			 count_former(g, GRAPH_TEST, old, GRAPH_TRAIN);
	cli_put_count(cli, "learnt_before", learnt);
	if (learnt > 0)
		lab_note(&cli->notes,
			 "The best state stays, and %zu triples of valid and test were in train "
			 "before: figures of it, and of what is trained from it, are too good and "
			 "say little (fkge train --fresh begins anew)\n",
			 learnt);
	else if (best && (g->split[GRAPH_VALID].n != old->split[GRAPH_VALID].n ||
			  count_former(g, GRAPH_VALID, old, GRAPH_VALID) < g->split[GRAPH_VALID].n))
		lab_note(&cli->notes,
			 "The best state stays, with its score on the valid triples of before: "
			 "fkge train judges it by these first (--fresh begins anew)\n");
	return rc;
}

/* was: the best state before, of which no name may be left; id 0: there was none. */
static int report_saved(struct cli *cli, const struct folder *f, const struct store_checkpoint *was,
			struct err *e)
{
	struct store_checkpoint now = { 0 };
	int rc = store_find_best(f->store, &now, e);
	bool saved = rc == 0 && was->id != 0 && now.id != was->id;

	cli_put_count(cli, "saved_state", saved ? was->id : 0);
	if (saved)
		lab_note(&cli->notes,
			 "The names are not those of before: the best state is kept as saved state "
			 "%llu (with that graph imported again: fkge checkpoint restore %llu)\n",
			 (unsigned long long)was->id, (unsigned long long)was->id);
	return rc;
}

static void report_suited(struct cli *cli, const struct config *c)
{
	cli_put_text(cli, "suited", c->suited != NULL ? c->suited : "");
	if (c->suited != NULL)
		cli_say_wrapped(cli, 0, "%s", c->suited);
}

static void report_advice(struct cli *cli, const struct config *c, const struct graph *g,
			  const struct graph_load_report *r, const struct graph_load_options *o)
{
	report_suited(cli, c);
	report_unread(cli, r);
	report_oddities(cli, r, o->trim);
	if (g->split[GRAPH_VALID].n == 0 && !(c->train.kge.dp.epsilon > 0))
		report_no_valid(cli, g, r, o);
}

/* Are all names of one in the other? */
static bool has_names(const struct graph_vocab *all, const struct graph_vocab *some)
{
	bool has = true;

	for (uint32_t k = 0; k < graph_vocab_count(some) && has; k++) {
		size_t len;
		const char *name = graph_vocab_name(some, k, &len);

		has = graph_vocab_find(all, name, len) != GRAPH_NONE;
	}
	return has;
}

static bool names_are_those_of(const struct graph_vocab *a, const struct graph_vocab *b)
{
	return graph_vocab_count(a) == graph_vocab_count(b) && has_names(a, b);
}

static int suits_a_state(const struct folder *f, const struct graph *g, bool *suits, struct err *e)
{
	struct store_checkpoint *all;
	struct err ignored = { 0 };
	size_t n;
	int rc = store_checkpoints(f->store, &all, &n, e);

	*suits = rc == 0 && open_tables_past(f, g, &ignored) == 0;
	for (size_t k = 0; k < n && !*suits; k++)
		*suits = store_checkpoint_is_of(&all[k], g);
	free(all);
	return rc;
}

/* As the graph that is there, so that the same names keep their rows; but one that was here before
 * stays as the file has it where saved states are numbered so, and they can be restored. */
static int number_graph(const struct folder *f, struct graph *g, const struct graph *old,
			bool *other_names, struct err *e)
{
	bool suits = false;
	int rc = 0;

	*other_names = !names_are_those_of(g->entities, old->entities) ||
		       !names_are_those_of(g->relations, old->relations);
	if (*other_names)
		rc = suits_a_state(f, g, &suits, e);
	if (rc == 0 && !suits)
		graph_number_like(g, old);
	return rc;
}

/* What rounds and partners have left is of the old names' rows. */
static void begin_anew(struct store_batch *b)
{
	struct agent_history none = { 0 };
	struct buf history = { 0 };

	agent_history_write(&none, &history);
	store_batch_meta_owned(b, AGENT_META_HISTORY, history.base, history.len);
	store_batch_meta(b, AGENT_META_PART, "", 0);
	store_batch_meta(b, AGENT_META_VALIDATION, "", 0);
}

struct reading {
	struct graph_load_options how;
	struct graph_load_report report;
	uint8_t key[GRAPH_BLANK_KEY];
	struct unlearned unlearned;
	bool stale; /* which is of before there was a key: blank nodes had other names */
};

/* The graph, what the import says of its names (nothing said: none), their key, what is not barred
 * any more, and an end of what belongs to other names: one transaction, or a triple would be in the
 * graph and on the list of those taken out, and rows under names that are not theirs. */
static int put_import(struct cli *cli, struct folder *f, const struct import_options *o,
		      struct reading *r, struct graph *g, const struct graph *old, struct err *e)
{
	struct store_batch b = { 0 };
	struct buf saved = { 0 };
	bool other_names = false;
	int rc = old != NULL ? number_graph(f, g, old, &other_names, e) : 0;

	graph_words_save(r->how.words, g, &saved);
	store_batch_meta(&b, FOLDER_META_WORDS, saved.base, saved.len);
	if (!r->stale)
		store_batch_meta(&b, FOLDER_META_BLANKS, r->key, GRAPH_BLANK_KEY);
	if (o->unlearned && unlearned_drop_came(&r->unlearned))
		unlearned_put(&r->unlearned, &b);
	if (other_names)
		begin_anew(&b);
	if (rc == 0)
		rc = replace_graph(cli, f, g, &b, e);
	store_batch_release(&b);
	buf_release(&saved);
	return rc;
}

static void report_words(struct cli *cli, const struct import_options *o,
			 const struct graph_words *words, const struct graph *g)
{
	size_t labels = graph_words_count(words, g);

	cli_put_count(cli, "prefixes", o->n_prefixes);
	cli_put_count(cli, "labels", labels);
	if (o->load.labels != NULL)
		cli_say(cli, "%zu names have a label\n", labels);
}

static int declare_prefixes(struct graph_words *words, const struct import_options *o,
			    struct err *e)
{
	int rc = 0;

	for (size_t i = 0; i < o->n_prefixes && rc == 0; i++)
		rc = graph_words_prefix(words, o->prefixes[i], e);
	return rc;
}

/* Bars nothing, but those that came are known then. */
static bool note_unlearned(void *ctx, const char *const name[3], const size_t len[3])
{
	(void)unlearned_bars(ctx, name, len);
	return false;
}

/* A triple with a blank node that was taken out under its name of before is not known by that of
 * now: no import may bring it back unsaid. */
static int check_stale(struct reading *r, const struct graph *g, const struct import_options *o,
		       struct err *e)
{
	bool any = false, placed;

	for (uint32_t id = 0; id < graph_vocab_count(g->entities) && r->report.rdf && !any; id++) {
		size_t len;
		const char *name = graph_vocab_name(g->entities, id, &len);

		any = graph_is_blank(name, len, &placed);
	}
	if (!r->stale || !any)
		return 0;
	r->stale = false; /* where it is taken in, it is by the names of now */
	if (o->unlearned)
		return 0;
	return err_set(
		e, ERR_INPUT,
		"%s: fkge unlearn has taken out %zu triple%s here when blank nodes had other "
		"names, so it cannot be seen whether the file has them: take them out of it, "
		"and import it with --unlearned",
		o->path, r->unlearned.n, r->unlearned.n == 1 ? "" : "s");
}

/* The key is the folder's, so that a name stays when the file changes; drawn for its first graph.
 */
static int read_for_import(struct graph **g, struct reading *r, const struct folder *f,
			   const struct import_options *o, struct err *e)
{
	bool has;
	int rc = unlearned_load(&r->unlearned, f->store, e);

	r->how.blank_key = r->key;
	r->how.by_names = f->config.train.kge.dp.epsilon > 0;
	r->how.bars = o->unlearned ? note_unlearned : unlearned_bars;
	r->how.bars_ctx = &r->unlearned;
	if (rc == 0)
		rc = folder_blank_key(f, r->key, &has, e);
	if (rc == 0 && !has)
		secret_draw(NULL, r->key, sizeof(r->key));
	r->stale = rc == 0 && !has && r->unlearned.n > 0;
	if (rc == 0)
		rc = graph_load(g, o->path, &r->how, &r->report, e);
	return rc == 0 ? check_stale(r, *g, o, e) : rc;
}

static void release_reading(struct reading *r)
{
	sodium_memzero(r->key, sizeof(r->key));
	unlearned_release(&r->unlearned);
	graph_words_free(r->how.words);
}

static int import_graph(struct cli *cli, struct folder *f, const struct import_options *o,
			struct err *e)
{
	struct reading r = { .how = o->load };
	struct graph *g = NULL, *old = NULL;
	struct waiting *wait = lab_waiting_begin(&cli->notes, "reading");
	struct store_checkpoint was = { 0 };
	int rc;

	r.how.words = graph_words_new();
	rc = declare_prefixes(r.how.words, o, e);
	if (rc == 0)
		rc = load_old(f, o->replace, &old, e);
	if (rc == 0)
		rc = read_for_import(&g, &r, f, o, e);
	if (rc == 0)
		rc = graph_load_refuse_idle(&o->load, &r.report, o->path,
					    "--keep-literals, --drop-blank-nodes and --labels",
					    "--keep-header and --trim", e);
	if (rc == 0)
		rc = store_find_best(f->store, &was, e);
	if (rc == 0)
		rc = put_import(cli, f, o, &r, g, old, e);
	lab_waiting_end(wait);
	if (rc == 0)
		config_suit(&f->config, g);
	if (rc == 0)
		report_graph(cli, g, &r.report);
	if (rc == 0)
		report_words(cli, o, r.how.words, g);
	if (rc == 0)
		rc = report_best(cli, f, g, old, e);
	if (rc == 0)
		rc = report_saved(cli, f, &was, e);
	if (rc == 0)
		report_advice(cli, &f->config, g, &r.report, &o->load);
	release_reading(&r);
	graph_free(g);
	graph_free(old);
	return rc;
}

/* ---- alias tables ---- */

struct alias_table {
	struct graph_aliases *of[2]; /* of entities, of relations: owns the names */
	struct graph_alias_report report[2];
	struct store_alias *at;
	size_t n;
};

static const char alias_tags[] = { 'e', 'r' };

static void collect_aliases(struct alias_table *t, int k, uint32_t n)
{
	for (uint32_t id = 0; id < n; id++) {
		struct store_alias a = { .tag = alias_tags[k], .id = id };

		a.name = graph_alias_of(t->of[k], id, &a.len);
		if (a.name != NULL)
			t->at[t->n++] = a;
	}
}

static int refuse_conflicts(struct cli *cli, const struct alias_table *t, const char *path,
			    struct err *e)
{
	size_t n = t->report[0].conflicts.n + t->report[1].conflicts.n;

	cli_tell_conflicts(cli, &t->report[0].conflicts, false);
	cli_tell_conflicts(cli, &t->report[1].conflicts, false);
	return err_set(e, ERR_INPUT,
		       "%s: %zu line%s above: keep one pair for each name, or say by --match which "
		       "pairs count",
		       path, n, n == 1 ? " as" : "s as");
}

/* A pipe has nothing left for the second time, so relations would be without names. */
static int refuse_pipe(const char *path, struct err *e)
{
	struct stat st;

	if (stat(path, &st) != 0 || S_ISREG(st.st_mode))
		return 0;
	return err_set(e, ERR_INPUT,
		       "%s is no regular file, and an alias table is read twice, for entities and "
		       "for relations: put it into a file first",
		       path);
}

/* One file may name entities and relations: it is read once for each. */
static int read_aliases(struct cli *cli, struct alias_table *t, const struct graph *g,
			const struct import_options *o, struct err *e)
{
	const struct graph_vocab *const own[] = { g->entities, g->relations };
	enum graph_match match = o->match < 0 ? GRAPH_MATCH_REFUSE : (enum graph_match)o->match;
	int rc = refuse_pipe(o->path, e);

	if (rc != 0)
		return rc;
	t->at = mem_array((size_t)graph_vocab_count(own[0]) + graph_vocab_count(own[1]) + 1,
			  sizeof(*t->at));
	for (int k = 0; k < 2; k++) {
		rc = graph_aliases_load(&t->of[k], o->path, own[k], o->swap, match, &t->report[k],
					e);
		if (rc == 0)
			collect_aliases(t, k, graph_vocab_count(own[k]));
		else if (t->report[k].conflicts.n == 0)
			return rc; /* the file itself cannot be read */
	}
	if (match == GRAPH_MATCH_REFUSE && t->report[0].conflicts.n + t->report[1].conflicts.n > 0)
		return refuse_conflicts(cli, t, o->path, e);
	return rc;
}

static void release_aliases(struct alias_table *t)
{
	graph_aliases_free(t->of[0]);
	graph_aliases_free(t->of[1]);
	graph_alias_report_release(&t->report[0]);
	graph_alias_report_release(&t->report[1]);
	free(t->at);
}

static void report_aliases(struct cli *cli, const struct alias_table *t, size_t replaced)
{
	const struct graph_alias_report *e = &t->report[0], *r = &t->report[1];
	size_t known = (e->lines - e->strangers) + (r->lines - r->strangers);
	size_t unknown = e->lines > known ? e->lines - known : 0;

	cli_put_count(cli, "lines", e->lines);
	cli_put_count(cli, "entities", e->linked);
	cli_put_count(cli, "relations", r->linked);
	cli_put_count(cli, "unknown", unknown);
	cli_put_count(cli, "clashes", e->clashes + r->clashes);
	cli_put_count(cli, "shadowed", e->shadowed + r->shadowed);
	cli_put_count(cli, "replaced", replaced);
	cli_say(cli,
		"aliases for %zu entities and %zu relations from %zu lines; %zu lines name nothing "
		"in this graph, %zu are left out by --match\n",
		e->linked, r->linked, e->lines, unknown, e->clashes + r->clashes);
	if (replaced > 0)
		cli_say(cli, "in place of the table before, of %zu aliases\n", replaced);
	if (e->shadowed + r->shadowed > 0)
		lab_note(&cli->notes,
			 "%zu names for others are own names of something else here, which has no "
			 "alias: of the two, the one whose own name is less as bytes is compared\n",
			 e->shadowed + r->shadowed);
}

/* *replaced: so many were there toward the same partners, and are not any more. */
static int put_aliases(struct folder *f, const struct alias_table *t, const char *peer,
		       size_t *replaced, struct err *e)
{
	uint8_t key[STORE_KEY];
	size_t before = 0, after = 0;
	int rc = store_count_aliases(f->store, &before, e);

	if (rc == 0 && peer != NULL)
		rc = cli_peer_key(f->store, peer, key, e);
	if (rc == 0)
		rc = store_put_aliases(f->store, peer != NULL ? key : NULL, t->at, t->n, e);
	if (rc == 0)
		rc = store_count_aliases(f->store, &after, e);
	*replaced = before + t->n - after;
	return rc;
}

/* A file that names nothing here is most likely a wrong one; an empty one takes aliases away. */
static int refuse_idle(const struct alias_table *t, const char *path, struct err *e)
{
	if (t->n > 0 || t->report[0].lines == 0)
		return 0;
	if (t->report[0].clashes + t->report[1].clashes > 0)
		return err_set(e, ERR_INPUT, "%s: --match leaves out every line of this graph",
			       path);
	return err_set(e, ERR_INPUT,
		       "%s: none of its %zu names is of this graph (is the own name the second "
		       "one? then --swap)",
		       path, t->report[0].lines);
}

static int import_aliases(struct cli *cli, struct folder *f, const struct import_options *o,
			  struct err *e)
{
	struct alias_table t = { 0 };
	struct graph *g;
	size_t replaced = 0;
	int rc = store_load_graph(f->store, &g, e);

	if (rc == ERR_NOTFOUND)
		err_set(e, rc, "import the graph first: an alias names something in it");
	if (rc != 0)
		return rc;
	rc = read_aliases(cli, &t, g, o, e);
	if (rc == 0)
		rc = refuse_idle(&t, o->path, e);
	if (rc == 0)
		rc = put_aliases(f, &t, o->peer, &replaced, e);
	if (rc == 0)
		report_aliases(cli, &t, replaced);
	release_aliases(&t);
	graph_free(g);
	return rc;
}

static const char *const import_doc =
	"Read a knowledge graph: lines head TAB relation TAB tail (.tsv, .txt), "
	"N-Triples (.nt), Turtle (.ttl), N-Quads (.nq) or TriG (.trig), in one "
	"file or in a folder's train, valid "
	"and test, plain, .gz or .zst; or a folder in OpenKE's layout. Or, with "
	"--alias, other names for what is in the graph. Or, with --embeddings, a "
	"folder of embeddings.\v"
	"Of RDF, the whole IRI is the name; names of blank nodes get a mark of this "
	"folder, so that they are nobody else's. With --keep-literals, \"text\"@en is "
	"the name of an entity. In OpenKE's layout, ids are names where there is no "
	"entity2id.txt or relation2id.txt.\n\n"
	"An alias table pairs each name with one other. Where it does not, --match "
	"says what counts: refuse: nothing, all conflicts are listed; first: a "
	"line, "
	"unless one that counts has one of its names; unique: names that have one "
	"partner; best: the line with the highest score (a third column) first, of "
	"equal ones the lesser names. No two entities get one alias. A table takes the "
	"place of the one before, an empty one takes it away. (fkge align makes tables of pairwise "
	"files of several "
	"graphs.)\n\n"
	"Embeddings are matched by name: each of the graph exactly once, in the "
	"shape "
	"that agent.yaml says (model.kind, dim, and gamma, by which rotate measures "
	"angles). Of PyKEEN, LibKGE, ssl-relation-prediction: their state as "
	"model.safetensors with their file of names; of RotatE's code: its .npy "
	"and .dict; PyTorch's pickles are not read. They become the best state with "
	"the score that valid gives them, "
	"and the best so far a saved one; fkge train goes on from them.\n\n"
	"Several folders of embeddings are an ensemble: models of one kind, trained "
	"apart (train.seed), side by side as one whose score is the mean of theirs. "
	"model.dim is the sum of their dims, which are equal; not for L2, TransH, TransR "
	"and TransD.\n\n"
	"Examples:\n  fkge -d acme import data/acme/\n"
	"  fkge -d acme import products.ttl.gz --valid 0.05 --test 0.05\n"
	"  fkge -d acme import drugs.nt -p ex=http://example.org/ --labels en\n"
	"  fkge -d acme import benchmarks/FB15K237 --format openke\n"
	"  fkge -d acme import --embeddings vectors/\n"
	"  fkge -d acme import --embeddings seed1/ seed2/ seed3/\n"
	"  fkge -d acme import --alias products.tsv\n"
	"  fkge -d acme import --alias --peer genebank genes.tsv.gz";

int cmd_import(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct import_options o = { .match = -1 };
	const struct cli_syntax s = {
		.options = import_options,
		.parse = parse_import,
		.args = "PATH\n--embeddings FOLDER...",
		.doc = import_doc,
		.input = &o,
	};
	struct folder f;
	int rc;

	graph_load_defaults(&o.load);
	cli_parse(cli, &s, argc, argv);
	if (o.embeddings)
		return tables_import(cli, o.folders, o.n_folders, o.tables, e);
	rc = folder_open(&f, cli->folder, FOLDER_CONFIG | FOLDER_IDENTITY | FOLDER_WRITE, e);
	if (rc != 0)
		return rc;
	rc = o.alias ? import_aliases(cli, &f, &o, e) : import_graph(cli, &f, &o, e);
	folder_close(&f);
	return rc;
}

/* ---- export ---- */

struct export_options {
	const char *folder, *word; /* of --format */
	int format;		   /* of enum kge_table_format */
	const char *checkpoint;	   /* number or name; NULL: the best */
	bool triples;
};

static const struct argp_option export_options[] = {
	{ "format", 'f', "WORD", 0,
	  "npy (arrays with files of names), tsv, word2vec, openke, safetensors (with what they "
	  "are) "
	  "or pykeen (default npy; of triples: tsv, openke or pykeen, default tsv)",
	  0 },
	{ "checkpoint", 'c', "STATE", 0, "a saved state, by its number or name (default: the best)",
	  0 },
	{ "triples", 't', NULL, 0, "the graph instead of its embeddings", 0 },
	{ 0 },
};

/* Written; of embeddings, rotate is read alone. */
static const char *const written_words[] = { [KGE_NPY] = "npy",
					     [KGE_TSV] = "tsv",
					     [KGE_WORD2VEC] = "word2vec",
					     [KGE_OPENKE] = "openke",
					     [KGE_SAFETENSORS] = "safetensors",
					     [KGE_PYKEEN] = "pykeen",
					     NULL };
static const char *const written_triples[] = { "tsv", "openke", "pykeen", NULL };

/* Known once all options are. */
static int take_written(const struct export_options *o, const struct argp_state *state)
{
	static const enum kge_table_format of_triples[] = { KGE_TSV, KGE_OPENKE, KGE_PYKEEN };

	if (o->word == NULL)
		return o->triples ? KGE_TSV : KGE_NPY;
	if (o->triples)
		return (int)of_triples[cli_word(state, o->word, "--format", written_triples)];
	return cli_word(state, o->word, "--format", written_words);
}

static error_t parse_export(int key, char *arg, struct argp_state *state)
{
	struct export_options *o = state->input;

	switch (key) {
	case 'f':
		o->word = arg;
		return 0;
	case 'c':
		o->checkpoint = arg;
		return 0;
	case 't':
		o->triples = true;
		return 0;
	case ARGP_KEY_ARG:
		if (o->folder != NULL)
			return ARGP_ERR_UNKNOWN;
		o->folder = arg;
		return 0;
	case ARGP_KEY_END:
		if (o->folder == NULL)
			argp_usage(state);
		o->format = take_written(o, state);
		if (o->triples && o->checkpoint != NULL)
			argp_error(state, "--checkpoint does not go with --triples");
		return 0;
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static int export_triples(struct cli *cli, const struct work *w, const struct export_options *o,
			  struct err *e)
{
	const struct graph *g = w->graph;
	size_t n = g->split[GRAPH_TRAIN].n + g->split[GRAPH_VALID].n + g->split[GRAPH_TEST].n;
	int rc = kge_export_graph(g, o->folder, (enum kge_table_format)o->format, e);

	if (rc != 0)
		return rc;
	cli_put_count(cli, "triples", n);
	cli_say(cli, "%zu triples written to %s\n", n, o->folder);
	return 0;
}

static int export_tables(struct cli *cli, struct work *w, const struct export_options *o,
			 struct err *e)
{
	enum kge_table_format format = (enum kge_table_format)o->format;
	struct kge_told told = { 0 };
	int rc = lab_work_load_state(w, o->checkpoint, e);

	/* ids follow the order of the triples, of which these tables must not tell */
	told.by_name = rc == 0 && config_score_is_private(w->info.protocol);
	if (told.by_name)
		rc = folder_check_blanks(&w->folder, w->graph, e);
	told.protocol = w->info.protocol;
	told.valid_score = told.by_name ? NAN : w->info.valid_score;
	told.private_steps = told.by_name ? (uint64_t)w->info.valid_score : 0;
	told.epochs = w->info.epochs;
	if (rc == 0)
		rc = kge_export(w->emb, w->graph, o->folder, format, &told, e);
	if (rc != 0)
		return rc;
	cli_put(cli, "checkpoint", lab_work_checkpoint_json(&w->info));
	cli_say(cli, "%u entities and %u relations written to %s\n", w->emb->n_ent, w->emb->n_rel,
		o->folder);
	return 0;
}

int cmd_export(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct export_options o = { 0 };
	const struct cli_syntax s = {
		.options = export_options,
		.parse = parse_export,
		.args = "FOLDER",
		.doc = "Write the embeddings by name: entities and relations, one row a name; or "
		       "the triples.\v"
		       "npy: entities.npy, entities.txt and the same of relations. tsv: "
		       "entities.tsv, name first. word2vec: entities.vec, text with a first line "
		       "of numbers, a space in a name written %20, and the % of a %20 or %25 that "
		       "was there %25. openke: entity2vec.vec in the order of entity2id.txt. "
		       "safetensors: both tables in model.safetensors, in its header model, "
		       "dimension, gamma, layout, digest and score; config.json, a card "
		       "(README.md). pykeen: the same by PyKEEN's names and conventions, for the "
		       "models that it scores as we do.\n\n"
		       "Rows of complex and rotate: real parts, then imaginary parts (of a "
		       "relation of rotate: angles times (gamma + 2) / (pi dim)). With "
		       "_reciprocal: a relation's row for tails, then its "
		       "row for heads. TransH, TransR, TransD: the translation first, then what "
		       "projects (TransH: the normal, of any length; TransR: the matrix, row by "
		       "row); an entity of TransD has its projection behind its vector.\n\n"
		       "Examples:\n  fkge -d acme export vectors/ --format npy\n"
		       "  fkge -d acme export card/ --format safetensors\n"
		       "  fkge -d acme export graph/ --triples --format openke",
		.input = &o,
	};
	struct work w;
	int rc;

	cli_parse(cli, &s, argc, argv);
	rc = lab_work_open(&w, cli->folder, FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = o.triples ? export_triples(cli, &w, &o, e) : export_tables(cli, &w, &o, e);
	if (rc == 0) {
		cli_put_text(cli, "folder", o.folder);
		cli_put_text(cli, "format", kge_table_words[o.format]);
	}
	lab_work_close(&w);
	return rc;
}
