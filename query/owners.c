#include "query/owners.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* What a thread searches with. */
struct lane {
	struct query_owners *all;
	struct query_search *asker;
	struct query_search **owner; /* [n]; NULL: the asker's own */
	struct query_elsewhere elsewhere;
	struct query_point *points, *sent; /* truest first; of those, what an owner has */
	struct query_reached *reached;
	struct query_owners_count counted;
	const struct query_record *const *begun;
};

/* Between ids of an owner and of the asker; GRAPH_NONE: the other has no such entity. */
struct names {
	uint32_t *to_asker;   /* [owner's] */
	uint32_t *from_asker; /* [asker's] */
	uint32_t *rel;	      /* [asker's]: the owner's */
};

struct query_owners {
	const struct query_owner *of;
	size_t n;
	struct query_owners_options how;
	struct names *names; /* [n] */
	const struct query_truths *m;
	struct query_truths *none; /* nobody's: names alone */
	struct kge_emb *none_emb;
	struct lane *lane;
};

/* ---- names ---- */

static uint32_t *ids_of_nobody(size_t n)
{
	uint32_t *ids = mem_array(n + 1, sizeof(*ids));

	for (size_t i = 0; i < n; i++)
		ids[i] = GRAPH_NONE;
	return ids;
}

/* in_union NULL: it has all names of the union. */
static uint32_t union_id(const uint32_t *in_union, uint32_t id)
{
	return in_union != NULL ? in_union[id] : id;
}

/* back[in_union[id]] = id. */
static uint32_t *ids_back(const uint32_t *in_union, uint32_t n, uint32_t all)
{
	uint32_t *back = ids_of_nobody(all);

	for (uint32_t id = 0; id < n; id++) {
		uint32_t at = union_id(in_union, id);

		if (at != GRAPH_NONE)
			back[at] = id;
	}
	return back;
}

static void name_owner(const struct query_owners *q, size_t k, uint32_t n_ent, uint32_t n_rel)
{
	const struct query_owner *o = &q->of[k], *a = q->how.asker;
	uint32_t steps = graph_vocab_count(a->g->relations),
		 *ent = ids_back(o->ent, o->m->n, n_ent),
		 *rel = ids_back(o->rel, o->m->relations, n_rel);
	struct names *x = &q->names[k];

	x->to_asker = ids_of_nobody(o->m->n);
	x->from_asker = ids_of_nobody(q->m->n);
	x->rel = ids_of_nobody(steps);
	for (uint32_t id = 0; id < q->m->n; id++) {
		uint32_t at = union_id(a->ent, id);

		x->from_asker[id] = at != GRAPH_NONE ? ent[at] : GRAPH_NONE;
		if (x->from_asker[id] != GRAPH_NONE)
			x->to_asker[x->from_asker[id]] = id;
	}
	for (uint32_t id = 0; id < steps; id++) {
		uint32_t at = union_id(a->rel, id);

		x->rel[id] = at != GRAPH_NONE ? rel[at] : GRAPH_NONE;
	}
	free(ent);
	free(rel);
}

/* ---- a step ---- */

static bool truer(const struct query_point *a, const struct query_point *b)
{
	return a->truth != b->truth ? a->truth > b->truth : a->id < b->id;
}

static int truest_first(const void *a, const void *b)
{
	return truer(a, b) ? -1 : 1;
}

/* The truest of all, into lane->points. */
static size_t choose_points(const struct lane *l, const float *from)
{
	size_t n = 0, most = l->all->how.points;

	for (uint32_t id = 0; id < l->all->m->n; id++)
		if (from[id] > 0)
			l->points[n++] = (struct query_point){ id, from[id] };
	if (most == 0 || n <= most)
		return n;
	qsort(l->points, n, sizeof(*l->points), truest_first);
	return most;
}

static float join_truths(const struct query_owners *q, float a, float b)
{
	return query_truth_or(q->how.search.norm, a, b);
}

static void ask_owner(struct lane *l, size_t k, struct query_step step, size_t n, float *truth)
{
	const struct query_owners *q = l->all;
	const struct names *x = &q->names[k];
	size_t known = 0, most = q->how.want == 0 ? q->of[k].m->n : q->how.want, rows;

	for (size_t i = 0; i < n; i++)
		if (x->from_asker[l->points[i].id] != GRAPH_NONE)
			l->sent[known++] = (struct query_point){ x->from_asker[l->points[i].id],
								 l->points[i].truth };
	if (known == 0)
		return;
	step.rel = x->rel[step.rel];
	rows = query_search_step(l->owner[k], step, l->sent, known, x->to_asker, l->reached, most);
	for (size_t i = 0; i < rows; i++) {
		uint32_t to = x->to_asker[l->reached[i].to.id];

		truth[to] = join_truths(q, truth[to], l->reached[i].to.truth);
	}
	l->counted.steps++;
	l->counted.points += known;
	l->counted.rows += rows;
}

