#include "lab/virtual.h"

#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "lab/virtual_internal.h"
#include "store/store.h"

/* Without learning for so long, and longer than anybody waits or is away: none will come. */
enum { STILL_MS = 600 * 1000 };

#define WALL_MS_0 INT64_C(1700000000000) /* what ledgers write at the beginning: no real clock */

/* ---- events into a core ---- */

static void tell_core(struct virtual_node *n, struct agent_event e)
{
	e.now_ms = n->v->now_ms;
	e.wall_ms = WALL_MS_0 + (int64_t)n->v->now_ms;
	agent_core_event(n->core, &e);
}

static void tell_of_peer(struct virtual_node *n, enum agent_event_kind kind,
			 const struct virtual_event *e)
{
	struct agent_event out = { .kind = kind, .bytes = e->bytes, .n = e->n };

	memcpy(out.peer, n->v->at[e->from].who.key, AGENT_KEY);
	tell_core(n, out);
}

/* ---- the disk ---- */

static void shell_commit(void *ctx, struct store_batch *batch, uint64_t ticket)
{
	struct virtual_node *n = ctx;

	n->disk.commits =
		mem_resize(n->disk.commits, n->disk.n_commits + 1, sizeof(*n->disk.commits));
	n->disk.commits[n->disk.n_commits] = (struct virtual_commit){ .ticket = ticket };
	store_batch_move(&n->disk.commits[n->disk.n_commits++].batch, batch);
	virtual_at(n->v, PACE_DISK_MS,
		   (struct virtual_event){ .what = VIRTUAL_ON_DISK, .to = n->at });
}

/* Behind all commits that were asked for before: they take equally long. */
static void shell_read_entries(void *ctx, const uint8_t sign_key[AGENT_KEY], uint64_t first,
			       size_t max, uint64_t ticket)
{
	struct virtual_node *n = ctx;
	struct virtual_event e = {
		.what = VIRTUAL_ENTRIES, .to = n->at, .ticket = ticket, .first = first, .max = max
	};

	memcpy(e.key, sign_key, AGENT_KEY);
	virtual_at(n->v, PACE_DISK_MS, e);
}

static bool is_between(const struct ledger_entry *e, const uint8_t a[32], const uint8_t b[32])
{
	return (memcmp(e->host, a, 32) == 0 && memcmp(e->client, b, 32) == 0) ||
	       (memcmp(e->host, b, 32) == 0 && memcmp(e->client, a, 32) == 0);
}

static void give_entries(struct virtual_node *n, const struct virtual_event *e)
{
	struct ledger_signed *at = mem_array(e->max + 1, sizeof(*at));
	struct agent_event out = { .kind = AGENT_EVENT_ENTRIES,
				   .ticket = e->ticket,
				   .entries = at };

	for (size_t i = 0; i < n->disk.n_entries && out.n_entries < e->max; i++)
		if (is_between(&n->disk.entries[i].entry, n->who.sign_public, e->key) &&
		    n->disk.entries[i].entry.sequence >= e->first)
			at[out.n_entries++] = n->disk.entries[i];
	tell_core(n, out);
	free(at);
}

static void keep_entry(struct virtual_node *n, const struct ledger_signed *s)
{
	n->disk.entries =
		mem_resize(n->disk.entries, n->disk.n_entries + 1, sizeof(*n->disk.entries));
	n->disk.entries[n->disk.n_entries++] = *s;
}

static void keep_countersign(struct virtual_node *n, const struct store_countersign *c)
{
	for (size_t i = 0; i < n->disk.n_entries; i++)
		if (memcmp(n->disk.entries[i].hash, c->hash, LEDGER_HASH) == 0) {
			n->disk.entries[i].countersigned = true;
			memcpy(n->disk.entries[i].countersignature, c->signature, LEDGER_SIGNATURE);
		}
}

