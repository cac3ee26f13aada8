/* tests/agent/private_training.h - settings of an agent that trains privately, for tests. */
#ifndef TESTS_AGENT_PRIVATE_TRAINING_H
#define TESTS_AGENT_PRIVATE_TRAINING_H

#include "config/config.h"
#include "dp/subsampled.h"

/* An epoch is two steps; the cap allows `steps`. */
static inline void set_private_training(struct config *c, uint64_t steps)
{
	const struct dp_subsampled m = { 0.5, 2 };

	c->train.epochs = 6;
	c->train.eval_every = c->federation.epochs_per_round = 2;
	c->train.kge.filtered = false;
	c->train.kge.shared_chunk = 0;
	c->train.kge.dp.rate = m.rate;
	c->train.dp_noise = m.noise;
	c->train.kge.dp.triples = 100;
	c->train.kge.dp.epsilon = dp_subsampled_epsilon(&m, steps, c->train.kge.dp.delta);
}

#endif
