/* Frames: cut anywhere, cut short, too long, one bit wrong. */
#include "tests/test.h"

#include <sodium.h>

#include "base/rng.h"
#include "net/frame.h"

struct ends {
	struct net_frame_writer w;
	struct net_frame_reader r;
	struct buf wire;
};

static void ends_init(struct ends *x, uint64_t rekey_every)
{
	struct net_noise_cipher tx = { .keyed = true, .key = { 1, 2, 3 } }, rx = tx;

	memset(x, 0, sizeof(*x));
	net_frame_writer_init(&x->w, &tx, rekey_every);
	net_frame_reader_init(&x->r, &rx, rekey_every);
	assert_false(tx.keyed || rx.keyed);
}

static void ends_release(struct ends *x)
{
	net_frame_writer_release(&x->w);
	net_frame_reader_release(&x->r);
	buf_release(&x->wire);
}

static uint8_t *bytes_of(size_t n)
{
	uint8_t *p = malloc(n);

	for (size_t i = 0; i < n; i++)
		p[i] = (uint8_t)(i * 31 + i / 251);
	return p;
}

static int feed(struct ends *x, size_t from, size_t to)
{
	const uint8_t *in = x->wire.base + from;
	size_t len = to - from;
	int rc = net_frame_read(&x->r, &in, &len);

	assert_true(rc < 0 || len == 0 || rc != FRAME_MORE);
	return rc;
}

static void test_sizes(void **state)
{
	static const size_t sizes[] = { 1,
					2,
					FRAME_BODY_MAX - FRAME_LENGTH - 1,
					FRAME_BODY_MAX - FRAME_LENGTH,
					FRAME_BODY_MAX - FRAME_LENGTH + 1,
					2 * FRAME_BODY_MAX - FRAME_LENGTH,
					300000,
					NET_MESSAGE_MAX };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		uint8_t *m = bytes_of(sizes[i]);
		struct ends x;

		ends_init(&x, 2);
		for (int again = 0; again < 2; again++) {
			buf_clear(&x.wire);
			assert_int_equal(net_frame_write_message(&x.w, m, sizes[i], &x.wire), 0);
			assert_int_equal(x.wire.len, net_frame_size(sizes[i]));
			assert_int_equal(feed(&x, 0, x.wire.len), FRAME_MESSAGE);
			assert_int_equal(x.r.message.len, sizes[i]);
			assert_memory_equal(x.r.message.base, m, sizes[i]);
		}
		ends_release(&x);
		free(m);
	}
}

static void test_message_too_big(void **state)
{
	uint8_t *m = bytes_of(NET_MESSAGE_MAX + 1);
	struct ends x;

	(void)state;
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_message(&x.w, m, NET_MESSAGE_MAX + 1, &x.wire),
			 ERR_TOOBIG);
	assert_int_equal(net_frame_write_message(&x.w, m, 0, &x.wire), ERR_TOOBIG);
	assert_int_equal(x.wire.len, 0);
	ends_release(&x);
	free(m);
}

/* Two messages and a ping, cut at every point in two. */
static void test_every_split(void **state)
{
	size_t total = 0;

	(void)state;
	for (size_t cut = 0; cut == 0 || cut <= total; cut++) {
		struct ends x;
		const uint8_t *in;
		size_t len;
		int got[3], n = 0;

		ends_init(&x, 1);
		assert_int_equal(net_frame_write_message(&x.w, "hello", 5, &x.wire), 0);
		assert_int_equal(net_frame_write_control(&x.w, FRAME_PING, NULL, &x.wire), 0);
		assert_int_equal(net_frame_write_message(&x.w, "there", 5, &x.wire), 0);
		total = x.wire.len;
		in = x.wire.base;
		for (int half = 0; half < 2; half++) {
			len = half == 0 ? cut : total - cut;
			while (len > 0) {
				int rc = net_frame_read(&x.r, &in, &len);

				assert_true(rc >= 0);
				if (rc == FRAME_MESSAGE)
					assert_memory_equal(x.r.message.base,
							    n == 0 ? "hello" : "there", 5);
				if (rc != FRAME_MORE)
					got[n++] = rc;
			}
		}
		assert_int_equal(n, 3);
		assert_int_equal(got[0], FRAME_MESSAGE);
		assert_int_equal(got[1], FRAME_PINGED);
		assert_int_equal(got[2], FRAME_MESSAGE);
		ends_release(&x);
	}
	assert_int_equal(total, 2 * net_frame_size(5) + 19);
}

