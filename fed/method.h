/* fed/method.h - what one federated method does in a round (methods 4).
 *
 * A round (fed/round.h) trains locally and then exchanges rows, in one or more
 * stages.  A stage goes up and down: every holder of an item (an entity or a
 * relation that it shares with others) sends a row to the item's home, and the
 * home answers its holders.  The method decides what the rows are, and all of it stands in one file
 * fed/methods/NAME.c, which defines
 *
 *	const struct fed_method fed_NAME = { .name = "NAME", ... };
 *
 * and in one line of fed/meson.build.  Most of a method may be left out:
 *
 *   train  NULL: the epochs of the settings
 *   shape  NULL: one row up and one row down, both as wide as the table's
 *   up     NULL: the row of the table that travels
 *   home   NULL: every holder is told the mean over the rows that came.  Such a
 *          method *only needs sums*, and secret aggregation works with it; up() may
 *          then be asked for a row again, when a member was lost.
 *   down   NULL: the answer becomes the row of that table
 *
 * An agent's *part* in a method is what it keeps of it from round to round: a
 * struct of the method's own that begins with struct fed_part.  Functions of a
 * part run on a worker thread, one at a time, and touch nothing but the part
 * and the agent's tables.  They do no I/O and read no clock; what is drawn is
 * drawn from the part's generator.  Rows that came from others are finite and
 * within +-FED_VALUE_MAX, and that is all that is known of them. */
#ifndef FED_METHOD_H
#define FED_METHOD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/rng.h"
#include "kge/model.h"
#include "kge/train.h"

enum {
	FED_KEY = 32,	       /* an agent's public key: how a member is known */
	FED_MEMBERS_MAX = 64,  /* of one round: sets of members are 64 bits */
	FED_VALUES_MAX = 8,    /* constants of a method */
	FED_STAGES_MAX = 4,    /* of a round */
	FED_METHOD_MAX = 16,   /* bytes of a method's name, NUL included */
	FED_MODEL_MAX = 32,    /* of a model's */
	FED_FLOATS_MAX = 8192, /* in a row on the wire */
	FED_VALUE_MAX = 1000000,
	FED_TIME_MAX_MS = 86400000, /* a day: of any time in the settings */
};

enum fed_topology {
	FED_SHARDED, /* every item has its home among its holders (fed/home.h) */
	FED_HOSTED,  /* one member is home to all: the papers' server, kept for comparison */
};

/* The settings that the members of a round agree on.  They travel in the proposal. */
struct fed_settings {
	char method[FED_METHOD_MAX];
	double value[FED_VALUES_MAX]; /* of the method's constants, in their order */
	uint64_t number;	      /* of the round, from 0, over the federation's life */
	enum fed_topology topology;
	uint8_t host[FED_KEY];		 /* hosted: which member */
	char model[FED_MODEL_MAX];	 /* whose rows these are; "": not said */
	double gamma;			 /* of its scores and first rows; 0: not said */
	uint32_t ent_floats, rel_floats; /* in a row of the tables that are shared */
	uint32_t min_holders;		 /* items with fewer holders stay at home; 2 or more */
	double fraction;      /* of the members that are in a round (fed/draw.h), (0, 1] */
	uint32_t join_ms;     /* for answers to a proposal */
	uint32_t train_ms;    /* for local training */
	uint32_t stage_ms;    /* for each way of each stage */
	uint32_t secret_bits; /* of a masked word: 32 or 64; 0: rows are plain */
	double secret_clip;   /* masked values are cut at +-this (fed/mask.h) */
	/* Shared rows of tables that nobody has trained begin as fed_first_row() has them, with
	 * this seed.  For members to compare: the machine does not look at it. */
	bool equal_start;
	uint64_t start_seed;
};

/* A constant of a method, as in the papers. */
struct fed_constant {
	const char *key;
	double byword, min, max; /* byword: what it is when nothing is said */
	const char *help;
};

