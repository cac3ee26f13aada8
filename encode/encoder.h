/* encode/encoder.h - many questions of one pattern, encoded at once (methods 5.2). */
#ifndef ENCODE_ENCODER_H
#define ENCODE_ENCODER_H

#include "encode/tape.h"

/* The vectors of n questions of one pattern that encode_knows(): encode_vectors() rows for each, in
 * their order. */
encode_var encode_questions(struct encode_tape *t, const struct encode_model *m,
			    const struct encode_question *q, size_t n);

#endif
