/* agent/core/asks.c - our owner asks partners for a step of a query; nothing that they answer is
 * taken for more than it can be. */
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/peers_internal.h"
#include "agent/core/session_internal.h"
#include "agent/core/steps_internal.h"
#include "base/mem.h"
#include "query/frontier.h"

/* ---- the end of one ---- */

static void release_asking(struct asking *g)
{
	for (size_t i = 0; i < g->n; i++) {
		free(g->of[i].slots);
		free(g->of[i].truths);
		free(g->of[i].answer.rows);
		free(g->of[i].answer.shared);
		free(g->of[i].answer.row);
	}
	free(g->of);
	free(g);
}

static bool asking_is_over(const struct asking *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->of[i].phase != ASKED_OVER)
			return false;
	return true;
}

/* Of a partner: what is on its way to disk has come in time. */
static bool asking_waits(const struct asking *g)
{
	for (size_t i = 0; i < g->n; i++)
		if (g->of[i].phase == ASKED_WAITS)
			return true;
	return false;
}

static void tell_answers(struct agent_core *c, const struct asking *g)
{
	struct agent_answer *all = mem_array(g->n + 1, sizeof(*all));

	for (size_t i = 0; i < g->n; i++)
		all[i] = g->of[i].answer;
	if (c->io.answered != NULL)
		c->io.answered(c->io.ctx, g->ticket, all, g->n);
	free(all);
}

/* What is over is told; the timer is for the first of those that wait. */
static void settle_asks(struct agent_core *c)
{
	struct asks *a = &c->asks;
	uint64_t due_ms = UINT64_MAX;
	size_t kept = 0;

	for (size_t i = 0; i < a->n; i++) {
		struct asking *g = a->at[i];

		if (!asking_is_over(g)) {
			due_ms = asking_waits(g) && g->due_ms < due_ms ? g->due_ms : due_ms;
			a->at[kept++] = g;
			continue;
		}
		tell_answers(c, g);
		release_asking(g);
	}
	a->n = kept;
	if (due_ms == UINT64_MAX)
		c->io.cancel_timer(c->io.ctx, AGENT_TIMER_ASKED);
	else
		c->io.set_timer(c->io.ctx, AGENT_TIMER_ASKED,
				due_ms > c->now_ms ? due_ms - c->now_ms : 0);
}

static void fail_asked(struct asked *x, int code, const char *why)
{
	x->phase = ASKED_OVER;
	x->answer.code = code;
	snprintf(x->answer.why, sizeof(x->answer.why), "%.*s", AGENT_TEXT_MAX - 1, why);
}

/* ---- asking ---- */

static int compare_points(const void *a, const void *b)
{
	const struct query_point *x = a, *y = b;

	return (x->id > y->id) - (x->id < y->id);
}

/* The points as slots of this partner, ascending; those that are not shared are left out. */
static void place_points(const struct agent_core *c, struct asked *x, const struct agent_ask *ask,
			 struct buf *out)
{
	uint32_t n = graph_vocab_count(c->graph->entities);
	float *truth = mem_array((size_t)n + 1, sizeof(*truth));
	struct query_point *at = mem_array(ask->n + 1, sizeof(*at));
	struct step_writer w = { .out = out };
	const struct peer *p = x->peer;
	uint32_t k = 0;

	for (size_t i = 0; i < ask->n; i++)
		if (ask->points[i].entity < n)
			truth[ask->points[i].entity] = ask->points[i].truth;
	for (uint32_t slot = 0; slot < p->n_slots && k < ask->n; slot++)
		if (p->slots[slot].tag == 'e' && p->slots[slot].id < n &&
		    step_truth_holds(truth[p->slots[slot].id]))
			at[k++] = (struct query_point){ slot, truth[p->slots[slot].id] };
	qsort(at, k, sizeof(*at), compare_points);
	x->slots = mem_array((size_t)k + 1, sizeof(*x->slots));
	x->truths = mem_array((size_t)k + 1, sizeof(*x->truths));
	x->record.step.points = k;
	for (uint32_t i = 0; i < k; i++) {
		x->slots[i] = at[i].id;
		x->truths[i] = at[i].truth;
		step_put_slot(&w, at[i].id);
		step_put_truth(&w, at[i].truth);
	}
	free(truth);
	free(at);
}

