#include "ppat/short_row.h"

#include <assert.h>
#include <endian.h>
#include <math.h>
#include <string.h>

#include "ppat/machine_internal.h"

size_t ppat_short_bytes(size_t dim)
{
	return sizeof(float) + dim * sizeof(int16_t);
}

static float largest_value(const float *row, size_t dim)
{
	float most = 0;

	for (size_t i = 0; i < dim; i++)
		most = fmaxf(most, fabsf(row[i]));
	assert(isfinite(most));
	return most;
}

void ppat_short_put(const float *row, size_t dim, uint8_t *out)
{
	float scale = largest_value(row, dim);
	uint32_t bits;

	memcpy(&bits, &scale, sizeof(bits));
	bits = htole32(bits);
	memcpy(out, &bits, sizeof(bits));
	out += sizeof(bits);
	for (size_t i = 0; i < dim; i++) {
		double v = scale > 0 ? (double)row[i] / (double)scale : 0;
		uint16_t whole = htole16((uint16_t)(int16_t)lrint(SHORT_ROW_MAX * v));

		memcpy(out + i * sizeof(whole), &whole, sizeof(whole));
	}
}

int ppat_short_get(const uint8_t *in, size_t dim, float *row, struct err *e)
{
	uint32_t bits;
	float scale;

	memcpy(&bits, in, sizeof(bits));
	bits = le32toh(bits);
	memcpy(&scale, &bits, sizeof(scale));
	in += sizeof(bits);
	if (!(scale >= 0 && scale <= (float)PPAT_VALUE_MAX))
		return err_set(e, ERR_PROTO, "peer's row has a scale that is none or beyond %d",
			       (int)PPAT_VALUE_MAX);
	for (size_t i = 0; i < dim; i++) {
		uint16_t whole;
		int16_t value;

		memcpy(&whole, in + i * sizeof(whole), sizeof(whole));
		value = (int16_t)le16toh(whole);
		if (value < -SHORT_ROW_MAX)
			return err_set(e, ERR_PROTO, "peer's row has a value beyond its scale");
		row[i] = (float)((double)value * (double)scale / SHORT_ROW_MAX);
	}
	return 0;
}
