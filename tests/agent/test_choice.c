/* Of many partners with news, whose rows a round takes in, and whom it waits for. */
#include "tests/test.h"

#include <sodium.h>

#include "agent/core/learn_internal.h"
#include "base/log.h"
#include "tests/agent/table.h"

/* HOST takes rows in, the other two send theirs. */
enum { HOST, FIRST, SECOND };

static struct agent_core *host(struct table *t)
{
	return t->agent[HOST].core;
}

static void begin(struct table *t, uint64_t seed, uint32_t partners)
{
	table_init(t, seed);
	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.roles =
			i == HOST ? CONFIG_HOST_ONLY : CONFIG_CLIENT_ONLY;
	t->agent[HOST].config.federation.few.partners = partners;
	t->agent[HOST].config.federation.gather_s = 3;
	table_start(t);
	table_run(t, 3000, 10000); /* trained, each alone */
}

static void meet(struct table *t)
{
	table_link(t, HOST, FIRST, true);
	table_link(t, HOST, SECOND, true);
}

/* It has news: partners hear of each training under after: keep. */
static void train(struct table *t, size_t at)
{
	struct agent_event e = { .kind = AGENT_EVENT_TRAIN, .now_ms = t->now_ms };

	agent_core_event(t->agent[at].core, &e);
}

/* Runs until the host has closed so many rounds; returns how long that took, in ms. */
static uint64_t until_round(struct table *t, uint64_t rounds)
{
	uint64_t since = t->now_ms;

	while (host(t)->rounds < rounds && t->now_ms < since + 60000)
		table_run(t, since + 60000, 1);
	assert_int_equal(host(t)->rounds, rounds);
	return t->now_ms - since;
}

/* ---- how many ---- */

static void test_so_many_a_round(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 1, 1);
	meet(&t);
	assert_true(until_round(&t, 1) < 1000); /* full: it waits for nobody else */
	assert_int_equal(host(&t)->history.gain[0].n_peers, 1);
	until_round(&t, 2); /* the other's news is not lost */
	assert_int_equal(host(&t)->history.gain[1].n_peers, 1);
	assert_memory_not_equal(host(&t)->history.gain[0].peer[0],
				host(&t)->history.gain[1].peer[0], STORE_KEY);
	table_release(&t);
}

static void test_all(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 1, 0);
	meet(&t);
	until_round(&t, 1);
	assert_int_equal(host(&t)->history.gain[0].n_peers, 2);
	table_release(&t);
}

/* ---- whom ---- */

static void note_gains(struct table *t, size_t with, uint32_t n, bool kept)
{
	struct agent_history *h = &host(t)->history;

	for (; n > 0; n--) {
		h->gain[h->n++] = (struct agent_gain){ .kept = kept };
		agent_history_note(h, t->agent[with].key);
	}
	peer_choice_count(host(t));
}

/* Of 3000 choices, those of FIRST. */
static int chosen(struct table *t)
{
	int n = 0;

	for (int k = 0; k < 3000; k++) {
		struct peer *of[] = { table_peer(t, HOST, FIRST), table_peer(t, HOST, SECOND) };

		n += peer_choose(host(t), of, 2) == table_peer(t, HOST, FIRST);
	}
	return n;
}

static void assert_about(int is, int should)
{
	if (abs(is - should) > 110) /* 4 deviations of 3000 throws of a coin */
		fail_msg("%d of 3000, about %d should be", is, should);
}

static void test_by_what_they_brought(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 2, 1);
	assert_about(chosen(&t), 1500); /* both are new */
	note_gains(&t, FIRST, 4, true);
	assert_about(chosen(&t), 2250); /* one in four for who is new */
	note_gains(&t, SECOND, 4, false);
	assert_about(chosen(&t), 2500); /* 5 of 5 against 1 of 5 */
	table_peer(&t, HOST, SECOND)->n_slots = 4;
	assert_about(chosen(&t), 1500); /* which has five times the rows */
	table_peer(&t, HOST, SECOND)->n_slots = 0;
	table_release(&t);
}

/* What is known of them is in the history, which is on disk. */
static void test_after_a_restart(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 3, 1);
	meet(&t);
	until_round(&t, 2);
	table_run(&t, t.now_ms + 5000, 10000);
	for (size_t at = FIRST; at <= SECOND; at++)
		assert_int_equal(table_peer(&t, HOST, at)->rounds_had, 1);
	table_kill(&t, HOST);
	table_restart(&t, HOST);
	for (size_t at = FIRST; at <= SECOND; at++)
		assert_int_equal(table_peer(&t, HOST, at)->rounds_had, 1);
	table_release(&t);
}

