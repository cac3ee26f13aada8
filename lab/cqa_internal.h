/* lab/cqa_internal.h - a federation of encoders, for the files of cqa_ alone. */
#ifndef LAB_CQA_INTERNAL_H
#define LAB_CQA_INTERNAL_H

#include "fed/local.h"
#include "lab/cqa.h"
#include "lab/cqa_questions.h"

struct cqa_member {
	const struct graph *g;
	const char *name;
	struct encode_corpus corpus;
	struct encode_look valid;
	struct encode_model *m, *best;
	struct encode_trainer *t; /* NULL: central */
	struct kge_emb *rows;	  /* what rounds move; NULL: none do */
};

struct cqa {
	const struct cqa_options *o;
	struct cqa_member *at;
	size_t n;
	struct cqa_questions questions;
	struct encode_model *whole;  /* over the pool: first rows; central; what cross-graph sees */
	struct encode_corpus corpus; /* central */
	struct encode_trainer *t;
	struct fed_local *rounds; /* NULL: local, central */
	uint64_t done, bytes;
};

/* The member's rows and operators become those of the whole. */
void cqa_take_whole(const struct cqa *x, size_t member);

#endif
