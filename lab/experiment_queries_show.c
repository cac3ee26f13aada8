/* lab/experiment_queries_show.c - how well queries are answered, as tables and CSV. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lab/experiment_show.h"

enum { WHERES = 2, KEYS = 4 };

static const char *const wheres[WHERES] = { "in_graph", "cross_graph" };
static const char *const where_titles[WHERES] = { "in-graph", "cross-graph" };
static const char *const where_heads[WHERES] = { "In-graph", "Cross-graph" };
static const char *const keys[KEYS] = { "mrr", "hits1", "hits3", "hits10" };
static const char *const key_titles[KEYS] = { "MRR", "Hits@1", "Hits@3", "Hits@10" };
/* As FedCQA's table calls them. */
static const char *const published_metrics[WHERES][2] = {
	{ "MRR in-graph", "HR@3 in-graph" }, { "MRR cross-graph", "HR@3 cross-graph" }
};

bool experiment_has_published_queries(const struct show *s, const struct exp_variant *v,
				      const char *method)
{
	for (size_t w = 0; w < WHERES; w++)
		for (size_t k = 0; k < 2; k++)
			if (!isnan(experiment_published(s, v, method, published_metrics[w][k])))
				return true;
	return false;
}

/* ---- all types ---- */

static void add_published_queries(struct table *t, const struct show *s,
				  const struct exp_variant *v)
{
	if (v->published[0] == '\0' || !experiment_has_published_queries(s, v, v->published))
		return;
	table_add(t, "*%s, published*", v->published);
	for (size_t w = 0; w < WHERES; w++)
		for (size_t k = 0; k < 2; k++) {
			double x =
				experiment_published(s, v, v->published, published_metrics[w][k]);

			table_add(t, isnan(x) ? "-" : "*%.4f*", x);
		}
	for (int i = 0; i < 3; i++)
		table_add(t, "%s", "");
}

/* Of the means over the seeds that have it; an arm may have nobody to ask across. */
static void add_mean(struct table *t, const struct show *s, size_t v, const char *where,
		     const char *key, double unit, int digits)
{
	struct spread p = experiment_spread_in(s, v, "queries", where, key);

	p.mean /= unit;
	p.deviation /= unit;
	if (p.n > 0 && isnan(p.mean))
		p.n = 0;
	experiment_add_spread(t, &p, digits);
}

static void add_arm(struct table *t, const struct show *s, size_t v)
{
	struct spread bytes = experiment_spread_in(s, v, NULL, "bytes", NULL);

	table_add(t, "**%s**", s->x->at[v].name);
	for (size_t w = 0; w < WHERES; w++) {
		add_mean(t, s, v, wheres[w], "mrr", 1, 4);
		add_mean(t, s, v, wheres[w], "hits3", 1, 4);
	}
	table_add(t, bytes.n > 0 ? "%.1f" : "-", bytes.mean / 1e6);
	add_mean(t, s, v, "cross_graph", "bytes", 1e3, 1);
	if (s->other[v] > 0)
		table_add(t, "%zu, %zu of other settings", bytes.n, s->other[v]);
	else
		experiment_add_runs(t, s, v, bytes.n);
}

static void print_methods(const struct show *s, struct buf *out)
{
	struct table t;

	table_init(&t, 8);
	table_add(&t, "method");
	for (size_t w = 0; w < WHERES; w++) {
		table_add(&t, "%s MRR", where_heads[w]);
		table_add(&t, "Hits@3");
	}
	table_add(&t, "MB moved to train");
	table_add(&t, "kB a query across");
	table_add(&t, "seeds");
	for (size_t v = 0; v < s->x->n; v++) {
		add_arm(&t, s, v);
		add_published_queries(&t, s, &s->x->at[v]);
	}
	table_print(&t, out);
	table_release(&t);
}

/* ---- type by type ---- */

static const json_t *figures_of(const json_t *record, const char *where)
{
	return json_object_get(json_object_get(record, "queries"), where);
}

static const json_t *type_in(const json_t *figures, const char *type)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(figures, "types"), i, one)
	{
		const char *word = json_string_value(json_object_get(one, "type"));

		if (word != NULL && strcmp(word, type) == 0)
			return one;
	}
	return NULL;
}

/* Of a type, mean over the seeds; NAN: none. */
static double type_mean(const struct show *s, size_t v, const char *where, const char *type,
			const char *key)
{
	double sum = 0;
	size_t n = 0;

	for (size_t k = 0; k < s->x->n_seeds; k++) {
		const json_t *one = type_in(figures_of(experiment_record_of(s, v, k), where), type);

		if (one == NULL)
			continue;
		sum += experiment_number(one, key, NULL);
		n++;
	}
	return n > 0 ? sum / (double)n : (double)NAN;
}

/* Queries of a type in any record: the same for all. */
static double queries_asked(const struct show *s, const char *where, const char *type)
{
	double n = (double)NAN;

	for (size_t v = 0; v < s->x->n && isnan(n); v++)
		n = type_mean(s, v, where, type, "queries");
	return n;
}

