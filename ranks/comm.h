/* ranks/comm.h - what ranks say to each other: the only place that knows MPI.
 *
 * All ranks call the same functions in the same order, from one thread.  A rank that is lost, or
 * that MPI cannot reach, ends the whole job (MPI's default), so nothing here fails.  Without MPI
 * (meson's option `mpi`) there is nobody else, and a start by mpirun is refused. */
#ifndef RANKS_COMM_H
#define RANKS_COMM_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "ranks/schedule.h"

struct ranks_comm {
	uint32_t rank, size;
	uint64_t moved, related; /* bytes that this rank sent: partitions, relations */
	float *room;

	/* A word of rank 0's for all; the others sleep until it comes. */
	uint32_t (*order)(struct ranks_comm *c, uint32_t word);
	/* n bytes of rank 0's. */
	void (*share)(struct ranks_comm *c, void *bytes, size_t n);
	/* Everybody's bytes, n of each, in the order of ranks. */
	void (*collect)(struct ranks_comm *c, const void *mine, size_t n, void *all);
	/* 0, or the failure of the first rank that has one, which *e says then everywhere. */
	int (*agree)(struct ranks_comm *c, int rc, struct err *e);

	/* n numbers of out for each rank; n of in from each.  Then everybody's n numbers.  Both
	 * count as relations. */
	void (*deal)(struct ranks_comm *c, const float *out, size_t n, float *in);
	void (*gather)(struct ranks_comm *c, const float *mine, size_t n, float *all);
	/* n floats of the slot that moves, given and taken in place. */
	void (*move)(struct ranks_comm *c, struct ranks_move move, float *at, size_t n);

	/* In place, over all ranks: sums; bits that any has. */
	void (*sum)(struct ranks_comm *c, uint32_t *at, size_t n);
	void (*unite)(struct ranks_comm *c, float *at, size_t n);
	void (*close)(struct ranks_comm *c);
};

/* *out NULL: this process is alone.  ERR_USAGE: more ranks than RANKS_MAX, or no MPI.  Ends with
 * close(). */
MUST_CHECK int ranks_comm_open(struct ranks_comm **out, struct err *e);

#endif