static void hear_of_best(struct virtual_node *n, const struct store_checkpoint *info,
			 const struct kge_emb *tables)
{
	bool latest = n->seen[1].mrr == info->valid_score;

	assert(latest || n->seen[0].mrr == info->valid_score);
	if (n->v->c.best != NULL)
		n->v->c.best(n->v->c.ctx, n->at, tables, &n->seen[latest]);
}

static void count_session(struct virtual_node *n, const struct store_session *s)
{
	n->sessions += s->role == STORE_HOST && s->state == STORE_DONE;
	n->failed += s->role == STORE_HOST && s->state == STORE_ABORTED;
}

/* What a restart would read is not kept: nobody restarts. */
static void keep_write(struct virtual_node *n, const struct store_write *w)
{
	switch (w->kind) {
	case STORE_ADD_ENTRY:
	case STORE_RETURN_ENTRY:
		keep_entry(n, &w->u.entry);
		break;
	case STORE_ADD_COUNTERSIGN:
		keep_countersign(n, &w->u.countersign);
		break;
	case STORE_PUT_CHECKPOINT:
		if (w->u.checkpoint.info.kind == STORE_BEST)
			hear_of_best(n, &w->u.checkpoint.info, w->u.checkpoint.emb);
		break;
	case STORE_PUT_SESSION:
		count_session(n, &w->u.session);
		break;
	default:
		break;
	}
}

/* Timers, greetings and prices that follow without any are nothing that a run has taken. */
static void note_progress(struct virtual *v)
{
	v->learnt_ms = v->now_ms;
	for (size_t i = 0; i < v->n; i++)
		v->at[i].sent_then = v->at[i].sent;
}

/* After a commit: has a round ended, and may another one come? */
static void look_at_rounds(struct virtual_node *n)
{
	uint32_t max = n->config->federation.max_rounds;
	struct agent_status st;
	bool ended;

	agent_core_status(n->core, &st);
	ended = st.rounds + st.lone_rounds > n->rounds;
	n->rounds = (uint32_t)(st.rounds + st.lone_rounds);
	n->local_rounds = (uint32_t)st.lone_rounds;
	n->rests = (st.rests || (max > 0 && n->rounds >= max) ||
		    n->config->federation.roles == CONFIG_CLIENT_ONLY) &&
		   !agent_core_waits(n->core) && st.sessions_now == 0 && st.state != AGENT_BUSY;
	agent_status_release(&st);
	if (!ended)
		return;
	note_progress(n->v);
	if (n->v->c.go_on != NULL && !n->v->c.go_on(n->v->c.ctx, n->at))
		n->v->enough = true;
}

static void commit_first(struct virtual_node *n)
{
	struct virtual_commit first = n->disk.commits[0];

	assert(n->disk.n_commits > 0);
	n->disk.n_commits--;
	memmove(n->disk.commits, n->disk.commits + 1, n->disk.n_commits * sizeof(*n->disk.commits));
	for (size_t i = 0; i < first.batch.n; i++)
		keep_write(n, &first.batch.at[i]);
	store_batch_release(&first.batch);
	tell_core(n, (struct agent_event){ .kind = AGENT_EVENT_COMMITTED, .ticket = first.ticket });
	look_at_rounds(n);
}

/* ---- jobs ---- */

static int count_train(void *ctx, struct kge_emb *work, uint32_t epochs, bool reset,
		       struct agent_job *job)
{
	struct virtual_node *n = ctx;
	const struct agent_learner *l = agent_learner_ops(n->real);

	n->work_ms += epochs * pace_epoch_ms(&n->config->train.kge, n->train, work);
	n->epochs += epochs;
	return l->train(l->ctx, work, epochs, reset, job);
}

static int count_train_on(void *ctx, const struct graph *g, struct kge_emb *tables, uint32_t epochs,
			  struct agent_job *job)
{
	struct virtual_node *n = ctx;
	const struct agent_learner *l = agent_learner_ops(n->real);

