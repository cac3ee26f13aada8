/* Training: gradients of the whole step by differences, resume, determinism, learning. */
#include "tests/kge/world.h"

#include <malloc.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/batch_internal.h"
#include "kge/loss.h"
#include "kge/negatives.h"
#include "kge/optimizer.h"

/* ---- a small world ----
 *
 * Entities stand in a ring of N; relation k moves k + 1 positions on. */
enum { N = 40, STEPS = 3 };

static struct graph *ring(void)
{
	struct graph *g = names(N, STEPS);

	for (uint32_t i = 0; i < N; i++)
		for (uint32_t k = 0; k < STEPS; k++)
			graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, k, (i + k + 1) % N });
	return g;
}

/* The ring, with further answers to some of its queries, and a triple twice. */
static struct graph *web(void)
{
	struct graph *g = ring();

	for (uint32_t i = 0; i < N; i += 3) {
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, 1, (i + 7) % N });
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, 1, i });
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 5, 2, i });
	}
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 1, 0 });
	return g;
}

static struct kge_train_config config(void)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.threads = 1;
	c.shared_chunk = 0;
	c.negatives = 5;
	c.batch = 17;
	return c;
}

/* ---- gradients ----
 *
 * One batch holds all of train.  Its loss does not depend on the step that follows, and a
 * step of SGD with rate 1 leaves w - gradient. */
static double loss_at(const struct kge_train_config *c, const struct graph *g,
		      const struct kge_emb *emb, struct kge_emb *after)
{
	struct kge_emb *copy = kge_emb_copy(emb);
	struct kge_trainer *t = kge_trainer_new(c, g, copy);
	double loss;

	assert_int_equal(kge_trainer_epoch(t, &loss, NULL), 0);
	if (after != NULL)
		kge_emb_assign(after, copy);
	kge_trainer_free(t);
	kge_emb_free(copy);
	return loss;
}

struct probe {
	const struct kge_train_config *c;
	const struct graph *g;
	const struct kge_emb *emb;
};

static double loss_here(void *ctx)
{
	const struct probe *p = ctx;

	return loss_at(p->c, p->g, p->emb, NULL);
}

static void check_table(const struct kge_train_config *c, const struct graph *g,
			struct kge_emb *emb, float *x, const float *after, size_t n)
{
	size_t checked, probes = emb->model->project != NULL ? 25 : 60;
#ifdef __SANITIZE_ADDRESS__
	probes /= 3; /* how good the slopes are is the plain build's to say */
#endif
	struct probe at = { c, g, emb };
	size_t off = slopes_off(loss_here, &at, x, after, n, probes, &checked);

	/* |x| and max(0, x) bend: a difference across a bend is off by a little.  A dscore sums
	 * hundreds of |x| in L1, so this meets one in some positions; a wrong gradient, everywhere.
	 */
	if (off * (emb->model->metric == KGE_L1 ? 4 : 12) > checked)
		fail_msg("%s: %zu of %zu slopes are off", emb->model->name, off, checked);
}

/* The whole step that c describes, but for what a difference needs. */
static void check_slopes(const struct graph *g, struct kge_emb *emb, struct kge_train_config c)
{
	struct kge_emb *after = kge_emb_copy(emb);

	c.optimizer = KGE_SGD;
	c.lr = 1;
	c.batch = 400;	   /* all of web() */
	c.temperature = 0; /* the gradient does not go through p: hold it still */
	loss_at(&c, g, emb, after);
	check_table(&c, g, emb, emb->ent, after->ent, emb->n_ent * emb->ent_floats);
	check_table(&c, g, emb, emb->rel, after->rel, emb->n_rel * emb->rel_floats);
	kge_emb_free(after);
}

static void check_on(struct graph *g, const char *model, size_t dim, struct kge_train_config c)
{
	struct kge_emb *emb = emb_of(model, dim, g, 2);

	check_slopes(g, emb, c);
	kge_emb_free(emb);
	graph_free(g);
}

static void check_config(const char *model, size_t dim, struct kge_train_config c)
{
	check_on(web(), model, dim, c);
}

static void check_step(const char *model, size_t dim, enum kge_loss loss, enum kge_corrupt corrupt,
		       uint32_t chunk)
{
	struct kge_train_config c = config();

	c.loss = loss;
	c.corrupt = corrupt;
	c.shared_chunk = chunk;
	check_config(model, dim, c);
}

static void test_gradients(void **state)
{
	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		const char *m = kge_models[i]->name;

		check_step(m, 5, KGE_LOSS_SELF_ADVERSARIAL, KGE_CORRUPT_ALTERNATE, 0);
		if (kge_models[i]->project != NULL)
			continue; /* see below */
		check_step(m, 17, KGE_LOSS_LOGISTIC, KGE_CORRUPT_BOTH, 4);
		check_step(m, 9, KGE_LOSS_MARGIN, KGE_CORRUPT_TAIL, 0);
		check_step(m, 37, KGE_LOSS_LOGISTIC, KGE_CORRUPT_BOTH, 0);
		check_step(m, 13, KGE_LOSS_SOFTMAX, KGE_CORRUPT_BOTH, 3);
		check_step(m, 18, KGE_LOSS_SELF_ADVERSARIAL, KGE_CORRUPT_TAIL, 100);
		check_step(m, 6, KGE_LOSS_MARGIN, KGE_CORRUPT_BOTH, 1000);
	}
}

/* TransE's scores do not change when all entities move alike, so gradients add up to nothing:
 * unless one of them is lost, or counted twice. */
static void test_no_gradient_is_lost(void **state)
{
	struct graph *g = web();
	struct kge_emb *emb = emb_of("transe", 20, g, 2), *after = kge_emb_copy(emb);
	struct kge_train_config c = config();

	(void)state;
	c.optimizer = KGE_SGD;
	c.corrupt = KGE_CORRUPT_BOTH;
	c.batch = 1000;
	for (c.shared_chunk = 0; c.shared_chunk < 200; c.shared_chunk += 11) {
		loss_at(&c, g, emb, after);
		for (size_t k = 0; k < 20; k++) {
			float moved = 0, some = 0;

			for (uint32_t e = 0; e < N; e++) {
				moved += kge_ent(after, e)[k] - kge_ent(emb, e)[k];
				some += fabsf(kge_ent(after, e)[k] - kge_ent(emb, e)[k]);
			}
			assert_near(moved, 0, 0, 1e-3f * some);
		}
	}
	kge_emb_free(emb);
	kge_emb_free(after);
	graph_free(g);
}

static void use_kernels(const char *isa)
{
	if (isa != NULL)
		setenv("FKGE_ISA", isa, 1);
	else
		unsetenv("FKGE_ISA");
}

/* The web, with strangers at its end: more entities than a block of all.c; and a relation that no
 * triple has. */
static struct graph *crowd(void)
{
	struct graph *g = web();
	char name[16];

	for (uint32_t i = 0; i < 260; i++)
		graph_vocab_add(g->entities, name, (size_t)snprintf(name, sizeof(name), "x%u", i));
	graph_vocab_add(g->relations, "unasked", 7);
	for (uint32_t i = N; i < N + 260; i += 9)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, i % 3, N + 260 - 1 - i % 7 });
	return g;
}

/* 1-vs-all, by the scalar kernels and by the picked ones (dot products: sgemm). */
static void test_gradients_against_all(void **state)
{
	static const size_t dims[] = { 1, 5, 17, 33 };
	struct kge_train_config c = config();

	(void)state;
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		c.corrupt = i % 2 == 0 ? KGE_CORRUPT_BOTH : KGE_CORRUPT_TAIL;
		c.threads = 1 + (uint32_t)i % 3;
		c.rare_weight = i % 3 == 1 ? 0.2f : 1;
		use_kernels("scalar");
		check_config(kge_models[i]->name, 7, c);
		use_kernels(NULL);
		if (kge_models[i]->project != NULL)
			continue; /* see below */
		for (size_t k = 0; k < 4; k++)
			check_config(kge_models[i]->name, dims[k], c);
		c.threads = 1;
		check_on(crowd(), kge_models[i]->name, 3, c);
	}
	use_kernels("scalar");
	check_on(crowd(), "distmult", 3, c);
	use_kernels(NULL);
}

static void test_gradients_of_the_regularizer(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.loss = KGE_LOSS_SOFTMAX;
	c.reg_weight = 0.3f;
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (int reg = KGE_REG_L2; reg <= KGE_REG_L3; reg++) {
			c.reg = (enum kge_reg)reg;
			c.negatives = reg == KGE_REG_L2 ? 3 : 0;
			check_config(kge_models[i]->name, 9, c);
			c.negatives = 3 - c.negatives;
			c.corrupt = KGE_CORRUPT_BOTH;
			c.threads = 2;
			check_config(kge_models[i]->name, 5, c);
			c.negatives = 3;
			c.shared_chunk = 30;
			check_config(kge_models[i]->name, 5, c);
			c.shared_chunk = 0;
		}
}

