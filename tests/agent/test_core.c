/* tests/agent/test_core.c - the core by hand: one agent, no network, and what a
 * stranger, a liar or a clumsy peer may say to it.  Whole stories are in tests/sim. */
#include "tests/test.h"

#include <sodium.h>

#include "agent/core/core_internal.h"
#include "agent/core/member.h"
#include "agent/core/names.h"
#include "agent/core/peers_internal.h"
#include "agent/core/weigh_internal.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "graph/graph.h"
#include "net/ident.h"
#include "net/msg.h"
#include "store/store.h"
#include "tests/agent/private_training.h"

/* ---- a shell that only remembers ---- */

struct shell {
	struct agent_core *core;
	struct config config; /* what ships, with one epoch */
	struct graph *graph;
	struct agent_names *names;
	uint8_t sign_public[32], sign_secret[64];
	uint8_t peer[32], peer_sign[32], peer_secret[64];
	struct agent_job *job;
	uint64_t tickets[64];
	size_t n_tickets;
	struct buf last; /* message sent */
	unsigned sent, commits, notices, disconnects;
	double score; /* of the next evaluation */
	unsigned evaluations;
	struct ledger_stated stated[16]; /* private training, as it was to be written */
	size_t n_stated;
	struct ledger_training on_disk; /* what a restarted core finds of it */
	char trouble[512];
	uint64_t now_ms, drawn;
	int64_t wall_ms;
};

static int on_send(void *ctx, const uint8_t peer[32], const uint8_t *bytes, size_t n)
{
	struct shell *s = ctx;

	assert_memory_equal(peer, s->peer, 32);
	buf_clear(&s->last);
	buf_add(&s->last, bytes, n);
	s->sent++;
	return 0;
}

static void on_commit(void *ctx, struct store_batch *b, uint64_t ticket)
{
	struct shell *s = ctx;

	for (size_t i = 0; i < b->n; i++)
		if (b->at[i].kind == STORE_ADD_STATEMENT)
			s->stated[s->n_stated++] = b->at[i].u.statement;
	store_batch_release(b);
	s->tickets[s->n_tickets++] = ticket;
	s->commits++;
}

static void on_job(void *ctx, struct agent_job *job)
{
	((struct shell *)ctx)->job = job;
}

static void on_timer(void *ctx, enum agent_timer t, uint64_t ms)
{
	(void)ctx;
	(void)t;
	(void)ms;
}

static void on_cancel(void *ctx, enum agent_timer t)
{
	(void)ctx;
	(void)t;
}

static void on_connect(void *ctx, const uint8_t peer[32], const char *address)
{
	(void)ctx;
	(void)peer;
	(void)address;
}

static void on_disconnect(void *ctx, const uint8_t peer[32])
{
	(void)peer;
	((struct shell *)ctx)->disconnects++;
}

static void on_notify(void *ctx, const struct agent_notice *n)
{
	struct shell *s = ctx;

	s->notices++;
	if (n->kind == AGENT_NOTICE_TROUBLE)
		snprintf(s->trouble, sizeof(s->trouble), "%s", n->text);
}

static void on_draw(void *ctx, void *out, size_t n)
{
	memset(out, (int)++((struct shell *)ctx)->drawn, n);
}

static int train(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		 struct agent_job *job)
{
	(void)ctx;
	(void)reset;
	(void)job;
	work->ent[0] += (float)epochs;
	return 0;
}

static int evaluate(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	(void)work;
	(void)job;
	*score = ((struct shell *)ctx)->score;
	((struct shell *)ctx)->evaluations++;
	return 0;
}

static void event(struct shell *s, struct agent_event e)
{
	e.now_ms = ++s->now_ms;
	e.wall_ms = s->wall_ms;
	agent_core_event(s->core, &e);
}

/* Everything that was asked for is done, until nothing more is. */
static void settle(struct shell *s)
{
	while (s->job || s->n_tickets) {
		struct agent_job *job = s->job;

		if (s->n_tickets) {
			uint64_t ticket = s->tickets[0];

			memmove(s->tickets, s->tickets + 1, --s->n_tickets * sizeof(ticket));
			event(s, (struct agent_event){ .kind = AGENT_EVENT_COMMITTED,
						       .ticket = ticket });
			continue;
		}
		s->job = NULL;
		job->status = atomic_load(&job->cancel) ? ERR_CANCELED : job->run(job);
		event(s, (struct agent_event){ .kind = AGENT_EVENT_JOB_DONE, .job = job });
	}
}

static void add_name(struct graph_vocab *v, const char *name)
{
	graph_vocab_add(v, name, strlen(name));
}

static const struct agent_learner *learner(struct shell *s)
{
	static struct agent_learner l;

	l = (struct agent_learner){ .ctx = s, .train = train, .evaluate = evaluate };
	return &l;
}

static void start_with(struct shell *s, struct store_core *saved)
{
	static const uint8_t own[32] = { 9 }, lineage[32] = { 7 };
	struct agent_io io = { s,	  on_send,    on_commit,     on_job,	 on_timer,
			       on_cancel, on_connect, on_disconnect, on_connect, on_notify,
			       NULL,	  on_draw,    NULL,	     NULL };
	struct agent_parts parts = { .config = &s->config,
				     .io = &io,
				     .learner = learner(s),
				     .graph = s->graph,
				     .names = s->names,
				     .saved = saved,
				     .key = own,
				     .sign_public = s->sign_public,
				     .sign_secret = s->sign_secret,
				     .lineage = lineage };
	struct rng r;
	struct err e;

	rng_seed(&r, 1);
	parts.best = kge_emb_new(kge_model_find("transe"), 4, 4.0F, 3, 1, &r);
	assert_int_equal(agent_core_new(&s->core, &parts, &e), 0);
	event(s, (struct agent_event){ .kind = AGENT_EVENT_START });
}

static struct store_peer partner(const struct shell *s)
{
	struct store_peer peer = { .status = STORE_LISTED, .name = "peer" };

	memcpy(peer.key, s->peer, 32);
	memcpy(peer.sign_key, s->peer_sign, 32);
	return peer;
}

static void start(struct shell *s)
{
	struct store_peer peer = partner(s);
	struct store_core saved = { .peers = &peer, .n_peers = 1, .training = s->on_disk };

	start_with(s, &saved);
}

