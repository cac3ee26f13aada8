/* fed/round_work.c - the works of a round: arithmetic between what came and what goes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/inside.h"

static size_t up_floats(const struct fed_shape *s, char tag)
{
	return tag == 'e' ? s->up_ent : s->up_rel;
}

static size_t down_floats(const struct fed_shape *s, char tag)
{
	return tag == 'e' ? s->down_ent : s->down_rel;
}

/* ---- up ---- */

struct up { /* a lane that is being loaded */
	struct fed_round *r;
	unsigned home;
	struct cargo *c;
	float *row; /* before it is masked */
	struct secret_lane masks;
};

static bool load_row(struct up *x, size_t place, size_t floats, size_t units)
{
	struct fed_round *r = x->r;
	const struct fed_item *it = &r->plan->items[r->plan->out[x->home].item[place]];
	float *to = cargo_add(x->c, place, units);

	if (r->secret == NULL)
		return fed_up(r->setup->part, r->stage, it, to);
	return fed_up(r->setup->part, r->stage, it, x->row) &&
	       secret_put(r, x->home, &x->masks, place, x->row, floats, to);
}

static struct cargo *load_lane(struct fed_round *r, unsigned home, const struct fed_shape *s,
			       size_t *rows, uint64_t *floats)
{
	const struct fed_lane *l = &r->plan->out[home];
	struct fed_part *part = r->setup->part;
	struct cargo *c = cargo_new(r->stage, l->n, false);
	struct up x = { .r = r, .home = home, .c = c };

	if (r->secret != NULL) {
		secret_lane_begin(r, home, &x.masks);
		x.row = mem_array(s->up_ent > s->up_rel ? s->up_ent : s->up_rel, sizeof(*x.row));
	}
	for (size_t i = 0; i < l->n; i++) {
		size_t width = up_floats(s, r->plan->items[l->item[i]].tag), before = c->floats;

		if (!load_row(&x, i, width, row_units(r, l, i, s, true))) {
			c->at[i] = CARGO_NONE;
			c->floats = before;
			continue;
		}
		*rows += 1;
		*floats += width;
	}
	secret_lane_end(&x.masks);
	free(x.row);
	if (s->note_up > 0) {
		c->note = mem_array(s->note_up, sizeof(float));
		part->method->note_up(part, r->stage, home, c->note);
	}
	return c;
}

/* Even an empty lane is sent to a host, which cannot know that it is. */
static bool lane_is_used(const struct fed_round *r, unsigned home)
{
	return r->plan->out[home].n > 0 ||
	       (home == fed_plan_host(r->plan) && home != r->me && r->stage == 0);
}

static int work_up(struct fed_round *r)
{
	struct fed_part *part = r->setup->part;
	struct fed_shape s;
	size_t rows = 0;
	uint64_t floats = 0;

	fed_shape(&r->settings, r->members, r->stage, &s);
	if (part->method->choose != NULL)
		part->method->choose(part, r->stage,
				     (struct fed_items){ r->plan->items, r->plan->n_own });
	for (unsigned m = 0; m < r->members; m++) {
		cargo_free(r->out[m]);
		r->out[m] = NULL;
		if ((r->to & bit(m)) != 0 && lane_is_used(r, m))
			r->out[m] = load_lane(r, m, &s, &rows, &floats);
	}
	r->work_up = fed_count(&r->settings, r->stage, true, r->plan->n_own, rows, floats);
	return 0;
}

/* For homes that have lost a member: the same rows under other masks. */
static int work_again(struct fed_round *r)
{
	struct fed_shape s;
	size_t rows = 0;
	uint64_t floats = 0;

	fed_shape(&r->settings, r->members, r->stage, &s);
	for (unsigned m = 0; m < r->members; m++)
		if ((r->to & bit(m)) != 0)
			r->out[m] = load_lane(r, m, &s, &rows, &floats);
	return 0;
}

/* ---- at the home ---- */

/* What has come, seen by item. */
struct gathered {
	size_t n;	   /* items that have their home here */
	uint32_t *homed;   /* [n] which they are */
	const float **row; /* [n x members] */
	const float **first;
	uint32_t *place; /* [n x members] in the member's lane, or KGE_NONE */
	const float *note[FED_MEMBERS_MAX];
};

static void gather_lane(const struct fed_round *r, unsigned m, const uint32_t *where,
			struct gathered *g)
{
	const struct fed_lane *l = &r->plan->in[m];