/* Where an entity is where a query wants it the distance has no slope: nothing of it moves. */
static void check_nothing_between(const char *model, uint32_t negatives)
{
	struct kge_train_config c = config();
	struct graph *g = names(3, 1);
	struct kge_emb *emb = emb_of(model, 4, g, 2);
	struct kge_emb *after = kge_emb_copy(emb);

	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = negatives;
	c.shared_chunk = 0;
	c.optimizer = KGE_SGD;
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 0 });
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 1, 0, 2 });
	memset(emb->rel, 0, emb->n_rel * emb->rel_floats * sizeof(float));
	assert_true(isfinite(loss_at(&c, g, emb, after)));
	for (size_t i = 0; i < emb->n_ent * emb->ent_floats; i++)
		assert_true(isfinite(after->ent[i]));
	for (size_t i = 0; i < emb->n_rel * emb->rel_floats; i++)
		assert_true(isfinite(after->rel[i]));
	if (emb->model->project == NULL) /* or else all are projected to 0 */
		assert_true(memcmp(after->ent, emb->ent, 3 * emb->ent_floats * sizeof(float)) != 0);
	kge_emb_free(emb);
	kge_emb_free(after);
	graph_free(g);
}

static void test_nothing_between(void **state)
{
	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (uint32_t negatives = 0; negatives < 4; negatives += 3)
			if (kge_models[i]->metric != KGE_DOT)
				check_nothing_between(kge_models[i]->name, negatives);
}

static bool is_bilinear(const char *model)
{
	return kge_model_find(model)->metric == KGE_DOT;
}

/* Relation prediction and DURA, by the scalar kernels and by matrix products. */
static void test_gradients_of_each_positive(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.reg_weight = 0.3f;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		const char *m = kge_models[i]->name;

		if (!is_bilinear(m))
			continue;
		for (uint32_t k = 0; k < 4; k++) {
			c.relation_weight = k % 3 == 0 ? 0 : 1.7f;
			c.query_answers = k;
			c.rare_weight = k % 2 == 0 ? 0.1f : 1;
			c.reg = k % 3 == 1 ? KGE_REG_L3 : KGE_REG_DURA;
			c.corrupt = k < 2 ? KGE_CORRUPT_BOTH : KGE_CORRUPT_TAIL;
			c.threads = 1 + k % 2;
			use_kernels(k % 2 == 0 ? "scalar" : NULL);
			check_config(m, 5 + 12 * (k % 2), c);
			check_on(crowd(), m, 3, c);
		}
	}
	use_kernels(NULL);
}

static void test_gradients_of_draws(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		c.loss = KGE_LOSS_LOGISTIC;
		c.subsampling = i % 2 == 0;
		c.sampling = KGE_SAMPLING_BERNOULLI;
		c.shared_chunk = 0;
		check_config(kge_models[i]->name, 9, c);
		c.shared_chunk = 4;
		check_config(kge_models[i]->name, 9, c);
		c.shared_chunk = 0;
		c.sampling = KGE_SAMPLING_TYPED;
		check_config(kge_models[i]->name, 5, c);
		c.sampling = KGE_SAMPLING_UNIFORM;
		c.subsampling = true;
		c.shared_chunk = 4;
		c.corrupt = KGE_CORRUPT_BOTH;
		check_config(kge_models[i]->name, 7, c);
		c.corrupt = KGE_CORRUPT_ALTERNATE;
	}
}

/* ---- losses by hand ---- */

static double softplus(double x)
{
	return log1p(exp(x));
}

static void test_losses_by_hand(void **state)
{
	static const float s[] = { 1.0f, 0.5f, -1e30f, 2.0f };
	double e1 = exp(0.7 * 0.5), e3 = exp(0.7 * 2.0), p1 = e1 / (e1 + e3), p3 = e3 / (e1 + e3);
	struct kge_train_config c = config();
	float dscore[4], slope2[4], work[9];
	double loss;

	(void)state;
	c.temperature = 0.7f;
	loss = kge_loss_of(&c, kge_kernels_pick(), s, dscore, 3, 2, work);
	assert_near(loss, .5 * (softplus(-1) + p1 * softplus(.5) + p3 * softplus(2)), 1e-5, 0);
	assert_near(dscore[0], -.5 / (1 + exp(1)), 1e-5, 0);
	assert_near(dscore[1], .5 * p1 / (1 + exp(-.5)), 1e-5, 0);
	assert_near(dscore[3], .5 * p3 / (1 + exp(-2)), 1e-5, 0);
	assert_near(dscore[2], 0, 0, 1e-20);
	c.loss = KGE_LOSS_LOGISTIC;
	loss = kge_loss_of(&c, kge_kernels_pick(), s, dscore, 3, 2, work);
	assert_near(loss, .5 * (softplus(-1) + .5 * softplus(.5) + .5 * softplus(2)), 1e-5, 0);
	c.loss = KGE_LOSS_SELF_ADVERSARIAL;
	c.temperature = 0; /* the same */
	assert_near(kge_loss_of(&c, kge_kernels_pick(), s, slope2, 3, 2, work), loss, 1e-6, 0);
	c.loss = KGE_LOSS_LOGISTIC;
	c.loss = KGE_LOSS_MARGIN;
	c.margin = 0.25f;
	loss = kge_loss_of(&c, kge_kernels_pick(), s, dscore, 3, 2, work);
	assert_near(loss, .5 * 1.25, 1e-6, 0);
	c.loss = KGE_LOSS_SOFTMAX;
	e1 = exp(1) + exp(.5) + exp(2);
	assert_near(kge_loss_of(&c, kge_kernels_pick(), s, slope2, 3, 2, work), log(e1) - 1, 1e-5,
		    0);
	assert_near(slope2[0], exp(1) / e1 - 1, 1e-5, 0);
	assert_near(slope2[3], exp(2) / e1, 1e-5, 0);
	assert_near(slope2[2], 0, 0, 1e-20);
	assert_true(dscore[0] == -.5f && dscore[1] == 0 && dscore[2] == 0 && dscore[3] == .5f);
}

static void test_regularizer_by_hand(void **state)
{
	static const float row[] = { 3, -1, -4, 2 };
	float g[] = { 0, 1, 0, 0 };
	double r5 = sqrt(5);

	(void)state;
	assert_near(kge_reg_of(KGE_REG_L2, g, row, 4, true, 0.5f), 30, 1e-6, 0);
	assert_true(g[0] == 3 && g[1] == 0 && g[2] == -4 && g[3] == 2);
	memset(g, 0, sizeof(g));
	assert_near(kge_reg_of(KGE_REG_L3, g, row, 4, false, 1), 100, 1e-6, 0);
	assert_true(g[0] == 27 && g[1] == -3 && g[2] == -48 && g[3] == 12);
	memset(g, 0, sizeof(g));
	assert_near(kge_reg_of(KGE_REG_L3, g, row, 4, true, 1), 125 + 5 * r5, 1e-6, 0);
	assert_near(g[0], 45, 1e-6, 0);
	assert_near(g[2], -60, 1e-6, 0);
	assert_near(g[1], -3 * r5, 1e-6, 0);
	assert_near(g[3], 6 * r5, 1e-6, 0);
}

/* -log softmax of each triple's score among those of all entities, on both sides. */
static double loss_against_all(const struct graph *g, const struct kge_emb *emb)
{
	const struct graph_triples *t = &g->split[GRAPH_TRAIN];
	double loss = 0;
	size_t n = t->n - 1; /* web()'s last triple is there twice */

	for (size_t i = 0; i < n; i++) {
		struct graph_triple x = t->at[i];
		double tails = 0, heads = 0;

		for (uint32_t e = 0; e < N; e++) {
			tails += exp((double)kge_score(emb, x.head, x.rel, e));
			heads += exp((double)kge_score_side(emb, e, x.rel, x.tail, GRAPH_HEAD));
		}
		loss += log(tails) - (double)kge_score(emb, x.head, x.rel, x.tail);
		loss += log(heads) - (double)kge_score_side(emb, x.head, x.rel, x.tail, GRAPH_HEAD);
	}
	return loss / (2 * (double)n);
}

/* -log softmax of each triple's relation among all of them, or among the rows of all sides. */
static double loss_of_relations(const struct graph *g, const struct kge_emb *emb)
{
	const struct graph_triples *t = &g->split[GRAPH_TRAIN];
	bool sides = emb->rel_floats == 2 * emb->ent_floats;
	size_t n = t->n - 1; /* web()'s last triple is there twice */
	double loss = 0;

	for (size_t i = 0; i < n; i++)
		for (int head = 0; head < 2; head++) {
			struct graph_triple x = t->at[i];
			double all = 0, mine = 0;

			for (uint32_t r = 0; r < emb->n_rel; r++)
				for (int half = 0; half <= (int)sides; half++) {
					/* a row of the other side, as it meets this side's rows */
					uint32_t a = head == half || !sides ? x.head : x.tail;
					uint32_t b = head == half || !sides ? x.tail : x.head;
					double s = (double)kge_score_side(
						emb, a, r, b, half ? GRAPH_HEAD : GRAPH_TAIL);

					all += exp(s);
					if (r == x.rel && (half == head || !sides))
						mine = s;
				}
			loss += log(all) - mine;
		}
	return loss / (2 * (double)n);
}

static double dura_of(const float *k, const float *r, const float *a, size_t dim, bool complex)
{
	double sum = 0;

	for (size_t i = 0; i < dim; i++) {
		double kk = (double)(k[i] * k[i]), rr = (double)(r[i] * r[i]);
		double aa = (double)(a[i] * a[i]);

		if (complex) {
			kk += (double)(k[dim + i] * k[dim + i]);
			rr += (double)(r[dim + i] * r[dim + i]);
			aa += (double)(a[dim + i] * a[dim + i]);
		}
		sum += (kk + aa) / 2 + 1.5 * (kk + aa) * rr;
	}
	return sum;
}

