/* ppat/short_row.h - rows in 16 bits a value.
 *
 * A row is its scale, the size of its largest value as float32, and for each value v the whole
 * number nearest to 32767 v / scale, as int16, all little-endian: what comes out differs from v by
 * scale / 65534 at most, which is far below what one epoch moves a row.  A row of zeros has scale
 * 0. */
#ifndef PPAT_SHORT_ROW_H
#define PPAT_SHORT_ROW_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum { SHORT_ROW_MAX = INT16_MAX };

size_t ppat_short_bytes(size_t dim);

/* row: dim finite values; out: ppat_short_bytes(dim). */
void ppat_short_put(const float *row, size_t dim, uint8_t *out);

/* in: ppat_short_bytes(dim).  ERR_PROTO: a scale that is none or beyond PPAT_VALUE_MAX, or a value
 * beyond its row's scale. */
int ppat_short_get(const uint8_t *in, size_t dim, float *row, struct err *e);

#endif
