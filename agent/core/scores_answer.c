/* agent/core/scores_answer.c - a partner asks for masked scores by our encoder.
 *
 * Who asks does not choose the members: they are those of our last round, or a sum of a few of them
 * at a time would tell each one's scores. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/scores_internal.h"
#include "base/mem.h"
#include "encode/loss.h"

/* A question holds a place from its first message on: keys of the others come soon or never. */
enum { KEYS_WAIT_MS = 60 * 1000 };

static void scoring_release(struct answering *a)
{
	fed_score_part_free(a->scoring->part);
	free(a->scoring->vectors);
	free(a->scoring);
}

/* ---- a worker scores ---- */

static int run_scores(struct agent_job *job)
{
	struct answering *a = job->subject;
	struct score_answering *x = a->scoring;
	const struct agent_core *c = job->core;
	const struct encode_model *m = c->answers.encoder.m;
	const size_t first[] = { 0, x->n };
	const struct encode_asked in = { .n = 1, .first = first, .q = x->vectors };
	float *score = mem_aligned(m->entities, sizeof(*score));
	int rc;

	encode_scores(&in, m->ent, m->entities, m->is.dim, score);
	rc = fed_score_part_words(x->part, score, &a->rows, &job->why);
	free(score);
	return rc;
}

/* ---- words leave ---- */

static void say_next_words(struct agent_core *c, struct answering *a)
{
	struct score_answering *x = a->scoring;
	const struct ledger_step *s = &a->record.step;
	size_t most = c->answers.at_once * FED_SCORE_WORD, left = a->rows.len - x->sent;
	size_t n = left < most ? left : most;
	struct net_scored b = { .words = { a->rows.base + x->sent, n },
				.has_follow = n < left,
				.follow = (left - n) / FED_SCORE_WORD,
				.answered_ms = s->answered_ms };

	memcpy(b.signature, s->owner_signature, sizeof(b.signature));
	peer_say(c, a->peer, NET_MSG_SCORED, s->id, NET_BODY_scored, &b);
	x->sent += n;
}

/* Is nothing left of it?  What does not fit into the link's queue waits here, not in ours. */
static bool send_words(struct agent_core *c, struct answering *a)
{
	struct peer *p = a->peer;

	if (!peer_listed(p) || !p->greeted || c->now_ms > a->until_ms)
		return true;
	while (a->scoring->sent < a->rows.len && p->outbox.first == NULL && !p->overflow)
		say_next_words(c, a);
	return a->scoring->sent == a->rows.len || p->overflow;
}

static bool send_scores(struct agent_core *c, struct answering *a)
{
	struct answers *w = &c->answers;

	core_notice(c, AGENT_NOTICE_SESSION, a->peer, 0,
		    "masked scores of %u names answered to %.60s", a->record.step.rows,
		    a->peer->info.name);
	if (send_words(c, a))
		return true;
	w->sending = mem_resize(w->sending, w->n_sending + 1, sizeof(struct answering *));
	w->sending[w->n_sending++] = a;
	return false;
}

void scores_pull(struct agent_core *c, struct peer *p)
{
	struct answers *w = &c->answers;
	size_t n = 0;

	for (size_t i = 0; i < w->n_sending; i++)
		if (w->sending[i]->peer == p && send_words(c, w->sending[i]))
			answers_drop(w->sending[i]);
		else
			w->sending[n++] = w->sending[i];
	w->n_sending = n;
}

/* ---- what is asked ---- */

static struct fed_score_question question_of(const struct net_message *m, const struct peer *p)
{
	const struct net_score *b = &m->score;
	struct fed_score_question q = { .members = b->members.base,
					.n_members = b->members.len / FED_KEY,
					.away = b->has_away ? b->away : 0,
					.holders = (uint32_t)b->holders,
					.vectors = b->vectors.base,
					.n = b->vectors.rows,
					.dim = b->vectors.cols };

	memcpy(q.id, m->score.question, FED_ID);
	memcpy(q.asker, p->info.key, FED_KEY);
	return q;
}

