/* A peer that sends what it must not: an error with a text, never a crash. */
#include "tests/test.h"

#include "net/msg.h"
#include "tests/ppat/pair.h"

/* ---- a crafted message in place of the k-th one toward one side ---- */

struct forgery {
	int to;	      /* 0 host, 1 client */
	uint8_t kind; /* replaces the first message of this kind */
	size_t rows, cols;
	float value;
	bool done;
	uint64_t offset;
};

static void forge(void *ctx, int to, uint8_t *kind, struct buf *body)
{
	struct forgery *f = ctx;
	if (f->done || to != f->to || *kind != f->kind)
		return;
	f->done = true;
	float *z = calloc(f->rows * f->cols + 1, sizeof(float));
	for (size_t i = 0; i < f->rows * f->cols; i++)
		z[i] = f->value;
	struct net_writer w;
	buf_clear(body);
	net_write_body(&w, body);
	net_put_uint(&w, "o", f->offset);
	net_put_tensor(&w, "z", z, f->rows, f->cols);
	assert_int_equal(net_write_end(&w, NULL), 0);
	free(z);
}

static void check_refused_by(enum ppat_translator t, enum ppat_placement student, struct forgery f)
{
	struct pair p;
	struct err e;
	pair_init(&p, t, 5);
	p.cfg.student = student;
	pair_rows(&p, 2000);
	p.d.mutate = forge;
	p.d.ctx = &f;
	pair_run(&p);
	assert_true(f.done);
	struct conv *victim = f.to == 0 ? p.host : p.client;
	assert_int_equal(victim->ops->status(victim, &e), ERR_PROTO);
	assert_true(strlen(e.text) > 10);
	assert_true(conv_want(victim) == CONV_OVER);
	assert_null(p.h.rows);
	pair_release(&p);
}

static void check_refused(enum ppat_placement student, struct forgery f)
{
	check_refused_by(PPAT_PPAT, student, f);
}

