/* tests/fed/test_weight.c - how much a member takes in (fed/weight.h). */
#include "tests/test.h"

#include <math.h>

#include "base/err.h"
#include "base/rng.h"
#include "fed/weight.h"

static struct kge_emb *drawn(uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	return kge_emb_new(kge_model_find("transe"), 4, 8, 5, 2, &r);
}

static bool same(const struct kge_emb *a, const struct kge_emb *b)
{
	uint8_t x[32], y[32];

	kge_emb_digest(a, x);
	kge_emb_digest(b, y);
	return memcmp(x, y, 32) == 0;
}

static void test_mix(void **state)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2), *m = kge_emb_copy(merged);

	(void)state;
	fed_weight_mix(m, own, 1);
	assert_true(same(m, merged));
	fed_weight_mix(m, own, 0);
	assert_true(same(m, own));
	kge_emb_assign(m, merged);
	fed_weight_mix(m, own, .25);
	for (size_t i = 0; i < (size_t)m->n_ent * m->ent_floats; i++)
		assert_float_equal(m->ent[i], .75F * own->ent[i] + .25F * merged->ent[i], 1e-6);
	for (size_t i = 0; i < (size_t)m->n_rel * m->rel_floats; i++)
		assert_float_equal(m->rel[i], .75F * own->rel[i] + .25F * merged->rel[i], 1e-6);
	kge_emb_free(own);
	kge_emb_free(merged);
	kge_emb_free(m);
}

struct judge {
	float best;   /* of the first number */
	bool blind;   /* all are alike */
	bool broken;  /* no number but for everything */
	int stops_at; /* -1: never */
	int asked;
};

static int judge(void *ctx, const struct kge_emb *m, double *score)
{
	struct judge *j = ctx;
	int k = j->asked++;

	*score = j->blind			    ? .5
		 : j->broken && k < FED_WEIGHTS - 1 ? (double)NAN
						    : -fabs((double)(m->ent[0] - j->best));
	return k == j->stops_at ? ERR_CANCELED : 0;
}

static double choice(struct judge j)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2), *was = kge_emb_copy(merged);
	struct fed_weighed w;
	float a = own->ent[0], b = merged->ent[0];

	j.best = a + j.best * (b - a);
	j.stops_at = -1;
	assert_int_equal(fed_weight_choose(merged, own, judge, &j, &w), 0);
	assert_int_equal(j.asked, FED_WEIGHTS);
	assert_true(same(was, merged));
	kge_emb_free(own);
	kge_emb_free(merged);
	kge_emb_free(was);
	return w.weight;
}

static void test_choose(void **state)
{
	(void)state;
	assert_true(choice((struct judge){ .best = 0 }) == 0);
	assert_true(choice((struct judge){ .best = .3F }) == .25);
	assert_true(choice((struct judge){ .best = .8F }) == .75);
	assert_true(choice((struct judge){ .best = 2 }) == 1);
	/* nothing to tell them apart by: all of it, as without a weight */
	assert_true(choice((struct judge){ .blind = true }) == 1);
	assert_true(choice((struct judge){ .broken = true }) == 1);
}

static void test_canceled(void **state)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2);
	struct judge j = { .stops_at = 2 };
	struct fed_weighed w;

	(void)state;
	assert_int_equal(fed_weight_choose(merged, own, judge, &j, &w), ERR_CANCELED);
	assert_int_equal(j.asked, 3);
	kge_emb_free(own);
	kge_emb_free(merged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix),
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_canceled),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
