/* dp/special_internal.h - the few special functions that the accountants need, accurate in their
 * tails.  Private to dp/. */
#ifndef DP_SPECIAL_INTERNAL_H
#define DP_SPECIAL_INTERNAL_H

#include <stdint.h>

/* ln(erfc(x) / 2), the log of a normal tail: accurate to its last digits on both sides. */
double dp_log_half_erfc(double x);
/* ln(1 - e^x) for x < 0. */
double dp_log1mexp(double x);
/* ln(e^x - 1) for x > 0. */
double dp_logexpm1(double x);
/* ln(e^x + e^y). */
double dp_logaddexp(double x, double y);
/* (1 + u)^a - 1 - a u for a >= 1, u >= -1, never negative: no cancellation for small u. */
double dp_pow_excess(double u, double a);

/* Binomial(n, p): the probability of exactly k, accurate for n up to 1e12 (Loader 2000). */
double dp_binomial_pmf(uint64_t k, uint64_t n, double p);
/* Pr[Binomial(n, p) >= k], by the continued fraction of the incomplete beta function. */
double dp_binomial_tail(uint64_t k, uint64_t n, double p);

#endif
