#include "kge/train.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "kge/batch_internal.h"
#include "kge/blas.h"
#include "kge/dp_train.h"
#include "kge/hogwild_internal.h"
#include "kge/others_internal.h"
#include "kge/portion.h"
#include "kge/product.h"
#include "kge/terms.h"

enum { PAIRS_MAX = 1 << 26 }; /* queries x candidates in a batch: 256 MiB a column */

/* An epoch that was interrupted. */
struct partial_epoch {
	uint64_t there;		   /* 1: there is one */
	uint64_t from;		   /* the first position that is left of it */
	double loss[PARALLEL_MAX]; /* of each lane or worker up to there */
};

struct kge_trainer {
	struct kge_train_config c;
	const struct graph *g;
	struct kge_emb *emb;
	struct graph_answers *answers;
	struct kge_sampler *sampler;
	float *weights;	       /* of triples, with subsampling */
	float *answer_weights; /* of entities, with rare_weight */
	struct kge_optimizer_table ent, rel;
	struct kge_order order; /* of this epoch: triples, or queries against all entities */
	size_t before, whole;	/* of a portion: positions of the epoch before it, and in all */
	uint32_t *at_hand;	/* those of the batch; b->order */
	uint32_t *heads;	/* room for part_sides(); NULL: nothing is parted */
	uint32_t *queries;	/* 1-vs-all: each once, named as in kge_batch.order */
	uint32_t *only;		/* the triples that are asked for; NULL: all */
	size_t n_answers;	/* in an epoch, over which its loss is a mean */
	struct kge_batch batch;
	struct kge_dp *dp; /* private steps; NULL: plain ones */
	struct kge_hogwild
		hogwild;  /* used instead of the batch's own memory with hogwild workers */
	uint64_t epoch;	  /* counted epochs so far */
	uint64_t batches; /* optimiser steps since the moments were cleared */
	uint64_t turns;	  /* steps so far, for whose turn it is to be corrupted */
	struct partial_epoch partial; /* what the last epoch left; */
	bool resuming;		      /* which was loaded, and is what comes next */
};

/* ---- settings ---- */

void kge_train_defaults(struct kge_train_config *c)
{
	*c = (struct kge_train_config){
		.loss = KGE_LOSS_SELF_ADVERSARIAL,
		.optimizer = KGE_ADAM_SPARSE,
		.corrupt = KGE_CORRUPT_ALTERNATE,
		.schedule_epochs = 100,
		.lr = 1e-3f,
		.momentum = 0.9f,
		.margin = 1.0f,
		.temperature = 1.0f,
		.negatives = 64,
		.batch = 256,
		.shared_chunk = 16,
		.rare_weight = 1.0f,
		.filtered = true,
		.threads = 2,
		.seed = 1,
	};
}

static int check_float(const char *key, float x, bool zero_too, struct err *e)
{
	if (isfinite(x) && (x > 0 || (zero_too && x == 0)))
		return 0;
	return err_set(e, ERR_USAGE, "%s: must be a number %s 0, not %g", key,
		       zero_too ? "not below" : "above", (double)x);
}

static int check_count(const char *key, uint32_t x, uint32_t max, struct err *e)
{
	if (x >= 1 && x <= max)
		return 0;
	return err_set(e, ERR_USAGE, "%s: must be 1 to %u, not %u", key, max, x);
}

static int check_negatives(const struct kge_train_config *c, struct err *e)
{
	if (c->negatives > 0)
		return check_count("train.negatives", c->negatives, 65534, e);
	if (c->loss == KGE_LOSS_SOFTMAX)
		return 0;
	return err_set(
		e, ERR_USAGE,
		"train.negatives: 0 (all entities) needs train.loss softmax; else 1 to 65534");
}

static int check_sampling(const struct kge_train_config *c, struct err *e)
{
	bool plain = c->sampling == KGE_SAMPLING_UNIFORM;

	if (c->negatives == 0 && (!plain || c->subsampling))
		return err_set(e, ERR_USAGE,
			       "train.%s: not with train.negatives 0, where nothing is drawn",
			       plain ? "subsampling" : "sampling");
	if (c->sampling == KGE_SAMPLING_TYPED && c->shared_chunk > 1)
		return err_set(e, ERR_USAGE,
			       "train.sampling typed draws for each true triple; set "
			       "train.shared_chunk to 0, not %u",
			       c->shared_chunk);
	if (c->sampling == KGE_SAMPLING_BERNOULLI && c->corrupt != KGE_CORRUPT_ALTERNATE)
		return err_set(e, ERR_USAGE,
			       "train.sampling bernoulli draws the side that is asked: set "
			       "train.corrupt to alternate");
	return 0;
}

/* A setting that bilinear models have, against all entities: kge/each.h, kge/product.h; or NULL. */
static const char *bilinear_setting(const struct kge_train_config *c)
{
	return c->relation_weight > 0	      ? "relation_weight"
	       : c->reg == KGE_REG_DURA	      ? "reg dura"
	       : c->precision == KGE_BFLOAT16 ? "precision bfloat16"
					      : NULL;
}

