/* The production learner: what it may read, and what decides its score. */
#include "tests/test.h"

#include "agent/learner.h"

enum { ENTITIES = 40, RELATIONS = 3, TRIPLES = 400 };

static struct kge_graph *graph_with_test(size_t test)
{
	struct kge_graph *g = kge_graph_new();
	struct rng r;

	rng_seed(&r, 5);
	for (uint32_t i = 0; i < ENTITIES; i++) {
		char name[16];
		int n = snprintf(name, sizeof(name), "e%u", i);

		kge_vocab_add(g->entities, name, (size_t)n);
		if (i < RELATIONS)
			kge_vocab_add(g->relations, name, (size_t)n);
	}
	for (size_t i = 0; i < TRIPLES + test; i++) {
		struct kge_triple t = { rng_below(&r, ENTITIES), rng_below(&r, RELATIONS),
					rng_below(&r, ENTITIES) };

		kge_graph_add(g, i >= TRIPLES ? KGE_TEST : i % 2 == 0 ? KGE_TRAIN : KGE_VALID, t);
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
	struct kge_graph *g = graph_with_test(test);
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
	assert_int_equal(g->split[KGE_TEST].n, test); /* the owner's graph keeps it */
	agent_learner_free(l);
	kge_emb_free(emb);
	kge_graph_free(g);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_no_score_knows_the_test_split),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
