/* Pairs that go on from what a round has come to (agent/core/latest.c). */
#include "tests/test.h"

#include <math.h>
#include <sodium.h>

#include "agent/core/weigh_internal.h"
#include "base/log.h"
#include "base/mem.h"
#include "tests/agent/table.h"

enum { CLIENT, HOST, AWAY, DIM = 4 };

static struct agent_core *core(struct table *t, size_t at)
{
	return t->agent[at].core;
}

static bool same(const struct kge_emb *a, const struct kge_emb *b)
{
	uint8_t x[32], y[32];

	kge_emb_digest(a, x);
	kge_emb_digest(b, y);
	return memcmp(x, y, 32) == 0;
}

static double length(const struct kge_emb *m, uint32_t id)
{
	double sum = 0;

	for (size_t j = 0; j < DIM; j++)
		sum += (double)kge_ent(m, id)[j] * (double)kge_ent(m, id)[j];
	return sqrt(sum);
}

/* Every row gets longer, so that it can be told which tables a row is of. */
static int grow(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset, struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)reset, (void)job;
	for (size_t i = 0; i < work->n_ent * work->ent_floats; i++)
		work->ent[i] *= 1.25F;
	return 0;
}

static void begin(struct table *t, enum config_after after)
{
	table_init(t, 1);
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.federation.after = after;
		t->agent[i].config.federation.local_rounds = 0;
		t->agent[i].config.federation.patience = 0;
		t->agent[i].config.federation.few.judge = false; /* scores are counted here */
		t->agent[i].config.federation.max_rounds = 4; /* each round is news to the other */
	}
	table_start(t);
}

static void meet(struct table *t)
{
	table_link(t, CLIENT, HOST, true);
	table_run(t, t->now_ms + 60000, 100000);
}

/* The owner of the client trains; partners hear of it. */
static void client_trains(struct table *t)
{
	struct agent_event e = { .kind = AGENT_EVENT_TRAIN, .now_ms = t->now_ms };

	agent_core_event(core(t, CLIENT), &e);
	table_run(t, t->now_ms + 60000, 100000);
}

/* A round that is no better is what the next one begins with, and on disk; the best stays. */
static void goes_on_from_what_is_no_better(void **state)
{
	struct table t;
	uint64_t serial, signals;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	table_run(&t, t.now_ms + 60000, 100000); /* the first training */
	serial = core(&t, HOST)->served_serial;
	signals = t.agent[HOST].sent[NET_MSG_SIGNAL];
	meet(&t);
	assert_true(core(&t, HOST)->rounds >= 1);
	assert_int_equal(core(&t, HOST)->served_serial, serial + core(&t, HOST)->rounds);
	assert_true(t.agent[HOST].sent[NET_MSG_SIGNAL] >= signals + core(&t, HOST)->rounds);
	assert_true(same(core(&t, HOST)->work, core(&t, HOST)->latest));
	assert_false(same(core(&t, HOST)->latest, core(&t, HOST)->best));
	assert_true(same(core(&t, HOST)->latest, t.agent[HOST].disk.latest_tables));
	assert_true(same(core(&t, HOST)->best, t.agent[HOST].disk.tables));
	table_release(&t);
}

static unsigned calls;

static bool too_large; /* for a partner, from the first training on */

static int diverges_once(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
			 struct agent_job *job)
{
	(void)grow(ctx, work, epochs, reset, job);
	if (too_large && calls == 0)
		work->ent[0] = 1e30F;
	if (++calls == 2) /* the round after the first training */
		work->ent[1] = NAN;
	else if (calls == 3)
		calls += reset ? 100 : 200;
	return 0;
}

/* A NaN is in no further round, nor on disk: the best is what the next one begins with, without the
 * moments that led to it. */
static void check_goes_back(bool large)
{
	struct table t;

	too_large = large;
	calls = 0;
	table_init(&t, 1);
	t.agent[HOST].learner.train = diverges_once;
	t.agent[HOST].config.federation.reset_optimizer = false;
	t.agent[HOST].config.federation.local_rounds = 2;
	t.agent[HOST].config.federation.patience = 0;
	t.agent[HOST].config.train.epochs = t.agent[HOST].config.train.eval_every;
	table_start(&t);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(core(&t, HOST)->lone_rounds, 2);
	assert_int_equal(calls, 103);
	assert_int_equal(t.agent[HOST].notices[AGENT_NOTICE_TROUBLE], 1);
	assert_true(isfinite(core(&t, HOST)->latest->ent[1]));
	assert_true(same(core(&t, HOST)->latest, t.agent[HOST].disk.latest_tables));
	table_release(&t);
}

