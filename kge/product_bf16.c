/* kge/product_bf16.c - c = a b in panels that stay in the caches (Goto and van de Geijn 2008).
 *
 * A panel is WIDE columns of b, or HIGH rows of a, whose entries stand in pairs along the inner
 * dimension, as VDPBF16PS takes them.  One of each is in the first cache, HIGH x WIDE sums are in
 * registers. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kge/product.h"

enum {
	LANES = 16,
	VECTORS = 3,
	HIGH = 8,
	WIDE = VECTORS * LANES,
	PAIRS = KGE_PRODUCT_INNER / 2,
};

/* Sixteen entries of two rows, in pairs; past `n` zeros, and in place of a second row that is not
 * there. */
static __m512i pairs_across(const float *x, const float *next, __mmask16 there)
{
	__m512 second = next != NULL ? _mm512_maskz_loadu_ps(there, next) : _mm512_setzero_ps();
	__m256i low = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(there, x));
	__m256i high = (__m256i)_mm512_cvtneps_pbh(second);

	return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
			       _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/* A panel of `wide` lanes (n of them there) x inner entries, where lanes are neighbours. */
static void pack_across(uint32_t *out, const float *x, size_t step, size_t wide, size_t n,
			size_t inner)
{
	for (size_t k = 0; k < inner; k += 2)
		for (size_t i = 0; i < wide; i += LANES) {
			size_t rest = n > i ? n - i : 0;
			__mmask16 there = (__mmask16)(rest < LANES ? (1u << rest) - 1 : 0xffff);
			const float *at = x + k * step + i;
			__m512i pairs = pairs_across(at, k + 1 < inner ? at + step : NULL, there);
			__mmask16 all = (__mmask16)(wide < LANES ? (1u << wide) - 1 : 0xffff);

			_mm512_mask_storeu_epi32(out + k / 2 * wide + i, all, pairs);
		}
}

