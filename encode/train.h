/* encode/train.h - training an encoder on queries and their answers (methods 5.2).
 *
 * A step takes the next `batch` questions of a shuffled order, draws one answer of each, encodes
 * those of a pattern together, and moves all parameters by AdamW (Loshchilov and Hutter 2019).
 *
 * All that is random follows from the seed and the number of the step; the same number of threads
 * gives the same bits.  So model, moments and that number are all that a training goes on from. */
#ifndef ENCODE_TRAIN_H
#define ENCODE_TRAIN_H

#include "base/err.h"
#include "encode/model.h"

/* Questions, each with its answers.  Zero is none. */
struct encode_corpus {
	struct encode_question *at;
	size_t *first; /* of at[i]: answer[first[i]] up to answer[first[i + 1]] */
	uint32_t *answer;
	size_t n, room, answers_room;
};
/* Its hard and easy answers; false where the encoders do not know the pattern, or it has none. */
bool encode_corpus_add(struct encode_corpus *c, const struct query_record *r);
void encode_corpus_release(struct encode_corpus *c);

struct encode_train_options {
	uint32_t batch;
	float lr, decay;	  /* each step w -= lr decay w */
	float smoothing, dropout; /* 0 to below 1 */
	uint32_t threads;
	uint64_t seed;
};

struct encode_trainer;
/* Borrows both; the model is moved.  The corpus has a question. */
struct encode_trainer *encode_trainer_new(struct encode_model *m, const struct encode_corpus *c,
					  const struct encode_train_options *o);
void encode_trainer_free(struct encode_trainer *t);

/* Returns the mean loss of n > 0 steps; NaN when training has diverged. */
double encode_trainer_run(struct encode_trainer *t, uint64_t n);
uint64_t encode_trainer_done(const struct encode_trainer *t); /* steps */

/* Tables, moments and steps in this machine's byte order, for encode_trainer_load() alone. */
void encode_trainer_save(const struct encode_trainer *t,
			 void (*put)(void *to, const void *bytes, size_t n), void *to);
/* ERR_INPUT: of another shape. */
MUST_CHECK int encode_trainer_load(struct encode_trainer *t, const uint8_t *at, size_t n,
				   struct err *e);

#endif
