/* Every instruction set against the scalar definition. */
#include "tests/test.h"

#include "base/mem.h"
#include "base/rng.h"
#include "kge/kernel.h"
#include "kge/optimizer.h"

static const size_t lengths[] = { 1,  2,  3,  4,  5,  6,  7,  8,  9,   10,  11, 12,
				  13, 14, 15, 16, 17, 31, 33, 64, 100, 255, 256 };
enum { LENGTHS = sizeof(lengths) / sizeof(lengths[0]), ROWS = 5, QUERIES = 7, WIDTH = 3 };

static const char *const isas[] = { "avx2", "avx512" };

static void fill(float *x, size_t n, struct rng *r)
{
	for (size_t i = 0; i < n; i++)
		x[i] = rng_range(r, -1, 1);
}

/* Sum of |term|, which bounds the error of any order of summation. */
static float magnitude(enum kge_metric m, const float *q, const float *c, size_t n)
{
	float sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += m == KGE_DOT ? fabsf(q[i] * c[i]) : fabsf(q[i] - c[i]);
	return sum;
}

static void check_rows(const struct kge_kernels *k, enum kge_metric m, size_t n, struct rng *r)
{
	float *q = mem_array(n, sizeof(*q)), *rows = mem_array(ROWS * n, sizeof(*rows));
	float got[ROWS + 1], want[ROWS];

	fill(q, n, r);
	fill(rows, ROWS * n, r);
	got[ROWS] = 77;
	k->score[m](got, q, rows, ROWS, n);
	kge_kernels_scalar.score[m](want, q, rows, ROWS, n);
	for (size_t i = 0; i < ROWS; i++)
		assert_near(got[i], want[i], 0,
			    kge_kernel_tolerance(m, n, magnitude(m, q, rows + i * n, n)));
	assert_true(got[ROWS] == 77); /* nothing written past the end */
	free(q);
	free(rows);
}

static void test_rows(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 1);
	for (size_t s = 0; s < 2; s++) {
		const struct kge_kernels *k = kge_kernels_find(isas[s]);

		for (int m = 0; k != NULL && m < KGE_METRICS; m++)
			for (size_t i = 0; i < LENGTHS; i++)
				if (m != KGE_MODULUS || lengths[i] % 2 == 0)
					check_rows(k, (enum kge_metric)m, lengths[i], &r);
	}
}

/* ---- pairs ---- */

/* Query 0 twice, some queries not at all. */
static const uint32_t pairs[] = { 0u << 16 | 1, 0u << 16 | 2, 2u << 16 | 0, 5u << 16 | 1,
				  6u << 16 | 2 };
enum { PAIRS = sizeof(pairs) / sizeof(pairs[0]) };

struct result {
	float line[QUERIES * WIDTH];
	float *drow, *dq;
};

static void run_pairs(const struct kge_kernels *k, enum kge_metric m, const struct kge_pairs *p,
		      const float *row, const float *weight, struct result *out)
{
	for (size_t i = 0; i < QUERIES * WIDTH; i++)
		out->line[i] = 77;
	out->drow = mem_array(p->floats, sizeof(float));
	out->dq = mem_array(QUERIES * p->stride, sizeof(float));
	for (size_t i = 0; i < QUERIES * p->stride; i++)
		out->dq[i] = 0.5f;
	k->score_pairs[m](out->line, row, p);
	k->grad_pairs[m](out->drow, out->dq, weight, row, p);
}

static void compare_results(const struct result *got, const struct result *want,
			    const struct kge_pairs *p, float tolerance)
{
	for (size_t i = 0; i < QUERIES * WIDTH; i++)
		assert_near(got->line[i], want->line[i], 0, tolerance);
	for (size_t i = 0; i < p->floats; i++)
		assert_near(got->drow[i], want->drow[i], 1e-5, 1e-5);
	for (size_t q = 0; q < QUERIES; q++)
		for (size_t i = 0; i < p->floats; i++)
			assert_near(got->dq[q * p->stride + i], want->dq[q * p->stride + i], 1e-5,
				    1e-5);
}

static void release_result(struct result *r)
{
	free(r->drow);
	free(r->dq);
}

