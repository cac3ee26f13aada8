/* kge/dp_triple.h - what one triple gives to a step of private training (kge/dp_train.h).
 *
 * The gradient of one triple's own loss, over its answer, its known row, its relation and its
 * negatives together, is clipped as a whole to L2 norm C and becomes whole numbers: in
 * units of C noise / s, so that noise of deviation s = kge_dp_deviation(noise) is `noise`
 * times C.  The clip holds exactly: the sum of squares of the whole numbers is compared
 * with (s / noise)^2.
 *
 * Whatever is not finite gives nothing at all. */
#ifndef KGE_DP_TRIPLE_H
#define KGE_DP_TRIPLE_H

#include "kge/batch_internal.h"

/* Memory for one triple's gradient, and what it came to. */
struct kge_dp_triple {
	const struct kge_batch *b; /* settings, kernels, tables, width and stride */
	double clip, units;	   /* C; the clip in whole numbers */
	double length;		   /* of the last gradient, before it was clipped */

	/* the rows that it touches, each once */
	uint32_t *rows, *position_of; /* entities; by entity: its position, or GRAPH_NONE */
	size_t n_rows;
	float *g;    /* rows x stride */
	float *drel; /* rel_floats */
	int32_t *whole;

	uint32_t *ids; /* width */
	float *q, *dq, *drow, *seen, *dseen, *scores, *dscore, *work;
};

void kge_dp_triple_init(struct kge_dp_triple *t, const struct kge_batch *b);
void kge_dp_triple_release(struct kge_dp_triple *t);

/* The gradient of the triple's loss when these sides of it are asked, each against negatives
 * from its own generator; in rows, g and drel until kge_dp_triple_forget(). */
void kge_dp_triple_grad(struct kge_dp_triple *t, struct graph_triple x,
			const enum graph_side *sides, size_t n_sides, struct rng r);
/* Clip it and add it to the sums of the entity and the relation table. */
void kge_dp_triple_add(struct kge_dp_triple *t, uint32_t rel, uint32_t *ent_sums,
		       uint32_t *rel_sums);
void kge_dp_triple_forget(struct kge_dp_triple *t);

#endif
