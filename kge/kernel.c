#include "kge/kernel.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#ifdef KGE_X86
extern const struct kge_kernels kge_kernels_avx2, kge_kernels_avx512;

static bool has_avx2(void)
{
	return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

static bool has_avx512(void)
{
	return has_avx2() && __builtin_cpu_supports("avx512f") &&
	       __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static bool always(void)
{
	return true;
}

/* Best first. */
static const struct {
	const struct kge_kernels *set;
	bool (*runs)(void);
} sets[] = {
#ifdef KGE_X86
	{ &kge_kernels_avx512, has_avx512 },
	{ &kge_kernels_avx2, has_avx2 },
#endif
	{ &kge_kernels_scalar, always },
};

enum { SETS = sizeof(sets) / sizeof(sets[0]) };

const struct kge_kernels *kge_kernels_find(const char *isa)
{
	for (size_t i = 0; i < SETS; i++)
		if (strcmp(sets[i].set->isa, isa) == 0)
			return sets[i].runs() ? sets[i].set : NULL;
	return NULL;
}

const struct kge_kernels *kge_kernels_pick(void)
{
	const char *want = getenv("FKGE_ISA");
	const struct kge_kernels *k = want != NULL ? kge_kernels_find(want) : NULL;

	if (k != NULL)
		return k;
	if (want != NULL)
		log_warn("FKGE_ISA=%s: allowed are scalar, avx2 and avx512, where the machine runs "
			 "it; "
			 "taking the best",
			 want);
	for (size_t i = 0; i < SETS; i++)
		if (sets[i].runs())
			return sets[i].set;
	return &kge_kernels_scalar;
}

/* A float sum of n terms in any order is off by at most n * 2^-24 * sum |term|;
 * lanes and blocks make the chains much shorter, and a square root halves the
 * relative error.  The modulus adds the error of its reciprocal square root. */
float kge_kernel_tolerance(enum kge_metric m, size_t floats, float magnitude)
{
	float chain = 8.0f + (float)floats / 8.0f;

	return (m == KGE_MODULUS ? 2.0f : 1.0f) * chain * 0x1p-24f * magnitude;
}