static int setup(void **state)
{
	struct shell *s = mem_array(1, sizeof(*s));
	static const uint8_t seed[32] = { 1 }, other[32] = { 2 };

	crypto_sign_seed_keypair(s->sign_public, s->sign_secret, seed);
	crypto_sign_seed_keypair(s->peer_sign, s->peer_secret, other);
	memset(s->peer, 0x11, 32);
	s->graph = graph_new();
	add_name(s->graph->entities, "aspirin");
	add_name(s->graph->entities, "ibuprofen");
	add_name(s->graph->entities, "headache");
	add_name(s->graph->relations, "treats");
	s->names = agent_names_new(s->graph);
	s->score = 0.5;
	config_init(&s->config);
	s->config.model.dim = 4;
	s->config.train.epochs = s->config.train.eval_every = 1;
	s->config.federation.local_rounds = 0;
	*state = s;
	return 0;
}

static int teardown(void **state)
{
	struct shell *s = *state;

	agent_core_free(s->core);
	agent_names_free(s->names);
	graph_free(s->graph);
	buf_release(&s->last);
	config_release(&s->config);
	free(s);
	return 0;
}

/* ---- messages of the peer ---- */

static void say(struct shell *s, const uint8_t from[32], struct buf *m)
{
	struct agent_event e = { .kind = AGENT_EVENT_MESSAGE, .bytes = m->base, .n = m->len };

	memcpy(e.peer, from, 32);
	event(s, e);
	buf_release(m);
}

static void link_up(struct shell *s, const uint8_t from[32])
{
	struct agent_event e = { .kind = AGENT_EVENT_LINK_UP };

	memcpy(e.peer, from, 32);
	event(s, e);
}

enum {
	PROTOCOL = 20
}; /* AGENT_PROTOCOL (agent/core/core_internal.h): peers of other versions are refused */

static const char *hello_name = "peer";

/* The secret signs that both keys are one agent's. */
static void write_hello(struct buf *m, uint64_t version, const uint8_t sign[32],
			const uint8_t key[32], const uint8_t secret[64], uint64_t serial,
			int64_t wall_ms)
{
	uint8_t proof[64];
	static const uint8_t names[32] = { 3 };
	struct net_writer w;

	agent_keys_sign(key, secret, proof);
	net_write_begin(&w, m, NET_MSG_HELLO, NULL);
	net_put_uint(&w, "v", version);
	net_put_str(&w, "n", hello_name);
	net_put_bin(&w, "g", sign, 32);
	net_put_bin(&w, "gs", proof, 64);
	net_put_uint(&w, "s", serial);
	net_put_bin(&w, "a", names, 32);
	if (wall_ms > 0)
		net_put_int(&w, "z", wall_ms);
	net_write_close(&w);
}

static void hello_at(struct shell *s, uint64_t version, const uint8_t sign[32], uint64_t serial,
		     int64_t wall_ms)
{
	struct buf m = { 0 };

	write_hello(&m, version, sign, s->peer, s->peer_secret, serial, wall_ms);
	say(s, s->peer, &m);
}

static void hello(struct shell *s, uint64_t version, const uint8_t sign[32], uint64_t serial)
{
	hello_at(s, version, sign, serial, 0);
}

static void propose(struct shell *s, uint8_t id_byte, uint64_t ef, uint64_t sequence)
{
	uint8_t id[16] = { 0 }, zero[32] = { 3 }, head[32] = { 0 };
	struct buf m = { 0 };
	struct net_writer w;

	id[0] = id_byte;
	head[0] = sequence > 0;
	net_write_begin(&w, &m, NET_MSG_PROPOSE, id);
	net_put_uint(&w, "t", CONFIG_PROCRUSTES);
	net_put_uint(&w, "ef", ef);
	net_put_uint(&w, "rf", 4);
	net_put_bin(&w, "a", zero, 32);
	net_put_uint(&w, "q", sequence);
	net_put_bin(&w, "h", head, 32);
	net_put_uint(&w, "w", 0);
	net_put_bool(&w, "vn", false);
	net_put_bin(&w, "d", zero, 0);
	net_write_close(&w);
	say(s, s->peer, &m);
}

static enum net_msg_type last_sent(const struct shell *s, int64_t *code)
{
	struct net_msg m;
	struct err e = { 0 };
	enum net_msg_type t;

	assert_int_equal(net_msg_decode(&m, s->last.base, s->last.len, &e), 0);
	t = m.type;
	*code = net_has(&m.body, "code") ? net_get_int(&m.body, "code", INT32_MIN, 0, &e) : 0;
	net_msg_release(&m);
	return t;
}

/* ---- tests ---- */

static void trains_first_and_sleeps(void **state)
{
	struct shell *s = *state;
	struct agent_status st;

	start(s);
	agent_core_status(s->core, &st);
	assert_int_equal(st.state, AGENT_BUSY);
	agent_status_release(&st);
	settle(s);
	agent_core_status(s->core, &st);
	assert_int_equal(st.state, AGENT_SLEEP);
	assert_true(st.has_best);
	assert_near(st.best_score, 0.5, 0, 0);
	assert_int_equal(st.served_serial, 1);
	agent_status_release(&st);
}

static void what_is_not_better_is_dropped(void **state)
{
	struct shell *s = *state;
	uint8_t before[32], after[32];

	start(s);
	settle(s);
	agent_core_best_digest(s->core, before);
	s->score = 0.5; /* equal is not better */
	event(s, (struct agent_event){ .kind = AGENT_EVENT_TRAIN });
	settle(s);
	kge_emb_digest(agent_core_best(s->core), after);
	assert_memory_equal(before, after, 32);
	s->score = NAN; /* and this is worse than anything */
	event(s, (struct agent_event){ .kind = AGENT_EVENT_TRAIN });
	settle(s);
	kge_emb_digest(agent_core_best(s->core), after);
	assert_memory_equal(before, after, 32);
	s->score = 0.6;
	event(s, (struct agent_event){ .kind = AGENT_EVENT_TRAIN });
	settle(s);
	kge_emb_digest(agent_core_best(s->core), after);
	assert_memory_not_equal(before, after, 32);
}

/* There is nothing to go back to: the agent says why, and stops. */
static void a_first_training_that_diverges_leaves_nothing(void **state)
{
	struct shell *s = *state;
	struct agent_status st;
	unsigned commits;

	start(s);
	commits = s->commits;
	s->score = NAN;
	settle(s);
	agent_core_status(s->core, &st);
	assert_false(st.has_best);
	assert_int_equal(st.state, AGENT_STOPPED);
	assert_int_equal(s->commits, commits);
	assert_non_null(strstr(s->trouble, "diverged: lower train.lr"));
	agent_status_release(&st);
}

