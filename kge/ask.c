#include "kge/ask.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/kernel.h"
#include "kge/rank_internal.h"

struct kge_asker {
	const struct kge_emb *emb;
	const struct graph *g;
	const struct kge_kernels *k;
	struct graph_index *truths;	  /* the triples of all splits */
	struct kge_candidate_sets *typed; /* NULL: nobody asked yet */
	float *scores;			  /* one a row of the larger table */
	float *query;			  /* one entity row, or one of query_floats */
	float *seen;			  /* a candidate as the relation sees it; else NULL */
	float *turns;			  /* KGE_MODULUS: relations as rows of complex numbers */
	bool *mark;			  /* by entity: of the wanted type */
	bool *loops;			  /* by relation: train has a loop of it */
};

struct kge_asker *kge_asker_new(const struct kge_emb *emb, const struct graph *g)
{
	struct kge_asker *a = mem_array(1, sizeof(*a));
	size_t rows = emb->n_ent > emb->n_rel ? emb->n_ent : emb->n_rel;

	a->emb = emb;
	a->g = g;
	a->k = kge_kernels_pick();
	a->truths = graph_index_new(g, 1u << GRAPH_TRAIN | 1u << GRAPH_VALID | 1u << GRAPH_TEST);
	a->loops = graph_loops(g);
	a->scores = mem_aligned(rows, sizeof(float));
	a->query = mem_aligned(emb->ent_floats + emb->query_floats, sizeof(float));
	if (emb->model->project != NULL)
		a->seen = mem_aligned(emb->query_floats, sizeof(float));
	return a;
}

void kge_asker_free(struct kge_asker *a)
{
	if (a == NULL)
		return;
	graph_index_free(a->truths);
	if (a->typed != NULL)
		kge_candidates_free(a->typed);
	free(a->scores);
	free(a->query);
	free(a->seen);
	free(a->turns);
	free(a->mark);
	free(a->loops);
	free(a);
}

static const struct kge_candidate_sets *typed_sets(struct kge_asker *a)
{
	if (a->typed == NULL)
		a->typed = kge_candidates_new(a->g, KGE_CAND_TYPED);
	return a->typed;
}

/* ---- the best few: a heap with the worst of them at its root ---- */

struct best {
	struct kge_answer *at;
	size_t n, room;
};

static int by_rank(const void *x, const void *y)
{
	const struct kge_answer *a = x, *b = y;
	bool a_nan = isnan(a->score), b_nan = isnan(b->score);

	if (a_nan != b_nan)
		return a_nan ? 1 : -1;
	if (!a_nan && a->score != b->score)
		return a->score > b->score ? -1 : 1;
	return (a->id > b->id) - (a->id < b->id);
}

static void swap(struct kge_answer *a, struct kge_answer *b)
{
	struct kge_answer was = *a;

	*a = *b;
	*b = was;
}

static void sift_up(struct kge_answer *at, size_t i)
{
	for (; i > 0 && by_rank(&at[i], &at[(i - 1) / 2]) > 0; i = (i - 1) / 2)
		swap(&at[i], &at[(i - 1) / 2]);
}

static void sift_down(struct kge_answer *at, size_t n)
{
	for (size_t i = 0, child; (child = 2 * i + 1) < n; i = child) {
		if (child + 1 < n && by_rank(&at[child + 1], &at[child]) > 0)
			child++;
		if (by_rank(&at[child], &at[i]) <= 0)
			return;
		swap(&at[i], &at[child]);
	}
}

static void offer(struct best *b, struct kge_answer a)
{
	if (b->n < b->room) {
		b->at[b->n++] = a;
		sift_up(b->at, b->n - 1);
	} else if (b->room > 0 && by_rank(&a, &b->at[0]) < 0) {
		b->at[0] = a;
		sift_down(b->at, b->n);
	}
}

static size_t sort_answers(struct best *b)
{
	qsort(b->at, b->n, sizeof(*b->at), by_rank);
	return b->n;
}

