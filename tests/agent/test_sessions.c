/* Several sessions at a time: beside training and beside each other. */
#include "tests/test.h"

#include <math.h>
#include <sodium.h>

#include "base/log.h"
#include "agent/core/terms.h"
#include "ppat/short_row.h"
#include "tests/agent/private_training.h"
#include "tests/agent/table.h"

/* SERVER is who has several; the other two come to it. */
enum { SERVER, FIRST, SECOND };

static struct agent_core *server(struct table *t)
{
	return t->agent[SERVER].core;
}

static struct session *with(struct table *t, size_t other)
{
	return session_with(server(t), table_peer(t, SERVER, other));
}

static bool holds_server(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t, (void)job;
	return agent == SERVER;
}

static bool holds_conv(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t;
	return agent == SERVER && job->kind == AGENT_JOB_CONV;
}

static bool holds_translation(const struct table *t, size_t agent, const struct agent_job *job)
{
	return holds_conv(t, agent, job) &&
	       session_first(t->agent[SERVER].core)->phase == PHASE_TRANSLATE;
}

static bool holds_own(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t;
	return agent == SERVER && job->kind != AGENT_JOB_CONV;
}

static bool holds_scoring(const struct table *t, size_t agent, const struct agent_job *job)
{
	return holds_own(t, agent, job) && job->kind == AGENT_JOB_EVALUATE;
}

/* The others have trained, are at rest, and have a link to the server alone. */
static void begin(struct table *t, uint64_t seed, uint32_t sessions)
{
	table_init(t, seed);
	t->agent[SERVER].config.federation.sessions = sessions;
	t->agent[SERVER].config.federation.roles = CONFIG_CLIENT_ONLY;
	t->agent[FIRST].config.federation.roles = t->agent[SECOND].config.federation.roles =
		CONFIG_HOST_ONLY;
}

static void meet(struct table *t)
{
	table_start(t);
	table_run(t, 3000, 10000); /* trained, each alone */
	table_link(t, SERVER, FIRST, true);
	table_link(t, SERVER, SECOND, true);
}

/* Until `done`, or for this long. */
static bool wait_until(struct table *t, bool (*done)(struct table *t), uint64_t ms)
{
	uint64_t until = t->now_ms + ms;

	while (!done(t) && t->now_ms < until)
		table_run(t, until, 1);
	return done(t);
}

static void train(struct table *t, size_t at)
{
	t->agent[at].core->train_now = true;
	t->agent[at].improvements = 1;
}

static bool trains(struct table *t)
{
	return server(t)->doing == DOING_TRAIN && server(t)->job != NULL;
}

static bool scores(struct table *t)
{
	return server(t)->doing == DOING_EVALUATE && server(t)->job != NULL;
}

static bool both_open(struct table *t)
{
	return server(t)->n_open == 2;
}

/* ... each with a job on a worker. */
static bool both_work(struct table *t)
{
	return both_open(t) && server(t)->open[0]->job && server(t)->open[1]->job;
}

static bool first_served(struct table *t)
{
	return t->agent[FIRST].core->sessions > 0;
}

static bool second_served(struct table *t)
{
	return t->agent[SECOND].core->sessions > 0;
}

static bool both_served(struct table *t)
{
	return first_served(t) && second_served(t);
}

/* ---- beside training and scoring ---- */

static void serves_while(bool (*works)(struct table *t),
			 bool (*holds)(const struct table *t, size_t agent,
				       const struct agent_job *job),
			 uint32_t sessions, bool served)
{
	struct table t;

	begin(&t, 1, sessions);
	t.holds = NULL;
	table_start(&t);
	table_run(&t, 3000, 10000);
	t.holds = holds;
	train(&t, SERVER);
	table_link(&t, SERVER, FIRST, true);
	assert_true(wait_until(&t, works, 4000));
	assert_int_equal(wait_until(&t, first_served, 20000), served);
	assert_true(works(&t)); /* all the while */
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, first_served, 20000));
	table_release(&t);
}

