/* ranks/whole.h - training against all entities by several ranks.
 *
 * Each rank has whole tables, for a query's candidates are all entities, and every batch moves all
 * of them; what is dealt out is the work (kge/others.h).  Rank 0 trains as one process does: its
 * trainer has the lanes of all ranks, and all rows and moments after each epoch, so the store and
 * saved runs are rank 0's own.  The others follow it epoch by epoch, and rank with it.
 *
 *   new, then a trainer made with ranks_whole_others(); before each epoch of it begin() */
#ifndef RANKS_WHOLE_H
#define RANKS_WHOLE_H

#include "base/err.h"
#include "kge/others.h"
#include "ranks/comm.h"
#include "ranks/trainer.h"

struct ranks_whole;

/* c->threads: of each rank.  ERR_USAGE: settings, a model or a number of threads that ranks do not
 * train by. */
MUST_CHECK int ranks_whole_check(const struct ranks_comm *comm, const struct kge_train_config *c,
				 const struct kge_model *m, struct err *e);
/* Rank 0's.  Of the job, threads are those of each rank, train and valid are sent to all, and the
 * folder says nothing.  ERR_VERSION, ERR_USAGE: a rank is another program, or computes with other
 * instructions. */
MUST_CHECK int ranks_whole_new(struct ranks_whole **out, struct ranks_comm *comm,
			       const struct ranks_job *job, struct err *e);
/* The others are told that it is over. */
void ranks_whole_free(struct ranks_whole *w);
const struct kge_others *ranks_whole_others(const struct ranks_whole *w);
/* c with the threads of all ranks: for kge_trainer_new_among(). */
struct kge_train_config ranks_whole_config(const struct ranks_whole *w);
/* Before each kge_trainer_epoch() of this trainer, whose tables and state nobody else changes from
 * the first begin() or rank() on, which sends them. */
MUST_CHECK int ranks_whole_begin(struct ranks_whole *w, const struct kge_trainer *t,
				 const struct kge_emb *emb, struct err *e);

/* Between two epochs: valid, of which each rank counts its share of the candidates. */
MUST_CHECK int ranks_whole_rank(struct ranks_whole *w, const struct kge_trainer *t,
				const struct kge_emb *emb, struct kge_metrics *out, struct err *e);

/* A rank above 0, from new() to free(). */
void ranks_whole_work(struct ranks_comm *comm);

#endif
