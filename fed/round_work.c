/* fed/round_work.c - the works of a round: arithmetic between what came and what goes. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/round_internal.h"

static size_t up_floats(const struct fed_shape *s, char tag)
{
	return tag == 'e' ? s->up_ent : s->up_rel;
}

static size_t down_floats(const struct fed_shape *s, char tag)
{
	return tag == 'e' ? s->down_ent : s->down_rel;
}

/* ---- up ---- */

struct up { /* a route that is being loaded */
	struct fed_round *r;
	unsigned home;
	struct fed_row_buffer *c;
	float *row; /* before it is masked */
	struct fed_secret_route masks;
};

static bool load_row(struct up *x, size_t position, size_t floats, size_t units)
{
	struct fed_round *r = x->r;
	const struct fed_item *it = &r->plan->items[r->plan->out[x->home].item[position]];
	float *to = fed_row_buffer_add(x->c, position, units);

	if (r->secret == NULL)
		return fed_up(r->setup->part, r->stage, it, to);
	return fed_up(r->setup->part, r->stage, it, x->row) &&
	       fed_secret_put(r, x->home, &x->masks, position, x->row, floats, to);
}

static bool is_host(const struct fed_round *r, unsigned home)
{
	return home == fed_plan_host(r->plan) && home != r->me;
}

static struct fed_row_buffer *load_route(struct fed_round *r, unsigned home,
					 const struct fed_shape *s, size_t *rows, uint64_t *floats)
{
	const struct fed_route *l = &r->plan->out[home];
	struct fed_part *part = r->setup->part;
	struct fed_row_buffer *c = fed_row_buffer_new(r->stage, l->n, false);
	struct up x = { .r = r, .home = home, .c = c };

	if (r->secret != NULL) {
		fed_secret_route_begin(r, home, &x.masks);
		x.row = mem_array(s->up_ent > s->up_rel ? s->up_ent : s->up_rel, sizeof(*x.row));
	}
	for (size_t i = 0; i < l->n; i++) {
		size_t width = up_floats(s, r->plan->items[l->item[i]].tag), before = c->floats;

		if (!load_row(&x, i, width, fed_row_units(r, l, i, s, true))) {
			c->at[i] = ROW_NONE;
			c->floats = before;
			continue;
		}
		*rows += 1;
		*floats += width;
	}
	fed_secret_route_end(&x.masks);
	free(x.row);
	if (s->note_up > 0 && (l->n > 0 || is_host(r, home))) {
		c->note = mem_array(s->note_up, sizeof(float));
		part->method->note_up(part, r->stage, home, c->note);
	}
	return c;
}

/* Even an empty route is sent to a host, which cannot know that it is; and to whom we are home to,
 * which may know of no route between the two of us. */
static bool route_is_used(const struct fed_round *r, unsigned home)
{
	const struct fed_plan *p = r->plan;

	return p->out[home].n > 0 ||
	       (r->stage == 0 && (is_host(r, home) || (fed_plan_host(p) == p->members &&
						       home != r->me && p->in[home].n > 0)));
}

