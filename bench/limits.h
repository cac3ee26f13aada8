/* bench/limits.h - what this machine can do, measured beside what is compared with it.
 *
 * Two threads at a time, and rates by the processor time that both took: other work on the
 * machine then disturbs little but its caches. */
#ifndef BENCH_LIMITS_H
#define BENCH_LIMITS_H

#include <stddef.h>

struct limits {
	double fma;    /* multiply-adds (or additions, or products) a second and processor: lanes
			  times instructions of the widest set */
	double stream; /* bytes a second and processor, read or written, beyond all caches */
	double sgemm;  /* multiply-adds a second and processor of OpenBLAS on 1024 x 1024 */
};

struct limits limits_measure(void);
void limits_print(const struct limits *l);

/* Runs fn(ctx, k) on two threads; the mean of the processor time that it took one. */
double limits_time(void (*fn)(void *ctx, size_t k), void *ctx);

#endif
