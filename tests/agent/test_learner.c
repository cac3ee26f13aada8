/* The production learner: what it may read, and what decides its score. */
#include "tests/test.h"

#include <math.h>

#include "agent/core/learner.h"
#include "tests/agent/small_graph.h"

enum { ENTITIES = 40, RELATIONS = 3, TRIPLES = 400 };

static struct graph *graph_with_test(size_t test)
{
	struct graph *g = small_graph(ENTITIES, RELATIONS);
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < TRIPLES + test; i++) {
		struct graph_triple t = { rng_below(&r, ENTITIES), rng_below(&r, RELATIONS),
					  rng_below(&r, ENTITIES) };

		graph_add(g, i >= TRIPLES ? GRAPH_TEST : i % 2 == 0 ? GRAPH_TRAIN : GRAPH_VALID, t);
	}
	return g;
}

static struct kge_emb *tables(void)
{
	struct rng r;

	rng_seed(&r, 6);
	return kge_emb_new(kge_model_find("transe"), 8, 4.0f, ENTITIES, RELATIONS, &r);
}

static double score(size_t test, const char *protocol)
{
	struct graph *g = graph_with_test(test);
	struct kge_train_config c;
	struct agent_learner_kge *l;
	struct kge_emb *emb = tables();
	struct agent_job job = { 0 };
	double mrr;

	kge_train_defaults(&c);
	c.threads = 1;
	l = agent_learner_new(&c, g, kge_protocol_find(protocol), 0);
	assert_int_equal(agent_learner_ops(l)->evaluate(agent_learner_ops(l)->ctx, emb, &job, &mrr),
			 0);
	assert_int_equal(g->split[GRAPH_TEST].n, test); /* the owner's graph keeps it */
	agent_learner_free(l);
	kge_emb_free(emb);
	graph_free(g);
	return mrr;
}

/* A score on valid decides when to stop and what to keep: test has no part in it. */
static void test_no_score_knows_the_test_split(void **state)
{
	static const char *const protocols[] = { "standard", "openke", "fedlu" };

	(void)state;
	for (size_t i = 0; i < sizeof(protocols) / sizeof(protocols[0]); i++)
		assert_true(score(300, protocols[i]) == score(0, protocols[i]));
}

/* As fed/ would train it, on a graph that has lost its test split. */
static void test_trains_a_part(void **state)
{
	struct graph *g = graph_with_test(0), *tested = graph_with_test(300);
	struct fed_settings s;
	struct fed_part *a, *b;
	struct kge_emb *mine = tables(), *theirs = tables();
	struct kge_train_config c;
	struct agent_job job = { 0 };
	struct agent_learner_kge *l;
	struct fed_training t = { .graph = g, .config = &c, .epochs = 3 };
	uint8_t d[3][32];

	(void)state;
	kge_train_defaults(&c);
	c.threads = 1;
	fed_settings_init(&s, fed_method_find("fedprox"));
	assert_int_equal(fed_part_new(&a, &s, mine, 9, NULL), 0);
	assert_int_equal(fed_part_new(&b, &s, theirs, 9, NULL), 0);
	kge_emb_digest(mine, d[0]);
	l = agent_learner_new(&c, tested, kge_protocol_find("standard"), 0);
	assert_int_equal(agent_learner_ops(l)->train_part(agent_learner_ops(l)->ctx, a, 3, &job),
			 0);
	assert_int_equal(job.done, 3);
	t.trainer = kge_trainer_new(&c, g, theirs);
	assert_int_equal(fed_train(b, &t), 0);
	assert_true(job.loss == t.loss);
	kge_emb_digest(mine, d[1]);
	kge_emb_digest(theirs, d[2]);
	assert_memory_not_equal(d[0], d[1], 32);
	assert_memory_equal(d[1], d[2], 32);
	atomic_store(&job.cancel, true);
	assert_int_equal(agent_learner_ops(l)->train_part(agent_learner_ops(l)->ctx, a, 3, &job),
			 ERR_CANCELED);
	kge_trainer_free(t.trainer);
	agent_learner_free(l);
	fed_part_free(a);
	fed_part_free(b);
	kge_emb_free(mine);
	kge_emb_free(theirs);
	graph_free(g);
	graph_free(tested);
}

/* What a method asks of training and does not get is said. */
static void test_a_part_says_why_not(void **state)
{
	struct graph *g = graph_with_test(0);
	struct kge_emb *emb = tables();
	struct fed_settings s;
	struct fed_part *p;
	struct kge_train_config c;
	struct agent_job job = { 0 };
	struct agent_learner_kge *l;

	(void)state;
	kge_train_defaults(&c);
	c.threads = 1;
	c.optimizer = KGE_SGD;
	c.update = KGE_UPDATE_HOGWILD;
	c.shared_chunk = 0;
	fed_settings_init(&s, fed_method_find("fedprox"));
	assert_int_equal(fed_part_new(&p, &s, emb, 9, NULL), 0);
	l = agent_learner_new(&c, g, kge_protocol_find("standard"), 0);
	assert_int_equal(agent_learner_ops(l)->train_part(agent_learner_ops(l)->ctx, p, 3, &job),
			 ERR_USAGE);
	assert_int_equal(job.why.code, ERR_USAGE);
	assert_true(job.why.text[0] != '\0');
	agent_learner_free(l);
	fed_part_free(p);
	kge_emb_free(emb);
	graph_free(g);
}