/* As the partner calls it; a name that we do not have is taken as it is. */
static bool name_relation(const struct agent_core *c, const struct peer *p, const char *own,
			  char out[LEDGER_RELATION_MAX + 1])
{
	uint32_t id = graph_vocab_find(c->graph->relations, own, strlen(own));

	if (id != GRAPH_NONE)
		return agent_names_relation(c->names, peer_names_key(c, p->info.key), id, out,
					    LEDGER_RELATION_MAX + 1);
	return snprintf(out, LEDGER_RELATION_MAX + 1, "%s", own) <= LEDGER_RELATION_MAX;
}

static void send_ask(struct agent_core *c, struct asked *x, const struct agent_ask *ask,
		     const struct buf *points)
{
	struct ledger_step *s = &x->record.step;
	struct net_ask b = { .relation = { (const uint8_t *)s->relation, strlen(s->relation) },
			     .inverse = s->inverse,
			     .norm = s->norm,
			     .points = { points->base, points->len },
			     .beam = x->most.beam,
			     .known = x->most.known,
			     .want = x->most.predicted,
			     .patience_ms = ask->patience_ms,
			     .asked_ms = s->asked_ms };

	uint64_t before = x->peer->bytes_out + x->peer->outbox.bytes; /* sent, or to be sent */

	memcpy(b.alignment, s->alignment, sizeof(b.alignment));
	memcpy(b.signature, s->asker_signature, sizeof(b.signature));
	peer_say(c, x->peer, NET_MSG_ASK, s->id, NET_BODY_ask, &b);
	x->answer.bytes += x->peer->bytes_out + x->peer->outbox.bytes - before;
}

/* Which entities the partner has, too. */
static void note_shared(const struct agent_core *c, struct asked *x)
{
	uint32_t n = graph_vocab_count(c->graph->entities);

	x->answer.shared_bytes = ((size_t)n + 7) / 8;
	x->answer.shared = mem_array(x->answer.shared_bytes + 1, 1);
	for (uint32_t slot = 0; slot < x->peer->n_slots; slot++) {
		const struct store_slot *s = &x->peer->slots[slot];

		if (s->tag == 'e' && s->id < n)
			x->answer.shared[s->id / 8] |= (uint8_t)(1u << s->id % 8);
	}
}

static void ask_one(struct agent_core *c, struct asked *x, const struct agent_ask *ask)
{
	struct ledger_step *s = &x->record.step;
	struct peer *p = x->peer;
	struct buf points = { 0 };

	answers_draw_own_id(c, s->id);
	memcpy(s->asker, c->sign_public, sizeof(s->asker));
	memcpy(s->owner, p->info.sign_key, sizeof(s->owner));
	s->inverse = ask->inverse;
	s->norm = ask->norm;
	x->most = (struct query_limits){ ask->beam, ask->known, ask->want };
	s->want = ask->known + ask->want;
	s->asked_ms = c->wall_ms > 0 ? c->wall_ms : 0;
	memcpy(s->alignment, p->digest, sizeof(s->alignment));
	place_points(c, x, ask, &points);
	step_hash_asked(s, &(struct net_bytes){ points.base, points.len }, &x->most);
	if (ask->n == 0 && ask->norm != LEDGER_ROW)
		note_shared(c, x);
	if (ask->n > 0 && points.len == 0) {
		fail_asked(x, 0, ""); /* none of them is shared: nothing follows */
	} else {
		ledger_step_ask(s, c->sign_secret);
		send_ask(c, x, ask, &points);
	}
	buf_release(&points);
}

/* Not worth asking again soon where no comparison is under way (the next one is not due for a while
 * from its beginning on) and none may begin before the asker's patience ends. */
