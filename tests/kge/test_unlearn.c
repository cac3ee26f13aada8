/* Unlearning: forgotten triples lose their ranks, others keep theirs; what is kept, and what a rank
 * of a forgotten triple is. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "kge/unlearn.h"

/* A street, which generalises: some of it is held out.  And acquaintances by lot, which can
 * only be learnt by heart: some of these are to be forgotten. */
enum { HOUSES = 50, FRIENDS = 60, FORGOTTEN = 12 };

static struct graph *town(void)
{
	struct graph *g = names(HOUSES, 4);
	struct rng r;

	rng_seed(&r, 4);
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t i = 0; i + k + 1 < HOUSES; i++) {
			enum graph_split s = i % 7 == k	  ? GRAPH_TEST
					     : i % 9 == k ? GRAPH_VALID
							  : GRAPH_TRAIN;

			graph_add(g, s, (struct graph_triple){ i, k, i + k + 1 });
		}
	for (uint32_t i = 0; i < FRIENDS; i++)
		graph_add(g, GRAPH_TRAIN,
			  (struct graph_triple){ (i * 7) % HOUSES, 3, rng_below(&r, HOUSES) });
	return g;
}

static void forgotten_of(const struct graph *g, uint32_t *forget)
{
	for (uint32_t i = 0; i < FORGOTTEN; i++)
		forget[i] = (uint32_t)g->split[GRAPH_TRAIN].n - 1 - 4 * i;
}

static struct kge_train_config training(void)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.threads = 1;
	c.negatives = 16;
	c.batch = 64;
	c.lr = .02f;
	c.corrupt = KGE_CORRUPT_BOTH;
	return c;
}

struct figures {
	double forgotten, test;
};

static struct figures judge(const struct kge_emb *emb, const struct graph *g,
			    const uint32_t *forget)
{
	const struct kge_protocol *p = kge_protocol_find("standard");
	struct graph kept = kge_kept_of(g, forget, FORGOTTEN);
	struct kge_metrics m;
	struct figures f;

	assert_int_equal(kge_evaluate_forgotten(emb, g, forget, FORGOTTEN, p, NULL, &m), 0);
	assert_int_equal(m.queries, 2 * FORGOTTEN);
	f.forgotten = m.mrr;
	assert_int_equal(kge_evaluate(emb, &kept, GRAPH_TEST, p, NULL, &m), 0);
	f.test = m.mrr;
	kge_kept_release(&kept);
	return f;
}

static void check_forgets(const struct kge_emb *emb, const struct graph *g, const uint32_t *forget,
			  struct figures before)
{
	struct figures after = judge(emb, g, forget);

	assert_true(before.forgotten > .5 && before.test > .5);
	if (!(after.forgotten < .5 * before.forgotten && after.test > before.test - .1))
		fail_msg("forgotten %.3f -> %.3f, test %.3f -> %.3f", before.forgotten,
			 after.forgotten, before.test, after.test);
}

static void check_unlearns(const char *model, enum kge_unlearn_variant v, bool two_tables)
{
	struct graph *g = town();
	struct kge_emb *local = emb_of(model, 24, g, 6), *global = kge_emb_copy(local);
	struct kge_train_config c = training();
	struct kge_unlearn_config u;
	struct kge_unlearn_report r;
	uint32_t forget[FORGOTTEN];
	struct figures before[2];
	float *relations;

	forgotten_of(g, forget);
	run(&c, g, local, 150);
	c.seed = 2;
	run(&c, g, global, 150);
	memcpy(global->rel, local->rel, 4 * local->rel_floats * sizeof(float));
	relations = mem_copy(local->rel, 4 * local->rel_floats * sizeof(float));
	before[0] = judge(local, g, forget);
	before[1] = judge(global, g, forget);
	kge_unlearn_defaults(&u, &c, v);
	assert_int_equal(kge_unlearn_check(&u, NULL), 0);
	assert_int_equal(
		kge_unlearn(&u, g, forget, FORGOTTEN, local, two_tables ? global : NULL, &r, NULL),
		0);
	check_forgets(local, g, forget, before[0]);
	if (two_tables)
		check_forgets(global, g, forget, before[1]);
	assert_memory_equal(local->rel, relations, 4 * local->rel_floats * sizeof(float));
	assert_true(r.decay_epochs >= 1 && r.decay_epochs <= u.decay_epochs);
	assert_true(r.valid_before.local > 0 && r.valid_after.local > 0 &&
		    r.valid_interfered.local > 0);
	assert_true(two_tables == (r.valid_before.global > 0 && r.valid_after.global > 0));
	free(relations);
	kge_emb_free(local);
	kge_emb_free(global);
	graph_free(g);
}

