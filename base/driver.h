/* base/driver.h - two conversations mouth to mouth, without socket, thread or disk.
 *
 * Grants every request of both sides in turn until both are over or neither can
 * go on (one of them failed, and the other waits for a message that never
 * comes).  Works for any pair of struct conv; for tests, and for the audit, which
 * reads what each side has received. */
#ifndef BASE_DRIVER_H
#define BASE_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/conv.h"

enum { DRIVER_SIDES = 2 };

struct driver {
	/* ---- set before driver_run(); all zero: grant everything ---- */
	size_t fail_grant; /* the k-th grant (from 1) gets fail_status instead; 0: none */
	int fail_status;
	uint32_t label_cap;	   /* labels the ledger grants in all; 0: no limit */
	const atomic_bool *cancel; /* of all work */
	/* May change a message on its way; `to` is the receiver's side, 0 or 1. */
	void (*mutate)(void *ctx, int to, uint8_t *kind, struct buf *body);
	void *ctx;

	/* ---- what was seen ---- */
	size_t grants, messages[DRIVER_SIDES], charges;
	uint32_t labels;		   /* granted by the ledger */
	struct buf received[DRIVER_SIDES]; /* kind, length and body of all messages, in order */
	bool both_over;
	bool failed; /* the k-th grant was reached */
};

/* Runs until both are over or stuck.  The conversations stay the caller's. */
void driver_run(struct driver *d, struct conv *a, struct conv *b);
void driver_release(struct driver *d);

#endif
