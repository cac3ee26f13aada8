/* store/ledger/chain_internal.h - for the other files of the ledger. */
#ifndef STORE_LEDGER_CHAIN_INTERNAL_H
#define STORE_LEDGER_CHAIN_INTERNAL_H

#include "store/ledger/entry.h"

/* The labels that this side has reserved in this session and not settled; NULL: none. */
struct ledger_open *ledger_chain_open(const struct ledger_chain *c, const uint8_t host[LEDGER_KEY],
				      const uint8_t session[16]);

/* Are they counted in one total?  All zero, of sessions without labels, stands for votes. */
bool ledger_counts_with(const struct ledger_mechanism *a, const struct ledger_mechanism *b);
/* A reserve of e under an account that has spent at several prices: ERR_BUDGET. */
MUST_CHECK int ledger_pair_check(const struct ledger_account *a, const struct ledger_entry *e,
				 struct err *err);

/* Add to l what an entry that ledger_lineage_check() has passed changes; c as it is before e. */
void ledger_lineage_take(struct ledger_lineage *l, const struct ledger_chain *c,
			 const struct ledger_entry *e);

/* For the verifier, which goes on behind a fault.  Take s, whatever it says, as countersigned, and
 * believe its total from here on.  Its two keys must be the chain's. */
void ledger_chain_force(struct ledger_chain *c, const struct ledger_signed *s);

/* Is this a signature of text (n bytes) by `first` or a key that followed it, by none older than
 * what was used?  Raises k->used.  ERR_LEDGER: "entry 3: bad signature of the host" of what,
 * sequence and whose. */
MUST_CHECK int ledger_keys_check(struct ledger_keys *k, const uint8_t signature[LEDGER_SIGNATURE],
				 const uint8_t *text, size_t n, const uint8_t first[LEDGER_KEY],
				 const char *what, uint64_t sequence, const char *whose,
				 struct err *err);

#endif
