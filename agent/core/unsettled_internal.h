/* agent/core/unsettled_internal.h - what the core counts of rows that are not settled. */
#ifndef AGENT_CORE_UNSETTLED_INTERNAL_H
#define AGENT_CORE_UNSETTLED_INTERNAL_H

#include "agent/core/unsettled.h"
#include "store/store.h"

struct agent_core;
struct peer;

/* ERR_STORE: damaged. */
MUST_CHECK int unsettled_load(struct agent_core *c, const struct store_core *saved, struct err *e);
/* A session that p hosted is over, and the chain has it open, or nothing is noted; into the batch
 * that says so.  exact: `rows` were counted, and are not only all that could go. */
void unsettled_note(struct agent_core *c, const struct peer *p, const uint8_t session[16],
		    uint64_t rows, bool exact, struct store_batch *b);
/* p settles one late: into the batch that has the entry. */
void unsettled_settle(struct agent_core *c, const struct peer *p, const struct ledger_entry *settle,
		      struct store_batch *b);

#endif
