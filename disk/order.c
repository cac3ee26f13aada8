#include "disk/order.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

/* What is in the buffer, and the labels outside that have not met everybody. */
struct state {
	uint16_t in[DISK_BUFFER_MAX], out[DISK_PARTS_MAX];
	size_t n_out;
};

static void swap_in(struct disk_order *o, struct state *s, size_t position, uint16_t label)
{
	s->in[position] = label;
	o->swaps[o->n++] = (struct disk_swap){ (uint16_t)position, label };
}

/* Everybody outside takes the last position in turn; who leaves it is outside then. */
static void go_round(struct disk_order *o, struct state *s)
{
	size_t last = o->buffer - 1;

	for (size_t i = 0; i < s->n_out; i++) {
		uint16_t left = s->in[last];

		swap_in(o, s, last, s->out[i]);
		s->out[i] = left;
	}
}

/* The other positions are taken by as many from outside; who leaves them has met everybody. */
static void renew_positions(struct disk_order *o, struct state *s)
{
	size_t n = o->buffer - 1 < s->n_out ? o->buffer - 1 : s->n_out;

	for (size_t i = 0; i < n; i++)
		swap_in(o, s, i, s->out[i]);
	s->n_out -= n;
	for (size_t i = 0; i < s->n_out; i++)
		s->out[i] = s->out[i + n];
}

void disk_order_init(struct disk_order *o, uint32_t parts, uint32_t buffer)
{
	struct state s = { .n_out = parts - buffer };

	assert(buffer >= 2 && buffer <= DISK_BUFFER_MAX && buffer <= parts);
	assert(parts <= DISK_PARTS_MAX);
	*o = (struct disk_order){ .parts = parts, .buffer = buffer };
	o->swaps = mem_array(disk_order_swaps(parts, buffer) + 1, sizeof(*o->swaps));
	for (uint32_t i = 0; i < buffer; i++)
		s.in[i] = (uint16_t)i;
	for (uint32_t i = 0; i < s.n_out; i++)
		s.out[i] = (uint16_t)(buffer + i);
	while (s.n_out > 0) {
		go_round(o, &s);
		renew_positions(o, &s);
	}
	assert(o->n == disk_order_swaps(parts, buffer));
}

void disk_order_release(struct disk_order *o)
{
	free(o->swaps);
	*o = (struct disk_order){ 0 };
}

/* Round k (from 0) swaps the parts - buffer - k (buffer - 1) that are outside, and then renews. */
size_t disk_order_swaps(uint32_t parts, uint32_t buffer)
{
	size_t out = parts - buffer, step = buffer - 1, rounds = (out + step - 1) / step;

	return rounds * out - step * (rounds * (rounds - 1) / 2) + out;
}