static int work_up(struct fed_round *r)
{
	struct fed_part *part = r->setup->part;
	struct fed_shape s;
	size_t rows = 0;
	uint64_t floats = 0;

	fed_shape(&r->settings, r->members, r->stage, &s);
	if (part->method->choose != NULL)
		part->method->choose(
			part, r->stage,
			(struct fed_items){ r->plan->items, r->plan->n_own, r->plan->shared });
	for (unsigned m = 0; m < r->members; m++) {
		fed_row_buffer_free(r->out[m]);
		r->out[m] = NULL;
		if ((r->to & bit(m)) != 0 && route_is_used(r, m))
			r->out[m] = load_route(r, m, &s, &rows, &floats);
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
			r->out[m] = load_route(r, m, &s, &rows, &floats);
	return 0;
}

/* ---- at the home ---- */

/* A member's position of an item. */
struct cell {
	uint32_t position; /* in the member's route */
	uint8_t member;
};

/* The rows that have come, by item.  As large as the routes: with a host most items are few
 * members'. */
struct gathered {
	size_t n;	 /* items that have their home here */
	uint32_t *homed; /* [n] which they are */
	size_t *from;	 /* [n + 1] item i has cells from[i] to from[i + 1], members ascending */
	struct cell *cell;
	uint64_t now;	/* members whose routes of this stage are here */
	uint64_t first; /* ... of stage 0, also those that are gone since: what it has led to
			 * counts them */
	const float *note[FED_MEMBERS_MAX];
};

static void find_routes(const struct fed_round *r, struct gathered *g)
{
	for (unsigned m = 0; m < r->members; m++) {
		if ((r->present & bit(m)) != 0 && r->in[m] != NULL) {
			g->now |= bit(m);
			g->note[m] = r->in[m]->note;
		}
		if (r->first[m] != NULL)
			g->first |= bit(m);
	}
	if (r->home_stage == 0)
		g->first = g->now;
}

/* where: by item, its number among those that have their home here. */
static void list_homed(const struct fed_round *r, uint32_t *where, struct gathered *g)
{
	const struct fed_plan *p = r->plan;

	g->homed = mem_array(p->n_items, sizeof(*g->homed));
	for (size_t i = 0; i < p->n_items; i++)
		if (p->items[i].home == r->me) {
			where[i] = (uint32_t)g->n;
			g->homed[g->n++] = (uint32_t)i;
		}
}

static void count_cells(const struct fed_round *r, const uint32_t *where, struct gathered *g)
{
	for (unsigned m = 0; m < r->members; m++) {
		const struct fed_route *l = &r->plan->in[m];

		for (size_t k = 0; ((g->now | g->first) & bit(m)) != 0 && k < l->n; k++)
			g->from[where[l->item[k]] + 1]++;
	}
	for (size_t i = 0; i < g->n; i++)
		g->from[i + 1] += g->from[i];
}

static void fill_cells(const struct fed_round *r, const uint32_t *where, struct gathered *g)
{
	size_t *at = mem_copy(g->from, (g->n + 1) * sizeof(*at));

	for (unsigned m = 0; m < r->members; m++) {
		const struct fed_route *l = &r->plan->in[m];

		for (size_t k = 0; ((g->now | g->first) & bit(m)) != 0 && k < l->n; k++)
			g->cell[at[where[l->item[k]]]++] =
				(struct cell){ .position = (uint32_t)k, .member = (uint8_t)m };
	}
	free(at);
}

static void gather(const struct fed_round *r, struct gathered *g)
{
	uint32_t *where = mem_array(r->plan->n_items, sizeof(*where));

	memset(g, 0, sizeof(*g));
	find_routes(r, g);
	list_homed(r, where, g);
	g->from = mem_array(g->n + 1, sizeof(*g->from));
	count_cells(r, where, g);
	g->cell = mem_array(g->from[g->n], sizeof(*g->cell));
	fill_cells(r, where, g);
	free(where);
}

static void gathered_release(struct gathered *g)
{
	free(g->homed);
	free(g->from);
	free(g->cell);
}

/* A method that only needs sums says the same to all: it is computed once. */
static bool answer_to(struct fed_round *r, const struct fed_upload *u, unsigned to, size_t position,
		      size_t floats, float *scratch, int *same)
{
	struct fed_part *part = r->setup->part;

	if (part->method->home != NULL)
		return fed_answer(part, u, to, scratch);
	if (*same < 0 && r->secret != NULL)
		*same = fed_secret_answer(r, u, &r->plan->in[to], position, floats, scratch);
	else if (*same < 0)
		*same = fed_answer(part, u, to, scratch);
	return *same != 0;
}

/* One item's, by member. */
struct rows {
	const float *row[FED_MEMBERS_MAX], *first[FED_MEMBERS_MAX];
	uint32_t position[FED_MEMBERS_MAX];
};

/* The rows of item i; returns the members that are there now. */
static uint64_t collect(const struct fed_round *r, const struct gathered *g, size_t i,
			struct rows *o)
{
	uint64_t present = 0;

	memset(o->row, 0, r->members * sizeof(o->row[0]));
	memset(o->first, 0, r->members * sizeof(o->first[0]));
	for (size_t k = g->from[i]; k < g->from[i + 1]; k++) {
		unsigned m = g->cell[k].member;
		uint32_t position = g->cell[k].position;

		o->position[m] = position;
		if ((g->now & bit(m)) != 0) {
			present |= bit(m);
			o->row[m] = fed_row_buffer_row(r->in[m], position);
		}
		if ((g->first & bit(m)) != 0)
			o->first[m] = fed_row_buffer_row(
				r->home_stage == 0 ? r->in[m] : r->first[m], position);
	}
	return present;
}

/* Before anything is answered: what is to be said of members by all of their rows. */
static void look_at_rows(struct fed_round *r, const struct gathered *g, const struct fed_shape *s,
			 float *scratch)
{
	const struct kge_emb *own = fed_shared_table(r->setup->part);
	const double least[2] = { fed_distance_typical(r, 'e', 0, own->n_ent),
				  fed_distance_typical(r, 'r', 0, own->n_rel) };
	struct rows rows;

	for (size_t i = 0; i < g->n; i++) {
		struct fed_upload u = { .item = &r->plan->items[g->homed[i]],
					.row = rows.row,
					.members = r->members,
					.stage = r->home_stage };

		u.present = collect(r, g, i, &rows);
		fed_distance_add(r, &u, up_floats(s, u.item->tag), least[u.item->tag == 'r'],
				 scratch);
	}
	if (r->home_stage == 0)
		fed_bound_members(r);
}

static void keep_out(const struct fed_round *r, struct rows *rows)
{
	for (unsigned m = 0; m < r->members; m++)
		if ((r->left_out & bit(m)) != 0)
			rows->row[m] = rows->first[m] = NULL;
}

/* How far the rows of those that are not left out are from ours. */
static void note_row_steps(const struct fed_round *r, const struct gathered *g,
			   const struct fed_shape *s, struct fed_steps *steps)
{
	struct rows rows;

	if (!fed_bound_has(r))
		return;
	fed_steps_release(steps);
	fed_steps_begin(steps, r);
	steps->own_is_far = fed_bound_own_is_far(r);
	for (size_t i = 0; i < g->n; i++) {
		const struct fed_item *it = &r->plan->items[g->homed[i]];
		const float *own;

		collect(r, g, i, &rows);
		keep_out(r, &rows);
		own = rows.row[r->me];
		for (unsigned m = 0; m < r->members && own != NULL; m++)
			if (m != r->me && rows.row[m] != NULL)
				fed_steps_note(steps, m, it, rows.row[m], own,
					       up_floats(s, it->tag));
	}
	fed_steps_end(steps);
}

static void bound_rows(struct fed_round *r, const struct fed_steps *steps,
		       const struct fed_item *it, struct rows *rows, size_t floats, float *scratch)
{
	uint64_t there = 0;

	for (unsigned m = 0; m < r->members; m++)
		there |= rows->row[m] != NULL ? bit(m) : 0;
	fed_bound_rows(r, steps, it, rows->row, floats, scratch);
	for (unsigned m = 0; m < r->members; m++)
		if ((there & bit(m)) != 0 && rows->row[m] == NULL)
			r->participants[m].account.rows_far++;
}

/* A mean of fewer rows than the others of min_holders is not told: members are lost, and rows are
 * kept out.  A home that picks rows or weighs them is asked for what it says; one that adds them up
 * under masks counts them itself. */
static bool enough_others(const struct fed_round *r, const struct fed_upload *u, unsigned to)
{
	const struct fed_method *method = r->setup->part->method;
	size_t others = 0;

	if (r->secret != NULL || (method->home != NULL && !method->home_is_mean))
		return true;
	for (unsigned m = 0; m < r->members; m++)
		others += m != to && u->row[m] != NULL;
	return others + 1 >= r->settings.min_holders;
}

/* scratch has room for two rows of the widest, and where rows are bounded for members + 1. */
static void answer_item(struct fed_round *r, const struct gathered *g, size_t i,
			const struct fed_shape *s, const struct fed_steps *steps, size_t widest,
			float *scratch)
{
	const struct fed_item *it = &r->plan->items[g->homed[i]];
	struct rows rows;
	struct fed_upload u = { .item = it,
				.row = rows.row,
				.first = rows.first,
				.note = g->note,
				.members = r->members,
				.stage = r->home_stage,
				.present = collect(r, g, i, &rows) };
	int same = -1;

	keep_out(r, &rows);
	if (fed_bound_has(r))
		bound_rows(r, steps, it, &rows, up_floats(s, it->tag), scratch + 2 * widest);
	for (unsigned m = 0; m < r->members; m++) {
		size_t units;

		if ((u.present & bit(m)) == 0 || !enough_others(r, &u, m) ||
		    !answer_to(r, &u, m, rows.position[m], down_floats(s, it->tag), scratch, &same))
			continue;
		units = fed_row_units(r, &r->plan->in[m], rows.position[m], s, false);
		memcpy(fed_row_buffer_add(r->answer[m], rows.position[m], units), scratch,
		       units * sizeof(float));
	}
}

static void begin_answers(struct fed_round *r)
{
	for (unsigned m = 0; m < r->members; m++) {
		fed_row_buffer_free(r->answer[m]);
		r->answer[m] = NULL;
		if ((r->present & bit(m)) != 0 && r->in[m] != NULL && r->plan->in[m].n > 0)
			r->answer[m] = fed_row_buffer_new(r->home_stage, r->plan->in[m].n, false);
	}
}

/* Rows of an answer must lie in the order of their positions, as messages take them. */
static void order_answer(const struct fed_round *r, unsigned m, const struct fed_shape *s)
{
	struct fed_row_buffer *c = r->answer[m], *o = fed_row_buffer_new(c->stage, c->n, false),
			      swap;

	for (size_t i = 0; i < c->n; i++) {
		size_t units = fed_row_units(r, &r->plan->in[m], i, s, false);

		if (c->at[i] == ROW_NONE)
			continue;
		memcpy(fed_row_buffer_add(o, i, units), fed_row_buffer_row(c, i),
		       units * sizeof(float));
	}
	swap = *c;
	*c = *o;
	*o = swap;
	fed_row_buffer_free(o);
}

static void end_answers(struct fed_round *r, const struct fed_shape *s)
{
	struct fed_part *part = r->setup->part;

	for (unsigned m = 0; m < r->members; m++) {
		struct fed_row_buffer *c = r->answer[m];

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
			fed_row_buffer_free(r->in[m]);
		r->in[m] = NULL;
	}
}

/* ---- whose rows hurt, at the home ---- */

struct home_trial {
	const struct fed_round *r;
	const struct gathered *g;
	const struct fed_shape *shape;
	const struct fed_steps *steps;
	float *cut; /* room for what is bounded */
};

static const struct fed_item *homed_item(void *ctx, size_t i)
{
	const struct home_trial *t = ctx;

	return &t->r->plan->items[t->g->homed[i]];
}

static bool homed_row(void *ctx, size_t i, uint64_t with, float *out)
{
	const struct home_trial *t = ctx;
	const struct fed_round *r = t->r;
	struct rows rows;
	struct fed_upload u = { .item = homed_item(ctx, i),
				.row = rows.row,
				.first = rows.first,
				.note = t->g->note,
				.members = r->members };

	u.present = collect(r, t->g, i, &rows);
	for (unsigned m = 0; m < r->members; m++)
		if (m != r->me && (with & bit(m)) == 0)
			rows.row[m] = NULL;
	if (fed_bound_has(r))
		fed_bound_rows(r, t->steps, u.item, rows.row, up_floats(t->shape, u.item->tag),
			       t->cut);
	return fed_answer(r->setup->part, &u, r->me, out);
}

/* After what is far out is left out.  Is anybody more? */
static bool judge_rows(struct fed_round *r, const struct gathered *g, const struct fed_shape *s,
		       const struct fed_steps *steps, float *cut)
{
	struct home_trial t = { r, g, s, steps, cut };
	const struct fed_trial_rows rows = { g->n, homed_item, homed_row, &t };
	uint64_t out;

	if (r->home_stage != 0 || r->setup->judge == NULL || !fed_judge_means(r))
		return false;
	out = fed_judge_members(r, g->now & ~r->left_out & ~bit(r->me), &rows, true);
	r->left_out |= out;
	return out != 0;
}

/* Who is left out, and how far the rows of the others may be from ours. */
static void look_at_members(struct fed_round *r, const struct gathered *g,
			    const struct fed_shape *s, struct fed_steps *steps, float *scratch,
			    float *cut)
{
	look_at_rows(r, g, s, scratch);
	if (r->home_stage == 0)
		r->left_out |= fed_judge_before(r);
	note_row_steps(r, g, s, steps);
	if (judge_rows(r, g, s, steps, cut))
		note_row_steps(r, g, s, steps);
}

static int work_home(struct fed_round *r)
{
	struct gathered g;
	struct fed_shape s;
	struct fed_steps steps = { .entities = 0 };
	size_t widest;
	float *scratch;

	if (r->home_stage == 0 && fed_plan_host(r->plan) == r->me)
		fed_plan_meet(r->plan, r->present);
	fed_shape(&r->settings, r->members, r->home_stage, &s);
	widest = s.down_ent > s.down_rel ? s.down_ent : s.down_rel;
	widest = s.up_ent > widest ? s.up_ent : widest;
	widest = s.up_rel > widest ? s.up_rel : widest;
	/* words may have 64 bits; rows that are cut, and their middle */
	scratch = mem_array((2 + (fed_bound_has(r) ? (size_t)r->members + 1 : 0)) * widest,
			    sizeof(*scratch));
	gather(r, &g);
	if (r->secret == NULL)
		look_at_members(r, &g, &s, &steps, scratch, scratch + 2 * widest);
	begin_answers(r);
	for (size_t i = 0; i < g.n; i++)
		answer_item(r, &g, i, &s, &steps, widest, scratch);
	end_answers(r, &s);
	r->homed = g.n;
	fed_steps_release(&steps);
	gathered_release(&g);
	free(scratch);
	put_away(r);
	return 0;
}

/* ---- down ---- */

struct down { /* what has come */
	size_t rows;
	uint64_t floats;
	struct fed_distance *apart; /* not NULL: nothing is taken, rows are held against ours ... */
	struct fed_steps *noted;    /* ... or are not NULL here */
	struct fed_steps *steps;    /* bounds what is taken or kept; NULL: nothing does */
	float *cut;		    /* with steps: room for a row */
	size_t refused;		    /* answers of which nothing is taken */
	struct heard *heard;	    /* not NULL: nothing is taken, rows are kept */
	unsigned home;		    /* with noted, heard */
};

/* Answers of homes. */
struct heard {
	size_t n, cap, floats, floats_cap;
	struct {
		struct fed_item item;
		size_t at; /* of its floats */
		unsigned home;
	} * of;
	float *rows;
};

static void keep_heard(struct heard *h, unsigned home, const struct fed_item *it, const float *row,
		       size_t floats)
{
	if (h->n == h->cap) {
		h->cap = 2 * h->cap + 256;
		h->of = mem_resize(h->of, h->cap, sizeof(*h->of));
	}
	if (h->floats + floats > h->floats_cap) {
		h->floats_cap = 2 * h->floats_cap + 256 * floats;
		h->rows = mem_resize(h->rows, h->floats_cap, sizeof(*h->rows));
	}
	h->of[h->n].item = *it;
	h->of[h->n].at = h->floats;
	h->of[h->n++].home = home;
	memcpy(h->rows + h->floats, row, floats * sizeof(*row));
	h->floats += floats;
}

static void take_row(struct fed_round *r, const struct fed_item *it, const float *row,
		     struct down *d)
{
	size_t floats;
	const float *own = fed_row(fed_shared_table(r->setup->part), it, &floats);

	if (d->apart != NULL)
		fed_distance_row(d->apart, row, own, floats, 0);
	if (d->noted != NULL)
		fed_steps_note(d->noted, d->home, it, row, own, floats);
	if (d->apart != NULL || d->noted != NULL)
		return;
	if (d->steps != NULL)
		row = fed_bound_answer(d->steps, it, row, own, floats, d->cut);
	d->refused += row == NULL;
	if (row == NULL)
		return;
	if (d->heard != NULL)
		keep_heard(d->heard, d->home, it, row, floats);
	else
		fed_down(r->setup->part, r->stage, it, row);
}

static void unload_route(struct fed_round *r, unsigned home, const struct fed_shape *s,
			 struct down *d)
{
	const struct fed_route *l = &r->plan->out[home];
	const struct fed_row_buffer *c = r->back[home];
	struct fed_secret_route masks;
	float *open = NULL;

	if (r->secret != NULL) {
		fed_secret_route_begin(r, home, &masks);
		open = mem_array(s->down_ent > s->down_rel ? s->down_ent : s->down_rel,
				 sizeof(*open));
	}
	for (size_t i = 0; i < l->n; i++) {
		const struct fed_item *it = &r->plan->items[l->item[i]];
		const float *row = fed_row_buffer_row(c, i);
		size_t width = down_floats(s, it->tag);

		if (row == NULL ||
		    (r->secret != NULL && !fed_secret_open(r, home, &masks, i, row, width, open)))
			continue;
		take_row(r, it, r->secret != NULL ? open : row, d);
		d->rows++;
		d->floats += width;
	}
	if (r->secret != NULL)
		fed_secret_route_end(&masks);
	free(open);
}

static bool has_come(const struct fed_round *r, unsigned home)
{
	return r->back[home] != NULL && r->back[home]->whole;
}

/* Whose answers are far out; and how far those of the others would move our rows. */
static void look_at_answers(struct fed_round *r, const struct fed_shape *s, struct fed_steps *steps)
{
	struct fed_distance apart[FED_MEMBERS_MAX];
	size_t spoiled = r->secret != NULL ? r->secret->spoiled : 0;

	memset(apart, 0, r->members * sizeof(apart[0]));
	for (unsigned m = 0; m < r->members; m++)
		if (has_come(r, m))
			unload_route(r, m, s, &(struct down){ .apart = &apart[m] });
	fed_bound_homes(r, apart);
	r->not_taken |= fed_judge_before(r);
	fed_steps_begin(steps, r);
	for (unsigned m = 0; m < r->members; m++)
		if (has_come(r, m) && (r->not_taken & bit(m)) == 0)
			unload_route(r, m, s, &(struct down){ .noted = steps, .home = m });
	if (r->secret != NULL) /* counted when they are taken */
		r->secret->spoiled = spoiled;
	fed_steps_end(steps);
}

static const struct fed_item *heard_item(void *ctx, size_t i)
{
	return &((const struct heard *)ctx)->of[i].item;
}

struct down_trial {
	struct heard heard; /* first: heard_item() */
	const struct fed_round *r;
};

static bool heard_row(void *ctx, size_t i, uint64_t with, float *out)
{
	const struct down_trial *t = ctx;
	const struct kge_emb *own = fed_shared_table(t->r->setup->part);
	unsigned home = t->heard.of[i].home;
	size_t floats;

	if (home != t->r->me && (with & bit(home)) == 0)
		return false;
	fed_row(own, &t->heard.of[i].item, &floats);
	memcpy(out, t->heard.rows + t->heard.of[i].at, floats * sizeof(*out));
	return true;
}

/* Whose answers hurt; after those that are far out. */
static void judge_answers(struct fed_round *r, const struct fed_shape *s, struct fed_steps *steps,
			  float *cut)
{
	struct down_trial t = { .r = r };
	struct fed_trial_rows rows = { .item = heard_item, .row = heard_row, .ctx = &t };
	size_t spoiled = r->secret != NULL ? r->secret->spoiled : 0;
	uint64_t in = 0;

	if (r->stage != 0)
		return;
	r->not_taken |= fed_judge_before(r);
	if (r->setup->judge == NULL || !fed_judge_means(r))
		return;
	for (unsigned m = 0; m < r->members; m++)
		if (has_come(r, m) && (r->not_taken & bit(m)) == 0) {
			in |= bit(m);
			unload_route(
				r, m, s,
				&(struct down){
					.steps = steps, .cut = cut, .heard = &t.heard, .home = m });
		}
	rows.n = t.heard.n;
	r->not_taken |= fed_judge_members(r, in & ~bit(r->me), &rows, false);
	if (r->secret != NULL)
		r->secret->spoiled = spoiled;
	free(t.heard.of);
	free(t.heard.rows);
}

static int work_down(struct fed_round *r)
{
	struct fed_part *part = r->setup->part;
	struct fed_shape s;
	struct fed_steps steps = { .entities = 0 };
	struct down d = { .rows = 0 };

	fed_shape(&r->settings, r->members, r->stage, &s);
	for (unsigned m = 0; m < r->members; m++)
		if (has_come(r, m) && s.note_down > 0)
			part->method->note_down(part, r->stage, m, r->back[m]->note);
	if (fed_bound_looks_at_answers(r)) {
		look_at_answers(r, &s, &steps);
		d.steps = &steps;
		d.cut = mem_array(s.down_ent > s.down_rel ? s.down_ent : s.down_rel,
				  sizeof(*d.cut));
	}
	judge_answers(r, &s, d.steps, d.cut);
	for (unsigned m = 0; m < r->members; m++)
		if (has_come(r, m) && (r->not_taken & bit(m)) == 0)
			unload_route(r, m, &s, &d);
	for (unsigned m = 0; m < r->members; m++) {
		fed_row_buffer_free(r->back[m]);
		r->back[m] = NULL;
	}
	r->refused += d.refused;
	free(d.cut);
	fed_steps_release(&steps);
	if (part->method->end != NULL)
		part->method->end(part, r->stage);
	r->items = d.rows;
	r->work_down = fed_count(&r->settings, r->stage, false, r->plan->n_own, d.rows, d.floats);
	return 0;
}

int fed_work_run(struct fed_round *r)
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
