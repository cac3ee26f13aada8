/* agent/core/learn_merge.c - rows that partners have sent, from the end of a session until work has
 * them (methods 3.1).
 *
 *   session over -> learn_merge_add(): they wait, one partner's of each -> learn_merge_next()
 * AGGREGATE, once the core does nothing else and the round under way has none of that partner ->
 * training
 *
 * Sessions run beside training, so rows may come while it goes on: they are for the next round.
 * They are lost with the process, and the partner's signal is on disk until a round has had them.
 *
 * Until they are merged our own rows may have been trained further.  What is averaged in is then
 * how far the partner's were from ours at that time: with the rows themselves, four of five of
 * which may be one round old, all would lose nearly half of what each round learns.
 *
 * A session may say that this agent is to move to its client's frame (frame.h).  It does so once in
 * a round, when all rows are merged, since these were translated to the axes of before. */
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/effects_internal.h"
#include "agent/core/learn_internal.h"
#include "agent/core/peers_internal.h"
#include "base/mem.h"
#include "ppat/session.h"
#include "ppat/virtual.h"

struct aggregation {
	struct conv *conv;
	struct peer *peer;
	/* As they were: names may be compared again meanwhile. */
	struct store_slot *slots;
	uint32_t n_slots;
	struct merge_from from;
	uint64_t bytes;
	bool doubted;		  /* its partner, as the round began (judge.c) */
	struct aggregation *next; /* of those that wait */
};

static void free_brought(struct aggregation *a)
{
	conv_free(a->conv);
	free(a->from.own);
	free(a->slots);
	free(a);
}

/* ---- they wait ---- */

static uint64_t neighbours_bytes(const struct conv *conv)
{
	struct ppat_result r;
	const struct ppat_virtual *v;

	ppat_result(conv, &r);
	v = r.neighbours;
	return v == NULL ? 0
			 : ((uint64_t)v->n_ent + v->n_rel) * v->dim * sizeof(float) +
				   v->n_triples * sizeof(*v->triples);
}

void learn_merge_add(struct agent_core *c, struct peer *p, struct conv *conv,
		     const struct merge_from *from)
{
	struct aggregation *a = mem_array(1, sizeof(*a)), **last = &c->gather.rows.first;

	assert(!p->has_rows);
	*a = (struct aggregation){ .conv = conv, .peer = p, .n_slots = p->n_slots, .from = *from };
	a->slots = mem_array((size_t)p->n_slots + 1, sizeof(*a->slots));
	if (p->n_slots > 0)
		memcpy(a->slots, p->slots, p->n_slots * sizeof(*a->slots));
	while (*last != NULL)
		last = &(*last)->next;
	*last = a;
	a->bytes = from->bytes + neighbours_bytes(conv);
	p->has_rows = true;
	c->gather.rows.n++;
	c->gather.rows.bytes += a->bytes;
}

static struct aggregation *take_waiting(struct agent_core *c, struct aggregation **at)
{
	struct aggregation *a = *at;

	*at = a->next;
	a->peer->has_rows = false;
	c->gather.rows.n--;
	c->gather.rows.bytes -= a->bytes;
	return a;
}

void learn_merge_drop(struct agent_core *c, const struct peer *p)
{
	struct aggregation **at = &c->gather.rows.first;

	while (*at != NULL)
		if (p == NULL || (*at)->peer == p)
			free_brought(take_waiting(c, at));
		else
			at = &(*at)->next;
}

/* The first whose partner has no part in this round.  Rows on other axes are of no use: its partner
 * is asked again; those of one in quarantine are not wanted. */
static struct aggregation **first_due(struct agent_core *c)
{
	struct aggregation **at = &c->gather.rows.first;

	while (*at != NULL) {
		const struct aggregation *a = *at;

		if (a->from.moves != c->frames.work.moves || judge_is_out(a->peer))
			free_brought(take_waiting(c, at));
		else if (a->peer->in_round)
			at = &(*at)->next;
		else
			return at;
	}
	return NULL;
}

bool learn_merge_waits(struct agent_core *c)
{
	return first_due(c) != NULL;
}

/* ---- into work, on a worker ---- */

/* Moved as far as ours have been since then. */
static void move_along(const struct agent_core *c, const struct store_slot *slot, const float *then,
		       float *x, size_t dim)
{
	const float *now =
		slot->tag == 'e' ? kge_ent(c->latest, slot->id) : kge_rel(c->latest, slot->id);

	for (size_t k = 0; k < dim; k++)
		x[k] += now[k] - then[k];
}

static int run_aggregate(struct agent_job *job)
{
	struct agent_core *c = job->core;
	struct aggregation *a = job->subject;
	struct ppat_result r;
	float *rows;

	ppat_result(a->conv, &r);
	rows = mem_copy(r.rows, r.n * r.dim * sizeof(*rows));
	for (size_t i = 0; i < r.n && a->from.own != NULL; i++)
		move_along(c, &a->slots[r.slots[i]], a->from.own + (size_t)r.slots[i] * r.dim,
			   rows + i * r.dim, r.dim);
	if (c->in_round == 0)
		judge_begin(c);
	judge_merge(c, a->peer, a->doubted, a->slots, &r, rows);
	return 0;
}

void learn_merge_next(struct agent_core *c)
{
	struct aggregation *a = take_waiting(c, first_due(c));
	struct ppat_result r;

	ppat_result(a->conv, &r);
	a->peer->agreement = (struct agent_agreement){ (uint32_t)r.n, r.mean_cosine, r.mean_csls,
						       r.csls_nearest };
	a->peer->using_serial = a->from.serial;
	a->peer->in_round = true;
	a->peer->wakes = PEER_WOKE;
	c->doing = DOING_AGGREGATE;
	if (c->in_round == 0)
		judge_plan(c);
	a->doubted = a->peer->doubted;
	core_start_job(c, AGENT_JOB_AGGREGATE, run_aggregate, a);
}

