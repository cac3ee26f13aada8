/* ppat/aggregate.c - translated rows into the host's table. */
#include "ppat/aggregate.h"

static float share_of(enum ppat_combine how, float agreement, unsigned earlier)
{
	switch (how) {
	case PPAT_REPLACE:
		return 1.0f;
	case PPAT_WEIGHTED:
		return agreement > 0.0f ? 0.5f * agreement : 0.0f;
	case PPAT_MEAN:
		return 1.0f / (float)(earlier + 2);
	case PPAT_AVERAGE:
		break;
	}
	return 0.5f;
}

void ppat_combine_row(float *y, const float *x, size_t dim, enum ppat_combine how, float agreement,
		      unsigned earlier)
{
	float w = share_of(how, agreement, earlier);
	for (size_t i = 0; i < dim; i++)
		y[i] = (1.0f - w) * y[i] + w * x[i];
}
