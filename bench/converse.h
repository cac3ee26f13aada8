/* bench/converse.h - host and client of a translator in one program, every wish granted. */
#ifndef BENCH_CONVERSE_H
#define BENCH_CONVERSE_H

#include <stdlib.h>

#include "base/conv.h"
#include "base/mem.h"

static inline void converse_once(struct conv *c, struct conv *other)
{
	if (conv_want(c) == CONV_WORK) {
		c->ops->done(c, c->ops->work(c, NULL));
	} else if (conv_want(c) == CONV_CHARGE) {
		c->ops->done(c, 0);
	} else if (conv_want(c) == CONV_SEND) {
		struct conv_message m = c->ops->outgoing(c);
		uint8_t *copy = mem_copy(m.base, m.len);

		c->ops->done(c, 0);
		other->ops->received(other, m.kind, copy, m.len);
		free(copy);
	}
}

/* Until both are over. */
static inline void converse(struct conv *a, struct conv *b)
{
	while (conv_want(a) != CONV_OVER || conv_want(b) != CONV_OVER) {
		converse_once(a, b);
		converse_once(b, a);
	}
}

#endif
