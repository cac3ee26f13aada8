/* Settings drawn at random, all of them at once: what is refused says which key is wrong; what is
 * not trains to finite rows and resumes with the same bits where that is promised.
 *
 *   FKGE_SETTINGS=20000 test_kge_settings    more of them */
#include "tests/kge/world.h"

static const struct kge_model *some_model(struct rng *r)
{
	uint32_t n = 0;

	while (kge_models[n] != NULL)
		n++;
	return kge_models[rng_below(r, n)];
}

/* Several answers a query, a triple twice, entities that no triple has. */
static struct graph *some_graph(void)
{
	struct graph *g = names(23, 4);

	for (uint32_t i = 0; i < 40; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i % 7, i % 3, i * i % 20 });
	graph_add(g, GRAPH_TRAIN, g->split[GRAPH_TRAIN].at[0]);
	return g;
}

static struct kge_emb *some_emb(const struct graph *g, struct rng *r)
{
	const struct kge_model *m = some_model(r);
	size_t dim = 2 + rng_below(r, 20), rel_dim = m->own_rel_dim ? rng_below(r, 20) : 0;

	return kge_emb_new_dims(m, dim, rel_dim, 2, graph_vocab_count(g->entities),
				graph_vocab_count(g->relations), r);
}

static bool half(struct rng *r)
{
	return rng_below(r, 2) == 0;
}

static struct kge_train_config some_config(struct rng *r)
{
	struct kge_train_config c;

	kge_train_defaults(&c);
	c.loss = (enum kge_loss)rng_below(r, KGE_LOSS_SOFTMAX + 1);
	c.optimizer = (enum kge_optimizer)rng_below(r, KGE_MOMENTUM + 1);
	c.corrupt = (enum kge_corrupt)rng_below(r, KGE_CORRUPT_BOTH + 1);
	c.update = half(r) ? KGE_UPDATE_EXACT : KGE_UPDATE_HOGWILD;
	c.sampling = (enum kge_sampling)rng_below(r, KGE_SAMPLING_TYPED + 1);
	c.draws = rng_below(r, 4) == 0 ? KGE_DRAWS_ONCE : KGE_DRAWS_ANEW;
	c.reg = half(r) ? KGE_REG_NONE : (enum kge_reg)rng_below(r, KGE_REG_L3 + 1);
	c.reg_weight = 0.01f;
	c.schedule = (enum kge_schedule)rng_below(r, KGE_SCHEDULE_COSINE + 1);
	c.schedule_epochs = 1 + rng_below(r, 6);
	c.temperature = (float)rng_below(r, 3);
	c.negatives = rng_below(r, 9) * rng_below(r, 2);
	if (c.negatives == 0 || rng_below(r, 20) == 0) { /* where they are not refused, mostly */
		c.reg = rng_below(r, 3) == 0 ? KGE_REG_DURA : c.reg;
		c.relation_weight = rng_below(r, 3) == 0 ? 0.5f : 0;
		c.precision = half(r) ? KGE_BFLOAT16 : KGE_FLOAT32;
		c.query_answers = rng_below(r, 4);
		c.rare_weight = half(r) ? 0.1f : 1;
	}
	c.batch = 1 + rng_below(r, 50);
	c.shared_chunk = rng_below(r, 12) * rng_below(r, 2);
	c.filtered = half(r);
	c.subsampling = rng_below(r, 4) == 0;
	c.normalize = half(r);
	c.threads = 1 + rng_below(r, 3);
	c.seed = rng_u64(r);
	return c;
}

/* For who has to find out which they were. */
static void print_settings(const struct kge_emb *e, const struct kge_train_config *c)
{
	print_error("%s dim %zu rel_dim %zu: loss %d optimizer %d corrupt %d update %d sampling %d "
		    "draws %d reg %d relation_weight %g query_answers %u rare_weight %g precision "
		    "%d schedule %d "
		    "of %u negatives "
		    "%u batch %u "
		    "chunk %u filtered %d "
		    "subsampling %d normalize %d threads %u\n",
		    e->model->name, e->dim, e->rel_dim, c->loss, c->optimizer, c->corrupt,
		    c->update, c->sampling, c->draws, c->reg, (double)c->relation_weight,
		    c->query_answers, (double)c->rare_weight, c->precision, c->schedule,
		    c->schedule_epochs, c->negatives, c->batch, c->shared_chunk, c->filtered,
		    c->subsampling, c->normalize, c->threads);
}

static bool all_finite(const float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(x[i]))
			return false;
	return true;
}

static void check_run(const struct kge_train_config *c, const struct graph *g,
		      struct kge_emb *whole)
{
	struct kge_emb *resumed = kge_emb_copy(whole), *start = kge_emb_copy(whole);
	bool good = isfinite(run(c, g, whole, 3));

	run_resumed(c, g, resumed, 1, 2); /* an odd number, so turns go on */
	good = good && all_finite(whole->ent, whole->n_ent * whole->ent_floats) &&
	       all_finite(whole->rel, whole->n_rel * whole->rel_floats) &&
	       !same_tables(start, whole) && (same_tables(resumed, whole) || !kge_train_repeats(c));
	if (!good) {
		print_settings(whole, c);
		fail();
	}
	kge_emb_free(resumed);
	kge_emb_free(start);
}

static void test_any_settings(void **state)
{
	const char *asked = getenv("FKGE_SETTINGS");
	unsigned long n = asked != NULL ? strtoul(asked, NULL, 10) : 400, accepted = 0;
	struct graph *g = some_graph();
	struct rng r;

	(void)state;
	rng_seed(&r, 5);
	for (unsigned long i = 0; i < n; i++) {
		struct kge_emb *emb = some_emb(g, &r);
		struct kge_train_config c = some_config(&r);
		struct err e = { 0 };

		if (kge_train_check(&c, &e) == 0) {
			check_run(&c, g, emb);
			accepted++;
		} else {
			assert_non_null(strstr(e.text, "train."));
		}
		kge_emb_free(emb);
	}
	assert_in_range(accepted, n / 10, n - n / 10);
	graph_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_any_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
