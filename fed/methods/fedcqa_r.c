/* FedR for encoders of queries (fed/methods/fedcqa.h): relation rows and Theta travel, entity rows
 * stay. */
#include "fed/methods/fedcqa.h"

const struct fed_method fed_fedcqa_r = {
	.name = "fedcqa_r",
	.title = "FedR for an encoder of queries: the mean of relation rows and of its matrices",
	.tags = "r",
	FEDCQA_COMMON,
};
