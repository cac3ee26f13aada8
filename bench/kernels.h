/* bench/kernels.h - the kernels of tiles against the machine's limit and the scalar reference. */
#ifndef BENCH_KERNELS_H
#define BENCH_KERNELS_H

#include "bench/limits.h"

void kernels_run(const struct limits *l);

#endif
