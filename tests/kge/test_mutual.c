/* Terms on queries: losses written out by hand, gradients by differences, two tables that teach
 * each other batch by batch. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "kge/mutual.h"
#include "kge/negatives.h"

enum { HOUSES = 24, DIM = 6, NEGATIVES = 7 };

struct world {
	struct graph *g;
	struct kge_emb *student, *teacher;
	struct kge_train_config c;
	struct kge_terms terms;
};

/* One batch holds all of train, by tails; its step is w - gradient. */
static struct world open_world(const char *model, size_t teacher_dim, uint32_t chunk)
{
	struct world w = { .g = street(HOUSES) };
	struct rng r;

	rng_seed(&r, 3);
	w.student = emb_of(model, DIM, w.g, 2);
	w.teacher = kge_emb_new(w.student->model, teacher_dim, 3, HOUSES, 3, &r);
	kge_train_defaults(&w.c);
	w.c.threads = 1;
	w.c.loss = KGE_LOSS_LOGISTIC;
	w.c.shared_chunk = chunk;
	w.c.negatives = NEGATIVES;
	w.c.corrupt = KGE_CORRUPT_TAIL;
	w.c.filtered = false;
	w.c.batch = 400;
	w.c.optimizer = KGE_SGD;
	w.c.lr = 1;
	w.terms.teacher = w.teacher;
	return w;
}

static void close_world(struct world *w)
{
	graph_free(w->g);
	kge_emb_free(w->student);
	kge_emb_free(w->teacher);
}

static double epoch_from(const struct world *w, struct kge_emb *after)
{
	struct kge_emb *copy = kge_emb_copy(w->student);
	struct kge_trainer *t = kge_trainer_new(&w->c, w->g, copy);
	double loss;

	kge_trainer_set_terms(t, &w->terms);
	train_on(t, 1, &loss);
	if (after != NULL)
		kge_emb_assign(after, copy);
	kge_trainer_free(t);
	kge_emb_free(copy);
	return loss;
}

/* ---- the losses by hand ----
 *
 * From kge_score() and the definitions, in doubles, for the negatives that the first epoch draws.
 */
static void score_line(const struct kge_emb *emb, struct graph_triple t, const uint32_t *negatives,
		       double *s)
{
	s[0] = (double)kge_score(emb, t.head, t.rel, t.tail);
	for (size_t j = 0; j < NEGATIVES; j++)
		s[j + 1] = (double)kge_score(emb, t.head, t.rel, negatives[j]);
}

static double softplus(double x)
{
	return log1p(exp(x));
}

static double mean_softplus(const double *s)
{
	double sum = 0;

	for (size_t j = 1; j <= NEGATIVES; j++)
		sum += softplus(s[j]) / NEGATIVES;
	return sum;
}

static double predict_by_hand(const double *s)
{
	return (softplus(-s[0]) + mean_softplus(s)) / 2;
}

static double interfere_by_hand(const struct kge_interference *x, const double *s)
{
	double loss =
		(double)x->forgotten * softplus(s[0]) + (double)x->negatives * mean_softplus(s);
	double squares = 0, mean = 0;

	for (size_t j = 1; j <= NEGATIVES; j++) {
		squares += (s[j] - s[0]) * (s[j] - s[0]);
		mean += fabs(s[j] - s[0]) / NEGATIVES;
	}
	return loss + (double)x->soft * (x->soft_norm ? sqrt(squares) : mean);
}

static double kl_by_hand(const double *taught, const double *s)
{
	double sum = 0, all_taught = 0, all = 0;

	for (size_t j = 0; j <= NEGATIVES; j++) {
		all_taught += exp(taught[j]);
		all += exp(s[j]);
	}
	for (size_t j = 0; j <= NEGATIVES; j++) {
		double p = exp(taught[j]) / all_taught;

		sum += p * log(p / (exp(s[j]) / all));
	}
	return sum;
}

