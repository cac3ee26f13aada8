#include "base/rng.h"

#include <assert.h>
#include <math.h>
#include <string.h>

static uint64_t rotl(uint64_t x, int k)
{
	return (x << k) | (x >> (64 - k));
}

static uint64_t splitmix(uint64_t *x)
{
	uint64_t z = (*x += 0x9e3779b97f4a7c15ULL);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
	return z ^ (z >> 31);
}

void rng_seed(struct rng *r, uint64_t seed)
{
	for (int i = 0; i < 4; i++)
		r->s[i] = splitmix(&seed);
}

struct rng rng_stream(const struct rng *r, uint64_t k)
{
	struct rng out;
	uint64_t x = k;

	rng_seed(&out, r->s[0] ^ splitmix(&x) ^ rotl(r->s[3], 17));
	return out;
}

bool rng_load(struct rng *r, const void *saved)
{
	static const struct rng zeros;

	if (memcmp(saved, &zeros, sizeof(zeros)) == 0)
		return false;
	memcpy(r, saved, sizeof(*r));
	return true;
}

uint64_t rng_u64(struct rng *r)
{
	uint64_t *s = r->s;
	uint64_t out = rotl(s[0] + s[3], 23) + s[0];
	uint64_t t = s[1] << 17;

	s[2] ^= s[0];
	s[3] ^= s[1];
	s[1] ^= s[2];
	s[0] ^= s[3];
	s[2] ^= t;
	s[3] = rotl(s[3], 45);
	return out;
}

uint32_t rng_below(struct rng *r, uint32_t n)
{
	uint64_t m;

	assert(n > 0);
	m = (rng_u64(r) >> 32) * n;
	if ((uint32_t)m < n) {
		uint32_t floor = (uint32_t)(-n) % n;

		while ((uint32_t)m < floor)
			m = (rng_u64(r) >> 32) * n;
	}
	return (uint32_t)(m >> 32);
}

double rng_double(struct rng *r)
{
	return (double)(rng_u64(r) >> 11) * 0x1p-53;
}

float rng_range(struct rng *r, float low, float high)
{
	return low + (high - low) * ((float)(rng_u64(r) >> 40) * 0x1p-24f);
}

double rng_normal(struct rng *r)
{
	double u = 1.0 - rng_double(r); /* (0, 1] */
	double v = rng_double(r);

	return sqrt(-2.0 * log(u)) * cos(6.283185307179586476925 * v);
}

void rng_shuffle(struct rng *r, void *items, size_t n, size_t size)
{
	unsigned char *at = items, tmp[256];

	assert(size <= sizeof(tmp) && n <= UINT32_MAX);
	for (size_t i = n; i > 1; i--) {
		size_t j = rng_below(r, (uint32_t)i);

		if (j == i - 1)
			continue;
		memcpy(tmp, at + j * size, size);
		memcpy(at + j * size, at + (i - 1) * size, size);
		memcpy(at + (i - 1) * size, tmp, size);
	}
}
