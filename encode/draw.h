/* encode/draw.h - queries drawn from a graph: to learn from, and to be ranked by (methods 5.1).
 *
 * Who trains draws from train alone.  A look is of queries whose hard answers need triples of one
 * split, for example valid: they are never trained on. */
#ifndef ENCODE_DRAW_H
#define ENCODE_DRAW_H

#include "encode/train.h"
#include "graph/graph.h"
#include "query/evaluate.h"

/* At most `count` of each type. */
struct encode_draw {
	unsigned types; /* bit p: enum query_pattern p; ENCODE_ALL: those that encoders know */
	size_t count, answers_max; /* answers_max: of each query */
	uint64_t seed;
	const uint64_t *holders; /* query/sample.h; NULL: one graph */
};
enum { ENCODE_ALL = (1 << (QUERY_UP + 1)) - 1 };

/* Adds queries of train. */
void encode_corpus_sample(struct encode_corpus *c, const struct graph *g,
			  const struct encode_draw *d);

/* ---- queries to be ranked by ---- */

struct encode_look {
	struct query_record *at;
	size_t n, room;
	struct graph_index *all, *known;
	uint32_t threads;
};
/* Of queries whose hard answers need triples of `split`.  Borrows the graph. */
void encode_look_open(struct encode_look *l, const struct graph *g, enum graph_split split,
		      uint32_t threads);
void encode_look_release(struct encode_look *l);
/* Takes the record's insides. */
void encode_look_add(struct encode_look *l, struct query_record *r);
void encode_look_sample(struct encode_look *l, const struct graph *g, enum graph_split split,
			const struct encode_draw *d);
/* How its evaluator is to rank; `search` is left to the caller. */
struct query_evaluation_options encode_look_options(const struct encode_look *l);
/* Means over the types of which there are queries. */
struct query_figures encode_look_mean(const struct query_outcome *out, size_t n);
/* By an encoder; out[l->n], if not NULL, is what each query came to. */
struct query_figures encode_look_run(const struct encode_look *l, const struct encode_model *m,
				     struct query_outcome *out);

#endif
