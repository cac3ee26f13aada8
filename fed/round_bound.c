/* fed/round_bound.c - what members can do to each other with rows that are none (methods 4.6).
 *
 * Of two to five holders of a row there are too few for Krum or a trimmed mean, so the evidence is
 * a member's rows in all.  In the order in which a round comes to it:
 *
 *   members  A home leaves out all rows of a member that are far from the others' or point
 *            elsewhere, over all items that have their home here (round_distance.c).
 *   rows     Of the rest, of each item with three rows or more, no row is further from the median
 *            of all than twice the median of these distances; what is beyond is cut off.
 *   homes    A holder takes no answers of a home that are far from its own rows, over all items,
 *            where those of other homes are not.
 *
 * Masked rows are seen by nobody, so of these the last alone is left.  fed/weight.h stands behind:
 * what gets through is taken in as far as valid says. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "fed/round_internal.h"

static const double bound_times = 2; /* the median distance of an item's rows */

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

enum { KEPT_OUT_ROUNDS = 8 };

uint32_t fed_kept_out_after(uint32_t was, const struct fed_account *a)
{
	if (a->left_out || a->not_taken)
		return KEPT_OUT_ROUNDS;
	return was > 0 ? was - 1 : 0;
}

bool fed_bound_has(const struct fed_round *r)
{
	return r->setup->bound && r->secret == NULL && sends_rows(r) &&
	       r->setup->part->method->home == NULL;
}

static double length_between(const float *x, const float *y, size_t floats)
{
	double sum = 0;

	for (size_t k = 0; k < floats; k++)
		sum += ((double)x[k] - y[k]) * ((double)x[k] - y[k]);
	return sqrt(sum);
}

static void cut_row(const float *x, const float *center, size_t floats, double share, float *out)
{
	for (size_t k = 0; k < floats; k++)
		out[k] = (float)(center[k] + share * ((double)x[k] - center[k]));
}

void fed_bound_rows(const struct fed_round *r, const float **row, size_t floats, float *scratch)
{
	const struct fed_upload u = { .row = row, .members = r->members };
	float *center = scratch, *cut = scratch + floats;
	float sorted[FED_MEMBERS_MAX], bound;
	double apart[FED_MEMBERS_MAX];
	unsigned n = fed_distance_medians(&u, floats, center), at = 0;

	assert(fed_bound_has(r));
	if (n < 3)
		return;
	for (unsigned m = 0; m < r->members; m++)
		if (row[m] != NULL) {
			apart[m] = length_between(row[m], center, floats);
			sorted[at++] = (float)apart[m];
		}
	bound = (float)bound_times * fed_distance_median(sorted, n);
	for (unsigned m = 0; m < r->members; m++) {
		if (row[m] == NULL || apart[m] <= (double)bound)
			continue;
		cut_row(row[m], center, floats, (double)bound / apart[m], cut);
		row[m] = cut;
		cut += floats;
	}
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
