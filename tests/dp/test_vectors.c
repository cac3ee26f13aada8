/* tests/dp/test_vectors.c - every .json file of $FKGE_VECTORS/dp, else tests/vectors/dp,
 * whatever its name, against the accountants.
 *
 * A file says in header.schema how to read it and each case in "kind" what it is; an unknown
 * schema or kind fails.  Tolerances are the file's own: header.tolerance.rel and .abs, with
 * .<field>.rel where a field has its own.  Orders are the file's, where it lists them.
 *
 * With the argument `changed` this is a test of the test: one number at a time is changed by
 * a thousandth, or one truth value turned, and the check must then fail.  Of an array it
 * tries the first, the last and one between; `changed all` tries every one. */
#include "tests/test.h"

#include <jansson.h>
#include <stdbool.h>

#include "base/mem.h"
#include "dp/accountant.h"
#include "dp/audit.h"
#include "dp/gaussian.h"
#include "dp/moments.h"
#include "dp/rdp.h"
#include "tests/vectors.h"

enum { SHOWN = 20, GRID_MAX = 1024 };

/* One case being checked; failures are counted so that a file shows all of them. */
struct check {
	const char *file, *name;
	json_t *root;
	const json_t *header, *at;
	size_t values, failures;
	bool quiet;		  /* failures are what is wanted */
	struct dp_order_set grid; /* orders of the file */
};

#define wrong(c, ...)                                                                              \
	do {                                                                                       \
		if ((c)->failures++ < SHOWN && !(c)->quiet) {                                      \
			print_error("%s, case %s: ", (c)->file, (c)->name);                        \
			print_error(__VA_ARGS__);                                                  \
			print_error("\n");                                                         \
		}                                                                                  \
	} while (0)

/* ---- reading ---- */

static const json_t *field(struct check *c, const char *key)
{
	const json_t *v = json_object_get(c->at, key);
	if (v == NULL)
		wrong(c, "has no \"%s\"", key);
	return v;
}

static double number(struct check *c, const char *key)
{
	const json_t *v = field(c, key);
	if (!json_is_number(v))
		wrong(c, "\"%s\" is not a number", key);
	return json_number_value(v);
}

static uint64_t as_whole(struct check *c, const char *key, double v)
{
	if (v < 0 || v != floor(v))
		wrong(c, "%s: %.17g is no count", key, v);
	return (uint64_t)v;
}

static uint64_t whole(struct check *c, const char *key)
{
	return as_whole(c, key, number(c, key));
}

static const char *string(struct check *c, const char *key)
{
	const char *v = json_string_value(field(c, key));
	return v != NULL ? v : "";
}

static double item(const json_t *array, size_t i)
{
	return json_number_value(json_array_get(array, i));
}

/* A number of votes or of queries. */
static double count(struct check *c, const json_t *array, size_t i)
{
	return (double)as_whole(c, "votes", item(array, i));
}

/* ---- comparing ---- */

static double tolerance(const struct check *c, const char *key, const char *which)
{
	const json_t *t = json_object_get(c->header, "tolerance");
	const json_t *own = json_object_get(json_object_get(t, key), which);
	return json_number_value(own != NULL ? own : json_object_get(t, which));
}

static bool is_near(double got, double want, double rel, double abs)
{
	return fabs(got - want) <= rel * fabs(want) + abs;
}

static void same_as(struct check *c, const char *key, double got, const json_t *want)
{
	double w = json_number_value(want);
	c->values++;
	if (!json_is_number(want) ||
	    !is_near(got, w, tolerance(c, key, "rel"), tolerance(c, key, "abs")))
		wrong(c, "%s: got %.17g, want %.17g", key, got, w);
}

static void same(struct check *c, const char *key, double got)
{
	same_as(c, key, got, field(c, key));
}

static void exactly(struct check *c, const char *key, double got)
{
	c->values++;
	if (got != number(c, key))
		wrong(c, "%s: got %.17g, want %.17g", key, got, number(c, key));
}

static void truth(struct check *c, const char *key, bool got, const json_t *want)
{
	c->values++;
	if (!json_is_boolean(want) || json_is_true(want) != got)
		wrong(c, "%s: got %d, want %d", key, got, json_is_true(want));
}