static void check_pairs(const struct kge_kernels *k, enum kge_metric m, size_t n, struct rng *r)
{
	size_t stride = (n + KGE_PAD - 1) / KGE_PAD * KGE_PAD;
	float *q = mem_array(QUERIES * stride, sizeof(*q)), *row = mem_array(n, sizeof(*row));
	struct kge_pairs p = { pairs, PAIRS, WIDTH, q, stride, n };
	float weight[QUERIES * WIDTH];
	struct result got, want;

	fill(row, n, r);
	fill(weight, QUERIES * WIDTH, r);
	for (size_t i = 0; i < QUERIES; i++)
		fill(q + i * stride, n, r);
	q[0] = row[0]; /* a difference of exactly 0 */
	run_pairs(k, m, &p, row, weight, &got);
	run_pairs(&kge_kernels_scalar, m, &p, row, weight, &want);
	compare_results(&got, &want, &p, kge_kernel_tolerance(m, n, 2.0f * (float)n));
	release_result(&got);
	release_result(&want);
	free(q);
	free(row);
}

static void test_pairs(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 2);
	for (size_t s = 0; s < 2; s++) {
		const struct kge_kernels *k = kge_kernels_find(isas[s]);

		for (int m = 0; k != NULL && m < KGE_METRICS; m++)
			for (size_t i = 0; i < LENGTHS; i++)
				if (m != KGE_MODULUS || lengths[i] % 2 == 0)
					check_pairs(k, (enum kge_metric)m, lengths[i], &r);
	}
}

/* ---- tiles ---- */

/* More than a register tile each way and a few left over; some floats between rows. */
enum { NQ = 11, NC = 9, GAP = 3, LDO = NC + 2 };

struct tiles {
	struct kge_tile t;
	float *q, *c, *dq, *dc, w[NQ * LDO], out[NQ * LDO];
};

/* Rows with something between them that does not belong to anybody. */
static float *strided_rows(size_t rows, size_t stride, struct rng *r)
{
	float *x = mem_array(rows * stride, sizeof(*x));

	fill(x, rows * stride, r);
	return x;
}

static void init_tiles(struct tiles *x, size_t floats, uint64_t seed)
{
	size_t stride = floats + GAP;
	struct rng r;

	rng_seed(&r, seed);
	x->q = strided_rows(NQ, stride, &r);
	x->c = strided_rows(NC, stride, &r);
	x->dq = strided_rows(NQ, stride, &r);
	x->dc = strided_rows(NC, stride, &r);
	fill(x->w, NQ * LDO, &r);
	fill(x->out, NQ * LDO, &r);
	x->w[1] = 0;
	memcpy(x->q, x->c, floats * sizeof(float)); /* no difference at all */
	x->t = (struct kge_tile){ x->q, NQ, stride, x->c, NC, stride, floats };
}

static void release_tiles(struct tiles *x)
{
	free(x->q);
	free(x->c);
	free(x->dq);
	free(x->dc);
}

static void run_tiles(const struct kge_kernels *k, enum kge_metric m, struct tiles *x)
{
	k->score_tile[m](x->out, LDO, &x->t);
	k->grad_tile[m](x->dq, x->dc, x->w, LDO, &x->t);
}

/* Equal within the tolerance, and bit for bit where nothing is to be written. */
static void compare_strided(const float *got, const float *want, size_t rows, size_t stride,
			    size_t floats, float tolerance)
{
	for (size_t i = 0; i < rows * stride; i++)
		if (i % stride < floats)
			assert_near(got[i], want[i], tolerance, tolerance);
		else
			assert_true(got[i] == want[i]);
}

static void check_tiles(const struct kge_kernels *k, enum kge_metric m, size_t floats,
			uint64_t seed)
{
	struct tiles got, want;
	size_t stride = floats + GAP;

	init_tiles(&got, floats, seed);
	init_tiles(&want, floats, seed);
	run_tiles(k, m, &got);
	run_tiles(&kge_kernels_scalar, m, &want);
	compare_strided(got.out, want.out, NQ, LDO, NC,
			kge_kernel_tolerance(m, floats, 2.0f * (float)floats));
	compare_strided(got.dq, want.dq, NQ, stride, floats, 1e-5f);
	compare_strided(got.dc, want.dc, NC, stride, floats, 1e-5f);
	release_tiles(&got);
	release_tiles(&want);
}

/* The same bits from a tile, from each of its pairs by itself and from `score`. */
static void check_scores_alone(const struct kge_kernels *k, enum kge_metric m, size_t floats)
{
	struct tiles x;
	float alone;

	init_tiles(&x, floats, 5);
	run_tiles(k, m, &x);
	for (size_t i = 0; i < NQ * NC; i++) {
		size_t q = i / NC, c = i % NC;
		struct kge_tile one = x.t;

		one.q += q * one.q_stride;
		one.c += c * one.c_stride;
		one.nq = one.nc = 1;
		k->score_tile[m](&alone, 1, &one);
		assert_memory_equal(&alone, &x.out[q * LDO + c], sizeof(alone));
		k->score[m](&alone, one.q, one.c, 1, floats);
		assert_memory_equal(&alone, &x.out[q * LDO + c], sizeof(alone));
	}
	release_tiles(&x);
}

