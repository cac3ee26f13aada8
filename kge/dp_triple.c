#include "kge/dp_triple.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/dp_noise.h"
#include "kge/loss.h"

/* ---- memory ---- */

void kge_dp_triple_init(struct kge_dp_triple *t, const struct kge_batch *b)
{
	size_t rows = 2 * (b->width + 1), stride = b->stride;

	*t = (struct kge_dp_triple){ .b = b,
				     .clip = b->c->dp.clip,
				     .units = kge_dp_deviation(b->c->dp.noise) / b->c->dp.noise };
	t->rows = mem_array(rows, sizeof(*t->rows));
	t->position_of = mem_array(b->emb->n_ent, sizeof(*t->position_of));
	for (uint32_t e = 0; e < b->emb->n_ent; e++)
		t->position_of[e] = GRAPH_NONE;
	t->g = mem_aligned(rows, stride * sizeof(float));
	t->drel = mem_aligned(b->emb->rel_floats, sizeof(float));
	t->whole = mem_array(rows * stride + b->emb->rel_floats, sizeof(*t->whole));
	t->ids = mem_array(b->width, sizeof(*t->ids));
	t->q = mem_aligned(5 * stride, sizeof(float));
	t->dq = t->q + stride;
	t->drow = t->q + 2 * stride;
	t->seen = t->q + 3 * stride;
	t->dseen = t->q + 4 * stride;
	t->scores = mem_aligned(5 * b->width, sizeof(float));
	t->dscore = t->scores + b->width;
	t->work = t->scores + 2 * b->width;
}

void kge_dp_triple_release(struct kge_dp_triple *t)
{
	free(t->rows);
	free(t->position_of);
	free(t->g);
	free(t->drel);
	free(t->whole);
	free(t->ids);
	free(t->q);
	free(t->scores);
	memset(t, 0, sizeof(*t));
}

/* ---- the gradient ---- */

/* The gradient of an entity's row: zeros when it is touched first. */
static float *row_of(struct kge_dp_triple *t, uint32_t e)
{
	if (t->position_of[e] == GRAPH_NONE) {
		t->position_of[e] = (uint32_t)t->n_rows;
		t->rows[t->n_rows++] = e;
		memset(t->g + (size_t)t->position_of[e] * t->b->stride, 0,
		       t->b->stride * sizeof(*t->g));
	}
	return t->g + (size_t)t->position_of[e] * t->b->stride;
}

/* A candidate's row as it meets the query. */
static const float *candidate_row(struct kge_dp_triple *t, uint32_t id, uint32_t rel)
{
	const struct kge_emb *e = t->b->emb;

	if (e->model->project == NULL)
		return kge_ent(e, id);
	e->model->project(t->seen, kge_ent(e, id), kge_rel(e, rel), e);
	return t->seen;
}

static void score(struct kge_dp_triple *t, uint32_t known, uint32_t rel, enum graph_side s)
{
	const struct kge_batch *b = t->b;
	const struct kge_emb *e = b->emb;

	e->model->query(t->q, kge_ent(e, known), kge_rel(e, rel), e, s);
	for (size_t j = 0; j < b->width; j++) {
		t->scores[j] = 0;
		b->k->score[e->model->metric](&t->scores[j], t->q, candidate_row(t, t->ids[j], rel),
					      1, e->query_floats);
	}
}

/* Of one candidate: to its row and to the query. */
static void candidate_grad(struct kge_dp_triple *t, uint32_t column, uint32_t rel)
{
	const struct kge_batch *b = t->b;
	const struct kge_emb *e = b->emb;
	bool projects = e->model->project != NULL;
	struct kge_pairs p = { &column, 1, b->width, t->q, b->stride, e->query_floats };
	uint32_t id = t->ids[column];
	float *row = row_of(t, id);

	b->k->grad_pairs[e->model->metric](projects ? t->dseen : t->drow, t->dq, t->dscore,
					   candidate_row(t, id, rel), &p);
	if (projects)
		e->model->project_grad(row, t->drel, t->dseen, kge_ent(e, id), kge_rel(e, rel), e);
	else
		b->k->add(row, t->drow, e->ent_floats);
}

