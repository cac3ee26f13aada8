/* cli/rdf_out.h - predicted triples as RDF, each with its truth (query/truth.h).
 *
 *   ntriples   the triple; then, about it, an rdf:Statement without a name and its truth
 *   rdf-star   << the triple >> and its truth: said, but not asserted
 *
 * A truth is that of the answer to the question that found the triple; of a known triple it is 1.
 */
#ifndef CLI_RDF_OUT_H
#define CLI_RDF_OUT_H

#include "cli/cli.h"
#include "lab/work.h"
#include "query/truth.h"

enum rdf_out_kind { RDF_OUT_NTRIPLES, RDF_OUT_STAR };
extern const char *const rdf_out_words[]; /* by enum rdf_out_kind; NULL at the end */

struct rdf_out;

/* Borrows all.  w->emb is not NULL, unless truths come from elsewhere. */
struct rdf_out *rdf_out_new(const struct cli *cli, const struct work *w, enum rdf_out_kind kind);
/* ERR_INPUT: two names of w's graph would be one IRI. */
MUST_CHECK int rdf_out_check(const struct work *w, struct err *e);
/* Says how many triples there were, and how many RDF cannot say. */
void rdf_out_free(struct rdf_out *o);

/* side: of the entity that was asked for. */
float rdf_out_truth(struct rdf_out *o, struct graph_triple t, enum graph_side side);
/* On standard output; a triple that was there before is left out. */
void rdf_out_put(struct rdf_out *o, struct graph_triple t, float truth);

#endif
