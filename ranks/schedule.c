#include "ranks/schedule.h"

#include <assert.h>
#include <stdbool.h>

uint32_t ranks_steps(uint32_t ranks)
{
	assert(ranks >= 2 && ranks <= RANKS_MAX);
	return 2 * ranks - 1;
}

/* The last rank keeps in its slot what goes from its upper place to its lower one. */
static bool is_upper(uint32_t ranks, uint32_t rank, uint32_t slot, uint64_t moves)
{
	bool changed = rank == ranks - 1 && moves % 2 == 1;

	return (slot == 0) != changed;
}

uint32_t ranks_partition(uint32_t ranks, uint32_t rank, uint32_t slot, uint64_t moves)
{
	uint32_t others = ranks_steps(ranks), back = (uint32_t)(moves % others);
	uint32_t place = is_upper(ranks, rank, slot, moves) ? rank : 2 * ranks - 1 - rank;

	assert(rank < ranks && slot < RANKS_SLOTS);
	return place == 0 ? 0 : (place - 1 + others - back) % others + 1;
}

size_t ranks_moves(uint32_t ranks, uint32_t rank, uint64_t moves,
		   struct ranks_move out[RANKS_SLOTS])
{
	uint32_t upper = is_upper(ranks, rank, 0, moves) ? 0 : 1, lower = 1 - upper;

	assert(rank < ranks);
	if (rank == 0) {
		out[0] = (struct ranks_move){ lower, 1, 1, RANKS_UP, RANKS_DOWN };
		return 1;
	}
	if (rank == ranks - 1) {
		out[0] = (struct ranks_move){ lower, rank - 1, rank - 1, RANKS_DOWN, RANKS_UP };
		return 1;
	}
	out[0] = (struct ranks_move){ upper, rank + 1, rank - 1, RANKS_UP, RANKS_UP };
	out[1] = (struct ranks_move){ lower, rank - 1, rank + 1, RANKS_DOWN, RANKS_DOWN };
	return 2;
}

/* After each batch; where there are more relations than a batch has triples, after as many batches
 * as have as many, so that adding up stays cheaper than training. */
uint64_t ranks_meetings(uint64_t triples, uint32_t batch, uint32_t relations)
{
	uint64_t apart = (uint64_t)batch * (1 + (relations - 1) / batch);

	assert(batch > 0 && relations > 0);
	return (triples + apart - 1) / apart;
}

uint32_t ranks_share(uint32_t ranks, uint32_t relations)
{
	return (relations + ranks - 1) / ranks;
}