static void test_beside_training(void **state)
{
	(void)state;
	serves_while(trains, holds_own, 2, true);
	serves_while(trains, holds_own, 1, false); /* what one at a time means */
}

static void test_beside_scoring(void **state)
{
	(void)state;
	serves_while(scores, holds_scoring, 2, true);
}

struct rows { /* of the server's first entity: seen on the wire before and after it is better */
	double old, new;
	bool sent_old, sent_new;
};

static double length(const float *row)
{
	return sqrt((double)row[0] * row[0] + (double)row[1] * row[1] + (double)row[2] * row[2] +
		    (double)row[3] * row[3]);
}

static size_t slot_of_first(struct table *t)
{
	const struct peer *p = table_peer(t, SERVER, FIRST);
	size_t k = 0;

	while (p->slots[k].tag != 'e' || p->slots[k].id != 0)
		k++;
	return k;
}

/* Rows leave rotated in secret, which keeps their lengths. */
static void look_for_rows(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	float z[4];
	struct rows *r = ctx;
	struct net_body body;
	struct net_bytes b, x;
	struct net_msg m;
	struct err e = { 0 };

	(void)to;
	if (from != SERVER || net_msg_decode(&m, bytes->base, bytes->len, NULL) != 0)
		return;
	b = net_get_bin(&m.body, "b", 1, 4096, &e);
	if (e.code == 0 && net_get_uint(&m.body, "c", CONV_TRANSLATE, CONV_TRANSLATE, &e) &&
	    net_get_uint(&m.body, "k", PPAT_MSG_ROWS, PPAT_MSG_ROWS, &e) && e.code == 0) {
		double is;

		assert_int_equal(net_body_decode(&body, b.base, b.len, &e), 0);
		x = net_get_bin(&body.map, "h", 0, 16 * ppat_short_bytes(4), &e);
		assert_int_equal(e.code, 0);
		assert_in_range(slot_of_first(t), 0, x.len / ppat_short_bytes(4) - 1);
		assert_int_equal(
			ppat_short_get(x.base + slot_of_first(t) * ppat_short_bytes(4), 4, z, &e),
			0);
		is = length(z);
		r->sent_old |= fabs(is - r->old) < 5e-5;
		r->sent_new |= fabs(is - r->new) < 5e-5;
		net_body_release(&body);
	}
	net_msg_release(&m);
}

static bool translates(struct table *t)
{
	return with(t, FIRST) != NULL && with(t, FIRST)->phase == PHASE_TRANSLATE;
}

static bool better(struct table *t)
{
	return server(t)->served_serial == 2 && server(t)->doing == DOING_NOTHING;
}

/* What goes out is what was best when the rows were gathered, as a whole; what has got better
 * since then is told, and asked for. */
static void test_best_changes_meanwhile(void **state)
{
	struct rows rows = { 0 };
	struct table t;

	(void)state;
	begin(&t, 2, 2);
	table_start(&t);
	table_run(&t, 3000, 10000);
	table_link(&t, SERVER, FIRST, true);
	rows.old = length(kge_ent(server(&t)->best, 0));
	t.tamper = look_for_rows;
	t.ctx = &rows;
	t.holds = holds_translation;
	while (!translates(&t)) /* the rows are gathered, none has left */
		table_run(&t, t.now_ms + 1000, 1);
	train(&t, SERVER);
	assert_true(wait_until(&t, better, 3000));
	rows.new = length(kge_ent(server(&t)->best, 0));
	assert_true(fabs(rows.new - rows.old) > 1e-4);
	assert_false(rows.sent_old);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, first_served, 20000));
	assert_true(rows.sent_old && !rows.sent_new);
	table_run(&t, t.now_ms + 20000, 100000);
	assert_true(rows.sent_new);
	assert_int_equal(table_peer(&t, FIRST, SERVER)->used_serial, 2);
	table_release(&t);
}

/* ---- beside each other ---- */

