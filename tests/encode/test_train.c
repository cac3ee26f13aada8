/* Training an encoder: it learns, it goes on with the same bits, and it is ranked as search is. */
#include "tests/test.h"

#include "base/buf.h"
#include "base/mem.h"
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
		cmocka_unit_test(test_what_is_no_question),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
