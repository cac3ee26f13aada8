/* ppat/machine_internal.h - one side of a translation, and what makes it go from phase to phase.
 *
 * Each translator is a table of phases for the host and one for the client.  A phase says what
 * is requested of the agent (base/conv.h), which kinds of messages it takes, what is done when it
 * is entered, granted or refused, and which phases may follow; machine.c asserts every move
 * against the table, and after it that no more was drawn than was charged. */
#ifndef PPAT_MACHINE_INTERNAL_H
#define PPAT_MACHINE_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <sodium.h>

#include "base/buf.h"
#include "base/conv.h"
#include "net/bodies.h"
#include "ppat/scale.h"
#include "ppat/session.h"
#include "ppat/virtual.h"

struct ppat_side;

/* Phase 0 of every table: nothing follows, and every other phase may end in it. */
enum { PPAT_OVER = 0, PPAT_PHASES_MAX = 32, PPAT_VALUE_MAX = 1000000 };

#define PPAT_BIT(k)	(1u << (k)) /* of a phase, or of a kind of messages */
#define PPAT_PHASE_OVER [PPAT_OVER] = { .name = "over", .want = CONV_OVER }

struct ppat_phase {
	const char *name; /* in error texts: "while we wanted NAME" */
	enum conv_want want;
	unsigned to;			    /* phases that may follow, PPAT_BIT() of each */
	unsigned kinds;			    /* RECV: of messages that are taken */
	void (*enter)(struct ppat_side *s); /* SEND: writes the message, unless WORK did */
	int (*work)(struct ppat_side *s);   /* WORK: on a worker; 0, or the error in s->err */
	/* Granted, or taken: which of `to` follows.  NULL: the only one there, or PPAT_OVER. */
	unsigned (*next)(struct ppat_side *s);
	unsigned (*refused)(struct ppat_side *s); /* CHARGE: the ledger has no budget left */
	/* RECV: a message's body; ERR_PROTO in *e.  NULL: an ACK, which says nothing. */
	void (*take)(struct ppat_side *s, uint8_t kind, const struct net_map *m, struct err *e);
};

/* A translator: ppat_procrustes, ppat_map, ppat_adversarial. */
struct ppat_machine {
	const struct conv_ops *conv;
	size_t bytes;			    /* of its struct, which begins with struct ppat_side */
	const struct ppat_phase *phases[2]; /* by enum ppat_role */
	/* Own rows are gathered: fills what is the translator's own, returns the first phase. */
	unsigned (*begin)(struct ppat_side *s, const struct ppat_env *env);
	uint32_t (*cost)(const struct ppat_side *s); /* of the next charge; NULL: one release */
	void (*report)(const struct ppat_side *s, struct ppat_result *out); /* may be NULL */
	void (*release)(struct ppat_side *s);				    /* wipes secrets */
};

extern const struct ppat_machine ppat_procrustes, ppat_map, ppat_adversarial;

/* Labels, or releases, which count as labels. */
struct ppat_account {
	uint32_t charged, drawn; /* of the side that spends */
	uint32_t received;	 /* of the other */
	bool refused;		 /* the ledger has ended it */
};

/* This side's rows that take part, scaled. */
struct ppat_own {
	size_t n, dim;
	uint32_t *slots; /* [n] ascending */
	uint64_t *ids;	 /* [n] lasting identities: by them rows go to teachers */
	float *rows;	 /* [n x dim] */
	struct ppat_scaling scaling;
};

/* Rows that the client sends and the host receives, in chunks. */
struct ppat_wire {
	size_t dim;  /* the host's once they are translated, else the client's */
	float *rows; /* [own.n x dim] */
	size_t at;   /* rows that are through */
};

struct ppat_neighbours {
	const struct ppat_virtual *own; /* client; borrowed; NULL: none to send */
	struct ppat_virtual *received;	/* host */
	struct buf message;		/* encoded; sent, or received, in parts */
	size_t at;			/* bytes of it that are sent */
	bool complete;
};

