/* PFedEG *: members weigh by the overlap of their entities (fed/methods/pfedeg.h). */
#include "fed/methods/pfedeg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/terms.h"

/* ---- common to both ---- */

static bool has_reg_only(const struct fed_part *base)
{
	return base->settings.value[PFEDEG_REG_ONLY] > 0;
}

static size_t anchor_bytes(const struct fed_part *base)
{
	return (size_t)base->emb->n_ent * base->emb->ent_floats * sizeof(float);
}

static const double note_unit = 4096;

float pfedeg_to_note(double x)
{
	return fminf((float)(x / note_unit), (float)FED_VALUE_MAX);
}

double pfedeg_of_note(float note)
{
	return note_unit * (double)note;
}

int pfedeg_init(struct fed_part *base, struct err *e)
{
	struct pfedeg *p = (struct pfedeg *)base;

	(void)e;
	p->affinity = mem_array(FED_MEMBERS_MAX, sizeof(*p->affinity));
	p->shared = mem_array(FED_MEMBERS_MAX, sizeof(*p->shared));
	p->pairs = mem_array((size_t)FED_MEMBERS_MAX * FED_MEMBERS_MAX, sizeof(*p->pairs));
	p->weight = mem_array(FED_MEMBERS_MAX, sizeof(*p->weight));
	p->begin = mem_array((size_t)base->emb->n_ent * base->emb->ent_floats, sizeof(*p->begin));
	if (has_reg_only(base)) {
		p->k = mem_array((size_t)base->emb->n_ent * base->emb->ent_floats, sizeof(*p->k));
		p->has_k = mem_array(base->emb->n_ent, sizeof(*p->has_k));
	}
	return 0;
}

void pfedeg_release(struct fed_part *base)
{
	struct pfedeg *p = (struct pfedeg *)base;

	free(p->affinity);
	free(p->shared);
	free(p->pairs);
	free(p->weight);
	free(p->begin);
	free(p->k);
	free(p->has_k);
}

void pfedeg_save(const struct fed_part *base, struct buf *out)
{
	const struct pfedeg *p = (const struct pfedeg *)base;

	if (!has_reg_only(base))
		return;
	buf_add(out, p->k, anchor_bytes(base));
	for (uint32_t id = 0; id < base->emb->n_ent; id++)
		buf_add(out, p->has_k[id] ? "\1" : "\0", 1);
}

int pfedeg_load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e)
{
	struct pfedeg *p = (struct pfedeg *)base;
	size_t table = anchor_bytes(base), want = has_reg_only(base) ? table + base->emb->n_ent : 0;

	if (n != want)
		return err_set(e, ERR_INPUT, "saved part of pfedeg: %zu bytes, where %zu belong", n,
			       want);
	if (n == 0)
		return 0;
	memcpy(p->k, bytes, table);
	for (uint32_t id = 0; id < base->emb->n_ent; id++)
		p->has_k[id] = bytes[table + id] != 0;
	return 0;
}

/* |E - K| of a row without K is drawn to what it was, so the row is as free as with K = E. */
static void place_anchors(struct pfedeg *p)
{
	const struct kge_emb *emb = p->base.emb;
	size_t floats = emb->ent_floats;

	memcpy(p->begin, emb->ent, anchor_bytes(&p->base));
	for (uint32_t id = 0; p->has_k != NULL && id < emb->n_ent; id++)
		if (p->has_k[id])
			memcpy(p->begin + id * floats, p->k + id * floats, floats * sizeof(float));
}

int pfedeg_train(struct fed_part *base, struct fed_training *t)
{
	struct pfedeg *p = (struct pfedeg *)base;
	struct kge_terms terms = { .norm = (float)base->settings.value[PFEDEG_BETA],
				   .anchor = p->begin }; /* beta |E - K|, methods 4.3 */

	place_anchors(p);
	return fed_train_with(base, t, &terms);
}

unsigned pfedeg_stages(const struct fed_settings *s)
{
	(void)s;
	return 2;
}

void pfedeg_shape(const struct fed_settings *s, unsigned members, unsigned stage,
		  struct fed_shape *out)
{
	(void)s;
	if (stage == 0) {
		out->down_ent = 0;
		out->note_up = 1;
		out->note_down = members;
	} else {
		out->up_ent = 0;
		out->note_up = members;
	}
}

void pfedeg_choose(struct fed_part *base, unsigned stage, struct fed_items items)
{
	struct pfedeg *p = (struct pfedeg *)base;

	if (stage > 0)
		return;
	if (p->has_k != NULL)
		memset(p->has_k, 0, base->emb->n_ent * sizeof(*p->has_k));
	memset(p->affinity, 0, FED_MEMBERS_MAX * sizeof(*p->affinity));
	memset(p->weight, 0, FED_MEMBERS_MAX * sizeof(*p->weight));
	memset(p->pairs, 0, (size_t)FED_MEMBERS_MAX * FED_MEMBERS_MAX * sizeof(*p->pairs));
	/* |E_i and E_j| of the whole alignment: names of too few holders do not travel, and count
	 */
	for (unsigned m = 0; m < base->members; m++)
		p->shared[m] = items.shared[m];
}

