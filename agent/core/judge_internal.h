/* agent/core/judge_internal.h - partners whose rows hurt (judge.c).  For agent/core/ and its tests
 * alone. */
#ifndef AGENT_CORE_JUDGE_INTERNAL_H
#define AGENT_CORE_JUDGE_INTERNAL_H

#include "agent/core/core.h"
#include "fed/judge.h"
#include "ppat/session.h"
#include "store/store.h"

struct agent_core;
struct peer;

/* One partner's rows of this round, translated: [n] slots, [n x dim] rows, [n] agreement or NULL.
 */
struct judge_rows {
	struct peer *peer;
	struct store_slot *slot;
	float *row, *agreement;
	size_t n, dim;
	bool doubted; /* as the round began */
};

/* The round under way: its workers' until it is scored. */
struct judge_plan {
	bool judged; /* the round that begins */
	bool doubts; /* about a partner: all triples, not a few first */
	bool all;    /* else only those who are doubted */
};

struct judging {
	struct kge_emb *base; /* work before any partner's rows; NULL: nobody is judged */
	struct judge_rows *of;
	size_t n;
	struct fed_verdict verdict;
	uint64_t judged; /* of `of`; valid once the round is trained */
};

/* Not under private training: what is served later depends on it. */
bool judge_applies(const struct agent_core *c);
/* How many valid triples tables of this shape are scored on (0: all), so that a verdict on so many
 * partners takes some seconds of one thread.  False: too few of them to say anything. */
bool judge_triples(const struct agent_core *c, const struct kge_emb *shape, size_t partners,
		   uint32_t *triples);
bool judge_is_out(const struct peer *p); /* in quarantine: nothing of it is taken in */

/* On the loop, before the first of a round's partners is merged: is it judged, and closely? */
void judge_plan(struct agent_core *c);
/* On the worker: the round begins; ... */
void judge_begin(struct agent_core *c);
/* ... a partner's rows, [r->n x r->dim], taken over, go into work and are kept until it is trained;
 * ... */
void judge_merge(struct agent_core *c, struct peer *p, bool doubted, const struct store_slot *slots,
		 const struct ppat_result *r, float *rows);
/* ... and before training work becomes what it is without those that hurt. */
int judge_round(struct agent_core *c, struct agent_job *job);
/* Was it left out of the round under way? */
bool judge_left_out(const struct agent_core *c, const struct peer *p);

/* On the loop: the round is over; adds reputations to the batch. */
void judge_close(struct agent_core *c, struct store_batch *b);
/* By one verdict, in pairs or rounds: judgement, batch, and quarantine if it is time. */
void judge_note(struct agent_core *c, struct peer *p, bool hurts, double with, double without,
		struct store_batch *b);
void judge_load(struct agent_core *c, const struct store_core *saved);
void judge_trust(struct agent_core *c, struct peer *p); /* its owner lifts it: commits */
void judge_forget(struct peer *p); /* as one never judged; it goes from the store with the peer */
void judge_release(struct agent_core *c);

#endif
