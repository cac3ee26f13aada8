/* tests/fed/test_weight.c - how much a member takes in (fed/weight.h). */
#include "tests/test.h"

#include <math.h>

#include "base/err.h"
#include "base/mem.h"
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

/* All is taken in before; looks count from there on, and the first of these rounds is one. */
static void test_decides(void **state)
{
	(void)state;
	for (uint64_t round = 1; round <= 12; round++) {
		assert_int_equal(fed_weight_decides(round, 7, true), round >= 7);
		assert_int_equal(fed_weight_decides(round, 7, false), round == 7);
		assert_true(fed_weight_decides(round, 1, true));
	}
}

/* Half way to the first choice, then at it and after half as many rounds each. */
static void test_waits(void **state)
{
	(void)state;
	for (uint64_t round = 1; round <= 30; round++) {
		assert_int_equal(fed_weight_measures(round, 10), round == 5);
		assert_int_equal(fed_weight_asks_again(round, 10),
				 round == 15 || round == 20 || round == 25 || round == 30);
		assert_int_equal(fed_weight_measures(round, 7), round == 4);
		assert_int_equal(fed_weight_asks_again(round, 7), round > 7 && round % 3 == 1);
		for (uint32_t from = 1; from < 4; from++) {
			assert_false(fed_weight_measures(round, from));
			assert_int_equal(fed_weight_asks_again(round, from), round > from);
		}
	}
}

struct judge {
	float best;   /* where the first number should be, on the way from own to merged */
	size_t units; /* scores of one table */
	float spread; /* of the units of all but own, in turn up and down */
	bool broken;  /* no number but for own and everything */
	int stops_at; /* -1: never */
	int asked;
};

static int judge(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	struct judge *j = ctx;
	int k = j->asked++;

	*n = j->units;
	*each = mem_array(j->units + 1, sizeof(**each));
	for (size_t i = 0; i < j->units; i++)
		(*each)[i] = j->broken && k > 0 && k < FED_WEIGHTS - 1
				     ? (double)NAN
				     : -fabs((double)(m->ent[0] - j->best)) +
					       (k == 0	     ? 0
						: i % 2 == 0 ? (double)j->spread
							     : -(double)j->spread);
	return k == j->stops_at ? ERR_CANCELED : 0;
}

static double choice(struct judge j)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2), *was = kge_emb_copy(merged);
	struct fed_weighed w;
	float a = own->ent[0], b = merged->ent[0];

	j.best = a + j.best * (b - a);
	j.spread *= fabsf(b - a);
	j.stops_at = -1;
	assert_int_equal(fed_weight_choose(merged, own, NULL, NULL, judge, &j, &w), 0);
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
	for (size_t units = 1; units <= 9; units += 4) {
		assert_true(choice((struct judge){ .best = -1, .units = units }) == 0);
		assert_true(choice((struct judge){ .best = .3F, .units = units }) == .25);
		assert_true(choice((struct judge){ .best = .8F, .units = units }) == .75);
		assert_true(choice((struct judge){ .best = 2, .units = units }) == 1);
		assert_true(choice((struct judge){ .best = 2, .units = units, .broken = true }) ==
			    1);
	}
	/* nothing to tell them apart by: all of it, as without a weight */
	assert_true(choice((struct judge){ .best = 0 }) == 1);
}

/* What few triples say for it may be chance; what many say is not. */
static void test_choose_by_error(void **state)
{
	const struct judge j = { .best = 1, .spread = 4 };

	(void)state;
	for (size_t units = 2; units <= 200; units += 18) {
		struct judge k = j;
		double error = 4 * sqrt((double)units / (double)(units - 1) / (double)units);

		k.units = units;
		assert_true(choice(k) == (error < 1 ? 1 : 0));
	}
}

/* The error is that of so few, 3.1 / 3 of the way, which is more than 3.1 / sqrt(10). */
static void test_error_of_few(void **state)
{
	(void)state;
	assert_true(choice((struct judge){ .best = 1, .spread = 3.1F, .units = 10 }) == 0);
	assert_true(choice((struct judge){ .best = 1, .spread = 2.9F, .units = 10 }) == 1);
}

