/* agent/core/scores_ask.c - our owner asks the members of our last round for masked scores.
 *
 * What one member sends says nothing, so it is checked for its length and signature alone; the sums
 * show whether all went by the same question, names and keys. */
#include <assert.h>
#include <sodium.h>
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
	for (size_t i = 0; i < g->n; i++)
		free(g->of[i].hash);
	fed_score_sum_free(g->sum);
	free(g->vectors);
	free(g->of);
	free(g);
}

/* Of what has failed words still come, to be put on record. */
static bool is_waited_for(const struct score_asking *g, const struct score_asked *x)
{
	if (!x->record.ours || x->gone)
		return false; /* not asked, or nothing more is to come */
	return g->phase == SCORES_KEYS ? !x->has_shown : !x->has_words;
}

static bool waits_for_any(const struct score_asking *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (is_waited_for(g, &g->of[i]))
			return true;
	return false;
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
	if (g->wrong.code == 0)
		err_ignore(fed_score_sum_close(g->sum, sum, others, &g->wrong));
	x.code = g->wrong.code;
	x.unscored = g->sum != NULL ? fed_score_sum_unscored(g->sum) : 0;
	snprintf(x.why, sizeof(x.why), "%.*s", AGENT_TEXT_MAX - 1, g->wrong.text);
	g->told = true;
	if (c->io.scored != NULL)
		c->io.scored(c->io.ctx, g->ticket, &x);
	free(all);
	free(sum);
	free(others);
}

/* When its timer is due; what is on its way to disk has come in time. */
static uint64_t due_of(const struct agent_core *c, const struct score_asking *g)
{
	if (g->phase == SCORES_SAVES || !waits_for_any(g))
		return UINT64_MAX;
	if (g->phase == SCORES_LATE && c->now_ms >= g->last_ms)
		return UINT64_MAX; /* over, but for the disk */
	return g->phase == SCORES_LATE ? g->last_ms : g->due_ms;
}

static bool scores_are_over(const struct agent_core *c, const struct score_asking *g)
{
	if (g->n_saving > 0 || g->phase < SCORES_LATE)
		return false;
	return g->phase == SCORES_OVER || !waits_for_any(g) || c->now_ms >= g->last_ms;
}

/* What is over is told; the timer is for the first of those that wait. */
static void settle_scores(struct agent_core *c)
{
	struct score_asks *a = &c->asks.scores;
	uint64_t due_ms = UINT64_MAX;
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct score_asking *g = a->at[i];

		if (g->phase == SCORES_SAVES && g->n_saving == 0)
			g->phase = SCORES_OVER;
		if (g->phase >= SCORES_LATE && !g->told)
			tell_scores(c, g);
		if (scores_are_over(c, g)) {
			free_scores_asked(g);
			continue;
		}
		due_ms = due_of(c, g) < due_ms ? due_of(c, g) : due_ms;
		a->at[kept++] = g;
	}
	a->n = kept;
	if (due_ms == UINT64_MAX)
		c->io.cancel_timer(c->io.ctx, AGENT_TIMER_SCORED);
	else
		c->io.set_timer(c->io.ctx, AGENT_TIMER_SCORED,
				due_ms > c->now_ms ? due_ms - c->now_ms : 0);
}

/* ---- asking ---- */

/* of[i]'s bit among the members that are away. */
static uint64_t away_bit(const struct score_asking *g, const struct score_asked *x)
{
	size_t i = 0;

	while (memcmp(g->members.key + i * FED_KEY, x->peer->info.key, FED_KEY) != 0)
		i++;
	return UINT64_C(1) << i;
}

static uint64_t away_of(const struct score_asking *g)
{
	uint64_t bits = 0;

	for (size_t i = 0; i < g->n; i++)
		bits |= g->of[i].away ? away_bit(g, &g->of[i]) : 0;
	return bits;
}

static struct fed_score_question question_for(const struct agent_core *c,
					      const struct score_asking *g)
{
	struct fed_score_question q = { .members = g->members.key,
					.n_members = g->members.n,
					.away = away_of(g),
					.holders = g->holders,
					.vectors = (const uint8_t *)g->vectors,
					.n = g->n_vectors,
					.dim = g->dim };

	memcpy(q.id, g->id, FED_ID);
	memcpy(q.asker, c->key, FED_KEY);
	return q;
}

