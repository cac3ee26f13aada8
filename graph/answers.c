#include "graph/answers.h"

#include <assert.h>
#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

/* One side: where the triples of a known entity stand, and their other two ids. */
struct side {
	uint32_t *start; /* by known entity, and one more */
	uint8_t *packed; /* key of each place; 8 bytes more than they need */
	unsigned bits, answer_bits;
	uint64_t *of; /* by triple, where they are few: from | n << 32, or its only answer; else
			 NULL */
};

/* Up to so many triples each has its run written down: 16 bytes for no search. */
enum { FEW_TRIPLES = 1 << 19 };

struct graph_answers {
	struct graph_triples t;
	struct side side[2];
};

static inline uint32_t known_of(const struct graph_triple *x, enum graph_side s)
{
	return s == GRAPH_TAIL ? x->head : x->tail;
}

static inline uint64_t key_of(const struct side *x, const struct graph_triple *t, enum graph_side s)
{
	return (uint64_t)t->rel << x->answer_bits | (s == GRAPH_TAIL ? t->tail : t->head);
}

static uint64_t mask_of(unsigned bits)
{
	return bits < 64 ? (UINT64_C(1) << bits) - 1 : UINT64_MAX;
}

static inline uint64_t key_at(const struct side *x, size_t position)
{
	return graph_packed_at(x->packed, position, x->bits) & mask_of(x->bits);
}

/* ---- searching ---- */

/* The first place of from..end with at least this key. */
static inline size_t position_of(const struct side *x, size_t from, size_t end, uint64_t key)
{
	return graph_packed_position(x->packed, x->bits, mask_of(x->bits), from, end, key);
}

/* The same by steps that double: most runs are short. */
static inline size_t position_near(const struct side *x, size_t from, size_t end, uint64_t key)
{
	size_t step = 1;

	while (from + step < end && key_at(x, from + step) < key) {
		from += step;
		step *= 2;
	}
	return position_of(x, from, from + step < end ? from + step : end, key);
}

static struct graph_ids search(const struct side *x, const struct graph_triple *t,
			       enum graph_side s)
{
	uint32_t known = known_of(t, s);
	uint64_t first = (uint64_t)t->rel << x->answer_bits;
	size_t end = x->start[known + 1], from = position_of(x, x->start[known], end, first);
	size_t to = position_near(x, from, end, first + (UINT64_C(1) << x->answer_bits));

	return (struct graph_ids){ x->packed, from, to - from, x->bits, mask_of(x->answer_bits) };
}

/* ---- making ---- */

/* Each place is written once, where zeros are. */
static void put(struct side *x, size_t position, uint64_t key)
{
	size_t at = position * x->bits;
	uint64_t word;

	memcpy(&word, x->packed + at / 8, sizeof(word));
	word = htole64(le64toh(word) | key << at % 8);
	memcpy(x->packed + at / 8, &word, sizeof(word));
}

static void clear(struct side *x, size_t position)
{
	size_t at = position * x->bits;
	uint64_t word;

	memcpy(&word, x->packed + at / 8, sizeof(word));
	word = htole64(le64toh(word) & ~(mask_of(x->bits) << at % 8));
	memcpy(x->packed + at / 8, &word, sizeof(word));
}

static size_t bytes_of(const struct side *x, size_t n)
{
	return n * x->bits / 8 + sizeof(uint64_t) + 1;
}

static unsigned bits_for(uint32_t most)
{
	unsigned bits = 1;

	while (bits < 32 && most >> bits != 0)
		bits++;
	return bits;
}

/* Counts become beginnings; each place is filled from the end of its run. */
static void scatter(struct side *x, const struct graph_triples *t, enum graph_side s,
		    size_t n_known)
{
	for (size_t i = 0; i < t->n; i++)
		x->start[known_of(&t->at[i], s)]++;
	for (size_t e = 1; e <= n_known; e++)
		x->start[e] += x->start[e - 1];
	for (size_t i = 0; i < t->n; i++)
		put(x, --x->start[known_of(&t->at[i], s)], key_of(x, &t->at[i], s));
}

static int by_key(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return (x > y) - (x < y);
}

/* Most entities have a few triples. */
static void sort_keys(uint64_t *keys, size_t n)
{
	enum { FEW = 24 };

	if (n > FEW)
		qsort(keys, n, sizeof(*keys), by_key);
	for (size_t i = 1; i < n && n <= FEW; i++) {
		uint64_t key = keys[i];
		size_t k = i;

		for (; k > 0 && keys[k - 1] > key; k--)
			keys[k] = keys[k - 1];
		keys[k] = key;
	}
}

static size_t longest_run(const struct side *x, size_t n_known)
{
	size_t most = 0;

	for (size_t e = 0; e < n_known; e++)
		if (x->start[e + 1] - x->start[e] > most)
			most = x->start[e + 1] - x->start[e];
	return most;
}

/* Every run in order and without repeats, moved up to where the one before it ends. */
static void sort_runs(struct side *x, size_t n_known)
{
	uint64_t *keys = mem_array(longest_run(x, n_known), sizeof(*keys));
	uint32_t kept = 0;

	for (size_t e = 0; e < n_known; e++) {
		uint32_t from = x->start[e], n = x->start[e + 1] - from;

		for (uint32_t i = 0; i < n; i++) {
			keys[i] = key_at(x, from + i);
			clear(x, from + i);
		}
		sort_keys(keys, n);
		x->start[e] = kept;
		for (uint32_t i = 0; i < n; i++)
			if (i == 0 || keys[i] != keys[i - 1])
				put(x, kept++, keys[i]);
	}
	x->start[n_known] = kept;
	x->packed = mem_resize(x->packed, bytes_of(x, kept), 1);
	free(keys);
}

