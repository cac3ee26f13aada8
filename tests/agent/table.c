#include "tests/agent/table.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "store/store.h"

static void later(struct table *t, struct happens h)
{
	if (t->tail == t->room) {
		t->room = t->room ? 2 * t->room : 64;
		t->queue = mem_resize(t->queue, t->room, sizeof(*t->queue));
	}
	t->queue[t->tail++] = h;
}

static void post(struct table_agent *s, struct agent_event *e)
{
	if (s->core == NULL)
		return;
	e->now_ms = s->table->now_ms;
	e->wall_ms = (int64_t)s->table->now_ms + 1700000000000 + s->ahead_ms;
	agent_core_event(s->core, e);
}

/* FNV-1a over what the core asks for: two runs that differ in it have behaved differently. */
static void trace(struct table_agent *s, const void *bytes, size_t n)
{
	for (const uint8_t *at = bytes; n > 0; n--, at++)
		s->trace = (s->trace ^ *at) * UINT64_C(0x100000001b3);
}

static void trace_number(struct table_agent *s, uint64_t number)
{
	trace(s, &number, sizeof(number));
}

/* Private tables are drawn anew each time (libsodium). */
static void trace_tables(struct table_agent *s, const struct store_checkpoint *info)
{
	if (!(s->config.train.kge.dp.epsilon > 0))
		trace(s, info->digest, STORE_DIGEST);
	trace(s, &info->valid_score, sizeof(info->valid_score));
	trace(s, info->protocol, strlen(info->protocol));
}

static size_t agent_by_key(const struct table *t, const uint8_t key[32])
{
	size_t i = 0;

	while (i < AGENTS && memcmp(t->agent[i].key, key, 32) != 0)
		i++;
	return i;
}

/* ---- effects ---- */

static void count_sent(struct table_agent *s, const struct buf *b)
{
	struct net_msg m;
	struct err e = { 0 };

	if (net_msg_decode(&m, b->base, b->len, NULL) != 0)
		return;
	s->sent[m.type]++;
	if (m.type == NET_MSG_CONV && net_get_uint(&m.body, "c", 0, 0, &e) == 0 && e.code == 0)
		s->working++;
	net_msg_release(&m);
}

void table_inject(struct table *t, size_t from, size_t to, struct buf *b)
{
	later(t, (struct happens){ .what = AT_MESSAGE,
				   .agent = to,
				   .from = from,
				   .bytes = mem_copy(b->base, b->len),
				   .n = b->len });
	buf_release(b);
}

static int io_send(void *ctx, const uint8_t peer[32], const uint8_t *bytes, size_t n)
{
	struct table_agent *s = ctx;
	size_t to = agent_by_key(s->table, peer);
	struct buf b = { 0 };

	if (s->muted)
		return ERR_UNREACHABLE;
	if (to == AGENTS || !s->table->up[s->at][to])
		return ERR_UNREACHABLE;
	buf_add(&b, bytes, n);
	trace(s, bytes, n);
	count_sent(s, &b);
	if (s->table->tamper)
		s->table->tamper(s->table->ctx, s->table, s->at, to, &b);
	if (b.len > 0)
		table_inject(s->table, s->at, to, &b);
	buf_release(&b);
	return 0;
}

static void note_said(struct table_agent *s, const struct store_round_member *m)
{
	s->accounts += m->has_account;
	s->accounts_refused += m->refused[0] != '\0';
	s->accounts_differ +=
		m->has_account &&
		(m->their_rows_out != m->rows_in || m->their_rows_in != m->rows_out ||
		 m->their_floats_out != m->floats_in || m->their_floats_in != m->floats_out);
}

static void note_round(struct table_agent *s, const struct store_round *r)
{
	memcpy(s->last_proposer, r->proposer, 32);
	for (uint32_t i = 0; i < r->n_participants; i++)
		note_said(s, &r->members[i]);
}

