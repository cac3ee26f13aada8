/* Do forgotten triples rank like unseen ones: what is compared, the figures, and unlearning that
 * goes on until they do. */
#include "tests/kge/world.h"

#include "base/mem.h"
#include "kge/unlearn_until.h"

/* ---- what is compared ---- */

/* Entities on a line, 0 the best answer of all. */
static struct kge_emb *line_of(const struct graph *g)
{
	struct kge_emb *emb = emb_of("transe", 1, g, 10);

	for (uint32_t i = 0; i < emb->n_rel; i++)
		emb->rel[i] = 0;
	for (uint32_t i = 0; i < emb->n_ent; i++)
		emb->ent[i] = (float)i;
	return emb;
}

/* Head 0: its tails rank by their numbers. */
static void add(struct graph *g, enum graph_split s, uint32_t rel, uint32_t tail)
{
	graph_add(g, s, (struct graph_triple){ 0, rel, tail });
}

static void count(const struct graph *g, struct kge_unseen_counts *out)
{
	const uint32_t forget[1] = { 0 };
	struct kge_unseen *u =
		kge_unseen_new(g, forget, 1, NULL, NULL, kge_protocol_find("tail"), 1);

	kge_unseen_count(u, out);
	kge_unseen_free(u);
}

/* Forgotten: tail 1, so rank 2 of those that are no known answer (0 itself is before it).  Held
 * out: tails 2 to 11 of the relation; each sets the others aside. */
static void test_figures(void **state)
{
	struct graph *g = names(13, 2);
	struct kge_emb *emb = line_of(g);
	struct kge_unseen_counts counts;
	struct kge_unseen_figures f;
	const uint32_t forget[1] = { 0 };
	struct kge_unseen *u;

	(void)state;
	add(g, GRAPH_TRAIN, 0, 1);
	add(g, GRAPH_TRAIN, 1, 12);
	add(g, GRAPH_VALID, 1, 1); /* of another relation: no reference where there are enough */
	add(g, GRAPH_TEST, 0, 0);  /* were it read, rank 1 were set aside */
	for (uint32_t i = 2; i < 12; i++)
		add(g, GRAPH_VALID, 0, i);
	count(g, &counts);
	assert_int_equal(counts.queries, 1);
	assert_int_equal(counts.held_out, 10);
	assert_int_equal(counts.by_relation, 1);
	u = kge_unseen_new(g, forget, 1, NULL, NULL, kge_protocol_find("tail"), 1);
	assert_int_equal(kge_unseen_measure(u, emb, 1, NULL, &f), 0);
	assert_near(f.mrr, 1 / 2., 1e-9, 0);
	/* entities 0 and 1 are before each of them */
	assert_near(f.reference_mrr, 1 / 3., 1e-9, 0);
	assert_near(f.difference.mean, 1 / 6., 1e-9, 0);
	assert_false(f.like);
	emb->ent[1] = 12.5F; /* behind all others */
	assert_int_equal(kge_unseen_measure(u, emb, 1, NULL, &f), 0);
	assert_near(f.mrr, 1 / 3., 1e-9, 0);
	assert_near(f.reference_mrr, 1 / 2., 1e-9, 0);
	assert_true(f.like && f.below);
	kge_unseen_free(u);
	kge_emb_free(emb);
	graph_free(g);
}

/* Both sides first: the whole of either figure. */
static void test_a_first_rank_on_both_sides_is_one(void **state)
{
	struct graph *g = names(13, 2);
	struct kge_emb *emb = line_of(g);
	const uint32_t forget[1] = { 0 };
	struct kge_unseen_figures f;
	struct kge_unseen *u;

	(void)state;
	add(g, GRAPH_TRAIN, 0, 1);
	for (uint32_t i = 2; i < 12; i++)
		add(g, GRAPH_VALID, 0, i);
	emb->rel[0] = 1; /* 0 leads to 1, and nobody else so near */
	for (uint32_t i = 2; i < 13; i++)
		emb->ent[i] = (float)(10 * i);
	u = kge_unseen_new(g, forget, 1, NULL, NULL, kge_protocol_find("standard"), 1);
	assert_int_equal(kge_unseen_measure(u, emb, 1, NULL, &f), 0);
	assert_near(f.mrr, 1, 1e-9, 0);
	assert_near(f.hits1, 1, 1e-9, 0);
	kge_unseen_free(u);
	kge_emb_free(emb);
	graph_free(g);
}