static void fail_unaligned(const struct agent_core *c, struct asked *x, uint64_t patience_ms)
{
	const char *why = "names are not compared with it yet";
	uint64_t wait_ms = intersect_wait_ms(c, x->peer);
	char text[AGENT_TEXT_MAX];

	if (session_with(c, x->peer) != NULL || wait_ms <= patience_ms) {
		fail_asked(x, ERR_BUSY, why);
		return;
	}
	snprintf(text, sizeof(text), "%s, and may not be for %llu s (federation.names_every_s)",
		 why, (unsigned long long)(wait_ms + 999) / 1000);
	fail_asked(x, ERR_UNREACHABLE, text);
}

static bool is_in_slots(const struct peer *p, char tag, uint32_t id)
{
	for (uint32_t k = 0; k < p->n_slots; k++)
		if (p->slots[k].tag == tag && p->slots[k].id == id)
			return true;
	return false;
}

/* Why the partner is not asked: the name of a relation of ours leaves toward who has it, too, by
 * the names that were compared, or where our owner says so.  NULL: it is asked, as over a relation
 * that we do not have, whose name our owner has typed. */
static const char *name_is_kept(const struct agent_core *c, const struct peer *p,
				const struct agent_ask *ask)
{
	uint32_t id = graph_vocab_find(c->graph->relations, ask->relation, strlen(ask->relation));

	if (ask->tell || id == GRAPH_NONE)
		return NULL;
	if (!peer_shares(c, 'r'))
		return in_rounds(c)
			       ? "rounds.method compares no names of relations, and this one is "
				 "ours"
			       : "federation.share compares no names of relations, and this one is "
				 "ours";
	if (peer_aligned(p) && !is_in_slots(p, 'r', id))
		return "it has no relation of this name, or compares no names of relations";
	return NULL;
}

static void begin_one(struct agent_core *c, struct asked *x, struct peer *p,
		      const struct agent_ask *ask)
{
	const char *kept = name_is_kept(c, p, ask);

	x->peer = p;
	memcpy(x->answer.peer, p->info.key, AGENT_KEY);
	snprintf(x->answer.name, sizeof(x->answer.name), "%s", p->info.name);
	memcpy(x->record.peer, p->info.key, STORE_KEY);
	x->record.ours = true;
	x->answer.unasked = kept != NULL;
	if (kept != NULL)
		fail_asked(x, ERR_REFUSED, kept);
	else if (!p->greeted)
		fail_asked(x, ERR_UNREACHABLE, "there is no link to it");
	else if (!peer_aligned(p))
		fail_unaligned(c, x, ask->patience_ms);
	else if (!name_relation(c, p, ask->relation, x->record.step.relation))
		fail_asked(x, ERR_UNREACHABLE,
			   "the relation has no name toward it: it is too long, or another "
			   "relation has it");
	else
		ask_one(c, x, ask);
}

static bool is_meant(const struct agent_ask *ask, const struct peer *p)
{
	for (size_t i = 0; i < ask->n_partners; i++)
		if (memcmp(ask->partners[i], p->info.key, AGENT_KEY) == 0)
			return true;
	return ask->n_partners == 0;
}

/* A question that finds no room: nothing was sent. */
static void refuse_ask(struct agent_core *c, struct asking *g, const struct agent_ask *ask)
{
	for (size_t i = 0; i < c->n_peers; i++) {
		struct asked *x = &g->of[g->n];

		if (!peer_listed(c->peers[i]) || !is_meant(ask, c->peers[i]))
			continue;
		memcpy(x->answer.peer, c->peers[i]->info.key, AGENT_KEY);
		fail_asked(x, ERR_BUSY, "too many questions of ours are under way");
		g->n++;
	}
	tell_answers(c, g);
	release_asking(g);
}

