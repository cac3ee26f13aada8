/* kge/shared.c - one step over a batch whose chunks of queries share their negatives.
 *
 * The work is cut into units: some queries of one chunk, with the chunk's block of negatives
 * gathered into contiguous rows.  A unit is a tile, queries x negatives, from its scores
 * to its gradients, all in cache, and nothing of it is kept but gradients of rows:
 *
 *   entry     ids[entry], a row of the entities     gradients + entry * stride
 *             negatives of unit 0, of unit 1, ...; answers by query; known sides by query
 *
 * Then the entries are chained by row, added up in their order, and each row makes one step.
 * Two phases a batch:
 *
 *   learn     by unit, any free thread     everything up to the entries
 *   move      by lane of rows              chains, sums, steps
 *
 * Units depend on the settings alone and every sum on the order of units and queries, so a
 * run gives the same bits with any number of threads. */
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/batch_internal.h"
#include "kge/loss.h"

enum { UNIT_MAX = 64, GRADIENTS_MAX = 1 << 27 /* floats: 512 MiB */ };

/* The memory that one thread needs for a unit. */
struct workspace {
	float *rows;		/* negatives x stride */
	float *scores, *dscore; /* unit x width */
	float *dq;		/* unit x stride */
	float *work;		/* 3 x width */

	/* with a teacher; else NULL */
	float *taught_rows;   /* negatives x taught_stride */
	float *taught_q;      /* unit x taught_stride */
	float *taught_scores; /* unit x width */
};

struct kge_shared {
	size_t chunk, unit; /* queries that share a block; most of them in a unit */
	size_t stride;	    /* of all rows here, but the teacher's */
	size_t taught_stride;
	atomic_size_t next; /* unit that nobody has taken */
	uint32_t *ids;	    /* entries */
	float *gradients;   /* entries x stride */
	float *q;	    /* queries x stride; later, gradients of relations */
	double *losses;	    /* by unit */
	uint32_t *first;    /* by entity: its first entry, or GRAPH_NONE */
	uint32_t *next_entry;
	struct workspace workspace[PARALLEL_MAX];
};

struct unit {
	size_t number, q, n;	/* its queries are q..q + n - 1 */
	size_t position, block; /* positives in the batch: of its first query, of its chunk's */
	enum graph_side side;
};

/* ---- memory ---- */

static size_t sides(const struct kge_train_config *c)
{
	return c->corrupt == KGE_CORRUPT_BOTH ? 2 : 1;
}

static size_t parts(size_t n, size_t size)
{
	return (n + size - 1) / size;
}

/* Units in n positives on one side. */
static size_t units_of(const struct kge_shared *s, size_t n)
{
	return n / s->chunk * parts(s->chunk, s->unit) + parts(n % s->chunk, s->unit);
}

/* Units in a batch of `most` positives, or fewer.  Where each positive asks one side or the other,
 * both sides end with a chunk that is not full. */
static size_t most_units(const struct kge_train_config *c, const struct kge_shared *s, size_t most)
{
	bool split = c->sampling == KGE_SAMPLING_BERNOULLI;

	return units_of(s, most) * sides(c) + (split ? parts(s->chunk, s->unit) : 0);
}

/* Units of the batch at hand. */
static size_t batch_units(const struct kge_batch *b, const struct kge_shared *s)
{
	if (kge_sampler_has_sides(b->sampler))
		return units_of(s, b->n_tails) + units_of(s, b->n - b->n_tails);
	return units_of(s, b->n) * sides(b->c);
}

static void workspace_init(struct workspace *d, struct kge_batch *b, const struct kge_shared *s)
{
	d->rows = kge_batch_aligned(b, b->c->negatives, s->stride * sizeof(float));
	d->scores = kge_batch_aligned(b, s->unit, b->width * sizeof(float));
	d->dscore = kge_batch_aligned(b, s->unit, b->width * sizeof(float));
	d->dq = kge_batch_aligned(b, s->unit, s->stride * sizeof(float));
	d->work = kge_batch_aligned(b, 3 * b->width, sizeof(float));
}

static void workspace_drop_teacher(struct workspace *d)
{
	free(d->taught_rows);
	free(d->taught_q);
	free(d->taught_scores);
	d->taught_rows = d->taught_q = d->taught_scores = NULL;
}

