/* A listed partner that sends what it likes, when it likes: the victim is agent 0, the
 * hostile one agent 2, and agent 1 is honest.  Nothing may crash, grow without bound,
 * or keep the victim from its own work and from others. */
#include "tests/test.h"

#include <sodium.h>

#include "base/mem.h"
#include "ppat/aggregate.h"
#include "ppat/virtual.h"
#include "tests/agent/table.h"

enum { VICTIM, HONEST, HOSTILE };

static struct agent_core *victim(struct table *t)
{
	return t->agent[VICTIM].core;
}

static void start_linked(struct table *t)
{
	table_start(t);
	table_link(t, VICTIM, HOSTILE, true);
}

/* ---- messages by hand ---- */

static void put_proposal(struct table *t, struct buf *b, const uint8_t id[16])
{
	const struct peer *p = table_peer(t, HOSTILE, VICTIM);
	struct net_writer w;

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

static void put_abort_with(struct buf *b, const uint8_t id[16], int code, const char *why)
{
	struct net_writer w;

	net_write_begin(&w, b, NET_MSG_ABORT, id);
	net_put_int(&w, "code", code);
	net_put_str(&w, "why", why);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static void put_abort(struct buf *b, const uint8_t id[16])
{
	put_abort_with(b, id, ERR_BUSY, "changed my mind");
}

static void put_signal(struct buf *b, uint64_t serial)
{
	struct net_writer w;

	net_write_begin(&w, b, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", serial);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static void send_abort(struct table *t)
{
	struct buf b = { 0 };

	put_abort(&b, session_first(victim(t))->id);
	table_deliver(t, HOSTILE, VICTIM, &b);
}

/* Until the victim has a job of a session in this phase under way; the job is held.
 * role: an agent_role, or -1 for either. */
static void hold_job(struct table *t, int role, enum phase phase)
{
	const struct agent_core *c = victim(t);

	for (size_t i = 0; i < 20000; i++) {
		const struct session *s = session_first(c);

		t->held = true;
		if (t->n_jobs > 0 && t->job[0].agent == VICTIM && s &&
		    (role < 0 || (int)s->role == role) && s->phase == phase)
			return;
		table_let_jobs_end(t);
		t->held = true;
		table_run(t, t->now_ms + 60000, 1);
	}
	fail_msg("no such job came");
}

static void finish_with_honest(struct table *t)
{
	struct agent_status s;
	uint64_t served = t->agent[HONEST].core->sessions;

	t->tamper = NULL;
	table_link(t, VICTIM, HOSTILE, false);
	table_link(t, VICTIM, HONEST, true);
	t->agent[VICTIM].improvements += 2;
	t->agent[HONEST].improvements += 2;
	victim(t)->train_now = t->agent[HONEST].core->train_now = true;
	table_run(t, t->now_ms + 300000, 200000);
	agent_core_status(victim(t), &s);
	assert_true(s.state != AGENT_STOPPED && s.state != AGENT_BUSY);
	agent_status_release(&s);
	assert_true(t->agent[HONEST].core->sessions > served);
}

/* ---- nothing hostile: the table works ---- */

static void test_honest(void **state)
{
	struct table t;

	(void)state;
	for (int kind = 0; kind < 4; kind++) { /* the last: Procrustes of noisy rows */
		table_init(&t, 1);
		for (size_t i = 0; i < AGENTS; i++) {
			t.agent[i].config.federation.translator =
				(enum config_translator)(kind % 3);
			t.agent[i].config.privacy.noisy_rows = kind == 3;
			t.agent[i].config.privacy.release_noise = 20;
		}
		start_linked(&t);
		table_run(&t, 60000, 100000);
		assert_true(victim(&t)->sessions >= 2);
		finish_with_honest(&t);
		table_release(&t);
	}
}

/* ---- virtual neighbours ---- */

static void with_neighbours(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.neighbours = true;
}

/* The session ends while a worker still packs the neighbours (seen by ASan). */
static void test_abort_while_packing(void **state)
{
	struct table t;

	(void)state;
	table_init(&t, 2);
	with_neighbours(&t);
	t.agent[VICTIM].improvements = 3;
	start_linked(&t);
	hold_job(&t, AGENT_CLIENT, PHASE_TRANSLATE);
	assert_non_null(session_first(victim(&t))->neighbours);
	send_abort(&t);
	assert_null(session_first(victim(&t)));
	assert_int_equal(victim(&t)->detached_jobs, 1);
	table_let_jobs_end(&t);
	finish_with_honest(&t);
	table_release(&t);
}

/* A worker is not kept by a session that is over. */
static void test_work_ends_with_its_session(void **state)
{
	(void)state;
	for (int kind = 0; kind < 6; kind++) {
		struct table t;

		table_init(&t, 4);
		for (size_t i = 0; i < AGENTS; i++) {
			t.agent[i].config.federation.translator =
				(enum config_translator)(kind % 3);
			t.agent[i].config.privacy.release_noise = 20;
		}
		start_linked(&t);
		hold_job(&t, kind < 3 ? AGENT_CLIENT : AGENT_HOST, PHASE_TRANSLATE);
		send_abort(&t);
		assert_null(session_first(victim(&t)));
		assert_int_equal(t.job[0].job->run(t.job[0].job), ERR_CANCELED);
		table_let_jobs_end(&t);
		finish_with_honest(&t);
		table_release(&t);
	}
}

/* What the owner counted of a session is forgotten while the session runs, as handed back entries
 * make it (handback_answer.c): the session goes on, and what it then says is counted again. */
static void test_count_forgotten_under_way(void **state)
{
	struct table t;
	struct peer_last *l;

	(void)state;
	table_init(&t, 23);
	start_linked(&t);
	hold_job(&t, AGENT_CLIENT, PHASE_TRANSLATE);
	assert_int_equal(session_first(victim(&t))->conv_number, CONV_TRANSLATE);
	l = &table_peer(&t, VICTIM, HOSTILE)->last;
	assert_true(l->counted);
	*l = (struct peer_last){ 0 };
	table_let_jobs_end(&t);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_true(l->counted);
	finish_with_honest(&t);
	table_release(&t);
}

/* The log tells apart by causes (agent/log_limit.h), so a cause is none of the peer's words, nor
 * its code. */
static void test_cause_is_no_word_of_a_peer(void **state)
{
	static const char *const words[] = { "changed my mind", "something quite different" };
	const char *cause[2];
	struct table t;

	(void)state;
	table_init(&t, 2);
	t.agent[VICTIM].improvements = t.agent[HOSTILE].improvements = 9;
	start_linked(&t);
	for (int k = 0; k < 2; k++) {
		struct buf b = { 0 };

		hold_job(&t, -1, PHASE_TRANSLATE);
		put_abort_with(&b, session_first(victim(&t))->id, ERR_BUSY - k, words[k]);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		assert_non_null(strstr(t.agent[VICTIM].last, words[k]));
		cause[k] = t.agent[VICTIM].cause[AGENT_NOTICE_SESSION];
		table_let_jobs_end(&t);
	}
	assert_string_equal(cause[0], cause[1]);
	table_release(&t);
}

/* A virtual triple that takes an entity for a relation: the neighbours are left out,
 * the training goes on. */
static bool spoil_neighbours(struct table *t)
{
	struct session *s = session_first(t->agent[HOSTILE].core);
	const struct peer *p = table_peer(t, HOSTILE, VICTIM);
	uint32_t slot = 0;

	if (s == NULL || s->neighbours == NULL || s->neighbours->n_triples == 0)
		return false;
	while (p->slots[slot].tag != 'e')
		slot++;
	s->neighbours->triples[0].rel = slot;
	return true;
}

static void test_crooked_neighbours(void **state)
{
	struct table t;
	bool spoilt = false;

	(void)state;
	table_init(&t, 3);
	table_goes_back(&t);
	with_neighbours(&t);
	start_linked(&t);
	for (size_t i = 0; i < 50000 && !spoilt; i++) {
		table_run(&t, 20000, 1);
		spoilt = spoil_neighbours(&t);
	}
	assert_true(spoilt);
	table_run(&t, t.now_ms + 20000, 50000);
	assert_false(victim(&t)->stopping);
	assert_non_null(strstr(table_peer(&t, VICTIM, HOSTILE)->trouble, "neighbours"));
	finish_with_honest(&t);
	table_release(&t);
}

/* What the victim's learner is given beside its own rows, and what its owner is told. */
static struct {
	double longest; /* of them, in lengths of its own typical row of that kind */
	size_t rows, told;
	void (*notify)(void *ctx, const struct agent_notice *n);
} given;

static double times_typical(const float *row, size_t own, size_t all, size_t dim)
{
	double *length = mem_array(own + 1, sizeof(*length)), most = 0, typical;

	for (size_t i = 0; i < own; i++)
		length[i] = ppat_row_length(row + i * dim, dim);
	typical = ppat_typical_length(length, own);
	free(length);
	for (size_t i = own; i < all; i++)
		most = fmax(most, ppat_row_length(row + i * dim, dim) / typical);
	return most;
}

static int look_at_neighbours(void *ctx, const struct graph *g, struct kge_emb *tables,
			      uint32_t epochs, struct agent_job *job)
{
	const struct table_agent *s = ctx;
	const struct kge_emb *own = s->core->work;

	(void)g, (void)epochs, (void)job;
	given.rows += tables->n_ent - own->n_ent + tables->n_rel - own->n_rel;
	given.longest = fmax(given.longest, times_typical(tables->ent, own->n_ent, tables->n_ent,
							  tables->ent_floats));
	given.longest = fmax(given.longest, times_typical(tables->rel, own->n_rel, tables->n_rel,
							  tables->rel_floats));
	return 0;
}

static void hear_of_neighbours(void *ctx, const struct agent_notice *n)
{
	given.told += strstr(n->text, "virtual neighbours of") != NULL &&
		      strstr(n->text, "(federation.bound_rows)") != NULL;
	given.notify(ctx, n);
}

static bool lengthen_neighbours(struct table *t, float times)
{
	struct session *s = session_first(t->agent[HOSTILE].core);
	struct ppat_virtual *v = s != NULL ? s->neighbours : NULL;

	if (v == NULL || v->n_triples == 0)
		return false;
	for (size_t i = 0; i < v->n_ent * v->dim; i++)
		v->ent[i] *= times;
	for (size_t i = 0; i < v->n_rel * v->dim; i++)
		v->rel[i] *= times;
	return true;
}

static void take_neighbours(bool bound, float times)
{
	struct table t;
	bool sent = false;

	table_init(&t, 3);
	with_neighbours(&t);
	t.agent[VICTIM].config.federation.few.bound_rows = bound;
	t.agent[VICTIM].learner.train_on = look_at_neighbours;
	given.longest = 0;
	given.rows = given.told = 0;
	given.notify = t.agent[VICTIM].io.notify;
	t.agent[VICTIM].io.notify = hear_of_neighbours;
	start_linked(&t);
	for (size_t i = 0; i < 50000 && !sent; i++) {
		table_run(&t, t.now_ms + 20000, 1);
		sent = lengthen_neighbours(&t, times);
	}
	assert_true(sent);
	for (size_t i = 0; i < 50000 && given.rows == 0; i++)
		table_run(&t, t.now_ms + 20000, 1);
	assert_true(given.rows > 0);
	table_run(&t, t.now_ms + 60000, 20000);
	assert_string_equal(table_peer(&t, VICTIM, HOSTILE)->trouble, "");
	table_release(&t);
}

/* A partner sends neighbours of 1e5 times their length: what is trained beside our rows is at most
 * twice as long as these are, and the owner is told. */
static void test_long_neighbours_are_cut(void **state)
{
	(void)state;
	take_neighbours(false, 1e5F);
	assert_true(given.longest > 1e4 && given.told == 0);
	take_neighbours(true, 1e5F);
	assert_true(given.longest < 2.001 && given.longest > 1.9 && given.told > 0);
	take_neighbours(true, .5F);
	assert_true(given.longest > .1 && given.told == 0);
}

/* ---- storms ---- */

static void settle(struct table *t)
{
	start_linked(t);
	table_run(t, t->now_ms + 60000, 100000);
	assert_null(session_first(victim(t)));
	assert_int_equal(victim(t)->doing, DOING_NOTHING);
	t->tamper = NULL;
}

/* PROPOSE and ABORT as fast as they go: few sessions reach the disk, and the owner's
 * own training is done meanwhile. */
static void test_proposal_storm(void **state)
{
	struct agent_event e = { .kind = AGENT_EVENT_TRAIN };
	struct table t;
	uint64_t rows, first;

	(void)state;
	table_init(&t, 4);
	settle(&t);
	rows = t.agent[VICTIM].writes[STORE_PUT_SESSION];
	first = victim(&t)->next.job;
	e.now_ms = t.now_ms;
	for (uint8_t k = 0; k < 250; k++) {
		uint8_t id[16] = { k, 1 };
		struct buf b = { 0 };

		if (k == 10)
			agent_core_event(victim(&t), &e);
		put_proposal(&t, &b, id);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		put_abort(&b, id);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		for (size_t i = 0; i < 4; i++)
			table_step(&t);
		e.now_ms = t.now_ms;
	}
	assert_true(t.agent[VICTIM].writes[STORE_PUT_SESSION] - rows < 20);
	assert_true(victim(&t)->next.job > first);
	finish_with_honest(&t);
	table_release(&t);
}

/* Of the last proposal that the hostile one made in earnest. */
static void keep_proposal(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct net_msg_head head;

	(void)t;
	if (from == HOSTILE && to == VICTIM &&
	    net_msg_head(&head, bytes->base, bytes->len, NULL) == 0 && head.type == NET_MSG_PROPOSE)
		memcpy(ctx, head.session, NET_SESSION_BYTES);
}

/* Proposed under this id: how many answers come, and is there a session? */
static uint64_t propose(struct table *t, const uint8_t id[16], bool *session)
{
	const uint64_t *sent = t->agent[VICTIM].sent;
	uint64_t before = sent[NET_MSG_ACCEPT] + sent[NET_MSG_DEFER] + sent[NET_MSG_REFUSE];
	struct buf b = { 0 };

	put_proposal(t, &b, id);
	table_deliver(t, HOSTILE, VICTIM, &b);
	*session = session_first(victim(t)) != NULL;
	for (size_t i = 0; i < 4; i++)
		table_step(t);
	return sent[NET_MSG_ACCEPT] + sent[NET_MSG_DEFER] + sent[NET_MSG_REFUSE] - before;
}

/* A proposal that was accepted comes again when its session is over: an old message, which begins
 * nothing and has no answer.  Under a new id the same one is accepted. */
static void test_proposal_twice(void **state)
{
	uint8_t id[NET_SESSION_BYTES] = { 0 };
	bool session;
	struct table t;

	(void)state;
	table_init(&t, 4);
	t.tamper = keep_proposal;
	t.ctx = id;
	settle(&t);
	assert_false(sodium_is_zero(id, sizeof(id)));
	assert_int_equal(propose(&t, id, &session), 0);
	assert_false(session);
	id[0] ^= 1;
	assert_int_equal(propose(&t, id, &session), 1);
	assert_true(session);
	table_release(&t);
}

/* ---- a host that gives all its sessions one id ---- */

struct releases {
	unsigned n; /* that left the victim: one a session */
	bool in_session;
};

static void (*draw_any)(void *ctx, void *out, size_t n);

static void draw_one_id(void *ctx, void *out, size_t n)
{
	draw_any(ctx, out, n);
	if (n == NET_SESSION_BYTES)
		memset(out, 0x5a, n);
}

static void count_releases(void *ctx, struct table *t, size_t from, size_t to, struct buf *b)
{
	struct releases *x = ctx;
	struct net_message m;

	(void)t;
	if (from != VICTIM || to != HOSTILE || net_message_decode(&m, b->base, b->len, NULL) != 0 ||
	    m.type != NET_MSG_CONV || m.conv.conversation != CONV_TRANSLATE || !m.conv.has_part ||
	    m.conv.part.kind != PPAT_MSG_ROWS)
		return;
	x->n += !x->in_session;
	x->in_session = true;
}

static void until_release(struct table *t, struct releases *x)
{
	for (size_t i = 0; i < 20000 && !x->in_session; i++)
		table_run(t, t->now_ms + 100000, 1);
}

/* The link is cut behind the noisy rows, and the victim forgets which ids it has seen. */
static void cut_and_restart(struct table *t)
{
	for (int i = 0; i < 3; i++)
		table_step(t);
	table_link(t, VICTIM, HOSTILE, false);
	table_run(t, t->now_ms + 1000, 10000);
	table_kill(t, VICTIM);
	table_restart(t, VICTIM);
	table_run(t, t->now_ms + 1000, 10000);
	table_link(t, VICTIM, HOSTILE, true);
}

/* One settle for what several sessions have charged would give back all but one. */
static void test_session_id_again(void **state)
{
	struct releases x = { 0 };
	struct table t;
	const struct ledger_chain *chain;

	(void)state;
	table_init(&t, 1);
	for (size_t i = 0; i < AGENTS; i++) {
		t.agent[i].config.federation.translator = CONFIG_PROCRUSTES;
		t.agent[i].config.privacy.release_noise = 20;
	}
	t.agent[VICTIM].config.privacy.noisy_rows = true;
	t.agent[VICTIM].config.federation.roles = CONFIG_CLIENT_ONLY;
	t.agent[HOSTILE].config.federation.roles = CONFIG_HOST_ONLY;
	t.tamper = count_releases;
	t.ctx = &x;
	table_start(&t);
	draw_any = t.agent[HOSTILE].core->io.draw;
	t.agent[HOSTILE].core->io.draw = draw_one_id;
	table_link(&t, VICTIM, HOSTILE, true);
	for (int k = 0; k < 3; k++) {
		x.in_session = false;
		until_release(&t, &x);
		if (k < 2)
			cut_and_restart(&t);
	}
	table_run(&t, t.now_ms + 60000, 100000);
	assert_true(x.n > 0);
	chain = &table_peer(&t, VICTIM, HOSTILE)->chain;
	assert_true(chain->account[ledger_chain_side(chain, t.agent[VICTIM].sign_public)].spent >=
		    x.n);
	assert_non_null(strstr(table_peer(&t, VICTIM, HOSTILE)->trouble, "open on the ledger"));
	table_release(&t);
}

struct overheard {
	char why[AGENT_TEXT_MAX];
	int refusals;
};

static void hear_refusal(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct overheard *o = ctx;
	struct err e = { 0 };
	struct net_msg m;

	(void)t;
	if (from != VICTIM || to != HOSTILE ||
	    net_msg_decode(&m, bytes->base, bytes->len, NULL) != 0)
		return;
	if (m.type == NET_MSG_REFUSE) {
		net_get_text(&m.body, "why", o->why, sizeof(o->why), &e);
		assert_int_equal(e.code, 0);
		o->refusals++;
	}
	net_msg_release(&m);
}

/* What the owner is told of a partner may be about our rows: it is in no refusal. */
static void test_refusal_is_not_the_owners_text(void **state)
{
	const uint8_t id[16] = { 7 };
	struct overheard o = { 0 };
	struct buf b = { 0 };
	struct table t;
	struct peer *p;

	(void)state;
	table_init(&t, 4);
	settle(&t);
	p = table_peer(&t, VICTIM, HOSTILE);
	p->back.failed = true;
	snprintf(p->back.why, sizeof(p->back.why), "our two ledgers differ");
	peer_trouble(victim(&t), p, ERR_USAGE, "our row of slot 17 holds a NaN");
	t.tamper = hear_refusal;
	t.ctx = &o;
	put_proposal(&t, &b, id);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	table_run(&t, t.now_ms + 1000, 1000);
	assert_true(o.refusals > 0);
	assert_string_equal(o.why, "our two ledgers differ");
	table_release(&t);
}

/* Accepts nothing, and signals after each DEFER: asked again only now and then. */
static void defers(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	uint64_t *serial = ctx;
	struct net_msg m;

	if (net_msg_decode(&m, bytes->base, bytes->len, NULL) != 0)
		return;
	if (from == VICTIM && to == HOSTILE && m.type == NET_MSG_PROPOSE) {
		struct buf b = { 0 };
		struct net_writer w;

		net_write_begin(&w, &b, NET_MSG_DEFER, m.session);
		net_put_uint(&w, "ms", 0);
		net_write_close(&w);
		table_inject(t, HOSTILE, VICTIM, &b);
		put_signal(&b, ++*serial);
		table_inject(t, HOSTILE, VICTIM, &b);
		buf_clear(bytes);
	}
	net_msg_release(&m);
}

static void test_signal_storm(void **state)
{
	struct table t;
	uint64_t serial = 1000, asked;
	struct buf b = { 0 };

	(void)state;
	table_init(&t, 5);
	table_goes_back(&t);
	settle(&t);
	t.tamper = defers;
	t.ctx = &serial;
	asked = t.agent[VICTIM].sent[NET_MSG_PROPOSE];
	put_signal(&b, serial);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	table_run(&t, t.now_ms + 10000, 100000);
	asked = t.agent[VICTIM].sent[NET_MSG_PROPOSE] - asked;
	assert_in_range(asked, 2, 150);
	finish_with_honest(&t);
	table_release(&t);
}

static void hellos_alone(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct net_msg_head h;

	(void)ctx, (void)t, (void)to;
	if (from == HOSTILE && net_msg_head(&h, bytes->base, bytes->len, NULL) == 0 &&
	    h.type != NET_MSG_HELLO)
		buf_clear(bytes);
}

/* It sends its rows, and does not, and does, as its HELLO says: the victim's disk, for which all
 * that it begins waits, is not written each time. */
static void test_roles_that_come_and_go(void **state)
{
	struct agent_core *c;
	struct table t;
	uint64_t before;

	(void)state;
	table_init(&t, 5);
	table_goes_back(&t);
	settle(&t);
	t.tamper = hellos_alone;
	c = t.agent[HOSTILE].core;
	before = t.agent[VICTIM].commits;
	for (uint64_t k = 0; k < 200; k++) {
		t.agent[HOSTILE].config.federation.roles =
			k % 2 == 0 ? CONFIG_BOTH_ROLES : CONFIG_HOST_ONLY;
		c->signal.serial = c->served_serial = 1000 + k;
		peer_say_hello(c, table_peer(&t, HOSTILE, VICTIM));
		for (size_t i = 0; i < 4; i++)
			table_step(&t);
	}
	assert_true(t.agent[VICTIM].commits - before < 20);
	t.agent[HOSTILE].config.federation.roles = CONFIG_BOTH_ROLES;
	finish_with_honest(&t);
	table_release(&t);
}

/* It has had all that our budget allows, and signals on: nothing is proposed to it, so no signal of
 * its is worth a write. */
static void test_signals_without_a_budget(void **state)
{
	struct table t;
	uint64_t before;

	(void)state;
	table_init(&t, 5);
	table_goes_back(&t);
	t.agent[VICTIM].config.federation.translator = CONFIG_MAP;
	t.agent[VICTIM].config.privacy.release_noise = 20;
	t.agent[VICTIM].config.privacy.epsilon_per_peer = 0.2; /* one */
	settle(&t);
	t.tamper = hellos_alone;
	before = t.agent[VICTIM].commits;
	for (uint64_t k = 0; k < 200; k++) {
		struct buf b = { 0 };

		put_signal(&b, 1000 + k);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		for (size_t i = 0; i < 4; i++)
			table_step(&t);
	}
	assert_true(t.agent[VICTIM].commits - before < 20);
	assert_non_null(strstr(table_peer(&t, VICTIM, HOSTILE)->trouble, "budget exhausted"));
	table_release(&t);
}

/* A signal of a serial that no session will ever bring is forgotten when the peer says
 * in ACCEPT which one it has. */
static void test_signal_of_the_future(void **state)
{
	struct table t;
	struct buf b = { 0 };
	uint64_t rounds;

	(void)state;
	table_init(&t, 6);
	table_goes_back(&t);
	settle(&t);
	rounds = victim(&t)->rounds;
	put_signal(&b, UINT64_MAX);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(victim(&t)->rounds, rounds + 1);
	assert_false(table_peer(&t, VICTIM, HOSTILE)->queued);
	finish_with_honest(&t);
	table_release(&t);
}

/* ---- silence ---- */

/* Many short jobs in a row: the peer still hears that we are alive. */
static void test_working_is_told(void **state)
{
	struct table t;
	struct agent_core *c;
	uint64_t *due;

	(void)state;
	table_init(&t, 7);
	start_linked(&t);
	hold_job(&t, -1, PHASE_PSI);
	c = victim(&t);
	due = &t.agent[VICTIM].due[AGENT_TIMER_WORKING];
	for (int k = 0; k < 20; k++) { /* ten seconds, twice the lease */
		struct agent_event e = { .kind = AGENT_EVENT_TIMER, .timer = AGENT_TIMER_WORKING };

		session_ready(session_first(c));
		session_wait(session_first(c));
		t.now_ms += 500;
		e.now_ms = c->now_ms = t.now_ms;
		if (*due <= t.now_ms)
			agent_core_event(c, &e);
	}
	assert_in_range(t.agent[VICTIM].working, 4, 10);
	table_release(&t);
}

/* ---- records of members ---- */

static void put_members(struct buf *b, const struct agent_member *m, size_t n,
			const uint8_t secret[64])
{
	struct net_writer w;

	net_write_begin(&w, b, NET_MSG_MEMBERS, NULL);
	net_put_list(&w, "m");
	for (size_t i = 0; i < n; i++) {
		struct buf r = { 0 };

		agent_member_sign(&m[i], secret, &r);
		net_put_bin(&w, NULL, r.base, r.len);
		buf_release(&r);
	}
	net_put_end(&w);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static struct agent_member forged(const struct table_agent *as, const uint8_t sign[32])
{
	struct agent_member m = { .time_ms = INT64_C(1700080000000) };

	memcpy(m.key, as->key, 32);
	memcpy(m.sign_key, sign, 32);
	snprintf(m.name, sizeof(m.name), "somebody");
	return m;
}

/* Who says that a partner signs with another key than we know is not believed. */
static void test_forged_member(void **state)
{
	struct table t;
	struct agent_member m;
	struct buf b = { 0 };

	(void)state;
	table_init(&t, 8);
	table_start(&t);
	for (size_t i = 0; i < 20; i++)
		table_step(&t);
	table_link(&t, VICTIM, HOSTILE, true);
	t.agent[HOSTILE].improvements = 0;
	table_run(&t, t.now_ms + 20000, 100000);
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0; /* as after a while */
	m = forged(&t.agent[HONEST], t.agent[HOSTILE].sign_public);
	put_members(&b, &m, 1, t.agent[HOSTILE].sign_secret);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	for (size_t i = 0; i < victim(&t)->n_member_records; i++)
		assert_memory_not_equal(victim(&t)->member_records[i].member.key,
					t.agent[HONEST].key, 32);
	finish_with_honest(&t);
	table_release(&t);
}

/* The most records that the victim has told one of the others at a time: its own, and others'. */
struct told {
	size_t to, most;
};

static void count_records(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct told *x = ctx;
	struct net_msg m;

	(void)t;
	if (from != VICTIM || to != x->to || bytes->len == 0)
		return;
	assert_int_equal(net_msg_decode(&m, bytes->base, bytes->len, NULL), 0);
	if (m.type == NET_MSG_MEMBERS) {
		struct err e = { 0 };
		size_t n = net_get_list(&m.body, "m", MEMBERS_MAX + 1, &e).n;

		x->most = n > x->most ? n : x->most;
	}
	net_msg_release(&m);
}

static size_t introduced(bool wanted)
{
	struct table t;
	struct told x = { .to = HONEST };

	table_init(&t, 8);
	t.agent[VICTIM].config.federation.introduce = wanted;
	settle(&t);
	assert_int_equal(victim(&t)->n_member_records, 1);
	t.tamper = count_records;
	t.ctx = &x;
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, t.now_ms + 20000, 100000);
	table_release(&t);
	return x.most;
}

/* Who our other partners are is told to nobody unless the owner wants that. */
static void partners_are_introduced_on_request(void **state)
{
	(void)state;
	assert_int_equal(introduced(false), 1);
	assert_int_equal(introduced(true), 2);
}

/* Nor is a partner told of by a record that others may have made: it has not said how it signs. */
static void test_hearsay_of_a_partner(void **state)
{
	struct told x = { .to = HOSTILE };
	struct agent_member m;
	struct buf b = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 8);
	t.agent[VICTIM].config.federation.introduce = true;
	settle(&t);
	memset(table_peer(&t, VICTIM, HONEST)->info.sign_key, 0, 32);
	m = forged(&t.agent[HONEST], t.agent[HOSTILE].sign_public);
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
	put_members(&b, &m, 1, t.agent[HOSTILE].sign_secret);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_int_equal(victim(&t)->n_member_records, 2); /* heard it is */
	t.tamper = count_records;
	t.ctx = &x;
	table_link(&t, VICTIM, HOSTILE, true);
	table_run(&t, t.now_ms + 20000, 100000);
	assert_int_equal(x.most, 1);
	table_release(&t);
}

/* Nor by one that is signed as its line says, while it has not said so itself on a link. */
static void test_a_line_introduces_nobody(void **state)
{
	struct told x = { .to = HOSTILE };
	struct agent_member m;
	struct buf b = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 8);
	t.agent[VICTIM].config.federation.introduce = true;
	settle(&t);
	m = forged(&t.agent[HONEST], t.agent[HONEST].sign_public);
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
	put_members(&b, &m, 1, t.agent[HONEST].sign_secret);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_int_equal(victim(&t)->n_member_records, 2);
	t.tamper = count_records;
	t.ctx = &x;
	table_link(&t, VICTIM, HOSTILE, true);
	table_run(&t, t.now_ms + 20000, 100000);
	assert_int_equal(x.most, 1);
	table_release(&t);
}

/* What others still tell of a key that its owner has replaced is no news. */
static void test_hearsay_of_a_replaced_key(void **state)
{
	struct ledger_rotation r = { .number = 1, .proved = true };
	const struct ledger_rotations all = { &r, 1 };
	struct agent_member m;
	struct buf b = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 8);
	settle(&t);
	memcpy(r.old_key, t.agent[HONEST].key, 32);
	ledger_rotations_copy(&victim(&t)->account.rotations, &all);
	m = forged(&t.agent[HONEST], t.agent[HONEST].sign_public);
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
	put_members(&b, &m, 1, t.agent[HONEST].sign_secret);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_int_equal(victim(&t)->n_member_records, 1);
	table_release(&t);
}

static const struct agent_member *heard_of(struct table *t, size_t who)
{
	const struct agent_core *c = victim(t);

	for (size_t i = 0; i < c->n_member_records; i++)
		if (memcmp(c->member_records[i].member.key, t->agent[who].key, 32) == 0)
			return &c->member_records[i].member;
	fail_msg("no record of agent %zu", who);
	return NULL;
}

/* A partner whose clock was a year ahead when it made its record, and who has moved since: what it
 * says itself is newer than what it has said before, whatever the clock; and so is what others say
 * of it. */
static void test_record_of_a_clock_that_was_ahead(void **state)
{
	struct agent_member m;
	struct buf b = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 8);
	t.agent[HONEST].ahead_ms = (int64_t)400 * 24 * 3600 * 1000;
	settle(&t);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, t.now_ms + 20000, 100000);
	m = *heard_of(&t, HONEST);
	assert_true(m.time_ms > (int64_t)t.now_ms + 1700000000000 + 24 * 3600 * 1000);
	snprintf(m.address, sizeof(m.address), "a.example:7");
	m.time_ms = (int64_t)t.now_ms + 1700000000000;
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
	put_members(&b, &m, 1, t.agent[HONEST].sign_secret);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_string_equal(heard_of(&t, HONEST)->address, "a.example:7");
	t.agent[HONEST].ahead_ms = 0;
	assert_int_equal(
		config_set(&t.agent[HONEST].config, NULL, "advertise", "b.example:7", NULL), 0);
	table_link(&t, VICTIM, HONEST, false);
	table_run(&t, t.now_ms + 20000, 100000);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, t.now_ms + 20000, 100000);
	assert_string_equal(heard_of(&t, HONEST)->address, "b.example:7");
	table_release(&t);
}