	n->work_ms +=
		epochs * pace_epoch_ms(&n->config->train.kge, g->split[GRAPH_TRAIN].n, tables);
	n->epochs += epochs;
	return l->train_on(l->ctx, g, tables, epochs, job);
}

static int count_evaluate(void *ctx, const struct kge_emb *work, struct agent_job *job,
			  double *score)
{
	struct virtual_node *n = ctx;
	const struct agent_learner *l = agent_learner_ops(n->real);
	int rc = l->evaluate(l->ctx, work, job, score);

	n->work_ms += pace_ranking_ms(config_protocol(n->config), n->valid, work);
	n->seen[0] = n->seen[1];
	n->seen[1] = *agent_learner_metrics(n->real);
	return rc;
}

static int count_evaluate_each(void *ctx, const struct kge_emb *work, uint32_t triples,
			       struct agent_job *job, double **each, size_t *n)
{
	struct virtual_node *node = ctx;
	const struct agent_learner *l = agent_learner_ops(node->real);
	int rc = l->evaluate_each(l->ctx, work, triples, job, each, n);

	node->work_ms += pace_ranking_ms(config_protocol(node->config), *n, work);
	return rc;
}

static void shell_start_job(void *ctx, struct agent_job *job)
{
	struct virtual_node *n = ctx;

	n->n_jobs++;
	virtual_at(n->v, 0, (struct virtual_event){ .what = VIRTUAL_JOB, .to = n->at, .job = job });
}

/* All at once; its result is there when it would be. */
static void run_at_once(struct virtual_node *n, struct agent_job *job)
{
	bool learns = job->kind == AGENT_JOB_TRAIN || job->kind == AGENT_JOB_EVALUATE;

	n->work_ms = learns ? 0 : PACE_STEP_MS;
	job->status = atomic_load(&job->cancel) ? ERR_CANCELED : job->run(job);
	if (learns && job->status != 0 && job->status != ERR_CANCELED)
		err_set(&n->v->trouble, job->status, "agent %s: %s", n->name,
			job->why.code != 0 ? job->why.text : err_text(job->status));
	assert(n->work_ms >= 0);
	virtual_at(n->v, pace_takes_ms(&n->pace, n->work_ms),
		   (struct virtual_event){ .what = VIRTUAL_JOB_OVER, .to = n->at, .job = job });
}

static void end_job(struct virtual_node *n, struct agent_job *job)
{
	assert(n->n_jobs > 0);
	n->n_jobs--;
	if (job->kind != AGENT_JOB_CONV && job->kind != AGENT_JOB_PRICE)
		note_progress(n->v);
	tell_core(n, (struct agent_event){ .kind = AGENT_EVENT_JOB_DONE, .job = job });
}

/* ---- the rest of the shell ---- */

static int shell_send(void *ctx, const uint8_t peer[AGENT_KEY], const uint8_t *bytes, size_t len)
{
	struct virtual_node *n = ctx;

	return virtual_send(n->v, n->at, virtual_who(n->v, peer), bytes, len);
}

static void shell_set_timer(void *ctx, enum agent_timer t, uint64_t delay_ms)
{
	struct virtual_node *n = ctx;

	virtual_at(
		n->v, delay_ms,
		(struct virtual_event){
			.what = VIRTUAL_TIMER, .to = n->at, .epoch = ++n->timer[t], .timer = t });
}

static void shell_cancel_timer(void *ctx, enum agent_timer t)
{
	struct virtual_node *n = ctx;

	n->timer[t]++;
}

static void shell_connect(void *ctx, const uint8_t peer[AGENT_KEY], const char *address)
{
	struct virtual_node *n = ctx;
	size_t to = virtual_who(n->v, peer);

	(void)address;
	n->wants[to] = true;
	virtual_dial(n->v, n->at, to);
}

