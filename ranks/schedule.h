/* ranks/schedule.h - who trains which pair of partitions when: a tournament.
 *
 * R ranks own 2R partitions, two each.  By the circle method (Kirkman 1847; Lucas 1883) partition 0
 * stays and all others go on by one place after each step, so that in 2R - 1 steps, an epoch, every
 * pair meets once, and in no step is a partition with two ranks.  Upper places are slots that take
 * from the rank before and give to the next one, lower places take and give the other way:
 *
 *   rank      0     1     2             0     1     2
 *   upper     0     1     2             0     5     1
 *   lower     5     4     3    then     4     3     2
 *
 * The last rank's upper partition becomes its lower one without moving in memory, so its slots
 * change their places. */
#ifndef RANKS_SCHEDULE_H
#define RANKS_SCHEDULE_H

#include <stddef.h>
#include <stdint.h>

enum { RANKS_MAX = 256, RANKS_SLOTS = 2 };

/* Steps of an epoch of 2 <= ranks <= RANKS_MAX. */
uint32_t ranks_steps(uint32_t ranks);
/* The partition in a rank's slot after so many moves, one after each step. */
uint32_t ranks_partition(uint32_t ranks, uint32_t rank, uint32_t slot, uint64_t moves);

enum ranks_way { RANKS_UP, RANKS_DOWN }; /* to the next rank, to the one before */

/* What a slot gives and takes, at the same time. */
struct ranks_move {
	uint32_t slot, to, from;
	enum ranks_way gives, takes;
};
/* The moves of a rank after so many: 1 or 2 of them. */
size_t ranks_moves(uint32_t ranks, uint32_t rank, uint64_t moves,
		   struct ranks_move out[RANKS_SLOTS]);

/* How often relations are added up in a step whose largest portion has so many triples. */
uint64_t ranks_meetings(uint64_t triples, uint32_t batch, uint32_t relations);
/* Relation rows that one rank adds up for all: the last ranks may have fewer. */
uint32_t ranks_share(uint32_t ranks, uint32_t relations);

#endif