static void advertises(struct table *t, size_t who, const char *address)
{
	assert_int_equal(config_set(&t->agent[who].config, NULL, "advertise", address, NULL), 0);
	table_link(t, VICTIM, who, false);
	table_run(t, t->now_ms + 20000, 100000);
	table_link(t, VICTIM, who, true);
	table_run(t, t->now_ms + 20000, 100000);
	assert_true(table_peer(t, VICTIM, who)->greeted);
}

/* It is what a partner has signed itself, while it is linked, too, and for that partner alone. */
static void test_address_that_a_partner_says(void **state)
{
	const struct table_agent *v;
	struct agent_status status;
	struct agent_member m;
	struct buf b = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 8);
	settle(&t);
	v = &t.agent[VICTIM];
	table_peer(&t, VICTIM, HONEST)->info.address[0] = '\0';
	advertises(&t, HONEST, "a.example:7");
	assert_string_equal(v->dials[HONEST], "a.example:7");
	assert_string_equal(table_peer(&t, VICTIM, HONEST)->info.address, "");
	agent_core_status(v->core, &status);
	assert_string_equal(status.peer[HONEST - 1].address, "a.example:7");
	agent_status_release(&status);
	m = forged(&t.agent[HONEST], t.agent[HOSTILE].sign_public);
	m.time_ms = heard_of(&t, HONEST)->time_ms + 1000;
	snprintf(m.address, sizeof(m.address), "evil.example:7");
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
	put_members(&b, &m, 1, t.agent[HOSTILE].sign_secret);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_string_equal(v->dials[HONEST], "a.example:7");
	advertises(&t, HONEST, "b.example:7"); /* it has moved */
	assert_string_equal(v->dials[HONEST], "b.example:7");
	snprintf(table_peer(&t, VICTIM, HONEST)->info.address, 20, "owner.example:7");
	peer_link_anew(victim(&t), table_peer(&t, VICTIM, HONEST));
	advertises(&t, HONEST, "c.example:7");
	assert_string_equal(v->dials[HONEST], "owner.example:7");
	table_release(&t);
}

