/* FedR (Zhang et al. 2022): rows of shared relations are averaged and replaced; entities stay
 * where they are (methods 4). */
#include "fed/method.h"

const struct fed_method fed_fedr = {
	.name = "fedr",
	.title = "FedR: the mean of the holders' relation rows",
	.tags = "r",
	.scored = FED_SCORED_SHARED,
};
