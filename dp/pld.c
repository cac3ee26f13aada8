/* dp/pld.c - epsilon of votes and releases by their privacy loss. */
#include "dp/pld.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/accountant.h"
#include "dp/adaptive.h"
#include "dp/gaussian.h"
#include "dp/lattice.h"
#include "dp/rdp.h"

#define ROUNDED_UP (1 + 1e-12) /* more than what doubles lose in a closed form */

double dp_pld_releases(enum dp_release noise, double z, uint64_t count)
{
	double variance = (double)count / (z * z), steps;

	if (count == 0)
		return 0;
	if (dp_release_check(z, NULL) != 0)
		return (double)INFINITY;
	if (noise == DP_RELEASE_GAUSSIAN)
		return variance;
	steps = dp_lattice_deviation_least(z);
	return steps > 4 ? variance / (1 - 4 / (steps * steps)) : (double)INFINITY;
}

static double gaussian_epsilon(double variance, double delta)
{
	if (!(delta > 0) || !(variance < 1e6))
		return (double)INFINITY;
	return variance > 0 ? dp_gaussian_epsilon(sqrt(variance), 1, delta) * ROUNDED_UP : 0;
}

/* ---- what was worked out before ---- */

/* A ledger asks for the same figures again and again, with every status and every reserve.  An
 * answer is a function of the question alone, so remembering some changes none.  What one thread
 * has worked out another need not; what was not asked for longest goes. */
enum question { NONE, VARIANCE, EPSILON, LABELS };
struct known {
	enum question question;
	struct dp_mechanism mechanism;
	double about[3], answer;
	uint64_t asked;
};
enum { KNOWN = 512 }; /* of all partners of an agent */
static struct known known[KNOWN];
static uint64_t known_asked;
static pthread_mutex_t known_lock = PTHREAD_MUTEX_INITIALIZER;

static bool same_mechanism(const struct dp_mechanism *a, const struct dp_mechanism *b)
{
	return a->noise == b->noise && a->param == b->param && a->teachers == b->teachers;
}

static bool same_numbers(const double a[3], const double b[3])
{
	return a[0] == b[0] && a[1] == b[1] && a[2] == b[2];
}

static struct known *known_answer(enum question q, const struct dp_mechanism *m,
				  const double about[3])
{
	for (size_t i = 0; i < KNOWN; i++)
		if (known[i].question == q && same_mechanism(&known[i].mechanism, m) &&
		    same_numbers(known[i].about, about))
			return &known[i];
	return NULL;
}

static struct known *known_oldest(void)
{
	struct known *oldest = known;

	for (size_t i = 1; i < KNOWN; i++)
		if (known[i].asked < oldest->asked)
			oldest = &known[i];
	return oldest;
}

static bool known_find(enum question q, const struct dp_mechanism *m, const double about[3],
		       double *answer)
{
	struct known *at;

	pthread_mutex_lock(&known_lock);
	at = known_answer(q, m, about);
	if (at != NULL) {
		at->asked = ++known_asked;
		*answer = at->answer;
	}
	pthread_mutex_unlock(&known_lock);
	return at != NULL;
}

static double known_add(enum question q, const struct dp_mechanism *m, const double about[3],
			double answer)
{
	struct known one = { .question = q, .mechanism = *m, .answer = answer };

	memcpy(one.about, about, sizeof(one.about));
	pthread_mutex_lock(&known_lock);
	one.asked = ++known_asked;
	*known_oldest() = one;
	pthread_mutex_unlock(&known_lock);
	return answer;
}

/* ---- votes ---- */

static struct dp_votes_bound variance_of(const struct dp_mechanism *m, double c)
{
	const double about[3] = { c };
	struct dp_votes_bound b = { 0, DP_VOTES_SLACK };

	if (!known_find(VARIANCE, m, about, &b.variance))
		b.variance = known_add(VARIANCE, m, about, dp_votes_variance(m, c).variance);
	return b;
}

/* The Gaussian of so much variance, with delta less what votes have taken of it. */
static double as_gaussian(double variance, double delta, double slack)
{
	return slack < 0.1 * delta ? gaussian_epsilon(variance, delta - slack) : (double)INFINITY;
}

/* With `c` for the coins' not being round, once for all mechanisms: each bound holds beside that
 * same Gaussian, and so beside it and the bounds of the others. */
