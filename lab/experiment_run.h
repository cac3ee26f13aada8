/* lab/experiment_run.h - inside one run of an experiment: all agents of one variant with one seed.
 *
 * experiment_run.c      rounds of training, the record
 * experiment_look.c     scores of one agent and of all
 * experiment_agents.c   graphs and names, which triples are to be forgotten
 * experiment_state.c    what an interrupted run, and one that is to be unlearned, leave on disk
 * experiment_unlearn.c  FedLU's unlearning of a run that is over
 * experiment_pairs.c    agents that meet in pairs
 * experiment_queries.c  encoders of queries, and search over the tables
 * experiment_processes.c, experiment_folders.c  agents that are processes
 *
 * Only these include it. */
#ifndef LAB_EXPERIMENT_RUN_H
#define LAB_EXPERIMENT_RUN_H

#include "fed/local.h"
#include "fed/weight.h"
#include "graph/alias.h"
#include "kge/eval.h"
#include "lab/cqa_questions.h"
#include "lab/experiment.h"
#include "lab/virtual.h"

enum exp_figures {
	OF_VALID,
	OF_SHARED_VALID, /* where teaching waits for it */
	OF_TEST,
	OF_SHARED_TEST,
	OF_FORGOTTEN,
	OF_SHARED_FORGOTTEN,
	EXP_FIGURES
};

/* FedLU's two tables. */
enum { LOCAL, AVATAR, TAUGHT };

/* What an agent takes in of a round (fed/weight.h). */
struct taken {
	struct kge_emb *trained; /* before this round's averaging; NULL: all is taken in */
	bool is_trained;	 /* it is of this round */
	bool cut_off;		 /* the copy's training, by the owner */
	struct kge_emb *alone; /* trained alone from its first round on, until valid decides ... */
	struct fed_weight_copy choice;
	bool chosen;	 /* ... which it has */
	bool took_alone; /* for the copy */
	uint32_t looks;	 /* at which the copy might have been what is kept */
	bool is_copy;	 /* what is validated; kept_copy: what is best */
	bool kept_copy;
	double weight;
	uint32_t rounds; /* in which it took part */
};

struct client {
	char *name;
	struct graph *graph;
	struct graph blind; /* what training and looks at valid see: no test, maybe not all of
			     * train */
	struct graph_aliases *names; /* of entities; relations go by their own */
	json_t *named;		     /* what became of their file; NULL: there is none */
	uint32_t *forget;	     /* [n_forget] ascending places in train; NULL: none */
	size_t n_forget;
	bool lacks;			  /* blind is without them */
	struct kge_emb *emb;		  /* what is trained */
	struct kge_emb *validated, *best; /* at the last validation; at the best one */
	/* The table that travels, where the method has one of its own (FedLU's global one); else
	 * NULL */
	const struct kge_emb *shared;
	struct kge_emb *shared_validated, *shared_best;
	struct kge_metrics m[EXP_FIGURES];
	struct taken taken;
	bool is_looked_at;    /* in this round, as it had trained */
	const struct run *of; /* the run that it is in */
	double best_mrr;      /* of `best` on valid */
	uint32_t best_round;
	uint32_t rounds;     /* of pairs: all; of a process in rounds: in which it took part, */
	uint64_t wire_bytes; /* and what it has sent on its links, all that goes over them */
	struct kge_trainer *trainer; /* of the control arm */
	struct pace pace;
	struct config *own;	    /* EXP_PAIRS: its settings; else NULL: the variant's */
	struct virtual_figures met; /* EXP_PAIRS */
	uint64_t best_ms;	    /* EXP_PAIRS: virtual time of `best` */
};

/* All graphs in one. */
struct pool {
	struct graph *graph;
	struct kge_emb *emb;
	struct kge_trainer *trainer;
	uint32_t **ent, **rel; /* [agent][local id]: id in the pool */
};

struct run {
	const struct lab_out *notes;
	const struct experiment *x;
	const struct exp_variant *v;
	uint64_t seed;
	const char *out; /* the experiment's folder */
	const atomic_bool *cancel;
	struct client *at;
	size_t n;
	struct pool pool;	 /* EXP_COLLECTIVE */
	struct fed_local *local; /* EXP_ROUNDS, EXP_UNLEARN */
	struct virtual *pairs;	 /* EXP_PAIRS */
	struct cqa *cqa;	 /* EXP_ENCODERS */
	struct cqa_options asked;
	struct cqa_questions questions; /* of search */
	uint64_t virtual_ms;		/* so far */
	struct progress bar;
	bool validating; /* this round ends with a validation */
	double loss;	 /* mean over the agents, of the last local epoch */
	/* what has gone over the wire, all agents, both ways: as the papers count, and as sent */
	uint64_t params, bytes, most_bytes;
	uint64_t *bytes_of; /* [n] through one agent */
	json_t *curve;
	double best;
	uint32_t best_round, worse;
	/* FedLU with a stall: the avatars' best mean, and the validations from which on each table
	 * is taught; 0: not yet */
	double best_shared;
	uint32_t teaching[TAUGHT];
	uint32_t round;		       /* the one under way, from 1 */
	uint32_t done;		       /* up to the last validation */
	bool over;		       /* nothing is left to train */
	bool open;		       /* before this round a copy was still to be chosen about */
	double before_s, before_cpu_s; /* of processes that ended before this one */
	double began_s, began_cpu_s;
	double saved_at_s, save_cost_s;
	/* EXP_UNLEARN: how it went, agent by agent; the mean of the figures after the exchange,
	 * and after one of tables that have not forgotten anything */
	json_t *unlearned, *exchanged, *raw_exchanged;
};

