#include "kge/blas.h"

#include <cblas.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "kge/kernel.h"

static bool fast;

/* The library's names of processors, those with AVX-512 first. */
static const char *const cores[] = { "SkylakeX", "Cooperlake", "SapphireRapids", "Haswell", "Zen" };
enum { CORES = sizeof(cores) / sizeof(cores[0]), CORES_AVX512 = 3 };

static bool core_is_among(size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (strcasecmp(openblas_get_corename(), cores[i]) == 0)
			return true;
	return false;
}

static void detect_core(void)
{
	openblas_set_num_threads(1);
	fast = core_is_among(CORES);
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

const char *kge_blas_core_wanted(void)
{
	const char *isa = kge_kernels_pick()->isa;

	if (strcmp(isa, "avx512") == 0)
		return core_is_among(CORES_AVX512) ? NULL : "SkylakeX";
	if (strcmp(isa, "avx2") == 0)
		return core_is_among(CORES) ? NULL : "Haswell";
	return NULL;
}

/* Not the loader, which would take the first argument for a program. */
static bool is_program(const char *self, const char *called)
{
	const char *a = strrchr(self, '/'), *b = called != NULL ? strrchr(called, '/') : NULL;

	return a != NULL && called != NULL && strcmp(a + 1, b != NULL ? b + 1 : called) == 0;
}

void kge_blas_restart(char **argv)
{
	const char *core = kge_blas_core_wanted();
	char self[4096]; /* by its name, which ps and pidof show */
	ssize_t n;

	if (core == NULL || getenv("OPENBLAS_CORETYPE") != NULL)
		return;
	n = readlink("/proc/self/exe", self, sizeof(self));
	if (n <= 0 || (size_t)n >= sizeof(self))
		return;
	self[n] = '\0';
	if (is_program(self, argv[0]) && setenv("OPENBLAS_CORETYPE", core, 0) == 0)
		(void)execv(self, argv);
}
