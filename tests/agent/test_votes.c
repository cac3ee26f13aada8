/* tests/agent/test_votes.c - how votes fell is noted at the host, goes on over restarts, and has no
 * part in anything that leaves (agent/core/votes.h). */
#include "tests/test.h"

#include <sodium.h>
#include <stdlib.h>

#include "agent/core/core_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"
#include "agent/core/votes.h"
#include "base/mem.h"
#include "ppat/virtual.h"
#include "tests/agent/table.h"

enum { HOST, CLIENT };

/* ---- two of them ---- */

/* All that has gone over any link. */
struct wire {
	struct buf bytes;
};

static void listen(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct wire *w = ctx;

	(void)t, (void)from, (void)to;
	buf_add(&w->bytes, bytes->base, bytes->len);
}

static void set_up(struct table *t, struct wire *w, enum ppat_mechanism noise)
{
	table_init(t, 21);
	for (size_t i = 0; i < 2; i++) {
		struct config *c = &t->agent[i].config;

		c->federation.translator = CONFIG_PPAT;
		c->federation.max_rounds = 2;
		c->ppat.noise = noise;
		c->ppat.steps = 3;
		c->ppat.batch = 4;
		c->ppat.pool = 6;
		c->ppat.hidden = 8;
		c->ppat.teachers = 4;
		c->privacy.reserve_labels = 8;
		c->privacy.epsilon_per_peer = c->privacy.epsilon_total = 100;
	}
	t->agent[HOST].config.federation.roles = CONFIG_HOST_ONLY;
	t->agent[CLIENT].config.federation.roles = CONFIG_CLIENT_ONLY;
	t->tamper = listen;
	t->ctx = w;
}

static void begin(struct table *t, struct wire *w, enum ppat_mechanism noise)
{
	set_up(t, w, noise);
	table_start(t);
}

static struct agent_core *host(struct table *t)
{
	return t->agent[HOST].core;
}

static const struct ledger_account *spent(struct table *t)
{
	return session_ledger_account(host(t), table_peer(t, HOST, CLIENT));
}

/* The client's tables are better, as it says. */
static void say_news(struct table *t, uint64_t serial)
{
	struct buf signal = { 0 };
	struct net_writer w;

	net_write_begin(&w, &signal, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", serial);
	assert_int_equal(net_write_end(&w, NULL), 0);
	table_deliver(t, CLIENT, HOST, &signal);
}

/* One more session, from a link that is made anew. */
static void meet_again(struct table *t, uint64_t serial)
{
	uint64_t before = ledger_account_count(spent(t), NULL);

	table_link(t, HOST, CLIENT, true);
	table_run(t, t->now_ms + 100, 200);
	say_news(t, serial);
	for (int i = 0; i < 2000 && (ledger_account_count(spent(t), NULL) == before ||
				     host(t)->n_open > 0 || host(t)->job != NULL);
	     i++)
		table_run(t, t->now_ms + 50, 200);
	table_run(t, t->now_ms + 500, 2000);
	assert_true(ledger_account_count(spent(t), NULL) > before);
}

static void restart_both(struct table *t)
{
	for (size_t i = 0; i < 2; i++)
		table_kill(t, i);
	for (size_t i = 0; i < 2; i++) {
		t->agent[i].config.federation.max_rounds++;
		table_restart(t, i);
	}
}

/* ---- what is noted ---- */

static void account_of(struct table *t, struct dp_account *a)
{
	assert_int_equal(
		agent_votes_account(host(t)->dp.votes, spent(t), t->agent[CLIENT].sign_public, a),
		0);
}

static bool has(const struct buf *wire, const void *what, size_t n)
{
	for (size_t i = 0; i + n <= wire->len; i++)
		if (memcmp(wire->base + i, what, n) == 0)
			return true;
	return false;
}

static bool has_number(const struct buf *wire, double x)
{
	uint8_t le[8], be[8];

	memcpy(le, &x, sizeof(le));
	for (size_t i = 0; i < 8; i++)
		be[i] = le[7 - i];
	return has(wire, le, 8) || has(wire, be, 8);
}

/* The sums, and what follows of them: in no message, and entries go in messages. */
static void check_unsaid(const struct wire *w, const struct dp_account *a)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "%.4f", dp_account_epsilon_private(a));

	assert_true(w->bytes.len > 1000);
	for (size_t i = 0; i < DP_ACCOUNT_ORDERS; i++)
		assert_true(a->noted[i] == 0 || !has_number(&w->bytes, a->noted[i]));
	assert_false(has_number(&w->bytes, dp_account_epsilon_private(a)));
	assert_false(has(&w->bytes, text, (size_t)n));
}

