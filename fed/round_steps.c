/* fed/round_steps.c - how far others' rows are from our own: of items that we are home to, or
 * answers, which would move ours so far.
 *
 * In lengths of our row, or of whatever is the center, since the rows of frequent entities are
 * longer and move further; or in our rows' mean length where that is more: else rows that were made
 * short would be far from all. The middle is the median of the members' medians, the lower of two:
 * nobody has more to say who holds more. */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "fed/round_internal.h"

enum { ENTITY, RELATION, DENSE };

static unsigned step_kind(const struct fed_steps *s, const struct fed_item *it)
{
	bool is_dense =
		it->id >= s->entities && it->id != GRAPH_NONE; /* a host's: none of its own */

	return it->tag == 'r' ? RELATION : is_dense ? DENSE : ENTITY;
}

void fed_steps_begin(struct fed_steps *s, const struct fed_round *r)
{
	const struct kge_emb *own = fed_shared_table(r->setup->part);

	*s = (struct fed_steps){ .entities = r->setup->part->emb->n_ent };
	s->least[ENTITY] = fed_distance_typical(r, 'e', 0, s->entities);
	s->least[RELATION] = fed_distance_typical(r, 'r', 0, own->n_rel);
	s->least[DENSE] = fed_distance_typical(r, 'e', s->entities, own->n_ent);
}

double fed_steps_apart(const struct fed_steps *s, const struct fed_item *it, const float *row,
		       const float *own, size_t floats)
{
	double apart2 = 0, own2 = 0, length;

	for (size_t k = 0; k < floats; k++) {
		double x = row[k], y = own[k];

		apart2 += (x - y) * (x - y);
		own2 += y * y;
	}
	if (!isfinite(own2)) /* anything is better */
		return 0;
	length = fmax(sqrt(own2), s->least[step_kind(s, it)]);
	return apart2 > 0 ? sqrt(apart2) / length : 0;
}

void fed_steps_note(struct fed_steps *s, unsigned member, const struct fed_item *it,
		    const float *row, const float *own, size_t floats)
{
	struct fed_step_lengths *of = &s->of[member][step_kind(s, it)];

	if (of->n == of->cap) {
		of->cap = 2 * of->cap + 256;
		of->length = mem_resize(of->length, of->cap, sizeof(*of->length));
	}
	of->length[of->n++] = (float)fed_steps_apart(s, it, row, own, floats);
}

static int by_length(const void *a, const void *b)
{
	float x = *(const float *)a, y = *(const float *)b;

	return (x > y) - (x < y);
}

float fed_steps_median(float *at, size_t n)
{
	assert(n > 0);
	qsort(at, n, sizeof(*at), by_length);
	return at[(n - 1) / 2];
}

void fed_steps_end(struct fed_steps *s)
{
	for (unsigned k = 0; k < FED_STEP_KINDS; k++) {
		float middle[FED_MEMBERS_MAX];
		size_t n = 0;

		for (unsigned m = 0; m < FED_MEMBERS_MAX; m++)
			if (s->of[m][k].n > 0)
				middle[n++] = fed_steps_median(s->of[m][k].length, s->of[m][k].n);
		s->middle[k] = n > 0 ? (double)fed_steps_median(middle, n) : 0;
	}
}

double fed_steps_middle(const struct fed_steps *s, const struct fed_item *it)
{
	return s->middle[step_kind(s, it)];
}

void fed_steps_release(struct fed_steps *s)
{
	for (unsigned m = 0; m < FED_MEMBERS_MAX; m++)
		for (unsigned k = 0; k < FED_STEP_KINDS; k++)
			free(s->of[m][k].length);
	*s = (struct fed_steps){ .entities = 0 };
}