static double loss_of_dura(const struct graph *g, const struct kge_emb *emb)
{
	const struct graph_triples *t = &g->split[GRAPH_TRAIN];
	size_t sides = emb->rel_floats / emb->ent_floats, n = t->n - 1;
	double loss = 0;

	for (size_t i = 0; i < n; i++)
		for (size_t half = 0; half < 2; half++) {
			struct graph_triple x = t->at[i];
			const float *r = kge_rel(emb, x.rel) + half % sides * emb->ent_floats;

			loss += dura_of(kge_ent(emb, x.head), r, kge_ent(emb, x.tail), emb->dim,
					emb->ent_floats == 2 * emb->dim);
		}
	return loss / (2 * (double)n);
}

/* What relation prediction and DURA add to the loss, by their formulas. */
static void test_loss_of_each_positive(void **state)
{
	struct graph *g = web();
	struct kge_train_config c = config();

	(void)state;
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.corrupt = KGE_CORRUPT_BOTH;
	c.batch = 400; /* all of web() */
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (c.threads = 1; c.threads < 4 && is_bilinear(kge_models[i]->name);
		     c.threads++) {
			struct kge_emb *emb = emb_of(kge_models[i]->name, 7, g, 2);
			double plain = loss_against_all(g, emb);

			c.relation_weight = 0.5f;
			assert_near(loss_at(&c, g, emb, NULL),
				    plain + 0.5 * loss_of_relations(g, emb), 1e-5, 0);
			c.relation_weight = 0;
			c.reg = KGE_REG_DURA;
			c.reg_weight = 0.25f;
			assert_near(loss_at(&c, g, emb, NULL), plain + 0.25 * loss_of_dura(g, emb),
				    1e-5, 0);
			c.reg = KGE_REG_NONE;
			kge_emb_free(emb);
		}
	graph_free(g);
}

static void test_threads_agree_against_all(void **state)
{
	struct graph *g = web();
	struct kge_train_config c = config();

	(void)state;
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.batch = 400; /* all of web() */
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (c.threads = 1; c.threads < 4; c.threads++) {
			struct kge_emb *emb = emb_of(kge_models[i]->name, 7, g, 2);

			assert_near(loss_at(&c, g, emb, NULL), loss_against_all(g, emb), 1e-5, 0);
			kge_emb_free(emb);
		}
	graph_free(g);
}

static double norm_of(const float *row, size_t n, enum kge_reg reg, bool complex)
{
	float *g = mem_array(n, sizeof(*g));
	double norm = kge_reg_of(reg, g, row, n, complex, 0);

	free(g);
	return norm;
}

/* What the regulariser adds: each positive counts once for every query that asks it. */
static void check_reg_loss(const char *model, struct kge_train_config c)
{
	struct graph *g = web();
	struct kge_emb *emb = emb_of(model, 7, g, 2);
	bool projects = emb->model->project != NULL, phases = emb->model->metric == KGE_MODULUS;
	bool complex = emb->ent_floats == 14 && !projects;
	size_t n = g->split[GRAPH_TRAIN].n - 1; /* the last is there twice */
	size_t rows = emb->rel_floats > emb->ent_floats && !projects ? 2 : 1;
	size_t floats = projects ? emb->query_floats : emb->rel_floats / rows;
	size_t asked = c.corrupt == KGE_CORRUPT_TAIL ? 1 : rows;
	double want = 0, without;

	g->split[GRAPH_TRAIN].n = n;
	for (size_t i = 0; i < n; i++) {
		struct graph_triple x = g->split[GRAPH_TRAIN].at[i];

		want += norm_of(kge_ent(emb, x.head), emb->ent_floats, c.reg, complex) +
			norm_of(kge_ent(emb, x.tail), emb->ent_floats, c.reg, complex);
		/* reciprocal: one of the two rows in each of the two queries */
		for (size_t k = 0; k < asked && !phases; k++)
			want += norm_of(kge_rel(emb, x.rel) + k * floats, floats, c.reg, complex) /
				(double)asked;
	}
	without = loss_at(&c, g, emb, NULL);
	c.reg_weight = 0.5f;
	assert_near(loss_at(&c, g, emb, NULL) - without, 0.5 * want / (double)n, 1e-4, 0);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_reg_loss(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.batch = 1000;
	c.loss = KGE_LOSS_SOFTMAX;
	for (size_t i = 0; kge_models[i] != NULL; i++)
		for (int reg = KGE_REG_L2; reg <= KGE_REG_L3; reg++)
			for (uint32_t many = 0; many <= 3; many += 3) {
				c.reg = (enum kge_reg)reg;
				c.negatives = many;
				c.corrupt = many > 0 ? KGE_CORRUPT_BOTH : KGE_CORRUPT_ALTERNATE;
				check_reg_loss(kge_models[i]->name, c);
				c.shared_chunk = 9;
				check_reg_loss(kge_models[i]->name, c);
				c.shared_chunk = 0;
				c.corrupt = KGE_CORRUPT_TAIL;
				check_reg_loss(kge_models[i]->name, c);
			}
}

/* ---- negatives ---- */

/* A view of a list; two more ids can be read after it. */
static struct graph_ids ids_of(const uint32_t *list, size_t n)
{
	return (struct graph_ids){ (const uint8_t *)list, 0, n, 32, UINT32_MAX };
}

static void test_filtered_draws(void **state)
{
	const struct graph_ids known = ids_of((const uint32_t[6]){ 0, 3, 4, 9 }, 4);
	const struct graph_ids all = ids_of((const uint32_t[6]){ 0, 1, 2, 3 }, 4);
	const struct graph_ids one = ids_of((const uint32_t[3]){ 1 }, 1);
	uint32_t out[6000], seen[10] = { 0 };
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	kge_draw_filtered(out, 6000, 10, &known, &r);
	for (size_t i = 0; i < 6000; i++)
		seen[out[i]]++;
	for (uint32_t e = 0; e < 10; e++)
		if (e == 0 || e == 3 || e == 4 || e == 9)
			assert_int_equal(seen[e], 0);
		else
			assert_in_range(seen[e], 850, 1150); /* 1000 +- 5 standard deviations */
	kge_draw_filtered(out, 5, 4, &all, &r);
	for (size_t i = 0; i < 5; i++)
		assert_true(out[i] == GRAPH_NONE);
	memset(seen, 0, sizeof(seen));
	kge_draw_filtered(out, 6000, 3, &one, &r);
	for (size_t i = 0; i < 6000; i++)
		seen[out[i]]++;
	assert_int_equal(seen[1], 0);
	assert_in_range(seen[0], 2800, 3200);
	assert_in_range(seen[2], 2800, 3200);
	memcpy(out, (const uint32_t[]){ 4, 5, 9, 1, 0 }, 20);
	kge_mask_answers(out, 5, &known);
	assert_true(out[0] == GRAPH_NONE && out[1] == 5 && out[2] == GRAPH_NONE && out[3] == 1 &&
		    out[4] == GRAPH_NONE);
}

static void test_draws_from_a_list(void **state)
{
	static const uint32_t list[] = { 2, 3, 5, 7, 11, 13, 17 };
	const struct graph_ids known = ids_of((const uint32_t[5]){ 2, 11, 17 }, 3), none = { 0 };
	uint32_t out[4000], seen[18] = { 0 };
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	kge_draw_among(out, 4000, list, 7, &known, &r);
	for (size_t i = 0; i < 4000; i++)
		seen[out[i]]++;
	for (size_t i = 0; i < 7; i++)
		if (list[i] == 2 || list[i] == 11 || list[i] == 17)
			assert_int_equal(seen[list[i]], 0);
		else
			assert_in_range(seen[list[i]], 850, 1150);
	assert_int_equal(seen[3] + seen[5] + seen[7] + seen[13], 4000);
	memset(seen, 0, sizeof(seen));
	kge_draw_among(out, 700, list, 7, &none, &r);
	for (size_t i = 0; i < 700; i++)
		seen[out[i]]++;
	for (size_t i = 0; i < 7; i++)
		assert_in_range(seen[list[i]], 50, 150);
}

/* Relation 0: one head with 6 tails, so tph = 6 and hpt = 1; relation 1 the other way around. */
static void test_bernoulli_sides(void **state)
{
	struct graph *g = names(N, STEPS);
	struct graph_answers *a;
	struct kge_sampler *s;
	size_t heads[3] = { 0 };
	struct rng r;

	(void)state;
	for (uint32_t i = 1; i <= 6; i++) {
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, i });
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, 1, 0 });
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, 2, i });
		graph_add(g, GRAPH_TEST, (struct graph_triple){ i, 0, 0 });
	}
	a = graph_answers_new(&g->split[GRAPH_TRAIN]);
	s = kge_sampler_new(KGE_SAMPLING_BERNOULLI, g, a);
	assert_true(kge_sampler_has_sides(s) && !kge_sampler_has_sides(NULL));
	rng_seed(&r, 3);
	for (size_t i = 0; i < 3 * 7000; i++)
		heads[i % 3] += kge_sampler_side(s, (uint32_t)(i % 3), &r) == GRAPH_HEAD;
	assert_in_range(heads[0], 5850, 6150);
	assert_in_range(heads[1], 850, 1150);
	assert_in_range(heads[2], 3300, 3700);
	kge_sampler_free(s);
	graph_answers_free(a);
	graph_free(g);
}

