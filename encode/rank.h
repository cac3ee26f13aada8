/* encode/rank.h - an encoder as a judge of answers, for query/evaluate.h. */
#ifndef ENCODE_RANK_H
#define ENCODE_RANK_H

#include "encode/model.h"
#include "query/evaluate.h"

struct encode_ranker;
/* Borrows the model; its scores are encode/loss.h's. */
struct encode_ranker *encode_ranker_new(const struct encode_model *m, uint32_t threads);
void encode_ranker_free(struct encode_ranker *r);
/* Borrows r. */
struct query_judge encode_ranker_judge(struct encode_ranker *r);

#endif