/* header.tolerance.small_rdp is for data-dependent costs under 1e-12, which come from
 * ln(1 + tiny); a ten-thousandth is asked of them here. */
static double rel_of(const struct check *c, const char *key, double want)
{
	const json_t *t = json_object_get(c->header, "tolerance");
	bool small = json_object_get(t, "small_rdp") != NULL && fabs(want) < 1e-12 &&
		     strstr(key, "data_dependent") != NULL;
	return small ? 1e-4 : tolerance(c, key, "rel");
}

static void same_array(struct check *c, const char *key, const double *got, size_t n)
{
	const json_t *want = field(c, key);
	if (json_array_size(want) != n) {
		wrong(c, "%s: has %zu values, not %zu", key, json_array_size(want), n);
		return;
	}
	for (size_t i = 0; i < n; i++) {
		double w = item(want, i);
		c->values++;
		if (!is_near(got[i], w, rel_of(c, key, w), tolerance(c, key, "abs")))
			wrong(c, "%s[%zu]: got %.17g, want %.17g", key, i, got[i], w);
	}
}

static void same_conversion(struct check *c, const char *key, const json_t *want,
			    struct dp_epsilon got)
{
	same_as(c, key, got.epsilon, json_object_get(want, "epsilon"));
	c->values++;
	if (got.order != json_number_value(json_object_get(want, "order")))
		wrong(c, "%s: minimum at order %g", key, got.order);
}

static void same_conversions(struct check *c, const char *key, const double *rdp, double delta)
{
	const json_t *want = field(c, key);
	same_conversion(c, key, json_object_get(want, "classic_mironov"),
			dp_rdp_classic_over(c->grid, rdp, delta));
	same_conversion(c, key, json_object_get(want, "tight_cks_balle"),
			dp_rdp_tight_over(c->grid, rdp, delta));
}

static void add(const struct check *c, double *sum, const double *rdp, double times)
{
	for (size_t i = 0; i < c->grid.n; i++)
		sum[i] += times * rdp[i];
}

/* ---- fkge-dp/extra ---- */

/* What the program itself says of these queries, where its orders are the file's. */
static void same_public(struct check *c, const struct dp_mechanism *m, uint64_t queries)
{
	const json_t *tight = json_object_get(field(c, "epsilon_rdp"), "tight_cks_balle");
	if (queries > 0 && c->grid.orders == dp_orders && dp_mechanism_check(m, NULL) == 0)
		same_as(c, "epsilon_rdp",
			dp_epsilon_public(DP_EXACT, m, queries, number(c, "delta")),
			json_object_get(tight, "epsilon"));
}

static void same_labels(struct check *c, const struct dp_mechanism *m)
{
	const json_t *pair, *gaps = field(c, "pr_label1_by_gap");
	size_t i;
	json_array_foreach(gaps, i, pair)
	{
		double gap = item(pair, 0);
		as_whole(c, "ones at this gap", (gap + m->teachers) / 2);
		as_whole(c, "zeros at this gap", (m->teachers - gap) / 2);
		same_as(c, "pr_label1_by_gap", dp_label_one(m, (int64_t)gap),
			json_array_get(pair, 1));
	}
}

static void exact_binary_vote(struct check *c)
{
	struct dp_mechanism m = { .param = number(c, "param") };
	double rdp[GRID_MAX], all[GRID_MAX] = { 0 };
	uint64_t queries = whole(c, "queries");
	m.teachers = (uint32_t)whole(c, "teachers");
	if (dp_noise_find(string(c, "noise"), &m.noise) != 0)
		wrong(c, "noise is not known");
	same_labels(c, &m);
	dp_rdp_vote_over(c->grid, &m, rdp);
	add(c, all, rdp, (double)queries);
	same_array(c, "rdp_per_query", rdp, c->grid.n);
	same(c, "eps0_per_query", dp_vote_pure(&m));
	same_conversions(c, "epsilon_rdp", all, number(c, "delta"));
	same(c, "epsilon_optimal_composition",
	     dp_compose_optimal(dp_vote_pure(&m), queries, number(c, "delta")));
	same_public(c, &m, queries);
}

