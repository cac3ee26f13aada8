/* kge/kernel_tile_internal.h - the vector kernels of tiles, queries x candidates; a part of
 * kge/kernel_simd_internal.h.
 *
 * Scores: TILE_Q x TILE_C sums at once, one vector each, so that what is loaded is
 * used TILE_C or TILE_Q times; the lanes of TILE_C vectors are added up together at the end.
 * Gradients: TILE_Q_GRAD queries and their gradients stay in registers for one vector
 * of the row while candidates and their gradients pass by.
 *
 * Either way a sum's order is its own: a score adds the row's vectors one after
 * another and then the lanes, a gradient goes through the other side in its order.
 * Neither depends on how rows are grouped, and the last rows of a block go one by one.
 *
 * Candidates come in pieces that stay in the first cache while all queries pass. */

enum { TILE_C = 4, PIECE_FLOATS = 4096, PIECE_FLOATS_GRAD = 8192 };

/* Rows in a piece, a multiple of TILE_C. */
INLINE size_t piece_rows(size_t piece, size_t floats)
{
	size_t rows = piece / (floats > 0 ? floats : 1) / TILE_C * TILE_C;

	return rows > TILE_C ? rows : TILE_C;
}

/* The row as the loops see it: complex rows have half as many positions, each with two floats. */
INLINE size_t positions_of(enum kge_metric m, size_t floats)
{
	return m == KGE_MODULUS ? floats / 2 : floats;
}

INLINE V load_lanes(const float *p, bool whole, M last)
{
	return whole ? v_load(p) : v_loadm(p, last);
}

INLINE void store_lanes(float *p, bool whole, M last, V x)
{
	if (whole)
		v_store(p, x);
	else
		v_storem(p, last, x);
}

/* ---- scores ---- */

/* Twice sum + |q - c|, less of a rounding: |d| = s r with s = |d|^2, r near 1/sqrt(s),
 * and Newton's step makes that s r (3 - s r r) / 2. */
INLINE V term_modulus_twice(V qr, V qi, V cr, V ci, V sum)
{
	V x = v_sub(qr, cr), y = v_sub(qi, ci), s = v_fma(x, x, v_mul(y, y));
	V r = v_rsqrt_estimate(s), u = v_mul(s, r);

	return v_fma(u, v_fnma(u, r, v_set(3)), sum);
}

/* One vector of tq queries and tc candidates; `half` leads from real to imaginary parts. */
INLINE void add_terms(enum kge_metric m, V sum[TILE_Q][TILE_C], size_t tq, size_t tc,
		      const float *q, const float *c, const struct kge_tile *t, bool whole, M last)
{
	size_t half = t->floats / 2;
	V qr[TILE_Q], qi[TILE_Q], cr, ci;

	UNROLL
	for (size_t i = 0; i < tq; i++) {
		qr[i] = load_lanes(q + i * t->q_stride, whole, last);
		if (m == KGE_MODULUS)
			qi[i] = load_lanes(q + i * t->q_stride + half, whole, last);
	}
	UNROLL
	for (size_t j = 0; j < tc; j++) {
		cr = load_lanes(c + j * t->c_stride, whole, last);
		if (m == KGE_MODULUS)
			ci = load_lanes(c + j * t->c_stride + half, whole, last);
		UNROLL
		for (size_t i = 0; i < tq; i++)
			sum[i][j] = m == KGE_MODULUS
					    ? term_modulus_twice(qr[i], qi[i], cr, ci, sum[i][j])
					    : term(m, qr[i], cr, sum[i][j]);
	}
}

INLINE void score_cell(enum kge_metric m, size_t tq, size_t tc, float *out, size_t ldo,
		       const float *q, const float *c, const struct kge_tile *t)
{
	size_t positions = positions_of(m, t->floats), at = 0;
	V sum[TILE_Q][TILE_C];

	UNROLL
	for (size_t i = 0; i < tq * TILE_C; i++)
		sum[i / TILE_C][i % TILE_C] = v_set(0);
	for (; at + LANES <= positions; at += LANES)
		add_terms(m, sum, tq, tc, q + at, c + at, t, true, v_mask(LANES));
	if (at < positions)
		add_terms(m, sum, tq, tc, q + at, c + at, t, false, v_mask(positions - at));
	UNROLL
	for (size_t i = 0; i < tq; i++) {
		__m128 four = v_sum4(sum[i][0], sum[i][1], sum[i][2], sum[i][3]);

		if (m == KGE_L2)
			four = _mm_sqrt_ps(four);
		if (m == KGE_MODULUS)
			four = _mm_mul_ps(four, _mm_set1_ps(0.5f));
		if (tc == TILE_C)
			_mm_storeu_ps(out + i * ldo, four);
		else
			out[i * ldo] = _mm_cvtss_f32(four);
	}
}

