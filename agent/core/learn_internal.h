/* agent/core/learn_internal.h - training, its charge, its history.  For agent/core/ and its tests
 * alone. */
#ifndef AGENT_CORE_LEARN_INTERNAL_H
#define AGENT_CORE_LEARN_INTERNAL_H

#include "agent/core/core.h"
#include "base/conv.h"
#include "store/store.h"

struct agent_core;
struct peer;
struct session;

/* Virtual neighbours that came with a translation: kept until the round is trained. */
struct neighbours {
	struct conv *conv; /* owns `v` */
	const struct ppat_virtual *v;
	const struct peer *from;
	size_t cut; /* rows of v that were too long (federation.bound_rows), once it is trained */
	uint32_t *slot_ent, *slot_rel; /* local id of each slot, or GRAPH_NONE */
};

/* ---- learn.c ---- */

void learn_first(struct agent_core *c);
void learn_round(struct agent_core *c); /* over what is aggregated in work */
void learn_local(struct agent_core *c);
/* Milliseconds until a round of its own may begin, for want of news; UINT64_MAX: none will. */
uint64_t learn_local_wait_ms(const struct agent_core *c);
void learn_job_done(struct agent_core *c, struct agent_job *job);

/* ---- learn_merge.c ---- */

/* No further session is proposed while rows that wait, and those that are to come, take so much:
 * one partner's can be half a GiB, and there may be hundreds of partners. */
#define LEARN_MERGE_BYTES (UINT64_C(256) << 20)

/* Of rows that a session has brought. */
struct merge_from {
	uint64_t serial;    /* of the client's tables */
	uint64_t bytes;	    /* that they take (session_rows_bytes()), without virtual neighbours */
	bool unrotated;	    /* in a common frame: ... */
	struct frame frame; /* ... the client's */
	uint32_t moves;	    /* of this agent's tables, whose axes the rows are on */
	float *own; /* [slots x dim] what they were compared with: taken over; NULL: what is now */
	bool noisy; /* the rows, or the map that they came by */
};

/* Rows of a partner that wait to be merged, one session's of each. */
void learn_merge_add(struct agent_core *c, struct peer *p, struct conv *conv,
		     const struct merge_from *from);
void learn_merge_drop(struct agent_core *c, const struct peer *p); /* NULL: of all */
bool learn_merge_waits(struct agent_core *c); /* rows that the round under way may take in ... */
void learn_merge_next(struct agent_core *c);  /* ... a job, for those of one partner */
void learn_merge_done(struct agent_core *c, struct agent_job *job);
/* Some of those merged are in a frame that work may move to. */
bool learn_merge_may_move(const struct agent_core *c);
/* On the worker, once all are merged and judged: work moves, if it is to; did it? */
void learn_merge_rotate(struct agent_core *c);
bool learn_merge_moves(const struct agent_core *c);
void learn_merge_moved(struct agent_core *c);	/* on the loop, behind that: our frame is another */
void learn_merge_say_cut(struct agent_core *c); /* ... neighbours that were too long */
void learn_merge_over(struct agent_core *c);	/* the round is over */
void learn_merge_release(struct agent_core *c);

/* ---- history.c ---- */

int history_load(struct agent_core *c, const struct store_core *saved, struct err *e);
/* A partner has a part in what is about to be judged: the first time, the best tables are kept as
 * they are, and beside them, where pairs go on from others, those.  Before learn_accept(). */
void history_begin(struct agent_core *c, struct store_batch *b);
/* Of a session's training; before learn_accept(), after history_begin(). */
void history_gain(struct agent_core *c, double after, bool kept);
/* Epochs that were trained; adds to the batch what has changed. */
void history_count(struct agent_core *c, uint32_t epochs, struct store_batch *b);

/* ---- dp_charge.c ---- */

/* Charge what the training under way will take, or as many epochs of it as fit; then(c) once that
 * is on disk.  With none that fits, job_epochs is 0 and dp_over set. */
void dp_charge_training(struct agent_core *c, void (*then)(struct agent_core *c));
/* Is there an epoch left to charge for?  Of training that is not private: yes. */
bool dp_charge_left(const struct agent_core *c);
/* The first training can neither go on nor end: the owner has not said yet that nothing of it is
 * missing (fkge restore), or what there was to spend has left no tables. */
bool dp_charge_waits(const struct agent_core *c);
void dp_charge_over(struct agent_core *c); /* there is none: says so to the owner, once */

#endif
