/* kge/unlearn.h - making tables forget some triples that they have learnt (FedLU, methods 4.1).
 *
 * Two phases, with relations frozen in both:
 *
 *   interference  over the forgotten triples: they are learnt as false (kge_hard_of()), their
 *                 scores drawn to those of their negatives (kge_soft_of())
 *   decay         over the triples that are kept, what the former has hurt recovers; at most
 *                 decay_epochs, ended by the first that does not raise MRR on valid (of two
 *                 tables, of the one that has lost more), whose tables are then those of the
 *                 epoch before
 *
 * With a global table, both phases teach the two tables by turns; without, the local one goes
 * alone.  This is no proof that nothing is left: how far the forgotten triples fell is measured,
 * and a table trained anew on what is kept is the reference.
 *
 * Where FedLU's released code differs from its paper: weights, also of negatives (kge/loss.h); two
 * passes over the forgotten triples an epoch, the local table untaught in one and a half of them;
 * in decay each batch once more without teaching; the last tables are kept, not the best. */
#ifndef KGE_UNLEARN_H
#define KGE_UNLEARN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "kge/eval.h"
#include "kge/loss.h"
#include "kge/train.h"

/* MRR on valid of both tables; 0 where valid is empty, or there is no global one. */
struct kge_unlearn_valid {
	double local, global;
};
/* What is left of it, in the table that has lost more: 1 is all. */
double kge_unlearn_left(const struct kge_unlearn_valid *now,
			const struct kge_unlearn_valid *before);

struct kge_unlearn_config {
	struct kge_train_config train; /* of both phases: exact, with drawn negatives */
	struct kge_interference interference;
	float distill; /* mu, where there are two tables */
	uint32_t interference_epochs, decay_epochs;
	uint32_t decay_patience; /* epochs in a row that do not raise valid's MRR and end decay */
	const struct kge_protocol *protocol; /* of valid's MRR */
	size_t valid_limit;		     /* triples of it that are looked at; 0: all */
	struct kge_unlearn_valid valid_from; /* of which shares are left; 0: of before this */
	/* Asked before interference, and after every check_every epochs of it: that ends it. 0, or
	 * ERR_CANCELED.  NULL: nobody asks. */
	int (*enough)(void *ctx, bool *enough);
	void *enough_ctx;
	uint32_t check_every;
};

enum kge_unlearn_variant { KGE_UNLEARN_PAPER, KGE_UNLEARN_CODE };

/* Both sides asked, batches of at most 256, 10 epochs of each phase (the code's interference: 20,
 * for its two passes), mu 2, protocol "standard".  The rest as the tables were trained: a setting
 * that unlearning cannot follow (racing, all entities as negatives) becomes the nearest that it
 * can. */
void kge_unlearn_defaults(struct kge_unlearn_config *c, const struct kge_train_config *trained,
			  enum kge_unlearn_variant v);
/* ERR_USAGE, as kge_train_check() and kge_terms_check(). */
int kge_unlearn_check(const struct kge_unlearn_config *c, struct err *e);

/* How it went. */
struct kge_unlearn_report {
	uint32_t interference_epochs, decay_epochs; /* done; decay: those whose tables were kept */
	struct kge_unlearn_valid valid_before, valid_interfered, valid_after;
};

/* forget: n > 0 positions in g's train, each once.  global may be NULL.  The tables are changed in
 * place. 0, or ERR_CANCELED with tables that have half forgotten.  report, cancel may be NULL.
 */
int kge_unlearn(const struct kge_unlearn_config *c, const struct graph *g, const uint32_t *forget,
		size_t n, struct kge_emb *local, struct kge_emb *global,
		struct kge_unlearn_report *report, const atomic_bool *cancel);

/* ---- what is kept, what is forgotten ---- */

/* g without those triples: its train is new, all else is g's.  Release with kge_kept_release(). */
struct graph kge_kept_of(const struct graph *g, const uint32_t *forget, size_t n);
void kge_kept_release(struct graph *kept);

/* Ranks of the forgotten triples, in the order of `forget`; the filter is valid, test and what
 * is kept of train, so that a forgotten triple hides no other.  p: sides, candidates and ties
 * count. */
int kge_evaluate_forgotten(const struct kge_emb *emb, const struct graph *g, const uint32_t *forget,
			   size_t n, const struct kge_protocol *p, const struct kge_eval_options *o,
			   struct kge_metrics *out);

#endif
