/* ppat/adversarial_internal.h - what the two sides of PPAT share (methods 3.2). */
#ifndef PPAT_ADVERSARIAL_INTERNAL_H
#define PPAT_ADVERSARIAL_INTERNAL_H

#include "dp/accountant.h"
#include "ppat/machine_internal.h"
#include "ppat/student.h"
#include "ppat/teachers.h"

/* Of the host: teachers, and how their votes become labels. */
struct ppat_voting {
	bool has_teachers;
	struct ppat_teachers teachers;
	uint32_t *ones;		 /* [batch] votes for "real": secret */
	struct dp_votes *fallen; /* [teachers + 1] how often so many said so: secret */
	bool labelled;		 /* labels of the batch in hand are drawn */
	struct dp_mechanism mechanism;
	struct ppat_labeller labeller;
};

/* Of the client: G(x) = W x; W is side.map. */
struct ppat_generator {
	struct rng rng;	 /* which rows are generated from */
	uint32_t *walk;	 /* mode BUDGET: [n] the order in which rows are asked about */
	float *x_batch;	 /* [pool x client_dim] */
	float *gradient; /* dL_G/dW [host_dim x client_dim] */
	struct nn_sgd sgd;
};

/* One side of the training. */
struct ppat_training {
	struct ppat_side side; /* first */
	uint32_t steps, steps_max;
	uint32_t generator_step; /* student at the host: those since the last labels */
	uint64_t generated;	 /* rows that went to the host in training */
	uint32_t pool;		 /* rows in a BATCH */
	float *z;		 /* [pool x host_dim] the batch */
	float *dz;		 /* [batch x host_dim] dL_G/dZ */
	float *label;		 /* [batch] */
	bool has_student;	 /* where config.student says */
	struct ppat_student student;
	struct ppat_voting voting;	 /* host */
	struct ppat_generator generator; /* client */
};

static inline struct ppat_training *ppat_training_of(struct ppat_side *s)
{
	return (struct ppat_training *)s;
}

static inline const struct ppat_training *ppat_const_training_of(const struct ppat_side *s)
{
	return (const struct ppat_training *)s;
}

/* The generator has taken a step, or the host has answered for one. */
void ppat_training_count_step(struct ppat_training *a);

/* adversarial_host.c and adversarial_client.c: their phases, and the first of them. */
extern const struct ppat_phase ppat_adversarial_host[], ppat_adversarial_client[];
unsigned ppat_adversarial_begin_host(struct ppat_training *a, const struct ppat_env *env);
unsigned ppat_adversarial_begin_client(struct ppat_training *a, const struct ppat_env *env);
/* Host: labels that the next charge is for. */
uint32_t ppat_adversarial_next_charge(const struct ppat_side *s);

#endif
