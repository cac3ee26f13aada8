/* dp/pld_steps.c - epsilon of steps of DP-SGD by their privacy loss. */
#include "dp/pld_steps.h"

#include <assert.h>
#include <complex.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

enum direction { REMOVED, ADDED };

/* Deviation of the noise in whole numbers, at least (kge/dp_noise.h). */
#define DEVIATION_LEAST 2048.0

enum {
	CELLS_MAX = 1 << 18, /* of all mechanisms together */
	RING_LEAST = 1 << 10,
	RING_MOST = 1 << 17
};

/* ---- one step on the grid ---- */

struct law {
	double *mass; /* at losses (low + i) h */
	ptrdiff_t low;
	size_t n;
	double beyond; /* counts as told */
	double steps;
	double log_sum; /* of mass e^(tilt x loss), when tilted */
};

struct grid {
	double h, tail, cells; /* cells: as many as one step may have */
};

static double phi(double x)
{
	return 0.5 * erfc(-x * M_SQRT1_2);
}

/* P(a < N(0, 1) <= b), from the side on which it does not cancel. */
static double normal_between(double a, double b)
{
	return a > 0 ? phi(-a) - phi(-b) : phi(b) - phi(a);
}

/* ln(M / N(0, z^2)) at x, and the x at which it is that; -infinity: nowhere so low. */
static double loss_at(const struct dp_subsampled *m, double x)
{
	double up = (2 * x - 1) / (2 * m->noise * m->noise);

	return up > 600 ? up + log(m->rate) : log1p(m->rate * expm1(up));
}

static double place_of(const struct dp_subsampled *m, double loss)
{
	double ratio = expm1(loss) / m->rate;

	return ratio > -1 ? m->noise * m->noise * log1p(ratio) + 0.5 : -(double)INFINITY;
}

static double plain_between(const struct dp_subsampled *m, double a, double b)
{
	return normal_between(a / m->noise, b / m->noise);
}

static double mixed_between(const struct dp_subsampled *m, double a, double b)
{
	return (1 - m->rate) * plain_between(m, a, b) +
	       m->rate * normal_between((a - 1) / m->noise, (b - 1) / m->noise);
}

/* Numbers x within so many deviations of 0 and of 1 are looked at. */
static double deviations(double tail)
{
	double r = 4;

	while (r < 37 && phi(-r) > tail)
		r += 0.25;
	return r;
}

/* Of the probability between losses a and a + h, p under P and q under Q: the share of p that goes
 * to the upper loss.  More than doubles lose is added. */
static double share_above(double p, double q, double a, double h)
{
	double share = p > 0 ? (1 - exp(a) * (q / p)) / -expm1(-h) : 1;

	return fmin(1, fmax(0, share) + 1e-8 + 1e-13 / h);
}

/* Cell k: losses of M over N from k h to (k + 1) h.  The last one and, where losses fall with x,
 * the first one go on for ever: what is rounded upwards may. */
static void add_cell(struct law *l, const struct dp_subsampled *m, enum direction d, double h,
		     ptrdiff_t k, const double x[2])
{
	double plain = plain_between(m, x[0], x[1]), mixed = mixed_between(m, x[0], x[1]);
	double p = d == REMOVED ? mixed : plain, q = d == REMOVED ? plain : mixed;
	ptrdiff_t a = d == REMOVED ? k : -k - 1;
	double above = p * share_above(p, q, (double)a * h, h);

	l->mass[a - l->low] += p - above;
	l->mass[a - l->low + 1] += above;
}