/* Forgotten: tail 1, and tails 20 to 22, which entities 0, 1 and 12 to 19 are before.  Below the
 * held-out ones in the mean, by the one that is above them; of four that one is drawn often enough
 * to leave it open. */
static void test_below_by_more_than_chance(void **state)
{
	struct graph *g = names(24, 1);
	struct kge_emb *emb = line_of(g);
	const uint32_t forget[4] = { 0, 1, 2, 3 };
	struct kge_unseen_figures f;
	struct kge_unseen *u;

	(void)state;
	add(g, GRAPH_TRAIN, 0, 1);
	for (uint32_t i = 20; i < 23; i++)
		add(g, GRAPH_TRAIN, 0, i);
	for (uint32_t i = 2; i < 12; i++)
		add(g, GRAPH_VALID, 0, i);
	u = kge_unseen_new(g, forget, 4, NULL, NULL, kge_protocol_find("tail"), 1);
	assert_int_equal(kge_unseen_measure(u, emb, 1, NULL, &f), 0);
	assert_near(f.mrr, (1 / 2. + 1 / 11. + 1 / 12. + 1 / 13.) / 4, 1e-9, 0);
	assert_near(f.reference_mrr, 1 / 3., 1e-9, 0);
	assert_true(f.difference.mean < -.1 / 3 && f.difference.high > -.1 / 3);
	assert_true(f.like && !f.below);
	kge_unseen_free(u);
	kge_emb_free(emb);
	graph_free(g);
}

/* Held-out triples of two kinds: of `head` with many triples and tails with few, then the other way
 * round.  A forgotten triple is compared with those of its own kind. */
static void test_ends_are_compared_each_with_its_own(void **state)
{
	enum { EACH = 20, RICH = 40, OTHER = RICH + 1, ENT = OTHER + 20 };
	struct graph *g = names(ENT, 2);
	struct kge_emb *emb = emb_of("transe", 1, g, 10);
	const uint32_t forget[1] = { 0 };
	struct kge_unseen_figures f;
	struct kge_unseen *u;

	(void)state;
	/* forgotten: a poor head and the rich tail; the rich one has 20 triples of relation 1 */
	graph_add(g, GRAPH_TRAIN, (struct graph_triple){ 0, 0, RICH });
	for (uint32_t i = 0; i < 20; i++)
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ RICH, 1, OTHER + i });
	for (uint32_t i = 0; i < EACH; i++) /* the other kind first: of equal ones it would go */
		graph_add(g, GRAPH_VALID, (struct graph_triple){ RICH, 0, 20 + i });
	for (uint32_t i = 0; i < EACH; i++)
		graph_add(g, GRAPH_VALID, (struct graph_triple){ i, 0, RICH });
	emb->rel[0] = 0;
	for (uint32_t e = 0; e < ENT;
	     e++) /* whoever asks finds RICH first, and RICH none of 20.. */
		emb->ent[e] = e < 20 ? 1 : e < RICH ? 9 : e == RICH ? 1 : 2;
	u = kge_unseen_new(g, forget, 1, NULL, NULL, kge_protocol_find("tail"), 1);
	assert_int_equal(kge_unseen_measure(u, emb, 1, NULL, &f), 0);
	/* 20 others at 1, where RICH is: realistic rank 1 + 20 / 2 */
	assert_near(f.reference_mrr, 1 / 11., 1e-9, 0);
	kge_unseen_free(u);
	kge_emb_free(emb);
	graph_free(g);
}

