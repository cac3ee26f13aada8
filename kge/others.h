/* kge/others.h - training against all entities (1-vs-all) by several processes.
 *
 * Each process has whole tables and all triples, and takes the same batches.  The lanes of a batch
 * (kge/batch_internal.h) are dealt out: a process scores and steps the entities of its own ones.
 * What goes by query, and steps of relations, all compute alike, from the same bits.  They exchange
 *
 *   before a batch   the rows that its queries know
 *   after scores     each lane's part of the softmax of each query
 *   after rows       gradients of queries, summed over all, and what each positive adds
 *   after an epoch   rows, moments and losses: all have all of it then
 *
 * With one thread each, R processes have the bits of R threads of one process, but for what each
 * positive adds (kge/each.h); that, and lanes where a process has more threads, are added up in
 * another order. */
#ifndef KGE_OTHERS_H
#define KGE_OTHERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kge/train.h"

/* All processes call the same functions in the same order; nothing fails. */
struct kge_others {
	uint32_t rank, ranks;
	void *ctx;
	/* n bytes of each, in the order of ranks. */
	void (*collect)(void *ctx, const void *mine, size_t n, void *all);
	/* In place, the same bits everywhere: sums, in the order of ranks; bits that any has. */
	void (*sum)(void *ctx, float *x, size_t n);
	void (*unite)(void *ctx, float *x, size_t n);
};

/* ERR_USAGE: settings or a model that processes do not train together by.  c->threads: of all of
 * them. */
MUST_CHECK int kge_others_check(const struct kge_train_config *c, const struct kge_model *m,
				struct err *e);
/* kge_trainer_new() for one of several.  c->threads: of all of them, as many of each.  others stays
 * where it is.  An epoch is canceled for all if it is for one. */
struct kge_trainer *kge_trainer_new_among(const struct kge_train_config *c, const struct graph *g,
					  struct kge_emb *emb, const struct kge_others *others);

#endif