static bool is_asked(const struct show *s, const char *where)
{
	for (int p = 0; p <= QUERY_UP; p++)
		if (!isnan(queries_asked(s, where, query_pattern_words[p])))
			return true;
	return false;
}

static void add_types(struct table *t, const struct show *s, size_t v, const char *where)
{
	table_add(t, "%s", s->x->at[v].name);
	for (int p = 0; p <= QUERY_UP; p++) {
		const char *type = query_pattern_words[p];
		double mrr = type_mean(s, v, where, type, "mrr");

		if (s->x->at[0].queries.types >> p & 1)
			table_add(t, isnan(mrr) ? "-" : "%.3f, %.3f", mrr,
				  type_mean(s, v, where, type, "hits3"));
	}
}

static void print_types(const struct show *s, size_t w, struct buf *out)
{
	unsigned types = s->x->at[0].queries.types;
	struct table t;

	if (!is_asked(s, wheres[w]))
		return;
	buf_printf(out, "\n## %s by type: MRR, Hits@3\n\n", where_heads[w]);
	table_init(&t, 1 + (size_t)__builtin_popcount(types));
	table_add(&t, "method");
	for (int p = 0; p <= QUERY_UP; p++)
		if (types >> p & 1)
			table_add(&t, "%s", query_pattern_words[p]);
	for (size_t v = 0; v < s->x->n; v++)
		add_types(&t, s, v, wheres[w]);
	table_add(&t, "*queries*");
	for (int p = 0; p <= QUERY_UP; p++) {
		double n = queries_asked(s, wheres[w], query_pattern_words[p]);

		if (types >> p & 1)
			table_add(&t, isnan(n) ? "-" : "%.0f", n);
	}
	table_print(&t, out);
	table_release(&t);
}

/* ---- the whole ---- */

static void print_query_protocol(const struct show *s, struct buf *out)
{
	const struct exp_queries *q = &s->x->at[0].queries;

	buf_printf(
		out,
		"Data: `%s`.  Queries by `fkge`'s sampler, seed %llu, with at most %llu answers: "
		"%llu of a type and owner, among its entities (in-graph), and %llu of a type "
		"that no owner's relations answer alone, among all entities (cross-graph).  "
		"Hard answers need a triple of test; ranked among the entities that are no "
		"answer on train, valid and test, ties count half; mean over answers, then "
		"queries, types, owners.  Search takes train's edges for known.  What is kept "
		"is the round best on valid by the mean over the owners: of search by triples, "
		"of encoders by queries.  Training seeds:",
		s->x->data, (unsigned long long)q->seed, (unsigned long long)q->answers,
		(unsigned long long)q->test_count, (unsigned long long)q->cross_count);
	for (size_t k = 0; k < s->x->n_seeds; k++)
		buf_printf(out, " %llu", (unsigned long long)s->x->seeds[k]);
	buf_printf(out,
		   ".  Cells are mean ± standard deviation of a sample (n - 1) over them.\n\n");
}

void experiment_show_queries(const struct show *s, struct buf *out)
{
	if (!s->x->asks)
		return;
	print_query_protocol(s, out);
	print_methods(s, out);
	for (size_t w = 0; w < WHERES; w++)
		print_types(s, w, out);
}

/* ---- CSV ---- */

static void print_figures(struct buf *out, const struct show *s, const json_t *record,
			  const char *agent, const json_t *figures, const char *what,
			  const char *agents)
{
	for (size_t k = 0; k < KEYS; k++) {
		double x = experiment_number(figures, keys[k], NULL);

		if (isnan(x))
			continue;
		experiment_begin_csv(out, s, record, agent);
		buf_printf(out, "%s %s,%.6f,%s\n", key_titles[k], what, x, agents);
	}
}

static void print_typed(struct buf *out, const struct show *s, const json_t *record,
			const char *agent, const json_t *has_types, const char *where,
			const char *agents)
{
	const json_t *one;
	size_t i;

	json_array_foreach(json_object_get(has_types, "types"), i, one)
	{
		char *what =
			mem_printf("%s %s", where, json_string_value(json_object_get(one, "type")));

		print_figures(out, s, record, agent, one, what, agents);
		free(what);
	}
}

void experiment_show_queries_csv(const struct show *s, const json_t *record, const char *agents,
				 struct buf *out)
{
	const json_t *member,
		*members = json_object_get(json_object_get(record, "queries"), "members");
	size_t i;

	for (size_t w = 0; w < WHERES; w++) {
		const json_t *f = figures_of(record, wheres[w]);

		print_figures(out, s, record, "mean", f, where_titles[w], agents);
		print_typed(out, s, record, "mean", f, where_titles[w], agents);
	}
	json_array_foreach(members, i, member)
	{
		const char *name = json_string_value(json_object_get(member, "graph"));

		print_figures(out, s, record, name, json_object_get(member, "test"),
			      where_titles[0], agents);
		print_typed(out, s, record, name, member, where_titles[0], agents);
	}
}
