/* kge/kernel.h - the arithmetic of scoring and of training, one set an instruction set.
 *
 * Scores are raw: KGE_DOT gives the product, the others the *distance* (the
 * caller computes gamma - distance).  For KGE_MODULUS floats is even and a row
 * is floats/2 real parts followed by floats/2 imaginary parts.
 *
 * The scalar set is the definition: plain loops, one double accumulator.  Every
 * other set must agree with it within kge_kernel_tolerance() at every length
 * in the test, and must give the same bits each time: the order of its
 * additions depends on `floats` alone, never on n, alignment or threads. */
#ifndef KGE_KERNEL_H
#define KGE_KERNEL_H

#include <stddef.h>
#include <stdint.h>

#include "kge/model.h"

/* out[i] = metric(q, row i), for n contiguous rows of `floats` floats. */
typedef void kge_kernel_fn(float *restrict out, const float *restrict q, const float *restrict rows,
			   size_t n, size_t floats);

/* ---- training: one row of the table against the queries that drew it ----
 *
 * A batch is a matrix of queries, row-major with a stride that is a multiple
 * of KGE_PAD floats and zeros behind `floats`, and for every query a line of
 * `width` candidates.  A pair (query << 16 | column) names one of them.  Pairs
 * are handled by table row, so that a row, its gradient and its moments are
 * touched once a batch however often the row was drawn. */
enum { KGE_PAD = 16, KGE_PAIR_BITS = 16 };

struct kge_pairs {
	const uint32_t *at; /* pairs that share one candidate row */
	size_t n;
	size_t width;	/* candidates of a query */
	const float *q; /* queries */
	size_t stride;	/* floats from query to query */
	size_t floats;	/* of a row */
};

/* line[query * width + column] = metric(query, row) for each pair. */
typedef void kge_score_fn(float *restrict line, const float *restrict row,
			  const struct kge_pairs *p);
/* With w = weight[query * width + column] = dLoss/dmetric (KGE_L2: dLoss/dmetric / metric):
 * dq[query] += w * dmetric/dq, and drow = sum of w * dmetric/drow (written, not added).
 * The subgradient of |x| at 0 is that of +0 or -0 by its sign bit; of a modulus, 0. */
typedef void kge_grad_fn(float *restrict drow, float *restrict dq, const float *restrict weight,
			 const float *restrict row, const struct kge_pairs *p);

/* ---- tiles: a block of queries against a block of candidates ----
 *
 * Rows of a block stand `stride` floats apart, stride >= floats; nothing is read or
 * written between them.  Powers of two are bad strides: columns then share few positions
 * of a cache.  A score has the same bits wherever its rows stand, and those of `score`. */
struct kge_tile {
	const float *q; /* nq queries */
	size_t nq, q_stride;
	const float *c; /* nc candidates */
	size_t nc, c_stride;
	size_t floats; /* of a row */
};

/* out[i * ldo + j] = metric(query i, candidate j); ldo >= nc. */
typedef void kge_score_tile_fn(float *restrict out, size_t ldo, const struct kge_tile *t);
/* With w[i * ldw + j] as `weight` of kge_grad_fn: dq[i * q_stride..] += sum over j, and
 * dc[j * c_stride..] += sum over i.  Each sum goes by j or i upwards, so that calls with
 * pieces of a block, in order, give the bits of one call with all of it. */
typedef void kge_grad_tile_fn(float *restrict dq, float *restrict dc, const float *restrict w,
			      size_t ldw, const struct kge_tile *t);

struct kge_step {
	float lr;    /* Adam: already divided by 1 - beta1^t */
	float beta1; /* Adam; momentum */
	float beta2, eps;
	float scale2; /* Adam: 1 / sqrt(1 - beta2^t) */
};

struct kge_kernels {
	const char *isa;		   /* "scalar", "avx2", "avx512" */
	kge_kernel_fn *score[KGE_METRICS]; /* rows contiguous */
	kge_score_fn *score_pairs[KGE_METRICS];
	kge_grad_fn *grad_pairs[KGE_METRICS];
	kge_score_tile_fn *score_tile[KGE_METRICS];
	kge_grad_tile_fn *grad_tile[KGE_METRICS];
	/* softplus[i] = log(1 + e^x[i]), sigmoid[i] = 1 / (1 + e^-x[i]).  Below -87: that of -87.
	 */
	void (*logistic)(float *restrict softplus, float *restrict sigmoid, const float *restrict x,
			 size_t n);
	/* p = softmax(temperature * x), n > 0; returns log sum_i e^(temperature x[i]). */
	float (*softmax)(float *restrict p, const float *restrict x, float temperature, size_t n);
	/* sum += x */
	void (*add)(float *restrict sum, const float *restrict x, size_t n);
	/* One optimiser step on one row; g is its gradient. */
	void (*sgd)(float *restrict w, const float *restrict g, const struct kge_step *s, size_t n);
	/* m = beta1 m + g, w -= lr m */
	void (*momentum)(float *restrict w, float *restrict m, const float *restrict g,
			 const struct kge_step *s, size_t n);
	void (*adagrad)(float *restrict w, float *restrict v, const float *restrict g,
			const struct kge_step *s, size_t n);
	void (*adam)(float *restrict w, float *restrict m, float *restrict v,
		     const float *restrict g, const struct kge_step *s, size_t n);
};

extern const struct kge_kernels kge_kernels_scalar;

/* How far sets may differ in a sum of `floats` terms whose absolute values add up to `magnitude`.
 */
float kge_kernel_tolerance(enum kge_metric m, size_t floats, float magnitude);

/* The set of that name if this machine runs it, else NULL. */
const struct kge_kernels *kge_kernels_find(const char *isa);
/* The best set that this machine runs; FKGE_ISA=scalar|avx2|avx512 in the environment wins. */
const struct kge_kernels *kge_kernels_pick(void);

#endif
