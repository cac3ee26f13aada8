/* ranks/trainer_internal.h - a trainer, as each rank has one: for trainer.c, its setup and its
 * state. */
#ifndef RANKS_TRAINER_INTERNAL_H
#define RANKS_TRAINER_INTERNAL_H

#include "disk/buckets.h"
#include "kge/portion.h"
#include "kge/ranking.h"
#include "ranks/portions.h"
#include "ranks/relations.h"
#include "ranks/trainer.h"

/* The order of rank 0's after which all others are in ranks_whole_work(). */
enum { RANKS_ORDER_WHOLE = 100 };

/* Sums over a rank's life, which it tells after each step. */
struct ranks_told {
	double loss; /* of the step */
	uint64_t moved, related;
};

struct ranks_trainer {
	struct ranks_comm *comm;
	struct kge_train_config c;
	struct kge_emb shape; /* of the whole tables */
	size_t n_triples;
	struct disk_parts parts;
	struct disk_buckets buckets;
	struct ranks_portions portions;
	struct kge_ranking *ranking;
	struct kge_emb *emb; /* rows of two slots; relations */
	float *copies[DISK_COPIES_MAX];
	float *best_rel;
	struct kge_trainer *trainer;
	struct ranks_relations relations;
	uint64_t moves; /* so far: they say what is where, and the step of the epoch */
	uint64_t began; /* moves when it was made or loaded */
	double loss;	/* of the epoch so far, all ranks' */
	bool changed;	/* rows in memory are not those in the files */
	struct kge_metrics metrics;
	struct ranks_told *told; /* by rank */

	/* what an order of rank 0's is about */
	const struct ranks_job *job;
	struct rng *first;
	const struct kge_emb *from;
	const uint8_t *bytes;
	size_t n_bytes;
};

/* ---- ranks/setup.c ---- */

/* A trainer that has no tables yet: rank 0's by t->job, the others' by what rank 0 tells. */
int ranks_setup(struct ranks_trainer *t, struct err *e);
void ranks_release(struct ranks_trainer *t);
/* Tables of zeros, with a trainer of them. */
void ranks_make_tables(struct ranks_trainer *t);
/* Triples that are zeros, of entities and relations named by their numbers. */
struct graph *ranks_graph_of_numbers(uint32_t n_ent, uint32_t n_rel, size_t n_train,
				     size_t n_valid);
/* The partitions' first files and relation rows. */
int ranks_fill(struct ranks_trainer *t, struct err *e);

/* ---- ranks/state.c ---- */

/* t->bytes of rank 0, into every rank's. */
int ranks_take_state(struct ranks_trainer *t, struct err *e);
uint32_t ranks_step_of(const struct ranks_trainer *t); /* of the epoch */
uint32_t ranks_part_in(const struct ranks_trainer *t, uint32_t rank, uint32_t slot);

#endif
