/* agent/alone.h - the arm without partners: from the tables of before them, as many epochs as the
 * federated ones have had since, on our own graph alone, judged by valid in the same way.
 *
 *   mode pairs   federation.epochs_per_round epochs, a look; better is kept, else the best rows
 *                come back (as agent/core/learn.c does after a session)
 *   mode rounds  rounds.eval_every times rounds.epochs epochs, a look; training goes on, the best
 *                is kept.  Whatever the method, this arm trains by the plain loss of `train`
 *
 * One unit of that at a time, on any thread; nothing here touches the store but alone_open().
 * Cancelled, a unit is undone.  After a restart it goes on from its best tables. */
#ifndef AGENT_ALONE_H
#define AGENT_ALONE_H

#include "agent/core/history.h"
#include "agent/core/learner.h"
#include "config/config.h"
#include "store/store.h"

struct alone;

/* The meta value that says how many epochs are done. */
#define ALONE_META "alone"

/* *out is NULL where no tables of before are kept, or agent.yaml has another model now.  Borrows
 * config and graph. */
int alone_open(struct alone **out, const struct config *c, const struct graph *g, struct store *s,
	       struct err *e);
void alone_free(struct alone *a);

/* ERR_CANCELED: as it was. */
int alone_unit(struct alone *a, uint64_t epochs, struct agent_job *job);
/* Adds the changes of the last unit to the batch. */
void alone_save(struct alone *a, int64_t wall_ms, struct store_batch *b);

uint64_t alone_epochs(const struct alone *a);
double alone_score(const struct alone *a); /* best on valid */

#endif
