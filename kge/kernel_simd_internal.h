/* kge/kernel_simd_internal.h - the vector kernels, once, over the few operations that an
 * instruction set's file defines before it includes this one:
 *
 *   V, M           vector of LANES floats; mask of lanes
 *   BLOCK          vectors of a row kept in registers (twice, for the gradient)
 *   v_mask(k)      the first k lanes, 1 <= k <= LANES
 *   v_load(p), v_loadm(p, m), v_store(p, x), v_storem(p, m, x)   any alignment
 *   v_set(x), v_add, v_sub, v_mul, v_max, v_min, v_fma(a, b, c) = a b + c, v_fnma = c - a b
 *   v_abs(x), v_signed(w, x) = w with its sign flipped where x has its sign bit
 *   v_rsqrt(x)     1/sqrt(x) to 22 bits or better, and 0 for 0 and what is not normal
 *   v_rsqrt_estimate(x)   to 11 bits or better; for 0, any number
 *   v_recip(x)     1/x to 22 bits or better, for normal x
 *   v_round(x), v_scalbn(x, n) = x 2^n for whole n
 *   v_positive(x, a, b) = a where x >= 0, else b
 *   v_sum(x), v_top(x)   over the lanes, in a fixed order
 *   v_sum4(a, b, c, d)   the sums of four vectors as a __m128, each in the same order
 *   TILE_Q, TILE_Q_GRAD  queries of a tile in registers: kge/kernel_tile_internal.h
 *
 * Functions that take `nv` are inlined with nv constant, so that loops over a
 * block unroll and its arrays live in registers. */
#include <math.h>
#include <stdbool.h>

#include "kge/kernel.h"

#define INLINE static inline __attribute__((always_inline))
#define UNROLL _Pragma("GCC unroll 16")

enum { SPAN = BLOCK * LANES }; /* floats of a row in a block */

/* The part of a row that is handled at once: nv vectors, the last one masked. */
static M last_mask(size_t floats)
{
	return v_mask(floats % LANES == 0 ? LANES : floats % LANES);
}

static int vectors(size_t floats)
{
	return (int)((floats + LANES - 1) / LANES);
}

/* Products of LANES are small: NOLINTBEGIN(bugprone-implicit-widening-of-multiplication-result) */
INLINE V load_part(const float *p, int k, int nv, M last)
{
	return k == nv - 1 ? v_loadm(p + k * LANES, last) : v_load(p + k * LANES);
}

INLINE void store_part(float *p, int k, int nv, M last, V x)
{
	if (k == nv - 1)
		v_storem(p + k * LANES, last, x);
	else
		v_store(p + k * LANES, x);
}

/* One vector's part of the metric.  1 |d| + sum rather than |d| + sum: processors with units of
 * their own for additions have those busy with the difference. */
INLINE V term(enum kge_metric m, V q, V c, V sum)
{
	V d = v_sub(q, c);

	if (m == KGE_L1)
		return v_fma(v_set(1), v_abs(d), sum);
	return m == KGE_L2 ? v_fma(d, d, sum) : v_fma(q, c, sum);
}

INLINE V term_modulus(V qr, V qi, V cr, V ci, V sum)
{
	V x = v_sub(qr, cr), y = v_sub(qi, ci), s = v_fma(x, x, v_mul(y, y));

	return v_fma(s, v_rsqrt(s), sum);
}

INLINE float finish(enum kge_metric m, float sum)
{
	return m == KGE_L2 ? sqrtf(sum) : sum;
}

#include "kge/kernel_tile_internal.h"

/* ---- a row against the queries that drew it ---- */

struct block {
	size_t at; /* first float of the row, or of its real part */
	bool first, final;
	M last;
};

INLINE float *slot(float *line, const struct kge_pairs *p, uint32_t pair)
{
	return line + (pair >> KGE_PAIR_BITS) * p->width + (pair & 0xffff);
}

/* One block of a row.  Queries are padded with zeros, so only the row needs its mask. */
INLINE void score_block(enum kge_metric m, float *line, const float *row, const struct kge_pairs *p,
			const struct block *b, int nv)
{
	V c[BLOCK];

	UNROLL
	for (int k = 0; k < nv; k++)
		c[k] = load_part(row + b->at, k, nv, b->last);
	for (size_t i = 0; i < p->n; i++) {
		const float *q = p->q + (p->at[i] >> KGE_PAIR_BITS) * p->stride + b->at;
		float *out = slot(line, p, p->at[i]), sum;
		V s[2] = { v_set(0), v_set(0) };

		UNROLL
		for (int k = 0; k < nv; k++)
			s[k % 2] = term(m, v_load(q + k * LANES), c[k], s[k % 2]);
		sum = v_sum(v_add(s[0], s[1])) + (b->first ? 0.0f : *out);
		*out = b->final ? finish(m, sum) : sum;
	}
}