static void workspace_release(struct workspace *d)
{
	free(d->rows);
	free(d->scores);
	free(d->dscore);
	free(d->dq);
	free(d->work);
	workspace_drop_teacher(d);
}

/* An odd number of cache lines, so that columns spread over the cache. */
static size_t odd_stride(size_t floats)
{
	size_t lines = parts(floats, KGE_PAD);

	return (lines % 2 == 0 ? lines + 1 : lines) * KGE_PAD;
}

static size_t chunk_of(const struct kge_train_config *c)
{
	return c->shared_chunk < c->batch ? c->shared_chunk : c->batch;
}

/* Units of a chunk are as equal as can be. */
static size_t unit_of(size_t chunk)
{
	return parts(chunk, parts(chunk, UNIT_MAX));
}

bool kge_shared_fits(const struct kge_train_config *c, const struct kge_emb *emb)
{
	size_t floats = emb->ent_floats > emb->rel_floats ? emb->ent_floats : emb->rel_floats;
	struct kge_shared s = { .chunk = chunk_of(c) };
	size_t rows;

	if (c->negatives == 0 || s.chunk <= 1 || emb->model->project != NULL)
		return false;
	s.unit = unit_of(s.chunk);
	rows = most_units(c, &s, c->batch) * c->negatives + 2 * sides(c) * (size_t)c->batch;
	return rows * odd_stride(floats) <= GRADIENTS_MAX;
}

struct kge_shared *kge_shared_new(struct kge_batch *b)
{
	struct kge_shared *s = mem_array(1, sizeof(*s));
	size_t nq = b->most * sides(b->c), units, entries;

	s->chunk = chunk_of(b->c);
	s->unit = unit_of(s->chunk);
	s->stride = odd_stride(b->stride);
	units = most_units(b->c, s, b->most);
	entries = units * b->c->negatives + 2 * nq;
	s->ids = kge_batch_array(b, entries, sizeof(*s->ids));
	s->gradients = kge_batch_aligned(b, entries, s->stride * sizeof(float));
	s->q = kge_batch_aligned(b, nq, s->stride * sizeof(float));
	s->losses = kge_batch_array(b, units, sizeof(*s->losses));
	s->first = kge_batch_array(b, b->emb->n_ent, sizeof(*s->first));
	for (uint32_t e = 0; s->first != NULL && e < b->emb->n_ent; e++)
		s->first[e] = GRAPH_NONE;
	s->next_entry = kge_batch_array(b, entries, sizeof(*s->next_entry));
	for (size_t k = 0; k < b->lanes; k++)
		workspace_init(&s->workspace[k], b, s);
	return s;
}

void kge_shared_free(struct kge_shared *s)
{
	if (s == NULL)
		return;
	for (size_t k = 0; k < PARALLEL_MAX; k++)
		workspace_release(&s->workspace[k]);
	free(s->ids);
	free(s->gradients);
	free(s->q);
	free(s->losses);
	free(s->first);
	free(s->next_entry);
	free(s);
}

void kge_shared_set_teacher(struct kge_batch *b)
{
	struct kge_shared *s = b->shared;

	for (size_t k = 0; k < b->lanes; k++)
		workspace_drop_teacher(&s->workspace[k]);
	if (b->terms.distill == 0)
		return;
	s->taught_stride = odd_stride(b->terms.teacher->query_floats);
	for (size_t k = 0; k < b->lanes; k++) {
		struct workspace *d = &s->workspace[k];

		d->taught_rows = mem_aligned(b->c->negatives, s->taught_stride * sizeof(float));
		d->taught_q = mem_aligned(s->unit, s->taught_stride * sizeof(float));
		d->taught_scores = mem_aligned(s->unit, b->width * sizeof(float));
	}
}

/* ---- entries ---- */

static size_t negatives_at(const struct kge_batch *b, const struct unit *u)
{
	return u->number * b->c->negatives;
}

static size_t answers_at(const struct kge_batch *b)
{
	return batch_units(b, b->shared) * b->c->negatives;
}

static size_t known_at(const struct kge_batch *b)
{
	return answers_at(b) + b->n_queries;
}

