/* audit/suite.c - what is looked at, and what is planted. */
#include "audit/suite.h"

#include <math.h>
#include <stdio.h>

#include "audit/leaks.h"
#include "dp/gaussian.h"
#include "dp/lattice.h"
#include "dp/release.h"

static void tell(const struct audit_effort *how, const char *what)
{
	if (how->tell != NULL)
		how->tell(how->ctx, what);
}

/* ---- A ---- */

static int compare_pair(struct audit_report *r, const struct audit_pair *p,
			const struct ppat_config *c, audit_open_fn *open, bool control,
			const char *what, const struct audit_effort *how, struct err *e)
{
	struct audit_difference d;
	tell(how, what);
	int rc = audit_interference(c, open, p->y, p->seed, &d, e);
	if (rc != 0)
		return rc;
	struct audit_line *l = audit_report_add(r, 'A', control, "%s", what);
	l->found = !d.same;
	if (d.same)
		snprintf(l->seen, sizeof(l->seen), "%zu messages, %zu bytes, all equal",
			 d.messages[0], d.bytes[0]);
	else
		snprintf(l->seen, sizeof(l->seen),
			 "%zu messages of %zu bytes and %zu of %zu; byte %zu differs",
			 d.messages[0], d.bytes[0], d.messages[1], d.bytes[1], d.first);
	return 0;
}

int audit_suite_interference(struct audit_report *r, const struct audit_pair *p,
			     audit_open_fn *shipped, const struct audit_effort *how, struct err *e)
{
	struct ppat_config client = *p->ppat, host = *p->ppat;
	client.student = PPAT_STUDENT_CLIENT;
	host.student = PPAT_STUDENT_HOST;
	const struct {
		const struct ppat_config *c;
		audit_open_fn *open;
		bool control;
		const char *what;
	} lines[] = {
		{ &client, shipped, false, "ppat, student at the client" },
		{ &host, shipped, false, "ppat, student at the host" },
		{ p->procrustes, shipped, false, "procrustes" },
		{ &host, audit_open_student_sees_rows, true, "a student that sees real rows" },
		{ p->procrustes, audit_open_ack_tells, true, "an acknowledgement that tells" },
		{ p->procrustes, audit_open_length_tells, true, "a length that tells" },
	};
	int rc = 0;
	for (size_t i = 0; rc == 0 && i < sizeof(lines) / sizeof(lines[0]); i++)
		rc = compare_pair(r, p, lines[i].c, lines[i].open, lines[i].control, lines[i].what,
				  how, e);
	return rc;
}

/* ---- B ---- */

static uint64_t sessions_for(const struct audit_effort *how, uint64_t labels)
{
	enum { LEAST = 500, MOST = 50000, ALL = 4 << 20 };
	uint64_t n = ALL / labels;
	if (how->sessions > 0)
		return how->sessions;
	return n < LEAST ? LEAST : n > MOST ? MOST : n;
}

/* Both bounds of one build. */
struct bounds {
	struct dp_audit one;
	struct audit_session session;
};

static int measure(const struct audit_claim *c, enum audit_fault f, uint64_t labels,
		   const struct audit_effort *how, struct bounds *out, struct err *e)
{
	uint64_t draws = how->draws > 0 ? how->draws : audit_draws_for(&c->mechanism);
	tell(how, audit_fault_name(f));
	int rc = audit_labels(&c->mechanism, f, draws, how->alpha, how->draw, &out->one, e);
	if (rc == 0)
		rc = audit_session(&c->mechanism, f, labels, sessions_for(how, labels), c->delta,
				   how->alpha, how->draw, &out->session, e);
	return rc;
}

static void add_shipped(struct audit_report *r, const struct audit_claim *c, const struct bounds *b)
{
	struct audit_line *l = audit_report_add(r, 'B', false, "%s: one label", c->whose);
	l->found = !b->one.passed;
	l->lower = b->one.measured;
	l->upper = b->one.accounted;
	snprintf(l->seen, sizeof(l->seen), "%llu draws at each gap",
		 (unsigned long long)b->one.draws);
	l = audit_report_add(r, 'B', false, "%s: %llu labels", c->whose,
			     (unsigned long long)b->session.labels);
	l->found = b->session.lower > c->upper;
	l->lower = b->session.lower;
	l->upper = c->upper;
	snprintf(l->seen, sizeof(l->seen),
		 "at delta %g; %llu sessions at votes of gap %lld and %lld", c->delta,
		 (unsigned long long)b->session.sessions, (long long)b->session.gap,
		 (long long)b->session.gap - 2);
}