/* Of more than are ranked the seed draws some. */
static void test_the_seed_draws_the_forgotten(void **state)
{
	enum { MANY = KGE_UNSEEN_QUERIES + 300, ENT = 1500 };
	struct graph *g = names(ENT, 1);
	struct kge_emb *emb = emb_of("transe", 2, g, 10);
	uint32_t forget[MANY];
	double mrr[3];

	(void)state;
	for (uint32_t i = 0; i < MANY; i++) {
		graph_add(g, GRAPH_TRAIN, (struct graph_triple){ i, 0, (i * 7 + 1) % ENT });
		forget[i] = i;
	}
	for (uint32_t i = 0; i < 20; i++)
		graph_add(g, GRAPH_VALID, (struct graph_triple){ i, 0, (i * 5 + 3) % ENT });
	for (uint64_t k = 0; k < 3; k++) {
		struct kge_unseen *u = kge_unseen_new(g, forget, MANY, NULL, NULL,
						      kge_protocol_find("tail"), 1 + k % 2);
		struct kge_unseen_counts counts;
		struct kge_unseen_figures f;

		kge_unseen_count(u, &counts);
		assert_int_equal(counts.queries, KGE_UNSEEN_QUERIES);
		assert_int_equal(kge_unseen_measure(u, emb, 2, NULL, &f), 0);
		mrr[k] = f.mrr;
		kge_unseen_free(u);
	}
	assert_true(mrr[0] == mrr[2] && mrr[0] != mrr[1]);
	kge_emb_free(emb);
	graph_free(g);
}

/* A relation with too few is helped out by others. */
static void test_too_few_of_a_relation(void **state)
{
	struct graph *g = names(13, 2);
	struct kge_unseen_counts counts;

	(void)state;
	add(g, GRAPH_TRAIN, 0, 1);
	for (uint32_t i = 2; i < 12; i++)
		add(g, GRAPH_VALID, i < 6 ? 0 : 1, i);
	count(g, &counts);
	assert_int_equal(counts.held_out, 10);
	assert_int_equal(counts.by_relation, 0);
	graph_free(g);
}

/* Tables trained anew take the held-out ones' position; names that go are not asked for. */
static void test_retrained_and_gone(void **state)
{
	struct graph *g = names(6, 2);
	struct kge_emb *emb = line_of(g), *anew = line_of(g);
	const uint32_t forget[2] = { 0, 1 }, ent[6] = { 0, 1, 2, 3, 4, GRAPH_NONE };
	struct kge_unseen_counts counts;
	struct kge_unseen_figures f;
	struct kge_unseen *u;

	(void)state;
	add(g, GRAPH_TRAIN, 0, 1);
	add(g, GRAPH_TRAIN, 0, 5);
	add(g, GRAPH_TRAIN, 0, 2);
	u = kge_unseen_new(g, forget, 2, ent, NULL, kge_protocol_find("tail"), 1);
	kge_unseen_count(u, &counts);
	assert_int_equal(counts.queries, 1);
	assert_int_equal(counts.held_out, 0);
	anew->ent[1] = 3.5F; /* behind 0 and 3, and 2 is set aside */
	assert_int_equal(kge_unseen_set_retrained(u, anew, 1, NULL), 0);
	assert_int_equal(kge_unseen_measure(u, emb, 1, NULL, &f), 0);
	assert_near(f.mrr, 1 / 2., 1e-9, 0);
	assert_near(f.reference_mrr, 1 / 3., 1e-9, 0);
	assert_near(f.difference.low, 1 / 6., 1e-9, 0);
	kge_unseen_free(u);
	kge_emb_free(emb);
	kge_emb_free(anew);
	graph_free(g);
}

/* ---- until they do ---- */

/* Rings, which generalise, and acquaintances by lot, which can only be learnt by heart; of both
 * some are held out, and some of train are to be forgotten. */
/* By the bits of each instruction set, seed 9 forgets in 6 passes of 12 at most; of seeds 1, 7, 8,
 * 9 and three sets one wants a thirteenth. */
enum { HOUSES = 60, FORGOTTEN = 20, FIRST_SEED = 1, CALM_SEED = 9 };

