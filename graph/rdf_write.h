/* graph/rdf_write.h - names as terms of N-Triples (W3C 2014), for what leaves as RDF.
 *
 * A name that came from RDF is the term that it came from: an IRI or a literal as it is, a blank
 * node's label, escaped, with its mark behind it.  Any other name, of TSV, is urn:fkge: and the
 * name, percent-encoded; of "truth" urn:fkge:name:truth, for GRAPH_RDF_TRUTH is ours.  Two names
 * are two terms, unless one is the IRI that stands for the other (graph_rdf_shared()), or both are
 * ways to write one literal. */
#ifndef GRAPH_RDF_WRITE_H
#define GRAPH_RDF_WRITE_H

#include <stdbool.h>

#include "base/buf.h"
#include "graph/graph.h"

#define GRAPH_RDF_TRUTH "urn:fkge:truth"

enum graph_rdf_place { GRAPH_RDF_SUBJECT, GRAPH_RDF_PREDICATE, GRAPH_RDF_OBJECT };

/* Appends the term, and a NUL behind the end.  false: RDF has no such name in that place (a literal
 * that is no object, a blank node that is a predicate); nothing is appended. */
bool graph_rdf_term(struct buf *out, const char *name, enum graph_rdf_place place);

/* A name of the graph that is the IRI which another name of it becomes, *other (by free()); NULL:
 * there is none. */
const char *graph_rdf_shared(const struct graph *g, char **other);

#endif