/* Client: W, Q or RQ; host of Procrustes: R.  Methods 3.2 and 3.6. */
struct ppat_matrix {
	float *at; /* [rows x cols] */
	size_t rows, cols;
};

/* At the host: X-hat and what it alone may know of it. */
struct ppat_translated {
	float *rows;	  /* [own.n x host_dim] */
	float *agreement; /* [own.n] */
	bool as_received; /* no map was needed */
	double mean_cosine, mean_csls, csls_nearest;
};

/* The message that goes out, and the hash of all that went either way. */
struct ppat_output {
	uint8_t kind;
	struct buf body;
	uint64_t bytes_sent, bytes_received;
	crypto_generichash_state transcript;
};

struct ppat_side {
	struct conv conv; /* first */
	const struct ppat_machine *machine;
	const struct ppat_phase *phases; /* of this role */
	unsigned phase;
	enum ppat_role role;
	struct err err;
	const atomic_bool *cancel; /* of the WORK under way, or NULL */
	struct ppat_config cfg;
	struct nn_draw draw;
	ppat_noise_fn *noise; /* of a release */
	bool same_frame;
	uint32_t measure;
	struct ppat_account account;
	struct ppat_own own;
	struct ppat_wire wire;
	struct ppat_neighbours neighbours;
	struct ppat_matrix map;
	struct ppat_translated translated;
	struct ppat_output out;
};

/* ---- struct conv, for every translator ---- */

#define PPAT_CONV_OPS(n)                                                                           \
	{                                                                                          \
		.name = n, .want = ppat_machine_want, .received = ppat_machine_received,           \
		.outgoing = ppat_machine_outgoing, .cost = ppat_machine_cost,                      \
		.work = ppat_machine_work, .done = ppat_machine_done,                              \
		.status = ppat_machine_status, .free = ppat_machine_free,                          \
	}

enum conv_want ppat_machine_want(const struct conv *c);
void ppat_machine_received(struct conv *c, uint8_t kind, const uint8_t *body, size_t len);
struct conv_message ppat_machine_outgoing(const struct conv *c);
struct conv_charge ppat_machine_cost(const struct conv *c);
int ppat_machine_work(struct conv *c, const atomic_bool *cancel);
void ppat_machine_done(struct conv *c, int status);
int ppat_machine_status(const struct conv *c, struct err *e);
void ppat_machine_free(struct conv *c);

/* The hash that both sides keep of a session begins with its contract. */
void ppat_machine_begin_transcript(struct ppat_side *s);

/* Between the parts of a WORK that take long: ERR_CANCELED once nobody waits for it. */
static inline int ppat_canceled(const struct ppat_side *s)
{
	return conv_canceled(s->cancel) ? ERR_CANCELED : 0;
}

/* ---- the account ---- */

/* Invariant, asserted after every move and every draw: drawn <= charged (C3, C8). */
void ppat_account_charge(struct ppat_side *s, uint32_t labels);
void ppat_account_draw(struct ppat_side *s, uint32_t labels);
/* The one release of a session is refused: the session ends with ERR_BUDGET, nothing is sent. */
unsigned ppat_account_no_release(struct ppat_side *s, const char *of);

/* ---- messages ---- */

/* Begin and end the outgoing message; between them w puts its keys. */
void ppat_write_begin(struct ppat_side *s, struct net_writer *w, enum ppat_kind kind);
void ppat_write_end(struct ppat_side *s, struct net_writer *w);
/* The same bytes whatever was received and whatever Y is: an empty body. */
void ppat_write_ack(struct ppat_side *s);
/* A message of n rows as wide as the host's. */
void ppat_write_matrix(struct ppat_side *s, enum ppat_kind kind, const float *rows, size_t n);
/* Exactly rows x cols, every value within +-PPAT_VALUE_MAX, into out. */
void ppat_read_matrix(const struct net_map *m, float *out, size_t rows, size_t cols, struct err *e);
void ppat_read_rows(const struct net_tensor *t, float *out, size_t rows, size_t cols,
		    struct err *e);

#endif
