/* tests/fed/test_judge.c - who brings rows that hurt (fed/judge.h). */
#include "tests/test.h"

#include <math.h>

#include "base/err.h"
#include "base/mem.h"
#include "fed/judge.h"

/* A world in which each contributor adds something to the score of each unit; a flood takes all
 * that others bring. */
struct world {
	double adds[FED_JUDGE_ALL]; /* to each unit ... */
	double spread;		    /* ... more or less, from unit to unit */
	uint64_t floods;	    /* with one of these the score is that of the flood */
	uint64_t doubted, spared;
	size_t units;
	int asked, fails_at; /* fails_at 0: never */
};

/* From -1 to 1, unlike for two contributors or units. */
static double noise(size_t unit, unsigned k)
{
	uint64_t x = (uint64_t)(unit + 1) * 0x9e3779b97f4a7c15u ^ (k + 1) * 0xbf58476d1ce4e5b9u;

	x = (x ^ x >> 31) * 0x94d049bb133111ebu;
	return (double)(x >> 11) * 0x1p-52 - 1;
}

static int score(void *ctx, uint64_t with, double **each, size_t *n)
{
	struct world *w = ctx;

	*n = w->units;
	*each = mem_array(w->units + 1, sizeof(**each));
	if (++w->asked == w->fails_at)
		return ERR_CANCELED;
	for (size_t i = 0; i < w->units; i++) {
		double at = .3 + .01 * noise(i, FED_JUDGE_ALL);

		for (unsigned k = 0; k < FED_JUDGE_ALL; k++)
			if ((with >> k & 1) != 0)
				at += w->adds[k] + w->spread * noise(i, k);
		(*each)[i] = (with & w->floods) != 0 ? .001 * noise(i, 0) : at;
	}
	return 0;
}

static unsigned bits(uint64_t of)
{
	unsigned n = 0;

	for (; of != 0; of &= of - 1)
		n++;
	return n;
}

static struct fed_verdict judged(struct world *w, uint64_t in, uint64_t of)
{
	struct fed_judge j = { .in = in,
			       .judged = of,
			       .spared = w->spared,
			       .doubted = w->doubted,
			       .score = score,
			       .ctx = w };
	struct fed_verdict v;

	w->asked = 0;
	assert_int_equal(fed_judge_run(&j, &v), 0);
	assert_true((unsigned)w->asked <= fed_judge_scores(bits(in & of)));
	return v;
}

static void test_errors(void **state)
{
	const double a[] = { .5, .7, .6, .9 }, b[] = { .4, .4, .6, .7 },
		     c[] = { .25, .45, .35, .65 };
	const double bad[] = { .5, NAN, .6, .9 };

	(void)state;
	/* differences .1 .3 0 .2: mean .15, deviation sqrt(.05 / 3), error of four of them */
	assert_float_equal((float)fed_judge_errors(a, b, 4), (float)(.15 / sqrt(.05 / 3 / 4)),
			   1e-5);
	assert_float_equal((float)fed_judge_errors(b, a, 4), (float)(-.15 / sqrt(.05 / 3 / 4)),
			   1e-5);
	assert_true(fed_judge_errors(a, c, 4) > 1e6);
	assert_float_equal(fed_judge_errors(a, a, 4), 0, 0);
	assert_float_equal(fed_judge_errors(a, bad, 4), 0, 0);
	assert_float_equal(fed_judge_errors(a, b, 1), 0, 0);
}

/* One of four hurts: it alone is out, and the score is that of the others. */
static void test_one(void **state)
{
	struct world w = { .adds = { .02, -.05, .02, .01 }, .spread = .05, .units = 400 };
	struct fed_verdict v = judged(&w, 0xf, 0xf);

	(void)state;
	assert_int_equal(v.out, 2);
	assert_int_equal(v.hurts, 2);
	assert_true(v.errors[1] > FED_JUDGE_CLEAR && v.errors[0] < 0);
	assert_true(v.without > v.with + .04);
	assert_int_equal(v.units, 400);
}

/* Who is spared stays in, and the others are compared with it. */
static void test_spared(void **state)
{
	struct world w = { .adds = { -.05, -.05, .2, -.1 }, .spread = .05, .units = 400 };

	(void)state;
	assert_int_equal(judged(&w, 0xf, 0xf).out, 8);
	w.spared = 7;
	assert_int_equal(judged(&w, 0xf, 0xf).out, 8);
	w.spared = 8; /* no other hurts more than the middle of the others does */
	assert_int_equal(judged(&w, 0xf, 0xf).out, 0);
	w = (struct world){ .floods = 3, .units = 400, .spared = 2 }; /* of two, one alone */
	assert_int_equal(judged(&w, 0xf, 0xf).out & 2, 0);
}

/* Nobody hurts: nobody is out, for one score more than there are contributors and one of nothing.
 */
static void test_nobody(void **state)
{
	struct world w = { .adds = { .02, .03, .02, .01 }, .spread = .05, .units = 400 };
	struct fed_verdict v = judged(&w, 0xf, 0xf);

	(void)state;
	assert_int_equal(v.out, 0);
	assert_float_equal(v.with, v.without, 0);
	assert_int_equal(w.asked, 6);
}