/* Rows become columns. */
static void turn_block(__m512i r[LANES])
{
	__m512i a[LANES], b[LANES];

	for (int i = 0; i < LANES; i += 2) {
		a[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
		a[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
	}
	for (int i = 0; i < LANES; i += 4) {
		b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
		b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
		b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
		b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
	}
	for (int j = 0; j < 4;
	     j++) { /* b[4 i + j]: of rows 4 i.., columns j, 4 + j, 8 + j, 12 + j */
		__m512i even = _mm512_shuffle_i32x4(b[j], b[4 + j], 0x88);
		__m512i even_low = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0x88);
		__m512i odd = _mm512_shuffle_i32x4(b[j], b[4 + j], 0xdd);
		__m512i odd_low = _mm512_shuffle_i32x4(b[8 + j], b[12 + j], 0xdd);

		r[j] = _mm512_shuffle_i32x4(even, even_low, 0x88);
		r[4 + j] = _mm512_shuffle_i32x4(odd, odd_low, 0x88);
		r[8 + j] = _mm512_shuffle_i32x4(even, even_low, 0xdd);
		r[12 + j] = _mm512_shuffle_i32x4(odd, odd_low, 0xdd);
	}
}

/* Entries from x on, `there` of them, as pairs. */
static __m512i pairs_along(const float *x, uint32_t there)
{
	__m512 low = _mm512_maskz_loadu_ps((__mmask16)there, x);
	__m512 high = _mm512_maskz_loadu_ps((__mmask16)(there >> 16), x + LANES);

	return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* The same where a lane's entries are neighbours, lanes `step` apart. */
static void pack_along(uint32_t *out, const float *x, size_t step, size_t wide, size_t n,
		       size_t inner)
{
	for (size_t i = 0; i < wide; i += LANES)
		for (size_t k = 0; k < inner; k += (size_t)2 * LANES) {
			size_t rest = inner - k, pairs = rest < 32 ? (rest + 1) / 2 : LANES;
			uint32_t there = rest < 32 ? (1u << rest) - 1 : 0xffffffffu;
			__mmask16 all = (__mmask16)(wide < LANES ? (1u << wide) - 1 : 0xffff);
			__m512i r[LANES];

			for (size_t l = 0; l < LANES; l++)
				r[l] = i + l < n ? pairs_along(x + (i + l) * step + k, there)
						 : _mm512_setzero_si512();
			turn_block(r);
			for (size_t p = 0; p < pairs; p++)
				_mm512_mask_storeu_epi32(out + (k / 2 + p) * wide + i, all, r[p]);
		}
}

/* `count` lanes from the first on, in panels of `wide`; step: from one lane to the next, from one
 * entry of the inner dimension to the next. */
static void pack_lanes(uint32_t *out, const float *x, size_t lane_step, size_t inner_step,
		       size_t wide, size_t count, size_t inner)
{
	size_t size = (inner + 1) / 2 * wide;

	for (size_t i = 0; i < count; i += wide, out += size) {
		size_t n = count - i < wide ? count - i : wide;

		if (inner_step == 1)
			pack_along(out, x + i * lane_step, lane_step, wide, n, inner);
		else
			pack_across(out, x + i, inner_step, wide, n, inner);
	}
}

static __m512bh as_bfloat(__m512i x)
{
	return (__m512bh)x;
}

/* sums (HIGH x WIDE) = a panel of a by one of b. */
static void panel_product(__m512 sums[HIGH][VECTORS], const uint32_t *restrict a,
			  const uint32_t *restrict b, size_t pairs)
{
	__m512 s[HIGH][VECTORS];

	for (int i = 0; i < HIGH; i++)
		for (int v = 0; v < VECTORS; v++)
			s[i][v] = _mm512_setzero_ps();
	for (size_t p = 0; p < pairs; p++, a += HIGH, b += WIDE) {
		__m512bh at[VECTORS];

		for (int v = 0; v < VECTORS; v++)
			at[v] = as_bfloat(_mm512_loadu_si512(b + (size_t)v * LANES));
		for (int i = 0; i < HIGH; i++) {
			__m512bh x = as_bfloat(_mm512_set1_epi32((int32_t)a[i]));

			for (int v = 0; v < VECTORS; v++)
				s[i][v] = _mm512_dpbf16_ps(s[i][v], x, at[v]);
		}
	}
	memcpy(sums, s, sizeof(s));
}

/* A block of c, rows x columns of it, from sums; added to what is there unless it is the first. */
static void store_panel(float *c, size_t stride, __m512 sums[HIGH][VECTORS], size_t rows,
			size_t columns, bool first)
{
	for (size_t i = 0; i < rows; i++)
		for (size_t v = 0; v * LANES < columns; v++) {
			size_t rest = columns - v * LANES;
			__mmask16 there = (__mmask16)(rest < LANES ? (1u << rest) - 1 : 0xffff);
			float *to = c + i * stride + v * LANES;
			__m512 x = sums[i][v];

			if (!first)
				x = _mm512_add_ps(x, _mm512_maskz_loadu_ps(there, to));
			_mm512_mask_storeu_ps(to, there, x);
		}
}

static size_t fits_in(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* The packed blocks: rows x inner of a, inner x columns of b. */
static void block_product(float *c, size_t stride, const uint32_t *a, const uint32_t *b,
			  size_t rows, size_t columns, size_t inner, bool first)
{
	size_t pairs = (inner + 1) / 2;
	__m512 sums[HIGH][VECTORS];

	for (size_t j = 0; j < columns; j += WIDE)
		for (size_t i = 0; i < rows; i += HIGH) {
			panel_product(sums, a + i * pairs, b + j * pairs, pairs);
			store_panel(c + i * stride + j, stride, sums, fits_in(HIGH, rows - i),
				    fits_in(WIDE, columns - j), first);
		}
}

static const float *entry_at(const struct kge_matrix *m, size_t i, size_t j)
{
	return m->at + i * m->row + j * m->column;
}

/* A block of b, nk x nj of it, by all of a. */
static void rows_product(const struct kge_product *p, const uint32_t *packed_b, size_t k, size_t j,
			 size_t nk, size_t nj, uint32_t *packed_a)
{
	for (size_t i = 0; i < p->rows; i += KGE_PRODUCT_ROWS) {
		size_t ni = fits_in(KGE_PRODUCT_ROWS, p->rows - i);

		pack_lanes(packed_a, entry_at(&p->a, i, k), p->a.row, p->a.column, HIGH, ni, nk);
		block_product(p->c + i * p->stride + j, p->stride, packed_a, packed_b, ni, nj, nk,
			      k == 0 && !p->add);
	}
}

void kge_product_bf16(const struct kge_product *p, void *room)
{
	uint32_t *packed_a = room, *packed_b = packed_a + (size_t)PAIRS * KGE_PRODUCT_ROWS;

	for (size_t j = 0; j < p->columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < p->inner; k += KGE_PRODUCT_INNER) {
			size_t nj = fits_in(KGE_PRODUCT_COLUMNS, p->columns - j);
			size_t nk = fits_in(KGE_PRODUCT_INNER, p->inner - k);

			pack_lanes(packed_b, entry_at(&p->b, k, j), p->b.column, p->b.row, WIDE, nj,
				   nk);
			rows_product(p, packed_b, k, j, nk, nj, packed_a);
		}
}

/* ---- b packed once ---- */

static size_t block_size(size_t nk, size_t nj)
{
	return (nk + 1) / 2 * ((nj + WIDE - 1) / WIDE * WIDE);
}

size_t kge_packed_size(size_t inner, size_t columns)
{
	size_t size = 0;

	for (size_t j = 0; j < columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < inner; k += KGE_PRODUCT_INNER)
			size += block_size(fits_in(KGE_PRODUCT_INNER, inner - k),
					   fits_in(KGE_PRODUCT_COLUMNS, columns - j));
	return size;
}

void kge_packed_fill(uint32_t *out, const struct kge_matrix *b, size_t inner, size_t columns)
{
	for (size_t j = 0; j < columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < inner; k += KGE_PRODUCT_INNER) {
			size_t nj = fits_in(KGE_PRODUCT_COLUMNS, columns - j);
			size_t nk = fits_in(KGE_PRODUCT_INNER, inner - k);

			pack_lanes(out, entry_at(b, k, j), b->column, b->row, WIDE, nj, nk);
			out += block_size(nk, nj);
		}
}

void kge_packed_bf16(const struct kge_product *p, const uint32_t *b, void *room)
{
	for (size_t j = 0; j < p->columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < p->inner; k += KGE_PRODUCT_INNER) {
			size_t nj = fits_in(KGE_PRODUCT_COLUMNS, p->columns - j);
			size_t nk = fits_in(KGE_PRODUCT_INNER, p->inner - k);

			rows_product(p, b, k, j, nk, nj, room);
			b += block_size(nk, nj);
		}
}
