/* kge/batch_internal.h - one optimiser step over a batch of positives, by several threads.
 *
 * Each query of the batch has a line of `width` candidates: the true answer in
 * column 0, then its negatives.  Scores and gradients are computed row by row of
 * the entity table rather than query by query: a row that fifty queries drew is
 * read once, its gradient is summed in registers, and it is updated at once with
 * its moments while they are in cache.  The phases, with everybody waiting for
 * all between two of them:
 *
 *   draw     by query   candidates, query rows
 *   score    by row     pairs sorted by their row; raw scores
 *   loss     by query   loss, and its derivative for every pair
 *   rows     by row     gradient of the row and of its queries; step, unless the row
 *                       is the known side of some query as well
 *   query    by query   gradient of the query -> of known row and relation
 *   apply    by row     steps on the rows that waited, and on relations
 *
 * Where chunks of queries share their negatives, a whole chunk is a tile, and kge/shared.c has
 * a step of its own.  Without drawn negatives (config.negatives 0) every entity is a candidate of
 * every query, and kge/all.c has the first four phases.
 *
 * A projecting model's rows are scored as each relation sees them: a row's pairs are
 * handled in runs of one relation (the trainer sorts a batch by relation to make them
 * long), and each lane sums its own gradient of every relation that it meets, for
 * `apply` to add up in the order of the lanes.
 *
 * A row belongs to one lane, and a lane to one thread, so nothing is locked, nothing
 * races, and a run depends on seed and number of lanes alone. */
#ifndef KGE_BATCH_INTERNAL_H
#define KGE_BATCH_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/rng.h"
#include "kge/kernel.h"
#include "kge/negatives.h"
#include "kge/optimizer.h"
#include "kge/order.h"
#include "kge/team_internal.h"
#include "kge/terms.h"
#include "kge/train.h"

struct kge_query {
	uint32_t triple, known, rel;
	enum graph_side side;
};

/* A share of the rows, and what working on them needs. */
struct kge_lane {
	uint32_t ent_begin, ent_end, rel_begin, rel_end; /* its rows */
	uint32_t *pairs;				 /* its pairs, as they were drawn */
	uint32_t *sorted;				 /* its pairs, by row */
	uint32_t *touched; /* its rows in this batch, by first touch */
	uint32_t *touched_rel;
	size_t n_touched, n_touched_rel;
	float *scores; /* queries x width, only its pairs filled in; all.c: queries x its rows */
	float *dq;     /* queries x stride */
	float *row, *work;
	float *part;   /* all.c, by query: this lane's part of a softmax */
	void *product; /* all.c: kge_product()'s room; NULL: products in floats */
	double loss;

	/* with a teacher, but in shared.c; else NULL */
	float *taught;	     /* width: its scores */
	float *q, *taught_c; /* its query; a candidate as the relation sees it */

	/* projecting models; else NULL */
	float *seen, *dseen; /* a row as a relation sees it, and its gradient */
	float *drel;	     /* relations or, if they are fewer, queries x rel_floats */
	bool *has_drel;	     /* has a gradient in drel; else what is there is old */
};

struct kge_shared;
struct kge_each;   /* kge/each.h */
struct kge_others; /* kge/others.h */

struct kge_batch {
	const struct kge_train_config *c;
	const struct kge_kernels *k;
	const struct graph_triples *train;
	const struct graph_answers *answers; /* NULL: neither filtered nor against all entities */
	const struct kge_sampler *sampler;   /* NULL: uniform */
	const struct kge_slots *slots;	     /* whose rows there are; NULL: all are somebody's */
	const float *weights;		     /* by triple: subsampling; NULL: all alike */
	double weight;		     /* of the batch's queries together, where they have any */
	const float *answer_weights; /* by entity, against all of them; NULL: all alike */
	float answer_scale;	     /* with which those of a batch's answers are 1 in the mean */
	struct kge_emb *emb;
	struct kge_optimizer_table *ent, *rel;
	struct kge_pull *pull; /* terms on rows; NULL: none */
	kge_step_fn *own_step; /* of entities; NULL: the optimiser's */
	void *step_ctx;
	struct kge_terms terms; /* those on queries */
	struct kge_interference interfere;

