/* A peer of the intersection that computes what it sends by itself, and sees all that it may: what
 * an honest side (net/psi.h) then takes for shared, and what it lets go of. */
#include "tests/test.h"

#include <sodium.h>

#include "base/rng.h"
#include "net/msg.h"
#include "net/psi.h"

enum { NAMES = 5, SCALAR = crypto_core_ristretto255_SCALARBYTES };

typedef uint8_t point[NET_PSI_POINT];

/* The honest side, and what it said. */
struct honest {
	struct conv *conv;
	size_t n_said;
	point blinded[NAMES], doubled[NAMES], check, answer;
	bool has_doubled, has_answer;
};

static const char *const texts[] = { "one", "two", "three", "four", "five" };

static const uint8_t between[NET_PSI_BETWEEN] = { 1 };

static void draw_seeded(void *ctx, void *out, size_t n)
{
	uint8_t *p = out;

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)rng_below(ctx, 256);
}

static void honest_init(struct honest *h, enum net_psi_role role, size_t n, struct rng *r)
{
	struct net_psi_config c = {
		.role = role, .between = between, .draw = draw_seeded, .draw_ctx = r
	};
	struct net_psi_name names[NAMES];

	*h = (struct honest){ 0 };
	for (size_t i = 0; i < n; i++)
		names[i] = (struct net_psi_name){ 'e', (uint32_t)i, texts[i], strlen(texts[i]) };
	assert_int_equal(net_psi_new(&c, names, n, &h->conv, NULL), 0);
}

/* ---- points of the liar's ---- */

/* As net/psi.c maps names. */
static void map_name(const char *text, point out)
{
	static const uint8_t salt[crypto_generichash_blake2b_SALTBYTES];
	static const uint8_t domain[crypto_generichash_blake2b_PERSONALBYTES] = "fkge psi 1";
	uint8_t h[crypto_core_ristretto255_HASHBYTES], in[32] = { 'e' };
	size_t n = strlen(text);

	memcpy(in + 1, text, n);
	crypto_generichash_blake2b_salt_personal(h, sizeof(h), in, 1 + n, between, sizeof(between),
						 salt, domain);
	crypto_core_ristretto255_from_hash(out, h);
}

/* out = k p, with k of a small number */
static void multiply_by(unsigned k, const uint8_t *p, point out)
{
	uint8_t s[SCALAR] = { (uint8_t)k };

	assert_int_equal(crypto_scalarmult_ristretto255(out, s, p), 0);
}

static int points_ascending(const void *a, const void *b)
{
	return memcmp(a, b, NET_PSI_POINT);
}

/* ---- messages ---- */

static void say_size(struct honest *h, uint64_t n)
{
	struct buf body = { 0 };
	struct net_writer w;

	net_write_body(&w, &body);
	net_put_uint(&w, "n", n);
	net_write_close(&w);
	h->conv->ops->received(h->conv, NET_PSI_SIZE, body.base, body.len);
	buf_release(&body);
}

static void say_points(struct honest *h, uint8_t kind, const void *p, size_t n)
{
	struct buf body = { 0 };
	struct net_writer w;

	net_write_body(&w, &body);
	if (kind == NET_PSI_BLINDED || kind == NET_PSI_DOUBLE)
		net_put_uint(&w, "i", 0);
	net_put_bin(&w, "p", p, n * NET_PSI_POINT);
	net_write_close(&w);
	h->conv->ops->received(h->conv, kind, body.base, body.len);
	buf_release(&body);
}

static void take_points(const struct conv_message *m, point *out)
{
	struct net_body o;
	struct err e = { 0 };
	struct net_bytes b;

	assert_int_equal(net_body_decode(&o, m->base, m->len, &e), 0);
	b = net_get_bin(&o.map, "p", 0, NAMES * NET_PSI_POINT, &e);
	assert_int_equal(e.code, 0);
	memcpy(out, b.base, b.len);
	net_body_release(&o);
}

/* Until the honest side waits for the liar, or is done with it. */
static void hear_honest(struct honest *h)
{
	while (conv_want(h->conv) == CONV_WORK || conv_want(h->conv) == CONV_SEND) {
		struct conv_message m;

		if (conv_want(h->conv) == CONV_WORK) {
			h->conv->ops->done(h->conv, h->conv->ops->work(h->conv, NULL));
			continue;
		}
		m = h->conv->ops->outgoing(h->conv);
		h->n_said++;
		h->has_doubled = h->has_doubled || m.kind == NET_PSI_DOUBLE;
		h->has_answer = h->has_answer || m.kind == NET_PSI_ANSWER;
		if (m.kind == NET_PSI_BLINDED)
			take_points(&m, h->blinded);
		else if (m.kind == NET_PSI_DOUBLE)
			take_points(&m, h->doubled);
		else if (m.kind == NET_PSI_CHECK)
			take_points(&m, &h->check);
		else if (m.kind == NET_PSI_ANSWER)
			take_points(&m, &h->answer);
		h->conv->ops->done(h->conv, 0);
	}
}

