/* agent/core/rounds_types_internal.h - rounds of many: what the core keeps of them.  For
 * agent/core/ and its tests alone. */
#ifndef AGENT_CORE_ROUNDS_TYPES_INTERNAL_H
#define AGENT_CORE_ROUNDS_TYPES_INTERNAL_H

#include "agent/core/best_internal.h"
#include "agent/core/core.h"
#include "agent/core/names.h"
#include "fed/round.h"
#include "fed/weight.h"
#include "store/store.h"

struct agent_core;
struct peer;

enum {
	ROUNDS_PAST = STORE_ROUNDS_LATE, /* rounds before the last one whose accounts may still come
					    and go */
};

enum round_stage {
	ROUND_JOINING, /* proposed or joined; there is no roster */
	ROUND_TRAINING,
	ROUND_EXCHANGE,
	ROUND_SCORING,
	ROUND_SAVING,
};

/* The validation after a round (rounds_validate.c). */
struct validation {
	bool due;	     /* these tables are to be scored ... */
	bool interrupted;    /* ... but that was interrupted */
	struct kge_emb *own; /* the table between training and exchange, if that is scored */
	double score;	     /* valid with validated */
	bool validated, better;
	struct tables_made best;  /* with better */
	bool looked, part_better; /* what goes beside the tables has been looked at (fed_method) */
	double part_score;	  /* with looked */
	/* rounds_compare.c: scores on the same few triples, valid with scored */
	bool compared;
	struct kge_emb *trained; /* as own, where own is not what is judged */
	bool scored, has_alone, stops;
	double own_score, merged_score, alone_score;
	struct tables_made other; /* own or alone, where it is better than all that was best ... */
	double other_score;	  /* ... on all of valid */
};

/* Do rounds help (rounds_compare.c)? */
struct compare {
	struct kge_emb *alone;	       /* trained without partners; NULL: there is none now */
	bool begins;		       /* with our own table of the next round */
	bool from_first;	       /* it is of our first round, and has missed none since */
	struct fed_weight_copy choice; /* on disk; with from_first */
	uint32_t ahead;	      /* rounds that came to nothing for which it has been trained */
	uint32_t comparisons; /* since it began; on disk with from_first ... */
	bool counted;	      /* ... but not in older records */
	uint32_t hurt;	      /* comparisons of late, a bit each */
	bool far;	      /* a member's rows of this round were */
	/* of the last comparison */
	bool has_scores, has_alone;
	double own, merged, alone_score;
	bool stopped; /* on disk: no rounds until the owner says so ... */
	char why[AGENT_TEXT_MAX];
};

/* Of the copy that trains alone, in a round: it waits where it has been trained already, for one
 * that came to nothing. */
enum copy_work { COPY_NONE, COPY_BEGINS, COPY_TRAINS, COPY_WAITS };

/* How much of a round is taken in (rounds_weigh.c). */
struct round_choice {
	bool asked, made, is_last;
	bool checked;	      /* not asked, but what comes may be refused */
	bool of_copy;	      /* the copy that has trained alone is in it */
	bool measures, known; /* only by how much it is ahead of all that came: */
	double ahead;
};

/* One round, from its proposal to its commit, and a while longer for those who still wait for
 * our rows. */
struct round {
	struct fed_round *machine;
	struct fed_setup setup;
	struct fed_peer *peers; /* of the setup; each owns its slots */
	struct peer *proposer;	/* NULL: we are */
	enum round_stage stage;
	struct validation validation;
	struct fed_weighed weighed; /* what it takes in; scores with choice.made */
	struct round_choice choice;
	struct agent_job *judging; /* the job under way that may score tables of members */
	uint32_t judge_triples;	   /* ... on so many triples each time */
	enum copy_work copy;	   /* in its training job */
	bool yielded;		   /* left for another: nobody's fault */
	uint64_t due_ms;	   /* as the timer is set; UINT64_MAX: it is not */
	uint64_t started_ms, ended_ms;
	uint64_t work_ms, train_ms; /* when the last job began; how long training took */
	int64_t started_wall_ms;
	/* what it leaves, made before it is saved */
	struct tables_made latest, beside;
	struct buf part, interrupted;	 /* for the batch; the second with validation.interrupted */
	struct store_round_member *kept; /* [n_kept] as they are on record; NULL: not yet */
	uint32_t n_kept;
	bool news;	 /* of it something is not asked to be written yet that we sign */
	uint64_t ticket; /* of the commit that writes what we sign; 0: it is on disk, or none is */
	bool closed;	 /* sends no more rows; accounts may still come (fed/round_account.c) */
};

/* The state that is kept from round to round.  work is the table of the round under way; between
 * rounds work and latest are equal, and the part is as in `saved`. */
struct rounds {
	struct fed_settings settings;	  /* as our owner wants them, with host, model and widths */
	struct fed_part *part;		  /* over work */
	struct buf saved;		  /* the part, as on disk; empty: as it begins */
	struct round *now, *last;	  /* last: over, may still owe rows, or be owed accounts */
	struct round *past[ROUNDS_PAST];  /* before it, the newest first: accounts alone; or NULL */
	struct store_batch changed;	  /* of the last ones' records: goes with the next commit */
	uint64_t number;		  /* of the next one */
	uint64_t done;			  /* that we took part in */
	uint64_t missed;		  /* since the first: count toward rounds.max */
	uint64_t train_ms;		  /* the last training of rounds.epochs; 0: none so far */
	uint64_t measured_ms;		  /* the last one as it was; 0: none */
	uint64_t least_ms;		  /* the shortest one of several; 0: there are not */
	struct validation validation;	  /* that an interruption has left, of ... */
	uint8_t validation_round[FED_ID]; /* ... this round */
	bool validation_saved;		  /* there is one on disk, maybe of no more use */
	struct compare compare;
	double weight;	       /* of what a round brings, until the next look */
	bool resumed;	       /* the owner has said so while we were down */
	bool untrained;	       /* the tables are as they were drawn */
	const char *apart;     /* why our rows are not the others', if changes travel; NULL */
	bool said_apart;       /* since we started */
	uint64_t free_ms;      /* since when nothing is under way */
	uint64_t ended_ms;     /* of the last round that was not ours to stop; 0: none yet */
	uint64_t announced;    /* the highest number that partners have agreed on ... */
	uint64_t announced_ms; /* ... since then */
	uint64_t rest_ms;      /* we propose nothing before: what we proposed came to nothing ... */
	uint32_t failures;     /* ... so often in a row */
	/* A proposal that waits until we are free, or its proposer does not. */
	struct fed_proposal *invitation; /* NULL: none */
	struct peer *inviter;
	uint64_t invited_ms, invitation_ends_ms;
	uint64_t serial; /* of our last proposal, as we have it on disk or have been told */
	/* Of all on record, and since: none is joined twice, or what members have signed of the
	 * one could be shown as of the other.  Those that are not here any more, struct
	 * peer_rounds `joined` keeps out; these get no answer. */
	uint8_t seen[STORE_ROUNDS_MAX][FED_ID];
	uint64_t n_seen;
	/* for the owner */
	struct fed_report report; /* of the last round, or as far as this one is known */
	char trouble[AGENT_TEXT_MAX];
};

#endif