/* The same bits from one call and from four with a quarter each. */
static void check_grads_in_pieces(const struct kge_kernels *k, enum kge_metric m, size_t floats)
{
	size_t stride = floats + GAP;
	struct tiles whole, x;

	init_tiles(&whole, floats, 6);
	init_tiles(&x, floats, 6);
	k->grad_tile[m](whole.dq, whole.dc, whole.w, LDO, &whole.t);
	for (size_t part = 0; part < 4; part++) {
		size_t q = part / 2 * 5, c = part % 2 * 3;
		struct kge_tile t = { x.q + q * stride,
				      part / 2 == 0 ? 5 : NQ - 5,
				      stride,
				      x.c + c * stride,
				      part % 2 == 0 ? 3 : NC - 3,
				      stride,
				      floats };

		k->grad_tile[m](x.dq + q * stride, x.dc + c * stride, x.w + q * LDO + c, LDO, &t);
	}
	assert_memory_equal(x.dq, whole.dq, NQ * stride * sizeof(float));
	assert_memory_equal(x.dc, whole.dc, NC * stride * sizeof(float));
	release_tiles(&x);
	release_tiles(&whole);
}

static void test_tiles(void **state)
{
	(void)state;
	for (size_t s = 0; s < 2; s++) {
		const struct kge_kernels *k = kge_kernels_find(isas[s]);

		for (int m = 0; k != NULL && m < KGE_METRICS; m++)
			for (size_t i = 0; i < LENGTHS; i++) {
				if (m == KGE_MODULUS && lengths[i] % 2 != 0)
					continue;
				check_tiles(k, (enum kge_metric)m, lengths[i], 4 + i);
				check_scores_alone(k, (enum kge_metric)m, lengths[i]);
				check_grads_in_pieces(k, (enum kge_metric)m, lengths[i]);
			}
	}
}

/* Rows so long that a piece holds few of them. */
static void test_tiles_of_long_rows(void **state)
{
	(void)state;
	for (size_t s = 0; s < 2; s++) {
		const struct kge_kernels *k = kge_kernels_find(isas[s]);

		for (int m = 0; k != NULL && m < KGE_METRICS; m++) {
			check_tiles(k, (enum kge_metric)m, 2050, 9);
			check_grads_in_pieces(k, (enum kge_metric)m, 2050);
		}
	}
}

/* The scalar tile is the scalar pairs, whose gradients are checked below. */
static void test_scalar_tile(void **state)
{
	enum { N = 6 };
	uint32_t pair = 0;

	(void)state;
	for (int m = 0; m < KGE_METRICS; m++) {
		float q[KGE_PAD] = { .9f, -.4f, .3f, .2f, -.7f, .8f }, dq[2][KGE_PAD] = { { 0 } };
		float c[N] = { .1f, .5f, -.6f, .9f, -.2f, .4f }, dc[2][N] = { { 0 } }, out[2];
		struct kge_pairs p = { &pair, 1, 1, q, KGE_PAD, N };
		struct kge_tile t = { q, 1, N, c, 1, N, N };
		float w = -0.7f;

		kge_kernels_scalar.score_pairs[m](&out[0], c, &p);
		kge_kernels_scalar.score_tile[m](&out[1], 1, &t);
		kge_kernels_scalar.grad_pairs[m](dc[0], dq[0], &w, c, &p);
		kge_kernels_scalar.grad_tile[m](dq[1], dc[1], &w, 1, &t);
		assert_true(out[0] == out[1]);
		assert_memory_equal(dq[0], dq[1], sizeof(dq[0]));
		assert_memory_equal(dc[0], dc[1], sizeof(dc[0]));
	}
}

