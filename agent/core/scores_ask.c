/* agent/core/scores_ask.c - our owner asks the members of our last round for masked scores.
 *
 * What one member sends says nothing, so it is checked for its length and signature alone; the sums
 * show whether all went by the same question, names and keys. */
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/scores_internal.h"
#include "base/mem.h"

/* ---- the end of one ---- */

static void free_scores_asked(struct score_asking *g)
{
	fed_score_sum_free(g->sum);
	free(g->of);
	free(g);
}

static void tell_scores(struct agent_core *c, struct score_asking *g)
{
	uint32_t entities = graph_vocab_count(c->graph->entities);
	struct agent_answer *all = mem_array(g->n + 1, sizeof(*all));
	float *sum = mem_array((size_t)entities + 1, sizeof(*sum));
	uint8_t *others = mem_array((size_t)entities + 1, sizeof(*others));
	struct agent_scores x = {
		.of = all, .n = g->n, .entities = entities, .sum = sum, .others = others
	};

	for (size_t i = 0; i < g->n; i++)
		all[i] = g->of[i].answer;
	x.code = g->wrong.code != 0 ? g->wrong.code
				    : fed_score_sum_close(g->sum, sum, others, &g->wrong);
	snprintf(x.why, sizeof(x.why), "%.*s", AGENT_TEXT_MAX - 1, g->wrong.text);
	if (c->io.scored != NULL)
		c->io.scored(c->io.ctx, g->ticket, &x);
	free(all);
	free(sum);
	free(others);
}

/* What is over is told; the timer is for the first of those that wait: what is on its way to disk
 * has come in time. */
static void settle_scores(struct agent_core *c)
{
	struct score_asks *a = &c->asks.scores;
	uint64_t due_ms = UINT64_MAX;
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct score_asking *g = a->at[i];

		if (g->phase != SCORES_OVER) {
			if (g->phase != SCORES_SAVES && g->due_ms < due_ms)
				due_ms = g->due_ms;
			a->at[kept++] = g;
			continue;
		}
		tell_scores(c, g);
		free_scores_asked(g);
	}
	a->n = kept;
	if (due_ms == UINT64_MAX)
		c->io.cancel_timer(c->io.ctx, AGENT_TIMER_SCORED);
	else
		c->io.set_timer(c->io.ctx, AGENT_TIMER_SCORED,
				due_ms > c->now_ms ? due_ms - c->now_ms : 0);
}

/* Who has shown a key need not wait for those of others. */
static void call_scores_off(struct agent_core *c, const struct score_asking *g)
{
	const struct net_score_keys b = { .shown = { NULL, 0 } };

	for (size_t i = 0; g->phase == SCORES_KEYS && i < g->n; i++)
		if (g->of[i].has_shown && g->of[i].peer->greeted)
			peer_say(c, g->of[i].peer, NET_MSG_SCORE_KEYS, g->of[i].record.step.id,
				 NET_BODY_score_keys, &b);
}

/* Without this one there is no sum.  which: NULL: it is nobody's fault. */
static void fail_scores(struct agent_core *c, struct score_asking *g, struct score_asked *which,
			int code, const char *why)
{
	call_scores_off(c, g);
	g->phase = SCORES_OVER;
	err_set(&g->wrong, code, "%s%s%s", which != NULL ? which->peer->info.name : "",
		which != NULL ? ": " : "", why);
	if (which == NULL)
		return;
	which->answer.code = code;
	snprintf(which->answer.why, sizeof(which->answer.why), "%.*s", AGENT_TEXT_MAX - 1, why);
}

/* ---- asking ---- */

static void say_score(struct agent_core *c, const struct score_asking *g, struct score_asked *x,
		      const struct score_members *m, const struct agent_score_ask *ask)
{
	const struct ledger_step *s = &x->record.step;
	struct net_score b = { .members = { m->key, m->n * FED_KEY },
			       .holders = g->holders,
			       .vectors = net_tensor_of(ask->vectors, ask->n, ask->dim),
			       .patience_ms = ask->patience_ms,
			       .asked_ms = s->asked_ms };
	uint64_t before = x->peer->bytes_out + x->peer->outbox.bytes;

	memcpy(b.question, g->id, sizeof(b.question));
	memcpy(b.alignment, s->alignment, sizeof(b.alignment));
	memcpy(b.signature, s->asker_signature, sizeof(b.signature));
	peer_say(c, x->peer, NET_MSG_SCORE, s->id, NET_BODY_score, &b);
	x->answer.bytes += x->peer->bytes_out + x->peer->outbox.bytes - before;
}

