/* libFuzzer entry for rows in 16 bits a value (ppat/short_row.h): the first byte is how many values
 * a row has, then come rows.  As fuzz_msg.c. */
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "ppat/short_row.h"

enum { DIM_MAX = 64 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* What was taken is finite and, written again, says the same: to a part of its scale, and to what a
 * float tells apart. */
static void poke_row(const uint8_t *bytes, size_t dim)
{
	float row[DIM_MAX], again[DIM_MAX], scale = 0;
	uint8_t out[sizeof(float) + DIM_MAX * sizeof(int16_t)];

	if (ppat_short_get(bytes, dim, row, NULL) != 0)
		return;
	for (size_t i = 0; i < dim; i++)
		if (!isfinite(row[i]))
			abort();
		else
			scale = fmaxf(scale, fabsf(row[i]));
	ppat_short_put(row, dim, out);
	if (ppat_short_get(out, dim, again, NULL) != 0)
		abort();
	for (size_t i = 0; i < dim; i++)
		if (!(fabs((double)again[i] - (double)row[i]) <=
		      (double)scale * (1 / 65534.0 + (double)FLT_EPSILON) + (double)FLT_TRUE_MIN))
			abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	size_t dim = n > 0 ? 1 + bytes[0] % DIM_MAX : 1, each = ppat_short_bytes(dim);

	for (size_t at = 1; at + each <= n; at += each)
		poke_row(bytes + at, dim);
	return 0;
}