static double query_by_hand(const struct world *w, struct graph_triple t, const uint32_t *negatives)
{
	const struct kge_terms *x = &w->terms;
	double s[NEGATIVES + 1], taught[NEGATIVES + 1], loss, weight = (double)x->distill;

	score_line(w->student, t, negatives, s);
	score_line(w->teacher, t, negatives, taught);
	loss = x->interfere != NULL ? interfere_by_hand(x->interfere, s) : predict_by_hand(s);
	if (x->adaptive)
		weight /= loss + predict_by_hand(taught);
	return loss + weight * kl_by_hand(taught, s);
}

static double loss_by_hand(const struct world *w)
{
	const struct graph_triples *train = &w->g->split[GRAPH_TRAIN];
	uint32_t *order = mem_array(train->n, sizeof(*order)), negatives[NEGATIVES];
	size_t chunk = w->c.shared_chunk > 1 ? w->c.shared_chunk : 1;
	struct rng root, shuffle, draws, r;
	double sum = 0;

	rng_seed(&root, w->c.seed);
	shuffle = rng_stream(&root, 0);
	draws = rng_stream(&root, 1);
	for (uint32_t i = 0; i < train->n; i++)
		order[i] = i;
	if (w->student->model->project == NULL) /* or else by relation, as street() has them */
		rng_shuffle(&shuffle, order, train->n, sizeof(*order));
	for (size_t i = 0; i < train->n; i++) {
		r = rng_stream(&draws, 2 * (i / chunk * chunk));
		kge_draw(negatives, NEGATIVES, HOUSES, &r);
		sum += query_by_hand(w, train->at[order[i]], negatives);
	}
	free(order);
	return sum / (double)train->n;
}

/* What the terms say, once asked pair by pair and once in the tiles of kge/shared.c. */
static void check_loss(const char *model, size_t teacher_dim, struct kge_terms terms)
{
	for (uint32_t chunk = 0; chunk <= 100; chunk += 20) {
		struct world w = open_world(model, teacher_dim, chunk);

		terms.teacher = w.teacher;
		w.terms = terms;
		assert_near(epoch_from(&w, NULL), loss_by_hand(&w), 2e-5, 2e-5);
		close_world(&w);
	}
}

static const struct kge_interference paper = { 1, 1, .1f, false, true },
				     code = { 5, .5f, .1f, true, false };
static const struct kge_interference soft_alone = { 0, 0, .1f, true, false };
static const struct kge_interference hard_alone = { 5, .5f, 0, true, false };

static void test_losses_by_hand(void **state)
{
	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		const char *m = kge_models[i]->name;

		if (strstr(m, "reciprocal") != NULL || kge_models[i]->project != NULL)
			continue; /* nothing about them differs here; below */
		check_loss(m, DIM, (struct kge_terms){ .distill = 2 });
		check_loss(m, DIM + 3, (struct kge_terms){ .distill = 1, .adaptive = true });
		check_loss(m, DIM, (struct kge_terms){ .interfere = &paper });
		check_loss(m, DIM, (struct kge_terms){ .interfere = &code, .distill = 2 });
	}
}

static void test_projecting_teacher(void **state)
{
	struct world w = open_world("transd", DIM + 2, 0);

	(void)state;
	w.terms.distill = 2;
	assert_near(epoch_from(&w, NULL), loss_by_hand(&w), 2e-5, 2e-5);
	close_world(&w);
}

/* Of three candidates, in nats: KL(softmax(1, 1, 0) | softmax(2, 0, 1)), a sum over candidates with
 * no temperature, as PyTorch's batchmean has it for a batch of one. */
static void test_teaching_of_three(void **state)
{
	const float scores[] = { 2, 0, 1 }, taught[] = { 1, 1, 0 };
	const double want[] = { .6652410 - .4223188, .0900306 - .4223188, .2447285 - .1553624 };
	float dscore[3] = { 0 }, work[6];

	(void)state;
	assert_near(kge_distill_of(&kge_kernels_scalar, scores, taught, dscore, 2, 2, work),
		    .3902488, 1e-5, 1e-5);
	for (size_t i = 0; i < 3; i++)
		assert_near(dscore[i], 2 * want[i], 1e-5, 1e-5);
}