static void say_score(struct agent_core *c, const struct score_asking *g, struct score_asked *x)
{
	const struct ledger_step *s = &x->record.step;
	struct net_score b = { .members = { g->members.key, g->members.n * FED_KEY },
			       .away = away_of(g),
			       .holders = g->holders,
			       .vectors = net_tensor_of(g->vectors, g->n_vectors, g->dim),
			       .patience_ms = g->due_ms - c->now_ms,
			       .asked_ms = s->asked_ms };
	uint64_t before = x->peer->bytes_out + x->peer->outbox.bytes;

	b.has_away = b.away != 0;
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

	memcpy(x->record.peer, p->info.key, STORE_KEY);
	x->record.ours = true;
	answers_draw_own_id(c, s->id);
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

static void name_failure(struct score_asked *x, int code, const char *why)
{
	x->away = true;
	x->answer.code = code;
	snprintf(x->answer.why, sizeof(x->answer.why), "%.*s", AGENT_TEXT_MAX - 1, why);
}

/* With us. */
static size_t members_left(const struct score_asking *g)
{
	return g->members.n - (size_t)__builtin_popcountll(away_of(g));
}

/* Who is named first is why. */
static int check_enough_left(struct score_asking *g)
{
	const struct score_asked *x = g->of;

	if (members_left(g) >= g->holders)
		return 0;
	while (!x->away)
		x++;
	return err_set(&g->wrong, x->answer.code,
		       "%s: %s (%zu members without those that are missing are fewer than the %u "
		       "that have to hold a name)",
		       x->answer.name, x->answer.why, members_left(g), g->holders);
}

static bool scores_any(const struct score_asking *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (fed_score_sum_entities(g->sum, i) > 0)
			return true;
	return false;
}

/* Those that remain hold nothing by themselves that enough of them have. */
static int check_any_scored(struct score_asking *g)
{
	const struct score_asked *x = g->of;

	if (away_of(g) == 0 || scores_any(g))
		return 0;
	while (!x->away)
		x++;
	return err_set(&g->wrong, x->answer.code,
		       "%s: %s (all names that %u members hold are also held by those that are "
		       "missing)",
		       x->answer.name, x->answer.why, g->holders);
}

/* Some of it is left for those that remain, if another one fails. */
static uint64_t due_for(const struct agent_core *c, const struct score_asking *g)
{
	uint64_t left_ms = g->last_ms - c->now_ms;

	if (members_left(g) > g->holders && left_ms > 2)
		return c->now_ms + left_ms * 2 / 3;
	return g->last_ms;
}

/* g->members and those of g->of that are away are known; m is opened here. */
static int ask_members(struct agent_core *c, struct score_asking *g, struct score_members *m)
{
	struct fed_score_question q;
	int rc = scores_members_open(c, m, &g->wrong);

	if (rc != 0)
		return rc;
	for (size_t i = 0; i < g->n; i++)
		if (!g->of[i].away && !g->of[i].peer->greeted)
			name_failure(&g->of[i], ERR_UNREACHABLE, "there is no link to it");
	rc = check_enough_left(g);
	q = question_for(c, g);
	if (rc == 0)
		rc = fed_score_sum_new(&g->sum, &q, m->at, graph_vocab_count(c->graph->entities),
				       &g->wrong);
	if (rc == 0)
		rc = check_any_scored(g);
	if (rc != 0)
		return rc;
	g->due_ms = due_for(c, g);
	for (size_t i = 0; i < g->n; i++)
		if (!g->of[i].away) {
			note_score_member(c, &g->of[i], &q);
			say_score(c, g, &g->of[i]);
		}
	return 0;
}

static void name_members(struct agent_core *c, struct score_asking *g)
{
	g->of = mem_array(g->members.n, sizeof(*g->of));
	for (size_t i = 0; i < g->members.n; i++) {
		struct peer *p = peer_find(c, g->members.key + i * FED_KEY);
		struct score_asked *x = &g->of[g->n];

		if (p == NULL || memcmp(p->info.key, c->key, FED_KEY) == 0)
			continue; /* us; who is no partner any more is refused before it is used */
		x->peer = p;
		memcpy(x->answer.peer, p->info.key, AGENT_KEY);
		snprintf(x->answer.name, sizeof(x->answer.name), "%s", p->info.name);
		g->n++;
	}
}

static int open_scores(struct agent_core *c, struct score_asking *g, uint32_t holders)
{
	struct score_members m;
	int rc;

	if (c->stopping)
		return err_set(&g->wrong, ERR_BUSY, "this agent is being stopped");
	if (!scores_last_members(c, &m))
		return err_set(&g->wrong, ERR_BUSY,
			       "no round came to something so far: the members of the last one "
			       "are asked");
	g->members = m;
	g->holders = holders < m.n ? holders : (uint32_t)m.n;
	name_members(c, g);
	c->io.draw(c->io.ctx, g->id, sizeof(g->id));
	rc = ask_members(c, g, &m);
	scores_members_release(&m);
	return rc;
}

/* What has failed and waits for late words alone makes room. */
static bool room_for_asking(struct agent_core *c)
{
	struct score_asks *a = &c->asks.scores;

	for (size_t i = 0; i < a->n && a->n == AGENT_ASKS_MAX; i++) {
		if (a->at[i]->phase != SCORES_LATE || a->at[i]->n_saving > 0 || !a->at[i]->told)
			continue;
		free_scores_asked(a->at[i]);
		a->n--;
		memmove(a->at + i, a->at + i + 1, (a->n - i) * sizeof(struct score_asking *));
	}
	return a->n < AGENT_ASKS_MAX;
}

void scores_begin(struct agent_core *c, const struct agent_score_ask *ask)
{
	struct score_asking *g = mem_array(1, sizeof(*g));

	assert(ask->n >= 1 && ask->dim >= 1 && ask->n <= FED_SCORE_FLOATS_MAX / ask->dim);
	assert(ask->n <= NET_VECTORS_MAX && ask->dim <= NET_DIM_MAX && ask->holders >= 2);
	assert(ask->patience_ms >= 1 && ask->patience_ms <= NET_PATIENCE_MAX_MS);
	g->ticket = ask->ticket;
	g->last_ms = c->now_ms + ask->patience_ms;
	g->vectors = mem_copy(ask->vectors, ask->n * ask->dim * sizeof(float));
	g->n_vectors = ask->n;
	g->dim = ask->dim;
	if (!room_for_asking(c)) {
		err_set(&g->wrong, ERR_BUSY, "too many questions of ours are under way");
		tell_scores(c, g);
		free_scores_asked(g);
		return;
	}
	if (open_scores(c, g, ask->holders) != 0)
		g->phase = SCORES_OVER;
	c->asks.scores.at[c->asks.scores.n++] = g;
	settle_scores(c);
}

/* ---- one fails ---- */

/* Who was asked need not wait for the keys of others: also one whose own is still under way. */
static void call_scores_off(struct agent_core *c, const struct score_asking *g)
{
	const struct net_score_keys b = { .shown = { NULL, 0 } };

	for (size_t i = 0; g->phase == SCORES_KEYS && i < g->n; i++)
		if (g->of[i].record.ours && !g->of[i].gone && g->of[i].peer->greeted)
			peer_say(c, g->of[i].peer, NET_MSG_SCORE_KEYS, g->of[i].record.step.id,
				 NET_BODY_score_keys, &b);
}

/* Of this one there is no use any more.  Words that come are put on record: they were asked for,
 * and who sends them has charged them. */
static void leave_scores(struct agent_core *c, struct score_asking *g)
{
	call_scores_off(c, g);
	g->phase = g->phase == SCORES_WORDS ? SCORES_LATE : SCORES_OVER;
}

/* The members of our last round are those of then. */
static bool same_members(const struct agent_core *c, const struct score_asking *g)
{
	struct score_members m;

	return scores_last_members(c, &m) && m.n == g->members.n &&
	       memcmp(m.key, g->members.key, m.n * FED_KEY) == 0;
}

/* Whether who is busy, or knows of another round, would do so later is for our owner to try. */
static bool may_do_without(struct agent_core *c, const struct score_asking *g, int code)
{
	return code != ERR_BUSY && code != ERR_CANCELED && code != ERR_STORE && !c->stopping &&
	       c->now_ms < g->last_ms && members_left(g) > g->holders && room_for_asking(c) &&
	       same_members(c, g);
}

/* The others are asked for what it does not hold, by other keys. */
static void ask_without(struct agent_core *c, const struct score_asking *before)
{
	struct score_asking *g = mem_array(1, sizeof(*g));
	struct score_members m = before->members;

	g->ticket = before->ticket;
	g->last_ms = before->last_ms;
	g->vectors = mem_copy(before->vectors, before->n_vectors * before->dim * sizeof(float));
	g->n_vectors = before->n_vectors;
	g->dim = before->dim;
	g->holders = before->holders;
	g->members = before->members;
	name_members(c, g);
	for (size_t i = 0; i < g->n; i++) {
		g->of[i].away = before->of[i].away;
		g->of[i].answer = before->of[i].answer;
	}
	c->io.draw(c->io.ctx, g->id, sizeof(g->id));
	if (ask_members(c, g, &m) != 0)
		g->phase = SCORES_OVER;
	scores_members_release(&m);
	c->asks.scores.at[c->asks.scores.n++] = g;
}

/* Without this one there is no sum. */
static void fail_scores(struct agent_core *c, struct score_asking *g, struct score_asked *x,
			int code, const char *why)
{
	bool without = may_do_without(c, g, code);

	leave_scores(c, g);
	name_failure(x, code, why);
	if (without) {
		g->told = true; /* by the next one */
		ask_without(c, g);
		return;
	}
	if (code == ERR_BUSY || check_enough_left(g) == 0)
		err_set(&g->wrong, code, "%s: %s", x->answer.name, why);
}

/* ---- what members say ---- */

static struct score_asked *find_score_asked(const struct agent_core *c, const struct peer *p,
					    const uint8_t id[LEDGER_STEP_ID],
					    struct score_asking **of)
{
	for (size_t i = 0; i < c->asks.scores.n; i++) {
		struct score_asking *g = c->asks.scores.at[i];

		for (size_t k = 0; k < g->n; k++)
			if (g->of[k].peer == p && g->phase != SCORES_OVER && !g->of[k].has_words &&
			    !g->of[k].gone && g->of[k].record.ours &&
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

/* Nothing more comes from it. */
static void lose_score_member(struct agent_core *c, struct score_asking *g, struct score_asked *x,
			      int code, const char *why)
{
	x->gone = true;
	if (g->phase <= SCORES_WORDS)
		fail_scores(c, g, x, code, why);
}

static void breach_scores(struct agent_core *c, struct score_asking *g, struct score_asked *x,
			  const struct err *e)
{
	struct peer *p = x->peer;

	lose_score_member(c, g, x, e->code, e->text);
	conduct_breach(c, p, e->code, "%.200s", e->text);
	settle_scores(c);
}

static void say_score_keys(struct agent_core *c, struct score_asking *g)
{
	uint8_t all[(FED_MEMBERS_MAX - 1) * FED_SCORE_SHOWN];
	struct net_score_keys b = { .shown = { all, 0 } };

	for (size_t i = 0; i < g->n; i++)
		if (!g->of[i].away) {
			memcpy(all + b.shown.len, g->of[i].shown, FED_SCORE_SHOWN);
			b.shown.len += FED_SCORE_SHOWN;
		}
	for (size_t i = 0; i < g->n; i++) {
		struct peer *p = g->of[i].peer;
		uint64_t before = p->bytes_out + p->outbox.bytes;

		if (g->of[i].away)
			continue;
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
	if (!waits_for_any(g))
		say_score_keys(c, g);
}

static void scores_saved(struct agent_core *c)
{
	struct score_asks *a = &c->asks.scores;

	a->saving[0]->n_saving--;
	a->n_saving--;
	memmove(a->saving, a->saving + 1, a->n_saving * sizeof(struct score_asking *));
	settle_scores(c);
}

/* What it has signed comes to disk before the sums are told. */
static void keep_score_record(struct agent_core *c, struct score_asking *g,
			      const struct score_asked *x)
{
	struct score_asks *a = &c->asks.scores;
	struct store_batch b = { 0 };

	store_batch_step(&b, &x->record);
	a->saving = mem_resize(a->saving, a->n_saving + 1, sizeof(struct score_asking *));
	a->saving[a->n_saving++] = g;
	g->n_saving++;
	core_commit(c, &b, scores_saved);
}

static void hash_words(struct score_asked *x, const struct net_bytes *words)
{
	if (x->hash == NULL) {
		x->hash = mem_aligned(1, sizeof(crypto_generichash_state));
		crypto_generichash_init(x->hash, NULL, 0, LEDGER_HASH);
	}
	crypto_generichash_update(x->hash, words->base, words->len);
	x->words += words->len / FED_SCORE_WORD;
}

/* The next words, in their order; *again: they were there before. */
static int check_next_words(const struct score_asking *g, struct score_asked *x,
			    const struct net_scored *b, bool *again, struct err *e)
{
	size_t n = b->words.len / FED_SCORE_WORD, follow = b->has_follow ? b->follow : 0;

	if (g->phase == SCORES_KEYS)
		return err_set(e, ERR_PROTO, "answers scores before it has all keys");
	if (b->words.len % FED_SCORE_WORD != 0)
		return err_set(e, ERR_PROTO, "answers %zu bytes of scores", b->words.len);
	if (x->hash == NULL)
		x->all = n + follow;
	*again = n + follow > x->all - x->words && n + follow <= x->all;
	return *again || n + follow == x->all - x->words
		       ? 0
		       : err_set(e, ERR_PROTO, "leaves out words of its scores");
}

static int check_words_signed(struct score_asked *x, const struct net_scored *b, struct err *e)
{
	struct ledger_step *s = &x->record.step;

	s->rows = (uint32_t)(x->all - 1);
	s->answered_ms = b->answered_ms;
	crypto_generichash_final(x->hash, s->answer, LEDGER_HASH);
	memcpy(s->owner_signature, b->signature, sizeof(s->owner_signature));
	return ledger_step_is_answered(s)
		       ? 0
		       : err_set(e, ERR_IDENTITY, "has not signed what it answers");
}

/* It may have compared names with another member anew, and count holders otherwise: no breach. */
static void add_member_words(struct agent_core *c, struct score_asking *g, struct score_asked *x,
			     const struct net_scored *b)
{
	size_t follow = b->has_follow ? b->follow : 0;
	struct err e = { 0 };

	if (g->phase == SCORES_WORDS &&
	    fed_score_sum_add(g->sum, (size_t)(x - g->of), b->words.base, b->words.len,
			      follow * FED_SCORE_WORD, &e) != 0)
		fail_scores(c, g, x, ERR_BUSY, e.text);
}

static int take_next_words(struct agent_core *c, struct score_asking *g, struct score_asked *x,
			   const struct net_scored *b, struct err *e)
{
	bool again = false;
	int rc = check_next_words(g, x, b, &again, e);

	if (rc != 0 || again)
		return rc;
	hash_words(x, &b->words);
	if (x->words == x->all)
		rc = answers_check_day(c, b->answered_ms, e);
	if (rc == 0 && x->words == x->all)
		rc = check_words_signed(x, b, e);
	if (rc == 0)
		add_member_words(c, g, x, b);
	if (rc == 0 && x->words == x->all) {
		x->has_words = true;
		keep_score_record(c, g, x);
	}
	if (rc == 0 && g->phase == SCORES_WORDS && !waits_for_any(g))
		g->phase = SCORES_SAVES;
	return rc;
}

void scores_take_words(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct score_asking *g;
	struct score_asked *x = find_score_asked(c, p, m->session, &g);
	struct err e = m->wrong;

	if (x == NULL)
		return;
	x->answer.bytes += m->n;
	if (e.code == 0 && m->kind == NET_BODY_reason)
		lose_score_member(c, g, x, (int)m->reason.code, m->reason.why);
	else if (e.code != 0 || take_next_words(c, g, x, &m->scored, &e) != 0) {
		breach_scores(c, g, x, &e);
		return;
	}
	settle_scores(c);
}

/* ---- time, links, the end ---- */

/* The first that is waited for; p: that one, if more is to come from it. */
static struct score_asked *find_missing(const struct score_asking *g, const struct peer *p)
{
	for (size_t k = 0; k < g->n; k++) {
		struct score_asked *x = &g->of[k];
		bool more = x->record.ours && !x->gone && !x->has_words;

		if (p == NULL ? is_waited_for(g, x) : x->peer == p && more)
			return x;
	}
	return NULL;
}

/* All that are as late as x, so that the next attempt is without all of them. */
static void name_silent(struct score_asking *g, const struct score_asked *x, int code,
			const char *why)
{
	for (size_t k = 0; k < g->n; k++)
		if (&g->of[k] != x && is_waited_for(g, &g->of[k]))
			name_failure(&g->of[k], code, why);
}

/* Of those that are due, or that wait for p. */
static void fail_some_scores(struct agent_core *c, const struct peer *p, uint64_t due_ms, int code,
			     const char *why)
{
	size_t i = 0;

	while (i < c->asks.scores.n) {
		struct score_asking *g = c->asks.scores.at[i];
		struct score_asked *x = find_missing(g, p);

		if (x != NULL && p != NULL)
			x->gone = true;
		if (x == NULL || g->phase > SCORES_WORDS || g->due_ms > due_ms) {
			i++;
			continue;
		}
		if (p == NULL)
			name_silent(g, x, code, why);
		fail_scores(c, g, x, code, why);
		i = 0; /* others may have made room */
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
