/* kge/blas.h - what OpenBLAS is good for on this machine. */
#ifndef KGE_BLAS_H
#define KGE_BLAS_H

#include <stdbool.h>

/* Whether the library's sgemm is faster than our kernels: the library takes processors newer than
 * itself for very old ones.  The first call keeps it from starting threads, since all are ours. */
bool kge_sgemm_is_fast(void);
/* The library's name for the processor that it takes this one for. */
const char *kge_blas_core(void);
/* Its name for one whose instructions are those that our kernels take; NULL: it has that. */
const char *kge_blas_core_wanted(void);
/* Starts this program again with OPENBLAS_CORETYPE set to that, since the library looks at it when
 * it is loaded.  Returns where there is nothing to mend, where the owner has set it, and where the
 * program cannot be started again.  For the first line of main(). */
void kge_blas_restart(char **argv);

#endif