/* ---- gradients ---- */

static double loss_here(void *ctx)
{
	return epoch_from(ctx, NULL);
}

static void check_table(struct world *w, float *x, const float *after, size_t n, const char *what)
{
	size_t checked, off = slopes_off(loss_here, w, x, after, n, 60, &checked);

	if (off * (w->student->model->metric == KGE_L1 ? 4 : 12) > checked)
		fail_msg("%s, %s: %zu of %zu slopes are off", w->student->model->name, what, off,
			 checked);
}

static void check_slopes(struct world *w, const char *what)
{
	struct kge_emb *e = w->student, *after = kge_emb_copy(e);

	epoch_from(w, after);
	check_table(w, e->ent, after->ent, (size_t)e->n_ent * e->ent_floats, what);
	check_table(w, e->rel, after->rel, (size_t)e->n_rel * e->rel_floats, what);
	kge_emb_free(after);
}

static void check_terms(const char *model, uint32_t chunk)
{
	struct world w = open_world(model, DIM + 1, chunk);

	w.c.filtered = true;
	w.c.corrupt = KGE_CORRUPT_BOTH;
	w.c.subsampling = true;
	w.terms.distill = 8;
	check_slopes(&w, "distill");
	w.terms.distill = 2;
	w.terms.interfere = &code;
	check_slopes(&w, "interfere, code");
	w.terms.interfere = &paper;
	check_slopes(&w, "interfere, paper");
	w.terms.interfere = &soft_alone;
	check_slopes(&w, "interfere, soft alone");
	w.terms.interfere = &hard_alone;
	check_slopes(&w, "interfere, hard alone");
	close_world(&w);
}

static void test_gradients(void **state)
{
	(void)state;
	check_terms("transe", 0);
	check_terms("transe_l2", 9);
	check_terms("rotate", 9);
	check_terms("complex", 0);
	check_terms("complex", 30);
	check_terms("transr", 0);
}

/* ---- whose rows, whose triples ---- */

/* A student that knows what its teacher knows has nothing to learn from it: not a bit. */
static void check_own_teacher(uint32_t chunk)
{
	struct world w = open_world("rotate", DIM, chunk);
	struct kge_emb *plain = kge_emb_copy(w.student), *taught = kge_emb_copy(w.student);

	w.c.filtered = true;
	kge_emb_assign(w.teacher, w.student);
	epoch_from(&w, plain);
	w.terms.distill = 2;
	epoch_from(&w, taught);
	assert_same(plain, taught, true);
	kge_emb_free(plain);
	kge_emb_free(taught);
	close_world(&w);
}

static void test_own_teacher(void **state)
{
	(void)state;
	check_own_teacher(16);
	check_own_teacher(0);
}

static void check_frozen(uint32_t chunk, enum kge_optimizer o)
{
	struct world w = open_world("transe", DIM, chunk);
	struct kge_emb *after = kge_emb_copy(w.student);
	size_t bytes = 3 * w.student->rel_floats * sizeof(float);

	w.c.optimizer = o;
	w.terms.freeze_relations = true;
	epoch_from(&w, after);
	assert_memory_equal(after->rel, w.student->rel, bytes);
	assert_same(after, w.student, false);
	w.terms.freeze_relations = false;
	epoch_from(&w, after);
	assert_memory_not_equal(after->rel, w.student->rel, bytes);
	kge_emb_free(after);
	close_world(&w);
}

static void test_frozen_relations(void **state)
{
	(void)state;
	check_frozen(0, KGE_SGD);
	check_frozen(16, KGE_ADAM_DENSE);
}