/* ---- private training ---- */

/* The first thing that waits to be written is. */
static void commit_one(struct shell *s)
{
	uint64_t ticket = s->tickets[0];

	assert_true(s->n_tickets > 0);
	memmove(s->tickets, s->tickets + 1, --s->n_tickets * sizeof(ticket));
	event(s, (struct agent_event){ .kind = AGENT_EVENT_COMMITTED, .ticket = ticket });
}

/* Rows that leave would say what valid prefers (federation.weight). */
static void private_training_weighs_nothing(void **state)
{
	struct shell *s = *state;

	s->config.federation.weight = CONFIG_WEIGHT_VALID;
	set_private_training(&s->config, 100);
	start(s);
	assert_false(weigh_by_valid(s->core));
}

static void other_training_weighs(void **state)
{
	struct shell *s = *state;

	s->config.federation.weight = CONFIG_WEIGHT_VALID;
	start(s);
	assert_true(weigh_by_valid(s->core));
	settle(s);
}

static void private_steps_are_charged_before_they_run(void **state)
{
	struct shell *s = *state;
	struct ledger_training account = { 0 };
	struct agent_status st;

	set_private_training(&s->config, 100);
	start(s);
	assert_int_equal(s->n_stated, 1);
	assert_null(s->job);
	commit_one(s);
	assert_non_null(s->job); /* not before */
	settle(s);
	assert_int_equal(s->n_stated, 3);
	for (size_t k = 0; k < s->n_stated; k++)
		assert_int_equal(ledger_training_add(&account, &s->stated[k], NULL, NULL), 0);
	assert_int_equal(account.steps, 12); /* 6 epochs */
	assert_int_equal(s->evaluations, 0); /* valid is data too */
	agent_core_status(s->core, &st);
	assert_near(st.best_score, 12, 0, 0);
	assert_int_equal(st.private_steps, 12);
	assert_near(st.private_epsilon, ledger_training_epsilon(&account, 1e-5), 1e-12, 0);
	agent_status_release(&st);
	event(s, (struct agent_event){ .kind = AGENT_EVENT_TRAIN });
	settle(s);
	assert_int_equal(s->n_stated, 4);
	assert_int_equal(s->stated[3].statement.total, 16);
}

static void private_training_ends_at_its_cap(void **state)
{
	struct shell *s = *state;
	uint8_t before[32], after[32];
	unsigned said;

	set_private_training(&s->config, 7); /* three epochs, and not a fourth */
	start(s);
	settle(s);
	assert_int_equal(s->n_stated, 2);
	assert_int_equal(s->stated[0].statement.steps, 4);
	assert_int_equal(s->stated[1].statement.steps, 2); /* as many epochs as fit */
	assert_non_null(strstr(s->trouble, "the tables stay as they are"));
	agent_core_best_digest(s->core, before);
	said = s->notices;
	event(s, (struct agent_event){ .kind = AGENT_EVENT_TRAIN });
	settle(s);
	agent_core_best_digest(s->core, after);
	assert_memory_equal(before, after, 32);
	assert_int_equal(s->n_stated, 2);
	assert_true(s->notices > said);
}

/* A restored agent goes on where its owner says that nothing is missing: until then it has no
 * tables, and its first training is not over. */
static void restored_private_training_waits_for_its_owner(void **state)
{
	struct shell *s = *state;
	struct store_peer peer = partner(s);
	struct store_restored r = { .is = true, .training = true };
	struct store_batch b = { 0 };
	struct store_meta meta;
	struct store_core saved = { .peers = &peer, .n_peers = 1, .meta = &meta, .n_meta = 1 };
	struct agent_status st;

	set_private_training(&s->config, 100);
	store_batch_restored(&b, &r);
	meta = b.at[0].u.meta;
	start_with(s, &saved);
	settle(s);
	assert_int_equal(s->n_stated, 0);
	assert_non_null(strstr(s->trouble, "fkge restore --without training"));
	assert_false(s->core->trained || s->core->has_best);
	agent_core_status(s->core, &st);
	assert_false(st.has_best);
	agent_status_release(&st);
	agent_core_free(s->core);
	store_batch_release(&b);
	start(s);
	settle(s);
	assert_int_equal(s->n_stated, 3);
	assert_true(s->core->trained && s->core->has_best);
}

/* As `fkge import --replace` with other names leaves it: the record has the epochs of tables that
 * are the best no more. */
static void a_graph_of_other_names_is_trained(void **state)
{
	struct shell *s = *state;

	for (int private = 0; private < 2; private ++) {
		struct store_batch record = { 0 };
		struct store_peer peer = partner(s);
		struct store_meta meta;
		struct store_core saved = {
			.peers = &peer, .n_peers = 1, .meta = &meta, .n_meta = 1
		};

		if (private)
			set_private_training(&s->config, 100);
		s->n_tickets = s->n_stated = 0;
		start(s);
		settle(s);
		assert_int_equal(s->core->first_done, s->config.train.epochs);
		core_record_add(s->core, &record);
		meta = record.at[0].u.meta;
		agent_core_free(s->core);
		s->n_tickets = s->n_stated = 0;
		start_with(s, &saved);
		settle(s);
		assert_int_equal(s->core->epochs, s->config.train.epochs);
		if (!private)
			agent_core_free(s->core);
		store_batch_release(&record);
	}
}

/* Each start was killed after its charge: nothing is left, and nothing was trained. */
static void a_budget_that_left_no_tables_keeps_none(void **state)
{
	struct shell *s = *state;

	set_private_training(&s->config, 7);
	while (s->on_disk.steps < 6) {
		start(s);
		assert_int_equal(ledger_training_add(&s->on_disk, &s->stated[0], NULL, NULL), 0);
		agent_core_free(s->core);
		s->n_tickets = s->n_stated = 0;
	}
	start(s);
	settle(s);
	assert_int_equal(s->n_stated, 0);
	assert_false(s->core->trained || s->core->has_best);
	assert_non_null(strstr(s->trouble, "has left no tables"));
}

/* What partners bring could not be trained, or kept: their rows, and its releases, are not spent.
 */
