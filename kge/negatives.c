#include "kge/negatives.h"

#include <assert.h>
#include <stdbool.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "kge/rank_internal.h"

/* Two draws of 32 bits from one of 64.  Multiply and shift is uneven by less
 * than n_ent / 2^32, which no training can tell from even. */
static inline uint32_t scale(uint32_t bits, uint32_t n)
{
	return (uint32_t)(((uint64_t)bits * n) >> 32);
}

void kge_draw(uint32_t *out, size_t n, uint32_t n_ent, struct rng *r)
{
	size_t i = 0;

	assert(n == 0 || n_ent > 0);
	for (; i + 1 < n; i += 2) {
		uint64_t bits = rng_u64(r);

		out[i] = scale((uint32_t)bits, n_ent);
		out[i + 1] = scale((uint32_t)(bits >> 32), n_ent);
	}
	if (i < n)
		out[i] = scale((uint32_t)(rng_u64(r) >> 32), n_ent);
}

/* The k-th entity that is no answer: answers[j] - j entities that are none lie below answers[j].
 */
static inline uint32_t negative_at(uint32_t k, const struct graph_ids *answers)
{
	size_t low = 0, n = answers->n;

	while (n > 0) {
		size_t half = n / 2;

		if (graph_ids_at(answers, low + half) - (uint32_t)(low + half) <= k) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return k + (uint32_t)low;
}

void kge_draw_filtered(uint32_t *out, size_t n, uint32_t n_ent, const struct graph_ids *answers,
		       struct rng *r)
{
	if (answers->n >= n_ent) {
		for (size_t i = 0; i < n; i++)
			out[i] = GRAPH_NONE;
		return;
	}
	kge_draw(out, n, n_ent - (uint32_t)answers->n, r);
	if (answers->n == 1) {
		uint32_t only = graph_ids_at(answers, 0);

		for (size_t i = 0; i < n; i++)
			out[i] += out[i] >= only;
		return;
	}
	for (size_t i = 0; i < n; i++)
		out[i] = negative_at(out[i], answers);
}

/* How many rows before this one are somebody's. */
static inline uint32_t slots_before(const struct kge_slots *s, uint32_t row)
{
	uint32_t k = row / s->rows;

	return s->start[k] + (row - k * s->rows);
}

/* The row before which so many are somebody's. */
static inline uint32_t slots_row(const struct kge_slots *s, uint32_t before)
{
	uint32_t k = 0;

	while (s->start[k + 1] <= before)
		k++;
	return k * s->rows + (before - s->start[k]);
}

/* As negative_at(), among rows that are somebody's, as all answers are. */
static uint32_t negative_in_slots(uint32_t k, const struct kge_slots *s,
				  const struct graph_ids *answers)
{
	size_t low = 0, n = answers->n;

	while (n > 0) {
		size_t half = n / 2, at = low + half;

		if (slots_before(s, graph_ids_at(answers, at)) - (uint32_t)at <= k) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return slots_row(s, k + (uint32_t)low);
}

void kge_draw_in_slots(uint32_t *out, size_t n, const struct kge_slots *slots,
		       const struct graph_ids *answers, struct rng *r)
{
	uint32_t there = slots->start[slots->n];

	assert(slots->n <= KGE_SLOTS_MAX && slots->rows > 0);
	if (answers->n >= there) {
		for (size_t i = 0; i < n; i++)
			out[i] = GRAPH_NONE;
		return;
	}
	kge_draw(out, n, there - (uint32_t)answers->n, r);
	for (size_t i = 0; i < n; i++)
		out[i] = negative_in_slots(out[i], slots, answers);
}

void kge_mask_answers(uint32_t *ids, size_t n, const struct graph_ids *answers)
{
	for (size_t i = 0; i < n; i++) {
		size_t at = graph_ids_position(answers, 0, ids[i]);

		if (at < answers->n && graph_ids_at(answers, at) == ids[i])
			ids[i] = GRAPH_NONE;
	}
}

/* Where id stands, or would stand, in a sorted list. */
static uint32_t position_in(const uint32_t *list, size_t n, uint32_t id)
{
	size_t low = 0;

	while (n > 0) {
		size_t half = n / 2;

		if (list[low + half] < id) {
			low += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return (uint32_t)low;
}

void kge_draw_among(uint32_t *out, size_t n, const uint32_t *list, size_t n_list,
		    const struct graph_ids *answers, struct rng *r)
{
	assert(answers->n < n_list && n_list <= UINT32_MAX);
	kge_draw(out, n, (uint32_t)(n_list - answers->n), r);
	for (size_t i = 0; i < n; i++) {
		size_t low = 0, rest = answers->n;

		/* as negative_at(), by positions in the list */
		while (rest > 0) {
			size_t half = rest / 2, at = low + half;

			if (position_in(list, n_list, graph_ids_at(answers, at)) - (uint32_t)at <=
			    out[i]) {
				low = at + 1;
				rest -= half + 1;
			} else {
				rest = half;
			}
		}
		out[i] = list[out[i] + low];
	}
}

/* ---- by relation ---- */

struct kge_sampler {
	struct kge_candidate_sets *lists; /* typed */
	double *head;			  /* Bernoulli, by relation: how often the head is asked */
};

/* tph = triples / queries for tails, hpt = triples / queries for heads: the triples cancel. */
static double *head_shares(const struct graph *g, const struct graph_answers *answers)
{
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];
	double *share = mem_array(graph_vocab_count(g->relations), sizeof(*share));
	double *tails = mem_array(graph_vocab_count(g->relations), sizeof(*tails));
	uint32_t *queries = mem_array(train->n, sizeof(*queries));
	size_t n = graph_answers_queries(answers, GRAPH_TAIL, 0, queries);

	for (size_t i = 0; i < n; i++)
		tails[train->at[queries[i] >> 1].rel]++;
	n = graph_answers_queries(answers, GRAPH_HEAD, 0, queries);
	for (size_t i = 0; i < n; i++)
		share[train->at[queries[i] >> 1].rel]++;
	for (uint32_t k = 0; k < graph_vocab_count(g->relations); k++)
		share[k] = share[k] > 0 ? share[k] / (share[k] + tails[k]) : 0;
	free(tails);
	free(queries);
	return share;
}

struct kge_sampler *kge_sampler_new(enum kge_sampling s, const struct graph *g,
				    const struct graph_answers *answers)
{
	struct graph only = *g; /* nothing is learnt from valid and test */
	struct kge_sampler *x;

	if (s == KGE_SAMPLING_UNIFORM)
		return NULL;
	x = mem_array(1, sizeof(*x));
	only.split[GRAPH_VALID].n = only.split[GRAPH_TEST].n = 0;
	if (s == KGE_SAMPLING_TYPED)
		x->lists = kge_candidates_new(&only, KGE_CAND_TYPED);
	else
		x->head = head_shares(g, answers);
	return x;
}

void kge_sampler_free(struct kge_sampler *s)
{
	if (s == NULL)
		return;
	if (s->lists != NULL)
		kge_candidates_free(s->lists);
	free(s->head);
	free(s);
}

bool kge_sampler_has_sides(const struct kge_sampler *s)
{
	return s != NULL && s->head != NULL;
}

enum graph_side kge_sampler_side(const struct kge_sampler *s, uint32_t rel, struct rng *r)
{
	assert(kge_sampler_has_sides(s));
	return rng_double(r) < s->head[rel] ? GRAPH_HEAD : GRAPH_TAIL;
}

const uint32_t *kge_sampler_list(const struct kge_sampler *s, enum graph_side side, uint32_t rel,
				 uint32_t *n)
{
	*n = 0;
	if (s == NULL || s->lists == NULL)
		return NULL;
	return kge_candidates_of(s->lists, side, rel, n);
}

float *kge_answer_weights(const struct graph_triples *train, uint32_t n_ent, float rare_weight)
{
	float *weights = mem_array(n_ent, sizeof(*weights)), most = 1;

	for (size_t i = 0; i < train->n; i++) {
		weights[train->at[i].head]++;
		weights[train->at[i].tail]++;
	}
	for (uint32_t e = 0; e < n_ent; e++)
		most = fmaxf(most, weights[e]);
	for (uint32_t e = 0; e < n_ent; e++)
		weights[e] = rare_weight + (1 - rare_weight) * weights[e] / most;
	return weights;
}

float *kge_subsampling_weights(const struct graph_triples *train,
			       const struct graph_answers *answers)
{
	float *weights = mem_array(train->n, sizeof(*weights));

	for (size_t i = 0; i < train->n; i++) {
		size_t tails = graph_answers_of(answers, i, GRAPH_TAIL).n;
		size_t heads = graph_answers_of(answers, i, GRAPH_HEAD).n;

		weights[i] = (float)(1.0 / sqrt((double)(tails + heads + 6)));
	}
	return weights;
}
