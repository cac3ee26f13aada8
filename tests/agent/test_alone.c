/* The arm without partners: it trains by the rules of the agent that it stands beside. */
#include "tests/test.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#include "agent/alone.h"
#include "base/mem.h"
#include "tests/agent/small_graph.h"

enum { ENTITIES = 40, RELATIONS = 3, TRIPLES = 400, EPOCHS = 3, UNITS = 12 };

struct world {
	struct config config;
	struct graph *graph;
	struct store *store;
	struct kge_emb *before;
	struct agent_history history;
};

/* What a federated agent has, and the arm on disk. */
struct state {
	struct kge_emb *work, *best;
	double score;
	unsigned worse, late; /* units that were no better; better ones after such */
};

static struct graph *draw_graph(void)
{
	struct graph *g = small_graph(ENTITIES, RELATIONS);
	struct rng r;

	rng_seed(&r, 5);
	for (size_t i = 0; i < TRIPLES; i++) {
		struct graph_triple t = { rng_below(&r, ENTITIES), rng_below(&r, RELATIONS),
					  rng_below(&r, ENTITIES) };

		graph_add(g, i % 3 == 0 ? GRAPH_VALID : GRAPH_TRAIN, t);
	}
	return g;
}

static void put_as(struct store *s, const char *protocol, enum store_checkpoint_kind kind,
		   uint64_t epochs, double score, const struct kge_emb *m)
{
	struct store_checkpoint info = { .kind = kind, .valid_score = score, .epochs = epochs };
	struct store_batch b = { 0 };

	snprintf(info.protocol, sizeof(info.protocol), "%s", protocol);
	store_batch_checkpoint(&b, &info, kge_emb_copy(m));
	assert_int_equal(store_apply(s, &b, NULL), 0);
	store_batch_release(&b);
}

static void put(struct store *s, enum store_checkpoint_kind kind, uint64_t epochs, double score,
		const struct kge_emb *m)
{
	put_as(s, "standard", kind, epochs, score, m);
}

static struct agent_learner_kge *new_learner(const struct world *w)
{
	const struct kge_train_config train = config_training(&w->config);

	return agent_learner_new(&train, w->graph, config_protocol(&w->config), 0);
}

static double score_of(const struct world *w, const struct kge_emb *m)
{
	struct agent_learner_kge *l = new_learner(w);
	struct agent_job job = { 0 };
	double score;

	assert_int_equal(agent_learner_ops(l)->evaluate(agent_learner_ops(l)->ctx, m, &job, &score),
			 0);
	agent_learner_free(l);
	return score;
}

static void begin(struct world *w, enum config_mode mode, enum config_after after)
{
	struct store_options o = { 0 };
	struct rng r;

	w->history = (struct agent_history){ 0 };
	config_init(&w->config);
	w->config.model.dim = 8;
	w->config.train.kge.threads = 1;
	w->config.train.kge.lr = 0.05F;
	w->config.train.kge.schedule = KGE_SCHEDULE_LINEAR; /* the count of epochs is seen */
	w->config.train.kge.schedule_epochs = 60;
	w->config.federation.mode = mode;
	w->config.federation.after = after;
	w->config.federation.epochs_per_round = EPOCHS;
	w->config.rounds.epochs = EPOCHS;
	w->config.rounds.eval_every = 2;
	w->graph = draw_graph();
	config_suit(&w->config, w->graph);
	rng_seed(&r, 6);
	w->before = config_tables(&w->config, ENTITIES, RELATIONS, &r);
	assert_int_equal(store_open(&w->store, ":memory:", &o, NULL), 0);
	put(w->store, STORE_BEFORE, 20, score_of(w, w->before), w->before);
}

static void end(struct world *w, struct state *s)
{
	kge_emb_free(s->work);
	kge_emb_free(s->best);
	kge_emb_free(w->before);
	store_close(w->store);
	graph_free(w->graph);
	config_release(&w->config);
}

/* ---- as an agent does to which nothing comes ---- */

static struct state first_state(const struct world *w)
{
	return (struct state){ .work = kge_emb_copy(w->before),
			       .best = kge_emb_copy(w->before),
			       .score = score_of(w, w->before) };
}