/* However many a round takes in, none of them stays new; figures of rows are kept of eight. */
static void test_all_of_a_round_are_noted(void **state)
{
	enum { MORE = 20 };
	struct store_peer more = { .status = STORE_LISTED };
	struct peer *p[MORE];
	struct table t;

	(void)state;
	begin(&t, 3, 0);
	for (int i = 0; i < MORE; i++) {
		memset(more.key, 100 + i, sizeof(more.key));
		p[i] = peer_new(host(&t), &more);
		p[i]->in_round = true;
	}
	history_gain(host(&t), 9, true);
	history_gain(host(&t), 8, false);
	for (int i = 0; i < MORE; i++) {
		assert_int_equal(p[i]->rounds_had, 2);
		assert_int_equal(p[i]->rounds_better, 1);
		p[i]->in_round = false;
	}
	assert_int_equal(table_peer(&t, HOST, FIRST)->rounds_had, 0);
	assert_int_equal(host(&t)->history.gain[1].n_peers, AGENT_GAIN_PEERS);
	table_release(&t);
}

/* Valid is data: nothing is kept of it, so all stay new. */
static void test_private_training(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 4, 1);
	table_peer(&t, HOST, FIRST)->in_round = true;
	host(&t)->terms.statement.epsilon = 1;
	history_gain(host(&t), 9, true);
	assert_int_equal(table_peer(&t, HOST, FIRST)->rounds_had, 0);
	host(&t)->terms.statement.epsilon = 0;
	history_gain(host(&t), 9, true);
	assert_int_equal(table_peer(&t, HOST, FIRST)->rounds_had, 1);
	table_peer(&t, HOST, FIRST)->in_round = false;
	table_release(&t);
}

/* ---- who is waited for ---- */

/* Nor does what was written before training was private. */
static void test_private_after_a_restart(void **state)
{
	struct buf bytes = { 0 };
	struct store_meta meta = { .key = AGENT_META_HISTORY };
	struct store_core saved = { .meta = &meta, .n_meta = 1 };
	struct table t;

	(void)state;
	begin(&t, 4, 1);
	note_gains(&t, FIRST, 4, true);
	agent_history_write(&host(&t)->history, &bytes);
	meta.base = bytes.base;
	meta.len = bytes.len;
	for (int private = 0; private < 2; private ++) {
		host(&t)->terms.statement.epsilon = private;
		assert_int_equal(history_load(host(&t), &saved, NULL), 0);
		assert_int_equal(host(&t)->history.n, 4);
		assert_int_equal(table_peer(&t, HOST, FIRST)->rounds_had, private ? 0 : 4);
	}
	host(&t)->terms.statement.epsilon = 0;
	buf_release(&bytes);
	table_release(&t);
}

static void test_nobody_without_news(void **state)
{
	struct table t;
	uint64_t ms;

	(void)state;
	begin(&t, 5, 0);
	meet(&t);
	until_round(&t, 1);
	train(&t, FIRST); /* and SECOND rests from here on */
	ms = until_round(&t, 2);
	assert_true(ms >= 3000); /* it had news for the last round */
	train(&t, FIRST);
	ms = until_round(&t, 3);
	assert_true(ms < 1000);
	train(&t, SECOND); /* it is back */
	until_round(&t, 4);
	train(&t, FIRST);
	ms = until_round(&t, 5);
	assert_true(ms >= 3000);
	table_release(&t);
}

/* Nor for who may have news, but not in the time that the round waits. */
static void test_nobody_too_late(void **state)
{
	struct table t;
	uint64_t ms;

	(void)state;
	begin(&t, 5, 0);
	meet(&t);
	until_round(&t, 1);
	table_run(&t, t.now_ms + 20000, 10000);
	train(&t, SECOND); /* 20 s after its last news, so there may be more in 20 s */
	until_round(&t, 2);
	train(&t, FIRST);
	ms = until_round(&t, 3);
	assert_true(ms < 1000);
	for (uint64_t round = 4; round <= 5; round++) {
		train(&t, SECOND); /* now it is known to be quicker */
		until_round(&t, round);
	}
	train(&t, FIRST);
	ms = until_round(&t, 6);
	assert_true(ms >= 3000);
	table_release(&t);
}

