/* fed/round_distance.c - how far each member's rows are from those of the others, at a home.
 *
 * A home sees plain rows anyway; this file makes a number of them for its owner: of each item with
 * three rows or more, every row against the median of all, number by number; of one with two, the
 * other holder's against our own.  Rows of one member that are unlike all others' stand out so,
 * until half of the holders are unlike the rest.  Nobody can look at masked rows; and where changes
 * travel (fed/method.h) it is as factors, whose signs and bases are anyone's: no number is made. */
#include <assert.h>
#include <math.h>

#include "fed/round_internal.h"

static const double most_apart = 4; /* that one row can say, in lengths of the others' */

double fed_distance_typical(const struct fed_round *r, char tag, uint32_t first, uint32_t end)
{
	const struct kge_emb *own = fed_shared_table(r->setup->part);
	double sum = 0;

	for (uint32_t id = first; id < end; id++) {
		const struct fed_item it = { .tag = tag, .id = id };
		size_t floats;
		const float *row = fed_row(own, &it, &floats);
		double row2 = 0;

		for (size_t k = 0; k < floats; k++)
			row2 += (double)row[k] * row[k];
		sum += isfinite(row2) ? sqrt(row2) : 0;
	}
	return end > first ? sum / (end - first) : 0;
}

/* A row counts by its own length and the others', not by numbers: else one member's rows of ten
 * times the length would be all that is seen where it has made the median.  Nor does it count for
 * more where somebody has made the median next to nothing: `least`. */
void fed_distance_row(struct fed_distance *d, const float *row, const float *from, size_t floats,
		      double least)
{
	double apart2 = 0, from2 = 0, row2 = 0, dot = 0;

	for (size_t k = 0; k < floats; k++) {
		double x = row[k], y = from[k];

		apart2 += (x - y) * (x - y);
		from2 += y * y;
		row2 += x * x;
		dot += x * y;
	}
	d->rows++;
	if (from2 > 0) {
		double apart = sqrt(apart2) / fmax(sqrt(from2), least);

		d->compared++;
		d->apart += apart < most_apart ? apart : most_apart;
	}
	if (from2 > 0 && row2 > 0)
		d->cosine += dot / sqrt(from2 * row2);
}

/* Of few numbers: the middle one, or the mean of the middle two.  Sorts them. */
static float median_of(float *at, unsigned n)
{
	for (unsigned i = 1; i < n; i++)
		for (unsigned k = i; k > 0 && at[k] < at[k - 1]; k--) {
			float swap = at[k];

			at[k] = at[k - 1];
			at[k - 1] = swap;
		}
	return n % 2 == 1 ? at[n / 2] : at[n / 2 - 1] / 2 + at[n / 2] / 2;
}

unsigned fed_distance_medians(const struct fed_upload *u, size_t floats, float *out)
{
	const float *row[FED_MEMBERS_MAX];
	float column[FED_MEMBERS_MAX];
	unsigned n = 0;

	for (unsigned m = 0; m < u->members; m++)
		if (u->row[m] != NULL)
			row[n++] = u->row[m];
	for (size_t k = 0; n > 2 && k < floats; k++) {
		for (unsigned i = 0; i < n; i++)
			column[i] = row[i][k];
		out[k] = median_of(column, n);
	}
	return n;
}

void fed_distance_add(struct fed_round *r, const struct fed_upload *u, size_t floats, double least,
		      float *scratch)
{
	unsigned n;

	assert(r->secret == NULL);
	if (u->stage != 0 || r->setup->part->method->changes)
		return;
	n = fed_distance_medians(u, floats, scratch);
	for (unsigned m = 0; m < u->members; m++) {
		if (u->row[m] == NULL)
			continue;
		if (n > 2)
			fed_distance_row(&r->participants[m].account.distance, u->row[m], scratch,
					 floats, least);
		else if (n == 2 && m != r->me && u->row[r->me] != NULL)
			fed_distance_row(&r->participants[m].account.distance, u->row[m],
					 u->row[r->me], floats, least);
	}
}

double fed_distance_apart(const struct fed_distance *d)
{
	return d->compared > 0 ? d->apart / (double)d->compared : -1.0;
}

double fed_distance_cosine(const struct fed_distance *d)
{
	return d->compared > 0 ? d->cosine / (double)d->compared : 0.0;
}

static const double outlier_times = 3;	/* the median distance of the others */
static const double outlier_least = .5; /* of the length of the others' rows */
static const double outlier_of_two = 3; /* ... where there are none to compare it with */
static const double alike_least = .5;	/* the median cosine of others that are alike */
static const double unlike_share = .5;	/* of that */

static bool is_distant(double distance, float *others, unsigned n)
{
	if (distance < outlier_least)
		return false;
	if (n < 2)
		return distance > outlier_of_two;
	return distance > outlier_times * (double)median_of(others, n);
}

static bool points_elsewhere(double cosine, float *others, unsigned n)
{
	double alike = n >= 2 ? (double)median_of(others, n) : 0;

	return alike >= alike_least && cosine < unlike_share * alike;
}

bool fed_distance_is_far(const struct fed_distance *of, size_t n, size_t which)
{
	float distance[FED_MEMBERS_MAX], cosine[FED_MEMBERS_MAX];
	unsigned others = 0;

	assert(n <= FED_MEMBERS_MAX && which < n);
	for (size_t i = 0; i < n; i++) {
		if (i == which || fed_distance_apart(&of[i]) < 0)
			continue;
		distance[others] = (float)fed_distance_apart(&of[i]);
		cosine[others++] = (float)fed_distance_cosine(&of[i]);
	}
	return fed_distance_apart(&of[which]) >= 0 &&
	       (is_distant(fed_distance_apart(&of[which]), distance, others) ||
		points_elsewhere(fed_distance_cosine(&of[which]), cosine, others));
}
