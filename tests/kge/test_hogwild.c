/* Racing: its steps are the exact ones of batches of 1; one thread repeats itself and resumes;
 * several learn. */
#include "tests/kge/world.h"

#include "base/parallel.h"

/* ---- a world ---- */

/* Triples that meet each other, in a crowd so large that a negative is hardly ever a row that
 * its query steps anyway: two steps at one row are not one of their sum. */
static struct graph *crowd(void)
{
	struct graph *g = names(20000, 3);

	for (uint32_t i = 0; i < 61;
	     i++) /* an odd number: the next epoch begins with the other side */
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i % 7, i % 3, 10 + i % 13 });
	return g;
}

static struct kge_train_config config(void)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.update = KGE_UPDATE_HOGWILD;
	c.threads = 1;
	c.shared_chunk = 0;
	c.negatives = 5;
	return c;
}

/* ---- steps ---- */

static void assert_near_rows(const float *a, const float *b, const float *start, size_t n)
{
	size_t moved = 0;

	for (size_t i = 0; i < n; i++) {
		assert_near(a[i], b[i], 1e-4 * fabs((double)b[i] - (double)start[i]), 2e-6);
		moved += a[i] != start[i];
	}
	assert_true(moved > n / 20000);
}

static void check_step(const char *model, enum kge_loss loss, enum kge_optimizer o,
		       enum kge_corrupt corrupt, enum kge_sampling sampling)
{
	struct graph *g = crowd();
	struct kge_emb *start = emb_of(model, 9, g, 2), *raced = kge_emb_copy(start);
	struct kge_emb *exact = kge_emb_copy(start);
	struct kge_train_config c = config();
	double hogwild_loss;

	c.loss = loss;
	c.optimizer = o;
	c.corrupt = corrupt;
	c.sampling = sampling;
	/* where both queries of a positive step a row, the second finds it moved: O(lr^2) */
	c.lr = corrupt == KGE_CORRUPT_BOTH ? 1e-4f : 1e-3f;
	c.normalize = corrupt == KGE_CORRUPT_TAIL;
	hogwild_loss = run(&c, g, raced, 2);
	c.update = KGE_UPDATE_EXACT;
	c.batch = 1;
	assert_near(run(&c, g, exact, 2), hogwild_loss, 1e-4, 0);
	assert_near_rows(raced->ent, exact->ent, start->ent, raced->n_ent * raced->ent_floats);
	assert_near_rows(raced->rel, exact->rel, start->rel, raced->n_rel * raced->rel_floats);
	kge_emb_free(start);
	kge_emb_free(raced);
	kge_emb_free(exact);
	graph_free(g);
}

static void test_steps_are_those_of_batches_of_one(void **state)
{
	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		const char *m = kge_models[i]->name;

		check_step(m, KGE_LOSS_MARGIN, KGE_SGD, KGE_CORRUPT_TAIL, KGE_SAMPLING_TYPED);
		check_step(m, KGE_LOSS_LOGISTIC, KGE_ADAGRAD, KGE_CORRUPT_ALTERNATE,
			   KGE_SAMPLING_BERNOULLI);
		check_step(m, KGE_LOSS_SELF_ADVERSARIAL, KGE_ADAM_SPARSE, KGE_CORRUPT_ALTERNATE,
			   KGE_SAMPLING_UNIFORM);
		check_step(m, KGE_LOSS_SELF_ADVERSARIAL, KGE_SGD, KGE_CORRUPT_BOTH,
			   KGE_SAMPLING_UNIFORM);
		check_step(m, KGE_LOSS_SOFTMAX, KGE_SGD, KGE_CORRUPT_ALTERNATE,
			   KGE_SAMPLING_UNIFORM);
	}
}

/* ---- one thread ---- */

