/* kge/product_bf16.c - c = a b in panels that stay in the caches (Goto and van de Geijn 2008).
 *
 * A panel is WIDE columns of b, or HIGH rows of a, whose entries stand in pairs along the inner
 * dimension, as VDPBF16PS takes them.  One of each is in the first cache, HIGH x WIDE sums are in
 * registers. */
#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "kge/product_pack.h"

enum {
	VECTORS = 3,
	HIGH = 8,
	WIDE = VECTORS * LANES,
	PAIRS = KGE_PRODUCT_INNER / 2,
};

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

/* A block of b, nk x nj of it, by all of a. */
static void rows_product(const struct kge_product *p, const uint32_t *packed_b, size_t k, size_t j,
			 size_t nk, size_t nj, uint32_t *packed_a)
{
	for (size_t i = 0; i < p->rows; i += KGE_PRODUCT_ROWS) {
		size_t ni = fits_in(KGE_PRODUCT_ROWS, p->rows - i);

		pack_lanes(packed_a, entry_at(&p->a, i, k), p->a.row, p->a.column, HIGH, ni, nk,
			   (nk + 1) / 2);
		block_product(p->c + i * p->stride + j, p->stride, packed_a, packed_b, ni, nj, nk,
			      k == 0 && !p->add);
	}
}

static void avx512_product(const struct kge_product *p, void *room)
{
	uint32_t *packed_a = room, *packed_b = packed_a + (size_t)PAIRS * KGE_PRODUCT_ROWS;

	for (size_t j = 0; j < p->columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < p->inner; k += KGE_PRODUCT_INNER) {
			size_t nj = fits_in(KGE_PRODUCT_COLUMNS, p->columns - j);
			size_t nk = fits_in(KGE_PRODUCT_INNER, p->inner - k);

			pack_lanes(packed_b, entry_at(&p->b, k, j), p->b.column, p->b.row, WIDE, nj,
				   nk, (nk + 1) / 2);
			rows_product(p, packed_b, k, j, nk, nj, packed_a);
		}
}

/* ---- b packed once ---- */

static size_t block_size(size_t nk, size_t nj)
{
	return (nk + 1) / 2 * ((nj + WIDE - 1) / WIDE * WIDE);
}

static size_t avx512_packed_size(size_t inner, size_t columns)
{
	size_t size = 0;

	for (size_t j = 0; j < columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < inner; k += KGE_PRODUCT_INNER)
			size += block_size(fits_in(KGE_PRODUCT_INNER, inner - k),
					   fits_in(KGE_PRODUCT_COLUMNS, columns - j));
	return size;
}

static void avx512_pack(uint32_t *out, const struct kge_matrix *b, size_t inner, size_t columns)
{
	for (size_t j = 0; j < columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < inner; k += KGE_PRODUCT_INNER) {
			size_t nj = fits_in(KGE_PRODUCT_COLUMNS, columns - j);
			size_t nk = fits_in(KGE_PRODUCT_INNER, inner - k);

			pack_lanes(out, entry_at(b, k, j), b->column, b->row, WIDE, nj, nk,
				   (nk + 1) / 2);
			out += block_size(nk, nj);
		}
}

static void avx512_product_packed(const struct kge_product *p, const uint32_t *b, void *room)
{
	for (size_t j = 0; j < p->columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < p->inner; k += KGE_PRODUCT_INNER) {
			size_t nj = fits_in(KGE_PRODUCT_COLUMNS, p->columns - j);
			size_t nk = fits_in(KGE_PRODUCT_INNER, p->inner - k);

			rows_product(p, b, k, j, nk, nj, room);
			b += block_size(nk, nj);
		}
}

const struct kge_product_kernel kge_product_avx512 = {
	.name = "avx512+bf16",
	.room = sizeof(uint32_t) * PAIRS * (KGE_PRODUCT_ROWS + KGE_PRODUCT_COLUMNS),
	.packed_room = sizeof(uint32_t) * PAIRS * KGE_PRODUCT_ROWS,
	.product = avx512_product,
	.packed_size = avx512_packed_size,
	.pack = avx512_pack,
	.product_packed = avx512_product_packed,
};
