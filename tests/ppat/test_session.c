#include "tests/test.h"

#include "base/mem.h"
#include "ppat/teachers.h"
#include "tests/ppat/pair.h"

static void start(struct pair *p, enum ppat_translator t, enum ppat_placement student)
{
	pair_init(p, t, 5);
	p->cfg.student = student;
	pair_rows(p, 2000);
}

static void test_runs_to_the_end(void **state)
{
	(void)state;
	struct pair p;
	start(&p, PPAT_PPAT, PPAT_STUDENT_CLIENT);
	pair_run(&p);
	struct err e;
	assert_true(p.d.both_over);
	assert_int_equal(p.host->ops->status(p.host, &e), 0);
	assert_int_equal(p.client->ops->status(p.client, &e), 0);
	assert_int_equal(p.h.labels_drawn, 40);
	assert_int_equal(p.h.labels_charged, 40);
	assert_int_equal(p.c.labels_drawn, 40); /* what it has seen, to hold a settle against */
	assert_int_equal(p.d.labels, 40);
	assert_int_equal(p.d.charges, 3); /* blocks of 16, 16, 8 */
	assert_int_equal(p.h.n, 80);
	assert_non_null(p.h.rows);
	assert_null(p.c.rows);
	assert_true(isnan(p.h.mean_cosine)); /* not asked for: not computed */
	pair_release(&p);
}

/* 1 bit a row and an envelope: far less than a gradient. */
static void test_label_wire_is_small(void **state)
{
	(void)state;
	struct pair p;
	start(&p, PPAT_PPAT, PPAT_STUDENT_CLIENT);
	pair_run(&p);
	assert_true(p.h.bytes_sent <= 5 * 8 + 8);
	pair_release(&p);
}

static void test_both_agree(void **state)
{
	(void)state;
	for (int t = PPAT_PPAT; t <= PPAT_MAP; t++) {
		struct pair p;
		start(&p, (enum ppat_translator)t, PPAT_STUDENT_HOST);
		pair_run(&p);
		assert_memory_equal(p.h.transcript, p.c.transcript, 32);
		assert_true(p.h.bytes_sent == p.c.bytes_received);
		assert_true(p.h.bytes_received == p.c.bytes_sent);
		assert_int_equal(p.h.steps, p.c.steps);
		assert_int_equal(p.h.labels_drawn, p.c.labels_drawn);
		pair_release(&p);
	}
}

/* Where the student lives changes the wire, not one bit of W or X-hat. */
static void check_placements(enum ppat_loss loss, uint32_t client_dim)
{
	struct pair p[2];
	for (size_t i = 0; i < 2; i++) {
		pair_init(&p[i], PPAT_PPAT, 5);
		p[i].cfg.student = i == 0 ? PPAT_STUDENT_CLIENT : PPAT_STUDENT_HOST;
		p[i].cfg.loss = loss;
		p[i].cfg.client_dim = client_dim;
		p[i].cfg.steps = 30;
		p[i].cfg.max_labels = 240;
		pair_rows(&p[i], 2000);
		pair_run(&p[i]);
		assert_true(p[i].d.both_over);
	}
	size_t bytes = (size_t)8 * client_dim * sizeof(float);
	assert_memory_equal(p[0].c.map, p[1].c.map, bytes);
	assert_memory_equal(p[0].h.rows, p[1].h.rows, 80 * 8 * sizeof(float));
	assert_true(p[0].c.map[1] != 0.0f); /* W has moved from the identity */
	assert_memory_not_equal(p[0].h.transcript, p[1].h.transcript, 32);
	pair_release(&p[0]);
	pair_release(&p[1]);
}

static void test_placements_are_equal(void **state)
{
	(void)state;
	check_placements(PPAT_SATURATING, 8);
	check_placements(PPAT_NON_SATURATING, 8);
	check_placements(PPAT_SATURATING, 6);
}

/* Refused in the middle: the client keeps the W so far and the rows follow. */
static void check_refused(uint32_t cap, uint32_t drawn)
{
	struct pair p;
	start(&p, PPAT_PPAT, PPAT_STUDENT_CLIENT);
	p.d.label_cap = cap;
	pair_run(&p);
	assert_true(p.d.both_over);
	assert_int_equal(p.host->ops->status(p.host, NULL), 0);
	assert_true(p.h.refused && p.c.refused);
	assert_int_equal(p.h.labels_drawn, drawn);
	assert_int_equal(p.c.labels_drawn, drawn);
	assert_int_equal(p.c.steps, drawn / 8);
	assert_non_null(p.h.rows);
	assert_memory_equal(p.h.transcript, p.c.transcript, 32);
	pair_release(&p);
}

static void test_refused_charge(void **state)
{
	(void)state;
	check_refused(1, 0);
	check_refused(16, 16);
	check_refused(39, 32);
}

