/* store/chain_internal.h - for the verifier, which goes on behind a fault. */
#ifndef STORE_CHAIN_INTERNAL_H
#define STORE_CHAIN_INTERNAL_H

#include "store/entry.h"

/* Take s, whatever it says, as countersigned, and believe its total from here
 * on.  Its two keys must be the chain's. */
void ledger_chain_force(struct ledger_chain *c, const struct ledger_signed *s);

#endif