void asks_begin(struct agent_core *c, const struct agent_ask *ask)
{
	struct asking *g = mem_array(1, sizeof(*g));

	assert(ask->n <= AGENT_POINTS_MAX && ask->beam <= AGENT_POINTS_MAX);
	assert(ask->known <= AGENT_POINTS_MAX);
	assert(ask->want >= 1 && ask->want <= AGENT_POINTS_MAX);
	assert(ask->patience_ms >= 1 && ask->patience_ms <= NET_PATIENCE_MAX_MS);
	g->ticket = ask->ticket;
	g->due_ms = c->now_ms + ask->patience_ms;
	g->of = mem_array(c->n_peers + 1, sizeof(*g->of));
	if (c->stopping || c->asks.n == AGENT_ASKS_MAX) {
		refuse_ask(c, g, ask);
		return;
	}
	for (size_t i = 0; i < c->n_peers; i++)
		if (peer_listed(c->peers[i]) && is_meant(ask, c->peers[i]))
			begin_one(c, &g->of[g->n++], c->peers[i], ask);
	c->asks.at[c->asks.n++] = g;
	settle_asks(c);
}

/* ---- answers ---- */

static struct asked *find_asked(const struct agent_core *c, const struct peer *p,
				const uint8_t id[LEDGER_STEP_ID])
{
	for (size_t i = 0; i < c->asks.n; i++)
		for (size_t k = 0; k < c->asks.at[i]->n; k++) {
			struct asked *x = &c->asks.at[i]->of[k];

			if (x->peer == p && x->phase == ASKED_WAITS &&
			    memcmp(x->record.step.id, id, LEDGER_STEP_ID) == 0)
				return x;
		}
	return NULL;
}

bool asks_expect(const struct agent_core *c, const struct peer *p, const struct net_msg_head *h)
{
	return h->has_session && find_asked(c, p, h->session) != NULL;
}

/* A row as its owner has written it. */
struct row {
	uint32_t slot, point; /* point: its place among those asked from; with ways */
	float truth;	      /* with ways: of the edge */
};

static bool get_row(struct step_reader *r, bool known, bool ways, struct row *out)
{
	*out = (struct row){ .truth = 1.0f };
	return step_get_slot(r, &out->slot) && (!ways || step_get_count(r, &out->point)) &&
	       ((known && ways) || step_get_truth(r, &out->truth));
}

/* An edge of the tables is never as true as a known one. */
static int take_way(const struct asked *x, const struct row *row, bool known,
		    struct agent_answer_row *out, struct err *e)
{
	const struct ledger_step *s = &x->record.step;

	if (row->point >= s->points)
		return err_set(e, ERR_PROTO, "answers by a point that was not asked from");
	if (!step_truth_holds(row->truth) || (!known && row->truth > QUERY_CAP))
		return err_set(e, ERR_PROTO, "answers by an edge of a truth that it cannot have");
	out->from = (struct agent_point){ x->peer->slots[x->slots[row->point]].id, row->truth };
	out->to.truth =
		query_truth_and((enum query_norm)s->norm, x->truths[row->point], row->truth);
	return 0;
}

/* most: a truth that no answer is above. */
static int take_step_row(const struct asked *x, const struct row *row, bool known, float most,
			 struct agent_answer_row *out, struct err *e)
{
	const struct peer *p = x->peer;
	int rc = 0;

	*out = (struct agent_answer_row){ .to.truth = row->truth, .from.entity = GRAPH_NONE };
	if (row->slot >= p->n_slots || p->slots[row->slot].tag != 'e')
		return err_set(e, ERR_PROTO, "answers slot %u, which is no entity", row->slot);
	out->to.entity = p->slots[row->slot].id;
	if (x->record.step.ways)
		rc = take_way(x, row, known, out, e);
	if (rc == 0 && !step_truth_holds(out->to.truth))
		return err_set(e, ERR_PROTO, "answers a truth that is not in (0, 1]");
	if (rc == 0 && out->to.truth > most)
		return err_set(e, ERR_PROTO, "answers a truth above what it can be");
	return rc;
}

struct taking {
	struct asked *x;
	struct step_reader r;
	float most, least; /* a truth that none is above; the least of a kind */
	bool *taken;	   /* [slot] */
};

