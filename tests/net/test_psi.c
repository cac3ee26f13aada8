/* Private set intersection between two machines in one process; then with a peer that cheats. */
#include "tests/test.h"

#include <sodium.h>
#include <time.h>

#include "base/mem.h"
#include "base/rng.h"
#include "net/msg.h"
#include "net/psi.h"

struct names {
	struct net_psi_name *list;
	char **text;
	size_t n;
};

static void draw(void *ctx, void *out, size_t n)
{
	uint8_t *p = out;

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rng_below(ctx, 256);
}

/* Entities "thing <first>" .. and their ids from `id` on. */
static struct names names_make(size_t first, size_t n, uint32_t id)
{
	struct names s = { mem_array(n, sizeof(*s.list)), mem_array(n, sizeof(char *)), n };

	for (size_t i = 0; i < n; i++) {
		s.text[i] = mem_printf("thing %zu", first + i);
		s.list[i] = (struct net_psi_name){ 'e', id + (uint32_t)i, s.text[i],
						   strlen(s.text[i]) };
	}
	return s;
}

static void names_free(struct names *s)
{
	for (size_t i = 0; i < s->n; i++)
		free(s->text[i]);
	free(s->text);
	free(s->list);
}

static struct conv *side(enum net_psi_role role, const struct names *s, struct rng *r,
			 size_t threads)
{
	struct net_psi_config c = { .role = role,
				    .threads = threads,
				    .between = (const uint8_t[NET_PSI_BETWEEN]){ 1 },
				    .draw = draw,
				    .draw_ctx = r };
	struct conv *out = NULL;

	assert_int_equal(net_psi_new(&c, s->list, s->n, &out, NULL), 0);
	return out;
}

/* What a cheat may change on its way from a to b. */
typedef void (*meddle)(uint8_t *kind, struct buf *body);

/* One wish of `from`; true if something moved. */
static bool turn(struct conv *from, struct conv *to, meddle m)
{
	struct conv_message msg;
	struct buf body = { 0 };
	uint8_t kind;

	switch (conv_want(from)) {
	case CONV_WORK:
		from->ops->done(from, from->ops->work(from, NULL));
		return true;
	case CONV_SEND:
		if (conv_want(to) != CONV_RECV && conv_want(to) != CONV_OVER)
			return false;
		msg = from->ops->outgoing(from);
		kind = msg.kind;
		assert_true(msg.len <= NET_CONV_PART_MAX + 64);
		buf_add(&body, msg.base, msg.len);
		if (m != NULL)
			m(&kind, &body);
		to->ops->received(to, kind, body.base, body.len);
		buf_release(&body);
		from->ops->done(from, 0);
		return true;
	default:
		return false;
	}
}

static void play(struct conv *a, struct conv *b, meddle m)
{
	while (turn(a, b, m) || turn(b, a, NULL))
		;
}

struct outcome {
	struct conv *a, *b;
	const struct net_psi_result *ra, *rb;
	struct names x, y;
};

static struct outcome run(size_t first_x, size_t nx, size_t first_y, size_t ny, size_t threads)
{
	struct outcome o;
	struct rng r;

	rng_seed(&r, 11);
	o.x = names_make(first_x, nx, 1000000);
	o.y = names_make(first_y, ny, 0);
	o.a = side(NET_PSI_INITIATOR, &o.x, &r, threads);
	o.b = side(NET_PSI_RESPONDER, &o.y, &r, threads);
	play(o.a, o.b, NULL);
	assert_int_equal(conv_want(o.a), CONV_OVER);
	assert_int_equal(conv_want(o.b), CONV_OVER);
	o.ra = net_psi_result(o.a);
	o.rb = net_psi_result(o.b);
	assert_true(o.ra != NULL && o.rb != NULL);
	return o;
}

static void outcome_free(struct outcome *o)
{
	conv_free(o->a);
	conv_free(o->b);
	names_free(&o->x);
	names_free(&o->y);
}

