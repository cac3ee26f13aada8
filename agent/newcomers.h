/* agent/newcomers.h - keys that an invitation has let through and that are no partners so far.
 *
 *   link is up -> waits for HELLO -> joins: partner, use and secret in one transaction -> partner
 *                      |                               |
 *                      +-- a HELLO that can't be, none in time, no room: sent away, nothing used
 *
 * The invitation is used, and the key listed, in one transaction, and not before its HELLO says
 * that it can be a partner.  The core hears of it when that is on disk: so whoever was told
 * anything is on record as the one who has used the invitation.  Pure: the caller says what time it
 * is and acts. */
#ifndef AGENT_NEWCOMERS_H
#define AGENT_NEWCOMERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/message_queue.h"
#include "net/card.h"
#include "net/sizes.h"

enum {
	NEWCOMERS_MAX = 32,
	NEWCOMERS_OF_TICKET = 8, /* so that a leaked line does not keep others out */
	NEWCOMERS_HELLO_MS = 10000,
	NEWCOMERS_BYTES = 1 << 16, /* of one, while what makes it a partner is written */
};

struct newcomer {
	uint8_t key[NET_KEY_BYTES];
	struct net_greet_card card;
	uint64_t since_ms; /* its link is up */
	bool up;	   /* false: its link went down while it joins */
	bool joins;
	struct message_queue said; /* while it joins: HELLO, and what came after it */
};

struct newcomers { /* all zero: none */
	struct newcomer at[NEWCOMERS_MAX];
	size_t n;
};

void newcomers_release(struct newcomers *v);
/* NULL: it is none.  Good until the next one is added or removed. */
struct newcomer *newcomers_find(struct newcomers *v, const uint8_t key[NET_KEY_BYTES]);
/* Its link is up, again or for the first time; NULL: no room. */
struct newcomer *newcomers_up(struct newcomers *v, const uint8_t key[NET_KEY_BYTES],
			      const struct net_greet_card *card, uint64_t now_ms);
/* What it said while it joins, or its HELLO; false: it is too much. */
bool newcomers_keep(struct newcomer *x, const uint8_t *bytes, size_t n);
/* Takes it out, with what it said: for newcomers_let_go(). */
bool newcomers_take(struct newcomers *v, const uint8_t key[NET_KEY_BYTES], struct newcomer *out);
void newcomers_let_go(struct newcomer *x);
/* One that has said no HELLO in time, or NULL. */
struct newcomer *newcomers_late(struct newcomers *v, uint64_t now_ms);

#endif