static size_t entries_of(const struct kge_batch *b)
{
	return known_at(b) + b->n_queries;
}

static float *gradient_of(const struct kge_shared *s, size_t entry)
{
	return s->gradients + entry * s->stride;
}

/* ---- learn ---- */

/* The positives of side `half`: all of them, or with sides by relation those that ask it. */
static size_t begin_of(const struct kge_batch *b, size_t half)
{
	return kge_sampler_has_sides(b->sampler) && half == 1 ? b->n_tails : 0;
}

static size_t end_of(const struct kge_batch *b, size_t half)
{
	return kge_sampler_has_sides(b->sampler) && half == 0 ? b->n_tails : b->n;
}

static enum graph_side side_of(const struct kge_batch *b, size_t half)
{
	if (kge_sampler_has_sides(b->sampler))
		return half == 0 ? GRAPH_TAIL : GRAPH_HEAD;
	return kge_batch_side(b, b->order[0], b->first, half);
}

static struct unit unit_at(const struct kge_batch *b, size_t number)
{
	const struct kge_shared *s = b->shared;
	size_t a_chunk = parts(s->chunk, s->unit);
	size_t a_side = units_of(s, end_of(b, 0) - begin_of(b, 0));
	size_t half = number >= a_side, at = half ? number - a_side : number, end = end_of(b, half);
	struct unit u = { .number = number, .side = side_of(b, half) };

	u.block = begin_of(b, half) + at / a_chunk * s->chunk;
	u.position = u.block + at % a_chunk * s->unit;
	u.q = (b->n_queries > b->n ? half * b->n : 0) + u.position;
	end = u.block + s->chunk < end ? u.block + s->chunk : end;
	u.n = end - u.position < s->unit ? end - u.position : s->unit;
	return u;
}