static void test_two_clients_at_once(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 3, 2);
	t.holds = holds_server;
	table_start(&t);
	table_let_jobs_end(&t);
	table_run(&t, 3000, 10000);
	t.holds = holds_conv;
	table_link(&t, SERVER, FIRST, true);
	table_link(&t, SERVER, SECOND, true);
	assert_true(wait_until(&t, both_work, 5000));
	assert_int_equal(t.n_jobs, 2);
	while (!first_served(&t) && t.n_jobs > 0) { /* the second one's jobs stay where they are */
		size_t k = t.job[0].job == with(&t, SECOND)->job;

		assert_true(k < t.n_jobs);
		table_let_job_end(&t, k);
		table_run(&t, t.now_ms + 100, 1000);
	}
	assert_true(first_served(&t));
	assert_false(second_served(&t));
	assert_non_null(with(&t, SECOND));
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, second_served, 5000));
	table_release(&t);
}

/* As many as it may have; who comes then is deferred, and told when there is room. */
static void test_no_room(void **state)
{
	struct table t;

	(void)state;
	begin(&t, 4, 1);
	meet(&t);
	t.holds = holds_conv;
	table_run(&t, t.now_ms + 1500, 10000);
	assert_int_equal(server(&t)->n_open, 1);
	assert_true(t.agent[SERVER].sent[NET_MSG_DEFER] > 0);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, both_served, 20000));
	table_release(&t);
}

static void put_proposal(struct table *t, size_t from, struct buf *b, uint8_t name)
{
	const struct peer *p = table_peer(t, from, SERVER);
	uint8_t id[AGENT_SESSION] = { name, 1 };
	struct net_writer w;

	net_write_begin(&w, b, NET_MSG_PROPOSE, id);
	net_put_uint(&w, "t", CONFIG_PROCRUSTES);
	net_put_uint(&w, "ef", 4);
	net_put_uint(&w, "rf", 4);
	net_put_bin(&w, "a", p->version, 32);
	net_put_uint(&w, "q", p->chain.sequence);
	net_put_bin(&w, "h", p->chain.head, 32);
	net_put_uint(&w, "w", p->chain.n_tail);
	net_put_bool(&w, "vn", false);
	net_put_bin(&w, "d", p->digest, 0);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

/* However much room there is: a chain has one writer at a time. */
static void test_one_with_each(void **state)
{
	struct buf b = { 0 };
	uint64_t deferred;
	struct table t;

	(void)state;
	begin(&t, 5, 4);
	meet(&t);
	t.holds = holds_conv;
	assert_true(wait_until(&t, both_work, 5000));
	deferred = t.agent[SERVER].sent[NET_MSG_DEFER];
	put_proposal(&t, FIRST, &b, 7);
	table_deliver(&t, FIRST, SERVER, &b);
	assert_int_equal(t.agent[SERVER].sent[NET_MSG_DEFER], deferred + 1);
	assert_int_equal(server(&t)->n_open, 2);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, both_served, 5000));
	table_release(&t);
}

static void stall_first(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct net_msg_head h;

	(void)ctx, (void)t, (void)to;
	if (from == FIRST && net_msg_head(&h, bytes->base, bytes->len, NULL) == 0 &&
	    (h.type == NET_MSG_CONV || h.type == NET_MSG_ABORT))
		buf_clear(bytes);
}

static bool first_holds(struct table *t)
{
	return with(t, FIRST) != NULL;
}

/* A partner that says nothing more costs the others nothing while there is room. */
static void a_stalling_partner(uint32_t sessions, bool others_wait)
{
	uint64_t since;
	struct table t;

	begin(&t, 6, sessions);
	t.tamper = stall_first;
	table_start(&t);
	table_run(&t, 3000, 10000);
	table_link(&t, SERVER, FIRST, true);
	assert_true(wait_until(&t, first_holds, 5000));
	since = t.now_ms;
	table_link(&t, SERVER, SECOND, true);
	assert_true(wait_until(&t, second_served, 60000));
	assert_int_equal(first_holds(&t), !others_wait);
	assert_int_equal(t.now_ms - since > config_ms(t.agent[SERVER].config.federation.lease_s),
			 others_wait);
	table_run(&t, t.now_ms + 10000, 100000); /* its own lease ends it, and nothing else */
	assert_true(table_peer(&t, SERVER, FIRST)->failed > 0);
	assert_int_equal(table_peer(&t, SERVER, SECOND)->failed, 0);
	table_release(&t);
}

