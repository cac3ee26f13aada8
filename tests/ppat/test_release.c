/* tests/ppat/test_release.c - the released map and noisy rows: what leaves, when, and how much
 * of it one row can change. */
#include "tests/test.h"

#include "base/mem.h"
#include "dp/lattice.h"
#include "net/msg.h"
#include "tests/ppat/pair.h"

/* Matrices of one kind of message, as they pass, row under row. */
struct tap {
	uint8_t kind;
	size_t cols, messages, n;
	float *at;
};

static void listen(void *ctx, int to, uint8_t *kind, struct buf *body)
{
	struct tap *t = ctx;
	struct net_body b;
	struct err e = { 0 };

	(void)to;
	if (*kind != t->kind)
		return;
	assert_int_equal(net_body_decode(&b, body->base, body->len, &e), 0);
	struct net_tensor z = net_get_tensor(&b.map, "z", 1 << 20, t->cols, &e);
	if (e.code == 0 && z.cols == t->cols) {
		t->at = mem_resize(t->at, t->n + z.rows * t->cols, sizeof(float));
		net_get_matrix(&b.map, "z", t->at + t->n, z.rows, z.cols, &e);
		t->n += z.rows * t->cols;
		t->messages++;
	}
	net_body_release(&b);
}

/* y = x under a rotation; of length 1 when the config says so. */
static void plant(struct pair *p)
{
	size_t n = p->cfg.slots, d = p->cfg.host_dim;
	float *q = mem_array(d * d, sizeof(float));
	struct rng r;

	rng_seed(&r, 31);
	assert_int_equal(nn_haar(q, d, driver_draw(&r), NULL), 0);
	p->x = mem_array(n * d, sizeof(float));
	p->y = mem_array(n * d, sizeof(float));
	for (size_t i = 0; i < n * d; i++)
		p->x[i] = (float)rng_normal(&r);
	nn_apply(p->y, p->x, q, n, d, d);
	free(q);
}

static void start(struct pair *p, enum ppat_translator t, uint32_t n, uint32_t d, double z)
{
	pair_init(p, t, 5);
	p->cfg.slots = n;
	p->cfg.client_dim = p->cfg.host_dim = d;
	p->cfg.multiplier = z;
	p->cfg.scale = PPAT_SCALE_UNIT;
}

static double mean_agreement(const struct pair *p)
{
	double sum = 0;

	for (size_t i = 0; i < p->h.n; i++)
		sum += (double)p->h.agreement[i] / (double)p->h.n;
	return sum;
}

/* ---- the map ---- */

static void test_map_is_found(void **state)
{
	struct pair p;

	(void)state;
	start(&p, PPAT_MAP, 3000, 8, 1.6);
	plant(&p);
	pair_run(&p);
	assert_true(p.d.both_over);
	assert_int_equal(p.host->ops->status(p.host, NULL), 0);
	assert_true(mean_agreement(&p) > 0.98);
	assert_int_equal(p.d.charges, 1);
	assert_int_equal(p.d.labels, 1);
	assert_int_equal(p.h.labels_drawn, 1);
	assert_int_equal(p.h.labels_charged, 1);
	assert_int_equal(p.c.labels_drawn, 1);
	assert_memory_equal(p.h.transcript, p.c.transcript, 32);
	pair_release(&p);
}

/* With next to no noise it is Procrustes on rows of length 1, other dimensions included. */
static void test_map_without_noise(void **state)
{
	static const uint32_t dims[][2] = { { 12, 12 }, { 8, 12 }, { 12, 8 }, { 1, 1 } };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		struct pair map, plain;
		double agreement[2] = { 0, 0 };

		for (int k = 0; k < 2; k++) {
			struct pair *p = k ? &plain : &map;

			start(p, k ? PPAT_PROCRUSTES : PPAT_MAP, 400, 1, k ? 0 : 0.01);
			p->cfg.client_dim = dims[i][0];
			p->cfg.host_dim = dims[i][1];
			pair_rows(p, 2000);
			pair_run(p);
			assert_int_equal(p->host->ops->status(p->host, NULL), 0);
			agreement[k] = mean_agreement(p);
		}
		assert_near(agreement[0], agreement[1], 0, 0.003);
		pair_release(&map);
		pair_release(&plain);
	}
}

/* A map of 300 x 300 floats needs two messages, and rows both ways their own. */
static void test_map_in_parts(void **state)
{
	struct pair p;
	struct tap t = { .kind = PPAT_MSG_MAP, .cols = 300 };

	(void)state;
	start(&p, PPAT_MAP, 400, 300, 0.01);
	plant(&p);
	p.d.mutate = listen;
	p.d.ctx = &t;
	pair_run(&p);
	assert_int_equal(p.host->ops->status(p.host, NULL), 0);
	assert_int_equal(t.messages, 2);
	assert_int_equal(t.n, 300 * 300);
	assert_memory_equal(p.h.transcript, p.c.transcript, 32);
	free(t.at);
	pair_release(&p);
}

