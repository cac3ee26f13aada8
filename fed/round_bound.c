/* fed/round_bound.c - what members can do to each other with rows that are none (methods 4.6).
 *
 * Of two to five holders of a row there are too few for Krum or a trimmed mean, so the evidence is
 * a member's rows in all.  In the order in which a round comes to it:
 *
 *   members  A home leaves out all rows of a member that are far from the others' or point
 *            elsewhere, over all items that have their home here (round_distance.c).
 *   rows     Of the rest no row is further from the home's own one than twice the median of these
 *            distances over all items, or over this one if that is less; what is beyond is cut
 *            off, the further it was the more, evenly down to nothing at three times, and at
 *            least a row's length.  A home that sent none itself, or whose rows are those that
 *            are far, takes the middle of an item's rows, of three or more, and the median of
 *            their distances from that.
 *   homes    A holder takes no answers of a home that are far from its own rows, over all items,
 *            where those of other homes are not.
 *   answers  Of the rest no answer moves a holder's row by more than twice the median of what they
 *            all would; what is beyond three times, and a row's length, is left out.
 *
 * Distances are in lengths of a row (round_steps.c).  A quarter of one is never cut: else homes
 * that answer with a holder's own rows could make the median next to nothing, and the others'
 * answers too far.  Nothing is left out within one: a holder whose row is away from the others'
 * would else refuse each mean, and be further away the next time (FB15k-237-R10).
 *
 * Where honest rows are far apart the bounds are wide, and attackers who are most of an item's
 * holders move its mean by so much in each round.  Masked rows are seen by nobody, so of these the
 * last two alone are left.  fed/weight.h stands behind: what gets through is taken in as far as
 * valid says. */
#include <assert.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

/* the median distance: of rows, of answers */
static const double cut_times = 2;
static const double leave_times = 3;
static const double near_length = .25; /* never cut */
static const double far_length = 1;    /* nor left out below it */

/* A method whose rows are rows of a table, so that they may be held against each other. */
static bool sends_rows(const struct fed_round *r)
{
	return !r->setup->part->method->changes;
}

void fed_bound_members(struct fed_round *r)
{
	struct fed_distance of[FED_MEMBERS_MAX];

	r->left_out = 0;
	if (!r->setup->bound || r->secret != NULL || !sends_rows(r))
		return;
	for (unsigned m = 0; m < r->members; m++)
		of[m] = r->participants[m].account.distance;
	for (unsigned m = 0; m < r->members; m++)
		if (m != r->me && fed_distance_is_far(of, r->members, m)) {
			r->left_out |= bit(m);
			r->participants[m].account.left_out = true;
		}
}

bool fed_bound_own_is_far(const struct fed_round *r)
{
	struct fed_distance of[FED_MEMBERS_MAX];

	for (unsigned m = 0; m < r->members; m++)
		of[m] = r->participants[m].account.distance;
	return fed_distance_is_far(of, r->members, r->me);
}

enum { KEPT_OUT_ROUNDS = 8 };

uint32_t fed_kept_out_after(uint32_t was, const struct fed_account *a)
{
	if (a->left_out || a->not_taken)
		return KEPT_OUT_ROUNDS;
	return was > 0 ? was - 1 : 0;
}

bool fed_bound_has(const struct fed_round *r)
{
	return r->setup->bound && r->secret == NULL && r->home_stage == 0 && sends_rows(r) &&
	       r->setup->part->method->home == NULL;
}

/* Is a cut row, but for rounding, no further from the center than its share of x's way? */
static bool is_within(const float *cut, const float *x, const float *center, size_t floats,
		      double share)
{
	double cut2 = 0, x2 = 0, length2 = 0;

	for (size_t k = 0; k < floats; k++) {
		double to_cut = (double)cut[k] - center[k], to_x = (double)x[k] - center[k];

		cut2 += to_cut * to_cut;
		x2 += to_x * to_x;
		length2 += (double)cut[k] * cut[k];
	}
	return sqrt(cut2) <= share * sqrt(x2) + 1e-6 * sqrt(length2) + (double)FLT_MIN;
}

