/* graph/parts.h - one graph partitioned among k agents by its relations (methods 7).
 *
 *   R-k  relations shuffled, each agent gets as many
 *   C-k  communities of relations that meet at the same entities
 *
 * A triple follows its relation, so parts share entities and never a relation,
 * and every triple is in exactly one part.  part[r], r < number of relations,
 * is in 0..k-1, and no part is without triples.  Both are pure functions of graph, k and
 * seed; C-k rests on LAPACK, whose last digits may differ between machines. */
#ifndef GRAPH_PARTS_H
#define GRAPH_PARTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "graph/graph.h"

enum { GRAPH_PARTS_MAX = 64, GRAPH_COMMUNITY_RELATIONS_MAX = 4096 };

/* ERR_USAGE unless 2 <= k <= GRAPH_PARTS_MAX and k <= number of relations with triples, both. */
int graph_partition_relations(const struct graph *g, uint32_t k, uint64_t seed, uint32_t *part,
			      struct err *e);
/* Also ERR_TOOBIG above GRAPH_COMMUNITY_RELATIONS_MAX relations (two dense matrices
 * of them: 256 MiB, a minute), ERR_FAIL if LAPACK finds no eigenvectors.  A
 * relation that meets no other goes to the part that has the fewest triples. */
int graph_partition_communities(const struct graph *g, uint32_t k, uint64_t seed, uint32_t *part,
				struct err *e);

/* m [n_rel x n_rel]: how many entities both relations touch, in any split, as head
 * or tail; 0 on the diagonal.  free() it. */
double *graph_cooccurrence(const struct graph *g);

/* Spectral clustering (Shi and Malik 2000; von Luxburg 2007) of n things with
 * symmetric affinity m [n x n] >= 0, each row with a sum above 0, into k <= n
 * groups, none empty: the k first eigenvectors of the normalised Laplacian
 * I - D^-1/2 M D^-1/2, scaled by D^-1/2, then k-means with restarts.  Groups are
 * numbered in the order of their first members.  m is used up.  ERR_FAIL. */
int graph_cluster(double *m, uint32_t n, uint32_t k, uint64_t seed, uint32_t *group, struct err *e);
/* The k-means of it, on points at [n x k]; groups are numbered as they come. */
void graph_means(const double *at, uint32_t n, uint32_t k, uint64_t seed, uint32_t *group);

/* ---- the parts ---- */

/* All distinct triples of all splits, in their order; free(all.at). */
struct graph_triples graph_all_triples(const struct graph *g);
/* A new graph of those whose relation is in part k, all of them in train; names get
 * new ids in the order of the triples. */
struct graph *graph_part_graph(const struct graph *g, const struct graph_triples *all,
			       const uint32_t *part, uint32_t k);
/* shared [k x k]: how many entities two parts both hold, on the diagonal the part's
 * own; *in_all: entities that every part holds. */
void graph_parts_shared(const struct graph *g, const struct graph_triples *all,
			const uint32_t *part, uint32_t k, uint32_t *shared, uint32_t *in_all);

#endif
