/* agent/core/rounds_internal.h - rounds of many: the files that carry them on.  For agent/core/ and
 * its tests alone. */
#ifndef AGENT_CORE_ROUNDS_INTERNAL_H
#define AGENT_CORE_ROUNDS_INTERNAL_H

#include "agent/core/rounds_types_internal.h"
#include "net/bodies.h"

struct agent_core;
struct peer;

/* ---- rounds_state.c ---- */

void round_free(struct round *r);  /* NULL is fine; no worker may be at its work */
void round_close(struct round *r); /* sends no more rows, and takes little room; NULL is fine */
bool rounds_joined(const struct agent_core *c, const uint8_t id[FED_ID]);
void rounds_remember(struct agent_core *c, const uint8_t id[FED_ID]);
void rounds_who_we_are(const struct agent_core *c, struct fed_setup *s);

/* ---- rounds.c ---- */

/* Nothing is under way: what is next?  Starts at most one thing. */
void rounds_next(struct agent_core *c, struct peer **align, uint64_t *wait_ms);
/* Of a round that we know, or that we could join? */
bool rounds_expect(const struct agent_core *c, const struct peer *p, const struct net_msg_head *h);
bool rounds_know(const struct agent_core *c, const struct net_msg_head *h);
void rounds_message(struct agent_core *c, struct peer *p, const struct net_message *m);
void rounds_lost(struct agent_core *c, struct peer *p); /* its link is down, or it is revoked */
void rounds_writable(struct agent_core *c, struct peer *p);
void rounds_here(struct agent_core *c, struct peer *p); /* greeted: it may lack accounts */
void rounds_timer(struct agent_core *c);
void rounds_job_done(struct agent_core *c, struct agent_job *job);
void rounds_stop(struct agent_core *c, const char *why); /* leave what is under way */
/* All up to this commit is on disk: accounts that waited for it may leave. */
void rounds_committed(struct agent_core *c, uint64_t ticket);

/* ---- rounds_validate.c ---- */

void rounds_validate_release(struct validation *l);
/* On a worker: score, then copies for the disk; ... */
int rounds_validate_score(const struct agent_core *c, struct validation *l, struct agent_job *job);
void rounds_validate_make(const struct agent_core *c, struct validation *l);
/* ... and on the loop: what comes of it. */
void rounds_validate_decide(struct agent_core *c, struct validation *l, struct store_batch *b);
/* ... and once it is on disk. */
void rounds_validate_tell(struct agent_core *c, const struct validation *l);
/* One that is owed, as the next start finds it; latest: digest of the tables of its round. */
void rounds_validate_save(const struct validation *l, const uint8_t id[FED_ID],
			  const uint8_t latest[32], struct buf *out);
void rounds_validate_load(struct agent_core *c, const struct store_meta *saved, bool goes_on);
void rounds_validate_start(struct agent_core *c);
void rounds_validate_done(struct agent_core *c, const struct agent_job *job);
void rounds_validate_clear(struct agent_core *c, struct store_batch *b); /* none is owed any more */

/* ---- rounds_weigh.c ---- */

/* Not under private training, nor where changes travel (fed/method.h). */
bool rounds_weigh_applies(const struct agent_core *c);
/* Does the choice need a copy that trains alone until it begins (rounds_compare.c)? */
bool rounds_weigh_copies(const struct agent_core *c);
void rounds_weigh_begin(const struct agent_core *c, struct round *r);
int rounds_weigh(struct agent_core *c, struct round *r, struct agent_job *job);
void rounds_weigh_decide(struct agent_core *c, const struct round *r);

/* ---- rounds_judge.c ---- */

/* Before peers are added to a new round: are members judged in it? */
void rounds_judge_begin(const struct agent_core *c, struct round *r);
bool rounds_judge_leaves_out(const struct round *r, const struct peer *p);
void rounds_judge_decide(struct agent_core *c, const struct round *r, struct store_batch *b);

