/* PFedEG +: members weigh by how much alike their rows are (fed/methods/pfedeg.h). */
#include <math.h>

#include "fed/methods/pfedeg.h"

static double cosine(const float *a, const float *b, size_t n)
{
	double ab = 0, aa = 0, bb = 0;

	for (size_t i = 0; i < n; i++) {
		ab += (double)a[i] * (double)b[i];
		aa += (double)a[i] * (double)a[i];
		bb += (double)b[i] * (double)b[i];
	}
	return aa > 0 && bb > 0 ? ab / sqrt(aa * bb) : 0;
}

static bool home(struct fed_part *base, const struct fed_upload *u, unsigned to, float *answer)
{
	struct pfedeg *p = (struct pfedeg *)base;

	for (unsigned m = 0; u->stage == 0 && u->row[to] != NULL && m < u->members; m++)
		if (m != to && u->row[m] != NULL)
			p->pairs[to * u->members + m] +=
				exp(cosine(u->row[to], u->row[m], base->settings.ent_floats));
	return pfedeg_answer(base, u, to, answer);
}

static void note_home(struct fed_part *base, unsigned stage, unsigned to, float *note)
{
	const struct pfedeg *p = (const struct pfedeg *)base;

	(void)stage;
	for (unsigned m = 0; m < base->members; m++)
		note[m] = pfedeg_to_note(p->pairs[to * base->members + m]);
}

static void note_down(struct fed_part *base, unsigned stage, unsigned from, const float *note)
{
	struct pfedeg *p = (struct pfedeg *)base;

	(void)stage;
	(void)from;
	for (unsigned m = 0; m < base->members; m++)
		if (note[m] > 0)
			p->affinity[m] += pfedeg_of_note(note[m]);
}

static void end(struct fed_part *base, unsigned stage)
{
	struct pfedeg *p = (struct pfedeg *)base;

	if (stage == 0)
		pfedeg_weigh(p, p->affinity, exp(-1.0));
}

const struct fed_method fed_pfedeg_plus = {
	.name = "pfedeg_plus",
	.title = "PFedEG +: a mean of each agent's own, by how much alike rows are",
	PFEDEG_COMMON,
	.home = home,
	.note_home = note_home,
	.note_down = note_down,
	.end = end,
};