/* The session's allowance ends the training where both can foresee it. */
static void test_allowance(void **state)
{
	(void)state;
	struct pair p;
	start(&p, PPAT_PPAT, PPAT_STUDENT_CLIENT);
	p.cfg.max_labels = 31;
	p.cfg.reserve_labels = 1024;
	pair_run(&p);
	assert_true(p.d.both_over);
	assert_int_equal(p.h.labels_drawn, 24);
	assert_int_equal(p.h.labels_charged, 24);
	assert_int_equal(p.d.charges, 1);
	assert_false(p.h.refused);
	pair_release(&p);
}

/* Every grant fails once (Procrustes for the second time: with noisy rows): no crash, the failing
 * side says so, no label beyond what the ledger granted, and the same words whatever Y and the
 * seeds are. */
static size_t fail_one(enum ppat_translator t, enum ppat_placement student, size_t k)
{
	struct err e[2][2];
	size_t reached = 0;
	for (uint64_t v = 0; v < 2; v++) {
		struct pair p;
		pair_init(&p, t, 5 + 100 * v);
		p.cfg.student = student;
		p.cfg.steps = t == PPAT_PPAT ? 3 : 0;
		p.cfg.max_labels = p.cfg.steps * p.cfg.batch;
		if (t == PPAT_PROCRUSTES && student == PPAT_STUDENT_HOST)
			p.cfg.multiplier = 1;
		pair_rows(&p, 2000 + v);
		p.d.fail_grant = k;
		p.d.fail_status = ERR_STORE;
		pair_run(&p);
		int a = p.host->ops->status(p.host, &e[v][0]);
		int b = p.client->ops->status(p.client, &e[v][1]);
		bool client = ppat_spends(&p.cfg, PPAT_CLIENT);
		const struct ppat_result *spender = client ? &p.c : &p.h;
		assert_true(spender->labels_drawn <= spender->labels_charged);
		assert_int_equal(spender->labels_charged, p.d.labels);
		if (p.d.failed) {
			assert_true((a == ERR_STORE) != (b == ERR_STORE));
			assert_true(p.h.rows == NULL || a == 0);
		}
		reached += p.d.failed;
		pair_release(&p);
	}
	assert_string_equal(e[0][0].text, e[1][0].text);
	assert_string_equal(e[0][1].text, e[1][1].text);
	return reached;
}

static void test_every_grant_fails_once(void **state)
{
	(void)state;
	for (int t = PPAT_PPAT; t <= PPAT_PROCRUSTES; t++)
		for (int student = 0; student < 2; student++) {
			size_t k = 1;
			while (fail_one((enum ppat_translator)t, (enum ppat_placement)student, k) ==
			       2)
				k++;
			assert_true(k > (t == PPAT_PPAT ? 20 : 4));
		}
}

/* ---- teachers ---- */

static void test_partition(void **state)
{
	(void)state;
	enum { N = 1000 };
	struct ppat_config c;
	ppat_config_defaults(&c, PPAT_PPAT, N, 4, 4);
	c.teacher_hidden = 4;
	struct rng r;
	rng_seed(&r, 3);
	float *y = mem_array(N * 4, sizeof(float));
	uint64_t ids[N];
	for (uint64_t i = 0; i < N; i++)
		ids[i] = 7 * i;
	struct ppat_teachers t;
	ppat_teachers_init(&t, &c, y, ids, N, nn_draw_seeded(&r));
	uint8_t seen[N] = { 0 };
	for (uint32_t k = 0; k < t.n; k++) {
		assert_in_range(t.at[k].n_part, 180, 320);
		for (size_t i = 0; i < t.at[k].n_part; i++) {
			assert_int_equal(seen[t.at[k].part[i]]++, 0);
			assert_int_equal(ppat_teacher_of(t.key, ids[t.at[k].part[i]], t.n), k);
		}
	}
	for (size_t i = 0; i < N; i++)
		assert_int_equal(seen[i], 1);
	/* training does not move a row, and the rows' values have no say */
	uint32_t *before = mem_copy(t.at[1].part, t.at[1].n_part * 4), ones[32];
	float *z = mem_array(32 * 4, sizeof(float));
	y[0] = 5.0f;
	ppat_teachers_vote(&t, z, 32, 32, ones, NULL);
	assert_memory_equal(before, t.at[1].part, t.at[1].n_part * 4);
	free(before);
	free(z);
	free(y);
	ppat_teachers_release(&t);
}

/* A key of the host decides, so nobody outside can tell who shares a teacher. */
static void test_partition_is_keyed(void **state)
{
	(void)state;
	uint8_t a[32] = { 1 }, b[32] = { 2 };
	int differ = 0;
	for (uint64_t i = 0; i < 100; i++)
		differ += ppat_teacher_of(a, i, 4) != ppat_teacher_of(b, i, 4);
	assert_in_range(differ, 55, 95);
}

