/* kge/race_internal.h - an epoch by threads that step the shared rows without locks.
 *
 * Each thread takes the next few positives of the shuffled epoch, draws their negatives,
 * scores them with the rows as they are, and where the loss has a slope steps
 * those rows at once (Recht, Ré, Wright and Niu 2011, "Hogwild!").  There is no batch:
 * a positive is a step of its own, that of kge/batch_internal.h with batch 1, so `lr` is
 * that of one positive.  But a row that it meets twice, drawn twice or known and drawn, or
 * asked from both sides, steps each time, where a batch would step once by the sum.  A run of SGD
 * over batches of B with rate x moves rows about as far in an epoch as this with x / B.
 *
 * What it costs: two threads at one row may see half of each other's step, or
 * lose it.  Steps are small and rarely meet, so learning bears that, but which
 * of them meet is up to the machine: with one thread a run is deterministic, with more
 * it never gives the same bits twice.  The draws are the same in any case:
 * they follow from seed, epoch and the positive's place in it. */
#ifndef KGE_RACE_INTERNAL_H
#define KGE_RACE_INTERNAL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "kge/batch_internal.h"

struct kge_racer; /* one thread's queries and sums */

struct kge_race {
	const struct kge_batch *b; /* config, tables and order are used, its own memory is not */
	struct kge_racer *racers;
	atomic_size_t next; /* position in the epoch that nobody has taken */
	atomic_bool canceled;
};

/* Borrows b until released; racers for b->c->threads. */
void kge_race_init(struct kge_race *r, const struct kge_batch *b);
void kge_race_release(struct kge_race *r);
/* Before an epoch, or the rest of one from that position on; turns and steps are the positives
 * before the epoch (the second: since the moments were cleared). */
void kge_race_begin(struct kge_race *r, size_t from, uint64_t turns, uint64_t steps);
/* Thread k's part of an epoch; *cancel (may be NULL) set to true ends it early. */
void kge_race_run(struct kge_race *r, size_t k, const atomic_bool *cancel);
/* When all are back: what stands before this position was done, and nothing else. */
size_t kge_race_at(const struct kge_race *r);
/* Each racer's sum over its positives; kge_race_begin() makes them 0. */
void kge_race_losses(const struct kge_race *r, double *loss);
void kge_race_set_losses(struct kge_race *r, const double *loss);
double kge_race_loss_sum(const struct kge_race *r);

#endif
