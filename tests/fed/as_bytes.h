/* tests/fed/as_bytes.h - messages of a round as bytes, decoded as their receiver would. */
#ifndef TESTS_FED_AS_BYTES_H
#define TESTS_FED_AS_BYTES_H

#include "fed/round.h"
#include "net/bodies.h"

static inline int proposal_of_bytes(struct fed_proposal *p, const uint8_t *bytes, size_t n,
				    struct err *e)
{
	struct net_message m;

	net_message_decode(&m, bytes, n, NULL);
	return fed_proposal_read(p, &m, e);
}

static inline void receive_bytes(struct fed_round *r, const uint8_t from[FED_KEY],
				 const uint8_t *bytes, size_t n, uint64_t now_ms)
{
	struct net_message m;

	net_message_decode(&m, bytes, n, NULL);
	fed_round_received(r, from, &m, now_ms);
}

static inline int join_bytes(struct fed_round **r, const struct fed_setup *s, const uint8_t *bytes,
			     size_t n, uint64_t now_ms, struct err *e)
{
	struct fed_proposal p;
	int rc = proposal_of_bytes(&p, bytes, n, e);

	*r = NULL;
	return rc == 0 ? fed_round_join(r, s, &p, now_ms, e) : rc;
}

#endif
