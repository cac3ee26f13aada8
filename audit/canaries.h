/* audit/canaries.h - audit C, canaries in one run (Steinke, Nasr, Jagielski 2023; methods 3.7).
 *
 * For releases of matrices, which are too dear to be made 100,000 times.  In one release
 * each of m rows is put in one of two neighbouring forms, by a fair coin.  An attacker who sees the
 * release guesses the coins of the rows about which it says most; how many of the guesses are right
 * bounds epsilon from below. */
#ifndef AUDIT_CANARIES_H
#define AUDIT_CANARIES_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "nn/linalg.h"

/* One release in which canary i has the form sign[i] (1 or -1); score[i] says how much it
 * speaks for 1 (above zero) or for -1.  0 or an error. */
typedef int audit_release_fn(void *ctx, const int8_t *sign, size_t m, double *score, struct err *e);

struct audit_canaries {
	uint64_t canaries, guesses, correct;
	double lower; /* of epsilon at delta */
};

/* m canaries, 16..65536, coins from `draw`.  `lower` is above the true epsilon with probability
 * at most p; delta < 1/(2m) leaves the bound something to say.  ERR_USAGE, or what release says. */
int audit_canaries(audit_release_fn *release, void *ctx, size_t m, double delta, double p,
		   struct nn_draw draw, struct audit_canaries *out, struct err *e);

#endif