static int check_against_all(const struct kge_train_config *c, struct err *e)
{
	const char *setting = c->query_answers > 0 ? "query_answers"
			      : c->rare_weight < 1 ? "rare_weight"
						   : bilinear_setting(c);

	if (c->negatives == 0 || setting == NULL)
		return 0;
	return err_set(e, ERR_USAGE,
		       "train.%s: goes with train.loss softmax and train.negatives 0 (all "
		       "entities) alone",
		       setting);
}

int kge_train_check_model(const struct kge_train_config *c, const struct kge_model *m,
			  struct err *e)
{
	const char *setting = bilinear_setting(c);

	if (m->metric == KGE_DOT || setting == NULL)
		return 0;
	return err_set(e, ERR_USAGE,
		       "train.%s: goes with a bilinear model.kind (distmult, complex and their "
		       "reciprocal ones), not with %s",
		       setting, m->name);
}

static int check_draws(const struct kge_train_config *c, struct err *e)
{
	const char *not_with = c->negatives == 0 ? "negatives 0, where nothing is drawn"
			       : c->update == KGE_UPDATE_HOGWILD
				       ? "update racing, which has no batches"
			       : c->sampling == KGE_SAMPLING_BERNOULLI
				       ? "sampling bernoulli: a triple would be asked for one side"
				       : NULL;

	if (c->draws == KGE_DRAWS_ANEW || not_with == NULL)
		return 0;
	return err_set(e, ERR_USAGE, "train.draws once: not with train.%s; set it to anew",
		       not_with);
}

static int check_hogwild(const struct kge_train_config *c, struct err *e)
{
	if (c->negatives == 0)
		return err_set(e, ERR_USAGE,
			       "train.update racing: not with train.negatives 0 (all entities), of "
			       "which a step moves every row; draw negatives");
	if (c->optimizer == KGE_ADAM_DENSE)
		return err_set(e, ERR_USAGE,
			       "train.update racing: not with train.optimizer adam_dense, which "
			       "moves every row at every step; take another");
	if (c->reg != KGE_REG_NONE || c->subsampling)
		return err_set(e, ERR_USAGE,
			       "train.update racing: not with train.%s, which goes by the batch",
			       c->subsampling ? "subsampling" : "reg");
	if (c->shared_chunk > 1)
		return err_set(e, ERR_USAGE,
			       "train.update racing: every positive draws its own negatives; set "
			       "train.shared_chunk to 0, not %u",
			       c->shared_chunk);
	return 0;
}

int kge_train_check(const struct kge_train_config *c, struct err *e)
{
	int rc = check_float("train.lr", c->lr, false, e);

	if (rc == 0)
		rc = check_float("train.margin", c->margin, true, e);
	if (rc == 0)
		rc = check_float("train.temperature", c->temperature, true, e);
	if (rc == 0)
		rc = check_float("train.reg_weight", c->reg_weight, true, e);
	if (rc == 0 && !(c->rare_weight > 0 && c->rare_weight <= 1))
		rc = err_set(e, ERR_USAGE, "train.rare_weight: must be above 0, 1 at most, not %g",
			     (double)c->rare_weight);
	if (rc == 0)
		rc = check_float("train.relation_weight", c->relation_weight, true, e);
	if (rc == 0)
		rc = check_float("train.momentum", c->momentum, true, e);
	if (rc == 0 && c->momentum >= 1)
		rc = err_set(e, ERR_USAGE, "train.momentum: must be below 1, not %g",
			     (double)c->momentum);
	if (rc == 0)
		rc = check_count("train.schedule_epochs", c->schedule_epochs, 1000000, e);
	if (rc == 0)
		rc = check_negatives(c, e);
	if (rc == 0)
		rc = check_count("train.batch", c->batch, 32768, e);
	if (rc == 0)
		rc = check_count("train.threads", c->threads, PARALLEL_MAX, e);
	if (rc == 0 && (uint64_t)c->batch * c->negatives > PAIRS_MAX)
		rc = err_set(e, ERR_USAGE,
			     "train.batch x train.negatives: must be at most %d, not %u x %u",
			     PAIRS_MAX, c->batch, c->negatives);
	if (rc == 0)
		rc = check_sampling(c, e);
	if (rc == 0)
		rc = check_against_all(c, e);
	if (rc == 0)
		rc = check_draws(c, e);
	if (rc == 0 && c->update == KGE_UPDATE_HOGWILD)
		rc = check_hogwild(c, e);
	if (rc == 0 && c->dp.epsilon > 0)
		rc = kge_dp_check(c, e);
	return rc;
}

bool kge_train_repeats(const struct kge_train_config *c)
{
	return !(c->dp.epsilon > 0) && (c->update == KGE_UPDATE_EXACT || c->threads == 1);
}

void kge_train_arithmetic(const struct kge_train_config *c, const struct kge_model *m,
			  char out[KGE_ARITHMETIC_TEXT])
{
	bool rounded = c->precision == KGE_BFLOAT16;
	bool blas = c->negatives == 0 && kge_batch_multiplies(c, m, kge_kernels_pick()) &&
		    !(rounded && kge_product_is_fast());

	snprintf(out, KGE_ARITHMETIC_TEXT, "%s%s%s", kge_arithmetic(rounded),
		 blas ? ", OpenBLAS for " : "", blas ? kge_blas_core() : "");
}

