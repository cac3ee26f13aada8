/* ranks/relations.h - one set of relation rows and moments, which all ranks move.
 *
 * Between two meetings each rank moves its own copy.  At a meeting a row takes the steps that all
 * ranks made: the sum of the differences from what it was.  Adagrad's squares are sums, too; what
 * Adam and momentum keep are running means, and become the mean over the ranks that moved the row.
 * A row that one rank moved is that rank's, bit for bit.
 *
 * Each rank adds up its share of the rows for all, in the order of ranks: two exchanges, 2 (R - 1)
 * / R of the table each rank, and the same bits everywhere, whoever is late. */
#ifndef RANKS_RELATIONS_H
#define RANKS_RELATIONS_H

#include "kge/train.h"
#include "ranks/comm.h"

enum { RANKS_COPIES = 3 }; /* rows, first moments, second ones */

struct ranks_relations {
	struct ranks_comm *comm;
	enum kge_optimizer optimizer;
	uint32_t n, share;	 /* rows, of which each rank adds up so many */
	size_t floats;		 /* in a row */
	float *at[RANKS_COPIES]; /* the trainer's, `copies` of them; squares last */
	size_t copies;
	float *before;	       /* as they were after the last meeting: copy after copy */
	float *out, *in, *sum; /* out and in: rank after rank, of each copy after copy */
};

/* ERR_USAGE: more than a message can have. */
MUST_CHECK int ranks_relations_check(uint32_t ranks, uint32_t n, size_t floats, size_t copies,
				     struct err *e);
/* at: rows and moments, as all ranks have them now; NULL: no such moment. */
void ranks_relations_init(struct ranks_relations *r, struct ranks_comm *comm,
			  enum kge_optimizer optimizer, uint32_t n, size_t floats,
			  float *const at[RANKS_COPIES]);
void ranks_relations_release(struct ranks_relations *r);
/* They were changed alike everywhere: what comes is counted from here. */
void ranks_relations_start(struct ranks_relations *r);
void ranks_relations_meet(void *relations);
/* What a rank sends at a meeting. */
uint64_t ranks_relations_bytes(const struct ranks_relations *r);

#endif
