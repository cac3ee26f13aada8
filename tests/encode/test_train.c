/* Training an encoder: it learns, it goes on with the same bits, and it is ranked as search is. */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
#include "encode/draw.h"
#include "encode/plain.h"
#include "encode/rank.h"
#include "encode/train.h"
#include "query/sample.h"
#include "tests/kge/world.h"

enum { ENT = 40, REL = 3, EACH = 12, DIM = 8 };

struct world {
	struct graph *g;
	struct encode_corpus corpus;
	struct query_record at[EACH * (QUERY_UP + 1)];
	size_t n;
};

static void world_init(struct world *w)
{
	struct query_sample_options how = { .all = 1u << GRAPH_TRAIN, .seed = 4, .answers_max = 8 };
	struct query_sampler *s;

	*w = (struct world){ .g = names(ENT, REL) };
	for (uint32_t i = 0; i < ENT; i++)
		for (uint32_t r = 0; r < REL; r++)
			graph_add(w->g, GRAPH_TRAIN,
				  (struct graph_triple){ i, r, (i * (r + 1) + 5 * r + 1) % ENT });
	s = query_sampler_new(w->g, &how);
	for (int p = 0; p <= QUERY_UP; p++)
		for (int i = 0; i < EACH; i++) {
			assert_int_equal(
				query_sampler_next(s, (enum query_pattern)p, 10000, &w->at[w->n]),
				1);
			assert_true(encode_corpus_add(&w->corpus, &w->at[w->n]));
			w->n++;
		}
	query_sampler_free(s);
}

static void world_release(struct world *w)
{
	for (size_t i = 0; i < w->n; i++)
		query_record_release(&w->at[i]);
	encode_corpus_release(&w->corpus);
	graph_free(w->g);
}

static struct encode_model *new_model(enum encode_kind kind)
{
	const struct encode_settings s = { kind, DIM, 2 };
	struct rng r;

	rng_seed(&r, 3);
	return encode_model_new(&s, ENT, REL, &r);
}

static struct encode_train_options options(uint32_t threads)
{
	return (struct encode_train_options){ .batch = 32,
					      .lr = 0.01f,
					      .decay = 0.01f,
					      .smoothing = 0.1f,
					      .dropout = 0.1f,
					      .threads = threads,
					      .seed = 9 };
}

/* Mean reciprocal rank of the training queries: nothing is known, so all answers are hard. */
static double own_mrr(const struct world *w, const struct encode_model *m, uint32_t threads)
{
	struct graph_index *all = graph_index_new(w->g, 1u << GRAPH_TRAIN),
			   *known = graph_index_new(w->g, 0);
	const struct query_evaluation_options o = { .threads = threads,
						    .all = all,
						    .known = known };
	struct encode_ranker *r = encode_ranker_new(m, threads);
	struct query_judge judge = encode_ranker_judge(r);
	struct query_evaluator *v = query_evaluator_new_by(&judge, &o);
	struct query_outcome *out = mem_array(w->n, sizeof *out);
	double sum = 0;

	query_evaluate(v, w->at, w->n, out);
	assert_int_equal(query_evaluator_counted(v).asked, 0);
	for (size_t i = 0; i < w->n; i++)
		sum += out[i].by[0].mrr;
	free(out);
	query_evaluator_free(v);
	encode_ranker_free(r);
	graph_index_free(all);
	graph_index_free(known);
	return sum / (double)w->n;
}

static void test_learns(void **state)
{
	const struct encode_train_options o = options(2);
	struct world w;

	(void)state;
	world_init(&w);
	for (int kind = 0; kind < ENCODE_KINDS; kind++) {
		struct encode_model *m = new_model((enum encode_kind)kind);
		struct encode_trainer *t = encode_trainer_new(m, &w.corpus, &o);
		double before = own_mrr(&w, m, 1), first = encode_trainer_run(t, 4), last;

		(void)encode_trainer_run(t, 292);
		last = encode_trainer_run(t, 4);
		if (!(last < first - 0.7))
			fail_msg("%s: loss %g, later %g", encode_kind_words[kind], first, last);
		assert_true(own_mrr(&w, m, 1) > before + 0.2);
		assert_true(own_mrr(&w, m, 1) == own_mrr(&w, m, 3));
		assert_int_equal(encode_trainer_done(t), 300);
		encode_trainer_free(t);
		encode_model_free(m);
	}
	world_release(&w);
}

/* ---- going on ---- */

static void put_bytes(void *to, const void *bytes, size_t n)
{
	buf_add(to, bytes, n);
}

/* Steps `first`, then in another trainer `then`; the state at the end. */
static struct buf state_after(const struct world *w, uint64_t first, uint64_t then)
{
	const struct encode_train_options o = options(2);
	struct buf at = { 0 };