	const struct kge_order *epoch_order; /* of the epoch */

	/* the batch at hand, n positions from `first`: positives train->at[order[0]] and on;
	 * all.c: queries, each named by the first triple that asks it, triple << 1 | side */
	const uint32_t *order;
	size_t first, n;
	size_t most;	/* of n, in any batch: for so many there is room */
	size_t n_tails; /* shared, with sides by relation: that ask for the tail; they are first */
	size_t n_answers; /* of the batch, over which its loss is a mean */
	bool sgemm;	  /* all.c: dot products by matrix products */
	uint64_t number;  /* batches so far, from 1 */
	struct rng rng;	  /* of the epoch; a query's stream is its position in it */
	float lr;	  /* of now */
	struct kge_step step;

	/* its queries */
	size_t n_queries, width, stride;
	struct kge_query *queries;
	uint32_t *ids; /* queries x width; GRAPH_NONE: no candidate */
	float *q;      /* queries x stride; later, gradients of relations */
	float *dscore; /* queries x width */
	float *late;   /* queries x stride: gradients of rows that wait */

	/* rows -> what touches them */
	uint32_t *count, *at;		    /* by entity: pairs, and where in `sorted` they end */
	uint32_t *first_known, *next_known; /* by entity, by query: chains of queries */
	uint32_t *first_rel, *next_rel;
	uint32_t *positives; /* by entity: how often it is known or an answer; NULL: no reg */
	uint64_t lane_scale;
	struct kge_shared *shared; /* NULL: negatives are not shared, or in few chunks */
	struct kge_each *each;	   /* all.c: what each positive adds; NULL: nothing */
	struct kge_lane lane[64];
	size_t lanes;
	const struct kge_others *others; /* that have some of the lanes; NULL: nobody */
	size_t first_own, n_own;	 /* lanes of this process */

	double bytes; /* that kge_batch_init() took, or (counts) would take */
	bool counts;
};

static inline bool kge_batch_owns(const struct kge_batch *b, size_t lane)
{
	return lane - b->first_own < b->n_own;
}

/* Over so many lanes gradients of queries are to be added up: lane 0 has the sum of all, where
 * there are others. */
static inline size_t kge_batch_summed(const struct kge_batch *b)
{
	return b->others != NULL ? 1 : b->lanes;
}

/* What kge_batch_init() takes for such tables, none of which are read: it is run without taking it.
 */
double kge_batch_bytes(const struct kge_train_config *c, const struct kge_emb *shape, size_t most);
/* width and stride, from the config and the tables. */
/* Whether dot products against all entities are matrix products, by OpenBLAS or in bfloat16. */
bool kge_batch_multiplies(const struct kge_train_config *c, const struct kge_model *m,
			  const struct kge_kernels *k);
void kge_batch_measure(struct kge_batch *b);
/* most, others, first_own and n_own are set; without others all lanes are own. */
void kge_batch_init(struct kge_batch *b, size_t lanes);
void kge_batch_release(struct kge_batch *b);
/* Between two epochs: from now on these terms (kge_trainer_set_terms()). */
void kge_batch_set_terms(struct kge_batch *b, const struct kge_terms *t);
/* All of a batch; called by everybody in the team with their k.  Adds to each lane's loss. */
void kge_batch_run(struct kge_batch *b, struct team *team, size_t k);

/* All that kge_batch_init() takes, as mem_array() and mem_aligned() give it; NULL where it is only
 * counted. */
void *kge_batch_array(struct kge_batch *b, size_t n, size_t size);
void *kge_batch_aligned(struct kge_batch *b, size_t n, size_t size);

/* ---- inside: what batch.c and all.c have of each other ---- */

enum { KGE_ALL_BLOCK = 256 }; /* rows whose gradients are computed at once */