static void one_run_audit(struct check *c)
{
	uint64_t canaries = whole(c, "canaries"), guesses = whole(c, "guesses");
	uint64_t correct = whole(c, "correct");
	double delta = number(c, "delta");
	same(c, "p_value_at_epsilon",
	     dp_one_run_p_value(canaries, guesses, correct, number(c, "epsilon"), delta));
	same(c, "epsilon_lower_bound",
	     dp_one_run_lower(canaries, guesses, correct, delta, number(c, "p_target")));
}

/* ---- fkge-dp/gnmax_rdp ---- */

static void gnmax_query(struct check *c)
{
	const json_t *votes = field(c, "votes");
	const json_t *top = field(c, "max_order_where_data_dependent_applies");
	double rdp[GRID_MAX], sigma = number(c, "sigma");
	double log_q = dp_gnmax_log_q(sigma, count(c, votes, 0) - count(c, votes, 1));
	struct dp_gnmax_bound bound;
	same(c, "ln_q", log_q);
	dp_rdp_gnmax_over(c->grid, sigma, rdp);
	same_array(c, "rdp_data_independent", rdp, c->grid.n);
	dp_rdp_gnmax_private_over(c->grid, sigma, log_q, rdp, &bound);
	same_array(c, "rdp_data_dependent", rdp, c->grid.n);
	same(c, "mu1", bound.mu1);
	same(c, "mu2", bound.mu2);
	c->values++;
	if (bound.max_order != (json_is_null(top) ? 0 : json_number_value(top)))
		wrong(c, "the bound applies up to order %g", bound.max_order);
}

/* Both steps of Confident-GNMax, [0] data-independent and [1] data-dependent. */
struct confident {
	double threshold, sigma1, sigma2;
	double step1[2][GRID_MAX], step2[2][GRID_MAX];
};

static void confident_costs(const struct check *c, struct confident *f, double n0, double n1)
{
	double log_q = dp_threshold_log_q(f->sigma1, f->threshold, fmax(n0, n1));
	dp_rdp_threshold_over(c->grid, f->sigma1, f->step1[0]);
	dp_rdp_gnmax_private_over(c->grid, M_SQRT2 * f->sigma1, log_q, f->step1[1], NULL);
	dp_rdp_gnmax_over(c->grid, f->sigma2, f->step2[0]);
	dp_rdp_gnmax_private_over(c->grid, f->sigma2, dp_gnmax_log_q(f->sigma2, n0 - n1),
				  f->step2[1], NULL);
}

static void confident_gnmax_query(struct check *c)
{
	const json_t *votes = field(c, "votes");
	double n0 = count(c, votes, 0), n1 = count(c, votes, 1), both[2][GRID_MAX] = { { 0 } };
	struct confident f = { number(c, "threshold"),
			       number(c, "sigma1"),
			       number(c, "sigma2"),
			       { { 0 } },
			       { { 0 } } };
	confident_costs(c, &f, n0, n1);
	for (int k = 0; k < 2; k++) {
		add(c, both[k], f.step1[k], 1);
		add(c, both[k], f.step2[k], 1);
	}
	same(c, "ln_pr_answered", dp_threshold_log_answered(f.sigma1, f.threshold, fmax(n0, n1)));
	same(c, "ln_q_threshold", dp_threshold_log_q(f.sigma1, f.threshold, fmax(n0, n1)));
	same(c, "ln_q_gnmax", dp_gnmax_log_q(f.sigma2, n0 - n1));
	same_array(c, "rdp_threshold_data_independent", f.step1[0], c->grid.n);
	same_array(c, "rdp_threshold_data_dependent", f.step1[1], c->grid.n);
	same_array(c, "rdp_gnmax_data_independent", f.step2[0], c->grid.n);
	same_array(c, "rdp_gnmax_data_dependent", f.step2[1], c->grid.n);
	same_array(c, "rdp_if_answered_data_independent", both[0], c->grid.n);
	same_array(c, "rdp_if_answered_data_dependent", both[1], c->grid.n);
}

static double parameter(struct check *c, const char *key)
{
	const json_t *v = json_object_get(field(c, "params"), key);
	if (!json_is_number(v))
		wrong(c, "params has no number \"%s\"", key);
	return json_number_value(v);
}

