/* agent/core/answers.c - a partner asks for a step of a query over one of our relations. */
#include <assert.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/handback_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/steps_internal.h"
#include "base/mem.h"

enum {
	BEAM = 256, /* entities that edges are predicted from, at most */
	ROWS_CACHE_BYTES = 16 << 20,
	FIT_SEED = 1, /* as fkge query has it */
	REFUSED_TOLD_AT = 1000,
};

/* ---- the tables ---- */

static void tables_free(struct step_tables *t)
{
	if (t == NULL)
		return;
	for (int policy = 0; policy < 2; policy++) {
		for (int norm = 0; norm < 2; norm++)
			query_search_free(t->search[policy][norm]);
		query_truths_free(t->truths[policy]);
	}
	kge_emb_free(t->emb);
	free(t);
}

/* As they are now: the best may change while a worker reads these. */
static struct step_tables *tables_now(struct agent_core *c)
{
	struct step_tables *t = c->answers.tables;

	if (t != NULL && memcmp(t->digest, c->best_digest, sizeof(t->digest)) == 0)
		return t;
	tables_free(t);
	t = mem_array(1, sizeof(*t));
	memcpy(t->digest, c->best_digest, sizeof(t->digest));
	t->emb = kge_emb_copy(c->best);
	t->graph = c->graph;
	t->private_training = dp_charge_needed(c);
	c->answers.tables = t;
	return t;
}

/* By a worker.  Under private training the scale must not depend on valid, nor a bit of a truth on
 * the order of the triples. */
static struct query_search *search_of(struct step_tables *t, enum ledger_policy policy,
				      uint32_t norm)
{
	int k = policy == LEDGER_FACTS;
	const struct query_search_options how = { .beam = BEAM,
						  .norm = (enum query_norm)norm,
						  .cache_bytes = ROWS_CACHE_BYTES,
						  .threads = 1 };

	if (!t->fitted && !t->private_training)
		query_scale_fit(&t->scale, QUERY_SOFTMAX, t->emb, t->graph, FIT_SEED, NULL);
	else if (!t->fitted)
		t->scale = (struct query_scale){ QUERY_SOFTMAX, 1, 0 };
	t->fitted = true;
	if (t->truths[k] == NULL) {
		t->truths[k] = query_truths_new(t->emb, t->graph, &t->scale,
						k ? (1u << GRAPH_SPLITS) - 1 : 0);
		if (t->private_training)
			query_truths_by_names(t->truths[k]);
	}
	if (t->search[k][norm] == NULL)
		t->search[k][norm] = query_search_new(t->truths[k], &how);
	return t->search[k][norm];
}

static int run_step(struct agent_job *job)
{
	struct answering *a = job->subject;
	const struct ledger_step *s = &a->record.step;

	a->n_reached = query_search_step(search_of(a->tables, s->policy, s->norm), a->step,
					 a->points, s->points, a->order, a->reached, a->most);
	if (a->n_reached > a->want) {
		a->n_reached = a->want;
		a->cut = true;
	}
	return 0;
}

/* ---- the day's budget ---- */

/* A clock that goes back gives nothing back; and one that was ahead and was put right makes nothing
 * last for ever: what it had answered counts as of today. */
static void note_day(const struct agent_core *c, struct peer_steps *s)
{
	int64_t day = c->wall_ms / DAY_MS;

	if (day > s->day)
		s->steps = s->rows = s->refused = 0;
	if (day > s->day || day + 1 < s->day)
		s->day = day;
}

static uint64_t left_today(uint64_t most, uint64_t spent, uint64_t held)
{
	return most > spent + held ? most - spent - held : 0;
}

void answers_hold(struct answering *a)
{
	a->counted = true;
	a->peer->steps.held++;
	a->peer->steps.rows_held += a->want;
}

static void answers_let_go(struct answering *a)
{
	if (a->counted) {
		a->peer->steps.held--;
		a->peer->steps.rows_held -= a->want;
	}
	a->counted = false;
}

static void spend_budget(struct agent_core *c, struct answering *a, struct store_batch *b)
{
	struct peer_steps *s = &a->peer->steps;
	struct store_step_day d;

	answers_let_go(a);
	note_day(c, s);
	s->steps++;
	s->rows += a->n_reached;
	d = (struct store_step_day){ .day = s->day, .steps = s->steps, .rows = s->rows };
	memcpy(d.peer, a->peer->info.key, STORE_KEY);
	store_batch_step_day(b, &d);
}

