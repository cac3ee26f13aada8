/* ppat/student.h - the student discriminator (methods 3.2, steps 3 and 4).
 *
 * A function of (student_seed, generated rows, noisy labels) and of nothing
 * else (C2): no row of Y and no score computed from Y comes near it.  So it may
 * live at the client as well as at the host, with the same bits. */
#ifndef PPAT_STUDENT_H
#define PPAT_STUDENT_H

#include <stddef.h>
#include <stdint.h>

#include "nn/mlp.h"
#include "nn/optim.h"
#include "ppat/config.h"

struct ppat_pupil {
	enum ppat_loss loss;
	struct nn_mlp net;
	struct nn_sgd sgd;
	struct nn_tape tape;
	float *grad, *dlogit;
};

void ppat_pupil_init(struct ppat_pupil *s, const struct ppat_config *c);
void ppat_pupil_release(struct ppat_pupil *s);

/* One SGD step on -mean[label log S(z) + (1 - label) log(1 - S(z))]. */
void ppat_pupil_train(struct ppat_pupil *s, const float *z, const float *label, size_t n);

/* g [n x host_dim] = dL_G/dZ, L_G = mean log(1 - S(z)), or -mean log S(z). */
void ppat_pupil_gradient(struct ppat_pupil *s, const float *z, size_t n, float *g);

#endif
