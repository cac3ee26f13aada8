#include "kge/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <stddef.h>
#include <strings.h>

static bool fast;

static void detect_core(void)
{
	static const char *const cores[] = { "Haswell", "Zen", "SkylakeX", "Cooperlake",
					     "SapphireRapids" };

	openblas_set_num_threads(1);
	for (size_t i = 0; i < sizeof(cores) / sizeof(cores[0]); i++)
		if (strcasecmp(openblas_get_corename(), cores[i]) == 0)
			fast = true;
}

const char *kge_blas_core(void)
{
	return openblas_get_corename();
}

bool kge_sgemm_is_fast(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;

	pthread_once(&once, detect_core);
	return fast;
}
