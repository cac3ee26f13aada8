/* Fitting the scale: it finds what the tables were told, whatever the model, and never reads test.
 */
#include "tests/kge/world.h"

#include "query/scale.h"

enum { ENT = 60, REL = 12 };

struct world {
	struct graph *g;
	struct kge_emb *emb;
};

static double truth_at(const struct world *w, const struct query_scale *s, uint32_t h, uint32_t r,
		       uint32_t t)
{
	double z = (double)s->slope * (double)kge_score(w->emb, h, r, t) + (double)s->offset;

	return s->kind == QUERY_SOFTMAX ? exp(z) : 1 / (1 + exp(-z));
}

/* Valid has a triple for each head and relation, its tail drawn from the truths of the scale. */
static struct world world_of(const char *model, const struct query_scale *scale)
{
	struct world w = { .g = names(ENT, REL) };
	struct rng r;

	rng_seed(&r, 4);
	w.emb = kge_emb_new(kge_model_find(model), 8, 9, ENT, REL, &r);
	graph_add(w.g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	for (uint32_t i = 0; i < ENT * REL; i++) {
		struct graph_triple t = { i / REL, i % REL, 0 };
		double sum = 0, at;

		for (uint32_t e = 0; e < ENT; e++)
			sum += truth_at(&w, scale, t.head, t.rel, e);
		at = rng_double(&r) * sum;
		while (t.tail + 1 < ENT && (at -= truth_at(&w, scale, t.head, t.rel, t.tail)) > 0)
			t.tail++;
		graph_add(w.g, GRAPH_VALID, t);
	}
	return w;
}

static void world_release(struct world *w)
{
	kge_emb_free(w->emb);
	graph_free(w->g);
}

/* Rows of heads are not drawn so, hence the tolerance. */
static void test_softmax_finds_the_temperature_of_every_metric(void **state)
{
	static const char *const models[] = { "transe", "transe_l2", "rotate", "complex" };
	const struct query_scale planted[] = { { QUERY_SOFTMAX, 0.7f, 0 },
					       { QUERY_SOFTMAX, 2, 0 } };

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++)
		for (int k = 0; k < 2; k++) {
			struct world w = world_of(models[i], &planted[k]);
			struct query_scale got;
			struct query_fit fit;

			query_scale_fit(&got, QUERY_SOFTMAX, w.emb, w.g, 1, &fit);
			assert_near((double)got.slope, (double)planted[k].slope, 0.45, 0);
			assert_true(fit.after > fit.before && fit.rows > 100);
			world_release(&w);
		}
}

/* The sums of all truths and of the ones are equal where a logistic regression has ended. */
static void test_sigmoid_ends_where_its_slopes_vanish(void **state)
{
	static const char *const models[] = { "transe", "rotate", "complex" };
	const struct query_scale planted = { QUERY_SOFTMAX, 1, 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(models) / sizeof(*models); i++) {
		struct world w = world_of(models[i], &planted);
		struct graph_index *valid = graph_index_new(w.g, 1u << GRAPH_VALID);
		struct query_scale got;
		struct query_fit fit;
		double truths = 0, ones = 0;

		query_scale_fit(&got, QUERY_SIGMOID, w.emb, w.g, 1, &fit);
		assert_true(got.slope > 0 && fit.after > fit.before);
		for (uint32_t h = 0; h < ENT; h++)
			for (uint32_t t = 0; t < ENT; t++) {
				truths += truth_at(&w, &got, h, 0, t);
				ones += graph_index_has(valid, (struct graph_triple){ h, 0, t });
			}
		/* of relation 0 by all heads, while the fit saw rows with ones alone; unfitted it
		 * is a thousand */
		assert_near(truths, ones, 0.7, 0);
		graph_index_free(valid);
		world_release(&w);
	}
}

/* Valid's triples lead from the first half to the second: the row of an inverse step begins at a
 * tail, or nothing of valid would be in it. */
