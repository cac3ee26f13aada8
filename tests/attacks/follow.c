/* PPAT's W at the client (docs/THREAT-MODEL.md).  It starts as the identity, so that the first
 * batch is rows of X as they are.  In mode paper every step of it follows from what the host
 * has: the batches, the labels that it sent itself, the public seed of the student; the host can
 * step along and undo it.  In mode budget some steps are on rows that it does not see, but
 * rows that it has seen twice, under the identity and at the end, give W as well. */
#include "tests/attacks/wire.h"

#include <cblas.h>

#include "net/msg.h"
#include "ppat/scale.h"
#include "ppat/student.h"

/* LAPACK's, in OpenBLAS (nn/lapack.h). */
void sgesv_(const int *n, const int *columns, float *a, const int *lda, int *pivot, float *b,
	    const int *ldb, int *info);
void sgels_(const char *transposed, const int *m, const int *n, const int *columns, float *a,
	    const int *lda, float *b, const int *ldb, float *work, const int *lwork, int *info,
	    size_t transposed_length);

/* What the host keeps of a session: batches that came, labels that went. */
struct log {
	const struct ppat_config *cfg;
	float *z; /* [steps x batch x dim] */
	float *label;
	size_t steps, answers;
};

static void keep_label_bits(void *ctx, uint8_t kind, const uint8_t *body, size_t len)
{
	struct log *l = ctx;
	struct net_body b;
	struct err e = { 0 };
	uint8_t bits[PPAT_BATCH_MAX / 8];
	size_t n = l->cfg->batch;
	if (kind != PPAT_MSG_LABELS)
		return;
	assert_int_equal(net_body_decode(&b, body, len, &e), 0);
	net_get_fixed(&b.map, "b", bits, (n + 7) / 8, &e);
	l->label = mem_resize(l->label, (l->answers + 1) * n, sizeof(float));
	for (size_t i = 0; i < n; i++)
		l->label[l->answers * n + i] = (float)(bits[i / 8] >> (i % 8) & 1);
	l->answers++;
	net_body_release(&b);
}

/* rows <- rows inv(w'): what w was applied to. */
static void undo(float *rows, const float *w, size_t n, size_t d)
{
	int pivot[64], size = (int)d, columns = (int)n, info;
	float *lu = mem_copy(w, d * d * sizeof(float));
	assert_true(d <= 64);
	/* Each row x of the wire is w x_0; column by column in Fortran's order. */
	for (size_t i = 0; i < d; i++)
		for (size_t j = 0; j < d; j++)
			lu[j * d + i] = w[i * d + j];
	sgesv_(&size, &columns, lu, &size, pivot, rows, &size, &info);
	assert_int_equal(info, 0);
	free(lu);
}

/* The client's step (methods 3.2, step 5), by its partner. */
static void follow_step(const struct log *l, struct ppat_student *student, struct nn_sgd *sgd,
			float *w, size_t step)
{
	size_t n = l->cfg->batch, d = l->cfg->host_dim;
	const float *z = l->z + step * n * d;
	float *x = mem_copy(z, n * d * sizeof(float)), *g = mem_array(n * d, sizeof(float)),
	      *gw = mem_array(d * d, sizeof(float));
	undo(x, w, n, d);
	ppat_student_train(student, z, l->label + step * n, n, NULL);
	ppat_student_gradient(student, z, n, g);
	cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, (int)d, (int)d, (int)n, 1.0f, g,
		    (int)d, x, (int)d, 0.0f, gw, (int)d);
	nn_sgd_step(sgd, w, gw);
	nn_orthogonalize(w, d, (float)l->cfg->beta);
	free(x);
	free(g);
	free(gw);
}

/* ATTACK: rows up to their length, after 60 steps. */
static void host_follows_w(void **state)
{
	(void)state;
	enum { D = 8 };
	struct pair p;
	pair_init(&p, PPAT_PPAT, 5);
	p.cfg.client_dim = p.cfg.host_dim = D;
	p.cfg.steps = 60;
	p.cfg.max_labels = p.cfg.steps * p.cfg.batch;
	p.cfg.lr = 0.2; /* so that W moves far in a short session */
	pair_rows(&p, 2000);
	pair_run(&p);
	struct audit_matrix batches = wire_rows_of(&p.d.received[0], PPAT_MSG_BATCH);
	struct audit_matrix rows = wire_rows_of(&p.d.received[0], PPAT_MSG_ROWS);
	struct log l = { .cfg = &p.cfg, .z = batches.rows, .steps = p.cfg.steps };
	audit_wire_each(&p.d.received[1], keep_label_bits, &l);
	assert_int_equal(l.answers, l.steps);

	float w[D * D] = { 0 };
	struct ppat_student student;
	struct nn_sgd sgd;
	for (size_t i = 0; i < D; i++)
		w[i * D + i] = 1.0f;
	ppat_student_init(&student, &p.cfg);
	nn_sgd_init(&sgd, (size_t)D * D, (float)p.cfg.lr, (float)p.cfg.momentum);
	for (size_t s = 0; s < l.steps; s++)
		follow_step(&l, &student, &sgd, w, s);
	assert_true(wire_error(w, p.c.map, (size_t)D * D) < 1e-3);

	struct ppat_scaling scaling;
	ppat_scaling_fit(&scaling, &p.cfg, p.x, p.cfg.slots, D);
	ppat_scaling_apply(&scaling, p.x, p.cfg.slots);
	assert_true(wire_error(rows.rows, p.x, rows.n * D) > 0.05); /* W did move */
	undo(rows.rows, w, rows.n, D);
	assert_true(wire_error(rows.rows, p.x, rows.n * D) < 1e-2);

	ppat_scaling_release(&scaling);
	nn_sgd_release(&sgd);
	ppat_student_release(&student);
	free(l.label);
	free(batches.rows);
	free(rows.rows);
	pair_release(&p);
}

