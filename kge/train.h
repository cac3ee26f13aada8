/* kge/train.h - training of one agent's tables on its own train split (methods 1.1, 1.2).
 *
 * A trainer owns the optimiser's state, the order of the triples and the
 * generator; the tables are the caller's.  An exact step is one over its batch and every
 * row belongs to one thread, so a run is deterministic and can be saved and
 * resumed bit for bit with any number of threads; runs with different numbers of
 * threads differ in the last digits (the order in which gradients are summed), but
 * their tables do not where kge/shared.c makes the steps.
 * Racing, all that holds for one thread; with more, two runs differ, and so does a
 * resumed run from one that was not interrupted.  Private runs (kge/dp_train.h) always differ. */
#ifndef KGE_TRAIN_H
#define KGE_TRAIN_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/secret.h"
#include "graph/graph.h"
#include "kge/dp_noise.h"
#include "kge/model.h"

enum kge_loss {
	KGE_LOSS_SELF_ADVERSARIAL,
	KGE_LOSS_LOGISTIC,
	KGE_LOSS_MARGIN,
	KGE_LOSS_SOFTMAX,
};
/* Added to a query's loss: reg_weight times the sum of |x|^2 or |x|^3 over the known, the
 * relation's and the answer's row, |x| being the modulus where numbers are complex (N3 of Lacroix
 * et al. 2018).  RotatE's phases have none, nor has the projecting part of a relation's row.
 * DURA (Zhang et al., NeurIPS 2020), for bilinear models against all entities:
 * reg_weight * (|k|^2 + |a|^2 + 3 |k o r|^2 + 3 |a o r|^2) / 2, their code's weights. */
enum kge_reg { KGE_REG_NONE, KGE_REG_L2, KGE_REG_L3, KGE_REG_DURA };
enum kge_optimizer { KGE_SGD, KGE_ADAGRAD, KGE_ADAM_DENSE, KGE_ADAM_SPARSE, KGE_MOMENTUM };
/* The learning rate over schedule_epochs: constant; a tenth of it from the middle on (RotatE's
 * code); down to a hundredth, evenly or by half a cosine.  After these epochs the rate stays as it
 * is then.  Racing changes the rate between epochs only. */
enum kge_schedule {
	KGE_SCHEDULE_CONSTANT,
	KGE_SCHEDULE_STEP,
	KGE_SCHEDULE_LINEAR,
	KGE_SCHEDULE_COSINE,
};
/* A step over each batch, its gradient exact; or one at each positive, by threads that wait for
 * nobody (kge/hogwild_internal.h): faster where there are few negatives, and with several
 * threads never the same bits twice. */
enum kge_update { KGE_UPDATE_EXACT, KGE_UPDATE_HOGWILD };
/* Which side of a positive is asked for, each being one query: by turns from batch
 * to batch, always the tail, or both (two queries a positive). */
enum kge_corrupt { KGE_CORRUPT_ALTERNATE, KGE_CORRUPT_TAIL, KGE_CORRUPT_BOTH };

/* Whence negatives come: all entities alike; all alike, but the side that is asked drawn by
 * the relation, the head with probability tph / (tph + hpt) for tails a head and heads a tail
 * (TransH); those that train has at that side of the relation, or all where it has
 * fewer than KGE_TYPED_LEAST besides the answers. */
enum kge_sampling { KGE_SAMPLING_UNIFORM, KGE_SAMPLING_BERNOULLI, KGE_SAMPLING_TYPED };
enum { KGE_TYPED_LEAST = 10 };

/* Order, batches and negatives: anew for each epoch, or drawn for the first and kept, so that a
 * triple meets the same false answers always (FedLU's code, methods 4.1).  With corrupt alternate,
 * who is asked for the tail in one epoch is asked for the head in the next. */
enum kge_draws { KGE_DRAWS_ANEW, KGE_DRAWS_ONCE };

/* Of the products of a bilinear model against all entities (kge/product.h); rows, gradients and
 * sums are floats always. */
enum kge_precision { KGE_FLOAT32, KGE_BFLOAT16 };

/* Private training (kge/dp_train.h).  Epsilon and delta are the caller's, who keeps the account. */
struct kge_dp_config {
	double epsilon; /* above 0: training is private */
	double delta;
	double clip;	  /* C: L2 norm of what one triple gives to a step */
	double noise;	  /* deviation, in clips; 0: to be worked out before a trainer is made */
	double rate;	  /* with which a step takes each triple, (0, 1] */
	uint64_t triples; /* taken for public; 0: those of train, to two digits */
};

struct kge_train_config {
	enum kge_loss loss;
	enum kge_optimizer optimizer;
	enum kge_corrupt corrupt;
	enum kge_update update;
	enum kge_sampling sampling;
	enum kge_draws draws;
	enum kge_precision precision;
	enum kge_reg reg;
	float reg_weight;
	float relation_weight; /* of relation prediction, bilinear models against all entities */
	enum kge_schedule schedule;
	uint32_t schedule_epochs; /* 1..1000000 */
	float lr;		  /* of a step: with hogwild workers, that of one positive */
	float momentum;		  /* of KGE_MOMENTUM, below 1 */
	float margin;		  /* margin loss */
	float temperature;	  /* self-adversarial alpha */
	uint32_t negatives;	  /* per query, 1..65534; 0: all entities (softmax) */
	uint32_t batch;		  /* positives in one exact step, 1..32768; see below */
	uint32_t shared_chunk;	  /* positives that share a block of negatives; 0 or 1: none */
	float rare_weight;	  /* 1-vs-all: see below; 1: all answers weigh alike */
	uint32_t query_answers;	  /* 1-vs-all: at most so many of a query at a time; 0: all */
	bool filtered;		  /* negatives never a train triple */
	bool subsampling;	  /* frequent queries weigh less, as in RotatE's code */
	bool normalize;		  /* entity rows kept in the unit ball (OpenKE's TransE) */
	uint32_t threads;
	uint64_t seed;
	struct kge_dp_config dp; /* then `batch` and `seed` say nothing */
};

