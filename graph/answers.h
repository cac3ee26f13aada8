/* graph/answers.h - for each triple of a list and each side, all answers of its query in that list.
 *
 * A query of train must not draw its answers as false (methods 1.1).  The lists are kept small, for
 * they stand beside the tables during all of training: by known entity, the other two ids of its
 * triples as one number of as many bits as they need, sorted; so a query's answers are a run, found
 * by two searches among the triples of one entity.
 *
 *   start   [known]   u32: where its run begins
 *   bits    [place]   relation << b | answer, in bits of both together
 *
 * With 2^20 entities and 16 relations that is 3 bytes a triple and 4 an entity, for each side.
 * Where triples are few, the run of each is written down besides, 8 bytes for no search. */
#ifndef GRAPH_ANSWERS_H
#define GRAPH_ANSWERS_H

#include <endian.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "graph/graph.h"

/* Numbers of so many bits each, one after the other; a view, without ownership. */
struct graph_ids {
	const uint8_t *bytes; /* and 7 more than the last number needs */
	size_t from, n;	      /* the first of them, how many */
	unsigned bits;	      /* of a number with its padding: 1..57, or 64 */
	uint64_t mask;	      /* what of it is the id */
};

static inline uint64_t graph_packed_at(const uint8_t *bytes, size_t i, unsigned bits)
{
	size_t at = i * bits;
	uint64_t word;

	memcpy(&word, bytes + at / 8, sizeof(word));
	return le64toh(word) >> at % 8;
}

static inline uint32_t graph_ids_at(const struct graph_ids *x, size_t i)
{
	return (uint32_t)(graph_packed_at(x->bytes, x->from + i, x->bits) & x->mask);
}

/* In sorted numbers, of which what is under the mask counts: the first place of from..end with at
 * least `least`, or end. */
static inline size_t graph_packed_position(const uint8_t *bytes, unsigned bits, uint64_t mask,
					   size_t from, size_t end, uint64_t least)
{
	while (from < end) {
		size_t half = from + (end - from) / 2;

		if ((graph_packed_at(bytes, half, bits) & mask) < least)
			from = half + 1;
		else
			end = half;
	}
	return from;
}

/* In sorted ids: the first place from `from` on with at least `id`, or x->n. */
static inline size_t graph_ids_position(const struct graph_ids *x, size_t from, uint32_t id)
{
	return graph_packed_position(x->bytes, x->bits, x->mask, x->from + from, x->from + x->n,
				     id) -
	       x->from;
}

struct graph_answers;

/* t->n < 2^32; borrows t->at until freed, not t. */
struct graph_answers *graph_answers_new(const struct graph_triples *t);
void graph_answers_free(struct graph_answers *a);
/* Sorted, without repeats, never empty. */
struct graph_ids graph_answers_of(const struct graph_answers *a, size_t triple, enum graph_side s);

/* Of the parts of at most `most` answers each that these are cut into, in their order, the one with
 * the triple's own answer; all of them with `most` 0.  Never empty. */
struct graph_ids graph_answers_part(const struct graph_answers *a, size_t triple, enum graph_side s,
				    size_t most);

/* The queries of one side, or their parts of at most `most` answers, each by the first triple that
 * asks it, as triple << 1 | side: at most as many as there are triples.  Returns how many. */
size_t graph_answers_queries(const struct graph_answers *a, enum graph_side s, size_t most,
			     uint32_t *out);

/* How many answers such a query, or such a part of it, has. */
size_t graph_answers_count(const struct graph_answers *a, uint32_t query, size_t most);

/* Ask for what graph_answers_of() reads first, and then, when that is there, for what it reads
 * next.
 */
void graph_answers_prefetch(const struct graph_answers *a, size_t triple, enum graph_side s);
void graph_answers_prefetch_run(const struct graph_answers *a, size_t triple, enum graph_side s);

#endif
