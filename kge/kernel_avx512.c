/* kge/kernel_avx512.c - sixteen floats at a time.  Operations: see kge/kernel_simd_internal.h. */
#include <float.h>
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m512 V;
typedef __mmask16 M;
enum { LANES = 16, BLOCK = 8, TILE_Q = 4, TILE_Q_GRAD = 8 };

#define v_load(p)	  _mm512_loadu_ps(p)
#define v_loadm(p, m)	  _mm512_maskz_loadu_ps(m, p)
#define v_store(p, x)	  _mm512_storeu_ps(p, x)
#define v_storem(p, m, x) _mm512_mask_storeu_ps(p, m, x)
#define v_set(x)	  _mm512_set1_ps(x)
#define v_add(a, b)	  _mm512_add_ps(a, b)
#define v_sub(a, b)	  _mm512_sub_ps(a, b)
#define v_mul(a, b)	  _mm512_mul_ps(a, b)
#define v_max(a, b)	  _mm512_max_ps(a, b)
#define v_fma(a, b, c)	  _mm512_fmadd_ps(a, b, c)
#define v_fnma(a, b, c)	  _mm512_fnmadd_ps(a, b, c)
#define v_abs(x)	  _mm512_abs_ps(x)
#define v_round(x)	  _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#define v_scalbn(x, n)	  _mm512_scalef_ps(x, n)

static inline M v_mask(size_t k)
{
	return (M)((1u << k) - 1);
}

static inline V v_signed(V w, V x)
{
	/* w ^ (x & sign): the truth table of a ^ (b & c) is 0x78 */
	return _mm512_castsi512_ps(_mm512_ternarylogic_epi32(_mm512_castps_si512(w),
							     _mm512_castps_si512(x),
							     _mm512_set1_epi32(INT32_MIN), 0x78));
}

/* An estimate of 14 bits and one step of Newton's. */
static inline V v_rsqrt(V x)
{
	__mmask16 some = _mm512_cmp_ps_mask(x, _mm512_set1_ps(FLT_MIN), _CMP_GE_OQ);
	V y = _mm512_maskz_rsqrt14_ps(some, x);
	V half = _mm512_mul_ps(_mm512_set1_ps(0.5f), y);
	V left = _mm512_fnmadd_ps(_mm512_mul_ps(x, y), y, _mm512_set1_ps(1.0f));

	return _mm512_fmadd_ps(half, left, y);
}

static inline V v_rsqrt_estimate(V x)
{
	return _mm512_rsqrt14_ps(v_max(x, v_set(FLT_MIN)));
}

static inline V v_recip(V x)
{
	V y = _mm512_rcp14_ps(x);

	return _mm512_fmadd_ps(y, _mm512_fnmadd_ps(x, y, _mm512_set1_ps(1.0f)), y);
}

static inline V v_positive(V x, V a, V b)
{
	return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_GE_OQ), b, a);
}

static inline float v_sum(V x)
{
	return _mm512_reduce_add_ps(x);
}

static inline __m128 v_sum4(V a, V b, V c, V d)
{
	V ab = v_add(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
	V cd = v_add(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
	__m256 half;

	ab = v_add(_mm512_shuffle_ps(ab, cd, 0x44), _mm512_shuffle_ps(ab, cd, 0xee));
	half = _mm256_add_ps(_mm512_castps512_ps256(ab), _mm512_extractf32x8_ps(ab, 1));
	return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

static inline float v_top(V x)
{
	return _mm512_reduce_max_ps(x);
}

#include "kge/kernel_simd_internal.h"

extern const struct kge_kernels kge_kernels_avx512;
const struct kge_kernels kge_kernels_avx512 = KERNEL_SET("avx512");
