/* dp/adaptive.c - noisy votes whose gaps an attacker chooses to tell two data sets apart. */
#include "dp/adaptive.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/rdp.h"

/* Pairs (g, g - 2) for g = T, T - 2, ... 2 - T. */
static void pair_at(const struct dp_mechanism *m, uint32_t k, struct dp_coins *out)
{
	int64_t g = (int64_t)m->teachers - 2 * (int64_t)k;

	dp_coins(m, g, g - 2, out);
}

double dp_votes_loss(const struct dp_mechanism *m)
{
	double worst = 0;

	for (uint32_t k = 0; k < m->teachers; k++) {
		struct dp_coins c;
		double apart;

		pair_at(m, k, &c);
		apart = c.loss[1] - c.loss[0];
		worst = fmax(worst, c.p[0] * c.p[1] * apart * apart);
	}
	return worst;
}

/* ---- the game ---- */

/* A move of the loss by a fixed part of the grid: the value comes from point i - back and
 * the one above it, by the weights of a chord in alpha. */
struct move {
	double p, low, high;
	ptrdiff_t back;
};

struct dp_game {
	size_t n, zero; /* points; the one at ln alpha = 0 */
	double step;
	uint32_t pairs;
	struct move (*moves)[2];
	double *value, *next;
	uint64_t labels;
};

#define NUDGE	   1e-6	     /* of a step, downwards: more than what doubles lose */
#define LOST_SUM   1e-12     /* relative, a label: of a few sums of doubles */
#define MOVES_MAX  (1 << 20) /* of the grid, in one move */
#define POINTS_MAX ((size_t)1 << 22)

static bool move_by(struct move *out, double p, double loss, double step)
{
	double by = loss / step + NUDGE, whole = floor(-by), part = -by - whole;

	assert(step > 0);
	if (!(fabs(by) < MOVES_MAX))
		return false;
	/* From ln alpha = i step to (i - by) step = (i + whole + part) step. */
	out->back = -(ptrdiff_t)whole;
	out->p = p;
	out->high = expm1(part * step) / expm1(step);
	out->low = 1 - out->high;
	return true;
}

static bool make_moves(struct dp_game *g, const struct dp_mechanism *m)
{
	g->moves = mem_array(m->teachers, sizeof(*g->moves));
	for (uint32_t k = 0; k < m->teachers; k++) {
		struct dp_coins c;

		pair_at(m, k, &c);
		for (int o = 0; o < 2; o++)
			if (!move_by(&g->moves[k][o], c.p[o], c.loss[o], g->step))
				return false;
	}
	return true;
}

static struct dp_game *game_of_size(size_t below, size_t above, double step)
{
	struct dp_game *g = mem_array(1, sizeof(*g));

	assert(step > 0 && below + above < SIZE_MAX / sizeof(double));
	g->n = below + above + 1;
	g->zero = below;
	g->step = step;
	g->value = mem_array(g->n, sizeof(double));
	g->next = mem_array(g->n, sizeof(double));
	for (size_t i = 0; i < g->zero; i++)
		g->value[i] = -expm1(((double)i - (double)g->zero) * step);
	return g;
}

/* With so many points of the grid to one vote's deviation, each of which a label costs up to a
 * step's chord.  NULL where that is too much work. */
static struct dp_game *game_with(const struct dp_mechanism *m, uint64_t labels, double reach,
				 double points)
{
	double one = sqrt(dp_votes_loss(m)), wide = one * sqrt((double)labels);
	double step = one / points, below = ceil((4 * wide + 0.5) / step);
	double above = ceil((4 * wide + reach + 0.5) / step);
	struct dp_game *g;

	if (!(one > 0) || !(below + above < (double)POINTS_MAX) ||
	    (below + above) * (double)labels * (double)m->teachers > DP_GAME_WORK)
		return NULL;
	g = game_of_size((size_t)below, (size_t)above, step);
	g->pairs = m->teachers;
	if (make_moves(g, m))
		return g;
	dp_game_free(g);
	return NULL;
}

/* Few labels of many teachers on the grid that more of them have: or else a few more would cost
 * less. */
struct dp_game *dp_game_new(const struct dp_mechanism *m, uint64_t labels, double reach)
{
	struct dp_game *g = NULL;

	if (dp_mechanism_check(m, NULL) != 0 || m->teachers > DP_ADAPTIVE_TEACHERS)
		return NULL;
	if (labels < 200)
		g = game_with(m, labels, reach, 48);
	return g != NULL ? g : game_with(m, labels, reach, 12);
}

void dp_game_free(struct dp_game *g)
{
	if (g == NULL)
		return;
	free(g->moves);
	free(g->value);
	free(g->next);
	free(g);
}

/* Below the grid delta is at most 1, above it at most what it is at the end. */
static double value_at(const struct dp_game *g, ptrdiff_t i)
{
	if (i < 0)
		return 1;
	return g->value[i < (ptrdiff_t)g->n ? i : (ptrdiff_t)g->n - 1];
}

