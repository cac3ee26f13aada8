/* fed/methods/fedcqa.h - FedCQA and its baselines (Hu and others 2024; methods 5.2, Algorithm 2):
 * an encoder of queries (encode/) that members train together.
 *
 * The agent's own tables, of links, train as ever and stay here.  Beside them is the encoder's
 * table, which travels:
 *
 *   entities   a row each, as anchors and as what encodings are compared with
 *   relations  two rows side by side, of r and of ^r
 *   Theta      what steps, AND and OR compute with, cut into rows behind the entities'; all members
 *              have all of it, so its mean is FedAvg
 *
 *   fedcqa     entity rows and Theta: FedCQA under secret aggregation, FedE where rows are plain
 *   fedcqa_r   relation rows and Theta: FedR
 *
 * Queries are drawn from the agent's own graph: train to learn from, valid to look by.  A graph
 * that gives none to learn from takes part with rows that it has not trained. */
#ifndef FED_METHODS_FEDCQA_H
#define FED_METHODS_FEDCQA_H

#include "encode/draw.h"
#include "fed/method.h"

/* Of the best encoder. */
struct fedcqa_head {
	uint64_t step; /* of its training */
	uint64_t queries, valid_queries;
	struct query_figures valid;
};

struct fedcqa {
	struct fed_part base;
	struct kge_emb *rows;  /* the encoder's table, Theta behind its entities */
	struct encode_model m; /* over rows */
	struct kge_emb *best;  /* NULL: no look yet */
	struct fedcqa_head head;
	struct encode_corpus corpus;
	struct encode_look valid;
	struct encode_trainer *t; /* NULL: not trained since the start, or nothing to train on */
	bool drawn, looked;	  /* the corpus, the look */
	struct buf moments;	  /* of the trainer, until there is one */
};

/* In the order of enum fedcqa_constants: all that members must agree on, and no more. */
#define FEDCQA_COMMON                                                                              \
	.scored = FED_SCORED_OWN,                                                                  \
	.constant = { { "encoder", 0, 0, 2, "0: GQE, 1: Query2Particles, 2: a tree-LSTM" },        \
		      { "dim", 400, 2, 1024, "numbers of a vector, even" },                        \
		      { "particles", 2, 1, ENCODE_PARTICLES_MAX,                                   \
			"of Query2Particles: vectors of a query" },                                \
		      { "steps", 50, 1, 1e6, "of the encoder's training, a round" },               \
		      { "batch", 512, 1, 65536, "queries a step" },                                \
		      { "lr", 1e-3, 1e-8, 1, "learning rate of AdamW" },                           \
		      { "dropout", 0.1, 0, 0.99, "share of numbers left out in training" },        \
		      { "queries", 4000, 1, 1e6,                                                   \
			"to train on, of each type, drawn from train" } },                         \
	.part_size = sizeof(struct fedcqa), .init = fedcqa_init, .release = fedcqa_release,        \
	.save = fedcqa_save, .load = fedcqa_load, .shared_table = fedcqa_table, .beside = true,    \
	.dense = fedcqa_dense, .train_beside = fedcqa_train, .look = fedcqa_look,                  \
	.end = fedcqa_end

int fedcqa_init(struct fed_part *base, struct err *e);
void fedcqa_release(struct fed_part *base);
void fedcqa_save(const struct fed_part *base, struct buf *out);
int fedcqa_load(struct fed_part *base, const uint8_t *bytes, size_t n, struct err *e);
struct kge_emb *fedcqa_table(const struct fed_part *base);
uint32_t fedcqa_dense(const struct fed_part *base);
int fedcqa_train(struct fed_part *base, struct fed_training *t);
bool fedcqa_look(struct fed_part *base, const struct fed_training *t, double *score);
void fedcqa_end(struct fed_part *base, unsigned stage);

/* The encoder that was best at a look, over the part's arrays.  false: the part is of another
 * method, or there was none. */
bool fedcqa_best(const struct fed_part *base, struct encode_model *out, struct fedcqa_head *head);

#endif