/* An epoch of three triples is a step for these alone: no other relation moves. */
static void test_only_some(void **state)
{
	struct world w = open_world("transe", DIM, 0);
	struct kge_emb *copy = kge_emb_copy(w.student);
	struct kge_trainer *t = kge_trainer_new(&w.c, w.g, copy);
	const uint32_t positions[3] = { 40, 25, 30 };
	double some, all, by_all = epoch_from(&w, NULL);

	(void)state;
	kge_trainer_free(t);
	w.c.lr = 1e-6f;
	t = kge_trainer_new(&w.c, w.g, copy);
	kge_trainer_only(t, positions, 3);
	train_on(t, 1, &some);
	assert_true(fabs(some - by_all) > 1e-3);
	/* relation 1 alone is in them */
	assert_memory_equal(kge_rel(copy, 0), kge_rel(w.student, 0), DIM * sizeof(float));
	assert_memory_not_equal(kge_rel(copy, 1), kge_rel(w.student, 1), DIM * sizeof(float));
	kge_trainer_only(t, NULL, 0);
	train_on(t, 1, &all);
	assert_memory_not_equal(kge_rel(copy, 0), kge_rel(w.student, 0), DIM * sizeof(float));
	kge_trainer_free(t);
	kge_emb_free(copy);
	close_world(&w);
}

/* ---- two tables ---- */

/* By turns, batch by batch: what two trainers do by hand when each epoch is one batch. */
static void test_turns(void **state)
{
	struct world w = open_world("rotate", DIM, 12);
	struct kge_emb *local = kge_emb_copy(w.student), *global = kge_emb_copy(w.teacher);
	struct kge_mutual *m;

	(void)state;
	kge_emb_assign(global, w.teacher);
	m = kge_mutual_new(&w.c, w.g, local, global, false);
	w.terms.distill = 2;
	kge_mutual_set_terms(m, &w.terms, &w.terms);
	memcpy(w.teacher->rel, w.student->rel, 3 * local->rel_floats * sizeof(float));
	assert_int_equal(kge_mutual_epoch(m, NULL, NULL), 0);
	epoch_from(&w, w.student); /* taught by the avatar as it was */
	assert_same(local, w.student, true);
	for (int i = 0; i < 2; i++) { /* the avatar by the local table as it is now */
		struct kge_emb *swap = w.student;

		w.student = w.teacher;
		w.teacher = swap;
		w.terms.teacher = w.teacher;
		if (i > 0)
			break;
		memcpy(w.student->rel, w.teacher->rel, 3 * local->rel_floats * sizeof(float));
		w.terms.freeze_relations = true;
		epoch_from(&w, w.student);
	}
	assert_same(global, w.teacher, true);
	kge_mutual_free(m);
	kge_emb_free(local);
	kge_emb_free(global);
	close_world(&w);
}

/* Before teaching begins, and where there is one table, the local one learns as if alone. */
static void test_warm_up(void **state)
{
	struct world w = open_world("transe", DIM, 0);
	struct kge_emb *local = kge_emb_copy(w.student), *alone = kge_emb_copy(w.student);
	struct kge_mutual *m = kge_mutual_new(&w.c, w.g, local, w.teacher, false);
	struct kge_mutual *one = kge_mutual_new(&w.c, w.g, alone, NULL, false);
	double loss[2];

	(void)state;
	w.terms.distill = 2;
	kge_mutual_set_terms(one, &w.terms, &w.terms);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(kge_mutual_epoch(m, loss, NULL), 0);
		assert_int_equal(kge_mutual_epoch(one, loss, NULL), 0);
	}
	assert_same(local, alone, true);
	kge_mutual_set_terms(m, &w.terms, &w.terms);
	assert_int_equal(kge_mutual_epoch(m, loss, NULL), 0);
	assert_int_equal(kge_mutual_epoch(one, loss, NULL), 0);
	assert_same(local, alone, false);
	assert_memory_equal(w.teacher->rel, local->rel, 3 * local->rel_floats * sizeof(float));
	kge_mutual_free(m);
	kge_mutual_free(one);
	kge_emb_free(local);
	kge_emb_free(alone);
	close_world(&w);
}

