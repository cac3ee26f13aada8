/* ppat/config.h - what host and client agree on before they translate.
 *
 * The proposer fills it (ppat_config_defaults, then the owner's settings), sends
 * ppat_config_encode() in PROPOSE, and the other side decodes and checks it.
 * The encoding is canonical: equal configs have equal bytes, and
 * ppat_config_hash() is the contract's name on the ledger.  Everything here is
 * public between the two; nothing may be computed from either side's rows. */
#ifndef PPAT_CONFIG_H
#define PPAT_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"

enum ppat_translator { PPAT_PPAT, PPAT_PROCRUSTES, PPAT_MAP };
enum ppat_placement { PPAT_STUDENT_CLIENT, PPAT_STUDENT_HOST }; /* who trains the student */
enum ppat_mechanism { PPAT_LAPLACE, PPAT_GAUSSIAN };

/* PAPER is what was published: rows drawn at random, every label used once, one step of
 * teachers, student and generator a batch.  BUDGET makes the most of what was paid for:
 * rows by a public walk that meets each once before any twice, teachers trained on other
 * generated rows before they vote, labels kept and learned from again and again, several
 * steps of the generator a batch.  Both cost the same: one query a label. */
enum ppat_mode { PPAT_MODE_PAPER, PPAT_MODE_BUDGET };
enum ppat_loss { PPAT_SATURATING, PPAT_NON_SATURATING }; /* of the generator, methods 3.2 */
enum ppat_what { PPAT_ENTITIES = 1, PPAT_RELATIONS = 2, PPAT_BOTH = 3 };

/* How rows are brought to a common size before they meet.  PPAT allows only
 * what looks at one row at a time (NONE, UNIT): a factor computed from all of Y
 * would let one row of Y reach every teacher, and void the sensitivity.  The same
 * holds for the rows that go into a release (PPAT_MAP, noisy rows). */
enum ppat_scale {
	PPAT_SCALE_NONE,
	PPAT_SCALE_UNIT, /* every row to length 1 */
	PPAT_SCALE_RMS,	 /* one factor: root mean square row length to 1 (Procrustes only) */
	PPAT_SCALES,
};

enum {
	PPAT_DIM_MAX = 4096,	   /* floats in a row */
	PPAT_SLOTS_MAX = 16 << 20, /* aligned rows */
	PPAT_TEACHERS_MAX = 1000,
	PPAT_HIDDEN_MAX = 1024,
	PPAT_BATCH_MAX = 4096,	    /* rows; and batch * host_dim * 4 <= PPAT_CHUNK_MAX */
	PPAT_CHUNK_MAX = 256 << 10, /* bytes of float payload in one message */
	PPAT_VIRTUAL_MAX = 1 << 20, /* virtual rows, and virtual triples */
	PPAT_STEPS_MAX = 10000000,
	PPAT_TEACHER_STEPS_MAX = 1000, /* these three: between one batch of labels and the next */
	PPAT_STUDENT_STEPS_MAX = 10000,
	PPAT_GENERATOR_STEPS_MAX = 1000,
	PPAT_WEIGHTS_MAX = 1 << 26, /* weights of all teachers: 256 MiB, and as much momentum */
	PPAT_FLOATS_MAX = 1 << 29,  /* slots * (client_dim + host_dim): 2 GiB */
};

/* Least deviation of Gaussian votes. */
#define PPAT_SIGMA_MIN 1e-3
/* Noise times clip of a release: what is sent stays far below what a peer refuses. */
#define PPAT_SIZE_MAX 1e4

/* Operations of the client's part from one batch of labels to the next: at most a minute of one
 * core that does 16 in a nanosecond.  The host chooses the steps, and the client does them. */
#define PPAT_CLIENT_WORK_MAX 1e12

