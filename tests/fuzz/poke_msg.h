/* tests/fuzz/poke_msg.h - decode any bytes and touch all that came out. */
#ifndef TESTS_FUZZ_POKE_MSG_H
#define TESTS_FUZZ_POKE_MSG_H

#include <stdlib.h>

#include "base/mem.h"
#include "net/bodies.h"

static inline void poke_map(const struct net_map *m)
{
	static const char *const keys[] = { "u", "i", "t", "d", "s", "b", "x", "m", "l", "k" };
	volatile uint8_t sink = 0;

	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++) {
		struct err e[8] = { 0 };
		struct net_bytes b = net_get_bin(m, keys[i], 0, NET_MESSAGE_MAX, &e[0]);
		struct net_bytes s = net_get_str(m, keys[i], NET_MESSAGE_MAX, &e[1]);
		struct net_tensor t = net_get_tensor(m, keys[i], 1 << 20, 1 << 20, &e[2]);
		float *f = mem_array(t.rows * t.cols + 1, sizeof(float));
		struct net_list l = net_get_list(m, keys[i], NET_ITEMS_MAX, &e[3]);

		for (size_t k = 0; k < b.len; k++)
			sink = (uint8_t)(sink + b.base[k]);
		for (size_t k = 0; k < s.len; k++)
			sink = (uint8_t)(sink + s.base[k]);
		net_tensor_copy(&t, f);
		free(f);
		net_get_uint(m, keys[i], 0, UINT64_MAX, &e[4]);
		net_get_double(m, keys[i], -1e300, 1e300, &e[5]);
		for (size_t k = 0; k < l.n; k++) {
			struct err le = { 0 };

			net_list_bin(&l, k, 0, NET_MESSAGE_MAX, &le);
		}
	}
	(void)sink;
}

/* Every body that the map could be, and what is read of it put elsewhere and written again. */
static inline void poke_bodies(const uint8_t *bytes, size_t n, const struct net_map *m)
{
	struct net_message room; /* as large as the largest of them */
	uint8_t *copy = mem_copy(bytes, n);

	for (int kind = NET_BODY_none + 1; kind < NET_BODIES; kind++) {
		struct err e = { 0 };
		struct buf out = { 0 };
		struct net_writer w;

		net_body_get(m, (enum net_body_kind)kind, &room, &e);
		if (e.code != 0)
			continue;
		net_body_move((enum net_body_kind)kind, &room, bytes, copy);
		net_write_body(&w, &out);
		net_body_put(&w, (enum net_body_kind)kind, &room);
		if (net_write_end(&w, &e) != 0 && e.code != ERR_TOOBIG)
			abort();
		buf_release(&out);
	}
	free(copy);
}

static inline void poke_whole(const uint8_t *bytes, size_t n)
{
	struct net_message m, *copy;
	size_t memory;

	if (net_message_decode(&m, bytes, n, NULL) != 0)
		return;
	copy = net_message_copy(&m, &memory);
	free(copy);
}

/* 1 if the bytes were a message. */
static inline size_t poke_msg(const uint8_t *bytes, size_t n)
{
	struct net_msg m;
	struct net_body o;
	struct err e = { 0 };

	if (net_body_decode(&o, bytes, n, &e) == 0) {
		poke_map(&o.map);
		poke_bodies(bytes, n, &o.map);
		net_body_release(&o);
	}
	if (net_msg_decode(&m, bytes, n, &e) != 0)
		return 0;
	poke_map(&m.body);
	poke_whole(bytes, n);
	net_msg_release(&m);
	return 1;
}

#endif
