/* fed/round.h - one federated round at one agent, without a server (methods 4.4).
 *
 * A machine without I/O, clock or threads: it is told what happened and when,
 * and says what it wants.  agent/ runs it over libuv, fed/local.h and the tests
 * over an in-memory network.
 *
 *   proposer                  member                     every member
 *   --------                  ------                     ------------
 *   PROPOSE --------------->  signed? ours to join?
 *           <---------------  JOIN (signed), or DECLINE
 *   roster: those who joined and
 *   are aligned, each with each
 *   START   --------------->  checks all signatures  ->  TRAIN (work)
 *                                                    +-> stage's rows (work)
 *                     as holder:  UP  --------------->|  home of the item
 *                     as home:    collects, until all |  have sent or are late,
 *                                 aggregates (work)   |
 *                     as holder:  <------------ DOWN  |
 *                                 applies (work)      |
 *                                                    +-- next stage, or OVER
 *           <-------------- ACCOUNT (signed) -------------->   when nothing is left to send
 *
 * On the wire an item has no name.  Two members know the slots of their
 * alignment, in the same order, and which of these have their home at one of
 * the two: rows travel in that order, so neither names nor numbers do.  A
 * member is heard only about items that it shares with us.
 *
 * Hosted, the host is home to all.  Items that it holds travel as above; any
 * other goes by BLAKE2b of its name under a key which one of the others draws
 * and sends to all but the host.  The host cannot try a dictionary without the
 * key, but any member that breaks its word and tells it the key lets it.
 *
 * A round always ends: each step has a deadline.  A member's part of a step that does not arrive
 * whole before the deadline is as if it had not been sent.  A member that is late, lost or breaks
 * the protocol misses from the items that it holds, which go without an answer where too few rows
 * are left, and its own homes stay silent; nobody waits longer than to the deadline.  The fault of
 * the member is in its own account. */
#ifndef FED_ROUND_H
#define FED_ROUND_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "fed/method.h"
#include "net/psi.h"
#include "net/sizes.h"
#include "nn/linalg.h"

enum {
	FED_ID = NET_SESSION_BYTES,
	FED_SIGN = 32,
	FED_SIGN_SECRET = 64,
	FED_SIGNATURE = 64,
	FED_ACCOUNT_MAX = 512,	  /* bytes of an account's text, NUL included */
	FED_REFUSED_MAX = 128,	  /* of why one is refused */
	FED_EARLY_MAX = 64 << 20, /* bytes before START is here, of all members; each may send
				   * its even share of these */
	FED_NAMES_MAX = 1 << 22,  /* hosted: items that the host does not hold, of all members;
				   * each may say its even share of these */
};

/* Another agent and what is shared with it.  Slots: local ids in the order of
 * the alignment (net/psi.h, agent/core/core_internal.h struct peer). */
struct fed_peer {
	uint8_t key[FED_KEY], sign_public[FED_SIGN];
	uint8_t digest[NET_PSI_DIGEST]; /* of the alignment; equal on both sides */
	const struct net_psi_slot *slots;
	size_t n_slots;
	bool left_out; /* neither its rows nor its answers are used, where they can be told apart */
	bool doubted;  /* was left out by the latest verdict on it */
	uint32_t kept_out; /* rounds with it for which it is to be no home, by us */
};