/* Softmax with negatives = 0 (1-vs-all) asks each query (known, relation, side) of train once
 * an epoch, for all of its answers at a time, or for query_answers of them, so that a popular one
 * comes in several batches and rules none: the loss is the mean over answers, `batch` counts
 * queries or such parts of one, both sides are asked unless corrupt says tail, and filtered and
 * shared_chunk say nothing, since the other true answers are among the candidates. */

/* Against all entities an answer weighs rare_weight + (1 - rare_weight) * count / most, where its
 * entity is in so many triples of train and the most frequent one in `most`; a batch is a mean by
 * these weights (DURA's code, 0.1 for WN18RR).  What is added for each positive, relation
 * prediction and regularizers, is not weighed. */

/* With subsampling a query of (h, r, t) weighs 1 / sqrt(count(h, r) + count(r, t) + 6), and a batch
 * by the sum of its weights; the counts are of triples of train, the 6 is RotatE's code's. */

/* The defaults of agent.yaml. */
void kge_train_defaults(struct kge_train_config *c);
/* ERR_USAGE with the key and what is allowed. */
int kge_train_check(const struct kge_train_config *c, struct err *e);
/* Whether two runs give the same bits: not when several threads race, nor with private noise. */
bool kge_train_repeats(const struct kge_train_config *c);
/* What its bits hang on besides settings and graph: kge_arithmetic(), and OpenBLAS's processor
 * where that multiplies ("avx512, OpenBLAS for SkylakeX"). */
enum { KGE_ARITHMETIC_TEXT = 64 };
void kge_train_arithmetic(const struct kge_train_config *c, const struct kge_model *m,
			  char out[KGE_ARITHMETIC_TEXT]);

/* ERR_USAGE where the model has no part in what is asked (a trainer made all the same leaves it
 * out): relation prediction, DURA and bfloat16 are of bilinear models. */
int kge_train_check_model(const struct kge_train_config *c, const struct kge_model *m,
			  struct err *e);

/* ERR_USAGE when a batch against all of n_ent entities would take too much memory (a trainer
 * made all the same takes fewer queries in a batch). */
int kge_train_check_size(const struct kge_train_config *c, uint32_t n_ent, struct err *e);

/* About what a triple of train takes, with the answers of its queries. */
enum { KGE_TRIPLE_BYTES = 48 };

/* Positives, against all entities queries, that a batch has at most; triples: of train, 0: any. */
size_t kge_train_batch_most(const struct kge_train_config *c, uint32_t n_ent, size_t triples);
/* What tables of this shape take in training: rows and the optimiser's state. */
double kge_train_table_bytes(const struct kge_train_config *c, const struct kge_emb *shape);
/* With what a batch needs, but not the graph, nor what little racing threads have. */
double kge_train_bytes(const struct kge_train_config *c, const struct kge_emb *shape,
		       size_t triples);

struct kge_trainer;

/* Borrows graph and emb until freed.  emb may be changed by the caller between epochs. */
struct kge_trainer *kge_trainer_new(const struct kge_train_config *c, const struct graph *g,
				    struct kge_emb *emb);
void kge_trainer_free(struct kge_trainer *t);
/* Private training alone: whence its randomness comes; by default libsodium's. */
void kge_trainer_set_draw(struct kge_trainer *t, secret_draw_fn *draw, void *ctx);
/* Private training alone, and for the controls of an audit alone: other noise than what ships.  No
 * setting leads here, and nothing in agent/, cli/ or fed/ calls it (tests/audit/seams.sh). */
void kge_trainer_plant_noise(struct kge_trainer *t, kge_dp_noise_fn *noise);
/* One pass over train, or kge_dp_epoch_steps() private steps; *loss is the mean over what was
 * asked, NAN when private, for it is not covered.  *cancel (may be NULL) set to
 * true ends it early at a batch border with ERR_CANCELED; that epoch is not counted.  Saved
 * as it is then and loaded, a trainer goes on with the rest of it; otherwise the next
 * epoch is a whole one (as it always is with private steps and with terms on rows). */
int kge_trainer_epoch(struct kge_trainer *t, double *loss, const atomic_bool *cancel);
/* Loaded in the middle of an epoch, with which it will go on. */
bool kge_trainer_is_resuming(const struct kge_trainer *t);
/* Forget the moments, as the papers do at each federated round. */
void kge_trainer_reset_optimizer(struct kge_trainer *t);
uint64_t kge_trainer_epochs(const struct kge_trainer *t); /* counted so far */
/* As if so many epochs had been counted in all and the moments then forgotten: draws from now on
 * are as they would be after those epochs, whatever was drawn before.  Not private. */
void kge_trainer_seek(struct kge_trainer *t, uint64_t epochs);
/* Appends everything a resumed run needs besides the tables, config and graph. */
void kge_trainer_save(const struct kge_trainer *t, struct buf *out);
/* The same bytes, given to put() piece by piece: nothing is held twice. */
void kge_trainer_save_to(const struct kge_trainer *t,
			 void (*put)(void *ctx, const void *bytes, size_t n), void *ctx);
/* ERR_INPUT, with the trainer as it was, if the bytes are not of a trainer with the same
 * shapes, optimiser, update, seed and number of threads.  That the rest of the config and the
 * graph are the same is for the caller to see to. */
int kge_trainer_load(struct kge_trainer *t, const uint8_t *bytes, size_t n, struct err *e);

#endif