/* Equal count, digest and order; every slot is the same name on both sides. */
static void check_shared(const struct outcome *o, size_t want)
{
	assert_int_equal(o->ra->n_slots, want);
	assert_int_equal(o->rb->n_slots, want);
	assert_memory_equal(o->ra->digest, o->rb->digest, NET_PSI_DIGEST);
	assert_int_equal(o->ra->n_theirs, o->rb->n_mine);
	assert_int_equal(o->rb->n_theirs, o->ra->n_mine);
	for (size_t i = 0; i < want; i++) {
		assert_string_equal(o->x.text[o->ra->slots[i].id - 1000000],
				    o->y.text[o->rb->slots[i].id]);
		assert_int_equal(o->ra->slots[i].tag, 'e');
	}
}

static void test_sets(void **state)
{
	static const size_t cases[][5] = {
		/* first and number of x, of y, how many shared */
		{ 0, 300, 200, 400, 100 }, { 0, 50, 50, 50, 0 }, { 0, 50, 49, 50, 1 },
		{ 7, 60, 7, 60, 60 },	   { 0, 0, 0, 20, 0 },	 { 0, 20, 0, 0, 0 },
		{ 0, 0, 0, 0, 0 },	   { 0, 1, 0, 1, 1 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		const size_t *c = cases[i];
		struct outcome o = run(c[0], c[1], c[2], c[3], 1 + i % 3);

		check_shared(&o, c[4]);
		outcome_free(&o);
	}
}

/* Slots must not come in the order of the names: that would tell positions. */
static void test_order_says_nothing(void **state)
{
	struct outcome o = run(0, 200, 0, 200, 1);
	size_t rising = 0;

	(void)state;
	for (size_t i = 1; i < 200; i++)
		rising += o.ra->slots[i].id > o.ra->slots[i - 1].id;
	assert_true(rising > 60 && rising < 140);
	outcome_free(&o);
}

static double seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void big(size_t n, size_t threads)
{
	double start = seconds();
	struct outcome o = run(0, n, n / 2, n, threads);

	check_shared(&o, n - n / 2);
	print_message("# %zu names each side, %zu threads: %.2f s for both\n", n, threads,
		      seconds() - start);
	outcome_free(&o);
}

/* More than one step of work and more than one part of points. */
static void test_parts(void **state)
{
	(void)state;
	big(NET_PSI_PART + 100, 2);
}

static void test_hundred_thousand(void **state)
{
	(void)state;
	big(100000, 2);
}

static void test_duplicates_and_tags(void **state)
{
	static const struct net_psi_name x[] = { { 'e', 1, "same", 4 },
						 { 'e', 2, "other", 5 },
						 { 'e', 3, "same", 4 },
						 { 'r', 4, "same", 4 },
						 { 'e', 5, "same", 4 } };
	static const struct net_psi_name y[] = { { 'r', 8, "same", 4 },
						 { 'r', 7, "other", 5 },
						 { 'e', 9, "same", 4 } };
	struct names sx = { (struct net_psi_name *)x, NULL, 5 };
	struct names sy = { (struct net_psi_name *)y, NULL, 3 };
	const struct net_psi_result *ra, *rb;
	struct conv *a, *b;
	struct rng r;

	(void)state;
	rng_seed(&r, 3);
	a = side(NET_PSI_INITIATOR, &sx, &r, 1);
	b = side(NET_PSI_RESPONDER, &sy, &r, 1);
	play(a, b, NULL);
	ra = net_psi_result(a);
	rb = net_psi_result(b);
	assert_int_equal(ra->n_duplicates, 2);
	assert_int_equal(ra->n_mine, 3);
	assert_int_equal(ra->n_slots, 2);
	for (size_t i = 0; i < 2; i++) {
		assert_int_equal(ra->slots[i].tag, rb->slots[i].tag);
		assert_int_equal(ra->slots[i].id, ra->slots[i].tag == 'e' ? 1 : 4);
		assert_int_equal(rb->slots[i].id, rb->slots[i].tag == 'e' ? 9 : 8);
	}
	conv_free(a);
	conv_free(b);
}

static void test_new_refuses(void **state)
{
	char *much = calloc(1, NET_PSI_NAME_MAX + 1);
	struct net_psi_name one = { 'e', 1, much, NET_PSI_NAME_MAX + 1 };
	struct net_psi_config c = { .limit = 2,
				    .between = (const uint8_t[NET_PSI_BETWEEN]){ 1 },
				    .draw = draw };
	struct conv *out = NULL;

	(void)state;
	assert_int_equal(net_psi_new(&c, &one, 1, &out, NULL), ERR_TOOBIG);
	one.len = 0;
	assert_int_equal(net_psi_new(&c, &one, 1, &out, NULL), ERR_INPUT);
	assert_int_equal(net_psi_new(&c, &one, 3, &out, NULL), ERR_TOOBIG);
	assert_null(out);
	free(much);
}

/* ---- cheats: what the initiator's messages become on their way ---- */

static struct buf seen;

static uint8_t *points_in(struct buf *body, size_t *n)
{
	struct net_body o;
	struct err e = { 0 };
	struct net_bytes b;
	uint8_t *at;

	assert_int_equal(net_body_decode(&o, body->base, body->len, &e), 0);
	b = net_get_bin(&o.map, "p", 0, NET_CONV_PART_MAX, &e);
	at = body->base + (b.base - body->base);
	*n = b.len / NET_PSI_POINT;
	net_body_release(&o);
	return at;
}

static void rewrite(struct buf *body, uint64_t i, const uint8_t *points, size_t n)
{
	uint8_t *copy = mem_copy(points, n * NET_PSI_POINT);
	struct net_writer w;

	buf_clear(body);
	net_write_body(&w, body);
	net_put_uint(&w, "i", i);
	net_put_bin(&w, "p", copy, n * NET_PSI_POINT);
	assert_int_equal(net_write_end(&w, NULL), 0);
	free(copy);
}

static void size_is(struct buf *body, uint64_t n)
{
	struct net_writer w;

	buf_clear(body);
	net_write_body(&w, body);
	net_put_uint(&w, "n", n);
	net_write_close(&w);
}

static void no_point(uint8_t *kind, struct buf *body)
{
	size_t n;

	if (*kind == NET_PSI_BLINDED) /* the field's prime: not canonical, and the greatest */
		memset(points_in(body, &n) + (n - 1) * NET_PSI_POINT, 0xff, NET_PSI_POINT);
}

static void identity(uint8_t *kind, struct buf *body)
{
	size_t n;

	if (*kind == NET_PSI_BLINDED)
		memset(points_in(body, &n), 0, NET_PSI_POINT);
}

static void twice(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind == NET_PSI_BLINDED) {
		p = points_in(body, &n);
		memcpy(p + NET_PSI_POINT, p, NET_PSI_POINT);
	}
}

