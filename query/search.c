/* query/search.c - one pass over the tree; a vector of truths a level of it. */
#include "query/search.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

const char *const query_norm_words[] = { "product", "min", NULL };

/* An entity of a variable, from which edges are predicted. */
struct pick {
	float truth, factor; /* factor: query_truths_factor() */
	uint32_t id, place;  /* place: of equal ones the lower goes first */
};

struct query_search {
	const struct query_truths *m;
	struct query_search_options how;
	struct query_rows *rows;
	float *level[QUERY_DEPTH_MAX]; /* made when first needed */
	float *other;		       /* truths by who takes steps elsewhere; likewise */
	struct pick *picks;
	struct query_ask *asks; /* theirs */
	size_t n_picks, most_picks;
	bool stopped; /* query_search_was_stopped() */
};

struct query_search *query_search_new(const struct query_truths *m,
				      const struct query_search_options *o)
{
	struct query_search *s = mem_array(1, sizeof(*s));

	s->m = m;
	s->how = *o;
	s->most_picks = o->beam == 0 || o->beam > m->n ? m->n : o->beam;
	s->rows = query_rows_new(m, o->cache_bytes, o->threads);
	s->picks = mem_array(s->most_picks + 1, sizeof(*s->picks));
	s->asks = mem_array(s->most_picks + 1, sizeof(*s->asks));
	return s;
}

void query_search_free(struct query_search *s)
{
	if (s == NULL)
		return;
	query_rows_free(s->rows);
	for (size_t i = 0; i < QUERY_DEPTH_MAX; i++)
		free(s->level[i]);
	free(s->other);
	free(s->picks);
	free(s->asks);
	free(s);
}

struct query_rows_count query_search_counted(const struct query_search *s)
{
	return query_rows_counted(s->rows);
}

bool query_search_was_stopped(const struct query_search *s)
{
	return s->stopped;
}

static bool must_stop(struct query_search *s)
{
	const struct query_stop *stop = s->how.stop;

	s->stopped = s->stopped || (stop != NULL && stop->is_wanted(stop->ctx));
	return s->stopped;
}

/* ---- which entities edges are predicted from: a heap with the last of them at its root ---- */

static bool goes_before(const struct pick *a, const struct pick *b)
{
	if (a->truth != b->truth)
		return a->truth > b->truth;
	if (a->factor != b->factor)
		return a->factor > b->factor;
	return a->place < b->place;
}

static void sink_pick(struct pick *at, size_t n, size_t i)
{
	for (size_t child; (child = 2 * i + 1) < n; i = child) {
		struct pick was = at[i];

		if (child + 1 < n && goes_before(&at[child], &at[child + 1]))
			child++;
		if (!goes_before(&at[i], &at[child]))
			return;
		at[i] = at[child];
		at[child] = was;
	}
}

/* p: but for its factor. */
static void offer_pick(struct query_search *s, struct query_step step, struct pick p, size_t most)
{
	if (s->n_picks == most && p.truth < s->picks[0].truth)
		return;
	p.factor = query_truths_factor(s->m, step, p.id);
	if (s->n_picks < most) {
		s->picks[s->n_picks++] = p;
		if (s->n_picks == most)
			for (size_t i = s->n_picks / 2; i-- > 0;)
				sink_pick(s->picks, s->n_picks, i);
	} else if (goes_before(&p, &s->picks[0])) {
		s->picks[0] = p;
		sink_pick(s->picks, s->n_picks, 0);
	}
}

static void ask_from_picks(struct query_search *s, struct query_step step)
{
	for (size_t i = 0; i < s->n_picks; i++)
		s->asks[i] = (struct query_ask){ s->picks[i].id, step };
}

static uint32_t tie_place(const struct query_search *s, uint32_t id)
{
	return s->m->place != NULL ? s->m->place[id] : id;
}

