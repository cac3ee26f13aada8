/* kge/rank.c - from counts to ranks to metrics. */
#include "kge/rank_internal.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { ALL_SPLITS = 1u << GRAPH_TRAIN | 1u << GRAPH_VALID | 1u << GRAPH_TEST };

static const struct kge_protocol presets[] = {
	{ "standard", KGE_SIDES_BOTH, ALL_SPLITS, KGE_CAND_ALL, KGE_TIES_REALISTIC },
	{ "fedlu", KGE_SIDES_BOTH, ALL_SPLITS, KGE_CAND_ALL, KGE_TIES_REALISTIC },
	{ "fede", KGE_SIDES_TAIL, ALL_SPLITS, KGE_CAND_TRAIN, KGE_TIES_REALISTIC },
	{ "openke", KGE_SIDES_BOTH, ALL_SPLITS, KGE_CAND_TYPED, KGE_TIES_OPTIMISTIC },
	{ "tail", KGE_SIDES_TAIL, ALL_SPLITS, KGE_CAND_ALL, KGE_TIES_REALISTIC },
};

const char *const kge_sides_words[] = { "both", "tail", "head", NULL };
const char *const kge_filter_words[] = { "none", "train", "train+valid", "all", NULL };
const char *const kge_candidates_words[] = { "all", "train", "typed", NULL };
const char *const kge_ties_words[] = { "realistic", "optimistic", "pessimistic", NULL };

const unsigned kge_filter_bits[] = {
	0,
	1u << GRAPH_TRAIN,
	1u << GRAPH_TRAIN | 1u << GRAPH_VALID,
	ALL_SPLITS,
};

const struct kge_protocol *kge_protocol_find(const char *name)
{
	for (size_t i = 0; i < sizeof presets / sizeof *presets; i++)
		if (strcmp(presets[i].name, name) == 0)
			return &presets[i];
	return NULL;
}

/* ---- counting ---- */

/* Both loops are written for the vectoriser: whole chunks, no branch. */
enum { CHUNK = 64 };

static void tally_chunk(struct kge_tally *t, const float *restrict s, float gold, bool lower)
{
	uint32_t less = 0, more = 0, equal = 0;

	for (size_t i = 0; i < CHUNK; i++) {
		less += s[i] < gold;
		more += s[i] > gold;
		equal += s[i] == gold;
	}
	t->greater += lower ? less : more;
	t->equal += equal;
}

void kge_tally_add(struct kge_tally *t, const float *scores, size_t n, float gold, bool lower)
{
	const float worst = lower ? INFINITY : -INFINITY;
	struct kge_tally now = { 0 };
	size_t i = 0;

	assert(scores != NULL || n == 0);
	if (!isfinite(gold))
		gold = worst;
	for (; i + CHUNK <= n; i += CHUNK)
		tally_chunk(&now, scores + i, gold, lower);
	for (; i < n; i++) {
		now.greater += lower ? scores[i] < gold : scores[i] > gold;
		now.equal += scores[i] == gold;
	}
	/* Nothing is worse than the worst: a score that is not better ties, NaN too. */
	if (gold == worst)
		now.equal = (uint32_t)n - now.greater;
	t->greater += now.greater;
	t->equal += now.equal;
}

