/* Partners whose rows hurt (agent/core/judge.c): one of two partners of the host poisons its rows.
 * key federation.quarantine is looked at here, for test_keys;
 * key federation.bound_rows is, too. */
#include "tests/test.h"

#include <math.h>
#include <sodium.h>

#include "base/log.h"
#include "base/mem.h"
#include "tests/agent/private_training.h"
#include "tests/agent/table.h"

enum { GOOD, HOST, BAD, DIM = 4, ROUNDS = 3 /* of hurting before quarantine */ };

static struct kge_emb *truth;  /* what all would learn */
static unsigned asked[AGENTS]; /* proposals of the host */
static uint32_t scored_on;     /* triples, the last time that tables were scored */

static struct agent_core *core(struct table *t, size_t at)
{
	return t->agent[at].core;
}

static int learn_truth(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		       struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)reset, (void)job;
	kge_emb_assign(work, truth);
	return 0;
}

/* The host begins with less of it than partners can bring, and learns nothing more by itself. */
static int learn_less(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		      struct agent_job *job)
{
	struct table_agent *s = ctx;

	(void)epochs, (void)reset, (void)job;
	if (s->improvements == 0)
		return 0;
	s->improvements = 0;
	kge_emb_assign(work, truth);
	for (size_t i = 0; i < (size_t)work->n_ent * work->ent_floats; i++)
		work->ent[i] *= .6F;
	return 0;
}

static int learn_noise(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		       struct agent_job *job)
{
	struct rng r;

	(void)ctx, (void)epochs, (void)reset, (void)job;
	rng_seed(&r, 5);
	for (size_t i = 0; i < (size_t)work->n_ent * work->ent_floats; i++)
		work->ent[i] = 2 * (float)rng_normal(&r);
	return 0;
}

static int is_level(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	(void)ctx, (void)work, (void)job;
	*score = .5;
	return 0;
}

/* How near each entity is to the truth. */
static int near_truth(void *ctx, const struct kge_emb *work, uint32_t triples,
		      struct agent_job *job, double **each, size_t *n)
{
	(void)ctx, (void)job;
	scored_on = triples;
	*n = work->n_ent;
	*each = mem_array(*n, sizeof(**each));
	for (uint32_t i = 0; i < work->n_ent; i++) {
		double apart = 0;

		for (size_t k = 0; k < DIM; k++)
			apart += pow((double)kge_ent(work, i)[k] - (double)kge_ent(truth, i)[k], 2);
		(*each)[i] = 1 / (1 + sqrt(apart));
	}
	return 0;
}

static void count_asked(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct net_msg m;

	(void)ctx, (void)t;
	if (from != HOST || net_msg_decode(&m, bytes->base, bytes->len, NULL) != 0)
		return;
	asked[to] += m.type == NET_MSG_PROPOSE;
	net_msg_release(&m);
}

static void begin(struct table *t)
{
	struct rng r;

	memset(asked, 0, sizeof(asked));
	table_init(t, 1);
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &t->agent[i];

		s->config.federation.patience = 0;
		s->config.federation.gather_s = 2;
		s->config.federation.few.judge = i == HOST;
		s->config.federation.few.quarantine = ROUNDS;
		s->learner = (struct agent_learner){ .ctx = s,
						     .train = i == GOOD	  ? learn_truth
							      : i == HOST ? learn_less
									  : learn_noise,
						     .evaluate = is_level,
						     .evaluate_each = near_truth };
	}
	rng_seed(&r, 3);
	truth = kge_emb_new(kge_model_find("transe"), DIM, 4.0F,
			    graph_vocab_count(t->agent[HOST].graph->entities),
			    graph_vocab_count(t->agent[HOST].graph->relations), &r);
	t->tamper = count_asked;
}

static void end(struct table *t)
{
	table_release(t);
	kge_emb_free(truth);
}

static void meet(struct table *t)
{
	table_link(t, GOOD, HOST, true);
	table_link(t, BAD, HOST, true);
}

static const struct store_judgement *judged(struct table *t, size_t partner)
{
	return &table_peer(t, HOST, partner)->judgement;
}