/* The scalar gradients against differences of the scalar metrics. */
static void test_scalar_gradients(void **state)
{
	enum { N = 6, STRIDE = KGE_PAD };
	float q[STRIDE] = { .9f, -.4f, .3f, .2f, -.7f, .8f };
	float c[N] = { .1f, .5f, -.6f, .9f, -.2f, .4f }, w = 0.7f, h = 1e-3f;
	uint32_t pair = 0;
	struct kge_pairs p = { &pair, 1, 1, q, STRIDE, N };

	(void)state;
	for (int m = 0; m < KGE_METRICS; m++) {
		float dq[STRIDE] = { 0 }, dc[N], up, down, value, weight;

		kge_kernels_scalar.score[m](&value, q, c, 1, N);
		weight = m == KGE_L2 ? w / value : w;
		kge_kernels_scalar.grad_pairs[m](dc, dq, &weight, c, &p);
		for (size_t i = 0; i < N; i++) {
			float keep = q[i];

			q[i] = keep + h;
			kge_kernels_scalar.score[m](&up, q, c, 1, N);
			q[i] = keep - h;
			kge_kernels_scalar.score[m](&down, q, c, 1, N);
			q[i] = keep;
			assert_near(dq[i], w * (up - down) / (2 * h), 1e-3, 1e-4);
			keep = c[i];
			c[i] = keep + h;
			kge_kernels_scalar.score[m](&up, q, c, 1, N);
			c[i] = keep - h;
			kge_kernels_scalar.score[m](&down, q, c, 1, N);
			c[i] = keep;
			assert_near(dc[i], w * (up - down) / (2 * h), 1e-3, 1e-4);
		}
	}
}

/* ---- losses and optimisers ---- */

static void check_logistic(const struct kge_kernels *k)
{
	static const float x[] = { -1e30f, -100, -87, -20, -3, -1, -1e-3f, 0,	1e-6f,
				   0.5f,   1,	 2,   10,  50, 88, 200,	   1e6f };
	enum { N = sizeof(x) / sizeof(x[0]) };
	float got[2][N], want[2][N];

	k->logistic(got[0], got[1], x, N);
	kge_kernels_scalar.logistic(want[0], want[1], x, N);
	for (size_t i = 0; i < 2 * N; i++)
		assert_near(got[i / N][i % N], want[i / N][i % N], 2e-6, 1e-37);
	assert_near(want[0][7], log(2), 1e-6, 0);
	assert_near(want[1][10], 1 / (1 + exp(-1)), 1e-6, 0);
}

static void check_softmax(const struct kge_kernels *k, size_t n, struct rng *r)
{
	float *x = mem_array(n, sizeof(*x)), *got = mem_array(n, sizeof(*got));
	float *want = mem_array(n, sizeof(*want)), sum = 0;

	for (size_t i = 0; i < n; i++)
		x[i] = rng_range(r, -30, 30);
	if (n > 2)
		x[1] = -1e30f;
	k->softmax(got, x, 0.7f, n);
	kge_kernels_scalar.softmax(want, x, 0.7f, n);
	for (size_t i = 0; i < n; i++) {
		assert_near(got[i], want[i], 1e-5, 1e-36);
		sum += got[i];
	}
	assert_near(sum, 1, 1e-5, 0);
	free(x);
	free(got);
	free(want);
}

static void check_optimizers(const struct kge_kernels *k, size_t n, struct rng *r)
{
	struct kge_step s = { .lr = .1f, .beta1 = .9f, .beta2 = .999f, .eps = 1e-8f, .scale2 = 3 };
	float *x = mem_array(8 * n, sizeof(*x)), *got = x, *want = x + 3 * n, *g = x + 6 * n;

	fill(got, 3 * n, r);
	fill(g, n, r);
	for (size_t i = 2 * n; i < 3 * n; i++)
		got[i] = i % 4 == 0 ? 0 : fabsf(got[i]); /* v >= 0 */
	g[0] = 0;
	memcpy(want, got, 3 * n * sizeof(*x));
	k->sgd(got, g, &s, n);
	k->momentum(got, got + n, g, &s, n);
	k->adagrad(got, got + 2 * n, g, &s, n);
	k->adam(got, got + n, got + 2 * n, g, &s, n);
	kge_kernels_scalar.sgd(want, g, &s, n);
	kge_kernels_scalar.momentum(want, want + n, g, &s, n);
	kge_kernels_scalar.adagrad(want, want + 2 * n, g, &s, n);
	kge_kernels_scalar.adam(want, want + n, want + 2 * n, g, &s, n);
	for (size_t i = 0; i < 3 * n; i++)
		assert_near(got[i], want[i], 1e-5, 1e-6);
	free(x);
}

/* Squares of gradients that fade away pass through every small number: the last normal ones and
 * those below, of which the processor's estimate of a root is infinite. */
