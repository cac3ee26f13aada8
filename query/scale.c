#include "query/scale.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/kernel.h"

enum { ROWS_MAX = 1024, BYTES_MAX = 64 * 1024 * 1024, NEWTON_STEPS = 50 };

#define SHARE_MIN 1e-30

/* Scores of the rows' candidates, those of entities that count. */
struct sample {
	struct query_truths *m; /* of the scale { kind, 1, 0 } */
	float *scores;		/* rows x n */
	bool *counts, *one;	/* rows x n */
	float *degree;		/* SOFTMAX: what shares are multiplied with */
	size_t rows, ones;
	float *share, *work, *line; /* of one row */
};

/* The row (from, step, ?); without ones it is left out. */
static void add_row(struct sample *x, const struct graph_index *valid, struct query_step step,
		    uint32_t from)
{
	size_t at = x->rows * x->m->n, ones = 0;

	query_truths_scores(x->m, &(struct query_ask){ from, step }, 1, x->scores + at, x->work);
	x->degree[x->rows] = query_truths_factor(x->m, step, from);
	for (uint32_t t = 0; t < x->m->n; t++) {
		struct graph_triple triple = step.inverse
						     ? (struct graph_triple){ t, step.rel, from }
						     : (struct graph_triple){ from, step.rel, t };

		x->counts[at + t] = !graph_index_has(x->m->index, triple);
		x->one[at + t] = x->counts[at + t] && graph_index_has(valid, triple);
		ones += x->one[at + t];
	}
	x->ones += ones;
	x->rows += ones > 0;
}

static void draw_rows(struct sample *x, const struct graph *g, uint64_t seed)
{
	const struct graph_triples *from = &g->split[GRAPH_VALID];
	size_t room = BYTES_MAX / (x->m->n * sizeof(float)), most;
	struct graph_index *valid = graph_index_new(g, 1u << GRAPH_VALID);
	struct rng r;

	most = room > ROWS_MAX ? ROWS_MAX : room > 0 ? room : 1;
	most = most < 2 * from->n ? most : 2 * from->n;
	x->scores = mem_aligned(most, x->m->n * sizeof(*x->scores));
	x->counts = mem_array(most, x->m->n * sizeof(*x->counts));
	x->one = mem_array(most, x->m->n * sizeof(*x->one));
	x->degree = mem_array(most, sizeof(*x->degree));
	x->share = mem_aligned(x->m->n, sizeof(float));
	x->line = mem_aligned(x->m->n, sizeof(float));
	x->work = mem_aligned(query_truths_work(x->m), sizeof(float));
	rng_seed(&r, seed);
	for (size_t i = 0; i < most; i++) {
		struct graph_triple t = from->at[rng_below(&r, (uint32_t)from->n)];
		bool inverse = i % 2 == 1;

		add_row(x, valid, (struct query_step){ t.rel, inverse }, inverse ? t.tail : t.head);
	}
	graph_index_free(valid);
}

static void sample_release(struct sample *x)
{
	query_truths_free(x->m);
	free(x->scores);
	free(x->counts);
	free(x->one);
	free(x->degree);
	free(x->share);
	free(x->line);
	free(x->work);
}

/* ---- softmax ---- */

/* Of one row: sums of shares and of those that count, and the mean log share of its ones. */
struct row {
	double all, counting, log_one, ones;
};

static struct row row_at(const struct sample *x, size_t i)
{
	struct row r = { 0 };
	size_t at = i * x->m->n;

	memcpy(x->line, x->scores + at, x->m->n * sizeof(*x->line));
	query_truths_shares(x->m, x->share, x->line, x->work);
	for (uint32_t t = 0; t < x->m->n; t++) {
		double share = (double)x->share[t];

		r.all += share;
		r.counting += x->counts[at + t] ? share : 0;
		r.log_one += x->one[at + t] ? log(fmax(share, SHARE_MIN)) : 0;
		r.ones += x->one[at + t];
	}
	r.log_one /= r.ones;
	return r;
}

/* Mean log share of a row's ones by the slope.  *offset: what makes the truths that count as many
 * as the ones, each row divided by its ones. */
static double share_likelihood(struct sample *x, float slope, float *offset)
{
	double truths = 0, logs = 0;

	x->m->scale.slope = slope;
	for (size_t i = 0; i < x->rows; i++) {
		struct row r = row_at(x, i);

		truths += r.counting * (double)x->degree[i] / r.ones;
		logs += r.log_one;
	}
	*offset = (float)log((double)x->rows / truths);
	return logs / (double)x->rows;
}

