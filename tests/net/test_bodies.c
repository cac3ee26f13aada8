/* Messages as they are on the wire, of every kind: bytes of agents that ran before the list of
 * fields was made (golden.txt).  Each is decoded, its fields have the values that are noted, and
 * encoded again it is the same bytes.
 *
 *	< bytes of a message, in hexadecimal
 *	> its type, kind and fields, as describe() has them
 */
#include "tests/test.h"

#include <sodium.h>
#include <stdio.h>
#include <string.h>

#include "net/bodies.h"

static const char *golden_path;

enum { LINE_MAX_BYTES = 8192 };

/* ---- fields as text ---- */

static void print_hex(struct buf *out, const void *bytes, size_t n)
{
	const uint8_t *b = bytes;

	for (size_t i = 0; i < n && i < 8; i++)
		buf_printf(out, "%02x", b[i]);
	buf_printf(out, "/%zu", n);
}

static void print_list(struct buf *out, const struct net_bytes *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		buf_printf(out, "%s", i > 0 ? "," : "");
		print_hex(out, v[i].base, v[i].len);
	}
}

static void print_reals(struct buf *out, const double *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		buf_printf(out, "%s%.17g", i > 0 ? "," : "", v[i]);
}

#define PRINT_uint(v, n)   buf_printf(out, "%llu", (unsigned long long)(v))
#define PRINT_int(v, n)	   buf_printf(out, "%lld", (long long)(v))
#define PRINT_flag(v, n)   buf_printf(out, "%d", v)
#define PRINT_real(v, n)   buf_printf(out, "%.17g", v)
#define PRINT_text(v, n)   buf_printf(out, "\"%s\"", v)
#define PRINT_words(v, n)  PRINT_text(v, n)
#define PRINT_bytes(v, n)  print_hex(out, (v).base, (v).len)
#define PRINT_fixed(v, n)  print_hex(out, v, sizeof(v))
#define PRINT_tensor(v, n) buf_printf(out, "%zux%zu", (v).rows, (v).cols)
#define PRINT_list(v, n)   print_list(out, v, n)
#define PRINT_reals(v, n)  print_reals(out, v, sizeof(v) / sizeof(*(v)))

#define N_uint(field)	0
#define N_int(field)	0
#define N_flag(field)	0
#define N_real(field)	0
#define N_text(field)	0
#define N_words(field)	0
#define N_bytes(field)	0
#define N_fixed(field)	0
#define N_tensor(field) 0
#define N_list(field)	b->n_##field
#define N_reals(field)	0