static void assert_refused(struct honest *h, const char *word)
{
	struct err e = { 0 };

	assert_int_equal(h->conv->ops->status(h->conv, &e), ERR_PROTO);
	if (strstr(e.text, word) == NULL)
		fail_msg("%s, not %s", e.text, word);
	assert_null(net_psi_result(h->conv));
}

static struct rng liar_rng(uint64_t seed)
{
	struct rng r;

	rng_seed(&r, seed);
	return r;
}

/* ---- the honest side begins ---- */

/* A liar that responds: its points, sorted here, and its answers. */
static void respond(struct honest *h, point *own, size_t n_own, const void *answers, size_t n)
{
	qsort(own, n_own, sizeof(*own), points_ascending);
	say_points(h, NET_PSI_BLINDED, own, n_own);
	hear_honest(h);
	say_points(h, NET_PSI_DOUBLE, answers, n);
	hear_honest(h);
}

static void meet_initiator(struct honest *h, size_t n, size_t n_theirs, struct rng *r)
{
	honest_init(h, NET_PSI_INITIATOR, n, r);
	hear_honest(h);
	say_size(h, n_theirs);
	hear_honest(h);
}

/* It sends the honest side's points back, each by a number: whatever it answers, nothing seems
 * shared, and when it holds what it should have answered it is too late for answers. */
static void test_multiples_sent_back(void **state)
{
	(void)state;
	for (unsigned how = 0; how < 3; how++) {
		struct rng r = liar_rng(5 + how);
		struct honest h;
		point own[NAMES], answers[NAMES];

		meet_initiator(&h, NAMES, NAMES, &r);
		for (size_t i = 0; i < NAMES; i++) {
			multiply_by(3, h.blinded[i], own[i]);
			multiply_by(how == 0 ? 3 : 9, h.blinded[i], answers[i]);
			if (how == 2)
				map_name(texts[i], answers[i]);
		}
		respond(&h, own, NAMES, answers, NAMES);
		assert_false(h.has_doubled);
		say_points(&h, NET_PSI_ANSWER, &h.check, 1);
		hear_honest(&h);
		assert_true(h.has_doubled);
		say_points(&h, NET_PSI_DOUBLE, h.doubled, NAMES);
		assert_refused(&h, "turn");
		conv_free(h.conv);
	}
}

/* One name is truly shared.  The liar has many multiples of it among its points, and gives the
 * answer to that name, each by its own number, for all names: it guesses which of the points that
 * name's is.  No more than that one is ever taken. */
static void multiples_of_one(size_t guess, bool alone, unsigned answer, struct rng *r, size_t *hits)
{
	struct honest h;
	point own[NAMES], answers[NAMES], last, one;
	const struct net_psi_result *res;

	meet_initiator(&h, NAMES, NAMES, r);
	map_name(texts[2], one);
	for (unsigned i = 0; i < NAMES; i++) {
		multiply_by(2 + i, one, own[i]);
		multiply_by(2 + i, h.blinded[guess], answers[i]);
		if (alone && i != (guess + 1) % NAMES)
			memset(answers[i], 0xff, sizeof(answers[i]));
	}
	respond(&h, own, NAMES, answers, NAMES);
	multiply_by(answer, h.check, last);
	say_points(&h, NET_PSI_ANSWER, &last, 1);
	hear_honest(&h);
	res = net_psi_result(h.conv);
	assert_null(res);
	if (h.conv->ops->status(h.conv, NULL) != 0) {
		assert_refused(&h, "answers are not");
		assert_false(h.has_doubled);
		++*hits;
	}
	conv_free(h.conv);
}

static void test_multiples_of_one_name(void **state)
{
	(void)state;
	for (int alone = 0; alone < 2; alone++)
		for (unsigned answer = 1; answer < 8; answer++) {
			size_t hits = 0;

			for (size_t guess = 0; guess < NAMES; guess++) {
				struct rng r = liar_rng(5);

				multiples_of_one(guess, alone == 1, answer, &r, &hits);
			}
			assert_int_equal(hits, 1); /* of the guesses one is right, and refused */
		}
}

/* ---- the honest side responds ---- */

