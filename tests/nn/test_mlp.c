#include "tests/test.h"

#include "nn/mlp.h"
#include "nn/optim.h"

enum { N = 7 };

struct net {
	struct nn_mlp m;
	struct nn_tape t;
	float x[N * 5], y[N], dlogit[N], dx[N * 5];
	float *grad;
};

static void net_init(struct net *k, const size_t *width, size_t layers, uint64_t seed)
{
	struct rng r;
	rng_seed(&r, seed);
	nn_mlp_init(&k->m, width, layers, 0.2f, &r);
	for (size_t i = 0; i < k->m.params; i++)
		k->m.param[i] += 0.1f * (float)rng_normal(&r); /* biases too */
	nn_tape_init(&k->t, &k->m, N);
	for (size_t i = 0; i < N * 5; i++)
		k->x[i] = (float)rng_normal(&r);
	for (size_t i = 0; i < N; i++)
		k->y[i] = (float)(i % 3) / 2.0f;
	k->grad = calloc(k->m.params, sizeof(float));
}

static void net_release(struct net *k)
{
	nn_mlp_release(&k->m);
	nn_tape_release(&k->t);
	free(k->grad);
}

/* He's bound is by what a unit reads, not by how many units there are; biases begin at zero. */
static void test_first_weights(void **state)
{
	const size_t width[] = { 40, 10, 30, 1 };
	struct nn_mlp m;
	struct rng r;
	size_t at = 0;
	(void)state;
	rng_seed(&r, 3);
	nn_mlp_init(&m, width, 3, 0.2f, &r);
	for (size_t l = 0; l < 3; l++) {
		double bound = sqrt(6.0 / (double)width[l]), most = 0;
		for (size_t i = 0; i < width[l] * width[l + 1]; i++)
			most = fmax(most, fabs((double)m.param[at++]));
		assert_true(most <= bound * 1.000001 && most > 0.8 * bound);
		for (size_t i = 0; i < width[l + 1]; i++)
			assert_true(m.param[at++] == 0);
	}
	assert_int_equal(at, m.params);
	nn_mlp_release(&m);
}

typedef double loss_fn(struct net *k);

static double logistic(struct net *k)
{
	return nn_loss_logistic(nn_forward(&k->m, &k->t, k->x, N), k->y, N, 0.5f, k->dlogit);
}

static double saturating(struct net *k)
{
	return nn_loss_saturating(nn_forward(&k->m, &k->t, k->x, N), N, 0.25f, k->dlogit);
}

static double non_saturating(struct net *k)
{
	return nn_loss_non_saturating(nn_forward(&k->m, &k->t, k->x, N), N, 0.25f, k->dlogit);
}

/* Central difference of the loss in *p. */
static double slope_of(struct net *k, loss_fn *loss, float *p)
{
	float old = *p, h = 5e-4f;
	*p = old + h;
	float hi = *p;
	double up = loss(k);
	*p = old - h;
	float lo = *p;
	double down = loss(k);
	*p = old;
	return (up - down) / ((double)hi - (double)lo);
}

static void check_gradients(loss_fn *loss, const size_t *width, size_t layers, uint64_t seed)
{
	struct net k;
	net_init(&k, width, layers, seed);
	loss(&k);
	nn_backward(&k.m, &k.t, k.x, k.dlogit, k.grad, k.dx);
	for (size_t i = 0; i < k.m.params; i++)
		assert_near(slope_of(&k, loss, &k.m.param[i]), (double)k.grad[i], 2e-2, 2e-3);
	for (size_t i = 0; i < N * width[0]; i++)
		assert_near(slope_of(&k, loss, &k.x[i]), (double)k.dx[i], 2e-2, 2e-3);
	net_release(&k);
}

static void test_finite_differences(void **state)
{
	(void)state;
	loss_fn *losses[] = { logistic, saturating, non_saturating };
	for (size_t i = 0; i < 3; i++) {
		check_gradients(losses[i], (const size_t[]){ 5, 1 }, 1, 1);
		check_gradients(losses[i], (const size_t[]){ 5, 4, 1 }, 2, 2);
		check_gradients(losses[i], (const size_t[]){ 5, 6, 3, 1 }, 3, 3);
	}
}

/* backward adds to grad, so two calls give twice the gradient; dx is set. */
static void test_accumulation(void **state)
{
	(void)state;
	struct net k;
	net_init(&k, (const size_t[]){ 5, 4, 1 }, 2, 4);
	logistic(&k);
	nn_backward(&k.m, &k.t, k.x, k.dlogit, k.grad, k.dx);
	float g0 = k.grad[3], dx0 = k.dx[2];
	nn_backward(&k.m, &k.t, k.x, k.dlogit, k.grad, k.dx);
	assert_near((double)k.grad[3], 2.0 * (double)g0, 1e-6, 0);
	assert_true(k.dx[2] == dx0);
	assert_true(g0 != 0.0f);
	net_release(&k);
}

