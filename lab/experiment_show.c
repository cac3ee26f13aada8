/* lab/experiment_show.c - what the runs of an experiment have come to: CSV, Markdown, a picture. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/file.h"
#include "base/mem.h"
#include "lab/child.h"
#include "lab/experiment_show.h"
#include "lab/work.h"

enum { FIGURES = 5 };

static const char *const figures[FIGURES] = { "mrr", "hits1", "hits3", "hits5", "hits10" };
static const char *const titles[FIGURES] = { "MRR", "Hits@1", "Hits@3", "Hits@5", "Hits@10" };

static const char *mark_of(const struct exp_variant *v)
{
	return v->processes ? " (over TCP)" : "";
}

static bool any_aggregated(const struct show *s)
{
	for (size_t v = 0; v < s->x->n; v++)
		if (experiment_is_aggregated(&s->x->at[v]))
			return true;
	return false;
}

static bool any_over_tcp(const struct show *s)
{
	for (size_t v = 0; v < s->x->n; v++)
		if (s->x->at[v].processes)
			return true;
	return false;
}

static struct spread spread_of(const struct show *s, size_t variant, const char *a, const char *b)
{
	return experiment_spread_in(s, variant, NULL, a, b);
}

/* ---- figures of the papers ---- */

static bool is_published(const struct show *s, const struct exp_variant *v, const char *method)
{
	for (size_t k = 0; k < FIGURES; k++)
		if (!isnan(experiment_published(s, v, method, titles[k])))
			return true;
	return experiment_has_published_queries(s, v, method);
}

/* A name that is misspelt leaves no row, which nobody would miss. */
static void tell_unpublished(const struct lab_out *notes, const struct show *s)
{
	for (size_t i = 0; s->published.base != NULL && i < 2 * s->x->n; i++) {
		const struct exp_variant *v = &s->x->at[i / 2];
		const char *method = i % 2 == 0 ? v->published : v->published_shared;

		if (method[0] != '\0' && !is_published(s, v, method))
			lab_note(notes,
				 "%s has no figures of '%s' (variant %s) for dataset %s and "
				 "model %s\n",
				 s->x->published, method, v->name, s->x->dataset,
				 experiment_model_of(v));
	}
}

static void add_published(struct table *t, const struct show *s, const struct exp_variant *v,
			  const char *method)
{
	if (!is_published(s, v, method))
		return;
	table_add(t, "*%s, published*", method);
	for (size_t k = 0; k < FIGURES; k++) {
		double x = experiment_published(s, v, method, titles[k]);

		table_add(t, isnan(x) ? "-" : "*%.4f*", x);
	}
	table_add(t, "%s", "");
}

/* ---- Markdown ---- */

static void add_quality(struct table *t, const struct show *s, size_t v, const char *of,
			const char *what)
{
	struct spread p = { 0 };

	table_add(t, "**%s**%s%s", s->x->at[v].name, mark_of(&s->x->at[v]), what);
	for (size_t k = 0; k < FIGURES; k++) {
		p = spread_of(s, v, of, figures[k]);
		experiment_add_spread(t, &p, 4);
	}
	experiment_add_runs(t, s, v, p.n);
}

static bool has_shared(const struct show *s, size_t v)
{
	for (size_t k = 0; k < s->x->n_seeds; k++)
		if (json_object_get(experiment_record_of(s, v, k), "test_shared") != NULL)
			return true;
	return false;
}

static void print_quality(const struct show *s, struct buf *out)
{
	struct table t;

	table_init(&t, FIGURES + 2);
	table_add(&t, "method");
	for (size_t k = 0; k < FIGURES; k++)
		table_add(&t, "%s", titles[k]);
	table_add(&t, "seeds");
	for (size_t v = 0; v < s->x->n; v++) {
		if (s->x->at[v].kind == EXP_ENCODERS)
			continue;
		add_quality(&t, s, v, "test",
			    experiment_is_aggregated(&s->x->at[v]) ? " (aggregated)" : "");
		add_published(&t, s, &s->x->at[v], s->x->at[v].published);
		if (has_shared(s, v))
			add_quality(&t, s, v, "test_shared", " (global)");
		add_published(&t, s, &s->x->at[v], s->x->at[v].published_shared);
	}
	table_print(&t, out);
	table_release(&t);
}

/* Of an agent, mean over the seeds; NAN: not run, or nothing was asked. */
static double agent_mean(const struct show *s, size_t v, size_t i, const char *a, const char *b)
{
	double sum = 0;
	size_t n = 0;

	for (size_t k = 0; k < s->x->n_seeds; k++) {
		const json_t *agent =
			json_array_get(json_object_get(experiment_record_of(s, v, k), "agents"), i);

		if (agent == NULL || experiment_number(agent, a, "queries") == 0)
			continue;
		sum += experiment_number(agent, a, b);
		n++;
	}
	return n > 0 ? sum / (double)n : (double)NAN;
}

/* Any record that has agents, or NULL; few enough for a table. */
static const json_t *agents_of_any(const struct show *s)
{
	const json_t *first = NULL;
	size_t columns;

	for (size_t v = 0; v < s->x->n && first == NULL; v++)
		for (size_t k = 0; k < s->x->n_seeds && first == NULL; k++)
			if (s->x->at[v].kind != EXP_ENCODERS)
				first = experiment_record_of(s, v, k);
	columns = json_array_size(json_object_get(first, "agents"));
	return columns > 0 && columns + 1 <= TABLE_COLUMNS_MAX ? json_object_get(first, "agents")
							       : NULL;
}