/* One thing that this agent shares with other members of the round. */
struct fed_item {
	uint64_t holders; /* bit m: member number m holds it (members are numbered by key) */
	uint32_t id;	  /* local; GRAPH_NONE at a host that does not hold it */
	char tag;	  /* 'e' or 'r' */
	uint8_t home;	  /* member number */
};

struct fed_items {
	const struct fed_item *at; /* entities by id, then relations by id */
	size_t n;
	/* [members] entities that we share with each, also those of too few holders to be items */
	const uint32_t *shared;
};

/* Floats that a stage moves.  Depends on the settings alone, so both ends know it. */
struct fed_shape {
	uint32_t up_ent, up_rel, down_ent, down_rel; /* a row; may be 0: presence alone */
	uint32_t note_up, note_down; /* beside the rows, once a holder and home; 0: none */
};

/* One item at its home, when all have sent what they will.  Members by number;
 * arithmetic goes through them in that order, so that the sum is the same at
 * whichever home, but where rows are bounded around its own (round_bound.c). */
struct fed_upload {
	const struct fed_item *item;
	const float *const *row;   /* [members] of this stage; NULL: it sent none of this item */
	const float *const *first; /* [members] of stage 0, as long as the round lasts */
	const float *const *note;  /* [members] notes of this stage; NULL: none came */
	unsigned members, stage;
	uint64_t present; /* who holds the item and has taken part in this stage up to now */
};

/* One agent's share in a federation's method, from round to round. */
struct fed_part {
	const struct fed_method *method;
	struct fed_settings settings; /* of the round under way, or of the last one */
	struct kge_emb *emb;	      /* the agent's tables; borrowed */
	uint32_t floats[2];	      /* in a shared row: of an entity, of a relation */
	uint64_t rounds;	      /* that this agent had a part in before this one */
	uint64_t before;      /* epochs that the tables had trained before the first round */
	unsigned members, me; /* of the round under way: how many; this agent's number */
	struct rng rng;
};

struct kge_mutual; /* kge/mutual.h */
struct kge_terms;  /* kge/terms.h */

/* Local training of one round. */
struct fed_training {
	const struct graph *graph;
	const struct kge_train_config *config;
	struct kge_trainer *trainer; /* over part->emb; its moments are forgotten at each round */
	uint32_t epochs;
	const atomic_bool *cancel; /* may be NULL */
	double loss;		   /* out: of the last epoch */
	struct err why;		   /* out: with a status that is neither 0 nor ERR_CANCELED */
};

enum fed_scored {
	FED_SCORED_SHARED, /* the table after aggregation (FedE's code) */
	FED_SCORED_OWN,	   /* the table after training, before aggregation (FedEP, FedS, FedLU) */
};

struct fed_method {
	const char *name;
	const char *title; /* for lists: what it is, in one line */
	const char *tags;  /* what travels: "e", "r" or "er" */
	enum fed_scored scored;
	struct fed_constant constant[FED_VALUES_MAX]; /* up to the first without a key */
	size_t part_size; /* of the method's own struct; 0: struct fed_part */

	/* Once, when the part is made: all is zero but the struct fed_part.  May set floats. */
	int (*init)(struct fed_part *p, struct err *e);
	void (*release)(struct fed_part *p);
	/* The state that a restarted agent needs of the part.  NULL, both: none. */
	void (*save)(const struct fed_part *p, struct buf *out);
	int (*load)(struct fed_part *p, const uint8_t *bytes, size_t n, struct err *e);

	/* The table whose rows travel, of the same entities and relations; NULL: the agent's. */
	struct kge_emb *(*shared_table)(const struct fed_part *p);
	/* The shared table is the agent's over again, with the same relations: it learns and
	 * forgets with that one. */
	bool avatar;
	/* The shared table is another model's, of the same entities and relations, and the agent's
	 * own takes nothing from it: links are not scored by it, so nobody is judged or weighed by
	 * that (fed/judge.h, fed/weight.h), and settings say no model. */
	bool beside;
	/* More rows of the shared table, behind its entities': every member of a round holds them,
	 * so what they are is the same for all who agree on the constants (FedCQA's Theta).  NULL:
	 * none. */
	uint32_t (*dense)(const struct fed_part *p);
	/* What travels are changes of rows since the round began: who takes a part of them in has
	 * other rows than the others from then on.  No fed/weight.h. */
	bool changes;