/* ---- experiment_agents.c ---- */

/* NAMES/AGENT.tsv; NULL: names are everybody's own.  free() it. */
char *experiment_names_path(const struct experiment *x, const char *agent);
int experiment_load_agents(struct run *r, struct err *e);
/* Those triples are what the figures are about; the tables may have learnt them or not. */
bool experiment_has_forgotten(const struct run *r);

/* ---- experiment_look.c ---- */

/* What each agent's score on valid is, in their order. */
json_t *experiment_scores_json(const struct run *r);
/* Of at most `limit` of the valid triples that experiment_evaluate() takes (0: all of them): as
 * kge_reciprocal_ranks(). */
int experiment_rank_some(const struct run *r, const struct kge_emb *emb, const struct graph *g,
			 uint32_t limit, double **each, size_t *n);
/* A validation of one agent's table: it is ranked on valid. */
void experiment_evaluate(struct run *r, size_t agent, const struct kge_emb *emb);
void experiment_mean_of(const struct run *r, enum exp_figures of, struct kge_metrics *out);
/* The tables of the last validation are this agent's best now. */
void experiment_hold(struct run *r, size_t agent);
/* By its protocol; on valid without test, and as many triples as eval.valid_limit says. */
void experiment_rank_split(const struct run *r, const struct kge_emb *emb, const struct graph *g,
			   enum graph_split split, struct kge_metrics *out);
/* Of an agent in the mean: each triple of a split is as many queries, also of those that a sample
 * of valid leaves out.  0 where nothing was asked: there is no score. */
double experiment_weight_of(const struct run *r, size_t i, enum exp_figures of);

/* ---- experiment_run.c ---- */

uint64_t experiment_seed_of(const struct run *r, size_t agent);
struct kge_train_config experiment_training_of(const struct run *r, size_t agent);
bool experiment_canceled(const struct run *r);
/* Test and forgotten triples, by these tables; shared may be NULL. */
void experiment_rank(struct run *r, size_t agent, const struct kge_emb *emb,
		     const struct kge_emb *shared);
/* The figures of the last ranking, of one agent, or of all of them (r->n): test, test_shared,
 * forgotten, forgotten_shared, where there are such. */
json_t *experiment_figures_json(const struct run *r, size_t agent);
/* A federation of the agents over their tables, instead of one that there was; what its rounds send
 * is counted. */
int experiment_open_rounds(struct run *r, uint32_t epochs, enum fed_start start, struct err *e);
void experiment_count_traffic(struct run *r);
/* FedLU with a stall: who is taught, by r->teaching, from the next round on. */
void experiment_set_teaching(struct run *r);
double experiment_seconds(const struct run *r, bool cpu);

/* ---- experiment_state.c ---- */

/* After a validation: when it is time, or must be. */
int experiment_keep(struct run *r, bool must, struct err *e);
/* Go on from what is on disk, if it is of this run; a note says why not. */
int experiment_take_up(struct run *r, struct err *e);
/* The best tables of another variant's run of this seed that is over. */
int experiment_take_best(struct run *r, const struct exp_variant *from, struct err *e);

/* The head on disk is of this seed, with the data and settings of now. */
bool experiment_is_head_of(const struct run *r, const struct exp_variant *v, const json_t *head);

/* ---- experiment_folders.c ---- */

struct folders {
	char *path;   /* OUT/runs/VARIANT-seedN.agents */
	int lock;     /* file descriptor, or -1 */
	json_t *head; /* of run.json */
};

/* Makes the agents, or finds those that an interrupted run has left, ends them if they still run
 * and gives them new addresses; experiment_folders_settle() writes those that they listen on.
 * ERR_BUSY: another experiment is at work there.  Close in any case. */
int experiment_folders_open(struct folders *f, struct run *r, struct err *e);
void experiment_folders_close(struct folders *f);
/* agent.yaml of all: the variant's settings, and so many rounds at most. */
int experiment_folders_settle(const struct folders *f, const struct run *r, uint32_t max,
			      struct err *e);
int experiment_folders_save(const struct folders *f, struct err *e); /* run.json */
/* An agent's folder, or with a suffix what is beside it; free() it. */
char *experiment_folders_path(const struct folders *f, const struct run *r, size_t agent,
			      const char *suffix);

/* ---- experiment_processes.c ---- */

int experiment_processes(struct run *r, struct err *e);

/* ---- experiment_pairs.c ---- */

int experiment_pairs(struct run *r, struct err *e);
/* What meeting has taken: of one agent, of all. */
void experiment_put_met(const struct run *r, size_t agent, json_t *into);
void experiment_put_all_met(const struct run *r, json_t *into);

/* ---- experiment_unlearn.c ---- */

int experiment_unlearn(struct run *r, struct err *e);

#endif