/* ---- mode budget ---- */

static size_t nearest(const struct audit_matrix *among, const float *row)
{
	size_t best = 0;
	for (size_t i = 1; i < among->n; i++)
		if (wire_dot(among->rows + i * among->dim, row, among->dim) >
		    wire_dot(among->rows + best * among->dim, row, among->dim))
			best = i;
	return best;
}

/* b [d x d], the first rows of b [n x d], becomes the X of the smallest |a X - b|; a is destroyed.
 */
static void least_squares(float *a, float *b, size_t n, size_t d)
{
	int rows = (int)n, size = (int)d, length = 64 * (rows + size), info;
	float *by_columns = mem_array(n * d, sizeof(float)),
	      *work = mem_array((size_t)length, sizeof(float));

	/* a by rows is a' by columns; b is read by columns */
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < d; j++)
			by_columns[j * n + i] = b[i * d + j];
	sgels_("T", &size, &rows, &size, a, &size, by_columns, &rows, work, &length, &info, 1);
	assert_int_equal(info, 0);
	for (size_t i = 0; i < d; i++)
		for (size_t j = 0; j < d; j++)
			b[i * d + j] = by_columns[j * n + i];
	free(by_columns);
	free(work);
}

/* Which of the last rows, brought back by what is known of W so far, is which of the first; and
 * from these pairs W again, in the least squares; until nothing changes. */
static void match_and_solve(struct audit_matrix *back, const struct audit_matrix *last,
			    const struct audit_matrix *first, size_t n)
{
	enum { ROUNDS = 20 };
	size_t d = last->dim;
	float *a = mem_array(n * d, sizeof(float)), *b = mem_array(n * d, sizeof(float));
	memcpy(back->rows, last->rows, last->n * d * sizeof(float));
	for (int round = 0; round < ROUNDS; round++) {
		for (size_t i = 0; i < n; i++) {
			size_t k = nearest(back, first->rows + i * d);
			memcpy(a + i * d, last->rows + k * d, d * sizeof(float));
		}
		memcpy(b, first->rows, n * d * sizeof(float));
		least_squares(a, b, n, d);
		cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, (int)last->n, (int)d, (int)d,
			    1.0f, last->rows, (int)d, b, (int)d, 0.0f, back->rows, (int)d);
	}
	free(a);
	free(b);
}

/* ATTACK: the pool comes as it is; and with it W is known. */
static void first_batch_is_plain(void **state)
{
	(void)state;
	enum { D = 8, POOL = 40 };
	struct pair p;
	struct ppat_scaling scaling;
	pair_init(&p, PPAT_PPAT, 5);
	p.cfg.client_dim = p.cfg.host_dim = D;
	p.cfg.steps = 20;
	ppat_config_budget(&p.cfg, POOL, 1, 2, 3);
	p.cfg.max_labels = p.cfg.steps * p.cfg.batch;
	p.cfg.lr = 0.1;
	pair_rows(&p, 2000);
	pair_run(&p);
	assert_int_equal(p.host->ops->status(p.host, NULL), 0);
	struct audit_matrix seen = wire_rows_of(&p.d.received[0], PPAT_MSG_BATCH);
	struct audit_matrix rows = wire_rows_of(&p.d.received[0], PPAT_MSG_ROWS);
	ppat_scaling_fit(&scaling, &p.cfg, p.x, p.cfg.slots, D);
	ppat_scaling_apply(&scaling, p.x, p.cfg.slots);

	struct audit_matrix x = { p.cfg.slots, D, p.x };
	for (size_t i = 0; i < POOL; i++) {
		const float *row = seen.rows + i * D;
		assert_true(wire_error(row, p.x + nearest(&x, row) * D, D) < 1e-6);
	}
	double moved = wire_error(rows.rows, p.x, rows.n * D);
	struct audit_matrix found = { rows.n, D, mem_array(rows.n * D, sizeof(float)) };
	match_and_solve(&found, &rows, &seen, POOL);
	double left = wire_error(found.rows, p.x, rows.n * D);
	print_message("# W moved rows by %.3f of their length; undone to %.6f\n", moved, left);
	assert_true(moved > 0.05);
	assert_true(left < 1e-3);

	free(found.rows);
	free(seen.rows);
	free(rows.rows);
	ppat_scaling_release(&scaling);
	pair_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(host_follows_w),
		cmocka_unit_test(first_batch_is_plain),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
