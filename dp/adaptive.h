/* dp/adaptive.h - the most that many noisy votes tell, however their gaps are chosen (methods 3.3).
 *
 * An accountant that counts labels does not know how the votes fall.  So the worst is taken over
 * all attackers that could choose the gap of each vote after seeing the labels before it: with
 * alpha = e^epsilon, and P, Q the coins of one vote at two neighbouring gaps,
 *
 *   H_0(alpha) = max(0, 1 - alpha)
 *   H_n(alpha) = max over P, Q of  sum_o P(o) H_(n-1)(alpha Q(o) / P(o))
 *
 * is the least delta of n labels at epsilon: the hockey-stick divergence between the two
 * data sets (Balle, Barthe, Gaboardi 2018), worst over every such strategy.  One set
 * of pairs serves both directions, for the gaps (g, g - 2) and (2 - g, -g) mirror each other.
 * dp_game_*() computes it as written, on a grid of ln alpha.  H_n is convex, so a chord
 * between two points of the grid is never below it: every rounding is upwards.
 *
 * That takes labels x grid x teachers steps.  dp_votes_variance() costs little whatever the
 * count.  Let G(v) be the Gaussian pair N(v/2, v), N(-v/2, v) of losses, composed of which G(u) is
 * G(u + v).  If for one c and v and every pair of gaps
 *
 *   one vote, and G(c), is nowhere above G(c + v)                                         (*)
 *
 * then n votes however chosen are nowhere above G(c + n v): by induction, for composing
 * both sides of (*) with another Gaussian keeps it, and votes with nothing beside them
 * are below votes with G(c).  The c, once, pays for a vote's coin not being round.  (*) is
 * checked on a grid: both sides are convex in alpha, so a chord bounds the left one
 * from above between two points, and tangents bound the right one from below.
 *
 * Pure: no disk, no clock, no randomness.  Both are upper bounds at every grid. */
#ifndef DP_ADAPTIVE_H
#define DP_ADAPTIVE_H

#include <stdint.h>

#include "dp/mechanism.h"

/* More teachers have no bound here. */
enum { DP_ADAPTIVE_TEACHERS = 4096 };

/* ---- as written ---- */

struct dp_game;

/* For up to `labels` labels, read at epsilons up to `reach`.  NULL where it would take more than
 * DP_GAME_WORK steps, or the mechanism is out of range. */
#define DP_GAME_WORK 1.5e8
struct dp_game *dp_game_new(const struct dp_mechanism *m, uint64_t labels, double reach);
void dp_game_free(struct dp_game *g);
/* Points of its grid.  Beside a Gaussian each probe asks for as many erfc, and an epsilon for some
 * twenty probes: 40 ms for DP_GAME_BESIDE points. */
#define DP_GAME_BESIDE ((size_t)1 << 16)
size_t dp_game_points(const struct dp_game *g);
void dp_game_label(struct dp_game *g); /* one label more */
/* Of the labels so far, and of G(gaussian) beside them, before, after or in between. */
double dp_game_delta(const struct dp_game *g, double gaussian, double epsilon);
/* The least epsilon with this delta, up to the grid; +infinity if it is beyond `reach`. */
double dp_game_epsilon(const struct dp_game *g, double gaussian, double delta);

/* ---- as a Gaussian ---- */

#define DP_VOTES_SLACK 3e-14 /* of delta, a label: (*) is checked no finer than that */

struct dp_votes_bound {
	double variance; /* v of (*); +infinity: none was found */
	double slack;	 /* DP_VOTES_SLACK */
};

/* The variance of a vote's loss, largest over gaps: of which c and v are multiples. */
double dp_votes_loss(const struct dp_mechanism *m);
struct dp_votes_bound dp_votes_variance(const struct dp_mechanism *m, double c);

/* delta of G(variance) at epsilon; 0 for no variance and epsilon >= 0. */
double dp_gaussian_pair(double variance, double epsilon);

#endif