/* Until the bad one is in quarantine, or the host has had so many rounds. */
static void run_rounds(struct table *t, uint64_t rounds)
{
	for (int k = 0; k < 4000 && core(t, HOST)->rounds < rounds && !judged(t, BAD)->quarantined;
	     k++)
		table_run(t, t->now_ms + 500, 200);
}

static bool says_quarantine(struct table *t, size_t partner)
{
	struct agent_status st;
	bool says = false;

	agent_core_status(core(t, HOST), &st);
	for (size_t i = 0; i < st.n_peers; i++)
		if (memcmp(st.peer[i].key, t->agent[partner].key, AGENT_KEY) == 0)
			says = strstr(st.peer[i].trouble, "in quarantine: its rows hurt") != NULL;
	agent_status_release(&st);
	return says;
}

/* The host's tables have come to the truth, by the good one's rows alone. */
static bool has_learnt(struct table *t)
{
	double *each, sum = 0;
	size_t n;

	near_truth(NULL, core(t, HOST)->work, 0, NULL, &each, &n);
	for (size_t i = 0; i < n; i++)
		sum += each[i];
	free(each);
	return sum > .9 * (double)n;
}

static void run_until_quarantine(struct table *t)
{
	begin(t);
	table_start(t);
	table_run(t, t->now_ms + 10000, 20000);
	meet(t);
	run_rounds(t, 40);
	assert_true(judged(t, BAD)->quarantined);
}

/* The bad one is left out of each round, and after ROUNDS of them in quarantine; the good one is
 * in all of them. */
static void the_bad_one_is_left_out(void **state)
{
	struct table t;

	(void)state;
	run_until_quarantine(&t);
	assert_int_equal(judged(&t, BAD)->hurt, ROUNDS);
	assert_true(fed_reputation_is_lost(judged(&t, BAD)->reputation, ROUNDS));
	assert_false(judged(&t, GOOD)->quarantined);
	assert_int_equal(judged(&t, GOOD)->hurt, 0);
	assert_true(judged(&t, GOOD)->judged > 0);
	assert_float_equal((float)judged(&t, GOOD)->reputation, 1, 0);
	assert_true(says_quarantine(&t, BAD));
	assert_false(says_quarantine(&t, GOOD));
	table_run(&t, t.now_ms + 20000, 20000);
	assert_true(has_learnt(&t));
	end(&t);
}

static void say(struct table *t, enum agent_event_kind what, size_t partner)
{
	struct agent_event e = { .kind = what, .now_ms = t->now_ms };

	memcpy(e.peer, t->agent[partner].key, AGENT_KEY);
	agent_core_event(core(t, HOST), &e);
}

/* No session is proposed to it any more, while the good one goes on; after a restart neither;
 * until the owner trusts it. */
static void quarantine_lasts_until_it_is_lifted(void **state)
{
	struct table t;
	unsigned was[AGENTS];

	(void)state;
	run_until_quarantine(&t);
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	assert_true(judged(&t, BAD)->quarantined);
	assert_int_equal(judged(&t, BAD)->hurt, ROUNDS);
	assert_non_null(strstr(judged(&t, BAD)->why, "its rows hurt in 3 of "));
	memcpy(was, asked, sizeof(was));
	meet(&t);
	table_run(&t, t.now_ms + 20000, 20000);
	assert_int_equal(asked[BAD], was[BAD]);
	assert_true(asked[GOOD] > was[GOOD]);
	assert_true(says_quarantine(&t, BAD));
	say(&t, AGENT_EVENT_PEER_TRUSTED, BAD);
	table_run(&t, t.now_ms + 10, 1000);
	assert_false(says_quarantine(&t, BAD));
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	assert_false(judged(&t, BAD)->quarantined);
	meet(&t);
	table_run(&t, t.now_ms + 20000, 20000);
	assert_true(asked[BAD] > was[BAD]);
	end(&t);
}

/* What it had said meanwhile is asked for then: it may rest by now, and say nothing more. */
static void who_is_trusted_is_asked_for_what_it_has(void **state)
{
	unsigned was;
	struct table t;

	(void)state;
	run_until_quarantine(&t);
	table_run(&t, t.now_ms + 5000, 5000); /* it has more rounds ... */
	t.agent[BAD].config.federation.max_rounds = 1;
	table_run(&t, t.now_ms + 20000, 20000); /* ... and no further ones */
	was = asked[BAD];
	say(&t, AGENT_EVENT_PEER_TRUSTED, BAD);
	table_run(&t, t.now_ms + 20000, 20000);
	assert_true(asked[BAD] > was);
	end(&t);
}

