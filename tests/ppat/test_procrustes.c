#include "tests/test.h"

#include "base/mem.h"
#include "ppat/virtual.h"
#include "tests/ppat/pair.h"

/* y = x R' with R from the same Haar source; R drops or adds columns where the
 * dimensions differ (then x lies in a subspace, so that y can be had at all). */
static void plant(struct pair *p, size_t n, size_t dx, size_t dy)
{
	struct rng r;
	rng_seed(&r, 31);
	size_t big = dx > dy ? dx : dy, small = dx < dy ? dx : dy;
	float *q1 = mem_array(big * big, sizeof(float)), *q2 = mem_array(big * big, sizeof(float));
	float *u = mem_array(n * big, sizeof(float)), *full = mem_array(n * big, sizeof(float));
	assert_int_equal(nn_haar(q1, dx, driver_draw(&r), NULL), 0);
	assert_int_equal(nn_haar(q2, dy, driver_draw(&r), NULL), 0);
	for (size_t i = 0; i < n; i++)
		for (size_t j = 0; j < small; j++)
			u[i * big + j] = (float)rng_normal(&r);
	p->x = mem_array(n * dx, sizeof(float));
	p->y = mem_array(n * dy, sizeof(float));
	for (size_t i = 0; i < n; i++)
		memcpy(full + i * dx, u + i * big, dx * sizeof(float));
	nn_apply(p->x, full, q1, n, dx, dx);
	for (size_t i = 0; i < n; i++)
		memcpy(full + i * dy, u + i * big, dy * sizeof(float));
	nn_apply(p->y, full, q2, n, dy, dy);
	free(q1);
	free(q2);
	free(u);
	free(full);
}

static void start(struct pair *p, uint32_t n, uint32_t dx, uint32_t dy)
{
	pair_init(p, PPAT_PROCRUSTES, 5);
	p->cfg.slots = n;
	p->cfg.client_dim = dx;
	p->cfg.host_dim = dy;
	plant(p, n, dx, dy);
}

static void check_recovered(struct pair *p)
{
	size_t count = (size_t)p->cfg.slots * p->cfg.host_dim;
	assert_true(p->d.both_over);
	assert_int_equal(p->host->ops->status(p->host, NULL), 0);
	for (size_t i = 0; i < count; i++)
		assert_near((double)p->h.rows[i], (double)p->y[i], 0, 1e-4);
	for (size_t i = 0; i < p->cfg.slots; i++)
		assert_near((double)p->h.agreement[i], 1.0, 1e-4, 0);
	assert_int_equal(p->h.labels_drawn, 0);
	assert_int_equal(p->d.charges, 0);
}

static void test_recovers_a_rotation(void **state)
{
	(void)state;
	const uint32_t dims[][2] = { { 16, 16 }, { 12, 20 }, { 20, 12 }, { 1, 1 } };
	for (size_t i = 0; i < 4; i++) {
		struct pair p;
		start(&p, 200, dims[i][0], dims[i][1]);
		pair_run(&p);
		check_recovered(&p);
		pair_release(&p);
	}
}

/* 70,000 rows of 8 floats need several messages. */
static void test_many_chunks(void **state)
{
	(void)state;
	struct pair p;
	start(&p, 20000, 8, 8);
	pair_run(&p);
	assert_int_equal(p.d.messages[0], 3);
	assert_int_equal(p.d.messages[1], 3);
	check_recovered(&p);
	pair_release(&p);
}

/* A client whose rows are larger and stand elsewhere is brought to the host's. */
static void test_scale_and_center(void **state)
{
	(void)state;
	struct pair p;
	start(&p, 300, 10, 10);
	p.cfg.scale = PPAT_SCALE_RMS;
	p.cfg.center = 1;
	for (size_t i = 0; i < 300 * 10; i++)
		p.x[i] = 7.0f * p.x[i] + (float)(i % 10);
	pair_run(&p);
	check_recovered(&p);
	pair_release(&p);
}

