/* The faults of docs that an audit must find, planted below everything: this file is linked into
 * a copy of the command `fkge` (tests/audit/meson.build), where the linker sends the calls of the
 * shipped objects here (--wrap).  PLANT in the environment says which; the command that ships has
 * none of this. */
#include <sodium.h>
#include <stdlib.h>
#include <stdatomic.h>
#include <string.h>

#include "dp/mechanism.h"
#include "kge/dp_noise.h"

static const char *plant = "";

/* ---- labels without noise ---- */

static double bare_share; /* of the labels */

bool __real_dp_label_draw(const struct dp_mechanism *m, uint32_t ones, secret_draw_fn *draw,
			  void *ctx);
bool __wrap_dp_label_draw(const struct dp_mechanism *m, uint32_t ones, secret_draw_fn *draw,
			  void *ctx);

bool __wrap_dp_label_draw(const struct dp_mechanism *m, uint32_t ones, secret_draw_fn *draw,
			  void *ctx)
{
	if (bare_share > 0 && randombytes_uniform(1000) < bare_share * 1000)
		return 2 * (uint64_t)ones > m->teachers;
	return __real_dp_label_draw(m, ones, draw, ctx);
}

/* ---- releases with half of their noise ---- */

int __real_dp_lattice_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
			    const atomic_bool *cancel);
int __wrap_dp_lattice_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
			    const atomic_bool *cancel);

int __wrap_dp_lattice_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
			    const atomic_bool *cancel)
{
	bool half = strcmp(plant, "half-noise") == 0;

	return __real_dp_lattice_noise(x, n, half ? sigma2 / 4 : sigma2, draw, ctx, cancel);
}

/* ---- private training without noise on the first block of rows ---- */

static const uint32_t *first_block; /* with one thread the first that noise is drawn for */

struct kge_dp_noise *__real_kge_dp_noise_new(uint32_t deviation);
struct kge_dp_noise *__wrap_kge_dp_noise_new(uint32_t deviation);
void __real_kge_dp_noise_add(const struct kge_dp_noise *t, struct kge_dp_stream *s, uint32_t *sums,
			     size_t n);
void __wrap_kge_dp_noise_add(const struct kge_dp_noise *t, struct kge_dp_stream *s, uint32_t *sums,
			     size_t n);

struct kge_dp_noise *__wrap_kge_dp_noise_new(uint32_t deviation)
{
	first_block = NULL;
	return __real_kge_dp_noise_new(deviation);
}

void __wrap_kge_dp_noise_add(const struct kge_dp_noise *t, struct kge_dp_stream *s, uint32_t *sums,
			     size_t n)
{
	if (first_block == NULL)
		first_block = sums;
	if (strcmp(plant, "bare-rows") != 0 || sums != first_block)
		__real_kge_dp_noise_add(t, s, sums, n);
}

/* ---- all of libsodium's randomness from a fixed seed ---- */

static void fixed_bytes(void *out, size_t n)
{
	static uint64_t drawn;
	uint8_t seed[randombytes_SEEDBYTES] = { 0 };

	memcpy(seed, &drawn, sizeof(drawn));
	drawn++;
	randombytes_buf_deterministic(out, n, seed);
}

static uint32_t fixed_word(void)
{
	uint32_t word;

	fixed_bytes(&word, sizeof(word));
	return word;
}

static const char *fixed_name(void)
{
	return "fixed";
}

static struct randombytes_implementation fixed = { .implementation_name = fixed_name,
						   .random = fixed_word,
						   .buf = fixed_bytes };

__attribute__((constructor)) static void read_plant(void)
{
	const char *share;

	plant = getenv("PLANT") != NULL ? getenv("PLANT") : "";
	share = getenv("PLANT_SHARE");
	if (strcmp(plant, "bare-labels") == 0 && share != NULL)
		bare_share = strtod(share, NULL);
	if (strcmp(plant, "fixed-source") == 0)
		randombytes_set_implementation(&fixed);
}
