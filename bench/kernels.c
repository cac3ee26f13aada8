#include "bench/kernels.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/rng.h"
#include "kge/kernel.h"

/* A unit of training: a chunk's queries and its negatives, all in the second cache. */
static const size_t queries = 64, candidates = 256, floats = 256, stride = 256 + KGE_PAD;

/* Additions, products and multiply-adds for a vector of each row: no square roots, no signs,
 * nothing that is moved. */
static const struct metric {
	const char *name;
	double score_ops, grad_ops;
} metrics[KGE_METRICS] = {
	[KGE_L1] = { "L1", 2, 3 },
	[KGE_L2] = { "L2", 2, 3 },
	[KGE_DOT] = { "dot", 1, 2 },
	[KGE_MODULUS] = { "modulus", 7 / 2.0, 12 / 2.0 },
};

double kernels_score_ops(int metric)
{
	return metrics[metric].score_ops;
}

struct job {
	const struct kge_kernels *k;
	int metric;
	bool grad;
	int rounds;
	float *x[2]; /* of each thread: rows, gradients, weights, scores */
};

static void work(void *ctx, size_t thread)
{
	const struct job *j = ctx;
	float *q = j->x[thread], *c = q + queries * stride, *dq = c + candidates * stride;
	float *dc = dq + queries * stride, *w = dc + candidates * stride;
	struct kge_tile t = { q, queries, stride, c, candidates, stride, floats };

	for (int i = 0; i < j->rounds; i++)
		if (j->grad)
			j->k->grad_tile[j->metric](dq, dc, w, candidates, &t);
		else
			j->k->score_tile[j->metric](w + queries * candidates, candidates, &t);
}

static float *random_floats(void)
{
	size_t n = 2 * (queries + candidates) * stride + 2 * queries * candidates;
	float *x = mem_aligned(n, sizeof(*x));
	struct rng r;

	rng_seed(&r, 1);
	for (size_t i = 0; i < n; i++)
		x[i] = rng_range(&r, -1e-3f, 1e-3f);
	return x;
}

/* Pairs of floats a second and processor, the best of some tries. */
static double rate(struct job *j)
{
	double best = 0;

	for (int i = 0; i < 7; i++) {
		double now = (double)j->rounds / limits_time(work, j);

		best = now > best ? now : best;
	}
	return best * (double)(queries * candidates * floats);
}

static void run(const struct limits *l, int metric, bool grad)
{
	const struct metric *m = &metrics[metric];
	struct job j = { .k = kge_kernels_pick(), .metric = metric, .grad = grad, .rounds = 20 };
	double fast, slow, ops = grad ? m->grad_ops : m->score_ops;

	j.x[0] = random_floats();
	j.x[1] = random_floats();
	fast = rate(&j);
	j.k = &kge_kernels_scalar;
	j.rounds = 1;
	slow = rate(&j);
	printf("tile %-8s %-6s %-8s %5.1f G pairs of floats/s a processor, %5.1f x scalar, %3.0f "
	       "%% "
	       "of its arithmetic\n",
	       m->name, grad ? "grad" : "score", kge_kernels_pick()->isa, 1e-9 * fast, fast / slow,
	       100 * fast * ops / l->fma);
	fflush(stdout);
	free(j.x[0]);
	free(j.x[1]);
}

void kernels_run(const struct limits *l)
{
	for (int m = 0; m < KGE_METRICS; m++) {
		run(l, m, false);
		run(l, m, true);
	}
}