static void io_commit(void *ctx, struct store_batch *batch, uint64_t ticket)
{
	struct table_agent *s = ctx;

	struct err e = { 0 };

	if (s->muted) {
		store_batch_release(batch);
		return;
	}
	for (size_t i = 0; i < batch->n; i++) {
		s->writes[batch->at[i].kind]++;
		trace_number(s, batch->at[i].kind);
		if (batch->at[i].kind == STORE_PUT_CHECKPOINT)
			trace_tables(s, &batch->at[i].u.checkpoint.info);
		if (batch->at[i].kind == STORE_ADD_STATEMENT)
			trace(s, batch->at[i].u.statement.signature,
			      sizeof(batch->at[i].u.statement.signature));
		if (batch->at[i].kind == STORE_PUT_ROUND)
			note_round(s, &batch->at[i].u.round);
		if (batch->at[i].kind == STORE_CHANGE_ROUND)
			note_said(s, &batch->at[i].u.change.member);
	}
	s->commits++;
	if (disk_apply(&s->disk, batch, &e) != 0)
		abort();
	store_batch_release(batch);
	later(s->table, (struct happens){ .what = AT_COMMIT, .agent = s->at, .ticket = ticket });
}

static void io_read_entries(void *ctx, const uint8_t sign_key[32], uint64_t first, size_t max,
			    uint64_t ticket)
{
	struct table_agent *s = ctx;
	struct happens h = {
		.what = AT_ENTRIES, .agent = s->at, .ticket = ticket, .first = first, .max = max
	};

	if (s->muted)
		return;
	memcpy(h.key, sign_key, 32);
	later(s->table, h);
}

static void io_start_job(void *ctx, struct agent_job *job)
{
	struct table_agent *s = ctx;
	struct happens h = { .what = AT_JOB, .agent = s->at, .job = job };

	trace_number(s, job->kind);
	if (!s->table->held && !(s->table->holds && s->table->holds(s->table, s->at, job))) {
		later(s->table, h);
		return;
	}
	assert(s->table->n_jobs < 8);
	s->table->job[s->table->n_jobs++] = h;
}

void table_let_job_end(struct table *t, size_t which)
{
	later(t, t->job[which]);
	t->n_jobs--;
	memmove(&t->job[which], &t->job[which + 1], (t->n_jobs - which) * sizeof(t->job[0]));
}

void table_let_jobs_end(struct table *t)
{
	t->held = false;
	t->holds = NULL;
	while (t->n_jobs > 0)
		later(t, t->job[--t->n_jobs]);
}

static void io_set_timer(void *ctx, enum agent_timer which, uint64_t delay_ms)
{
	struct table_agent *s = ctx;

	trace_number(s, which);
	trace_number(s, delay_ms);
	s->due[which] = s->table->now_ms + delay_ms;
}

static void io_cancel_timer(void *ctx, enum agent_timer which)
{
	((struct table_agent *)ctx)->due[which] = UINT64_MAX;
}

static void io_connect(void *ctx, const uint8_t peer[32], const char *address)
{
	struct table_agent *s = ctx; /* table_link() is who connects */
	size_t to = agent_by_key(s->table, peer);

	trace(s, peer, 32);
	if (to == AGENTS)
		return;
	s->keeps[to] = true;
	s->connects[to]++;
	snprintf(s->dials[to], sizeof(s->dials[to]), "%s", address);
}

static void dials_there(void *ctx, const uint8_t peer[32], const char *address)
{
	struct table_agent *s = ctx;
	size_t to = agent_by_key(s->table, peer);

	trace(s, peer, 32);
	assert(to < AGENTS && s->keeps[to]);
	snprintf(s->dials[to], sizeof(s->dials[to]), "%s", address);
}

static void io_disconnect(void *ctx, const uint8_t peer[32])
{
	struct table_agent *s = ctx;
	size_t to = agent_by_key(s->table, peer);

	if (s->muted)
		return;
	if (to == AGENTS)
		return;
	s->keeps[to] = s->table->up[s->at][to] = false;
	later(s->table, (struct happens){ .what = AT_DOWN, .agent = to, .from = s->at });
}

static void io_notify(void *ctx, const struct agent_notice *n)
{
	struct table_agent *s = ctx;

	s->notices[n->kind]++;
	s->cause[n->kind] = n->cause;
	trace(s, n->text, strlen(n->text));
	snprintf(s->last, sizeof(s->last), "%s", n->text);
	if (getenv("TABLE_VERBOSE"))
		fprintf(stderr, "%llu: %zu: %s\n", (unsigned long long)s->table->now_ms, s->at,
			n->text);
}

static void io_draw(void *ctx, void *out, size_t n)
{
	struct table_agent *s = ctx;

	for (uint8_t *at = out; n > 0; n--)
		*at++ = (uint8_t)(rng_u64(&s->draw) >> 33);
}

/* ---- learning ---- */

static int train(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		 struct agent_job *job)
{
	(void)ctx, (void)epochs, (void)reset, (void)job;
	work->ent[0] += .01F;
	return 0;
}

