/* libFuzzer entry for a link (net/uv/link.c): what bytes do to it before it is known whose they
 * are, and after.  libuv is played (fake_uv.h), and the other side is, which has keys.  The first
 * byte says who dials (1), what the acceptor says of the key (enum net_greet_status, times 2) and
 * whether the two have a secret (16); then steps, each with how many bytes it has:
 *
 *   0 bytes as they are   1 a greeting, of which byte k is changed by x   2 a frame: kind, body
 *   3 a message           4 so much time goes by                           5 the other side ends
 *   6 we send             7 we pause, or go on   8 nothing can be sent     9 we leave
 *
 * Whatever comes, the link waits or ends, once and in time; only an honest greeting brings it up;
 * until then it sends no more than a greeting, and keeps no more.  As fuzz_msg.c. */
#include <sodium.h>
#include <stdlib.h>

#include "net/uv/link_internal.h"
#include "tests/fuzz/chance.h"
#include "tests/fuzz/fake_uv.h"
#include "tests/fuzz/must_hold.h"

enum { HANDSHAKE_MS = 10000, KEEPALIVE_MS = 15000, DEAD_MS = 60000, LINGER_MS = 1000, REKEY = 5 };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static struct run {
	struct net_link *link; /* NULL: gone */
	bool incoming, has_pair;
	enum net_greet_status says;
	uint8_t ours[32], theirs[32], our_key[32], their_key[32], pair[NET_PAIR_SECRET];
	uint64_t came, over_ms; /* bytes; when it was over */
	unsigned over, ups;
	bool crafted; /* the other side has said what nobody says */
	/* the other side */
	struct net_noise hs;
	struct net_frame_writer writer;
	bool honest, has_keys; /* it has said nothing but a greeting; has keys for frames */
	unsigned frames;
	struct buf sent; /* messages, one after another */
	size_t heard;	 /* bytes of them */
} run;

/* ---- what the link tells ---- */

static enum net_greet_status on_admit(struct net_link *l)
{
	must_hold(memcmp(l->key, run.their_key, NET_KEY_BYTES) == 0);
	l->shown.has_pair = run.has_pair;
	memcpy(l->shown.pair, run.pair, sizeof(run.pair));
	return run.says;
}

static void on_up(struct net_link *l)
{
	must_hold(run.honest && (!run.incoming || run.frames > 0) && run.over == 0);
	must_hold(!run.incoming || run.says == GREET_OK);
	must_hold(memcmp(l->key, run.their_key, NET_KEY_BYTES) == 0 && run.ups++ == 0);
}

static void on_message(struct net_link *l, const uint8_t *bytes, size_t n)
{
	must_hold(l->state == LINK_UP && run.over == 0 && n >= 1 && n <= NET_MESSAGE_MAX);
	must_hold(n <= run.came);
	if (!run.crafted)
		must_hold(n <= run.sent.len - run.heard &&
			  memcmp(bytes, run.sent.base + run.heard, n) == 0);
	run.heard += n;
}

static void on_drained(struct net_link *l)
{
	must_hold(l->state == LINK_UP);
}

static void on_used(struct net_link *l, uint64_t us)
{
	(void)l, (void)us;
}

static void on_over(struct net_link *l, int code, const char *why)
{
	(void)l;
	must_hold(code < 0 && why[0] != '\0' && run.over++ == 0);
	run.over_ms = fake.now_ms;
}

static void on_gone(struct net_link *l)
{
	free(l);
	run.link = NULL;
}

/* ---- limits ---- */

static void check_limits(void)
{
	const struct net_link *l = run.link;

	if (l == NULL)
		return;
	must_hold(l->n_in <= GREET_ASK && l->bytes_in <= run.came);
	if (!l->was_up)
		must_hold(fake.out.len <= (run.incoming ? GREET_ANSWER : GREET_ASK) &&
			  l->held.len == 0);
	must_hold(l->held.len <= l->config->rx_size);
	if (l->reader != NULL)
		must_hold(l->reader->partial.cap <= 64 + 2 * run.came &&
			  l->reader->message.cap <= 64 + 2 * run.came);
}

