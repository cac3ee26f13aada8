/* kge/mutual.h - two tables of one agent that teach each other (methods 4.1; FedS VI-A).
 *
 * FedLU: a local table, which stays here, and the global avatar, which aggregation overwrites.
 * Batch by batch the local one learns with the avatar as its teacher, then the avatar
 * with the local one, from the same negatives.  Relations are shared: the local table
 * moves them, the avatar reads them.
 *
 * FedE-KD: a narrow table, which travels, and a wide one; each has relations of its own.
 *
 * Teaching begins when its weight is set: FedLU's code waits for 20 rounds. */
#ifndef KGE_MUTUAL_H
#define KGE_MUTUAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "graph/graph.h"
#include "kge/model.h"
#include "kge/terms.h"
#include "kge/train.h"

struct kge_mutual;

/* Borrows graph and tables until freed; global may be NULL: then the local table learns alone.  The
 * tables are of one model.  Relations that are not own_relations are copied to the global table
 * after each epoch; both tables may be changed by the caller between epochs, those
 * relations in the local one. */
struct kge_mutual *kge_mutual_new(const struct kge_train_config *c, const struct graph *g,
				  struct kge_emb *local, struct kge_emb *global,
				  bool own_relations);
void kge_mutual_free(struct kge_mutual *m);
/* The terms of the local table and of the global one from the next epoch on; teachers need not be
 * set: each is the other's.  NULL: no teaching. */
void kge_mutual_set_terms(struct kge_mutual *m, const struct kge_terms *local,
			  const struct kge_terms *global);
/* As kge_trainer_only(), kge_trainer_seek(), kge_trainer_epoch(); loss is of the local table
 * and of the global one. */
void kge_mutual_only(struct kge_mutual *m, const uint32_t *positions, size_t n);
/* Forget the moments of the global table, and of the local one if it is so. */
void kge_mutual_reset_optimizer(struct kge_mutual *m, bool local_too);
/* The local trainer: those of kge_trainer_save() and kge_trainer_load(), the latter before any
 * epoch; the global table has then come as far. */
void kge_mutual_save_local(const struct kge_mutual *m, struct buf *out);
int kge_mutual_load_local(struct kge_mutual *m, const uint8_t *bytes, size_t n, struct err *e);
void kge_mutual_seek(struct kge_mutual *m, uint64_t epochs);
int kge_mutual_epoch(struct kge_mutual *m, double loss[2], const atomic_bool *cancel);

#endif