	int (*train)(struct fed_part *p, struct fed_training *t); /* 0, ERR_CANCELED */
	/* With `beside`: its own training, after that of the agent's tables, unless that was none.
	 */
	int (*train_beside)(struct fed_part *p, struct fed_training *t); /* 0, ERR_CANCELED */
	/* With `beside`, between rounds: how good the shared table is on valid; t's trainer is not
	 * there.  The part keeps the best.  Returns whether it is better than all before. */
	bool (*look)(struct fed_part *p, const struct fed_training *t, double *score);

	unsigned (*stages)(const struct fed_settings *s); /* NULL: 1 */
	void (*shape)(const struct fed_settings *s, unsigned members, unsigned stage,
		      struct fed_shape *out);

	/* At a holder.  choose() sees all items before any row is asked for. */
	void (*choose)(struct fed_part *p, unsigned stage, struct fed_items items);
	/* Fill the row of items.at[i]; false: it does not travel in this stage. */
	bool (*up)(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
	void (*note_up)(struct fed_part *p, unsigned stage, unsigned home, float *note);

	/* At a home: the answer to one holder, item by item, then the notes.  false: no row. */
	bool (*home)(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);
	bool home_is_mean; /* of the rows that came, written in another way: min_holders holds */
	void (*note_home)(struct fed_part *p, unsigned stage, unsigned to, float *note);

	/* At a holder again: notes first, then rows, then end(). */
	void (*note_down)(struct fed_part *p, unsigned stage, unsigned home, const float *note);
	void (*down)(struct fed_part *p, unsigned stage, const struct fed_item *it,
		     const float *row);
	void (*end)(struct fed_part *p, unsigned stage);

	/* Parameters as the paper counts them for one agent and one way of a stage, given
	 * that `rows` of `items` shared items went.  NULL: rows times width. */
	uint64_t (*count)(const struct fed_settings *s, unsigned stage, bool up, uint64_t items,
			  uint64_t rows, uint64_t floats);
};

extern const struct fed_method *const fed_methods[]; /* NULL at the end */
extern const char *const fed_method_names[];	     /* of the same, in the same order */
const struct fed_method *fed_method_find(const char *name);

/* Settings with this method's constants as in its paper, sharded, min_holders 2, fraction 1. */
void fed_settings_init(struct fed_settings *s, const struct fed_method *m);
/* By the key of the constant; ERR_USAGE says what there is and what is allowed. */
int fed_settings_set(struct fed_settings *s, const char *key, double value, struct err *e);
double fed_constant(const struct fed_settings *s, const char *key); /* asserts that it is there */
/* Do rounds leave an agent's own table as it was trained?  What came is in a table beside it, or
 * (PFedEG's reg_only) training is drawn to it; so there is no part to be taken in of it. */
bool fed_own_stays(const struct fed_settings *s);
bool fed_has_reg_only(const struct fed_settings *s); /* the last of these two */
/* ERR_USAGE: an unknown method, a constant or a time outside its limits. */
int fed_settings_check(const struct fed_settings *s, struct err *e);

/* ERR_USAGE when the method cannot go with these tables. */
int fed_part_new(struct fed_part **out, const struct fed_settings *s, struct kge_emb *emb,
		 uint64_t seed, struct err *e);
void fed_part_free(struct fed_part *p); /* NULL is fine */
/* Appends the state that a restarted agent needs of a part, its tables aside.  It goes into a new
 * part of the same method, constants and tables; else ERR_INPUT, and the part is of no more use. */
void fed_part_save(const struct fed_part *p, struct buf *out);
int fed_part_load(struct fed_part *p, const uint8_t *bytes, size_t n, struct err *e);

/* ---- what the machine calls; each does what a method leaves out ---- */

int fed_train(struct fed_part *p, struct fed_training *t);
/* The rest of it where the agent's tables are trained, by whom ever; t's trainer may be NULL. */
int fed_train_beside(struct fed_part *p, struct fed_training *t);
struct kge_emb *fed_shared_table(const struct fed_part *p);
/* The same where it is FedLU's global one: fed_method.avatar.  Else NULL. */
struct kge_emb *fed_global_table(const struct fed_part *p);
/* Rows of the shared table that are all members' (fed_method.dense). */
uint32_t fed_dense(const struct fed_part *p);
/* As fed_train_plain(), with terms added to the loss; ERR_USAGE when the config bears none. */
int fed_train_with(struct fed_part *p, struct fed_training *t, const struct kge_terms *terms);
/* Two tables that teach each other (kge/mutual.h), the agent's and another. */
struct fed_pair {
	struct kge_emb *other; /* the pair's */
	bool own_relations;
	bool keep_moments; /* of the agent's table, from round to round; else both forget */
	struct kge_mutual
		*both;	    /* made at the first training, with the draws of its round's
			     * number, so that a part that was saved goes on as it would have */
	struct buf moments; /* that were kept, until then */
};

void fed_pair_release(struct fed_pair *pair);
/* The moments, if they are kept; before the first training, those that were loaded. */
void fed_pair_save(const struct fed_pair *pair, struct buf *out);
/* false: not what was saved. */
bool fed_pair_load(struct fed_pair *pair, const uint8_t *bytes, size_t n);
/* As fed_train_plain(), each with its terms; ERR_USAGE when the config bears none, ERR_INPUT when
 * the moments that were loaded are not of this config. */
int fed_train_pair(struct fed_part *p, struct fed_training *t, struct fed_pair *pair,
		   const struct kge_terms *own, const struct kge_terms *other);
/* As train = NULL: forget the moments, then the epochs. */
int fed_train_plain(struct fed_part *p, struct fed_training *t);
unsigned fed_stages(const struct fed_settings *s);
void fed_shape(const struct fed_settings *s, unsigned members, unsigned stage,
	       struct fed_shape *out);
/* Rows that are not finite, or beyond FED_VALUE_MAX, do not travel. */
bool fed_up(struct fed_part *p, unsigned stage, const struct fed_item *it, float *row);
/* The same of answers, or members would take the home for one that breaks the protocol. */
bool fed_answer(struct fed_part *p, const struct fed_upload *u, unsigned to, float *answer);
void fed_down(struct fed_part *p, unsigned stage, const struct fed_item *it, const float *row);
uint64_t fed_count(const struct fed_settings *s, unsigned stage, bool up, uint64_t items,
		   uint64_t rows, uint64_t floats);

/* Where the orders and negatives of this round begin, counted in epochs.  It follows from the
 * rounds that this agent has had, so that a round that is trained again after a loss or a restart
 * is what it would have been, and none repeats those of another.  Not from the round's number: one
 * member that says a high one would end the learning rates of all. */
uint64_t fed_epochs_before(const struct fed_part *p, uint32_t epochs);

/* The row of a table that an item names. */
float *fed_row(const struct kge_emb *emb, const struct fed_item *it, size_t *floats);
/* Mean over the rows that came, added in the order of members, in double; false if none. */
bool fed_mean(const struct fed_upload *u, float *out, size_t floats);

/* The row that every holder starts from, as if a server had drawn it: it follows from
 * the name alone, uniform in +-range of the tables (methods 1).  For shared entities, before
 * the first round; seed is the federation's. */
void fed_first_row(struct kge_emb *emb, char tag, uint32_t id, const void *label, size_t len,
		   uint64_t seed);

#endif