void answers_spend_in_vain(struct agent_core *c, struct answering *a)
{
	struct store_batch b = { 0 };

	if (!a->counted)
		return;
	a->n_reached = 0;
	spend_budget(c, a, &b);
	core_commit(c, &b, NULL);
}

void answers_drop(struct answering *a)
{
	answers_let_go(a);
	if (a->release != NULL)
		a->release(a);
	free(a->points);
	free(a->order);
	free(a->reached);
	buf_release(&a->rows);
	free(a);
}

/* ---- refusals ---- */

void answers_refuse(struct agent_core *c, struct peer *p, enum net_msg_type type,
		    const uint8_t id[LEDGER_STEP_ID], int code, const char *why)
{
	struct net_reason b = { .code = code };

	snprintf(b.why, sizeof(b.why), "%.*s", NET_REASON_MAX, why);
	peer_say(c, p, type, id, NET_BODY_reason, &b);
}

static void refuse_dropped(struct agent_core *c, struct answering *a, int code, const char *why)
{
	answers_refuse(c, a->peer, a->scoring != NULL ? NET_MSG_SCORED : NET_MSG_ANSWER,
		       a->record.step.id, code, why);
	answers_drop(a);
}

/* ---- a worker walks the step ---- */

static struct answering *first_waiting(struct answers *w)
{
	struct answering *a = w->waiting[0];

	w->n_waiting--;
	memmove(w->waiting, w->waiting + 1, w->n_waiting * sizeof(struct answering *));
	return a;
}

static bool asker_is_there(const struct peer *p)
{
	return peer_listed(p) && p->greeted;
}

static const char too_late[] = "too busy to answer in time";

/* The first that is still waited for; NULL: none is. */
static struct answering *next_waiting(struct agent_core *c)
{
	struct answers *w = &c->answers;

	while (w->n_waiting > 0) {
		struct answering *a = first_waiting(w);

		if (asker_is_there(a->peer) && c->now_ms <= a->until_ms)
			return a;
		if (a->scoring != NULL)
			answers_spend_in_vain(c, a);
		if (asker_is_there(a->peer))
			refuse_dropped(c, a, ERR_TIMEOUT, too_late);
		else
			answers_drop(a);
	}
	return NULL;
}

void answers_next(struct agent_core *c)
{
	struct answers *w = &c->answers;
	struct answering *a;

	if (w->job != NULL || c->stopping)
		return;
	a = next_waiting(c);
	if (a == NULL)
		return;
	if (a->scoring == NULL)
		a->tables = tables_now(c);
	w->now = a;
	w->job = core_start_step_job(c, a->run, a);
}

void answers_wait(struct agent_core *c, struct answering *a)
{
	struct answers *w = &c->answers;

	assert(w->n_waiting < ANSWERS_WAITING_MAX);
	w->waiting[w->n_waiting++] = a;
	answers_next(c);
}

static bool send_step(struct agent_core *c, struct answering *a)
{
	const struct ledger_step *s = &a->record.step;
	struct net_answer b = { .policy = s->policy,
				.rows = { a->rows.base, a->rows.len },
				.ways = s->ways,
				.cut = a->cut,
				.answered_ms = s->answered_ms };

	memcpy(b.signature, s->owner_signature, sizeof(b.signature));
	if (asker_is_there(a->peer))
		peer_say(c, a->peer, NET_MSG_ANSWER, s->id, NET_BODY_answer, &b);
	core_notice(c, AGENT_NOTICE_SESSION, a->peer, 0,
		    "a step over %.80s answered to %.60s: %u of %u rows, %s", s->relation,
		    a->peer->info.name, s->rows, s->want, ledger_policy_name(s->policy));
	return true;
}

/* Nothing leaves before what is said of it is on disk. */
static void send_saved(struct agent_core *c)
{
	struct answers *w = &c->answers;
	struct answering *a = w->saving[0];

	w->n_saving--;
	memmove(w->saving, w->saving + 1, w->n_saving * sizeof(struct answering *));
	if (a->send(c, a))
		answers_drop(a);
}