static void test_stalling_partner(void **state)
{
	(void)state;
	a_stalling_partner(1, true);
	a_stalling_partner(2, false);
}

static bool holds_second(const struct table *t, size_t agent, const struct agent_job *job)
{
	const struct session *s = session_with(
		t->agent[SERVER].core, peer_find(t->agent[SERVER].core, t->agent[SECOND].key));

	return agent == SERVER && s != NULL && job->subject == s->conv;
}

static bool second_works(struct table *t)
{
	return with(t, SECOND) != NULL && with(t, SECOND)->job != NULL;
}

/* There is one timer for all: whoever came first, it is that of who is due first. */
static void due_first(bool first_comes_first)
{
	size_t one = first_comes_first ? FIRST : SECOND, other = FIRST + SECOND - one;
	struct table t;

	begin(&t, 13, 2);
	t.agent[SECOND].config.federation.lease_s = 30; /* it waits */
	t.tamper = stall_first;
	table_start(&t);
	table_run(&t, 3000, 10000);
	t.holds = holds_second;
	table_link(&t, SERVER, one, true);
	assert_true(wait_until(&t, one == FIRST ? first_holds : second_works, 2000));
	table_link(&t, SERVER, other, true);
	assert_true(wait_until(&t, one == FIRST ? second_works : first_holds, 2000));
	assert_ptr_equal(server(&t)->open[0], with(&t, one));
	table_run(&t, t.now_ms + config_ms(t.agent[SERVER].config.federation.lease_s) - 1500,
		  100000);
	assert_true(both_open(&t));
	assert_true(t.agent[SERVER].working >= 2); /* to the second: it works on its behalf */
	table_run(&t, t.now_ms + 1600, 100000);
	assert_null(with(&t, FIRST));
	assert_true(second_works(&t));
	table_let_jobs_end(&t);
	table_release(&t);
}

static void test_due_first(void **state)
{
	(void)state;
	due_first(true);
	due_first(false);
}

/* ---- ends ---- */

static void open_both(struct table *t, uint64_t seed)
{
	begin(t, seed, 2);
	meet(t);
	t->holds = holds_conv;
	assert_true(wait_until(t, both_work, 5000));
}

/* What workers still have takes its places until it is back. */
static void test_both_links_cut(void **state)
{
	struct buf b = { 0 };
	struct table t;

	(void)state;
	open_both(&t, 7);
	table_link(&t, SERVER, FIRST, false);
	table_link(&t, SERVER, SECOND, false);
	while (t.head < t.tail)
		table_step(&t);
	assert_int_equal(server(&t)->n_open, 0);
	assert_int_equal(server(&t)->detached_jobs, 2);
	table_link(&t, SERVER, FIRST, true);
	table_run(&t, t.now_ms + 2000, 1000);
	assert_int_equal(server(&t)->n_open, 0);
	put_proposal(&t, FIRST, &b, 9);
	table_deliver(&t, FIRST, SERVER, &b);
	assert_int_equal(server(&t)->n_open, 0);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, first_served, 60000));
	assert_int_equal(server(&t)->detached_jobs, 0);
	table_release(&t);
}

static void test_one_link_cut(void **state)
{
	struct table t;

	(void)state;
	open_both(&t, 8);
	table_link(&t, SERVER, FIRST, false);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, second_served, 5000));
	assert_false(first_served(&t));
	assert_int_equal(table_peer(&t, SERVER, SECOND)->failed, 0);
	table_release(&t);
}

static void event(struct table *t, struct agent_event e)
{
	e.now_ms = t->now_ms;
	agent_core_event(server(t), &e);
}

