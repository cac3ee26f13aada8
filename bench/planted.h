/* bench/planted.h - rows whose map is known: y = R x + noise for a hidden rotation R. */
#ifndef BENCH_PLANTED_H
#define BENCH_PLANTED_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "nn/linalg.h"

struct world {
	uint32_t n, dim;
	uint64_t seed;
	bool even;    /* no clusters: rows in no direction more than in another */
	float *x, *y; /* [n x dim] */
	float *r;     /* [dim x dim] */
};

/* Rows in clusters of unequal spread, so that the cloud of x has a shape by
 * which an unsupervised method could in principle find R. */
static inline void plant(struct world *w)
{
	enum { CLUSTERS = 20 };
	size_t d = w->dim;
	struct rng r;
	rng_seed(&r, w->seed);
	float *center = mem_array(CLUSTERS * d, sizeof(float));
	for (size_t i = 0; i < CLUSTERS * d; i++)
		center[i] = (float)rng_normal(&r);
	w->r = mem_array(d * d, sizeof(float));
	if (nn_haar(w->r, d, nn_draw_seeded(&r), NULL) != 0)
		exit(1);
	w->x = mem_array(w->n * d, sizeof(float));
	w->y = mem_array(w->n * d, sizeof(float));
	for (size_t i = 0; i < w->n; i++) {
		uint32_t c = rng_below(&r, CLUSTERS);
		c = c < rng_below(&r, CLUSTERS) ? c : c / 2;
		for (size_t j = 0; j < d; j++)
			w->x[i * d + j] = (w->even ? 0 : center[c * d + j]) +
					  (0.3f + 0.02f * (float)(j % 40)) * (float)rng_normal(&r);
	}
	nn_apply(w->y, w->x, w->r, w->n, d, d);
	for (size_t i = 0; i < w->n * d; i++)
		w->y[i] += 0.3f * (float)rng_normal(&r);
	free(center);
}

static inline void world_release(struct world *w)
{
	free(w->x);
	free(w->y);
	free(w->r);
}

static inline double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

#endif