/* Whom the owner has the agent forget comes back as a stranger would; of a partner nothing is
 * forgotten. */
static void the_forgotten_are_judged_anew(void **state)
{
	struct table t;

	(void)state;
	run_until_quarantine(&t);
	say(&t, AGENT_EVENT_PEER_FORGOTTEN, BAD);
	assert_true(judged(&t, BAD)->quarantined);
	say(&t, AGENT_EVENT_PEER_REVOKED, BAD);
	assert_true(judged(&t, BAD)->quarantined);
	say(&t, AGENT_EVENT_PEER_FORGOTTEN, BAD);
	assert_false(judged(&t, BAD)->quarantined);
	assert_int_equal(judged(&t, BAD)->judged, 0);
	assert_float_equal((float)judged(&t, BAD)->reputation, 1, 0);
	assert_true(judged(&t, GOOD)->judged > 0);
	end(&t);
}

static void one_more_round(struct table *t)
{
	uint64_t until = core(t, HOST)->rounds + 1;

	for (int k = 0; k < 40000 && core(t, HOST)->rounds < until; k++)
		table_run(t, t->now_ms + 500, 1);
	assert_int_equal(core(t, HOST)->rounds, until);
}

/* Nobody is doubted: every fourth round, the first among them.  Of one doubted each one, until its
 * reputation is what it was. */
static void not_every_round_is_judged(void **state)
{
	struct table t;
	uint64_t was;

	(void)state;
	begin(&t);
	t.agent[BAD].learner.train = learn_truth;
	table_start(&t);
	table_run(&t, t.now_ms + 10000, 20000);
	meet(&t);
	for (uint64_t round = 0; round < 9; round++) {
		was = judged(&t, GOOD)->judged;
		one_more_round(&t);
		assert_int_equal(judged(&t, GOOD)->judged, was + (round % 4 == 0));
	}
	table_peer(&t, HOST, GOOD)->judgement.reputation = .8;
	for (int k = 0; k < 3; k++) { /* .85, .89, .92 */
		was = judged(&t, GOOD)->judged;
		one_more_round(&t);
		assert_int_equal(judged(&t, GOOD)->judged, was + 1);
	}
	table_peer(&t, HOST, GOOD)->judgement.reputation = .96;
	was = judged(&t, GOOD)->judged;
	assert_int_equal(core(&t, HOST)->rounds, 12);
	one_more_round(&t);
	one_more_round(&t);
	assert_int_equal(judged(&t, GOOD)->judged, was + 1);
	end(&t);
}

/* Of more partners than can be told apart at a time others are judged in each round. */
static void of_many_others_are_judged_each_round(void **state)
{
	enum { MANY = FED_JUDGE_MAX + 3 };
	struct agent_core *c;
	struct judging *g;
	struct table t;
	uint64_t of[2];

	(void)state;
	begin(&t);
	table_start(&t);
	table_run(&t, t.now_ms + 10000, 20000);
	c = core(&t, HOST);
	g = &c->gather.judging;
	judge_release(c);
	*g = (struct judging){ .base = kge_emb_copy(c->work),
			       .of = mem_array(MANY, sizeof(*g->of)), /* no rows */
			       .n = MANY };
	c->gather.plan.all = true;
	assert_int_equal(c->rounds, 0);
	for (; c->rounds < 2; c->rounds++) {
		assert_int_equal(judge_round(c, NULL), 0);
		of[c->rounds] = g->judged;
		assert_int_equal(__builtin_popcountll(g->judged), FED_JUDGE_MAX);
	}
	assert_int_equal(of[0] | of[1], (1 << MANY) - 1);
	c->rounds = 0;
	judge_release(c);
	end(&t);
}

