/* kge/classify.c - triple classification: one threshold a relation (methods 2). */
#include <assert.h>
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kge/eval.h"

/* NaN is the worst score; an order for it keeps every comparison below honest. */
static float worth(float score)
{
	return isnan(score) ? -INFINITY : score;
}

static int best_first(const void *a, const void *b)
{
	const struct kge_labeled *x = a, *y = b;
	float s = worth(x->score), t = worth(y->score);

	return s > t ? -1 : s < t;
}

static int by_relation(const void *a, const void *b)
{
	const struct kge_labeled *x = a, *y = b;

	if (x->rel != y->rel)
		return x->rel < y->rel ? -1 : 1;
	return best_first(a, b);
}

/* The best threshold among the scores of v[0..n-1], best first, n > 0.  Going
 * down the list, everything passed so far is called positive. */
static struct kge_threshold best_exact(const struct kge_labeled *v, size_t n)
{
	struct kge_threshold best = { .valid_total = n };
	size_t right = 0;
	bool any = false;

	for (size_t i = 0; i < n; i++)
		right += !v[i].positive;
	for (size_t i = 0; i < n; i++) {
		right += v[i].positive;
		right -= !v[i].positive;
		if (i + 1 < n && worth(v[i + 1].score) == worth(v[i].score))
			continue; /* a threshold takes all equal scores or none */
		if (!any || right > best.valid_correct) {
			best.at = worth(v[i].score);
			best.valid_correct = right;
			any = true;
		}
	}
	return best;
}

/* The run of triples of one relation that begins at v[from]. */
static size_t run_end(const struct kge_labeled *v, size_t n, size_t from)
{
	size_t end = from;

	while (end < n && v[end].rel == v[from].rel)
		end++;
	return end;
}

void kge_thresholds(const struct kge_labeled *valid, size_t n, struct kge_threshold *out,
		    uint32_t n_rel, struct kge_threshold *all)
{
	struct kge_labeled *v = mem_copy(valid, n * sizeof *v);

	assert(n > 0);
	qsort(v, n, sizeof *v, best_first);
	*all = best_exact(v, n);
	for (uint32_t r = 0; r < n_rel; r++)
		out[r] = (struct kge_threshold){ .at = all->at, .fallback = true };
	qsort(v, n, sizeof *v, by_relation);
	for (size_t from = 0, end; from < n; from = end) {
		end = run_end(v, n, from);
		assert(v[from].rel < n_rel);
		out[v[from].rel] = best_exact(v + from, end - from);
	}
	free(v);
}

/* v[0..n-1] are the distances of one relation, largest first. */
static struct kge_threshold best_grid(const struct kge_labeled *v, size_t n, double step)
{
	struct kge_threshold best = { .valid_total = n };
	double low = v[n - 1].score, high = v[0].score;
	/* A grid of millions of steps means a model that blew up. */
	double steps = fmin(floor((high - low) / step), 1e7);
	size_t right = 0, i = n;
	bool any = false;

	for (size_t k = 0; k < n; k++)
		right += !v[k].positive;
	for (double s = 0; s <= steps || !any; s++) {
		for (; i > 0 && v[i - 1].score <= low + s * step; i--)
			right = v[i - 1].positive ? right + 1 : right - 1;
		if (!any || right > best.valid_correct) {
			best.at = (float)(low + s * step);
			best.valid_correct = right;
			any = true;
		}
	}
	return best;
}

void kge_thresholds_grid(const struct kge_labeled *valid, size_t n, double step,
			 struct kge_threshold *out, uint32_t n_rel)
{
	struct kge_labeled *v = mem_copy(valid, n * sizeof *v);

	for (uint32_t r = 0; r < n_rel; r++)
		out[r] = (struct kge_threshold){ .at = -INFINITY, .fallback = true };
	for (size_t i = 0; i < n; i++)
		v[i].score = isnan(v[i].score) ? INFINITY : v[i].score;
	qsort(v, n, sizeof *v, by_relation);
	for (size_t from = 0, end; from < n; from = end) {
		end = run_end(v, n, from);
		out[v[from].rel] = best_grid(v + from, end - from, step);
	}
	free(v);
}

/* ---- a graph ---- */

/* One side replaced; a triple of no split where the draws find one. */
static struct graph_triple negative(struct graph_triple t, const struct graph_index *known,
				    uint32_t n_ent, struct rng *r)
{
	for (int tries = 0; tries < 1000; tries++) {
		struct graph_triple other = t;
		uint32_t side = rng_below(r, 2);

		*(side == 0 ? &other.head : &other.tail) = rng_below(r, n_ent);
		if (!graph_index_has(known, other))
			return other;
	}
	return (struct graph_triple){ GRAPH_NONE, GRAPH_NONE, GRAPH_NONE };
}

/* Positives and their negatives, scored; *n of them. */
static struct kge_labeled *label(const struct kge_emb *emb, const struct graph_triples *from,
				 const struct graph_index *known, uint32_t n_ent, struct rng *r,
				 size_t *n)
{
	struct kge_labeled *out = mem_array(2 * from->n + 1, sizeof *out);

	*n = 0;
	for (size_t i = 0; i < from->n; i++) {
		struct graph_triple t = from->at[i], u = negative(t, known, n_ent, r);

		if (u.head == GRAPH_NONE)
			continue; /* the relation holds between (almost) all: nothing to tell */
		out[(*n)++] =
			(struct kge_labeled){ t.rel, true, kge_score(emb, t.head, t.rel, t.tail) };
		out[(*n)++] =
			(struct kge_labeled){ u.rel, false, kge_score(emb, u.head, u.rel, u.tail) };
	}
	return out;
}

static size_t count_right(const struct kge_labeled *v, size_t n, const struct kge_threshold *at)
{
	size_t right = 0;

	for (size_t i = 0; i < n; i++)
		right += (worth(v[i].score) >= at[v[i].rel].at) == v[i].positive;
	return right;
}

int kge_classify(const struct kge_emb *emb, const struct graph *g, uint64_t seed,
		 struct kge_classification *out, struct err *e)
{
	uint32_t n_ent = graph_vocab_count(g->entities), n_rel = graph_vocab_count(g->relations);
	struct graph_index *known = graph_index_new(g, (1u << GRAPH_SPLITS) - 1);
	struct kge_threshold *at = mem_array((size_t)n_rel + 1, sizeof *at), all;
	struct kge_labeled *valid, *test;
	struct rng r;
	int rc = 0;

	rng_seed(&r, seed);
	valid = label(emb, &g->split[GRAPH_VALID], known, n_ent, &r, &out->valid_total);
	test = label(emb, &g->split[GRAPH_TEST], known, n_ent, &r, &out->test_total);
	if (out->valid_total == 0 || out->test_total == 0) {
		rc = err_set(e, ERR_USAGE,
			     "triple classification wants triples in valid and test: this "
			     "graph has %zu and %zu that can be told from wrong ones",
			     out->valid_total / 2, out->test_total / 2);
	} else {
		kge_thresholds(valid, out->valid_total, at, n_rel, &all);
		out->valid_correct = count_right(valid, out->valid_total, at);
		out->test_correct = count_right(test, out->test_total, at);
	}
	graph_index_free(known);
	free(at);
	free(valid);
	free(test);
	return rc;
}