static int by_id(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

static void mark(bool *set, uint32_t n, const uint32_t *ids, size_t n_ids, bool value)
{
	for (size_t i = 0; i < n_ids; i++)
		if (ids[i] < n)
			set[ids[i]] = value;
}

void kge_rank_scores(struct kge_ranked *out, const float *scores, uint32_t n, uint32_t gold,
		     bool lower_is_better, const uint32_t *filter, size_t n_filter,
		     const uint32_t *candidates, size_t n_candidates)
{
	bool *in = mem_array((size_t)n + 1, sizeof *in);
	struct kge_tally t = { 0 };
	uint32_t others = 0;

	assert(gold < n);
	memset(in, candidates == NULL, n);
	mark(in, n, candidates, candidates == NULL ? 0 : n_candidates, true);
	mark(in, n, filter, n_filter, false);
	in[gold] = false;
	for (uint32_t id = 0; id < n; id++) {
		if (in[id])
			kge_tally_add(&t, &scores[id], 1, scores[gold], lower_is_better);
		others += in[id];
	}
	out->greater = t.greater;
	out->equal = t.equal;
	out->candidates = others + 1;
	out->unsound = isfinite(scores[gold]) ? 0u : 1u;
	free(in);
}

/* ---- ranks and metrics ---- */

double kge_rank(const struct kge_ranked *r, enum kge_ties ties)
{
	double best = 1.0 + r->greater;

	return ties == KGE_TIES_OPTIMISTIC && !r->unsound ? best
	       : ties == KGE_TIES_PESSIMISTIC		  ? best + r->equal
							  : best + r->equal / 2.0;
}

static void scale(struct kge_metrics *m, double by)
{
	m->mr *= by;
	m->mrr *= by;
	m->hits1 *= by;
	m->hits3 *= by;
	m->hits5 *= by;
	m->hits10 *= by;
}

void kge_metrics_of(const struct kge_ranked *r, size_t n, enum kge_ties ties,
		    struct kge_metrics *out)
{
	struct kge_metrics m = { .queries = n };

	assert(r != NULL || n == 0);
	for (size_t i = 0; i < n; i++) {
		double rank = kge_rank(&r[i], ties);

		m.mr += rank;
		m.mrr += 1 / rank;
		m.hits1 += rank <= 1;
		m.hits3 += rank <= 3;
		m.hits5 += rank <= 5;
		m.hits10 += rank <= 10;
		*(r[i].side == GRAPH_HEAD ? &m.head_mrr : &m.tail_mrr) += 1 / rank;
		++*(r[i].side == GRAPH_HEAD ? &m.head_queries : &m.tail_queries);
	}
	if (n > 0)
		scale(&m, 1.0 / (double)n);
	m.head_mrr /= m.head_queries > 0 ? (double)m.head_queries : 1;
	m.tail_mrr /= m.tail_queries > 0 ? (double)m.tail_queries : 1;
	*out = m;
}

void kge_metrics_average(const struct kge_metrics *m, const double *weights, size_t n,
			 struct kge_metrics *out)
{
	struct kge_metrics sum = { 0 };
	double all = 0, heads = 0, tails = 0;

	for (size_t i = 0; i < n; i++) {
		double w = weights[i];

		sum.queries += m[i].queries;
		sum.head_queries += m[i].head_queries;
		sum.tail_queries += m[i].tail_queries;
		sum.mr += w * m[i].mr;
		sum.mrr += w * m[i].mrr;
		sum.hits1 += w * m[i].hits1;
		sum.hits3 += w * m[i].hits3;
		sum.hits5 += w * m[i].hits5;
		sum.hits10 += w * m[i].hits10;
		sum.head_mrr += w * m[i].head_mrr;
		sum.tail_mrr += w * m[i].tail_mrr;
		all += w;
		heads += m[i].head_queries > 0 ? w : 0;
		tails += m[i].tail_queries > 0 ? w : 0;
		sum.diverged |= m[i].diverged;
	}
	if (all > 0)
		scale(&sum, 1 / all);
	sum.head_mrr /= heads > 0 ? heads : 1;
	sum.tail_mrr /= tails > 0 ? tails : 1;
	*out = sum;
}

/* ---- candidates ---- */

struct kge_candidate_sets {
	enum kge_candidates kind;
	uint32_t n_ent, n_rel;
	uint32_t *ids; /* train: one list; typed: all lists one after another */
	size_t *start; /* typed: list k is at start[k]..start[k + 1], k = side * n_rel + rel */
	size_t n;
};

static void train_list(struct kge_candidate_sets *s, const struct graph *g)
{
	bool *seen = mem_array((size_t)s->n_ent + 1, sizeof *seen);

	for (size_t i = 0; i < g->split[GRAPH_TRAIN].n; i++) {
		seen[g->split[GRAPH_TRAIN].at[i].head] = true;
		seen[g->split[GRAPH_TRAIN].at[i].tail] = true;
	}
	s->ids = mem_array((size_t)s->n_ent + 1, sizeof *s->ids);
	for (uint32_t id = 0; id < s->n_ent; id++)
		if (seen[id])
			s->ids[s->n++] = id;
	free(seen);
}

/* Sort one list and drop its repeats; returns its new length. */
static size_t unique(uint32_t *ids, size_t n)
{
	size_t kept = 0;

	if (n > 0)
		qsort(ids, n, sizeof *ids, by_id);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || ids[i] != ids[kept - 1])
			ids[kept++] = ids[i];
	return kept;
}