/* A fault is caught by either bound. */
static void add_fault(struct audit_report *r, const struct audit_claim *c, enum audit_fault f,
		      const struct bounds *b)
{
	struct audit_line *l =
		audit_report_add(r, 'B', true, "%s: %s", c->whose, audit_fault_name(f));
	bool one = !b->one.passed;
	l->found = one || b->session.lower > c->upper;
	l->lower = one ? b->one.measured : b->session.lower;
	l->upper = one ? b->one.accounted : c->upper;
	snprintf(l->seen, sizeof(l->seen), "%s", one ? "one label" : "a session");
}

int audit_suite_labels(struct audit_report *r, const struct audit_claim *c,
		       enum audit_fault shipped, const struct audit_effort *how, struct err *e)
{
	struct bounds b;
	uint64_t labels = c->labels < AUDIT_LABELS_MAX ? c->labels : AUDIT_LABELS_MAX;
	int rc = measure(c, shipped, labels, how, &b, e);
	if (rc == 0)
		add_shipped(r, c, &b);
	for (int f = AUDIT_NOISE_OFF; rc == 0 && f < AUDIT_FAULTS; f++) {
		if (!audit_fault_applies((enum audit_fault)f, &c->mechanism))
			continue;
		rc = measure(c, (enum audit_fault)f, labels, how, &b, e);
		if (rc == 0)
			add_fault(r, c, (enum audit_fault)f, &b);
	}
	return rc;
}

/* ---- C ---- */

static const double release_epsilon = 2, release_delta = 1e-5, release_p = 0.05;

/* One line: releases with this noise against what is claimed. */
static int guess(struct audit_report *r, const struct audit_released *c, double multiplier,
		 const char *fault, const struct audit_effort *how, struct err *e)
{
	static audit_release_fn *const releases[] = { audit_release_map, audit_release_rows };
	struct audit_release ctx = { multiplier, how->draw, c->releases };
	struct audit_canaries a;
	tell(how, c->whose);
	int rc = audit_canaries(releases[c->what], &ctx, AUDIT_RELEASE_CANARIES, c->delta,
				release_p, how->draw, &a, e);
	if (rc != 0)
		return rc;
	struct audit_line *l =
		audit_report_add(r, 'C', fault != NULL, "%s%s%s", c->whose,
				 fault != NULL ? ": " : "", fault != NULL ? fault : "");
	l->found = a.lower > c->upper;
	l->lower = a.lower;
	l->upper = c->upper;
	snprintf(l->seen, sizeof(l->seen), "at delta %g; %llu of %llu guesses right, %llu canaries",
		 c->delta, (unsigned long long)a.correct, (unsigned long long)a.guesses,
		 (unsigned long long)a.canaries);
	return 0;
}

int audit_suite_releases(struct audit_report *r, double shipped, const struct audit_effort *how,
			 struct err *e)
{
	double z = dp_gaussian_sigma(1, release_epsilon, release_delta);
	double upper = dp_release_epsilon(DP_RELEASE_DISCRETE, z, 1, release_delta);
	const struct audit_released claims[] = {
		{ "released map", AUDIT_MAP, z, 1, release_delta, upper },
		{ "noisy rows", AUDIT_ROWS, z, 1, release_delta, upper },
	};
	const struct {
		double noise;
		const char *fault;
	} builds[] = { { shipped * z, NULL },
		       { z / 4, "noise / 4" },
		       { DP_MULTIPLIER_MIN, "next to no noise" } };
	int rc = 0;
	for (size_t i = 0; i < sizeof(builds) / sizeof(builds[0]); i++)
		for (size_t k = 0; rc == 0 && k < sizeof(claims) / sizeof(claims[0]); k++)
			rc = guess(r, &claims[k], builds[i].noise, builds[i].fault, how, e);
	return rc;
}

int audit_suite_released(struct audit_report *r, const struct audit_released *c, double shipped,
			 const struct audit_effort *how, struct err *e)
{
	char what[AUDIT_TEXT];
	struct audit_released named = *c;
	snprintf(what, sizeof(what), "%s: %llu release%s", c->whose,
		 (unsigned long long)c->releases, c->releases == 1 ? "" : "s");
	named.whose = what;
	return guess(r, &named, shipped * c->multiplier, NULL, how, e);
}
