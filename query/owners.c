#include "query/owners.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "query/frontier.h"

/* What a thread searches with. */
struct lane {
	struct query_owners *all;
	struct query_search *asker;
	struct query_search **owner; /* [n]; NULL: the asker's own */
	struct query_elsewhere elsewhere;
	struct query_point *points, *sent; /* truest first; of those, what an owner has */
	struct query_reached *reached;
	float *said; /* [asker's] */
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

/* Those of the asker's points that owner k has. */
static size_t points_at_owner(const struct lane *l, size_t k, size_t n)
{
	const uint32_t *owners = l->all->names[k].from_asker;
	size_t known = 0;

	for (size_t i = 0; i < n; i++)
		if (owners[l->points[i].id] != GRAPH_NONE)
			l->sent[known++] =
				(struct query_point){ owners[l->points[i].id], l->points[i].truth };
	return known;
}

/* said[]: by the owner, of each entity that both have. */
static void join_said(const struct lane *l, size_t k, float *truth)
{
	const uint32_t *owners = l->all->names[k].from_asker;

	for (uint32_t id = 0; id < l->all->m->n; id++)
		if (owners[id] != GRAPH_NONE)
			truth[id] = query_truth_or(l->all->how.search.norm, truth[id], l->said[id]);
}

static struct query_limits limits_of(const struct query_owners *q, size_t k)
{
	size_t all = q->of[k].m->n;

	return (struct query_limits){ .known = q->how.known > 0 ? q->how.known : all,
				      .predicted = q->how.want > 0 ? q->how.want : all };
}

static void ask_owner(struct lane *l, size_t k, struct query_step step, size_t n, bool meets,
		      float *truth)
{
	const struct query_owners *q = l->all;
	const struct names *x = &q->names[k];
	size_t sent = points_at_owner(l, k, n), rows, predicted = 0;
	struct query_limits most = limits_of(q, k);
	float rest;

	if (sent == 0)
		return;
	step.rel = x->rel[step.rel];
	rows = query_search_step(l->owner[k], step, l->sent, sent, x->to_asker, l->reached, most);
	while (predicted < rows && l->reached[rows - 1 - predicted].way.edge <= QUERY_CAP)
		predicted++;
	rest = !meets ? 0
		      : query_rest(predicted, most.predicted,
				   rows > 0 ? l->reached[rows - 1].to.truth : 0);
	for (uint32_t id = 0; id < q->m->n; id++)
		l->said[id] = rest;
	for (size_t i = 0; i < rows; i++)
		l->said[x->to_asker[l->reached[i].to.id]] = l->reached[i].to.truth;
	join_said(l, k, truth);
	l->counted.steps++;
	l->counted.points += sent;
	l->counted.rows += rows;
	l->counted.known += rows - predicted;
}

static void step_elsewhere(void *ctx, struct query_step step, const float *from, bool meets,
			   float *truth)
{
	struct lane *l = ctx;
	const struct query_owners *q = l->all;
	size_t n = query_frontier(from, q->m->n, q->m->place, q->how.points, l->points);

	memset(truth, 0, q->m->n * sizeof(*truth));
	for (size_t k = 0; k < q->n && n > 0; k++)
		if (&q->of[k] != q->how.asker && q->names[k].rel[step.rel] != GRAPH_NONE)
			ask_owner(l, k, step, n, meets, truth);
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
		sum.known += q->lane[i].counted.known;
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
	l->said = mem_array(most + 1, sizeof(*l->said));
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
	free(l->said);
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
