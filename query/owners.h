/* query/owners.h - a judge (query/evaluate.h) that searches the tables of several owners, in one
 * process (methods 5.4).
 *
 * A step goes to all owners of its relation.  Each walks it over its own tables and known edges, as
 * an agent does that is asked by another (query_search_step()), and what they say is joined as by
 * OR: noisy-or, or the largest.  Entities that an owner or the asker does not have do not pass
 * between them.  Where the tables are the same, each relation has one owner and nothing is
 * cut off, truths are those of one that has all, bit for bit. */
#ifndef QUERY_OWNERS_H
#define QUERY_OWNERS_H

#include "query/evaluate.h"

struct query_owner {
	const struct query_truths *m; /* NULL: of an asker that has names alone */
	const struct graph *g;
	const uint32_t *ent, *rel; /* [id]: the id in the union of all; NULL: the same */
};

struct query_owners_options {
	struct query_search_options search; /* of each search of each lane; without elsewhere */
	/* Of a step to another owner: entities that it is asked from, the truest; answers by known
	 * edges and predicted ones, the truest (query/frontier.h); 0: all. */
	size_t points, known, want;
	/* Who asks, in its ids and among its entities: one of the owners, which takes steps itself,
	 * too, or somebody else. */
	const struct query_owner *asker;
	uint32_t lanes; /* threads of the evaluator */
};

/* What went to other owners and came back. */
struct query_owners_count {
	uint64_t steps, points, rows, known; /* known: of the rows */
};

struct query_owners;
/* Borrows the owners and the asker; the union has so many entities and relations. */
struct query_owners *query_owners_new(const struct query_owner *owners, size_t n, uint32_t entities,
				      uint32_t relations, const struct query_owners_options *o);
void query_owners_free(struct query_owners *q);
struct query_judge query_owners_judge(struct query_owners *q); /* borrows q */
struct query_owners_count query_owners_counted(const struct query_owners *q);

#endif
