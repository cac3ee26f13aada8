/* audit/accounts_internal.h - shared by audit/accounts*.c alone. */
#ifndef AUDIT_ACCOUNTS_INTERNAL_H
#define AUDIT_ACCOUNTS_INTERNAL_H

#include "audit/accounts.h"

#define ULL(x) ((unsigned long long)(x))

void accounts_hash(const struct accounts_export *x, const struct accounts_round *r,
		   uint8_t out[ACCOUNTS_HASH]);
void accounts_head_hash(const struct accounts_export *x, uint8_t out[ACCOUNTS_HASH]);

/* The traffic that the owner counts with a member, and the traffic that the member has signed. */
static inline struct fed_traffic accounts_counted(const struct store_round_member *m)
{
	return (struct fed_traffic){ m->rows_out, m->rows_in, m->floats_out, m->floats_in };
}

static inline struct fed_traffic accounts_signed(const struct store_round_member *m)
{
	return (struct fed_traffic){ m->their_rows_out, m->their_rows_in, m->their_floats_out,
				     m->their_floats_in };
}

#endif
