/* FedProx (Li et al. 2020), methods 4: FedE; local training adds a term that holds the table near
 * to E_t, as the round began: mu/2 |E - E_t|, the Frobenius norm over the whole table, as FedLU's
 * paper has it (footnote 3), or mu/2 |E - E_t|^2, as FedProx's own paper and FedLU's code do. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fed/method.h"
#include "kge/terms.h"

enum constants { MU, NORM };

static int train(struct fed_part *p, struct fed_training *t)
{
	float mu = (float)p->settings.value[MU];
	bool norm = p->settings.value[NORM] > 0;
	size_t bytes = (size_t)p->emb->n_ent * p->emb->ent_floats * sizeof(float);
	float *begin = mem_copy(p->emb->ent, bytes);
	struct kge_terms terms = { .proximal = norm ? 0 : mu, /* mu/2 |E - E_t|^2, methods 4 */
				   .norm = norm ? mu / 2 : 0, /* mu/2 |E - E_t|, methods 4 */
				   .anchor = begin };
	int rc = fed_train_with(p, t, &terms);

	free(begin);
	return rc;
}

const struct fed_method fed_fedprox = {
	.name = "fedprox",
	.title = "FedProx: FedE, and local rows are held near to what the round began with",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "mu", 0.1, 0, 1000, "weight of the proximal term" },
		      { "norm", 1, 0, 1,
			"1: of the norm of E - E_t; 0: of its square, which holds rows fast" } },
	.train = train,
};
