/* agent/core/frame_session.c - what a session says of the frames of both (frame.h). */
#include <assert.h>
#include <string.h>

#include "agent/core/best_internal.h"
#include "agent/core/core_internal.h"
#include "agent/core/session_internal.h"

void frame_say(const struct session *s, bool *has, struct net_frame *out)
{
	const struct agent_core *c = s->core;
	const struct frame *f = &c->frames.latest;

	assert(!s->terms.unrotated || f->joined > 0);
	*has = s->terms.unrotated;
	*out = (struct net_frame){ .joined = f->joined, .age = f->age };
	memcpy(out->name, f->name, sizeof(out->name));
}

static void learn_joined(struct frame *ours, const struct frame *theirs)
{
	if (frame_same(ours, theirs) && theirs->joined > ours->joined)
		ours->joined = theirs->joined;
}

void frame_hear(struct session *s, bool has, const struct net_frame *said, struct err *e)
{
	struct agent_core *c = s->core;

	if (has != s->terms.unrotated)
		err_set(e, ERR_PROTO, "%s",
			has ? "a frame of rows that are rotated"
			    : "key 'fn' is missing, and rows go unrotated");
	if (!has || e->code != 0)
		return;
	s->their_frame = (struct frame){ .joined = said->joined, .age = (uint32_t)said->age };
	memcpy(s->their_frame.name, said->name, sizeof(s->their_frame.name));
	learn_joined(&c->frames.latest, &s->their_frame);
	learn_joined(&c->frames.work, &s->their_frame);
}

bool frame_is_theirs(const struct session *s)
{
	return s->terms.unrotated && frame_same(&s->core->frames.latest, &s->their_frame);
}
