/* encode/plain.h - the encoders one question at a time, in double: the definition (methods 5.2).
 *
 * tests/encode holds the fast encoders to it, and their derivatives to its differences. */
#ifndef ENCODE_PLAIN_H
#define ENCODE_PLAIN_H

#include "encode/model.h"

/* encode_vectors() rows of dim into q, which has room for ENCODE_PARTICLES_MAX x
 * QUERY_ANCHORS_MAX.  Nothing is dropped out. */
void encode_plain_vectors(const struct encode_model *m, const struct encode_question *question,
			  double *q);
/* encode/loss.h's, of one question. */
double encode_plain_loss(const struct encode_model *m, const struct encode_question *question,
			 uint32_t answer, double smoothing);

#endif
