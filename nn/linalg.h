/* nn/linalg.h - the dense algebra that translators need (methods 3.2, 3.6).
 *
 * Matrices are row-major float32; inner sums are in double where that costs
 * little.  OpenBLAS runs on one thread (nn/mlp.h). */
#ifndef NN_LINALG_H
#define NN_LINALG_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/rng.h"
#include "base/secret.h"

/* Where secret random bytes come from: libsodium in the agent, a seeded stream
 * in the simulator. */
struct nn_draw {
	secret_draw_fn *fn;
	void *ctx;
};

extern const struct nn_draw nn_draw_secure; /* secret_draw() */

/* A replayable stream over r, for tests and for sessions on generated rows; never for secrets. */
struct nn_draw nn_draw_seeded(struct rng *r);

/* n draws of the standard normal distribution (Box-Muller over 53-bit uniforms). */
void nn_normal(double *out, size_t n, struct nn_draw draw);

/* q [d x d]: an orthogonal matrix drawn from Haar measure: the Q of a Gaussian
 * matrix's QR, columns flipped by the signs of R's diagonal (Mezzadri 2007).
 * ERR_FAIL if LAPACK fails. */
int nn_haar(float *q, size_t d, struct nn_draw draw, struct err *e);

/* r [dy x dz]: the matrix with orthonormal rows or columns that minimises
 * ||z r' - y||_F, from the SVD y'z = U S V', r = U V'.  z [n x dz], y [n x dy];
 * dz and dy may differ.  Rows with a NaN or infinity: ERR_PROTO. */
int nn_procrustes(float *r, const float *z, const float *y, size_t n, size_t dz, size_t dy,
		  struct err *e);

/* The same from m = y'z [dy x dz] itself, or from what is known of it: r = U V'.  A NaN
 * or infinity: ERR_PROTO. */
int nn_polar(float *r, const double *m, size_t dz, size_t dy, struct err *e);

/* The singular value decomposition of a [m x n], cut down to rank <= min(m, n): u [m x rank],
 * s [rank] descending, v [n x rank], all row-major, a ~ u diag(s) v'.  ERR_FAIL if LAPACK fails. */
int nn_svd(float *u, float *s, float *v, const float *a, size_t m, size_t n, size_t rank,
	   struct err *e);

/* MUSE's step toward orthogonality, w [d x d]: w <- (1+beta) w - beta (w w') w. */
void nn_orthogonalize(float *w, size_t d, float beta);

/* out [n x rows_w] = x [n x cols_w] w', w [rows_w x cols_w]. */
void nn_apply(float *out, const float *x, const float *w, size_t n, size_t rows_w, size_t cols_w);

/* out[i] = cosine of row i of a and row i of b; 0 where a row is zero. */
void nn_cosines(float *out, const float *a, const float *b, size_t n, size_t d);
double nn_mean_cosine(const float *a, const float *b, size_t n, size_t d);

/* CSLS(a_i, b_j) = 2 cos(a_i, b_j) - r_b(a_i) - r_a(b_j), r = mean cosine to the k nearest rows of
 * the other side (k <= n), as in MUSE (Conneau et al. 2018; methods 3.2). */
struct nn_csls {
	double mean;	/* over i of CSLS(a_i, b_i) */
	double nearest; /* share of the rows a_i to which no b_j is nearer than b_i, by CSLS */
};
/* O(n^2 d): give it a sample of a few thousand rows.  n 0: zeros. */
struct nn_csls nn_csls(const float *a, const float *b, size_t n, size_t d, size_t k);

#endif
