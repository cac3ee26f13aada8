/* Reference cases of ranking and classification: every .json file in
 * $FKGE_VECTORS/eval, else tests/vectors/eval, whatever its name.  A case or a key
 * that nobody here understands is a failure. */
#include "tests/test.h"

#include <jansson.h>
#include <stdbool.h>

#include "base/mem.h"
#include "kge/eval.h"
#include "tests/vectors.h"

static double tolerance;
static const char *case_id = "";

/* ---- reading ---- */

static json_t *need(const json_t *o, const char *key)
{
	json_t *v = json_object_get(o, key);

	if (v == NULL)
		fail_msg("%s: no key '%s'", case_id, key);
	return v;
}

static double number(const json_t *v)
{
	if (json_is_string(v)) {
		const char *s = json_string_value(v);

		if (strcmp(s, "nan") == 0)
			return NAN;
		if (strcmp(s, "inf") == 0)
			return INFINITY;
		if (strcmp(s, "-inf") == 0)
			return -INFINITY;
		fail_msg("%s: '%s' where a number is wanted", case_id, s);
	}
	if (!json_is_number(v))
		fail_msg("%s: something else where a number is wanted", case_id);
	return json_number_value(v);
}

static const char *text(const json_t *o, const char *key)
{
	const char *s = json_string_value(need(o, key));

	if (s == NULL)
		fail_msg("%s: '%s' is not a string", case_id, key);
	return s;
}

static uint32_t whole(const json_t *v)
{
	if (!json_is_integer(v) || json_integer_value(v) < 0)
		fail_msg("%s: something else where a whole number is wanted", case_id);
	return (uint32_t)json_integer_value(v);
}

static float *floats(const json_t *list, size_t *n)
{
	float *out;

	*n = json_array_size(list);
	out = mem_array(*n + 1, sizeof *out);
	for (size_t i = 0; i < *n; i++)
		out[i] = (float)number(json_array_get(list, i));
	return out;
}

/* NULL stays NULL. */
static uint32_t *ids(const json_t *list, size_t *n)
{
	uint32_t *out;

	*n = json_array_size(list);
	if (json_is_null(list))
		return NULL;
	out = mem_array(*n + 1, sizeof *out);
	for (size_t i = 0; i < *n; i++)
		out[i] = whole(json_array_get(list, i));
	return out;
}

static void only_keys(const json_t *o, const char *const *allowed)
{
	const char *key;
	json_t *v;

	json_object_foreach((json_t *)(uintptr_t)o, key, v)
	{
		size_t i = 0;

		while (allowed[i] != NULL && strcmp(allowed[i], key) != 0)
			i++;
		if (allowed[i] == NULL)
			fail_msg("%s: nobody checks the key '%s'", case_id, key);
	}
}

#define ONLY_KEYS(o, ...) only_keys(o, (const char *const[]){ __VA_ARGS__, NULL })

static void same(const char *what, double got, double want)
{
	if (!(fabs(got - want) <= tolerance))
		fail_msg("%s: %s: got %.17g, want %.17g", case_id, what, got, want);
}

static bool lower_is_better(const json_t *c)
{
	const char *order = text(c, "order");

	if (strcmp(order, "lower") != 0 && strcmp(order, "higher") != 0)
		fail_msg("%s: order '%s'", case_id, order);
	return strcmp(order, "lower") == 0;
}

/* ---- rank ---- */

static const struct {
	const char *name;
	enum kge_ties ties;
} policies[] = { { "optimistic", KGE_TIES_OPTIMISTIC },
		 { "pessimistic", KGE_TIES_PESSIMISTIC },
		 { "realistic", KGE_TIES_REALISTIC } };

/* What arbitrary ties give on average, of reciprocal rank (k = 0) or of hits at k. */
static double over_orders(const struct kge_ranked *r, uint32_t k)
{
	double sum = 0;

	for (uint32_t i = 0; i <= r->equal; i++) {
		double rank = 1.0 + r->greater + i;

		sum += k == 0 ? 1 / rank : rank <= k;
	}
	return sum / (r->equal + 1.0);
}