static void choose_picks(struct query_search *s, struct query_step step, const float *truth)
{
	s->n_picks = 0;
	for (uint32_t id = 0; id < s->m->n; id++)
		if (truth[id] > 0)
			offer_pick(s, step,
				   (struct pick){ .truth = truth[id],
						  .id = id,
						  .place = tie_place(s, id) },
				   s->most_picks);
	ask_from_picks(s, step);
}

/* ---- a step ---- */

struct step {
	struct query_search *s;
	float *out;
};

static void walk_product(float *restrict out, const float *restrict share, const struct pick *p,
			 uint32_t n)
{
	for (uint32_t t = 0; t < n; t++) {
		float x = p->truth * query_truth_of(share[t], p->factor);

		out[t] = x > out[t] ? x : out[t];
	}
}

static void walk_min(float *restrict out, const float *restrict share, const struct pick *p,
		     uint32_t n)
{
	for (uint32_t t = 0; t < n; t++) {
		float x = query_truth_of(share[t], p->factor);

		x = x < p->truth ? x : p->truth;
		out[t] = x > out[t] ? x : out[t];
	}
}

static void walk_predicted(void *ctx, size_t i, const float *share)
{
	const struct step *w = ctx;
	const struct query_search *s = w->s;

	if (s->how.norm == QUERY_PRODUCT)
		walk_product(w->out, share, &s->picks[i], s->m->n);
	else
		walk_min(w->out, share, &s->picks[i], s->m->n);
}

static struct query_step step_at(const struct query_node *node)
{
	assert(node->kind == QUERY_STEP);
	return (struct query_step){ .rel = node->id, .inverse = node->inverse };
}

static void walk_known(const struct query_truths *m, struct query_step step, const float *from,
		       float *out)
{
	memset(out, 0, m->n * sizeof(*out));
	if (step.rel >= m->relations)
		return;
	for (size_t i = m->first[step.rel]; i < m->first[step.rel + 1]; i++) {
		uint32_t a = step.inverse ? m->edges[i].tail : m->edges[i].head;
		uint32_t b = step.inverse ? m->edges[i].head : m->edges[i].tail;

		out[b] = from[a] > out[b] ? from[a] : out[b];
	}
}

/* By these tables. */
static void walk_own(struct query_search *s, struct query_step step, const float *from, float *out)
{
	struct step w = { .s = s, .out = out };

	if (must_stop(s)) {
		memset(out, 0, s->m->n * sizeof(*out));
		return;
	}
	walk_known(s->m, step, from, out);
	if (step.rel >= s->m->relations)
		return;
	choose_picks(s, step, from);
	query_rows_each(s->rows, s->asks, s->n_picks, walk_predicted, &w);
}

/* ---- a tree ---- */

/* AND, OR of two truths. */
static inline float meet_two(enum query_norm n, enum query_kind kind, float a, float b)
{
	if (kind == QUERY_AND)
		return query_truth_and(n, a, b);
	return query_truth_or(n, a, b);
}

static void meet_child(const struct query_search *s, enum query_kind kind, float *restrict out,
		       const float *restrict other)
{
	for (uint32_t t = 0; t < s->m->n; t++)
		out[t] = meet_two(s->how.norm, kind, out[t], other[t]);
}

/* s->other, by who takes the step elsewhere. */
static void walk_elsewhere(struct query_search *s, struct query_step step, const float *from,
			   bool meets)
{
	if (s->other == NULL)
		s->other = mem_aligned(s->m->n, sizeof(float));
	s->how.elsewhere->step(s->how.elsewhere->ctx, step, from, meets, s->other);
}

static void walk_step(struct query_search *s, struct query_step step, const float *from, bool meets,
		      float *out)
{
	walk_own(s, step, from, out);
	if (s->how.elsewhere == NULL || s->stopped)
		return;
	walk_elsewhere(s, step, from, meets);
	meet_child(s, QUERY_OR, out, s->other);
}

