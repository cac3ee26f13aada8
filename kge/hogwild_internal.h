/* kge/hogwild_internal.h - an epoch by threads that step the shared rows without locks.
 *
 * Each thread takes the next few positives of the shuffled epoch, draws their negatives,
 * scores them with the rows as they are, and where the loss has a derivative steps
 * those rows at once (Recht, Ré, Wright and Niu 2011, "Hogwild!").  There is no batch:
 * a positive is a step of its own, that of kge/batch_internal.h with batch 1, so `lr` is
 * that of one positive.  But a row that it meets twice, drawn twice or known and drawn, or
 * asked from both sides, steps each time, where a batch would step once by the sum.  A run of SGD
 * over batches of B with rate x moves rows about as far in an epoch as this with x / B.
 *
 * The cost: two threads at one row may see half of each other's step, or lose it.  Steps are small
 * and rarely meet, so learning bears that, but which of them meet is up to the machine: with one
 * thread a run is deterministic, with more it never gives the same bits twice.  The draws are the
 * same in any case: they follow from seed, epoch and the positive's position in it. */
#ifndef KGE_HOGWILD_INTERNAL_H
#define KGE_HOGWILD_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kge/batch_internal.h"

struct kge_hogwild_worker; /* one thread's queries and sums */

struct kge_hogwild {
	const struct kge_batch *b; /* config, tables and order are used, its own memory is not */
	struct kge_hogwild_worker *workers;
	atomic_size_t next; /* position in the epoch that nobody has taken */
	atomic_bool canceled;
};

/* Borrows b until released; workers for b->c->threads. */
void kge_hogwild_init(struct kge_hogwild *r, const struct kge_batch *b);
void kge_hogwild_release(struct kge_hogwild *r);
/* Before an epoch, or the rest of one from that position on; turns and steps are the positives
 * before the epoch (the second: since the moments were cleared). */
void kge_hogwild_begin(struct kge_hogwild *r, size_t from, uint64_t turns, uint64_t steps);
/* Thread k's part of an epoch; *cancel (may be NULL) set to true ends it early. */
void kge_hogwild_run(struct kge_hogwild *r, size_t k, const atomic_bool *cancel);
/* When all threads are back: the positives before this position were done, and no others. */
size_t kge_hogwild_at(const struct kge_hogwild *r);
/* Each worker's sum over its positives; kge_hogwild_begin() makes them 0. */
void kge_hogwild_losses(const struct kge_hogwild *r, double *loss);
void kge_hogwild_set_losses(struct kge_hogwild *r, const double *loss);
double kge_hogwild_loss_sum(const struct kge_hogwild *r);

#endif
