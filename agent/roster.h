/* agent/roster.h - the peers an agent knows, and how an owner names one of them.
 *
 * Pure: the running agent and a command beside a stopped one share it, so that
 * `fkge peer accept` means the same in both. */
#ifndef AGENT_ROSTER_H
#define AGENT_ROSTER_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/batch.h"

enum { ROSTER_PENDING_MAX = 64 }; /* strangers that are remembered */

struct roster {
	struct store_peer *at;
	size_t n;
};

void roster_release(struct roster *r);
/* The peer with this key, or NULL.  Good until the next roster_put(). */
struct store_peer *roster_find(const struct roster *r, const uint8_t key[STORE_KEY]);
/* Add it, or replace the one with its key. */
struct store_peer *roster_put(struct roster *r, const struct store_peer *p);

/* What an owner typed: a whole id, its first characters (at least 4), or a name that one peer
 * alone has.  ERR_NOTFOUND, ERR_USAGE when several fit. */
int roster_resolve(const struct roster *r, const char *text, struct store_peer **out,
		   struct err *e);

/* The owner's decisions; each changes *p, or says why it means nothing here. */
enum roster_verb { ROSTER_ACCEPT, ROSTER_REJECT, ROSTER_REVOKE };
int roster_decide(struct store_peer *p, enum roster_verb verb, struct err *e);

/* A stranger knocked: a new pending entry, or NULL when it is known already or when too many wait.
 */
struct store_peer *roster_knock(struct roster *r, const uint8_t key[STORE_KEY], int64_t wall_ms);

size_t roster_listed(const struct roster *r);		 /* how many partners */
const char *roster_standing(const struct store_peer *p); /* "pending", "partner", ... */

#endif
