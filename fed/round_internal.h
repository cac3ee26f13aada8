/* fed/round_internal.h - the machine's own data.  Only fed/round*.c include this.
 *
 * round.c          events, deadlines, what is wanted next
 * round_roster.c   PROPOSE, JOIN, START: who takes part
 * round_message.c  rows into messages and out of them
 * round_row_buffer.c     what is under way between one holder and one home
 * round_work.c     the works: rows up (and up again), answers, rows down
 * round_secret.c   the masks of all these
 * round_account.c  what members sign for each other at the end
 *
 * While a work is under way (`work`), its worker has: TRAIN the part and the
 * tables; UP these and `out`; HOME `in`, `first`, `answer` and the part; DOWN
 * `back`, the part and the tables.  Messages that arrive meanwhile touch none
 * of these: `in` is closed while HOME runs, `back` while DOWN does. */
#ifndef FED_ROUND_INTERNAL_H
#define FED_ROUND_INTERNAL_H

#include "base/message_queue.h"
#include "fed/mask.h"
#include "fed/plan.h"
#include "fed/round.h"
#include "net/bodies.h"

/* ---- rows between one holder and one home in one stage ---- */

#define ROW_NONE SIZE_MAX

struct fed_row_buffer {
	unsigned stage;
	size_t n;      /* positions: of the route */
	size_t *at;    /* [n] where its row begins, or ROW_NONE */
	uint8_t *seen; /* [n] received: the position was spoken of */
	float *rows;
	size_t floats, cap;
	float *note;	   /* NULL: none */
	size_t done;	   /* positions sent, or spoken of */
	bool begun, whole; /* the first message went or came; all did */
};

struct fed_row_buffer *fed_row_buffer_new(unsigned stage, size_t n, bool receiving);
void fed_row_buffer_free(struct fed_row_buffer *c);
/* Room for the row of a position. */
float *fed_row_buffer_add(struct fed_row_buffer *c, size_t position, size_t floats);
const float *fed_row_buffer_row(const struct fed_row_buffer *c, size_t position); /* NULL: none */

/* ---- members ---- */

enum { JOIN_MAX = 4096, MARK = 16, NONCE = 32, DIGEST = 32 };

struct joining {
	uint8_t bytes[JOIN_MAX];
	size_t n;
	uint8_t signature[64];
	uint8_t mark[FED_MEMBERS_MAX][MARK]; /* by candidate; zero: not aligned */
	uint8_t nonce[NONCE];
	uint8_t mask_key[FED_MASK_KEY]; /* under secret aggregation: X25519, public */
	uint64_t kept_out;		/* candidates: fed_peer.kept_out > 0 */
};

struct fed_participant {
	struct fed_account account;
	const struct fed_peer *peer;   /* NULL: ourselves */
	struct joining *joining;       /* NULL: has not joined */
	bool answered;		       /* joined or declined */
	bool gone;		       /* lost or broke the protocol: not heard any more ... */
	bool left;		       /* ... but for its account, since it said that it goes */
	bool apart;		       /* its routes with us are not ours with it: not counted on,
					* and but for its account not heard */
	struct message_queue queue;    /* for it, but for rows */
	struct net_message **early;    /* of it, before START: [n_early], each with its own bytes */
	size_t n_early, early_bytes;   /* of memory */
	bool account_sent, has_theirs; /* our account has been sent; its own is here */
	struct fed_signed theirs;
	bool recorded; /* this much of its account is on disk: */
	struct fed_traffic on_disk;
};

/* ---- masks (round_secret.c) ---- */

enum { SECRET_ATTEMPTS = 2 }; /* of a stage: as begun, and once without those that were lost */

/* A holder's side of one home. */
struct mask_state {
	uint64_t without; /* members that it has told us to do without */
	unsigned attempt;
	bool shown; /* our own masks of this stage: no further attempt */
};

struct secret {
	struct fed_mask_ring ring;
	struct fed_mask_secret mine;
	struct fed_mask_stream pair[FED_MEMBERS_MAX]; /* by member */
	uint8_t blind_key[FED_MASK_KEY];	      /* hosted, not at the host */
	uint8_t (*nonce)[FED_MASK_NONCE];	      /* [items of ours] */
	size_t clipped, spoiled;		      /* values; sums whose masks did not cancel */