static bool law_init(struct law *l, const struct dp_pld_steps *at, enum direction d, struct grid g)
{
	const struct dp_subsampled m = { at->mechanism.rate,
					 at->mechanism.noise * sqrt(1 - 4 / (DEVIATION_LEAST *
									     DEVIATION_LEAST)) };
	double r = deviations(g.tail) * m.noise, first = floor(loss_at(&m, -r) / g.h);
	double last = floor(loss_at(&m, 1 + r) / g.h);

	*l = (struct law){ .steps = (double)at->steps };
	if (!(last - first < g.cells))
		return false;
	l->low = d == REMOVED ? (ptrdiff_t)first : -(ptrdiff_t)last - 1;
	l->n = (size_t)(last - first) + 2;
	l->mass = mem_array(l->n, sizeof(double));
	for (ptrdiff_t k = (ptrdiff_t)first; k <= (ptrdiff_t)last; k++) {
		double x[2] = { place_of(&m, (double)k * g.h),
				place_of(&m, (double)(k + 1) * g.h) };

		if (k == (ptrdiff_t)first)
			x[0] = d == REMOVED ? -(double)INFINITY : -r;
		if (k == (ptrdiff_t)last)
			x[1] = d == REMOVED ? 1 + r : (double)INFINITY;
		add_cell(l, &m, d, g.h, k, x);
	}
	l->beyond = d == REMOVED ? mixed_between(&m, 1 + r, (double)INFINITY) : phi(-r / m.noise);
	return true;
}

/* ---- all steps ---- */

struct total {
	struct law *laws;
	size_t n;
	double h, steps;
	double tilt, cumulant, mean, variance; /* under the tilt */
};

static double highest(const struct law *l, double h)
{
	return (double)(l->low + (ptrdiff_t)l->n) * h;
}

/* ln of the mean of e^(tilt x loss), of one step; its mean and variance under the tilt. */
static double tilted(const struct law *l, double h, double tilt, double *mean, double *variance)
{
	double sum = 0, first = 0, second = 0;

	for (size_t i = 0; i < l->n; i++) {
		double loss = (double)(l->low + (ptrdiff_t)i) * h;
		double w = l->mass[i] * exp(tilt * loss);

		sum += w;
		first += w * loss;
		second += w * loss * loss;
	}
	*mean = first / sum;
	*variance = fmax(0, second / sum - *mean * *mean);
	return log(sum);
}

static void set_tilt(struct total *t, double tilt)
{
	t->tilt = tilt;
	t->cumulant = t->mean = t->variance = 0;
	for (size_t i = 0; i < t->n; i++) {
		struct law *l = &t->laws[i];
		double mean, variance;

		l->log_sum = tilted(l, t->h, tilt, &mean, &variance);
		t->cumulant += l->steps * l->log_sum;
		t->mean += l->steps * mean;
		t->variance += l->steps * variance;
	}
}

/* The tilt at which (cumulant + ln(1/delta)) / tilt is least: Chernoff's epsilon. */
static double most_tilt(const struct total *t)
{
	double high = t->h;

	for (size_t i = 0; i < t->n; i++)
		high = fmax(high, highest(&t->laws[i], t->h));
	return fmin(2000, 600 / high);
}

static void best_tilt(struct total *t, double delta)
{
	double low = 1e-3, high = most_tilt(t);

	while (high > 1.001 * low) {
		set_tilt(t, sqrt(low * high));
		if (t->tilt * t->mean - t->cumulant + log(delta) > 0)
			high = t->tilt;
		else
			low = t->tilt;
	}
}

/* Chernoff: P(total >= loss). */
static double total_above(const struct total *t, double loss)
{
	static const double more[] = { 1, 1.1, 1.25, 1.5, 2, 3 };
	double least = 1, most = most_tilt(t);

	for (size_t k = 0; k < sizeof(more) / sizeof(more[0]); k++) {
		double tilt = fmin(most, more[k] * t->tilt), sum = 0, mean, variance;

		for (size_t i = 0; i < t->n; i++)
			sum += t->laws[i].steps * tilted(&t->laws[i], t->h, tilt, &mean, &variance);
		least = fmin(least, exp(sum - tilt * loss));
	}
	return least;
}

/* ---- Fourier ---- */

static void bit_reverse(double complex *x, size_t n)
{
	for (size_t i = 1, j = 0; i < n; i++) {
		size_t bit = n >> 1;

		for (; j & bit; bit >>= 1)
			j ^= bit;
		j |= bit;
		if (i < j) {
			double complex spare = x[i];

			x[i] = x[j];
			x[j] = spare;
		}
	}
}

