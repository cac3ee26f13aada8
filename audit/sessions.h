/* audit/sessions.h - whole sessions, whole trainings, and the noise in what leaves them.
 *
 * Sessions are a host and a client of ppat/ that are opened as agent/core/conversation.c opens them
 * (ppat_open() with a source of random bytes and nothing else); trainings are what
 * `fkge train` and `fkge serve` run (kge_trainer_epoch()).  The auditor reads what the partner has
 * received, or the tables.  The auditor knows both sides' rows, so it knows what was to be hidden,
 * and the rest of a message is the noise.
 *
 * A build is the code that is audited: the shipped code with a source, or that code with a fault
 * planted where the noise is drawn. */
#ifndef AUDIT_SESSIONS_H
#define AUDIT_SESSIONS_H

#include "audit/evidence.h"
#include "base/secret.h"
#include "ppat/session.h"

struct audit_build {
	struct nn_draw draw;  /* secret_draw() in what ships */
	double bare_labels;   /* share of the labels that is the majority of the votes; 0: none */
	ppat_noise_fn *noise; /* of releases; NULL: what ships */
	bool bare_block;      /* private training adds no noise to the first 256 entities */
};
/* Noise of half the deviation; a ppat_noise_fn. */
int audit_half_noise(int64_t *x, size_t n, uint64_t sigma2, secret_draw_fn *draw, void *ctx,
		     const atomic_bool *cancel);

/* Labels off the LABELS messages of sessions of PPAT with this mechanism: at least so many, until
 * the budget of a session (AUDIT_SESSION_LABELS) is full, then of another.  The votes are counted
 * again, by teachers that start from the same random bytes.  Adds to *out, which has the
 * mechanism.  ERR_USAGE, ERR_FAIL. */
enum { AUDIT_SESSION_LABELS = 1 << 18 };
int audit_read_labels(const struct audit_build *b, uint64_t labels, struct audit_votes *out,
		      struct err *e);

/* Noise off the MAP messages, or the ROWS messages of noisy rows, of so many sessions:
 * AUDIT_RELEASE_NUMBERS numbers each. */
enum { AUDIT_NOISE_DIM = 48, AUDIT_RELEASE_NUMBERS = AUDIT_NOISE_DIM * AUDIT_NOISE_DIM };
int audit_read_map(const struct audit_build *b, double multiplier, uint64_t sessions,
		   struct audit_noise *out, struct err *e);
int audit_read_rows(const struct audit_build *b, double multiplier, uint64_t sessions,
		    struct audit_noise *out, struct err *e);

/* Noise off the tables of a private training of so many steps, one an epoch, with plain gradient
 * steps: what a table moves by in a step is its gradient, clipped and with noise.
 * AUDIT_TABLE_NUMBERS numbers a step. */
enum {
	AUDIT_TABLE_DIM = 16,
	AUDIT_TABLE_ROWS = 768, /* entities: three blocks of 256 */
	AUDIT_TABLE_RELATIONS = 8,
	AUDIT_TABLE_NUMBERS = AUDIT_TABLE_DIM * (AUDIT_TABLE_ROWS + AUDIT_TABLE_RELATIONS),
};
int audit_read_training(const struct audit_build *b, double noise, double clip, uint64_t steps,
			struct audit_noise *out, struct err *e);

/* Draws of one process: a session of each kind and a training, always the same but for their
 * randomness. */
struct audit_fingerprint {
	uint8_t session[32];	    /* transcript of a session of PPAT */
	uint64_t map, rows, tables; /* the first run of noise */
	uint8_t labels[512];	    /* 4096 of them */
	uint8_t first[32];	    /* the first row that a private training begins from */
};
/* Eight numbers of the first row. */
void audit_first_rows(const struct audit_build *b, uint8_t out[32]);
int audit_fingerprint(const struct audit_build *b, struct audit_fingerprint *out, struct err *e);
/* The parts that two of them have in common: static texts, at most AUDIT_FINGERPRINT_PARTS.  Two
 * right processes have one with a probability below 1e-9. */
enum { AUDIT_FINGERPRINT_PARTS = 6 };
size_t audit_fingerprint_common(const struct audit_fingerprint *a,
				const struct audit_fingerprint *b,
				const char *part[AUDIT_FINGERPRINT_PARTS]);

#endif