static int train_on(void *ctx, const struct graph *g, struct kge_emb *tables, uint32_t epochs,
		    struct agent_job *job)
{
	(void)g;
	return train(ctx, tables, epochs, true, job);
}

static int evaluate(void *ctx, const struct kge_emb *work, struct agent_job *job, double *score)
{
	struct table_agent *s = ctx;

	(void)work, (void)job;
	if (s->improvements > 0) {
		s->improvements--;
		s->score += 1;
	}
	*score = s->score;
	return 0;
}

/* ---- birth ---- */

static void make_graph(struct table_agent *s)
{
	char name[16];

	s->graph = graph_new();
	for (uint32_t k = 0; k < 12; k++) {
		snprintf(name, sizeof(name), "thing-%u", k < 9 ? k : 100 * (unsigned)s->at + k);
		graph_vocab_add(s->graph->entities, name, strlen(name));
	}
	graph_vocab_add(s->graph->relations, "likes", 5);
	graph_vocab_add(s->graph->relations, "eats", 4);
	for (uint32_t k = 0; k < 24; k++) {
		struct graph_triple x = { k % 12, k % 2, (k * 7 + 1) % 12 };

		graph_add(s->graph, k < 20 ? GRAPH_TRAIN : GRAPH_VALID, x);
	}
	s->names = agent_names_new(s->graph);
}

/* What ships, but small and quick, and nothing that goes by the clock of an owner. */
static void make_config(struct table_agent *s)
{
	struct config *c = &s->config;

	config_init(c);
	free(c->name);
	c->name = mem_printf("agent-%zu", s->at);
	c->model.dim = 4;
	c->model.gamma = 4;
	c->privacy.useless_sessions = CONFIG_SPEND_USELESS; /* graphs of a test are small */
	c->federation.share = CONFIG_SHARE_BOTH;
	c->train.epochs = c->train.eval_every = c->federation.epochs_per_round = 1;
	c->federation.local_rounds = c->federation.max_rounds = 0;
	c->federation.names.every_s = c->federation.gather_s = c->federation.sleep_s = 0;
	c->ppat.steps = 3;
	c->ppat.batch = 4;
	c->ppat.pool = 6;
	c->ppat.hidden = 4;
	c->ppat.teachers = 2;
	c->ppat.teacher_steps = c->ppat.student_steps = 2;
	c->privacy.reserve_labels = 8;
	c->federation.lease_s = 5;
	c->federation.session_s = 60;
	c->rounds.compare_rounds = c->rounds.stop_when_worse = 0;
	c->federation.weight = CONFIG_WEIGHT_ALL;
	c->federation.few.weight_from = 1;
	c->rounds.bound_rows = false;	 /* what poison does is told without it ... */
	c->federation.few.judge = false; /* ... and what means are */
	s->improvements = 1;
}

void table_init(struct table *t, uint64_t seed)
{
	*t = (struct table){ .now_ms = 1000, .job_ms = 1 };
	for (size_t i = 0; i < AGENTS; i++) {
		struct table_agent *s = &t->agent[i];
		uint8_t from[32] = { (uint8_t)(i + 1) };

		s->table = t;
		s->at = i;
		rng_seed(&s->draw, seed * 31 + i);
		crypto_sign_seed_keypair(s->sign_public, s->sign_secret, from);
		crypto_generichash(s->key, 32, from, 32, NULL, 0);
		ledger_lineage_of(s->sign_public, s->lineage);
		for (int k = 0; k < AGENT_TIMERS; k++)
			s->due[k] = UINT64_MAX;
		make_graph(s);
		make_config(s);
		s->learner = (struct agent_learner){
			.ctx = s, .train = train, .train_on = train_on, .evaluate = evaluate
		};
		s->io = (struct agent_io){ s,
					   io_send,
					   io_commit,
					   io_start_job,
					   io_set_timer,
					   io_cancel_timer,
					   io_connect,
					   io_disconnect,
					   dials_there,
					   io_notify,
					   io_read_entries,
					   io_draw,
					   NULL,
					   NULL };
	}
}

void table_goes_back(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++)
		t->agent[i].config.federation.after = CONFIG_AFTER_BACK;
}

