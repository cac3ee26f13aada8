/* ranks/schedule.h - who trains which pair of partitions when: a tournament on a ring.
 *
 * R ranks own 2R partitions, two each, and in 2R - 1 steps, an epoch, every pair meets once (the
 * circle method: Kirkman 1847; Lucas 1883).  Between two steps each rank keeps one partition and
 * gives the other one to a neighbour: after the first step to the next rank, what it then had is
 * kept, and the other goes to the rank before; and so on in turns.  Partition 0 stays with rank 0,
 * whose other one goes each time.
 *
 *   rank      0   1   2   3         0   1   2   3         0   1   2   3
 *   slot 0    0   2   3   4         0   2   3   4         0   3   4   5
 *   slot 1    1   7   6   5   then  5   1   7   6   then  2   1   7   6
 *
 * No other order moves less: of two steps' pairs none is the same, so each rank needs another
 * partition. */
#ifndef RANKS_SCHEDULE_H
#define RANKS_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

enum { RANKS_MAX = 256, RANKS_SLOTS = 2 };

/* Steps of an epoch of 2 <= ranks <= RANKS_MAX. */
uint32_t ranks_steps(uint32_t ranks);
/* The partition in a rank's slot after so many moves, one after each step. */
uint32_t ranks_partition(uint32_t ranks, uint32_t rank, uint32_t slot, uint64_t moves);

/* The slot that goes, to whom, and who fills it at the same time. */
struct ranks_move {
	uint32_t slot, to, from;
};
struct ranks_move ranks_move_after(uint32_t ranks, uint32_t rank, uint64_t moves);

/* How often relations are added up in a step whose largest portion has so many triples. */
uint64_t ranks_meetings(uint64_t triples, uint32_t batch, uint32_t relations);
/* Relation rows that one rank adds up for all: the last ranks may have fewer. */
uint32_t ranks_share(uint32_t ranks, uint32_t relations);

#endif
