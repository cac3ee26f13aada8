/* A store that was put back from a backup: what it says of itself, entries that partners hand back
 * and the order of its exports, copies beside the owner. */
#include "tests/test.h"

#include <sodium.h>
#include <unistd.h>

#include "store/store.h"
#include "tests/folder.h"
#include "tests/store/world.h"

/* ---- what it says of itself ---- */

static struct buf bytes_of(const struct store_restored *r)
{
	struct store_batch b = { 0 };
	struct buf out = { 0 };

	store_batch_restored(&b, r);
	assert_string_equal(b.at[0].u.meta.key, STORE_META_RESTORED);
	buf_add(&out, b.at[0].u.meta.base, b.at[0].u.meta.len);
	store_batch_release(&b);
	return out;
}

static void test_bytes(void **state)
{
	struct store_restored r = { .is = true, .training = true, .time_ms = 1700000000123 }, back;
	uint8_t key[3][32];
	struct buf b;

	(void)state;
	randombytes_buf(key, sizeof(key));
	for (int k = 0; k < 3; k++)
		store_restored_add(&r, key[k]);
	store_restored_add(&r, key[1]);
	assert_int_equal(r.n_waits, 3);
	assert_true(store_restored_drop(&r, key[0]));
	assert_false(store_restored_drop(&r, key[0]));
	b = bytes_of(&r);
	assert_int_equal(store_restored_read(&back, b.base, b.len, NULL), 0);
	assert_true(back.is && back.training && !back.fresh && back.time_ms == r.time_ms);
	assert_true(back.n_waits == 2 && !store_restored_waits(&back, key[0]));
	assert_true(store_restored_waits(&back, key[1]) && store_restored_waits(&back, key[2]));
	store_restored_release(&back);
	for (size_t n = 1; n < b.len; n++) /* cut anywhere but behind a key */
		assert_int_equal(store_restored_read(&back, b.base, n, NULL),
				 n >= 10 && (n - 10) % 32 == 0 ? 0 : ERR_STORE),
			store_restored_release(&back);
	b.base[0] = 2;
	assert_int_equal(store_restored_read(&back, b.base, b.len, NULL), ERR_STORE);
	b.base[0] = 1;
	b.base[1] = 4;
	assert_int_equal(store_restored_read(&back, b.base, b.len, NULL), ERR_STORE);
	assert_int_equal(store_restored_read(&back, NULL, 0, NULL), 0);
	assert_false(back.is);
	buf_release(&b);
	store_restored_release(&r);
}

/* ---- entries that come back ---- */

enum { BACKUP = 2 }; /* entries in it */

/* Agent 0 spends on 1 and on 2, in turns: what it says of its labels toward both fits one order. */
static void spend(struct world *w)
{
	w->countersign = true;
	world_add(w, LEDGER_CONTRACT, 0, 1, 1, 0);
	world_add(w, LEDGER_RESERVE, 0, 1, 1, 16);
	world_add(w, LEDGER_CONTRACT, 0, 2, 2, 0);
	world_add(w, LEDGER_RESERVE, 0, 2, 2, 8);
	world_add(w, LEDGER_RESERVE, 0, 1, 1, 16);
	world_add(w, LEDGER_SETTLE, 0, 2, 2, 4);
	world_add(w, LEDGER_SETTLE, 0, 1, 1, 20);
	world_add(w, LEDGER_RESERVE, 0, 2, 3, 8);
}

static struct store *open_of(const struct world *w, const char *path)
{
	struct store_options o = { .owner = world_key(w, 0) };
	struct store *s;
	struct err e = { 0 };

	if (store_open(&s, path, &o, &e) != 0)
		fail_msg("%s", e.text);
	return s;
}

static int put(struct store *s, const struct ledger_signed *x, bool returned)
{
	struct store_batch b = { 0 };
	int rc;

	if (returned)
		store_batch_return_entry(&b, x);
	else
		store_batch_entry(&b, x);
	rc = store_apply(s, &b, NULL);
	store_batch_release(&b);
	return rc;
}

static void mark(struct store *s, bool training)
{
	struct store_restored r = { .is = true, .training = training };
	struct store_batch b = { 0 };

	store_batch_restored(&b, &r);
	assert_int_equal(store_apply(s, &b, NULL), 0);
	store_batch_release(&b);
}

static bool with(const struct world *w, const struct ledger_signed *x, int client)
{
	return memcmp(x->entry.client, world_key(w, client), 32) == 0;
}

/* The partners answer one after the other, the one that was spent on last first. */
static void hand_back(struct store *s, struct world *w)
{
	for (int partner = 2; partner >= 1; partner--)
		for (size_t k = BACKUP; k < w->n; k++)
			if (with(w, &w->entry[k], partner))
				assert_int_equal(put(s, &w->entry[k], true), 0);
}

