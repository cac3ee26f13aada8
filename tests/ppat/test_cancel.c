/* *cancel is set while a WORK is under way, at each of its steps in turn: it ends there, with
 * ERR_CANCELED, and what it had done by then goes nowhere. */
#include "tests/test.h"

#include <cblas.h>

#include "dp/discrete.h"
#include "nn/linalg.h"
#include "nn/optim.h"
#include "tests/ppat/pair.h"

enum { SLOTS = 600, MORE = 1 /* steps that may be over before *cancel is looked at */ };

static atomic_bool cancel;
static bool solving; /* what is called there is one step with it */
static size_t steps, stop_at, after;
static size_t values, stop_at_value; /* of noise; 0: not there */

static void step(void)
{
	if (solving)
		return;
	after += atomic_load(&cancel);
	if (++steps == stop_at)
		atomic_store(&cancel, true);
}

void __real_nn_sgd_step(struct nn_sgd *s, float *param, const float *grad);
void __wrap_nn_sgd_step(struct nn_sgd *s, float *param, const float *grad);
void __wrap_nn_sgd_step(struct nn_sgd *s, float *param, const float *grad)
{
	step();
	__real_nn_sgd_step(s, param, grad);
}

int __real_nn_haar(float *q, size_t d, struct nn_draw draw, struct err *e);
int __wrap_nn_haar(float *q, size_t d, struct nn_draw draw, struct err *e);
int __wrap_nn_haar(float *q, size_t d, struct nn_draw draw, struct err *e)
{
	step();
	return __real_nn_haar(q, d, draw, e);
}

int __real_nn_polar(float *r, const double *m, size_t dz, size_t dy, struct err *e);
int __wrap_nn_polar(float *r, const double *m, size_t dz, size_t dy, struct err *e);
int __wrap_nn_polar(float *r, const double *m, size_t dz, size_t dy, struct err *e)
{
	step();
	bool outer = !solving;
	solving = true;
	int rc = __real_nn_polar(r, m, dz, dy, e);
	solving = !outer;
	return rc;
}

int __real_nn_procrustes(float *r, const float *z, const float *y, size_t n, size_t dz, size_t dy,
			 struct err *e);
int __wrap_nn_procrustes(float *r, const float *z, const float *y, size_t n, size_t dz, size_t dy,
			 struct err *e);
int __wrap_nn_procrustes(float *r, const float *z, const float *y, size_t n, size_t dz, size_t dy,
			 struct err *e)
{
	step();
	solving = true;
	int rc = __real_nn_procrustes(r, z, y, n, dz, dy, e);
	solving = false;
	return rc;
}

#define DGEMM(name)                                                                                \
	void name(CBLAS_ORDER order, CBLAS_TRANSPOSE ta, CBLAS_TRANSPOSE tb, blasint m, blasint n, \
		  blasint k, double alpha, const double *a, blasint lda, const double *b,          \
		  blasint ldb, double beta, double *c, blasint ldc)
DGEMM(__real_cblas_dgemm);
DGEMM(__wrap_cblas_dgemm);
DGEMM(__wrap_cblas_dgemm)
{
	step();
	__real_cblas_dgemm(order, ta, tb, m, n, k, alpha, a, lda, b, ldb, beta, c, ldc);
}

int64_t __real_dp_discrete_gaussian(struct dp_bits *b, uint64_t sigma2);
int64_t __wrap_dp_discrete_gaussian(struct dp_bits *b, uint64_t sigma2);
int64_t __wrap_dp_discrete_gaussian(struct dp_bits *b, uint64_t sigma2)
{
	if (++values == stop_at_value)
		atomic_store(&cancel, true);
	return __real_dp_discrete_gaussian(b, sigma2);
}

static void start(struct pair *p, enum ppat_translator t, enum ppat_placement student)
{
	pair_init(p, t, 5);
	p->cfg.slots = SLOTS;
	p->cfg.student = student;
	if (t == PPAT_PPAT)
		pair_budget(p);
	pair_rows(p, 2000);
	p->d.cancel = &cancel;
}

/* Returns whether there was such a step. */
static bool stop_at_step(size_t k, enum ppat_translator t, enum ppat_placement student)
{
	struct pair p;
	int host, client;
	atomic_store(&cancel, false);
	steps = after = 0;
	stop_at = k;
	start(&p, t, student);
	pair_run(&p);
	host = p.host->ops->status(p.host, NULL);
	client = p.client->ops->status(p.client, NULL);
	pair_release(&p);
	if (steps < k) {
		assert_true(host == 0 && client == 0);
		return false;
	}
	assert_true(host == ERR_CANCELED || client == ERR_CANCELED);
	assert_true(after <= MORE);
	return true;
}

static size_t stop_at_each(enum ppat_translator t, enum ppat_placement student)
{
	size_t k = 0;
	while (stop_at_step(k + 1, t, student))
		k++;
	return k;
}

/* 5 batches of 3 teachers' 2 steps, the student's 3 and the generator's 4. */
static void training_stops(void **state)
{
	(void)state;
	assert_int_equal(stop_at_each(PPAT_PPAT, PPAT_STUDENT_CLIENT), 5 * (3 * 2 + 3 + 4));
	assert_int_equal(stop_at_each(PPAT_PPAT, PPAT_STUDENT_HOST), 5 * (3 * 2 + 3 + 4));
}

/* The client's rotation, and what the host solves. */
static void procrustes_stops(void **state)
{
	(void)state;
	assert_int_equal(stop_at_each(PPAT_PROCRUSTES, PPAT_STUDENT_CLIENT), 2);
}

/* The client's rotation, the host's 3 blocks of rows, and what the client solves. */
static void map_stops(void **state)
{
	(void)state;
	assert_int_equal(stop_at_each(PPAT_MAP, PPAT_STUDENT_CLIENT), 1 + 3 + 1);
}

/* Noise is drawn value by value, and where it ends early nothing leaves. */
static void noise_stops(void **state)
{
	(void)state;
	for (int map = 0; map < 2; map++) {
		struct pair p;
		atomic_store(&cancel, false);
		steps = values = stop_at = 0;
		stop_at_value = 10;
		start(&p, map ? PPAT_MAP : PPAT_PROCRUSTES, PPAT_STUDENT_CLIENT);
		p.cfg.multiplier = 2;
		pair_run(&p);
		struct conv *spends = map ? p.host : p.client;
		assert_int_equal(spends->ops->status(spends, NULL), ERR_CANCELED);
		assert_int_equal(values, 10);
		if (!map)
			assert_int_equal(p.d.messages[0] + p.d.messages[1], 0);
		pair_release(&p);
	}
	stop_at_value = 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(training_stops),
		cmocka_unit_test(procrustes_stops),
		cmocka_unit_test(map_stops),
		cmocka_unit_test(noise_stops),
	};
	return cmocka_run_group_tests_name("ppat/cancel", tests, NULL, NULL);
}
