/* ppat/scale.h - bringing rows to a common size and back (config.scale, center).
 *
 * fit() looks at all rows; apply() may then be used on other rows of the same
 * side (virtual neighbours); undo() moves translated rows to the size and place
 * of the fitted ones.  A value: release it. */
#ifndef PPAT_SCALE_H
#define PPAT_SCALE_H

#include <stddef.h>

#include "ppat/config.h"

struct ppat_scaling {
	enum ppat_scale kind;
	size_t dim;
	float *mean;   /* [dim]; zero unless centred */
	double length; /* UNIT: mean row length; RMS: root mean square length; NONE: 1 */
};

void ppat_scaling_fit(struct ppat_scaling *s, const struct ppat_config *c, const float *rows,
		      size_t n, size_t dim);
void ppat_scaling_release(struct ppat_scaling *s);
void ppat_scaling_apply(const struct ppat_scaling *s, float *rows, size_t n);
void ppat_scaling_undo(const struct ppat_scaling *s, float *rows, size_t n);

#endif
