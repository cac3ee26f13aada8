/* agent/counting.h - how far counting comes on valid, for tables that an agent has at its start.
 *
 * The learner finds it beside its first look at valid (agent_learner_floor()), which an agent that
 * only goes on may never have.  This finds it at once, on a worker. */
#ifndef AGENT_COUNTING_H
#define AGENT_COUNTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <uv.h>

#include "agent/core/learner.h"
#include "config/settings.h"
#include "graph/graph.h"

struct counting {
	uv_work_t req;
	struct agent_learner_kge *learner; /* its own: the agent's has jobs */
	atomic_bool cancel;
	bool running; /* the loop's; while it is, the loop may not end */
	double mrr;   /* NAN: not known */
};

/* Not under private training, which does not look at valid.  c and g: borrowed while it runs. */
void counting_begin(struct counting *k, uv_loop_t *loop, const struct config *c,
		    const struct graph *g);
void counting_cancel(struct counting *k);

#endif
