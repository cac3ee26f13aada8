#include "graph/parts.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"

/* ---- who gets which relation ---- */

/* How many triples each relation has; free() it. */
static size_t *count_uses(const struct graph *g)
{
	size_t *triples = mem_array((size_t)graph_vocab_count(g->relations) + 1, sizeof(*triples));

	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++)
			triples[g->split[s].at[i].rel]++;
	return triples;
}

/* Those with a triple, ascending: a file of names may have others.  Returns how many. */
static uint32_t list_used(const struct graph *g, uint32_t *who)
{
	size_t *triples = count_uses(g);
	uint32_t used = 0;

	for (uint32_t r = 0; r < graph_vocab_count(g->relations); r++)
		if (triples[r] > 0)
			who[used++] = r;
	free(triples);
	return used;
}

/* n: relations with a triple. */
static int check_parts(uint32_t n, uint32_t k, struct err *e)
{
	if (k < 2 || k > GRAPH_PARTS_MAX)
		return err_set(e, ERR_USAGE, "a graph has 2 to %d parts, not to %u",
			       GRAPH_PARTS_MAX, k);
	if (k > n)
		return err_set(e, ERR_USAGE,
			       "%u parts cannot each have a relation with triples of a graph that "
			       "has %u",
			       k, n);
	return 0;
}

int graph_partition_relations(const struct graph *g, uint32_t k, uint64_t seed, uint32_t *part,
			      struct err *e)
{
	uint32_t n = graph_vocab_count(g->relations);
	uint32_t *order = mem_array((size_t)n + 1, sizeof(*order)), used = list_used(g, order);
	struct rng r;
	int rc = check_parts(used, k, e);

	if (rc == 0) {
		memset(part, 0, n * sizeof(*part)); /* of a relation without triples */
		rng_seed(&r, seed);
		rng_shuffle(&r, order, used, sizeof(*order));
		for (uint32_t i = 0; i < used; i++)
			part[order[i]] = i % k;
	}
	free(order);
	return rc;
}

/* Give what met no other (to[] is GRAPH_NONE) to the part that has the fewest triples. */
static void deal_loners(const struct graph *g, uint32_t k, uint32_t *part)
{
	uint32_t n = graph_vocab_count(g->relations);
	size_t *triples = count_uses(g), held[GRAPH_PARTS_MAX] = { 0 };

	for (uint32_t r = 0; r < n; r++)
		if (part[r] != GRAPH_NONE)
			held[part[r]] += triples[r];
	for (uint32_t r = 0; r < n; r++) {
		uint32_t least = 0;

		if (part[r] != GRAPH_NONE)
			continue;
		for (uint32_t p = 1; p < k; p++)
			if (held[p] < held[least])
				least = p;
		part[r] = least;
		held[least] += triples[r];
	}
	free(triples);
}

/* m without the rows and columns of relations that met no other: their number in who[]. */
static uint32_t drop_loners(double *m, uint32_t n, uint32_t *who)
{
	uint32_t kept = 0;

	for (uint32_t r = 0; r < n; r++) {
		double sum = 0;

		for (uint32_t s = 0; s < n; s++)
			sum += m[(size_t)r * n + s];
		if (sum > 0)
			who[kept++] = r;
	}
	for (uint32_t i = 0; i < kept; i++) /* rows move up, columns to the left: in place */
		for (uint32_t j = 0; j < kept; j++)
			m[(size_t)i * kept + j] = m[(size_t)who[i] * n + who[j]];
	return kept;
}

int graph_partition_communities(const struct graph *g, uint32_t k, uint64_t seed, uint32_t *part,
				struct err *e)
{
	uint32_t n = graph_vocab_count(g->relations), kept, *who, *group;
	double *m;
	int rc;

	if (n > GRAPH_COMMUNITY_RELATIONS_MAX)
		return err_set(e, ERR_TOOBIG,
			       "%u relations are too many to look for communities (at most %d): "
			       "deal them by relations",
			       n, GRAPH_COMMUNITY_RELATIONS_MAX);
	who = mem_array((size_t)n + 1, sizeof(*who));
	rc = check_parts(list_used(g, who), k, e);
	if (rc != 0) {
		free(who);
		return rc;
	}
	group = mem_array(n, sizeof(*group));
	m = graph_cooccurrence(g);
	kept = drop_loners(m, n, who);
	for (uint32_t r = 0; r < n; r++)
		part[r] = GRAPH_NONE;
	if (kept > 0)
		rc = graph_cluster(m, kept, kept < k ? kept : k, seed, group, e);
	for (uint32_t i = 0; rc == 0 && i < kept; i++)
		part[who[i]] = group[i];
	if (rc == 0)
		deal_loners(g, k, part);
	free(m);
	free(who);
	free(group);
	return rc;
}

/* ---- how often relations meet ---- */