static double votes_as_gaussian(const struct dp_pld_votes *votes, size_t n, double releases,
				double delta, double c)
{
	double variance = releases + c, slack = 0;

	for (size_t i = 0; i < n && isfinite(variance); i++) {
		struct dp_votes_bound b = variance_of(&votes[i].mechanism, c);

		variance += b.variance * (double)votes[i].labels;
		slack += b.slack * (double)votes[i].labels;
	}
	return as_gaussian(variance, delta, slack);
}

static double largest_loss(const struct dp_pld_votes *votes, size_t n)
{
	double most = 0;

	for (size_t i = 0; i < n; i++)
		most = fmax(most, dp_votes_loss(&votes[i].mechanism));
	return most;
}

/* A larger c lets a label cost less: which is best depends on how many there are. */
static const double loss_multiples[] = { 2, 8, 32, 128 };
enum { MULTIPLES = sizeof(loss_multiples) / sizeof(loss_multiples[0]) };

static double best_gaussian(const struct dp_pld_votes *votes, size_t n, double releases,
			    double delta)
{
	double loss = largest_loss(votes, n), best = (double)INFINITY;

	for (size_t k = 0; k < MULTIPLES && loss > 0 && loss < 100; k++)
		best = fmin(best,
			    votes_as_gaussian(votes, n, releases, delta, loss_multiples[k] * loss));
	return best;
}

static double by_game(const struct dp_pld_votes *v, double releases, double delta, double reach)
{
	struct dp_game *g = dp_game_new(&v->mechanism, v->labels, reach);
	double epsilon;

	if (g == NULL)
		return (double)INFINITY;
	if (releases > 0 && dp_game_points(g) > DP_GAME_BESIDE) { /* of a host that wants us busy */
		dp_game_free(g);
		return (double)INFINITY;
	}
	for (uint64_t i = 0; i < v->labels; i++)
		dp_game_label(g);
	epsilon = dp_game_epsilon(g, releases, delta);
	dp_game_free(g);
	return epsilon;
}

/* An epsilon that is surely enough, so that a grid needs to reach no further. */
static double renyi(const struct dp_pld_votes *v, double releases, double delta)
{
	double rdp[DP_ORDERS];

	dp_rdp_vote(&v->mechanism, rdp);
	for (int i = 0; i < DP_ORDERS; i++)
		rdp[i] = rdp[i] * (double)v->labels + dp_orders[i] * releases / 2;
	return dp_rdp_tight(rdp, delta).epsilon;
}

static double one_mechanism(const struct dp_pld_votes *v, double releases, double delta)
{
	const double about[3] = { (double)v->labels, releases, delta };
	double best;

	if (known_find(EPSILON, &v->mechanism, about, &best))
		return best;
	best = best_gaussian(v, 1, releases, delta);
	best = fmin(best, by_game(v, releases, delta, fmin(best, renyi(v, releases, delta))));
	return known_add(EPSILON, &v->mechanism, about, best);
}

static double votes_epsilon(const struct dp_pld_votes *votes, size_t n, double releases,
			    double delta)
{
	return n > 1 ? best_gaussian(votes, n, releases, delta)
		     : one_mechanism(votes, releases, delta);
}

/* Each mechanism once, those without labels not at all. */
static size_t gather(const struct dp_pld_votes *votes, size_t n, struct dp_pld_votes *out)
{
	size_t found = 0, k;

	for (size_t i = 0; i < n; i++) {
		for (k = 0; k < found; k++)
			if (same_mechanism(&out[k].mechanism, &votes[i].mechanism))
				break;
		if (k < found)
			out[k].labels += votes[i].labels;
		else if (votes[i].labels > 0)
			out[found++] = votes[i];
	}
	return found;
}

double dp_pld_epsilon(const struct dp_pld_votes *votes, size_t n, double releases, double delta)
{
	struct dp_pld_votes *each = mem_array(n + 1, sizeof(*each));
	double epsilon = (double)INFINITY;
	bool valid = delta > 0 && delta < 1 && releases >= 0 && releases < (double)INFINITY;

	n = gather(votes, n, each);
	for (size_t i = 0; i < n; i++)
		valid = valid && dp_mechanism_check(&each[i].mechanism, NULL) == 0;
	if (valid)
		epsilon = n > 0 ? votes_epsilon(each, n, releases, delta)
				: gaussian_epsilon(releases, delta);
	free(each);
	return epsilon;
}