static void test_unit_rows(void **state)
{
	(void)state;
	struct pair p;
	start(&p, 50, 10, 10);
	p.cfg.scale = PPAT_SCALE_UNIT;
	pair_run(&p);
	for (size_t i = 0; i < 50; i++)
		assert_near((double)p.h.agreement[i], 1.0, 1e-4, 0);
	pair_release(&p);
}

/* What travels is X under a rotation that is new each time. */
static void test_rotation_is_secret_and_fresh(void **state)
{
	(void)state;
	struct pair p[2];
	for (size_t i = 0; i < 2; i++) {
		start(&p[i], 60, 12, 12);
		rng_seed(&p[i].client_rng, 900 + i);
		pair_run(&p[i]);
	}
	assert_memory_not_equal(p[0].c.map, p[1].c.map, 12 * 12 * sizeof(float));
	assert_memory_not_equal(p[0].d.received[0].base, p[1].d.received[0].base,
				p[0].d.received[0].len);
	pair_release(&p[0]);
	pair_release(&p[1]);
}

/* ---- unrotated (methods 3.8) ---- */

static void no_draw(void *ctx, void *out, size_t n)
{
	(void)ctx, (void)out, (void)n;
	fail_msg("a client that rotates nothing draws nothing");
}

/* Y is R X; or X with noise, in one frame. */
static void start_unrotated(struct pair *p, uint32_t n, uint32_t d, double noise)
{
	struct rng r;
	start(p, n, d, d);
	p->cfg.unrotated = true;
	p->client_env.draw.fn = no_draw;
	if (noise < 0)
		return;
	rng_seed(&r, 5);
	for (size_t i = 0; i < (size_t)n * d; i++)
		p->y[i] = p->x[i] + (float)(noise * rng_normal(&r));
}

static void test_unrotated_rows_travel_as_they_are(void **state)
{
	struct pair p;
	(void)state;
	start_unrotated(&p, 200, 8, -1);
	pair_run(&p);
	check_recovered(&p);
	assert_false(p.h.as_received);
	assert_non_null(memmem(p.d.received[0].base, p.d.received[0].len, p.x,
			       (size_t)200 * 8 * sizeof(float)));
	pair_release(&p);
}

static void test_one_frame_needs_no_map(void **state)
{
	struct pair p;
	(void)state;
	start_unrotated(&p, 200, 8, 0.5);
	p.host_env.same_frame = true;
	pair_run(&p);
	assert_true(p.d.both_over && p.h.as_received);
	assert_memory_equal(p.h.rows, p.x, (size_t)200 * 8 * sizeof(float));
	pair_release(&p);
}

/* In 16 bits a value they take half as many messages and are the same within a 65,534th of each
 * row's largest value. */
static void test_short_rows(void **state)
{
	(void)state;
	struct pair p, q;
	start_unrotated(&p, 20000, 8, 0.1);
	p.host_env.same_frame = true;
	pair_run(&p);
	start_unrotated(&q, 20000, 8, 0.1);
	q.host_env.same_frame = true;
	q.cfg.short_rows = true;
	pair_run(&q);
	assert_true(q.d.both_over && q.host->ops->status(q.host, NULL) == 0);
	assert_true(q.d.messages[0] < p.d.messages[0]);
	assert_in_range(q.d.received[0].len, 20000 * 20, p.d.received[0].len * 5 / 8 + 100);
	assert_true(p.h.as_received && q.h.as_received);
	for (size_t i = 0; i < 20000; i++) {
		float most = 0;
		for (size_t j = 0; j < 8; j++)
			most = fmaxf(most, fabsf(p.h.rows[i * 8 + j]));
		for (size_t j = 0; j < 8; j++)
			assert_near((double)q.h.rows[i * 8 + j], (double)p.h.rows[i * 8 + j], 0,
				    (double)most / 65534 * 1.01);
	}
	pair_release(&p);
	pair_release(&q);
	start(&p, 200, 12, 20); /* rotated, and of another width */
	p.cfg.short_rows = true;
	pair_run(&p);
	check_recovered(&p);
	pair_release(&p);
}