static struct graph *town(void)
{
	struct graph *g = names(HOUSES, 4);
	struct rng r;

	rng_seed(&r, 4);
	for (uint32_t k = 0; k < 3; k++)
		for (uint32_t i = 0; i < HOUSES; i++)
			graph_add(g, (i + 2 * k) % 6 == 0 ? GRAPH_VALID : GRAPH_TRAIN,
				  (struct graph_triple){ i, k, (i + k + 1) % HOUSES });
	for (uint32_t i = 0; i < 2 * HOUSES; i++)
		graph_add(g, i % 6 == 1 ? GRAPH_VALID : GRAPH_TRAIN,
			  (struct graph_triple){ i % HOUSES, 3, rng_below(&r, HOUSES) });
	return g;
}

struct trial {
	struct graph *g;
	struct kge_train_config c;
	struct kge_emb *emb;
	uint32_t forget[FORGOTTEN];
	struct kge_until_report report;
};

static void learn(struct trial *t, const char *model, float lr, uint64_t seed)
{
	t->g = town();
	kge_train_defaults(&t->c);
	t->c.threads = 1;
	t->c.negatives = 16;
	t->c.batch = 64;
	t->c.corrupt = KGE_CORRUPT_BOTH;
	t->c.lr = .02F;
	t->c.seed = seed;
	t->emb = emb_of(model, 32, t->g, 6);
	run(&t->c, t->g, t->emb, 200);
	t->c.lr = lr;
	for (uint32_t i = 0; i < FORGOTTEN; i++)
		t->forget[i] = (uint32_t)t->g->split[GRAPH_TRAIN].n - 1 - 3 * i;
}

static void unlearn(struct trial *t, enum kge_unlearn_variant v, uint32_t passes)
{
	struct kge_until_config until = { .passes = passes, .least_valid = .5 };
	struct kge_unseen *u = kge_unseen_new(t->g, t->forget, FORGOTTEN, NULL, NULL,
					      kge_protocol_find("standard"), 1);

	kge_unlearn_defaults(&until.unlearn, &t->c, v);
	assert_int_equal(kge_unlearn_until(&until, t->g, t->forget, FORGOTTEN, u, t->emb, NULL,
					   &t->report, NULL),
			 0);
	kge_unseen_free(u);
}

static void trial_release(struct trial *t)
{
	kge_emb_free(t->emb);
	graph_free(t->g);
}

static void check_forgets(const char *model, enum kge_unlearn_variant v)
{
	struct trial t;
	const struct kge_unseen_figures *b = &t.report.before, *a = &t.report.after;

	learn(&t, model, .02F, CALM_SEED);
	unlearn(&t, v, KGE_UNLEARN_PASSES);
	if (!(b->difference.low > .2 && t.report.reached && a->like &&
	      a->mrr <= 1.1 * a->reference_mrr &&
	      t.report.valid_after.local >= .5 * t.report.valid_before.local))
		fail_msg("%s: %.3f of %.3f -> %.3f of %.3f, valid %.3f -> %.3f, %u passes", model,
			 b->mrr, b->reference_mrr, a->mrr, a->reference_mrr,
			 t.report.valid_before.local, t.report.valid_after.local, t.report.passes);
	trial_release(&t);
}

static void test_goes_on_until_forgotten(void **state)
{
	(void)state;
	check_forgets("transe", KGE_UNLEARN_CODE);
	check_forgets("complex", KGE_UNLEARN_CODE);
	check_forgets("rotate", KGE_UNLEARN_CODE);
	check_forgets("rotate", KGE_UNLEARN_PAPER);
}

/* One pass at a rate that moves nothing: what used to be called forgotten. */
static void test_says_when_not(void **state)
{
	struct trial t;

	(void)state;
	learn(&t, "rotate", 1e-5F, FIRST_SEED);
	unlearn(&t, KGE_UNLEARN_CODE, 1);
	assert_false(t.report.reached);
	assert_false(t.report.after.like);
	assert_int_equal(t.report.passes, 1);
	assert_true(t.report.after.difference.low > 0);
	trial_release(&t);
}