static void step_elsewhere(void *ctx, struct query_step step, const float *from, float *truth)
{
	struct lane *l = ctx;
	const struct query_owners *q = l->all;
	size_t n = choose_points(l, from);

	memset(truth, 0, q->m->n * sizeof(*truth));
	for (size_t k = 0; k < q->n && n > 0; k++)
		if (&q->of[k] != q->how.asker && q->names[k].rel[step.rel] != GRAPH_NONE)
			ask_owner(l, k, step, n, truth);
}

/* A judge explains nothing. */
static bool no_way(void *ctx, struct query_step step, const float *from, uint32_t to,
		   struct query_way *out)
{
	(void)ctx;
	(void)step;
	(void)from;
	(void)to;
	*out = (struct query_way){ .from = GRAPH_NONE };
	return false;
}

/* ---- judging ---- */

static void owners_begin(void *ctx, size_t lane, const struct query_record *const *records,
			 size_t n)
{
	struct query_owners *q = ctx;

	(void)n;
	q->lane[lane].begun = records;
}

static void owners_score(void *ctx, size_t lane, size_t i, float *score)
{
	const struct query_owners *q = ctx;
	const struct lane *l = &q->lane[lane];

	query_search_run(l->asker, &l->begun[i]->tree, score);
}

struct query_judge query_owners_judge(struct query_owners *q)
{
	return (struct query_judge){ q, q->m->n, owners_begin, owners_score };
}

struct query_owners_count query_owners_counted(const struct query_owners *q)
{
	struct query_owners_count sum = { 0 };

	for (uint32_t i = 0; i < q->how.lanes; i++) {
		sum.steps += q->lane[i].counted.steps;
		sum.points += q->lane[i].counted.points;
		sum.rows += q->lane[i].counted.rows;
	}
	return sum;
}

/* ---- beginning and end ---- */

static void lane_open(struct query_owners *q, struct lane *l)
{
	struct query_search_options how = q->how.search;
	size_t most = q->m->n;

	l->all = q;
	l->elsewhere = (struct query_elsewhere){ l, step_elsewhere, no_way };
	l->owner = mem_array(q->n, sizeof(struct query_search *));
	for (size_t k = 0; k < q->n; k++) {
		most = q->of[k].m->n > most ? q->of[k].m->n : most;
		if (&q->of[k] != q->how.asker)
			l->owner[k] = query_search_new(q->of[k].m, &how);
	}
	how.elsewhere = &l->elsewhere;
	l->asker = query_search_new(q->m, &how);
	l->points = mem_array(most + 1, sizeof(*l->points));
	l->sent = mem_array(most + 1, sizeof(*l->sent));
	l->reached = mem_array(most + 1, sizeof(*l->reached));
}

/* Tables without a relation: all steps are others'. */
static void make_nobody(struct query_owners *q, const struct graph *names)
{
	const struct query_scale any = { QUERY_SOFTMAX, 1, 0 };
	struct rng r;

	rng_seed(&r, 0);
	q->none_emb = kge_emb_new(kge_model_find("distmult"), 1, 1,
				  graph_vocab_count(names->entities), 0, &r);
	q->none = query_truths_new(q->none_emb, names, &any, 0);
}

struct query_owners *query_owners_new(const struct query_owner *owners, size_t n, uint32_t entities,
				      uint32_t relations, const struct query_owners_options *o)
{
	struct query_owners *q = mem_array(1, sizeof(*q));

	assert(n > 0 && o->lanes > 0);
	q->of = owners;
	q->n = n;
	q->how = *o;
	if (o->asker->m == NULL)
		make_nobody(q, o->asker->g);
	q->m = o->asker->m != NULL ? o->asker->m : q->none;
	q->names = mem_array(n, sizeof(*q->names));
	for (size_t k = 0; k < n; k++)
		name_owner(q, k, entities, relations);
	q->lane = mem_array(o->lanes, sizeof(*q->lane));
	for (uint32_t i = 0; i < o->lanes; i++)
		lane_open(q, &q->lane[i]);
	return q;
}

static void lane_close(const struct query_owners *q, struct lane *l)
{
	query_search_free(l->asker);
	for (size_t k = 0; k < q->n; k++)
		query_search_free(l->owner[k]);
	free((void *)l->owner);
	free(l->points);
	free(l->sent);
	free(l->reached);
}

void query_owners_free(struct query_owners *q)
{
	if (q == NULL)
		return;
	for (uint32_t i = 0; i < q->how.lanes; i++)
		lane_close(q, &q->lane[i]);
	for (size_t k = 0; k < q->n; k++) {
		free(q->names[k].to_asker);
		free(q->names[k].from_asker);
		free(q->names[k].rel);
	}
	free(q->names);
	free(q->lane);
	query_truths_free(q->none);
	kge_emb_free(q->none_emb);
	free(q);
}