/* ---- who has cost others time ---- */

static size_t next_after(struct table *t, uint64_t ms)
{
	uint64_t wait_ms;
	const struct peer *p;

	host(t)->now_ms += ms;
	p = peer_queue_next(host(t), &wait_ms);
	table_peer(t, HOST, SECOND)->signal_pending_ms = host(t)->now_ms;
	return p == table_peer(t, HOST, FIRST) ? FIRST : p == NULL ? HOST : SECOND;
}

/* One outage costs a partner its turns while it rests, and, where others have news or ask, for as
 * long again: not for ever. */
static void test_after_an_outage(void **state)
{
	struct table t;
	struct peer *p, *other;

	(void)state;
	begin(&t, 16, 0);
	meet(&t);
	until_round(&t, 1);
	table_run(&t, t.now_ms + 10000, 10000);
	p = table_peer(&t, HOST, FIRST);
	other = table_peer(&t, HOST, SECOND);
	p->queued = other->queued = true;
	p->queue_position = ++host(&t)->next_queue_position;
	other->queue_position = ++host(&t)->next_queue_position;
	other->signal_pending = true;
	assert_int_equal(next_after(&t, 0), FIRST);
	assert_false(peer_yields(host(&t), p));
	peer_rest(host(&t), p, 4000); /* 8 s */
	assert_int_equal(next_after(&t, 7000), SECOND);
	other->queued = false;
	assert_int_equal(next_after(&t, 0), HOST); /* nobody */
	assert_int_equal(next_after(&t, 2000), FIRST);
	other->queued = true;
	assert_int_equal(next_after(&t, 0), SECOND);
	assert_true(peer_yields(host(&t), p));
	assert_int_equal(next_after(&t, 6000), SECOND);
	assert_int_equal(next_after(&t, 2000), FIRST);
	assert_false(peer_yields(host(&t), p));
	assert_int_equal(p->cost_ms, 8000); /* it rests for longer should it happen again */
	peer_rest(host(&t), p, 4000);
	assert_int_equal(p->rest_ms, host(&t)->now_ms + 16000);
	p->queued = other->queued = other->signal_pending = false;
	t.now_ms = host(&t)->now_ms;
	table_release(&t);
}

/* ---- one after the other ---- */

static bool holds_round(const struct table *t, size_t agent, const struct agent_job *job)
{
	return agent == HOST && job->kind == AGENT_JOB_TRAIN &&
	       t->agent[HOST].core->training == TRAINING_ROUND;
}

static size_t first_on_disk(const struct table *t)
{
	const struct disk *d = &t->agent[HOST].disk;

	return d->n_queue == 0						       ? HOST
	       : memcmp(d->queue[0].peer, t->agent[FIRST].key, STORE_KEY) == 0 ? FIRST
									       : SECOND;
}

/* Who has other news by the end of its round goes behind those that wait, also after a restart. */
static void test_each_in_its_turn(void **state)
{
	size_t with = HOST;
	struct table t;

	(void)state;
	begin(&t, 17, 0);
	t.agent[HOST].config.federation.queue = CONFIG_QUEUE_EACH;
	t.agent[HOST].config.federation.sessions = 1;
	t.holds = holds_round;
	meet(&t);
	for (uint64_t round = 0; round < 6; round++) {
		size_t before = with;

		while (t.n_jobs == 0)
			table_run(&t, t.now_ms + 1000, 1);
		with = table_peer(&t, HOST, FIRST)->in_round ? FIRST : SECOND;
		assert_true(table_peer(&t, HOST, with)->in_round);
		assert_int_not_equal(with, before);
		train(&t, with);
		table_run(&t, t.now_ms + 500, 10000);
		assert_true(table_peer(&t, HOST, FIRST)->queued &&
			    table_peer(&t, HOST, SECOND)->queued);
		table_let_job_end(&t, 0);
		while (host(&t)->rounds == round)
			table_run(&t, t.now_ms + 1000, 1);
		assert_int_equal(first_on_disk(&t), with == FIRST ? SECOND : FIRST);
	}
	table_let_jobs_end(&t);
	table_release(&t);
}

/* ---- to whom a link is kept ---- */

static size_t kept(const struct table *t)
{
	return (size_t)t->agent[HOST].keeps[FIRST] + t->agent[HOST].keeps[SECOND];
}

