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
	const struct query_truths *m;
	const uint32_t *ent, *rel; /* [id]: the id in the union of all */
};

struct query_owners_options {
	struct query_search_options search; /* of each search of each lane; without elsewhere */
	/* Of a step to another owner: entities that it is asked from, the truest, and answers, the
	 * truest; 0: all. */
	size_t points, want;
	/* Who asks: an owner, which takes steps itself, too; questions and answers are then in its
	 * ids.  n: nobody, who has all names of the union and no table. */
	size_t asker;
	uint32_t lanes; /* threads of the evaluator */
};

/* What went to other owners and came back. */
struct query_owners_count {
	uint64_t steps, points, rows;
};

struct query_owners;
/* Borrows all that it is given; `all` is the union, for its names. */
struct query_owners *query_owners_new(const struct query_owner *owners, size_t n,
				      const struct graph *all,
				      const struct query_owners_options *o);
void query_owners_free(struct query_owners *q);
struct query_judge query_owners_judge(struct query_owners *q); /* borrows q */
struct query_owners_count query_owners_counted(const struct query_owners *q);

#endif