/* Also where no partner would get a row of the best either. */
static void goes_back_from_what_cannot_travel(void **state)
{
	(void)state;
	check_goes_back(false);
	check_goes_back(true);
}

/* The arm without partners begins with what pairs went on from, where that was not the best. */
static void the_arm_alone_begins_with_the_latest(void **state)
{
	(void)state;
	for (int after = CONFIG_AFTER_KEEP; after <= CONFIG_AFTER_BACK; after++) {
		struct agent_event e = { .kind = AGENT_EVENT_TRAIN };
		struct kge_emb *latest = NULL;
		struct table t;

		begin(&t, (enum config_after)after);
		table_run(&t, t.now_ms + 60000, 100000);
		t.agent[HOST].improvements = 0;
		e.now_ms = t.now_ms;
		agent_core_event(core(&t, HOST), &e);
		table_run(&t, t.now_ms + 60000, 100000);
		assert_true(core(&t, HOST)->lone_rounds == 1);
		if (after == CONFIG_AFTER_KEEP)
			latest = kge_emb_copy(core(&t, HOST)->latest);
		assert_null(t.agent[HOST].disk.arm_tables);
		meet(&t);
		assert_true(core(&t, HOST)->rounds >= 1 && core(&t, HOST)->history.has_before);
		assert_true(latest == NULL ? t.agent[HOST].disk.arm_tables == NULL
					   : same(latest, t.agent[HOST].disk.arm_tables));
		kge_emb_free(latest);
		table_release(&t);
	}
}

static void goes_back_under_the_paper_s_rule(void **state)
{
	struct table t;

	(void)state;
	begin(&t, CONFIG_AFTER_BACK);
	meet(&t);
	client_trains(&t);
	assert_true(core(&t, HOST)->rounds >= 1);
	assert_null(core(&t, HOST)->latest);
	assert_true(same(core(&t, HOST)->work, core(&t, HOST)->best));
	table_release(&t);
}

static void a_restart_changes_nothing(void **state)
{
	struct table t;
	struct kge_emb *latest;
	uint64_t serial;
	uint32_t worse;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	meet(&t);
	client_trains(&t);
	latest = kge_emb_copy(core(&t, HOST)->latest);
	serial = core(&t, HOST)->served_serial;
	worse = core(&t, HOST)->worse;
	assert_true(worse > 0);
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	assert_true(same(core(&t, HOST)->latest, latest));
	assert_true(same(core(&t, HOST)->work, latest));
	assert_int_equal(core(&t, HOST)->served_serial, serial);
	assert_int_equal(core(&t, HOST)->worse, worse);
	kge_emb_free(latest);
	table_release(&t);
}

/* Other tables in the best's place, put there by the owner: the old latest is of no more use. */
static void the_owner_s_tables_replace_it(void **state)
{
	struct table t;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	meet(&t);
	client_trains(&t);
	table_kill(&t, HOST);
	t.agent[HOST].disk.tables->ent[5] += 1;
	kge_emb_digest(t.agent[HOST].disk.tables, t.agent[HOST].disk.best.digest);
	table_restart(&t, HOST);
	assert_true(same(core(&t, HOST)->latest, t.agent[HOST].disk.tables));
	assert_true(same(core(&t, HOST)->work, core(&t, HOST)->best));
	table_release(&t);
}

/* Length of a shared row as the host has it after a session with a client whose training makes it
 * longer and brings no better score. */
static double length_served(enum config_after after, double *best)
{
	struct table t;
	double is;

	begin(&t, after);
	t.agent[HOST].config.federation.aggregate = PPAT_REPLACE;
	t.agent[HOST].config.federation.max_rounds = 1;
	t.agent[CLIENT].config.federation.roles = CONFIG_CLIENT_ONLY;
	for (size_t i = 0; i < 2; i++) {
		table_kill(&t, i);
		table_restart(&t, i);
	}
	table_run(&t, t.now_ms + 60000, 100000);
	t.agent[CLIENT].learner.train = grow;
	client_trains(&t); /* the client alone, and no better */
	meet(&t);
	assert_true(core(&t, HOST)->rounds >= 1);
	is = length(core(&t, HOST)->latest ? core(&t, HOST)->latest : core(&t, HOST)->work, 3);
	*best = length(core(&t, CLIENT)->best, 3);
	table_release(&t);
	return is;
}