static bool waits_for_first(struct table *t)
{
	return with(t, FIRST) != NULL && !with(t, FIRST)->waiting && !with(t, FIRST)->beside;
}

static bool hears_first(struct table *t)
{
	const struct happens *next = &t->queue[t->head];

	return waits_for_first(t) && t->head < t->tail && next->what == AT_MESSAGE &&
	       next->agent == SERVER && next->from == FIRST;
}

/* The process was stopped, or the machine slept: no partner pays for that, and a session goes on,
 * whether timers come first or what was said meanwhile. */
static void own_standstill(bool timer_first)
{
	const struct agent_event lease = { .kind = AGENT_EVENT_TIMER, .timer = AGENT_TIMER_LEASE };
	uint64_t lease_ms;
	struct table t;

	begin(&t, 6, 2);
	table_start(&t);
	table_run(&t, 3000, 10000);
	table_link(&t, SERVER, FIRST, true);
	assert_true(wait_until(&t, hears_first, 5000));
	lease_ms = config_ms(t.agent[SERVER].config.federation.lease_s);
	t.now_ms += 3 * lease_ms;
	if (timer_first)
		event(&t, lease);
	else
		assert_true(table_step(&t));
	assert_non_null(with(&t, FIRST));
	assert_true(with(&t, FIRST)->theirs_ms < lease_ms);
	assert_true(with(&t, FIRST)->excused_ms >= 3 * lease_ms);
	assert_true(wait_until(&t, first_served, 60000));
	assert_int_equal(table_peer(&t, SERVER, FIRST)->failed, 0);
	assert_int_equal(table_peer(&t, SERVER, FIRST)->cost_ms, 0);

	/* the limit of a session is one all the same */
	t.tamper = stall_first;
	table_link(&t, SERVER, FIRST, false);
	table_link(&t, SERVER, FIRST, true);
	assert_true(wait_until(&t, waits_for_first, 60000));
	t.now_ms += config_ms(t.agent[SERVER].config.federation.session_s);
	event(&t, lease);
	assert_null(with(&t, FIRST));
	table_release(&t);
}

static void test_own_standstill(void **state)
{
	(void)state;
	own_standstill(true);
	own_standstill(false);
}

static void test_revoked_and_stopped(void **state)
{
	struct agent_event revoke = { .kind = AGENT_EVENT_PEER_REVOKED };
	struct table t;

	(void)state;
	open_both(&t, 9);
	memcpy(revoke.peer, t.agent[FIRST].key, 32);
	event(&t, revoke);
	assert_null(with(&t, FIRST));
	assert_non_null(with(&t, SECOND));
	event(&t, (struct agent_event){ .kind = AGENT_EVENT_STOP });
	assert_int_equal(server(&t)->n_open, 0);
	assert_int_equal(server(&t)->detached_jobs, 2);
	assert_false(server(&t)->stopped);
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + 1000, 1000);
	assert_true(server(&t)->stopped);
	table_release(&t);
}

static void test_store_fails(void **state)
{
	struct table t;

	(void)state;
	open_both(&t, 10);
	server(&t)->train_now = true;
	assert_true(wait_until(&t, both_work, 100));
	while (server(&t)->n_commits == 0)
		table_run(&t, t.now_ms + 1000, 1);
	event(&t, (struct agent_event){ .kind = AGENT_EVENT_COMMITTED,
					.ticket = server(&t)->commits[0].ticket,
					.status = ERR_IO });
	assert_int_equal(server(&t)->n_open, 0);
	assert_true(server(&t)->failure.store);
	assert_int_equal(server(&t)->failure.status, ERR_IO); /* a full disk, not a damaged store */
	table_release(&t);
}

static int fails_by_its_store(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
			      struct agent_job *job)
{
	(void)ctx, (void)work, (void)epochs, (void)reset, (void)job;
	return ERR_STORE;
}