	for (int part = 0; part < 2; part++) {
		struct encode_model *m = new_model(ENCODE_Q2P);
		struct encode_trainer *t = encode_trainer_new(m, &w->corpus, &o);
		uint64_t n = part == 0 ? first : then;

		if (part == 1) {
			assert_int_equal(encode_trainer_load(t, at.base, at.len, NULL), 0);
			assert_int_equal(encode_trainer_load(t, at.base, at.len - 4, NULL),
					 ERR_INPUT);
			buf_clear(&at);
		}
		if (n > 0)
			(void)encode_trainer_run(t, n);
		encode_trainer_save(t, put_bytes, &at);
		encode_trainer_free(t);
		encode_model_free(m);
	}
	return at;
}

static void test_goes_on(void **state)
{
	struct world w;
	struct buf whole, parts, other;

	(void)state;
	world_init(&w);
	whole = state_after(&w, 9, 0);
	parts = state_after(&w, 5, 4); /* an epoch is 4 steps, so within the second */
	other = state_after(&w, 5, 3);
	assert_int_equal(whole.len, parts.len);
	assert_memory_equal(whole.base, parts.base, whole.len);
	assert_true(memcmp(whole.base, other.base, whole.len) != 0);
	buf_release(&whole);
	buf_release(&parts);
	buf_release(&other);
	world_release(&w);
}

/* ---- what a step does ---- */

/* An n-th question of a pattern, all anchors and relations of which are its number. */
static void add_question(struct encode_corpus *c, enum query_pattern p, uint32_t n,
			 uint32_t answers)
{
	struct query_record r = { .pattern = p };
	uint32_t anchors[QUERY_ANCHORS_MAX];
	struct query_step steps[QUERY_STEPS_MAX];

	for (size_t i = 0; i < QUERY_ANCHORS_MAX; i++)
		anchors[i] = n;
	for (size_t i = 0; i < QUERY_STEPS_MAX; i++)
		steps[i] = (struct query_step){ n % REL, i % 2 == 1 };
	query_pattern_build(&r.tree, p, anchors, steps);
	for (uint32_t i = 0; i < answers; i++)
		query_set_add(i % 2 == 0 ? &r.hard : &r.easy, (n + i + 1) % ENT, i % 2 == 0);
	assert_true(encode_corpus_add(c, &r));
	query_record_release(&r);
}

/* The losses of n steps of one question each, at which nothing moves. */
static void losses_of_parts(const struct encode_corpus *c, float dropout, size_t n, double *loss)
{
	struct encode_train_options o = options(1);
	struct encode_model *m = new_model(ENCODE_GQE);
	struct encode_trainer *t;

	o.batch = 1;
	o.lr = 0;
	o.dropout = dropout;
	t = encode_trainer_new(m, c, &o);
	for (size_t i = 0; i < n; i++)
		loss[i] = encode_trainer_run(t, 1);
	encode_trainer_free(t);
	encode_model_free(m);
}

static int smaller_first(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static size_t count_different(double *x, size_t n)
{
	size_t different = 0;

	qsort(x, n, sizeof(*x), smaller_first);
	for (size_t i = 0; i < n; i++)
		different += i == 0 || x[i] != x[i - 1];
	return different;
}

/* Dropout alone tells the steps of one question with one answer apart. */
static void test_dropout_is_drawn_anew(void **state)
{
	enum { N = 30 };
	struct encode_corpus c = { 0 };
	double loss[N];

	(void)state;
	add_question(&c, QUERY_2I, 1, 1);
	losses_of_parts(&c, 0, N, loss);
	assert_int_equal(count_different(loss, N), 1);
	losses_of_parts(&c, 0.5f, N, loss);
	assert_true(count_different(loss, N) > 2);
	encode_corpus_release(&c);
}

/* Hard and easy ones. */
static void test_each_answer_is_drawn(void **state)
{
	enum { N = 200, ANSWERS = 5 };
	struct encode_corpus c = { 0 };
	double loss[N];

	(void)state;
	add_question(&c, QUERY_1P, 1, ANSWERS);
	losses_of_parts(&c, 0, N, loss);
	assert_int_equal(count_different(loss, N), ANSWERS);
	encode_corpus_release(&c);
}

/* An epoch asks every question once, and each in an order of its own. */
static void test_epochs_are_shuffled(void **state)
{
	enum { N = 12 };
	struct encode_corpus c = { 0 };
	double loss[2 * N];
	bool same;

	(void)state;
	for (uint32_t i = 0; i < N; i++)
		add_question(&c, QUERY_1P, i, 1);
	losses_of_parts(&c, 0, 2 * N, loss);
	same = memcmp(loss, loss + N, N * sizeof(*loss)) == 0;
	assert_false(same);
	assert_int_equal(count_different(loss, N), N);
	assert_int_equal(count_different(loss + N, N), N);
	assert_memory_equal(loss, loss + N, N * sizeof(*loss));
	encode_corpus_release(&c);
}

static struct encode_model *model_after_a_step(const struct world *w, float decay)
{
	struct encode_train_options o = options(2);
	struct encode_model *m = new_model(ENCODE_TREE_LSTM);
	struct encode_trainer *t;

	o.decay = decay;
	t = encode_trainer_new(m, &w->corpus, &o);
	(void)encode_trainer_run(t, 1);
	encode_trainer_free(t);
	return m;
}

static void check_decayed(const float *begin, const float *plain, const float *decayed, size_t n)
{
	for (size_t i = 0; i < n; i++)
		assert_near((double)(plain[i] - decayed[i]), 0.01 * 0.5 * (double)begin[i], 1e-3,
			    1e-6);
}

/* Numbers that have moved by `step`, as Adam's first step does whatever the slope is. */
static size_t as_long_as(const float *a, const float *b, size_t n, double step)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabs(fabs((double)a[i] - (double)b[i]) - step) < 0.01 * step;
	return sum;
}

