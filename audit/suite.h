/* audit/suite.h - the audits with their controls, as lines of a report.
 *
 * The audited code is an argument like any other (an opener, a fault), so that the tests can put
 * something broken in its place and see the verdict fail. */
#ifndef AUDIT_SUITE_H
#define AUDIT_SUITE_H

#include "audit/interference.h"
#include "audit/labels.h"
#include "audit/releases.h"
#include "audit/report.h"
#include "audit/sessions.h"

/* The two lengths of `fkge audit`; what they find: audit/README.md. */
enum {
	AUDIT_LABELS_QUICK = 1 << 21,
	AUDIT_LABELS_FULL = 1 << 24,
	AUDIT_RELEASES_QUICK = 4,
	AUDIT_RELEASES_FULL = 32,
	AUDIT_STEPS_QUICK = 16,
	AUDIT_STEPS_FULL = 128,
};

struct audit_effort {
	uint64_t draws;	   /* labels at each gap; 0: audit_draws_for() */
	uint64_t sessions; /* at each of two gaps; 0: as many as some millions of labels make */
	double alpha;	   /* a right implementation is found wrong this often at most, a line */
	uint64_t labels;   /* read off sessions, a line; the next two likewise */
	uint64_t releases; /* sessions that release a map, or noisy rows */
	uint64_t steps;	   /* of private training */
	struct nn_draw draw;
	/* Before each line; may be NULL. */
	void (*tell)(void *ctx, const char *what);
	void *ctx;
};

/* Audit A: PPAT with the student at either side, Procrustes; and the three leaks.  ppat and
 * procrustes are what an agent would agree on; y two tables of slots x host_dim. */
struct audit_pair {
	const struct ppat_config *ppat, *procrustes;
	const float *y[2];
	uint64_t seed;
};
int audit_suite_interference(struct audit_report *r, const struct audit_pair *p,
			     audit_open_fn *shipped, const struct audit_effort *how, struct err *e);

/* Audit B of one mechanism, and its faults.  `upper` is what a ledger has for so many labels
 * at delta; `whose` names them.  No more than AUDIT_LABELS_MAX labels make a session here. */
enum { AUDIT_LABELS_MAX = 8192 };
struct audit_claim {
	const char *whose;
	struct dp_mechanism mechanism;
	uint64_t labels;
	double delta, upper;
};
int audit_suite_labels(struct audit_report *r, const struct audit_claim *c,
		       enum audit_fault shipped, const struct audit_effort *how, struct err *e);

/* Audit B off whole sessions: labels of this mechanism, beside faults in which a share of them has
 * no noise.  `shipped` is what is audited.  Each line says what it can find. */
enum { AUDIT_SHARES_MAX = 3 };
struct audit_votes_claim {
	const char *whose;
	struct dp_mechanism mechanism;
	uint64_t labels;
	double planted[AUDIT_SHARES_MAX]; /* shares; 0 ends them */
};
int audit_suite_votes(struct audit_report *r, const struct audit_votes_claim *c,
		      const struct audit_build *shipped, const struct audit_effort *how,
		      struct err *e);

/* Audit C, or D, of the noise itself, off the messages of whole sessions or the tables of a
 * private training, beside a fault: half of the deviation, or no noise on the first 256 rows. */
enum audit_noisy { AUDIT_NOISY_MAP, AUDIT_NOISY_ROWS, AUDIT_NOISY_TABLES };
struct audit_noise_claim {
	const char *whose;
	enum audit_noisy what;
	double multiplier; /* declared */
	double clip;	   /* of private training */
};
int audit_suite_noise(struct audit_report *r, const struct audit_noise_claim *c,
		      const struct audit_build *shipped, const struct audit_effort *how,
		      struct err *e);

/* Audit E: what so many processes and two rounds in this one have drawn must differ; the control
 * draws from a generator with a fixed seed. */
int audit_suite_source(struct audit_report *r, const struct audit_fingerprint *other, size_t n,
		       const struct audit_build *shipped, const struct audit_effort *how,
		       struct err *e);

/* Audit C: the host's released map and the client's noisy rows, with the noise of one release at
 * epsilon 2, delta 1e-5: canaries in one run cannot contradict claims that are much larger.
 * Then a quarter of that noise, and next to none.  `shipped` scales the noise of what is
 * audited: 1.  A bound is wrong with probability 0.05 at most, whatever how->alpha is; with less,
 * too few guesses count (there are no further releases to be had).  With noise as declared it
 * passes the account with a probability below 1e-12: 243 of 256 guesses would have to be right
 * where 186 are to be expected. */
int audit_suite_releases(struct audit_report *r, double shipped, const struct audit_effort *how,
			 struct err *e);

/* So many releases of one contract, at most AUDIT_RELEASES_MAX, with the same canaries in all of
 * them, against the `upper` that a ledger has for them at delta.  One line; its controls are
 * those of audit_suite_releases(). */
enum { AUDIT_RELEASES_MAX = 16 };
struct audit_released {
	const char *whose;
	enum audit_what what;
	double multiplier;
	uint64_t releases;
	double delta, upper;
};
int audit_suite_released(struct audit_report *r, const struct audit_released *c, double shipped,
			 const struct audit_effort *how, struct err *e);

#endif