static void test_returned(void **state)
{
	struct world w;
	struct ledger_export x;
	struct store *s;

	(void)state;
	world_init(&w);
	spend(&w);
	s = open_of(&w, ":memory:");
	for (size_t k = 0; k < BACKUP; k++)
		assert_int_equal(put(s, &w.entry[k], false), 0);
	/* an entry of now may not leave out what the others have; one that comes back may */
	assert_int_equal(put(s, &w.entry[4], false), ERR_LEDGER);
	hand_back(s, &w);
	assert_int_equal(store_check(s, NULL), ERR_LEDGER); /* in the order in which they came */
	mark(s, false);
	assert_int_equal(store_check(s, NULL), 0);
	assert_int_equal(store_ledger(s, NULL, &x, NULL), 0);
	assert_int_equal(x.n, w.n);
	for (size_t k = 0; k < w.n; k++)
		assert_memory_equal(x.at[k].hash, w.entry[k].hash, 32);
	ledger_export_release(&x);
	store_close(s);
	world_release(&w);
}

static void test_returned_must_hold(void **state)
{
	struct world w;
	struct ledger_signed bad;
	struct store *s;

	(void)state;
	world_init(&w);
	spend(&w);
	s = open_of(&w, ":memory:");
	for (size_t k = 0; k < BACKUP; k++)
		assert_int_equal(put(s, &w.entry[k], false), 0);
	assert_int_equal(put(s, &w.entry[6], true), ERR_LEDGER); /* not the next one */
	bad = w.entry[4];
	bad.countersignature[5] ^= 1;
	assert_int_equal(put(s, &bad, true), ERR_LEDGER);
	bad = w.entry[4];
	bad.signature[5] ^= 1;
	assert_int_equal(put(s, &bad, true), ERR_LEDGER);
	bad = w.entry[4];
	bad.entry.count--;
	assert_int_equal(put(s, &bad, true), ERR_LEDGER);
	assert_int_equal(put(s, &w.entry[4], true), 0);
	store_close(s);
	world_release(&w);
}

static void test_chain_entries(void **state)
{
	struct world w;
	struct ledger_signed *at;
	struct store *s;
	size_t n;

	(void)state;
	world_init(&w);
	spend(&w);
	s = open_of(&w, ":memory:");
	for (size_t k = 0; k < w.n; k++)
		assert_int_equal(put(s, &w.entry[k], false), 0);
	assert_int_equal(store_chain_entries(s, world_key(&w, 1), 2, 2, &at, &n, NULL), 0);
	assert_int_equal(n, 2);
	assert_memory_equal(at[0].hash, w.entry[1].hash, 32);
	assert_memory_equal(at[1].hash, w.entry[4].hash, 32);
	assert_true(at[1].countersigned);
	free(at);
	assert_int_equal(store_chain_entries(s, world_key(&w, 2), 5, 9, &at, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(at);
	assert_int_equal(store_chain_entries(s, world_key(&w, 2), UINT64_MAX, 9, &at, &n, NULL), 0);
	assert_int_equal(n, 0);
	free(at);
	store_close(s);
	world_release(&w);
}

/* Nobody holds what was stated after the backup: nothing is stated in its place. */
static void test_no_statement(void **state)
{
	struct world w;
	struct ledger_stated stated = { 0 };
	struct store_batch b = { 0 };
	struct store *s;
	struct err e = { 0 };

	(void)state;
	world_init(&w);
	s = open_of(&w, ":memory:");
	memcpy(stated.statement.agent, world_key(&w, 0), 32);
	store_batch_statement(&b, &stated);
	mark(s, true);
	assert_int_equal(store_apply(s, &b, &e), ERR_REFUSED);
	assert_non_null(strstr(e.text, "fkge restore"));
	mark(s, false);
	assert_int_equal(store_apply(s, &b, &e), ERR_LEDGER); /* it is none that holds */
	store_batch_release(&b);
	store_close(s);
	world_release(&w);
}

/* ---- a copy beside the owner ---- */

static void test_copy(void **state)
{
	char path[64], to[64], log[80];
	struct world w;
	struct ledger_export x;
	struct store *s, *copy, *reader;
	struct store_options reading = { .mode = STORE_READ };

	(void)state;
	snprintf(path, sizeof(path), "%s/store.db", folder);
	snprintf(to, sizeof(to), "%s/copy.db", folder);
	world_init(&w);
	spend(&w);
	s = open_of(&w, path);
	for (size_t k = 0; k < 4; k++)
		assert_int_equal(put(s, &w.entry[k], false), 0);
	assert_int_equal(store_open(&reader, path, &reading, NULL), 0);
	assert_int_equal(store_copy(reader, to, NULL), 0);
	assert_int_equal(store_copy(reader, to, NULL), ERR_EXISTS);
	store_close(reader);
	assert_int_equal(put(s, &w.entry[4], false), 0); /* its owner goes on */
	snprintf(log, sizeof(log), "%s-wal", to);
	assert_int_not_equal(access(log, F_OK), 0);
	copy = open_of(&w, to);
	assert_int_equal(store_check(copy, NULL), 0);
	assert_int_equal(store_ledger(copy, NULL, &x, NULL), 0);
	assert_int_equal(x.n, 4);
	ledger_export_release(&x);
	assert_int_equal(put(copy, &w.entry[4], false), 0);
	store_close(copy);
	store_close(s);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bytes),
		cmocka_unit_test(test_returned),
		cmocka_unit_test(test_returned_must_hold),
		cmocka_unit_test(test_chain_entries),
		cmocka_unit_test(test_no_statement),
		cmocka_unit_test(test_copy),
	};

	if (sodium_init() < 0)
		return 1;
	return cmocka_run_group_tests_name("store/restored", tests, make_folder, remove_folder);
}