/* Costs of one run of equal votes, asked `repeat` times of which `answered` were answered. */
static void compose_run(struct check *c, struct confident *f, bool confident, const json_t *run,
			double sum[2][GRID_MAX])
{
	double n0 = count(c, run, 0), n1 = count(c, run, 1), repeat = count(c, run, 2);
	const json_t *flag = json_array_get(run, 3);
	bool answered = json_is_boolean(flag) ? json_is_true(flag) : json_number_value(flag) != 0;
	confident_costs(c, f, n0, n1);
	for (int k = 0; k < 2; k++) {
		if (confident)
			add(c, sum[k], f->step1[k], repeat);
		if (!confident || answered)
			add(c, sum[k], f->step2[k], repeat);
	}
}

static void composition(struct check *c)
{
	const char *mechanism = json_string_value(field(c, "mechanism"));
	const json_t *run, *flag, *votes = field(c, "votes");
	double sum[2][GRID_MAX] = { { 0 } }, queries = 0, answered = 0;
	struct confident f = { 0 };
	bool confident = mechanism != NULL && strcmp(mechanism, "confident_gnmax") == 0;
	size_t i;
	if (!confident && (mechanism == NULL || strcmp(mechanism, "gnmax") != 0)) {
		wrong(c, "unknown mechanism");
		return;
	}
	f.sigma1 = confident ? parameter(c, "sigma1") : 1;
	f.threshold = confident ? parameter(c, "threshold") : 0;
	f.sigma2 = parameter(c, confident ? "sigma2" : "sigma");
	json_array_foreach(votes, i, run)
	{
		flag = json_array_get(run, 3);
		compose_run(c, &f, confident, run, sum);
		queries += item(run, 2);
		answered += json_is_true(flag) || json_number_value(flag) != 0 ? item(run, 2) : 0;
	}
	exactly(c, "queries", queries);
	exactly(c, "labels_answered", answered);
	same_array(c, "rdp_data_independent", sum[0], c->grid.n);
	same_array(c, "rdp_data_dependent", sum[1], c->grid.n);
	same_conversions(c, "epsilon_data_independent", sum[0], number(c, "delta"));
	same_conversions(c, "epsilon_data_dependent", sum[1], number(c, "delta"));
}

static void gaussian_rdp(struct check *c)
{
	double rdp[GRID_MAX], sensitivity = number(c, "sensitivity"), sigma = number(c, "sigma");
	double count = (double)whole(c, "count"), delta = number(c, "delta");
	dp_rdp_gaussian_over(c->grid, sensitivity, sigma, count, rdp);
	same_array(c, "rdp", rdp, c->grid.n);
	same_conversions(c, "epsilon", rdp, delta);
	same(c, "epsilon_exact_analytic_gaussian",
	     dp_gaussian_epsilon(sensitivity, sigma / sqrt(count), delta));
}

static void analytic_gaussian_sigma(struct check *c)
{
	double sensitivity = number(c, "sensitivity"), epsilon = number(c, "epsilon");
	double delta = number(c, "delta");
	const json_t *classic = json_object_get(c->at, "sigma_classic_dwork_roth");
	same(c, "sigma", dp_gaussian_sigma(sensitivity, epsilon, delta));
	if (json_is_number(classic))
		same(c, "sigma_classic_dwork_roth",
		     dp_gaussian_sigma_classic(sensitivity, epsilon, delta));
}

static void analytic_gaussian_profile(struct check *c)
{
	double sensitivity = number(c, "sensitivity"), sigma = number(c, "sigma");
	same(c, "delta_of_epsilon_in",
	     dp_gaussian_delta(sensitivity, sigma, number(c, "epsilon_in")));
	same(c, "epsilon_of_delta_in",
	     dp_gaussian_epsilon(sensitivity, sigma, number(c, "delta_in")));
}

static void rdp_to_dp(struct check *c)
{
	const json_t *curve = field(c, "rdp");
	double rdp[GRID_MAX];
	if (json_array_size(curve) != c->grid.n) {
		wrong(c, "rdp has %zu orders", json_array_size(curve));
		return;
	}
	for (size_t i = 0; i < c->grid.n; i++)
		rdp[i] = item(curve, i);
	same_conversions(c, "epsilon", rdp, number(c, "delta"));
}

