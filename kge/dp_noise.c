#include "kge/dp_noise.h"

#include <assert.h>
#include <float.h>
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

/* ---- random words ---- */

void kge_dp_stream_open(struct kge_dp_stream *s, const uint8_t key[KGE_DP_KEY])
{
	memcpy(s->key, key, sizeof(s->key));
	s->used = sizeof(s->bytes);
}

/* The first bytes of each buffer are the key of the next. */
static void refill(struct kge_dp_stream *s)
{
	static const uint8_t nonce[crypto_stream_chacha20_NONCEBYTES];

	crypto_stream_chacha20(s->bytes, sizeof(s->bytes), nonce, s->key);
	memcpy(s->key, s->bytes, sizeof(s->key));
	memset(s->bytes, 0, sizeof(s->key));
	s->used = sizeof(s->key);
}

uint64_t kge_dp_stream_u64(struct kge_dp_stream *s)
{
	uint64_t word;

	assert(s->used <= sizeof(s->bytes));
	if (s->used == sizeof(s->bytes))
		refill(s);
	memcpy(&word, s->bytes + s->used, sizeof(word));
	s->used += sizeof(word);
	return word;
}

void kge_dp_stream_close(struct kge_dp_stream *s)
{
	sodium_memzero(s, sizeof(*s));
}

/* ---- the table ---- */

enum { GUIDE_BITS = 16, GUIDES = 1 << GUIDE_BITS, REACH = 14 };

struct kge_dp_noise {
	uint32_t sizes;		/* |X| is below this */
	uint64_t *high, *low;	/* 2^128 P(|X| >= k), for k >= 1 */
	uint32_t guide[GUIDES]; /* by the first bits: the least |X| that they leave possible */
};

bool kge_dp_noise_possible(void)
{
	return LDBL_MANT_DIG >= 64;
}

uint32_t kge_dp_deviation(double noise)
{
	uint32_t s = 2048;

	while (s < KGE_DP_DEVIATION_MAX && s < 1024 * noise)
		s *= 2;
	return s;
}

static long double weight(uint32_t k, uint32_t deviation)
{
	long double x = (long double)k / deviation;

	return expl(-x * x / 2);
}

/* Both halves of 2^128 x; what a long double of 64 digits holds fits for x in [2^-64, 1). */
static void split(long double x, uint64_t *high, uint64_t *low)
{
	long double whole = floorl(ldexpl(x, 64));

	*high = (uint64_t)whole;
	*low = (uint64_t)ldexpl(ldexpl(x, 64) - whole, 64);
}

/* Tails are summed from their ends, so that each difference of two neighbours keeps its digits, and
 * divided by the sum of all, to which they belong. */
static void fill_tails(struct kge_dp_noise *t, uint32_t deviation)
{
	long double *tail = mem_array(t->sizes + 1, sizeof(*tail)), all;

	for (uint32_t k = t->sizes; k-- > 1;)
		tail[k] = tail[k + 1] + 2 * weight(k, deviation);
	all = tail[1] + weight(0, deviation);
	for (uint32_t k = 1; k < t->sizes; k++)
		split(tail[k] / all, &t->high[k], &t->low[k]);
	while (t->high[t->sizes - 1] == 0 && t->low[t->sizes - 1] == 0)
		t->sizes--;
	free(tail);
}

struct kge_dp_noise *kge_dp_noise_new(uint32_t deviation)
{
	struct kge_dp_noise *t = mem_array(1, sizeof(*t));
	uint32_t k = 0;

	assert(deviation > 0 && deviation <= KGE_DP_DEVIATION_MAX);
	t->sizes = REACH * deviation;
	t->high = mem_array(t->sizes, sizeof(*t->high));
	t->low = mem_array(t->sizes, sizeof(*t->low));
	fill_tails(t, deviation);
	for (uint32_t g = GUIDES; g-- > 0;) {
		uint64_t most = ((uint64_t)(g + 1) << (64 - GUIDE_BITS)) - 1; /* with these bits */

		while (k + 1 < t->sizes && t->high[k + 1] > most)
			k++;
		t->guide[g] = k;
	}
	return t;
}

void kge_dp_noise_free(struct kge_dp_noise *t)
{
	if (t == NULL)
		return;
	free(t->high);
	free(t->low);
	free(t);
}

/* ---- drawing ---- */

uint32_t kge_dp_noise_size(const struct kge_dp_noise *t, uint64_t high, uint64_t low)
{
	uint32_t k = t->guide[high >> (64 - GUIDE_BITS)];

	while (k + 1 < t->sizes &&
	       (high < t->high[k + 1] || (high == t->high[k + 1] && low < t->low[k + 1])))
		k++;
	return k;
}

/* The second word is drawn only when the first does not decide: about one draw in 2^50. */
static uint32_t draw_size(const struct kge_dp_noise *t, struct kge_dp_stream *s)
{
	uint64_t high = kge_dp_stream_u64(s);
	uint32_t k = t->guide[high >> (64 - GUIDE_BITS)];

	while (k + 1 < t->sizes && high < t->high[k + 1])
		k++;
	if (k + 1 < t->sizes && high == t->high[k + 1])
		return kge_dp_noise_size(t, high, kge_dp_stream_u64(s));
	return k;
}

void kge_dp_noise_add(const struct kge_dp_noise *t, struct kge_dp_stream *s, uint32_t *sums,
		      size_t n)
{
	uint64_t signs = 0;

	assert(t->sizes > 0);
	for (size_t i = 0; i < n; i++) {
		uint32_t size = draw_size(t, s);

		if (i % 64 == 0)
			signs = kge_dp_stream_u64(s);
		sums[i] += (signs & 1) != 0 ? (uint32_t)0 - size : size;
		signs >>= 1;
	}
}
