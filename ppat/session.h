/* ppat/session.h - one translation between a host and a client (methods 3.2, 3.6).
 *
 * The client's rows X of the aligned slots reach the host as X-hat, moved into the host's space.
 * Three translators do that, each a conversation (base/conv.h): a machine without I/O that
 * names one request at a time.  Its picture, and its table of phases, are in its own file:
 *
 *      PPAT_PROCRUSTES   procrustes.c    rotated rows go to the host, which solves for the map
 *      PPAT_MAP          map.c           the host releases a noisy matrix, the client solves
 *      PPAT_PPAT         adversarial.c   a generator plays against discriminators, by noisy labels
 *
 * All end alike: X-hat, or what the host makes it of, goes in ROWS and ACK, virtual neighbours
 * in VIRTUAL and ACK if max_virtual > 0, and the host's last WORK computes the result.  Messages
 * hold at most PPAT_CHUNK_MAX bytes of floats and alternate strictly, so both sides hash the
 * same transcript.
 *
 * Invariant, asserted after every move (machine.c): labels, or releases, drawn <= charged.  A
 * refused release ends its session with ERR_BUDGET, and nothing is sent; refused labels end the
 * training, and the rows follow.
 *
 * The host's partition key and seeds never leave this folder: not in a message, not in an error
 * text.  Its votes do as counts, for the host's own account of them (agent/core/votes.h).  Stopping
 * depends on the step limit and on the ledger's refusal alone (C5). */
#ifndef PPAT_SESSION_H
#define PPAT_SESSION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/conv.h"
#include "base/secret.h"
#include "dp/mechanism.h"
#include "nn/linalg.h"
#include "ppat/config.h"

enum ppat_role { PPAT_HOST, PPAT_CLIENT };

/* The aligned rows of this side, in slot order.  Copied. */
struct ppat_rows {
	const float *rows;	/* [n x dim] */
	const uint8_t *tags;	/* [n] 'e' or 'r', equal on both sides; NULL: all 'e' */
	const uint64_t *ids;	/* [n] host only: lasting local identity of the slot (its tag and
				   id), by which rows go to teachers; NULL: the slot number */
	size_t n;		/* == config.slots */
	size_t dim;		/* == config.host_dim or client_dim */
	const uint64_t *places; /* [n] config.lasting: of what is shared, equal on both sides and in
				   every session of the two; else not looked at */
};

/* One noisy label of one row: 1 (real) or 0.  The agent's is dp/mechanism.h over
 * `draw`; tests pin the stream here. */
struct ppat_labeller {
	int (*label)(void *ctx, uint32_t ones, uint32_t zeros);
	void *ctx;
};

struct ppat_virtual; /* ppat/virtual.h */
struct dp_votes;     /* dp/accountant.h */

/* Are all n values such that a session takes them: no NaN, none too large? */
bool ppat_rows_may_travel(const float *rows, size_t n);

/* draw.fn is called from ppat_open() and from work(), so on a worker. */
struct ppat_env {
	struct nn_draw draw;		       /* secrets; nn_draw_secure in the agent */
	const struct ppat_labeller *labeller;  /* NULL: the mechanism of the config */
	const struct ppat_virtual *neighbours; /* client, when max_virtual > 0; borrowed */
	const float *start; /* client of PPAT: W to begin with [host_dim x client_dim], from
			       what is public; NULL: the identity.  Borrowed by ppat_open() */
	bool same_frame;    /* host, with unrotated rows: both sides say that theirs are in one
			       frame; X-hat is what came, unless the rows themselves differ */
	uint32_t measure; /* host: of so many rows CSLS, and the mean cosine of all, for its owner's
			     eyes (outside the guarantee); 0: neither */
};

/* Does this side draw labels or a release, and charge its own ledger for them? */
bool ppat_spends(const struct ppat_config *c, enum ppat_role role);

/* A new conversation, any translator; free with conv_free().  NULL and *e:
 * ERR_USAGE for a config or rows that do not fit (also a NaN in our own rows). */
struct conv *ppat_open(enum ppat_role role, const struct ppat_config *c, const struct ppat_rows *in,
		       const struct ppat_env *env, struct err *e);

