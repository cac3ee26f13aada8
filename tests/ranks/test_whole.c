/* Several ranks, as threads, that train against all entities: with one thread each the bits of one
 * process with as many threads, whatever the model; canceled anywhere and loaded they go on alike.
 */
#include "tests/ranks/crowd.h"

#include <sodium.h>

#include "base/buf.h"
#include "kge/eval.h"
#include "ranks/trainer.h"
#include "ranks/whole.h"
#include "tests/kge/world.h"

enum { ENTITIES = 61, RELATIONS = 4, EPOCHS = 3 };

static const struct setting {
	const char *model;
	enum kge_optimizer optimizer;
	enum kge_reg reg;
	float predict, rare;
	uint32_t answers, dim;
	bool normalize;
} settings[] = {
	{ "complex_reciprocal", KGE_ADAGRAD, KGE_REG_L3, 0.5f, 1, 2, 8, false },
	{ "complex_reciprocal", KGE_ADAGRAD, KGE_REG_DURA, 0, 0.3f, 0, 8, false },
	{ "complex", KGE_SGD, KGE_REG_L2, 1, 1, 4, 8, false },
	{ "distmult", KGE_ADAM_DENSE, KGE_REG_NONE, 0, 1, 0, 16, false },
	{ "transe", KGE_ADAM_SPARSE, KGE_REG_L2, 0, 1, 0, 16, true },
	{ "rotate", KGE_MOMENTUM, KGE_REG_NONE, 0, 1, 3, 8, false },
};

static struct graph *ring_of_answers(void)
{
	struct graph *g = names(ENTITIES, RELATIONS);
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < 400; i++) {
		uint32_t a = rng_below(&r, ENTITIES), k = rng_below(&r, RELATIONS);

		graph_add(g, i % 9 == 0 ? GRAPH_VALID : GRAPH_TRAIN,
			  (struct graph_triple){ a, k, (a + k + 1 + rng_below(&r, 3)) % ENTITIES });
	}
	return g;
}

static struct kge_train_config config_against_all(const struct setting *s, uint32_t threads)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.corrupt = KGE_CORRUPT_BOTH;
	c.optimizer = s->optimizer;
	c.reg = s->reg;
	c.reg_weight = s->reg == KGE_REG_NONE ? 0 : 0.01f;
	c.relation_weight = s->predict;
	c.rare_weight = s->rare;
	c.query_answers = s->answers;
	c.normalize = s->normalize;
	c.lr = 0.05f;
	c.batch = 24;
	c.threads = threads;
	assert_int_equal(kge_train_check(&c, NULL), 0);
	return c;
}

/* ---- ranks ---- */

struct bench {
	struct crowd crowd;
	struct kge_train_config c; /* of each rank */
	struct kge_protocol protocol;
	struct graph *g;
	struct kge_emb *emb;
	struct ranks_whole *w;
	struct kge_trainer *t;
	struct err e;
};

static void *follow_rank_0(void *member)
{
	ranks_work(member);
	return NULL;
}

static void make_rank_0(struct bench *b)
{
	const struct ranks_job job = { .config = &b->c,
				       .shape = b->emb,
				       .graph = b->g,
				       .protocol = &b->protocol,
				       .limit = 30 };
	struct kge_train_config all;

	assert_int_equal(ranks_whole_new(&b->w, &b->crowd.member[0].comm, &job, &b->e), 0);
	all = ranks_whole_config(b->w);
	b->t = kge_trainer_new_among(&all, b->g, b->emb, ranks_whole_others(b->w));
}

static void drop_rank_0(struct bench *b)
{
	kge_trainer_free(b->t);
	ranks_whole_free(b->w);
}

static void open_ranks(struct bench *b, const struct setting *s, uint32_t ranks, uint32_t threads)
{
	*b = (struct bench){ .c = config_against_all(s, threads), .g = ring_of_answers() };
	b->emb = emb_of(s->model, s->dim, b->g, 6);
	b->protocol = *kge_protocol_find("standard");
	b->protocol.filter = 1u << GRAPH_TRAIN | 1u << GRAPH_VALID;
	crowd_open(&b->crowd, ranks);
	crowd_start(&b->crowd, follow_rank_0);
	make_rank_0(b);
}

static void close_ranks(struct bench *b)
{
	drop_rank_0(b);
	ranks_dismiss(&b->crowd.member[0].comm);
	crowd_end(&b->crowd);
	kge_emb_free(b->emb);
	graph_free(b->g);
}

