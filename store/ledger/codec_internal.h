/* store/ledger/codec_internal.h - little-endian fields of fixed size, for what the ledger signs
 * (private). */
#ifndef STORE_LEDGER_CODEC_INTERNAL_H
#define STORE_LEDGER_CODEC_INTERNAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "store/ledger/entry.h"

/* ---- writing: *at moves on ---- */

static inline void put_bytes(uint8_t **at, const void *from, size_t n)
{
	memcpy(*at, from, n);
	*at += n;
}

static inline void put_uint(uint8_t **at, uint64_t v, size_t bytes)
{
	for (size_t k = 0; k < bytes; k++)
		*(*at)++ = (uint8_t)(v >> (8 * k));
}

static inline void put_double(uint8_t **at, double v)
{
	uint64_t bits;

	memcpy(&bits, &v, sizeof(bits));
	put_uint(at, bits, 8);
}

/* ---- reading: the first bad field is kept, and reading goes on to the end ---- */

struct reader {
	const uint8_t *at;
	const char *bad; /* name of the first field that is wrong */
};

static inline uint64_t take_uint(struct reader *r, size_t bytes)
{
	uint64_t v = 0;

	for (size_t k = 0; k < bytes; k++)
		v |= (uint64_t)*r->at++ << (8 * k);
	return v;
}

static inline uint64_t take_max(struct reader *r, size_t bytes, uint64_t max, const char *field)
{
	uint64_t v = take_uint(r, bytes);

	if (v > max && r->bad == NULL)
		r->bad = field;
	return v > max ? 0 : v;
}

static inline uint64_t take_count(struct reader *r, const char *field)
{
	return take_max(r, 8, LEDGER_COUNT_MAX, field);
}

static inline double take_double(struct reader *r, const char *field)
{
	uint64_t bits = take_uint(r, 8);
	double v;

	memcpy(&v, &bits, sizeof(v));
	if (isfinite(v) && !signbit(v))
		return v;
	if (r->bad == NULL)
		r->bad = field;
	return 0;
}

static inline void take_bytes(struct reader *r, void *to, size_t n)
{
	memcpy(to, r->at, n);
	r->at += n;
}

#endif
