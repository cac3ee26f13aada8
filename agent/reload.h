/* agent/reload.h - agent.yaml read again by a running agent.
 *
 * Limits, times, budgets and the log (config_take_live()) count from where they are used next; all
 * other keys want the agent to start anew.  The file is taken whole or not at all. */
#ifndef AGENT_RELOAD_H
#define AGENT_RELOAD_H

#include <jansson.h>

#include "base/buf.h"
#include "config/config.h"
#include "graph/graph.h"

struct reload {
	struct buf text;	 /* the file as it is now, */
	struct config fresh;	 /* and what it says */
	json_t *changed, *waits; /* lists of {key, was, is}: taken at once; want a new start */
};

/* Reads the file, lets the graph decide where it says auto, and finds what differs.  ERR_USAGE: it
 * is wrong, or has other tables' model. */
MUST_CHECK int reload_read(struct reload *r, const struct config *now, const struct graph *g,
			   const char *path, struct err *e);
/* Takes what is live.  ERR_USAGE, and nothing is changed: beside the keys that wait, the new values
 * go against a rule. */
MUST_CHECK int reload_take(const struct reload *r, struct config *now, const char *path,
			   struct err *e);
void reload_release(struct reload *r);

#endif