static int compare_row_slots(const void *x, const void *y, void *order)
{
	const struct query_reached *a = x, *b = y;
	const uint32_t *slot = order;

	return (slot[a->to.id] > slot[b->to.id]) - (slot[a->to.id] < slot[b->to.id]);
}

/* place[id]: of the entity among those asked from. */
static void write_some_rows(struct answering *a, struct query_reached *rows, size_t n,
			    const uint32_t *place, bool known)
{
	struct step_writer w = { .out = &a->rows };
	bool ways = a->record.step.ways;

	if (n > 0)
		qsort_r(rows, n, sizeof(*rows), compare_row_slots, a->order);
	for (size_t i = 0; i < n; i++) {
		step_put_slot(&w, a->order[rows[i].to.id]);
		if (ways)
			step_put_count(&w, place[rows[i].way.from]);
		if (!ways || !known)
			step_put_truth(&w, ways ? rows[i].way.edge : rows[i].to.truth);
	}
}

static void write_step_rows(const struct agent_core *c, struct answering *a)
{
	uint32_t n = graph_vocab_count(c->graph->entities), known = 0,
		 *place = mem_array((size_t)n + 1, sizeof(*place));
	struct step_writer w = { .out = &a->rows };

	for (uint32_t i = 0; i < a->record.step.points; i++)
		place[a->points[i].id] = i;
	while (known < a->n_reached && a->reached[known].way.edge > QUERY_CAP)
		known++;
	step_put_count(&w, known);
	if (a->n_reached > 0) {
		write_some_rows(a, a->reached, known, place, true);
		write_some_rows(a, a->reached + known, a->n_reached - known, place, false);
	}
	free(place);
}

static void save_answer(struct agent_core *c, struct answering *a)
{
	struct ledger_step *s = &a->record.step;
	struct answers *w = &c->answers;
	struct store_batch b = { 0 };

	if (a->scoring == NULL && s->norm != LEDGER_ROW) {
		write_step_rows(c, a);
		s->rows = (uint32_t)a->n_reached;
	}
	s->answered_ms = c->wall_ms > 0 ? c->wall_ms : 0;
	ledger_step_hash(s->answer, a->rows.base, a->rows.len, NULL, 0);
	ledger_step_answer(s, c->sign_secret);
	store_batch_step(&b, &a->record);
	spend_budget(c, a, &b);
	w->saving = mem_resize(w->saving, w->n_saving + 1, sizeof(struct answering *));
	w->saving[w->n_saving++] = a;
	core_commit(c, &b, send_saved);
}

bool answers_job_done(struct agent_core *c, const struct agent_job *job)
{
	struct answering *a = c->answers.now;

	if (job != c->answers.job)
		return false;
	c->answers.job = NULL;
	c->answers.now = NULL;
	if (c->stopping) {
		answers_drop(a);
	} else if (!asker_is_there(a->peer)) {
		answers_spend_in_vain(c, a);
		answers_drop(a);
	} else if (c->now_ms > a->until_ms) {
		answers_spend_in_vain(c, a);
		refuse_dropped(c, a, ERR_TIMEOUT, too_late);
	} else if (job->status != 0) {
		answers_spend_in_vain(c, a);
		refuse_dropped(c, a, job->status, job->why.text);
	} else {
		save_answer(c, a);
	}
	return true;
}

/* ---- what is asked ---- */

enum { OWN_DRAWN = LEDGER_STEP_ID / 2 }; /* bytes; the others of an id of ours follow from them */

static void own_mark(const struct agent_core *c, const uint8_t id[LEDGER_STEP_ID],
		     uint8_t mark[crypto_generichash_BYTES_MIN])
{
	uint8_t text[12 + OWN_DRAWN] = "fkge step id";

	memcpy(text + sizeof(text) - OWN_DRAWN, id, OWN_DRAWN);
	crypto_generichash(mark, crypto_generichash_BYTES_MIN, text, sizeof(text), c->names_secret,
			   sizeof(c->names_secret));
}

void answers_draw_own_id(const struct agent_core *c, uint8_t id[LEDGER_STEP_ID])
{
	uint8_t mark[crypto_generichash_BYTES_MIN];

	c->io.draw(c->io.ctx, id, LEDGER_STEP_ID);
	own_mark(c, id, mark);
	memcpy(id + OWN_DRAWN, mark, LEDGER_STEP_ID - OWN_DRAWN);
}