static void print_agents(const struct show *s, struct buf *out)
{
	const json_t *all = agents_of_any(s), *agent;
	struct table t;
	size_t columns = json_array_size(all), i;

	if (all == NULL)
		return;
	buf_printf(out, "\n## Test MRR of each agent, mean over the seeds\n\n");
	table_init(&t, columns + 1);
	table_add(&t, "method");
	json_array_foreach(all, i, agent)
		table_add(&t, "%s", json_string_value(json_object_get(agent, "agent")));
	for (size_t v = 0; v < s->x->n; v++) {
		if (s->x->at[v].kind == EXP_ENCODERS)
			continue;
		table_add(&t, "%s%s", s->x->at[v].name, mark_of(&s->x->at[v]));
		for (i = 0; i < columns; i++) {
			double x = agent_mean(s, v, i, "test", "mrr");

			table_add(&t, isnan(x) ? "-" : "%.4f", x);
		}
	}
	table_add(&t, "*frequency floor*");
	json_array_foreach(all, i, agent)
		table_add(&t, experiment_number(agent, "test", "queries") == 0 ? "-" : "*%.4f*",
			  experiment_number(agent, "floor_mrr", NULL));
	table_print(&t, out);
	table_release(&t);
}

/* ---- what is to be forgotten ---- */

/* The name of a variant's tables in FedLU's Tables 2, 5 and 6; NULL: they are in none. */
static const char *role_of(const struct show *s, const struct exp_variant *v, bool shared)
{
	bool fedlu = strcmp(v->settings.method, "fedlu") == 0;

	if (v->retained)
		return v->kind == EXP_SINGLE	   ? "re-trained local"
		       : v->kind == EXP_COLLECTIVE ? "re-trained global"
						   : NULL;
	if (fedlu && v->kind == EXP_UNLEARN)
		return shared ? "unlearned global" : "unlearned local";
	if (fedlu && experiment_is_unlearned(s->x, v))
		return shared ? "raw global" : "raw local";
	return NULL;
}

enum { FORGOTTEN = 4 }; /* figures in a row, lower is better in every second */

static const char *const forgotten_metrics[FORGOTTEN] = {
	"Hits@1 forgetting set",
	"Hits@1 test set",
	"MRR forgetting set",
	"MRR test set",
};

static void add_forgotten(struct table *t, const struct show *s, size_t v, const char *under,
			  bool shared, const char *what)
{
	const char *sets[2] = { shared ? "forgotten_shared" : "forgotten",
				shared ? "test_shared" : "test" };
	struct spread p = { 0 };

	table_add(t, "**%s**%s", s->x->at[v].name, what);
	for (size_t k = 0; k < FORGOTTEN; k++) {
		p = experiment_spread_in(s, v, under, sets[k % 2], k < 2 ? "hits1" : "mrr");
		experiment_add_spread(t, &p, 4);
	}
	experiment_add_runs(t, s, v, p.n);
}

static void add_published_forgotten(struct table *t, const struct show *s, size_t v, bool shared)
{
	const struct exp_variant *variant = &s->x->at[v];
	const char *role = role_of(s, variant, shared);
	double x[FORGOTTEN];
	bool any = false;

	for (size_t k = 0; k < FORGOTTEN && role != NULL; k++) {
		x[k] = experiment_published(s, variant, role, forgotten_metrics[k]);
		any = any || !isnan(x[k]);
	}
	if (!any)
		return;
	table_add(t, "*%s, published*", role);
	for (size_t k = 0; k < FORGOTTEN; k++)
		table_add(t, isnan(x[k]) ? "-" : "*%.4f*", x[k]);
	table_add(t, "%s", "");
}

static void add_exchanged(struct table *t, const struct show *s, size_t v, bool shared)
{
	add_forgotten(t, s, v, "exchanged", shared,
		      shared ? " (global, exchanged)" : " (exchanged)");
	add_forgotten(t, s, v, "raw_exchanged", shared, " (nothing forgotten, exchanged)");
}

static void print_forgotten_means(const struct show *s, struct buf *out)
{
	struct table t;

	table_init(&t, FORGOTTEN + 2);
	table_add(&t, "tables");
	for (size_t k = 0; k < FORGOTTEN; k++)
		table_add(&t, "%s, %s", k < 2 ? "Hits@1" : "MRR",
			  k % 2 == 0 ? "forgotten" : "test");
	table_add(&t, "seeds");
	for (size_t v = 0; v < s->x->n; v++) {
		bool after = s->x->at[v].kind == EXP_UNLEARN, shared = has_shared(s, v);

		if (!experiment_forgets(s->x, &s->x->at[v]))
			continue;
		add_forgotten(&t, s, v, NULL, false, shared ? " (local)" : "");
		add_published_forgotten(&t, s, v, false);
		if (shared)
			add_forgotten(&t, s, v, NULL, true, " (global)");
		if (shared)
			add_published_forgotten(&t, s, v, true);
		if (after)
			add_exchanged(&t, s, v, shared);
	}
	table_print(&t, out);
	table_release(&t);
}