/* This agent in this round.  Everything is borrowed until the round is freed. */
struct fed_setup {
	uint8_t key[FED_KEY], sign_public[FED_SIGN], sign_secret[FED_SIGN_SECRET];
	const struct fed_peer *peers; /* aligned now, and linked */
	size_t n_peers;
	/* The canonical name of an entity or relation of ours; not NUL-terminated. */
	const char *(*label)(void *ctx, char tag, uint32_t id, size_t *len);
	void *label_ctx;
	struct fed_part *part;
	struct nn_draw draw; /* secret bytes: nn_draw_secure in the agent */
	/* The owner's own terms; a round that offers less is refused. */
	uint32_t min_holders; /* 0: any */
	uint32_t min_members; /* of the roster, ourselves among them; 0: any */
	uint32_t train_ms; /* a round is not waited for longer, whatever it says; 0: as it says */
	uint32_t stage_ms;
	bool secret_only; /* rows leave under masks or not at all */
	bool bound;	  /* rows that are far from the others' are kept out (round_bound.c) */
	/* NULL: members are not judged in this round.  Else, on a worker: what these tables make of
	 * each of some valid triples; *each is freed by who asks.  0, or what ends it. */
	int (*judge)(void *ctx, const struct kge_emb *m, double **each, size_t *n);
	void *judge_ctx;
	/* The figures signed are on the owner's disk first: no account leaves before
	 * fed_round_recorded() says so. */
	bool on_record;
	/* Of what we propose: higher than that of any proposal of ours that somebody has joined.
	 * At most FED_SERIAL_MAX. */
	uint64_t serial;
};

#define FED_SERIAL_MAX (UINT64_C(1) << 62)

struct fed_round;

/* ---- life ---- */

/* Propose a round with these settings to all peers of the setup. */
int fed_round_propose(struct fed_round **out, const struct fed_setup *s,
		      const struct fed_settings *settings, uint64_t now_ms, struct err *e);

struct net_message;

/* Views point into the message that it was read from. */
struct fed_proposal {
	uint8_t id[FED_ID];
	uint8_t proposer[FED_KEY];
	uint64_t serial;   /* among its proposer's; the owner holds it against older ones */
	uint8_t nonce[32]; /* digest of that in its proposer's joining */
	struct fed_settings settings;
	uint8_t member[FED_MEMBERS_MAX][FED_KEY]; /* that it was sent to, and the proposer; */
	size_t n_members;			  /* keys ascend */
	uint8_t signature[FED_SIGNATURE];
	const uint8_t *bytes; /* as they were signed: [n] */
	size_t n;
	size_t message_bytes; /* of the message around them */
};

/* Is this message a proposal, and of whom: for the owner's policy.  Its signature is
 * not looked at.  ERR_PROTO. */
int fed_proposal_read(struct fed_proposal *out, const struct net_message *m, struct err *e);
/* With bytes of its own, to be free()d. */
struct fed_proposal *fed_proposal_copy(const struct fed_proposal *p);
/* Join a proposed round.  s->part must be of its method (fed_part_new() with its settings).
 * ERR_PROTO, ERR_IDENTITY, ERR_REFUSED: nothing was made; decline with the error's text. */
int fed_round_join(struct fed_round **out, const struct fed_setup *s, const struct fed_proposal *p,
		   uint64_t now_ms, struct err *e);
/* The answer to a proposal that is not joined. */
void fed_decline(const uint8_t id[FED_ID], const char *reason, struct buf *out);

/* No worker may be at its work.  NULL is fine. */
void fed_round_free(struct fed_round *r);

/* ---- what happens ---- */

/* A message from this member, whole, as net_message_decode() made it.  Never fails: what is wrong
 * with it is held against that member alone. */
void fed_round_received(struct fed_round *r, const uint8_t from[FED_KEY],
			const struct net_message *m, uint64_t now_ms);
void fed_round_lost(struct fed_round *r, const uint8_t member[FED_KEY], uint64_t now_ms);
void fed_round_tick(struct fed_round *r, uint64_t now_ms); /* a deadline may have passed */
/* Leave: the others are told. */
void fed_round_stop(struct fed_round *r, int code, const char *why, uint64_t now_ms);

/* ---- what it wants ---- */

enum fed_want {
	FED_WAIT,     /* nothing but messages and its deadline */
	FED_TRAIN,    /* fed_train() of the part, then fed_round_worked() */
	FED_EXCHANGE, /* fed_round_run(), then fed_round_worked() */
	FED_OVER,     /* see fed_round_status() */
};