/* What listen says is told, but not where the service manager has handed over another socket. */
static void test_listens_elsewhere(void **state)
{
	struct table t;
	struct config *c;

	(void)state;
	table_init(&t, 8);
	settle(&t);
	c = &t.agent[HONEST].config;
	assert_int_equal(config_set(c, NULL, "listen", "a.example:7", NULL), 0);
	advertises(&t, HONEST, "");
	assert_string_equal(heard_of(&t, HONEST)->address, "a.example:7");
	agent_core_socket_given(t.agent[HONEST].core);
	advertises(&t, HONEST, "");
	assert_string_equal(heard_of(&t, HONEST)->address, "");
	advertises(&t, HONEST, "b.example:7");
	assert_string_equal(heard_of(&t, HONEST)->address, "b.example:7");
	table_release(&t);
}

/* An accomplice passes on what the partner signs: that we dial no sooner. */
static void test_a_partner_that_moves_all_the_time(void **state)
{
	const struct table_agent *v;
	struct agent_member m;
	struct table t;
	size_t connects;

	(void)state;
	table_init(&t, 8);
	settle(&t);
	v = &t.agent[VICTIM];
	table_peer(&t, VICTIM, HONEST)->info.address[0] = '\0';
	advertises(&t, HONEST, "a.example:7");
	m = *heard_of(&t, HONEST);
	connects = v->connects[HONEST];
	for (unsigned i = 0; i < 30; i++) {
		struct buf b = { 0 };

		m.time_ms += 1000;
		snprintf(m.address, sizeof(m.address), "h%u.example:7", i);
		table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
		put_members(&b, &m, 1, t.agent[HONEST].sign_secret);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		assert_string_equal(v->dials[HONEST], m.address);
	}
	assert_int_equal(v->connects[HONEST], connects);
	table_release(&t);
}

/* Whoever dials these reaches itself, or nobody. */
static void test_addresses_that_nobody_can_dial(void **state)
{
	const char *const says[] = { "0.0.0.0:7447", "[::]:7447", "a.example:0", "a.example" };
	struct agent_member m;
	struct buf b = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 8);
	settle(&t);
	table_peer(&t, VICTIM, HONEST)->info.address[0] = '\0';
	advertises(&t, HONEST, "a.example:7");
	for (size_t i = 0; i < sizeof(says) / sizeof(says[0]); i++) {
		m = *heard_of(&t, HONEST);
		m.time_ms += 1000;
		snprintf(m.address, sizeof(m.address), "%s", says[i]);
		table_peer(&t, VICTIM, HONEST)->members_ms = 0;
		put_members(&b, &m, 1, t.agent[HONEST].sign_secret);
		table_deliver(&t, HONEST, VICTIM, &b);
		assert_string_equal(heard_of(&t, HONEST)->address, says[i]);
		assert_string_equal(t.agent[VICTIM].dials[HONEST], "");
	}
	table_release(&t);
}

/* Its battery is empty, or its owner has typed a wrong date: that breaks no rule. */
static void test_a_clock_of_before_1970(void **state)
{
	struct table t;

	(void)state;
	table_init(&t, 8);
	t.agent[HONEST].ahead_ms = -(int64_t)1700000000000 - (int64_t)86400 * 1000;
	settle(&t);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, t.now_ms + 20000, 100000);
	assert_true(table_peer(&t, VICTIM, HONEST)->greeted);
	assert_int_equal(table_peer(&t, VICTIM, HONEST)->conduct.breaches, 0);
	table_release(&t);
}

/* What is told of an agent whose clock is ahead is not taken, and the owner hears why. */
static void test_hearsay_of_a_clock_that_is_ahead(void **state)
{
	struct agent_member m;
	struct buf b = { 0 };
	struct table t;
	size_t known, told;

	(void)state;
	table_init(&t, 8);
	settle(&t);
	known = victim(&t)->n_member_records;
	m = forged(&t.agent[HOSTILE], t.agent[HOSTILE].sign_public);
	memset(m.key, 77, sizeof(m.key));
	m.time_ms = (int64_t)t.now_ms + 1700000000000 + (int64_t)25 * 3600 * 1000;
	put_members(&b, &m, 1, t.agent[HOSTILE].sign_secret);
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
	told = t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE];
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_int_equal(victim(&t)->n_member_records, known);
	assert_int_equal(t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE], told + 1);
	assert_string_equal(table_peer(&t, VICTIM, HOSTILE)->trouble, ""); /* it is not its own */
	table_release(&t);
}