static void test_unlearns(void **state)
{
	(void)state;
	check_unlearns("rotate", KGE_UNLEARN_CODE, false);
	check_unlearns("rotate", KGE_UNLEARN_PAPER, false);
	check_unlearns("rotate", KGE_UNLEARN_CODE, true);
}

/* The tables that are kept are those of the epoch with the best MRR on valid. */
static void test_best_is_kept(void **state)
{
	struct graph *g = town();
	struct kge_emb *emb = emb_of("transe", 24, g, 6);
	struct kge_train_config c = training();
	struct kge_unlearn_config u;
	struct kge_unlearn_report r;
	struct kge_metrics m;
	struct graph kept;
	uint32_t forget[FORGOTTEN];

	(void)state;
	forgotten_of(g, forget);
	run(&c, g, emb, 60);
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_CODE);
	u.decay_epochs = 60;
	assert_int_equal(kge_unlearn(&u, g, forget, FORGOTTEN, emb, NULL, &r, NULL), 0);
	kept = kge_kept_of(g, forget, FORGOTTEN);
	assert_int_equal(kge_evaluate(emb, &kept, GRAPH_VALID, u.protocol, NULL, &m), 0);
	assert_near(m.mrr, r.valid_after.local, 0, 0);
	assert_true(r.decay_epochs < 60);
	kge_kept_release(&kept);
	kge_emb_free(emb);
	graph_free(g);
}

/* What a heavy hand has hurt takes more than one epoch to recover; shares are of before, unless
 * others are said. */
static void test_decay_goes_on_while_it_helps(void **state)
{
	struct graph *g = town();
	struct kge_emb *trained = emb_of("rotate", 24, g, 6);
	struct kge_train_config c = training();
	struct kge_unlearn_config u;
	struct kge_unlearn_report r[2];
	uint32_t forget[FORGOTTEN];

	(void)state;
	forgotten_of(g, forget);
	run(&c, g, trained, 150);
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_CODE);
	u.interference.forgotten = 100;
	u.interference_epochs = 40;
	u.decay_patience = 10;
	for (int said = 0; said < 2; said++) {
		struct kge_emb *emb = kge_emb_copy(trained);

		if (said)
			u.valid_from = r[0].valid_before;
		assert_int_equal(kge_unlearn(&u, g, forget, FORGOTTEN, emb, NULL, &r[said], NULL),
				 0);
		kge_emb_free(emb);
	}
	assert_true(r[0].decay_epochs > 1);
	assert_memory_equal(&r[0], &r[1], sizeof(r[0]));
	kge_emb_free(trained);
	graph_free(g);
}

static bool holds(const struct graph_triples *t, struct graph_triple x)
{
	for (size_t i = 0; i < t->n; i++)
		if (memcmp(&t->at[i], &x, sizeof(x)) == 0)
			return true;
	return false;
}

static void test_what_is_kept(void **state)
{
	struct graph *g = street(5);
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];
	const uint32_t forget[3] = { 0, 4, (uint32_t)train->n - 1 };
	struct graph kept = kge_kept_of(g, forget, 3);

	(void)state;
	assert_int_equal(kept.split[GRAPH_TRAIN].n, train->n - 3);
	for (uint32_t i = 0; i < train->n; i++)
		assert_true(holds(&kept.split[GRAPH_TRAIN], train->at[i]) ==
			    (i != forget[0] && i != forget[1] && i != forget[2]));
	kge_kept_release(&kept);
	graph_free(g);
}

