/* FedEPL (FedS, VI-C): FedEP in as many dimensions as cost what FedS costs in `dim` (methods 4.2).
 * This file only checks the dimension of the tables. */
#include "fed/method.h"
#include "fed/methods/feds.h"

static int init(struct fed_part *p, struct err *e)
{
	const struct fed_settings *s = &p->settings;
	size_t dim = (size_t)fed_constant(s, "dim");
	size_t low = fed_feds_dim(fed_constant(s, "p"), fed_constant(s, "s"), dim);

	if (p->emb->dim == low)
		return 0;
	return err_set(
		e, ERR_USAGE,
		"method fedepl: in place of %zu dimensions the tables must have %zu, not %zu", dim,
		low, p->emb->dim);
}

const struct fed_method fed_fedepl = {
	.name = "fedepl",
	.title = "FedEPL: FedEP in the dimension that costs what FedS costs",
	.tags = "e",
	.scored = FED_SCORED_OWN,
	.constant = { { "p", 0.4, 1e-6, 1, "share of rows that FedS sends" },
		      { "s", 4, 0, 1000, "rounds between two full exchanges of FedS" },
		      { "dim", 256, 1, 4096, "dimension that FedS would have" } },
	.init = init,
};