	g->note[m] = r->in[m]->note;
	for (size_t i = 0; i < l->n; i++) {
		size_t at = where[l->item[i]] * (size_t)r->members + m;

		g->place[at] = (uint32_t)i;
		g->row[at] = cargo_row(r->in[m], i);
	}
}

/* The rows of stage 0, also of those that are gone since: what it has led to counts them. */
static void gather_first(const struct fed_round *r, unsigned m, const uint32_t *where,
			 struct gathered *g)
{
	const struct cargo *c = r->home_stage == 0 ? r->in[m] : r->first[m];
	const struct fed_lane *l = &r->plan->in[m];

	for (size_t i = 0; i < l->n; i++)
		g->first[where[l->item[i]] * (size_t)r->members + m] = cargo_row(c, i);
}

static void gather(const struct fed_round *r, struct gathered *g)
{
	const struct fed_plan *p = r->plan;
	uint32_t *where = mem_array(p->n_items, sizeof(*where));
	size_t cells;

	memset(g, 0, sizeof(*g));
	g->homed = mem_array(p->n_items, sizeof(*g->homed));
	for (size_t i = 0; i < p->n_items; i++)
		if (p->items[i].home == r->me) {
			where[i] = (uint32_t)g->n;
			g->homed[g->n++] = (uint32_t)i;
		}
	cells = g->n * r->members;
	g->row = mem_array(cells, sizeof(*g->row));
	g->first = mem_array(cells, sizeof(*g->first));
	g->place = mem_array(cells, sizeof(*g->place));
	for (size_t i = 0; i < cells; i++)
		g->place[i] = KGE_NONE;
	for (unsigned m = 0; m < r->members; m++) {
		if ((r->present & bit(m)) != 0 && r->in[m] != NULL)
			gather_lane(r, m, where, g);
		if (r->home_stage == 0 ? (r->present & bit(m)) != 0 && r->in[m] != NULL
				       : r->first[m] != NULL)
			gather_first(r, m, where, g);
	}
	free(where);
}

static void gathered_release(struct gathered *g)
{
	free(g->homed);
	free(g->row);
	free(g->first);
	free(g->place);
}

/* A method that only needs sums says the same to all: it is computed once. */
static bool answer_to(struct fed_round *r, const struct fed_upload *u, unsigned to, size_t place,
		      size_t floats, float *scratch, int *same)
{
	struct fed_part *part = r->setup->part;

	if (part->method->home != NULL)
		return fed_answer(part, u, to, scratch);
	if (*same < 0 && r->secret != NULL)
		*same = secret_answer(r, u, &r->plan->in[to], place, floats, scratch);
	else if (*same < 0)
		*same = fed_answer(part, u, to, scratch);
	return *same != 0;
}

static void answer_item(struct fed_round *r, const struct gathered *g, size_t i,
			const struct fed_shape *s, float *scratch)
{
	const struct fed_item *it = &r->plan->items[g->homed[i]];
	struct fed_upload u = { .item = it,
				.row = g->row + i * r->members,
				.first = g->first + i * r->members,
				.note = g->note,
				.members = r->members,
				.stage = r->home_stage };
	const uint32_t *place = g->place + i * r->members;
	int same = -1;

	for (unsigned m = 0; m < r->members; m++)
		if (place[m] != KGE_NONE)
			u.present |= bit(m);
	for (unsigned m = 0; m < r->members; m++) {
		size_t units;

		if ((u.present & bit(m)) == 0 ||
		    !answer_to(r, &u, m, place[m], down_floats(s, it->tag), scratch, &same))
			continue;
		units = row_units(r, &r->plan->in[m], place[m], s, false);
		memcpy(cargo_add(r->answer[m], place[m], units), scratch, units * sizeof(float));
	}
}

static void begin_answers(struct fed_round *r)
{
	for (unsigned m = 0; m < r->members; m++) {
		cargo_free(r->answer[m]);
		r->answer[m] = NULL;
		if ((r->present & bit(m)) != 0 && r->in[m] != NULL && r->plan->in[m].n > 0)
			r->answer[m] = cargo_new(r->home_stage, r->plan->in[m].n, false);
	}
}