/* Golden section on the slope's logarithm, 2^-10 to 2^10: the likelihood has one maximum. */
static void fit_softmax(struct sample *x, struct query_scale *s, struct query_fit *fit)
{
	const double ratio = (sqrt(5) - 1) / 2;
	double low = -10, high = 10, a = high - ratio * (high - low),
	       b = low + ratio * (high - low);
	float offset;
	double at_a = share_likelihood(x, (float)exp2(a), &offset),
	       at_b = share_likelihood(x, (float)exp2(b), &offset);

	while (high - low > 0.02) {
		if (at_a > at_b) {
			high = b;
			b = a;
			at_b = at_a;
			a = high - ratio * (high - low);
			at_a = share_likelihood(x, (float)exp2(a), &offset);
		} else {
			low = a;
			a = b;
			at_a = at_b;
			b = low + ratio * (high - low);
			at_b = share_likelihood(x, (float)exp2(b), &offset);
		}
	}
	s->slope = (float)exp2((low + high) / 2);
	fit->before = share_likelihood(x, 1, &offset);
	fit->after = share_likelihood(x, s->slope, &s->offset);
}

/* ---- sigmoid ---- */

/* Slopes and curvatures of the log likelihood by slope and offset, and itself, of a one. */
struct logistic {
	double value, g[2], h[3];
};

static struct logistic logistic_at(const struct sample *x, double slope, double offset)
{
	struct logistic l = { 0 };

	for (size_t i = 0; i < x->rows * x->m->n; i++) {
		double s = (double)x->scores[i], z = slope * s + offset;
		double e = exp(-fabs(z)), p = z >= 0 ? 1 / (1 + e) : e / (1 + e);
		double off = (x->one[i] ? 1 : 0) - p;

		if (!x->counts[i])
			continue;
		l.value += (x->one[i] ? fmin(z, 0) : -fmax(z, 0)) - log1p(e);
		l.g[0] += off * s;
		l.g[1] += off;
		l.h[0] += p * (1 - p) * s * s;
		l.h[1] += p * (1 - p) * s;
		l.h[2] += p * (1 - p);
	}
	l.value /= (double)x->ones;
	return l;
}

/* Newton's steps, each halved until it helps. */
static void fit_sigmoid(struct sample *x, struct query_scale *s, struct query_fit *fit)
{
	double slope = 0, offset = log((double)x->ones / (double)(x->rows * x->m->n));
	struct logistic now = logistic_at(x, slope, offset), next;

	fit->before = logistic_at(x, 1, 0).value;
	for (int i = 0; i < NEWTON_STEPS; i++) {
		double det = now.h[0] * now.h[2] - now.h[1] * now.h[1], by = 1;
		double da = (now.h[2] * now.g[0] - now.h[1] * now.g[1]) / det;
		double db = (now.h[0] * now.g[1] - now.h[1] * now.g[0]) / det;

		if (!(det > 0))
			break;
		next = logistic_at(x, slope + da, offset + db);
		for (; !(next.value >= now.value) && by > 1e-3; by /= 2)
			next = logistic_at(x, slope + by / 2 * da, offset + by / 2 * db);
		if (!(next.value > now.value + 1e-7))
			break;
		slope += by * da;
		offset += by * db;
		now = next;
	}
	s->slope = (float)slope;
	s->offset = (float)offset;
	fit->after = now.value;
}

void query_scale_fit(struct query_scale *scale, enum query_truth_kind kind,
		     const struct kge_emb *emb, const struct graph *g, uint64_t seed,
		     struct query_fit *fit)
{
	struct query_fit own = { 0 };
	struct sample x = { 0 };

	*scale = (struct query_scale){ kind, 1, 0 };
	if (g->split[GRAPH_VALID].n > 0) {
		x.m = query_truths_new(emb, g, scale, 1u << GRAPH_TRAIN);
		draw_rows(&x, g, seed);
		own.rows = x.rows;
		own.ones = x.ones;
		if (x.ones > 0 && kind == QUERY_SOFTMAX)
			fit_softmax(&x, scale, &own);
		else if (x.ones > 0)
			fit_sigmoid(&x, scale, &own);
		if (!isfinite(own.after) || !isfinite(scale->slope) || !isfinite(scale->offset)) {
			*scale = (struct query_scale){ kind, 1, 0 };
			own = (struct query_fit){ 0 };
		}
		sample_release(&x);
	}
	if (fit != NULL)
		*fit = own;
}