static void one_less(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind == NET_PSI_BLINDED) {
		p = points_in(body, &n);
		rewrite(body, 0, p, n - 1);
	}
}

static void other_place(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind == NET_PSI_BLINDED) {
		p = points_in(body, &n);
		rewrite(body, 1, p, n);
	}
}

static void too_many(uint8_t *kind, struct buf *body)
{
	if (*kind == NET_PSI_SIZE)
		size_is(body, (uint64_t)NET_PSI_LIMIT + 1);
}

static void more_than_sent(uint8_t *kind, struct buf *body)
{
	if (*kind == NET_PSI_SIZE)
		size_is(body, 100);
}

static void double_no_point(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_DOUBLE)
		return;
	p = points_in(body, &n);
	memset(p, 0xff, n * NET_PSI_POINT);
}

static void double_identity(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_DOUBLE)
		return;
	p = points_in(body, &n);
	memset(p, 0, n * NET_PSI_POINT);
}

static void no_point_as_check(uint8_t *kind, struct buf *body)
{
	size_t n;

	if (*kind == NET_PSI_CHECK)
		memset(points_in(body, &n), 0xff, NET_PSI_POINT);
}

static void identity_as_check(uint8_t *kind, struct buf *body)
{
	size_t n;

	if (*kind == NET_PSI_CHECK)
		memset(points_in(body, &n), 0, NET_PSI_POINT);
}