static void shell_disconnect(void *ctx, const uint8_t peer[AGENT_KEY])
{
	struct virtual_node *n = ctx;
	size_t to = virtual_who(n->v, peer);

	n->wants[to] = false;
	virtual_hang_up(n->v, n->at, to);
}

static void shell_move(void *ctx, const uint8_t peer[AGENT_KEY], const char *address)
{
	(void)ctx;
	(void)peer;
	(void)address;
}

static void shell_notify(void *ctx, const struct agent_notice *notice)
{
	(void)ctx;
	(void)notice;
}

static void shell_draw(void *ctx, void *out, size_t len)
{
	struct virtual_node *n = ctx;
	uint8_t *at = out;

	for (; len > 0; len--)
		*at++ = (uint8_t)(rng_u64(&n->draws) >> 33);
}

/* ---- birth ---- */

static void make_identity(struct virtual_node *n)
{
	uint8_t seed[crypto_sign_SEEDBYTES];

	shell_draw(n, n->who.key, sizeof(n->who.key));
	shell_draw(n, seed, sizeof(seed));
	crypto_sign_seed_keypair(n->who.sign_public, n->who.sign_secret, seed);
	shell_draw(n, n->who.lineage, sizeof(n->who.lineage)); /* the draws after it stay */
	ledger_lineage_of(n->who.sign_public, n->who.lineage);
}

static void name_all(struct virtual_node *n, const struct virtual_agent *a, char tag)
{
	uint32_t count = graph_vocab_count(tag == 'e' ? a->graph->entities : a->graph->relations);
	size_t len;

	for (uint32_t id = 0; id < count; id++) {
		const char *alias = a->alias(a->alias_ctx, tag, id, &len);

		if (alias != NULL)
			agent_names_alias(n->names, NULL, tag, id, alias, len);
	}
}

static void init_node(struct virtual *v, size_t i, const struct virtual_agent *a)
{
	struct virtual_node *n = &v->at[i];
	const struct config *c = a->config;
	size_t valid = a->graph->split[GRAPH_VALID].n, limit = c->eval.valid_limit;
	struct rng all;

	*n = (struct virtual_node){ .v = v,
				    .at = i,
				    .name = mem_strdup(a->name),
				    .pace = a->pace,
				    .config = c,
				    .train = a->graph->split[GRAPH_TRAIN].n,
				    .valid = limit > 0 && limit < valid ? limit : valid };
	n->io = (struct agent_io){ n,
				   shell_send,
				   shell_commit,
				   shell_start_job,
				   shell_set_timer,
				   shell_cancel_timer,
				   shell_connect,
				   shell_disconnect,
				   shell_move,
				   shell_notify,
				   shell_read_entries,
				   shell_draw,
				   NULL,
				   NULL };
	rng_seed(&all, v->c.seed);
	n->draws = rng_stream(&all, 5000 + i);
	make_identity(n);
	n->wants = mem_array(v->n, sizeof(*n->wants));
	n->names = agent_names_new(a->graph);
	if (a->alias != NULL) {
		name_all(n, a, 'e');
		name_all(n, a, 'r');
	}
	n->real =
		agent_learner_new(&c->train.kge, a->graph, config_protocol(c), c->eval.valid_limit);
	n->learner = (struct agent_learner){ .ctx = n,
					     .train = count_train,
					     .train_on = count_train_on,
					     .evaluate = count_evaluate,
					     .evaluate_each = count_evaluate_each };
}

static uint64_t patience_of(const struct virtual_agent *a)
{
	const struct config *c = a->config;

	return config_ms(4 * a->pace.away_s + c->federation.gather_s + c->federation.lease_s);
}

