/* Mode BUDGET: what is made of labels that have been paid for. */
#include "tests/test.h"

#include "base/mem.h"
#include "net/msg.h"
#include "ppat/student.h"
#include "ppat/teachers.h"
#include "tests/ppat/pair.h"

static void start(struct pair *p, enum ppat_placement student, uint64_t seed)
{
	pair_init(p, PPAT_PPAT, seed);
	pair_budget(p);
	p->cfg.student = student;
	pair_rows(p, 2000);
}

static size_t count_kind(const struct buf *received, uint8_t kind)
{
	size_t n = 0;
	for (size_t at = 0; at < received->len;) {
		uint64_t len;
		memcpy(&len, received->base + at + 1, sizeof(len));
		n += received->base[at] == kind;
		at += 9 + len;
	}
	return n;
}

/* The same labels are charged and drawn as in mode PAPER; probes and slopes cost none. */
static void test_labels_are_the_same(void **state)
{
	(void)state;
	for (int student = 0; student < 2; student++) {
		struct pair p;
		start(&p, (enum ppat_placement)student, 5);
		pair_run(&p);
		assert_true(p.d.both_over);
		assert_int_equal(p.host->ops->status(p.host, NULL), 0);
		assert_int_equal(p.h.steps, 5);
		assert_int_equal(p.h.labels_drawn, 40);
		assert_int_equal(p.c.labels_drawn, 40);
		assert_int_equal(p.d.labels, 40);
		assert_memory_equal(p.h.transcript, p.c.transcript, 32);
		size_t probes = student == PPAT_STUDENT_HOST ? 5 * 3 : 0;
		assert_int_equal(count_kind(&p.d.received[0], PPAT_MSG_BATCH), 5);
		assert_int_equal(count_kind(&p.d.received[0], PPAT_MSG_PROBE), probes);
		assert_int_equal(count_kind(&p.d.received[1], PPAT_MSG_PROBE_GRAD), probes);
		assert_int_equal(p.h.generated, 5 * 12 + 8 * probes);
		assert_int_equal(p.c.generated, p.h.generated);
		pair_release(&p);
	}
}

/* Where the student lives changes the wire, not one bit of W or X-hat. */
static void check_placements(enum ppat_loss loss, uint32_t client_dim, uint32_t pool)
{
	struct pair p[2];
	for (size_t i = 0; i < 2; i++) {
		pair_init(&p[i], PPAT_PPAT, 5);
		pair_budget(&p[i]);
		p[i].cfg.student = i == 0 ? PPAT_STUDENT_CLIENT : PPAT_STUDENT_HOST;
		p[i].cfg.loss = loss;
		p[i].cfg.client_dim = client_dim;
		p[i].cfg.pool = pool;
		p[i].cfg.steps = 12;
		p[i].cfg.max_labels = 96;
		pair_rows(&p[i], 2000);
		pair_run(&p[i]);
		assert_true(p[i].d.both_over);
	}
	assert_memory_equal(p[0].c.map, p[1].c.map, 8 * client_dim * sizeof(float));
	assert_memory_equal(p[0].h.rows, p[1].h.rows, 80 * 8 * sizeof(float));
	assert_true(p[0].c.map[1] != 0.0f); /* W has moved from the identity */
	pair_release(&p[0]);
	pair_release(&p[1]);
}

static void test_placements_are_equal(void **state)
{
	(void)state;
	check_placements(PPAT_SATURATING, 8, 12);
	check_placements(PPAT_NON_SATURATING, 8, 0);
	check_placements(PPAT_SATURATING, 6, 100); /* more than there are rows */
}

/* Every grant fails once: nobody draws beyond what the ledger granted. */
static bool fail_grant(enum ppat_placement student, size_t k)
{
	struct pair p;
	start(&p, student, 5);
	p.cfg.steps = 2;
	p.cfg.max_labels = 16;
	p.d.fail_grant = k;
	p.d.fail_status = ERR_STORE;
	pair_run(&p);
	int a = p.host->ops->status(p.host, NULL), b = p.client->ops->status(p.client, NULL);
	assert_true(p.h.labels_drawn <= p.h.labels_charged);
	assert_int_equal(p.h.labels_charged, p.d.labels);
	assert_true(!p.d.failed || (a == ERR_STORE) != (b == ERR_STORE));
	bool failed = p.d.failed;
	pair_release(&p);
	return failed;
}

