/* cli/predict.c - predict and similar: what the best state (or a saved one) says about a name. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/commands.h"
#include "cli/predict.h"
#include "cli/rdf_out.h"
#include "cli/shown.h"
#include "graph/lines.h"
#include "kge/ask.h"
#include "lab/work.h"

/* ---- predict ---- */

enum {
	KEY_BATCH = 0x2000,
	KEY_FILTERED,
	KEY_TYPED,
	KEY_RELATIONS,
	KEY_BY,
	KEY_MISSING,
	KEY_FORMAT
};

struct predict_options {
	const char *at[3];
	int n;
	const char *batch; /* NULL: the question is in `at` */
	const char *missing;
	int format;		/* of rdf_out_words; -1: not said */
	const char *checkpoint; /* number or name; NULL: the best */
	bool filtered;		/* was said; how.with_true has what counts */
	struct kge_ask_options how;
};

static const struct argp_option predict_options[] = {
	{ "top", 'k', "N", 0, "so many answers (default 10)", 0 },
	{ "filtered", KEY_FILTERED, NULL, 0, "leave out what the graph holds already (the default)",
	  0 },
	{ "known", 'a', NULL, 0, "show answers that the graph holds already, too, and mark them",
	  0 },
	{ "typed", KEY_TYPED, NULL, 0,
	  "only answers that the graph has on that side of the relation", 0 },
	{ "batch", KEY_BATCH, "FILE", 0,
	  "questions from a file of lines HEAD TAB RELATION TAB TAIL; - is standard input", 0 },
	{ "missing", KEY_MISSING, "WORD", 0,
	  "what stands for the missing name (default ?): for graphs in which ? is a name", 0 },
	{ "format", KEY_FORMAT, "WORD", 0,
	  "answers as triples with their truth: ntriples or rdf-star", 0 },
	{ "checkpoint", 'c', "STATE", 0, "a saved state, by its number or name (default: the best)",
	  0 },
	{ 0 },
};

static error_t parse_end(const struct predict_options *o, struct argp_state *state)
{
	if (o->batch != NULL && o->n > 0)
		argp_error(state, "with --batch, the questions stand in the file");
	if (o->filtered && o->how.with_true)
		argp_error(state, "--filtered leaves out what --known shows: say one of them");
	if (o->batch == NULL && o->n < 3)
		argp_usage(state);
	return 0;
}

