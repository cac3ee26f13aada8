/* What federated methods add to local training: gradients by differences, figures by hand,
 * whose rows move, and that nothing is added where nothing is asked for. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "kge/terms.h"

enum { HOUSES = 30, DIM = 8 };

/* A small graph, its tables, and two further tables of its entities' size. */
struct world {
	struct graph *g;
	struct kge_emb *emb;
	float *anchor, *previous;
	struct kge_train_config c;
	struct kge_terms terms;
};

static float *other_table(const struct kge_emb *emb, uint64_t seed)
{
	size_t n = (size_t)emb->n_ent * emb->ent_floats;
	float *x = mem_aligned(n, sizeof(*x));
	struct rng r;

	rng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		x[i] = emb->ent[i] + rng_range(&r, -.5f, .5f);
	return x;
}

/* One batch holds all of train; its step is w - gradient. */
static struct world open_world(const char *model)
{
	struct world w = { .g = street(HOUSES) };

	w.emb = emb_of(model, DIM, w.g, 2);
	w.anchor = other_table(w.emb, 5);
	w.previous = other_table(w.emb, 6);
	kge_train_defaults(&w.c);
	w.c.threads = 1;
	w.c.shared_chunk = 0;
	w.c.negatives = 5;
	w.c.batch = 400;
	w.c.optimizer = KGE_SGD;
	w.c.lr = 1;
	w.c.temperature = 0; /* no gradient goes through the weights of negatives */
	w.terms = (struct kge_terms){ .temperature = .2f,
				      .anchor = w.anchor,
				      .previous = w.previous };
	return w;
}

static void close_world(struct world *w)
{
	graph_free(w->g);
	kge_emb_free(w->emb);
	free(w->anchor);
	free(w->previous);
}

/* The loss of one epoch from the tables as they are; they are moved in `after`, may be NULL. */
static double epoch_from(const struct world *w, const struct kge_terms *terms,
			 struct kge_emb *after)
{
	struct kge_emb *copy = kge_emb_copy(w->emb);
	struct kge_trainer *t = kge_trainer_new(&w->c, w->g, copy);
	double loss;

	kge_trainer_set_terms(t, terms);
	train_on(t, 1, &loss);
	if (after != NULL)
		kge_emb_assign(after, copy);
	kge_trainer_free(t);
	kge_emb_free(copy);
	return loss;
}

static double loss_here(void *ctx)
{
	const struct world *w = ctx;

	return epoch_from(w, &w->terms, NULL);
}

/* ---- gradients ---- */

static void check_slopes(struct world *w, const char *what)
{
	struct kge_emb *after = kge_emb_copy(w->emb);
	size_t n = (size_t)w->emb->n_ent * w->emb->ent_floats, checked, off;

	epoch_from(w, &w->terms, after);
	off = slopes_off(loss_here, w, w->emb->ent, after->ent, n, 60, &checked);
	if (off * 12 > checked)
		fail_msg("%s, %s: %zu of %zu slopes are off", w->emb->model->name, what, off,
			 checked);
	kge_emb_free(after);
}

/* Each term by far the largest part of the loss, so that its slopes cannot hide. */
static void check_each_term(const char *model, uint32_t chunk, uint32_t negatives)
{
	struct world w = open_world(model);

	w.c.shared_chunk = chunk;
	w.c.negatives = negatives;
	w.c.loss = negatives == 0 ? KGE_LOSS_SOFTMAX : KGE_LOSS_LOGISTIC;
	w.terms.proximal = 3;
	check_slopes(&w, "proximal");
	w.terms.proximal = 0;
	w.terms.norm = 20;
	check_slopes(&w, "norm");
	w.terms.norm = 0;
	w.terms.contrast = 20;
	check_slopes(&w, "contrast");
	w.terms.contrast_of_means = true;
	check_slopes(&w, "contrast of means");
	w.terms.norm = 7;
	w.terms.proximal = .1f;
	check_slopes(&w, "all of them");
	close_world(&w);
}

