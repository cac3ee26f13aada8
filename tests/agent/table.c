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

static void post(struct seat *s, struct agent_event *e)
{
	if (s->core == NULL)
		return;
	e->now_ms = s->table->now_ms;
	e->wall_ms = (int64_t)s->table->now_ms + 1700000000000;
	agent_core_event(s->core, e);
}

static size_t seat_by_key(const struct table *t, const uint8_t key[32])
{
	size_t i = 0;

	while (i < SEATS && memcmp(t->seat[i].key, key, 32) != 0)
		i++;
	return i;
}

/* ---- effects ---- */

static void count_sent(struct seat *s, const struct buf *b)
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
				   .seat = to,
				   .from = from,
				   .bytes = mem_copy(b->base, b->len),
				   .n = b->len });
	buf_release(b);
}

static int io_send(void *ctx, const uint8_t peer[32], const uint8_t *bytes, size_t n)
{
	struct seat *s = ctx;
	size_t to = seat_by_key(s->table, peer);
	struct buf b = { 0 };

	if (to == SEATS || !s->table->up[s->at][to])
		return ERR_UNREACHABLE;
	buf_add(&b, bytes, n);
	count_sent(s, &b);
	if (s->table->tamper)
		s->table->tamper(s->table->ctx, s->table, s->at, to, &b);
	if (b.len > 0)
		table_inject(s->table, s->at, to, &b);
	buf_release(&b);
	return 0;
}

static void note_said(struct seat *s, const struct store_round_member *m)
{
	s->said += m->has_said;
	s->said_refused += m->refused[0] != '\0';
	s->said_otherwise +=
		m->has_said &&
		(m->said_rows_out != m->rows_in || m->said_rows_in != m->rows_out ||
		 m->said_floats_out != m->floats_in || m->said_floats_in != m->floats_out);
}

static void note_round(struct seat *s, const struct store_round *r)
{
	memcpy(s->last_proposer, r->proposer, 32);
	for (uint32_t i = 0; i < r->n_seats; i++)
		note_said(s, &r->members[i]);
}

static void io_commit(void *ctx, struct store_batch *batch, uint64_t ticket)
{
	struct seat *s = ctx;

	struct err e = { 0 };

	for (size_t i = 0; i < batch->n; i++) {
		s->writes[batch->at[i].kind]++;
		if (batch->at[i].kind == STORE_PUT_ROUND)
			note_round(s, &batch->at[i].u.round);
		if (batch->at[i].kind == STORE_CHANGE_ROUND)
			note_said(s, &batch->at[i].u.change.member);
	}
	s->commits++;
	if (disk_apply(&s->disk, batch, &e) != 0)
		abort();
	store_batch_release(batch);
	later(s->table, (struct happens){ .what = AT_COMMIT, .seat = s->at, .ticket = ticket });
}

static void io_read_entries(void *ctx, const uint8_t sign_key[32], uint64_t first, size_t max,
			    uint64_t ticket)
{
	struct seat *s = ctx;
	struct happens h = {
		.what = AT_ENTRIES, .seat = s->at, .ticket = ticket, .first = first, .max = max
	};

	memcpy(h.key, sign_key, 32);
	later(s->table, h);
}

static void io_start_job(void *ctx, struct agent_job *job)
{
	struct seat *s = ctx;
	struct happens h = { .what = AT_JOB, .seat = s->at, .job = job };

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
	struct seat *s = ctx;

	s->due[which] = s->table->now_ms + delay_ms;
}

static void io_cancel_timer(void *ctx, enum agent_timer which)
{
	((struct seat *)ctx)->due[which] = UINT64_MAX;
}

static void io_connect(void *ctx, const uint8_t peer[32], const char *address)
{
	(void)ctx, (void)peer, (void)address; /* table_link() is who connects */
}