/* Until its DOUBLE is here. */
static void meet_responder(struct honest *h, size_t n, point *own, size_t n_own, struct rng *r)
{
	honest_init(h, NET_PSI_RESPONDER, n, r);
	hear_honest(h);
	say_size(h, n_own);
	hear_honest(h);
	qsort(own, n_own, sizeof(*own), points_ascending);
	say_points(h, NET_PSI_BLINDED, own, n_own);
	hear_honest(h);
	assert_true(h->has_doubled);
}

/* What a liar can make of all that it holds when it has to answer the last. */
static void last_answers(const struct honest *h, const void *own, point *out)
{
	memcpy(out[0], h->check, NET_PSI_POINT);
	memcpy(out[1], h->answer, NET_PSI_POINT);
	memcpy(out[2], h->doubled[0], NET_PSI_POINT);
	memcpy(out[3], h->blinded[0], NET_PSI_POINT);
	memcpy(out[4], own, NET_PSI_POINT);
	multiply_by(3, h->check, out[5]);
	crypto_core_ristretto255_add(out[6], h->check, h->answer);
	memset(out[7], 0, NET_PSI_POINT);
}

/* The first name of the honest side that the liar has not. */
static size_t not_shared(const struct honest *h)
{
	for (size_t k = 0; k < NAMES; k++)
		if (points_ascending(h->blinded[0], h->doubled[k]) == 0)
			return 1;
	return 0;
}

/* It gives values that it was given for names that it has not; before that, CHECK told it one point
 * of its choice by the honest side's secret. */
static void given_values(size_t n, unsigned ask, unsigned last, bool one)
{
	struct rng r = liar_rng(9 + n);
	struct honest h;
	point own[NAMES], give[NAMES], end[8];

	for (unsigned i = 0; i < NAMES; i++) {
		map_name("one", own[i]); /* which the honest side has */
		multiply_by(i + 1, own[i], own[i]);
	}
	meet_responder(&h, n, own, NAMES, &r);
	say_points(&h, NET_PSI_CHECK,
		   ask == 0   ? &h.blinded[0]
		   : ask == 1 ? &h.doubled[1]
			      : &own[0],
		   1);
	hear_honest(&h);
	assert_true(h.has_answer);
	memcpy(give, h.doubled, sizeof(give));
	for (size_t i = 0, k = not_shared(&h); one && i < n; i++)
		if (i != k)
			crypto_core_ristretto255_random(give[i]);
	say_points(&h, NET_PSI_DOUBLE, give, n);
	hear_honest(&h);
	last_answers(&h, own, end);
	say_points(&h, NET_PSI_ANSWER, &end[last], 1);
	assert_refused(&h, "answers are not");
	conv_free(h.conv);
}

/* With one name alone it is the one that the liar has, too: it is not lied about. */
static void test_given_values(void **state)
{
	(void)state;
	for (size_t n = 2; n <= NAMES; n++)
		for (unsigned ask = 0; ask < 3; ask++)
			for (unsigned last = 0; last < 8; last++) {
				given_values(n, ask, last, false);
				given_values(n, ask, last, true);
			}
}

/* The answer to CHECK is no answer that can be given on: it is none of the points that count. */
static void test_check_is_no_answer(void **state)
{
	struct rng r = liar_rng(7);
	struct honest h;
	point own, give[NAMES], two;

	(void)state;
	map_name("elsewhere", own);
	map_name("two", two);
	meet_responder(&h, NAMES, &own, 1, &r);
	say_points(&h, NET_PSI_CHECK, &two, 1);
	hear_honest(&h);
	for (size_t i = 0; i < NAMES; i++)
		memcpy(give[i], h.answer, NET_PSI_POINT);
	say_points(&h, NET_PSI_DOUBLE, give, NAMES);
	hear_honest(&h);
	say_points(&h, NET_PSI_ANSWER, &h.check, 1); /* nothing seems shared: nothing is tested */
	assert_int_equal(h.conv->ops->status(h.conv, NULL), 0);
	assert_int_equal(conv_want(h.conv), CONV_RECV);
	say_points(&h, NET_PSI_CHECK, &two, 1);
	assert_refused(&h, "turn");
	conv_free(h.conv);
}

/* ---- what stays open: docs/THREAT-MODEL.md, "Names" ---- */