void kge_all_draw(struct kge_batch *b, size_t k);
void kge_all_score(struct kge_batch *b, size_t k);
void kge_all_loss(struct kge_batch *b, size_t k);
void kge_all_backward_rows(struct kge_batch *b, size_t k);

/* Whether the negatives are shared in a way that kge/shared.c does: in chunks, and by rows
 * that all relations see alike. */
bool kge_shared_fits(const struct kge_train_config *c, const struct kge_emb *emb);
/* For a batch whose width and lanes are known. */
struct kge_shared *kge_shared_new(struct kge_batch *b);
void kge_shared_free(struct kge_shared *s);
/* Room for b->terms.teacher, or none. */
void kge_shared_set_teacher(struct kge_batch *b);
void kge_shared_run(struct kge_batch *b, struct team *team, size_t k);

/* Which side is asked by this triple, at this position in the epoch, in its first or second query.
 */
enum graph_side kge_batch_side(const struct kge_batch *b, uint32_t triple, size_t position,
			       size_t half);
/* The weight of a query's loss in that of the batch; all weights together are 1. */
double kge_batch_share(const struct kge_batch *b, const struct kge_query *x);
/* The loss of a query with these scores, times the number of queries, and terms on it; dscore
 * is that of kge_loss_of().  taught: width scores of the teacher's, NULL where
 * b->terms.distill is 0.  work: 3 x width. */
double kge_batch_loss(const struct kge_batch *b, double share, const float *scores, float *dscore,
		      size_t there, const float *taught, float *work);
/* The random stream of a query, or of a chunk by its first, named by its position in the epoch. */
struct rng kge_batch_stream(const struct kge_batch *b, size_t position, enum graph_side s);
/* Query q of the batch asks for side s of a triple of train. */
void kge_batch_ask(struct kge_batch *b, size_t q, uint32_t triple, enum graph_side s);
/* The true answers of a query that is asked against all entities. */
struct graph_ids kge_batch_answers(const struct kge_batch *b, size_t q);
/* Chains of the queries that know a lane's rows, which join those it touched. */
void kge_batch_chain(struct kge_batch *b, struct kge_lane *l);
/* Pairs that share a row, as kge_score_fn and kge_grad_fn have it, but the row projected for
 * each query's relation where the model does that; the gradient is added to lane l's dq and,
 * of projections, to its drel.  g: ent_floats, written. */
void kge_batch_score_row(const struct kge_batch *b, struct kge_lane *l, float *line,
			 const float *row, const struct kge_pairs *p);
void kge_batch_grad_row(const struct kge_batch *b, struct kge_lane *l, float *g,
			const float *weight, const float *row, const struct kge_pairs *p);
/* An optimiser step on a lane's row, whose gradient is complete but for the regulariser. */
void kge_batch_step_entity(struct kge_batch *b, struct kge_lane *l, uint32_t e, float *gradient);
/* Of a row that the batch does not touch: l->row is all zeros. */
void kge_batch_step_untouched(struct kge_batch *b, struct kge_lane *l, uint32_t e);
void kge_batch_step_relation(struct kge_batch *b, struct kge_lane *l, uint32_t r, float *gradient);

/* ---- one query, for the batch and for kge/hogwild_internal.h ---- */

/* n entities, uniform, none of the sorted `known`, which may be none. */
void kge_batch_draw(const struct kge_batch *b, uint32_t *out, size_t n,
		    const struct graph_ids *known, struct rng *r);
/* The query for side s of a triple, at this position in the epoch, and its line of `width`
 * candidates, drawn for it alone. */
void kge_batch_draw_alone(const struct kge_batch *b, struct kge_query *x, uint32_t *ids,
			  uint32_t triple, size_t position, enum graph_side s);
/* A line of raw scores becomes one of scores, higher is better, very low where there is no
 * candidate; returns how many negatives there are. */
size_t kge_batch_scores(const struct kge_batch *b, const uint32_t *ids, float *scores);
/* A line of dloss/dscore becomes what the gradient kernels want, where the query's loss counts
 * for `share` of the whole. */
void kge_batch_weights(const struct kge_batch *b, double share, const float *scores, float *dscore);

#endif
