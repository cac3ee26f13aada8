/* cli/peers.h - peers of a stopped agent, straight from its store. */
#ifndef CLI_PEERS_H
#define CLI_PEERS_H

#include "agent/roster.h"
#include "store/store.h"

/* The key of a peer named by the owner: roster_resolve(), or a whole id that is not known yet. */
int cli_peer_key(struct store *s, const char *text, uint8_t key[STORE_KEY], struct err *e);

#endif
