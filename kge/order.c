#include "kge/order.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void kge_order_init(struct kge_order *o, size_t n, const uint32_t *of)
{
	unsigned bits = 2;

	*o = (struct kge_order){ .n = n, .of = of };
	if (n <= KGE_ORDER_LISTED)
		o->list = mem_array(n, sizeof(*o->list));
	while (UINT64_C(1) << bits < n)
		bits++;
	o->bits[0] = bits / 2;
	o->bits[1] = bits - bits / 2;
}

void kge_order_release(struct kge_order *o)
{
	free(o->list);
	*o = (struct kge_order){ 0 };
}

void kge_order_draw(struct kge_order *o, struct rng *r)
{
	for (size_t i = 0; i < o->n && o->list != NULL; i++)
		o->list[i] = o->of != NULL ? o->of[i] : (uint32_t)i;
	if (o->list != NULL)
		rng_shuffle(r, o->list, o->n, sizeof(*o->list));
	for (size_t k = 0; k < KGE_ORDER_ROUNDS; k++)
		o->keys[k] = rng_u64(r);
}

/* Well mixed in its high bits (murmur3's constants). */
static inline uint32_t mix(uint64_t x, uint64_t key, unsigned bits)
{
	x = (x ^ key) * 0xff51afd7ed558ccdu;
	x = (x ^ x >> 33) * 0xc4ceb9fe1a85ec53u;
	return (uint32_t)(x >> (64 - bits));
}

/* One to one on the numbers of bits[0] + bits[1] bits. */
static inline uint32_t permute(const struct kge_order *o, uint32_t x)
{
	uint32_t half[2] = { x >> o->bits[1], x & ((UINT32_C(1) << o->bits[1]) - 1) };

	for (size_t k = 0; k < KGE_ORDER_ROUNDS; k++)
		half[k % 2] ^= mix(half[(k + 1) % 2], o->keys[k], o->bits[k % 2]);
	return half[0] << o->bits[1] | half[1];
}

static inline uint32_t position_at(const struct kge_order *o, size_t position)
{
	uint32_t x = permute(o, (uint32_t)position);

	while (x >= o->n)
		x = permute(o, x);
	return o->of != NULL ? o->of[x] : x;
}

void kge_order_take(const struct kge_order *o, size_t first, size_t n, uint32_t *out)
{
	assert(first <= o->n && n <= o->n - first);
	if (o->list != NULL)
		memcpy(out, o->list + first, n * sizeof(*out));
	else
		for (size_t i = 0; i < n; i++)
			out[i] = position_at(o, first + i);
}