static void add_forgotten_agents(struct table *t, const struct show *s, size_t v, size_t agents,
				 bool shared)
{
	table_add(t, "%s%s", s->x->at[v].name, shared ? " (global)" : "");
	for (size_t i = 0; i < agents; i++) {
		double gone = agent_mean(s, v, i, shared ? "forgotten_shared" : "forgotten", "mrr");
		double kept = agent_mean(s, v, i, shared ? "test_shared" : "test", "mrr");

		table_add(t, isnan(gone) || isnan(kept) ? "-" : "%.4f, %.4f", gone, kept);
	}
}

static void print_forgotten_agents(const struct show *s, struct buf *out)
{
	const json_t *all = agents_of_any(s), *agent;
	struct table t;
	size_t i;

	if (all == NULL)
		return;
	buf_printf(out,
		   "\nMRR of each agent, forgotten triples and test, mean over the seeds:\n\n");
	table_init(&t, json_array_size(all) + 1);
	table_add(&t, "tables");
	json_array_foreach(all, i, agent)
		table_add(&t, "%s", json_string_value(json_object_get(agent, "agent")));
	for (size_t v = 0; v < s->x->n; v++) {
		if (!experiment_forgets(s->x, &s->x->at[v]))
			continue;
		add_forgotten_agents(&t, s, v, json_array_size(all), false);
		if (has_shared(s, v))
			add_forgotten_agents(&t, s, v, json_array_size(all), true);
	}
	table_print(&t, out);
	table_release(&t);
}

static void print_forgotten(const struct show *s, struct buf *out)
{
	bool any = false;

	for (size_t v = 0; v < s->x->n; v++)
		any = any || experiment_forgets(s->x, &s->x->at[v]);
	if (!any)
		return;
	buf_printf(
		out,
		"\n## Forgotten triples\n\n%g %% of each agent's train, drawn by the seed.  Of "
		"forgotten triples lower is better; their filter is valid, test and what is kept "
		"of train.  *exchanged*: after one exchange of rows without training.\n\n",
		100 * s->x->forget);
	print_forgotten_means(s, out);
	print_forgotten_agents(s, out);
}

/* Parameters sent when valid first reached `share` of the reference's best, NAN if never. */
static double params_at(const json_t *record, double goal)
{
	const json_t *evaluation;
	size_t i;

	json_array_foreach(json_object_get(record, "curve"), i,
			   evaluation) if (experiment_number(evaluation, "valid_mrr", NULL) >=
					   goal) return experiment_number(evaluation, "params",
									  NULL);
	return (double)NAN;
}

static size_t reference_of(const struct show *s)
{
	size_t v = 0;

	while (v < s->x->n && strcmp(s->x->at[v].name, s->x->reference) != 0)
		v++;
	return v;
}

/* Against the reference with the same seed; mean over the seeds that both have. */
static void add_ratio(struct table *t, const struct show *s, size_t v, double share)
{
	size_t reference = reference_of(s), n = 0;
	double sum = 0;

	for (size_t k = 0; k < s->x->n_seeds && reference < s->x->n; k++) {
		const json_t *a = experiment_record_of(s, v, k),
			     *b = experiment_record_of(s, reference, k);
		double goal = share * experiment_number(b, "best_valid_mrr", NULL), had, needed;

		if (a == NULL || b == NULL)
			continue;
		had = share > 0 ? params_at(a, goal) : experiment_number(a, "params", NULL);
		needed = share > 0 ? params_at(b, goal) : experiment_number(b, "params", NULL);
		sum += had / needed;
		n++;
	}
	if (n == 0 || s->x->at[v].kind != EXP_ROUNDS)
		table_add(t, "-");
	else if (isnan(sum))
		table_add(t, "not reached");
	else
		table_add(t, "%.4f", sum / (double)n);
}

/* Where each agent keeps its own: from the first of them to the last. */
static void add_best_rounds(struct table *t, const struct show *s, size_t v)
{
	struct spread p = spread_of(s, v, "best_round", NULL);
	double first = INFINITY, last = 0;

	for (size_t k = 0; k < s->x->n_seeds; k++) {
		const json_t *all = json_object_get(experiment_record_of(s, v, k), "agents");

		for (size_t i = 0; i < json_array_size(all); i++) {
			double at = experiment_number(json_array_get(all, i), "best_round", NULL);

			first = fmin(first, at);
			last = fmax(last, at);
		}
	}
	if (s->x->at[v].keep == EXP_EACH && p.n > 0)
		table_add(t, "%.0f to %.0f", first, last);
	else
		experiment_add_spread(t, &p, 0);
}

