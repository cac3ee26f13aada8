#include "bench/limits.h"

#include <cblas.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/blas.h"

enum { THREADS = 2, TRIES = 5 };

/* ---- time ---- */

struct timed {
	void (*fn)(void *ctx, size_t k);
	void *ctx;
	double seconds[THREADS];
};

static double thread_now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void run_timed(void *ctx, size_t k, size_t threads)
{
	struct timed *t = ctx;
	double begin = thread_now();

	(void)threads;
	t->fn(t->ctx, k);
	t->seconds[k] = thread_now() - begin;
}

double limits_time(void (*fn)(void *ctx, size_t k), void *ctx)
{
	struct timed t = { fn, ctx, { 0 } };

	parallel_run(THREADS, run_timed, &t);
	return (t.seconds[0] + t.seconds[1]) / THREADS;
}

/* The shortest of some tries. */
static double best_time(void (*fn)(void *ctx, size_t k), void *ctx)
{
	double best = limits_time(fn, ctx);

	for (int i = 1; i < TRIES; i++) {
		double now = limits_time(fn, ctx);

		best = now < best ? now : best;
	}
	return best;
}

/* ---- multiply-adds ---- */

enum { FMA_ROUNDS = 4000000, CHAINS = 12 };

static volatile float kept; /* so that nothing is computed in vain */

#ifdef __x86_64__
/* Twelve chains hide the latency of an instruction; an empty asm keeps each in a register. */
#define FMA_LOOP(name, isa, vec, set, fma, first)                                                  \
	__attribute__((target(isa))) static void name(void *ctx, size_t k)                         \
	{                                                                                          \
		vec x = set(0.999f), a[CHAINS];                                                    \
                                                                                                   \
		(void)ctx, (void)k;                                                                \
		_Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++) a[i] = set((float)i);    \
		for (int n = 0; n < FMA_ROUNDS; n++)                                               \
			_Pragma("GCC unroll 12") for (int i = 0; i < CHAINS; i++)                  \
			{                                                                          \
				a[i] = fma(a[i], x, x);                                            \
				__asm__ volatile("" : "+v"(a[i]));                                 \
			}                                                                          \
		_Pragma("GCC unroll 12") for (int i = 1; i < CHAINS; i++) a[0] =                   \
			fma(a[i], x, a[0]);                                                        \
		kept = first(a[0]);                                                                \
	}

FMA_LOOP(fma_avx512, "avx512f", __m512, _mm512_set1_ps, _mm512_fmadd_ps, _mm512_cvtss_f32)
FMA_LOOP(fma_avx2, "avx2,fma", __m256, _mm256_set1_ps, _mm256_fmadd_ps, _mm256_cvtss_f32)
#endif

static void fma_plain(void *ctx, size_t k)
{
	float a[CHAINS] = { 0 };

	(void)ctx, (void)k;
	for (int n = 0; n < FMA_ROUNDS; n++)
		for (int i = 0; i < CHAINS; i++)
			a[i] = a[i] * 0.999f + 0.999f;
	for (int i = 1; i < CHAINS; i++)
		a[0] += a[i];
	kept = a[0];
}

static double fma_rate(void)
{
	void (*fn)(void *, size_t) = fma_plain;
	double lanes = 1;

#ifdef __x86_64__
	if (__builtin_cpu_supports("avx512f")) {
		fn = fma_avx512;
		lanes = 16;
	} else if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
		fn = fma_avx2;
		lanes = 8;
	}
#endif
	return lanes * CHAINS * FMA_ROUNDS / best_time(fn, NULL);
}

/* ---- memory ---- */

enum { STREAM_FLOATS = 16 << 20 }; /* in each of three arrays of each thread: 192 MiB */

struct stream {
	float *a[THREADS], *b[THREADS], *c[THREADS];
};

static void triad(void *ctx, size_t k)
{
	struct stream *s = ctx;
	float *restrict a = s->a[k];
	const float *restrict b = s->b[k], *restrict c = s->c[k];

	for (size_t i = 0; i < STREAM_FLOATS; i++)
		a[i] = b[i] + 0.999f * c[i];
}

static double stream_rate(void)
{
	struct stream s;
	double seconds;

	for (size_t k = 0; k < THREADS; k++) {
		s.a[k] = mem_aligned(STREAM_FLOATS, sizeof(float));
		s.b[k] = mem_aligned(STREAM_FLOATS, sizeof(float));
		s.c[k] = mem_aligned(STREAM_FLOATS, sizeof(float));
	}
	seconds = best_time(triad, &s);
	kept = s.a[0][STREAM_FLOATS / 2];
	for (size_t k = 0; k < THREADS; k++) {
		free(s.a[k]);
		free(s.b[k]);
		free(s.c[k]);
	}
	return 3.0 * sizeof(float) * STREAM_FLOATS / seconds;
}

/* ---- matrix products ---- */

enum { SIDE = 1024 };

struct product {
	float *a, *b, *c[THREADS];
};

static void multiply(void *ctx, size_t k)
{
	const struct product *p = ctx;

	cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SIDE, SIDE, SIDE, 1, p->a, SIDE, p->b,
		    SIDE, 0, p->c[k], SIDE);
}

static double sgemm_rate(void)
{
	size_t n = (size_t)SIDE * SIDE;
	struct product p = { mem_aligned(n, sizeof(float)),
			     mem_aligned(n, sizeof(float)),
			     { mem_aligned(n, sizeof(float)), mem_aligned(n, sizeof(float)) } };
	double seconds;

	(void)kge_sgemm_is_fast(); /* which also keeps OpenBLAS from starting threads */
	for (size_t i = 0; i < n; i++)
		p.a[i] = p.b[i] = (float)(i % 7) - 3.0f;
	seconds = best_time(multiply, &p);
	free(p.a);
	free(p.b);
	free(p.c[0]);
	free(p.c[1]);
	return (double)n * SIDE / seconds;
}

struct limits limits_measure(void)
{
	return (struct limits){ .fma = fma_rate(), .stream = stream_rate(), .sgemm = sgemm_rate() };
}

void limits_print(const struct limits *l)
{
	printf("a processor, both at work: %6.1f G multiply-adds/s, %5.1f GB/s streamed, sgemm "
	       "%6.1f G multiply-adds/s (%.0f %%), OpenBLAS for %s\n",
	       1e-9 * l->fma, 1e-9 * l->stream, 1e-9 * l->sgemm, 100 * l->sgemm / l->fma,
	       openblas_get_corename());
	fflush(stdout);
}