static void test_gradients(void **state)
{
	(void)state;
	check_each_term("transe_l2", 0, 5);
	check_each_term("rotate", 10, 5); /* kge/shared.c */
	check_each_term("complex", 0, 0); /* kge/all.c */
	check_each_term("transh", 0, 4);
}

/* ---- by hand ---- */

static struct kge_pull *pull_of(struct kge_terms t, const float *anchor, const float *previous)
{
	t.anchor = anchor;
	t.previous = previous;
	t.temperature = .2f;
	return kge_pull_new(&t, 2, 2, &kge_kernels_scalar);
}

static void test_proximal_by_hand(void **state)
{
	const float x[4] = { 1, 2, 3, 4 }, anchor[4] = { 0, 0, 3, 7 };
	struct kge_pull *p = pull_of((struct kge_terms){ .proximal = .1f }, anchor, NULL);
	float g[2] = { 10, 10 };

	(void)state;
	kge_pull_begin_epoch(p, x);
	assert_near(kge_pull_begin_batch(p), 0, 0, 0);
	assert_near(kge_pull_row(p, 0, x, g), .25, 0, 1e-6);
	assert_near(g[0], 10.1, 0, 1e-5);
	assert_near(g[1], 10.2, 0, 1e-5);
	kge_pull_free(p);
}

/* |E - A|_F of rows 3 and 4 away is 5; once a row has moved, it goes by where that is. */
static void test_norm_by_hand(void **state)
{
	const float x[4] = { 3, 0, 0, 4 }, anchor[4] = { 0 }, moved[2] = { 0, 0 };
	struct kge_pull *p = pull_of((struct kge_terms){ .norm = 10 }, anchor, NULL);
	float g[2] = { 0 };

	(void)state;
	kge_pull_begin_epoch(p, x);
	assert_near(kge_pull_begin_batch(p), 50, 0, 1e-5);
	assert_near(kge_pull_row(p, 0, x, g), 0, 0, 0);
	assert_near(g[0], 6, 0, 1e-5);
	kge_pull_moved(p, 0, moved);
	assert_near(kge_pull_begin_batch(p), 40, 0, 1e-5);
	kge_pull_free(p);
}

/* Training begins at K, where the norm has no dscore. */
static void test_norm_at_zero(void **state)
{
	const float x[4] = { 3, 0, 0, 4 };
	struct kge_pull *p = pull_of((struct kge_terms){ .norm = 10 }, x, NULL);
	float g[2] = { 0 };

	(void)state;
	kge_pull_begin_epoch(p, x);
	assert_near(kge_pull_begin_batch(p), 0, 0, 0);
	kge_pull_row(p, 0, x, g);
	assert_true(g[0] == 0 && g[1] == 0);
	kge_pull_free(p);
}

/* Row 0: cosines 1 and 0; row 1: 0 and 1.  Means are alike; 0 between a row and zeros. */
static void test_contrast_by_hand(void **state)
{
	const float x[4] = { 2, 0, 5, 0 }, there[4] = { 1, 0, 0, 1 }, here[4] = { 0, 3, 1, 0 };
	const float zeros[4] = { 0 };
	struct kge_terms t = { .contrast = .3f };
	struct kge_pull *p = pull_of(t, there, here);
	float g[2] = { 0 };

	(void)state;
	assert_near(kge_pull_row(p, 0, x, g), .15 * log1p(exp(-5)), 0, 1e-6);
	assert_near(kge_pull_row(p, 1, x + 2, g), .15 * log1p(exp(5)), 0, 1e-6);
	kge_pull_free(p);
	t.contrast_of_means = true;
	p = pull_of(t, there, here);
	kge_pull_begin_epoch(p, x);
	assert_near(kge_pull_begin_batch(p), .3 * log(2), 0, 1e-6);
	assert_near(kge_pull_row(p, 0, x, g), 0, 0, 0);
	kge_pull_free(p);
	t.contrast_of_means = false;
	p = pull_of(t, zeros, here);
	g[0] = g[1] = 0;
	assert_near(kge_pull_row(p, 1, x + 2, g), .15 * log1p(exp(5)), 0, 1e-6);
	assert_true(isfinite(g[0]) && isfinite(g[1]));
	kge_pull_free(p);
}

