/* graph/index.c - the true answers of every query, as compressed sparse rows.
 *
 * Two directions with one shape: the distinct pairs (known, rel) in ascending
 * order, an offset a pair, and all answers in one array.  A pair is found
 * through a hash table of pair numbers. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "graph/graph.h"

struct rows {
	uint64_t *pairs; /* known << 32 | rel, ascending */
	uint32_t *start; /* n_pairs + 1 */
	uint32_t *answers;
	uint32_t *slots; /* pair number + 1; 0: free */
	uint32_t n_pairs, mask;
};

struct graph_index {
	struct rows tails, heads;
};

struct entry {
	uint32_t known, rel, answer;
};

static uint64_t pair_of(uint32_t known, uint32_t rel)
{
	return (uint64_t)known << 32 | rel;
}

static uint32_t pair_hash(uint64_t pair)
{
	pair *= 0x9e3779b97f4a7c15u; /* 2^64 / golden ratio: the high bits are well mixed */
	return (uint32_t)(pair >> 32);
}

static uint32_t column(const struct entry *e, int which)
{
	return which == 0 ? e->known : which == 1 ? e->rel : e->answer;
}

/* Stable counting sort by one column of ids below `ids`. */
static void sort_by(const struct entry *from, struct entry *to, size_t n, int which, uint32_t ids)
{
	size_t *at = mem_array((size_t)ids + 1, sizeof *at);

	assert(which >= 0 && which <= 2);
	for (size_t i = 0; i < n; i++)
		at[column(&from[i], which) + 1]++;
	for (uint32_t id = 0; id < ids; id++)
		at[id + 1] += at[id];
	for (size_t i = 0; i < n; i++)
		to[at[column(&from[i], which)]++] = from[i];
	free(at);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->known != y->known)
		return x->known < y->known ? -1 : 1;
	if (x->rel != y->rel)
		return x->rel < y->rel ? -1 : 1;
	return x->answer < y->answer ? -1 : x->answer > y->answer;
}

/* Counting takes memory for every id: not for a few entries of a large graph. */
static struct entry *sort_entries(struct entry *list, size_t n, uint32_t n_ent, uint32_t n_rel)
{
	struct entry *spare;

	if (n < n_ent) {
		qsort(list, n, sizeof *list, compare_entries);
		return list;
	}
	spare = mem_resize(NULL, n + 1, sizeof *spare);
	sort_by(list, spare, n, 2, n_ent);
	sort_by(spare, list, n, 1, n_rel);
	sort_by(list, spare, n, 0, n_ent);
	free(list);
	return spare;
}

static void hash_pairs(struct rows *r)
{
	uint32_t slots = 16;

	assert(r->n_pairs < UINT32_MAX / 4);
	while (slots < r->n_pairs * 2u)
		slots *= 2;
	r->mask = slots - 1;
	r->slots = mem_array(slots, sizeof *r->slots);
	for (uint32_t p = 0; p < r->n_pairs; p++) {
		uint32_t at = pair_hash(r->pairs[p]) & r->mask;

		while (r->slots[at] != 0)
			at = (at + 1) & r->mask;
		r->slots[at] = p + 1;
	}
}

/* Takes the entries in any order, and frees them. */
static void rows_build(struct rows *r, struct entry *list, size_t n, uint32_t n_ent, uint32_t n_rel)
{
	uint32_t kept = 0;

	list = sort_entries(list, n, n_ent, n_rel);
	r->pairs = mem_resize(NULL, n + 1, sizeof *r->pairs);
	r->start = mem_resize(NULL, n + 1, sizeof *r->start);
	r->answers = mem_resize(NULL, n + 1, sizeof *r->answers);
	for (size_t i = 0; i < n; i++) {
		uint64_t pair = pair_of(list[i].known, list[i].rel);

		if (r->n_pairs == 0 || r->pairs[r->n_pairs - 1] != pair) {
			r->pairs[r->n_pairs] = pair;
			r->start[r->n_pairs++] = kept;
		} else if (r->answers[kept - 1] == list[i].answer) {
			continue;
		}
		r->answers[kept++] = list[i].answer;
	}
	r->start[r->n_pairs] = kept;
	free(list);
	r->pairs = mem_resize(r->pairs, (size_t)r->n_pairs + 1, sizeof *r->pairs);
	r->start = mem_resize(r->start, (size_t)r->n_pairs + 1, sizeof *r->start);
	hash_pairs(r);
}

static void rows_free(struct rows *r)
{
	free(r->pairs);
	free(r->start);
	free(r->answers);
	free(r->slots);
}

/* ---- which triples ---- */

