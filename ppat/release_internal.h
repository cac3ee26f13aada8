/* ppat/release_internal.h - the releases with noise: the host's map, or the client's rows
 * (methods 3.6).
 *
 * Both are whole numbers on a lattice (dp/lattice.h), so that their L2 sensitivity to one row
 * replaced is exact; the message has these numbers times a public constant.  The charge has been
 * granted before anything here is drawn. */
#ifndef PPAT_RELEASE_INTERNAL_H
#define PPAT_RELEASE_INTERNAL_H

#include "dp/lattice.h"
#include "ppat/machine_internal.h"

/* k rows as whole numbers; doubles hold them, and sums of products below 2^53, exactly.
 * whole and out have room for k x l->dim. */
void ppat_release_round(const struct dp_lattice *l, const float *rows, size_t k, int32_t *whole,
			double *out);
/* Counts the one release of the session, and draws it: out[i] = (x[i] + noise of variance
 * sigma2) * unit for n whole numbers x, which are wiped.  0, or ERR_CANCELED, and out is zero. */
MUST_CHECK int ppat_release_draw(struct ppat_side *s, double *x, size_t n, uint64_t sigma2,
				 double unit, float *out);

#endif