/* w -= lr decay w of all parameters, beside Adam's step. */
static void test_all_parameters_decay(void **state)
{
	struct world w;
	struct encode_model *begin, *plain, *decayed;

	(void)state;
	world_init(&w);
	begin = new_model(ENCODE_TREE_LSTM);
	plain = model_after_a_step(&w, 0);
	decayed = model_after_a_step(&w, 0.5f);
	assert_true(as_long_as(begin->op, plain->op, begin->op_floats, 0.01) >
		    begin->op_floats * 9 / 10);
	check_decayed(begin->ent, plain->ent, decayed->ent, (size_t)ENT * DIM);
	check_decayed(begin->rel, plain->rel, decayed->rel, (size_t)2 * REL * DIM);
	check_decayed(begin->op, plain->op, decayed->op, begin->op_floats);
	encode_model_free(begin);
	encode_model_free(plain);
	encode_model_free(decayed);
	world_release(&w);
}

static struct encode_model *model_by_threads(const struct world *w, uint32_t threads)
{
	struct encode_train_options o = options(threads);
	struct encode_model *m = new_model(ENCODE_GQE);
	struct encode_trainer *t;

	o.dropout = 0;
	t = encode_trainer_new(m, &w->corpus, &o);
	(void)encode_trainer_run(t, 1);
	encode_trainer_free(t);
	return m;
}

/* Adam's first step is as long whatever the slope is, so one next to 0 may turn; a lost one turns
 * many. */
static size_t rows_turned(const float *a, const float *b, size_t n)
{
	size_t sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabsf(a[i] - b[i]) > 0.001f;
	return sum;
}

static void test_all_threads_move_all_tables(void **state)
{
	struct world w;
	struct encode_model *one, *three;

	(void)state;
	world_init(&w);
	one = model_by_threads(&w, 1);
	three = model_by_threads(&w, 3);
	assert_true(rows_turned(one->ent, three->ent, (size_t)ENT * DIM) < ENT * DIM / 50);
	assert_true(rows_turned(one->rel, three->rel, (size_t)2 * REL * DIM) < 2);
	assert_true(rows_turned(one->op, three->op, one->op_floats) < one->op_floats / 50 + 1);
	encode_model_free(one);
	encode_model_free(three);
	world_release(&w);
}

/* ---- as a judge ---- */

/* Questions of all types at once, each as it is by itself. */
static void test_a_judge_tells_types_apart(void **state)
{
	struct encode_model *m = new_model(ENCODE_TREE_LSTM);
	struct encode_ranker *r = encode_ranker_new(m, 1);
	struct query_judge judge = encode_ranker_judge(r);
	const struct query_record *at[EACH * (QUERY_UP + 1)];
	struct world w;

	(void)state;
	world_init(&w);
	for (size_t i = 0; i < w.n; i++) /* 1p, 2p, ..., and again */
		at[i] = &w.at[i % (QUERY_UP + 1) * EACH + i / (QUERY_UP + 1)];
	judge.begin(judge.ctx, 0, at, w.n);
	for (size_t i = 0; i < w.n; i += 5) {
		struct encode_question q = encode_question_of(at[i]);
		double vector[DIM];
		float score[ENT];

		encode_plain_vectors(m, &q, vector);
		judge.score(judge.ctx, 0, i, score);
		for (size_t v = 0; v < ENT; v++) {
			double want = 0;

			for (size_t k = 0; k < DIM; k++)
				want += vector[k] * (double)m->ent[v * DIM + k];
			assert_near((double)score[v], want, 1e-4, 1e-5);
		}
	}
	encode_ranker_free(r);
	encode_model_free(m);
	world_release(&w);
}

