#include "encode/rank.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "encode/encoder.h"
#include "encode/loss.h"

/* What one thread works with. */
struct rank_lane {
	struct encode_tape *tape;
	struct encode_question *questions;
	float *scores; /* questions x entities */
	size_t room;
};

struct encode_ranker {
	const struct encode_model *m;
	uint32_t threads;
	struct rank_lane lane[PARALLEL_MAX];
};

struct encode_ranker *encode_ranker_new(const struct encode_model *m, uint32_t threads)
{
	struct encode_ranker *r = mem_array(1, sizeof *r);

	assert(threads >= 1 && threads <= PARALLEL_MAX);
	r->m = m;
	r->threads = threads;
	for (uint32_t k = 0; k < threads; k++)
		r->lane[k].tape = encode_tape_new(m);
	return r;
}

void encode_ranker_free(struct encode_ranker *r)
{
	if (r == NULL)
		return;
	for (uint32_t k = 0; k < r->threads; k++) {
		encode_tape_free(r->lane[k].tape);
		free(r->lane[k].questions);
		free(r->lane[k].scores);
	}
	free(r);
}

/* Scores of n questions of one pattern. */
static void score_questions(const struct encode_ranker *r, struct rank_lane *l,
			    const struct encode_question *q, size_t n, float *out)
{
	size_t each = encode_vectors(&r->m->is, q->pattern);
	size_t *first = mem_array(n + 1, sizeof *first);
	struct encode_asked in = { .n = n, .first = first };

	for (size_t i = 0; i < n; i++)
		first[i + 1] = first[i] + each;
	encode_tape_begin(l->tape, 0, NULL);
	in.q = encode_values(l->tape, encode_questions(l->tape, r->m, q, n));
	encode_scores(&in, r->m->ent, r->m->entities, r->m->is.dim, out);
	free(first);
}

static void begin_questions(void *ctx, size_t lane, const struct query_record *const *records,
			    size_t n)
{
	struct encode_ranker *r = ctx;
	struct rank_lane *l = &r->lane[lane];

	if (n > l->room) {
		l->room = n;
		l->questions = mem_resize(l->questions, n, sizeof *l->questions);
		l->scores = mem_resize(l->scores, n * r->m->entities, sizeof(float));
	}
	for (size_t i = 0; i < n; i++)
		l->questions[i] = encode_question_of(records[i]);
	for (size_t i = 0, to; i < n; i = to) {
		for (to = i + 1; to < n && l->questions[to].pattern == l->questions[i].pattern;)
			to++;
		score_questions(r, l, l->questions + i, to - i, l->scores + i * r->m->entities);
	}
}

static void copy_scores(void *ctx, size_t lane, size_t i, float *scores)
{
	struct encode_ranker *r = ctx;

	memcpy(scores, r->lane[lane].scores + i * r->m->entities, r->m->entities * sizeof(float));
}

struct query_judge encode_ranker_judge(struct encode_ranker *r)
{
	return (struct query_judge){ r, r->m->entities, begin_questions, copy_scores };
}
