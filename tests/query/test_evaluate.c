/* Ranks of hard answers against plain counting, the means, and threads. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "query/evaluate.h"

enum { ENT = 50, REL = 4, QUERIES = 40, TRAIN = 1u << GRAPH_TRAIN, VALID = 1u << GRAPH_VALID };

struct world {
	struct graph *g;
	struct kge_emb *emb;
	struct query_truths *truths;
	struct graph_index *known, *all;
	struct query_record at[QUERIES];
};

static struct graph_triple any_triple(struct rng *r)
{
	return (struct graph_triple){ rng_below(r, ENT), rng_below(r, REL), rng_below(r, ENT) };
}

/* A query of any pattern with its hard answers by the graph; returns whether it has some. */
static bool any_record(struct rng *r, struct query_exact *exact, struct query_record *out)
{
	uint32_t anchors[QUERY_ANCHORS_MAX];
	struct query_step steps[QUERY_STEPS_MAX];

	for (int i = 0; i < QUERY_ANCHORS_MAX; i++)
		anchors[i] = rng_below(r, ENT);
	for (int i = 0; i < QUERY_STEPS_MAX; i++)
		steps[i] = (struct query_step){ rng_below(r, REL), rng_below(r, 2) == 1 };
	out->pattern = (enum query_pattern)rng_below(r, QUERY_PATTERNS);
	query_pattern_build(&out->tree, out->pattern, anchors, steps);
	query_exact_answers(exact, &out->tree, &out->hard);
	query_exact_part(&out->hard, &out->easy);
	return out->hard.n > 0;
}

static void world_init(struct world *w)
{
	const struct query_scale scale = { QUERY_SOFTMAX, 0.7f, 0 };
	struct query_exact *exact;
	struct rng r;

	rng_seed(&r, 12);
	*w = (struct world){ .g = names(ENT, REL) };
	for (int i = 0; i < 200; i++)
		graph_add(w->g, i < 160 ? GRAPH_TRAIN : GRAPH_VALID, any_triple(&r));
	w->emb = kge_emb_new(kge_model_find("complex"), 6, 9, ENT, REL, &r);
	w->truths = query_truths_new(w->emb, w->g, &scale, TRAIN);
	w->known = graph_index_new(w->g, TRAIN);
	w->all = graph_index_new(w->g, TRAIN | VALID);
	exact = query_exact_new(w->all, w->known, ENT);
	for (int i = 0; i < QUERIES;)
		i += any_record(&r, exact, &w->at[i]);
	query_exact_free(exact);
}

static void world_release(struct world *w)
{
	for (int i = 0; i < QUERIES; i++)
		query_record_release(&w->at[i]);
	graph_index_free(w->known);
	graph_index_free(w->all);
	query_truths_free(w->truths);
	kge_emb_free(w->emb);
	graph_free(w->g);
}

static void evaluate(const struct world *w, uint32_t threads, struct query_outcome out[QUERIES])
{
	const struct query_evaluation_options o = { .search = { .beam = 8, .cache_bytes = 1 << 14 },
						    .threads = threads,
						    .all = w->all,
						    .known = w->known };
	struct query_evaluator *v = query_evaluator_new(w->truths, &o);

	query_evaluate(v, w->at, QUERIES / 2, out);
	query_evaluate(v, w->at + QUERIES / 2, QUERIES - QUERIES / 2, out + QUERIES / 2);
	assert_true(query_evaluator_counted(v).asked > 0);
	query_evaluator_free(v);
}

/* ---- the definition (methods 5.1) ---- */

static double plain_rank(const struct query_record *q, const float truth[ENT], uint32_t answer)
{
	double greater = 0, equal = 0;

	for (uint32_t e = 0; e < ENT; e++) {
		if (query_set_find(&q->hard, e) < q->hard.n ||
		    query_set_find(&q->easy, e) < q->easy.n)
			continue;
		greater += truth[e] > truth[answer];
		equal += truth[e] == truth[answer];
	}
	return 1 + greater + equal / 2;
}

static struct query_figures plain_figures(const struct query_record *q, const float truth[ENT],
					  unsigned cost)
{
	struct query_figures f = { 0 };
	double n = 0;

	for (size_t i = 0; i < q->hard.n; i++) {
		double rank = plain_rank(q, truth, q->hard.at[i]);
		unsigned missing =
			q->hard.cost[i] < QUERY_MISSING ? q->hard.cost[i] : QUERY_MISSING;

		if (cost > 0 && missing != cost)
			continue;
		f.mrr += 1 / rank;
		f.hits1 += rank <= 1;
		f.hits3 += rank <= 3;
		f.hits10 += rank <= 10;
		n++;
	}
	n = n > 0 ? n : 1;
	return (struct query_figures){ f.mrr / n, f.hits1 / n, f.hits3 / n, f.hits10 / n };
}