static void test_deterministic(void **state)
{
	struct graph *g = street(100); /* several takes */
	struct kge_train_config c = config();
	struct kge_emb *a = emb_of("complex", 9, g, 2), *b = kge_emb_copy(a);

	(void)state;
	run(&c, g, a, 3);
	run(&c, g, b, 3);
	assert_same(a, b, true);
	c.seed++;
	run(&c, g, b, 1);
	assert_same(a, b, false);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

static void check_resume(enum kge_optimizer o)
{
	struct graph *g = street(25); /* an odd number of triples: taking turns goes on */
	struct kge_train_config c = config();
	struct kge_emb *a = emb_of("transe", 12, g, 2), *b = kge_emb_copy(a);

	assert_int_equal(g->split[GRAPH_TRAIN].n % 2, 1);
	c.optimizer = o;
	run(&c, g, a, 5);
	run_resumed(&c, g, b, 3, 2);
	assert_same(a, b, true);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

static void test_resume(void **state)
{
	(void)state;
	check_resume(KGE_SGD);
	check_resume(KGE_ADAGRAD);
	check_resume(KGE_ADAM_SPARSE);
}

/* An epoch that another thread cancels, wherever it is by then. */
struct cut {
	struct kge_trainer *t;
	uint32_t wait;
	atomic_bool cancel;
	atomic_uint turn;
	double loss;
	int status;
};

static void cut_epoch(void *ctx, size_t k, size_t threads)
{
	struct cut *x = ctx;

	(void)threads;
	if (k == 0) {
		x->status = kge_trainer_epoch(x->t, &x->loss, &x->cancel);
		return;
	}
	while (atomic_fetch_add(&x->turn, 1) < x->wait)
		;
	atomic_store(&x->cancel, true);
}

/* Saved, and gone on with by another trainer: the same bits with one thread. */
static void test_cut(void **state)
{
	struct graph *g = street(2000);
	struct kge_train_config c = config();
	struct kge_emb *whole = emb_of("transe", 4, g, 2), *start = kge_emb_copy(whole);
	double want = run(&c, g, whole, 1);

	(void)state;
	for (uint32_t wait = 1; wait < 100000000; wait *= 10) {
		struct kge_emb *emb = kge_emb_copy(start);
		struct cut x = { .t = kge_trainer_new(&c, g, emb), .wait = wait };
		struct buf saved = { 0 };

		parallel_run(2, cut_epoch, &x);
		kge_trainer_save(x.t, &saved);
		kge_trainer_free(x.t);
		x.t = kge_trainer_new(&c, g, emb);
		assert_int_equal(kge_trainer_load(x.t, saved.base, saved.len, NULL), 0);
		assert_int_equal(kge_trainer_is_resuming(x.t), x.status != 0);
		if (x.status != 0)
			assert_int_equal(kge_trainer_epoch(x.t, &x.loss, NULL), 0);
		assert_true(x.loss == want);
		assert_same(whole, emb, true);
		wait = x.status == 0 ? 100000000 : wait; /* it was over before */
		kge_trainer_free(x.t);
		kge_emb_free(emb);
		buf_release(&saved);
	}
	kge_emb_free(whole);
	kge_emb_free(start);
	graph_free(g);
}

static void test_load_refuses_exact(void **state)
{
	struct graph *g = street(12);
	struct kge_train_config c = config();
	struct kge_emb *emb = emb_of("transe", 12, g, 2);
	struct kge_trainer *racing = kge_trainer_new(&c, g, emb), *exact;
	struct buf saved = { 0 };
	struct err e = { 0 };

	(void)state;
	kge_trainer_save(racing, &saved);
	c.update = KGE_UPDATE_EXACT;
	exact = kge_trainer_new(&c, g, emb);
	assert_int_equal(kge_trainer_load(exact, saved.base, saved.len, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "update"));
	buf_release(&saved);
	kge_trainer_free(racing);
	kge_trainer_free(exact);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_normalize(void **state)
{
	struct graph *g = street(40);
	struct kge_train_config c = config();
	struct kge_emb *emb = emb_of("transe", 12, g, 30);

	(void)state;
	c.normalize = true;
	c.loss = KGE_LOSS_MARGIN;
	c.optimizer = KGE_SGD;
	c.lr = 0.05f;
	run(&c, g, emb, 3);
	for (uint32_t i = 0; i < emb->n_ent; i++) {
		float sum = 0;

		for (size_t k = 0; k < 12; k++)
			sum += kge_ent(emb, i)[k] * kge_ent(emb, i)[k];
		assert_true(sum <= 1.0001f);
	}
	kge_emb_free(emb);
	graph_free(g);
}

static void test_nothing_to_push_away(void **state)
{
	struct graph *g = names(1, 1);
	struct kge_train_config c = config();
	struct kge_emb *emb = emb_of("transe", 3, g, 2);

	(void)state;
	assert_true(run(&c, g, emb, 1) == 0); /* no triple at all */
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 0 });
	assert_true(run(&c, g, emb, 1) > 0);
	for (size_t i = 0; i < 3; i++)
		assert_true(isfinite(emb->ent[i]) && isfinite(emb->rel[i]));
	kge_emb_free(emb);
	graph_free(g);
}

/* ---- several ---- */

static void test_cancel(void **state)
{
	struct graph *g = street(100);
	struct kge_train_config c = config();

	(void)state;
	c.threads = 2;
	check_cancel(&c, g);
	graph_free(g);
}

/* A tenth of the rate from the middle of two epochs on: the first is as it would be without, and
 * the second is not. */
static void test_rate_falls(void **state)
{
	struct graph *g = street(40);

	(void)state;
	for (int epochs = 1; epochs <= 2; epochs++) {
		uint8_t digest[2][32];

		for (int falls = 0; falls < 2; falls++) {
			struct kge_emb *emb = emb_of("transe", 8, g, 6);
			struct kge_train_config c = config();

			c.threads = 1;
			c.schedule = falls != 0 ? KGE_SCHEDULE_STEP : KGE_SCHEDULE_CONSTANT;
			c.schedule_epochs = 2;
			run(&c, g, emb, epochs);
			kge_emb_digest(emb, digest[falls]);
			kge_emb_free(emb);
		}
		assert_int_equal(memcmp(digest[0], digest[1], 32) == 0, epochs == 1);
	}
	graph_free(g);
}

static void check_learns(const char *model, enum kge_optimizer o, float lr)
{
	struct graph *g = street(40);
	struct kge_emb *emb = emb_of(model, 16, g, 6);
	struct kge_train_config c = config();
	double before = train_mrr(g, emb), after;

	c.threads = 4;
	c.negatives = 16;
	c.optimizer = o;
	c.lr = lr;
	run(&c, g, emb, 100);
	after = train_mrr(g, emb);
	if (!(before < 0.2 && after > 0.5))
		fail_msg("%s: MRR %.3f, then %.3f", model, before, after);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_threads_learn(void **state)
{
	(void)state;
	check_learns("transe", KGE_ADAM_SPARSE, 0.005f);
	check_learns("transe_l2", KGE_SGD, 0.5f);
	check_learns("complex", KGE_ADAGRAD, 0.1f);
	check_learns("rotate", KGE_ADAM_SPARSE, 0.005f);
}

/* Long enough for threads to meet, which TSan is to see nothing wrong in. */
static void test_threads_meet(void **state)
{
	struct graph *g = street(3000);
	struct kge_train_config c = config();
	struct kge_emb *emb = emb_of("rotate", 16, g, 6);
	double first;

	(void)state;
	c.threads = 4;
	c.normalize = true;
	first = run(&c, g, emb, 1);
	assert_true(run(&c, g, emb, 3) < first);
	kge_emb_free(emb);
	graph_free(g);
}

/* ---- settings ---- */

static void test_check(void **state)
{
	struct kge_train_config c = config();
	struct err e = { 0 };

	(void)state;
	assert_int_equal(kge_train_check(&c, &e), 0);
	assert_true(kge_train_repeats(&c));
	c.threads = 2;
	assert_false(kge_train_repeats(&c));
	c.shared_chunk = 16;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.shared_chunk"));
	c = config();
	c.optimizer = KGE_ADAM_DENSE;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "adam_dense"));
	c = config();
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.negatives"));
	c = config();
	c.reg = KGE_REG_L2;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.reg"));
	c = config();
	c.subsampling = true;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.subsampling"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_steps_are_those_of_batches_of_one),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_load_refuses_exact),
		cmocka_unit_test(test_normalize),
		cmocka_unit_test(test_nothing_to_push_away),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_rate_falls),
		cmocka_unit_test(test_threads_learn),
		cmocka_unit_test(test_threads_meet),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