/* The session is this member's alone, so that no two records have one id. */
static void note_score_member(const struct agent_core *c, struct score_asked *x,
			      const struct fed_score_question *q)
{
	struct ledger_step *s = &x->record.step;
	const struct peer *p = x->peer;

	memcpy(x->answer.peer, p->info.key, AGENT_KEY);
	snprintf(x->answer.name, sizeof(x->answer.name), "%s", p->info.name);
	memcpy(x->record.peer, p->info.key, STORE_KEY);
	x->record.ours = true;
	c->io.draw(c->io.ctx, s->id, sizeof(s->id));
	memcpy(s->asker, c->sign_public, sizeof(s->asker));
	memcpy(s->owner, p->info.sign_key, sizeof(s->owner));
	memcpy(s->relation, LEDGER_NO_RELATION, sizeof(LEDGER_NO_RELATION));
	s->norm = LEDGER_SCORES;
	s->policy = LEDGER_SOFT;
	s->points = (uint32_t)q->n;
	s->want = q->holders;
	s->asked_ms = c->wall_ms > 0 ? c->wall_ms : 0;
	memcpy(s->alignment, p->digest, sizeof(s->alignment));
	fed_score_digest(q, s->frontier);
	ledger_step_ask(s, c->sign_secret);
}

/* All members are there, or nobody is asked. */
static int ask_members(struct agent_core *c, struct score_asking *g, struct score_members *m,
		       const struct agent_score_ask *ask)
{
	struct fed_score_question q = { .members = m->key,
					.n_members = m->n,
					.holders = g->holders,
					.vectors = (const uint8_t *)ask->vectors,
					.n = ask->n,
					.dim = ask->dim };
	int rc;

	memcpy(q.id, g->id, FED_ID);
	memcpy(q.asker, c->key, FED_KEY);
	rc = scores_members_open(c, m, &g->wrong);
	if (rc == 0)
		rc = fed_score_sum_new(&g->sum, &q, m->at, graph_vocab_count(c->graph->entities),
				       &g->wrong);
	if (rc != 0)
		return rc;
	g->n = m->n - 1;
	g->of = mem_array(g->n, sizeof(*g->of));
	for (size_t i = 0; i < g->n; i++) {
		g->of[i].peer = m->peer[i];
		note_score_member(c, &g->of[i], &q);
	}
	for (size_t i = 0; i < g->n; i++)
		if (!g->of[i].peer->greeted) {
			fail_scores(c, g, &g->of[i], ERR_UNREACHABLE, "there is no link to it");
			return g->wrong.code;
		}
	for (size_t i = 0; i < g->n; i++)
		say_score(c, g, &g->of[i], m, ask);
	return 0;
}

static int open_scores(struct agent_core *c, struct score_asking *g,
		       const struct agent_score_ask *ask)
{
	struct score_members m;
	int rc;

	if (c->stopping)
		return err_set(&g->wrong, ERR_BUSY, "this agent is being stopped");
	if (!scores_last_members(c, &m))
		return err_set(&g->wrong, ERR_BUSY,
			       "no round came to something so far: the members of the last one "
			       "are asked");
	g->holders = ask->holders < m.n ? ask->holders : (uint32_t)m.n;
	c->io.draw(c->io.ctx, g->id, sizeof(g->id));
	rc = ask_members(c, g, &m, ask);
	scores_members_release(&m);
	return rc;
}

