/* agent/invites.h - invitations that let their holder in (federation.accept: invited).
 *
 * Such a line carries a ticket, 16 random bytes, which its holder shows in the first message of a
 * handshake (net/greet.h).  The inviter keeps the ticket's hash, for how many keys and until when
 * it is good, and how many have used it: one key by default, for 30 days.  So a line that leaks
 * lets in no more than that, and `fkge invite --revoke` ends it.  A peer that joined keeps the
 * ticket and shows it at each dial: the peer may have to wait for the inviter.  Pure: the running
 * agent and a command beside a stopped one share it. */
#ifndef AGENT_INVITES_H
#define AGENT_INVITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "store/store.h"

enum {
	INVITES_MAX = 256, /* remembered; the oldest of those that are of no more use go */
	INVITES_USES_MAX = 256,
	INVITES_DAYS_MAX = 3650,
	INVITES_ID_TEXT = 9, /* eight hexadecimal digits and a NUL */
};

#define INVITES_DAY_MS INT64_C(86400000)

struct invites {
	struct store_invitation *made; /* oldest first */
	size_t n_made;
	struct store_ticket *held; /* of others, to show */
	size_t n_held;
};

/* Copies what is there; release with invites_release(). */
void invites_load(struct invites *v, const struct store_core *saved);
void invites_release(struct invites *v);

/* A new one: draws the ticket from the secure source.  The record, in the list from now on; NULL
 * when INVITES_MAX are still good. */
const struct store_invitation *invites_make(struct invites *v, uint32_t uses, int64_t now_ms,
					    int64_t until_ms, uint8_t ticket[STORE_TICKET]);
/* The invitation that this ticket is of, if it is good for one key more; else NULL. */
struct store_invitation *invites_good(const struct invites *v, const uint8_t ticket[STORE_TICKET],
				      int64_t now_ms);
/* By what the owner types: its id.  ERR_NOTFOUND. */
int invites_find(const struct invites *v, const char *id, struct store_invitation **out,
		 struct err *e);
void invites_id(const struct store_invitation *i, char out[INVITES_ID_TEXT]);
/* "good", "used up", "expired" or "revoked". */
const char *invites_state(const struct store_invitation *i, int64_t now_ms);

/* The ticket to show to this peer; NULL: none. */
const uint8_t *invites_ticket(const struct invites *v, const uint8_t peer[STORE_KEY]);
void invites_hold(struct invites *v, const struct store_ticket *t);

#endif
