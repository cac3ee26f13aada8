/* query/frontier.h - what an asker sends to an owner and makes of what comes back (methods 5.4),
 * for a search in one process (owners.h) and for agents alike.
 *
 *   frontier   the truest entities of a variable, from which a step is asked
 *   rest       an owner that has more predicted answers than were wanted sends the truest.  The
 *              others are at most as true as the least of these, and where an AND follows taken
 *              for as true: it would else lose what the other branch is sure of */
#ifndef QUERY_FRONTIER_H
#define QUERY_FRONTIER_H

#include "query/search.h"

/* What is asked of an owner for a step unless something else is said: docs/results/queries.md. */
enum { QUERY_POINTS = 1024, QUERY_WANT_KNOWN = 512, QUERY_WANT = 256 };

/* The truest of n entities with a truth above 0, at most `most` (0: all), into out[n]; returns how
 * many, in no order.  Where equal ones do not all find room they stay out, since a choice among
 * them would follow from nothing that counts; but for the truest of all, of which the lower places
 * go.  place: by id, or NULL: the ids, which tell the order of the triples. */
size_t query_frontier(const float *truth, uint32_t n, const uint32_t *place, size_t most,
		      struct query_point *out);

/* How true those are that an owner has left out of its predicted answers; 0: it has left out none
 * that could be above 0. */
static inline float query_rest(size_t predicted, size_t wanted, float least)
{
	return predicted > 0 && predicted >= wanted ? least : 0;
}

#endif