/* Refused: nothing computed from Y has left but constants. */
static void test_refused_map_does_not_leave(void **state)
{
	struct pair p;
	struct err e;
	struct tap t = { .kind = PPAT_MSG_MAP, .cols = 8 };

	(void)state;
	start(&p, PPAT_MAP, 100, 8, 1.6);
	plant(&p);
	p.d.mutate = listen;
	p.d.ctx = &t;
	p.d.label_cap = p.d.labels = 7;
	pair_run(&p);
	assert_int_equal(p.host->ops->status(p.host, &e), ERR_BUDGET);
	assert_non_null(strstr(e.text, "budget exhausted"));
	assert_int_equal(p.h.labels_drawn, 0);
	assert_true(p.h.refused);
	assert_int_equal(t.messages, 0);
	assert_null(p.h.rows);
	pair_release(&p);
}

/* The map as the client gets it, in whole numbers. */
static double *released(uint32_t n, uint32_t d, double z, const float *y)
{
	struct pair p;
	struct tap t = { .kind = PPAT_MSG_MAP, .cols = d };
	double k = dp_lattice_radius_product(z), *m = mem_array((size_t)d * d, sizeof(*m));

	start(&p, PPAT_MAP, n, d, z);
	plant(&p);
	memcpy(p.y, y, (size_t)n * d * sizeof(float));
	p.d.mutate = listen;
	p.d.ctx = &t;
	pair_run(&p);
	assert_int_equal(t.n, (size_t)d * d);
	for (size_t i = 0; i < t.n; i++)
		m[i] = (double)t.at[i] * n * k * k;
	free(t.at);
	pair_release(&p);
	return m;
}

/* The noise is the same stream, so what a replaced row changes is seen without it. */
static void test_one_row_moves_the_map_within_its_bound(void **state)
{
	enum { N = 20, D = 6 };
	double z = 0.5, k = dp_lattice_radius_product(z), change = 0, *a, *b;
	float y[N * D] = { 0 };

	(void)state;
	y[0] = 5; /* a long row, then its opposite */
	a = released(N, D, z, y);
	y[0] = -5;
	b = released(N, D, z, y);
	for (size_t i = 0; i < (size_t)D * D; i++)
		change += (a[i] - b[i]) * (a[i] - b[i]);
	assert_true(sqrt(change) <= 2 * k * k * (1 + 1e-5));
	assert_true(sqrt(change) > 1.98 * k * k);
	free(a);
	free(b);
}

static double deviation(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i] / (double)n;
	return sqrt(sum);
}

static void test_map_has_its_noise(void **state)
{
	enum { N = 10, D = 64 };
	static const float zero[N * D];
	double k = dp_lattice_radius_product(3), *m = released(N, D, 3, zero);

	(void)state;
	assert_near(deviation(m, (size_t)D * D), 3 * 2 * k * k, 4.5 / sqrt(2.0 * D * D), 0);
	for (size_t i = 0; i < D; i++) /* small ones are exact in a float */
		assert_near(m[i], round(m[i]), 6e-8, 1e-3);
	free(m);
}

/* ---- noisy rows ---- */

static double *noisy_rows(uint32_t n, uint32_t d, double z, const float *x, struct pair *p)
{
	struct tap t = { .kind = PPAT_MSG_ROWS, .cols = d };
	struct dp_lattice l;
	double *rows = mem_array((size_t)n * d, sizeof(*rows));

	start(p, PPAT_PROCRUSTES, n, d, z);
	plant(p);
	memcpy(p->x, x, (size_t)n * d * sizeof(float));
	p->cfg.scale = PPAT_SCALE_NONE;
	p->cfg.clip = 2;
	p->d.mutate = listen;
	p->d.ctx = &t;
	pair_run(p);
	assert_int_equal(p->host->ops->status(p->host, NULL), 0);
	assert_int_equal(t.n, (size_t)n * d);
	dp_lattice_init(&l, d, 2, DP_LATTICE_RADIUS);
	for (size_t i = 0; i < t.n; i++)
		rows[i] = (double)t.at[i] / l.step;
	free(t.at);
	return rows;
}