/* ---- fkge-dp/laplace_moments ---- */

static uint64_t run_gap(struct check *c, const json_t *run)
{
	return (uint64_t)fabs(count(c, run, 0) - count(c, run, 1));
}

static void moments_runs(struct check *c, const json_t *votes, double lambda)
{
	const json_t *run, *q = field(c, "q"), *ln_q = field(c, "ln_q");
	const json_t *applies = field(c, "data_dependent_applies");
	size_t i, n = json_array_size(votes);
	if (json_array_size(q) != n || json_array_size(ln_q) != n || json_array_size(applies) != n)
		wrong(c, "q, ln_q and data_dependent_applies must have one value a run");
	json_array_foreach(votes, i, run)
	{
		same_as(c, "q", dp_moments_q(lambda, run_gap(c, run)), json_array_get(q, i));
		same_as(c, "ln_q", dp_moments_log_q(lambda, run_gap(c, run)),
			json_array_get(ln_q, i));
		truth(c, "data_dependent_applies", dp_moments_applies(run_gap(c, run)),
		      json_array_get(applies, i));
	}
}

/* Eq. 9 as printed, its condition on q ignored; NAN where it divides by zero or takes the
 * logarithm of a number that is not above 0.  In logs, with the signs apart. */
static double unchecked(double lambda, uint64_t gap, int l)
{
	long double x = (long double)lambda * gap, log_q = logl(0.5L + 0.25L * x) - x;
	long double log_p = log1pl(-expl(log_q));
	long double below = -expm1l(2 * (long double)lambda + log_q);
	long double first = log_p + l * (log_p - logl(fabsl(below)));
	long double second = log_q + 2 * (long double)lambda * l, top = fmaxl(first, second);
	long double sign = below < 0 && l % 2 != 0 ? -1 : 1;
	long double sum = expl(second - top) + sign * expl(first - top);
	return below == 0 || sum <= 0 ? (double)NAN : (double)(top + logl(sum));
}

/* Eqs. 8 to 10 as printed; NAN as above. */
static double unchecked_epsilon(struct check *c, const json_t *votes, double lambda, double delta)
{
	double best = INFINITY;
	for (int l = 1; l <= DP_MOMENTS; l++) {
		const json_t *run;
		double alpha = 0;
		size_t i;
		json_array_foreach(votes, i, run)
		{
			double cost = unchecked(lambda, run_gap(c, run), l);
			if (isnan(cost))
				return (double)NAN;
			alpha += item(run, 2) * fmin(2 * lambda * lambda * l * (l + 1), cost);
		}
		best = fmin(best, (alpha - log(delta)) / l);
	}
	return best;
}

/* What the printed formulas give without their condition must not come out. */
static void not_the_unchecked(struct check *c, const json_t *votes, double epsilon)
{
	const json_t *want = field(c, "epsilon_condition_ignored");
	double u = unchecked_epsilon(c, votes, number(c, "lambda"), number(c, "delta"));
	bool differs = isnan(u) || !is_near(epsilon, u, tolerance(c, "epsilon", "rel"), 0);
	if (!isnan(u))
		same_as(c, "epsilon_condition_ignored", u, want);
	else if (!json_is_null(want))
		wrong(c, "epsilon_condition_ignored: there is none");
	truth(c, "condition_ignored_differs", differs, field(c, "condition_ignored_differs"));
}

static void laplace_moments(struct check *c)
{
	const json_t *run, *votes = field(c, "votes");
	double alpha[DP_MOMENTS] = { 0 }, capped[DP_MOMENTS] = { 0 }, queries = 0;
	double lambda = number(c, "lambda"), delta = number(c, "delta");
	struct dp_moments_epsilon e;
	size_t i;
	same(c, "q_limit", dp_moments_q_limit(lambda));
	moments_runs(c, votes, lambda);
	json_array_foreach(votes, i, run)
	{
		dp_moments_add_private(alpha, lambda, run_gap(c, run), item(run, 2), false);
		dp_moments_add_private(capped, lambda, run_gap(c, run), item(run, 2), true);
		queries += item(run, 2);
	}
	exactly(c, "queries", queries);
	same_array(c, "alpha", alpha, DP_MOMENTS);
	same_array(c, "alpha_pure_capped", capped, DP_MOMENTS);
	e = dp_moments_epsilon(alpha, delta);
	same(c, "epsilon", e.epsilon);
	exactly(c, "l_min", e.l);
	not_the_unchecked(c, votes, e.epsilon);
	e = dp_moments_epsilon(capped, delta);
	same(c, "epsilon_pure_capped", e.epsilon);
	exactly(c, "l_min_pure_capped", e.l);
}