/* Adds noise of variance sigma2 to n whole numbers of a release: dp_lattice_noise(). */
typedef int ppat_noise_fn(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
			  const atomic_bool *cancel);
/* For the controls of an audit alone: other noise than what ships.  No setting leads here, and
 * nothing in agent/ or cli/ calls it or sets ppat_env.labeller (tests/audit/seams.sh). */
void ppat_plant_noise(struct conv *c, ppat_noise_fn *noise);

/* Which slots take part: those whose tag is in `what`, then ceil(share * that
 * many) of them: the lowest places, or, where the share is not lasting, those of the lowest hash of
 * select_seed and slot number.  Ascending; out holds n.  Both sides compute the same. */
size_t ppat_select(const struct ppat_config *c, const uint8_t *tags, const uint64_t *places,
		   uint32_t *out);

/* The teacher (0..teachers-1) of a row: keyed BLAKE2b of its identity (C1). */
uint32_t ppat_teacher_of(const uint8_t key[32], uint64_t id, uint32_t teachers);

/* kinds of messages, for tests and for those who audit a transcript */
enum ppat_kind {
	PPAT_MSG_BATCH = 1, /* c->h  z: tensor [pool x host_dim] (net/msg.h), the first `batch`
			       of them to be labelled */
	PPAT_MSG_LABELS,    /* h->c  b: ceil(batch/8) bytes, row i at bit i%8 of byte i/8 */
	PPAT_MSG_GRAD,	    /* h->c  z: dL/dZ, tensor [batch x host_dim] */
	PPAT_MSG_STOP,	    /* h->c  why: 1 = budget refused */
	PPAT_MSG_ROWS,	    /* c->h  o: first row, z: tensor, or h: rows in 16 bits a value
			     * (ppat/short_row.h); with PPAT_MAP: Z, then X-hat */
	PPAT_MSG_VIRTUAL,   /* c->h  t: bytes in all, o: offset, b: part of ppat_virtual_encode() */
	PPAT_MSG_ACK,	    /* h->c, c->h of MAP  empty body */
	PPAT_MSG_MAP,	    /* h->c  o: first row, z: tensor, rows of M */
	PPAT_MSG_PROBE,	    /* c->h  z: tensor [batch x host_dim], no labels wanted */
	PPAT_MSG_PROBE_GRAD, /* h->c  z: dL/dZ of a PROBE */
};

/* The result of a conversation.  Pointers are the conversation's. */
struct ppat_result {
	size_t n, dim;		/* rows that took part; dim of the host */
	const uint32_t *slots;	/* [n] ascending */
	const float *rows;	/* host, when OVER with status 0: X-hat [n x dim]; else NULL */
	const float *agreement; /* host: cosine of X-hat with Y, row by row [n]; never to be sent */
	const struct ppat_virtual *neighbours; /* host: what was received; NULL if none */
	/* Labels, or releases (1 at most), which count as labels here and on the ledger. */
	uint32_t labels_drawn;	 /* drawn by the side that spends, come at the other */
	uint32_t labels_charged; /* of the side that spends; the rest may be settled */
	bool refused;		 /* the ledger ended the training early */
	/* Host of PPAT: how the votes on these labels fell, for dp_account_note() alone; secret. */
	const struct dp_votes *votes;
	size_t n_votes;
	uint32_t steps;			     /* done: batches of labels */
	uint64_t generated;		     /* generated rows that training has sent */
	uint64_t bytes_sent, bytes_received; /* of message bodies */
	uint8_t transcript[32];		     /* equal on both sides when both are OVER with 0 */
	/* client: W, Q or RQ; host of Procrustes: R, from the client's axes to ours, the identity
	 * where the rows were as_received. */
	const float *map;
	bool as_received; /* host of Procrustes, same_frame: the rows agreed without a map */
	/* Outside the guarantee, of X-hat and Y: host, env.measure alone, else NAN.  Never sent,
	 * and nothing is decided by them. */
	double mean_cosine, mean_csls, csls_nearest;
};

void ppat_result(const struct conv *c, struct ppat_result *out);

#endif
