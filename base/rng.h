/* base/rng.h - random numbers that can be replayed.
 *
 * xoshiro256++ (Blackman and Vigna 2019) seeded through splitmix64.  The whole
 * state is the struct: copy it to save it, write it into a checkpoint to
 * resume bit for bit.  Everything random in the project takes one explicitly.
 * NOT for anything that protects privacy: that comes from libsodium alone. */
#ifndef BASE_RNG_H
#define BASE_RNG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

struct rng {
	uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
/* An independent generator for stream number k of this one (r is not moved). */
struct rng rng_stream(const struct rng *r, uint64_t k);
/* Take up a saved struct rng.  False: all zero, which no generator is, for it would give zeros for
 * ever; r stays as it was. */
MUST_CHECK bool rng_load(struct rng *r, const void *saved);
uint64_t rng_u64(struct rng *r);
/* Uniform in 0..n-1, n > 0, without bias (Lemire 2019). */
uint32_t rng_below(struct rng *r, uint32_t n);
double rng_double(struct rng *r);		       /* [0, 1) */
float rng_range(struct rng *r, float low, float high); /* [low, high) */
double rng_normal(struct rng *r);		       /* mean 0, variance 1 */
/* Fisher-Yates over n items of the given size. */
void rng_shuffle(struct rng *r, void *items, size_t n, size_t size);

#endif
