/* agent/core/votes_internal.h - what the core notes of votes (agent/core/votes.h). */
#ifndef AGENT_CORE_VOTES_INTERNAL_H
#define AGENT_CORE_VOTES_INTERNAL_H

#include "agent/core/votes.h"
#include "ppat/session.h"
#include "store/store.h"

struct agent_core;

/* ERR_STORE: damaged. */
int votes_load(struct agent_core *c, const struct store_core *saved, struct err *e);
void votes_release(struct agent_core *c); /* wipes them */
/* Of a session that settles now, as host: its votes go to disk with the next commit.  Of other
 * translators nothing is noted. */
void votes_note(struct agent_core *c, const uint8_t client[LEDGER_KEY],
		const struct ledger_account *spent, const struct ppat_result *r);

#endif
