/* tests/ppat/driver.h - base/driver.h, with draws that can be replayed. */
#ifndef TESTS_PPAT_DRIVER_H
#define TESTS_PPAT_DRIVER_H

#include "base/driver.h"
#include "nn/linalg.h"

static inline struct nn_draw driver_draw(struct rng *r)
{
	return nn_draw_seeded(r);
}

#endif