#define BODY(name, section)                                                                        \
	static void print_##name(struct buf *out, const void *body)                                \
	{                                                                                          \
		const struct net_##name *b = body;
#define INNER(name, section) BODY(name, section)
#define MUST(kind, field, key, min, max)                                                           \
	buf_printf(out, " %s.%s=", key, #field);                                                   \
	PRINT_##kind(b->field, N_##kind(field));
#define MAY(kind, field, key, min, max)                                                            \
	if (b->has_##field) {                                                                      \
		MUST(kind, field, key, min, max)                                                   \
	}
#define PART(name, field) print_##name(out, &b->field);
#define PART_IF(name, field, key)                                                                  \
	if (b->has_##field)                                                                        \
		print_##name(out, &b->field);
#define END(name) }
#include "net/bodies.def"

static const struct {
	const char *name;
	void (*print)(struct buf *out, const void *body);
} printers[NET_BODIES] = {
	[NET_BODY_none] = { "none", NULL },
#define BODY(name, section)  [NET_BODY_##name] = { #name, print_##name },
#define INNER(name, section) BODY(name, section)
#define MUST(kind, field, key, min, max)
#define MAY(kind, field, key, min, max)
#define PART(name, field)
#define PART_IF(name, field, key)
#define END(name)
#include "net/bodies.def"
};

/* ---- maps inside of messages ---- */

union inner {
	struct net_proposal proposal;
	struct net_joining joining;
	struct net_psi_size psi_size;
	struct net_psi_points psi_points;
	struct net_psi_point psi_point;
	struct net_psi_confirm psi_confirm;
	struct net_matrix matrix;
	struct net_labels labels;
	struct net_stop stop;
	struct net_row_run row_run;
	struct net_short_run short_run;
	struct net_virtual_part virtual_part;
};

/* Of what the message holds besides, and where: none for most. */
static enum net_body_kind inner_of(const struct net_message *m, struct net_bytes *at)
{
	static const enum net_body_kind psi[] = {
		[1] = NET_BODY_psi_size,    [2] = NET_BODY_psi_points, [3] = NET_BODY_psi_points,
		[4] = NET_BODY_psi_confirm, [5] = NET_BODY_psi_point,  [6] = NET_BODY_psi_point
	};
	static const enum net_body_kind ppat[] = {
		[1] = NET_BODY_matrix,	[2] = NET_BODY_labels,	[3] = NET_BODY_matrix,
		[4] = NET_BODY_stop,	[5] = NET_BODY_row_run, [6] = NET_BODY_virtual_part,
		[7] = NET_BODY_none,	[8] = NET_BODY_row_run, [9] = NET_BODY_matrix,
		[10] = NET_BODY_matrix,
	};

	if (m->kind == NET_BODY_round_propose)
		*at = m->round_propose.proposal;
	else if (m->kind == NET_BODY_round_join)
		*at = m->round_join.joining;
	else if (m->kind == NET_BODY_conv && m->conv.has_part)
		*at = m->conv.part.body;
	else
		return NET_BODY_none;
	if (m->kind == NET_BODY_conv)
		return m->conv.conversation == 1 ? psi[m->conv.part.kind] : ppat[m->conv.part.kind];
	return m->kind == NET_BODY_round_propose ? NET_BODY_proposal : NET_BODY_joining;
}

static void take_inner(const struct net_message *m, struct buf *out)
{
	struct net_bytes at;
	enum net_body_kind kind = inner_of(m, &at);
	struct net_body body;
	struct net_writer w;
	struct err e = { 0 };
	union inner x;
	struct buf again = { 0 };

	if (kind == NET_BODY_none)
		return;
	assert_int_equal(net_body_decode(&body, at.base, at.len, &e), 0);
	if (kind == NET_BODY_row_run && net_has(&body.map, "h"))
		kind = NET_BODY_short_run;
	net_body_get(&body.map, kind, &x, &e);
	if (e.code != 0)
		fail_msg("%s: %s", printers[kind].name, e.text);
	buf_printf(out, " | %s", printers[kind].name);
	printers[kind].print(out, &x);
	net_write_body(&w, &again);
	net_body_put(&w, kind, &x);
	assert_int_equal(net_write_end(&w, &e), 0);
	assert_int_equal(again.len, at.len);
	assert_memory_equal(again.base, at.base, at.len);
	buf_release(&again);
	net_body_release(&body);
}

/* ---- whole messages ---- */

static void describe(const struct net_message *m, struct buf *out)
{
	buf_printf(out, "%s %s", net_msg_name(m->type), printers[m->kind].name);
	if (m->has_session) {
		buf_printf(out, " session=");
		print_hex(out, m->session, sizeof(m->session));
	}
	if (m->round != 0)
		buf_printf(out, " k=%d", m->round);
	if (m->kind != NET_BODY_none)
		printers[m->kind].print(out, &m->hello);
	take_inner(m, out);
}

static void encode(const struct net_message *m, struct buf *out)
{
	struct net_writer w;

	net_write_begin(&w, out, m->type, m->has_session ? m->session : NULL);
	if (m->type == NET_MSG_ROUND)
		net_put_uint(&w, "k", m->round);
	if (m->kind != NET_BODY_none)
		net_body_put(&w, m->kind, &m->hello);
	assert_int_equal(net_write_end(&w, NULL), 0);
}

static bool next_line(FILE *f, char begin, char *line)
{
	while (fgets(line, 2 * LINE_MAX_BYTES, f) != NULL)
		if (line[0] == begin) {
			line[strcspn(line, "\n")] = '\0';
			return true;
		}
	return false;
}

static size_t read_hex(const char *line, uint8_t *bytes)
{
	size_t n = 0;

	assert_int_equal(sodium_hex2bin(bytes, LINE_MAX_BYTES, line, strlen(line), NULL, &n, NULL),
			 0);
	return n;
}

static void check(const uint8_t *bytes, size_t n, const char *expected)
{
	uint8_t came[LINE_MAX_BYTES];
	struct net_message m, *copy;
	struct buf again = { 0 }, text = { 0 };
	size_t memory;

	memcpy(came, bytes, n);
	assert_int_equal(net_message_decode(&m, came, n, NULL), 0);
	if (m.wrong.code != 0)
		fail_msg("%s: %s", expected, m.wrong.text);
	describe(&m, &text);
	assert_string_equal((const char *)text.base, expected);
	encode(&m, &again);
	assert_int_equal(again.len, n);
	assert_memory_equal(again.base, bytes, n);
	copy = net_message_copy(&m, &memory); /* a copy has what it needs */
	assert_true(memory >= n);
	memset(&m, 0, sizeof(m));
	memset(came, 0, sizeof(came));
	buf_clear(&again);
	encode(copy, &again);
	assert_memory_equal(again.base, bytes, n);
	free(copy);
	buf_release(&again);
	buf_release(&text);
}

static void bytes_of_before(void **state)
{
	static char line[2 * LINE_MAX_BYTES], expected[2 * LINE_MAX_BYTES];
	static uint8_t bytes[LINE_MAX_BYTES];
	FILE *f = fopen(golden_path, "r");
	bool seen[NET_BODIES] = { false };

	(void)state;
	assert_non_null(f);
	while (next_line(f, '<', line)) {
		size_t n = read_hex(line + 2, bytes);
		struct net_message m;

		assert_true(next_line(f, '>', expected));
		check(bytes, n, expected + 2);
		assert_int_equal(net_message_decode(&m, bytes, n, NULL), 0);
		seen[m.kind] = true;
	}
	fclose(f);
	for (int i = NET_MSG_HELLO; i <= NET_MSG_SCORED; i++)
		assert_string_not_equal(net_msg_name((unsigned)i), "?");
#define BODY(name, section) assert_true(seen[NET_BODY_##name]);
#define INNER(name, section)
#define MUST(kind, field, key, min, max)
#define MAY(kind, field, key, min, max)
#define PART(name, field)
#define PART_IF(name, field, key)
#define END(name)
#include "net/bodies.def"
}

/* Cut, longer, or with one byte changed: refused, or read as something else; never a crash.  What
 * is over its limit or missing is named. */
static void other_bytes(void **state)
{
	static char line[2 * LINE_MAX_BYTES];
	static uint8_t bytes[LINE_MAX_BYTES];
	FILE *f = fopen(golden_path, "r");

	(void)state;
	assert_non_null(f);
	while (next_line(f, '<', line)) {
		size_t n = read_hex(line + 2, bytes);

		for (size_t cut = 0; cut <= n; cut++) {
			uint8_t *some = malloc(cut + 1);
			struct net_message m;

			memcpy(some, bytes, cut < n ? cut : n);
			some[cut] = 0;
			assert_int_not_equal(
				net_message_decode(&m, some, cut < n ? cut : n + 1, NULL), 0);
			assert_int_not_equal(m.wrong.code, 0);
			free(some);
		}
		for (size_t i = 0; i < n; i++) {
			uint8_t *some = malloc(n);
			struct net_message m;

			memcpy(some, bytes, n);
			some[i] ^= 0x81;
			net_message_decode(&m, some, n, NULL);
			free(some);
		}
	}
	fclose(f);
}

static void faults_are_named(void **state)
{
	struct net_signal none = { 0 };
	struct buf out = { 0 };
	struct net_message m;
	struct net_writer w;

	(void)state;
	net_write_begin(&w, &out, NET_MSG_SIGNAL, NULL);
	net_signal_put(&w, &none); /* writers are believed */
	assert_int_equal(net_write_end(&w, NULL), 0);
	assert_int_equal(net_message_decode(&m, out.base, out.len, NULL), 0);
	assert_int_equal(m.wrong.code, ERR_PROTO);
	assert_non_null(strstr(m.wrong.text, "'s'"));
	buf_clear(&out);
	net_write_begin(&w, &out, NET_MSG_HELLO, NULL);
	net_put_uint(&w, "v", 7);
	assert_int_equal(net_write_end(&w, NULL), 0);
	assert_int_equal(net_message_decode(&m, out.base, out.len, NULL), 0);
	assert_int_equal(m.wrong.code, ERR_PROTO);
	assert_non_null(strstr(m.wrong.text, "'n' is missing"));
	assert_int_equal(m.hello.version, 7); /* what comes before the fault is there */
	buf_release(&out);
}

/* What follows a control of direction on a line of a log would be shown in another order. */
static void words_have_no_direction(void **state)
{
	struct net_reason said = { .code = ERR_BUSY, .why = "a \u202edeifirev" };
	struct buf out = { 0 };
	struct net_message m;
	struct net_writer w;

	(void)state;
	net_write_begin(&w, &out, NET_MSG_ABORT, NULL);
	net_reason_put(&w, &said);
	assert_int_equal(net_write_end(&w, NULL), 0);
	assert_int_equal(net_message_decode(&m, out.base, out.len, NULL), 0);
	assert_int_equal(m.wrong.code, 0);
	assert_string_equal(m.reason.why, "a ???deifirev");
	buf_release(&out);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bytes_of_before),
		cmocka_unit_test(other_bytes),
		cmocka_unit_test(faults_are_named),
		cmocka_unit_test(words_have_no_direction),
	};

	golden_path = argc > 1 ? argv[1] : "golden.txt";
	return cmocka_run_group_tests(tests, NULL, NULL);
}
