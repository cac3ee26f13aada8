#include "kge/hogwild_internal.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/loss.h"

enum {
	TAKE = 64,		/* positives at once */
	AHEAD = 4,		/* queries whose rows are asked for ahead of time */
	ADAM_SETTLES = 1 << 15, /* steps after which Adam's constants are what they become */
};

struct kge_hogwild_worker {
	_Alignas(64) double loss; /* and no two workers on one line of the cache */
	uint32_t triples[TAKE];	  /* those at hand */
	struct kge_query queries[2 * TAKE];
	uint32_t *ids; /* 2 TAKE x width */
	struct line {
		float *q, *scores, *dscore;
	} line[2]; /* of the queries of one positive */
	float *dq, *dknown, *drel, *drow, *work;
	float *seen, *dseen; /* projecting models: a row as the relation sees it; else NULL */
	struct kge_step step;
	uint64_t step_number;  /* for which `step` was made; 0: none yet */
	uint64_t turns, steps; /* at the start of the epoch */
};

/* ---- what races ----
 *
 * Between these two calls shared rows are read and stepped while others step
 * them: plain loads and stores, as atomic ones would keep the loops from being
 * vectorised.  TSan is told to look away, and sees everything else. */
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define RACE_TSAN
#endif
#elif defined(__SANITIZE_THREAD__)
#define RACE_TSAN
#endif

#ifdef RACE_TSAN
void AnnotateIgnoreReadsBegin(const char *file, int line);
void AnnotateIgnoreReadsEnd(const char *file, int line);
void AnnotateIgnoreWritesBegin(const char *file, int line);
void AnnotateIgnoreWritesEnd(const char *file, int line);

static void race_on(void)
{
	AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
	AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
}

static void race_off(void)
{
	AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
	AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
}
#else
static inline void race_on(void)
{
}

static inline void race_off(void)
{
}
#endif

/* ---- memory ---- */

static void worker_init(struct kge_hogwild_worker *r, const struct kge_batch *b)
{
	r->ids = mem_array((size_t)2 * TAKE * b->width, sizeof(*r->ids));
	r->dq = mem_aligned(7 * b->stride, sizeof(*r->dq));
	r->dknown = r->dq + b->stride;
	r->dseen = r->dknown + b->stride;
	r->drow = r->dseen + b->stride;
	r->drel = mem_aligned(b->emb->rel_floats, sizeof(*r->drel));
	if (b->emb->model->project != NULL)
		r->seen = r->dq + 6 * b->stride;
	r->work = mem_aligned(7 * b->width, sizeof(*r->work));
	for (size_t half = 0; half < 2; half++) {
		r->line[half].q = r->dq + (4 + half) * b->stride;
		r->line[half].scores = r->work + (3 + 2 * half) * b->width;
		r->line[half].dscore = r->work + (4 + 2 * half) * b->width;
	}
}

void kge_hogwild_init(struct kge_hogwild *r, const struct kge_batch *b)
{
	r->b = b;
	r->workers = mem_aligned(b->c->threads, sizeof(*r->workers));
	for (size_t k = 0; k < b->c->threads; k++)
		worker_init(&r->workers[k], b);
}

void kge_hogwild_release(struct kge_hogwild *r)
{
	for (size_t k = 0; r->workers != NULL && k < r->b->c->threads; k++) {
		free(r->workers[k].ids);
		free(r->workers[k].dq);
		free(r->workers[k].drel);
		free(r->workers[k].work);
	}
	free(r->workers);
}

/* ---- draw ---- */

static size_t sides_of(const struct kge_batch *b)
{
	return b->c->corrupt == KGE_CORRUPT_BOTH ? 2 : 1;
}

/* Of the i-th positive at hand, which is at that position in the epoch, its query number `half`. */
static enum graph_side side_of(const struct kge_hogwild_worker *r, const struct kge_batch *b,
			       size_t i, size_t position, size_t half)
{
	if (b->c->corrupt == KGE_CORRUPT_ALTERNATE && b->c->sampling != KGE_SAMPLING_BERNOULLI)
		return (r->turns + position) % 2 == 0 ? GRAPH_TAIL : GRAPH_HEAD;
	return kge_batch_side(b, r->triples[i], position, half);
}

/* Triples, then their answers, lie anywhere in memory: ask for all before the first is needed. */
static void prefetch_triples(const struct kge_hogwild_worker *r, const struct kge_batch *b,
			     size_t first, size_t n)
{
	size_t sides = sides_of(b);

	for (size_t i = 0; i < n; i++)
		__builtin_prefetch(&b->train->at[r->triples[i]]);
	for (size_t q = 0; q < n * sides && b->answers != NULL; q++) {
		size_t i = q / sides;

		graph_answers_prefetch(b->answers, r->triples[i],
				       side_of(r, b, i, first + i, q % sides));
	}
	for (size_t q = 0; q < n * sides && b->answers != NULL; q++) {
		size_t i = q / sides;

		graph_answers_prefetch_run(b->answers, r->triples[i],
					   side_of(r, b, i, first + i, q % sides));
	}
}