/* ... of the latest tables, not of the best. */
static void partners_get_the_latest(void **state)
{
	double best, is = length_served(CONFIG_AFTER_KEEP, &best);

	(void)state;
	assert_near(is / best, 1.25, 1e-4, 0);
}

/* All three go on until their patience is over. */
static void run_until_rest(struct table *t)
{
	begin(t, CONFIG_AFTER_KEEP);
	for (size_t i = 0; i < AGENTS; i++) {
		table_kill(t, i);
		t->agent[i].config.federation.patience = 3;
		t->agent[i].config.federation.max_rounds = 0;
		table_restart(t, i);
	}
	meet(t); /* without patience it would go on for ever */
}

static void rests_and_wakes(void **state)
{
	struct table t;
	struct agent_status st;
	uint64_t rounds;

	(void)state;
	run_until_rest(&t);
	agent_core_status(core(&t, HOST), &st);
	assert_true(st.rests);
	assert_non_null(strstr(st.doing, "federation.patience"));
	assert_int_equal(st.looks.worse, 3);
	assert_int_equal(st.queued, 0);
	agent_status_release(&st);
	rounds = core(&t, HOST)->rounds;
	t.agent[HOST].improvements = 1;
	agent_core_event(core(&t, HOST),
			 &(struct agent_event){ .kind = AGENT_EVENT_TRAIN, .now_ms = t.now_ms });
	table_run(&t, t.now_ms + 60000, 100000);
	agent_core_status(core(&t, HOST), &st);
	assert_true(core(&t, HOST)->rounds + core(&t, HOST)->lone_rounds > rounds);
	assert_near(st.best_score, t.agent[HOST].score, 0, 0);
	agent_status_release(&st);
	table_release(&t);
}

/* Partners that rest as well say nothing new: what they have said meanwhile is taken in. */
static void who_wakes_takes_what_was_offered(void **state)
{
	struct agent_event event[] = { { .kind = AGENT_EVENT_TRAIN },
				       { .kind = AGENT_EVENT_PEER_ADDED, .address = "table:9" },
				       { .kind = AGENT_EVENT_SETTINGS } };
	struct table t;

	(void)state;
	memset(event[1].peer, 99, sizeof(event[1].peer));
	for (int how = 0; how < 3; how++) {
		struct peer *p;

		run_until_rest(&t);
		assert_true(latest_rests(core(&t, HOST)));
		p = table_peer(&t, HOST, CLIENT);
		peer_queue_put(core(&t, HOST), p, p->used_serial + 1);
		assert_false(p->queued);
		if (event[how].kind == AGENT_EVENT_SETTINGS) /* the owner has more patience */
			t.agent[HOST].config.federation.patience++;
		event[how].now_ms = t.now_ms;
		agent_core_event(core(&t, HOST), &event[how]);
		assert_false(latest_rests(core(&t, HOST)));
		assert_true(p->queued || session_with(core(&t, HOST), p) != NULL);
		table_release(&t);
	}
}

static uint64_t rounds_with_own(const struct agent_core *c)
{
	return c->rounds + c->lone_rounds;
}

/* The fast have had their patience before the slow one came: it is heard all the same, and once. */
static void who_was_away_wakes_it_once(void **state)
{
	struct table t;
	struct peer *p;
	uint64_t rounds;

	(void)state;
	run_until_rest(&t);
	assert_true(latest_rests(core(&t, HOST)));
	rounds = rounds_with_own(core(&t, HOST));
	p = table_peer(&t, HOST, AWAY);
	assert_true(p->used_serial == 0);
	table_link(&t, HOST, AWAY, true);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_true(p->used_serial > 0);
	assert_true(rounds_with_own(core(&t, HOST)) >= rounds + 3);
	assert_true(latest_rests(core(&t, HOST)));
	table_kill(&t, HOST);
	table_restart(&t, HOST); /* still knows that it has had it */
	rounds = rounds_with_own(core(&t, HOST));
	p = table_peer(&t, HOST, AWAY);
	peer_queue_put(core(&t, HOST), p, p->used_serial + 1);
	assert_true(latest_rests(core(&t, HOST)) && !p->queued);
	table_link(&t, HOST, AWAY, true);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_true(rounds_with_own(core(&t, HOST)) == rounds);
	table_release(&t);
}

