/* tests/ppat/pair.h - a host and a client with random rows, ready to run. */
#ifndef TESTS_PPAT_PAIR_H
#define TESTS_PPAT_PAIR_H

#include "ppat/session.h"
#include "tests/ppat/driver.h"

struct pair {
	struct ppat_config cfg;
	struct rng host_rng, client_rng, label_rng;
	float *x, *y; /* [slots x client_dim], [slots x host_dim] */
	const uint8_t *tags;
	const uint64_t *ids; /* [slots] of struct ppat_rows, borrowed; NULL after pair_init() */
	struct ppat_labeller pinned;
	struct ppat_env host_env, client_env;
	struct conv *host, *client;
	struct driver d;
	struct ppat_result h, c; /* after pair_run() */
};

/* Fills cfg (small PPAT: 80 slots, 6 -> 8 floats, 3 teachers, batch 8, 5 steps)
 * and seeds; change cfg, then pair_rows(). */
void pair_init(struct pair *p, enum ppat_translator t, uint64_t seed);
/* Mode BUDGET with a few steps of everyone: pool 12, teachers 2, student 3, generator 4. */
void pair_budget(struct pair *p);
/* Random rows; y_seed apart, so that an unrelated Y' can be had for the same X. */
void pair_rows(struct pair *p, uint64_t y_seed);
/* Labels come from a fixed stream, whatever the votes are. */
void pair_pin_labels(struct pair *p, uint64_t seed);
/* Opens both (asserts success), runs, fills h and c. */
void pair_run(struct pair *p);
void pair_release(struct pair *p);

#endif