/* Ever younger records, as fast as they go: few of them cost a signature and a write. */
static void test_member_flood(void **state)
{
	struct table t;
	struct agent_member m;
	uint64_t writes;

	(void)state;
	table_init(&t, 9);
	settle(&t);
	m = forged(&t.agent[HOSTILE], t.agent[HOSTILE].sign_public);
	writes = t.agent[VICTIM].writes[STORE_PUT_MEMBER];
	for (int k = 0; k < 200; k++) {
		struct buf b = { 0 };

		m.time_ms++;
		put_members(&b, &m, 1, t.agent[HOSTILE].sign_secret);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		table_step(&t);
	}
	assert_in_range(t.agent[VICTIM].writes[STORE_PUT_MEMBER] - writes, 0, 2);
	assert_true(victim(&t)->n_commits < 4);
	table_release(&t);
}

enum { OTHERS = MEMBERS_MAX - 1 };

/* For a minute, each second: a partner tells of all.  Who they are is heard once, of new names so
 * often that no disk fills. */
static uint64_t told_for_a_minute(bool other_names, uint64_t *writes)
{
	struct table t;
	struct agent_member m[OTHERS];
	uint64_t heard, before;

	table_init(&t, 9);
	settle(&t);
	for (size_t i = 0; i < OTHERS; i++) {
		m[i] = forged(&t.agent[HOSTILE], t.agent[HOSTILE].sign_public);
		memset(m[i].key, (int)i + 1, 32);
	}
	heard = t.agent[VICTIM].notices[AGENT_NOTICE_MEMBER];
	before = t.agent[VICTIM].writes[STORE_PUT_MEMBER];
	for (int k = 0; k < 60; k++) {
		struct buf b = { 0 };

		for (size_t i = 0; i < OTHERS; i++) {
			m[i].time_ms++;
			if (other_names)
				snprintf(m[i].name, sizeof(m[i].name), "nobody %d", k);
		}
		put_members(&b, m, OTHERS, t.agent[HOSTILE].sign_secret);
		table_deliver(&t, HOSTILE, VICTIM, &b);
		table_run(&t, t.now_ms + 1000, 1000);
	}
	*writes = t.agent[VICTIM].writes[STORE_PUT_MEMBER] - before;
	heard = t.agent[VICTIM].notices[AGENT_NOTICE_MEMBER] - heard;
	table_release(&t);
	return heard;
}

static void test_members_all_the_time(void **state)
{
	uint64_t writes;

	(void)state;
	assert_int_equal(told_for_a_minute(false, &writes), OTHERS);
	assert_in_range(writes, OTHERS, OTHERS + 20);
	assert_in_range(told_for_a_minute(true, &writes), OTHERS, OTHERS + 20);
}

/* Strangers that a partner invents do not keep a partner's own record out. */
static void test_members_fill_up(void **state)
{
	struct table t;
	struct agent_member m[MEMBERS_MAX];
	struct buf b = { 0 };
	bool found = false;

	(void)state;
	table_init(&t, 10);
	settle(&t);
	for (size_t i = 0; i < MEMBERS_MAX; i++) {
		m[i] = forged(&t.agent[HOSTILE], t.agent[HOSTILE].sign_public);
		memset(m[i].key, (int)i + 1, 32);
	}
	table_peer(&t, VICTIM, HOSTILE)->members_ms = 0;
	put_members(&b, m, MEMBERS_MAX, t.agent[HOSTILE].sign_secret);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_int_equal(victim(&t)->n_member_records, MEMBERS_MAX);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, t.now_ms + 60000, 100000);
	assert_int_equal(victim(&t)->n_member_records, MEMBERS_MAX);
	for (size_t i = 0; i < MEMBERS_MAX; i++)
		found |= memcmp(victim(&t)->member_records[i].member.key, t.agent[HONEST].key,
				32) == 0;
	assert_true(found);
	table_release(&t);
}

static bool has_heard(struct table *t, int key)
{
	const struct agent_core *c = victim(t);

	for (size_t i = 0; i < c->n_member_records; i++)
		if (c->member_records[i].member.key[0] == key)
			return true;
	return false;
}

/* Keys from this byte on. */
static void tell_of(struct table *t, size_t from, int key, size_t n)
{
	struct agent_member m[MEMBERS_MAX];
	struct buf b = { 0 };

	for (size_t i = 0; i < n; i++) {
		m[i] = forged(&t->agent[from], t->agent[from].sign_public);
		memset(m[i].key, key + (int)i, 32);
	}
	table_peer(t, VICTIM, from)->members_ms = table_peer(t, VICTIM, from)->records_ms = 0;
	put_members(&b, m, n, t->agent[from].sign_secret);
	table_deliver(t, from, VICTIM, &b);
}

/* Nor strangers that another partner tells of; and who names a stranger first with keys of its own
 * does not do so unseen. */
static void test_strangers_fill_up(void **state)
{
	struct table t;

	(void)state;
	table_init(&t, 10);
	settle(&t);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, t.now_ms + 60000, 100000);
	tell_of(&t, HOSTILE, 1, MEMBERS_MAX);
	assert_int_equal(victim(&t)->n_member_records, MEMBERS_MAX);
	tell_of(&t, HONEST, 200, 2);
	assert_true(has_heard(&t, 200) && has_heard(&t, 201));
	tell_of(&t, HOSTILE, 1, MEMBERS_MAX);
	tell_of(&t, HOSTILE, 129, 70); /* no message makes room for more than 16 */
	assert_true(has_heard(&t, 200) && has_heard(&t, 201) && has_heard(&t, 144));
	assert_false(has_heard(&t, 145));
	assert_int_equal(victim(&t)->n_member_records, MEMBERS_MAX);
	assert_int_equal(t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE], 0);
	tell_of(&t, HONEST, 144, 1);
	assert_int_equal(t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE], 1);
	assert_non_null(strstr(t.agent[VICTIM].cause[AGENT_NOTICE_TROUBLE], "another signing key"));
	assert_string_equal(table_peer(&t, VICTIM, HONEST)->trouble, ""); /* it is not to blame */
	table_release(&t);
}

/* ---- the ledger ---- */

/* What the victim has spent toward the honest one, and `more` labels beside it. */
static double spent(struct table *t, uint64_t more)
{
	const struct ledger_account *a =
		session_ledger_account(victim(t), table_peer(t, VICTIM, HONEST));
	double epsilon;

	assert_int_equal(ledger_account_epsilon(a, more, &epsilon, NULL), 0);
	return epsilon;
}

static void host_again(struct table *t, enum config_translator translator)
{
	uint64_t rounds = victim(t)->rounds;

	t->agent[VICTIM].config.federation.translator = translator;
	t->agent[VICTIM].improvements += 2;
	t->agent[HONEST].improvements += 2;
	victim(t)->train_now = t->agent[HONEST].core->train_now = true;
	table_link(t, VICTIM, HONEST, false);
	table_link(t, VICTIM, HONEST, true);
	table_run(t, t->now_ms + 300000, 200000);
	assert_true(victim(t)->rounds > rounds);
}

/* A cap raised above the contract's leaves no more than the contract has. */
static void none_beyond_the_contract(struct table *t)
{
	struct peer *p = table_peer(t, VICTIM, HONEST);
	struct ledger_account *a =
		&p->chain.account[ledger_chain_side(&p->chain, t->agent[VICTIM].sign_public)];
	struct ledger_mechanism votes = *ledger_account_votes(a);

	a->caps.epsilon_pair = spent(t, 0);
	t->agent[VICTIM].config.privacy.epsilon_per_peer =
		t->agent[VICTIM].config.privacy.epsilon_total = 100;
	assert_int_equal(session_ledger_left(victim(t), p, &votes), 0);
	a->caps.epsilon_pair = 50;
	assert_true(session_ledger_left(victim(t), p, &votes) > 0);
}

/* What buys nothing useful is not paid for, and both sides are told why, until the owner says that
 * it shall be. */
static void refuses_what_is_useless(enum config_translator translator)
{
	struct table t;
	const struct peer *p;

	table_init(&t, 16);
	for (size_t i = 0; i < AGENTS; i++) {
		t.agent[i].config.federation.translator = translator;
		t.agent[i].config.privacy.release_noise = 8;
		t.agent[i].config.privacy.useless_sessions = CONFIG_REFUSE_USELESS;
	}
	table_start(&t);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, 60000, 100000);
	p = table_peer(&t, VICTIM, HONEST);
	assert_true(p->failed > 0);
	assert_non_null(strstr(p->trouble, "nothing useful, so nothing is spent"));
	assert_int_equal(p->chain.sequence, 0);
	assert_true(spent(&t, 0) == 0);
	t.agent[VICTIM].config.privacy.useless_sessions = CONFIG_SPEND_USELESS;
	host_again(&t, translator);
	assert_true(spent(&t, 0) > 0);
	table_release(&t);
}

static void test_useless_sessions(void **state)
{
	(void)state;
	refuses_what_is_useless(CONFIG_PPAT);
	refuses_what_is_useless(CONFIG_MAP);
}

/* What the status says of the victim's labels toward the honest one, and toward all. */
static void caps_shown(struct table *t, uint64_t *pair, uint64_t *all)
{
	struct agent_status status;

	agent_core_status(victim(t), &status);
	*pair = status.peer[HONEST - 1].labels_cap;
	*all = status.labels_cap;
	agent_status_release(&status);
}

static void lower_caps_are_shown(struct table *t)
{
	const struct config_privacy *own = &t->agent[VICTIM].config.privacy;
	const struct ledger_account *a =
		session_ledger_account(victim(t), table_peer(t, VICTIM, HONEST));
	struct ledger_caps caps;
	uint64_t pair, all;

	caps_shown(t, &pair, &all);
	assert_true(own->epsilon_per_peer < a->caps.epsilon_pair);
	assert_int_equal(ledger_caps_from(&a->mechanism, own->epsilon_per_peer, own->epsilon_total,
					  &caps, NULL),
			 0);
	assert_true(caps.pair > 0 && caps.pair < a->caps.pair);
	assert_int_equal(pair, caps.pair);
	assert_int_equal(all, caps.lineage);
}

/* A map was released, then labels under a contract; now the owner lowers the cap to where a batch
 * has room and a reserve has not.  The contract would allow it, the owner does not. */
static void test_lowered_budget(void **state)
{
	struct table t;
	double before;

	(void)state;
	table_init(&t, 14);
	for (size_t i = 0; i < AGENTS; i++) {
		t.agent[i].config.federation.translator = CONFIG_MAP;
		t.agent[i].config.privacy.release_noise = 8;
		t.agent[i].config.privacy.epsilon_per_peer =
			t.agent[i].config.privacy.epsilon_total = 50;
	}
	table_start(&t);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, 60000, 100000);
	before = spent(&t, 0);
	assert_true(before > 0);
	host_again(&t, CONFIG_PPAT);
	assert_true(spent(&t, 0) > before);
	before = spent(&t, 0);
	t.agent[VICTIM].config.privacy.epsilon_per_peer =
		t.agent[VICTIM].config.privacy.epsilon_total = (spent(&t, 4) + spent(&t, 8)) / 2;
	lower_caps_are_shown(&t);
	host_again(&t, CONFIG_PPAT);
	assert_true(spent(&t, 0) >= before);
	assert_true(spent(&t, 0) <= t.agent[VICTIM].config.privacy.epsilon_per_peer);
	none_beyond_the_contract(&t);
	table_release(&t);
}

/* Signed by the hostile host, to the victim's session. */
/* Signed by the hostile one, of the session that the victim has. */
static void put_entry(struct table *t, struct ledger_signed *s, struct buf *out)
{
	uint8_t wire[LEDGER_WIRE];
	struct net_writer w;

	ledger_sign(s, t->agent[HOSTILE].sign_secret);
	ledger_wire_encode(s, wire);
	net_write_begin(&w, out, NET_MSG_LEDGER_ENTRY, session_first(victim(t))->id);
	net_put_bin(&w, "e", wire, sizeof(wire));
	net_write_close(&w);
}

static void deliver_entry(struct table *t, struct ledger_signed *s)
{
	struct buf b = { 0 };

	put_entry(t, s, &b);
	table_deliver(t, HOSTILE, VICTIM, &b);
}

/* One more `refuse` (of nothing) of the hostile host, rightly signed; 0 if the session took it. */
static int one_more_entry(struct table *t)
{
	struct agent_core *c = victim(t);
	const struct table_agent *h = &t->agent[HOSTILE];
	struct ledger_lineage l = { 0 };
	struct ledger_draft d = { .host = h->sign_public, .lineage = &l, .time_ms = 1 };
	struct ledger_signed s = { 0 };
	struct err e = { 0 };

	memcpy(l.id, h->lineage, 32);
	d.session = session_first(c)->id;
	d.translator = session_first(c)->record.translator;
	assert_int_equal(ledger_refuse(&s.entry, &session_first(c)->peer->chain, &d, 0, &e), 0);
	deliver_entry(t, &s);
	while (session_first(c) && session_first(c)->waiting && table_step(t))
		;
	return session_first(c) ? 0 : -1;
}

static void mute(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	(void)ctx, (void)t, (void)to;
	if (from == HOSTILE)
		buf_clear(bytes);
}