/* ---- neighbours ---- */

static void release_neighbours(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_neighbours; i++) {
		conv_free(c->neighbours[i].conv);
		free(c->neighbours[i].slot_ent);
		free(c->neighbours[i].slot_rel);
	}
	free(c->neighbours);
	c->neighbours = NULL;
	c->n_neighbours = 0;
}

static bool keep_neighbours(struct agent_core *c, const struct aggregation *a)
{
	struct neighbours kept;
	struct ppat_result r;
	struct err e = { 0 };

	ppat_result(a->conv, &r);
	if (r.neighbours == NULL || r.neighbours->n_triples == 0 || c->learner->train_on == NULL)
		return false;
	kept = (struct neighbours){ .conv = a->conv, .v = r.neighbours, .from = a->peer };
	peer_slot_ids(a->slots, a->n_slots, &kept.slot_ent, &kept.slot_rel);
	if (ppat_virtual_check(c->best, kept.v, kept.slot_ent, kept.slot_rel, &e) != 0) {
		peer_trouble(c, a->peer, e.code,
			     "sent virtual neighbours that are left out: %.150s", e.text);
		free(kept.slot_ent);
		free(kept.slot_rel);
		return false;
	}
	c->neighbours = mem_resize(c->neighbours, c->n_neighbours + 1, sizeof(kept));
	c->neighbours[c->n_neighbours++] = kept;
	return true;
}

void learn_merge_say_cut(struct agent_core *c)
{
	for (size_t i = 0; i < c->n_neighbours; i++) {
		const struct neighbours *n = &c->neighbours[i];

		if (n->cut > 0)
			core_notice(c, AGENT_NOTICE_STATE, n->from, 0,
				    "%zu of %u virtual neighbours of %.60s were longer than twice "
				    "our typical row, and were taken at that length "
				    "(federation.bound_rows)",
				    n->cut, n->v->n_ent + n->v->n_rel, n->from->info.name);
	}
}

/* ---- a move to another frame ---- */

/* May work move there? */
static void note_move(struct agent_core *c, const struct aggregation *a)
{
	bool lower = memcmp(c->key, a->peer->info.key, sizeof(c->key)) < 0;
	struct merging *g = &c->gather.rows;
	struct ppat_result r;

	ppat_result(a->conv, &r);
	if (!a->from.unrotated || !frame_rotates(c->work) || r.as_received || r.rows == NULL ||
	    r.n < r.dim || !frame_moves(&c->frames.work, &a->from.frame, lower))
		return;
	assert(latest_frame_common(c));
	g->moves = mem_resize(g->moves, g->n_moves + 1, sizeof(*g->moves));
	g->moves[g->n_moves++] = (struct frame_move){
		.map = mem_copy(r.map, r.dim * r.dim * sizeof(*r.map)),
		.to = a->from.frame,
		.whose = a->peer,
	};
}

bool learn_merge_may_move(const struct agent_core *c)
{
	return c->gather.rows.n_moves > 0;
}

/* Of several partners the one in the greatest frame decides, but none whose rows hurt: no honest
 * one would follow it there. */
static const struct frame_move *choose_move(const struct agent_core *c)
{
	const struct merging *g = &c->gather.rows;
	const struct frame_move *best = NULL;

	for (size_t i = 0; i < g->n_moves; i++)
		if (!judge_left_out(c, g->moves[i].whose) &&
		    (best == NULL || frame_moves(&best->to, &g->moves[i].to, false)))
			best = &g->moves[i];
	return best;
}

void learn_merge_rotate(struct agent_core *c)
{
	c->gather.rows.chosen = choose_move(c);
	if (learn_merge_moves(c))
		frame_rotate(c->work, c->gather.rows.chosen->map);
}

bool learn_merge_moves(const struct agent_core *c)
{
	return c->gather.rows.chosen != NULL;
}

void learn_merge_moved(struct agent_core *c)
{
	const struct frame_move *m = c->gather.rows.chosen;
	char from[FRAME_SHORT], to[FRAME_SHORT];

	if (m == NULL)
		return;
	frame_short(&c->frames.work, from);
	frame_short(&m->to, to);
	c->frames.work = frame_moved(&c->frames.work, &m->to);
	core_notice(c, AGENT_NOTICE_SESSION, m->whose, 0,
		    "moved from frame %s to frame %s, where %.60s is: %llu have joined it", from,
		    to, m->whose->info.name, (unsigned long long)c->frames.work.joined);
}

/* ---- merged, trained ---- */

void learn_merge_done(struct agent_core *c, struct agent_job *job)
{
	struct aggregation *a = job->subject;

	note_move(c, a);
	c->gather.rows.plain |= !a->from.noisy;
	if (keep_neighbours(c, a))
		a->conv = NULL;
	free_brought(a);
	if (c->in_round++ == 0)
		c->gather.until_ms = c->now_ms + config_ms(c->config->federation.gather_s);
	c->doing = DOING_NOTHING;
}

void learn_merge_over(struct agent_core *c)
{
	struct merging *g = &c->gather.rows;

	for (size_t i = 0; i < g->n_moves; i++)
		free(g->moves[i].map);
	free(g->moves);
	g->moves = NULL;
	g->n_moves = 0;
	g->chosen = NULL;
	g->plain = false;
	release_neighbours(c);
}

void learn_merge_release(struct agent_core *c)
{
	learn_merge_over(c);
	learn_merge_drop(c, NULL);
}