static int compare_ids(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return x < y ? -1 : x > y;
}

/* Sorted, each once; returns how many are left. */
static size_t distinct(uint32_t *ids, size_t n)
{
	size_t kept = 0;

	qsort(ids, n, sizeof(*ids), compare_ids);
	for (size_t i = 0; i < n; i++)
		if (i == 0 || ids[i] != ids[i - 1])
			ids[kept++] = ids[i];
	return kept;
}

/* The relations of entity x, with repeats: rels[start[x]..start[x + 1]]. */
static void list_touches(const struct graph *g, size_t *start, uint32_t **rels)
{
	uint32_t n = graph_vocab_count(g->entities);
	size_t *at;

	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++) {
			start[g->split[s].at[i].head + 1]++;
			start[g->split[s].at[i].tail + 1]++;
		}
	for (uint32_t x = 0; x < n; x++)
		start[x + 1] += start[x];
	*rels = mem_array(start[n] + 1, sizeof(**rels));
	at = mem_copy(start, ((size_t)n + 1) * sizeof(*at));
	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; i < g->split[s].n; i++) {
			struct graph_triple t = g->split[s].at[i];

			(*rels)[at[t.head]++] = t.rel;
			(*rels)[at[t.tail]++] = t.rel;
		}
	free(at);
}

double *graph_cooccurrence(const struct graph *g)
{
	uint32_t n_ent = graph_vocab_count(g->entities), n = graph_vocab_count(g->relations), *rels;
	size_t *start = mem_array((size_t)n_ent + 2, sizeof(*start));
	double *m = mem_array((size_t)n * n + 1, sizeof(*m));

	list_touches(g, start, &rels);
	for (uint32_t x = 0; x < n_ent; x++) {
		uint32_t *own = rels + start[x];
		size_t d = distinct(own, start[x + 1] - start[x]);

		for (size_t i = 0; i < d; i++)
			for (size_t j = 0; j < d; j++)
				m[(size_t)own[i] * n + own[j]] += i != j;
	}
	free(start);
	free(rels);
	return m;
}

/* ---- the parts ---- */

struct graph_triples graph_all_triples(const struct graph *g)
{
	struct graph_triples all = { NULL, 0 };
	size_t n = 0;

	for (int s = 0; s < GRAPH_SPLITS; s++)
		n += g->split[s].n;
	all.at = mem_array(n + 1, sizeof(*all.at));
	for (int s = 0; s < GRAPH_SPLITS; s++) {
		/* what an earlier split has already */
		struct graph_index *seen = s > 0 ? graph_index_new(g, (1u << s) - 1) : NULL;

		for (size_t i = 0; i < g->split[s].n; i++)
			if (seen == NULL || !graph_index_has(seen, g->split[s].at[i]))
				all.at[all.n++] = g->split[s].at[i];
		graph_index_free(seen);
	}
	return all;
}

static uint32_t move_name(struct graph_vocab *to, const struct graph_vocab *from, uint32_t id)
{
	size_t len;
	const char *name = graph_vocab_name(from, id, &len);

	return graph_vocab_add(to, name, len);
}

struct graph *graph_part_graph(const struct graph *g, const struct graph_triples *all,
			       const uint32_t *part, uint32_t k)
{
	struct graph *out = graph_new();

	for (size_t i = 0; i < all->n; i++) {
		struct graph_triple t = all->at[i];

		if (part[t.rel] != k)
			continue;
		t.head = move_name(out->entities, g->entities, t.head);
		t.rel = move_name(out->relations, g->relations, t.rel);
		t.tail = move_name(out->entities, g->entities, t.tail);
		graph_add(out, GRAPH_TRAIN, t);
	}
	return out;
}

void graph_parts_shared(const struct graph *g, const struct graph_triples *all,
			const uint32_t *part, uint32_t k, uint32_t *shared, uint32_t *in_all)
{
	uint32_t n_ent = graph_vocab_count(g->entities);
	uint64_t *held = mem_array((size_t)n_ent + 1, sizeof(*held)); /* bit p: part p has it */

	for (size_t i = 0; i < all->n; i++) {
		struct graph_triple t = all->at[i];

		held[t.head] |= UINT64_C(1) << part[t.rel];
		held[t.tail] |= UINT64_C(1) << part[t.rel];
	}
	assert(k >= 1 && k <= GRAPH_PARTS_MAX);
	*in_all = 0;
	for (size_t i = 0; i < (size_t)k * k; i++)
		shared[i] = 0;
	for (uint32_t x = 0; x < n_ent; x++) {
		for (uint32_t a = 0; a < k; a++)
			for (uint32_t b = 0; b < k && held[x] >> a & 1; b++)
				shared[a * k + b] += (uint32_t)(held[x] >> b & 1);
		*in_all += held[x] == ~UINT64_C(0) >> (64 - k);
	}
	free(held);
}
