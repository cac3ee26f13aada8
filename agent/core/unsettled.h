/* agent/core/unsettled.h - rows of ours that hosts may have had without an entry that says so.
 *
 * Rows sent are counted by the host's settle entry.  A host that breaks off before has them, and
 * the chain has its reserve alone, in which no number of rows stands.  So the client counts them
 * itself, under AGENT_META_UNSETTLED: by account, so they outlast a partner's keys and its
 * standing.  No partner signs this count, no export has it; `fkge ledger show` does.
 *
 * What a session may have taken waits for its settle, which may come with the next session; where
 * it never does, or settles less, the rest stays for good. */
#ifndef AGENT_CORE_UNSETTLED_H
#define AGENT_CORE_UNSETTLED_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/ledger/entry.h"

#define AGENT_META_UNSETTLED "unsettled"

enum { AGENT_UNSETTLED_MAX = 768 }; /* hosts: less than 64 KiB; of more nothing is counted */

/* Of one host; as it is on disk. */
struct agent_unsettled {
	uint8_t host[LEDGER_KEY];
	uint8_t session[16];
	uint64_t rows;	/* of this session at most, while the chain has it open */
	uint64_t exact; /* 1: counted; 0: a crash took the count, and it is all that could go */
	uint64_t lost;	/* of those before */
};

struct agent_unsettled_list {
	size_t n;
	struct agent_unsettled at[AGENT_UNSETTLED_MAX];
};

/* ERR_STORE: damaged; the list is empty then. */
MUST_CHECK int agent_unsettled_read(struct agent_unsettled_list *u, const uint8_t *bytes, size_t n,
				    struct err *e);
/* As many rows as this host may have had beside those of its settles, by our chain with it. */
uint64_t agent_unsettled_rows(const struct agent_unsettled_list *u, const struct ledger_chain *c,
			      const uint8_t host[LEDGER_KEY]);

#endif