/* A global table that has learnt valid, too, so that it has much to lose on it. */
static struct kge_emb *learn_valid(struct trial *t)
{
	struct graph *all = town();
	struct kge_emb *global = kge_emb_copy(t->emb);

	for (size_t i = 0; i < all->split[GRAPH_VALID].n; i++)
		graph_add(all, GRAPH_TRAIN, all->split[GRAPH_VALID].at[i]);
	run(&t->c, all, global, 100);
	memcpy(global->rel, t->emb->rel, global->n_rel * global->rel_floats * sizeof(float));
	graph_free(all);
	return global;
}

/* It travels, so what it has lost counts as what the agent's own has. */
static void test_global_table_keeps_valid(void **state)
{
	struct kge_until_config until = { .passes = 2, .least_valid = .95 };
	struct trial t;
	struct kge_until_report *r = &t.report;
	struct kge_emb *global;
	struct kge_unseen *u;

	(void)state;
	learn(&t, "rotate", .02F, FIRST_SEED);
	global = learn_valid(&t);
	u = kge_unseen_new(t.g, t.forget, FORGOTTEN, NULL, NULL, kge_protocol_find("standard"), 1);
	kge_unlearn_defaults(&until.unlearn, &t.c, KGE_UNLEARN_CODE);
	assert_int_equal(
		kge_unlearn_until(&until, t.g, t.forget, FORGOTTEN, u, t.emb, global, r, NULL), 0);
	assert_true(r->after.like && r->global_after.like);
	assert_true(r->valid_after.local > .95 * r->valid_before.local);
	assert_true(r->valid_after.global < .95 * r->valid_before.global);
	assert_false(r->reached);
	kge_unseen_free(u);
	kge_emb_free(global);
	trial_release(&t);
}

/* Of tables that nothing moves none is low, so each pass is whole: the second is twice as long,
 * with twice the weights. */
static void test_a_further_pass_is_twice_the_first(void **state)
{
	struct kge_until_config until = { .passes = 2, .least_valid = .5 };
	struct trial t;
	struct kge_unlearn_config c;
	struct kge_unlearn_report one, two;
	struct kge_emb *by_hand;
	struct kge_unseen *u;

	(void)state;
	learn(&t, "rotate", 1e-5F, FIRST_SEED);
	by_hand = kge_emb_copy(t.emb);
	kge_unlearn_defaults(&c, &t.c, KGE_UNLEARN_CODE);
	until.unlearn = c;
	u = kge_unseen_new(t.g, t.forget, FORGOTTEN, NULL, NULL, kge_protocol_find("standard"), 1);
	assert_int_equal(kge_unlearn_until(&until, t.g, t.forget, FORGOTTEN, u, t.emb, NULL,
					   &t.report, NULL),
			 0);
	assert_int_equal(kge_unlearn(&c, t.g, t.forget, FORGOTTEN, by_hand, NULL, &one, NULL), 0);
	c.interference_epochs *= 2;
	c.interference.forgotten *= 2;
	c.interference.soft *= 2;
	c.valid_from = one.valid_before;
	assert_int_equal(kge_unlearn(&c, t.g, t.forget, FORGOTTEN, by_hand, NULL, &two, NULL), 0);
	assert_int_equal(t.report.passes, 2);
	assert_int_equal(t.report.interference_epochs,
			 one.interference_epochs + two.interference_epochs);
	assert_int_equal(two.interference_epochs, 2 * one.interference_epochs);
	assert_int_equal(t.report.decay_epochs, one.decay_epochs + two.decay_epochs);
	assert_same(t.emb, by_hand, true);
	kge_unseen_free(u);
	kge_emb_free(by_hand);
	trial_release(&t);
}

/* A local table that never saw the forgotten is low from the start, and the global one is not: only
 * what is low in both ends interference. */
