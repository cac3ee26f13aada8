/* kge/all.c - one step of the softmax over all entities (1-vs-all).
 *
 * A query is asked once for all of its k answers a:
 *
 *   loss = k log sum_e e^s(e) - sum_a s(a),   dloss/ds(e) = k p(e) - [e is an answer]
 *
 * which is the sum of what its answers would give one by one; where answers weigh, k is the sum of
 * their weights, and s(a) and [e is an answer] count by them.  A lane scores all queries of the
 * batch against the entities it owns, turns its part of each line into probabilities among
 * its own, and learns in `kge_all_loss()` how much of all that is.  Dot products are three matrix
 * products, in floats or in bfloat16; the other metrics go by tiles (kge/kernel.h).  The phases are
 * those of kge/batch_internal.h. */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "base/parallel.h"
#include "kge/batch_internal.h"
#include "kge/each.h"
#include "kge/product.h"

/* ---- the lines of a lane: queries x its entities ---- */

static size_t lane_rows(const struct kge_lane *l)
{
	return l->ent_end - l->ent_begin;
}

/* Every query of the batch, and `rows` of the lane's entities from its i-th on. */
static struct kge_tile tile_of(const struct kge_batch *b, const struct kge_lane *l, size_t i,
			       size_t rows)
{
	return (struct kge_tile){ .q = b->q,
				  .nq = b->n_queries,
				  .q_stride = b->stride,
				  .c = kge_ent(b->emb, l->ent_begin) + i * b->emb->ent_floats,
				  .nc = rows,
				  .c_stride = b->emb->ent_floats,
				  .floats = b->emb->ent_floats };
}

/* Projecting models: every query against one row, as candidates of column 0. */
static struct kge_pairs every_query(const struct kge_batch *b, struct kge_lane *l)
{
	for (size_t q = 0; q < b->n_queries; q++)
		l->pairs[q] = (uint32_t)q << KGE_PAIR_BITS;
	return (struct kge_pairs){ .at = l->pairs,
				   .n = b->n_queries,
				   .width = lane_rows(l),
				   .q = b->q,
				   .stride = b->stride,
				   .floats = b->emb->query_floats };
}

static void projected_scores(const struct kge_batch *b, struct kge_lane *l)
{
	struct kge_pairs p = every_query(b, l);

	for (uint32_t i = 0; i < lane_rows(l); i++)
		kge_batch_score_row(b, l, l->scores + i, kge_ent(b->emb, l->ent_begin + i), &p);
}

static void raw_scores(const struct kge_batch *b, struct kge_lane *l)
{
	size_t n = lane_rows(l);
	struct kge_tile t = tile_of(b, l, 0, n);

	if (b->emb->model->project != NULL) {
		projected_scores(b, l);
		return;
	}
	if (b->sgemm)
		kge_product(&(struct kge_product){ .a = { t.q, t.q_stride, 1 },
						   .b = { t.c, 1, t.c_stride },
						   .rows = t.nq,
						   .columns = n,
						   .inner = t.floats,
						   .c = l->scores,
						   .stride = n },
			    l->product);
	for (size_t i = 0; i < n && !b->sgemm; i += KGE_ALL_BLOCK) {
		t = tile_of(b, l, i, n - i < KGE_ALL_BLOCK ? n - i : KGE_ALL_BLOCK);
		b->k->score_tile[b->emb->model->metric](l->scores + i, n, &t);
	}
}

/* What an answer counts for, 1 in the mean over the batch. */
static float answer_weighs(const struct kge_batch *b, uint32_t e)
{
	return b->answer_weights != NULL ? b->answer_scale * b->answer_weights[e] : 1.0f;
}

static double answers_weigh(const struct kge_batch *b, size_t q)
{
	struct graph_ids answers = kge_batch_answers(b, q);
	double sum = 0;

	if (b->answer_weights == NULL)
		return (double)answers.n;
	for (size_t i = 0; i < answers.n; i++)
		sum += (double)answer_weighs(b, graph_ids_at(&answers, i));
	return sum;
}