bool pfedeg_up(struct fed_part *base, unsigned stage, const struct fed_item *it, float *row)
{
	if (stage == 0)
		memcpy(row, kge_ent(base->emb, it->id), base->emb->ent_floats * sizeof(*row));
	return stage == 0;
}

void pfedeg_note_up(struct fed_part *base, unsigned stage, unsigned home, float *note)
{
	const struct pfedeg *p = (const struct pfedeg *)base;

	(void)home;
	if (stage == 0)
		*note = pfedeg_to_note(base->emb->n_ent);
	for (unsigned m = 0; stage == 1 && m < base->members; m++)
		note[m] = (float)p->weight[m];
}

bool pfedeg_answer(const struct fed_part *base, const struct fed_upload *u, unsigned to,
		   float *answer)
{
	const float *w = u->note[to];
	size_t floats = base->settings.ent_floats;
	double sum = 0;

	if (u->stage == 0 || w == NULL)
		return false;
	for (unsigned m = 0; m < u->members; m++)
		sum += u->first[m] != NULL ? (double)w[m] : 0.0;
	if (!(sum > 0))
		return false;
	for (size_t i = 0; i < floats; i++) {
		double x = 0;

		for (unsigned m = 0; m < u->members; m++)
			x += u->first[m] != NULL ? (double)w[m] * (double)u->first[m][i] : 0.0;
		answer[i] = (float)(x / sum);
	}
	return true;
}

void pfedeg_down(struct fed_part *base, unsigned stage, const struct fed_item *it, const float *row)
{
	struct pfedeg *p = (struct pfedeg *)base;
	double keep = base->settings.value[PFEDEG_P];
	const float *own = kge_ent(base->emb, it->id);
	float *k = p->k != NULL ? p->k + (size_t)it->id * base->emb->ent_floats
				: kge_ent(base->emb, it->id);

	if (stage != 1)
		return;
	for (size_t i = 0; i < base->emb->ent_floats; i++) /* K <- p K + (1 - p) E, methods 4.3 */
		k[i] = (float)(keep * (double)row[i] + (1 - keep) * (double)own[i]);
	if (p->has_k != NULL)
		p->has_k[it->id] = true;
}

void pfedeg_weigh(struct pfedeg *p, const double *w, double own)
{
	double sum = own;

	for (unsigned m = 0; m < p->base.members; m++)
		sum += m != p->base.me ? w[m] : 0.0;
	for (unsigned m = 0; m < p->base.members; m++)
		p->weight[m] = sum > 0 ? (m == p->base.me ? own : w[m]) / sum : 0.0;
}

/* ---- by the overlap ---- */

static bool home(struct fed_part *base, const struct fed_upload *u, unsigned to, float *answer)
{
	struct pfedeg *p = (struct pfedeg *)base;

	for (unsigned m = 0; u->stage == 0 && m < u->members; m++)
		if (u->note[m] != NULL)
			p->pairs[m] = pfedeg_of_note(u->note[m][0]);
	return pfedeg_answer(base, u, to, answer);
}

static void note_home(struct fed_part *base, unsigned stage, unsigned to, float *note)
{
	const struct pfedeg *p = (const struct pfedeg *)base;

	(void)stage;
	(void)to;
	for (unsigned m = 0; m < base->members; m++)
		note[m] = pfedeg_to_note(p->pairs[m]);
}

/* A member says itself how many entities it has where it is home to an item of ours; the number
 * that other homes have heard from it counts only where it does not. */
static void note_down(struct fed_part *base, unsigned stage, unsigned from, const float *note)
{
	struct pfedeg *p = (struct pfedeg *)base;

	(void)stage;
	for (unsigned m = 0; m < base->members; m++)
		if (note[m] > 0 && (m == from || p->affinity[m] <= 0))
			p->affinity[m] = pfedeg_of_note(note[m]);
}

static void end(struct fed_part *base, unsigned stage)
{
	struct pfedeg *p = (struct pfedeg *)base;
	double w[FED_MEMBERS_MAX] = { 0 }, least = 0;

	if (stage > 0)
		return;
	for (unsigned m = 0; m < base->members; m++) {
		double either = (double)base->emb->n_ent + p->affinity[m] - p->shared[m];

		if (m == base->me || p->affinity[m] <= 0 || p->shared[m] <= 0 || either <= 0)
			continue;
		w[m] = p->shared[m] / either;
		if (least == 0 || w[m] < least)
			least = w[m];
	}
	pfedeg_weigh(p, w, least);
}

const struct fed_method fed_pfedeg = {
	.name = "pfedeg",
	.title = "PFedEG *: a mean of each agent's own, by the overlap of entities",
	PFEDEG_COMMON,
	.home = home,
	.note_home = note_home,
	.note_down = note_down,
	.end = end,
};
