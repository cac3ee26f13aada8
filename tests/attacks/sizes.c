/* What a network observer reads off sealed frames without any key (docs/THREAT-MODEL.md): how
 * many names each side has, how many they share, and how many rows of how many floats went over. */
#include "tests/attacks/wire.h"

#include "net/frame.h"
#include "net/psi.h"

/* Bytes on the wire of each message of a driver's record, kinds forgotten. */
struct lengths {
	size_t at[64], n;
};

static void seal(void *ctx, uint8_t kind, const uint8_t *body, size_t len)
{
	struct lengths *l = ctx;
	(void)kind;
	(void)body;
	assert_true(l->n < 64);
	l->at[l->n++] = net_frame_size(len);
}

static struct lengths observe(const struct buf *received)
{
	struct lengths l = { 0 };
	audit_wire_each(received, seal, &l);
	return l;
}

static size_t longest(const struct lengths *l)
{
	size_t most = 0;
	for (size_t i = 0; i < l->n; i++)
		most = l->at[i] > most ? l->at[i] : most;
	return most;
}

static void draw(void *ctx, void *out, size_t n)
{
	struct nn_draw d = nn_draw_seeded(ctx);
	d.fn(d.ctx, out, n);
}

static struct conv *names(enum net_psi_role role, size_t first, size_t n, struct rng *r)
{
	struct net_psi_config c = { .role = role,
				    .between = (const uint8_t[NET_PSI_BETWEEN]){ 1 },
				    .draw = draw,
				    .draw_ctx = r };
	struct net_psi_name *x = mem_array(n, sizeof(*x));
	char(*text)[16] = mem_array(n, sizeof(*text));
	struct conv *out = NULL;
	for (size_t i = 0; i < n; i++)
		x[i] = (struct net_psi_name){ 'e', (uint32_t)i, text[i],
					      (size_t)snprintf(text[i], 16, "%zu", first + i) };
	assert_int_equal(net_psi_new(&c, x, n, &out, NULL), 0);
	free(x);
	free(text);
	return out;
}

/* ATTACK: 32 bytes a name, some for the frame: the set's size to within a few. */
static void set_sizes(void **state)
{
	(void)state;
	static const size_t sizes[][2] = { { 300, 20 }, { 123, 456 } };
	for (size_t k = 0; k < 2; k++) {
		struct rng r;
		struct driver d = { 0 };
		rng_seed(&r, 4);
		struct conv *a = names(NET_PSI_INITIATOR, 0, sizes[k][0], &r);
		struct conv *b = names(NET_PSI_RESPONDER, 10, sizes[k][1], &r);
		driver_run(&d, a, b);
		assert_true(d.both_over);
		/* to the responder: SIZE, BLINDED, CHECK, DOUBLE, ANSWER, CONFIRM; DOUBLE has the
		 * other's number */
		struct lengths l = observe(&d.received[1]);
		assert_int_equal(l.n, 6);
		for (size_t side = 0; side < 2; side++)
			assert_near((double)l.at[1 + 2 * side] / NET_PSI_POINT,
				    (double)sizes[k][side], 0, 2);
		conv_free(a);
		conv_free(b);
		driver_release(&d);
	}
}

/* ATTACK: 4 bytes a float: rows times dimension. */
static void rows_and_translator(void **state)
{
	(void)state;
	struct pair p;
	pair_init(&p, PPAT_PROCRUSTES, 3);
	p.cfg.slots = 90;
	p.cfg.client_dim = p.cfg.host_dim = 16;
	pair_rows(&p, 2000);
	pair_run(&p);
	struct lengths l = observe(&p.d.received[0]), back = observe(&p.d.received[1]);
	assert_near((double)longest(&l) / 4, 90 * 16, 0, 20);
	assert_true(l.n == 1 && back.n == 1); /* PPAT would have a message a step */
	pair_release(&p);
}

/* PROTECTED: what is said, by seals of equal size for equal numbers. */
static void contents_change_no_length(void **state)
{
	(void)state;
	struct lengths l[2];
	for (uint64_t k = 0; k < 2; k++) {
		struct pair p;
		pair_init(&p, PPAT_PPAT, 3 + k);
		pair_rows(&p, 2000 + k);
		pair_run(&p);
		l[k] = observe(&p.d.received[1]);
		pair_release(&p);
	}
	assert_int_equal(l[0].n, l[1].n);
	assert_memory_equal(l[0].at, l[1].at, sizeof(l[0].at));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_sizes),
		cmocka_unit_test(rows_and_translator),
		cmocka_unit_test(contents_change_no_length),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