static void note_score_asked(const struct agent_core *c, const struct net_message *m,
			     const struct fed_score_question *q, struct answering *a)
{
	struct ledger_step *s = &a->record.step;

	memcpy(s->id, m->session, sizeof(s->id));
	memcpy(s->asker, a->peer->info.sign_key, sizeof(s->asker));
	memcpy(s->owner, c->sign_public, sizeof(s->owner));
	memcpy(s->relation, LEDGER_NO_RELATION, sizeof(LEDGER_NO_RELATION));
	s->norm = LEDGER_SCORES;
	s->points = (uint32_t)q->n;
	s->want = q->holders;
	s->asked_ms = m->score.asked_ms;
	memcpy(s->alignment, m->score.alignment, sizeof(s->alignment));
	fed_score_digest(q, s->frontier);
	memcpy(s->asker_signature, m->score.signature, sizeof(s->asker_signature));
}

/* Of one who keeps to the protocol. */
static int check_score_asked(const struct agent_core *c, const struct net_message *m,
			     const struct fed_score_question *q, const struct ledger_step *s,
			     struct err *e)
{
	int rc = 0;

	if (m->score.members.len % FED_KEY != 0)
		rc = err_set(e, ERR_PROTO, "asks for scores of half a member");
	if (rc == 0)
		rc = fed_score_check(q, c->key, e);
	if (rc == 0 && !ledger_step_is_asked(s))
		rc = err_set(e, ERR_IDENTITY, "has not signed what it asks");
	return rc;
}

/* What our owner says, and whether we could. */
static int check_score_policy(struct agent_core *c, const struct fed_score_question *q,
			      struct err *e)
{
	uint32_t least = c->config->query.score_holders;
	const struct encode_model *m = scores_encoder_now(c);

	if (least == 0)
		return err_set(e, ERR_REFUSED, "it answers no scores (query.score_holders there)");
	if (q->holders < least)
		return err_set(e, ERR_REFUSED,
			       "it scores what at least %u members hold (query.score_holders "
			       "there), not %u",
			       least, q->holders);
	if (m == NULL)
		return scores_no_encoder(c, e);
	if (m->is.dim != q->dim)
		return err_set(e, ERR_REFUSED, "its encoder has vectors of %u numbers, not %zu",
			       m->is.dim, q->dim);
	return 0;
}

/* The members are those of our last round, and we share names with each as it does with us. */
static int make_score_part(struct agent_core *c, const struct fed_score_question *q,
			   struct answering *a, struct err *e)
{
	const struct nn_draw draw = { c->io.draw, c->io.ctx };
	uint32_t entities = scores_encoder_now(c)->entities; /* that there are rows of */
	struct score_members m;
	int rc;

	if (!scores_last_members(c, &m) || m.n != q->n_members ||
	    memcmp(m.key, q->members, m.n * FED_KEY) != 0)
		return err_set(e, ERR_BUSY, "its last round had other members: ask after the next");
	rc = scores_members_open(c, &m, e);
	if (rc == 0) {
		rc = fed_score_part_new(&a->scoring->part, q, c->key, m.at, entities, draw, e);
		if (rc != 0) { /* all names were counted for it: a question of the day */
			answers_hold(a);
			answers_spend_in_vain(c, a);
		}
	}
	scores_members_release(&m);
	return rc;
}

static int accept_scores(struct agent_core *c, const struct net_message *m, struct answering *a,
			 struct err *e)
{
	const struct fed_score_question q = question_of(m, a->peer);
	int rc;

	note_score_asked(c, m, &q, a);
	rc = check_score_asked(c, m, &q, &a->record.step, e);
	if (rc == 0)
		rc = answers_check_state(c, a, e);
	if (rc == 0)
		rc = answers_check_clock(c, &a->record.step, e);
	if (rc == 0)
		rc = check_score_policy(c, &q, e);
	if (rc == 0)
		rc = answers_check_room(c, a->peer, e);
	if (rc == 0)
		rc = make_score_part(c, &q, a, e);
	return rc;
}

