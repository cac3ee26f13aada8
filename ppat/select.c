/* ppat/select.c - which slots take part: the same at both sides. */
#include <math.h>
#include <stdlib.h>

#include <sodium.h>

#include "base/mem.h"
#include "ppat/session.h"

struct ranked_slot {
	uint64_t hash;
	uint32_t slot;
};

static int compare_hashes(const void *a, const void *b)
{
	const struct ranked_slot *x = a, *y = b;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->slot < y->slot ? -1 : x->slot > y->slot;
}

static int compare_slots(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

static struct ranked_slot rank_slot(uint64_t seed, uint32_t slot)
{
	uint8_t in[12], out[16];
	struct ranked_slot t = { .slot = slot };
	for (size_t i = 0; i < 8; i++)
		in[i] = (uint8_t)(seed >> (8 * i));
	for (size_t i = 0; i < 4; i++)
		in[8 + i] = (uint8_t)(slot >> (8 * i));
	crypto_generichash(out, sizeof(out), in, sizeof(in), NULL, 0);
	for (size_t i = 0; i < 8; i++)
		t.hash |= (uint64_t)out[i] << (8 * i);
	return t;
}

static bool is_chosen_kind(const struct ppat_config *c, const uint8_t *tags, uint32_t slot)
{
	bool relation = tags != NULL && tags[slot] == 'r';
	return (c->what & (relation ? PPAT_RELATIONS : PPAT_ENTITIES)) != 0;
}

size_t ppat_select(const struct ppat_config *c, const uint8_t *tags, const uint64_t *places,
		   uint32_t *out)
{
	struct ranked_slot *t = mem_array(c->slots, sizeof(*t));
	size_t n = 0;
	for (uint32_t i = 0; i < c->slots; i++)
		if (is_chosen_kind(c, tags, i))
			t[n++] = c->lasting ? (struct ranked_slot){ places[i], i }
					    : rank_slot(c->select_seed, i);
	size_t keep = (size_t)ceil(c->aligned_share * (double)n);
	keep = keep > n ? n : keep;
	if (keep < n)
		qsort(t, n, sizeof(*t), compare_hashes);
	for (size_t i = 0; i < keep; i++)
		out[i] = t[i].slot;
	qsort(out, keep, sizeof(*out), compare_slots);
	free(t);
	return keep;
}
