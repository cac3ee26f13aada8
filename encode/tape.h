/* encode/tape.h - matrices that are computed from one another, and derivatives back through them.
 *
 * Each function here computes a matrix and notes how; encode_tape_backward() goes through the notes
 * from the last to the first.  A matrix has a row for each of n questions, or a group of rows of
 * equal length for each; all are row-major.  Offsets name parts of `op` (encode/model.h).
 *
 * Sums go by kge's kernels, whose bits do not depend on what is computed together. */
#ifndef ENCODE_TAPE_H
#define ENCODE_TAPE_H

#include "encode/model.h"
#include "kge/kernel.h"

typedef uint32_t encode_var; /* a matrix of the tape */
struct encode_tape;

enum encode_table { ENCODE_ENT, ENCODE_REL };
enum encode_map { ENCODE_SIGMOID, ENCODE_TANH, ENCODE_RELU, ENCODE_GELU };
enum { ENCODE_INPUTS = QUERY_ANCHORS_MAX };

/* The model is borrowed and read only. */
struct encode_tape *encode_tape_new(const struct encode_model *m);
void encode_tape_free(struct encode_tape *t);
/* Forgets all matrices.  Dropout of `rate` by r; 0, NULL: none. */
void encode_tape_begin(struct encode_tape *t, float rate, struct rng *r);

/* ---- matrices ---- */

/* Rows of a table; the ids are copied. */
encode_var encode_rows(struct encode_tape *t, enum encode_table table, const uint32_t *ids,
		       size_t n);
/* A part of op as it is. */
encode_var encode_constant(struct encode_tape *t, const struct encode_part *p);
/* Rows of p added to each row of x: row i p->rows + k is x_i + p_k. */
encode_var encode_spread(struct encode_tape *t, encode_var x, const struct encode_part *p);
/* x w', and b added where it is not NULL. */
encode_var encode_linear(struct encode_tape *t, encode_var x, const struct encode_part *w,
			 const struct encode_part *b);
/* scale (x_1 + .. + x_n), n <= ENCODE_INPUTS.  Of one with fewer rows each counts for as many rows
 * in a row as make up the difference. */
encode_var encode_sum(struct encode_tape *t, const encode_var *x, size_t n, float scale);
encode_var encode_product(struct encode_tape *t, encode_var a, encode_var b);
/* (1 - z) a + z b */
encode_var encode_blend(struct encode_tape *t, encode_var z, encode_var a, encode_var b);
encode_var encode_mapped(struct encode_tape *t, encode_var x, enum encode_map map);
/* For each of `questions` its group of x_1, then that of x_2 .. */
encode_var encode_stack(struct encode_tape *t, const encode_var *x, size_t n, size_t questions);
/* Each row less its mean, over its standard deviation; times gain[0], plus gain[1]. */
encode_var encode_norm(struct encode_tape *t, encode_var x, const struct encode_part *gain);
/* softmax(X X' / sqrt(columns)) X of each of `questions` groups X. */
encode_var encode_attend(struct encode_tape *t, encode_var x, size_t questions);
/* Each number 0 with probability rate, else over 1 - rate. */
encode_var encode_drop(struct encode_tape *t, encode_var x);

const float *encode_values(const struct encode_tape *t, encode_var x);
size_t encode_count(const struct encode_tape *t, encode_var x); /* rows */

/* ---- derivatives ---- */

/* dLoss/dx, zero so far; the caller adds to it. */
float *encode_slopes(struct encode_tape *t, encode_var x);
/* Adds dLoss/dop to op_slopes. */
void encode_tape_backward(struct encode_tape *t, float *op_slopes);
/* After that: adds those of rows to the tables'. */
void encode_tape_scatter(const struct encode_tape *t, float *ent_slopes, float *rel_slopes);

#endif