static int one_epoch(struct bench *b, double *loss, const atomic_bool *cancel)
{
	assert_int_equal(ranks_whole_begin(b->w, b->t, b->emb, &b->e), 0);
	return kge_trainer_epoch(b->t, loss, cancel);
}

/* ---- one process ---- */

struct alone {
	struct kge_emb *emb;
	struct buf state;
	double loss[EPOCHS];
};

static void train_by_threads(struct alone *a, const struct setting *s, uint32_t threads)
{
	struct kge_train_config c = config_against_all(s, threads);
	struct graph *g = ring_of_answers();
	struct kge_trainer *t;

	*a = (struct alone){ .emb = emb_of(s->model, s->dim, g, 6) };
	t = kge_trainer_new(&c, g, a->emb);
	for (int i = 0; i < EPOCHS; i++)
		assert_int_equal(kge_trainer_epoch(t, &a->loss[i], NULL), 0);
	kge_trainer_save(t, &a->state);
	kge_trainer_free(t);
	graph_free(g);
}

static void forget_alone(struct alone *a)
{
	kge_emb_free(a->emb);
	buf_release(&a->state);
}

/* The same of ranks that nothing disturbs. */
static void train_in_peace(struct alone *a, const struct setting *s, uint32_t ranks)
{
	struct bench b;

	open_ranks(&b, s, ranks, 1);
	*a = (struct alone){ .emb = emb_of(s->model, s->dim, b.g, 6) };
	for (int i = 0; i < EPOCHS; i++)
		assert_int_equal(one_epoch(&b, &a->loss[i], NULL), 0);
	kge_emb_assign(a->emb, b.emb);
	kge_trainer_save(b.t, &a->state);
	close_ranks(&b);
}

static void assert_as_alone(const struct bench *b, const struct alone *a)
{
	struct buf state = { 0 };

	assert_memory_equal(b->emb->ent, a->emb->ent,
			    a->emb->n_ent * a->emb->ent_floats * sizeof(float));
	assert_memory_equal(b->emb->rel, a->emb->rel,
			    a->emb->n_rel * a->emb->rel_floats * sizeof(float));
	kge_trainer_save(b->t, &state); /* moments and counters */
	assert_int_equal(state.len, a->state.len);
	assert_memory_equal(state.base, a->state.base, state.len);
	buf_release(&state);
}

/* Relation prediction and DURA are added up in another order. */
static bool adds_by_positive(const struct setting *s)
{
	return s->predict > 0 || s->reg == KGE_REG_DURA;
}

static void assert_near_alone(const struct bench *b, const struct alone *a)
{
	for (size_t i = 0; i < a->emb->n_ent * a->emb->ent_floats; i++)
		assert_near((double)b->emb->ent[i], (double)a->emb->ent[i], 1e-4, 1e-4);
	for (size_t i = 0; i < a->emb->n_rel * a->emb->rel_floats; i++)
		assert_near((double)b->emb->rel[i], (double)a->emb->rel[i], 1e-4, 1e-4);
}

static void ranks_have_the_bits_of_threads(void **state)
{
	(void)state;
	for (size_t k = 0; k < sizeof(settings) / sizeof(settings[0]); k++)
		for (uint32_t ranks = 2; ranks <= 4; ranks++) {
			bool near = adds_by_positive(&settings[k]);
			struct alone a;
			struct bench b;
			double loss;

			train_by_threads(&a, &settings[k], ranks);
			open_ranks(&b, &settings[k], ranks, 1);
			for (int i = 0; i < EPOCHS; i++) {
				assert_int_equal(one_epoch(&b, &loss, NULL), 0);
				assert_near(loss, a.loss[i], near ? 1e-6 : 0, 0);
			}
			near ? assert_near_alone(&b, &a) : assert_as_alone(&b, &a);
			close_ranks(&b);
			forget_alone(&a);
		}
}

/* Before the first epoch and after some: what one process ranks, of the same triples. */
static void check_ranking(struct bench *b)
{
	const struct kge_eval_options o = { .threads = 1, .limit = 30, .seed = b->c.seed };
	struct kge_metrics got, want;

	assert_int_equal(ranks_whole_rank(b->w, b->t, b->emb, &got, &b->e), 0);
	assert_int_equal(kge_evaluate(b->emb, b->g, GRAPH_VALID, &b->protocol, &o, &want), 0);
	assert_memory_equal(&got, &want, sizeof(got));
	assert_true(got.queries == 60);
}