static void begin_with_links(struct table *t, uint64_t seed, uint32_t links)
{
	table_init(t, seed);
	t->agent[HOST].config.federation.roles = CONFIG_HOST_ONLY;
	t->agent[HOST].config.federation.few.links = links;
	t->agent[FIRST].config.federation.roles = CONFIG_CLIENT_ONLY;
	t->agent[SECOND].config.federation.roles = CONFIG_CLIENT_ONLY;
}

/* The owner has said how many may be kept, and it is so at once. */
static void test_links_as_said_now(void **state)
{
	struct agent_event settings = { .kind = AGENT_EVENT_SETTINGS };
	struct table t;

	(void)state;
	begin_with_links(&t, 6, 1);
	table_start(&t);
	table_run(&t, 3000, 10000);
	for (uint32_t k = 0; k < 4; k++) {
		t.agent[HOST].config.federation.few.links = k % 3;
		settings.now_ms = t.now_ms;
		agent_core_event(host(&t), &settings);
		assert_int_equal(kept(&t), k % 3 == 1 ? 1 : 2);
	}
	table_release(&t);
}

static void test_links(void **state)
{
	struct table t;

	(void)state;
	for (uint32_t links = 0; links <= 2; links++) {
		begin_with_links(&t, 6, links);
		table_start(&t);
		assert_int_equal(kept(&t), links == 1 ? 1 : 2);
		table_release(&t);
	}
	begin_with_links(&t, 6, 1);
	t.agent[HOST].config.federation.mode = CONFIG_ROUNDS; /* where all are needed */
	t.agent[HOST].config.federation.roles = CONFIG_BOTH_ROLES;
	table_start(&t);
	assert_int_equal(kept(&t), 2);
	table_release(&t);
}

/* Partners without an address from the owner, who say one themselves: those that call us count no
 * more than before they said it, those that we dial do. */
static size_t kept_by_their_word(bool called)
{
	struct agent_event settings = { .kind = AGENT_EVENT_SETTINGS };
	struct table t;
	size_t n;

	begin_with_links(&t, 12, 0);
	t.agent[HOST].called = called;
	for (size_t i = FIRST; i <= SECOND; i++)
		assert_int_equal(
			config_set(&t.agent[i].config, NULL, "advertise", "a.example:7", NULL), 0);
	table_start(&t);
	for (size_t i = FIRST; i <= SECOND; i++)
		table_peer(&t, HOST, i)->info.address[0] = '\0';
	table_run(&t, 3000, 10000);
	meet(&t);
	table_run(&t, t.now_ms + 60000, 100000);
	for (size_t i = FIRST; i <= SECOND; i++)
		assert_string_equal(t.agent[HOST].dials[i], "a.example:7");
	t.agent[HOST].config.federation.few.links = 1;
	settings.now_ms = t.now_ms;
	agent_core_event(host(&t), &settings);
	n = kept(&t);
	table_release(&t);
	return n;
}

static void test_links_of_those_that_call(void **state)
{
	(void)state;
	assert_int_equal(kept_by_their_word(true), 2);
	assert_int_equal(kept_by_their_word(false), 1);
}

static void test_who_comes_is_heard(void **state)
{
	struct table t;
	size_t other;

	(void)state;
	begin_with_links(&t, 7, 1);
	table_start(&t);
	table_run(&t, 3000, 10000);
	other = t.agent[HOST].keeps[FIRST] ? SECOND : FIRST;
	table_link(&t, HOST, other, true); /* it has dialled */
	until_round(&t, 1);
	assert_memory_equal(host(&t)->history.gain[0].peer[0], t.agent[other].key, STORE_KEY);
	table_release(&t);
}

/* After each round another one has its turn; who is not there goes first. */
static void test_links_turn(void **state)
{
	size_t had[AGENTS] = { 0 };
	struct table t;

	(void)state;
	begin_with_links(&t, 8, 1);
	t.agent[HOST].config.federation.gather_s = 0;
	table_start(&t);
	table_run(&t, 3000, 10000);
	for (uint64_t round = 1; round <= 6; round++) {
		size_t with = t.agent[HOST].keeps[FIRST] ? FIRST : SECOND;

		had[with]++;
		table_link(&t, HOST, with, true);
		train(&t, with);
		until_round(&t, round);
		table_run(&t, t.now_ms + 100, 10000);
		assert_int_equal(kept(&t), 1);
		assert_true(t.agent[HOST].keeps[with]); /* it is new */
		table_run(&t, t.now_ms + 5000, 10000);
		assert_int_equal(kept(&t), 1);
		assert_false(t.agent[HOST].keeps[with]);
		assert_false(table_peer(&t, HOST, with)->linked);
	}
	assert_true(had[FIRST] == 3 && had[SECOND] == 3);
	table_release(&t);
}