/* All but our own are alike. */
static int judge_level(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	int *asked = ctx;

	(void)m;
	*n = 1;
	*each = mem_array(1, sizeof(**each));
	(*each)[0] = (*asked)++ > 0;
	return 0;
}

/* Of those that score the same the largest is taken. */
static void test_choose_the_largest(void **state)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2);
	struct fed_weighed w;
	int asked = 0;

	(void)state;
	assert_int_equal(fed_weight_choose(merged, own, NULL, NULL, judge_level, &asked, &w), 0);
	assert_true(w.weight == 1);
	kge_emb_free(own);
	kge_emb_free(merged);
}

/* Trained alone, among the others: taken where it is clearly above what was chosen. */
static void test_choose_alone(void **state)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2), *alone = drawn(3);
	struct judge j = { .units = 9, .stops_at = -1, .best = alone->ent[0] };
	/* so many times as far ahead before, and left out of so many choices */
	static const struct {
		double times;
		uint32_t waited;
		bool waits;
	} of[] = {
		{ 1.251, 0, true },
		{ 1.251, FED_WEIGHT_WAITS_MAX - 1, true },
		{ 1.251, FED_WEIGHT_WAITS_MAX, false },
		{ 5, 0, true },
		{ 1.249, 0, false },
		{ 1, 0, false },
		{ .5, 0, false },
		{ 0, 0, false }, /* not measured */
		{ -1, 0, false },
		{ (double)NAN, 0, false },
	};
	struct fed_weighed w;
	double ahead;

	(void)state;
	assert_int_equal(fed_weight_choose(merged, own, alone, NULL, judge, &j, &w), 0);
	assert_int_equal(j.asked, FED_WEIGHTS + 1);
	assert_true(w.takes_alone && w.weight == 0 && w.alone_score > w.score[0]);
	fed_weight_take(merged, own, alone, &w);
	assert_true(same(merged, alone));
	kge_emb_free(merged);
	merged = drawn(2);
	j = (struct judge){ .units = 9, .stops_at = -1, .best = alone->ent[0] };
	assert_int_equal(fed_weight_measure(merged, alone, judge, &j, &ahead), 0);
	assert_int_equal(j.asked, 2);
	assert_float_equal(ahead, fabs((double)(merged->ent[0] - alone->ent[0])), 1e-6);
	for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		const struct fed_weight_copy copy = { of[k].times * ahead, of[k].waited };

		assert_int_equal(fed_weight_choose(merged, own, alone, &copy, judge, &j, &w), 0);
		assert_true(w.waits == of[k].waits && w.takes_alone == !of[k].waits);
		assert_true(w.weight == (double)of[k].waits);
	}
	j = (struct judge){ .units = 9, .stops_at = 1 };
	assert_int_equal(fed_weight_measure(merged, alone, judge, &j, &ahead), ERR_CANCELED);
	j = (struct judge){ .units = 9, .stops_at = -1, .best = own->ent[0] };
	assert_int_equal(fed_weight_choose(merged, own, alone, NULL, judge, &j, &w), 0);
	assert_true(!w.takes_alone && w.weight == 0 && w.alone_score < w.score[0]);
	fed_weight_take(merged, own, alone, &w);
	assert_true(same(merged, own));
	kge_emb_free(merged);
	merged = drawn(2);
	j = (struct judge){ .units = 9, .stops_at = FED_WEIGHTS };
	assert_int_equal(fed_weight_choose(merged, own, alone, NULL, judge, &j, &w), ERR_CANCELED);
	assert_false(w.takes_alone);
	kge_emb_free(own);
	kge_emb_free(merged);
	kge_emb_free(alone);
}