static void print_costs(const struct show *s, struct buf *out)
{
	bool ratios = reference_of(s) < s->x->n, wire = any_over_tcp(s);
	struct table t;

	buf_printf(out, "\n## What it took, mean over the seeds\n\n");
	table_init(&t, (ratios ? 11u : 8u) + wire);
	table_add(&t, "method");
	table_add(&t, "rounds");
	table_add(&t, "best round");
	table_add(&t, "best valid MRR");
	table_add(&t, "million parameters");
	table_add(&t, "MB sent");
	if (wire)
		table_add(&t, "MB on the wire");
	table_add(&t, "most through one agent");
	table_add(&t, "CPU s");
	for (int i = 0; ratios && i < 3; i++)
		table_add(&t, "parameters against %s, %s", s->x->reference,
			  i == 0   ? "all"
			  : i == 1 ? "to 98 %"
				   : "to 99 %");
	for (size_t v = 0; v < s->x->n; v++) {
		struct spread p = spread_of(s, v, "rounds", NULL), q;

		table_add(&t, "%s%s", s->x->at[v].name, mark_of(&s->x->at[v]));
		experiment_add_spread(&t, &p, 0);
		add_best_rounds(&t, s, v);
		p = spread_of(s, v,
			      s->x->at[v].keep == EXP_EACH ? "kept_valid_mrr" : "best_valid_mrr",
			      NULL);
		experiment_add_spread(&t, &p, 4);
		q = spread_of(s, v, "params", NULL);
		p = spread_of(s, v, "bytes", NULL);
		/* Of encoders bytes alone are counted. */
		table_add(&t, q.n > 0 && (q.mean > 0 || p.mean == 0) ? "%.1f" : "-", q.mean / 1e6);
		table_add(&t, p.n > 0 ? "%.1f" : "-", p.mean / 1e6);
		q = spread_of(s, v, "wire_bytes", NULL);
		if (wire)
			table_add(&t, q.n > 0 && q.mean > 0 ? "%.1f" : "-", q.mean / 1e6);
		q = spread_of(s, v, "most_bytes_through_one", NULL);
		table_add(&t, q.n > 0 && q.mean > 0 ? "%.0f %%" : "-", 100 * q.mean / p.mean);
		p = spread_of(s, v, "cpu_seconds", NULL);
		table_add(&t, p.n > 0 ? "%.0f" : "-", p.mean);
		for (int i = 0; ratios && i < 3; i++)
			add_ratio(&t, s, v, i == 0 ? 0 : i == 1 ? 0.98 : 0.99);
	}
	table_print(&t, out);
	table_release(&t);
}

/* ---- names ---- */

static void add_named(struct table *t, const char *agent, const json_t *names)
{
	static const char *const keys[] = { "shared", "own", "strangers", "shadowed" };

	table_add(t, "%s", agent);
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		table_add(t, "%.0f", experiment_number(names, keys[i], NULL));
}

/* Of the first record that has agents; a note where something is lost. */
static void print_named(const struct lab_out *notes, const struct show *s, struct buf *out)
{
	const json_t *agent, *all = agents_of_any(s);
	struct table t;
	size_t i;

	if (json_object_get(json_array_get(all, 0), "names") == NULL)
		return;
	table_init(&t, 5);
	table_add(&t, "agent");
	table_add(&t, "shared names");
	table_add(&t, "own name");
	table_add(&t, "lines of no entity");
	table_add(&t, "names of another");
	json_array_foreach(all, i, agent)
	{
		const json_t *names = json_object_get(agent, "names");
		const char *name = json_string_value(json_object_get(agent, "agent"));
		double strangers = experiment_number(names, "strangers", NULL);
		double shadowed = experiment_number(names, "shadowed", NULL);

		add_named(&t, name, names);
		if (strangers > 0)
			lab_note(notes,
				 "%s: %.0f of %.0f lines of names are of nothing in its "
				 "graph, and are dropped\n",
				 name, strangers, experiment_number(names, "lines", NULL));
		if (shadowed > 0)
			lab_note(
				notes,
				"%s: %.0f shared names are also another entity's own, which so has "
				"none\n",
				name, shadowed);
	}
	buf_printf(out, "\n## Names of entities\n\n");
	table_print(&t, out);
	table_release(&t);
}

/* ---- runs that are not over ---- */

static void add_unfinished(struct table *t, const struct exp_variant *v, uint64_t seed,
			   const json_t *head)
{
	const json_t *curve = json_object_get(head, "curve");
	const json_t *last = json_array_get(curve, json_array_size(curve) - 1);
	double seconds = experiment_number(last, "virtual_s", NULL);

	table_add(t, "%s", v->name);
	table_add(t, "%llu", (unsigned long long)seed);
	table_add(t, "%.0f of %u", experiment_number(head, "done", NULL), v->rounds);
	table_add(t, "%.0f", experiment_number(head, "best_round", NULL));
	table_add(t, "%.4f", experiment_number(head, "best", NULL));
	table_add(t, "%.4f", experiment_number(last, "valid_mrr", NULL));
	table_add(t, isnan(seconds) ? "-" : "%.1f", seconds);
}

/* Test is ranked at the end alone; valid is there before. */
static void print_unfinished(const struct show *s, struct buf *out)
{
	static const char *const columns[] = { "method",     "seed",	   "round",    "best round",
					       "best valid", "last valid", "virtual s" };
	size_t rows = 0;
	struct table t;

	table_init(&t, sizeof(columns) / sizeof(columns[0]));
	for (size_t i = 0; i < sizeof(columns) / sizeof(columns[0]); i++)
		table_add(&t, "%s", columns[i]);
	for (size_t i = 0; i < s->x->n * s->x->n_seeds; i++) {
		const struct exp_variant *v = &s->x->at[i / s->x->n_seeds];
		uint64_t seed = s->x->seeds[i % s->x->n_seeds];
		json_t *head = s->record[i] != NULL || v->processes
				       ? NULL
				       : experiment_under_way(s->x, v, s->out, seed);

		if (head != NULL && json_array_size(json_object_get(head, "curve")) > 0) {
			add_unfinished(&t, v, seed, head);
			rows++;
		}
		json_decref(head);
	}
	if (rows > 0) {
		buf_printf(out, "\n## Under way: MRR on valid so far\n\n");
		table_print(&t, out);
	}
	table_release(&t);
}