static void test_bad_matrices(void **state)
{
	(void)state;
	const struct forgery bad[] = {
		{ 0, PPAT_MSG_BATCH, 8, 8, NAN, false, 0 },
		{ 0, PPAT_MSG_BATCH, 8, 8, INFINITY, false, 0 },
		{ 0, PPAT_MSG_BATCH, 8, 8, 1e30f, false, 0 },
		{ 0, PPAT_MSG_BATCH, 8, 7, 0, false, 0 },
		{ 0, PPAT_MSG_BATCH, 7, 8, 0, false, 0 },
		{ 0, PPAT_MSG_BATCH, 0, 8, 0, false, 0 },
		{ 0, PPAT_MSG_BATCH, 9, 8, 0, false, 0 },
		{ 0, PPAT_MSG_BATCH, 1000, 8, 0, false, 0 },
		{ 0, PPAT_MSG_ROWS, 80, 8, NAN, false, 0 },
		{ 0, PPAT_MSG_ROWS, 79, 8, 0, false, 0 },
		{ 0, PPAT_MSG_ROWS, 81, 8, 0, false, 0 },
		{ 0, PPAT_MSG_ROWS, 0, 8, 0, false, 0 },
		{ 0, PPAT_MSG_ROWS, 80, 6, 0, false, 0 },
		{ 0, PPAT_MSG_ROWS, 80, 8, 0, false, 1 },
		{ 0, PPAT_MSG_ROWS, 80, 8, 0, false, UINT64_MAX },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check_refused(PPAT_STUDENT_CLIENT, bad[i]);
	const struct forgery bad_gradient[] = {
		{ 1, PPAT_MSG_GRAD, 8, 8, NAN, false, 0 },
		{ 1, PPAT_MSG_GRAD, 8, 9, 0, false, 0 },
		{ 1, PPAT_MSG_GRAD, 8, 8, -1e9f, false, 0 },
	};
	for (size_t i = 0; i < 3; i++)
		check_refused(PPAT_STUDENT_HOST, bad_gradient[i]);
}

static void test_bad_maps(void **state)
{
	(void)state;
	const struct forgery bad[] = {
		{ 1, PPAT_MSG_MAP, 8, 6, NAN, false, 0 },
		{ 1, PPAT_MSG_MAP, 8, 6, -1e9f, false, 0 },
		{ 1, PPAT_MSG_MAP, 6, 8, 0, false, 0 },
		{ 1, PPAT_MSG_MAP, 7, 6, 0, false, 0 },
		{ 1, PPAT_MSG_MAP, 9, 6, 0, false, 0 },
		{ 1, PPAT_MSG_MAP, 0, 6, 0, false, 0 },
		{ 1, PPAT_MSG_MAP, 8, 6, 0, false, 1 },
		{ 0, PPAT_MSG_ROWS, 80, 8, 0, false, 0 },
		{ 0, PPAT_MSG_ROWS, 80, 6, NAN, false, 0 },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		check_refused_by(PPAT_MAP, PPAT_STUDENT_CLIENT, bad[i]);
}

/* ---- rows in 16 bits a value ---- */

struct short_forgery {
	float scale;
	int16_t value;
	size_t bytes; /* more or fewer than the 80 rows of 8 have */
	uint64_t offset;
	bool as_floats, done;
};

static void forge_short(void *ctx, int to, uint8_t *kind, struct buf *body)
{
	enum { ROWS = 80, DIM = 8, ROW = 4 + 2 * DIM };
	struct short_forgery *f = ctx;
	uint8_t rows[ROWS * ROW + ROW] = { 0 };
	struct net_writer w;
	if (f->done || to != 0 || *kind != PPAT_MSG_ROWS)
		return;
	f->done = true;
	for (size_t i = 0; i < ROWS; i++) {
		memcpy(rows + i * ROW, &f->scale, sizeof(f->scale));
		memcpy(rows + i * ROW + 4, &f->value, sizeof(f->value));
	}
	buf_clear(body);
	net_write_body(&w, body);
	net_put_uint(&w, "o", f->offset);
	net_put_bin(&w, f->as_floats ? "z" : "h", rows, f->bytes);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static int status_of_short(struct short_forgery f)
{
	struct pair p;
	struct err e;
	pair_init(&p, PPAT_PROCRUSTES, 5);
	p.cfg.client_dim = 8;
	p.cfg.short_rows = true;
	pair_rows(&p, 2000);
	p.d.mutate = forge_short;
	p.d.ctx = &f;
	pair_run(&p);
	assert_true(f.done);
	int rc = p.host->ops->status(p.host, &e);
	assert_true(rc == 0 || strlen(e.text) > 10);
	assert_int_equal(rc == 0, p.h.rows != NULL);
	pair_release(&p);
	return rc;
}

static void test_bad_short_rows(void **state)
{
	(void)state;
	const size_t all = 80 * 20;
	const struct short_forgery bad[] = {
		{ NAN, 1, all, 0, false, false },
		{ INFINITY, 1, all, 0, false, false },
		{ -1, 1, all, 0, false, false },
		{ 2e6f, 1, all, 0, false, false },
		{ 1, INT16_MIN, all, 0, false, false },
		{ 1, 1, all - 1, 0, false, false },
		{ 1, 1, all + 1, 0, false, false },
		{ 1, 1, all + 20, 0, false, false },
		{ 1, 1, 0, 0, false, false },
		{ 1, 1, all, 1, false, false },
		{ 1, 1, all, UINT64_MAX, false, false },
		{ 1, 1, all, 0, true, false },
	};
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(status_of_short(bad[i]), ERR_PROTO);
	assert_int_equal(status_of_short((struct short_forgery){ 1, INT16_MAX, all, 0, 0, 0 }), 0);
	assert_int_equal(status_of_short((struct short_forgery){ 0, 0, all, 0, 0, 0 }), 0);
}

/* The same forgery with honest values is taken: it is the values that are refused. */
static void test_good_matrix_is_taken(void **state)
{
	(void)state;
	struct forgery f = { 0, PPAT_MSG_BATCH, 8, 8, 0.5f, false, 0 };
	struct pair p;
	pair_init(&p, PPAT_PPAT, 5);
	pair_rows(&p, 2000);
	p.d.mutate = forge;
	p.d.ctx = &f;
	pair_run(&p);
	assert_true(f.done);
	assert_int_equal(p.host->ops->status(p.host, NULL), 0);
	pair_release(&p);
}

/* ---- wrong kinds, at every message ---- */

struct relabel {
	size_t at, seen;
	uint8_t kind;
};

static void relabel(void *ctx, int to, uint8_t *kind, struct buf *body)
{
	struct relabel *r = ctx;
	(void)to;
	(void)body;
	if (r->seen++ == r->at)
		*kind = r->kind;
}

static void test_wrong_kinds(void **state)
{
	(void)state;
	for (uint8_t kind = 0; kind < 10; kind++)
		for (size_t at = 0; at < 17; at++) {
			bool map = at >= 12; /* which has five messages */
			struct pair p;
			struct relabel r = { .at = map ? at - 12 : at, .kind = kind };
			pair_init(&p, map ? PPAT_MAP : PPAT_PPAT, 5);
			pair_rows(&p, 2000);
			p.d.mutate = relabel;
			p.d.ctx = &r;
			pair_run(&p);
			assert_true(r.seen > r.at);
			int a = p.host->ops->status(p.host, NULL);
			int b = p.client->ops->status(p.client, NULL);
			assert_true(a == 0 || a == ERR_PROTO);
			assert_true(b == 0 || b == ERR_PROTO);
			assert_true(p.h.labels_drawn <= p.h.labels_charged);
			pair_release(&p);
		}
}

/* ---- virtual neighbours ---- */

struct virtual_forgery {
	uint64_t more;	/* bytes that are announced above those of the message */
	uint64_t fewer; /* below */
	bool done;
};

static void forge_virtual(void *ctx, int to, uint8_t *kind, struct buf *body)
{
	static const uint8_t bytes[64];
	struct virtual_forgery *f = ctx;
	struct net_writer w;

	if (f->done || to != 0 || *kind != PPAT_MSG_VIRTUAL)
		return;
	f->done = true;
	buf_clear(body);
	net_write_body(&w, body);
	net_put_uint(&w, "t", sizeof(bytes) + f->more - f->fewer);
	net_put_uint(&w, "o", 0);
	net_put_bin(&w, "b", bytes, sizeof(bytes));
	assert_int_equal(net_write_end(&w, NULL), 0);
}

/* Refused at once, before any more of it comes. */
static void test_bad_virtual_neighbours(void **state)
{
	static const struct {
		struct virtual_forgery forged;
		const char *says;
	} bad[] = {
		{ { .more = 1 << 20 }, "are agreed on" },
		{ { .fewer = 1 }, "overrun the size" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct virtual_forgery f = bad[i].forged;
		struct pair p;
		struct err e;

		pair_init(&p, PPAT_PROCRUSTES, 5);
		p.cfg.max_virtual = 10;
		pair_rows(&p, 2000);
		p.d.mutate = forge_virtual;
		p.d.ctx = &f;
		pair_run(&p);
		assert_true(f.done);
		assert_int_equal(p.host->ops->status(p.host, &e), ERR_PROTO);
		if (strstr(e.text, bad[i].says) == NULL)
			fail_msg("\"%s\" is not in \"%s\"", bad[i].says, e.text);
		assert_null(p.h.neighbours);
		pair_release(&p);
	}
}

/* ---- random damage ---- */

static void damage(void *ctx, int to, uint8_t *kind, struct buf *body)
{
	struct rng *r = ctx;
	(void)to;
	if (rng_below(r, 6) != 0)
		return;
	switch (rng_below(r, 5)) {
	case 0:
		body->len = body->len > 0 ? rng_below(r, (uint32_t)body->len) : 0;
		break;
	case 1:
		*buf_extend(body, 1) = (uint8_t)rng_u64(r);
		break;
	case 2:
		*kind = (uint8_t)rng_below(r, 13);
		break;
	default:
		for (uint32_t i = rng_below(r, 4); body->len > 0 && i < 4; i++) {
			uint32_t top = body->len < 40 ? (uint32_t)body->len : 40;
			body->base[rng_below(r, top)] ^= (uint8_t)(1u << rng_below(r, 8));
		}
		break;
	}
}

static void fuzz_once(uint64_t seed)
{
	struct pair p;
	struct rng r;
	struct err e;
	rng_seed(&r, seed);
	pair_init(&p, seed % 3 == 0 ? PPAT_PROCRUSTES : seed % 3 == 1 ? PPAT_MAP : PPAT_PPAT, seed);
	p.cfg.student = seed % 2 ? PPAT_STUDENT_HOST : PPAT_STUDENT_CLIENT;
	p.cfg.max_virtual = seed % 5 == 0 ? 10 : 0;
	p.cfg.short_rows = seed % 6 == 0; /* of Procrustes */
	if (p.cfg.translator == PPAT_PPAT && seed % 4 < 2)
		pair_budget(&p);
	pair_rows(&p, 2000);
	p.d.mutate = damage;
	p.d.ctx = &r;
	pair_run(&p);
	struct conv *both[2] = { p.host, p.client };
	for (size_t i = 0; i < 2; i++) {
		int rc = both[i]->ops->status(both[i], &e);
		assert_true(rc == 0 || rc == ERR_PROTO || rc == ERR_TOOBIG);
		assert_true(rc == 0 || strlen(e.text) > 5);
	}
	assert_true(p.h.labels_drawn <= p.h.labels_charged);
	assert_int_equal(p.h.labels_charged, p.d.labels);
	pair_release(&p);
}

static void test_damaged_messages(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 900; seed++)
		fuzz_once(seed);
}

/* ---- our own side ---- */

static void test_open_refuses(void **state)
{
	(void)state;
	struct pair p;
	struct err e = { 0 };
	pair_init(&p, PPAT_PPAT, 5);
	pair_rows(&p, 2000);
	struct ppat_rows in = { .rows = p.y, .n = 80, .dim = 8 };
	in.n = 79;
	assert_null(ppat_open(PPAT_HOST, &p.cfg, &in, &p.host_env, &e));
	assert_int_equal(e.code, ERR_USAGE);
	in.n = 80;
	p.y[17] = NAN;
	assert_null(ppat_open(PPAT_HOST, &p.cfg, &in, &p.host_env, &e));
	assert_non_null(strstr(e.text, "slot 2"));
	p.y[17] = 0;
	uint8_t tags[80];
	memset(tags, 'r', sizeof(tags));
	in.tags = tags;
	assert_null(ppat_open(PPAT_HOST, &p.cfg, &in, &p.host_env, &e));
	assert_int_equal(e.code, ERR_USAGE);
	p.cfg.batch = 0;
	assert_null(ppat_open(PPAT_HOST, &p.cfg, &in, &p.host_env, &e));
	assert_non_null(strstr(e.text, "batch"));
	pair_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_matrices),
		cmocka_unit_test(test_bad_maps),
		cmocka_unit_test(test_bad_short_rows),
		cmocka_unit_test(test_good_matrix_is_taken),
		cmocka_unit_test(test_wrong_kinds),
		cmocka_unit_test(test_damaged_messages),
		cmocka_unit_test(test_bad_virtual_neighbours),
		cmocka_unit_test(test_open_refuses),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
