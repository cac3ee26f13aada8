/* libFuzzer entry for rounds under secret aggregation: three agents, and a network that says what
 * the input wants.
 *
 *   first byte  bit 0: words of 64 bits; bit 1: hosted
 *   then for each message in turn one byte: below 0xc0 it passes, else
 *     0xc0 ..  at (2 bytes) is xored with (1 byte)      0xd0 ..  cut to (2 bytes)
 *     0xe0 ..  lost                                     0xf0 ..  in its place: kind, stage,
 *              attempt, and (1 byte) n that many bytes under every key of the others
 *
 * No row may become anything but finite.  As fuzz_msg.c. */
#include "fed/round_internal.h"
#include "tests/fuzz/rows.h"
#include "tests/fuzz/script.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

static size_t take_place(struct script *in, size_t n)
{
	size_t place = script_two(in);

	return n > 0 ? place % n : 0;
}

static void forge(struct script *in, struct buf *message)
{
	static const char *const keys[] = { "l", "y", "p", "b", "x", "w" };
	struct err e = { 0 };
	uint8_t id[FED_ID] = { 0 };
	struct net_writer w;
	struct net_msg m;
	size_t n;

	if (net_msg_decode(&m, message->base, message->len, &e) == 0) {
		memcpy(id, m.session, FED_ID);
		net_msg_release(&m);
	}
	buf_clear(message);
	net_write_begin(&w, message, NET_MSG_ROUND, id);
	net_put_uint(&w, "k", script_byte(in) % 16);
	net_put_uint(&w, "g", script_byte(in) % 4);
	net_put_uint(&w, "a", script_byte(in) % 4);
	net_put_uint(&w, "o", 0);
	net_put_uint(&w, "n", script_byte(in) % 32);
	n = script_byte(in);
	n = n < in->left ? n : in->left;
	for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
		net_put_bin(&w, keys[i], in->at, n);
	in->at += n;
	in->left -= n;
	if (net_write_end(&w, NULL) != 0)
		abort();
}

static bool meddle(void *ctx, size_t from, size_t to, struct buf *message)
{
	struct script *in = ctx;
	unsigned what = script_byte(in);

	(void)from, (void)to;
	if (what < 0xc0)
		return true;
	if (what < 0xd0 && message->len > 0) {
		size_t place = take_place(in, message->len);

		message->base[place] ^= (uint8_t)script_byte(in);
	} else if (what < 0xe0) {
		message->len = take_place(in, message->len);
	} else if (what < 0xf0) {
		return false;
	} else {
		forge(in, message);
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct script in = { bytes, n };
	unsigned how = script_byte(&in);
	struct world w;

	world_init(&w, 3, 9, "transe", 3, "fede", false);
	w.config.settings.secret_bits = (how & 1) != 0 ? 64 : 32;
	if ((how & 2) != 0)
		world_host(&w, 2);
	w.config.tamper = meddle;
	w.config.ctx = &in;
	world_open(&w);
	fed_local_round(w.local, 0, NULL);
	must_be_tables(&w);
	world_release(&w);
	return 0;
}
