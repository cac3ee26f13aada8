/* agent/accounts_internal.h - shared by agent/accounts*.c alone. */
#ifndef AGENT_ACCOUNTS_INTERNAL_H
#define AGENT_ACCOUNTS_INTERNAL_H

#include "agent/accounts.h"

#define ULL(x) ((unsigned long long)(x))

void accounts_hash(const struct accounts_export *x, const struct accounts_round *r,
		   uint8_t out[ACCOUNTS_HASH]);
void accounts_head_hash(const struct accounts_export *x, uint8_t out[ACCOUNTS_HASH]);

/* What the owner counts of a member, and what that one has signed. */
static inline struct fed_traffic accounts_counted(const struct store_round_member *m)
{
	return (struct fed_traffic){ m->rows_out, m->rows_in, m->floats_out, m->floats_in };
}

static inline struct fed_traffic accounts_said(const struct store_round_member *m)
{
	return (struct fed_traffic){ m->said_rows_out, m->said_rows_in, m->said_floats_out,
				     m->said_floats_in };
}

#endif
