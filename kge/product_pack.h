/* kge/product_pack.h - a matrix rounded to bfloat16 and laid out in panels, for the products of
 * kge/product_bf16.c and kge/product_amx.c, which have AVX-512 BF16 both.
 *
 * A panel is so many lanes (rows of a, columns of b); an entry of it is a pair of neighbours along
 * the inner dimension, as VDPBF16PS and TDPBF16PS take them. */
#ifndef KGE_PRODUCT_PACK_H
#define KGE_PRODUCT_PACK_H

#include <immintrin.h>
#include <stdint.h>

#include "kge/product.h"

enum { LANES = 16 };

static inline size_t fits_in(size_t a, size_t b)
{
	return a < b ? a : b;
}

static inline __mmask16 first_lanes(size_t n)
{
	return (__mmask16)(n < LANES ? (1u << n) - 1 : 0xffff);
}

static inline const float *entry_at(const struct kge_matrix *m, size_t i, size_t j)
{
	return m->at + i * m->row + j * m->column;
}

/* Sixteen entries of two rows, in pairs; zeros where a lane is not there, and in place of a second
 * row that is not (NULL). */
static inline __m512i pairs_across(const float *x, const float *next, __mmask16 there)
{
	__m512 second = next != NULL ? _mm512_maskz_loadu_ps(there, next) : _mm512_setzero_ps();
	__m256i low = (__m256i)_mm512_cvtneps_pbh(_mm512_maskz_loadu_ps(there, x));
	__m256i high = (__m256i)_mm512_cvtneps_pbh(second);

	return _mm512_or_si512(_mm512_cvtepu16_epi32(low),
			       _mm512_slli_epi32(_mm512_cvtepu16_epi32(high), 16));
}

/* A panel of `wide` lanes (n of them there) by `pairs` pairs (of `inner` entries there), where
 * lanes are neighbours. */
static inline void pack_across(uint32_t *out, const float *x, size_t step, size_t wide, size_t n,
			       size_t inner, size_t pairs)
{
	for (size_t p = 0; p < pairs; p++)
		for (size_t i = 0; i < wide; i += LANES) {
			__mmask16 there = first_lanes(n > i && 2 * p < inner ? n - i : 0);
			const float *at = x + 2 * p * step + i;
			const float *next = 2 * p + 1 < inner ? at + step : NULL;

			_mm512_mask_storeu_epi32(out + p * wide + i, first_lanes(wide - i),
						 pairs_across(at, next, there));
		}
}

/* Rows become columns. */
static inline void turn_block(__m512i r[LANES])
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
static inline __m512i pairs_along(const float *x, uint32_t there)
{
	__m512 low = _mm512_maskz_loadu_ps((__mmask16)there, x);
	__m512 high = _mm512_maskz_loadu_ps((__mmask16)(there >> 16), x + LANES);

	return (__m512i)_mm512_cvtne2ps_pbh(high, low);
}

/* Entries of a lane from the k-th on as pairs; all are there but those past `inner`. */
static inline __m512i pairs_from(const float *lane, size_t k, size_t inner)
{
	size_t rest = inner - k;

	return pairs_along(lane + k, rest < 32 ? (1u << rest) - 1 : 0xffffffffu);
}

/* The same panel where a lane's entries are neighbours, lanes `step` apart. */
static inline void pack_along(uint32_t *out, const float *x, size_t step, size_t wide, size_t n,
			      size_t inner, size_t pairs)
{
	for (size_t i = 0; i < wide; i += LANES)
		for (size_t p = 0; p < pairs; p += LANES) {
			__m512i r[LANES];

			for (size_t l = 0; l < LANES; l++)
				r[l] = i + l < n ? pairs_from(x + (i + l) * step, 2 * p, inner)
						 : _mm512_setzero_si512();
			turn_block(r);
			for (size_t q = 0; q < fits_in(LANES, pairs - p); q++)
				_mm512_mask_storeu_epi32(out + (p + q) * wide + i,
							 first_lanes(wide - i), r[q]);
		}
}

/* `count` lanes from the first on, in panels of `wide` lanes by `pairs` pairs; step: from one lane
 * to the next, from one entry of the inner dimension to the next. */
static inline void pack_lanes(uint32_t *out, const float *x, size_t lane_step, size_t inner_step,
			      size_t wide, size_t count, size_t inner, size_t pairs)
{
	for (size_t i = 0; i < count; i += wide, out += pairs * wide) {
		size_t n = fits_in(wide, count - i);

		if (inner_step == 1)
			pack_along(out, x + i * lane_step, lane_step, wide, n, inner, pairs);
		else
			pack_across(out, x + i, inner_step, wide, n, inner, pairs);
	}
}

#endif