int kge_train_check_size(const struct kge_train_config *c, uint32_t n_ent, struct err *e)
{
	if (c->negatives > 0 || (uint64_t)c->batch * n_ent <= PAIRS_MAX)
		return 0;
	return err_set(e, ERR_USAGE,
		       "train.batch x entities: must be at most %d where train.negatives is 0, not "
		       "%u x %u: lower train.batch to %u, or draw negatives",
		       PAIRS_MAX, c->batch, n_ent, n_ent < PAIRS_MAX ? PAIRS_MAX / n_ent : 1);
}

/* So that memory stays bounded. */
static uint32_t bounded_batch(const struct kge_train_config *c, uint32_t n_ent)
{
	if (kge_train_check_size(c, n_ent, NULL) == 0)
		return c->batch;
	return n_ent < PAIRS_MAX ? PAIRS_MAX / n_ent : 1;
}

size_t kge_train_batch_most(const struct kge_train_config *c, uint32_t n_ent, size_t triples)
{
	size_t positions = c->negatives == 0 ? 2 * triples : triples,
	       batch = bounded_batch(c, n_ent);

	return triples > 0 && positions < batch ? positions : batch;
}

double kge_train_table_bytes(const struct kge_train_config *c, const struct kge_emb *shape)
{
	double rows = (double)shape->n_ent * (double)shape->ent_floats +
		      (double)shape->n_rel * (double)shape->rel_floats;
	double floats = rows * (double)(1 + kge_optimizer_floats(c->optimizer));

	if (c->dp.epsilon > 0)
		floats += rows * 2; /* whole numbers of 64 bits */
	return floats * sizeof(float);
}

double kge_train_bytes(const struct kge_train_config *c, const struct kge_emb *shape,
		       size_t triples)
{
	size_t most = kge_train_batch_most(c, shape->n_ent, triples);
	struct kge_train_config bounded = *c;
	double tables = kge_train_table_bytes(c, shape);

	bounded.batch = bounded_batch(c, shape->n_ent);
	if (c->dp.epsilon > 0 || c->update != KGE_UPDATE_EXACT)
		return tables;
	return tables + kge_batch_bytes(&bounded, shape, most);
}

/* ---- life ---- */

/* The known answers, and what else drawing goes by. */
static void init_draws(struct kge_trainer *t)
{
	const struct graph_triples *train = &t->g->split[GRAPH_TRAIN];
	bool by_counts = t->c.sampling == KGE_SAMPLING_BERNOULLI || t->c.subsampling;

	if (t->c.filtered || t->c.negatives == 0 || by_counts)
		t->answers = graph_answers_new(train);
	t->sampler = kge_sampler_new(t->c.sampling, t->g, t->answers);
	if (t->c.subsampling)
		t->weights = kge_subsampling_weights(train, t->answers);
	if (t->c.negatives == 0 && t->c.rare_weight < 1)
		t->answer_weights = kge_answer_weights(train, t->emb->n_ent, t->c.rare_weight);
	t->batch.answer_weights = t->answer_weights;
	t->batch.answers = t->c.filtered || t->c.negatives == 0 ? t->answers : NULL;
	t->batch.sampler = t->sampler;
	t->batch.weights = t->weights;
}

/* Lists the positions of an epoch: triples, or the queries that they ask. */
static void list_positions(struct kge_trainer *t)
{
	size_t n = t->g->split[GRAPH_TRAIN].n, positions = n;
	bool tail_only = t->c.corrupt == KGE_CORRUPT_TAIL;

	t->n_answers = t->c.corrupt == KGE_CORRUPT_BOTH ? 2 * n : n;
	if (t->c.negatives == 0) {
		t->queries = mem_array(2 * n, sizeof(*t->queries));
		positions = graph_answers_queries(t->answers, GRAPH_TAIL, t->c.query_answers,
						  t->queries);
		if (!tail_only)
			positions += graph_answers_queries(
				t->answers, GRAPH_HEAD, t->c.query_answers, t->queries + positions);
		t->n_answers = 0;
		for (size_t i = 0; i < positions; i++)
			t->n_answers +=
				graph_answers_count(t->answers, t->queries[i], t->c.query_answers);
	}
	kge_order_init(&t->order, positions, t->queries);
	t->at_hand = mem_array(t->batch.most, sizeof(*t->at_hand));
}

static void set_others(struct kge_batch *b, const struct kge_others *others, uint32_t threads)
{
	b->others = others;
	if (others == NULL)
		return;
	assert(kge_others_check(b->c, b->emb->model, NULL) == 0);
	assert(threads % others->ranks == 0 && threads <= PARALLEL_MAX);
	b->n_own = threads / others->ranks;
	b->first_own = others->rank * b->n_own;
}

struct kge_trainer *kge_trainer_new(const struct kge_train_config *c, const struct graph *g,
				    struct kge_emb *emb)
{
	return kge_trainer_new_among(c, g, emb, NULL);
}

struct kge_trainer *kge_trainer_new_among(const struct kge_train_config *c, const struct graph *g,
					  struct kge_emb *emb, const struct kge_others *others)
{
	struct kge_trainer *t = mem_array(1, sizeof(*t));
	const struct graph_triples *train = &g->split[GRAPH_TRAIN];
	struct kge_batch *b = &t->batch;