static float *level_vector(struct query_search *s, size_t depth)
{
	assert(depth < QUERY_DEPTH_MAX);
	if (s->level[depth] == NULL)
		s->level[depth] = mem_aligned(s->m->n, sizeof(float));
	return s->level[depth];
}

/* Does an AND join what stands below the node with others?  meets: what the node says. */
static bool child_meets(const struct query_node *node, bool meets)
{
	return node->kind == QUERY_AND || (meets && node->kind != QUERY_STEP);
}

/* Truths of node i, which stands `depth` below the root: levels from `depth` on are free.  The
 * tree's limits bound the recursion. */
static void find_truths(struct query_search *s, const struct query_tree *t, uint32_t i,
			size_t depth, bool meets, float *out)
{
	const struct query_node *node = &t->at[i];

	if (node->kind == QUERY_ANCHOR) {
		memset(out, 0, s->m->n * sizeof(*out));
		out[node->id] = 1.0f;
		return;
	}
	if (node->kind == QUERY_STEP) {
		find_truths(s, t, query_tree_child(t, i, 0), depth + 1, false,
			    level_vector(s, depth));
		walk_step(s, step_at(node), level_vector(s, depth), meets, out);
		return;
	}
	meets = child_meets(node, meets);
	find_truths(s, t, query_tree_child(t, i, 0), depth, meets, out);
	for (uint32_t k = 1; k < node->children; k++) {
		find_truths(s, t, query_tree_child(t, i, k), depth + 1, meets,
			    level_vector(s, depth));
		meet_child(s, node->kind, out, level_vector(s, depth));
	}
	for (uint32_t e = 0; e < s->m->n && node->kind == QUERY_NOT; e++)
		out[e] = 1.0f - out[e];
}

void query_search_run(struct query_search *s, const struct query_tree *t, float *truth)
{
	assert(t->n > 0);
	s->stopped = false;
	find_truths(s, t, t->n - 1, 0, false, truth);
}

/* ---- many trees ---- */

static int compare_asks(const void *a, const void *b)
{
	const struct query_ask *x = a, *y = b;

	if (x->step.rel != y->step.rel)
		return x->step.rel < y->step.rel ? -1 : 1;
	if (x->step.inverse != y->step.inverse)
		return x->step.inverse ? 1 : -1;
	return (x->from > y->from) - (x->from < y->from);
}

/* The rows of steps from anchors, behind out. */
static void add_first_asks(const struct query_tree *t, uint32_t relations, struct buf *out)
{
	for (uint32_t i = 1; i < t->n; i++)
		if (t->at[i].kind == QUERY_STEP && t->at[i - 1].kind == QUERY_ANCHOR &&
		    t->at[i].id < relations) {
			struct query_ask ask = { t->at[i - 1].id, step_at(&t->at[i]) };

			buf_add(out, &ask, sizeof(ask));
		}
}

void query_search_begin(struct query_search *s, const struct query_tree *const *trees, size_t n)
{
	struct buf all = { 0 };
	struct query_ask *asks;
	size_t n_asks, kept = 0;

	for (size_t i = 0; i < n; i++)
		add_first_asks(trees[i], s->m->relations, &all);
	asks = (struct query_ask *)(void *)all.base;
	n_asks = all.len / sizeof(*asks);
	if (n_asks > 0)
		qsort(asks, n_asks, sizeof(*asks), compare_asks);
	for (size_t i = 0; i < n_asks; i++)
		if (i == 0 || compare_asks(&asks[i], &asks[kept - 1]) != 0)
			asks[kept++] = asks[i];
	query_rows_each(s->rows, asks, kept, NULL, NULL);
	buf_release(&all);
}

/* ---- explanations ---- */

/* The best edge into one entity, by these tables. */
struct entry {
	struct query_search *s;
	uint32_t to;
	struct query_way way;
};

static bool way_is_known(const struct query_way *w)
{
	return w->edge > QUERY_CAP;
}

