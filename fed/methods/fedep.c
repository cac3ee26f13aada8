/* FedEP (FedE's baseline in FedS): as FedE, but each agent scores and keeps the table that it has
 * trained, before aggregation (methods 4). */
#include "fed/method.h"

const struct fed_method fed_fedep = {
	.name = "fedep",
	.title = "FedEP: FedE, each agent keeping its own trained table",
	.tags = "e",
	.scored = FED_SCORED_OWN,
};
