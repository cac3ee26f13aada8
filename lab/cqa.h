/* lab/cqa.h - encoders of queries, trained by several owners (methods 5.2, Algorithm 2; Hu and
 * others 2024, FedCQA).
 *
 *   local     each owner alone, on the queries of its own graph
 *   central   one encoder on queries of the union of the graphs: nobody's privacy
 *   fede      each round entity rows become the mean of their holders', operators that of all
 *   fedr      the same with relation rows instead of entity rows
 *   fedcqa    as fede, entity rows by secret aggregation
 *
 * Rows go through rounds of fed/local.h: by names, masked for FedCQA (fed/mask.h), a home for each
 * row among its holders instead of a server.  Operators are averaged plainly by all.  All arms
 * begin with the same rows and have the same steps: each owner's, central those of all together.
 * What is kept is the round best on valid, the mean over the owners; test is ranked once. */
#ifndef LAB_CQA_H
#define LAB_CQA_H

#include <jansson.h>

#include "encode/train.h"
#include "lab/out.h"

enum cqa_arm { CQA_LOCAL, CQA_CENTRAL, CQA_FEDE, CQA_FEDR, CQA_FEDCQA };
extern const char *const cqa_arm_words[]; /* by enum cqa_arm; NULL at the end */

struct cqa_options {
	enum cqa_arm arm;
	struct encode_settings is;
	struct encode_train_options how;
	uint64_t rounds, round_steps;  /* steps of each owner a round */
	uint64_t look_every, patience; /* rounds; looks without a better one, 0: any */
	size_t count, valid_count, test_count, cross_count; /* queries of a type; of an owner */
	size_t answers_max;
	uint64_t test_seed; /* of the queries of test: the same for all arms and seeds */
};

/* One run over the graphs in paths[0..n-1], 2 to 64 of them; *record: figures, settings, protocol.
 * ERR_NOFILE, ERR_IO, ERR_INPUT, ERR_USAGE. */
MUST_CHECK int cqa_run(const struct lab_out *notes, const char *const *paths, size_t n,
		       const struct cqa_options *o, json_t **record, struct err *e);

#endif
