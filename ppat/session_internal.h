/* ppat/session_internal.h - the state of one translation, shared by session.c (what may
 * happen when), host.c and client.c (the arithmetic and the messages). */
#ifndef PPAT_SESSION_INTERNAL_H
#define PPAT_SESSION_INTERNAL_H

#include <stdbool.h>

#include <sodium.h>

#include "base/buf.h"
#include "dp/mechanism.h"
#include "net/msg.h"
#include "ppat/scale.h"
#include "ppat/session.h"
#include "ppat/student.h"
#include "ppat/teachers.h"
#include "ppat/virtual.h"

enum ppat_phase {
	H_BATCH,
	H_VOTE,
	H_CHARGE,
	H_DRAW,
	H_ANSWER,
	H_STOP,
	H_RELEASE,
	H_MAP,
	H_MAP_ACK,
	H_ROWS,
	H_VIRTUAL,
	H_ACK,
	H_FINISH, /* host */
	C_DRAW,
	C_BATCH,
	C_WAIT,
	C_UPDATE,
	C_CHARGE,
	C_APPLY,
	C_ROWS,
	C_VIRTUAL,
	C_ACK,
	C_MAP,
	C_MAP_ACK,
	C_SOLVE, /* client */
	OVER,
	PHASES,
};

struct ppat_session {
	struct conv conv; /* first */
	enum ppat_role role;
	enum ppat_phase phase;
	struct err err;
	struct ppat_config cfg;
	struct nn_draw draw;
	struct ppat_labeller labeller;
	ppat_noise_fn *noise; /* of a release */
	struct dp_mechanism mechanism;
	bool paper;

	/* this side's rows that take part, scaled */
	uint32_t *slots; /* [n] */
	size_t n, dim;
	float *own;    /* [n x dim] */
	uint64_t *ids; /* [n], host */
	struct ppat_scaling scaling;

	/* training */
	uint32_t steps, steps_max;
	uint32_t inner; /* student at the host: generator's steps since the last labels */
	uint64_t shown; /* generated rows sent to the host in training */
	uint32_t pool;	/* rows in a BATCH */
	uint32_t *walk; /* client, mode BUDGET: [n] the order in which rows are asked about */
	uint32_t drawn, charged; /* labels, or releases: of the side that spends */
	uint32_t came;		 /* the other: labels, also those inside a gradient, or releases */
	bool refused;
	float *z;     /* [pool x host_dim] the batch */
	float *g;     /* [batch x host_dim] dL_G/dZ */
	float *label; /* [batch] */
	bool has_pupil;
	struct ppat_pupil pupil; /* where config.student says */
	bool has_teachers;
	struct ppat_teachers teachers; /* host */
	uint32_t *ones;		       /* [batch] votes, host's secret */
	bool labelled;		       /* host: labels of the batch in hand are drawn */
	struct rng rng;		       /* client: which rows are drawn */
	float *xb, *gw;		       /* client: [pool x client_dim], [host_dim x client_dim] */
	struct nn_sgd sgd;	       /* client: of map */

	/* client: W [host_dim x client_dim] or Q [client_dim x client_dim], with PPAT_MAP
	 * at last RQ [host_dim x client_dim]; host of Procrustes: R [host_dim x client_dim] */
	float *map;
	size_t map_floats;

	/* PPAT_MAP: the released map M, in units of its largest possible value but for noise */
	float *released; /* [host_dim x client_dim] */
	size_t map_at;	 /* rows of it that have gone, or come */
	bool mapped;	 /* it is over there: the rows on the wire are translated ones */

	/* translated rows on the wire */
	size_t wire_dim;
	float *wire; /* [n x wire_dim]; its Z until `mapped` */
	size_t rows_at;
	const struct ppat_virtual *give; /* client, borrowed */
	struct ppat_virtual *got;	 /* host */
	struct buf parcel;		 /* encoded virtual neighbours */
	size_t parcel_at;
	bool parcel_over;

	float *xhat, *agreement; /* host: [n x host_dim], [n] */
	double mean_cosine, mean_csls;

	struct buf out;
	uint8_t out_kind;
	crypto_generichash_state transcript;
	uint64_t bytes_sent, bytes_received;
};

/* Rows of wire_dim floats that one message takes. */
size_t ppat_chunk_rows(const struct ppat_session *s);

/* Begin and end the outgoing message; between them w puts its keys. */
void ppat_write_begin(struct ppat_session *s, struct net_writer *w, enum ppat_kind kind);
void ppat_write_end(struct ppat_session *s, struct net_writer *w);

/* Tensor `key`, exactly rows x cols, every value within +-PPAT_VALUE_MAX, into out. */
void ppat_read_matrix(const struct net_map *m, const char *key, float *out, size_t rows,
		      size_t cols, struct err *e);

/* release.c: what is clipped, rounded and drawn.  On a worker. */
int ppat_release_map(struct ppat_session *s);	/* host: `released` from own and wire */
int ppat_release_rows(struct ppat_session *s);	/* client: noise onto wire */
void ppat_release_clip(struct ppat_session *s); /* host: X-hat as long as its rows can be */

/* host.c.  take_*: a message's body; ERR_PROTO in e.  do_*: on a worker. */
void ppat_host_take_batch(struct ppat_session *s, const struct net_map *m, struct err *e);
void ppat_host_take_probe(struct ppat_session *s, const struct net_map *m, struct err *e);
void ppat_host_take_rows(struct ppat_session *s, const struct net_map *m, struct err *e);
void ppat_host_take_virtual(struct ppat_session *s, const struct net_map *m, struct err *e);
/* Is a batch charged that is not drawn? */
bool ppat_host_covered(const struct ppat_session *s);
int ppat_host_draw(struct ppat_session *s);
int ppat_host_vote(struct ppat_session *s);   /* labels drawn, answer written */
int ppat_host_slope(struct ppat_session *s);  /* of a probe: no label */
int ppat_host_finish(struct ppat_session *s); /* X-hat */
void ppat_host_write_stop(struct ppat_session *s);
void ppat_host_write_map(struct ppat_session *s);
void ppat_host_mapped(struct ppat_session *s); /* it is there: translated rows come now */
void ppat_host_write_ack(struct ppat_session *s);

/* client.c */
int ppat_client_draw(struct ppat_session *s);
void ppat_client_take_answer(struct ppat_session *s, const struct net_map *m, struct err *e);
void ppat_client_take_stop(struct ppat_session *s, const struct net_map *m, struct err *e);
int ppat_client_update(struct ppat_session *s);
int ppat_client_apply(struct ppat_session *s);
void ppat_client_take_map(struct ppat_session *s, const struct net_map *m, struct err *e);
void ppat_client_write_ack(struct ppat_session *s);
int ppat_client_solve(struct ppat_session *s);
void ppat_client_write_rows(struct ppat_session *s);
void ppat_client_write_virtual(struct ppat_session *s);

enum { PPAT_VALUE_MAX = 1000000, PPAT_PARCEL_MAX = 256 << 20 };

#endif
