#include "query/evaluate.h"

#include <assert.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/parallel.h"

/* ---- ranks ---- */

/* Whole numbers in the order of scores, equal where they are (-0 and 0, too).  NaN is the worst
 * score, as wherever else ranks are made (kge/eval.h), whatever its sign. */
static uint32_t bits_of(float score)
{
	const uint32_t sign = UINT32_C(1) << 31;
	uint32_t bits;

	score = isnan(score) ? -INFINITY : score + 0.0f;
	memcpy(&bits, &score, sizeof(bits));
	return (bits & sign) != 0 ? ~bits : bits | sign;
}

/* Ascending; spare: room for n. */
static void sort_bits(uint32_t *at, uint32_t *spare, size_t n)
{
	for (unsigned shift = 0; shift < 32; shift += 8) {
		size_t start[257] = { 0 };

		for (size_t i = 0; i < n; i++)
			start[(at[i] >> shift & 0xff) + 1]++;
		for (size_t k = 0; k < 256; k++)
			start[k + 1] += start[k];
		for (size_t i = 0; i < n; i++)
			spare[start[at[i] >> shift & 0xff]++] = at[i];
		memcpy(at, spare, n * sizeof(*at));
	}
}

/* How many are below x. */
static size_t count_below(const uint32_t *sorted, size_t n, uint32_t x)
{
	size_t begin = 0;

	while (n > 0) {
		size_t half = n / 2;

		if (sorted[begin + half] < x) {
			begin += half + 1;
			n -= half + 1;
		} else {
			n = half;
		}
	}
	return begin;
}

static double rank_among(const uint32_t *sorted, size_t n, float truth)
{
	size_t below = count_below(sorted, n, bits_of(truth)),
	       equal = count_below(sorted, n, bits_of(truth) + 1) - below;

	return 1.0 + (double)(n - below - equal) + (double)equal / 2;
}

/* ---- one query ---- */

/* What one thread works with. */
struct lane {
	struct query_search *search; /* NULL: another judges */
	const struct query_record *const *begun;
	struct query_exact *exact;
	struct query_set answers;
	float *truth;
	bool *answer;		  /* by entity; all false between queries */
	uint32_t *others, *spare; /* bits of the truths of what is no answer */
};

struct query_evaluator {
	struct query_judge judge;
	struct query_evaluation_options how;
	struct lane lane[PARALLEL_MAX];
	/* of the call under way */
	const struct query_record *records;
	struct query_outcome *out;
	size_t n;
	size_t *order; /* queries that walk the same relations stand together: they share rows */
	atomic_size_t next;
};

enum { AT_ONCE = 64 }; /* queries that a thread takes */

static double thread_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void mark_answers(struct lane *l, const struct query_set *ids, bool value)
{
	for (size_t i = 0; i < ids->n; i++)
		l->answer[ids->at[i]] = value;
}

/* Sorts the truths of what is no answer, by the graph or by the record; returns how many. */
static size_t others_of(const struct query_evaluator *v, struct lane *l,
			const struct query_record *r)
{
	const struct query_set *const sets[] = { &l->answers, &r->hard, &r->easy };
	size_t n = 0;

	query_exact_answers(l->exact, &r->tree, &l->answers);
	for (int k = 0; k < 3; k++)
		mark_answers(l, sets[k], true);
	for (uint32_t id = 0; id < v->judge.entities; id++)
		if (!l->answer[id])
			l->others[n++] = bits_of(l->truth[id]);
	for (int k = 0; k < 3; k++)
		mark_answers(l, sets[k], false);
	sort_bits(l->others, l->spare, n);
	return n;
}

static void add_rank(struct query_outcome *o, int k, double rank)
{
	struct query_figures *f = &o->by[k];

	o->answers[k]++;
	f->mrr += 1 / rank;
	f->hits1 += rank <= 1;
	f->hits3 += rank <= 3;
	f->hits10 += rank <= 10;
}

static void scale_figures(struct query_figures *f, double by)
{
	f->mrr *= by;
	f->hits1 *= by;
	f->hits3 *= by;
	f->hits10 *= by;
}