static error_t parse_predict(int key, char *arg, struct argp_state *state)
{
	struct predict_options *o = state->input;

	switch (key) {
	case 'k':
		o->how.top = (size_t)cli_count(state, arg, "--top", 1, 1000000);
		return 0;
	case KEY_FILTERED:
		o->filtered = true;
		return 0;
	case 'a':
		o->how.with_true = true;
		return 0;
	case KEY_TYPED:
		o->how.typed = true;
		return 0;
	case KEY_BATCH:
		o->batch = arg;
		return 0;
	case KEY_MISSING:
		o->missing = arg;
		return 0;
	case KEY_FORMAT:
		o->format = cli_word(state, arg, "--format", rdf_out_words);
		return 0;
	case 'c':
		o->checkpoint = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->n >= 3)
			return ARGP_ERR_UNKNOWN;
		o->at[o->n++] = arg;
		return 0;
	case ARGP_KEY_END:
		return parse_end(o, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

struct predictor {
	struct cli *cli;
	struct work w;
	struct kge_asker *asker;
	struct kge_answer *answers; /* room for how.top */
	const char *missing;
	struct rdf_out *out; /* NULL: no RDF is wanted */
	struct kge_ask_options how;
};

static int read_question(const struct predictor *p, const char *const at[3], struct graph_triple *q,
			 struct err *e)
{
	static const char *const what[] = { "entity", "relation", "entity" };
	uint32_t *id[3] = { &q->head, &q->rel, &q->tail };
	int rc = 0, open = 0;

	for (int k = 0; k < 3 && rc == 0; k++) {
		const struct graph *g = p->w.graph;

		*id[k] = GRAPH_NONE;
		if (strcmp(at[k], p->missing) == 0)
			open++;
		else
			rc = shown_find(p->w.words, k == 1 ? g->relations : g->entities, what[k],
					at[k], id[k], e);
	}
	if (rc == 0 && open != 1)
		return err_set(e, ERR_USAGE, "write %.100s for exactly one of HEAD, RELATION, TAIL",
			       p->missing);
	return rc;
}

static const char *answer_name(const struct predictor *p, const struct graph_triple *q, uint32_t id)
{
	const struct graph *g = p->w.graph;

	return graph_vocab_name(q->rel == GRAPH_NONE ? g->relations : g->entities, id, NULL);
}

static json_t *answers_json(const struct predictor *p, const struct graph_triple *q, size_t n)
{
	json_t *list = json_array();

	for (size_t k = 0; k < n; k++) {
		const struct kge_answer *a = &p->answers[k];
		json_t *j = json_object();

		json_object_set_new(j, "rank", json_integer((json_int_t)k + 1));
		json_object_set_new(j, "name", store_json_of_text(answer_name(p, q, a->id)));
		json_object_set_new(j, "score", store_json_of_number((double)a->score));
		json_object_set_new(j, "known", json_boolean(a->is_true));
		shown_put_label(j, p->w.words, answer_name(p, q, a->id));
		json_array_append_new(list, j);
	}
	return list;
}

static void put_rdf_answers(const struct predictor *p, const struct graph_triple *q, size_t n)
{
	for (size_t k = 0; k < n; k++) {
		struct graph_triple t = *q;
		uint32_t *open = t.head == GRAPH_NONE  ? &t.head
				 : t.rel == GRAPH_NONE ? &t.rel
						       : &t.tail;

		*open = p->answers[k].id;
		rdf_out_put(
			p->out, t,
			rdf_out_truth(p->out, t, q->head == GRAPH_NONE ? GRAPH_HEAD : GRAPH_TAIL));
	}
}

static void say_one_answers(const struct predictor *p, const struct graph_triple *q, size_t n)
{
	struct buf text = { 0 };

	for (size_t k = 0; k < n; k++)
		cli_say(p->cli, "%5zu  %10.4f  %s%s\n", k + 1, (double)p->answers[k].score,
			shown_name(p->w.words, answer_name(p, q, p->answers[k].id), &text),
			p->answers[k].is_true ? "  (known)" : "");
	buf_release(&text);
}

static int predict_one(struct predictor *p, const char *const at[3], struct err *e)
{
	struct graph_triple q;
	size_t n;
	int rc = read_question(p, at, &q, e);

	if (rc != 0)
		return rc;
	n = kge_ask(p->asker, q, &p->how, p->answers);
	if (p->out != NULL)
		put_rdf_answers(p, &q, n);
	else
		say_one_answers(p, &q, n);
	if (n == 0)
		lab_note(&p->cli->notes, "Nothing is left to answer with%s\n",
			 p->how.with_true ? "" : "; --known shows what the graph holds");
	cli_put(p->cli, "answers", answers_json(p, &q, n));
	return 0;
}

int predict_tell(const struct predict_tables *t, const char *const triple[3],
		 const struct kge_ask_options *how, json_t *reply, struct err *e)
{
	struct predictor p = { .w = { .graph = t->graph, .words = t->words },
			       .asker = t->asker,
			       .missing = "",
			       .how = *how };
	const char *at[3];
	struct graph_triple q;
	size_t n;
	int rc;

	for (int k = 0; k < 3; k++)
		at[k] = triple[k] != NULL ? triple[k] : p.missing;
	rc = read_question(&p, at, &q, e);
	if (rc != 0)
		return rc;
	p.answers = mem_array(how->top, sizeof(*p.answers));
	n = kge_ask(t->asker, q, how, p.answers);
	json_object_set_new(reply, "answers", answers_json(&p, &q, n));
	json_object_set_new(reply, "filtered", json_boolean(!how->with_true));
	json_object_set_new(reply, "typed", json_boolean(how->typed));
	json_object_set_new(reply, "checkpoint", lab_work_checkpoint_json(t->info));
	free(p.answers);
	return 0;
}

/* ---- many questions: answered line by line ---- */

/* For people and for cut(1): the completed triple, its rank, its score, known or new. */
static void say_triples(const struct predictor *p, const char *const at[3],
			const struct graph_triple *q, size_t n)
{
	struct buf text = { 0 };

	for (size_t k = 0; k < n; k++) {
		const struct kge_answer *a = &p->answers[k];
		const char *name = graph_words_short(p->w.words, answer_name(p, q, a->id), &text);

		cli_say(p->cli, "%s\t%s\t%s\t%zu\t%.4f\t%s\n", q->head == GRAPH_NONE ? name : at[0],
			q->rel == GRAPH_NONE ? name : at[1], q->tail == GRAPH_NONE ? name : at[2],
			k + 1, (double)a->score, a->is_true ? "known" : "new");
	}
	buf_release(&text);
	fflush(stdout);
}

static json_t *question_json(const char *const at[3])
{
	json_t *j = json_array();

	for (int k = 0; k < 3; k++)
		json_array_append_new(j, store_json_of_text(at[k]));
	return j;
}

/* One line's answers; its mistakes are said and counted, and the next line is read. */
static int answer_line(struct predictor *p, struct graph_lines *l, char *line, size_t len,
		       size_t number, struct err *e)
{
	static const char *const what[] = { "head", "relation", "tail" };
	struct lines_field f[3];
	struct graph_triple q;
	json_t *j = json_object();
	int rc = graph_lines_fields(l, line, len, f, what, 3, e);

	json_object_set_new(j, "line", json_integer((json_int_t)number));
	if (rc == 0) {
		const char *const at[3] = { f[0].text, f[1].text, f[2].text };

		json_object_set_new(j, "question", question_json(at));
		rc = read_question(p, at, &q, e);
		if (rc != 0)
			graph_lines_bad(l, e, "%.400s", e->text);
	}
	if (rc != 0) {
		fprintf(stderr, "fkge: %s\n", e->text);
		json_object_set_new(j, "error", store_json_of_text(e->text));
	} else {
		const char *const at[3] = { f[0].text, f[1].text, f[2].text };
		size_t n = kge_ask(p->asker, q, &p->how, p->answers);

		if (p->out != NULL)
			put_rdf_answers(p, &q, n);
		else
			say_triples(p, at, &q, n);
		json_object_set_new(j, "answers", answers_json(p, &q, n));
	}
	cli_line(p->cli, j);
	return rc;
}

static int predict_batch(struct predictor *p, const char *path, struct err *e)
{
	struct graph_lines *l = NULL;
	size_t n = 0, failed = 0, len;
	char *line;
	int rc = graph_lines_open(&l, strcmp(path, "-") == 0 ? "/dev/stdin" : path, e);

	while (rc == 0 && (rc = graph_lines_next(l, &line, &len, e)) > 0) {
		struct err why = { 0 };

		n++;
		failed += answer_line(p, l, line, len, n, &why) != 0;
		rc = 0;
	}
	graph_lines_close(l);
	cli_put_count(p->cli, "questions", n);
	cli_put_count(p->cli, "failed", failed);
	if (rc == 0 && failed > 0)
		return err_set(e, ERR_INPUT, "%zu of %zu questions could not be answered", failed,
			       n);
	return rc;
}

static int predict(struct predictor *p, const struct predict_options *o, struct err *e)
{
	size_t names = graph_vocab_count(p->w.graph->entities);
	int rc;

	if (graph_vocab_count(p->w.graph->relations) > names)
		names = graph_vocab_count(p->w.graph->relations);
	p->how = o->how;
	p->how.top = o->how.top < names ? o->how.top : names;
	p->answers = mem_array(p->how.top, sizeof(*p->answers));
	p->asker = kge_asker_new(p->w.emb, p->w.graph);
	if (o->format >= 0)
		p->out = rdf_out_new(p->cli, &p->w, (enum rdf_out_kind)o->format);
	rc = o->batch != NULL ? predict_batch(p, o->batch, e) : predict_one(p, o->at, e);
	cli_put(p->cli, "filtered", json_boolean(!p->how.with_true));
	cli_put(p->cli, "typed", json_boolean(p->how.typed));
	cli_put(p->cli, "checkpoint", lab_work_checkpoint_json(&p->w.info));
	rdf_out_free(p->out);
	kge_asker_free(p->asker);
	free(p->answers);
	return rc;
}

int cmd_predict(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct predict_options o = { .missing = "?", .format = -1, .how = { .top = 10 } };
	const struct cli_syntax s = {
		.options = predict_options,
		.parse = parse_predict,
		.args = "[HEAD RELATION TAIL]",
		.doc = "Complete a triple: write ? for what is missing.\v"
		       "Answers that the graph holds already are left out, and so is the asked "
		       "entity itself, unless train has a loop (HEAD RELATION HEAD) of that "
		       "relation; --known has all, as eval ranks them.  With --batch each "
		       "answer is a line: head, relation, tail, rank, score, known or new; with "
		       "--json each question is one object on a line, and the last line sums "
		       "up.  Questions are answered as they come, so a pipe may stay open.\n\n"
		       "--format ntriples writes each answer's triple, and an rdf:Statement about "
		       "it with <urn:fkge:truth>, between 0 and 1; rdf-star the truth of << a "
		       "triple >> that is not asserted. A name that is no IRI is urn:fkge: and the "
		       "name.\n\n"
		       "Examples:\n  fkge -d acme predict aspirin treats '?' -k 5 --typed\n"
		       "  fkge -d acme predict '?' next _ --missing _    # about an entity named "
		       "?\n"
		       "  printf 'aspirin\\ttreats\\t?\\n' | fkge -d acme predict --batch - --json",
		.input = &o,
	};
	struct predictor p = { .cli = cli };
	int rc;

	cli_parse(cli, &s, argc, argv);
	p.missing = o.missing;
	if (o.format >= 0 && cli->json)
		return err_set(e, ERR_USAGE, "--format is RDF, --json is not: leave out one");
	rc = lab_work_open(&p.w, cli->folder, FOLDER_READ, e);
	if (rc != 0)
		return rc;
	rc = lab_work_load_state(&p.w, o.checkpoint, e);
	if (rc == 0)
		rc = lab_work_load_words(&p.w, e);
	if (rc == 0 && o.format >= 0)
		rc = rdf_out_check(&p.w, e);
	if (rc == 0)
		rc = predict(&p, &o, e);
	lab_work_close(&p.w);
	return rc;
}

/* ---- similar ---- */

struct similar_options {
	const char *name;
	const char *checkpoint; /* number or name; NULL: the best */
	struct kge_near_options how;
};

static const char *const by_words[] = {
	[KGE_COSINE] = "cosine", [KGE_DISTANCE] = "distance", NULL
};

static const struct argp_option similar_options[] = {
	{ "top", 'k', "N", 0, "so many names (default 10)", 0 },
	{ "relations", KEY_RELATIONS, NULL, 0, "NAME is a relation", 0 },
	{ "by", KEY_BY, "WORD", 0, "cosine (default: 1 is the same direction) or distance", 0 },
	{ "typed", KEY_TYPED, NULL, 0,
	  "only entities that share a side of some relation with NAME in the graph", 0 },
	{ "checkpoint", 'c', "STATE", 0, "a saved state, by its number or name (default: the best)",
	  0 },
	{ 0 },
};

static error_t parse_similar_end(const struct similar_options *o, struct argp_state *state)
{
	if (o->name == NULL)
		argp_usage(state);
	if (o->how.relations && o->how.typed)
		argp_error(state, "--typed is about entities; leave it out with --relations");
	return 0;
}

static error_t parse_similar(int key, char *arg, struct argp_state *state)
{
	struct similar_options *o = state->input;

	switch (key) {
	case 'k':
		o->how.top = (size_t)cli_count(state, arg, "--top", 1, 1000000);
		return 0;
	case KEY_RELATIONS:
		o->how.relations = true;
		return 0;
	case KEY_TYPED:
		o->how.typed = true;
		return 0;
	case KEY_BY:
		o->how.by = (enum kge_nearness)cli_word(state, arg, "--by", by_words);
		return 0;
	case 'c':
		o->checkpoint = arg;
		return 0;
	case ARGP_KEY_ARG:
		if (o->name != NULL)
			return ARGP_ERR_UNKNOWN;
		o->name = arg;
		return 0;
	case ARGP_KEY_END:
		return parse_similar_end(o, state);
	default:
		return ARGP_ERR_UNKNOWN;
	}
}

static json_t *similar_json(const struct cli *cli, const struct graph_words *words,
			    const struct graph_vocab *names, const struct kge_answer *a, size_t n)
{
	json_t *list = json_array();
	struct buf text = { 0 };

	for (size_t k = 0; k < n; k++) {
		const char *name = graph_vocab_name(names, a[k].id, NULL);
		json_t *j = json_object();

		json_object_set_new(j, "rank", json_integer((json_int_t)k + 1));
		json_object_set_new(j, "name", store_json_of_text(name));
		json_object_set_new(j, "score", store_json_of_number((double)a[k].score));
		shown_put_label(j, words, name);
		json_array_append_new(list, j);
		if (cli != NULL)
			cli_say(cli, "%5zu  %10.4f  %s\n", k + 1, (double)a[k].score,
				shown_name(words, name, &text));
	}
	buf_release(&text);
	return list;
}

static int find_similar(const struct graph *g, const struct graph_words *words, const char *name,
			bool relations, uint32_t *id, struct err *e)
{
	const struct graph_vocab *names = relations ? g->relations : g->entities;
	int rc = shown_find(words, names, relations ? "relation" : "entity", name, id, e);

	if (rc != 0 && !relations &&
	    graph_vocab_find(g->relations, name, strlen(name)) != GRAPH_NONE)
		return err_set(e, rc, "'%.150s' is a relation: ask with --relations", name);
	return rc;
}

int predict_tell_similar(const struct predict_tables *t, const char *name,
			 const struct kge_near_options *how, json_t *reply, struct err *e)
{
	const struct graph_vocab *names = how->relations ? t->graph->relations : t->graph->entities;
	struct kge_answer *out;
	uint32_t id;
	int rc = find_similar(t->graph, t->words, name, how->relations, &id, e);

	if (rc != 0)
		return rc;
	out = mem_array(how->top, sizeof(*out));
	json_object_set_new(
		reply, "similar",
		similar_json(NULL, t->words, names, out, kge_near(t->asker, id, how, out)));
	json_object_set_new(reply, "by", json_string(by_words[how->by]));
	json_object_set_new(reply, "checkpoint", lab_work_checkpoint_json(t->info));
	free(out);
	return 0;
}

static int similar(struct cli *cli, const struct work *w, const struct similar_options *o,
		   struct err *e)
{
	const struct graph_vocab *names =
		o->how.relations ? w->graph->relations : w->graph->entities;
	struct kge_near_options how = o->how;
	struct kge_asker *asker;
	struct kge_answer *out;
	uint32_t id;
	int rc = find_similar(w->graph, w->words, o->name, o->how.relations, &id, e);

	if (rc != 0)
		return rc;
	how.top = how.top < graph_vocab_count(names) ? how.top : graph_vocab_count(names);
	out = mem_array(how.top, sizeof(*out));
	asker = kge_asker_new(w->emb, w->graph);
	cli_put(cli, "similar",
		similar_json(cli, w->words, names, out, kge_near(asker, id, &how, out)));
	cli_put_text(cli, "by", by_words[how.by]);
	cli_put(cli, "checkpoint", lab_work_checkpoint_json(&w->info));
	kge_asker_free(asker);
	free(out);
	return 0;
}

int cmd_similar(struct cli *cli, int argc, char **argv, struct err *e)
{
	struct similar_options o = { .how = { .top = 10 } };
	const struct cli_syntax s = {
		.options = similar_options,
		.parse = parse_similar,
		.args = "NAME",
		.doc = "The names whose rows are nearest to that of NAME.\v"
		       "Examples:\n  fkge -d acme similar aspirin -k 5\n"
		       "  fkge -d acme similar treats --relations --by distance",
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
		rc = lab_work_load_words(&w, e);
	if (rc == 0)
		rc = similar(cli, &w, &o, e);
	lab_work_close(&w);
	return rc;
}
