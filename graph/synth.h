/* graph/synth.h - generated graphs of any size, with something in them to learn.
 *
 * Entities have types: ranges of ids whose sizes fall like 1, 1/2, 1/3, ...  A
 * relation joins two types and is 1-1, 1-n, n-1 or n-n.  Things of a type lie on
 * a ring, some tens of neighbours making a cluster; a relation turns the ring of
 * its heads onto the ring of its tails, and tails are drawn from the cluster
 * where a head arrives (from several if it has many tails), early members more
 * often than late ones; one tail in sixteen comes from anywhere in its type.  So
 * what is near in one relation is near in the next, and that can be learned.
 *
 *   - exactly `triples` triples, none twice, no loops, always the same for the
 *     same configuration on every machine
 *   - heads of n-n relations have degrees ~ (rank + q)^-3/4; an entity has the same
 *     rank in all of them.  Small types gather high degrees as tails.
 *   - where there are two relations or more and two triples an entity, every
 *     entity is head of some triple: the first relations, one a type, see to it
 *   - every entity and relation of valid and test is in train
 *
 * Nothing is kept but one bit an entity and 1 MiB: triples are handed on as they
 * are made, relation by relation. */
#ifndef GRAPH_SYNTH_H
#define GRAPH_SYNTH_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

enum { GRAPH_SYNTH_ENTITIES_MIN = 10, GRAPH_SYNTH_ENTITIES_MAX = 100000000 };
enum { GRAPH_SYNTH_RELATIONS_MAX = 100000, GRAPH_SYNTH_DEGREE_MAX = 50000 };
#define GRAPH_SYNTH_TRIPLES_MAX UINT64_C(1000000000)

struct graph_synth_config {
	uint32_t entities, relations;
	uint64_t triples;
	bool fewer; /* where so many do not fit: as many as do; else ERR_USAGE */
	double valid_share, test_share;
	uint64_t seed;
	uint32_t draw; /* draws of one seed are different triples of the same world */
};

enum graph_arity { GRAPH_1_1, GRAPH_1_N, GRAPH_N_1, GRAPH_N_N, GRAPH_ARITIES };

struct graph_synth_range {
	uint32_t first, n; /* ids */
};

struct graph_synth_relation {
	enum graph_arity arity;
	struct graph_synth_range head, tail;
	uint64_t triples;
	uint32_t shift; /* of the ring, in clusters of tails */
};

struct graph_synth;

/* A plan of the graph.  ERR_USAGE with what is allowed, such as how many triples so few entities
 * and relations can bear. */
int graph_synth_new(struct graph_synth **s, const struct graph_synth_config *c, struct err *e);
void graph_synth_free(struct graph_synth *s);
/* How many are asked for; with `fewer`, as many as fit. */
uint64_t graph_synth_triples(const struct graph_synth *s);
/* By relation id. */
const struct graph_synth_relation *graph_synth_relation(const struct graph_synth *s, uint32_t rel);

struct graph_synth_report {
	uint64_t triples[GRAPH_SPLITS];
	uint32_t entities, relations; /* in train, so in any split */
};

/* Calls fn for every triple; a result other than 0 ends the run and is returned. */
int graph_synth_run(const struct graph_synth *s,
		    int (*fn)(void *ctx, enum graph_split split, struct graph_triple t), void *ctx,
		    struct graph_synth_report *report);

#endif