/* Its signal came, but no round: whoever it was, patience must end a federation. */
static void who_comes_to_nothing_wakes_it_once(void **state)
{
	struct table t;
	struct peer *p;

	(void)state;
	run_until_rest(&t);
	for (int k = 0; k < 3; k++) {
		p = table_peer(&t, HOST, AWAY);
		peer_queue_put(core(&t, HOST), p, (uint64_t)k + 1);
		assert_int_equal(latest_rests(core(&t, HOST)), k == 2);
		assert_int_equal(p->queued, k < 2);
		table_run(&t, t.now_ms + 10, 1000); /* to disk */
		if (k == 1)
			core(&t, HOST)->worse = 3;
		peer_queue_drop(core(&t, HOST), k == 1 ? p : table_peer(&t, HOST, CLIENT));
		table_run(&t, t.now_ms + 10, 1000);
		if (k == 0) { /* awake still, and the one that woke it waits */
			table_kill(&t, HOST);
			table_restart(&t, HOST);
			assert_false(latest_rests(core(&t, HOST)));
		}
	}
	table_release(&t);
}

/* So does a partner whose owner has seen to what it had done, or with other names. */
static void who_is_trusted_again_wakes_it(void **state)
{
	struct agent_event trusted = { .kind = AGENT_EVENT_PEER_TRUSTED };
	struct store_batch b = { 0 };
	struct table t;
	struct peer *p;

	(void)state;
	run_until_rest(&t);
	p = table_peer(&t, HOST, CLIENT);
	for (int k = 0; k < 100 && !p->judgement.quarantined; k++)
		judge_note(core(&t, HOST), p, true, 0, 1, &b);
	store_batch_release(&b);
	assert_true(p->judgement.quarantined);
	peer_queue_put(core(&t, HOST), p, p->used_serial + 1);
	assert_true(latest_rests(core(&t, HOST)));
	trusted.now_ms = t.now_ms;
	memcpy(trusted.peer, p->info.key, sizeof(trusted.peer));
	agent_core_event(core(&t, HOST), &trusted);
	assert_false(latest_rests(core(&t, HOST)));
	assert_true(p->queued || session_with(core(&t, HOST), p) != NULL);
	table_release(&t);
}

static void who_has_other_names_wakes_it(void **state)
{
	struct table t;
	struct peer *p;

	(void)state;
	run_until_rest(&t);
	p = table_peer(&t, HOST, CLIENT);
	peer_queue_put(core(&t, HOST), p, p->used_serial + 1);
	assert_true(latest_rests(core(&t, HOST)));
	p->version_theirs[0] ^= 1;
	for (int k = 0; k < 2; k++) { /* once, until they are compared */
		peer_queue_put(core(&t, HOST), p, p->used_serial + 2);
		assert_int_equal(latest_rests(core(&t, HOST)), k == 1);
		core(&t, HOST)->worse = 3;
		peer_queue_drop(core(&t, HOST), p);
	}
	table_release(&t);
}

/* The same of who has had its rounds. */
static void who_may_go_on_takes_what_was_offered(void **state)
{
	struct agent_event settings = { .kind = AGENT_EVENT_SETTINGS };
	struct table t;
	struct peer *p;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	meet(&t);
	assert_false(latest_trains_on(core(&t, HOST)));
	p = table_peer(&t, HOST, CLIENT);
	peer_queue_put(core(&t, HOST), p, p->used_serial + 1);
	settings.now_ms = t.now_ms;
	agent_core_event(core(&t, HOST), &settings);
	assert_false(p->queued); /* nothing that matters has changed */
	t.agent[HOST].config.federation.max_rounds++;
	agent_core_event(core(&t, HOST), &settings);
	assert_true(p->queued || session_with(core(&t, HOST), p) != NULL);
	table_release(&t);
}

static uint64_t wakes_at(const struct table *t)
{
	return t->agent[HOST].due[AGENT_TIMER_WAKE];
}

