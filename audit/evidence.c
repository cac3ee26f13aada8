/* audit/evidence.c - likelihood ratios of suspects, and what they can find. */
#include "audit/evidence.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/audit.h"

/* ln of the mean of e^x[i]; the largest, if wanted. */
static double log_mean(const double *x, size_t n, size_t *largest)
{
	size_t best = 0;
	double sum = 0;

	for (size_t i = 1; i < n; i++)
		if (x[i] > x[best])
			best = i;
	for (size_t i = 0; i < n; i++)
		sum += exp(x[i] - x[best]);
	if (largest != NULL)
		*largest = best;
	return x[best] + log(sum / (double)n);
}

/* ---- labels ---- */

enum { SHARES = 7, SCALES = 3, REPEATS = 2, VOTE_SUSPECTS = SHARES + SCALES + REPEATS };
static const double shares[SHARES] = { 1, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001 };
static const double repeat_shares[REPEATS] = { 0.5, 0.05 };
static const char *const vote_names[VOTE_SUSPECTS] = {
	"no label has noise",
	"a third of the labels has no noise",
	"a tenth of the labels has no noise",
	"3 % of the labels have no noise",
	"1 % of the labels have no noise",
	"0.3 % of the labels have no noise",
	"0.1 % of the labels have no noise",
	"half of the noise",
	"a quarter of the noise",
	"the scale is inverted",
	"noise is used for two labels",
	"noise is sometimes used for two labels",
};

void audit_votes_init(struct audit_votes *v, const struct dp_mechanism *declared)
{
	*v = (struct audit_votes){ .mechanism = *declared };
	v->count = mem_array(2 * ((size_t)declared->teachers + 1), sizeof(*v->count));
}

void audit_votes_release(struct audit_votes *v)
{
	free(v->count);
	*v = (struct audit_votes){ 0 };
}

static int64_t gap_of(const struct dp_mechanism *m, uint64_t ones)
{
	return 2 * (int64_t)ones - (int64_t)m->teachers;
}

/* Probability of a label that goes with its votes, or against them. */
static double probability(const struct dp_mechanism *m, int64_t gap, bool with)
{
	double against = dp_label_against(m, gap);

	return with ? 1 - against : against;
}

/* Without noise a tie is a 0. */
static bool goes_with(int64_t gap, bool label)
{
	return label == (gap > 0);
}

static void note_repeats(struct audit_votes *v, bool with, double p)
{
	bool again = with == v->went_with;

	for (size_t k = 0; k < REPEATS && v->labels > 0; k++)
		v->repeats[k] += log(1 - repeat_shares[k] + (again ? repeat_shares[k] / p : 0));
	v->went_with = with;
}

void audit_votes_add(struct audit_votes *v, uint32_t ones, bool label)
{
	int64_t gap = gap_of(&v->mechanism, ones);
	bool with = goes_with(gap, label);

	note_repeats(v, with, probability(&v->mechanism, gap, with));
	v->count[2 * (size_t)ones + label]++;
	v->labels++;
}

static struct dp_mechanism scaled(const struct dp_mechanism *m, size_t k)
{
	const double less[SCALES] = { 2, 4, 0 };
	struct dp_mechanism out = *m;
	bool laplace = m->noise == DP_LAPLACE;

	if (less[k] > 0)
		out.param = laplace ? m->param * less[k] : m->param / less[k];
	else /* where that is more noise, it is nothing to look for */
		out.param = laplace ? fmax(m->param, 1 / m->param) : fmin(m->param, 1 / m->param);
	if (laplace)
		out.param = fmin(out.param, 20);
	return out;
}

/* Sum of n_k ln(q_k / p_k) over votes and labels; q is what suspect k makes of it. */
static double votes_against(const struct audit_votes *v, size_t suspect)
{
	const struct dp_mechanism *m = &v->mechanism;
	bool share = suspect < SHARES;
	struct dp_mechanism other = share ? *m : scaled(m, suspect - SHARES);
	double sum = 0;

	for (uint64_t i = 0; i < 2 * ((uint64_t)m->teachers + 1); i++) {
		int64_t gap = gap_of(m, i / 2);
		bool with = goes_with(gap, i % 2 == 1);
		double p = probability(m, gap, with), q = probability(&other, gap, with);

		if (v->count[i] == 0)
			continue;
		if (share)
			q = (1 - shares[suspect]) * p + (with ? shares[suspect] : 0);
		sum += (double)v->count[i] * log(q / p);
	}
	return sum;
}

