/* audit/suite_noise.c - the noise of labels, releases and tables, and where it comes from. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "audit/suite.h"

static void tell(const struct audit_effort *how, const char *what)
{
	if (how->tell != NULL)
		how->tell(how->ctx, what);
}

/* ---- labels ---- */

enum { LARGE_LABELS = 1 << 16 };

static int votes_line(struct audit_report *r, const struct audit_votes_claim *c,
		      const struct audit_build *b, bool control, const struct audit_effort *how,
		      struct err *e)
{
	struct audit_votes v;
	struct audit_line *l;
	const char *likeliest;
	double evidence;
	int rc;

	tell(how, c->whose);
	audit_votes_init(&v, &c->mechanism);
	rc = audit_read_labels(b, c->labels, &v, e);
	if (rc == 0) {
		l = audit_report_add(r, 'B', control, "%s: labels off sessions", c->whose);
		if (control)
			snprintf(l->what, sizeof(l->what), "%s: %g %% of labels without noise",
				 c->whose, 100 * b->bare_labels);
		evidence = audit_votes_evidence(&v, &likeliest);
		l->found = evidence >= -log(how->alpha);
		snprintf(l->seen, sizeof(l->seen), "%llu labels%s%s; shows %.2g %% without noise",
			 (unsigned long long)v.labels, l->found ? "; likeliest: " : "",
			 l->found ? likeliest : "", 100 * audit_votes_resolution(&v, how->alpha));
	}
	audit_votes_release(&v);
	return rc;
}

int audit_suite_votes(struct audit_report *r, const struct audit_votes_claim *c,
		      const struct audit_build *shipped, const struct audit_effort *how,
		      struct err *e)
{
	int rc = votes_line(r, c, shipped, false, how, e);

	for (size_t i = 0; rc == 0 && i < AUDIT_SHARES_MAX && c->planted[i] > 0; i++) {
		struct audit_build b = { .draw = how->draw, .bare_labels = c->planted[i] };
		struct audit_votes_claim large = *c; /* what is large shows soon */

		if (c->planted[i] > 0.1 && large.labels > LARGE_LABELS)
			large.labels = LARGE_LABELS;
		rc = votes_line(r, &large, &b, true, how, e);
	}
	return rc;
}

/* ---- numbers ---- */

static const struct {
	const char *what, *fault;
	char kind;
} noisy[] = {
	[AUDIT_NOISY_MAP] = { "released map, noise off sessions", "half of the noise", 'C' },
	[AUDIT_NOISY_ROWS] = { "noisy rows, noise off sessions", "half of the noise", 'C' },
	[AUDIT_NOISY_TABLES] = { "private training, noise off tables",
				 "no noise on the first 256 rows", 'D' },
};

static int read_noise(const struct audit_noise_claim *c, const struct audit_build *b,
		      const struct audit_effort *how, struct audit_noise *out, struct err *e)
{
	if (c->what == AUDIT_NOISY_MAP)
		return audit_read_map(b, c->multiplier, how->releases, out, e);
	if (c->what == AUDIT_NOISY_ROWS)
		return audit_read_rows(b, c->multiplier, how->releases, out, e);
	return audit_read_training(b, c->multiplier, c->clip, how->steps, out, e);
}

static void say_noise(struct audit_line *l, const struct audit_noise *v, size_t repeats,
		      const char *likeliest)
{
	int n = snprintf(l->seen, sizeof(l->seen), "%llu numbers, deviation %.3f of the declared",
			 (unsigned long long)v->numbers, sqrt(v->squares / (double)v->numbers));

	if (repeats > 0)
		snprintf(l->seen + n, sizeof(l->seen) - (size_t)n, "; %zu runs came before",
			 repeats);
	else if (l->found)
		snprintf(l->seen + n, sizeof(l->seen) - (size_t)n, "; likeliest: %s", likeliest);
}

static int noise_line(struct audit_report *r, const struct audit_noise_claim *c,
		      const struct audit_build *b, bool control, const struct audit_effort *how,
		      struct err *e)
{
	struct audit_noise v = { 0 };
	const char *fault = noisy[c->what].fault, *likeliest;
	int rc;

	tell(how, noisy[c->what].what);
	rc = read_noise(c, b, how, &v, e);
	if (rc == 0) {
		struct audit_line *l =
			audit_report_add(r, noisy[c->what].kind, control, "%s%s%s%s%s", c->whose,
					 c->whose[0] != '\0' ? ": " : "", noisy[c->what].what,
					 control ? ": " : "", control ? fault : "");
		size_t repeats = audit_noise_repeats(&v);
		double evidence = audit_noise_evidence(&v, &likeliest);

		l->found = evidence >= -log(how->alpha) || repeats > 0;
		say_noise(l, &v, repeats, likeliest);
	}
	audit_noise_release(&v);
	return rc;
}

int audit_suite_noise(struct audit_report *r, const struct audit_noise_claim *c,
		      const struct audit_build *shipped, const struct audit_effort *how,
		      struct err *e)
{
	struct audit_build fault = { .draw = how->draw };
	int rc = noise_line(r, c, shipped, false, how, e);

	if (c->what == AUDIT_NOISY_TABLES)
		fault.bare_block = true;
	else
		fault.noise = audit_half_noise;
	return rc != 0 ? rc : noise_line(r, c, &fault, true, how, e);
}

/* ---- the source ---- */

enum { OWN = 2, PRINTS_MAX = 64 };

/* The parts that any two have in common, in words. */
static void compare_all(struct audit_line *l, const struct audit_fingerprint *print, size_t n)
{
	const char *part[AUDIT_FINGERPRINT_PARTS];

	snprintf(l->seen, sizeof(l->seen),
		 "%zu times the same sessions and training, no draw twice", n);
	for (size_t i = 0; i < n; i++)
		for (size_t k = i + 1; k < n && !l->found; k++) {
			size_t common = audit_fingerprint_common(&print[i], &print[k], part);

			l->found = common > 0;
			if (l->found)
				snprintf(l->seen, sizeof(l->seen),
					 "%zu of %d parts drawn twice, %s among them", common,
					 AUDIT_FINGERPRINT_PARTS, part[0]);
		}
}

int audit_suite_source(struct audit_report *r, const struct audit_fingerprint *other, size_t n,
		       const struct audit_build *shipped, const struct audit_effort *how,
		       struct err *e)
{
	struct audit_fingerprint print[PRINTS_MAX + OWN], fixed[OWN];
	int rc = 0;

	n = n < PRINTS_MAX ? n : PRINTS_MAX;
	tell(how, "randomness");
	if (n > 0)
		memcpy(print, other, n * sizeof(*other));
	for (size_t i = 0; rc == 0 && i < OWN; i++) {
		struct rng rng;
		struct audit_build b = { .draw = nn_draw_seeded(&rng) };

		rng_seed(&rng, 1);
		rc = audit_fingerprint(shipped, &print[n + i], e);
		if (rc == 0)
			rc = audit_fingerprint(&b, &fixed[i], e);
	}
	if (rc != 0)
		return rc;
	compare_all(audit_report_add(r, 'E', false,
				     "randomness of %zu other processes, and of this one twice", n),
		    print, n + OWN);
	compare_all(audit_report_add(r, 'E', true, "randomness: a generator with a fixed seed"),
		    fixed, OWN);
	return 0;
}