/* How rows agreed: the host's owner is told, and nobody else. */
static void check_agreement(struct table *t, const struct wire *w)
{
	struct agent_status host_says, client_says;
	const struct agent_agreement *a;
	const struct agent_gain *g = &host(t)->history.gain[host(t)->history.n - 1];

	agent_core_status(host(t), &host_says);
	agent_core_status(t->agent[CLIENT].core, &client_says);
	a = &host_says.peer[0].agreement;
	assert_true(a->rows > 8 && fabs(a->cosine) <= 1 && a->nearest >= 0 && a->nearest <= 1);
	assert_int_equal(client_says.peer[0].agreement.rows, 0);
	assert_int_equal(g->n_peers, 1);
	assert_true(g->cosine[0] == (float)a->cosine && g->nearest[0] == (float)a->nearest);
	assert_false(has_number(&w->bytes, a->cosine) || has_number(&w->bytes, a->csls));
	agent_status_release(&host_says);
	agent_status_release(&client_says);
}

static void note_with(enum ppat_mechanism noise, enum dp_accountant by)
{
	struct wire w = { { 0 } };
	struct dp_account first, again, second;
	struct table t;

	begin(&t, &w, noise);
	meet_again(&t, 1);
	account_of(&t, &first);
	assert_int_equal(first.accountant, by);
	assert_int_equal(first.voted, ledger_account_count(spent(&t), NULL));
	assert_int_equal(first.labels, first.voted);
	assert_true(first.noted[0] > 0);
	assert_true(dp_account_epsilon_private(&first) <= dp_account_epsilon_public(&first));
	assert_int_equal(t.agent[CLIENT].core->dp.votes->n, 0);
	restart_both(&t);
	account_of(&t, &again);
	assert_memory_equal(again.noted, first.noted, sizeof(first.noted));
	assert_int_equal(again.voted, first.voted);
	meet_again(&t, 2);
	account_of(&t, &second);
	assert_int_equal(second.voted, ledger_account_count(spent(&t), NULL));
	assert_true(second.voted > first.voted && second.noted[0] > first.noted[0]);
	check_unsaid(&w, &first);
	check_unsaid(&w, &second);
	check_agreement(&t, &w);
	table_release(&t);
	buf_release(&w.bytes);
}

static void votes_are_noted(void **state)
{
	(void)state;
	note_with(PPAT_LAPLACE, DP_PAPER);
	note_with(PPAT_GAUSSIAN, DP_GNMAX);
}

/* ---- and what is not said ---- */

/* Two sessions, with other votes noted of the first in between. */
static void two_sessions(bool others, struct wire *w)
{
	struct table t;

	begin(&t, w, PPAT_LAPLACE);
	meet_again(&t, 1);
	restart_both(&t);
	if (others) {
		struct agent_votes *v = &host(&t)->dp.votes->at[0];

		assert_int_equal(host(&t)->dp.votes->n, 1);
		v->voted /= 2;
		for (size_t i = 0; i < DP_ACCOUNT_ORDERS; i++)
			v->noted[i] *= 0.25;
	}
	buf_clear(&w->bytes);
	meet_again(&t, 2);
	table_release(&t);
}

static void votes_have_no_influence(void **state)
{
	struct wire one = { { 0 } }, other = { { 0 } };

	(void)state;
	two_sessions(false, &one);
	two_sessions(true, &other);
	assert_int_equal(one.bytes.len, other.bytes.len);
	assert_memory_equal(one.bytes.base, other.bytes.base, one.bytes.len);
	buf_release(&one.bytes);
	buf_release(&other.bytes);
}

/* ---- damaged ---- */

