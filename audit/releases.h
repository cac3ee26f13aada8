/* audit/releases.h - the two releases of matrices (methods 3.6), with canaries in them.
 *
 * Whole sessions as they ship.  Canary i is a row of length `clip`, or its opposite: no two
 * rows allowed are further apart, so what can be guessed is all that noise leaves of the
 * whole sensitivity.  The auditor reads what the partner has received. */
#ifndef AUDIT_RELEASES_H
#define AUDIT_RELEASES_H

#include "audit/canaries.h"
#include "ppat/session.h"

enum audit_what { AUDIT_MAP, AUDIT_ROWS };

/* The ctx of the two functions below.  The spender's noise comes from `draw`. */
struct audit_release {
	double multiplier; /* that the session is opened with */
	struct nn_draw draw;
	uint64_t times; /* so many sessions with the same canaries, whose scores add up; 0: 1 */
};

enum { AUDIT_RELEASE_DIM = 48, AUDIT_RELEASE_CANARIES = 2048 };

/* audit_release_fn: the host's map M = Y'Z + noise, read by the client, whose Z it knows;
 * canaries are rows of Y, one an entry of M: at most dim^2. */
int audit_release_map(void *ctx, const int8_t *sign, size_t m, double *score, struct err *e);
/* audit_release_fn: the client's noisy rows, read by a host that knows the rotation. */
int audit_release_rows(void *ctx, const int8_t *sign, size_t m, double *score, struct err *e);

#endif
