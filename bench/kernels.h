/* bench/kernels.h - the kernels of tiles against the machine's limit and the scalar reference. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "bench/limits.h"

void kernels_run(const struct limits *l);
/* Additions, products and multiply-adds that the score of two rows takes, by float (of a complex
 * number half of its own); square roots and signs are not counted. */
double kernels_score_ops(int metric);

#endif