static void damaged_ones_are_refused(void **state)
{
	struct agent_votes_list *v = mem_array(1, sizeof(*v));
	struct wire w = { { 0 } };
	struct dp_account a;
	struct table t;
	struct store_meta m;
	uint8_t *bad;

	(void)state;
	begin(&t, &w, PPAT_LAPLACE);
	meet_again(&t, 1);
	m = *disk_meta(&t.agent[HOST].disk, AGENT_META_VOTES);
	bad = mem_copy(m.base, m.len);
	assert_int_equal(agent_votes_read(v, bad, m.len, NULL), 0);
	assert_int_equal(v->n, 1);
	assert_int_equal(agent_votes_read(v, bad, m.len - 1, NULL), ERR_STORE);
	assert_int_equal(v->n, 0);
	memset(bad + m.len - 8, 0xff, 8); /* not a number */
	assert_int_equal(agent_votes_read(v, bad, m.len, NULL), ERR_STORE);
	bad[0] = 9;
	assert_int_equal(agent_votes_read(v, bad, m.len, NULL), ERR_STORE);
	assert_int_equal(agent_votes_read(v, m.base, m.len, NULL), 0);
	v->at[0].voted = DP_LABELS_MAX; /* more than were ever charged */
	assert_int_equal(agent_votes_account(v, spent(&t), t.agent[CLIENT].sign_public, &a),
			 ERR_STORE);
	assert_int_equal(a.voted, 0);
	assert_true(a.labels > 0);
	free(bad);
	free(v);
	table_release(&t);
	buf_release(&w.bytes);
}

/* ---- what they cost ---- */

static bool holds_price(const struct table *t, size_t agent, const struct agent_job *job)
{
	(void)t, (void)agent;
	return job->kind == AGENT_JOB_PRICE;
}

/* At the host for its terms, then at the client for the contract that has come. */
static void hold_price_at(struct table *t, size_t at)
{
	for (int i = 0; i < 2000 && t->n_jobs == 0; i++)
		table_run(t, t->now_ms + 50, 200);
	assert_int_equal(t->n_jobs, 1);
	assert_int_equal(t->job[0].agent, at);
	assert_int_equal(ledger_account_count(spent(t), NULL), 0);
	assert_int_equal(table_peer(t, CLIENT, HOST)->chain.sequence, at == CLIENT); /* opened */
}

/* What `pld` asks of the processor is asked of a worker, and nothing is charged or drawn before it
 * is known; a session that ends meanwhile leaves nothing behind. */
static void prices_are_for_a_worker(void **state)
{
	(void)state;
	for (int cut = 0; cut < 3; cut++) {
		struct wire w = { 0 };
		struct table t;

		begin(&t, &w, PPAT_LAPLACE);
		for (size_t i = 0; i < 2; i++)
			t.agent[i].config.privacy.accountant = CONFIG_PLD;
		t.holds = holds_price;
		table_link(&t, HOST, CLIENT, true);
		table_run(&t, t.now_ms + 100, 200);
		say_news(&t, 1);
		hold_price_at(&t, HOST);
		if (cut != 1) {
			table_let_job_end(&t, 0);
			hold_price_at(&t, CLIENT);
		}
		if (cut > 0) {
			table_link(&t, HOST, CLIENT, false);
			table_run(&t, t.now_ms + 100, 200);
			assert_int_equal(t.agent[cut - 1].core->detached_jobs, 1);
		}
		table_let_jobs_end(&t);
		table_run(&t, t.now_ms + 10000, 20000);
		assert_int_equal(host(&t)->detached_jobs + t.agent[CLIENT].core->detached_jobs, 0);
		assert_int_equal(ledger_account_count(spent(&t), NULL) > 0, cut == 0);
		assert_int_equal(host(&t)->sessions, cut == 0);
		if (cut > 0) /* nor does the next one wait for what is known */
			meet_again(&t, 2);
		table_release(&t);
		buf_release(&w.bytes);
	}
}

/* Status waits for nothing: what has been spent is a bound until somebody has worked it out. */
static void status_does_not_work_it_out(void **state)
{
	struct agent_status before, after;
	struct wire w = { 0 };
	double epsilon = 0;
	struct table t;

	(void)state;
	begin(&t, &w, PPAT_LAPLACE);
	t.agent[HOST].config.privacy.accountant = CONFIG_PLD;
	t.agent[HOST].config.privacy.delta = 1.25e-6; /* nobody else in this program has that */
	meet_again(&t, 1);
	agent_core_status(host(&t), &before);
	assert_int_equal(before.spent.n, 2); /* toward the peer, and all */
	for (size_t i = 0; i < before.spent.n; i++)
		assert_int_equal(ledger_epsilon(before.spent.unpriced[i].at,
						before.spent.unpriced[i].n, &epsilon, NULL),
				 0);
	agent_core_status(host(&t), &after);
	assert_int_equal(after.spent.n, 0);
	assert_near(after.spent.epsilon, epsilon, 0, 0);
	assert_true(epsilon > 0 && before.spent.epsilon > epsilon);
	agent_status_release(&before);
	agent_status_release(&after);
	table_release(&t);
	buf_release(&w.bytes);
}