/* Changing one row of Y changes one teacher alone: the sensitivity that the
 * accountant counts on. */
static void test_one_row_one_teacher(void **state)
{
	(void)state;
	enum { N = 60, D = 5 };
	struct ppat_config c;
	ppat_config_defaults(&c, PPAT_PPAT, N, D, D);
	c.teacher_hidden = 6;
	c.teachers = 5;
	uint64_t ids[N];
	float y[2][N * D], z[32 * D];
	struct rng r;
	rng_seed(&r, 9);
	for (size_t i = 0; i < 32 * D; i++)
		z[i] = (float)rng_normal(&r);
	for (size_t i = 0; i < N * D; i++)
		y[0][i] = y[1][i] = (float)rng_normal(&r);
	for (size_t i = 0; i < D; i++)
		y[1][17 * D + i] = 50.0f;
	struct ppat_teachers t[2];
	for (size_t v = 0; v < 2; v++) {
		uint32_t ones[32];
		for (uint64_t i = 0; i < N; i++)
			ids[i] = i;
		rng_seed(&r, 10);
		ppat_teachers_init(&t[v], &c, y[v], ids, N, nn_draw_seeded(&r));
		for (int step = 0; step < 30; step++)
			ppat_teachers_vote(&t[v], z, 32, 32, ones, NULL);
	}
	size_t changed = 0;
	for (uint32_t k = 0; k < c.teachers; k++)
		changed += memcmp(t[0].at[k].net.param, t[1].at[k].net.param,
				  t[0].at[k].net.params * sizeof(float)) != 0;
	assert_int_equal(changed, 1);
	ppat_teachers_release(&t[0]);
	ppat_teachers_release(&t[1]);
}

/* Teachers learn: what looks like Y is voted real, what does not is not. */
static void test_teachers_learn(void **state)
{
	(void)state;
	enum { N = 200, D = 6, B = 32 };
	struct ppat_config c;
	ppat_config_defaults(&c, PPAT_PPAT, N, D, D);
	c.teacher_hidden = 16;
	uint64_t ids[N];
	float y[N * D], z[B * D], probe[B * D];
	struct rng r;
	rng_seed(&r, 12);
	for (uint64_t i = 0; i < N; i++)
		ids[i] = i;
	for (size_t i = 0; i < N * D; i++)
		y[i] = 1.0f + 0.3f * (float)rng_normal(&r);
	struct ppat_teachers t;
	ppat_teachers_init(&t, &c, y, ids, N, nn_draw_seeded(&r));
	uint32_t ones[B];
	for (int step = 0; step < 150; step++) {
		for (size_t i = 0; i < B * D; i++)
			z[i] = -1.0f + 0.3f * (float)rng_normal(&r);
		ppat_teachers_vote(&t, z, B, B, ones, NULL);
	}
	uint32_t for_generated = 0, for_real = 0;
	for (size_t i = 0; i < B; i++)
		for_generated += ones[i];
	memcpy(probe, y, sizeof(probe));
	ppat_teachers_vote(&t, probe, B, B, ones, NULL);
	for (size_t i = 0; i < B; i++)
		for_real += ones[i];
	assert_int_equal(for_generated, 0);
	assert_true(for_real > B * 4 * 9 / 10);
	ppat_teachers_release(&t);
}

/* ---- the sampler that ships ---- */

static double share_of_ones(const float noise, bool real)
{
	struct pair p;
	pair_init(&p, PPAT_PPAT, 21);
	p.cfg.noise = (double)noise;
	p.cfg.client_dim = 8;
	p.cfg.steps = 60;
	p.cfg.max_labels = 480;
	p.cfg.scale = PPAT_SCALE_NONE;
	pair_rows(&p, 2000);
	for (size_t i = 0; i < 80 * 8; i++) {
		p.y[i] = 0.1f * p.y[i] + 1.0f;
		p.x[i] = 0.1f * p.x[i] + (real ? 1.0f : -1.0f);
	}
	p.cfg.lr = 0.01;
	pair_run(&p);
	size_t ones = 0, bits = 0, messages = 0;
	const uint8_t *at = p.d.received[1].base, *end = at + p.d.received[1].len;
	while (at < end) {
		uint64_t len;
		memcpy(&len, at + 1, sizeof(len));
		if (at[0] == PPAT_MSG_LABELS && ++messages > 30) {
			ones += (size_t)__builtin_popcount(at[9 + len - 1]);
			bits += 8;
		}
		at += 9 + len;
	}
	pair_release(&p);
	assert_int_equal(bits, 30 * 8);
	return (double)ones / (double)bits;
}