/* An agent that sleeps goes by what its owner says now, counted from when it fell asleep. */
static void sleeps_as_long_as_is_said_now(void **state)
{
	struct agent_event settings = { .kind = AGENT_EVENT_SETTINGS };
	struct table t;
	uint64_t since;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_true(core(&t, HOST)->sleep.asleep && wakes_at(&t) == UINT64_MAX);
	since = core(&t, HOST)->sleep.since_ms;
	for (int k = 0; k < 3; k++) {
		t.agent[HOST].config.federation.sleep_s = k == 0 ? 600 : k == 1 ? 0 : 900;
		t.now_ms += 5000;
		settings.now_ms = t.now_ms;
		agent_core_event(core(&t, HOST), &settings);
		assert_true(wakes_at(&t) ==
			    (k == 1 ? UINT64_MAX : since + (k == 0 ? 600000 : 900000)));
	}
	t.agent[HOST].config.federation.sleep_s = 1; /* it has slept for longer */
	settings.now_ms = ++t.now_ms;
	agent_core_event(core(&t, HOST), &settings);
	assert_true(wakes_at(&t) == t.now_ms);
	since = t.now_ms;
	table_run(&t, t.now_ms + 1, 100000);
	assert_true(core(&t, HOST)->sleep.asleep && core(&t, HOST)->sleep.since_ms == since);
	table_release(&t);
}

/* epochs_per_round is live; the arm without partners may be rounds behind. */
static void notes_how_long_rounds_were(void **state)
{
	const struct agent_history *h;
	struct table t;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	meet(&t);
	h = &core(&t, HOST)->history;
	assert_true(h->has_before && h->n_units == 1 && h->unit[0].from == 0);
	t.agent[HOST].config.federation.epochs_per_round = 4;
	agent_core_event(core(&t, HOST),
			 &(struct agent_event){ .kind = AGENT_EVENT_TRAIN, .now_ms = t.now_ms });
	table_run(&t, t.now_ms + 60000, 100000);
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	h = &core(&t, HOST)->history;
	assert_true(h->n_units == 2 && h->unit[0].epochs == 1 && h->unit[1].epochs == 4);
	assert_int_equal(h->unit[1].from + 4, h->epochs);
	assert_int_equal(agent_core_unit(core(&t, HOST), 0), 1);
	assert_int_equal(agent_core_unit(core(&t, HOST), h->unit[1].from), 4);
	table_release(&t);
}

static void with(struct table *t, size_t at, uint32_t local_rounds, uint32_t max_rounds,
		 uint32_t patience)
{
	struct config_federation *f = &t->agent[at].config.federation;

	table_kill(t, at);
	f->local_rounds = local_rounds;
	f->max_rounds = max_rounds;
	f->patience = patience;
	f->gather_s = 5;
	table_restart(t, at);
}

/* Rounds of a millisecond: a partner that stands still must not find more signals than it takes
 * from anybody, and hears of the last. */
static void news_in_quick_succession(void **state)
{
	uint64_t since_ms, signals;
	struct table t;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	t.agent[CLIENT].config.federation.max_rounds = 1;
	table_run(&t, t.now_ms + 5000, 100000);
	with(&t, HOST, 400, 0, 0);
	t.agent[HOST].config.federation.gather_s = 0;
	table_link(&t, CLIENT, HOST, true);
	signals = t.agent[HOST].sent[NET_MSG_SIGNAL];
	since_ms = t.now_ms;
	while (core(&t, HOST)->lone_rounds < 400)
		table_run(&t, t.now_ms + 1000, 1);
	signals = t.agent[HOST].sent[NET_MSG_SIGNAL] - signals;
	assert_in_range(signals, 2, (t.now_ms - since_ms) / 40 + 1);
	assert_true(signals < 200);
	table_run(&t, t.now_ms + 1000, 1000);
	assert_false(core(&t, HOST)->must_signal);
	assert_int_equal(core(&t, HOST)->signal.serial, core(&t, HOST)->served_serial);
	table_release(&t);
}

