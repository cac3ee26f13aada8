/* Names (methods 6, docs/THREAT-MODEL.md): a plain hash falls to a dictionary; the messages of
 * private set intersection do not, beyond what is shared.  A partner who puts the dictionary
 * into its own set learns which words are in ours, as with any such protocol: its size shows. */
#include "tests/test.h"

#include <sodium.h>

#include "audit/wire.h"
#include "base/driver.h"
#include "base/mem.h"
#include "base/rng.h"
#include "net/msg.h"
#include "net/psi.h"

enum { WORDS = 400, OURS = 60, THEIRS = 20, SHARED = 5, POINT = NET_PSI_POINT };

/* The dictionary: names that anybody can think of.  We have every sixth; the
 * attacker has SHARED of ours and others. */
static char word[WORDS][24];

static void fill_dictionary(void)
{
	for (size_t i = 0; i < WORDS; i++)
		snprintf(word[i], sizeof(word[i]), "drug %zu", i);
}

static size_t ours(size_t k)
{
	return k * 6;
}

static size_t theirs(size_t k)
{
	return k < SHARED ? ours(k) : 6 * k + 1;
}

static struct net_psi_name name_of(size_t w)
{
	return (struct net_psi_name){ 'e', (uint32_t)w, word[w], strlen(word[w]) };
}

/* ---- a plain hash ---- */

static void hash_of(size_t w, uint8_t out[32])
{
	crypto_generichash(out, 32, (const uint8_t *)word[w], strlen(word[w]), NULL, 0);
}

/* ATTACK: all of the names that were sent "hashed". */
static void a_plain_hash_falls(void **state)
{
	(void)state;
	uint8_t sent[OURS][32], guess[32];
	size_t found = 0;
	for (size_t k = 0; k < OURS; k++)
		hash_of(ours(k), sent[k]);
	for (size_t w = 0; w < WORDS; w++) {
		hash_of(w, guess);
		for (size_t k = 0; k < OURS; k++)
			found += memcmp(guess, sent[k], 32) == 0;
	}
	assert_int_equal(found, OURS);
}

/* ---- the intersection, with the attacker as responder ---- */

/* The attacker's secret is its own: what was drawn is kept. */
struct secret {
	struct rng rng;
	uint8_t wide[64];
	bool none; /* the scalar 1: points are sent bare */
};

static void draw_and_keep(void *ctx, void *out, size_t n)
{
	struct secret *s = ctx;
	struct nn_draw d = nn_draw_seeded(&s->rng);
	d.fn(d.ctx, out, n);
	if (s->none)
		memset(out, 0, n);
	if (s->none && n > 0)
		*(uint8_t *)out = 1;
	if (n == sizeof(s->wide))
		memcpy(s->wide, out, n);
}

/* Every point that the attacker has seen. */
struct points {
	uint8_t (*at)[POINT];
	size_t n;
};

static void see(void *ctx, uint8_t kind, const uint8_t *body, size_t len)
{
	struct points *p = ctx;
	struct net_body b;
	struct err e = { 0 };
	if (kind == NET_PSI_SIZE || kind == NET_PSI_CONFIRM)
		return;
	assert_int_equal(net_body_decode(&b, body, len, &e), 0);
	struct net_bytes raw = net_get_bin(&b.map, "p", 0, NET_CONV_PART_MAX, &e);
	p->at = mem_resize(p->at, p->n + raw.len / POINT + 1, POINT);
	memcpy(p->at + p->n, raw.base, raw.len);
	p->n += raw.len / POINT;
	net_body_release(&b);
}

static bool seen(const struct points *p, const uint8_t q[POINT])
{
	for (size_t i = 0; i < p->n; i++)
		if (memcmp(p->at[i], q, POINT) == 0)
			return true;
	return false;
}

static const uint8_t between[NET_PSI_BETWEEN] = { 1 };

/* H(w) as net/psi.c has it: the attacker reads the source. */
static void point_of(size_t w, uint8_t out[POINT])
{
	static const uint8_t salt[crypto_generichash_blake2b_SALTBYTES];
	static const uint8_t domain[crypto_generichash_blake2b_PERSONALBYTES] = "fkge psi 1";
	uint8_t tagged[32] = { 'e' }, h[crypto_core_ristretto255_HASHBYTES];
	memcpy(tagged + 1, word[w], strlen(word[w]));
	crypto_generichash_blake2b_salt_personal(h, sizeof(h), tagged, strlen(word[w]) + 1, between,
						 sizeof(between), salt, domain);
	crypto_core_ristretto255_from_hash(out, h);
}

struct session {
	struct conv *us, *them;
	struct driver d;
	struct secret ours, theirs;
	const struct net_psi_result *ru, *rt;
};

