/* lab/encoders.h - trained encoders on disk, the queries they learn from, and how well they rank.
 */
#ifndef LAB_ENCODERS_H
#define LAB_ENCODERS_H

#include <jansson.h>

#include "encode/draw.h"
#include "graph/graph.h"

/* All that the bits of a training depend on, but its queries. */
json_t *encoders_settings_json(const struct encode_settings *is,
			       const struct encode_train_options *how);

/* ---- files ---- */

/* The model with a head, whose keys the caller chose; encoder, dim, particles and the graph's
 * digest are added.  ERR_IO. */
MUST_CHECK int encoders_write(const char *path, const struct encode_model *m, const struct graph *g,
			      json_t *head, struct err *e);
/* ERR_NOTFOUND; ERR_INPUT: damaged, or of another graph.  Free *m and json_decref() *head. */
MUST_CHECK int encoders_read(const char *path, const struct graph *g, struct encode_model **m,
			     json_t **head, struct err *e);

/* ---- queries to learn from ---- */

/* Those of a file that encoders know.  ERR_NOFILE, ERR_INPUT, ERR_IO. */
MUST_CHECK int encoders_corpus_read(struct encode_corpus *c, const char *path,
				    const struct graph *g, struct err *e);

/* Of all questions and answers, in their order, as hex. */
json_t *encoders_corpus_digest(const struct encode_corpus *c);

/* ---- queries to be ranked by ---- */

MUST_CHECK int encoders_look_read(struct encode_look *l, const char *path, const struct graph *g,
				  struct err *e);
json_t *encoders_look_digest(const struct encode_look *l);
/* Means over the types; *types, if not NULL, is a new array of each type's figures. */
struct query_figures encoders_look_rank(const struct encode_look *l, struct query_evaluator *v,
					json_t **types);
/* By an encoder. */
struct query_figures encoders_look_run(const struct encode_look *l, const struct encode_model *m,
				       json_t **types);
json_t *encoders_figures_json(const struct query_figures *f);
struct query_figures encoders_figures_of(const json_t *j);

#endif
