/* What the client's rows give away under Procrustes (docs/THREAT-MODEL.md): all distances and
 * angles between them, from one session; and what they do not: their lengths, when rows are
 * scaled to unit length. */
#include "tests/attacks/wire.h"

static void start(struct pair *p, size_t n, uint32_t dim)
{
	pair_init(p, PPAT_PROCRUSTES, 3);
	p->cfg.slots = (uint32_t)n;
	p->cfg.client_dim = p->cfg.host_dim = dim;
	pair_rows(p, 2000);
}

/* ATTACK: Z Z' = X X'. */
static void all_distances_are_plain(void **state)
{
	(void)state;
	struct pair p;
	start(&p, 80, 16);
	pair_run(&p);
	struct audit_matrix z = wire_rows_of(&p.d.received[0], PPAT_MSG_ROWS);
	assert_int_equal(z.n, 80);
	for (size_t i = 0; i < z.n; i++)
		for (size_t j = 0; j <= i; j++)
			assert_near(wire_dot(z.rows + i * 16, z.rows + j * 16, 16),
				    wire_dot(p.x + i * 16, p.x + j * 16, 16), 0, 1e-4);
	/* the rows themselves are turned */
	assert_true(wire_error(z.rows, p.x, z.n * 16) > 0.5);
	free(z.rows);
	pair_release(&p);
}

/* ATTACK: two sessions' copies cannot be compared row by row, but their Gram matrices can: which
 * rows moved in between, and how far from the others, is plain in spite of the new rotation. */
static void what_moved_is_plain(void **state)
{
	(void)state;
	enum { N = 40, D = 8, MOVED = 17 };
	struct audit_matrix z[2];
	for (size_t k = 0; k < 2; k++) {
		struct pair p;
		start(&p, N, D);
		rng_seed(&p.client_rng, 50 + k);
		p.x[(size_t)MOVED * D] += k == 0 ? 0.0f : 1.0f;
		pair_run(&p);
		z[k] = wire_rows_of(&p.d.received[0], PPAT_MSG_ROWS);
		pair_release(&p);
	}
	size_t most = N;
	double moved[N], sum = 0;
	for (size_t i = 0; i < N; i++) {
		moved[i] = 0;
		for (size_t j = 0; j < N; j++)
			moved[i] += fabs(wire_dot(z[0].rows + i * D, z[0].rows + j * D, D) -
					 wire_dot(z[1].rows + i * D, z[1].rows + j * D, D));
		sum += moved[i];
		most = most == N || moved[i] > moved[most] ? i : most;
	}
	assert_int_equal(most, MOVED);
	assert_true(moved[MOVED] > 0.4 * sum);
	free(z[0].rows);
	free(z[1].rows);
}

static struct buf sent_with_lengths(bool stretched, enum ppat_scale scale)
{
	struct pair p;
	struct buf all = { 0 };
	start(&p, 30, 8);
	p.cfg.scale = scale;
	for (size_t i = 0; stretched && i < (size_t)30 * 8; i++)
		p.x[i] *= (float)(1 << (i / 8 % 5)); /* a power of two changes no digit */
	pair_run(&p);
	buf_add(&all, p.d.received[0].base, p.d.received[0].len);
	pair_release(&p);
	return all;
}

static bool lengths_show(enum ppat_scale scale)
{
	struct buf a = sent_with_lengths(false, scale), b = sent_with_lengths(true, scale);
	assert_int_equal(a.len, b.len);
	bool differ = memcmp(a.base, b.base, a.len) != 0;
	buf_release(&a);
	buf_release(&b);
	return differ;
}

/* PROTECTED: with unit rows, rows of other lengths send the same bytes. */
static void lengths_stay_at_home(void **state)
{
	(void)state;
	assert_true(lengths_show(PPAT_SCALE_NONE));
	assert_false(lengths_show(PPAT_SCALE_UNIT));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_distances_are_plain),
		cmocka_unit_test(what_moved_is_plain),
		cmocka_unit_test(lengths_stay_at_home),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
