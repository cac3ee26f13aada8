/* kge/portion.h - training on tables of which only a part is in memory at a time (disk/).
 *
 * The trainer's table is a row of slots, each of which holds some entities or nobody.  An epoch is
 * a row of portions: triples among the entities at hand, named by their rows.  Between two of them
 * the caller fills slots anew, the moments' rows with them.  Relations are in memory always.
 *
 * Negatives are drawn from the rows at hand.  Order and draws follow from seed, epoch and number
 * of the portion, and a row's step from those before: the same portions in the same slots give the
 * same bits, with any interruption in between. */
#ifndef KGE_PORTION_H
#define KGE_PORTION_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parallel.h"
#include "graph/answers.h"
#include "kge/negatives.h"
#include "kge/train.h"

/* ERR_USAGE: settings that need all rows or all triples at a time. */
int kge_portion_check(const struct kge_train_config *c, struct err *e);

/* emb: rows of the slots, which stay at their place.  No triples of its own. */
struct kge_trainer *kge_portion_trainer_new(const struct kge_train_config *c, struct kge_emb *emb);

struct kge_portion {
	const struct graph_triples *train;   /* the first `asked` are trained, all are true */
	const struct graph_answers *answers; /* of all of these; NULL where nothing is filtered */
	const struct kge_slots *slots;
	size_t asked;
	size_t before, whole; /* triples of the epoch before it, and in all */
	uint64_t number;      /* in the epoch */
	/* Called so often by the calling thread while all threads wait, evenly spread over the
	 * batches and for the last time after them all; NULL: never.  It may change relation rows
	 * and their moments. */
	void (*meet)(void *ctx);
	void *ctx;
	uint64_t meets;
};

/* Where an epoch is: all zero at its begin. */
struct kge_portion_progress {
	uint64_t from;		   /* of the portion at hand */
	double loss[PARALLEL_MAX]; /* so far, by lane */
};

/* Trains a portion from at->from on.  ERR_CANCELED at a batch's border: called again with the same
 * portion it goes on there; not where it meets, which goes by whole portions. */
MUST_CHECK int kge_portion_run(struct kge_trainer *t, const struct kge_portion *p,
			       struct kge_portion_progress *at, const atomic_bool *cancel);
/* After the last portion of an epoch of n triples: its mean loss. */
double kge_portion_end_epoch(struct kge_trainer *t, size_t n, struct kge_portion_progress *at);

/* The moments of entities, each as large as the table: how many there are. */
size_t kge_portion_moments(struct kge_trainer *t, float *at[2]);

/* All else of a trainer that a saved run needs: counters, and moments of relations in place. */
struct kge_portion_state {
	uint64_t epoch, batches, turns;
	size_t bytes; /* of m and of v */
	float *m, *v; /* NULL: none */
};
struct kge_portion_state kge_portion_state(struct kge_trainer *t);
/* The counters of `from`. */
void kge_portion_set_counters(struct kge_trainer *t, const struct kge_portion_state *from);

#endif
