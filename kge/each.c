#include "kge/each.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/loss.h"
#include "kge/others_internal.h"
#include "kge/product.h"

struct each_lane {
	uint64_t *pairs; /* entity << 32 | query, ascending: the positives of the batch */
	size_t n, size;
	size_t begin, end; /* those whose gradients are at hand, */
	size_t next;	   /* and the first that was not fetched yet */
	float *v;	   /* KGE_EACH_PAIRS x floats: v, later the gradients of answers */
	float *scores;	   /* KGE_EACH_PAIRS x rows: scores, then c */
	float *mean;	   /* KGE_EACH_PAIRS x floats: c R */
	float *drop;	   /* floats: what nobody asked for */
	float *work;	   /* rows */
	float *dknown;	   /* queries x stride */
	float *drel;	   /* rows x floats */
};

struct kge_each {
	size_t rows, floats; /* of relations, each side of a reciprocal one being a row */
	size_t sides;	     /* rows a relation */
	size_t stride;
	float predict; /* weight of relation prediction */
	float dura;
	size_t lanes;
	struct each_lane lane[PARALLEL_MAX];
};

/* ---- memory ---- */

static bool adds_each(const struct kge_train_config *c, const struct kge_model *m)
{
	return c->negatives == 0 && m->metric == KGE_DOT &&
	       (c->relation_weight > 0 || c->reg == KGE_REG_DURA);
}

static void each_lane_init(struct each_lane *l, const struct kge_each *each, struct kge_batch *b)
{
	size_t bytes = each->floats * sizeof(float);

	l->v = kge_batch_aligned(b, KGE_EACH_PAIRS, bytes);
	l->scores = kge_batch_aligned(b, each->predict > 0 ? KGE_EACH_PAIRS * each->rows : 0,
				      sizeof(float));
	l->mean = kge_batch_aligned(b, each->predict > 0 ? KGE_EACH_PAIRS : 0, bytes);
	l->drop = kge_batch_aligned(b, 1, bytes);
	l->work = kge_batch_aligned(b, each->predict > 0 ? each->rows : 0, sizeof(float));
	l->dknown = kge_batch_aligned(b, b->most, each->stride * sizeof(float));
	l->drel = kge_batch_aligned(b, each->rows, bytes);
}

struct kge_each *kge_each_new(struct kge_batch *b)
{
	const struct kge_emb *e = b->emb;
	struct kge_each *each;

	if (!adds_each(b->c, e->model))
		return NULL;
	each = mem_array(1, sizeof(*each));
	each->floats = e->ent_floats;
	each->sides = e->rel_floats / e->ent_floats;
	each->rows = e->n_rel * each->sides;
	each->stride = b->stride;
	each->predict = b->c->relation_weight;
	each->dura = b->c->reg == KGE_REG_DURA ? b->c->reg_weight : 0;
	each->lanes = b->lanes;
	assert(e->rel_floats % e->ent_floats == 0 && each->lanes <= PARALLEL_MAX);
	for (size_t k = 0; k < each->lanes; k++)
		if (kge_batch_owns(b, k) || k == 0)
			each_lane_init(&each->lane[k], each, b);
	return each;
}

void kge_each_free(struct kge_each *each)
{
	for (size_t k = 0; each != NULL && k < each->lanes; k++) {
		struct each_lane *l = &each->lane[k];

		free(l->pairs);
		free(l->v);
		free(l->scores);
		free(l->mean);
		free(l->drop);
		free(l->work);
		free(l->dknown);
		free(l->drel);
	}
	free(each);
}

bool kge_each_moves_all(const struct kge_each *each)
{
	return each != NULL && each->predict > 0;
}

/* ---- the positives of a lane ---- */