/* A command's training has a store of its own: what ours is still to take, it takes. */
static void test_training_fails_by_another_store(void **state)
{
	struct table t;
	uint64_t *const written = &t.agent[SERVER].writes[STORE_PUT_SESSION], before;

	(void)state;
	open_both(&t, 15);
	t.agent[SERVER].learner.train = fails_by_its_store;
	before = *written;
	train(&t, SERVER);
	while (!server(&t)->stopping)
		table_run(&t, t.now_ms + 1000, 1);
	assert_int_equal(server(&t)->failure.status, ERR_STORE);
	assert_int_equal(server(&t)->n_open, 0);
	assert_int_equal(*written, before + 2); /* how the sessions ended */
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + 1000, 1000);
	assert_true(server(&t)->stopped);
	assert_int_equal(t.agent[SERVER].notices[AGENT_NOTICE_STOPPED], 1);
	table_release(&t);
}

/* ---- names are compared again while a result is taken over ---- */

static bool holds_aggregate(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t;
	return agent == SERVER && job->kind == AGENT_JOB_AGGREGATE;
}

static bool aggregates(struct table *t)
{
	return server(t)->doing == DOING_AGGREGATE;
}

static bool hosted_twice(struct table *t)
{
	return t->agent[FIRST].core->rounds > 1;
}

/* The worker has slots of its own (ASan sees it otherwise). */
static void test_aligned_while_aggregating(void **state)
{
	struct buf signal = { 0 };
	struct net_writer w;
	struct table t;

	(void)state;
	table_init(&t, 11);
	t.holds = holds_aggregate;
	table_start(&t);
	table_link(&t, SERVER, FIRST, true);
	assert_true(wait_until(&t, aggregates, 20000));
	table_peer(&t, SERVER, FIRST)->aligned = false; /* as if names had changed */
	assert_int_equal(t.agent[FIRST].core->rounds, 1);
	net_write_begin(&w, &signal, NET_MSG_SIGNAL, NULL); /* so that it hosts once more */
	net_put_uint(&w, "s", 2);
	assert_int_equal(net_write_end(&w, NULL), 0);
	table_deliver(&t, SERVER, FIRST, &signal);
	assert_true(wait_until(&t, hosted_twice, 20000));
	assert_true(table_peer(&t, SERVER, FIRST)->aligned);
	assert_true(aggregates(&t));
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + 5000, 100000);
	assert_int_equal(server(&t)->in_round, 0);
	assert_true(server(&t)->rounds > 0);
	table_release(&t);
}

/* ---- both at once against one cap ---- */

static uint64_t releases(struct table *t)
{
	struct ledger_mechanism m = session_ledger_release(server(t));
	struct ledger_lineage l;
	uint64_t n;

	session_ledger_spent(server(t), &l);
	n = ledger_lineage_count(&l, &m);
	ledger_lineage_release(&l);
	return n;
}

static const double release_noise = 4;

static double epsilon_of(double noise, uint64_t n)
{
	struct ledger_spend s = { .labels = n };
	struct config c;
	double epsilon = 0;

	config_init(&c);
	s.mechanism = agent_release(&c, noise, 4);
	config_release(&c);
	assert_int_equal(ledger_epsilon(&s, 1, &epsilon, NULL), 0);
	return epsilon;
}

static bool both_aligned(struct table *t)
{
	return both_open(t) && server(t)->open[0]->phase >= PHASE_ALIGNED &&
	       server(t)->open[1]->phase >= PHASE_ALIGNED;
}

static bool none_open(struct table *t)
{
	return server(t)->n_open == 0;
}

/* What comes after a reserve: it stays open. */
static bool holds_release(const struct table *t, size_t agent, const struct agent_job *job)
{
	const struct agent_core *c = t->agent[SERVER].core;

	if (agent == SERVER)
		for (size_t i = 0; i < c->n_open; i++)
			if (c->open[i]->conv == job->subject && c->open[i]->opened)
				return true;
	return false;
}

