/* libFuzzer entry for a core: the input is what a listed partner says, cut into
 * messages.  A byte that is no message of a number names what else happens.
 *
 *   0xff n   let n things happen that are under way     else: type, how, n, n * 4 bytes
 *
 * how: bit 0 the session of now, bit 3 none; bits 1 and 2: so many bytes less. */
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/agent/table.h"
#include "tests/fuzz/accepted.h"

enum { VICTIM, HONEST, HOSTILE };

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

FUZZ_KINDS(3); /* HELLO, SIGNAL, PROPOSE */

struct before {
	bool greeted, in_session;
	uint64_t signalled;
};

static struct before look(struct table *t)
{
	const struct peer *p = table_peer(t, VICTIM, HOSTILE);

	return (struct before){ p->greeted, session_first(t->agent[VICTIM].core) != NULL,
				p->signalled };
}

static void note_taken(struct table *t, const struct before *was, unsigned type)
{
	struct before is = look(t);

	if (is.greeted && !was->greeted)
		fuzz_take(0);
	if (is.signalled > was->signalled)
		fuzz_take(1);
	if (type == NET_MSG_PROPOSE && is.in_session && !was->in_session)
		fuzz_take(2);
}

static size_t say(struct table *t, const uint8_t *at, size_t left)
{
	const struct session *s = session_first(t->agent[VICTIM].core);
	const uint8_t head[] = { 0x93, at[0], 0xc4, left > 1 && (at[1] & 8) ? 0 : 16 };
	struct before was = look(t);
	uint8_t id[16] = { 7 };
	struct buf b = { 0 };
	size_t n;

	if (left < 3)
		return left;
	n = (size_t)at[2] * 4;
	n -= n > 0 ? at[1] >> 1 & 3 : 0;
	n = n < left - 3 ? n : left - 3;
	if (s && at[1] % 2)
		memcpy(id, s->id, 16);
	buf_add(&b, head, sizeof(head));
	buf_add(&b, id, head[3]);
	buf_add(&b, at + 3, n);
	table_deliver(t, HOSTILE, VICTIM, &b);
	note_taken(t, &was, at[0]);
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
