#include "tests/test.h"

#include "base/rng.h"
#include "ppat/aggregate.h"
#include "ppat/session.h"

static struct ppat_config sample(void)
{
	struct ppat_config c;
	ppat_config_defaults(&c, PPAT_PPAT, 1000, 128, 64);
	c.noise = 0.125;
	c.aligned_share = 0.5;
	c.select_seed = 0x1122334455667788u;
	return c;
}

static void test_config_round_trip(void **state)
{
	(void)state;
	struct ppat_config c = sample(), d;
	struct buf a = { 0 }, b = { 0 };
	uint8_t h1[32], h2[32];
	ppat_config_encode(&c, &a);
	assert_int_equal(ppat_config_decode(&d, a.base, a.len, NULL), 0);
	ppat_config_encode(&d, &b);
	assert_int_equal(a.len, b.len);
	assert_memory_equal(a.base, b.base, a.len);
	assert_true(d.noise == 0.125 && d.select_seed == c.select_seed && d.client_dim == 128);
	ppat_config_hash(&c, h1);
	d.steps++;
	ppat_config_hash(&d, h2);
	assert_memory_not_equal(h1, h2, 32);
	buf_release(&a);
	buf_release(&b);
}

/* Who knows of no unrotated or short rows, or of no lasting share, refuses such terms by their
 * version; other terms are as ever. */
static void test_unrotated_has_its_version(void **state)
{
	struct ppat_config c, d;
	struct buf a, b;
	(void)state;
	ppat_config_defaults(&c, PPAT_PROCRUSTES, 10, 4, 4);
	buf_init(&a);
	buf_init(&b);
	ppat_config_encode(&c, &a);
	c.unrotated = true;
	ppat_config_encode(&c, &b);
	assert_int_equal(a.len, b.len);
	assert_int_equal(a.base[0], 3);
	assert_int_equal(b.base[0], 4);
	assert_memory_equal(a.base + 1, b.base + 1, a.len - 1);
	assert_int_equal(ppat_config_decode(&d, a.base, a.len, NULL), 0);
	assert_false(d.unrotated);
	assert_int_equal(ppat_config_decode(&d, b.base, b.len, NULL), 0);
	assert_true(d.unrotated && !d.lasting);
	buf_clear(&b);
	c.unrotated = false;
	c.lasting = true;
	ppat_config_encode(&c, &b);
	assert_int_equal(b.base[0], 5);
	assert_memory_equal(a.base + 1, b.base + 1, a.len - 1);
	assert_int_equal(ppat_config_decode(&d, b.base, b.len, NULL), 0);
	assert_true(d.lasting && !d.unrotated);
	b.base[0] = 6;
	assert_int_equal(ppat_config_decode(&d, b.base, b.len, NULL), 0);
	assert_true(d.lasting && d.unrotated && !d.short_rows);
	b.base[0] = 7;
	assert_int_equal(ppat_config_decode(&d, b.base, b.len, NULL), 0);
	assert_true(d.short_rows && !d.lasting && !d.unrotated);
	b.base[0] = 10;
	assert_int_equal(ppat_config_decode(&d, b.base, b.len, NULL), 0);
	assert_true(d.short_rows && d.lasting && d.unrotated);
	b.base[0] = 11;
	assert_int_equal(ppat_config_decode(&d, b.base, b.len, NULL), ERR_VERSION);
	b.base[0] = 2;
	assert_int_equal(ppat_config_decode(&d, b.base, b.len, NULL), ERR_VERSION);
	buf_release(&a);
	buf_release(&b);
}

/* Whatever decodes is a config that check() takes and that encodes to the same bytes. */
static void test_config_damage(void **state)
{
	(void)state;
	struct ppat_config c = sample(), d;
	struct buf a = { 0 };
	struct rng r;
	int taken = 0;
	rng_seed(&r, 1);
	ppat_config_encode(&c, &a);
	for (size_t n = 0; n < a.len; n++)
		assert_true(ppat_config_decode(&d, a.base, n, NULL) != 0);
	for (int i = 0; i < 5000; i++) {
		uint8_t bytes[256];
		memcpy(bytes, a.base, a.len);
		bytes[rng_below(&r, (uint32_t)a.len)] ^= (uint8_t)(1u << rng_below(&r, 8));
		if (ppat_config_decode(&d, bytes, a.len, NULL) != 0)
			continue;
		struct buf b = { 0 };
		assert_int_equal(ppat_config_check(&d, NULL), 0);
		ppat_config_encode(&d, &b);
		assert_memory_equal(b.base, bytes, a.len);
		buf_release(&b);
		taken++;
	}
	assert_true(taken > 100 && taken < 4900);
	buf_release(&a);
}

static void refused(struct ppat_config c, const char *word)
{
	struct err e = { 0 };
	assert_int_equal(ppat_config_check(&c, &e), ERR_USAGE);
	assert_non_null(strstr(e.text, word));
}