static void ask_side(struct kge_dp_triple *t, struct graph_triple x, enum graph_side s,
		     double share, struct rng *r)
{
	const struct kge_batch *b = t->b;
	const struct kge_emb *e = b->emb;
	uint32_t known = s == GRAPH_TAIL ? x.head : x.tail;

	t->ids[0] = s == GRAPH_TAIL ? x.tail : x.head;
	kge_draw(t->ids + 1, b->width - 1, e->n_ent, r);
	score(t, known, x.rel, s);
	kge_batch_scores(b, t->ids, t->scores);
	kge_loss_of(b->c, b->k, t->scores, t->dscore, b->width - 1, b->width - 1, t->work);
	kge_batch_weights(b, share, t->scores, t->dscore);
	memset(t->dq, 0, b->stride * sizeof(*t->dq));
	for (uint32_t j = 0; j < b->width; j++)
		if (t->dscore[j] != 0)
			candidate_grad(t, j, x.rel);
	e->model->query_grad(row_of(t, known), t->drel, t->dq, kge_ent(e, known), kge_rel(e, x.rel),
			     e, s);
}

void kge_dp_triple_grad(struct kge_dp_triple *t, struct graph_triple x,
			const enum graph_side *sides, size_t n_sides, struct rng r)
{
	memset(t->drel, 0, t->b->emb->rel_floats * sizeof(*t->drel));
	for (size_t k = 0; k < n_sides; k++)
		ask_side(t, x, sides[k], 1.0 / (double)n_sides, &r);
}

/* ---- the clip ---- */

static double sum_squares(const float *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (double)x[i] * (double)x[i];
	return sum;
}

static double length_of(const struct kge_dp_triple *t)
{
	double sum = sum_squares(t->drel, t->b->emb->rel_floats);

	for (size_t k = 0; k < t->n_rows; k++)
		sum += sum_squares(t->g + k * t->b->stride, t->b->emb->ent_floats);
	return sqrt(sum);
}

/* Whole numbers next to x; returns their sum of squares. */
static uint64_t round_row(int32_t *out, const float *x, size_t n, double scale)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < n; i++) {
		out[i] = (int32_t)lrint((double)x[i] * scale);
		sum += (uint64_t)((int64_t)out[i] * out[i]);
	}
	return sum;
}

static uint64_t round_all(struct kge_dp_triple *t, double scale)
{
	size_t stride = t->b->stride;
	int32_t *rel = t->whole + t->n_rows * stride;
	uint64_t sum = round_row(rel, t->drel, t->b->emb->rel_floats, scale);

	for (size_t k = 0; k < t->n_rows; k++)
		sum += round_row(t->whole + k * stride, t->g + k * stride, t->b->emb->ent_floats,
				 scale);
	return sum;
}

/* Rounding may make a vector longer: then again, a little shorter; at the worst it ends as zeros.
 */
static bool clip(struct kge_dp_triple *t)
{
	double most = t->units * t->units, scale;

	t->length = length_of(t);
	if (!isfinite(t->length))
		return false;
	scale = t->units / (t->length > t->clip ? t->length : t->clip);
	while ((double)round_all(t, scale) > most)
		scale *= 1 - 1e-3;
	return true;
}

static void add_row(uint32_t *sums, const int32_t *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		sums[i] += (uint32_t)x[i];
}

void kge_dp_triple_add(struct kge_dp_triple *t, uint32_t rel, uint32_t *ent_sums,
		       uint32_t *rel_sums)
{
	size_t floats = t->b->emb->ent_floats, stride = t->b->stride;

	if (!clip(t))
		return;
	for (size_t k = 0; k < t->n_rows; k++)
		add_row(ent_sums + t->rows[k] * floats, t->whole + k * stride, floats);
	add_row(rel_sums + rel * t->b->emb->rel_floats, t->whole + t->n_rows * stride,
		t->b->emb->rel_floats);
}

void kge_dp_triple_forget(struct kge_dp_triple *t)
{
	for (size_t k = 0; k < t->n_rows; k++)
		t->position_of[t->rows[k]] = GRAPH_NONE;
	t->n_rows = 0;
}