static bool was_seen(const struct agent_core *c, const uint8_t id[LEDGER_STEP_ID])
{
	const struct answers *w = &c->answers;
	uint8_t mark[crypto_generichash_BYTES_MIN];

	own_mark(c, id, mark);
	if (memcmp(mark, id + OWN_DRAWN, LEDGER_STEP_ID - OWN_DRAWN) == 0)
		return true;
	for (size_t i = 0; i < w->n_seen && i < STORE_STEPS_LATE; i++)
		if (memcmp(w->seen[i], id, LEDGER_STEP_ID) == 0)
			return true;
	return false;
}

void answers_note_id(struct agent_core *c, const uint8_t id[LEDGER_STEP_ID])
{
	struct answers *w = &c->answers;

	memcpy(w->seen[w->n_seen++ % STORE_STEPS_LATE], id, LEDGER_STEP_ID);
}

/* As both sides sign it; its points as slots. */
static int note_asked(const struct agent_core *c, const struct net_message *m, struct answering *a,
		      struct err *e)
{
	const struct net_ask *b = &m->ask;
	struct ledger_step *s = &a->record.step;
	int points;

	a->points = mem_array(NET_POINTS_MAX, sizeof(*a->points));
	points = step_get_points(&b->points, a->points);
	if (points < 0)
		return err_set(e, ERR_PROTO, "asks from points that are not written as such");
	a->most = (struct query_limits){ b->beam, b->known, b->want };
	memcpy(s->id, m->session, sizeof(s->id));
	memcpy(s->asker, a->peer->info.sign_key, sizeof(s->asker));
	memcpy(s->owner, c->sign_public, sizeof(s->owner));
	memcpy(s->relation, b->relation.base, b->relation.len);
	s->relation[b->relation.len] = '\0';
	s->inverse = b->inverse;
	s->norm = (uint32_t)b->norm;
	s->points = (uint32_t)points;
	s->want = (uint32_t)(b->known + b->want);
	s->asked_ms = b->asked_ms;
	memcpy(s->alignment, b->alignment, sizeof(s->alignment));
	step_hash_asked(s, &b->points, &a->most);
	memcpy(s->asker_signature, b->signature, sizeof(s->asker_signature));
	return 0;
}

/* Slots by entity. */
static uint32_t *order_by_slot(const struct agent_core *c, const struct peer *p)
{
	uint32_t n = graph_vocab_count(c->graph->entities);
	uint32_t *order = mem_array((size_t)n + 1, sizeof(*order));

	memset(order, 0xff, (size_t)n * sizeof(*order));
	for (uint32_t k = 0; k < p->n_slots; k++)
		if (p->slots[k].tag == 'e' && p->slots[k].id < n)
			order[p->slots[k].id] = k;
	return order;
}

/* From slots to entities.  Refused is what no honest agent asks from. */
static int place_asked(const struct agent_core *c, struct answering *a, struct err *e)
{
	const struct peer *p = a->peer;
	uint32_t n = graph_vocab_count(c->graph->entities);

	for (uint32_t i = 0; i < a->record.step.points; i++) {
		struct query_point *at = &a->points[i];

		if (at->id >= p->n_slots || p->slots[at->id].tag != 'e' || p->slots[at->id].id >= n)
			return err_set(e, ERR_PROTO, "asks from slot %u, which is no entity",
				       at->id);
		if (!step_truth_holds(at->truth))
			return err_set(e, ERR_PROTO, "asks from a truth that is not in (0, 1]");
		at->id = p->slots[at->id].id;
	}
	return 0;
}

/* Of one who keeps to the protocol. */
static int check_step_asked(const struct net_message *m, const struct ledger_step *s, struct err *e)
{
	const struct net_ask *b = &m->ask;

	if (memchr(b->relation.base, '\0', b->relation.len) != NULL)
		return err_set(e, ERR_PROTO, "asks over a relation with a NUL in its name");
	if (s->norm == LEDGER_ROW && (s->points > 0 || b->known > 0 || b->want != 1))
		return err_set(e, ERR_PROTO, "asks from points, or for more, where a row is meant");
	if (!ledger_step_is_asked(s))
		return err_set(e, ERR_IDENTITY, "has not signed what it asks");
	return 0;
}

