/* agent/core/best_internal.h - the best tables, and the latest.  For agent/core/ and its tests
 * alone. */
#ifndef AGENT_CORE_BEST_INTERNAL_H
#define AGENT_CORE_BEST_INTERNAL_H

#include "agent/core/core.h"
#include "agent/core/frame.h"
#include "fed/weight.h"
#include "net/sizes.h"
#include "store/store.h"

struct agent_core;
struct peer;
struct session;

/* Copies of tables, made on a worker, where they take no time of the loop's. */
struct tables_made {
	struct kge_emb *tables; /* for the core; NULL: it has them */
	struct kge_emb *disk;	/* for the batch */
	uint8_t digest[32];
};

/* Results of a round of pairs that goes on (latest.c): made by its worker. */
struct round_tables {
	double merged_score; /* before training; has_merged */
	bool has_merged;
	struct fed_weighed weighed; /* of what partners brought; with has_weighed */
	bool has_weighed;
	bool is_merged;		 /* best: it is the merged ones */
	struct tables_made best; /* when better than what there was */
	double best_score;	 /* of these */
	struct tables_made latest;
	double latest_score; /* of these: trained, whether better or not */
	bool goes_back;	     /* latest: it is the best, since what was trained may not travel */
};

/* The axes that these tables are on (frame.h). */
struct frames {
	struct frame latest, work; /* the same between rounds */
	uint8_t beside[32];	   /* digest of the best when latest was last kept */
	bool by_names;	 /* rows began by names and a seed that all know: in one frame with all
			  * that began so, and no other */
	bool must_reset; /* work is no longer what its optimizer's moments are of */
	struct agent_name *label; /* [n_ent + n_rel] by id (labels.c); or NULL */
};

/* ---- learn_best.c ---- */

/* These tables are the best from now on; adds to the batch.  Sessions as client may be under way:
 * conversation_open() has copied what they send, within one event, and nothing else of them looks
 * at rows of the best tables. */
void learn_accept(struct agent_core *c, const struct kge_emb *tables, double score,
		  struct store_batch *b);
/* ... by who has made the copies already; they are taken over. */
void learn_accept_made(struct agent_core *c, struct tables_made *made, double score,
		       struct store_batch *b);
void learn_failed(struct agent_core *c, int status, const char *why); /* the agent stops */

/* ---- latest.c ---- */

/* Pairs under federation.after: keep. */
bool latest_keeps(const struct agent_core *c);
/* No better score in federation.patience rounds: this agent takes no more rows in, until a partner
 * wakes it that no round has had (peers_queue.c). */
bool latest_rests(const struct agent_core *c);
/* It has not had federation.max_rounds, its own among them. */
bool latest_has_rounds(const struct agent_core *c);
/* ... nor does it rest. */
bool latest_trains_on(const struct agent_core *c);
/* ... nor as many own rounds in a row without a better score, after which it waits for news. */
bool latest_trains_alone(const struct agent_core *c);
/* Of use, as they were on disk: they go on from the best there is, or from those beside it. */
bool latest_goes_on(const struct agent_core *c);
bool latest_frame_wanted(const struct agent_core *c); /* federation.frame: common ... */
bool latest_frame_common(const struct agent_core *c); /* ... and the model is one for it */
/* Whose rows may travel as they are: of one model; that began by names, of one such frame, too. */
void latest_frame_model(const struct agent_core *c, char out[NET_MODEL_NAME_MAX + 1]);
/* The tables that partners get.  They change between events alone, never under a session's copy. */
const struct kge_emb *latest_served(const struct agent_core *c);
/* Pairs would go on from other tables than the best. */
bool latest_is_apart(const struct agent_core *c);
void latest_load(struct agent_core *c);
void latest_restart(struct agent_core *c); /* from the best: the first training is over */
/* On the worker: scores what was merged, before it is trained; ... */
int latest_score_merged(struct agent_core *c, struct agent_job *job);
/* ... and makes what the round leaves, once job->score is that of work. */
void latest_make(struct agent_core *c, struct agent_job *job);
/* On the loop: what the round leaves is the latest from now on; adds to the batch. */
void latest_keep(struct agent_core *c, double score, bool better, struct store_batch *b);
void latest_release(struct agent_core *c);

#endif