static int by_entity(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

static void list_positive(struct each_lane *l, uint32_t e, size_t q)
{
	if (l->n == l->size) {
		l->size = 2 * l->size + KGE_EACH_PAIRS;
		l->pairs = mem_resize(l->pairs, l->size, sizeof(*l->pairs));
	}
	l->pairs[l->n++] = (uint64_t)e << 32 | q;
}

void kge_each_begin(struct kge_batch *b, size_t k)
{
	struct each_lane *l = &b->each->lane[k];
	const struct kge_lane *owner = &b->lane[k];

	l->n = l->begin = l->end = l->next = 0;
	for (size_t q = 0; q < b->n_queries; q++) {
		struct graph_ids answers = kge_batch_answers(b, q);

		for (size_t i = 0; i < answers.n; i++) {
			uint32_t e = graph_ids_at(&answers, i);

			if (e - owner->ent_begin < owner->ent_end - owner->ent_begin)
				list_positive(l, e, q);
		}
	}
	if (l->n > 0)
		qsort(l->pairs, l->n, sizeof(*l->pairs), by_entity);
	memset(l->dknown, 0, b->n_queries * b->each->stride * sizeof(*l->dknown));
	memset(l->drel, 0, b->each->rows * b->each->floats * sizeof(*l->drel));
}

/* One positive: rows, and where what is added to their gradients goes. */
struct positive {
	const struct kge_emb *emb;
	enum graph_side side; /* as the model is asked with a row of its own for each side */
	size_t target;	      /* its relation's row among all */
	const float *known, *rel, *answer;
	float *dknown, *drel;
};

static struct positive positive_of(const struct kge_batch *b, struct each_lane *l, uint64_t pair)
{
	const struct kge_each *each = b->each;
	const struct kge_query *x = &b->queries[(uint32_t)pair];
	size_t half = each->sides == 2 && x->side == GRAPH_HEAD ? 1 : 0;
	struct positive p = { .emb = b->emb };

	p.side = each->sides == 2 ? GRAPH_TAIL : x->side;
	p.target = x->rel * each->sides + half;
	p.known = kge_ent(b->emb, x->known);
	p.rel = b->emb->rel + p.target * each->floats;
	p.answer = kge_ent(b->emb, (uint32_t)(pair >> 32));
	p.dknown = l->dknown + (uint32_t)pair * each->stride;
	p.drel = l->drel + p.target * each->floats;
	return p;
}

/* ---- relation prediction ---- */

static void add_scaled(float *restrict to, const float *restrict x, float by, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += by * x[i];
}

/* Scores of n positives, v R', by a product or as they are written. */
static void score_relations(const struct kge_batch *b, struct each_lane *l, size_t n, void *room)
{
	size_t rows = b->each->rows, floats = b->each->floats;

	if (b->sgemm)
		kge_product(&(struct kge_product){ .a = { l->v, floats, 1 },
						   .b = { b->emb->rel, 1, floats },
						   .rows = n,
						   .columns = rows,
						   .inner = floats,
						   .c = l->scores,
						   .stride = rows },
			    room);
	for (size_t i = 0; i < n && !b->sgemm; i++)
		b->k->score[KGE_DOT](l->scores + i * rows, l->v + i * floats, b->emb->rel, rows,
				     floats);
}

/* mean = c R */
static void mean_relations(const struct kge_batch *b, struct each_lane *l, size_t n, void *room)
{
	size_t rows = b->each->rows, floats = b->each->floats;

	if (b->sgemm) {
		kge_product(&(struct kge_product){ .a = { l->scores, rows, 1 },
						   .b = { b->emb->rel, floats, 1 },
						   .rows = n,
						   .columns = floats,
						   .inner = rows,
						   .c = l->mean,
						   .stride = floats },
			    room);
		return;
	}
	memset(l->mean, 0, n * floats * sizeof(*l->mean));
	for (size_t i = 0; i < n; i++)
		for (size_t r = 0; r < rows; r++)
			add_scaled(l->mean + i * floats, b->emb->rel + r * floats,
				   l->scores[i * rows + r], floats);
}

/* drel += c' v */
static void add_to_relations(const struct kge_batch *b, struct each_lane *l, size_t n, void *room)
{
	size_t rows = b->each->rows, floats = b->each->floats;

	if (b->sgemm)
		kge_product(&(struct kge_product){ .a = { l->scores, 1, rows },
						   .b = { l->v, floats, 1 },
						   .rows = rows,
						   .columns = floats,
						   .inner = n,
						   .c = l->drel,
						   .stride = floats,
						   .add = true },
			    room);
	for (size_t i = 0; i < n && !b->sgemm; i++)
		for (size_t r = 0; r < rows; r++)
			add_scaled(l->drel + r * floats, l->v + i * floats, l->scores[i * rows + r],
				   floats);
}

/* Its line of scores becomes c; returns the loss. */
static double line_to_softmax(const struct kge_batch *b, float *line, size_t target, float *work)
{
	float weight = b->each->predict / (float)b->n_answers, all;
	double loss;

	all = b->k->softmax(work, line, 1.0f, b->each->rows);
	loss = (double)all - (double)line[target];
	for (size_t r = 0; r < b->each->rows; r++)
		line[r] = weight * work[r];
	line[target] -= weight;
	return (double)b->each->predict * loss;
}

/* n positives from l->begin on; l->v becomes what is added to their answers. */
static void predict_relations(struct kge_batch *b, struct each_lane *l, struct kge_lane *owner)
{
	const struct kge_each *each = b->each;
	const struct kge_model *m = b->emb->model;
	size_t n = l->end - l->begin, floats = each->floats;

	for (size_t i = 0; i < n; i++) {
		struct positive p = positive_of(b, l, l->pairs[l->begin + i]);

		m->query_grad(l->drop, l->v + i * floats, p.answer, p.known, p.rel, p.emb, p.side);
	}
	score_relations(b, l, n, owner->product);
	for (size_t i = 0; i < n; i++) {
		struct positive p = positive_of(b, l, l->pairs[l->begin + i]);

		owner->loss += line_to_softmax(b, l->scores + i * each->rows, p.target, l->work);
	}
	mean_relations(b, l, n, owner->product);
	add_to_relations(b, l, n, owner->product);
	for (size_t i = 0; i < n; i++) {
		struct positive p = positive_of(b, l, l->pairs[l->begin + i]);
		const float *mean = l->mean + i * floats;

		m->query(l->v + i * floats, p.known, mean, p.emb, p.side);
		m->query_grad(p.dknown, l->drop, p.answer, p.known, mean, p.emb, p.side);
	}
}

/* ---- DURA ---- */

/* A number's square, of its modulus where numbers are complex (im: where its other part is). */
static inline float square_of(const float *x, size_t i, size_t im)
{
	return im > 0 ? x[i] * x[i] + x[im] * x[im] : x[i] * x[i];
}

/* Adds by * 2 of what stands behind one number of each row; returns the regulariser of it. */
static inline float dura_number(const struct positive *p, float *danswer, size_t i, size_t im,
				float by)
{
	float k = square_of(p->known, i, im), r = square_of(p->rel, i, im);
	float a = square_of(p->answer, i, im);
	float row = by * (1 + 3 * r), rel = by * 3 * (k + a);

	for (size_t at = i;; at = im) {
		p->dknown[at] += row * p->known[at];
		danswer[at] += row * p->answer[at];
		p->drel[at] += rel * p->rel[at];
		if (at == im || im == 0)
			break;
	}
	return 0.5f * (k + a) + 1.5f * (k + a) * r;
}

static double add_dura(const struct kge_batch *b, const struct positive *p, float *danswer)
{
	size_t dim = b->emb->dim, n = b->each->floats;
	float by = b->each->dura / (float)b->n_answers;
	double sum = 0;

	for (size_t i = 0; i < dim; i++)
		sum += (double)dura_number(p, danswer, i, n == 2 * dim ? i + dim : 0, by);
	return (double)b->each->dura * sum;
}

/* ---- a lane's rows ---- */

/* The next positives, and what they add to their answers. */
static void fetch_pairs(struct kge_batch *b, size_t k)
{
	struct each_lane *l = &b->each->lane[k];
	size_t rest = l->n - l->end, floats = b->each->floats;

	l->begin = l->next = l->end;
	l->end += rest < KGE_EACH_PAIRS ? rest : KGE_EACH_PAIRS;
	memset(l->v, 0, (l->end - l->begin) * floats * sizeof(*l->v));
	if (b->each->predict > 0)
		predict_relations(b, l, &b->lane[k]);
	for (size_t i = l->begin; i < l->end && b->each->dura > 0; i++) {
		struct positive p = positive_of(b, l, l->pairs[i]);

		b->lane[k].loss += add_dura(b, &p, l->v + (i - l->begin) * floats);
	}
}

void kge_each_rows(struct kge_batch *b, size_t k, uint32_t first, size_t rows, float *gradients)
{
	struct each_lane *l = &b->each->lane[k];
	size_t floats = b->each->floats;

	for (; l->next < l->n; l->next++) {
		size_t row = (size_t)(l->pairs[l->next] >> 32) - first;

		if (row >= rows)
			return;
		if (l->next == l->end)
			fetch_pairs(b, k);
		b->k->add(gradients + row * floats, l->v + (l->next - l->begin) * floats, floats);
	}
}

void kge_each_sum(struct kge_batch *b)
{
	struct kge_each *each = b->each;
	float *dknown[PARALLEL_MAX], *drel[PARALLEL_MAX];

	for (size_t k = 0; k < b->n_own; k++) {
		dknown[k] = each->lane[b->first_own + k].dknown;
		drel[k] = each->lane[b->first_own + k].drel;
	}
	kge_others_sum(b, each->lane[0].dknown, dknown, b->n_queries * each->stride);
	kge_others_sum(b, each->lane[0].drel, drel, each->rows * each->floats);
}

void kge_each_known(const struct kge_batch *b, size_t q, float *gradient)
{
	for (size_t k = 0; k < kge_batch_summed(b); k++)
		b->k->add(gradient, b->each->lane[k].dknown + q * b->each->stride, b->each->floats);
}

void kge_each_relation(const struct kge_batch *b, uint32_t r, float *gradient)
{
	size_t floats = b->emb->rel_floats;

	for (size_t k = 0; k < kge_batch_summed(b); k++)
		b->k->add(gradient, b->each->lane[k].drel + r * floats, floats);
}
