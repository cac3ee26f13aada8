/* agent/core/member.h - what an agent signs of itself: that its two keys are one agent's, in HELLO,
 * and its record, who it is and where.
 *
 *   64 bytes   Ed25519 signature over "fkge member 1" and the rest
 *   the rest   msgpack map: k X25519 key, g Ed25519 key, n name, a address, t time
 *
 * Anyone may pass it on; nobody but the holder of its Ed25519 key can make or change it.  The
 * X25519 key in it may be another agent's, which has signed nothing: so whoever takes an agent for
 * a partner by its record hears from that agent itself, over a link, how it signs.  It says nothing
 * about who is whose partner: that is each owner's decision. */
#ifndef AGENT_CORE_MEMBER_H
#define AGENT_CORE_MEMBER_H

#include <stdbool.h>

#include "base/buf.h"
#include "store/batch.h"

struct agent_member {
	uint8_t key[STORE_KEY], sign_key[STORE_KEY];
	char name[STORE_NAME_MAX];
	char address[STORE_ADDRESS_MAX];
	int64_t time_ms; /* of signing: of two records the younger one counts */
};

/* A signature of the X25519 key.  Over a link, which proves that key, it shows that whoever holds
 * the one holds the other; without it anybody could name a key of somebody else's as the one that
 * it signs with. */
void agent_keys_sign(const uint8_t key[STORE_KEY], const uint8_t secret[64], uint8_t proof[64]);
bool agent_keys_signed(const uint8_t key[STORE_KEY], const uint8_t sign_key[STORE_KEY],
		       const uint8_t proof[64]);

/* Appends the record; secret is the Ed25519 secret key, 64 bytes, of m->sign_key. */
void agent_member_sign(const struct agent_member *m, const uint8_t secret[64], struct buf *out);
/* ERR_PROTO, ERR_TOOBIG, or ERR_IDENTITY when the signature is not the member's. */
int agent_member_check(struct agent_member *m, const uint8_t *record, size_t n, struct err *e);

#endif
