/* tests/sim/frames.c - agents that come into one frame (--frames): what they learn, what must hold.
 *
 * All agents learn the same rows, each on axes of its own; training goes along with whatever axes
 * the tables are on, as TransE's does.  The simulator remembers for all tables that an agent ever
 * had to serve which frame it said they were in. */
#include <stdlib.h>
#include <string.h>

#include "agent/core/core_internal.h"
#include "agent/core/session_internal.h"
#include "base/mem.h"
#include "nn/linalg.h"
#include "tests/sim/inside.h"

/* ---- settings and learning ---- */

void sim_frames_settings(struct sim *s, const struct node *n, struct config *c)
{
	bool apart = !s->o.calm && s->o.seed % 4 == 3 && n->at == 0; /* its owner wants none */

	c->federation.after = CONFIG_AFTER_KEEP;
	c->federation.frame = apart ? CONFIG_FRAME_SESSION : CONFIG_FRAME_COMMON;
	c->federation.translator = CONFIG_PROCRUSTES;
	c->federation.share = CONFIG_SHARE_BOTH;
	c->federation.neighbours = false;
	c->federation.patience = 0;
	c->federation.max_rounds = s->o.rounds != 0 ? s->o.rounds : 16;
	c->privacy.noisy_rows = false;
}

void sim_frames_target(struct sim *s, struct node *n)
{
	struct kge_emb *t = n->target;
	size_t d = t->ent_floats;
	float *q = mem_array(d * d, sizeof(*q));
	struct rng r;

	rng_seed(&r, s->o.seed * 100 + 99);
	for (size_t i = 0; i < t->n_ent * d; i++)
		t->ent[i] = (float)rng_normal(&r);
	for (size_t i = 0; i < t->n_rel * d; i++)
		t->rel[i] = (float)rng_normal(&r);
	rng_seed(&r, s->o.seed * 100 + n->at);
	if (nn_haar(q, d, nn_draw_seeded(&r), NULL) != 0)
		sim_fail(s, "no rotation");
	frame_rotate(t, q);
	free(q);
}

/* What is to be learned, on the axes that the tables are on. */
struct kge_emb *sim_frames_target_of(const struct node *n, const struct kge_emb *work)
{
	struct kge_emb *t = kge_emb_copy(n->target);
	size_t d = t->ent_floats;
	float *back = mem_array(d * d, sizeof(*back));

	if (nn_procrustes(back, work->ent, t->ent, t->n_ent, d, d, NULL) == 0)
		frame_rotate(t, back);
	free(back);
	return t;
}

/* ---- name and tables in step ---- */

static const struct sim_framed *framed(const struct node *n, const uint8_t digest[32])
{
	for (size_t i = 0; i < n->n_framed; i++)
		if (memcmp(n->framed[i].digest, digest, 32) == 0)
			return &n->framed[i];
	return NULL;
}

static bool is_as(const struct frame *a, const struct frame *b)
{
	return frame_same(a, b) && a->moves == b->moves;
}

static void remember(struct node *n)
{
	const struct frame *f = &n->core->frames.latest;
	const struct sim_framed *before;
	uint8_t digest[32];

	kge_emb_digest(n->core->latest, digest);
	before = framed(n, digest);
	if (before != NULL && !is_as(&before->frame, f) && f->moves > 0)
		sim_fail(n->sim, "agent %zu: one table in two frames", n->at);
	if (before != NULL)
		return;
	n->framed = mem_resize(n->framed, n->n_framed + 1, sizeof(*n->framed));
	n->framed[n->n_framed] = (struct sim_framed){ .frame = *f };
	memcpy(n->framed[n->n_framed++].digest, digest, 32);
}

/* Before it is written: who dies in this event may still have it on disk. */
void sim_frames_asked(struct node *n)
{
	if (n->core != NULL && latest_frame_common(n->core) && n->core->latest != NULL)
		remember(n);
}