enum fed_want fed_round_want(const struct fed_round *r);
/* FED_EXCHANGE, on any thread.  Messages may be received and sent meanwhile. */
int fed_round_run(struct fed_round *r);
void fed_round_worked(struct fed_round *r, int status, uint64_t now_ms);
uint64_t fed_round_deadline(const struct fed_round *r); /* UINT64_MAX: none */
/* Append the next message for this member; false: there is none now.  Rows are made into
 * messages as they are asked for, so a slow link costs no memory: ask while it takes more.
 * After FED_OVER there may be messages left for a while. */
bool fed_round_pull(struct fed_round *r, const uint8_t member[FED_KEY], struct buf *out);

/* ---- what came of it ---- */

enum fed_fate {
	FED_TOOK_PART,
	FED_DECLINED, /* or did not answer a proposal in time */
	FED_LATE,     /* a deadline passed before it had sent everything */
	FED_LOST,     /* its link went down, or it left */
	FED_BROKE,    /* broke the protocol */
	FED_APART,    /* some member has said different things to it and to us: other routes */
	FED_FATES,
};

const char *fed_fate_name(int fate); /* "took part"; "?" if unknown */

/* Rows of one member against those of the others, of items that we are home to.  Plain rows, of
 * the first stage (round_distance.c). */
struct fed_distance {
	uint64_t rows, compared; /* of them: those where the others' is not zero */
	double apart, cosine;	 /* sums over these: |x - y| / |y|, 4 at the most, and x.y / |x||y|:
				  * x its row, y the others' */
};

/* The means of both; -1 and 0 where there is nothing to compare. */
double fed_distance_apart(const struct fed_distance *d);
double fed_distance_cosine(const struct fed_distance *d);
/* Are the rows of this member far from the others'?  Three times the median distance of the others,
 * and half of their length at the least; of two members nobody can say who is, so that it takes
 * three lengths.  Or they point elsewhere: at less than half of the median cosine of the others,
 * where these are at .5 or more.  On FB15k-237-R5 honest members that began alike are at
 * .8 and above from the first round on, one that has gone on from a copy trained alone at .6, noise
 * at .1. */
bool fed_distance_is_far(const struct fed_distance *of, size_t n, size_t which);

/* One member, as we have seen it. */
struct fed_account {
	uint8_t key[FED_KEY];
	enum fed_fate fate;
	struct err trouble;		/* code 0: none */
	uint64_t bytes_out, bytes_in;	/* of whole messages, but for accounts */
	uint64_t rows_out, rows_in;	/* that travelled */
	uint64_t floats_out, floats_in; /* in them, and in notes */
	uint32_t strange;		/* messages that were repeated or not expected: ignored */
	struct fed_distance distance;	/* its rows, where we were home; ours, too */
	uint64_t rows_far;		/* of these rows, left out one by one (round_bound.c) */
	bool left_out;	/* of the answers that we gave as a home: its rows are far out */
	bool not_taken; /* its own answers, as a home: the same */
	bool unaligned; /* of FED_DECLINED: it joined, and its marks and another's differ */
	/* By our valid (round_judge.c): was there a verdict, left out; and, of plain rows, tried,
	 * clearly hurt ... */
	bool in_turn, judged_out, judged, hurts;
	double with, without; /* ... mean scores with all, and without those that hurt */
};

struct fed_report {
	unsigned members;      /* of the roster; 0 before START */
	unsigned participants; /* they, and then those that were asked and are not in it */
	unsigned me;	       /* our own number among them */
	size_t items;	       /* that this agent shares */
	size_t answered;       /* of them, in the last stage: a home has answered */
	size_t refused;	       /* answers: not taken, since they would move our rows too far */
	size_t homed;	       /* items that this agent was home to */
	uint64_t params_up, params_down; /* as the papers count: through a server, all items */
	size_t clipped;			 /* secret aggregation: values beyond +-clip, cut */
	size_t spoiled; /* and rows that were dropped, since their masks did not cancel */
};

