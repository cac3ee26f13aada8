/* audit/labels.c - labels drawn many times. */
#include "audit/labels.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dp/rdp.h"

/* ---- the build that is looked at ---- */

/* Bytes taken in larger pieces: the kernel is asked once for 512 labels. */
struct source {
	struct dp_mechanism built;
	bool noise_off;
	struct nn_draw draw;
	uint8_t pool[4096];
	size_t at;
};

static void draw_pool(void *ctx, void *out, size_t n)
{
	struct source *s = ctx;
	if (s->at + n > sizeof(s->pool)) {
		s->draw.fn(s->draw.ctx, s->pool, sizeof(s->pool));
		s->at = 0;
	}
	memcpy(out, s->pool + s->at, n);
	s->at += n;
}

static bool draw_label(void *ctx, uint32_t ones)
{
	struct source *s = ctx;
	if (s->noise_off)
		return 2 * (uint64_t)ones > s->built.teachers;
	return dp_label_draw(&s->built, ones, draw_pool, s);
}

const char *audit_fault_name(enum audit_fault f)
{
	static const char *const names[AUDIT_FAULTS] = { "as shipped", "noise off", "noise / 4",
							 "scale inverted" };
	return (unsigned)f < AUDIT_FAULTS ? names[f] : "?";
}

/* Noise has scale 1/lambda or sigma. */
static double scale_of(const struct dp_mechanism *m)
{
	return m->noise == DP_LAPLACE ? 1 / m->param : m->param;
}

bool audit_fault_applies(enum audit_fault f, const struct dp_mechanism *m)
{
	return f != AUDIT_SCALE_INVERTED || scale_of(m) > 4;
}

static void source_init(struct source *s, const struct dp_mechanism *m, enum audit_fault f,
			struct nn_draw draw)
{
	*s = (struct source){ .built = *m, .noise_off = f == AUDIT_NOISE_OFF, .draw = draw };
	s->at = sizeof(s->pool);
	if (f == AUDIT_NOISE_QUARTER)
		s->built.param = m->noise == DP_LAPLACE ? m->param * 4 : m->param / 4;
	if (f == AUDIT_SCALE_INVERTED)
		s->built.param = 1 / m->param;
}

/* ---- one label ---- */

/* Two shares near 1/2 whose log ratio is known to within 9 / sqrt(draws) tell 4 epsilon
 * from epsilon. */
uint64_t audit_draws_for(const struct dp_mechanism *m)
{
	enum { LEAST = 300000, MOST = 4000000 };
	double eps = dp_vote_pure(m), draws = 20 / (eps * eps);
	return draws < LEAST ? LEAST : draws > MOST ? MOST : (uint64_t)draws;
}

int audit_labels(const struct dp_mechanism *m, enum audit_fault f, uint64_t draws, double alpha,
		 struct nn_draw draw, struct dp_audit *out, struct err *e)
{
	struct source s;
	source_init(&s, m, f, draw);
	int rc = dp_audit_labels(m, draw_label, &s, draws, alpha, out, e);
	sodium_memzero(&s, sizeof(s));
	return rc;
}

/* ---- a session ---- */

/* How far apart two neighbouring coins are: squared distance over variance. */
static double tells(const struct dp_mechanism *m, int64_t gap)
{
	double p = dp_label_one(m, gap), q = dp_label_one(m, gap - 2);
	double middle = (p + q) / 2;
	return (p - q) * (p - q) / (middle * (1 - middle) + 1e-300);
}

/* Of equally good ones the first, which is above zero: there a majority changes sides. */
static int64_t best_gap(const struct dp_mechanism *m)
{
	int64_t t = m->teachers, best = t;
	for (int64_t g = t; g >= 2 - t; g -= 2)
		if (tells(m, g) > (1 + 1e-9) * tells(m, best))
			best = g;
	return best;
}

/* count[k]: sessions with k ones. */
static void draw_sessions(struct source *s, int64_t gap, uint64_t labels, uint64_t sessions,
			  uint64_t *count)
{
	uint32_t ones = (uint32_t)((gap + (int64_t)s->built.teachers) / 2);
	memset(count, 0, (labels + 1) * sizeof(*count));
	for (uint64_t i = 0; i < sessions; i++) {
		uint64_t k = 0;
		for (uint64_t j = 0; j < labels; j++)
			k += draw_label(s, ones);
		count[k]++;
	}
}

/* Sessions with k ones or more, at the two gaps. */
static void count_from(uint64_t *const count[2], uint64_t labels, uint64_t k, uint64_t hits[2])
{
	hits[0] = hits[1] = 0;
	for (uint64_t i = k; i <= labels; i++) {
		hits[0] += count[0][i];
		hits[1] += count[1][i];
	}
}

/* About what "a sessions here, b there" will bound: three deviations off on each side. */
static double rough_bound(uint64_t a, uint64_t b, double delta, uint64_t sessions)
{
	double p = (double)a - 3 * sqrt((double)a) - delta * (double)sessions;
	double q = (double)b + 3 * sqrt((double)b) + 6;
	return p > 0 ? log(p / q) : 0;
}

/* From which count of ones on to look, by the sessions at hand; either side of it. */
static uint64_t best_threshold(uint64_t *const count[2], uint64_t labels, uint64_t sessions,
			       double delta)
{
	uint64_t best = labels, hits[2] = { 0, 0 };
	double most = 0;
	for (uint64_t k = labels; k > 0; k--) {
		hits[0] += count[0][k];
		hits[1] += count[1][k];
		double above = rough_bound(hits[0], hits[1], delta, sessions);
		double below = rough_bound(sessions - hits[1], sessions - hits[0], delta, sessions);
		if (fmax(above, below) > most) {
			most = fmax(above, below);
			best = k;
		}
	}
	return best;
}

int audit_session(const struct dp_mechanism *m, enum audit_fault f, uint64_t labels,
		  uint64_t sessions, double delta, double alpha, struct nn_draw draw,
		  struct audit_session *out, struct err *e)
{
	enum { LABELS_MAX = 1 << 24 };
	int rc = dp_mechanism_check(m, e);
	if (rc != 0)
		return rc;
	if (labels < 1 || labels > LABELS_MAX || sessions < 2 || !(alpha > 0 && alpha < 1) ||
	    !(delta >= 0 && delta < 1))
		return err_set(e, ERR_USAGE,
			       "audit of sessions: needs 1..%d labels, 2 sessions, "
			       "0 < alpha < 1 and 0 <= delta < 1",
			       LABELS_MAX);
	struct source s;
	uint64_t half = sessions / 2, rest[2] = { sessions - half, sessions - half };
	uint64_t k, hits[2], *count[2];
	source_init(&s, m, f, draw);
	*out = (struct audit_session){ labels, sessions, best_gap(m), 0 };
	for (int i = 0; i < 2; i++) {
		count[i] = mem_array(labels + 1, sizeof(**count));
		draw_sessions(&s, out->gap - 2 * (int64_t)i, labels, half, count[i]);
	}
	k = best_threshold(count, labels, half, delta);
	for (int i = 0; i < 2; i++)
		draw_sessions(&s, out->gap - 2 * (int64_t)i, labels, rest[i], count[i]);
	count_from(count, labels, k, hits);
	out->lower = dp_audit_lower(hits, rest, delta, alpha);
	free(count[0]);
	free(count[1]);
	sodium_memzero(&s, sizeof(s));
	return 0;
}
