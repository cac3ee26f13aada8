/* tests/store/world.h - a few agents with keys, and the entries between them. */
#ifndef TESTS_STORE_WORLD_H
#define TESTS_STORE_WORLD_H

#include "store/identity.h"
#include "store/ledger/verify.h"

enum { WORLD_AGENTS = 3, WORLD_ENTRIES = 64 };

struct world {
	struct store_identity *id[WORLD_AGENTS];
	struct ledger_chain chain[WORLD_AGENTS];   /* [k]: between agent k and agent (k + 1) % 3 */
	struct ledger_signed entry[WORLD_ENTRIES]; /* all that were added, in order */
	size_t n;
	struct ledger_mechanism mechanism;
	struct ledger_caps caps;
	int64_t time_ms;
	bool countersign; /* new ones */
};

void world_init(struct world *w); /* Laplace .05, 4 teachers: caps of 154 and 308 or so labels */
void world_release(struct world *w);
struct ledger_chain *world_chain(struct world *w, int a, int b);
const uint8_t *world_key(const struct world *w, int agent);

/* Draft an entry of this kind by host toward client; session is one byte
 * repeated.  count: of labels; a settle discloses 10 rows of 80 floats. */
int world_draft(struct world *w, struct ledger_entry *e, enum ledger_kind kind, int host,
		int client, uint8_t session, uint64_t count, struct err *err);
/* Sign what stands in e, as world.countersign says, and append it without asking a rule. */
struct ledger_signed *world_append(struct world *w, const struct ledger_entry *e, int host,
				   int client);
/* Draft, sign, add to the chain; fails the test when a rule is broken. */
struct ledger_signed *world_add(struct world *w, enum ledger_kind kind, int host, int client,
				uint8_t session, uint64_t count);
struct ledger_party world_party(const struct world *w, int agent); /* "agent 0" */
/* All entries in which `owner` takes part, not signed as a whole; release it. */
struct ledger_export world_export(const struct world *w, int owner);
/* ... signed, with its partners' keys; of its pair with `peer` alone unless that is negative. */
struct ledger_export world_sealed(const struct world *w, int owner, int peer, const char *nonce);

#endif