static void typed_fill(struct kge_candidate_sets *s, const struct graph *g, size_t *at)
{
	for (int split = 0; split < GRAPH_SPLITS; split++) {
		for (size_t i = 0; i < g->split[split].n; i++) {
			struct graph_triple t = g->split[split].at[i];

			s->ids[at[(size_t)GRAPH_TAIL * s->n_rel + t.rel]++] = t.tail;
			s->ids[at[(size_t)GRAPH_HEAD * s->n_rel + t.rel]++] = t.head;
		}
	}
}

static void typed_lists(struct kge_candidate_sets *s, const struct graph *g)
{
	size_t lists = 2 * (size_t)s->n_rel, kept = 0;
	size_t *at = mem_array(lists + 1, sizeof *at);

	for (int split = 0; split < GRAPH_SPLITS; split++)
		for (size_t i = 0; i < g->split[split].n; i++) {
			at[g->split[split].at[i].rel + 1]++;
			at[s->n_rel + g->split[split].at[i].rel + 1]++;
		}
	for (size_t k = 0; k < lists; k++)
		at[k + 1] += at[k];
	s->ids = mem_array(at[lists] + 1, sizeof *s->ids);
	s->start = mem_array(lists + 1, sizeof *s->start);
	memcpy(s->start, at, (lists + 1) * sizeof *at);
	typed_fill(s, g, at);
	for (size_t k = 0; k < lists; k++) {
		size_t from = s->start[k], n = unique(s->ids + from, at[k] - from);

		memmove(s->ids + kept, s->ids + from, n * sizeof *s->ids);
		s->start[k] = kept;
		kept += n;
	}
	s->start[lists] = kept;
	free(at);
}

struct kge_candidate_sets *kge_candidates_new(const struct graph *g, enum kge_candidates c)
{
	struct kge_candidate_sets *s = mem_array(1, sizeof *s);

	s->kind = c;
	s->n_ent = graph_vocab_count(g->entities);
	s->n_rel = graph_vocab_count(g->relations);
	if (c == KGE_CAND_TRAIN)
		train_list(s, g);
	else if (c == KGE_CAND_TYPED)
		typed_lists(s, g);
	return s;
}

void kge_candidates_free(struct kge_candidate_sets *s)
{
	free(s->ids);
	free(s->start);
	free(s);
}

const uint32_t *kge_candidates_of(const struct kge_candidate_sets *s, enum graph_side side,
				  uint32_t rel, uint32_t *n)
{
	size_t list = (size_t)side * s->n_rel + rel;

	if (s->kind == KGE_CAND_ALL || (s->kind == KGE_CAND_TRAIN && s->n == s->n_ent)) {
		*n = s->n_ent;
		return NULL;
	}
	if (s->kind == KGE_CAND_TRAIN) {
		*n = (uint32_t)s->n;
		return s->ids;
	}
	*n = (uint32_t)(s->start[list + 1] - s->start[list]);
	return s->ids + s->start[list];
}

bool kge_candidates_has(const uint32_t *list, uint32_t n, uint32_t id)
{
	if (list == NULL)
		return id < n;
	return n > 0 && bsearch(&id, list, n, sizeof *list, by_id) != NULL;
}
