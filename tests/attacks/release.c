/* What is left in releases with noise (methods 3.6, docs/THREAT-MODEL.md): the host's map, read by
 * a client that knows every row of the host but one; and a client's noisy rows, read by the host.
 * Next to no noise: both give the rows away.  With what epsilon 2.73 asks for: neither does. */
#include "tests/attacks/wire.h"

#include "dp/gaussian.h"
#include "ppat/scale.h"

enum { N = 40, D = 12, ASKED = 7 };

static double honest(void)
{
	return dp_gaussian_sigma(1, 2.73, 1e-5);
}

/* Rows of length 1 on both sides, in p->x and p->y too. */
static void start(struct pair *p, enum ppat_translator t, double multiplier)
{
	struct ppat_scaling s;
	pair_init(p, t, 3);
	p->cfg.slots = N;
	p->cfg.client_dim = p->cfg.host_dim = D;
	p->cfg.scale = PPAT_SCALE_UNIT;
	p->cfg.multiplier = multiplier;
	pair_rows(p, 2000);
	float *side[2] = { p->x, p->y };
	for (size_t k = 0; k < 2; k++) {
		ppat_scaling_fit(&s, &p->cfg, side[k], N, D);
		ppat_scaling_apply(&s, side[k], N);
		ppat_scaling_release(&s);
	}
	pair_run(p);
	assert_int_equal(p->host->ops->status(p->host, NULL), 0);
}

/* N M less what the other rows are in it is y z', and noise. */
static double error_of_last_row(double multiplier)
{
	struct pair p;
	float y[D];
	start(&p, PPAT_MAP, multiplier);
	struct audit_matrix m = wire_rows_of(&p.d.received[1], PPAT_MSG_MAP);
	struct audit_matrix z = wire_rows_of(&p.d.received[0], PPAT_MSG_ROWS);
	assert_true(m.n == D && m.dim == D && z.n >= N);
	for (size_t a = 0; a < D; a++) {
		double sum = N * wire_dot(m.rows + a * D, z.rows + (size_t)ASKED * D, D);
		for (size_t i = 0; i < N; i++)
			if (i != ASKED)
				sum -= (double)p.y[i * D + a] *
				       wire_dot(z.rows + i * D, z.rows + (size_t)ASKED * D, D);
		y[a] = (float)sum;
	}
	double error = wire_error(y, p.y + (size_t)ASKED * D, D);
	free(m.rows);
	free(z.rows);
	pair_release(&p);
	return error;
}

/* ATTACK where there is no noise to speak of; PROTECTED at epsilon 2.73: one row. */
static void a_row_out_of_the_map(void **state)
{
	(void)state;
	assert_true(error_of_last_row(0.01) < 0.2);
	assert_true(error_of_last_row(honest()) > 2); /* guessing zero has error 1 */
}

/* Of each row, which of the others is nearest: how often does the host see that? */
static double neighbours_found(double multiplier)
{
	struct pair p;
	start(&p, PPAT_PROCRUSTES, multiplier);
	struct audit_matrix z = wire_rows_of(&p.d.received[0], PPAT_MSG_ROWS);
	size_t found = 0;
	assert_int_equal(z.n, N);
	for (size_t i = 0; i < N; i++) {
		size_t best[2] = { N, N };
		for (size_t j = 0; j < N; j++) {
			const float *rows[2] = { z.rows, p.x };
			for (size_t k = 0; k < 2 && j != i; k++)
				if (best[k] == N ||
				    wire_dot(rows[k] + i * D, rows[k] + j * D, D) >
					    wire_dot(rows[k] + i * D, rows[k] + best[k] * D, D))
					best[k] = j;
		}
		found += best[0] == best[1];
	}
	free(z.rows);
	pair_release(&p);
	return (double)found / N;
}

/* ATTACK without noise: the geometry.  PROTECTED with it. */
static void the_geometry_of_noisy_rows(void **state)
{
	(void)state;
	assert_true(neighbours_found(0) > 0.99);
	assert_true(neighbours_found(0.01) > 0.8);
	assert_true(neighbours_found(honest()) < 0.2); /* chance: 1 in 39 */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_row_out_of_the_map),
		cmocka_unit_test(the_geometry_of_noisy_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
