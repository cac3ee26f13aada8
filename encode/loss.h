/* encode/loss.h - cross entropy over all entities, with label smoothing (methods 5.2).
 *
 * Question k, whose answer is a, has vectors q_j and entity v the score s(v) = max_j <q_j, ent_v>:
 *
 *   loss = log sum_v e^s(v) - (1 - smoothing) s(a) - smoothing mean_v s(v)
 *
 * and the mean over the questions.  Of equal scores the first vector's counts. */
#ifndef ENCODE_LOSS_H
#define ENCODE_LOSS_H

#include <stddef.h>
#include <stdint.h>

struct encode_loss_options {
	size_t entities, dim;
	float smoothing; /* 0 to below 1 */
	uint32_t threads;
	size_t scores; /* that are held at once, of a question at least; 0: 64 Mi */
};

/* What it works with, kept for call after call. */
struct encode_loss;
struct encode_loss *encode_loss_new(const struct encode_loss_options *o);
void encode_loss_free(struct encode_loss *l);

struct encode_asked {
	size_t n;
	const size_t *first;	/* question k: vectors first[k] up to first[k + 1]; n + 1 of them */
	const float *q;		/* vectors, first[n] x dim */
	const uint32_t *answer; /* n */
};

/* Returns the loss; dq is written, first[n] x dim; dent is written, entities x dim.  Bits depend on
 * the number of threads. */
double encode_loss_run(struct encode_loss *l, const float *ent, const struct encode_asked *in,
		       float *dq, float *dent);

/* s(v) of each question and entity, n x entities, by the caller's thread alone. */
void encode_scores(const struct encode_asked *in, const float *ent, size_t entities, size_t dim,
		   float *out);

#endif