/* ---- completing a triple ---- */

/* a->scores[id] for every entity, higher is better. */
static void score_entities(struct kge_asker *a, uint32_t known, uint32_t rel, enum graph_side side)
{
	const struct kge_emb *m = a->emb;
	enum kge_metric metric = m->model->metric;

	m->model->query(a->query, kge_ent(m, known), kge_rel(m, rel), m, side);
	if (a->seen == NULL)
		a->k->score[metric](a->scores, a->query, m->ent, m->n_ent, m->ent_floats);
	for (uint32_t id = 0; id < m->n_ent && a->seen != NULL; id++) {
		m->model->project(a->seen, kge_ent(m, id), kge_rel(m, rel), m);
		a->k->score[metric](&a->scores[id], a->query, a->seen, 1, m->query_floats);
	}
	for (uint32_t id = 0; id < m->n_ent && metric != KGE_DOT; id++)
		a->scores[id] = m->gamma - a->scores[id];
}

/* Models of distance score the asked entity itself high, whatever the relation is. */
static bool asks_itself(const struct kge_asker *a, uint32_t known, uint32_t rel,
			const struct kge_answer *x)
{
	return x->id == known && !a->loops[rel];
}

static size_t ask_entity(struct kge_asker *a, struct graph_triple q, enum graph_side side,
			 const struct kge_ask_options *o, struct kge_answer *out)
{
	struct best b = { .at = out, .room = o->top };
	uint32_t n = graph_vocab_count(a->g->entities),
		 known = side == GRAPH_TAIL ? q.head : q.tail;
	const uint32_t *list = o->typed ? kge_candidates_of(typed_sets(a), side, q.rel, &n) : NULL;
	size_t n_answers, next = 0;
	const uint32_t *answers = side == GRAPH_TAIL
					  ? graph_index_tails(a->truths, known, q.rel, &n_answers)
					  : graph_index_heads(a->truths, q.rel, known, &n_answers);

	score_entities(a, known, q.rel, side);
	for (uint32_t i = 0; i < n; i++) { /* candidates and answers both ascend */
		struct kge_answer x = { .id = list != NULL ? list[i] : i };

		while (next < n_answers && answers[next] < x.id)
			next++;
		x.is_true = next < n_answers && answers[next] == x.id;
		x.score = a->scores[x.id];
		if (o->with_true || (!x.is_true && !asks_itself(a, known, q.rel, &x)))
			offer(&b, x);
	}
	return sort_answers(&b);
}

static bool fits(struct kge_asker *a, struct graph_triple t)
{
	uint32_t n_heads, n_tails;
	const uint32_t *heads = kge_candidates_of(typed_sets(a), GRAPH_HEAD, t.rel, &n_heads);
	const uint32_t *tails = kge_candidates_of(typed_sets(a), GRAPH_TAIL, t.rel, &n_tails);

	return kge_candidates_has(heads, n_heads, t.head) &&
	       kge_candidates_has(tails, n_tails, t.tail);
}

static size_t ask_relation(struct kge_asker *a, struct graph_triple q,
			   const struct kge_ask_options *o, struct kge_answer *out)
{
	struct best b = { .at = out, .room = o->top };

	for (q.rel = 0; q.rel < graph_vocab_count(a->g->relations); q.rel++) {
		struct kge_answer x = { .id = q.rel, .is_true = graph_index_has(a->truths, q) };

		if ((x.is_true && !o->with_true) || (o->typed && !fits(a, q)))
			continue;
		x.score = kge_score(a->emb, q.head, q.rel, q.tail);
		offer(&b, x);
	}
	return sort_answers(&b);
}

size_t kge_ask(struct kge_asker *a, struct graph_triple question, const struct kge_ask_options *o,
	       struct kge_answer *out)
{
	assert((question.head == GRAPH_NONE) + (question.rel == GRAPH_NONE) +
		       (question.tail == GRAPH_NONE) ==
	       1);
	if (question.rel == GRAPH_NONE)
		return ask_relation(a, question, o, out);
	return ask_entity(a, question, question.head == GRAPH_NONE ? GRAPH_HEAD : GRAPH_TAIL, o,
			  out);
}

