/* lab/experiment.h - several agents and several methods on one data set (methods 4, 7).
 *
 *   FILE.yaml -> variants x seeds -> runs (experiment_run.c), one JSON file each
 *             -> results.csv, report.md, curves.svg (experiment_show.c)
 *
 * A run plays all agents in one process in virtual time, rounds over fed/local.h and pairs over
 * lab/virtual.h, so it is a function of the file and its seed; or (agents: processes) each is a
 * `fkge serve` of its own, over TCP on loopback.  A finished run is not made again, and an
 * interrupted one goes on: from its last saved validation with the same bits, or from the agents'
 * stores.  Early stopping and what is kept go by valid alone; test is ranked once, at the end, and
 * looks at valid know nothing of it (lab/work.h). */
#ifndef LAB_EXPERIMENT_H
#define LAB_EXPERIMENT_H

#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "config/config.h"
#include "fed/local.h"
#include "fed/method.h"
#include "kge/unlearn.h"
#include "lab/cqa.h"
#include "lab/out.h"
#include "query/search.h"

enum {
	EXPERIMENT_SEEDS_MAX = 16,
	EXPERIMENT_FILE_MAX = 1 << 20,
	EXPERIMENT_DIGEST = 32, /* hexadecimal digits */
	EXPERIMENT_PACES_MAX = 16,
};

enum exp_kind {
	EXP_SINGLE,	/* each agent alone: the control arm, with equal training */
	EXP_COLLECTIVE, /* one table over the union of all graphs: what nobody would share */
	EXP_ROUNDS,	/* a method of fed/ */
	EXP_PAIRS,	/* agents that meet two at a time (agent/core/), in lab/virtual.h */
	EXP_UNLEARN,	/* what another variant has learnt is partly forgotten (FedLU) */
	EXP_ENCODERS,	/* trained encoders of queries (lab/cqa.h) */
};
/* In an experiment with a section `queries`: who answers them over tables that are trained as
 * EXP_SINGLE or (central) EXP_COLLECTIVE says. */
enum exp_search {
	EXP_NO_SEARCH,
	EXP_SEARCH_LOCAL,     /* each owner its own, over its tables alone */
	EXP_SEARCH_CENTRAL,   /* one table of all */
	EXP_SEARCH_FEDERATED, /* each step at the owners of its relation (query/owners.h) */
};
/* Which look at valid the tables are of: for all agents the one that was best by the mean; or each
 * agent's own best one, as agents do that nobody leads (and FedLU's code). */
enum exp_keep { EXP_TOGETHER, EXP_EACH };
/* What unlearning adds to the teaching of the other table: FedLU's ablations leave one out. */
enum exp_confusion { EXP_CONFUSION_BOTH, EXP_CONFUSION_HARD, EXP_CONFUSION_SOFT };
enum exp_average { EXP_QUERIES, EXP_TRIPLES, EXP_PLAIN }; /* weights of the mean over agents */

/* Of one agent, by its name: what it computes takes so many times as long, or it is away for as
 * many seconds as it is there (lab/pace.h). */
struct exp_pace {
	char agent[64];
	double slow, away_s;
};

/* A setting that one agent has for itself. */
struct exp_own {
	char *agent, *section, *key, *value;
};

/* EXP_ROUNDS: how much of a round an agent takes in; as its valid says (fed/weight.h); nothing: the
 * control arm whose optimizer begins anew in each round, as that of rounds does. */
enum exp_weight { EXP_WEIGHT_ALL, EXP_WEIGHT_VALID, EXP_WEIGHT_NONE };

/* What is asked, and of whom: the section `queries`, and `queries.KEY` of a variant. */
struct exp_queries {
	unsigned types; /* bit p: enum query_pattern p */
	/* Of a type: to train on and of valid, of each owner; of test, of each owner and across */
	uint64_t count, valid_count, test_count, cross_count;
	uint64_t answers, seed; /* of a query, at most; of the queries of test */
	/* EXP_ENCODERS */
	int encoder;			       /* enum encode_kind */
	uint64_t dim, particles, batch, steps; /* steps of each owner, a round */
	double lr, decay, smoothing, dropout;
	/* search; what goes to an owner and comes back (query/owners.h).  want 0: all of it */
	uint64_t beam, points, want_known, want;
	int norm; /* enum query_norm */
};

