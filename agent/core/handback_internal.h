/* agent/core/handback_internal.h - ledger entries that one of two partners has lost.  For
 * agent/core/ and its tests alone. */
#ifndef AGENT_CORE_HANDBACK_INTERNAL_H
#define AGENT_CORE_HANDBACK_INTERNAL_H

#include "agent/core/core.h"
#include "net/bodies.h"
#include "store/store.h"

struct agent_core;
struct peer;
struct session;

enum { HANDBACK_ENTRIES = 128, HANDBACK_BYTES = LEDGER_WIRE + LEDGER_SIGNATURE };

/* The partner has to hand back entries before anything is spent. */
bool handback_is_due(const struct agent_core *c, const struct peer *p);
/* Ask for what follows this entry; or for what follows the last one that both have signed. */
void handback_send_question(struct agent_core *c, struct peer *p, uint64_t from,
			    const uint8_t hash[32], uint32_t most);
void handback_ask(struct agent_core *c, struct peer *p);
int handback_load(struct agent_core *c, const struct store_core *saved, struct err *e);
void handback_start(struct agent_core *c); /* adds to at_start */
void handback_take_hello(struct peer *p, const struct net_hello *h);
void handback_greeted(struct agent_core *c, struct peer *p); /* asks, if there is a reason */
void handback_pull(struct agent_core *c, struct peer *p, const struct net_message *m);
void handback_back(struct agent_core *c, struct peer *p, const struct net_message *m);
void handback_entries(struct agent_core *c, const struct agent_event *e);
void handback_link_down(struct peer *p); /* or a new link begins */
/* Is this LEDGER_BACK the answer to a question of ours? */
bool handback_expects(const struct peer *p, const struct net_msg_head *h);
/* The partner's ledger and ours are not compared yet: no session with it. */
bool handback_waits(const struct agent_core *c, const struct peer *p);
/* Something may be missing from our ledgers: nothing of ours is spent toward anybody. */
bool handback_blocks(const struct agent_core *c);
/* As handback_blocks(), of the statements of private training. */
bool handback_blocks_training(const struct agent_core *c);
/* The heads in PROPOSE or ACCEPT show that one of the two lacks entries which both have signed, or
 * that the ledgers differ at their heads: what is done about it, in words.  0: nothing is wrong. */
int handback_heads(struct agent_core *c, struct peer *p, uint64_t sequence, uint32_t tail,
		   const uint8_t head[32], struct err *e);

#endif
