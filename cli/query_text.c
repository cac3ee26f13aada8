/* cli/query_text.c - query: one query in SPARQL, and its answers from known triples. */
#include <string.h>

#include "base/file.h"
#include "cli/near.h"
#include "cli/query.h"
#include "cli/shown.h"
#include "query/exact.h"
#include "store/ledger/step.h"

enum { TOP = 10 };

/* ---- the query ---- */

/* Relations that the graph does not have may be partners'. */
static int read_with_theirs(struct work *w, bool federated, const char *text, size_t n,
			    struct query_sparql *out, struct err *e)
{
	struct graph_vocab *v = w->graph->relations;
	const struct query_unknown *u = &out->unknown;
	int rc = query_sparql_read_with(text, n, w->graph, w->words, out, e);

	/* one that is there now was not found by the name that it was said to have: it has
	 * characters that are not printed */
	while (rc == ERR_NOTFOUND && federated && u->relation &&
	       graph_vocab_find(v, u->name, strlen(u->name)) == GRAPH_NONE) {
		if (strlen(u->name) > LEDGER_RELATION_MAX)
			return err_set(
				e, ERR_USAGE,
				"line %u, column %u: the graph has no relation of this "
				"name, and partners are asked over names of at most %d bytes",
				u->line, u->column, LEDGER_RELATION_MAX);
		graph_vocab_add(v, u->name, strlen(u->name));
		*e = (struct err){ 0 };
		rc = query_sparql_read_with(text, n, w->graph, w->words, out, e);
	}
	return rc;
}

/* As query_sparql_read_with(), with names that are like the one that the graph does not have. */
static int read_or_guess(struct work *w, const struct query_command *o, const char *text, size_t n,
			 struct query_sparql *out, struct err *e)
{
	const struct query_unknown *u = &out->unknown;
	const struct graph *g = w->graph;
	int rc = read_with_theirs(w, o->federated, text, n, out, e);
	struct err like = { 0 };
	uint32_t id;

	/* a name that was cut may be another one's */
	if (rc != ERR_NOTFOUND ||
	    near_find(u->relation ? g->relations : g->entities, u->relation ? "relation" : "entity",
		      u->name, &id, &like) == 0)
		return rc;
	return err_set(e, rc, "line %u, column %u: %s", u->line, u->column, like.text);
}

static int read_query_file(struct work *w, const struct query_command *o, const char *path,
			   struct query_sparql *out, struct err *e)
{
	struct buf text = { 0 };
	bool standard = strcmp(path, "-") == 0;
	int rc = file_read(standard ? "/dev/stdin" : path, QUERY_TEXT_MAX, &text, e);

	if (rc == 0) {
		rc = read_or_guess(w, o, (const char *)text.base, text.len, out, e);
		if (rc == ERR_USAGE && e != NULL)
			rc = e->code = ERR_INPUT;
		if (rc != 0)
			err_prefix(e, "%s", standard ? "standard input" : path);
	}
	buf_release(&text);
	return rc;
}

int query_text_read(struct work *w, const struct query_command *o, struct query_sparql *out,
		    struct err *e)
{
	if (o->text == NULL)
		return read_query_file(w, o, o->file, out, e);
	return read_or_guess(w, o, o->text, strlen(o->text), out, e);
}

void query_text_put(struct cli *cli, const struct work *w, const struct query_sparql *q, bool quiet)
{
	struct buf words = { 0 };

	query_tree_print(&q->tree, w->graph, &words);
	cli_put_text(cli, "variable", q->variable);
	cli_put_text(cli, "tree", (const char *)words.base);
	cli_put_text(cli, "type", query_pattern_words[query_pattern_of(&q->tree)]);
	if (!quiet)
		cli_say(cli, "?%s  %s\n", q->variable, (const char *)words.base);
	buf_release(&words);
}

/* ---- answers ---- */

static void show_answers(struct cli *cli, const struct work *w, const struct query_set *s,
			 size_t shown)
{
	json_t *list = json_array();
	struct buf text = { 0 };

	for (size_t i = 0; i < shown; i++) {
		const char *name = graph_vocab_name(w->graph->entities, s->at[i], NULL);
		json_t *answer = json_object();

		json_object_set_new(answer, "rank", json_integer((json_int_t)i + 1));
		json_object_set_new(answer, "name", store_json_of_text(name));
		json_object_set_new(answer, "known", json_true());
		shown_put_label(answer, w->words, name);
		json_array_append_new(list, answer);
		cli_say(cli, "%5zu  %s\n", i + 1, shown_name(w->words, name, &text));
	}
	buf_release(&text);
	cli_put(cli, "answers", list);
}

void query_exact_show(struct cli *cli, const struct work *w, const struct query_command *o,
		      const struct query_sparql *q)
{
	unsigned splits = kge_filter_bits[o->known >= 0 ? o->known : 3];
	struct graph_index *known = graph_index_new(w->graph, splits);
	struct query_exact *x =
		query_exact_new(known, known, graph_vocab_count(w->graph->entities));
	struct query_set s = { 0 };
	uint64_t top = query_shown(o, q, TOP);
	size_t shown;

	query_exact_answers(x, &q->tree, &s);
	shown = s.n < top ? s.n : (size_t)top;
	show_answers(cli, w, &s, shown);
	cli_put_count(cli, "found", s.n);
	if (s.n == 0)
		lab_note(&cli->notes, "The graph knows no answer\n");
	else if (shown < s.n)
		lab_note(&cli->notes, "%zu of %zu answers; --top shows more\n", shown, s.n);
	query_set_release(&s);
	query_exact_free(x);
	graph_index_free(known);
}