/* Each step moves what it drew: with typed, none but those of train at that side. */
static void test_typed_draws(void **state)
{
	struct graph *g = names(N, STEPS);
	struct kge_emb *before, *after;
	struct kge_train_config c = config();

	(void)state;
	for (uint32_t i = 0; i < 12; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i % 2, 0, 2 + i });
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, 20 });
	before = emb_of("distmult", 5, g, 2);
	c.corrupt = KGE_CORRUPT_TAIL;
	c.optimizer = KGE_SGD;
	c.negatives = 50;
	for (int filtered = 0; filtered < 2; filtered++)
		for (int typed = 0; typed < 2; typed++) {
			/* filtered: 6 tails of 12 are left, too few */
			bool few = !typed || filtered;

			c.filtered = filtered;
			c.sampling = typed ? KGE_SAMPLING_TYPED : KGE_SAMPLING_UNIFORM;
			after = kge_emb_copy(before);
			run(&c, g, after, 1);
			for (uint32_t e = 0; e < N; e++)
				if (e < 14 || few)
					assert_memory_not_equal(kge_ent(after, e),
								kge_ent(before, e), 20);
				else
					assert_memory_equal(kge_ent(after, e), kge_ent(before, e),
							    20);
			kge_emb_free(after);
		}
	kge_emb_free(before);
	graph_free(g);
}

/* How many entities have another row after so many epochs than they had; *set: which. */
static size_t moved(const struct kge_train_config *c, const struct graph *g,
		    const struct kge_emb *before, int epochs, bool set[])
{
	struct kge_emb *after = kge_emb_copy(before);
	size_t n = 0;

	run(c, g, after, epochs);
	for (uint32_t e = 0; e < before->n_ent; e++)
		n += set[e] = memcmp(kge_ent(after, e), kge_ent(before, e), 20) != 0;
	kge_emb_free(after);
	return n;
}

/* Many entities and few triples, so that what is drawn anew is another entity. */
static void test_draws_once(void **state)
{
	enum { MANY = 4000 };
	struct graph *g = names(MANY, STEPS);
	struct kge_train_config c = config();
	static bool first[MANY], later[MANY], both[MANY];
	struct kge_emb *emb;
	size_t n;

	(void)state;
	for (uint32_t i = 0; i < 40; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, i % 3, 40 + i });
	emb = emb_of("transe", 5, g, 2);
	c.optimizer = KGE_SGD;
	c.negatives = 4;
	c.lr = 0.1f;
	c.loss = KGE_LOSS_LOGISTIC; /* no step is lost in rounding */
	for (int k = 0; k < 8; k++) {
		c.draws = k < 4 ? KGE_DRAWS_ONCE : KGE_DRAWS_ANEW;
		c.shared_chunk = k % 2 == 0 ? 0 : 4;
		c.batch = k / 2 % 2 == 0 ? 10 : 8; /* an even and an odd number of them */
		c.corrupt = KGE_CORRUPT_BOTH;
		n = moved(&c, g, emb, 1, both);
		c.corrupt = KGE_CORRUPT_ALTERNATE;
		assert_true(moved(&c, g, emb, 2, first) > 80);
		if (k < 4) { /* two epochs ask every triple for both sides */
			assert_memory_equal(first, both, sizeof(both));
			assert_int_equal(moved(&c, g, emb, 9, later), n);
			assert_memory_equal(first, later, sizeof(later));
		} else {
			assert_true(moved(&c, g, emb, 9, later) > n + 50);
		}
	}
	kge_emb_free(emb);
	graph_free(g);
}

/* What a positive draws, or a chunk of them, another one of its batch does not draw again, nor one
 * of the next batch: of so many entities few come twice. */
static void test_draws_are_not_repeated(void **state)
{
	enum { MANY = 4000, TRIPLES = 40 };
	struct graph *g = names(MANY, STEPS);
	struct kge_train_config c = config();
	static bool set[MANY];
	struct kge_emb *emb;

	(void)state;
	for (uint32_t i = 0; i < TRIPLES; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, i % 3, TRIPLES + i });
	emb = emb_of("transe", 5, g, 2);
	c.optimizer = KGE_SGD;
	c.negatives = 16;
	c.lr = 0.1f;
	c.loss = KGE_LOSS_LOGISTIC; /* no step is lost in rounding */
	c.corrupt = KGE_CORRUPT_TAIL;
	for (uint32_t chunk = 1; chunk <= 4; chunk += 3)
		for (c.batch = 4; c.batch <= TRIPLES; c.batch *= 10) {
			size_t drawn = TRIPLES / chunk * c.negatives;

			c.shared_chunk = chunk;
			assert_true(moved(&c, g, emb, 1, set) > 2 * TRIPLES + drawn * 3 / 4);
		}
	kge_emb_free(emb);
	graph_free(g);
}

/* Relation 0 joins everything to everything, so its queries have no negatives; the rest scores
 * 0.  count(h, r) + count(r, t) is 4 and 2. */
static void test_subsampling_by_hand(void **state)
{
	struct graph *g = graph_new();
	struct kge_train_config c = config();
	double w0 = 1 / sqrt(4 + 6), w1 = 1 / sqrt(2 + 6), want;
	struct kge_emb *emb;

	(void)state;
	graph_vocab_add(g->entities, "a", 1);
	graph_vocab_add(g->entities, "b", 1);
	graph_vocab_add(g->relations, "r", 1);
	graph_vocab_add(g->relations, "s", 1);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 1, 0 });
	for (uint32_t i = 0; i < 4; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i / 2, 0, i % 2 });
	emb = emb_of("distmult", 1, g, 2);
	emb->ent[0] = 1;
	emb->ent[1] = 2;
	emb->rel[0] = 0.5f;
	emb->rel[1] = 0;
	want = w0 * .5 * (softplus(-.5) + 2 * softplus(-1) + softplus(-2)) + w1 * softplus(0);
	c.loss = KGE_LOSS_LOGISTIC;
	c.subsampling = true;
	c.batch = 100;
	for (uint32_t chunk = 0; chunk <= 2; chunk += 2)
		for (int both = 0; both < 2; both++) {
			c.shared_chunk = chunk;
			c.corrupt = both ? KGE_CORRUPT_BOTH : KGE_CORRUPT_TAIL;
			assert_near(loss_at(&c, g, emb, NULL), want / (4 * w0 + w1), 1e-6, 0);
		}
	c.filtered = false; /* the counts are there still, and everything is a negative */
	for (c.shared_chunk = 0; c.shared_chunk <= 2; c.shared_chunk += 2)
		assert_true(loss_at(&c, g, emb, NULL) > want / (4 * w0 + w1) + 0.1);
	kge_emb_free(emb);
	graph_free(g);
}

/* Entities a, b, c are in 4, 3 and 1 ends of triples, so they weigh 1, .8 and .4. */
static void test_rare_answers_by_hand(void **state)
{
	static const struct graph_triple triples[] = {
		{ 0, 0, 0 }, { 0, 0, 1 }, { 1, 0, 0 }, { 1, 0, 2 }
	};
	static const double weight[] = { 1, .8, .4 }, row[] = { 1, 2, -1 };
	struct graph *g = graph_new();
	struct kge_train_config c = config();
	double want = 0, all = 0;
	struct kge_emb *emb;

	(void)state;
	for (size_t i = 0; i < 3; i++)
		graph_vocab_add(g->entities, &"abc"[i], 1);
	graph_vocab_add(g->relations, "r", 1);
	for (size_t i = 0; i < 4; i++)
		graph_add(g, GRAPH_TRAIN, triples[i]);
	emb = emb_of("distmult", 1, g, 2);
	for (size_t e = 0; e < 3; e++)
		emb->ent[e] = (float)row[e];
	emb->rel[0] = 0.5f;
	for (size_t i = 0; i < 4; i++) {
		double s = .5 * row[triples[i].head], sum = 0;

		for (size_t e = 0; e < 3; e++)
			sum += exp(s * row[e]);
		want += weight[triples[i].tail] * (log(sum) - s * row[triples[i].tail]);
		all += weight[triples[i].tail];
	}
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.corrupt = KGE_CORRUPT_TAIL;
	c.rare_weight = 0.2f;
	for (c.query_answers = 0; c.query_answers < 2; c.query_answers++)
		assert_near(loss_at(&c, g, emb, NULL), want / all, 1e-6, 0);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_answers(void **state)
{
	struct graph_triple at[] = {
		{ 1, 0, 5 }, { 1, 0, 2 }, { 1, 1, 7 }, { 1, 0, 5 }, { 3, 0, 5 }
	};
	struct graph_triples t = { at, 5 };
	struct graph_answers *a = graph_answers_new(&t);
	uint32_t asked[5];
	struct graph_ids x;

	(void)state;
	x = graph_answers_of(a, 3, GRAPH_TAIL);
	assert_true(x.n == 2 && graph_ids_at(&x, 0) == 2 && graph_ids_at(&x, 1) == 5);
	x = graph_answers_of(a, 0, GRAPH_HEAD);
	assert_true(x.n == 2 && graph_ids_at(&x, 0) == 1 && graph_ids_at(&x, 1) == 3);
	x = graph_answers_of(a, 2, GRAPH_TAIL);
	assert_true(x.n == 1 && graph_ids_at(&x, 0) == 7);
	assert_int_equal(graph_answers_queries(a, GRAPH_TAIL, 0, asked), 3);
	assert_true(asked[0] == 0 && asked[1] == 2 << 1 && asked[2] == 4 << 1);
	assert_int_equal(graph_answers_queries(a, GRAPH_HEAD, 0, asked), 3);
	assert_true(asked[0] == 1 && asked[1] == (1 << 1 | 1) && asked[2] == (2 << 1 | 1));
	assert_int_equal(graph_answers_count(a, asked[0], 0), 2);
	assert_int_equal(graph_answers_queries(a, GRAPH_TAIL, 1, asked), 4); /* the repeat is one */
	assert_true(asked[0] == 0 && asked[1] == 1 << 1 && asked[2] == 2 << 1);
	assert_int_equal(graph_answers_count(a, asked[0], 1), 1);
	x = graph_answers_part(a, 3, GRAPH_TAIL, 1);
	assert_true(x.n == 1 && graph_ids_at(&x, 0) == 5);
	x = graph_answers_part(a, 1, GRAPH_TAIL, 1);
	assert_true(x.n == 1 && graph_ids_at(&x, 0) == 2);
	x = graph_answers_part(a, 1, GRAPH_TAIL, 2);
	assert_int_equal(x.n, 2);
	graph_answers_free(a);
}

/* When everything is true there is nothing to push away: no hang, no NaN. */
static void test_everything_true(void **state)
{
	struct graph *g = graph_new();
	struct kge_train_config c = config();
	struct kge_trainer *t;
	struct kge_emb *emb;
	double loss;

	(void)state;
	graph_vocab_add(g->entities, "a", 1);
	graph_vocab_add(g->relations, "r", 1);
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 0 });
	emb = emb_of("transe", 3, g, 2);
	for (uint32_t chunk = 0; chunk < 9; chunk += 4) {
		c.shared_chunk = chunk;
		t = kge_trainer_new(&c, g, emb);
		assert_int_equal(kge_trainer_epoch(t, &loss, NULL), 0);
		assert_true(isfinite(loss) && loss > 0);
		kge_trainer_free(t);
	}
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.threads = 3; /* lanes without rows */
	run(&c, g, emb, 2);
	for (size_t i = 0; i < 3; i++)
		assert_true(isfinite(emb->ent[i]) && isfinite(emb->rel[i]));
	kge_emb_free(emb);
	graph_free(g);
}