double audit_votes_evidence(const struct audit_votes *v, const char **likeliest)
{
	double x[VOTE_SUSPECTS];
	size_t best;
	double all;

	for (size_t k = 0; k < SHARES + SCALES; k++)
		x[k] = votes_against(v, k);
	memcpy(x + SHARES + SCALES, v->repeats, sizeof(v->repeats));
	all = log_mean(x, VOTE_SUSPECTS, &best);
	if (likeliest != NULL)
		*likeliest = vote_names[best];
	return all;
}

/* Under the fault: mean and variance of the evidence for it. */
static void evidence_of_share(const struct audit_votes *v, double share, double *mean, double *var)
{
	const struct dp_mechanism *m = &v->mechanism;

	*mean = *var = 0;
	for (uint64_t ones = 0; ones <= m->teachers; ones++) {
		double n = (double)(v->count[2 * ones] + v->count[2 * ones + 1]);
		double p = probability(m, gap_of(m, ones), true), q = p + share * (1 - p);
		double up = log(q / p), down = share < 1 ? log(1 - share) : 0;

		*mean += n * (q * up + (1 - q) * down);
		*var += n * q * (1 - q) * (up - down) * (up - down);
	}
}

double audit_votes_resolution(const struct audit_votes *v, double alpha)
{
	double least = INFINITY, mean, var;

	for (size_t k = 0; k < SHARES; k++) {
		evidence_of_share(v, shares[k], &mean, &var);
		if (mean - 2.326 * sqrt(var) >= log(VOTE_SUSPECTS / alpha))
			least = shares[k];
	}
	return least;
}

/* Evidence of the shares alone when `with` of the labels went with their votes. */
static double shares_evidence(double p, uint64_t labels, uint64_t with)
{
	double x[VOTE_SUSPECTS];

	for (size_t k = 0; k < VOTE_SUSPECTS; k++) {
		double against = (double)(labels - with);

		x[k] = -INFINITY;
		if (k >= SHARES)
			continue;
		x[k] = (double)with * log(1 - shares[k] + shares[k] / p);
		if (against > 0)
			x[k] += against * log(1 - shares[k]);
	}
	return log_mean(x, VOTE_SUSPECTS, NULL);
}

double audit_votes_power(const struct dp_mechanism *declared, int64_t gap, uint64_t labels,
			 double share, double alpha)
{
	double p = probability(declared, gap, true);
	uint64_t low = 0, high = labels + 1; /* the least count that is enough */

	while (low < high) {
		uint64_t mid = low + (high - low) / 2;

		if (mid > labels || shares_evidence(p, labels, mid) >= -log(alpha))
			high = mid;
		else
			low = mid + 1;
	}
	if (low > labels)
		return 0;
	return dp_share_tail(low, labels, share >= 1 ? 1 : p + share * (1 - p));
}

/* ---- numbers ---- */

enum { NOISE_SCALES = 6, NOISE_SUSPECTS = NOISE_SCALES + AUDIT_NOISE_SHARES };
static const double noise_scales[NOISE_SCALES] = { 0.98, 0.95, 0.9, 0.7, 0.5, 0.25 };
static const double noise_shares[AUDIT_NOISE_SHARES] = { 0.3, 0.1, 0.03, 0.01, 0.003 };
static const char *const noise_names[NOISE_SUSPECTS] = {
	"98 % of the noise",
	"95 % of the noise",
	"90 % of the noise",
	"70 % of the noise",
	"half of the noise",
	"a quarter of the noise, or less",
	"30 % of the numbers have no noise",
	"10 % of the numbers have no noise",
	"3 % of the numbers have no noise",
	"1 % of the numbers have no noise",
	"0.3 % of the numbers have no noise",
};

/* So near to nothing, in deviations, that noise is there once in 627 numbers. */
static const double still = 0.002;

/* At least the probability of -k .. k: none of them is likelier than 0. */
static double still_probability(double k, double deviation)
{
	return (2 * k + 1) / (deviation * 2.5066282746310002);
}

void audit_noise_release(struct audit_noise *v)
{
	free(v->runs);
	*v = (struct audit_noise){ 0 };
}