/* ---- whose rows move ---- */

/* One triple, one negative: dense Adam alone takes the other houses towards their anchors. */
static void check_lonely(enum kge_optimizer o, bool moves)
{
	struct world w = open_world("transe");
	struct kge_emb *after;
	size_t row = DIM * sizeof(float);
	uint32_t still = 0;

	graph_free(w.g);
	w.g = names(HOUSES, 3);
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	w.c.optimizer = o;
	w.c.negatives = 1;
	w.c.lr = .01f;
	w.terms.proximal = 1;
	after = kge_emb_copy(w.emb);
	epoch_from(&w, &w.terms, after);
	for (uint32_t e = 0; e < HOUSES; e++)
		still += memcmp(kge_ent(w.emb, e), kge_ent(after, e), row) == 0;
	assert_true(moves ? still == 0 : still >= HOUSES - 3);
	kge_emb_free(after);
	close_world(&w);
}

/* What each entity's step is given; the pull of a row toward its anchor is of that row alone. */
static void note_gradient(void *ctx, const struct kge_step *s, uint32_t id, float *x,
			  const float *g)
{
	float *first = ctx;

	(void)s, (void)x;
	first[id] = g[0];
}

static void untouched_alike(uint32_t shared_chunk)
{
	struct world w = open_world("transe");
	float first[HOUSES] = { 0 };
	struct kge_trainer *t;

	graph_free(w.g);
	w.g = names(HOUSES, 3);
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	w.c.optimizer = KGE_ADAM_DENSE;
	w.c.negatives = 1;
	w.c.batch = 1;
	w.c.shared_chunk = shared_chunk;
	w.terms.proximal = 1;
	for (size_t i = 0; i < (size_t)HOUSES * w.emb->ent_floats; i++)
		w.anchor[i] = w.emb->ent[i] - 1;
	t = kge_trainer_new(&w.c, w.g, w.emb);
	kge_trainer_set_terms(t, &w.terms);
	kge_trainer_set_step(t, note_gradient, first);
	kge_trainer_epoch(t, NULL, NULL);
	for (uint32_t e = 2, other = 0; e < HOUSES; e++) { /* but one negative of each side */
		other += fabsf(first[e] - first[HOUSES - 1]) > 1e-6f;
		assert_true(other <= 2);
	}
	assert_true(first[HOUSES - 1] > 0);
	kge_trainer_free(t);
	close_world(&w);
}

static void test_untouched_rows_are_pulled_alike(void **state)
{
	(void)state;
	untouched_alike(0);
	untouched_alike(16);
}

static void test_whose_rows_move(void **state)
{
	(void)state;
	check_lonely(KGE_ADAM_DENSE, true);
	check_lonely(KGE_ADAM_SPARSE, false);
}

/* A strong pull holds the table where its anchors are. */
static void test_pull_holds(void **state)
{
	struct world w = open_world("transe");
	struct kge_trainer *t;
	size_t n = (size_t)w.emb->n_ent * w.emb->ent_floats;
	double far[2] = { 0 };

	(void)state;
	w.c.optimizer = KGE_ADAM_SPARSE;
	w.c.lr = .05f;
	w.c.batch = 16;
	w.terms.proximal = 50;
	for (int pulled = 0; pulled < 2; pulled++) {
		t = kge_trainer_new(&w.c, w.g, w.emb);
		kge_trainer_set_terms(t, pulled ? &w.terms : NULL);
		train_on(t, 30, NULL);
		for (size_t i = 0; i < n; i++)
			far[pulled] += fabs((double)(w.emb->ent[i] - w.anchor[i]));
		kge_trainer_free(t);
	}
	assert_true(far[1] < .3 * far[0]);
	close_world(&w);
}

/* ---- nothing else changes ---- */