static void test_every_row_has_a_one(void **state)
{
	struct graph *g = names(ENT, REL);
	struct kge_emb *emb = emb_of("distmult", 8, g, 9);
	struct query_scale got;
	struct query_fit fit;

	(void)state;
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 1, 0 });
	for (uint32_t i = 0; i < ENT / 2; i++)
		graph_add(g, GRAPH_VALID, (struct graph_triple){ i, 0, ENT / 2 + i });
	query_scale_fit(&got, QUERY_SOFTMAX, emb, g, 1, &fit);
	assert_int_equal(fit.rows, ENT); /* two of each triple */
	assert_int_equal(fit.ones, ENT);
	kge_emb_free(emb);
	graph_free(g);
}

/* All scores are equal, so a row's shares add up to 1 among what counts.  Two rows have two ones,
 * and the two of inverse steps one: their truths are as many as the ones of a row, in the mean. */
static void test_truths_are_as_many_as_the_ones_of_a_row(void **state)
{
	struct graph *g = names(ENT, REL);
	struct kge_emb *emb = emb_of("distmult", 8, g, 9);
	struct query_scale got;
	struct query_fit fit;

	(void)state;
	memset(emb->ent, 0, ENT * emb->ent_floats * sizeof(float));
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, 1 });
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, 2 });
	query_scale_fit(&got, QUERY_SOFTMAX, emb, g, 1, &fit);
	assert_int_equal(fit.rows, 4);
	assert_int_equal(fit.ones, 6);
	assert_near((double)got.offset, log(4 / (.5 + .5 + 1 + 1)), 1e-5, 0);
	kge_emb_free(emb);
	graph_free(g);
}

static void test_rows_are_drawn_by_seed(void **state)
{
	const struct query_scale planted = { QUERY_SOFTMAX, 1, 0 };
	struct world w = world_of("complex", &planted);
	struct query_scale a, again, b;

	(void)state;
	query_scale_fit(&a, QUERY_SIGMOID, w.emb, w.g, 1, NULL);
	query_scale_fit(&again, QUERY_SIGMOID, w.emb, w.g, 1, NULL);
	query_scale_fit(&b, QUERY_SIGMOID, w.emb, w.g, 2, NULL);
	assert_true(a.slope == again.slope && a.offset == again.offset);
	assert_true(a.slope != b.slope && a.offset != b.offset);
	world_release(&w);
}

static void test_without_valid_nothing_is_fitted_and_test_is_not_read(void **state)
{
	struct graph *g = names(ENT, REL);
	struct kge_emb *emb = emb_of("complex", 8, g, 9);
	struct query_scale got;
	struct query_fit fit;

	(void)state;
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, 1 });
	graph_add(g, GRAPH_TEST, (struct graph_triple){ 0, 0, 2 });
	query_scale_fit(&got, QUERY_SIGMOID, emb, g, 1, &fit);
	assert_true(got.kind == QUERY_SIGMOID && got.slope == 1 && got.offset == 0);
	assert_int_equal(fit.rows, 0);
	/* valid's only triple is one of train: nothing to learn from either */
	graph_add(g, GRAPH_VALID, (struct graph_triple){ 0, 0, 1 });
	query_scale_fit(&got, QUERY_SOFTMAX, emb, g, 1, &fit);
	assert_true(got.slope == 1 && got.offset == 0 && fit.rows == 0);
	kge_emb_free(emb);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_softmax_finds_the_temperature_of_every_metric),
		cmocka_unit_test(test_sigmoid_ends_where_its_slopes_vanish),
		cmocka_unit_test(test_every_row_has_a_one),
		cmocka_unit_test(test_truths_are_as_many_as_the_ones_of_a_row),
		cmocka_unit_test(test_rows_are_drawn_by_seed),
		cmocka_unit_test(test_without_valid_nothing_is_fitted_and_test_is_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