/* tq queries against a piece. */
INLINE void score_strip(enum kge_metric m, size_t tq, float *out, size_t ldo, const float *q,
			const float *c, size_t nc, const struct kge_tile *t)
{
	size_t j = 0;

	for (; j + TILE_C <= nc; j += TILE_C)
		score_cell(m, tq, TILE_C, out + j, ldo, q, c + j * t->c_stride, t);
	for (; j < nc; j++)
		score_cell(m, tq, 1, out + j, ldo, q, c + j * t->c_stride, t);
}

INLINE void score_tile(enum kge_metric m, float *out, size_t ldo, const struct kge_tile *t)
{
	size_t piece = piece_rows(PIECE_FLOATS, t->floats);

	for (size_t j = 0; j < t->nc; j += piece) {
		size_t nc = t->nc - j < piece ? t->nc - j : piece, i = 0;
		const float *c = t->c + j * t->c_stride;

		for (; i + TILE_Q <= t->nq; i += TILE_Q)
			score_strip(m, TILE_Q, out + i * ldo + j, ldo, t->q + i * t->q_stride, c,
				    nc, t);
		for (; i < t->nq; i++)
			score_strip(m, 1, out + i * ldo + j, ldo, t->q + i * t->q_stride, c, nc, t);
	}
}

/* ---- gradients ---- */

enum { TILE_Q_HALF = TILE_Q_GRAD / 2 }; /* complex rows need twice the registers */

/* One vector of tq queries, and all candidates of a piece. */
INLINE void grad_real(enum kge_metric m, size_t tq, float *dq, float *dc, const float *w,
		      size_t ldw, const float *q, const float *c, size_t nc,
		      const struct kge_tile *t, bool whole, M last)
{
	V row[TILE_Q_GRAD], sum[TILE_Q_GRAD];

	UNROLL
	for (size_t i = 0; i < tq; i++) {
		row[i] = load_lanes(q + i * t->q_stride, whole, last);
		sum[i] = load_lanes(dq + i * t->q_stride, whole, last);
	}
	for (size_t j = 0; j < nc; j++, c += t->c_stride, dc += t->c_stride, w++) {
		V x = load_lanes(c, whole, last), d = load_lanes(dc, whole, last);

		UNROLL
		for (size_t i = 0; i < tq; i++) {
			V weight = v_set(w[i * ldw]), g;

			if (m == KGE_DOT) {
				sum[i] = v_fma(weight, x, sum[i]);
				d = v_fma(weight, row[i], d);
				continue;
			}
			g = v_sub(row[i], x);
			if (m == KGE_L1) {
				g = v_signed(weight, g);
				weight = v_set(1);
			}
			sum[i] = v_fma(weight, g, sum[i]);
			d = m == KGE_L1 ? v_sub(d, g) : v_fnma(weight, g, d);
		}
		store_lanes(dc, whole, last, d);
	}
	UNROLL
	for (size_t i = 0; i < tq; i++)
		store_lanes(dq + i * t->q_stride, whole, last, sum[i]);
}