/* Raw scores become probabilities among this lane's entities (KGE_L2: over the distance). */
static void line_to_shares(const struct kge_batch *b, struct kge_lane *l, size_t q)
{
	enum kge_metric m = b->emb->model->metric;
	size_t n = lane_rows(l);
	struct graph_ids answers = kge_batch_answers(b, q);
	float *line = l->scores + q * n;

	for (size_t i = 0; i < n && m != KGE_DOT; i++)
		line[i] = -line[i]; /* gamma is in all scores, so in none */
	for (size_t i = 0; i < answers.n; i++) {
		uint32_t row = graph_ids_at(&answers, i) - l->ent_begin;

		if (row < n)
			l->loss -= (double)(answer_weighs(b, row + l->ent_begin) * line[row]);
	}
	l->part[q] = b->k->softmax(l->work, line, 1.0f, n);
	for (size_t i = 0; i < n && m == KGE_L2; i++)
		l->work[i] = line[i] < 0 ? l->work[i] / -line[i] : 0.0f;
	memcpy(line, l->work, n * sizeof(*line));
}

/* ---- the phases ---- */

void kge_all_draw(struct kge_batch *b, size_t k)
{
	size_t begin, end;

	parallel_part(b->n_queries, k, b->lanes, &begin, &end);
	for (size_t q = begin; q < end; q++) {
		uint32_t position = b->order[q];

		kge_batch_ask(b, q, position >> 1, (enum graph_side)(position & 1));
	}
}

void kge_all_score(struct kge_batch *b, size_t k)
{
	struct kge_lane *l = &b->lane[k];

	l->n_touched = 0;
	kge_batch_chain(b, l);
	if (!kge_batch_owns(b, k))
		return;
	if (lane_rows(l) > 0)
		raw_scores(b, l);
	for (size_t q = 0; q < b->n_queries; q++)
		if (lane_rows(l) > 0)
			line_to_shares(b, l, q);
		else
			l->part[q] = -INFINITY;
}

/* log sum_e e^s(e), from those of the lanes. */
static double log_sum(const struct kge_batch *b, size_t q)
{
	double most = -INFINITY, sum = 0;

	for (size_t o = 0; o < b->lanes; o++)
		most = fmax(most, (double)b->lane[o].part[q]);
	for (size_t o = 0; o < b->lanes; o++)
		sum += exp((double)b->lane[o].part[q] - most);
	return most + log(sum);
}

/* Each lane's part of the whole, times k and the query's weight in the batch. */
void kge_all_loss(struct kge_batch *b, size_t k)
{
	size_t begin, end;

	parallel_part(b->n_queries, k, b->lanes, &begin, &end);
	for (size_t q = begin; q < end; q++) {
		double all = log_sum(b, q);
		double weight = answers_weigh(b, q);

		if (kge_batch_owns(b, k)) /* or else it is counted elsewhere */
			b->lane[k].loss += weight * all;
		for (size_t o = 0; o < b->lanes; o++) {
			float *part = &b->lane[o].part[q];

			*part = (float)(weight / (double)b->n_answers * exp((double)*part - all));
		}
	}
}

/* dLoss/dmetric of an answer, less what all entities get. */
static float answer_weight(const struct kge_batch *b, struct kge_lane *l, size_t q, uint32_t e)
{
	enum kge_metric m = b->emb->model->metric;
	float share = answer_weighs(b, e) / (float)b->n_answers, distance;
	uint32_t pair = (uint32_t)q << KGE_PAIR_BITS;
	struct kge_pairs p = {
		.at = &pair, .n = 1, .q = b->q, .stride = b->stride, .floats = b->emb->query_floats
	};

	if (m != KGE_L2)
		return m == KGE_DOT ? -share : share;
	kge_batch_score_row(b, l, &distance, kge_ent(b->emb, e), &p); /* a line of width 0 */
	return distance > 0 ? share / distance : 0.0f;
}

static void line_to_weights(const struct kge_batch *b, struct kge_lane *l, size_t q)
{
	size_t n = lane_rows(l);
	struct graph_ids answers = kge_batch_answers(b, q);
	float *line = l->scores + q * n;
	float part = b->emb->model->metric == KGE_DOT ? l->part[q] : -l->part[q];

	for (size_t i = 0; i < n; i++)
		line[i] *= part;
	for (size_t i = 0; i < answers.n; i++) {
		uint32_t e = graph_ids_at(&answers, i);

		if (e - l->ent_begin < n)
			line[e - l->ent_begin] += answer_weight(b, l, q, e);
	}
}