/* A host cannot fill the client's disk with entries of one session. */
static void test_endless_entries(void **state)
{
	struct table t;
	size_t n = 0;

	(void)state;
	table_init(&t, 11);
	start_linked(&t);
	hold_job(&t, AGENT_CLIENT, PHASE_TRANSLATE);
	t.tamper = mute;
	table_let_jobs_end(&t);
	while (session_first(victim(&t)) && session_first(victim(&t))->waiting)
		table_step(&t);
	assert_non_null(session_first(victim(&t)));
	while (n < 100 && one_more_entry(&t) == 0)
		n++;
	assert_int_equal(n, 3); /* its reserve of 0 is the first of four */
	assert_non_null(strstr(table_peer(&t, VICTIM, HOSTILE)->trouble, "more ledger entries"));
	finish_with_honest(&t);
	table_release(&t);
}

/* A session with the victim that begins with so long a tail of the hostile one's. */
static bool begin_with_tail(struct table *t, unsigned tail)
{
	const struct peer *p = table_peer(t, HOSTILE, VICTIM);
	struct peer *v = table_peer(t, VICTIM, HOSTILE);
	struct net_writer w;
	struct buf b = { 0 };
	uint8_t id[16] = { 0 }, head[32] = { 1 };

	for (id[0] = 1; id[0] < 60; id[0]++) {
		randombytes_buf(id + 1, 15);
		net_write_begin(&w, &b, NET_MSG_PROPOSE, id);
		net_put_uint(&w, "t", CONFIG_PROCRUSTES);
		net_put_uint(&w, "ef", victim(t)->best->ent_floats);
		net_put_uint(&w, "rf", victim(t)->best->rel_floats);
		net_put_bin(&w, "a", p->version, 32);
		net_put_uint(&w, "q", v->chain.sequence + tail);
		net_put_bin(&w, "h", head, 32);
		net_put_uint(&w, "w", tail);
		net_put_bool(&w, "vn", false);
		net_put_bin(&w, "d", "", 0);
		assert_int_equal(net_write_end(&w, NULL), 0);
		table_deliver(t, HOSTILE, VICTIM, &b);
		for (int i = 0; i < 2000 && table_step(t); i++)
			;
		if (session_with(victim(t), v) != NULL &&
		    memcmp(session_with(victim(t), v)->id, id, 16) == 0)
			return true;
		table_run(t, t->now_ms + 60000, 20000);
	}
	return false;
}

/* Does the victim countersign it?  The session is over, if not. */
static bool takes(struct table *t, const struct ledger_entry *entry)
{
	struct peer *v = table_peer(t, VICTIM, HOSTILE);
	uint64_t before = v->chain.countersigned;
	struct ledger_signed s = { .entry = *entry };

	memcpy(s.entry.host, t->agent[HOSTILE].sign_public, 32);
	memcpy(s.entry.client, t->agent[VICTIM].sign_public, 32);
	ledger_lineage_of(s.entry.host, s.entry.lineage);
	s.entry.sequence = v->chain.sequence + 1;
	memcpy(s.entry.previous, v->chain.head, 32);
	s.entry.time_ms = 1;
	deliver_entry(t, &s);
	for (int i = 0; i < 2000 && table_step(t); i++)
		;
	return v->chain.countersigned == before + 1;
}

/* One session each. */
static bool takes_late(struct table *t, unsigned tail, const struct ledger_entry *entry)
{
	struct peer *v = table_peer(t, VICTIM, HOSTILE);
	struct buf b = { 0 };
	bool taken;

	assert_true(begin_with_tail(t, tail));
	taken = takes(t, entry);
	if (session_with(victim(t), v) != NULL) {
		put_abort(&b, session_with(victim(t), v)->id);
		table_deliver(t, HOSTILE, VICTIM, &b);
	}
	table_run(t, t->now_ms + 60000, 20000);
	return taken;
}

/* What a partner calls the rest of an earlier session is held to what the victim knows of it. */
static void test_tail_of_nothing(void **state)
{
	static const struct ledger_mechanism votes = {
		LEDGER_LAPLACE, LEDGER_EXACT, LEDGER_ROW_REPLACED, 4, 32, 16, 0.05, 1e-5
	};
	static const struct {
		unsigned tail;
		uint64_t rows;	  /* that a settle says the victim has disclosed */
		bool contract;	  /* with caps that its epsilon does not buy */
		bool first, then; /* is it taken, and a settle of it with the next session? */
	} cases[] = {
		{ 2, 0, false, false, false }, /* nobody leaves two entries */
		{ 1, 0, true, false, false },
		{ 1, 1000000000, false, true, false },
		{ 1, 0, false, true, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ledger_entry e = { .kind = LEDGER_RESERVE, .translator = LEDGER_UNROTATED };
		struct table t;

		if (cases[i].contract)
			e = (struct ledger_entry){
				.kind = LEDGER_CONTRACT,
				.translator = LEDGER_PPAT,
				.mechanism = votes,
				.caps = { UINT64_C(1) << 50, UINT64_C(1) << 50, 0.1, 0.1 },
			};
		memset(e.session, 7, 16);
		table_init(&t, 11);
		start_linked(&t);
		table_run(&t, 60000, 100000);
		t.tamper = mute;
		assert_int_equal(takes_late(&t, cases[i].tail, &e), cases[i].first);
		e.kind = LEDGER_SETTLE;
		e.rows = cases[i].rows;
		e.floats = 128 * e.rows;
		if (cases[i].first)
			assert_int_equal(takes_late(&t, 1, &e), cases[i].then);
		finish_with_honest(&t);
		table_release(&t);
	}
}

/* What votes of so many teachers cost takes minutes to work out, in which the victim would do
 * nothing else: what no session can have is refused, and of other contracts one is looked at in a
 * while, but for the last two that were. */
static void test_dear_contracts(void **state)
{
	static const struct {
		uint32_t teachers;
		bool soon; /* after the one before it */
		bool taken;
	} cases[] = {
		{ 1000000, false, false }, { LEDGER_TEACHERS_MAX + 1, false, false },
		{ 8, false, true },	   { 9, true, false },
		{ 8, true, true }, /* its price is known */
		{ 9, false, true },	   { 8, true, true },
		{ 7, true, false },
	};
	struct peer *v;
	struct table t;

	(void)state;
	table_init(&t, 11);
	start_linked(&t);
	table_run(&t, 60000, 100000);
	t.tamper = mute;
	v = table_peer(&t, VICTIM, HOSTILE);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct ledger_entry e = {
			.kind = LEDGER_CONTRACT,
			.translator = LEDGER_PPAT,
			.mechanism = { LEDGER_LAPLACE, LEDGER_EXACT, LEDGER_ROW_REPLACED,
				       cases[i].teachers, 32, 16, 1e-6, 1e-5 },
			.caps = { 1, 1, 10, 10 },
		};

		memset(e.session, 7, 16);
		if (cases[i].soon) { /* sessions that come to nothing rest for longer than that */
			assert_true(v->contract_ms > 0);
			v->contract_ms = t.now_ms + 3600 * 1000;
		} else {
			v->contract_ms = 0;
		}
		assert_int_equal(takes_late(&t, 1, &e), cases[i].taken);
	}
	finish_with_honest(&t);
	table_release(&t);
}

static bool is_reserve(const struct session *s)
{
	const struct ledger_signed *entry =
		s->role == AGENT_HOST ? s->peer->chain.tail : &s->receipt;

	return entry->entry.kind == LEDGER_RESERVE;
}

/* Until the victim, in this role, has a reserve on the way to its disk that the conversation
 * does not wait for. */
static void reserve_under_way(struct table *t, enum agent_role role)
{
	const struct agent_core *c = victim(t);

	for (size_t i = 0; i < 20000; i++) {
		if (session_first(c) && session_first(c)->beside &&
		    session_first(c)->role == role && is_reserve(session_first(c)))
			return;
		table_run(t, t->now_ms + 60000, 1);
	}
	fail_msg("no such entry came");
}

static void entry_under_way(struct table *t, enum agent_role role)
{
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.federation.translator = CONFIG_PPAT;
		t->agent[i].config.privacy.epsilon_per_peer =
			t->agent[i].config.privacy.epsilon_total = 50;
	}
	start_linked(t);
	reserve_under_way(t, role);
}

/* The client knows what the host's entry will be, and countersigns what it was never sent: no
 * label leaves before the host's own disk has it. */
static void test_ack_before_the_entry(void **state)
{
	struct table t;
	struct ledger_signed entry;
	struct buf b = { 0 };
	struct net_writer w;

	(void)state;
	table_init(&t, 15);
	entry_under_way(&t, AGENT_HOST);
	assert_int_equal(session_first(victim(&t))->peer->chain.n_tail, 1);
	entry = session_first(victim(&t))->peer->chain.tail[0];
	ledger_countersign(&entry, t.agent[HOSTILE].sign_secret);
	net_write_begin(&w, &b, NET_MSG_LEDGER_ACK, session_first(victim(&t))->id);
	net_put_bin(&w, "h", entry.hash, 32);
	net_put_bin(&w, "s", entry.countersignature, LEDGER_SIGNATURE);
	net_write_close(&w);
	table_deliver(&t, HOSTILE, VICTIM, &b);
	assert_null(session_first(victim(&t)));
	table_let_jobs_end(&t);
	finish_with_honest(&t);
	table_release(&t);
}

/* Nor does a host get two entries past the client at once. */
static void test_entry_upon_entry(void **state)
{
	struct table t;
	const struct table_agent *h = &t.agent[HOSTILE];
	struct ledger_lineage l;
	struct ledger_draft d = {
		.host = h->sign_public, .lineage = &l, .translator = LEDGER_PPAT, .time_ms = 1
	};
	struct ledger_signed s = { 0 };

	(void)state;
	table_init(&t, 16);
	entry_under_way(&t, AGENT_CLIENT);
	d.session = session_first(victim(&t))->id;
	session_ledger_spent(h->core, &l);
	assert_int_equal(
		ledger_reserve(&s.entry, &session_first(victim(&t))->peer->chain, &d, 4, NULL), 0);
	ledger_lineage_release(&l);
	deliver_entry(&t, &s);
	assert_null(session_first(victim(&t)));
	table_let_jobs_end(&t);
	finish_with_honest(&t);
	table_release(&t);
}

/* Under a second lineage a host would have a second cap over all its partners: a client signs
 * nothing of it. */
static void test_another_lineage(void **state)
{
	(void)state;
	for (int other = 0; other < 2; other++) {
		const struct ledger_chain *c;
		struct table t;

		table_init(&t, 17);
		t.agent[HOSTILE].lineage[5] ^= (uint8_t)other;
		start_linked(&t);
		table_run(&t, t.now_ms + 60000, 20000);
		c = &table_peer(&t, VICTIM, HOSTILE)->chain;
		assert_true(
			(c->account[ledger_chain_side(c, t.agent[HOSTILE].sign_public)].time_ms >
			 0) == (other == 0));
		finish_with_honest(&t);
		table_release(&t);
	}
}

/* ---- entries that say something else than what is ---- */

static void other_transcript(struct ledger_entry *e)
{
	e->transcript[0] ^= 1;
}

static void fewer_labels(struct ledger_entry *e)
{
	e->count--;
	e->total_pair--;
	e->total_lineage--;
}

static void other_dim(struct ledger_entry *e)
{
	e->mechanism.dim++;
}

static void other_batch(struct ledger_entry *e)
{
	e->mechanism.batch++;
}

static void other_teachers(struct ledger_entry *e)
{
	e->mechanism.teachers++;
}

static void larger_cap(struct ledger_entry *e)
{
	e->caps.lineage++;
}

static void other_translator(struct ledger_entry *e)
{
	e->translator = LEDGER_MAP;
}

/* The first entry of a kind that the hostile host sends, changed and signed anew. */
struct entry_lie {
	enum config_translator translator;
	enum ledger_kind kind;
	void (*change)(struct ledger_entry *e);
	const char *why;
	bool told;
};

static void tell_lie(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct entry_lie *x = ctx;
	struct ledger_signed s;
	struct net_message m;

	if (x->told || from != HOSTILE || to != VICTIM ||
	    net_message_decode(&m, bytes->base, bytes->len, NULL) != 0 ||
	    m.type != NET_MSG_LEDGER_ENTRY)
		return;
	assert_int_equal(ledger_wire_decode(&s, NULL, m.ledger_entry.entry, LEDGER_WIRE, NULL), 0);
	if (s.entry.kind != x->kind)
		return;
	x->change(&s.entry);
	x->told = true;
	buf_clear(bytes);
	put_entry(t, &s, bytes);
}

static void all_translate_by(struct table *t, enum config_translator translator)
{
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.federation.translator = translator;
		t->agent[i].config.privacy.release_noise = 20;
		t->agent[i].config.privacy.epsilon_per_peer =
			t->agent[i].config.privacy.epsilon_total = 50;
	}
}