/* Entities 1 to 5 answer the one query there is; all others have one row, and so one score, so
 * that the loss is the same whichever are drawn, unless an answer is taken for false. */
static void test_shared_negatives_are_false(void **state)
{
	struct graph *g = names(N, STEPS);
	struct kge_train_config c = config();
	struct kge_emb *emb;
	double want, loss;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 + i % 5 });
	emb = emb_of("transe", 7, g, 2);
	for (uint32_t e = 1; e < N; e++)
		memcpy(kge_ent(emb, e), kge_ent(emb, e <= 5 ? 1 : 6), 7 * sizeof(float));
	memcpy(kge_ent(emb, 0), kge_ent(emb, 6), 7 * sizeof(float));
	c.corrupt = KGE_CORRUPT_TAIL;
	c.negatives = 100;
	c.batch = 20;
	c.loss = KGE_LOSS_LOGISTIC;
	want = .5 * (softplus(-(double)kge_score(emb, 0, 0, 1)) +
		     softplus((double)kge_score(emb, 0, 0, 6)));
	for (c.shared_chunk = 0; c.shared_chunk < 40; c.shared_chunk += 3) {
		loss = loss_at(&c, g, emb, NULL);
		assert_near(loss, want, 1e-5, 0);
	}
	c.filtered = false;
	loss = loss_at(&c, g, emb, NULL);
	assert_true(fabs(loss - want) > 1e-3);
	kge_emb_free(emb);
	graph_free(g);
}

/* All entities but 0 have one row, and 0 answers or is known everywhere, so that the loss says who
 * was asked for which side, and nothing of what was drawn: the same, however many share it. */
static void test_shared_sides_are_those_of_relations(void **state)
{
	struct graph *g = names(N, STEPS);
	struct kge_train_config c = config();
	struct kge_emb *emb;
	double want, tails;

	(void)state;
	for (uint32_t i = 0; i < 20; i++)
		for (uint32_t r = 0; r < 3; r++) /* many-to-one, one-to-many, both */
			graph_add(g, GRAPH_TRAIN,
				  r == 0 || (r == 2 && i % 2 == 0)
					  ? (struct graph_triple){ i, r, 0 }
					  : (struct graph_triple){ 0, r, i });
	emb = emb_of("distmult", 7, g, 2);
	for (uint32_t e = 2; e < N; e++)
		memcpy(kge_ent(emb, e), kge_ent(emb, 1), 7 * sizeof(float));
	c.loss = KGE_LOSS_LOGISTIC;
	c.negatives = 100; /* so that not all of a block are answers */
	c.batch = 25;
	c.corrupt = KGE_CORRUPT_TAIL;
	tails = loss_at(&c, g, emb, NULL);
	c.corrupt = KGE_CORRUPT_ALTERNATE;
	c.sampling = KGE_SAMPLING_BERNOULLI;
	want = loss_at(&c, g, emb, NULL);
	assert_true(fabs(want - tails) > 1e-3);
	for (c.shared_chunk = 2; c.shared_chunk < 40; c.shared_chunk += 3)
		assert_near(loss_at(&c, g, emb, NULL), want, 1e-5, 0);
	kge_emb_free(emb);
	graph_free(g);
}

/* With the matrix that TransR begins with, 1, it is TransE: what is true for a query counts in none
 * of the losses, be it hidden in a chunk's block or in each query's line. */
static void test_hidden_negatives_do_not_count(void **state)
{
	struct graph *g = web();
	struct kge_emb *one = emb_of("transe", 8, g, 2), *other = emb_of("transr", 8, g, 2);
	struct kge_train_config c = config();

	(void)state;
	memcpy(other->ent, one->ent, N * 8 * sizeof(float));
	for (uint32_t r = 0; r < STEPS; r++)
		memcpy(kge_rel(other, r), kge_rel(one, r), 8 * sizeof(float));
	c.batch = 400; /* all of web() */
	c.negatives = 60;
	c.shared_chunk = c.batch; /* in whatever order its queries come */
	c.corrupt = KGE_CORRUPT_BOTH;
	for (int loss = KGE_LOSS_SELF_ADVERSARIAL; loss <= KGE_LOSS_SOFTMAX; loss++) {
		double filtered;

		c.loss = (enum kge_loss)loss;
		c.filtered = true;
		filtered = loss_at(&c, g, one, NULL);
		assert_near(loss_at(&c, g, other, NULL), filtered, 1e-5, 0);
		c.filtered = false;
		assert_true(fabs(loss_at(&c, g, one, NULL) - filtered) > 1e-3);
	}
	kge_emb_free(one);
	kge_emb_free(other);
	graph_free(g);
}

/* Whose turn it is, and what is drawn, follow from the number of epochs: plain steps have no other
 * memory. */
static void check_seek(struct kge_train_config c, uint64_t epochs)
{
	struct graph *g = ring();
	struct kge_emb *whole = emb_of("transe", 8, g, 2), *sought = kge_emb_copy(whole);
	struct kge_trainer *t = kge_trainer_new(&c, g, whole);

	for (uint64_t i = 0; i < epochs; i++)
		assert_int_equal(kge_trainer_epoch(t, NULL, NULL), 0);
	kge_emb_assign(sought, whole);
	assert_int_equal(kge_trainer_epoch(t, NULL, NULL), 0);
	kge_trainer_free(t);
	t = kge_trainer_new(&c, g, sought);
	kge_trainer_seek(t, epochs);
	assert_int_equal(kge_trainer_epochs(t), epochs);
	assert_int_equal(kge_trainer_epoch(t, NULL, NULL), 0);
	assert_same(whole, sought, true);
	kge_trainer_free(t);
	kge_emb_free(whole);
	kge_emb_free(sought);
	graph_free(g);
}

static void test_seek_goes_on_as_after_so_many_epochs(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.optimizer = KGE_SGD;
	c.corrupt = KGE_CORRUPT_ALTERNATE;
	for (uint64_t epochs = 1; epochs <= 2; epochs++)
		for (c.batch = 30; c.batch <= 40; c.batch += 10) { /* four of them, and three */
			c.update = KGE_UPDATE_EXACT;
			check_seek(c, epochs);
			c.update = KGE_UPDATE_HOGWILD;
			check_seek(c, epochs);
		}
}

static void test_empty_graph(void **state)
{
	struct graph *g = graph_new();
	struct kge_train_config c = config();
	struct kge_emb *emb = emb_of("transe", 3, g, 2);
	struct kge_trainer *t = kge_trainer_new(&c, g, emb);
	double loss = -1;

	(void)state;
	assert_int_equal(kge_trainer_epoch(t, &loss, NULL), 0);
	assert_true(loss == 0);
	kge_trainer_free(t);
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	run(&c, g, emb, 1);
	kge_emb_free(emb);
	graph_free(g);
}

/* ---- runs ---- */

static void test_deterministic(void **state)
{
	struct graph *g = ring();

	(void)state;
	for (uint32_t threads = 1; threads <= 3; threads++) {
		struct kge_train_config c = config();
		struct kge_emb *a = emb_of(threads == 2 ? "transr" : "complex", 9, g, 2);
		struct kge_emb *b = kge_emb_copy(a);

		c.threads = threads;
		run(&c, g, a, 3);
		run(&c, g, b, 3);
		assert_same(a, b, true);
		c.seed++;
		run(&c, g, b, 1);
		run(&c, g, a, 0);
		assert_same(a, b, false);
		kge_emb_free(a);
		kge_emb_free(b);
	}
	graph_free(g);
}