/* ---- files ---- */

enum { IDLE_MAX = 4 };

static const struct kind {
	const char *schema, *kind; /* kind NULL: the schema has but one and does not name it */
	void (*check)(struct check *c);
	const char *idle[IDLE_MAX]; /* inputs on which an answer may not depend, such as a delta
				       where nothing was asked */
} kinds[] = {
	{ "fkge-dp/extra/1", "exact_binary_vote", exact_binary_vote, { 0 } },
	{ "fkge-dp/extra/1", "one_run_audit", one_run_audit, { "epsilon", "delta", "p_target" } },
	{ "fkge-dp/gnmax_rdp/1", "gnmax_query", gnmax_query, { 0 } },
	{ "fkge-dp/gnmax_rdp/1", "confident_gnmax_query", confident_gnmax_query, { 0 } },
	{ "fkge-dp/gnmax_rdp/1",
	  "composition",
	  composition,
	  { "sigma", "threshold", "sigma1", "sigma2" } },
	{ "fkge-dp/gnmax_rdp/1", "gaussian_rdp", gaussian_rdp, { 0 } },
	{ "fkge-dp/gnmax_rdp/1", "analytic_gaussian_sigma", analytic_gaussian_sigma, { 0 } },
	{ "fkge-dp/gnmax_rdp/1",
	  "analytic_gaussian_profile",
	  analytic_gaussian_profile,
	  { "delta_in" } },
	{ "fkge-dp/gnmax_rdp/1", "rdp_to_dp", rdp_to_dp, { "rdp" } },
	{ "fkge-dp/laplace_moments/1", NULL, laplace_moments, { 0 } },
};

static const struct kind *find_kind(const char *schema, const char *kind)
{
	for (size_t i = 0; schema != NULL && i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bool same_kind = (kind == NULL) == (kinds[i].kind == NULL) &&
				 (kind == NULL || strcmp(kind, kinds[i].kind) == 0);
		if (strcmp(schema, kinds[i].schema) == 0 && same_kind)
			return &kinds[i];
	}
	return NULL;
}

static const struct kind *kind_of(const struct check *c)
{
	return find_kind(json_string_value(json_object_get(c->header, "schema")),
			 json_string_value(json_object_get(c->at, "kind")));
}

static void check_case(struct check *c)
{
	const struct kind *k = kind_of(c);
	const char *name = json_string_value(json_object_get(c->at, "name"));
	c->name = name != NULL ? name : "(unnamed)";
	if (k == NULL)
		wrong(c, "unknown header.schema, or kind \"%s\"", string(c, "kind"));
	else
		k->check(c);
}

/* Orders that a file lists are taken as they are: ascending, above 1. */
static void read_orders(struct check *c, double own[GRID_MAX])
{
	const json_t *orders = json_object_get(c->root, "orders");
	size_t n = json_array_size(orders);
	c->grid = dp_order_set;
	if (orders == NULL)
		return;
	if (n == 0 || n > GRID_MAX)
		fail_msg("%s: %zu orders, allowed are 1 to %d", c->file, n, (int)GRID_MAX);
	for (size_t i = 0; i < n; i++) {
		own[i] = item(orders, i);
		if (!(own[i] > (i == 0 ? 1 : own[i - 1])))
			wrong(c, "order %g is not above the one before it, or not above 1", own[i]);
	}
	if (n != DP_ORDERS || memcmp(own, dp_orders, sizeof(dp_orders)) != 0)
		c->grid = (struct dp_order_set){ own, n };
}