/* Rows of an answer must lie in the order of their places, as messages take them. */
static void order_answer(const struct fed_round *r, unsigned m, const struct fed_shape *s)
{
	struct cargo *c = r->answer[m], *o = cargo_new(c->stage, c->n, false), swap;

	for (size_t i = 0; i < c->n; i++) {
		size_t units = row_units(r, &r->plan->in[m], i, s, false);

		if (c->at[i] == CARGO_NONE)
			continue;
		memcpy(cargo_add(o, i, units), cargo_row(c, i), units * sizeof(float));
	}
	swap = *c;
	*c = *o;
	*o = swap;
	cargo_free(o);
}

static void end_answers(struct fed_round *r, const struct fed_shape *s)
{
	struct fed_part *part = r->setup->part;

	for (unsigned m = 0; m < r->members; m++) {
		struct cargo *c = r->answer[m];

		if (c == NULL)
			continue;
		order_answer(r, m, s);
		if (s->note_down == 0)
			continue;
		c->note = mem_array(s->note_down, sizeof(float));
		part->method->note_home(part, r->home_stage, m, c->note);
	}
}

/* The rows of stage 0 are kept as long as a later stage may ask for them. */
static void put_away(struct fed_round *r)
{
	for (unsigned m = 0; m < r->members; m++) {
		if (r->home_stage == 0 && r->stages > 1 && (r->present & bit(m)) != 0)
			r->first[m] = r->in[m];
		else
			cargo_free(r->in[m]);
		r->in[m] = NULL;
	}
}

static int work_home(struct fed_round *r)
{
	struct gathered g;
	struct fed_shape s;
	size_t widest;
	float *scratch;

	if (r->home_stage == 0 && fed_plan_host(r->plan) == r->me)
		fed_plan_meet(r->plan, r->present);
	fed_shape(&r->settings, r->members, r->home_stage, &s);
	widest = s.down_ent > s.down_rel ? s.down_ent : s.down_rel;
	scratch = mem_array(2 * widest, sizeof(*scratch)); /* words may have 64 bits */
	gather(r, &g);
	begin_answers(r);
	for (size_t i = 0; i < g.n; i++)
		answer_item(r, &g, i, &s, scratch);
	end_answers(r, &s);
	r->homed = g.n;
	gathered_release(&g);
	free(scratch);
	put_away(r);
	return 0;
}

/* ---- down ---- */

static void unload_lane(struct fed_round *r, unsigned home, const struct fed_shape *s, size_t *rows,
			uint64_t *floats)
{
	const struct fed_lane *l = &r->plan->out[home];
	const struct cargo *c = r->back[home];
	struct secret_lane masks;
	float *open = NULL;

	if (r->secret != NULL) {
		secret_lane_begin(r, home, &masks);
		open = mem_array(s->down_ent > s->down_rel ? s->down_ent : s->down_rel,
				 sizeof(*open));
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct fed_item *it = &r->plan->items[l->item[i]];
		const float *row = cargo_row(c, i);
		size_t width = down_floats(s, it->tag);

		if (row == NULL ||
		    (r->secret != NULL && !secret_open(r, home, &masks, i, row, width, open)))
			continue;
		fed_down(r->setup->part, r->stage, it, r->secret != NULL ? open : row);
		*rows += 1;
		*floats += width;
	}
	if (r->secret != NULL)
		secret_lane_end(&masks);
	free(open);
}

static int work_down(struct fed_round *r)
{
	struct fed_part *part = r->setup->part;
	struct fed_shape s;
	size_t rows = 0;
	uint64_t floats = 0;

	fed_shape(&r->settings, r->members, r->stage, &s);
	for (unsigned m = 0; m < r->members; m++)
		if (r->back[m] != NULL && r->back[m]->whole && s.note_down > 0)
			part->method->note_down(part, r->stage, m, r->back[m]->note);
	for (unsigned m = 0; m < r->members; m++)
		if (r->back[m] != NULL && r->back[m]->whole)
			unload_lane(r, m, &s, &rows, &floats);
	for (unsigned m = 0; m < r->members; m++) {
		cargo_free(r->back[m]);
		r->back[m] = NULL;
	}
	if (part->method->end != NULL)
		part->method->end(part, r->stage);
	r->items = rows;
	r->work_down = fed_count(&r->settings, r->stage, false, r->plan->n_own, rows, floats);
	return 0;
}

int work_run(struct fed_round *r)
{
	switch (r->work) {
	case WORK_UP:
		return work_up(r);
	case WORK_AGAIN:
		return work_again(r);
	case WORK_HOME:
		return work_home(r);
	case WORK_DOWN:
		return work_down(r);
	default:
		return 0;
	}
}
