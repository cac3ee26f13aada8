/* Noise beside the vectors: every pattern against itself, refusals, nonces, rekey. */
#include "tests/test.h"

#include <sodium.h>

#include "net/noise.h"

static const char *const names[] = {
	"N",	  "K",	    "X",      "NN",	"NK",
	"NX",	  "XN",	    "XK",     "XX",	"KN",
	"KK",	  "KX",	    "IN",     "IK",	"IX",
	"NK1",	  "NX1",    "X1N",    "X1K",	"XK1",
	"X1K1",	  "X1X",    "XX1",    "X1X1",	"K1N",
	"K1K",	  "KK1",    "K1K1",   "K1X",	"KX1",
	"K1X1",	  "I1N",    "I1K",    "IK1",	"I1K1",
	"I1X",	  "IX1",    "I1X1",   "NNpsk0", "NNpsk0+psk2",
	"IKpsk1", "IKpsk2", "XXpsk3", "Npsk0",	"KNpsk0+psk1+psk2",
};

static uint8_t secret[2][32], public[2][32];
static const uint8_t psks[3][NOISE_PSK] = { { 1 }, { 2 }, { 3 } };

static void draw(void *ctx, void *out, size_t n)
{
	(void)ctx;
	randombytes_buf(out, n);
}

static size_t psk_count(const char *name)
{
	size_t n = 0;

	for (const char *p = name; (p = strstr(p, "psk")) != NULL; p++)
		n++;
	return n;
}

static int start(struct net_noise *hs, const char *name, enum net_noise_role role,
		 const char *prologue, const uint8_t (*secrets)[NOISE_PSK])
{
	char protocol[96];
	struct net_noise_config c = { .protocol = protocol,
				      .role = role,
				      .prologue = prologue,
				      .prologue_len = strlen(prologue),
				      .secret = secret[role],
				      .remote = public[1 - role],
				      .psks = secrets,
				      .n_psks = psk_count(name),
				      .draw = draw };

	snprintf(protocol, sizeof(protocol), "Noise_%s_25519_ChaChaPoly_BLAKE2b", name);
	return net_noise_init(hs, &c, NULL);
}

/* Runs to the split; 0 or the first error. */
static int shake(struct net_noise *a, struct net_noise *b)
{
	uint8_t wire[512], back[64];

	while (a->turn != NOISE_SPLIT) {
		struct net_noise *w = a->turn == NOISE_WRITE ? a : b, *r = w == a ? b : a;
		ptrdiff_t n = net_noise_write(w, "hi", 2, wire, sizeof(wire)), m;

		if (n < 0)
			return (int)n;
		m = net_noise_read(r, wire, (size_t)n, back, sizeof(back));
		if (m < 0)
			return (int)m;
		assert_int_equal(m, 2);
		assert_memory_equal(back, "hi", 2);
	}
	assert_int_equal(b->turn, NOISE_SPLIT);
	return 0;
}

static void pair(struct net_noise_cipher out[4])
{
	struct net_noise a, b;

	assert_int_equal(start(&a, "IKpsk2", NOISE_INITIATOR, "p", psks), 0);
	assert_int_equal(start(&b, "IKpsk2", NOISE_RESPONDER, "p", psks), 0);
	assert_int_equal(shake(&a, &b), 0);
	net_noise_split(&a, &out[0], &out[1], NULL);
	net_noise_split(&b, &out[2], &out[3], NULL);
}

static void test_every_pattern(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		struct net_noise a, b;
		struct net_noise_cipher at, ar, bt, br;
		uint8_t ah[64], bh[64], wire[64], back[64];

		if (start(&a, names[i], NOISE_INITIATOR, "p", psks) != 0)
			fail_msg("%s", names[i]);
		assert_int_equal(start(&b, names[i], NOISE_RESPONDER, "p", psks), 0);
		assert_int_equal(shake(&a, &b), 0);
		net_noise_split(&a, &at, &ar, ah);
		net_noise_split(&b, &bt, &br, bh);
		assert_memory_equal(ah, bh, 64);
		assert_int_equal(net_noise_seal(&at, NULL, 0, "text", 4, wire), 0);
		assert_int_equal(net_noise_open(&br, NULL, 0, wire, 20, back), 0);
		assert_memory_equal(back, "text", 4);
		assert_memory_not_equal(at.key, ar.key, 32);
	}
}

