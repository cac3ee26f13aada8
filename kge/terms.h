/* kge/terms.h - what federated methods add to the loss of local training (methods 4, 4.1, 4.3).
 *
 * Terms on entity rows, each with a table of rows that came from the others:
 *
 *   proximal   mu/2 |E - A|^2                              FedProx, A = E_t, mu 0.1
 *   norm       beta |E - A|_F, not squared; derivative 0 at 0   PFedEG, A = K, beta 3e-3
 *   contrast   mu_con mean_e softplus(-(cos(z, g) - cos(z, l)) / tau)
 *                                                          FedEC, g = A, l = previous
 *
 * since -log(e^(a/tau) / (e^(a/tau) + e^(b/tau))) = softplus(-(a - b) / tau).  FedEC takes the loss
 * of each entity; FedLU's code, whose figures of FedEC are those to compare with, the loss of the
 * mean cosines (contrast_of_means).  A cosine with a row of zeros is 0.
 *
 * Each is added whole to the loss of every batch, beside the mean over its queries, as the papers'
 * code does.  That code moves the whole table at every batch; here a term moves the rows
 * that the optimiser steps: all of them with adam_dense, else those that the batch touches, which
 * with some hundred negatives are nearly all.  In any case norm and contrast_of_means go by the
 * whole table as it was before the batch.
 *
 * A row that nobody shares has A (and previous) = the row as the round began.
 *
 * Terms on queries, from the scores of a query's candidates, the answer and its negatives:
 *
 *   distill    mu KL(P_teacher | P), P = softmax of the scores     FedLU, mu 2; FedE-KD
 *   interfere  instead of the loss: kge_hard_of(), kge_soft_of()  FedLU's unlearning
 * (methods 4.1)
 *
 * The teacher is another table, of any width, that scores the same candidates and stays as it is.
 * `adaptive` divides by the sum of both tables' losses of the query, held constant (FedE-KD;
 * whether its authors let gradients through the divisor is not said).  Distillation and the
 * soft part are means over the queries of a batch even where subsampling weighs the loss itself,
 * as in FedLU's code. */
#ifndef KGE_TERMS_H
#define KGE_TERMS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "kge/kernel.h"
#include "kge/loss.h"
#include "kge/train.h"

struct kge_terms {
	float proximal, norm;	/* mu, beta; 0: without */
	float contrast;		/* mu_con; 0: without */
	float temperature;	/* tau, above 0 where there is a contrast */
	bool contrast_of_means; /* cosines averaged over the table first */
	const float *anchor;	/* A: n_ent x ent_floats; borrowed, as is */
	const float *previous;	/* the local table before the round: of the contrast alone */

	const struct kge_emb *teacher; /* of the same entities and relations; borrowed */
	float distill;		       /* mu; 0: the teacher is not asked */
	bool adaptive;

	const struct kge_interference *interfere; /* kge/loss.h; copied; NULL: learn as ever */
	bool freeze_relations;			  /* relations take no step */
};

/* ERR_USAGE: a weight that is negative or no number, a temperature not above 0; racing, whose
 * steps are not those of a batch; private training; terms on queries against all entities
 * (negatives 0). */
int kge_terms_check(const struct kge_terms *t, const struct kge_train_config *c, struct err *e);

/* From the next epoch on, until it is called again; NULL or all weights 0: no terms.  The tables
 * are borrowed that long, the struct is copied. */
void kge_trainer_set_terms(struct kge_trainer *t, const struct kge_terms *terms);
/* A step on an entity's row instead of the optimiser's: x is the row, g its gradient of this
 * batch, s the batch's constants.  Called by several threads, each for rows of its own. */
typedef void kge_step_fn(void *ctx, const struct kge_step *s, uint32_t id, float *x,
			 const float *g);
/* From the next epoch on; NULL: the optimiser's again.  Only where kge_terms_check() of no terms
 * is content: neither racing nor private. */
void kge_trainer_set_step(struct kge_trainer *t, kge_step_fn *step, void *ctx);
/* From the next epoch on, epochs go through these n triples of train alone, by their positions
 * there; negatives still know all of train.  Not against all entities.  NULL: all again. */
void kge_trainer_only(struct kge_trainer *t, const uint32_t *positions, size_t n);
/* An epoch of two trainers at once: a batch by the first, then the same one with the same negatives
 * by the second, and so on, so that each can be the other's teacher.  Both are of the same graph,
 * model and config, and have come equally far.  loss: of each; may be NULL. */
int kge_trainer_epoch_pair(struct kge_trainer *const t[2], double loss[2],
			   const atomic_bool *cancel);

/* ---- inside: for kge/train.c and kge/batch.c ---- */

struct kge_pull {
	struct kge_terms t;
	size_t rows, floats;
	const struct kge_kernels *k;
	double *far;	  /* by row: |E - A|^2, where `norm` wants their sum; else NULL */
	double *lean;	  /* by row: cos(z, g) - cos(z, l), where their mean is wanted; else NULL */
	double by_norm;	  /* of this batch: beta / |E - A|_F */
	double mean_lean; /* of this batch */
};

/* NULL where there is nothing to add. */
struct kge_pull *kge_pull_new(const struct kge_terms *t, size_t rows, size_t floats,
			      const struct kge_kernels *k);
void kge_pull_free(struct kge_pull *p);
/* The table may have been changed. */
void kge_pull_begin_epoch(struct kge_pull *p, const float *table);
/* Returns the loss that no single row has. */
double kge_pull_begin_batch(struct kge_pull *p);
/* Adds the terms' gradient at a row to g; returns the row's own loss. */
double kge_pull_row(const struct kge_pull *p, size_t row, const float *restrict x,
		    float *restrict g);
/* After the step. */
void kge_pull_moved(struct kge_pull *p, size_t row, const float *x);

#endif