static void test_every_grant_fails_once(void **state)
{
	(void)state;
	for (int student = 0; student < 2; student++) {
		size_t k = 1;
		while (fail_grant((enum ppat_placement)student, k))
			k++;
		assert_true(k > (student == PPAT_STUDENT_HOST ? 30 : 12));
	}
}

/* A refusal comes between batches: what was labelled until then is used to the end. */
static void test_refused(void **state)
{
	(void)state;
	struct pair p;
	start(&p, PPAT_STUDENT_HOST, 5);
	p.d.label_cap = 16;
	pair_run(&p);
	assert_true(p.d.both_over && p.h.refused && p.c.refused);
	assert_int_equal(p.h.labels_drawn, 16);
	assert_int_equal(p.c.steps, 2);
	assert_int_equal(p.c.generated, p.h.generated);
	assert_int_equal(p.h.generated, 3 * 12 + 2 * 3 * 8); /* the refused batch was shown too */
	assert_non_null(p.h.rows);
	pair_release(&p);
}

/* ---- which rows are asked about ---- */

struct asked {
	float first[80][8]; /* asked rows, as they were sent */
	size_t n;
};

static void note_asked(void *ctx, int to, uint8_t *kind, struct buf *body)
{
	struct asked *a = ctx;
	struct net_body b;
	float z[12 * 8];
	if (to != 0 || *kind != PPAT_MSG_BATCH)
		return;
	struct err e = { 0 };
	assert_int_equal(net_body_decode(&b, body->base, body->len, &e), 0);
	net_get_matrix(&b.map, "z", z, 12, 8, &e);
	assert_int_equal(e.code, 0);
	for (size_t i = 0; i < 8 && a->n < 80; i++)
		memcpy(a->first[a->n++], z + 8 * i, sizeof(a->first[0]));
	net_body_release(&b);
}

/* With W held still each of 80 rows is asked about once in ten batches of 8. */
static void test_no_row_twice(void **state)
{
	(void)state;
	struct pair p;
	struct asked a = { .n = 0 };
	pair_init(&p, PPAT_PPAT, 5);
	pair_budget(&p);
	p.cfg.client_dim = 8;
	p.cfg.steps = 10;
	p.cfg.max_labels = 80;
	p.cfg.lr = 0;
	p.cfg.beta = 0;
	p.cfg.scale = PPAT_SCALE_NONE;
	pair_rows(&p, 2000);
	p.d.mutate = note_asked;
	p.d.ctx = &a;
	pair_run(&p);
	assert_int_equal(a.n, 80);
	for (size_t row = 0; row < 80; row++) {
		size_t times = 0;
		for (size_t i = 0; i < 80; i++)
			times += memcmp(a.first[i], p.x + 8 * row, sizeof(a.first[0])) == 0;
		assert_int_equal(times, 1);
	}
	pair_release(&p);
}

/* ---- teachers ---- */

enum { N = 600, D = 5, B = 32, POOL = 48, T = 250 };

static void train_many(struct ppat_teachers *t, const struct ppat_config *c, const float *y,
		       const float *z, uint32_t *ones)
{
	uint64_t ids[N];
	struct rng r;
	for (uint64_t i = 0; i < N; i++)
		ids[i] = i;
	rng_seed(&r, 10);
	ppat_teachers_init(t, c, y, ids, N, driver_draw(&r));
	for (int step = 0; step < 3; step++)
		ppat_teachers_vote(t, z, POOL, B, ones, NULL);
}

static void random_floats(float *x, size_t n, uint64_t seed)
{
	struct rng r;
	rng_seed(&r, seed);
	for (size_t i = 0; i < n; i++)
		x[i] = (float)rng_normal(&r);
}

/* 250 teachers, trained ahead on rows that are not asked about: a changed row of Y changes
 * one of them, and no vote by more than one. */