/* For want of news, which has had the time that a round waits for more. */
static void trains_alone_for_want_of_news(void **state)
{
	struct table t;
	uint64_t over_ms;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	with(&t, HOST, 2, 9, 0);
	table_run(&t, t.now_ms + 4900, 100000);
	assert_true(core(&t, HOST)->trained);
	assert_int_equal(core(&t, HOST)->lone_rounds, 0);
	for (uint64_t k = 1; k <= 2; k++) {
		over_ms = core(&t, HOST)->gather.over_ms;
		table_run(&t, over_ms + 4900, 100000);
		assert_int_equal(core(&t, HOST)->lone_rounds, k - 1);
		table_run(&t, over_ms + 6000, 100000);
		assert_int_equal(core(&t, HOST)->lone_rounds, k);
	}
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(core(&t, HOST)->lone_rounds, 2);
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	table_run(&t, t.now_ms + 4900, 100000); /* partners may be there in time */
	assert_int_equal(core(&t, HOST)->lone_rounds, 2);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(core(&t, HOST)->lone_rounds, 4);
	table_release(&t);
}

/* Each of them news to the other: who asks for more would go on for ever. */
static void its_own_rounds_are_counted(void **state)
{
	struct table t;
	const struct agent_core *c;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	with(&t, HOST, 2, 6, 0);
	with(&t, CLIENT, 0, 20, 0);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(core(&t, HOST)->lone_rounds, 2);
	meet(&t);
	c = core(&t, HOST);
	assert_true(c->rounds > 0);
	assert_int_equal(c->rounds + c->lone_rounds, 6);
	agent_core_event(core(&t, HOST),
			 &(struct agent_event){ .kind = AGENT_EVENT_TRAIN, .now_ms = t.now_ms });
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(c->rounds + c->lone_rounds, 7); /* whatever its owner says */
	table_release(&t);
}

static void who_rests_trains_alone_no_more(void **state)
{
	struct table t;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	with(&t, HOST, 9, 0, 2);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(core(&t, HOST)->lone_rounds, 2);
	assert_false(latest_rests(core(&t, HOST))); /* news is worth a round */
	meet(&t);
	assert_true(core(&t, HOST)->rounds > 0);
	table_release(&t);
}

/* Each score is below the one before. */
static int falls(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	struct table_agent *s = ctx;

	(void)work, (void)job;
	*score = s->score;
	s->score -= 0.25;
	return 0;
}

/* The merged tables are scored before they are trained, and may be the best. */
static void merged_tables_may_be_the_best(void **state)
{
	struct table t;
	const struct agent_core *c;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	table_run(&t, t.now_ms + 60000, 100000);
	t.agent[HOST].score = 5; /* of the merged tables */
	t.agent[HOST].learner.evaluate = falls;
	t.agent[HOST].learner.train = grow;
	t.agent[HOST].config.federation.max_rounds = 1;
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	meet(&t);
	c = core(&t, HOST);
	assert_int_equal(c->rounds, 1);
	assert_near(c->best_score, 5, 0, 0);
	assert_near(t.agent[HOST].disk.latest.valid_score, 4.75, 0, 0);
	/* trained: longer by a quarter than what was merged */
	assert_near(length(c->latest, 3) / length(c->best, 3), 1.25, 1e-4, 0);
	assert_int_equal(c->tried_epochs, t.agent[HOST].config.federation.epochs_per_round);
	table_release(&t);
}

/* Of the five tables between one's own and the merged one: the first scores so, the others .5. */
static int scores_own(void *ctx, const struct kge_emb *work, uint32_t triples,
		      struct agent_job *job, double **each, size_t *n)
{
	struct table_agent *s = ctx;

	(void)work, (void)triples, (void)job;
	*n = 1;
	*each = mem_array(1, sizeof(**each));
	**each = s->score;
	s->score = 0.5;
	return 0;
}

static int is_level(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	(void)ctx, (void)work, (void)job;
	*score = 0.5;
	return 0;
}

/* Of what partners brought as much is taken in as valid says (federation.weight). */
static void valid_weighs(void **state)
{
	(void)state;
	for (int own_is_better = 0; own_is_better < 2; own_is_better++) {
		struct table t;
		struct kge_emb *before;
		double grown;

		begin(&t, CONFIG_AFTER_KEEP);
		table_run(&t, t.now_ms + 60000, 100000);
		t.agent[HOST].learner = (struct agent_learner){ .ctx = &t.agent[HOST],
								.evaluate = is_level,
								.evaluate_each = scores_own,
								.train = grow };
		t.agent[HOST].score = own_is_better ? 0.6 : 0.4;
		t.agent[HOST].config.federation.max_rounds = 1;
		t.agent[HOST].config.federation.weight = CONFIG_WEIGHT_VALID;
		table_kill(&t, HOST);
		table_restart(&t, HOST);
		before = kge_emb_copy(core(&t, HOST)->latest);
		meet(&t);
		assert_int_equal(core(&t, HOST)->rounds, 1);
		grown = length(core(&t, HOST)->latest, 3) / length(before, 3);
		assert_int_equal(fabs(grown - 1.25) < 1e-4, own_is_better);
		kge_emb_free(before);
		table_release(&t);
	}
}