/* Between two choices: what is left, unless our own is clearly above it. */
static void test_check(void **state)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2), *was = kge_emb_copy(merged);
	const float a = own->ent[0], b = merged->ent[0];
	static const struct {
		float best, spread; /* as of `judge`, in parts of the way from own to merged */
		double weight;
		bool refused;
	} of[] = {
		{ 1, 0, 1, false },    { 0, 0, 1, true },      { .2F, 0, .25, false },
		{ .1F, 0, .25, true }, { .25F, 0, .5, false }, /* as far from both */
		{ 0, 2.5F, 1, true },  { 0, 3.5F, 1, false },  /* the error: spread / 3 */
	};
	const struct fed_weight_copy none = { 0 }, waiting = { .waits = 1 };
	struct fed_weighed w;

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(of[0]); i++) {
		struct judge j = { .units = 10,
				   .stops_at = -1,
				   .best = a + of[i].best * (b - a),
				   .spread = of[i].spread * fabsf(b - a) };
		int k = (int)(of[i].weight * (FED_WEIGHTS - 1));

		assert_int_equal(fed_weight_check(merged, own, of[i].weight, judge, &j, &w), 0);
		assert_int_equal(j.asked, 2);
		assert_true(w.refused == of[i].refused && !w.takes_alone && !w.waits);
		assert_true(w.weight == (of[i].refused ? 0 : of[i].weight));
		assert_float_equal(w.score[0], -fabsf(a - j.best), 1e-6);
		assert_float_equal(w.score[k], -fabs(a + of[i].weight * (b - a) - j.best), 1e-6);
		assert_true(same(merged, was));
	}
	for (int stop = 0; stop < 2; stop++) {
		struct judge j = { .units = 9, .stops_at = stop, .best = a };

		assert_int_equal(fed_weight_check(merged, own, 1, judge, &j, &w), ERR_CANCELED);
		assert_false(w.refused);
	}
	{
		struct judge j = { .units = 9, .stops_at = -1, .best = b, .broken = true };

		assert_int_equal(fed_weight_check(merged, own, 1, judge, &j, &w), 0);
		assert_true(w.refused && w.weight == 0);
	}
	/* nothing to refuse, and nothing is scored */
	for (int k = 0; k < 2; k++) {
		struct judge j = { .units = 9, .stops_at = 0, .best = a };

		assert_int_equal(fed_weight_check(k == 0 ? merged : own, own, k, judge, &j, &w), 0);
		assert_true(j.asked == 0 && w.weight == k && !w.refused);
	}
	assert_true(fed_weight_checks(11, 10, &none) && !fed_weight_checks(10, 10, &none));
	assert_false(fed_weight_checks(11, 10, &waiting));
	kge_emb_free(own);
	kge_emb_free(merged);
	kge_emb_free(was);
}

/* What a choice leaves of the copy. */
static void test_note(void **state)
{
	struct fed_weight_copy copy = { .ahead = .3 };
	struct fed_weighed w = { .alone_score = .5, .waits = true };

	(void)state;
	w.score[FED_WEIGHTS - 1] = .25;
	fed_weight_note(&copy, &w);
	assert_true(copy.ahead == .25 && copy.waits == 1);
	w.alone_score = (double)NAN; /* nothing came */
	fed_weight_note(&copy, &w);
	assert_true(copy.ahead == .25 && copy.waits == 2);
	w.waits = false;
	fed_weight_note(&copy, &w);
	assert_true(copy.ahead == 0 && copy.waits == 0);
}

/* Clearly above nothing, but not above all that came, by which few triples say little: all is
 * taken. */
static int judge_apart(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct kge_emb *alone = ctx, *own = drawn(1), *merged = drawn(2);
	double w = (double)((m->ent[0] - own->ent[0]) / (merged->ent[0] - own->ent[0]));

	*n = 10;
	*each = mem_array(*n, sizeof(**each));
	for (size_t i = 0; i < *n; i++)
		(*each)[i] = same(m, alone) ? .2 + .001 * (double)(i % 2) + .02
					    : .2 + w * (i == 0	 ? .5
							: i == 1 ? -.2
								 : 0);
	kge_emb_free((struct kge_emb *)(uintptr_t)own);
	kge_emb_free((struct kge_emb *)(uintptr_t)merged);
	return 0;
}