static void test_config_check(void **state)
{
	(void)state;
	struct ppat_config c = sample();
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	c.noise = NAN;
	refused(c, "noise");
	c = sample();
	c.scale = PPAT_SCALE_RMS;
	refused(c, "rms");
	c = sample();
	c.center = 1;
	refused(c, "center");
	c = sample();
	c.teachers = 0;
	refused(c, "teachers");
	c = sample();
	c.teachers = 1000;
	c.teacher_hidden = 1024;
	c.host_dim = 512;
	refused(c, "teachers");
	c = sample();
	c.reserve_labels = 31;
	refused(c, "reserve_labels");
	c = sample();
	c.aligned_share = 0;
	refused(c, "share");
	c = sample();
	c.generator_steps = 2;
	refused(c, "mode is paper");
	c = sample();
	c.pool = 64;
	refused(c, "mode is paper");
	ppat_config_defaults(&c, PPAT_PROCRUSTES, 10, 4, 4);
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	c.unrotated = true;
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	c.multiplier = 1;
	refused(c, "unrotated");
	c.multiplier = 0;
	c.host_dim = 5;
	refused(c, "unrotated");
	c.host_dim = 4;
	c.scale = PPAT_SCALE_UNIT;
	refused(c, "unrotated");
	ppat_config_defaults(&c, PPAT_MAP, 10, 4, 4);
	c.unrotated = true;
	refused(c, "unrotated");
	ppat_config_defaults(&c, PPAT_PROCRUSTES, 10, 4, 4);
	c.max_labels = 1;
	refused(c, "max_labels");
}

static void test_config_budget(void **state)
{
	(void)state;
	struct ppat_config c = sample();
	assert_int_equal(ppat_config_pool(&c), c.batch);
	ppat_config_budget(&c, 8 * c.batch, 20, 100, 20);
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	assert_int_equal(ppat_config_pool(&c), 8 * c.batch);
	c.pool = c.batch; /* 0 says that already: one encoding each */
	refused(c, "pool");
	c.pool = 1 + PPAT_CHUNK_MAX / 4 / c.host_dim;
	refused(c, "pool");
	ppat_config_budget(&c, 8 * c.batch, 20, 100, 20);
	c.student_steps = 0;
	refused(c, "student_steps");
	ppat_config_budget(&c, 8 * c.batch, 20, 100, 20);
	c.teacher_steps = PPAT_TEACHER_STEPS_MAX + 1;
	refused(c, "teacher_steps");
	ppat_config_budget(&c, 8 * c.batch, 20, 100, 20);
	c.mode = 2;
	refused(c, "mode");
	ppat_config_defaults(&c, PPAT_PPAT, 100, 2000, 2000); /* 32 rows fit, not more */
	ppat_config_budget(&c, 8 * c.batch, 20, 100, 20);
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	assert_int_equal(c.pool, 0);
}

/* What a host may ask of a client between two batches of labels. */
static void test_config_work(void **state)
{
	(void)state;
	struct ppat_config c = sample();
	ppat_config_defaults(&c, PPAT_PPAT, 100, 128, 128);
	c.student_hidden = 256;
	ppat_config_budget(&c, 8 * c.batch, 20, PPAT_STUDENT_STEPS_MAX, PPAT_GENERATOR_STEPS_MAX);
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	c.student_hidden = PPAT_HIDDEN_MAX;
	c.batch = 256;
	c.pool = 0;
	refused(c, "ppat.student_steps (10000)");
	refused(c, "ppat.hidden (1024) or ppat.batch (256)");
	c.student = PPAT_STUDENT_HOST; /* who decides how long it works itself */
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	ppat_config_defaults(&c, PPAT_PPAT, 100, PPAT_DIM_MAX, PPAT_DIM_MAX);
	c.batch = 16;
	ppat_config_budget(&c, 0, 20, 100, 1);
	assert_int_equal(ppat_config_check(&c, NULL), 0);
	c.generator_steps = PPAT_GENERATOR_STEPS_MAX; /* each makes W orthogonal */
	refused(c, "ppat.generator_steps (1000)");
}

static void test_config_large(void **state)
{
	(void)state;
	struct ppat_config c = sample();
	assert_false(ppat_config_large(&c, 499));
	assert_int_equal(c.teachers, 4);
	assert_true(ppat_config_large(&c, 5000));
	assert_int_equal(c.teachers, 100);
	assert_int_equal(c.mechanism, PPAT_GAUSSIAN);
	assert_near(c.noise, 50.0, 1e-12, 0);
	assert_true(ppat_config_large(&c, 1000000));
	assert_int_equal(c.teachers, 250);
	assert_int_equal(ppat_config_check(&c, NULL), 0);
}