static void check_ranks(const json_t *expect, const struct kge_ranked *r)
{
	const json_t *rank = need(expect, "rank"), *rr = need(expect, "rr");

	ONLY_KEYS(rank, "optimistic", "pessimistic", "realistic", "rounded_mean");
	ONLY_KEYS(rr, "optimistic", "pessimistic", "realistic", "random_expected");
	for (size_t p = 0; p < 3; p++) {
		double got = kge_rank(r, policies[p].ties);

		same(policies[p].name, got, number(need(rank, policies[p].name)));
		same("reciprocal", 1 / got, number(need(rr, policies[p].name)));
	}
	/* LibKGE's rank follows from the same two counts */
	same("rounded_mean", 1.0 + r->greater + (r->equal + 1) / 2,
	     number(need(rank, "rounded_mean")));
	same("rr over orders", over_orders(r, 0), number(need(rr, "random_expected")));
}

static double hits_at(const struct kge_metrics *m, long k)
{
	switch (k) {
	case 1:
		return m->hits1;
	case 3:
		return m->hits3;
	case 5:
		return m->hits5;
	case 10:
		return m->hits10;
	default:
		fail_msg("%s: Hits@%ld", case_id, k);
		return NAN;
	}
}

static void check_hits(const json_t *hits, const struct kge_ranked *r)
{
	const char *key;
	json_t *at;

	json_object_foreach((json_t *)(uintptr_t)hits, key, at)
	{
		long k = strtol(key, NULL, 10);

		ONLY_KEYS(at, "optimistic", "pessimistic", "realistic", "random_expected");
		for (size_t p = 0; p < 3; p++) {
			struct kge_metrics m;

			kge_metrics_of(r, 1, policies[p].ties, &m);
			same("hits", hits_at(&m, k), number(need(at, policies[p].name)));
		}
		same("hits over orders", over_orders(r, (uint32_t)k),
		     number(need(at, "random_expected")));
	}
}

static void check_rank(const json_t *c)
{
	const json_t *expect = need(c, "expect"), *list = need(c, "candidates");
	struct kge_ranked r = { .side = strcmp(text(c, "side"), "head") == 0 ? GRAPH_HEAD
									     : GRAPH_TAIL };
	size_t n, n_filter, n_candidates;
	float *scores = floats(need(c, "scores"), &n);
	uint32_t *filter = ids(need(c, "filter"), &n_filter);
	uint32_t *candidates = ids(list, &n_candidates);

	ONLY_KEYS(c, "id", "kind", "note", "side", "order", "scores", "gold", "filter",
		  "candidates", "expect");
	ONLY_KEYS(expect, "candidates", "greater", "equal", "rank", "rr", "hits");
	kge_rank_scores(&r, scores, (uint32_t)n, whole(need(c, "gold")), lower_is_better(c), filter,
			n_filter, candidates, n_candidates);
	same("candidates", r.candidates, number(need(expect, "candidates")));
	same("greater", r.greater, number(need(expect, "greater")));
	same("equal", r.equal, number(need(expect, "equal")));
	check_ranks(expect, &r);
	check_hits(need(expect, "hits"), &r);
	free(scores);
	free(filter);
	free(candidates);
}

/* ---- metrics ---- */

static void check_policy(const json_t *want, const struct kge_metrics *m)
{
	const struct {
		const char *name;
		double value;
	} all[] = { { "mr", m->mr },	    { "mrr", m->mrr },	    { "hits@1", m->hits1 },
		    { "hits@3", m->hits3 }, { "hits@5", m->hits5 }, { "hits@10", m->hits10 } };

	ONLY_KEYS(want, "mr", "mrr", "hits@1", "hits@3", "hits@5", "hits@10");
	for (size_t i = 0; i < sizeof all / sizeof *all; i++)
		if (json_object_get(want, all[i].name) != NULL)
			same(all[i].name, all[i].value, number(need(want, all[i].name)));
}

static void check_metrics(const json_t *want, const struct kge_ranked *r, size_t n)
{
	ONLY_KEYS(want, "queries", "optimistic", "pessimistic", "realistic");
	same("queries", (double)n, number(need(want, "queries")));
	for (size_t p = 0; p < 3; p++) {
		struct kge_metrics m;

		kge_metrics_of(r, n, policies[p].ties, &m);
		check_policy(need(want, policies[p].name), &m);
	}
}

/* ---- graph ---- */

static void add_triples(struct graph *g, enum graph_split s, const json_t *list)
{
	for (size_t i = 0; i < json_array_size(list); i++) {
		const json_t *t = json_array_get(list, i);

		graph_add(g, s,
			  (struct graph_triple){ whole(json_array_get(t, 0)),
						 whole(json_array_get(t, 1)),
						 whole(json_array_get(t, 2)) });
	}
}