/* Of a pool's queries none is one graph's own: relation 0 is the first's, 1 the second's. */
static void test_questions_of_several_graphs(void **state)
{
	static const uint64_t holders[REL] = { 1, 2, 3 };
	const struct encode_draw d = { ENCODE_ALL, EACH, 100, 5, holders };
	struct encode_corpus c = { 0 };
	struct world w;

	(void)state;
	world_init(&w);
	encode_corpus_sample(&c, w.g, &d);
	assert_true(c.n > EACH);
	for (size_t i = 0; i < c.n; i++) {
		uint64_t all = 3;

		for (uint32_t k = 0; k < query_pattern_steps(c.at[i].pattern); k++)
			all &= holders[c.at[i].step[k] / 2];
		assert_int_equal(all, 0);
	}
	encode_corpus_release(&c);
	world_release(&w);
}

/* ---- looks ---- */

/* From i relation 0 leads to i + 1 in train, to i + 2 in valid, to i + 3 in test. */
static void test_looks_are_of_one_split(void **state)
{
	const struct encode_draw d = { 1u << QUERY_1P, 20, 10, 3, NULL };
	struct graph *g = names(ENT, REL);

	(void)state;
	for (uint32_t i = 0; i < ENT; i++)
		for (uint32_t s = 0; s < GRAPH_SPLITS; s++)
			graph_add(g, (enum graph_split)s,
				  (struct graph_triple){ i, 0, (i + s + 1) % ENT });
	for (int s = GRAPH_VALID; s <= GRAPH_TEST; s++) {
		struct encode_look l;

		encode_look_open(&l, g, (enum graph_split)s, 1);
		encode_look_sample(&l, g, (enum graph_split)s, &d);
		assert_int_equal(l.n, 20);
		for (size_t i = 0; i < l.n; i++) {
			const struct query_node *at = l.at[i].tree.at;
			uint32_t steps = (uint32_t)s + 1;

			assert_int_equal(l.at[i].hard.n, 1);
			assert_int_equal(l.at[i].easy.n, s); /* of the splits before */
			assert_int_equal(l.at[i].hard.at[0],
					 (at[0].id + (at[1].inverse ? ENT - steps : steps)) % ENT);
		}
		assert_int_equal(graph_index_has(l.known, (struct graph_triple){ 0, 0, 2 }),
				 s == GRAPH_TEST);
		encode_look_release(&l);
	}
	graph_free(g);
}

/* Types of which there is no query, or none with a hard answer, are in no mean. */
static void test_means_are_over_types(void **state)
{
	static const struct query_outcome out[] = {
		{ .pattern = QUERY_1P, .answers = { 1 }, .by = { { 1, 1, 1, 1 } } },
		{ .pattern = QUERY_2I, .answers = { 3 }, .by = { { .2, 0, 0, 1 } } },
		{ .pattern = QUERY_2I, .answers = { 1 }, .by = { { .4, 0, 1, 1 } } },
		{ .pattern = QUERY_2P },
	};
	struct query_figures f = encode_look_mean(out, 4);

	(void)state;
	assert_near(f.mrr, (1 + .3) / 2, 1e-12, 0);
	assert_near(f.hits1, .5, 1e-12, 0);
	assert_near(f.hits3, .75, 1e-12, 0);
	assert_near(f.hits10, 1, 1e-12, 0);
	assert_near(encode_look_mean(out, 0).mrr, 0, 0, 0);
}

static void test_what_is_no_question(void **state)
{
	struct encode_corpus c = { 0 };
	struct query_record r = { .pattern = QUERY_2IN }, none = { .pattern = QUERY_1P };

	(void)state;
	query_set_add(&r.hard, 1, 1);
	assert_false(encode_corpus_add(&c, &r));
	assert_false(encode_corpus_add(&c, &none));
	assert_int_equal(c.n, 0);
	query_record_release(&r);
	encode_corpus_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_learns),
		cmocka_unit_test(test_goes_on),
		cmocka_unit_test(test_dropout_is_drawn_anew),
		cmocka_unit_test(test_each_answer_is_drawn),
		cmocka_unit_test(test_epochs_are_shuffled),
		cmocka_unit_test(test_all_parameters_decay),
		cmocka_unit_test(test_all_threads_move_all_tables),
		cmocka_unit_test(test_a_judge_tells_types_apart),
		cmocka_unit_test(test_questions_of_several_graphs),
		cmocka_unit_test(test_looks_are_of_one_split),
		cmocka_unit_test(test_means_are_over_types),
		cmocka_unit_test(test_what_is_no_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
