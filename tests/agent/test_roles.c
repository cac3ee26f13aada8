/* tests/agent/test_roles.c - federation.roles: an agent that only hosts never sends a row, on any
 * path; one that only serves as client never takes any in; and nobody asks them for ever. */
#include "tests/test.h"

#include <sodium.h>

#include "tests/agent/table.h"

enum { OWN, OTHER };

struct seen { /* of messages of translations, by the part of who sends them */
	uint64_t as_host[AGENTS], as_client[AGENTS];
};

/* What a translation's client sends is its rows, or made of them. */
static void watch(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	const struct session *s = session_first(t->agent[from].core);
	struct seen *seen = ctx;
	struct net_msg m;
	struct err e = { 0 };

	(void)to;
	assert_int_equal(net_msg_decode(&m, bytes->base, bytes->len, NULL), 0);
	if (m.type == NET_MSG_CONV && s != NULL &&
	    net_get_uint(&m.body, "c", 0, 255, &e) == CONV_TRANSLATE && e.code == 0)
		(s->role == AGENT_HOST ? seen->as_host : seen->as_client)[from]++;
	net_msg_release(&m);
}

static void begin(struct table *t, struct seen *seen, enum config_roles own,
		  enum config_roles other)
{
	memset(seen, 0, sizeof(*seen));
	table_init(t, 3);
	t->agent[OWN].config.federation.roles = own;
	t->agent[OTHER].config.federation.roles = other;
	t->agent[OWN].improvements = t->agent[OTHER].improvements = 4;
	t->tamper = watch;
	t->ctx = seen;
	table_start(t);
	table_link(t, OWN, OTHER, true);
}

static void run(struct table *t)
{
	table_run(t, t->now_ms + 300000, 200000);
}

static void both_get_better(struct table *t)
{
	for (size_t k = 0; k < 2; k++) {
		t->agent[k].improvements += 2;
		t->agent[k].core->train_now = true;
	}
	run(t);
}

/* Rows of this agent that the other has got, as the chain of `at` says. */
static uint64_t rows_sent(struct table *t, size_t at, size_t agent)
{
	const struct ledger_chain *c = &table_peer(t, at, 1 - at)->chain;

	return c->account[ledger_chain_side(c, t->agent[1 - agent].sign_public)].rows;
}

static void a_host_never_sends_rows(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct agent_status s;
		struct seen seen;
		struct table t;

		begin(&t, &seen, CONFIG_HOST_ONLY, CONFIG_BOTH_ROLES);
		for (size_t k = 0; k < 2; k++)
			t.agent[k].config.federation.translator = (enum config_translator)kind,
			t.agent[k].config.privacy.release_noise = 4;
		run(&t);
		both_get_better(&t);
		assert_true(t.agent[OWN].core->sessions > 0);
		assert_int_equal(seen.as_client[OWN], 0);
		assert_true(seen.as_client[OTHER] > 0);
		assert_int_equal(rows_sent(&t, OWN, OWN), 0);
		assert_true(rows_sent(&t, OWN, OTHER) > 0);
		assert_int_equal(t.agent[OTHER].sent[NET_MSG_PROPOSE], 0); /* it was told */
		agent_core_status(t.agent[OWN].core, &s);
		assert_int_equal(s.roles, CONFIG_HOST_ONLY);
		assert_int_equal(s.sent.bare, 0);
		agent_status_release(&s);
		agent_core_status(t.agent[OTHER].core, &s);
		assert_int_equal(s.peer[0].roles, CONFIG_HOST_ONLY);
		assert_int_equal(s.sent.bare, rows_sent(&t, OWN, OTHER));
		agent_status_release(&s);
		table_release(&t);
	}
}

static void a_client_never_takes_rows_in(void **state)
{
	struct seen seen;
	struct table t;

	(void)state;
	begin(&t, &seen, CONFIG_CLIENT_ONLY, CONFIG_BOTH_ROLES);
	run(&t);
	both_get_better(&t);
	assert_int_equal(t.agent[OWN].sent[NET_MSG_PROPOSE], 0);
	assert_int_equal(seen.as_host[OWN], 0);
	assert_int_equal(rows_sent(&t, OWN, OTHER), 0);
	assert_true(rows_sent(&t, OWN, OWN) > 0);
	assert_int_equal(t.agent[OWN].core->rounds, 0);
	table_release(&t);
}