/* With little noise the labels follow the votes; at the paper's they are nearly
 * coins (probability of following a unanimous 3-0 vote: .54). */
static void test_noise_is_applied(void **state)
{
	(void)state;
	assert_true(share_of_ones(20.0f, false) < 0.1);
	double coin = share_of_ones(0.05f, false);
	assert_true(coin > 0.3 && coin < 0.62);
}

/* Whether the host measures or not, the same messages go. */
static void test_measuring_is_not_seen(void **state)
{
	static const enum ppat_translator t[] = { PPAT_PPAT, PPAT_PROCRUSTES, PPAT_MAP };

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		uint8_t transcript[2][32];

		for (uint32_t k = 0; k < 2; k++) {
			struct pair p;
			start(&p, t[i], PPAT_STUDENT_CLIENT);
			p.host_env.measure = k * 2000;
			pair_run(&p);
			assert_int_equal(isnan(p.h.csls_nearest), k == 0);
			memcpy(transcript[k], p.h.transcript, 32);
			pair_release(&p);
		}
		assert_memory_equal(transcript[0], transcript[1], 32);
	}
}

static void test_paper_statistics_on_request(void **state)
{
	(void)state;
	struct pair p;
	start(&p, PPAT_PPAT, PPAT_STUDENT_CLIENT);
	p.host_env.measure = 2000;
	pair_run(&p);
	assert_true(p.h.mean_cosine >= -1 && p.h.mean_cosine <= 1);
	assert_true(p.h.mean_csls >= -4 && p.h.mean_csls <= 4);
	assert_true(p.h.csls_nearest >= 0 && p.h.csls_nearest <= 1);
	assert_true(isnan(p.c.mean_cosine));
	pair_release(&p);
}

/* With next to no noise the game must be won where it can be: the rows of X fill
 * the half circle around angle 0 and those of Y are the same, turned by a
 * quarter.  Half of the rows can pass for real, so the labels tell them apart. */
static double turned(double noise, uint64_t seed)
{
	struct pair p;
	pair_init(&p, PPAT_PPAT, seed);
	p.cfg.client_dim = p.cfg.host_dim = 2;
	p.cfg.noise = noise;
	p.cfg.batch = 32;
	p.cfg.reserve_labels = 1024;
	p.cfg.steps = 1500;
	p.cfg.max_labels = p.cfg.steps * p.cfg.batch;
	p.cfg.lr = 0.001;
	p.cfg.student_seed = seed;
	p.cfg.teacher_hidden = p.cfg.student_hidden = 16;
	pair_rows(&p, 2000);
	for (size_t i = 0; i < 80; i++) {
		double angle = 3.14159 * ((double)i / 79 - 0.5);
		p.x[2 * i] = (float)cos(angle);
		p.x[2 * i + 1] = (float)sin(angle);
		p.y[2 * i] = -p.x[2 * i + 1];
		p.y[2 * i + 1] = p.x[2 * i];
	}
	p.host_env.measure = 2000;
	pair_run(&p);
	double cosine = p.h.mean_cosine;
	pair_release(&p);
	return cosine;
}

static void test_generator_learns(void **state)
{
	(void)state;
	double quiet = 0, coins = 0;
	for (uint64_t seed = 41; seed < 44; seed++) {
		quiet += turned(20.0, seed) / 3;
		coins += turned(1e-6, seed) / 3;
	}
	assert_true(quiet > 0.9);
	assert_true(coins < 0.5);
}

/* Only the chosen share of slots travels, and both sides choose the same. */
static void test_share_of_rows(void **state)
{
	(void)state;
	struct pair p;
	start(&p, PPAT_PROCRUSTES, PPAT_STUDENT_CLIENT);
	p.cfg.aligned_share = 0.3;
	pair_run(&p);
	assert_int_equal(p.h.n, 24);
	assert_int_equal(p.c.n, 24);
	assert_memory_equal(p.h.slots, p.c.slots, 24 * sizeof(uint32_t));
	pair_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_runs_to_the_end),
		cmocka_unit_test(test_label_wire_is_small),
		cmocka_unit_test(test_both_agree),
		cmocka_unit_test(test_placements_are_equal),
		cmocka_unit_test(test_refused_charge),
		cmocka_unit_test(test_allowance),
		cmocka_unit_test(test_every_grant_fails_once),
		cmocka_unit_test(test_partition),
		cmocka_unit_test(test_partition_is_keyed),
		cmocka_unit_test(test_one_row_one_teacher),
		cmocka_unit_test(test_teachers_learn),
		cmocka_unit_test(test_noise_is_applied),
		cmocka_unit_test(test_paper_statistics_on_request),
		cmocka_unit_test(test_measuring_is_not_seen),
		cmocka_unit_test(test_generator_learns),
		cmocka_unit_test(test_share_of_rows),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
