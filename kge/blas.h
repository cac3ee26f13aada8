/* kge/blas.h - what OpenBLAS is good for on this machine. */
#ifndef KGE_BLAS_H
#define KGE_BLAS_H

#include <stdbool.h>

/* Whether the library's sgemm is faster than our kernels: the library takes processors newer than
 * itself for very old ones.  The first call keeps it from starting threads, since all are ours. */
bool kge_sgemm_is_fast(void);
/* The library's name for the processor that it takes this one for. */
const char *kge_blas_core(void);

#endif