static void list_peers(struct table_agent *s)
{
	struct store_batch b = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < AGENTS - 1; i++) {
		const struct table_agent *o = &s->table->agent[i < s->at ? i : i + 1];
		struct store_peer p = { .status = STORE_LISTED };

		memcpy(p.key, o->key, 32);
		memcpy(p.sign_key, o->sign_public, 32);
		snprintf(p.name, sizeof(p.name), "agent-%zu", o->at);
		snprintf(p.address, sizeof(p.address), "table:%zu", o->at + 1);
		store_batch_peer(&b, &p);
	}
	if (disk_apply(&s->disk, &b, &e) != 0)
		abort();
	store_batch_release(&b);
}

static const struct store_meta *find_meta(const struct store_core *saved, const char *key)
{
	for (size_t i = 0; i < saved->n_meta; i++)
		if (strcmp(saved->meta[i].key, key) == 0)
			return &saved->meta[i];
	return NULL;
}

static struct kge_emb *first_tables(const struct table_agent *s)
{
	uint32_t n_ent = graph_vocab_count(s->graph->entities);
	uint32_t n_rel = graph_vocab_count(s->graph->relations);
	struct rng r;

	if (s->by_settings) { /* as agent/start.c has them */
		rng_seed(&r, s->config.train.kge.seed);
		return config_tables(&s->config, n_ent, n_rel, &r);
	}
	rng_seed(&r, 7 + s->at);
	return kge_emb_new(kge_model_find("transe"), 4, 4.0F, n_ent, n_rel, &r);
}

static void start(struct table_agent *s)
{
	struct store_core saved;
	struct agent_parts parts = { .config = &s->config,
				     .io = &s->io,
				     .learner = &s->learner,
				     .graph = s->graph,
				     .names = s->names,
				     .saved = &saved,
				     .key = s->key,
				     .sign_public = s->sign_public,
				     .sign_secret = s->sign_secret,
				     .lineage = s->lineage,
				     .rounds_host = s->rounds_host,
				     .retry_min_ms = 50,
				     .retry_max_ms = 3000 };
	struct err e = { 0 };

	disk_load(&s->disk, s->sign_public, &saved);
	parts.best = s->disk.has_best ? kge_emb_copy(s->disk.tables) : first_tables(s);
	parts.latest = s->disk.has_latest ? kge_emb_copy(s->disk.latest_tables) : NULL;
	parts.beside = s->disk.beside_tables;
	parts.part = find_meta(&saved, AGENT_META_PART);
	parts.validation = find_meta(&saved, AGENT_META_VALIDATION);
	if (agent_core_new(&s->core, &parts, &e) != 0) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	disk_unload(&s->disk, &saved);
	post(s, &(struct agent_event){ .kind = AGENT_EVENT_START });
}

void table_start(struct table *t)
{
	for (size_t i = 0; i < AGENTS; i++) {
		list_peers(&t->agent[i]);
		start(&t->agent[i]);
	}
	if (t->started != NULL)
		t->started(t);
}

static bool of_dead(const struct happens *h, size_t at)
{
	return h->agent == at && h->what != AT_UP && h->what != AT_DOWN;
}

/* A worker ends before the core goes: nothing of either gets out. */
static void end_job(struct table *t, size_t at, struct agent_job *job)
{
	struct agent_event e = { .kind = AGENT_EVENT_JOB_DONE, .job = job };

	job->status = ERR_CANCELED;
	post(&t->agent[at], &e);
}

void table_kill(struct table *t, size_t at)
{
	size_t kept = t->head, end;

	t->agent[at].muted = true;
	post(&t->agent[at], &(struct agent_event){ .kind = AGENT_EVENT_STOP });
	end = t->tail;

	for (size_t i = t->head; i < end; i++) {
		struct happens h = t->queue[i];

		if (!of_dead(&h, at)) {
			t->queue[kept++] = h;
			continue;
		}
		if (h.what == AT_JOB)
			end_job(t, at, h.job);
		free(h.bytes);
	}
	assert(t->tail == end); /* muted: nothing new */
	t->tail = kept;
	for (size_t to = 0; to < AGENTS; to++)
		if (to != at && t->up[to][at])
			table_link(t, to, at, false);
	agent_core_free(t->agent[at].core);
	t->agent[at].core = NULL;
	t->agent[at].muted = false;
	for (int k = 0; k < AGENT_TIMERS; k++)
		t->agent[at].due[k] = UINT64_MAX;
}

void table_restart(struct table *t, size_t at)
{
	start(&t->agent[at]);
}

void table_host(struct table *t, size_t at, size_t host)
{
	struct table_agent *s = &t->agent[at];

	s->config.rounds.topology = FED_HOSTED;
	free(s->config.rounds.host);
	s->config.rounds.host = mem_printf("agent-%zu", host);
	memcpy(s->rounds_host, t->agent[host].key, FED_KEY);
}

