#include "lab/cqa_questions.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/sample.h"

/* ---- drawing ---- */

static uint32_t *ids_by_name(const struct graph_vocab *of, const struct graph_vocab *pool)
{
	uint32_t n = graph_vocab_count(of), *ids = mem_array((size_t)n + 1, sizeof *ids);

	for (uint32_t i = 0; i < n; i++) {
		size_t len;
		const char *name = graph_vocab_name(of, i, &len);

		ids[i] = graph_vocab_find(pool, name, len);
	}
	return ids;
}

static void pool_graphs(struct cqa_questions *q, const struct graph *const *graphs, size_t n)
{
	q->n = n;
	q->ent = mem_array(n, sizeof *q->ent);
	q->rel = mem_array(n, sizeof *q->rel);
	q->own = mem_array(n, sizeof *q->own);
	for (size_t i = 0; i < n; i++)
		query_pool_add(&q->pool, graphs[i]);
	for (size_t i = 0; i < n; i++) {
		q->ent[i] = ids_by_name(graphs[i]->entities, q->pool.g->entities);
		q->rel[i] = ids_by_name(graphs[i]->relations, q->pool.g->relations);
	}
}

int cqa_questions_open(struct cqa_questions *q, const struct graph *const *graphs,
		       const char *const *names, size_t n, const struct cqa_draw *d, struct err *e)
{
	struct encode_draw draw = { d->types, d->own, d->answers_max, d->seed, NULL };

	*q = (struct cqa_questions){ 0 };
	pool_graphs(q, graphs, n);
	for (size_t i = 0; i < n; i++) {
		encode_look_open(&q->own[i], graphs[i], GRAPH_TEST, d->threads);
		encode_look_sample(&q->own[i], graphs[i], GRAPH_TEST, &draw);
		if (q->own[i].n == 0)
			return err_set(e, ERR_INPUT,
				       "%s: gives no test queries; a larger graph is wanted",
				       names[i]);
	}
	draw.count = d->across;
	draw.holders = query_pool_holders(&q->pool);
	encode_look_open(&q->across, q->pool.g, GRAPH_TEST, d->threads);
	encode_look_sample(&q->across, q->pool.g, GRAPH_TEST, &draw);
	return 0;
}

void cqa_questions_release(struct cqa_questions *q)
{
	for (size_t i = 0; i < q->n; i++) {
		encode_look_release(&q->own[i]);
		free(q->ent[i]);
		free(q->rel[i]);
	}
	encode_look_release(&q->across);
	query_pool_release(&q->pool);
	free(q->own);
	free(q->ent);
	free(q->rel);
	*q = (struct cqa_questions){ 0 };
}

/* ---- ranking ---- */

/* False: nobody ranks them. */
static bool rank_look(const struct encode_look *l, size_t i, const struct cqa_rankers *by,
		      struct query_figures *f, json_t **types)
{
	struct query_evaluation_options how = encode_look_options(l);
	struct query_evaluator *v = by->open(by->ctx, i, &how);

	if (v == NULL)
		return false;
	*f = encoders_look_rank(l, v, types);
	by->close(by->ctx, v);
	return true;
}

static void add_owner(struct query_figures *sum, const json_t *j)
{
	struct query_figures f = encoders_figures_of(j);

	sum->mrr += f.mrr;
	sum->hits1 += f.hits1;
	sum->hits3 += f.hits3;
	sum->hits10 += f.hits10;
}

static const json_t *type_of(const json_t *member, const char *type)
{
	const json_t *types = json_object_get(member, "types"), *one;
	size_t i;

	json_array_foreach(types, i, one)
	{
		if (json_string_value(json_object_get(one, "type")) == NULL ||
		    strcmp(json_string_value(json_object_get(one, "type")), type) != 0)
			continue;
		return one;
	}
	return NULL;
}

/* The plain mean over the owners that have such queries; NULL: none has.  type NULL: of all. */
static json_t *mean_of_owners(const json_t *members, const char *type)
{
	struct query_figures sum = { 0 };
	json_int_t queries = 0;
	const json_t *member, *at;
	double n = 0;
	size_t i;
	json_t *j;

	json_array_foreach(members, i, member)
	{
		at = type != NULL ? type_of(member, type) : json_object_get(member, "test");
		if (at == NULL)
			continue;
		add_owner(&sum, at);
		queries +=
			json_integer_value(type != NULL ? json_object_get(at, "queries")
							: json_object_get(member, "test_queries"));
		n++;
	}
	if (n == 0)
		return NULL;
	sum = (struct query_figures){ sum.mrr / n, sum.hits1 / n, sum.hits3 / n, sum.hits10 / n };
	j = encoders_figures_json(&sum);
	json_object_set_new(j, "queries", json_integer(queries));
	return j;
}

static void put_in_graph(const json_t *members, json_t *into)
{
	json_t *all = mean_of_owners(members, NULL), *types = json_array(), *one;

	for (int p = 0; query_pattern_words[p] != NULL; p++) {
		one = mean_of_owners(members, query_pattern_words[p]);
		if (one == NULL)
			continue;
		json_object_set_new(one, "type", json_string(query_pattern_words[p]));
		json_array_append_new(types, one);
	}
	if (all != NULL)
		json_object_set_new(all, "types", types);
	else
		json_decref(types);
	if (all != NULL)
		json_object_set_new(into, "in_graph", all);
}

static void rank_across(const struct cqa_questions *q, const struct cqa_rankers *by, json_t *into)
{
	struct query_figures f;
	json_t *types, *j;

	if (q->across.n == 0 || !rank_look(&q->across, q->n, by, &f, &types))
		return;
	j = encoders_figures_json(&f);
	json_object_set_new(j, "queries", json_integer((json_int_t)q->across.n));
	json_object_set_new(j, "types", types);
	json_object_set_new(into, "cross_graph", j);
}

void cqa_questions_rank(const struct cqa_questions *q, const struct cqa_rankers *by,
			json_t *members, json_t *into)
{
	struct query_figures f;
	json_t *member, *types;
	size_t i;

	json_array_foreach(members, i, member)
	{
		if (!rank_look(&q->own[i], i, by, &f, &types))
			continue;
		json_object_set_new(member, "test_queries", json_integer((json_int_t)q->own[i].n));
		json_object_set_new(member, "test", encoders_figures_json(&f));
		json_object_set_new(member, "types", types);
	}
	put_in_graph(members, into);
	rank_across(q, by, into);
}

json_t *cqa_questions_protocol(const struct cqa_questions *q)
{
	json_t *digests = json_array();

	for (size_t i = 0; i < q->n; i++)
		json_array_append_new(digests, encoders_look_digest(&q->own[i]));
	return json_pack("{s:s, s:s, s:[s,s,s], s:s, s:s, s:s, s:s, s:o, s:o}", "split", "test",
			 "answers", "hard", "filter", "train", "valid", "test", "in_graph",
			 "among the owner's entities", "cross_graph", "among all entities", "ties",
			 "realistic", "mean", "answers, queries, types, owners", "queries_digests",
			 digests, "cross_digest", encoders_look_digest(&q->across));
}
