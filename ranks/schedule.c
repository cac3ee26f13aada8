#include "ranks/schedule.h"

#include <assert.h>
#include <stdbool.h>

uint32_t ranks_steps(uint32_t ranks)
{
	assert(ranks >= 2 && ranks <= RANKS_MAX);
	return 2 * ranks - 1;
}

/* Of n = 2R - 1 partitions beside partition 0, those meet in a step whose numbers add up to the
 * same modulo n: middle + k and middle - k.  The middle one is with partition 0. */
uint32_t ranks_partition(uint32_t ranks, uint32_t rank, uint32_t slot, uint64_t moves)
{
	uint32_t n = ranks_steps(ranks), middle = (uint32_t)(moves % n * ranks % n);
	bool turned = moves % 2 == 1;
	uint32_t k = turned ? ranks - rank : rank;

	assert(rank < ranks && slot < RANKS_SLOTS);
	if (rank == 0)
		return slot == 0 ? 0 : 1 + middle;
	return 1 + (middle + ((slot == 0) != turned ? k : n - k)) % n;
}

struct ranks_move ranks_move_after(uint32_t ranks, uint32_t rank, uint64_t moves)
{
	uint32_t next = (rank + 1) % ranks, before = (rank + ranks - 1) % ranks;

	assert(rank < ranks);
	if (moves % 2 == 0)
		return (struct ranks_move){ .slot = 1, .to = next, .from = before };
	return (struct ranks_move){ .slot = rank == 0 ? 1 : 0, .to = before, .from = next };
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