static double after_move(const struct dp_game *g, const struct move *m, ptrdiff_t i)
{
	ptrdiff_t at = i - m->back;

	return m->p * (m->low * value_at(g, at) + m->high * value_at(g, at + 1));
}

/* The points that no move of this pair takes beyond the grid. */
static void inner_points(const struct dp_game *g, const struct move m[2], ptrdiff_t *from,
			 ptrdiff_t *to)
{
	ptrdiff_t high = m[0].back > m[1].back ? m[0].back : m[1].back;
	ptrdiff_t low = m[0].back < m[1].back ? m[0].back : m[1].back;
	ptrdiff_t n = (ptrdiff_t)g->n;

	*from = high > 0 ? high : 0;
	*to = low < 1 ? n - 1 + low : n;
	*from = *from < n ? *from : n;
	*to = *to > *from ? *to : *from;
}

static void best_of(double *best, double v)
{
	*best = v > *best ? v : *best;
}

static void play(struct dp_game *g, const struct move m[2])
{
	const double p0l = m[0].p * m[0].low, p0h = m[0].p * m[0].high;
	const double p1l = m[1].p * m[1].low, p1h = m[1].p * m[1].high;
	ptrdiff_t from, to;

	inner_points(g, m, &from, &to);
	for (ptrdiff_t i = 0; i < from; i++)
		best_of(&g->next[i], after_move(g, &m[0], i) + after_move(g, &m[1], i));
	for (ptrdiff_t i = from; i < to; i++) {
		const double *a = &g->value[i - m[0].back], *b = &g->value[i - m[1].back];

		best_of(&g->next[i], p0l * a[0] + p0h * a[1] + p1l * b[0] + p1h * b[1]);
	}
	for (ptrdiff_t i = to; i < (ptrdiff_t)g->n; i++)
		best_of(&g->next[i], after_move(g, &m[0], i) + after_move(g, &m[1], i));
}

size_t dp_game_points(const struct dp_game *g)
{
	return g->n;
}

void dp_game_label(struct dp_game *g)
{
	double *spare = g->value;

	assert(g->value != g->next);
	memset(g->next, 0, g->n * sizeof(double));
	for (uint32_t k = 0; k < g->pairs; k++)
		play(g, g->moves[k]);
	g->value = g->next;
	g->next = spare;
	g->labels++;
}

/* ---- what it says ---- */

static double lost(const struct dp_game *g)
{
	return 1 + LOST_SUM * (double)(g->labels + 1);
}

/* P(the Gaussian's loss is above x). */
static double loss_above(double variance, double x)
{
	return 0.5 * erfc((x - variance / 2) / sqrt(2 * variance));
}

/* The Gaussian first, then labels: no other order tells more, for its loss does not depend on
 * what was seen.  Each part of it that falls between two points counts at the upper end. */
static double beside_gaussian(const struct dp_game *g, double variance, ptrdiff_t i)
{
	double sum = 0, above = 1;

	for (ptrdiff_t at = (ptrdiff_t)g->n - 1; at >= 0 && above > 0; at--) {
		double next = loss_above(variance, (double)(i - at) * g->step);

		sum += (above - next) * g->value[at]; /* losses up to (i - at) steps */
		above = next;
	}
	return sum + above;
}

static double delta_at_point(const struct dp_game *g, double gaussian, ptrdiff_t i)
{
	double d = gaussian > 0 ? beside_gaussian(g, gaussian, i) : value_at(g, i);

	return fmin(1, d * lost(g));
}

double dp_game_delta(const struct dp_game *g, double gaussian, double epsilon)
{
	double point = floor(epsilon / g->step - NUDGE);

	assert(gaussian >= 0);
	if (!(point > -(double)g->zero))
		return 1;
	if (point > (double)(g->n - 1 - g->zero))
		point = (double)(g->n - 1 - g->zero);
	return delta_at_point(g, gaussian, (ptrdiff_t)point + (ptrdiff_t)g->zero);
}

/* Between two points of the grid delta is below their chord in alpha. */
static double between(const struct dp_game *g, ptrdiff_t i, double before, double at, double delta)
{
	double share = (before - delta) / (before - at);

	return (double)(i - 1 - (ptrdiff_t)g->zero) * g->step +
	       log1p(fmin(1, share) * expm1(g->step));
}

double dp_game_epsilon(const struct dp_game *g, double gaussian, double delta)
{
	ptrdiff_t low = (ptrdiff_t)g->zero, high = (ptrdiff_t)g->n - 1;

	assert(gaussian >= 0);
	if (delta_at_point(g, gaussian, low) <= delta)
		return 0;
	if (!(delta_at_point(g, gaussian, high) <= delta))
		return (double)INFINITY;
	while (high - low > 1) {
		ptrdiff_t mid = low + (high - low) / 2;

		if (delta_at_point(g, gaussian, mid) <= delta)
			high = mid;
		else
			low = mid;
	}
	return between(g, high, delta_at_point(g, gaussian, low), delta_at_point(g, gaussian, high),
		       delta);
}