/* Any number of threads computes the same step but for the order of a few additions. */
static void check_threads_agree(const char *model)
{
	struct graph *g = ring();
	struct kge_train_config c = config();
	struct kge_emb *one = emb_of(model, 20, g, 2);

	c.optimizer = KGE_SGD;
	c.lr = 0.1f;
	for (uint32_t threads = 2; threads <= 5; threads++) {
		struct kge_emb *a = kge_emb_copy(one), *b = kge_emb_copy(one);

		c.threads = 1;
		run(&c, g, a, 1);
		c.threads = threads;
		run(&c, g, b, 1);
		for (size_t i = 0; i < N * a->ent_floats; i++)
			assert_near(b->ent[i], a->ent[i], 1e-4, 1e-5);
		for (size_t i = 0; i < STEPS * a->rel_floats; i++)
			assert_near(b->rel[i], a->rel[i], 1e-4, 1e-5);
		kge_emb_free(a);
		kge_emb_free(b);
	}
	kge_emb_free(one);
	graph_free(g);
}

static void test_threads_agree(void **state)
{
	(void)state;
	check_threads_agree("transe_l2");
	check_threads_agree("transh_l2");
	check_threads_agree("transr_l2");
	check_threads_agree("transd_l2");
}

/* With shared negatives, to the bit. */
static void check_same_bits(struct kge_train_config c)
{
	struct graph *g = web();
	struct kge_emb *one = emb_of("complex", 9, g, 2), *other;

	other = kge_emb_copy(one);
	c.threads = 1;
	run(&c, g, one, 3);
	for (c.threads = 2; c.threads <= 4; c.threads++) {
		struct kge_emb *emb = kge_emb_copy(other);

		run(&c, g, emb, 3);
		assert_same(emb, one, true);
		kge_emb_free(emb);
	}
	kge_emb_free(one);
	kge_emb_free(other);
	graph_free(g);
}

static void test_threads_agree_on_shared(void **state)
{
	static const uint32_t chunks[] = { 2, 7, 16, 70, 1000 };
	struct kge_train_config c = config();

	(void)state;
	for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
		c.shared_chunk = chunks[i];
		c.optimizer = (enum kge_optimizer)(i % 4);
		c.corrupt = (enum kge_corrupt)(i % 3);
		c.normalize = i == 2;
		c.batch = i == 1 ? 33 : 150;
		check_same_bits(c);
		c.sampling = KGE_SAMPLING_BERNOULLI;
		c.corrupt = KGE_CORRUPT_ALTERNATE;
		check_same_bits(c);
		c.sampling = KGE_SAMPLING_UNIFORM;
	}
}

/* What sharing keeps in memory has a bound, however large chunks are. */
static void test_shared_fits(void **state)
{
	struct graph *g = ring();
	struct kge_emb *emb = emb_of("complex", 256, g, 2);
	struct kge_train_config c = config();

	(void)state;
	assert_false(kge_shared_fits(&c, emb));
	c.shared_chunk = 16;
	c.batch = 1024;
	c.negatives = 256;
	assert_true(kge_shared_fits(&c, emb));
	c.batch = 32768;
	c.negatives = 2048;
	for (c.shared_chunk = 2; c.shared_chunk <= 32768; c.shared_chunk *= 2)
		assert_false(kge_shared_fits(&c, emb));
	kge_emb_free(emb);
	emb = emb_of("transe", 1, g, 2); /* whose rows are padded */
	c.shared_chunk = 2;
	assert_false(kge_shared_fits(&c, emb));
	c.shared_chunk = 64;
	assert_true(kge_shared_fits(&c, emb));
	kge_emb_free(emb);
	graph_free(g);
}