/* What our owner says of this partner, by the key that it has now or by any that it has replaced.
 * Of a key that has not proved itself here it alone says that this was its own: a rule for that one
 * can take, and gives nothing. */
static enum config_answer policy_of(const struct agent_core *c, const struct peer *p,
				    const char *relation)
{
	const struct ledger_rotations *all = &c->account.rotations;
	uint8_t keys[1 + LEDGER_ROTATIONS_MAX][32];
	size_t n = 1;
	enum config_answer answer = CONFIG_ANSWER_FACTS;

	memcpy(keys[0], p->info.key, sizeof(keys[0]));
	for (int proved = 1; proved >= 0; proved--) {
		enum config_answer by;

		for (size_t i = 0; i < all->n && n < sizeof(keys) / sizeof(keys[0]); i++)
			if (all->at[i].proved == (bool)proved &&
			    memcmp(all->at[i].account, store_peer_account(&p->info), LEDGER_KEY) ==
				    0)
				memcpy(keys[n++], all->at[i].old_key, sizeof(keys[0]));
		by = config_answer_to(c->config, (const uint8_t(*)[32])keys, n, relation);
		if (by < answer)
			answer = by;
	}
	return answer;
}

/* An honest partner asks once over each relation of a command's questions.  Who guesses at names of
 * ours asks for more and more of them: the owner, if some are answered, is told at a thousand on a
 * day, ten thousand, and so on. */
static void note_refused(struct agent_core *c, struct peer *p)
{
	uint64_t at = REFUSED_TOLD_AT;

	if (config_answer_most(c->config) == CONFIG_ANSWER_NOTHING)
		return;
	note_day(c, &p->steps);
	p->steps.refused++;
	while (at < p->steps.refused)
		at *= 10;
	if (at == p->steps.refused)
		core_notice(c, AGENT_NOTICE_TROUBLE, p, ERR_REFUSED,
			    "%.60s asked %llu times today over relations that it is not answered: "
			    "if it guesses at names, query.rules answers it nothing",
			    p->info.name, (unsigned long long)at);
}

/* Under which of our names is it asked, and what does our owner say?  Whether there is none, or it
 * is not answered, is told to nobody. */
static int look_up(struct agent_core *c, struct answering *a, struct err *e)
{
	const struct peer *p = a->peer;
	struct ledger_step *s = &a->record.step;
	const struct encode_model *m;

	a->step.rel =
		agent_names_find_relation(c->names, peer_names_key(c, p->info.key), s->relation);
	a->step.inverse = s->inverse;
	if (a->step.rel != GRAPH_NONE && a->step.rel < c->best->n_rel)
		s->policy = (enum ledger_policy)policy_of(
			c, p, graph_vocab_name(c->graph->relations, a->step.rel, NULL));
	s->ways = c->config->query.ways;
	if (s->policy == LEDGER_NOTHING) {
		note_refused(c, a->peer);
		return err_set(e, ERR_REFUSED, "it answers nothing over this relation");
	}
	if (s->norm != LEDGER_ROW)
		return 0;
	m = scores_encoder_now(c);
	return m != NULL && a->step.rel < m->relations ? 0 : scores_no_encoder(c, e);
}

/* No refusal by its owner: whoever asks is to know that this one is missing. */
int answers_check_clock(const struct agent_core *c, const struct ledger_step *s, struct err *e)
{
	int64_t off = s->asked_ms - c->wall_ms;

	return off > -DAY_MS && off < DAY_MS
		       ? 0
		       : err_set(e, ERR_UNREACHABLE,
				 "the clocks of both differ by more than a day");
}

int answers_check_day(const struct agent_core *c, int64_t answered_ms, struct err *e)
{
	int64_t off = answered_ms - c->wall_ms;

	return off > -(int64_t)2 * DAY_MS && off < (int64_t)2 * DAY_MS
		       ? 0
		       : err_set(e, ERR_PROTO,
				 "says that it has answered %lld hours from now, by a clock that "
				 "was within a day of ours",
				 (long long)(off / (DAY_MS / 24)));
}

static const char used_up[] = "what it answers us in a day is used up (query.steps_per_day, "
			      "query.rows_per_day there)";

static const char has_others[] = "it has other steps to answer: ask again later";

