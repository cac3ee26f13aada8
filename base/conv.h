/* base/conv.h - the shape of a conversation between two agents.
 *
 * Private set intersection, PPAT and the Procrustes translator are all
 * machines of this kind.  A conversation decides and does not act: it names
 * the one thing that it wants next, and is told when that is done.  It owns no
 * socket, timer, thread or database; agent/ grants its requests with libuv, the
 * simulator from a seeded queue, a unit test by hand.
 *
 *   CONV_RECV    the peer's next message     -> received()
 *   CONV_SEND    outgoing() handed to the link -> done(0)
 *   CONV_CHARGE  cost() labels durable on the ledger and countersigned
 *                                            -> done(0) or done(ERR_BUDGET)
 *   CONV_WORK    work() run, on any thread   -> done(its status)
 *   CONV_OVER    nothing: see status()
 *
 * While work() runs, nobody else touches the conversation.  Who sets *cancel (which may be NULL)
 * meanwhile has a long one end early, with ERR_CANCELED; it is done() or freed after that, and
 * run no more.  Any want may also
 * end in CONV_OVER.  received() copies what it needs.  A bad message makes the
 * conversation OVER with ERR_PROTO or ERR_TOOBIG and a text; it never asserts. */
#ifndef BASE_CONV_H
#define BASE_CONV_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum conv_want { CONV_RECV, CONV_SEND, CONV_CHARGE, CONV_WORK, CONV_OVER };

/* The request to the ledger before labels are drawn (public numbers only).  A conversation states
 * this request at any time but while work() runs, so that the ledger may be asked ahead. */
struct conv_charge {
	uint32_t labels; /* of the charge that it wants, or will want next; 0: none that it knows */
	uint32_t left;	 /* charged and not drawn yet */
};

struct conv_message {
	uint8_t kind;	     /* the conversation's own numbering, 0..255 */
	const uint8_t *base; /* msgpack body; the conversation's until its next call */
	size_t len;
};

struct conv; /* first member of every conversation's struct */

struct conv_ops {
	const char *name; /* "psi", "ppat", "procrustes" */
	enum conv_want (*want)(const struct conv *c);
	void (*received)(struct conv *c, uint8_t kind, const uint8_t *body, size_t len);
	struct conv_message (*outgoing)(const struct conv *c);
	struct conv_charge (*cost)(const struct conv *c);
	int (*work)(struct conv *c, const atomic_bool *cancel);
	void (*done)(struct conv *c, int status);
	int (*status)(const struct conv *c, struct err *e); /* 0, or the first error */
	void (*free)(struct conv *c);			    /* wipes secrets */
};

struct conv {
	const struct conv_ops *ops;
};

static inline enum conv_want conv_want(const struct conv *c)
{
	return c->ops->want(c);
}

/* In the loops of a work(). */
static inline bool conv_canceled(const atomic_bool *cancel)
{
	return cancel != NULL && atomic_load_explicit(cancel, memory_order_relaxed);
}

static inline void conv_free(struct conv *c)
{
	if (c != NULL)
		c->ops->free(c);
}

#endif