static void a_private_agent_at_its_cap_asks_nobody(void **state)
{
	struct shell *s = *state;
	struct buf m = { 0 };
	struct net_writer w;
	struct peer *p;
	int64_t code;

	set_private_training(&s->config, 7);
	start(s);
	settle(s);
	assert_non_null(strstr(s->trouble, "no more rows are taken in"));
	link_up(s, s->peer);
	hello(s, PROTOCOL, s->peer_sign, 0);
	p = peer_find(s->core, s->peer);
	p->aligned = true; /* else once more, so that names are compared */
	memcpy(p->aligned_ours, p->version, 32);
	memcpy(p->aligned_theirs, p->version_theirs, 32);
	net_write_begin(&w, &m, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", 3);
	net_write_close(&w);
	say(s, s->peer, &m);
	settle(s);
	assert_int_not_equal(last_sent(s, &code), NET_MSG_PROPOSE);
	assert_true(p->offered == 3 && !p->queued);
}

static void a_private_agent_below_its_cap_asks(void **state)
{
	struct shell *s = *state;
	int64_t code;

	set_private_training(&s->config, 100);
	start(s);
	settle(s);
	link_up(s, s->peer);
	hello(s, PROTOCOL, s->peer_sign, 3);
	settle(s);
	assert_int_equal(last_sent(s, &code), NET_MSG_PROPOSE);
}

/* What was charged and never run stays charged. */
static void a_crash_after_the_charge_over_counts(void **state)
{
	struct shell *s = *state;

	set_private_training(&s->config, 7);
	start(s);
	assert_int_equal(ledger_training_add(&s->on_disk, &s->stated[0], NULL, NULL), 0);
	agent_core_free(s->core); /* it is on disk, and nobody was told */
	s->n_tickets = s->n_stated = 0;
	start(s);
	settle(s);
	assert_int_equal(s->n_stated, 1);
	assert_int_equal(s->stated[0].statement.sequence, 2);
	assert_int_equal(s->stated[0].statement.total, 6);
}

static void stopped_while_it_is_charged_it_does_not_train(void **state)
{
	struct shell *s = *state;
	float before;

	set_private_training(&s->config, 100);
	start(s);
	before = agent_core_best(s->core)->ent[0];
	event(s, (struct agent_event){ .kind = AGENT_EVENT_STOP });
	assert_null(s->job);
	commit_one(s);
	assert_null(s->job);
	settle(s);
	assert_true(agent_core_best(s->core)->ent[0] == before);
}

static void a_stranger_changes_nothing(void **state)
{
	static const uint8_t stranger[32] = { 0x77 };
	struct shell *s = *state;
	struct buf m = { 0 };
	struct net_writer w;
	unsigned sent, commits;

	start(s);
	settle(s);
	sent = s->sent;
	commits = s->commits;
	link_up(s, stranger);
	net_write_begin(&w, &m, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", 5);
	net_write_close(&w);
	say(s, stranger, &m);
	assert_int_equal(s->sent, sent);
	assert_int_equal(s->commits, commits);
	assert_int_equal(s->disconnects, 1);
}

static void nothing_counts_before_hello(void **state)
{
	struct shell *s = *state;
	unsigned sent;

	start(s);
	settle(s);
	link_up(s, s->peer);
	sent = s->sent;
	propose(s, 1, 4, 0);
	settle(s);
	assert_int_equal(s->sent, sent);
}

static void hello_of_another_version_or_key(void **state)
{
	struct shell *s = *state;
	unsigned sent;

	start(s);
	settle(s);
	link_up(s, s->peer);
	sent = s->sent;
	hello(s, PROTOCOL - 1, s->peer_sign, 1); /* names without their holders */
	assert_non_null(strstr(s->trouble, "speaks protocol 19 and we speak 20: update the older"));
	hello(s, 99, s->peer_sign, 1);
	assert_non_null(strstr(s->trouble, "protocol 99"));
	hello(s, PROTOCOL, s->sign_public, 1);
	assert_non_null(strstr(s->trouble, "another key"));
	settle(s);
	assert_int_equal(s->sent, sent); /* its signal is not followed */
}

/* Else whoever has stolen a replaced key shares the account of the one that took its place. */
static void keys_of_others_and_replaced_keys_sign_for_nobody(void **state)
{
	struct shell *s = *state;
	struct store_peer peers[2] = { partner(s), { .status = STORE_LISTED, .name = "other" } };
	uint8_t was[32], now[32];
	struct ledger_rotation r = { .number = 1 };
	struct store_core saved = {
		.peers = peers, .n_peers = 2, .rotations = { &r, 1 }, .training = s->on_disk
	};
	const uint8_t *const taken[] = { was, now, s->sign_public };
	struct agent_event added = { .kind = AGENT_EVENT_PEER_ADDED, .name = "newcomer" };
	unsigned commits;

	memset(was, 0x44, 32);
	memset(now, 0x55, 32);
	memset(peers[0].sign_key, 0, 32); /* says itself how it signs */
	memset(peers[1].key, 0x33, 32);
	memcpy(peers[1].sign_key, now, 32);
	memcpy(peers[1].account, was, 32);
	memcpy(r.account, was, 32);
	memcpy(r.old_sign, was, 32);
	memcpy(r.new_sign, now, 32);
	memset(r.old_key, 0x34, 32);
	memcpy(r.new_key, peers[1].key, 32);
	start_with(s, &saved);
	settle(s);
	link_up(s, s->peer);
	commits = s->commits;
	for (size_t k = 0; k < 3; k++) {
		s->trouble[0] = '\0';
		hello(s, PROTOCOL, taken[k], 1);
		assert_non_null(strstr(s->trouble, "is, or was, that of another agent"));
		s->trouble[0] = '\0';
		memset(added.peer, 0x77, 32);
		memcpy(added.sign, taken[k], 32);
		event(s, added);
		assert_non_null(strstr(s->trouble, "is, or was, that of another agent"));
		memcpy(added.peer, s->peer, 32); /* known so far by its X25519 key alone */
		event(s, added);
		settle(s);
		assert_int_equal(s->commits, commits);
	}
	s->trouble[0] = '\0';
	hello(s, PROTOCOL, s->peer_sign, 1);
	settle(s);
	assert_true(s->commits > commits);
	assert_int_equal(s->trouble[0], '\0');
}

/* A HELLO of the peer with the signing key of an honest agent that is not known here so far, whose
 * secret the peer does not have.  Listed: its line has named that key before. */
static void claims_a_key(struct shell *s, bool listed, const uint8_t honest[32],
			 const uint8_t proven[32], const uint8_t secret[64])
{
	struct store_peer peer = partner(s);
	struct store_core saved = { .peers = &peer, .n_peers = 1, .training = s->on_disk };
	struct buf m = { 0 };
	unsigned commits;

	memset(peer.sign_key, 0, 32);
	if (listed)
		memcpy(peer.sign_key, honest, 32);
	start_with(s, &saved);
	settle(s);
	link_up(s, s->peer);
	commits = s->commits;
	write_hello(&m, PROTOCOL, honest, proven, secret, 1, 0);
	say(s, s->peer, &m);
	assert_non_null(strstr(s->trouble, "does not prove"));
	assert_false(s->core->peers[0]->greeted);
	assert_memory_equal(s->core->peers[0]->info.sign_key, peer.sign_key, 32);
	settle(s);
	assert_in_range(s->commits, commits, commits + 1); /* of its conduct alone */
	assert_int_equal(s->disconnects, 1);
}

/* By a signature of its own, or by the honest one's own proof, said again. */
static void claims_in_every_way(struct shell *s, bool listed, bool again)
{
	static const uint8_t seed[32] = { 3 }, link[32] = { 0x12 };
	uint8_t honest[32], secret[64];

	crypto_sign_seed_keypair(honest, secret, seed);
	claims_a_key(s, listed, honest, again ? link : s->peer, again ? secret : s->peer_secret);
}

static void a_key_is_claimed(void **state)
{
	claims_in_every_way(*state, false, false);
}

static void a_key_is_claimed_by_its_own_proof(void **state)
{
	claims_in_every_way(*state, false, true);
}

static void a_line_has_claimed_a_key(void **state)
{
	claims_in_every_way(*state, true, false);
}

static void a_line_has_claimed_a_key_by_its_own_proof(void **state)
{
	claims_in_every_way(*state, true, true);
}

/* Listed with a wrong signing key; its owner begins anew while the agent runs. */
static void a_wrong_signing_key_is_forgotten(void **state)
{
	struct shell *s = *state;
	struct store_peer peer = partner(s);
	struct store_core saved = { .peers = &peer, .n_peers = 1, .training = s->on_disk };
	struct agent_event e = { .kind = AGENT_EVENT_PEER_REVOKED };

	memset(peer.sign_key, 0x66, 32);
	start_with(s, &saved);
	settle(s);
	link_up(s, s->peer);
	hello(s, PROTOCOL, s->peer_sign, 1);
	assert_non_null(strstr(s->trouble, "peer forget, then a new invitation"));
	memcpy(e.peer, s->peer, 32);
	event(s, e);
	e.kind = AGENT_EVENT_PEER_FORGOTTEN;
	event(s, e);
	e.kind = AGENT_EVENT_PEER_ADDED;
	memcpy(e.sign, s->peer_sign, 32);
	s->trouble[0] = '\0';
	event(s, e);
	settle(s);
	link_up(s, s->peer);
	hello(s, PROTOCOL, s->peer_sign, 1);
	assert_string_equal(s->trouble, "");
	assert_true(s->core->peers[0]->greeted);
}

/* What a core keeps of as many partners as can be, and of as many former ones: a longer value would
 * not be there when it starts again. */
static void a_record_of_all_peers_is_loaded(void **state)
{
	enum { PEERS = 2 * AGENT_PEERS_MAX };
	struct shell *s = *state;
	struct store_peer *peers = mem_array(PEERS, sizeof(*peers));
	struct store_core saved = { .peers = peers, .n_peers = PEERS, .training = s->on_disk };
	struct store_batch b = { 0 };
	struct err e = { 0 };

	for (uint32_t i = 0; i < PEERS; i++) {
		peers[i].status = i % 2 == 0 ? STORE_LISTED : STORE_REVOKED;
		memset(peers[i].key, 0x11, 32);
		memset(peers[i].sign_key, 0x22, 32);
		memcpy(peers[i].key, &i, sizeof(i));
		memcpy(peers[i].sign_key, &i, sizeof(i));
	}
	start_with(s, &saved);
	settle(s);
	for (size_t i = 0; i < PEERS; i++) {
		struct peer *p = s->core->peers[i];

		p->used_serial = p->fed.joined = UINT32_MAX;
		p->last = (struct peer_last){ .counted = true, .labels = UINT32_MAX };
		p->conduct.breaches = 1;
		memset(p->conduct.why, 'x', sizeof(p->conduct.why) - 1);
	}
	core_record_add(s->core, &b);
	assert_int_equal(b.n, 1);
	assert_in_range(b.at[0].u.meta.len, 1, STORE_META_SMALL);
	for (size_t i = 0; i < PEERS; i++)
		s->core->peers[i]->fed.joined = 0;
	assert_int_equal(core_record_load(s->core, b.at[0].u.meta.base, b.at[0].u.meta.len, &e), 0);
	for (size_t i = 0; i < PEERS; i++)
		assert_int_equal(s->core->peers[i]->fed.joined, UINT32_MAX);
	store_batch_release(&b);
	free(peers);
}

/* Else a command with the whole id of an agent would mean the one that is called so. */
static void nobody_is_called_as_a_key(void **state)
{
	struct shell *s = *state;
	static const uint8_t key[32] = { 0x21 };
	char id[NET_KEY_TEXT];
	struct agent_newcomer met;
	struct err e = { 0 };
	struct buf m = { 0 };

	net_key_format(key, id);
	start(s);
	settle(s);
	link_up(s, s->peer);
	hello_name = id;
	hello(s, PROTOCOL, s->peer_sign, 1);
	write_hello(&m, PROTOCOL, s->peer_sign, s->peer, s->peer_secret, 1, 0);
	hello_name = "peer";
	assert_non_null(strstr(s->trouble, "its name is an agent's id"));
	assert_false(s->core->peers[0]->greeted);
	assert_int_equal(agent_core_meet(s->core, key, m.base, m.len, &met, &e), ERR_PROTO);
	assert_non_null(strstr(e.text, "its name is an agent's id"));
	buf_release(&m);
}

/* Else what follows the name on a line is shown in another order. */
static void no_name_turns_a_line(void **state)
{
	struct shell *s = *state;
	static const uint8_t key[32] = { 0x21 };
	struct agent_newcomer met;
	struct err e = { 0 };
	struct buf m = { 0 };

	start(s);
	settle(s);
	link_up(s, s->peer);
	hello_name = "\xe2\x80\xae"
		     "emca";
	hello(s, PROTOCOL, s->peer_sign, 1);
	write_hello(&m, PROTOCOL, s->peer_sign, s->peer, s->peer_secret, 1, 0);
	hello_name = "peer";
	assert_non_null(strstr(s->trouble, "its name has a control character of direction"));
	assert_false(s->core->peers[0]->greeted);
	assert_int_equal(agent_core_meet(s->core, key, m.base, m.len, &met, &e), ERR_PROTO);
	assert_non_null(strstr(e.text, "a control character of direction"));
	buf_release(&m);
}

/* What PEER_ADDED would say in a notice alone, the owner's command hears. */
static void who_may_be_listed_is_said_before(void **state)
{
	struct shell *s = *state;
	struct store_peer peers[] = { partner(s),
				      { .key = { 0x31 },
					.sign_key = { 0x34 },
					.status = STORE_REJECTED,
					.has_ledger = true },
				      { .key = { 0x32 }, .status = STORE_REJECTED } };
	struct store_core saved = { .peers = peers, .n_peers = 3, .training = s->on_disk };
	struct store_peer fresh = { .key = { 0x77 } };
	struct err e = { 0 };

	start_with(s, &saved);
	assert_int_equal(s->core->n_peers, 2); /* a chain is its own, whatever it is now */
	assert_int_equal(agent_core_may_list(s->core, &fresh, &e), 0);
	assert_int_equal(agent_core_may_list(s->core, &peers[1], &e), 0);
	memcpy(fresh.sign_key, peers[1].sign_key, 32);
	assert_int_equal(agent_core_may_list(s->core, &fresh, &e), ERR_IDENTITY);
	memcpy(fresh.sign_key, s->peer_sign, 32);
	assert_int_equal(agent_core_may_list(s->core, &fresh, &e), ERR_IDENTITY);
	memcpy(fresh.key, s->peer, 32);
	assert_int_equal(agent_core_may_list(s->core, &fresh, &e), 0);
	fresh.sign_key[0] ^= 1;
	assert_int_equal(agent_core_may_list(s->core, &fresh, &e), ERR_IDENTITY);
	assert_non_null(strstr(e.text, "peer is known with another signing key"));
	settle(s);
}

/* Whom an invitation has let in: the core is asked, and changes nothing. */
static void a_newcomer_is_met_by_its_hello(void **state)
{
	struct shell *s = *state;
	static const uint8_t zero[32], key[32] = { 0x21 };
	uint8_t fresh[32], secret[64];
	const struct {
		uint64_t version;
		const uint8_t *sign, *proven, *secret;
		int code;
		const char *says;
	} cases[] = {
		{ PROTOCOL, fresh, key, secret, 0, "" },
		{ PROTOCOL, fresh, s->peer, secret, ERR_IDENTITY, "does not prove" },
		{ PROTOCOL, fresh, key, s->peer_secret, ERR_IDENTITY, "does not prove" },
		{ PROTOCOL - 1, fresh, key, secret, ERR_VERSION, "and we speak 20" },
		{ PROTOCOL, s->peer_sign, key, s->peer_secret, ERR_IDENTITY, "that of another" },
		{ PROTOCOL, s->sign_public, key, secret, ERR_IDENTITY, "that of another" },
		{ PROTOCOL, zero, key, secret, ERR_IDENTITY, "that of another agent" },
	};
	struct agent_newcomer met;
	struct buf m = { 0 };
	struct net_writer w;
	unsigned sent, commits;

	crypto_sign_keypair(fresh, secret);
	start(s);
	settle(s);
	sent = s->sent;
	commits = s->commits;
	for (size_t k = 0; k < sizeof(cases) / sizeof(cases[0]); k++) {
		struct err e = { 0 };

		write_hello(&m, cases[k].version, cases[k].sign, cases[k].proven, cases[k].secret,
			    1, 0);
		assert_int_equal(agent_core_meet(s->core, key, m.base, m.len, &met, &e),
				 cases[k].code);
		assert_non_null(strstr(e.text, cases[k].says));
		buf_release(&m);
		if (k == 0) {
			assert_memory_equal(met.sign, fresh, 32);
			assert_string_equal(met.name, "peer");
		}
	}
	net_write_begin(&w, &m, NET_MSG_SIGNAL, NULL);
	net_put_uint(&w, "s", 1);
	net_write_close(&w);
	assert_int_equal(agent_core_meet(s->core, key, m.base, m.len, &met, NULL), ERR_PROTO);
	assert_int_equal(agent_core_meet(s->core, key, m.base, m.len - 1, &met, NULL), ERR_PROTO);
	buf_release(&m);
	settle(s);
	assert_int_equal(s->sent, sent);
	assert_int_equal(s->commits, commits);
}

static void a_signal_is_followed_once(void **state)
{
	struct shell *s = *state;
	int64_t code;

	start(s);
	settle(s);
	link_up(s, s->peer);
	hello(s, PROTOCOL, s->peer_sign, 3);
	settle(s);
	assert_int_equal(last_sent(s, &code), NET_MSG_PROPOSE);
}

/* Idle, with a partner that has news. */
static void start_and_propose(struct shell *s)
{
	int64_t code;

	start(s);
	link_up(s, s->peer);
	settle(s);
	hello(s, PROTOCOL, s->peer_sign, 3);
	settle(s);
	assert_int_equal(last_sent(s, &code), NET_MSG_PROPOSE);
}

static void busy_defers(void **state)
{
	struct shell *s = *state;
	int64_t code;

	start(s); /* the first training is under way */
	link_up(s, s->peer);
	hello(s, PROTOCOL, s->peer_sign, 0);
	propose(s, 1, 4, 0);
	assert_int_equal(last_sent(s, &code), NET_MSG_DEFER);
	settle(s);
	propose(s, 2, 4, 0);
	settle(s);
	assert_int_equal(last_sent(s, &code), NET_MSG_ACCEPT);
}

static void defer_what_was_sent(struct shell *s)
{
	struct buf m = { 0 };
	struct net_writer w;
	struct net_msg asked;

	assert_int_equal(net_msg_decode(&asked, s->last.base, s->last.len, NULL), 0);
	net_write_begin(&w, &m, NET_MSG_DEFER, asked.session);
	net_put_uint(&w, "ms", 0);
	net_write_close(&w);
	net_msg_release(&asked);
	say(s, s->peer, &m);
}

/* It is asked again after twice as long, and served before: else two that are far apart would turn
 * each other away for ever. */
static void a_late_deferral_is_no_rest(void **state)
{
	enum { LATE_MS = 50000 }; /* twice that is beyond retry_max_ms */
	struct shell *s = *state;
	uint64_t until;
	int64_t code;

	start_and_propose(s);
	s->now_ms += LATE_MS;
	defer_what_was_sent(s);
	settle(s);
	until = s->now_ms + 2 * LATE_MS - 100;
	for (unsigned sent = s->sent; s->now_ms < until; s->now_ms += 100) {
		event(s,
		      (struct agent_event){ .kind = AGENT_EVENT_TIMER, .timer = AGENT_TIMER_POLL });
		assert_int_equal(s->sent, sent);
	}
	propose(s, 1, 4, 0);
	settle(s);
	assert_int_equal(last_sent(s, &code), NET_MSG_ACCEPT);
}

static void wrong_proposals_are_refused(void **state)
{
	struct shell *s = *state;
	struct agent_status st;
	int64_t code;

	start(s);
	link_up(s, s->peer);
	hello(s, PROTOCOL, s->peer_sign, 0);
	settle(s);
	propose(s, 1, 1 << 20, 0); /* rows wider than any limit */
	assert_int_equal(last_sent(s, &code), NET_MSG_REFUSE);
	assert_int_equal(code, ERR_PROTO);
	agent_core_status(s->core, &st);
	assert_int_equal(st.state, AGENT_SLEEP);
	agent_status_release(&st);
}

static void the_lower_key_stands(void **state)
{
	struct shell *s = *state;
	int64_t code;

	start_and_propose(s);
	propose(s, 1, 4, 0); /* from 0x11..., and ours is 0x09...: ours stands */
	assert_int_equal(last_sent(s, &code), NET_MSG_DEFER);
}

static void stops_in_the_middle(void **state)
{
	struct shell *s = *state;
	struct agent_status st;

	start(s);
	assert_non_null(s->job);
	event(s, (struct agent_event){ .kind = AGENT_EVENT_STOP });
	assert_true(atomic_load(&s->job->cancel));
	settle(s);
	agent_core_status(s->core, &st);
	assert_int_equal(st.state, AGENT_STOPPED);
	assert_false(st.has_best);
	agent_status_release(&st);
}

static void a_failed_disk_stops_it(void **state)
{
	struct shell *s = *state;
	struct agent_status st;

	start(s);
	while (s->n_tickets == 0) {
		struct agent_job *job = s->job;

		s->job = NULL;
		job->status = job->run(job);
		event(s, (struct agent_event){ .kind = AGENT_EVENT_JOB_DONE, .job = job });
	}
	event(s, (struct agent_event){ .kind = AGENT_EVENT_COMMITTED,
				       .ticket = s->tickets[0],
				       .status = ERR_STORE });
	s->n_tickets = 0;
	settle(s);
	agent_core_status(s->core, &st);
	assert_int_equal(st.state, AGENT_STOPPED);
	agent_status_release(&st);
	assert_non_null(strstr(s->trouble, "store"));
}

static int check(struct shell *s, struct err *e)
{
	*e = (struct err){ 0 };
	return config_check(&s->config, "settings", e);
}

static void settings_are_checked(void **state)
{
	struct shell *s = *state;
	struct config *c = &s->config;
	struct err e;

	assert_int_equal(check(s, &e), 0);
	c->privacy.delta = 1.0;
	assert_int_equal(check(s, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "privacy.delta"));
	c->privacy.delta = 1e-5;
	c->federation.aligned.share = 0;
	assert_int_equal(check(s, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "federation.aligned_share"));
	c->federation.aligned.share = 1;
	c->federation.session_s = c->federation.lease_s - 1;
	assert_int_equal(check(s, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "federation.session_s"));
	c->federation.session_s = 3600;
	c->federation.sessions = 0;
	assert_int_equal(check(s, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "federation.sessions"));
	c->federation.sessions = CONFIG_SESSIONS_MAX + 1;
	assert_int_equal(check(s, &e), ERR_USAGE);
	c->federation.sessions = 1;
	c->ppat.lambda = (double)NAN;
	assert_int_equal(check(s, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, "ppat.lambda"));
	c->ppat.lambda = 1;
	assert_int_equal(check(s, &e), 0);
}

/* ---- names ---- */

static void assert_name(const struct agent_name *n, const char *text)
{
	assert_int_equal(n->len, strlen(text));
	assert_memory_equal(n->text, text, n->len);
}

static void aliases_stand_in_their_order(void **state)
{
	struct shell *s = *state;
	static const uint8_t other[32] = { 0x22 };
	struct agent_name *n;
	size_t count;

	agent_names_alias(s->names, s->peer, 'e', 0, "drug:1", 6);
	agent_names_alias(s->names, NULL, 'e', 0, "acid", 4);
	agent_names_alias(s->names, NULL, 'e', 1, "ibu", 3);
	agent_names_alias(s->names, NULL, 'e', 99, "nobody", 6); /* no such thing: ignored */
	n = agent_names_toward(s->names, s->peer, 1, 1, &count);
	assert_int_equal(count, 4);
	assert_name(&n[0], "drug:1");
	assert_name(&n[1], "ibu");
	assert_name(&n[2], "headache");
	assert_int_equal(n[3].tag, 'r');
	free(n);
	n = agent_names_toward(s->names, other, 1, 0, &count);
	assert_int_equal(count, 3);
	assert_name(&n[0], "acid");
	free(n);
}

static void of_two_with_one_name_the_first_has_it(void **state)
{
	struct shell *s = *state;
	struct agent_name *n;
	size_t count;

	agent_names_alias(s->names, NULL, 'e', 2, "aspirin", 7);
	n = agent_names_toward(s->names, s->peer, 1, 0, &count);
	assert_int_equal(count, 2);
	assert_int_equal(n[0].id, 0);
	assert_int_equal(n[1].id, 1);
	free(n);
	agent_names_alias(s->names, NULL, 'e', 1, "same", 4); /* of ibuprofen */
	agent_names_alias(s->names, NULL, 'e', 2, "same", 4); /* and of headache */
	n = agent_names_toward(s->names, s->peer, 1, 0, &count);
	assert_int_equal(count, 2);
	assert_int_equal(n[0].id, 0);
	assert_int_equal(n[1].id, 2);
	free(n);
}

static void version_follows_the_names(void **state)
{
	struct shell *s = *state;
	static const uint8_t key[32] = { 1 }, other_key[32] = { 2 };
	uint8_t a[32], b[32];

	agent_names_version(s->names, s->peer, 1, 1, key, a);
	agent_names_version(s->names, s->peer, 1, 1, key, b);
	assert_memory_equal(a, b, 32);
	agent_names_version(s->names, s->peer, 1, 1, other_key, b);
	assert_memory_not_equal(a, b, 32);
	agent_names_version(s->names, s->peer, 1, 0, key, b);
	assert_memory_not_equal(a, b, 32);
	agent_names_alias(s->names, s->peer, 'e', 2, "migraine", 8);
	agent_names_version(s->names, s->peer, 1, 1, key, b);
	assert_memory_not_equal(a, b, 32);
}

/* ---- members ---- */

static void only_a_member_makes_its_record(void **state)
{
	struct shell *s = *state;
	struct agent_member m = { .name = "acme", .address = "acme.example:7447", .time_ms = 5 };
	struct agent_member got;
	struct buf out = { 0 };
	struct err e;

	memcpy(m.key, s->peer, 32);
	memcpy(m.sign_key, s->peer_sign, 32);
	agent_member_sign(&m, s->peer_secret, &out);
	assert_int_equal(agent_member_check(&got, out.base, out.len, &e), 0);
	assert_string_equal(got.name, "acme");
	assert_string_equal(got.address, "acme.example:7447");
	assert_int_equal(got.time_ms, 5);
	assert_memory_equal(got.key, s->peer, 32);
	for (size_t i = 0; i < out.len; i++) { /* any changed byte */
		out.base[i] ^= 1;
		assert_int_not_equal(agent_member_check(&got, out.base, out.len, &e), 0);
		out.base[i] ^= 1;
	}
	assert_int_not_equal(agent_member_check(&got, out.base, out.len - 1, &e), 0);
	buf_clear(&out);
	agent_member_sign(&m, s->sign_secret, &out); /* somebody else's signature */
	assert_int_equal(agent_member_check(&got, out.base, out.len, &e), ERR_IDENTITY);
	buf_clear(&out);
	snprintf(m.name, sizeof(m.name), "ac\xe2\x81\xa6me"); /* turns what follows it */
	agent_member_sign(&m, s->peer_secret, &out);
	assert_int_equal(agent_member_check(&got, out.base, out.len, &e), ERR_PROTO);
	buf_release(&out);
}

/* Thirty days off; auditors would find out first. */
static void a_clock_that_is_off_is_told(void **state)
{
	const int64_t now = INT64_C(1700000000000), day = INT64_C(86400000);
	struct shell *s = *state;
	struct agent_status status;

	s->wall_ms = now;
	start(s);
	settle(s);
	link_up(s, s->peer);
	hello_at(s, PROTOCOL, s->peer_sign, 1, now + AGENT_CLOCK_OFF_MS / 2);
	assert_null(strstr(s->trouble, "clock"));
	hello_at(s, PROTOCOL, s->peer_sign, 1, now - 30 * day);
	assert_non_null(strstr(s->trouble, "43200 minutes behind ours"));
	s->trouble[0] = '\0';
	hello_at(s, PROTOCOL, s->peer_sign, 1, now - 30 * day); /* once is enough */
	assert_int_equal(s->trouble[0], '\0');
	agent_core_status(s->core, &status);
	assert_int_equal(status.peer[0].clock_off_ms, -30 * day);
	agent_status_release(&status);
	hello_at(s, PROTOCOL, s->peer_sign, 1, now);
	hello_at(s, PROTOCOL, s->peer_sign, 1, now + 30 * day);
	assert_non_null(strstr(s->trouble, "ahead of ours"));
}

/* Whoever knocked, was rejected or is revoked takes no partner's place. */
static void only_partners_count_as_peers(void **state)
{
	struct shell *s = *state;
	struct store_peer *peers = mem_array(701, sizeof(*peers));
	struct store_core saved = { .peers = peers, .n_peers = 701, .training = s->on_disk };
	struct agent_status status;

	peers[700] = partner(s);
	for (int i = 0; i < 700; i++) {
		peers[i].status = (enum store_peer_status[]){ STORE_PENDING, STORE_REJECTED,
							      STORE_REVOKED }[i % 3];
		peers[i].key[0] = (uint8_t)i;
		peers[i].key[1] = (uint8_t)(1 + i / 256);
	}
	start_with(s, &saved);
	agent_core_status(s->core, &status);
	assert_int_equal(status.n_peers, 1 + 233); /* the revoked: they may be on the ledger */
	agent_status_release(&status);
	settle(s); /* the first training is under way */
	free(peers);
}

#define with_shell(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		with_shell(only_partners_count_as_peers),
		with_shell(a_clock_that_is_off_is_told),
		with_shell(trains_first_and_sleeps),
		with_shell(what_is_not_better_is_dropped),
		with_shell(a_first_training_that_diverges_leaves_nothing),
		with_shell(private_training_weighs_nothing),
		with_shell(other_training_weighs),
		with_shell(private_steps_are_charged_before_they_run),
		with_shell(private_training_ends_at_its_cap),
		with_shell(restored_private_training_waits_for_its_owner),
		with_shell(a_budget_that_left_no_tables_keeps_none),
		with_shell(a_graph_of_other_names_is_trained),
		with_shell(a_private_agent_at_its_cap_asks_nobody),
		with_shell(a_private_agent_below_its_cap_asks),
		with_shell(a_crash_after_the_charge_over_counts),
		with_shell(stopped_while_it_is_charged_it_does_not_train),
		with_shell(a_stranger_changes_nothing),
		with_shell(nothing_counts_before_hello),
		with_shell(hello_of_another_version_or_key),
		with_shell(keys_of_others_and_replaced_keys_sign_for_nobody),
		with_shell(a_key_is_claimed),
		with_shell(a_key_is_claimed_by_its_own_proof),
		with_shell(a_line_has_claimed_a_key),
		with_shell(a_line_has_claimed_a_key_by_its_own_proof),
		with_shell(a_wrong_signing_key_is_forgotten),
		with_shell(a_record_of_all_peers_is_loaded),
		with_shell(nobody_is_called_as_a_key),
		with_shell(no_name_turns_a_line),
		with_shell(who_may_be_listed_is_said_before),
		with_shell(a_newcomer_is_met_by_its_hello),
		with_shell(a_signal_is_followed_once),
		with_shell(busy_defers),
		with_shell(a_late_deferral_is_no_rest),
		with_shell(wrong_proposals_are_refused),
		with_shell(the_lower_key_stands),
		with_shell(stops_in_the_middle),
		with_shell(a_failed_disk_stops_it),
		with_shell(settings_are_checked),
		with_shell(aliases_stand_in_their_order),
		with_shell(of_two_with_one_name_the_first_has_it),
		with_shell(version_follows_the_names),
		with_shell(only_a_member_makes_its_record),
	};

	if (sodium_init() < 0)
		return 1;
	log_set_level(LOG_ERROR);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