/* Points, but not the answers. */
static void double_others(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_DOUBLE)
		return;
	p = points_in(body, &n);
	for (size_t i = 0; i < n; i++)
		crypto_core_ristretto255_random(p + i * NET_PSI_POINT);
}

static void wrong_digest(uint8_t *kind, struct buf *body)
{
	if (*kind == NET_PSI_CONFIRM)
		body->base[body->len - 1] ^= 1;
}

static void out_of_turn(uint8_t *kind, struct buf *body)
{
	(void)body;
	if (*kind == NET_PSI_BLINDED)
		*kind = NET_PSI_CONFIRM;
}

static void garbage(uint8_t *kind, struct buf *body)
{
	if (*kind == NET_PSI_BLINDED)
		memset(body->base, 0xc1, body->len);
}

static void test_cheats(void **state)
{
	static const struct {
		meddle how;
		int code;
		const char *word;
	} cases[] = {
		{ no_point, ERR_PROTO, "no point" },
		{ identity, ERR_PROTO, "no point" },
		{ twice, ERR_PROTO, "increasing" },
		{ one_less, ERR_PROTO, "'p'" },
		{ other_place, ERR_PROTO, "'i'" },
		{ too_many, ERR_TOOBIG, "at most" },
		{ more_than_sent, ERR_PROTO, "'p'" },
		{ double_no_point, ERR_PROTO, "agree" },
		{ double_identity, ERR_PROTO, "agree" },
		{ double_others, ERR_PROTO, "agree" },
		{ no_point_as_check, ERR_PROTO, "no point" },
		{ identity_as_check, ERR_PROTO, "no point" },
		{ wrong_digest, ERR_PROTO, "agree" },
		{ out_of_turn, ERR_PROTO, "turn" },
		{ garbage, ERR_PROTO, "msgpack" },
	};
	struct names x = names_make(0, 20, 1000000), y = names_make(10, 20, 0);

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err e = { 0 };
		struct rng r;
		struct conv *a, *b;

		rng_seed(&r, 5);
		a = side(NET_PSI_INITIATOR, &x, &r, 1);
		b = side(NET_PSI_RESPONDER, &y, &r, 1);
		play(a, b, cases[i].how);
		assert_int_equal(conv_want(b), CONV_OVER);
		if (b->ops->status(b, &e) != cases[i].code || strstr(e.text, cases[i].word) == NULL)
			fail_msg("case %zu: %d %s", i, e.code, e.text);
		assert_null(net_psi_result(b));
		conv_free(a);
		conv_free(b);
	}
	names_free(&x);
	names_free(&y);
}

static void keep_double(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_DOUBLE)
		return;
	p = points_in(body, &n);
	buf_add(&seen, p, n * NET_PSI_POINT);
}

/* Values that the other side takes for names that both have. */
static void copy_double(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_DOUBLE)
		return;
	p = points_in(body, &n);
	memcpy(p, seen.base, n * NET_PSI_POINT < seen.len ? n * NET_PSI_POINT : seen.len);
}

/* Two answers in each other's place: each is one of the other side's values. */
static void swap_double(uint8_t *kind, struct buf *body)
{
	uint8_t first[NET_PSI_POINT];
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_DOUBLE)
		return;
	p = points_in(body, &n);
	assert_true(n > 1);
	memcpy(first, p, sizeof(first));
	memcpy(p, p + NET_PSI_POINT, sizeof(first));
	memcpy(p + NET_PSI_POINT, first, sizeof(first));
}

/* One value for two names. */
static void double_twice(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_DOUBLE)
		return;
	p = points_in(body, &n);
	assert_true(n > 1);
	memcpy(p + NET_PSI_POINT, p, NET_PSI_POINT);
}