static void add_names(struct graph_vocab *v, uint32_t n)
{
	char name[16];

	for (uint32_t i = 0; i < n; i++)
		graph_vocab_add(v, name, (size_t)snprintf(name, sizeof name, "%u", i));
}

static struct graph *read_graph(const json_t *o)
{
	struct graph *g = graph_new();

	ONLY_KEYS(o, "n_entities", "n_relations", "train", "valid", "test", "scores", "model");
	add_names(g->entities, whole(need(o, "n_entities")));
	add_names(g->relations, whole(need(o, "n_relations")));
	add_triples(g, GRAPH_TRAIN, need(o, "train"));
	add_triples(g, GRAPH_VALID, need(o, "valid"));
	add_triples(g, GRAPH_TEST, need(o, "test"));
	return g;
}

static void table_score(const void *ctx, enum graph_side asked, uint32_t known, uint32_t rel,
			float *out)
{
	char key[64];
	size_t n;
	float *scores;

	if (asked == GRAPH_TAIL)
		snprintf(key, sizeof key, "tail %u %u", known, rel);
	else
		snprintf(key, sizeof key, "head %u %u", rel, known);
	scores = floats(need(ctx, key), &n);
	memcpy(out, scores, n * sizeof *out);
	free(scores);
}

static void fill_rows(float *rows, size_t row_floats, uint32_t n, const json_t *list)
{
	assert_int_equal(json_array_size(list), n);
	for (uint32_t i = 0; i < n; i++) {
		size_t got;
		float *row = floats(json_array_get(list, i), &got);

		assert_int_equal(got, row_floats);
		memcpy(rows + i * row_floats, row, row_floats * sizeof *row);
		free(row);
	}
}

static struct kge_emb *read_model(const json_t *o, const struct graph *g)
{
	static const struct {
		const char *theirs, *ours;
	} names[] = { { "TransE-L1", "transe" },
		      { "TransE-L2", "transe_l2" },
		      { "DistMult", "distmult" },
		      { "ComplEx", "complex" } };
	const json_t *ent = need(o, "entities"), *gamma = json_object_get(o, "gamma");
	size_t i = 0, width = json_array_size(json_array_get(ent, 0));
	const struct kge_model *m;
	struct kge_emb *emb;
	struct rng r;

	ONLY_KEYS(o, "name", "gamma", "entities", "relations");
	while (i < 4 && strcmp(names[i].theirs, text(o, "name")) != 0)
		i++;
	if (i == 4)
		fail_msg("%s: model '%s'", case_id, text(o, "name"));
	m = kge_model_find(names[i].ours);
	assert_non_null(m);
	rng_seed(&r, 1);
	emb = kge_emb_new(m, width / (m->entity_floats(8) / 8),
			  gamma != NULL ? (float)number(gamma) : 1, graph_vocab_count(g->entities),
			  graph_vocab_count(g->relations), &r);
	fill_rows(emb->ent, emb->ent_floats, emb->n_ent, ent);
	fill_rows(emb->rel, emb->rel_floats, emb->n_rel, need(o, "relations"));
	return emb;
}

static struct kge_protocol read_protocol(const json_t *run)
{
	static const char *const sides[] = { "both", "tail", "head" };
	static const char *const candidates[] = { "all", "train-entities", "type-constrained" };
	static const char *const filters[] = { "none",	     "train",
					       "valid",	     "train+valid",
					       "test",	     "train+test",
					       "valid+test", "train+valid+test" }; /* by bits */
	struct kge_protocol p = { .name = "custom" };
	unsigned s = 0, c = 0, f = 0;

	while (s < 3 && strcmp(sides[s], text(run, "sides")) != 0)
		s++;
	while (c < 3 && strcmp(candidates[c], text(run, "candidates")) != 0)
		c++;
	while (f < 8 && strcmp(filters[f], text(run, "filter")) != 0)
		f++;
	if (s == 3 || c == 3 || f == 8)
		fail_msg("%s: unknown protocol", case_id);
	p.sides = (enum kge_sides)s;
	p.candidates = (enum kge_candidates)c;
	p.filter = f;
	return p;
}

static bool is_query(const json_t *q, const struct kge_ranked *r)
{
	const json_t *t = need(q, "triple");

	return (strcmp(text(q, "side"), "head") == 0) == (r->side == GRAPH_HEAD) &&
	       whole(json_array_get(t, 0)) == r->triple.head &&
	       whole(json_array_get(t, 1)) == r->triple.rel &&
	       whole(json_array_get(t, 2)) == r->triple.tail;
}