/* Of five tables at each look the first, one's own, is better. */
static int own_is_better(void *ctx, const struct kge_emb *work, uint32_t triples,
			 struct agent_job *job, double **each, size_t *n)
{
	struct table_agent *s = ctx;

	(void)work, (void)triples, (void)job;
	*n = 1;
	*each = mem_array(1, sizeof(**each));
	**each = s->improvements++ % FED_WEIGHTS == 0 ? 0.6 : 0.5;
	return 0;
}

static void assert_in_vain(struct table *t, bool vain)
{
	struct agent_status st;

	agent_core_status(core(t, HOST), &st);
	assert_int_equal(st.looks.vain, vain);
	assert_int_equal(st.rests, vain);
	assert_int_equal(strstr(st.doing, "partners bring") != NULL, vain);
	agent_status_release(&st);
}

/* An agent that takes nothing in says so, and rests; still so after a restart. */
static void says_that_it_gains_nothing(void **state)
{
	struct table t;
	uint64_t told;

	(void)state;
	begin(&t, CONFIG_AFTER_KEEP);
	table_run(&t, t.now_ms + 60000, 100000);
	told = t.agent[HOST].notices[AGENT_NOTICE_TROUBLE];
	for (size_t i = CLIENT; i <= HOST; i++) {
		table_kill(&t, i);
		t.agent[i].config.federation.patience = WEIGH_VAIN_LOOKS;
		t.agent[i].config.federation.max_rounds = 0;
		if (i == HOST)
			t.agent[i].learner = (struct agent_learner){ .ctx = &t.agent[i],
								     .evaluate = is_level,
								     .evaluate_each = own_is_better,
								     .train = grow };
		t.agent[i].config.federation.weight =
			i == HOST ? CONFIG_WEIGHT_VALID : CONFIG_WEIGHT_ALL;
		t.agent[i].improvements = 0;
		table_restart(&t, i);
	}
	assert_in_vain(&t, false);
	meet(&t);
	assert_true(core(&t, HOST)->history.vain >= WEIGH_VAIN_LOOKS);
	assert_int_equal(t.agent[HOST].notices[AGENT_NOTICE_TROUBLE], told + 1);
	assert_in_vain(&t, true);
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	assert_in_vain(&t, true);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(goes_on_from_what_is_no_better),
		cmocka_unit_test(goes_back_from_what_cannot_travel),
		cmocka_unit_test(the_arm_alone_begins_with_the_latest),
		cmocka_unit_test(goes_back_under_the_paper_s_rule),
		cmocka_unit_test(a_restart_changes_nothing),
		cmocka_unit_test(the_owner_s_tables_replace_it),
		cmocka_unit_test(partners_get_the_latest),
		cmocka_unit_test(rests_and_wakes),
		cmocka_unit_test(who_wakes_takes_what_was_offered),
		cmocka_unit_test(who_was_away_wakes_it_once),
		cmocka_unit_test(who_comes_to_nothing_wakes_it_once),
		cmocka_unit_test(who_is_trusted_again_wakes_it),
		cmocka_unit_test(who_has_other_names_wakes_it),
		cmocka_unit_test(who_may_go_on_takes_what_was_offered),
		cmocka_unit_test(news_in_quick_succession),
		cmocka_unit_test(sleeps_as_long_as_is_said_now),
		cmocka_unit_test(notes_how_long_rounds_were),
		cmocka_unit_test(trains_alone_for_want_of_news),
		cmocka_unit_test(its_own_rounds_are_counted),
		cmocka_unit_test(who_rests_trains_alone_no_more),
		cmocka_unit_test(merged_tables_may_be_the_best),
		cmocka_unit_test(valid_weighs),
		cmocka_unit_test(says_that_it_gains_nothing),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