/* Two forgotten answers of one query: neither is set aside for the other, as a known one is. */
static void test_rank_of_the_forgotten(void **state)
{
	struct graph *g = names(5, 1);
	struct kge_emb *emb = emb_of("transe", 1, g, 10);
	const uint32_t forget[2] = { 0, 1 };
	struct kge_protocol p = *kge_protocol_find("tail");
	struct kge_metrics m;

	(void)state;
	for (uint32_t i = 0; i < 3; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, i });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 0, 0, 3 });
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, 4 });
	emb->rel[0] = 0;
	for (uint32_t i = 0; i < 5; i++)
		emb->ent[i] = (float)(3 - i); /* 0 -> 3: the nearer to 3 the better */
	emb->ent[3] = emb->ent[4] = 2.5F;
	/* best first: 0, 3 and 4, 1, 2; 2 is known, 3 is of test, 4 of valid */
	assert_int_equal(kge_evaluate_forgotten(emb, g, forget, 2, &p, NULL, &m), 0);
	assert_int_equal(m.queries, 2);
	assert_near(m.mrr, (1 + .5) / 2, 1e-9, 0);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_settings(void **state)
{
	struct kge_train_config c;
	struct kge_unlearn_config u;

	(void)state;
	kge_train_defaults(&c);
	c.loss = KGE_LOSS_SOFTMAX;
	c.negatives = 0;
	c.batch = 4096;
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_PAPER);
	assert_int_equal(kge_unlearn_check(&u, NULL), 0);
	assert_true(u.train.negatives > 0 && u.train.batch == 256);
	c.relation_weight = 2; /* what goes with all entities alone */
	c.query_answers = 8;
	c.precision = KGE_BFLOAT16;
	c.reg = KGE_REG_DURA;
	c.reg_weight = .1f;
	c.schedule = KGE_SCHEDULE_COSINE; /* of its own epochs */
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_PAPER);
	assert_int_equal(kge_unlearn_check(&u, NULL), 0);
	assert_int_equal(u.train.schedule, KGE_SCHEDULE_CONSTANT);
	assert_int_equal(u.train.corrupt, KGE_CORRUPT_BOTH);
	kge_train_defaults(&c);
	c.update = KGE_UPDATE_HOGWILD;
	c.shared_chunk = 0;
	c.sampling = KGE_SAMPLING_BERNOULLI;
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_CODE);
	assert_int_equal(kge_unlearn_check(&u, NULL), 0);
	u.interference.soft = -1;
	assert_int_equal(kge_unlearn_check(&u, NULL), ERR_USAGE);
}

/* FedLU's weights and epochs: of the paper, and of its code, which are not the same (methods 4.1).
 */
static void test_defaults(void **state)
{
	struct kge_train_config c = training();
	struct kge_unlearn_config u;

	(void)state;
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_PAPER);
	assert_true(u.interference.forgotten == 1 && u.interference.negatives == 1);
	assert_true(u.interference.soft == 0.1f && !u.interference.soft_norm);
	assert_true(u.distill == 2 && u.interference_epochs == 10 && u.decay_epochs == 10);
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_CODE);
	assert_true(u.interference.forgotten == 5 && u.interference.negatives == 0.5f);
	assert_true(u.interference.soft == 0.1f && u.interference.soft_norm);
	assert_true(u.distill == 2 && u.interference_epochs == 20 && u.decay_epochs == 10);
}

static double softplus(double x)
{
	return log1p(exp(x));
}

/* softplus(s+) + 1/n sum_j softplus(s_j), the paper's Eq. 12, of four negatives. */
static double hard_by_hand(const double *s)
{
	return softplus(s[0]) +
	       (softplus(s[1]) + softplus(s[2]) + softplus(s[3]) + softplus(s[4])) / 4;
}