static size_t drop_late(struct agent_core *c, struct answering **at, size_t n)
{
	size_t kept = 0;

	for (size_t i = 0; i < n; i++)
		if (at[i]->until_ms < c->now_ms || !at[i]->peer->greeted) {
			answers_spend_in_vain(c, at[i]);
			answers_drop(at[i]);
		} else {
			at[kept++] = at[i];
		}
	return kept;
}

void answers_drop_late(struct agent_core *c)
{
	struct answers *w = &c->answers;

	w->n_keyed = drop_late(c, w->keyed, w->n_keyed);
	w->n_sending = drop_late(c, w->sending, w->n_sending);
}

/* Answers of which words are still to go to it: who reads none has no more of them than places. */
static size_t sending_to(const struct answers *w, const struct peer *p)
{
	size_t n = 0;

	for (size_t i = 0; i < w->n_sending; i++)
		n += w->sending[i]->peer == p;
	return n;
}

/* Those that wait for the worker, for others' keys or for a link, all together. */
int answers_check_room(struct agent_core *c, struct peer *p, struct err *e)
{
	const struct peer_steps *s = &p->steps;

	answers_drop_late(c);
	note_day(c, &p->steps);
	if (left_today(c->config->query.steps_per_day, s->steps, s->held) == 0)
		return err_set(e, ERR_BUDGET, used_up);
	if (s->held + sending_to(&c->answers, p) >= ANSWERS_OF_PEER_MAX ||
	    c->answers.n_waiting + c->answers.n_keyed + c->answers.n_sending >= ANSWERS_WAITING_MAX)
		return err_set(e, ERR_BUSY, has_others);
	return 0;
}

/* Without points it is asked whether, but for the row of a relation. */
static bool wants_rows(const struct ledger_step *s)
{
	return s->points > 0 || s->norm == LEDGER_ROW;
}

/* Rows that steps under way hold and may not need come back in a moment: whoever asks waits. */
static int check_room(struct agent_core *c, struct answering *a, struct err *e)
{
	const struct config_query *q = &c->config->query;
	struct peer_steps *s = &a->peer->steps;
	uint64_t rows, coming_back;
	int rc;

	note_day(c, s);
	rows = left_today(q->rows_per_day, s->rows, s->rows_held);
	coming_back = left_today(q->rows_per_day, s->rows, 0) - rows;
	if (a->record.step.policy != LEDGER_FACTS)
		a->most.known = 0;
	a->want = wants_rows(&a->record.step) ? (uint32_t)(a->most.known + a->most.predicted) : 0;
	a->want = a->want < rows ? a->want : (uint32_t)rows;
	if (a->want > 0 || !wants_rows(&a->record.step))
		return answers_check_room(c, a->peer, e);
	rc = rows == 0 && coming_back > 0 ? answers_check_room(c, a->peer, e)
					  : err_set(e, ERR_BUDGET, used_up);
	return rc == 0 ? err_set(e, ERR_BUSY, has_others) : rc;
}

int answers_check_state(struct agent_core *c, const struct answering *a, struct err *e)
{
	const struct peer *p = a->peer;

	if (c->stopping)
		return err_set(e, ERR_BUSY, "it is being stopped");
	if (handback_blocks(c))
		return err_set(e, ERR_BUSY, "it was restored from a backup, and asks its partners");
	if (!c->has_best)
		return err_set(e, ERR_BUSY, "it has no tables yet");
	if (!peer_aligned(p) || memcmp(p->digest, a->record.step.alignment, LEDGER_HASH) != 0)
		return err_set(e, ERR_BUSY, "names are to be compared anew first");
	return 0;
}

/* 0; ERR_PROTO, ERR_IDENTITY: a breach; else what it is told. */
static int accept_step(struct agent_core *c, struct answering *a, const struct net_message *m,
		       struct err *e)
{
	int rc = check_step_asked(m, &a->record.step, e);

	if (rc == 0)
		rc = answers_check_state(c, a, e);
	if (rc == 0)
		rc = place_asked(c, a, e);
	if (rc == 0)
		rc = look_up(c, a, e);
	if (rc == 0)
		rc = answers_check_clock(c, &a->record.step, e);
	return rc == 0 ? check_room(c, a, e) : rc;
}