void scores_begin(struct agent_core *c, const struct agent_score_ask *ask)
{
	struct score_asking *g = mem_array(1, sizeof(*g));

	assert(ask->n >= 1 && ask->dim >= 1 && ask->n <= FED_SCORE_FLOATS_MAX / ask->dim);
	assert(ask->n <= NET_VECTORS_MAX && ask->dim <= NET_DIM_MAX && ask->holders >= 2);
	assert(ask->patience_ms >= 1 && ask->patience_ms <= NET_PATIENCE_MAX_MS);
	g->ticket = ask->ticket;
	g->due_ms = c->now_ms + ask->patience_ms;
	if (c->asks.scores.n == AGENT_ASKS_MAX) {
		err_set(&g->wrong, ERR_BUSY, "too many questions of ours are under way");
		tell_scores(c, g);
		free_scores_asked(g);
		return;
	}
	if (open_scores(c, g, ask) != 0)
		g->phase = SCORES_OVER;
	c->asks.scores.at[c->asks.scores.n++] = g;
	settle_scores(c);
}

/* ---- what members say ---- */

static struct score_asked *find_score_asked(const struct agent_core *c, const struct peer *p,
					    const uint8_t id[LEDGER_STEP_ID],
					    struct score_asking **of)
{
	for (size_t i = 0; i < c->asks.scores.n; i++) {
		struct score_asking *g = c->asks.scores.at[i];

		for (size_t k = 0; g->phase <= SCORES_WORDS && k < g->n; k++)
			if (g->of[k].peer == p && !g->of[k].has_words &&
			    memcmp(g->of[k].record.step.id, id, LEDGER_STEP_ID) == 0) {
				*of = g;
				return &g->of[k];
			}
	}
	return NULL;
}

bool scores_expect(const struct agent_core *c, const struct peer *p, const struct net_msg_head *h)
{
	struct score_asking *g;

	return h->has_session && find_score_asked(c, p, h->session, &g) != NULL;
}

static void breach_scores(struct agent_core *c, struct score_asking *g, struct score_asked *x,
			  const struct err *e)
{
	struct peer *p = x->peer;

	fail_scores(c, g, x, e->code, e->text);
	conduct_breach(c, p, e->code, "%.200s", e->text);
	settle_scores(c);
}

static void say_score_keys(struct agent_core *c, struct score_asking *g)
{
	uint8_t all[(FED_MEMBERS_MAX - 1) * FED_SCORE_SHOWN];
	const struct net_score_keys b = { .shown = { all, g->n * FED_SCORE_SHOWN } };

	for (size_t i = 0; i < g->n; i++)
		memcpy(all + i * FED_SCORE_SHOWN, g->of[i].shown, FED_SCORE_SHOWN);
	for (size_t i = 0; i < g->n; i++) {
		struct peer *p = g->of[i].peer;
		uint64_t before = p->bytes_out + p->outbox.bytes;

		peer_say(c, p, NET_MSG_SCORE_KEYS, g->of[i].record.step.id, NET_BODY_score_keys,
			 &b);
		g->of[i].answer.bytes += p->bytes_out + p->outbox.bytes - before;
	}
	g->phase = SCORES_WORDS;
}

void scores_take_key(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct score_asking *g;
	struct score_asked *x = find_score_asked(c, p, m->session, &g);
	struct err e = m->wrong;

	if (x == NULL)
		return;
	x->answer.bytes += m->n;
	if (e.code == 0 && x->has_shown)
		err_set(&e, ERR_PROTO, "shows two mask keys for one question");
	if (e.code != 0 ||
	    fed_score_sum_check(g->sum, (size_t)(x - g->of), m->score_key.shown, &e) != 0) {
		breach_scores(c, g, x, &e);
		return;
	}
	memcpy(x->shown, m->score_key.shown, FED_SCORE_SHOWN);
	x->has_shown = true;
	for (size_t i = 0; i < g->n; i++)
		if (!g->of[i].has_shown)
			return;
	say_score_keys(c, g);
}

static void scores_saved(struct agent_core *c)
{
	struct score_asks *a = &c->asks.scores;

	a->saving[0]->phase = SCORES_OVER;
	a->n_saving--;
	memmove(a->saving, a->saving + 1, a->n_saving * sizeof(struct score_asking *));
	settle_scores(c);
}

/* All have answered: what they have signed comes to disk before the sums are told. */
static void keep_scores(struct agent_core *c, struct score_asking *g)
{
	struct score_asks *a = &c->asks.scores;
	struct store_batch b = { 0 };

	g->phase = SCORES_SAVES;
	for (size_t i = 0; i < g->n; i++)
		store_batch_step(&b, &g->of[i].record);
	a->saving = mem_resize(a->saving, a->n_saving + 1, sizeof(struct score_asking *));
	a->saving[a->n_saving++] = g;
	core_commit(c, &b, scores_saved);
	settle_scores(c);
}