/* Cooley and Tukey 1965; turn[k] = e^(-2 pi i k / n), n a power of two. */
static void transform(double complex *x, size_t n, const double complex *turn)
{
	bit_reverse(x, n);
	for (size_t half = 1; half < n; half *= 2)
		for (size_t at = 0; at < n; at += 2 * half)
			for (size_t k = 0; k < half; k++) {
				double complex *a = &x[at + k], *b = &x[at + k + half];
				double complex v = *b * turn[k * (n / (2 * half))];

				*b = *a - v;
				*a = *a + v;
			}
}

static size_t on_ring(ptrdiff_t at, size_t n)
{
	ptrdiff_t k;

	assert(n > 0);
	k = at % (ptrdiff_t)n;
	return (size_t)(k < 0 ? k + (ptrdiff_t)n : k);
}

/* all *= the transform of one step under the tilt, to the power of steps. */
static void multiply(double complex *all, double complex *one, const double complex *turn,
		     const struct total *t, const struct law *l, size_t n)
{
	for (size_t i = 0; i < n; i++)
		one[i] = 0;
	for (size_t i = 0; i < l->n; i++) {
		double loss = (double)(l->low + (ptrdiff_t)i) * t->h;

		one[on_ring(l->low + (ptrdiff_t)i, n)] +=
			l->mass[i] * exp(t->tilt * loss - l->log_sum);
	}
	transform(one, n, turn);
	for (size_t i = 0; i < n; i++) {
		double size = pow(cabs(one[i]), l->steps), turned = carg(one[i]) * l->steps;

		all[i] *= size * cexp(I * turned);
	}
}

/* The law of the total under the tilt, on the ring; l2 error below ring_error(). */
static void compose(const struct total *t, double complex *all, size_t n)
{
	double complex *one = mem_array(n, sizeof(*one)), *turn = mem_array(n, sizeof(*turn));

	for (size_t k = 0; k < n; k++) {
		double angle = 2 * M_PI * (double)k / (double)n;

		turn[k] = cos(angle) - I * sin(angle);
		all[k] = 1;
	}
	for (size_t i = 0; i < t->n; i++)
		multiply(all, one, turn, t, &t->laws[i], n);
	for (size_t k = 0; k < n; k++) /* the inverse, by the conjugate */
		all[k] = conj(all[k]) / (double)n;
	transform(all, n, turn);
	free(one);
	free(turn);
}

/* Higham: each transform is wrong by 8u log2 n of its l2 norm, which is 1 at most; a power
 * multiplies that, and what its own rounding adds, by the steps. */
static double ring_error(const struct total *t, size_t n)
{
	return 2e-15 * (log2((double)n) + 4) * (t->steps + 1);
}

/* ---- delta ---- */

/* Of losses from point k of the ring on: probability, that under Q, and the squares of what
 * an error of the tilted law counts for. */
struct tail {
	double p, q, squares;
};

struct profile {
	struct tail *from; /* n + 1 of them, those of the ring in ascending order */
	size_t n;
	double first, h; /* loss of the first point, and between two */
	double error, told, steps;
};

static void profile_init(struct profile *f, const struct total *t, size_t n)
{
	double complex *all = mem_array(n, sizeof(*all));
	ptrdiff_t low = (ptrdiff_t)floor(t->mean / t->h) - (ptrdiff_t)(n / 2);

	compose(t, all, n);
	*f = (struct profile){ .n = n, .h = t->h, .first = (double)low * t->h, .steps = t->steps };
	f->from = mem_array(n + 1, sizeof(*f->from));
	for (size_t k = n; k-- > 0;) {
		double loss = f->first + (double)k * f->h;
		double weight = exp(t->cumulant - t->tilt * loss);
		double p = weight * fmax(0, creal(all[on_ring(low + (ptrdiff_t)k, n)]));
		struct tail *at = &f->from[k], *after = &f->from[k + 1];

		*at = (struct tail){ after->p + p, after->q + p * exp(-loss),
				     after->squares + weight * weight };
	}
	f->error = ring_error(t, n);
	f->told = total_above(t, f->first + (double)n * f->h);
	for (size_t i = 0; i < t->n; i++)
		f->told += t->laws[i].steps * t->laws[i].beyond;
	free(all);
}

