/* agent/core/votes.h - how votes fell, for the host's eyes alone (methods 3.3; FKGE Eqs. 8-10).
 *
 * A label's public cost counts it at its worst.  How clear the votes were says what it has cost at
 * most, by the moments of PATE 2017 (Laplace) or by PATE 2018's Theorem 6 (Gaussian).  That figure
 * is a function of the host's rows: it decides nothing, and no message, entry, export or JSON has
 * it.  What it is computed from stays in the host's own store, as sums by order (dp/accountant.h),
 * under AGENT_META_VOTES; `fkge ledger show` shows it.
 *
 * Labels of a session that did not come to its settle, and of a store that has been forgotten
 * (fkge unlearn), count at their public cost. */
#ifndef AGENT_CORE_VOTES_H
#define AGENT_CORE_VOTES_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "dp/accountant.h"
#include "store/ledger/entry.h"

#define AGENT_META_VOTES "votes"

enum { AGENT_VOTES_MAX = 96 }; /* partners: 64 KiB; more are not noted */

/* Of all labels toward one partner, which have one mechanism (rule 4 of the ledger). */
struct agent_votes {
	uint8_t client[LEDGER_KEY];
	struct dp_mechanism mechanism;
	uint64_t voted;
	double noted[DP_ACCOUNT_ORDERS];
};

struct agent_votes_list {
	size_t n;
	struct agent_votes at[AGENT_VOTES_MAX];
};

/* ERR_STORE: damaged; the list is empty then. */
int agent_votes_read(struct agent_votes_list *v, const uint8_t *bytes, size_t n, struct err *e);
/* The account of votes toward this partner, as the ledger has it and with what is noted of it.
 * ERR_NOTFOUND: no votes were spent.  ERR_STORE: the two do not fit; nothing is noted then. */
int agent_votes_account(const struct agent_votes_list *v, const struct ledger_account *spent,
			const uint8_t client[LEDGER_KEY], struct dp_account *out);

#endif