static int check_words_signed(const struct score_asking *g, struct score_asked *x,
			      const struct net_scored *b, struct err *e)
{
	struct ledger_step *s = &x->record.step;

	if (g->phase != SCORES_WORDS)
		return err_set(e, ERR_PROTO, "answers scores before it has all keys");
	if (b->words.len % FED_SCORE_WORD != 0)
		return err_set(e, ERR_PROTO, "answers %zu bytes of scores", b->words.len);
	s->rows = (uint32_t)(b->words.len / FED_SCORE_WORD - 1);
	s->answered_ms = b->answered_ms;
	ledger_step_hash(s->answer, b->words.base, b->words.len, NULL, 0);
	memcpy(s->owner_signature, b->signature, sizeof(s->owner_signature));
	return ledger_step_is_answered(s)
		       ? 0
		       : err_set(e, ERR_IDENTITY, "has not signed what it answers");
}

/* It may have compared names with another member anew, and count holders otherwise: no breach. */
static bool add_member_words(struct agent_core *c, struct score_asking *g, struct score_asked *x,
			     const struct net_scored *b)
{
	struct err e = { 0 };

	x->has_words = fed_score_sum_add(g->sum, (size_t)(x - g->of), b->words.base, b->words.len,
					 &e) == 0;
	if (x->has_words)
		return true;
	fail_scores(c, g, x, ERR_BUSY, e.text);
	settle_scores(c); /* g and x are gone */
	return false;
}

void scores_take_words(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct score_asking *g;
	struct score_asked *x = find_score_asked(c, p, m->session, &g);
	struct err e = m->wrong;

	if (x == NULL)
		return;
	x->answer.bytes += m->n;
	if (e.code == 0 && m->kind == NET_BODY_reason) {
		fail_scores(c, g, x, (int)m->reason.code, m->reason.why);
		settle_scores(c);
		return;
	}
	if (e.code != 0 || check_words_signed(g, x, &m->scored, &e) != 0) {
		breach_scores(c, g, x, &e);
		return;
	}
	if (!add_member_words(c, g, x, &m->scored))
		return;
	for (size_t i = 0; i < g->n; i++)
		if (!g->of[i].has_words)
			return;
	keep_scores(c, g);
}

/* ---- time, links, the end ---- */

static bool waits_for(const struct score_asking *g, const struct score_asked *x)
{
	return g->phase == SCORES_KEYS ? !x->has_shown : !x->has_words;
}

/* Of those that are due, the first that is waited for is who is missing; p: what waits for p. */
static void fail_some_scores(struct agent_core *c, const struct peer *p, uint64_t due_ms, int code,
			     const char *why)
{
	for (size_t i = 0; i < c->asks.scores.n; i++) {
		struct score_asking *g = c->asks.scores.at[i];
		struct score_asked *x = NULL;

		for (size_t k = 0; k < g->n && x == NULL; k++)
			if (p == NULL ? waits_for(g, &g->of[k])
				      : g->of[k].peer == p && !g->of[k].has_words)
				x = &g->of[k];
		if (x != NULL && g->phase <= SCORES_WORDS && g->due_ms <= due_ms)
			fail_scores(c, g, x, code, why);
	}
	if (c->asks.scores.n > 0)
		settle_scores(c);
}

void scores_timer(struct agent_core *c)
{
	fail_some_scores(c, NULL, c->now_ms, ERR_TIMEOUT, "it has not answered in time");
}

void scores_link_down(struct agent_core *c, const struct peer *p)
{
	fail_some_scores(c, p, UINT64_MAX, ERR_UNREACHABLE, "the link to it broke");
}

void scores_stop(struct agent_core *c, int code, const char *why)
{
	fail_some_scores(c, NULL, UINT64_MAX, code, why);
}

void scores_release(struct agent_core *c)
{
	while (c->asks.scores.n > 0)
		free_scores_asked(c->asks.scores.at[--c->asks.scores.n]);
	free(c->asks.scores.saving);
}
