/* Recovery of the host's rows when its student sees them, as in the authors' released code
 * (methods 3.2, docs/THREAT-MODEL.md).
 *
 * A step of the student on a row y adds a multiple of y to each row of its first weights, and the
 * gradient that goes to the client is made of those rows.  All else in them is known to the
 * client: the first weights (a public seed) and its own Z.  What stands across both is y.
 *
 * Built twice: with an adversarial_host.c whose student sees real rows the attack must work, with
 * the one that ships nothing must be left. */
#include "tests/attacks/wire.h"

#include "ppat/scale.h"
#include "ppat/student.h"

enum { D = 64, HIDDEN = 8, BATCH = 8 };

/* Orthonormal vectors; what is added is first made orthogonal to those there. */
struct span {
	double at[D][D];
	size_t n;
};

static void project_out(const struct span *s, double *v)
{
	for (int twice = 0; twice < 2; twice++)
		for (size_t k = 0; k < s->n; k++) {
			double c = 0;
			for (size_t j = 0; j < D; j++)
				c += s->at[k][j] * v[j];
			for (size_t j = 0; j < D; j++)
				v[j] -= c * s->at[k][j];
		}
}

static double length(const double *v)
{
	double sum = 0;
	for (size_t j = 0; j < D; j++)
		sum += v[j] * v[j];
	return sqrt(sum);
}

static void span_add(struct span *s, const float *row)
{
	double v[D];
	for (size_t j = 0; j < D; j++)
		v[j] = (double)row[j];
	project_out(s, v);
	double l = length(v);
	if (l < 1e-6)
		return;
	for (size_t j = 0; j < D; j++)
		s->at[s->n][j] = v[j] / l;
	s->n++;
}

/* What of the first gradient lies outside of what the client knows: *share of its length, and
 * its direction. */
static void attack(const struct ppat_config *c, const float *z, const float *g, double *share,
		   double out[D])
{
	struct span *known = mem_array(1, sizeof(*known));
	struct ppat_student student;
	ppat_student_init(&student, c);
	for (size_t k = 0; k < HIDDEN; k++)
		span_add(known, student.net.param + k * D);
	for (size_t i = 0; i < BATCH; i++)
		span_add(known, z + i * D);
	*share = 0;
	for (size_t i = 0; i < BATCH; i++) {
		double v[D], whole;
		for (size_t j = 0; j < D; j++)
			v[j] = (double)g[i * D + j];
		whole = length(v);
		project_out(known, v);
		if (length(v) / whole > *share) {
			*share = length(v) / whole;
			memcpy(out, v, sizeof(v));
		}
	}
	ppat_student_release(&student);
	free(known);
}

static double cosine(const double *v, const float *y)
{
	double dot = 0, yy = 0;
	for (size_t j = 0; j < D; j++) {
		dot += v[j] * (double)y[j];
		yy += (double)y[j] * (double)y[j];
	}
	return fabs(dot) / (length(v) * sqrt(yy));
}

static void run(double *share, double *alike, double *chance)
{
	struct pair p;
	double v[D] = { 0 };
	pair_init(&p, PPAT_PPAT, 5);
	p.cfg.client_dim = p.cfg.host_dim = D;
	p.cfg.student = PPAT_STUDENT_HOST;
	p.cfg.student_hidden = HIDDEN;
	p.cfg.batch = BATCH;
	p.cfg.steps = 1;
	p.cfg.max_labels = BATCH;
	pair_rows(&p, 2000);
	pair_run(&p);
	struct audit_matrix z = wire_rows_of(&p.d.received[0], PPAT_MSG_BATCH);
	struct audit_matrix g = wire_rows_of(&p.d.received[1], PPAT_MSG_GRAD);
	attack(&p.cfg, z.rows, g.rows, share, v);
	*alike = cosine(v, p.y);
	*chance = cosine(v, p.y + D); /* another row of the host */
	free(z.rows);
	free(g.rows);
	pair_release(&p);
}

#ifdef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
/* ATTACK: a row of the host, but for what of it lies in 16 of 64 known directions. */
static void a_row_is_recovered(void **state)
{
	(void)state;
	double share, alike, chance;
	run(&share, &alike, &chance);
	assert_true(share > 1e-3);
	assert_true(alike > 0.6);
	assert_true(chance < 0.4);
}
#else
/* PROTECTED: the gradient is made of what the client knows, down to rounding. */
static void nothing_is_left(void **state)
{
	(void)state;
	double share, alike, chance;
	run(&share, &alike, &chance);
	assert_true(share < 1e-5);
	assert_true(alike < 0.4);
}
#endif

int main(void)
{
	const struct CMUnitTest tests[] = {
#ifdef PPAT_UNSAFE_STUDENT_SEES_REAL_ROWS
		cmocka_unit_test(a_row_is_recovered),
#else
		cmocka_unit_test(nothing_is_left),
#endif
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
