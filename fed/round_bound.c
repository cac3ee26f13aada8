/* fed/round_bound.c - what members can do to each other with rows that are none (methods 4.6).
 *
 * Of two to five holders of a row there are too few for Krum or a trimmed mean, so the evidence is
 * a member's rows in all.  In the order in which a round comes to it:
 *
 *   members  A home leaves out all rows of a member that are far from the others' or point
 *            elsewhere, over all items that have their home here (round_distance.c).
 *   rows     Of the rest no row is further from the home's own one than twice the median of these
 *            distances, over all items; what is beyond is cut off.  A row is left out that is
 *            beyond three times, and further from the home's row than that is long.  A home that
 *            sent none itself takes the middle of an item's rows, of three or more, and the median
 *            of their distances from that.
 *   homes    A holder takes no answers of a home that are far from its own rows, over all items,
 *            where those of other homes are not.
 *   answers  Of the rest no answer moves a holder's row by more than twice the median of what they
 *            all would, of entities and of relations; the same.  So a few rows do not follow
 *            attackers where these are most of an item's holders.
 *
 * A quarter of a row's length is never cut: else homes that answer with a holder's own rows could
 * make the median next to nothing, and the others' answers too far.  Nothing is left out within a
 * row's length: a holder whose row is away from the others' would else refuse each mean, and be
 * further away the next time (FB15k-237-R10).
 *
 * Masked rows are seen by nobody, so of these the last two alone are left.  fed/weight.h stands
 * behind: what gets through is taken in as far as valid says. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

/* the median distance: of rows, of answers */
static const double cut_times = 2;
static const double leave_times = 3;  /* cut to that, a row would still count, in each round */
static const double near_share = .25; /* of the length of what it is compared with: never cut */
static const double far_share = 1;    /* of the same: nor left out */

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

static double length_of_row(const float *x, size_t floats)
{
	double sum = 0;

	for (size_t k = 0; k < floats; k++)
		sum += (double)x[k] * x[k];
	return sqrt(sum);
}

/* x, if it is near enough to the center; else what is put into cut, nearer; or NULL: too far. */
static const float *bound_row(const float *x, const float *center, size_t floats, double apart,
			      double middle, float *cut)
{
	double length = length_of_row(center, floats);
	double at_most = fmax(cut_times * middle, near_share * length);

	if (apart <= at_most)
		return x;
	if (apart > fmax(leave_times * middle, far_share * length))
		return NULL;
	cut_row(x, center, floats, at_most / apart, cut);
	return cut;
}

/* Self-centred clipping (He, Karimireddy, Jaggi 2022; methods 4.6): whoever most of an item's
 * holders are, nobody but we says where the center is. */
static void bound_around_own(const struct fed_round *r, double middle, const float **row,
			     size_t floats, float *cut)
{
	const float *own = row[r->me];

	for (unsigned m = 0; m < r->members; m++, cut += floats)
		if (row[m] != NULL && m != r->me)
			row[m] = bound_row(row[m], own, floats, length_between(row[m], own, floats),
					   middle, cut);
}

static void bound_around_middle(const struct fed_round *r, const float **row, size_t floats,
				float *scratch)
{
	const struct fed_upload u = { .row = row, .members = r->members };
	float *center = scratch, *cut = scratch + floats;
	float sorted[FED_MEMBERS_MAX];
	double middle, apart[FED_MEMBERS_MAX];
	unsigned n = fed_distance_medians(&u, floats, center), at = 0;

	if (n < 3)
		return;
	for (unsigned m = 0; m < r->members; m++)
		if (row[m] != NULL) {
			apart[m] = length_between(row[m], center, floats);
			sorted[at++] = (float)apart[m];
		}
	middle = (double)fed_distance_median(sorted, n);
	for (unsigned m = 0; m < r->members; m++, cut += floats)
		if (row[m] != NULL)
			row[m] = bound_row(row[m], center, floats, apart[m], middle, cut);
}

void fed_bound_rows(const struct fed_round *r, const struct fed_steps *around, char tag,
		    const float **row, size_t floats, float *scratch)
{
	assert(fed_bound_has(r));
	if (row[r->me] != NULL)
		bound_around_own(r, around->of[tag == 'r'].middle, row, floats, scratch);
	else
		bound_around_middle(r, row, floats, scratch);
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

/* ---- answers one by one ---- */

void fed_steps_note(struct fed_steps *s, char tag, const float *row, const float *own,
		    size_t floats)
{
	struct fed_step_lengths *of = &s->of[tag == 'r'];

	if (of->n == of->cap) {
		of->cap = 2 * of->cap + 256;
		of->length = mem_resize(of->length, of->cap, sizeof(*of->length));
	}
	of->length[of->n++] = (float)length_between(row, own, floats);
}

static int by_step(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

void fed_steps_end(struct fed_steps *s)
{
	for (int k = 0; k < 2; k++) {
		struct fed_step_lengths *of = &s->of[k];

		if (of->n > 0)
			qsort(of->length, of->n, sizeof(*of->length), by_step);
		of->middle = of->n > 0 ? (double)of->length[of->n / 2] : 0;
	}
}

const float *fed_steps_bound(struct fed_steps *s, char tag, const float *row, const float *own,
			     size_t floats)
{
	const float *taken = bound_row(row, own, floats, length_between(row, own, floats),
				       s->of[tag == 'r'].middle, s->cut);

	s->refused += taken == NULL;
	return taken;
}

void fed_steps_release(struct fed_steps *s)
{
	free(s->of[0].length);
	free(s->of[1].length);
	free(s->cut);
	*s = (struct fed_steps){ .cut = NULL };
}