static void test_refused(void **state)
{
	static const uint8_t other[1][NOISE_PSK] = { { 9 } };
	static const char *const bad[] = { "IKK",	  "IKpsk",	"IKpsk3", "IKpsk2+psk2",
					   "IKpsk2+psk1", "XXfallback", "",	  "IKpsk5" };
	struct net_noise a, b;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(start(&a, bad[i], NOISE_INITIATOR, "", psks), ERR_USAGE);
	assert_int_equal(start(&a, "IK", NOISE_INITIATOR, "one", psks), 0);
	assert_int_equal(start(&b, "IK", NOISE_RESPONDER, "two", psks), 0);
	assert_int_equal(shake(&a, &b), ERR_IDENTITY);
	assert_int_equal(b.turn, NOISE_DEAD);
	assert_true(sodium_is_zero(b.s, 32) == 1);
	assert_int_equal(start(&a, "IKpsk2", NOISE_INITIATOR, "", psks), 0);
	assert_int_equal(start(&b, "IKpsk2", NOISE_RESPONDER, "", other), 0);
	assert_int_equal(shake(&a, &b), ERR_IDENTITY);
}

/* Every bit of message 1 and every way of cutting it short is refused. */
static void test_mutated(void **state)
{
	uint8_t wire[512], back[64];
	struct net_noise a, b;
	ptrdiff_t n;

	(void)state;
	assert_int_equal(start(&a, "IK", NOISE_INITIATOR, "", psks), 0);
	n = net_noise_write(&a, "hi", 2, wire, sizeof(wire));
	assert_int_equal(n, 32 + 48 + 18);
	for (size_t bit = 0; bit < (size_t)n * 8; bit += 5) {
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
		assert_int_equal(start(&b, "IK", NOISE_RESPONDER, "", psks), 0);
		assert_int_equal(net_noise_read(&b, wire, (size_t)n, back, sizeof(back)),
				 ERR_IDENTITY);
		wire[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
	for (size_t cut = 0; cut < (size_t)n; cut++) {
		assert_int_equal(start(&b, "IK", NOISE_RESPONDER, "", psks), 0);
		assert_true(net_noise_read(&b, wire, cut, back, sizeof(back)) < 0);
	}
	assert_int_equal(start(&b, "IK", NOISE_RESPONDER, "", psks), 0);
	assert_int_equal(net_noise_read(&b, wire, (size_t)n, back, 1), ERR_TOOBIG);
	memset(wire, 0, 32); /* a point of low order */
	assert_int_equal(start(&b, "IK", NOISE_RESPONDER, "", psks), 0);
	assert_int_equal(net_noise_read(&b, wire, (size_t)n, back, sizeof(back)), ERR_PROTO);
}

static void test_nonce(void **state)
{
	struct net_noise_cipher c[4];
	uint8_t wire[64], back[64];

	(void)state;
	pair(c);
	assert_int_equal(net_noise_seal(&c[0], NULL, 0, "a", 1, wire), 0);
	assert_int_equal(net_noise_open(&c[3], NULL, 0, wire, 17, back), 0);
	assert_int_equal(net_noise_open(&c[3], NULL, 0, wire, 17, back), ERR_IDENTITY); /* again */
	assert_int_equal(c[3].nonce, 1);
	assert_int_equal(net_noise_open(&c[3], NULL, 0, wire, 15, back), ERR_IDENTITY);
	c[0].nonce = c[3].nonce = UINT64_MAX - 1;
	assert_int_equal(net_noise_seal(&c[0], NULL, 0, "a", 1, wire), 0);
	assert_int_equal(net_noise_open(&c[3], NULL, 0, wire, 17, back), 0);
	assert_int_equal(net_noise_seal(&c[0], NULL, 0, "a", 1, wire), ERR_TOOBIG);
	assert_int_equal(net_noise_open(&c[3], NULL, 0, wire, 17, back), ERR_TOOBIG);
}

static void test_rekey(void **state)
{
	struct net_noise_cipher c[4];
	uint8_t before[32], wire[64], back[64], want[48], zeros[32] = { 0 }, nonce[12] = { 0 };

	(void)state;
	pair(c);
	memcpy(before, c[0].key, 32);
	memset(nonce + 4, 0xff, 8);
	crypto_aead_chacha20poly1305_ietf_encrypt(want, NULL, zeros, 32, NULL, 0, NULL, nonce,
						  before);
	c[0].nonce = c[3].nonce = 7;
	net_noise_rekey(&c[0]);
	assert_memory_equal(c[0].key, want, 32);
	assert_int_equal(c[0].nonce, 7);
	assert_int_equal(net_noise_seal(&c[0], NULL, 0, "a", 1, wire), 0);
	assert_int_equal(net_noise_open(&c[3], NULL, 0, wire, 17, back), ERR_IDENTITY);
	net_noise_rekey(&c[3]);
	assert_int_equal(net_noise_open(&c[3], NULL, 0, wire, 17, back), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_every_pattern), cmocka_unit_test(test_refused),
		cmocka_unit_test(test_mutated),	      cmocka_unit_test(test_nonce),
		cmocka_unit_test(test_rekey),
	};

	if (sodium_init() < 0)
		return 1;
	for (int i = 0; i < 2; i++)
		crypto_box_keypair(public[i], secret[i]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