static void answer_other(uint8_t *kind, struct buf *body)
{
	size_t n;

	if (*kind == NET_PSI_ANSWER)
		crypto_core_ristretto255_random(points_in(body, &n));
}

struct false_case {
	meddle ours, theirs;
	bool of_initiator; /* the false ones */
	bool same_names;
};

static void run_false(const struct false_case *c, size_t names)
{
	struct names x = names_make(0, names, 1000000);
	struct names y = c->same_names ? names_make(0, names, 0) : names_make(1, 5, 0);
	struct err e = { 0 };
	struct rng r;
	struct conv *a, *b, *honest;

	rng_seed(&r, 5 + names);
	a = side(NET_PSI_INITIATOR, &x, &r, 1);
	b = side(NET_PSI_RESPONDER, &y, &r, 1);
	honest = c->of_initiator ? b : a;
	while (turn(a, b, c->ours) || turn(b, a, c->theirs))
		;
	assert_int_equal(honest->ops->status(honest, &e), ERR_PROTO);
	assert_non_null(strstr(e.text, "answers are not"));
	assert_null(net_psi_result(honest));
	conv_free(a);
	conv_free(b);
	names_free(&x);
	names_free(&y);
}

/* Names that only one side has, as shared ones, and shared ones in each other's place: who answers
 * with what it was answered, with the answer to another name, or gives a false ANSWER.  The
 * initiator's own answers do not leave then. */