/* As far as votes_as_gaussian() asks. */
static bool variances_are_known(const struct dp_pld_votes *votes, size_t n, double c)
{
	const double about[3] = { c };
	double variance = 0;

	for (size_t i = 0; i < n && isfinite(variance); i++)
		if (!known_find(VARIANCE, &votes[i].mechanism, about, &variance))
			return false;
	return true;
}

static bool best_is_known(const struct dp_pld_votes *votes, size_t n)
{
	double loss = largest_loss(votes, n);

	for (size_t k = 0; k < MULTIPLES && loss > 0 && loss < 100; k++)
		if (!variances_are_known(votes, n, loss_multiples[k] * loss))
			return false;
	return true;
}

bool dp_pld_is_known(const struct dp_pld_votes *votes, size_t n, double releases, double delta)
{
	struct dp_pld_votes *each = mem_array(n + 1, sizeof(*each));
	double about[3] = { 0, releases, delta }, unused;
	bool is_known;

	n = gather(votes, n, each);
	about[0] = (double)each->labels;
	is_known = n == 1 && isfinite(releases)
			   ? known_find(EPSILON, &each->mechanism, about, &unused)
			   : best_is_known(each, n);
	free(each);
	return is_known;
}

/* ---- how many fit, how much noise ---- */

static double one_release(enum dp_release noise, double z, double delta)
{
	return dp_pld_epsilon(NULL, 0, dp_pld_releases(noise, z, 1), delta);
}

double dp_pld_release_multiplier(enum dp_release noise, double epsilon, double delta)
{
	double low = DP_MULTIPLIER_MIN, high = DP_MULTIPLIER_MAX;

	if (!(one_release(noise, high, delta) <= epsilon))
		return (double)INFINITY;
	if (one_release(noise, low, delta) <= epsilon)
		return low;
	while (high > low * (1 + 1e-12)) {
		double mid = sqrt(low * high);

		if (one_release(noise, mid, delta) <= epsilon)
			high = mid;
		else
			low = mid;
	}
	return high;
}

struct priced {
	struct dp_votes_bound bound;
	double c, delta;
};

static double labels_as_gaussian(const void *ctx, uint64_t labels)
{
	const struct priced *p = ctx;

	return as_gaussian(p->c + p->bound.variance * (double)labels, p->delta,
			   p->bound.slack * (double)labels);
}

static uint64_t within_gaussian(const struct dp_mechanism *m, double epsilon, double delta)
{
	double loss = dp_votes_loss(m);
	uint64_t most = 0, fit;

	for (size_t k = 0; k < MULTIPLES && loss > 0 && loss < 100; k++) {
		struct priced p = { .c = loss * loss_multiples[k], .delta = delta };

		p.bound = variance_of(m, p.c);
		fit = dp_count_within(labels_as_gaussian, &p, epsilon);
		most = fit > most ? fit : most;
	}
	return most;
}

/* How many labels of the game stay within epsilon; it is of no more than `most`. */
static uint64_t within_game(struct dp_game *g, uint64_t most, double epsilon, double delta)
{
	uint64_t n = 0;

	while (n < most) {
		dp_game_label(g);
		if (!(dp_game_epsilon(g, 0, delta) <= epsilon))
			break;
		n++;
	}
	return n;
}

/* Of which `sure` are within it by a closed form.  What the game adds has to be within it also as
 * it is asked for later, of so many labels, whose grid may be another one. */
static uint64_t more_labels(const struct dp_mechanism *m, uint64_t sure, double epsilon,
			    double delta)
{
	struct dp_pld_votes all = { *m, sure + sure / 4 + 16 };
	struct dp_game *g = dp_game_new(m, all.labels, epsilon);

	if (g == NULL)
		return sure;
	all.labels = within_game(g, all.labels, epsilon, delta);
	dp_game_free(g);
	return all.labels > sure && one_mechanism(&all, 0, delta) <= epsilon ? all.labels : sure;
}

uint64_t dp_pld_labels(const struct dp_mechanism *m, uint64_t fit, double epsilon, double delta)
{
	const double about[3] = { (double)fit, epsilon, delta };
	uint64_t most;
	double answer;

	if (dp_mechanism_check(m, NULL) != 0 || !(delta > 0 && delta < 1) || fit >= DP_LABELS_MAX)
		return fit;
	if (known_find(LABELS, m, about, &answer))
		return (uint64_t)answer;
	most = within_gaussian(m, epsilon, delta);
	most = more_labels(m, most > fit ? most : fit, epsilon, delta);
	known_add(LABELS, m, about, (double)most);
	return most;
}
