#include "agent/core/names.h"

#include <sodium.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"

struct alias {
	bool everybody;
	uint8_t peer[32];
	char tag;
	uint32_t id;
	char *text;
	size_t len;
};

struct agent_names {
	const struct graph *graph;
	struct alias *at;
	size_t n, cap;
};

struct agent_names *agent_names_new(const struct graph *g)
{
	struct agent_names *n = mem_array(1, sizeof(*n));

	n->graph = g;
	return n;
}

void agent_names_free(struct agent_names *n)
{
	if (n == NULL)
		return;
	for (size_t i = 0; i < n->n; i++)
		free(n->at[i].text);
	free(n->at);
	free(n);
}

void agent_names_alias(struct agent_names *n, const uint8_t *peer, char tag, uint32_t id,
		       const char *alias, size_t len)
{
	struct alias *a;

	if (n->n == n->cap) {
		n->cap = n->cap ? 2 * n->cap : 64;
		n->at = mem_resize(n->at, n->cap, sizeof(*n->at));
	}
	a = &n->at[n->n++];
	*a = (struct alias){ .everybody = peer == NULL, .tag = tag, .id = id, .len = len };
	if (peer)
		memcpy(a->peer, peer, sizeof(a->peer));
	a->text = mem_array(len + 1, 1);
	memcpy(a->text, alias, len);
}

static size_t own_names(const struct graph_vocab *v, char tag, struct agent_name *out)
{
	uint32_t n = graph_vocab_count(v);

	for (uint32_t id = 0; id < n; id++) {
		out[id].text = graph_vocab_name(v, id, &out[id].len);
		out[id].id = id;
		out[id].tag = tag;
	}
	return n;
}

/* The table for everybody first, the peer's own table over it. */
static void lay_aliases(const struct agent_names *names, const uint8_t peer[32], bool everybody,
			struct agent_name *ent, uint32_t n_ent, struct agent_name *rel,
			uint32_t n_rel)
{
	for (size_t i = 0; i < names->n; i++) {
		const struct alias *a = &names->at[i];
		struct agent_name *table = a->tag == 'e' ? ent : rel;

		if (a->everybody != everybody || a->id >= (a->tag == 'e' ? n_ent : n_rel))
			continue;
		if (!everybody && memcmp(a->peer, peer, 32) != 0)
			continue;
		table[a->id].text = a->text;
		table[a->id].len = a->len;
	}
}

static int compare_bytes(const char *a, size_t n, const char *b, size_t m)
{
	int order = memcmp(a, b, n < m ? n : m);

	return order != 0 ? order : (n > m) - (n < m);
}

/* By canonical name, then by own name: ids would follow the order of the triples. */
static int by_text(const void *pa, const void *pb, void *own)
{
	const struct agent_name *a = *(struct agent_name *const *)pa;
	const struct agent_name *b = *(struct agent_name *const *)pb;
	size_t n, m;
	const char *x = graph_vocab_name(own, a->id, &n), *y = graph_vocab_name(own, b->id, &m);
	int order = compare_bytes(a->text, a->len, b->text, b->len);

	return order != 0 ? order : compare_bytes(x, n, y, m);
}