static int take_next_row(struct taking *t, bool known, struct err *e)
{
	struct asked *x = t->x;
	struct agent_answer_row *to = &x->answer.rows[x->answer.n];
	struct row row;
	int rc;

	if (!get_row(&t->r, known, x->record.step.ways, &row))
		return err_set(e, ERR_PROTO, "answers rows that are not written as such");
	rc = take_step_row(x, &row, known, t->most, to, e);
	if (rc == 0 && t->taken[row.slot])
		rc = err_set(e, ERR_PROTO, "answers slot %u twice", row.slot);
	if (rc != 0)
		return rc;
	t->taken[row.slot] = true;
	t->least = to->to.truth < t->least ? to->to.truth : t->least;
	x->answer.n++;
	return 0;
}

/* At least and at most so many rows. */
static int take_step_rows(struct taking *t, bool known, size_t least, size_t most, struct err *e)
{
	size_t n = 0;
	int rc = 0;

	t->r.next = 0;
	t->least = 1;
	while (rc == 0 && n < most && (n < least || t->r.left.len > 0)) {
		rc = take_next_row(t, known, e);
		n++;
	}
	if (rc == 0 && !known && t->r.left.len > 0)
		return err_set(e, ERR_PROTO, "answers more rows than the %zu that were wanted", n);
	return rc;
}

/* Known ones and predicted ones; before it is checked who has signed them. */
static int read_step_rows(struct taking *t, const struct net_answer *b, struct err *e)
{
	struct asked *x = t->x;
	bool any = x->record.step.points > 0;
	size_t known_most = any && b->policy == LEDGER_FACTS ? x->most.known : 0,
	       most = known_most + (any ? x->most.predicted : 0), predicted;
	uint32_t known;
	int rc;

	if (!step_get_count(&t->r, &known) || known > known_most)
		return err_set(e, ERR_PROTO, "answers more rows by known edges than were wanted");
	x->answer.rows = mem_array(most + 1, sizeof(*x->answer.rows));
	rc = take_step_rows(t, true, known, known, e);
	if (rc == 0)
		rc = take_step_rows(t, false, 0, any ? x->most.predicted : 0, e);
	predicted = x->answer.n - known;
	x->answer.known_full = any && b->policy == LEDGER_FACTS && known == known_most;
	x->answer.rest = rc == 0 ? query_rest(predicted, x->most.predicted, t->least) : 0;
	return rc;
}

/* Floats of the relation's row in an encoder; how many is for who knows the encoder. */
static int read_relation_row(struct asked *x, const struct net_answer *b, struct err *e)
{
	struct agent_answer *to = &x->answer;

	if (b->rows.len % sizeof(float) != 0)
		return err_set(e, ERR_PROTO, "answers a row of %zu bytes", b->rows.len);
	to->row_floats = b->rows.len / sizeof(float);
	to->row = mem_copy(b->rows.base, b->rows.len);
	for (size_t i = 0; i < to->row_floats; i++)
		if (!isfinite(to->row[i]))
			return err_set(e, ERR_PROTO, "answers a row that is not finite");
	x->record.step.ways = b->ways;
	x->answer.n = 1; /* as it is signed */
	return 0;
}

static int read_answer(struct asked *x, const struct net_answer *b, struct err *e)
{
	struct taking t = { .x = x, .r.left = { b->rows.base, b->rows.len } };
	int rc;

	x->record.step.ways = b->ways;
	x->answer.cut = b->cut;
	t.taken = mem_array((size_t)x->peer->n_slots + 1, sizeof(*t.taken));
	for (uint32_t i = 0; i < x->record.step.points; i++)
		t.most = x->truths[i] > t.most ? x->truths[i] : t.most;
	rc = read_step_rows(&t, b, e);
	free(t.taken);
	return rc;
}

