/* net/greet.h - the first bytes of a link, each way, up to the first sealed frame.
 *
 *   dialler -> acceptor, 128 bytes           acceptor -> dialler, 56 or 8 bytes
 *     0   4  "FKGE"                            0   4  "FKGE"
 *     4   2  version, big-endian               4   2  its version, big-endian
 *     6   1  0                                 6   1  enum net_greet_status
 *     7   1  0                                 7   1  0
 *     8 120  Noise message 1                   8  48  Noise message 2, if GREET_OK
 *
 * The first 8 bytes are plain, so that another version is named instead of
 * failing in a seal; a liar on the wire can do with them what cutting the wire
 * does, no more: the version stands in the prologue as well, and with it a
 * digest of the federation's secret, so that another federation's is told at
 * message 1.  Message 1 seals a card for the acceptor's eyes; message 2 is
 * empty.  Message 1 can be replayed: the acceptor believes its key only after
 * the first sealed frame.
 *
 * Always Noise IKpsk2.  Its shared secret is made of the federation's and of
 * the pair's, which two agents have of an invitation (agent/invites.h); either
 * may be missing.  The card names the pair's.  Recorded sessions stay closed to
 * who breaks X25519 later but has neither secret.  Pure; entropy is injected. */
#ifndef NET_GREET_H
#define NET_GREET_H

#include <stdint.h>

#include "net/card.h"
#include "net/noise.h"
#include "net/sizes.h"

enum {
	GREET_HEAD = 8,
	GREET_CARD = NET_TICKET_BYTES + NET_PAIR_ID,
	GREET_ACT1 = NOISE_DH + (NOISE_DH + NOISE_TAG) + GREET_CARD + NOISE_TAG,
	GREET_ACT2 = NOISE_DH + NOISE_TAG,
	GREET_ASK = GREET_HEAD + GREET_ACT1,
	GREET_ANSWER = GREET_HEAD + GREET_ACT2,
};

enum net_greet_status {
	GREET_OK = 0,
	GREET_VERSION = 1,  /* another version: the one in this head is spoken here */
	GREET_REFUSED = 2,  /* the key is not on the list */
	GREET_UNOPENED = 3, /* message 1 does not open: another key or secret is meant */
	GREET_BUSY = 4,
	GREET_PAIR = 5, /* the pair's secret is not the one meant */
};

struct net_greet_keys {
	const uint8_t *secret; /* our X25519 secret key */
	const uint8_t *psk;    /* the federation's secret, or NULL */
	uint16_t version;
};

/* A digest; the secret is 32 random bytes. */
void net_greet_pair_id(const uint8_t pair[NET_PAIR_SECRET], uint8_t id[NET_PAIR_ID]);

/* The dialler's 128 bytes.  pair NULL: the two have no secret. */
MUST_CHECK int net_greet_ask(struct net_noise *hs, const struct net_greet_keys *keys,
			     const uint8_t their_key[NOISE_DH],
			     const uint8_t ticket[NET_TICKET_BYTES],
			     const uint8_t pair[NET_PAIR_SECRET], uint8_t out[GREET_ASK]);
/* The head of the other side: ERR_PROTO (no fkge), ERR_VERSION (*version says which), 0. */
MUST_CHECK int net_greet_head(const uint8_t in[GREET_HEAD], uint16_t mine, uint16_t *version,
			      uint8_t *status);
/* A refusal: 8 bytes. */
void net_greet_refuse(enum net_greet_status status, uint16_t version, uint8_t out[GREET_HEAD]);
/* The acceptor reads message 1; then net_noise_remote(hs) is who it claims to be. */
MUST_CHECK int net_greet_hear(struct net_noise *hs, const struct net_greet_keys *keys,
			      const uint8_t in[GREET_ACT1], struct net_greet_card *card);
/* The acceptor's 56 bytes, with the secret that the card names or NULL; hs is ready to split. */
MUST_CHECK int net_greet_answer(struct net_noise *hs, const struct net_greet_keys *keys,
				const uint8_t pair[NET_PAIR_SECRET], uint8_t out[GREET_ANSWER]);
/* The dialler reads message 2; hs is ready to split. */
MUST_CHECK int net_greet_finish(struct net_noise *hs, const uint8_t in[GREET_ACT2]);

#endif