static bool same_text(const struct agent_name *a, const struct agent_name *b)
{
	return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

/* Of those with one name only the first keeps it; returns how many are left. */
static size_t drop_repeats(const struct graph_vocab *own, struct agent_name *at, size_t n)
{
	struct agent_name **order = mem_array(n + 1, sizeof(struct agent_name *));
	size_t kept = 0, first = 0;

	for (size_t i = 0; i < n; i++)
		order[i] = &at[i];
	qsort_r(order, n, sizeof(struct agent_name *), by_text, (void *)(uintptr_t)own);
	for (size_t i = 1; i < n; i++) {
		if (same_text(order[i], order[first]))
			order[i]->tag = 0;
		else
			first = i;
	}
	for (size_t i = 0; i < n; i++)
		if (at[i].tag != 0)
			at[kept++] = at[i];
	free(order);
	return kept;
}

struct agent_name *agent_names_toward(const struct agent_names *names, const uint8_t peer[32],
				      int entities, int relations, size_t *n)
{
	uint32_t n_ent = graph_vocab_count(names->graph->entities);
	uint32_t n_rel = graph_vocab_count(names->graph->relations);
	struct agent_name *out = mem_array((size_t)n_ent + n_rel + 1, sizeof(*out));
	size_t ents = 0, rels = 0;

	own_names(names->graph->entities, 'e', out);
	own_names(names->graph->relations, 'r', out + n_ent);
	lay_aliases(names, peer, true, out, n_ent, out + n_ent, n_rel);
	lay_aliases(names, peer, false, out, n_ent, out + n_ent, n_rel);
	if (entities)
		ents = drop_repeats(names->graph->entities, out, n_ent);
	if (relations)
		rels = drop_repeats(names->graph->relations, out + n_ent, n_rel);
	memmove(out + ents, out + n_ent, rels * sizeof(*out));
	*n = ents + rels;
	return out;
}

static struct agent_name *relations_toward(const struct agent_names *names, const uint8_t peer[32],
					   size_t *n)
{
	uint32_t n_rel = graph_vocab_count(names->graph->relations);
	struct agent_name *out = mem_array((size_t)n_rel + 1, sizeof(*out));

	own_names(names->graph->relations, 'r', out);
	lay_aliases(names, peer, true, NULL, 0, out, n_rel);
	lay_aliases(names, peer, false, NULL, 0, out, n_rel);
	*n = drop_repeats(names->graph->relations, out, n_rel);
	return out;
}

bool agent_names_relation(const struct agent_names *names, const uint8_t peer[32], uint32_t id,
			  char *out, size_t size)
{
	size_t n;
	struct agent_name *all = relations_toward(names, peer, &n);
	bool found = false;

	for (size_t i = 0; i < n; i++)
		if (all[i].id == id && all[i].len < size) {
			memcpy(out, all[i].text, all[i].len);
			out[all[i].len] = '\0';
			found = true;
		}
	free(all);
	return found;
}

uint32_t agent_names_find_relation(const struct agent_names *names, const uint8_t peer[32],
				   const char *text)
{
	size_t n, len = strlen(text);
	struct agent_name *all = relations_toward(names, peer, &n);
	uint32_t id = GRAPH_NONE;

	for (size_t i = 0; i < n; i++)
		if (all[i].len == len && memcmp(all[i].text, text, len) == 0)
			id = all[i].id;
	free(all);
	return id;
}

/* The set has no order, so the digests of its members are hashed in theirs. */
static int by_digest(const void *a, const void *b)
{
	return memcmp(a, b, 32);
}

void agent_names_version(const struct agent_names *names, const uint8_t peer[32], int entities,
			 int relations, const uint8_t secret[32], uint8_t out[32])
{
	size_t n;
	struct agent_name *all = agent_names_toward(names, peer, entities, relations, &n);
	uint8_t *digests = mem_array(n + 1, 32);
	crypto_generichash_state h;

	for (size_t i = 0; i < n; i++) {
		/* the local id too: slots kept for another numbering are stale */
		uint8_t id[5] = { (uint8_t)all[i].tag, (uint8_t)all[i].id,
				  (uint8_t)(all[i].id >> 8), (uint8_t)(all[i].id >> 16),
				  (uint8_t)(all[i].id >> 24) };

		crypto_generichash_init(&h, secret, 32, 32);
		crypto_generichash_update(&h, id, sizeof(id));
		crypto_generichash_update(&h, (const uint8_t *)all[i].text, all[i].len);
		crypto_generichash_final(&h, digests + 32 * i, 32);
	}
	qsort(digests, n, 32, by_digest);
	crypto_generichash(out, 32, digests, 32 * n, secret, 32);
	free(digests);
	free(all);
}