/* Edges that the answer lacks, as the walk over the graph counts them; 0: it follows from the known
 * triples, so nothing is predicted; -1: the walk does not find it, so it is another graph's, of
 * which this may be a part. */
static int missing_of(const struct lane *l, uint32_t answer)
{
	size_t at = query_set_find(&l->answers, answer);

	if (at == l->answers.n)
		return -1;
	return l->answers.cost[at] < QUERY_MISSING ? l->answers.cost[at] : QUERY_MISSING;
}

/* The i-th of the queries that its lane has begun. */
static void evaluate_one(struct query_evaluator *v, size_t lane, size_t i,
			 const struct query_record *r, struct query_outcome *o)
{
	struct lane *l = &v->lane[lane];
	double begun = thread_ms();
	size_t n;

	*o = (struct query_outcome){ .pattern = r->pattern };
	v->judge.score(v->judge.ctx, lane, i, l->truth);
	o->ms = thread_ms() - begun;
	n = others_of(v, l, r);
	for (size_t h = 0; h < r->hard.n; h++) {
		uint32_t answer = r->hard.at[h];
		double rank = rank_among(l->others, n, l->truth[answer]);
		int missing = missing_of(l, answer);

		if (missing == 0) {
			o->not_hard++;
			continue;
		}
		o->not_found += missing < 0;
		add_rank(o, 0, rank);
		if (missing > 0)
			add_rank(o, missing, rank);
	}
	for (int k = 0; k <= QUERY_MISSING; k++)
		if (o->answers[k] > 0)
			scale_figures(&o->by[k], 1.0 / o->answers[k]);
}

/* ---- search as a judge ---- */

static void search_begins(void *ctx, size_t lane, const struct query_record *const *records,
			  size_t n)
{
	struct query_evaluator *v = ctx;
	const struct query_tree *trees[AT_ONCE];

	assert(n <= AT_ONCE);
	for (size_t i = 0; i < n; i++)
		trees[i] = &records[i]->tree;
	v->lane[lane].begun = records;
	query_search_begin(v->lane[lane].search, trees, n);
}

static void search_scores(void *ctx, size_t lane, size_t i, float *score)
{
	struct query_evaluator *v = ctx;

	query_search_run(v->lane[lane].search, &v->lane[lane].begun[i]->tree, score);
}

/* ---- many ---- */

struct query_evaluator *query_evaluator_new_by(const struct query_judge *judge,
					       const struct query_evaluation_options *o)
{
	struct query_evaluator *v = mem_array(1, sizeof(*v));
	size_t n = judge->entities;

	assert(o->threads >= 1 && o->threads <= PARALLEL_MAX);
	v->judge = *judge;
	v->how = *o;
	for (uint32_t k = 0; k < o->threads; k++) {
		struct lane *l = &v->lane[k];

		l->exact = query_exact_new(o->all, o->known, judge->entities);
		l->truth = mem_aligned(n, sizeof(float));
		l->answer = mem_array(n, sizeof(*l->answer));
		l->others = mem_array(n, sizeof(*l->others));
		l->spare = mem_array(n, sizeof(*l->spare));
	}
	return v;
}

struct query_evaluator *query_evaluator_new(const struct query_truths *m,
					    const struct query_evaluation_options *o)
{
	const struct query_judge search = { NULL, m->n, search_begins, search_scores };
	struct query_evaluator *v = query_evaluator_new_by(&search, o);
	struct query_search_options each = o->search;

	v->judge.ctx = v;
	each.cache_bytes /= o->threads;
	each.threads = 1;
	for (uint32_t k = 0; k < o->threads; k++)
		v->lane[k].search = query_search_new(m, &each);
	return v;
}

void query_evaluator_free(struct query_evaluator *v)
{
	if (v == NULL)
		return;
	for (uint32_t k = 0; k < v->how.threads; k++) {
		struct lane *l = &v->lane[k];

		query_search_free(l->search);
		query_exact_free(l->exact);
		query_set_release(&l->answers);
		free(l->truth);
		free(l->answer);
		free(l->others);
		free(l->spare);
	}
	free(v);
}