/* ---- virtual time ---- */

enum { GOAL_PERCENT = 95 };

/* Slow, or away, in any variant: by their places among the agents of the records. */
static uint64_t unlike_others(const struct show *s)
{
	const json_t *agent;
	uint64_t places = 0;
	size_t i;

	json_array_foreach(agents_of_any(s), i, agent)
	{
		const char *name = json_string_value(json_object_get(agent, "agent"));

		for (size_t v = 0; v < s->x->n; v++)
			for (size_t k = 0; k < s->x->at[v].n_pace; k++)
				if (strcmp(s->x->at[v].pace[k].agent, name) == 0)
					places |= UINT64_C(1) << i;
	}
	return places;
}

/* Of a point of a curve: of all agents, or the plain mean without some. */
static double mean_without(const json_t *point, uint64_t some)
{
	const json_t *scores = json_object_get(point, "agents"), *score;
	double sum = 0;
	size_t i, n = 0;

	if (some == 0)
		return experiment_number(point, "valid_mrr", NULL);
	json_array_foreach(scores, i, score)
	{
		if (some >> i & 1)
			continue;
		sum += json_number_value(score);
		n++;
	}
	return n > 0 ? sum / (double)n : (double)NAN;
}

static double best_without(const json_t *record, uint64_t some)
{
	const json_t *point;
	double best = -INFINITY;
	size_t i;

	json_array_foreach(json_object_get(record, "curve"), i, point) best =
		fmax(best, mean_without(point, some));
	return best;
}

/* Virtual seconds until the mean on valid is at the goal; NAN: it never is. */
static double seconds_until(const json_t *record, uint64_t some, double goal)
{
	const json_t *point;
	size_t i;

	json_array_foreach(json_object_get(record, "curve"), i,
			   point) if (mean_without(point, some) >=
				      goal) return experiment_number(point, "virtual_s", NULL);
	return (double)NAN;
}

/* Mean over the seeds that both have. */
static void add_until(struct table *t, const struct show *s, size_t v, uint64_t some)
{
	double sum = 0;
	size_t n = 0, reference = reference_of(s);

	for (size_t k = 0; k < s->x->n_seeds; k++) {
		const json_t *a = experiment_record_of(s, v, k),
			     *b = experiment_record_of(s, reference, k);

		if (a == NULL || b == NULL)
			continue;
		sum += seconds_until(a, some, GOAL_PERCENT / 100.0 * best_without(b, some));
		n++;
	}
	if (n == 0)
		table_add(t, "-");
	else
		table_add(t, isnan(sum) ? "not reached" : "%.1f", sum / (double)n);
}

static bool has_virtual_time(const struct exp_variant *v)
{
	return (v->kind == EXP_PAIRS || v->kind == EXP_ROUNDS) && !v->processes;
}

static void add_durations(struct table *t, const struct show *s, size_t v, uint64_t some)
{
	struct spread p = spread_of(s, v, "virtual_s", NULL);

	table_add(t, "%s", s->x->at[v].name);
	experiment_add_spread(t, &p, 1);
	p = spread_of(s, v, "sessions", NULL);
	table_add(t, p.n > 0 && s->x->at[v].kind == EXP_PAIRS ? "%.0f" : "-", p.mean);
	if (reference_of(s) == s->x->n)
		return;
	add_until(t, s, v, 0);
	if (some != 0)
		add_until(t, s, v, some);
}

static void print_times(const struct show *s, struct buf *out)
{
	uint64_t some = unlike_others(s);
	bool reference = reference_of(s) < s->x->n, any = false;
	struct table t;

	for (size_t v = 0; v < s->x->n; v++)
		any = any || s->x->at[v].kind == EXP_PAIRS || s->x->at[v].n_pace > 0;
	if (!any)
		return;
	buf_printf(out, "\n## Virtual time, mean over the seeds\n\n");
	table_init(&t, 3u + reference + (reference && some != 0));
	table_add(&t, "method");
	table_add(&t, "virtual s");
	table_add(&t, "sessions");
	if (reference)
		table_add(&t, "s until %d %% of %s's best", GOAL_PERCENT, s->x->reference);
	if (reference && some != 0)
		table_add(&t, "the same, of the others");
	for (size_t v = 0; v < s->x->n; v++)
		if (has_virtual_time(&s->x->at[v]))
			add_durations(&t, s, v, some);
	table_print(&t, out);
	table_release(&t);
	buf_printf(out,
		   "\nThe mean on valid of all agents; *of the others*: the plain mean without "
		   "those that are slow or away in any variant.  Of pairs the mean is of what "
		   "each keeps, of rounds of what it has.\n");
}

static bool any_keeps_each(const struct show *s)
{
	for (size_t v = 0; v < s->x->n; v++)
		if (s->x->at[v].keep == EXP_EACH)
			return true;
	return false;
}