static void check_query(const json_t *q, const struct kge_ranked *r, size_t n)
{
	size_t i = 0;

	ONLY_KEYS(q, "side", "triple", "gold", "candidates", "optimistic", "pessimistic",
		  "realistic");
	while (i < n && !is_query(q, &r[i]))
		i++;
	if (i == n)
		fail_msg("%s: a query was not ranked", case_id);
	same("gold", r[i].side == GRAPH_HEAD ? r[i].triple.head : r[i].triple.tail,
	     number(need(q, "gold")));
	same("candidates", r[i].candidates, number(need(q, "candidates")));
	for (size_t p = 0; p < 3; p++)
		same(policies[p].name, kge_rank(&r[i], policies[p].ties),
		     number(need(q, policies[p].name)));
}

static void check_run(const json_t *run, const struct graph *g, const struct kge_emb *emb,
		      const json_t *scores)
{
	struct kge_protocol p = read_protocol(run);
	struct kge_scorer scorer = { .score = table_score, .ctx = scores };
	const json_t *queries = need(run, "queries");

	ONLY_KEYS(run, "sides", "filter", "candidates", "queries", "metrics");
	for (uint32_t threads = 1; threads <= 2; threads++) {
		struct kge_eval_options o = { .threads = threads };
		struct kge_ranked *r;
		size_t n;
		int rc = emb != NULL ? kge_rank_split(emb, g, GRAPH_TEST, &p, &o, &r, &n)
				     : kge_rank_split_with(&scorer, g, GRAPH_TEST, &p, &o, &r, &n);

		assert_int_equal(rc, 0);
		assert_int_equal(n, json_array_size(queries));
		for (size_t i = 0; i < n; i++)
			check_query(json_array_get(queries, i), r, n);
		check_metrics(need(run, "metrics"), r, n);
		free(r);
	}
}

static void check_graph(const json_t *c)
{
	const json_t *o = need(c, "graph"), *runs = need(c, "runs");
	const json_t *model = json_object_get(o, "model");
	const json_t *scores = model != NULL ? NULL : need(o, "scores");
	struct graph *g = read_graph(o);
	struct kge_emb *emb = model != NULL ? read_model(model, g) : NULL;

	ONLY_KEYS(c, "id", "kind", "note", "graph", "runs");
	assert_true(json_array_size(runs) > 0);
	for (size_t i = 0; i < json_array_size(runs); i++)
		check_run(json_array_get(runs, i), g, emb, scores);
	kge_emb_free(emb);
	graph_free(g);
}

/* ---- agents ---- */

static struct kge_ranked *read_ranks(const json_t *list, size_t *n)
{
	struct kge_ranked *r;

	*n = json_array_size(list);
	r = mem_array(*n + 1, sizeof *r);
	for (size_t i = 0; i < *n; i++) {
		const json_t *rank = json_array_get(list, i);
		uint32_t best = whole(need(rank, "optimistic"));

		r[i].greater = best - 1;
		r[i].equal = whole(need(rank, "pessimistic")) - best;
	}
	return r;
}

static void check_average(const json_t *average, const json_t *agents, size_t policy)
{
	static const char *const ways[] = { "by_queries", "by_train_triples", "plain_mean" };
	size_t n = json_array_size(agents);
	struct kge_metrics *m = mem_array(n + 1, sizeof *m), mean;
	double *weights = mem_array(n + 1, sizeof *weights);

	ONLY_KEYS(average, "by_queries", "by_train_triples", "plain_mean");
	for (size_t way = 0; way < 3; way++) {
		for (size_t i = 0; i < n; i++) {
			const json_t *a = json_array_get(agents, i);
			size_t queries;
			struct kge_ranked *r = read_ranks(need(a, "ranks"), &queries);

			kge_metrics_of(r, queries, policies[policy].ties, &m[i]);
			weights[i] = way == 0	? (double)queries
				     : way == 1 ? number(need(a, "train_triples"))
						: 1;
			free(r);
		}
		kge_metrics_average(m, weights, n, &mean);
		check_policy(need(need(average, ways[way]), policies[policy].name), &mean);
	}
	free(m);
	free(weights);
}