/* What an agent takes in. */
struct exp_taken {
	enum exp_weight weight;
	uint32_t weight_from; /* valid: the round from which valid decides */
	/* valid, keep each: looks at which a copy that trains alone may be what is kept, as an
	 * agent's rounds.compare_rounds; 0: none but what the choice needs */
	uint32_t compare_rounds;
	bool judge; /* whose rows hurt on valid is left out (fed/round_judge.c) */
	bool bound; /* rows far from the others' are kept out (fed/round_bound.c) */
};

struct exp_variant {
	char *name;
	char *published, *published_shared; /* what the paper's table calls it, and the table
					     * that travels; "": not in it */
	enum exp_kind kind;
	struct config config; /* model, train and eval; the rest is not used */
	struct fed_settings settings;
	uint32_t rounds, epochs;       /* at most; local, a round */
	uint32_t eval_every, patience; /* rounds; validations without a better score, 0: never */
	/* FedLU: teaching waits for validations, as in its code (methods 4.1).  The avatar is
	 * taught from the first validation at which the local tables gain nothing or, from warm_up
	 * on, either kind gains no more than this; the local table from the first at which the
	 * avatars gain nothing.  0: both begin at warm_up */
	double stall;
	enum exp_keep keep;
	bool processes; /* EXP_ROUNDS: agents are processes over TCP; then keep is EXP_EACH */
	enum fed_start start;
	struct exp_taken taken; /* EXP_ROUNDS */
	bool retained;		/* trained without what is to be forgotten */
	struct exp_pace pace[EXPERIMENT_PACES_MAX];
	size_t n_pace;
	struct exp_own *own; /* EXP_PAIRS */
	size_t n_own;
	enum cqa_arm arm; /* EXP_ENCODERS */
	enum exp_search search;
	struct exp_queries queries; /* of an experiment that asks */
	char *unlearn;		    /* EXP_UNLEARN: the variant whose tables forget; else "" */
	enum kge_unlearn_variant weights;
	enum exp_confusion confusion;
};

struct experiment {
	char *name, *folder;	   /* of the file, by which its paths go */
	char *data;		   /* one folder an agent */
	char *names;		   /* a file AGENT.tsv an agent, own name TAB shared name; or "" */
	char *published, *dataset; /* a file of published figures, and what it calls this; or "" */
	uint32_t clients;	   /* of the published figures those with so many; 0: all */
	char *reference;	   /* the variant by which parameters are compared, or "" */
	bool asks;		   /* there is a section `queries`: all variants are of queries */
	enum exp_average average;
	double forget; /* share of each agent's train, drawn by lot, that is to be forgotten */
	uint64_t seeds[EXPERIMENT_SEEDS_MAX];
	size_t n_seeds;
	struct exp_variant *at;
	size_t n;
	char digest[EXPERIMENT_DIGEST + 1]; /* of the data, by experiment_digest(), or "" */
	bool gone; /* the data is not there, or is not the file's: the digest is of what was run */
	uint32_t until; /* stop at the first validation from this round on; 0: no */
	/* What a run has come to by its number of rounds is kept, so that a larger number goes on
	 */
	bool keeps_states;
};

/* ERR_USAGE names file and line.  Release in any case. */
int experiment_read(struct experiment *x, const char *path, struct err *e);
void experiment_release(struct experiment *x);

/* The settings of one agent of pairs; release them.  ERR_USAGE. */
int experiment_own_settings(const struct exp_variant *v, const char *agent, struct config *out,
			    struct err *e);
const struct exp_variant *experiment_find(const struct experiment *x, const char *variant);
/* The variant's tables are unlearned by another one, so they are kept. */
bool experiment_is_unlearned(const struct experiment *x, const struct exp_variant *v);
/* The variant's figures are of the forgotten triples too. */
bool experiment_forgets(const struct experiment *x, const struct exp_variant *v);
/* Places in a train of that many, in order, which an agent of this name is to forget with this
 * seed; free() them. */
uint32_t *experiment_choose_forgotten(double share, uint64_t seed, const char *agent, size_t train,
				      size_t *n);