	assert(kge_train_check(c, NULL) == 0 && train->n < GRAPH_NONE / 2);
	t->c = *c;
	t->c.batch = bounded_batch(c, emb->n_ent);
	t->g = g;
	t->emb = emb;
	b->most = kge_train_batch_most(c, emb->n_ent, train->n);
	init_draws(t);
	list_positions(t);
	kge_optimizer_init(&t->ent, c->optimizer, emb->n_ent, emb->ent_floats);
	kge_optimizer_init(&t->rel, c->optimizer, emb->n_rel, emb->rel_floats);
	b->c = &t->c;
	b->k = kge_kernels_pick();
	b->train = train;
	b->emb = emb;
	b->ent = &t->ent;
	b->rel = &t->rel;
	b->epoch_order = &t->order;
	b->order = t->at_hand;
	set_others(b, others, c->threads);
	if (c->dp.epsilon > 0) {
		kge_batch_measure(b);
		t->dp = kge_dp_new(b);
	} else if (c->update == KGE_UPDATE_EXACT) {
		kge_batch_init(b, c->threads);
		if (b->shared != NULL && kge_sampler_has_sides(b->sampler))
			t->heads = mem_array(b->most, sizeof(*t->heads));
	} else {
		kge_batch_measure(b);
		kge_hogwild_init(&t->hogwild, b);
	}
	return t;
}

void kge_trainer_free(struct kge_trainer *t)
{
	if (t == NULL)
		return;
	kge_batch_release(&t->batch);
	kge_hogwild_release(&t->hogwild);
	kge_dp_free(t->dp);
	kge_optimizer_release(&t->ent);
	kge_optimizer_release(&t->rel);
	graph_answers_free(t->answers);
	kge_sampler_free(t->sampler);
	free(t->weights);
	free(t->answer_weights);
	kge_order_release(&t->order);
	free(t->at_hand);
	free(t->heads);
	free(t->queries);
	free(t->only);
	free(t);
}

void kge_trainer_reset_optimizer(struct kge_trainer *t)
{
	kge_optimizer_clear(&t->ent);
	kge_optimizer_clear(&t->rel);
	t->batches = 0;
	t->partial.there = t->resuming = false;
}

bool kge_trainer_is_resuming(const struct kge_trainer *t)
{
	return t->resuming;
}

uint64_t kge_trainer_epochs(const struct kge_trainer *t)
{
	return t->epoch;
}

void kge_trainer_seek(struct kge_trainer *t, uint64_t epochs)
{
	uint64_t n = t->order.n, batch = t->c.batch;
	uint64_t steps = t->c.update == KGE_UPDATE_HOGWILD ? n : (n + batch - 1) / batch;

	assert(t->dp == NULL);
	t->epoch = epochs;
	t->turns = epochs * steps;
	kge_trainer_reset_optimizer(t);
}

void kge_trainer_set_terms(struct kge_trainer *t, const struct kge_terms *terms)
{
	assert(terms == NULL || kge_terms_check(terms, &t->c, NULL) == 0);
	kge_batch_set_terms(&t->batch, terms);
}

void kge_trainer_set_step(struct kge_trainer *t, kge_step_fn *step, void *ctx)
{
	assert(t->c.update == KGE_UPDATE_EXACT && t->dp == NULL);
	t->batch.own_step = step;
	t->batch.step_ctx = ctx;
}

void kge_trainer_only(struct kge_trainer *t, const uint32_t *positions, size_t n)
{
	size_t sides = t->c.corrupt == KGE_CORRUPT_BOTH ? 2 : 1;

	assert(t->queries == NULL && t->dp == NULL && n <= t->g->split[GRAPH_TRAIN].n);
	free(t->only);
	t->only = positions != NULL ? mem_copy(positions, n * sizeof(*positions)) : NULL;
	kge_order_release(&t->order);
	kge_order_init(&t->order, positions != NULL ? n : t->g->split[GRAPH_TRAIN].n, t->only);
	t->n_answers = t->order.n * sides;
}

/* ---- an epoch ---- */

/* Of a new epoch, or of the rest of a partial one. */
static void begin_losses(struct kge_trainer *t, const struct partial_epoch *partial)
{
	for (size_t k = 0; k < t->batch.lanes; k++)
		t->batch.lane[k].loss = partial->loss[k];
}

/* Order and streams of an epoch follow from seed and number, so a saved run needs neither. */
static void begin_epoch(struct kge_trainer *t)
{
	uint64_t drawn = t->c.draws == KGE_DRAWS_ONCE ? 0 : t->epoch;
	struct rng root, shuffle;

	if (!t->resuming)
		t->partial = (struct partial_epoch){ 0 };

	rng_seed(&root, t->c.seed);
	shuffle = rng_stream(&root, 2 * drawn);
	t->batch.rng = rng_stream(&root, 2 * drawn + 1);
	kge_order_draw(&t->order, &shuffle);
	t->whole = t->order.n;
	begin_losses(t, &t->partial);
	if (t->c.normalize && !t->resuming)
		kge_emb_normalize(t->emb);
	if (t->batch.pull != NULL)
		kge_pull_begin_epoch(t->batch.pull, t->emb->ent);
}

/* The learning rate when so much of this epoch is done: by what was counted, so that a saved
 * run goes on with it. */
