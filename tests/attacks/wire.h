/* tests/attacks/wire.h - what the attacks share: rows off the wire, and how near they are. */
#ifndef TESTS_ATTACKS_WIRE_H
#define TESTS_ATTACKS_WIRE_H

#include "tests/test.h"

#include "audit/wire.h"
#include "base/mem.h"
#include "tests/ppat/pair.h"

/* Rows of all messages of one kind, in order; free .rows. */
static inline struct audit_matrix wire_rows_of(const struct buf *received, enum ppat_kind kind)
{
	struct audit_matrix m;
	struct err e = { 0 };
	assert_int_equal(audit_wire_rows(received, kind, &m, &e), 0);
	return m;
}

static inline double wire_dot(const float *a, const float *b, size_t d)
{
	double sum = 0;
	for (size_t i = 0; i < d; i++)
		sum += (double)a[i] * (double)b[i];
	return sum;
}

/* ||a - b|| / ||b||. */
static inline double wire_error(const float *a, const float *b, size_t n)
{
	double off = 0, all = 0;
	for (size_t i = 0; i < n; i++) {
		off += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
		all += (double)b[i] * (double)b[i];
	}
	return sqrt(off / all);
}

/* Share of pairs in which the first outscores the second; 1/2 is chance. */
static inline double wire_auc(const double *in, size_t n_in, const double *out, size_t n_out)
{
	double wins = 0;
	for (size_t i = 0; i < n_in; i++)
		for (size_t j = 0; j < n_out; j++)
			wins += in[i] > out[j] ? 1 : in[i] == out[j] ? 0.5 : 0;
	return wins / ((double)n_in * (double)n_out);
}

#endif