/* The queries of n positives from position `first`. */
static void draw_negatives(struct kge_hogwild_worker *r, const struct kge_batch *b, size_t first,
			   size_t n)
{
	size_t sides = sides_of(b);

	kge_order_take(b->epoch_order, first, n, r->triples);
	prefetch_triples(r, b, first, n);
	for (size_t q = 0; q < n * sides; q++) {
		size_t i = q / sides;

		kge_batch_draw_alone(b, &r->queries[q], r->ids + q * b->width, r->triples[i],
				     first + i, side_of(r, b, i, first + i, q % sides));
	}
}

/* ---- score ---- */

static void prefetch_row(const float *row, size_t floats)
{
	for (size_t k = 0; k < floats; k += 16)
		__builtin_prefetch(row + k, 1);
}

static void prefetch_query(const struct kge_batch *b, const struct kge_query *x,
			   const uint32_t *ids)
{
	size_t some = b->width < 4 ? b->width : 4;

	prefetch_row(kge_rel(b->emb, x->rel), b->emb->rel_floats);
	prefetch_row(kge_ent(b->emb, x->known), b->emb->ent_floats);
	for (size_t j = 0; j < some; j++)
		if (ids[j] != GRAPH_NONE)
			prefetch_row(kge_ent(b->emb, ids[j]), b->emb->ent_floats);
}

/* A candidate's row as it meets the query. */
static const float *candidate_row(struct kge_hogwild_worker *r, const struct kge_batch *b,
				  const struct kge_query *x, uint32_t id)
{
	const struct kge_emb *e = b->emb;

	if (r->seen == NULL)
		return kge_ent(e, id);
	e->model->project(r->seen, kge_ent(e, id), kge_rel(e, x->rel), e);
	return r->seen;
}

/* Raw scores of a query's line. */
static void score(struct kge_hogwild_worker *r, struct line *l, const struct kge_batch *b,
		  const struct kge_query *x, const uint32_t *ids)
{
	const struct kge_emb *e = b->emb;
	kge_kernel_fn *fn = b->k->score[e->model->metric];

	e->model->query(l->q, kge_ent(e, x->known), kge_rel(e, x->rel), e, x->side);
	for (size_t j = 0; j < b->width; j++) {
		l->scores[j] = 0;
		if (ids[j] != GRAPH_NONE)
			fn(&l->scores[j], l->q, candidate_row(r, b, x, ids[j]), 1, e->query_floats);
	}
}

/* ---- step ---- */

static void step_entity(struct kge_hogwild_worker *r, const struct kge_batch *b, uint32_t id,
			const float *gradient)
{
	float *row = kge_ent(b->emb, id);

	kge_optimizer_row(b->ent, b->c->optimizer, b->k, &r->step, id, row, gradient);
	if (b->c->normalize)
		kge_ent_into_unit_ball(b->emb, id);
}

static void step_known(struct kge_hogwild_worker *r, const struct kge_batch *b,
		       const struct kge_query *x)
{
	const struct kge_emb *e = b->emb;

	memset(r->dknown, 0, b->stride * sizeof(*r->dknown));
	e->model->query_grad(r->dknown, r->drel, r->dq, kge_ent(e, x->known), kge_rel(e, x->rel), e,
			     x->side);
	step_entity(r, b, x->known, r->dknown);
	kge_optimizer_row(b->rel, b->c->optimizer, b->k, &r->step, x->rel, kge_rel(e, x->rel),
			  r->drel);
}

static void step(struct kge_hogwild_worker *r, const struct line *l, const struct kge_batch *b,
		 const struct kge_query *x, const uint32_t *ids)
{
	kge_grad_fn *fn = b->k->grad_pairs[b->emb->model->metric];
	uint32_t pair;
	struct kge_pairs p = { &pair, 1, b->width, l->q, b->stride, b->emb->query_floats };
	const struct kge_emb *e = b->emb;

	memset(r->dq, 0, b->stride * sizeof(*r->dq));
	memset(r->drel, 0, e->rel_floats * sizeof(*r->drel));
	for (pair = 0; pair < b->width; pair++) {
		if (ids[pair] == GRAPH_NONE || l->dscore[pair] == 0)
			continue;
		fn(r->seen == NULL ? r->drow : r->dseen, r->dq, l->dscore,
		   candidate_row(r, b, x, ids[pair]), &p);
		if (r->seen != NULL) {
			memset(r->drow, 0, b->stride * sizeof(*r->drow));
			e->model->project_grad(r->drow, r->drel, r->dseen, kge_ent(e, ids[pair]),
					       kge_rel(e, x->rel), e);
		}
		step_entity(r, b, ids[pair], r->drow);
	}
	step_known(r, b, x);
}

