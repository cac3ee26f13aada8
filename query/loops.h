/* query/loops.h - an entity that is asked from is no answer to itself.
 *
 * Models of distance score the triple (h, r, h) high whatever r is.  So where one step leads from a
 * named entity to the answers, and train has no loop of its relation, that entity is no prediction.
 * Answers that are shown go by this; ranks of an evaluation do not: its protocol has all entities.
 */
#ifndef QUERY_LOOPS_H
#define QUERY_LOOPS_H

#include "query/set.h"
#include "query/truth.h"

/* truth[t] becomes 0 for entities of t that could be answers by such a step alone.  known: answers
 * that the known edges give, which stay. */
void query_loops_drop(const struct query_truths *m, const struct query_tree *t,
		      const struct query_set *known, float *truth);

#endif