static void enter_predicted(void *ctx, size_t i, const float *share)
{
	struct entry *b = ctx;
	const struct query_search *s = b->s;
	const struct pick *p = &s->picks[i];
	struct query_way *w = &b->way;
	float edge = query_truth_of(share[b->to], p->factor);
	float truth = query_truth_and(s->how.norm, p->truth, edge);

	if (truth < w->truth ||
	    (truth == w->truth &&
	     (way_is_known(w) || (w->from != GRAPH_NONE && p->place > tie_place(s, w->from)))))
		return;
	*w = (struct query_way){ .from = p->id, .truth = truth, .edge = edge };
}

static void enter_known(struct entry *b, struct query_step step, const float *truth)
{
	size_t n;
	const uint32_t *from = step.inverse
				       ? graph_index_tails(b->s->m->index, b->to, step.rel, &n)
				       : graph_index_heads(b->s->m->index, step.rel, b->to, &n);

	for (size_t i = 0; i < n; i++)
		if (truth[from[i]] > b->way.truth)
			b->way = (struct query_way){ .from = from[i],
						     .truth = truth[from[i]],
						     .edge = 1.0f };
}

static struct entry no_entry(struct query_search *s, uint32_t to)
{
	return (struct entry){ .s = s, .to = to, .way = { .from = GRAPH_NONE } };
}

static struct query_way way_here(struct query_search *s, struct query_step step, const float *from,
				 uint32_t to)
{
	struct entry best = no_entry(s, to);

	if (step.rel >= s->m->relations || must_stop(s))
		return best.way;
	enter_known(&best, step, from);
	choose_picks(s, step, from);
	query_rows_each(s->rows, s->asks, s->n_picks, enter_predicted, &best);
	return best.way;
}

/* *truth: of the entity, by all ways together. */
static struct query_way best_way(struct query_search *s, struct query_step step, const float *from,
				 bool meets, uint32_t to, float *truth)
{
	const struct query_elsewhere *o = s->how.elsewhere;
	struct query_way own = way_here(s, step, from, to), w = { .from = GRAPH_NONE };

	*truth = own.truth;
	if (o == NULL || s->stopped)
		return own;
	walk_elsewhere(s, step, from, meets);
	*truth = meet_two(s->how.norm, QUERY_OR, own.truth, s->other[to]);
	return o->way(o->ctx, step, from, to, &w) && w.truth > own.truth ? w : own;
}

static void explain_node(struct query_search *s, const struct query_tree *t, uint32_t i, bool meets,
			 uint32_t entity, struct query_explanation *out);

static void explain_step(struct query_search *s, const struct query_tree *t, uint32_t i, bool meets,
			 uint32_t entity, struct query_explanation *out)
{
	uint32_t child = query_tree_child(t, i, 0);
	struct query_way best = { .from = GRAPH_NONE };

	if (entity != GRAPH_NONE && !s->stopped) {
		find_truths(s, t, child, 1, false, level_vector(s, 0));
		best = best_way(s, step_at(&t->at[i]), level_vector(s, 0), meets, entity,
				&out->at[i].truth);
	}
	if (best.truth == 0)
		best.from = GRAPH_NONE;
	out->at[i].edge = best.edge;
	out->at[i].known = way_is_known(&best);
	out->at[i].by = best.by;
	explain_node(s, t, child, false, best.from, out);
}

static void explain_meeting(struct query_search *s, const struct query_tree *t, uint32_t i,
			    bool meets, uint32_t entity, struct query_explanation *out)
{
	const struct query_node *node = &t->at[i];
	float truth = 0;

	for (uint32_t k = 0; k < node->children; k++) {
		uint32_t child = query_tree_child(t, i, k);
		float other;

		explain_node(s, t, child, child_meets(node, meets), entity, out);
		other = out->at[child].truth;
		truth = k == 0 ? other : meet_two(s->how.norm, node->kind, truth, other);
	}
	out->at[i].truth = node->kind == QUERY_NOT ? 1.0f - truth : truth;
}