/* It waits for the keys of the others from here on. */
static void show_key(struct agent_core *c, const struct net_message *m, struct answering *a)
{
	const struct net_tensor *t = &m->score.vectors;
	struct score_answering *x = a->scoring;
	struct net_score_key b;

	x->n = t->rows;
	x->dim = t->cols;
	x->vectors = mem_aligned(x->n * x->dim, sizeof(*x->vectors));
	net_tensor_copy(t, x->vectors);
	x->due_ms = c->now_ms + m->score.patience_ms;
	a->until_ms = c->now_ms +
		      (m->score.patience_ms < KEYS_WAIT_MS ? m->score.patience_ms : KEYS_WAIT_MS);
	a->run = run_scores;
	a->send = send_scores;
	a->record.step.policy = LEDGER_SOFT;
	a->record.step.rows = (uint32_t)fed_score_part_entities(x->part);
	answers_hold(a);
	answers_note_id(c, a->record.step.id);
	c->answers.keyed[c->answers.n_keyed++] = a;
	fed_score_part_show(x->part, c->sign_secret, b.shown);
	peer_say(c, a->peer, NET_MSG_SCORE_KEY, a->record.step.id, NET_BODY_score_key, &b);
}

static void refuse_scores(struct agent_core *c, struct answering *a, const struct net_message *m,
			  bool breach, const struct err *e)
{
	struct peer *p = a->peer;
	int rc = e->code;

	answers_drop(a);
	if (breach || rc == ERR_PROTO || m->wrong.code != 0)
		conduct_breach(c, p, rc, "%.200s", e->text);
	else
		answers_refuse(c, p, NET_MSG_SCORED, m->session, rc, e->text);
}

void scores_take(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct answering *a;
	struct err e = m->wrong;

	if (e.code == 0 && answers_skip(c, p, NET_MSG_SCORED, m->session))
		return;
	a = mem_array(1, sizeof(*a));
	a->scoring = mem_array(1, sizeof(*a->scoring));
	a->release = scoring_release;
	a->peer = p;
	memcpy(a->record.peer, p->info.key, STORE_KEY);
	if (e.code == 0 && accept_scores(c, m, a, &e) == 0)
		show_key(c, m, a);
	else
		refuse_scores(c, a, m, e.code == ERR_IDENTITY, &e);
}

/* ---- the keys of all ---- */

static size_t find_keyed(const struct agent_core *c, const struct peer *p,
			 const uint8_t id[LEDGER_STEP_ID])
{
	const struct answers *w = &c->answers;
	size_t i = 0;

	while (i < w->n_keyed && (w->keyed[i]->peer != p ||
				  memcmp(w->keyed[i]->record.step.id, id, LEDGER_STEP_ID) != 0))
		i++;
	return i;
}

bool scores_expect_keys(const struct agent_core *c, const struct peer *p,
			const struct net_msg_head *h)
{
	return h->has_session && find_keyed(c, p, h->session) < c->answers.n_keyed;
}

static struct answering *take_keyed(struct agent_core *c, size_t i)
{
	struct answers *w = &c->answers;
	struct answering *a = w->keyed[i];

	w->n_keyed--;
	memmove(w->keyed + i, w->keyed + i + 1, (w->n_keyed - i) * sizeof(struct answering *));
	return a;
}

/* An encoder whose vectors have other sizes now, of a restart of rounds, has no scores for them. */
static int check_still(struct agent_core *c, const struct answering *a, struct err *e)
{
	const struct encode_model *m = scores_encoder_now(c);

	if (c->now_ms > a->until_ms)
		return err_set(e, ERR_TIMEOUT, "the keys of the others came too late");
	if (m == NULL || m->is.dim != a->scoring->dim)
		return err_set(e, ERR_BUSY, "its encoder is another one now");
	return 0;
}

void scores_take_keys(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	size_t i = find_keyed(c, p, m->session);
	struct answering *a;
	struct err e = m->wrong;

	if (i == c->answers.n_keyed)
		return;
	a = take_keyed(c, i);
	if (e.code == 0 && m->score_keys.shown.len == 0) {
		answers_spend_in_vain(c, a);
		answers_drop(a); /* it is off */
		return;
	}
	if (e.code == 0 &&
	    fed_score_part_take(a->scoring->part, m->score_keys.shown.base, m->score_keys.shown.len,
				&e) == 0 &&
	    check_still(c, a, &e) == 0) {
		a->until_ms = a->scoring->due_ms;
		answers_wait(c, a);
	} else { /* one of another member, who may have said another key to us than to the asker */
		answers_spend_in_vain(c, a);
		refuse_scores(c, a, m, false, &e);
	}
}