static void look(const struct world *w, struct state *s)
{
	double score = score_of(w, s->work);

	if (score > s->score) {
		kge_emb_assign(s->best, s->work);
		s->score = score;
		s->late += s->worse > 0;
		return;
	}
	s->worse++;
	if (w->config.federation.mode == CONFIG_PAIRS &&
	    w->config.federation.after == CONFIG_AFTER_BACK)
		kge_emb_assign(s->work, s->best);
}

static void pair_rounds_of(const struct world *w, struct state *s, struct agent_learner_kge *l,
			   unsigned n, uint32_t epochs)
{
	const struct agent_learner *ops = agent_learner_ops(l);
	struct agent_job job = { 0 };

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(ops->train(ops->ctx, s->work, epochs,
					    w->config.federation.reset_optimizer, &job),
				 0);
		look(w, s);
	}
}

static void pair_rounds(const struct world *w, struct state *s, struct agent_learner_kge *l,
			unsigned n)
{
	pair_rounds_of(w, s, l, n, EPOCHS);
}

/* As the copy beside rounds is trained (rounds_compare.c). */
static void rounds(const struct world *w, struct state *s, uint64_t first, unsigned n)
{
	struct agent_learner_kge *l = new_learner(w);
	const struct agent_learner *ops = agent_learner_ops(l);
	struct agent_job job = { 0 };

	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(
			ops->train_alone(ops->ctx, s->work, EPOCHS, first + i * EPOCHS, &job), 0);
		if ((i + 1) % w->config.rounds.eval_every == 0)
			look(w, s);
	}
	agent_learner_free(l);
}

/* ---- the arm ---- */

static struct alone *open_arm(const struct world *w)
{
	struct err e = { 0 };
	struct alone *a;

	if (alone_open(&a, &w->config, w->graph, w->store, &e) != 0)
		fail_msg("%s", e.text);
	assert_non_null(a);
	return a;
}

static void units(const struct world *w, struct alone *a, uint64_t to)
{
	struct agent_history h = w->history;
	struct agent_job job = { 0 };

	h.epochs = to;
	while (alone_epochs(a) < to) {
		struct store_batch b = { 0 };
		uint64_t unit = agent_history_unit(&h, &w->config, alone_epochs(a));

		assert_int_equal(alone_unit(a, unit, &job), 0);
		alone_save(a, 1, &b);
		assert_int_equal(store_apply(w->store, &b, NULL), 0);
		store_batch_release(&b);
	}
}

static void expect_kind(const struct world *w, enum store_checkpoint_kind kind, uint64_t epochs,
			const struct kge_emb *want)
{
	struct store_checkpoint info;
	struct kge_emb *got;
	uint8_t digest[32];

	assert_int_equal(store_restore_kind(w->store, kind, &got, &info, NULL), 0);
	kge_emb_digest(want, digest);
	assert_memory_equal(info.digest, digest, 32);
	if (epochs > 0)
		assert_int_equal(info.epochs, epochs);
	kge_emb_free(got);
}

static void expect(const struct world *w, const struct alone *a, const struct state *s)
{
	assert_true(s->worse > 0 && s->late > 0); /* else all rules come to the same */
	assert_true(alone_score(a) == s->score);
	expect_kind(w, STORE_ALONE, 0, s->best);
	expect_kind(w, STORE_ALONE_LATEST, alone_epochs(a), s->work);
}

/* ---- the tests ---- */

/* Rounds that bring nothing: both arms are the same, bit for bit. */
static void pairs(enum config_after after, bool reset)
{
	struct agent_learner_kge *l;
	struct world w;
	struct state s;
	struct alone *a;

	begin(&w, CONFIG_PAIRS, after);
	w.config.federation.reset_optimizer = reset;
	s = first_state(&w);
	l = new_learner(&w);
	pair_rounds(&w, &s, l, UNITS);
	a = open_arm(&w);
	assert_null(alone_anew(a));
	units(&w, a, (uint64_t)UNITS * EPOCHS);
	expect(&w, a, &s);
	alone_free(a);
	agent_learner_free(l);
	end(&w, &s);
}

static void goes_on_as_pairs_under_keep(void **state)
{
	(void)state;
	pairs(CONFIG_AFTER_KEEP, true);
	pairs(CONFIG_AFTER_KEEP, false);
}