/* One step of splitmix64 over all numbers of a run. */
static uint64_t mix(uint64_t h, uint64_t x)
{
	h = (h ^ x) + UINT64_C(0x9e3779b97f4a7c15);
	h = (h ^ h >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	h = (h ^ h >> 27) * UINT64_C(0x94d049bb133111eb);
	return h ^ h >> 31;
}

static void note_run(struct audit_noise *v, int64_t residual)
{
	v->hash = mix(v->hash, (uint64_t)residual);
	if (v->numbers % AUDIT_RUN != 0)
		return;
	if ((v->n_runs & (v->n_runs - 1)) == 0)
		v->runs = mem_resize(v->runs, v->n_runs == 0 ? 1 : 2 * v->n_runs, sizeof(*v->runs));
	v->runs[v->n_runs++] = v->hash;
	v->hash = 0;
}

/* A share of the numbers lies next to nothing, the rest is as declared. */
static void note_still(struct audit_noise *v, int64_t residual, double deviation)
{
	double k = floor(still * deviation), p = still_probability(k, deviation);
	bool hit = fabs((double)residual) <= k;

	for (size_t i = 0; i < AUDIT_NOISE_SHARES; i++)
		v->shares[i] += log(1 - noise_shares[i] + (hit ? noise_shares[i] / p : 0));
}

void audit_noise_add(struct audit_noise *v, int64_t residual, double deviation)
{
	double r = (double)residual / deviation;

	v->numbers++;
	v->squares += r * r;
	note_still(v, residual, deviation);
	note_run(v, residual);
}

/* ln of s^-n exp(-(1/s^2 - 1) S / 2): all numbers have s times the deviation. */
static double scale_evidence(double n, double squares, double s)
{
	return -n * log(s) - (1 / (s * s) - 1) * squares / 2;
}

double audit_noise_evidence(const struct audit_noise *v, const char **likeliest)
{
	double x[NOISE_SUSPECTS], n = (double)v->numbers, all;
	size_t best;

	for (size_t k = 0; k < NOISE_SCALES; k++)
		x[k] = scale_evidence(n, v->squares, noise_scales[k]);
	for (size_t k = 0; k < AUDIT_NOISE_SHARES; k++)
		x[NOISE_SCALES + k] = v->shares[k];
	all = log_mean(x, NOISE_SUSPECTS, &best);
	if (likeliest != NULL)
		*likeliest = noise_names[best];
	return all;
}

static int by_value(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

size_t audit_noise_repeats(const struct audit_noise *v)
{
	uint64_t *sorted = mem_array(v->n_runs, sizeof(*sorted));
	size_t n = 0;

	if (v->n_runs > 0)
		memcpy(sorted, v->runs, v->n_runs * sizeof(*sorted));
	qsort(sorted, v->n_runs, sizeof(*sorted), by_value);
	for (size_t i = 1; i < v->n_runs; i++)
		n += sorted[i] == sorted[i - 1];
	free(sorted);
	return n;
}

/* Wilson and Hilferty 1931: the cube root of a chi-square is nearly normal. */
static double chi_square_below(double x, double n)
{
	double deviation = sqrt(2 / (9 * n));
	double z = (cbrt(fmax(x, 0) / n) - (1 - 2 / (9 * n))) / deviation;

	return 0.5 * erfc(-z / sqrt(2));
}

double audit_noise_power_scale(uint64_t numbers, double scale, double alpha)
{
	double n = (double)numbers, enough = log((double)NOISE_SUSPECTS / alpha), best = 0;

	for (size_t k = 0; k < NOISE_SCALES && numbers > 0; k++) {
		double s = noise_scales[k];
		double most = 2 * (-n * log(s) - enough) / (1 / (s * s) - 1); /* sum of squares */

		best = fmax(best, chi_square_below(most / (scale * scale), n));
	}
	return best;
}

double audit_noise_power_share(uint64_t numbers, double share, double alpha)
{
	double p0 = still_probability(floor(still * 2048), 2048),
	       enough = log((double)NOISE_SUSPECTS / alpha), best = 0;
	double n = (double)numbers;

	for (size_t k = 0; k < AUDIT_NOISE_SHARES && numbers > 0; k++) {
		double none = log(1 - noise_shares[k]);
		double hit = log(1 - noise_shares[k] + noise_shares[k] / p0);
		double least = ceil((enough - n * none) / (hit - none));

		if (least <= n)
			best = fmax(best, dp_share_tail((uint64_t)fmax(least, 0), numbers,
							p0 + share * (1 - p0)));
	}
	return best;
}
