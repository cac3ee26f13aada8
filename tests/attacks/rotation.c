/* How long the client's secret rotation hides anything (docs/THREAT-MODEL.md): until the host
 * knows as many rows as there are dimensions, or until both spaces agree. */
#include "tests/attacks/wire.h"

enum { N = 60, D = 12 };

static void start(struct pair *p)
{
	pair_init(p, PPAT_PROCRUSTES, 3);
	p->cfg.slots = N;
	p->cfg.client_dim = p->cfg.host_dim = D;
	pair_rows(p, 2000);
}

/* The host knows the first `known` rows of X, and turns all of Z by what maps them onto each
 * other; the error is over the rows that it did not know. */
static double error_knowing(size_t known)
{
	struct pair p;
	float r[D * D], *x = mem_array((size_t)N * D, sizeof(float));
	start(&p);
	pair_run(&p);
	struct audit_matrix z = wire_rows_of(&p.d.received[0], PPAT_MSG_ROWS);
	assert_int_equal(nn_procrustes(r, z.rows, p.x, known, D, D, NULL), 0);
	nn_apply(x, z.rows, r, N, D, D);
	double error = wire_error(x + known * D, p.x + known * D, (N - known) * D);
	free(x);
	free(z.rows);
	pair_release(&p);
	return error;
}

/* ATTACK: D rows known, all rows known. */
static void as_many_rows_as_dimensions(void **state)
{
	(void)state;
	assert_true(error_knowing(D) < 1e-3);
	assert_true(error_knowing((size_t)2 * D) < 1e-4);
}

/* NOT YET: with fewer, what is left of the rotation is free. */
static void fewer_rows_leave_a_rotation(void **state)
{
	(void)state;
	assert_true(error_knowing(1) > 0.8);
	assert_true(error_knowing(D / 2) > 0.5);
}

/* ATTACK: after some averaging both hold nearly the same rows.  The host's own result is then
 * the client's table, to within what they still differ. */
static void spaces_that_agree(void **state)
{
	(void)state;
	const float apart[] = { 0.01f, 0.1f };
	for (size_t k = 0; k < 2; k++) {
		struct pair p;
		struct rng r;
		start(&p);
		rng_seed(&r, 9);
		for (size_t i = 0; i < (size_t)N * D; i++)
			p.y[i] = p.x[i] + apart[k] * (float)rng_normal(&r);
		pair_run(&p);
		assert_non_null(p.h.rows);
		double error = wire_error(p.h.rows, p.x, (size_t)N * D);
		assert_true(error < (double)apart[k]);
		pair_release(&p);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_many_rows_as_dimensions),
		cmocka_unit_test(fewer_rows_leave_a_rotation),
		cmocka_unit_test(spaces_that_agree),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