/* The unit's queries, and their rows among the entries. */
static void ask_queries(const struct kge_batch *b, const struct unit *u)
{
	struct kge_shared *s = b->shared;

	for (size_t i = 0; i < u->n; i++) {
		size_t q = u->q + i;
		uint32_t at = b->order[u->position + i];
		struct graph_triple t = b->train->at[at];
		uint32_t known = u->side == GRAPH_TAIL ? t.head : t.tail;

		b->queries[q] = (struct kge_query){ at, known, t.rel, u->side };
		s->ids[answers_at(b) + q] = u->side == GRAPH_TAIL ? t.tail : t.head;
		s->ids[known_at(b) + q] = known;
		if (b->answers != NULL)
			graph_answers_prefetch(b->answers, at, u->side);
		b->emb->model->query(s->q + q * s->stride, kge_ent(b->emb, known),
				     kge_rel(b->emb, t.rel), b->emb, u->side);
	}
	for (size_t i = 0; i < u->n && b->answers != NULL; i++)
		graph_answers_prefetch_run(b->answers, b->queries[u->q + i].triple, u->side);
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void prefetch(const float *row, size_t floats)
{
	for (size_t i = 0; i < floats; i += 16)
		__builtin_prefetch(row + i);
}

/* Copies of the rows of the unit's negatives. */
static void copy_rows(const struct kge_batch *b, const struct unit *u, const struct kge_emb *emb,
		      float *rows, size_t stride)
{
	enum { AHEAD = 4 };
	const uint32_t *ids = b->shared->ids + negatives_at(b, u);
	size_t n = b->c->negatives, floats = emb->ent_floats;

	for (size_t j = 0; j < n; j++) {
		if (j + AHEAD < n)
			prefetch(kge_ent(emb, ids[j + AHEAD]), floats);
		memcpy(rows + j * stride, kge_ent(emb, ids[j]), floats * sizeof(*rows));
	}
}

/* The negatives of the unit's chunk, ascending, and their rows. */
static void draw_negatives(const struct kge_batch *b, const struct unit *u, float *rows)
{
	uint32_t *ids = b->shared->ids + negatives_at(b, u);
	size_t n = b->c->negatives;
	struct rng r = kge_batch_stream(b, b->first + u->block, u->side);

	kge_batch_draw(b, ids, n, &(struct graph_ids){ 0 }, &r);
	qsort(ids, n, sizeof(*ids), by_id);
	copy_rows(b, u, b->emb, rows, b->shared->stride);
}

/* The first position from `from` on, in a sorted list of n, with at least x. */
static size_t position_of(const uint32_t *ids, size_t from, size_t n, uint32_t x)
{
	while (from < n) {
		size_t half = from + (n - from) / 2;

		if (ids[half] < x)
			from = half + 1;
		else
			n = half;
	}
	return from;
}

/* Take the true answers of query q out of its scores for the unit's block; how many. */
static size_t hide(const struct kge_batch *b, const struct unit *u, size_t q, float *scores)
{
	const uint32_t *ids = b->shared->ids + negatives_at(b, u);
	size_t n = b->c->negatives, hidden = 0, i = 0, j = 0;
	struct graph_ids answers;

	if (b->answers == NULL)
		return 0;
	answers = graph_answers_of(b->answers, b->queries[q].triple, u->side);
	while (i < answers.n) {
		uint32_t id = graph_ids_at(&answers, i);

		j = position_of(ids, j, n, id);
		if (j == n)
			break;
		if (ids[j] > id) {
			i = graph_ids_position(&answers, i, ids[j]);
			continue;
		}
		scores[j++] = KGE_NO_SCORE;
		hidden++;
	}
	return hidden;
}

/* The unit's queries against its negatives, in the student's rows or in the teacher's. */
static struct kge_tile tile_of(const struct kge_batch *b, const struct unit *u, const float *rows)
{
	const struct kge_shared *s = b->shared;

	return (struct kge_tile){ .q = s->q + u->q * s->stride,
				  .nq = u->n,
				  .q_stride = s->stride,
				  .c = rows,
				  .nc = b->c->negatives,
				  .c_stride = s->stride,
				  .floats = b->emb->ent_floats };
}

static struct kge_tile tile_of_teacher(const struct kge_batch *b, const struct unit *u,
				       const struct workspace *d)
{
	size_t stride = b->shared->taught_stride;

	return (struct kge_tile){ .q = d->taught_q,
				  .nq = u->n,
				  .q_stride = stride,
				  .c = d->taught_rows,
				  .nc = b->c->negatives,
				  .c_stride = stride,
				  .floats = b->terms.teacher->ent_floats };
}

/* Of that tile, i-th query and its answer in these tables. */
static struct kge_tile tile_of_answer(const struct kge_batch *b, const struct unit *u, size_t i,
				      const struct kge_emb *emb, struct kge_tile t)
{
	t.q += i * t.q_stride;
	t.nq = t.nc = 1;
	t.c = kge_ent(emb, b->shared->ids[answers_at(b) + u->q + i]);
	return t;
}

/* Lines of raw scores by these tables. */
static void score(const struct kge_batch *b, const struct unit *u, const struct kge_emb *emb,
		  const struct kge_tile *t, float *scores)
{
	kge_score_tile_fn *fn = b->k->score_tile[emb->model->metric];

	fn(scores + 1, b->width, t);
	for (size_t i = 0; i < u->n; i++) {
		struct kge_tile one = tile_of_answer(b, u, i, emb, *t);

		fn(scores + i * b->width, b->width, &one);
	}
}

/* The teacher's scores of the same queries and candidates. */
static void ask_teacher(const struct kge_batch *b, const struct unit *u, const struct workspace *d)
{
	const struct kge_emb *e = b->terms.teacher;
	size_t stride = b->shared->taught_stride;
	struct kge_tile t = tile_of_teacher(b, u, d);

	for (size_t i = 0; i < u->n; i++) {
		const struct kge_query *x = &b->queries[u->q + i];

		e->model->query(d->taught_q + i * stride, kge_ent(e, x->known), kge_rel(e, x->rel),
				e, u->side);
	}
	copy_rows(b, u, e, d->taught_rows, stride);
	score(b, u, e, &t, d->taught_scores);
}

/* A raw line becomes scores by these tables, without the true answers of query q; how many
 * negatives are left. */
static size_t finish_line(const struct kge_batch *b, const struct unit *u, size_t q,
			  const struct kge_emb *emb, float *scores)
{
	bool dot = emb->model->metric == KGE_DOT;
	float base = dot ? 0.0f : emb->gamma, sign = dot ? 1.0f : -1.0f;

	for (size_t j = 0; j < b->width; j++)
		scores[j] = base + sign * scores[j];
	return b->c->negatives - hide(b, u, q, scores + 1);
}

/* Loss of the unit; its derivatives.  A hidden candidate scores so low that its derivative is 0: at
 * most e^-87, in no loss more. */
static double loss_of_scores(const struct kge_batch *b, const struct unit *u,
			     const struct workspace *d)
{
	double loss = 0;

	for (size_t i = 0; i < u->n; i++) {
		float *scores = d->scores + i * b->width, *dscore = d->dscore + i * b->width;
		double share = kge_batch_share(b, &b->queries[u->q + i]);
		size_t there = finish_line(b, u, u->q + i, b->emb, scores);
		float *taught = d->taught_scores;

		if (taught != NULL) {
			taught += i * b->width;
			finish_line(b, u, u->q + i, b->terms.teacher, taught);
		}
		loss += kge_batch_loss(b, share, scores, dscore, there, taught, d->work);
		kge_batch_weights(b, share, scores, dscore);
	}
	return loss;
}

/* Gradients of negatives and answers are entries, those of queries stay in the workspace. */
static void backward_rows(const struct kge_batch *b, const struct unit *u,
			  const struct workspace *d)
{
	const struct kge_shared *s = b->shared;
	kge_grad_tile_fn *fn = b->k->grad_tile[b->emb->model->metric];
	struct kge_tile t = tile_of(b, u, d->rows);
	float *dc = gradient_of(s, negatives_at(b, u)), *da = gradient_of(s, answers_at(b) + u->q);

	memset(d->dq, 0, u->n * s->stride * sizeof(*d->dq));
	memset(dc, 0, t.nc * s->stride * sizeof(*dc));
	memset(da, 0, u->n * s->stride * sizeof(*da));
	for (size_t i = 0; i < u->n; i++) {
		struct kge_tile one = tile_of_answer(b, u, i, b->emb, t);

		fn(d->dq + i * s->stride, da + i * s->stride, d->dscore + i * b->width, b->width,
		   &one);
	}
	fn(d->dq, dc, d->dscore + 1, b->width, &t);
}

/* From the gradients of queries to those of known rows, which are entries, and of relations. */
static void backward_query(const struct kge_batch *b, const struct unit *u,
			   const struct workspace *d)
{
	const struct kge_shared *s = b->shared;

	for (size_t i = 0; i < u->n; i++) {
		const struct kge_query *x = &b->queries[u->q + i];
		float *dknown = gradient_of(s, known_at(b) + u->q + i);
		float *drel = s->q + (u->q + i) * s->stride;

		memset(dknown, 0, s->stride * sizeof(*dknown));
		memset(drel, 0, s->stride * sizeof(*drel));
		b->emb->model->query_grad(dknown, drel, d->dq + i * s->stride,
					  kge_ent(b->emb, x->known), kge_rel(b->emb, x->rel),
					  b->emb, u->side);
	}
}

static void learn(const struct kge_batch *b, size_t k)
{
	struct kge_shared *s = b->shared;
	const struct workspace *d = &s->workspace[k];
	size_t number, units = batch_units(b, s);

	while ((number = atomic_fetch_add(&s->next, 1)) < units) {
		struct unit u = unit_at(b, number);
		struct kge_tile t;

		ask_queries(b, &u);
		draw_negatives(b, &u, d->rows);
		t = tile_of(b, &u, d->rows);
		score(b, &u, b->emb, &t, d->scores);
		if (d->taught_scores != NULL)
			ask_teacher(b, &u, d);
		s->losses[number] = loss_of_scores(b, &u, d);
		backward_rows(b, &u, d);
		backward_query(b, &u, d);
	}
}

/* ---- move ---- */

/* Chains of the entries and queries that concern this lane's rows; from the last, so that
 * chains ascend. */
static void chain(struct kge_batch *b, struct kge_lane *l)
{
	struct kge_shared *s = b->shared;

	l->n_touched = l->n_touched_rel = 0;
	for (size_t i = entries_of(b); i-- > 0;) {
		uint32_t e = s->ids[i];

		if (e - l->ent_begin >= l->ent_end - l->ent_begin)
			continue;
		if (s->first[e] == GRAPH_NONE)
			l->touched[l->n_touched++] = e;
		s->next_entry[i] = s->first[e];
		s->first[e] = (uint32_t)i;
		if (b->positives != NULL && i >= answers_at(b))
			b->positives[e]++;
	}
	for (size_t q = b->n_queries; q-- > 0;) {
		uint32_t r = b->queries[q].rel;

		if (r - l->rel_begin >= l->rel_end - l->rel_begin)
			continue;
		if (b->first_rel[r] == GRAPH_NONE)
			l->touched_rel[l->n_touched_rel++] = r;
		b->next_rel[q] = b->first_rel[r];
		b->first_rel[r] = (uint32_t)q;
	}
}

/* The sum of a chain of rows of x, in the first of them. */
static float *sum_chain(const struct kge_batch *b, float *x, uint32_t first, const uint32_t *next,
			size_t floats)
{
	size_t stride = b->shared->stride;
	float *sum = x + first * stride;

	for (uint32_t i = next[first]; i != GRAPH_NONE; i = next[i])
		b->k->add(sum, x + i * stride, floats);
	return sum;
}

static void prefetch_touched(const struct kge_batch *b, const struct kge_lane *l, size_t i)
{
	const struct kge_shared *s = b->shared;
	uint32_t e;

	if (i >= l->n_touched)
		return;
	e = l->touched[i];
	prefetch(kge_ent(b->emb, e), b->emb->ent_floats);
	prefetch(gradient_of(s, s->first[e]), b->emb->ent_floats);
	kge_optimizer_prefetch(b->ent, e);
}

static void move_entities(struct kge_batch *b, struct kge_lane *l)
{
	struct kge_shared *s = b->shared;

	for (size_t i = 0; i < l->n_touched; i++) {
		uint32_t e = l->touched[i];

		prefetch_touched(b, l, i + 1);
		kge_batch_step_entity(
			b, l, e,
			sum_chain(b, s->gradients, s->first[e], s->next_entry, b->emb->ent_floats));
		s->first[e] = GRAPH_NONE;
	}
}

static void move_relations(struct kge_batch *b, struct kge_lane *l)
{
	for (size_t i = 0; i < l->n_touched_rel; i++) {
		uint32_t r = l->touched_rel[i];
		float *g = sum_chain(b, b->shared->q, b->first_rel[r], b->next_rel,
				     b->emb->rel_floats);

		kge_batch_step_relation(b, l, r, g);
		b->first_rel[r] = GRAPH_NONE;
	}
}

/* Dense Adam moves the rows that nothing touched as well. */
static void move_untouched(struct kge_batch *b, struct kge_lane *l)
{
	memset(l->row, 0, b->stride * sizeof(*l->row));
	for (uint32_t e = l->ent_begin; e < l->ent_end; e++)
		if (b->shared->first[e] == GRAPH_NONE)
			kge_batch_step_untouched(b, l, e);
	for (uint32_t r = l->rel_begin; r < l->rel_end; r++)
		if (b->first_rel[r] == GRAPH_NONE)
			kge_batch_step_relation(b, l, r, l->row);
}

static void move(struct kge_batch *b, size_t k)
{
	struct kge_lane *l = &b->lane[k];

	chain(b, l);
	if (b->c->optimizer == KGE_ADAM_DENSE)
		move_untouched(b, l);
	move_entities(b, l);
	move_relations(b, l);
}

/* Between two meetings of the team, when nobody learns. */
static void close_learning(struct kge_batch *b)
{
	atomic_store(&b->shared->next, 0);
	for (size_t u = 0; u < batch_units(b, b->shared); u++)
		b->lane[0].loss += b->shared->losses[u];
}

void kge_shared_run(struct kge_batch *b, struct team *team, size_t k)
{
	learn(b, k);
	kge_team_wait(team);
	if (k == 0)
		close_learning(b);
	for (size_t lane = k; lane < b->lanes; lane += kge_team_size(team))
		move(b, lane);
	kge_team_wait(team);
}
