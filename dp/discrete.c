#include "dp/discrete.h"

#include <assert.h>
#include <math.h>
#include <string.h>

#include <sodium.h>

__extension__ typedef unsigned __int128 wide; /* the fractions that are compared */

void dp_bits_init(struct dp_bits *b, secret_draw_fn *draw, void *ctx)
{
	assert(draw != NULL);
	memset(b, 0, sizeof(*b));
	b->draw = draw;
	b->ctx = ctx;
}

void dp_bits_release(struct dp_bits *b)
{
	sodium_memzero(b, sizeof(*b));
}

static uint64_t next_word(struct dp_bits *b)
{
	if (b->left == 0) {
		b->draw(b->ctx, b->word, sizeof(b->word));
		b->left = DP_BITS_WORDS;
	}
	return b->word[--b->left];
}

/* As many bits as n - 1 has, until they make a number below n. */
static wide uniform_wide(struct dp_bits *b, wide n)
{
	uint64_t high = (uint64_t)((n - 1) >> 64), low = (uint64_t)(n - 1);
	uint64_t high_mask = high > 0 ? UINT64_MAX >> __builtin_clzll(high) : 0;
	uint64_t low_mask = high > 0  ? UINT64_MAX
			    : low > 0 ? UINT64_MAX >> __builtin_clzll(low)
				      : 0;
	wide x;

	do {
		x = low_mask > 0 ? next_word(b) & low_mask : 0;
		if (high_mask > 0)
			x |= (wide)(next_word(b) & high_mask) << 64;
	} while (x >= n);
	return x;
}

uint64_t dp_uniform_below(struct dp_bits *b, uint64_t n)
{
	assert(n > 0);
	return (uint64_t)uniform_wide(b, n);
}

/* Algorithm 1 for p <= q: the k-th trial succeeds with probability (p/q)/k, and the number
 * of successes is even with probability exp(-p/q). */
static bool exp_of_fraction(struct dp_bits *b, wide p, wide q)
{
	uint64_t k = 1;

	while (uniform_wide(b, q) < p && dp_uniform_below(b, k) == 0)
		k++;
	return k % 2 == 1;
}

static bool exp_wide(struct dp_bits *b, wide p, wide q)
{
	for (; p > q; p -= q)
		if (!exp_of_fraction(b, 1, 1))
			return false;
	return exp_of_fraction(b, p, q);
}

bool dp_bernoulli_exp(struct dp_bits *b, uint64_t p, uint64_t q)
{
	assert(q > 0);
	return exp_wide(b, p, q);
}

/* Algorithm 2: x = u + t v with u below t and v geometric; a sign, and one zero of two. */
int64_t dp_discrete_laplace(struct dp_bits *b, uint64_t t)
{
	assert(t > 0 && t <= UINT64_C(1) << 40);
	for (;;) {
		uint64_t u = dp_uniform_below(b, t), v = 0;
		bool minus;

		if (!exp_of_fraction(b, u, t))
			continue;
		while (exp_of_fraction(b, 1, 1))
			v++;
		minus = dp_uniform_below(b, 2) == 1;
		u += t * v;
		if (!minus || u > 0)
			return minus ? -(int64_t)u : (int64_t)u;
	}
}

/* floor(sqrt(n)), whichever way the floating-point root was rounded. */
static uint64_t root_of(uint64_t n)
{
	uint64_t r = (uint64_t)sqrt((double)n);

	while (r * r > n)
		r--;
	while ((r + 1) * (r + 1) <= n)
		r++;
	return r;
}

/* Algorithm 3: a Laplace draw y of scale t = floor(sigma) + 1 is kept with probability
 * exp(-(|y| - sigma^2/t)^2 / (2 sigma^2)) = exp(-(|y| t - sigma^2)^2 / (2 sigma^2 t^2)). */
int64_t dp_discrete_gaussian(struct dp_bits *b, uint64_t sigma2)
{
	const uint64_t far = UINT64_C(1) << 35;
	uint64_t t = root_of(sigma2) + 1;

	assert(sigma2 > 0 && sigma2 <= DP_SIGMA2_MAX);
	for (;;) {
		int64_t y = dp_discrete_laplace(b, t);
		uint64_t size = (uint64_t)(y < 0 ? -y : y), product, off;

		if (size > far)
			continue;
		product = size * t;
		off = product > sigma2 ? product - sigma2 : sigma2 - product;
		if (exp_wide(b, (wide)off * off, (wide)2 * sigma2 * t * t))
			return y;
	}
}