static void io_disconnect(void *ctx, const uint8_t peer[32])
{
	struct seat *s = ctx;
	size_t to = seat_by_key(s->table, peer);

	if (to == SEATS)
		return;
	s->table->up[s->at][to] = false;
	later(s->table, (struct happens){ .what = AT_DOWN, .seat = to, .from = s->at });
}

static void io_notify(void *ctx, const struct agent_notice *n)
{
	struct seat *s = ctx;

	s->notices[n->kind]++;
	s->cause[n->kind] = n->cause;
	snprintf(s->last, sizeof(s->last), "%s", n->text);
	if (getenv("TABLE_VERBOSE"))
		fprintf(stderr, "%llu: %zu: %s\n", (unsigned long long)s->table->now_ms, s->at,
			n->text);
}

static void io_draw(void *ctx, void *out, size_t n)
{
	struct seat *s = ctx;

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
	struct seat *s = ctx;

	(void)work, (void)job;
	if (s->improvements > 0) {
		s->improvements--;
		s->score += 1;
	}
	*score = s->score;
	return 0;
}

/* ---- birth ---- */

static void make_graph(struct seat *s)
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

static void make_config(struct seat *s)
{
	agent_config_defaults(&s->config);
	s->config.spend_useless = true; /* graphs of a test are small */
	snprintf(s->config.name, sizeof(s->config.name), "seat-%zu", s->at);
	s->config.first_epochs = s->config.eval_every = s->config.round_epochs = 1;
	s->config.ppat_steps = 3;
	s->config.ppat_batch = 4;
	s->config.ppat_hidden = 4;
	s->config.teachers = 2;
	s->config.reserve_labels = 8;
	s->config.lease_ms = 5000;
	s->config.session_limit_ms = 60000;
	s->config.retry_min_ms = 50;
	s->config.retry_max_ms = 3000;
	s->improvements = 1;
}

void table_init(struct table *t, uint64_t seed)
{
	*t = (struct table){ .now_ms = 1000, .job_ms = 1 };
	for (size_t i = 0; i < SEATS; i++) {
		struct seat *s = &t->seat[i];
		uint8_t from[32] = { (uint8_t)(i + 1) };

		s->table = t;
		s->at = i;
		rng_seed(&s->draw, seed * 31 + i);
		crypto_sign_seed_keypair(s->sign_public, s->sign_secret, from);
		crypto_generichash(s->key, 32, from, 32, NULL, 0);
		crypto_generichash(s->lineage, 32, s->key, 32, NULL, 0);
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
					   io_notify,
					   io_read_entries,
					   io_draw };
	}
}

static void list_peers(struct seat *s)
{
	struct store_batch b = { 0 };
	struct err e = { 0 };

	for (size_t i = 0; i < SEATS - 1; i++) {
		const struct seat *o = &s->table->seat[i < s->at ? i : i + 1];
		struct store_peer p = { .status = STORE_LISTED };

		memcpy(p.key, o->key, 32);
		memcpy(p.sign_key, o->sign_public, 32);
		snprintf(p.name, sizeof(p.name), "seat-%zu", o->at);
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

static void start(struct seat *s)
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
				     .lineage = s->lineage };
	struct err e = { 0 };
	struct rng r;

	disk_load(&s->disk, s->sign_public, &saved);
	rng_seed(&r, 7 + s->at);
	parts.best = s->disk.has_best ? kge_emb_copy(s->disk.tables)
				      : kge_emb_new(kge_model_find("transe"), 4, 4.0F,
						    graph_vocab_count(s->graph->entities),
						    graph_vocab_count(s->graph->relations), &r);
	parts.latest = s->disk.has_latest ? kge_emb_copy(s->disk.latest_tables) : NULL;
	parts.part = find_meta(&saved, AGENT_META_PART);
	parts.look = find_meta(&saved, AGENT_META_LOOK);
	if (agent_core_new(&s->core, &parts, &e) != 0) {
		fprintf(stderr, "%s\n", e.text);
		abort();
	}
	disk_unload(&s->disk, &saved);
	post(s, &(struct agent_event){ .kind = AGENT_EVENT_START });
}

