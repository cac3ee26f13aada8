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
	unsigned types;		       /* bit p: enum query_pattern p; of all queries */
	uint64_t rounds, round_steps;  /* steps of each owner a round */
	uint64_t look_every, patience; /* rounds; looks without a better one, 0: any */
	size_t count, valid_count, test_count, cross_count; /* queries of a type; of an owner */
	size_t answers_max;
	uint64_t test_seed; /* of the queries of test: the same for all arms and seeds */
};
extern const unsigned cqa_types; /* FedCQA's eight */

/* One run over the graphs in paths[0..n-1], 2 to 64 of them; *record: figures, settings, protocol.
 * ERR_NOFILE, ERR_IO, ERR_INPUT, ERR_USAGE. */
MUST_CHECK int cqa_run(const struct lab_out *notes, const char *const *paths, size_t n,
		       const struct cqa_options *o, json_t **record, struct err *e);

/* ---- the same round by round, for who decides by himself when to look, keep and stop ---- */

struct cqa;
/* Borrows graphs[0..n-1], 2 to 64 of them, which are called names[] in errors, and o.  ERR_INPUT,
 * ERR_USAGE; then *out is NULL. */
MUST_CHECK int cqa_new(struct cqa **out, const struct graph *const *graphs,
		       const char *const *names, size_t n, const struct cqa_options *o,
		       struct err *e);
void cqa_free(struct cqa *x);
/* Steps of all owners, then what the arm exchanges.  *loss: the owners' mean.  ERR_FAIL: training
 * has diverged. */
MUST_CHECK int cqa_round(struct cqa *x, double *loss, struct err *e);
/* An owner's tables of now, by its queries of valid. */
struct query_figures cqa_look(const struct cqa *x, size_t owner);
/* They are its best from now on. */
void cqa_hold(struct cqa *x, size_t owner);
uint64_t cqa_bytes(const struct cqa *x); /* that owners have sent */
/* All that the next rounds need, for cqa_load() by another one with the same arguments.  ERR_INPUT:
 * of another shape. */
void cqa_save(const struct cqa *x, void (*put)(void *to, const void *bytes, size_t n), void *to);
MUST_CHECK int cqa_load(struct cqa *x, const uint8_t *at, size_t n, struct err *e);
/* The best tables, by the test queries: `members`, `in_graph`, `cross_graph`, `protocol`. */
void cqa_rank(struct cqa *x, json_t *into);

#endif