static void check_fading(const struct kge_kernels *k)
{
	const struct kge_step s = {
		.lr = .1f, .beta1 = .9f, .beta2 = 1, .eps = 1e-8f, .scale2 = 3
	};
	enum { MANY = 16 };

	for (double size = 1e-36; size > 1e-44; size *= 0.9) {
		float w[MANY], m[MANY] = { 0 }, v[MANY], g[MANY] = { 0 };

		for (int i = 0; i < MANY; i++) {
			w[i] = 1;
			v[i] = (float)(size * (1 + i / 200.0));
		}
		k->adagrad(w, v, g, &s, MANY);
		k->adam(w, m, v, g, &s, MANY);
		for (int i = 0; i < MANY; i++)
			assert_near(w[i], 1, 1e-6, 0);
	}
}

static void test_rest(void **state)
{
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	for (size_t s = 0; s < 2; s++) {
		const struct kge_kernels *k = kge_kernels_find(isas[s]);

		if (k == NULL)
			continue;
		check_logistic(k);
		check_fading(k);
		for (size_t i = 0; i < LENGTHS; i++) {
			check_softmax(k, lengths[i], &r);
			check_optimizers(k, lengths[i], &r);
		}
	}
}

/* One Adam step by hand: m = .1 g, v = .001 g^2, both corrected: w - lr sign(g). */
static void test_adam_by_hand(void **state)
{
	struct kge_step s = { .lr = .01f / .1f, .beta1 = .9f, .beta2 = .999f, .eps = 1e-8f };
	float w = 1, m = 0, v = 0, g = -3;

	(void)state;
	s.scale2 = 1 / sqrtf(.001f);
	kge_kernels_scalar.adam(&w, &m, &v, &g, &s, 1);
	assert_near(m, -.3, 1e-6, 0);
	assert_near(v, .009, 1e-4, 0);
	assert_near(w, 1.01, 1e-6, 0);
}

enum { STEPS = 12 };

/* As `optimizer.h` and the papers have it, in doubles. */
static double by_hand(enum kge_optimizer o, double w, const float g[STEPS])
{
	double m = 0, v = 0;

	for (int t = 1; t <= STEPS; t++) {
		double d = (double)g[t - 1];

		if (o == KGE_SGD) {
			w -= .01 * d;
		} else if (o == KGE_MOMENTUM) {
			m = .7 * m + d;
			w -= .01 * m;
		} else if (o == KGE_ADAGRAD) {
			v += d * d;
			w -= .01 * d / (sqrt(v) + 1e-10);
		} else {
			m = .9 * m + .1 * d;
			v = .999 * v + .001 * d * d;
			w -= .01 * (m / (1 - pow(.9, t))) / (sqrt(v / (1 - pow(.999, t))) + 1e-8);
		}
	}
	return w;
}

/* Steps of every optimiser with its own constants; gradients of all sizes, that a constant added
 * to their roots would show. */
static void test_steps_by_hand(void **state)
{
	struct kge_train_config c = { .momentum = .7F };

	(void)state;
	for (enum kge_optimizer o = KGE_SGD; o <= KGE_MOMENTUM; o++)
		for (double size = 1e-4; size < 100; size *= 100) {
			struct kge_optimizer_table table;
			float w = 0, g[STEPS];

			c.optimizer = o;
			kge_optimizer_init(&table, o, 2, 1);
			for (int t = 0; t < STEPS; t++) {
				struct kge_step s = kge_optimizer_step(&c, .01F, (uint64_t)t + 1);

				g[t] = (float)(size * (t % 3 == 0 ? 2 : t % 5 == 0 ? -3 : .1));
				kge_optimizer_row(&table, o, &kge_kernels_scalar, &s, 1, &w, &g[t]);
			}
			assert_near(w, by_hand(o, 0, g), 1e-4, 0);
			kge_optimizer_release(&table);
		}
}

static void test_pick(void **state)
{
	(void)state;
	setenv("FKGE_ISA", "scalar", 1);
	assert_string_equal(kge_kernels_pick()->isa, "scalar");
	unsetenv("FKGE_ISA");
	assert_null(kge_kernels_find("mmx"));
	if (kge_kernels_find("avx512") != NULL)
		assert_string_equal(kge_kernels_pick()->isa, "avx512");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_rows),	    cmocka_unit_test(test_pairs),
		cmocka_unit_test(test_tiles),	    cmocka_unit_test(test_tiles_of_long_rows),
		cmocka_unit_test(test_scalar_tile), cmocka_unit_test(test_scalar_gradients),
		cmocka_unit_test(test_rest),	    cmocka_unit_test(test_adam_by_hand),
		cmocka_unit_test(test_pick),	    cmocka_unit_test(test_steps_by_hand),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