	struct mask_state mask_state[FED_MEMBERS_MAX]; /* by home */
	uint64_t again;				       /* homes that wait for rows once more */

	/* as a home, in this stage */
	unsigned attempt;
	uint64_t without, shown;
	uint8_t shown_key[FED_MEMBERS_MAX][FED_MASK_KEY];
};

/* ---- the machine ---- */

enum phase { PROPOSING, JOINED, RUNNING, OVER };
enum holder_phase { HOLD_TRAIN, HOLD_UP, HOLD_WAIT, HOLD_DOWN, HOLD_DONE };
enum home_phase { HOME_COLLECT, HOME_SHOW, HOME_READY, HOME_DONE };
enum work { WORK_NONE, WORK_TRAIN, WORK_UP, WORK_AGAIN, WORK_HOME, WORK_DOWN };

struct fed_round {
	const struct fed_setup *setup;
	struct fed_settings settings;
	uint8_t id[FED_ID];
	enum phase phase;
	struct err err;
	uint64_t now_ms, due_ms; /* due: of the answers, or of START */

	struct buf proposal; /* as signed */
	uint8_t proposal_digest[DIGEST];
	uint8_t nonce[NONCE];	      /* of our joining, where we propose ... */
	uint8_t nonce_digest[DIGEST]; /* ... and what the proposal says of its proposer's */
	uint8_t candidate[FED_MEMBERS_MAX][FED_KEY];
	unsigned n_candidates;
	unsigned proposer; /* its number among the participants */

	/* By key; from START on the roster's first, by number. */
	struct fed_participant *participants;
	unsigned n_participants, me;

	/* from START on */
	struct fed_plan *plan;
	unsigned members, stages;
	uint64_t started_ms;
	enum holder_phase holder_phase;
	enum home_phase home_phase;
	unsigned stage, home_stage;
	enum work work;
	unsigned ups;	  /* stages whose rows of ours are made */
	bool named;	  /* hosted: our names are made, or we do without */
	uint64_t homes;	  /* members that may still answer us */
	uint64_t holders; /* members that still take part where we are home */
	uint64_t to;	  /* of the homes: whom rows are being made for */
	uint64_t present; /* of the holders: whose rows the answers are made of */
	struct fed_row_buffer *out[FED_MEMBERS_MAX], *back[FED_MEMBERS_MAX];
	struct fed_row_buffer *in[FED_MEMBERS_MAX], *first[FED_MEMBERS_MAX],
		*answer[FED_MEMBERS_MAX];

	struct secret *secret; /* NULL: rows are plain */
	uint64_t left_out;     /* members: their rows, where we are home */
	uint64_t not_taken;    /* homes: their answers */

	/* what the work under way has counted, and all together */
	size_t answered, homed, items, refused;
	uint64_t work_up, work_down, params_up, params_down;
};

/* ---- round.c ---- */