/* The paper's hard loss weighs negatives alike, also where training has weighed them by score. */
static void test_hard_loss_of_the_paper(void **state)
{
	enum { N = 4 };
	const float s[N + 1] = { 2, -1, .5F, 3, 1 };
	float d[N + 1], work[3 * N];
	double x[N + 1];
	struct kge_train_config c = training();
	struct kge_unlearn_config u;

	(void)state;
	c.loss = KGE_LOSS_SELF_ADVERSARIAL;
	c.temperature = 1;
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_PAPER);
	for (int i = 0; i <= N; i++)
		x[i] = (double)s[i];
	assert_near(kge_hard_of(&u.interference, &u.train, kge_kernels_pick(), s, d, N, N, work),
		    hard_by_hand(x), 1e-5, 0);
	for (int i = 0; i <= N; i++) {
		double up, down;

		x[i] += 1e-5;
		up = hard_by_hand(x);
		x[i] -= 2e-5;
		down = hard_by_hand(x);
		x[i] += 1e-5;
		assert_near((double)d[i], (up - down) / 2e-5, 1e-4, 1e-6);
	}
	/* the code's go by the training's loss, as that of decay does */
	assert_int_equal(u.train.loss, KGE_LOSS_SELF_ADVERSARIAL);
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_CODE);
	kge_hard_of(&u.interference, &u.train, kge_kernels_pick(), s, d, N, N, work);
	assert_true(d[3] > 4 * d[4]);
}

/* Negatives that are hidden count in neither of the two: two are there of three. */
static void test_soft_losses_by_hand(void **state)
{
	const float s[] = { 1, .5F, KGE_NO_SCORE, 3 };
	struct kge_interference mean = { .soft = .5F }, norm = { .soft = .5F, .soft_norm = true };
	float d[4] = { 0 }, e[4] = { 0 };
	double length = sqrt(.25 + 4);

	(void)state;
	assert_near(kge_soft_of(&mean, s, d, 3, 2, 2), .5 * (.5 + 2) / 2, 1e-6, 0);
	assert_near((double)d[1], -2 * .5 / 2, 1e-6, 0);
	assert_near((double)d[3], 2 * .5 / 2, 1e-6, 0);
	assert_true(d[2] == 0 && d[0] == 0); /* one above, one below */
	assert_near(kge_soft_of(&norm, s, e, 3, 2, 2), .5 * length, 1e-6, 0);
	assert_near((double)e[1], 2 * .5 * -.5 / length, 1e-6, 0);
	assert_near((double)e[3], 2 * .5 * 2 / length, 1e-6, 0);
	assert_near((double)e[0], 2 * .5 * -1.5 / length, 1e-6, 0);
	assert_true(e[2] == 0);
}

static void test_cancel(void **state)
{
	struct graph *g = town();
	struct kge_emb *emb = emb_of("transe", 8, g, 6);
	struct kge_train_config c = training();
	struct kge_unlearn_config u;
	uint32_t forget[FORGOTTEN];
	atomic_bool cancel = true;

	(void)state;
	forgotten_of(g, forget);
	kge_unlearn_defaults(&u, &c, KGE_UNLEARN_CODE);
	assert_int_equal(kge_unlearn(&u, g, forget, FORGOTTEN, emb, NULL, NULL, &cancel),
			 ERR_CANCELED);
	kge_emb_free(emb);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_unlearns),
		cmocka_unit_test(test_best_is_kept),
		cmocka_unit_test(test_decay_goes_on_while_it_helps),
		cmocka_unit_test(test_what_is_kept),
		cmocka_unit_test(test_rank_of_the_forgotten),
		cmocka_unit_test(test_settings),
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_hard_loss_of_the_paper),
		cmocka_unit_test(test_soft_losses_by_hand),
		cmocka_unit_test(test_cancel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
