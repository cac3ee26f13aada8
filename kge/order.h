/* kge/order.h - what an epoch goes through, in an order drawn for it.
 *
 * A few positions are a list that is shuffled.  Many are not listed: a keyed permutation gives the
 * number that stands at each position when it is asked, so that they take no memory.  It is a
 * Feistel network over as many bits as the positions need; a number beyond them is put through
 * again until it is one of them (Black and Rogaway 2002, "cycle walking"). */
#ifndef KGE_ORDER_H
#define KGE_ORDER_H

#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"

enum { KGE_ORDER_LISTED = 1 << 19, KGE_ORDER_ROUNDS = 6 };

struct kge_order {
	size_t n;
	const uint32_t *of; /* borrowed: what the n positions hold; NULL: their numbers */
	uint32_t *list;	    /* NULL: not listed */
	unsigned bits[2];
	uint64_t keys[KGE_ORDER_ROUNDS];
};

/* n < 2^32 */
void kge_order_init(struct kge_order *o, size_t n, const uint32_t *of);
void kge_order_release(struct kge_order *o);
/* A new order, all alike in likelihood as far as a generator goes; uses r up. */
void kge_order_draw(struct kge_order *o, struct rng *r);
/* Positions first .. first + n - 1. */
void kge_order_take(const struct kge_order *o, size_t first, size_t n, uint32_t *out);

#endif