/* Asleep, since the only partner with a link is not there. */
static void test_links_turn_when_it_wakes(void **state)
{
	struct table t;
	size_t with;

	(void)state;
	begin_with_links(&t, 9, 1);
	t.agent[HOST].config.federation.sleep_s = 60;
	table_start(&t);
	table_run(&t, 3000, 10000);
	with = t.agent[HOST].keeps[FIRST] ? FIRST : SECOND;
	table_run(&t, t.now_ms + 61000, 10000);
	assert_int_equal(kept(&t), 1);
	assert_false(t.agent[HOST].keeps[with]);
	table_release(&t);
}

/* Nothing is shared with the only one that has a link: the other is looked for before it sleeps. */
static void test_links_of_no_use(void **state)
{
	struct table t;
	size_t with;
	bool first;

	(void)state;
	begin_with_links(&t, 11, 1);
	table_start(&t);
	table_run(&t, 3000, 10000);
	with = t.agent[HOST].keeps[FIRST] ? FIRST : SECOND;
	t.agent[with].config.federation.share = CONFIG_SHARE_RELATIONS;
	t.agent[HOST].config.federation.share = CONFIG_SHARE_ENTITIES;
	for (size_t i = 0; i < 2; i++)
		peer_names_version(t.agent[i == 0 ? HOST : with].core,
				   table_peer(&t, i == 0 ? HOST : with, i == 0 ? with : HOST));
	table_link(&t, HOST, with, true);
	table_run(&t, t.now_ms + 3000, 10000);
	assert_true(table_peer(&t, HOST, with)->aligned);
	assert_int_equal(table_peer(&t, HOST, with)->n_slots, 0);
	assert_int_equal(kept(&t), 1);
	assert_false(t.agent[HOST].keeps[with]);
	/* ... and if that is no better, it rests */
	for (size_t i = FIRST; i <= SECOND; i++) {
		struct peer *p = table_peer(&t, HOST, i);

		p->unusable = p->aligned = true;
		memcpy(p->aligned_ours, p->version, sizeof(p->version));
		memcpy(p->aligned_theirs, p->version_theirs, sizeof(p->version_theirs));
	}
	table_run(&t, t.now_ms + 6000, 10000); /* it does not come */
	first = t.agent[HOST].keeps[FIRST];
	peers_links_search(host(&t));
	assert_int_equal(kept(&t), 1);
	assert_int_equal(t.agent[HOST].keeps[FIRST], first);
	/* names of ours have changed since: it is worth another look */
	for (size_t i = FIRST; i <= SECOND; i++)
		table_peer(&t, HOST, i)->aligned_ours[0] ^= 1;
	(void)peers_links_turn(host(&t));
	assert_int_equal(kept(&t), 1);
	assert_int_equal(t.agent[HOST].keeps[FIRST], !first);
	table_release(&t);
}

/* What could not be translated is tried again when a new link offers other tables. */
static void test_other_tables_are_tried(void **state)
{
	struct table t;
	struct peer *p;

	(void)state;
	begin_with_links(&t, 12, 2);
	table_start(&t);
	table_run(&t, 3000, 10000);
	p = table_peer(&t, FIRST, HOST);
	for (int others = 0; others < 2; others++) {
		p->unusable = true;
		table_link(&t, HOST, FIRST, false);
		table_run(&t, t.now_ms + 10, 10000);
		p->offered = peer_offered(host(&t)) + (others ? 1 : 0);
		table_link(&t, HOST, FIRST, true);
		while (!p->greeted)
			table_run(&t, t.now_ms + 1, 10000);
		assert_int_equal(p->unusable, !others);
	}
	table_release(&t);
}

/* It had news and was not heard: it is dialled before the agent sleeps. */
static void test_links_to_who_waits(void **state)
{
	struct table t;
	size_t with;

	(void)state;
	begin_with_links(&t, 12, 1);
	table_start(&t);
	table_run(&t, 3000, 10000);
	with = t.agent[HOST].keeps[FIRST] ? SECOND : FIRST;
	peer_queue_put(host(&t), table_peer(&t, HOST, with), 9);
	table_run(&t, t.now_ms + 3000, 10000);
	assert_true(t.agent[HOST].keeps[with]);
	assert_int_equal(kept(&t), 1);
	table_release(&t);
}