static void test_no_terms(void **state)
{
	struct world w = open_world("transe");
	struct kge_emb *plain = kge_emb_copy(w.emb), *none = kge_emb_copy(w.emb);

	(void)state;
	epoch_from(&w, NULL, plain);
	epoch_from(&w, &w.terms, none); /* all weights are 0 */
	assert_same(plain, none, true);
	w.terms.proximal = .1f;
	epoch_from(&w, &w.terms, none);
	assert_same(plain, none, false);
	kge_emb_free(plain);
	kge_emb_free(none);
	close_world(&w);
}

/* Where negatives are shared, a run has the same bits with any number of threads. */
static void test_threads_agree(void **state)
{
	struct world w = open_world("rotate");
	struct kge_emb *one = kge_emb_copy(w.emb), *three = kge_emb_copy(w.emb);

	(void)state;
	w.c.shared_chunk = 8;
	w.c.batch = 24;
	w.c.optimizer = KGE_ADAM_SPARSE;
	w.terms.norm = 1;
	w.terms.contrast = 1;
	w.terms.contrast_of_means = true;
	epoch_from(&w, &w.terms, one);
	w.c.threads = 3;
	epoch_from(&w, &w.terms, three);
	assert_same(one, three, true);
	kge_emb_free(one);
	kge_emb_free(three);
	close_world(&w);
}

struct canceled_step {
	size_t left;
	atomic_bool cancel;
};

static void count_step(void *ctx, const struct kge_step *s, uint32_t id, float *x, const float *g)
{
	struct canceled_step *c = ctx;

	(void)s, (void)id, (void)x, (void)g;
	if (--c->left == 0)
		atomic_store(&c->cancel, true);
}

/* An epoch that terms on rows were added in is begun anew: what they go by began with it. */
static void test_a_cut_epoch_with_terms_is_begun_anew(void **state)
{
	struct world w = open_world("transe");

	(void)state;
	w.c.batch = 10;
	for (int with = 0; with < 2; with++) {
		struct kge_trainer *t = kge_trainer_new(&w.c, w.g, w.emb);
		struct canceled_step c = { .left = 30 };
		struct buf saved = { 0 };

		w.terms.proximal = 1;
		kge_trainer_set_terms(t, with ? &w.terms : NULL);
		kge_trainer_set_step(t, count_step, &c);
		assert_int_equal(kge_trainer_epoch(t, NULL, &c.cancel), ERR_CANCELED);
		kge_trainer_save(t, &saved);
		assert_int_equal(kge_trainer_load(t, saved.base, saved.len, NULL), 0);
		assert_int_equal(kge_trainer_is_resuming(t), !with);
		buf_release(&saved);
		kge_trainer_free(t);
	}
	close_world(&w);
}

static void test_check(void **state)
{
	struct kge_train_config c;
	struct kge_terms t = { .proximal = .1f };
	struct err e;

	(void)state;
	kge_train_defaults(&c);
	assert_int_equal(kge_terms_check(&t, &c, &e), 0);
	c.update = KGE_UPDATE_HOGWILD;
	assert_int_equal(kge_terms_check(&t, &c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "racing"));
	t.proximal = 0;
	assert_int_equal(kge_terms_check(&t, &c, &e), 0);
	t.norm = -1;
	assert_int_equal(kge_terms_check(&t, &c, &e), ERR_USAGE);
	t.norm = 0;
	t.contrast = .3f;
	assert_int_equal(kge_terms_check(&t, &c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "temperature"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_proximal_by_hand),
		cmocka_unit_test(test_norm_by_hand),
		cmocka_unit_test(test_norm_at_zero),
		cmocka_unit_test(test_contrast_by_hand),
		cmocka_unit_test(test_whose_rows_move),
		cmocka_unit_test(test_untouched_rows_are_pulled_alike),
		cmocka_unit_test(test_pull_holds),
		cmocka_unit_test(test_no_terms),
		cmocka_unit_test(test_threads_agree),
		cmocka_unit_test(test_a_cut_epoch_with_terms_is_begun_anew),
		cmocka_unit_test(test_check),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
