/* agent/admin.h - what an owner decides about peers, running agent or not.
 *
 * A request is a JSON object {"do": "accept", "peer": "acme"}; the answer's
 * members are put into `reply`.  A running agent takes requests from its
 * control socket; beside a stopped one the command runs admin_run() itself.
 *
 *   peers    -                      every peer with standing, id, name, address
 *   accept   peer [known]           make it a partner; a whole id may be unknown so far, but with
 *                                   known: true
 *   reject   peer [known]
 *   revoke   peer
 *   trust    peer                   out of quarantine
 *   forget   peer                   nothing of it is kept; no partner, nobody on the ledger
 *   invite   [address] [guest] [uses] [days]   one line for `fkge join`
 *   invitations  -                  those that let their holder in, and what has become of them
 *   uninvite id                     that one lets nobody in any more
 *   join     line [replace]         the inviter becomes a partner of ours; replace: and its
 *                                   federation's secret takes the place of ours
 */
#ifndef AGENT_ADMIN_H
#define AGENT_ADMIN_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "agent/folder.h"
#include "agent/invites.h"
#include "agent/roster.h"
#include "net/ident.h"

struct admin {
	const struct folder *folder; /* with config and identity */
	struct roster *roster;
	struct invites *invites;
	/* What partners' rows have come to, as it is on disk. */
	const struct store_judgement *judgements;
	size_t n_judgements;
	int64_t now_ms; /* since 1970 */
	uint16_t port;	/* that a running agent listens on; 0: not running */
	bool running;
	bool has_psk; /* of a running agent: the secret its links use */
	const uint8_t *psk;
	/* Without a running agent: the secret that a line has brought, to be written when all else
	 * is, so that a line which is refused after all takes no other federation's secret away. */
	bool brought_psk;
	uint8_t new_psk[32];
	void *ctx;
	/* Would a running core list it?  NULL: none runs. */
	int (*may_list)(void *ctx, const struct store_peer *p, struct err *e);
	/* *p, which is in the roster, has changed: make it durable and let it act.  before: as it
	 * was there; NULL: it was not. */
	int (*changed)(void *ctx, const struct store_peer *p, const struct store_peer *before,
		       struct err *e);
	/* *p is to leave the roster: the same. */
	int (*forgotten)(void *ctx, const struct store_peer *p, struct err *e);
	/* *j, a partner's, is as at first from now on: the same. */
	int (*trusted)(void *ctx, const struct store_judgement *j, struct err *e);
	/* The batch is to be written: taken over.  Its contents stand in invites already. */
	int (*keep)(void *ctx, struct store_batch *b, struct err *e);
	void (*ticket_held)(void *ctx, const struct store_ticket *t); /* may be NULL */
};

/* Is it one of the requests above? */
bool admin_knows(const json_t *request);
/* ... that changes nothing, so that a store opened for reading does? */
bool admin_only_reads(const json_t *request);
/* 0, or an error that left everything as it was. */
int admin_run(struct admin *a, const json_t *request, json_t *reply, struct err *e);

/* The public data of this agent: keys and name, into a zeroed *v. */
void admin_card(const struct folder *f, struct net_invite *v);

/* What of it there is to say. */
void admin_put_judgement(json_t *peer, const struct store_judgement *j);
json_t *admin_peer_json(const struct store_peer *p);

#endif
