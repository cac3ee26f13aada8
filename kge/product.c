/* kge/product.c - which product, and the plain one. */
#include "kge/product.h"

#include <cblas.h>
#include <stdint.h>
#include <string.h>

size_t kge_product_room(void)
{
	return sizeof(float) * KGE_PRODUCT_INNER * (KGE_PRODUCT_ROWS + KGE_PRODUCT_COLUMNS);
}

bool kge_product_is_fast(void)
{
#ifdef KGE_X86
	return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
	       __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512bf16");
#else
	return false;
#endif
}

void kge_product(float *c, size_t stride, const struct kge_matrix *a, const struct kge_matrix *b,
		 size_t rows, size_t columns, size_t inner, void *room)
{
#ifdef KGE_X86
	if (kge_product_is_fast()) {
		kge_product_bf16(c, stride, a, b, rows, columns, inner, room);
		return;
	}
#endif
	kge_product_plain(c, stride, a, b, rows, columns, inner, room);
}

/* To the nearest, of two as near the even one; what is no number stays none. */
static float bfloat_of(float x)
{
	uint32_t bits;

	if (x != x)
		return x;
	memcpy(&bits, &x, sizeof(bits));
	bits = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
	memcpy(&x, &bits, sizeof(x));
	return x;
}

static void round_block(float *out, const struct kge_matrix *m, size_t row, size_t column,
			size_t rows, size_t columns)
{
	const float *x = m->at + row * m->row + column * m->column;

	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			out[i * columns + j] = bfloat_of(x[i * m->row + j * m->column]);
}

static size_t part_of(size_t a, size_t b)
{
	return a < b ? a : b;
}

void kge_product_plain(float *c, size_t stride, const struct kge_matrix *a,
		       const struct kge_matrix *b, size_t rows, size_t columns, size_t inner,
		       void *room)
{
	float *some_a = room, *some_b = some_a + KGE_PRODUCT_INNER * KGE_PRODUCT_ROWS;

	for (size_t j = 0; j < columns; j += KGE_PRODUCT_COLUMNS)
		for (size_t k = 0; k < inner; k += KGE_PRODUCT_INNER) {
			size_t nj = part_of(KGE_PRODUCT_COLUMNS, columns - j);
			size_t nk = part_of(KGE_PRODUCT_INNER, inner - k);

			round_block(some_b, b, k, j, nk, nj);
			for (size_t i = 0; i < rows; i += KGE_PRODUCT_ROWS) {
				size_t ni = part_of(KGE_PRODUCT_ROWS, rows - i);

				round_block(some_a, a, i, k, ni, nk);
				cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)ni,
					    (int)nj, (int)nk, 1, some_a, (int)nk, some_b, (int)nj,
					    k == 0 ? 0 : 1, c + i * stride + j, (int)stride);
			}
		}
}