struct ppat_config {
	uint32_t translator; /* enum ppat_translator; likewise below */
	uint32_t student, mechanism, loss, what, scale;
	uint32_t center;	       /* 1: subtract the mean row first (Procrustes only) */
	uint32_t client_dim, host_dim; /* floats in a row */
	uint32_t slots;		       /* of the alignment; its digest is agreed elsewhere */
	uint32_t teachers, teacher_hidden, student_hidden;
	uint32_t batch, steps;	 /* rows a step; step limit */
	uint32_t max_labels;	 /* of this session; 0 for Procrustes and map */
	uint32_t reserve_labels; /* asked of the ledger at once, >= batch */
	uint32_t max_virtual;	 /* virtual rows (methods 3.4); 0: off */
	uint32_t mode;		 /* enum ppat_mode; PAPER: pool 0, and 1 step of each */
	uint32_t pool; /* generated rows a step, the first `batch` asked; 0: these alone */
	uint32_t teacher_steps, student_steps, generator_steps; /* a batch of labels */
	double noise; /* Laplace: lambda (scale is 1/lambda); Gaussian: sigma */
	double lr, momentum, beta;
	double aligned_share; /* of the aligned rows used, (0, 1] */
	/* Releases (methods 3.6): what is sent is clipped, rounded and has discrete Gaussian
	 * noise of deviation `multiplier` times its L2 sensitivity (dp/lattice.h). */
	double multiplier;		    /* 0: nothing is released.  PPAT_MAP: of the host's map;
					     * PPAT_PROCRUSTES: of the client's rows */
	double clip;			    /* length that rows are clipped to */
	uint64_t student_seed, select_seed; /* public */
	/* PPAT_PROCRUSTES: the client draws no rotation, and its rows travel on their own axes,
	 * for sides that may be in one frame (methods 3.8): rows of one width, as they are. */
	bool unrotated;
	/* Which rows the aligned share is goes by their places (struct ppat_rows), so it is the
	 * same rows in each session; else by select_seed and slot, other ones in each. */
	bool lasting;
	/* PPAT_PROCRUSTES without noise: the client's rows travel in 16 bits a value
	 * (ppat/short_row.h).  What is released stays as it was drawn. */
	bool short_rows;
};

/* The paper's settings: 4 teachers, Laplace 0.05, batch 32, SGD .02/.9, beta
 * .01, student at the client, 1000 steps; max_labels = steps * batch. */
void ppat_config_defaults(struct ppat_config *c, enum ppat_translator t, uint32_t slots,
			  uint32_t client_dim, uint32_t host_dim);

/* Mode BUDGET; of the pool as many rows as fit into a message.  batch and host_dim are set. */
void ppat_config_budget(struct ppat_config *c, uint32_t pool, uint32_t teacher_steps,
			uint32_t student_steps, uint32_t generator_steps);

/* Sigma of Gaussian votes that gets most bits for an epsilon without making every label a
 * coin (bench/labels): half as many as teachers; at least 40, so that the budget is enough
 * for some batches where teachers are few and nothing is worth it anyway. */
double ppat_config_sigma(uint32_t teachers);

/* The setting that carries signal where n is large (methods 3.3): teachers =
 * min(250, rows/50), Gaussian votes.  False, and c untouched, below 500 rows,
 * where no setting is worth its budget. */
bool ppat_config_large(struct ppat_config *c, uint32_t rows);

/* 0, or ERR_USAGE with the field, its value and what is allowed. */
int ppat_config_check(const struct ppat_config *c, struct err *e);

/* The same about PPAT_CLIENT_WORK_MAX alone, which ppat_config_check() looks at last. */
int ppat_config_check_work(const struct ppat_config *c, struct err *e);

/* A noisy map of the host's, or noisy rows of the client's: one release a session. */
bool ppat_config_releases(const struct ppat_config *c);
/* The clip that counts: rows of length 1 need none above it. */
double ppat_config_clip(const struct ppat_config *c);

/* Generated rows that the client sends with each batch: pool, or batch. */
uint32_t ppat_config_pool(const struct ppat_config *c);

/* Steps that can be done: min(steps, max_labels / batch).  Public. */
uint32_t ppat_config_steps(const struct ppat_config *c);

void ppat_config_encode(const struct ppat_config *c, struct buf *out); /* appends */
/* Exactly n bytes of one config: ERR_PROTO, ERR_VERSION, or what check() says. */
int ppat_config_decode(struct ppat_config *c, const uint8_t *bytes, size_t n, struct err *e);
void ppat_config_hash(const struct ppat_config *c, uint8_t out[32]); /* BLAKE2b-256 */

#endif