static void test_one_row_one_of_many(void **state)
{
	(void)state;
	struct ppat_config c;
	struct ppat_teachers t[2];
	float *y[2], z[POOL * D];
	uint32_t ones[2][B];
	ppat_config_defaults(&c, PPAT_PPAT, N, D, D);
	c.mode = PPAT_MODE_BUDGET;
	c.pool = POOL;
	c.teacher_hidden = 6;
	c.teachers = T;
	c.teacher_steps = 5;
	random_floats(z, (size_t)POOL * D, 9);
	for (size_t v = 0; v < 2; v++) {
		y[v] = mem_array((size_t)N * D, sizeof(float));
		random_floats(y[v], (size_t)N * D, 8);
	}
	for (size_t i = 0; i < D; i++)
		y[1][17 * D + i] = 50.0f;
	for (size_t v = 0; v < 2; v++)
		train_many(&t[v], &c, y[v], z, ones[v]);
	size_t changed = 0;
	for (uint32_t k = 0; k < T; k++)
		changed += memcmp(t[0].at[k].net.param, t[1].at[k].net.param,
				  t[0].at[k].net.params * sizeof(float)) != 0;
	assert_int_equal(changed, 1);
	for (size_t i = 0; i < B; i++)
		assert_true(ones[0][i] <= ones[1][i] + 1 && ones[1][i] <= ones[0][i] + 1);
	for (size_t v = 0; v < 2; v++) {
		ppat_teachers_release(&t[v]);
		free(y[v]);
	}
}

/* Votes are counted on the first rows; training looks at the others alone. */
static void test_asked_rows_are_not_trained_on(void **state)
{
	(void)state;
	struct ppat_config c;
	struct ppat_teachers t[2];
	float *y = mem_array((size_t)N * D, sizeof(float)), z[2][POOL * D];
	uint32_t ones[B];
	ppat_config_defaults(&c, PPAT_PPAT, N, D, D);
	c.mode = PPAT_MODE_BUDGET;
	c.pool = POOL;
	c.teacher_hidden = 6;
	c.teachers = 3;
	random_floats(y, (size_t)N * D, 8);
	random_floats(z[0], (size_t)POOL * D, 9);
	memcpy(z[1], z[0], sizeof(z[0]));
	z[1][0] += 1.0f;
	for (size_t v = 0; v < 2; v++)
		train_many(&t[v], &c, y, z[v], ones);
	for (uint32_t k = 0; k < 3; k++)
		assert_memory_equal(t[0].at[k].net.param, t[1].at[k].net.param,
				    t[0].at[k].net.params * sizeof(float));
	for (size_t v = 0; v < 2; v++)
		ppat_teachers_release(&t[v]);
	free(y);
}

/* ---- student ---- */

static double share_right(struct ppat_student *s, const float *z, const float *label)
{
	const float *logit = nn_forward(&s->net, &s->tape, z, B);
	double right = 0;
	for (size_t i = 0; i < B; i++)
		right += (logit[i] >= 0) == (label[i] > 0.5f);
	return right / B;
}

/* Labels come once; with replay the student still knows them many batches later. */
static void test_student_keeps_labels(void **state)
{
	(void)state;
	struct ppat_config c;
	struct ppat_student s;
	float z[4][B * D], label[4][B];
	ppat_config_defaults(&c, PPAT_PPAT, N, D, D);
	c.mode = PPAT_MODE_BUDGET;
	c.student_steps = 400;
	c.steps = 3; /* room for three batches: the first one is forgotten */
	c.max_labels = 3 * B;
	ppat_student_init(&s, &c);
	for (size_t k = 0; k < 4; k++) {
		random_floats(z[k], (size_t)B * D, k);
		for (size_t i = 0; i < B; i++) { /* each batch from a place of its own */
			label[k][i] = (z[k][i * D] > 0) ^ (k % 2 != 0);
			z[k][i * D + 1 + k] += 4.0f;
		}
		ppat_student_train(&s, z[k], label[k], B, NULL);
	}
	assert_int_equal(s.replay.n, 3 * B);
	assert_memory_equal(s.replay.z, z[3], sizeof(z[3]));
	for (size_t k = 1; k < 4; k++)
		assert_true(share_right(&s, z[k], label[k]) > 0.85);
	ppat_student_release(&s);
}

/* ---- the map to begin with ---- */

static void test_start(void **state)
{
	(void)state;
	struct pair p;
	float w[8 * 6];
	start(&p, PPAT_STUDENT_CLIENT, 5);
	random_floats(w, 8 * 6, 3);
	p.cfg.steps = 0;
	p.client_env.start = w;
	pair_run(&p);
	assert_memory_equal(p.c.map, w, sizeof(w));
	pair_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_labels_are_the_same),
		cmocka_unit_test(test_placements_are_equal),
		cmocka_unit_test(test_every_grant_fails_once),
		cmocka_unit_test(test_refused),
		cmocka_unit_test(test_no_row_twice),
		cmocka_unit_test(test_one_row_one_of_many),
		cmocka_unit_test(test_asked_rows_are_not_trained_on),
		cmocka_unit_test(test_student_keeps_labels),
		cmocka_unit_test(test_start),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