INLINE void grad_block(enum kge_metric m, float *drow, float *dq, const float *weight,
		       const float *row, const struct kge_pairs *p, const struct block *b, int nv)
{
	V c[BLOCK], sum[BLOCK];

	UNROLL
	for (int k = 0; k < nv; k++) {
		c[k] = load_part(row + b->at, k, nv, b->last);
		sum[k] = v_set(0);
	}
	for (size_t i = 0; i < p->n; i++) {
		size_t at = (p->at[i] >> KGE_PAIR_BITS) * p->stride + b->at;
		V w = v_set(*slot((float *)(uintptr_t)weight, p, p->at[i]));

		UNROLL
		for (int k = 0; k < nv; k++) {
			V q = v_load(p->q + at + k * LANES), d = v_load(dq + at + k * LANES), g;

			if (m == KGE_DOT) {
				sum[k] = v_fma(w, q, sum[k]);
				v_store(dq + at + k * LANES, v_fma(w, c[k], d));
				continue;
			}
			g = v_sub(q, c[k]);
			g = m == KGE_L1 ? v_signed(w, g) : v_mul(w, g);
			sum[k] = v_sub(sum[k], g);
			v_store(dq + at + k * LANES, v_add(d, g));
		}
	}
	UNROLL
	for (int k = 0; k < nv; k++)
		store_part(drow + b->at, k, nv, b->last, sum[k]);
}

/* The same for complex rows: nv vectors of real and nv of imaginary parts.
 * Here the queries too need the mask, since imaginary parts follow real ones. */
INLINE void score_block_modulus(float *line, const float *row, const struct kge_pairs *p,
				const struct block *b, int nv)
{
	size_t h = p->floats / 2;
	V re[BLOCK / 2], im[BLOCK / 2];

	UNROLL
	for (int k = 0; k < nv; k++) {
		re[k] = load_part(row + b->at, k, nv, b->last);
		im[k] = load_part(row + h + b->at, k, nv, b->last);
	}
	for (size_t i = 0; i < p->n; i++) {
		const float *q = p->q + (p->at[i] >> KGE_PAIR_BITS) * p->stride + b->at;
		float *out = slot(line, p, p->at[i]);
		V s[2] = { v_set(0), v_set(0) };

		UNROLL
		for (int k = 0; k < nv; k++)
			s[k % 2] = term_modulus(load_part(q, k, nv, b->last),
						load_part(q + h, k, nv, b->last), re[k], im[k],
						s[k % 2]);
		*out = v_sum(v_add(s[0], s[1])) + (b->first ? 0.0f : *out);
	}
}

INLINE void grad_block_modulus(float *drow, float *dq, const float *weight, const float *row,
			       const struct kge_pairs *p, const struct block *b, int nv)
{
	size_t h = p->floats / 2;
	V re[BLOCK / 2], im[BLOCK / 2], sre[BLOCK / 2], sim[BLOCK / 2];

	UNROLL
	for (int k = 0; k < nv; k++) {
		re[k] = load_part(row + b->at, k, nv, b->last);
		im[k] = load_part(row + h + b->at, k, nv, b->last);
		sre[k] = sim[k] = v_set(0);
	}
	for (size_t i = 0; i < p->n; i++) {
		size_t at = (p->at[i] >> KGE_PAIR_BITS) * p->stride + b->at;
		const float *q = p->q + at;
		float *d = dq + at;
		V w = v_set(*slot((float *)(uintptr_t)weight, p, p->at[i]));

		UNROLL
		for (int k = 0; k < nv; k++) {
			V x = v_sub(load_part(q, k, nv, b->last), re[k]);
			V y = v_sub(load_part(q + h, k, nv, b->last), im[k]);
			V u = v_mul(w, v_rsqrt(v_fma(x, x, v_mul(y, y))));

			x = v_mul(x, u);
			y = v_mul(y, u);
			sre[k] = v_sub(sre[k], x);
			sim[k] = v_sub(sim[k], y);
			store_part(d, k, nv, b->last, v_add(load_part(d, k, nv, b->last), x));
			store_part(d + h, k, nv, b->last,
				   v_add(load_part(d + h, k, nv, b->last), y));
		}
	}
	UNROLL
	for (int k = 0; k < nv; k++) {
		store_part(drow + b->at, k, nv, b->last, sre[k]);
		store_part(drow + h + b->at, k, nv, b->last, sim[k]);
	}
}

