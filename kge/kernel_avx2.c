/* kge/kernel_avx2.c - eight floats at a time.  Operations: see kge/kernel_simd_internal.h. */
#include <float.h>
#include <immintrin.h>
#include <stddef.h>
#include <stdint.h>

typedef __m256 V;
typedef __m256i M;
enum { LANES = 8, BLOCK = 4, TILE_Q = 2, TILE_Q_GRAD = 4 };

#define v_load(p)	  _mm256_loadu_ps(p)
#define v_loadm(p, m)	  _mm256_maskload_ps(p, m)
#define v_store(p, x)	  _mm256_storeu_ps(p, x)
#define v_storem(p, m, x) _mm256_maskstore_ps(p, m, x)
#define v_set(x)	  _mm256_set1_ps(x)
#define v_add(a, b)	  _mm256_add_ps(a, b)
#define v_sub(a, b)	  _mm256_sub_ps(a, b)
#define v_mul(a, b)	  _mm256_mul_ps(a, b)
#define v_max(a, b)	  _mm256_max_ps(a, b)
#define v_fma(a, b, c)	  _mm256_fmadd_ps(a, b, c)
#define v_fnma(a, b, c)	  _mm256_fnmadd_ps(a, b, c)
#define v_round(x)	  _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

static inline M v_mask(size_t k)
{
	__m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);

	return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)k), lane);
}

static inline V sign_bits(void)
{
	return _mm256_castsi256_ps(_mm256_set1_epi32(INT32_MIN));
}

static inline V v_abs(V x)
{
	return _mm256_andnot_ps(sign_bits(), x);
}

static inline V v_signed(V w, V x)
{
	return _mm256_xor_ps(w, _mm256_and_ps(x, sign_bits()));
}

/* An estimate of 12 bits and one step of Newton's. */
static inline V v_rsqrt(V x)
{
	V some = _mm256_cmp_ps(x, _mm256_set1_ps(FLT_MIN), _CMP_GE_OQ);
	V y = _mm256_and_ps(_mm256_rsqrt_ps(x), some);
	V half = _mm256_mul_ps(_mm256_set1_ps(0.5f), y);
	V left = _mm256_fnmadd_ps(_mm256_mul_ps(x, y), y, _mm256_set1_ps(1.0f));

	return _mm256_fmadd_ps(half, left, y);
}

static inline V v_rsqrt_estimate(V x)
{
	return _mm256_rsqrt_ps(v_max(x, v_set(FLT_MIN)));
}

static inline V v_recip(V x)
{
	return _mm256_div_ps(_mm256_set1_ps(1.0f), x);
}

static inline V v_scalbn(V x, V n)
{
	__m256i e = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(127));

	return _mm256_mul_ps(x, _mm256_castsi256_ps(_mm256_slli_epi32(e, 23)));
}

static inline V v_positive(V x, V a, V b)
{
	return _mm256_blendv_ps(a, b, _mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_LT_OQ));
}

static inline float v_sum(V x)
{
	__m128 y = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

	y = _mm_add_ps(y, _mm_movehl_ps(y, y));
	return _mm_cvtss_f32(_mm_add_ss(y, _mm_movehdup_ps(y)));
}

static inline __m128 v_sum4(V a, V b, V c, V d)
{
	V ab = v_add(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b));
	V cd = v_add(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));

	ab = v_add(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
	return _mm_add_ps(_mm256_castps256_ps128(ab), _mm256_extractf128_ps(ab, 1));
}

static inline float v_top(V x)
{
	__m128 y = _mm_max_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));

	y = _mm_max_ps(y, _mm_movehl_ps(y, y));
	return _mm_cvtss_f32(_mm_max_ss(y, _mm_movehdup_ps(y)));
}

#include "kge/kernel_simd_internal.h"

extern const struct kge_kernels kge_kernels_avx2;
const struct kge_kernels kge_kernels_avx2 = KERNEL_SET("avx2");