static void print_protocol(const struct show *s, struct buf *out)
{
	const struct kge_protocol *p = config_protocol(&s->x->at[0].config);
	char text[WORK_PROTOCOL_TEXT];
	static const char *const averages[] = { "queries", "train triples", "plain mean" };

	lab_work_protocol_text(p, text);
	buf_printf(out, "Data: `%s`", s->x->data);
	if (s->x->names[0] != '\0')
		buf_printf(out, ", names: `%s`", s->x->names);
	if (s->x->gone)
		buf_printf(out, " (is not there, or is not this file's: runs are of the data that "
				"most are of)");
	buf_printf(out, ".  Protocol %s; mean over the agents by %s.  Seeds:", text,
		   averages[s->x->average]);
	for (size_t k = 0; k < s->x->n_seeds; k++)
		buf_printf(out, " %llu", (unsigned long long)s->x->seeds[k]);
	buf_printf(out, ".  What is kept is the round best on valid, whose filter does not know "
			"test; test is ranked once, at the end.  ");
	if (any_keeps_each(s))
		buf_printf(out, "Best rounds *from* one *to* another: every agent keeps its own "
				"best one, else all keep the one that is best by the mean.  ");
	if (any_aggregated(s))
		buf_printf(out, "*Aggregated*: of tables as a round leaves them; all others are as "
				"training leaves them.  ");
	if (any_over_tcp(s))
		buf_printf(out,
			   "*Over TCP* each agent was a process of its own; *on the wire* is all "
			   "that went over its links, *sent* what rounds say.  ");
	buf_printf(out,
		   "Cells are mean ± standard deviation of a sample (n - 1) over the seeds.\n\n");
}

static bool any_search(const struct show *s)
{
	for (size_t v = 0; v < s->x->n; v++)
		if (s->x->at[v].search != EXP_NO_SEARCH)
			return true;
	return false;
}

struct unlike {
	const struct exp_variant *v;
	struct buf *out;
};

static void print_unlike(void *ctx, const struct config_difference *d)
{
	const struct unlike *u = ctx;
	char section[32] = "";

	sscanf(d->key, "%31[^.]", section);
	if (experiment_has_section(u->v, section) && experiment_goes_by(u->v, d->key))
		buf_printf(u->out, " %s %s;", d->key, d->is);
}

static void print_variant(const struct show *s, const struct exp_variant *v, struct buf *out)
{
	json_t *j = experiment_settings_json(s->x, v), *value;
	struct unlike u = { v, out };
	const char *key;

	buf_printf(out, "* **%s**:", v->name);
	json_object_foreach(j, key, value)
	{
		char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(6));

		/* those of agent.yaml come below; what is unlearned has a line of its own */
		if (strcmp(key, "settings") != 0 && strcmp(key, "learnt") != 0)
			buf_printf(out, " %s %s;", key, text);
		free(text);
	}
	json_decref(j);
	if (v->kind != EXP_ENCODERS)
		config_differ(&s->x->at[0].config, &v->config, print_unlike, &u);
	buf_printf(out, "\n");
}

/* Without what no run of it goes by. */
static void print_train(const struct exp_variant *v, struct buf *out)
{
	struct buf text = { 0 };

	config_print_section(&v->config, "train", &text);
	buf_add(&text, "", 1);
	experiment_add_used(v, (const char *)text.base, out);
	buf_release(&text);
}

/* Of agent.yaml: those of the first in full, of the others what is another. */
static void print_settings(const struct show *s, struct buf *out)
{
	static const char *const pairs[] = { "federation", "ppat", "privacy" };
	const struct exp_variant *first = &s->x->at[0];
	bool meets = first->kind == EXP_PAIRS;

	buf_printf(out, "\n## Settings\n\n");
	for (size_t v = 0; v < s->x->n; v++)
		print_variant(s, &s->x->at[v], out);
	if (s->x->asks && !any_search(s))
		return;
	buf_printf(out,
		   "\nA line has what of agent.yaml is not as the first has it, of whom this is "
		   "model, train%s:\n\n```yaml\n",
		   meets ? ", eval, federation, ppat and privacy" : " and eval");
	config_print_section(&first->config, "model", out);
	print_train(first, out);
	config_print_section(&first->config, "eval", out);
	for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]) && meets; i++)
		config_print_section(&first->config, pairs[i], out);
	buf_printf(out, "```\n");
}

/* ---- CSV ---- */

static const char *agents_as(const json_t *record)
{
	const char *text =
		json_string_value(json_object_get(json_object_get(record, "settings"), "agents"));

	return text != NULL ? text : "simulated";
}

static void print_metrics(struct buf *out, const struct show *s, const json_t *r, const char *agent,
			  const json_t *figures_of, const char *when)
{
	static const char *const sets[][2] = {
		{ "test", "" },
		{ "test_shared", " global" },
		{ "forgotten", " forgotten" },
		{ "forgotten_shared", " forgotten global" },
	};

	for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
		const json_t *metrics = json_object_get(figures_of, sets[i][0]);

		if (experiment_number(metrics, "queries", NULL) == 0)
			continue;
		for (size_t k = 0; k < FIGURES && metrics != NULL; k++) {
			experiment_begin_csv(out, s, r, agent);
			buf_printf(out, "%s%s%s,%.6f,%s\n", titles[k], sets[i][1], when,
				   experiment_number(metrics, figures[k], NULL), agents_as(r));
		}
	}
}