static void test_interference_goes_on_for_the_global_table(void **state)
{
	struct kge_until_config until = { .passes = 1, .least_valid = .1 };
	struct trial t;
	struct graph kept;
	struct kge_emb *innocent;
	struct kge_unseen *u;

	(void)state;
	learn(&t, "rotate", 1e-5F, FIRST_SEED);
	kept = kge_kept_of(t.g, t.forget, FORGOTTEN);
	innocent = emb_of("rotate", 32, t.g, 6);
	t.c.lr = .02F;
	run(&t.c, &kept, innocent, 60);
	t.c.lr = 1e-5F;
	memcpy(innocent->rel, t.emb->rel, t.emb->n_rel * t.emb->rel_floats * sizeof(float));
	kge_unlearn_defaults(&until.unlearn, &t.c, KGE_UNLEARN_CODE);
	u = kge_unseen_new(t.g, t.forget, FORGOTTEN, NULL, NULL, kge_protocol_find("standard"), 1);
	for (int swapped = 0; swapped < 2; swapped++) {
		struct kge_emb *local = kge_emb_copy(swapped ? t.emb : innocent),
			       *global = kge_emb_copy(swapped ? innocent : t.emb);

		assert_int_equal(kge_unlearn_until(&until, t.g, t.forget, FORGOTTEN, u, local,
						   global, &t.report, NULL),
				 0);
		assert_true((t.report.before.difference.mean <= 0) == !swapped);
		assert_true((t.report.global_before.difference.mean <= 0) == swapped);
		assert_int_equal(t.report.interference_epochs, until.unlearn.interference_epochs);
		kge_emb_free(local);
		kge_emb_free(global);
	}
	kge_unseen_free(u);
	kge_emb_free(innocent);
	kge_kept_release(&kept);
	trial_release(&t);
}

/* What is left of valid, at the best of so many epochs of decay. */
static double left_after(const struct trial *t, const struct kge_emb *from, uint32_t epochs)
{
	struct kge_emb *local = kge_emb_copy(t->emb), *global = kge_emb_copy(from);
	struct kge_unlearn_config c;
	struct kge_unlearn_report r;

	kge_unlearn_defaults(&c, &t->c, KGE_UNLEARN_CODE);
	c.decay_epochs = c.decay_patience = epochs;
	assert_int_equal(kge_unlearn(&c, t->g, t->forget, FORGOTTEN, local, global, &r, NULL), 0);
	kge_emb_free(local);
	kge_emb_free(global);
	assert_near(kge_unlearn_left(&r.valid_after, &r.valid_before),
		    fmin(r.valid_after.local / r.valid_before.local,
			 r.valid_after.global / r.valid_before.global),
		    1e-12, 0);
	return kge_unlearn_left(&r.valid_after, &r.valid_before);
}

/* Of more epochs none is kept that leaves less of one of the tables. */
static void test_decay_by_both_tables(void **state)
{
	struct trial t;
	struct kge_emb *global;
	double left = 0;

	(void)state;
	learn(&t, "rotate", .02F, FIRST_SEED);
	global = learn_valid(&t);
	for (uint32_t n = 1; n <= 8; n++) {
		double more = left_after(&t, global, n);

		assert_true(more >= left);
		left = more;
	}
	kge_emb_free(global);
	trial_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_figures),
		cmocka_unit_test(test_a_first_rank_on_both_sides_is_one),
		cmocka_unit_test(test_below_by_more_than_chance),
		cmocka_unit_test(test_ends_are_compared_each_with_its_own),
		cmocka_unit_test(test_the_seed_draws_the_forgotten),
		cmocka_unit_test(test_too_few_of_a_relation),
		cmocka_unit_test(test_retrained_and_gone),
		cmocka_unit_test(test_goes_on_until_forgotten),
		cmocka_unit_test(test_says_when_not),
		cmocka_unit_test(test_global_table_keeps_valid),
		cmocka_unit_test(test_a_further_pass_is_twice_the_first),
		cmocka_unit_test(test_interference_goes_on_for_the_global_table),
		cmocka_unit_test(test_decay_by_both_tables),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