/* 0: never in quarantine; judge off: nobody is looked at. */
static void by_the_settings(void **state)
{
	(void)state;
	for (int judges = 0; judges < 2; judges++) {
		struct table t;

		begin(&t);
		t.agent[HOST].config.federation.few.quarantine = 0;
		t.agent[HOST].config.federation.few.judge = judges;
		table_start(&t);
		table_run(&t, t.now_ms + 10000, 20000);
		meet(&t);
		run_rounds(&t, 20);
		assert_true(core(&t, HOST)->rounds >= 20);
		assert_false(judged(&t, BAD)->quarantined);
		assert_int_equal(judged(&t, BAD)->hurt > ROUNDS, judges);
		assert_int_equal(has_learnt(&t), judges);
		assert_int_equal(t.agent[HOST].writes[STORE_PUT_JUDGEMENT] > 0, judges);
		end(&t);
	}
}

/* All scores of a verdict together, whoever there is, take so many products of numbers at most. */
static void of_large_graphs_fewer_triples_are_ranked(void **state)
{
	const size_t partners[] = { 1, 2, 5, FED_JUDGE_MAX, 200 };
	const double products = 2e10, row = 16;
	struct kge_emb small = { .n_ent = 100, .ent_floats = 16 }, large = small, huge = small;
	struct table t;
	uint32_t on, before = UINT32_MAX;

	(void)state;
	begin(&t);
	table_start(&t);
	large.n_ent = 300000;
	huge.n_ent = 20000000;
	for (size_t i = 0; i < sizeof(partners) / sizeof(*partners); i++) {
		unsigned n = partners[i] < FED_JUDGE_MAX ? (unsigned)partners[i] : FED_JUDGE_MAX;

		assert_true(judge_triples(core(&t, HOST), &small, partners[i], &on));
		assert_int_equal(on, t.agent[HOST].config.rounds.compare_limit);
		assert_int_equal(judge_triples(core(&t, HOST), &large, partners[i], &on), n <= 5);
		assert_true(on <= before);
		assert_true(2.0 * on * fed_judge_scores(n) * row * large.n_ent <= products);
		before = on;
		assert_false(judge_triples(core(&t, HOST), &huge, partners[i], &on));
	}
	assert_true(before > 0);
	t.agent[HOST].config.rounds.compare_limit = 20; /* as its owner likes */
	assert_true(judge_triples(core(&t, HOST), &small, 2, &on));
	assert_int_equal(on, 20);
	end(&t);
}

/* A few tell whether there is anything to judge: all are ranked only where somebody is accused by
 * them, or doubted since before. */
static void while_nobody_is_doubted_few_are_ranked(void **state)
{
	struct table t;

	(void)state;
	begin(&t);
	t.agent[HOST].config.federation.weight = CONFIG_WEIGHT_ALL;
	scored_on = 0;
	table_start(&t);
	table_run(&t, t.now_ms + 10000, 20000);
	table_link(&t, GOOD, HOST, true);
	run_rounds(&t, 6);
	assert_true(judged(&t, GOOD)->judged > 0);
	assert_int_equal(judged(&t, GOOD)->hurt, 0);
	assert_int_equal(scored_on, 150);
	table_link(&t, BAD, HOST, true);
	for (int k = 0; k < 4000 && judged(&t, BAD)->judged == 0; k++)
		table_run(&t, t.now_ms + 100, 20);
	assert_int_equal(judged(&t, BAD)->judged, 1);
	assert_int_equal(judged(&t, BAD)->hurt, 1);
	assert_int_equal(scored_on, t.agent[HOST].config.rounds.compare_limit);
	end(&t);
}

/* Nor are all ranked where the owner wants all: that could be millions. */
static void all_triples_are_as_many_as_there_is_time_for(void **state)
{
	struct table t;
	uint32_t on;

	(void)state;
	begin(&t);
	t.agent[HOST].config.rounds.compare_limit = 0;
	t.agent[HOST].config.federation.weight = CONFIG_WEIGHT_ALL;
	scored_on = 0;
	table_start(&t);
	table_run(&t, t.now_ms + 10000, 20000);
	meet(&t);
	run_rounds(&t, 10);
	assert_true(judged(&t, BAD)->hurt > 0);
	assert_true(judge_triples(core(&t, HOST), core(&t, HOST)->work, 2, &on));
	assert_int_equal(scored_on, on);
	end(&t);
}

