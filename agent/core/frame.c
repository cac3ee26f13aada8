/* agent/core/frame.c - one frame for the rows of many agents (federation.frame: common; methods
 * 3.8).
 *
 * Each agent's training settles on axes of its own, and a session's map from one agent's axes to
 * the other's keeps what L2 sees and not what L1 does.  So agents move: the host of a session
 * rotates its whole table to where the client's rows are, once, and from then on rows travel
 * between the two as they are.
 *
 *   name    key of the agent that founded it; at first an agent's own
 *   joined  agents that have ever joined it, as far as is known; only grows
 *   age     rounds since these tables took it
 *   moves   of this agent, ever: rows of before a move are on other axes
 *   rest    of these, those to another's frame since this agent founded one itself
 *
 * They are of `latest`, and on disk in the batch with it; those of `work` become its own with the
 * round that they are made in, so a crash loses both.
 *
 * Which agent moves.  Rows say whether two agents are in one frame, not names alone
 * (ppat/procrustes.c).  Where they are not, names and their counts decide: the greater frame has
 * the greater count, or of equal ones the lower name.  The agent with the lesser frame moves when
 * it hosts; else the session has a map of its own.  A move adds the two counts, so it at least
 * doubles that of the agent that moves: at the largest count names alone decide, and there is none
 * lower than the lowest.  So agents do not move for ever.  Under one name the rows of an agent that
 * was away may be elsewhere: the agent that has taken the frame later moves.
 *
 * A partner may lie: all that it can do is to have latest rotated, which after a move rests for
 * FRAME_REST rounds, twice as many after each further one.  best stays as it was. */
#include "agent/core/frame.h"

#include <assert.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "kge/model.h"
#include "net/sizes.h"
#include "nn/linalg.h"

enum { FRAME_REST = 4, FRAME_REST_DOUBLINGS = 6 };

void frame_short(const struct frame *f, char out[FRAME_SHORT])
{
	sodium_bin2hex(out, FRAME_SHORT, f->name, FRAME_SHORT / 2);
}

/* ---- the order of frames ---- */

bool frame_same(const struct frame *a, const struct frame *b)
{
	return memcmp(a->name, b->name, sizeof(a->name)) == 0;
}

static bool is_greater(const struct frame *a, const struct frame *b)
{
	if (a->joined != b->joined)
		return a->joined > b->joined;
	return memcmp(a->name, b->name, sizeof(a->name)) < 0;
}

/* The agent has moved, and its rest after the last move is not over. */
static bool is_at_rest(const struct frame *f)
{
	uint32_t doublings = f->rest > FRAME_REST_DOUBLINGS ? FRAME_REST_DOUBLINGS : f->rest;

	return f->rest > 0 && f->age < (uint32_t)FRAME_REST << (doublings - 1);
}

bool frame_moves(const struct frame *ours, const struct frame *theirs, bool lower_key)
{
	assert(ours->joined > 0 && theirs->joined > 0);
	if (is_at_rest(ours))
		return false;
	if (!frame_same(ours, theirs))
		return is_greater(theirs, ours);
	return ours->age != theirs->age ? ours->age < theirs->age : !lower_key;
}

struct frame frame_moved(const struct frame *ours, const struct frame *theirs)
{
	struct frame to = *theirs;

	/* since it was decided, more may have been heard of ours */
	if (ours->joined > to.joined)
		to.joined = ours->joined;
	if (!frame_same(ours, theirs))
		to.joined += ours->joined;
	if (to.joined > NET_JOINED_MAX)
		to.joined = NET_JOINED_MAX;
	assert(to.joined >= ours->joined);
	to.age = 0;
	to.moves = ours->moves + (ours->moves < UINT32_MAX);
	to.rest = ours->rest + (ours->rest < UINT32_MAX);
	return to;
}

/* ---- a move ---- */

/* A rotation of all rows keeps its scores: exactly with L2, nearly with L1. */
bool frame_rotates(const struct kge_emb *m)
{
	return m->model == kge_model_find("transe") || m->model == kge_model_find("transe_l2");
}

static void rotate_rows(float *rows, const float *by, size_t n, size_t d)
{
	float *out = mem_array(n * d + 1, sizeof(*out));

	nn_apply(out, rows, by, n, d, d);
	memcpy(rows, out, n * d * sizeof(*out));
	free(out);
}

void frame_rotate(struct kge_emb *m, const float *map)
{
	size_t d = m->ent_floats;
	float *back = mem_array(d * d, sizeof(*back)); /* of the client's axes from ours */

	assert(frame_rotates(m) && m->rel_floats == d);
	for (size_t i = 0; i < d; i++)
		for (size_t j = 0; j < d; j++)
			back[j * d + i] = map[i * d + j];
	rotate_rows(m->ent, back, m->n_ent, d);
	rotate_rows(m->rel, back, m->n_rel, d);
	free(back);
}