/* The losses stay finite for any logit, where log(1 - p) would not. */
static void test_extreme_logits(void **state)
{
	(void)state;
	const float logit[3] = { -500.0f, 0.0f, 500.0f }, y[3] = { 1, 1, 0 };
	float d[3];
	assert_near(nn_loss_logistic(logit, y, 3, 1.0f, d), 1000.0 + log(2.0), 1e-9, 0);
	assert_near(nn_loss_saturating(logit, 3, 1.0f, d), -500.0 - log(2.0), 1e-9, 0);
	assert_near(nn_loss_non_saturating(logit, 3, 1.0f, d), 500.0 + log(2.0), 1e-9, 0);
	for (size_t i = 0; i < 3; i++)
		assert_true(isfinite(d[i]));
}

static void test_seed_is_all(void **state)
{
	(void)state;
	struct net a, b, c;
	net_init(&a, (const size_t[]){ 5, 8, 1 }, 2, 9);
	net_init(&b, (const size_t[]){ 5, 8, 1 }, 2, 9);
	net_init(&c, (const size_t[]){ 5, 8, 1 }, 2, 10);
	assert_memory_equal(a.m.param, b.m.param, a.m.params * sizeof(float));
	assert_memory_not_equal(a.m.param, c.m.param, a.m.params * sizeof(float));
	net_release(&a);
	net_release(&b);
	net_release(&c);
}

/* Two steps worked by hand: v = g, then v = .9 g + g. */
static void test_sgd(void **state)
{
	(void)state;
	struct nn_sgd s;
	float p[2] = { 1, -1 };
	const float g[2] = { 0.5f, -2 };
	nn_sgd_init(&s, 2, 0.1f, 0.9f);
	nn_sgd_step(&s, p, g);
	assert_near((double)p[0], 0.95, 1e-6, 0);
	nn_sgd_step(&s, p, g);
	assert_near((double)p[0], 0.95 - 0.1 * 0.95, 1e-6, 0);
	assert_near((double)p[1], -1 + 0.2 + 0.1 * 3.8, 1e-6, 0);
	nn_sgd_release(&s);
}

/* Adam's first step is lr times the sign of the gradient, whatever its size. */
static void test_adam(void **state)
{
	(void)state;
	struct nn_adam s;
	float p[2] = { 1, 1 };
	const float g[2] = { 1e-3f, -40 };
	nn_adam_init(&s, 2, 0.1f);
	nn_adam_step(&s, p, g);
	assert_near((double)p[0], 0.9, 1e-4, 0);
	assert_near((double)p[1], 1.1, 1e-4, 0);
	nn_adam_step(&s, p, g);
	assert_near((double)p[0], 0.8, 1e-4, 0);
	nn_adam_release(&s);
}

/* XOR cannot be had without a working hidden layer. */
static void test_learns_xor(void **state)
{
	(void)state;
	const float x[8] = { 0, 0, 0, 1, 1, 0, 1, 1 }, y[4] = { 0, 1, 1, 0 };
	struct rng r;
	struct nn_mlp m;
	struct nn_tape t;
	struct nn_sgd s;
	float d[4], g[64];
	rng_seed(&r, 5);
	nn_mlp_init(&m, (const size_t[]){ 2, 12, 1 }, 2, 0.2f, &r);
	nn_tape_init(&t, &m, 4);
	nn_sgd_init(&s, m.params, 0.05f, 0.9f);
	double loss = 0;
	for (int step = 0; step < 3000; step++) {
		loss = nn_loss_logistic(nn_forward(&m, &t, x, 4), y, 4, 1.0f, d);
		memset(g, 0, sizeof(g));
		nn_backward(&m, &t, x, d, g, NULL);
		nn_sgd_step(&s, m.param, g);
	}
	assert_true(loss < 0.05);
	nn_mlp_release(&m);
	nn_tape_release(&t);
	nn_sgd_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_first_weights), cmocka_unit_test(test_finite_differences),
		cmocka_unit_test(test_accumulation),  cmocka_unit_test(test_extreme_logits),
		cmocka_unit_test(test_seed_is_all),   cmocka_unit_test(test_sgd),
		cmocka_unit_test(test_adam),	      cmocka_unit_test(test_learns_xor),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
