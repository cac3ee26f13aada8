/* FedProx (Li et al. 2020), methods 4: FedE; local training adds mu/2 |E - E_t|^2, E_t the table
 * as the round began. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/method.h"
#include "kge/terms.h"

static int train(struct fed_part *p, struct fed_training *t)
{
	size_t bytes = (size_t)p->emb->n_ent * p->emb->ent_floats * sizeof(float);
	float *begin = mem_copy(p->emb->ent, bytes);
	struct kge_terms terms = { .proximal = (float)p->settings.value[0], .anchor = begin };
	int rc = fed_train_with(p, t, &terms);

	free(begin);
	return rc;
}

const struct fed_method fed_fedprox = {
	.name = "fedprox",
	.title = "FedProx: FedE, and local rows are held near to what the round began with",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "mu", 0.1, 0, 1000, "weight of the proximal term" } },
	.train = train,
};