static double profile_delta(const struct profile *f, double epsilon)
{
	double at = floor((epsilon - f->first) / f->h) + 1; /* the first one above */
	const struct tail *k = &f->from[(size_t)fmin(fmax(at, 0), (double)f->n)];
	double delta = k->p * (1 + 1e-11) - exp(epsilon) * k->q + f->error * sqrt(k->squares);

	return fmax(delta, 0) * (1 + 1e-12 * f->steps) + f->told;
}

/* A loss below the ring is not on it, so no epsilon there is answered for. */
static double profile_epsilon(const struct profile *f, double delta)
{
	double low = fmax(0, f->first), high = f->first + (double)f->n * f->h;

	if (!(high > low) || !(profile_delta(f, high) <= delta))
		return (double)INFINITY;
	if (profile_delta(f, low) <= delta)
		return low;
	while (high - low > 1e-9 * (1 + high)) {
		double mid = (low + high) / 2;

		if (profile_delta(f, mid) <= delta)
			high = mid;
		else
			low = mid;
	}
	return high;
}

/* ---- everything ---- */

/* Deviation of the loss of one step, roughly: it only sets the grid. */
static double loss_deviation(const struct dp_subsampled *m)
{
	double z2 = m->noise * m->noise;

	return fmin(1 / m->noise, m->rate * sqrt(expm1(fmin(1 / z2, 100))));
}

static double grid_step(const struct dp_pld_steps *at, size_t n)
{
	double variance = 0, steps = 0;

	for (size_t i = 0; i < n; i++) {
		double s = loss_deviation(&at[i].mechanism);

		variance += (double)at[i].steps * s * s;
		steps += (double)at[i].steps;
	}
	return fmin(sqrt(variance / steps) / 12, sqrt(variance) / 200);
}

static void total_release(struct total *t)
{
	for (size_t i = 0; i < t->n; i++)
		free(t->laws[i].mass);
	free(t->laws);
}

static bool total_init(struct total *t, const struct dp_pld_steps *at, size_t n, enum direction d,
		       struct grid g)
{
	bool fits = true;

	*t = (struct total){ .n = n, .h = g.h };
	t->laws = mem_array(n, sizeof(*t->laws));
	for (size_t i = 0; i < n; i++) {
		fits = fits && law_init(&t->laws[i], &at[i], d, g);
		t->steps += (double)at[i].steps;
	}
	return fits;
}

/* Points that eight deviations either way need; more than RING_MOST: the grid is too fine. */
static size_t ring_points(const struct total *t)
{
	double need = 16 * sqrt(t->variance) / t->h + 64;
	size_t n = RING_LEAST;

	while ((double)n < need && n <= RING_MOST)
		n *= 2;
	return n;
}

static double one_direction(const struct dp_pld_steps *at, size_t n, enum direction d, double delta,
			    struct grid g)
{
	double epsilon = (double)INFINITY;

	for (int tries = 0; tries < 8 && !isfinite(epsilon); tries++, g.h *= 2) {
		struct total t;
		struct profile f;

		if (total_init(&t, at, n, d, g)) {
			best_tilt(&t, delta);
			if (ring_points(&t) <= RING_MOST) {
				profile_init(&f, &t, ring_points(&t));
				epsilon = profile_epsilon(&f, delta);
				free(f.from);
			}
		}
		total_release(&t);
	}
	return epsilon;
}

double dp_pld_steps_epsilon(const struct dp_pld_steps *at, size_t n, double delta)
{
	struct grid g = { .h = 0 };
	double steps = 0;

	for (size_t i = 0; i < n; i++) {
		steps += (double)at[i].steps;
		if (dp_subsampled_check(&at[i].mechanism, NULL) != 0)
			return (double)INFINITY;
	}
	if (!(delta > 0 && delta < 1))
		return (double)INFINITY;
	if (!(steps > 0))
		return 0;
	g.h = grid_step(at, n);
	g.tail = 1e-6 * delta / steps;
	g.cells = CELLS_MAX / (double)n;
	return fmax(one_direction(at, n, REMOVED, delta, g), one_direction(at, n, ADDED, delta, g));
}