/* Says which folders in `data` are no agents, and which files of an agent's are not read. */
void experiment_note_folders(const struct lab_out *notes, const struct experiment *x);
/* A digest of the agents' data, wherever it lies: their names, files of triples and names. */
int experiment_digest(struct experiment *x, struct err *e);
/* Where only tables are wanted: of the data or, where that is not there, what most records in OUT
 * are of (of as many the first in the file), which a note says. */
void experiment_digest_to_show(const struct lab_out *notes, struct experiment *x, const char *out);
/* Its figures are of tables as a round leaves them (FedE), not as agents have trained them. */
bool experiment_is_aggregated(const struct exp_variant *v);
/* Of agent.yaml: the variant may say this section. */
bool experiment_has_section(const struct exp_variant *v, const char *section);
/* Of agent.yaml's keys that the variant's sections have, SECTION.KEY: a run goes by what it says.
 */
bool experiment_goes_by(const struct exp_variant *v, const char *key);
/* Of sections as config_print_section() has them: the lines that a run goes by. */
void experiment_add_used(const struct exp_variant *v, const char *text, struct buf *out);
/* All that a run's figures depend on but the data: in its record, and shown. */
json_t *experiment_settings_json(const struct experiment *x, const struct exp_variant *v);
/* All that its tables depend on: of search, not what is asked of them. */
json_t *experiment_tables_json(const struct experiment *x, const struct exp_variant *v);
/* The record, or head of a state, is of a run of the data whose digest is known; if none is, yes.
 */
bool experiment_is_of_data(const struct experiment *x, const json_t *record);
/* And with the settings of now. */
bool experiment_is_of_now(const struct experiment *x, const struct exp_variant *v,
			  const json_t *record);

/* The head of a state is of tables of this data with the settings of now but for the number of
 * rounds, and has not come further than that is now, nor to where the other number made it look at
 * valid. */
bool experiment_goes_on_from(const struct experiment *x, const struct exp_variant *v,
			     const json_t *head);
/* So it is, but a copy that trains alone (weight: valid) was decided about in its last round since
 * no other came, or would be in what is the last one now: no run of another number of rounds has
 * these tables. */
bool experiment_ends_otherwise(const struct experiment *x, const struct exp_variant *v,
			       const json_t *head);
/* This number of rounds for all variants that train; `settings` of agent.yaml that say it, too.
 * ERR_USAGE: pairs cannot have so few. */
int experiment_set_rounds(struct experiment *x, uint32_t rounds, struct err *e);
/* Its state stays when it is over. */
bool experiment_keeps_state(const struct experiment *x, const struct exp_variant *v);

/* One run; *record is what is kept of it, NULL when it was stopped by `until`.  A run that was
 * interrupted goes on from what it has left in OUT.  ERR_CANCELED when *cancel was set. */
int experiment_run(const struct lab_out *notes, const struct experiment *x,
		   const struct exp_variant *v, uint64_t seed, const char *out,
		   const atomic_bool *cancel, json_t **record, struct err *e);

/* OUT/runs/VARIANT-seedN.json, or .state: the tables, while they are needed; free() it. */
char *experiment_record_path(const char *out, const struct exp_variant *v, uint64_t seed);
char *experiment_state_path(const char *out, const struct exp_variant *v, uint64_t seed);
/* How far a run is, with the settings of now, that has begun and is not over: `done` rounds,
 * `best`, `best_round`, `curve`; NULL: there is none.  json_decref() it. */
json_t *experiment_under_way(const struct experiment *x, const struct exp_variant *v,
			     const char *out, uint64_t seed);
/* OUT/runs/VARIANT-seedN.agents: the folders of agents that are processes; free() it. */
char *experiment_agents_path(const char *out, const struct exp_variant *v, uint64_t seed);
void experiment_remove_agents(const char *out, const struct exp_variant *v, uint64_t seed);
/* results.csv, report.md and curves.svg from the records that are there.  left_by: the options by
 * which runs of other settings were not made again, for a note, as "--show". */
int experiment_show(const struct lab_out *notes, const struct experiment *x, const char *out,
		    const char *left_by, struct err *e);

#endif