/* Its row of the relation, this way; whoever has it can step over the relation by itself. */
static void write_relation_row(struct agent_core *c, struct answering *a)
{
	const struct encode_model *m = scores_encoder_now(c);
	size_t d = m->is.dim;

	buf_add(&a->rows, m->rel + (2 * (size_t)a->step.rel + a->step.inverse) * d,
		d * sizeof(float));
	a->n_reached = 1;
	a->record.step.rows = 1;
	save_answer(c, a);
}

static bool asks_too_fast(const struct agent_core *c, struct peer_steps *s)
{
	if (s->due_ms < c->now_ms)
		s->due_ms = c->now_ms;
	if (s->due_ms > c->now_ms + (uint64_t)AGENT_ASKS_AHEAD * AGENT_ASK_EVERY_MS)
		return true;
	s->due_ms += AGENT_ASK_EVERY_MS;
	return false;
}

/* Only whether it would be answered: a step without rows. */
static void take_accepted(struct agent_core *c, struct answering *a, const struct net_message *m)
{
	answers_hold(a);
	answers_note_id(c, a->record.step.id);
	a->until_ms = c->now_ms + m->ask.patience_ms;
	a->run = run_step;
	a->send = send_step;
	if (a->record.step.norm == LEDGER_ROW) {
		write_relation_row(c, a);
		return;
	}
	if (a->record.step.points == 0) {
		save_answer(c, a);
		return;
	}
	a->order = order_by_slot(c, a->peer);
	a->reached = mem_array(a->most.known + a->most.predicted, sizeof(*a->reached));
	answers_wait(c, a);
}

bool answers_skip(struct agent_core *c, struct peer *p, enum net_msg_type type,
		  const uint8_t id[LEDGER_STEP_ID])
{
	if (!asks_too_fast(c, &p->steps))
		return was_seen(c, id);
	answers_refuse(c, p, type, id, ERR_BUSY, "asked too often: ask again later");
	return true;
}

void answers_take(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct answering *a;
	struct err e = m->wrong;
	int rc = e.code;

	if (rc == 0 && answers_skip(c, p, NET_MSG_ANSWER, m->session))
		return;
	a = mem_array(1, sizeof(*a));
	a->peer = p;
	memcpy(a->record.peer, p->info.key, STORE_KEY);
	if (rc == 0)
		rc = note_asked(c, m, a, &e);
	if (rc == 0)
		rc = accept_step(c, a, m, &e);
	if (rc == 0) {
		take_accepted(c, a, m);
		return;
	}
	answers_drop(a);
	if (rc == ERR_PROTO || rc == ERR_IDENTITY || m->wrong.code != 0)
		conduct_breach(c, p, rc, "%.200s", e.text);
	else
		answers_refuse(c, p, NET_MSG_ANSWER, m->session, rc, e.text);
}

/* ---- the beginning, the end ---- */

void answers_load(struct agent_core *c, const struct store_core *saved)
{
	struct answers *w = &c->answers;

	w->at_once = FED_SCORE_WORDS_MAX;
	w->seen = mem_array(STORE_STEPS_LATE, sizeof(*w->seen));
	for (size_t i = saved->steps.n_ids; i-- > 0;)
		memcpy(w->seen[w->n_seen++ % STORE_STEPS_LATE], saved->steps.ids[i],
		       LEDGER_STEP_ID);
	for (size_t i = 0; i < saved->steps.n_days; i++) {
		const struct store_step_day *d = &saved->steps.days[i];
		struct peer *p = peer_find(c, d->peer);

		if (p != NULL)
			p->steps = (struct peer_steps){ .day = d->day,
							.steps = d->steps,
							.rows = d->rows };
	}
}

void answers_stop(struct agent_core *c)
{
	while (c->answers.n_waiting > 0)
		answers_drop(c->answers.waiting[--c->answers.n_waiting]);
	while (c->answers.n_keyed > 0)
		answers_drop(c->answers.keyed[--c->answers.n_keyed]);
	while (c->answers.n_sending > 0)
		answers_drop(c->answers.sending[--c->answers.n_sending]);
}

bool answers_busy(const struct agent_core *c)
{
	return c->answers.job != NULL;
}

void answers_release(struct agent_core *c)
{
	struct answers *w = &c->answers;

	answers_stop(c);
	for (size_t i = 0; i < w->n_saving; i++)
		answers_drop(w->saving[i]);
	free(w->saving);
	free(w->sending);
	free(w->seen);
	scores_encoder_release(c);
	tables_free(w->tables);
}
