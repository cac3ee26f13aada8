/* agent/alone.h - the arm without partners: from the tables of before them, as many epochs as the
 * federated ones have had since, on our own graph alone, by the rules of the federated ones.
 *
 *   mode pairs   as many epochs as a round had, a look (agent_history_unit()).  Under
 *                federation.after: keep the next unit goes on from what this one has left, under
 *                back from the best (latest.c, learn.c).  The optimizer begins anew at each under
 *                reset_optimizer
 *   mode rounds  rounds.eval_every times rounds.epochs epochs, a look; the next unit goes on.  The
 *                optimizer begins anew at each rounds.epochs.  Whatever the method, this arm trains
 *                by the plain loss of `train`
 *
 * The best on valid is kept beside that (STORE_ALONE), what it goes on from, too
 * (STORE_ALONE_LATEST).  So where partners bring nothing, both arms have the same tables, but for
 * what is drawn.
 *
 * One unit of that at a time, on any thread; nothing here touches the store but alone_open().
 * Cancelled, a unit is undone. */
#ifndef AGENT_ALONE_H
#define AGENT_ALONE_H

#include "agent/core/history.h"
#include "agent/core/learner.h"
#include "config/config.h"
#include "store/store.h"

struct alone;

/* *out is NULL where no tables of before are kept, or agent.yaml has another model now.  Borrows
 * config and graph. */
int alone_open(struct alone **out, const struct config *c, const struct graph *g, struct store *s,
	       struct err *e);
void alone_free(struct alone *a);

/* Why the arm that the store has was of no use, so that this one begins anew; NULL: it was, or
 * there was none. */
const char *alone_anew(const struct alone *a);
/* Of so many epochs, by agent_history_unit() at most.  Of the settings it reads those alone that do
 * not change under a running agent.  ERR_CANCELED: as it was. */
int alone_unit(struct alone *a, uint64_t epochs, struct agent_job *job);
/* Adds what the last unit has left to the batch. */
void alone_save(struct alone *a, int64_t wall_ms, struct store_batch *b);

uint64_t alone_epochs(const struct alone *a);
double alone_score(const struct alone *a); /* best on valid */

#endif
