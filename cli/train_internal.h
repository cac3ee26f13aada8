/* cli/train_internal.h - a training, for cli/train.c and, past memory, cli/train_past.c. */
#ifndef CLI_TRAIN_INTERNAL_H
#define CLI_TRAIN_INTERNAL_H

#include "agent/core/learner.h"
#include "cli/cli.h"
#include "disk/trainer.h"
#include "lab/curve.h"
#include "lab/saved.h"
#include "lab/work.h"
#include "ranks/trainer.h"
#include "ranks/whole.h"

enum { DIGEST = 32 };

struct graph_size {
	uint32_t entities, relations;
	size_t train, valid, test;
};

/* Training past memory: the tables are on disk (disk/), or with several ranks (ranks/), and the
 * graph is not kept. */
struct past {
	bool on;
	struct disk_plan plan;
	struct disk_trainer *trainer; /* of this process alone, */
	struct kge_ranking *ranking;  /* which ranks valid by this; */
	struct ranks_trainer *ranks;  /* or of several */
	struct ranks_comm *comm;      /* NULL: this process is alone */
	bool whole;		      /* ranks have whole tables, nothing is past memory: */
	struct ranks_whole *among;
	bool stored;		     /* the best tables go to the store, for they fit into memory */
	uint8_t names[STORE_DIGEST]; /* digest of the graph's */
	struct kge_metrics metrics;
};

struct plan {
	uint32_t total;	   /* epochs, at most */
	uint32_t every;	   /* epochs from validation to validation */
	uint32_t patience; /* validations without a better score; 0: never stops */
	bool reset;	   /* forget the moments after each validation */
	bool backtrack;	   /* after a validation that found nothing better */
	bool by_rounds;	   /* total is not train.epochs */
};

/* Of a training begun anew: the store's best is of before, and becomes a saved one by our first. */
struct replaced {
	bool stays;
	uint8_t digest[DIGEST];
};

/* A better score in the store, which a training that goes on will find again. */
struct ahead {
	bool is_there;
	double score;
};

/* The state on disk. */
struct saving {
	bool is_there;
	bool mixed; /* it went on with another arithmetic: not what one go would have come to */
	double at_s, cost_s;
};

struct training {
	struct cli *cli;
	struct work work;
	struct agent_learner_kge *learner; /* NULL past memory: then */
	struct past past;
	struct agent_job job; /* cancel flag, loss */
	struct plan plan;
	uint32_t done, worse;	 /* epochs of the plan; validations since the best */
	bool validation_due;	 /* the epochs done end with one, which is not over */
	bool has_best, diverged; /* the last: a number of the tables is not finite */
	bool learnt_only;	 /* they began new, and have learnt this graph's train alone */
	double score;		 /* of the best, on valid */
	uint8_t digest[DIGEST];
	uint8_t graph_digest[STORE_DIGEST]; /* of all of it; */
	struct graph_size size;		    /* test is not kept, nor anything past memory */
	uint64_t epochs;		    /* behind the tables in work.emb */
	uint64_t epochs_best;
	uint32_t improved;
	struct replaced replaced;
	struct curve curve;
	/* resuming */
	uint8_t run[DIGEST]; /* names this training */
	struct ahead ahead;
	struct saving saving;
	struct progress bar;
	/* private training */
	bool private;
	struct ledger_statement terms; /* of its statements, but for number and steps */
	struct ledger_training spent;
	uint32_t paid; /* epochs that are charged and not yet run */
};

/* ---- cli/train_past.c ---- */

/* Of any training.  ERR_USAGE: the best tables, t->work.emb, are not what the settings would make.
 */
MUST_CHECK int train_check_tables(const struct training *t, struct err *e);
/* Whether it is past memory, in how many partitions.  ERR_USAGE: that cannot be. */
MUST_CHECK int train_past_decide(struct training *t, struct err *e);
/* The same of a training that goes on, by what it has saved.  ERR_INPUT */
MUST_CHECK int train_past_resume(struct training *t, const struct saved *s, struct err *e);
/* ERR_USAGE: the state at this path, which a training begun anew drops, is all that names the best
 * tables. */
MUST_CHECK int train_past_refuse(const struct training *t, const char *path, struct err *e);
/* ERR_USAGE: the best tables are a file, which training begun anew replaces, and no saved state. */
MUST_CHECK int train_past_keep(const struct training *t, struct err *e);
/* ERR_USAGE: it cannot begin by these settings, or not from what the agent has; nothing is changed
 * yet. */
MUST_CHECK int train_past_check(struct training *t, bool fresh, struct err *e);
/* Are the agent's tables of a training that diverged?  Says so. */
bool train_past_diverged(const struct training *t);
json_t *train_past_plan(const struct training *t); /* to be saved */
/* The trainer, of the graph, which goes. */
MUST_CHECK int train_past_make(struct training *t, struct err *e);
/* First tables: those that the agent has, or (fresh, or it has none) new ones.  *rescore: they are
 * the agent's, and their score is one of another protocol. */
MUST_CHECK int train_past_begin(struct training *t, bool fresh, bool *rescore, struct err *e);
MUST_CHECK int train_past_first(struct training *t, struct rng *r, const struct kge_emb *from,
				struct err *e);
MUST_CHECK int train_past_load(struct training *t, const uint8_t *bytes, size_t n, struct err *e);
MUST_CHECK int train_past_epoch(struct training *t, disk_pause_fn *pause, struct err *e);
MUST_CHECK int train_past_rank(struct training *t, double *score, struct err *e);
MUST_CHECK int train_past_keep_best(struct training *t, struct err *e);
/* The files of partitions first, then the state that names them. */
MUST_CHECK int train_past_save(struct training *t, const char *name, const json_t *head,
			       struct err *e);
bool train_past_made(const struct training *t);
/* The best tables into the agent's folder, or (past.stored) into t->work.emb, to be stored; sets
 * t->digest. */
MUST_CHECK int train_past_publish(struct training *t, struct err *e);
void train_past_put(struct training *t);
void train_past_release(struct training *t);

/* ---- cli/train_ranks.c ---- */

/* A rank above 0 follows orders until all is over: then true. */
bool train_ranks_works(struct training *t);
MUST_CHECK int train_ranks_decide(struct training *t, struct err *e);
/* ERR_USAGE: so many ranks trained then (0: one process), and as many do not now. */
MUST_CHECK int train_ranks_check_saved(const struct training *t, uint32_t then, struct err *e);
/* ERR_USAGE: ranks do not train by these settings, or not tables of this shape. */
MUST_CHECK int train_ranks_check(const struct training *t, const struct kge_emb *shape,
				 struct err *e);
MUST_CHECK int train_ranks_make(struct training *t, const struct kge_protocol *protocol,
				const struct kge_emb *shape, struct err *e);
/* The best tables into t->work.emb; sets t->digest. */
MUST_CHECK int train_ranks_gather(struct training *t, const struct kge_emb *shape, struct err *e);
void train_ranks_put(struct training *t);
/* Where ranks have whole tables: tells the others what is trained, and makes the learner that
 * trains with them. */
MUST_CHECK int train_ranks_make_learner(struct training *t, const struct kge_train_config *train,
					struct err *e);
MUST_CHECK int train_ranks_epoch(struct training *t, struct err *e);
MUST_CHECK int train_ranks_rank(struct training *t, double *score, struct err *e);

#endif