static void test_false_answers(void **state)
{
	static const struct false_case cases[] = {
		{ copy_double, keep_double, true, false },
		{ swap_double, NULL, true, true },
		{ double_twice, NULL, true, true },
		{ answer_other, NULL, true, true },
		{ keep_double, swap_double, false, true },
		{ keep_double, double_twice, false, true },
		{ keep_double, answer_other, false, true },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		for (size_t names = cases[i].same_names ? 2 : 1; names < 6; names++) {
			run_false(&cases[i], names);
			assert_true(cases[i].of_initiator || seen.len == 0);
			buf_release(&seen);
		}
}

/* Between others the same names are other points, and nothing is shared. */
static void test_between_others(void **state)
{
	struct names x = names_make(0, 5, 1000000);
	struct net_psi_config c = { .role = NET_PSI_RESPONDER,
				    .between = (const uint8_t[NET_PSI_BETWEEN]){ 2 },
				    .draw = draw };
	struct conv *a, *b = NULL;
	struct rng r;

	(void)state;
	rng_seed(&r, 5);
	c.draw_ctx = &r;
	a = side(NET_PSI_INITIATOR, &x, &r, 1);
	assert_int_equal(net_psi_new(&c, x.list, x.n, &b, NULL), 0);
	play(a, b, NULL);
	assert_non_null(net_psi_result(a));
	assert_int_equal(net_psi_result(a)->n_slots, 0);
	assert_int_equal(net_psi_result(b)->n_slots, 0);
	conv_free(a);
	conv_free(b);
	names_free(&x);
}

static void keep_check(uint8_t *kind, struct buf *body)
{
	size_t n;
	uint8_t *p;

	if (*kind != NET_PSI_CHECK)
		return;
	p = points_in(body, &n);
	assert_int_equal(crypto_core_ristretto255_is_valid_point(p), 1);
	assert_false(sodium_is_zero(p, NET_PSI_POINT));
	buf_add(&seen, p, NET_PSI_POINT);
}

/* CHECK is a fresh point: where names are shared, and where none is, for both sides and in each
 * comparison. */
static void test_check_is_fresh(void **state)
{
	struct rng r;
	size_t n;

	(void)state;
	rng_seed(&r, 5);
	for (size_t k = 0; k < 6; k++) {
		struct names x = names_make(0, 3, 1000000), y = names_make(k % 2 * 3, 3, 0);
		struct conv *a = side(NET_PSI_INITIATOR, &x, &r, 1);
		struct conv *b = side(NET_PSI_RESPONDER, &y, &r, 1);

		while (turn(a, b, keep_check) || turn(b, a, keep_check))
			;
		assert_non_null(net_psi_result(a));
		assert_int_equal(net_psi_result(b)->n_slots, k % 2 == 0 ? 3 : 0);
		conv_free(a);
		conv_free(b);
		names_free(&x);
		names_free(&y);
	}
	n = seen.len / NET_PSI_POINT;
	assert_int_equal(n, 12);
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(seen.base + i * NET_PSI_POINT,
						seen.base + k * NET_PSI_POINT, NET_PSI_POINT);
	buf_release(&seen);
}

/* Both sides draw the same scalar: the points of one are those of the other. */
static void test_own_points_back(void **state)
{
	struct names x = names_make(0, 5, 1000000);
	struct rng r, same;
	struct conv *a, *b;
	struct err e = { 0 };

	(void)state;
	rng_seed(&r, 5);
	same = r;
	a = side(NET_PSI_INITIATOR, &x, &r, 1);
	b = side(NET_PSI_RESPONDER, &x, &same, 1);
	play(a, b, NULL);
	assert_int_equal(a->ops->status(a, &e), ERR_PROTO);
	assert_non_null(strstr(e.text, "own points"));
	conv_free(a);
	conv_free(b);
	names_free(&x);
}

static void keep_confirm(uint8_t *kind, struct buf *body)
{
	if (*kind == NET_PSI_CONFIRM)
		buf_add(&seen, body->base, body->len);
}

static void answer_with_kept(uint8_t *kind, struct buf *body)
{
	if (*kind == NET_PSI_CONFIRM) {
		buf_clear(body);
		buf_add(body, seen.base, seen.len);
	}
}

/* A responder that has no digest of its own sends back the one it was sent. */
static void test_confirm_echoed(void **state)
{
	struct names x = names_make(0, 5, 1000000), y = names_make(2, 5, 0);
	struct rng r;
	struct conv *a, *b;

	(void)state;
	rng_seed(&r, 5);
	a = side(NET_PSI_INITIATOR, &x, &r, 1);
	b = side(NET_PSI_RESPONDER, &y, &r, 1);
	while (turn(a, b, keep_confirm) || turn(b, a, answer_with_kept))
		;
	assert_true(seen.len > 0);
	assert_int_equal(a->ops->status(a, NULL), ERR_PROTO);
	conv_free(a);
	conv_free(b);
	names_free(&x);
	names_free(&y);
	buf_release(&seen);
}

static void test_cancelled(void **state)
{
	struct names x = names_make(0, 5, 0);
	struct rng r;
	struct conv *a;

	(void)state;
	rng_seed(&r, 5);
	a = side(NET_PSI_INITIATOR, &x, &r, 1);
	assert_int_equal(conv_want(a), CONV_WORK);
	a->ops->done(a, ERR_CANCELED);
	assert_int_equal(conv_want(a), CONV_OVER);
	assert_int_equal(a->ops->status(a, NULL), ERR_CANCELED);
	conv_free(a);
	names_free(&x);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest quick[] = {
		cmocka_unit_test(test_sets),	       cmocka_unit_test(test_order_says_nothing),
		cmocka_unit_test(test_parts),	       cmocka_unit_test(test_duplicates_and_tags),
		cmocka_unit_test(test_new_refuses),    cmocka_unit_test(test_cheats),
		cmocka_unit_test(test_false_answers),  cmocka_unit_test(test_check_is_fresh),
		cmocka_unit_test(test_between_others), cmocka_unit_test(test_own_points_back),
		cmocka_unit_test(test_confirm_echoed), cmocka_unit_test(test_cancelled),
	};
	const struct CMUnitTest slow[] = { cmocka_unit_test(test_hundred_thousand) };

	if (sodium_init() < 0)
		return 1;
	if (argc > 1 && strcmp(argv[1], "slow") == 0)
		return cmocka_run_group_tests(slow, NULL, NULL);
	return cmocka_run_group_tests(quick, NULL, NULL);
}