static bool holds_work(const struct table *t, size_t agent, const struct agent_job *job)
{
	return holds_round(t, agent, job) || (agent == HOST && job->kind == AGENT_JOB_CONV);
}

/* Its jobs of this kind end, the oldest first, until none has been there for a second. */
static void let_end(struct table *t, enum agent_job_kind kind)
{
	for (size_t i = 0; i < t->n_jobs;) {
		if (t->job[i].job->kind != kind) {
			i++;
			continue;
		}
		table_let_job_end(t, i);
		table_run(t, t->now_ms + 1000, 10000);
		i = 0;
	}
}

/* The only link is in a session whenever a round is over: it goes when that session ends. */
static void test_links_turn_after_a_session(void **state)
{
	struct table t;
	size_t with;

	(void)state;
	begin_with_links(&t, 18, 1);
	table_start(&t);
	table_run(&t, 3000, 10000);
	with = t.agent[HOST].keeps[FIRST] ? FIRST : SECOND;
	t.holds = holds_work;
	table_link(&t, HOST, with, true);
	table_run(&t, t.now_ms + 1000, 10000);
	let_end(&t, AGENT_JOB_CONV);
	assert_int_equal(host(&t)->doing, DOING_TRAIN); /* round 1, and meanwhile ... */
	train(&t, with);
	table_run(&t, t.now_ms + 1000, 10000);
	assert_int_equal(session_hosts(host(&t)), 1);
	let_end(&t, AGENT_JOB_TRAIN);
	assert_int_equal(host(&t)->rounds, 1);
	assert_int_equal(session_hosts(host(&t)), 1);
	assert_true(t.agent[HOST].keeps[with]);
	let_end(&t, AGENT_JOB_CONV);
	assert_int_equal(host(&t)->doing, DOING_TRAIN); /* round 2 */
	assert_int_equal(host(&t)->rounds, 1);
	assert_int_equal(kept(&t), 1);
	assert_false(t.agent[HOST].keeps[with]);
	assert_true(table_peer(&t, HOST, with)->in_round); /* its rows stay */
	let_end(&t, AGENT_JOB_TRAIN);
	assert_int_equal(host(&t)->rounds, 2);
	table_let_jobs_end(&t);
	table_release(&t);
}

/* ---- partners that are not there, or have no time ---- */

static size_t linked_first(const struct table *t)
{
	return t->agent[HOST].keeps[FIRST] ? FIRST : SECOND;
}

/* For so many seconds; returns in how many of them HOST would have a link to `with`. */
static int seconds_kept(struct table *t, int seconds, size_t with)
{
	int n = 0;

	for (int k = 0; k < seconds; k++) {
		table_run(t, t->now_ms + 1000, 10000);
		n += t->agent[HOST].keeps[with];
	}
	return n;
}

/* Its news waits, and it never comes: others have their turns all the same, more and more of them.
 */
static void test_links_past_who_is_gone(void **state)
{
	struct table t;
	size_t gone, there;

	(void)state;
	begin_with_links(&t, 13, 1);
	t.agent[HOST].config.federation.sleep_s = 20;
	table_start(&t);
	table_run(&t, 3000, 10000);
	there = linked_first(&t);
	gone = there == FIRST ? SECOND : FIRST;
	peer_queue_put(host(&t), table_peer(&t, HOST, gone), 9);
	assert_in_range(seconds_kept(&t, 20, gone), 5, 20); /* it is dialled for its news */
	assert_true(seconds_kept(&t, 600, there) >= 200);
	table_peer(&t, HOST, gone)->rest_ms = UINT64_MAX; /* no session may begin */
	assert_true(seconds_kept(&t, 100, there) >= 40);
	table_peer(&t, HOST, gone)->rest_ms = 0;
	table_link(&t, HOST, gone, true); /* it comes at last */
	until_round(&t, 1);
	assert_false(table_peer(&t, HOST, gone)->queued);
	table_release(&t);
}

