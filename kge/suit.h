/* kge/suit.h - how many answers the relations of a graph have on either side, by which training
 * can go (config/suit.c). */
#ifndef KGE_SUIT_H
#define KGE_SUIT_H

#include "graph/graph.h"

/* Of train alone.  A relation is many-to-one where a head has fewer than 1.5 tails in the mean and
 * a tail 1.5 heads and more (Bordes et al. 2013, section 4.1), and one-to-many the other way.  It
 * leans to the tail where a tail has at least twice as many heads as a head has tails: then a tail
 * is far easier to tell than a head.  The rest of the triples are of relations that lean nowhere.
 */
struct kge_relations {
	uint32_t n; /* that have a triple */
	uint32_t many_to_one, one_to_many;
	size_t triples, to_tail, to_head; /* all; of relations that lean so */
};

void kge_relations_of(const struct graph *g, struct kge_relations *out);

#endif
