/* What partners brought, as it is written: read back, bounded, damaged. */
#include "tests/test.h"

#include <string.h>

#include "agent/core/history.h"

static struct agent_history filled(size_t n)
{
	struct agent_history h = { .has_before = true,
				   .before = .25,
				   .first = 30,
				   .epochs = 90,
				   .vain = 4,
				   .lone = { 7 },
				   .n = n };

	for (size_t i = 0; i < n; i++) {
		h.gain[i] =
			(struct agent_gain){ .time_ms = (int64_t)(1000 + i),
					     .before = .25 + (double)i,
					     .after = .5 + (double)i,
					     .kept = i % 2 == 0,
					     .n_peers = (uint32_t)(i % (AGENT_GAIN_PEERS + 1)) };
		memset(h.gain[i].peer, (int)i + 1, (size_t)h.gain[i].n_peers * STORE_KEY);
		for (uint32_t k = 0; k < h.gain[i].n_peers; k++) {
			h.gain[i].cosine[k] = 0.01F * (float)i + 0.1F * (float)k;
			h.gain[i].nearest[k] = 1 - 0.1F * (float)k;
		}
	}
	return h;
}

static void test_read_back(void **state)
{
	struct agent_history h = filled(AGENT_GAINS_MAX), got;
	struct buf b = { 0 };

	(void)state;
	agent_history_write(&h, &b);
	assert_true(b.len > 0 && b.len < 64 << 10); /* store_load_core() gives no more */
	assert_int_equal(agent_history_read(&got, b.base, b.len, NULL), 0);
	assert_true(got.has_before && !got.drawn && !got.by_hand);
	assert_true(agent_history_is_lone(&got, h.lone));
	assert_true(got.before == h.before && got.first == 30 && got.epochs == 90 &&
		    got.vain == 4 && got.n == AGENT_GAINS_MAX);
	for (size_t i = 0; i < got.n; i++) {
		assert_true(got.gain[i].after == h.gain[i].after);
		assert_int_equal(got.gain[i].kept, h.gain[i].kept);
		assert_int_equal(got.gain[i].n_peers, h.gain[i].n_peers);
		assert_memory_equal(got.gain[i].peer, h.gain[i].peer, sizeof(h.gain[i].peer));
		for (uint32_t k = 0; k < got.gain[i].n_peers; k++)
			assert_true(got.gain[i].cosine[k] == h.gain[i].cosine[k] &&
				    got.gain[i].nearest[k] == h.gain[i].nearest[k]);
	}
	buf_release(&b);
}

static void test_nothing_and_damaged(void **state)
{
	struct agent_history h = filled(3), got;
	struct buf b = { 0 };
	struct err e = { 0 };

	(void)state;
	assert_int_equal(agent_history_read(&got, NULL, 0, NULL), 0);
	assert_false(got.has_before || agent_history_is_lone(&got, got.lone));
	agent_history_write(&h, &b);
	for (size_t n = 1; n < b.len; n++)
		assert_int_equal(agent_history_read(&got, b.base, n, &e), ERR_STORE);
	buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_read_back),
		cmocka_unit_test(test_nothing_and_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