static void explain_node(struct query_search *s, const struct query_tree *t, uint32_t i, bool meets,
			 uint32_t entity, struct query_explanation *out)
{
	const struct query_node *node = &t->at[i];

	out->at[i].entity = entity;
	if (node->kind == QUERY_STEP)
		explain_step(s, t, i, meets, entity, out);
	else if (node->kind == QUERY_ANCHOR)
		out->at[i].truth = node->id == entity ? 1.0f : 0.0f;
	else
		explain_meeting(s, t, i, meets, entity, out);
}

void query_search_explain(struct query_search *s, const struct query_tree *t, uint32_t answer,
			  struct query_explanation *out)
{
	assert(t->n > 0 && answer < s->m->n);
	memset(out, 0, sizeof(*out));
	explain_node(s, t, t->n - 1, false, answer, out);
}

/* ---- a step by itself ---- */

/* The best way to each entity. */
struct ways {
	float *truth, *edge;
	uint32_t *place; /* of the point that it leads from, GRAPH_NONE: none */
};

static void ways_new(struct ways *w, uint32_t n)
{
	w->truth = mem_aligned(n, sizeof(float));
	w->edge = mem_aligned(n, sizeof(float));
	w->place = mem_aligned(n, sizeof(uint32_t));
	memset(w->truth, 0, n * sizeof(float));
	memset(w->edge, 0, n * sizeof(float));
	memset(w->place, 0xff, n * sizeof(uint32_t));
}

static void ways_release(struct ways *w)
{
	free(w->truth);
	free(w->edge);
	free(w->place);
}

/* What a step is asked from. */
struct points {
	const struct query_point *at;
	size_t n;
	float *truth;	 /* [id]; 0: it is none of them */
	uint32_t *place; /* [id]: in at, of those that are */
};

/* Of equally true ways a known edge, then the point that comes first, in whatever order they come.
 */
static void take_known(struct ways *w, uint32_t place, float truth, uint32_t to)
{
	if (truth < w->truth[to] || (truth == w->truth[to] && place > w->place[to]))
		return;
	w->truth[to] = truth;
	w->edge[to] = 1.0f;
	w->place[to] = place;
}

static void find_known(const struct query_search *s, struct query_step step, const struct points *p,
		       struct ways *w)
{
	const struct query_truths *m = s->m;

	for (size_t i = m->first[step.rel]; i < m->first[step.rel + 1]; i++) {
		uint32_t a = step.inverse ? m->edges[i].tail : m->edges[i].head;

		if (p->truth[a] > 0)
			take_known(w, p->place[a], p->truth[a],
				   step.inverse ? m->edges[i].head : m->edges[i].tail);
	}
}

/* beam: 0, or fewer than the search has. */
static void choose_points(struct query_search *s, struct query_step step, const struct points *p,
			  size_t beam)
{
	size_t most = beam == 0 || beam > s->most_picks ? s->most_picks : beam;

	s->n_picks = 0;
	for (uint32_t i = 0; i < p->n; i++) {
		uint32_t id = p->at[i].id;

		if (p->truth[id] > 0 && p->place[id] == i)
			offer_pick(s, step,
				   (struct pick){ .truth = p->truth[id], .id = id, .place = i },
				   most);
	}
	ask_from_picks(s, step);
}

struct finding {
	const struct query_search *s;
	struct ways w;
};

static inline void take_predicted(struct ways *w, uint32_t t, uint32_t place, float truth,
				  float edge)
{
	bool first = truth == w->truth[t] && w->edge[t] <= QUERY_CAP && place < w->place[t];
	bool better = truth > w->truth[t] || first;

	w->truth[t] = better ? truth : w->truth[t];
	w->edge[t] = better ? edge : w->edge[t];
	w->place[t] = better ? place : w->place[t];
}