static float rate_at(const struct kge_trainer *t, double part)
{
	return t->c.lr * kge_schedule_at(&t->c, (double)t->epoch + part);
}

/* Positions by the relation that they ask. */
static int by_relation(const void *a, const void *b, void *trainer)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	const struct kge_trainer *t = trainer;
	const struct graph_triple *at = t->batch.train->at;
	int shift = t->queries != NULL ? 1 : 0; /* its side is beside the triple then */
	uint32_t r = at[x >> shift].rel, s = at[y >> shift].rel;

	return r != s ? (r > s) - (r < s) : (x > y) - (x < y);
}

/* Chunks that share their negatives ask one side: of the positives at hand, those whose relation
 * drew the tail go before those of the head, in their order. */
static void part_sides(struct kge_trainer *t)
{
	struct kge_batch *b = &t->batch;
	size_t heads = 0;

	b->n_tails = 0;
	for (size_t i = 0; i < b->n; i++) {
		uint32_t triple = t->at_hand[i];

		if (kge_batch_side(b, triple, b->first + i, 0) == GRAPH_TAIL)
			t->at_hand[b->n_tails++] = triple;
		else
			t->heads[heads++] = triple;
	}
	memcpy(t->at_hand + b->n_tails, t->heads, heads * sizeof(*t->heads));
}

static double sum_answer_weights(const struct kge_trainer *t)
{
	const struct kge_batch *b = &t->batch;
	double sum = 0;

	for (size_t i = 0; i < b->n; i++) {
		uint32_t query = b->order[i];
		struct graph_ids answers = graph_answers_part(
			t->answers, query >> 1, (enum graph_side)(query & 1), t->c.query_answers);

		for (size_t k = 0; k < answers.n; k++)
			sum += (double)t->answer_weights[graph_ids_at(&answers, k)];
	}
	return sum;
}

/* Make `first` the start of the batch at hand. */
static void begin_batch(struct kge_trainer *t, size_t first)
{
	struct kge_batch *b = &t->batch;
	size_t rest = t->order.n - first, sides = t->c.corrupt == KGE_CORRUPT_BOTH ? 2 : 1;

	assert(t->c.batch > 0);
	b->first = first;
	b->n = rest < t->c.batch ? rest : t->c.batch;
	assert(b->n <= b->most);
	kge_order_take(&t->order, first, b->n, t->at_hand);
	if (t->heads != NULL)
		part_sides(t);
	b->n_queries = t->queries != NULL ? b->n : b->n * sides;
	b->n_answers = t->queries != NULL ? 0 : b->n_queries;
	for (size_t i = 0; i < b->n && t->queries != NULL; i++)
		b->n_answers += graph_answers_count(t->answers, b->order[i], t->c.query_answers);
	if (t->answer_weights != NULL)
		b->answer_scale = (float)((double)b->n_answers / sum_answer_weights(t));
	b->weight = 0;
	for (size_t i = 0; i < b->n && t->weights != NULL; i++)
		b->weight += (double)sides * (double)t->weights[b->order[i]];
	b->number = ++t->turns;
	if (t->c.draws == KGE_DRAWS_ONCE) /* the same batches: by turns from epoch to epoch */
		b->number = t->epoch + first / t->c.batch + 1;
	b->lr = rate_at(t, (double)(t->before + first) / (double)t->whole);
	b->step = kge_optimizer_step(&t->c, b->lr, ++t->batches);
	if (b->pull != NULL)
		b->lane[0].loss += (double)b->n_answers * kge_pull_begin_batch(b->pull);
	if (t->emb->model->project != NULL) /* a row is projected once for neighbours here */
		qsort_r(t->at_hand, b->n, sizeof(*t->at_hand), by_relation, t);
}

struct run {
	struct kge_trainer *const *t; /* n of them, which take the same batch in turn */
	size_t n;
	const atomic_bool *cancel;
	bool canceled; /* written by thread 0 between two meetings of the team */
	bool over;
	uint64_t from, at;		   /* the position it begins with, and where it is */
	const struct kge_portion *meeting; /* NULL: nobody is met between batches */
	uint64_t met;
};

/* Of `of` batches, `done` are behind us: as many meetings as are due then. */
static void meet_others(struct run *r, uint64_t done, uint64_t of)
{
	const struct kge_portion *p = r->meeting;
	uint64_t due = done < of ? done * p->meets / of : p->meets;

	for (; r->met < due; r->met++)
		p->meet(p->ctx);
}

static void next_batch(struct run *r, size_t first)
{
	uint64_t batch = r->t[0]->c.batch, n = r->t[0]->order.n;
	const struct kge_others *others = r->t[0]->batch.others;

	r->at = first;
	if (r->meeting != NULL)
		meet_others(r, (first + batch - 1) / batch, (n + batch - 1) / batch);
	r->canceled = r->cancel != NULL && atomic_load(r->cancel);
	if (others != NULL)
		r->canceled = kge_others_any(others, r->canceled);
	r->over = r->canceled || first >= r->t[0]->order.n;
	for (size_t i = 0; i < r->n && !r->over; i++)
		begin_batch(r->t[i], first);
	if (others != NULL && !r->over)
		kge_others_fetch(&r->t[0]->batch);
}

