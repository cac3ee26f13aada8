/* agent/core/steps_internal.h - steps of queries between partners (methods 5.4).  For agent/core/
 * and its tests alone.
 *
 *   asker (asks.c)                               owner (answers.c)
 *   owner's command ASK
 *   ASK: relation, entities as slots, truths -->  by its settings, budget, room?  no: ANSWER, why
 *                                                 a worker walks the step (query/search.h)
 *                                                 signs what it answers; record, day's sum: COMMIT
 *           <-------------------------------------  ANSWER: slots, truths
 *   each number checked; record: COMMIT; answered()
 *
 * What is answered has left for good, so its record and what it takes from the day's budget are on
 * disk before. */
#ifndef AGENT_CORE_STEPS_INTERNAL_H
#define AGENT_CORE_STEPS_INTERNAL_H

#include "agent/core/core.h"
#include "net/bodies.h"
#include "query/scale.h"
#include "query/search.h"
#include "store/store.h"

struct agent_core;
struct peer;

enum {
	ANSWERS_WAITING_MAX = 16, /* steps that wait for a worker */
	ANSWERS_OF_PEER_MAX = 4,
	DAY_MS = 24 * 3600 * 1000,
};

/* Of a peer, as owner toward it. */
struct peer_steps {
	int64_t day;		  /* of what follows: since 1970, UTC */
	uint64_t steps, rows;	  /* answered, or worked at, on that day, as on disk */
	uint64_t held, rows_held; /* of those under way */
	uint64_t refused;	  /* asked on that day over relations that it is not answered */
	uint64_t due_ms;	  /* it may ask again from then, but for some in advance */
};

/* A copy of the best tables, and what a search by them needs: made by workers, one at a time. */
struct step_tables {
	uint8_t digest[32]; /* of the tables */
	struct kge_emb *emb;
	const struct graph *graph;
	bool private_training; /* valid is not looked at */
	bool fitted;
	struct query_scale scale;
	struct query_truths *truths[2];	   /* soft, facts; NULL: not needed so far */
	struct query_search *search[2][2]; /* ... by norm */
};

struct encode_model;
struct score_answering; /* agent/core/scores_internal.h */

/* The best encoder of our rounds, as step and score say which. */
struct step_encoder {
	struct encode_model *m; /* NULL: none */
	uint64_t step;
	double mrr;
	bool noted; /* the part had one when no worker was at it last, copied or not */
};

/* A step that a partner asks of us, or masked scores. */
struct answering {
	struct peer *peer;
	int (*run)(struct agent_job *job); /* a worker's */
	/* A message with what is on disk now; false: more follow, and it is among those that are
	 * being sent. */
	bool (*send)(struct agent_core *c, struct answering *a);
	void (*release)(struct answering *a); /* NULL: of what is here there is no more */
	struct score_answering *scoring;      /* NULL: a step */
	struct store_step record;
	struct query_step step;
	struct query_point *points; /* record.step.points of them */
	uint32_t *order;	    /* slot by entity; GRAPH_NONE: none */
	struct query_limits most;   /* as asked, and what is left of the budget, too */
	uint32_t want;		    /* rows of both kinds together */
	bool cut;		    /* by the budget */
	uint64_t until_ms;
	struct step_tables *tables;
	struct query_reached *reached; /* [most.known + most.predicted] */
	size_t n_reached;
	struct buf rows; /* as they travel */
	bool counted;	 /* among the peer's that are under way */
};

struct answers {
	struct answering *waiting[ANSWERS_WAITING_MAX]; /* the oldest first */
	size_t n_waiting;
	struct answering *now; /* the worker's */
	struct agent_job *job;
	struct answering **saving; /* the oldest first: its record is on its way to disk */
	size_t n_saving;
	struct step_tables *tables;
	struct step_encoder encoder;
	struct answering *keyed[ANSWERS_WAITING_MAX]; /* scores that wait for others' keys */
	size_t n_keyed;
	struct answering **sending; /* scores on disk, of which words are to be sent: [n_sending] */
	size_t n_sending;
	size_t at_once;			 /* words in one message */
	uint8_t (*seen)[LEDGER_STEP_ID]; /* [STORE_STEPS_LATE] a ring: none twice */
	size_t n_seen;
};

/* A step that we ask of a partner. */
struct asked {
	struct peer *peer;
	enum { ASKED_WAITS, ASKED_SAVES, ASKED_OVER } phase;
	struct store_step record;
	uint32_t *slots; /* ascending: what it was asked from ... */
	float *truths;	 /* ... and how true */
	struct query_limits most;
	struct agent_answer answer;
};

/* What our owner asked for: of all partners. */
struct asking {
	uint64_t ticket, due_ms;
	struct asked *of;
	size_t n;
};

