/* What partners brought, as it is written: read back, bounded, damaged. */
#include "tests/test.h"

#include <string.h>

#include "agent/core/history.h"
#include "config/config.h"
#include "net/msg.h"

static void number_key(uint8_t key[STORE_KEY], size_t number)
{
	memset(key, 7, STORE_KEY);
	memcpy(key, &number, sizeof(number));
}

static void note_numbers(struct agent_history *h, size_t from, size_t n)
{
	uint8_t key[STORE_KEY];

	for (size_t i = from; i < from + n; i++) {
		number_key(key, i);
		agent_history_note(h, key);
	}
}

/* In gain i. */
static bool was_in(const struct agent_history *h, size_t i, size_t number)
{
	uint8_t key[STORE_KEY];

	number_key(key, number);
	for (size_t k = 0; k < h->n_keys; k++)
		if (memcmp(h->key[k], key, STORE_KEY) == 0)
			return agent_gain_has(&h->gain[i], k);
	return false;
}

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

/* As many as there can be are in each training, and all of it fits. */
static void test_all_are_in_all(void **state)
{
	struct agent_history h = filled(AGENT_GAINS_MAX), got;
	struct buf b = { 0 };

	(void)state;
	for (h.n = 1; h.n <= AGENT_GAINS_MAX; h.n++) {
		h.gain[h.n - 1].n_peers = AGENT_GAIN_PEERS;
		note_numbers(&h, 0, AGENT_HISTORY_KEYS);
	}
	h.n--;
	agent_history_write(&h, &b);
	assert_true(b.len > 0 && b.len < 64 << 10); /* store_load_core() gives no more */
	assert_int_equal(agent_history_read(&got, b.base, b.len, NULL), 0);
	assert_int_equal(got.n_keys, AGENT_HISTORY_KEYS);
	for (size_t i = 0; i < got.n; i++)
		for (size_t k = 0; k < AGENT_HISTORY_KEYS; k++)
			assert_true(was_in(&got, i, k));
	buf_release(&b);
}

static bool brought(const struct agent_history *h, size_t number, uint64_t trainings, uint64_t kept,
		    double gain)
{
	uint8_t key[STORE_KEY];
	struct agent_brought b;

	number_key(key, number);
	b = agent_history_brought(h, key);
	return b.trainings == trainings && b.kept == kept && b.gain == gain;
}

/* The newest 64 are known one by one; what partners brought counts all, also after a restart. */
static void test_sums_outlive_gains(void **state)
{
	struct agent_history h = { .has_before = true };
	struct buf b = { 0 };

	(void)state;
	for (size_t i = 0; i < 200; i++) { /* one only in the first ten; own ones between */
		agent_history_add(
			&h, &(struct agent_gain){ .before = .25, .after = .5, .kept = i % 4 == 0 });
		if (i % 2 == 0)
			note_numbers(&h, 0, i < 10 ? 2 : 1);
		buf_clear(&b);
		agent_history_write(&h, &b);
		assert_int_equal(agent_history_read(&h, b.base, b.len, NULL), 0);
	}
	assert_int_equal(h.n, AGENT_GAINS_MAX);
	assert_true(brought(&h, 0, 100, 50, 12.5));
	assert_true(brought(&h, 1, 5, 3, .75));
	assert_true(brought(&h, 2, 0, 0, 0));
	buf_release(&b);
}

/* Of more partners than there can be those that were in most; and all of it fits. */
static void test_sums_of_too_many(void **state)
{
	struct agent_history h = { .has_before = true }, got;
	struct agent_gain gain = filled(1).gain[0];
	struct buf b = { 0 };

	(void)state;
	gain.n_peers = AGENT_GAIN_PEERS;
	for (size_t i = 0; i < 2 * AGENT_GAINS_MAX; i++) {
		agent_history_add(&h, &gain);
		note_numbers(&h, 0, 1);
		note_numbers(&h, 1 + 9 * i, AGENT_HISTORY_KEYS - 1);
	}
	assert_int_equal(h.n_past, AGENT_HISTORY_KEYS);
	agent_history_write(&h, &b);
	assert_true(b.len > 0 && b.len < 64 << 10);
	assert_int_equal(agent_history_read(&got, b.base, b.len, NULL), 0);
	assert_true(brought(&got, 0, 128, 128, 128 * .25));
	buf_release(&b);
}