/* ---- in rounds ---- */

static void begin_rounds(struct table *t, bool judges)
{
	/* of few names the host is home to some in some rounds only */
	uint32_t most = judges ? 200 : 30;

	begin(t);
	for (size_t i = 0; i < AGENTS; i++) {
		struct config *c = &t->agent[i].config;

		c->federation.mode = CONFIG_ROUNDS;
		c->federation.few.judge = i == HOST && judges;
		c->rounds.epochs = c->rounds.eval_every = 1;
		c->rounds.min_members = AGENTS;
		c->rounds.max = most;
		c->rounds.patience = 0;
		c->rounds.join_s = .4;
		c->rounds.train_s = 2;
		c->rounds.stage_s = 1;
	}
	table_start(t);
	for (size_t a = 0; a < AGENTS; a++)
		for (size_t b = a + 1; b < AGENTS; b++)
			table_link(t, a, b, true);
	for (int k = 0; k < 4000 && core(t, HOST)->fed.done < most && !judged(t, BAD)->quarantined;
	     k++)
		table_run(t, t->now_ms + 500, 2000);
}

/* The same by the rows that came to a home: the bad one gets into quarantine, the honest go on. */
static void members_of_rounds_are_judged(void **state)
{
	struct table t;

	(void)state;
	begin_rounds(&t, true);
	assert_true(judged(&t, BAD)->quarantined);
	assert_true(fed_reputation_is_lost(judged(&t, BAD)->reputation, ROUNDS));
	assert_true(says_quarantine(&t, BAD));
	assert_true(judged(&t, GOOD)->judged > 0);
	assert_int_equal(judged(&t, GOOD)->hurt, 0);
	assert_false(says_quarantine(&t, GOOD));
	end(&t);
	begin_rounds(&t, false);
	assert_int_equal(core(&t, HOST)->fed.done, 30);
	assert_int_equal(judged(&t, BAD)->judged, 0);
	end(&t);
}

/* ---- valid is data, too ---- */

static unsigned looks; /* of the host at valid */

static int looks_level(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	looks++;
	return is_level(ctx, work, job, score);
}

static int looks_at_each(void *ctx, const struct kge_emb *work, uint32_t triples,
			 struct agent_job *job, double **each, size_t *n)
{
	looks++;
	return near_truth(ctx, work, triples, job, each, n);
}

/* With all that looks at valid, or with nothing of it. */
static void set_looks(struct table *t, bool all)
{
	struct table_agent *s = &t->agent[HOST];

	looks = 0;
	s->learner.evaluate = looks_level;
	s->learner.evaluate_each = looks_at_each;
	s->config.federation.few.judge = all;
	s->config.federation.weight = all ? CONFIG_WEIGHT_VALID : CONFIG_WEIGHT_ALL;
	s->config.federation.few.bound_rows = false; /* the bound is of who comes first */
}

static void rounds_of(struct table *t, bool private_training, bool all)
{
	begin(t);
	set_looks(t, all);
	if (private_training)
		set_private_training(&t->agent[HOST].config, 1000);
	table_start(t);
	assert_int_equal(judge_applies(core(t, HOST)), all && !private_training);
	table_run(t, t->now_ms + 10000, 20000);
	meet(t);
	for (int k = 0; k < 4; k++) /* then sessions meet at other times */
		one_more_round(t);
}

static double apart(const struct kge_emb *a, const struct kge_emb *b)
{
	double most = 0;

	for (size_t i = 0; i < (size_t)a->n_ent * a->ent_floats; i++)
		most = fmax(most, fabs((double)a->ent[i] - (double)b->ent[i]));
	return most;
}

/* Under private training valid is not looked at once, and nobody is left out: whatever the settings
 * say, all that came is taken in as without weight and judge. */
