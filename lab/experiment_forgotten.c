/* lab/experiment_forgotten.c - which triples an agent of an experiment is to forget: a share of its
 * train by lot, as in FedLU (methods 4.1).  It follows from the seed and the agent's name, so that
 * every variant of a seed has the same ones. */
#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/rng.h"
#include "lab/experiment.h"

static int compare_positions(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

uint32_t *experiment_choose_forgotten(double share, uint64_t seed, const char *agent, size_t train,
				      size_t *n)
{
	uint32_t *positions = mem_array(train + 1, sizeof(*positions));
	uint8_t drawn[crypto_generichash_BYTES_MIN];
	uint64_t first;
	struct rng g;

	*n = (size_t)lround(share * (double)train);
	*n = *n < 1 ? 1 : *n < train ? *n : train - 1;
	for (size_t i = 0; i < train; i++)
		positions[i] = (uint32_t)i;
	crypto_generichash(drawn, sizeof(drawn), (const uint8_t *)agent, strlen(agent),
			   (const uint8_t *)"fkge forgotten triples", 22);
	memcpy(&first, drawn, sizeof(first));
	rng_seed(&g, first ^ seed);
	rng_shuffle(&g, positions, train, sizeof(*positions));
	qsort(positions, *n, sizeof(*positions), compare_positions);
	return positions;
}
