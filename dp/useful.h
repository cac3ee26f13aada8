/* dp/useful.h - what a budget buys: is it enough to learn anything from.
 *
 * A label is the vote's bit after a coin has flipped it with probability q (dp_label_against()
 * at the vote's gap).  About what the teachers say it tells at most
 *
 *   C = 1 - H(q),  H(q) = -q log2 q - (1-q) log2 (1-q)
 *
 * bits (Shannon 1948, the binary symmetric channel), so N labels are worth N C labels
 * without noise.  Two votes are looked at: a unanimous one, where C is as large as it gets,
 * and a typical one, on which three quarters of the teachers agree (gap T/2).
 *
 * "Useful" is held against what is to be learned from d numbers a row:
 *   nothing   fewer than d + 1 labels' worth, were every vote unanimous: a linear student
 *             in d dimensions can be fitted to any d + 1 labels whatever they say (its
 *             Vapnik-Chervonenkis dimension), so fewer say nothing about other rows
 *   little    enough for a direction, not for a map: typical votes are worth less
 *             than the d (d - 1) / 2 free numbers of an orthogonal map, a label each
 *   map       at least that
 *
 * All of it depends on mechanism, counts and sizes alone: public. */
#ifndef DP_USEFUL_H
#define DP_USEFUL_H

#include <stdint.h>

#include "dp/accountant.h"
#include "dp/mechanism.h"

/* Bits that one label tells about a vote with this gap. */
double dp_label_bits(const struct dp_mechanism *m, int64_t gap);
/* Half of the teachers, as near above as their number allows. */
int64_t dp_typical_gap(uint32_t teachers);

enum dp_worth { DP_WORTH_NOTHING, DP_WORTH_LITTLE, DP_WORTH_MAP };
const char *dp_worth_name(enum dp_worth w); /* "nothing", "little", "map" */

struct dp_useful {
	double unanimous_bits, typical_bits;   /* of one label */
	double unanimous_worth, typical_worth; /* of all labels, in labels without noise */
	double direction, map;		       /* labels without noise that either needs */
	enum dp_worth worth;
};

void dp_useful(const struct dp_mechanism *m, uint64_t labels, uint32_t dim, struct dp_useful *out);

/* The sigma, of the powers of 1.2 from 1 to 1760, at which a typical vote's labels within (eps,
 * delta) are worth most (or within 2 % of it, with fewer), for Gaussian noise judged by `exact`;
 * *labels: how many they are. */
double dp_useful_sigma(uint32_t teachers, double eps, double delta, uint64_t *labels);

/* A released map Y'Z of n unit rows has singular values of n / d at most, on average over
 * its directions; noise of z times the sensitivity 2 in each of d x d numbers has a
 * spectral norm of about 2 sqrt d times 2 z.  From how many rows on is the first at least
 * the second: 4 z d^1.5. */
double dp_useful_map_rows(double multiplier, uint32_t dim);

#endif
