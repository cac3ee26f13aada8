/* libFuzzer entry for a core: the input is what a listed partner says, cut into
 * messages.  A byte that is no message of a number names what else happens.
 *
 *   0xff n   let n things happen that are under way     else: type, session, n, n * 4 bytes */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/agent/table.h"

enum { VICTIM, HONEST, HOSTILE };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

/* type; bit 0: in the session of now; the body's length in words; the body. */
static size_t say(struct table *t, const uint8_t *at, size_t left)
{
	const struct session *s = session_first(t->agent[VICTIM].core);
	const uint8_t head[] = { 0x93, at[0], 0xc4, 16 };
	uint8_t id[16] = { 7 };
	struct buf b = { 0 };
	size_t n;

	if (left < 3)
		return left;
	n = (size_t)at[2] * 4 < left - 3 ? (size_t)at[2] * 4 : left - 3;
	if (s && at[1] % 2)
		memcpy(id, s->id, 16);
	buf_add(&b, head, sizeof(head));
	buf_add(&b, id, 16);
	buf_add(&b, at + 3, n);
	table_deliver(t, HOSTILE, VICTIM, &b);
	return 3 + n;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
	struct table t;

	if (sodium_init() < 0)
		return 0;
	table_init(&t, 1);
	table_start(&t);
	table_link(&t, VICTIM, HOSTILE, true);
	while (n > 0) {
		size_t took = 2;

		if (bytes[0] == 0xff)
			table_run(&t, t.now_ms + 10000, n > 1 ? bytes[1] : 1);
		else
			took = say(&t, bytes, n);
		took = took < n ? took : n;
		bytes += took;
		n -= took;
	}
	table_release(&t);
	return 0;
}
