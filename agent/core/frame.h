/* agent/core/frame.h - the axes that an agent's tables are on, and who moves to whose (frame.c). */
#ifndef AGENT_CORE_FRAME_H
#define AGENT_CORE_FRAME_H

#include <stdbool.h>
#include <stdint.h>

struct kge_emb;

struct frame {
	uint8_t name[32]; /* X25519 key of the agent that founded it; of rows that began by names a
			   * digest of model and seed (latest.c) */
	uint64_t joined;  /* agents that have ever joined it, as far as is known; 0: no frame */
	uint32_t age;	  /* rounds since these tables took it */
	uint32_t moves;	  /* of this agent, ever: to other axes, or back to the best tables */
	uint32_t rest;	  /* of these, to others' axes since it founded one: how long it rests */
};

enum { FRAME_SHORT = 9 };
void frame_short(const struct frame *f, char out[FRAME_SHORT]); /* 8 hex digits of its name */
bool frame_same(const struct frame *a, const struct frame *b);	/* by name */
/* Of two agents whose rows do not agree as they are: does the first move to where the other is?
 * lower_key: it has the lower one. */
bool frame_moves(const struct frame *ours, const struct frame *theirs, bool lower_key);
struct frame frame_moved(const struct frame *ours, const struct frame *theirs);
/* Does a rotation of all rows keep what these tables are worth? */
bool frame_rotates(const struct kge_emb *m);
/* All rows of m, from our axes to the client's: row <- row map, map [d x d] as in struct
 * ppat_result.  m rotates. */
void frame_rotate(struct kge_emb *m, const float *map);

#endif
