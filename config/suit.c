/* config/suit.c - whether settings suit the graph. */
#include "config/settings.h"

bool config_below_floor(const struct config *c, double score, double floor, struct buf *why)
{
	if (!(score < floor))
		return false;
	buf_printf(
		why,
		"valid MRR %.4f is below counting (%.4f), which ranks by how often a name stands "
		"on that side of a relation and learns nothing; other settings may suit this "
		"graph better: ",
		score, floor);
	if (c->train.kge.corrupt != KGE_CORRUPT_TAIL)
		buf_printf(why, "train.corrupt tail where relations are many-to-one, or ");
	buf_printf(why, "fkge tune looks for them");
	return true;
}
