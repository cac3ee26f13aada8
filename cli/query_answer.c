/* cli/query_answer.c - the answers to one question over several steps, and why. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "cli/query.h"
#include "cli/rdf_out.h"
#include "cli/shown.h"
#include "kge/product.h"
#include "query/exact.h"
#include "query/loops.h"

enum { FIT_SEED = 1, TOP = 10 };

/* ---- truths ---- */

static int filter_word(const char *const *words, const char *word)
{
	int k = 0;

	while (words[k] != NULL && strcmp(words[k], word) != 0)
		k++;
	return k;
}

void query_session_begin(struct query_session *s, struct cli *cli, const struct work *w,
			 const struct query_command *o, const char *known)
{
	*s = (struct query_session){ .cli = cli, .w = w, .o = o };
	s->known = o->known >= 0 ? o->known : filter_word(kge_filter_words, known);
	if (o->private_asking)
		s->scale = (struct query_scale){ o->truth, 1, 0 };
	else
		query_scale_fit(&s->scale, o->truth, w->emb, w->graph, FIT_SEED, &s->fit);
	if (s->fit.rows == 0 && !o->private_asking)
		lab_note(&cli->notes,
			 "Truths are not calibrated: nothing of valid could be used\n");
	s->truths = query_truths_new(w->emb, w->graph, &s->scale, kge_filter_bits[s->known]);
	if (o->federated)
		query_truths_by_names(s->truths);
	if (o->rounded && !query_truths_round(s->truths))
		lab_note(&cli->notes, "Scores of this model are no products, or this processor has "
				      "none in bfloat16: --precision has no effect\n");
}

void query_session_end(struct query_session *s)
{
	query_truths_free(s->truths);
}

static json_t *truth_json(const struct query_session *s)
{
	json_t *j = json_object();

	json_object_set_new(j, "kind", json_string(query_truth_words[s->scale.kind]));
	json_object_set_new(j, "slope", json_real((double)s->scale.slope));
	json_object_set_new(j, "offset", json_real((double)s->scale.offset));
	json_object_set_new(j, "rows", json_integer((json_int_t)s->fit.rows));
	json_object_set_new(j, "likelihood_before", store_json_of_number(s->fit.before));
	json_object_set_new(j, "likelihood_after", store_json_of_number(s->fit.after));
	return j;
}

void query_session_put(const struct query_session *s)
{
	json_t *j = json_object();

	json_object_set_new(j, "known", json_string(kge_filter_words[s->known]));
	json_object_set_new(j, "beam", json_integer((json_int_t)s->o->beam));
	json_object_set_new(j, "norm", json_string(query_norm_words[s->o->norm]));
	json_object_set_new(j, "truth", truth_json(s));
	json_object_set_new(j, "precision",
			    json_string(query_precision_words[s->truths->packed != NULL]));
	cli_put(s->cli, "search", j);
	cli_put_count(s->cli, "threads", s->o->threads);
	cli_put_text(s->cli, "arithmetic", kge_arithmetic(s->truths->packed != NULL));
	cli_put(s->cli, "checkpoint", lab_work_checkpoint_json(&s->w->info));
}

/* ---- answers ---- */

struct query_answerer {
	const struct query_session *s;
	struct query_search *search;
	struct query_exact *exact;
	struct query_set known; /* answers that the known triples give */
	float *truth;
	uint32_t *ids;	     /* of answers */
	size_t unanswered;   /* questions of which no entity's truth is above 0 */
	struct rdf_out *out; /* NULL: no RDF is wanted */
};

struct query_answerer *query_answerer_new(const struct query_session *s)
{
	struct query_answerer *a = mem_array(1, sizeof(*a));
	const struct query_search_options how = {
		.beam = s->o->beam,
		.norm = s->o->norm,
		.cache_bytes = s->o->cache_mb << 20,
		.threads = (uint32_t)s->o->threads,
		.elsewhere = s->across != NULL ? query_across_elsewhere(s->across) : NULL,
		.stop = s->o->stop
	};

	a->s = s;
	a->search = query_search_new(s->truths, &how);
	a->exact = query_exact_new(s->truths->index, s->truths->index, s->truths->n);
	a->truth = mem_aligned(s->truths->n, sizeof(*a->truth));
	a->ids = mem_array((size_t)s->truths->n + 1, sizeof(*a->ids));
	if (s->o->format >= 0)
		a->out = rdf_out_new(s->cli, s->w, (enum rdf_out_kind)s->o->format);
	return a;
}

void query_answerer_free(struct query_answerer *a)
{
	query_search_free(a->search);
	query_exact_free(a->exact);
	query_set_release(&a->known);
	rdf_out_free(a->out);
	free(a->truth);
	free(a->ids);
	free(a);
}