void table_start(struct table *t)
{
	for (size_t i = 0; i < SEATS; i++) {
		list_peers(&t->seat[i]);
		start(&t->seat[i]);
	}
}

static bool of_dead(const struct happens *h, size_t at)
{
	return h->seat == at && h->what != AT_UP && h->what != AT_DOWN;
}

void table_kill(struct table *t, size_t at)
{
	size_t kept = t->head;

	for (size_t i = t->head; i < t->tail; i++) {
		struct happens h = t->queue[i];

		if (!of_dead(&h, at)) {
			t->queue[kept++] = h;
			continue;
		}
		if (h.what == AT_JOB) /* its worker ends before the core goes */
			free(h.job);
		free(h.bytes);
	}
	t->tail = kept;
	for (size_t to = 0; to < SEATS; to++)
		if (to != at && t->up[to][at])
			table_link(t, to, at, false);
	agent_core_free(t->seat[at].core);
	t->seat[at].core = NULL;
	for (int k = 0; k < AGENT_TIMERS; k++)
		t->seat[at].due[k] = UINT64_MAX;
}

void table_restart(struct table *t, size_t at)
{
	start(&t->seat[at]);
}

void table_link(struct table *t, size_t a, size_t b, bool up)
{
	for (int k = 0; k < 2; k++, a ^= b, b ^= a, a ^= b) {
		t->up[a][b] = up;
		later(t, (struct happens){ .what = up ? AT_UP : AT_DOWN, .seat = a, .from = b });
	}
}

/* ---- the clock ---- */

static void happen(struct table *t, struct happens h)
{
	struct seat *s = &t->seat[h.seat];
	struct agent_event e = { .ticket = h.ticket, .job = h.job, .bytes = h.bytes, .n = h.n };
	struct ledger_signed *at = NULL;

	memcpy(e.peer, t->seat[h.from].key, 32);
	e.kind = h.what == AT_COMMIT	? AGENT_EVENT_COMMITTED
		 : h.what == AT_JOB	? AGENT_EVENT_JOB_DONE
		 : h.what == AT_UP	? AGENT_EVENT_LINK_UP
		 : h.what == AT_DOWN	? AGENT_EVENT_LINK_DOWN
		 : h.what == AT_ENTRIES ? AGENT_EVENT_ENTRIES
					: AGENT_EVENT_MESSAGE;
	if (h.what == AT_JOB) {
		t->now_ms += t->job_ms;
		h.job->status = h.job->run(h.job); /* also when nobody waits any more */
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
			     .seat = to,
			     .from = from,
			     .bytes = mem_copy(b->base, b->len),
			     .n = b->len };

	buf_release(b);
	happen(t, h);
}

static void timers_until(struct table *t, uint64_t ms)
{
	for (size_t i = 0; i < SEATS; i++)
		for (int k = 0; k < AGENT_TIMERS; k++) {
			struct seat *s = &t->seat[i];
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

	for (size_t i = 0; i < SEATS; i++)
		for (int k = 0; k < AGENT_TIMERS; k++)
			if (t->seat[i].due[k] < at)
				at = t->seat[i].due[k];
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
	return peer_find(t->seat[at].core, t->seat[other].key);
}

void table_release(struct table *t)
{
	t->tamper = NULL;
	for (size_t i = 0; i < SEATS; i++)
		post(&t->seat[i], &(struct agent_event){ .kind = AGENT_EVENT_STOP });
	table_let_jobs_end(t);
	while (table_step(t))
		;
	for (size_t i = 0; i < SEATS; i++) {
		agent_core_free(t->seat[i].core);
		disk_release(&t->seat[i].disk);
		agent_names_free(t->seat[i].names);
		graph_free(t->seat[i].graph);
	}
	free(t->queue);
}