static void run_epoch(void *ctx, struct team *team, size_t k)
{
	struct run *r = ctx;

	for (size_t first = r->from;; first += r->t[0]->c.batch) {
		if (k == 0)
			next_batch(r, first);
		kge_team_wait(team);
		if (r->over)
			return;
		for (size_t i = 0; i < r->n; i++)
			kge_batch_run(&r->t[i]->batch, team, k);
	}
}

static void hogwild_epoch(void *ctx, struct team *team, size_t k)
{
	struct run *r = ctx;

	(void)team; /* each thread takes positives that are left */
	kge_hogwild_run(&r->t[0]->hogwild, k, r->cancel);
}

static void run_hogwild(struct run *r)
{
	struct kge_trainer *t = r->t[0];

	t->batch.lr = rate_at(t, 0);
	kge_hogwild_begin(&t->hogwild, r->from, t->turns - r->from, t->batches - r->from);
	kge_hogwild_set_losses(&t->hogwild, t->partial.loss);
	kge_team_run(t->c.threads, hogwild_epoch, r);
	r->canceled = atomic_load(&t->hogwild.canceled);
	r->at = kge_hogwild_at(&t->hogwild);
	t->turns += r->at - r->from;
	t->batches += r->at - r->from;
}

static double mean_loss(const struct kge_trainer *t)
{
	double sum = t->c.update == KGE_UPDATE_HOGWILD ? kge_hogwild_loss_sum(&t->hogwild) : 0.0;

	for (size_t k = 0; k < t->batch.lanes; k++)
		sum += t->batch.lane[k].loss;
	if (t->dp != NULL)
		return NAN;
	return t->n_answers > 0 ? sum / (double)t->n_answers : 0.0;
}

/* The end of private training says nothing of the triples: it comes by cancel or after all
 * steps. */
static void run_private(struct run *r)
{
	struct kge_trainer *t = r->t[0];
	uint32_t steps = kge_dp_epoch_steps(&t->c.dp);

	for (uint32_t k = 0; k < steps && !r->canceled; k++) {
		r->canceled = r->cancel != NULL && atomic_load(r->cancel);
		if (r->canceled)
			return;
		t->batch.number = ++t->turns;
		t->batch.lr = rate_at(t, (double)k / steps);
		t->batch.step = kge_optimizer_step(&t->c, t->batch.lr, ++t->batches);
		kge_dp_step(t->dp);
	}
}

void kge_trainer_set_draw(struct kge_trainer *t, secret_draw_fn *draw, void *ctx)
{
	if (t->dp != NULL)
		kge_dp_set_draw(t->dp, draw, ctx);
}

void kge_trainer_plant_noise(struct kge_trainer *t, kge_dp_noise_fn *noise)
{
	if (t->dp != NULL)
		kge_dp_plant_noise(t->dp, noise);
}

/* The rest of a canceled epoch can be done later, unless something else began with it. */
static void save_partial(struct kge_trainer *t, uint64_t from)
{
	t->partial.there = t->dp == NULL && t->batch.pull == NULL;
	t->partial.from = from;
	if (t->c.update == KGE_UPDATE_HOGWILD)
		kge_hogwild_losses(&t->hogwild, t->partial.loss);
	for (size_t k = 0; k < t->batch.lanes; k++)
		t->partial.loss[k] = t->batch.lane[k].loss;
}

/* An epoch of n trainers, which take each batch in turn. */
static int epoch_of(struct kge_trainer *const *t, size_t n, double *loss, const atomic_bool *cancel)
{
	struct run r = { .t = t, .n = n, .cancel = cancel };

	for (size_t i = 0; i < n; i++)
		begin_epoch(t[i]);
	r.from = t[0]->partial.from;
	if (t[0]->dp != NULL)
		run_private(&r);
	else if (t[0]->c.update == KGE_UPDATE_EXACT)
		kge_team_run(t[0]->batch.n_own, run_epoch, &r);
	else
		run_hogwild(&r);
	if (t[0]->batch.others != NULL)
		kge_others_end(&t[0]->batch);
	for (size_t i = 0; i < n; i++) {
		t[i]->resuming = false;
		t[i]->partial.there = 0;
		if (r.canceled)
			save_partial(t[i], r.at);
	}
	if (r.canceled)
		return ERR_CANCELED;
	for (size_t i = 0; i < n; i++) {
		t[i]->epoch++;
		if (loss != NULL)
			loss[i] = mean_loss(t[i]);
	}
	return 0;
}

int kge_trainer_epoch(struct kge_trainer *t, double *loss, const atomic_bool *cancel)
{
	return epoch_of(&t, 1, loss, cancel);
}

int kge_trainer_epoch_pair(struct kge_trainer *const t[2], double loss[2],
			   const atomic_bool *cancel)
{
	assert(t[0]->g == t[1]->g && t[0]->emb->model == t[1]->emb->model);
	assert(t[0]->dp == NULL && t[0]->c.update == KGE_UPDATE_EXACT &&
	       t[0]->c.seed == t[1]->c.seed);
	assert(t[0]->batch.others == NULL && t[1]->batch.others == NULL);
	assert(t[0]->c.batch == t[1]->c.batch && t[0]->c.threads == t[1]->c.threads);
	assert(t[0]->order.n == t[1]->order.n && t[0]->epoch == t[1]->epoch);
	assert(t[0]->resuming == t[1]->resuming && t[0]->partial.from == t[1]->partial.from);
	return epoch_of(t, 2, loss, cancel);
}