static void test_ranks_are_as_defined(void **state)
{
	struct query_search_options o = { .beam = 8, .threads = 1 };
	struct query_outcome got[QUERIES];
	struct query_search *s;
	struct world w;

	(void)state;
	world_init(&w);
	evaluate(&w, 1, got);
	s = query_search_new(w.truths, &o);
	for (int i = 0; i < QUERIES; i++) {
		float truth[ENT];

		query_search_run(s, &w.at[i].tree, truth);
		assert_int_equal(got[i].answers[0], w.at[i].hard.n);
		assert_int_equal(got[i].pattern, w.at[i].pattern);
		for (unsigned k = 0; k <= QUERY_MISSING; k++) {
			struct query_figures want = plain_figures(&w.at[i], truth, k);

			assert_near(got[i].by[k].mrr, want.mrr, 1e-12, 0);
			assert_near(got[i].by[k].hits1, want.hits1, 1e-12, 0);
			assert_near(got[i].by[k].hits3, want.hits3, 1e-12, 0);
			assert_near(got[i].by[k].hits10, want.hits10, 1e-12, 0);
		}
	}
	query_search_free(s);
	world_release(&w);
}

static void test_threads_change_no_figure(void **state)
{
	struct query_outcome one[QUERIES], three[QUERIES];
	struct world w;

	(void)state;
	world_init(&w);
	evaluate(&w, 1, one);
	evaluate(&w, 3, three);
	for (int i = 0; i < QUERIES; i++) {
		one[i].ms = three[i].ms = 0;
		assert_memory_equal(&one[i].by, &three[i].by, sizeof(one[i].by));
		assert_memory_equal(&one[i].answers, &three[i].answers, sizeof(one[i].answers));
	}
	world_release(&w);
}

/* Answers that follow from the known triples are not ranked, whatever the file says. */
static void test_known_answers_are_not_hard(void **state)
{
	struct query_outcome as_drawn[QUERIES], all_hard[QUERIES];
	size_t known = 0;
	struct world w;

	(void)state;
	world_init(&w);
	evaluate(&w, 1, as_drawn);
	for (int i = 0; i < QUERIES; i++) {
		struct query_record *q = &w.at[i];

		known += q->easy.n;
		for (size_t k = 0; k < q->easy.n; k++)
			query_set_add(&q->hard, q->easy.at[k], 0);
		query_set_sort(&q->hard);
	}
	evaluate(&w, 1, all_hard);
	for (int i = 0; i < QUERIES; i++) {
		assert_int_equal(as_drawn[i].not_hard, 0);
		assert_int_equal(all_hard[i].not_hard, w.at[i].easy.n);
		assert_memory_equal(&as_drawn[i].by, &all_hard[i].by, sizeof(as_drawn[i].by));
		assert_memory_equal(&as_drawn[i].answers, &all_hard[i].answers,
				    sizeof(as_drawn[i].answers));
	}
	assert_true(known > 0);
	world_release(&w);
}

/* Answers that the walk does not find are ranked, as those of a part of a graph have to be, and
 * counted: they may as well be of another graph. */
static void test_answers_that_nothing_leads_to_are_counted(void **state)
{
	struct query_outcome as_drawn[QUERIES], more[QUERIES];
	struct world w;

	(void)state;
	world_init(&w);
	evaluate(&w, 1, as_drawn);
	for (int i = 0; i < QUERIES; i++) {
		struct query_record *q = &w.at[i];
		uint32_t stranger = 0;

		while (query_set_find(&q->hard, stranger) < q->hard.n ||
		       query_set_find(&q->easy, stranger) < q->easy.n)
			stranger++;
		query_set_add(&q->hard, stranger, 0);
		query_set_sort(&q->hard);
	}
	evaluate(&w, 1, more);
	for (int i = 0; i < QUERIES; i++) {
		assert_int_equal(as_drawn[i].not_found, 0);
		assert_int_equal(more[i].not_found, 1);
		assert_int_equal(more[i].answers[0], as_drawn[i].answers[0] + 1);
		assert_memory_equal(&as_drawn[i].answers[1], &more[i].answers[1],
				    QUERY_MISSING * sizeof(more[i].answers[1]));
	}
	world_release(&w);
}

/* An easy answer that the walk does not find, as of a part of a graph, does not compete either. */
static void easy_first(void *ctx, size_t lane, size_t i, float *score)
{
	const struct query_record *q = ctx;

	(void)lane, (void)i;
	for (uint32_t e = 0; e < ENT; e++)
		score[e] = query_set_find(&q->easy, e) < q->easy.n   ? 2
			   : query_set_find(&q->hard, e) < q->hard.n ? 1
								     : 0;
}