/* The link is looked at as often as its hub does. */
static void let_time_go_by(uint64_t ms)
{
	for (uint64_t end = fake.now_ms + ms; fake.now_ms < end && run.link != NULL;) {
		fake.now_ms += end - fake.now_ms < 250 ? end - fake.now_ms : 250;
		net_link_tick(run.link, fake.now_ms, 0);
		fake_turn();
	}
	if (run.link == NULL)
		return;
	if (!run.link->was_up)
		must_hold(fake.now_ms < HANDSHAKE_MS || run.over == 1);
	if (run.over == 1)
		must_hold(fake.now_ms < run.over_ms + LINGER_MS + 250);
}

/* ---- the other side ---- */

static void split_theirs(void)
{
	struct net_noise_cipher tx, rx;

	net_noise_split(&run.hs, &tx, &rx, NULL);
	net_frame_writer_init(&run.writer, &tx, REKEY);
	sodium_memzero(&rx, sizeof(rx));
	run.has_keys = true;
}

static void say(const uint8_t *bytes, size_t n)
{
	run.came += n;
	buf_add(&fake.in, bytes, n);
	fake_turn();
}

/* Whoever dials has said all that it says. */
static void take_answer(void)
{
	if (run.incoming && !run.has_keys && run.hs.turn == NOISE_READ &&
	    fake.out.len >= GREET_ANSWER && fake.out.base[6] == GREET_OK &&
	    net_greet_finish(&run.hs, fake.out.base + GREET_HEAD) == 0)
		split_theirs();
}

static void greet(const uint8_t *change, size_t n)
{
	const struct net_greet_keys keys = { run.theirs, NULL, NET_VERSION };
	const uint8_t *pair = run.has_pair ? run.pair : NULL;
	const uint8_t ticket[NET_TICKET_BYTES] = { 1 };
	uint8_t out[GREET_ASK] = { 0 };
	size_t len = run.incoming ? GREET_ASK : GREET_ANSWER, at;
	struct net_greet_card card;
	int rc;

	if (run.has_keys || (!run.incoming && fake.out.len < GREET_ASK))
		return;
	net_noise_release(&run.hs);
	rc = run.incoming ? net_greet_ask(&run.hs, &keys, run.our_key, ticket, pair, out)
			  : net_greet_hear(&run.hs, &keys, fake.out.base + GREET_HEAD, &card);
	must_hold(rc == 0);
	if (!run.incoming) {
		must_hold(net_greet_answer(&run.hs, &keys, pair, out) == 0);
		split_theirs();
	}
	at = n < 2 || change[1] == 0 ? len : change[0] % len;
	/* nobody reads a head's last byte, nor the status of who dials */
	run.honest = run.came == 0 && (at == len || at == 7 || (run.incoming && at == 6));
	if (at < len)
		out[at] ^= change[1];
	say(out, len);
	take_answer();
}

static void frame(const uint8_t *bytes, size_t n)
{
	uint8_t out[FRAME_HEAD + 256 + NOISE_TAG];
	struct net_frame_writer *w = &run.writer;

	if (!run.has_keys || n == 0)
		return;
	out[0] = (uint8_t)((n + NOISE_TAG) >> 8);
	out[1] = (uint8_t)(n + NOISE_TAG);
	must_hold(net_noise_seal(&w->cipher, NULL, 0, bytes, n, out + FRAME_HEAD) == 0);
	if (--w->until_rekey == 0) {
		net_noise_rekey(&w->cipher);
		w->until_rekey = REKEY;
	}
	run.frames++;
	run.crafted |= bytes[0] == FRAME_PART;
	say(out, FRAME_HEAD + n + NOISE_TAG);
}

