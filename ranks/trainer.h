/* ranks/trainer.h - training by several ranks, each of which owns two partitions of the entities.
 *
 * Rank 0 has the agent's folder and calls these functions; each is an order that all others follow
 * in ranks_work(), and fails for all if it fails for one.  One thread at a time uses a trainer.
 *
 *   new, then first() or load(), then epoch() as often as wanted
 *   save: flush(), then what put() gets into a file that is there whole or not at all, then saved()
 *
 * The same ranks with the same seed and threads have the same bits, and so does a run that loads
 * what was saved.  Partitions' files (disk/parts.h) are each rank's own work, so the folder is one
 * that all ranks see. */
#ifndef RANKS_TRAINER_H
#define RANKS_TRAINER_H

#include <stdatomic.h>

#include "base/err.h"
#include "disk/parts.h"
#include "kge/eval.h"
#include "kge/train.h"
#include "ranks/comm.h"

/* What is trained.  Nothing of it is kept but what the pointers of `config` and `shape` name. */
struct ranks_job {
	const struct kge_train_config *config; /* threads: of each rank */
	const struct kge_emb *shape;	       /* of the whole tables */
	const char *folder;		       /* an absolute path; made if need be */
	const struct graph *graph;	       /* train; valid, which is ranked */
	const struct kge_protocol *protocol;
	size_t limit; /* of valid's triples; 0: all */
};

struct ranks_trainer;

/* ERR_USAGE: settings that ranks do not train by, too few entities.  Of the job it looks at config,
 * shape and folder alone, and changes nothing. */
MUST_CHECK int ranks_trainer_check(const struct ranks_comm *comm, const struct ranks_job *job,
				   struct err *e);
/* ERR_USAGE: the same, and a folder that not all see. */
MUST_CHECK int ranks_trainer_new(struct ranks_trainer **out, struct ranks_comm *comm,
				 const struct ranks_job *job, struct err *e);
void ranks_trainer_free(struct ranks_trainer *t);
/* First rows: those of kge_emb_new_dims() by this generator, or (from not NULL) these tables'. */
MUST_CHECK int ranks_trainer_first(struct ranks_trainer *t, struct rng *r,
				   const struct kge_emb *from, struct err *e);
/* Called between two steps, with everything in a state that can be saved. */
typedef int ranks_pause_fn(void *ctx, struct err *e);
/* ERR_CANCELED between two steps, what pause() says. */
MUST_CHECK int ranks_trainer_epoch(struct ranks_trainer *t, double *loss, const atomic_bool *cancel,
				   ranks_pause_fn *pause, void *ctx, struct err *e);
/* Between two epochs: valid, by the tables as they are; each rank counts its own candidates. */
MUST_CHECK int ranks_trainer_rank(struct ranks_trainer *t, struct kge_metrics *out, struct err *e);
MUST_CHECK int ranks_trainer_keep_best(struct ranks_trainer *t, struct err *e);

MUST_CHECK int ranks_trainer_flush(struct ranks_trainer *t, struct err *e);
void ranks_trainer_save(struct ranks_trainer *t, void (*put)(void *to, const void *bytes, size_t n),
			void *to);
void ranks_trainer_saved(struct ranks_trainer *t); /* older files go */
/* ERR_INPUT: not of such a trainer, or its files are not there. */
MUST_CHECK int ranks_trainer_load(struct ranks_trainer *t, const uint8_t *bytes, size_t n,
				  struct err *e);
/* What keep_best() kept last; the trainer's. */
struct disk_best ranks_trainer_best(const struct ranks_trainer *t);

/* Bytes that a rank sent since new(), and those that schedule and buckets say of these steps. */
struct ranks_figures {
	uint64_t moved, moved_expected;	    /* partitions */
	uint64_t related, related_expected; /* relations */
};
struct ranks_figures ranks_trainer_figures(const struct ranks_trainer *t, uint32_t rank);
uint64_t ranks_trainer_steps(const struct ranks_trainer *t); /* since new() */

/* Of ranks above 0: follows orders until ranks_dismiss(). */
void ranks_work(struct ranks_comm *comm);
void ranks_dismiss(struct ranks_comm *comm);

#endif