static void begins_nothing(void *ctx, size_t lane, const struct query_record *const *records,
			   size_t n)
{
	(void)ctx, (void)lane, (void)records, (void)n;
}

static void test_easy_answers_of_the_record_do_not_compete(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	for (int i = 0; i < QUERIES; i++) {
		const struct query_evaluation_options o = { .threads = 1,
							    .all = w.all,
							    .known = w.known };
		struct query_record *q = &w.at[i];
		const struct query_judge judge = { q, ENT, begins_nothing, easy_first };
		struct query_evaluator *v = query_evaluator_new_by(&judge, &o);
		struct query_outcome out;
		uint32_t stranger = 0;

		while (query_set_find(&q->hard, stranger) < q->hard.n ||
		       query_set_find(&q->easy, stranger) < q->easy.n)
			stranger++;
		query_set_add(&q->easy, stranger, 0);
		query_set_sort(&q->easy);
		query_evaluate(v, q, 1, &out);
		assert_near(out.by[0].mrr, 1, 0, 0);
		query_evaluator_free(v);
	}
	world_release(&w);
}

struct broken {
	const struct query_record *q;
	float hard, other; /* scores of hard answers, and of all others */
};

static void broken_begins(void *ctx, size_t lane, const struct query_record *const *records,
			  size_t n)
{
	(void)lane, (void)records, (void)n;
	assert_non_null(ctx);
}

static void broken_scores(void *ctx, size_t lane, size_t i, float *score)
{
	const struct broken *b = ctx;

	(void)lane, (void)i;
	for (uint32_t e = 0; e < ENT; e++)
		score[e] = query_set_find(&b->q->hard, e) < b->q->hard.n ? b->hard : b->other;
}

static double mrr_by(const struct world *w, float hard, float other)
{
	const struct query_evaluation_options o = { .threads = 1,
						    .all = w->all,
						    .known = w->known };
	struct broken b = { &w->at[0], hard, other };
	const struct query_judge judge = { &b, ENT, broken_begins, broken_scores };
	struct query_evaluator *v = query_evaluator_new_by(&judge, &o);
	struct query_outcome out;

	query_evaluate(v, w->at, 1, &out);
	query_evaluator_free(v);
	return out.by[0].mrr;
}

/* An encoder may diverge in some rows: NaN of either sign ties with the worst score. */
static void test_nan_is_the_worst_score(void **state)
{
	struct world w;
	double others;

	(void)state;
	world_init(&w);
	others = (double)(ENT - w.at[0].hard.n - w.at[0].easy.n);
	for (int sign = -1; sign <= 1; sign += 2) {
		float nan = copysignf(NAN, (float)sign);

		assert_near(mrr_by(&w, nan, -1e30f), 1 / (1 + others), 1e-12, 0);
		assert_near(mrr_by(&w, -1e30f, nan), 1, 1e-12, 0);
		assert_near(mrr_by(&w, nan, -nan), 1 / (1 + others / 2), 1e-12, 0);
		assert_near(mrr_by(&w, nan, -INFINITY), 1 / (1 + others / 2), 1e-12, 0);
	}
	world_release(&w);
}

struct listed {
	const struct query_record *at[QUERIES];
	size_t n;
};

static void listed_begins(void *ctx, size_t lane, const struct query_record *const *records,
			  size_t n)
{
	struct listed *l = ctx;

	(void)lane;
	for (size_t i = 0; i < n; i++)
		l->at[l->n++] = records[i];
}

static void listed_scores(void *ctx, size_t lane, size_t i, float *score)
{
	(void)ctx, (void)lane, (void)i;
	memset(score, 0, ENT * sizeof(*score));
}

/* Who asks others asks in the order of the file: that of relations would follow ids. */
static void test_records_are_taken_as_they_come(void **state)
{
	struct world w;

	(void)state;
	world_init(&w);
	for (int as_they_come = 0; as_they_come < 2; as_they_come++) {
		const struct query_evaluation_options o = { .threads = 1,
							    .all = w.all,
							    .known = w.known,
							    .as_they_come = as_they_come == 1 };
		struct listed l = { .n = 0 };
		const struct query_judge judge = { &l, ENT, listed_begins, listed_scores };
		struct query_evaluator *v = query_evaluator_new_by(&judge, &o);
		struct query_outcome out[QUERIES];
		size_t moved = 0;

		query_evaluate(v, w.at, QUERIES, out);
		query_evaluator_free(v);
		assert_int_equal(l.n, QUERIES);
		for (size_t i = 0; i < QUERIES; i++)
			moved += l.at[i] != &w.at[i];
		assert_int_equal(moved == 0, as_they_come);
	}
	world_release(&w);
}