/* The client's own account pays, before a row leaves. */
static void test_noisy_rows_are_charged(void **state)
{
	enum { N = 50, D = 64 };
	static const float zero[N * D];
	struct pair p;
	double *rows = noisy_rows(N, D, 1.5, zero, &p);

	(void)state;
	assert_int_equal(p.d.charges, 1);
	assert_int_equal(p.c.labels_drawn, 1);
	assert_int_equal(p.c.labels_charged, 1);
	assert_int_equal(p.h.labels_drawn, 1);
	assert_int_equal(p.h.labels_charged, 0);
	assert_memory_equal(p.h.transcript, p.c.transcript, 32);
	assert_near(deviation(rows, (size_t)N * D), 1.5 * 2 * DP_LATTICE_RADIUS,
		    4.5 / sqrt(2.0 * N * D), 0);
	for (size_t i = 0; i < (size_t)N * D; i++) /* whole numbers */
		assert_near(rows[i], round(rows[i]), 0, 0.05);
	/* what the host makes of them is no longer than a row can be */
	for (size_t i = 0; i < N; i++) {
		double squares = 0;

		for (size_t j = 0; j < D; j++)
			squares += pow((double)p.h.rows[i * D + j], 2);
		assert_true(squares <= 4 * 1.0001);
	}
	free(rows);
	pair_release(&p);
}

static void test_one_row_moves_the_rows_within_their_bound(void **state)
{
	enum { N = 12, D = 5 };
	float x[N * D] = { 0 };
	struct pair p;
	double *a, *b, change = 0, others = 0;

	(void)state;
	x[D] = 7;
	a = noisy_rows(N, D, 0.5, x, &p);
	pair_release(&p);
	x[D] = -7;
	b = noisy_rows(N, D, 0.5, x, &p);
	pair_release(&p);
	for (size_t i = 0; i < (size_t)N * D; i++)
		*(i / D == 1 ? &change : &others) += (a[i] - b[i]) * (a[i] - b[i]);
	assert_true(others == 0);
	assert_true(sqrt(change) <= 2.0 * DP_LATTICE_RADIUS * (1 + 1e-5));
	assert_true(sqrt(change) > 1.99 * DP_LATTICE_RADIUS);
	free(a);
	free(b);
}

static void test_refused_rows_do_not_leave(void **state)
{
	struct pair p;
	struct err e;

	(void)state;
	start(&p, PPAT_PROCRUSTES, 100, 8, 1.6);
	plant(&p);
	p.d.label_cap = p.d.labels = 7;
	pair_run(&p);
	assert_int_equal(p.client->ops->status(p.client, &e), ERR_BUDGET);
	assert_non_null(strstr(e.text, "budget exhausted"));
	assert_int_equal(p.c.labels_drawn, 0);
	assert_int_equal(p.d.messages[0], 0);
	pair_release(&p);
}

static void test_map_survives_noisy_rows(void **state)
{
	struct pair p;

	(void)state;
	start(&p, PPAT_PROCRUSTES, 3000, 4, 0.3);
	plant(&p);
	pair_run(&p);
	assert_int_equal(p.host->ops->status(p.host, NULL), 0);
	assert_true(mean_agreement(&p) > 0.5);
	pair_release(&p);
}

/* ---- what is not agreed to ---- */

static void refused(struct ppat_config c, const char *word)
{
	struct err e = { 0 };

	assert_int_equal(ppat_config_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, word));
}

static void test_config_check(void **state)
{
	struct ppat_config map, rows, c;

	(void)state;
	ppat_config_defaults(&map, PPAT_MAP, 10, 4, 4);
	ppat_config_defaults(&rows, PPAT_PROCRUSTES, 10, 4, 4);
	rows.multiplier = 1;
	assert_int_equal(ppat_config_check(&map, NULL), 0);
	assert_int_equal(ppat_config_check(&rows, NULL), 0);
	c = map, c.multiplier = 0, refused(c, "multiplier");
	c = map, c.multiplier = NAN, refused(c, "multiplier");
	c = map, c.multiplier = 1e-3, refused(c, "multiplier");
	c = map, c.multiplier = 2000, refused(c, "multiplier");
	c = map, c.scale = PPAT_SCALE_RMS, refused(c, "rms");
	c = map, c.max_labels = 1, refused(c, "max_labels");
	c = rows, c.center = 1, refused(c, "center");
	c = rows, c.clip = 0, refused(c, "clip");
	c = rows, c.clip = 100, c.multiplier = 200, refused(c, "product");
	c = rows, c.max_virtual = 1, refused(c, "virtual");
	ppat_config_defaults(&c, PPAT_PPAT, 10, 4, 4);
	c.multiplier = 1;
	refused(c, "multiplier");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_map_is_found),
		cmocka_unit_test(test_map_without_noise),
		cmocka_unit_test(test_map_in_parts),
		cmocka_unit_test(test_refused_map_does_not_leave),
		cmocka_unit_test(test_one_row_moves_the_map_within_its_bound),
		cmocka_unit_test(test_map_has_its_noise),
		cmocka_unit_test(test_noisy_rows_are_charged),
		cmocka_unit_test(test_one_row_moves_the_rows_within_their_bound),
		cmocka_unit_test(test_refused_rows_do_not_leave),
		cmocka_unit_test(test_map_survives_noisy_rows),
		cmocka_unit_test(test_config_check),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