/* Did it sign what came? */
static int check_step_signed(struct asked *x, const struct net_answer *b, struct err *e)
{
	struct ledger_step *s = &x->record.step;

	s->policy = (enum ledger_policy)b->policy;
	s->rows = (uint32_t)x->answer.n;
	s->answered_ms = b->answered_ms;
	ledger_step_hash(s->answer, b->rows.base, b->rows.len, NULL, 0);
	memcpy(s->owner_signature, b->signature, sizeof(s->owner_signature));
	return ledger_step_is_answered(s)
		       ? 0
		       : err_set(e, ERR_IDENTITY, "has not signed what it answers");
}

static void answer_saved(struct agent_core *c)
{
	struct asks *a = &c->asks;

	a->saving[0]->phase = ASKED_OVER;
	a->n_saving--;
	memmove(a->saving, a->saving + 1, a->n_saving * sizeof(struct asked *));
	settle_asks(c);
}

static void keep_answer(struct agent_core *c, struct asked *x)
{
	struct asks *a = &c->asks;
	struct store_batch b = { 0 };

	x->phase = ASKED_SAVES;
	x->answer.facts = x->record.step.policy == LEDGER_FACTS;
	store_batch_step(&b, &x->record);
	a->saving = mem_resize(a->saving, a->n_saving + 1, sizeof(struct asked *));
	a->saving[a->n_saving++] = x;
	core_commit(c, &b, answer_saved);
	settle_asks(c);
}

static bool is_stale(const struct asked *x)
{
	return !peer_aligned(x->peer) ||
	       memcmp(x->peer->digest, x->record.step.alignment, LEDGER_HASH) != 0;
}

void asks_take(struct agent_core *c, struct peer *p, const struct net_message *m)
{
	struct asked *x = find_asked(c, p, m->session);
	struct err e = m->wrong;
	int rc = e.code;

	if (x == NULL)
		return;
	x->answer.bytes += m->n;
	if (rc == 0 && m->kind == NET_BODY_reason) {
		fail_asked(x, (int)m->reason.code, m->reason.why);
		settle_asks(c);
		return;
	}
	if (rc == 0 && is_stale(x)) {
		fail_asked(x, ERR_BUSY, "names were compared anew meanwhile");
		settle_asks(c);
		return;
	}
	if (rc == 0 && x->record.step.norm == LEDGER_ROW)
		rc = read_relation_row(x, &m->answer, &e);
	else if (rc == 0)
		rc = read_answer(x, &m->answer, &e);
	if (rc == 0)
		rc = answers_check_day(c, m->answer.answered_ms, &e);
	if (rc == 0)
		rc = check_step_signed(x, &m->answer, &e);
	if (x->record.step.norm == LEDGER_ROW)
		x->answer.n = 0;
	if (rc == 0) {
		keep_answer(c, x);
		return;
	}
	x->answer.n = 0;
	fail_asked(x, rc, e.text);
	conduct_breach(c, p, rc, "%.200s", e.text);
	settle_asks(c);
}

/* ---- time, links, the end ---- */

static void fail_some(struct agent_core *c, const struct peer *p, uint64_t due_ms, int code,
		      const char *why)
{
	for (size_t i = 0; i < c->asks.n; i++) {
		struct asking *g = c->asks.at[i];

		for (size_t k = 0; k < g->n && g->due_ms <= due_ms; k++)
			if (g->of[k].phase == ASKED_WAITS && (p == NULL || g->of[k].peer == p))
				fail_asked(&g->of[k], code, why);
	}
	if (c->asks.n > 0)
		settle_asks(c);
}

void asks_timer(struct agent_core *c)
{
	fail_some(c, NULL, c->now_ms, ERR_TIMEOUT, "it has not answered in time");
}

void asks_link_down(struct agent_core *c, const struct peer *p)
{
	fail_some(c, p, UINT64_MAX, ERR_UNREACHABLE, "the link to it broke");
}

void asks_stop(struct agent_core *c, int code, const char *why)
{
	fail_some(c, NULL, UINT64_MAX, code, why);
}

void asks_release(struct agent_core *c)
{
	while (c->asks.n > 0)
		release_asking(c->asks.at[--c->asks.n]);
	free(c->asks.saving);
}
