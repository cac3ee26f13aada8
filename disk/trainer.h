/* disk/trainer.h - training past memory: partitions of entities take turns in it.
 *
 * One thread at a time uses a trainer; a thread of its own writes the partition that left, reads
 * the one that comes and sorts the next triples while a portion trains.
 *
 *   new, then first() or load(), then epoch() as often as wanted
 *   save: flush(), then what put() gets into a file that is there whole or not at all, then saved()
 *
 * A run that loads what was saved goes on with the same bits. */
#ifndef DISK_TRAINER_H
#define DISK_TRAINER_H

#include <stdatomic.h>

#include "base/err.h"
#include "disk/parts.h"
#include "disk/plan.h"
#include "kge/model.h"
#include "kge/ranking.h"
#include "kge/train.h"

struct disk_trainer;

/* shape: of the whole tables.  The folder is made; its file of triples is written anew from train,
 * which may go then. */
MUST_CHECK int disk_trainer_new(struct disk_trainer **out, const struct kge_train_config *c,
				const struct kge_emb *shape, const struct disk_plan *plan,
				const char *folder, const struct graph_triples *train,
				struct err *e);
void disk_trainer_free(struct disk_trainer *t);
/* Removes what trainers leave in a folder, and the folder. */
void disk_trainer_clear(const char *folder);

/* First rows: those of kge_emb_new_dims() by this generator, or (from not NULL) these tables'. */
MUST_CHECK int disk_trainer_first(struct disk_trainer *t, struct rng *r, const struct kge_emb *from,
				  struct err *e);

/* Called between two portions, with everything in a state that can be saved. */
typedef int disk_pause_fn(void *ctx, struct err *e);
/* ERR_CANCELED at a batch's border, ERR_IO, what pause() says (which may be NULL).  Saved as it is
 * then and loaded, a trainer goes on with the rest of the epoch. */
MUST_CHECK int disk_trainer_epoch(struct disk_trainer *t, double *loss, const atomic_bool *cancel,
				  disk_pause_fn *pause, void *ctx, struct err *e);
/* Between two epochs: of the tables as they are. */
MUST_CHECK int disk_trainer_rank(struct disk_trainer *t, struct kge_ranking *r,
				 const atomic_bool *cancel, struct kge_metrics *out, struct err *e);
/* The tables as they are become the best ones. */
MUST_CHECK int disk_trainer_keep_best(struct disk_trainer *t, struct err *e);

MUST_CHECK int disk_trainer_flush(struct disk_trainer *t, struct err *e);
void disk_trainer_save(struct disk_trainer *t, void (*put)(void *to, const void *bytes, size_t n),
		       void *to);
void disk_trainer_saved(struct disk_trainer *t); /* older files go */
/* ERR_INPUT: not of such a trainer, or its files are not there. */
MUST_CHECK int disk_trainer_load(struct disk_trainer *t, const uint8_t *bytes, size_t n,
				 struct err *e);

/* What keep_best() kept last; the trainer's. */
struct disk_best disk_trainer_best(const struct disk_trainer *t);

struct disk_figures {
	uint64_t swaps; /* so far, and at best: those of the order in these epochs */
	uint64_t read_bytes, written_bytes;
};
struct disk_figures disk_trainer_figures(const struct disk_trainer *t);

#endif