static int compare_truths(const void *x, const void *y, void *ctx)
{
	const float *truth = ctx;
	uint32_t a = *(const uint32_t *)x, b = *(const uint32_t *)y;

	if (truth[a] != truth[b])
		return truth[a] > truth[b] ? -1 : 1;
	return (a > b) - (a < b);
}

static const char *node_name(const struct graph_vocab *v, uint32_t id)
{
	return graph_vocab_name(v, id, NULL);
}

/* The nodes below a NOT. */
static void mark_negated(const struct query_tree *t, bool negated[QUERY_NODES_MAX])
{
	for (uint32_t i = t->n; i-- > 0;)
		for (uint32_t k = 0; k < t->at[i].children; k++)
			negated[query_tree_child(t, i, k)] =
				negated[i] != (t->at[i].kind == QUERY_NOT);
}

static json_t *edge_json(const struct graph *g, const struct query_node *node, uint32_t from,
			 uint32_t to, float truth, bool known, bool negated, const char *by)
{
	json_t *j = json_object();

	json_object_set_new(j, "head",
			    store_json_of_text(node_name(g->entities, node->inverse ? to : from)));
	json_object_set_new(j, "relation", store_json_of_text(node_name(g->relations, node->id)));
	json_object_set_new(j, "tail",
			    store_json_of_text(node_name(g->entities, node->inverse ? from : to)));
	json_object_set_new(j, "truth", json_real((double)truth));
	json_object_set_new(j, "known", json_boolean(known));
	if (negated)
		json_object_set_new(j, "negated", json_true());
	if (by != NULL)
		json_object_set_new(j, "agent", store_json_of_text(by));
	return j;
}

/* Of node i, a step. */
static void say_way_edge(const struct query_answerer *a, const struct query_tree *t, uint32_t i,
			 const struct query_explanation *x, bool negated, const char *by)
{
	const struct graph *g = a->s->w->graph;
	const struct graph_words *words = a->s->w->words;
	const struct query_node *node = &t->at[i];
	uint32_t from = x->at[query_tree_child(t, i, 0)].entity, to = x->at[i].entity;
	struct buf b[3] = { { 0 } };

	cli_say(a->s->cli, "       %s%s  %s  %s  %.4f  %s%s%s\n", negated ? "against it: " : "",
		graph_words_short(words, node_name(g->entities, node->inverse ? to : from), &b[0]),
		graph_words_short(words, node_name(g->relations, node->id), &b[1]),
		graph_words_short(words, node_name(g->entities, node->inverse ? from : to), &b[2]),
		(double)x->at[i].edge, x->at[i].known ? "known" : "predicted",
		by != NULL ? "  by " : "", by != NULL ? by : "");
	for (int k = 0; k < 3; k++)
		buf_release(&b[k]);
}

/* The edges of the best way to an answer, each said. */
static json_t *say_explanation(struct query_answerer *a, const struct query_tree *t,
			       uint32_t answer)
{
	const struct graph *g = a->s->w->graph;
	bool negated[QUERY_NODES_MAX] = { false };
	struct query_explanation x;
	json_t *edges = json_array();

	query_search_explain(a->search, t, answer, &x);
	mark_negated(t, negated);
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t from, to = x.at[i].entity;
		const char *by =
			a->s->across != NULL ? query_across_name(a->s->across, x.at[i].by) : NULL;

		if (t->at[i].kind != QUERY_STEP)
			continue;
		from = x.at[query_tree_child(t, i, 0)].entity;
		if (from == GRAPH_NONE || to == GRAPH_NONE)
			continue;
		say_way_edge(a, t, i, &x, negated[i], by);
		json_array_append_new(edges, edge_json(g, &t->at[i], from, to, x.at[i].edge,
						       x.at[i].known, negated[i], by));
	}
	return edges;
}

/* What follows from this agent's triples.  Under NOT they say nothing of what partners know. */
static bool is_known(const struct query_answerer *a, const struct query_tree *t, uint32_t id)
{
	bool negates = false;

	for (uint32_t i = 0; i < t->n && a->s->across != NULL; i++)
		negates |= t->at[i].kind == QUERY_NOT;
	return !negates && query_set_find(&a->known, id) < a->known.n;
}

static json_t *answer_json(struct query_answerer *a, const struct query_tree *t, uint32_t id,
			   size_t rank)
{
	const char *name = node_name(a->s->w->graph->entities, id);
	const struct graph_words *words = a->s->w->words;
	bool known = is_known(a, t, id);
	json_t *j = json_object();
	struct buf text = { 0 };

	cli_say(a->s->cli, "%5zu  %.4f  %s%s\n", rank, (double)a->truth[id],
		shown_name(words, name, &text), known ? "  (known)" : "");
	buf_release(&text);
	json_object_set_new(j, "rank", json_integer((json_int_t)rank));
	json_object_set_new(j, "name", store_json_of_text(name));
	json_object_set_new(j, "truth", json_real((double)a->truth[id]));
	json_object_set_new(j, "known", json_boolean(known));
	shown_put_label(j, words, name);
	if (a->s->o->explain)
		json_object_set_new(j, "edges", say_explanation(a, t, id));
	return j;
}