static void test_units_are_those_of_rounds(void **state)
{
	struct agent_history h = { .has_before = true, .epochs = 30 }, got;
	struct config c;
	struct buf b = { 0 };

	(void)state;
	config_init(&c);
	c.federation.mode = CONFIG_PAIRS;
	c.federation.epochs_per_round = 9;
	assert_int_equal(agent_history_unit(&h, &c, 0), 9); /* none known */
	assert_int_equal(agent_history_unit(&h, &c, 28), 2);
	for (uint32_t i = 0; i < 4; i++)
		agent_history_add_round(&h, i < 2 ? 3 : 5);
	agent_history_write(&h, &b);
	assert_int_equal(agent_history_read(&got, b.base, b.len, NULL), 0);
	assert_true(got.n_units == 2 && got.epochs == 46);
	assert_int_equal(agent_history_unit(&got, &c, 0), 3);
	assert_int_equal(agent_history_unit(&got, &c, 29), 1);
	assert_int_equal(agent_history_unit(&got, &c, 30), 3);
	assert_int_equal(agent_history_unit(&got, &c, 34), 2); /* others from there */
	assert_int_equal(agent_history_unit(&got, &c, 36), 5);
	c.federation.mode = CONFIG_ROUNDS;
	c.rounds.epochs = 2;
	c.rounds.eval_every = 5;
	assert_int_equal(agent_history_unit(&got, &c, 34), 10);
	for (uint32_t i = 1; i <= 100; i++)
		agent_history_add_round(&got, i);
	assert_int_equal(got.n_units, AGENT_UNITS_MAX);
	assert_int_equal(got.unit[AGENT_UNITS_MAX - 1].from, got.epochs - 100);
	buf_release(&b);
	config_release(&c);
}

/* Partners come and go: those of the newest are known, whoever was in old ones. */
static void test_the_oldest_forget_theirs(void **state)
{
	struct agent_history h = filled(3);

	(void)state;
	h.n = 1;
	note_numbers(&h, 0, 200);
	h.n = 2;
	note_numbers(&h, 150, 100); /* 50 are new */
	assert_int_equal(h.n_keys, 250);
	h.n = 3;
	note_numbers(&h, 240, 100); /* 90 are */
	assert_true(!was_in(&h, 0, 0) && !was_in(&h, 0, 199) && h.gain[0].n_peers == 0);
	for (size_t k = 150; k < 340; k++) {
		assert_int_equal(was_in(&h, 1, k), k < 250);
		assert_int_equal(was_in(&h, 2, k), k >= 240);
	}
	assert_int_equal(h.n_keys, 190);
	note_numbers(&h, 240, 100); /* again */
	assert_int_equal(h.n_keys, 190);
}

/* Records of before have some keys with each training, and no others. */
static void test_older_records(void **state)
{
	struct agent_history got;
	struct net_writer w;
	struct buf b = { 0 };
	uint8_t key[2][STORE_KEY];

	(void)state;
	net_write_body(&w, &b);
	net_put_uint(&w, "v", 1);
	net_put_bool(&w, "b", true);
	net_put_double(&w, "s", .5);
	net_put_bool(&w, "d", false);
	net_put_bool(&w, "h", false);
	net_put_uint(&w, "e", 6);
	net_put_list(&w, "g");
	for (size_t i = 0; i < 2; i++) {
		number_key(key[0], i);
		number_key(key[1], i + 1);
		net_put_map(&w, NULL);
		net_put_uint(&w, "t", 1);
		net_put_double(&w, "a", .5);
		net_put_double(&w, "z", .6);
		net_put_bool(&w, "k", true);
		net_put_bin(&w, "p", key, sizeof(key));
		net_put_end(&w);
	}
	net_put_end(&w);
	assert_int_equal(net_write_end(&w, NULL), 0);
	assert_int_equal(agent_history_read(&got, b.base, b.len, NULL), 0);
	assert_true(got.n == 2 && got.n_keys == 3 && got.gain[1].n_peers == 2);
	for (size_t k = 0; k < 3; k++)
		assert_true(was_in(&got, 0, k) == (k < 2) && was_in(&got, 1, k) == (k > 0));
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
		cmocka_unit_test(test_all_are_in_all),
		cmocka_unit_test(test_sums_outlive_gains),
		cmocka_unit_test(test_sums_of_too_many),
		cmocka_unit_test(test_units_are_those_of_rounds),
		cmocka_unit_test(test_the_oldest_forget_theirs),
		cmocka_unit_test(test_older_records),
		cmocka_unit_test(test_nothing_and_damaged),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