/* A big message a few bytes at a time. */
static void test_dribble(void **state)
{
	uint8_t *m = bytes_of(200000);
	struct ends x;
	struct rng r;
	int rc = FRAME_MORE;

	(void)state;
	rng_seed(&r, 1);
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_message(&x.w, m, 200000, &x.wire), 0);
	for (size_t at = 0; at < x.wire.len;) {
		size_t n = 1 + rng_below(&r, 3000);

		if (n > x.wire.len - at)
			n = x.wire.len - at;
		assert_int_equal(rc, FRAME_MORE);
		rc = feed(&x, at, at + n);
		at += n;
		assert_true(x.r.partial.len <= at); /* memory only for what has come */
	}
	assert_int_equal(rc, FRAME_MESSAGE);
	assert_memory_equal(x.r.message.base, m, 200000);
	ends_release(&x);
	free(m);
}

static void test_every_bit(void **state)
{
	size_t bits = net_frame_size(5) * 8;

	(void)state;
	for (size_t bit = 0; bit < bits; bit++) {
		struct ends x;
		int rc;

		ends_init(&x, 0);
		assert_int_equal(net_frame_write_message(&x.w, "hello", 5, &x.wire), 0);
		x.wire.base[bit / 8] ^= (uint8_t)(1 << bit % 8);
		/* a longer length waits for more: give it more */
		memset(buf_extend(&x.wire, 70000), 0, 70000);
		rc = feed(&x, 0, x.wire.len);
		assert_true(rc == ERR_IDENTITY || rc == ERR_PROTO);
		assert_int_equal(feed(&x, 0, 1), ERR_PROTO); /* and there is no way back */
		assert_int_equal(x.r.message.len, 0);
		ends_release(&x);
	}
}

static void test_truncated(void **state)
{
	struct ends x;

	(void)state;
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_message(&x.w, "hello", 5, &x.wire), 0);
	assert_int_equal(feed(&x, 0, x.wire.len - 1), FRAME_MORE);
	assert_int_equal(x.r.message.len, 0);
	ends_release(&x);
}

static void test_replayed_and_reordered(void **state)
{
	struct ends x;
	size_t one;

	(void)state;
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_message(&x.w, "hello", 5, &x.wire), 0);
	one = x.wire.len;
	assert_int_equal(net_frame_write_message(&x.w, "there", 5, &x.wire), 0);
	assert_int_equal(feed(&x, 0, one), FRAME_MESSAGE);
	assert_int_equal(feed(&x, 0, one), ERR_IDENTITY);
	ends_release(&x);
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_message(&x.w, "hello", 5, &x.wire), 0);
	assert_int_equal(net_frame_write_message(&x.w, "there", 5, &x.wire), 0);
	assert_int_equal(feed(&x, one, x.wire.len), ERR_IDENTITY);
	ends_release(&x);
}

/* Frames with a good seal that no honest writer makes. */
static int sealed(const void *text, size_t n)
{
	struct ends x;
	uint8_t *p;
	int rc;

	ends_init(&x, 0);
	p = buf_extend(&x.wire, FRAME_HEAD + n + NOISE_TAG);
	p[0] = (uint8_t)((n + NOISE_TAG) >> 8);
	p[1] = (uint8_t)(n + NOISE_TAG);
	assert_int_equal(net_noise_seal(&x.w.cipher, NULL, 0, text, n, p + FRAME_HEAD), 0);
	rc = feed(&x, 0, x.wire.len);
	ends_release(&x);
	return rc;
}

