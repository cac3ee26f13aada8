/* fed/inside.h - the machine's own data.  Only fed/round*.c include this.
 *
 * round.c          events, deadlines, what is wanted next
 * round_roster.c   PROPOSE, JOIN, START: who takes part
 * round_message.c  rows into messages and out of them
 * round_lane.c     what is under way between one holder and one home
 * round_work.c     the three works: rows up, answers, rows down
 *
 * While a work is under way (`work`), its worker has: TRAIN the part and the
 * tables; UP these and `out`; HOME `in`, `first`, `answer` and the part; DOWN
 * `back`, the part and the tables.  Messages that arrive meanwhile touch none
 * of these: `in` is closed while HOME runs, `back` while DOWN does. */
#ifndef FED_INSIDE_H
#define FED_INSIDE_H

#include "fed/plan.h"
#include "fed/round.h"
#include "net/msg.h"

enum fed_message {
	FED_MSG_PROPOSE = 1, /* p proposal, s signature */
	FED_MSG_JOIN,	     /* j joining, s signature */
	FED_MSG_DECLINE,     /* r reason */
	FED_MSG_START,	     /* l list of signature and joining, s signature */
	FED_MSG_OUT,	     /* r reason: joined, but not in the roster */
	FED_MSG_LEAVE,	     /* r reason */
	FED_MSG_KEY,	     /* y 32 bytes: key of the round's names */
	FED_MSG_UP,	     /* see round_message.c */
	FED_MSG_DOWN,
};

/* ---- rows between one holder and one home in one stage ---- */

#define CARGO_NONE SIZE_MAX

struct cargo {
	unsigned stage;
	size_t n;      /* places: of the lane */
	size_t *at;    /* [n] where its row begins, or CARGO_NONE */
	uint8_t *seen; /* [n] received: the place was spoken of */
	float *rows;
	size_t floats, cap;
	float *note;	   /* NULL: none */
	size_t done;	   /* places sent, or spoken of */
	bool begun, whole; /* the first message went or came; all did */
};

struct cargo *cargo_new(unsigned stage, size_t n, bool receiving);
void cargo_free(struct cargo *c);
/* Room for the row of a place. */
float *cargo_add(struct cargo *c, size_t place, size_t floats);
const float *cargo_row(const struct cargo *c, size_t place); /* NULL: none */

/* ---- members ---- */

struct letter {
	struct letter *next;
	size_t n;
	uint8_t bytes[];
};

struct letters {
	struct letter *first, **end;
	size_t bytes;
};

void letters_add(struct letters *l, const uint8_t *bytes, size_t n);
struct letter *letters_take(struct letters *l); /* free() it; NULL: none */
void letters_release(struct letters *l);

enum { JOIN_MAX = 4096, MARK = 16, NONCE = 32, DIGEST = 32 };

struct joining {
	uint8_t bytes[JOIN_MAX];
	size_t n;
	uint8_t signature[64];
	uint8_t mark[FED_MEMBERS_MAX][MARK]; /* by candidate; zero: not aligned */
};

struct seat {
	struct fed_account account;
	const struct fed_peer *peer; /* NULL: ourselves */
	struct joining *joining;     /* NULL: has not joined */
	bool answered;		     /* joined or declined */
	bool gone;		     /* lost or broke the protocol: not heard any more */
	struct letters queue;	     /* for it, but for rows */
	struct letters early;	     /* of it, before START */
};

/* ---- the machine ---- */

enum phase { PROPOSING, JOINED, RUNNING, OVER };
enum holding { HOLD_TRAIN, HOLD_UP, HOLD_WAIT, HOLD_DOWN, HOLD_DONE };
enum homing { HOME_COLLECT, HOME_READY, HOME_DONE };
enum work { WORK_NONE, WORK_TRAIN, WORK_UP, WORK_HOME, WORK_DOWN };

struct fed_round {
	const struct fed_setup *setup;
	struct fed_settings settings;
	uint8_t id[FED_ID];
	enum phase phase;
	struct err err;
	uint64_t now_ms, due_ms; /* due: of the answers, or of START */

	struct buf proposal; /* as signed */
	uint8_t proposal_digest[DIGEST];
	uint8_t candidate[FED_MEMBERS_MAX][FED_KEY];
	unsigned n_candidates;
	unsigned proposer; /* seat */

	struct seat *seats; /* by key; from START on the roster's first, by number */
	unsigned n_seats, me;

	/* from START on */
	struct fed_plan *plan;
	unsigned members, stages;
	uint64_t started_ms;
	enum holding holding;
	enum homing homing;
	unsigned stage, home_stage;
	enum work work;
	unsigned ups;	  /* stages whose rows of ours are made */
	bool named;	  /* hosted: our names are made, or we do without */
	uint64_t homes;	  /* members that may still answer us */
	uint64_t holders; /* members that still take part where we are home */
	uint64_t to;	  /* of the homes: whom rows are being made for */
	uint64_t present; /* of the holders: whose rows the answers are made of */
	struct cargo *out[FED_MEMBERS_MAX], *back[FED_MEMBERS_MAX];
	struct cargo *in[FED_MEMBERS_MAX], *first[FED_MEMBERS_MAX], *answer[FED_MEMBERS_MAX];

	/* what the work under way has counted, and all together */
	size_t answered, homed, items;
	uint64_t work_up, work_down, params_up, params_down;
};

/* ---- round.c ---- */

struct seat *seat_find(struct fed_round *r, const uint8_t key[FED_KEY]);
/* A fault of this member alone: it is not heard any more. */
void seat_break(struct fed_round *r, struct seat *s, const struct err *e);
void round_end(struct fed_round *r, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void round_run_members(struct fed_round *r); /* START is here, or ours was made */
static inline uint64_t bit(unsigned m)
{
	return UINT64_C(1) << m;
}

/* ---- round_roster.c ---- */

void letter_begin(const struct fed_round *r, struct net_writer *w, struct buf *out,
		  enum fed_message kind);
void letter_send(struct seat *s, struct net_writer *w, struct buf *out); /* releases out */
void letter_reason(const struct fed_round *r, struct seat *s, enum fed_message kind,
		   const char *reason);
void roster_joined(struct fed_round *r, struct seat *s, const struct net_map *m);
void roster_declined(struct fed_round *r, struct seat *s, const struct net_map *m);
void roster_close(struct fed_round *r); /* proposer: all have answered, or it is time */
void roster_started(struct fed_round *r, struct seat *s, const struct net_map *m);

/* ---- round_message.c ---- */

/* Append the next message of a lane; the cargo goes on. */
void message_write(struct fed_round *r, unsigned member, bool up, struct buf *out);
/* Returns whether the cargo was moved on; *e for what breaks the protocol. */
bool message_take(struct fed_round *r, unsigned member, bool up, const struct net_map *m,
		  struct err *e);

/* ---- round_work.c ---- */

int work_run(struct fed_round *r);

#endif