static void check_resume_of(const char *model, struct kge_train_config c)
{
	struct graph *g = web();
	struct kge_emb *a = emb_of(model, 12, g, 2), *b = kge_emb_copy(a);

	c.batch = 33; /* five batches: saved in the middle of taking turns */
	run(&c, g, a, 5);
	run_resumed(&c, g, b, 3, 2);
	assert_same(a, b, true);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

static void check_resume(struct kge_train_config c)
{
	check_resume_of("transe", c);
}

static void test_resume(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	for (int o = KGE_SGD; o <= KGE_MOMENTUM; o++) {
		c.optimizer = (enum kge_optimizer)o;
		check_resume(c);
	}
	c.schedule_epochs = 6;
	for (int s = KGE_SCHEDULE_CONSTANT; s <= KGE_SCHEDULE_COSINE; s++) {
		c.schedule = (enum kge_schedule)s;
		check_resume(c);
	}
	c.optimizer = KGE_ADAM_SPARSE;
	c.threads = 2;
	check_resume(c);
	c.shared_chunk = 9;
	check_resume(c);
	c.subsampling = true;
	check_resume(c);
	c.shared_chunk = 0;
	c.sampling = KGE_SAMPLING_BERNOULLI;
	check_resume(c);
	c.shared_chunk = 9;
	check_resume(c);
	c.shared_chunk = 0;
	c.sampling = KGE_SAMPLING_TYPED;
	check_resume(c);
	c.sampling = KGE_SAMPLING_UNIFORM;
	c.subsampling = false;
	c.loss = KGE_LOSS_SOFTMAX;
	check_resume(c);
	c.negatives = 0;
	c.reg = KGE_REG_L3;
	c.reg_weight = 0.1f;
	check_resume(c);
}

/* Entities move by plain steps, and after so many of them the epoch is canceled. */
struct stopper {
	size_t floats, left; /* 0: never */
	atomic_bool cancel;
};

static void step_and_stop(void *ctx, const struct kge_step *s, uint32_t id, float *x,
			  const float *g)
{
	struct stopper *stop = ctx;

	(void)id;
	for (size_t i = 0; i < stop->floats; i++)
		x[i] -= s->lr * g[i];
	if (stop->left > 0 && --stop->left == 0)
		atomic_store(&stop->cancel, true);
}

static struct kge_trainer *stopped_trainer(const struct kge_train_config *c, const struct graph *g,
					   struct kge_emb *emb, struct stopper *stop)
{
	struct kge_trainer *t = kge_trainer_new(c, g, emb);

	stop->floats = emb->ent_floats;
	kge_trainer_set_step(t, step_and_stop, stop);
	return t;
}

/* As kge_trainer_epoch(), by another trainer where the first was stopped; returns whether it was.
 */
static bool epoch_in_two(const struct kge_train_config *c, const struct graph *g,
			 struct kge_emb *emb, struct stopper *stop, struct kge_trainer **t,
			 double *loss)
{
	struct buf saved = { 0 };

	if (kge_trainer_epoch(*t, loss, &stop->cancel) == 0)
		return false;
	kge_trainer_save(*t, &saved);
	kge_trainer_free(*t);
	*t = stopped_trainer(c, g, emb, stop);
	assert_int_equal(kge_trainer_load(*t, saved.base, saved.len, NULL), 0);
	assert_true(kge_trainer_is_resuming(*t));
	atomic_store(&stop->cancel, false);
	assert_int_equal(kge_trainer_epoch(*t, loss, &stop->cancel), 0);
	assert_false(kge_trainer_is_resuming(*t));
	buf_release(&saved);
	return true;
}

static void check_cut_of(const char *model, struct kge_train_config c)
{
	static const size_t steps[] = { 1, 60, 130, 400 };
	struct graph *g = web();

	c.batch = 33;
	c.normalize = true;
	for (size_t i = 0; i < sizeof(steps) / sizeof(steps[0]); i++) {
		struct kge_emb *a = emb_of(model, 12, g, 2), *b = kge_emb_copy(a);
		struct stopper never = { 0 }, once = { .left = steps[i] };
		struct kge_trainer *whole = stopped_trainer(&c, g, a, &never);
		struct kge_trainer *two = stopped_trainer(&c, g, b, &once);
		size_t cuts = 0;

		for (int k = 0; k < 4; k++) {
			double want, got;

			assert_int_equal(kge_trainer_epoch(whole, &want, NULL), 0);
			cuts += epoch_in_two(&c, g, b, &once, &two, &got);
			assert_true(got == want);
		}
		assert_int_equal(cuts, 1);
		assert_same(a, b, true);
		kge_trainer_free(whole);
		kge_trainer_free(two);
		kge_emb_free(a);
		kge_emb_free(b);
	}
	graph_free(g);
}

/* An epoch that is stopped, saved and gone on with is the same epoch. */
static void test_cut(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.optimizer = KGE_ADAM_SPARSE;
	c.schedule = KGE_SCHEDULE_LINEAR;
	check_cut_of("transe", c);
	check_cut_of("transh", c);
	c.shared_chunk = 9;
	check_cut_of("rotate", c);
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	check_cut_of("complex", c);
}

static void test_load_refuses(void **state)
{
	struct graph *g = ring();
	struct kge_train_config c = config();
	struct kge_emb *emb = emb_of("transe", 12, g, 2);
	struct kge_trainer *t = kge_trainer_new(&c, g, emb), *other;
	struct buf saved = { 0 };
	struct err e = { 0 };
	atomic_bool cancel = false;

	(void)state;
	kge_trainer_save(t, &saved);
	assert_int_equal(kge_trainer_load(t, saved.base, saved.len - 1, &e), ERR_INPUT);
	assert_int_equal(kge_trainer_load(t, saved.base, 0, &e), ERR_INPUT);
	c.seed++;
	other = kge_trainer_new(&c, g, emb);
	assert_int_equal(kge_trainer_load(other, saved.base, saved.len, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "seed"));
	saved.base[0] ^= 1;
	assert_int_equal(kge_trainer_load(t, saved.base, saved.len, &e), ERR_INPUT);
	buf_release(&saved);
	atomic_store(&cancel, true);
	kge_trainer_epoch(t, NULL, &cancel);
	kge_trainer_save(t, &saved);
	kge_trainer_free(other);
	c.seed--;
	other = kge_trainer_new(&c, g, emb);
	assert_int_equal(kge_trainer_load(other, saved.base, saved.len - 1, &e), ERR_INPUT);
	saved.base[saved.len - sizeof(double) * PARALLEL_MAX - 1] ^= 1; /* of the position */
	assert_int_equal(kge_trainer_load(other, saved.base, saved.len, &e), ERR_INPUT);
	assert_non_null(strstr(e.text, "interrupted"));
	buf_release(&saved);
	kge_trainer_free(t);
	kge_trainer_free(other);
	kge_emb_free(emb);
	graph_free(g);
}

/* Lazy Adam leaves a row alone that nothing touches; dense Adam goes on with its momentum. */
static void test_lazy_and_dense(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	for (int k = 0; k < 4; k++) {
		bool dense = k % 2 == 1;
		struct graph *g = ring(), *rest = names(N, STEPS);
		struct kge_emb *emb = emb_of("transe", 12, g, 2), *before;
		struct kge_trainer *t, *u;
		struct buf saved = { 0 };

		c.optimizer = dense ? KGE_ADAM_DENSE : KGE_ADAM_SPARSE;
		c.shared_chunk = k < 2 ? 0 : 4;
		c.negatives = 1;
		c.filtered = false;
		t = kge_trainer_new(&c, g, emb);
		kge_trainer_epoch(t, NULL, NULL);
		before = kge_emb_copy(emb);
		/* the same trainer's moments on a train split of the same size, all of relation 0
		 */
		for (uint32_t i = 0; i < N * STEPS; i++)
			graph_add(rest, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
		kge_trainer_save(t, &saved);
		u = kge_trainer_new(&c, rest, emb);
		assert_int_equal(kge_trainer_load(u, saved.base, saved.len, NULL), 0);
		kge_trainer_epoch(u, NULL, NULL);
		assert_true((memcmp(kge_rel(emb, 2), kge_rel(before, 2), 12 * sizeof(float)) !=
			     0) == dense);
		assert_memory_not_equal(kge_rel(emb, 0), kge_rel(before, 0), 12 * sizeof(float));
		buf_release(&saved);
		kge_trainer_free(t);
		kge_trainer_free(u);
		kge_emb_free(emb);
		kge_emb_free(before);
		graph_free(g);
		graph_free(rest);
	}
}

static size_t outside_the_ball(const struct kge_emb *emb)
{
	size_t n = 0;

	for (uint32_t i = 0; i < emb->n_ent; i++) {
		float sum = 0;

		for (size_t k = 0; k < emb->ent_floats; k++)
			sum += kge_ent(emb, i)[k] * kge_ent(emb, i)[k];
		n += sum > 1.0001f;
	}
	return n;
}

/* Each row in a query's line, in chunks, and against all entities. */
static void test_normalize(void **state)
{
	struct graph *g = ring();

	(void)state;
	for (int way = 0; way < 6; way++) {
		struct kge_emb *emb = emb_of("transe", 12, g, 30);
		struct kge_train_config c = config();

		c.normalize = way % 2 == 1;
		c.loss = way < 4 ? KGE_LOSS_MARGIN : KGE_LOSS_SOFTMAX;
		c.negatives = way < 4 ? 5 : 0;
		c.shared_chunk = way < 2 ? 0 : 8;
		c.optimizer = KGE_SGD;
		c.lr = 0.5f;
		run(&c, g, emb, 3);
		assert_true((outside_the_ball(emb) == 0) == c.normalize);
		kge_emb_free(emb);
	}
	graph_free(g);
}

static void test_cancel(void **state)
{
	struct graph *g = ring();
	struct kge_train_config c = config();

	(void)state;
	c.threads = 2;
	check_cancel(&c, g);
	graph_free(g);
}

static void test_schedules_by_hand(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.schedule_epochs = 8;
	assert_true(kge_schedule_at(&c, 5) == 1);
	c.schedule = KGE_SCHEDULE_STEP;
	assert_true(kge_schedule_at(&c, 3.99) == 1);
	assert_true(kge_schedule_at(&c, 4) == 0.1f && kge_schedule_at(&c, 1e6) == 0.1f);
	c.schedule = KGE_SCHEDULE_LINEAR;
	assert_true(kge_schedule_at(&c, 0) == 1);
	assert_near(kge_schedule_at(&c, 2), 0.7525, 1e-6, 0);
	assert_near(kge_schedule_at(&c, 9), 0.01, 1e-6, 0);
	c.schedule = KGE_SCHEDULE_COSINE;
	assert_true(kge_schedule_at(&c, 0) == 1);
	assert_near(kge_schedule_at(&c, 2), 0.01 + 0.99 * 0.5 * (1 + sqrt(0.5)), 1e-6, 0);
	assert_near(kge_schedule_at(&c, 8), 0.01, 1e-6, 0);
}

/* A schedule is the rates that it says, batch by batch. */
static void test_schedule_is_followed(void **state)
{
	struct graph *g = ring();
	struct kge_train_config c = config(), by_hand;
	struct kge_emb *a = emb_of("distmult", 12, g, 2), *b = kge_emb_copy(a);
	struct kge_trainer *t;
	struct buf saved = { 0 };

	(void)state;
	c.optimizer = KGE_MOMENTUM;
	c.schedule = KGE_SCHEDULE_LINEAR;
	c.schedule_epochs = 2;
	c.batch = 1000;
	run(&c, g, a, 3);
	by_hand = c;
	by_hand.schedule = KGE_SCHEDULE_CONSTANT;
	for (int i = 0; i < 3; i++) {
		by_hand.lr = c.lr * kge_schedule_at(&c, i);
		t = kge_trainer_new(&by_hand, g, b);
		if (i > 0)
			assert_int_equal(kge_trainer_load(t, saved.base, saved.len, NULL), 0);
		saved.len = 0;
		kge_trainer_epoch(t, NULL, NULL);
		kge_trainer_save(t, &saved);
		kge_trainer_free(t);
	}
	assert_same(a, b, true);
	c.batch = 60; /* the second batch is in the middle of the epoch */
	kge_emb_assign(b, a);
	run(&c, g, a, 1);
	c.schedule = KGE_SCHEDULE_CONSTANT;
	run(&c, g, b, 1);
	assert_same(a, b, false);
	buf_release(&saved);
	kge_emb_free(a);
	kge_emb_free(b);
	graph_free(g);
}

/* ---- learning ---- */

static void check_learns(const char *model, const struct kge_train_config *c)
{
	struct graph *g = street(N);
	struct kge_emb *emb = emb_of(model, 16, g, 6);
	double before = train_mrr(g, emb), after;

	run(c, g, emb, 200);
	after = train_mrr(g, emb);
	if (!(before < 0.2 && after > 0.5))
		fail_msg("%s: MRR %.3f, then %.3f", model, before, after);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_learns(void **state)
{
	(void)state;
	for (size_t i = 0; kge_models[i] != NULL; i++) {
		struct kge_train_config c = config();

		c.lr = 0.02f;
		c.negatives = 16;
		c.threads = 1 + (uint32_t)i % 2;
		check_learns(kge_models[i]->name, &c);
		if (kge_models[i]->project != NULL && kge_models[i]->metric == KGE_L2)
			continue; /* its sister with L1 goes on */
		c.shared_chunk = 8;
		c.corrupt = KGE_CORRUPT_BOTH;
		check_learns(kge_models[i]->name, &c);
		c.loss = KGE_LOSS_SOFTMAX;
		check_learns(kge_models[i]->name, &c);
		c.negatives = 0;
		if (kge_models[i]->project == NULL)
			check_learns(kge_models[i]->name, &c);
	}
}

static void test_learns_with_each_optimizer(void **state)
{
	static const float lr[] = { [KGE_SGD] = 5,
				    [KGE_ADAGRAD] = 0.1f,
				    [KGE_ADAM_DENSE] = 0.02f,
				    [KGE_ADAM_SPARSE] = 0.02f,
				    [KGE_MOMENTUM] = 0.5f };

	(void)state;
	for (int o = KGE_SGD; o <= KGE_MOMENTUM; o++) {
		struct kge_train_config c = config();

		c.optimizer = (enum kge_optimizer)o;
		c.lr = lr[o];
		c.negatives = 16;
		check_learns("complex", &c);
	}
}

/* ---- models that project ---- */

/* What a relation sees of a row has a length of its own, and several lanes meet a relation. */
static void check_projected_step(const char *model, size_t dim, size_t rel_dim, uint32_t threads)
{
	const struct kge_model *m = kge_model_find(model);
	struct graph *g = ring();
	struct kge_train_config c = config();
	struct kge_emb *emb;
	struct rng r;

	rng_seed(&r, dim);
	emb = kge_emb_new_dims(m, dim, m->own_rel_dim ? rel_dim : 0, 2, N, STEPS, &r);
	for (size_t i = 0; i < emb->n_rel * emb->rel_floats; i++)
		emb->rel[i] += rng_range(&r, -0.3f, 0.3f); /* no matrix with zeros */
	c.loss = dim % 2 == 0 ? KGE_LOSS_LOGISTIC : KGE_LOSS_SOFTMAX;
	c.corrupt = KGE_CORRUPT_BOTH;
	c.threads = threads;
	c.shared_chunk = dim % 3 == 0 ? 8 : 0;
	c.negatives = dim % 4 == 3 ? 0 : 5; /* 0: against all */
	check_slopes(g, emb, c);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_projected_gradients(void **state)
{
	static const size_t dims[] = { 1, 2, 3, 4, 6, 7, 8, 11, 12, 13, 15, 16, 31, 33 };
	static const char *const models[] = { "transh_l2", "transr_l2", "transd_l2" };

	(void)state;
	for (size_t i = 0; i < sizeof(dims) / sizeof(dims[0]); i++)
		for (size_t m = 0; m < 3; m++)
			/* a plane leaves nothing of one dimension */
			if (dims[i] > 1 || m > 0)
				check_projected_step(models[m], dims[i], 1 + dims[i] * 7 % 18,
						     1 + (uint32_t)i % 3);
}

static void test_projected_resume(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.threads = 2;
	check_resume_of("transd_l2", c);
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.optimizer = KGE_ADAM_DENSE;
	check_resume_of("transr", c);
}

/* TransD's ball is that of the entity, not of the vector that projects it. */
static void test_normalize_half_a_row(void **state)
{
	struct graph *g = names(N, STEPS);
	struct kge_emb *emb = emb_of("transd", 2, g, 2);
	static const float row[] = { 3, 4, 30, 40 };

	(void)state;
	memcpy(kge_ent(emb, 1), row, sizeof(row));
	kge_emb_normalize(emb);
	assert_near(kge_ent(emb, 1)[0], .6, 1e-6, 0);
	assert_near(kge_ent(emb, 1)[1], .8, 1e-6, 0);
	assert_memory_equal(kge_ent(emb, 1) + 2, row + 2, 2 * sizeof(float));
	kge_emb_free(emb);
	graph_free(g);
}

/* ---- memory ---- */

/* Of the heap, what is in use; 0 where a sanitizer has another one. */
static double heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return (double)m.uordblks + (double)m.hblkhd;
}

static void check_bytes_of(const char *model, const struct kge_train_config *c)
{
	struct graph *g = web();
	struct kge_emb *emb = emb_of(model, 16, g, 2);
	double rows = (double)N * (double)emb->ent_floats + STEPS * (double)emb->rel_floats;
	double says = kge_train_bytes(c, emb, g->split[GRAPH_TRAIN].n) - rows * sizeof(float),
	       begin = heap_bytes();
	struct kge_trainer *t = kge_trainer_new(c, g, emb);
	double took = heap_bytes() - begin;

	if (took > 0 && fabs(took - says) > 0.02 * took + (1 << 16))
		fail_msg("%s: %.0f bytes said, %.0f taken", model, says, took);
	kge_trainer_free(t);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_memory_is_foreseen(void **state)
{
	struct kge_train_config c = config();

	(void)state;
	c.batch = 512;
	c.negatives = 100;
	c.threads = 3;
	c.corrupt = KGE_CORRUPT_BOTH;
	check_bytes_of("transe", &c);
	check_bytes_of("transr", &c);
	c.shared_chunk = 16;
	check_bytes_of("transe", &c);
	c.shared_chunk = 0;
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.batch = 4096;
	check_bytes_of("transe", &c);
	c.relation_weight = 1;
	check_bytes_of("complex", &c);
}

/* A batch larger than train takes what one as large takes: each kind of batch. */
static void test_no_more_memory_than_triples(void **state)
{
	struct graph *g = web();
	size_t n = g->split[GRAPH_TRAIN].n;

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		struct kge_train_config c = config(), whole;
		struct kge_emb shape =
			kge_emb_shape(kge_model_find("distmult"), 16, 0, 2, N, STEPS);

		c.corrupt = kind == 1 ? KGE_CORRUPT_BOTH : KGE_CORRUPT_ALTERNATE;
		c.shared_chunk = kind == 2 ? 16 : 0;
		c.negatives = kind == 3 ? 0 : 100;
		c.loss = kind == 3 ? KGE_LOSS_SOFTMAX : c.loss;
		c.relation_weight = kind == 3 ? 1 : 0;
		c.threads = 3;
		whole = c;
		c.batch = 32768;
		whole.batch = (uint32_t)(kind == 3 ? 2 * n : n);
		assert_true(kge_train_bytes(&c, &shape, n) == kge_train_bytes(&whole, &shape, n));
		assert_true(kge_train_bytes(&c, &shape, 0) >
			    10 * kge_train_bytes(&whole, &shape, 0));
		check_bytes_of("distmult", &c);
	}
	graph_free(g);
}

/* ---- settings ---- */

static void test_check(void **state)
{
	struct kge_train_config c = config();
	struct err e = { 0 };

	(void)state;
	assert_int_equal(kge_train_check(&c, &e), 0);
	c.negatives = 0;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.negatives"));
	c.loss = KGE_LOSS_SOFTMAX;
	assert_int_equal(kge_train_check(&c, &e), 0);
	c.batch = 1 << 13;
	assert_int_equal(kge_train_check_size(&c, 1 << 13, &e), 0);
	assert_int_equal(kge_train_check_size(&c, (1 << 13) + 1, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.batch"));
	c = config();
	assert_int_equal(kge_train_check_size(&c, UINT32_MAX, &e), 0);
	c.lr = NAN;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	c = config();
	c.sampling = KGE_SAMPLING_TYPED;
	assert_int_equal(kge_train_check(&c, &e), 0);
	c.shared_chunk = 2;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.shared_chunk"));
	c = config();
	c.sampling = KGE_SAMPLING_BERNOULLI;
	c.corrupt = KGE_CORRUPT_BOTH;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.corrupt"));
	c = config();
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.subsampling = true;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "train.subsampling"));
	for (int k = 0; k < 4; k++) {
		static const char *const why[] = { "racing", "negatives 0", "bernoulli", "anew" };

		c = config();
		c.draws = KGE_DRAWS_ONCE;
		assert_int_equal(kge_train_check(&c, &e), 0);
		c.update = k == 0 ? KGE_UPDATE_HOGWILD : KGE_UPDATE_EXACT;
		c.negatives = k == 1 ? 0 : 4;
		c.loss = k == 1 ? KGE_LOSS_SOFTMAX : KGE_LOSS_LOGISTIC;
		c.sampling = k == 2 ? KGE_SAMPLING_BERNOULLI : KGE_SAMPLING_UNIFORM;
		c.dp = (struct kge_dp_config){
			.epsilon = k == 3, .delta = 1e-5, .clip = 1, .rate = .1
		};
		assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
		assert_non_null(strstr(e.text, why[k]));
	}
	c = config();
	c.momentum = 1;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	c = config();
	c.schedule_epochs = 0;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	c = config();
	c.threads = 1000;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
	c = config();
	c.batch = 32768;
	c.negatives = 65534;
	assert_int_equal(kge_train_check(&c, &e), ERR_USAGE);
}

/* With an argument, only the tests whose names match: meson.build picks those with threads for
 * TSan. */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_gradients),
		cmocka_unit_test(test_no_gradient_is_lost),
		cmocka_unit_test(test_gradients_against_all),
		cmocka_unit_test(test_gradients_of_the_regularizer),
		cmocka_unit_test(test_losses_by_hand),
		cmocka_unit_test(test_regularizer_by_hand),
		cmocka_unit_test(test_threads_agree_against_all),
		cmocka_unit_test(test_reg_loss),
		cmocka_unit_test(test_gradients_of_draws),
		cmocka_unit_test(test_gradients_of_each_positive),
		cmocka_unit_test(test_nothing_between),
		cmocka_unit_test(test_loss_of_each_positive),
		cmocka_unit_test(test_filtered_draws),
		cmocka_unit_test(test_draws_from_a_list),
		cmocka_unit_test(test_bernoulli_sides),
		cmocka_unit_test(test_typed_draws),
		cmocka_unit_test(test_draws_once),
		cmocka_unit_test(test_draws_are_not_repeated),
		cmocka_unit_test(test_subsampling_by_hand),
		cmocka_unit_test(test_rare_answers_by_hand),
		cmocka_unit_test(test_answers),
		cmocka_unit_test(test_everything_true),
		cmocka_unit_test(test_shared_negatives_are_false),
		cmocka_unit_test(test_shared_sides_are_those_of_relations),
		cmocka_unit_test(test_hidden_negatives_do_not_count),
		cmocka_unit_test(test_seek_goes_on_as_after_so_many_epochs),
		cmocka_unit_test(test_empty_graph),
		cmocka_unit_test(test_deterministic),
		cmocka_unit_test(test_threads_agree),
		cmocka_unit_test(test_threads_agree_on_shared),
		cmocka_unit_test(test_shared_fits),
		cmocka_unit_test(test_resume),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_load_refuses),
		cmocka_unit_test(test_schedules_by_hand),
		cmocka_unit_test(test_schedule_is_followed),
		cmocka_unit_test(test_lazy_and_dense),
		cmocka_unit_test(test_normalize),
		cmocka_unit_test(test_cancel),
		cmocka_unit_test(test_learns),
		cmocka_unit_test(test_learns_with_each_optimizer),
		cmocka_unit_test(test_projected_gradients),
		cmocka_unit_test(test_projected_resume),
		cmocka_unit_test(test_normalize_half_a_row),
		cmocka_unit_test(test_memory_is_foreseen),
		cmocka_unit_test(test_no_more_memory_than_triples),
		cmocka_unit_test(test_check),
	};

	if (argc > 1)
		test_only(tests, sizeof(tests) / sizeof(*tests), argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
