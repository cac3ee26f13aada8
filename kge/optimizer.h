/* kge/optimizer.h - the state of one table's optimiser and a step on one row (methods 1.2).
 *
 * Adam row-sparse ("lazy"): a row that no batch touches keeps its moments as
 * they are; the bias correction goes by the number of batches so far, as in
 * PyTorch's SparseAdam.  Adam dense moves every row at every batch.  Momentum is
 * row-sparse too, and without damping: m = momentum m + g, w -= lr m. */
#ifndef KGE_OPTIMIZER_H
#define KGE_OPTIMIZER_H

#include <stddef.h>

#include "kge/kernel.h"
#include "kge/train.h"

struct kge_optimizer_table {
	float *m, *v; /* as long as the table; NULL where the optimiser has none */
	size_t rows, floats;
};

/* How many floats the optimiser keeps for one of a table: 0 to 2. */
size_t kge_optimizer_floats(enum kge_optimizer o);
void kge_optimizer_init(struct kge_optimizer_table *t, enum kge_optimizer o, size_t rows,
			size_t floats);
void kge_optimizer_release(struct kge_optimizer_table *t);
void kge_optimizer_clear(struct kge_optimizer_table *t);

/* The part of the learning rate that is left at x, in epochs (enum kge_schedule). */
float kge_schedule_at(const struct kge_train_config *c, double x);
/* The constants of batch number `batches` (from 1), with the learning rate of now. */
struct kge_step kge_optimizer_step(const struct kge_train_config *c, float lr, uint64_t batches);
/* w -= ... for row `row` of the table. */
void kge_optimizer_row(const struct kge_optimizer_table *t, enum kge_optimizer o,
		       const struct kge_kernels *k, const struct kge_step *s, size_t row,
		       float *restrict w, const float *restrict g);
/* Ask for a row's state ahead of time. */
void kge_optimizer_prefetch(const struct kge_optimizer_table *t, size_t row);

#endif