static void valid_is_ranked_as_by_one_process(void **state)
{
	(void)state;
	for (uint32_t ranks = 2; ranks <= 4; ranks++) {
		struct bench b;

		open_ranks(&b, &settings[ranks], ranks, 1);
		check_ranking(&b);
		for (int i = 0; i < EPOCHS; i++)
			assert_int_equal(one_epoch(&b, NULL, NULL), 0);
		check_ranking(&b);
		close_ranks(&b);
	}
}

/* With threads sums over lanes are taken in another order: near, and each time alike. */
static void threads_of_ranks_are_near_and_repeat(void **state)
{
	(void)state;
	for (size_t k = 0; k < 3; k++) {
		double first[EPOCHS], loss;
		struct alone a;

		train_by_threads(&a, &settings[k], 4);
		for (int again = 0; again < 2; again++) {
			struct bench b;

			open_ranks(&b, &settings[k], 2, 2);
			for (int i = 0; i < EPOCHS; i++) {
				assert_int_equal(one_epoch(&b, &loss, NULL), 0);
				assert_near(loss, a.loss[i], 1e-4, 1e-4);
				assert_true(again == 0 || loss == first[i]);
				first[i] = loss;
			}
			close_ranks(&b);
		}
		forget_alone(&a);
	}
}

/* Cancels rank 0 at a batch of its own; all end there. */
struct stopper {
	struct ranks_comm *comm;
	void (*collect)(struct ranks_comm *c, const void *mine, size_t n, void *all);
	atomic_bool cancel;
	int after;
};
static struct stopper stopper;

static void cancel_at_a_batch(struct ranks_comm *c, const void *mine, size_t n, void *all)
{
	if (n == 1 && stopper.after-- == 0)
		atomic_store(&stopper.cancel, true);
	stopper.collect(c, mine, n, all);
}

static void saved_in_an_epoch_it_goes_on_alike(void **state)
{
	(void)state;
	for (int at = 0; at < 8; at += 3) {
		const struct setting *s = &settings[at % 2];
		struct buf saved = { 0 };
		struct alone a;
		struct bench b;
		double loss;
		int done = 0;

		train_in_peace(&a, s, 3);
		open_ranks(&b, s, 3, 1);
		stopper.collect = b.crowd.member[0].comm.collect;
		stopper.after = at;
		atomic_store(&stopper.cancel, false);
		b.crowd.member[0].comm.collect = cancel_at_a_batch;
		done += one_epoch(&b, &loss, &stopper.cancel) == 0;
		assert_int_equal(done, 0);
		kge_trainer_save(b.t, &saved);
		drop_rank_0(&b);
		make_rank_0(&b); /* as a new start would */
		assert_int_equal(kge_trainer_load(b.t, saved.base, saved.len, &b.e), 0);
		for (; done < EPOCHS; done++)
			assert_int_equal(one_epoch(&b, &loss, NULL), 0);
		assert_true(loss == a.loss[EPOCHS - 1]);
		assert_as_alone(&b, &a);
		close_ranks(&b);
		forget_alone(&a);
		buf_release(&saved);
	}
}

static void what_ranks_cannot_is_refused(void **state)
{
	struct kge_train_config c = config_against_all(&settings[0], 1);
	const struct ranks_comm comm = { .size = 3 };
	const struct kge_model *complex = kge_model_find("complex");
	struct err e = { 0 };

	(void)state;
	assert_int_equal(ranks_whole_check(&comm, &c, complex, &e), 0);
	assert_int_equal(ranks_whole_check(&comm, &c, kge_model_find("transr"), &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "model.kind transr"));
	c.threads = 22;
	assert_int_equal(ranks_whole_check(&comm, &c, complex, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "more than 64 threads"));
	c.threads = 1;
	c.negatives = 8;
	assert_int_equal(ranks_whole_check(&comm, &c, complex, &e), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranks_have_the_bits_of_threads),
		cmocka_unit_test(valid_is_ranked_as_by_one_process),
		cmocka_unit_test(threads_of_ranks_are_near_and_repeat),
		cmocka_unit_test(saved_in_an_epoch_it_goes_on_alike),
		cmocka_unit_test(what_ranks_cannot_is_refused),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