/* The floor is that of the triples that are looked at, and is there from the first look on. */
static void test_finds_the_floor(void **state)
{
	const struct kge_protocol *p = kge_protocol_find("standard");
	const struct kge_eval_options o = { .threads = 1, .limit = 50, .seed = 3 };
	struct graph *g = graph_with_test(300), *blind = graph_with_test(0);
	struct kge_train_config c;
	struct agent_learner_kge *l;
	struct kge_emb *emb = tables();
	struct agent_job job = { 0 };
	struct kge_metrics m;
	double mrr;

	(void)state;
	kge_train_defaults(&c);
	c.threads = 1;
	c.seed = o.seed;
	l = agent_learner_new(&c, g, p, o.limit);
	assert_true(isnan(agent_learner_floor(l)));
	assert_int_equal(agent_learner_ops(l)->evaluate(agent_learner_ops(l)->ctx, emb, &job, &mrr),
			 0);
	assert_int_equal(kge_evaluate_frequency(blind, GRAPH_VALID, p, &o, &m), 0);
	assert_true(agent_learner_floor(l) == m.mrr);
	assert_true(m.mrr > 0 && m.mrr < 1);
	agent_learner_free(l);
	kge_emb_free(emb);
	graph_free(g);
	graph_free(blind);
}

/* Under optimistic ties equal scores would all be first. */
static void test_tables_that_diverged_have_no_score(void **state)
{
	struct graph *g = graph_with_test(0);
	struct kge_train_config c;
	struct agent_learner_kge *l;
	struct kge_emb *emb = tables();
	struct agent_job job = { 0 };
	const struct agent_learner *ops;
	double mrr;

	(void)state;
	kge_train_defaults(&c);
	c.threads = 1;
	l = agent_learner_new(&c, g, kge_protocol_find("openke"), 0);
	ops = agent_learner_ops(l);
	assert_int_equal(ops->evaluate(ops->ctx, emb, &job, &mrr), 0);
	assert_true(mrr > 0 && mrr < 1);
	emb->ent[7] = NAN;
	assert_int_equal(ops->evaluate(ops->ctx, emb, &job, &mrr), 0);
	assert_true(isnan(mrr));
	emb->ent[7] = INFINITY;
	assert_int_equal(ops->evaluate_some(ops->ctx, emb, 5, &job, &mrr), 0);
	assert_true(isnan(mrr));
	agent_learner_free(l);
	kge_emb_free(emb);
	graph_free(g);
}

static struct fed_part *part_of(struct kge_emb *emb)
{
	struct fed_settings s;
	struct fed_part *p;

	fed_settings_init(&s, fed_method_find("fede"));
	assert_int_equal(fed_part_new(&p, &s, emb, 9, NULL), 0);
	return p;
}

static void train_rounds(struct agent_learner_kge *l, struct fed_part *p, uint64_t from,
			 uint64_t to)
{
	struct agent_job job = { 0 };

	for (p->rounds = from; p->rounds < to; p->rounds++)
		assert_int_equal(
			agent_learner_ops(l)->train_part(agent_learner_ops(l)->ctx, p, 3, &job), 0);
}

/* A learner that is begun anew in between goes on with what it would have drawn. */
static void test_goes_on_after_a_restart(void **state)
{
	struct graph *g = graph_with_test(0);
	struct kge_emb *emb[2] = { tables(), tables() };
	struct kge_train_config c;
	uint8_t d[2][32];

	(void)state;
	kge_train_defaults(&c);
	c.threads = 1;
	for (size_t i = 0; i < 2; i++) {
		struct fed_part *p = part_of(emb[i]);

		for (uint64_t from = 0; from < 4; from += i == 0 ? 4 : 2) {
			struct agent_learner_kge *l =
				agent_learner_new(&c, g, kge_protocol_find("standard"), 0);

			train_rounds(l, p, from, from + (i == 0 ? 4 : 2));
			agent_learner_free(l);
		}
		kge_emb_digest(emb[i], d[i]);
		fed_part_free(p);
		kge_emb_free(emb[i]);
	}
	assert_memory_equal(d[0], d[1], 32);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_score_knows_the_test_split),
		cmocka_unit_test(test_finds_the_floor),
		cmocka_unit_test(test_tables_that_diverged_have_no_score),
		cmocka_unit_test(test_trains_a_part),
		cmocka_unit_test(test_a_part_says_why_not),
		cmocka_unit_test(test_goes_on_after_a_restart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
