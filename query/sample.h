/* query/sample.h - queries drawn backwards from their answers (methods 5.1; Hamilton and others
 * 2018, GQE; Ren and Leskovec 2020, BetaE).
 *
 * An answer is drawn among the entities of the whole graph, then the pattern is filled from the
 * root down: a relation among those that lead to the entity, in either direction, then an edge of
 * it. All branches of AND and OR lead to the same entity.  A negated branch leads to another answer
 * of the branches beside it, so that it takes something away, and never the answer itself.
 *
 * Relations whose triples are the same, in one direction or the other (r and its inverse under
 * another name), are one relation here; so are r and ^r where r is symmetric.
 *
 * Refused, and drawn anew:
 *   - two equal branches; a relation that is walked back at once (r, then ^r)
 *   - a query that was drawn before, in whatever order of branches
 *   - a query without a hard answer, or with more answers than asked for
 *   - of several graphs: a query whose relations one graph holds all of
 *
 * The same graph, seed and calls give the same queries on every machine. */
#ifndef QUERY_SAMPLE_H
#define QUERY_SAMPLE_H

#include "graph/graph.h"
#include "query/records.h"

enum { QUERY_OWNERS_MAX = 64 };

struct query_sample_options {
	unsigned all, known; /* splits, 1u << GRAPH_TRAIN etc.; hard is what `known` lacks */
	uint64_t seed;
	size_t answers_max;	 /* hard and easy; 0: as many as there are */
	const uint64_t *holders; /* by relation: bit k is set if graph k has it; NULL: one graph */
};

struct query_sampler;

/* Borrows the graph and o->holders. */
struct query_sampler *query_sampler_new(const struct graph *g,
					const struct query_sample_options *o);
void query_sampler_free(struct query_sampler *s);

/* Relations that are taken for another one, and others that are symmetric. */
struct query_twins {
	size_t twins, symmetric;
};
struct query_twins query_sampler_twins(const struct query_sampler *s);

/* 1 and the next query of the pattern, with hard and easy answers and missing edges; 0 where none
 * was found in `tries` draws: the graph has few or no more of them.  Of 1p the graph has no more.
 */
int query_sampler_next(struct query_sampler *s, enum query_pattern p, size_t tries,
		       struct query_record *out);

#endif