static uint32_t known_of(struct graph_triple t, enum graph_side side)
{
	return side == GRAPH_TAIL ? t.head : t.tail;
}

/* The pairs that queries of one side ask about, in a hash table; slots NULL: all are. */
struct wanted {
	uint64_t *slots; /* pair + 1; 0: free (no pair is the largest) */
	size_t mask;
};

static size_t wanted_slot(const struct wanted *w, uint64_t pair)
{
	size_t at = pair_hash(pair) & w->mask;

	while (w->slots[at] != 0 && w->slots[at] != pair + 1)
		at = (at + 1) & w->mask;
	return at;
}

static void want(struct wanted *w, const struct graph_triple *queries, size_t n,
		 enum graph_side side)
{
	*w = (struct wanted){ NULL, 15 };
	while (w->mask < 2 * n)
		w->mask = w->mask * 2 + 1;
	w->slots = mem_array(w->mask + 1, sizeof *w->slots);
	for (size_t i = 0; i < n; i++) {
		uint64_t pair = pair_of(known_of(queries[i], side), queries[i].rel);

		w->slots[wanted_slot(w, pair)] = pair + 1;
	}
}

/* The entries of one side that are wanted, into list if that is not NULL; how many. */
static size_t list_entries(const struct graph *g, unsigned splits, enum graph_side side,
			   const struct wanted *w, struct entry *list)
{
	size_t n = 0;

	for (int s = 0; s < GRAPH_SPLITS; s++)
		for (size_t i = 0; splits & 1u << s && i < g->split[s].n; i++) {
			struct graph_triple t = g->split[s].at[i];
			uint32_t known = known_of(t, side);

			if (w->slots != NULL &&
			    w->slots[wanted_slot(w, pair_of(known, t.rel))] == 0)
				continue;
			if (list != NULL)
				list[n] = (struct entry){ known, t.rel, known_of(t, !side) };
			n++;
		}
	return n;
}

static void rows_of_side(struct rows *r, const struct graph *g, unsigned splits,
			 enum graph_side side, const struct wanted *w)
{
	size_t n = list_entries(g, splits, side, w, NULL);
	struct entry *list = mem_resize(NULL, n + 1, sizeof *list);

	list_entries(g, splits, side, w, list);
	rows_build(r, list, n, graph_vocab_count(g->entities), graph_vocab_count(g->relations));
}

struct graph_index *graph_index_new(const struct graph *g, unsigned splits)
{
	struct graph_index *x = mem_array(1, sizeof *x);
	const struct wanted all = { NULL, 0 };

	rows_of_side(&x->tails, g, splits, GRAPH_TAIL, &all);
	rows_of_side(&x->heads, g, splits, GRAPH_HEAD, &all);
	return x;
}

struct graph_index *graph_index_new_for(const struct graph *g, unsigned splits,
					const struct graph_triple *queries, size_t n)
{
	struct graph_index *x = mem_array(1, sizeof *x);
	struct wanted w;

	for (int side = 0; side < 2; side++) {
		want(&w, queries, n, (enum graph_side)side);
		rows_of_side(side == GRAPH_TAIL ? &x->tails : &x->heads, g, splits,
			     (enum graph_side)side, &w);
		free(w.slots);
	}
	return x;
}

void graph_index_free(struct graph_index *x)
{
	if (x == NULL)
		return;
	rows_free(&x->tails);
	rows_free(&x->heads);
	free(x);
}

static const uint32_t *rows_find(const struct rows *r, uint32_t known, uint32_t rel, size_t *n)
{
	uint64_t pair = pair_of(known, rel);
	uint32_t at = pair_hash(pair) & r->mask;

	for (; r->slots[at] != 0; at = (at + 1) & r->mask) {
		uint32_t p = r->slots[at] - 1;

		if (r->pairs[p] == pair) {
			*n = r->start[p + 1] - r->start[p];
			return r->answers + r->start[p];
		}
	}
	*n = 0;
	return r->answers;
}

const uint32_t *graph_index_tails(const struct graph_index *x, uint32_t head, uint32_t rel,
				  size_t *n)
{
	return rows_find(&x->tails, head, rel, n);
}

const uint32_t *graph_index_heads(const struct graph_index *x, uint32_t rel, uint32_t tail,
				  size_t *n)
{
	return rows_find(&x->heads, tail, rel, n);
}

bool graph_index_has(const struct graph_index *x, struct graph_triple t)
{
	size_t n;
	const uint32_t *tails = graph_index_tails(x, t.head, t.rel, &n);

	while (n > 0) {
		size_t half = n / 2;

		if (tails[half] == t.tail)
			return true;
		if (tails[half] < t.tail) {
			tails += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return false;
}