static void goes_back_as_pairs_under_back(void **state)
{
	(void)state;
	pairs(CONFIG_AFTER_BACK, true);
	pairs(CONFIG_AFTER_BACK, false);
}

/* The owner makes rounds longer, then shorter, while the arm is all of them behind. */
static void trains_as_long_as_rounds_were(void **state)
{
	static const uint32_t epochs[] = { EPOCHS, 7, 2 };
	struct agent_learner_kge *l;
	struct world w;
	struct state s;
	struct alone *a;

	(void)state;
	begin(&w, CONFIG_PAIRS, CONFIG_AFTER_BACK);
	s = first_state(&w);
	l = new_learner(&w);
	for (size_t k = 0; k < 3; k++) {
		w.config.federation.epochs_per_round = epochs[k];
		for (unsigned i = 0; i < UNITS; i++) {
			agent_history_add_round(&w.history, epochs[k]);
			pair_rounds_of(&w, &s, l, 1, epochs[k]);
		}
	}
	a = open_arm(&w);
	units(&w, a, (uint64_t)UNITS * (EPOCHS + 7 + 2));
	assert_int_equal(w.history.epochs, alone_epochs(a));
	expect(&w, a, &s);
	alone_free(a);
	agent_learner_free(l);
	end(&w, &s);
}

/* A restart of both, after a round that was no better: neither begins from its best. */
static void a_restart_goes_on_from_the_latest(void **state)
{
	struct world w;
	struct state s;
	struct alone *a = NULL;
	unsigned done = 0;

	(void)state;
	begin(&w, CONFIG_PAIRS, CONFIG_AFTER_KEEP);
	for (s = first_state(&w); done < UNITS; done++) {
		struct agent_learner_kge *l = new_learner(&w);

		pair_rounds(&w, &s, l, 1);
		agent_learner_free(l);
		alone_free(a);
		a = open_arm(&w);
		assert_int_equal(alone_epochs(a), (uint64_t)done * EPOCHS);
		units(&w, a, (uint64_t)(done + 1) * EPOCHS);
	}
	expect(&w, a, &s);
	alone_free(a);
	end(&w, &s);
}

/* Pairs that had gone on from others than the best before partners came: so does the arm. */
static void begins_where_pairs_were(void **state)
{
	struct agent_learner_kge *l;
	struct world w;
	struct state s;
	struct alone *a;

	(void)state;
	begin(&w, CONFIG_PAIRS, CONFIG_AFTER_KEEP);
	s = first_state(&w);
	l = new_learner(&w);
	for (size_t i = 0; i < s.work->n_ent * s.work->ent_floats; i++)
		s.work->ent[i] *= 0.2F;
	put(w.store, STORE_ALONE_LATEST, 0, 0, s.work);
	pair_rounds(&w, &s, l, UNITS);
	a = open_arm(&w);
	units(&w, a, (uint64_t)UNITS * EPOCHS);
	expect(&w, a, &s);
	alone_free(a);
	agent_learner_free(l);
	end(&w, &s);
}

static void *cancel(void *ctx)
{
	struct agent_job *job = ctx;

	while (atomic_load(&job->done) < 2)
		sched_yield();
	atomic_store(&job->cancel, true);
	return NULL;
}

/* In a unit that would take for ever, once it has trained. */
static void cut_off(struct world *w, struct alone *a)
{
	struct agent_job job = { 0 };
	pthread_t t;

	w->config.federation.epochs_per_round = w->config.rounds.epochs = 1000000;
	assert_int_equal(pthread_create(&t, NULL, cancel, &job), 0);
	assert_int_equal(alone_unit(a, 1000000, &job), ERR_CANCELED);
	pthread_join(t, NULL);
	w->config.federation.epochs_per_round = w->config.rounds.epochs = EPOCHS;
}