static size_t cases_of(const json_t *cases, const char *kind)
{
	const json_t *at;
	size_t i, n = 0;
	json_array_foreach(cases, i, at)
	{
		const char *k = json_string_value(json_object_get(at, "kind"));
		n += kind == NULL || (k != NULL && strcmp(k, kind) == 0);
	}
	return n;
}

/* A file may say how many cases it has, in all and of each kind. */
static void check_counts(struct check *c)
{
	const json_t *cases = json_object_get(c->root, "cases");
	json_t *counts = json_object_get(c->root, "counts"), *want;
	const char *kind;
	c->at = c->root;
	c->name = "(counts)";
	if (json_object_get(c->root, "count") != NULL)
		exactly(c, "count", (double)cases_of(cases, NULL));
	json_object_foreach(counts, kind, want)
	{
		c->values++;
		if (json_number_value(want) != (double)cases_of(cases, kind))
			wrong(c, "%zu cases of kind %s", cases_of(cases, kind), kind);
	}
}

static void load(struct check *c)
{
	json_error_t je;
	/* Every number as a double: a sum may be a whole number beyond 64 bits. */
	c->root = json_load_file(c->file, JSON_DECODE_INT_AS_REAL, &je);
	if (c->root == NULL)
		fail_msg("%s:%d: %s", c->file, je.line, je.text);
	c->header = json_object_get(c->root, "header");
	assert_true(json_is_object(c->header));
	assert_true(json_array_size(json_object_get(c->root, "cases")) > 0);
	assert_true(tolerance(c, "", "rel") > 0);
}

static void check_all(struct check *c)
{
	const json_t *cases = json_object_get(c->root, "cases");
	double orders[GRID_MAX];
	size_t i;
	read_orders(c, orders);
	check_counts(c);
	json_array_foreach(cases, i, c->at) check_case(c);
}

/* ---- one number changed at a time ---- */

struct change {
	struct check *c;
	void (*check)(struct check *c); /* what must see the change */
	size_t tried, unseen, idle;
	uint32_t salt; /* which one of an array is tried besides its ends */
};

static bool change_all;

/* Is the answer free not to depend on this? */
static bool is_idle(const struct check *c, const char *key)
{
	const struct kind *k = kind_of(c);
	for (size_t i = 0; k != NULL && i < IDLE_MAX && k->idle[i] != NULL; i++)
		if (strcmp(key, k->idle[i]) == 0)
			return true;
	return false;
}

static void try_change(struct change *w, const char *key)
{
	w->c->failures = 0;
	w->check(w->c);
	w->tried++;
	if (w->c->failures > 0)
		return;
	if (is_idle(w->c, key))
		w->idle++;
	else if (w->unseen++ < SHOWN)
		print_error("%s, case %s: a changed %s is not seen\n", w->c->file, w->c->name, key);
}

static void change_number(struct change *w, json_t *at, const char *key)
{
	double v = json_number_value(at), abs = tolerance(w->c, key, "abs");
	if (v != 0 && fabs(v) < 2000 * abs)
		return; /* too near to zero for the file's own tolerance */
	json_real_set(at, v != 0 ? v * 1.001 : 0.001);
	try_change(w, key);
	json_real_set(at, v);
}

static void change_value(struct change *w, json_t *at, const char *key);

static void change_array(struct change *w, json_t *array, const char *key)
{
	size_t n = json_array_size(array);
	w->salt = w->salt * 1664525u + 1013904223u;
	for (size_t i = 0; i < n; i++) {
		json_t *at = json_array_get(array, i);
		if (!change_all && i != 0 && i != n - 1 && i != w->salt % n)
			continue;
		if (json_is_boolean(at)) {
			json_array_set_new(array, i, json_boolean(json_is_false(at)));
			try_change(w, key);
			json_array_set(array, i, at); /* true and false live for ever */
		} else {
			change_value(w, at, key);
		}
	}
}

static void change_object(struct change *w, json_t *object)
{
	const char *key;
	json_t *at;
	void *next;
	json_object_foreach_safe(object, next, key, at)
	{
		if (json_is_boolean(at)) {
			json_object_set_new(object, key, json_boolean(json_is_false(at)));
			try_change(w, key);
			json_object_set(object, key, at);
		} else {
			change_value(w, at, key);
		}
	}
}