/* A client signs what its session is about, and what it has seen itself. */
static void test_entries_that_lie(void **state)
{
	static const struct entry_lie lies[] = {
		{ CONFIG_PROCRUSTES, LEDGER_SETTLE, other_transcript, "another transcript", 0 },
		{ CONFIG_PPAT, LEDGER_SETTLE, fewer_labels, "fewer labels than came", 0 },
		{ CONFIG_PPAT, LEDGER_CONTRACT, other_dim, "not that of the session", 0 },
		{ CONFIG_PPAT, LEDGER_CONTRACT, other_batch, "not that of the session", 0 },
		{ CONFIG_PPAT, LEDGER_CONTRACT, other_teachers, "not that of the session", 0 },
		{ CONFIG_MAP, LEDGER_CONTRACT, other_dim, "not that of the session", 0 },
		{ CONFIG_MAP, LEDGER_CONTRACT, larger_cap, "more labels than their epsilon", 0 },
		{ CONFIG_PPAT, LEDGER_RESERVE, other_translator, "another translator", 0 },
	};

	(void)state;
	for (size_t k = 0; k < sizeof(lies) / sizeof(lies[0]); k++) {
		struct entry_lie x = lies[k];
		struct table t;

		table_init(&t, 18);
		all_translate_by(&t, x.translator);
		t.tamper = tell_lie;
		t.ctx = &x;
		start_linked(&t);
		for (size_t i = 0; i < 20000 && !x.told; i++)
			table_run(&t, t.now_ms + 60000, 1);
		assert_true(x.told);
		for (size_t i = 0; i < 2000 && session_first(victim(&t)) != NULL; i++)
			table_step(&t);
		assert_non_null(strstr(table_peer(&t, VICTIM, HOSTILE)->trouble, x.why));
		finish_with_honest(&t);
		table_release(&t);
	}
}

/* Labels of a host that has reserved none end the session. */
static void test_labels_without_a_reserve(void **state)
{
	struct table t;
	const struct peer *v;

	(void)state;
	table_init(&t, 18);
	all_translate_by(&t, CONFIG_PPAT);
	start_linked(&t);
	v = table_peer(&t, VICTIM, HOSTILE);
	for (size_t i = 0; i < 20000 && v->trouble[0] == '\0'; i++) {
		struct session *s = session_first(t.agent[HOSTILE].core);

		if (s != NULL && s->role == AGENT_HOST && s->phase == PHASE_OPENING)
			s->reserved = s->ahead = 1000; /* it believes */
		table_run(&t, t.now_ms + 60000, 1);
	}
	assert_non_null(strstr(v->trouble, "that no reserve covers"));
	finish_with_honest(&t);
	table_release(&t);
}

/* ---- nothing hostile: crashes and owners ---- */

static void wish_close(struct table *t, size_t at, size_t other)
{
	struct store_batch b = { 0 };
	uint8_t keys[33] = { 1 };

	memcpy(keys + 1, t->agent[other].sign_public, 32);
	store_batch_meta(&b, AGENT_META_CLOSE, keys, sizeof(keys));
	assert_int_equal(disk_apply(&t->agent[at].disk, &b, NULL), 0);
	store_batch_release(&b);
}

static void learn_again(struct table *t)
{
	t->agent[VICTIM].improvements += 2;
	t->agent[HOSTILE].improvements += 2;
	victim(t)->train_now = t->agent[HOSTILE].core->train_now = true;
	table_link(t, VICTIM, HOSTILE, false);
	table_link(t, VICTIM, HOSTILE, true);
}

/* As the victim's disk has it, and its chain with the host. */
static uint64_t not_settled(struct table *t)
{
	const struct store_meta *m = disk_meta(&t->agent[VICTIM].disk, AGENT_META_UNSETTLED);
	struct agent_unsettled_list u = { 0 };

	if (m != NULL) {
		assert_int_equal(agent_unsettled_read(&u, m->base, m->len - 1, NULL), ERR_STORE);
		assert_int_equal(u.n, 0);
		assert_int_equal(agent_unsettled_read(&u, m->base, m->len, NULL), 0);
	}
	return agent_unsettled_rows(&u, &table_peer(t, VICTIM, HOSTILE)->chain,
				    t->agent[HOSTILE].sign_public);
}

/* Until the victim, as client, has the host's settle on the way to its disk, which is put back to
 * before. */
static void settle_is_lost(struct table *t)
{
	const struct agent_core *c = victim(t);
	struct disk before = { 0 };

	for (size_t i = 0; i < 20000; i++) {
		const struct session *s = session_first(c);

		if (s != NULL && s->role == AGENT_CLIENT && s->waiting &&
		    s->receipt.entry.kind == LEDGER_SETTLE && s->peer->chain.n_tail == 0) {
			table_kill(t, VICTIM);
			disk_copy(&t->agent[VICTIM].disk, &before);
			disk_release(&before);
			table_restart(t, VICTIM);
			return;
		}
		disk_copy(&before, &t->agent[VICTIM].disk);
		table_run(t, t->now_ms + 60000, 1);
	}
	fail_msg("no such entry came");
}

/* Nothing hostile: a settle that a crash of ours has left unsigned is signed with the next session,
 * also after one more start, and where the crash comes in that session. */
static void test_settle_after_crashes(void **state)
{
	struct table t;
	const struct ledger_chain *a, *b;

	(void)state;
	table_init(&t, 19);
	start_linked(&t);
	settle_is_lost(&t);
	for (size_t k = 0; k < 3; k++) {
		table_kill(&t, VICTIM);
		table_restart(&t, VICTIM);
		table_run(&t, t.now_ms + 1000, 100000);
		a = &table_peer(&t, VICTIM, HOSTILE)->chain;
		b = &table_peer(&t, HOSTILE, VICTIM)->chain;
		assert_int_equal(b->n_tail, 1);
		assert_int_equal(b->tail[0].entry.kind, LEDGER_SETTLE);
		assert_int_equal(a->sequence + 1, b->sequence);
		assert_int_equal(not_settled(&t), b->tail[0].entry.rows);
		if (k == 1) { /* and in the session that brings it */
			table_link(&t, VICTIM, HOSTILE, true);
			for (size_t i = 0; i < 20000; i++) {
				const struct session *s = session_first(victim(&t));

				if (s != NULL && s->recorded && !s->waiting)
					break;
				table_run(&t, t.now_ms + 60000, 1);
			}
			assert_non_null(session_first(victim(&t)));
		}
	}
	table_link(&t, VICTIM, HOSTILE, true);
	learn_again(&t);
	table_run(&t, t.now_ms + 300000, 200000);
	a = &table_peer(&t, VICTIM, HOSTILE)->chain;
	b = &table_peer(&t, HOSTILE, VICTIM)->chain;
	assert_int_equal(a->n_tail + b->n_tail, 0);
	assert_memory_equal(a->head, b->head, 32);
	assert_int_equal(not_settled(&t), 0);
	finish_with_honest(&t);
	table_release(&t);
}

static size_t contracts_on(const struct disk *d)
{
	size_t n = 0;

	for (size_t i = 0; i < d->n_entries; i++)
		n += d->entries[i].entry.kind == LEDGER_CONTRACT;
	return n;
}

/* A crash leaves a reserve that the partner has never seen, and both owners close their contracts:
 * each makes one new one, on the chain as it then is. */
static void test_both_close(void **state)
{
	struct table t;
	const struct ledger_chain *a, *b;

	(void)state;
	table_init(&t, 17);
	entry_under_way(&t, AGENT_HOST);
	table_run(&t, 60000, 100000);
	learn_again(&t);
	reserve_under_way(&t, AGENT_HOST);
	assert_int_equal(contracts_on(&t.agent[VICTIM].disk), 2);
	table_kill(&t, VICTIM);
	table_kill(&t, HOSTILE);
	wish_close(&t, VICTIM, HOSTILE);
	wish_close(&t, HOSTILE, VICTIM);
	table_restart(&t, VICTIM);
	table_restart(&t, HOSTILE);
	assert_int_equal(table_peer(&t, VICTIM, HOSTILE)->chain.n_tail, 1);
	assert_int_equal(table_peer(&t, HOSTILE, VICTIM)->chain.n_tail, 0);
	for (size_t k = 0; k < 2; k++) { /* the second time the wish is fulfilled, also on disk */
		learn_again(&t);
		table_run(&t, t.now_ms + 60000, 100000);
		a = &table_peer(&t, VICTIM, HOSTILE)->chain;
		b = &table_peer(&t, HOSTILE, VICTIM)->chain;
		assert_int_equal(a->n_tail + b->n_tail, 0);
		assert_memory_equal(a->head, b->head, 32);
		assert_true(victim(&t)->sessions >= 2);
		assert_int_equal(contracts_on(&t.agent[VICTIM].disk), 4);
		assert_int_equal(contracts_on(&t.agent[HOSTILE].disk), 4);
		table_kill(&t, VICTIM);
		table_restart(&t, VICTIM);
	}
	finish_with_honest(&t);
	table_release(&t);
}

/* ---- memory and logs ---- */

/* Tiny messages while a job runs: what they cost in memory is what is counted. */
static void test_inbox_is_bounded(void **state)
{
	struct table t;
	struct buf b = { 0 }, copy = { 0 };
	struct net_writer w;
	size_t n = 0;

	(void)state;
	table_init(&t, 12);
	start_linked(&t);
	hold_job(&t, -1, PHASE_PSI);
	net_write_begin(&w, &b, NET_MSG_CONV, session_first(victim(&t))->id);
	net_write_close(&w);
	for (; n < 3000000 && session_first(victim(&t)); n++) {
		buf_add(&copy, b.base, b.len);
		table_deliver(&t, HOSTILE, VICTIM, &copy);
	}
	buf_release(&b);
	assert_null(session_first(victim(&t)));
	assert_true(n * (sizeof(struct queued_message) + 32) <= INBOX_MAX + 1000);
	table_let_jobs_end(&t);
	table_release(&t);
}

/* ---- names of one side as shared ones ---- */

/* The points of a DOUBLE of the intersection, within the message; NULL: it is another. */
static uint8_t *doubled_points(struct buf *bytes, size_t *len)
{
	struct net_message m;
	struct net_body body;
	struct net_bytes points;
	struct err e = { 0 };

	if (net_message_decode(&m, bytes->base, bytes->len, NULL) != 0 || m.type != NET_MSG_CONV ||
	    m.conv.conversation != CONV_PSI || !m.conv.has_part ||
	    m.conv.part.kind != NET_PSI_DOUBLE)
		return NULL;
	assert_int_equal(net_body_decode(&body, m.conv.part.body.base, m.conv.part.body.len, &e),
			 0);
	points = net_get_bin(&body.map, "p", 0, NET_CONV_PART_MAX, &e);
	net_body_release(&body);
	*len = points.len;
	return bytes->base + (points.base - bytes->base);
}

/* It answers with what it was answered: ctx has that. */
static void answer_with_answers(void *ctx, struct table *t, size_t from, size_t to,
				struct buf *bytes)
{
	struct buf *heard = ctx;
	size_t len = 0;
	uint8_t *points = doubled_points(bytes, &len);

	(void)t, (void)to;
	if (points == NULL)
		return;
	if (from == VICTIM)
		buf_add(heard, points, len);
	else if (from == HOSTILE)
		memcpy(points, heard->base, len < heard->len ? len : heard->len);
}

static void test_answers_that_are_none(void **state)
{
	struct buf heard = { 0 };
	struct table t;

	(void)state;
	table_init(&t, 38);
	t.agent[VICTIM].config.federation.roles = CONFIG_CLIENT_ONLY;
	t.tamper = answer_with_answers;
	t.ctx = &heard;
	start_linked(&t);
	table_run(&t, t.now_ms + 5000, 20000);
	assert_true(heard.len > 0);
	assert_non_null(strstr(table_peer(&t, VICTIM, HOSTILE)->trouble, "answers are not"));
	assert_int_equal(table_peer(&t, VICTIM, HOSTILE)->n_slots, 0);
	assert_int_equal(t.agent[VICTIM].writes[STORE_PUT_ALIGNMENT], 0);
	finish_with_honest(&t);
	buf_release(&heard);
	table_release(&t);
}

/* ---- a session is held ---- */

/* It accepts what is proposed, and from then on lets nothing through of what its core says. */
static void stall(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct net_msg_head h;

	(void)ctx, (void)t, (void)to;
	if (from != HOSTILE || net_msg_head(&h, bytes->base, bytes->len, NULL) != 0)
		return;
	if (h.type == NET_MSG_CONV || h.type == NET_MSG_LEDGER_ENTRY ||
	    h.type == NET_MSG_LEDGER_ACK || h.type == NET_MSG_ABORT || h.type == NET_MSG_DONE)
		buf_clear(bytes);
}

static bool held_by_hostile(struct table *t)
{
	const struct session *s = session_first(victim(t));

	return s != NULL && memcmp(s->peer->info.key, t->agent[HOSTILE].key, 32) == 0;
}

static void say_still_working(struct table *t)
{
	struct buf b = { 0 };
	struct net_writer w;

	net_write_begin(&w, &b, NET_MSG_CONV, session_first(victim(t))->id);
	net_put_uint(&w, "c", CONV_STILL_WORKING);
	assert_int_equal(net_write_end(&w, NULL), 0);
	table_deliver(t, HOSTILE, VICTIM, &b);
}