static void check_agents(const json_t *c)
{
	const json_t *agents = need(c, "agents");

	ONLY_KEYS(c, "id", "kind", "note", "agents", "average");
	for (size_t i = 0; i < json_array_size(agents); i++) {
		const json_t *a = json_array_get(agents, i);
		size_t n;
		struct kge_ranked *r = read_ranks(need(a, "ranks"), &n);

		ONLY_KEYS(a, "name", "train_triples", "ranks", "metrics");
		check_metrics(need(a, "metrics"), r, n);
		free(r);
	}
	for (size_t p = 0; p < 3; p++)
		check_average(need(c, "average"), agents, p);
}

/* ---- classify ---- */

static struct kge_labeled *read_labeled(const json_t *list, bool flip, size_t *n, uint32_t *n_rel)
{
	struct kge_labeled *out;

	*n = json_array_size(list);
	out = mem_array(*n + 1, sizeof *out);
	for (size_t i = 0; i < *n; i++) {
		const json_t *v = json_array_get(list, i);
		double score = number(json_array_get(v, 1));

		out[i].rel = whole(json_array_get(v, 0));
		out[i].score = (float)(flip ? -score : score);
		out[i].positive = whole(json_array_get(v, 2)) == 1;
		*n_rel = out[i].rel >= *n_rel ? out[i].rel + 1 : *n_rel;
	}
	return out;
}

struct classified {
	size_t correct, total;		 /* over relations that count */
	size_t with_valid, with_correct; /* over relations with valid triples */
};

/* Test triples of one relation that the threshold calls right; *n of them in all. */
static size_t right_on(const struct kge_labeled *v, size_t n_all, uint32_t rel, float at,
		       bool lower, size_t *n)
{
	size_t right = 0;

	*n = 0;
	for (size_t i = 0; i < n_all; i++) {
		if (v[i].rel != rel)
			continue;
		right += (lower ? v[i].score <= at : v[i].score >= at) == v[i].positive;
		++*n;
	}
	return right;
}

static void check_relation(const json_t *want, const struct kge_threshold *t, double slack,
			   bool flip, size_t right, size_t n)
{
	const json_t *v;
	double at = flip ? -(double)t->at : (double)t->at;

	ONLY_KEYS(want, "relation", "valid", "test", "threshold", "valid_correct", "fallback",
		  "test_correct", "test_correct_any_best_threshold");
	if (!(fabs(at - number(need(want, "threshold"))) <= slack))
		fail_msg("%s: threshold: got %.9g", case_id, at);
	if ((v = json_object_get(want, "fallback")) != NULL)
		assert_int_equal(t->fallback, json_is_true(v));
	if ((v = json_object_get(want, "valid")) != NULL)
		same("valid", (double)t->valid_total, number(v));
	if ((v = json_object_get(want, "test")) != NULL)
		same("test", (double)n, number(v));
	if (!json_is_null(need(want, "valid_correct")))
		same("valid_correct", (double)t->valid_correct,
		     number(need(want, "valid_correct")));
	same("test_correct", (double)right, number(need(want, "test_correct")));
	if ((v = json_object_get(want, "test_correct_any_best_threshold")) != NULL) {
		assert_true((double)right >= number(json_array_get(v, 0)));
		assert_true((double)right <= number(json_array_get(v, 1)));
	}
}

static void check_totals(const json_t *expect, const struct classified *got)
{
	const json_t *v = json_object_get(expect, "accuracy_skipping_relations_without_valid");

	same("correct", (double)got->correct, number(need(expect, "correct")));
	same("total", (double)got->total, number(need(expect, "total")));
	same("accuracy", (double)got->correct / (double)got->total,
	     number(need(expect, "accuracy")));
	if (v != NULL)
		same("accuracy skipping", (double)got->with_correct / (double)got->with_valid,
		     number(v));
}

/* flip: distances under the exact rule, which wants higher to be better.
 * grid: distances as they are, relations without valid left out. */