/* ---- portions (kge/portion.h) ---- */

struct kge_trainer *kge_portion_trainer_new(const struct kge_train_config *c, struct kge_emb *emb)
{
	static const struct graph none;

	assert(kge_portion_check(c, NULL) == 0);
	return kge_trainer_new(c, &none, emb);
}

/* Order and streams follow from seed, epoch and number. */
static void begin_portion(struct kge_trainer *t, const struct kge_portion *p,
			  const struct kge_portion_progress *at)
{
	struct kge_batch *b = &t->batch;
	struct rng root, epoch, shuffle;

	rng_seed(&root, t->c.seed);
	epoch = rng_stream(&root, 2 * t->epoch + 1);
	shuffle = rng_stream(&epoch, 2 * p->number);
	b->rng = rng_stream(&epoch, 2 * p->number + 1);
	b->train = p->train;
	b->answers = t->c.filtered ? p->answers : NULL;
	b->slots = p->slots;
	kge_order_release(&t->order);
	kge_order_init(&t->order, p->asked, NULL);
	kge_order_draw(&t->order, &shuffle);
	t->before = p->before;
	t->whole = p->whole;
	for (size_t k = 0; k < b->lanes; k++)
		b->lane[k].loss = at->loss[k];
}

int kge_portion_run(struct kge_trainer *t, const struct kge_portion *p,
		    struct kge_portion_progress *at, const atomic_bool *cancel)
{
	struct run r = { .t = &t, .n = 1, .cancel = cancel, .from = at->from };

	assert(at->from == 0 || at->from % t->c.batch == 0);
	assert(p->asked <= p->train->n && p->before + p->asked <= p->whole);
	assert(p->meet == NULL || (cancel == NULL && at->from == 0));
	r.meeting = p->meet != NULL ? p : NULL;
	begin_portion(t, p, at);
	kge_team_run(t->c.threads, run_epoch, &r);
	at->from = r.canceled ? r.at : 0;
	for (size_t k = 0; k < t->batch.lanes; k++)
		at->loss[k] = t->batch.lane[k].loss;
	return r.canceled ? ERR_CANCELED : 0;
}

double kge_portion_end_epoch(struct kge_trainer *t, size_t n, struct kge_portion_progress *at)
{
	size_t sides = t->c.corrupt == KGE_CORRUPT_BOTH ? 2 : 1;
	double sum = 0;

	for (size_t k = 0; k < t->batch.lanes; k++)
		sum += at->loss[k];
	*at = (struct kge_portion_progress){ 0 };
	t->epoch++;
	return n > 0 ? sum / (double)(n * sides) : 0.0;
}

size_t kge_portion_moments(struct kge_trainer *t, float *at[2])
{
	size_t n = 0;

	if (t->ent.m != NULL)
		at[n++] = t->ent.m;
	if (t->ent.v != NULL)
		at[n++] = t->ent.v;
	return n;
}

struct kge_portion_state kge_portion_state(struct kge_trainer *t)
{
	return (struct kge_portion_state){ .epoch = t->epoch,
					   .batches = t->batches,
					   .turns = t->turns,
					   .bytes = t->rel.rows * t->rel.floats * sizeof(float),
					   .m = t->rel.m,
					   .v = t->rel.v };
}

void kge_portion_set_counters(struct kge_trainer *t, const struct kge_portion_state *from)
{
	t->epoch = from->epoch;
	t->batches = from->batches;
	t->turns = from->turns;
}

int kge_portion_check(const struct kge_train_config *c, struct err *e)
{
	const char *not_with = c->negatives == 0		     ? "negatives 0 (all entities)"
			       : c->update == KGE_UPDATE_HOGWILD     ? "update racing"
			       : c->optimizer == KGE_ADAM_DENSE	     ? "optimizer adam_dense"
			       : c->sampling != KGE_SAMPLING_UNIFORM ? "sampling other than uniform"
			       : c->subsampling			     ? "subsampling"
			       : c->draws == KGE_DRAWS_ONCE	     ? "draws once"
			       : c->dp.epsilon > 0		     ? "dp.epsilon"
								     : NULL;

	if (not_with == NULL)
		return kge_train_check(c, e);
	return err_set(
		e, ERR_USAGE,
		"train.%s: not where entities are in partitions (training past memory, or over "
		"several ranks), for it needs all rows or all triples at hand",
		not_with);
}

int kge_others_check(const struct kge_train_config *c, const struct kge_model *m, struct err *e)
{
	const char *not_with = c->negatives > 0			 ? "negatives above 0"
			       : c->update == KGE_UPDATE_HOGWILD ? "update racing"
			       : c->dp.epsilon > 0		 ? "dp.epsilon"
								 : NULL;

	if (not_with != NULL)
		return err_set(e, ERR_USAGE,
			       "train.%s: not where several processes train against all entities",
			       not_with);
	if (m->project != NULL)
		return err_set(e, ERR_USAGE,
			       "model.kind %s: several processes train it with drawn negatives "
			       "alone (train.negatives)",
			       m->name);
	return kge_train_check(c, e);
}