static void not_under_private_training(void **state)
{
	struct table t, plain;
	struct kge_emb *wanted;

	(void)state;
	rounds_of(&plain, false, false);
	wanted = kge_emb_copy(core(&plain, HOST)->latest);
	end(&plain);
	rounds_of(&t, false, true);
	assert_true(looks > 0 && judged(&t, BAD)->hurt > 0);
	assert_true(apart(core(&t, HOST)->latest, wanted) > .1);
	end(&t);
	rounds_of(&t, true, true);
	assert_int_equal(looks, 0);
	assert_int_equal(judged(&t, GOOD)->judged + judged(&t, BAD)->judged, 0);
	assert_int_equal(t.agent[HOST].writes[STORE_PUT_JUDGEMENT], 0);
	assert_true(apart(core(&t, HOST)->latest, wanted) < 1e-6);
	end(&t);
	kge_emb_free(wanted);
}

/* Nor is what valid has said before: by it the bad one is in quarantine, and is no more. */
static void verdicts_of_before_are_none_of_private_training(void **state)
{
	struct table t;

	(void)state;
	run_until_quarantine(&t);
	table_kill(&t, HOST);
	set_private_training(&t.agent[HOST].config, 1000);
	table_restart(&t, HOST);
	assert_int_equal(judged(&t, BAD)->judged + judged(&t, GOOD)->judged, 0);
	assert_false(says_quarantine(&t, BAD));
	end(&t);
}

/* Tables of before are kept for an arm without partners, which would be trained without noise; and
 * what was said of other names does not wait for a time without. */
static void private_training_keeps_no_tables_of_before(void **state)
{
	(void)state;
	for (int private = 0; private < 2; private ++) {
		struct table t;

		begin(&t);
		if (private)
			set_private_training(&t.agent[HOST].config, 1000);
		table_start(&t);
		table_run(&t, t.now_ms + 10000, 20000);
		core(&t, HOST)->history.anew = private;
		meet(&t);
		one_more_round(&t);
		assert_int_equal(core(&t, HOST)->history.has_before, !private);
		assert_false(core(&t, HOST)->history.anew);
		end(&t);
	}
}

/* ---- no row moves ours by more than is plausible ---- */

static int learn_huge(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		      struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)reset, (void)job;
	kge_emb_assign(work, truth);
	for (size_t i = 0; i < (size_t)work->n_ent * work->ent_floats; i++)
		work->ent[i] *= -100;
	return 0;
}

static double longest(const struct kge_emb *m)
{
	double most = 0;

	for (uint32_t i = 0; i < m->n_ent; i++) {
		double sum = 0;

		for (size_t k = 0; k < DIM; k++)
			sum += pow((double)kge_ent(m, i)[k], 2);
		most = fmax(most, sqrt(sum));
	}
	return most;
}

/* So many times as long as the truth's longest row is the host's, after its first round. */
static double times_as_long(bool bound)
{
	struct table t;
	double times;

	begin(&t);
	for (size_t i = 0; i < AGENTS; i++) {
		t.agent[i].config.federation.few.judge = false;
		t.agent[i].config.federation.few.bound_rows = bound;
		t.agent[i].config.federation.weight = CONFIG_WEIGHT_ALL;
	}
	t.agent[BAD].learner.train = learn_huge;
	table_start(&t);
	meet(&t);
	run_rounds(&t, 1);
	times = longest(core(&t, HOST)->latest) / longest(truth);
	end(&t);
	return times;
}

static void test_huge_rows_are_bounded(void **state)
{
	(void)state;
	assert_true(times_as_long(false) > 20);
	assert_true(times_as_long(true) < 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_huge_rows_are_bounded),
		cmocka_unit_test(the_bad_one_is_left_out),
		cmocka_unit_test(quarantine_lasts_until_it_is_lifted),
		cmocka_unit_test(who_is_trusted_is_asked_for_what_it_has),
		cmocka_unit_test(the_forgotten_are_judged_anew),
		cmocka_unit_test(not_every_round_is_judged),
		cmocka_unit_test(of_many_others_are_judged_each_round),
		cmocka_unit_test(by_the_settings),
		cmocka_unit_test(of_large_graphs_fewer_triples_are_ranked),
		cmocka_unit_test(while_nobody_is_doubted_few_are_ranked),
		cmocka_unit_test(all_triples_are_as_many_as_there_is_time_for),
		cmocka_unit_test(members_of_rounds_are_judged),
		cmocka_unit_test(not_under_private_training),
		cmocka_unit_test(verdicts_of_before_are_none_of_private_training),
		cmocka_unit_test(private_training_keeps_no_tables_of_before),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
