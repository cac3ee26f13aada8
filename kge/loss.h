/* kge/loss.h - the losses of methods 1.1, for one query at a time.
 *
 * With s the scores, s+ that of the true answer, and a mean over the candidates
 * that are there (GRAPH_NONE ones are not):
 *
 *   self-adversarial  1/2 [ softplus(-s+) + sum_j p_j softplus(s_j) ],
 *                     p = softmax(temperature s), no gradient through p
 *   logistic          the same with p_j = 1/n
 *   margin            1/n sum_j max(0, margin - s+ + s_j)
 *   softmax           log(e^s+ + sum_j e^s_j) - s+
 *
 * Softmax over all entities rather than drawn ones: kge/all.c. */
#ifndef KGE_LOSS_H
#define KGE_LOSS_H

#include "kge/kernel.h"
#include "kge/train.h"

/* The score of a candidate that is not there. */
#define KGE_NO_SCORE (-1e30f)

/* scores[0] is the true answer's score, scores[1..n] those of the negatives,
 * KGE_NO_SCORE where there is none; `there` of them are.  Writes dLoss/dscore into
 * dscore[0..n] and returns the loss.  work: 3 n floats. */
double kge_loss_of(const struct kge_train_config *c, const struct kge_kernels *k,
		   const float *restrict scores, float *restrict dscore, size_t n, size_t there,
		   float *restrict work);

/* Unlearning (FedLU, methods 4.1), instead of the loss above:
 *
 *   hard  forgotten softplus(s+) + negatives sum_j p_j softplus(s_j), p_j = 1/n if `even`, else as
 *         in the training's loss
 *   soft  soft |(s_j - s+)_j|_2, or soft 1/n sum_j |s_j - s+|; derivative 0 at 0
 *
 * The paper: 1, 1, 0.1, the second soft part, even.  The released code: 5, 0.5, 0.1 (0.01, 0.05
 * were tried), the first, by the training's loss. */
struct kge_interference {
	float forgotten, negatives, soft;
	bool soft_norm, even;
};

/* As kge_loss_of(). */
double kge_hard_of(const struct kge_interference *x, const struct kge_train_config *c,
		   const struct kge_kernels *k, const float *restrict scores,
		   float *restrict dscore, size_t n, size_t there, float *restrict work);
/* Adds `by` times its derivative to dscore; returns the soft part. */
double kge_soft_of(const struct kge_interference *x, const float *restrict scores,
		   float *restrict dscore, size_t n, size_t there, float by);
/* KL(T | P) for the softmax T of taught[0..n] and P of scores[0..n]; adds `by` times its
 * derivative by the scores to dscore.  work: 2 n + 2 floats. */
double kge_distill_of(const struct kge_kernels *k, const float *restrict scores,
		      const float *restrict taught, float *restrict dscore, size_t n, float by,
		      float *restrict work);

/* A row's part in the regulariser (enum kge_reg), which it returns; adds `by` times its gradient
 * to g.  is_complex: the row is floats/2 real parts, then as many imaginary ones. */
double kge_reg_of(enum kge_reg reg, float *restrict g, const float *restrict row, size_t floats,
		  bool is_complex, float by);

#endif