/* Each has reserved, or was refused. */
static bool both_decided(struct table *t)
{
	size_t held = t->n_jobs;

	return held == 2 || (held == 1 && server(t)->n_open == 1);
}

/* Room for so many releases of its rows, and two partners that ask for one at the same time: what
 * is reserved for the one is not there for the other, long before it is settled. */
static void two_releases(uint64_t room)
{
	double cap = (epsilon_of(release_noise, room) + epsilon_of(release_noise, room + 1)) / 2;
	struct table t;

	begin(&t, 12, 2);
	t.agent[SERVER].config.privacy.noisy_rows = true;
	t.agent[SERVER].config.privacy.release_noise = release_noise;
	t.agent[SERVER].config.privacy.epsilon_per_peer =
		t.agent[SERVER].config.privacy.epsilon_total = cap;
	t.holds = holds_release;
	meet(&t);
	assert_true(wait_until(&t, both_aligned, 5000)); /* both have passed the first look */
	assert_int_equal(releases(&t), 0);
	assert_true(wait_until(&t, both_decided, 4000));
	assert_int_equal(t.n_jobs, room);
	assert_int_equal(releases(&t), room);
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, none_open, 5000));
	assert_int_equal(releases(&t), room);
	assert_int_equal(first_served(&t) + second_served(&t), room);
	assert_int_equal(table_peer(&t, SERVER, FIRST)->failed +
				 table_peer(&t, SERVER, SECOND)->failed,
			 2 - room);
	table_release(&t);
}

static void test_two_reserves_one_cap(void **state)
{
	(void)state;
	two_releases(1);
	two_releases(2);
}

static double lineage_epsilon(struct table *t, uint64_t *labels)
{
	struct ledger_lineage l;
	double epsilon = 0;

	session_ledger_spent(server(t), &l);
	*labels = ledger_lineage_labels(&l);
	assert_int_equal(ledger_epsilon(l.at, l.n, &epsilon, NULL), 0);
	ledger_lineage_release(&l);
	return epsilon;
}

static bool host_and_client(struct table *t)
{
	const struct session *first = with(t, FIRST), *second = with(t, SECOND);

	return first && second && first->role == AGENT_HOST && second->role == AGENT_CLIENT &&
	       first->phase >= PHASE_ALIGNED && second->phase >= PHASE_ALIGNED;
}

/* Labels toward the one as host, rows with noise to the other as client.  Returns what is spent
 * at the end, of which `cap` is never passed. */
static double labels_and_release(double cap, uint64_t *labels, uint64_t *released)
{
	double epsilon = 0;
	struct table t;

	begin(&t, 14, 2);
	t.agent[SERVER].config.federation.roles = CONFIG_BOTH_ROLES;
	t.agent[FIRST].config.federation.roles = CONFIG_CLIENT_ONLY;
	t.agent[SERVER].config.federation.translator = CONFIG_PPAT;
	t.agent[SERVER].config.privacy.noisy_rows = true;
	t.agent[SERVER].config.federation.max_rounds = 1;
	t.agent[SERVER].config.privacy.release_noise = release_noise;
	t.agent[SERVER].config.privacy.epsilon_per_peer =
		t.agent[SERVER].config.privacy.epsilon_total = cap;
	t.holds = holds_release;
	meet(&t);
	assert_true(wait_until(&t, host_and_client, 5000));
	assert_true(lineage_epsilon(&t, labels) == 0);
	for (int i = 0; i < 300; i++) { /* reserves stay open */
		table_run(&t, t.now_ms + 10, 10);
		epsilon = lineage_epsilon(&t, labels);
		assert_true(epsilon <= cap);
	}
	table_let_jobs_end(&t);
	assert_true(wait_until(&t, none_open, 5000));
	epsilon = lineage_epsilon(&t, labels);
	*released = releases(&t);
	table_release(&t);
	return epsilon;
}

