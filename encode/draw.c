#include "encode/draw.h"

#include <stdlib.h>

#include "base/mem.h"
#include "encode/rank.h"
#include "query/sample.h"

enum { TRIES = 20000, TRIES_A_TRIPLE = 100, PATTERNS = QUERY_UP + 1 };

/* So many draws without a query of a pattern say that there is none. */
static size_t tries_in(const struct graph *g)
{
	size_t n = 0;

	for (int k = 0; k < GRAPH_SPLITS; k++)
		n += g->split[k].n;
	return n < TRIES / TRIES_A_TRIPLE ? n * TRIES_A_TRIPLE : TRIES;
}

static void sample_records(const struct graph *g, const struct query_sample_options *how,
			   const struct encode_draw *d,
			   void (*take)(void *to, struct query_record *r), void *to)
{
	struct query_sampler *s = query_sampler_new(g, how);
	struct query_record r = { 0 };
	size_t tries = tries_in(g);

	for (int p = 0; p < PATTERNS; p++)
		for (size_t i = 0; (d->types & 1u << p) != 0 && i < d->count; i++) {
			if (query_sampler_next(s, (enum query_pattern)p, tries, &r) != 1)
				break;
			take(to, &r);
		}
	query_record_release(&r);
	query_sampler_free(s);
}

static void draw_question(void *to, struct query_record *r)
{
	(void)encode_corpus_add(to, r);
}

void encode_corpus_sample(struct encode_corpus *c, const struct graph *g,
			  const struct encode_draw *d)
{
	const struct query_sample_options how = { .all = 1u << GRAPH_TRAIN,
						  .seed = d->seed,
						  .answers_max = d->answers_max,
						  .holders = d->holders };

	sample_records(g, &how, d, draw_question, c);
}

/* ---- looks ---- */

static unsigned splits_before(enum graph_split split)
{
	return split == GRAPH_TEST ? 1u << GRAPH_TRAIN | 1u << GRAPH_VALID : 1u << GRAPH_TRAIN;
}

void encode_look_open(struct encode_look *l, const struct graph *g, enum graph_split split,
		      uint32_t threads)
{
	unsigned before = splits_before(split);

	*l = (struct encode_look){ .threads = threads };
	l->known = graph_index_new(g, before);
	l->all = graph_index_new(g, before | 1u << split);
}

void encode_look_release(struct encode_look *l)
{
	for (size_t i = 0; i < l->n; i++)
		query_record_release(&l->at[i]);
	free(l->at);
	graph_index_free(l->known);
	graph_index_free(l->all);
	*l = (struct encode_look){ 0 };
}

void encode_look_add(struct encode_look *l, struct query_record *r)
{
	if (l->n == l->room) {
		l->room = 2 * l->room + 256;
		l->at = mem_resize(l->at, l->room, sizeof *l->at);
	}
	l->at[l->n++] = *r;
	*r = (struct query_record){ 0 };
}

static void draw_ranked(void *to, struct query_record *r)
{
	encode_look_add(to, r);
}

void encode_look_sample(struct encode_look *l, const struct graph *g, enum graph_split split,
			const struct encode_draw *d)
{
	unsigned before = splits_before(split);
	const struct query_sample_options how = { .all = before | 1u << split,
						  .known = before,
						  .seed = d->seed,
						  .answers_max = d->answers_max,
						  .holders = d->holders };

	sample_records(g, &how, d, draw_ranked, l);
}

struct query_evaluation_options encode_look_options(const struct encode_look *l)
{
	return (struct query_evaluation_options){ .threads = l->threads,
						  .all = l->all,
						  .known = l->known };
}

struct query_figures encode_look_mean(const struct query_outcome *out, size_t n)
{
	struct query_figures sum = { 0 };
	struct query_summary s;
	double of = 0;

	for (int p = 0; p < PATTERNS; p++) {
		query_summarise(out, n, (enum query_pattern)p, &s);
		if (s.queries[0] == 0)
			continue;
		of++;
		sum.mrr += s.by[0].mrr;
		sum.hits1 += s.by[0].hits1;
		sum.hits3 += s.by[0].hits3;
		sum.hits10 += s.by[0].hits10;
	}
	of = of > 0 ? of : 1;
	return (struct query_figures){ sum.mrr / of, sum.hits1 / of, sum.hits3 / of,
				       sum.hits10 / of };
}

struct query_figures encode_look_run(const struct encode_look *l, const struct encode_model *m,
				     struct query_outcome *out)
{
	const struct query_evaluation_options how = encode_look_options(l);
	struct encode_ranker *r = encode_ranker_new(m, l->threads);
	const struct query_judge judge = encode_ranker_judge(r);
	struct query_evaluator *v = query_evaluator_new_by(&judge, &how);
	struct query_outcome *own = out == NULL ? mem_array(l->n + 1, sizeof *own) : out;
	struct query_figures mean;

	query_evaluate(v, l->at, l->n, own);
	mean = encode_look_mean(own, l->n);
	query_evaluator_free(v);
	encode_ranker_free(r);
	if (out == NULL)
		free(own);
	return mean;
}