/* As few rows as floats: a map fits them whatever they are, and that must not count. */
static void test_few_rows_of_one_frame(void **state)
{
	struct pair p;
	(void)state;
	start_unrotated(&p, 20, 16, 1.5);
	p.host_env.same_frame = true;
	pair_run(&p);
	assert_true(p.d.both_over && p.h.as_received);
	pair_release(&p);
}

/* Whatever the sides say: rows that are not where one frame has them go through a map. */
static void test_one_frame_by_name_alone(void **state)
{
	struct pair p;
	(void)state;
	start_unrotated(&p, 200, 8, -1);
	p.host_env.same_frame = true;
	pair_run(&p);
	check_recovered(&p);
	assert_false(p.h.as_received);
	pair_release(&p);
}

/* Rows that have nothing to do with each other agree little: their weight in
 * `weighted` is small. */
static void test_agreement_tells_strangers(void **state)
{
	(void)state;
	struct pair p;
	start(&p, 400, 8, 8);
	struct rng r;
	rng_seed(&r, 77);
	for (size_t i = 0; i < 200 * 8; i++)
		p.y[i] = (float)rng_normal(&r);
	pair_run(&p);
	double strangers = 0, friends = 0;
	for (size_t i = 0; i < 200; i++) {
		strangers += (double)p.h.agreement[i] / 200;
		friends += (double)p.h.agreement[200 + i] / 200;
	}
	assert_true(friends > 0.9 && strangers < 0.4);
	pair_release(&p);
}

/* Virtual rows pass through the same map as the aligned ones. */
static void test_virtual_rows_are_mapped(void **state)
{
	(void)state;
	struct pair p;
	start(&p, 100, 8, 8);
	p.cfg.max_virtual = 20;
	struct graph_triple triples[2] = { { 3, 102, 100 }, { 101, 5, 9 } };
	struct ppat_virtual v = {
		.slots = 100, .n_ent = 2, .n_rel = 3, .dim = 8, .triples = triples, .n_triples = 2
	};
	float rows[5 * 8];
	memcpy(rows, p.x + 40 * 8, sizeof(rows)); /* as if they were slots 40..44 */
	v.ent = rows;
	v.rel = rows + 2 * 8;
	p.client_env.neighbours = &v;
	pair_run(&p);
	check_recovered(&p);
	const struct ppat_virtual *got = p.h.neighbours;
	assert_non_null(got);
	assert_int_equal(got->n_ent, 2);
	assert_int_equal(got->n_rel, 3);
	assert_memory_equal(got->triples, triples, sizeof(triples));
	for (size_t i = 0; i < 2 * 8; i++)
		assert_near((double)got->ent[i], (double)p.y[40 * 8 + i], 0, 1e-4);
	for (size_t i = 0; i < 3 * 8; i++)
		assert_near((double)got->rel[i], (double)p.y[42 * 8 + i], 0, 1e-4);
	assert_memory_equal(p.h.transcript, p.c.transcript, 32);
	pair_release(&p);
}

static void test_no_virtual_rows_to_give(void **state)
{
	(void)state;
	struct pair p;
	start(&p, 100, 8, 8);
	p.cfg.max_virtual = 20;
	pair_run(&p);
	check_recovered(&p);
	assert_int_equal(p.h.neighbours->n_ent, 0);
	assert_int_equal(p.h.neighbours->n_triples, 0);
	pair_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_recovers_a_rotation),
		cmocka_unit_test(test_many_chunks),
		cmocka_unit_test(test_scale_and_center),
		cmocka_unit_test(test_unit_rows),
		cmocka_unit_test(test_rotation_is_secret_and_fresh),
		cmocka_unit_test(test_unrotated_rows_travel_as_they_are),
		cmocka_unit_test(test_one_frame_needs_no_map),
		cmocka_unit_test(test_short_rows),
		cmocka_unit_test(test_few_rows_of_one_frame),
		cmocka_unit_test(test_one_frame_by_name_alone),
		cmocka_unit_test(test_agreement_tells_strangers),
		cmocka_unit_test(test_virtual_rows_are_mapped),
		cmocka_unit_test(test_no_virtual_rows_to_give),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
