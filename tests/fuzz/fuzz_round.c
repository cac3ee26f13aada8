/* libFuzzer entry for the round machine: the input is what becomes of the messages of one
 * member of three, in the order in which it sends them.
 *
 *   first byte   method, and who hosts, if anybody
 *   second byte  bits 0 to 2: so many sixteenths of all messages come again (the network repeats
 *                them); the others: which
 * then for each message in turn
 *   0, 5    as it was            1 n     the first n bytes
 *   2 a b x byte a * 256 + b is xored with x
 *   3 n ..  n bytes of the input instead
 *   4       lost
 * and when the input is at its end all messages go as they were.
 *
 * No row may become anything but finite.  As fuzz_msg.c. */
#include <sodium.h>
#include <string.h>

#include "base/mem.h"
#include "tests/fuzz/rows.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

struct input {
	const uint8_t *at;
	size_t left;
};

static uint8_t next(struct input *in)
{
	if (in->left == 0)
		return 0;
	in->left--;
	return *in->at++;
}

static void replace(struct input *in, struct buf *b)
{
	size_t n = next(in);

	n = n < in->left ? n : in->left;
	buf_clear(b);
	buf_add(b, in->at, n);
	in->at += n;
	in->left -= n;
}

static bool tamper(void *ctx, size_t from, size_t to, struct buf *b)
{
	struct input *in = ctx;
	uint8_t with;
	size_t at;

	(void)to;
	if (from != 2)
		return true;
	switch (next(in) % 6) {
	case 1:
		at = next(in);
		b->len = at < b->len ? at : b->len;
		break;
	case 2:
		at = (size_t)next(in) * 256;
		at += next(in);
		with = next(in);
		if (b->len > 0)
			b->base[at % b->len] ^= with;
		break;
	case 3:
		replace(in, b);
		break;
	case 4:
		return false;
	default:
		break;
	}
	return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	static const char *const method[] = { "fede", "feds", "pfedeg", "pfedeg_plus" };
	struct input in = { bytes, n };
	struct world w;
	uint8_t how, again;

	if (sodium_init() < 0)
		return 0;
	how = next(&in);
	again = next(&in);
	world_init(&w, 3, 12, "transe", 2, method[how % 4], false);
	w.config.settings.number = how / 4 % 2;
	w.config.faults.repeat = again % 8 / 16.0;
	w.config.seed = again / 8; /* keys, too */
	if (how / 8 % 2 != 0)
		world_host(&w, how / 16 % 3);
	w.config.tamper = tamper;
	w.config.ctx = &in;
	world_open(&w);
	fed_local_round(w.local, how / 64 % 3, NULL);
	must_be_tables(&w);
	world_release(&w);
	return 0;
}
