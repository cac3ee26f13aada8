/* dp/discrete.h - integer noise whose distribution is exact (Canonne, Kamath and Steinke,
 * The Discrete Gaussian for Differential Privacy, 2020, Algorithms 1 to 3).
 *
 * Random bits are compared with fractions of whole numbers, and nothing is ever a
 * floating-point number: there are no low digits through which a draw could say more than
 * its distribution does (Mironov 2012).
 *
 *   discrete Gaussian   P(x) ~ exp(-x^2 / (2 sigma^2)) over all whole numbers x
 *   discrete Laplace    P(x) ~ exp(-|x| / t)
 *
 * A vector of whole numbers of L2 sensitivity s, with independent discrete Gaussian noise
 * on each of them, has Renyi divergence at most a s^2 / (2 sigma^2) at order a: what
 * continuous noise has (their Theorem 14).
 *
 * Time depends on what is drawn, so it must not be seen from outside one draw at a time;
 * a release draws thousands and sends them together.  One exception to "exact": beyond
 * 2^35 from zero a candidate of the discrete Gaussian is dropped, which with sigma at
 * most 2^28 changes a probability by less than e^-8000. */
#ifndef DP_DISCRETE_H
#define DP_DISCRETE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/secret.h"
#include "dp/mechanism.h"

enum { DP_BITS_WORDS = 64 };

/* Random words, drawn many at a time.  A value: dp_bits_release() wipes what is left. */
struct dp_bits {
	secret_draw_fn *draw;
	void *ctx;
	size_t left;
	uint64_t word[DP_BITS_WORDS];
};

void dp_bits_init(struct dp_bits *b, secret_draw_fn *draw, void *ctx);
void dp_bits_release(struct dp_bits *b);

/* Uniform in 0 .. n-1, n >= 1. */
uint64_t dp_uniform_below(struct dp_bits *b, uint64_t n);
/* True with probability exp(-p/q), q >= 1. */
bool dp_bernoulli_exp(struct dp_bits *b, uint64_t p, uint64_t q);
/* t in 1 .. 2^40. */
int64_t dp_discrete_laplace(struct dp_bits *b, uint64_t t);

#define DP_SIGMA2_MAX (UINT64_C(1) << 56)
/* sigma^2 a whole number in 1 .. DP_SIGMA2_MAX. */
int64_t dp_discrete_gaussian(struct dp_bits *b, uint64_t sigma2);

#endif