/* The agent's own jobs come first; what they cut off is as if it had not been. */
static void a_unit_that_is_cut_off_changes_nothing(void **state)
{
	(void)state;
	for (int reset = 0; reset < 2; reset++) {
		struct agent_learner_kge *l;
		struct world w;
		struct state s;
		struct alone *a;

		begin(&w, CONFIG_PAIRS, CONFIG_AFTER_KEEP);
		w.config.federation.reset_optimizer = reset != 0;
		s = first_state(&w);
		l = new_learner(&w);
		pair_rounds(&w, &s, l, UNITS);
		a = open_arm(&w);
		for (uint64_t i = 1; i <= UNITS; i++) {
			cut_off(&w, a);
			units(&w, a, i * EPOCHS);
		}
		expect(&w, a, &s);
		alone_free(a);
		agent_learner_free(l);
		end(&w, &s);
	}
}

static void put_first(const struct world *w, uint64_t first)
{
	struct agent_history h = { .has_before = true, .first = first };
	struct store_batch b = { 0 };
	struct buf out = { 0 };

	agent_history_write(&h, &out);
	store_batch_meta_owned(&b, AGENT_META_HISTORY, out.base, out.len);
	assert_int_equal(store_apply(w->store, &b, NULL), 0);
	store_batch_release(&b);
}

/* The optimizer begins anew at each round, not at each look; draws go by the round's number. */
static void trains_as_the_copy_beside_rounds(void **state)
{
	struct world w;
	struct state s;
	struct alone *a;

	(void)state;
	begin(&w, CONFIG_ROUNDS, CONFIG_AFTER_KEEP);
	put_first(&w, 7);
	s = first_state(&w);
	rounds(&w, &s, 7, 2 * UNITS);
	a = open_arm(&w);
	units(&w, a, (uint64_t)UNITS * EPOCHS);
	alone_free(a); /* a restart */
	a = open_arm(&w);
	cut_off(&w, a);
	units(&w, a, (uint64_t)2 * UNITS * EPOCHS);
	expect(&w, a, &s);
	alone_free(a);
	end(&w, &s);
}

/* That of an earlier fkge has no latest tables: it is not gone on from, nor are its scores. */
static void an_older_arm_begins_anew(void **state)
{
	struct world w;
	struct state s;
	struct alone *a;

	(void)state;
	begin(&w, CONFIG_PAIRS, CONFIG_AFTER_KEEP);
	w.config.train.kge.lr = 1e-9F; /* nothing gets better */
	s = first_state(&w);
	s.work->ent[0] += 1;
	put(w.store, STORE_ALONE, 300, .9, s.work);
	a = open_arm(&w);
	assert_non_null(alone_anew(a));
	assert_int_equal(alone_epochs(a), 0);
	units(&w, a, EPOCHS);
	assert_true(alone_score(a) == s.score);
	alone_free(a);
	expect_kind(&w, STORE_ALONE, EPOCHS, w.before);
	a = open_arm(&w);
	assert_null(alone_anew(a));
	assert_int_equal(alone_epochs(a), EPOCHS);
	assert_true(alone_score(a) == s.score);
	alone_free(a);
	end(&w, &s);
}

/* After an import of other valid triples: as the best of the agent is. */
static void a_score_of_before_an_import_is_judged_anew(void **state)
{
	struct world w;
	struct state s;
	struct alone *a;

	(void)state;
	begin(&w, CONFIG_PAIRS, CONFIG_AFTER_KEEP);
	s = first_state(&w);
	put_as(w.store, "standard (old valid)", STORE_ALONE, 20, 9, w.before);
	put_as(w.store, "standard (old valid)", STORE_ALONE_LATEST, 20, 9, w.before);
	a = open_arm(&w);
	units(&w, a, alone_epochs(a) + EPOCHS);
	assert_true(alone_score(a) >= s.score && alone_score(a) < 1);
	alone_free(a);
	a = open_arm(&w);
	assert_true(alone_score(a) < 1);
	alone_free(a);
	end(&w, &s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on_as_pairs_under_keep),
		cmocka_unit_test(goes_back_as_pairs_under_back),
		cmocka_unit_test(trains_as_long_as_rounds_were),
		cmocka_unit_test(a_restart_goes_on_from_the_latest),
		cmocka_unit_test(begins_where_pairs_were),
		cmocka_unit_test(a_unit_that_is_cut_off_changes_nothing),
		cmocka_unit_test(trains_as_the_copy_beside_rounds),
		cmocka_unit_test(an_older_arm_begins_anew),
		cmocka_unit_test(a_score_of_before_an_import_is_judged_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