/* call with nv as a constant. */
#define WITH_NV(nv, call)                                                                          \
	switch (nv) {                                                                              \
	case 1: {                                                                                  \
		enum { NV = 1 };                                                                   \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 2: {                                                                                  \
		enum { NV = 2 };                                                                   \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 3: {                                                                                  \
		enum { NV = 3 };                                                                   \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 4: {                                                                                  \
		enum { NV = 4 };                                                                   \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 5: {                                                                                  \
		enum { NV = BLOCK < 5 ? BLOCK : 5 };                                               \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 6: {                                                                                  \
		enum { NV = BLOCK < 6 ? BLOCK : 6 };                                               \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 7: {                                                                                  \
		enum { NV = BLOCK < 7 ? BLOCK : 7 };                                               \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	default: {                                                                                 \
		enum { NV = BLOCK };                                                               \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	}

#define WITH_NV_HALF(nv, call)                                                                     \
	switch (nv) {                                                                              \
	case 1: {                                                                                  \
		enum { NV = 1 };                                                                   \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 2: {                                                                                  \
		enum { NV = 2 };                                                                   \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	case 3: {                                                                                  \
		enum { NV = BLOCK / 2 < 3 ? BLOCK / 2 : 3 };                                       \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	default: {                                                                                 \
		enum { NV = BLOCK / 2 };                                                           \
		call;                                                                              \
		break;                                                                             \
	}                                                                                          \
	}

/* Walk over `length` floats in blocks of `span`, giving each its mask. */
#define EACH_BLOCK(length, span, b, nv)                                                            \
	struct block b = { .at = 0, .first = true };                                               \
	size_t rest = (length), part = 0;                                                          \
	int nv;                                                                                    \
	for (; rest > 0 && (part = rest < (span) ? rest : (span), nv = vectors(part),              \
			   b.last = last_mask(part), b.final = part == rest, true);                \
	     rest -= part, b.at += part, b.first = false)

#define PAIRS(name, metric)                                                                        \
	static void name##_score_pairs(float *restrict line, const float *restrict row,            \
				       const struct kge_pairs *p)                                  \
	{                                                                                          \
		EACH_BLOCK(p->floats, SPAN, b, nv)                                                 \
		WITH_NV(nv, score_block(metric, line, row, p, &b, NV))                             \
	}                                                                                          \
	static void name##_grad_pairs(float *restrict drow, float *restrict dq,                    \
				      const float *restrict weight, const float *restrict row,     \
				      const struct kge_pairs *p)                                   \
	{                                                                                          \
		EACH_BLOCK(p->floats, SPAN, b, nv)                                                 \
		WITH_NV(nv, grad_block(metric, drow, dq, weight, row, p, &b, NV))                  \
	}

PAIRS(l1, KGE_L1)
PAIRS(l2, KGE_L2)
PAIRS(dot, KGE_DOT)

static void modulus_score_pairs(float *restrict line, const float *restrict row,
				const struct kge_pairs *p)
{
	EACH_BLOCK(p->floats / 2, SPAN / 2, b, nv)
	WITH_NV_HALF(nv, score_block_modulus(line, row, p, &b, NV))
}

static void modulus_grad_pairs(float *restrict drow, float *restrict dq,
			       const float *restrict weight, const float *restrict row,
			       const struct kge_pairs *p){
	EACH_BLOCK(p->floats / 2, SPAN / 2, b, nv)
		WITH_NV_HALF(nv, grad_block_modulus(drow, dq, weight, row, p, &b, NV))
}

/* ---- losses ---- */

/* e^x for x in [-87, 88]: x = n ln 2 + r, |r| <= ln 2 / 2, Taylor's series of degree 7 in r. */
INLINE V v_exp(V x)
{
	V n = v_round(v_mul(x, v_set(1.44269504f)));
	V r = v_fma(n, v_set(-0.693359375f), x), y = v_set(1.0f / 5040.0f);

	r = v_fma(n, v_set(2.12194440e-4f), r);
	y = v_fma(y, r, v_set(1.0f / 720.0f));
	y = v_fma(y, r, v_set(1.0f / 120.0f));
	y = v_fma(y, r, v_set(1.0f / 24.0f));
	y = v_fma(y, r, v_set(1.0f / 6.0f));
	y = v_fma(y, r, v_set(0.5f));
	y = v_fma(y, r, v_set(1.0f));
	y = v_fma(y, r, v_set(1.0f));
	return v_scalbn(y, n);
}

/* log(1 + z) for z in [0, 1]: 2 artanh(t), t = z / (2 + z) <= 1/3, by its odd series. */
INLINE V v_log1p(V z)
{
	V t = v_mul(z, v_recip(v_add(z, v_set(2.0f)))), s = v_mul(t, t);
	V y = v_set(2.0f / 13.0f);

	y = v_fma(y, s, v_set(2.0f / 11.0f));
	y = v_fma(y, s, v_set(2.0f / 9.0f));
	y = v_fma(y, s, v_set(2.0f / 7.0f));
	y = v_fma(y, s, v_set(2.0f / 5.0f));
	y = v_fma(y, s, v_set(2.0f / 3.0f));
	y = v_fma(y, s, v_set(2.0f));
	return v_mul(y, t);
}

static void logistic(float *restrict softplus, float *restrict sigmoid, const float *restrict x,
		     size_t n)
{
	for (size_t i = 0; i < n; i += LANES) {
		M m = v_mask(n - i < LANES ? n - i : LANES);
		V a = v_loadm(x + i, m);
		V z = v_exp(v_max(v_sub(v_set(0), v_abs(a)), v_set(-87.0f)));
		V r = v_recip(v_add(v_set(1.0f), z));

		v_storem(softplus + i, m, v_add(v_max(a, v_set(0)), v_log1p(z)));
		v_storem(sigmoid + i, m, v_positive(a, r, v_mul(z, r)));
	}
}

static float top_of(const float *x, size_t n)
{
	V top = v_set(x[0]);
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		top = v_max(top, v_load(x + i));
	for (; i < n; i++)
		top = v_max(top, v_set(x[i]));
	return v_top(top);
}

static float softmax(float *restrict p, const float *restrict x, float temperature, size_t n)
{
	float most = top_of(x, n), all;
	V top = v_set(most), t = v_set(temperature), sum = v_set(0), scale;
	size_t i = 0, rest = n % LANES;
	M m = v_mask(rest);

	for (; i + LANES <= n; i += LANES) { /* what was just stored is not loaded: that waits */
		V e = v_exp(v_max(v_mul(t, v_sub(v_load(x + i), top)), v_set(-87.0f)));

		v_store(p + i, e);
		sum = v_add(sum, e);
	}
	if (rest > 0) {
		V a = v_mul(t, v_sub(v_loadm(x + i, m), top));

		v_storem(p + i, m, v_exp(v_max(a, v_set(-87.0f))));
		sum = v_add(sum, v_loadm(p + i, m));
	}
	all = v_sum(sum);
	scale = v_set(1.0f / all);
	for (i = 0; i + LANES <= n; i += LANES)
		v_store(p + i, v_mul(v_load(p + i), scale));
	if (rest > 0)
		v_storem(p + i, m, v_mul(v_loadm(p + i, m), scale));
	return temperature * most + logf(all);
}

/* ---- optimisers ---- */

static void add(float *restrict sum, const float *restrict x, size_t n)
{
	for (size_t i = 0; i < n; i += LANES) {
		M m = v_mask(n - i < LANES ? n - i : LANES);

		v_storem(sum + i, m, v_add(v_loadm(sum + i, m), v_loadm(x + i, m)));
	}
}

#include "kge/kernel_step_internal.h"

#define KERNEL_SET(name)                                                                           \
	{                                                                                          \
		.isa = name, .score = { l1_rows, l2_rows, dot_rows, modulus_rows },                \
		.score_pairs = { l1_score_pairs, l2_score_pairs, dot_score_pairs,                  \
				 modulus_score_pairs },                                            \
		.grad_pairs = { l1_grad_pairs, l2_grad_pairs, dot_grad_pairs,                      \
				modulus_grad_pairs },                                              \
		.logistic = logistic, .softmax = softmax, .add = add, .sgd = sgd,                  \
		.momentum = momentum, .adagrad = adagrad, .adam = adam,                            \
		.score_tile = { l1_score_tile, l2_score_tile, dot_score_tile,                      \
				modulus_score_tile },                                              \
		.grad_tile = { l1_grad_tile, l2_grad_tile, dot_grad_tile, modulus_grad_tile },     \
	}

/* NOLINTEND(bugprone-implicit-widening-of-multiplication-result) */
