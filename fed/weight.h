/* fed/weight.h - how much of what partners brought a member takes in: so much as its valid says.
 *
 *   table = own + w (merged - own)    own: before averaging, merged: after it; w in 0, 1/4 ... 1
 *
 * A mean over graphs that have little to do with each other costs both (FB15k-237-C3); where they
 * have much, w is 1 and this is the method as it is.  The best of five tables on valid, for each
 * member by itself and again at each look, is above both everything and nothing
 * (docs/results/joining.md).  The papers have no such weight; nothing of it is sent.
 *
 * Tables that are new to each other are disturbed by any mean: valid falls to a third at the first,
 * and rises above what was before within a few (FB15k-237-R5).  Who then takes nothing in stays
 * apart, and each later look says the same.  So a member takes all in for its first rounds, and
 * valid decides from there on; in pairs at once where all came with noise, which does not pass.
 * Where graphs have nothing in common those rounds cost; so a copy that has trained alone meanwhile
 * is in the choice, too, in the first round that has one.
 *
 * A mean of many graphs learns more slowly at first, and may end higher (FB15k-237-R10): so a copy
 * that is ahead is not taken while all that came catches up with it, and the choice is made again
 * later: where, at the pace since it was last measured, the gap would close before twice as many
 * rounds are gone as went before the first choice.  The copy trains on meanwhile.  Where rounds may
 * end before a choice, the copy is what is kept if all of valid says so, and the choice stays open
 * (agent/core/rounds_compare.c).
 *
 * What comes between two looks may be another thing than what came at them: who hurts was left out
 * there (fed/judge.h), and an attacker may be honest there.  Four such rounds took a member from
 * .18 to .03 on valid (docs/results/joining.md).  So from the first choice on each is checked. */
#ifndef FED_WEIGHT_H
#define FED_WEIGHT_H

#include <stdbool.h>

#include "kge/model.h"

enum { FED_WEIGHTS = 5 };

struct fed_weighed {
	double score[FED_WEIGHTS]; /* means, of the weights 0, 1/4 ... 1 */
	double weight;		   /* 0 with takes_alone */
	double alone_score;	   /* NAN: there was no such table */
	bool takes_alone;	   /* the table trained alone, none of these */
	bool waits;		   /* it was ahead, but not for long, or nothing came: weight 1 */
	bool refused;		   /* by fed_weight_check() */
};

enum { FED_WEIGHT_WAITS_MAX = 4 }; /* choices; then one is made */

/* What a member remembers of the copy while it may be chosen. */
struct fed_weight_copy {
	double ahead;	/* of all that came, when it was last measured; 0: it was not */
	uint32_t waits; /* choices that it was left out of so far, of one after another; 0: none */
};

/* What these tables make of each of some units (reciprocal ranks of valid triples), the same ones
 * every time: *each has *n values and is freed by who asked.  0, or what ends the choice. */
typedef int (*fed_weight_score)(void *ctx, const struct kge_emb *m, double **each, size_t *n);

/* Is the weight chosen anew after a member's round of this number, from 1, of its own?  In round
 * `from`, and at each look after it; before, all is taken in. */
bool fed_weight_decides(uint64_t round, uint32_t from, bool is_look);
/* Is the copy only measured in this round?  Half way to the choice, where that is no first round.
 */
bool fed_weight_measures(uint64_t round, uint32_t from);
/* Is a round that brings no choice checked?  Not while the copy waits: all is taken in. */
bool fed_weight_checks(uint64_t round, uint32_t from, const struct fed_weight_copy *copy);
/* With a copy that waits: is it chosen about again?  After half as many rounds as to the first
 * choice, at least one, and so on. */
bool fed_weight_asks_again(uint64_t round, uint32_t from);
/* Tables of one shape.  Weight 1 leaves merged as it is, 0 makes it own, bit for bit. */
void fed_weight_mix(struct kge_emb *merged, const struct kge_emb *own, double weight);
/* Scores five tables between the two, which stay as they are.  The weight is that of the best mean
 * among those that are above nothing at all (0) by more than the standard error of the difference,
 * so that few triples do not decide by chance; 0 where there is none.  Without any unit it is 1,
 * and where the two are equal, which are not scored then unless `alone` is chosen about; of a
 * single unit the difference has no error.  Of equal means the highest weight.  `alone` (NULL:
 * none) is taken instead where it is above that one by more than the error, too, and does not wait
 * for another choice.  It waits as long as `copy` lets it (NULL: it does not), then also where
 * nothing came. */
int fed_weight_choose(const struct kge_emb *merged, const struct kge_emb *own,
		      const struct kge_emb *alone, const struct fed_weight_copy *copy,
		      fed_weight_score score, void *ctx, struct fed_weighed *out);
/* Between two choices: so much of what came, unless the table that is left is below our own by more
 * than the standard error of the difference, or scores no number; then none of it (refused).  The
 * scores of both are in `out`, of weight 0 and `weight`, unless they are equal. */
int fed_weight_check(const struct kge_emb *merged, const struct kge_emb *own, double weight,
		     fed_weight_score score, void *ctx, struct fed_weighed *out);
/* After a choice of which the copy was a part. */
void fed_weight_note(struct fed_weight_copy *copy, const struct fed_weighed *w);
/* By how much the copy is ahead of merged: *out.  0, or what ends it. */
int fed_weight_measure(const struct kge_emb *merged, const struct kge_emb *alone,
		       fed_weight_score score, void *ctx, double *out);
/* merged becomes what was chosen. */
void fed_weight_take(struct kge_emb *merged, const struct kge_emb *own, const struct kge_emb *alone,
		     const struct fed_weighed *w);

#endif