static void change_value(struct change *w, json_t *at, const char *key)
{
	if (json_is_number(at))
		change_number(w, at, key);
	else if (json_is_array(at))
		change_array(w, at, key);
	else if (json_is_object(at))
		change_object(w, at);
}

static void change_file(void **state)
{
	static const char *const rest[] = { "orders", "count", "counts" };
	struct check c = { .file = *state, .quiet = true };
	struct change w = { .c = &c, .check = check_case };
	double orders[GRID_MAX];
	size_t i;
	load(&c);
	json_t *at, *cases = json_object_get(c.root, "cases");
	read_orders(&c, orders);
	json_array_foreach(cases, i, at)
	{
		c.at = at;
		change_value(&w, at, "case");
	}
	w.check = check_all;
	for (i = 0; i < sizeof(rest) / sizeof(rest[0]); i++)
		change_value(&w, json_object_get(c.root, rest[i]), rest[i]);
	print_message("# %s: %zu changes tried, %zu not seen, %zu of which nothing depends\n",
		      c.file, w.tried, w.unseen, w.idle);
	assert_true(w.tried > 4 * json_array_size(cases));
	assert_int_equal(w.unseen, 0);
	json_decref(c.root);
}

/* ---- a test a case ---- */

struct one {
	struct check check; /* of its file, which is loaded once */
	double orders[GRID_MAX];
	json_t *at;
};

static void check_one(void **state)
{
	struct one *o = *state;
	struct check c = o->check;
	read_orders(&c, o->orders);
	c.at = o->at;
	check_case(&c);
	if (c.failures > 0)
		fail_msg("%s: %zu of %zu values are wrong", c.file, c.failures, c.values);
	assert_true(c.values > 0);
}

static void counts_one(void **state)
{
	struct check c = ((struct one *)*state)->check;
	check_counts(&c);
	assert_int_equal(c.failures, 0);
}

/* One test for its counts and one a case: returns how many. */
static size_t file_tests(const char *path, struct CMUnitTest **tests, size_t n)
{
	struct check c = { .file = path };
	load(&c);
	json_t *cases = json_object_get(c.root, "cases");
	size_t n_cases = json_array_size(cases);
	*tests = mem_resize(*tests, n + n_cases + 1, sizeof(**tests));
	for (size_t i = 0; i <= n_cases; i++) {
		struct one *o = mem_array(1, sizeof(*o));
		o->check = c;
		o->at = json_array_get(cases, i);
		(*tests)[n + i] = (struct CMUnitTest){
			.name = i < n_cases ? mem_printf("%s case %zu", path, i)
					    : mem_printf("%s counts", path),
			.test_func = i < n_cases ? check_one : counts_one,
			.initial_state = o,
		};
	}
	return n + n_cases + 1;
}

static int run_cases(char **paths, size_t n_paths)
{
	struct CMUnitTest *tests = NULL;
	size_t n = 0;
	for (size_t i = 0; i < n_paths; i++)
		n = file_tests(paths[i], &tests, n);
	int failed = _cmocka_run_group_tests("dp vectors", tests, n, NULL, NULL);
	for (size_t i = 0; i < n; i++) {
		struct one *o = tests[i].initial_state;
		if (tests[i].test_func == counts_one) /* the last of its file */
			json_decref(o->check.root);
		free((char *)tests[i].name);
		free(o);
	}
	free(tests);
	return failed;
}

static int run_changes(char **paths, size_t n)
{
	struct CMUnitTest *tests = mem_array(n, sizeof(*tests));
	for (size_t i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){ .name = paths[i],
						.test_func = change_file,
						.initial_state = paths[i] };
	int failed = _cmocka_run_group_tests("dp vectors changed", tests, n, NULL, NULL);
	free(tests);
	return failed;
}

int main(int argc, char **argv)
{
	bool changed = argc > 1 && strcmp(argv[1], "changed") == 0;
	size_t n;
	/* Of other files the fields that are no part of the format are not known. */
	char **paths = vectors_find("dp", changed, &n);
	change_all = changed && argc > 2 && strcmp(argv[2], "all") == 0;
	int failed = changed ? run_changes(paths, n) : run_cases(paths, n);
	vectors_free(paths, n);
	return failed;
}
