/* ranks/portions.h - which triples each rank trains in each step.
 *
 * Triples between two partitions are trained where these meet.  A partition's own can be trained in
 * any step: they are in pieces, each of which goes where most is missing to what the busiest rank
 * has, since all wait for that one.  FB15k-237 by four ranks: the busiest ranks of an epoch's steps
 * have 1.02 times the mean; with all own triples in the first step 1.09. */
#ifndef RANKS_PORTIONS_H
#define RANKS_PORTIONS_H

#include "disk/buckets.h"
#include "ranks/schedule.h"

enum { RANKS_PIECES = 16, RANKS_ALL_PIECES = (1 << RANKS_PIECES) - 1 };

struct ranks_portions {
	uint32_t ranks;
	const struct disk_buckets *buckets;
	uint16_t *own; /* by step and partition: a bit for each piece */
};

/* The buckets stay the caller's, and in their place. */
void ranks_portions_init(struct ranks_portions *p, uint32_t ranks,
			 const struct disk_buckets *buckets);
void ranks_portions_release(struct ranks_portions *p);

/* Where the piece of that number begins, of a bucket of n triples. */
uint64_t ranks_piece_start(uint64_t n, uint32_t piece);
/* Of the bucket (head, tail), two partitions of one rank after so many moves: pieces as bits. */
uint32_t ranks_portions_pieces(const struct ranks_portions *p, uint32_t head, uint32_t tail,
			       uint64_t moves);

struct ranks_extent {
	uint64_t most, all; /* triples of the rank that has most; of all ranks */
};
/* Of the step after so many moves. */
struct ranks_extent ranks_portions_extent(const struct ranks_portions *p, uint64_t moves);

#endif