/* CONFIRM of a responder with one slot of this value, an entity's. */
static void say_one_slot(struct honest *h, const uint8_t *value)
{
	uint8_t n[8] = { 1 }, in[1 + NET_PSI_DIGEST] = { NET_PSI_RESPONDER }, out[NET_PSI_DIGEST];
	crypto_generichash_state st;
	struct buf body = { 0 };
	struct net_writer w;

	crypto_generichash_init(&st, (const uint8_t *)"fkge psi slots 1", 16, NET_PSI_DIGEST);
	crypto_generichash_update(&st, n, sizeof(n));
	crypto_generichash_update(&st, value, NET_PSI_POINT);
	crypto_generichash_update(&st, (const uint8_t *)"e", 1);
	crypto_generichash_final(&st, in + 1, NET_PSI_DIGEST);
	crypto_generichash(out, sizeof(out), in, sizeof(in), (const uint8_t *)"fkge psi confirm",
			   16);
	net_write_body(&w, &body);
	net_put_uint(&w, "n", 1);
	net_put_bin(&w, "d", out, sizeof(out));
	net_write_close(&w);
	h->conv->ops->received(h->conv, NET_PSI_CONFIRM, body.base, body.len);
	buf_release(&body);
}

/* Which of the honest side's points this value is, by a number; NAMES: none. */
static size_t place_of(const struct honest *h, unsigned k, const uint8_t *value)
{
	point q;

	for (size_t i = 0; i < NAMES; i++) {
		multiply_by(k, h->blinded[i], q);
		if (points_ascending(q, value) == 0)
			return i;
	}
	return NAMES;
}

/* By two secrets: one name is seen by both, another by the liar alone. */
static void test_one_is_hidden(void **state)
{
	struct rng r = liar_rng(6);
	struct honest h;
	point own[2], answers[NAMES], last, seen;
	size_t at[2];

	(void)state;
	meet_initiator(&h, NAMES, 2, &r);
	map_name("one", own[0]);
	map_name("two", own[1]);
	multiply_by(3, own[0], own[0]);
	multiply_by(7, own[1], own[1]);
	for (size_t i = 0; i < NAMES; i++)
		multiply_by(3, h.blinded[i], answers[i]);
	respond(&h, own, 2, answers, NAMES);
	multiply_by(3, h.check, last);
	say_points(&h, NET_PSI_ANSWER, last, 1);
	hear_honest(&h);
	assert_true(h.has_doubled);
	for (unsigned i = 0; i < 2; i++) /* of its points the one that is seen may be either */
		at[i] = place_of(&h, 3, h.doubled[i]) + place_of(&h, 7, h.doubled[i]) - NAMES;
	assert_true(at[0] < NAMES && at[1] < NAMES && at[0] != at[1]);
	multiply_by(3, h.blinded[place_of(&h, 3, h.doubled[0]) < NAMES ? at[0] : at[1]], seen);
	say_points(&h, NET_PSI_CHECK, last, 1);
	hear_honest(&h);
	say_one_slot(&h, seen);
	assert_int_equal(h.conv->ops->status(h.conv, NULL), 0);
	assert_int_equal(net_psi_result(h.conv)->n_slots, 1);
	conv_free(h.conv);
}

/* CHECK is a guess more than the set's size says, and nobody sees it. */
static void test_check_is_a_guess(void **state)
{
	struct rng r = liar_rng(6);
	struct honest h;
	point own, guess;
	size_t hits = 0;

	(void)state;
	map_name("one", own);
	map_name("two", guess);
	meet_responder(&h, NAMES, &own, 1, &r);
	say_points(&h, NET_PSI_CHECK, guess, 1);
	hear_honest(&h);
	for (size_t i = 0; i < NAMES; i++)
		hits += points_ascending(h.blinded[i], h.answer) == 0;
	assert_int_equal(hits, 1);
	conv_free(h.conv);
}

/* ---- out of turn ---- */

/* CHECK is answered once; by the initiator, only when the test of the other's answers is over. */
static void test_check_once(void **state)
{
	struct rng r = liar_rng(8);
	struct honest h;
	point own, give[NAMES];

	(void)state;
	map_name("one", own);
	meet_responder(&h, NAMES, &own, 1, &r);
	say_points(&h, NET_PSI_CHECK, &own, 1);
	hear_honest(&h);
	say_points(&h, NET_PSI_CHECK, &own, 1);
	assert_refused(&h, "turn");
	conv_free(h.conv);
	meet_initiator(&h, NAMES, 1, &r);
	memcpy(give, h.blinded, sizeof(give));
	respond(&h, &own, 1, give, NAMES);
	h.has_answer = false;
	say_points(&h, NET_PSI_CHECK, &h.check, 1);
	assert_refused(&h, "turn");
	assert_false(h.has_answer || h.has_doubled);
	conv_free(h.conv);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_multiples_sent_back),
		cmocka_unit_test(test_multiples_of_one_name),
		cmocka_unit_test(test_given_values),
		cmocka_unit_test(test_check_is_no_answer),
		cmocka_unit_test(test_one_is_hidden),
		cmocka_unit_test(test_check_is_a_guess),
		cmocka_unit_test(test_check_once),
	};

	return sodium_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