/* Of a move that is seen for the first time: from where latest is to where work is. */
static void check_move(struct node *n, const struct frame *from, const struct frame *to)
{
	uint32_t times = from->moves < 6 ? from->moves : 6;
	uint64_t least = frame_same(from, to) ? from->joined : 2 * from->joined;

	n->sim->report->moves++;
	if (to->moves != from->moves + 1)
		sim_fail(n->sim, "agent %zu has moved twice in a round", n->at);
	if (from->moves > 0 && from->age < UINT32_C(4) << (times - 1))
		sim_fail(n->sim, "agent %zu moves %u rounds after its move number %u", n->at,
			 from->age, from->moves);
	if (to->joined < (least < NET_JOINED_MAX ? least : NET_JOINED_MAX))
		sim_fail(n->sim, "agent %zu moves to a frame of %llu, from one of %llu", n->at,
			 (unsigned long long)to->joined, (unsigned long long)from->joined);
}

static void check_unrotated(struct node *n)
{
	const struct agent_core *c = n->core;

	for (size_t i = 0; i < c->n_open; i++) {
		size_t with = node_by_key(n->sim, c->open[i]->peer->info.key);

		if (!c->open[i]->terms.unrotated)
			continue;
		n->sim->report->unrotated++;
		if (n->config.federation.frame != CONFIG_FRAME_COMMON ||
		    n->sim->node[with].config.federation.frame != CONFIG_FRAME_COMMON)
			sim_fail(n->sim, "agents %zu and %zu: rows go unrotated", n->at, with);
	}
}

void sim_frames_check_node(struct node *n)
{
	const struct frames *f = &n->core->frames;

	check_unrotated(n);
	if (!latest_frame_common(n->core) || !n->core->trained)
		return;
	if (frame_same(&f->latest, &n->frame_seen) && f->latest.moves == n->frame_seen.moves &&
	    f->latest.joined < n->frame_seen.joined && f->latest.moves > 0 && !n->put_back)
		sim_fail(n->sim, "agent %zu: fewer have joined its frame than before", n->at);
	if (f->work.moves != f->latest.moves && n->moves_seen != f->work.moves)
		check_move(n, &f->latest, &f->work);
	n->moves_seen = f->work.moves;
	n->frame_seen = f->latest;
	remember(n);
}

/* A disk has both, or neither. */
void sim_frames_check_restart(struct node *n)
{
	const struct agent_core *c = n->core;
	const struct sim_framed *was;
	uint8_t digest[32];

	n->moves_seen = c->frames.work.moves;
	n->frame_seen = (struct frame){ 0 };
	if (!latest_frame_common(c) || !c->trained || !n->disk.has_latest)
		return;
	kge_emb_digest(c->latest, digest);
	was = framed(n, digest);
	if (was == NULL)
		sim_fail(n->sim, "agent %zu: restarted with tables that it never had", n->at);
	else if (!is_as(&was->frame, &c->frames.latest))
		sim_fail(n->sim, "agent %zu: restarted with tables of move %u and a frame of %u",
			 n->at, was->frame.moves, c->frames.latest.moves);
}

/* ---- at the end ---- */

/* What all rows have in common as they are, of what they have through a map. */
static double agreement(const struct kge_emb *a, const struct kge_emb *b)
{
	struct kge_emb *mapped = kge_emb_copy(a);
	size_t d = a->ent_floats;
	float *map = mem_array(d * d, sizeof(*map));
	double is = nn_mean_cosine(a->ent, b->ent, a->n_ent, d), may = 1;

	if (nn_procrustes(map, b->ent, a->ent, a->n_ent, d, d, NULL) == 0) {
		frame_rotate(mapped, map);
		may = nn_mean_cosine(mapped->ent, b->ent, a->n_ent, d);
	}
	kge_emb_free(mapped);
	free(map);
	return is / may;
}

/* Where all share all names and nothing went wrong, all are in one frame, and so are their rows. */
void sim_frames_check_quiet(struct sim *s)
{
	const struct agent_core *first = s->node[0].core;

	for (size_t i = 1; s->o.calm && s->o.world == SIM_EQUAL && i < s->n; i++) {
		const struct agent_core *c = s->node[i].core;

		if (!frame_same(&first->frames.latest, &c->frames.latest))
			sim_fail(s, "agents 0 and %zu are in two frames at the end", i);
		else if (agreement(first->latest, c->latest) < 0.6)
			sim_fail(s, "agents 0 and %zu are in one frame by its name alone: %.3f", i,
				 agreement(first->latest, c->latest));
	}
}