/* Ever new tables to tell of, so that the victim asks for them; proposals of its own besides. */
static void tempt(struct table *t, uint64_t serial)
{
	struct buf b = { 0 };
	uint8_t id[16] = { 0 };

	put_signal(&b, serial);
	table_deliver(t, HOSTILE, VICTIM, &b);
	memcpy(id, &serial, sizeof(serial));
	put_proposal(t, &b, id);
	table_deliver(t, HOSTILE, VICTIM, &b);
}

/* Signs of life are no progress: the session ends when the work must be done, who held it in vain
 * rests for longer each time, and the honest one is served all the while. */
static void test_held_in_vain(void **state)
{
	enum { HOUR_MS = 3600000, STEP_MS = 1000 };
	uint64_t held_ms = 0, longest_ms = 0, row_ms = 0, before;
	struct table t;

	(void)state;
	table_init(&t, 21);
	t.tamper = stall;
	start_linked(&t);
	table_link(&t, VICTIM, HONEST, true);
	table_run(&t, 30000, 100000);
	before = t.agent[HONEST].core->sessions;
	for (uint64_t k = 1; k * STEP_MS <= HOUR_MS; k++) {
		bool held = held_by_hostile(&t);

		row_ms = held ? row_ms + STEP_MS : 0;
		held_ms += held ? STEP_MS : 0;
		longest_ms = row_ms > longest_ms ? row_ms : longest_ms;
		if (held)
			say_still_working(&t);
		else
			tempt(&t, 1000 + k);
		t.agent[VICTIM].improvements = t.agent[HONEST].improvements = 1;
		if (k % 60 == 0)
			victim(&t)->train_now = t.agent[HONEST].core->train_now = true;
		table_run(&t, t.now_ms + STEP_MS, 100000);
	}
	assert_true(held_ms > 0);
	assert_true(longest_ms <=
		    2 * (uint64_t)config_ms(t.agent[VICTIM].config.federation.lease_s));
	assert_true(held_ms < HOUR_MS / 20);
	assert_true(t.agent[HONEST].core->sessions - before > 30);
	assert_true(table_peer(&t, VICTIM, HOSTILE)->cost_ms > 0);
	assert_int_equal(table_peer(&t, VICTIM, HONEST)->cost_ms, 0);
	table_release(&t);
}

/* ---- who takes and does not settle ---- */

/* Nothing of the ledger once it has all rows. */
static void keep_settles(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	const struct session *s = session_first(victim(t));
	struct net_msg_head h;

	(void)ctx, (void)to;
	if (from == HOSTILE && s != NULL && s->phase == PHASE_TRANSLATE && s->conv != NULL &&
	    conv_want(s->conv) == CONV_OVER &&
	    net_msg_head(&h, bytes->base, bytes->len, NULL) == 0 && h.type == NET_MSG_LEDGER_ENTRY)
		buf_clear(bytes);
}

/* The victim has sent all rows, and waits for the settle that does not come. */
static void send_all_rows(struct table *t)
{
	const struct session *s = NULL;

	for (size_t i = 0; i < 20000; i++) {
		s = session_first(victim(t));
		if (s != NULL && s->role == AGENT_CLIENT && s->phase == PHASE_TRANSLATE &&
		    s->conv != NULL && s->job == NULL && conv_want(s->conv) == CONV_OVER)
			break;
		s = NULL;
		table_run(t, t->now_ms + 60000, 1);
	}
	assert_non_null(s);
	table_run(t, t->now_ms + 1000, 1000);
}

static void link_with_a_mute(struct table *t)
{
	table_link(t, VICTIM, HOSTILE, true);
	while (!table_peer(t, VICTIM, HOSTILE)->greeted)
		assert_true(table_step(t));
	t->tamper = mute;
	table_run(t, t->now_ms + 60000, 100000);
}

/* With the next session the host settles the one that is open: its rows were none. */
static void settle_to_nothing(struct table *t)
{
	const struct ledger_open *o = table_peer(t, VICTIM, HOSTILE)->chain.open;
	struct ledger_entry e = { .kind = LEDGER_SETTLE,
				  .translator = (enum ledger_translator)o->translator };

	memcpy(e.session, o->session, sizeof(e.session));
	memcpy(e.lineage, o->lineage, sizeof(e.lineage));
	link_with_a_mute(t);
	assert_true(takes_late(t, 1, &e));
	assert_int_equal(table_peer(t, VICTIM, HOSTILE)->chain.n_open, 0);
}

/* A host that has the rows and breaks off keeps them off the ledger; the owner hears of it, and
 * counts them for good, also where what breaks off is its own agent (1), or where the host settles
 * to nothing (2): until it settles what went. */
static void test_rows_that_are_never_settled(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct agent_status status;
		struct table t;
		uint64_t rows;

		table_init(&t, 31);
		t.agent[VICTIM].config.federation.roles = CONFIG_CLIENT_ONLY;
		t.tamper = keep_settles;
		start_linked(&t);
		send_all_rows(&t);
		rows = table_peer(&t, VICTIM, HOSTILE)->n_slots;
		assert_true(rows > 0);
		if (kind != 1) {
			table_link(&t, VICTIM, HOSTILE, false);
			while (session_first(victim(&t)) != NULL)
				assert_true(table_step(&t));
			agent_core_status(victim(&t), &status);
			assert_int_equal(status.sent.bare, 0);
			agent_status_release(&status);
			assert_non_null(strstr(t.agent[VICTIM].last, "of our rows"));
			table_run(&t, t.now_ms + 1000, 1000);
			assert_int_equal(not_settled(&t), rows);
		}
		table_kill(&t, VICTIM);
		table_restart(&t, VICTIM);
		table_run(&t, t.now_ms + 1000, 1000);
		assert_int_equal(not_settled(&t), rows);
		if (kind == 2) {
			settle_to_nothing(&t);
			assert_int_equal(not_settled(&t), rows);
			table_release(&t);
			continue;
		}
		t.tamper = NULL; /* the host's own is the next thing that it says */
		table_link(&t, VICTIM, HOSTILE, true);
		for (size_t i = 0; i < 20000 && not_settled(&t) > 0; i++)
			table_run(&t, t.now_ms + 60000, 1);
		assert_int_equal(not_settled(&t), 0);
		agent_core_status(victim(&t), &status);
		assert_int_equal(status.sent.bare % rows, 0);
		assert_true(status.sent.bare >= rows);
		agent_status_release(&status);
		table_release(&t);
	}
}

/* The link is cut for the victim alone, with what it has asked for still under way. */
static void cut_link(struct table *t)
{
	struct agent_event e = { .kind = AGENT_EVENT_LINK_DOWN, .now_ms = t->now_ms };

	memcpy(e.peer, t->agent[HOSTILE].key, sizeof(e.peer));
	t->up[VICTIM][HOSTILE] = false;
	agent_core_event(victim(t), &e);
}

/* The victim, as client, has put the host's settle into its chain; the commit is under way. */
static void settle_under_way(struct table *t)
{
	for (size_t i = 0; i < 20000; i++) {
		const struct session *s = session_first(victim(t));

		if (s != NULL && s->role == AGENT_CLIENT && s->phase == PHASE_TRANSLATE &&
		    s->record.state == STORE_DONE) {
			assert_true(s->waiting);
			return;
		}
		table_run(t, t->now_ms + 60000, 1);
	}
	fail_msg("no settle came");
}

static void start_of_kind(struct table *t, int kind)
{
	table_init(t, 37);
	for (size_t i = 0; i < AGENTS; i++) {
		t->agent[i].config.federation.translator = (enum config_translator)(kind % 3);
		t->agent[i].config.privacy.noisy_rows = kind == 3;
		t->agent[i].config.privacy.release_noise = 20;
	}
	t->agent[VICTIM].config.federation.roles = CONFIG_CLIENT_ONLY;
}

/* Nothing hostile: the link drops while the settle goes to the victim's disk.  The rows are on the
 * ledger, and nobody says that they are not. */
static void test_cut_behind_a_settle(void **state)
{
	(void)state;
	for (int kind = 0; kind < 4; kind++) { /* the last: Procrustes of noisy rows */
		struct table t;
		uint64_t troubles;

		start_of_kind(&t, kind);
		start_linked(&t);
		settle_under_way(&t);
		troubles = t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE];
		cut_link(&t);
		assert_null(session_first(victim(&t)));
		if (t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE] != troubles)
			fail_msg("kind %d: %s", kind, t.agent[VICTIM].last);
		assert_int_equal(not_settled(&t), 0);
		finish_with_honest(&t);
		table_release(&t);
	}
}

/* One that the victim has drawn itself, for a session that it hosted, and that is over. */
static uint8_t id_of_before[AGENT_SESSION];

static void draw_that_id(void *ctx, void *out, size_t n)
{
	draw_any(ctx, out, n);
	if (n == sizeof(id_of_before))
		memcpy(out, id_of_before, n);
}

static const struct store_session *hosted_by_victim(const struct table *t)
{
	const struct disk *d = &t->agent[VICTIM].disk;

	for (size_t i = 0; i < d->n_sessions; i++)
		if (d->sessions[i].role == STORE_HOST && d->sessions[i].state == STORE_DONE)
			return &d->sessions[i];
	return NULL;
}

/* A host that takes an id which is on record, and breaks off when it has the rows: they count also
 * where a crash of ours takes the count. */
static void test_rows_of_a_session_with_an_old_id(void **state)
{
	struct table t;
	uint64_t rows;

	(void)state;
	table_init(&t, 31);
	start_linked(&t);
	draw_any = t.agent[HOSTILE].core->io.draw;
	for (size_t i = 0; i < 20000 && hosted_by_victim(&t) == NULL; i++)
		table_run(&t, t.now_ms + 60000, 1);
	assert_non_null(hosted_by_victim(&t));
	memcpy(id_of_before, hosted_by_victim(&t)->id, sizeof(id_of_before));
	table_run(&t, t.now_ms + 60000, 20000);
	t.agent[HOSTILE].core->io.draw = draw_that_id;
	t.tamper = keep_settles;
	learn_again(&t);
	send_all_rows(&t);
	rows = table_peer(&t, VICTIM, HOSTILE)->n_slots;
	assert_true(rows > 0);
	assert_memory_equal(session_first(victim(&t))->id, id_of_before, sizeof(id_of_before));
	table_kill(&t, VICTIM);
	table_restart(&t, VICTIM);
	table_run(&t, t.now_ms + 1000, 1000);
	print_message("# rows that went and are not settled: %u of %u\n", (unsigned)not_settled(&t),
		      (unsigned)rows);
	assert_int_equal(not_settled(&t), rows);
	table_release(&t);
}

/* Of rows with noise, too, the owner hears where the host breaks off before its settle. */
static void test_noisy_rows_that_are_never_settled(void **state)
{
	struct table t;

	(void)state;
	start_of_kind(&t, 3);
	t.tamper = keep_settles;
	start_linked(&t);
	send_all_rows(&t);
	cut_link(&t);
	assert_non_null(strstr(t.agent[VICTIM].last, "of our rows"));
	finish_with_honest(&t);
	table_release(&t);
}

/* Of the session that is open, as the victim has seen it. */
static struct ledger_entry settle_as_seen(struct table *t)
{
	const struct peer *v = table_peer(t, VICTIM, HOSTILE);
	const struct ledger_open *o = v->chain.open;
	int side = ledger_chain_side(&v->chain, t->agent[HOSTILE].sign_public);
	struct ledger_entry e = { .kind = LEDGER_SETTLE,
				  .translator = v->last.translator,
				  .mechanism = o->mechanism,
				  .caps = o->caps,
				  .count = v->last.labels,
				  .rows = v->last.rows,
				  .floats = v->last.floats };

	assert_true(v->last.counted && v->last.over && e.count > 0);
	memcpy(e.session, o->session, sizeof(e.session));
	memcpy(e.transcript, v->last.transcript, sizeof(e.transcript));
	e.total_pair = ledger_account_count(&v->chain.account[side], &e.mechanism) - o->labels;
	e.total_pair += e.count;
	e.total_lineage = e.total_pair;
	return e;
}

/* What comes with the next session settles the one before as it was. */
static void test_late_settles_that_lie(void **state)
{
	static void (*const change[])(struct ledger_entry * e) = { other_transcript, fewer_labels,
								   other_translator };
	struct table t;

	(void)state;
	table_init(&t, 31);
	all_translate_by(&t, CONFIG_PPAT);
	t.agent[VICTIM].config.federation.roles = CONFIG_CLIENT_ONLY;
	t.tamper = keep_settles;
	start_linked(&t);
	send_all_rows(&t);
	table_link(&t, VICTIM, HOSTILE, false);
	while (session_first(victim(&t)) != NULL)
		assert_true(table_step(&t));
	assert_int_equal(table_peer(&t, VICTIM, HOSTILE)->chain.n_open, 1);
	link_with_a_mute(&t);
	for (size_t k = 0; k <= sizeof(change) / sizeof(change[0]); k++) {
		struct ledger_entry e = settle_as_seen(&t);
		bool lies = k < sizeof(change) / sizeof(change[0]);

		if (lies)
			change[k](&e);
		assert_int_equal(takes_late(&t, 1, &e), !lies);
	}
	finish_with_honest(&t);
	table_release(&t);
}

