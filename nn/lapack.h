/* nn/lapack.h - what is used of LAPACK, row-major, from OpenBLAS itself.
 *
 * OpenBLAS brings LAPACK along.  LAPACKE in front of it would load four libraries more at each
 * start of the program. */
#ifndef NN_LAPACK_H
#define NN_LAPACK_H

#include <stddef.h>

/* a [n x n] = Q R: Q into q [n x n], the diagonal of R into r [n].  a is destroyed.
 * 0, or -1: LAPACK refused. */
int nn_lapack_qr(double *a, double *q, double *r, size_t n);

/* The economy SVD of a [m x n], finite: u [m x k], s [k] (largest first), vt [k x n], k the smaller
 * of m and n.  a is left as it is.  0, or -1: not found. */
int nn_lapack_svd(const double *a, size_t m, size_t n, double *u, double *s, double *vt);

#endif
