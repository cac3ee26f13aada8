/* lab/cqa_questions.h - the graphs of several owners as one, and the questions by which what they
 * have learnt is measured: each owner's own, among its entities (in-graph), and those that no
 * owner's relations answer alone, among all entities (cross-graph; methods 5.1). */
#ifndef LAB_CQA_QUESTIONS_H
#define LAB_CQA_QUESTIONS_H

#include "lab/encoders.h"
#include "query/pool.h"

struct cqa_draw {
	unsigned types;	    /* as struct encode_draw has them */
	size_t own, across; /* of a type: of each owner; across */
	size_t answers_max;
	uint64_t seed;
	uint32_t threads; /* that rank */
};

struct cqa_questions {
	struct query_pool pool;
	size_t n;
	uint32_t **ent, **rel;	   /* [owner][id]: the pool's id of ours */
	struct encode_look *own;   /* [owner] */
	struct encode_look across; /* may have none */
};

/* Hard answers need a triple of test.  Borrows the graphs, which are called names[] in errors.
 * ERR_INPUT: an owner's gives none.  Release in any case. */
MUST_CHECK int cqa_questions_open(struct cqa_questions *q, const struct graph *const *graphs,
				  const char *const *names, size_t n, const struct cqa_draw *d,
				  struct err *e);
void cqa_questions_release(struct cqa_questions *q);

/* Who ranks. */
struct cqa_rankers {
	void *ctx;
	/* For the questions of owner i, or (n) those across; how: but for how->search.  NULL:
	 * nobody can. */
	struct query_evaluator *(*open)(void *ctx, size_t i, struct query_evaluation_options *how);
	void (*close)(void *ctx, struct query_evaluator *v);
};
/* `test_queries`, `test` and `types` into each of members[]; `in_graph`, the means over the owners,
 * and `cross_graph` into `into`. */
void cqa_questions_rank(const struct cqa_questions *q, const struct cqa_rankers *by,
			json_t *members, json_t *into);
/* The digests of all questions, and by which rules they are ranked. */
json_t *cqa_questions_protocol(const struct cqa_questions *q);

#endif