/* Everybody lists everybody. */
static int make_core(struct virtual *v, size_t i, const struct virtual_agent *a, struct err *e)
{
	struct virtual_node *n = &v->at[i];
	struct store_core saved = { .peers = mem_array(v->n, sizeof(*saved.peers)) };
	struct agent_parts parts = { .config = n->config,
				     .io = &n->io,
				     .learner = &n->learner,
				     .graph = a->graph,
				     .names = n->names,
				     .saved = &saved,
				     .key = n->who.key,
				     .sign_public = n->who.sign_public,
				     .sign_secret = n->who.sign_secret,
				     .lineage = n->who.lineage,
				     .best = kge_emb_copy(a->start) };
	int rc;

	for (size_t other = 0; other < v->n; other++) {
		struct store_peer p = { .status = STORE_LISTED };

		if (other == i)
			continue;
		memcpy(p.key, v->at[other].who.key, AGENT_KEY);
		memcpy(p.sign_key, v->at[other].who.sign_public, sizeof(p.sign_key));
		snprintf(p.name, sizeof(p.name), "%.100s", v->at[other].name);
		saved.peers[saved.n_peers++] = p;
	}
	rc = agent_core_new(&n->core, &parts, e);
	free(saved.peers);
	return rc != 0 ? err_prefix(e, "%s", n->name) : 0;
}

int virtual_new(struct virtual **out, const struct virtual_config *c,
		const struct virtual_agent *agents, size_t n, struct err *e)
{
	struct virtual *v = mem_array(1, sizeof(*v));
	int rc = 0;

	assert(n >= 2 && n <= AGENT_PEERS_MAX);
	v->c = *c;
	v->n = n;
	v->at = mem_array(n, sizeof(*v->at));
	v->link = mem_array(n * n, sizeof(*v->link));
	v->still_ms = STILL_MS;
	for (size_t i = 0; i < n; i++) {
		init_node(v, i, &agents[i]);
		v->still_ms += patience_of(&agents[i]);
	}
	for (size_t i = 0; i < n && rc == 0; i++) {
		rc = make_core(v, i, &agents[i], e);
		virtual_at(v, i, (struct virtual_event){ .what = VIRTUAL_START, .to = i });
	}
	if (rc == 0)
		*out = v;
	else
		virtual_free(v);
	return rc;
}

/* Jobs are given back to a core that nobody hears any more, so that memory is freed. */
static void stop_node(struct virtual_node *n)
{
	if (n->core != NULL)
		tell_core(n, (struct agent_event){ .kind = AGENT_EVENT_STOP });
}

static void free_node(struct virtual_node *n)
{
	agent_core_free(n->core);
	for (size_t i = 0; i < n->disk.n_commits; i++)
		store_batch_release(&n->disk.commits[i].batch);
	free(n->disk.commits);
	free(n->disk.entries);
	agent_learner_free(n->real);
	agent_names_free(n->names);
	free(n->wants);
	free(n->name);
	sodium_memzero(n->who.sign_secret, sizeof(n->who.sign_secret));
}

void virtual_free(struct virtual *v)
{
	struct virtual_event e;

	if (v == NULL)
		return;
	for (size_t i = 0; i < v->n; i++)
		stop_node(&v->at[i]);
	while (virtual_take(v, &e)) {
		if (e.what == VIRTUAL_JOB)
			e.job->status = ERR_CANCELED;
		if (e.what == VIRTUAL_JOB || e.what == VIRTUAL_JOB_OVER)
			end_job(&v->at[e.to], e.job);
		free(e.bytes);
	}
	for (size_t i = 0; i < v->n; i++)
		free_node(&v->at[i]);
	free(v->at);
	free(v->link);
	free(v->heap);
	free(v);
}

/* ---- the run ---- */

static void start_node(struct virtual_node *n)
{
	uint64_t turn = pace_turns_ms(&n->pace, n->v->now_ms);

	if (turn != UINT64_MAX)
		virtual_at(n->v, turn - n->v->now_ms,
			   (struct virtual_event){ .what = VIRTUAL_TURN, .to = n->at });
	tell_core(n, (struct agent_event){ .kind = AGENT_EVENT_START });
}