/* Adam's constants go by the number of steps, and settle.  A thread may have slept since it
 * last looked, so the test is whether the constants that it has are settled. */
static void set_constants(struct kge_hogwild_worker *r, const struct kge_batch *b, size_t i)
{
	uint64_t number = r->steps + i + 1;

	if (r->step_number > 0 &&
	    (b->c->optimizer != KGE_ADAM_SPARSE || r->step_number > ADAM_SETTLES))
		return;
	r->step = kge_optimizer_step(b->c, b->lr, number);
	r->step_number = number;
}

static bool any(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (x[i] != 0)
			return true;
	return false;
}

/* The loss and its derivatives, from the rows as they are. */
static void loss_of_scores(struct kge_hogwild_worker *r, struct line *l, const struct kge_batch *b,
			   const struct kge_query *x, const uint32_t *ids)
{
	size_t there;

	race_on();
	score(r, l, b, x, ids);
	race_off();
	there = kge_batch_scores(b, ids, l->scores);
	r->loss += kge_loss_of(b->c, b->k, l->scores, l->dscore, b->width - 1, there, r->work);
	kge_batch_weights(b, 1.0 / (double)sides_of(b), l->scores, l->dscore);
}

static void run_positive(struct kge_hogwild_worker *r, const struct kge_batch *b, size_t q)
{
	for (size_t half = 0; half < sides_of(b); half++)
		loss_of_scores(r, &r->line[half], b, &r->queries[q + half],
			       r->ids + (q + half) * b->width);
	for (size_t half = 0; half < sides_of(b); half++) {
		if (!any(r->line[half].dscore, b->width))
			continue;
		race_on();
		step(r, &r->line[half], b, &r->queries[q + half], r->ids + (q + half) * b->width);
		race_off();
	}
}

/* ---- an epoch ---- */

void kge_hogwild_begin(struct kge_hogwild *r, size_t from, uint64_t turns, uint64_t steps)
{
	atomic_store(&r->next, from);
	atomic_store(&r->canceled, false);
	for (size_t k = 0; k < r->b->c->threads; k++) {
		r->workers[k].loss = 0;
		r->workers[k].step_number = 0;
		r->workers[k].turns = turns;
		r->workers[k].steps = steps;
	}
}

static void run_some(struct kge_hogwild_worker *r, const struct kge_batch *b, size_t first,
		     size_t n)
{
	size_t sides = sides_of(b), queries = n * sides;

	draw_negatives(r, b, first, n);
	for (size_t q = 0; q < queries; q += sides) {
		for (size_t far = q + AHEAD; far < q + AHEAD + sides && far < queries; far++)
			prefetch_query(b, &r->queries[far], r->ids + far * b->width);
		set_constants(r, b, first + q / sides);
		run_positive(r, b, q);
	}
}

static bool is_canceled(struct kge_hogwild *r, const atomic_bool *cancel)
{
	if (cancel != NULL && atomic_load(cancel))
		atomic_store(&r->canceled, true);
	return atomic_load(&r->canceled);
}

/* A thread that takes positives also does their steps. */
void kge_hogwild_run(struct kge_hogwild *r, size_t k, const atomic_bool *cancel)
{
	size_t n = r->b->epoch_order->n, first;

	while (!is_canceled(r, cancel) && (first = atomic_fetch_add(&r->next, TAKE)) < n)
		run_some(&r->workers[k], r->b, first, n - first < TAKE ? n - first : TAKE);
}

size_t kge_hogwild_at(const struct kge_hogwild *r)
{
	size_t n = r->b->epoch_order->n, next = atomic_load(&r->next);

	return next < n ? next : n;
}

void kge_hogwild_losses(const struct kge_hogwild *r, double *loss)
{
	for (size_t k = 0; k < r->b->c->threads; k++)
		loss[k] = r->workers[k].loss;
}

void kge_hogwild_set_losses(struct kge_hogwild *r, const double *loss)
{
	for (size_t k = 0; k < r->b->c->threads; k++)
		r->workers[k].loss = loss[k];
}

double kge_hogwild_loss_sum(const struct kge_hogwild *r)
{
	double sum = 0;

	for (size_t k = 0; k < r->b->c->threads; k++)
		sum += r->workers[k].loss;
	return sum;
}
