/* audit/labels.h - audit B, the mechanism of noisy labels (methods 3.7).
 *
 * Labels come from dp_label_draw(), as in a session, over the bytes of `draw`: libsodium's,
 * but for tests.  The faults are the positive controls.  Two bounds are measured:
 *
 *   one label   at all neighbouring gaps: against the pure epsilon of one label
 *   a session   so many labels, all at the neighbouring gaps that tell most: against the
 *               epsilon that the ledger has for that many labels at its delta */
#ifndef AUDIT_LABELS_H
#define AUDIT_LABELS_H

#include "dp/audit.h"
#include "dp/mechanism.h"
#include "nn/linalg.h"

enum audit_fault {
	AUDIT_AS_SHIPPED,
	AUDIT_NOISE_OFF,      /* the majority */
	AUDIT_NOISE_QUARTER,  /* a quarter of the scale */
	AUDIT_SCALE_INVERTED, /* noise of scale lambda instead of 1/lambda, as in the authors'
				 code; Gaussian: sigma for 1/sigma */
	AUDIT_FAULTS,
};
const char *audit_fault_name(enum audit_fault f); /* "noise off" */
/* Inverting a scale that is below 1 adds noise, which is no fault to be found. */
bool audit_fault_applies(enum audit_fault f, const struct dp_mechanism *m);

/* Labels at each gap that tell the claim from four times the claim. */
uint64_t audit_draws_for(const struct dp_mechanism *m);

/* dp_audit_labels() on a build with this fault against the claim m. */
int audit_labels(const struct dp_mechanism *m, enum audit_fault f, uint64_t draws, double alpha,
		 struct nn_draw draw, struct dp_audit *out, struct err *e);

struct audit_session {
	uint64_t labels, sessions; /* labels in a session; sessions at each of two gaps */
	int64_t gap;		   /* this one, and the one 2 below */
	double lower;		   /* at delta */
};

/* `sessions` of `labels` labels each at two neighbouring gaps.  The first half chooses which
 * count of ones to look for, the second half says how much it tells; so `lower` is above
 * the true epsilon at delta with probability at most alpha.  ERR_USAGE. */
int audit_session(const struct dp_mechanism *m, enum audit_fault f, uint64_t labels,
		  uint64_t sessions, double delta, double alpha, struct nn_draw draw,
		  struct audit_session *out, struct err *e);

#endif