/* ---- near rows ---- */

/* Each relation of RotatE applied to 1, in every component. */
static const float *turns_of(struct kge_asker *a)
{
	const struct kge_emb *m = a->emb;
	size_t floats = m->ent_floats;

	if (a->turns != NULL)
		return a->turns;
	a->turns = mem_aligned(m->n_rel, floats * sizeof(float));
	for (size_t i = 0; i < floats; i++)
		a->query[i] = i < floats / 2 ? 1.0f : 0.0f;
	for (uint32_t r = 0; r < m->n_rel; r++)
		m->model->query(a->turns + r * floats, a->query, kge_rel(m, r), m, GRAPH_TAIL);
	return a->turns;
}

struct rows {
	const float *at;
	uint32_t n;
	size_t floats;
};

static struct rows rows_of(struct kge_asker *a, bool relations)
{
	const struct kge_emb *m = a->emb;

	if (!relations)
		return (struct rows){ m->ent, m->n_ent, m->ent_floats };
	if (m->model->metric == KGE_MODULUS)
		return (struct rows){ turns_of(a), m->n_rel, m->ent_floats };
	return (struct rows){ m->rel, m->n_rel, m->rel_floats };
}

static double length_of(const float *row, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)row[i] * (double)row[i];
	return sqrt(sum);
}

/* a->scores[id], higher is nearer: cosines, or distances below 0. */
static void compare_rows(struct kge_asker *a, const struct rows *r, const float *row,
			 enum kge_nearness by)
{
	double own = length_of(row, r->floats);

	a->k->score[by == KGE_COSINE ? KGE_DOT : KGE_L2](a->scores, row, r->at, r->n, r->floats);
	for (uint32_t i = 0; i < r->n; i++) {
		double both;

		if (by == KGE_DISTANCE) {
			a->scores[i] = -a->scores[i];
			continue;
		}
		both = own * length_of(r->at + i * r->floats, r->floats);
		a->scores[i] = both > 0 ? (float)((double)a->scores[i] / both) : 0.0f;
	}
}

static void mark_side(struct kge_asker *a, enum graph_side side, uint32_t rel, uint32_t id)
{
	uint32_t n;
	const uint32_t *list = kge_candidates_of(typed_sets(a), side, rel, &n);
	bool stands = kge_candidates_has(list, n, id);

	for (uint32_t i = 0; i < n && stands; i++)
		a->mark[list[i]] = true;
}

/* Everybody who stands on a side of a relation on which `id` stands as well. */
static void mark_type(struct kge_asker *a, uint32_t id)
{
	free(a->mark);
	a->mark = mem_array(graph_vocab_count(a->g->entities), sizeof(*a->mark));
	for (uint32_t rel = 0; rel < graph_vocab_count(a->g->relations); rel++) {
		mark_side(a, GRAPH_HEAD, rel, id);
		mark_side(a, GRAPH_TAIL, rel, id);
	}
}

size_t kge_near(struct kge_asker *a, uint32_t id, const struct kge_near_options *o,
		struct kge_answer *out)
{
	struct best b = { .at = out, .room = o->top };
	struct rows r = rows_of(a, o->relations);
	bool typed = o->typed && !o->relations;

	if (typed)
		mark_type(a, id);
	compare_rows(a, &r, r.at + id * r.floats, o->by);
	for (uint32_t i = 0; i < r.n; i++)
		if (i != id && (!typed || a->mark[i]))
			offer(&b, (struct kge_answer){ .id = i, .score = a->scores[i] });
	sort_answers(&b);
	for (size_t i = 0; i < b.n && o->by == KGE_DISTANCE; i++)
		out[i].score = -out[i].score;
	return b.n;
}