static void test_select(void **state)
{
	(void)state;
	struct ppat_config c = sample();
	static uint32_t a[1000], b[1000];
	static uint8_t tags[1000];
	c.what = PPAT_BOTH;
	assert_int_equal(ppat_select(&c, NULL, NULL, a), 500);
	for (size_t i = 1; i < 500; i++)
		assert_true(a[i - 1] < a[i]);
	assert_true(a[499] < 1000);
	c.select_seed++;
	assert_int_equal(ppat_select(&c, NULL, NULL, b), 500);
	assert_memory_not_equal(a, b, sizeof(*a) * 500);
	for (size_t i = 0; i < 1000; i++)
		tags[i] = i < 100 ? 'r' : 'e';
	c.what = PPAT_RELATIONS;
	c.aligned_share = 1;
	assert_int_equal(ppat_select(&c, tags, NULL, a), 100);
	assert_int_equal(a[99], 99);
	c.what = PPAT_ENTITIES;
	assert_int_equal(ppat_select(&c, tags, NULL, a), 900);
	assert_int_equal(a[0], 100);
	c.aligned_share = 1e-9;
	assert_int_equal(ppat_select(&c, tags, NULL, a), 1);
}

/* A lasting share is the same things in each session, in whatever slots they are, and when there
 * are more of them nearly so. */
static void test_select_lasting(void **state)
{
	enum { N = 1000, LATER = 1100 };
	static uint64_t places[LATER], shuffled[LATER];
	static uint32_t a[LATER], b[LATER];
	static bool was[LATER];
	struct ppat_config c = sample();
	size_t n, kept = 0;
	struct rng r;

	(void)state;
	rng_seed(&r, 2);
	for (size_t i = 0; i < LATER; i++)
		places[i] = rng_u64(&r);
	for (size_t i = 0; i < LATER; i++) /* thing i is in slot 7 i */
		shuffled[i * 7 % LATER] = places[i];
	c.lasting = true;
	c.aligned_share = 0.2;
	assert_int_equal(ppat_select(&c, NULL, places, a), 200);
	c.select_seed++;
	assert_int_equal(ppat_select(&c, NULL, places, b), 200);
	assert_memory_equal(a, b, 200 * sizeof(*a));
	for (size_t i = 0; i < 200; i++)
		was[a[i]] = true;
	c.slots = LATER;
	n = ppat_select(&c, NULL, shuffled, b);
	assert_int_equal(n, 220);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < LATER; k++)
			kept += k * 7 % LATER == b[i] && was[k];
	assert_true(kept >= 180);
}

static void test_aggregate(void **state)
{
	(void)state;
	const float x[2] = { 3, 5 };
	float y[2] = { 1, 1 };
	ppat_combine_row(y, x, 2, PPAT_AVERAGE, 0, 0, HUGE_VAL);
	assert_true(y[0] == 2 && y[1] == 3);
	ppat_combine_row(y, x, 2, PPAT_REPLACE, 0, 0, HUGE_VAL);
	assert_memory_equal(x, y, sizeof(x));
	float w[2] = { 1, 1 };
	ppat_combine_row(w, x, 2, PPAT_WEIGHTED, 0.5f, 0, HUGE_VAL);
	assert_true(w[0] == 1.5f && w[1] == 2.0f); /* a quarter of the way */
	ppat_combine_row(w, x, 2, PPAT_WEIGHTED, -1, 0, HUGE_VAL);
	ppat_combine_row(w, x, 2, PPAT_WEIGHTED, NAN, 0, HUGE_VAL);
	assert_true(w[0] == 1.5f && w[1] == 2.0f); /* against us: left alone */
}

/* However many partners: the mean of all rows, own included. */
static void test_aggregate_mean(void **state)
{
	(void)state;
	float y[1] = { 1 };
	for (unsigned k = 0; k < 3; k++)
		ppat_combine_row(y, (float[]){ 5 + (float)k }, 1, PPAT_MEAN, 0, k, HUGE_VAL);
	assert_near((double)y[0], (1 + 5 + 6 + 7) / 4.0, 1e-6, 0);
}

/* A row further away than its bound counts as the one on the way at that distance. */
static void test_aggregate_bound(void **state)
{
	(void)state;
	float y[2] = { 3, 4 }, near[2] = { 3, 5 };
	const float far[2] = { -57, -76 }; /* -19 times y: 100 away */

	assert_near(ppat_row_bound(y, 2, 1), 10, 1e-9, 0);
	assert_near(ppat_row_bound(y, 2, 8), 16, 1e-9, 0);
	ppat_combine_row(y, far, 2, PPAT_REPLACE, 0, 0, ppat_row_bound(y, 2, 1));
	assert_near((double)y[0], -3, 1e-6, 0);
	assert_near((double)y[1], -4, 1e-6, 0);
	ppat_combine_row(near, (float[]){ 3, 4 }, 2, PPAT_REPLACE, 0, 0, 1);
	assert_true(near[0] == 3 && near[1] == 4); /* within */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_config_round_trip),
		cmocka_unit_test(test_config_damage),
		cmocka_unit_test(test_unrotated_has_its_version),
		cmocka_unit_test(test_config_check),
		cmocka_unit_test(test_config_budget),
		cmocka_unit_test(test_config_work),
		cmocka_unit_test(test_config_large),
		cmocka_unit_test(test_select),
		cmocka_unit_test(test_select_lasting),
		cmocka_unit_test(test_aggregate),
		cmocka_unit_test(test_aggregate_mean),
		cmocka_unit_test(test_aggregate_bound),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