static void play(struct session *s, const struct net_psi_name *x, size_t nx,
		 const struct net_psi_name *y, size_t ny, bool bare)
{
	memset(s, 0, sizeof(*s));
	s->ours.none = bare;
	rng_seed(&s->ours.rng, 1);
	rng_seed(&s->theirs.rng, 2);
	struct net_psi_config a = { .role = NET_PSI_INITIATOR,
				    .between = between,
				    .draw = draw_and_keep,
				    .draw_ctx = &s->ours };
	struct net_psi_config b = { .role = NET_PSI_RESPONDER,
				    .between = between,
				    .draw = draw_and_keep,
				    .draw_ctx = &s->theirs };
	assert_int_equal(net_psi_new(&a, x, nx, &s->us, NULL), 0);
	assert_int_equal(net_psi_new(&b, y, ny, &s->them, NULL), 0);
	driver_run(&s->d, s->us, s->them);
	assert_true(s->d.both_over);
	s->ru = net_psi_result(s->us);
	s->rt = net_psi_result(s->them);
	assert_true(s->ru != NULL && s->rt != NULL);
}

static void session_release(struct session *s)
{
	conv_free(s->us);
	conv_free(s->them);
	driver_release(&s->d);
}

/* For each word: is its point, or that point under the attacker's scalar, or what it received
 * under that scalar, among the points that it received?  Counts words that are ours. */
static size_t dictionary_hits(const struct session *s, const struct points *p)
{
	uint8_t scalar[crypto_core_ristretto255_SCALARBYTES], h[POINT], bh[POINT];
	size_t hits = 0;
	crypto_core_ristretto255_scalar_reduce(scalar, s->theirs.wide);
	for (size_t w = 0; w < WORDS; w++) {
		point_of(w, h);
		assert_int_equal(crypto_scalarmult_ristretto255(bh, scalar, h), 0);
		hits += seen(p, h) || seen(p, bh);
	}
	return hits;
}

/* What the attacker can link: points under both scalars that came in two ways. */
static size_t linked(const struct session *s, const struct points *p)
{
	uint8_t scalar[crypto_core_ristretto255_SCALARBYTES], q[POINT];
	size_t n = 0;
	crypto_core_ristretto255_scalar_reduce(scalar, s->theirs.wide);
	for (size_t i = 0; i < p->n; i++)
		if (crypto_scalarmult_ristretto255(q, scalar, p->at[i]) == 0)
			n += seen(p, q);
	return n;
}

/* Words that the attacker finds in the messages, with 20 names of its own, 5 of them ours. */
static size_t words_found(bool bare)
{
	struct net_psi_name x[OURS], y[THEIRS];
	struct points p = { 0 };
	struct session s;
	for (size_t k = 0; k < OURS; k++)
		x[k] = name_of(ours(k));
	for (size_t k = 0; k < THEIRS; k++)
		y[k] = name_of(theirs(k));
	play(&s, x, OURS, y, THEIRS, bare);
	audit_wire_each(&s.d.received[1], see, &p);
	assert_int_equal(p.n, OURS + THEIRS + 2); /* aH(x), a of its own points, CHECK and ANSWER */
	size_t found = dictionary_hits(&s, &p);
	if (!bare)
		assert_int_equal(linked(&s, &p), SHARED);
	assert_int_equal(s.rt->n_slots, SHARED);
	free(p.at);
	session_release(&s);
	return found;
}

/* PROTECTED: of 60 names the attacker has learned the 5 that both have.  Without our secret
 * scalar the same search finds all of them, and its own. */
static void the_intersection_does_not(void **state)
{
	(void)state;
	assert_int_equal(words_found(false), 0);
	assert_true(words_found(true) >= OURS);
}

/* ATTACK, and its trace: a partner with the whole dictionary in its set. */
static void guesses_in_the_set_work_and_show(void **state)
{
	(void)state;
	struct net_psi_name x[OURS], y[WORDS];
	struct session s;
	for (size_t k = 0; k < OURS; k++)
		x[k] = name_of(ours(k));
	for (size_t w = 0; w < WORDS; w++)
		y[w] = name_of(w);
	play(&s, x, OURS, y, WORDS, false);
	assert_int_equal(s.rt->n_slots, OURS);
	assert_int_equal(s.ru->n_theirs, WORDS);
	session_release(&s);
}

static int setup(void **state)
{
	(void)state;
	fill_dictionary();
	return sodium_init() < 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_plain_hash_falls),
		cmocka_unit_test(the_intersection_does_not),
		cmocka_unit_test(guesses_in_the_set_work_and_show),
	};
	return cmocka_run_group_tests(tests, setup, NULL);
}