static void test_choose_no_worse(void **state)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2), *alone = drawn(3);
	const struct fed_weight_copy copy = { .ahead = .1 };
	struct fed_weighed w;

	(void)state;
	assert_int_equal(fed_weight_choose(merged, own, alone, &copy, judge_apart, alone, &w), 0);
	assert_true(w.alone_score < w.score[FED_WEIGHTS - 1]);
	assert_true(!w.waits && !w.takes_alone && w.weight == 1);
	kge_emb_free(own);
	kge_emb_free(merged);
	kge_emb_free(alone);
}

/* A method whose rows go into another table leaves this one as it is. */
static void test_equal(void **state)
{
	struct kge_emb *own = drawn(1), *merged = kge_emb_copy(own), *alone = drawn(3);
	struct judge j = { .units = 3, .stops_at = 0 };
	struct fed_weight_copy copy = { 0 };
	struct fed_weighed w;

	(void)state;
	assert_int_equal(fed_weight_choose(merged, own, NULL, NULL, judge, &j, &w), 0);
	assert_true(w.weight == 1 && j.asked == 0 && !w.waits);
	/* nothing came: what has trained alone is not let go of for that, but not kept for ever */
	assert_int_equal(fed_weight_choose(merged, own, alone, &copy, judge, &j, &w), 0);
	assert_true(w.weight == 1 && w.waits && !w.takes_alone && j.asked == 0);
	copy.waits = FED_WEIGHT_WAITS_MAX;
	for (int is_last = 0; is_last < 2; is_last++)
		for (int is_better = 0; is_better < 2; is_better++) {
			j = (struct judge){ .units = 9,
					    .stops_at = -1,
					    .best = is_better ? alone->ent[0] : own->ent[0] };
			assert_int_equal(fed_weight_choose(merged, own, alone,
							   is_last ? NULL : &copy, judge, &j, &w),
					 0);
			assert_true(!w.waits && w.takes_alone == (is_better == 1));
			assert_true(w.weight == (is_better ? 0 : 1));
		}
	kge_emb_free(own);
	kge_emb_free(merged);
	kge_emb_free(alone);
}

/* Prefers the relations of `ctx`. */
static int judge_relations(void *ctx, const struct kge_emb *m, double **each, size_t *n)
{
	const struct kge_emb *best = ctx;

	*n = 1;
	*each = mem_array(1, sizeof(**each));
	(*each)[0] = -fabs((double)(m->rel[0] - best->rel[0]));
	return 0;
}

/* What came may be of the relations only. */
static void test_relations_only(void **state)
{
	struct kge_emb *own = drawn(1), *merged = kge_emb_copy(own);
	struct fed_weighed w;

	(void)state;
	merged->rel[0] += 1;
	assert_int_equal(fed_weight_choose(merged, own, NULL, NULL, judge_relations, own, &w), 0);
	assert_true(w.weight == 0);
	assert_int_equal(fed_weight_check(merged, own, 1, judge_relations, own, &w), 0);
	assert_true(w.refused && w.weight == 0);
	assert_int_equal(fed_weight_choose(merged, own, NULL, NULL, judge_relations, merged, &w),
			 0);
	assert_true(w.weight == 1);
	kge_emb_free(own);
	kge_emb_free(merged);
}

static void test_canceled(void **state)
{
	struct kge_emb *own = drawn(1), *merged = drawn(2);
	struct judge j = { .units = 3, .stops_at = 2 };
	struct fed_weighed w;

	(void)state;
	assert_int_equal(fed_weight_choose(merged, own, NULL, NULL, judge, &j, &w), ERR_CANCELED);
	assert_int_equal(j.asked, 3);
	kge_emb_free(own);
	kge_emb_free(merged);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_mix),
		cmocka_unit_test(test_decides),
		cmocka_unit_test(test_waits),
		cmocka_unit_test(test_check),
		cmocka_unit_test(test_note),
		cmocka_unit_test(test_choose_no_worse),
		cmocka_unit_test(test_choose),
		cmocka_unit_test(test_choose_by_error),
		cmocka_unit_test(test_choose_alone),
		cmocka_unit_test(test_equal),
		cmocka_unit_test(test_canceled),
		cmocka_unit_test(test_error_of_few),
		cmocka_unit_test(test_choose_the_largest),
		cmocka_unit_test(test_relations_only),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