/* From the root on: relations, then anchors. */
static int compare_walks(const struct query_tree *a, const struct query_tree *b)
{
	for (uint32_t i = 1; i <= a->n && i <= b->n; i++) {
		const struct query_node *x = &a->at[a->n - i], *y = &b->at[b->n - i];

		if (x->kind != y->kind)
			return x->kind < y->kind ? -1 : 1;
		if (x->id != y->id)
			return x->id < y->id ? -1 : 1;
		if (x->inverse != y->inverse)
			return y->inverse ? -1 : 1;
	}
	return (a->n > b->n) - (a->n < b->n);
}

static int compare_queries(const void *a, const void *b, void *records)
{
	size_t x = *(const size_t *)a, y = *(const size_t *)b;
	const struct query_record *at = records;
	int order = compare_walks(&at[x].tree, &at[y].tree);

	return order != 0 ? order : (x > y) - (x < y);
}

/* A thread's next queries: their first rows together, then one by one. */
static void run_some(struct query_evaluator *v, size_t lane, const size_t *order, size_t n)
{
	const struct query_record *records[AT_ONCE];
	double begun = thread_ms(), each;

	for (size_t i = 0; i < n; i++)
		records[i] = &v->records[order[i]];
	v->judge.begin(v->judge.ctx, lane, records, n);
	each = (thread_ms() - begun) / (double)n;
	for (size_t i = 0; i < n; i++) {
		evaluate_one(v, lane, i, records[i], &v->out[order[i]]);
		v->out[order[i]].ms += each;
	}
}

static void run_lane(void *ctx, size_t k, size_t threads)
{
	struct query_evaluator *v = ctx;
	size_t i;

	(void)threads;
	while ((i = atomic_fetch_add(&v->next, AT_ONCE)) < v->n)
		run_some(v, k, v->order + i, v->n - i < AT_ONCE ? v->n - i : AT_ONCE);
}

void query_evaluate(struct query_evaluator *v, const struct query_record *records, size_t n,
		    struct query_outcome *out)
{
	v->records = records;
	v->out = out;
	v->n = n;
	v->order = mem_array(n + 1, sizeof(*v->order));
	for (size_t i = 0; i < n; i++)
		v->order[i] = i;
	if (n > 0 && !v->how.as_they_come)
		qsort_r(v->order, n, sizeof(*v->order), compare_queries,
			(void *)(uintptr_t)records);
	atomic_store(&v->next, 0);
	parallel_run(v->how.threads, run_lane, v);
	free(v->order);
	v->order = NULL;
}

struct query_rows_count query_evaluator_counted(const struct query_evaluator *v)
{
	struct query_rows_count sum = { 0 };

	for (uint32_t k = 0; k < v->how.threads && v->lane[k].search != NULL; k++) {
		struct query_rows_count one = query_search_counted(v->lane[k].search);

		sum.asked += one.asked;
		sum.made += one.made;
	}
	return sum;
}

static int compare_ms(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static void add_figures(struct query_figures *sum, const struct query_figures *f)
{
	sum->mrr += f->mrr;
	sum->hits1 += f->hits1;
	sum->hits3 += f->hits3;
	sum->hits10 += f->hits10;
}

void query_summarise(const struct query_outcome *o, size_t n, enum query_pattern p,
		     struct query_summary *out)
{
	double *ms = mem_array(n + 1, sizeof(*ms));
	size_t count = 0;

	memset(out, 0, sizeof(*out));
	for (size_t i = 0; i < n; i++) {
		if (o[i].pattern != p || o[i].answers[0] == 0)
			continue;
		ms[count++] = o[i].ms;
		for (int k = 0; k <= QUERY_MISSING; k++) {
			out->queries[k] += o[i].answers[k] > 0;
			out->answers[k] += o[i].answers[k];
			add_figures(&out->by[k], &o[i].by[k]);
		}
	}
	for (int k = 0; k <= QUERY_MISSING; k++)
		if (out->queries[k] > 0)
			scale_figures(&out->by[k], 1.0 / (double)out->queries[k]);
	qsort(ms, count, sizeof(*ms), compare_ms);
	out->median_ms = count > 0 ? ms[count / 2] : 0;
	out->p99_ms = count > 0 ? ms[(99 * count + 99) / 100 - 1] : 0;
	free(ms);
}