/* ---- saved runs: a header, the moments of entities and of relations; the partial epoch, if any
 * ----
 */

struct header {
	char magic[8];
	uint64_t seed, epoch, batches, turns;
	uint64_t n_triples, ent_rows, ent_floats, rel_rows, rel_floats;
	uint32_t optimizer, threads, update, partial; /* the last: 1 if there is one */
};

static struct header header_of(const struct kge_trainer *t)
{
	return (struct header){
		.magic = "fkgetr2",
		.seed = t->c.seed,
		.epoch = t->epoch,
		.batches = t->batches,
		.turns = t->turns,
		.n_triples = t->batch.train->n,
		.ent_rows = t->ent.rows,
		.ent_floats = t->ent.floats,
		.rel_rows = t->rel.rows,
		.rel_floats = t->rel.floats,
		.optimizer = t->c.optimizer,
		.threads = t->c.threads,
		.update = t->c.update,
		.partial = (uint32_t)t->partial.there,
	};
}

/* Calls fn for each piece of state, in their order in the file. */
static size_t each_state(const struct kge_trainer *t, void (*fn)(void *ctx, float *x, size_t bytes),
			 void *ctx)
{
	const struct kge_optimizer_table *tables[2] = { &t->ent, &t->rel };
	size_t total = 0;

	for (size_t i = 0; i < 4; i++) {
		const struct kge_optimizer_table *o = tables[i / 2];
		float *x = i % 2 == 0 ? o->m : o->v;
		size_t bytes = x != NULL ? o->rows * o->floats * sizeof(*x) : 0;

		if (bytes > 0 && fn != NULL)
			fn(ctx, x, bytes);
		total += bytes;
	}
	return total;
}

struct taker {
	void (*put)(void *ctx, const void *bytes, size_t n);
	void *ctx;
};

static void save_state(void *ctx, float *x, size_t bytes)
{
	const struct taker *to = ctx;

	to->put(to->ctx, x, bytes);
}

void kge_trainer_save_to(const struct kge_trainer *t,
			 void (*put)(void *ctx, const void *bytes, size_t n), void *ctx)
{
	struct taker to = { put, ctx };
	struct header h = header_of(t);

	put(ctx, &h, sizeof(h));
	each_state(t, save_state, &to);
	if (t->partial.there)
		put(ctx, &t->partial, sizeof(t->partial));
}

static void add_to_buf(void *ctx, const void *bytes, size_t n)
{
	buf_add(ctx, bytes, n);
}

void kge_trainer_save(const struct kge_trainer *t, struct buf *out)
{
	kge_trainer_save_to(t, add_to_buf, out);
}

static void load_state(void *ctx, float *x, size_t bytes)
{
	const uint8_t **at = ctx;

	memcpy(x, *at, bytes);
	*at += bytes;
}

static int check_header(const struct kge_trainer *t, const struct header *h, struct err *e)
{
	struct header mine = header_of(t);

	if (memcmp(h->magic, mine.magic, sizeof(mine.magic)) != 0)
		return err_set(e, ERR_INPUT, "saved training: not a trainer's state");
	mine.epoch = h->epoch;
	mine.batches = h->batches;
	mine.turns = h->turns;
	mine.partial = h->partial == 1;
	if (memcmp(h, &mine, sizeof(mine)) != 0)
		return err_set(
			e, ERR_INPUT,
			"saved training: made with another graph, model, optimizer, update, seed "
			"or number of threads; train from the tables with a fresh trainer");
	return 0;
}

static size_t saved_bytes(const struct kge_trainer *t, bool partial)
{
	return sizeof(struct header) + each_state(t, NULL, NULL) +
	       (partial ? sizeof(struct partial_epoch) : 0);
}

/* A position where a batch can begin. */
static bool good_partial(const struct kge_trainer *t, const struct partial_epoch *c)
{
	return c->there == 1 && c->from <= t->order.n + t->c.batch && t->dp == NULL &&
	       (t->c.update == KGE_UPDATE_HOGWILD || c->from % t->c.batch == 0);
}

int kge_trainer_load(struct kge_trainer *t, const uint8_t *bytes, size_t n, struct err *e)
{
	const uint8_t *at = bytes + sizeof(struct header);
	struct partial_epoch partial = { 0 };
	struct header h;
	int rc;

	if (n != saved_bytes(t, false) && n != saved_bytes(t, true))
		return err_set(e, ERR_INPUT, "saved training: %zu bytes, where %zu belong", n,
			       saved_bytes(t, false));
	memcpy(&h, bytes, sizeof(h));
	rc = check_header(t, &h, e);
	if (rc != 0)
		return rc;
	if (h.partial == 1 && n == saved_bytes(t, true))
		memcpy(&partial, bytes + saved_bytes(t, false), sizeof(partial));
	if (n != saved_bytes(t, h.partial == 1) || (h.partial == 1 && !good_partial(t, &partial)))
		return err_set(e, ERR_INPUT, "saved training: no epoch was interrupted there");
	t->partial = partial;
	t->resuming = h.partial == 1;
	t->epoch = h.epoch;
	t->batches = h.batches;
	t->turns = h.turns;
	each_state(t, load_state, &at);
	return 0;
}