struct fed_participant *fed_participant_find(struct fed_round *r, const uint8_t key[FED_KEY]);
/* A fault of this member alone: it is not heard any more. */
void fed_participant_break(struct fed_round *r, struct fed_participant *s, const struct err *e);
void fed_round_end(struct fed_round *r, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void fed_round_run_members(struct fed_round *r); /* START is here, or ours was made */
static inline uint64_t bit(unsigned m)
{
	return UINT64_C(1) << m;
}

/* ---- round_roster.c ---- */

void fed_message_begin(const struct fed_round *r, struct net_writer *w, struct buf *out,
		       enum net_round_kind kind);
void fed_message_send(struct fed_participant *s, struct net_writer *w,
		      struct buf *out); /* releases out */
void fed_message_send_reason(const struct fed_round *r, struct fed_participant *s,
			     enum net_round_kind kind, const char *reason);
void fed_roster_joined(struct fed_round *r, struct fed_participant *s, const struct net_message *m);
void fed_roster_declined(struct fed_round *r, struct fed_participant *s,
			 const struct net_message *m);
/* Of each member, who has kept out its rows or answers lately: [members].  Every member comes to
 * the same, by the joinings. */
void fed_roster_against(const struct fed_round *r, uint64_t against[FED_MEMBERS_MAX]);
void fed_roster_close(struct fed_round *r); /* proposer: all have answered, or it is time */
void fed_roster_started(struct fed_round *r, struct fed_participant *s,
			const struct net_message *m);

void fed_round_sign(uint8_t out[FED_SIGNATURE], const char *tag, const void *bytes, size_t n,
		    const struct fed_setup *s);
bool fed_round_is_signed(const uint8_t signature[FED_SIGNATURE], const char *tag, const void *bytes,
			 size_t n, const uint8_t key[FED_SIGN]);

/* ---- round_account.c ---- */

bool fed_account_is_due(const struct fed_round *r, unsigned m);
void fed_account_send(struct fed_round *r, unsigned m);
/* *e for what breaks the protocol. */
void fed_account_take(struct fed_round *r, struct fed_participant *s, const struct net_message *m,
		      struct err *e);

/* ---- round_message.c ---- */

/* Append the next message of a route; the row buffer goes on. */
void fed_message_write(struct fed_round *r, unsigned member, bool up, struct buf *out);
/* An UP without places: what goes between this member and us. */
void fed_message_send_routes(struct fed_round *r, unsigned member);
/* Of an UP: false where it says other routes between the two than ours. */
bool fed_message_has_routes(const struct fed_round *r, unsigned member,
			    const struct net_message *m);
/* Of an UP: it says that and nothing else, as it should. */
bool fed_message_is_empty(const struct fed_round *r, unsigned member, const struct net_message *m);
/* Returns whether the row buffer was moved on; *e for what breaks the protocol. */
bool fed_message_read(struct fed_round *r, unsigned member, bool up, const struct net_message *m,
		      struct err *e);

/* Units (of a float) that the row of a position takes in row buffer and message. */
size_t fed_row_units(const struct fed_round *r, const struct fed_route *l, size_t position,
		     const struct fed_shape *s, bool up);

/* ---- round_secret.c ---- */

void fed_secret_draw(struct fed_round *r);  /* if the settings want it; before our joining */
void fed_secret_begin(struct fed_round *r); /* START is here */
void fed_secret_free(struct fed_round *r);
/* Whether masks with this member can be made of its public key. */
void fed_secret_check(const struct fed_round *r, const uint8_t member[FED_KEY],
		      const uint8_t public[FED_MASK_KEY], struct err *e);
size_t fed_secret_units(const struct fed_round *r, size_t floats);

/* The masks of one route to a home, in this attempt. */
struct fed_secret_route {
	uint64_t without;
	struct fed_mask_stream own, pair[FED_MEMBERS_MAX], blind[FED_MEMBERS_MAX];
};

void fed_secret_route_begin(const struct fed_round *r, unsigned home, struct fed_secret_route *s);
void fed_secret_route_end(struct fed_secret_route *s); /* wipes */
/* n floats -> masked words; false: this row does not travel. */
bool fed_secret_put(struct fed_round *r, unsigned home, const struct fed_secret_route *s,
		    size_t position, const float *row, size_t n, float *out);
/* A home's answer -> n floats; false: it is none. */
bool fed_secret_open(struct fed_round *r, unsigned home, const struct fed_secret_route *s,
		     size_t position, const float *answer, size_t n, float *row);

/* At its home: an item, with the position in the route of one member that sent it. */
bool fed_secret_answer(struct fed_round *r, const struct fed_upload *u, const struct fed_route *l,
		       size_t position, size_t n, float *answer);

/* Ask all that are left for their rows without `lost`; false: it is no use, or too late. */
bool fed_secret_again(struct fed_round *r, uint64_t lost);
void fed_secret_show(struct fed_round *r);
bool fed_secret_owes(const struct fed_round *r, unsigned member); /* its key, to us */
void fed_secret_home_next(struct fed_round *r);			  /* the next stage */
void fed_secret_hold_next(struct fed_round *r);
/* Each returns whether the message meant something; *e for what breaks the protocol. */
bool fed_secret_take_again(struct fed_round *r, unsigned home, const struct net_message *m,
			   struct err *e);
bool fed_secret_take_show(struct fed_round *r, unsigned home, const struct net_message *m,
			  struct err *e);
bool fed_secret_take_shown(struct fed_round *r, unsigned member, const struct net_message *m,
			   struct err *e);

/* ---- round_distance.c ---- */

/* The mean length of our own rows, of entities or of relations, [first, end). */
double fed_distance_typical(const struct fed_round *r, char tag, uint32_t first, uint32_t end);
/* Adds a row to what is known of its member, beside the one that it should be like; its distance is
 * in lengths of that one, or in `least` where that is more. */
void fed_distance_row(struct fed_distance *d, const float *row, const float *from, size_t floats,
		      double least);
/* Adds the rows that came of an item that we are home to, each of `floats`; scratch has room for
 * one. */
void fed_distance_add(struct fed_round *r, const struct fed_upload *u, size_t floats, double least,
		      float *scratch);

/* The middle of an item's rows, number by number, if there are more than two: out[floats].
 * Returns how many rows there are. */
unsigned fed_distance_medians(const struct fed_upload *u, size_t floats, float *out);

/* ---- round_steps.c ---- */

enum { FED_STEP_KINDS = 3 }; /* entities, relations, dense rows */

struct fed_steps {
	struct fed_step_lengths {
		float *length;
		size_t n, cap;
	} of[FED_MEMBERS_MAX][FED_STEP_KINDS];
	double least[FED_STEP_KINDS];  /* our own rows' mean length */
	double middle[FED_STEP_KINDS]; /* after fed_steps_end() */
	uint32_t entities;	       /* ids of entities from here on are dense rows */
	bool own_is_far;	       /* it is our own rows that are far from the others' */
};

void fed_steps_begin(struct fed_steps *s, const struct fed_round *r);
/* How far a row is from ours, in lengths. */
double fed_steps_apart(const struct fed_steps *s, const struct fed_item *it, const float *row,
		       const float *own, size_t floats);
void fed_steps_note(struct fed_steps *s, unsigned member, const struct fed_item *it,
		    const float *row, const float *own, size_t floats);
void fed_steps_end(struct fed_steps *s); /* all are noted */
/* The lower of two middle ones; sorts them. */
float fed_steps_median(float *at, size_t n);
double fed_steps_middle(const struct fed_steps *s, const struct fed_item *it);
void fed_steps_release(struct fed_steps *s);

/* ---- round_bound.c ---- */

/* Whose rows of this round are left out where we are home: their distances are known. */
void fed_bound_members(struct fed_round *r);
/* Are our rows those that are far from the others'?  Then they say nothing of anybody. */
bool fed_bound_own_is_far(const struct fed_round *r);
/* Are the rows of an item bounded? */
bool fed_bound_has(const struct fed_round *r);
/* Of one item, [members], NULL: none, or left out; those that are cut are put into scratch
 * instead: room for members + 1 rows.  Around our own row; around the middle of all where we sent
 * none, or where it is our rows that are far from the others'. */
void fed_bound_rows(const struct fed_round *r, const struct fed_steps *steps,
		    const struct fed_item *it, const float **row, size_t floats, float *scratch);
/* Are answers looked at before they are taken? */
bool fed_bound_looks_at_answers(const struct fed_round *r);
/* Whose answers are not taken: [members] of how far they are from our rows. */
void fed_bound_homes(struct fed_round *r, const struct fed_distance *answers);
/* What is taken of an answer: all, or as much as is in cut; NULL: nothing, our own stays. */
const float *fed_bound_answer(const struct fed_steps *s, const struct fed_item *it,
			      const float *row, const float *own, size_t floats, float *cut);

/* ---- round_judge.c ---- */

/* Rows of a table that go by who is heard. */
struct fed_trial_rows {
	size_t n;
	const struct fed_item *(*item)(void *ctx, size_t i);
	/* What it is with those that are heard; false: our own. */
	bool (*row)(void *ctx, size_t i, uint64_t with, float *out);
	void *ctx;
};

bool fed_judge_means(const struct fed_round *r); /* answers are means of rows of a table */
uint64_t fed_judge_before(const struct fed_round *r);
/* Of these members, without ourselves, who hurts; into their accounts, too. */
uint64_t fed_judge_members(struct fed_round *r, uint64_t in, const struct fed_trial_rows *rows,
			   bool blames);

/* ---- round_work.c ---- */

int fed_work_run(struct fed_round *r);

#endif
