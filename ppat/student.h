/* ppat/student.h - the student discriminator (methods 3.2, steps 3 and 4).
 *
 * A function of (student_seed, generated rows, noisy labels) and of nothing
 * else (C2): no row of Y and no score computed from Y comes near it.  So it may
 * live at the client as well as at the host, with the same bits.
 *
 * In mode BUDGET it keeps the labelled rows (the newest PPAT_REPLAY_FLOATS of them) and takes
 * student_steps on batches drawn from all that it has kept: labels are paid for once, and
 * what is made of them afterwards costs nothing. */
#ifndef PPAT_STUDENT_H
#define PPAT_STUDENT_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "nn/mlp.h"
#include "nn/optim.h"
#include "ppat/config.h"

enum { PPAT_REPLAY_FLOATS = 1 << 24 }; /* 64 MiB of rows */

/* Labelled rows, the newest that fit. */
struct ppat_replay {
	size_t n, cap, next;	      /* a ring once n == cap */
	float *z, *label;	      /* [cap x dim], [cap] */
	float *z_drawn, *label_drawn; /* [batch x dim], [batch] */
	struct rng rng;
};

struct ppat_student {
	enum ppat_loss loss;
	size_t dim, batch;
	uint32_t steps;
	struct ppat_replay replay; /* mode BUDGET */
	struct nn_mlp net;
	struct nn_sgd sgd;
	struct nn_tape tape;
	float *grad, *dlogit;
};

void ppat_student_init(struct ppat_student *s, const struct ppat_config *c);
void ppat_student_release(struct ppat_student *s);

/* SGD on -mean[label log S(z) + (1 - label) log(1 - S(z))]: one step on these n rows, or as
 * many as agreed on them and those before; n <= batch.  0, or ERR_CANCELED when *cancel (may be
 * NULL) ends it between two steps. */
int ppat_student_train(struct ppat_student *s, const float *z, const float *label, size_t n,
		       const atomic_bool *cancel);

/* g [n x host_dim] = dL_G/dZ, L_G = mean log(1 - S(z)), or -mean log S(z). */
void ppat_student_gradient(struct ppat_student *s, const float *z, size_t n, float *g);

#endif