/* The truest of an OR's branches; of equal ones the first. */
static uint32_t truest_branch(const struct query_tree *t, uint32_t i,
			      const struct query_explanation *x)
{
	uint32_t best = query_tree_child(t, i, 0);

	for (uint32_t k = 1; k < t->at[i].children; k++) {
		uint32_t other = query_tree_child(t, i, k);

		if (x->at[other].truth > x->at[best].truth)
			best = other;
	}
	return best;
}

/* The nodes that an answer rests on: none below NOT, and one branch of an OR. */
static void mark_best_way(const struct query_tree *t, const struct query_explanation *x,
			  bool on_way[QUERY_NODES_MAX])
{
	on_way[t->n - 1] = true;
	for (uint32_t i = t->n; i-- > 0;) {
		enum query_kind kind = t->at[i].kind;
		uint32_t only = kind == QUERY_OR ? truest_branch(t, i, x) : GRAPH_NONE;

		for (uint32_t k = 0; k < t->at[i].children; k++) {
			uint32_t child = query_tree_child(t, i, k);

			on_way[child] = on_way[i] && kind != QUERY_NOT &&
					(only == GRAPH_NONE || only == child);
		}
	}
}

/* What is predicted on the best way to an answer. */
static void put_predicted_edges(struct query_answerer *a, const struct query_tree *t,
				uint32_t answer)
{
	bool on_way[QUERY_NODES_MAX] = { false };
	struct query_explanation x;

	query_search_explain(a->search, t, answer, &x);
	mark_best_way(t, &x, on_way);
	for (uint32_t i = 0; i < t->n; i++) {
		uint32_t from, to = x.at[i].entity;

		if (t->at[i].kind != QUERY_STEP || !on_way[i])
			continue;
		from = x.at[query_tree_child(t, i, 0)].entity;
		if (from == GRAPH_NONE || to == GRAPH_NONE || x.at[i].known)
			continue;
		rdf_out_put(a->out,
			    (struct graph_triple){ .head = t->at[i].inverse ? to : from,
						   .rel = t->at[i].id,
						   .tail = t->at[i].inverse ? from : to },
			    x.at[i].edge);
	}
}

json_t *query_answer(struct query_answerer *a, const struct query_tree *t, uint64_t top)
{
	json_t *list = json_array();
	size_t n = 0;

	query_search_run(a->search, t, a->truth);
	query_exact_answers(a->exact, t, &a->known);
	if (a->s->across == NULL) /* partners may know loops that we do not */
		query_loops_drop(a->s->truths, t, &a->known, a->truth);
	for (uint32_t id = 0; id < a->s->truths->n; id++)
		if (a->truth[id] > 0)
			a->ids[n++] = id;
	a->unanswered += n == 0 && !query_search_was_stopped(a->search);
	qsort_r(a->ids, n, sizeof(*a->ids), compare_truths, a->truth);
	top = top > 0 ? top : TOP;
	for (size_t k = 0; k < n && k < top && !query_search_was_stopped(a->search); k++)
		if (a->out != NULL)
			put_predicted_edges(a, t, a->ids[k]);
		else
			json_array_append_new(list, answer_json(a, t, a->ids[k], k + 1));
	if (!query_search_was_stopped(a->search))
		return list;
	json_decref(list);
	return NULL;
}

void query_answerer_note(const struct query_answerer *a)
{
	const struct query_command *o = a->s->o;

	if (a->unanswered == 0 || a->s->across != NULL || o->norm != QUERY_PRODUCT)
		return;
	lab_note(&a->s->cli->notes,
		 "%zu %s no answer of a truth above 0; where many predicted edges are multiplied, "
		 "their truths may be too small for a number (--norm min does not multiply)\n",
		 a->unanswered, a->unanswered == 1 ? "question has" : "questions have");
}

int query_search_show(struct cli *cli, const struct work *w, const struct query_command *o,
		      const struct query_sparql *q, struct err *e)
{
	struct query_session s;
	struct query_answerer *a;
	json_t *answers;
	int rc = 0;

	query_session_begin(&s, cli, w, o, "all");
	s.across = o->federated ? query_across_new(&s) : NULL;
	a = query_answerer_new(&s);
	answers = query_answer(a, &q->tree, query_shown(o, q, TOP));
	cli_put(cli, "answers", answers);
	query_session_put(&s);
	query_answerer_note(a);
	if (s.across != NULL)
		rc = query_across_put(s.across, cli, s.truths->relations, e);
	query_answerer_free(a);
	query_across_free(s.across);
	query_session_end(&s);
	return rc;
}