/* The costs of a run, of all agents together; of one, what it kept and what went through it. */
static void print_took(struct buf *out, const struct show *s, const json_t *r, const char *agent,
		       const json_t *of)
{
	static const char *const keys[] = {
		"rounds",      "best_round", "best_valid_mrr", "kept_valid_mrr",
		"params",      "bytes",	     "wire_bytes",     "most_bytes_through_one",
		"cpu_seconds", "virtual_s",  "epochs",	       "sessions",
		"messages",
	};

	for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++) {
		double x = experiment_number(of, keys[k], NULL);

		if (isnan(x))
			continue;
		experiment_begin_csv(out, s, r, agent);
		buf_printf(out, "%s,%.15g,%s\n", keys[k], x, agents_as(r));
	}
}

static void print_csv(const struct show *s, struct buf *out)
{
	buf_printf(out, "experiment,variant,seed,agent,metric,value,agents\n");
	for (size_t i = 0; i < s->x->n * s->x->n_seeds; i++) {
		const json_t *r = s->record[i], *agent;
		size_t k;

		if (r == NULL)
			continue;
		print_metrics(out, s, r, "mean", r, "");
		print_metrics(out, s, r, "mean", json_object_get(r, "exchanged"), " exchanged");
		print_metrics(out, s, r, "mean", json_object_get(r, "raw_exchanged"),
			      " raw exchanged");
		print_took(out, s, r, "all", r);
		experiment_show_queries_csv(s, r, agents_as(r), out);
		json_array_foreach(json_object_get(r, "agents"), k, agent)
		{
			const char *name = json_string_value(json_object_get(agent, "agent"));

			print_metrics(out, s, r, name, agent, "");
			print_took(out, s, r, name, agent);
			print_metrics(
				out, s, r, name,
				json_object_get(json_object_get(agent, "unlearning"), "exchanged"),
				" exchanged");
		}
	}
}

/* ---- the picture: valid MRR by round, first seed ---- */

struct span {
	double least, most;
};

static void widen(struct span *w, double x)
{
	w->least = fmin(w->least, x);
	w->most = fmax(w->most, x);
}

/* Of one validation alone gnuplot would say that its range is empty. */
static void print_range(struct buf *out, char axis, const struct span *w)
{
	double room = w->least != 0 ? .1 * fabs(w->least) : .1;

	if (w->least == w->most)
		buf_printf(out, "set %crange [%g:%g]\n", axis, w->least - room, w->most + room);
}

static void print_ranges(const struct show *s, struct buf *out)
{
	struct span round = { INFINITY, -INFINITY }, mrr = round;

	for (size_t v = 0; v < s->x->n; v++) {
		const json_t *evaluation;
		size_t i;

		json_array_foreach(json_object_get(experiment_record_of(s, v, 0), "curve"), i,
				   evaluation)
		{
			widen(&round, experiment_number(evaluation, "round", NULL));
			widen(&mrr, experiment_number(evaluation, "valid_mrr", NULL));
		}
	}
	print_range(out, 'x', &round);
	print_range(out, 'y', &mrr);
}

static bool print_script(const struct show *s, struct buf *out)
{
	bool any = false;

	buf_printf(out, "set terminal svg size 900,560 dynamic font 'sans-serif,14' background "
			"'#ffffff'\nset grid lc '#dddddd'\nset border 3\nset tics nomirror out\n"
			"set key outside right noenhanced\nset xlabel 'rounds'\n"
			"set ylabel 'MRR on valid'\n");
	print_ranges(s, out);
	for (size_t v = 0; v < s->x->n; v++) {
		const json_t *r = experiment_record_of(s, v, 0), *evaluation;
		size_t i;

		buf_printf(out, "$v%zu << END\n", v);
		json_array_foreach(json_object_get(r, "curve"), i, evaluation)
			buf_printf(out, "%g %.6f\n", experiment_number(evaluation, "round", NULL),
				   experiment_number(evaluation, "valid_mrr", NULL));
		buf_printf(out, "END\n");
	}
	for (size_t v = 0; v < s->x->n; v++) {
		size_t n_valid =
			json_array_size(json_object_get(experiment_record_of(s, v, 0), "curve"));

		if (n_valid == 0)
			continue;
		buf_printf(out, "%s $v%zu using 1:2 with %s title '%s%s'", any ? "," : "plot", v,
			   n_valid == 1 ? "points pt 7" : "lines lw 2", s->x->at[v].name,
			   mark_of(&s->x->at[v]));
		any = true;
	}
	buf_printf(out, "\n");
	return any;
}

/* ---- files ---- */

static int write_file(const char *folder, const char *name, const struct buf *text, struct err *e)
{
	char *path = file_join(folder, name);
	int rc = file_write_atomic(path, text->base, text->len, 0644, e);

	free(path);
	return rc;
}

static int draw_picture(const struct lab_out *notes, const struct show *s, const char *out,
			bool *drawn, struct err *e)
{
	static const char *const gnuplot[] = { "gnuplot", "-", NULL };
	struct buf script = { 0 }, picture = { 0 };
	struct err why = { 0 };
	int rc = 0;

	*drawn = print_script(s, &script) && child_filter(gnuplot, &script, &picture, &why) == 0 &&
		 picture.len > 0;
	if (*drawn)
		rc = write_file(out, "curves.svg", &picture, e);
	else if (why.code != 0)
		lab_note(notes, "No picture: %s (Debian: gnuplot-nox)\n", why.text);
	buf_release(&script);
	buf_release(&picture);
	return rc;
}

static int write_all(const struct lab_out *notes, const struct show *s, const char *out,
		     struct err *e)
{
	struct buf csv = { 0 }, text = { 0 };
	bool drawn = false;
	int rc;