/* ---- rounds_compare.c ---- */

/* Has a round with these scores hurt?  far: a member's rows were far out. */
bool rounds_compare_hurts(double own, double merged, double alone, bool far);
/* Takes from a round that is over how far its members' rows are apart. */
void rounds_compare_members(struct agent_core *c, const struct fed_round *m, unsigned members);
/* Around the training of a round: on the loop before it, on its worker after our own, and when the
 * round came to nothing. */
void rounds_compare_begin(struct agent_core *c, struct round *r);
int rounds_compare_train(struct agent_core *c, struct round *r, struct agent_job *job);
void rounds_compare_undo(struct agent_core *c, struct round *r);
/* On the loop, after a round's weight: a copy that was for the first choice only is let go. */
void rounds_compare_weighed(struct agent_core *c);
/* The best tables, as they will be when rounds stop after this look. */
const struct kge_emb *rounds_compare_back_to(const struct agent_core *c,
					     const struct validation *l);
/* After rounds_validate_score() on its worker; after rounds_validate_decide() on the loop. */
int rounds_compare_score(const struct agent_core *c, struct validation *l, struct agent_job *job);
/* After that, on the worker: at a look after which no other may come a copy that is still to be
 * chosen about is scored, too.  r: the round, NULL: it is over.  ERR_CANCELED: the look is owed. */
int rounds_compare_try_copy(const struct agent_core *c, struct validation *l, const struct round *r,
			    struct agent_job *job);
/* On the loop: another table than the scored one is the best, if one has been found. */
void rounds_compare_accept(struct agent_core *c, struct validation *l, struct store_batch *b);
void rounds_compare_decide(struct agent_core *c, struct validation *l, struct store_batch *b);
/* With what a round leaves: on its worker or the loop, before; on the loop, behind `latest` in the
 * batch.  The copy is on disk while the first choice of a weight needs it. */
void rounds_compare_make(const struct agent_core *c, struct round *r);
void rounds_compare_keep(const struct agent_core *c, struct round *r,
			 const struct store_checkpoint *latest, struct store_batch *b);
/* beside: the copy as it is on disk, which is copied; NULL: there is none. */
void rounds_compare_load(struct agent_core *c, const struct kge_emb *beside);
void rounds_compare_release(struct agent_core *c);
bool rounds_stopped(const struct agent_core *c);
void rounds_resume(struct agent_core *c); /* the owner wants them again */

/* ---- rounds_align.c ---- */

/* Our part of a HELLO about rounds. */
void rounds_say_hello(struct agent_core *c, struct peer *p, struct net_hello *h);
/* ERR_PROTO: what a HELLO says of rounds cannot be. */
int rounds_check_hello(const struct agent_core *c, const struct net_hello *h, struct err *e);
void rounds_take_hello(struct agent_core *c, struct peer *p, const struct net_hello *h);
void rounds_check_mode(struct agent_core *c, struct peer *p); /* after its HELLO */
/* ... must it hear one of ours? */
bool rounds_greets_again(const struct agent_core *c, const struct peer *p);
struct rounds_hello rounds_hello_to_all(const struct agent_core *c); /* as of now */
/* Is what our last HELLO to it said not so any more?  Of its alignment once it has greeted. */
bool rounds_hello_changed(const struct agent_core *c, const struct peer *p,
			  const struct rounds_hello *to_all);
