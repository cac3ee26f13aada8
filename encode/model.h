/* encode/model.h - what a trained encoder consists of (methods 5.2; Hu and others 2024, FedCQA).
 *
 *   ent   a row for each entity: its name as an anchor, and what an encoding is compared with
 *   rel   two rows for each relation: r at 2 r, ^r at 2 r + 1
 *   op    what steps, AND and OR compute with, all in one array (methods 5.2's Theta)
 *
 * The score of entity v is the largest <q, ent_v> of the vectors q that a question is encoded as:
 * one for each disjunct (GQE), each particle (Q2P), one alone (tree-LSTM). */
#ifndef ENCODE_MODEL_H
#define ENCODE_MODEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "query/records.h"

enum encode_kind { ENCODE_GQE, ENCODE_Q2P, ENCODE_TREE_LSTM, ENCODE_KINDS };
extern const char *const encode_kind_words[]; /* by enum encode_kind; NULL at the end */

enum { ENCODE_DIM_MAX = 4096, ENCODE_PARTICLES_MAX = 8, ENCODE_PARTS_MAX = 40 };

struct encode_settings {
	enum encode_kind kind;
	uint32_t dim;	    /* even, 2 to ENCODE_DIM_MAX */
	uint32_t particles; /* Q2P: 1 to ENCODE_PARTICLES_MAX; else not used */
};

/* A matrix of `op`, row-major. */
struct encode_part {
	const char *name; /* as methods 5.2 has it */
	size_t rows, cols, at;
};

struct encode_model {
	struct encode_settings is;
	uint32_t entities, relations; /* of the graph */
	float *ent;		      /* entities x dim */
	float *rel;		      /* 2 relations x dim */
	float *op;		      /* op_floats */
	size_t op_floats, n_parts;
	struct encode_part part[ENCODE_PARTS_MAX];
};

/* Matrices uniform as Glorot and Bengio (2010) have them, tables within +-sqrt(3 / dim), biases 0,
 * gains of norms 1; all from r. */
struct encode_model *encode_model_new(const struct encode_settings *s, uint32_t entities,
				      uint32_t relations, struct rng *r);
void encode_model_free(struct encode_model *m);
/* The same over arrays that the caller has: ent, rel and op are NULL until it sets them, and it
 * frees them itself.  Drawn rows first is what encode_model_new() does. */
struct encode_model encode_model_over(const struct encode_settings *s, uint32_t entities,
				      uint32_t relations);
void encode_model_draw_rows(struct encode_model *m, struct rng *r);  /* ent, rel */
void encode_model_draw_parts(struct encode_model *m, struct rng *r); /* op */
/* Floats of such a model, all arrays together. */
size_t encode_model_floats(const struct encode_settings *s, uint32_t entities, uint32_t relations);

static inline size_t encode_ent_floats(const struct encode_model *m)
{
	return (size_t)m->entities * m->is.dim;
}

static inline size_t encode_rel_floats(const struct encode_model *m)
{
	return (size_t)m->relations * 2 * m->is.dim;
}

/* ---- questions ---- */

/* A query of a pattern, its names in the order of query_pattern_shape(). */
struct encode_question {
	enum query_pattern pattern;
	uint32_t anchor[QUERY_ANCHORS_MAX];
	uint32_t step[QUERY_STEPS_MAX]; /* rows of rel */
};

/* The types without negation: 1p to up. */
bool encode_knows(enum query_pattern p);
/* r's pattern is one that is known. */
struct encode_question encode_question_of(const struct query_record *r);
/* How many vectors a question of this pattern is encoded as. */
uint32_t encode_vectors(const struct encode_settings *s, enum query_pattern p);

#endif