static void find_predicted(void *ctx, size_t i, const float *share)
{
	const struct finding *f = ctx;
	const struct pick *p = &f->s->picks[i];
	struct ways w = f->w;

	for (uint32_t t = 0; t < f->s->m->n; t++) {
		float edge = query_truth_of(share[t], p->factor);

		take_predicted(&w, t, p->place, query_truth_and(f->s->how.norm, p->truth, edge),
			       edge);
	}
}

static bool reached_before(const struct query_reached *a, const struct query_reached *b,
			   const uint32_t *order)
{
	if (a->to.truth != b->to.truth)
		return a->to.truth > b->to.truth;
	return order[a->to.id] < order[b->to.id];
}

static int compare_reached(const void *a, const void *b, void *order)
{
	return reached_before(a, b, order) ? -1 : 1;
}

/* The truest of all, as a heap with the last of them at its root. */
static void sink_reached(struct query_reached *at, size_t n, const uint32_t *order)
{
	for (size_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
		struct query_reached was = at[i];

		if (child + 1 < n && reached_before(&at[child], &at[child + 1], order))
			child++;
		if (!reached_before(&at[i], &at[child], order))
			return;
		at[i] = at[child];
		at[child] = was;
	}
}

static void reverse_reached(struct query_reached *at, size_t n)
{
	for (size_t i = 0; i < n / 2; i++) {
		struct query_reached was = at[i];

		at[i] = at[n - 1 - i];
		at[n - 1 - i] = was;
	}
}

static void sort_reached(struct query_reached *at, size_t n, const uint32_t *order)
{
	if (n > 0)
		qsort_r(at, n, sizeof(*at), compare_reached, (void *)(uintptr_t)order);
}

/* Of those that a known edge, or a predicted one, leads to. */
static size_t choose_reached(const struct ways *w, uint32_t n_ent, bool known,
			     const uint32_t *order, const struct query_point *from,
			     struct query_reached *out, size_t most)
{
	size_t n = 0;

	for (uint32_t id = 0; id < n_ent && most > 0; id++) {
		struct query_reached r = {
			.to = { id, w->truth[id] },
			.way = { .truth = w->truth[id], .edge = w->edge[id] },
		};

		if (!(r.to.truth > 0) || order[id] == GRAPH_NONE || way_is_known(&r.way) != known)
			continue;
		r.way.from = from[w->place[id]].id;
		if (n < most) {
			out[n++] = r;
			if (n == most) { /* the last in front is a heap */
				sort_reached(out, n, order);
				reverse_reached(out, n);
			}
		} else if (reached_before(&r, &out[0], order)) {
			out[0] = r;
			sink_reached(out, n, order);
		}
	}
	sort_reached(out, n, order);
	return n;
}

size_t query_search_step(struct query_search *s, struct query_step step,
			 const struct query_point *from, size_t n, const uint32_t *order,
			 struct query_reached *out, struct query_limits most)
{
	struct points p = { .at = from, .n = n, .truth = level_vector(s, 0) };
	struct finding f = { .s = s };
	size_t reached;

	assert(step.rel < s->m->relations);
	p.place = mem_array(s->m->n, sizeof(*p.place));
	memset(p.truth, 0, s->m->n * sizeof(*p.truth));
	for (uint32_t i = 0; i < n; i++) {
		assert(from[i].id < s->m->n);
		p.truth[from[i].id] = from[i].truth;
		p.place[from[i].id] = i;
	}
	ways_new(&f.w, s->m->n);
	find_known(s, step, &p, &f.w);
	choose_points(s, step, &p, most.beam);
	query_rows_each(s->rows, s->asks, s->n_picks, find_predicted, &f);
	reached = choose_reached(&f.w, s->m->n, true, order, from, out, most.known);
	reached += choose_reached(&f.w, s->m->n, false, order, from, out + reached, most.predicted);
	ways_release(&f.w);
	free(p.place);
	return reached;
}