/* Both say that the alignment is current: it can be in a round with us now. */
bool rounds_ready(const struct agent_core *c, const struct peer *p);
/* ... and a round of ours would ask it, when it has rested. */
bool rounds_is_candidate(const struct agent_core *c, const struct peer *p);
bool rounds_can_be_asked(const struct agent_core *c, const struct peer *p); /* it has */
/* From a proposal to its end, at most. */
uint64_t rounds_whole_ms(const struct agent_core *c);
bool rounds_shares(const struct peer *p);	 /* a name: rows can move between us */
bool rounds_is_host(const struct agent_core *c); /* of a hosted round */
struct peer *rounds_align_next(struct agent_core *c, uint64_t *wait_ms);
/* Until when to wait for alignments that may still come; 0: for none. */
uint64_t rounds_await_ms(const struct agent_core *c);
/* Those that the next round waits for now, whether or not they are here when it begins. */
void rounds_note_awaited(struct agent_core *c);
void rounds_give_up(struct agent_core *c);     /* it was in vain */
bool rounds_joins(const struct agent_core *c); /* false: rounds.max is reached */
/* Partners have had rounds since our last one: they count.  True: our record has changed. */
bool rounds_count_missed(struct agent_core *c);
bool rounds_proposes(const struct agent_core *c); /* we may propose, now or later */
/* ERR_REFUSED with the key and both values: a round that our owner does not want. */
int rounds_policy(const struct agent_core *c, const struct peer *p, const struct fed_proposal *o,
		  struct err *e);

/* ---- rounds_turn.c ---- */

/* The highest that we or partners know. */
uint64_t rounds_next_number(const struct agent_core *c);
/* One that can be asked now, and is in a round that we proposed now (rounds.fraction). */
bool rounds_is_drawn(const struct agent_core *c, const struct peer *p);
/* When we may propose; UINT64_MAX: not before something happens. */
uint64_t rounds_turn_ms(const struct agent_core *c);
/* The reason why nobody may propose, for the owner; "": none. */
void rounds_waits(const struct agent_core *c, char *out, size_t n);
void rounds_pass_over(struct agent_core *c); /* it is our turn since others let theirs pass */

/* ---- rounds_time.c ---- */

/* The times that we propose for the training and for each way of a stage. */
uint32_t rounds_train_ms(const struct agent_core *c);
uint32_t rounds_stage_ms(const struct agent_core *c);
/* Is what a proposal gives enough for us?  ERR_REFUSED. */
int rounds_enough(const struct agent_core *c, const struct fed_settings *s, struct err *e);
/* We declined a round that was too short. */
void rounds_was_too_short(struct agent_core *c, const struct fed_settings *s);
void rounds_trained(struct agent_core *c, uint64_t ms); /* rounds.epochs, in so long */
/* Two trainings, for what no proposal takes ours below; 0: none. */
void rounds_note_least(struct agent_core *c, uint64_t a_ms, uint64_t b_ms);
/* The partner was asked by us and did not take part; late: its rows did not come. */
void rounds_was_late(const struct agent_core *c, struct peer *p, bool late);
void rounds_was_in_time(const struct agent_core *c, struct peer *p);

/* ---- rounds_part.c ---- */

int rounds_load(struct agent_core *c, const struct agent_parts *parts, struct err *e);
void rounds_release(struct agent_core *c);
/* Tables and part as they were before the round, bit for bit. */
void rounds_restore(struct agent_core *c);
void rounds_restart(struct agent_core *c); /* from the best tables, with a new part */
void rounds_begin_equal(struct agent_core *c);
/* At a round of this number: where changes travel (fed/method.h), rows that are not the others' at
 * its start never will be, which the owner hears once. */
void rounds_say_apart(struct agent_core *c, uint64_t number);
/* Rounds go on from what the round has made: copies it, on a worker, ... */
void rounds_make(struct agent_core *c, struct round *r);
/* ... and adds it to the batch. */
void rounds_keep(struct agent_core *c, struct round *r, struct store_batch *b);
/* The record of the round that the owner may read later; adds it to the batch. */
void rounds_record(struct agent_core *c, struct round *r, struct store_batch *b);
/* A round that is on record has sent more since, or a member has signed for it.  NULL is fine. */
void rounds_record_again(struct agent_core *c, struct round *r);
/* The record on disk has the figures of r: its accounts may be signed. */
void rounds_recorded(struct round *r);

#endif