/* The same for real and imaginary parts. */
INLINE void grad_modulus(size_t tq, float *dq, float *dc, const float *w, size_t ldw,
			 const float *q, const float *c, size_t nc, const struct kge_tile *t,
			 bool whole, M last)
{
	size_t half = t->floats / 2;
	V re[TILE_Q_HALF], im[TILE_Q_HALF], sre[TILE_Q_HALF], sim[TILE_Q_HALF];

	UNROLL
	for (size_t i = 0; i < tq; i++) {
		re[i] = load_lanes(q + i * t->q_stride, whole, last);
		im[i] = load_lanes(q + i * t->q_stride + half, whole, last);
		sre[i] = load_lanes(dq + i * t->q_stride, whole, last);
		sim[i] = load_lanes(dq + i * t->q_stride + half, whole, last);
	}
	for (size_t j = 0; j < nc; j++, c += t->c_stride, dc += t->c_stride, w++) {
		V cr = load_lanes(c, whole, last), ci = load_lanes(c + half, whole, last);
		V dr = load_lanes(dc, whole, last), di = load_lanes(dc + half, whole, last);

		UNROLL
		for (size_t i = 0; i < tq; i++) {
			V x = v_sub(re[i], cr), y = v_sub(im[i], ci);
			V s = v_fma(x, x, v_mul(y, y)), r = v_rsqrt_estimate(s);
			V u = v_mul(v_mul(v_set(0.5f * w[i * ldw]), r),
				    v_fnma(v_mul(s, r), r, v_set(3)));

			sre[i] = v_fma(u, x, sre[i]);
			sim[i] = v_fma(u, y, sim[i]);
			dr = v_fnma(u, x, dr);
			di = v_fnma(u, y, di);
		}
		store_lanes(dc, whole, last, dr);
		store_lanes(dc + half, whole, last, di);
	}
	UNROLL
	for (size_t i = 0; i < tq; i++) {
		store_lanes(dq + i * t->q_stride, whole, last, sre[i]);
		store_lanes(dq + i * t->q_stride + half, whole, last, sim[i]);
	}
}

INLINE void grad_lanes(enum kge_metric m, size_t tq, float *dq, float *dc, const float *w,
		       size_t ldw, const float *q, const float *c, size_t nc,
		       const struct kge_tile *t, bool whole, M last)
{
	if (m == KGE_MODULUS)
		grad_modulus(tq, dq, dc, w, ldw, q, c, nc, t, whole, last);
	else
		grad_real(m, tq, dq, dc, w, ldw, q, c, nc, t, whole, last);
}

/* tq queries from the i-th, candidates j..j + nc - 1. */
INLINE void grad_strip(enum kge_metric m, size_t tq, float *dq, float *dc, const float *w,
		       size_t ldw, size_t i, size_t j, size_t nc, const struct kge_tile *t)
{
	size_t positions = positions_of(m, t->floats), at = 0;
	const float *q = t->q + i * t->q_stride, *c = t->c + j * t->c_stride;

	dq += i * t->q_stride;
	dc += j * t->c_stride;
	w += i * ldw + j;
	for (; at + LANES <= positions; at += LANES)
		grad_lanes(m, tq, dq + at, dc + at, w, ldw, q + at, c + at, nc, t, true,
			   v_mask(LANES));
	if (at < positions)
		grad_lanes(m, tq, dq + at, dc + at, w, ldw, q + at, c + at, nc, t, false,
			   v_mask(positions - at));
}

INLINE void grad_tile(enum kge_metric m, float *dq, float *dc, const float *w, size_t ldw,
		      const struct kge_tile *t)
{
	enum { MODULUS_Q = TILE_Q_HALF, REAL_Q = TILE_Q_GRAD };
	const size_t tq = m == KGE_MODULUS ? MODULUS_Q : REAL_Q;
	size_t piece = piece_rows(PIECE_FLOATS_GRAD, t->floats);

	for (size_t j = 0; j < t->nc; j += piece) {
		size_t nc = t->nc - j < piece ? t->nc - j : piece, i = 0;

		for (; i + tq <= t->nq; i += tq)
			grad_strip(m, tq, dq, dc, w, ldw, i, j, nc, t);
		for (; i < t->nq; i++)
			grad_strip(m, 1, dq, dc, w, ldw, i, j, nc, t);
	}
}

/* One query against rows is a tile too. */
#define TILES(name, metric)                                                                        \
	static void name##_score_tile(float *restrict out, size_t ldo, const struct kge_tile *t)   \
	{                                                                                          \
		score_tile(metric, out, ldo, t);                                                   \
	}                                                                                          \
	static void name##_grad_tile(float *restrict dq, float *restrict dc,                       \
				     const float *restrict w, size_t ldw,                          \
				     const struct kge_tile *t)                                     \
	{                                                                                          \
		grad_tile(metric, dq, dc, w, ldw, t);                                              \
	}                                                                                          \
	static void name##_rows(float *restrict out, const float *restrict q,                      \
				const float *restrict rows, size_t n, size_t floats)               \
	{                                                                                          \
		struct kge_tile t = { q, 1, floats, rows, n, floats, floats };                     \
                                                                                                   \
		score_tile(metric, out, n, &t);                                                    \
	}

TILES(l1, KGE_L1)
TILES(l2, KGE_L2)
TILES(dot, KGE_DOT)
TILES(modulus, KGE_MODULUS)