/* Nothing of the client once the victim has settled: it gives back what nobody has signed. */
static void keep_countersignature(void *ctx, struct table *t, size_t from, size_t to,
				  struct buf *bytes)
{
	const struct ledger_chain *c = &table_peer(t, VICTIM, HOSTILE)->chain;

	(void)ctx, (void)to;
	if (from == HOSTILE && c->n_tail > 0 && c->tail[0].entry.kind == LEDGER_SETTLE)
		buf_clear(bytes);
}

/* The victim has charged six labels for a batch of four, and no more is in its budget; of the six
 * so many are on its ledger by another session of this id, which nobody honest begins. */
static const struct ledger_account *settle_that_waits(struct table *t, uint64_t others)
{
	struct config_privacy *own = &t->agent[VICTIM].config.privacy;
	const struct ledger_account *a;

	table_init(t, 32);
	all_translate_by(t, CONFIG_PPAT);
	t->agent[VICTIM].config.federation.roles = CONFIG_HOST_ONLY;
	own->reserve_labels = 6;
	t->tamper = keep_countersignature;
	start_linked(t);
	a = session_ledger_account(victim(t), table_peer(t, VICTIM, HOSTILE));
	for (size_t i = 0; i < 20000 && a->n_waiting == 0; i++) {
		struct session *s = session_first(victim(t));

		if (s != NULL && s->reserved == 6) {
			s->reserved -= others;
			s->charged = s->reserved;
		}
		own->epsilon_per_peer = own->epsilon_total = a->spent > 0 ? 0.01 : 50;
		table_run(t, t->now_ms + 60000, 1);
	}
	assert_int_equal(a->n_waiting, 1);
	own->epsilon_per_peer = own->epsilon_total = 50;
	return a;
}

/* What a settle gives back is spent toward all others, too, until it is countersigned; and it is
 * what its session has charged and not drawn. */
static void test_what_waits_is_spent(void **state)
{
	(void)state;
	for (uint64_t others = 0; others < 2; others++) {
		struct table t;
		const struct ledger_account *a = settle_that_waits(&t, others);
		uint64_t left[] = { session_ledger_left(victim(&t), table_peer(&t, VICTIM, HONEST),
							&a->mechanism),
				    session_ledger_left(victim(&t), table_peer(&t, VICTIM, HOSTILE),
							&a->mechanism) };

		assert_int_equal(a->waiting[0].labels, 2 - others);
		assert_int_equal(left[0], left[1]);
		table_release(&t);
	}
}

struct without_entries {
	size_t changed, bare; /* terms; messages of the client's with nothing on its ledger */
};

/* Says that no entry comes first, and writes none. */
static void keep_entries(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	const struct session *s = session_first(victim(t));
	struct without_entries *x = ctx;
	struct net_msg_head h;
	uint8_t *e;

	(void)to;
	if (bytes->len == 0 || net_msg_head(&h, bytes->base, bytes->len, NULL) != 0)
		return;
	e = memmem(bytes->base, bytes->len,
		   "\xa1"
		   "e",
		   2);
	if (from == HOSTILE && h.type == NET_MSG_PROPOSE && e != NULL) {
		e[2] = 0;
		x->changed++;
	} else if (from == HOSTILE && h.type == NET_MSG_LEDGER_ENTRY) {
		buf_clear(bytes);
	} else if (from == VICTIM && h.type == NET_MSG_CONV && s != NULL &&
		   s->phase == PHASE_TRANSLATE) {
		x->bare += !ledger_session_is_open(&s->peer->chain, s->id);
	}
}

/* No row leaves in a session that is on no ledger. */
static void test_rows_without_an_entry(void **state)
{
	struct table t;

	(void)state;
	for (int kind = 0; kind < 4; kind++) { /* the last: Procrustes of noisy rows */
		struct without_entries x = { 0 };

		table_init(&t, 33);
		for (size_t i = 0; i < AGENTS; i++) {
			t.agent[i].config.federation.translator =
				(enum config_translator)(kind % 3);
			t.agent[i].config.privacy.noisy_rows = kind == 3;
			t.agent[i].config.privacy.release_noise = 20;
		}
		t.agent[VICTIM].config.federation.roles = CONFIG_CLIENT_ONLY;
		start_linked(&t);
		table_run(&t, 60000, 100000);
		assert_true(victim(&t)->sessions > 0); /* the host's contract, if any, stands */
		t.tamper = keep_entries;
		t.ctx = &x;
		table_link(&t, VICTIM, HOSTILE, false);
		t.agent[VICTIM].improvements += 2;
		victim(&t)->train_now = true;
		table_link(&t, VICTIM, HOSTILE, true);
		table_run(&t, t.now_ms + 60000, 100000);
		assert_true(x.changed > 0);
		assert_int_equal(x.bare, 0);
		table_release(&t);
	}
}

/* ---- the protocol is broken ---- */

static void deliver_garbage(struct table *t)
{
	struct buf b = { 0 };

	buf_add(&b, "\x93\x02\xc4\x00\xc1", 5);
	table_deliver(t, HOSTILE, VICTIM, &b);
}

/* Rest, longer each time, and then out, until the owner says otherwise; also after a restart. */
static void test_breaches(void **state)
{
	uint64_t rest_ms = 10000;
	struct agent_status s;
	struct peer *p;
	struct table t;

	(void)state;
	table_init(&t, 22);
	start_linked(&t);
	for (uint32_t k = 1; k <= BREACHES_MAX; k++) {
		uint64_t at = t.now_ms;

		table_run(&t, t.now_ms + 1000, 1000);
		p = table_peer(&t, VICTIM, HOSTILE);
		assert_true(p->linked);
		deliver_garbage(&t);
		assert_false(p->linked);
		assert_false(t.up[VICTIM][HOSTILE]);
		assert_int_equal(p->conduct.breaches, k);
		assert_int_equal(p->conduct.until_ms, t.now_ms + rest_ms);
		rest_ms *= 3;
		table_link(&t, VICTIM, HOSTILE, true); /* it comes back at once: not heard */
		table_run(&t, t.now_ms + 1000, 1000);
		assert_false(p->linked);
		table_run(&t, t.now_ms + 3600000, 1000);
		assert_true(t.now_ms - at >= 10000);
		table_link(&t, VICTIM, HOSTILE, true);
	}
	assert_int_equal(p->info.status, STORE_REVOKED);
	assert_int_equal(t.agent[VICTIM].notices[AGENT_NOTICE_OUT], 1);
	table_run(&t, t.now_ms + 1000, 1000);
	table_kill(&t, VICTIM);
	table_restart(&t, VICTIM);
	p = table_peer(&t, VICTIM, HOSTILE);
	assert_int_equal(p->info.status, STORE_REVOKED);
	agent_core_status(victim(&t), &s);
	for (size_t i = 0; i < s.n_peers; i++)
		if (memcmp(s.peer[i].key, p->info.key, 32) == 0)
			assert_non_null(strstr(s.peer[i].trouble, "fkge peer accept"));
	agent_status_release(&s);
	finish_with_honest(&t);
	table_release(&t);
}

/* A day without one, and the count begins anew. */
static void test_breaches_are_forgotten(void **state)
{
	static const struct {
		uint64_t hours;
		uint32_t breaches;
	} of[] = { { 0, 1 }, { 23, 2 }, { 23, 3 }, { 25, 1 }, { 1, 2 } };
	struct table t;

	(void)state;
	table_init(&t, 22);
	start_linked(&t);
	for (size_t k = 0; k < sizeof(of) / sizeof(of[0]); k++) {
		t.now_ms += of[k].hours * 3600000;
		table_link(&t, VICTIM, HOSTILE, true);
		table_run(&t, t.now_ms + 1000, 1000);
		deliver_garbage(&t);
		assert_int_equal(table_peer(&t, VICTIM, HOSTILE)->conduct.breaches, of[k].breaches);
	}
	finish_with_honest(&t);
	table_release(&t);
}

/* Messages that belong to nothing are dropped as they are, and who sends ever more is shut out. */
static void test_strays(void **state)
{
	struct buf b = { 0 }, m = { 0 };
	struct net_writer w;
	struct table t;
	uint64_t k = 0, aborts;
	uint8_t id[16] = { 9 };

	(void)state;
	table_init(&t, 23);
	start_linked(&t);
	table_run(&t, 5000, 10000);
	aborts = t.agent[VICTIM].sent[NET_MSG_ABORT];
	net_write_begin(&w, &m, NET_MSG_CONV, id);
	net_put_uint(&w, "c", CONV_PSI);
	assert_int_equal(net_write_end(&w, NULL), 0);
	for (; k < 100000 && table_peer(&t, VICTIM, HOSTILE)->linked; k++) {
		buf_add(&b, m.base, m.len);
		table_deliver(&t, HOSTILE, VICTIM, &b);
	}
	assert_in_range(k, 1000, 20000);
	assert_in_range(t.agent[VICTIM].sent[NET_MSG_ABORT] - aborts, 1, 2);
	buf_release(&m);
	finish_with_honest(&t);
	table_release(&t);
}

/* A partner that sends rubbish does not fill the log. */
static void test_trouble_is_told_now_and_then(void **state)
{
	struct table t;
	uint64_t told;

	(void)state;
	table_init(&t, 13);
	settle(&t);
	told = t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE];
	for (int k = 0; k < 500; k++) {
		struct buf b = { 0 };

		buf_add(&b, "\x93\x7frubbish", 3 + (size_t)k % 5);
		t.now_ms++;
		table_deliver(&t, HOSTILE, VICTIM, &b);
	}
	told = t.agent[VICTIM].notices[AGENT_NOTICE_TROUBLE] - told;
	assert_in_range(told, 1, 6);
	assert_non_null(strstr(table_peer(&t, VICTIM, HOSTILE)->trouble, "can't be read"));
	table_release(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_honest),
		cmocka_unit_test(test_abort_while_packing),
		cmocka_unit_test(test_work_ends_with_its_session),
		cmocka_unit_test(test_count_forgotten_under_way),
		cmocka_unit_test(test_cause_is_no_word_of_a_peer),
		cmocka_unit_test(test_crooked_neighbours),
		cmocka_unit_test(test_long_neighbours_are_cut),
		cmocka_unit_test(test_proposal_storm),
		cmocka_unit_test(test_proposal_twice),
		cmocka_unit_test(test_session_id_again),
		cmocka_unit_test(test_refusal_is_not_the_owners_text),
		cmocka_unit_test(test_signal_storm),
		cmocka_unit_test(test_roles_that_come_and_go),
		cmocka_unit_test(test_signals_without_a_budget),
		cmocka_unit_test(test_signal_of_the_future),
		cmocka_unit_test(test_working_is_told),
		cmocka_unit_test(test_forged_member),
		cmocka_unit_test(test_record_of_a_clock_that_was_ahead),
		cmocka_unit_test(test_a_clock_of_before_1970),
		cmocka_unit_test(test_address_that_a_partner_says),
		cmocka_unit_test(test_listens_elsewhere),
		cmocka_unit_test(test_a_partner_that_moves_all_the_time),
		cmocka_unit_test(test_addresses_that_nobody_can_dial),
		cmocka_unit_test(test_hearsay_of_a_clock_that_is_ahead),
		cmocka_unit_test(test_member_flood),
		cmocka_unit_test(test_members_all_the_time),
		cmocka_unit_test(partners_are_introduced_on_request),
		cmocka_unit_test(test_hearsay_of_a_partner),
		cmocka_unit_test(test_a_line_introduces_nobody),
		cmocka_unit_test(test_hearsay_of_a_replaced_key),
		cmocka_unit_test(test_members_fill_up),
		cmocka_unit_test(test_strangers_fill_up),
		cmocka_unit_test(test_useless_sessions),
		cmocka_unit_test(test_lowered_budget),
		cmocka_unit_test(test_endless_entries),
		cmocka_unit_test(test_tail_of_nothing),
		cmocka_unit_test(test_dear_contracts),
		cmocka_unit_test(test_settle_after_crashes),
		cmocka_unit_test(test_ack_before_the_entry),
		cmocka_unit_test(test_entry_upon_entry),
		cmocka_unit_test(test_another_lineage),
		cmocka_unit_test(test_entries_that_lie),
		cmocka_unit_test(test_labels_without_a_reserve),
		cmocka_unit_test(test_both_close),
		cmocka_unit_test(test_inbox_is_bounded),
		cmocka_unit_test(test_answers_that_are_none),
		cmocka_unit_test(test_trouble_is_told_now_and_then),
		cmocka_unit_test(test_held_in_vain),
		cmocka_unit_test(test_rows_that_are_never_settled),
		cmocka_unit_test(test_rows_of_a_session_with_an_old_id),
		cmocka_unit_test(test_cut_behind_a_settle),
		cmocka_unit_test(test_noisy_rows_that_are_never_settled),
		cmocka_unit_test(test_late_settles_that_lie),
		cmocka_unit_test(test_what_waits_is_spent),
		cmocka_unit_test(test_rows_without_an_entry),
		cmocka_unit_test(test_breaches),
		cmocka_unit_test(test_breaches_are_forgotten),
		cmocka_unit_test(test_strays),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
