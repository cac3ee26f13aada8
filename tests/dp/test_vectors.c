/* tests/dp/test_vectors.c - every .json file of $FKGE_VECTORS/dp, whatever its name, against
 * the accountants.
 *
 * A file says in header.schema how to read it and each case in "kind" what it is; an unknown
 * schema or kind fails.  Tolerances are the file's own: header.tolerance.rel and .abs, with
 * .<field>.rel where a field has its own. */
#include "tests/test.h"

#include <dirent.h>
#include <jansson.h>
#include <stdbool.h>
#include <sys/stat.h>

#include "base/file.h"
#include "base/mem.h"
#include "dp/accountant.h"
#include "dp/audit.h"
#include "dp/gaussian.h"
#include "dp/moments.h"
#include "dp/rdp.h"

enum { SKIPPED = 77, SHOWN = 20 };

/* One case being checked; failures are counted so that a file shows all of them. */
struct check {
	const char *file, *name;
	const json_t *header, *at;
	size_t values, failures;
};

#define wrong(c, ...)                                                                              \
	do {                                                                                       \
		if ((c)->failures++ < SHOWN) {                                                     \
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

static uint64_t whole(struct check *c, const char *key)
{
	return (uint64_t)number(c, key);
}

static double item(const json_t *array, size_t i)
{
	return json_number_value(json_array_get(array, i));
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

/* header.tolerance.small_rdp allows an absolute 1e-14 for data-dependent costs under 1e-12. */
static double small_rdp(const struct check *c, const char *key, double want)
{
	const json_t *t = json_object_get(c->header, "tolerance");
	bool small = json_object_get(t, "small_rdp") != NULL && fabs(want) < 1e-12 &&
		     strstr(key, "data_dependent") != NULL;
	return small ? 1e-14 : 0;
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
		if (!is_near(got[i], w, tolerance(c, key, "rel"),
			     tolerance(c, key, "abs") + small_rdp(c, key, w)))
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

static void same_conversions(struct check *c, const char *key, const double rdp[DP_ORDERS],
			     double delta)
{
	const json_t *want = field(c, key);
	same_conversion(c, key, json_object_get(want, "classic_mironov"),
			dp_rdp_classic(rdp, delta));
	same_conversion(c, key, json_object_get(want, "tight_cks_balle"), dp_rdp_tight(rdp, delta));
}

static void add(double sum[DP_ORDERS], const double rdp[DP_ORDERS], double times)
{
	for (int i = 0; i < DP_ORDERS; i++)
		sum[i] += times * rdp[i];
}

/* ---- fkge-dp/extra ---- */

static void exact_binary_vote(struct check *c)
{
	struct dp_mechanism m = { .param = number(c, "param") };
	const json_t *pair, *gaps = field(c, "pr_label1_by_gap");
	double rdp[DP_ORDERS], all[DP_ORDERS] = { 0 };
	double queries = number(c, "queries"), delta = number(c, "delta");
	size_t i;
	m.teachers = (uint32_t)whole(c, "teachers");
	if (dp_noise_find(json_string_value(field(c, "noise")), &m.noise) != 0)
		wrong(c, "noise is not known");
	json_array_foreach(gaps, i, pair)
		same_as(c, "pr_label1_by_gap", dp_label_one(&m, (int64_t)item(pair, 0)),
			json_array_get(pair, 1));
	dp_rdp_vote(&m, rdp);
	add(all, rdp, queries);
	same_array(c, "rdp_per_query", rdp, DP_ORDERS);
	same(c, "eps0_per_query", dp_vote_pure(&m));
	same_conversions(c, "epsilon_rdp", all, delta);
	same(c, "epsilon_optimal_composition",
	     dp_compose_optimal(dp_vote_pure(&m), (uint64_t)queries, delta));
	if (queries > 0)
		same_as(c, "epsilon_rdp", dp_epsilon_public(DP_EXACT, &m, (uint64_t)queries, delta),
			json_object_get(json_object_get(field(c, "epsilon_rdp"), "tight_cks_balle"),
					"epsilon"));
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
	double rdp[DP_ORDERS], sigma = number(c, "sigma");
	double log_q = dp_gnmax_log_q(sigma, item(votes, 0) - item(votes, 1));
	struct dp_gnmax_bound bound;
	same(c, "ln_q", log_q);
	dp_rdp_gnmax(sigma, rdp);
	same_array(c, "rdp_data_independent", rdp, DP_ORDERS);
	dp_rdp_gnmax_private(sigma, log_q, rdp, &bound);
	same_array(c, "rdp_data_dependent", rdp, DP_ORDERS);
	same(c, "mu1", bound.mu1);
	same(c, "mu2", bound.mu2);
	c->values++;
	if (bound.max_order != (json_is_null(top) ? 0 : json_number_value(top)))
		wrong(c, "the bound applies up to order %g", bound.max_order);
}

/* Both steps of Confident-GNMax, [0] data-independent and [1] data-dependent. */
struct confident {
	double threshold, sigma1, sigma2;
	double step1[2][DP_ORDERS], step2[2][DP_ORDERS];
};

static void confident_costs(struct confident *f, double n0, double n1)
{
	double log_q = dp_threshold_log_q(f->sigma1, f->threshold, fmax(n0, n1));
	dp_rdp_threshold(f->sigma1, f->step1[0]);
	dp_rdp_gnmax_private(M_SQRT2 * f->sigma1, log_q, f->step1[1], NULL);
	dp_rdp_gnmax(f->sigma2, f->step2[0]);
	dp_rdp_gnmax_private(f->sigma2, dp_gnmax_log_q(f->sigma2, n0 - n1), f->step2[1], NULL);
}

static void confident_gnmax_query(struct check *c)
{
	const json_t *votes = field(c, "votes");
	double n0 = item(votes, 0), n1 = item(votes, 1), both[2][DP_ORDERS] = { { 0 } };
	struct confident f = { number(c, "threshold"),
			       number(c, "sigma1"),
			       number(c, "sigma2"),
			       { { 0 } },
			       { { 0 } } };
	confident_costs(&f, n0, n1);
	for (int k = 0; k < 2; k++) {
		add(both[k], f.step1[k], 1);
		add(both[k], f.step2[k], 1);
	}
	same(c, "ln_pr_answered", dp_threshold_log_answered(f.sigma1, f.threshold, fmax(n0, n1)));
	same(c, "ln_q_threshold", dp_threshold_log_q(f.sigma1, f.threshold, fmax(n0, n1)));
	same(c, "ln_q_gnmax", dp_gnmax_log_q(f.sigma2, n0 - n1));
	same_array(c, "rdp_threshold_data_independent", f.step1[0], DP_ORDERS);
	same_array(c, "rdp_threshold_data_dependent", f.step1[1], DP_ORDERS);
	same_array(c, "rdp_gnmax_data_independent", f.step2[0], DP_ORDERS);
	same_array(c, "rdp_gnmax_data_dependent", f.step2[1], DP_ORDERS);
	same_array(c, "rdp_if_answered_data_independent", both[0], DP_ORDERS);
	same_array(c, "rdp_if_answered_data_dependent", both[1], DP_ORDERS);
}

static double parameter(struct check *c, const char *key)
{
	const json_t *v = json_object_get(field(c, "params"), key);
	if (!json_is_number(v))
		wrong(c, "params has no number \"%s\"", key);
	return json_number_value(v);
}

/* Costs of one run of equal votes, asked `repeat` times of which `answered` were answered. */
static void compose_run(struct confident *f, bool confident, const json_t *run,
			double sum[2][DP_ORDERS])
{
	double n0 = item(run, 0), n1 = item(run, 1), repeat = item(run, 2);
	const json_t *flag = json_array_get(run, 3);
	bool answered = json_is_boolean(flag) ? json_is_true(flag) : json_number_value(flag) != 0;
	confident_costs(f, n0, n1);
	for (int k = 0; k < 2; k++) {
		if (confident)
			add(sum[k], f->step1[k], repeat);
		if (!confident || answered)
			add(sum[k], f->step2[k], repeat);
	}
}

static void composition(struct check *c)
{
	const char *mechanism = json_string_value(field(c, "mechanism"));
	const json_t *run, *flag, *votes = field(c, "votes");
	double sum[2][DP_ORDERS] = { { 0 } }, queries = 0, answered = 0;
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
		compose_run(&f, confident, run, sum);
		queries += item(run, 2);
		answered += json_is_true(flag) || json_number_value(flag) != 0 ? item(run, 2) : 0;
	}
	exactly(c, "queries", queries);
	exactly(c, "labels_answered", answered);
	same_array(c, "rdp_data_independent", sum[0], DP_ORDERS);
	same_array(c, "rdp_data_dependent", sum[1], DP_ORDERS);
	same_conversions(c, "epsilon_data_independent", sum[0], number(c, "delta"));
	same_conversions(c, "epsilon_data_dependent", sum[1], number(c, "delta"));
}

static void gaussian_rdp(struct check *c)
{
	double rdp[DP_ORDERS], sensitivity = number(c, "sensitivity"), sigma = number(c, "sigma");
	double count = number(c, "count"), delta = number(c, "delta");
	dp_rdp_gaussian(sensitivity, sigma, count, rdp);
	same_array(c, "rdp", rdp, DP_ORDERS);
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
	double rdp[DP_ORDERS];
	if (json_array_size(curve) != DP_ORDERS) {
		wrong(c, "rdp has %zu orders", json_array_size(curve));
		return;
	}
	for (size_t i = 0; i < DP_ORDERS; i++)
		rdp[i] = item(curve, i);
	same_conversions(c, "epsilon", rdp, number(c, "delta"));
}

/* ---- fkge-dp/laplace_moments ---- */

static uint64_t run_gap(const json_t *run)
{
	return (uint64_t)fabs(item(run, 0) - item(run, 1));
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
		same_as(c, "q", dp_moments_q(lambda, run_gap(run)), json_array_get(q, i));
		same_as(c, "ln_q", dp_moments_log_q(lambda, run_gap(run)), json_array_get(ln_q, i));
		truth(c, "data_dependent_applies", dp_moments_applies(run_gap(run)),
		      json_array_get(applies, i));
	}
}

/* What the printed formulas give without their condition must not come out. */
static void not_the_unchecked(struct check *c, double epsilon)
{
	const json_t *unchecked = field(c, "epsilon_condition_ignored");
	double u = json_number_value(unchecked);
	c->values++;
	if (json_is_true(field(c, "condition_ignored_differs")) && json_is_number(unchecked) &&
	    is_near(epsilon, u, tolerance(c, "epsilon", "rel"), 0))
		wrong(c, "epsilon %.17g ignores the condition on q", epsilon);
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
		dp_moments_add_private(alpha, lambda, run_gap(run), item(run, 2), false);
		dp_moments_add_private(capped, lambda, run_gap(run), item(run, 2), true);
		queries += item(run, 2);
	}
	exactly(c, "queries", queries);
	same_array(c, "alpha", alpha, DP_MOMENTS);
	same_array(c, "alpha_pure_capped", capped, DP_MOMENTS);
	e = dp_moments_epsilon(alpha, delta);
	same(c, "epsilon", e.epsilon);
	exactly(c, "l_min", e.l);
	not_the_unchecked(c, e.epsilon);
	e = dp_moments_epsilon(capped, delta);
	same(c, "epsilon_pure_capped", e.epsilon);
	exactly(c, "l_min_pure_capped", e.l);
}

/* ---- files ---- */

static const struct kind {
	const char *schema, *kind; /* kind NULL: the schema has but one and does not name it */
	void (*check)(struct check *c);
} kinds[] = {
	{ "fkge-dp/extra/1", "exact_binary_vote", exact_binary_vote },
	{ "fkge-dp/extra/1", "one_run_audit", one_run_audit },
	{ "fkge-dp/gnmax_rdp/1", "gnmax_query", gnmax_query },
	{ "fkge-dp/gnmax_rdp/1", "confident_gnmax_query", confident_gnmax_query },
	{ "fkge-dp/gnmax_rdp/1", "composition", composition },
	{ "fkge-dp/gnmax_rdp/1", "gaussian_rdp", gaussian_rdp },
	{ "fkge-dp/gnmax_rdp/1", "analytic_gaussian_sigma", analytic_gaussian_sigma },
	{ "fkge-dp/gnmax_rdp/1", "analytic_gaussian_profile", analytic_gaussian_profile },
	{ "fkge-dp/gnmax_rdp/1", "rdp_to_dp", rdp_to_dp },
	{ "fkge-dp/laplace_moments/1", NULL, laplace_moments },
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

static void check_case(struct check *c)
{
	const char *schema = json_string_value(json_object_get(c->header, "schema"));
	const char *kind = json_string_value(json_object_get(c->at, "kind"));
	const char *name = json_string_value(json_object_get(c->at, "name"));
	const struct kind *k = find_kind(schema, kind);
	c->name = name != NULL ? name : "(unnamed)";
	if (k == NULL)
		wrong(c, "unknown schema \"%s\" or kind \"%s\"", schema != NULL ? schema : "",
		      kind != NULL ? kind : "");
	else
		k->check(c);
}

/* Where a file lists its orders they must be ours, in our order. */
static void check_orders(struct check *c, const json_t *root)
{
	const json_t *orders = json_object_get(root, "orders");
	if (orders == NULL)
		return;
	c->at = root;
	c->name = "(orders)";
	same_array(c, "orders", dp_orders, DP_ORDERS);
}

static void check_file(void **state)
{
	struct check c = { .file = *state };
	json_error_t je;
	size_t i;
	/* Every number as a double: a sum may be a whole number beyond 64 bits. */
	json_t *root = json_load_file(c.file, JSON_DECODE_INT_AS_REAL, &je);
	if (root == NULL)
		fail_msg("%s:%d: %s", c.file, je.line, je.text);
	const json_t *at, *cases = json_object_get(root, "cases");
	c.header = json_object_get(root, "header");
	assert_true(json_is_object(c.header));
	assert_true(json_array_size(cases) > 0);
	assert_true(tolerance(&c, "", "rel") > 0);
	check_orders(&c, root);
	json_array_foreach(cases, i, at)
	{
		c.at = at;
		check_case(&c);
	}
	if (c.failures > 0)
		fail_msg("%s: %zu of %zu values are wrong", c.file, c.failures, c.values);
	assert_true(c.values >= json_array_size(cases));
	print_message("# %s: %zu cases, %zu values\n", c.file, json_array_size(cases), c.values);
	json_decref(root);
}

static int is_json(const struct dirent *d)
{
	size_t n = strlen(d->d_name);
	return n > 5 && strcmp(d->d_name + n - 5, ".json") == 0;
}

int main(void)
{
	const char *folder = getenv("FKGE_VECTORS");
	struct dirent **found;
	char *dp = file_join(folder != NULL && *folder ? folder : FKGE_VECTORS_DEFAULT, "dp");
	int n = scandir(dp, &found, is_json, alphasort);
	if (n <= 0) {
		printf("1..0 # SKIP no .json file in %s: set FKGE_VECTORS\n", dp);
		return SKIPPED;
	}
	struct CMUnitTest *tests = mem_array((size_t)n, sizeof(*tests));
	for (int i = 0; i < n; i++)
		tests[i] = (struct CMUnitTest){ .name = found[i]->d_name,
						.test_func = check_file,
						.initial_state = file_join(dp, found[i]->d_name) };
	int failed = _cmocka_run_group_tests("dp vectors", tests, (size_t)n, NULL, NULL);
	for (int i = 0; i < n; i++) {
		free(tests[i].initial_state);
		free(found[i]);
	}
	free(found);
	free(tests);
	free(dp);
	return failed;
}