static void step_or_wait(struct kge_batch *b, struct kge_lane *l, uint32_t e, float *g)
{
	if (b->first_known[e] == GRAPH_NONE)
		kge_batch_step_entity(b, l, e, g);
	else
		memcpy(b->late + b->first_known[e] * b->stride, g, b->emb->ent_floats * sizeof(*g));
}

/* Gradients of the queries: with sgemm of all in one product, else block by block. */
static void begin_gradients(const struct kge_batch *b, struct kge_lane *l)
{
	size_t n = lane_rows(l);
	struct kge_tile t = tile_of(b, l, 0, n);

	memset(l->dq, 0, b->n_queries * b->stride * sizeof(*l->dq));
	if (b->sgemm && n > 0)
		kge_product(&(struct kge_product){ .a = { l->scores, n, 1 },
						   .b = { t.c, t.c_stride, 1 },
						   .rows = t.nq,
						   .columns = t.floats,
						   .inner = n,
						   .c = l->dq,
						   .stride = t.q_stride },
			    l->product);
}

static struct kge_matrix all_queries(const struct kge_batch *b)
{
	return (struct kge_matrix){ b->q, b->stride, 1 };
}

static void projected_gradients(const struct kge_batch *b, struct kge_lane *l, size_t i,
				size_t rows)
{
	struct kge_pairs p = every_query(b, l);

	for (size_t j = 0; j < rows; j++)
		kge_batch_grad_row(b, l, l->row + j * b->emb->ent_floats, l->scores + i + j,
				   kge_ent(b->emb, l->ent_begin + (uint32_t)(i + j)), &p);
}

/* Gradients of a block of rows from the lane's i-th on, into l->row.  queries: laid out, or NULL.
 */
static void block_gradients(const struct kge_batch *b, struct kge_lane *l, size_t i, size_t rows,
			    const struct kge_packed *queries)
{
	struct kge_tile t = tile_of(b, l, i, rows);

	if (b->emb->model->project != NULL) {
		projected_gradients(b, l, i, rows);
		return;
	}
	if (b->sgemm) {
		struct kge_product p = { .a = { l->scores + i, 1, lane_rows(l) },
					 .b = all_queries(b),
					 .rows = rows,
					 .columns = t.floats,
					 .inner = t.nq,
					 .c = l->row,
					 .stride = t.floats };

		if (queries != NULL)
			kge_product_packed(&p, queries, l->product);
		else
			kge_product(&p, l->product);
		return;
	}
	memset(l->row, 0, rows * t.floats * sizeof(*l->row));
	b->k->grad_tile[b->emb->model->metric](l->dq, l->row, l->scores + i, lane_rows(l), &t);
}

void kge_all_backward_rows(struct kge_batch *b, size_t k)
{
	struct kge_lane *l = &b->lane[k];
	size_t n = lane_rows(l);
	struct kge_matrix q = all_queries(b);
	struct kge_packed *queries = NULL;

	if (!kge_batch_owns(b, k))
		return;
	for (size_t i = 0; i < b->n_queries; i++)
		line_to_weights(b, l, i);
	begin_gradients(b, l);
	if (l->product != NULL)
		queries = kge_packed_new(&q, b->n_queries, b->emb->ent_floats);
	if (b->each != NULL)
		kge_each_begin(b, k);
	for (size_t i = 0; i < n; i += KGE_ALL_BLOCK) {
		size_t rows = n - i < KGE_ALL_BLOCK ? n - i : KGE_ALL_BLOCK;

		block_gradients(b, l, i, rows, queries);
		if (b->each != NULL)
			kge_each_rows(b, k, l->ent_begin + (uint32_t)i, rows, l->row);
		for (size_t j = 0; j < rows; j++)
			step_or_wait(b, l, l->ent_begin + (uint32_t)(i + j),
				     l->row + j * b->emb->ent_floats);
	}
	kge_packed_free(queries);
}