static void check_classify(const json_t *c)
{
	bool grid = strcmp(text(c, "rule"), "openke-grid") == 0, flip = !grid && lower_is_better(c);
	const json_t *expect = need(c, "expect"), *rels = need(expect, "per_relation");
	double slack = grid ? number(need(c, "threshold_tolerance")) : tolerance;
	struct kge_threshold *t, all = { 0 };
	struct classified got = { 0 };
	uint32_t n_rel = 0;
	size_t n, m;
	struct kge_labeled *valid = read_labeled(need(c, "valid"), flip, &n, &n_rel);
	struct kge_labeled *test = read_labeled(need(c, "test"), flip, &m, &n_rel);

	ONLY_KEYS(c, "id", "kind", "rule", "note", "order", "step", "valid", "test",
		  "threshold_tolerance", "expect");
	ONLY_KEYS(expect, "global_threshold", "per_relation", "accuracy", "correct", "total",
		  "accuracy_skipping_relations_without_valid");
	if (!grid && strcmp(text(c, "rule"), "exact") != 0)
		fail_msg("%s: rule '%s'", case_id, text(c, "rule"));
	assert_true(!grid || lower_is_better(c));
	t = mem_array((size_t)n_rel + 1, sizeof *t);
	if (grid)
		kge_thresholds_grid(valid, n, number(need(c, "step")), t, n_rel);
	else
		kge_thresholds(valid, n, t, n_rel, &all);
	if (!grid)
		same("global_threshold", flip ? -(double)all.at : (double)all.at,
		     number(need(expect, "global_threshold")));
	for (uint32_t rel = 0; rel < n_rel; rel++) {
		size_t in_test, right = right_on(test, m, rel, t[rel].at, grid, &in_test);
		bool wanted = false;

		for (size_t i = 0; i < json_array_size(rels); i++) {
			if (whole(need(json_array_get(rels, i), "relation")) != rel)
				continue;
			check_relation(json_array_get(rels, i), &t[rel], slack, flip, right,
				       in_test);
			wanted = true;
		}
		if (!wanted && in_test > 0 && !(grid && t[rel].fallback))
			fail_msg("%s: relation %u was not expected", case_id, rel);
		if (grid && t[rel].fallback)
			continue;
		got.correct += right;
		got.total += in_test;
		got.with_correct += t[rel].fallback ? 0 : right;
		got.with_valid += t[rel].fallback ? 0 : in_test;
	}
	check_totals(expect, &got);
	free(t);
	free(valid);
	free(test);
}

/* ---- files ---- */

static void check_case(const json_t *c)
{
	static const struct {
		const char *kind;
		void (*check)(const json_t *c);
	} kinds[] = { { "rank", check_rank },
		      { "graph", check_graph },
		      { "agents", check_agents },
		      { "classify", check_classify } };
	size_t k = 0;

	case_id = text(c, "id");
	while (k < 4 && strcmp(kinds[k].kind, text(c, "kind")) != 0)
		k++;
	if (k == 4)
		fail_msg("%s: kind '%s'", case_id, text(c, "kind"));
	kinds[k].check(c);
}

static json_t *load_file(const char *path)
{
	json_error_t error;
	json_t *file = json_load_file(path, 0, &error);
	const json_t *given;

	if (file == NULL)
		fail_msg("%s:%d: %s", path, error.line, error.text);
	case_id = path;
	if (strcmp(text(file, "format"), "fkge-eval-vectors 1") != 0)
		fail_msg("%s: format '%s'", path, text(file, "format"));
	given = json_object_get(file, "tolerance");
	tolerance = given != NULL ? number(given) : 1e-9;
	assert_true(json_array_size(need(file, "cases")) > 0);
	return file;
}

struct one {
	const char *path;
	size_t at;
};

static void check_one(void **state)
{
	const struct one *o = *state;
	json_t *file = load_file(o->path);

	check_case(json_array_get(need(file, "cases"), o->at));
	json_decref(file);
}

/* A test a case, so that each is counted: returns how many there are now. */
static size_t file_tests(const char *path, struct CMUnitTest **tests, size_t n)
{
	json_t *file = load_file(path);
	size_t cases = json_array_size(need(file, "cases"));

	*tests = mem_resize(*tests, n + cases, sizeof(**tests));
	for (size_t i = 0; i < cases; i++) {
		struct one *o = mem_array(1, sizeof(*o));

		*o = (struct one){ path, i };
		(*tests)[n + i] = (struct CMUnitTest){ .name = mem_printf("%s case %zu", path, i),
						       .test_func = check_one,
						       .initial_state = o };
	}
	json_decref(file);
	return n + cases;
}

int main(void)
{
	struct CMUnitTest *tests = NULL;
	size_t n_paths, n = 0;
	char **paths = vectors_find("eval", false, &n_paths);
	int failed;

	for (size_t i = 0; i < n_paths; i++)
		n = file_tests(paths[i], &tests, n);
	failed = _cmocka_run_group_tests("kge eval vectors", tests, n, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		free((char *)tests[i].name);
		free(tests[i].initial_state);
	}
	free(tests);
	vectors_free(paths, n_paths);
	return failed;
}