/* What was spent by a mechanism that this version does not know has no epsilon that could be added
 * up or be held for less than a cap, and nothing is left to be spent beside it. */
static void what_is_not_known_is_no_number(void **state)
{
	struct ledger_mechanism m;
	struct agent_status s;
	struct wire w = { 0 };
	struct table t;

	(void)state;
	begin(&t, &w, PPAT_LAPLACE);
	meet_again(&t, 1);
	agent_core_status(host(&t), &s);
	assert_true(s.spent.epsilon > 0 && s.peer[0].epsilon > 0);
	agent_status_release(&s);
	m = spent(&t)->mechanism;
	assert_true(session_ledger_left(host(&t), table_peer(&t, HOST, CLIENT), &m) > 0);
	spent(&t)->lineages[0].mechanism.noise = LEDGER_NO_NOISE;
	agent_core_status(host(&t), &s);
	assert_true(isnan(s.spent.epsilon) && s.peer[0].epsilon > 0);
	agent_status_release(&s);
	assert_int_equal(session_ledger_left(host(&t), table_peer(&t, HOST, CLIENT), &m), 0);
	spent(&t)->prices[0].mechanism.noise = LEDGER_NO_NOISE;
	agent_core_status(host(&t), &s);
	assert_true(isnan(s.spent.epsilon) && isnan(s.peer[0].epsilon));
	agent_status_release(&s);
	table_release(&t);
	buf_release(&w.bytes);
}

/* ---- what the client has disclosed ---- */

/* One that the host does not have, beside an entity that both have. */
static void add_relation(struct table_agent *s)
{
	graph_vocab_add(s->graph->relations, "hates", 5);
	graph_add(s->graph, GRAPH_TRAIN, (struct graph_triple){ 0, 2, 9 });
	agent_names_free(s->names);
	s->names = agent_names_new(s->graph);
}

/* Until the host has settled.  Returns the rows of virtual neighbours that the client had for it:
 * entities and relations. */
static uint32_t until_settled(struct table *t, uint32_t *relations)
{
	uint32_t n = 0;

	table_link(t, HOST, CLIENT, true);
	for (int i = 0; i < 40000 && spent(t)->rows == 0; i++) {
		const struct session *s = session_first(t->agent[CLIENT].core);

		if (s != NULL && s->neighbours != NULL) {
			n = s->neighbours->n_ent + s->neighbours->n_rel;
			*relations = s->neighbours->n_rel;
		}
		table_run(t, t->now_ms + 50, 1);
	}
	return n;
}

/* All rows that have come, neighbours and their relations too; and all their floats: of PPAT each
 * batch of three, of a map the rows as they were before it. */
static void rows_and_floats_are_counted(void **state)
{
	enum { DIM = 4, BATCHES = 3 * 6 };

	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		enum config_translator by = (enum config_translator)(kind % 3);
		uint32_t neighbours, relations = 0, aligned;
		uint64_t more;
		struct wire w = { { 0 } };
		struct table t;

		set_up(&t, &w, PPAT_LAPLACE);
		add_relation(&t.agent[CLIENT]);
		for (size_t i = 0; i < 2; i++) {
			t.agent[i].config.federation.translator = by;
			t.agent[i].config.federation.neighbours = kind >= 3;
			t.agent[i].config.privacy.release_noise = 20;
		}
		table_start(&t);
		neighbours = until_settled(&t, &relations);
		aligned = table_peer(&t, HOST, CLIENT)->n_slots;
		more = by == CONFIG_PPAT ? BATCHES : by == CONFIG_MAP ? aligned : 0;
		assert_true((neighbours > relations && relations > 0) == (kind >= 3));
		assert_int_equal(spent(&t)->rows, aligned + neighbours);
		assert_int_equal(spent(&t)->floats, (aligned + neighbours + more) * DIM);
		table_release(&t);
		buf_release(&w.bytes);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(votes_are_noted),
		cmocka_unit_test(votes_have_no_influence),
		cmocka_unit_test(damaged_ones_are_refused),
		cmocka_unit_test(prices_are_for_a_worker),
		cmocka_unit_test(status_does_not_work_it_out),
		cmocka_unit_test(what_is_not_known_is_no_number),
		cmocka_unit_test(rows_and_floats_are_counted),
	};

	return sodium_init() < 0 ? 1
				 : cmocka_run_group_tests_name("agent/votes", tests, NULL, NULL);
}
