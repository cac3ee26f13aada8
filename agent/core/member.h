/* agent/core/member.h - a member's record: who it is and where, signed by itself.
 *
 *   64 bytes   Ed25519 signature over "fkge member 1" and the rest
 *   the rest   msgpack map: k X25519 key, g Ed25519 key, n name, a address, t time
 *
 * Anyone may pass it on; nobody but its member can make or change it.  It says
 * nothing about who is whose partner: that is each owner's decision. */
#ifndef AGENT_CORE_MEMBER_H
#define AGENT_CORE_MEMBER_H

#include "base/buf.h"
#include "store/batch.h"

struct agent_member {
	uint8_t key[STORE_KEY], sign_key[STORE_KEY];
	char name[STORE_NAME_MAX];
	char address[STORE_ADDRESS_MAX];
	int64_t time_ms; /* of signing: of two records the younger one counts */
};

/* Appends the record; secret is the Ed25519 secret key, 64 bytes, of m->sign_key. */
void agent_member_sign(const struct agent_member *m, const uint8_t secret[64], struct buf *out);
/* ERR_PROTO, ERR_TOOBIG, or ERR_IDENTITY when the signature is not the member's. */
int agent_member_check(struct agent_member *m, const uint8_t *record, size_t n, struct err *e);

#endif