	print_csv(s, &csv);
	rc = write_file(out, "results.csv", &csv, e);
	if (rc == 0)
		rc = draw_picture(notes, s, out, &drawn, e);
	buf_printf(&text, "# %s\n\n", s->x->name);
	experiment_show_queries(s, &text);
	if (s->x->asks && any_search(s))
		buf_printf(&text, "\n## Triples, by the tables that are searched\n\n");
	if (!s->x->asks || any_search(s)) {
		print_protocol(s, &text);
		print_quality(s, &text);
	}
	if (drawn)
		buf_printf(&text, "\n![valid MRR by round, first seed](curves.svg)\n");
	print_unfinished(s, &text);
	print_agents(s, &text);
	print_forgotten(s, &text);
	print_costs(s, &text);
	print_times(s, &text);
	print_named(notes, s, &text);
	print_settings(s, &text);
	if (rc == 0)
		rc = write_file(out, "report.md", &text, e);
	buf_release(&csv);
	buf_release(&text);
	return rc;
}

static void tell_strays(const struct lab_out *notes, const struct show *s)
{
	for (size_t v = 0; v < s->x->n; v++)
		if (s->strays[v] > 0)
			lab_note(notes,
				 "%s: %zu of its runs are of other data than %s%s, so left out\n",
				 s->x->at[v].name, s->strays[v],
				 s->x->gone ? "most here" : "there is now in ",
				 s->x->gone ? "" : s->x->data);
}

static void find_other(const struct lab_out *notes, struct show *s, const char *left_by)
{
	s->other = mem_array(s->x->n, sizeof(*s->other));
	for (size_t v = 0; v < s->x->n; v++) {
		for (size_t k = 0; k < s->x->n_seeds; k++)
			if (experiment_record_of(s, v, k) != NULL &&
			    !experiment_is_of_now(s->x, &s->x->at[v],
						  experiment_record_of(s, v, k)))
				s->other[v]++;
		if (s->other[v] > 0)
			lab_note(notes,
				 "%s: %zu of its runs were made with other settings than those of "
				 "now; without %s they are made again\n",
				 s->x->at[v].name, s->other[v], left_by);
	}
}

/* Of place i: variant * n_seeds + seed. */
static json_t *load_record(const struct experiment *x, const char *out, size_t i)
{
	char *path = experiment_record_path(out, &x->at[i / x->n_seeds], x->seeds[i % x->n_seeds]);
	json_t *record = json_load_file(path, 0, NULL);

	free(path);
	return record;
}

static int read_records(struct show *s, const char *out, struct err *e)
{
	int rc = 0;

	s->record = mem_array(s->x->n * s->x->n_seeds, sizeof(json_t *));
	s->strays = mem_array(s->x->n, sizeof(*s->strays));
	for (size_t i = 0; i < s->x->n * s->x->n_seeds; i++) {
		s->record[i] = load_record(s->x, out, i);
		if (s->record[i] == NULL || experiment_is_of_data(s->x, s->record[i]))
			continue;
		s->strays[i / s->x->n_seeds]++;
		json_decref(s->record[i]);
		s->record[i] = NULL;
	}
	if (s->x->published[0] != '\0')
		rc = file_read(s->x->published, 16 << 20, &s->published, e);
	if (s->published.len > 0)
		buf_add(&s->published, "", 1), s->published.len--;
	return rc;
}

int experiment_show(const struct lab_out *notes, const struct experiment *x, const char *out,
		    const char *left_by, struct err *e)
{
	struct show s = { .x = x, .out = out };
	int rc = read_records(&s, out, e);

	find_other(notes, &s, left_by);
	tell_strays(notes, &s);
	tell_unpublished(notes, &s);
	if (rc == 0)
		rc = write_all(notes, &s, out, e);
	for (size_t i = 0; i < x->n * x->n_seeds; i++)
		json_decref(s.record[i]);
	free(s.record);
	free(s.other);
	free(s.strays);
	buf_release(&s.published);
	return rc;
}

/* How many of n records are of this data. */
static size_t count_of_digest(json_t *const *record, size_t n, const char *digest)
{
	size_t alike = 0;

	for (size_t i = 0; i < n; i++) {
		const char *of = json_string_value(json_object_get(record[i], "data_digest"));

		alike += of != NULL && strcmp(of, digest) == 0;
	}
	return alike;
}

void experiment_digest_to_show(const struct lab_out *notes, struct experiment *x, const char *out)
{
	size_t n = x->n * x->n_seeds, most = 0;
	struct err absent = { 0 };
	json_t **record;

	if (experiment_digest(x, &absent) == 0)
		return;
	x->gone = true;
	lab_note(notes, "%s; shown are the runs of the data that most of them are of\n",
		 absent.text);
	record = mem_array(n, sizeof(json_t *));
	for (size_t i = 0; i < n; i++)
		record[i] = load_record(x, out, i);
	for (size_t i = 0; i < n; i++) {
		const char *of = json_string_value(json_object_get(record[i], "data_digest"));
		size_t alike = of != NULL ? count_of_digest(record, n, of) : 0;

		if (alike > most && strlen(of) == EXPERIMENT_DIGEST) {
			most = alike;
			memcpy(x->digest, of, EXPERIMENT_DIGEST + 1);
		}
	}
	for (size_t i = 0; i < n; i++)
		json_decref(record[i]);
	free(record);
}