uint8_t const *fed_round_id(const struct fed_round *r);
const struct fed_settings *fed_round_settings(const struct fed_round *r);
/* Not while fed_round_run() is at work. */
void fed_round_report(const struct fed_round *r, struct fed_report *out);
/* fed_peer.kept_out after a round: a home whose answers nobody takes leaves its rows apart, and one
 * that is no home sends none to be looked at. */
uint32_t fed_kept_out_after(uint32_t was, const struct fed_account *a);
/* A participant's, from START on by member number; the round's. */
const struct fed_account *fed_round_account(const struct fed_round *r, unsigned participant);
int fed_round_status(const struct fed_round *r, struct err *e); /* 0, or why it ended early */

/* ---- accounts: what each member signs of a round for each other (round_account.c) ---- */

struct fed_traffic {
	uint64_t rows_out, rows_in, floats_out, floats_in;
};

struct fed_signed {
	struct fed_traffic t; /* as that member has counted: its out is our in */
	uint8_t signature[FED_SIGNATURE];
	char refused[FED_REFUSED_MAX]; /* why it is no account of the member's, though it came from
					* it; "": the signature fits */
};

/* The account that a member has signed for us, or what came instead of it; NULL: nothing yet.  It
 * may come after FED_OVER. */
const struct fed_signed *fed_round_theirs(const struct fed_round *r, unsigned participant);

/* Says in words why both accounts cannot be true: one side never gets more than the other sent,
 * nor, where all_came, do we get less.  The member may have got less of ours. */
bool fed_account_clashes(const struct fed_traffic *ours, const struct fed_traffic *theirs,
			 bool all_came, char why[FED_REFUSED_MAX]);

/* Of which round. */
struct fed_account_head {
	uint8_t id[FED_ID];
	uint64_t number;
	const char *method;
	bool hosted;
	uint32_t secret_bits;
};

/* The text that is signed; NUL-terminated. */
void fed_account_text(char out[FED_ACCOUNT_MAX], const struct fed_account_head *h,
		      const uint8_t from[FED_KEY], const uint8_t to[FED_KEY],
		      const struct fed_traffic *t);
extern const char fed_account_forged[]; /* why one is refused that can be read */
/* Ed25519 of BLAKE2b-256 over "fkge round account 1", NUL and the text without its NUL. */
bool fed_account_is_signed(const char *text, const uint8_t signature[FED_SIGNATURE],
			   const uint8_t key[FED_SIGN]);
/* With on_record: what we count of a participant is on disk, as it is here.  Where it is still so
 * when nothing is left to send, our account of it may leave. */
void fed_round_recorded(struct fed_round *r, unsigned participant, const struct fed_traffic *t);
/* Is that all that one of our accounts waits for? */
bool fed_round_signs(const struct fed_round *r);
/* The round is OVER, and a member whose link was lost is here again: our account goes to it once
 * more, since it may not have arrived, and its own is heard.  Rows are neither. */
void fed_round_again(struct fed_round *r, const uint8_t member[FED_KEY]);
/* The round is OVER and sends no more rows: frees all but what accounts need, which is less than
 * 2 KiB a member. */
void fed_round_close(struct fed_round *r);

/* A participant as it is on record. */
struct fed_recalled {
	struct fed_account account;
	bool has_account; /* has signed, or what came instead was refused: */
	struct fed_signed theirs;
};

/* A round of before a restart, OVER and closed: tells accounts and hears them, once a member is
 * here again (fed_round_again()); s->peers need no slots.  All of it is on disk.  err: what it came
 * to.  NULL: we are not among the first `members` of the participants, the roster, or they are too
 * many.
 */
struct fed_round *fed_round_recall(const struct fed_setup *s, const struct fed_account_head *h,
				   const struct err *err, const struct fed_recalled *participants,
				   unsigned members, unsigned n_participants);

#endif