/* Each byte said so often that there are messages of several frames. */
static void message(const uint8_t *bytes, size_t n)
{
	size_t times = n > 0 ? 1 + n * bytes[0] / 16 : 0, from = run.sent.len;
	struct buf out = { 0 };

	if (!run.has_keys || n == 0 || from > NET_MESSAGE_MAX)
		return;
	for (size_t i = 0; i < n; i++)
		memset(buf_extend(&run.sent, times), bytes[i], times);
	must_hold(net_frame_write_message(&run.writer, run.sent.base + from, n * times, &out) == 0);
	run.frames++;
	say(out.base, out.len / 8);
	check_limits(); /* memory comes with its bytes */
	say(out.base + out.len / 8, out.len - out.len / 8);
	buf_release(&out);
}

/* ---- a run ---- */

static void step(uint8_t what, const uint8_t *bytes, size_t n)
{
	if (what == 0) {
		run.honest &= run.ups > 0 || n == 0;
		run.crafted |= n > 0;
		say(bytes, n);
	} else if (what == 1) {
		greet(bytes, n);
	} else if (what == 2) {
		frame(bytes, n);
	} else if (what == 3) {
		message(bytes, n);
	} else if (what == 4) {
		let_time_go_by(n > 0 ? bytes[0] * UINT64_C(300) : 250);
	} else if (what == 5) {
		fake.ended = true;
	} else if (what == 6) {
		err_ignore(net_link_send(run.link, bytes, n));
	} else if (what == 7) {
		net_link_pause(run.link, n > 0 && bytes[0] % 2 == 1);
	} else if (what == 8) {
		fake.broken = true;
	} else if (what == 9) {
		net_link_leave(run.link, "enough");
	}
	fake_turn();
}

static struct net_link_config config_of(void)
{
	static uint8_t rx[4096];

	return (struct net_link_config){
		.keys = { run.ours, NULL, NET_VERSION },
		.handshake_ms = HANDSHAKE_MS,
		.keepalive_ms = KEEPALIVE_MS,
		.dead_ms = DEAD_MS,
		.rekey_every = REKEY,
		.on = { on_admit, on_up, on_message, on_drained, on_used, on_over, on_gone },
		.rx = rx,
		.rx_size = sizeof(rx),
	};
}

static void begin(uint8_t first, const struct net_link_config *config)
{
	run.incoming = first % 2 == 0;
	run.says = (enum net_greet_status)(first / 2 % 8);
	run.has_pair = (first & 16) != 0;
	memset(run.pair, 7, sizeof(run.pair));
	fuzz_draw_bytes(run.ours, 32);
	fuzz_draw_bytes(run.theirs, 32);
	crypto_scalarmult_base(run.our_key, run.ours);
	crypto_scalarmult_base(run.their_key, run.theirs);
	run.link = run.incoming ? net_link_accept(config, (uv_stream_t *)&run /* some */)
				: net_link_dial(config, run.their_key, "h", 1, 0);
	if (!run.incoming && run.has_pair) {
		run.link->shown.has_pair = true;
		memcpy(run.link->shown.pair, run.pair, sizeof(run.pair));
	}
	fake_turn();
}

/* However it stands, it ends by itself once nobody says anything. */
static void end(void)
{
	if (run.link != NULL) {
		net_link_pause(run.link, false);
		fake_turn();
		let_time_go_by(250);
	}
	if (run.link != NULL && run.link->state == LINK_UP)
		must_hold(run.crafted || run.heard == run.sent.len);
	if (run.link != NULL) {
		let_time_go_by(DEAD_MS + HANDSHAKE_MS + LINGER_MS + 500);
	}
	must_hold(run.link == NULL && fake.n_writes == 0);
	if (run.has_keys)
		net_frame_writer_release(&run.writer);
	net_noise_release(&run.hs);
	buf_release(&run.sent);
	fake_release();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct net_link_config config;

	if (n == 0)
		return 0;
	fuzz_chance_begin();
	memset(&run, 0, sizeof(run));
	config = config_of();
	begin(bytes[0], &config);
	for (bytes++, n--; n >= 2 && run.link != NULL;) {
		size_t len = bytes[1] < n - 2 ? bytes[1] : n - 2;

		step(bytes[0] % 10, bytes + 2, len);
		check_limits();
		bytes += 2 + len;
		n -= 2 + len;
	}
	end();
	return 0;
}