static void test_labels_and_a_release_one_cap(void **state)
{
	uint64_t labels, released, fewer;
	double both;

	(void)state;
	both = labels_and_release(100, &labels, &released);
	assert_int_equal(released, 1);
	assert_true(labels > 0);
	labels_and_release(both * .99, &fewer, &released); /* not the last batch, with both */
	assert_int_equal(released, 1);
	assert_true(fewer > 0 && fewer < labels);
	labels_and_release(epsilon_of(release_noise, 1) * 1.0001, &labels, &released);
	assert_int_equal((released == 1) + (labels > 0), 1); /* the other was refused */
}

#define SESSIONS(test) cmocka_unit_test(test)

/* A partner that was busy says so again and again: each time its news counts at once, but no more
 * often than four times in the least time between two attempts. */
static void a_signal_ends_the_wait(void **state)
{
	struct table t;
	struct agent_core *c;
	struct peer *p;
	uint64_t far;

	(void)state;
	table_init(&t, 1);
	table_start(&t);
	table_run(&t, 60000, 100000); /* the first training */
	c = server(&t);
	p = table_peer(&t, SERVER, FIRST);
	far = c->now_ms + 60000;
	for (int k = 0; k < 3; k++) {
		p->not_before_ms = far;
		peer_queue_put(c, p, 1);
		assert_int_equal(p->not_before_ms, c->now_ms);
		p->not_before_ms = far;
		peer_queue_put(c, p, 1); /* at once again: it waits */
		assert_int_equal(p->not_before_ms, far);
		c->now_ms += c->terms.retry_min_ms / 4;
	}
	table_release(&t);
}

/* A host whose private budget is spent compares names, which questions need, and asks for no rows:
 * once, and again where names have changed. */
static void test_spent_compares_names_alone(void **state)
{
	struct agent_event e = { .kind = AGENT_EVENT_TRAIN };
	const struct peer *p;
	struct table t;

	(void)state;
	table_init(&t, 1);
	t.agent[SERVER].config.federation.roles = CONFIG_CLIENT_ONLY;
	t.agent[FIRST].config.federation.roles = CONFIG_HOST_ONLY;
	set_private_training(&t.agent[FIRST].config, 7); /* three epochs */
	table_start(&t);
	table_run(&t, 60000, 100000);
	table_link(&t, SERVER, FIRST, true);
	for (unsigned k = 1; k <= 2; k++) {
		table_run(&t, t.now_ms + 60000, 100000);
		p = table_peer(&t, FIRST, SERVER);
		assert_true(p->aligned && p->n_slots > 0 && !p->queued);
		assert_true(peer_aligned(table_peer(&t, SERVER, FIRST)));
		assert_int_equal(p->sessions, k);
		assert_int_equal(t.agent[FIRST].sent[NET_MSG_PROPOSE], k); /* terms are another */
		assert_int_equal(t.agent[FIRST].core->rounds, 0);
		assert_int_equal(t.agent[FIRST].disk.n_entries, 0);
		table_peer(&t, FIRST, SERVER)->aligned_ours[0] ^= 1;
		e.now_ms = t.now_ms;
		t.agent[SERVER].improvements = 1;
		agent_core_event(server(&t), &e); /* news */
	}
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		SESSIONS(test_beside_training),
		SESSIONS(test_beside_scoring),
		SESSIONS(test_best_changes_meanwhile),
		SESSIONS(test_two_clients_at_once),
		SESSIONS(test_no_room),
		SESSIONS(test_one_with_each),
		SESSIONS(test_stalling_partner),
		SESSIONS(test_due_first),
		SESSIONS(a_signal_ends_the_wait),
		SESSIONS(test_spent_compares_names_alone),
		SESSIONS(test_both_links_cut),
		SESSIONS(test_training_fails_by_another_store),
		SESSIONS(test_one_link_cut),
		SESSIONS(test_own_standstill),
		SESSIONS(test_revoked_and_stopped),
		SESSIONS(test_store_fails),
		SESSIONS(test_aligned_while_aggregating),
		SESSIONS(test_two_reserves_one_cap),
		SESSIONS(test_labels_and_a_release_one_cap),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
