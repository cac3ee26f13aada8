/* tests/agent/test_lengths.c - federation.unit_rows: the rows that leave have length 1, whether
 * their owner says so or the host that takes them in. */
#include "tests/test.h"

#include <math.h>
#include <sodium.h>
#include <stdlib.h>

#include "base/mem.h"
#include "net/bodies.h"
#include "ppat/session.h"
#include "tests/agent/table.h"

enum { HOST, CLIENT };

struct seen {
	uint64_t rows, of_length_1;
};

static void look_at(struct seen *seen, const struct net_tensor *t)
{
	float *rows = mem_array(t->rows * t->cols + 1, sizeof(*rows));
	struct err e = { 0 };

	net_tensor_read(t, "z", rows, t->rows, t->cols, &e);
	assert_int_equal(e.code, 0);
	for (size_t i = 0; i < t->rows; i++) {
		double sum = 0;

		for (size_t k = 0; k < t->cols; k++)
			sum += pow((double)rows[i * t->cols + k], 2);
		seen->of_length_1 += fabs(sqrt(sum) - 1) < 1e-4;
	}
	seen->rows += t->rows;
	free(rows);
}

/* Rows of the client, as they leave. */
static void watch(void *ctx, struct table *t, size_t from, size_t to, struct buf *bytes)
{
	struct net_message m;
	struct net_row_run run;
	struct net_body b;
	struct err e = { 0 };

	(void)t, (void)to;
	assert_int_equal(net_message_decode(&m, bytes->base, bytes->len, &e), 0);
	if (from != CLIENT || m.type != NET_MSG_CONV || !m.conv.has_part ||
	    m.conv.conversation != CONV_TRANSLATE || m.conv.part.kind != PPAT_MSG_ROWS)
		return;
	assert_int_equal(net_body_decode(&b, m.conv.part.body.base, m.conv.part.body.len, &e), 0);
	net_row_run_get(&b.map, &run, &e);
	assert_int_equal(e.code, 0);
	look_at(ctx, &run.rows);
	net_body_release(&b);
}

static struct seen session(bool host_wants, bool client_wants, bool noisy)
{
	struct seen seen = { 0 };
	struct table t;

	table_init(&t, 31);
	for (size_t i = 0; i < 2; i++)
		t.agent[i].config.federation.aligned.bits = CONFIG_ROW_BITS_32;
	t.agent[HOST].config.federation.unit_rows = host_wants;
	t.agent[HOST].config.federation.roles = CONFIG_HOST_ONLY;
	t.agent[CLIENT].config.federation.unit_rows = client_wants;
	t.agent[CLIENT].config.federation.roles = CONFIG_CLIENT_ONLY;
	t.agent[CLIENT].config.privacy.noisy_rows = noisy;
	t.agent[CLIENT].config.privacy.release_noise = noisy ? 20 : 0;
	t.tamper = watch;
	t.ctx = &seen;
	table_start(&t);
	table_link(&t, HOST, CLIENT, true);
	table_run(&t, 60000, 100000);
	assert_true(t.agent[HOST].core->sessions > 0 && seen.rows > 0);
	table_release(&t);
	return seen;
}

static void a_wish_of_either_side_is_enough(void **state)
{
	struct seen neither = session(false, false, false);
	struct seen host = session(true, false, false), client = session(false, true, false);

	(void)state;
	assert_true(neither.of_length_1 < neither.rows / 2);
	assert_int_equal(host.of_length_1, host.rows);
	assert_int_equal(client.of_length_1, client.rows);
}

/* With noise no row has length 1 on its way; the terms say that it had. */
static void noisy_rows_go_as_well(void **state)
{
	(void)state;
	session(false, true, true);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_wish_of_either_side_is_enough),
		cmocka_unit_test(noisy_rows_go_as_well),
	};

	return sodium_init() < 0 ? 1
				 : cmocka_run_group_tests_name("agent/lengths", tests, NULL, NULL);
}
