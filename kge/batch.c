#include "kge/batch_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/blas.h"
#include "kge/each.h"
#include "kge/loss.h"
#include "kge/others_internal.h"
#include "kge/product.h"
#include "kge/terms.h"

/* ---- memory ---- */

/* Against all entities a batch counts queries already. */
static size_t queries_max(const struct kge_batch *b)
{
	return b->most * (b->c->corrupt == KGE_CORRUPT_BOTH && b->c->negatives > 0 ? 2 : 1);
}

/* The lane that owns an entity: about e * lanes / n_ent. */
static inline size_t owner(const struct kge_batch *b, uint32_t e)
{
	return (size_t)((e * b->lane_scale) >> 32);
}

/* The first entity of lane k. */
static uint32_t lane_begin(const struct kge_batch *b, size_t k)
{
	uint64_t e = (((uint64_t)k << 32) + b->lane_scale - 1) / b->lane_scale;

	return k >= b->lanes || e > b->emb->n_ent ? b->emb->n_ent : (uint32_t)e;
}

static bool projects(const struct kge_batch *b)
{
	return b->emb->model->project != NULL;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

/* Where a lane's gradient of a relation of the batch stands: by the first query that asks it, so
 * that few of many relations take little memory. */
static size_t drel_slot(const struct kge_batch *b, uint32_t rel)
{
	return queries_max(b) < b->emb->n_rel ? b->first_rel[rel] : rel;
}

/* Whether b is only asked how much that would be; counts it. */
static bool is_counted(struct kge_batch *b, size_t n, size_t size)
{
	b->bytes += (double)n * (double)size;
	return b->counts;
}

void *kge_batch_array(struct kge_batch *b, size_t n, size_t size)
{
	return is_counted(b, n, size) ? NULL : mem_array(n, size);
}

void *kge_batch_aligned(struct kge_batch *b, size_t n, size_t size)
{
	return is_counted(b, n, size) ? NULL : mem_aligned(n, size);
}

static void lane_init_projection(struct kge_lane *l, struct kge_batch *b)
{
	const struct kge_emb *e = b->emb;
	size_t nq = queries_max(b), positions = nq < e->n_rel ? nq : e->n_rel;

	l->seen = kge_batch_aligned(b, e->query_floats, sizeof(float));
	l->dseen = kge_batch_aligned(b, e->query_floats, sizeof(float));
	l->drel = kge_batch_aligned(b, positions, e->rel_floats * sizeof(float));
	l->has_drel = kge_batch_array(b, positions, sizeof(*l->has_drel));
}

/* A batch's pairs may all be of one lane's rows, so that each has room for them.  Most of it is not
 * touched where they are spread; but nothing bounds how they are over all batches, so all of it
 * counts. */
static void lane_init(struct kge_lane *l, struct kge_batch *b, size_t k)
{
	size_t nq = b->shared != NULL ? 0 : queries_max(b), pairs = nq * b->width, begin, end, rows;
	bool all = b->c->negatives == 0, own = kge_batch_owns(b, k);

	l->ent_begin = lane_begin(b, k);
	l->ent_end = lane_begin(b, k + 1);
	parallel_part(b->emb->n_rel, k, b->lanes, &begin, &end);
	l->rel_begin = (uint32_t)begin;
	l->rel_end = (uint32_t)end;
	rows = l->ent_end - l->ent_begin;
	l->pairs = kge_batch_array(b, pairs, sizeof(*l->pairs));
	l->sorted = kge_batch_array(b, pairs, sizeof(*l->sorted));
	l->touched = kge_batch_array(b, rows + 1, sizeof(*l->touched));
	l->touched_rel = kge_batch_array(b, end - begin, sizeof(*l->touched_rel));
	l->scores = kge_batch_aligned(b, !own ? 0 : all ? nq * rows : pairs, sizeof(float));
	l->dq = kge_batch_aligned(b, own || k == 0 ? nq : 0, b->stride * sizeof(float));
	l->row = kge_batch_aligned(
		b, larger((all ? KGE_ALL_BLOCK : 1) * b->stride, b->emb->rel_floats),
		sizeof(float));
	l->work = kge_batch_aligned(b, !own ? 0 : all ? rows : 4 * b->width, sizeof(float));
	l->part = kge_batch_aligned(b, all ? nq : 0, sizeof(float));
	if (own && all && b->sgemm && b->c->precision == KGE_BFLOAT16) {
		l->product = kge_batch_aligned(b, 1, kge_product_room());
		(void)is_counted(b, nq, b->stride * sizeof(uint16_t)); /* laid out for it */
	}
	if (projects(b))
		lane_init_projection(l, b);
}

static void lane_drop_teacher(struct kge_lane *l)
{
	free(l->taught);
	free(l->q);
	free(l->taught_c);
	l->taught = l->q = l->taught_c = NULL;
}

static void lane_set_teacher(struct kge_lane *l, const struct kge_batch *b)
{
	const struct kge_emb *t = b->terms.teacher;

	lane_drop_teacher(l);
	if (t == NULL || b->terms.distill == 0 || b->shared != NULL)
		return;
	l->taught = mem_aligned(b->width, sizeof(float));
	l->q = mem_aligned(t->query_floats + KGE_PAD, sizeof(float));
	l->taught_c = mem_aligned(t->query_floats, sizeof(float));
}

static void lane_release(struct kge_lane *l)
{
	free(l->pairs);
	free(l->sorted);
	free(l->touched);
	free(l->touched_rel);
	free(l->scores);
	free(l->dq);
	free(l->row);
	free(l->work);
	free(l->part);
	free(l->product);
	free(l->seen);
	free(l->dseen);
	free(l->drel);
	free(l->has_drel);
	lane_drop_teacher(l);
}

static uint32_t *all_none(struct kge_batch *b, size_t n)
{
	uint32_t *x = kge_batch_array(b, n, sizeof(*x));

	for (size_t i = 0; x != NULL && i < n; i++)
		x[i] = GRAPH_NONE;
	return x;
}

void kge_batch_measure(struct kge_batch *b)
{
	b->width = (size_t)b->c->negatives + 1;
	b->stride = larger(b->emb->ent_floats, b->emb->query_floats);
	if (!projects(b)) /* or else gradients of relations are summed elsewhere */
		b->stride = larger(b->stride, b->emb->rel_floats);
	b->stride = (b->stride + KGE_PAD - 1) / KGE_PAD * KGE_PAD;
}

double kge_batch_bytes(const struct kge_train_config *c, const struct kge_emb *shape, size_t most)
{
	struct kge_emb tables = *shape;
	struct kge_batch b = { .c = c, .emb = &tables, .most = most, .counts = true };

	kge_batch_init(&b, c->threads < PARALLEL_MAX ? c->threads : PARALLEL_MAX);
	kge_batch_release(&b);
	return b.bytes;
}

/* Memory that the phases below need, and shared.c does not. */
static void init_pairs(struct kge_batch *b, size_t nq)
{
	b->ids = kge_batch_array(b, nq * b->width, sizeof(*b->ids));
	b->q = kge_batch_aligned(b, nq, b->stride * sizeof(float));
	b->late = kge_batch_aligned(b, nq, b->stride * sizeof(float));
	b->dscore = kge_batch_aligned(b, nq * b->width, sizeof(float));
	b->count = kge_batch_array(b, b->emb->n_ent, sizeof(*b->count));
	b->at = kge_batch_array(b, b->emb->n_ent, sizeof(*b->at));
	b->first_known = all_none(b, b->emb->n_ent);
	b->next_known = kge_batch_array(b, nq, sizeof(*b->next_known));
}

bool kge_batch_multiplies(const struct kge_train_config *c, const struct kge_model *m,
			  const struct kge_kernels *k)
{
	return m->metric == KGE_DOT && k != &kge_kernels_scalar &&
	       (kge_sgemm_is_fast() || (c->precision == KGE_BFLOAT16 && kge_product_is_fast()));
}

void kge_batch_init(struct kge_batch *b, size_t lanes)
{
	size_t nq = queries_max(b);

	kge_batch_measure(b);
	b->sgemm = kge_batch_multiplies(b->c, b->emb->model, b->k);
	b->queries = kge_batch_array(b, nq, sizeof(*b->queries));
	b->first_rel = all_none(b, b->emb->n_rel);
	b->next_rel = kge_batch_array(b, nq, sizeof(*b->next_rel));
	if (b->c->reg != KGE_REG_NONE)
		b->positives = kge_batch_array(b, b->emb->n_ent, sizeof(*b->positives));
	b->lanes = lanes;
	if (b->others == NULL)
		b->n_own = lanes;
	assert(b->most > 0 && b->most <= b->c->batch);
	assert(b->n_own > 0 && b->first_own + b->n_own <= lanes);
	b->lane_scale = ((uint64_t)lanes << 32) / (b->emb->n_ent > 0 ? b->emb->n_ent : 1);
	if (kge_shared_fits(b->c, b->emb))
		b->shared = kge_shared_new(b);
	else
		init_pairs(b, nq);
	b->each = kge_each_new(b);
	for (size_t k = 0; k < lanes; k++)
		lane_init(&b->lane[k], b, k);
}

void kge_batch_set_terms(struct kge_batch *b, const struct kge_terms *t)
{
	kge_pull_free(b->pull);
	b->pull = kge_pull_new(t, b->emb->n_ent, b->emb->ent_floats, b->k);
	b->terms = t != NULL ? *t : (struct kge_terms){ 0 };
	if (b->terms.interfere != NULL) {
		b->interfere = *b->terms.interfere;
		b->terms.interfere = &b->interfere;
	}
	for (size_t k = 0; k < b->lanes; k++)
		lane_set_teacher(&b->lane[k], b);
	if (b->shared != NULL)
		kge_shared_set_teacher(b);
}

void kge_batch_release(struct kge_batch *b)
{
	free(b->queries);
	free(b->ids);
	free(b->q);
	free(b->late);
	free(b->dscore);
	free(b->count);
	free(b->at);
	free(b->first_known);
	free(b->first_rel);
	free(b->next_known);
	free(b->next_rel);
	free(b->positives);
	kge_pull_free(b->pull);
	kge_shared_free(b->shared);
	kge_each_free(b->each);
	for (size_t k = 0; k < b->lanes; k++)
		lane_release(&b->lane[k]);
}

/* ---- draw ---- */

struct rng kge_batch_stream(const struct kge_batch *b, size_t position, enum graph_side s)
{
	return rng_stream(&b->rng, 2 * (uint64_t)position + (s == GRAPH_HEAD ? 1 : 0));
}

/* All but its row. */
static void make_query(const struct kge_batch *b, struct kge_query *x, uint32_t *ids,
		       uint32_t triple, enum graph_side s)
{
	struct graph_triple t = b->train->at[triple];

	*x = (struct kge_query){ triple, s == GRAPH_TAIL ? t.head : t.tail, t.rel, s };
	ids[0] = s == GRAPH_TAIL ? t.tail : t.head;
}

void kge_batch_draw(const struct kge_batch *b, uint32_t *out, size_t n,
		    const struct graph_ids *known, struct rng *r)
{
	if (b->slots != NULL)
		kge_draw_in_slots(out, n, b->slots, known, r);
	else if (known->n == 0)
		kge_draw(out, n, b->emb->n_ent, r);
	else
		kge_draw_filtered(out, n, b->emb->n_ent, known, r);
}

static void draw_own(const struct kge_batch *b, const struct kge_query *x, uint32_t *ids,
		     struct rng r)
{
	uint32_t n_list;
	const uint32_t *list = kge_sampler_list(b->sampler, x->side, x->rel, &n_list);
	struct graph_ids known = { 0 };

	if (b->answers != NULL)
		known = graph_answers_of(b->answers, x->triple, x->side);
	if (list != NULL && n_list >= known.n + KGE_TYPED_LEAST)
		kge_draw_among(ids + 1, b->c->negatives, list, n_list, &known, &r);
	else
		kge_batch_draw(b, ids + 1, b->c->negatives, &known, &r);
}

void kge_batch_draw_alone(const struct kge_batch *b, struct kge_query *x, uint32_t *ids,
			  uint32_t triple, size_t position, enum graph_side s)
{
	make_query(b, x, ids, triple, s);
	draw_own(b, x, ids, kge_batch_stream(b, position, s));
}

void kge_batch_ask(struct kge_batch *b, size_t q, uint32_t triple, enum graph_side s)
{
	struct kge_query *x = &b->queries[q];

	make_query(b, x, b->ids + q * b->width, triple, s);
	b->emb->model->query(b->q + q * b->stride, kge_ent(b->emb, x->known),
			     kge_rel(b->emb, x->rel), b->emb, s);
}

/* Queries q..end-1 share a block of negatives; each hides those that are true for it. */
static void draw_shared(struct kge_batch *b, size_t q, size_t end, struct rng r)
{
	uint32_t *block = b->ids + q * b->width + 1;

	kge_batch_draw(b, block, b->c->negatives, &(struct graph_ids){ 0 }, &r);
	for (size_t i = q + 1; i < end; i++)
		memcpy(b->ids + i * b->width + 1, block, b->c->negatives * sizeof(*block));
	for (size_t i = q; i < end && b->answers != NULL; i++) {
		const struct kge_query *x = &b->queries[i];
		struct graph_ids known = graph_answers_of(b->answers, x->triple, x->side);

		kge_mask_answers(b->ids + i * b->width + 1, b->c->negatives, &known);
	}
}

enum graph_side kge_batch_side(const struct kge_batch *b, uint32_t triple, size_t position,
			       size_t half)
{
	struct rng r;

	if (kge_sampler_has_sides(b->sampler)) {
		r = rng_stream(&b->rng, ~(uint64_t)position); /* far from those of the negatives */
		return kge_sampler_side(b->sampler, b->train->at[triple].rel, &r);
	}
	if (b->c->corrupt == KGE_CORRUPT_ALTERNATE)
		return b->number % 2 == 1 ? GRAPH_TAIL : GRAPH_HEAD;
	return half == 0 ? GRAPH_TAIL : GRAPH_HEAD;
}

/* Chunks of queries on one side, so many to each thread. */
static void draw_negatives(struct kge_batch *b, size_t k)
{
	bool own = b->c->shared_chunk <= 1 || kge_sampler_has_sides(b->sampler);
	size_t chunk = own ? 1 : b->c->shared_chunk;
	size_t chunks = (b->n + chunk - 1) / chunk, begin, end;

	parallel_part(chunks * (b->n_queries / b->n), k, b->lanes, &begin, &end);
	for (size_t u = begin; u < end; u++) {
		size_t half = u / chunks, i = u % chunks * chunk;
		size_t stop = i + chunk < b->n ? i + chunk : b->n, q = half * b->n;
		enum graph_side s = kge_batch_side(b, b->order[i], b->first + i, half);

		for (size_t j = i; j < stop; j++)
			kge_batch_ask(b, q + j, b->order[j], s);
		if (chunk > 1)
			draw_shared(b, q + i, q + stop, kge_batch_stream(b, b->first + i, s));
		else
			draw_own(b, &b->queries[q + i], b->ids + (q + i) * b->width,
				 kge_batch_stream(b, b->first + i, s));
	}
}

/* ---- score ---- */

/* The pairs of this lane's rows, in the order of the queries. */
static size_t collect(const struct kge_batch *b, struct kge_lane *l)
{
	uint32_t begin = l->ent_begin, size = l->ent_end - begin, *out = l->pairs;
	size_t n = 0;

	for (size_t q = 0; q < b->n_queries; q++) {
		const uint32_t *ids = b->ids + q * b->width;
		uint32_t pair = (uint32_t)q << KGE_PAIR_BITS;

		for (size_t j = 0; j < b->width; j++) {
			out[n] = pair + (uint32_t)j;
			n += ids[j] - begin < size; /* GRAPH_NONE is in no lane */
		}
	}
	return n;
}

static inline uint32_t pair_id(const struct kge_batch *b, uint32_t pair)
{
	return b->ids[(pair >> KGE_PAIR_BITS) * b->width + (pair & 0xffff)];
}

/* Counting sort by row. */
static void sort_pairs(struct kge_batch *b, struct kge_lane *l)
{
	size_t n = collect(b, l), touched = 0;
	uint32_t at = 0;

	for (size_t i = 0; i < n; i++) {
		uint32_t e = pair_id(b, l->pairs[i]);

		l->touched[touched] = e;
		touched += b->count[e]++ == 0;
	}
	for (size_t i = 0; i < touched; i++) {
		uint32_t e = l->touched[i];

		b->at[e] = at;
		at += b->count[e];
	}
	for (size_t i = 0; i < n; i++)
		l->sorted[b->at[pair_id(b, l->pairs[i])]++] = l->pairs[i];
	l->n_touched = touched;
}

struct graph_ids kge_batch_answers(const struct kge_batch *b, size_t q)
{
	const struct kge_query *x = &b->queries[q];

	return graph_answers_part(b->answers, x->triple, x->side, b->c->query_answers);
}

/* How often each of this lane's entities is part of a positive. */
static void count_positives(struct kge_batch *b, const struct kge_lane *l)
{
	uint32_t size = l->ent_end - l->ent_begin;

	for (size_t q = 0; q < b->n_queries; q++) {
		bool drawn = b->c->negatives > 0;
		struct graph_ids all =
			drawn ? (struct graph_ids){ .n = 1 } : kge_batch_answers(b, q);

		if (b->queries[q].known - l->ent_begin < size)
			b->positives[b->queries[q].known] += (uint32_t)all.n;
		for (size_t i = 0; i < all.n; i++) {
			uint32_t e = drawn ? b->ids[q * b->width] : graph_ids_at(&all, i);

			if (e - l->ent_begin < size)
				b->positives[e]++;
		}
	}
}

/* Chains of the queries that know this lane's rows; from the last, so that chains ascend. */
void kge_batch_chain(struct kge_batch *b, struct kge_lane *l)
{
	if (b->positives != NULL && kge_batch_owns(b, (size_t)(l - b->lane)))
		count_positives(b, l);
	l->n_touched_rel = 0;
	for (size_t q = b->n_queries; q-- > 0;) {
		uint32_t e = b->queries[q].known, r = b->queries[q].rel;

		if (e - l->ent_begin < l->ent_end - l->ent_begin) {
			if (b->first_known[e] == GRAPH_NONE && b->count[e] == 0)
				l->touched[l->n_touched++] = e;
			b->next_known[q] = b->first_known[e];
			b->first_known[e] = (uint32_t)q;
		}
		if (r - l->rel_begin < l->rel_end - l->rel_begin) {
			if (b->first_rel[r] == GRAPH_NONE)
				l->touched_rel[l->n_touched_rel++] = r;
			b->next_rel[q] = b->first_rel[r];
			b->first_rel[r] = (uint32_t)q;
		}
	}
}

static struct kge_pairs pairs_of(const struct kge_batch *b, const struct kge_lane *l, uint32_t e)
{
	return (struct kge_pairs){ .at = l->sorted + (b->at[e] - b->count[e]),
				   .n = b->count[e],
				   .width = b->width,
				   .q = b->q,
				   .stride = b->stride,
				   .floats = b->emb->query_floats };
}

/* The pairs from p->at[from] on that ask by the same relation. */
static struct kge_pairs run_of(const struct kge_batch *b, const struct kge_pairs *p, size_t from)
{
	struct kge_pairs run = *p;
	uint32_t rel = b->queries[p->at[from] >> KGE_PAIR_BITS].rel;

	run.at += from;
	run.n = 1;
	while (from + run.n < p->n && b->queries[run.at[run.n] >> KGE_PAIR_BITS].rel == rel)
		run.n++;
	return run;
}

static uint32_t run_rel(const struct kge_batch *b, const struct kge_pairs *run)
{
	return b->queries[run->at[0] >> KGE_PAIR_BITS].rel;
}

static void prefetch_row(const struct kge_batch *b, const struct kge_lane *l, size_t i)
{
	const float *row;

	if (i >= l->n_touched)
		return;
	row = kge_ent(b->emb, l->touched[i]);
	for (size_t k = 0; k < b->emb->ent_floats; k += 16)
		__builtin_prefetch(row + k);
}

void kge_batch_score_row(const struct kge_batch *b, struct kge_lane *l, float *line,
			 const float *row, const struct kge_pairs *p)
{
	kge_score_fn *fn = b->k->score_pairs[b->emb->model->metric];
	struct kge_pairs run;

	if (!projects(b)) {
		fn(line, row, p);
		return;
	}
	for (size_t from = 0; from < p->n; from += run.n) {
		run = run_of(b, p, from);
		b->emb->model->project(l->seen, row, kge_rel(b->emb, run_rel(b, &run)), b->emb);
		fn(line, l->seen, &run);
	}
}

static void score(struct kge_batch *b, size_t k)
{
	struct kge_lane *l = &b->lane[k];

	sort_pairs(b, l);
	kge_batch_chain(b, l);
	for (size_t i = 0; i < l->n_touched; i++) {
		uint32_t e = l->touched[i];
		struct kge_pairs p;

		prefetch_row(b, l, i + 1);
		if (b->count[e] == 0)
			continue;
		p = pairs_of(b, l, e);
		kge_batch_score_row(b, l, l->scores, kge_ent(b->emb, e), &p);
	}
}

/* ---- loss ---- */

/* kge_batch_scores() for a line of raw scores of any tables. */
static size_t scores_of(const struct kge_batch *b, const struct kge_emb *emb, const uint32_t *ids,
			float *scores)
{
	bool dot = emb->model->metric == KGE_DOT;
	float base = dot ? 0.0f : emb->gamma, sign = dot ? 1.0f : -1.0f;
	size_t there = 0;

	for (size_t j = 0; j < b->width; j++) {
		bool none = ids[j] == GRAPH_NONE;

		scores[j] = none ? KGE_NO_SCORE : base + sign * scores[j];
		there += !none;
	}
	return there - 1; /* less the true answer */
}

size_t kge_batch_scores(const struct kge_batch *b, const uint32_t *ids, float *scores)
{
	return scores_of(b, b->emb, ids, scores);
}

double kge_batch_share(const struct kge_batch *b, const struct kge_query *x)
{
	return b->weights != NULL ? (double)b->weights[x->triple] / b->weight
				  : 1.0 / (double)b->n_queries;
}

void kge_batch_weights(const struct kge_batch *b, double share, const float *scores, float *dscore)
{
	enum kge_metric m = b->emb->model->metric;
	float scale = (float)(m == KGE_DOT ? share : -share);

	for (size_t j = 0; j < b->width; j++)
		dscore[j] *= scale;
	for (size_t j = 0; j < b->width && m == KGE_L2; j++) {
		float distance = b->emb->gamma - scores[j];

		dscore[j] = distance > 0 ? dscore[j] / distance : 0.0f;
	}
}

double kge_batch_loss(const struct kge_batch *b, double share, const float *scores, float *dscore,
		      size_t there, const float *taught, float *work)
{
	const struct kge_interference *x = b->terms.interfere;
	size_t n = b->width - 1;
	/* what is a plain mean over queries has no weight of subsampling */
	double plain = 1 / (share * (double)b->n_queries), weight = (double)b->terms.distill;
	double loss, sum, theirs = 0;

	if (b->terms.adaptive && weight > 0)
		theirs = kge_loss_of(b->c, b->k, taught, dscore, n, there, work);
	loss = x != NULL ? kge_hard_of(x, b->c, b->k, scores, dscore, n, there, work)
			 : kge_loss_of(b->c, b->k, scores, dscore, n, there, work);
	sum = loss / plain;
	if (x != NULL && x->soft > 0)
		sum += kge_soft_of(x, scores, dscore, n, there, (float)plain);
	if (b->terms.adaptive)
		weight = loss + theirs > 0 ? weight / (loss + theirs) : 0;
	if (weight > 0)
		sum += weight * kge_distill_of(b->k, scores, taught, dscore, n,
					       (float)(weight * plain), work);
	return sum;
}

/* The teacher's scores of a query's candidates, by the kernel that the student's scores come
 * from. */
static void ask_teacher(const struct kge_batch *b, const struct kge_lane *l, size_t q)
{
	const struct kge_emb *t = b->terms.teacher;
	const struct kge_query *x = &b->queries[q];
	const uint32_t *ids = b->ids + q * b->width;
	uint32_t j;
	struct kge_pairs one = { &j, 1, b->width, l->q, 0, t->query_floats };

	t->model->query(l->q, kge_ent(t, x->known), kge_rel(t, x->rel), t, x->side);
	for (j = 0; j < b->width; j++) {
		const float *c = ids[j] == GRAPH_NONE ? NULL : kge_ent(t, ids[j]);

		if (c != NULL && t->model->project != NULL) {
			t->model->project(l->taught_c, c, kge_rel(t, x->rel), t);
			c = l->taught_c;
		}
		if (c != NULL)
			b->k->score_pairs[t->model->metric](l->taught, c, &one);
	}
	scores_of(b, t, ids, l->taught);
}

/* A query's line of raw scores, from the lanes that made them. */
static void gather(const struct kge_batch *b, size_t q, float *out)
{
	const uint32_t *ids = b->ids + q * b->width;

	for (size_t j = 0; j < b->width; j++) {
		size_t o = ids[j] == GRAPH_NONE || b->lanes == 1 ? 0 : owner(b, ids[j]);

		out[j] = b->lane[o].scores[q * b->width + j];
	}
}

static void loss_of_scores(struct kge_batch *b, size_t k)
{
	struct kge_lane *l = &b->lane[k];
	float *scores = l->work;
	size_t begin, end;

	parallel_part(b->n_queries, k, b->lanes, &begin, &end);
	for (size_t q = begin; q < end; q++) {
		float *dscore = b->dscore + q * b->width;
		double share = kge_batch_share(b, &b->queries[q]);
		size_t there;

		gather(b, q, scores);
		there = kge_batch_scores(b, b->ids + q * b->width, scores);
		if (l->taught != NULL)
			ask_teacher(b, l, q);
		l->loss += kge_batch_loss(b, share, scores, dscore, there, l->taught,
					  scores + b->width);
		kge_batch_weights(b, share, scores, dscore);
	}
}

/* ---- backward: rows ---- */

/* The part of a row that was in so many positives. */
static void regularize(const struct kge_batch *b, struct kge_lane *l, size_t times, float *g,
		       const float *row, size_t floats)
{
	double weight = (double)times * (double)b->c->reg_weight;
	bool complex = b->emb->model->metric == KGE_MODULUS ||
		       (b->emb->model->metric == KGE_DOT && floats == 2 * b->emb->dim);

	l->loss += weight * kge_reg_of(b->c->reg, g, row, floats, complex,
				       (float)(weight / (double)b->n_answers));
}

void kge_batch_step_entity(struct kge_batch *b, struct kge_lane *l, uint32_t e, float *gradient)
{
	float *row = kge_ent(b->emb, e);

	if (b->positives != NULL && b->positives[e] > 0)
		regularize(b, l, b->positives[e], gradient, row, b->emb->ent_floats);
	if (b->positives != NULL)
		b->positives[e] = 0;
	if (b->pull != NULL)
		l->loss += (double)b->n_answers * kge_pull_row(b->pull, e, row, gradient);
	if (b->own_step != NULL)
		b->own_step(b->step_ctx, &b->step, e, row, gradient);
	else
		kge_optimizer_row(b->ent, b->c->optimizer, b->k, &b->step, e, row, gradient);
	if (b->c->normalize)
		kge_ent_into_unit_ball(b->emb, e);
	if (b->pull != NULL)
		kge_pull_moved(b->pull, e, row);
}

/* Nothing is its gradient, but for what the terms add; the lane's row is zero before and after. */
void kge_batch_step_untouched(struct kge_batch *b, struct kge_lane *l, uint32_t e)
{
	kge_batch_step_entity(b, l, e, l->row);
	if (b->pull != NULL)
		memset(l->row, 0, b->stride * sizeof(*l->row));
}

/* Where a lane sums its gradient of a relation. */
static float *relation_gradient(const struct kge_batch *b, struct kge_lane *l, uint32_t rel)
{
	size_t floats = b->emb->rel_floats, position = drel_slot(b, rel);
	float *g = l->drel + position * floats;

	if (!l->has_drel[position])
		memset(g, 0, floats * sizeof(*g));
	l->has_drel[position] = true;
	return g;
}

void kge_batch_grad_row(const struct kge_batch *b, struct kge_lane *l, float *g,
			const float *weight, const float *row, const struct kge_pairs *p)
{
	const struct kge_emb *e = b->emb;
	kge_grad_fn *fn = b->k->grad_pairs[e->model->metric];
	struct kge_pairs run;

	if (!projects(b)) {
		fn(g, l->dq, weight, row, p);
		return;
	}
	memset(g, 0, e->ent_floats * sizeof(*g));
	for (size_t from = 0; from < p->n; from += run.n) {
		uint32_t rel;

		run = run_of(b, p, from);
		rel = run_rel(b, &run);
		e->model->project(l->seen, row, kge_rel(e, rel), e);
		fn(l->dseen, l->dq, weight, l->seen, &run);
		e->model->project_grad(g, relation_gradient(b, l, rel), l->dseen, row,
				       kge_rel(e, rel), e);
	}
}

/* Whether relations have a row for each side: the reciprocal models. */
static bool has_sides(const struct kge_emb *e)
{
	return e->model->metric == KGE_DOT && e->rel_floats == 2 * e->ent_floats;
}

/* Positives of the queries from q on that have its relation, and the row at `side` of it. */
static size_t positives_in_chain(const struct kge_batch *b, size_t q, size_t side)
{
	size_t sum = 0, n = 1;

	for (; q != GRAPH_NONE; q = b->next_rel[q]) {
		if (has_sides(b->emb) && b->queries[q].side != (enum graph_side)side)
			continue;
		if (b->c->negatives == 0)
			n = kge_batch_answers(b, q).n;
		sum += n;
	}
	return sum;
}

void kge_batch_step_relation(struct kge_batch *b, struct kge_lane *l, uint32_t r, float *gradient)
{
	size_t rows = has_sides(b->emb) ? 2 : 1, floats = b->emb->rel_floats / rows;
	bool reg = b->positives != NULL && b->emb->model->metric != KGE_MODULUS;

	if (b->terms.freeze_relations)
		return;
	if (projects(b)) /* what projects is no vector to be kept short */
		floats = b->emb->query_floats;
	for (size_t s = 0; s < rows && reg; s++)
		regularize(b, l, positives_in_chain(b, b->first_rel[r], s), gradient + s * floats,
			   kge_rel(b->emb, r) + s * floats, floats);
	kge_optimizer_row(b->rel, b->c->optimizer, b->k, &b->step, r, kge_rel(b->emb, r), gradient);
}

static void backward_row(struct kge_batch *b, struct kge_lane *l, uint32_t e)
{
	bool waits = b->first_known[e] != GRAPH_NONE;
	float *g = waits ? b->late + b->first_known[e] * b->stride : l->row;
	struct kge_pairs p = pairs_of(b, l, e);

	if (p.n > 0)
		kge_batch_grad_row(b, l, g, b->dscore, kge_ent(b->emb, e), &p);
	else
		memset(g, 0, b->stride * sizeof(*g));
	if (!waits)
		kge_batch_step_entity(b, l, e, g);
}

static void backward_rows(struct kge_batch *b, size_t k)
{
	struct kge_lane *l = &b->lane[k];

	memset(l->dq, 0, b->n_queries * b->stride * sizeof(*l->dq));
	for (size_t i = 0; i < l->n_touched; i++) {
		prefetch_row(b, l, i + 1);
		if (i + 1 < l->n_touched)
			kge_optimizer_prefetch(b->ent, l->touched[i + 1]);
		backward_row(b, l, l->touched[i]);
	}
}

/* ---- backward: query ---- */

/* The query's row in lane 0 becomes the gradient of the known row, and that in q of the
 * relation, unless relations are wider and summed by lane. */
static void backward_query(struct kge_batch *b, size_t k)
{
	struct kge_emb *e = b->emb;
	struct kge_lane *l = &b->lane[k];
	float *sum = l->row;
	size_t begin, end;

	parallel_part(b->n_queries, k, b->lanes, &begin, &end);
	for (size_t q = begin; q < end; q++) {
		const struct kge_query *x = &b->queries[q];
		size_t at = q * b->stride;
		float *dknown = b->lane[0].dq + at, *drel = b->q + at;

		memcpy(sum, dknown, e->query_floats * sizeof(*sum));
		for (size_t o = 1; o < kge_batch_summed(b); o++)
			b->k->add(sum, b->lane[o].dq + at, e->query_floats);
		memset(dknown, 0, e->ent_floats * sizeof(*dknown));
		if (projects(b))
			drel = relation_gradient(b, l, x->rel);
		else
			memset(drel, 0, e->rel_floats * sizeof(*drel));
		e->model->query_grad(dknown, drel, sum, kge_ent(e, x->known), kge_rel(e, x->rel), e,
				     x->side);
		if (b->each != NULL)
			kge_each_known(b, q, dknown);
	}
}

/* ---- apply ---- */

static void apply_entities(struct kge_batch *b, struct kge_lane *l)
{
	bool own = kge_batch_owns(b, (size_t)(l - b->lane));

	for (size_t i = 0; i < l->n_touched; i++) {
		uint32_t e = l->touched[i], q = b->first_known[e];
		float *g;

		b->count[e] = 0;
		b->first_known[e] = GRAPH_NONE;
		if (q == GRAPH_NONE || !own)
			continue;
		g = b->late + q * b->stride;
		for (; q != GRAPH_NONE; q = b->next_known[q])
			b->k->add(g, b->lane[0].dq + q * b->stride, b->emb->ent_floats);
		kge_batch_step_entity(b, l, e, g);
	}
}

/* A relation's gradient, from its queries in their order... */
static float *sum_queries(const struct kge_batch *b, uint32_t r)
{
	uint32_t q = b->first_rel[r];
	float *g = b->q + q * b->stride;

	while ((q = b->next_rel[q]) != GRAPH_NONE)
		b->k->add(g, b->q + q * b->stride, b->emb->rel_floats);
	return g;
}

/* ... or from the lanes that have summed some of it, which are rid of it then. */
static float *sum_lanes(struct kge_batch *b, uint32_t r)
{
	size_t position = drel_slot(b, r);
	float *g = NULL;

	for (size_t o = 0; o < b->lanes; o++) {
		float *part = b->lane[o].drel + position * b->emb->rel_floats;

		if (!b->lane[o].has_drel[position])
			continue;
		b->lane[o].has_drel[position] = false;
		if (g != NULL)
			b->k->add(g, part, b->emb->rel_floats);
		else
			g = part;
	}
	return g;
}

/* Relations that no query asks, where the gradient is of what each positive adds alone. */
static void apply_unasked(struct kge_batch *b, struct kge_lane *l)
{
	for (uint32_t r = l->rel_begin; r < l->rel_end; r++)
		if (b->first_rel[r] == GRAPH_NONE) {
			memset(l->row, 0, b->emb->rel_floats * sizeof(*l->row));
			kge_each_relation(b, r, l->row);
			kge_batch_step_relation(b, l, r, l->row);
		}
}

static void apply_relations(struct kge_batch *b, struct kge_lane *l)
{
	if (kge_each_moves_all(b->each))
		apply_unasked(b, l);
	for (size_t i = 0; i < l->n_touched_rel; i++) {
		uint32_t r = l->touched_rel[i];
		float *g = projects(b) ? sum_lanes(b, r) : sum_queries(b, r);

		if (b->each != NULL)
			kge_each_relation(b, r, g);
		kge_batch_step_relation(b, l, r, g);
		b->first_rel[r] = GRAPH_NONE;
	}
}

/* Dense Adam moves the rows that nothing touched as well.  Before settle_*() forget them. */
static void apply_untouched(struct kge_batch *b, struct kge_lane *l)
{
	memset(l->row, 0, larger(b->stride, b->emb->rel_floats) * sizeof(*l->row));
	for (uint32_t e = l->ent_begin; e < l->ent_end && b->c->negatives > 0; e++)
		if (b->count[e] == 0 && b->first_known[e] == GRAPH_NONE)
			kge_batch_step_untouched(b, l, e);
	for (uint32_t r = l->rel_begin; r < l->rel_end && !kge_each_moves_all(b->each); r++)
		if (b->first_rel[r] == GRAPH_NONE)
			kge_batch_step_relation(b, l, r, l->row);
}

static void apply_steps(struct kge_batch *b, size_t k)
{
	if (b->c->optimizer == KGE_ADAM_DENSE)
		apply_untouched(b, &b->lane[k]);
	apply_entities(b, &b->lane[k]);
	apply_relations(b, &b->lane[k]);
}

static void sum_gradients(struct kge_batch *b)
{
	kge_others_sum_gradients(b);
	if (b->each != NULL)
		kge_each_sum(b);
}

void kge_batch_run(struct kge_batch *b, struct team *team, size_t k)
{
	enum { PHASES = 6 };
	static void (*const phases[2][PHASES])(struct kge_batch *, size_t) = {
		{ draw_negatives, score, loss_of_scores, backward_rows, backward_query,
		  apply_steps },
		{ kge_all_draw, kge_all_score, kge_all_loss, kge_all_backward_rows, backward_query,
		  apply_steps },
	};

	static void (*const exchanges[PHASES])(
		struct kge_batch *) = { [1] = kge_others_share_parts, [3] = sum_gradients };

	if (b->shared != NULL) {
		kge_shared_run(b, team, k);
		return;
	}
	for (size_t i = 0; i < PHASES; i++) {
		for (size_t lane = k; lane < b->lanes; lane += kge_team_size(team))
			phases[b->c->negatives == 0][i](b, lane);
		kge_team_wait(team);
		if (b->others == NULL || exchanges[i] == NULL)
			continue;
		if (k == 0)
			exchanges[i](b);
		kge_team_wait(team);
	}
}