struct score_asking; /* agent/core/scores_internal.h */

struct score_asks {
	struct score_asking *at[AGENT_ASKS_MAX];
	size_t n;
	struct score_asking **saving; /* the oldest first */
	size_t n_saving;
};

struct asks {
	struct score_asks scores;
	struct asking *at[AGENT_ASKS_MAX];
	size_t n;
	struct asked **saving; /* the oldest first */
	size_t n_saving;
};

/* ---- step_bytes.c: points and rows as they travel ---- */

/* A slot goes as what it is above the one before, in the fewest bytes of seven bits, so slots
 * ascend; a truth is a float, little-endian. */
struct step_writer {
	struct buf *out;
	uint32_t next; /* the lowest slot that may come */
};
void step_put_count(struct step_writer *w, uint32_t n);
void step_put_slot(struct step_writer *w, uint32_t slot);
void step_put_truth(struct step_writer *w, float truth);

struct step_reader {
	struct net_bytes left;
	uint32_t next;
};
/* false: there is none, or it is not written as above. */
MUST_CHECK bool step_get_count(struct step_reader *r, uint32_t *n);
MUST_CHECK bool step_get_slot(struct step_reader *r, uint32_t *slot);
MUST_CHECK bool step_get_truth(struct step_reader *r, float *truth);

/* Slots and truths of at most NET_POINTS_MAX points; how many, -1: they are not written so. */
int step_get_points(const struct net_bytes *from, struct query_point *out);
/* What both sign of a question beside its numbers. */
void step_hash_asked(struct ledger_step *s, const struct net_bytes *points,
		     const struct query_limits *most);
static inline bool step_truth_holds(float truth) /* false for NaN, too */
{
	return truth > 0.0f && truth <= 1.0f;
}

/* ---- answers.c ---- */

/* For scores_answer.c: the same for all that partners ask. */
void answers_refuse(struct agent_core *c, struct peer *p, enum net_msg_type type,
		    const uint8_t id[LEDGER_STEP_ID], int code, const char *why);
void answers_drop(struct answering *a);
/* What was worked at counts as a step without rows, also where nobody waits for it any more; else
 * an asker that leaves in time would have all the work of a day for nothing. */
void answers_spend_in_vain(struct agent_core *c, struct answering *a);
/* Of a step that is accepted: none is answered under that id any more.  Not of what is refused, or
 * those of others would be forgotten for it. */
void answers_note_id(struct agent_core *c, const uint8_t id[LEDGER_STEP_ID]);
/* Of what we ask: known for ours when a partner asks under it, without being kept.  Two records of
 * one id would be a fault of our export. */
void answers_draw_own_id(const struct agent_core *c, uint8_t id[LEDGER_STEP_ID]);
/* Asked before, or too often: then it has been dealt with. */
bool answers_skip(struct agent_core *c, struct peer *p, enum net_msg_type type,
		  const uint8_t id[LEDGER_STEP_ID]);
MUST_CHECK int answers_check_state(struct agent_core *c, const struct answering *a, struct err *e);
MUST_CHECK int answers_check_clock(const struct agent_core *c, const struct ledger_step *s,
				   struct err *e);
/* The owner's clock was within a day of ours when it took the question.  By when it says that it
 * answered, exports are held against each other (cli/steps_verify.c). */
MUST_CHECK int answers_check_day(const struct agent_core *c, int64_t answered_ms, struct err *e);
/* Is there room for one more of the peer, and in its day? */
MUST_CHECK int answers_check_room(struct agent_core *c, struct peer *p, struct err *e);
void answers_hold(struct answering *a);			      /* its place in the budget */
void answers_wait(struct agent_core *c, struct answering *a); /* for the worker */
/* What waits for keys or is being sent holds no place when it is due, or its asker is gone. */
void answers_drop_late(struct agent_core *c);

void answers_load(struct agent_core *c, const struct store_core *saved);
void answers_take(struct agent_core *c, struct peer *p, const struct net_message *m);
bool answers_job_done(struct agent_core *c, const struct agent_job *job); /* it was one of these */
void answers_next(struct agent_core *c);
void answers_stop(struct agent_core *c);
bool answers_busy(const struct agent_core *c);
void answers_release(struct agent_core *c);

/* ---- asks.c ---- */

void asks_begin(struct agent_core *c, const struct agent_ask *ask);
bool asks_expect(const struct agent_core *c, const struct peer *p, const struct net_msg_head *h);
void asks_take(struct agent_core *c, struct peer *p, const struct net_message *m);
void asks_timer(struct agent_core *c);
void asks_link_down(struct agent_core *c, const struct peer *p);
void asks_stop(struct agent_core *c, int code, const char *why); /* those that wait */
void asks_release(struct agent_core *c);

#endif