static void test_well_sealed_nonsense(void **state)
{
	uint8_t *full = calloc(1, FRAME_KIND + FRAME_BODY_MAX);
	char bye[FRAME_KIND + NET_REASON_MAX + 1];

	(void)state;
	assert_int_equal(sealed("\x01\0\0\0\x01x", 6), FRAME_MESSAGE);
	assert_int_equal(sealed("\x01\0\0\0\x01xy", 7), ERR_PROTO); /* more than its length */
	assert_int_equal(sealed("\x01\0\0\0\x03x", 6), ERR_PROTO);  /* a part not full */
	assert_int_equal(sealed("\x01\0\0\0\0", 5), ERR_PROTO);	    /* an empty message */
	assert_int_equal(sealed("\x01\0\0\0", 4), ERR_PROTO);	    /* half a length */
	assert_int_equal(sealed("\x01", 1), ERR_PROTO);
	assert_int_equal(sealed("", 0), ERR_PROTO); /* not even a kind */
	assert_int_equal(sealed("\x01\0\x10\0\x01x", 6), ERR_TOOBIG);
	assert_int_equal(sealed("\x01\xff\xff\xff\xffx", 6), ERR_TOOBIG);
	full[0] = FRAME_PART;
	full[2] = 0x10; /* exactly NET_MESSAGE_MAX is to come */
	assert_int_equal(sealed(full, FRAME_KIND + FRAME_BODY_MAX), FRAME_MORE);
	assert_int_equal(sealed("\x02", 1), FRAME_PINGED);
	assert_int_equal(sealed("\x02x", 2), ERR_PROTO);
	assert_int_equal(sealed("\x03x", 2), ERR_PROTO);
	assert_int_equal(sealed("\0", 1), ERR_PROTO);
	assert_int_equal(sealed("\x05", 1), ERR_PROTO);
	memset(bye, 'x', sizeof(bye));
	bye[0] = FRAME_BYE;
	assert_int_equal(sealed(bye, sizeof(bye)), ERR_PROTO);
	assert_int_equal(sealed(bye, sizeof(bye) - 1), FRAME_LEFT);
	free(full);
}

static void test_bye(void **state)
{
	struct ends x;

	(void)state;
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_control(&x.w, FRAME_BYE, "the owner said so", &x.wire), 0);
	assert_int_equal(net_frame_write_control(&x.w, FRAME_BYE, "\x1b[2J", &x.wire), 0);
	assert_int_equal(feed(&x, 0, x.wire.len / 2 + 7), FRAME_LEFT);
	assert_int_equal(x.r.message.len, strlen("the owner said so"));
	ends_release(&x);
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_control(&x.w, FRAME_BYE, "\x1b[2J", &x.wire), 0);
	assert_int_equal(feed(&x, 0, x.wire.len), FRAME_LEFT);
	assert_int_equal(x.r.message.len, 0); /* not near a terminal */
	ends_release(&x);
}

/* The reason alone: nothing of the message that was handed over before. */
static void test_bye_after_message(void **state)
{
	struct ends x;
	size_t message;

	(void)state;
	ends_init(&x, 0);
	assert_int_equal(net_frame_write_message(&x.w, "some message", 12, &x.wire), 0);
	message = x.wire.len;
	assert_int_equal(net_frame_write_control(&x.w, FRAME_BYE, "why", &x.wire), 0);
	assert_int_equal(feed(&x, 0, message), FRAME_MESSAGE);
	assert_int_equal(feed(&x, message, x.wire.len), FRAME_LEFT);
	assert_int_equal(x.r.message.len, 3);
	assert_memory_equal(x.r.message.base, "why", 3);
	ends_release(&x);
}

/* Keys change on both sides at the same frame, and really change. */
static void test_rekeyed(void **state)
{
	struct ends x;
	uint8_t key[32];

	(void)state;
	ends_init(&x, 3);
	memcpy(key, x.w.cipher.key, 32);
	for (int i = 1; i <= 20; i++) {
		buf_clear(&x.wire);
		assert_int_equal(net_frame_write_message(&x.w, "hello", 5, &x.wire), 0);
		assert_int_equal(feed(&x, 0, x.wire.len), FRAME_MESSAGE);
		assert_memory_equal(x.w.cipher.key, x.r.cipher.key, 32);
		assert_int_equal(memcmp(key, x.w.cipher.key, 32) != 0, i % 3 == 0);
		memcpy(key, x.w.cipher.key, 32);
	}
	ends_release(&x);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_message_too_big),
		cmocka_unit_test(test_every_split),
		cmocka_unit_test(test_dribble),
		cmocka_unit_test(test_every_bit),
		cmocka_unit_test(test_truncated),
		cmocka_unit_test(test_replayed_and_reordered),
		cmocka_unit_test(test_well_sealed_nonsense),
		cmocka_unit_test(test_bye),
		cmocka_unit_test(test_bye_after_message),
		cmocka_unit_test(test_rekeyed),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