/* ---- as a Gaussian ---- */

static double phi(double x)
{
	return 0.5 * erfc(-x * M_SQRT1_2);
}

double dp_gaussian_pair(double variance, double epsilon)
{
	double mu = sqrt(variance), tail;

	assert(variance >= 0);
	if (!(variance > 0))
		return fmax(0, -expm1(epsilon));
	tail = phi(-mu / 2 - epsilon / mu);
	return fmax(0, phi(mu / 2 - epsilon / mu) - (tail > 0 ? exp(epsilon + log(tail)) : 0));
}

/* Minus the slope in alpha at ln alpha = y. */
static double slope(double variance, double y)
{
	return phi(-sqrt(variance) / 2 - y / sqrt(variance));
}

struct check {
	const struct dp_coins *pairs;
	uint32_t n;
	double c, v;
	double worst; /* left side of (*) less the right one */
};

/* The left side of (*), largest over gaps: as a largest of convex functions it is convex. */
static double left_side(const struct check *k, double y)
{
	double most = 0;

	for (uint32_t i = 0; i < k->n; i++) {
		const struct dp_coins *p = &k->pairs[i];

		most = fmax(most, p->p[0] * dp_gaussian_pair(k->c, y - p->loss[0]) +
					  p->p[1] * dp_gaussian_pair(k->c, y - p->loss[1]));
	}
	return most;
}

struct point {
	double y, left, right, slope; /* slope of the right side, sign turned */
};

static struct point point_of(const struct check *k, double y)
{
	return (struct point){ y, left_side(k, y), dp_gaussian_pair(k->c + k->v, y),
			       slope(k->c + k->v, y) };
}

/* Largest at one of the ends, or where the two tangents of the right side meet. */
static void check_between(struct check *k, const struct point *a, const struct point *b)
{
	double wide = exp(a->y) * expm1(b->y - a->y); /* in alpha */
	double meet = (a->right - b->right - b->slope * wide) / (a->slope - b->slope);
	double at = a->slope > b->slope ? fmin(fmax(meet, 0), wide) : 0;
	double chord = a->left + (b->left - a->left) * at / wide;

	k->worst = fmax(k->worst, fmax(a->left - a->right, b->left - b->right));
	k->worst = fmax(k->worst, chord - (a->right - a->slope * at));
}

enum { FEW = 12 };
/* The amount by which (*) may fail, with the part beyond the end of the grid; differences of
 * numbers up to 1 are wrong by less than what is left of DP_VOTES_SLACK. */
#define SLACK_MOST 2e-14

/* From alpha = 1 on: below it (*) is that of the mirrored pair. */
static bool holds(struct check *k)
{
	double step = 0.1 * sqrt(k->v);
	struct point a = point_of(k, 0), b;

	assert(k->n > 0 && k->v > 0);
	k->worst = 0;
	for (double y = step; k->worst <= SLACK_MOST; y += step) {
		b = point_of(k, y);
		check_between(k, &a, &b);
		if (b.left < SLACK_MOST)
			break;
		a = b;
	}
	return k->worst <= SLACK_MOST;
}

/* Of a few of the gaps first, which tell nearly always what all of them do. */
static bool holds_for_all(const struct dp_coins *pairs, uint32_t n, double c, double v)
{
	struct dp_coins few[FEW];
	struct check some = { .pairs = few, .n = FEW, .c = c, .v = v };
	struct check all = { .pairs = pairs, .n = n, .c = c, .v = v };

	assert(n > 0);
	for (uint32_t i = 0; i < FEW; i++)
		few[i] = pairs[(uint64_t)i * n / FEW];
	return holds(&some) && holds(&all);
}

struct dp_votes_bound dp_votes_variance(const struct dp_mechanism *m, double c)
{
	struct dp_votes_bound out = { (double)INFINITY, DP_VOTES_SLACK };
	struct dp_coins *pairs;
	double loss;

	if (dp_mechanism_check(m, NULL) != 0 || m->teachers > DP_ADAPTIVE_TEACHERS)
		return out;
	loss = dp_votes_loss(m);
	pairs = mem_array(m->teachers, sizeof(*pairs));
	for (uint32_t i = 0; i < m->teachers; i++)
		pair_at(m, i, &pairs[i]);
	for (double more = 0.003 + 0.15 / (1 + c / loss); more < 2 && !isfinite(out.variance);
	     more *= 1.15)
		if (holds_for_all(pairs, m->teachers, c, loss * (1 + more)))
			out.variance = loss * (1 + more);
	free(pairs);
	return out;
}