static void write_runs(struct side *x, const struct graph_triples *t, enum graph_side s)
{
	if (t->n > FEW_TRIPLES)
		return;
	x->of = mem_array(t->n, sizeof(*x->of));
	for (size_t i = 0; i < t->n; i++) {
		struct graph_ids run = search(x, &t->at[i], s);

		x->of[i] = htole64(run.n == 1 ? graph_ids_at(&run, 0)
					      : run.from | (uint64_t)run.n << 32);
	}
}

static void side_init(struct side *x, const struct graph_triples *t, enum graph_side s)
{
	uint32_t most_rel = 0, most_entity = 0, most_answer = 0;

	for (size_t i = 0; i < t->n; i++) {
		uint32_t known = known_of(&t->at[i], s), answer = known_of(&t->at[i], !s);

		most_rel = t->at[i].rel > most_rel ? t->at[i].rel : most_rel;
		most_entity = known > most_entity ? known : most_entity;
		most_answer = answer > most_answer ? answer : most_answer;
	}
	x->answer_bits = bits_for(most_answer);
	x->bits = x->answer_bits + bits_for(most_rel);
	if (x->bits > 57) /* 7 more for where its byte begins */
		x->bits = 64;
	x->start = mem_array((size_t)most_entity + 2, sizeof(*x->start));
	x->packed = mem_array(bytes_of(x, t->n), 1);
	scatter(x, t, s, (size_t)most_entity + 1);
	sort_runs(x, (size_t)most_entity + 1);
	write_runs(x, t, s);
}

struct graph_answers *graph_answers_new(const struct graph_triples *t)
{
	struct graph_answers *a = mem_array(1, sizeof(*a));

	a->t = *t;
	side_init(&a->side[GRAPH_TAIL], t, GRAPH_TAIL);
	side_init(&a->side[GRAPH_HEAD], t, GRAPH_HEAD);
	return a;
}

void graph_answers_free(struct graph_answers *a)
{
	if (a == NULL)
		return;
	for (int s = 0; s < 2; s++) {
		free(a->side[s].start);
		free(a->side[s].packed);
		free(a->side[s].of);
	}
	free(a);
}

/* ---- asking ---- */

struct graph_ids graph_answers_of(const struct graph_answers *a, size_t triple, enum graph_side s)
{
	const struct side *x = &a->side[s];
	uint64_t run;

	if (x->of == NULL)
		return search(x, &a->t.at[triple], s);
	run = le64toh(x->of[triple]);
	if (run >> 32 == 0)
		return (struct graph_ids){ (const uint8_t *)&x->of[triple], 0, 1, 64, UINT32_MAX };
	return (struct graph_ids){ x->packed, (uint32_t)run, run >> 32, x->bits,
				   mask_of(x->answer_bits) };
}

void graph_answers_prefetch(const struct graph_answers *a, size_t triple, enum graph_side s)
{
	const struct side *x = &a->side[s];

	if (x->of != NULL)
		__builtin_prefetch(&x->of[triple]);
	else
		__builtin_prefetch(&x->start[known_of(&a->t.at[triple], s)]);
}

void graph_answers_prefetch_run(const struct graph_answers *a, size_t triple, enum graph_side s)
{
	const struct side *x = &a->side[s];
	size_t position;

	if (x->of != NULL) {
		uint64_t run = le64toh(x->of[triple]);

		if (run >> 32 == 0)
			return;
		position = (uint32_t)run;
	} else {
		uint32_t known = known_of(&a->t.at[triple], s);

		position = ((size_t)x->start[known] + x->start[known + 1]) / 2;
	}
	__builtin_prefetch(x->packed + position * x->bits / 8);
}

/* The part of all answers of x's query that has x's own. */
static struct graph_ids answers_in_part(struct graph_ids all, const struct graph_triple *x,
					enum graph_side s, size_t most)
{
	size_t begin;

	if (most == 0 || all.n <= most)
		return all;
	begin = graph_ids_position(&all, 0, s == GRAPH_TAIL ? x->tail : x->head) / most * most;
	assert(begin < all.n);
	all.from += begin;
	all.n = all.n - begin < most ? all.n - begin : most;
	return all;
}

struct graph_ids graph_answers_part(const struct graph_answers *a, size_t triple, enum graph_side s,
				    size_t most)
{
	return answers_in_part(graph_answers_of(a, triple, s), &a->t.at[triple], s, most);
}

size_t graph_answers_queries(const struct graph_answers *a, enum graph_side s, size_t most,
			     uint32_t *out)
{
	/* by where their answers begin */
	bool *seen = mem_array(a->t.n, sizeof(*seen));
	size_t n = 0;

	for (size_t i = 0; i < a->t.n; i++) {
		const struct graph_triple *x = &a->t.at[i];
		size_t from = answers_in_part(search(&a->side[s], x, s), x, s, most).from;

		if (!seen[from])
			out[n++] = (uint32_t)i << 1 | (uint32_t)s;
		seen[from] = true;
	}
	free(seen);
	return n;
}

size_t graph_answers_count(const struct graph_answers *a, uint32_t query, size_t most)
{
	return graph_answers_part(a, query >> 1, (enum graph_side)(query & 1), most).n;
}
