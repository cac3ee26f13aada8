/* FedE (Chen et al. 2021), methods 4: rows of shared entities go up, their mean over the
 * holders comes down and replaces them; then local epochs. */
#include "fed/method.h"

const struct fed_method fed_fede = {
	.name = "fede",
	.title = "FedE: the mean of the holders' entity rows",
	.tags = "e",
	.scored = FED_SCORED_SHARED,
};