/* Means over the queries of a type, each counting as much. */
static void test_a_summary_is_the_mean_of_its_type(void **state)
{
	const struct query_outcome o[] = {
		{ .pattern = QUERY_2P, .answers = { 9, 9 }, .by = { { .mrr = 1 }, { .mrr = 1 } } },
		{ .pattern = QUERY_2I, .answers = { 1 }, .by = { { .mrr = 0.25 } } },
		{ .pattern = QUERY_2P, .answers = { 1, 0, 1 }, .by = { { .mrr = 0.5 } }, .ms = 3 },
		{ .pattern = QUERY_2P, .not_hard = 1, .ms = 99 },
	};
	struct query_summary s;

	(void)state;
	query_summarise(o, 4, QUERY_2P, &s);
	assert_near(s.by[0].mrr, 0.75, 1e-12, 0);
	assert_near(s.by[1].mrr, 1, 1e-12, 0);
	assert_int_equal(s.queries[0], 2);
	assert_int_equal(s.queries[1], 1);
	assert_int_equal(s.answers[0], 10);
	assert_near(s.median_ms, 3, 0, 0);
	assert_near(s.p99_ms, 3, 0, 0); /* of two the larger */
	query_summarise(o, 4, QUERY_PIN, &s);
	assert_int_equal(s.queries[0], 0);
}

/* The 99th of a hundred is the least that 99 of 100 do not exceed. */
static void test_a_percentile_is_one_of_the_times(void **state)
{
	struct query_outcome o[100] = { { .pattern = QUERY_1P } };
	struct query_summary s;

	(void)state;
	for (int i = 0; i < 100; i++)
		o[i] = (struct query_outcome){ .pattern = QUERY_1P,
					       .answers = { 1 },
					       .ms = 100 - i };
	query_summarise(o, 100, QUERY_1P, &s);
	assert_near(s.p99_ms, 99, 0, 0);
	query_summarise(o, 1, QUERY_1P, &s);
	assert_near(s.p99_ms, 100, 0, 0);
}

/* ---- hits ---- */

static void begin_nothing(void *ctx, size_t lane, const struct query_record *const *records,
			  size_t n)
{
	(void)ctx, (void)lane, (void)records, (void)n;
}

/* Entity v has rank v, and 0 is the anchor, the worst. */
static void score_by_id(void *ctx, size_t lane, size_t i, float *scores)
{
	(void)ctx, (void)lane, (void)i;
	for (uint32_t v = 0; v < 12; v++)
		scores[v] = v == 0 ? -20 : -(float)v;
}

/* A hit at k has a rank of k at most. */
static void test_hits_are_up_to_their_rank(void **state)
{
	const struct query_judge judge = { NULL, 12, begin_nothing, score_by_id };
	const struct query_step step = { 0, false };
	const uint32_t anchor = 0;

	(void)state;
	for (uint32_t rank = 1; rank < 12; rank++) {
		struct graph *g = names(12, 1);
		struct query_evaluation_options o = { .threads = 1 };
		struct query_record q = { .pattern = QUERY_1P };
		struct query_outcome got;
		struct query_evaluator *v;

		graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, rank });
		o.known = graph_index_new(g, TRAIN);
		o.all = graph_index_new(g, TRAIN | VALID);
		v = query_evaluator_new_by(&judge, &o);
		query_pattern_build(&q.tree, QUERY_1P, &anchor, &step);
		query_set_add(&q.hard, rank, 1);
		query_evaluate(v, &q, 1, &got);
		assert_int_equal(got.answers[0], 1);
		assert_near(got.by[0].mrr, 1. / rank, 1e-12, 0);
		assert_near(got.by[0].hits1, rank <= 1, 0, 0);
		assert_near(got.by[0].hits3, rank <= 3, 0, 0);
		assert_near(got.by[0].hits10, rank <= 10, 0, 0);
		query_evaluator_free(v);
		query_record_release(&q);
		graph_index_free((struct graph_index *)(uintptr_t)o.known);
		graph_index_free((struct graph_index *)(uintptr_t)o.all);
		graph_free(g);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_ranks_are_as_defined),
		cmocka_unit_test(test_threads_change_no_figure),
		cmocka_unit_test(test_known_answers_are_not_hard),
		cmocka_unit_test(test_answers_that_nothing_leads_to_are_counted),
		cmocka_unit_test(test_easy_answers_of_the_record_do_not_compete),
		cmocka_unit_test(test_a_percentile_is_one_of_the_times),
		cmocka_unit_test(test_nan_is_the_worst_score),
		cmocka_unit_test(test_records_are_taken_as_they_come),
		cmocka_unit_test(test_a_summary_is_the_mean_of_its_type),
		cmocka_unit_test(test_hits_are_up_to_their_rank),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
