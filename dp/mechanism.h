/* dp/mechanism.h - one noisy binary vote (methods 3.2, 3.3).
 *
 * T teachers vote on a row; n1 say "real", n0 = T - n1 say "generated".  Noise is
 * added to both counts and the larger one gives the label, one bit.  The label that leaves the host
 * depends on the rows only through the gap g = n1 - n0, one of -T, -T+2, ..., T, and changing one
 * row of the host moves g by at most 2.
 *
 *   Laplace   param = lambda, noise of *scale* 1/lambda on each count:
 *             P(1 | g) = 1 - (2 + x) / (4 e^x), x = lambda g, for g >= 0
 *   Gaussian  param = sigma, noise of deviation sigma on each count:
 *             P(1 | g) = Phi(g / (sigma sqrt 2))
 *   and in both P(1 | -g) = 1 - P(1 | g).
 *
 * No noise is ever sampled: a label is a coin of exactly that probability, got by
 * comparing random 64-bit words with its binary digits.  So the low bits of a
 * floating-point Laplace draw cannot leak anything (Mironov 2012). */
#ifndef DP_MECHANISM_H
#define DP_MECHANISM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/secret.h"

enum dp_noise { DP_LAPLACE, DP_GAUSSIAN };

enum { DP_TEACHERS_MAX = 1000000 };

struct dp_mechanism {
	enum dp_noise noise;
	double param;	   /* lambda, or sigma; finite and > 0 */
	uint32_t teachers; /* all of them vote on every row */
};

/* ERR_USAGE naming the field and what is allowed: lambda in [1e-6, 20], sigma in
 * [1e-3, 1e9], 1..DP_TEACHERS_MAX teachers. */
MUST_CHECK int dp_mechanism_check(const struct dp_mechanism *m, struct err *e);

int dp_noise_find(const char *name, enum dp_noise *out); /* 0 or ERR_NOTFOUND */

/* P(label = 1 | gap), and the probability of the label that the votes speak against
 * (at most 1/2, exact to its last digits) with its logarithm (finite where the
 * probability itself would underflow).  Public functions of a vote: the *gap* is
 * the host's secret. */
double dp_label_one(const struct dp_mechanism *m, int64_t gap);
double dp_label_against(const struct dp_mechanism *m, int64_t gap);
double dp_label_log_against(const struct dp_mechanism *m, int64_t gap);

/* Draw one label for a row on which `ones` of the teachers say 1.  One 64-bit word,
 * and further ones only when a word ties (2^-64). */
bool dp_label_draw(const struct dp_mechanism *m, uint32_t ones, secret_draw_fn *draw, void *ctx);

#endif