static void happen_at(struct virtual_node *n, const struct virtual_event *e)
{
	switch (e->what) {
	case VIRTUAL_START:
		start_node(n);
		break;
	case VIRTUAL_LINK_UP:
		tell_of_peer(n, AGENT_EVENT_LINK_UP, e);
		break;
	case VIRTUAL_LINK_DOWN:
		tell_of_peer(n, AGENT_EVENT_LINK_DOWN, e);
		break;
	case VIRTUAL_MESSAGE:
		n->sent.bytes_in += e->n;
		tell_of_peer(n, AGENT_EVENT_MESSAGE, e);
		break;
	case VIRTUAL_TIMER:
		if (e->epoch == n->timer[e->timer])
			tell_core(n, (struct agent_event){ .kind = AGENT_EVENT_TIMER,
							   .timer = e->timer });
		break;
	case VIRTUAL_ON_DISK:
		commit_first(n);
		break;
	case VIRTUAL_ENTRIES:
		give_entries(n, e);
		break;
	case VIRTUAL_JOB:
		run_at_once(n, e->job);
		break;
	case VIRTUAL_JOB_OVER:
		end_job(n, e->job);
		break;
	case VIRTUAL_TURN:
		virtual_turn(n->v, n->at);
		break;
	case VIRTUAL_DIALLED:
		break;
	}
}

static bool is_of_link(enum virtual_what what)
{
	return what == VIRTUAL_DIALLED || what == VIRTUAL_LINK_UP || what == VIRTUAL_LINK_DOWN ||
	       what == VIRTUAL_MESSAGE;
}

/* Nobody takes rows in any more; or nobody has for so long that nobody will. */
static bool all_rest(const struct virtual *v)
{
	size_t jobs = 0, rest = 0;

	for (size_t i = 0; i < v->n; i++) {
		rest += v->at[i].rests;
		jobs += v->at[i].n_jobs;
	}
	return rest == v->n || (jobs == 0 && v->now_ms - v->learnt_ms > v->still_ms);
}

int virtual_run(struct virtual *v, struct err *e)
{
	struct virtual_event ev;

	while (!v->enough && !all_rest(v) && v->trouble.code == 0 && virtual_take(v, &ev)) {
		if (!is_of_link(ev.what) || virtual_link_event(v, &ev))
			happen_at(&v->at[ev.to], &ev);
		free(ev.bytes);
		if (v->c.cancel != NULL && atomic_load(v->c.cancel))
			return ERR_CANCELED;
	}
	v->ended = true;
	if (v->trouble.code != 0)
		return err_set(e, v->trouble.code, "%s", v->trouble.text);
	return 0;
}

void virtual_figures(const struct virtual *v, size_t agent, struct virtual_figures *out)
{
	const struct virtual_node *n = &v->at[agent];
	const struct virtual_sent *sent = v->ended ? &n->sent_then : &n->sent;
	struct agent_status st;
	double unused;

	agent_core_status(n->core, &st);
	for (size_t i = 0; i < st.spent.n; i++) /* and is known from then on */
		(void)!ledger_epsilon(st.spent.unpriced[i].at, st.spent.unpriced[i].n, &unused,
				      NULL);
	agent_status_release(&st);
	agent_core_status(n->core, &st);
	*out = (struct virtual_figures){
		.now_ms = v->ended ? v->learnt_ms : v->now_ms,
		.rounds = n->rounds,
		.local_rounds = n->local_rounds,
		.epochs = n->epochs,
		.sessions = n->sessions,
		.sessions_failed = n->failed,
		.messages = sent->messages,
		.bytes_out = sent->bytes_out,
		.bytes_in = sent->bytes_in,
		.rows_sent = st.sent.bare + st.sent.noisy,
		.epsilon = st.spent.epsilon,
		.rests = n->rests,
	};
	agent_status_release(&st);
}