static double mean_kl(const struct world *w, const struct kge_emb *a, const struct kge_emb *b)
{
	const struct graph_triples *t = &w->g->split[GRAPH_TRAIN];
	const uint32_t negatives[NEGATIVES] = { 1, 4, 7, 11, 13, 18, 22 };
	double sum = 0, s[2][NEGATIVES + 1];

	for (size_t i = 0; i < t->n; i++) {
		score_line(a, t->at[i], negatives, s[0]);
		score_line(b, t->at[i], negatives, s[1]);
		sum += kl_by_hand(s[0], s[1]);
	}
	return sum / (double)t->n;
}

/* Two widths that teach each other come nearer, and both learn. */
static void test_two_widths(void **state)
{
	double apart[2];

	(void)state;
	for (int taught = 0; taught < 2; taught++) {
		struct world w = open_world("transe", 8, 8);
		struct kge_mutual *m;

		w.c.optimizer = KGE_ADAM_SPARSE;
		w.c.lr = .02f;
		w.c.batch = 32;
		m = kge_mutual_new(&w.c, w.g, w.student, w.teacher, true);
		w.terms.distill = 1;
		w.terms.adaptive = true;
		kge_mutual_set_terms(m, taught ? &w.terms : NULL, taught ? &w.terms : NULL);
		for (int i = 0; i < 60; i++)
			assert_int_equal(kge_mutual_epoch(m, NULL, NULL), 0);
		apart[taught] = mean_kl(&w, w.student, w.teacher);
		assert_true(train_mrr(w.g, w.student) > .5 && train_mrr(w.g, w.teacher) > .5);
		kge_mutual_free(m);
		close_world(&w);
	}
	assert_true(apart[1] < .5 * apart[0]);
}

/* The same bits with any number of threads. */
static void test_threads_agree(void **state)
{
	struct world w[2];

	(void)state;
	for (uint32_t i = 0; i < 2; i++) {
		struct kge_mutual *m;

		w[i] = open_world("rotate", DIM, 8);
		w[i].c.batch = 20;
		w[i].c.threads = 1 + 2 * i;
		w[i].c.optimizer = KGE_ADAM_SPARSE;
		m = kge_mutual_new(&w[i].c, w[i].g, w[i].student, w[i].teacher, false);
		w[i].terms.distill = 2;
		kge_mutual_set_terms(m, &w[i].terms, &w[i].terms);
		assert_int_equal(kge_mutual_epoch(m, NULL, NULL), 0);
		kge_mutual_free(m);
	}
	assert_same(w[0].student, w[1].student, true);
	assert_same(w[0].teacher, w[1].teacher, true);
	close_world(&w[0]);
	close_world(&w[1]);
}

static void test_check(void **state)
{
	struct kge_train_config c;
	struct kge_terms t = { .distill = 2 };
	struct kge_interference x = paper;
	struct err e;

	(void)state;
	kge_train_defaults(&c);
	assert_int_equal(kge_terms_check(&t, &c, &e), 0);
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	assert_int_equal(kge_terms_check(&t, &c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "negatives"));
	kge_train_defaults(&c);
	c.dp.epsilon = 1;
	assert_int_equal(kge_terms_check(&t, &c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.dp"));
	t.distill = -1;
	assert_int_equal(kge_terms_check(&t, &c, &e), ERR_USAGE);
	kge_train_defaults(&c);
	t = (struct kge_terms){ .interfere = &x };
	assert_int_equal(kge_terms_check(&t, &c, &e), 0);
	x.soft = NAN;
	assert_int_equal(kge_terms_check(&t, &c, &e), ERR_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_losses_by_hand),	  cmocka_unit_test(test_projecting_teacher),
		cmocka_unit_test(test_teaching_of_three), cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_own_teacher),	  cmocka_unit_test(test_frozen_relations),
		cmocka_unit_test(test_only_some),	  cmocka_unit_test(test_turns),
		cmocka_unit_test(test_warm_up),		  cmocka_unit_test(test_two_widths),
		cmocka_unit_test(test_threads_agree),	  cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
