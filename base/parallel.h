/* base/parallel.h - the same work on several threads, then wait for all.
 *
 * fn(ctx, k, threads) runs once for every k in 0..threads-1; k = 0 on the
 * caller's thread.  With threads = 1 nothing is started, so a single-thread
 * run is deterministic. */
#ifndef BASE_PARALLEL_H
#define BASE_PARALLEL_H

#include <stddef.h>

enum { PARALLEL_MAX = 64 };

void parallel_run(size_t threads, void (*fn)(void *ctx, size_t k, size_t threads), void *ctx);

/* The k-th of `threads` equal parts of 0..n-1: from *begin up to, not including, *end. */
void parallel_part(size_t n, size_t k, size_t threads, size_t *begin, size_t *end);

/* Cores that this process may use, at least 1. */
size_t parallel_cores(void);

#endif