/* Who was dialled a moment ago has some time to come, whoever's news waits. */
static void test_links_that_come(void **state)
{
	struct table t;
	size_t gone, there;

	(void)state;
	begin_with_links(&t, 14, 1);
	t.agent[HOST].config.federation.sleep_s = 30;
	table_start(&t);
	table_run(&t, 3000, 10000);
	gone = linked_first(&t);
	there = gone == FIRST ? SECOND : FIRST;
	while (!t.agent[HOST].keeps[there])
		table_run(&t, t.now_ms + 1000, 1);
	peer_queue_put(host(&t), table_peer(&t, HOST, gone), 9);
	table_peer(&t, HOST, gone)->link.from_ms = 0;
	assert_int_equal(seconds_kept(&t, 4, there), 4);
	assert_int_equal(seconds_kept(&t, 4, there), 0); /* POLL: it has not come */
	table_release(&t);
}

static bool holds_first(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t, (void)job;
	return agent == FIRST;
}

/* It has news and no time for sessions, and says so each time. */
static void test_links_past_who_defers(void **state)
{
	struct table t;

	(void)state;
	begin_with_links(&t, 15, 1);
	t.agent[HOST].config.federation.sleep_s = 20;
	t.agent[FIRST].config.federation.sessions = 1;
	table_start(&t);
	table_run(&t, 3000, 10000);
	for (int k = 0; k < 60 && !t.agent[HOST].keeps[FIRST]; k++)
		table_run(&t, t.now_ms + 1000, 10000);
	assert_true(t.agent[HOST].keeps[FIRST]);
	t.holds = holds_first;
	train(&t, FIRST);
	assert_int_equal(t.n_jobs, 1);
	table_link(&t, HOST, FIRST, true);
	assert_true(seconds_kept(&t, 90, SECOND) >= 20);
	assert_true(t.agent[FIRST].sent[NET_MSG_DEFER] > 3);
	assert_int_equal(host(&t)->rounds, 0);
	table_let_jobs_end(&t);
	table_release(&t);
}

/* An owner who adds a partner wants it tried. */
static void test_links_that_must_be(void **state)
{
	struct agent_event revoke = { .kind = AGENT_EVENT_PEER_REVOKED },
			   add = { .kind = AGENT_EVENT_PEER_ADDED, .address = "table:9" };
	struct table t;
	size_t with;

	(void)state;
	begin_with_links(&t, 10, 1);
	table_start(&t);
	table_run(&t, 3000, 10000);
	with = t.agent[HOST].keeps[FIRST] ? SECOND : FIRST;
	revoke.now_ms = add.now_ms = t.now_ms;
	memcpy(revoke.peer, t.agent[with].key, 32);
	memcpy(add.peer, t.agent[with].key, 32);
	agent_core_event(host(&t), &revoke);
	assert_int_equal(kept(&t), 1);
	agent_core_event(host(&t), &add);
	assert_int_equal(kept(&t), 2);
	(void)peers_links_turn(host(&t)); /* it has some time to come */
	assert_int_equal(kept(&t), 2);
	table_run(&t, t.now_ms + 6000, 10000);
	(void)peers_links_turn(
		host(&t)); /* nobody is left to have a turn, but there are too many */
	assert_int_equal(kept(&t), 1);
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_so_many_a_round),
		cmocka_unit_test(test_all),
		cmocka_unit_test(test_by_what_they_brought),
		cmocka_unit_test(test_after_a_restart),
		cmocka_unit_test(test_all_of_a_round_are_noted),
		cmocka_unit_test(test_private_training),
		cmocka_unit_test(test_private_after_a_restart),
		cmocka_unit_test(test_nobody_without_news),
		cmocka_unit_test(test_nobody_too_late),
		cmocka_unit_test(test_after_an_outage),
		cmocka_unit_test(test_each_in_its_turn),
		cmocka_unit_test(test_links),
		cmocka_unit_test(test_links_as_said_now),
		cmocka_unit_test(test_links_of_those_that_call),
		cmocka_unit_test(test_who_comes_is_heard),
		cmocka_unit_test(test_links_turn),
		cmocka_unit_test(test_links_turn_when_it_wakes),
		cmocka_unit_test(test_links_of_no_use),
		cmocka_unit_test(test_other_tables_are_tried),
		cmocka_unit_test(test_links_to_who_waits),
		cmocka_unit_test(test_links_that_must_be),
		cmocka_unit_test(test_links_turn_after_a_session),
		cmocka_unit_test(test_links_past_who_is_gone),
		cmocka_unit_test(test_links_that_come),
		cmocka_unit_test(test_links_past_who_defers),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
