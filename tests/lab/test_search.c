/* The space of `fkge tune`: what is read, what is drawn, who goes on. */
#include "tests/test.h"

#include "lab/search.h"

static int parse(struct search *s, const char *text, struct err *e)
{
	*e = (struct err){ 0 };
	return search_parse(s, text, strlen(text), "space.yaml", e);
}

static struct search space(const char *text)
{
	struct search s;
	struct err e;

	if (parse(&s, text, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

static void test_reads(void **state)
{
	struct search s =
		space("search: {method: random, trials: 7, epochs: 3, eta: 4, budget: 99, "
		      "seed: 5}\n"
		      "model:\n  kind: [transe, rotate]\n  dim: {from: 8, to: 64}\n"
		      "train: {lr: {from: 1e-4, to: 0.1, scale: log}, filtered: [true]}\n");

	(void)state;
	assert_int_equal(s.method, SEARCH_RANDOM);
	assert_int_equal(s.trials, 7);
	assert_int_equal(s.epochs, 3);
	assert_int_equal(s.eta, 4);
	assert_int_equal(s.budget, 99);
	assert_int_equal(s.seed, 5);
	assert_int_equal(s.n_keys, 4);
	assert_int_equal(s.keys[0].n, 2);
	assert_string_equal(s.keys[0].values[1], "rotate");
	assert_true(s.keys[1].whole && s.keys[1].kind == SEARCH_RANGE);
	assert_string_equal(s.keys[2].section, "train");
	assert_true(s.keys[2].kind == SEARCH_LOG && !s.keys[2].whole);
	assert_near(s.keys[2].to, 0.1, 0, 0);
	search_release(&s);
	/* a preset's trial may be shorter */
	s = space("search: {epochs: 25, budget: 20}\nmodel: {preset: [fast, best]}\n");
	assert_int_equal(s.budget, 20);
	search_release(&s);
}

static void test_errors(void **state)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "", "space.yaml: empty" },
		{ "[", ": not YAML: " },
		{ "search: {trials: 3}\n", "space.yaml:1: it names no settings" },
		{ "search:\n  trials: 0\ntrain: {lr: [1]}\n",
		  "space.yaml:2: search.trials: '0' is not allowed here; allowed: a whole number "
		  "from 1" },
		{ "search:\n  budget: 4\n  epochs: 5\ntrain: {lr: [1]}\n",
		  "space.yaml:2: search.budget (4) is below search.epochs (5): no trial could "
		  "end" },
		{ "search: {budget: 9, method: random}\ntrain: {lr: [1]}\n",
		  "space.yaml:1: search.budget (9) is below search.epochs (10)" },
		{ "search: {method: grid}\n", "allowed: random | halving" },
		{ "search: {tries: 3}\n", "unknown key 'tries' in search; known are: method" },
		{ "tree: {lr: [1]}\n",
		  "space.yaml:1: unknown key 'tree'; known are: search, model" },
		{ "train:\n  rate: [1]\n",
		  "space.yaml:2: unknown key 'rate' in train; known are: " },
		{ "train:\n  lr: [0.1,\n    -1]\n",
		  "space.yaml:3: train.lr: '-1' is not allowed here; allowed: a number from" },
		{ "train: {lr: []}\n", "a list of 1 to" },
		{ "train: {lr: 0.1}\n", "a list [a, b] or a range" },
		{ "train: {lr: {from: 0.1}}\n", "a range needs from and to" },
		{ "train: {lr: {from: 0.2, to: 0.1}}\n", "the first below the second" },
		{ "train: {lr: {from: 0.1, to: 1000}}\n", "'1000' is not allowed here" },
		{ "train: {lr: {from: 0.1, to: 1, step: 3}}\n", "unknown key 'step' of a range" },
		{ "train: {lr: {from: 0.1, to: 1, scale: square}}\n", "allowed: linear | log" },
		{ "train: {margin: {from: 0, to: 1, scale: log}}\n",
		  "scale log needs from above 0" },
		{ "model: {kind: {from: transe, to: rotate}}\n",
		  "takes no range: list its values" },
		{ "train: {negatives: {from: 1.5, to: 3}}\n", "'1.5' is not allowed here" },
		{ "train: {epochs: [1, 2]}\n", "train.epochs is what the search itself decides" },
		{ "train: {command: ['a {folder}']}\n", "train.command: not in a search" },
		{ "train: {lr: [1], lr: [2]}\n", "is given twice" },
		{ "train: [1, 2]\n", "train: write lines of the form key: value" },
		{ "train: {lr: [[1]]}\n", "train.lr: '' is not allowed here" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct search s;
		struct err e;

		assert_int_equal(parse(&s, cases[i].text, &e), ERR_USAGE);
		if (strstr(e.text, cases[i].says) == NULL)
			fail_msg("'%s' says '%s', not '%s'", cases[i].text, e.text, cases[i].says);
		assert_int_equal(s.n_keys, 0);
	}
}

/* ---- drawing ---- */

static void test_draws_are_within_and_even(void **state)
{
	struct search s =
		space("search: {trials: 4000, seed: 3}\n"
		      "train:\n  margin: {from: 2, to: 6}\n"
		      "  lr: {from: 1e-4, to: 1e-2, scale: log}\n"
		      "  negatives: {from: 1, to: 40}\n  batch: {from: 4, to: 4096, scale: log}\n");
	size_t n, low[4] = { 0 }, ends[2] = { 0 };
	char **v;

	(void)state;
	n = search_draw(&s, &v);
	assert_int_equal(n, 4000);
	for (size_t k = 0; k < n; k++) {
		double x[4];

		for (size_t i = 0; i < 4; i++) {
			x[i] = strtod(v[k * 4 + i], NULL);
			assert_true(x[i] >= s.keys[i].from && x[i] <= s.keys[i].to);
		}
		low[0] += x[0] < 4;
		low[1] += x[1] < 1e-3;
		low[2] += x[2] <= 20;
		low[3] += x[3] < 128;
		ends[0] += x[2] <= 1;
		ends[1] += x[2] >= 40;
		assert_null(strchr(v[k * 4 + 2], '.'));
		assert_null(strchr(v[k * 4 + 3], '.'));
	}
	for (size_t i = 0; i < 4; i++) /* half of them, within five deviations */
		assert_true(low[i] > 2000 - 160 && low[i] < 2000 + 160);
	assert_true(ends[0] > 50 && ends[1] > 50); /* 100 each are expected */
	search_free_values(&s, v, n);
	search_release(&s);
}

static void test_draws_repeat(void **state)
{
	const char *text = "search: {trials: 50, seed: 9}\n"
			   "train: {lr: {from: 1e-4, to: 1}, margin: [1, 2, 3]}\n";
	struct search a = space(text), b = space(text), c = space(text);
	size_t n, differ = 0;
	char **v, **w, **x;

	(void)state;
	b.trials = 20; /* the first trials do not depend on how many there are */
	c.seed = 10;
	n = search_draw(&a, &v);
	assert_int_equal(search_draw(&b, &w), 20);
	search_draw(&c, &x);
	for (size_t i = 0; i < 20 * a.n_keys; i++) {
		assert_string_equal(v[i], w[i]);
		differ += strcmp(v[i], x[i]) != 0;
	}
	assert_true(differ > 10);
	search_free_values(&a, v, n);
	search_free_values(&b, w, 20);
	search_free_values(&c, x, 50);
	search_release(&a);
	search_release(&b);
	search_release(&c);
}

static void test_no_trial_twice(void **state)
{
	struct search s = space("search: {trials: 100}\n"
				"model: {dim: [8, 16, 32]}\ntrain: {margin: [1, 2]}\n");
	char **v;

	(void)state;
	assert_int_equal(search_draw(&s, &v), 6);
	for (size_t a = 0; a < 6; a++)
		for (size_t b = 0; b < a; b++)
			assert_true(strcmp(v[2 * a], v[2 * b]) != 0 ||
				    strcmp(v[2 * a + 1], v[2 * b + 1]) != 0);
	search_free_values(&s, v, 6);
	search_release(&s);
}

/* ---- halving ---- */

static void test_rungs(void **state)
{
	struct search s = { .epochs = 10, .eta = 3 };

	(void)state;
	assert_int_equal(search_rung_epochs(&s, 0), 10);
	assert_int_equal(search_rung_epochs(&s, 1), 30);
	assert_int_equal(search_rung_epochs(&s, 3), 270);
	assert_true(search_rung_epochs(&s, 1000) > 270);
}

static void test_keep(void **state)
{
	struct search s = { .eta = 3 };
	double scores[] = { 0.1, (double)NAN, 0.5, 0.5, 0.2, 0.9, 0.3 };
	bool in[] = { true, true, true, true, true, false, true };

	(void)state;
	assert_int_equal(search_keep(&s, scores, in, 7), 2); /* of six; the ninth tenth is out */
	assert_true(in[2] && in[3]);
	assert_false(in[0] || in[1] || in[4] || in[5] || in[6]);
	assert_int_equal(search_keep(&s, scores, in, 7), 1); /* the first of equals */
	assert_true(in[2]);
	assert_int_equal(search_keep(&s, scores, in, 7), 1);
	in[2] = false;
	in[1] = true;
	assert_int_equal(search_keep(&s, scores, in, 7), 1); /* NaN alone stays */
	assert_true(in[1]);
	in[1] = false;
	assert_int_equal(search_keep(&s, scores, in, 7), 0);
	memset(in, true, sizeof(in)); /* of seven a third, which is no more than two */
	assert_int_equal(search_keep(&s, scores, in, 7), 2);
	assert_true(in[5] && in[2]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_reads),
		cmocka_unit_test(test_errors),
		cmocka_unit_test(test_draws_are_within_and_even),
		cmocka_unit_test(test_draws_repeat),
		cmocka_unit_test(test_no_trial_twice),
		cmocka_unit_test(test_rungs),
		cmocka_unit_test(test_keep),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
