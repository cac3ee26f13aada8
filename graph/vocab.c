/* graph/vocab.c - names <-> dense ids: an arena of names and a hash table of ids. */
#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/secret.h"
#include "graph/graph.h"

enum { CHUNK_BYTES = 256 * 1024, FIRST_SLOTS = 64 };

struct name {
	const char *text;
	uint32_t len;
	uint32_t hash; /* spares most comparisons, and rehashing */
};

struct chunk {
	struct chunk *next;
	size_t used, cap;
	char text[];
};

struct graph_vocab {
	struct name *names;
	uint32_t count, cap;
	uint32_t *slots; /* id + 1; 0: free */
	uint32_t mask;
	struct chunk *chunks; /* names never move */
	unsigned char key[crypto_shorthash_KEYBYTES];
};

struct graph_vocab *graph_vocab_new(void)
{
	struct graph_vocab *v = mem_array(1, sizeof *v);

	v->mask = FIRST_SLOTS - 1;
	v->slots = mem_array(FIRST_SLOTS, sizeof *v->slots);
	/* A fresh key: nobody can write a file whose names all collide.  Ids
	 * come from the order of arrival, so the key shows nowhere. */
	secret_draw(NULL, v->key, sizeof v->key);
	return v;
}

static int compare_names_of(const void *a, const void *b, void *vocab)
{
	const struct graph_vocab *v = vocab;
	const struct name *s = &v->names[*(const uint32_t *)a],
			  *t = &v->names[*(const uint32_t *)b];
	int order = memcmp(s->text, t->text, s->len < t->len ? s->len : t->len);

	return order != 0 ? order : (s->len > t->len) - (s->len < t->len);
}

uint32_t *graph_vocab_by_name(const struct graph_vocab *v)
{
	uint32_t *ids = mem_array((size_t)v->count + 1, sizeof *ids);

	for (uint32_t k = 0; k < v->count; k++)
		ids[k] = k;
	if (v->count > 0)
		qsort_r(ids, v->count, sizeof *ids, compare_names_of, (void *)(uintptr_t)v);
	return ids;
}

void graph_vocab_free(struct graph_vocab *v)
{
	if (v == NULL)
		return;
	while (v->chunks != NULL) {
		struct chunk *next = v->chunks->next;

		free(v->chunks);
		v->chunks = next;
	}
	free(v->names);
	free(v->slots);
	free(v);
}

static uint32_t name_hash(const struct graph_vocab *v, const char *name, size_t len)
{
	unsigned char out[crypto_shorthash_BYTES];
	uint32_t hash;

	crypto_shorthash(out, (const unsigned char *)name, len, v->key);
	memcpy(&hash, out, sizeof hash);
	return hash;
}

/* The slot that holds the name, or the free one where it belongs. */
static uint32_t slot_of(const struct graph_vocab *v, const char *name, size_t len, uint32_t hash)
{
	uint32_t at = hash & v->mask;

	assert(v->count <= v->mask);
	for (; v->slots[at] != 0; at = (at + 1) & v->mask) {
		const struct name *n = &v->names[v->slots[at] - 1];

		if (n->hash == hash && n->len == len && memcmp(n->text, name, len) == 0)
			break;
	}
	return at;
}

static void grow_slots(struct graph_vocab *v)
{
	v->mask = v->mask * 2 + 1;
	free(v->slots);
	v->slots = mem_array((size_t)v->mask + 1, sizeof *v->slots);
	for (uint32_t id = 0; id < v->count; id++) {
		uint32_t at = v->names[id].hash & v->mask;

		while (v->slots[at] != 0)
			at = (at + 1) & v->mask;
		v->slots[at] = id + 1;
	}
}

static const char *keep(struct graph_vocab *v, const char *name, size_t len)
{
	struct chunk *c = v->chunks;
	char *at;

	assert(name != NULL || len == 0);
	if (c == NULL || c->cap - c->used < len + 1) {
		size_t cap = len + 1 > CHUNK_BYTES ? len + 1 : CHUNK_BYTES;

		c = mem_resize(NULL, sizeof *c + cap, 1);
		*c = (struct chunk){ .next = v->chunks, .cap = cap };
		v->chunks = c;
	}
	at = c->text + c->used;
	if (len > 0)
		memcpy(at, name, len);
	at[len] = '\0';
	c->used += len + 1;
	return at;
}

uint32_t graph_vocab_add(struct graph_vocab *v, const char *name, size_t len)
{
	uint32_t hash = name_hash(v, name, len);
	uint32_t at = slot_of(v, name, len, hash);

	if (v->slots[at] != 0)
		return v->slots[at] - 1;
	assert(len < UINT32_MAX && v->count < UINT32_MAX / 4);
	if (v->count == v->cap) {
		v->cap = v->cap == 0 ? 64 : v->cap * 2;
		v->names = mem_resize(v->names, v->cap, sizeof *v->names);
	}
	v->names[v->count] = (struct name){ keep(v, name, len), (uint32_t)len, hash };
	v->slots[at] = ++v->count;
	if (v->count > v->mask / 4 * 3)
		grow_slots(v);
	return v->count - 1;
}

uint32_t graph_vocab_find(const struct graph_vocab *v, const char *name, size_t len)
{
	uint32_t id = v->slots[slot_of(v, name, len, name_hash(v, name, len))];

	return id == 0 ? (uint32_t)GRAPH_NONE : id - 1;
}

const char *graph_vocab_name(const struct graph_vocab *v, uint32_t id, size_t *len)
{
	assert(id < v->count);
	if (len != NULL)
		*len = v->names[id].len;
	return v->names[id].text;
}

uint32_t graph_vocab_count(const struct graph_vocab *v)
{
	return v->count;
}