/* What may be chance puts out who is doubted, and nobody else. */
static void test_doubted(void **state)
{
	struct world w = { .adds = { .02, -.0021, .02, .01 }, .spread = .05, .units = 400 };
	struct fed_verdict v = judged(&w, 0xf, 0xf);

	(void)state;
	assert_in_range((int)(10 * v.errors[1]), (int)(10 * FED_JUDGE_OUT) + 1,
			(int)(10 * FED_JUDGE_CLEAR) - 1);
	assert_int_equal(v.out, 0);
	w.doubted = 0xd;
	assert_int_equal(judged(&w, 0xf, 0xf).out, 0);
	w.doubted = 2;
	v = judged(&w, 0xf, 0xf);
	assert_int_equal(v.out, 2);
	assert_int_equal(v.hurts, 0);
}

static void test_two(void **state)
{
	struct world w = { .adds = { -.04, .03, -.05, .03 }, .spread = .05, .units = 400 };

	(void)state;
	assert_int_equal(judged(&w, 0xf, 0xf).out, 5);
}

/* All hurt, as where graphs have nothing to do with each other: nothing is taken in. */
static void test_all(void **state)
{
	struct world w = { .adds = { -.04, -.03, -.05 }, .spread = .05, .units = 400 };

	(void)state;
	assert_int_equal(judged(&w, 7, 7).out, 7);
}

/* All hurt alike, as a mean does at first: that is nobody's fault, and how much of it is taken in
 * is for the weight to say (fed/weight.h). */
static void test_alike(void **state)
{
	struct world w = { .adds = { -.04, -.04, -.04, -.04 }, .spread = .05, .units = 400 };

	(void)state;
	assert_int_equal(judged(&w, 0xf, 0xf).out, 0);
	w.adds[2] = -.2;
	assert_int_equal(judged(&w, 0xf, 0xf).out, 4);
}

/* With either of two nothing is seen of the others, so that leaving one out changes nothing. */
static void test_flood(void **state)
{
	struct world w = { .adds = { .03, 0, .02, 0 }, .spread = .05, .floods = 10, .units = 400 };
	struct fed_verdict v = judged(&w, 0xf, 0xf);

	(void)state;
	assert_int_equal(v.out, 10);
	assert_int_equal(v.hurts, 10);
}

/* A difference within the error is no reason to leave anybody out; nor is one unit, or none. */
static void test_little(void **state)
{
	struct world w = { .adds = { -.001, .02 }, .spread = .3, .units = 40 };
	struct world one = { .adds = { -.5, .02 }, .units = 1 }, none = one;

	(void)state;
	assert_int_equal(judged(&w, 3, 3).out, 0);
	assert_int_equal(judged(&one, 3, 3).out, 0);
	none.units = 0;
	assert_int_equal(judged(&none, 3, 3).out, 0);
}

static void test_not_judged(void **state)
{
	struct world w = { .adds = { -.05, -.05, .02 }, .spread = .02, .units = 400 };

	(void)state;
	assert_int_equal(judged(&w, 7, 5).out, 1);
}

/* What bounds the time of a verdict is no guess: some take all of it but one score. */
static void test_most_scores(void **state)
{
	struct world all = { .spread = .01, .units = 400 };
	unsigned most = 0;

	(void)state;
	for (unsigned k = 0; k < FED_JUDGE_ALL; k++)
		all.adds[k] = -.05 * (k + 1);
	for (uint64_t in = 1; bits(in) <= FED_JUDGE_MAX; in = in << 1 | 1) {
		judged(&all, in, in);
		assert_true((unsigned)all.asked >= 1 + bits(in) * (bits(in) + 1) / 2);
		assert_true(fed_judge_scores(bits(in)) > most);
		most = fed_judge_scores(bits(in));
	}
	assert_int_equal(fed_judge_scores(FED_JUDGE_ALL), most);
}

static void test_end(void **state)
{
	(void)state;
	for (int at = 1; at <= 6; at++) {
		struct world w = {
			.adds = { -.05, .02, .03 }, .spread = .02, .units = 40, .fails_at = at
		};
		struct fed_judge j = {
			.in = 7, .judged = 7, .doubted = 7, .score = score, .ctx = &w
		};
		struct fed_verdict v;

		assert_int_equal(fed_judge_run(&j, &v), ERR_CANCELED);
		assert_int_equal(w.asked, at);
	}
}

static void test_reputation(void **state)
{
	double r = 1;
	int k = 0;

	(void)state;
	for (; !fed_reputation_is_lost(r, 8); k++)
		r = fed_reputation_after(r, 1);
	assert_int_equal(k, 8);
	assert_false(fed_reputation_is_lost(r, 0));
	r = fed_reputation_after(r, 0);
	assert_false(fed_reputation_is_lost(r, 8));
	for (k = 0; k < 100; k++) { /* as often as not: never lost */
		r = fed_reputation_after(r, k % 2);
		assert_false(fed_reputation_is_lost(r, 8));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_errors),	   cmocka_unit_test(test_one),
		cmocka_unit_test(test_spared),	   cmocka_unit_test(test_nobody),
		cmocka_unit_test(test_doubted),	   cmocka_unit_test(test_two),
		cmocka_unit_test(test_all),	   cmocka_unit_test(test_alike),
		cmocka_unit_test(test_flood),	   cmocka_unit_test(test_little),
		cmocka_unit_test(test_not_judged), cmocka_unit_test(test_most_scores),
		cmocka_unit_test(test_end),	   cmocka_unit_test(test_reputation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