void table_link(struct table *t, size_t a, size_t b, bool up)
{
	for (int k = 0; k < 2; k++, a ^= b, b ^= a, a ^= b) {
		t->up[a][b] = up;
		later(t, (struct happens){ .what = up ? AT_UP : AT_DOWN, .agent = a, .from = b });
	}
}

/* ---- the clock ---- */

static void happen(struct table *t, struct happens h)
{
	struct table_agent *s = &t->agent[h.agent];
	struct agent_event e = { .ticket = h.ticket, .job = h.job, .bytes = h.bytes, .n = h.n };
	struct ledger_signed *at = NULL;

	e.called = s->called;
	memcpy(e.peer, t->agent[h.from].key, 32);
	e.kind = h.what == AT_COMMIT	? AGENT_EVENT_COMMITTED
		 : h.what == AT_JOB	? AGENT_EVENT_JOB_DONE
		 : h.what == AT_UP	? AGENT_EVENT_LINK_UP
		 : h.what == AT_DOWN	? AGENT_EVENT_LINK_DOWN
		 : h.what == AT_ENTRIES ? AGENT_EVENT_ENTRIES
					: AGENT_EVENT_MESSAGE;
	if (h.what == AT_JOB) {
		t->now_ms += t->job_ms;
		h.job->status = h.job->run(h.job); /* also when nobody waits any more */
		trace(s, &h.job->score, sizeof(h.job->score));
	}
	if (h.what == AT_ENTRIES) {
		at = mem_array(h.max + 1, sizeof(*at));
		e.entries = at;
		e.n_entries = disk_entries(&s->disk, s->sign_public, h.key, h.first, h.max, at);
	}
	post(s, &e);
	free(at);
	free(h.bytes);
}

void table_deliver(struct table *t, size_t from, size_t to, struct buf *b)
{
	struct happens h = { .what = AT_MESSAGE,
			     .agent = to,
			     .from = from,
			     .bytes = mem_copy(b->base, b->len),
			     .n = b->len };

	buf_release(b);
	happen(t, h);
}

static void timers_until(struct table *t, uint64_t ms)
{
	for (size_t i = 0; i < AGENTS; i++)
		for (int k = 0; k < AGENT_TIMERS; k++) {
			struct table_agent *s = &t->agent[i];
			struct agent_event e = { .kind = AGENT_EVENT_TIMER,
						 .timer = (enum agent_timer)k };

			if (s->due[k] > ms)
				continue;
			s->due[k] = UINT64_MAX;
			post(s, &e);
		}
}

bool table_step(struct table *t)
{
	if (t->head == t->tail) {
		t->head = t->tail = 0;
		return false;
	}
	t->now_ms++;
	happen(t, t->queue[t->head++]);
	timers_until(t, t->now_ms);
	return true;
}

static uint64_t next_due(const struct table *t)
{
	uint64_t at = UINT64_MAX;

	for (size_t i = 0; i < AGENTS; i++)
		for (int k = 0; k < AGENT_TIMERS; k++)
			if (t->agent[i].due[k] < at)
				at = t->agent[i].due[k];
	return at;
}

void table_run(struct table *t, uint64_t until_ms, size_t steps)
{
	for (; steps > 0 && t->now_ms < until_ms; steps--) {
		uint64_t at;

		if (table_step(t))
			continue;
		at = next_due(t);
		if (at > until_ms) {
			t->now_ms = until_ms;
			return;
		}
		t->now_ms = at > t->now_ms ? at : t->now_ms;
		timers_until(t, t->now_ms);
	}
}

struct peer *table_peer(struct table *t, size_t at, size_t other)
{
	return peer_find(t->agent[at].core, t->agent[other].key);
}

void table_release(struct table *t)
{
	t->tamper = NULL;
	for (size_t i = 0; i < AGENTS; i++)
		post(&t->agent[i], &(struct agent_event){ .kind = AGENT_EVENT_STOP });
	table_let_jobs_end(t);
	while (table_step(t))
		;
	for (size_t i = 0; i < AGENTS; i++) {
		agent_core_free(t->agent[i].core);
		disk_release(&t->agent[i].disk);
		agent_names_free(t->agent[i].names);
		graph_free(t->agent[i].graph);
		config_release(&t->agent[i].config);
	}
	free(t->queue);
}
