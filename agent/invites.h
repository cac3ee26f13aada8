/* agent/invites.h - invitations that let their holder in (federation.accept: invited).
 *
 * Such a line carries a ticket, 16 random bytes, which its holder shows in the first message of a
 * handshake (net/greet.h).  The inviter keeps the ticket's hash, for how many keys and until when
 * it is good, and how many have used it: one key by default, for 30 days.  So a line that leaks
 * lets in no more than that, and `fkge invite --revoke` ends it.  A key has used it once its HELLO
 * was taken and it is a partner (agent/newcomers.h).  A peer that joined keeps the
 * ticket and shows it at each dial: the peer may have to wait for the inviter.
 *
 * Every line carries a seed as well, 32 random bytes.  With both keys it makes the pair's secret,
 * which goes into the handshake (net/greet.h).  Who joins keeps the secret; the inviter keeps the
 * newest STORE_SEEDS seeds, and knows by the handshake's card which of them is meant.  Once a link
 * was opened with a secret it is proven: from then on no link of the pair goes without one, and
 * lines made before that one's do not count for it.  A new invitation is the way out when a side
 * has lost it.  Holders of one line that is good for several keys know its seed, and so each
 * other's secrets with the inviter.
 *
 * Pure: the running agent and a command beside a stopped one share it. */
#ifndef AGENT_INVITES_H
#define AGENT_INVITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "net/sizes.h"
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
	struct store_seed *seeds; /* of lines made here; oldest first, at most STORE_SEEDS */
	size_t n_seeds;
	struct store_pair *pairs; /* at most two a peer: proven, and of a line joined since */
	size_t n_pairs;
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
/* All that are saved are revoked; how many were not yet. */
size_t invites_revoke_all(const struct store_core *saved, struct store_batch *b);
/* By what the owner types: its id.  ERR_NOTFOUND. */
int invites_find(const struct invites *v, const char *id, struct store_invitation **out,
		 struct err *e);
void invites_id(const struct store_invitation *i, char out[INVITES_ID_TEXT]);
/* That of the invitation whose line carries this ticket. */
void invites_ticket_id(const uint8_t ticket[STORE_TICKET], char out[INVITES_ID_TEXT]);
/* "good", "used up", "expired" or "revoked". */
const char *invites_state(const struct store_invitation *i, int64_t now_ms);

/* The ticket to show to this peer; NULL: none. */
const uint8_t *invites_ticket(const struct invites *v, const uint8_t peer[STORE_KEY]);
void invites_hold(struct invites *v, const struct store_ticket *t);

/* ---- secrets of pairs ---- */

/* A new seed, for a line: from the secure source, in the list from now on. */
void invites_seed(struct invites *v, int64_t now_ms, struct store_seed *out);
/* Joined by a line with this seed, which that peer made; own: our key.  *out: what to keep. */
void invites_join(struct invites *v, const uint8_t own[STORE_KEY], const uint8_t peer[STORE_KEY],
		  const uint8_t seed[STORE_PAIR], struct store_pair *out);
/* The secret to dial this peer with: of the line joined last, else the proven one; NULL: none. */
const uint8_t *invites_dial(const struct invites *v, const uint8_t peer[STORE_KEY]);
/* The secret that a peer's card names, into out; false: none that is known here. */
bool invites_named(const struct invites *v, const uint8_t own[STORE_KEY],
		   const uint8_t peer[STORE_KEY], const uint8_t id[NET_PAIR_ID],
		   uint8_t out[STORE_PAIR]);
/* Is there a proven secret, so that no link may go without one? */
bool invites_proven(const struct invites *v, const uint8_t peer[STORE_KEY]);
/* A link is up that the named secret has opened.  True: it was not proven before; keep *out. */
bool invites_prove(struct invites *v, const uint8_t own[STORE_KEY], const uint8_t peer[STORE_KEY],
		   const uint8_t id[NET_PAIR_ID], struct store_pair *out);
/* The peer is forgotten: its secrets go. */
void invites_unpair(struct invites *v, const uint8_t peer[STORE_KEY]);

#endif