static void cut_row(const float *x, const float *center, size_t floats, double share, float *out)
{
	assert(share >= 0 && share < 1);
	for (size_t k = 0; k < floats; k++)
		out[k] = (float)(center[k] + share * ((double)x[k] - center[k]));
	assert(is_within(out, x, center, floats, share));
}

enum { TOO_FAR = -1 };

/* How much of an answer's distance counts, or TOO_FAR: it is left out. */
static double answer_counts(double apart, double middle)
{
	if (apart >= fmax(leave_times * middle, far_length))
		return TOO_FAR;
	return fmin(apart, fmax(cut_times * middle, near_length));
}

/* A row that is cut still pulls, in each round the same way: so the less of it counts, the further
 * away it is (Hampel 1974). */
static double row_counts(double apart, double middle)
{
	double at_most = fmax(cut_times * middle, near_length);
	double too_far = fmax(leave_times * middle, far_length);

	if (apart <= at_most)
		return apart;
	if (apart >= too_far)
		return TOO_FAR;
	return at_most * (too_far - apart) / (too_far - at_most);
}

/* x, if all of its distance counts; else what is put into cut, nearer; or NULL: too far. */
static const float *bound_row(const float *x, const float *center, size_t floats, double apart,
			      double counts, float *cut)
{
	if (counts < 0)
		return NULL;
	if (counts >= apart)
		return x;
	cut_row(x, center, floats, counts / apart, cut);
	return cut;
}

static void bound_around(const struct fed_round *r, const float **row, const float *center,
			 size_t floats, const double *apart, double middle, float *cut)
{
	for (unsigned m = 0; m < r->members; m++, cut += floats)
		if (row[m] != NULL && row[m] != center)
			row[m] = bound_row(row[m], center, floats, apart[m],
					   row_counts(apart[m], middle), cut);
}

/* How far each of an item's rows is from the center, which does not count; their median, of two
 * the lower.  Of a single one there is none. */
static double item_distances(const struct fed_round *r, const struct fed_steps *steps,
			     const struct fed_item *it, const float **row, const float *center,
			     size_t floats, double apart[FED_MEMBERS_MAX])
{
	float sorted[FED_MEMBERS_MAX];
	size_t n = 0;

	for (unsigned m = 0; m < r->members; m++) {
		if (row[m] == NULL || row[m] == center)
			continue;
		apart[m] = fed_steps_apart(steps, it, row[m], center, floats);
		sorted[n++] = (float)apart[m];
	}
	return n > 1 ? (double)fed_steps_median(sorted, n) : INFINITY;
}

void fed_bound_rows(const struct fed_round *r, const struct fed_steps *steps,
		    const struct fed_item *it, const float **row, size_t floats, float *scratch)
{
	const struct fed_upload u = { .row = row, .members = r->members };
	const float *center = row[r->me];
	double apart[FED_MEMBERS_MAX], middle;

	assert(fed_bound_has(r));
	if (center != NULL && !steps->own_is_far) {
		/* Self-centred clipping (He, Karimireddy, Jaggi 2022; methods 4.6). */
		middle = item_distances(r, steps, it, row, center, floats, apart);
		middle = fmin(middle, fed_steps_middle(steps, it));
	} else {
		if (fed_distance_medians(&u, floats, scratch) < 3)
			return;
		center = scratch;
		middle = item_distances(r, steps, it, row, center, floats, apart);
	}
	bound_around(r, row, center, floats, apart, middle, scratch + floats);
}

void fed_bound_homes(struct fed_round *r, const struct fed_distance *answers)
{
	r->not_taken = 0;
	for (unsigned m = 0; m < r->members; m++)
		if (m != r->me && fed_distance_is_far(answers, r->members, m)) {
			r->not_taken |= bit(m);
			r->participants[m].account.not_taken = true;
		}
}

bool fed_bound_looks_at_answers(const struct fed_round *r)
{
	return r->setup->bound && r->stage == 0 && sends_rows(r) &&
	       r->setup->part->method->down == NULL;
}

const float *fed_bound_answer(const struct fed_steps *s, const struct fed_item *it,
			      const float *row, const float *own, size_t floats, float *cut)
{
	double apart = fed_steps_apart(s, it, row, own, floats);

	return bound_row(row, own, floats, apart, answer_counts(apart, fed_steps_middle(s, it)),
			 cut);
}
