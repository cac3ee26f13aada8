/* ppat/teachers.h - the host's teacher discriminators (methods 3.2, steps 1 and 2).
 *
 * Every row of Y belongs to exactly one teacher for the teachers' life, by a
 * hash keyed with a secret of the host (C1).  A teacher trains on rows of its
 * own part as real and on the client's Z as generated, and has its own random
 * stream: a changed row of Y changes one teacher and so one vote.
 *
 * That holds however long the teachers train before they vote, and on whatever generated
 * rows: these, the number of steps and the order depend on nothing of Y but labels that
 * have been paid for.  So training is free, and only asking costs. */
#ifndef PPAT_TEACHERS_H
#define PPAT_TEACHERS_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/linalg.h"
#include "nn/mlp.h"
#include "nn/optim.h"
#include "ppat/config.h"

struct ppat_teacher {
	struct nn_mlp net;
	struct nn_sgd sgd;
	struct rng rng;
	uint32_t *part; /* [n_part] rows of Y */
	size_t n_part;
};

struct ppat_teachers {
	uint32_t n, steps;
	size_t batch, dim;
	const float *y; /* [rows x dim], borrowed */
	struct ppat_teacher *at;
	struct nn_tape tape;		       /* shared: one teacher works at a time */
	float *grad, *mixed, *target, *dlogit; /* mixed [2 batch x dim]: generated, then real */
	uint8_t key[32];
};

/* ids [rows]: lasting identities; key, weights and sampling come from draw. */
void ppat_teachers_init(struct ppat_teachers *t, const struct ppat_config *c, const float *y,
			const uint64_t *ids, size_t rows, struct nn_draw draw);
void ppat_teachers_release(struct ppat_teachers *t); /* wipes */

/* z [n x dim] are generated rows, of which the first `asked` <= batch are voted on.  Train
 * every teacher: on the others, or on these where there are no others; then count the
 * votes for "real": ones[i] of the t->n teachers.  The counts are the host's secret.
 * Each teacher does all its steps while its weights are in the cache.  0, or ERR_CANCELED when
 * *cancel (may be NULL) ends it between two steps, with counts of nothing. */
int ppat_teachers_vote(struct ppat_teachers *t, const float *z, size_t n, size_t asked,
		       uint32_t *ones, const atomic_bool *cancel);

#endif