/* Both the same: no session, and both owners can see why. */
static void two_of_one_kind_leave_each_other_alone(void **state)
{
	(void)state;
	for (int kind = CONFIG_HOST_ONLY; kind <= CONFIG_CLIENT_ONLY; kind++) {
		struct agent_status s;
		struct seen seen;
		struct table t;

		begin(&t, &seen, (enum config_roles)kind, (enum config_roles)kind);
		run(&t);
		both_get_better(&t);
		for (size_t k = 0; k < 2; k++) {
			assert_int_equal(t.agent[k].sent[NET_MSG_PROPOSE], 0);
			agent_core_status(t.agent[k].core, &s);
			assert_int_equal(s.queued, 0);
			assert_non_null(strstr(s.peer[0].trouble, "on both sides"));
			assert_int_not_equal(s.state, AGENT_BUSY);
			agent_status_release(&s);
		}
		table_release(&t);
	}
}

/* ---- partners that do not know, or do not care ---- */

static void put_proposal(struct table *t, struct buf *b, uint8_t id_byte)
{
	const struct peer *p = table_peer(t, OTHER, OWN);
	uint8_t id[16];
	struct net_writer w;

	memset(id, id_byte, sizeof(id));
	net_write_begin(&w, b, NET_MSG_PROPOSE, id);
	net_put_uint(&w, "t", CONFIG_PROCRUSTES);
	net_put_uint(&w, "ef", 4);
	net_put_uint(&w, "rf", 4);
	net_put_bin(&w, "a", p->version, 32);
	net_put_uint(&w, "q", p->chain.sequence);
	net_put_bin(&w, "h", p->chain.head, 32);
	net_put_uint(&w, "w", 0);
	net_put_bool(&w, "vn", false);
	net_put_bin(&w, "d", "", 0);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static void whoever_proposes_all_the_same_is_refused(void **state)
{
	struct seen seen;
	struct table t;
	uint64_t refused;

	(void)state;
	begin(&t, &seen, CONFIG_HOST_ONLY, CONFIG_BOTH_ROLES);
	run(&t);
	refused = t.agent[OWN].sent[NET_MSG_REFUSE];
	for (uint8_t k = 1; k <= 20; k++) {
		struct buf b = { 0 };

		put_proposal(&t, &b, k);
		table_deliver(&t, OTHER, OWN, &b);
		assert_null(session_first(t.agent[OWN].core));
	}
	assert_int_equal(t.agent[OWN].sent[NET_MSG_REFUSE], refused + 20);
	run(&t);
	assert_int_equal(seen.as_client[OWN], 0);
	table_release(&t);
}

/* An older program, which does not read the word in HELLO, is refused once for each signal that it
 * believes in, and there are none. */
static void a_refusal_is_final(void **state)
{
	struct agent_status s;
	struct seen seen;
	struct table t;
	struct buf b = { 0 };
	struct net_writer w;

	(void)state;
	begin(&t, &seen, CONFIG_HOST_ONLY, CONFIG_BOTH_ROLES);
	run(&t);
	table_peer(&t, OTHER, OWN)->roles = CONFIG_BOTH_ROLES;
	net_write_begin(&w, &b, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", 99);
	assert_int_equal(net_write_end(&w, NULL), 0);
	table_deliver(&t, OWN, OTHER, &b);
	run(&t);
	run(&t);
	assert_int_equal(t.agent[OTHER].sent[NET_MSG_PROPOSE], 1);
	agent_core_status(t.agent[OTHER].core, &s);
	assert_int_equal(s.queued, 0);
	assert_non_null(strstr(s.peer[0].trouble, "federation.roles: we take rows in"));
	agent_status_release(&s);
	assert_int_equal(seen.as_client[OWN], 0);
	table_release(&t);
}

/* ---- a setting that changes ---- */

/* Until OWN is a client in this phase. */
static void until_client(struct table *t, enum phase phase)
{
	for (size_t i = 0; i < 20000; i++) {
		const struct session *s = session_first(t->agent[OWN].core);

		if (s != NULL && s->role == AGENT_CLIENT && s->phase == phase)
			return;
		table_run(t, t->now_ms + 60000, 1);
	}
	fail_msg("it never was a client");
}

/* Its owner's word counts for a session that has begun, too. */
static void a_session_under_way_sends_no_rows(void **state)
{
	static const enum phase phases[] = { PHASE_SYNC_HOST, PHASE_PSI, PHASE_ALIGNED };

	(void)state;
	for (size_t k = 0; k < sizeof(phases) / sizeof(phases[0]); k++) {
		struct seen seen;
		struct table t;

		begin(&t, &seen, CONFIG_BOTH_ROLES, CONFIG_BOTH_ROLES);
		until_client(&t, phases[k]);
		memset(&seen, 0, sizeof(seen));
		t.agent[OWN].config.federation.roles = CONFIG_HOST_ONLY;
		run(&t);
		assert_int_equal(seen.as_client[OWN], 0);
		assert_null(session_first(t.agent[OWN].core));
		table_release(&t);
	}
}

/* A restart with another setting, in the middle of a session as client. */
static void a_restarted_host_sends_no_rows(void **state)
{
	struct seen seen;
	struct table t;

	(void)state;
	begin(&t, &seen, CONFIG_BOTH_ROLES, CONFIG_BOTH_ROLES);
	until_client(&t, PHASE_TRANSLATE);
	table_kill(&t, OWN);
	t.agent[OWN].config.federation.roles = CONFIG_HOST_ONLY;
	memset(&seen, 0, sizeof(seen));
	table_restart(&t, OWN);
	table_link(&t, OWN, OTHER, true);
	run(&t);
	both_get_better(&t);
	assert_int_equal(seen.as_client[OWN], 0);
	table_release(&t);
}

/* What waited when it was host, too, is proposed no more. */
static void a_restarted_client_has_no_queue(void **state)
{
	struct agent_status s;
	struct seen seen;
	struct table t;

	(void)state;
	begin(&t, &seen, CONFIG_BOTH_ROLES, CONFIG_BOTH_ROLES);
	for (size_t i = 0; i < 20000 && t.agent[OWN].disk.n_queue == 0; i++)
		table_run(&t, t.now_ms + 60000, 1);
	assert_true(t.agent[OWN].disk.n_queue > 0);
	table_kill(&t, OWN);
	t.agent[OWN].config.federation.roles = CONFIG_CLIENT_ONLY;
	memset(&seen, 0, sizeof(seen));
	t.agent[OWN].sent[NET_MSG_PROPOSE] = 0;
	table_restart(&t, OWN);
	table_link(&t, OWN, OTHER, true);
	run(&t);
	assert_int_equal(t.agent[OWN].sent[NET_MSG_PROPOSE], 0);
	assert_int_equal(t.agent[OWN].disk.n_queue, 0);
	agent_core_status(t.agent[OWN].core, &s);
	assert_int_equal(s.queued, 0);
	agent_status_release(&s);
	table_release(&t);
}

/* A partner's signal that waits here is dropped when it says that it sends no rows any more. */
static void what_waits_for_a_host_is_dropped(void **state)
{
	struct seen seen;
	struct table t;

	(void)state;
	begin(&t, &seen, CONFIG_BOTH_ROLES, CONFIG_BOTH_ROLES);
	for (size_t i = 0; i < 20000 && t.agent[OTHER].disk.n_queue == 0; i++)
		table_run(&t, t.now_ms + 60000, 1);
	assert_true(t.agent[OTHER].disk.n_queue > 0);
	table_kill(&t, OWN);
	t.agent[OWN].config.federation.roles = CONFIG_HOST_ONLY;
	while (table_step(&t)) /* the link's end is heard */
		;
	assert_true(t.agent[OTHER].disk.n_queue > 0);
	table_restart(&t, OWN);
	t.agent[OTHER].sent[NET_MSG_PROPOSE] = 0;
	table_link(&t, OWN, OTHER, true);
	run(&t);
	assert_int_equal(t.agent[OTHER].disk.n_queue, 0);
	assert_int_equal(t.agent[OTHER].sent[NET_MSG_PROPOSE], 0);
	table_release(&t);
}

/* In rounds everybody does both. */
static void rounds_know_no_roles(void **state)
{
	struct config c;
	struct err e = { 0 };

	(void)state;
	config_init(&c);
	c.federation.mode = CONFIG_ROUNDS;
	c.federation.roles = CONFIG_HOST_ONLY;
	assert_int_equal(config_check(&c, "settings", &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "federation.roles"));
	config_release(&c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_never_sends_rows),
		cmocka_unit_test(a_client_never_takes_rows_in),
		cmocka_unit_test(two_of_one_kind_leave_each_other_alone),
		cmocka_unit_test(whoever_proposes_all_the_same_is_refused),
		cmocka_unit_test(a_refusal_is_final),
		cmocka_unit_test(a_session_under_way_sends_no_rows),
		cmocka_unit_test(a_restarted_host_sends_no_rows),
		cmocka_unit_test(a_restarted_client_has_no_queue),
		cmocka_unit_test(what_waits_for_a_host_is_dropped),
		cmocka_unit_test(rounds_know_no_roles),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("agent/roles", tests, NULL, NULL);
}
