/* base/driver.c - two conversations mouth to mouth. */
#include "base/driver.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

enum { QUEUE = 4 }; /* messages under way; conversations alternate, so one would do */

struct message {
	uint8_t kind;
	struct buf body;
};

struct side {
	struct conv *conv;
	struct message inbox[QUEUE];
	size_t n;
};

static void drop_first(struct side *s)
{
	assert(s->n > 0 && s->n <= QUEUE);
	buf_release(&s->inbox[0].body);
	memmove(&s->inbox[0], &s->inbox[1], (QUEUE - 1) * sizeof(s->inbox[0]));
	memset(&s->inbox[QUEUE - 1], 0, sizeof(s->inbox[0]));
	s->n--;
}

/* The status of the next grant. */
static int grant(struct driver *d)
{
	bool hit = ++d->grants == d->fail_grant;
	d->failed = d->failed || hit;
	return hit ? d->fail_status : 0;
}

static bool deliver(struct driver *d, struct side *s, int me)
{
	if (s->n == 0)
		return false;
	struct message *l = &s->inbox[0];
	uint64_t len = l->body.len;
	buf_add(&d->received[me], &l->kind, 1);
	buf_add(&d->received[me], &len, sizeof(len));
	buf_add(&d->received[me], l->body.base, l->body.len);
	d->messages[me]++;
	/* an exact copy, so that a sanitizer sees any read beyond the message */
	uint8_t *copy = mem_copy(l->body.base, l->body.len);
	s->conv->ops->received(s->conv, l->kind, copy, l->body.len);
	memset(copy, 0xa5, l->body.len);
	free(copy);
	drop_first(s);
	return true;
}

static bool send(struct driver *d, struct side *s, struct side *other, int to)
{
	if (other->n == QUEUE)
		return false;
	struct conv_message m = s->conv->ops->outgoing(s->conv);
	int status = grant(d);
	if (status == 0) {
		struct message *l = &other->inbox[other->n++];
		l->kind = m.kind;
		buf_add(&l->body, m.base, m.len);
		if (d->mutate != NULL)
			d->mutate(d->ctx, to, &l->kind, &l->body);
	}
	s->conv->ops->done(s->conv, status);
	return true;
}

static void charge(struct driver *d, struct side *s)
{
	uint32_t k = s->conv->ops->cost(s->conv).labels;
	int status = grant(d);
	if (status == 0 && d->label_cap > 0 && d->labels + k > d->label_cap)
		status = ERR_BUDGET;
	if (status == 0)
		d->labels += k;
	d->charges++;
	s->conv->ops->done(s->conv, status);
}

static void work(struct driver *d, struct side *s)
{
	int status = grant(d);
	if (status == 0)
		status = s->conv->ops->work(s->conv, d->cancel);
	s->conv->ops->done(s->conv, status);
}

static bool step(struct driver *d, struct side *s, struct side *other, int me)
{
	switch (conv_want(s->conv)) {
	case CONV_RECV:
		return deliver(d, s, me);
	case CONV_SEND:
		return send(d, s, other, 1 - me);
	case CONV_CHARGE:
		charge(d, s);
		return true;
	case CONV_WORK:
		work(d, s);
		return true;
	default:
		return false;
	}
}

void driver_run(struct driver *d, struct conv *a, struct conv *b)
{
	struct side sides[DRIVER_SIDES] = { { .conv = a }, { .conv = b } };
	bool moved = true;

	assert(a != NULL && b != NULL && a != b);
	while (moved) {
		moved = false;
		for (int i = 0; i < DRIVER_SIDES; i++)
			moved = step(d, &sides[i], &sides[1 - i], i) || moved;
	}
	d->both_over = conv_want(a) == CONV_OVER && conv_want(b) == CONV_OVER;
	for (int i = 0; i < DRIVER_SIDES; i++)
		while (sides[i].n > 0)
			drop_first(&sides[i]);
}

void driver_release(struct driver *d)
{
	for (int i = 0; i < DRIVER_SIDES; i++)
		buf_release(&d->received[i]);
}
